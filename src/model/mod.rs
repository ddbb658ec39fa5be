//! The model: what is known of one cluster, and how changes update it. It has no screen. The dashboard, one-shot
//! commands, the controller, the driver of an operation and the demo's scheduler each hold a [`Model`].

pub mod audit;
pub mod budget_list;
pub mod cluster_verdict;
pub mod departures;
pub mod effects;
pub mod eviction;
pub mod eviction_outcomes;
pub mod feeds;
mod handover;
pub mod headroom;
pub mod held_evictions;
pub mod horizon;
mod idle_workloads;
pub mod impact;
pub mod session_journal;
pub mod leaving;
pub mod loops;
mod maintenance_progress;
pub mod moments;
pub mod node_state;
pub mod notices;
mod outcomes_job;
pub mod pending_pods;
mod predictions;
pub mod pressure;
mod revisions;
pub mod suggestions;
pub mod timeline;
pub mod upgrades;
pub mod views;
pub mod watchlist;
pub mod zone_names;
pub mod zone_reason;

use std::sync::Arc;

pub use audit::{
    AuditGroup, AuditJob, AuditWork, AuditedNode, DrainAudit, Finding, FindingKind, FindingSeverity,
    FindingSubject, Fix, KnownAudit,
};
pub use budget_list::{BudgetList, BudgetListJob, BudgetRoom, BudgetRow, DrainUnderBudget};
pub use cluster_verdict::{ClusterVerdict, VerdictLevel};
pub use departures::{DepartureEntry, DepartureId, DepartureStage, Departures};
pub use effects::Effects;
pub use eviction::{EvictionRow, EvictionState};
pub use eviction_outcomes::{EvictionCounts, EvictionOutcomes};
pub use feeds::Feeds;
pub use handover::MomentNumber;
pub use headroom::{HeadroomJob, HeadroomProgress, HeadroomRest, HeadroomSnapshot, KnownHeadroom};
pub use held_evictions::HeldEvictions;
pub use horizon::{HORIZON, Horizon};
pub use impact::{AppliedChange, Impact};
pub use leaving::{CountedLeaving, Leaving, LeavingJob, NextEvent, NextEventKind};
pub use loops::{DepartureLoops, EvictionLoop};
pub use maintenance_progress::{MaintenanceProgress, NodeDrainCount};
pub use moments::{Moment, MomentFinder, MomentKind};
pub use node_state::{NodeState, NodeStateView, StateDetail, StateRole};
pub use notices::{ChangeKind, ChangeNotice, NoticeFinder, NoticeRule};
pub use outcomes_job::OutcomesJob;
pub use pending_pods::{PendingAdvice, PendingJob, PendingPods, PendingSummary};
pub use predictions::Predictions;
pub use pressure::{NodeMeasurements, NodePressure, SignalPressure};
pub use revisions::Revision;
pub use session_journal::{JournalEntry, JournalSubject, SessionJournal};
pub use timeline::{Timeline, TimelineEntry, TimelineSource};
pub use upgrades::NodeUpgrade;
pub use views::{Leadership, Views};
pub use watchlist::{NodeWatchlist, ZoneNodes};

use effects::AfterOutcome;
use revisions::ChangeCounts;
use session_journal::HistoryContext;

use crate::k8s::{
    connect::EMBEDDED,
    feed::{FeedEvent, FeedHealth, FeedKind, FeedState},
};
use kordon_core::{
    cluster::{Applied, Change, Cluster, Gaps, Known, Scope},
    engine::{Effect, EffectId, Engine, Outcome, ServerVersion, Settings, Severity, WatchHealth, Why, Write},
    forecast::{EventKind, EventRanges, Forecast, accuracy::Judgement, apply_write},
    placement::SchedulerRules,
    plan::failover_gaps,
    why::Explainer,
};
use kordon_time::{ClusterClock, Span, Timestamp};

/// Error of a measured difference of the clocks: half the resolution of a Date header.
pub const IN_SYNC: Span = Span::from_millis(500);

/// Delay after which an overdue timeout counts as a sleep of the machine.
const ASLEEP: Span = Span::from_secs(10);

