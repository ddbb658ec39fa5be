//! Drains and reboots by components of other projects, and who cordoned a node, as far as the Node object shows them.

use super::{
    Cluster, Node, Pod, Taint,
    drain_markers::{CLUSTER_API, DrainMarker, DrainStage, MACHINE, Meaning},
    taint_owner,
    upgrade_plan::{KUBECTL, SUC, UpgradePlan},
};
use kordon_time::Timestamp;

/// A drain, reboot or maintenance by a component of another project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignDrain {
    /// The project, as in `Karpenter`; `None` if the mark on the node does not name it.
    pub by: Option<&'static str>,
    pub stage: DrainStage,
    /// What shows the drain: the mark on the node, such as `taint karpenter.sh/disrupted`, or the evictions of its pods.
    pub evidence: String,
    /// Start of the drain; `None` if the mark on the node has no time.
    pub since: Option<Timestamp>,
}

impl ForeignDrain {
    /// Returns the drain of a node by its mark; `None` if no mark of a known component says that the node is being drained or
    /// rebooted, or is kept empty.
    pub fn find(cluster: &Cluster, node: &Node) -> Option<Self> {
        let (stage, marker) = marker(node)?;
        let since = marker.time(node).map(|since| cluster.local(since));
        Some(Self { by: named(marker.project), stage, evidence: marker.evidence(), since })
    }

    /// The drain of a cordoned node without a mark. It is the work of the client that cordoned the node, as far as its
    /// field manager names it. A controller `manager` that drains a node of Cluster API counts as Cluster API.
    pub fn without_mark(cluster: &Cluster, node: &Node, evidence: String, since: Option<Timestamp>) -> Self {
        let manager = node.cordoned_by().map(|by| by.manager.as_str());
        let of_upgrade = || UpgradePlan::find(cluster, node)?.cordons(manager?).map(|_| SUC);
        let of_kubectl = || (manager == Some(KUBECTL)).then_some(KUBECTL);
        let of_machine =
            || (manager == Some("manager") && node.annotation(MACHINE).is_some()).then_some(CLUSTER_API);
        let of_manager = manager.and_then(DrainMarker::project_of_manager);
        let by = of_manager.or_else(of_upgrade).or_else(of_kubectl).or_else(of_machine);
        Self { by, stage: DrainStage::Draining, evidence, since }
    }

    /// The stage of the node's drain, by its mark; `None` if no component of another project drains it.
    pub fn stage(node: &Node) -> Option<DrainStage> {
        marker(node).map(|(stage, _)| stage)
    }

    /// Whether a component of another project removes pods from the node. The rest of its work, such as a reboot, does
    /// not count.
    pub fn removes_pods(node: &Node) -> bool {
        matches!(Self::stage(node), Some(DrainStage::Draining | DrainStage::Maintaining))
    }
}

/// What a drain by another project does with a pod on the drained node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodTreatment {
    Evicted,
    /// The drain does not evict the pod, but waits until the pod has ended or somebody deletes it.
    Awaited,
    /// The drain neither evicts the pod nor waits for it.
    Ignored,
}

impl PodTreatment {
    /// Returns what the drain of a pod's node does with the pod, whichever project drains the node. Karpenter's rules
    /// are those of kubernetes-sigs/karpenter v1.14.1, `pkg/utils/pod/scheduling.go` (`IsEvictable`, `IsDrainable`).
    /// A job of the system-upgrade-controller does not evict its own pod.
    pub fn find(node: &Node, pod: &Pod) -> Self {
        let by_karpenter = marker(node).is_some_and(|(_, marker)| marker.project == taint_owner::KARPENTER);
        if !by_karpenter {
            return if UpgradePlan::spares(node, pod) { Self::Ignored } else { Self::Evicted };
        }
        let is_tolerated =
            |taint: &Taint| pod.tolerations.iter().any(|toleration| toleration.tolerates(taint));
        let is_mark = |taint: &&Taint| taint_owner::DISRUPTED.contains(&taint.key.as_str());
        if node.taints.iter().filter(is_mark).any(is_tolerated) {
            Self::Ignored
        } else if pod.kept_from.karpenter() {
            Self::Awaited
        } else {
            Self::Evicted
        }
    }
}

