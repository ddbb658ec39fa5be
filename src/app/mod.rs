//! State of the dashboard and its changes: an [`App`] is a [`Model`], a screen, and the operations started from it.
//!
//! The loop (`run`) passes in events: [`App::on_watch_event`], [`Model::on_outcome`], [`App::on_timeout`], and
//! [`update()`] for actions of the user. Nothing in this module waits, reads a clock or draws.

pub mod aliases;
mod arguments;
pub mod chord;
pub mod chosen_columns;
pub mod columns;
pub mod commands;
pub mod completion;
mod contexts;
mod copying;
pub mod daily_window;
pub mod detail;
pub mod dialog;
pub mod event_list;
pub mod filter;
mod filter_conditions;
pub mod filter_fields;
pub mod filter_words;
pub mod filterable_rows;
mod forecast_lanes;
mod going_back;
pub mod groups;
pub mod help;
mod history_view;
mod key_input;
mod key_prefix;
pub mod key_presets;
pub mod keymap;
pub mod listing;
mod maintaining;
pub mod maintenance;
mod mouse;
pub mod near_miss;
pub mod notice_log;
mod offers;
mod on_preferences;
mod on_screen;
pub mod opening;
pub mod operations;
pub mod options;
pub mod order;
pub mod overlays;
pub mod palette;
mod pasting;
pub mod pane;
pub mod pane_layout;
mod places;
mod planning;
pub mod playback;
pub mod preferences;
pub mod preview;
pub mod progress;
pub mod reaction;
mod resizing;
pub mod rights;
pub mod screen;
pub mod screen_part;
pub mod snapshot_cache;
pub mod sorting;
mod subject;
mod targets;
mod theme_chooser;
pub mod timing;
pub mod tour;
mod typed_commands;
mod typed_span;
pub mod update;

pub use aliases::Aliases;
pub use chosen_columns::{ChosenColumn, PaneColumns};
pub use columns::{
    AuditColumn, BudgetColumn, DepartureColumn, EventColumn, EvictionColumn, NodeColumn, PendingColumn,
    PodColumn, Sort, SortColumn, SortDirection, ZoneColumn,
};
pub use commands::{Command, UserAction};
pub use contexts::{Elsewhere, ScreenMemory};
pub use copying::{MOST_COPIED, TakenAlong};
pub use detail::{Detail, DetailSubject};
pub use filter::Filter;
pub use history_view::HistoryState;
pub use keymap::Keymap;
pub use listing::{Listing, Movement};
pub use operations::Operations;
pub use options::{Mode, OwnTheme, ThemeChoice, ThemeName};
pub use pane::Pane;
pub use pane_layout::PaneLayout;
pub use playback::{Playback, PlaybackKind};
pub use preferences::{AppOptions, Preferences};
pub use preview::Preview;
pub use reaction::{Reaction, WatchReaction};
pub use rights::Rights;
pub use screen::{Glyphs, Screen};
pub use snapshot_cache::SnapshotCache;
pub use theme_chooser::ThemeChooser;
pub use update::update;

use std::path::PathBuf;

use crate::{k8s::feed::FeedEvent, model::Model};
use kordon_time::Timestamp;
use on_screen::Recorded;

/// State of the dashboard. One task owns it; panes get a reference.
#[derive(Debug)]
pub struct App {
    /// The present state of the cluster.
    pub model: Model,
    pub screen: Screen,
    /// Preferences of the configuration for this context. `operations` decides what may be written.
    pub preferences: Preferences,
    pub operations: Operations,
    /// Rights of the user in this context, as far as the server has answered.
    pub rights: Rights,
    /// Playback that is shown instead of the present; `None` unless a recording or the history is shown.
    pub playback: Option<Playback>,
    /// State of the session's history.
    pub history: HistoryState,
    /// Contexts of the kubeconfig; empty if there are no others to go to.
    pub contexts: Vec<String>,
    /// The context that the user wants to see.
    pub wanted_context: Option<String>,
    /// Contexts that are not shown, each with the number of operations that run in it.
    pub elsewhere: Vec<Elsewhere>,
    /// Request to copy or save something that is only known when the screen is drawn.
    pub taken_along: Option<TakenAlong>,
    /// File to save the history to.
    pub save_to: Option<PathBuf>,
    /// Whether a test notice is to be sent.
    pub test_notice: bool,
    /// Message about what was written into the configuration, until the file is read again.
    pub kept: Option<String>,
}