/// The knowledge of one cluster.
///
/// The owner passes in events: [`Model::on_watch_event`], [`Model::on_outcome`], and time through
/// [`Model::on_timeout`]. After each call it takes effects with [`Effects::take_next`] until there are none, and it
/// calls [`Model::on_timeout`] again at [`Model::poll_timeout`]. Views are as of the last [`Model::refresh`]. Cloning
/// is cheap, and a clone never changes, so a frozen screen shows a clone.
#[derive(Clone, Debug)]
pub struct Model {
    pub connection: ConnectionInfo,
    /// The controller's settings, with the origin of each.
    pub settings: Settings,
    pub cluster: Cluster,
    /// The engine; `None` until nodes and Leases have been listed, and always for an
    /// [observer](ControllerRole::Observer).
    pub engine: Option<Engine>,
    pub feeds: Feeds,
    pub effects: Effects,
    pub journal: SessionJournal,
    pub predictions: Predictions,
    pub watchlist: NodeWatchlist,
    pub maintenance: MaintenanceProgress,
    pub measurements: NodeMeasurements,
    /// The pods that left, and who removed each.
    pub departures: Departures,
    /// State of the engine at the last refresh.
    pub views: Views,
    changes: ChangeCounts,
}

/// Options of a new model.
#[derive(Clone, Debug)]
pub struct ModelOptions {
    pub connection: ConnectionInfo,
    /// The controller's settings, with the origin of each.
    pub settings: Settings,
    pub role: ControllerRole,
}

impl ModelOptions {
    /// Options of a model that only keeps the cluster up to date.
    pub fn observer(version: ServerVersion) -> Self {
        let (connection, settings) = (ConnectionInfo::default(), Settings::defaults(version));
        Self { connection, settings, role: ControllerRole::Observer }
    }
}

/// The cluster and the user of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectionInfo {
    /// The kubeconfig context, or `demo`.
    pub context: String,
    /// The API server's address.
    pub server: String,
    /// The user's name according to the server; `None` if the server does not report it.
    pub identity: Option<String>,
    /// The server's release, for example `v1.36.3`; none until it has answered.
    pub server_version: Option<String>,
    /// The newest time in the objects, if they come from files.
    pub objects_at: Option<Timestamp>,
}

impl ConnectionInfo {
    /// Whether the cluster is inside this process, and ends with it.
    pub fn is_embedded(&self) -> bool {
        self.server == EMBEDDED
    }
}

/// Role of the engine: it is the shadow of the cluster's controller (predicts its decisions), is the controller, or
/// does not run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ControllerRole {
    /// The engine predicts what the cluster's own controller does.
    #[default]
    Shadow,
    /// kordon is the controller.
    Controller,
    /// No engine runs; only the cluster is kept up to date.
    Observer,
}

impl Model {
    pub fn new(options: ModelOptions, now: Timestamp) -> Self {
        let ModelOptions { connection, settings, role } = options;
        let predictions = Predictions::new(settings.node_monitor_period.value);
        Self {
            connection,
            settings,
            cluster: Cluster::default(),
            engine: None,
            feeds: Feeds::new(now),
            effects: Effects::new(role),
            journal: SessionJournal::default(),
            predictions,
            watchlist: NodeWatchlist::default(),
            maintenance: MaintenanceProgress::default(),
            measurements: NodeMeasurements::default(),
            departures: Departures::default(),
            views: Views::default(),
            changes: ChangeCounts::default(),
        }
    }

    /// Applies an event of a watch. Returns the changes of the cluster.
    pub fn on_watch_event(&mut self, event: FeedEvent, now: Timestamp) -> Vec<AppliedChange> {
        let mut changes = Vec::new();
        match event {
            FeedEvent::Changes(reported) => changes = self.apply(reported, now),
            FeedEvent::Health(kind, health) => self.on_feed_health(kind, health, now),
            FeedEvent::ScopeState(scope, state) => {
                let known = Feeds::known(self.cluster.known_in(&scope), &state);
                changes = self.apply(vec![Change::KnownIn(scope, known)], now);
            }
            FeedEvent::ClockDifference(difference) => self.on_clock_difference(difference, now),
            FeedEvent::Trouble(text) => self.on_feed_trouble(&text, now),
        }
        self.start_engine_when_ready(now);
        changes
    }

