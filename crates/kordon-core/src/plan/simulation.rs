//! Simulation of evictions and deletions as a chain of events on a virtual timeline
//! (docs/upstream/operator-actions.md#6.4).
//!
//! All groups of pods share the budgets. [`Retry`] decides when a refused pod is retried. A replacement counts as
//! healthy once it is Ready. A run ends when no event is left. A pod whose budgets are not known leaves at the first
//! attempt.

mod run;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use self::run::SimulationRun;
use super::{
    action::{RemovalMode, Retry},
    budget::{self, BudgetState, DISRUPTION_TIMEOUT},
    environment::{Bound, Environment, Estimate, has_running_kubelet},
    eviction::{EvictionBlock, EvictionDecision, PodState},
    forced_removal::removes_by_force,
    gaps,
    job_failure::JobFailure,
    job_failures::{self},
    landing::Landing,
    owner::{self, NotRecreated, Recreation},
    placement_trace::RunTrace,
    quota::QuotaRefusal,
    replacement::{LivePods, Replacement},
    rules::EvictionRules,
    starting::{Awaited, LostPod, StartingPod},
    successor,
    surge::{Surge, SurgeRun},
    switchover::{BudgetsAfterMove, Switchover, role_of, switchover},
    timeline::{GiveUpReason, PlanMoment},
    verdict::OperatorAct,
};
use crate::cluster::{Budget, Cluster, Key, NodeName, Pod, Uid};
use kordon_time::{Span, Timestamp};

/// The removal that is simulated.
#[derive(Clone, Debug)]
pub struct SimulationInput {
    pub groups: Vec<RemovalGroup>,
    pub mode: RemovalMode,
    /// Grace period for all pods, in place of the pods' own; `None` keeps the grace period of each pod.
    pub grace: Option<Span>,
    /// Time limit for the removal of one group of pods.
    pub timeout: Option<Span>,
    /// The removal stops waiting for a pod whose deletion is overdue by more than this; `None` to wait for every pod.
    pub skip_wait_for_delete: Option<Span>,
    /// Maximum number of groups of pods that are removed at the same time.
    pub parallel: usize,
    pub retry: Retry,
    /// Nodes on which no replacement lands, because they are cordoned.
    pub closed: BTreeSet<NodeName>,
    /// Deployments that are scaled up by one, from the start of the first group with pods of the Deployment until the
    /// last of these pods leaves.
    pub surges: Vec<Surge>,
}

impl SimulationInput {
    /// Returns whether the controller of a pod is a pod that is also removed.
    pub fn removes_owner_of(&self, pod: &Pod) -> bool {
        owner::is_owned_by_any(pod, self.groups.iter().flat_map(|group| &group.pods))
    }
}

/// Pods that are removed together.
#[derive(Clone, Debug, Default)]
pub struct RemovalGroup {
    /// The node that is drained; `None` if the action names pods.
    pub node: Option<NodeName>,
    /// Pods, in the order in which their removal is tried.
    pub pods: Vec<Arc<Pod>>,
}

/// The result of one simulated run.
#[derive(Clone, Debug, Default)]
pub struct RunResult {
    /// Results of the groups of pods, in the order of the input.
    pub groups: Vec<GroupResult>,
    /// Time at which the removal of all groups of pods has ended; `None` means never.
    pub ended: Option<Timestamp>,
    pub pods: BTreeMap<Key, PodResult>,
    /// Times at which starting pods became Ready. The plan does not remove these pods.
    pub started: BTreeMap<Key, Timestamp>,
    /// What became of each Deployment that was scaled up by one (surge).
    pub surges: BTreeMap<Key, SurgeRun>,
    /// States of the pods' budgets at the end of the run.
    pub budgets: BTreeMap<Key, BudgetState>,
    /// Events of the run, in order of time.
    pub moments: Vec<PlanMoment>,
    /// Traces of the placements of replacements.
    pub trace: RunTrace,
}

impl RunResult {
    /// Returns where replacements landed, by the pod that was replaced.
    pub fn landings(&self) -> BTreeMap<Key, Landing> {
        let landing = |result: &PodResult| Some(result.replacement.as_ref()?.landing.clone());
        let of_pods = self.pods.iter().filter_map(|(pod, result)| Some((pod.clone(), landing(result)?)));
        let of_surges = self
            .surges
            .iter()
            .filter_map(|(deployment, run)| Some((stand_in_key(deployment), run.landing.clone()?)));
        of_pods.chain(of_surges).collect()
    }
}

