//! The state of a node: the most urgent fact about the node, as one word. The glyph, the word, the visual role and the
//! sort order follow from the state everywhere.

use std::{collections::BTreeMap, fmt};

use super::{DepartureEntry, DepartureStage, Model};
use kordon_core::{
    cluster::{
        Cluster, ConditionStatus, DrainStage, ForeignDrain, Node, NodeName, OwnerKind, Scope, WorkloadKind,
    },
    engine::{Engine, Expiry, NodeStage, Silence, controllers_own},
    operation::DrainCount,
    plan::{
        BlockedDrain, EvictionRules, cordoned_at, drain_began, foreign_drain, may_have_unmarked_drain,
        unmarked_drain,
    },
};
use kordon_time::{Span, Timestamp};

/// The states of a node, the most urgent state first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeState {
    /// The controller tainted the node NoExecute, and its pods are leaving or about to leave.
    Evicting,
    /// The controller declared the node Unknown. The node waits for its NoExecute taint, or has the taint and no pod
    /// leaves.
    Unknown,
    /// The node's kubelet reports that the node is not ready. As for Unknown, no pod leaves.
    NotReady,
    /// The machine is being shut down, and its kubelet ends the pods before that (graceful node shutdown).
    ShuttingDown,
    /// The Ready condition is True, but the node is silent ([`Silence`]).
    Silent,
    /// The Ready condition is True, but a heartbeat is late.
    Late,
    /// The node is Ready, but one of its conditions reports a problem.
    Pressure,
    /// The node's kubelet has never posted a status.
    Starting,
    /// A component of another project restarts the machine. The node is still Ready, or is Ready again.
    Rebooting,
    /// A drain claims the node, or another client drains it.
    Draining,
    /// The node is cordoned, a drain of it has ended, and only static pods and pods of DaemonSets are left; or a
    /// component of another project says that its drain has ended.
    Drained,
    /// The node is marked unschedulable.
    Cordoned,
    Ready,
}

/// Visual role of a state, the most urgent role first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StateRole {
    Critical,
    Warning,
    Notice,
    /// The node is under maintenance.
    Maintenance,
    /// The state needs no attention.
    Ready,
}

impl NodeState {
    pub const ALL: [Self; 13] = [
        Self::Evicting,
        Self::Unknown,
        Self::NotReady,
        Self::ShuttingDown,
        Self::Silent,
        Self::Late,
        Self::Pressure,
        Self::Starting,
        Self::Rebooting,
        Self::Draining,
        Self::Drained,
        Self::Cordoned,
        Self::Ready,
    ];

    /// Returns the state of a node with these facts.
    pub fn from_facts(facts: &NodeFacts) -> Self {
        let NodeFacts { node, stage, silence, pods, now, .. } = *facts;
        let is_tainted = matches!(stage, NodeStage::Tainted | NodeStage::Evicted);
        match node.ready().map(|ready| ready.status) {
            Some(ConditionStatus::True) => {}
            // On a machine that is being shut down, the kubelet ends the pods long before the controller would evict
            // them.
            Some(ConditionStatus::False) if node.is_shutting_down() => return Self::ShuttingDown,
            Some(_) if is_tainted && pods.leaving => return Self::Evicting,
            Some(ConditionStatus::Unknown) => return Self::Unknown,
            Some(ConditionStatus::False | ConditionStatus::Invalid) => return Self::NotReady,
            None => return Self::Starting,
        }
        if silence.is_silent(now) {
            Self::Silent
        } else if silence.is_late(now) {
            Self::Late
        } else if node.is_shutting_down() {
            Self::ShuttingDown
        } else if node.problems().next().is_some() {
            Self::Pressure
        } else {
            Self::from_maintenance(facts)
        }
    }

