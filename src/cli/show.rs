//! Shows the dashboard on the terminal, or writes one frame of it to a file.

use std::{io::IsTerminal, path::PathBuf};

use clap::Args;
use crossterm::event::KeyEvent;
use tokio_util::sync::CancellationToken;

use super::{
    config::ConfigInForce,
    exit::CliError,
    glyphs::glyphs,
    keys, span,
    themes::{self, AUTO, OwnThemes, ThemeNameParser},
    tour_state,
};
use crate::{
    app::{AppOptions, Glyphs, Mode, Preferences, ThemeChoice, ThemeName},
    executor::{effects::EffectExecutor, write_context::WriteContext},
    journal::JournalError,
    k8s::{connect::Connection, feed::FeedKind},
    model::{ConnectionInfo, ControllerRole, Model, ModelOptions},
    recording::RingLimits,
    run::{
        self, Dashboard, RunningWatches, Session, VirtualTyping,
        history::{self, History, HistoryOptions},
        record::recording_start,
    },
    ui::{snapshot, theme::Theme},
};
use kordon_clock::Clock;
use kordon_core::engine::Settings;
use kordon_time::{Span, Timestamp};

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Dashboard")]
pub struct ShowArgs {
    /// Do not read pods: far less load on the API server, but no evictions
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
        hide_default_value = true, hide_possible_values = true, action = clap::ArgAction::Set)]
    no_pods: bool,
    /// Disable `:enforce` until the program ends
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
        hide_default_value = true, hide_possible_values = true, action = clap::ArgAction::Set)]
    read_only: bool,
    /// Explain the screen in six steps at the first start on this machine; `:tour` does it again
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true",
        hide_possible_values = true, action = clap::ArgAction::Set)]
    tour: bool,
    #[command(flatten)]
    history: HistoryArgs,
    #[command(flatten)]
    look: LookArgs,
    /// Preferences that the configuration has for the context.
    #[arg(skip)]
    preferences: Box<Preferences>,
    /// The configuration. When its file changes, the preferences for the context are read again.
    #[arg(skip)]
    config: ConfigInForce,
    #[arg(skip)]
    context: String,
}

/// Length and size of the session's history.
#[derive(Args, Clone, Copy, Debug, PartialEq, Eq)]
#[command(next_help_heading = "Dashboard")]
pub struct HistoryArgs {
    /// How far back a frozen screen can go, up to 24h; 0 keeps nothing
    #[arg(long, value_name = "DURATION", default_value = "2h", value_parser = history)]
    history: Span,
    /// Maximum size of the history on disk
    #[arg(long, value_name = "SIZE", default_value = "512MiB", value_parser = history_size)]
    history_size: u64,
}

/// Default values of the flags for the session's history.
impl Default for HistoryArgs {
    fn default() -> Self {
        Self { history: Span::from_secs(2 * 3600), history_size: 512 << 20 }
    }
}

/// How the dashboard looks, and the options for writing one frame of it to a file.
#[derive(Args, Clone, Debug, Default, PartialEq)]
#[command(next_help_heading = "Dashboard")]
pub struct LookArgs {
    /// Theme to start with: auto is dark or light, like the terminal's background; NAME is also a theme of
    /// ~/.config/kordon/themes
    #[arg(long, value_name = "NAME", value_parser = ThemeNameParser)]
    theme: Option<String>,
    /// Whether the terminal's background is light; false if the terminal was not asked for its background.
    #[arg(skip)]
    is_light: bool,
    /// Whether the theme was given on the command line.
    #[arg(skip)]
    is_theme_given: bool,
    /// Leave the mouse to the terminal, for its own selection (with the mouse on, most terminals select with Shift)
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
        hide_default_value = true, hide_possible_values = true, action = clap::ArgAction::Set)]
    no_mouse: bool,
    /// Draw with characters of ASCII only; by default where the locale is not UTF-8
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
        hide_possible_values = true)]
    ascii: Option<bool>,
    /// Write one frame of the dashboard to this file (.svg, .txt or .ansi) and exit
    #[arg(long, value_name = "FILE", value_parser = frame_file)]
    snapshot: Option<PathBuf>,
    /// Size of the frame
    #[arg(long, value_name = "COLUMNSxROWS", default_value = "160x48", value_parser = size, requires = "snapshot")]
    size: Size,
    /// When to take the frame, counted from the start
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = span::span, requires = "snapshot")]
    after: Span,
    /// Keys to type before the frame is taken, as in `jj<Enter>`
    #[arg(long, value_name = "KEYS", value_parser = typed, requires = "snapshot")]
    keys: Option<Typed>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Size {
    columns: u16,
    rows: u16,
}

