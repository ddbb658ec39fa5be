//! The embedded cluster as a client sees it: who lives in it does what it should. On a paused clock.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{Node, Pod},
    policy::v1::PodDisruptionBudget,
};
use kordon::{
    clock::Clock,
    demo::{
        api::{self, Api},
        scenario::Scenario,
        world::{self, World},
    },
    time::{Span, Timestamp},
};
use kube::{
    Client, ResourceExt,
    api::{DeleteParams, EvictParams, ListParams},
};
use tokio_util::sync::CancellationToken;

/// A world and a client of it.
struct Stage {
    clock: Clock,
    client: Client,
    cancel: CancellationToken,
    world: World,
}

impl Stage {
    fn new(scenario: &str, seed: u64) -> Self {
        let clock = Clock::new(Timestamp::from_secs(1_767_225_600), 1.0);
        let api = Api::new(clock, api::Options { seed, ..api::Options::default() });
        let cancel = CancellationToken::new();
        let scenario = Scenario::named(scenario).expect("a scenario");
        let options =
            world::Options { scenario, seed, pod_changes_per_second: Some(0.0), ..world::Options::default() };
        let world = World::start(&api, clock, &options, cancel.clone());
        Self { clock, client: api.client(), cancel, world }
    }

    async fn pass(&self, seconds: i64) {
        self.clock.sleep(Span::from_secs(seconds)).await;
    }

    async fn nodes(&self) -> BTreeMap<String, Node> {
        let api = kube::Api::<Node>::all(self.client.clone());
        let listed = api.list(&ListParams::default()).await.expect("a list of nodes");
        listed.into_iter().map(|node| (node.name_any(), node)).collect()
    }

    async fn pods(&self) -> Vec<Pod> {
        let api = kube::Api::<Pod>::all(self.client.clone());
        api.list(&ListParams::default()).await.expect("a list of pods").items
    }

    /// When each node's lease was last renewed.
    async fn renewals(&self) -> BTreeMap<String, String> {
        let api = kube::Api::<Lease>::namespaced(self.client.clone(), "kube-node-lease");
        let leases = api.list(&ListParams::default()).await.expect("a list of leases");
        let renewed = |lease: &Lease| lease.spec.as_ref()?.renew_time.as_ref().map(|time| time.0.to_string());
        leases.iter().filter_map(|lease| Some((lease.name_any(), renewed(lease)?))).collect()
    }

    async fn end(self) {
        self.cancel.cancel();
        self.world.stopped().await;
    }
}

fn owner(pod: &Pod) -> Option<(String, String)> {
    pod.owner_references()
        .iter()
        .find(|owner| owner.controller == Some(true))
        .map(|o| (o.kind.clone(), o.name.clone()))
}

fn is_active(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    pod.metadata.deletion_timestamp.is_none() && !matches!(phase, Some("Succeeded" | "Failed"))
}

