//! A cluster that exercises all scheduling rules: nodes of several sizes, workloads of many kinds.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::harness::kubelets::NodeSpec;

/// Nodes that differ in size, zone, labels, taints and images.
pub fn nodes(count: usize) -> Vec<NodeSpec> {
    (0..count).map(node).collect()
}

fn node(number: usize) -> NodeSpec {
    // The zones differ in size.
    let zone = ["a", "a", "b", "b", "c", "a", "b"][number % 7];
    let (cpu, memory, pods) =
        [("2", "4Gi", 30), ("4", "8Gi", 40), ("4", "16Gi", 40), ("8", "32Gi", 60)][number % 4];
    let mut node = NodeSpec {
        cpu: cpu.into(),
        memory: memory.into(),
        pods,
        labels: labels(&[
            ("disk", ["ssd", "hdd", "ssd"][number % 3]),
            ("rack", &format!("r{}", number % 11)),
        ]),
        extended: labels(&[("ephemeral-storage", "50Gi")]),
        images: images(number),
        ..NodeSpec::new(format!("n{number:02}"), zone)
    };
    match number % 15 {
        3 => {
            node.taints = vec![json!({"key": "dedicated", "value": "gpu", "effect": "NoSchedule"})];
            node.extended.insert("example.com/gpu".into(), "4".into());
            node.labels.insert("accelerator".into(), "gpu".into());
        }
        7 => node.taints = vec![json!({"key": "spot", "effect": "PreferNoSchedule"})],
        11 => {
            node.taints =
                vec![json!({"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"})]
        }
        _ => {}
    }
    if number == 13 {
        (node.zone, node.region) = (None, None);
    }
    node
}

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// Returns the images that a node has pulled, which differ between nodes.
fn images(number: usize) -> Vec<Value> {
    let known =
        [("registry.test/model:v1", 900), ("registry.test/web:v2", 300), ("registry.test/tool:latest", 120)];
    let has = |place: usize| number.is_multiple_of(place + 2);
    let pulled = known.iter().enumerate().filter(|(place, _)| has(*place));
    pulled
        .map(|(_, (name, mebibytes))| json!({"names": [name], "sizeBytes": mebibytes * 1024 * 1024_i64}))
        .collect()
}

/// Returns volumes of all kinds, their claims, and storage classes.
fn storage() -> Vec<(&'static str, Value)> {
    let (zone, volumes) = ("topology.kubernetes.io/zone", "/api/v1/persistentvolumes");
    let class = |name: &str, mode: &str| {
        let provisioner = "kubernetes.io/no-provisioner";
        json!({"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode})
    };
    let volume = |name: String, class: &str, source: Value| {
        let mut spec = json!({
            "storageClassName": class, "capacity": {"storage": "10Gi"},
            "accessModes": ["ReadWriteOnce", "ReadWriteMany"],
        });
        spec.as_object_mut().expect("a spec").extend(source.as_object().cloned().unwrap_or_default());
        json!({"metadata": {"name": name}, "spec": spec})
    };
    let in_zone = |value: &str| {
        let expression = json!({"key": zone, "operator": "In", "values": [value]});
        json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}})
    };
    let on_host = json!({"hostPath": {"path": "/tmp"}});
    let mut all = vec![
        ("/apis/storage.k8s.io/v1/storageclasses", class("waits", "WaitForFirstConsumer")),
        ("/apis/storage.k8s.io/v1/storageclasses", class("attached", "WaitForFirstConsumer")),
        ("/apis/storage.k8s.io/v1/storageclasses", class("at-once", "Immediate")),
    ];
    for number in 0..12 {
        let mut source = on_host.clone();
        source["nodeAffinity"] = in_zone(["a", "b", "c"][number % 3]);
        all.push((volumes, volume(format!("waits-{number}"), "waits", source)));
        let handle = json!({"driver": "disk.test", "volumeHandle": format!("disk-{number}")});
        let source = json!({"csi": handle, "nodeAffinity": in_zone(["a", "b"][number % 2])});
        all.push((volumes, volume(format!("attached-{number}"), "attached", source)));
    }
    let mut shared = on_host.clone();
    shared["nodeAffinity"] = in_zone("b");
    all.push((volumes, volume("shared".into(), "at-once", shared)));
    // A volume whose zones, a and c, are given only by the deprecated label.
    let mut labelled = volume("labelled".into(), "labelled", on_host.clone());
    labelled["metadata"]["labels"] = json!({"failure-domain.beta.kubernetes.io/zone": "a__c"});
    all.push((volumes, labelled));
    let mut exclusive = volume("exclusive".into(), "exclusive", on_host);
    exclusive["spec"]["accessModes"] = json!(["ReadWriteOncePod"]);
    all.push((volumes, exclusive));
    let modes = [
        ("shared", "at-once", "ReadWriteMany"),
        ("labelled", "labelled", "ReadWriteMany"),
        ("exclusive", "exclusive", "ReadWriteOncePod"),
        ("never", "at-once", "ReadWriteOnce"),
    ];
    for (name, class, mode) in modes {
        let size = if name == "never" { "1Ti" } else { "10Gi" };
        let spec = json!({
            "storageClassName": class, "accessModes": [mode], "resources": {"requests": {"storage": size}},
        });
        let path = "/api/v1/namespaces/default/persistentvolumeclaims";
        all.push((path, json!({"metadata": {"name": name}, "spec": spec})));
    }
    all
}

