//! Views of the engine's state, cached for rendering.

use std::sync::Arc;

use super::{
    ControllerRole, DepartureLoops, Model,
    eviction_outcomes::EvictionCounts,
    idle_workloads::IdleKeys,
    leaving::{CountedLeaving, Leaving},
    node_state::NodeState,
    pending_pods::PendingSummary,
    revisions::{ChangeCount, Revision},
};
use crate::k8s::{
    feed::{FeedKind, FeedState},
    kordon_lease::is_kordon,
};
use kordon_core::{
    cluster::{Key, LeaderLease, Node, Pod, Scope},
    engine::{Confidence, NodeView, ShortGrace, Silence, ZoneView, is_every_zone_down},
    plan::{BlockedDrain, CordonWait, EvictionRules},
};
use kordon_time::Timestamp;

/// State of the engine at one time, for the screen.
#[derive(Clone, Debug, Default)]
pub struct Views {
    pub taken: Timestamp,
    /// Confidence in predictions; `None` until the engine has started.
    pub confidence: Option<Confidence>,
    pub zones: Vec<ZoneView>,
    pub leaving: Arc<Leaving>,
    pub counts: EvictionCounts,
    /// Summary of the pods that wait for a node.
    pub pending: PendingSummary,
    /// Drains that are blocked by a budget, sorted by node.
    pub blocked_drains: Vec<BlockedDrain>,
    /// Drains that wait until another node is uncordoned, sorted by node.
    pub cordon_waits: Vec<CordonWait>,
    pub loops: DepartureLoops,
    pub idle_workloads: IdleWorkloads,
    /// The grace period, if it is not longer than the renewal interval of kubelets; `None` without Leases.
    pub short_grace: Option<ShortGrace>,
    /// Number of changes of zones, of the confidence of predictions, and of the workloads without a running pod.
    zone_changes: ChangeCount,
    pub revision: Revision,
}

/// Workloads that want pods, but have no running pod.
#[derive(Clone, Debug, Default)]
pub struct IdleWorkloads {
    /// Revision of the cluster when the workloads were found; `None` while pods are not known.
    changes: Option<u64>,
    /// Time at which another workload is idle even if nothing changes; `None` if there is none.
    until: Option<Timestamp>,
    /// Keys of the workloads, sorted; empty while pods are not known.
    pub keys: Arc<[Key]>,
}

/// The active controller and its Lease, as far as they are known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Leadership<'a> {
    /// `kordon controller` renews its own Lease, or holds the Lease kube-system/kube-controller-manager.
    Kordon(&'a LeaderLease),
    /// A controller manager holds the Lease kube-system/kube-controller-manager.
    Held(&'a LeaderLease),
    /// The Lease exists but has no holder.
    Released,
    /// The Lease does not exist. Either no controller runs, or the controller does not use leader election.
    NoLease,
    /// kordon has no permission to read the Lease.
    Forbidden,
    /// The files from which the objects were read do not have the Lease.
    Absent,
    /// The server has not answered the request for the Lease yet.
    Unknown,
}

impl Leadership<'_> {
    /// Name of the controller that holds a Lease; `None` if none is known to hold one.
    pub const fn controller(&self) -> Option<&'static str> {
        match self {
            Self::Kordon(_) => Some("kordon controller"),
            Self::Held(_) => Some("kube-controller-manager"),
            Self::Released | Self::NoLease | Self::Forbidden | Self::Absent | Self::Unknown => None,
        }
    }
}

impl Views {
    /// Whether predictions may be shown: they are reliable, and at least one zone is not down.
    pub fn is_predicted(&self) -> bool {
        self.confidence.is_some_and(Confidence::allows_predictions) && !is_every_zone_down(&self.zones)
    }

    /// Number of pods that will have nowhere to run; `None` if predictions may not be shown.
    pub fn nowhere_predicted(&self) -> Option<usize> {
        self.is_predicted().then(|| self.counts.will_have_nowhere())
    }

    /// Number of pods that are known to have nowhere to run now.
    pub fn nowhere_now(&self) -> usize {
        self.pending.pods + self.counts.hanging.nowhere()
    }

    fn says_the_same_of_zones(&self, confidence: Option<Confidence>, zones: &[ZoneView]) -> bool {
        self.confidence == confidence
            && self.zones.len() == zones.len()
            && self.zones.iter().zip(zones).all(|(zone, other)| zone.says_the_same(other))
    }

    /// Stores the leaving pods, unless newer ones are known. Returns the previous ones. `outcomes` is the revision
    /// of the outcomes.
    pub(super) fn set_leaving(&mut self, counted: CountedLeaving, outcomes: u64) -> Option<Arc<Leaving>> {
        let CountedLeaving { leaving, counts } = counted;
        if leaving.taken < self.leaving.taken {
            return None;
        }
        self.counts = counts;
        self.revision.next = leaving.changes.next;
        self.revision.evictions = leaving.changes.evictions + outcomes;
        Some(std::mem::replace(&mut self.leaving, leaving))
    }