    /// Returns the state of a Ready node without problems: the maintenance that is done on it, or Ready.
    fn from_maintenance(facts: &NodeFacts) -> Self {
        let NodeFacts { node, pods, now, .. } = *facts;
        if node.drain_claim.as_ref().is_some_and(|claim| claim.is_fresh(now)) {
            return Self::Draining;
        }
        match ForeignDrain::stage(node) {
            Some(DrainStage::Rebooting) => Self::Rebooting,
            Some(DrainStage::Maintaining) if pods.workload == Some(0) => Self::Drained,
            Some(DrainStage::Draining | DrainStage::Maintaining) => Self::Draining,
            Some(DrainStage::Drained) => Self::Drained,
            None if node.unschedulable && node.drained.is_some() && pods.workload == Some(0) => Self::Drained,
            None if pods.evicted => Self::Draining,
            None if node.unschedulable => Self::Cordoned,
            None => Self::Ready,
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Evicting => "Evicting",
            Self::Unknown => "Unknown",
            Self::NotReady => "NotReady",
            Self::ShuttingDown => "ShuttingDown",
            Self::Silent => "Silent",
            Self::Late => "Late",
            Self::Pressure => "Pressure",
            Self::Starting => "Starting",
            Self::Rebooting => "Rebooting",
            Self::Draining => "Draining",
            Self::Drained => "Drained",
            Self::Cordoned => "Cordoned",
            Self::Ready => "Ready",
        }
    }

    pub const fn glyph(self) -> &'static str {
        match self {
            Self::Evicting => "✖",
            Self::Unknown => "✕",
            Self::NotReady => "◆",
            Self::ShuttingDown => "◑",
            Self::Silent => "◌",
            Self::Late => "◦",
            Self::Pressure => "▴",
            Self::Starting => "◐",
            Self::Rebooting => "↻",
            Self::Draining => "⊖",
            Self::Drained => "○",
            Self::Cordoned => "⊘",
            Self::Ready => "▪",
        }
    }

    pub const fn role(self) -> StateRole {
        match self {
            Self::Evicting | Self::Unknown | Self::NotReady => StateRole::Critical,
            Self::ShuttingDown | Self::Silent | Self::Pressure => StateRole::Warning,
            Self::Late | Self::Starting => StateRole::Notice,
            Self::Rebooting | Self::Draining | Self::Drained | Self::Cordoned => StateRole::Maintenance,
            Self::Ready => StateRole::Ready,
        }
    }

    /// Returns the most urgent of these states; `None` if the slice is empty.
    pub fn worst(states: &[Self]) -> Option<Self> {
        // The minimum is computed over bytes, so that it can be vectorised: the screen needs it for tens of thousands
        // of nodes.
        let first = states.iter().map(|state| *state as u8).fold(u8::MAX, u8::min);
        Self::ALL.get(usize::from(first)).copied()
    }

    /// Whether the node is Ready and its heartbeats arrive. Late and Starting nodes are neither well nor failing, so a
    /// change to one of these states does not count as an outage or a recovery.
    pub const fn is_well(self) -> bool {
        match self {
            Self::Pressure
            | Self::Rebooting
            | Self::Draining
            | Self::Drained
            | Self::Cordoned
            | Self::Ready => true,
            Self::Evicting
            | Self::Unknown
            | Self::NotReady
            | Self::ShuttingDown
            | Self::Silent
            | Self::Late
            | Self::Starting => false,
        }
    }

    /// Whether the node is down, or will be declared down if it does not renew its Lease.
    pub const fn is_failing(self) -> bool {
        self.is_down() || matches!(self, Self::Silent)
    }

    /// Whether the controller or the kubelet reports the node as not ready, or as about to stop.
    pub const fn is_down(self) -> bool {
        matches!(self, Self::Evicting | Self::Unknown | Self::NotReady | Self::ShuttingDown)
    }
}

