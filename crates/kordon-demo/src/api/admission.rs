//! Defaults and admission plugins.

use serde_json::{Map, Value, json};

use super::{
    ApiOptions,
    json::{metadata, text},
    kinds::{self, Kind},
    object::ObjectKey,
    refusal::Refusal,
    store::Store,
};

/// Applies defaults and admission plugins to a new object.
pub fn on_create(kind: &Kind, value: &mut Value, options: &ApiOptions, store: &Store) -> Result<(), Refusal> {
    match kind.name {
        "Pod" => new_pod(value, options, store)?,
        "Node" => new_node(value, options),
        "Namespace" => new_namespace(value),
        "PodDisruptionBudget" => {
            value["status"] =
                json!({"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0});
        }
        "Deployment" | "ReplicaSet" | "StatefulSet" | "ReplicationController" => new_replicated(kind, value),
        "DaemonSet" => {
            value["status"] = json!({"currentNumberScheduled": 0, "desiredNumberScheduled": 0,
                "numberMisscheduled": 0, "numberReady": 0});
        }
        "Job" => new_job(value),
        "PriorityClass" => set_default(value, "preemptionPolicy", json!("PreemptLowerPriority")),
        "Event" => set_default(value, "type", json!("Normal")),
        _ => {}
    }
    on_write(kind, value);
    Ok(())
}

/// Applies the admission plugins that also run on updates.
pub fn on_update(kind: &Kind, value: &mut Value, options: &ApiOptions) {
    if kind.name == "Pod" {
        add_default_tolerations(value, options);
    }
    on_write(kind, value);
}

/// Removes the fields that Go's `omitempty` omits. Writing the same object again then changes nothing.
fn on_write(kind: &Kind, value: &mut Value) {
    drop_nulls(value);
    let metadata = metadata(value);
    metadata.retain(|key, value| !is_empty(value) || key == "name");
    if kind.name == "Node"
        && let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut)
    {
        spec.retain(|key, value| match key.as_str() {
            "unschedulable" => *value == Value::Bool(true),
            _ => !is_empty(value),
        });
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Removes null fields, because null means that a field is absent. Nulls inside lists stay.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn object<'a>(value: &'a mut Value, field: &str) -> &'a mut Map<String, Value> {
    if !value[field].is_object() {
        value[field] = Value::Object(Map::new());
    }
    value[field].as_object_mut().expect("made an object above")
}

fn set_default(value: &mut Value, field: &str, default: Value) {
    if value.get(field).is_none_or(Value::is_null) {
        value[field] = default;
    }
}

fn new_pod(pod: &mut Value, options: &ApiOptions, store: &Store) -> Result<(), Refusal> {
    object(pod, "spec");
    let spec = &mut pod["spec"];
    for (field, default) in [
        ("restartPolicy", json!("Always")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("dnsPolicy", json!("ClusterFirst")),
        ("schedulerName", json!("default-scheduler")),
        ("securityContext", json!({})),
        ("enableServiceLinks", json!(true)),
    ] {
        set_default(spec, field, default);
    }
    for container in containers(spec) {
        set_default(container, "resources", json!({}));
        default_requests(container);
    }
    resolve_priority(pod, store)?;
    add_default_tolerations(pod, options);
    let qos = quality_of_service(&mut pod["spec"]);
    pod["status"] = json!({"phase": "Pending", "qosClass": qos});
    Ok(())
}

fn containers(spec: &mut Value) -> impl Iterator<Item = &mut Value> {
    spec.get_mut("containers").and_then(Value::as_array_mut).into_iter().flatten().filter(|c| c.is_object())
}

/// Sets each missing request of a container to its limit.
fn default_requests(container: &mut Value) {
    let Some(limits) = container["resources"]["limits"].as_object().cloned() else { return };
    let requests = object(&mut container["resources"], "requests");
    for (resource, limit) in limits {
        requests.entry(resource).or_insert(limit);
    }
}

fn quality_of_service(spec: &mut Value) -> &'static str {
    let (mut guaranteed, mut best_effort) = (true, true);
    for container in containers(spec) {
        let (requests, limits) = (&container["resources"]["requests"], &container["resources"]["limits"]);
        for resource in ["cpu", "memory"] {
            best_effort &= requests[resource].is_null() && limits[resource].is_null();
            guaranteed &= !limits[resource].is_null() && requests[resource] == limits[resource];
        }
    }
    match (best_effort, guaranteed) {
        (true, _) => "BestEffort",
        (false, true) => "Guaranteed",
        (false, false) => "Burstable",
    }
}

/// The Priority admission plugin: sets a pod's priority to the value of its priority class. Without a class, the value
/// of the default class applies, or 0.
fn resolve_priority(pod: &mut Value, store: &Store) -> Result<(), Refusal> {
    let classes = kinds::named("priorityclasses");
    let named = text(pod, "/spec/priorityClassName");
    let class = if named.is_empty() {
        let all = store.objects_of(classes).objects().map(|class| class.value());
        all.filter(|class| class["globalDefault"] == json!(true)).max_by_key(|class| class["value"].as_i64())
    } else if let Some(class) = store.object(classes, &ObjectKey::new("", named)) {
        Some(class.value())
    } else {
        let why = format!("no PriorityClass with name {named} was found");
        return Err(Refusal::forbidden(kinds::named("pods"), text(pod, "/metadata/name"), &why));
    };
    let spec = &mut pod["spec"];
    match class {
        Some(class) => {
            spec["priorityClassName"] = class["metadata"]["name"].clone();
            spec["priority"] = class["value"].clone();
            set_default(spec, "preemptionPolicy", class["preemptionPolicy"].clone());
        }
        None => {
            set_default(spec, "priority", json!(0));
            set_default(spec, "preemptionPolicy", json!("PreemptLowerPriority"));
        }
    }
    Ok(())
}

/// The DefaultTolerationSeconds admission plugin (docs/upstream/node-lifecycle.md#1.5).
fn add_default_tolerations(pod: &mut Value, options: &ApiOptions) {
    let Some(seconds) = options.default_toleration_seconds else { return };
    let tolerations = object(pod, "spec").entry("tolerations").or_insert_with(|| json!([]));
    let Some(tolerations) = tolerations.as_array_mut() else { return };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let given = tolerations.iter().any(|toleration| {
            let (its_key, effect) = (text(toleration, "/key"), text(toleration, "/effect"));
            (its_key.is_empty() || its_key == key) && (effect.is_empty() || effect == "NoExecute")
        });
        if !given {
            tolerations.push(json!({"key": key, "operator": "Exists", "effect": "NoExecute",
                "tolerationSeconds": seconds}));
        }
    }
}