#[derive(Clone, Debug, PartialEq)]
struct Typed(Vec<KeyEvent>);

/// Minimum size of the history in bytes. Less would not hold anything useful.
const LEAST_HISTORY: u64 = 1 << 20;

/// Time between the first typed key and the frame.
const TYPING_LEAD: Span = Span::from_millis(1500);
/// Interval between typed keys, long enough to draw each of them.
const KEY_INTERVAL: Span = Span::from_millis(20);

impl ShowArgs {
    /// Returns the same arguments, but with writes forbidden.
    pub fn read_only(self) -> Self {
        Self { read_only: true, ..self }
    }

    /// Returns the same arguments, but without the tour.
    pub fn without_tour(self) -> Self {
        Self { tour: false, ..self }
    }

    /// Returns the same arguments with the preferences for a context. A theme on the command line overrides the
    /// preferred one.
    pub fn with_preferences(mut self, config: &ConfigInForce, context: &str) -> Self {
        let preferences = config.current().preferences_at_opening(context);
        self.look.prefer(&preferences);
        Self { preferences: Box::new(preferences), config: config.clone(), context: context.into(), ..self }
    }

    /// Records that the theme was given on the command line.
    pub const fn set_theme_given(&mut self) {
        self.look.is_theme_given = true;
    }

    /// Asks the terminal for its background, if the theme depends on it.
    pub fn ask_background(&mut self) {
        self.look.ask_background();
    }

    /// Whether one frame is written to a file, and nothing is shown.
    pub const fn is_snapshot(&self) -> bool {
        self.look.snapshot.is_some()
    }

    /// Starts the watches that the dashboard shows.
    pub fn watch(&self, connection: &Connection, clock: Clock) -> RunningWatches {
        RunningWatches::start(&FeedKind::ALL, connection, self.no_pods, clock, CancellationToken::new())
    }
}

