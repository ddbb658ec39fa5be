//! ResourceQuotas of the embedded cluster: the amounts that they count for pods. Admission and the quota controller
//! both use this module.

use serde_json::{Map, Value};

use super::objects::{Object, Pod, cpu_milli, memory_kib};
use kordon_time::{Span, Timestamp};

/// Returns the amount of a resource that a quota counts for a pod; None if quotas of this resource do not count pods.
pub fn charge(resource: &str, pod: &Pod) -> Option<i64> {
    let (cpu, memory) = pod.requests();
    let (cpu_limit, memory_limit) = pod.limits();
    Some(match resource {
        "pods" | "count/pods" => 1,
        "cpu" | "requests.cpu" => cpu,
        "memory" | "requests.memory" => memory,
        "limits.cpu" => cpu_limit,
        "limits.memory" => memory_limit,
        _ => return None,
    })
}

/// Parses an amount of a resource: CPU in thousandths of a core, memory in KiB.
pub fn parse(resource: &str, amount: &Value) -> Option<i64> {
    let text = amount.as_str().map_or_else(|| amount.to_string(), str::to_owned);
    match unit(resource) {
        Unit::Cpu => cpu_milli(&text),
        Unit::Memory => memory_kib(&text),
        Unit::Count => text.parse().ok(),
    }
}

/// Formats an amount of a resource: CPU in thousandths of a core, memory in KiB.
pub fn text(resource: &str, amount: i64) -> String {
    match unit(resource) {
        Unit::Cpu => format!("{amount}m"),
        Unit::Memory => format!("{amount}Ki"),
        Unit::Count => amount.to_string(),
    }
}

enum Unit {
    Cpu,
    Memory,
    Count,
}

fn unit(resource: &str) -> Unit {
    if resource.ends_with("cpu") {
        Unit::Cpu
    } else if resource.ends_with("memory") {
        Unit::Memory
    } else {
        Unit::Count
    }
}

/// Whether a pod matches all scopes of a quota. For priority classes, only the operator In is supported.
pub fn covers(spec: &Value, pod: &Pod) -> bool {
    let names = spec["scopes"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut names = names.map(|name| match name {
        "BestEffort" => pod.status.qos_class == "BestEffort",
        "NotBestEffort" => pod.status.qos_class != "BestEffort",
        "Terminating" => pod.spec.active_deadline_seconds.is_some(),
        "NotTerminating" => pod.spec.active_deadline_seconds.is_none(),
        _ => false,
    });
    let expressions = spec["scopeSelector"]["matchExpressions"].as_array();
    let mut classes = expressions.into_iter().flatten().map(|expression| {
        let values = expression["values"].as_array();
        expression["scopeName"] == "PriorityClass"
            && values.into_iter().flatten().any(|class| *class == *pod.spec.priority_class_name)
    });
    names.all(|holds| holds) && classes.all(|holds| holds)
}

/// Whether quotas count a pod. Finished pods are not counted, nor are pods that have been terminating for more than
/// twice their grace period.
pub fn counts(pod: &Pod, now: Timestamp) -> bool {
    !pod.is_finished() && counts_until(pod).is_none_or(|until| now <= until)
}

/// Returns the time after which quotas no longer count a terminating pod; None if the pod is not terminating.
pub fn counts_until(pod: &Pod) -> Option<Timestamp> {
    let deadline = Timestamp::parse(&pod.metadata.deletion_timestamp.as_ref()?.0.to_string())?;
    let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or(0);
    Some(deadline + Span::from_secs(grace)).filter(|_| pod.is_deleted())
}

/// Returns the amount that the pods use of each resource that a quota limits.
pub fn used(spec: &Value, pods: &[&Pod], now: Timestamp) -> Map<String, Value> {
    let limits = spec["hard"].as_object().into_iter().flatten();
    let used = limits.filter_map(|(resource, _)| {
        let counted = pods.iter().filter(|pod| covers(spec, pod));
        let counted = counted.filter(|pod| resource == "count/pods" || counts(pod, now));
        let amounts: Option<Vec<i64>> = counted.map(|pod| charge(resource, pod)).collect();
        Some((resource.clone(), text(resource, amounts?.iter().sum()).into()))
    });
    used.collect()
}
