//! The plan of an action: its writes, and their effects on nodes, pods and budgets.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    action::Action,
    budget::BudgetState,
    context::PlanContext,
    filter::DrainFlag,
    job_failure::JobFailure,
    job_owner::{self, JobOwner},
    kubectl,
    node_plan::{NodeChange, NodePlan},
    not_modelled::NotModelled,
    outcome_kind::OutcomeKind,
    owner::{self, NotRecreated},
    permission::{self, Permission},
    placement_trace::Receiver,
    pod_group::{self, RestartingGroup},
    pod_plan::{PodPlan, Window},
    quota::QuotaRefusal,
    step::PlanStep,
    surge::SurgePlan,
    timeline::PlanMoment,
    totals::PlanTotals,
    undo::{NodeUndo, Undo},
    verdict::Verdict,
    warning::Warning,
    words::{self, counted},
};
use crate::{
    cluster::{Cluster, Gaps, Key, Name, NodeName, Pod, WorkloadKind},
    engine::ServerVersion,
};
use kordon_time::Timestamp;

/// The predicted effects of an action.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub action: Action,
    /// Time at which the plan was made. All times in the plan are on the same clock as this time.
    pub made: Timestamp,
    pub version: ServerVersion,
    /// Nodes, in the order in which the action handles them.
    pub nodes: Vec<NodePlan>,
    /// Pods, in the order of their nodes in `nodes`. The pods of a node are in the order in which their removal is
    /// tried, skipped pods last. If taints delete the pods, all pods are in order of departure.
    pub pods: Vec<PodPlan>,
    /// Nodes on which replacements land, by name; empty if placements are not computed.
    pub receivers: Vec<Receiver>,
    /// Pending pods that land on a node because of the plan; empty if placements are not computed.
    pub arrivals: Vec<Arrival>,
    /// Budgets that select pods of the plan, by name.
    pub budgets: Vec<BudgetPlan>,
    /// The decision of a drain with `--surge` about each workload whose budgets can never allow an eviction.
    pub surges: Vec<SurgePlan>,
    /// Writes, in the order in which they are made.
    pub steps: Vec<PlanStep>,
    /// Predicted events with their likely times, in order of time.
    pub timeline: Vec<PlanMoment>,
    pub totals: PlanTotals,
    pub warnings: Vec<Warning>,
    /// Flags of kubectl drain that are missing. Without them, the action is refused.
    pub needs: BTreeSet<DrainFlag>,
    /// Permissions that the action needs.
    pub permissions: Vec<Permission>,
    /// The equivalent kubectl command; `None` if there is none.
    pub command: Option<String>,
    pub undo: Undo,
    pub assumptions: Vec<&'static str>,
    /// What the plan does not model, although it may change what happens to its pods.
    pub not_modelled: Vec<NotModelled>,
}

/// A Pending pod that lands on a node because of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub pod: Key,
    pub node: NodeName,
    pub why: Name,
}

/// A budget that selects pods of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct BudgetPlan {
    pub budget: Key,
    pub before: BudgetState,
    /// The likely state of the budget at the end of the plan.
    pub after: BudgetState,
    /// Number of pods in the plan that the budget protects.
    pub pods: usize,
}

/// How a plan is expected to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Prospect {
    /// The action completes.
    Completes,
    /// It is unknown whether the action completes, because objects that decide this are not known.
    Unknown,
    /// The action waits for something that may never happen, or its timeout is too short.
    Stalls,
    /// At least one pod can never leave.
    Blocked,
    /// The action is refused for at least one node or pod, for example because a flag is missing.
    Refused,
}

impl Plan {
    /// Creates the plan of an action, still without nodes, pods and steps.
    pub(super) fn blank<E>(action: &Action, context: &PlanContext<'_, E>) -> Self {
        Self {
            action: action.clone(),
            made: context.now,
            version: context.rules.version,
            nodes: Vec::new(),
            pods: Vec::new(),
            receivers: Vec::new(),
            arrivals: Vec::new(),
            budgets: Vec::new(),
            surges: Vec::new(),
            steps: Vec::new(),
            timeline: Vec::new(),
            totals: PlanTotals::default(),
            warnings: Vec::new(),
            needs: BTreeSet::new(),
            permissions: Vec::new(),
            command: kubectl::command(action),
            undo: Undo::default(),
            assumptions: Vec::new(),
            not_modelled: Vec::new(),
        }
    }

