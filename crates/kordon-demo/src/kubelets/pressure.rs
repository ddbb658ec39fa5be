//! Rules of node-pressure eviction: which thresholds are met, and which pod is evicted first
//! (docs/upstream/placement-and-pressure.md#6).

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use super::{
    config::{self, EvictionRule, HARD_MEMORY},
    usage::{MachineSample, PodSample},
};
use crate::objects::{Object, Pod, memory_kib};
use kordon_time::{Span, Timestamp};

/// State of the node's pressure that a kubelet keeps between passes.
#[derive(Clone, Debug, Default)]
pub struct PressureState {
    /// For each eviction rule that is met, by its index, the time since which it has been met.
    met_since: BTreeMap<usize, Timestamp>,
    /// Eviction rules that have started to evict pods. They count as met until their minimum reclaim is reached.
    driving: BTreeSet<usize>,
    /// For each node condition, the last time at which one of its eviction rules was met.
    condition_met: BTreeMap<&'static str, Timestamp>,
    /// Time until which the kubelet waits for the end of the pod that it evicts.
    pub evicts_until: Option<Timestamp>,
}

/// A signal that requires the eviction of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StarvedSignal {
    pub signal: &'static str,
    /// The threshold and the available amount, in the unit of the signal.
    pub threshold: i64,
    pub available: i64,
    pub kind: EvictionUrgency,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvictionUrgency {
    Hard,
    Soft,
}

/// Minimum priority of a critical pod.
const CRITICAL: i64 = 2_000_000_000;

impl PressureState {
    /// Whether earlier pressure no longer has an effect.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.met_since.is_empty() && self.conditions(now).next().is_none()
    }

    /// The pressure conditions that are True.
    pub fn conditions(&self, now: Timestamp) -> impl Iterator<Item = &'static str> {
        let recent = move |(_, met): &(&&str, &Timestamp)| now.since(**met) < config::TRANSITION_PERIOD;
        self.condition_met.iter().filter(recent).map(|(condition, _)| *condition)
    }

    /// Runs one pass over the usage of the machine. Returns the signal that requires the eviction of a pod; None if no
    /// eviction is required.
    pub fn observe(&mut self, sample: &MachineSample, now: Timestamp) -> Option<StarvedSignal> {
        let rules = config::rules();
        let mut shortages = Vec::new();
        for (place, rule) in rules.iter().enumerate() {
            let Some(shortage) = shortage(rule, sample, self.driving.contains(&place)) else {
                self.met_since.remove(&place);
                self.driving.remove(&place);
                continue;
            };
            let since = *self.met_since.entry(place).or_insert(now);
            self.condition_met.insert(condition(shortage.signal), now);
            if now.since(since) >= rule.grace.unwrap_or(Span::ZERO) {
                self.driving.insert(place);
                shortages.push(shortage);
            }
        }
        // The eviction rules are sorted by urgency, so the first signal is the most urgent.
        shortages.into_iter().next()
    }
}

/// Returns the signal of an eviction rule; None if the rule is not met. A rule that has started to evict pods counts as
/// met until its minimum reclaim is reached.
fn shortage(rule: &EvictionRule, sample: &MachineSample, is_driving: bool) -> Option<StarvedSignal> {
    let signal = rule.threshold.signal;
    let (available, capacity) = observed(signal, sample);
    let threshold = rule.threshold.bytes(capacity);
    let wanted = if is_driving { threshold + rule.reclaim(capacity) } else { threshold };
    let kind = if rule.grace.is_some() { EvictionUrgency::Soft } else { EvictionUrgency::Hard };
    (available < wanted).then_some(StarvedSignal { signal, threshold, available, kind })
}

/// Returns the available amount of a signal, and the capacity of its resource.
fn observed(signal: &str, sample: &MachineSample) -> (i64, i64) {
    let (free, size) = (sample.disk_available(), sample.disk_capacity);
    match signal {
        "memory.available" => (sample.memory_available(), sample.memory_capacity),
        "allocatableMemory.available" => {
            let limit = sample.pods_memory_limit();
            (limit - sample.pods_memory().working_set, limit)
        }
        "nodefs.available" | "imagefs.available" => (free.bytes, size.bytes),
        "nodefs.inodesFree" | "imagefs.inodesFree" => (free.inodes, size.inodes),
        _ => (sample.max_processes - sample.processes, sample.max_processes),
    }
}

fn condition(signal: &str) -> &'static str {
    match resource(signal) {
        "memory" => "MemoryPressure",
        "pids" => "PIDPressure",
        _ => "DiskPressure",
    }
}

/// Returns the resource of a signal, by the name that the kubelet's messages use.
pub fn resource(signal: &str) -> &'static str {
    match signal {
        "memory.available" | "allocatableMemory.available" => "memory",
        "nodefs.available" | "imagefs.available" => "ephemeral-storage",
        "nodefs.inodesFree" | "imagefs.inodesFree" => "inodes",
        _ => "pids",
    }
}