impl fmt::Display for NodeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Facts that determine the state of a node.
#[derive(Clone, Copy, Debug)]
pub struct NodeFacts<'a> {
    pub node: &'a Node,
    pub stage: NodeStage,
    pub silence: Silence,
    pub pods: NodePods,
    /// The current time. While the watches are broken, the time at which they broke, so that heartbeats that cannot
    /// arrive do not count as missing.
    pub now: Timestamp,
    /// Time at which the facts may become invalid even if the node, its Lease and its pods do not change.
    pub expiry: Expiry,
}

/// Facts about the pods of a node that determine the node's state.
#[derive(Clone, Copy, Debug, Default)]
pub struct NodePods {
    /// Whether the node is tainted and at least one of its known pods is terminating or has a time for its eviction.
    pub leaving: bool,
    /// Whether evictions of the node's pods show a drain that has no mark on the node ([`unmarked_drain`]).
    pub evicted: bool,
    /// Number of pods that a drain removes ([`Cluster::workload_pods`]); `None` if the pods are unknown or the number
    /// is not needed.
    pub workload: Option<usize>,
}

impl NodeFacts<'_> {
    /// Collects the facts about a node.
    pub fn new<'a>(engine: &Engine, cluster: &Cluster, node: &'a Node, now: Timestamp) -> NodeFacts<'a> {
        let is_known = cluster.knows(&Scope::PodsOn(node.name.clone()));
        let stage = engine.node_stage(node).unwrap_or(NodeStage::Healthy);
        // The leaving pods are looked up only for tainted nodes. A large zone may have a thousand nodes that wait for
        // their taint; they have no leaving pods, and looking them up would be slow.
        let is_tainted = matches!(stage, NodeStage::Tainted | NodeStage::Evicted);
        let may_be_drained = (node.unschedulable && node.drained.is_some())
            || ForeignDrain::stage(node) == Some(DrainStage::Maintaining);
        let counts = may_be_drained && is_known;
        let rules = EvictionRules::for_version(engine.settings().version);
        let leaving = is_tainted.then(|| engine.leaving_pods(cluster, node));
        let pods = NodePods {
            leaving: leaving.is_some_and(|leaving| leaving.any),
            evicted: unmarked_drain(cluster, node, &rules, now).is_some(),
            workload: counts.then(|| cluster.workload_pods(&node.name).count()),
        };
        // The number of pods may become known or unknown at any time, and budgets change what a drain can evict,
        // without a change of a node or pod.
        let is_counted = (may_be_drained || may_have_unmarked_drain(node)) && node.is_ready();
        let of_count = if is_counted { Expiry::AnyTime } else { Expiry::OnChange };
        let of_claim =
            node.drain_claim.as_ref().map(|claim| claim.fresh_until()).filter(|until| *until > now);
        let expiry = engine
            .stage_expiry(&node.name)
            .min(of_count)
            .min(leaving.map_or(Expiry::OnChange, |leaving| leaving.expiry))
            .min(of_claim.map_or(Expiry::OnChange, Expiry::At));
        NodeFacts { node, stage, silence: engine.silence(cluster, node), pods, now, expiry }
    }
}

/// The state of a node with its details.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeStateView {
    pub state: NodeState,
    /// Time at which the state began; if heartbeats are missing, the time of the last heartbeat. `None` if unknown.
    pub since: Option<Timestamp>,
    /// Progress of the drain; `None` if there is no drain or its progress is unknown.
    pub drain: Option<DrainCount>,
    /// The other project that drains, drained or reboots the node, for example `Karpenter`; `None` if kordon does this,
    /// or if it is unknown who does.
    pub by: Option<&'static str>,
}

impl NodeStateView {
    /// Returns the progress of the drain, or, without a drain, the duration of the state. `None` if neither is known.
    pub fn detail(&self, now: Timestamp) -> Option<StateDetail> {
        let lasting = |since| StateDetail::Lasting(Span::from_secs(now.since(since).or_zero().as_secs()));
        self.drain.map(StateDetail::Progress).or(self.since.map(lasting))
    }

