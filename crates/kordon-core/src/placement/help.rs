//! Advice for a pod without a feasible node: which constraints exclude nodes, and what node the pod needs.

use std::{fmt, sync::Arc};

use super::{
    filter::{PodVolumes, is_left_to_devices},
    node_resources::NodeResources,
    scheduling_request::SchedulingRequest,
    snapshot::{HOSTNAME, Snapshot},
    storage::claims_volumes,
    volume_topology::{self, VolumeReach, VolumeTopology},
};
use crate::{
    cluster::{
        Name, NodeName, OUT_OF_SERVICE, Requests, SchedulingSpec, Taint, Toleration, TolerationOperator,
        UNSCHEDULABLE, quantity,
        scheduling::{NodeOperator, SpreadConstraint},
    },
    engine::{NOT_READY, UNREACHABLE},
};

/// Ways to make a node feasible for a pod that has no feasible node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Help {
    /// Constraints that exclude nodes, each with the nodes that become feasible if only this constraint is lifted.
    /// Those with most nodes come first.
    pub lifts: Vec<Lift>,
    /// The otherwise feasible node that comes closest to having enough resources.
    pub nearest: Option<Shortage>,
    /// Requirements on a new node. `None` if a new node cannot help, because the pod must be near other pods, because
    /// its volumes are bound to certain nodes, or because it selects the host name of a node that exists.
    pub node: Option<RequiredNode>,
    /// The volumes of the pod, if no node can reach all of them because they are in different zones or on different
    /// nodes. Then nothing else helps, and the other fields are empty.
    pub apart: Vec<VolumeTopology>,
}

/// A constraint, and the nodes that become feasible without it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lift {
    pub constraint: Constraint,
    /// Names of the nodes that become feasible, sorted; at least one.
    pub nodes: Vec<NodeName>,
}

/// A changeable property of a pod or node that excludes nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Constraint {
    /// The nodes are cordoned.
    Cordon,
    /// Taints that the pod does not tolerate.
    Taints,
    NodeSelector,
    /// The pod's required nodeAffinity.
    NodeAffinity,
    /// Both the pod's nodeSelector and its required nodeAffinity, for a pod that has both.
    NodeSelectorAndAffinity,
    /// The pod's required podAffinity.
    PodAffinity,
    /// The pod's required podAntiAffinity.
    PodAntiAffinity,
    /// The `nodeTaintsPolicy` of hard topology spread constraints that count nodes with taints which the pod does not
    /// tolerate.
    SpreadTaints,
    /// The `maxSkew` of hard topology spread constraints. To lift the constraint, `maxSkew` is raised by 1.
    SpreadSkew,
    /// The pod's hard topology spread constraints.
    Spread,
    /// The pod's host ports.
    Ports,
    /// The nodes or zones from which the pod's volumes can be reached.
    Volumes,
}