/// The claims of [`prerequisites`] that the volume controller binds before a pod uses them.
pub const BOUND_AT_ONCE: [&str; 3] = ["shared", "labelled", "exclusive"];

/// Each node can attach one disk.
pub fn csi_node(node: &str) -> (&'static str, Value) {
    let driver =
        json!({"name": "disk.test", "nodeID": node, "topologyKeys": [], "allocatable": {"count": 1}});
    ("/apis/storage.k8s.io/v1/csinodes", json!({"metadata": {"name": node}, "spec": {"drivers": [driver]}}))
}

/// A workload to create.
pub struct Workload {
    /// Path of the collection of the workload's kind.
    pub path: &'static str,
    pub object: Value,
    /// Final number of pods.
    pub pods: usize,
}

/// Returns the priority classes, namespaces and services, which are created before the workloads.
pub fn prerequisites() -> Vec<(&'static str, Value)> {
    let class = |name: &str, value: i32, policy: &str| json!({"metadata": {"name": name}, "value": value, "preemptionPolicy": policy});
    let service = |name: &str, selector: Value| {
        let spec = json!({"selector": selector, "ports": [{"port": 80}]});
        ("/api/v1/namespaces/default/services", json!({"metadata": {"name": name}, "spec": spec}))
    };
    let mut all = vec![
        ("/apis/scheduling.k8s.io/v1/priorityclasses", class("urgent", 1000, "PreemptLowerPriority")),
        ("/apis/scheduling.k8s.io/v1/priorityclasses", class("patient", 500, "Never")),
        ("/apis/scheduling.k8s.io/v1/priorityclasses", class("idle", -10, "PreemptLowerPriority")),
        ("/api/v1/namespaces", json!({"metadata": {"name": "shop", "labels": {"team": "shop"}}})),
        service("front", json!({"tier": "front"})),
        service("everything", json!({"made-for": "test"})),
    ];
    all.extend(storage());
    all
}

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

/// Returns one workload of each kind. The number of pods is multiplied by `times`, and the requests are random.
pub fn workloads(times: usize, rng: &mut fastrand::Rng) -> Vec<Workload> {
    let mut all: Vec<Workload> = kinds()
        .into_iter()
        .map(|(name, replicas, pod)| deployment(DEPLOYMENTS, name, replicas * times, pod, rng))
        .collect();
    let in_shop = "/apis/apps/v1/namespaces/shop/deployments";
    let near_shop = json!({"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{
        "weight": 30,
        "podAffinityTerm": {"labelSelector": {}, "namespaceSelector": {"matchLabels": {"team": "shop"}}, "topologyKey": "rack"},
    }]}}});
    all.push(deployment(in_shop, "till", 8 * times, json!({}), rng));
    all.push(deployment(DEPLOYMENTS, "near-shop", 8 * times, near_shop, rng));
    all.push(replication_controller("old", 6 * times, rng));
    all.push(stateful_set("ordered", 6 * times, None, rng));
    all.push(stateful_set("waits", 9, Some("waits"), rng));
    all.push(stateful_set("attached", 8, Some("attached"), rng));
    all.push(job("batch", 8 * times, rng));
    all.push(daemon_set("agent", rng));
    // These two Deployments have no feasible node.
    let (giant, tape) =
        (json!({"nodeSelector": {"disk": "ssd"}, "cpu": "64"}), json!({"nodeSelector": {"disk": "tape"}}));
    all.push(deployment(DEPLOYMENTS, "giant", 1, giant, rng));
    all.push(deployment(DEPLOYMENTS, "nowhere", 1, tape, rng));
    all
}

