//! The initial cluster: machines, workloads and running pods.

pub mod catalogue;
mod managed_fields;
pub mod nodes;
pub mod pods;
mod storage;
mod workloads;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use self::{
    catalogue::{CatalogueService, EvictionTolerance, NODE_AGENTS, NodeAgent, SERVICES, STATIC_PODS},
    nodes::{MAX_PODS, Machine},
    pods::{PodSeed, PodTemplate},
};
use super::random::RandomSource;
use kordon_time::{Span, Timestamp};

/// The version of the embedded cluster's kubelets and API server.
pub const VERSION: &str = "v1.36.3";

/// The initial objects. Equal inputs give equal objects.
#[derive(Debug)]
pub struct Seed {
    pub machines: Vec<Machine>,
    workloads: Vec<SeedWorkload>,
    /// The initial pods, sorted by workload.
    pods: Vec<PodSeed>,
    /// Namespaces with a ResourceQuota that allows exactly the pods that the namespace has.
    pub quotas: &'static [&'static str],
    random: RandomSource,
    epoch: Timestamp,
}

/// Size of the initial cluster.
#[derive(Clone, Copy, Debug)]
pub struct SeedSize {
    pub nodes: usize,
    pub pods: usize,
    /// Services in addition to the services that every cluster has.
    pub services: &'static [CatalogueService],
}

/// History of a machine before the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MachineHistory {
    Healthy,
    /// The node's last heartbeat was this long ago, and the controller has not noticed yet.
    DisconnectedFor(Span),
    /// The controller marked the node as Unknown, and tainted it, this long ago.
    UnknownFor(Span),
    /// The node has reported memory pressure for this long.
    MemoryPressureFor(Span),
}

/// State of a pod at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialPodState {
    Running,
    /// The pod's node became Unknown `since` before the start, and the pod was marked as not ready.
    NotReady {
        since: Span,
    },
    /// The pod was marked as not ready, and deleted `at` before the start. The disconnected kubelet does not know about
    /// the deletion.
    Evicted {
        since: Span,
        at: Span,
    },
    /// The pod was created `age` before the start, to replace an evicted pod.
    Replacement {
        age: Span,
    },
}

/// A workload of the initial cluster.
#[derive(Debug)]
pub struct SeedWorkload {
    pub namespace: String,
    pub name: String,
    pub owner: SeedOwner,
    /// Desired number of pods. For a node agent, this is the number of machines.
    pub replicas: usize,
    /// Labels in the selector that selects the workload's pods.
    pub labels: Value,
    /// The pod template in the direct owner of the pods.
    pub template: Value,
    /// The pod-template-hash; None unless the workload is a Deployment.
    hash: Option<String>,
}

#[derive(Clone, Debug)]
pub enum SeedOwner {
    Service(CatalogueService),
    Agent(NodeAgent),
    /// The kubelet owns the pods: they are static pods.
    Static,
}

impl Seed {
    /// Creates a cluster of this size. If there are enough pods, the cluster has node agents and a control plane.
    ///
    /// `histories` returns the histories of machines, each with the machine's index.
    pub fn new(
        size: SeedSize,
        histories: impl Fn(&[Machine]) -> Vec<(usize, MachineHistory)>,
        random: RandomSource,
        epoch: Timestamp,
    ) -> Self {
        let mut machines = Machine::all(size.nodes);
        for (index, history) in histories(&machines) {
            machines[index].history = history;
        }
        let workloads = workloads_for(&machines, size);
        let pods = InitialPlacement::new(&machines).all(&workloads);
        Self { machines, workloads, pods, quotas: &[], random, epoch }
    }

    /// Returns all objects, owners before their pods. Each object is generated when it is needed, because all of them
    /// together may not fit into memory.
    pub fn objects(&self) -> impl Iterator<Item = Value> {
        let (random, epoch) = (self.random, self.epoch);
        let namespaces: BTreeSet<&str> = self
            .workloads
            .iter()
            .map(|workload| workload.namespace.as_str())
            .chain(["default", "kube-system", "kube-public", "kube-node-lease"])
            .collect();
        (catalogue::PRIORITY_CLASSES
            .iter()
            .map(move |(name, value)| priority_class(name, *value, random, epoch)))
        .chain(namespaces.into_iter().map(move |name| namespace(name, random, epoch)))
        .chain(self.machines.iter().map(move |machine| nodes::node(machine, random, epoch)))
        .chain(self.machines.iter().map(move |machine| nodes::lease(machine, random, epoch)))
        .chain(self.workloads.iter().flat_map(move |workload| workloads::objects(workload, random, epoch)))
        .chain(self.storage_objects())
        .chain(self.quotas.iter().map(|namespace| self.quota(namespace)))
        .chain(self.pod_objects())
    }

