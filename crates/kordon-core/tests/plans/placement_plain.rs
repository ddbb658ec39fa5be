//! Placement compared with a plain evaluation of the specification (docs/upstream/placement-and-pressure.md#2 and #3):
//! each node on its own, each pod counted again, nothing shared or prepared. Clusters are random, and all of their
//! nodes are ranked.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use fastrand::Rng;
use kordon_core::{
    cluster::{
        Change, Cluster, DeviceChange, Image, Key, Name, Namespace, Node, NodeName, ObjectEvent, Phase, Pod,
        Requests, Requirement, Resources, SchedulingSpec, Selector, SelectorOperator, Taint, TaintEffect,
        Termination, Toleration, TolerationOperator,
        scheduling::{
            HostPort, NodeOperator, NodeRequirement, NodeTerm, PodTerm, PodTerms, SpreadConstraint,
        },
    },
    engine::ServerVersion,
    placement::{SchedulingOutcome, SchedulingRequest, Snapshot},
};
use kordon_time::{ClusterTime, Span, Timestamp};

const HOSTNAME: &str = "kubernetes.io/hostname";
const ZONE: &str = "topology.kubernetes.io/zone";
const MIB: i64 = 1 << 20;
/// The maximum number of nodes in a ranking.
const NODES: usize = 10;

#[test]
fn each_pod_is_placed_as_a_plain_evaluation_says() {
    let (mut placed, mut refused) = (0, 0);
    for seed in 0..400 {
        let chance = &mut Rng::with_seed(seed);
        let nodes: Vec<Node> = (0..NODES).map(|number| random_node(chance, number)).collect();
        let pods: Vec<Arc<Pod>> = (0..chance.usize(0..40))
            .map(|number| {
                let mut pod = random_pod(chance, number);
                pod.node = Some(nodes[chance.usize(0..NODES)].name.clone());
                pod.phase = Phase::Running;
                Arc::new(pod)
            })
            .collect();
        let mut plain = Plain { nodes, pods };
        let cluster = plain.cluster();
        let mut snapshot = Snapshot::new(&cluster, ServerVersion::new(1, 36));
        for number in 0..12 {
            let pod = Arc::new(random_pod(chance, 100 + number));
            let mut request = SchedulingRequest::from_pod(&pod, &cluster);
            request.siblings = chance.bool().then(|| selecting(pod.labels.get("app").expect("each has it")));
            let expected = plain.ranking(&pod, request.siblings.as_ref());
            let found: BTreeMap<NodeName, (i64, [i64; 7])> = match snapshot.place(&request) {
                SchedulingOutcome::Placed(placement) => {
                    let most = placement.ranking.iter().map(|scored| scored.total).max();
                    let best = placement.ranking.iter().filter(|scored| Some(scored.total) == most);
                    assert!(
                        placement.best.iter().eq(best.map(|scored| &scored.node)),
                        "{seed}: {placement:?}"
                    );
                    assert_eq!(placement.feasible, placement.ranking.len(), "seed {seed}");
                    placement
                        .ranking
                        .into_iter()
                        .map(|scored| (scored.node, (scored.total, scored.parts)))
                        .collect()
                }
                SchedulingOutcome::Unschedulable(outcome) => {
                    assert_eq!(outcome.refusals.len(), NODES, "seed {seed}");
                    BTreeMap::new()
                }
                SchedulingOutcome::NotTried(obstacle) => panic!("{obstacle}"),
            };
            assert_eq!(found, expected, "pod {number} of seed {seed}: {pod:#?}\n{plain:#?}");
            match found.keys().nth(chance.usize(0..NODES)) {
                Some(node) => {
                    snapshot.add(pod.clone(), node);
                    plain.pods.push(Arc::new(Pod { node: Some(node.clone()), ..(*pod).clone() }));
                    placed += 1;
                }
                None => refused += usize::from(found.is_empty()),
            }
            if chance.u8(0..4) == 0 && !plain.pods.is_empty() {
                let gone = plain.pods.swap_remove(chance.usize(0..plain.pods.len()));
                let node = gone.node.as_ref().expect("it is on a node");
                assert!(snapshot.remove(&gone.key, node).is_some(), "seed {seed}");
            }
        }
    }
    assert!(placed > 500 && refused > 100, "{placed} placed and {refused} refused tell too little");
}

