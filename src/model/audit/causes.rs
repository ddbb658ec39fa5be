//! Finds the causes in the plan of one node's drain: why the drain does not end, and what is lost.

use std::sync::Arc;

use super::finding::{Finding, FindingKind, FindingSubject, Fix};
use crate::model::suggestions::for_cordon_wait;
use kordon_core::{
    cluster::{Cluster, Key, Name, NodeName, Pod},
    placement::{SchedulingRequest, Snapshot, VolumeTopology, volume_topology::VolumeReach},
    plan::{
        BlockPattern, CordonWait, NotRecreated, OutcomeKind, Plan, PodOutcome, PodPlan, PodWarning,
        PreemptedPod, Recreation, StuckReason, Verdict, Warning, budget::BudgetNumbers,
        eviction_note::ending_claims, owner, words::counted,
    },
};

/// Returns the causes in the plan of a drain, one finding for each pod and cause. Without a snapshot, there are no
/// findings about volumes, nor about replacements that find no node.
pub(super) fn find(plan: &Plan, cluster: &Cluster, snapshot: Option<&Snapshot>) -> Vec<Finding> {
    let mut found = Vec::new();
    for row in plan.pods.iter().filter(|row| leaves_or_should(&row.verdict)) {
        let (Some(pod), Some(node)) = (cluster.pod(&row.pod), &row.node) else { continue };
        let cordon_wait = plan.warnings.iter().find_map(|warning| match warning {
            Warning::WaitsForUncordon(wait) if wait.node == *node => Some(wait),
            _ => None,
        });
        let causes = CausesOfPod { row, pod, node, cluster, snapshot, cordon_wait };
        for mut finding in causes.all() {
            finding.pods.insert(row.pod.clone());
            finding.workloads.insert(workload_of(cluster, pod));
            finding.nodes.insert(node.clone());
            found.push(finding);
        }
        found.extend(row.preempted().filter_map(|preempted| {
            let mut finding = of_preempted(row, preempted, cluster)?;
            finding.pods.insert(preempted.pod.clone());
            finding.workloads.insert(finding.subject.clone());
            finding.nodes.insert(node.clone());
            Some(finding)
        }));
    }
    found
}

/// Returns the finding about a pod that is preempted because a drained pod is replaced; `None` if the preempted pod is
/// recreated and finds a node.
fn of_preempted(row: &PodPlan, preempted: &PreemptedPod, cluster: &Cluster) -> Option<Finding> {
    let kind = match (OutcomeKind::for_preempted(preempted), preempted.lost) {
        (OutcomeKind::Pending, _) => FindingKind::NoNodeForReplacement,
        (_, Some(NotRecreated::JobFails(why))) if !why.is_of_job() => FindingKind::IndexFails,
        (_, Some(NotRecreated::JobFails(_) | NotRecreated::RunFails)) => FindingKind::JobFails,
        (_, Some(_)) => FindingKind::NotRecreated,
        (_, None) => return None,
    };
    let replaced = preempted.preempted_for(&row.pod);
    let text = match preempted.lost {
        Some(why) => format!("preempted by the replacement of {replaced}; {}", why.says()),
        None => format!("{preempted}, by the replacement of {replaced}"),
    };
    let subject = match cluster.pod(&preempted.pod) {
        Some(pod) => workload_of(cluster, pod),
        None => FindingSubject::new("Pod", &preempted.pod),
    };
    Some(Finding::new(kind, subject, text))
}

/// Whether the pod leaves the drained node, or should leave it.
const fn leaves_or_should(verdict: &Verdict) -> bool {
    !matches!(verdict, Verdict::Skipped(_) | Verdict::Tolerates | Verdict::DeletionCancelled)
}

/// One pod of a drained node, and what its plan says.
struct CausesOfPod<'a> {
    row: &'a PodPlan,
    pod: &'a Arc<Pod>,
    node: &'a NodeName,
    cluster: &'a Cluster,
    snapshot: Option<&'a Snapshot>,
    /// The wait of the node's drain until another node is uncordoned.
    cordon_wait: Option<&'a CordonWait>,
}

