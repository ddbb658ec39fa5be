//! The pods that a kubelet would evict under pressure, and the source of kordon's numbers, in a demo cluster.

use std::collections::BTreeSet;

use kordon::{
    app::{Pane, Reaction, UserAction, update},
    k8s::{
        decode::{node::NodeDecoder, pod::PodDecoder},
        kubelet::{KubeletReport, UsageSource, read_kubelet},
    },
    model::{EvictionState, Model, ModelOptions},
    ui::snapshot,
};
use kordon_clock::Clock;
use kordon_core::{
    cluster::{Cluster, ConditionStatus, Key, Node, NodeName, QosClass, ShutdownPeriods},
    engine::ServerVersion,
    pressure::{EvictionSettings, EvictionSettingsText, EvictionSignal, NodeStats, PodUsage, SignalLevel},
};
use kordon_demo::{
    api::{Api, ApiOptions, Fault, FaultAnswer},
    scenario::Scenario,
    world::{World, WorldOptions},
};
use kordon_time::{Span, Timestamp};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{
    common::placements,
    dashboard_fixture::{DashboardFixture, set_condition},
    harness::Harness,
    screens::drawn,
};

const NODE: &str = "general-1a-02";

/// Node of the dashboard's cluster that is under pressure.
const PRESSED: &str = "pool-a-01";

/// A dashboard of a cluster with a node under memory pressure, whose kubelet answers with this report.
fn under_pressure(report: impl FnOnce(&DashboardFixture) -> KubeletReport) -> DashboardFixture {
    let mut fixture = DashboardFixture::well();
    let now = fixture.now;
    fixture.change_node(PRESSED, |node| set_condition(node, "MemoryPressure", ConditionStatus::True, now));
    fixture.run(1);
    let (report, now) = (report(&fixture), fixture.now);
    fixture.app.model.on_kubelet_report(&PRESSED.into(), report, now);
    fixture.run(1);
    fixture
}

/// The report of a kubelet that evicts two pods after the grace period of 90 s of its soft threshold.
fn two_pods_too_many(fixture: &DashboardFixture) -> KubeletReport {
    const GIBI: i64 = 1 << 30;
    let usage = PodUsage { memory_bytes: Some(2 * GIBI), ..PodUsage::default() };
    let node = PRESSED.into();
    let pods = fixture.app.model.cluster.pods_on(&node);
    let stats = NodeStats {
        memory: Some(SignalLevel { available: -GIBI - 1, capacity: 32 * GIBI }),
        pods: pods.map(|pod| (pod.key.clone(), usage.clone())).collect(),
        ..NodeStats::default()
    };
    let memory = "memory.available".to_owned();
    let settings = EvictionSettings::parse(&EvictionSettingsText {
        soft: [(memory.clone(), "1Gi".to_owned())].into(),
        soft_grace: [(memory, Span::from_secs(90))].into(),
        ..EvictionSettingsText::default()
    });
    KubeletReport {
        stats: Ok(stats),
        source: UsageSource::Kubelet,
        settings: Ok(settings),
        shutdown: Ok(ShutdownPeriods::default()),
        at: fixture.now,
    }
}

#[test]
fn pods_that_a_kubelet_is_expected_to_evict_are_rows_of_the_evictions() {
    let mut fixture = under_pressure(two_pods_too_many);
    fixture.press("3z");
    let screen = snapshot::plain(&drawn(&mut fixture, (160, 48)));
    let counts = ["evicts up to 2 pods, first in 1m2", "2 at most by kubelets"];
    assert!(counts.iter().all(|count| screen.contains(count)), "{screen}");
    let is_row = |line: &&str| line.contains("▲") && line.contains("· kubelet: MemoryPressure");
    let rows: Vec<&str> = screen.lines().filter(is_row).collect();
    assert!(rows.len() == 2 && rows[0].contains("1m2") && rows[1].contains("not known"), "{screen}");
    let model = &fixture.app.model;
    for (key, row) in &model.views.leaving.evictions {
        assert!(matches!(row.state, EvictionState::ByKubelet { .. }), "{key}: {row:?}");
        assert!(model.outcome(key, row).is_some(), "{key}: {row:?}");
    }

    let first = fixture.app.screen.evictions.list.keys()[0].clone();
    match update(&mut fixture.app, UserAction::Copy, fixture.now) {
        Reaction::Copy(text) => assert_eq!(text, first.to_string()),
        other => panic!("{other:?}"),
    }
    fixture.press("d");
    let detail = snapshot::plain(&drawn(&mut fixture, (160, 48)));
    assert!(detail.contains("it is evicted (kubelet: MemoryPressure)"), "{detail}");
    assert!(!detail.contains("nothing evicts it"), "{detail}");
    fixture.press("<Esc><Enter>");
    assert_eq!(fixture.app.screen.focus, Pane::Pods);
    assert_eq!(fixture.app.screen.pods.list.selected(), Some(&first));
    for (filter, listed) in [("state=kubelet", 2), ("state=scheduled", 0), ("in>1m", 1)] {
        let mut fixture = under_pressure(two_pods_too_many);
        fixture.press(&format!("3/{filter}<Enter>"));
        assert_eq!(fixture.app.screen.evictions.list.len(), listed, "{filter}");
    }
}