impl Constraint {
    pub const ALL: [Self; 12] = [
        Self::Cordon,
        Self::Taints,
        Self::NodeSelector,
        Self::NodeAffinity,
        Self::NodeSelectorAndAffinity,
        Self::PodAffinity,
        Self::PodAntiAffinity,
        Self::SpreadTaints,
        Self::SpreadSkew,
        Self::Spread,
        Self::Ports,
        Self::Volumes,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cordon => "the cordon",
            Self::Taints => "the taints it does not tolerate",
            Self::NodeSelector => "its nodeSelector",
            Self::NodeAffinity => "its nodeAffinity",
            Self::NodeSelectorAndAffinity => "its nodeSelector and nodeAffinity",
            Self::PodAffinity => "its podAffinity",
            Self::PodAntiAffinity => "its podAntiAffinity",
            Self::SpreadTaints | Self::SpreadSkew | Self::Spread => "its topologySpreadConstraints",
            Self::Ports => "its hostPorts",
            Self::Volumes => "its volumes",
        }
    }

    /// Describes how the constraint is lifted: `without the cordon`, `with nodeTaintsPolicy: Honor in …`.
    fn change(self) -> String {
        match self {
            Self::SpreadTaints => format!("with nodeTaintsPolicy: Honor in {}", self.as_str()),
            Self::SpreadSkew => format!("with a maxSkew greater by 1 in {}", self.as_str()),
            Self::Spread => format!("with whenUnsatisfiable: ScheduleAnyway in {}", self.as_str()),
            _ => format!("without {}", self.as_str()),
        }
    }

    /// Returns two flags: whether the constraint includes the nodeSelector, and whether it includes the required
    /// nodeAffinity.
    const fn selects_nodes_of(self) -> (bool, bool) {
        (
            matches!(self, Self::NodeSelector | Self::NodeSelectorAndAffinity),
            matches!(self, Self::NodeAffinity | Self::NodeSelectorAndAffinity),
        )
    }

    /// Returns the scheduling request without the constraint; `None` if the pod does not have this constraint.
    fn lifted(self, request: &SchedulingRequest) -> Option<SchedulingRequest> {
        let spec = &request.spec;
        let with = |spec: SchedulingSpec| Some(SchedulingRequest { spec: Arc::new(spec), ..request.clone() });
        match self {
            Self::Cordon => Some(request.tolerating(Some(UNSCHEDULABLE))),
            Self::Taints => Some(request.tolerating(None)),
            Self::NodeSelector | Self::NodeAffinity | Self::NodeSelectorAndAffinity
                if self.selects_nodes_of()
                    != (!spec.node_selector.is_empty(), spec.node_affinity.is_some()) =>
            {
                None
            }
            // If the pod requires a node by its name, no other node can match, so kordon does not suggest lifting the
            // constraint.
            Self::NodeSelector | Self::NodeAffinity | Self::NodeSelectorAndAffinity if spec.names_nodes() => {
                None
            }
            Self::NodeSelector | Self::NodeAffinity | Self::NodeSelectorAndAffinity => with(SchedulingSpec {
                node_selector: Box::default(),
                node_affinity: None,
                ..(**spec).clone()
            }),
            Self::PodAffinity if spec.pod_affinity.required.is_empty() => None,
            Self::PodAffinity => {
                with(SchedulingSpec { pod_affinity: Default::default(), ..(**spec).clone() })
            }
            Self::PodAntiAffinity if spec.pod_anti_affinity.required.is_empty() => None,
            Self::PodAntiAffinity => {
                with(SchedulingSpec { pod_anti_affinity: Default::default(), ..(**spec).clone() })
            }
            Self::SpreadTaints if spec.spread.iter().all(|spread| !spread.hard || spread.honours_taints) => {
                None
            }
            Self::SpreadTaints => {
                let honour =
                    |spread: &SpreadConstraint| SpreadConstraint { honours_taints: true, ..spread.clone() };
                with(SchedulingSpec { spread: spec.spread.iter().map(honour).collect(), ..(**spec).clone() })
            }
            Self::SpreadSkew | Self::Spread if spec.spread.iter().all(|spread| !spread.hard) => None,
            Self::SpreadSkew => {
                let relax = |spread: &SpreadConstraint| SpreadConstraint {
                    max_skew: spread.max_skew.saturating_add(1),
                    ..spread.clone()
                };
                with(SchedulingSpec { spread: spec.spread.iter().map(relax).collect(), ..(**spec).clone() })
            }
            Self::Spread => with(SchedulingSpec { spread: Box::default(), ..(**spec).clone() }),
            Self::Ports if spec.host_ports.is_empty() => None,
            Self::Ports => with(SchedulingSpec { host_ports: Box::default(), ..(**spec).clone() }),
            Self::Volumes if !claims_volumes(spec) => None,
            Self::Volumes => with(SchedulingSpec { volumes: Box::default(), ..(**spec).clone() }),
        }
    }
}

/// The resources of which a node has too little for a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortage {
    pub node: NodeName,
    /// Missing amount of each resource, in the resource's own unit (CPU in millicores); at least one.
    pub lacks: Vec<(Name, i64)>,
}

/// Requirements on a new node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequiredNode {
    /// Amount of each resource, in the resource's own unit (CPU in millicores).
    pub resources: Vec<(Name, i64)>,
    /// Required labels as text: `key=value` for a value, `no key` for an absent label.
    pub labels: Vec<String>,
    /// Zones of the pod's volumes. The node must be in one of these zones; empty if any zone will do. The names of the
    /// zones come from the labels of the volumes' drivers.
    pub zones: Vec<Name>,
}

