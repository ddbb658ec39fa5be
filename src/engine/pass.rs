//! The monitor pass over all nodes, and the tainting loop between passes (spec/node-lifecycle.md 3 and 4.6).

use std::{collections::BTreeMap, sync::Arc};

use super::{
    Assumed, Engine, TAINTING_PERIOD,
    effect::{Event, EventObject, Level, Write},
    health::{self, Record, Verdict},
    outbox::Matter,
    queue::Processed,
    settings::Rules,
    taints,
    why::{Cause, Why},
    zone::{Census, Zone, ZoneState},
};
use crate::{
    cluster::{Cluster, ConditionStatus, Node, NodeName, Pod, TaintEffect, ZoneKey},
    time::{Span, Timestamp},
};

/// How long the tainting loop leaves a node alone whose Ready condition is absent.
const TAINTER_RETRY: Span = Span::from_millis(50);

impl Engine {
    /// Upstream `monitorNodeHealth`.
    pub(super) fn monitor(&mut self, cluster: &Cluster, now: Timestamp) {
        if std::mem::take(&mut self.roll_changed) {
            self.classify(cluster, &self.in_order(cluster), now);
        }
        let (nodes, mut census) = match &self.assumed {
            None => (self.in_order(cluster), BTreeMap::new()),
            Some(Assumed { watched, well }) => {
                (watched.iter().filter_map(|name| cluster.node(name).cloned()).collect(), well.clone())
            }
        };
        for node in &nodes {
            let verdict = self.update(cluster, node, &mut census, now);
            self.react(cluster, node, &verdict, now);
        }
        self.handle_disruption(&nodes, &census, now);
    }

    /// The nodes in the order in which this pass handles them: as told, then by name.
    fn in_order(&self, cluster: &Cluster) -> Vec<Arc<Node>> {
        let mut nodes: Vec<Arc<Node>> = cluster.nodes().iter().cloned().collect();
        if !self.order.is_empty() {
            let places: BTreeMap<&NodeName, usize> = self.order.iter().zip(0..).collect();
            nodes.sort_by_key(|node| places.get(&node.name).copied().unwrap_or(usize::MAX));
        }
        nodes
    }

    /// Registers nodes that are new and strikes out those that are gone (upstream `classifyNodes`).
    fn classify(&mut self, cluster: &Cluster, nodes: &[Arc<Node>], now: Timestamp) {
        let (known, added): (Vec<_>, Vec<_>) =
            nodes.iter().partition(|node| self.registered.contains(&node.name));
        for node in known {
            self.ensure_zone(node, now);
        }
        for node in &added {
            let text = format!("Registered Node {} in Controller", node.name);
            self.node_event(node, "RegisteredNode", &text, Cause::Registered, now);
            self.registered.insert(node.name.clone());
            self.ensure_zone(node, now);
            self.mark_reachable(node, Cause::Registered, now);
        }
        if self.registered.len() == nodes.len() {
            return;
        }
        let gone: Vec<NodeName> =
            self.registered.iter().filter(|name| cluster.node(name).is_none()).cloned().collect();
        for name in gone {
            self.registered.remove(&name);
            let ghost = Node { name: name.clone(), ..Node::default() };
            let text = format!("Removing Node {name} from Controller");
            self.node_event(&ghost, "RemovingNode", &text, Cause::NodeRemoved, now);
        }
    }

    fn ensure_zone(&mut self, node: &Node, now: Timestamp) {
        let settings = &self.settings;
        self.zones.entry(node.zone()).or_insert_with(|| Zone::new(settings, now));
    }

    /// Judges one node, counts it in its zone, and asks for its conditions to be rewritten where it is silent.
    fn update(
        &mut self,
        cluster: &Cluster,
        node: &Node,
        census: &mut BTreeMap<ZoneKey, Census>,
        now: Timestamp,
    ) -> Verdict {
        let record = self.records.entry(node.name.clone()).or_insert_with(|| Record::first_seen(node, now));
        let mut verdict = health::update(record, node, cluster.lease(&node.name), &self.settings, now);
        if !is_excluded(node, &self.rules) {
            let zone = record.zone(node);
            match census.get_mut(zone) {
                Some(counted) => counted.count(verdict.current),
                None => census.entry(zone.clone()).or_default().count(verdict.current),
            }
        }
        if let Some(conditions) = verdict.rewrite.take() {
            let (name, uid, version) = (node.name.clone(), node.uid.clone(), node.version);
            let write = Write::MarkUnknown { node: name, uid, version, conditions };
            self.out.propose(write, verdict.why.clone(), now);
        }
        verdict
    }