    /// Decides the outcome of each pod in the plan, then computes the totals of pods.
    pub(super) fn count_pods(&mut self, cluster: &Cluster) {
        for plan in &mut self.pods {
            if let Some(pod) = cluster.pod(&plan.pod) {
                plan.if_it_leaves = plan.outcome_if_it_leaves(cluster, pod);
                plan.outcome = plan.decide_outcome(cluster, pod);
                plan.keep_only_what_is_known();
            }
        }
        self.totals = PlanTotals::from_pods(&self.pods, self.made);
    }

    /// Adds a warning if the plan deletes pods whose eviction the eviction subresource would refuse, or may refuse.
    pub(super) fn warn_of_ignored_budgets(&mut self) {
        let is_deleted = |pod: &&PodPlan| {
            matches!(
                pod.verdict.as_if_granted(),
                Verdict::Leaves(_) | Verdict::Deleted { .. } | Verdict::Orphaned
            )
        };
        let is_refused = |pod: &PodPlan| pod.answer.as_ref().map(|answer| answer.code != 201);
        let pods = self.pods.iter().filter(is_deleted).count();
        let refused: Option<Vec<bool>> = self.pods.iter().filter(is_deleted).map(is_refused).collect();
        let blocked = refused.map(|refused| refused.into_iter().filter(|refused| *refused).count());
        if pods > 0 && blocked != Some(0) {
            self.warnings.push(Warning::BudgetsIgnored { pods, blocked });
        }
    }

    /// Adds a warning for each quota that refuses replacements.
    pub(super) fn warn_of_quotas(&mut self) {
        let mut by_quota: BTreeMap<&Key, Vec<&QuotaRefusal>> = BTreeMap::new();
        for refusal in self.pods.iter().filter_map(|pod| pod.quota.as_ref()) {
            by_quota.entry(&refusal.quota).or_default().push(refusal);
        }
        let warning = |(quota, refusals): (&Key, Vec<&QuotaRefusal>)| Warning::QuotaExceeded {
            quota: quota.clone(),
            numbers: refusals[0].numbers(),
            pods: refusals.len(),
            admitted: refusals.iter().filter(|refusal| refusal.admitted.is_some()).count(),
        };
        let warnings: Vec<Warning> = by_quota.into_iter().map(warning).collect();
        self.warnings.extend(warnings);
    }

    /// Adds a warning if replacements preempt pods that then have nowhere to run.
    pub(super) fn warn_of_preemption(&mut self) {
        let preempted: BTreeSet<&Key> =
            self.pods.iter().flat_map(PodPlan::preempted).map(|pod| &pod.pod).collect();
        let stranded = self.pods.iter().flat_map(PodPlan::preempted).filter_map(|pod| {
            let kind = OutcomeKind::for_preempted(pod);
            kind.has_nowhere_to_run().then_some((&pod.pod, kind))
        });
        let (pods, kinds): (BTreeSet<&Key>, Vec<OutcomeKind>) = stranded.unzip();
        if let Some(first) = pods.first() {
            let (pods, outcomes) = (preempted.len(), kinds.into_iter().collect());
            self.warnings.push(Warning::Preempts { pods, pod: (*first).clone(), outcomes });
        }
    }

