//! What would help a pod that goes nowhere: which of its own wishes holds it, and what node it waits for.

use std::{fmt, sync::Arc};

use super::{
    node_resources::NodeResources,
    scheduling_request::SchedulingRequest,
    snapshot::{Snapshot, ZONE},
    storage::claims_volumes,
    volume_topology::VolumeReach,
};
use crate::cluster::{
    Name, NodeName, SchedulingSpec, Toleration, TolerationOperator, quantity,
    scheduling::{NodeOperator, Requests},
};

/// What would let a pod in that fits nowhere.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Help {
    /// Constraints each of which alone stands between the pod and some nodes, those that free most nodes first.
    pub lifts: Vec<Lift>,
    /// The node that would do but for its room, and lacks the least.
    pub nearest: Option<Shortage>,
    /// What a node must be that takes it; none where a node alone would not do, for it must be near other pods.
    pub node: Option<RequiredNode>,
}

/// A constraint, and the nodes that would do without it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lift {
    pub constraint: Constraint,
    /// By name; at least one.
    pub nodes: Vec<NodeName>,
}

/// What can keep a pod from nodes and be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Constraint {
    /// The nodes are cordoned.
    Cordon,
    /// Taints that it does not tolerate.
    Taints,
    /// Its node selector and required node affinity.
    NodeSelection,
    /// The pods that it must be near.
    PodAffinity,
    /// The pods that it must keep away from.
    PodAntiAffinity,
    /// Its spread constraints that are a must.
    Spread,
    /// Its host ports.
    Ports,
    /// Where its volumes are.
    Volumes,
}

impl Constraint {
    pub const ALL: [Self; 8] = [
        Self::Cordon,
        Self::Taints,
        Self::NodeSelection,
        Self::PodAffinity,
        Self::PodAntiAffinity,
        Self::Spread,
        Self::Ports,
        Self::Volumes,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cordon => "cordons",
            Self::Taints => "taints it does not tolerate",
            Self::NodeSelection => "its node selector and affinity",
            Self::PodAffinity => "its pod affinity",
            Self::PodAntiAffinity => "its pod anti-affinity",
            Self::Spread => "its spread constraints",
            Self::Ports => "its host ports",
            Self::Volumes => "its volumes",
        }
    }

    /// The pod without the constraint; none where it has no such constraint.
    fn lifted(self, request: &SchedulingRequest) -> Option<SchedulingRequest> {
        let spec = &request.spec;
        let with = |spec: SchedulingSpec| Some(SchedulingRequest { spec: Arc::new(spec), ..request.clone() });
        match self {
            Self::Cordon => Some(request.tolerating(Some("node.kubernetes.io/unschedulable"))),
            Self::Taints => Some(request.tolerating(None)),
            Self::NodeSelection if spec.node_selector.is_empty() && spec.node_affinity.is_none() => None,
            Self::NodeSelection => with(SchedulingSpec {
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
            Self::Spread if spec.spread.iter().all(|spread| !spread.hard) => None,
            Self::Spread => with(SchedulingSpec { spread: Box::default(), ..(**spec).clone() }),
            Self::Ports if spec.host_ports.is_empty() => None,
            Self::Ports => with(SchedulingSpec { host_ports: Box::default(), ..(**spec).clone() }),
            Self::Volumes if !claims_volumes(spec) => None,
            Self::Volumes => with(SchedulingSpec { volumes: Box::default(), ..(**spec).clone() }),
        }
    }
}

/// What a node is short of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortage {
    pub node: NodeName,
    /// By resource, in its own unit (cpu in thousandths); at least one.
    pub lacks: Vec<(Name, i64)>,
}

/// What a node must offer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequiredNode {
    /// By resource, in its own unit (cpu in thousandths).
    pub resources: Vec<(Name, i64)>,
    /// The labels that it must have, in words.
    pub labels: Vec<String>,
}

impl Snapshot {
    /// What would help a pod that [`Snapshot::place`] found no node for. `closed` nodes are no help, whatever is
    /// changed about them.
    pub fn help(&mut self, request: &SchedulingRequest, closed: &dyn Fn(&NodeName) -> bool) -> Help {
        let mut lifts: Vec<Lift> = Vec::new();
        for constraint in Constraint::ALL {
            let Some(lifted) = constraint.lifted(request) else { continue };
            let mut nodes = self.feasible(&lifted);
            nodes.retain(|node| !closed(node));
            if constraint == Constraint::Taints {
                // Who tolerates everything bears cordons too, and those have a word of their own.
                nodes.retain(|node| !self.is_cordoned(node));
            }
            if !nodes.is_empty() {
                lifts.push(Lift { constraint, nodes });
            }
        }
        lifts.sort_by_key(|lift| (std::cmp::Reverse(lift.nodes.len()), lift.constraint));
        Help { lifts, nearest: self.nearest(request, closed), node: self.wanted(request) }
    }

    /// What a node must be, where its volumes are too; none where no new node would do.
    fn wanted(&self, request: &SchedulingRequest) -> Option<RequiredNode> {
        let mut wanted = wanted(&request.spec)?;
        for topology in self.volume_topology(request) {
            let VolumeReach::Zones(zones) = topology.place else { return None };
            let zones: Vec<&str> = zones.iter().map(|zone| &**zone).collect();
            let label = format!("{ZONE}={}", zones.join("|"));
            if !wanted.labels.contains(&label) {
                wanted.labels.push(label);
            }
        }
        Some(wanted)
    }