/// The TaintNodesByCondition admission plugin. It taints a new node, so that the node gets no pods until the controller
/// finds it Ready.
fn new_node(node: &mut Value, options: &ApiOptions) {
    if !options.taint_new_nodes {
        return;
    }
    let taints = object(node, "spec").entry("taints").or_insert_with(|| json!([]));
    let Some(taints) = taints.as_array_mut() else { return };
    let key = "node.kubernetes.io/not-ready";
    if !taints.iter().any(|t| text(t, "/key") == key && text(t, "/effect") == "NoSchedule") {
        taints.push(json!({"key": key, "effect": "NoSchedule"}));
    }
}

fn new_namespace(namespace: &mut Value) {
    let name = text(namespace, "/metadata/name").to_owned();
    let labels = metadata(namespace).entry("labels").or_insert_with(|| json!({}));
    if let Some(labels) = labels.as_object_mut() {
        labels.insert("kubernetes.io/metadata.name".into(), name.into());
    }
    object(namespace, "spec").entry("finalizers").or_insert_with(|| json!(["kubernetes"]));
    namespace["status"] = json!({"phase": "Active"});
}

fn new_replicated(kind: &Kind, value: &mut Value) {
    object(value, "spec");
    set_default(&mut value["spec"], "replicas", json!(1));
    let labels = value.pointer("/spec/template/metadata/labels").cloned();
    if kind.name == "ReplicationController"
        && let Some(labels) = labels
    {
        set_default(&mut value["spec"], "selector", labels);
    }
    value["status"] = json!({"replicas": 0});
}

fn new_job(job: &mut Value) {
    object(job, "spec");
    let spec = &mut job["spec"];
    for (field, default) in [
        ("parallelism", json!(1)),
        ("backoffLimit", json!(6)),
        ("completionMode", json!("NonIndexed")),
        ("podReplacementPolicy", json!("TerminatingOrFailed")),
        ("suspend", json!(false)),
    ] {
        set_default(spec, field, default);
    }
    if spec["parallelism"] == json!(1) {
        set_default(spec, "completions", json!(1));
    }
    let uid = text(job, "/metadata/uid").to_owned();
    let name = text(job, "/metadata/name").to_owned();
    let spec = &mut job["spec"];
    if spec["manualSelector"] != json!(true) && spec["template"].is_object() {
        let labels = metadata(&mut spec["template"]).entry("labels").or_insert_with(|| json!({}));
        if let Some(labels) = labels.as_object_mut() {
            for (label, value) in [("controller-uid", &uid), ("job-name", &name)] {
                labels.insert(label.into(), value.as_str().into());
                labels.insert(format!("batch.kubernetes.io/{label}"), value.as_str().into());
            }
        }
        spec["selector"] = json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}});
    }
    job["status"] = json!({});
}
