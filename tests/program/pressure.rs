//! What a kubelet would evict, and where its numbers come from, on a demo cluster.

use kordon::demo::api::{Fault, FaultAnswer};
use serde_json::Value;

use crate::harness::Harness;

const NODE: &str = "general-1a-02";

/// What `kordon plan pressure` says of the node.
async fn planned(harness: &Harness, more: &[&str]) -> Value {
    let output = harness.run(&[&["plan", "pressure", NODE, "-o", "json"], more].concat()).await;
    assert_eq!(output.code, 0, "{}", output.err);
    serde_json::from_str(&output.out).expect("a report")
}

fn pods(report: &Value) -> &Vec<Value> {
    report["eviction"]["pods"].as_array().expect("a list")
}

#[tokio::test(flavor = "multi_thread")]
async fn evictions_under_pressure_are_predicted_with_what_may_be_read_and_say_what_that_is() {
    let harness = Harness::start(1.0).await;
    let report = planned(&harness, &["--signal", "memory.available"]).await;
    assert_eq!(report["usage"]["source"], "kubelet");
    assert_eq!((&report["thresholds"], &report["thresholdsError"]), (&"kubelet".into(), &Value::Null));
    assert_eq!(report["eviction"]["signal"], "memory.available");
    let target = report["eviction"]["target"].as_i64().expect("a level");
    for (number, pod) in pods(&report).iter().enumerate() {
        assert!(pod["usage"].is_i64(), "{pod}");
        // Evicted are the first that are not exempt, as long as the target is not reached.
        let before = pods(&report)[..number].iter().rev().find_map(|pod| pod["availableAfter"].as_i64());
        let is_enough = before.is_some_and(|available| available >= target);
        assert_eq!(pod["evicted"] == true, pod["exempt"].is_null() && !is_enough, "{pod}");
        assert_eq!(pod["evicted"] == true, pod["landing"].is_string(), "{pod}");
        assert_ne!(pod["landingNode"], NODE, "the node has the taint: {pod}");
    }
    let places: Vec<u64> = pods(&report).iter().filter_map(|pod| pod["place"].as_u64()).collect();
    assert!(places.is_sorted() && places.len() > 3, "{places:?}");

    let api = &harness.server.api;
    api.inject(Fault::always(FaultAnswer::Forbidden).on(&[], "nodes/proxy"));
    let report = planned(&harness, &["--signal", "memory.available"]).await;
    assert_eq!(report["usage"]["source"], "metrics.k8s.io");
    assert_eq!(report["thresholds"], "defaults");
    assert!(report["thresholdsError"].as_str().is_some_and(|why| why.contains("forbid")), "{report}");
    assert!(pods(&report).iter().all(|pod| pod["usage"].is_i64()), "{report}");
    let report = planned(&harness, &["--signal", "nodefs.available"]).await;
    assert!(pods(&report).iter().all(|pod| pod["usage"].is_null() && pod["evicted"] == false), "{report}");

    for kind in ["nodes.metrics.k8s.io", "pods.metrics.k8s.io"] {
        api.inject(Fault::always(FaultAnswer::Forbidden).on(&[], kind));
    }
    let report = planned(&harness, &[]).await;
    assert_eq!(report["usage"], Value::Null);
    assert!(report["usageError"].as_str().is_some_and(|why| why.contains("forbid")), "{report}");
    let priorities: Vec<i64> = pods(&report).iter().filter_map(|pod| pod["priority"].as_i64()).collect();
    assert!(priorities.is_sorted() && !priorities.is_empty(), "{priorities:?}");

    let why = harness.run(&["why", "node", NODE, "--pressure"]).await;
    assert!(why.out.contains("order by priority only"), "{}", why.out);
    let unknown = harness.run(&["plan", "pressure", NODE, "--signal", "cpu"]).await;
    assert!(unknown.code != 0 && unknown.err.contains("one of memory.available"), "{}", unknown.err);
}