    /// Adds a warning for each Job that fails, or of which an index fails, because its pods leave or are preempted.
    pub(super) fn warn_of_jobs(&mut self, cluster: &Cluster) {
        let mut by_job: BTreeMap<Key, (JobFailure, BTreeSet<&Key>)> = BTreeMap::new();
        for pod in &self.pods {
            let row = match (pod.lost, &pod.owner) {
                (Some(NotRecreated::JobFails(why)), Some((_, name))) => Some((&pod.pod, name, why)),
                _ => None,
            };
            let preempted = pod.preempted().filter_map(|victim| {
                let Some(NotRecreated::JobFails(why)) = victim.lost else { return None };
                let owner = cluster.pod(&victim.pod)?.owner.as_ref()?;
                Some((&victim.pod, &owner.name, why))
            });
            for (pod, name, why) in row.into_iter().chain(preempted) {
                let job = Key { namespace: pod.namespace.clone(), name: name.clone() };
                by_job.entry(job).or_insert((why, BTreeSet::new())).1.insert(pod);
            }
        }
        let warning = |(key, (why, pods)): (Key, (JobFailure, BTreeSet<&Key>))| {
            let job = owner::named(cluster, WorkloadKind::Job, &key.namespace, &key.name);
            let job = job.filter(|_| why.is_of_job());
            let live = job.map_or(0, |job| job_owner::live_pods(cluster, job).count());
            Warning::JobFails {
                job: key,
                why,
                pods: pods.len(),
                others: live.saturating_sub(pods.len()),
                owner: job.and_then(|job| JobOwner::for_job(cluster, job)),
            }
        };
        let warnings: Vec<Warning> = by_job.into_iter().map(warning).collect();
        self.warnings.extend(warnings);
    }

    /// Adds a warning for each group of pods that restarts because some of its pods leave.
    pub(super) fn warn_of_groups(&mut self, cluster: &Cluster) {
        let leaves = |row: &&PodPlan| row.verdict.as_if_granted().may_leave();
        let leaving = self.pods.iter().filter(leaves).filter_map(|row| cluster.pod(&row.pod));
        let groups = pod_group::restarting(cluster, leaving.map(|pod| &**pod));
        let warning = |RestartingGroup { set, index, leads, others }| Warning::GroupRestarts {
            set,
            index,
            leads,
            others,
        };
        let warnings: Vec<Warning> = groups.map(warning).collect();
        self.warnings.extend(warnings);
    }

    /// Adds a warning for each pod that leaves and owns pods that the plan does not remove: the garbage collector
    /// deletes the owned pods.
    pub(super) fn warn_of_owned_pods(&mut self, cluster: &Cluster) {
        let leaves = |row: &&PodPlan| row.verdict.as_if_granted().may_leave();
        let leaving: BTreeMap<&Key, &PodPlan> =
            self.pods.iter().filter(leaves).map(|row| (&row.pod, row)).collect();
        let owned = |row: &&PodPlan| {
            let stays = |pod: &&Arc<Pod>| pod.lives() && !leaving.contains_key(&pod.key);
            cluster.pods_owned_by(&row.uid).filter(stays).count()
        };
        let warning = |row: &&PodPlan| match owned(row) {
            0 => None,
            pods => Some(Warning::OwnedPodsDeleted { pod: row.pod.clone(), pods }),
        };
        let warnings: Vec<Warning> = leaving.values().filter_map(warning).collect();
        self.warnings.extend(warnings);
    }

    /// Computes the totals of nodes, the permissions and the undo from the plan's nodes and steps.
    pub(super) fn finish_nodes(&mut self) {
        let is_change = |change: &NodeChange| {
            !matches!(change, NodeChange::Unchanged { .. } | NodeChange::Refused { .. })
        };
        let is_refused = |node: &&NodePlan| {
            matches!(node.change, NodeChange::Refused { .. })
                || node.drain.as_ref().is_some_and(|drain| drain.refused)
        };
        self.totals.nodes = self.nodes.len();
        self.totals.changed = self.nodes.iter().filter(|node| is_change(&node.change)).count();
        self.totals.refused_nodes = self.nodes.iter().filter(is_refused).count();
        if self.pods.is_empty() {
            let now = Some(self.made);
            self.totals.ends = Window { soonest: now, likely: now, latest: now };
        }
        self.permissions = permission::of_steps(&self.steps);
        let undo = |node: &NodePlan| NodeUndo::new(node.node.clone(), node.uid.clone(), &node.change);
        self.undo.nodes = self.nodes.iter().filter_map(undo).collect();
    }

