//! Variants as their files describe them: nodes, objects in a short form, a question, and the expected answer.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result, bail};
use kordon_time::Span;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::harness::kubelets::NodeSpec;

/// Label of the nodes of a variant. Every template selects it, so that variants share no node.
const LABEL: &str = "kordon.test/variant";

/// Seconds that pods get to terminate if the variant does not say otherwise.
const GRACE: u32 = 1;

/// A cluster of a few nodes, a question about it, and what happens then.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Name of the variant, its namespace and its zone, and the start of the names of its nodes.
    pub name: String,
    /// Fields of [`NodeSpec`] that a node sets, by the name of the node.
    pub nodes: BTreeMap<String, Option<NodeFields>>,
    /// Objects by the node on which their pods are first placed; they are created in the order of the keys. The pods of
    /// objects under any other key, such as `0`, may be placed on any node. An object with the field `run` is a kubectl
    /// command. The field `pods` gives the number of pods if it does not follow from the object.
    #[serde(default)]
    pub place: BTreeMap<String, Vec<Value>>,
    /// Lines that are run before the question, once the pods of all objects have been started.
    #[serde(default)]
    pub before: Vec<String>,
    /// The question: the words after `kordon plan`, or a `forecast`.
    pub ask: String,
    /// Objects that the question adds to the cluster or replaces in it. Later they are created or changed for real.
    #[serde(default)]
    pub with: Vec<Value>,
    /// The action that is carried out for real; by default, the action in the question.
    pub then: Option<Vec<String>>,
    /// Minimum duration of the observation, in seconds.
    #[serde(default)]
    pub lasts: u32,
    /// Expected number of pods for each outcome, by the word for the outcome.
    pub becomes: BTreeMap<String, u64>,
    /// Texts that the answer has to contain.
    #[serde(default)]
    pub says: Vec<String>,
    /// Texts that the answer must not contain.
    #[serde(default)]
    pub never_says: Vec<String>,
}

/// Special properties of a node.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeFields {
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    taints: Vec<Value>,
    cpu: Option<String>,
    pods: Option<u32>,
    #[serde(default)]
    extended: BTreeMap<String, String>,
    /// Whether pods on this node never become Ready.
    #[serde(default)]
    fails_probes: bool,
    /// Seconds by which the clock of the node is ahead.
    #[serde(default)]
    clock: i64,
}

/// Reads the variants of all files.
pub fn all() -> Result<Vec<Variant>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/kinds");
    let mut files: Vec<_> = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    let mut variants = Vec::new();
    for path in files {
        let read: Vec<Variant> = serde_saphyr::from_str(&fs::read_to_string(&path)?)
            .with_context(|| path.display().to_string())?;
        variants.extend(read);
    }
    Ok(variants)
}

impl Variant {
    /// Returns the name of a node in the cluster.
    pub fn node(&self, name: &str) -> String {
        format!("{}-{name}", self.name)
    }

    /// Returns the nodes to register. They are in one zone, which only this variant uses.
    pub fn node_specs(&self) -> Vec<NodeSpec> {
        let spec = |(name, fields): (&String, &Option<NodeFields>)| {
            let fields = fields.clone().unwrap_or_default();
            let mut spec = NodeSpec::new(self.node(name), &self.name);
            if fields.labels.contains_key("topology.kubernetes.io/zone") {
                spec.zone = None;
            }
            spec.labels = fields.labels;
            spec.labels.insert(LABEL.into(), self.name.clone());
            spec.taints = fields.taints;
            spec.cpu = fields.cpu.unwrap_or(spec.cpu);
            spec.pods = fields.pods.unwrap_or(spec.pods);
            spec.extended = fields.extended;
            spec.fails_probes = fields.fails_probes;
            spec.clock_ahead = Span::from_secs(fields.clock);
            spec
        };
        self.nodes.iter().map(spec).collect()
    }

    /// Splits a command into words, and replaces node names and placeholders by the names in the cluster.
    pub fn command(&self, words: &str) -> Vec<String> {
        let word = |word: &str| match self.nodes.contains_key(word) {
            true => self.node(word),
            false => self.filled(word),
        };
        words.split(' ').map(word).collect()
    }

    /// Replaces `$(NODE)` by the name of the node, and `$(ns)` by that of the namespace.
    pub fn filled(&self, text: &str) -> String {
        let text = text.replace("$(ns)", &self.name);
        self.nodes.keys().fold(text, |text, node| text.replace(&format!("$({node})"), &self.node(node)))
    }

    /// Returns an object in the form that the API server accepts, and the path of its collection.
    pub fn object(&self, short: &Value) -> Result<(String, Value)> {
        let short: Value = serde_json::from_str(&self.filled(&short.to_string()))?;
        let kind = short["kind"].as_str().context("an object without a kind")?;
        let name = short["name"].as_str().context("an object without a name")?;
        let (version, plural, is_namespaced) = collection(kind)?;
        let place = if is_namespaced { format!("namespaces/{}/", self.name) } else { String::new() };
        let root = if version == "v1" { "api" } else { "apis" };
        let path = format!("/{root}/{version}/{place}{plural}");
        let mut object = json!({
            "apiVersion": version, "kind": kind, "metadata": {"name": name},
        });
        if is_namespaced {
            object["metadata"]["namespace"] = json!(self.name);
        }
        for (key, value) in short.as_object().context("an object")? {
            if !["kind", "name", "pod", "pods", "labels", "container"].contains(&key.as_str()) {
                merge(&mut object[key.as_str()], value);
            }
        }
        self.complete(kind, name, &short, &mut object);
        Ok((path, object))
    }