/// Returns the key that stands for the new pod of a surge (a Deployment that is scaled up by one) in a run. The run
/// treats the new pod as the replacement of a pod with this key.
pub(super) fn stand_in_key(deployment: &Key) -> Key {
    Key { name: format!("{}-surge", deployment.name).into(), ..deployment.clone() }
}

/// The result of the removal of one group of pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupResult {
    pub started: Timestamp,
    /// Time at which the removal of the group ended; `None` means never.
    pub ended: Option<Timestamp>,
    /// Whether the removal of an earlier group never ends. If so, this group starts only if the operator continues
    /// anyway.
    pub after_incomplete: bool,
}

/// The result of the removal of one pod.
#[derive(Clone, Debug, Default)]
pub struct PodResult {
    /// The decision of the eviction subresource at the first attempt.
    pub first_decision: Option<EvictionDecision>,
    /// Why the last refused eviction was refused.
    pub block: Option<EvictionBlock>,
    /// Time at which the pod's deletion started.
    pub leaves: Option<Timestamp>,
    /// Time at which the pod's object was gone.
    pub gone: Option<Timestamp>,
    /// How the removal of the pod ended; `None` if it never ends.
    pub end: Option<TaskEnd>,
    /// Pods whose evictions had used up disruptions of this pod's budget before this pod was first refused.
    pub behind: Vec<Key>,
    /// Number of pods of this pod's budget that became Ready between this pod's first refusal and its eviction.
    pub recoveries: u32,
    pub replacement: Option<Replacement>,
    /// The Deployment of the pod, if it was scaled up by one (surge) and the pod is the last of its old pods to leave.
    /// The surge's new pod then counts as the pod's replacement.
    pub last_of_surge: Option<Key>,
    /// The pod of a lower ordinal that must be available before the pod's StatefulSet creates its replacement.
    pub waits_for: Option<Key>,
    /// Why the pod's Job, or its index, fails.
    pub job_failure: Option<JobFailure>,
    /// The quota that refused the pod's replacement at first.
    pub quota: Option<QuotaRefusal>,
    /// What the pod's Kubernetes operator did so that the pod could leave.
    pub operator: Option<OperatorAct>,
}

/// How the removal of a pod ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskEnd {
    Gone,
    GaveUp(GiveUpReason),
}

/// A simulation before its first run: the state with which all runs start.
#[derive(Clone, Debug)]
pub struct Simulation<'a> {
    cluster: &'a Cluster,
    input: &'a SimulationInput,
    now: Timestamp,
    tasks: Vec<Task>,
    budgets: BTreeMap<Key, BudgetState>,
    /// For each entry of a budget's `disruptedPods`, the time at which the entry expires, and the budget.
    disruptions_expire: Vec<(Timestamp, Key)>,
    starting: Vec<StartingPod>,
    /// Tasks of pods that leave lost nodes whether or not the plan is applied, each with the time until the pod's
    /// deletion starts.
    evicted: Vec<(usize, Estimate)>,
    /// Roles, such as the primary of a database, that Kubernetes operators move away from drained nodes.
    moves: Vec<MovedRole>,
    live_pods: LivePods,
    surges: Vec<SimulatedSurge>,
}