/// The most disruptive stage among the marks of the node, with the mark that shows this stage.
fn marker(node: &Node) -> Option<(DrainStage, &'static DrainMarker)> {
    let stage = |marker: &'static DrainMarker| match marker.meaning {
        Meaning::Stage(stage) => Some((stage, marker)),
        Meaning::Note(_) | Meaning::Cordon => None,
    };
    DrainMarker::of(node).filter_map(stage).min_by_key(|(stage, _)| *stage)
}

fn named(project: &'static str) -> Option<&'static str> {
    Some(project).filter(|project| !project.is_empty())
}

/// A note about the work of another project: work that is planned, or work that is not a drain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignNote {
    /// The note in words, such as `replacement planned by Cluster API (taint
    /// node.cluster.x-k8s.io/outdated-revision)`.
    pub text: String,
    /// When the mark was set or the work began, or the date of planned maintenance; `None` if the mark does not have a
    /// time.
    pub at: Option<Timestamp>,
}

impl ForeignNote {
    /// Returns the notes about other projects' work on a node.
    pub fn all(cluster: &Cluster, node: &Node) -> Vec<Self> {
        let note = |marker: &'static DrainMarker| {
            let Meaning::Note(words) = marker.meaning else { return None };
            let text = format!("{words} ({})", marker.evidence());
            Some(Self { text, at: marker.time(node).map(|at| cluster.local(at)) })
        };
        let upgrade = UpgradePlan::find(cluster, node).map(|upgrade| {
            let at = upgrade.began().map(|at| cluster.local(at));
            Self { text: upgrade.text(), at }
        });
        DrainMarker::of(node).filter_map(note).chain(upgrade).collect()
    }
}

/// Who cordoned a node, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CordonOrigin {
    /// Who cordoned the node, in words that follow `cordoned by`; `None` if unknown.
    pub by: Option<String>,
    /// When the node was cordoned; `None` if unknown.
    pub at: Option<Timestamp>,
    /// Whether `at` is only the time of the field manager's latest write, so that the cordon may be older.
    pub is_latest: bool,
}

impl CordonOrigin {
    /// Returns who cordoned a node, from kordon's annotation or, without it, from `metadata.managedFields`. `None` if
    /// the node is not cordoned.
    pub fn find(cluster: &Cluster, node: &Node) -> Option<Self> {
        if !node.unschedulable {
            return None;
        }
        if let Some(note) = node.cordon() {
            return Some(Self { by: Some(note.who()), at: Some(note.at), is_latest: false });
        }
        let tainted = node.cordon_taint().and_then(|taint| taint.time_added);
        let written = node.cordoned_by().and_then(|by| by.at);
        let by = node.cordoned_by().map(|by| {
            let manager = match DrainMarker::project_of_manager(&by.manager) {
                Some(project) if project != by.manager.as_str() => format!("{project} ({})", by.manager),
                Some(_) | None => {
                    let upgrade = UpgradePlan::find(cluster, node);
                    let by_upgrade = upgrade.and_then(|upgrade| upgrade.cordons(&by.manager));
                    by_upgrade.unwrap_or_else(|| by.manager.to_string())
                }
            };
            if by.applied { format!("{manager} (server-side apply)") } else { manager }
        });
        let at = tainted.or(written).map(|at| cluster.local(at));
        Some(Self { by, at, is_latest: tainted.is_none() && written.is_some() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Taint, TaintEffect};
    use kordon_time::ClusterTime;

    fn node(key: &str, value: &str, added: Option<&str>) -> Node {
        let time_added = added.map(|text| ClusterTime::parse(text).expect("a time"));
        let taint =
            Taint { key: key.into(), value: value.into(), effect: TaintEffect::NoSchedule, time_added };
        Node { taints: [taint].into(), ..Node::default() }
    }

    fn found(node: &Node) -> Option<(&'static str, Option<String>)> {
        let drain = ForeignDrain::find(&Cluster::default(), node)?;
        assert_eq!((ForeignDrain::stage(node), drain.stage), (Some(drain.stage), DrainStage::Draining));
        Some((drain.by?, drain.since.map(Timestamp::to_time)))
    }

    /// The Node object of `tests/cases/11-foreign-drain-karpenter.json`.
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

    #[test]
    fn the_most_disruptive_of_several_marks_counts() {
        let taint = |key: &str| Taint { key: key.into(), ..Taint::default() };
        let taints = ["karpenter.sh/disrupted", "remediation.medik8s.io/self-node-remediation"].map(taint);
        let node = Node { taints: taints.into(), ..Node::default() };
        assert_eq!(ForeignDrain::stage(&node), Some(DrainStage::Rebooting));
    }
}