    /// Adds the fields that each workload needs and that the variant does not set: a selector, labels, a container, a
    /// grace period.
    fn complete(&self, kind: &str, name: &str, short: &Value, object: &mut Value) {
        let mut container = json!({"name": "c", "image": "img"});
        merge(&mut container, &short["container"]);
        let mut spec = json!({
            "terminationGracePeriodSeconds": GRACE, "nodeSelector": {LABEL: self.name}, "containers": [container],
        });
        if kind == "Job" || kind == "CronJob" {
            spec["restartPolicy"] = json!("Never");
        }
        merge(&mut spec, &short["pod"]);
        let mut labels = json!({"app": name});
        merge(&mut labels, &short["labels"]);
        let template = json!({"metadata": {"labels": labels}, "spec": spec});
        match kind {
            "Deployment" | "StatefulSet" | "DaemonSet" => {
                object["spec"]["selector"] = json!({"matchLabels": {"app": name}});
                object["spec"]["template"] = template;
                if kind == "StatefulSet" {
                    object["spec"]["serviceName"] = json!(name);
                }
            }
            "Job" => object["spec"]["template"] = template,
            "CronJob" => object["spec"]["jobTemplate"]["spec"]["template"] = template,
            "Pod" => {
                object["spec"] = template["spec"].clone();
                object["metadata"]["labels"] = template["metadata"]["labels"].clone();
            }
            "PodDisruptionBudget" if object["spec"]["selector"].is_null() => {
                object["spec"]["selector"] = json!({"matchLabels": {"app": name}});
            }
            _ => {}
        }
    }

    /// Returns the number of pods that these objects have once the cluster has settled.
    pub fn pods_of(&self, objects: &[Value]) -> u64 {
        let number = |object: &Value, field: &str| object["spec"][field].as_u64();
        let of_kind = |object: &Value| match object["kind"].as_str() {
            Some("Deployment" | "StatefulSet") => number(object, "replicas").unwrap_or(1),
            Some("DaemonSet") => self.nodes.len() as u64,
            Some("Job") => number(object, "parallelism").unwrap_or(1),
            Some("Pod") => 1,
            _ => 0,
        };
        let pods = |object: &Value| object["pods"].as_u64().unwrap_or_else(|| of_kind(object));
        objects.iter().map(pods).sum()
    }
}

/// Returns the group and version of a kind, its name in paths, and whether its objects are namespaced.
fn collection(kind: &str) -> Result<(&'static str, &'static str, bool)> {
    Ok(match kind {
        "Pod" => ("v1", "pods", true),
        "PersistentVolumeClaim" => ("v1", "persistentvolumeclaims", true),
        "PersistentVolume" => ("v1", "persistentvolumes", false),
        "ResourceQuota" => ("v1", "resourcequotas", true),
        "LimitRange" => ("v1", "limitranges", true),
        "Deployment" => ("apps/v1", "deployments", true),
        "StatefulSet" => ("apps/v1", "statefulsets", true),
        "DaemonSet" => ("apps/v1", "daemonsets", true),
        "Job" => ("batch/v1", "jobs", true),
        "CronJob" => ("batch/v1", "cronjobs", true),
        "PodDisruptionBudget" => ("policy/v1", "poddisruptionbudgets", true),
        "PriorityClass" => ("scheduling.k8s.io/v1", "priorityclasses", false),
        "StorageClass" => ("storage.k8s.io/v1", "storageclasses", false),
        "CSIDriver" => ("storage.k8s.io/v1", "csidrivers", false),
        "CSINode" => ("storage.k8s.io/v1", "csinodes", false),
        "VolumeAttachment" => ("storage.k8s.io/v1", "volumeattachments", false),
        "DeviceClass" => ("resource.k8s.io/v1", "deviceclasses", false),
        "ResourceSlice" => ("resource.k8s.io/v1", "resourceslices", false),
        "ResourceClaim" => ("resource.k8s.io/v1", "resourceclaims", true),
        "ResourceClaimTemplate" => ("resource.k8s.io/v1", "resourceclaimtemplates", true),
        "DeviceTaintRule" => ("resource.k8s.io/v1", "devicetaintrules", false),
        other => bail!("no collection of {other}"),
    })
}

/// Merges the fields of `over` into `base`. Lists are replaced.
fn merge(base: &mut Value, over: &Value) {
    match (base, over) {
        (_, Value::Null) => {}
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                merge(base.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (base @ Value::Null, Value::Object(over)) => {
            *base = Value::Object(Map::new());
            merge(base, &Value::Object(over.clone()));
        }
        (base, over) => *base = over.clone(),
    }
}