    /// Returns a quota that allows exactly the pods of a namespace. Pods that are leaving do not count.
    fn quota(&self, namespace: &str) -> Value {
        let counts = |seed: &&PodSeed| {
            self.workloads[seed.workload].namespace == namespace
                && !matches!(seed.state, InitialPodState::Evicted { .. })
        };
        let hard = json!({"pods": self.pods.iter().filter(counts).count().to_string()});
        let name = format!("team-{namespace}");
        let mut metadata = cluster_metadata("ResourceQuota", &name, self.random, self.epoch);
        metadata["namespace"] = json!(namespace);
        json!({
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": metadata,
            "spec": {"hard": hard},
            "status": {"hard": hard, "used": hard},
        })
    }

    fn storage_objects(&self) -> impl Iterator<Item = Value> {
        let storage = storage::StorageSeed { random: self.random, epoch: self.epoch };
        let of_pods = self.pods.iter().flat_map(move |seed| {
            let machine = seed.machine.map(|index| &self.machines[index]);
            storage.of_pod(seed, &self.workloads[seed.workload], machine)
        });
        let nodes = self.machines.iter().map(move |machine| storage.csi_node(machine));
        storage.classes().into_iter().chain(nodes).chain(of_pods)
    }

    fn pod_objects(&self) -> impl Iterator<Item = Value> {
        let mut template: Option<(usize, PodTemplate)> = None;
        self.pods.iter().map(move |seed| {
            let workload = &self.workloads[seed.workload];
            if template.as_ref().is_none_or(|(of, _)| *of != seed.workload) {
                template = Some((seed.workload, PodTemplate::new(workload, self.random)));
            }
            let (_, template) = template.as_ref().expect("set above");
            let machine = seed.machine.map(|index| &self.machines[index]);
            template.pod(seed, workload, machine, self.random, self.epoch)
        })
    }
}

fn priority_class(name: &str, value: i64, random: RandomSource, epoch: Timestamp) -> Value {
    json!({
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": cluster_metadata("PriorityClass", name, random, epoch),
        "value": value,
        "preemptionPolicy": "PreemptLowerPriority",
    })
}

fn namespace(name: &str, random: RandomSource, epoch: Timestamp) -> Value {
    let mut metadata = cluster_metadata("Namespace", name, random, epoch);
    metadata["labels"] = json!({"kubernetes.io/metadata.name": name});
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": metadata,
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    })
}

fn cluster_metadata(kind: &str, name: &str, random: RandomSource, epoch: Timestamp) -> Value {
    json!({
        "name": name,
        "uid": workloads::object_uid(random, kind, "", name),
        "creationTimestamp": (epoch - Span::from_secs(90 * 86_400)).to_time(),
    })
}

impl SeedWorkload {
    fn service(service: &CatalogueService, copy: usize, replicas: usize) -> Self {
        let namespace = match (copy, service.namespace) {
            (0, namespace) | (_, namespace @ "kube-system") => namespace.to_owned(),
            (copy, namespace) => format!("{namespace}-{}", copy + 1),
        };
        let name = match (copy, service.namespace) {
            (1.., "kube-system") => format!("{}-{}", service.name, copy + 1),
            _ => service.name.to_owned(),
        };
        let labels = json!({"app.kubernetes.io/name": service.name, "app.kubernetes.io/instance": name});
        let owner = SeedOwner::Service(*service);
        let template = pods::service_template(service, &labels);
        let mut made = Self { namespace, name, owner, replicas, labels, template, hash: None };
        match service.kind {
            catalogue::CatalogueKind::Deployment => made.hash_template(),
            catalogue::CatalogueKind::Job => made.run_once(),
            catalogue::CatalogueKind::StatefulSet | catalogue::CatalogueKind::Bare => {}
        }
        made
    }