/// Keys of the taints of nodes whose kubelet is down (upstream of 1.37, `pkg/controller/nodelifecycle`,
/// `staging/src/k8s.io/cloud-provider/controllers/nodelifecycle`, `pkg/controller/podgc`).
const DOWN: [&str; 4] = [NOT_READY, UNREACHABLE, OUT_OF_SERVICE, "node.cloudprovider.kubernetes.io/shutdown"];

impl Snapshot {
    /// Returns ways to place a pod for which [`Snapshot::place`] found no node. Does not suggest nodes for which
    /// `closed` returns true.
    pub fn help(&mut self, request: &SchedulingRequest, closed: &dyn Fn(&NodeName) -> bool) -> Help {
        let apart = self.volumes_apart(request);
        if !apart.is_empty() {
            return Help { apart, ..Help::default() };
        }
        let mut lifts: Vec<Lift> = Vec::new();
        for constraint in Constraint::ALL {
            let Some(lifted) = constraint.lifted(request) else { continue };
            let mut nodes = self.feasible(&lifted);
            nodes.retain(|node| !closed(node));
            if constraint == Constraint::Taints {
                // Lifting the taints must not suggest cordoned nodes, which belong to [`Constraint::Cordon`], or nodes
                // that are down, on which no pod starts.
                nodes.retain(|node| !self.is_cordoned(node) && !self.is_down(node));
            }
            if !nodes.is_empty() {
                lifts.push(Lift { constraint, nodes });
            }
        }
        lifts.sort_by_key(|lift| (std::cmp::Reverse(lift.nodes.len()), lift.constraint));
        let node = self.required_node(request);
        // A new node without any requirement is only suggested if no existing node can help.
        let node = node.filter(|node| lifts.is_empty() || *node != RequiredNode::default());
        Help { lifts, nearest: self.nearest(request, closed), node, apart: Vec::new() }
    }

    /// Returns the volumes of the pod if no node can reach all of them, because they are in different zones or on
    /// different nodes; otherwise an empty list. Drivers may name the same zone differently, so the nodes are checked
    /// too.
    fn volumes_apart(&mut self, request: &SchedulingRequest) -> Vec<VolumeTopology> {
        let topologies = self.volume_topology(request);
        let spec = SchedulingSpec { volumes: request.spec.volumes.clone(), ..SchedulingSpec::default() };
        let only_volumes =
            SchedulingRequest { spec: Arc::new(spec), resources: Arc::default(), ..request.tolerating(None) };
        let are_apart = volume_topology::are_apart(&topologies) && self.feasible(&only_volumes).is_empty();
        if are_apart { topologies } else { Vec::new() }
    }

    /// Returns the cordoned nodes that would be feasible without their cordons, sorted. Returns none if the pod needs
    /// no uncordon: if a node without a cordon is feasible, or if the default scheduler does not try the pod.
    pub fn takers_if_uncordoned(&mut self, request: &SchedulingRequest) -> Vec<NodeName> {
        let Some(lifted) = Constraint::Cordon.lifted(request).filter(|_| request.obstacle().is_none()) else {
            return Vec::new();
        };
        let nodes = self.feasible(&lifted);
        if nodes.iter().all(|node| self.is_cordoned(node)) { nodes } else { Vec::new() }
    }

    /// Returns the requirements on a new node, with the zones of the pod's volumes; `None` if a new node cannot help.
    fn required_node(&self, request: &SchedulingRequest) -> Option<RequiredNode> {
        if PodVolumes::new(self, request).excludes_all_nodes() || self.selects_existing_host(&request.spec) {
            return None;
        }
        let required = required_node(&request.spec, &request.resources.requests)?;
        let volumes = self.volume_topology(request);
        if !volumes.iter().all(|volume| matches!(volume.place, VolumeReach::Zones(_))) {
            return None;
        }
        // A node is in one zone, so no node helps if two volumes are in different zones.
        match volume_topology::common_zones(&volumes) {
            Some(zones) if zones.is_empty() => None,
            zones => Some(RequiredNode { zones: zones.unwrap_or_default(), ..required }),
        }
    }

    /// Whether the nodeSelector requires the host name of a node that exists. No new node can have this name.
    fn selects_existing_host(&self, spec: &SchedulingSpec) -> bool {
        let exists = |host: &Name| {
            let node = self.node_named(&NodeName(host.clone()));
            node.is_some_and(|node| node.labels.get(HOSTNAME) == Some(host))
        };
        spec.node_selector.iter().any(|(key, value)| *key == *HOSTNAME && exists(value))
    }

