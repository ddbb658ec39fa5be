//! Themes: the style of each role. Panes ask for roles and never for colours.

use std::{str::FromStr, sync::LazyLock};

use ratatui::style::{Color, Modifier, Style};

use crate::{app::ThemeName, model::StateRole};

/// Declares the roles with the names that theme files give them.
macro_rules! roles {
    ($($role:ident = $name:literal),+ $(,)?) => {
        /// Something on screen with its own style.
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
    /// The role of a node in a state.
    pub const fn of_state(role: StateRole) -> Self {
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
    /// The role of the row of a node in a state.
    pub const fn of_row(role: StateRole) -> Self {
        match role {
            StateRole::Critical => Self::RowCritical,
            StateRole::Warning => Self::RowWarning,
            StateRole::Notice => Self::RowNotice,
            StateRole::Maintenance => Self::RowMaintenance,
            StateRole::Ready => Self::RowReady,
        }
    }
}

/// The style of every role.
#[derive(Clone, Debug, PartialEq)]
pub struct Theme {
    styles: Vec<Style>,
}

/// What can be wrong with a theme.
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
    /// A theme that comes with the program.
    pub fn bundled(name: ThemeName) -> &'static Self {
        static THEMES: LazyLock<Vec<Theme>> = LazyLock::new(|| {
            let parse = |name| Theme::parse(source(name)).expect("a test loads every bundled theme");
            ThemeName::ALL.map(parse).into()
        });
        &THEMES[name as usize]
    }

    /// Reads a theme: roles in tables (`[node] ready = …`), each a colour or a table of attributes.
    ///
    /// # Errors
    /// The text is not a theme, or a role is missing.
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

/// The text of a bundled theme.
const fn source(name: ThemeName) -> &'static str {
    match name {
        ThemeName::Dark => include_str!("../../themes/dark.toml"),
        ThemeName::Light => include_str!("../../themes/light.toml"),
        ThemeName::Ansi16 => include_str!("../../themes/ansi16.toml"),
        ThemeName::Mono => include_str!("../../themes/mono.toml"),
    }
}

/// Reads one role, or the roles of a table of roles.
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

/// A value about as it is written in the file.
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

    #[test]
    fn every_bundled_theme_loads_whole() {
        for name in ThemeName::ALL {
            if let Err(error) = Theme::parse(source(name)) {
                panic!("{}: {error}", name.as_str());
            }
            assert_eq!(Theme::bundled(name), &Theme::parse(source(name)).expect("just parsed"));
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
