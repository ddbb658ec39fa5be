//! Suggestions for a pod.

use std::sync::Arc;

use super::{
    Means, Suggestion, SuggestionKind, for_cordon_wait,
    nodes::{
        delete_node, force_delete, is_for_silent, is_overdue, is_silent, out_of_service, restart_kubelet,
    },
};
use crate::model::{node_state::NodeState, pending_pods::until_gone};
use kordon_core::{
    cluster::{Cluster, Key, Node, NodeName, Phase, Pod},
    plan::{
        Action, BlockPattern, CordonWait, EvictionRules, PodOutcome, RemovalOptions, Verdict,
        environment::has_running_kubelet,
        eviction_note::{HeldVolume, held_volume},
        forced_removal::{collected_within, removes_by_force},
        kubectl,
        outcome::tolerates_fencing,
        refusal,
    },
};
use kordon_time::Timestamp;

/// Facts that determine the suggestions for a pod.
#[derive(Clone, Debug)]
pub struct PodCase {
    pub pod: Arc<Pod>,
    /// The pod's node, with the node's state; `None` if the pod is not bound to an existing node.
    pub node: Option<(Arc<Node>, NodeState)>,
    pub state: PodTrouble,
    /// Time of the next event: the pod is evicted, its grace period ends, or the grace periods of the pods that it
    /// preempts end; `None` if no such time is known.
    pub next: Option<Timestamp>,
    pub knows_out_of_service: bool,
    /// Whether the pod's node is Unknown, but renews its Lease again.
    pub renews_again: bool,
    /// Whether the pod's controller creates the replacement when the pod's deletion starts.
    pub is_replaced_at_once: bool,
    /// The wait of a drain until another node is uncordoned, if this pod, or the Pending pod that its eviction waits
    /// for, would then run; `None` if there is no such wait.
    pub cordon_wait: Option<CordonWait>,
}

/// State of a pod that may need an action.
#[derive(Clone, Debug, PartialEq)]
pub enum PodTrouble {
    /// A static pod: only its kubelet starts and stops it.
    Static,
    /// The grace period is over, but a finalizer keeps the pod's object.
    HeldByFinalizer,
    /// The deletion has begun, but the kubelet that must end the pod does not answer.
    Hangs {
        /// The outcome of the pod until the kubelet answers again.
        outcome: Box<PodOutcome>,
    },
    /// The deletion has begun, and the pod garbage collector will remove the pod's object by force.
    Collected,
    /// The grace period is over, but the kubelet has not confirmed the deletion yet.
    OverdueTerminating,
    Terminating,
    Finished,
    /// The pod is not scheduled to a node.
    Pending,
    /// The pod is not scheduled to a node, and needs no help: the pods that it preempts are terminating.
    WaitsForVictims {
        /// The pod's nominated node.
        node: NodeName,
        victims: Vec<Key>,
    },
    /// The pod has a node, but starts only once its volume is detached from another node.
    WaitsForVolume(HeldVolume),
    /// The node of the pod does not exist.
    NodeGone,
    /// The node is down, or will be declared down.
    NodeDown,
    /// An eviction of the pod would be refused. The verdict is from the plan of that eviction.
    Blocked(Box<Verdict>),
    Running,
}

impl PodTrouble {
    /// Returns the state of a pod that may need an action: the first variant that applies to the pod. `node` is `None`
    /// if the pod has no node or its node does not exist.
    pub fn new(
        pod: &Arc<Pod>,
        node: Option<(&Node, NodeState)>,
        cluster: &Cluster,
        rules: &EvictionRules,
        now: Timestamp,
    ) -> Self {
        match node {
            _ if pod.mirror => Self::Static,
            _ if pod.termination.is_some() => {
                Self::of_terminating(pod, node.map(|(node, _)| node), cluster, rules, now)
            }
            _ if pod.is_finished() => Self::Finished,
            None if pod.node.is_some() => Self::NodeGone,
            None => Self::Pending,
            Some((_, state)) if state.is_failing() => Self::NodeDown,
            Some(_) => match held_volume(cluster, pod).filter(|_| pod.phase == Phase::Pending) {
                Some(held) => Self::WaitsForVolume(held),
                None => refusal(cluster, pod, rules, now)
                    .map_or(Self::Running, |verdict| Self::Blocked(Box::new(verdict))),
            },
        }
    }

