//! An environment that places replacements as the scheduler would.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    cancellation::Cancellation,
    claim_protection::{is_recreated, released_claims},
    departure::Departure,
    environment::{self, Environment, Estimate, Stragglers, TypicalEnvironment},
    eviction_note::{attached_once, lasting_claims},
    job_failures::JobConsequences,
    landing::Landing,
    owner::{self, Recreation},
    placement_trace::{PlacementTrace, PreemptedPod, Receiver, RunTrace},
    rules::EvictionRules,
    successor,
};
use crate::{
    cluster::{
        Cluster, ConditionStatus, Key, Name, Node, NodeName, Pod, Resources, Taint, TaintEffect, Termination,
        UNSCHEDULABLE, Uid,
    },
    engine::{NOT_READY, UNREACHABLE},
    placement::{
        Obstacle, Placement, Preemption, PreemptionCandidate, ResourceUse, SchedulingOutcome,
        SchedulingRequest, Snapshot, Unschedulable,
    },
};
use kordon_time::{Span, Timestamp};

/// The assumption on which all predictions with placed replacements rest.
pub const TEMPLATES_ASSUMED: &str = "replacements match their templates: quotas admit them, and no webhook, HPA or VPA \
                                     changes them or their number";

/// A [`TypicalEnvironment`] that also places replacements, in a [`Snapshot`] of the cluster. Each placement takes the
/// earlier placements into account.
#[derive(Clone, Debug)]
pub struct PlacingEnvironment<'a> {
    typical: TypicalEnvironment<'a>,
    state: PlacingState,
}

/// The state of a [`PlacingEnvironment`], without its reference to the cluster.
#[derive(Clone, Debug)]
pub struct PlacingState {
    snapshot: Snapshot,
    /// Nodes that the environment has cordoned in its snapshot.
    closed: BTreeSet<NodeName>,
    /// Nodes that have failed and are not back.
    failed: BTreeSet<NodeName>,
    /// Nodes that are back after a failure.
    back: BTreeSet<NodeName>,
    /// Nodes that send no heartbeats. The scheduler may choose such a node until it is tainted, but no pod starts
    /// there.
    silent: BTreeSet<NodeName>,
    /// The node to which each volume is attached for a replacement, by claim. Only for volumes that one node at a time
    /// can use.
    attached: BTreeMap<Key, NodeName>,
    /// Pods that are gone and that used claims.
    gone: BTreeSet<Key>,
    /// Where replacements landed in an earlier run. This run places them there again.
    fixed: BTreeMap<Key, (Landing, Arc<PlacementTrace>)>,
    /// For each replaced pod, the trace of the placement of its replacement.
    placements: BTreeMap<Key, Arc<PlacementTrace>>,
    /// Resource use of changed nodes, as it was before their first change.
    before: BTreeMap<NodeName, ResourceUse>,
    received: BTreeSet<NodeName>,
    /// Scheduling requests that found no feasible node since the snapshot last changed. An equal request would find
    /// none either.
    unplaceable: Vec<(SchedulingRequest, Arc<PlacementTrace>)>,
    /// A lower bound of the priorities of all pods on nodes. It is computed when it is first needed.
    lowest_priority: Option<i32>,
    detail: TraceDetail,
    cancellation: Cancellation,
}

impl PlacingState {
    /// Returns the environment with this state. `cluster` must be the cluster for which the state was made. Only the
    /// conditions of nodes may differ.
    pub const fn in_cluster(self, cluster: &Cluster, now: Timestamp) -> PlacingEnvironment<'_> {
        PlacingEnvironment { typical: TypicalEnvironment { cluster, now }, state: self }
    }
}

/// Which details of each placement are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TraceDetail {
    Full,
    /// Keeps only landings and preempted pods. Leaves out reasons, help, times and the resource use of nodes.
    OutcomesOnly,
}

