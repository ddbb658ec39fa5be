//! Themes: a style for each role. Panes only use roles, never colours.

use std::{borrow::Cow, str::FromStr, sync::LazyLock};

use ratatui::style::{Color, Modifier, Style};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::contrast;
use crate::{
    app::{ThemeChoice, ThemeName},
    model::StateRole,
};
use kordon_core::cluster::nearest::{did_you_mean, nearest};

/// Declares the roles, with their names in theme files.
macro_rules! roles {
    ($($role:ident = $name:literal),+ $(,)?) => {
        /// A kind of element on screen that has a style of its own.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Role { $($role),+ }

        impl Role {
            pub const ALL: &[Self] = &[$(Self::$role),+];

            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$role => $name),+ }
            }
        }
    };
}

roles! {
    Base = "base",
    Dim = "dim",
    Faint = "faint",
    Strong = "strong",
    Accent = "accent",
    Border = "border",
    BorderFocus = "border-focus",
    BorderEnforce = "border-enforce",
    BorderFocusEnforce = "border-focus-enforce",
    Title = "title",
    TitleFocus = "title-focus",
    Heading = "heading",
    HeadingSorted = "heading-sorted",
    Selected = "selected",
    SelectedUnfocused = "selected-unfocused",
    Key = "key",
    Input = "input",
    ModeDryRun = "mode.dry-run",
    ModeEnforce = "mode.enforce",
    ModeReadOnly = "mode.read-only",
    ModeReplay = "mode.replay",
    NodeCritical = "node.critical",
    NodeWarning = "node.warning",
    NodeNotice = "node.notice",
    NodeMaintenance = "node.maintenance",
    NodeReady = "node.ready",
    RowCritical = "row.critical",
    RowWarning = "row.warning",
    RowNotice = "row.notice",
    RowMaintenance = "row.maintenance",
    RowReady = "row.ready",
    VerdictHealthy = "verdict.healthy",
    VerdictNotice = "verdict.notice",
    VerdictWarning = "verdict.warning",
    VerdictCritical = "verdict.critical",
    VerdictDisconnected = "verdict.disconnected",
    TaintNoExecute = "taint.no-execute",
    TaintNoSchedule = "taint.no-schedule",
    HeartbeatOk = "heartbeat.ok",
    HeartbeatLate = "heartbeat.late",
    HeartbeatLost = "heartbeat.lost",
    CountdownFar = "countdown.far",
    CountdownSoon = "countdown.soon",
    CountdownNear = "countdown.near",
    ZoneInitial = "zone.initial",
    ZoneNormal = "zone.normal",
    ZonePartial = "zone.partial",
    ZoneFull = "zone.full",
    EvictionPredicted = "eviction.predicted",
    EvictionNever = "eviction.never",
    EvictionTerminating = "eviction.terminating",
    EvictionCancelled = "eviction.cancelled",
    GaugeFill = "gauge.fill",
    GaugeHigh = "gauge.high",
    GaugeRest = "gauge.rest",
    FeedLive = "feed.live",
    FeedBusy = "feed.busy",
    FeedBroken = "feed.broken",
    LevelInfo = "level.info",
    LevelWarning = "level.warning",
    LevelError = "level.error",
}

impl Role {
    /// Theme role of a node, by the `StateRole` of its state.
    pub const fn for_state(role: StateRole) -> Self {
        match role {
            StateRole::Critical => Self::NodeCritical,
            StateRole::Warning => Self::NodeWarning,
            StateRole::Notice => Self::NodeNotice,
            StateRole::Maintenance => Self::NodeMaintenance,
            StateRole::Ready => Self::NodeReady,
        }
    }
}

impl Role {
    /// Minimum contrast of the role: highest for text, lower for marks, none for decoration such as borders.
    pub const fn least_contrast(self) -> f64 {
        match self {
            Self::Faint | Self::GaugeFill | Self::GaugeHigh => 3.0,
            Self::Border
            | Self::BorderFocus
            | Self::BorderEnforce
            | Self::BorderFocusEnforce
            | Self::GaugeRest => 1.0,
            _ => contrast::LEAST,
        }
    }