    /// Stores the number of evictions of each kind after new outcomes were computed.
    pub(super) const fn set_counts(&mut self, counts: EvictionCounts) {
        self.counts = counts;
        self.revision.evictions += 1;
    }

    /// Adds an offset to the revision of zones, so that it differs from the revisions at other moments of a playback.
    pub(super) const fn set_apart(&mut self, moment: u64) {
        self.zone_changes.set_apart(moment);
    }

    /// Takes over results of background work from `before`, the views of a moment shortly before this one.
    pub(super) fn continue_from(&mut self, before: &Self) {
        self.leaving = before.leaving.clone();
        self.counts = before.counts;
        let (own, shown) = (&mut self.revision, before.revision);
        (own.next, own.evictions, own.results) = (shown.next, shown.evictions, shown.results);
    }
}

impl Model {
    /// Updates the views: zones, abnormal nodes, and the pods that leave. The health of any other node is looked up
    /// only when the node is shown ([`Model::health`]): in a cluster of 5,000 nodes, most are healthy and few are on
    /// screen.
    pub fn refresh(&mut self, now: Timestamp) {
        self.refresh_nodes(now);
        self.refresh_leaving(now);
    }

    /// Updates only the views of nodes and zones, for callers that compute the leaving pods in the background.
    pub fn refresh_nodes(&mut self, now: Timestamp) {
        self.departures.expire(now);
        // The Lease of `kordon controller` may have expired.
        if self.follow_lease(now) {
            self.collect(now);
        }
        if let Some(engine) = &self.engine {
            self.predictions.forget_other_confidence(engine.confidence(now).allows_predictions());
        }
        let counted = Revision {
            nodes: self.changes.nodes(),
            zones: self.views.zone_changes.get(),
            unscheduled: self.changes.unscheduled(),
            moves: self.changes.moves(),
            departures: self.departures.revision(),
            journal: self.journal.revision(),
            results: self.predictions.revision(),
            ..self.views.revision
        };
        if counted.departures != self.views.revision.departures {
            self.views.loops = DepartureLoops::find(&self.departures, &self.cluster);
        }
        let Some(engine) = &self.engine else {
            (self.views.taken, self.views.revision) = (now, counted);
            return;
        };
        let judged_at = match engine.confidence(now) {
            Confidence::Disconnected { since } => since.min(now),
            Confidence::Live | Confidence::Assumed | Confidence::NoController { .. } => now,
        };
        self.watchlist.update(engine, &self.cluster, judged_at);
        self.predictions.forget_heard(self.watchlist.silent());
        let before = &self.views;
        let (confidence, zones) = (Some(engine.confidence(now)), engine.zones(now));
        let mut zone_changes = before.zone_changes;
        let idle_workloads = self.find_idle_workloads(now);
        zone_changes.count(
            !before.says_the_same_of_zones(confidence, &zones)
                || before.idle_workloads.keys != idle_workloads.keys,
        );
        let revision = Revision { states: self.watchlist.revision(), zones: zone_changes.get(), ..counted };
        self.views = Views {
            taken: now,
            confidence,
            zones,
            leaving: before.leaving.clone(),
            counts: before.counts,
            pending: PendingSummary::new(&self.cluster, now),
            blocked_drains: self.find_blocked_drains(now),
            cordon_waits: self.find_cordon_waits(now),
            loops: before.loops.clone(),
            idle_workloads,
            short_grace: engine.short_grace(),
            zone_changes,
            revision,
        };
    }

    /// Returns the workloads without a running pod. If nothing has changed since the last refresh, returns the last
    /// result until a pod should have started.
    fn find_idle_workloads(&self, now: Timestamp) -> IdleWorkloads {
        let before = &self.views.idle_workloads;
        let changes = self.changes.plans();
        if before.changes == Some(changes) && before.until.is_none_or(|until| now < until) {
            return before.clone();
        }
        if !self.cluster.knows(&Scope::Pods) {
            return IdleWorkloads::default();
        }
        let IdleKeys { keys, until } = IdleKeys::find(&self.cluster, now);
        IdleWorkloads { changes: Some(changes), until, keys: keys.into() }
    }

    /// Returns the drains that budgets block, including drains by other clients.
    fn find_blocked_drains(&self, now: Timestamp) -> Vec<BlockedDrain> {
        let rules = EvictionRules::for_version(self.settings.version);
        let draining = self.watchlist.notable().filter(|(_, state)| *state == NodeState::Draining);
        let nodes = draining.filter_map(|(name, _)| self.cluster.node(name));
        nodes
            .filter_map(|node| {
                let last_left = self.departures.last_of_node(&node.name);
                BlockedDrain::find(&self.cluster, node, last_left, &rules, now)
            })
            .collect()
    }