    fn agent(agent: &NodeAgent, machines: usize) -> Self {
        let labels = json!({"k8s-app": agent.name});
        Self {
            namespace: agent.namespace.to_owned(),
            name: agent.name.to_owned(),
            owner: SeedOwner::Agent(*agent),
            replicas: machines,
            template: pods::agent_template(agent, &labels),
            labels,
            hash: None,
        }
    }

    fn static_pod(name: &'static str, image: &'static str, machines: usize) -> Self {
        let agent = NodeAgent {
            name,
            namespace: "kube-system",
            image,
            cpu_milli: 100,
            memory_mib: 100,
            priority: Some("system-node-critical"),
        };
        let mut made = Self::agent(&agent, machines);
        made.owner = SeedOwner::Static;
        made.labels = json!({"component": name, "tier": "control-plane"});
        made.template["metadata"]["labels"] = made.labels.clone();
        made
    }

    fn hash_template(&mut self) {
        let hash = super::random::template_hash(&self.template);
        self.template["metadata"]["labels"]["pod-template-hash"] = json!(hash);
        self.hash = Some(hash);
    }

    fn run_once(&mut self) {
        let seconds = if self.name == "settlement" { "900" } else { "1500" };
        self.template["metadata"]["annotations"][pods::RUN_SECONDS] = json!(seconds);
        self.template["metadata"]["labels"]["batch.kubernetes.io/job-name"] = json!(self.name);
        self.template["metadata"]["labels"]["job-name"] = json!(self.name);
        self.template["spec"]["restartPolicy"] = json!("Never");
    }

    /// Returns the template as the Deployment has it: without the label `pod-template-hash`.
    fn bare_template(&self) -> Value {
        let mut template = self.template.clone();
        if let Some(labels) = template["metadata"]["labels"].as_object_mut() {
            labels.remove("pod-template-hash");
        }
        template
    }

    /// Returns the kind and apiVersion of the pods' owner; None if the pods have no owner.
    fn pod_owner_kind(&self) -> Option<(&'static str, &'static str)> {
        match &self.owner {
            SeedOwner::Static => None,
            SeedOwner::Agent(_) => Some(("DaemonSet", "apps/v1")),
            SeedOwner::Service(service) => match service.kind {
                catalogue::CatalogueKind::Deployment => Some(("ReplicaSet", "apps/v1")),
                catalogue::CatalogueKind::StatefulSet => Some(("StatefulSet", "apps/v1")),
                catalogue::CatalogueKind::Job => Some(("Job", "batch/v1")),
                catalogue::CatalogueKind::Bare => None,
            },
        }
    }

    fn pod_owner_name(&self) -> Option<String> {
        self.pod_owner_kind()?;
        Some(match &self.hash {
            Some(hash) => format!("{}-{hash}", self.name),
            None => self.name.clone(),
        })
    }

    fn pod_owner(&self, random: RandomSource) -> Option<Value> {
        let (kind, version) = self.pod_owner_kind()?;
        let name = self.pod_owner_name()?;
        Some(json!({
            "apiVersion": version, "kind": kind, "name": name, "controller": true, "blockOwnerDeletion": true,
            "uid": workloads::object_uid(random, kind, &self.namespace, &name),
        }))
    }

    /// CPU and memory requests of one pod, in thousandths of a core and MiB.
    fn requests(&self) -> (i64, i64) {
        match &self.owner {
            SeedOwner::Service(service) => (service.cpu_milli, service.memory_mib),
            SeedOwner::Agent(agent) => (agent.cpu_milli, agent.memory_mib),
            SeedOwner::Static => (100, 100),
        }
    }
}

