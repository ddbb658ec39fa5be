//! Pod templates, and the initial pods.

use serde_json::{Map, Value, json};

use super::{
    InitialPodState, SeedOwner, SeedWorkload,
    catalogue::{
        CatalogueLimit, CatalogueService, CatalogueVolume, EvictionTolerance, NodeAgent, PRIORITY_CLASSES,
    },
    managed_fields::managed,
    nodes::Machine,
};
use crate::random::{RandomSource, suffix, uid};
use kordon_time::{Span, Timestamp};

/// Annotation on a Job's template: average run time of its containers in seconds.
pub const RUN_SECONDS: &str = "demo.kordon/run-seconds";

/// The template of a service's pods, including all defaults of the API server.
pub fn service_template(service: &CatalogueService, labels: &Value) -> Value {
    let mut metadata = json!({
        "labels": labels,
        "annotations": {
            "checksum/config": format!("{:064x}", u128::from(service.grace_seconds.unsigned_abs()) << 90),
            "prometheus.io/port": "9090",
            "prometheus.io/scrape": "true",
        },
    });
    if let Some(finalizer) = service.finalizer {
        metadata["finalizers"] = json!([finalizer]);
    }
    let mut spec = json!({
        "containers": [app_container(service)],
        "volumes": volumes(service),
        "terminationGracePeriodSeconds": service.grace_seconds,
        "serviceAccountName": service.name,
        "topologySpreadConstraints": [{
            "maxSkew": 1,
            "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"app.kubernetes.io/name": service.name}},
        }],
    });
    pod_defaults(&mut spec, service.priority);
    if let Some(pool) = service.pool {
        spec["nodeSelector"] = json!({"pool": pool});
    }
    let tolerations = tolerations(service.tolerance);
    if tolerations != json!([]) {
        spec["tolerations"] = tolerations;
    }
    json!({"metadata": metadata, "spec": spec})
}

/// The template of a node agent's pods, without the tolerations that the DaemonSet controller adds.
pub fn agent_template(agent: &NodeAgent, labels: &Value) -> Value {
    let mut container = container(agent.name, agent.image);
    container["resources"] = json!({"requests": requests(agent.cpu_milli, agent.memory_mib)});
    container["securityContext"] = json!({"privileged": true});
    container["volumeMounts"] = json!([{"name": "host", "mountPath": "/host", "readOnly": true}]);
    let mut spec = json!({
        "containers": [container],
        "hostNetwork": true,
        "serviceAccountName": agent.name,
        "terminationGracePeriodSeconds": 30,
        "tolerations": [{"operator": "Exists"}],
        "volumes": [{"name": "host", "hostPath": {"path": "/", "type": ""}}],
    });
    pod_defaults(&mut spec, agent.priority);
    json!({"metadata": {"labels": labels}, "spec": spec})
}

/// Adds the defaults of the API server to a pod's spec.
fn pod_defaults(spec: &mut Value, priority: Option<&str>) {
    spec["dnsPolicy"] = json!("ClusterFirst");
    spec["enableServiceLinks"] = json!(true);
    spec["restartPolicy"] = json!("Always");
    spec["schedulerName"] = json!("default-scheduler");
    spec["securityContext"] = json!({});
    if let Some(class) = priority {
        spec["priorityClassName"] = json!(class);
    }
}

fn container(name: &str, image: &str) -> Value {
    json!({
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    })
}