    /// Returns the cordoned nodes whose drain waits until another cordoned node is uncordoned. A drain by kubectl
    /// leaves only the cordon as a mark, so every cordoned node counts as being drained.
    fn find_cordon_waits(&self, now: Timestamp) -> Vec<CordonWait> {
        let Some(pending) = self.predictions.pending().filter(|pending| pending.waits_for_uncordon()) else {
            return Vec::new();
        };
        let rules = EvictionRules::for_version(self.settings.version);
        let mut takers = |pod: &Pod| pending.takers_if_uncordoned(&pod.key).to_vec();
        let cordoned = self.cluster.nodes().iter().filter(|node| node.unschedulable);
        cordoned
            .filter_map(|node| CordonWait::find(&self.cluster, &node.name, &rules, now, &mut takers))
            .collect()
    }

    /// Returns the active controller and its Lease, as far as they are known. Whether kordon's own Lease is valid is
    /// the engine's decision, as in the confidence of predictions.
    pub fn leadership(&self, now: Timestamp) -> Leadership<'_> {
        let is_led_by_kordon = self.engine.as_ref().is_some_and(|engine| engine.is_led_by_kordon(now));
        if let Some(lease) = self.cluster.kordon_lease().filter(|_| is_led_by_kordon) {
            return Leadership::Kordon(lease);
        }
        match (self.cluster.leader(), self.feeds.state(FeedKind::Leader)) {
            (Some(lease), _) if lease.holder.is_empty() => Leadership::Released,
            (Some(lease), _) if is_kordon(&lease.holder) => Leadership::Kordon(lease),
            (Some(lease), _) => Leadership::Held(lease),
            (None, Some(state)) if state.is_absent() => Leadership::Absent,
            (None, Some(FeedState::Forbidden { .. })) => Leadership::Forbidden,
            (None, Some(FeedState::Live)) => Leadership::NoLease,
            (None, _) => Leadership::Unknown,
        }
    }

    /// Takes over the settings that the active `kordon controller` states on its Lease. Returns whether they change.
    pub(super) fn follow_lease(&mut self, now: Timestamp) -> bool {
        if self.effects.role() != ControllerRole::Shadow {
            return false;
        }
        let stated = match self.leadership(now) {
            Leadership::Kordon(lease) => lease.full_disruption.clone(),
            Leadership::Held(_)
            | Leadership::Released
            | Leadership::NoLease
            | Leadership::Forbidden
            | Leadership::Absent
            | Leadership::Unknown => None,
        };
        let changes = self.settings.follow_lease(stated.as_deref());
        if let Some(engine) = self.engine.as_mut().filter(|_| changes) {
            engine.set_full_disruption(self.settings.full_disruption, &self.cluster, now);
            self.watchlist.on_engine_restarted();
        }
        changes
    }

    /// Whether the Lease of `kordon controller` matters: only it can show that a controller is active, or a zone is down.
    pub fn needs_kordon_lease(&self, now: Timestamp) -> bool {
        self.feeds.state(FeedKind::Leader) == Some(&FeedState::Live)
            && self.engine.as_ref().is_some_and(|engine| engine.needs_kordon_lease(now))
    }

    /// Returns the controller's view of a node; `None` before the engine has started or a monitor pass has seen the
    /// node.
    pub fn health(&self, node: &Node) -> Option<NodeView> {
        self.engine.as_ref()?.node_view(node)
    }

    /// Returns when the grace period of a node ends, or ended before the node became Unknown; `None` before the engine
    /// has started or a monitor pass has seen the node.
    pub fn grace_ends(&self, node: &Node) -> Option<Timestamp> {
        self.engine.as_ref()?.grace_ends(&self.cluster, node)
    }

    /// Returns the last heartbeat of a node, and the times at which the node becomes late and silent. `None` until the
    /// engine has started.
    pub fn silence(&self, node: &Node) -> Option<Silence> {
        Some(self.engine.as_ref()?.silence(&self.cluster, node))
    }

    /// Returns the last heartbeat of a node that the engine has seen. Before the engine has started, returns the renew
    /// time of the node's Lease, if the Lease is listed.
    pub fn last_heartbeat(&self, node: &Node) -> Option<Timestamp> {
        let renewed = || self.cluster.lease(&node.name)?.renewed.map(|renewed| self.cluster.local(renewed));
        self.silence(node).map(|silence| silence.heartbeat).or_else(renewed)
    }

    /// Whether at least one node was abnormal at the last refresh. Only then is there something to predict.
    pub fn is_abnormal(&self) -> bool {
        !self.watchlist.abnormal().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        k8s::feed::{FeedEvent, FeedHealth},
        model::{ClusterVerdict, ConnectionInfo, ModelOptions},
    };
    use kordon_core::{
        cluster::{Change, Lease, ObjectEvent},
        engine::{ServerVersion, Settings},
    };
    use kordon_time::{ClusterTime, Span};

    const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);

    fn lease(holder: &str, age: i64) -> Option<LeaderLease> {
        let renewed = Some(ClusterTime::new(NOW - Span::from_secs(age)));
        Some(LeaderLease { holder: holder.into(), renewed, ..LeaderLease::default() })
    }

    /// Returns a model of one node that is Ready, and of the Lease of the controller managers.
    fn model(manager: Option<LeaderLease>) -> Model {
        let (connection, role) = (ConnectionInfo::default(), ControllerRole::Shadow);
        let settings = Settings::defaults(ServerVersion::new(1, 36));
        let mut model = Model::new(ModelOptions { connection, settings, role }, NOW);
        let node = Node { name: "n".into(), ..Node::default() };
        let renewed = Some(ClusterTime::new(NOW));
        model.apply(
            vec![
                Change::Node(ObjectEvent::ListStarted),
                Change::Node(ObjectEvent::Listed(node)),
                Change::Node(ObjectEvent::ListDone),
                Change::Lease(ObjectEvent::ListStarted),
                Change::Lease(ObjectEvent::Listed(Lease { node: "n".into(), renewed, ..Lease::default() })),
                Change::Lease(ObjectEvent::ListDone),
                Change::Leader(manager),
            ],
            NOW,
        );
        for kind in [FeedKind::Nodes, FeedKind::Leases, FeedKind::Leader] {
            let health =
                FeedHealth { state: FeedState::Live, last_heard: None, relists: 0, requests: 1, bytes: 10 };
            model.on_watch_event(FeedEvent::Health(kind, health), NOW);
        }
        model
    }

    #[test]
    fn kordon_is_the_controller_while_it_renews_its_lease_or_holds_that_of_the_manager() {
        let controller = |manager: Option<LeaderLease>, own: Option<LeaderLease>| {
            let mut model = model(manager);
            model.apply(vec![Change::KordonLease(own)], NOW);
            model.leadership(NOW).controller()
        };
        let (manager, kordon) = (Some("kube-controller-manager"), Some("kordon controller"));
        assert_eq!(controller(lease("n1_1f6d", 1), None), manager);
        assert_eq!(controller(lease("n1_kordon-x", 1), None), kordon, "it took over");
        assert_eq!(controller(lease("n1_1f6d", 1), lease("n2_kordon-x", 2)), kordon, "beside it");
        assert_eq!(controller(lease("n1_1f6d", 1), lease("n2_kordon-x", 60)), manager, "it has ended");
        assert_eq!(controller(lease("n1_1f6d", 1), lease("", 1)), manager, "it has released its Lease");
        assert_eq!(controller(None, None), None);
    }

    #[test]
    fn no_controller_is_missing_while_kordon_renews_its_lease() {
        let mut model = model(lease("n1_1f6d", 100));
        let mut shown = |own: Option<LeaderLease>, at: Timestamp| {
            model.apply(vec![Change::KordonLease(own)], at);
            model.refresh(at);
            let is_missing = ClusterVerdict::new(&model, at).text().contains("no active");
            let confidence = model.views.confidence.expect("the engine runs");
            assert_eq!(is_missing, !confidence.allows_predictions());
            (confidence, model.leadership(at).controller())
        };
        let (manager, kordon) = (Some("kube-controller-manager"), Some("kordon controller"));
        let missing = Confidence::NoController { since: NOW - Span::from_secs(100) };
        assert_eq!(shown(None, NOW), (missing, manager));
        assert_eq!(shown(lease("n2_kordon-x", 1), NOW), (Confidence::Live, kordon));
        let later = NOW + Span::from_secs(15);
        assert_eq!(shown(lease("n2_kordon-x", 1), later), (missing, manager), "it has expired");
        assert_eq!(shown(lease("n2_kordon-x", -14), later), (Confidence::Live, kordon));
        assert_eq!(shown(lease("", -15), later), (missing, manager), "it was released");
    }

    #[test]
    fn the_lease_of_kordon_is_needed_only_where_that_of_the_manager_has_expired() {
        assert!(!model(None).needs_kordon_lease(NOW), "a controller is assumed");
        let model = model(lease("n1_1f6d", 1));
        let needs = |after: i64| model.needs_kordon_lease(NOW + Span::from_secs(after));
        assert_eq!([needs(14), needs(15)], [false, true]);
    }
}
