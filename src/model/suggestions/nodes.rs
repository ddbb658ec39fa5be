//! Suggestions for a node.

use std::sync::Arc;

use super::{Means, Suggestion, SuggestionKind, for_cordon_wait};
use crate::model::node_state::NodeState;
use kordon_core::{
    cluster::{Cluster, ConditionStatus, ForeignDrain, Key, Node, OUT_OF_SERVICE, Pod, Scope, TaintEffect},
    engine::{Tolerance, tolerance},
    operation::DrainCount,
    plan::{
        Action, BlockedDrain, CordonWait, DrainOptions, RemovalOptions, TaintEdits,
        forced_removal::collected_within, taint_edits::Removal, warning::of_switchovers, words::counted,
    },
    pressure::PressureCondition,
};
use kordon_time::{Span, Timestamp};

/// Facts that determine the suggestions for a node.
#[derive(Clone, Debug)]
pub struct NodeCase {
    pub node: Arc<Node>,
    pub state: NodeState,
    /// Number of times that the node went down or came back within ten minutes; `None` if the node does not flap.
    pub flaps: Option<usize>,
    /// End of the node's grace period, or time of the first eviction of its pods; `None` if neither is known.
    pub next: Option<Timestamp>,
    pub drain: Option<DrainCount>,
    /// The drain of the node, if it is blocked.
    pub blocked: Option<BlockedDrain>,
    /// Whether the cluster's release supports the out-of-service taint.
    pub knows_out_of_service: bool,
    /// Terminating pods of the node that the kubelet does not end, because their grace period is over or the kubelet
    /// does not answer.
    pub hanging: Vec<Key>,
    /// The wait of the node's drain until another node is uncordoned; `None` if the drain does not wait for that.
    pub cordon_wait: Option<CordonWait>,
    /// Whether the node is Unknown, but renews its Lease again.
    pub renews_again: bool,
}

impl NodeCase {
    /// Returns the actions that an experienced operator considers, in display order.
    pub fn kinds(&self, now: Timestamp) -> Vec<SuggestionKind> {
        use SuggestionKind::{
            BackInService, Cordon, DeleteNode, Drain, ForceDelete, OutOfService, RestartKubelet, Uncordon,
            Wait, WhatIf,
        };
        let kubelet_is_silent = self.is_silent();
        let mut kinds = match self.state {
            // The kubelet does not answer, so deletions and drains on the node cannot complete.
            NodeState::Evicting | NodeState::Unknown if kubelet_is_silent => {
                vec![Wait, RestartKubelet, OutOfService, ForceDelete, DeleteNode]
            }
            NodeState::Evicting | NodeState::Unknown | NodeState::NotReady => {
                vec![Wait, RestartKubelet, Cordon, Drain]
            }
            // A cordon is useful here. Until the controller declares the silent node Unknown, the scheduler still
            // places new pods on the node.
            NodeState::Silent => vec![Wait, RestartKubelet, Cordon],
            NodeState::Late => vec![Wait, WhatIf],
            NodeState::Pressure => vec![Wait, Cordon, Drain],
            NodeState::Starting => vec![Wait, RestartKubelet, DeleteNode],
            NodeState::Draining if self.is_drain_inferred() => vec![Wait, Uncordon, Drain],
            NodeState::ShuttingDown | NodeState::Rebooting | NodeState::Draining => vec![Wait],
            // Another project drained the node, and will uncordon or delete it.
            NodeState::Drained if ForeignDrain::stage(&self.node).is_some() => vec![Wait, Uncordon],
            NodeState::Drained => vec![Uncordon, DeleteNode],
            NodeState::Cordoned if self.is_cordon_in_time(now) => vec![Wait, Uncordon, Drain],
            NodeState::Cordoned => vec![Uncordon, Drain],
            NodeState::Ready => vec![Cordon, Drain, WhatIf],
        };
        if self.flaps.is_some() {
            let place = usize::from(kinds.first() == Some(&Wait));
            let missing = [RestartKubelet, Cordon].into_iter().filter(|kind| !kinds.contains(kind));
            kinds.splice(place..place, missing.collect::<Vec<_>>());
        }
        let is_marked = self.is_marked();
        if is_marked && self.node.is_ready() {
            kinds.insert(0, BackInService);
        }
        kinds.retain(|kind| match kind {
            kind if self.renews_again && is_for_silent(*kind) => false,
            Cordon => !self.node.unschedulable,
            OutOfService => self.knows_out_of_service && !is_marked,
            ForceDelete => !self.hanging.is_empty(),
            _ => true,
        });
        kinds
    }