    /// Returns how the plan is expected to end. If several prospects apply, returns the worst of them.
    pub fn prospect(&self) -> Prospect {
        let totals = &self.totals;
        if totals.refused_nodes > 0 || totals.refused_pods > 0 {
            Prospect::Refused
        } else if totals.blocked > 0 {
            Prospect::Blocked
        } else if totals.wait > 0
            || totals.likely_end().is_none()
            || self.times_out()
            || self.returning() > 0
            || self.held_nodes() > 0
        {
            Prospect::Stalls
        } else if totals.undecided > 0 {
            Prospect::Unknown
        } else {
            Prospect::Completes
        }
    }

    /// Returns the number of pods that come back to the node that they leave.
    fn returning(&self) -> usize {
        let back = |warning: &Warning| match warning {
            Warning::ComesBack { pods, .. } | Warning::EvictedAgain { pods, .. } => *pods,
            _ => 0,
        };
        self.warnings.iter().map(back).sum()
    }

    /// Returns the number of nodes whose Node objects are kept by finalizers.
    fn held_nodes(&self) -> usize {
        self.warnings.iter().filter(|warning| matches!(warning, Warning::NodeHeld { .. })).count()
    }

    /// Returns whether at least one pod still exists when the timeout expires.
    pub fn times_out(&self) -> bool {
        self.pods.iter().any(|pod| pod.times_out.is_some())
    }

    /// Describes when the plan ends.
    pub fn ends(&self) -> String {
        let PlanTotals { ends: window, not_before, .. } = self.totals;
        let after = |at: Option<Timestamp>| at.map(|at| at.since(self.made));
        match after(not_before) {
            Some(span) => words::not_before(span),
            None => words::ends(after(window.likely), after(window.latest)),
        }
    }

    /// Describes in one line how the plan ends. If it does not complete, gives the reason.
    pub fn summary(&self) -> String {
        let totals = &self.totals;
        match self.prospect() {
            Prospect::Refused if self.needs.is_empty() => {
                format!("refused on {}", counted(totals.refused_nodes, "node", "nodes"))
            }
            Prospect::Refused => {
                let needs: Vec<String> = self.needs.iter().map(ToString::to_string).collect();
                let pods = counted(totals.refused_pods, "pod", "pods");
                format!("{pods} refused without {}", needs.join(" "))
            }
            Prospect::Blocked => format!("{} blocked", counted(totals.blocked, "pod", "pods")),
            Prospect::Stalls if self.times_out() => "timeout too short".into(),
            Prospect::Stalls if self.held_nodes() > 0 => {
                let nodes = counted(self.held_nodes(), "Node object stays", "Node objects stay");
                format!("{nodes} until their finalizers are removed")
            }
            Prospect::Stalls if totals.wait > 0 => {
                format!("{}, possibly forever", counted(totals.wait, "pod waits", "pods wait"))
            }
            Prospect::Stalls if self.returning() > 0 => {
                counted(self.returning(), "pod comes back to its node", "pods come back to their nodes")
            }
            Prospect::Stalls => "deleted pods stay Terminating".into(),
            Prospect::Unknown => {
                let pods = counted(totals.undecided, "pod leaves", "pods leave");
                format!("whether {pods} is unknown: {}", self.undecided())
            }
            Prospect::Completes => "completes".into(),
        }
    }

    /// Returns the unknown kinds of objects because of which it is unknown whether some pods leave.
    pub fn undecided(&self) -> Gaps {
        let gaps = self.pods.iter().filter_map(|pod| match pod.verdict.as_if_granted() {
            Verdict::Undecided { gaps } => Some(gaps.0.iter().cloned()),
            _ => None,
        });
        gaps.flatten().collect()
    }

    /// Returns the permissions of the plan for which `is_allowed` returns false.
    pub fn missing<'a>(
        &'a self,
        is_allowed: impl Fn(&Permission) -> bool + 'a,
    ) -> impl Iterator<Item = &'a Permission> {
        self.permissions.iter().filter(move |permission| !is_allowed(permission))
    }
}

impl Prospect {
    /// Returns a stable name for how a plan is expected to end.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Completes => "completes",
            Self::Unknown => "unknown",
            Self::Stalls => "stalls",
            Self::Blocked => "blocked",
            Self::Refused => "refused",
        }
    }
}
