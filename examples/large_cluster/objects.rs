//! The objects of a large cluster: of realistic size, and all different.

use kordon_time::{Span, Timestamp};
use serde_json::{Map, Value, json};

/// Pods of each Deployment.
const PODS_OF_APP: usize = 30;
const NAMESPACES: usize = 100;
/// One in this many Deployments has a PodDisruptionBudget.
const APPS_PER_BUDGET: usize = 10;
/// The Lease of kube-controller-manager, in namespace kube-system.
pub const LEADER: &str = "kube-controller-manager";
const ZONES: [&str; 3] = ["a", "b", "c"];

/// A cluster of a given size. Equal sizes and times produce equal objects.
#[derive(Clone, Copy, Debug)]
pub struct LargeCluster {
    pub nodes: usize,
    pub pods: usize,
    /// Time of the heartbeats and conditions; everything else is older.
    pub now: Timestamp,
}

/// The part of a pod's status that changes while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodHealth {
    pub ready: bool,
    pub restarts: usize,
}

impl PodHealth {
    pub const GOOD: Self = Self { ready: true, restarts: 0 };
}

impl LargeCluster {
    /// Returns one of `parts` shares of all objects, each with the plural of its kind.
    pub fn objects(self, part: usize, parts: usize) -> impl Iterator<Item = (&'static str, Value)> {
        let share = move |count: usize| (part..count).step_by(parts);
        let apps = self.pods.div_ceil(PODS_OF_APP);
        let systems = ["default", "kube-system", "kube-node-lease", "kube-public"].map(str::to_owned);
        let namespaces = systems.into_iter().chain((0..NAMESPACES.min(apps)).map(namespace));
        let namespaces = namespaces.filter(move |_| part == 0);
        let template = self.template();
        namespaces
            .map(move |name| ("namespaces", self.namespace(&name)))
            .chain(share(self.nodes).map(move |index| ("nodes", self.node(index))))
            .chain(share(self.nodes).map(move |index| ("leases", self.lease(index))))
            .chain((part == 0).then(|| ("leases", self.leader())))
            .chain(share(apps).map(move |app| ("deployments", self.deployment(app))))
            .chain(share(apps).map(move |app| ("replicasets", self.replica_set(app))))
            .chain(
                share(apps)
                    .filter(|app| app.is_multiple_of(APPS_PER_BUDGET))
                    .map(move |app| ("poddisruptionbudgets", self.budget(app))),
            )
            .chain(
                share(self.pods)
                    .map(move |index| ("pods", self.pod_like(&template, index, 0, PodHealth::GOOD))),
            )
    }