impl<'a> PlacingEnvironment<'a> {
    /// Creates an environment. `snapshot` must be of this cluster. It is either new, or a copy of a snapshot that
    /// [`Snapshot::follow`] keeps up to date.
    pub fn new(cluster: &'a Cluster, snapshot: Snapshot, now: Timestamp) -> Self {
        let state = PlacingState {
            snapshot,
            closed: BTreeSet::new(),
            failed: BTreeSet::new(),
            back: BTreeSet::new(),
            silent: BTreeSet::new(),
            attached: BTreeMap::new(),
            gone: BTreeSet::new(),
            fixed: BTreeMap::new(),
            placements: BTreeMap::new(),
            before: BTreeMap::new(),
            received: BTreeSet::new(),
            unplaceable: Vec::new(),
            lowest_priority: None,
            detail: TraceDetail::Full,
            cancellation: Cancellation::default(),
        };
        state.in_cluster(cluster, now)
    }

    /// Creates an environment that only keeps where pods land, not why. This is faster for many placements.
    pub fn for_outcomes(cluster: &'a Cluster, snapshot: Snapshot, now: Timestamp) -> Self {
        let Self { typical, state } = Self::new(cluster, snapshot, now);
        Self { typical, state: PlacingState { detail: TraceDetail::OutcomesOnly, ..state } }
    }

    /// Creates an environment for a plan that is applied now. Nodes that are not Ready get their taint before the first
    /// replacement is placed (upstream `doNoScheduleTaintingPass`). Silent nodes, which send no heartbeats, are still
    /// Ready, and have no taint.
    pub fn for_present(
        cluster: &'a Cluster,
        snapshot: Snapshot,
        rules: &EvictionRules,
        now: Timestamp,
    ) -> Self {
        let mut environment = Self::new(cluster, snapshot, now);
        let PlacingState { snapshot, silent, .. } = &mut environment.state;
        for node in cluster.nodes().iter().filter(|node| node.ready().is_some() && !node.is_ready()) {
            snapshot.put_node(Arc::new(tainted(node, &[TaintEffect::NoSchedule])));
        }
        *silent = rules.silent_nodes(cluster, now);
        environment
    }

    /// Makes the environment stop placing pods after a cancellation.
    pub fn until_cancelled(mut self, cancellation: &Cancellation) -> Self {
        self.state.cancellation = cancellation.clone();
        self
    }

    /// Returns the snapshot with all changes so far.
    pub(super) fn snapshot_mut(&mut self) -> &mut Snapshot {
        &mut self.state.snapshot
    }

    /// Returns the state of the environment, without its reference to the cluster. [`PlacingState::in_cluster`] does
    /// the reverse.
    pub fn into_state(self) -> PlacingState {
        self.state
    }

    /// Cordons these nodes in the snapshot.
    fn close(&mut self, closed: &BTreeSet<NodeName>) {
        for name in closed {
            if self.state.closed.insert(name.clone())
                && let Some(node) = self.state.snapshot.node_named(name).filter(|node| !node.unschedulable)
            {
                self.state.snapshot.put_node(Arc::new(cordoned(node)));
                self.state.unplaceable.clear();
            }
        }
    }

    /// Places the replacement of a pod as in an earlier run: removes the pods that the replacement preempts, and places
    /// their replacements too.
    fn repeat(&mut self, pod: &Pod, landing: &Landing, trace: &PlacementTrace) {
        for preempted in &trace.preempts {
            self.before_change(&preempted.node);
            let victim = self.state.snapshot.remove(&preempted.pod, &preempted.node);
            if let (Some(victim), Some(Landing::Node { node, .. })) = (victim, &preempted.landing) {
                self.add_replacement(&victim, node);
            }
        }
        if let Landing::Node { node, .. } = landing {
            self.add_replacement(pod, node);
        }
    }

    /// Returns the result of scheduling the replacement of a pod now.
    pub fn decision(&mut self, pod: &Pod) -> SchedulingOutcome {
        self.state.snapshot.place(&replacement(pod, self.typical.cluster))
    }

