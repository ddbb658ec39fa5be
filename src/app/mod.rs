//! All that the screen depends on, and how it changes.
//!
//! The loop (`run`) feeds it: [`App::hear`] takes what the watches say, [`App::outcome`] what came of effects,
//! [`App::wake`] time, [`update()`] what the user asks for. Nothing in here waits, reads a clock or draws.

pub mod operations;
pub mod watchlist;
pub mod columns;
pub mod commands;
pub mod completion;
pub mod detail;
pub mod dialog;
pub mod options;
pub mod feeds;
pub mod filter;
pub mod snapshot_cache;
pub mod heartbeats;
pub mod journal;
pub mod listing;
pub mod order;
pub mod palette;
pub mod pane;
pub mod preview;
pub mod progress;
pub mod screen;
pub mod headroom;
pub mod update;
pub mod views;

use std::collections::{BTreeMap, VecDeque};

pub use columns::{EvictionColumn, NodeColumn, PodColumn, Sort, ZoneColumn};
pub use commands::{Command, UserAction};
pub use detail::{Detail, DetailSubject};
pub use feeds::Feeds;
pub use filter::Filter;
pub use headroom::{HeadroomJob, HeadroomSnapshot};
pub use heartbeats::Heartbeats;
pub use journal::{JournalEntry, SessionJournal};
pub use listing::{Listing, Movement};
pub use operations::Operations;
pub use options::{AppOptions, ConnectionInfo, ControllerRole, Mode, ThemeName};
pub use pane::Pane;
pub use preview::Preview;
pub use screen::Screen;
pub use snapshot_cache::SnapshotCache;
pub use update::{Reaction, update};
pub use views::{EvictionRow, EvictionState, Leadership, NextEvent, NextEventKind, Revision, Views};
pub use watchlist::{NodeWatchlist, ReadinessCounts};

use crate::{
    cluster::{Applied, Change, Cluster},
    engine::{Effect, EffectId, Engine, Outcome, Settings, WatchHealth},
    forecast::Forecast,
    k8s::feed::{FeedEvent, FeedHealth, FeedKind, FeedState},
    time::{Span, Timestamp},
    why::Explainer,
};

/// How far ahead forecasts look: an eviction under the default tolerations, and then some.
pub const HORIZON: Span = Span::from_secs(600);

/// The dashboard's state. One task owns it; panes get a reference.
#[derive(Debug)]
pub struct App {
    pub facts: ConnectionInfo,
    /// The controller's settings, with the origin of each.
    pub settings: Settings,
    pub mode: Mode,
    pub duty: ControllerRole,
    pub screen: Screen,
    pub acts: Operations,
    /// What is known now.
    pub live: Knowledge,
    /// What was known when the user froze the screen, and when that was.
    pub frozen: Option<(Timestamp, Box<Knowledge>)>,
    ground: SnapshotCache,
    sight: WatchHealth,
    begun: Timestamp,
    /// Effects that nobody has taken yet.
    outbox: VecDeque<Effect>,
    /// Effects that were taken and have no outcome yet.
    under_way: BTreeMap<EffectId, Effect>,
}

/// What the panes show: everything that comes from the cluster and the engine.
#[derive(Clone, Debug, Default)]
pub struct Knowledge {
    pub cluster: Cluster,
    /// None until nodes and leases have been listed.
    pub engine: Option<Engine>,
    pub feeds: Feeds,
    pub heartbeats: Heartbeats,
    pub journal: SessionJournal,
    pub forecast: Option<Forecast>,
    pub attention: NodeWatchlist,
    /// What the cluster could lose when that was last worked out.
    pub spare: Option<HeadroomSnapshot>,
    /// Counts changes of nodes that may show in their order ([`Revision::nodes`]).
    nodes_changed: u64,
    /// Counts changes of anything that plans are worked out over; signs of life are not among it.
    planned_over: u64,
    /// What the engine knew when it was last asked.
    pub views: Views,
}