/// A cluster for the plain evaluation: nodes, and the pods on them.
#[derive(Debug)]
struct Plain {
    nodes: Vec<Node>,
    pods: Vec<Arc<Pod>>,
}

impl Plain {
    fn cluster(&self) -> Cluster {
        let mut cluster = Cluster::default();
        let mut apply = |change| cluster.apply(change, &mut Vec::new());
        self.nodes.iter().for_each(|node| apply(Change::Node(ObjectEvent::Applied(node.clone()))));
        self.pods.iter().for_each(|pod| apply(Change::Pod(ObjectEvent::Applied((**pod).clone()))));
        // The cluster is known to have no devices.
        apply(Change::Device(DeviceChange::Class(ObjectEvent::ListDone)));
        apply(Change::Device(DeviceChange::Claim(ObjectEvent::ListDone)));
        apply(Change::Device(DeviceChange::Slice(ObjectEvent::ListDone)));
        apply(Change::Device(DeviceChange::Rule(ObjectEvent::ListDone)));
        apply(Change::Device(DeviceChange::Template(ObjectEvent::ListDone)));
        cluster
    }

    /// Returns the feasible nodes with their total scores and the weighted scores of each scorer.
    fn ranking(&self, pod: &Pod, siblings: Option<&Selector>) -> BTreeMap<NodeName, (i64, [i64; 7])> {
        let feasible: Vec<&Node> = self.nodes.iter().filter(|node| self.is_feasible(pod, node)).collect();
        let mut parts = vec![[0; 7]; feasible.len()];
        if feasible.len() > 1 {
            let scores = [
                (1, feasible.iter().map(|node| self.least_allocated(pod, node)).collect()),
                (1, feasible.iter().map(|node| self.balanced_allocation(pod, node)).collect()),
                (3, taint_points(pod, &feasible)),
                (2, affinity_points(pod, &feasible)),
                (2, self.spread_points(pod, siblings, &feasible)),
                (2, self.pod_affinity_points(pod, &feasible)),
                (1, self.image_points(pod, &feasible)),
            ];
            for (scorer, (weight, points)) in scores.into_iter().enumerate() {
                parts.iter_mut().zip(points).for_each(|(parts, points)| parts[scorer] = weight * points);
            }
        }
        let named = |(node, parts): (&&Node, [i64; 7])| (node.name.clone(), (parts.iter().sum(), parts));
        feasible.iter().zip(parts).map(named).collect()
    }

    fn is_feasible(&self, pod: &Pod, node: &Node) -> bool {
        let cordon = Taint {
            key: "node.kubernetes.io/unschedulable".into(),
            effect: TaintEffect::NoSchedule,
            ..Taint::default()
        };
        let tolerates = |taint: &Taint| pod.tolerations.iter().any(|toleration| toleration.tolerates(taint));
        let excludes = |taint: &&Taint| taint.effect != TaintEffect::PreferNoSchedule;
        (!node.unschedulable || tolerates(&cordon))
            && node.taints.iter().filter(excludes).all(tolerates)
            && suits(&pod.scheduling, node)
            && self.has_ports(pod, node)
            && self.has_resources(pod, node)
            && pod
                .scheduling
                .spread
                .iter()
                .filter(|spread| spread.hard)
                .all(|spread| self.may_skew(pod, spread, node))
            && self.is_near(pod, node)
            && self.is_apart(pod, node)
    }

    fn on<'s>(&'s self, node: &'s Node) -> impl Iterator<Item = &'s Arc<Pod>> {
        self.pods.iter().filter(|pod| pod.node.as_ref() == Some(&node.name))
    }

    fn node_of(&self, pod: &Pod) -> &Node {
        self.nodes.iter().find(|node| Some(&node.name) == pod.node.as_ref()).expect("it is on a node")
    }

    fn has_ports(&self, pod: &Pod, node: &Node) -> bool {
        let used: Vec<&HostPort> = self.on(node).flat_map(|pod| &pod.scheduling.host_ports).collect();
        !pod.scheduling.host_ports.iter().any(|port| used.iter().any(|used| used.conflicts_with(port)))
    }