impl CausesOfPod<'_> {
    fn all(&self) -> Vec<Finding> {
        let mut found: Vec<Finding> =
            [self.hindrance(), self.loss(), self.destination(), self.returning(), self.kept()]
                .into_iter()
                .flatten()
                .collect();
        found.extend(self.row.warnings.iter().filter_map(|warning| self.warning(*warning)));
        found.extend(self.topologies().iter().filter_map(|topology| self.volume(topology)));
        found
    }

    /// Finding that says why the pod does not leave at once.
    fn hindrance(&self) -> Option<Finding> {
        let verdict = self.row.verdict.as_if_granted();
        let about = |kind, budget: &Key, text: String| {
            Finding::new(kind, FindingSubject::new("PodDisruptionBudget", budget), text)
        };
        Some(match verdict {
            Verdict::WaitsForOperator { budget, operator, pods, setting, .. } if pods.is_empty() => {
                let text = match operator.needs.setting_text(setting.as_ref()) {
                    Some(setting) => format!("{}; {setting}", operator.does.trim_end_matches('.')),
                    None => operator.does.to_owned(),
                };
                about(FindingKind::OperatorBudget, budget, text)
            }
            Verdict::WaitsForOperator { budget, pods, .. } => {
                let names: Vec<&str> = pods.iter().map(|pod| pod.name.as_str()).collect();
                let text = format!("not Ready on another schedulable node: {}", names.join(", "));
                about(FindingKind::OperatorWithoutReplica, budget, text)
            }
            Verdict::Blocked { budget, numbers, pattern, .. } => Finding {
                fixes: verdict.advice().map(|advice| Fix::advice(&advice)).unwrap_or_default(),
                ..about(kind_of(pattern), budget, blocked_text(pattern, numbers))
            },
            Verdict::TwoBudgets { budgets } => {
                let names: Vec<&str> = budgets.iter().map(|budget| budget.name.as_str()).collect();
                let key = Key { name: names.join(", ").into(), ..budgets.first()?.clone() };
                let text = "select the same pods: the API server refuses their eviction";
                Finding::new(
                    FindingKind::OverlappingBudgets,
                    FindingSubject::new("PodDisruptionBudget", &key),
                    text,
                )
            }
            Verdict::Waits { budget, pending, .. } => {
                let kind = match self.pod.is_ready() {
                    true => FindingKind::BudgetHasNoRoom,
                    false => FindingKind::UnhealthyUnderBudget,
                };
                let uncordon = self.cordon_wait.filter(|wait| pending.contains(&wait.pod));
                let fixes = uncordon.and_then(for_cordon_wait).map(Fix::from).into_iter().collect();
                Finding { fixes, ..about(kind, budget, verdict.to_string()) }
            }
            Verdict::WaitsForController { budget } => {
                about(FindingKind::BudgetNotComputed, budget, verdict.to_string())
            }
            Verdict::WaitsForNamespace => Finding::new(
                FindingKind::NamespaceTerminating,
                FindingSubject::for_cluster_object("Namespace", &*self.pod.key.namespace),
                verdict.to_string(),
            ),
            Verdict::Unknown { .. } | Verdict::Undecided { .. } => {
                self.about_workload(FindingKind::NotKnown, verdict.to_string())
            }
            Verdict::Skipped(_)
            | Verdict::Refused { .. }
            | Verdict::Terminating
            | Verdict::Leaves(_)
            | Verdict::LeavesAfter { .. }
            | Verdict::Deleted { .. }
            | Verdict::Orphaned
            | Verdict::WaitsForFinalizer { .. }
            | Verdict::Tolerates
            | Verdict::DeletionCancelled => return None,
        })
    }

    /// Finding about the loss of the pod: no controller recreates the pod, or its Job fails.
    fn loss(&self) -> Option<Finding> {
        match self.row.lost? {
            NotRecreated::Finished => None,
            NotRecreated::NoOwner => {
                Some(self.about_workload(FindingKind::NotRecreated, "has no controller"))
            }
            NotRecreated::OwnerGone => {
                Some(self.about_workload(FindingKind::NotRecreated, "its controller is gone"))
            }
            NotRecreated::JobFails(why) if !why.is_of_job() => {
                Some(self.about_workload(FindingKind::IndexFails, INDEX_FAILS))
            }
            NotRecreated::JobFails(why) => {
                let text = self.row.outcome.reasons().join("; ");
                let text = if text.is_empty() { why.to_string() } else { text };
                Some(self.about_workload(FindingKind::JobFails, text))
            }
            NotRecreated::RunFails => {
                let text = "fails: its controller creates no second pod";
                Some(self.about_workload(FindingKind::JobFails, text))
            }
        }
    }

    /// Finding about the pod's replacement: why it does not run, or why its outcome is not known.
    fn destination(&self) -> Option<Finding> {
        match &self.row.outcome {
            PodOutcome::Pending { cause, .. } => {
                Some(self.about_workload(FindingKind::NoNodeForReplacement, cause.to_string()))
            }
            PodOutcome::Refused(refusal) => {
                let subject = FindingSubject::new("ResourceQuota", &refusal.quota);
                Some(Finding::new(FindingKind::QuotaRefuses, subject, refusal.numbers()))
            }
            PodOutcome::Stuck(
                StuckReason::LowerOrdinal { .. }
                | StuckReason::Volume { .. }
                | StuckReason::SharedVolume { .. }
                | StuckReason::SilentNode { .. }
                | StuckReason::Rejected { .. },
            ) => {
                let text = self.row.outcome.to_string();
                Some(self.about_workload(FindingKind::ReplacementStuck, text))
            }
            PodOutcome::Unknown { why } => {
                let is_known = self.snapshot.is_none()
                    && owner::recreation(self.cluster, self.pod) != Recreation::Unknown;
                (!is_known).then(|| self.about_workload(FindingKind::NotKnown, why.to_string()))
            }
            _ => None,
        }
    }

    /// Finding about a pod that comes back to the node that it leaves.
    fn returning(&self) -> Option<Finding> {
        let named = owner::named_node(self.cluster, self.pod).is_some_and(|named| named == *self.node);
        if named {
            let text = format!("its template names node {}", self.node);
            return Some(self.about_workload(FindingKind::ComesBack, text));
        }
        let is_back = self.row.outcome.kind() == OutcomeKind::SameNode;
        is_back.then(|| self.about_workload(FindingKind::ComesBack, "it tolerates the cordon"))
    }

    /// Finding about a pod that autoscalers leave on its node. Other drains evict it.
    fn kept(&self) -> Option<Finding> {
        let texts: Vec<&str> = self.pod.kept_from.texts().collect();
        (!texts.is_empty()).then(|| self.about_workload(FindingKind::KeepsNode, texts.join("; ")))
    }

    fn warning(&self, warning: PodWarning) -> Option<Finding> {
        let kind = match warning {
            PodWarning::EmptyDirData | PodWarning::MemoryData | PodWarning::EphemeralVolume => {
                FindingKind::DataLost
            }
            PodWarning::ClaimDeleted => return Some(self.deleted_claims()),
            PodWarning::SingleReplica if self.cluster.budgets_of(self.pod).next().is_none() => {
                FindingKind::SingleReplica
            }
            PodWarning::HeldByFinalizer => FindingKind::Finalizer,
            PodWarning::HostPathData => FindingKind::HostPath,
            PodWarning::SwitchesOver | PodWarning::OperatorRestarts => FindingKind::Switchover,
            PodWarning::KubeletDown => {
                let subject = FindingSubject::for_cluster_object("Node", &**self.node);
                let text = "pods that are deleted there stay Terminating";
                return Some(Finding::new(FindingKind::KubeletDown, subject, text));
            }
            PodWarning::SingleReplica
            | PodWarning::MayReturn
            | PodWarning::LastReady
            | PodWarning::Critical
            | PodWarning::RemovedByForce
            | PodWarning::DuplicateIdentity
            | PodWarning::NotRecreatedWhileTainted
            | PodWarning::OperatorRecreates
            | PodWarning::NoReplica
            | PodWarning::OperatorDenies
            | PodWarning::RestartsGroup
            | PodWarning::RolloutInProgress => return None,
        };
        Some(self.about_workload(kind, warning.to_string()))
    }

    /// Findings about the pod's claims that are being deleted, and about the data in them.
    fn deleted_claims(&self) -> Finding {
        let names: Vec<&str> = ending_claims(self.cluster, self.pod).map(Name::as_str).collect();
        let names = Key::new(&self.pod.key.namespace, &names.join(", "));
        let subject = FindingSubject::new("PersistentVolumeClaim", &names);
        let text = "is being deleted, and goes with its last pod: its volume, too, unless the reclaimPolicy is Retain";
        Finding::new(FindingKind::DataLost, subject, text)
    }

    fn topologies(&self) -> Vec<VolumeTopology> {
        let Some(snapshot) = self.snapshot.filter(|_| !self.pod.scheduling.volumes.is_empty()) else {
            return Vec::new();
        };
        snapshot.volume_topology(&SchedulingRequest::from_pod(self.pod, self.cluster))
    }

    fn volume(&self, topology: &VolumeTopology) -> Option<Finding> {
        match &topology.place {
            VolumeReach::Nodes(nodes) if nodes.len() == 1 => {
                let key = Key { namespace: self.pod.key.namespace.clone(), name: topology.claim.clone() };
                let subject = FindingSubject::new("PersistentVolumeClaim", &key);
                Some(Finding::new(FindingKind::LocalVolume, subject, topology.place.to_string()))
            }
            VolumeReach::Zones(zones) if zones.len() == 1 => {
                let subject = FindingSubject::for_cluster_object("Zone", zones[0].clone());
                let text = "replacements start in this zone only, because of their volumes";
                Some(Finding::new(FindingKind::ZonalVolume, subject, text))
            }
            VolumeReach::Nodes(_) | VolumeReach::Zones(_) | VolumeReach::Some => None,
        }
    }

    /// A finding about the workload of the pod (the Deployment, not its ReplicaSet), or about the pod itself if the pod
    /// has no workload.
    fn about_workload(&self, kind: FindingKind, text: impl Into<String>) -> Finding {
        Finding::new(kind, workload_of(self.cluster, self.pod), text)
    }
}