    /// Applies changes in their order. Returns the resulting changes of the cluster.
    pub fn apply(&mut self, changes: Vec<Change>, now: Timestamp) -> Vec<AppliedChange> {
        let mut applied = Vec::new();
        let mut done = Vec::with_capacity(changes.len());
        for change in changes {
            self.cluster.apply(change, &mut applied);
            for applied in applied.drain(..) {
                let change = AppliedChange::new(applied);
                self.on_applied(&change, now);
                done.push(change);
            }
        }
        self.collect(now);
        done
    }

    /// Applies a write of a controller as if the watches had reported it.
    pub fn apply_write(&mut self, write: &Write, now: Timestamp) {
        let mut applied = Vec::new();
        apply_write(&mut self.cluster, write, now, &mut applied);
        for applied in applied {
            self.on_applied(&AppliedChange::new(applied), now);
        }
        self.collect(now);
    }

    /// Applies the outcome of an effect that was taken for execution. Does nothing for a shadow: it executes nothing,
    /// and each of its effects is recorded when it is decided.
    pub fn on_outcome(&mut self, id: EffectId, outcome: Outcome, now: Timestamp) {
        let effect = self.effects.finish(id);
        if self.effects.role() != ControllerRole::Shadow {
            self.apply_outcome(id, effect, outcome, now);
            self.collect(now);
        }
    }

    fn apply_outcome(&mut self, id: EffectId, effect: Option<Effect>, outcome: Outcome, now: Timestamp) {
        // An effect that was only recorded, not executed, keeps the time of its decision.
        let now = effect.as_ref().filter(|_| outcome == Outcome::Recorded).map_or(now, |effect| effect.at);
        if let Some(effect) = &effect {
            self.journal.outcome(effect, &outcome, self.effects.role(), now);
        }
        let after = self.effects.on_outcome(id, effect, &outcome, now);
        if after == AfterOutcome::Final
            && let Some(engine) = &mut self.engine
        {
            engine.handle_outcome(&self.cluster, id, outcome, now);
        }
    }

    /// Handles everything that is due. Returns whether there are new effects or notices.
    pub fn on_timeout(&mut self, now: Timestamp) -> bool {
        if let Some(engine) = &mut self.engine {
            engine.handle_timeout(&self.cluster, now);
            self.journal.on_timeout(engine, &self.cluster, now);
        }
        self.collect(now)
    }

    /// Handles every timeout that was due until `now`, each at the time at which it was due, and before any event at
    /// `now`. A model that runs late then has the same state as a replay of the same events. A timeout that is overdue
    /// by more than ten seconds, for example because the machine slept, is handled as of `now`. Returns whether there
    /// are new effects or notices.
    pub fn pass_time(&mut self, now: Timestamp) -> bool {
        let mut has_news = false;
        while let Some(due) = self.poll_timeout().filter(|due| *due <= now) {
            has_news |= self.on_timeout(if now.since(due) > ASLEEP { now } else { due });
        }
        has_news
    }

