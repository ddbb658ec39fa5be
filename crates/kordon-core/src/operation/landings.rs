//! Where the replacements of removed pods are now.

use std::collections::{BTreeMap, BTreeSet};

use super::OperationProgress;
use crate::{
    cluster::{Cluster, Key, NodeName, OwnerKind, Pod, Uid},
    plan::PodPlan,
};
use kordon_time::{Span, Timestamp};

/// Precision of creation times: whole seconds.
const ROUNDING: Span = Span::from_secs(1);

/// The replacement of a removed pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LandedReplacement {
    pub pod: Key,
    /// Node of the replacement; `None` while the replacement is Pending.
    pub node: Option<NodeName>,
    pub is_ready: bool,
}

/// Returns the replacement of each removed pod that has one, by the key of the removed pod.
///
/// A new pod with the same name, as in a StatefulSet, replaces the removed pod. Nothing records which of the other new
/// pods replaces which removed pod. The new pods of an owner are therefore assigned to its removed pods in order of
/// creation.
pub fn landings(
    progress: &OperationProgress,
    planned: &[PodPlan],
    cluster: &Cluster,
) -> BTreeMap<Key, LandedReplacement> {
    let own: BTreeSet<&Uid> = progress.pods.iter().map(|pod| &pod.uid).collect();
    let removed = progress.pods.iter().filter(|pod| pod.stage.is_removed());
    let removed: BTreeSet<&Key> = removed.map(|pod| &pod.pod).collect();
    let mut by_owner: BTreeMap<(&str, &str, &str), Vec<&PodPlan>> = BTreeMap::new();
    for pod in planned.iter().filter(|pod| removed.contains(&pod.pod)) {
        if let Some((kind, name)) = &pod.owner {
            by_owner.entry((&pod.pod.namespace, kind.as_str(), name)).or_default().push(pod);
        }
    }
    let mut landings = BTreeMap::new();
    for pods in by_owner.values() {
        let since = progress.started_at - ROUNDING;
        let mut came: Vec<&Pod> = created_since(pods[0], cluster, since);
        came.retain(|pod| !own.contains(&pod.uid));
        came.sort_by_key(|pod| (pod.created.as_nanos(), &pod.key));
        let (named, others): (Vec<&PodPlan>, Vec<&PodPlan>) =
            pods.iter().copied().partition(|pod| came.iter().any(|new| new.key == pod.pod));
        for pod in named {
            let place = came.iter().position(|new| new.key == pod.pod);
            landings.extend(place.map(|place| (pod.pod.clone(), landed(came.remove(place)))));
        }
        landings.extend(others.iter().zip(came).map(|(pod, new)| (pod.pod.clone(), landed(new))));
    }
    landings
}

/// Returns the pods that have the same owner as `pod` and were created at `since` or later.
fn created_since<'a>(pod: &PodPlan, cluster: &'a Cluster, since: Timestamp) -> Vec<&'a Pod> {
    let Some((OwnerKind::Workload(kind), name)) = &pod.owner else { return Vec::new() };
    let mut workloads = cluster.workloads_in(*kind, &pod.pod.namespace);
    let Some(workload) = workloads.find(|workload| workload.key.name == *name) else { return Vec::new() };
    let pods = cluster.pods_owned_by(&workload.uid).filter(|pod| cluster.local(pod.created) >= since);
    pods.map(|pod| &**pod).collect()
}

