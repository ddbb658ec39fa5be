//! The kubelets, controllers and incidents of the demo cluster, read through `kube::Client`, on a paused clock.

use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt;
use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet, StatefulSet},
    coordination::v1::Lease,
    core::v1::{Node, Pod},
    policy::v1::{Eviction, PodDisruptionBudget},
};
use kordon::{
    k8s::connect::Connection,
    run::{controller::Controller, demo_scheduler::PlacementScheduler},
};
use kordon_clock::Clock;
use kordon_core::engine::{ServerVersion, Settings};
use kordon_demo::{
    api::{self, Api as Server},
    scenario::Scenario,
    world::{NodeFault, PressureLevel, Scheduling, World, WorldOptions},
};
use kordon_time::{Span, Timestamp};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

#[tokio::test(start_paused = true)]
async fn leases_are_renewed_every_ten_seconds() {
    let cluster = DemoCluster::of("healthy");
    cluster.pass(30).await;
    for sample in 0..5 {
        for (node, age) in cluster.lease_ages().await {
            assert!(age < Span::from_millis(10_500), "sample {sample}: {node} renewed {age} ago");
        }
        cluster.pass(7).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_node_renews_nothing_until_it_is_back_and_then_reports_itself_ready() {
    let cluster = DemoCluster::of("healthy");
    cluster.pass(20).await;
    cluster.world.inject("general-1a-01", NodeFault::Disconnect).await;
    cluster.pass(60).await;
    let ages = cluster.lease_ages().await;
    assert!(ages["general-1a-01"] >= Span::from_secs(59), "{:?}", ages["general-1a-01"]);
    assert!(ages["general-1a-02"] < Span::from_secs(11));

    // Writes what the node lifecycle controller would write.
    let unknown = json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]}});
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    nodes
        .patch_status("general-1a-01", &PatchParams::default(), &Patch::Strategic(unknown))
        .await
        .expect("patched");
    cluster.pass(15).await;
    assert_eq!(cluster.condition("general-1a-01", "Ready").await, "Unknown");

    cluster.world.inject("general-1a-01", NodeFault::Reconnect).await;
    cluster.pass(3).await;
    assert_eq!(cluster.condition("general-1a-01", "Ready").await, "True");
    assert!(cluster.lease_ages().await["general-1a-01"] < Span::from_secs(4));
}