    fn has_resources(&self, pod: &Pod, node: &Node) -> bool {
        let fits = |name: &str, offered: i64| {
            let used: i64 = self.on(node).map(|pod| pod.resources.requests.of(name)).sum();
            let asked = pod.resources.requests.of(name);
            asked == 0 || asked <= offered - used
        };
        let extended = |name: &str| {
            node.extended.iter().find(|(other, _)| *other == *name).map_or(0, |(_, amount)| *amount)
        };
        self.on(node).count() < usize::try_from(node.allocatable.pods).expect("few")
            && fits("cpu", node.allocatable.cpu_milli)
            && fits("memory", node.allocatable.memory_bytes)
            && ["ephemeral-storage", "example.com/gpu"].into_iter().all(|name| fits(name, extended(name)))
    }

    /// Whether a required spread constraint is still satisfied if one more pod runs on this node.
    fn may_skew(&self, pod: &Pod, spread: &SpreadConstraint, node: &Node) -> bool {
        let Some(value) = node.label(&spread.topology_key) else { return false };
        let hard: Vec<&Name> = pod
            .scheduling
            .spread
            .iter()
            .filter(|spread| spread.hard)
            .map(|spread| &spread.topology_key)
            .collect();
        let counts = |node: &Node| {
            let tolerates = |taint: &Taint| {
                taint.effect == TaintEffect::PreferNoSchedule
                    || pod.tolerations.iter().any(|toleration| toleration.tolerates(taint))
            };
            hard.iter().all(|key| node.label(key).is_some())
                && (!spread.honours_affinity || suits(&pod.scheduling, node))
                && (!spread.honours_taints || node.taints.iter().all(tolerates))
        };
        let selector = spread.selector.as_ref().expect("ours have one");
        let domains: BTreeSet<&Name> = self
            .nodes
            .iter()
            .filter(|node| counts(node))
            .filter_map(|node| node.label(&spread.topology_key))
            .collect();
        let pods_in = |domain: &Name| {
            let is_counted = |other: &&Arc<Pod>| {
                let node = self.node_of(other);
                counts(node)
                    && node.label(&spread.topology_key) == Some(domain)
                    && other.key.namespace == pod.key.namespace
                    && other.termination.is_none()
                    && selector.matches(&other.labels)
            };
            i64::try_from(self.pods.iter().filter(is_counted).count()).expect("few")
        };
        let Some(mut least) = domains.iter().map(|domain| pods_in(domain)).min() else { return true };
        if domains.len() < usize::try_from(spread.min_domains).expect("positive") {
            least = 0;
        }
        pods_in(value) + i64::from(selector.matches(&pod.labels)) - least <= i64::from(spread.max_skew)
    }

    /// Whether a node satisfies the pod's required affinity.
    fn is_near(&self, pod: &Pod, node: &Node) -> bool {
        let terms = &pod.scheduling.pod_affinity.required;
        let matches_all = |other: &Pod| terms.iter().all(|term| selects(term, &pod.key.namespace, other));
        let near: Vec<&Node> =
            self.pods.iter().filter(|other| matches_all(other)).map(|other| self.node_of(other)).collect();
        let has_keys = terms.iter().all(|term| node.label(&term.topology_key).is_some());
        let is_near = |term: &PodTerm| near.iter().any(|other| share(node, other, &term.topology_key));
        // For affinity, a pod on a node without the topology label does not count.
        let counts = |term: &PodTerm| near.iter().any(|node| node.label(&term.topology_key).is_some());
        let is_first = !terms.iter().any(counts) && matches_all(pod);
        has_keys && (terms.iter().all(is_near) || is_first)
    }

    /// Whether a node satisfies the pod's required anti-affinity to other pods, and the required anti-affinity of other
    /// pods to this pod.
    fn is_apart(&self, pod: &Pod, node: &Node) -> bool {
        let refuses = |one: &Pod, other: &Pod, there: &Node| {
            one.scheduling.pod_anti_affinity.required.iter().any(|term| {
                selects(term, &one.key.namespace, other) && share(node, there, &term.topology_key)
            })
        };
        !self.pods.iter().any(|other| {
            let there = self.node_of(other);
            refuses(pod, other, there) || refuses(other, pod, there)
        })
    }