/// Returns the pods of a machine in the order in which they are evicted. Exempt pods are left out.
pub fn victims<'a, 's>(signal: &str, sample: &'s MachineSample<'a>) -> Vec<&'s PodSample<'a>> {
    let mut pods: Vec<&PodSample> = sample.pods.iter().filter(|pod| !is_exempt(pod.pod)).collect();
    pods.sort_by_key(|pod| {
        let (used, request) = demand(signal, pod);
        let is_within = request.is_some_and(|request| used <= request);
        (is_within, pod.pod.spec.priority, Reverse(used - request.unwrap_or(0)))
    });
    pods
}

/// Returns a pod's usage of the signal's resource, and the pod's request for it. The request is None for a resource
/// without requests.
pub fn demand(signal: &str, pod: &PodSample) -> (i64, Option<i64>) {
    match resource(signal) {
        "memory" => (pod.memory.working_set, Some(pod.pod.requests().1 * 1024)),
        "ephemeral-storage" => (pod.disk().bytes, Some(storage_request(pod.pod))),
        "inodes" => (pod.disk().inodes, None),
        _ => (pod.processes, None),
    }
}

fn storage_request(pod: &Pod) -> i64 {
    let texts = pod.spec.containers.iter().filter_map(|c| c.resources.requests.get("ephemeral-storage"));
    texts.filter_map(|text| memory_kib(text)).sum::<i64>() * 1024
}

/// Whether a pod is exempt from eviction by pressure, because it is static or critical.
fn is_exempt(pod: &Pod) -> bool {
    pod.spec.priority >= CRITICAL || pod.controller().is_some_and(|owner| owner.kind == "Node")
}

/// Whether a kubelet with these pressure conditions rejects a new pod.
pub fn rejects(conditions: &BTreeSet<&'static str>, pod: &Pod) -> bool {
    if conditions.is_empty() || is_exempt(pod) {
        return false;
    }
    if conditions.iter().any(|condition| *condition != "MemoryPressure") {
        return true;
    }
    let taint = crate::objects::Taint {
        key: "node.kubernetes.io/memory-pressure".into(),
        value: String::new(),
        effect: "NoSchedule".into(),
    };
    let tolerates = pod.spec.tolerations.iter().any(|toleration| toleration.tolerates(&taint));
    pod.is_best_effort() && !tolerates
}

/// The message about an evicted pod, as a kubelet writes it.
pub fn message(shortage: &StarvedSignal, pod: &PodSample) -> String {
    let what = resource(shortage.signal);
    let amount = |amount: i64| match what {
        "memory" | "ephemeral-storage" => quantity(amount),
        _ => amount.to_string(),
    };
    let mut text = format!(
        "The node was low on resource: {what}. Threshold quantity: {}, available: {}. ",
        amount(shortage.threshold),
        amount(shortage.available.max(0))
    );
    for container in &pod.containers {
        let spec = pod.pod.spec.containers.iter().find(|spec| spec.name == container.name);
        let request = |resource: &str| {
            let text = spec.and_then(|spec| spec.resources.requests.get(resource));
            text.and_then(|text| memory_kib(text)).unwrap_or(0) * 1024
        };
        let (used, request) = match what {
            "memory" => (container.memory.working_set, request("memory")),
            "ephemeral-storage" => {
                (container.layer.bytes + container.logs.bytes, request("ephemeral-storage"))
            }
            _ => continue,
        };
        if used > request {
            text.push_str(&format!(
                "Container {} was using {}, request is {}, has larger consumption of {what}. ",
                container.name,
                quantity(used),
                quantity(request),
            ));
        }
    }
    text
}

/// Formats bytes as a Kubernetes quantity, with the largest binary suffix that leaves a whole number.
fn quantity(bytes: i64) -> String {
    let suffixes = ["", "Ki", "Mi", "Gi", "Ti"];
    let (mut number, mut suffix) = (bytes, 0);
    while number != 0 && number % 1024 == 0 && suffix + 1 < suffixes.len() {
        number /= 1024;
        suffix += 1;
    }
    format!("{number}{}", suffixes[suffix])
}