    /// What follows from a node's verdict (spec/node-lifecycle.md 3.6).
    fn react(&mut self, cluster: &Cluster, node: &Node, verdict: &Verdict, now: Timestamp) {
        let Some(current) = verdict.current else {
            return self.retry_pods(&node.name, false);
        };
        let deciding = if self.rules.taints_by_current_ready { current } else { verdict.observed };
        self.taint_by_ready(node, deciding, &verdict.why, now);
        let turned = current != ConditionStatus::True && verdict.observed == ConditionStatus::True;
        if turned {
            let text = format!("Node {} status is now: NodeNotReady", node.name);
            self.event(
                EventObject::Node(node.name.clone(), node.uid.clone()),
                false,
                text,
                verdict.why.clone(),
                now,
            );
            let text = format!("node {} is silent: its conditions become Unknown", node.name);
            self.notice_once(node, text, verdict.why.clone(), now);
        }
        let retry = verdict.pods_to_retry;
        if retry {
            self.retry_pods(&node.name, false);
        }
        if turned || (retry && verdict.observed != ConditionStatus::True) {
            for pod in cluster.pods_on(&node.name) {
                self.mark_pod_not_ready(node, pod, now);
            }
        }
    }

    fn retry_pods(&mut self, node: &NodeName, retry: bool) {
        if let Some(record) = self.records.get_mut(node) {
            record.pods_to_retry = retry;
        }
    }

    /// A shadow finds a node silent in every pass until the controller has said so: it tells once.
    fn notice_once(&mut self, node: &Node, text: String, why: Why, now: Timestamp) {
        if !self.out.is_recorded(&Matter::Unknown(node.name.clone())) {
            self.out.notice(Level::Warning, text, why, now);
        }
    }

    /// Makes a pod's Ready condition False and says so on the pod (upstream `MarkPodsNotReady`).
    pub(super) fn mark_pod_not_ready(&mut self, node: &Node, pod: &Pod, now: Timestamp) {
        if pod.ready.as_ref().is_none_or(|ready| ready.status == ConditionStatus::False) {
            return;
        }
        let (key, uid) = (pod.key.clone(), pod.uid.clone());
        let write = Write::MarkPodNotReady { pod: key, uid, version: pod.version, node: node.name.clone() };
        if self.out.propose(write, Cause::NodeNotReady.into(), now) {
            let text = "Node is not ready".into();
            self.event(EventObject::Pod(pod.key.clone()), true, text, Cause::NodeNotReady.into(), now);
        }
    }

    /// Upstream `processTaintBaseEviction`.
    fn taint_by_ready(&mut self, node: &Node, ready: ConditionStatus, why: &Why, now: Timestamp) {
        if ready == ConditionStatus::True {
            return self.mark_reachable(node, Cause::Ready, now);
        }
        let Some((wanted, opposite)) = taints::no_execute_keys(ready) else { return };
        if taints::has_no_execute(node, opposite) {
            taints::swap_no_execute(
                node,
                wanted,
                opposite,
                why.clone().then(Cause::Swapped),
                &mut self.out,
                now,
            );
            return;
        }
        let requested = Matter::Taints(node.name.clone(), TaintEffect::NoExecute);
        if self.out.is_busy(&requested) || self.awaits_taint(&node.name) {
            return;
        }
        self.ensure_zone(node, now);
        let zone = self.zones.get_mut(&node.zone()).expect("it has just been ensured");
        if !taints::has_no_execute(node, wanted) {
            zone.queue.remove(&node.name);
        }
        zone.queue.add(&node.name, &node.uid, now);
    }

    /// Upstream `markNodeAsReachable`.
    pub(super) fn mark_reachable(&mut self, node: &Node, cause: Cause, now: Timestamp) {
        taints::remove_no_execute(node, cause.into(), &mut self.out, now);
        if self.out.has_recorded() {
            self.out.settle(&Matter::Taints(node.name.clone(), TaintEffect::NoExecute));
        }
        let zone = self.records.get_mut(&node.name).map(|record| record.zone(node));
        if let Some(zone) = zone.and_then(|zone| self.zones.get_mut(zone)) {
            zone.queue.remove(&node.name);
        }
    }