    /// Whether a node has a taint that says that its kubelet is down.
    fn is_down(&self, node: &NodeName) -> bool {
        let says_so = |taint: &Taint| DOWN.contains(&taint.key.as_str());
        self.node_named(node).is_some_and(|node| node.taints.iter().any(says_so))
    }

    fn is_cordoned(&self, node: &NodeName) -> bool {
        self.number(node).is_some_and(|number| self.resources(number).cordoned)
    }

    /// Returns the node that lacks the smallest part of the requests. Considers only nodes that would be feasible if
    /// the pod had no requests.
    fn nearest(
        &mut self,
        request: &SchedulingRequest,
        closed: &dyn Fn(&NodeName) -> bool,
    ) -> Option<Shortage> {
        let without_requests = SchedulingRequest { resources: Arc::default(), ..request.clone() };
        let mut nearest: Option<(f64, Shortage)> = None;
        for node in self.feasible(&without_requests) {
            let Some(number) = self.number(&node).filter(|_| !closed(&node)) else { continue };
            let lacks = self.lacks(self.resources(number), &request.resources.requests);
            let asked = |resource: &Name| request.resources.requests.of(resource).max(1) as f64;
            let share: f64 = lacks.iter().map(|(resource, amount)| *amount as f64 / asked(resource)).sum();
            if !lacks.is_empty() && nearest.as_ref().is_none_or(|(least, _)| share < *least) {
                nearest = Some((share, Shortage { node, lacks }));
            }
        }
        nearest.map(|(_, shortage)| shortage)
    }
}

impl SchedulingRequest {
    /// Returns the same request with one more toleration, which tolerates all taints with this key or, if `key` is
    /// `None`, all taints.
    fn tolerating(&self, key: Option<&str>) -> Self {
        let taint = Toleration {
            key: key.unwrap_or_default().into(),
            operator: TolerationOperator::Exists,
            ..Toleration::default()
        };
        let tolerations = self.tolerations.iter().cloned().chain([taint]).collect();
        Self { tolerations, ..self.clone() }
    }
}

impl Snapshot {
    /// Returns the missing amount of each resource on a node. Leaves out resources that devices provide.
    fn lacks(&self, resources: &NodeResources, requests: &Requests) -> Vec<(Name, i64)> {
        let basic = [
            ("cpu", resources.cpu_milli, requests.cpu_milli),
            ("memory", resources.memory_bytes, requests.memory_bytes),
            ("ephemeral-storage", resources.ephemeral_bytes(), requests.ephemeral_bytes),
        ];
        let basic = basic.into_iter().map(|(name, share, asked)| (Name::from(name), share, asked));
        let scalars = requests.scalars.iter().filter(|(name, _)| !is_left_to_devices(name, resources, self));
        let scalars = scalars.map(|(name, asked)| (name.clone(), resources.scalar(name), *asked));
        basic
            .chain(scalars)
            .filter(|(_, share, asked)| *asked > 0 && *asked > share.free())
            .map(|(name, share, asked)| (name, asked.saturating_sub(share.free())))
            .collect()
    }
}

fn required_node(spec: &SchedulingSpec, requests: &Requests) -> Option<RequiredNode> {
    // No new node is suggested if the pod must be near other pods, requires a node by name, or needs devices, because
    // it is not known which devices a new node would have.
    if !spec.pod_affinity.required.is_empty() || spec.claims_devices || spec.names_nodes() {
        return None;
    }
    let basic = ["cpu", "memory", "ephemeral-storage"].map(|name| (Name::from(name), requests.of(name)));
    let resources = basic.into_iter().chain(requests.scalars.iter().cloned()).filter(|(_, asked)| *asked > 0);
    let mut labels: Vec<String> =
        spec.node_selector.iter().map(|(key, value)| format!("{key}={value}")).collect();
    // A single node affinity term is a requirement. Of several terms only one has to match, so none of them is listed.
    if let Some([term]) = spec.node_affinity.as_deref() {
        labels.extend(term.expressions.iter().map(|requirement| {
            let key = &requirement.key;
            let any = |values: &[Name]| values.iter().map(ToString::to_string).collect::<Vec<_>>().join("|");
            match &requirement.operator {
                NodeOperator::In(values) => format!("{key}={}", any(values)),
                NodeOperator::NotIn(values) => format!("{key}!={}", any(values)),
                NodeOperator::Exists => format!("{key}"),
                NodeOperator::DoesNotExist => format!("no {key}"),
                NodeOperator::Gt(bound) => format!("{key}>{bound}"),
                NodeOperator::Lt(bound) => format!("{key}<{bound}"),
                NodeOperator::Invalid => format!("{key} (invalid)"),
            }
        }));
    } else if spec.node_affinity.is_some() {
        labels.push("one term of its nodeAffinity".into());
    }
    Some(RequiredNode { resources: resources.collect(), labels, zones: Vec::new() })
}

