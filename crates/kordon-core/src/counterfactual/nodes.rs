//! Recorded changes of nodes, with the conditions and taints of the engine in place of those of the recorded
//! controllers.

use std::sync::Arc;

use super::{Counterfactual, ListStage, Uncertainty, acts::UnreachableNode, next_version, same_node};
use crate::{
    cluster::{
        Applied, Change, Cluster, Condition, ConditionStatus, Delta, Node, NodeName, ObjectEvent, Taint,
    },
    engine::{Tolerance, controllers_own, is_maintained, tolerance},
};
use kordon_time::{ClusterTime, Span, Timestamp};

/// Reasons that the node lifecycle controller gives a condition that it sets to Unknown.
const CONTROLLERS_REASONS: [&str; 2] = ["NodeStatusUnknown", "NodeStatusNeverUpdated"];

impl Counterfactual {
    pub(super) fn on_node_event(
        &mut self,
        event: ObjectEvent<Node>,
        cluster: &Cluster,
        now: Timestamp,
    ) -> Vec<Change> {
        let (stage, is_first) = (ListStage::after(&event), !cluster.nodes().is_synced());
        let listed = match &event {
            ObjectEvent::Listed(node) => cluster.node(&node.name).cloned(),
            _ => None,
        };
        let mut nodes: Vec<ObjectEvent<Node>> = Vec::new();
        let mut others: Vec<Change> = Vec::new();
        for applied in self.record(Change::Node(event)) {
            let Applied::Node(delta) = applied else { continue };
            nodes.push(self.on_node(&delta, cluster, &mut others, now));
        }
        if is_first {
            match stage {
                ListStage::Started => nodes.insert(0, ObjectEvent::ListStarted),
                ListStage::Done => nodes.push(ObjectEvent::ListDone),
                // A watch lists its objects again, and this node has not changed: list it as it is in the model.
                ListStage::Listed if nodes.is_empty() => {
                    nodes.extend(listed.map(|node| ObjectEvent::Listed((*node).clone())));
                }
                ListStage::Listed | ListStage::Changed => {}
            }
        }
        nodes.into_iter().map(Change::Node).chain(others).collect()
    }

    fn on_node(
        &mut self,
        delta: &Delta<Node>,
        cluster: &Cluster,
        others: &mut Vec<Change>,
        now: Timestamp,
    ) -> ObjectEvent<Node> {
        let Some(new) = &delta.new else {
            let gone = delta.old.as_ref().expect("one of the two is there");
            self.on_intervention(gone, cluster);
            self.on_node_gone(&gone.name, cluster, now);
            return ObjectEvent::Deleted(gone.name.clone());
        };
        let old = same_node(delta.old.as_ref(), new);
        let known = same_node(cluster.node(&new.name), new);
        self.observe_controller(old, new, cluster, now);
        if let Some(old) = old.filter(|old| !old.unschedulable && new.unschedulable) {
            self.on_intervention(old, cluster);
        }
        let merged = match (old, known) {
            (Some(old), Some(known)) => merged(old, new, known),
            _ => Node {
                version: cluster.node(&new.name).map_or(new.version, |known| next_version(&**new, &**known)),
                ..(**new).clone()
            },
        };
        if let Some(at) = posted(old, new) {
            let status = new.ready().map_or(ConditionStatus::Unknown, |ready| ready.status);
            self.posted.insert(new.name.clone(), status);
            let at = cluster.local(at).min(now);
            self.on_heartbeat(&new.name, at, cluster, now);
            // A status that is not later than the last Lease renewal is no new heartbeat, but its Ready condition may
            // start or end an outage.
            self.observe_outage(&new.name, None, at, cluster);
        }
        if merged.is_ready() && known.is_some_and(|known| !known.is_ready()) {
            others.extend(self.restore_pods(&merged.name, cluster));
        }
        if cluster.nodes().is_synced() { ObjectEvent::Applied(merged) } else { ObjectEvent::Listed(merged) }
    }

    /// Records what the recorded controller did to the node.
    fn observe_controller(&mut self, old: Option<&Arc<Node>>, new: &Node, cluster: &Cluster, now: Timestamp) {
        match old {
            None => {
                let is_down = new.ready().is_some_and(|ready| ready.status != ConditionStatus::True);
                if is_down && !cluster.nodes().is_synced() {
                    self.uncertain.add(Uncertainty::DownAtStart, 1);
                }
            }
            Some(old) => {
                if is_marked(new) && !is_marked(old) {
                    let silent_since = self.silent_since(&new.name, cluster, now);
                    let node = new.name.clone();
                    self.happened.on_unreachable(UnreachableNode { node, at: now, silent_since, back: None });
                }
            }
        }
    }

    /// Records that the engine marks the node Unknown.
    pub(super) fn on_engine_unknown(&mut self, node: &NodeName, cluster: &Cluster, now: Timestamp) {
        let silent_since = self.silent_since(node, cluster, now);
        let act = UnreachableNode { node: node.clone(), at: now, silent_since, back: None };
        self.would.on_unreachable(act);
    }