/// A Deployment that is scaled up by one (surge), with the tasks that remove its pods.
#[derive(Clone, Debug)]
struct SimulatedSurge {
    surge: Surge,
    /// Placeholder for the surge's new pod: a copy of an old pod with another key and uid.
    pod: Arc<Pod>,
    tasks: Vec<usize>,
    /// Budgets whose numbers include the new pod and the replicas of the Deployment.
    budgets: Vec<Key>,
    stage: SurgeStage,
    replacement: Option<Replacement>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SurgeStage {
    NotStarted,
    ScaledUp,
    ScaledBack,
}

/// The removal of one pod, or the end of a pod that the input does not remove: a terminating pod that is created again,
/// or a pod that leaves a lost node.
#[derive(Clone, Debug)]
struct Task {
    pod: Arc<Pod>,
    /// Index of the pod's group. For a pod that the input does not remove, the index equals the number of groups; tasks
    /// of such pods come last.
    group: usize,
    stage: TaskStage,
    state: PodState,
    /// Whether the budgets of the pod count it as healthy.
    healthy: bool,
    /// Budgets that the eviction subresource checks before it evicts the pod.
    protected_by: Vec<Key>,
    /// Budgets whose numbers include the pod.
    counted_by: Vec<Key>,
    /// Budgets whose numbers include the pod's replacement.
    counted_again_by: Vec<Key>,
    recreation: Recreation,
    next_attempt: Option<Timestamp>,
    give_up_scheduled: bool,
    /// Value of [`SimulationRun::recoveries`] for the budget that refused this pod, at the pod's first refusal.
    recoveries_before: u32,
    gone_at: Option<Timestamp>,
    /// Whether the pod's owner, which waits for the pod to end, has noticed its end. The pod's object may still exist.
    has_failed: bool,
    /// Whether quotas still count the pod.
    counts: bool,
    /// Whether the pod garbage collector removes the pod by force, because its node is out of service.
    is_removed_by_force: bool,
    /// The Kubernetes operator that deletes the pod itself once the pod's node is drained, whatever the pod's budgets
    /// are.
    deleted_by: Option<&'static str>,
    /// End of the grace period; `None` if the pod is not terminating, or does not use its grace period.
    grace_ends: Option<Timestamp>,
}

/// A role, such as the primary of a database, that a Kubernetes operator moves away from a pod that is removed.
#[derive(Clone, Debug)]
struct MovedRole {
    task: usize,
    operator: &'static str,
    /// Pods that have to be Ready on other nodes before the role moves.
    after: BTreeSet<Key>,
    /// Whether the Kubernetes operator itself moves the pods in `after` to other nodes.
    moves_them: bool,
    /// Budgets of the pod once it has lost the role.
    budgets: BudgetsAfterMove,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TaskStage {
    NotStarted,
    /// The removal of the pod still has to be requested, or has been refused so far.
    Requesting,
    Terminating,
    /// The removal of the pod has ended, or the pod is not removed.
    Ended,
}

impl<'a> Simulation<'a> {
    /// Prepares the simulation. `budgets` must be the result of [`budget::states`] for the pods of `input`.
    pub fn new(
        cluster: &'a Cluster,
        input: &'a SimulationInput,
        budgets: &BTreeMap<Key, BudgetState>,
        rules: &EvictionRules,
        now: Timestamp,
    ) -> Self {
        let mut simulation = Self {
            cluster,
            input,
            now,
            tasks: Vec::new(),
            budgets: budgets.clone(),
            disruptions_expire: Vec::new(),
            starting: Vec::new(),
            evicted: Vec::new(),
            moves: Vec::new(),
            live_pods: LivePods::default(),
            surges: Vec::new(),
        };
        let known = || budgets.keys().filter_map(|key| cluster.budgets().get(key));
        for budget in known() {
            simulation.disruptions_expire.extend(disruptions_expire(cluster, budget, rules, now));
        }
        let removed = input.groups.iter().flat_map(|group| &group.pods);
        let removed = removed.map(|pod| (&pod.key, pod)).collect();
        let budgets: Vec<_> = known().collect();
        let awaited = Awaited { cluster, removed: &removed, budgets: &budgets, rules };
        simulation.starting = awaited.starting();
        for (group, members) in input.groups.iter().enumerate() {
            for pod in &members.pods {
                simulation.add_task(pod, group, rules);
            }
        }
        for surge in &input.surges {
            simulation.add_surge(surge);
        }
        for pod in awaited.returning() {
            simulation.add_task(&pod, input.groups.len(), rules);
        }
        for LostPod { pod, after } in awaited.evicted(now) {
            simulation.evicted.push((simulation.tasks.len(), after));
            simulation.add_task(&pod, input.groups.len(), rules);
        }
        simulation
    }

    /// Adds a Deployment that is scaled up by one (surge), if at least one of its pods is removed.
    fn add_surge(&mut self, surge: &Surge) {
        let is_of = |pod: &Pod| owner::workload(self.cluster, pod).is_some_and(|it| it.uid == surge.uid);
        let is_meant = |task: &Task| task.pod.termination.is_none() && is_of(&task.pod);
        let tasks: Vec<usize> = (0..self.tasks.len()).filter(|task| is_meant(&self.tasks[*task])).collect();
        let Some(first) = tasks.first().map(|task| &self.tasks[*task]) else { return };
        let key = stand_in_key(&surge.deployment);
        let uid: Uid = format!("{}-surge", surge.uid).as_str().into();
        self.surges.push(SimulatedSurge {
            surge: surge.clone(),
            pod: Arc::new(Pod { key, uid, ..(*first.pod).clone() }),
            budgets: first.counted_again_by.clone(),
            tasks,
            stage: SurgeStage::NotStarted,
            replacement: None,
        });
    }