    fn least_allocated(&self, pod: &Pod, node: &Node) -> i64 {
        let assumed = |requests: &Requests| (requests.assumed_cpu_milli, requests.assumed_memory_bytes);
        let pods = self.on(node).map(|pod| &**pod).chain([pod]).map(|pod| assumed(&pod.resources.requests));
        let (cpu, memory) = pods.fold((0, 0), |sum, pod| (sum.0 + pod.0, sum.1 + pod.1));
        let free =
            |used: i64, offered: i64| if used > offered { 0 } else { (offered - used) * 100 / offered };
        (free(cpu, node.allocatable.cpu_milli) + free(memory, node.allocatable.memory_bytes)) / 2
    }

    fn balanced_allocation(&self, pod: &Pod, node: &Node) -> i64 {
        let requests = &pod.resources.requests;
        if requests.cpu_milli == 0 && requests.memory_bytes == 0 {
            return 0;
        }
        let balance = |more: Option<&Pod>| {
            let pods = || self.on(node).map(|pod| &**pod).chain(more).map(|pod| &pod.resources.requests);
            let share = |used: i64, offered: i64| (used as f64 / offered as f64).min(1.0);
            let cpu = share(pods().map(|pod| pod.cpu_milli).sum(), node.allocatable.cpu_milli);
            let memory = share(pods().map(|pod| pod.memory_bytes).sum(), node.allocatable.memory_bytes);
            ((1.0 - ((cpu - memory) / 2.0).abs()) * 100.0) as i64
        };
        50 + (50 + balance(Some(pod)) - balance(None)) / 2
    }

    fn spread_points(&self, pod: &Pod, siblings: Option<&Selector>, feasible: &[&Node]) -> Vec<i64> {
        let own = &pod.scheduling.spread;
        let soft: Vec<(&str, i32, &Selector, bool)> = match siblings {
            _ if !own.is_empty() => own
                .iter()
                .filter(|spread| !spread.hard)
                .map(|spread| {
                    let selector = spread.selector.as_ref().expect("ours have one");
                    (&*spread.topology_key, spread.max_skew, selector, spread.honours_taints)
                })
                .collect(),
            Some(siblings) => {
                [(HOSTNAME, 3), (ZONE, 5)].map(|(key, skew)| (key, skew, siblings, false)).into()
            }
            None => Vec::new(),
        };
        if soft.is_empty() {
            return vec![0; feasible.len()];
        }
        let has_all = |node: &Node| own.is_empty() || soft.iter().all(|(key, ..)| node.label(key).is_some());
        let scored: Vec<&Node> = feasible.iter().copied().filter(|node| has_all(node)).collect();
        let raw = |node: &Node| {
            let mut sum = 0.0;
            for (key, max_skew, selector, honours_taints) in &soft {
                let Some(value) = node.label(key) else { continue };
                let is_hostname = *key == HOSTNAME;
                let values: BTreeSet<Option<&Name>> = scored.iter().map(|node| node.label(key)).collect();
                let domains = if is_hostname { scored.len() } else { values.len() };
                let tolerates = |taint: &Taint| {
                    taint.effect == TaintEffect::PreferNoSchedule
                        || pod.tolerations.iter().any(|toleration| toleration.tolerates(taint))
                };
                let counts = |other: &&Arc<Pod>| {
                    let there = self.node_of(other);
                    there.label(key) == Some(value)
                        && (is_hostname
                            || (has_all(there)
                                && suits(&pod.scheduling, there)
                                && (!honours_taints || there.taints.iter().all(tolerates))))
                        && other.key.namespace == pod.key.namespace
                        && other.termination.is_none()
                        && selector.matches(&other.labels)
                };
                let pods = self.pods.iter().filter(counts).count();
                sum += pods as f64 * ((domains + 2) as f64).ln() + f64::from(max_skew - 1);
            }
            sum.round() as i64
        };
        let raws: Vec<i64> = scored.iter().map(|node| raw(node)).collect();
        let (least, most) = (raws.iter().min().copied(), raws.iter().max().copied());
        let points = |node: &&Node| match (least, most) {
            _ if !has_all(node) => 0,
            (Some(least), Some(most)) if most > 0 => 100 * (most + least - raw(node)) / most,
            _ => 100,
        };
        feasible.iter().map(points).collect()
    }

