//! The columns of `kubectl get` for each kind.

use serde_json::{Value, json};

use kordon_time::Timestamp;

use super::json::text;

/// A column in the output of `kubectl get`.
#[derive(Debug)]
pub struct TableColumn {
    pub name: &'static str,
    /// The OpenAPI type: `string`, `integer`.
    pub kind: &'static str,
    /// Whether kubectl shows the column only with `-o wide`.
    pub wide: bool,
    /// Returns the cell of this column for an object, at the given time.
    pub cell: fn(&Value, Timestamp) -> Value,
}

pub const PLAIN: &[TableColumn] = &[NAME, AGE];

pub const NODE: &[TableColumn] = &[
    NAME,
    shown("Status", |node, _| node_status(node).into()),
    shown("Roles", |node, _| node_roles(node).into()),
    AGE,
    shown("Version", |node, _| node["status"]["nodeInfo"]["kubeletVersion"].clone()),
    wide("Internal-IP", |node, _| address(node, "InternalIP")),
    wide("External-IP", |node, _| address(node, "ExternalIP")),
    wide("OS-Image", |node, _| or_unknown(&node["status"]["nodeInfo"]["osImage"])),
    wide("Kernel-Version", |node, _| or_unknown(&node["status"]["nodeInfo"]["kernelVersion"])),
    wide("Container-Runtime", |node, _| or_unknown(&node["status"]["nodeInfo"]["containerRuntimeVersion"])),
];

pub const POD: &[TableColumn] = &[
    NAME,
    shown("Ready", |pod, _| pod_ready(pod).into()),
    shown("Status", |pod, _| pod_status(pod).into()),
    shown("Restarts", |pod, now| pod_restarts(pod, now).into()),
    AGE,
    wide("IP", |pod, _| or_none(&pod["status"]["podIP"])),
    wide("Node", |pod, _| or_none(&pod["spec"]["nodeName"])),
    wide("Nominated Node", |pod, _| or_none(&pod["status"]["nominatedNodeName"])),
    wide("Readiness Gates", |_, _| "<none>".into()),
];

pub const NAMESPACE: &[TableColumn] =
    &[NAME, shown("Status", |namespace, _| namespace["status"]["phase"].clone()), AGE];

pub const EVENT: &[TableColumn] = &[
    shown("Last Seen", |event, now| last_seen(event, now).into()),
    shown("Type", |event, _| event["type"].clone()),
    shown("Reason", |event, _| event["reason"].clone()),
    shown("Object", |event, _| {
        let object = &event["involvedObject"];
        let kind = text(object, "/kind").to_lowercase();
        format!("{kind}/{}", text(object, "/name")).into()
    }),
    wide("Source", |event, _| event["source"]["component"].clone()),
    shown("Message", |event, _| text(event, "/message").trim().into()),
    wide("Count", |event, _| event["count"].as_i64().unwrap_or(1).into()),
    TableColumn { wide: true, ..NAME },
];

pub const CONFIG_MAP: &[TableColumn] =
    &[NAME, shown("Data", |map, _| map["data"].as_object().map_or(0, serde_json::Map::len).into()), AGE];

pub const SERVICE: &[TableColumn] = &[
    NAME,
    shown("Type", |service, _| service["spec"]["type"].as_str().unwrap_or("ClusterIP").into()),
    shown("Cluster-IP", |service, _| or_none(&service["spec"]["clusterIP"])),
    shown("External-IP", |_, _| "<none>".into()),
    shown("Port(s)", |service, _| ports(service).into()),
    AGE,
    wide("Selector", |service, _| pairs(&service["spec"]["selector"]).into()),
];