/// Returns for each kind its name, number of pods, and pod spec without containers.
fn kinds() -> Vec<(&'static str, usize, Value)> {
    let own = |name: &str| json!({"matchLabels": {"app": name}});
    let spread = |name: &str, key: &str, skew: i32, when: &str| json!({"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": own(name)});
    let (zone, host) = ("topology.kubernetes.io/zone", "kubernetes.io/hostname");
    let term = |name: &str, key: &str| json!({"labelSelector": own(name), "topologyKey": key});
    let required = |term: Value| json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]});
    let preferred = |weight: i32, term: Value| json!({"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": weight, "podAffinityTerm": term}]});
    let in_values = |key: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": "In", "values": values}]});
    let wish = |weight: i32, term: Value| json!({"weight": weight, "preference": term});
    let mut per_node = spread("per-node", host, 1, "DoNotSchedule");
    per_node["nodeTaintsPolicy"] = json!("Honor");
    let mut revision = spread("revision", zone, 1, "DoNotSchedule");
    revision["matchLabelKeys"] = json!(["pod-template-hash"]);
    let mut domains = spread("domains", zone, 2, "DoNotSchedule");
    domains["minDomains"] = json!(3);
    vec![
        ("plain", 20, json!({})),
        ("second", 16, json!({})),
        ("best-effort", 14, json!({"cpu": null})),
        ("cpu-heavy", 12, json!({"cpu": "900m", "memory": "100Mi"})),
        ("memory-heavy", 12, json!({"cpu": "50m", "memory": "1800Mi"})),
        ("front-a", 10, json!({"tier": "front"})),
        ("front-b", 8, json!({"tier": "front"})),
        ("on-ssd", 12, json!({"nodeSelector": {"disk": "ssd"}})),
        (
            "two-zones",
            10,
            json!({"affinity": {"nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [in_values(zone, &["a", "c"])]},
                "preferredDuringSchedulingIgnoredDuringExecution": [wish(40, in_values("disk", &["hdd"]))],
            }}}),
        ),
        (
            "wishes",
            10,
            json!({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                wish(10, in_values("rack", &["r1", "r2", "r3"])), wish(25, in_values(zone, &["b"])),
            ]}}}),
        ),
        (
            "even-zones",
            12,
            json!({"topologySpreadConstraints": [spread("even-zones", zone, 1, "DoNotSchedule")]}),
        ),
        (
            "soft-hosts",
            12,
            json!({"topologySpreadConstraints": [spread("soft-hosts", host, 1, "ScheduleAnyway")]}),
        ),
        (
            "both-ways",
            12,
            json!({"topologySpreadConstraints": [
                spread("both-ways", zone, 1, "DoNotSchedule"), spread("both-ways", host, 2, "ScheduleAnyway"),
                spread("both-ways", "rack", 1, "ScheduleAnyway"),
            ]}),
        ),
        ("per-node", 12, json!({"topologySpreadConstraints": [per_node]})),
        ("revision", 9, json!({"topologySpreadConstraints": [revision]})),
        ("domains", 9, json!({"topologySpreadConstraints": [domains]})),
        ("apart", 10, json!({"affinity": {"podAntiAffinity": required(term("apart", host))}})),
        (
            "rather-apart",
            10,
            json!({"affinity": {"podAntiAffinity": preferred(60, term("rather-apart", "rack"))}}),
        ),
        ("near-plain", 8, json!({"affinity": {"podAffinity": required(term("plain", zone))}})),
        ("close-to-second", 8, json!({"affinity": {"podAffinity": preferred(80, term("second", host))}})),
        ("away-from-heavy", 8, json!({"affinity": {"podAntiAffinity": required(term("cpu-heavy", host))}})),
        ("together", 6, json!({"affinity": {"podAffinity": required(term("together", zone))}})),
        (
            "gpu",
            6,
            json!({
                "nodeSelector": {"accelerator": "gpu"}, "gpu": 1,
                "tolerations": [{"key": "dedicated", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}],
            }),
        ),
        ("bears-spot", 8, json!({"tolerations": [{"key": "spot", "operator": "Exists"}]})),
        ("bears-all", 6, json!({"tolerations": [{"operator": "Exists", "effect": "NoSchedule"}]})),
        ("with-port", 8, json!({"port": 8080})),
        ("same-port", 6, json!({"port": 8080})),
        ("model", 8, json!({"image": "registry.test/model:v1"})),
        ("web", 8, json!({"image": "registry.test/web:v2", "init": "registry.test/tool"})),
        ("sidecar", 8, json!({"sidecar": "150m"})),
        ("scratch", 6, json!({"storage": "8Gi"})),
        ("urgent", 6, json!({"priorityClassName": "urgent"})),
        ("shared", 6, json!({"claim": "shared"})),
        ("labelled", 6, json!({"claim": "labelled"})),
        // Only one of the two pods can use the claim.
        ("exclusive", 2, json!({"claim": "exclusive"})),
        ("never", 1, json!({"claim": "never"})),
        ("missing", 1, json!({"claim": "missing"})),
        ("patient", 6, json!({"priorityClassName": "patient"})),
        ("idle", 6, json!({"priorityClassName": "idle"})),
    ]
}