/// Creates the dashboard of a cluster.
///
/// # Errors
/// The file of the requested theme is invalid.
pub fn dashboard(
    args: ShowArgs,
    connection: &Connection,
    watches: RunningWatches,
    settings: Settings,
    notes: Vec<(&'static str, String)>,
    clock: Clock,
    context: Result<WriteContext, JournalError>,
) -> Result<Dashboard, CliError> {
    let ShowArgs { no_pods: _, read_only, tour: _, history, look, preferences, config, context: name } = args;
    let (themes, bad_themes) = look.themes()?;
    let options =
        ModelOptions { connection: connection_info(connection), settings, role: ControllerRole::Shadow };
    let mut session = Session::over(watches, connection, options, EffectExecutor::Recorder, clock);
    let notes = notes.into_iter().chain(bad_themes.into_iter().map(|text| ("theme", text)));
    for (source, text) in notes {
        session.model.journal.trouble(clock.now(), source, &text);
    }
    let (context, locked) = match context {
        Ok(context) => (Some(context), None),
        Err(error) => (None, Some(error.to_string())),
    };
    let mode = if read_only { Mode::ReadOnly } else { Mode::DryRun };
    let history = history.start(&session.model, clock.now());
    let mut dashboard =
        Dashboard::over(session, AppOptions { mode, themes, preferences: *preferences }, context)
            .keeping(history);
    dashboard.app.operations.locked = locked;
    dashboard.notify = config.current().notify(&name);
    dashboard.preferences = config.followed(&name);
    dashboard.app.screen.glyphs = look.glyphs();
    Ok(dashboard)
}

/// Shows a dashboard until the user quits, or writes one frame.
pub async fn show(args: ShowArgs, mut dashboard: Dashboard) -> Result<(), CliError> {
    let look = args.look;
    let Some(file) = look.snapshot.clone() else {
        if args.tour && std::io::stdout().is_terminal() && tour_state::is_first_start() {
            dashboard.app.screen.start_tour();
        }
        return Ok(run::terminal(dashboard, look.takes_mouse()).await?);
    };
    let (start, theme) = (dashboard.clock.now(), Theme::chosen(dashboard.app.screen.theme()));
    let keys = look.typed().into_iter().map(|(after, key)| (start + after, key)).collect();
    let frame = run::headless(dashboard, look.size.cells(), start + look.after, keys).await?;
    Ok(snapshot::write(&file, &frame, &theme)?)
}

/// Shows a recording until the user quits, or writes one frame. For a frame, the viewer's time is virtual, so nothing
/// waits.
pub async fn show_replay(look: LookArgs, mut dashboard: Dashboard) -> Result<(), CliError> {
    dashboard.app.screen.glyphs = look.glyphs();
    let Some(file) = look.snapshot.clone() else {
        return Ok(run::terminal(dashboard, look.takes_mouse()).await?);
    };
    let theme = Theme::chosen(dashboard.app.screen.theme());
    let typing = VirtualTyping { keys: look.typed(), until: look.after };
    let frame = run::replay_frame(dashboard, look.size.cells(), typing).await?;
    Ok(snapshot::write(&file, &frame, &theme)?)
}

impl HistoryArgs {
    /// Starts the history of a session.
    ///
    /// # Errors
    /// The history is switched off or cannot be kept; the text says why.
    fn start(self, model: &Model, now: Timestamp) -> Result<History, String> {
        if self.history == Span::ZERO {
            return Err("switched off by --history 0".into());
        }
        let limits = RingLimits { span: self.history, size: self.history_size };
        let every = history::keyframe_interval(limits.span);
        let start = recording_start(&model.settings, &model.connection, every, now);
        let options = HistoryOptions { folder: history::folder(), limits, start };
        History::start(options).map_err(|error| error.to_string())
    }
}

impl LookArgs {
    /// Starts with the theme of the preferences, unless one was given on the command line.
    pub fn prefer(&mut self, preferences: &Preferences) {
        if !self.is_theme_given && preferences.theme.is_some() {
            self.theme.clone_from(&preferences.theme);
        }
    }

    /// Whether the terminal is told to report the mouse. Within GNU Screen, which sets `STY`, it is not: while Screen
    /// 4.09 reports the mouse, it holds Esc back until the next key.
    fn takes_mouse(&self) -> bool {
        !self.no_mouse && std::env::var_os("STY").is_none()
    }

    /// Asks the terminal for its background, if the theme depends on it. This takes half a second at most, if the
    /// terminal does not answer.
    pub fn ask_background(&mut self) {
        self.is_light =
            self.wished().is_none() && self.snapshot.is_none() && has_all_colours() && themes::is_light();
    }

    /// Name of the theme that the user chose; `None` if the terminal's background decides.
    fn wished(&self) -> Option<&str> {
        self.theme.as_deref().filter(|name| *name != AUTO)
    }

    /// Themes that suit the terminal, starting with the requested one, and notes about files that are no themes. A
    /// frame that is written to a file can use all colours.
    ///
    /// # Errors
    /// The requested theme is one of the user's, and its file is invalid.
    pub fn themes(&self) -> Result<(Vec<ThemeChoice>, Vec<String>), CliError> {
        let colours = if self.snapshot.is_some() { u16::MAX } else { terminal_colours() };
        let suitable = ThemeName::for_terminal(is_colourless(), colours);
        let has_own = suitable.len() == ThemeName::ALL.len();
        let mut themes: Vec<ThemeChoice> = suitable.into_iter().map(ThemeChoice::Bundled).collect();
        // NO_COLOR overrides the theme of the command line and of the configuration.
        if is_colourless() {
            return Ok((themes, Vec::new()));
        }
        let mut notes = Vec::new();
        let own = OwnThemes::find();
        for name in own.names() {
            let is_wished = self.wished() == Some(&*name);
            match own.read(&name) {
                Ok(theme) if has_own || is_wished => {
                    themes.retain(|other| other.name() != name);
                    themes.push(theme);
                }
                Ok(_) => {}
                Err(error) if is_wished => return Err(error.into()),
                Err(error) => notes.push(error.to_string()),
            }
        }
        let first = self.wished().or(self.is_light.then_some(ThemeName::Light.as_str()));
        if let Some(first) = first {
            let suits =
                themes.iter().position(|theme| theme.name() == first).map(|place| themes.remove(place));
            let first = suits.or_else(|| ThemeName::parse(first).map(ThemeChoice::Bundled));
            themes.splice(0..0, first);
        }
        Ok((themes, notes))
    }

    /// Glyphs for the screen. For a frame that is written to a file, the capabilities of the terminal do not matter.
    fn glyphs(&self) -> Glyphs {
        glyphs(self.ascii, self.snapshot.is_none())
    }

    /// Typed keys, each with its time from the start.
    fn typed(&self) -> Vec<(Span, KeyEvent)> {
        let keys = self.keys.clone().map_or_else(Vec::new, |Typed(keys)| keys);
        let first = (self.after - TYPING_LEAD).or_zero();
        std::iter::successors(Some(first), |at| Some(*at + KEY_INTERVAL)).zip(keys).collect()
    }
}

impl Size {
    const fn cells(self) -> (u16, u16) {
        (self.columns, self.rows)
    }
}

/// The cluster and the user of a connection.
pub fn connection_info(connection: &Connection) -> ConnectionInfo {
    ConnectionInfo {
        context: connection.context.clone(),
        server: connection.server.clone(),
        identity: Some(connection.identity.to_string()).filter(|user| !user.is_empty()),
        server_version: Some(connection.release.clone()),
        objects_at: connection.objects_at,
    }
}

/// Parses the length of the history, or 0 for none.
fn history(text: &str) -> Result<Span, String> {
    if text == "0" {
        return Ok(Span::ZERO);
    }
    let kept = span::span(text)?;
    let is_sensible = kept == Span::ZERO || (Span::from_secs(60)..=Span::from_secs(86_400)).contains(&kept);
    if is_sensible { Ok(kept) } else { Err("must be 0, or between 1m and 24h".into()) }
}

/// Parses a size in bytes in the notation of Kubernetes quantities: `512MiB`, `2G`.
fn history_size(text: &str) -> Result<u64, String> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = match unit.trim().trim_end_matches('B') {
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        "k" => 1000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "" => 1,
        _ => 0,
    };
    let size = number.parse().ok().and_then(|number: u64| number.checked_mul(unit));
    let size = size.filter(|size| *size >= LEAST_HISTORY);
    size.ok_or_else(|| "not a size of 1MiB or more, such as 512MiB or 2GiB".into())
}

