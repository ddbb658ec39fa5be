//! Recordings of kube-scheduler: reads them, repeats them with kordon's placement, and compares the results.

#![allow(dead_code, reason = "each user needs a part of it")]

use std::{collections::BTreeMap, sync::Arc};

use kordon::k8s::decode::{self, Decoder, ListPurpose};
use kordon_core::{
    cluster::{Change, Cluster, DeviceChange, Key, ObjectEvent, Pod},
    engine::ServerVersion,
    placement::{
        Hindrance, Preemption, Reason, SchedulerRules, SchedulingOutcome, SchedulingRequest, Snapshot,
        Unschedulable,
    },
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// One recording: a cluster, the pods that were created in it, and the outcome of each pod.
#[derive(Clone, Debug, Deserialize)]
pub struct PlacementRecording {
    #[serde(flatten)]
    scene: BriefCluster,
    incoming: Vec<Value>,
    pub recorded: Recorded,
}

/// A cluster in the short notation of recordings.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BriefCluster {
    pub nodes: Vec<Value>,
    pub bound: Vec<Value>,
    pub priority_classes: Vec<Value>,
    pub pdbs: Vec<Value>,
    pub namespaces: Map<String, Value>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Recorded {
    version: String,
    pub results: Vec<RecordedPlacement>,
}

/// Outcomes of one pod in the scheduler's runs.
#[derive(Clone, Debug, Deserialize)]
pub struct RecordedPlacement {
    pod: String,
    /// How often each outcome was observed.
    pub outcomes: BTreeMap<String, u32>,
    pub message: Option<String>,
}

impl PlacementRecording {
    /// Describes the differences between the recorded outcomes and kordon's predictions; empty if they agree.
    pub fn differences(&self) -> Vec<String> {
        let version = ServerVersion::parse(&self.recorded.version).expect("a version");
        let cluster = self.scene.cluster();
        let incoming: Vec<Arc<Pod>> = self.incoming.iter().map(|pod| self.scene.pod(pod, None)).collect();
        // Old schedulers update the number of nodes that have an image only when a kubelet updates the status of its
        // node. The recordings were made without kubelets, so these numbers are stale.
        let rules = SchedulerRules {
            image_counts_are_stale: !self.is_modern(),
            ..SchedulerRules::for_version(version)
        };
        let mut snapshot = Snapshot::with_rules(&cluster, rules);
        self.follow(&cluster, &mut snapshot, &incoming, &self.recorded.results)
    }

    /// Compares all results from the next pod on. A recording lists all nodes on which a pod was observed, but not the
    /// node on which the pod stayed while later pods were placed. So the comparison is repeated for each of these
    /// nodes, until the results of all later pods agree.
    fn follow(
        &self,
        cluster: &Cluster,
        snapshot: &mut Snapshot,
        incoming: &[Arc<Pod>],
        seen: &[RecordedPlacement],
    ) -> Vec<String> {
        let ([pod, later @ ..], [result, after @ ..]) = (incoming, seen) else { return Vec::new() };
        assert_eq!(*pod.key.name, result.pod, "results come in the order of the pods");
        let outcome = snapshot.place(&SchedulingRequest::from_pod(pod, cluster));
        let mut differences = result.differences(&outcome, self.is_modern());
        let nodes: Vec<&str> = result.nodes().collect();
        if !differences.is_empty() || nodes.is_empty() {
            differences.extend(self.follow(cluster, snapshot, later, after));
            return differences;
        }
        for node in nodes {
            let mut next = snapshot.clone();
            assert!(next.add(pod.clone(), &node.into()), "an observed node exists");
            differences = self.follow(cluster, &mut next, later, after);
            if differences.is_empty() {
                break;
            }
        }
        differences
    }

    fn is_modern(&self) -> bool {
        !self.recorded.version.starts_with("v1.23.")
    }
}

impl BriefCluster {
    pub fn cluster(&self) -> Cluster {
        let mut cluster = Cluster::default();
        let mut namespaces = self.namespaces.clone();
        namespaces.entry("default").or_insert_with(|| json!({}));
        let namespaces = namespaces.iter().map(|(name, labels)| {
            let mut labels = labels.as_object().cloned().unwrap_or_default();
            labels.insert("kubernetes.io/metadata.name".into(), json!(name));
            json!({"metadata": {"name": name, "labels": labels}})
        });
        list(&mut cluster, &mut decode::namespace::NamespaceDecoder::default(), namespaces.collect());
        list(&mut cluster, &mut decode::node::NodeDecoder::default(), self.nodes.iter().map(node).collect());
        let budgets = self.pdbs.iter().map(|pdb| {
            let mut budget = pdb["object"].clone();
            if budget["metadata"].get("namespace").is_none() {
                budget["metadata"]["namespace"] = json!("default");
            }
            budget["status"] = pdb["status"].clone();
            budget
        });
        list(&mut cluster, &mut decode::budget::BudgetDecoder::default(), budgets.collect());
        for bound in &self.bound {
            let pod = self.pod(bound, bound["node"].as_str());
            cluster.apply(Change::Pod(ObjectEvent::Applied((*pod).clone())), &mut Vec::new());
        }
        // The cluster is known to have no devices.
        for change in [
            DeviceChange::Class(ObjectEvent::ListDone),
            DeviceChange::Claim(ObjectEvent::ListDone),
            DeviceChange::Slice(ObjectEvent::ListDone),
            DeviceChange::Rule(ObjectEvent::ListDone),
            DeviceChange::Template(ObjectEvent::ListDone),
        ] {
            cluster.apply(Change::Device(change), &mut Vec::new());
        }
        cluster
    }

    /// Returns the priority class with this name, or the default class for pods without one.
    fn priority_class(&self, name: &Value) -> Option<Value> {
        match name.as_str() {
            Some("system-cluster-critical") => Some(json!({"value": 2_000_000_000})),
            Some("system-node-critical") => Some(json!({"value": 2_000_001_000})),
            Some(_) => self.priority_classes.iter().find(|class| class["metadata"]["name"] == *name).cloned(),
            None => self.priority_classes.iter().find(|class| class["globalDefault"] == json!(true)).cloned(),
        }
    }

    /// Builds a pod as the API server would store it.
    pub fn pod(&self, pod: &Value, node: Option<&str>) -> Arc<Pod> {
        let mut spec = pod.get("spec").cloned().unwrap_or_else(|| simple_spec(pod));
        let of_spec = |(field, _): &(&String, &Value)| !OUTSIDE_THE_SPEC.contains(&field.as_str());
        for (field, value) in pod.as_object().into_iter().flatten().filter(of_spec) {
            spec[field] = value.clone();
        }
        if let Some(class) = self.priority_class(&spec["priorityClassName"]) {
            spec["priority"] = class["value"].clone();
            spec["preemptionPolicy"] = class["preemptionPolicy"].clone();
        }
        spec["nodeName"] = json!(node);
        let on_the_network_of_the_node = spec["hostNetwork"] == json!(true);
        for containers in ["containers", "initContainers"] {
            for container in spec.get_mut(containers).and_then(Value::as_array_mut).into_iter().flatten() {
                default_requests(container);
                if on_the_network_of_the_node {
                    default_host_ports(container);
                }
            }
        }
        let phase =
            pod.get("phase").cloned().unwrap_or(json!(if node.is_some() { "Running" } else { "Pending" }));
        let namespace = pod.get("namespace").cloned().unwrap_or(json!("default"));
        let object = json!({
            "metadata": {
                "name": pod["name"], "namespace": namespace, "labels": pod.get("labels"),
                "deletionTimestamp": pod.get("deleted"),
            },
            "spec": spec,
            "status": {"phase": phase, "startTime": pod.get("startTime")},
        });
        let mut cluster = Cluster::default();
        list(&mut cluster, &mut decode::pod::PodDecoder::default(), vec![object]);
        cluster.pods().iter().next().expect("one pod").clone()
    }
}

/// Fields in the short notation of a pod that do not belong to its spec.
const OUTSIDE_THE_SPEC: [&str; 13] = [
    "name",
    "namespace",
    "labels",
    "annotations",
    "node",
    "spec",
    "image",
    "requests",
    "limits",
    "ports",
    "phase",
    "startTime",
    "deleted",
];

/// Decodes objects as a list of an API server, and applies them to the cluster.
pub fn list<D: Decoder>(cluster: &mut Cluster, decoder: &mut D, items: Vec<Value>) {
    let page = json!({"metadata": {"resourceVersion": "1"}, "items": items}).to_string();
    let mut changes = Vec::new();
    let end = decode::page(decoder, page.as_bytes(), ListPurpose::Whole, &mut changes).expect("a list");
    assert!(end.bad.is_empty(), "objects that do not read: {:?}", end.bad);
    changes.into_iter().for_each(|change| cluster.apply(change, &mut Vec::new()));
}

fn node(node: &Value) -> Value {
    let name = &node["name"];
    let mut labels = json!({"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"});
    merge(&mut labels, node.get("labels"));
    let mut allocatable = json!({"cpu": "4", "memory": "8Gi", "pods": "110", "ephemeral-storage": "100Gi"});
    merge(&mut allocatable, node.get("allocatable"));
    let image = |image: &Value| {
        let names = image.get("names").cloned().unwrap_or_else(|| json!([image["name"]]));
        json!({"names": names, "sizeBytes": image["sizeBytes"]})
    };
    let images: Vec<Value> = node["images"].as_array().into_iter().flatten().map(image).collect();
    json!({
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": node.get("taints"), "unschedulable": node.get("unschedulable")},
        "status": {"allocatable": allocatable, "images": images},
    })
}

fn merge(into: &mut Value, from: Option<&Value>) {
    for (key, value) in from.and_then(Value::as_object).into_iter().flatten() {
        into[key] = value.clone();
    }
}

fn simple_spec(pod: &Value) -> Value {
    let image = pod.get("image").cloned().unwrap_or(json!("img"));
    let resources = json!({"requests": pod.get("requests"), "limits": pod.get("limits")});
    json!({"containers": [{"name": "c", "image": image, "resources": resources, "ports": pod.get("ports")}]})
}

/// Applies a default of the API server: a missing request is set to the limit.
fn default_requests(container: &mut Value) {
    let limits = container["resources"]["limits"].as_object().cloned().unwrap_or_default();
    for (resource, limit) in limits {
        let requests = &mut container["resources"]["requests"];
        if requests.get(&resource).is_none() {
            requests[resource] = limit;
        }
    }
}

/// Applies a default of the API server: on the host network, a container's port is also its host port.
fn default_host_ports(container: &mut Value) {
    for port in container.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        if port.get("hostPort").is_none() {
            port["hostPort"] = port["containerPort"].clone();
        }
    }
}