    /// The state with its detail: `Evicting 12s`, `Draining 3/8`, `Draining by Karpenter 9d`, `Ready`.
    pub fn text(&self, now: Timestamp) -> String {
        let by = self.by.map(|by| format!(" by {by}")).unwrap_or_default();
        match self.detail(now) {
            Some(StateDetail::Progress(count)) => format!("{}{by} {count}", self.state),
            Some(StateDetail::Lasting(span)) => format!("{}{by} {span}", self.state),
            None => format!("{}{by}", self.state),
        }
    }
}

/// Detail that is shown beside a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateDetail {
    Progress(DrainCount),
    /// Duration of the state, in whole seconds.
    Lasting(Span),
}

impl Model {
    /// Returns the state of a node with its details; `None` until the engine has started.
    pub fn node_status(&self, node: &Node) -> Option<NodeStateView> {
        let state = self.watchlist.state(&node.name)?;
        let is_draining = state == NodeState::Draining;
        let of_kordon = is_draining.then(|| self.drain_count(node)).flatten();
        let is_maintained = matches!(state, NodeState::Rebooting | NodeState::Draining | NodeState::Drained);
        let foreign = (is_maintained && of_kordon.is_none()).then(|| self.foreign_drain(node)).flatten();
        let is_counted = is_draining && node.drain_claim.is_none();
        let counted = foreign.as_ref().filter(|_| is_counted);
        let drain = of_kordon.or_else(|| self.foreign_count(node, counted?));
        let by = foreign.and_then(|foreign| foreign.by);
        Some(NodeStateView { state, since: self.state_since(node, state), drain, by })
    }

    /// Returns the drain of a node by another client than kordon; `None` if no client is known to drain it.
    pub fn foreign_drain(&self, node: &Node) -> Option<ForeignDrain> {
        let rules = EvictionRules::for_version(self.settings.version);
        foreign_drain(&self.cluster, node, &rules, self.views.taken)
    }

    /// Returns the progress of a drain by kordon. If the operation runs in this process, it reports the progress itself.
    /// Otherwise the progress is read from the drain's annotation on the node, with the budgets that blocked the drain
    /// at the last refresh.
    pub fn drain_count(&self, node: &Node) -> Option<DrainCount> {
        let claim = node.drain_claim.as_ref()?;
        let of_ours = self.maintenance.drain(&node.name, &claim.operation);
        let of_claim = || DrainCount::from_claim(claim, &node.name, &self.cluster, self.blocked_drain(node));
        of_ours.or_else(of_claim)
    }

    /// Returns the progress of a drain by another client, which is known once a pod was seen leaving.
    fn foreign_count(&self, node: &Node, drain: &ForeignDrain) -> Option<DrainCount> {
        let gone = self.gone_by_foreign_drain(node, drain).filter(|gone| *gone > 0)?;
        DrainCount::of_foreign(node, &self.cluster, gone, self.blocked_drain(node))
    }

    fn blocked_drain(&self, node: &Node) -> Option<&BlockedDrain> {
        self.views.blocked_drains.iter().find(|drain| drain.node == node.name)
    }

    /// Returns the number of pods that were seen leaving a node since another client drains it; `None` if the start of
    /// its drain is unknown. Pods that a drain does not remove are not counted.
    fn gone_by_foreign_drain(&self, node: &Node, drain: &ForeignDrain) -> Option<usize> {
        if !matches!(drain.stage, DrainStage::Draining | DrainStage::Maintaining) {
            return None;
        }
        let began = drain_began(&self.cluster, node)?;
        let is_removed = |entry: &DepartureEntry| {
            let owner = entry.owner.as_ref().map(|owner| &owner.kind);
            !matches!(owner, Some(OwnerKind::Node | OwnerKind::Workload(WorkloadKind::DaemonSet)))
        };
        let is_gone = |entry: &&DepartureEntry| {
            entry.node.as_ref() == Some(&node.name)
                && matches!(entry.stage, DepartureStage::Gone { .. })
                && is_removed(entry)
        };
        let since = self.departures.newest().take_while(|(id, _)| id.at() >= began);
        Some(since.map(|(_, entry)| entry).filter(is_gone).count())
    }