    /// Whether the role is the background of rows, on which text of other roles stands.
    pub fn is_row(self) -> bool {
        self.as_str().starts_with("row.") || self.as_str().starts_with("selected")
    }
}

impl Role {
    /// Theme role of a node's row, by the `StateRole` of the node's state.
    pub const fn for_row(role: StateRole) -> Self {
        match role {
            StateRole::Critical => Self::RowCritical,
            StateRole::Warning => Self::RowWarning,
            StateRole::Notice => Self::RowNotice,
            StateRole::Maintenance => Self::RowMaintenance,
            StateRole::Ready => Self::RowReady,
        }
    }
}

/// Styles of all roles.
#[derive(Clone, Debug, PartialEq)]
pub struct Theme {
    styles: Vec<Style>,
}

/// An error in a theme. `line` is the line of its file, from 1.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ThemeError {
    #[error("the theme is not TOML: {why}")]
    Toml { line: usize, why: String },
    #[error("the theme has a role {role:?} that does not exist{}", did_you_mean(*meant))]
    UnknownRole { line: usize, role: String, meant: Option<&'static str> },
    #[error("the theme lacks the role {role:?}")]
    MissingRole { role: &'static str },
    #[error(
        "the theme's role {role:?} has {value}, which is neither a colour (as \"#c0ffee\", \"208\" or \"red\") nor a \
         table of fg, bg, bold, dim, italic, underline, reverse"
    )]
    BadValue { line: usize, role: String, value: String },
    #[error("{INHERITS} is not the name of a theme")]
    BadParent { line: usize },
}

impl ThemeError {
    /// Line of the theme's file, from 1.
    pub const fn line(&self) -> usize {
        match self {
            Self::Toml { line, .. }
            | Self::UnknownRole { line, .. }
            | Self::BadValue { line, .. }
            | Self::BadParent { line } => *line,
            Self::MissingRole { .. } => 1,
        }
    }
}

/// Key that names the parent theme, which provides the roles that a theme does not set.
const INHERITS: &str = "inherits";

/// Name of the parent theme, and the line of the file, from 1, that names it.
pub type ThemeParent = (String, usize);

impl Theme {
    /// A bundled theme.
    pub fn bundled(name: ThemeName) -> &'static Self {
        static THEMES: LazyLock<Vec<Theme>> = LazyLock::new(|| {
            let parse =
                |name: &ThemeName| Theme::parse(name.source()).expect("a test loads every bundled theme");
            ThemeName::ALL.iter().map(parse).collect()
        });
        &THEMES[name as usize]
    }

    /// The theme of a [`ThemeChoice`].
    pub fn chosen(choice: &ThemeChoice) -> Self {
        Self { styles: Self::styles_of(choice).to_vec() }
    }

    /// Styles of the theme of a [`ThemeChoice`], by role.
    pub fn styles_of(choice: &ThemeChoice) -> &[Style] {
        match choice {
            ThemeChoice::Bundled(name) => &Self::bundled(*name).styles,
            ThemeChoice::Own(own) => &own.styles,
        }
    }

    /// Parses a theme: roles in tables (`[node] ready = …`), each a colour or a table of attributes.
    ///
    /// # Errors
    /// The text is not a valid theme, or a role is missing.
    pub fn parse(text: &str) -> Result<Self, ThemeError> {
        let styles = read(text)?.styles.into_iter().zip(Role::ALL);
        let whole = styles.map(|(style, role)| style.ok_or(ThemeError::MissingRole { role: role.as_str() }));
        Ok(Self { styles: whole.collect::<Result<_, _>>()? })
    }

    /// Parses a theme. Roles that the theme does not set have their styles from `parent`.
    ///
    /// # Errors
    /// The text is not a valid theme.
    pub fn parse_over(text: &str, parent: &Self) -> Result<Self, ThemeError> {
        let styles = read(text)?.styles.into_iter().zip(&parent.styles);
        Ok(Self { styles: styles.map(|(style, inherited)| style.unwrap_or(*inherited)).collect() })
    }

    /// The parent theme that a theme names; `None` if it names no parent.
    ///
    /// # Errors
    /// The text is not a valid theme.
    pub fn parent(text: &str) -> Result<Option<ThemeParent>, ThemeError> {
        Ok(read(text)?.parent)
    }

    pub fn style(&self, role: Role) -> Style {
        self.styles[role as usize]
    }

    /// Styles of all roles, in their order.
    pub fn into_styles(self) -> Vec<Style> {
        self.styles
    }
}