fn app_container(service: &CatalogueService) -> Value {
    let mut container = container("app", service.image);
    let probe = |path: &str, period: i64| {
        json!({
            "httpGet": {"path": path, "port": "http", "scheme": "HTTP"},
            "initialDelaySeconds": 2, "periodSeconds": period, "timeoutSeconds": 1,
            "successThreshold": 1, "failureThreshold": 3,
        })
    };
    container["args"] = json!(["--config=/etc/app/config.yaml", "--listen=:8080", "--metrics=:9090"]);
    container["env"] = json!([
        {"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
        {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}},
        {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec.nodeName"}}},
        {"name": "LOG_LEVEL", "value": "info"},
        {"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": "http://otel-collector.monitoring:4317"},
        {"name": "OTEL_SERVICE_NAME", "value": service.name},
        {"name": "DATABASE_URL", "valueFrom": {"secretKeyRef": {"name": format!("{}-db", service.name), "key": "url"}}},
        {"name": "FEATURE_FLAGS", "valueFrom": {"configMapKeyRef": {"name": "feature-flags", "key": "flags.json"}}},
    ]);
    container["ports"] = json!([
        {"name": "http", "containerPort": 8080, "protocol": "TCP"},
        {"name": "metrics", "containerPort": 9090, "protocol": "TCP"},
    ]);
    container["livenessProbe"] = probe("/healthz", 10);
    container["readinessProbe"] = probe("/readyz", 5);
    container["startupProbe"] = probe("/healthz", 1);
    if service.cpu_milli > 0 {
        container["resources"] = json!({"requests": requests(service.cpu_milli, service.memory_mib)});
        if service.memory_limit == CatalogueLimit::Request {
            container["resources"]["limits"] = json!({"memory": format!("{}Mi", service.memory_mib)});
        }
    }
    container["securityContext"] = json!({
        "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": true, "runAsNonRoot": true,
    });
    let mut mounts = vec![json!({"name": "config", "mountPath": "/etc/app", "readOnly": true})];
    if service.volume != CatalogueVolume::None {
        mounts.push(json!({"name": "data", "mountPath": "/var/lib/app"}));
    }
    container["volumeMounts"] = Value::Array(mounts);
    container
}

fn requests(cpu_milli: i64, memory_mib: i64) -> Value {
    json!({"cpu": format!("{cpu_milli}m"), "memory": format!("{memory_mib}Mi")})
}

fn volumes(service: &CatalogueService) -> Value {
    let mut volumes = vec![
        json!({"name": "config", "configMap": {"name": format!("{}-config", service.name), "defaultMode": 420}}),
    ];
    match service.volume {
        CatalogueVolume::EmptyDir => volumes.push(json!({"name": "data", "emptyDir": {"sizeLimit": "2Gi"}})),
        // A StatefulSet's claims are named after its pods, so the template does not contain them.
        CatalogueVolume::Claim if service.kind == super::catalogue::CatalogueKind::Deployment => volumes.push(
            json!({"name": "data", "persistentVolumeClaim": {"claimName": format!("{}-data", service.name)}}),
        ),
        CatalogueVolume::Claim | CatalogueVolume::None => {}
    }
    Value::Array(volumes)
}

fn tolerations(tolerance: EvictionTolerance) -> Value {
    let keys = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
    match tolerance {
        EvictionTolerance::Default => json!([]),
        EvictionTolerance::Unlimited => {
            keys.iter().map(|key| json!({"key": key, "operator": "Exists", "effect": "NoExecute"})).collect()
        }
        EvictionTolerance::Seconds(seconds) => keys
            .iter()
            .map(|key| {
                json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds})
            })
            .collect(),
    }
}

/// Adds the fields that admission and the DaemonSet controller add: tolerations, priority, and the token volume.
fn admit(spec: &mut Value, workload: &SeedWorkload) {
    let mut tolerations = spec["tolerations"].as_array().cloned().unwrap_or_default();
    if matches!(workload.owner, SeedOwner::Agent(_)) {
        tolerations.extend(daemon_tolerations());
    }
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let given = |t: &Value| {
            (t["key"].is_null() || t["key"] == key) && (t["effect"].is_null() || t["effect"] == "NoExecute")
        };
        if !tolerations.iter().any(given) {
            let (exists, effect) = ("Exists", "NoExecute");
            tolerations
                .push(json!({"key": key, "operator": exists, "effect": effect, "tolerationSeconds": 300}));
        }
    }
    spec["tolerations"] = Value::Array(tolerations);
    let class = spec["priorityClassName"].as_str().unwrap_or_default();
    let value = PRIORITY_CLASSES.iter().find(|(name, _)| *name == class).map_or(0, |(_, value)| *value);
    spec["priority"] = json!(value);
    spec["preemptionPolicy"] = json!("PreemptLowerPriority");
    let token = json!({
        "name": "kube-api-access",
        "projected": {"defaultMode": 420, "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [
                {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}},
            ]}},
        ]},
    });
    if let Some(volumes) = spec["volumes"].as_array_mut() {
        volumes.push(token);
    }
    for container in spec["containers"].as_array_mut().into_iter().flatten() {
        let path = "/var/run/secrets/kubernetes.io/serviceaccount";
        let mount = json!({"name": "kube-api-access", "mountPath": path, "readOnly": true});
        match container["volumeMounts"].as_array_mut() {
            Some(mounts) => mounts.push(mount),
            None => container["volumeMounts"] = json!([mount]),
        }
    }
}

/// The tolerations of all DaemonSet pods (docs/upstream/placement-and-pressure.md#5.4).
pub fn daemon_tolerations() -> Vec<Value> {
    let toleration = |key: &str, effect: &str| json!({"key": format!("node.kubernetes.io/{key}"), "operator": "Exists", "effect": effect});
    let mut all = vec![toleration("not-ready", "NoExecute"), toleration("unreachable", "NoExecute")];
    let no_schedule =
        ["disk-pressure", "memory-pressure", "pid-pressure", "unschedulable", "network-unavailable"];
    all.extend(no_schedule.map(|key| toleration(key, "NoSchedule")));
    all
}