    fn is_marked(&self) -> bool {
        self.node.is_tainted_out_of_service()
    }

    /// Whether nothing but the evictions of pods shows that the node is drained, so that the client may have stopped.
    fn is_drain_inferred(&self) -> bool {
        self.node.drain_claim.is_none() && ForeignDrain::stage(&self.node).is_none()
    }

    pub fn suggestions(&self, cluster: &Cluster, now: Timestamp) -> Vec<Suggestion> {
        let uncordon = self.cordon_wait.as_ref().and_then(for_cordon_wait);
        let kinds = self.kinds(now);
        uncordon
            .into_iter()
            .chain(kinds.into_iter().map(|kind| self.suggestion(kind, cluster, now)))
            .collect()
    }

    fn suggestion(&self, kind: SuggestionKind, cluster: &Cluster, now: Timestamp) -> Suggestion {
        let node = &self.node;
        let nodes = vec![node.name.clone()];
        match kind {
            SuggestionKind::Cordon => {
                let running = cluster.pods_on(&node.name).filter(|pod| !pod.is_finished());
                let pods = counted(running.count(), "pod stays", "pods stay");
                let means = Means::Plan(Action::Cordon { nodes });
                Suggestion::new(kind, means, format!("the scheduler places no new pods here; {pods}"))
                    .risk(self.switchovers(cluster, now))
            }
            SuggestionKind::Uncordon => {
                let risk =
                    node.cordon().map(|note| format!("cordoned {}", note.text(now))).unwrap_or_default();
                let means = Means::Plan(Action::Uncordon { nodes });
                Suggestion::new(kind, means, "the scheduler places pods here again").risk(risk)
            }
            SuggestionKind::Drain => {
                let options = DrainOptions { ignore_daemonsets: true, ..DrainOptions::default() };
                let means = Means::Plan(Action::Drain { nodes, options });
                let cordons = if node.unschedulable { "" } else { "cordons it and " };
                Suggestion::new(kind, means, format!("{cordons}evicts its pods as their budgets allow"))
                    .risk(self.switchovers(cluster, now))
            }
            SuggestionKind::WhatIf => {
                let means = Means::WhatIf(node.name.clone());
                Suggestion::new(kind, means, "predicts what follows if it stops renewing its Lease")
            }
            SuggestionKind::OutOfService => out_of_service(node, self.pods_left_by_mark(cluster)),
            SuggestionKind::BackInService => back_in_service(node),
            SuggestionKind::ForceDelete => force_delete(&self.hanging),
            SuggestionKind::DeleteNode => self.delete_node(cluster),
            SuggestionKind::RestartKubelet => restart_kubelet(),
            SuggestionKind::Wait
            | SuggestionKind::Evict
            | SuggestionKind::Delete
            | SuggestionKind::RemoveFinalizers
            | SuggestionKind::ScaleUp
            | SuggestionKind::RelaxBudget
            | SuggestionKind::AlwaysAllow
            | SuggestionKind::DeleteBudget
            | SuggestionKind::NarrowBudget
            | SuggestionKind::Place => self.wait(now),
        }
    }

    /// Says what operators do with the roles of the node's pods once the node is cordoned; empty if they do nothing.
    fn switchovers(&self, cluster: &Cluster, now: Timestamp) -> String {
        let warnings = of_switchovers(cluster, std::slice::from_ref(&self.node), now);
        warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    }

