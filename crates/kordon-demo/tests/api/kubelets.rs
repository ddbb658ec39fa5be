//! What kubelets and the metrics server answer behind the API server.

use k8s_openapi::api::core::v1::Pod;
use kordon_clock::Clock;
use kordon_demo::{
    api::{Api, ApiOptions, Fault, FaultAnswer},
    scenario::Scenario,
    world::{NodeFault, PressureLevel, World, WorldOptions},
};
use kordon_time::{Span, Timestamp};
use kube::api::{Api as Objects, ListParams};
use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::fixture::{merge, read, read_raw, request, server};

#[tokio::test(start_paused = true)]
async fn a_kubelet_reports_what_its_node_and_pods_use() {
    let cluster = cluster().await;
    let summary = read(&cluster.api, &proxy("general-1a-01", "stats/summary")).await.expect("answered");
    let node = &summary["node"];
    assert_eq!(node["nodeName"], "general-1a-01");
    let number = |value: &Value, path: &str| {
        value.pointer(path).and_then(Value::as_i64).unwrap_or_else(|| panic!("no {path} in {value}"))
    };
    let (used, free) = (number(node, "/memory/workingSetBytes"), number(node, "/memory/availableBytes"));
    assert_eq!(used + free, 32 << 30, "available is what the capacity leaves");
    assert!(number(node, "/memory/rssBytes") < used && used < number(node, "/memory/usageBytes"));
    for path in ["/fs", "/runtime/imageFs"] {
        for field in ["availableBytes", "capacityBytes", "usedBytes", "inodesFree", "inodes", "inodesUsed"] {
            assert!(number(node, &format!("{path}/{field}")) > 0);
        }
    }
    assert!(number(node, "/rlimit/curproc") < number(node, "/rlimit/maxpid"));

    let bound = ListParams::default().fields("spec.nodeName=general-1a-01");
    let bound: Vec<Pod> = Objects::all(cluster.api.client()).list(&bound).await.expect("listed").items;
    let pods = summary["pods"].as_array().expect("pods");
    assert_eq!(pods.len(), bound.len());
    for pod in &bound {
        let metadata = &pod.metadata;
        let of = |stats: &&Value| stats["podRef"]["uid"].as_str() == metadata.uid.as_deref();
        let stats = pods.iter().find(of).expect("each pod is there by its uid");
        assert_eq!(stats["podRef"]["name"].as_str(), metadata.name.as_deref());
        assert_eq!(stats["podRef"]["namespace"].as_str(), metadata.namespace.as_deref());
        let memory = number(stats, "/memory/workingSetBytes");
        assert!(memory > number(stats, "/containers/0/memory/workingSetBytes"), "the sandbox counts too");
        assert!(number(stats, "/process_stats/process_count") > 0);
        let layer = number(stats, "/containers/0/rootfs/usedBytes");
        let logs = number(stats, "/containers/0/logs/usedBytes");
        assert!(number(stats, "/ephemeral-storage/usedBytes") >= layer + logs);
    }
    let volumes = pods.iter().flat_map(|pod| pod["volume"].as_array().into_iter().flatten());
    assert!(volumes.clone().any(|volume| volume["name"] == "config" && volume["usedBytes"] == 4096));
    // The limit of the cgroup of all pods is the allocatable memory plus the threshold of hard eviction.
    let system = node["systemContainers"].as_array().expect("system containers");
    let all = system.iter().find(|container| container["name"] == "pods").expect("the cgroup of all pods");
    let sum: i64 = pods.iter().map(|pod| number(pod, "/memory/workingSetBytes")).sum();
    assert_eq!(number(all, "/memory/workingSetBytes"), sum);
    assert_eq!(number(all, "/memory/availableBytes") + sum, (32 << 30) - (1024 << 20));
}

#[tokio::test(start_paused = true)]
async fn a_volume_with_a_claim_names_it_and_is_not_counted_on_the_machine() {
    let cluster = cluster().await;
    let redis: Objects<Pod> = Objects::namespaced(cluster.api.client(), "shop");
    let redis = redis.get("redis-0").await.expect("it runs");
    let node = redis.spec.and_then(|spec| spec.node_name).expect("bound");
    let summary = read(&cluster.api, &proxy(&node, "stats/summary")).await.expect("answered");
    let pods = summary["pods"].as_array().expect("pods");
    let stats = pods.iter().find(|pod| pod["podRef"]["name"] == "redis-0").expect("on its node");
    let volumes = stats["volume"].as_array().expect("volumes");
    let data = volumes.iter().find(|volume| volume["name"] == "data").expect("its claim");
    assert_eq!(data["pvcRef"], json!({"name": "data-redis-0", "namespace": "shop"}));
    assert!(data["usedBytes"].as_i64() > stats["ephemeral-storage"]["usedBytes"].as_i64());
}