    fn namespace(self, name: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {
                "name": name, "uid": uid("namespace", hash(name)), "creationTimestamp": self.created(0),
                "labels": {"kubernetes.io/metadata.name": name},
            },
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        })
    }

    fn node(self, index: usize) -> Value {
        let name = node_name(index);
        let zone = ZONES[index % ZONES.len()];
        let address = format!("10.{}.{}.{}", 100 + index / 62_500, index / 250 % 250, index % 250 + 1);
        let heartbeat = self.now.to_time();
        let condition = |kind: &str, status: &str, reason: &str, message: &str| {
            json!({
                "type": kind, "status": status, "reason": reason, "message": message,
                "lastHeartbeatTime": heartbeat, "lastTransitionTime": self.created(index),
            })
        };
        let images: Vec<Value> = (0..25).map(|image| image_on_node(index, image)).collect();
        json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {
                "name": name, "uid": uid("node", index as u64), "creationTimestamp": self.created(index),
                "annotations": {
                    "node.alpha.kubernetes.io/ttl": "300",
                    "volumes.kubernetes.io/controller-managed-attach-detach": "true",
                },
                "labels": {
                    "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
                    "topology.kubernetes.io/region": "r1", "topology.kubernetes.io/zone": format!("r1-{zone}"),
                    "node.kubernetes.io/instance-type": "m.4xlarge", "node-role.kubernetes.io/worker": "",
                },
            },
            "spec": {
                "podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"], "providerID": format!("large:///{zone}/{name}"),
            },
            "status": {
                "capacity": {"cpu": "16", "memory": "64Gi", "pods": "110", "ephemeral-storage": "100Gi"},
                "allocatable": {"cpu": "15500m", "memory": "60Gi", "pods": "110", "ephemeral-storage": "90Gi"},
                "conditions": [
                    condition("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
                    condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
                    condition("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
                    condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
                ],
                "addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
                "images": images,
                "nodeInfo": {
                    "kubeletVersion": "v1.37.1", "osImage": "Debian GNU/Linux 13 (trixie)", "kernelVersion": "6.12.38",
                    "containerRuntimeVersion": "containerd://2.1.4", "architecture": "amd64", "operatingSystem": "linux",
                    "machineID": hex("machine", index, 32), "systemUUID": uid("system", index as u64),
                    "bootID": uid("boot", index as u64), "kubeProxyVersion": "",
                },
            },
        })
    }

    /// Returns a node's Lease, renewed at `now`.
    pub fn lease(self, index: usize) -> Value {
        let name = node_name(index);
        let owner =
            json!([{"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid("node", index as u64)}]);
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {
                "name": name, "namespace": "kube-node-lease", "uid": uid("lease", index as u64),
                "creationTimestamp": self.created(index), "ownerReferences": owner,
            },
            "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": self.now.to_micro_time()},
        })
    }

    /// Returns the Lease of kube-controller-manager, renewed at `now`.
    pub fn leader(self) -> Value {
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {
                "name": LEADER, "namespace": "kube-system", "uid": uid("lease", u64::MAX), "creationTimestamp": self.created(0),
            },
            "spec": {
                "holderIdentity": "control-plane-1", "leaseDurationSeconds": 15, "leaseTransitions": 1,
                "acquireTime": (self.now - Span::from_secs(86_400)).to_micro_time(), "renewTime": self.now.to_micro_time(),
            },
        })
    }

    fn deployment(self, app: usize) -> Value {
        let labels = app_labels(app);
        let replicas = self.replicas(app);
        let created = self.created(app);
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {
                "name": app_name(app), "namespace": namespace(app), "uid": uid("deployment", app as u64),
                "creationTimestamp": created, "generation": 1, "labels": labels,
                "annotations": {"deployment.kubernetes.io/revision": "1"},
            },
            "spec": {
                "replicas": replicas, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600,
                "selector": {"matchLabels": labels},
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
                "template": {"metadata": {"labels": labels}, "spec": self.pod_spec(app * PODS_OF_APP)},
            },
            "status": {
                "observedGeneration": 1, "replicas": replicas, "updatedReplicas": replicas,
                "readyReplicas": replicas, "availableReplicas": replicas,
            },
        })
    }

    fn replica_set(self, app: usize) -> Value {
        let mut labels = app_labels(app);
        labels["pod-template-hash"] = json!(template_hash(app));
        let replicas = self.replicas(app);
        let owner = json!([{
            "apiVersion": "apps/v1", "kind": "Deployment", "name": app_name(app), "uid": uid("deployment", app as u64),
            "controller": true, "blockOwnerDeletion": true,
        }]);
        json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {
                "name": replica_set_name(app), "namespace": namespace(app), "uid": uid("replicaset", app as u64),
                "creationTimestamp": self.created(app), "generation": 1, "labels": labels, "ownerReferences": owner,
            },
            "spec": {
                "replicas": replicas, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": self.pod_spec(app * PODS_OF_APP)},
            },
            "status": {
                "observedGeneration": 1, "replicas": replicas, "fullyLabeledReplicas": replicas,
                "readyReplicas": replicas, "availableReplicas": replicas,
            },
        })
    }

    fn budget(self, app: usize) -> Value {
        let replicas = self.replicas(app);
        let desired = (replicas * 8).div_ceil(10);
        json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {
                "name": app_name(app), "namespace": namespace(app), "uid": uid("budget", app as u64),
                "creationTimestamp": self.created(app), "generation": 1,
            },
            "spec": {"minAvailable": "80%", "selector": {"matchLabels": app_labels(app)}},
            "status": {
                "observedGeneration": 1, "expectedPods": replicas, "currentHealthy": replicas,
                "desiredHealthy": desired, "disruptionsAllowed": replicas - desired,
            },
        })
    }

    fn replicas(self, app: usize) -> usize {
        self.pods.saturating_sub(app * PODS_OF_APP).min(PODS_OF_APP)
    }

    /// Returns the pod at `index`. Each generation is another pod with another name.
    pub fn pod(self, index: usize, generation: usize, health: PodHealth) -> Value {
        self.pod_like(&self.template(), index, generation, health)
    }

    /// The managedFields of all pods, which differ only in their times.
    fn template(self) -> [Value; 2] {
        let pod = self.pod_without_managed_fields(0, 0, PodHealth::GOOD);
        let spec = json!({"metadata": {
            "generateName": "", "labels": pod["metadata"]["labels"], "annotations": pod["metadata"]["annotations"],
            "ownerReferences": pod["metadata"]["ownerReferences"],
        }, "spec": pod["spec"]});
        let managed = |manager: &str, what: &Value| {
            json!({
                "manager": manager, "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
                "fieldsV1": fields(what),
            })
        };
        let mut kubelet = managed("kubelet", &json!({"status": pod["status"]}));
        kubelet["subresource"] = json!("status");
        [managed("kube-controller-manager", &spec), kubelet]
    }

    fn pod_like(self, managed: &[Value; 2], index: usize, generation: usize, health: PodHealth) -> Value {
        let mut pod = self.pod_without_managed_fields(index, generation, health);
        let mut managed = managed.clone();
        managed[0]["time"] = json!(self.created(index));
        managed[1]["time"] = json!(self.started(index));
        pod["metadata"]["managedFields"] = Value::Array(managed.into());
        pod
    }

    fn pod_without_managed_fields(self, index: usize, generation: usize, health: PodHealth) -> Value {
        let app = index / PODS_OF_APP;
        let mut labels = app_labels(app);
        labels["pod-template-hash"] = json!(template_hash(app));
        labels["shard"] = json!(format!("shard-{index:06}"));
        let mut spec = self.pod_spec(index);
        spec["nodeName"] = json!(node_name(index % self.nodes.max(1)));
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": pod_name(index, generation), "namespace": namespace(app),
                "generateName": format!("{}-", replica_set_name(app)),
                "uid": uid("pod", index as u64 ^ ((generation as u64) << 32)), "creationTimestamp": self.created(index),
                "generation": 1, "labels": labels,
                "annotations": {
                    "checksum/config": hex("configuration", app, 64),

                    "change-cause": format!("release {} of {}", app % 97, app_name(app)),
                },
                "ownerReferences": [{
                    "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": replica_set_name(app),
                    "uid": uid("replicaset", app as u64), "controller": true, "blockOwnerDeletion": true,
                }],
            },
            "spec": spec,
            "status": self.pod_status(index, health),
        })
    }

    /// No two of the first 600,000 pods request the same.
    fn pod_spec(self, index: usize) -> Value {
        let app = index / PODS_OF_APP;
        let requests = json!({
            "cpu": format!("{}m", 100 + index % 401), "memory": format!("{}Ki", (512 << 10) + index / 401 % 1501 * 512),
        });
        let environment: Vec<Value> = (0..4)
            .map(|number| {
                let value = format!("{}-{number}", hex("setting", index * 10 + number, 16));
                json!({"name": format!("SETTING_{number:02}"), "value": value})
            })
            .chain(["spec.nodeName"].map(|path| {
                let name = path.replace('.', "_").to_uppercase();
                json!({"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}})
            }))
            .collect();
        let probe = |path: &str, period: usize| {
            json!({
                "httpGet": {"path": path, "port": "http", "scheme": "HTTP"}, "initialDelaySeconds": 2,
                "periodSeconds": period, "timeoutSeconds": 1, "successThreshold": 1, "failureThreshold": 3,
            })
        };
        let mut spec = json!({
            "containers": [{
                "name": "app", "image": image(app), "imagePullPolicy": "IfNotPresent",
                "args": ["--config=/etc/app/config.yaml", "--listen=:8080", "--metrics=:9090", format!("--shard={index}")],
                "env": environment,
                "ports": [
                    {"name": "http", "containerPort": 8080, "protocol": "TCP"},
                    {"name": "metrics", "containerPort": 9090, "protocol": "TCP"},
                ],
                "readinessProbe": probe("/readyz", 5),
                "resources": {"requests": requests, "limits": {"memory": requests["memory"]}},
                "securityContext": {
                    "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]},
                    "readOnlyRootFilesystem": true, "runAsNonRoot": true,
                },
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
                "volumeMounts": [
                    {"name": "config", "mountPath": "/etc/app", "readOnly": true},
                    {"name": "scratch", "mountPath": "/tmp"},
                    {"name": "kube-api-access", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": true},
                ],
            }],
            "volumes": [
                {"name": "config", "configMap": {"name": format!("{}-config", app_name(app)), "defaultMode": 420}},
                {"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}},
                {"name": "kube-api-access", "projected": {"defaultMode": 420, "sources": [
                    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                    {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                    {"downwardAPI": {"items": [
                        {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}},
                    ]}},
                ]}},
            ],
            "tolerations": [
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
            ],
            "dnsPolicy": "ClusterFirst", "enableServiceLinks": true, "preemptionPolicy": "PreemptLowerPriority", "priority": 0,
            "restartPolicy": "Always", "schedulerName": "default-scheduler", "securityContext": {},
            "serviceAccount": "default", "serviceAccountName": "default", "terminationGracePeriodSeconds": 30,
        });
        if app.is_multiple_of(4) {
            spec["topologySpreadConstraints"] = json!([{
                "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": app_labels(app)},
            }]);
        }
        spec
    }

    /// Returns the status of a running pod.
    pub fn pod_status(self, index: usize, health: PodHealth) -> Value {
        let app = index / PODS_OF_APP;
        let since = if health == PodHealth::GOOD { self.started(index) } else { self.now.to_time() };
        let ready = if health.ready { "True" } else { "False" };
        let condition = |kind: &str, status: &str, since: &str| {
            json!({
                "type": kind, "status": status, "observedGeneration": 1, "lastProbeTime": null, "lastTransitionTime": since,
            })
        };
        let created = self.created(index);
        let address = format!("10.{}.{}.{}", index / 62_500, index / 250 % 250, index % 250 + 1);
        json!({
            "phase": "Running", "qosClass": "Burstable", "observedGeneration": 1,
            "hostIP": "10.100.0.1", "hostIPs": [{"ip": "10.100.0.1"}],
            "podIP": address, "podIPs": [{"ip": address}], "startTime": created,
            "conditions": [
                condition("PodReadyToStartContainers", "True", &self.started(index)),
                condition("Initialized", "True", &created),
                condition("Ready", ready, &since),
                condition("ContainersReady", ready, &since),
                condition("PodScheduled", "True", &created),
            ],
            "containerStatuses": [{
                "name": "app", "ready": health.ready, "started": health.ready, "restartCount": health.restarts,
                "image": image(app), "imageID": format!("registry.example/app@sha256:{}", hex("image", app, 64)),
                "containerID": format!("containerd://{}", hex("container", index * 1000 + health.restarts, 64)),
                "state": {"running": {"startedAt": since}}, "lastState": {},
            }],
        })
    }

    /// Returns the creation time of an object, within the last 40 days.
    fn created(self, index: usize) -> String {
        (self.now - Span::from_secs(3600 + (mix(index as u64) % (40 * 86_400)) as i64)).to_time()
    }

    fn started(self, index: usize) -> String {
        (self.now - Span::from_secs(3590 + (mix(index as u64) % (40 * 86_400)) as i64)).to_time()
    }
}

pub fn node_name(index: usize) -> String {
    format!("node-{index:05}")
}

/// Returns the namespace of the pod at `index`.
pub fn pod_namespace(index: usize) -> String {
    namespace(index / PODS_OF_APP)
}

pub fn pod_name(index: usize, generation: usize) -> String {
    // The alphabet of the suffixes of names that the API server generates.
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let app = index / PODS_OF_APP;
    // The prime stride gives the pods of a ReplicaSet different names that do not resemble each other.
    let mut number = (index % PODS_OF_APP + PODS_OF_APP * generation + 1) * 7919 * 61;
    let mut name = format!("{}-", replica_set_name(app));
    for _ in 0..5 {
        name.push(char::from(LETTERS[number % LETTERS.len()]));
        number /= LETTERS.len();
    }
    name
}

fn namespace(app: usize) -> String {
    format!("team-{:02}", app % NAMESPACES)
}

fn app_name(app: usize) -> String {
    format!("service-{app:05}")
}

fn replica_set_name(app: usize) -> String {
    format!("{}-{}", app_name(app), template_hash(app))
}

fn template_hash(app: usize) -> String {
    hex("template", app, 10)
}

fn app_labels(app: usize) -> Value {
    let name = app_name(app);
    json!({
        "app.kubernetes.io/name": name, "app.kubernetes.io/instance": name, "app.kubernetes.io/part-of": namespace(app),
    })
}

fn image(app: usize) -> String {
    format!("registry.example/{}/service:1.{}.{}", namespace(app), app % 40, app % 7)
}

fn image_on_node(node: usize, number: usize) -> Value {
    let app = node * 7 + number * 131;
    let digest = format!("registry.example/app@sha256:{}", hex("image", app, 64));
    json!({"names": [digest, image(app)], "sizeBytes": 40_000_000 + app * 1001})
}

/// Returns the fields of an object in the format of managedFields.
fn fields(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, value)| (format!("f:{name}"), fields(value))).collect())
        }
        Value::Array(items) => {
            let mut keyed = Map::new();
            for item in items {
                let key = ["name", "uid", "type", "ip", "mountPath", "containerPort"]
                    .into_iter()
                    .find_map(|key| Some(json!({key: item.get(key)?})));
                if let Some(key) = key {
                    let mut inner = fields(item);
                    inner["."] = json!({});
                    keyed.insert(format!("k:{key}"), inner);
                }
            }
            Value::Object(keyed)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => json!({}),
    }
}

fn uid(kind: &str, number: u64) -> String {
    let (high, low) = (mix(hash(kind) ^ number), mix(hash(kind).wrapping_add(mix(number))));
    format!(
        "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xfff,
        (low >> 48) & 0xfff,
        low & 0xffff_ffff_ffff
    )
}

/// Returns `digits` hexadecimal digits, the same for equal arguments.
fn hex(kind: &str, number: usize, digits: usize) -> String {
    let mut text = String::with_capacity(digits + 16);
    let mut state = hash(kind) ^ number as u64;
    while text.len() < digits {
        state = mix(state);
        text.push_str(&format!("{state:016x}"));
    }
    text.truncate(digits);
    text
}

/// Returns the FNV-1a hash of a text.
fn hash(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// Finalizer of SplitMix64: a deterministic hash that maps near numbers to distant ones.
fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