    fn state_since(&self, node: &Node, state: NodeState) -> Option<Timestamp> {
        let local = |time| self.cluster.local(time);
        let ready = || node.ready().and_then(|ready| ready.last_transition).map(local);
        match state {
            NodeState::Evicting => {
                controllers_own(node).filter_map(|taint| taint.time_added).map(local).max().or_else(ready)
            }
            NodeState::Silent | NodeState::Late => self.silence(node).map(|silence| silence.heartbeat),
            NodeState::Pressure => {
                node.problems().filter_map(|problem| problem.last_transition).map(local).max()
            }
            NodeState::Starting => Some(local(node.created)),
            NodeState::Rebooting | NodeState::Drained => match ForeignDrain::find(&self.cluster, node) {
                Some(ForeignDrain { stage: DrainStage::Maintaining, .. }) => None,
                Some(foreign) => foreign.since,
                None => node.drained.as_ref().map(|drained| drained.at),
            },
            NodeState::Draining => drain_began(&self.cluster, node),
            NodeState::Cordoned => cordoned_at(&self.cluster, node),
            NodeState::ShuttingDown if node.is_ready() => {
                let shutdown = node.condition("GracefulNodeShutdownInProgress");
                shutdown.and_then(|shutdown| shutdown.last_transition).map(local)
            }
            NodeState::Unknown | NodeState::NotReady | NodeState::ShuttingDown | NodeState::Ready => ready(),
        }
    }
}

/// Period of time whose state changes count towards the badge of a flapping node.
const FLAP_WINDOW: Span = Span::from_secs(600);

/// Minimum number of state changes for the badge of a flapping node.
const FLAPS: usize = 3;

/// Records of nodes that go down and come back. An outage is one change, even if the node passes through several
/// states. A late heartbeat is not an outage.
#[derive(Clone, Debug, Default)]
pub struct Flaps(BTreeMap<NodeName, Flapping>);

#[derive(Clone, Debug)]
struct Flapping {
    is_failing: bool,
    /// Times at which the node went down or came back, oldest first.
    changes: Vec<Timestamp>,
}

impl Flaps {
    /// Records the current state of a node. `is_new` means that the node was not known before.
    pub fn record(&mut self, node: &NodeName, state: NodeState, is_new: bool, now: Timestamp) {
        let is_failing = state.is_failing();
        if !is_failing && !state.is_well() {
            return;
        }
        let Some(known) = self.0.get_mut(node) else {
            if is_failing {
                let changes = if is_new { Vec::new() } else { vec![now] };
                self.0.insert(node.clone(), Flapping { is_failing, changes });
            }
            return;
        };
        if known.is_failing != is_failing {
            known.is_failing = is_failing;
            known.changes.retain(|at| now.since(*at) < FLAP_WINDOW);
            known.changes.push(now);
        }
    }

    pub fn forget(&mut self, node: &NodeName) {
        self.0.remove(node);
    }

    /// Removes the changes that were recorded after the watches broke. These changes show only that no heartbeats were
    /// received.
    pub fn undo_after(&mut self, broke: Timestamp) {
        for known in self.0.values_mut() {
            while known.changes.pop_if(|at| *at > broke).is_some() {
                known.is_failing = !known.is_failing;
            }
        }
    }

    /// Returns the number of times that the node went down or came back within ten minutes; `None` if it is less than
    /// three.
    pub fn count(&self, node: &NodeName, now: Timestamp) -> Option<usize> {
        let changes = self.0.get(node)?.changes.iter();
        let count = changes.filter(|at| now.since(**at) < FLAP_WINDOW).count();
        (count >= FLAPS).then_some(count)
    }

    /// Returns the flapping nodes by name, each with its number of changes.
    pub fn flapping(&self, now: Timestamp) -> impl Iterator<Item = (&NodeName, usize)> {
        self.0.keys().filter_map(move |node| Some((node, self.count(node, now)?)))
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, sync::Arc};

