//! Suggestions for a pod.

use std::sync::Arc;

use super::{
    Means, Suggestion, SuggestionKind,
    nodes::{force_delete, is_overdue, is_silent, out_of_service, restart_kubelet},
};
use crate::model::node_state::NodeState;
use kordon_core::{
    cluster::{Cluster, Node, OwnerKind, Pod, WorkloadKind},
    plan::{Action, EvictionRules, RemovalOptions, eviction, kubectl},
};
use kordon_time::Timestamp;

/// Facts that determine the suggestions for a pod.
#[derive(Clone, Debug)]
pub struct PodCase {
    pub pod: Arc<Pod>,
    /// The pod's node, with the node's state; `None` if the pod is not bound to an existing node.
    pub node: Option<(Arc<Node>, NodeState)>,
    pub state: PodTrouble,
    /// Time at which the pod is evicted, or at which its grace period ends; `None` if neither is known.
    pub next: Option<Timestamp>,
    pub knows_out_of_service: bool,
}

/// State of a pod that may need an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodTrouble {
    /// A static pod: only its kubelet starts and stops it.
    Static,
    /// The grace period is over, but a finalizer holds the object.
    HeldByFinalizer,
    /// The grace period is over, but the kubelet that must confirm the deletion does not answer.
    StuckTerminating,
    /// The grace period is over, but the kubelet has not confirmed the deletion yet.
    OverdueTerminating,
    Terminating,
    Finished,
    /// The pod is not scheduled to a node.
    Pending,
    /// The node of the pod does not exist.
    NodeGone,
    /// The node is down, or will be declared down.
    NodeDown,
    /// An eviction of the pod would be refused.
    Blocked,
    Running,
}

impl PodTrouble {
    /// Returns the first variant that applies to the pod. `node` is `None` if the pod has no node or its node does not
    /// exist.
    pub fn new(
        pod: &Arc<Pod>,
        node: Option<(&Node, NodeState)>,
        cluster: &Cluster,
        rules: &EvictionRules,
        now: Timestamp,
    ) -> Self {
        let is_refused = || eviction::answer(cluster, pod, rules, now).code != 201;
        match node {
            _ if pod.mirror => Self::Static,
            _ if pod.termination.is_some() && !is_overdue(pod, cluster, now) => Self::Terminating,
            _ if pod.termination.is_some() && !pod.finalizers.is_empty() => Self::HeldByFinalizer,
            Some((node, _)) if pod.termination.is_some() && !is_silent(node) => Self::OverdueTerminating,
            _ if pod.termination.is_some() => Self::StuckTerminating,
            _ if pod.is_finished() => Self::Finished,
            None if pod.node.is_some() => Self::NodeGone,
            None => Self::Pending,
            Some((_, state)) if state.is_failing() => Self::NodeDown,
            Some(_) if is_refused() => Self::Blocked,
            Some(_) => Self::Running,
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
        let mut kinds = match self.state {
            PodTrouble::Static => vec![],
            PodTrouble::HeldByFinalizer => vec![Wait, RemoveFinalizers],
            PodTrouble::StuckTerminating => {
                vec![Wait, RestartKubelet, OutOfService, ForceDelete, DeleteNode]
            }
            PodTrouble::OverdueTerminating => vec![Wait, RestartKubelet, ForceDelete],
            PodTrouble::Terminating | PodTrouble::Pending | PodTrouble::NodeGone => vec![Wait],
            PodTrouble::NodeDown => vec![Wait, RestartKubelet, Delete, OutOfService],
            PodTrouble::Blocked => vec![Wait, Delete],
            PodTrouble::Running if self.is_of_daemon_set() => vec![Delete],
            PodTrouble::Running => vec![Evict, Delete],
            PodTrouble::Finished => vec![Delete],
        };
        kinds.retain(|kind| match kind {
            OutOfService => self.knows_out_of_service && is_silent,
            DeleteNode | RestartKubelet => self.node.is_some(),
            _ => true,
        });
        kinds
    }

    pub fn suggestions(&self, now: Timestamp) -> Vec<Suggestion> {
        self.kinds().into_iter().filter_map(|kind| self.suggestion(kind, now)).collect()
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
                Suggestion::new(kind, means, "deletes it; budgets are not checked")
            }
            SuggestionKind::OutOfService => out_of_service(node?),
            SuggestionKind::ForceDelete => force_delete(&pods),
            SuggestionKind::DeleteNode => {
                let text = "removes all pods of its node 40 to 60 s later";
                Suggestion::new(kind, Means::Kubectl(kubectl::delete_node(&node?.name)), text)
                    .risk("only if the machine is off for good: what runs on it keeps running unseen")
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
            | SuggestionKind::Place => return None,
        })
    }

    fn wait(&self, now: Timestamp) -> Suggestion {
        let text = match self.state {
            PodTrouble::HeldByFinalizer => format!("until its finalizers are removed: {}", self.finalizers()),
            PodTrouble::StuckTerminating => "until its kubelet is back and confirms the deletion".into(),
            PodTrouble::OverdueTerminating => "until its kubelet confirms the deletion".into(),
            PodTrouble::Terminating => "until its grace period ends".into(),
            PodTrouble::Pending => {
                "until the scheduler finds a node: it tries again when nodes or pods change".into()
            }
            // The delay is that of the pod garbage collector: docs/upstream/neighbours.md#1.
            PodTrouble::NodeGone => {
                "until the pod garbage collector removes it, 40 to 60 s after its node was deleted".into()
            }
            PodTrouble::NodeDown if self.next.is_some() => {
                "until its node is Ready: then it stays; without that it is evicted".into()
            }
            PodTrouble::NodeDown => "until its node is Ready".into(),
            PodTrouble::Blocked => {
                "until its budget allows a disruption: more of its pods have to be Ready".into()
            }
            PodTrouble::Static | PodTrouble::Finished | PodTrouble::Running => "for now".into(),
        };
        Suggestion::wait(self.next.filter(|at| *at > now), text)
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

    fn is_of_daemon_set(&self) -> bool {
        let kind = self.pod.owner.as_ref().map(|owner| &owner.kind);
        kind == Some(&OwnerKind::Workload(WorkloadKind::DaemonSet))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kordon_core::cluster::{Condition, ConditionStatus, Key, Owner, READY};

    /// Each state of a pod has its actions: first those while the kubelet of the node answers, then those while it does
    /// not.
    #[test]
    fn each_trouble_of_a_pod_has_its_few_actions() {
        let table = [
            (PodTrouble::Static, "", ""),
            (PodTrouble::HeldByFinalizer, "wait removeFinalizers", "wait removeFinalizers"),
            (
                PodTrouble::StuckTerminating,
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
            (PodTrouble::NodeDown, "wait restartKubelet delete", "wait restartKubelet delete outOfService"),
            (PodTrouble::Blocked, "wait delete", "wait delete"),
            (PodTrouble::Running, "evict delete", "evict delete"),
        ];
        for (state, answers, is_silent) in table {
            assert_eq!(words(&case(state, ConditionStatus::True)), answers, "{state:?}");
            assert_eq!(words(&case(state, ConditionStatus::Unknown)), is_silent, "{state:?}");
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
        let gone = PodCase { node: None, ..case(PodTrouble::StuckTerminating, ConditionStatus::True) };
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
        PodCase { pod: Arc::default(), node, state, next: None, knows_out_of_service: true }
    }

    fn words(case: &PodCase) -> String {
        case.kinds().iter().map(|kind| kind.word()).collect::<Vec<_>>().join(" ")
    }
}