impl RecordedPlacement {
    /// Creates the result of a pod that stayed unschedulable, with upstream's message.
    pub fn unschedulable(pod: &str, message: &str) -> Self {
        let outcomes = [("unschedulable".to_owned(), 1)].into();
        Self { pod: pod.to_owned(), outcomes, message: Some(message.to_owned()) }
    }

    /// Returns the nodes on which the pod was placed.
    fn nodes(&self) -> impl Iterator<Item = &str> {
        self.outcomes.keys().filter_map(|outcome| outcome.strip_prefix("node:"))
    }

    pub fn differences(&self, predicted: &SchedulingOutcome, modern: bool) -> Vec<String> {
        let mut differences = Vec::new();
        for outcome in self.outcomes.keys() {
            differences.extend(self.difference(outcome, predicted));
        }
        if let SchedulingOutcome::Placed(placement) = predicted
            && !modern
            && differences.is_empty()
        {
            let unseen: Vec<_> =
                placement.best.iter().filter(|node| self.nodes().all(|seen| *seen != ***node)).collect();
            if unseen.len() > 1 {
                differences
                    .push(format!("{}: {unseen:?} predicted as well as {:?}", self.pod, self.outcomes));
            }
        }
        if let (Some(message), SchedulingOutcome::Unschedulable(predicted)) = (&self.message, predicted) {
            differences.extend(self.differences_of_counts(message, predicted));
        }
        differences
    }