#[tokio::test(start_paused = true)]
async fn a_node_without_container_runtime_or_under_pressure_says_so_within_ten_seconds() {
    let cluster = DemoCluster::of("healthy");
    cluster.pass(1).await;
    cluster.world.inject("general-1b-01", NodeFault::StopRuntime).await;
    cluster.world.inject("general-1c-01", NodeFault::Pressure("DiskPressure", PressureLevel::High)).await;
    cluster.pass(11).await;
    assert_eq!(cluster.condition("general-1b-01", "Ready").await, "False");
    assert_eq!(cluster.condition("general-1c-01", "DiskPressure").await, "True");
    assert_eq!(cluster.condition("general-1c-01", "Ready").await, "True");
    cluster.world.inject("general-1b-01", NodeFault::StartRuntime).await;
    cluster.pass(11).await;
    assert_eq!(cluster.condition("general-1b-01", "Ready").await, "True");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_pod_ends_within_its_grace_and_its_replica_set_replaces_it_at_once() {
    let cluster = DemoCluster::of("healthy");
    cluster.pass(5).await;
    let victims: Vec<Pod> = cluster.pods("payments", "api").await;
    assert_eq!(victims.len(), 5);
    for pod in &victims {
        cluster.delete(pod).await;
    }
    cluster.pass(2).await;
    let now = cluster.pods("payments", "api").await;
    assert_eq!(now.iter().filter(|pod| active(pod)).count(), 5, "replaced while the old ones still end");
    let mut lasted = BTreeSet::new();
    for second in 2..=62 {
        let left = cluster.pods("payments", "api").await;
        let old = left.iter().filter(|pod| pod.metadata.deletion_timestamp.is_some()).count();
        lasted.insert((old, second));
        cluster.pass(1).await;
    }
    assert!(lasted.iter().any(|(old, _)| *old > 0), "all of them ended within two seconds");
    let left = cluster.pods("payments", "api").await;
    assert_eq!(left.len(), 5, "grace is 60 s");
    assert!(left.iter().all(|pod| ready(pod) && active(pod)));
}

#[tokio::test(start_paused = true)]
async fn pods_on_a_silent_node_stay_terminating_until_it_is_back() {
    let cluster = DemoCluster::of("healthy");
    cluster.pass(5).await;
    let pod = cluster.on_node("general-1a-01", "ReplicaSet").await.remove(0);
    cluster.world.inject("general-1a-01", NodeFault::Disconnect).await;
    cluster.pass(1).await;
    cluster.delete(&pod).await;
    cluster.pass(300).await;
    let still = cluster.pod(&pod).await.expect("nobody confirmed its end");
    assert_eq!(still.uid(), pod.uid());
    assert!(still.metadata.deletion_timestamp.is_some());
    cluster.world.inject("general-1a-01", NodeFault::Reconnect).await;
    cluster.pass(pod.spec.as_ref().and_then(|s| s.termination_grace_period_seconds).unwrap_or(30) + 3).await;
    assert!(cluster.pod(&pod).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn pods_that_were_marked_not_ready_are_ready_again_soon_after_their_node_is_back() {
    let cluster = DemoCluster::of("healthy");
    cluster.pass(5).await;
    cluster.world.inject("general-1b-02", NodeFault::Disconnect).await;
    cluster.pass(1).await;
    let pods = cluster.on_node("general-1b-02", "ReplicaSet").await;
    for pod in &pods {
        let mark = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
        let api: Api<Pod> = Api::namespaced(cluster.client.clone(), &pod.namespace().expect("namespaced"));
        api.patch_status(&pod.name_any(), &PatchParams::default(), &Patch::Strategic(mark))
            .await
            .expect("marked");
    }
    cluster.pass(30).await;
    assert!(cluster.on_node("general-1b-02", "ReplicaSet").await.iter().all(|pod| !ready(pod)));
    cluster.world.inject("general-1b-02", NodeFault::Reconnect).await;
    cluster.pass(5).await;
    let after = cluster.on_node("general-1b-02", "ReplicaSet").await;
    assert!(!after.is_empty() && after.iter().all(ready));
}

#[tokio::test(start_paused = true)]
async fn a_stateful_set_waits_for_the_old_object_before_it_makes_the_new_one() {
    let cluster = DemoCluster::of("healthy");
    cluster.pass(5).await;
    let redis = |cluster: &DemoCluster| Api::<Pod>::namespaced(cluster.client.clone(), "shop");
    let old = redis(&cluster).get("redis-1").await.expect("there from the beginning");
    let node = old.spec.as_ref().and_then(|spec| spec.node_name.clone()).expect("bound");
    let cordon = Patch::Merge(json!({"spec": {"unschedulable": true}}));
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    nodes.patch(&node, &PatchParams::default(), &cordon).await.expect("no controller taints it here");
    cluster.world.inject(&node, NodeFault::Disconnect).await;
    cluster.pass(1).await;
    cluster.delete(&old).await;
    cluster.pass(120).await;
    assert_eq!(redis(&cluster).get("redis-1").await.expect("held by its node").uid(), old.uid());

    // A user deletes the pod by force.
    redis(&cluster).delete("redis-1", &DeleteParams::default().grace_period(0)).await.expect("deleted");
    cluster.pass(10).await;
    let new = redis(&cluster).get("redis-1").await.expect("made again");
    assert_ne!(new.uid(), old.uid());
    assert!(ready(&new));
}

#[tokio::test(start_paused = true)]
async fn budgets_are_kept_and_evictions_beyond_them_are_refused() {
    let cluster = DemoCluster::of("healthy");
    cluster.pass(5).await;
    let budgets: Api<PodDisruptionBudget> = Api::all(cluster.client.clone());
    let numbers = |budget: &PodDisruptionBudget| {
        let status = budget.status.clone().expect("synced");
        (status.expected_pods, status.current_healthy, status.desired_healthy, status.disruptions_allowed)
    };
    let all: BTreeMap<String, (i32, i32, i32, i32)> = budgets
        .list(&ListParams::default())
        .await
        .expect("listed")
        .iter()
        .map(|budget| {
            (format!("{}/{}", budget.namespace().unwrap_or_default(), budget.name_any()), numbers(budget))
        })
        .collect();
    assert_eq!(all["shop/frontend"], (9, 9, 6, 3));
    assert_eq!(all["shop/cart"], (5, 5, 4, 1));
    assert_eq!(all["payments/api"], (5, 5, 4, 1));
    assert_eq!(all["monitoring/grafana"], (1, 1, 1, 0));
    assert_eq!(all["search/elastic"], (5, 5, 4, 1));

    let pods = cluster.pods("payments", "api").await;
    cluster.evict(&pods[0]).await.expect("one may go");
    let refused = cluster.evict(&pods[1]).await.expect_err("no second one");
    let kube::Error::Api(status) = refused else { panic!("{refused}") };
    assert_eq!(status.code, 429);

    cluster.pass(15).await;
    cluster.evict(&pods[1]).await.expect("the first one's replacement is ready");
}

#[tokio::test(start_paused = true)]
async fn a_rollout_replaces_every_pod_and_never_has_too_few() {
    let cluster = DemoCluster::of("healthy");
    cluster.pass(5).await;
    let old: BTreeSet<String> =
        cluster.pods("shop", "frontend").await.iter().map(|pod| pod.name_any()).collect();
    let deployments: Api<Deployment> = Api::namespaced(cluster.client.clone(), "shop");
    let patch = json!({"spec": {"template": {"metadata": {"annotations": {"restarted": "now"}}}}});
    deployments.patch("frontend", &PatchParams::default(), &Patch::Merge(patch)).await.expect("patched");
    for _ in 0..90 {
        cluster.pass(1).await;
        let pods = cluster.pods("shop", "frontend").await;
        let serving = pods.iter().filter(|pod| ready(pod)).count();
        assert!(serving >= 7, "{serving} of 9 ready"); // maxUnavailable is 25 %
        let alive = pods.iter().filter(|pod| active(pod)).count();
        assert!(alive <= 12, "{alive} pods"); // maxSurge is 25 %
    }
    let new = cluster.pods("shop", "frontend").await;
    assert_eq!(new.len(), 9);
    assert!(new.iter().all(|pod| ready(pod) && !old.contains(&pod.name_any())));
    let status = deployments.get("frontend").await.expect("there").status.expect("written");
    assert_eq!(
        (status.updated_replicas, status.available_replicas, status.replicas),
        (Some(9), Some(9), Some(9))
    );
    let sets: Api<ReplicaSet> = Api::namespaced(cluster.client.clone(), "shop");
    let scaled: Vec<i32> = sets
        .list(&ListParams::default().labels("app.kubernetes.io/name=frontend"))
        .await
        .expect("listed")
        .iter()
        .filter_map(|set| set.spec.as_ref()?.replicas)
        .collect();
    assert_eq!(scaled.iter().sum::<i32>(), 9);
    assert_eq!(scaled.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_pod_without_a_place_says_so_and_is_bound_when_there_is_room() {
    let cluster = DemoCluster::of("healthy");
    cluster.pass(5).await;
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    let cordon = |on: bool| Patch::Merge(json!({"spec": {"unschedulable": on}}));
    let all = nodes.list(&ListParams::default()).await.expect("listed");
    for node in &all {
        nodes.patch(&node.name_any(), &PatchParams::default(), &cordon(true)).await.expect("cordoned");
    }
    cluster.pass(1).await;
    let victim = cluster.pods("shop", "catalog").await.remove(0);
    cluster.delete(&victim).await;
    cluster.pass(60).await;
    let waiting: Vec<Pod> =
        cluster.pods("shop", "catalog").await.into_iter().filter(|pod| !ready(pod)).collect();
    assert_eq!(waiting.len(), 1);
    let conditions = waiting[0].status.as_ref().and_then(|s| s.conditions.clone()).expect("conditions");
    let scheduled = conditions.iter().find(|c| c.type_ == "PodScheduled").expect("reported");
    assert_eq!(scheduled.reason.as_deref(), Some("Unschedulable"));
    nodes.patch("general-1a-01", &PatchParams::default(), &cordon(false)).await.expect("uncordoned");
    cluster.pass(10).await;
    let bound = cluster.pod(&waiting[0]).await.expect("there");
    assert_eq!(bound.spec.as_ref().and_then(|spec| spec.node_name.as_deref()), Some("general-1a-01"));
    assert!(ready(&bound));
}

#[tokio::test(start_paused = true)]
async fn orphans_of_a_deleted_node_are_collected_after_the_quarantine() {
    let cluster = DemoCluster::of("healthy");
    cluster.pass(5).await;
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    cluster.world.inject("spot-1a-01", NodeFault::Disconnect).await;
    nodes.delete("spot-1a-01", &DeleteParams::default()).await.expect("deleted");
    let there = cluster.on_node("spot-1a-01", "DaemonSet").await.len();
    assert!(there > 0);
    cluster.pass(38).await;
    assert_eq!(cluster.on_node("spot-1a-01", "DaemonSet").await.len(), there, "still in quarantine");
    cluster.pass(45).await;
    assert_eq!(cluster.on_node("spot-1a-01", "DaemonSet").await.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_holds_a_stopped_pod_until_its_owner_takes_it_off() {
    let cluster = DemoCluster::of("healthy");
    cluster.pass(5).await;
    let pod = cluster.pods("platform", "backup-agent").await.remove(0);
    cluster.delete(&pod).await;
    let mut held = false;
    for _ in 0..32 {
        cluster.pass(1).await;
        let now = cluster.pod(&pod).await.expect("held for twenty seconds after its end");
        held = now.status.and_then(|status| status.phase).as_deref() == Some("Succeeded");
        if held {
            break;
        }
    }
    assert!(held, "its grace is 30 s");
    cluster.pass(25).await;
    assert!(cluster.pod(&pod).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn the_first_scenario_starts_with_an_unknown_node_and_one_newly_silent() {
    let cluster = DemoCluster::of("default");
    cluster.pass(1).await;
    assert_eq!(cluster.condition("general-1b-01", "Ready").await, "Unknown");
    let node = cluster.node("general-1b-01").await;
    let taint = node.spec.as_ref().and_then(|s| s.taints.clone()).unwrap_or_default();
    let taint = taint.into_iter().find(|taint| taint.effect == "NoExecute").expect("NoExecute");
    let added = Timestamp::parse(&taint.time_added.expect("timeAdded").0.to_string()).expect("a time");
    let left = Span::from_secs(300) - cluster.clock.now().since(added);
    assert!(left > Span::from_secs(20) && left < Span::from_secs(60), "the first eviction comes in {left}");
    let ages = cluster.lease_ages().await;
    let silent: Vec<&String> = ages
        .iter()
        .filter(|(_, age)| **age > Span::from_secs(24) && **age < Span::from_secs(50))
        .map(|(node, _)| node)
        .collect();
    assert_eq!(silent, ["memory-1c-01"]);
    let before = cluster.pods("shop", "frontend").await.len();
    cluster.pass(9).await;
    assert!(cluster.pods("shop", "frontend").await.len() > before, "a rollout is on its way");
}

#[tokio::test(start_paused = true)]
async fn a_zone_outage_stops_one_zone_which_comes_back() {
    let cluster = DemoCluster::of("zone-outage");
    cluster.pass(70).await;
    for (node, age) in cluster.lease_ages().await {
        assert_eq!(age > Span::from_secs(45), node.contains("-1b-"), "{node} renewed {age} ago");
    }
    cluster.pass(560).await;
    assert!(cluster.lease_ages().await.values().all(|age| *age < Span::from_secs(11)));
}

#[tokio::test(start_paused = true)]
async fn a_partial_disruption_takes_more_than_55_percent_of_a_zone_of_more_than_50() {
    let cluster = DemoCluster::of("partial-disruption");
    cluster.pass(150).await;
    let ages = cluster.lease_ages().await;
    let zone: Vec<&Span> =
        ages.iter().filter(|(node, _)| node.contains("-1a-")).map(|(_, age)| age).collect();
    let lost = zone.iter().filter(|age| ***age > Span::from_secs(50)).count();
    assert!(zone.len() > 50, "{} nodes", zone.len());
    assert!(lost * 100 >= zone.len() * 55 && lost < zone.len(), "{lost} of {}", zone.len());
    let others = ages.iter().filter(|(node, age)| !node.contains("-1a-") && **age > Span::from_secs(11));
    assert_eq!(others.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_full_outage_stops_every_node_and_all_come_back() {
    let cluster = DemoCluster::of("full-outage");
    cluster.pass(70).await;
    assert!(cluster.lease_ages().await.values().all(|age| *age > Span::from_secs(50)));
    cluster.pass(200).await;
    assert!(cluster.lease_ages().await.values().all(|age| *age < Span::from_secs(11)));
}

#[tokio::test(start_paused = true)]
async fn a_kernel_upgrade_drains_reboots_and_uncordons_node_by_node() {
    let cluster = DemoCluster::of("kernel-upgrade");
    let kernel =
        |node: &Node| node.status.as_ref().and_then(|s| s.node_info.clone()).map(|info| info.kernel_version);
    let old = kernel(&cluster.node("general-1a-01").await);
    cluster.pass(12).await;
    let cordoned = cluster.cordoned().await;
    assert_eq!(cordoned.len(), 1);
    let first = cordoned.first().expect("one").clone();
    for _ in 0..400 {
        if cluster.cordoned().await.first() != Some(&first) {
            break;
        }
        cluster.pass(1).await;
    }
    let upgraded = cluster.node(&first).await;
    assert_ne!(kernel(&upgraded), old, "{first} runs the new kernel");
    assert_eq!(cluster.condition(&first, "Ready").await, "True");
    for _ in 0..60 {
        cluster.pass(10).await;
        assert!(cluster.cordoned().await.len() <= 1, "one at a time");
    }
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    let all = nodes.list(&ListParams::default()).await.expect("listed");
    let upgraded = all.iter().filter(|node| kernel(node) != old).count();
    assert!(upgraded > 3, "{upgraded} nodes in ten minutes");
}

#[tokio::test(start_paused = true)]
async fn under_memory_pressure_pods_are_evicted_in_the_order_of_their_kubelet() {
    let cluster = DemoCluster::with_control_plane("memory-pressure");
    cluster.pass(2).await;
    let leaking = cluster.pods("shop", "session-cache").await.remove(0);
    let node = leaking.spec.as_ref().and_then(|spec| spec.node_name.clone()).expect("bound");
    let summary = format!("/api/v1/nodes/{node}/proxy/stats/summary");
    let available = async || {
        cluster.read(&summary).await["node"]["memory"]["availableBytes"].as_i64().expect("a number") >> 20
    };
    assert!(available().await > 20_000);
    cluster.pass(78).await;
    let low = available().await;
    assert!((1000..1536).contains(&low), "{low} MiB");
    assert_eq!(cluster.condition(&node, "MemoryPressure").await, "True");
    let tainted = cluster.node(&node).await.spec.and_then(|spec| spec.taints).unwrap_or_default();
    assert!(tainted.iter().any(|taint| taint.key == "node.kubernetes.io/memory-pressure"));
    assert!(cluster.events("Evicted").await.is_empty(), "the grace period of the soft threshold runs");

    let predicted = cluster.memory_ranking(&node).await;
    cluster.pass(170).await;
    let evicted: Vec<Value> = cluster.events("Evicted").await;
    let order: Vec<&str> =
        evicted.iter().filter_map(|event| event["involvedObject"]["name"].as_str()).collect();
    assert!(order.len() >= 3, "{order:?}");
    assert_eq!(order, predicted[..order.len()], "as the working sets say");
    assert_eq!(order.last(), Some(&leaking.name_any().as_str()), "then there is enough");
    assert_eq!(cluster.condition(&node, "MemoryPressure").await, "True", "for the transition period");
    assert!(available().await > 20_000);

    let gone = cluster.pod(&leaking).await.expect("a failed pod stays");
    let status = gone.status.expect("a status");
    assert_eq!((status.phase.as_deref(), status.reason.as_deref()), (Some("Failed"), Some("Evicted")));
    let message = status.message.expect("a message");
    assert!(
        message.starts_with("The node was low on resource: memory. Threshold quantity: 1536Mi, available: ")
            && message.contains("Container app was using ")
            && message.ends_with("request is 512Mi, has larger consumption of memory. "),
        "{message}"
    );
    let conditions = status.conditions.unwrap_or_default();
    let target = conditions.iter().find(|condition| condition.type_ == "DisruptionTarget").expect("set");
    assert_eq!(target.reason.as_deref(), Some("TerminationByKubelet"));
    let reclaiming = cluster.events("EvictionThresholdMet").await;
    assert_eq!(reclaiming[0]["involvedObject"]["name"], *node);
    assert_eq!(reclaiming[0]["message"], "Attempting to reclaim memory");
    let replacement = cluster.pods("shop", "session-cache").await;
    let elsewhere =
        |pod: &&Pod| ready(pod) && pod.spec.as_ref().and_then(|s| s.node_name.as_deref()) != Some(&node);
    assert_eq!(replacement.iter().filter(elsewhere).count(), 1);

    cluster.pass(310).await;
    assert_eq!(cluster.condition(&node, "MemoryPressure").await, "False");
    assert_eq!(cluster.events("Evicted").await.len(), order.len());
}

#[tokio::test(start_paused = true)]
async fn a_container_at_its_limit_is_killed_and_starts_again_on_its_node() {
    let cluster = DemoCluster::with_control_plane("memory-pressure");
    cluster.pass(150).await;
    let pods = cluster.pods("shop", "cart").await;
    assert_eq!(pods.len(), 5, "none is replaced");
    let killed: Vec<_> = pods
        .iter()
        .filter_map(|pod| pod.status.as_ref()?.container_statuses.as_ref()?.first())
        .filter(|container| container.restart_count > 0)
        .collect();
    let [container] = killed.as_slice() else { panic!("{killed:?}") };
    let last = container.last_state.as_ref().and_then(|state| state.terminated.as_ref()).expect("killed");
    assert_eq!((last.exit_code, last.reason.as_deref()), (137, Some("OOMKilled")));
    cluster.pass(600).await;
    let restarts = cluster.pods("shop", "cart").await;
    let most = restarts
        .iter()
        .filter_map(|pod| Some(pod.status.as_ref()?.container_statuses.as_ref()?.first()?.restart_count));
    assert!(most.max() >= Some(4));
    assert!(!cluster.events("BackOff").await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_node_under_memory_pressure_admits_no_pod_without_requests() {
    let cluster = DemoCluster::of("healthy");
    cluster.pass(1).await;
    let node = "general-1b-01";
    cluster.world.inject(node, NodeFault::Pressure("MemoryPressure", PressureLevel::High)).await;
    cluster.pass(1).await;
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), "default");
    for (name, resources) in [("none", json!({})), ("some", json!({"requests": {"memory": "8Mi"}}))] {
        let pod = json!({"metadata": {"name": name}, "spec": {"nodeName": node,
            "containers": [{"name": "app", "image": "demo/app:1", "resources": resources}]}});
        let pod = serde_json::from_value(pod).expect("a pod");
        pods.create(&PostParams::default(), &pod).await.expect("created");
    }
    cluster.pass(6).await;
    let rejected = pods.get("none").await.expect("it stays").status.expect("a status");
    let said = (rejected.phase.as_deref(), rejected.reason.as_deref(), rejected.message.as_deref());
    assert_eq!(said, (Some("Failed"), Some("Evicted"), Some("The node had condition: [MemoryPressure]. ")));
    assert!(ready(&pods.get("some").await.expect("it runs")));
    assert_eq!(cluster.events("Evicted").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_workload_of_high_priority_preempts_pods_that_then_wait() {
    let cluster = DemoCluster::with_control_plane("preemption");
    cluster.pass(8).await;
    assert_eq!(cluster.pods("batch", "model-training").await.iter().filter(|pod| ready(pod)).count(), 28);
    cluster.pass(3).await;
    let critical = cluster.pods("payments", "risk-model").await;
    let nominated =
        |pod: &&Pod| pod.status.as_ref().is_some_and(|status| status.nominated_node_name.is_some());
    assert_eq!(critical.iter().filter(nominated).count(), 3);
    let preempted = reasons(&cluster.pods("batch", "model-training").await);
    assert_eq!(preempted.iter().filter(|reason| *reason == "PreemptionByScheduler").count(), 6);
    let events = cluster.events("Preempted").await;
    assert_eq!(events.len(), 6);
    assert!(events.iter().all(|event| {
        let message = event["message"].as_str().unwrap_or_default();
        message.starts_with("Preempted by pod ") && message.contains(" on node spot-")
    }));
    cluster.pass(60).await;
    let critical = cluster.pods("payments", "risk-model").await;
    assert_eq!(critical.iter().filter(|pod| ready(pod)).count(), 4);
    let waiting = cluster.pods("batch", "model-training").await;
    assert_eq!(
        waiting.iter().filter(|pod| pod.spec.as_ref().is_some_and(|s| s.node_name.is_none())).count(),
        6
    );
}

#[tokio::test(start_paused = true)]
async fn pods_leave_in_every_way_in_the_scenario_of_departures() {
    let cluster = DemoCluster::with_control_plane("departures");
    let mut seen: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let pods: Api<Pod> = Api::all(cluster.client.clone());
    let mut changes = Box::pin(kube::runtime::watcher(pods, kube::runtime::watcher::Config::default()));
    let end = cluster.clock.now() + Span::from_secs(330);
    loop {
        use kube::runtime::watcher::Event;
        tokio::select! {
            () = cluster.clock.sleep_until(end) => break,
            change = changes.next() => match change {
                Some(Ok(Event::Apply(pod) | Event::Delete(pod) | Event::InitApply(pod))) => {
                    for evidence in evidence(&pod) {
                        let name = pod.metadata.name.clone().unwrap_or_default();
                        seen.entry(evidence).or_default().insert(name);
                    }
                }
                Some(Ok(Event::Init | Event::InitDone)) => {}
                other => panic!("{other:?}"),
            },
        }
    }
    for kind in [
        "EvictionByEvictionAPI",
        "TerminationByKubelet",
        "DeletionByTaintManager",
        "PreemptionByScheduler",
        "DeletionByPodGC",
        "OOMKilled",
        "Succeeded",
        "deleted",
    ] {
        assert!(seen.contains_key(kind), "no {kind}: {:?}", seen.keys());
    }
    let plain = &seen["deleted"];
    assert!(plain.iter().any(|pod| pod.starts_with("catalog-")), "by a user: {plain:?}");
    assert_eq!(plain.iter().filter(|pod| pod.starts_with("frontend-")).count(), 2, "scaled down: {plain:?}");
    // The garbage collector also removes pods of the node with the out-of-service taint. These pods keep the reason of
    // their earlier deletion.
    let by_taint = &seen["DeletionByTaintManager"];
    assert!(by_taint.is_disjoint(&seen["DeletionByPodGC"]), "{seen:?}");
    assert!(!by_taint.is_disjoint(&seen["Failed"]), "of the node out of service: {seen:?}");
    assert!(!by_taint.is_subset(&seen["Failed"]), "of the other one: {seen:?}");
}

/// Returns the reasons for a pod's departure that its object shows.
fn evidence(pod: &Pod) -> Vec<String> {
    let mut found = reasons(std::slice::from_ref(pod));
    let status = pod.status.clone().unwrap_or_default();
    if pod.metadata.deletion_timestamp.is_some() && found.is_empty() {
        found.push("deleted".into());
    }
    found.extend(status.phase.filter(|phase| phase == "Succeeded" || phase == "Failed"));
    let containers = status.container_statuses.unwrap_or_default();
    let last = containers.into_iter().filter_map(|container| container.last_state?.terminated?.reason);
    found.extend(last);
    found
}

/// Returns the reasons in the pods' DisruptionTarget conditions.
fn reasons(pods: &[Pod]) -> Vec<String> {
    let conditions = pods.iter().filter_map(|pod| pod.status.as_ref()?.conditions.as_ref()).flatten();
    let targets = conditions.filter(|condition| condition.type_ == "DisruptionTarget");
    targets.filter_map(|condition| condition.reason.clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_flapping_node_comes_and_goes() {
    let cluster = DemoCluster::of("flapping");
    let mut seen = BTreeSet::new();
    for _ in 0..30 {
        cluster.pass(10).await;
        let ages = cluster.lease_ages().await;
        let silent: Vec<&String> =
            ages.iter().filter(|(_, a)| **a > Span::from_secs(40)).map(|(n, _)| n).collect();
        assert!(silent.len() <= 1, "{silent:?}");
        seen.insert(silent.len());
    }
    assert_eq!(seen, BTreeSet::from([0, 1]));
}

#[tokio::test(start_paused = true)]
async fn equal_seeds_give_equal_worlds_and_other_seeds_others() {
    let mut worlds = Vec::new();
    for seed in [4, 4, 5] {
        let cluster =
            DemoCluster::with(WorldOptions { seed, scenario: named("default"), ..WorldOptions::default() });
        let nodes: Api<Node> = Api::all(cluster.client.clone());
        let pods: Api<Pod> = Api::all(cluster.client.clone());
        let nodes = nodes.list(&ListParams::default()).await.expect("listed").items;
        let pods = pods.list(&ListParams::default()).await.expect("listed").items;
        let mut texts: Vec<Value> = nodes.iter().map(|node| json!(node)).collect();
        texts.extend(
            pods.iter().map(|pod| json!([pod.metadata.name, pod.metadata.uid, pod.spec, pod.status])),
        );
        worlds.push(texts);
    }
    assert_eq!(worlds[0], worlds[1]);
    assert_ne!(worlds[0], worlds[2]);
}

#[tokio::test(start_paused = true)]
async fn pod_changes_come_at_the_rate_that_was_asked_for() {
    let options = WorldOptions {
        scenario: named("healthy"),
        pod_changes_per_second: Some(50.0),
        ..WorldOptions::default()
    };
    let cluster = DemoCluster::with(options);
    cluster.pass(10).await;
    let before = cluster.server.revision();
    let leases = 24; // each of 24 nodes renews once in ten seconds
    cluster.pass(10).await;
    let changes = cluster.server.revision() - before;
    assert!((500 + leases - 30..=500 + leases + 40).contains(&changes), "{changes} changes");
}

#[tokio::test(start_paused = true)]
async fn a_quiet_cluster_writes_nothing_but_heartbeats() {
    let cluster = DemoCluster::of("healthy");
    cluster.pass(60).await;
    let before = cluster.server.revision();
    cluster.pass(60).await;
    // Expected writes: each of the 24 nodes renews its Lease every 10 s and writes its status every 5 min, and two Jobs
    // end a few pods.
    let changes = cluster.server.revision() - before;
    assert!((24 * 5..24 * 7 + 60).contains(&changes), "{changes} writes in a minute");
}

#[tokio::test(start_paused = true)]
async fn stateful_sets_and_deployments_report_what_they_have() {
    let cluster = DemoCluster::of("healthy");
    cluster.pass(10).await;
    let sets: Api<StatefulSet> = Api::all(cluster.client.clone());
    for set in sets.list(&ListParams::default()).await.expect("listed") {
        let status = set.status.clone().expect("written");
        assert_eq!(status.ready_replicas, set.spec.as_ref().and_then(|s| s.replicas), "{}", set.name_any());
    }
}

/// An embedded cluster under test.
struct DemoCluster {
    server: Server,
    client: Client,
    clock: Clock,
    world: World,
    cancel: CancellationToken,
}

impl Drop for DemoCluster {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

impl DemoCluster {
    fn of(scenario: &str) -> Self {
        Self::with(WorldOptions { scenario: named(scenario), ..WorldOptions::default() })
    }

    fn with(options: WorldOptions) -> Self {
        let clock = Clock::new(Timestamp::parse("2026-11-21T03:00:00Z").expect("a time"), 1.0);
        let server = Server::new(clock, api::ApiOptions { seed: options.seed, ..api::ApiOptions::default() });
        let cancel = CancellationToken::new();
        let world = World::start(&server, clock, &options, cancel.clone());
        Self { client: server.client(), server, clock, world, cancel }
    }

    /// Creates a cluster with the controller and the scheduler that `kordon demo` starts.
    fn with_control_plane(scenario: &str) -> Self {
        let options = WorldOptions {
            scenario: named(scenario),
            scheduling: Scheduling::External,
            ..WorldOptions::default()
        };
        let cluster = Self::with(options);
        let connection = |user: &str| Connection::embedded(cluster.server.client_as(user), "demo");
        let controller = Controller {
            connection: connection("system:kordon-controller"),
            settings: Settings::defaults(ServerVersion::new(1, 36)),
            clock: cluster.clock,
            identity: "kordon-demo".into(),
        };
        tokio::spawn(controller.run(cluster.cancel.clone()));
        let scheduler =
            PlacementScheduler { connection: connection("system:kordon-scheduler"), clock: cluster.clock };
        tokio::spawn(scheduler.run(cluster.cancel.clone()));
        cluster
    }

    async fn read(&self, path: &str) -> Value {
        let request = http::Request::get(path).body(Vec::new()).expect("a request");
        self.client.request(request).await.expect("answered")
    }

    /// Returns the events with this reason, oldest first.
    async fn events(&self, reason: &str) -> Vec<Value> {
        let list = self.read(&format!("/api/v1/events?fieldSelector=reason%3D{reason}")).await;
        let mut events = list["items"].as_array().cloned().unwrap_or_default();
        events.sort_by_key(|event| event["firstTimestamp"].as_str().map(ToOwned::to_owned));
        events
    }

    async fn pass(&self, seconds: i64) {
        self.clock.sleep(Span::from_secs(seconds)).await;
    }

    async fn lease_ages(&self) -> BTreeMap<String, Span> {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), "kube-node-lease");
        let now = self.clock.now();
        let age = |lease: &Lease| {
            let renewed = lease.spec.as_ref().and_then(|spec| spec.renew_time.clone()).expect("renewed once");
            now.since(Timestamp::parse(&renewed.0.to_string()).expect("a time"))
        };
        leases
            .list(&ListParams::default())
            .await
            .expect("listed")
            .iter()
            .map(|l| (l.name_any(), age(l)))
            .collect()
    }

    /// Returns the pods of a node in the order in which memory pressure evicts them, computed from what its kubelet
    /// reports.
    async fn memory_ranking(&self, node: &str) -> Vec<String> {
        let summary = self.read(&format!("/api/v1/nodes/{node}/proxy/stats/summary")).await;
        let pods: Api<Pod> = Api::all(self.client.clone());
        let here = ListParams::default().fields(&format!("spec.nodeName={node}"));
        let mut ranked = Vec::new();
        for pod in pods.list(&here).await.expect("listed") {
            let spec = pod.spec.clone().expect("a spec");
            let (priority, uid) = (spec.priority.unwrap_or(0), pod.uid());
            let of = |stats: &&Value| stats["podRef"]["uid"].as_str() == uid.as_deref();
            let Some(stats) = summary["pods"].as_array().into_iter().flatten().find(of) else { continue };
            let used = stats["memory"]["workingSetBytes"].as_i64().expect("a number");
            let requests = spec.containers[0].resources.clone().and_then(|resources| resources.requests);
            let request = requests.and_then(|all| all.get("memory").map(|quantity| quantity.0.clone()));
            let request = request.map_or(0, |text| {
                text.strip_suffix("Mi").and_then(|text| text.parse::<i64>().ok()).expect("MiB") << 20
            });
            if priority < 2_000_000_000 {
                ranked.push((used <= request, priority, request - used, pod.name_any()));
            }
        }
        ranked.sort();
        ranked.into_iter().map(|(.., name)| name).collect()
    }

    async fn node(&self, name: &str) -> Node {
        Api::all(self.client.clone()).get(name).await.expect("there is such a node")
    }

    async fn cordoned(&self) -> Vec<String> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let all = nodes.list(&ListParams::default()).await.expect("listed");
        let off = |node: &&Node| node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true);
        all.iter().filter(off).map(ResourceExt::name_any).collect()
    }

    async fn condition(&self, node: &str, kind: &str) -> String {
        let status = self.node(node).await.status.and_then(|status| status.conditions).unwrap_or_default();
        status.into_iter().find(|condition| condition.type_ == kind).expect("it has the condition").status
    }

    /// Returns the pods of a service.
    async fn pods(&self, namespace: &str, service: &str) -> Vec<Pod> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let labels = format!("app.kubernetes.io/name={service}");
        pods.list(&ListParams::default().labels(&labels)).await.expect("listed").items
    }

    async fn on_node(&self, node: &str, owner: &str) -> Vec<Pod> {
        let pods: Api<Pod> = Api::all(self.client.clone());
        let here = ListParams::default().fields(&format!("spec.nodeName={node}"));
        let owned = |pod: &Pod| pod.owner_references().iter().any(|reference| reference.kind == owner);
        pods.list(&here).await.expect("listed").items.into_iter().filter(owned).collect()
    }

    async fn pod(&self, pod: &Pod) -> Option<Pod> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &pod.namespace().expect("namespaced"));
        let now = pods.get_opt(&pod.name_any()).await.expect("answered")?;
        (now.uid() == pod.uid()).then_some(now)
    }

    async fn delete(&self, pod: &Pod) {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &pod.namespace().expect("namespaced"));
        pods.delete(&pod.name_any(), &DeleteParams::default()).await.expect("deleted");
    }

    async fn evict(&self, pod: &Pod) -> kube::Result<kube::core::Status> {
        let mut eviction = Eviction::default();
        eviction.metadata.name = pod.metadata.name.clone();
        eviction.metadata.namespace = pod.metadata.namespace.clone();
        Api::<Pod>::namespaced(self.client.clone(), &pod.namespace().expect("namespaced"))
            .create_subresource("eviction", &pod.name_any(), &PostParams::default(), &eviction)
            .await
    }
}

fn named(scenario: &str) -> &'static Scenario {
    Scenario::named(scenario).expect("one of the table")
}

fn ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn active(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_none()
}
