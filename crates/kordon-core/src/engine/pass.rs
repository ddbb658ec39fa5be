//! The monitor pass over all nodes (docs/upstream/node-lifecycle.md#3), and the tainting loop between passes
//! (docs/upstream/node-lifecycle.md#4.6).

use std::{collections::BTreeMap, sync::Arc};

use super::{
    Engine, TAINTING_PERIOD,
    effect::{EventObject, LeaseCheck, RecordedEvent, Severity, Write},
    eviction_status::EvictionStatus,
    health::{self, NodeAssessment, NodeHealth, Reading},
    outbox::EffectSubject,
    pass_scope::{PassScope, UnsettledNodes},
    queue::Processed,
    queue_events::QueueEvent,
    settings::Profile,
    taints,
    why::{Cause, Why},
    zone::{self, Census, Zone, ZoneState},
};
use crate::cluster::{
    Cluster, ConditionStatus, Node, NodeName, Pod, TaintEffect, Version, ZoneKey, cow_map::CowMap,
};
use kordon_time::{Span, Timestamp};

/// How long the tainting loop waits before it retries a node without a Ready condition.
const TAINTER_RETRY: Span = Span::from_millis(50);

impl Engine {
    /// One pass over all nodes (upstream `monitorNodeHealth`).
    pub(super) fn monitor(&mut self, cluster: &Cluster, now: Timestamp) {
        if std::mem::take(&mut self.nodes_changed) {
            self.classify(cluster, &self.in_order(cluster), now);
        }
        let PassFindings { census, assessed, .. } = self.assess_nodes(cluster, now);
        for (node, assessment) in &assessed {
            self.react(cluster, node, assessment, now);
        }
        self.settle(cluster, &assessed, now);
        self.handle_disruption(cluster, &census, now);
    }

    /// Assesses the nodes in the scope of the pass, and counts every node in its zone.
    fn assess_nodes(&mut self, cluster: &Cluster, now: Timestamp) -> PassFindings {
        if let PassScope::Unsettled(unsettled) = &mut self.scope {
            unsettled.expire_graces(cluster, &self.rules, now);
        }
        // Take the health records out of the engine, because this loop also borrows the rest of it.
        let mut records = std::mem::take(&mut self.records);
        let mut findings = match &self.scope {
            PassScope::All | PassScope::AllOnce => {
                self.assess_each(cluster.nodes().iter(), cluster, &mut records, now)
            }
            PassScope::Unsettled(unsettled) => {
                let nodes = unsettled.nodes.iter().filter_map(|name| cluster.node(name));
                let mut findings = self.assess_each(nodes, cluster, &mut records, now);
                // The other nodes keep the counts of an earlier pass.
                for (zone, settled) in &unsettled.settled {
                    findings.census.entry(zone.clone()).or_default().add(*settled);
                }
                findings
            }
        };
        self.records = records;
        if self.out.sends_all() {
            self.sort_by_order(&mut findings.assessed, |(node, _)| node);
        }
        findings
    }