/// What the file of a theme sets.
struct ThemeFile<'a> {
    text: &'a str,
    parent: Option<ThemeParent>,
    styles: Vec<Option<Style>>,
}

fn read(text: &str) -> Result<ThemeFile<'_>, ThemeError> {
    let mut file = ThemeFile { text, parent: None, styles: vec![None; Role::ALL.len()] };
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        ThemeError::Toml { line: file.line(at), why: error.message().to_owned() }
    })?;
    for (key, value) in table.get_ref() {
        if key.get_ref() == INHERITS {
            let line = file.line(key.span().start);
            let name = value.get_ref().as_str().ok_or(ThemeError::BadParent { line })?;
            file.parent = Some((name.to_owned(), line));
        } else {
            file.read_role(key.get_ref(), key.span().start, value.get_ref())?;
        }
    }
    Ok(file)
}

impl ThemeFile<'_> {
    /// Number, from 1, of the line that contains the byte offset `at` of the text.
    fn line(&self, at: usize) -> usize {
        1 + self.text.bytes().take(at).filter(|byte| *byte == b'\n').count()
    }

    /// Reads a role, or a table of roles, whose key is at the byte offset `at`.
    fn read_role(&mut self, name: &str, at: usize, value: &DeValue<'_>) -> Result<(), ThemeError> {
        let line = self.line(at);
        if let Some(role) = Role::ALL.iter().find(|role| role.as_str() == name) {
            let bad = || ThemeError::BadValue { line, role: name.into(), value: shown(value) };
            self.styles[*role as usize] = Some(read_style(value).ok_or_else(bad)?);
            return Ok(());
        }
        let group = format!("{name}.");
        let is_group = Role::ALL.iter().any(|role| role.as_str().starts_with(&group));
        let (true, Some(table)) = (is_group, value.as_table()) else {
            let meant = nearest(name, Role::ALL.iter().map(|role| role.as_str()));
            return Err(ThemeError::UnknownRole { line, role: name.into(), meant });
        };
        table.iter().try_for_each(|(part, value)| {
            self.read_role(&format!("{group}{}", part.get_ref()), part.span().start, value.get_ref())
        })
    }
}

fn read_style(value: &DeValue<'_>) -> Option<Style> {
    let Some(table) = value.as_table() else { return Some(Style::new().fg(read_color(value)?)) };
    let mut style = Style::new();
    for (attribute, value) in table {
        let value = value.get_ref();
        let modifier = match attribute.get_ref().as_ref() {
            "fg" => {
                style = style.fg(read_color(value)?);
                continue;
            }
            "bg" => {
                style = style.bg(read_color(value)?);
                continue;
            }
            "bold" => Modifier::BOLD,
            "dim" => Modifier::DIM,
            "italic" => Modifier::ITALIC,
            "underline" => Modifier::UNDERLINED,
            "reverse" => Modifier::REVERSED,
            _ => return None,
        };
        style = if value.as_bool()? { style.add_modifier(modifier) } else { style.remove_modifier(modifier) };
    }
    Some(style)
}