    /// Returns when [`Model::on_timeout`] must be called next.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        let engine = self.engine.as_ref().and_then(Engine::poll_timeout).map(|deadline| deadline.at);
        [engine, self.effects.poll_timeout(&self.cluster)].into_iter().flatten().min()
    }

    /// Returns the data from which explanations of nodes and pods are made; `None` before the engine has started.
    pub fn explainer(&self, now: Timestamp) -> Option<Explainer<'_>> {
        let Self { cluster, predictions, .. } = self;
        let (forecast, outcomes) = (predictions.forecast(), predictions.outcomes_by_pod());
        let forecast = forecast.map(|forecast| &**forecast);
        let staying = predictions.outcomes().map(|outcomes| outcomes.staying());
        let preempted = predictions.outcomes().map(|outcomes| outcomes.preempted());
        let cordon_waits = &self.views.cordon_waits;
        let engine = self.engine.as_ref()?;
        Some(Explainer { engine, cluster, forecast, outcomes, staying, preempted, cordon_waits, now })
    }

    /// Computes the forecast of the next ten minutes and refreshes the views.
    pub fn run_forecast(&mut self, now: Timestamp) {
        if let Some(engine) = &self.engine {
            let forecast = Forecast::run(engine, &self.cluster, now, HORIZON);
            self.set_forecast(forecast);
        }
        self.refresh(now);
    }

    /// Computes when the events of the forecast may happen, for a command that looks at the cluster once: it sees no pass
    /// of the controller, so the next one may be at any moment within a period.
    pub fn run_event_ranges(&mut self) {
        let forecast = self.predictions.forecast().filter(|_| self.views.is_predicted());
        let ranges = forecast.map(|forecast| EventRanges::new(forecast, &self.settings, &self.cluster));
        self.predictions.set_event_ranges(ranges);
    }

    /// Stores a new forecast and returns the previous one.
    pub fn set_forecast(&mut self, forecast: Forecast) -> Option<Arc<Forecast>> {
        self.predictions.set_forecast(forecast, &self.cluster)
    }

    /// Revision of the pods that wait for a node. It increases with each change of such a pod.
    pub fn unscheduled_changes(&self) -> u64 {
        self.changes.unscheduled()
    }

    /// Number of changes of the cluster that may alter plans.
    pub fn plan_changes(&self) -> u64 {
        self.changes.plans()
    }

    /// Returns [`Model::plan_changes`]; `None` while an input of the headroom is missing, for example the nodes or the
    /// pods.
    pub fn plan_revision(&self) -> Option<u64> {
        self.headroom_gaps().is_empty().then_some(self.changes.plans())
    }

    /// Missing inputs of the headroom: nodes or pods if they are unknown, and all kinds that are not listed yet.
    pub fn headroom_gaps(&self) -> Gaps {
        let missing = self.cluster.gaps([FeedKind::Nodes, FeedKind::Pods]).unknown();
        missing.0.into_iter().chain(self.loading().0).collect()
    }

    /// Inputs of predictions that are not listed yet. Until they are, results that a list could change are withheld.
    pub fn loading(&self) -> Gaps {
        let has_pods = !matches!(
            self.cluster.known(FeedKind::Pods),
            Known::Forbidden { .. } | Known::Off { .. } | Known::Absent
        );
        // Without pods, no prediction depends on the other kinds.
        let kinds = FeedKind::PREDICTION.into_iter();
        let kinds = kinds.filter(|kind| has_pods || matches!(kind, FeedKind::Nodes | FeedKind::Leases));
        self.cluster.gaps(kinds).not_listed()
    }

    /// Returns the kinds of objects that are read [on demand](FeedKind::ON_DEMAND) and that answers about the known
    /// objects depend on: devices if a pod requests something that only devices may provide, the templates of claims if a
    /// pod gets claims from them, CronJobs if one of their Jobs has not finished, and CSIStorageCapacities if a claim
    /// waits for a new volume of a driver that publishes them. Returns no kinds until all pods and nodes are known, and
    /// no kinds that the server does not serve: devices before 1.34, CSIStorageCapacities before 1.24, CronJobs before
    /// 1.21.
    pub fn scopes_on_demand(&self) -> impl Iterator<Item = Scope> + use<> {
        let (cluster, version) = (&self.cluster, self.settings.version);
        let is_known = [FeedKind::Nodes, FeedKind::Pods].iter().all(|kind| cluster.known(*kind).is_known());
        let has_devices = is_known && version >= SchedulerRules::FIRST_WITH_DEVICES;
        let devices = has_devices && cluster.needs_devices();
        let templates = has_devices && cluster.needs_claim_templates();
        let cron_jobs = is_known && version >= ServerVersion::new(1, 21) && cluster.needs_cron_jobs();
        let serves_capacities = version >= ServerVersion::new(1, 24);
        let capacities = is_known && serves_capacities && cluster.needs_storage_capacities();
        let is_needed = move |kind: &FeedKind| match kind {
            FeedKind::StorageCapacities => capacities,
            FeedKind::ClaimTemplates => templates,
            FeedKind::CronJobs => cron_jobs,
            _ => devices,
        };
        FeedKind::ON_DEMAND.into_iter().filter(is_needed).filter_map(Scope::all_of)
    }

    /// Whether the headroom has all its inputs, so that more data could not change it.
    pub fn is_headroom_definite(&self) -> bool {
        failover_gaps(&self.cluster).is_empty()
    }

    /// Missing inputs of predicted evictions: the pods, if nothing is known of them.
    pub fn eviction_gaps(&self) -> Gaps {
        self.cluster.gaps([FeedKind::Pods]).unknown()
    }

    fn on_applied(&mut self, change: &AppliedChange, now: Timestamp) {
        let applied = &change.applied;
        self.maintenance.on_applied(applied);
        let feed = self.feeds.state(FeedKind::Pods);
        let departed = self.departures.on_applied(applied, &self.cluster, feed, now);
        let judged = self.predictions.on_applied(applied, &self.cluster, now);
        self.record(change, departed, &judged, now);
        self.changes.on_applied(change);
        if let Some(engine) = &mut self.engine {
            engine.handle_change(&self.cluster, applied, now);
        }
        if matches!(applied, Applied::KordonLease | Applied::Leader(..)) {
            self.follow_lease(now);
        }
        self.watchlist.on_applied(applied, self.engine.as_ref());
    }

    /// Adds the journal entries for a change of a node or pod. Adds no entries before the engine starts, because the
    /// first lists are not changes.
    fn record(
        &mut self,
        change: &AppliedChange,
        departed: Option<DepartureId>,
        judged: &[(EventKind, Judgement)],
        now: Timestamp,
    ) {
        if self.engine.is_none() || matches!(change.impact, Impact::Heartbeat | Impact::PodVersion) {
            return;
        }
        let grace = self.settings.node_monitor_grace_period.value;
        let departed = departed.and_then(|id| self.departures.entry(id));
        let (cluster, role) = (&self.cluster, self.effects.role());
        let context = HistoryContext { cluster, role, grace, departed, judged, now };
        self.journal.on_change(&change.applied, &context);
    }

    /// Stores the difference of the clocks. If it is within the error of its measurement, the times of objects are used
    /// as they are written, so that they are shown as kubectl shows them. At the first measurement, the engine reads all
    /// times again, because it had read them without the difference.
    fn on_clock_difference(&mut self, difference: Span, now: Timestamp) {
        let is_first = self.feeds.clock_difference.replace(difference).is_none();
        let is_in_sync = (-IN_SYNC..=IN_SYNC).contains(&difference);
        self.cluster.set_clock(ClusterClock::ahead_by(if is_in_sync { Span::ZERO } else { difference }));
        if let Some(engine) = self.engine.as_mut().filter(|_| is_first) {
            engine.attach_again(&self.cluster, now);
            if let Some(at) = self.connection.objects_at {
                engine.set_time_of_objects(at, now);
            }
            self.watchlist.on_engine_restarted();
            self.collect(now);
            self.refresh(now);
        }
    }

    fn on_feed_health(&mut self, kind: FeedKind, health: FeedHealth, now: Timestamp) {
        let known = Feeds::known(self.cluster.known(kind), &health.state);
        self.apply(vec![Change::Known(kind, known)], now);
        let watch_health = self.feeds.set(kind, health);
        if kind == FeedKind::Leader
            && let Some(engine) = &mut self.engine
        {
            engine.handle_leader_known(&self.cluster.known(kind), now);
        }
        let Some(watch_health) = watch_health else { return };
        self.predictions.on_watch_health();
        self.journal.on_watch_health();
        if let Some(engine) = &mut self.engine {
            engine.handle_watch_health(&self.cluster, watch_health, now);
            self.collect(now);
        }
    }

    /// Adds a message of a watch, such as `pods: connection reset`, to the journal. The kind becomes the subject of the
    /// entry. The rest of the text is then the same for all watches, so that the journal joins their messages into one
    /// entry when their shared connection breaks.
    fn on_feed_trouble(&mut self, text: &str, now: Timestamp) {
        let of =
            |kind: FeedKind| Some((kind, text.strip_prefix(kind.to_string().as_str())?.strip_prefix(": ")?));
        match FeedKind::ALL.into_iter().find_map(of) {
            Some((kind, text)) => self.journal.trouble(now, &format!("watch/{kind}"), text),
            None => self.journal.trouble(now, "", text),
        }
    }

    /// Starts the engine once nodes are listed, Leases are listed or unavailable, and the leader is known. The
    /// controller waits for the list of pods instead of the leader, as upstream does.
    fn start_engine_when_ready(&mut self, now: Timestamp) {
        let feeds = &self.feeds;
        let nodes = self.cluster.nodes().is_synced();
        let leases = self.cluster.leases().is_synced()
            || matches!(feeds.state(FeedKind::Leases), Some(FeedState::Forbidden { .. } | FeedState::Off));
        let pods = self.cluster.pods().is_synced()
            || matches!(feeds.state(FeedKind::Pods), Some(FeedState::Forbidden { .. } | FeedState::Off));
        let leader = self.cluster.leader().is_some() || feeds.has_answered(FeedKind::Leader);
        if self.engine.is_some() || !(nodes && leases) {
            return;
        }
        let settings = self.settings.clone();
        let mut engine = match self.effects.role() {
            ControllerRole::Shadow if leader => {
                let mut engine = Engine::attach(settings, &self.cluster, now);
                if let Some(at) = self.connection.objects_at {
                    engine.set_time_of_objects(at, now);
                }
                engine
            }
            ControllerRole::Controller if pods => {
                let mut engine = Engine::start(settings.as_controller(), &self.cluster, now, now);
                // In every release, upstream's controller rereads the Lease before it marks a node Unknown, because a
                // watch may lag.
                engine.reread_leases();
                engine
            }
            ControllerRole::Controller | ControllerRole::Shadow | ControllerRole::Observer => return,
        };
        let watch_health = self.feeds.watch_health();
        if watch_health != WatchHealth::Live {
            engine.handle_watch_health(&self.cluster, watch_health, now);
        }
        engine.handle_leader_known(&self.cluster.known(FeedKind::Leader), now);
        self.engine = Some(engine);
        self.collect(now);
    }

    /// Takes the engine's notices and effects. Returns whether there were any.
    fn collect(&mut self, now: Timestamp) -> bool {
        let mut any = false;
        loop {
            let Some(engine) = &mut self.engine else { return any };
            while let Some(notice) = engine.poll_notice() {
                self.journal.notice(notice);
                any = true;
            }
            let effects: Vec<Effect> =
                std::iter::from_fn(|| engine.poll_effect()).map(Arc::unwrap_or_clone).collect();
            any |= !effects.is_empty();
            let mut decides_again = false;
            for effect in effects {
                // A shadow does not execute its decisions. They are recorded at once, so that the record does not
                // depend on how busy the machine is.
                if self.effects.role() == ControllerRole::Shadow {
                    self.journal.on_decision(&effect, &self.cluster);
                    self.apply_outcome(effect.id, Some(effect.clone()), Outcome::Recorded, now);
                    decides_again = true;
                }
                self.effects.add(effect);
            }
            // After an effect was recorded instead of executed, or an eviction was withdrawn, the engine may decide
            // again, so the loop repeats.
            if !self.withdraw_evictions(now) && !decides_again {
                self.release_evictions(now);
                return any;
            }
        }
    }

    /// Withdraws held evictions that are no longer needed, and reports each of them to the engine as a conflict.
    /// Returns whether there were any.
    fn withdraw_evictions(&mut self, now: Timestamp) -> bool {
        let withdrawn = self.effects.withdraw(&self.cluster);
        for effect in &withdrawn {
            self.journal.outcome(effect, &Outcome::Conflict, self.effects.role(), now);
            if let Some(engine) = &mut self.engine {
                engine.handle_outcome(&self.cluster, effect.id, Outcome::Conflict, now);
            }
        }
        !withdrawn.is_empty()
    }

    fn release_evictions(&mut self, now: Timestamp) {
        for zone in self.effects.release(&self.cluster, now) {
            let text =
                format!("zone {zone}: the limit of evictions a minute is reached: further evictions wait");
            self.journal.add(JournalEntry::new(now, Severity::Warning, "", &text, Why::default()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use kordon_core::{
        cluster::{
            Key, Lease, Node, ObjectEvent, Pod, Taint, TaintEffect, Termination, Toleration,
            TolerationOperator,
        },
        engine::{Confidence, UNREACHABLE},
    };
    use kordon_time::ClusterTime;

    const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);

    /// Returns a node that the controller tainted 100 s ago, a pod that tolerates the taint for 300 s, and one that is
    /// terminating for 10 s more. The cluster's clock is `ahead` of ours.
    fn changes(ahead: Span) -> Vec<Change> {
        let written = |secs: i64| ClusterTime::new(NOW + Span::from_secs(secs) + ahead);
        let taint = Taint {
            key: UNREACHABLE.into(),
            effect: TaintEffect::NoExecute,
            time_added: Some(written(-100)),
            ..Taint::default()
        };
        let node =
            Node { name: "n".into(), created: written(-9000), taints: [taint].into(), ..Node::default() };
        let toleration =
            Toleration { operator: TolerationOperator::Exists, seconds: Some(300), ..Toleration::default() };
        let pod = |name: &str| Pod {
            key: Key::new("d", name),
            created: written(-8000),
            node: Some("n".into()),
            tolerations: [toleration.clone()].into(),
            ..Pod::default()
        };
        let grace = Span::from_secs(30);
        let ends =
            Pod { termination: Some(Termination { deadline: written(10), grace }.into()), ..pod("ends") };
        let lease = Lease { node: "n".into(), renewed: Some(written(-150)), ..Lease::default() };
        vec![
            Change::Node(ObjectEvent::ListStarted),
            Change::Node(ObjectEvent::Listed(node)),
            Change::Node(ObjectEvent::ListDone),
            Change::Lease(ObjectEvent::ListStarted),
            Change::Lease(ObjectEvent::Listed(lease)),
            Change::Lease(ObjectEvent::ListDone),
            Change::Pod(ObjectEvent::Applied(pod("stays"))),
            Change::Pod(ObjectEvent::Applied(ends)),
            Change::Leader(Some(kordon_core::cluster::LeaderLease {
                holder: "one".into(),
                acquired: Some(written(-9000)),
                renewed: Some(written(-1)),
                ..kordon_core::cluster::LeaderLease::default()
            })),
        ]
    }

    #[test]
    fn times_of_objects_stay_as_written_while_the_clocks_are_in_sync() {
        let written = ClusterTime::new(NOW);
        let local = |difference: i64| {
            let mut model = Model::new(ModelOptions::observer(ServerVersion::new(1, 36)), NOW);
            model.on_watch_event(FeedEvent::ClockDifference(Span::from_millis(difference)), NOW);
            model.cluster.local(written)
        };
        assert_eq!([local(-500), local(300), local(500)], [NOW; 3]);
        assert_eq!(local(1500), NOW - Span::from_millis(1500));
    }

    #[test]
    fn waking_late_changes_nothing_but_after_a_sleep() {
        let settings = Settings::defaults(ServerVersion::new(1, 36));
        let (connection, role) = (ConnectionInfo::default(), ControllerRole::Shadow);
        let mut started = Model::new(ModelOptions { connection, settings, role }, NOW);
        started.on_watch_event(FeedEvent::ClockDifference(Span::ZERO), NOW);
        started.on_watch_event(FeedEvent::Changes(changes(Span::ZERO)), NOW);
        let next_after = |late: Span| {
            let mut model = started.clone();
            for _ in 0..20 {
                let due = model.poll_timeout().expect("an engine runs");
                model.pass_time(due + late);
            }
            model.poll_timeout()
        };
        assert_eq!(next_after(Span::from_millis(300)), next_after(Span::ZERO));
        assert!(next_after(ASLEEP + Span::from_secs(1)) > next_after(Span::ZERO));
    }

    /// Returns the confidence and the evictions that a model with the role `Shadow` shows. `measured_first` is whether
    /// the clock is measured before the lists arrive.
    fn shown(ahead: Span, measured_first: bool) -> (Option<Confidence>, BTreeMap<Key, EvictionState>) {
        let settings = Settings::defaults(ServerVersion::new(1, 36));
        let connection = ConnectionInfo::default();
        let mut model = Model::new(ModelOptions { connection, settings, role: ControllerRole::Shadow }, NOW);
        let mut events = vec![FeedEvent::ClockDifference(ahead), FeedEvent::Changes(changes(ahead))];
        if !measured_first {
            events.reverse();
        }
        for event in events {
            model.on_watch_event(event, NOW);
        }
        model.refresh(NOW);
        let evictions =
            model.views.leaving.evictions.iter().map(|(key, row)| (key.clone(), row.state.clone()));
        (model.views.confidence, evictions.collect())
    }

    #[test]
    fn clocks_apart_change_nothing_whenever_the_difference_is_measured() {
        let same = shown(Span::ZERO, true);
        assert!(matches!(same.1.values().next(), Some(EvictionState::Terminating { .. })), "{same:?}");
        assert_eq!(same.1.len(), 2);
        for ahead in [-300, -3, 3, 28, 300] {
            for measured_first in [true, false] {
                assert_eq!(shown(Span::from_secs(ahead), measured_first), same, "{ahead} s ahead");
            }
        }
    }
}
