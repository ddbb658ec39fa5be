//! Themes: a style for each role. Panes only use roles, never colours.

use std::{str::FromStr, sync::LazyLock};

use ratatui::style::{Color, Modifier, Style};

use crate::{app::ThemeName, model::StateRole};

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
    /// Role of a node, from the role of its state.
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
    /// Role of a node's row, from the role of the node's state.
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

/// An error in a theme.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ThemeError {
    #[error("the theme is not TOML: {0}")]
    Toml(String),
    #[error("the theme has a role {role:?} that does not exist")]
    UnknownRole { role: String },
    #[error("the theme lacks the role {role:?}")]
    MissingRole { role: &'static str },
    #[error(
        "the theme's role {role:?} has {value}, which is neither a colour (as \"#c0ffee\", \"208\" or \"red\") nor a \
         table of fg, bg, bold, dim, italic, underline, reverse"
    )]
    BadValue { role: String, value: String },
}

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

    /// Parses a theme: roles in tables (`[node] ready = …`), each a colour or a table of attributes.
    ///
    /// # Errors
    /// The text is not a valid theme, or a role is missing.
    pub fn parse(text: &str) -> Result<Self, ThemeError> {
        let table: toml::Table = text.parse().map_err(|error| ThemeError::Toml(format!("{error}")))?;
        let mut styles = vec![None; Role::ALL.len()];
        for (name, value) in &table {
            read_role(name, value, &mut styles)?;
        }
        let whole = Role::ALL
            .iter()
            .zip(styles)
            .map(|(role, style)| style.ok_or(ThemeError::MissingRole { role: role.as_str() }));
        Ok(Self { styles: whole.collect::<Result<_, _>>()? })
    }

    pub fn style(&self, role: Role) -> Style {
        self.styles[role as usize]
    }
}

/// Reads a role, or a table of roles.
fn read_role(name: &str, value: &toml::Value, styles: &mut [Option<Style>]) -> Result<(), ThemeError> {
    if let Some(role) = Role::ALL.iter().find(|role| role.as_str() == name) {
        let bad = || ThemeError::BadValue { role: name.into(), value: shown(value) };
        styles[*role as usize] = Some(read_style(value).ok_or_else(bad)?);
        return Ok(());
    }
    let group = format!("{name}.");
    let is_group = Role::ALL.iter().any(|role| role.as_str().starts_with(&group));
    let (true, Some(table)) = (is_group, value.as_table()) else {
        return Err(ThemeError::UnknownRole { role: name.into() });
    };
    table.iter().try_for_each(|(part, value)| read_role(&format!("{group}{part}"), value, styles))
}

fn read_style(value: &toml::Value) -> Option<Style> {
    let Some(table) = value.as_table() else { return Some(Style::new().fg(read_color(value)?)) };
    let mut style = Style::new();
    for (attribute, value) in table {
        let modifier = match attribute.as_str() {
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

/// A value roughly as it is written in the file.
fn shown(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => format!("{text:?}"),
        toml::Value::Table(table) => {
            let entries: Vec<String> =
                table.iter().map(|(key, value)| format!("{key} = {}", shown(value))).collect();
            format!("{{ {} }}", entries.join(", "))
        }
        toml::Value::Integer(number) => number.to_string(),
        toml::Value::Float(number) => number.to_string(),
        toml::Value::Boolean(truth) => truth.to_string(),
        toml::Value::Datetime(_) => "a date".into(),
        toml::Value::Array(_) => "a list".into(),
    }
}

fn read_color(value: &toml::Value) -> Option<Color> {
    Color::from_str(value.as_str()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::mark;

    #[test]
    fn every_bundled_theme_loads_whole() {
        for name in ThemeName::ALL {
            if let Err(error) = Theme::parse(name.source()) {
                panic!("{}: {error}", name.as_str());
            }
            assert_eq!(Theme::bundled(*name), &Theme::parse(name.source()).expect("just parsed"));
        }
    }

    /// Relative luminance of a colour that does not depend on the terminal.
    fn luminance(color: Color) -> f64 {
        let Color::Rgb(red, green, blue) = color else { panic!("{color} depends on the terminal") };
        mark::luminance((red, green, blue))
    }

    fn contrast(one: Color, other: Color) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    /// Minimum contrast of a role: highest for text, lower for marks, none for decoration such as borders.
    fn wanted_contrast(role: Role) -> f64 {
        match role {
            Role::Faint | Role::GaugeFill | Role::GaugeHigh => 3.0,
            Role::Border
            | Role::BorderFocus
            | Role::BorderEnforce
            | Role::BorderFocusEnforce
            | Role::GaugeRest => 1.0,
            _ => 4.5,
        }
    }

    #[test]
    fn text_can_be_read_on_its_background_also_in_a_tinted_and_in_the_selected_row() {
        // The colours of these depend on the terminal.
        let is_rgb = |name: &&ThemeName| !matches!(name, ThemeName::Ansi16 | ThemeName::Mono);
        for name in ThemeName::ALL.iter().filter(is_rgb) {
            let theme = Theme::bundled(*name);
            let base = theme.style(Role::Base);
            let is_row =
                |role: &&Role| role.as_str().starts_with("row.") || role.as_str().starts_with("selected");
            let rows = Role::ALL.iter().filter(is_row).filter_map(|role| theme.style(*role).bg);
            let rows: Vec<Color> = rows.chain(base.bg).collect();
            assert!(rows.len() > 5, "{rows:?}");
            for role in Role::ALL {
                let style = theme.style(*role);
                let Some(text) = style.fg.or(base.fg) else { panic!("{role:?} has no colour") };
                let wanted = wanted_contrast(*role);
                let behind = match style.bg {
                    Some(own) => vec![own],
                    None if wanted < 4.5 => base.bg.into_iter().collect(),
                    None => rows.clone(),
                };
                for behind in behind {
                    let found = contrast(text, behind);
                    assert!(found >= wanted, "{}: {role:?} on {behind}: {found:.2}", name.as_str());
                }
            }
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