pub const DEPLOYMENT: &[TableColumn] = &[
    NAME,
    shown("Ready", |d, _| of(number(d, "/status/readyReplicas"), number(d, "/spec/replicas"))),
    count("Up-to-date", |d, _| number(d, "/status/updatedReplicas").into()),
    count("Available", |d, _| number(d, "/status/availableReplicas").into()),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub const REPLICA_SET: &[TableColumn] = &[
    NAME,
    count("Desired", |set, _| number(set, "/spec/replicas").into()),
    count("Current", |set, _| number(set, "/status/replicas").into()),
    count("Ready", |set, _| number(set, "/status/readyReplicas").into()),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub const STATEFUL_SET: &[TableColumn] = &[
    NAME,
    shown("Ready", |set, _| of(number(set, "/status/readyReplicas"), number(set, "/spec/replicas"))),
    AGE,
    CONTAINERS,
    IMAGES,
];

pub const DAEMON_SET: &[TableColumn] = &[
    NAME,
    count("Desired", |set, _| number(set, "/status/desiredNumberScheduled").into()),
    count("Current", |set, _| number(set, "/status/currentNumberScheduled").into()),
    count("Ready", |set, _| number(set, "/status/numberReady").into()),
    count("Up-to-date", |set, _| number(set, "/status/updatedNumberScheduled").into()),
    count("Available", |set, _| number(set, "/status/numberAvailable").into()),
    shown("Node Selector", |set, _| pairs(&set["spec"]["template"]["spec"]["nodeSelector"]).into()),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub const JOB: &[TableColumn] = &[
    NAME,
    shown("Status", |job, _| job_status(job).into()),
    shown("Completions", |job, _| {
        of(number(job, "/status/succeeded"), number(job, "/spec/completions").max(1))
    }),
    shown("Duration", |job, now| job_duration(job, now).into()),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub const LEASE: &[TableColumn] =
    &[NAME, shown("Holder", |lease, _| lease["spec"]["holderIdentity"].clone()), AGE];

pub const BUDGET: &[TableColumn] = &[
    NAME,
    shown("Min Available", |budget, _| amount(&budget["spec"]["minAvailable"])),
    shown("Max Unavailable", |budget, _| amount(&budget["spec"]["maxUnavailable"])),
    count("Allowed Disruptions", |budget, _| number(budget, "/status/disruptionsAllowed").into()),
    AGE,
];

pub const PRIORITY_CLASS: &[TableColumn] = &[
    NAME,
    count("Value", |class, _| class["value"].clone()),
    shown("Global-Default", |class, _| class["globalDefault"].as_bool().unwrap_or(false).into()),
    AGE,
    shown("PreemptionPolicy", |class, _| class["preemptionPolicy"].clone()),
];

pub const CLAIM: &[TableColumn] = &[
    NAME,
    shown("Status", |claim, _| claim["status"]["phase"].clone()),
    shown("Volume", |claim, _| claim["spec"]["volumeName"].clone()),
    shown("StorageClass", |claim, _| claim["spec"]["storageClassName"].clone()),
    AGE,
];

pub const VOLUME: &[TableColumn] = &[
    NAME,
    shown("Capacity", |volume, _| volume["spec"]["capacity"]["storage"].clone()),
    shown("Status", |volume, _| volume["status"]["phase"].clone()),
    shown("Claim", |volume, _| {
        let of = |field: &str| volume["spec"]["claimRef"][field].as_str().unwrap_or_default();
        format!("{}/{}", of("namespace"), of("name")).into()
    }),
    shown("StorageClass", |volume, _| volume["spec"]["storageClassName"].clone()),
    AGE,
];

pub const STORAGE_CLASS: &[TableColumn] = &[
    NAME,
    shown("Provisioner", |class, _| class["provisioner"].clone()),
    shown("VolumeBindingMode", |class, _| class["volumeBindingMode"].clone()),
    AGE,
];

const NAME: TableColumn = shown("Name", |object, _| object["metadata"]["name"].clone());
const AGE: TableColumn =
    shown("Age", |object, now| since(text(object, "/metadata/creationTimestamp"), now).into());
const CONTAINERS: TableColumn = wide("Containers", |object, _| of_containers(object, "/name").into());
const IMAGES: TableColumn = wide("Images", |object, _| of_containers(object, "/image").into());
const SELECTOR: TableColumn = wide("Selector", |object, _| selector(&object["spec"]["selector"]).into());

const fn shown(name: &'static str, cell: fn(&Value, Timestamp) -> Value) -> TableColumn {
    TableColumn { name, kind: "string", wide: false, cell }
}

const fn wide(name: &'static str, cell: fn(&Value, Timestamp) -> Value) -> TableColumn {
    TableColumn { name, kind: "string", wide: true, cell }
}

const fn count(name: &'static str, cell: fn(&Value, Timestamp) -> Value) -> TableColumn {
    TableColumn { name, kind: "integer", wide: false, cell }
}

fn node_status(node: &Value) -> String {
    let conditions = node["status"]["conditions"].as_array();
    let ready = conditions.into_iter().flatten().find(|condition| condition["type"] == "Ready");
    let status = match ready.map(|condition| condition["status"] == "True") {
        Some(true) => "Ready",
        Some(false) => "NotReady",
        None => "Unknown",
    };
    let cordoned = node["spec"]["unschedulable"] == json!(true);
    format!("{status}{}", if cordoned { ",SchedulingDisabled" } else { "" })
}

fn node_roles(node: &Value) -> String {
    let labels = node["metadata"]["labels"].as_object();
    let roles: Vec<&str> = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, _)| key.strip_prefix("node-role.kubernetes.io/"))
        .filter(|role| !role.is_empty())
        .collect();
    if roles.is_empty() { "<none>".to_owned() } else { roles.join(",") }
}

fn address(node: &Value, kind: &str) -> Value {
    let addresses = node["status"]["addresses"].as_array();
    let found = addresses.into_iter().flatten().find(|address| address["type"] == kind);
    or_none(&found.map_or(Value::Null, |address| address["address"].clone()))
}

fn container_statuses(pod: &Value) -> impl Iterator<Item = &Value> {
    pod["status"]["containerStatuses"].as_array().into_iter().flatten()
}

fn pod_ready(pod: &Value) -> String {
    let ready = container_statuses(pod).filter(|status| status["ready"] == json!(true)).count();
    format!("{ready}/{}", pod["spec"]["containers"].as_array().map_or(0, Vec::len))
}

/// The STATUS column of a pod: the reason why the pod does not run or, without a reason, its phase.
fn pod_status(pod: &Value) -> String {
    let given = |pointer: &str| Some(text(pod, pointer)).filter(|text| !text.is_empty());
    if given("/metadata/deletionTimestamp").is_some() {
        return if given("/status/reason") == Some("NodeLost") { "Unknown" } else { "Terminating" }
            .to_owned();
    }
    if let Some(reason) = given("/status/reason") {
        return reason.to_owned();
    }
    let of_container = |status: &Value| {
        let waiting = text(status, "/state/waiting/reason");
        let reason = if waiting.is_empty() { text(status, "/state/terminated/reason") } else { waiting };
        (!reason.is_empty()).then(|| reason.to_owned())
    };
    container_statuses(pod)
        .find_map(of_container)
        .or_else(|| given("/status/phase").map(str::to_owned))
        .unwrap_or_else(|| "Unknown".to_owned())
}

fn pod_restarts(pod: &Value, now: Timestamp) -> String {
    let restarts: i64 = container_statuses(pod).map(|status| number(status, "/restartCount")).sum();
    let last = container_statuses(pod)
        .filter_map(|status| Timestamp::parse(text(status, "/lastState/terminated/finishedAt")))
        .max();
    match last {
        Some(last) if restarts > 0 => format!("{restarts} ({} ago)", human(now.since(last).as_secs())),
        _ => restarts.to_string(),
    }
}

fn last_seen(event: &Value, now: Timestamp) -> String {
    let given = |pointer: &str| Some(text(event, pointer)).filter(|text| !text.is_empty());
    let at = given("/series/lastObservedTime")
        .or_else(|| given("/lastTimestamp"))
        .or_else(|| given("/eventTime"))
        .or_else(|| given("/metadata/creationTimestamp"));
    since(at.unwrap_or_default(), now)
}

fn job_status(job: &Value) -> &'static str {
    let holds = |condition: &str| {
        let conditions = job["status"]["conditions"].as_array();
        conditions.into_iter().flatten().any(|c| c["type"] == condition && c["status"] == "True")
    };
    let states = [("Complete", "Complete"), ("Failed", "Failed"), ("Suspended", "Suspended")];
    let state = states.into_iter().find(|(condition, _)| holds(condition));
    match state {
        Some((_, state)) => state,
        None if !job["metadata"]["deletionTimestamp"].is_null() => "Terminating",
        None => "Running",
    }
}

fn job_duration(job: &Value, now: Timestamp) -> String {
    let at = |pointer: &str| Timestamp::parse(text(job, pointer));
    let Some(start) = at("/status/startTime") else { return String::new() };
    human(at("/status/completionTime").unwrap_or(now).since(start).as_secs())
}

fn ports(service: &Value) -> String {
    let ports = service["spec"]["ports"].as_array();
    let shown = ports.into_iter().flatten().map(|port| {
        let protocol = port["protocol"].as_str().unwrap_or("TCP");
        format!("{}/{protocol}", number(port, "/port"))
    });
    let shown: Vec<String> = shown.collect();
    if shown.is_empty() { "<none>".to_owned() } else { shown.join(",") }
}

fn of_containers(object: &Value, field: &str) -> String {
    let containers = object.pointer("/spec/template/spec/containers").and_then(Value::as_array);
    let words: Vec<&str> = containers.into_iter().flatten().map(|container| text(container, field)).collect();
    words.join(",")
}

/// A label selector in kubectl's notation. The selector of a ReplicationController has only key-value pairs.
fn selector(selector: &Value) -> String {
    let structured = selector.get("matchLabels").is_some() || selector.get("matchExpressions").is_some();
    if !structured {
        return pairs(selector);
    }
    let expressions = selector["matchExpressions"].as_array();
    let mut parts: Vec<String> = Vec::new();
    if selector["matchLabels"].is_object() {
        parts.push(pairs(&selector["matchLabels"]));
    }
    for expression in expressions.into_iter().flatten() {
        let values: Vec<&str> =
            expression["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let (key, values) = (text(expression, "/key"), values.join(","));
        parts.push(match text(expression, "/operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        });
    }
    parts.join(",")
}

fn pairs(map: &Value) -> String {
    let pairs = map.as_object().into_iter().flatten();
    let words: Vec<String> =
        pairs.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
    if words.is_empty() { "<none>".to_owned() } else { words.join(",") }
}

fn number(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}

fn of(part: i64, whole: i64) -> Value {
    format!("{part}/{whole}").into()
}

/// A number of pods or a percentage; `N/A` if absent.
fn amount(value: &Value) -> Value {
    match value {
        Value::Null => "N/A".into(),
        Value::String(text) => text.as_str().into(),
        other => other.to_string().into(),
    }
}

fn or_none(value: &Value) -> Value {
    value.as_str().filter(|text| !text.is_empty()).unwrap_or("<none>").into()
}

fn or_unknown(value: &Value) -> Value {
    value.as_str().filter(|text| !text.is_empty()).unwrap_or("<unknown>").into()
}

fn since(time: &str, now: Timestamp) -> String {
    Timestamp::parse(time).map_or_else(|| "<unknown>".to_owned(), |time| human(now.since(time).as_secs()))
}

/// A duration in kubectl's format.
fn human(secs: i64) -> String {
    let (minutes, hours, days) = (secs / 60, secs / 3600, secs / 86_400);
    let two = |large: i64, unit: &str, small: i64, small_unit: &str| match small {
        0 => format!("{large}{unit}"),
        small => format!("{large}{unit}{small}{small_unit}"),
    };
    match secs {
        ..=-2 => "<invalid>".to_owned(),
        -1..=0 => "0s".to_owned(),
        1..=119 => format!("{secs}s"),
        120..=599 => two(minutes, "m", secs % 60, "s"),
        600..=10_799 => format!("{minutes}m"),
        10_800..=28_799 => two(hours, "h", minutes % 60, "m"),
        28_800..=172_799 => format!("{hours}h"),
        172_800..=691_199 => two(days, "d", hours % 24, "h"),
        691_200..=63_071_999 => format!("{days}d"),
        63_072_000..=252_287_999 => two(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_read_as_kubectl_writes_them() {
        let shown =
            [-5, 0, 119, 120, 121, 3600, 10_800, 20_000, 100_000, 200_000, 1_000_000, 70_000_000].map(human);
        assert_eq!(
            shown,
            ["<invalid>", "0s", "119s", "2m", "2m1s", "60m", "3h", "5h33m", "27h", "2d7h", "11d", "2y80d"]
        );
    }

    #[test]
    fn a_pod_shows_why_it_does_not_run() {
        let waiting =
            json!({"name": "a", "ready": false, "state": {"waiting": {"reason": "CrashLoopBackOff"}}});
        for (pod, expected) in [
            (json!({"status": {"phase": "Running"}}), "Running"),
            (json!({"status": {"phase": "Running", "containerStatuses": [waiting]}}), "CrashLoopBackOff"),
            (json!({"status": {"phase": "Failed", "reason": "Evicted"}}), "Evicted"),
            (json!({"metadata": {"deletionTimestamp": "x"}, "status": {"phase": "Running"}}), "Terminating"),
            (json!({"metadata": {"deletionTimestamp": "x"}, "status": {"reason": "NodeLost"}}), "Unknown"),
        ] {
            assert_eq!(pod_status(&pod), expected, "{pod}");
        }
    }
}