#[tokio::test(start_paused = true)]
async fn a_kubelet_shows_its_thresholds_and_reservations() {
    let cluster = cluster().await;
    let config = read(&cluster.api, &proxy("memory-1b-01", "configz")).await.expect("answered");
    let config = &config["kubeletconfig"];
    assert_eq!(config["evictionHard"]["memory.available"], "512Mi");
    assert_eq!(config["evictionHard"]["imagefs.available"], "15%");
    assert_eq!(config["evictionSoft"]["memory.available"], "1536Mi");
    assert_eq!(config["evictionSoftGracePeriod"]["memory.available"], "1m30s");
    assert_eq!(config["evictionMinimumReclaim"]["memory.available"], "512Mi");
    assert_eq!(config["evictionPressureTransitionPeriod"], "5m0s");
    assert_eq!(config["evictionMaxPodGracePeriod"], 30);
    assert_eq!(config["imageGCHighThresholdPercent"], 85);
    assert_eq!(config["enforceNodeAllocatable"], json!(["pods"]));
    // The memory that is not allocatable is the sum of systemReserved, kubeReserved and the threshold of hard eviction.
    let reserved = json!([config["systemReserved"]["memory"], config["kubeReserved"]["memory"]]);
    assert_eq!(reserved, json!(["512Mi", "512Mi"]));
    let node = read(&cluster.api, "/api/v1/nodes/memory-1b-01").await.expect("a node");
    let kib = |list: &str| {
        let text = node["status"][list]["memory"].as_str().and_then(|text| text.strip_suffix("Ki"));
        text.and_then(|text| text.parse::<i64>().ok()).expect("a quantity")
    };
    assert_eq!(kib("capacity") - kib("allocatable"), 1536 * 1024);
}

#[tokio::test(start_paused = true)]
async fn a_pressure_is_seen_in_the_summary_around_its_soft_threshold() {
    let cluster = cluster().await;
    let free = async |path: &str| {
        let summary = read(&cluster.api, &proxy("general-1b-01", "stats/summary")).await.expect("answered");
        summary.pointer(path).and_then(Value::as_i64).expect("a number") >> 20
    };
    assert!(free("/node/memory/availableBytes").await > 20_000);
    let pressure = NodeFault::Pressure("MemoryPressure", PressureLevel::High);
    cluster.world.inject("general-1b-01", pressure).await;
    cluster.clock.sleep(Span::from_secs(1)).await;
    let (mut below, mut longest) = (0, 0);
    for _ in 0..40 {
        let free = free("/node/memory/availableBytes").await;
        assert!((1400..1700).contains(&free), "{free} MiB");
        below = if free < 1536 { below + 10 } else { 0 };
        longest = longest.max(below);
        cluster.clock.sleep(Span::from_secs(10)).await;
    }
    assert!((40..90).contains(&longest), "{longest} s below the threshold, whose grace period is 90 s");
}

#[tokio::test(start_paused = true)]
async fn a_kubelet_that_cannot_be_reached_or_asked_gives_the_errors_of_a_real_cluster() {
    let cluster = cluster().await;
    let missing = read(&cluster.api, &proxy("general-9z-01", "configz")).await.expect_err("no such node");
    assert_eq!((missing.code, missing.message.as_str()), (404, "nodes \"general-9z-01\" not found"));
    let path = read_raw(&cluster.api, &proxy("general-1a-01", "colours")).await.expect_err("no such path");
    assert!(path.to_string().contains("404 page not found"), "{path}");
    read(&cluster.api, &proxy("https:general-1a-01:10250", "configz")).await.expect("by scheme and port");

    cluster.api.inject(Fault::always(FaultAnswer::Forbidden).of_user("jane").on(&[], "nodes/proxy"));
    let jane = cluster.api.client_as("jane");
    let read_as_jane = request("GET", &proxy("general-1a-01", "configz"), "application/json", &json!({}));
    let Err(kube::Error::Api(refused)) = jane.request::<Value>(read_as_jane).await else {
        panic!("not refused")
    };
    let why = "User \"jane\" cannot get resource \"nodes/proxy\" in API group \"\" at the cluster scope";
    assert_eq!((refused.code, refused.message.contains(why)), (403, true), "{}", refused.message);
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "get", "resource": "nodes", "subresource": "proxy"}}});
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let answer: Value =
        jane.request(request("POST", reviews, "application/json", &review)).await.expect("answered");
    assert_eq!(answer["status"]["allowed"], false);

    cluster.world.inject("general-1a-01", NodeFault::Disconnect).await;
    cluster.clock.sleep(Span::from_secs(30)).await;
    let lost = read(&cluster.api, &proxy("general-1a-01", "configz")).await.expect_err("unreachable");
    assert_eq!((lost.code, lost.reason.as_str()), (503, "ServiceUnavailable"));
    assert!(lost.message.starts_with("error trying to reach service: dial tcp 10.1.0."), "{}", lost.message);
    let metrics: Value = read(&cluster.api, METRICS).await.expect("listed");
    let items = metrics["items"].as_array().expect("items");
    assert_eq!(items.len(), 23, "a node that cannot be read has no metrics");
}