impl MachineSample<'_> {
    /// The memory limit of the cgroup of all pods. It excludes reserved memory, but includes the hard eviction
    /// threshold.
    pub fn pods_memory_limit(&self) -> i64 {
        self.allocatable_memory + HARD_MEMORY.bytes(self.memory_capacity)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{objects::Node, random::RandomSource};

    const START: Timestamp = Timestamp::from_secs(1_800_000_000);

    #[test]
    fn quantities_have_the_largest_suffix_that_divides_them() {
        let all = [(0, "0"), (1000, "1000"), (1024, "1Ki"), (1536 << 20, "1536Mi"), (2 << 30, "2Gi")];
        assert!(all.iter().all(|(bytes, text)| quantity(*bytes) == *text));
    }

    #[test]
    fn a_soft_threshold_is_a_condition_at_once_and_evicts_after_its_grace_period() {
        let mut state = PressureState::default();
        assert_eq!(observe(&mut state, 1400, 0), None);
        assert_eq!(state.conditions(START).collect::<Vec<_>>(), ["MemoryPressure"]);
        assert_eq!(observe(&mut state, 1400, 80), None);
        // The available memory rises above the threshold, so the grace period starts again.
        assert_eq!(observe(&mut state, 1600, 85), None);
        assert_eq!(observe(&mut state, 1400, 90), None);
        assert_eq!(observe(&mut state, 1400, 170), None);
        let shortage = observe(&mut state, 1400, 180).expect("met for 90 s");
        assert_eq!((shortage.kind, shortage.threshold), (EvictionUrgency::Soft, 1536 << 20));
        // Evictions continue until the available memory is above the threshold by the minimum reclaim.
        assert!(observe(&mut state, 1800, 190).is_some());
        assert_eq!(observe(&mut state, 2100, 200), None);
        assert_eq!(observe(&mut state, 1800, 210), None);
        assert!(state.conditions(START + Span::from_secs(489)).next().is_some());
        assert!(state.is_over(START + Span::from_secs(490)));
    }

    #[test]
    fn a_hard_threshold_evicts_at_once() {
        let mut state = PressureState::default();
        let shortage = observe(&mut state, 400, 0).expect("below 512 MiB");
        assert_eq!((shortage.kind, shortage.signal), (EvictionUrgency::Hard, "memory.available"));
    }

    /// Rows of docs/upstream/placement-and-pressure.md#6.7. They show that bytes over the request are a sort key, and
    /// that the QoS class is not.
    #[test]
    fn pods_over_their_request_go_first_then_by_priority_then_by_how_much() {
        let pods: Vec<Pod> = [
            ("within", 0, Some("30Gi"), json!([])),
            ("low-within", -5, Some("30Gi"), json!([])),
            ("little-over", 0, Some("10Mi"), json!([])),
            ("far-over", 0, None, json!([])),
            ("important-over", 100, None, json!([])),
            ("critical-over", CRITICAL, None, json!([])),
            (
                "static-over",
                0,
                None,
                json!([{"kind": "Node", "controller": true, "name": "n", "uid": "n", "apiVersion": "v1"}]),
            ),
        ]
        .into_iter()
        .map(|(name, priority, request, owners)| pod(name, priority, request, &owners))
        .collect();
        let node = node();
        let mut sample =
            MachineSample::new(&node, pods.iter(), &BTreeMap::new(), RandomSource::new(1), START);
        for pod in &mut sample.pods {
            pod.memory.working_set =
                if pod.pod.metadata.name.as_deref() == Some("far-over") { 900 } else { 400 } << 20;
        }
        let order: Vec<_> = victims("memory.available", &sample)
            .iter()
            .map(|pod| pod.pod.metadata.name.clone().unwrap_or_default())
            .collect();
        assert_eq!(order, ["far-over", "little-over", "important-over", "low-within", "within"]);
    }

    #[test]
    fn under_memory_pressure_only_best_effort_pods_are_rejected_and_under_others_all() {
        let memory = BTreeSet::from(["MemoryPressure"]);
        let disk = BTreeSet::from(["DiskPressure"]);
        let none = json!([]);
        assert!(rejects(&memory, &pod("best-effort", 0, None, &none)));
        assert!(!rejects(&memory, &pod("burstable", 0, Some("1Mi"), &none)));
        assert!(rejects(&disk, &pod("burstable", 0, Some("1Mi"), &none)));
        assert!(!rejects(&disk, &pod("critical", CRITICAL, None, &none)));
        assert!(!rejects(&BTreeSet::new(), &pod("best-effort", 0, None, &none)));
    }

    fn observe(state: &mut PressureState, available_mib: i64, second: i64) -> Option<StarvedSignal> {
        let node = node();
        let mut sample =
            MachineSample::new(&node, [].into_iter(), &BTreeMap::new(), RandomSource::new(1), START);
        sample.other.working_set += sample.memory_available() - (available_mib << 20);
        state.observe(&sample, START + Span::from_secs(second))
    }

    fn node() -> Node {
        let size = json!({"memory": "32Gi", "ephemeral-storage": "100Gi"});
        let allocatable = json!({"memory": "31232Mi"});
        serde_json::from_value(
            json!({"metadata": {"name": "n"}, "status": {"capacity": size, "allocatable": allocatable}}),
        )
        .expect("a node")
    }

    fn pod(name: &str, priority: i64, request: Option<&str>, owners: &Value) -> Pod {
        let resources = request.map_or(json!({}), |memory| json!({"requests": {"memory": memory}}));
        serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "d", "uid": name, "ownerReferences": owners},
            "spec": {"priority": priority, "containers": [{"name": "app", "resources": resources}]},
            "status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z",
                "qosClass": if request.is_some() { "Burstable" } else { "BestEffort" }},
        }))
        .expect("a pod")
    }
}