    /// When the tainting loop next finds a token and a node that waits for it; none while there is no such thing.
    pub(super) fn tainting_due(&self) -> Option<Timestamp> {
        let not_before = self.last_tainting.map_or(self.tainting_beat, |last| last + TAINTING_PERIOD);
        let of_zone = |zone: &Zone| {
            let head = zone.queue.head_at()?;
            zone.limiter.next_token(not_before).map(|token| token.max(head).max(not_before))
        };
        let due = self.zones.values().filter_map(of_zone).min()?;
        Some(self.next_beat(due))
    }

    /// The first beat of the tainting loop that is not before `at`.
    fn next_beat(&self, at: Timestamp) -> Timestamp {
        let period = TAINTING_PERIOD.as_nanos();
        let into = at.since(self.tainting_beat).as_nanos().rem_euclid(period);
        if into == 0 { at } else { at + Span::from_nanos(period - into) }
    }

    pub(super) fn why_tainting(&self) -> Why {
        let waiting = self.zones.iter().find(|(_, zone)| !zone.queue.is_empty());
        waiting.map_or_else(Why::default, |(key, zone)| queued(key, zone).into())
    }

    /// Gives the NoExecute taint to nodes that wait, as far as the zones' limiters allow (upstream
    /// `doNoExecuteTaintingPass`).
    pub(super) fn taint_waiting(&mut self, cluster: &Cluster, now: Timestamp) {
        self.last_tainting = Some(now);
        if !self.acts() {
            return;
        }
        let Self { zones, records, settings, out, shadow, .. } = self;
        for (key, zone) in zones.iter_mut() {
            let waiting = queued(key, zone);
            let Zone { queue, limiter, evictions, .. } = zone;
            queue.process(limiter, now, |entry| {
                let Some(node) = cluster.node(&entry.node) else { return Processed::Done };
                let Some(ready) = node.ready() else { return Processed::RetryAfter(TAINTER_RETRY) };
                let Some((wanted, opposite)) = taints::no_execute_keys(ready.status) else {
                    return Processed::Done;
                };
                if shadow.is_some() && taints::has_no_execute(node, wanted) {
                    return Processed::Done;
                }
                let silent = records.get(&entry.node).map(|record| record.why(settings)).unwrap_or_default();
                let state = match ready.status {
                    ConditionStatus::Unknown => Cause::Silent,
                    status => Cause::Posted { status, reason: ready.reason.clone() },
                };
                let why = silent.then(state).then(waiting.clone()).then(Cause::Token { zone: key.clone() });
                if taints::swap_no_execute(node, wanted, opposite, why, out, now) {
                    *evictions += 1;
                    if let Some(shadow) = shadow {
                        shadow.expect_taint(&entry.node, key, now);
                    }
                }
                Processed::Done
            });
        }
    }

    fn node_event(&mut self, node: &Node, reason: &'static str, text: &str, cause: Cause, now: Timestamp) {
        let event = Event {
            object: EventObject::Node(node.name.clone(), node.uid.clone()),
            warning: false,
            reason,
            message: format!("Node {} event: {text}", node.name),
            source: "node-controller",
        };
        self.out.propose(Write::RecordEvent(event), cause.into(), now);
    }

    /// An event NodeNotReady, of a node or of a pod on one.
    fn event(&mut self, object: EventObject, warning: bool, message: String, why: Why, now: Timestamp) {
        let event = Event { object, warning, reason: "NodeNotReady", message, source: "node-controller" };
        self.out.propose(Write::RecordEvent(event), why, now);
    }
}

/// Whether zone statistics leave the node out (spec/node-lifecycle.md 3.8).
pub(super) fn is_excluded(node: &Node, rules: &Rules) -> bool {
    (rules.excludes_labelled && node.labels.contains_key("node.kubernetes.io/exclude-disruption"))
        || (rules.excludes_master_names && is_master_name(&node.name))
}

fn queued(key: &ZoneKey, zone: &Zone) -> Cause {
    let state = zone.state.unwrap_or(ZoneState::Initial);
    Cause::Queued { zone: key.clone(), state, rate: zone.limiter.rate() }
}

/// Whether releases up to 1.20 take the name for a master's: it ends in "master", or in "master-" and three more
/// bytes.
fn is_master_name(name: &str) -> bool {
    let cut = name.len().checked_sub(3).filter(|_| name.len() >= 10);
    name.ends_with("master") || cut.is_some_and(|cut| name.as_bytes()[..cut].ends_with(b"master-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn master_names_are_told_as_1_19_did() {
        let told =
            ["k8s-master-abc", "k8s-master-ab", "master-abc", "a-master", "worker"].map(is_master_name);
        assert_eq!(told, [true, false, true, true, false]);
    }
}
