//! Nodes: what the controller and the screen read of them.

use std::{fmt, sync::Arc};

use super::{
    claim::{CordonNote, DrainClaim},
    labels::Labels,
    names::{Name, NodeName, Uid},
    resources::Resources,
    table::{TableObject, Version},
    taint::Taint,
};
use crate::time::Timestamp;

/// A Node, cut down to the fields that are read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    pub name: NodeName,
    pub uid: Uid,
    pub version: Version,
    pub created: Timestamp,
    pub labels: Labels,
    /// `spec.unschedulable`: cordoned.
    pub unschedulable: bool,
    /// In the order of `spec.taints`, which decides how tolerations are matched.
    pub taints: Arc<[Taint]>,
    /// In the order of `status.conditions`.
    pub conditions: Arc<[Condition]>,
    /// `status.allocatable`.
    pub allocatable: Resources,
    /// What else `status.allocatable` offers (ephemeral-storage, huge pages, extended resources), by name.
    pub extended: Arc<[(Name, i64)]>,
    /// `status.images`, as many as the kubelet tells of.
    pub images: Arc<[Image]>,
    /// The first InternalIP of `status.addresses`; empty where none.
    pub address: Name,
    /// `status.nodeInfo.kubeletVersion`; empty where never posted.
    pub kubelet_version: Name,
    /// `status.nodeInfo.kernelVersion`; empty where never posted.
    pub kernel_version: Name,
    /// Whether the object is being deleted (a finalizer holds it).
    pub terminating: bool,
    /// Who cordoned it, where kordon did.
    pub cordon_note: Option<Arc<CordonNote>>,
    /// Who is draining it, where kordon is.
    pub drain_claim: Option<Arc<DrainClaim>>,
}

impl Node {
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.kind == *kind)
    }

    /// The Ready condition; none where the kubelet never posted its status.
    pub fn ready(&self) -> Option<&Condition> {
        self.condition(READY)
    }

    pub fn is_ready(&self) -> bool {
        self.ready().is_some_and(|ready| ready.status == ConditionStatus::True)
    }

    /// Whether the other object says the same but for what a kubelet changes that only says that it lives: the version
    /// and the times of its heartbeats.
    pub fn differs_only_in_heartbeat(&self, other: &Self) -> bool {
        let version = self.version;
        let as_ours = Self { version, conditions: self.conditions.clone(), ..other.clone() };
        *self == as_ours
            && self.conditions.len() == other.conditions.len()
            && self
                .conditions
                .iter()
                .zip(&*other.conditions)
                .all(|(own, other)| own.differs_only_in_heartbeat(other))
    }

    pub fn label(&self, key: &str) -> Option<&Name> {
        self.labels.get(key)
    }

    /// The zone that the node lifecycle controller counts the node in.
    pub fn zone(&self) -> ZoneKey {
        ZoneKey::of(self)
    }

    /// What stands behind `node-role.kubernetes.io/` in its labels, sorted.
    pub fn roles(&self) -> impl Iterator<Item = &str> {
        self.labels
            .keys()
            .filter_map(|key| key.strip_prefix("node-role.kubernetes.io/"))
            .filter(|role| !role.is_empty())
    }
}

impl TableObject for Node {
    type Key = NodeName;
    fn key(&self) -> NodeName {
        self.name.clone()
    }
    fn version(&self) -> Version {
        self.version
    }
}

/// A container image that a node holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Image {
    /// All its names, by tag and by digest.
    pub names: Arc<[Name]>,
    pub size_bytes: i64,
}

/// The type of the condition that decides readiness.
pub const READY: &str = "Ready";

/// One entry of `status.conditions` of a node or pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Condition {
    /// `type`.
    pub kind: Name,
    pub status: ConditionStatus,
    pub reason: Name,
    pub message: Name,
    /// Written by the kubelet with each status it posts; none on pods.
    pub last_heartbeat: Option<Timestamp>,
    pub last_transition: Option<Timestamp>,
}

impl Condition {
    /// Whether they differ in the time of the heartbeat at most.
    fn differs_only_in_heartbeat(&self, other: &Self) -> bool {
        *self == Self { last_heartbeat: self.last_heartbeat, ..other.clone() }
    }
}

/// A condition's status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConditionStatus {
    True,
    False,
    #[default]
    Unknown,
    /// Any other text: not ready, otherwise ignored (docs/upstream/node-lifecycle.md#12.46).
    Invalid,
}

impl ConditionStatus {
    pub fn parse(text: &str) -> Self {
        match text {
            "True" => Self::True,
            "False" => Self::False,
            "Unknown" => Self::Unknown,
            _ => Self::Invalid,
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
            Self::Invalid => "invalid",
        }
    }
}

impl fmt::Display for ConditionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A zone as the node lifecycle controller keys it (component-helpers `topology.GetZoneKey`).
///
/// Region and zone are chosen independently, beta labels first; a node without either is in the zone of that name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ZoneKey {
    pub region: Name,
    pub zone: Name,
}

impl ZoneKey {
    fn of(node: &Node) -> Self {
        let first = |beta: &str, stable: &str| {
            node.labels.get(beta).or_else(|| node.labels.get(stable)).cloned().unwrap_or_default()
        };
        Self {
            region: first("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
            zone: first("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
        }
    }

    /// Upstream's own text, NUL byte and all, as its metrics carry it.
    pub fn upstream(&self) -> String {
        if self.region.is_empty() && self.zone.is_empty() {
            String::new()
        } else {
            format!("{}:\0:{}", self.region, self.zone)
        }
    }
}

impl fmt::Display for ZoneKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.region.as_str(), self.zone.as_str()) {
            ("", "") => f.pad("(no zone)"),
            ("", zone) => f.pad(zone),
            (region, "") => f.pad(&format!("{region}/")),
            (region, zone) => f.pad(&format!("{region}/{zone}")),
        }
    }
}

impl serde::Serialize for ZoneKey {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn zone_of(labels: &[(&str, &str)]) -> String {
        let labels: BTreeMap<Name, Name> =
            labels.iter().map(|&(key, value)| (key.into(), value.into())).collect();
        Node { labels: Arc::new(labels), ..Node::default() }.zone().upstream()
    }

    #[test]
    fn beta_labels_win_even_when_empty_and_each_part_is_chosen_alone() {
        let (beta_zone, zone) = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone");
        let region = "topology.kubernetes.io/region";
        assert_eq!(zone_of(&[]), "");
        assert_eq!(zone_of(&[(zone, "z"), (region, "r")]), "r:\0:z");
        assert_eq!(zone_of(&[(beta_zone, "old"), (zone, "z"), (region, "r")]), "r:\0:old");
        assert_eq!(zone_of(&[(beta_zone, ""), (zone, "z")]), "");
        assert_eq!(zone_of(&[(zone, "z")]), ":\0:z");
        assert_eq!(zone_of(&[(region, "r")]), "r:\0:");
    }
}