    fn of_terminating(
        pod: &Pod,
        node: Option<&Node>,
        cluster: &Cluster,
        rules: &EvictionRules,
        now: Timestamp,
    ) -> Self {
        let is_overdue = is_overdue(pod, cluster, now);
        let is_silent = node.is_some_and(|node| !has_running_kubelet(cluster, &node.name));
        match node {
            Some(node) if removes_by_force(node, rules) && !pod.is_held() => Self::Collected,
            Some(_) if is_silent => {
                let outcome = Box::new(PodOutcome::for_terminating(cluster, pod));
                Self::Hangs { outcome }
            }
            None if pod.node.is_some() => Self::NodeGone,
            _ if !is_overdue => Self::Terminating,
            _ if pod.is_held() => Self::HeldByFinalizer,
            Some(_) => Self::OverdueTerminating,
            None => Self::OverdueTerminating,
        }
    }

    /// Whether this state of the pod may end if nobody acts.
    fn may_pass(&self) -> bool {
        let Self::Blocked(verdict) = self else { return true };
        match &**verdict {
            Verdict::Blocked { pattern, .. } => matches!(pattern, BlockPattern::Broken { .. }),
            Verdict::TwoBudgets { .. } => false,
            _ => true,
        }
    }
}

impl PodCase {
    /// Returns the actions that an experienced operator considers, in display order.
    pub fn kinds(&self) -> Vec<SuggestionKind> {
        use SuggestionKind::{
            Delete, DeleteNode, Evict, ForceDelete, OutOfService, RemoveFinalizers, RestartKubelet, Wait,
        };
        let is_silent = self.node.as_ref().is_some_and(|(node, _)| is_silent(node));
        let mut kinds = match &self.state {
            PodTrouble::Static => vec![],
            PodTrouble::HeldByFinalizer => vec![Wait, RemoveFinalizers],
            PodTrouble::Hangs { .. } => {
                vec![Wait, RestartKubelet, OutOfService, ForceDelete, RemoveFinalizers, DeleteNode]
            }
            PodTrouble::Collected => vec![Wait],
            PodTrouble::OverdueTerminating => vec![Wait, RestartKubelet, ForceDelete],
            PodTrouble::Terminating
            | PodTrouble::Pending
            | PodTrouble::WaitsForVictims { .. }
            | PodTrouble::WaitsForVolume(_)
            | PodTrouble::NodeGone => vec![Wait],
            PodTrouble::NodeDown if is_silent && !self.is_replaced_at_once => {
                vec![Wait, RestartKubelet, OutOfService, ForceDelete]
            }
            PodTrouble::NodeDown => vec![Wait, RestartKubelet, Delete, OutOfService],
            PodTrouble::Blocked(_) => vec![Wait, Delete],
            PodTrouble::Running if self.pod.is_of_daemon_set() => vec![Delete],
            PodTrouble::Running => vec![Evict, Delete],
            PodTrouble::Finished => vec![Delete],
        };
        kinds.retain(|kind| match kind {
            kind if self.renews_again && is_for_silent(*kind) => false,
            OutOfService => self.knows_out_of_service && is_silent && !tolerates_fencing(&self.pod),
            DeleteNode | RestartKubelet => self.node.is_some(),
            RemoveFinalizers => self.pod.is_held() || self.state == PodTrouble::HeldByFinalizer,
            // Drains that wait for each other wait forever.
            Wait => self.state.may_pass() && !self.is_in_circle(),
            _ => true,
        });
        kinds
    }

    pub fn suggestions(&self, now: Timestamp) -> Vec<Suggestion> {
        let uncordon = self.cordon_wait.as_ref().and_then(for_cordon_wait);
        let kinds = self.kinds();
        uncordon.into_iter().chain(kinds.into_iter().filter_map(|kind| self.suggestion(kind, now))).collect()
    }

    /// Whether the pod waits for drains that wait for each other.
    fn is_in_circle(&self) -> bool {
        self.cordon_wait.as_ref().is_some_and(|wait| wait.waits_in_turn.is_some())
    }