    fn is_cordoned(&self, node: &NodeName) -> bool {
        self.number(node).is_some_and(|number| self.resources(number).cordoned)
    }

    /// Of the nodes that would do if the pod asked for nothing, the one that lacks the smallest share of it.
    fn nearest(
        &mut self,
        request: &SchedulingRequest,
        closed: &dyn Fn(&NodeName) -> bool,
    ) -> Option<Shortage> {
        let weightless = SchedulingSpec { requests: Requests::default(), ..(*request.spec).clone() };
        let weightless = SchedulingRequest { spec: Arc::new(weightless), ..request.clone() };
        let mut nearest: Option<(f64, Shortage)> = None;
        for node in self.feasible(&weightless) {
            let Some(number) = self.number(&node).filter(|_| !closed(&node)) else { continue };
            let lacks = lacks(self.resources(number), &request.spec.requests);
            let asked = |resource: &Name| of(&request.spec.requests, resource).max(1) as f64;
            let share: f64 = lacks.iter().map(|(resource, amount)| *amount as f64 / asked(resource)).sum();
            if !lacks.is_empty() && nearest.as_ref().is_none_or(|(least, _)| share < *least) {
                nearest = Some((share, Shortage { node, lacks }));
            }
        }
        nearest.map(|(_, shortage)| shortage)
    }
}

impl SchedulingRequest {
    /// The same pod, tolerating this taint as well, or all of them.
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

fn lacks(resources: &NodeResources, requests: &Requests) -> Vec<(Name, i64)> {
    let basic = [
        ("cpu", resources.cpu_milli, requests.cpu_milli),
        ("memory", resources.memory_bytes, requests.memory_bytes),
        ("ephemeral-storage", resources.ephemeral_bytes, requests.ephemeral_bytes),
    ];
    let basic = basic.into_iter().map(|(name, share, asked)| (Name::from(name), share, asked));
    let scalars = requests.scalars.iter().map(|(name, asked)| (name.clone(), resources.scalar(name), *asked));
    basic
        .chain(scalars)
        .filter(|(_, share, asked)| *asked > 0 && *asked > share.left())
        .map(|(name, share, asked)| (name, asked.saturating_sub(share.left())))
        .collect()
}

/// How much is asked of a resource.
fn of(requests: &Requests, resource: &Name) -> i64 {
    match &**resource {
        "cpu" => requests.cpu_milli,
        "memory" => requests.memory_bytes,
        "ephemeral-storage" => requests.ephemeral_bytes,
        _ => requests.scalars.iter().find(|(name, _)| name == resource).map_or(0, |(_, asked)| *asked),
    }
}

fn wanted(spec: &SchedulingSpec) -> Option<RequiredNode> {
    if !spec.pod_affinity.required.is_empty() {
        return None;
    }
    let requests = &spec.requests;
    let basic =
        ["cpu", "memory", "ephemeral-storage"].map(|name| (Name::from(name), of(requests, &name.into())));
    let resources = basic.into_iter().chain(requests.scalars.iter().cloned()).filter(|(_, asked)| *asked > 0);
    let mut labels: Vec<String> =
        spec.node_selector.iter().map(|(key, value)| format!("{key}={value}")).collect();
    // Several terms are alternatives: only a single one is a must.
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
                NodeOperator::Invalid => format!("{key} (cannot be read)"),
            }
        }));
    } else if spec.node_affinity.is_some() {
        labels.push("what one term of its node affinity asks for".into());
    }
    Some(RequiredNode { resources: resources.collect(), labels })
}

impl fmt::Display for Lift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.nodes.as_slice() {
            [one] => write!(f, "but for {}, {one} would take it", self.constraint.as_str()),
            [first, rest @ ..] => {
                write!(
                    f,
                    "but for {}, {first} and {} more would take it",
                    self.constraint.as_str(),
                    rest.len()
                )
            }
            [] => Ok(()),
        }
    }
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} comes nearest: it lacks {}", self.node, amounts(&self.lacks))
    }
}

impl fmt::Display for RequiredNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a new node would take it")?;
        if !self.resources.is_empty() {
            write!(f, " that has {} free", amounts(&self.resources))?;
        }
        if !self.labels.is_empty() {
            write!(f, ", labelled {}", self.labels.join(", "))?;
        }
        Ok(())
    }
}

impl Help {
    /// In words, the most telling first.
    pub fn words(&self) -> Vec<String> {
        let lifts = self.lifts.iter().map(ToString::to_string);
        let nearest = self.nearest.iter().map(ToString::to_string);
        lifts.chain(nearest).chain(self.node.iter().map(ToString::to_string)).collect()
    }
}

/// `200m cpu and 1Gi memory`
fn amounts(amounts: &[(Name, i64)]) -> String {
    let all: Vec<String> = amounts
        .iter()
        .map(|(resource, amount)| format!("{} {resource}", quantity::amount(resource, *amount)))
        .collect();
    all.join(" and ")
}