/// Whether `NO_COLOR` is set in the environment, so that no colours are used.
fn is_colourless() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

fn terminal_colours() -> u16 {
    crossterm::style::available_color_count()
}

/// Whether every bundled theme suits the terminal.
fn has_all_colours() -> bool {
    ThemeName::for_terminal(is_colourless(), terminal_colours()).len() == ThemeName::ALL.len()
}

fn size(text: &str) -> Result<Size, String> {
    let parse = || {
        let (columns, rows) = text.split_once('x')?;
        Some(Size { columns: columns.parse().ok()?, rows: rows.parse().ok()? })
    };
    let fits = |size: &Size| (1..=1000).contains(&size.columns) && (1..=1000).contains(&size.rows);
    parse().filter(fits).ok_or_else(|| "not a size such as 160x48, at most 1000x1000".into())
}

/// Checks the extension of the frame's file, which selects its format. An error is therefore found before `--after`
/// waits.
fn frame_file(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let known = path
        .extension()
        .is_some_and(|extension| ["svg", "txt", "ansi"].iter().any(|known| extension == *known));
    if known { Ok(path) } else { Err("the extension must be .svg, .txt or .ansi".into()) }
}

fn typed(text: &str) -> Result<Typed, String> {
    keys::keys(text).map(Typed)
}