impl App {
    pub fn new(model: Model, options: AppOptions) -> Self {
        let AppOptions { mode, themes, preferences } = options;
        let mut screen = Screen::new(themes);
        screen.layout = preferences.layout.clone();
        Self {
            model,
            screen,
            operations: Operations::new(mode, preferences.read_only.clone()),
            preferences,
            rights: Rights::default(),
            playback: None,
            history: HistoryState::None,
            contexts: Vec::new(),
            wanted_context: None,
            elsewhere: Vec::new(),
            taken_along: None,
            save_to: None,
            test_notice: false,
            kept: None,
        }
    }

    pub const fn is_frozen(&self) -> bool {
        self.screen.frozen.is_some()
    }

    /// The model that is drawn: the present one, or the frozen one.
    pub fn shown(&self) -> &Model {
        self.screen.frozen.as_ref().map_or(&self.model, |frozen| &frozen.model)
    }

    /// Time of the model that is drawn.
    pub fn shown_at(&self, now: Timestamp) -> Timestamp {
        let frozen = self.screen.frozen.as_ref().map(|frozen| frozen.at);
        frozen.unwrap_or_else(|| self.model_time(now))
    }

    /// Applies a watch event. Returns what it means for the screen.
    pub fn on_watch_event(&mut self, event: FeedEvent, now: Timestamp) -> WatchReaction {
        let had_engine = self.model.engine.is_some();
        let says_more = on_screen::says_more_of_watches(&event, &self.model.feeds);
        let ends_list = on_screen::ends_awaited_list(&event, &self.model.feeds);
        let has_news = says_more || matches!(event, FeedEvent::Changes(_));
        let recorded = Recorded::from_model(&self.model);
        let changes = self.model.on_watch_event(event, now);
        if !changes.is_empty() {
            self.operations.on_cluster_changed();
            self.screen.plan_snapshot.on_changes(&changes);
        }
        let has_started = !had_engine && self.model.engine.is_some();
        if has_started {
            self.refresh(now);
        }
        let shows = |change| self.screen.shows(change, &self.model);
        let shows_records = || self.screen.shows_records_since(&recorded, &self.model);
        let is_shown =
            !self.is_frozen() && (says_more || has_started || shows_records() || changes.iter().any(shows));
        WatchReaction { has_news, is_shown, ends_list, has_started }
    }

    /// Handles all timeouts that are due. Returns whether the screen may have changed.
    pub fn on_timeout(&mut self, now: Timestamp) -> bool {
        let known = self.model.pass_time(now);
        self.on_operations_timeout(now) || known
    }

    /// When [`App::on_timeout`] must be called next.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        self.model.poll_timeout().into_iter().chain(self.operations.poll_timeout()).min()
    }

    /// Updates views, reports and lists. Returns whether the screen may have changed, apart from the times that it
    /// shows.
    pub fn refresh(&mut self, now: Timestamp) -> bool {
        self.refresh_by(Model::refresh, now)
    }

    /// Like [`App::refresh`], but does not update the leaving pods, because a background job computes them.
    pub fn refresh_nodes(&mut self, now: Timestamp) -> bool {
        self.refresh_by(Model::refresh_nodes, now)
    }

    fn refresh_by(&mut self, refresh: fn(&mut Model, Timestamp), now: Timestamp) -> bool {
        let before = self.model.views.revision;
        refresh(&mut self.model, now);
        self.screen.drop_stale_marks(&self.model.cluster);
        self.refresh_operations(now);
        if self.is_frozen() {
            return false;
        }
        let is_arranged_again = self.arrange(now);
        // Overlays and operations also show data from outside the views. This data may have changed although the views
        // have not.
        let has_more = self.screen.overlays.iter().next().is_some() || !self.operations.entries.is_empty();
        is_arranged_again || has_more || self.model.views.revision != before
    }

    /// Removes the snapshot kept for plans if no plan is open or if the snapshot is too far behind. Returns the
    /// snapshot, so that the caller drops it in the background, because that takes a while.
    pub fn take_unneeded_snapshot(&mut self) -> Option<SnapshotCache> {
        let is_open = self.screen.overlays.plan().is_some();
        let kept = &mut self.screen.plan_snapshot;
        let is_unneeded = kept.is_outdated() || (kept.is_kept() && !is_open);
        is_unneeded.then(|| std::mem::take(kept))
    }

    /// Whether the screen changes with time alone. A frozen screen does so only while it shows the history, because the
    /// header then shows the age of the shown moment.
    pub fn counts_down(&self) -> bool {
        self.is_in_history()
            || self.playback.is_none()
                && !self.is_frozen()
                && (!self.model.cluster.nodes().is_empty() || !self.model.feeds.is_empty())
    }
}