/// Returns workloads for these machines that have `size.pods` pods in total.
fn workloads_for(machines: &[Machine], size: SeedSize) -> Vec<SeedWorkload> {
    let pods = size.pods;
    let control_planes = machines.iter().filter(|machine| machine.is_control_plane()).count();
    let mut made = Vec::new();
    let mut left = pods;
    if control_planes > 0 && left >= control_planes * STATIC_PODS.len() {
        left -= control_planes * STATIC_PODS.len();
        made.extend(
            STATIC_PODS.iter().map(|(name, image)| SeedWorkload::static_pod(name, image, control_planes)),
        );
    }
    // Node agents take up at most half of the pods, so that a small cluster also has other pods.
    for agent in NODE_AGENTS {
        if machines.is_empty()
            || machines.len() * (made.len() + 1) > pods / 2 + control_planes * STATIC_PODS.len()
        {
            break;
        }
        left -= machines.len();
        made.push(SeedWorkload::agent(agent, machines.len()));
    }
    for service in size.services {
        let replicas = service.replicas.min(left);
        left -= replicas;
        made.push(SeedWorkload::service(service, 0, replicas));
    }
    made.extend(services_for(left));
    made
}

fn services_for(mut left: usize) -> Vec<SeedWorkload> {
    let one_round: usize = SERVICES.iter().map(|service| service.replicas).sum();
    // A larger cluster has more services, and its services have more replicas.
    let factor = (left as f64 / one_round as f64).sqrt().max(1.0).floor() as usize;
    let mut made = Vec::new();
    for copy in 0.. {
        for service in SERVICES {
            if left == 0 {
                return made;
            }
            let wanted = match service.kind {
                catalogue::CatalogueKind::Deployment if service.replicas > 1 => service.replicas * factor,
                _ => service.replicas,
            };
            let replicas = wanted.min(left);
            left -= replicas;
            made.push(SeedWorkload::service(service, copy, replicas));
        }
    }
    made
}

/// Assigns the initial pods to machines.
struct InitialPlacement<'a> {
    machines: &'a [Machine],
    free_cpu: Vec<i64>,
    free_memory: Vec<i64>,
    taken: Vec<usize>,
    /// The machine at which the search for a pod's machine starts next.
    cursor: usize,
}

/// Maximum number of machines that are compared for one pod.
const MAX_CANDIDATES: usize = 30;

impl<'a> InitialPlacement<'a> {
    fn new(machines: &'a [Machine]) -> Self {
        Self {
            machines,
            free_cpu: machines.iter().map(Machine::allocatable_cpu_milli).collect(),
            free_memory: machines.iter().map(Machine::allocatable_memory_mib).collect(),
            taken: vec![0; machines.len()],
            cursor: 0,
        }
    }

    fn all(mut self, workloads: &[SeedWorkload]) -> Vec<PodSeed> {
        let mut pods = Vec::new();
        for (index, workload) in workloads.iter().enumerate() {
            match &workload.owner {
                SeedOwner::Agent(_) => self.on_each(index, workload, |_| true, &mut pods),
                SeedOwner::Static => self.on_each(index, workload, Machine::is_control_plane, &mut pods),
                SeedOwner::Service(service) => self.spread(index, workload, service, &mut pods),
            }
        }
        pods
    }

    fn on_each(
        &mut self,
        index: usize,
        workload: &SeedWorkload,
        wanted: impl Fn(&Machine) -> bool,
        pods: &mut Vec<PodSeed>,
    ) {
        let machines = self.machines;
        for (ordinal, (at, machine)) in machines.iter().enumerate().filter(|(_, m)| wanted(m)).enumerate() {
            let slot = self.take(at, workload);
            let state = match machine.history {
                MachineHistory::UnknownFor(since) => InitialPodState::NotReady { since },
                MachineHistory::Healthy
                | MachineHistory::DisconnectedFor(_)
                | MachineHistory::MemoryPressureFor(_) => InitialPodState::Running,
            };
            pods.push(PodSeed { workload: index, ordinal, machine: Some(at), slot, state });
        }
    }

    fn spread(
        &mut self,
        index: usize,
        workload: &SeedWorkload,
        service: &CatalogueService,
        pods: &mut Vec<PodSeed>,
    ) {
        let mut zones = [0_usize; nodes::ZONES.len()];
        let mut used = std::collections::BTreeMap::new();
        let mut spare = workload.replicas;
        for ordinal in 0..workload.replicas {
            let Some(at) = self.choose(workload, service, &zones, &used, Eligible::All) else {
                pods.push(PodSeed {
                    workload: index,
                    ordinal,
                    machine: None,
                    slot: 0,
                    state: InitialPodState::Running,
                });
                continue;
            };
            zones[self.machines[at].zone] += 1;
            *used.entry(at).or_insert(0) += 1;
            let slot = self.take(at, workload);
            let state = initial_state(self.machines[at].history, service);
            pods.push(PodSeed { workload: index, ordinal, machine: Some(at), slot, state });
            let InitialPodState::Evicted { at: deleted, .. } = state else { continue };
            if service.kind != catalogue::CatalogueKind::Deployment {
                continue;
            }
            let Some(at) = self.choose(workload, service, &zones, &used, Eligible::Healthy) else { continue };
            *used.entry(at).or_insert(0) += 1;
            let slot = self.take(at, workload);
            let state = InitialPodState::Replacement { age: deleted - Span::from_secs(1) };
            pods.push(PodSeed { workload: index, ordinal: spare, machine: Some(at), slot, state });
            spare += 1;
        }
    }