impl Knowledge {
    /// What stories of nodes and pods are told from; none before the engine has begun.
    pub fn teller(&self, now: Timestamp) -> Option<Explainer<'_>> {
        let Self { cluster, engine, forecast, feeds, .. } = self;
        Some(Explainer {
            engine: engine.as_ref()?,
            cluster,
            forecast: forecast.as_ref(),
            ahead: feeds.ahead(),
            now,
        })
    }

    /// Grows with every change that may bear on where pods can be; none until nodes and pods have been listed.
    pub fn layout(&self) -> Option<u64> {
        (self.cluster.nodes().is_synced() && self.cluster.pods().is_synced()).then_some(self.planned_over)
    }

    /// Takes in what a change did to the cluster.
    fn note(&mut self, applied: &Applied) {
        self.attention.note(applied);
        match applied {
            Applied::Lease(delta) => self.heartbeats.note(delta),
            Applied::Node(delta) => {
                let unchanged = matches!((&delta.old, &delta.new), (Some(old), Some(new)) if old.differs_only_in_heartbeat(new));
                self.nodes_changed += u64::from(!unchanged);
                self.planned_over += u64::from(!unchanged);
            }
            Applied::Pod(_) | Applied::Other => self.planned_over += 1,
            Applied::Leader(..) => {}
        }
    }
}

impl App {
    pub fn new(options: AppOptions, now: Timestamp) -> Self {
        let AppOptions { facts, settings, mode, duty, themes } = options;
        Self {
            facts,
            settings,
            mode,
            duty,
            screen: Screen::new(themes),
            acts: Operations::default(),
            live: Knowledge::default(),
            frozen: None,
            ground: SnapshotCache::default(),
            sight: WatchHealth::Live,
            begun: now,
            outbox: VecDeque::new(),
            under_way: BTreeMap::new(),
        }
    }

    /// What is to be drawn: the present, or the moment at which the user froze it.
    pub fn shown(&self) -> &Knowledge {
        self.frozen.as_ref().map_or(&self.live, |(_, knowledge)| knowledge)
    }

    /// The time that belongs to what is drawn.
    pub fn shown_at(&self, now: Timestamp) -> Timestamp {
        self.frozen.as_ref().map_or(now, |(at, _)| *at)
    }

    /// Takes in what the watches say.
    pub fn hear(&mut self, event: FeedEvent, now: Timestamp) {
        match event {
            FeedEvent::Changes(changes) => self.on_changes(changes, now),
            FeedEvent::Health(kind, health) => self.on_health(kind, health, now),
            FeedEvent::ClockDifference(difference) => self.live.feeds.clock_difference = Some(difference),
            FeedEvent::Trouble(text) => self.on_trouble(&text, now),
        }
        self.begin_when_ready(now);
    }

    /// Takes in what came of an effect.
    pub fn outcome(&mut self, id: EffectId, outcome: Outcome, now: Timestamp) {
        if let Some(effect) = self.under_way.remove(&id) {
            self.live.journal.outcome(&effect, &outcome, now);
        }
        if let Some(engine) = &mut self.live.engine {
            engine.handle_outcome(&self.live.cluster, id, outcome, now);
        }
        self.drain();
    }

    /// Does what is due; tells whether anything came of it.
    pub fn wake(&mut self, now: Timestamp) -> bool {
        if let Some(engine) = &mut self.live.engine {
            engine.handle_timeout(&self.live.cluster, now);
        }
        let acted = self.wake_acts(now);
        self.drain() || acted
    }

    /// When [`App::wake`] must be called next.
    pub fn wakes_at(&self) -> Option<Timestamp> {
        let engine = self.live.engine.as_ref().and_then(Engine::poll_timeout).map(|deadline| deadline.at);
        engine.into_iter().chain(self.acts.wakes_at()).min()
    }

    /// The next effect to be carried out; its outcome is to come back through [`App::outcome`].
    pub fn next_effect(&mut self) -> Option<Effect> {
        let effect = self.outbox.pop_front()?;
        self.under_way.insert(effect.id, effect.clone());
        Some(effect)
    }