    fn wait(&self, now: Timestamp) -> Suggestion {
        let problem = self.node.problems().next().map(|problem| problem.kind.to_string());
        let text = match self.state {
            NodeState::Late | NodeState::Silent => {
                "until it renews its Lease; without that it becomes Unknown".into()
            }
            _ if self.renews_again => {
                let eviction = self.next.map_or("", |_| "; without that pods are evicted");
                format!(
                    "until its status follows: it renews its Lease again, so that should take some seconds{eviction}"
                )
            }
            NodeState::Unknown | NodeState::NotReady | NodeState::Evicting if self.next.is_some() => {
                "until it is Ready: then its pods stay; without that pods are evicted".into()
            }
            NodeState::Unknown | NodeState::NotReady | NodeState::Evicting if self.is_marked() => {
                "until it is Ready: then its taints are removed, but not out-of-service: remove that taint yourself"
                    .into()
            }
            NodeState::Unknown | NodeState::NotReady | NodeState::Evicting => {
                "until it is Ready: then its taints are removed".into()
            }
            NodeState::Pressure => match problem {
                Some(problem) if is_kubelets(&problem) => {
                    format!("until {problem} clears; its kubelet may evict pods itself, ignoring budgets")
                }
                problem => format!("until {} clears", problem.unwrap_or_else(|| "its condition".into())),
            },
            NodeState::Starting => "until its kubelet posts a status".into(),
            NodeState::ShuttingDown => "until it has stopped: its kubelet ends its pods before that".into(),
            NodeState::Rebooting => "until it is back".into(),
            NodeState::Drained => "until its maintenance ends".into(),
            NodeState::Draining => {
                let count = self.drain.map(|count| format!(": {}", count.text())).unwrap_or_default();
                let blocked = self.blocked.as_ref();
                let blocked = blocked.map(|drain| format!("; blocked by {drain}: {}", drain.advice()));
                format!("until its drain ends{count}{}", blocked.unwrap_or_default())
            }
            NodeState::Cordoned | NodeState::Ready => {
                // The end itself is the time of the suggestion.
                let note = self.node.cordon().map(|note| format!("by {}", note.who())).unwrap_or_default();
                format!("until its cordon ends: {note}")
            }
        };
        let ends = self.node.cordon().and_then(|note| note.until);
        let at = match self.state {
            NodeState::Cordoned => ends,
            NodeState::Rebooting
            | NodeState::Draining
            | NodeState::Drained
            | NodeState::Pressure
            | NodeState::Ready => None,
            _ => self.next,
        };
        Suggestion::wait(at.filter(|at| *at > now), text)
    }

    /// Suggests the deletion of the Node object, after which the pod garbage collector removes the node's pods. The
    /// volumes of these pods are detached 6 min after that (docs/upstream/neighbours.md#4).
    fn delete_node(&self, cluster: &Cluster) -> Suggestion {
        let within = collected_within();
        let pods = self.knows_pods(cluster).then(|| cluster.pods_on(&self.node.name).count());
        let text = match who_leaves(pods) {
            Some(pods) => format!("{pods} removed {within} later, their volumes detached 6 min after that"),
            None => "no pod leaves".to_owned(),
        };
        delete_node(&self.node, text)
    }

    /// Number of pods that leave the node because of the out-of-service taint: those that do not tolerate it without a
    /// limit, and those that are terminating. `None` if the pods of the node are unknown.
    fn pods_left_by_mark(&self, cluster: &Cluster) -> Option<usize> {
        let taints = mark().over(&self.node).ok().filter(|_| self.knows_pods(cluster))?;
        let evicting = || taints.iter().filter(|taint| taint.effect == TaintEffect::NoExecute);
        let leaves = |pod: &&Arc<Pod>| {
            pod.termination.is_some() || tolerance(&pod.tolerations, evicting()) != Tolerance::Forever
        };
        Some(cluster.pods_on(&self.node.name).filter(leaves).count())
    }

    fn knows_pods(&self, cluster: &Cluster) -> bool {
        cluster.knows(&Scope::PodsOn(self.node.name.clone()))
    }

    fn is_silent(&self) -> bool {
        is_silent(&self.node)
    }

    fn is_cordon_in_time(&self, now: Timestamp) -> bool {
        self.node.cordon().is_some_and(|note| note.until.is_some_and(|until| until > now))
    }
}

/// Whether the node is Unknown: the controller has declared that the node's kubelet does not answer.
pub fn is_silent(node: &Node) -> bool {
    node.ready().is_some_and(|ready| ready.status == ConditionStatus::Unknown)
}