fn deployment(
    path: &'static str,
    name: &str,
    replicas: usize,
    pod: Value,
    rng: &mut fastrand::Rng,
) -> Workload {
    let spec =
        json!({"replicas": replicas, "selector": selector(name), "template": template(name, pod, rng)});
    let object = json!({"metadata": {"name": name}, "spec": spec});
    Workload { path, object, pods: replicas }
}

fn replication_controller(name: &str, replicas: usize, rng: &mut fastrand::Rng) -> Workload {
    let spec =
        json!({"replicas": replicas, "selector": {"app": name}, "template": template(name, json!({}), rng)});
    let object = json!({"metadata": {"name": name}, "spec": spec});
    let path = "/api/v1/namespaces/default/replicationcontrollers";
    Workload { path, object, pods: replicas }
}

fn stateful_set(name: &str, replicas: usize, class: Option<&str>, rng: &mut fastrand::Rng) -> Workload {
    let mut spec = json!({
        "replicas": replicas, "serviceName": name, "podManagementPolicy": "Parallel",
        "selector": selector(name), "template": template(name, json!({}), rng),
    });
    if let Some(class) = class {
        let claim = json!({
            "storageClassName": class, "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "5Gi"}},
        });
        spec["volumeClaimTemplates"] = json!([{"metadata": {"name": "data"}, "spec": claim}]);
    }
    let object = json!({"metadata": {"name": name}, "spec": spec});
    Workload { path: "/apis/apps/v1/namespaces/default/statefulsets", object, pods: replicas }
}

/// A Job, whose pods are selected only by services.
fn job(name: &str, pods: usize, rng: &mut fastrand::Rng) -> Workload {
    let mut template = template(name, json!({}), rng);
    template["spec"]["restartPolicy"] = json!("Never");
    let spec = json!({"parallelism": pods, "completions": pods, "template": template});
    let object = json!({"metadata": {"name": name}, "spec": spec});
    Workload { path: "/apis/batch/v1/namespaces/default/jobs", object, pods }
}

/// A DaemonSet: one pod on each matching node whose taints it tolerates.
fn daemon_set(name: &str, rng: &mut fastrand::Rng) -> Workload {
    let pod = json!({"cpu": "20m", "memory": "20Mi", "nodeSelector": {"disk": "hdd"}});
    let object = json!({
        "metadata": {"name": name},
        "spec": {"selector": selector(name), "template": template(name, pod, rng)},
    });
    Workload { path: "/apis/apps/v1/namespaces/default/daemonsets", object, pods: 0 }
}

fn selector(name: &str) -> Value {
    json!({"matchLabels": {"app": name}})
}

/// Builds a pod template; `pod` is its spec, with shorthands for the fields of its containers.
fn template(name: &str, mut pod: Value, rng: &mut fastrand::Rng) -> Value {
    let mut take = |field: &str| pod.as_object_mut().expect("a spec").remove(field);
    let cpu = take("cpu").unwrap_or_else(|| json!(format!("{}m", 50 * rng.u32(2..9))));
    let memory = take("memory").unwrap_or_else(|| json!(format!("{}Mi", 64 * rng.u32(1..10))));
    let mut requests = if cpu.is_null() { json!({}) } else { json!({"cpu": cpu, "memory": memory}) };
    if let Some(storage) = take("storage") {
        requests["ephemeral-storage"] = storage;
    }
    let mut limits = json!({});
    if let Some(count) = take("gpu") {
        (requests["example.com/gpu"], limits["example.com/gpu"]) = (count.clone(), count);
    }
    let ports: Vec<Value> =
        take("port").iter().map(|port| json!({"containerPort": port, "hostPort": port})).collect();
    let image = take("image").unwrap_or(json!("registry.test/plain:v1"));
    let mut init: Vec<Value> = Vec::new();
    if let Some(cpu) = take("sidecar") {
        init.push(json!({
            "name": "proxy", "image": "registry.test/proxy:v1", "restartPolicy": "Always",
            "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}},
        }));
    }
    if let Some(image) = take("init") {
        init.push(json!({"name": "prepare", "image": image, "resources": {"requests": {"cpu": "700m"}}}));
    }
    let (claim, tier) = (take("claim"), take("tier"));
    if let Some(claim) = claim {
        pod["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]);
    }
    let mut labels = json!({"app": name, "made-for": "test"});
    if let Some(tier) = tier {
        labels["tier"] = tier;
    }
    pod["containers"] = json!([{
        "name": "main", "image": image, "ports": ports, "resources": {"requests": requests, "limits": limits},
    }]);
    pod["initContainers"] = json!(init);
    pod["terminationGracePeriodSeconds"] = json!(1);
    json!({"metadata": {"labels": labels}, "spec": pod})
}