    fn suggestion(&self, kind: SuggestionKind, now: Timestamp) -> Option<Suggestion> {
        let pods = vec![self.pod.key.clone()];
        let options = RemovalOptions::default();
        let node = self.node.as_ref().map(|(node, _)| node);
        Some(match kind {
            SuggestionKind::Evict => {
                let means = Means::Plan(Action::Evict { pods, options });
                Suggestion::new(kind, means, "asks its budget, then deletes it")
            }
            SuggestionKind::Delete => {
                let means = Means::Plan(Action::Delete { pods, options });
                let text = match (&self.state, node.is_some_and(|node| is_silent(node))) {
                    (PodTrouble::NodeDown, true) => {
                        "starts its deletion: its replacement is created, and it hangs until its kubelet is back"
                    }
                    _ => "deletes it; budgets are not checked",
                };
                Suggestion::new(kind, means, text)
            }
            SuggestionKind::OutOfService => out_of_service(node?, None),
            SuggestionKind::ForceDelete => force_delete(&pods),
            SuggestionKind::DeleteNode => {
                let text = format!("removes all pods of its node {} later", collected_within());
                delete_node(node?, text)
            }
            SuggestionKind::RestartKubelet => restart_kubelet(),
            SuggestionKind::RemoveFinalizers => self.remove_finalizers(),
            SuggestionKind::Wait => self.wait(now),
            SuggestionKind::Cordon
            | SuggestionKind::Uncordon
            | SuggestionKind::Drain
            | SuggestionKind::WhatIf
            | SuggestionKind::BackInService
            | SuggestionKind::ScaleUp
            | SuggestionKind::RelaxBudget
            | SuggestionKind::AlwaysAllow
            | SuggestionKind::DeleteBudget
            | SuggestionKind::NarrowBudget
            | SuggestionKind::Place => return None,
        })
    }

    fn wait(&self, now: Timestamp) -> Suggestion {
        let text = match &self.state {
            PodTrouble::HeldByFinalizer => format!("until its finalizers are removed: {}", self.finalizers()),
            PodTrouble::Hangs { outcome } => {
                format!("until its kubelet is back, not until its grace period is over; {outcome}")
            }
            PodTrouble::Collected => "until the pod garbage collector removes it by force, within 20s".into(),
            PodTrouble::OverdueTerminating => "until its kubelet confirms the deletion".into(),
            PodTrouble::Terminating => "until its grace period ends".into(),
            PodTrouble::Pending => {
                "until the scheduler finds a node: it tries again when nodes or pods change".into()
            }
            PodTrouble::WaitsForVictims { node, victims } => {
                format!("{}: nothing is needed", until_gone(victims, node))
            }
            PodTrouble::WaitsForVolume(HeldVolume { claim, holder: Some(holder), .. }) => {
                format!("until volume {claim} is detached from the node of {holder}, which holds it")
            }
            PodTrouble::WaitsForVolume(HeldVolume { claim, node, holder: None, .. }) => {
                format!("until volume {claim} is detached from {node}")
            }
            PodTrouble::NodeGone => format!(
                "until the pod garbage collector removes it, {} after its node was deleted",
                collected_within()
            ),
            PodTrouble::NodeDown if self.next.is_some() => {
                "until its node is Ready: then it stays; without that it is evicted".into()
            }
            PodTrouble::NodeDown => "until its node is Ready".into(),
            PodTrouble::Blocked(verdict) => waits_for(verdict),
            PodTrouble::Static | PodTrouble::Finished | PodTrouble::Running => "for now".into(),
        };
        Suggestion::wait(self.wait_ends(now), text)
    }

    /// Time at which the wait ends; `None` if unknown. The end of the grace period does not count while the pod's
    /// kubelet is down, because the pod then stays.
    fn wait_ends(&self, now: Timestamp) -> Option<Timestamp> {
        match self.state {
            PodTrouble::Hangs { .. } | PodTrouble::Collected => None,
            _ => self.next.filter(|at| *at > now),
        }
    }

