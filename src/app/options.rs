//! What the dashboard starts with: what it may do, and how it looks.

/// What the dashboard starts with, beside a model.
#[derive(Clone, Debug, Default)]
pub struct AppOptions {
    pub mode: Mode,
    /// The themes that `T` goes through; the first one is shown at the start. Empty: the dark one.
    pub themes: Vec<ThemeName>,
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
    /// A recording is shown: there is nothing to write to.
    Replay,
}

impl Mode {
    /// What becomes of a plan that is opened.
    pub const fn note(self) -> &'static str {
        match self {
            Self::DryRun => "dry-run: Enter shows the plan, nothing is written",
            Self::Enforce => "Enter shows the plan, A applies it",
            Self::Replay => "replay: Enter shows the plan as of then, which cannot be applied",
            Self::ReadOnly => "read-only: Enter shows the plan, which cannot be applied in this session",
        }
    }
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
