//! Basic validation of objects, with the error texts of a Kubernetes API server.

use serde_json::{Value, json};

use super::{
    json::text,
    kinds::Kind,
    refusal::{FieldCause, Refusal},
    selector::label_selector_matches,
};

/// Validates a new object, or the new state of a changed object. For a changed object, `before` is the old state.
pub fn check(kind: &Kind, value: &Value, before: Option<&Value>) -> Result<(), Refusal> {
    let mut causes = Vec::new();
    let name = text(value, "/metadata/name");
    if before.is_none() {
        name_is_valid(name, &mut causes);
    }
    match kind.name {
        "Node" => taints_are_valid(value, &mut causes),
        "Pod" => {
            pod_is_valid(&value["spec"], "spec", &mut causes);
            if let Some(before) = before {
                pod_changed_only_what_it_may(before, value, &mut causes);
            }
        }
        "PodDisruptionBudget" => budget_is_valid(value, &mut causes),
        "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet" => {
            workload_is_valid(value, before, &mut causes);
        }
        "Lease" => lease_is_valid(value, &mut causes),
        _ => {}
    }
    if causes.is_empty() { Ok(()) } else { Err(Refusal::invalid(kind, name, causes)) }
}

/// Checks that a name is a DNS-1123 subdomain of at most 253 characters.
fn name_is_valid(name: &str, causes: &mut Vec<FieldCause>) {
    if name.is_empty() {
        let mut cause = FieldCause::required("metadata.name");
        cause.message.push_str(": name or generateName is required");
        causes.push(cause);
        return;
    }
    let part_fits = |part: &str| {
        let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        !part.is_empty() && part.chars().all(inner) && !part.starts_with('-') && !part.ends_with('-')
    };
    // Upstream also allows a colon in the names of RBAC objects, but this API has no such objects.
    if name.len() > 253 || !name.split('.').all(part_fits) {
        let why = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
                   and must start and end with an alphanumeric character";
        causes.push(FieldCause::invalid("metadata.name", &json!(name), why));
    }
}

/// Validates taints (docs/upstream/operator-actions.md#2.4). The paths of the fields start with `metadata`, as in
/// upstream.
fn taints_are_valid(node: &Value, causes: &mut Vec<FieldCause>) {
    let Some(taints) = node.pointer("/spec/taints").and_then(Value::as_array) else { return };
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for (i, taint) in taints.iter().enumerate() {
        let path = |field: &str| format!("metadata.taints[{i}].{field}");
        let (key, value, effect) = (text(taint, "/key"), text(taint, "/value"), text(taint, "/effect"));
        if !is_qualified_name(key) {
            causes.push(FieldCause::invalid(path("key"), &json!(key), "name part must be a qualified name"));
        }
        if !is_label_value(value) {
            causes.push(FieldCause::invalid(path("value"), &json!(value), "a valid label value is expected"));
        }
        match effect {
            "NoSchedule" | "PreferNoSchedule" | "NoExecute" => {}
            "" => causes.push(FieldCause::required(path("effect"))),
            _ => {
                let supported = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
                causes.push(FieldCause::unsupported(path("effect"), &json!(effect), &supported));
            }
        }
        if seen.contains(&(key, effect)) {
            let why = "taints must be unique by key and effect pair";
            causes.push(FieldCause::duplicate(format!("metadata.taints[{i}]"), taint, why));
        }
        seen.push((key, effect));
    }
}

fn is_qualified_name(key: &str) -> bool {
    let name = match key.split_once('/') {
        Some((prefix, name)) => {
            let mut causes = Vec::new();
            name_is_valid(prefix, &mut causes);
            if !causes.is_empty() {
                return false;
            }
            name
        }
        None => key,
    };
    !name.is_empty() && is_label_value(name)
}

fn is_label_value(value: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let edge = |c: Option<char>| c.is_none_or(|c| c.is_ascii_alphanumeric());
    value.len() <= 63
        && value.chars().all(inner)
        && edge(value.chars().next())
        && edge(value.chars().next_back())
}

fn pod_is_valid(spec: &Value, path: &str, causes: &mut Vec<FieldCause>) {
    match spec["containers"].as_array() {
        None => causes.push(FieldCause::required(format!("{path}.containers"))),
        Some(containers) if containers.is_empty() => {
            causes.push(FieldCause::required(format!("{path}.containers")));
        }
        Some(containers) => {
            for (i, container) in containers.iter().enumerate() {
                if text(container, "/name").is_empty() {
                    causes.push(FieldCause::required(format!("{path}.containers[{i}].name")));
                }
            }
        }
    }
    let tolerations = spec["tolerations"].as_array();
    for (i, toleration) in tolerations.into_iter().flatten().enumerate() {
        toleration_is_valid(toleration, &format!("{path}.tolerations[{i}]"), causes);
    }
    if spec["terminationGracePeriodSeconds"].as_i64().is_some_and(|secs| secs < 0) {
        let path = format!("{path}.terminationGracePeriodSeconds");
        let why = "must be greater than or equal to 0";
        causes.push(FieldCause::invalid(path, &spec["terminationGracePeriodSeconds"], why));
    }
}