    fn difference(&self, outcome: &str, predicted: &SchedulingOutcome) -> Option<String> {
        let agrees = match (outcome.split_once(':'), predicted) {
            (None, SchedulingOutcome::Unschedulable(Unschedulable { preemption, .. })) => {
                outcome == "unschedulable" && !matches!(preemption, Preemption::Possible(_))
            }
            (Some(("node", node)), SchedulingOutcome::Placed(placement)) => {
                placement.best.iter().any(|best| **best == *node)
            }
            (
                Some(("nominated", text)),
                SchedulingOutcome::Unschedulable(Unschedulable { preemption, .. }),
            ) => {
                let (node, victims) = text.split_once(" victims:").unwrap_or((text, ""));
                let mut victims: Vec<&str> = victims.split(',').filter(|victim| !victim.is_empty()).collect();
                victims.sort_unstable();
                nominations(preemption).contains(&(node, victims))
            }
            _ => false,
        };
        (!agrees).then(|| format!("{}: seen {outcome}, predicted {}", self.pod, describe(predicted)))
    }

    /// Describes the differences between the predicted counts of reasons and those in upstream's message.
    pub fn differences_of_counts(&self, message: &str, predicted: &Unschedulable) -> Vec<String> {
        let (filters, preemption) = histograms(message);
        let mut ours: BTreeMap<String, usize> = BTreeMap::new();
        for (reason, count) in &predicted.reasons {
            *ours.entry(words(reason)).or_default() += count;
        }
        let mut differences = Vec::new();
        if filters != ours {
            differences.push(format!("{}: reasons {filters:?}, predicted {ours:?}", self.pod));
        }
        if let (Some(theirs), Preemption::Impossible { hindrances }) = (preemption, &predicted.preemption) {
            let ours: BTreeMap<String, usize> =
                hindrances.iter().map(|(why, count)| (hindered(why), *count)).collect();
            if theirs != ours {
                differences.push(format!("{}: preemption {theirs:?}, predicted {ours:?}", self.pod));
            }
        }
        differences
    }
}

