//! The taints and labels that the controller maintains on nodes (docs/upstream/node-lifecycle.md#4).

use super::{
    effect::Write,
    outbox::Outbox,
    why::{Cause, Why},
};
use crate::cluster::{ConditionStatus, Name, Node, Taint, TaintEffect, UNSCHEDULABLE};
use kordon_time::{ClusterClock, ClusterTime, Timestamp};

/// The taint key of a node with Ready=False.
pub const NOT_READY: &str = "node.kubernetes.io/not-ready";
/// The taint key of a node with Ready=Unknown.
pub const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

/// The conditions that require a NoSchedule taint. Each row has the condition, the status that requires the taint, and
/// the key of the taint.
const CONDITION_TAINTS: [(&str, ConditionStatus, &str); 6] = [
    ("Ready", ConditionStatus::False, NOT_READY),
    ("Ready", ConditionStatus::Unknown, UNREACHABLE),
    ("MemoryPressure", ConditionStatus::True, "node.kubernetes.io/memory-pressure"),
    ("DiskPressure", ConditionStatus::True, "node.kubernetes.io/disk-pressure"),
    ("PIDPressure", ConditionStatus::True, "node.kubernetes.io/pid-pressure"),
    ("NetworkUnavailable", ConditionStatus::True, "node.kubernetes.io/network-unavailable"),
];

/// Beta labels that are kept equal to the labels that replaced them: (label, beta label).
const KEPT_LABELS: [(&str, &str); 2] =
    [("kubernetes.io/os", "beta.kubernetes.io/os"), ("kubernetes.io/arch", "beta.kubernetes.io/arch")];

/// The key of the NoSchedule taint that belongs to a condition with this status; none if no taint belongs to it.
pub fn condition_taint_key(condition: &str, status: ConditionStatus) -> Option<&'static str> {
    let row = CONDITION_TAINTS.iter().find(|(kind, of, _)| *kind == condition && *of == status);
    row.map(|(.., key)| *key)
}

/// Returns the key of the NoExecute taint (not-ready or unreachable) for a status of Ready, and the key of the other
/// taint; `None` for a ready node.
pub fn no_execute_keys(ready: ConditionStatus) -> Option<(&'static str, &'static str)> {
    match ready {
        ConditionStatus::False => Some((NOT_READY, UNREACHABLE)),
        ConditionStatus::Unknown => Some((UNREACHABLE, NOT_READY)),
        ConditionStatus::True | ConditionStatus::Invalid => None,
    }
}

/// Whether the node has a NoExecute taint with this key.
pub fn has_no_execute(node: &Node, key: &str) -> bool {
    node.taints.iter().any(|taint| taint.is(key, TaintEffect::NoExecute))
}

/// The node's NoExecute taints that belong to the controller.
pub fn controllers_own(node: &Node) -> impl Iterator<Item = &Taint> {
    let ours =
        |taint: &&Taint| [NOT_READY, UNREACHABLE].iter().any(|key| taint.is(key, TaintEffect::NoExecute));
    node.taints.iter().filter(ours)
}

/// Whether the controller adds and removes the taint.
pub fn is_maintained(taint: &Taint) -> bool {
    let ours = |key: &&str| taint.is(key, TaintEffect::NoExecute);
    maintains_no_schedule(taint) || [NOT_READY, UNREACHABLE].iter().any(ours)
}

fn maintains_no_schedule(taint: &Taint) -> bool {
    taint.effect == TaintEffect::NoSchedule
        && (taint.key == *UNSCHEDULABLE || CONDITION_TAINTS.iter().any(|(_, _, key)| taint.key == **key))
}

/// Adds one of the controller's two NoExecute taints to a node and removes the other (upstream
/// `SwapNodeControllerTaint`). Returns whether this call requested the write.
pub fn swap_no_execute(
    node: &Node,
    add: &str,
    remove: &str,
    why: Why,
    out: &mut Outbox,
    clock: ClusterClock,
    now: Timestamp,
) -> bool {
    let remove =
        node.taints.iter().filter(|taint| taint.is(remove, TaintEffect::NoExecute)).cloned().collect();
    swap(node, vec![taint(add, TaintEffect::NoExecute, clock.written(now))], remove, why, out, now)
}

/// Removes both of the controller's NoExecute taints from a reachable node (upstream `markNodeAsReachable`, first
/// half).
pub fn remove_no_execute(node: &Node, why: Why, out: &mut Outbox, now: Timestamp) {
    let remove: Vec<Taint> = controllers_own(node).cloned().collect();
    if !remove.is_empty() {
        swap(node, Vec::new(), remove, why, out, now);
    }
}

/// Makes the NoSchedule taints match the conditions and the cordon (upstream `doNoScheduleTaintingPass`).
pub fn reconcile_no_schedule(node: &Node, out: &mut Outbox, clock: ClusterClock, now: Timestamp) {
    let mut wanted: Vec<(&str, Name)> = CONDITION_TAINTS
        .iter()
        .filter(|(kind, status, _)| node.condition(kind).is_some_and(|condition| condition.status == *status))
        .map(|(kind, status, key)| (*key, Name::from(format!("{kind} is {status}"))))
        .collect();
    if node.unschedulable {
        wanted.push((UNSCHEDULABLE, Name::from("cordoned")));
    }
    let ours = maintains_no_schedule;
    let is_wanted = |taint: &Taint| wanted.iter().any(|(key, _)| taint.key == **key);
    let remove: Vec<Taint> =
        node.taints.iter().filter(|taint| ours(taint) && !is_wanted(taint)).cloned().collect();
    let is_there = |key: &str| node.taints.iter().any(|taint| taint.is(key, TaintEffect::NoSchedule));
    wanted.retain(|(key, _)| !is_there(key));
    let added = clock.written(now);
    let add: Vec<Taint> = wanted.iter().map(|(key, _)| taint(key, TaintEffect::NoSchedule, added)).collect();
    if add.is_empty() && remove.is_empty() {
        return;
    }
    let mut causes: Vec<Cause> =
        wanted.into_iter().map(|(_, condition)| Cause::ConditionTaint { condition }).collect();
    if causes.is_empty() {
        causes.push(Cause::ConditionTaint { condition: "its condition has passed".into() });
    }
    swap(node, add, remove, Why(causes), out, now);
}

/// Sets the beta labels of operating system and architecture (upstream `reconcileNodeLabels`).
pub fn reconcile_labels(node: &Node, out: &mut Outbox, now: Timestamp) {
    let differing = |&(primary, kept): &(&str, &str)| {
        let value = node.label(primary)?;
        (node.label(kept) != Some(value)).then(|| (Name::from(kept), value.clone()))
    };
    let labels: Vec<(Name, Name)> = KEPT_LABELS.iter().filter_map(differing).collect();
    if !labels.is_empty() {
        let (name, uid) = (node.name.clone(), node.uid.clone());
        let write = Write::SetLabels { node: name, uid, version: node.version, labels };
        out.propose(write, Cause::LabelReconciled.into(), now);
    }
}

fn swap(
    node: &Node,
    add: Vec<Taint>,
    remove: Vec<Taint>,
    why: Why,
    out: &mut Outbox,
    now: Timestamp,
) -> bool {
    let (name, uid) = (node.name.clone(), node.uid.clone());
    out.propose(Write::SwapTaints { node: name, uid, version: node.version, add, remove }, why, now)
}

fn taint(key: &str, effect: TaintEffect, added: ClusterTime) -> Taint {
    Taint { key: key.into(), value: Name::default(), effect, time_added: Some(added) }
}