fn toleration_is_valid(toleration: &Value, path: &str, causes: &mut Vec<FieldCause>) {
    let operator = text(toleration, "/operator");
    if text(toleration, "/key").is_empty() && operator != "Exists" {
        let why =
            "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        causes.push(FieldCause::invalid(format!("{path}.operator"), &json!(operator), why));
    }
    if !toleration["tolerationSeconds"].is_null() && text(toleration, "/effect") != "NoExecute" {
        let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        causes.push(FieldCause::invalid(format!("{path}.effect"), &toleration["effect"], why));
    }
    if operator == "Exists" && !text(toleration, "/value").is_empty() {
        let why = "value must be empty when `operator` is 'Exists'";
        causes.push(FieldCause::invalid(format!("{path}.operator"), toleration, why));
    }
    if !matches!(operator, "" | "Equal" | "Exists" | "Lt" | "Gt") {
        causes.push(FieldCause::unsupported(
            format!("{path}.operator"),
            &json!(operator),
            &["Equal", "Exists", "Lt", "Gt"],
        ));
    }
}

/// Checks that an update of a pod changes only those fields of the spec that may change, such as images and
/// `activeDeadlineSeconds`, and removes no tolerations.
fn pod_changed_only_what_it_may(before: &Value, after: &Value, causes: &mut Vec<FieldCause>) {
    let fixed = |pod: &Value| {
        let mut spec = pod["spec"].clone();
        if let Some(fields) = spec.as_object_mut() {
            for free in [
                "tolerations",
                "activeDeadlineSeconds",
                "terminationGracePeriodSeconds",
                "schedulingGates",
                "ephemeralContainers",
            ] {
                fields.remove(free);
            }
            for list in ["containers", "initContainers"] {
                for container in fields.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                    container.as_object_mut().map(|c| c.remove("image"));
                }
            }
        }
        spec
    };
    let tolerations = |pod: &Value| pod["spec"]["tolerations"].as_array().cloned().unwrap_or_default();
    let (old, new) = (tolerations(before), tolerations(after));
    if fixed(before) != fixed(after) || old.iter().any(|toleration| !new.contains(toleration)) {
        let why = "pod updates may not change fields other than `spec.containers[*].image`,\
                   `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions \
                   to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it \
                   was previously negative)";
        causes.push(FieldCause::forbidden("spec", why));
    }
}

fn budget_is_valid(budget: &Value, causes: &mut Vec<FieldCause>) {
    let spec = &budget["spec"];
    if !spec["minAvailable"].is_null() && !spec["maxUnavailable"].is_null() {
        let why = "minAvailable and maxUnavailable cannot be both set";
        causes.push(FieldCause::invalid("spec", spec, why));
    }
    for field in ["minAvailable", "maxUnavailable"] {
        let amount = &spec[field];
        let percent = |text: &str| text.strip_suffix('%').and_then(|n| n.parse::<u32>().ok());
        let fits = match amount {
            Value::Null => true,
            Value::String(text) => percent(text).is_some_and(|n| n <= 100),
            other => other.as_i64().is_some_and(|n| n >= 0),
        };
        if !fits {
            let why = "must be a number of pods or a percentage from 0% to 100%";
            causes.push(FieldCause::invalid(format!("spec.{field}"), amount, why));
        }
    }
    let policy = text(budget, "/spec/unhealthyPodEvictionPolicy");
    if !matches!(policy, "" | "IfHealthyBudget" | "AlwaysAllow") {
        let supported = ["AlwaysAllow", "IfHealthyBudget"];
        causes.push(FieldCause::unsupported("spec.unhealthyPodEvictionPolicy", &json!(policy), &supported));
    }
}

fn workload_is_valid(workload: &Value, before: Option<&Value>, causes: &mut Vec<FieldCause>) {
    let spec = &workload["spec"];
    let labels = &spec["template"]["metadata"]["labels"];
    match &spec["selector"] {
        Value::Null => causes.push(FieldCause::required("spec.selector")),
        selector => {
            let label = |key: &str| labels[key].as_str().map(str::to_owned);
            if label_selector_matches(selector, label) != Some(true) {
                let why = "`selector` does not match template `labels`";
                causes.push(FieldCause::invalid("spec.template.metadata.labels", labels, why));
            }
        }
    }
    if spec["replicas"].as_i64().is_some_and(|n| n < 0) {
        let why = "must be greater than or equal to 0";
        causes.push(FieldCause::invalid("spec.replicas", &spec["replicas"], why));
    }
    pod_is_valid(&spec["template"]["spec"], "spec.template.spec", causes);
    if before.is_some_and(|before| before["spec"]["selector"] != spec["selector"]) {
        causes.push(FieldCause::invalid("spec.selector", &spec["selector"], "field is immutable"));
    }
}

fn lease_is_valid(lease: &Value, causes: &mut Vec<FieldCause>) {
    let duration = &lease["spec"]["leaseDurationSeconds"];
    if duration.as_i64().is_some_and(|secs| secs <= 0) {
        causes.push(FieldCause::invalid("spec.leaseDurationSeconds", duration, "must be greater than 0"));
    }
}