    /// Places the replacement of a pod and adds it to the snapshot. If no node is feasible and preemption is allowed,
    /// the replacement may preempt other pods.
    fn place(&mut self, pod: &Pod) -> (Landing, Arc<PlacementTrace>) {
        let request = replacement(pod, self.typical.cluster);
        let nameless = SchedulingRequest { name: Name::default(), uid: Uid::default(), ..request.clone() };
        if let Some((_, trace)) = self.state.unplaceable.iter().find(|(other, _)| *other == nameless) {
            return (Landing::Pending { why: trace.why() }, trace.clone());
        }
        if self.state.detail == TraceDetail::OutcomesOnly && self.certainly_stays_pending(&request) {
            let trace = Arc::<PlacementTrace>::default();
            return (Landing::Pending { why: trace.why() }, trace);
        }
        match self.state.snapshot.place(&request) {
            SchedulingOutcome::Placed(placement) => {
                let node = placement.choice().clone();
                let shared_volume = self.attach(pod, &node);
                let is_silent = self.state.silent.contains(&node);
                let trace = PlacementTrace { shared_volume, is_silent, ..self.placed(&request, &placement) };
                self.add_replacement(pod, &node);
                (Landing::Node { node, why: trace.why() }, Arc::new(trace))
            }
            SchedulingOutcome::Unschedulable(mut refused) => {
                refused.leave_out(&self.state.failed);
                match &refused.preemption {
                    Preemption::Possible(candidate) => self.preempt(pod, candidate, &refused),
                    _ => self.stay_pending(&request, nameless, &refused),
                }
            }
            SchedulingOutcome::NotTried(obstacle) => {
                let trace = PlacementTrace { obstacle: Some(obstacle), ..PlacementTrace::default() };
                (Landing::Unknown, Arc::new(trace))
            }
        }
    }

    /// Records on which node a replacement uses a volume that only one node at a time can use. If an earlier
    /// replacement uses the volume on another node, returns the claim and that node. The attach/detach controller then
    /// does not attach the volume to the second node (upstream `reportMultiAttachError`), which the scheduler does not
    /// check.
    fn attach(&mut self, pod: &Pod, node: &NodeName) -> Option<(Name, NodeName)> {
        let claim = attached_once(self.typical.cluster, &successor::successor(self.typical.cluster, pod))?;
        let key = Key { namespace: pod.key.namespace.clone(), name: claim.clone() };
        let attached = self.state.attached.entry(key).or_insert_with(|| node.clone());
        (attached != node).then(|| (claim, attached.clone()))
    }

    /// Completes the deletion of claims that were kept only by this pod, which is now gone. The pod's StatefulSet
    /// creates the claims of its `volumeClaimTemplates` again.
    fn release_claims(&mut self, pod: &Pod) {
        if lasting_claims(pod).next().is_none() {
            return;
        }
        let PlacingState { snapshot, gone, .. } = &mut self.state;
        gone.insert(pod.key.clone());
        for claim in released_claims(self.typical.cluster, pod, |other| gone.contains(other)) {
            match is_recreated(pod, &claim) {
                true => snapshot.recreate_claim(&claim),
                false => snapshot.delete_claim(&claim),
            }
        }
    }

    /// Returns whether the replacement certainly stays Pending, because no node is feasible and it cannot preempt any
    /// other pod.
    fn certainly_stays_pending(&mut self, request: &SchedulingRequest) -> bool {
        let PlacingState { snapshot, lowest_priority, .. } = &mut self.state;
        if request.obstacle().is_some() {
            return false;
        }
        let lowest = *lowest_priority.get_or_insert_with(|| snapshot.lowest_priority());
        (request.spec.never_preempts || request.priority <= lowest) && snapshot.has_no_node_for(request)
    }

    fn placed(&mut self, request: &SchedulingRequest, placement: &Placement) -> PlacementTrace {
        match self.state.detail {
            TraceDetail::OutcomesOnly => PlacementTrace::default(),
            TraceDetail::Full => {
                let volumes = self.state.snapshot.volume_topology(request);
                PlacementTrace { volumes, ..PlacementTrace::placed(placement) }
            }
        }
    }