    pub fn has_effects(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Asks the engine anew what it knows, and puts the lists in order by it.
    pub fn refresh(&mut self, now: Timestamp) {
        self.live.refresh(now);
        self.screen.forget_marks_of_the_gone(&self.live.cluster);
        self.report_acts();
        if self.frozen.is_none() {
            self.arrange(now);
        }
    }

    /// What is kept for plans, where no plan is open any more, or it is too far behind. It is large: letting it go takes a while.
    pub fn outworn_ground(&mut self) -> Option<SnapshotCache> {
        let unneeded = self.screen.preview.is_none() && self.ground.is_kept();
        (unneeded || self.ground.is_outworn()).then(|| std::mem::take(&mut self.ground))
    }

    /// Whether anything on screen changes by time alone.
    pub fn counts_down(&self) -> bool {
        self.frozen.is_none() && (!self.live.cluster.nodes().is_empty() || !self.live.feeds.is_empty())
    }

    fn on_changes(&mut self, changes: Vec<Change>, now: Timestamp) {
        self.acts.cluster_changed();
        let mut applied = Vec::new();
        for change in changes {
            self.live.cluster.apply(change, &mut applied);
            for applied in applied.drain(..) {
                self.live.note(&applied);
                self.ground.note(&applied);
                if let Some(engine) = &mut self.live.engine {
                    engine.handle_change(&self.live.cluster, &applied, now);
                }
            }
        }
        self.drain();
    }

    fn on_health(&mut self, kind: FeedKind, health: FeedHealth, now: Timestamp) {
        self.live.feeds.set(kind, health);
        self.judge_sight(now);
    }

    /// Watches begin their troubles with their kind; as the subject of the entry it lets all of them fold into one
    /// when the link that they share breaks.
    fn on_trouble(&mut self, text: &str, now: Timestamp) {
        let of =
            |kind: FeedKind| Some((kind, text.strip_prefix(kind.to_string().as_str())?.strip_prefix(": ")?));
        match FeedKind::ALL.into_iter().find_map(of) {
            Some((kind, text)) => self.live.journal.trouble(now, &format!("watch/{kind}"), text),
            None => self.live.journal.trouble(now, "", text),
        }
    }

    /// Tells the engine when sight is lost or regained.
    fn judge_sight(&mut self, now: Timestamp) {
        let sight = self.live.feeds.sight(self.sight, self.begun);
        if sight == self.sight {
            return;
        }
        self.sight = sight;
        if let Some(engine) = &mut self.live.engine {
            engine.handle_watch_health(&self.live.cluster, sight, now);
            self.drain();
        }
    }

    /// Begins the engine once nodes and leases are in (or leases may not be read), and it is known who leads.
    fn begin_when_ready(&mut self, now: Timestamp) {
        let feeds = &self.live.feeds;
        let nodes = self.live.cluster.nodes().is_synced();
        let leases = self.live.cluster.leases().is_synced()
            || matches!(feeds.state(FeedKind::Leases), Some(FeedState::Forbidden { .. } | FeedState::Off));
        let leader = self.live.cluster.leader().is_some() || feeds.has_answered(FeedKind::Leader);
        if self.live.engine.is_some() || !(nodes && leases) {
            return;
        }
        let settings = self.settings.clone();
        let mut engine = match self.duty {
            ControllerRole::Shadow if leader => {
                Engine::attach(settings, &self.live.cluster, feeds.ahead(), now)
            }
            ControllerRole::Shadow => return,
            ControllerRole::Controller => {
                Engine::start(settings.as_controller(), &self.live.cluster, now, now)
            }
        };
        if self.sight != WatchHealth::Live {
            engine.handle_watch_health(&self.live.cluster, self.sight, now);
        }
        self.live.engine = Some(engine);
        self.drain();
        self.refresh(now);
    }

    /// Takes everything that the engine has to say; tells whether that was anything.
    fn drain(&mut self) -> bool {
        let Some(engine) = &mut self.live.engine else { return false };
        let mut any = false;
        while let Some(notice) = engine.poll_notice() {
            self.live.journal.notice(notice);
            any = true;
        }
        while let Some(effect) = engine.poll_effect() {
            self.outbox.push_back(effect);
            any = true;
        }
        any
    }
}