    /// Handles a recorded deletion or cordon of a node. Somebody may have reacted to the node's recorded state, so a
    /// different state in the model counts as an uncertainty.
    fn on_intervention(&mut self, recorded: &Node, cluster: &Cluster) {
        let differs = same_node(cluster.node(&recorded.name), recorded).is_some_and(|known| {
            is_marked(known) != is_marked(recorded)
                || controllers_own(known).next().is_some() != controllers_own(recorded).next().is_some()
        });
        self.uncertain.add(Uncertainty::NodeRemoved, usize::from(differs));
    }

    /// The status that a kubelet posts when it finds its node Unknown. If only the engine marked the node, the
    /// recording does not have that status.
    pub(super) fn assumed_post(&mut self, name: &NodeName, cluster: &Cluster, now: Timestamp) -> Vec<Change> {
        let (Some(recorded), Some(known)) = (self.recorded.node(name), cluster.node(name)) else {
            return Vec::new();
        };
        if recorded.uid != known.uid || !is_marked(known) || is_marked(recorded) {
            return Vec::new();
        }
        let at = cluster.clock().written(now);
        let posted = |condition: &Condition| {
            let is_same = known.condition(&condition.kind).is_some_and(|own| own.status == condition.status);
            let before = known.condition(&condition.kind).and_then(|own| own.last_transition);
            let last_transition = if is_same { before } else { Some(at) };
            Condition { last_heartbeat: Some(at), last_transition, ..condition.clone() }
        };
        let node = Node {
            conditions: recorded.conditions.iter().map(posted).collect(),
            heartbeat_written: Some(at),
            version: next_version(&**recorded, &**known),
            ..(**known).clone()
        };
        self.uncertain.add(Uncertainty::PostAssumed, 1);
        let is_ready = node.is_ready();
        let mut changes = vec![Change::Node(ObjectEvent::Applied(node))];
        if is_ready {
            changes.extend(self.restore_pods(name, cluster));
        }
        changes
    }

    /// The number of pods on a returned node whose tolerations would have ended soon. For these pods, the phase of the
    /// controller's passes decides whether they are evicted.
    pub(super) fn nearly_evicted(&self, name: &NodeName, cluster: &Cluster, now: Timestamp) -> usize {
        let Some(node) = cluster.node(name) else { return 0 };
        let taints: Vec<Taint> = controllers_own(node).cloned().collect();
        let Some(added) = taints.iter().filter_map(|taint| taint.time_added).min() else { return 0 };
        let elapsed = now.since(cluster.local(added));
        let soon = |span: Span| elapsed <= span && span <= elapsed + self.passes();
        let nearly = cluster.pods_on(name).filter(|pod| pod.termination.is_none()).filter(
            |pod| matches!(tolerance(&pod.tolerations, &taints), Tolerance::For { span, .. } if soon(span)),
        );
        nearly.count()
    }
}

/// The recorded node `new`. Its conditions and taints that the controller maintains are taken from `known`.
fn merged(old: &Node, new: &Node, known: &Node) -> Node {
    Node {
        version: next_version(new, known),
        conditions: conditions(old, new, known),
        taints: taints(new, known),
        ..new.clone()
    }
}

/// Conditions from `new` that kubelets and others have posted since `old`; all other conditions are taken from `known`.
fn conditions(old: &Node, new: &Node, known: &Node) -> Arc<[Condition]> {
    let merged = new.conditions.iter().filter_map(|condition| {
        let known = known.condition(&condition.kind);
        let before = old.condition(&condition.kind);
        if is_controllers(condition) || before == Some(condition) {
            return known.cloned();
        }
        let Some(known) = known else { return Some(condition.clone()) };
        let last_transition = if known.status == condition.status {
            known.last_transition
        } else if before.is_some_and(|before| before.status == condition.status) {
            condition.last_heartbeat.or(condition.last_transition)
        } else {
            condition.last_transition
        };
        Some(Condition { last_transition, ..condition.clone() })
    });
    let merged: Vec<Condition> = merged.collect();
    if merged == *known.conditions { known.conditions.clone() } else { merged.into() }
}

/// The controller's taints from `known`, and all other taints from `new`.
fn taints(new: &Node, known: &Node) -> Arc<[Taint]> {
    let of_others = new.taints.iter().filter(|taint| !is_maintained(taint));
    let own = known.taints.iter().filter(|taint| is_maintained(taint));
    let merged: Vec<Taint> = of_others.chain(own).cloned().collect();
    let is_same =
        merged.len() == known.taints.len() && merged.iter().all(|taint| known.taints.contains(taint));
    if is_same { known.taints.clone() } else { merged.into() }
}

/// The heartbeat time of a Ready condition that the kubelet has posted since `old`; `None` if it has posted none.
fn posted(old: Option<&Arc<Node>>, new: &Node) -> Option<ClusterTime> {
    let ready = new.ready().filter(|ready| !is_controllers(ready))?;
    let before = old.and_then(|old| old.ready());
    ready.last_heartbeat.filter(|_| before != Some(ready))
}

/// Whether the node lifecycle controller has set the node's Ready condition to Unknown.
fn is_marked(node: &Node) -> bool {
    node.ready().is_some_and(is_controllers)
}

fn is_controllers(condition: &Condition) -> bool {
    condition.status == ConditionStatus::Unknown
        && CONTROLLERS_REASONS.iter().any(|reason| condition.reason == **reason)
}
