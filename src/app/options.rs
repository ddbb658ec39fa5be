//! What does not change while the dashboard runs: where it is connected, as whom, and what it may do.

use crate::engine::Settings;

/// What the dashboard begins with.
#[derive(Clone, Debug)]
pub struct AppOptions {
    pub facts: ConnectionInfo,
    /// The controller's settings, with the origin of each.
    pub settings: Settings,
    pub mode: Mode,
    pub duty: ControllerRole,
    /// The themes that `T` goes through; the first one is shown at the start. Empty: the dark one.
    pub themes: Vec<ThemeName>,
}

/// Where we are connected, and as whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectionInfo {
    /// The kubeconfig context, or `demo`.
    pub context: String,
    /// The API server's address.
    pub server: String,
    /// The user as the server names it; none where it does not tell.
    pub identity: Option<String>,
    /// As the server tells it, for example `v1.36.3`; none before it has told.
    pub server_version: Option<String>,
}

/// Whether anything may be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Effects are recorded, nothing goes up.
    #[default]
    DryRun,
    /// Effects are written to the cluster.
    Enforce,
    /// Enforcing is locked out.
    ReadOnly,
}

/// Whose decisions the engine's are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ControllerRole {
    /// It predicts what the cluster's own controller does.
    #[default]
    Shadow,
    /// kordon is the controller.
    Controller,
}

/// A bundled theme.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ThemeName {
    #[default]
    Dark,
    Light,
    /// The terminal's own sixteen colours.
    Ansi16,
    /// No colour at all: bold, dim, reverse.
    Mono,
}

impl ThemeName {
    pub const ALL: [Self; 4] = [Self::Dark, Self::Light, Self::Ansi16, Self::Mono];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Dark => "dark",
            Self::Light => "light",
            Self::Ansi16 => "ansi16",
            Self::Mono => "mono",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|theme| theme.as_str() == text)
    }

    /// The themes fit for a terminal: none but mono where colour is unwanted, no fine shades where it has
    /// only 16 colours. With fewer than 256 colours the true colours of dark and light would be guessed at.
    pub fn for_terminal(no_color: bool, colours: u16) -> Vec<Self> {
        match (no_color, colours) {
            (true, _) => vec![Self::Mono],
            (false, 0..256) => vec![Self::Ansi16, Self::Mono],
            (false, 256..) => Self::ALL.to_vec(),
        }
    }
}