    fn pod_affinity_points(&self, pod: &Pod, feasible: &[&Node]) -> Vec<i64> {
        let preferred = |pod: &Pod| -> Vec<(i64, PodTerm)> {
            let near = pod.scheduling.pod_affinity.preferred.iter().map(|(weight, term)| (*weight, term));
            let apart =
                pod.scheduling.pod_anti_affinity.preferred.iter().map(|(weight, term)| (-*weight, term));
            near.chain(apart).map(|(weight, term)| (i64::from(weight), term.clone())).collect()
        };
        let raw = |node: &&Node| {
            let mut sum = 0;
            for other in &self.pods {
                let there = self.node_of(other);
                let required = other.scheduling.pod_affinity.required.iter().map(|term| (1, term.clone()));
                let own =
                    preferred(pod).into_iter().filter(|(_, term)| selects(term, &pod.key.namespace, other));
                let theirs = preferred(other).into_iter().chain(required);
                let theirs = theirs.filter(|(_, term)| selects(term, &other.key.namespace, pod));
                let near = own.chain(theirs).filter(|(_, term)| share(node, there, &term.topology_key));
                sum += near.map(|(weight, _)| weight).sum::<i64>();
            }
            sum
        };
        let raws: Vec<i64> = feasible.iter().map(raw).collect();
        let (least, most) =
            (raws.iter().min().copied().unwrap_or(0), raws.iter().max().copied().unwrap_or(0));
        let range = (most - least) as f64;
        let points =
            |raw: i64| if most == least { 0 } else { (100.0 * ((raw - least) as f64 / range)) as i64 };
        raws.into_iter().map(points).collect()
    }

    fn image_points(&self, pod: &Pod, feasible: &[&Node]) -> Vec<i64> {
        let has = |node: &Node, name: &Name| node.images.iter().any(|image| image.names.contains(name));
        let bytes = |node: &Node, name: &Name| {
            if !has(node, name) {
                return 0;
            }
            let holders: Vec<&Node> = self.nodes.iter().filter(|node| has(node, name)).collect();
            let size = holders[0]
                .images
                .iter()
                .find(|image| image.names.contains(name))
                .map_or(0, |image| image.size_bytes);
            (size as f64 * (holders.len() as f64 / self.nodes.len() as f64)) as i64
        };
        let images = &pod.scheduling.images;
        let most = 1000 * MIB * i64::try_from(images.len()).expect("few");
        let points = |node: &&Node| {
            let sum: i64 = images.iter().map(|image| bytes(node, image)).sum();
            100 * (sum.clamp(23 * MIB, most.max(23 * MIB + 1)) - 23 * MIB)
                / (most.max(23 * MIB + 1) - 23 * MIB)
        };
        feasible.iter().map(points).collect()
    }
}

/// Whether a node matches the nodeSelector and the required node affinity.
fn suits(spec: &SchedulingSpec, node: &Node) -> bool {
    spec.node_selector.iter().all(|(key, value)| node.label(key) == Some(value))
        && spec.node_affinity.as_ref().is_none_or(|terms| terms.iter().any(|term| matches(term, node)))
}

fn matches(term: &NodeTerm, node: &Node) -> bool {
    term.expressions.iter().all(|requirement| match node.label(&requirement.key) {
        Some(value) => requirement.operator.holds(value),
        None => requirement.operator.holds_without(),
    })
}

/// Whether an affinity term selects `pod`. The term belongs to a pod in the namespace `home`.
fn selects(term: &PodTerm, home: &Namespace, pod: &Pod) -> bool {
    let is_in_scope = if term.namespaces.is_empty() {
        *home == pod.key.namespace
    } else {
        term.namespaces.contains(&pod.key.namespace)
    };
    is_in_scope && term.selector.as_ref().is_some_and(|selector| selector.matches(&pod.labels))
}

/// Whether two nodes are in the same topology domain.
fn share(node: &Node, other: &Node, key: &str) -> bool {
    node.label(key).is_some_and(|value| other.label(key) == Some(value))
}