/// The workload of the pod (the Deployment, not its ReplicaSet), or the pod itself if it has no workload.
fn workload_of(cluster: &Cluster, pod: &Pod) -> FindingSubject {
    match (owner::workload(cluster, pod), &pod.owner) {
        (Some(workload), _) => FindingSubject::new(workload.kind.as_str(), &workload.key),
        (None, Some(owner)) => {
            let key = Key { namespace: pod.key.namespace.clone(), name: owner.name.clone() };
            FindingSubject::new(owner.kind.as_str(), &key)
        }
        (None, None) => FindingSubject::new("Pod", &pod.key),
    }
}

/// The text about a failing index of a Job. It is the same for all indexes of the Job.
const INDEX_FAILS: &str = "an index of it fails for good; the Job goes on";

/// Says why a budget blocks an eviction, with the budget's numbers.
fn blocked_text(pattern: &BlockPattern, numbers: &BudgetNumbers) -> String {
    match pattern {
        BlockPattern::CannotBeMet { needs, max_healthy, .. } => {
            let needs = usize::try_from(*needs).unwrap_or_default();
            format!("needs {}, and has {max_healthy} at most", counted(needs, "healthy pod", "healthy pods"))
        }
        pattern => {
            let text = pattern.to_string();
            let text = text.trim_start_matches("can never be allowed: ");
            format!("needs {} healthy, has {}; {text}", numbers.desired, numbers.healthy)
        }
    }
}

/// Kind of the finding about a budget that blocks an eviction, by the reason why it blocks.
const fn kind_of(pattern: &BlockPattern) -> FindingKind {
    match pattern {
        BlockPattern::CannotBeMet { .. }
        | BlockPattern::NothingGiven
        | BlockPattern::SyncFailed { .. }
        | BlockPattern::ExpectsNone => FindingKind::BudgetNeverAllows,
        BlockPattern::AllHealthy { .. } | BlockPattern::OperatorLacks { .. } => {
            FindingKind::BudgetNeverAllows
        }
        BlockPattern::NoReplica { .. } => FindingKind::OperatorWithoutReplica,
        BlockPattern::NotCordoned { .. } | BlockPattern::NotMoved { .. } => FindingKind::OperatorBudget,
        BlockPattern::Unhealthy { .. } => FindingKind::UnhealthyUnderBudget,
        BlockPattern::ReplacementPending { .. }
        | BlockPattern::NotRecreated { .. }
        | BlockPattern::StuckTerminating { .. }
        | BlockPattern::NeverReady { .. } => FindingKind::ReplacementsNotHealthy,
        BlockPattern::Broken { .. } => FindingKind::BudgetNotComputed,
    }
}