    fn stay_pending(
        &mut self,
        request: &SchedulingRequest,
        nameless: SchedulingRequest,
        refused: &Unschedulable,
    ) -> (Landing, Arc<PlacementTrace>) {
        let PlacingState { snapshot, closed, failed, silent, detail, .. } = &mut self.state;
        let trace = Arc::new(match detail {
            TraceDetail::OutcomesOnly => PlacementTrace::default(),
            TraceDetail::Full => PlacementTrace {
                volumes: snapshot.volume_topology(request),
                help: Some(snapshot.help(request, &|node| {
                    closed.contains(node) || failed.contains(node) || silent.contains(node)
                })),
                ..PlacementTrace::unplaced(refused)
            },
        });
        self.state.unplaceable.push((nameless, trace.clone()));
        (Landing::Pending { why: trace.why() }, trace)
    }

    /// Removes the victims and adds the pod. Then places the replacements of the victims, which may preempt pods of a
    /// lower priority in turn. The trace lists the victims of all these preemptions.
    fn preempt(
        &mut self,
        pod: &Pod,
        candidate: &PreemptionCandidate,
        refused: &Unschedulable,
    ) -> (Landing, Arc<PlacementTrace>) {
        let node = &candidate.node;
        self.before_change(node);
        for victim in &candidate.victims {
            self.state.snapshot.remove(&victim.key, node);
            self.release_claims(victim);
        }
        self.add_replacement(pod, node);
        let jobs = self.failures_by_preemption(&candidate.victims);
        let mut preempts = Vec::new();
        for victim in &candidate.victims {
            let mut victims_of_victim = Vec::new();
            let recreation = jobs.recreation(self.typical.cluster, victim);
            let landing = match recreation {
                Recreation::Immediately | Recreation::WhenGone => {
                    let (landing, trace) = self.place(victim);
                    victims_of_victim.clone_from(&trace.preempts);
                    for other in &mut victims_of_victim {
                        other.in_turn_for.get_or_insert_with(|| victim.key.clone());
                    }
                    Some(landing)
                }
                Recreation::OnSameNode => Some(Landing::Pending {
                    why: "recreated by its DaemonSet once resources are free".into(),
                }),
                Recreation::Never(_) | Recreation::Unknown => None,
            };
            let lost = match recreation {
                Recreation::Never(why) => Some(why),
                _ => None,
            };
            let (pod, node) = (victim.key.clone(), node.clone());
            preempts.push(PreemptedPod { pod, node, in_turn_for: None, landing, lost });
            preempts.append(&mut victims_of_victim);
        }
        let trace = PlacementTrace { preempts, ..PlacementTrace::unplaced(refused) };
        (Landing::Node { node: node.clone(), why: trace.why() }, Arc::new(trace))
    }

    /// Returns what the preemption of these pods means for their Jobs: a preempted pod counts as a failed pod
    /// (upstream of 1.37, `pkg/controller/job/job_controller.go`, `getNewFinishedPods`).
    fn failures_by_preemption(&self, victims: &[Arc<Pod>]) -> JobConsequences {
        let TypicalEnvironment { cluster, now } = self.typical;
        let departure =
            |pod: &Arc<Pod>| Departure { pod: pod.clone(), leaves: now, gone: Some(now), unready: None };
        JobConsequences::new(cluster, &victims.iter().map(departure).collect::<Vec<_>>())
    }

