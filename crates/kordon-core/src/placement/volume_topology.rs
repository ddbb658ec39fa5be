//! Descriptions of the nodes that can reach the volumes of a pod.

use std::fmt;

use super::{
    filter::TOPOLOGY_LABELS,
    scheduling_request::SchedulingRequest,
    snapshot::{HOSTNAME, Snapshot},
    storage::own_claim,
};
use crate::cluster::{
    Key, Name, Volume,
    scheduling::{NodeOperator, NodeRequirement, NodeTerm, PodVolume},
};

/// A volume that only some nodes can reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeTopology {
    /// The claim that the volume is bound to.
    pub claim: Name,
    pub place: VolumeReach,
}

/// The nodes that can reach a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VolumeReach {
    Zones(Vec<Name>),
    Nodes(Vec<Name>),
    /// Nodes that are selected by other labels than zone and name.
    Some,
}

impl Snapshot {
    /// Returns the volumes of a pod that only some nodes can reach; empty if storage objects are not known.
    pub fn volume_topology(&self, request: &SchedulingRequest) -> Vec<VolumeTopology> {
        let storage = self.storage();
        if !storage.is_known() {
            return Vec::new();
        }
        let claims = request.spec.volumes.iter().filter_map(|volume| match volume {
            PodVolume::Disk(_) => None,
            PodVolume::Claim(name) => Some(name.clone()),
            PodVolume::OwnClaim { volume, .. } => Some(own_claim(&request.name, volume)),
        });
        let topology = |name: Name| {
            let claim = storage.claim(&Key { namespace: request.namespace.clone(), name: name.clone() })?;
            let volume = storage.volume(&claim.volume)?;
            let place = match VolumeReach::from_volume(volume)? {
                // Local storage drivers select the node by a label of their own.
                VolumeReach::Some => self.only_node_of(volume).unwrap_or(VolumeReach::Some),
                place => place,
            };
            Some(VolumeTopology { claim: name, place })
        };
        claims.filter_map(topology).collect()
    }

    /// Returns the only node that can reach a volume; `None` if several can, or none.
    fn only_node_of(&self, volume: &Volume) -> Option<VolumeReach> {
        let terms = volume.node_affinity.as_ref()?;
        let nodes = self.node_numbers().map(|number| self.node(number));
        let mut nodes = nodes.filter(|node| terms.iter().any(|term| term.matches(node)));
        let only = nodes.next().filter(|_| nodes.next().is_none())?;
        Some(VolumeReach::Nodes(vec![only.name.0.clone()]))
    }
}

impl VolumeReach {
    /// Returns the nodes that can reach a volume; `None` if all nodes can.
    fn from_volume(volume: &Volume) -> Option<Self> {
        let Some(terms) = &volume.node_affinity else {
            let mut zones = TOPOLOGY_LABELS.iter().filter(|(key, _)| key.ends_with("/zone"));
            let zones = zones.find_map(|(key, _)| volume.labels.get(key))?;
            return Some(Self::Zones(zones.split("__").map(Name::from).collect()));
        };
        let named = |of: fn(&NodeRequirement) -> bool| {
            let values: Option<Vec<&[Name]>> = terms.iter().map(|term| values(term, of)).collect();
            let mut values: Vec<Name> = values?.concat();
            values.sort();
            values.dedup();
            (!values.is_empty()).then_some(values)
        };
        let is_node = |requirement: &NodeRequirement| {
            *requirement.key == *HOSTNAME || *requirement.key == *"metadata.name"
        };
        // Some drivers have zone labels of their own, which also end in `/zone`.
        let is_zone = |requirement: &NodeRequirement| requirement.key.ends_with("/zone");
        Some(
            named(is_node).map(Self::Nodes).or_else(|| named(is_zone).map(Self::Zones)).unwrap_or(Self::Some),
        )
    }
}

/// Returns the values that a term allows for one label or field; `None` if the term does not list allowed values.
fn values(term: &NodeTerm, of: fn(&NodeRequirement) -> bool) -> Option<&[Name]> {
    let requirement = term.expressions.iter().chain(&term.fields).find(|requirement| of(requirement))?;
    match &requirement.operator {
        NodeOperator::In(values) => Some(values),
        _ => None,
    }
}

impl fmt::Display for VolumeReach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |values: &[Name]| values.iter().map(|value| &**value).collect::<Vec<_>>().join(" or ");
        match self {
            Self::Zones(zones) => write!(f, "in zone {}", list(zones)),
            Self::Nodes(nodes) => write!(f, "on node {}", list(nodes)),
            Self::Some => f.write_str("reachable from some nodes only"),
        }
    }
}

impl fmt::Display for VolumeTopology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "its volume {} is {}", self.claim, self.place)
    }
}

/// Returns true if no node can reach all these volumes, because they are in different zones or on different nodes. Each
/// node is in only one zone.
pub fn are_apart(topologies: &[VolumeTopology]) -> bool {
    let is_empty = |common: Option<Vec<Name>>| common.is_some_and(|common| common.is_empty());
    is_empty(common_zones(topologies)) || is_empty(common_nodes(topologies))
}

/// Returns the zones from which all zonal volumes can be reached; `None` if no volume is zonal.
pub fn common_zones(topologies: &[VolumeTopology]) -> Option<Vec<Name>> {
    common(topologies, |place| match place {
        VolumeReach::Zones(zones) => Some(zones),
        VolumeReach::Nodes(_) | VolumeReach::Some => None,
    })
}

/// Returns the nodes that can reach all node-local volumes; `None` if no volume is node-local.
fn common_nodes(topologies: &[VolumeTopology]) -> Option<Vec<Name>> {
    common(topologies, |place| match place {
        VolumeReach::Nodes(nodes) => Some(nodes),
        VolumeReach::Zones(_) | VolumeReach::Some => None,
    })
}

fn common(topologies: &[VolumeTopology], named: fn(&VolumeReach) -> Option<&Vec<Name>>) -> Option<Vec<Name>> {
    let mut named = topologies.iter().filter_map(|topology| named(&topology.place));
    let first = named.next()?.clone();
    Some(named.fold(first, |mut common, names| {
        common.retain(|name| names.contains(name));
        common
    }))
}

/// Describes in one phrase where the volumes can be reached, for example `its volume is in zone a`; `None` if there are
/// no volumes to describe.
pub fn words(topologies: &[VolumeTopology]) -> Option<String> {
    let (first, rest) = topologies.split_first()?;
    if rest.iter().any(|topology| topology.place != first.place) {
        return Some(topologies.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "));
    }
    let volumes = if rest.is_empty() { "volume is" } else { "volumes are" };
    Some(format!("its {volumes} {}", first.place))
}