/// Text of a value, roughly as it is written in the theme's file.
fn shown(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("{text:?}"),
        DeValue::Table(table) => {
            let entry = |(key, value): (&Spanned<Cow<'_, str>>, &Spanned<DeValue<'_>>)| {
                format!("{} = {}", key.get_ref(), shown(value.get_ref()))
            };
            format!("{{ {} }}", table.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
        DeValue::Integer(number) => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(truth) => truth.to_string(),
        DeValue::Datetime(_) => "a date".into(),
        DeValue::Array(_) => "a list".into(),
    }
}

fn read_color(value: &DeValue<'_>) -> Option<Color> {
    Color::from_str(value.as_str()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bundled_theme_loads_whole() {
        for name in ThemeName::ALL {
            if let Err(error) = Theme::parse(name.source()) {
                panic!("{}: {error}", name.as_str());
            }
            assert_eq!(Theme::bundled(*name), &Theme::parse(name.source()).expect("just parsed"));
        }
    }

    fn rgb(color: Color) -> contrast::Rgb {
        let Color::Rgb(red, green, blue) = color else { panic!("{color} depends on the terminal") };
        (red, green, blue)
    }

    #[test]
    fn text_can_be_read_on_its_background_also_in_a_tinted_and_in_the_selected_row() {
        // The colours of `Ansi16` and `Mono` depend on the terminal, so their contrast is not known.
        let is_rgb = |name: &&ThemeName| !matches!(name, ThemeName::Ansi16 | ThemeName::Mono);
        for name in ThemeName::ALL.iter().filter(is_rgb) {
            let theme = Theme::bundled(*name);
            let base = theme.style(Role::Base);
            let rows = Role::ALL.iter().filter(|role| role.is_row()).filter_map(|role| theme.style(*role).bg);
            let rows: Vec<Color> = rows.chain(base.bg).collect();
            assert!(rows.len() > 5, "{rows:?}");
            for role in Role::ALL {
                let style = theme.style(*role);
                let Some(text) = style.fg.or(base.fg) else { panic!("{role:?} has no colour") };
                let wanted = role.least_contrast();
                let behind = match style.bg {
                    Some(own) => vec![own],
                    None if wanted < 4.5 => base.bg.into_iter().collect(),
                    None => rows.clone(),
                };
                for behind in behind {
                    let found = contrast::contrast(rgb(text), rgb(behind));
                    assert!(found >= wanted, "{}: {role:?} on {behind}: {found:.2}", name.as_str());
                }
            }
        }
    }

    /// How a colour-blind eye sees linear red, green and blue (Machado, Oliveira and Fernandes 2009, severity 1).
    const DEUTERANOPIA: [[f64; 3]; 3] = [
        [0.367_322, 0.860_646, -0.227_968],
        [0.280_085, 0.672_501, 0.047_413],
        [-0.011_82, 0.042_94, 0.968_881],
    ];
    const TRITANOPIA: [[f64; 3]; 3] = [
        [1.255_528, -0.076_749, -0.178_779],
        [-0.078_411, 0.930_809, 0.147_602],
        [0.004_733, 0.691_367, 0.303_9],
    ];

    /// Returns a colour as an eye sees it, in CIELAB.
    fn seen(color: Color, eye: [[f64; 3]; 3]) -> [f64; 3] {
        let linear = |part: u8| match f64::from(part) / 255.0 {
            part if part <= 0.040_45 => part / 12.92,
            part => ((part + 0.055) / 1.055).powf(2.4),
        };
        let dot = |row: [f64; 3], parts: [f64; 3]| row[0] * parts[0] + row[1] * parts[1] + row[2] * parts[2];
        let (red, green, blue) = rgb(color);
        let sent = [red, green, blue].map(linear);
        let seen = eye.map(|row| dot(row, sent).clamp(0.0, 1.0));
        let root = |value: f64| {
            if value > 0.008_856 { value.cbrt() } else { 7.787 * value + 16.0 / 116.0 }
        };
        let x = root(dot([0.412_4, 0.357_6, 0.180_5], seen) / 0.950_47);
        let y = root(dot([0.212_6, 0.715_2, 0.072_2], seen));
        let z = root(dot([0.019_3, 0.119_2, 0.950_5], seen) / 1.088_83);
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    /// Least distance of the colours of two states of nodes, as an eye sees them.
    fn least_distance(name: ThemeName, eye: [[f64; 3]; 3]) -> f64 {
        let roles =
            [Role::NodeCritical, Role::NodeWarning, Role::NodeNotice, Role::NodeMaintenance, Role::NodeReady];
        let colours = roles.map(|role| seen(Theme::bundled(name).style(role).fg.expect("a colour"), eye));
        let mut least = f64::MAX;
        for (place, one) in colours.iter().enumerate() {
            for other in &colours[place + 1..] {
                let squares = one.iter().zip(other).map(|(one, other)| (one - other).powi(2));
                least = least.min(squares.sum::<f64>().sqrt());
            }
        }
        least
    }

    #[test]
    fn states_of_nodes_stay_apart_for_the_eye_that_a_theme_is_made_for() {
        const APART: f64 = 15.0;
        for (name, eye) in [(ThemeName::Deuteranopia, DEUTERANOPIA), (ThemeName::Tritanopia, TRITANOPIA)] {
            let least = least_distance(name, eye);
            assert!(least > APART, "{}: {least:.1}", name.as_str());
            let other = least_distance(ThemeName::Dark, eye);
            assert!(other < APART, "a theme for other eyes: {other:.1}");
        }
    }

    #[test]
    fn mistakes_name_the_role_and_the_value() {
        let error = |text: &str| Theme::parse(text).expect_err("a mistake").to_string();
        assert!(error("[node]\nraedy = \"red\"").contains("\"node.raedy\""));
        assert!(error("colour = \"red\"").contains("\"colour\""));
        let bad = error("[node]\nready = \"rad\"");
        assert!(bad.contains("\"node.ready\"") && bad.contains("\"rad\""), "{bad}");
        assert!(error("base = { fg = \"red\", blink = true }").contains("blink"));
        assert!(error("base = 7").contains('7'));
        assert!(error("base = \"red\"").contains("lacks the role \"dim\""));
        assert!(error("base").contains("not TOML"));
        assert!(error("[node]\nraedy = \"red\"").contains("did you mean node.ready"));
    }

    #[test]
    fn mistakes_name_their_line() {
        let line = |text: &str| Theme::parse(text).expect_err("a mistake").line();
        assert_eq!(line("\n[node]\nraedy = \"red\""), 3);
        assert_eq!(line("dim = \"red\"\n\nbase = 7"), 3);
        assert_eq!(line("dim = \"red\"\nbase"), 2);
        assert_eq!(line("\ninherits = 1"), 2);
    }

    #[test]
    fn a_theme_has_the_styles_of_the_one_it_inherits_from_where_it_sets_none() {
        let nord = Theme::bundled(ThemeName::Nord);
        let text = "inherits = \"nord\"\nnode.ready = \"#ffffff\"";
        assert_eq!(Theme::parent(text), Ok(Some(("nord".into(), 1))));
        assert_eq!(Theme::parent("base = \"red\""), Ok(None));
        let own = Theme::parse_over(text, nord).expect("valid");
        for role in Role::ALL {
            let expected = match role {
                Role::NodeReady => Style::new().fg(Color::Rgb(255, 255, 255)),
                _ => nord.style(*role),
            };
            assert_eq!(own.style(*role), expected, "{role:?}");
        }
    }

    #[test]
    fn mono_has_no_colours_and_sixteen_colours_are_sixteen() {
        let colours = |name| {
            let theme = Theme::bundled(name);
            Role::ALL
                .iter()
                .flat_map(|role| [theme.style(*role).fg, theme.style(*role).bg])
                .flatten()
                .collect::<Vec<_>>()
        };
        assert!(colours(ThemeName::Mono).iter().all(|colour| *colour == Color::Reset));
        for colour in colours(ThemeName::Ansi16) {
            assert!(!matches!(colour, Color::Rgb(..) | Color::Indexed(16..)), "{colour}");
        }
    }
}