    /// Adds a replacement to the node that its template names. The scheduler is not involved, only the kubelet of the
    /// node. The replacement stays Pending if there is no kubelet.
    fn land_on(&mut self, pod: &Pod, node: NodeName) -> Landing {
        let PlacingState { snapshot, failed, back, .. } = &mut self.state;
        let why = |obstacle: &str| Name::from(format!("its template names node {node}, {obstacle}"));
        if snapshot.node_named(&node).is_none() {
            return Landing::Pending { why: why("which is not there") };
        }
        let is_up = back.contains(&node) || environment::has_running_kubelet(self.typical.cluster, &node);
        if failed.contains(&node) || !is_up {
            return Landing::Pending { why: why("whose kubelet is down") };
        }
        let refused = snapshot.kubelet_refusal(&replacement(pod, self.typical.cluster), &node);
        if !refused.is_empty() {
            let words: Vec<String> = refused.iter().map(ToString::to_string).collect();
            let rejects = format!("whose kubelet rejects it: {}", words.join(", "));
            return Landing::Rejected { why: why(&rejects) };
        }
        self.add_replacement(pod, &node);
        Landing::Node { node, why: "its template names the node".into() }
    }

    fn add_replacement(&mut self, pod: &Pod, node: &NodeName) {
        match self.state.detail {
            // Forgets the scheduling requests whose specs depend on other pods, because the added pod may make them
            // feasible. It cannot make other requests feasible.
            TraceDetail::OutcomesOnly => {
                self.state.unplaceable.retain(|(request, _)| request.spec.ignores_other_pods());
            }
            TraceDetail::Full => {
                self.before_change(node);
                self.state.received.insert(node.clone());
            }
        }
        let lowest = &mut self.state.lowest_priority;
        let new = successor::successor(self.typical.cluster, pod).into_owned();
        *lowest = lowest.map(|lowest| lowest.min(new.priority));
        let mut new = Pod { node: Some(node.clone()), nominated: None, termination: None, ..new };
        new.key = Key { name: replacement_name(pod).as_str().into(), ..pod.key.clone() };
        if self.state.snapshot.concerns_devices(&new) {
            let request = replacement(pod, self.typical.cluster);
            self.state.snapshot.allocate_devices(&request, &new.key, node);
        }
        self.state.snapshot.add(Arc::new(new), node);
    }

    /// Prepares for a change of a node: records its resource use before the first change, and forgets the requests for
    /// which no node was feasible.
    fn before_change(&mut self, node: &NodeName) {
        self.state.unplaceable.clear();
        if self.state.detail == TraceDetail::Full
            && !self.state.before.contains_key(node)
            && let Some(before) = self.state.snapshot.resource_use(node)
        {
            self.state.before.insert(node.clone(), before);
        }
    }
}

/// Returns a node as it is once it is cordoned: the node lifecycle controller also taints it (upstream
/// `doNoScheduleTaintingPass`), and spread constraints with `nodeTaintsPolicy: Honor` then leave it out.
fn cordoned(node: &Node) -> Node {
    let is_tainted = node.taints.iter().any(|taint| taint.key == *UNSCHEDULABLE);
    let taint = Taint { key: UNSCHEDULABLE.into(), effect: TaintEffect::NoSchedule, ..Taint::default() };
    let taints = node.taints.iter().cloned().chain((!is_tainted).then_some(taint)).collect();
    Node { unschedulable: true, taints, ..node.clone() }
}

/// Returns a node as the scheduler sees it after its failure: the node lifecycle controller has tainted it (upstream
/// `processTaintBaseEviction`, `doNoScheduleTaintingPass`), and it is still a domain of spread constraints. The
/// returned node has no room, because no replacement would run there, whatever taints it tolerates.
fn failed(node: &Node) -> Node {
    let node = tainted(node, &[TaintEffect::NoSchedule, TaintEffect::NoExecute]);
    Node { allocatable: Resources { pods: 0, ..node.allocatable }, ..node }
}

/// Returns a failed node with the taints that the node lifecycle controller adds to it.
pub(crate) fn tainted(node: &Node, effects: &[TaintEffect]) -> Node {
    let is_unknown = node.ready().is_none_or(|ready| ready.status != ConditionStatus::False);
    let key = if is_unknown { UNREACHABLE } else { NOT_READY };
    let missing = effects.iter().filter(|effect| {
        !CONDITION_TAINTS.iter().any(|key| node.taints.iter().any(|taint| taint.is(key, **effect)))
    });
    let taint = |effect: &TaintEffect| Taint { key: key.into(), effect: *effect, ..Taint::default() };
    let taints = node.taints.iter().cloned().chain(missing.map(taint)).collect();
    Node { taints, ..node.clone() }
}