/// Returns the possible preemptions, each with its node and its sorted victims: first the chosen preemption, then the
/// equally good ones.
fn nominations(preemption: &Preemption) -> Vec<(&str, Vec<&str>)> {
    let Preemption::Possible(candidate) = preemption else { return Vec::new() };
    let first = candidate.victims.iter().map(|pod| &pod.key);
    let ties = candidate.ties.iter().map(|(node, victims)| (&**node, sorted(victims.iter())));
    std::iter::once((&*candidate.node, sorted(first))).chain(ties).collect()
}

fn sorted<'k>(keys: impl Iterator<Item = &'k Key>) -> Vec<&'k str> {
    let mut names: Vec<&str> = keys.map(|key| key.name.as_str()).collect();
    names.sort_unstable();
    names
}

fn describe(predicted: &SchedulingOutcome) -> String {
    match predicted {
        SchedulingOutcome::Placed(placement) => {
            let ranking =
                placement.ranking.iter().map(|scored| format!("{} {:?}", scored.node, scored.parts));
            format!("{:?} by {:?}", placement.best, ranking.collect::<Vec<_>>())
        }
        SchedulingOutcome::Unschedulable(unschedulable) => match &unschedulable.preemption {
            Preemption::Possible(_) => format!("nominated {:?}", nominations(&unschedulable.preemption)),
            other => format!("unschedulable for {:?}, {other:?}", unschedulable.reasons),
        },
        SchedulingOutcome::NotTried(obstacle) => format!("not tried: {obstacle:?}"),
    }
}

/// Returns the counts of reasons in a message: the counts of the filters, and the counts of preemption if the message
/// has them.
fn histograms(message: &str) -> (BTreeMap<String, usize>, Option<BTreeMap<String, usize>>) {
    let (filters, preemption) = match message.split_once("preemption: ") {
        Some((filters, preemption)) => (filters, Some(preemption)),
        None => (message, None),
    };
    let filters = filters.trim_end().trim_end_matches("no new claims to deallocate,");
    // If all nodes are refused in a single step, the filters store no state for preemption. The message then ends with
    // "not found".
    let filters = filters.strip_suffix(". not found").unwrap_or(filters);
    let preemption = preemption.filter(|text| text.contains("nodes are available")).map(histogram);
    (histogram(filters), preemption)
}

/// Parses `0/4 nodes are available: 1 this, 3 that.` A part after a comma that does not begin with a number continues
/// the reason before it. A reason without a number applies to all nodes.
fn histogram(text: &str) -> BTreeMap<String, usize> {
    let all = text.split_once('/').and_then(|(_, rest)| rest.split_once(' ')?.0.parse().ok());
    let text = text.split_once("nodes are available: ").map_or(text, |(_, counts)| counts);
    let text = text.trim_end().trim_end_matches('.');
    let mut counts: Vec<(usize, String)> = Vec::new();
    for part in text.split(", ") {
        let count = part.split_once(' ').and_then(|(count, reason)| Some((count.parse().ok()?, reason)));
        match (count, counts.last_mut()) {
            (Some((count, reason)), _) => counts.push((count, reason.to_owned())),
            (None, Some((_, reason))) => *reason += &format!(", {part}"),
            (None, None) => counts.push((all.unwrap_or(1), part.to_owned())),
        }
    }
    counts.into_iter().fold(BTreeMap::new(), |mut all, (count, reason)| {
        let reason = if reason == "node(s) didn't satisfy plugin(s) [NodeAffinity]" {
            words(&Reason::NodeAffinity)
        } else {
            reason
        };
        *all.entry(reason).or_default() += count;
        all
    })
}