/// Whether the action is for a node whose kubelet does not answer.
pub const fn is_for_silent(kind: SuggestionKind) -> bool {
    use SuggestionKind::{DeleteNode, ForceDelete, OutOfService, RestartKubelet};
    matches!(kind, RestartKubelet | OutOfService | ForceDelete | DeleteNode)
}

/// Whether a pod is still Terminating after its grace period.
pub fn is_overdue(pod: &Pod, cluster: &Cluster, now: Timestamp) -> bool {
    pod.termination.as_ref().is_some_and(|termination| cluster.local(termination.deadline) <= now)
}

/// Whether kubelets evict pods because of this condition (docs/upstream/placement-and-pressure.md#6).
fn is_kubelets(condition: &str) -> bool {
    PressureCondition::ALL.iter().any(|pressure| pressure.as_str() == condition)
}

/// The start of a sentence about the pods that leave a node: `3 pods are`; `None` if no pod leaves. `pods` is their
/// number, `None` if it is not known.
fn who_leaves(pods: Option<usize>) -> Option<String> {
    match pods {
        Some(0) => None,
        Some(pods) => Some(counted(pods, "pod is", "pods are")),
        None => Some("its pods are".into()),
    }
}

/// The edit that adds the out-of-service taint.
fn mark() -> TaintEdits {
    let words = format!("{OUT_OF_SERVICE}=nodeshutdown:NoExecute");
    TaintEdits::parse([&*words], false).unwrap_or_default()
}

/// Suggests the out-of-service taint. docs/upstream/operator-actions.md#2.5 explains its effect, and why the machine
/// must be off. `pods` is the number of pods that leave the node, `None` if it is not known.
pub fn out_of_service(node: &Node, pods: Option<usize>) -> Suggestion {
    let text = match who_leaves(pods) {
        Some(pods) => format!("{pods} deleted, removed by force within 20s, and their volumes detached"),
        None => "no pod leaves: all pods here tolerate it".to_owned(),
    };
    let means = Means::Plan(Action::Taint { nodes: vec![node.name.clone()], edits: mark() });
    Suggestion::new(SuggestionKind::OutOfService, means, text).risk(
        "only if the machine is known to be off, else two writers on one volume; remove it yourself later",
    )
}

fn back_in_service(node: &Node) -> Suggestion {
    let remove = vec![Removal { key: OUT_OF_SERVICE.into(), effect: None }];
    let edits = TaintEdits { remove, ..TaintEdits::default() };
    let means = Means::Plan(Action::Taint { nodes: vec![node.name.clone()], edits });
    let text = format!("removes {OUT_OF_SERVICE}, which nobody else removes: pods can land here again");
    Suggestion::new(SuggestionKind::BackInService, means, text)
}

/// Suggests the deletion of pods with a grace period of zero. This removes objects whose containers may still run
/// (docs/upstream/operator-actions.md#4.4).
pub fn force_delete(pods: &[Key]) -> Suggestion {
    let options = RemovalOptions { grace: Some(Span::ZERO), ..RemovalOptions::default() };
    let means = Means::Plan(Action::Delete { pods: pods.to_vec(), options });
    let text = format!("removes {} at once", counted(pods.len(), "object", "objects"));
    Suggestion::new(SuggestionKind::ForceDelete, means, text)
        .risk("its containers may still run: two pods of one identity")
}

/// Suggests the deletion of a Node object.
pub fn delete_node(node: &Node, text: String) -> Suggestion {
    let means = Means::Plan(Action::DeleteNode { nodes: vec![node.name.clone()] });
    Suggestion::new(SuggestionKind::DeleteNode, means, text)
        .risk("only if the machine is off for good: what runs on it keeps running unseen")
}