#[test]
fn the_chart_marks_when_a_kubelet_evicts_the_first_pod() {
    let mut fixture = under_pressure(two_pods_too_many);
    fixture.press("4z");
    let screen = snapshot::plain(&drawn(&mut fixture, (160, 48)));
    assert!(screen.contains("K kubelet evicts") && screen.contains(PRESSED), "{screen}");
    let [lane] = fixture.app.screen.forecast.lanes.as_slice() else { panic!("{screen}") };
    let (_, eviction) = fixture.app.model.evicting_kubelets().next().expect("it evicts");
    assert_eq!(lane.kubelet, Some(eviction.at.into()));
}

#[test]
fn a_kubelet_under_pressure_that_cannot_be_measured_is_named_in_the_title() {
    let mut fixture =
        under_pressure(|fixture| KubeletReport::unread("nodes/proxy is forbidden", fixture.now));
    fixture.press("3z");
    let screen = snapshot::plain(&drawn(&mut fixture, (160, 48)));
    assert!(screen.contains("1 kubelet not measured") && !screen.contains("by kubelets"), "{screen}");
    let pod = fixture.app.model.cluster.pods_on(&PRESSED.into()).next().expect("it has pods").clone();
    let steps = fixture.app.model.explain_pod(&pod, &[], fixture.now);
    let text: Vec<&str> = steps.iter().map(|step| step.text.as_str()).collect();
    assert!(text.join("; ").contains("evictions by its kubelet are not known"), "{text:?}");
}