fn landed(pod: &Pod) -> LandedReplacement {
    LandedReplacement { pod: pod.key.clone(), node: pod.node.clone(), is_ready: pod.is_ready() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        cluster::{Change, ObjectEvent, OperationId, Owner, Version, Workload, WorkloadKind, WorkloadStage},
        engine::ServerVersion,
        operation::{DrainPart, PodEnd, PodProgress, PodProgressStage},
        plan::{Action, Plan, RemovalOptions, TypicalEnvironment},
    };
    use kordon_time::ClusterTime;

    const STARTED: Timestamp = Timestamp::from_secs(1000);

    struct World(Cluster, u64);

    impl World {
        fn apply(&mut self, change: Change) {
            self.0.apply(change, &mut Vec::new());
        }

        fn version(&mut self) -> Version {
            self.1 += 1;
            Version(self.1)
        }

        fn workload(&mut self, kind: WorkloadKind, name: &str) {
            let workload = Workload {
                kind,
                key: Key::new("shop", name),
                uid: Uid::from(name),
                version: self.version(),
                replicas: Some(2),
                selector: None,
                owner: None,
                replaces_only_failed: false,
                is_recreated: false,
                reboot_locks: Vec::new(),
                stateful: None,
                job: None,
                template: None,
                stage: WorkloadStage::Active,
            };
            self.apply(Change::Workload(kind, ObjectEvent::Applied(workload)));
        }

        fn pod(
            &mut self,
            owner: (WorkloadKind, &str),
            name: &str,
            uid: &str,
            created: i64,
            node: Option<&str>,
        ) {
            let (kind, owner) = (OwnerKind::Workload(owner.0), owner.1);
            let pod = Pod {
                key: Key::new("shop", name),
                uid: uid.into(),
                version: self.version(),
                created: ClusterTime::new(Timestamp::from_secs(created)),
                owner: Some(Owner { kind, name: owner.into(), uid: Uid::from(owner) }.into()),
                node: node.map(Into::into),
                ..Pod::default()
            };
            self.apply(Change::Pod(ObjectEvent::Applied(pod)));
        }
    }

    #[test]
    fn replacements_are_those_created_since_by_name_or_in_order_of_time() {
        let mut world = World(Cluster::default(), 0);
        for change in [ObjectEvent::ListStarted, ObjectEvent::ListDone] {
            world.apply(Change::Node(change));
        }
        for change in [ObjectEvent::ListStarted, ObjectEvent::ListDone] {
            world.apply(Change::Pod(change));
        }
        let (web, data) = ((WorkloadKind::ReplicaSet, "web"), (WorkloadKind::StatefulSet, "data"));
        world.workload(web.0, web.1);
        world.workload(data.0, data.1);
        for (name, created) in [("web-1", 10), ("web-2", 20), ("web-9", 30)] {
            world.pod(web, name, name, created, Some("a"));
        }
        world.pod(data, "data-0", "data-0", 10, Some("a"));
        let pods = ["web-1", "web-2", "data-0"].map(|name| Key::new("shop", name));
        let action = Action::Evict { pods: pods.to_vec(), options: RemovalOptions::default() };
        let environment = TypicalEnvironment { cluster: &world.0, now: STARTED };
        let version = ServerVersion::new(1, 36);
        let plan = Plan::new(action, &world.0, &environment, version, STARTED).expect("a plan");
        let progress = OperationProgress {
            id: OperationId::default(),
            started_at: STARTED,
            ended: None,
            nodes: Vec::new(),
            pods: pods
                .iter()
                .map(|pod| PodProgress {
                    pod: pod.clone(),
                    uid: (*pod.name).into(),
                    node: Some("a".into()),
                    stage: PodProgressStage::Ended(PodEnd::Gone),
                    part: Some(DrainPart::Gone),
                    tries: 1,
                    late: false,
                })
                .collect(),
            surges: Vec::new(),
        };
        assert!(landings(&progress, &plan.pods, &world.0).is_empty());
        world.pod(web, "web-4", "web-4", 1005, None);
        world.pod(web, "web-3", "web-3", 1001, Some("b"));
        world.pod(data, "data-0", "data-0-again", 1003, Some("c"));
        let landed = landings(&progress, &plan.pods, &world.0);
        let of = |name: &str| {
            let landed = &landed[&Key::new("shop", name)];
            (landed.pod.name.to_string(), landed.node.as_ref().map(ToString::to_string))
        };
        assert_eq!(of("web-1"), ("web-3".into(), Some("b".into())));
        assert_eq!(of("web-2"), ("web-4".into(), None));
        assert_eq!(of("data-0"), ("data-0".into(), Some("c".into())));
    }
}