    /// Returns the best machine for a pod. It is in the zone with the fewest pods of the workload. Among the machines
    /// of this zone, it has the fewest pods of the workload; among equal ones, the fewest pods overall.
    fn choose(
        &mut self,
        workload: &SeedWorkload,
        service: &CatalogueService,
        zones: &[usize],
        used: &std::collections::BTreeMap<usize, usize>,
        eligible: Eligible,
    ) -> Option<usize> {
        let count = self.machines.len();
        let (cpu, memory) = workload.requests();
        let fits = |at: &usize| {
            let machine = &self.machines[*at];
            !machine.is_control_plane()
                && service.pool.is_none_or(|pool| machine.pool.name == pool)
                && self.free_cpu[*at] >= cpu
                && self.free_memory[*at] >= memory
                && self.taken[*at] < MAX_PODS as usize
                && (eligible == Eligible::All || machine.history == MachineHistory::Healthy)
        };
        let chosen = (0..count)
            .map(|offset| (self.cursor + offset) % count)
            .filter(fits)
            .take(MAX_CANDIDATES)
            .min_by_key(|at| {
                let here = used.get(at).copied().unwrap_or(0);
                (zones[self.machines[*at].zone], here, self.taken[*at])
            });
        self.cursor = if count == 0 { 0 } else { (self.cursor + MAX_CANDIDATES / 2) % count };
        chosen
    }