/// Returns the report of `kordon plan pressure` for the node.
async fn planned(harness: &Harness, more: &[&str]) -> Value {
    let output = harness.run(&[&["plan", "pressure", NODE, "-o", "json"], more].concat()).await;
    assert_eq!(output.code, 0, "{}", output.err);
    output.json()
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
        // In the order of the report, the kubelet evicts the pods that are not exempt, until the target is reached.
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

async fn reported(harness: &Harness, command: &str) -> Value {
    let output = harness.run(&[command, "-o", "json"]).await;
    assert_eq!(output.code, 0, "{}", output.err);
    output.json()
}

/// Memory runs out on a node. Before its kubelet evicts, every report has the pods that `kordon plan pressure` has.
#[tokio::test(flavor = "multi_thread")]
async fn reports_name_the_pods_that_a_kubelet_is_about_to_evict() {
    let harness = Harness::start_in("memory-pressure", 4.0).await;
    let mut status = reported(&harness, "status").await;
    // The leak fills the node in a minute or two; each report takes a part of a second.
    for _ in 0..400 {
        if status["kubeletEvictions"][0].is_object() {
            break;
        }
        status = reported(&harness, "status").await;
    }
    let evicting = &status["kubeletEvictions"][0];
    let node = evicting["node"].as_str().expect("a kubelet evicts");
    let names = |pods: &Value| -> BTreeSet<String> {
        let pods = pods.as_array().expect("a list").iter();
        pods.filter(|pod| pod["evicted"] != false)
            .map(|pod| format!("{}/{}", pod["namespace"], pod["pod"]))
            .collect()
    };
    let pods = names(&evicting["pods"]);
    let text = format!("kubelet of {node} evicts up to {} pod", pods.len());
    let verdict = status["verdict"]["text"].as_str().expect("text");
    assert!(verdict.contains(&format!("kubelet evicts up to {} pod", pods.len())), "{verdict}");
    for command in ["evictions", "forecast"] {
        let report = reported(&harness, command).await;
        assert_eq!(names(&report["kubeletEvictions"][0]["pods"]), pods, "{command}: {report:#}");
        let text_of = harness.run(&[command]).await.out;
        assert!(text_of.contains(&text) && !text_of.contains("no evictions"), "{command}: {text_of}");
    }
    let plan = harness.run(&["plan", "pressure", node, "-o", "json"]).await.json();
    assert_eq!(names(&plan["eviction"]["pods"]), pods, "{plan:#}");
}

/// Memory runs out on a node. Each pod that its kubelet evicts is the one that was predicted just before.
#[tokio::test(start_paused = true)]
async fn a_kubelet_evicts_pods_in_the_predicted_order() {
    let clock = Clock::new(Timestamp::parse("2026-11-21T03:00:00Z").expect("a time"), 1.0);
    let api = Api::new(clock, ApiOptions::default());
    let cancel = CancellationToken::new();
    let scenario = Scenario::named("memory-pressure").expect("there is one");
    let _world =
        World::start(&api, clock, &WorldOptions { scenario, ..WorldOptions::default() }, cancel.clone());
    let _stop = cancel.drop_guard();
    let mut model = Model::new(ModelOptions::observer(ServerVersion::new(1, 36)), clock.now());
    // The first pod of each node's latest prediction; the evicted pods; and all pods that ended with the reason
    // Evicted.
    let mut predicted: BTreeSet<(NodeName, Key)> = BTreeSet::new();
    let (mut evicted, mut ended) = (Vec::new(), BTreeSet::new());
    // The leak fills the node in a minute or two, and then the grace period of the soft threshold passes.
    clock.sleep(Span::from_secs(90)).await;
    let ends = clock.now() + Span::from_secs(240);
    while evicted.len() < 3 && clock.now() < ends {
        clock.sleep(Span::from_secs(2)).await;
        let before = std::mem::replace(&mut model.cluster, nodes_under_pressure(&api).await);
        let gone = model.cluster.pods().iter().filter(|pod| *pod.reason == *"Evicted");
        let new: Vec<_> = gone.filter(|pod| ended.insert(pod.key.clone())).cloned().collect();
        for pod in new {
            match before.pod(&pod.key).filter(|before| before.started.is_some()) {
                Some(_) => {
                    let place = (pod.node.clone().expect("it ran"), pod.key.clone());
                    assert!(predicted.contains(&place), "{place:?} was evicted, predicted was {predicted:?}");
                    evicted.push(place);
                }
                // The pod had not started: its kubelet rejected it on its arrival, because of the pressure.
                None => assert_eq!(pod.resources.kubelet.qos, QosClass::BestEffort, "{pod:?}"),
            }
        }
        predicted.clear();
        for node in model.nodes_under_pressure() {
            let node = model.cluster.node(&node).expect("one of them").clone();
            let first = first_evicted(&mut model, &api, &node, clock).await;
            predicted.extend(first.map(|pod| (node.name.clone(), pod)));
        }
    }
    assert_eq!(evicted.len(), 3, "{evicted:?}");
}

/// Returns the pod that the kubelet of a node would evict first for lack of memory.
async fn first_evicted(model: &mut Model, api: &Api, node: &Node, clock: Clock) -> Option<Key> {
    let pods = model.cluster.pods_on(&node.name).map(|pod| pod.key.clone()).collect();
    let report = read_kubelet(&api.client_as("kordon"), node, &pods, clock).await;
    model.on_kubelet_report(&node.name, report, clock.now());
    let pressure = model.node_pressure(node, Some(EvictionSignal::Memory))?;
    pressure.order.evicted().next().map(|pod| pod.key.clone())
}

/// Reads the nodes that report pressure, and their pods.
async fn nodes_under_pressure(api: &Api) -> Cluster {
    let mut cluster = Cluster::default();
    let under_pressure = |node: &Value| {
        let conditions = node["status"]["conditions"].as_array().expect("conditions");
        conditions
            .iter()
            .any(|condition| condition["type"] == "MemoryPressure" && condition["status"] == "True")
    };
    let nodes: Vec<Value> = items(api, "/api/v1/nodes").await.into_iter().filter(under_pressure).collect();
    let mut pods = Vec::new();
    for node in &nodes {
        let name = node["metadata"]["name"].as_str().expect("a name");
        pods.extend(items(api, &format!("/api/v1/pods?fieldSelector=spec.nodeName={name}")).await);
    }
    placements::list(&mut cluster, &mut NodeDecoder::default(), nodes);
    placements::list(&mut cluster, &mut PodDecoder::default(), pods);
    cluster
}

async fn items(api: &Api, path: &str) -> Vec<Value> {
    let request = http::Request::get(path).body(Vec::new()).expect("a path");
    let list: Value = api.client_as("kordon").request(request).await.expect("a list");
    list["items"].as_array().expect("items").clone()
}