    use super::*;
    use kordon_core::cluster::{Condition, DrainClaim, READY, Taint};

    const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);

    /// A test case: facts about a node whose last heartbeat was `heartbeat_age` seconds ago.
    struct Case {
        ready: Option<ConditionStatus>,
        stage: NodeStage,
        heartbeat_age: i64,
        leaving: bool,
        evicted: bool,
        workload: Option<usize>,
        pressure: bool,
        cordoned: bool,
        /// Age, in seconds, of the annotation by which a drain claims the node.
        claimed: Option<i64>,
        /// Whether a drain of the node has ended.
        drained: bool,
        /// Key of a taint of another project.
        mark: Option<&'static str>,
        /// Message of the Ready condition.
        message: &'static str,
    }

    const READY_NODE: Case = Case {
        ready: Some(ConditionStatus::True),
        stage: NodeStage::Healthy,
        heartbeat_age: 0,
        leaving: false,
        evicted: false,
        workload: Some(3),
        pressure: false,
        cordoned: false,
        claimed: None,
        drained: false,
        mark: None,
        message: "",
    };

    fn state(case: &Case) -> NodeState {
        let condition = |kind: &str, status| Condition { kind: kind.into(), status, ..Condition::default() };
        let ready =
            case.ready.map(|status| Condition { message: case.message.into(), ..condition(READY, status) });
        let mark = case.mark.map(|key| Taint { key: key.into(), ..Taint::default() });
        let pressure = case.pressure.then(|| condition("DiskPressure", ConditionStatus::True));
        let claim = case.claimed.map(|age| DrainClaim {
            renewed: NOW - Span::from_secs(age),
            pods: Some(8),
            ..DrainClaim::default()
        });
        let node = Node {
            conditions: ready.into_iter().chain(pressure).collect(),
            unschedulable: case.cordoned,
            drain_claim: claim.map(Arc::new),
            drained: case.drained.then(Arc::default),
            taints: mark.into_iter().collect(),
            ..Node::default()
        };
        let heartbeat = NOW - Span::from_secs(case.heartbeat_age);
        let silence = Silence {
            is_of_lease: true,
            heartbeat,
            late_from: heartbeat + Span::from_secs(15),
            silent_from: heartbeat + Span::from_secs(25),
        };
        let pods = NodePods { leaving: case.leaving, evicted: case.evicted, workload: case.workload };
        let expiry = Expiry::OnChange;
        NodeState::from_facts(&NodeFacts { node: &node, stage: case.stage, silence, pods, now: NOW, expiry })
    }

    #[test]
    fn a_node_has_the_most_urgent_state_that_holds() {
        let unknown = Some(ConditionStatus::Unknown);
        let down = || Case { ready: unknown, heartbeat_age: 90, ..READY_NODE };
        let tainted = || Case { stage: NodeStage::Tainted, ..down() };
        let worked_on = || Case { cordoned: true, claimed: Some(5), ..READY_NODE };
        let stops = Case {
            ready: Some(ConditionStatus::False),
            message: "[container runtime is down, node is shutting down]",
            ..READY_NODE
        };
        let marked = |key| Case { mark: Some(key), cordoned: true, ..READY_NODE };
        let (maintained, rebooted) = ("medik8s.io/drain", "remediation.medik8s.io/self-node-remediation");
        let cases = [
            (Case { leaving: true, ..tainted() }, NodeState::Evicting),
            (tainted(), NodeState::Unknown),
            (down(), NodeState::Unknown),
            (Case { leaving: true, stage: NodeStage::Requested, ..down() }, NodeState::Unknown),
            (Case { ready: Some(ConditionStatus::False), ..READY_NODE }, NodeState::NotReady),
            (Case { ready: Some(ConditionStatus::Invalid), ..READY_NODE }, NodeState::NotReady),
            (Case { heartbeat_age: 26, ..worked_on() }, NodeState::Silent),
            (Case { heartbeat_age: 25, ..READY_NODE }, NodeState::Late),
            (Case { heartbeat_age: 15, ..READY_NODE }, NodeState::Ready),
            (Case { pressure: true, ..worked_on() }, NodeState::Pressure),
            (Case { ready: None, heartbeat_age: 90, ..READY_NODE }, NodeState::Starting),
            (worked_on(), NodeState::Draining),
            (Case { claimed: Some(500), ..worked_on() }, NodeState::Cordoned),
            (Case { claimed: None, workload: Some(0), drained: true, ..worked_on() }, NodeState::Drained),
            (Case { claimed: None, workload: Some(1), drained: true, ..worked_on() }, NodeState::Cordoned),
            (Case { claimed: None, workload: None, drained: true, ..worked_on() }, NodeState::Cordoned),
            // The node has no pods, but nobody drained it.
            (Case { claimed: None, workload: Some(0), ..worked_on() }, NodeState::Cordoned),
            (Case { claimed: None, evicted: true, ..worked_on() }, NodeState::Draining),
            (Case { workload: Some(0), drained: true, ..READY_NODE }, NodeState::Ready),
            (READY_NODE, NodeState::Ready),
            (Case { leaving: true, stage: NodeStage::Tainted, ..stops }, NodeState::ShuttingDown),
            (marked("karpenter.sh/disrupted"), NodeState::Draining),
            (Case { workload: Some(0), ..marked("karpenter.sh/disrupted") }, NodeState::Draining),
            (marked(maintained), NodeState::Draining),
            (Case { workload: Some(0), ..marked(maintained) }, NodeState::Drained),
            (marked(rebooted), NodeState::Rebooting),
            (Case { claimed: Some(5), ..marked(rebooted) }, NodeState::Draining),
            (Case { ready: unknown, ..marked(rebooted) }, NodeState::Unknown),
        ];
        for (place, (case, expected)) in cases.iter().enumerate() {
            assert_eq!(state(case), *expected, "case {place}");
        }
        let covered: BTreeSet<NodeState> = cases.iter().map(|(_, state)| *state).collect();
        assert_eq!(covered, BTreeSet::from(NodeState::ALL), "every state has a case");
    }

    #[test]
    fn every_state_has_a_word_and_a_glyph_of_its_own_and_roles_follow_the_order_of_urgency() {
        assert!(NodeState::ALL.is_sorted());
        for (place, state) in NodeState::ALL.into_iter().enumerate() {
            assert_eq!(NodeState::worst(&NodeState::ALL[place..]), Some(state));
        }
        assert_eq!(NodeState::worst(&[]), None);
        let words: BTreeSet<&str> = NodeState::ALL.map(NodeState::as_str).into();
        let glyphs: BTreeSet<&str> = NodeState::ALL.map(NodeState::glyph).into();
        assert_eq!((words.len(), glyphs.len()), (13, 13));
        for state in NodeState::ALL {
            assert_eq!(state.glyph().chars().count(), 1, "{state}");
            assert_eq!(state.role() <= StateRole::Notice, state < NodeState::Rebooting, "{state}");
            assert_eq!(state.role() == StateRole::Ready, state == NodeState::Ready);
        }
    }

    #[test]
    fn a_status_says_how_far_its_drain_is_or_since_when() {
        let status = |state, since, drain| NodeStateView { state, since, drain, by: None }.text(NOW);
        let since = Some(NOW - Span::from_millis(12_900));
        assert_eq!(status(NodeState::Unknown, since, None), "Unknown 12s");
        let count = DrainCount { gone: 3, terminating: 1, waiting: 4, ..DrainCount::default() };
        assert_eq!(status(NodeState::Draining, since, Some(count)), "Draining 3/8");
        assert_eq!(status(NodeState::Ready, None, None), "Ready");
    }
}