fn taint_points(pod: &Pod, feasible: &[&Node]) -> Vec<i64> {
    let untolerated = |taint: &&Taint| {
        taint.effect == TaintEffect::PreferNoSchedule
            && !pod.tolerations.iter().any(|toleration| toleration.tolerates(taint))
    };
    let raws: Vec<i64> = feasible
        .iter()
        .map(|node| i64::try_from(node.taints.iter().filter(untolerated).count()).expect("few"))
        .collect();
    let most = raws.iter().max().copied().unwrap_or(0);
    raws.into_iter().map(|raw| if most == 0 { 100 } else { 100 - 100 * raw / most }).collect()
}

fn affinity_points(pod: &Pod, feasible: &[&Node]) -> Vec<i64> {
    let raw = |node: &&Node| {
        let preferred = pod.scheduling.preferred_nodes.iter().filter(|(_, term)| matches(term, node));
        preferred.map(|(weight, _)| i64::from(*weight)).sum()
    };
    let raws: Vec<i64> = feasible.iter().map(raw).collect();
    let most = raws.iter().max().copied().unwrap_or(0);
    raws.into_iter().map(|raw| if most == 0 { 0 } else { 100 * raw / most }).collect()
}

fn random_node(chance: &mut Rng, number: usize) -> Node {
    // The order of the nodes' names differs from the order of their numbers.
    let name = format!("n{}", (number * 7 + 3) % NODES);
    let mut labels: BTreeMap<Name, Name> = BTreeMap::new();
    labels.insert("generation".into(), chance.u8(1..4).to_string().into());
    if chance.u8(0..8) > 0 {
        labels.insert(HOSTNAME.into(), name.as_str().into());
    }
    if chance.u8(0..8) > 0 {
        labels.insert(ZONE.into(), ["a", "b", "c"][chance.usize(0..3)].into());
    }
    let taint =
        |chance: &mut Rng, effect| Taint { key: one_of(chance, &["t", "u"]), effect, ..Taint::default() };
    let mut taints = Vec::new();
    for effect in [TaintEffect::NoSchedule, TaintEffect::PreferNoSchedule, TaintEffect::PreferNoSchedule] {
        if chance.u8(0..8) == 0 {
            taints.push(taint(chance, effect));
        }
    }
    let images = ["red", "blue"]
        .into_iter()
        .filter(|_| chance.bool())
        .map(|name| Image {
            names: [name].into_iter().collect(),
            size_bytes: if name == "red" { 700 * MIB } else { 90 * MIB },
        })
        .collect();
    Node {
        name: name.as_str().into(),
        labels: labels.into_iter().collect(),
        unschedulable: chance.u8(0..10) == 0,
        images,
        taints: taints.into(),
        allocatable: Resources {
            cpu_milli: chance.i64(1_000..8_000),
            memory_bytes: chance.i64(1_000..8_000) * MIB,
            pods: chance.i64(4..12),
        },
        extended: match chance.u8(0..3) {
            0 => [("ephemeral-storage".into(), 40), ("example.com/gpu".into(), 2)].into(),
            _ => [("ephemeral-storage".into(), 100)].into(),
        },
        ..Node::default()
    }
}

fn random_pod(chance: &mut Rng, number: usize) -> Pod {
    let app = one_of(chance, &["red", "blue", "green"]);
    let namespace: Name = one_of(chance, &["x", "y"]);
    let labels: BTreeMap<Name, Name> = [("app".into(), app)].into();
    let tolerations =
        ["t", "u", "node.kubernetes.io/unschedulable"].into_iter().filter(|_| chance.u8(0..6) == 0);
    let tolerations = tolerations.map(|key| Toleration {
        key: key.into(),
        operator: TolerationOperator::Exists,
        ..Toleration::default()
    });
    let tolerations = tolerations.collect();
    let deadline = ClusterTime::new(Timestamp::from_secs(1_800_000_000));
    Pod {
        key: Key::new(&namespace, &format!("pod-{number}")),
        labels: labels.into_iter().collect(),
        tolerations,
        resources: Arc::new(random_requests(chance).into()),
        scheduling: Arc::new(random_spec(chance)),
        termination: (chance.u8(0..8) == 0)
            .then(|| Termination { deadline, grace: Span::from_secs(30) }.into()),
        ..Pod::default()
    }
}

