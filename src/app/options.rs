//! Modes that decide what the dashboard may write, and its themes.

use std::sync::Arc;

use ratatui::style::Style;

/// Whether the dashboard may write to the cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// No plan can be applied, so nothing is written to the cluster. Enforce mode can be enabled.
    #[default]
    DryRun,
    /// Plans can be applied, which writes to the cluster.
    Enforce,
    /// No plan can be applied, and enforce mode cannot be enabled.
    ReadOnly,
    /// A recording is shown, so there is no cluster to write to.
    Replay,
}

impl Mode {
    /// Note about what happens to an open plan in this mode.
    pub const fn note(self) -> &'static str {
        match self {
            Self::DryRun => "dry-run: Enter shows the plan, nothing is written",
            Self::Enforce => "Enter shows the plan, A applies it",
            Self::Replay => "replay: Enter shows the plan as of then, which cannot be applied",
            Self::ReadOnly => "read-only: Enter shows the plan, which cannot be applied in this session",
        }
    }
}

/// Declares the bundled themes. Each is `themes/NAME.toml`.
macro_rules! themes {
    ($($(#[$doc:meta])* $theme:ident = $name:literal),+ $(,)?) => {
        /// A bundled theme.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
        pub enum ThemeName { $($(#[$doc])* $theme),+ }

        impl ThemeName {
            pub const ALL: &[Self] = &[$(Self::$theme),+];

            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$theme => $name),+ }
            }

            /// The theme's file.
            pub const fn source(self) -> &'static str {
                match self { $(Self::$theme => include_str!(concat!("../../themes/", $name, ".toml"))),+ }
            }
        }
    };
}

themes! {
    #[default]
    Dark = "dark",
    Light = "light",
    CatppuccinMocha = "catppuccin-mocha",
    CatppuccinLatte = "catppuccin-latte",
    Dracula = "dracula",
    GruvboxDark = "gruvbox-dark",
    GruvboxLight = "gruvbox-light",
    Nord = "nord",
    RosePine = "rose-pine",
    SolarizedDark = "solarized-dark",
    SolarizedLight = "solarized-light",
    TokyoNight = "tokyo-night",
    /// A theme whose text has a contrast of at least 7:1.
    HighContrast = "high-contrast",
    /// A theme for people who cannot distinguish red from green.
    Deuteranopia = "deuteranopia",
    /// A theme for people who cannot distinguish blue from yellow.
    Tritanopia = "tritanopia",
    /// A theme that uses the terminal's own sixteen colours.
    Ansi16 = "ansi16",
    /// A theme that uses no colour: bold, dim and reverse only.
    Mono = "mono",
}

impl ThemeName {
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|theme| theme.as_str() == text)
    }

    /// Themes that suit a terminal. Without colour, only `Mono`. With fewer than 256 colours, `Ansi16` and `Mono`,
    /// because such a terminal would only approximate the other themes.
    pub fn for_terminal(no_color: bool, colours: u16) -> Vec<Self> {
        match (no_color, colours) {
            (true, _) => vec![Self::Mono],
            (false, 0..256) => vec![Self::Ansi16, Self::Mono],
            (false, 256..) => Self::ALL.to_vec(),
        }
    }
}

/// A theme that the user made.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnTheme {
    pub name: String,
    /// The bundled theme at the end of the chain of parent themes.
    pub root: ThemeName,
    /// Styles of all roles (`ui::Role`), in their order.
    pub styles: Vec<Style>,
}

/// A theme that can be chosen.
#[derive(Clone, Debug, PartialEq)]
pub enum ThemeChoice {
    Bundled(ThemeName),
    Own(Arc<OwnTheme>),
}

impl ThemeChoice {
    /// All bundled themes.
    pub fn bundled() -> Vec<Self> {
        ThemeName::ALL.iter().copied().map(Self::Bundled).collect()
    }

    pub fn name(&self) -> &str {
        match self {
            Self::Bundled(name) => name.as_str(),
            Self::Own(own) => &own.name,
        }
    }

    /// The bundled theme; for the user's own theme, the bundled theme at the end of its chain of parent themes.
    pub fn root(&self) -> ThemeName {
        match self {
            Self::Bundled(name) => *name,
            Self::Own(own) => own.root,
        }
    }
}

impl Default for ThemeChoice {
    fn default() -> Self {
        Self::Bundled(ThemeName::default())
    }
}

impl PartialEq<ThemeName> for ThemeChoice {
    fn eq(&self, other: &ThemeName) -> bool {
        matches!(self, Self::Bundled(name) if name == other)
    }
}