pub fn restart_kubelet() -> Suggestion {
    let means = Means::Machine("systemctl restart kubelet");
    let text = "helps if the kubelet hangs and the machine runs; containers keep running";
    Suggestion::new(SuggestionKind::RestartKubelet, means, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kordon_core::cluster::{
        Change, Condition, CordonNote, ObjectEvent, READY, Taint, Toleration, TolerationOperator,
    };

    const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);

    fn case(state: NodeState) -> NodeCase {
        let status = match state {
            NodeState::Evicting | NodeState::Unknown => Some(ConditionStatus::Unknown),
            NodeState::NotReady | NodeState::ShuttingDown => Some(ConditionStatus::False),
            NodeState::Starting => None,
            _ => Some(ConditionStatus::True),
        };
        let ready = status.map(|status| Condition { kind: READY.into(), status, ..Condition::default() });
        let node = Node {
            name: "n1".into(),
            conditions: ready.into_iter().collect(),
            unschedulable: matches!(state, NodeState::Draining | NodeState::Drained | NodeState::Cordoned),
            drain_claim: (state == NodeState::Draining).then(Arc::default),
            ..Node::default()
        };
        NodeCase {
            node: Arc::new(node),
            state,
            flaps: None,
            next: None,
            drain: None,
            blocked: None,
            knows_out_of_service: true,
            hanging: Vec::new(),
            cordon_wait: None,
            renews_again: false,
        }
    }

    fn change(case: &mut NodeCase, change: impl FnOnce(&mut Node)) {
        change(Arc::make_mut(&mut case.node));
    }

    fn words(case: &NodeCase) -> String {
        case.kinds(NOW).iter().map(|kind| kind.word()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn each_state_of_a_node_has_its_few_actions() {
        let actions = |state| match state {
            NodeState::Evicting | NodeState::Unknown => "wait restartKubelet outOfService deleteNode",
            NodeState::NotReady => "wait restartKubelet cordon drain",
            NodeState::Silent => "wait restartKubelet cordon",
            NodeState::Late => "wait whatIf",
            NodeState::Pressure => "wait cordon drain",
            NodeState::Starting => "wait restartKubelet deleteNode",
            NodeState::ShuttingDown | NodeState::Rebooting | NodeState::Draining => "wait",
            NodeState::Drained => "uncordon deleteNode",
            NodeState::Cordoned => "uncordon drain",
            NodeState::Ready => "cordon drain whatIf",
        };
        for state in NodeState::ALL {
            assert_eq!(words(&case(state)), actions(state), "{state}");
        }
    }

    #[test]
    fn a_drain_that_only_evictions_show_may_be_over_so_that_its_node_is_uncordoned_or_drained() {
        let mut draining = case(NodeState::Draining);
        change(&mut draining, |node| node.drain_claim = None);
        assert_eq!(words(&draining), "wait uncordon drain");
    }

    #[test]
    fn a_node_whose_kubelet_answers_is_never_marked_out_of_service_or_deleted_from_under_its_pods() {
        let mut evicting = case(NodeState::Evicting);
        evicting.hanging = vec![Key::new("d", "p")];
        assert_eq!(words(&evicting), "wait restartKubelet outOfService forceDelete deleteNode");
        change(&mut evicting, |node| node.conditions = case(NodeState::NotReady).node.conditions.clone());
        assert_eq!(words(&evicting), "wait restartKubelet cordon drain");
    }

    #[test]
    fn a_taint_that_is_there_is_not_added_again_and_removed_once_the_node_is_ready() {
        let taint = Taint { key: OUT_OF_SERVICE.into(), effect: TaintEffect::NoExecute, ..Taint::default() };
        let mut unknown = case(NodeState::Unknown);
        change(&mut unknown, |node| node.taints = [taint.clone()].into());
        assert_eq!(words(&unknown), "wait restartKubelet deleteNode");
        let wait = &unknown.suggestions(&Cluster::default(), NOW)[0].text;
        assert!(wait.ends_with("but not out-of-service: remove that taint yourself"), "{wait}");
        let mut ready = case(NodeState::Ready);
        change(&mut ready, |node| node.taints = [taint].into());
        assert_eq!(words(&ready), "backInService cordon drain whatIf");
        let mut old = case(NodeState::Unknown);
        old.knows_out_of_service = false;
        assert_eq!(words(&old), "wait restartKubelet deleteNode");
    }

    #[test]
    fn a_cordon_is_waited_for_until_its_time_is_over_and_a_node_that_flaps_is_cordoned() {
        let note = |until: i64| CordonNote {
            by: "alice".into(),
            reason: "new kernel".into(),
            at: NOW - Span::from_secs(60),
            until: Some(NOW + Span::from_secs(until)),
            operation: None,
        };
        let mut cordoned = case(NodeState::Cordoned);
        change(&mut cordoned, |node| node.cordon_note = Some(Arc::new(note(600))));
        assert_eq!(words(&cordoned), "wait uncordon drain");
        let suggestions = cordoned.suggestions(&Cluster::default(), NOW);
        let (wait, uncordon) = (&suggestions[0], &suggestions[1]);
        assert_eq!(wait.at, Some(NOW + Span::from_secs(600)));
        assert_eq!(wait.text, "until its cordon ends: by alice: new kernel", "the time is not said twice");
        assert!(uncordon.risk.starts_with("cordoned by alice: new kernel"), "{}", uncordon.risk);
        change(&mut cordoned, |node| node.cordon_note = Some(Arc::new(note(-1))));
        assert_eq!(words(&cordoned), "uncordon drain");
        let flapping = NodeCase { flaps: Some(4), ..case(NodeState::Late) };
        assert_eq!(words(&flapping), "wait restartKubelet cordon whatIf");
    }

    #[test]
    fn a_blocked_drain_says_which_budget_blocks_it_and_which_pod_has_to_be_ready() {
        let mut draining = case(NodeState::Draining);
        draining.blocked = Some(BlockedDrain {
            node: "n1".into(),
            since: NOW,
            budgets: vec![Key::new("db", "mongo")],
            pods: vec![Key::new("db", "mongo-1")],
            awaited: Vec::new(),
            unhealthy: vec![Key::new("db", "mongo-2")],
            has_double: false,
        });
        let wait = &draining.suggestions(&Cluster::default(), NOW)[0];
        let text = "until its drain ends; blocked by PodDisruptionBudget db/mongo: make db/mongo-2 Ready";
        assert_eq!(wait.text, text);
    }

    #[test]
    fn the_effects_of_a_taint_and_of_a_deletion_count_the_pods_that_leave() {
        let texts = |tolerates: bool| {
            let toleration = Toleration { operator: TolerationOperator::Exists, ..Toleration::default() };
            let tolerations: Vec<Toleration> = tolerates.then_some(toleration).into_iter().collect();
            let pod = |name: &str| Pod {
                key: Key::new("d", name),
                node: Some("n1".into()),
                tolerations: tolerations.clone().into(),
                ..Pod::default()
            };
            let mut cluster = Cluster::default();
            let mut apply = |change| cluster.apply(change, &mut Vec::new());
            apply(Change::Pod(ObjectEvent::ListStarted));
            for name in ["a", "b"] {
                apply(Change::Pod(ObjectEvent::Listed(pod(name))));
            }
            apply(Change::Pod(ObjectEvent::ListDone));
            let suggestions = case(NodeState::Unknown).suggestions(&cluster, NOW);
            let of = |kind| {
                let found = suggestions.iter().find(|suggestion| suggestion.kind == kind);
                found.map(|suggestion| suggestion.text.clone()).unwrap_or_default()
            };
            [of(SuggestionKind::OutOfService), of(SuggestionKind::DeleteNode)]
        };
        let [taint, deletion] = texts(true);
        assert_eq!(taint, "no pod leaves: all pods here tolerate it");
        assert!(deletion.starts_with("2 pods are removed 40s to 1m20s later"), "{deletion}");
        let [taint, _] = texts(false);
        assert_eq!(taint, "2 pods are deleted, removed by force within 20s, and their volumes detached");
    }

    #[test]
    fn the_commands_are_exact() {
        let mut stuck = case(NodeState::Unknown);
        stuck.hanging = vec![Key::new("data", "db-0"), Key::new("data", "db-1")];
        let commands = |case: &NodeCase| {
            let suggestions = case.suggestions(&Cluster::default(), NOW);
            suggestions.iter().filter_map(|one| one.means.command()).collect::<Vec<_>>()
        };
        assert_eq!(
            commands(&stuck),
            [
                "systemctl restart kubelet",
                "kubectl taint nodes n1 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
                "kubectl delete pod db-0 db-1 -n data --grace-period=0 --force",
                "kubectl delete node n1",
            ]
        );
        assert_eq!(
            commands(&case(NodeState::Ready)),
            ["kubectl cordon n1", "kubectl drain n1 --ignore-daemonsets", "kordon plan node-failure n1"]
        );
    }
}