    fn add_task(&mut self, pod: &Arc<Pod>, group: usize, rules: &EvictionRules) {
        let (mut protected_by, mut counted_by) = (Vec::new(), Vec::new());
        let mut is_disrupted = false;
        let is_decided = gaps::undecided(self.cluster, self.input.mode, pod).is_empty();
        for budget in self.cluster.budgets_of(pod).filter(|budget| budget::selects(budget, pod, rules)) {
            counted_by.push(budget.key.clone());
            if is_decided && budget::protects(budget, pod, rules) {
                protected_by.push(budget.key.clone());
            }
            is_disrupted |= !budget::is_healthy(self.cluster, budget, pod, self.now);
        }
        let new = successor::successor(self.cluster, pod);
        let again = self.cluster.budgets_of(&new).filter(|budget| budget::selects(budget, &new, rules));
        let counted_again_by = again.map(|budget| budget.key.clone()).collect();
        let deleted_by = self.expect_operator(pod, group, &protected_by, rules);
        let node = pod.node.as_ref().and_then(|node| self.cluster.node(node));
        // Counts the live pods of the owner before the first run, so that not every run has to count them.
        self.live_pods.count(self.cluster, pod);
        self.tasks.push(Task {
            pod: pod.clone(),
            group,
            stage: if group < self.input.groups.len() { TaskStage::NotStarted } else { TaskStage::Ended },
            state: PodState::new(self.cluster, pod),
            healthy: pod.is_ready() && pod.termination.is_none() && !is_disrupted,
            protected_by,
            counted_by,
            counted_again_by,
            recreation: self.recreation(pod),
            next_attempt: None,
            give_up_scheduled: false,
            recoveries_before: 0,
            gone_at: None,
            has_failed: false,
            counts: true,
            is_removed_by_force: node.is_some_and(|node| removes_by_force(node, rules)),
            deleted_by,
            grace_ends: None,
        });
    }

    /// Prepares what the Kubernetes operator of a pod does if the pod's budgets forbid the eviction and the pod's node
    /// is drained. Returns the operator if it deletes the pod itself.
    fn expect_operator(
        &mut self,
        pod: &Arc<Pod>,
        group: usize,
        protected_by: &[Key],
        rules: &EvictionRules,
    ) -> Option<&'static str> {
        let is_drained = self.input.groups.get(group).is_some_and(|group| group.node.is_some());
        let is_exhausted = |key: &Key| self.budgets.get(key).is_some_and(|state| state.numbers.allowed <= 0);
        if !is_drained || self.input.mode == RemovalMode::Delete || !protected_by.iter().any(is_exhausted) {
            return None;
        }
        let operator = role_of(pod)?.operator;
        match switchover(self.cluster, pod, &self.input.closed, self.now)? {
            Switchover::Moves { after, moves_them } => {
                let budgets = BudgetsAfterMove::new(self.cluster, pod, &mut self.budgets, rules, self.now);
                let task = self.tasks.len();
                self.moves.push(MovedRole { task, operator, after, moves_them, budgets });
                None
            }
            Switchover::Restarts => Some(operator),
            Switchover::NoReplica | Switchover::Overdue { .. } | Switchover::Unknown => None,
        }
    }

    /// Returns whether and when the owner of a pod creates its replacement.
    fn recreation(&self, pod: &Pod) -> Recreation {
        let has_kubelet = pod.node.as_ref().is_some_and(|node| has_running_kubelet(self.cluster, node));
        match owner::recreation(self.cluster, pod) {
            Recreation::Immediately if self.input.removes_owner_of(pod) => {
                Recreation::Never(NotRecreated::OwnerGone)
            }
            Recreation::Immediately if has_kubelet && job_failures::waits_for_end(self.cluster, pod) => {
                Recreation::WhenGone
            }
            other => other,
        }
    }

    /// Simulates one run. Every estimate has the value that `bound` selects.
    pub fn run<E: Environment>(&self, environment: E, bound: Bound) -> RunResult {
        SimulationRun::new(self, environment, bound).finish()
    }
}

/// Returns when the entries of a budget's `disruptedPods` expire, each time with the key of the budget. Leaves out
/// entries of pods that are terminating or not Ready, because these pods do not count as healthy when the entry
/// expires.
fn disruptions_expire(
    cluster: &Cluster,
    budget: &Budget,
    rules: &EvictionRules,
    now: Timestamp,
) -> Vec<(Timestamp, Key)> {
    budget::pods_of(cluster, budget, rules)
        .filter(|pod| pod.is_ready() && pod.termination.is_none())
        .filter_map(|pod| budget.status.disrupted_pods.get(&pod.key.name))
        .map(|granted| cluster.local(*granted) + DISRUPTION_TIMEOUT)
        .filter(|expires| *expires > now)
        .map(|expires| (expires, budget.key.clone()))
        .collect()
}