/// The parts of a pod that all pods of one workload have in common.
pub struct PodTemplate {
    pod: Value,
    host_network: bool,
}

/// An initial pod.
#[derive(Clone, Copy, Debug)]
pub struct PodSeed {
    /// Index of the pod's workload.
    pub workload: usize,
    /// Number of the pod within its workload.
    pub ordinal: usize,
    /// Index of the pod's machine; None if the pod is Pending.
    pub machine: Option<usize>,
    /// Number of the pod on its machine.
    pub slot: usize,
    pub state: InitialPodState,
}

impl PodTemplate {
    pub fn new(workload: &SeedWorkload, random: RandomSource) -> Self {
        let mut pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": workload.template["metadata"],
            "spec": workload.template["spec"],
            "status": {},
        });
        pod["metadata"]["namespace"] = json!(workload.namespace);
        pod["metadata"]["generation"] = json!(1);
        if let Some(reference) = workload.pod_owner(random) {
            pod["metadata"]["ownerReferences"] = json!([reference]);
        }
        admit(&mut pod["spec"], workload);
        let host_network = pod["spec"]["hostNetwork"] == true;
        pod["status"] = running(&pod["spec"], workload);
        let at = Timestamp::EPOCH;
        let managers = [("kube-controller-manager", "", at), ("kubelet", "status", at)];
        pod["metadata"]["managedFields"] = managed(&pod, &managers);
        Self { pod, host_network }
    }

    /// Creates the pod that `seed` describes.
    pub fn pod(
        &self,
        seed: &PodSeed,
        workload: &SeedWorkload,
        machine: Option<&Machine>,
        random: RandomSource,
        epoch: Timestamp,
    ) -> Value {
        let name = pod_name(workload, seed, machine, random);
        let mut rng = random.rng(&["pod", &workload.namespace, &name]);
        let age = match seed.state {
            InitialPodState::Replacement { age } => age,
            _ => Span::from_secs(rng.i64(600..3 * 86_400)),
        };
        // The scheduler first sees a pod without a node when the demo starts, so the pod cannot be older.
        let created = if machine.is_some() { epoch - age } else { epoch };
        let mut pod = self.pod.clone();
        let metadata = &mut pod["metadata"];
        metadata["uid"] = json!(uid(&mut rng));
        metadata["creationTimestamp"] = json!(created.to_time());
        match &workload.owner {
            SeedOwner::Service(service) if service.kind == super::catalogue::CatalogueKind::StatefulSet => {
                metadata["generateName"] = json!(format!("{}-", workload.name));
                metadata["labels"]["apps.kubernetes.io/pod-index"] = json!(seed.ordinal.to_string());
                metadata["labels"]["statefulset.kubernetes.io/pod-name"] = json!(name);
                claim(&mut pod["spec"], service, &name);
            }
            SeedOwner::Service(_) | SeedOwner::Agent(_) if workload.pod_owner_name().is_some() => {
                let prefix = workload.pod_owner_name().unwrap_or_default();
                metadata["generateName"] = json!(format!("{prefix}-"));
            }
            SeedOwner::Static if machine.is_some() => {
                let machine = machine.expect("checked in the pattern");
                metadata["annotations"]["kubernetes.io/config.mirror"] = metadata["uid"].clone();
                metadata["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "Node", "controller": true,
                    "name": machine.name, "uid": machine.uid(random)}]);
            }
            SeedOwner::Service(_) | SeedOwner::Agent(_) | SeedOwner::Static => {}
        }
        pod["metadata"]["name"] = json!(name);
        let Some(machine) = machine else {
            pod["status"] = json!({"phase": "Pending", "qosClass": pod["status"]["qosClass"]});
            return pod;
        };
        if let SeedOwner::Agent(_) = workload.owner {
            pod["spec"]["affinity"] = pinned(&machine.name);
        }
        pod["spec"]["nodeName"] = json!(machine.name);
        self.set_running(&mut pod["status"], seed, machine, created, &mut rng);
        let ready = (created + Span::from_secs(4)).to_time();
        pod["metadata"]["managedFields"][0]["time"] = json!(created.to_time());
        pod["metadata"]["managedFields"][1]["time"] = json!(ready);
        self.apply_state(&mut pod, seed.state, epoch);
        pod
    }

    /// Sets the addresses and start times of a running pod.
    fn set_running(
        &self,
        status: &mut Value,
        seed: &PodSeed,
        machine: &Machine,
        created: Timestamp,
        rng: &mut fastrand::Rng,
    ) {
        let host = machine.address();
        let address = if self.host_network { host.clone() } else { machine.pod_address(seed.slot) };
        status["hostIP"] = json!(host);
        status["hostIPs"] = json!([{"ip": host}]);
        status["podIP"] = json!(address);
        status["podIPs"] = json!([{"ip": address}]);
        status["startTime"] = json!(created.to_time());
        let ready = (created + Span::from_secs(4)).to_time();
        for condition in status["conditions"].as_array_mut().into_iter().flatten() {
            let early = condition["type"] == "PodScheduled" || condition["type"] == "Initialized";
            condition["lastTransitionTime"] = if early { json!(created.to_time()) } else { json!(ready) };
        }
        for container in status["containerStatuses"].as_array_mut().into_iter().flatten() {
            container["containerID"] =
                json!(format!("containerd://{:032x}{:032x}", rng.u128(..), rng.u128(..)));
            container["state"]["running"]["startedAt"] = json!(ready);
        }
    }

    /// Applies the changes that controllers made to a pod because its node failed.
    fn apply_state(&self, pod: &mut Value, state: InitialPodState, epoch: Timestamp) {
        let (since, deleted) = match state {
            InitialPodState::Running | InitialPodState::Replacement { .. } => return,
            InitialPodState::NotReady { since } => (since, None),
            InitialPodState::Evicted { since, at } => (since, Some(epoch - at)),
        };
        let conditions = pod["status"]["conditions"].as_array_mut().expect("set by running()");
        for condition in conditions.iter_mut().filter(|c| c["type"] == "Ready") {
            condition["status"] = json!("False");
            condition["lastTransitionTime"] = json!((epoch - since).to_time());
        }
        let Some(deleted) = deleted else { return };
        conditions.push(json!({
            "type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint",
            "lastTransitionTime": deleted.to_time(),
        }));
        let grace = pod["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(30);
        pod["metadata"]["deletionGracePeriodSeconds"] = json!(grace);
        pod["metadata"]["deletionTimestamp"] = json!((deleted + Span::from_secs(grace)).to_time());
        pod["metadata"]["generation"] = json!(2);
    }
}