/// Returns upstream's text for the reason why a pod could not be placed.
fn words(reason: &Reason) -> String {
    match reason {
        Reason::TooManyPods => "Too many pods".into(),
        Reason::Insufficient(resource) => format!("Insufficient {resource}"),
        Reason::OtherNode => "node(s) didn't match the requested node name".into(),
        Reason::Cordoned => "node(s) were unschedulable".into(),
        Reason::Taint { key, value } => {
            format!("node(s) had taint {{{key}: {value}}}, that the pod didn't tolerate")
        }
        Reason::Taints => "node(s) had untolerated taint(s)".into(),
        Reason::NodeAffinity => "node(s) didn't match Pod's node affinity/selector".into(),
        Reason::NamesContradict => "pod affinity terms conflict".into(),
        Reason::Port => "node(s) didn't have free ports for the requested pod ports".into(),
        Reason::Disk => "node(s) had no available disk".into(),
        Reason::ClaimMissing(claim) => format!("persistentvolumeclaim \"{claim}\" not found"),
        Reason::ClaimNotCreated(claim) => {
            format!("waiting for ephemeral volume controller to create the persistentvolumeclaim \"{claim}\"")
        }
        Reason::ClaimLost { claim, volume } => {
            format!("persistentvolumeclaim \"{claim}\" bound to non-existent persistentvolume \"{volume}\"")
        }
        Reason::ClaimTerminating(claim) => format!("persistentvolumeclaim \"{claim}\" is being deleted"),
        Reason::ClaimNotOwned(claim) => format!("PVC {claim} was not created for the pod"),
        Reason::ClaimUnbound => "pod has unbound immediate PersistentVolumeClaims".into(),
        Reason::VolumeMissing(volume) => format!("persistentvolume \"{volume}\" not found"),
        Reason::ClaimInUse => {
            "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by \
             another pod"
                .into()
        }
        Reason::VolumeLimit => "node(s) exceed max volume count".into(),
        Reason::DriverMissing(driver) => format!("{driver} CSI driver is not installed on the node"),
        Reason::VolumeUnreachable => "node(s) didn't match PersistentVolume's node affinity".into(),
        Reason::NoVolume => "node(s) didn't find available persistent volumes to bind".into(),
        Reason::NoStorageSpace => "node(s) did not have enough free storage".into(),
        Reason::VolumeZone => "node(s) had no available volume zone".into(),
        Reason::Devices => "cannot allocate all claims".into(),
        Reason::DevicesElsewhere => "resourceclaim not available on the node".into(),
        Reason::DeviceClaimMissing(claim) => format!("resourceclaim.resource.k8s.io \"{claim}\" not found"),
        Reason::DeviceClaimNotCreated(entry) => format!("resource claim for {entry} was not created yet"),
        Reason::DeviceTemplateMissing(template) => format!("resource claim template {template} not found"),
        Reason::DeviceSelector(why) => format!("CEL runtime error: {why}"),
        Reason::DeviceClassMissing(class) => {
            format!("request references DeviceClass \"{class}\", which does not exist")
        }
        Reason::FeatureMissing(_) => "node(s) didn't match Pod's required features".into(),
        Reason::PodAffinity => "node(s) didn't match pod affinity rules".into(),
        Reason::PodAntiAffinity => "node(s) didn't match pod anti-affinity rules".into(),
        Reason::ExistingAntiAffinity => "node(s) didn't satisfy existing pods anti-affinity rules".into(),
        Reason::Spread => "node(s) didn't match pod topology spread constraints".into(),
        Reason::SpreadLabel => {
            "node(s) didn't match pod topology spread constraints (missing required label)".into()
        }
    }
}

fn hindered(hindrance: &Hindrance) -> String {
    match hindrance {
        Hindrance::NotHelpful => "Preemption is not helpful for scheduling".into(),
        Hindrance::NoVictims => "No preemption victims found for incoming pod".into(),
        Hindrance::StillRefused(reason) => words(reason),
    }
}