/// Returns a node as it is once its kubelet posts Ready again: without the taints of its failure.
pub(super) fn recovered(node: &Node) -> Node {
    let is_of_failure = |taint: &&Taint| CONDITION_TAINTS.contains(&taint.key.as_str());
    let taints = node.taints.iter().filter(|taint| !is_of_failure(taint)).cloned().collect();
    Node { taints, ..node.clone() }
}

/// Keys of the taints of nodes that are not Ready.
const CONDITION_TAINTS: [&str; 2] = [NOT_READY, UNREACHABLE];

impl Environment for PlacingEnvironment<'_> {
    fn time_to_terminate(&self, pod: &Pod, grace: Span) -> Estimate {
        self.typical.time_to_terminate(pod, grace)
    }

    fn takers_if_uncordoned(&mut self, pod: &Pod) -> Vec<NodeName> {
        if self.state.detail == TraceDetail::OutcomesOnly || self.state.cancellation.is_cancelled() {
            return Vec::new();
        }
        let request = SchedulingRequest::from_pod(pod, self.typical.cluster);
        self.state.snapshot.takers_if_uncordoned(&request)
    }

    fn land(&mut self, pod: &Pod, closed: &BTreeSet<NodeName>) -> Landing {
        if self.state.cancellation.is_cancelled() {
            return Landing::Unknown;
        }
        self.close(closed);
        if let Some(why) = successor::refusal(self.typical.cluster, pod) {
            return Landing::Pending { why: format!("the API server refuses it: {why}").into() };
        }
        if let Some(node) = owner::named_node(self.typical.cluster, pod) {
            return self.land_on(pod, node);
        }
        let (landing, trace) = match self.state.fixed.get(&pod.key).cloned() {
            Some((landing, trace)) => {
                self.repeat(pod, &landing, &trace);
                (landing, trace)
            }
            None => self.place(pod),
        };
        self.state.placements.insert(pod.key.clone(), trace);
        landing
    }

    /// Tries only `nodes`, because the scheduler has already found no room for the pod on the other nodes.
    fn place_waiting(&mut self, pod: &Pod, nodes: &BTreeSet<NodeName>) -> bool {
        if self.state.cancellation.is_cancelled() {
            return false;
        }
        let request = SchedulingRequest::from_pod(pod, self.typical.cluster);
        if !self.state.snapshot.has_one_of(&request, nodes) {
            return false;
        }
        let SchedulingOutcome::Placed(placement) = self.state.snapshot.place(&request) else { return false };
        let node = placement.choice();
        let fits = nodes.contains(node);
        if fits {
            self.before_change(node);
            let placed = Pod { node: Some(node.clone()), ..pod.clone() };
            self.state.snapshot.add(Arc::new(placed), node);
        }
        fits
    }

    fn stragglers(&self) -> Stragglers {
        self.typical.stragglers()
    }

    /// The time to Ready includes the time that preempted pods take to terminate, because the new pod starts after
    /// them.
    fn time_to_ready(&self, pod: &Pod, landing: &Landing) -> Estimate {
        if self.state.detail == TraceDetail::OutcomesOnly {
            return Estimate::NEVER;
        }
        let start = self.typical.time_to_ready(pod, landing);
        let trace = self.state.placements.get(&pod.key);
        if trace.is_some_and(|trace| matches!(trace.obstacle, Some(Obstacle::Gated(_)))) {
            // The pod starts when its scheduling gates are removed, at a time that is not known.
            return Estimate::NEVER;
        }
        if trace.is_some_and(|trace| trace.shared_volume.is_some() || trace.is_silent) {
            return Estimate::NEVER;
        }
        let Landing::Node { node, .. } = landing else { return start };
        let victims =
            trace.into_iter().flat_map(|trace| &trace.preempts).filter(|victim| victim.node == *node);
        let victims = victims.filter_map(|victim| self.typical.cluster.pod(&victim.pod));
        let gone = victims.map(|victim| self.typical.time_to_terminate(victim, victim.grace));
        match gone.reduce(Estimate::longer) {
            Some(gone) => gone.and_then(start),
            None => start,
        }
    }

    fn on_deletion(&mut self, pod: &Pod) {
        let Some(node) = &pod.node else { return };
        let Some(known) = self.state.snapshot.remove(&pod.key, node) else { return };
        let terminating = if known.termination.is_some() {
            known
        } else {
            let deadline = self.typical.cluster.clock().written(self.typical.now + pod.grace);
            let termination = Termination { deadline, grace: pod.grace };
            Arc::new(Pod { termination: Some(termination.into()), ..(*known).clone() })
        };
        self.state.snapshot.add(terminating, node);
        self.state.unplaceable.clear();
    }

    fn on_gone(&mut self, pod: &Pod) {
        self.release_claims(pod);
        let Some(node) = &pod.node else { return };
        self.before_change(node);
        self.state.snapshot.remove(&pod.key, node);
    }

    fn on_node_change(&mut self, node: Arc<Node>) {
        self.state.snapshot.put_node(node);
        self.state.unplaceable.clear();
    }

    fn on_failure(&mut self, nodes: &BTreeSet<NodeName>) {
        for name in nodes {
            self.state.failed.insert(name.clone());
            if let Some(node) = self.state.snapshot.node_named(name) {
                self.state.snapshot.put_node(Arc::new(failed(node)));
            }
        }
        self.state.unplaceable.clear();
    }

    fn on_recovery(&mut self, node: &NodeName) {
        self.state.failed.remove(node);
        self.state.back.insert(node.clone());
        if let Some(node) = self.typical.cluster.node(node) {
            self.state.snapshot.put_node(Arc::new(recovered(node)));
        }
        self.state.unplaceable.clear();
    }

    fn on_removal(&mut self, nodes: &BTreeSet<NodeName>) {
        nodes.iter().for_each(|node| self.state.snapshot.remove_node(node));
        self.state.unplaceable.clear();
    }

    fn fix_landings(&mut self, landings: BTreeMap<Key, Landing>, trace: &RunTrace) {
        let placed = landings.into_iter().filter(|(_, landing)| !matches!(landing, Landing::Pending { .. }));
        let fixed = placed.filter_map(|(pod, landing)| {
            let trace = trace.placements.get(&pod)?.clone();
            Some((pod, (landing, trace)))
        });
        self.state.fixed = fixed.collect();
    }

    fn trace_of(&self, pod: &Key) -> Option<Arc<PlacementTrace>> {
        self.state.placements.get(pod).cloned()
    }

    fn trace(&self) -> RunTrace {
        let receiver = |node: &NodeName| {
            let (before, after) = (*self.state.before.get(node)?, self.state.snapshot.resource_use(node)?);
            Some(Receiver { node: node.clone(), before, after, others: 0 })
        };
        let receivers = self.state.received.iter().filter_map(receiver).collect();
        RunTrace { placements: self.state.placements.clone(), receivers }
    }
}

/// Returns the request to schedule the replacement of a pod.
pub fn replacement(pod: &Pod, cluster: &Cluster) -> SchedulingRequest {
    let new = successor::successor(cluster, pod);
    let replaces = Some(pod.scheduling.clone());
    let mut request =
        SchedulingRequest { nominated: None, replaces, ..SchedulingRequest::from_pod(&new, cluster) };
    if !SchedulingRequest::keeps_name_of(pod) {
        request.name = Default::default();
    }
    request
}

/// Returns the name of a pod's replacement. If the name is not known yet, returns a text that no pod can have as its
/// name.
fn replacement_name(pod: &Pod) -> String {
    if SchedulingRequest::keeps_name_of(pod) {
        pod.key.name.to_string()
    } else {
        format!("{} (its replacement)", pod.key.name)
    }
}
