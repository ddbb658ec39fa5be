//! Drains by components of other projects, as far as a taint of the node shows them.

use super::{Cluster, Name, Node, taint::Taint, taint_owner::TaintOwner};
use kordon_time::{ClusterTime, Timestamp};

/// A drain by a component of another project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignDrain {
    /// The project, as in `Karpenter`.
    pub by: &'static str,
    /// Key of the taint that says so.
    pub taint: Name,
    /// Since when; `None` if the taint does not have the time.
    pub since: Option<Timestamp>,
}

impl ForeignDrain {
    /// Returns the drain of a node; `None` if no taint of a known component says that the node is being drained.
    pub fn find(cluster: &Cluster, node: &Node) -> Option<Self> {
        let taint = marker(node)?;
        let by = TaintOwner::from_taint(taint)?.name;
        Some(Self { by, taint: taint.key.clone(), since: since(taint).map(|since| cluster.local(since)) })
    }

    /// Whether a component of another project drains the node.
    pub fn is_of(node: &Node) -> bool {
        marker(node).is_some()
    }
}

/// The taint that says that a node is being drained.
fn marker(node: &Node) -> Option<&Taint> {
    node.taints.iter().find(|taint| TaintOwner::from_taint(taint).is_some_and(TaintOwner::drains))
}

/// Since when a node has a taint: its `timeAdded`, or, as the cluster autoscaler writes it, the Unix time in its value
/// (`addTaintsToSpec` in `cluster-autoscaler/utils/taints/taints.go`).
fn since(taint: &Taint) -> Option<ClusterTime> {
    let written = || {
        let seconds = taint.value.parse::<i64>().ok().filter(|seconds| *seconds > 0)?;
        taint.key.ends_with("ByClusterAutoscaler").then(|| ClusterTime::new(Timestamp::from_secs(seconds)))
    };
    taint.time_added.or_else(written)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::TaintEffect;

    fn node(key: &str, value: &str, added: Option<&str>) -> Node {
        let time_added = added.map(|text| ClusterTime::parse(text).expect("a time"));
        let taint =
            Taint { key: key.into(), value: value.into(), effect: TaintEffect::NoSchedule, time_added };
        Node { taints: [taint].into(), ..Node::default() }
    }

    fn found(node: &Node) -> Option<(&'static str, Option<String>)> {
        let drain = ForeignDrain::find(&Cluster::default(), node)?;
        assert!(ForeignDrain::is_of(node));
        Some((drain.by, drain.since.map(Timestamp::to_time)))
    }

    /// As kept in `tests/cases/11-foreign-drain-karpenter.json`.
    #[test]
    fn karpenter_marks_a_node_that_it_drains_by_a_taint_with_its_time() {
        let disrupted = node("karpenter.sh/disrupted", "", Some("2026-11-18T16:00:00Z"));
        assert_eq!(found(&disrupted), Some(("Karpenter", Some("2026-11-18T16:00:00Z".into()))));
        let before_1_0 = node("karpenter.sh/disruption", "disrupting", None);
        assert_eq!(found(&before_1_0), Some(("Karpenter", None)));
        assert_eq!(found(&node("karpenter.sh/unregistered", "", None)), None);
    }

    #[test]
    fn the_cluster_autoscaler_writes_the_time_into_the_value() {
        let deleted = node("ToBeDeletedByClusterAutoscaler", "1764000000", None);
        assert_eq!(found(&deleted), Some(("Cluster Autoscaler", Some("2025-11-24T16:00:00Z".into()))));
        assert_eq!(found(&node("DeletionCandidateOfClusterAutoscaler", "1764000000", None)), None);
        assert_eq!(found(&node("dedicated", "1764000000", None)), None);
    }
}