#[tokio::test(start_paused = true)]
async fn the_metrics_server_serves_what_kubectl_top_reads() {
    let cluster = cluster().await;
    let api = &cluster.api;
    let groups = api.client().list_api_groups().await.expect("listed").groups;
    let group = groups.iter().find(|group| group.name == "metrics.k8s.io").expect("in discovery");
    assert_eq!(group.versions[0].group_version, "metrics.k8s.io/v1beta1");
    let resources = api.client().list_api_group_resources("metrics.k8s.io/v1beta1").await.expect("listed");
    let named: Vec<_> = resources.resources.iter().map(|r| (r.name.as_str(), r.kind.as_str())).collect();
    assert_eq!(named, [("nodes", "NodeMetrics"), ("pods", "PodMetrics")]);

    let nodes = read(api, METRICS).await.expect("listed");
    assert_eq!(
        (&nodes["kind"], &nodes["apiVersion"]),
        (&json!("NodeMetricsList"), &json!("metrics.k8s.io/v1beta1"))
    );
    assert_eq!(nodes["items"].as_array().map(Vec::len), Some(24));
    let node = read(api, &format!("{METRICS}/general-1a-01")).await.expect("one");
    assert_eq!(node["kind"], "NodeMetrics");
    let kib = |usage: &Value| {
        let text = usage["memory"].as_str().and_then(|text| text.strip_suffix("Ki"));
        text.and_then(|text| text.parse::<i64>().ok()).expect("KiB")
    };
    let used = kib(&node["usage"]);
    assert!((900_000..8_000_000).contains(&used), "{used} KiB");
    assert!(node["usage"]["cpu"].as_str().is_some_and(|cpu| cpu.ends_with('n')));
    assert!(node["window"].is_string() && node["timestamp"].is_string());

    let all = "/apis/metrics.k8s.io/v1beta1/pods";
    let pods = read(api, all).await.expect("listed");
    assert_eq!(
        (&pods["kind"], pods["items"].as_array().map(Vec::len)),
        (&json!("PodMetricsList"), Some(180))
    );
    let shop = "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods";
    let pod = read(api, &format!("{shop}/redis-0")).await.expect("one");
    assert_eq!(pod["containers"][0]["name"], "app");
    assert!((300 << 10..1 << 20).contains(&kib(&pod["containers"][0]["usage"])), "below its request: {pod}");
    let redis =
        read(api, &format!("{shop}?labelSelector=app.kubernetes.io%2Fname%3Dredis")).await.expect("some");
    assert_eq!(redis["items"].as_array().map(Vec::len), Some(3));
    let missing = read(api, &format!("{shop}/redis-9")).await.expect_err("none");
    assert_eq!((missing.code, missing.message.as_str()), (404, "pods.metrics.k8s.io \"redis-9\" not found"));
    let patch = merge(api, &format!("{shop}/redis-0"), &json!({})).await.expect_err("read only");
    assert_eq!(patch.code, 405);

    let alone = server();
    assert_eq!(read(&alone, METRICS).await.expect_err("no metrics server").code, 404);
    let groups = alone.client().list_api_groups().await.expect("listed").groups;
    assert!(groups.iter().all(|group| group.name != "metrics.k8s.io"));
}

const METRICS: &str = "/apis/metrics.k8s.io/v1beta1/nodes";

fn proxy(node: &str, path: &str) -> String {
    format!("/api/v1/nodes/{node}/proxy/{path}")
}

/// A server with kubelets that have run for half a minute.
struct Cluster {
    api: Api,
    world: World,
    clock: Clock,
    _stop: DropGuard,
}

async fn cluster() -> Cluster {
    let clock = Clock::new(Timestamp::from_secs(1_800_000_000), 1.0);
    let api = Api::new(clock, ApiOptions::default());
    let stop = CancellationToken::new();
    let healthy = Scenario::named("healthy").expect("a scenario");
    let options = WorldOptions { scenario: healthy, ..WorldOptions::default() };
    let world = World::start(&api, clock, &options, stop.clone());
    clock.sleep(Span::from_secs(31)).await;
    Cluster { api, world, clock, _stop: stop.drop_guard() }
}