fn random_requests(chance: &mut Rng) -> Requests {
    let (cpu_milli, memory_bytes) = (chance.i64(0..900), chance.i64(0..900) * MIB);
    let mut requests = Requests {
        cpu_milli,
        memory_bytes,
        assumed_cpu_milli: cpu_milli.max(100),
        assumed_memory_bytes: memory_bytes.max(200 * MIB),
        ..Requests::default()
    };
    if chance.u8(0..5) == 0 {
        (requests.cpu_milli, requests.memory_bytes) = (0, 0);
    }
    if chance.u8(0..4) == 0 {
        requests.ephemeral_bytes = chance.i64(0..50);
        requests.scalars = [("example.com/gpu".into(), chance.i64(0..2))].into();
    }
    requests
}

fn random_spec(chance: &mut Rng) -> SchedulingSpec {
    let mut spec =
        SchedulingSpec { images: [one_of(chance, &["red", "blue"])].into(), ..SchedulingSpec::default() };
    if chance.u8(0..6) == 0 {
        let (ip, protocol) = (Name::default(), "TCP".into());
        spec.host_ports = [HostPort { ip, protocol, port: chance.i32(80..82) }].into();
    }
    if chance.u8(0..6) == 0 {
        spec.node_selector = [("generation".into(), one_of(chance, &["1", "2"]))].into();
    }
    if chance.u8(0..4) == 0 {
        spec.node_affinity = Some((0..chance.usize(1..3)).map(|_| node_term(chance)).collect());
    }
    spec.preferred_nodes = (0..chance.usize(0..3)).map(|_| (chance.i32(1..100), node_term(chance))).collect();
    for terms in [&mut spec.pod_affinity, &mut spec.pod_anti_affinity] {
        let required = if chance.u8(0..6) == 0 { chance.usize(1..3) } else { 0 };
        let preferred = if chance.u8(0..4) == 0 { chance.usize(1..3) } else { 0 };
        *terms = PodTerms {
            required: (0..required).map(|_| pod_term(chance)).collect(),
            preferred: (0..preferred).map(|_| (chance.i32(1..100), pod_term(chance))).collect(),
        };
    }
    if chance.u8(0..3) == 0 {
        spec.spread = (0..chance.usize(1..4)).map(|_| random_spread(chance)).collect();
    }
    spec
}

fn node_term(chance: &mut Rng) -> NodeTerm {
    let generation = |chance: &mut Rng| -> Box<[Name]> { [one_of(chance, &["1", "2", "3"])].into() };
    let (key, operator) = match chance.u8(0..5) {
        0 => ("generation", NodeOperator::In(generation(chance))),
        1 => ("generation", NodeOperator::Gt(1)),
        2 => (ZONE, NodeOperator::NotIn(["a".into()].into())),
        3 => (ZONE, NodeOperator::Exists),
        _ => ("generation", NodeOperator::NotIn(generation(chance))),
    };
    NodeTerm { expressions: [NodeRequirement { key: key.into(), operator }].into(), ..NodeTerm::default() }
}

fn pod_term(chance: &mut Rng) -> PodTerm {
    let namespaces: Box<[Namespace]> = match chance.u8(0..4) {
        0 => ["x".into(), "y".into()].into(),
        _ => Box::default(),
    };
    PodTerm {
        selector: Some(selecting(&one_of(chance, &["red", "blue", "green"]))),
        topology_key: one_of(chance, &[HOSTNAME, ZONE, "generation"]),
        namespaces,
        namespace_selector: None,
    }
}

fn random_spread(chance: &mut Rng) -> SpreadConstraint {
    SpreadConstraint {
        max_skew: chance.i32(1..4),
        topology_key: one_of(chance, &[HOSTNAME, ZONE, "generation"]),
        hard: chance.bool(),
        selector: Some(selecting(&one_of(chance, &["red", "blue", "green"]))),
        match_label_keys: Box::default(),
        min_domains: chance.i32(1..4),
        // The plain evaluation supports only spread constraints that honour node affinity.
        honours_affinity: true,
        honours_taints: chance.bool(),
    }
}

fn selecting(app: &Name) -> Selector {
    let operator = SelectorOperator::In(vec![app.clone()]);
    Selector { requirements: vec![Requirement { key: "app".into(), operator }] }
}

fn one_of(chance: &mut Rng, names: &[&str]) -> Name {
    names[chance.usize(0..names.len())].into()
}