    /// Assesses those of the nodes that are registered.
    fn assess_each<'a>(
        &self,
        nodes: impl Iterator<Item = &'a Arc<Node>>,
        cluster: &Cluster,
        records: &mut CowMap<NodeName, NodeHealth>,
        now: Timestamp,
    ) -> PassFindings {
        let pass_ended = self.pass_ended(now);
        let mut findings = PassFindings::new(&self.zones);
        for node in nodes {
            if let Some(record) = records.get_mut(&node.name) {
                let (lease, clock) = (cluster.lease(&node.name), cluster.clock());
                let reading = Reading { node, lease, clock, pass_ended, now };
                self.assess(record, reading, &mut findings);
            }
        }
        findings
    }

    /// Assesses one node and counts it in its zone.
    fn assess(&self, record: &mut NodeHealth, reading: Reading<'_>, findings: &mut PassFindings) {
        let node = reading.node;
        let assessment = health::update(record, reading, &self.heartbeats, &self.settings);
        let is_calm = record.is_calm(node);
        let zone = record.zone(node);
        if !zone.excludes(node, &self.rules) {
            zone::count(&mut findings.census, &zone.key, self.counted_status(&assessment));
        }
        let in_forecast = !self.out.sends_all();
        let must_act = || !is_calm || self.legacy.status(&node.name) != EvictionStatus::Unmarked;
        let is_recorded = || self.out.has_recorded_no_execute(&node.name);
        let is_queued = || findings.queues_know_nodes && self.is_queued(node, &zone.key);
        if in_forecast || must_act() || is_recorded() || is_queued() {
            findings.assessed.push((node.clone(), assessment));
        }
    }

    /// The status of Ready by which a node counts in its zone. An engine that shadows a controller counts the status
    /// that the controller has written, because the controller's zone state depends on it, and the engine may find a
    /// node silent earlier than the controller.
    fn counted_status(&self, assessment: &NodeAssessment) -> Option<ConditionStatus> {
        if self.shadow.is_some() && self.out.sends_all() {
            Some(assessment.observed)
        } else {
            assessment.current
        }
    }

    fn is_queued(&self, node: &Node, zone: &ZoneKey) -> bool {
        self.zones.get(zone).is_some_and(|zone| zone.queue.knows(&node.name))
    }

    /// In a forecast, decides which nodes the next passes can leave out.
    fn settle(&mut self, cluster: &Cluster, assessed: &[(Arc<Node>, NodeAssessment)], now: Timestamp) {
        let mut unsettled = match std::mem::take(&mut self.scope) {
            PassScope::All => return,
            PassScope::AllOnce => UnsettledNodes::default(),
            PassScope::Unsettled(unsettled) => {
                self.requeue_together(cluster, &unsettled, assessed, now);
                unsettled
            }
        };
        unsettled.last_pass = now;
        for (node, assessment) in assessed {
            let is_settled = self.is_settled(node, assessment);
            let Some(record) = self.records.get_mut(&node.name).filter(|_| is_settled) else {
                unsettled.nodes.insert(node.name.clone());
                continue;
            };
            let grace_ends = record.grace_ends(&self.settings).filter(|ends| *ends >= now);
            let zone = record.zone(node);
            let counted_in = (!zone.excludes(node, &self.rules)).then_some(&zone.key);
            unsettled.settle(node, counted_in, grace_ends);
        }
        self.scope = PassScope::Unsettled(unsettled);
    }

    /// Whether the next pass would make the same findings and request nothing, if nothing changes in between.
    fn is_settled(&self, node: &Node, assessment: &NodeAssessment) -> bool {
        let Some(ready) = node.ready().map(|ready| ready.status) else { return false };
        let is_alive = || self.records.get(&node.name).is_some_and(|record| record.assumed_alive);
        if assessment.current != Some(ready)
            || assessment.pods_to_retry
            || (assessment.is_renewed && !is_alive())
            || self.found_by_controller(node).is_some()
        {
            return false;
        }
        if self.rules.profile == Profile::Legacy {
            return ready == ConditionStatus::True
                && self.legacy.status(&node.name) == EvictionStatus::Unmarked;
        }
        match taints::no_execute_keys(ready) {
            None => taints::controllers_own(node).next().is_none(),
            Some((_, opposite)) => {
                let requested = EffectSubject::Taints(node.name.clone(), TaintEffect::NoExecute);
                !taints::has_no_execute(node, opposite) && !self.out.is_busy(&requested)
            }
        }
    }

    /// Requeues the waiting nodes that this pass left out, in every queue that the pass changed. A pass over all nodes
    /// would requeue every waiting node, in the order of the pass.
    fn requeue_together(
        &mut self,
        cluster: &Cluster,
        unsettled: &UnsettledNodes,
        assessed: &[(Arc<Node>, NodeAssessment)],
        now: Timestamp,
    ) {
        let left_out = |name: &NodeName| !unsettled.nodes.contains(name) && cluster.node(name).is_some();
        for Zone { queue, .. } in self.zones.values_mut() {
            if queue.has_entry_at(now) || assessed.iter().any(|(node, _)| queue.is_waiting(&node.name)) {
                queue.requeue_together(left_out, now);
            }
        }
    }

    /// All nodes, in the order in which a pass handles them.
    pub(super) fn in_order(&self, cluster: &Cluster) -> Vec<Arc<Node>> {
        let mut nodes: Vec<Arc<Node>> = cluster.nodes().iter().cloned().collect();
        self.sort_by_order(&mut nodes, |node| node);
        nodes
    }

    /// Sorts nodes into the order of passes: first the nodes of [`Engine::set_order`], then the others by name. `rows`
    /// must be sorted by node name.
    fn sort_by_order<T>(&self, rows: &mut [T], node: impl Fn(&T) -> &Arc<Node>) {
        if !self.order.is_empty() {
            let places: BTreeMap<&NodeName, usize> = self.order.iter().zip(0..).collect();
            rows.sort_by_key(|row| places.get(&node(row).name).copied().unwrap_or(usize::MAX));
        }
    }

    /// Registers new nodes and removes deleted ones (upstream `classifyNodes`).
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
            self.cancel_planned(cluster, node, Cause::Registered, now);
        }
        for node in nodes {
            self.records.entry(node.name.clone(), || NodeHealth::first_seen(node, cluster.clock(), now));
        }
        if self.registered.len() == nodes.len() {
            return;
        }
        let gone: Vec<NodeName> =
            self.registered.iter().filter(|name| cluster.node(name).is_none()).cloned().collect();
        for name in gone {
            self.registered.remove(&name);
            if self.rules.forgets_deleted_nodes {
                self.records.remove(&name);
            }
            let ghost = Node { name: name.clone(), ..Node::default() };
            let text = format!("Removing Node {name} from Controller");
            self.node_event(&ghost, "RemovingNode", &text, Cause::NodeRemoved, now);
        }
    }

    /// The node's zone, created if it does not exist.
    pub(super) fn ensure_zone(&mut self, node: &Node, now: Timestamp) -> &mut Zone {
        let key = match self.records.get_mut(&node.name) {
            Some(record) => record.zone(node).key.clone(),
            None => node.zone(),
        };
        self.zones.entry(key).or_insert_with_key(|key| {
            self.metrics.touch(key);
            Zone::new(&self.settings, now)
        })
    }

    /// Acts on the assessment of a node (docs/upstream/node-lifecycle.md#3.6).
    fn react(&mut self, cluster: &Cluster, node: &Node, assessment: &NodeAssessment, now: Timestamp) {
        if let Some(conditions) = &assessment.rewrite {
            let (name, uid, version) = (node.name.clone(), node.uid.clone(), node.version);
            let lease = match self.rules.rereads_lease {
                true => LeaseCheck::Version(cluster.lease(&name).map(|lease| lease.version)),
                false => LeaseCheck::Skip,
            };
            let write =
                Write::MarkUnknown { node: name, uid, version, conditions: conditions.clone(), lease };
            if self.out.propose(write, assessment.why.clone(), now) && self.shadow.is_none() {
                self.marking.insert(node.name.clone(), node.version);
            }
        }
        let Some(current) = assessment.current else {
            return self.retry_pods(&node.name, false);
        };
        // An engine that shadows a controller uses the status of Ready that the controller's pass found before it
        // marked the node Unknown.
        let found = self.found_by_controller(node).unwrap_or(assessment.observed);
        match self.rules.profile {
            Profile::Taint => {
                let deciding = if self.rules.taints_by_current_ready { current } else { found };
                self.taint_by_ready(cluster, node, deciding, &assessment.why, now);
            }
            Profile::Legacy => {
                self.evict_after_timeout(cluster, node, found, cluster.pods_on(&node.name), now);
            }
        }
        let turned = current != ConditionStatus::True && assessment.observed == ConditionStatus::True;
        if turned {
            let event = || {
                let object = EventObject::Node(node.name.clone(), node.uid.clone());
                let text = format!("Node {} status is now: NodeNotReady", node.name);
                (not_ready(object, false, text), assessment.why.clone())
            };
            self.out.propose_event(event, now);
            self.notice_silent(node, &assessment.why, now);
        }
        let retry = assessment.pods_to_retry;
        if retry {
            self.retry_pods(&node.name, false);
        }
        if turned || (retry && assessment.observed != ConditionStatus::True) {
            self.mark_pods_not_ready(cluster, node, now);
        }
    }

    fn found_by_controller(&self, node: &Node) -> Option<ConditionStatus> {
        self.shadow.as_ref()?.found_by_controller(&node.name)
    }

    fn retry_pods(&mut self, node: &NodeName, retry: bool) {
        if let Some(record) = self.records.get_mut(node) {
            record.pods_to_retry = retry;
        }
    }

    /// Sends a notice that a node missed its grace period. An engine that shadows a controller sends no notice, because
    /// the watch will show what the controller does.
    fn notice_silent(&mut self, node: &Node, why: &Why, now: Timestamp) {
        if self.out.sends_all() && self.shadow.is_none() {
            let text = format!("node {} missed its grace period: conditions become Unknown", node.name);
            self.out.notice(Severity::Warning, text, why.clone(), now);
        }
    }

    /// Marks all pods of a node not ready (upstream `MarkPodsNotReady`), except in a forecast.
    fn mark_pods_not_ready(&mut self, cluster: &Cluster, node: &Node, now: Timestamp) {
        if self.out.sends_all() {
            for pod in cluster.pods_on(&node.name) {
                self.mark_pod_not_ready(node, pod, now);
            }
        }
    }

    /// Sets a pod's Ready condition to False and records the event.
    pub(super) fn mark_pod_not_ready(&mut self, node: &Node, pod: &Pod, now: Timestamp) {
        let is_false = pod.ready.as_ref().is_none_or(|ready| ready.status == ConditionStatus::False);
        if is_false || !self.out.sends_all() {
            return;
        }
        let (key, uid) = (pod.key.clone(), pod.uid.clone());
        let write = Write::MarkPodNotReady { pod: key, uid, version: pod.version, node: node.name.clone() };
        if self.out.propose(write, Cause::NodeNotReady.into(), now) {
            let event = || {
                let object = EventObject::Pod(pod.key.clone());
                (not_ready(object, true, "Node is not ready".into()), Cause::NodeNotReady.into())
            };
            self.out.propose_event(event, now);
        }
    }

    /// Queues a node for its NoExecute taint, or swaps or removes the taint, depending on the status of Ready (upstream
    /// `processTaintBaseEviction`).
    fn taint_by_ready(
        &mut self,
        cluster: &Cluster,
        node: &Node,
        ready: ConditionStatus,
        why: &Why,
        now: Timestamp,
    ) {
        if ready == ConditionStatus::True {
            return self.mark_reachable(node, Cause::Ready, now);
        }
        let Some((wanted, opposite)) = taints::no_execute_keys(ready) else { return };
        if taints::has_no_execute(node, opposite) {
            let why = why.clone().then(Cause::Swapped);
            taints::swap_no_execute(node, wanted, opposite, why, &mut self.out, cluster.clock(), now);
            return;
        }
        // A taint that is being added keeps the node out of the queue. A taint that is being removed does not: a
        // starting controller removes both NoExecute taints and adds them again at the zone's rate
        // (docs/upstream/node-lifecycle.md#12.10).
        if self.tainting.contains_key(&node.name)
            || self.awaits_taint(&node.name)
            || self.predicted_unknown(node)
        {
            return;
        }
        let queue = &mut self.ensure_zone(node, now).queue;
        if taints::has_no_execute(node, wanted) {
            queue.add(&node.name, &node.uid, now);
        } else {
            queue.move_to_back(&node.name, &node.uid, now);
        }
    }

    /// Whether the engine found the node silent and the shadowed controller has not marked the node Unknown yet.
    fn predicted_unknown(&self, node: &Node) -> bool {
        self.out.has_recorded()
            && node.is_ready()
            && self.out.is_recorded(&EffectSubject::Unknown(node.name.clone()))
    }

    /// Cancels a pending eviction of the node, in either mode.
    pub(super) fn cancel_planned(&mut self, cluster: &Cluster, node: &Node, cause: Cause, now: Timestamp) {
        match self.rules.profile {
            Profile::Taint => self.mark_reachable(node, cause, now),
            Profile::Legacy => self.cancel_eviction(cluster, node),
        }
    }

    /// Removes a node's NoExecute taints, and the node from its zone's queue (upstream `markNodeAsReachable`).
    fn mark_reachable(&mut self, node: &Node, cause: Cause, now: Timestamp) {
        taints::remove_no_execute(node, cause.into(), &mut self.out, now);
        if self.out.has_recorded() {
            self.out.forget(&EffectSubject::Taints(node.name.clone(), TaintEffect::NoExecute));
        }
        if let Some(shadow) = &mut self.shadow {
            shadow.stop_expecting(&node.name);
        }
        if !self.zones.values().any(|zone| zone.queue.knows_any()) {
            return;
        }
        let zone = self.records.get_mut(&node.name).map(|record| &record.zone(node).key);
        if let Some(zone) = zone.and_then(|zone| self.zones.get_mut(zone)) {
            zone.queue.remove(&node.name);
        }
    }

    /// When the tainting loop next finds a token and a waiting node; none if no node waits.
    pub(super) fn tainting_due(&self) -> Option<Timestamp> {
        // A tick finds waiting nodes only after the pass that queues them has ended. While the engine waits for the
        // last writes of a shadowed controller's pass, it does not know yet whether that pass stops a zone, so no tick
        // counts before the engine's own pass.
        let is_following = self.shadow.as_ref().is_some_and(|shadow| shadow.followed_pass_ended().is_some());
        let pass_ended = if is_following {
            self.next_pass
        } else {
            self.next_pass - self.settings.node_monitor_period.value
        };
        let tick = self.last_tainting.map_or(self.tainting_tick, |last| last + TAINTING_PERIOD);
        let not_before = tick.max(pass_ended);
        let of_zone = |zone: &Zone| {
            let head = zone.queue.head_at()?;
            zone.limiter.next_token(not_before).map(|token| token.max(head).max(not_before))
        };
        let due = self.zones.values().filter_map(of_zone).min()?;
        Some(self.next_tick(due))
    }

    /// Returns the first tick of the tainting loop at or after `at`. Upstream starts each period at the end of the
    /// previous tick, so a late tick delays all later ones.
    pub(super) fn next_tick(&self, at: Timestamp) -> Timestamp {
        let period = TAINTING_PERIOD.as_nanos();
        let anchor = self.last_tainting.unwrap_or(self.tainting_tick);
        let into = at.since(anchor).as_nanos().rem_euclid(period);
        if into == 0 { at } else { at + Span::from_nanos(period - into) }
    }

    pub(super) fn why_tainting(&self) -> Why {
        let waiting = self.zones.iter().find(|(_, zone)| !zone.queue.is_empty());
        waiting.map_or_else(Why::default, |(key, zone)| queued(key, zone).into())
    }

    /// Requests the NoExecute taint for waiting nodes, as far as the zones' limiters allow (upstream
    /// `doNoExecuteTaintingPass`).
    pub(super) fn taint_waiting(&mut self, cluster: &Cluster, now: Timestamp) {
        // Upstream marks a node Unknown within the pass that queues it. A write by kordon may still be in flight at the
        // next tick, so the taint waits for the write.
        let is_on_its_way = |node: &NodeName, decided_on: &mut Version| {
            self.out.is_busy(&EffectSubject::Unknown(node.clone()))
                || cluster.node(node).is_some_and(|node| node.version == *decided_on)
        };
        self.marking.retain(is_on_its_way);
        let Self {
            zones,
            records,
            heartbeats,
            settings,
            out,
            shadow,
            scope,
            tainting,
            queue_events,
            marking,
            ..
        } = self;
        for (key, zone) in zones.iter_mut() {
            let waiting = queued(key, zone);
            let Zone { queue, limiter, .. } = zone;
            let is_contest = !out.sends_all() && limiter.next_token(now) == Some(now);
            if is_contest {
                let event = |change| QueueEvent::Changed { zone: key.clone(), change };
                queue_events.extend(queue.changes().into_iter().map(event));
            }
            queue.process_others(
                |node| marking.contains_key(node),
                limiter,
                now,
                |entry| {
                    let Some(node) = cluster.node(&entry.node) else { return Processed::Done };
                    let Some(ready) = node.ready() else { return Processed::RetryAfter(TAINTER_RETRY) };
                    let Some((wanted, opposite)) = taints::no_execute_keys(ready.status) else {
                        return Processed::Done;
                    };
                    if shadow.is_some() && taints::has_no_execute(node, wanted) {
                        return Processed::Done;
                    }
                    let silent = records.get_mut(&entry.node).map_or_else(Why::default, |record| {
                        if let PassScope::Unsettled(unsettled) = scope {
                            record.keep_alive(unsettled.last_pass);
                        }
                        record.why(settings, heartbeats.last(&entry.node))
                    });
                    let state = match ready.status {
                        ConditionStatus::Unknown => Cause::Silent,
                        status => Cause::Posted { status, reason: ready.reason.clone() },
                    };
                    let why =
                        silent.then(state).then(waiting.clone()).then(Cause::Token { zone: key.clone() });
                    if taints::swap_no_execute(node, wanted, opposite, why, out, cluster.clock(), now) {
                        tainting.insert(entry.node.clone(), node.zone());
                        if let Some(shadow) = shadow {
                            shadow.expect_turn(&entry.node, key, now);
                        }
                        if is_contest {
                            let (node, zone) = (entry.node.clone(), key.clone());
                            queue_events.push_back(QueueEvent::Tainted { zone, node, at: now });
                        }
                    }
                    Processed::Done
                },
            );
        }
    }

    pub(super) fn node_event(
        &mut self,
        node: &Node,
        reason: &'static str,
        text: &str,
        cause: Cause,
        now: Timestamp,
    ) {
        let event = || {
            let event = RecordedEvent {
                object: EventObject::Node(node.name.clone(), node.uid.clone()),
                warning: false,
                reason,
                message: format!("Node {} event: {text}", node.name),
                source: "node-controller",
            };
            (event, cause.into())
        };
        self.out.propose_event(event, now);
    }
}

/// The findings of a pass, before it acts on them.
#[derive(Debug)]
struct PassFindings {
    /// Whether the queue of at least one zone knows a node. Otherwise the queues are not searched.
    queues_know_nodes: bool,
    census: BTreeMap<ZoneKey, Census>,
    /// The nodes that the pass may have to act on, in the order of the pass.
    assessed: Vec<(Arc<Node>, NodeAssessment)>,
}

impl PassFindings {
    fn new(zones: &BTreeMap<ZoneKey, Zone>) -> Self {
        Self {
            queues_know_nodes: zones.values().any(|zone| zone.queue.knows_any()),
            census: BTreeMap::new(),
            assessed: Vec::new(),
        }
    }
}

/// A NodeNotReady event about a node, or about a pod on that node.
fn not_ready(object: EventObject, warning: bool, message: String) -> RecordedEvent {
    RecordedEvent { object, warning, reason: "NodeNotReady", message, source: "node-controller" }
}

pub(super) fn queued(key: &ZoneKey, zone: &Zone) -> Cause {
    let state = zone.state.unwrap_or(ZoneState::Initial);
    Cause::Queued { zone: key.clone(), state, rate: zone.limiter.rate() }
}