/// The name of an initial pod.
pub fn pod_name(
    workload: &SeedWorkload,
    seed: &PodSeed,
    machine: Option<&Machine>,
    random: RandomSource,
) -> String {
    let ordinal = seed.ordinal.to_string();
    match &workload.owner {
        SeedOwner::Static => format!("{}-{}", workload.name, machine.map_or("", |m| m.name.as_str())),
        SeedOwner::Service(service) if service.kind == super::catalogue::CatalogueKind::StatefulSet => {
            format!("{}-{ordinal}", workload.name)
        }
        SeedOwner::Service(_) | SeedOwner::Agent(_) => match workload.pod_owner_name() {
            None => workload.name.clone(),
            Some(owner) => {
                let mut rng = random.rng(&["name", &workload.namespace, &owner, &ordinal]);
                format!("{owner}-{}", suffix(&mut rng, 5))
            }
        },
    }
}

/// The node affinity that binds a DaemonSet's pod to one node.
pub fn pinned(node: &str) -> Value {
    json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]},
    ]}}})
}

fn claim(spec: &mut Value, service: &CatalogueService, pod: &str) {
    if service.volume == CatalogueVolume::Claim
        && let Some(volumes) = spec["volumes"].as_array_mut()
    {
        volumes.push(json!({"name": "data", "persistentVolumeClaim": {"claimName": format!("data-{pod}")}}));
    }
}

/// The status of a healthy pod, without the fields that differ between pods.
fn running(spec: &Value, workload: &SeedWorkload) -> Value {
    let condition = |kind: &str| json!({"type": kind, "status": "True", "observedGeneration": 1});
    let kinds = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];
    let containers: Value = spec["containers"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|container| {
            let digest = format!("{}@sha256:{:064x}", container["image"].as_str().unwrap_or_default(), 7);
            json!({
                "name": container["name"], "image": container["image"], "imageID": digest,
                "ready": true, "started": true, "restartCount": 0, "lastState": {}, "state": {"running": {}},
            })
        })
        .collect();
    let requests = spec.pointer("/containers/0/resources/requests").and_then(Value::as_object).map(Map::len);
    json!({
        "phase": "Running",
        "conditions": kinds.map(condition),
        "containerStatuses": containers,
        "qosClass": if requests.is_some() { "Burstable" } else { "BestEffort" },
        "observedGeneration": i64::from(!matches!(workload.owner, SeedOwner::Static)),
    })
}