#[tokio::test(start_paused = true)]
async fn only_the_silent_node_stops_renewing() {
    let stage = Stage::new("silent-node", 1);
    stage.pass(30).await;
    let before = stage.renewals().await;
    stage.pass(30).await;
    let after = stage.renewals().await;
    let stale: Vec<&String> =
        before.iter().filter(|(node, at)| after.get(*node) == Some(at)).map(|(n, _)| n).collect();
    assert_eq!(stale.len(), 1, "{stale:?}");
    assert!(before.len() > 10);
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn every_node_of_a_lost_zone_falls_silent_and_comes_back() {
    let stage = Stage::new("zone-outage", 1);
    stage.pass(60).await;
    let (first, nodes) = (stage.renewals().await, stage.nodes().await);
    stage.pass(60).await;
    let second = stage.renewals().await;
    let zone = |node: &str| nodes[node].labels()["topology.kubernetes.io/zone"].clone();
    let silent: BTreeSet<String> =
        first.iter().filter(|(node, at)| second.get(*node) == Some(at)).map(|(n, _)| zone(n)).collect();
    assert_eq!(silent.len(), 1, "one zone: {silent:?}");
    stage.pass(600).await;
    let third = stage.renewals().await;
    assert!(second.iter().all(|(node, at)| third.get(node) != Some(at)), "all renew again");
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_pod_ends_and_its_replica_set_makes_another() {
    let stage = Stage::new("healthy", 1);
    stage.pass(5).await;
    let pods = stage.pods().await;
    let victim =
        pods.iter().find(|pod| owner(pod).is_some_and(|(kind, _)| kind == "ReplicaSet")).expect("one");
    let of_owner =
        |pods: &[Pod]| pods.iter().filter(|pod| owner(pod) == owner(victim) && is_active(pod)).count();
    let wanted = of_owner(&pods);
    let api = kube::Api::<Pod>::namespaced(stage.client.clone(), &victim.namespace().expect("a pod has one"));
    api.delete(&victim.name_any(), &DeleteParams::default()).await.expect("deletion begins");
    stage.pass(90).await;
    let now = stage.pods().await;
    assert!(now.iter().all(|pod| pod.uid() != victim.uid()), "its kubelet has ended it");
    assert_eq!(of_owner(&now), wanted);
    let bound = now
        .iter()
        .filter(|pod| owner(pod) == owner(victim))
        .all(|pod| pod.spec.as_ref().is_some_and(|s| s.node_name.is_some()));
    assert!(bound, "the scheduler has placed the new one");
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_on_a_silent_node_stays_terminating() {
    let stage = Stage::new("silent-node", 1);
    stage.pass(15).await;
    let before = stage.renewals().await;
    stage.pass(15).await;
    let after = stage.renewals().await;
    let silent = before.iter().find(|(node, at)| after.get(*node) == Some(at)).expect("a silent node").0;
    let on_it = |pod: &&Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref()) == Some(silent);
    let pods = stage.pods().await;
    let victim = pods
        .iter()
        .filter(on_it)
        .find(|pod| owner(pod).is_some_and(|(kind, _)| kind == "ReplicaSet"))
        .expect("one");
    let api = kube::Api::<Pod>::namespaced(stage.client.clone(), &victim.namespace().expect("a pod has one"));
    api.delete(&victim.name_any(), &DeleteParams::default()).await.expect("deletion begins");
    stage.pass(600).await;
    let still = api.get(&victim.name_any()).await.expect("still there");
    assert!(still.metadata.deletion_timestamp.is_some());
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_exhausted_budget_refuses_an_eviction() {
    let stage = Stage::new("healthy", 1);
    stage.pass(10).await;
    let budgets = kube::Api::<PodDisruptionBudget>::all(stage.client.clone());
    let budgets = budgets.list(&ListParams::default()).await.expect("budgets").items;
    let pods = stage.pods().await;
    let covers = |budget: &PodDisruptionBudget, pod: &Pod| {
        let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref()?.match_labels.clone());
        budget.namespace() == pod.namespace()
            && selector
                .is_some_and(|labels| labels.iter().all(|(key, value)| pod.labels().get(key) == Some(value)))
    };
    let allowed =
        |budget: &PodDisruptionBudget| budget.status.as_ref().map_or(0, |status| status.disruptions_allowed);
    let budget = budgets
        .iter()
        .find(|budget| allowed(budget) > 0 && pods.iter().any(|pod| covers(budget, pod)))
        .expect("one with room");
    let api =
        kube::Api::<Pod>::namespaced(stage.client.clone(), &budget.namespace().expect("a budget has one"));
    let mut answers = Vec::new();
    for pod in pods.iter().filter(|pod| covers(budget, pod)) {
        match api.evict(&pod.name_any(), &EvictParams::default()).await {
            Ok(_) => answers.push(201),
            Err(kube::Error::Api(status)) => answers.push(status.code),
            Err(other) => panic!("{other}"),
        }
    }
    let granted = answers.iter().take_while(|code| **code == 201).count();
    assert_eq!(i32::try_from(granted).expect("few"), allowed(budget), "{answers:?}");
    assert!(answers[granted..].iter().all(|code| *code == 429), "{answers:?}");
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_upgrade_reboots_workers_into_the_new_kernel_one_by_one() {
    let stage = Stage::new("kernel-upgrade", 1);
    let kernels = |nodes: &BTreeMap<String, Node>| -> BTreeMap<String, usize> {
        let kernel =
            |node: &Node| node.status.as_ref()?.node_info.as_ref().map(|info| info.kernel_version.clone());
        nodes.values().filter_map(kernel).fold(BTreeMap::new(), |mut counts, kernel| {
            *counts.entry(kernel).or_default() += 1;
            counts
        })
    };
    let mut seen = BTreeSet::new();
    for _ in 0..60 {
        stage.pass(10).await;
        let nodes = stage.nodes().await;
        let cordoned = nodes
            .values()
            .filter(|node| node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true));
        assert!(cordoned.count() <= 1, "one at a time");
        seen.insert(kernels(&nodes).get("6.8.0-58-generic").copied().unwrap_or(0));
    }
    assert!(seen.len() > 3, "more and more of them: {seen:?}");
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_world() {
    let names = async |seed| {
        let stage = Stage::new("default", seed);
        let pods: Vec<String> =
            stage.pods().await.iter().map(|pod| format!("{} {:?}", pod.name_any(), pod.uid())).collect();
        stage.end().await;
        pods
    };
    let (first, again, other) = (names(7).await, names(7).await, names(8).await);
    assert_eq!(first, again);
    assert_ne!(first, other);
}
