//! Pods of a plan, grouped by workload: how many pods of each workload leave, where their replacements land, and what
//! is at risk.

use std::collections::BTreeMap;

use super::{
    landing::Landing,
    pod_plan::PodPlan,
    totals::{PodCount, parts},
};
use crate::cluster::{Name, Namespace, NodeName, OwnerKind};
use kordon_time::Timestamp;

/// Maximum number of nodes that are listed by name as landings of a workload. Further nodes are only counted.
const NAMED: usize = 2;

/// The pods of one workload in a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedWorkload {
    pub namespace: Namespace,
    /// The owner, as the pods' owner references name it.
    pub owner: (OwnerKind, Name),
    /// Indexes of the workload's pods in the list `pods` of [`by_workload`], in the order of its argument `order`.
    pub pods: Vec<usize>,
    /// Number of the workload's pods in each category. Each pod is in one category.
    pub parts: Vec<(PodCount, usize)>,
    landings: BTreeMap<NodeName, usize>,
    pending: usize,
    risks: BTreeMap<String, usize>,
}

/// Groups pods by owner. `order` has the indexes of the pods to group. Groups are in the order of their first pods.
/// Pods without an owner are left out.
pub fn by_workload(pods: &[PodPlan], order: &[usize], made: Timestamp) -> Vec<PlannedWorkload> {
    let mut places: BTreeMap<(&Namespace, &(OwnerKind, Name)), usize> = BTreeMap::new();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for place in order {
        let Some(owner) = &pods[*place].owner else { continue };
        let group = *places.entry((&pods[*place].pod.namespace, owner)).or_insert(groups.len());
        if group == groups.len() {
            groups.push(Vec::new());
        }
        groups[group].push(*place);
    }
    groups.into_iter().filter_map(|group| PlannedWorkload::new(pods, group, made)).collect()
}

impl PlannedWorkload {
    fn new(all: &[PodPlan], pods: Vec<usize>, made: Timestamp) -> Option<Self> {
        let first = &all[*pods.first()?];
        let (namespace, owner) = (first.pod.namespace.clone(), first.owner.clone()?);
        let own = || pods.iter().map(|place| &all[*place]);
        let mut landings = BTreeMap::new();
        let mut pending = 0;
        let mut risks = BTreeMap::new();
        for pod in own() {
            match &pod.landing {
                Some(Landing::Node { node, .. }) => *landings.entry(node.clone()).or_default() += 1,
                Some(Landing::Pending { .. }) => pending += 1,
                Some(Landing::Unknown | Landing::Rejected { .. }) | None => {}
            }
            let lost = pod.lost.map(|why| why.risk().to_owned());
            let times_out = pod.times_out.map(|_| "times out".to_owned());
            let warnings = pod.warnings.iter().map(ToString::to_string);
            for risk in lost.into_iter().chain(times_out).chain(warnings) {
                *risks.entry(risk).or_default() += 1;
            }
        }
        let parts = parts(own(), made);
        Some(Self { namespace, owner, parts, landings, pending, risks, pods })
    }

    /// Formats where replacements land: `n-4 ×3, n-2, 1 more node, 2 Pending`; empty if no replacement is predicted.
    pub fn destinations(&self) -> String {
        let mut nodes: Vec<(&NodeName, usize)> =
            self.landings.iter().map(|(node, pods)| (node, *pods)).collect();
        nodes.sort_by_key(|(_, pods)| std::cmp::Reverse(*pods));
        let more = match nodes.len().saturating_sub(NAMED) {
            0 => None,
            1 => Some("1 more node".to_owned()),
            more => Some(format!("{more} more nodes")),
        };
        let named = nodes.into_iter().take(NAMED).map(|(node, pods)| times(node, pods));
        let pending = (self.pending > 0).then(|| format!("{} Pending", self.pending));
        named.chain(more).chain(pending).collect::<Vec<_>>().join(", ")
    }

    /// Formats what is at risk: `emptyDir data is lost ×3 · only replica`.
    pub fn risks(&self) -> String {
        let risks = self.risks.iter().map(|(risk, pods)| times(risk, *pods));
        risks.collect::<Vec<_>>().join(" · ")
    }
}

fn times(what: &str, count: usize) -> String {
    if count > 1 { format!("{what} ×{count}") } else { what.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        cluster::{Key, Owner, Pod, Uid, WorkloadKind},
        plan::{LeaveReason, PodWarning, Verdict},
    };

    const MADE: Timestamp = Timestamp::from_secs(0);

    fn pod(name: &str, owner: Option<&str>, verdict: Verdict, node: Option<&str>) -> PodPlan {
        let owner = owner.map(|name| Owner {
            kind: OwnerKind::Workload(WorkloadKind::ReplicaSet),
            name: name.into(),
            uid: Uid::from(name),
        });
        let pod = Pod { key: Key::new("shop", name), owner: owner.map(Into::into), ..Pod::default() };
        let landing = node.map(|node| Landing::Node { node: node.into(), why: "best".into() });
        PodPlan { landing, ..PodPlan::new(&pod, verdict) }
    }

    #[test]
    fn pods_of_one_workload_are_one_group_with_their_destinations_and_risks() {
        let leaves = || Verdict::Leaves(LeaveReason::Deleted);
        let mut pods = vec![
            pod("web-1", Some("web"), leaves(), Some("n-4")),
            pod("bare", None, leaves(), None),
            pod("cart-1", Some("cart"), Verdict::Tolerates, None),
            pod("web-2", Some("web"), leaves(), Some("n-2")),
            pod("web-3", Some("web"), leaves(), Some("n-4")),
            pod("web-4", Some("web"), Verdict::WaitsForNamespace, Some("n-3")),
        ];
        pods[3].warnings.insert(PodWarning::EmptyDirData);
        pods[5].landing = Some(Landing::Pending { why: "no node".into() });
        let groups = by_workload(&pods, &[5, 0, 1, 2, 3, 4], MADE);
        let names: Vec<(&str, &[usize])> =
            groups.iter().map(|group| (&*group.owner.1, &*group.pods)).collect();
        assert_eq!(names, [("web", &[5, 0, 3, 4][..]), ("cart", &[2])]);
        let web = &groups[0];
        assert_eq!(web.parts, [(PodCount::LeaveNow, 3), (PodCount::Wait, 1)]);
        assert_eq!(web.destinations(), "n-4 ×2, n-2, 1 Pending");
        assert_eq!(web.risks(), "emptyDir data is lost");
        assert_eq!((groups[1].destinations(), groups[1].risks()), (String::new(), String::new()));
    }
}