    /// Suggests removing the finalizers. A finalizer keeps the object until its controller has cleaned up
    /// (docs/upstream/operator-actions.md#4.4).
    fn remove_finalizers(&self) -> Suggestion {
        let means = Means::Kubectl(kubectl::remove_finalizers(&self.pod.key));
        Suggestion::new(SuggestionKind::RemoveFinalizers, means, format!("removes {}", self.finalizers()))
            .risk("what their controllers clean up is left behind")
    }

    fn finalizers(&self) -> String {
        self.pod.finalizers.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ")
    }
}

/// Returns what a refused eviction waits for.
fn waits_for(verdict: &Verdict) -> String {
    match verdict {
        Verdict::WaitsForController { budget } => {
            format!("until the disruption controller syncs {}", budget.name)
        }
        Verdict::WaitsForNamespace => "until it is deleted with its namespace".into(),
        Verdict::Waits { .. } | Verdict::LeavesAfter { .. } => {
            "until its budget allows a disruption: more of its pods have to be Ready".into()
        }
        other => format!("until its eviction is allowed: {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kordon_core::{
        cluster::{
            Change, Condition, ConditionStatus, OUT_OF_SERVICE, ObjectEvent, Owner, OwnerKind, READY, Taint,
            Termination, Toleration, TolerationOperator, WorkloadKind,
        },
        engine::ServerVersion,
        plan::StuckReason,
    };
    use kordon_time::{ClusterTime, Span};

    /// Each state of a pod has its actions. The table has two columns of actions: while the kubelet of the node
    /// answers, and while it does not.
    #[test]
    fn each_trouble_of_a_pod_has_its_few_actions() {
        let table = [
            (PodTrouble::Static, "", ""),
            (PodTrouble::Collected, "wait", "wait"),
            (PodTrouble::HeldByFinalizer, "wait removeFinalizers", "wait removeFinalizers"),
            (
                stuck(),
                "wait restartKubelet forceDelete deleteNode",
                "wait restartKubelet outOfService forceDelete deleteNode",
            ),
            (
                PodTrouble::OverdueTerminating,
                "wait restartKubelet forceDelete",
                "wait restartKubelet forceDelete",
            ),
            (PodTrouble::Terminating, "wait", "wait"),
            (PodTrouble::Finished, "delete", "delete"),
            (PodTrouble::Pending, "wait", "wait"),
            (PodTrouble::NodeGone, "wait", "wait"),
            (
                PodTrouble::WaitsForVolume(HeldVolume {
                    claim: "data".into(),
                    node: "gone".into(),
                    holder: Some(Key::new("d", "old")),
                    attachment: None,
                }),
                "wait",
                "wait",
            ),
            (PodTrouble::NodeDown, "wait restartKubelet delete", "wait restartKubelet delete outOfService"),
            (blocked(Verdict::WaitsForController { budget: Key::default() }), "wait delete", "wait delete"),
            (blocked(Verdict::TwoBudgets { budgets: Vec::new() }), "delete", "delete"),
            (PodTrouble::Running, "evict delete", "evict delete"),
        ];
        for (state, answers, is_silent) in table {
            assert_eq!(words(&case(state.clone(), ConditionStatus::True)), answers, "{state:?}");
            assert_eq!(words(&case(state.clone(), ConditionStatus::Unknown)), is_silent, "{state:?}");
        }
    }

    /// What ends a terminating pod: its kubelet, or the pod garbage collector, or nothing.
    #[test]
    fn a_pod_that_terminates_on_a_dead_node_is_stuck_before_its_grace_period_is_over() {
        let now = Timestamp::from_secs(1_800_000_000);
        let trouble = |ready, taint: Option<&str>, deadline: Option<i64>| {
            let deadline = ClusterTime::new(now + Span::from_secs(deadline.unwrap_or(20)));
            let termination = Some(Termination { deadline, grace: Span::from_secs(30) }.into());
            let pod = Arc::new(Pod { node: Some("n".into()), termination, ..Pod::default() });
            let (node, state) = case(PodTrouble::Running, ready).node.expect("a node");
            let taints = taint.map(|key| Taint { key: key.into(), ..Taint::default() }).into_iter().collect();
            let node = Node { taints, ..(*node).clone() };
            let mut cluster = Cluster::default();
            cluster.apply(Change::Node(ObjectEvent::Applied(node.clone())), &mut Vec::new());
            let rules = EvictionRules::for_version(ServerVersion::new(1, 37));
            PodTrouble::new(&pod, Some((&node, state)), &cluster, &rules, now)
        };
        let (yes, no, unknown) = (ConditionStatus::True, ConditionStatus::False, ConditionStatus::Unknown);
        for deadline in [20, -20] {
            let stuck = trouble(unknown, None, Some(deadline));
            assert!(matches!(stuck, PodTrouble::Hangs { .. }), "{stuck:?}");
            assert_eq!(trouble(unknown, Some(OUT_OF_SERVICE), Some(deadline)), PodTrouble::Collected);
            assert_eq!(trouble(no, Some(OUT_OF_SERVICE), Some(deadline)), PodTrouble::Collected);
        }
        for taint in [None, Some(OUT_OF_SERVICE)] {
            assert_eq!(trouble(yes, taint, None), PodTrouble::Terminating);
            assert_eq!(trouble(yes, taint, Some(-20)), PodTrouble::OverdueTerminating);
        }
    }

    #[test]
    fn a_pod_of_a_daemon_set_is_not_evicted_and_old_clusters_have_no_out_of_service_taint() {
        let mut daemon = case(PodTrouble::Running, ConditionStatus::True);
        let kind = OwnerKind::Workload(WorkloadKind::DaemonSet);
        let owner = Owner { kind, name: "proxy".into(), uid: "u".into() };
        daemon.pod = Arc::new(Pod { owner: Some(Arc::new(owner)), ..Pod::default() });
        assert_eq!(words(&daemon), "delete");
        let mut old = case(PodTrouble::NodeDown, ConditionStatus::Unknown);
        old.knows_out_of_service = false;
        assert_eq!(words(&old), "wait restartKubelet delete");
        let stateful =
            PodCase { is_replaced_at_once: false, ..case(PodTrouble::NodeDown, ConditionStatus::Unknown) };
        assert_eq!(words(&stateful), "wait restartKubelet outOfService forceDelete", "a deletion would hang");
        let toleration = Toleration { operator: TolerationOperator::Exists, ..Toleration::default() };
        let pod = Arc::new(Pod { tolerations: vec![toleration].into(), ..Pod::default() });
        let tolerating = PodCase { pod, ..stateful };
        assert_eq!(words(&tolerating), "wait restartKubelet forceDelete", "the taint would not evict it");
        let gone = PodCase { node: None, ..case(stuck(), ConditionStatus::True) };
        assert_eq!(words(&gone), "wait forceDelete", "there is no node to delete or to restart");
    }

    #[test]
    fn the_commands_are_exact() {
        let key = Key::new("shop", "web-0");
        let finalizers = ["a.example.com/x".into()].into();
        let pod = Arc::new(Pod { key, finalizers, ..Pod::default() });
        let case = PodCase { pod, ..case(PodTrouble::HeldByFinalizer, ConditionStatus::True) };
        let commands: Vec<String> =
            case.suggestions(Timestamp::EPOCH).iter().filter_map(|one| one.means.command()).collect();
        assert_eq!(
            commands,
            [
                r#"kubectl patch pod web-0 -n shop --type=json --patch='[{"op":"remove","path":"/metadata/finalizers"}]'"#
            ]
        );
    }

    fn case(state: PodTrouble, ready: ConditionStatus) -> PodCase {
        let ready = Condition { kind: READY.into(), status: ready, ..Condition::default() };
        let node = Arc::new(Node { name: "n".into(), conditions: [ready].into(), ..Node::default() });
        let node = Some((node, NodeState::Ready));
        PodCase {
            pod: Arc::default(),
            node,
            state,
            next: None,
            knows_out_of_service: true,
            renews_again: false,
            is_replaced_at_once: true,
            cordon_wait: None,
        }
    }

    fn stuck() -> PodTrouble {
        PodTrouble::Hangs { outcome: Box::new(PodOutcome::Stuck(StuckReason::OldPod)) }
    }

    fn blocked(verdict: Verdict) -> PodTrouble {
        PodTrouble::Blocked(Box::new(verdict))
    }

    fn words(case: &PodCase) -> String {
        case.kinds().iter().map(|kind| kind.word()).collect::<Vec<_>>().join(" ")
    }
}