    fn take(&mut self, at: usize, workload: &SeedWorkload) -> usize {
        let (cpu, memory) = workload.requests();
        self.free_cpu[at] -= cpu;
        self.free_memory[at] -= memory;
        self.taken[at] += 1;
        self.taken[at]
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Eligible {
    All,
    /// Only healthy machines can get the pod.
    Healthy,
}

fn initial_state(history: MachineHistory, service: &CatalogueService) -> InitialPodState {
    let MachineHistory::UnknownFor(since) = history else { return InitialPodState::Running };
    let tolerance = match service.tolerance {
        EvictionTolerance::Unlimited => return InitialPodState::NotReady { since },
        EvictionTolerance::Default => Span::from_secs(300),
        EvictionTolerance::Seconds(seconds) => Span::from_secs(seconds),
    };
    if tolerance < since {
        InitialPodState::Evicted { since, at: since - tolerance }
    } else {
        InitialPodState::NotReady { since }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_has_the_nodes_and_pods_that_were_asked_for() {
        for (nodes, pods) in [(24, 180), (1, 10), (3, 30), (190, 1500), (300, 9000)] {
            let seed = seed(nodes, pods, 1);
            assert_eq!(count(&seed, "Node"), nodes);
            assert_eq!(count(&seed, "Lease"), nodes);
            assert_eq!(count(&seed, "Pod"), pods, "{nodes} nodes");
        }
    }

    #[test]
    fn a_seed_always_gives_the_same_objects_and_another_seed_others() {
        let all = |number| seed(24, 180, number).objects().map(|o| o.to_string()).collect::<Vec<_>>();
        assert_eq!(all(5), all(5));
        assert_ne!(all(5), all(6));
    }

    #[test]
    fn no_two_objects_share_a_name_or_a_uid() {
        let seed = seed(60, 4000, 3);
        let mut names = BTreeSet::new();
        let mut uids = BTreeSet::new();
        for object in seed.objects() {
            let metadata = &object["metadata"];
            let uid = metadata["uid"].as_str().expect("a uid").to_owned();
            let name = format!("{} {} {}", object["kind"], metadata["namespace"], metadata["name"]);
            assert!(names.insert(name.clone()), "{name} twice");
            assert!(uids.insert(uid.clone()), "{uid} twice");
        }
    }

    #[test]
    fn pods_are_placed_where_they_fit() {
        let seed = seed(24, 180, 1);
        for pod in seed.objects().filter(|o| o["kind"] == "Pod") {
            assert!(pod["spec"]["nodeName"].is_string(), "{} waits", pod["metadata"]["name"]);
            if let Some(pool) = pod.pointer("/spec/nodeSelector/pool") {
                let node = pod["spec"]["nodeName"].as_str().expect("bound");
                assert!(node.starts_with(pool.as_str().expect("text")), "{node} is not of pool {pool}");
            }
        }
    }

    #[test]
    fn a_pod_without_a_node_is_as_old_as_its_wait() {
        let seed = seed(3, 900, 1);
        let waits = |object: &Value| object["kind"] == "Pod" && object["spec"]["nodeName"].is_null();
        let created: BTreeSet<String> = seed
            .objects()
            .filter(waits)
            .map(|pod| pod["metadata"]["creationTimestamp"].to_string())
            .collect();
        assert_eq!(created, [json!(seed.epoch.to_time()).to_string()].into());
    }

    #[test]
    fn a_pod_is_as_large_as_real_ones() {
        let sizes: Vec<usize> =
            seed(24, 180, 1).objects().filter(|o| o["kind"] == "Pod").map(|o| o.to_string().len()).collect();
        let services = sizes.iter().filter(|size| **size > 5000).count();
        assert!(services >= 90, "{services} of {} pods are large", sizes.len());
        let mean = sizes.iter().filter(|size| **size > 5000).sum::<usize>() / services;
        assert!((6000..9000).contains(&mean), "{mean} bytes");
    }

    #[test]
    fn an_unknown_node_has_its_taints_and_the_impatient_pods_are_already_leaving() {
        let since = Span::from_secs(240);
        let unknown = |machines: &[Machine]| {
            let at = machines.iter().position(|m| m.name == "general-1a-02").expect("there are two");
            vec![(at, MachineHistory::UnknownFor(since))]
        };
        let epoch = Timestamp::from_secs(1_800_000_000);
        let seed = Seed::new(size(24, 180), unknown, RandomSource::new(1), epoch);
        let objects: Vec<Value> = seed.objects().collect();
        let node = objects.iter().find(|o| o["kind"] == "Node" && o["metadata"]["name"] == "general-1a-02");
        let taints = node.expect("named above")["spec"]["taints"].as_array().expect("tainted").clone();
        assert!(taints.iter().all(|t| t["timeAdded"] == (epoch - since).to_time()));
        let here = |o: &&Value| o["kind"] == "Pod" && o["spec"]["nodeName"] == "general-1a-02";
        let pods: Vec<&Value> = objects.iter().filter(here).collect();
        assert!(pods.iter().all(|p| ready(p) == "False"));
        let leaving: Vec<&&Value> =
            pods.iter().filter(|p| p["metadata"]["deletionTimestamp"].is_string()).collect();
        let staying = pods.len() - leaving.len();
        assert!(
            !leaving.is_empty() && staying > leaving.len(),
            "{} leaving, {staying} staying",
            leaving.len()
        );
        for pod in leaving {
            let seconds = pod["spec"]["tolerations"][0]["tolerationSeconds"].as_i64().expect("impatient");
            assert!(seconds < 240);
        }
    }

    fn ready(pod: &Value) -> &str {
        let conditions = pod["status"]["conditions"].as_array().expect("conditions");
        let ready = conditions.iter().find(|c| c["type"] == "Ready").expect("a Ready condition");
        ready["status"].as_str().expect("text")
    }

    fn seed(nodes: usize, pods: usize, number: u64) -> Seed {
        let epoch = Timestamp::from_secs(1_800_000_000);
        Seed::new(size(nodes, pods), |_| Vec::new(), RandomSource::new(number), epoch)
    }

    fn size(nodes: usize, pods: usize) -> SeedSize {
        SeedSize { nodes, pods, services: &[] }
    }

    fn count(seed: &Seed, kind: &str) -> usize {
        seed.objects().filter(|object| object["kind"] == kind).count()
    }
}