impl fmt::Display for Lift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fits {} {}", some_nodes(&self.nodes), self.constraint.change())
    }
}

/// Formats node names: `n-1` or `n-1 and 3 more`.
fn some_nodes(nodes: &[NodeName]) -> String {
    match nodes {
        [first, rest @ ..] if !rest.is_empty() => format!("{first} and {} more", rest.len()),
        nodes => nodes.first().map(ToString::to_string).unwrap_or_default(),
    }
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "nearest: {} lacks {}", self.node, amounts(&self.lacks))
    }
}

impl fmt::Display for RequiredNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("needs a node")?;
        if !self.resources.is_empty() {
            write!(f, " with {} free", amounts(&self.resources))?;
        }
        if !self.zones.is_empty() {
            let zones: Vec<&str> = self.zones.iter().map(|zone| &**zone).collect();
            write!(f, ", in zone {}", zones.join(" or "))?;
        }
        if !self.labels.is_empty() {
            write!(f, ", labeled {}", self.labels.join(", "))?;
        }
        Ok(())
    }
}

impl Help {
    /// Returns one line for each suggestion, the most helpful first: `uncordon n-1`, `2 CPU more on n-1`, `a new node
    /// with 4 CPU free`.
    pub fn advice(&self) -> Vec<String> {
        let lifts = self.lifts.iter().map(|lift| {
            let nodes = some_nodes(&lift.nodes);
            match lift.constraint {
                Constraint::Cordon => format!("uncordon {nodes}"),
                Constraint::Taints => format!("tolerate the taints of {nodes}"),
                Constraint::Ports
                | Constraint::Volumes
                | Constraint::SpreadTaints
                | Constraint::SpreadSkew
                | Constraint::Spread => lift.to_string(),
                Constraint::NodeSelector
                | Constraint::NodeAffinity
                | Constraint::NodeSelectorAndAffinity
                | Constraint::PodAffinity
                | Constraint::PodAntiAffinity => format!("relax {}: fits {nodes}", lift.constraint.as_str()),
            }
        });
        let nearest =
            self.nearest.iter().map(|short| format!("{} more on {}", amounts(&short.lacks), short.node));
        let node = self.node.iter().map(|node| node.to_string().replacen("needs a node", "a new node", 1));
        lifts.chain(nearest).chain(node).chain(self.another_volume()).collect()
    }

    /// Returns one line for each change that would help, the most helpful first: `fits n-1 without the cordon`.
    pub fn lines(&self) -> Vec<String> {
        let lifts = self.lifts.iter().map(ToString::to_string);
        let nearest = self.nearest.iter().map(ToString::to_string);
        let node = self.node.iter().map(ToString::to_string);
        lifts.chain(nearest).chain(node).chain(self.another_volume()).collect()
    }

    /// Says that a node can be feasible only if the pod has other volumes; `None` if something else may help.
    fn another_volume(&self) -> Option<String> {
        let volumes = volume_topology::words(&self.apart)?;
        Some(format!("nothing but another volume: {volumes}"))
    }
}

/// Formats amounts of resources: `200m CPU and 1Gi memory`.
pub fn amounts(amounts: &[(Name, i64)]) -> String {
    let all: Vec<String> = amounts
        .iter()
        .map(|(resource, amount)| {
            let name = if *resource == "cpu" { "CPU" } else { resource };
            format!("{} {name}", quantity::amount(resource, *amount))
        })
        .collect();
    all.join(" and ")
}
