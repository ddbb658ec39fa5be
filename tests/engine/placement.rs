//! Placement tested with worked examples: those of two tutorials (docs/upstream/placement-and-pressure.md#7), those of
//! the specification itself, and facts from upstream's tests (docs/upstream/placement-and-pressure.md#8). The message
//! of an assertion, such as F1, is the row in the table of that document.

use std::collections::BTreeMap;

use kordon_core::{
    cluster::{Change, Key, Node, NodeName, ObjectEvent},
    engine::ServerVersion,
    placement::{
        Placement, Preemption, Reason, SchedulingOutcome, SchedulingRequest, Scorer, Snapshot, Unschedulable,
    },
};
use serde_json::{Value, json};

use crate::common::placements::BriefCluster;

const NEW: ServerVersion = ServerVersion::new(1, 36);
const OLD: ServerVersion = ServerVersion::new(1, 23);
const HOSTNAME: &str = "kubernetes.io/hostname";
const ZONE: &str = "topology.kubernetes.io/zone";

#[test]
fn s2_and_s3_a_node_selector_binds_replicas_to_labelled_nodes() {
    let web = json!({"name": "web", "nodeSelector": {"kgc": "a"}});
    assert_eq!(workers("a", "b").feasible(&web), ["node01"]);
    let mut relabelled = workers("a", "a");
    relabelled.nodes[1]["unschedulable"] = json!(true);
    assert_eq!(relabelled.feasible(&web), ["node02"], "drained node01 is cordoned");
}

#[test]
fn s4_a_pending_pod_counts_each_node_under_its_first_refusal() {
    let mut scene = workers("a", "");
    scene.nodes[1]["unschedulable"] = json!(true);
    let web = json!({"name": "web", "nodeSelector": {"kgc": "a"}});
    let expected = [(Reason::Cordoned, 1), (Reason::NodeAffinity, 1), (master_taint(), 1)];
    assert_eq!(scene.reasons(OLD, &web), expected.into());
}

#[test]
fn s5_and_s6_not_in_leaves_the_other_worker_and_the_master_to_its_taint() {
    let pod = json!({"name": "p", "affinity": requires_node(HOSTNAME, "NotIn", &["node02"])});
    let mut scene = workers("", "");
    assert_eq!(scene.feasible(&pod), ["node01"]);
    scene.nodes[1]["unschedulable"] = json!(true);
    let expected = [(Reason::Cordoned, 1), (Reason::NodeAffinity, 1), (master_taint(), 1)];
    assert_eq!(scene.reasons(OLD, &pod), expected.into());
}

#[test]
fn s7_and_s8_a_preference_orders_but_does_not_bind() {
    let prefers = |node: &str| json!({"name": "p", "affinity": prefers_node(1, HOSTNAME, node)});
    assert_eq!(workers("", "").best(&prefers("node03")), ["node01", "node02"]);
    let placement = workers("", "").placed(NEW, &prefers("node01"));
    assert_eq!(names(placement.best.iter()), ["node01"]);
    assert_eq!(points(&placement, Scorer::NodeAffinity), [("node01", 200), ("node02", 0)].into());
}

#[test]
fn s9_what_is_required_comes_before_what_is_preferred() {
    let mut affinity = requires_node(HOSTNAME, "NotIn", &["node02"]);
    let preferred = prefers_node(1, "kgc", "a")["nodeAffinity"][PREFERRED].clone();
    affinity["nodeAffinity"][PREFERRED] = preferred;
    assert_eq!(workers("", "a").best(&json!({"name": "p", "affinity": affinity})), ["node01"]);
}

#[test]
fn s10_to_s12_required_affinity_looks_at_domains_not_at_nodes() {
    let pod = json!({"name": "p", "affinity": {"podAffinity": {REQUIRED: [term(&["myapp01"], "kgc")]}}});
    let on_node01 = [app("myapp01", "node01")];
    assert_eq!(workers("a", "a").with(&on_node01).feasible(&pod), ["node01", "node02"]);
    assert_eq!(workers("a", "b").with(&on_node01).feasible(&pod), ["node01"]);
    let expected = [(Reason::PodAffinity, 2), (master_taint(), 1)];
    assert_eq!(workers("a", "a").reasons(OLD, &pod), expected.into());
}

#[test]
fn s13_and_s14_preferred_anti_affinity_is_no_more_than_a_wish() {
    let wish = json!([{"weight": 100, "podAffinityTerm": term(&["myapp01"], HOSTNAME)}]);
    let pod = json!({"name": "p", "affinity": {"podAntiAffinity": {PREFERRED: wish}}});
    let mut scene = workers("", "").with(&[app("myapp01", "node01")]);
    let placement = scene.placed(NEW, &pod);
    assert_eq!(names(placement.best.iter()), ["node02"]);
    assert_eq!(points(&placement, Scorer::PodAffinity), [("node01", 0), ("node02", 200)].into());
    scene.nodes[2]["unschedulable"] = json!(true);
    assert_eq!(scene.best(&pod), ["node01"]);
}

#[test]
fn s15_and_s16_required_anti_affinity_keeps_out_of_the_whole_domain() {
    let pod = json!({"name": "p", "affinity": {"podAntiAffinity": {REQUIRED: [term(&["myapp01"], "kgc")]}}});
    let on_node01 = [app("myapp01", "node01")];
    let expected = [(Reason::PodAntiAffinity, 2), (master_taint(), 1)];
    assert_eq!(workers("a", "a").with(&on_node01).reasons(OLD, &pod), expected.into());
    assert_eq!(workers("a", "b").with(&on_node01).feasible(&pod), ["node02"]);
}

#[test]
fn s17_to_s20_no_execute_keeps_newcomers_out_unless_tolerated_for_any_time() {
    let mut scene = workers("", "");
    scene.nodes[2]["taints"] = json!([{"key": "check", "value": "mycheck", "effect": "NoExecute"}]);
    let plain = json!({"name": "p"});
    assert_eq!(scene.feasible(&plain), ["node01"]);
    scene.nodes[1]["taints"] = scene.nodes[2]["taints"].clone();
    let taint = Reason::Taint { key: "check".into(), value: "mycheck".into() };
    assert_eq!(scene.reasons(OLD, &plain), [(taint, 2), (master_taint(), 1)].into());
    assert_eq!(scene.reasons(NEW, &plain), [(Reason::Taints, 3)].into());
    let toleration = json!([{
        "key": "check", "operator": "Equal", "value": "mycheck", "effect": "NoExecute", "tolerationSeconds": 3600
    }]);
    assert_eq!(scene.feasible(&json!({"name": "p", "tolerations": toleration})), ["node01", "node02"]);
}

#[test]
fn s21_and_s22_exists_without_a_key_tolerates_all_and_with_a_key_every_effect_of_it() {
    let mut scene = workers("", "");
    scene.nodes[1]["taints"] = json!([{"key": "key", "effect": "NoExecute"}]);
    scene.nodes[2]["taints"] = json!([{"key": "key", "value": "x", "effect": "NoSchedule"}]);
    let tolerating = |toleration: Value| json!({"name": "p", "tolerations": [toleration]});
    let everything = tolerating(json!({"operator": "Exists"}));
    assert_eq!(scene.feasible(&everything), ["master", "node01", "node02"]);
    let of_key = tolerating(json!({"key": "key", "operator": "Exists"}));
    assert_eq!(scene.feasible(&of_key), ["node01", "node02"]);
}

#[test]
fn s23_a_no_schedule_taint_refuses_newcomers_only() {
    let mut scene = workers("", "").with(&[app("old", "node01")]);
    scene.nodes[1]["taints"] = json!([{"key": "key1", "value": "value1", "effect": "NoSchedule"}]);
    assert_eq!(scene.feasible(&json!({"name": "p"})), ["node02"]);
    assert_eq!(scene.snapshot(NEW).pods_on(&"node01".into()).count(), 1);
}

#[test]
fn s24_and_s25_a_node_that_is_rather_avoided_is_the_last_resort() {
    let mut scene = workers("", "");
    scene.nodes[0]["taints"] = json!([{"key": MASTER, "effect": "PreferNoSchedule"}]);
    scene.nodes[1]["taints"] = json!([{"key": "x", "effect": "NoExecute"}]);
    let pod = json!({"name": "p", "requests": {"cpu": "1"}});
    let placement = scene.placed(NEW, &pod);
    assert_eq!(names(placement.best.iter()), ["node02"]);
    assert_eq!(points(&placement, Scorer::Taints), [("master", 0), ("node02", 300)].into());
    let full = scene.with(&[json!({"name": "big", "node": "node02", "requests": {"cpu": "4"}})]);
    assert_eq!(full.best(&pod), ["master"]);
}

#[test]
fn s29_a_cordoned_node_takes_only_pods_that_tolerate_it() {
    let mut scene = workers("", "");
    scene.nodes[1]["unschedulable"] = json!(true);
    assert_eq!(scene.feasible(&json!({"name": "p"})), ["node02"]);
    let toleration = json!([{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]);
    assert_eq!(scene.feasible(&json!({"name": "p", "tolerations": toleration})), ["node01", "node02"]);
}

#[test]
fn s30_evenly_used_nodes_win_on_the_two_resource_scores() {
    let node = |name: &str| json!({"name": name, "allocatable": {"cpu": "10", "memory": "10Gi"}});
    let uses = |node: &str, cpu: &str, memory: &str| json!({"name": format!("on-{node}"), "node": node, "requests": {"cpu": cpu, "memory": memory}});
    let bound = vec![uses("a", "1900m", "5Gi"), uses("b", "4900m", "4Gi")];
    let scene = BriefCluster { nodes: vec![node("a"), node("b")], bound, ..BriefCluster::default() };
    let pod = json!({"name": "p", "requests": {"cpu": "100m", "memory": "1Gi"}});
    let placement = scene.placed(OLD, &pod);
    assert_eq!(names(placement.best.iter()), ["b"]);
    assert_eq!(points(&placement, Scorer::LeastAllocated), [("a", 60), ("b", 50)].into());
    assert_eq!(points(&placement, Scorer::BalancedAllocation), [("a", 80), ("b", 100)].into());
}

#[test]
fn s31_a_taken_host_port_sends_the_pod_elsewhere() {
    let port = json!([{"containerPort": 80, "hostPort": 8080, "protocol": "TCP"}]);
    let holder = |node: &str| json!({"name": format!("on-{node}"), "node": node, "ports": port});
    let pod = json!({"name": "p", "ports": port});
    let one = workers("", "").with(&[holder("node01")]);
    assert_eq!(one.feasible(&pod), ["node02"]);
    let both = one.with(&[holder("node02")]);
    assert_eq!(both.reasons(OLD, &pod), [(Reason::Port, 2), (master_taint(), 1)].into());
}

#[test]
fn s32_what_is_free_may_be_taken_to_the_last_bit() {
    let scene = one_node(json!({"cpu": "1", "memory": "1Gi"}));
    let asks = |cpu: &str| json!({"name": "p", "requests": {"cpu": cpu, "memory": "1Gi"}});
    assert_eq!(scene.feasible(&asks("1")), ["n"]);
    assert_eq!(scene.reasons(NEW, &asks("1001m")), [(Reason::Insufficient("cpu".into()), 1)].into());
}

#[test]
fn s33_a_finished_pod_takes_no_room() {
    let scene = one_node(json!({"cpu": "1"}));
    let done = json!({"name": "done", "node": "n", "phase": "Succeeded", "requests": {"cpu": "1"}});
    assert_eq!(scene.with(&[done]).feasible(&json!({"name": "p", "requests": {"cpu": "1"}})), ["n"]);
}

#[test]
fn t1_and_t2_both_spread_constraints_must_hold_and_a_cordoned_node_still_counts() {
    let mut scene = two_zones(&["node1", "node2"], &["node3", "node4"]);
    scene.bound = ["node1", "node2", "node3"].map(foo).into();
    let pod = foo_pod(&[spread(ZONE, 1, true), spread(HOSTNAME, 1, true)]);
    assert_eq!(scene.feasible(&pod), ["node4"]);
    scene.nodes[3]["unschedulable"] = json!(true);
    assert_eq!(scene.reasons(NEW, &pod), [(Reason::Spread, 3), (Reason::Cordoned, 1)].into());
}

#[test]
fn t3_constraints_that_allow_different_nodes_allow_none() {
    let mut scene = two_zones(&["node1", "node2"], &["node3"]);
    scene.bound = ["node1", "node1", "node2", "node3", "node3"].iter().enumerate().map(counted_foo).collect();
    let pod = foo_pod(&[spread(ZONE, 1, true), spread(HOSTNAME, 1, true)]);
    assert_eq!(scene.reasons(NEW, &pod), [(Reason::Spread, 3)].into());
}

#[test]
fn t4_a_soft_constraint_only_orders() {
    let mut scene = two_zones(&["node1", "node2"], &["node3", "node4"]);
    scene.bound = ["node1", "node2", "node3"].map(foo).into();
    let pod = foo_pod(&[spread(ZONE, 1, false), spread(HOSTNAME, 1, false)]);
    assert_eq!(scene.feasible(&pod).len(), 4);
    assert_eq!(scene.best(&pod), ["node4"]);
}

#[test]
fn t5_a_pod_that_does_not_count_itself_fits_where_it_would_not() {
    let mut scene = two_zones(&["node1", "node2"], &["node3", "node4"]);
    scene.bound = ["node1", "node2", "node3"].map(foo).into();
    let mut pod = foo_pod(&[spread(ZONE, 1, true), spread(HOSTNAME, 1, true)]);
    pod["labels"] = json!({});
    assert_eq!(scene.feasible(&pod).len(), 4);
}

#[test]
fn t6_and_t7_only_a_policy_that_allows_it_preempts() {
    let mut scene = one_node(json!({"cpu": "1"})).with(&[json!({
        "name": "low", "node": "n", "requests": {"cpu": "1"}, "priorityClassName": "low"
    })]);
    scene.priority_classes = vec![
        json!({"metadata": {"name": "low"}, "value": 0}),
        json!({"metadata": {"name": "polite"}, "value": 1_000_000, "preemptionPolicy": "Never"}),
        json!({"metadata": {"name": "rude"}, "value": 1_000_000}),
    ];
    let pod = |class: &str| json!({"name": "p", "requests": {"cpu": "1"}, "priorityClassName": class});
    assert_eq!(scene.unschedulable(NEW, &pod("polite")).preemption, Preemption::NotAllowed);
    assert_eq!(scene.preempted(&pod("rude")), ("n".into(), vec!["low".into()], 0));
}

#[test]
fn t8_a_pod_that_needs_its_victim_preempts_nobody_there() {
    let mut scene = priorities(vec![json!({"name": "n1", "allocatable": {"cpu": "1"}})]);
    scene.bound = vec![json!({
        "name": "low", "node": "n1", "labels": {"app": "low"}, "requests": {"cpu": "1"}, "priorityClassName": "low"
    })];
    let pod = json!({
        "name": "vip", "requests": {"cpu": "1"}, "priorityClassName": "high",
        "affinity": {"podAffinity": {REQUIRED: [term(&["low"], "kubernetes.io/os")]}}
    });
    assert!(matches!(scene.unschedulable(NEW, &pod).preemption, Preemption::Impossible { .. }));
    scene.nodes.push(json!({"name": "n2", "allocatable": {"cpu": "1"}}));
    let mut other = scene.bound[0].clone();
    (other["name"], other["node"], other["labels"]) = (json!("other"), json!("n2"), json!({}));
    scene.bound.push(other);
    assert_eq!(scene.preempted(&pod), ("n2".into(), vec!["other".into()], 0));
}

#[test]
fn requests_sum_containers_and_sidecars_or_take_the_largest_phase() {
    let container = |cpu: &str| json!({"name": "c", "resources": {"requests": {"cpu": cpu}}});
    let sidecar =
        |cpu: &str| json!({"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": cpu}}});
    let needs = |spec: Value| {
        let fits = |cpu: i64| {
            let pod = json!({"name": "p", "spec": spec});
            !one_node(json!({"cpu": format!("{cpu}m")})).feasible(&pod).is_empty()
        };
        (0..100).map(|step| step * 50).find(|cpu| fits(*cpu)).expect("it fits somewhere")
    };
    let inits = [container("2"), container("2")];
    assert_eq!(needs(json!({"containers": [container("2"), container("1")], "initContainers": inits})), 3000);
    let after = [sidecar("500m"), container("2")];
    assert_eq!(needs(json!({"containers": [container("1")], "initContainers": after})), 2500);
    let before = [container("2"), sidecar("500m")];
    assert_eq!(needs(json!({"containers": [container("1")], "initContainers": before})), 2000);
    let whole = json!({"requests": {"cpu": "4"}});
    let containers = [container("1"), container("2")];
    assert_eq!(
        needs(json!({"containers": containers, "resources": whole, "overhead": {"cpu": "250m"}})),
        4250
    );
}

#[test]
fn the_golden_example_comes_out_point_for_point() {
    let node = |name: &str, zone: &str, cpu: &str, memory: &str| json!({"name": name, "labels": {ZONE: zone}, "allocatable": {"cpu": cpu, "memory": memory}});
    let uses = |name: &str, node: &str, cpu: &str, memory: &str| json!({"name": name, "node": node, "requests": {"cpu": cpu, "memory": memory}});
    let mut nodes =
        vec![node("n1", "a", "4", "16Gi"), node("n2", "b", "4", "16Gi"), node("n3", "b", "8", "32Gi")];
    nodes[1]["taints"] = json!([{"key": "x", "effect": "PreferNoSchedule"}]);
    let mut bound =
        vec![uses("replica", "n1", "2", "4Gi"), uses("u2", "n2", "1", "8Gi"), uses("u3", "n3", "6", "8Gi")];
    bound[0]["labels"] = json!({"app": "foo"});
    let scene = BriefCluster { nodes, bound, ..BriefCluster::default() };
    let pod = json!({
        "name": "p", "labels": {"app": "foo"}, "requests": {"cpu": "500m", "memory": "1Gi"},
        "affinity": prefers_node(10, ZONE, "b"),
    });
    let totals = |version| {
        let mut request = scene.request(&pod);
        // The selector of the pod's siblings, as a Service or an owner would define it.
        request.siblings = Some(selecting("app", "foo"));
        let SchedulingOutcome::Placed(placement) = scene.snapshot(version).place(&request) else {
            panic!("placed")
        };
        placement
            .ranking
            .iter()
            .map(|scored| (scored.node.to_string(), scored.total))
            .collect::<BTreeMap<_, _>>()
    };
    let all = |totals: [i64; 3]| ["n1", "n2", "n3"].map(String::from).into_iter().zip(totals).collect();
    assert_eq!(totals(ServerVersion::new(1, 34)), all([568, 542, 817]));
    assert_eq!(totals(NEW), all([557, 528, 818]));
}

#[test]
fn f_every_insufficient_resource_is_reported_and_pods_without_requests_need_none() {
    let scene = one_node(json!({"cpu": "10m", "memory": "20", "pods": "32", "example.com/aaa": "5"}));
    let used = |cpu: &str, memory: &str, aaa: &str| json!({"name": "u", "node": "n", "requests": {"cpu": cpu, "memory": memory, "example.com/aaa": aaa}});
    let lacks = |used: Value, requests: Value| -> Vec<String> {
        let scene = scene.with(&[used]);
        let pod = json!({"name": "p", "requests": requests});
        if !scene.feasible(&pod).is_empty() {
            return Vec::new();
        }
        let reported = |reason: &Reason| match reason {
            Reason::Insufficient(resource) => resource.to_string(),
            other => other.to_string(),
        };
        scene.reasons(NEW, &pod).keys().map(reported).collect()
    };
    let none: [&str; 0] = [];
    assert_eq!(lacks(used("10m", "20", "0"), json!({})), none, "F1");
    assert_eq!(lacks(used("10m", "20", "0"), json!({"cpu": "1m", "memory": "1"})), ["cpu", "memory"], "F2");
    assert_eq!(lacks(used("5m", "19", "0"), json!({"cpu": "5m", "memory": "1"})), none, "F7");
    assert_eq!(lacks(used("9m", "5", "0"), json!({"cpu": "2m", "memory": "1"})), ["cpu"], "F8");
    assert_eq!(lacks(used("0", "0", "0"), json!({"example.com/aaa": "10"})), ["example.com/aaa"], "F9");
    assert_eq!(lacks(used("0", "0", "0"), json!({"example.com/bbb": "1"})), ["example.com/bbb"], "F13");
}

#[test]
fn a_full_node_refuses_even_a_pod_that_asks_for_nothing() {
    let scene = one_node(json!({"pods": "1"})).with(&[json!({"name": "one", "node": "n"})]);
    assert_eq!(scene.reasons(NEW, &json!({"name": "p"})), [(Reason::TooManyPods, 1)].into());
}

#[test]
fn p_host_ports_clash_by_protocol_number_and_address() {
    let clash = |held: (&str, &str, u16), wanted: (&str, &str, u16)| {
        let ports = |(protocol, ip, port): (&str, &str, u16)| json!([{"containerPort": port, "hostPort": port, "hostIP": ip, "protocol": protocol}]);
        let holder = json!({"name": "h", "node": "n", "ports": ports(held)});
        one_node(json!({})).with(&[holder]).feasible(&json!({"name": "p", "ports": ports(wanted)})).is_empty()
    };
    assert!(!clash(("UDP", "127.0.0.1", 9090), ("UDP", "127.0.0.1", 8080)), "P1");
    assert!(!clash(("TCP", "127.0.0.2", 8080), ("TCP", "127.0.0.1", 8080)), "P2");
    assert!(!clash(("TCP", "127.0.0.1", 8080), ("UDP", "127.0.0.1", 8080)), "P3");
    assert!(clash(("TCP", "127.0.0.1", 8001), ("TCP", "0.0.0.0", 8001)), "P4");
    assert!(clash(("TCP", "0.0.0.0", 8001), ("TCP", "127.0.0.1", 8001)), "P5");
    assert!(!clash(("TCP", "0.0.0.0", 8001), ("UDP", "127.0.0.1", 8001)), "P6");
}

#[test]
fn a_node_terms_are_alternatives_and_a_term_that_cannot_be_read_matches_nothing() {
    let scene = BriefCluster {
        nodes: vec![json!({"name": "n1"}), json!({"name": "n2", "labels": {"foo": "bar", "n": "0206"}})],
        ..BriefCluster::default()
    };
    let expression = |key: &str, operator: &str, values: Value| json!({"key": key, "operator": operator, "values": values});
    let name_in = |names: Value| json!({"matchFields": [expression("metadata.name", "In", names)]});
    let feasible = |terms: Value| {
        let required = json!({"nodeSelectorTerms": terms});
        scene.feasible(&json!({"name": "p", "affinity": {"nodeAffinity": {REQUIRED: required}}}))
    };
    let labels = |expression: Value| json!([{"matchExpressions": [expression]}]);
    let none: [&str; 0] = [];
    assert_eq!(feasible(labels(expression("n", "Gt", json!(["0204"])))), ["n2"], "A1");
    assert_eq!(feasible(json!([{}])), none, "A3");
    assert_eq!(feasible(json!([])), none);
    assert_eq!(feasible(labels(expression("foo", "NotIn", json!(["invalid value: ___@#$"])))), none, "A7");
    let foo_bar = json!({"matchExpressions": [expression("foo", "In", json!(["bar"]))]});
    assert_eq!(feasible(json!([name_in(json!(["n1x"])), foo_bar])), ["n2"], "A8");
    let mut both = name_in(json!(["n1"]));
    both["matchExpressions"] = foo_bar["matchExpressions"].clone();
    assert_eq!(feasible(json!([both])), none, "A9");
    assert_eq!(feasible(json!([name_in(json!(["n1"])), name_in(json!(["n2"]))])), ["n1", "n2"], "A10");
    let contradiction = json!([{"matchFields": [
        expression("metadata.name", "In", json!(["n1"])), expression("metadata.name", "In", json!(["n2"])),
    ]}]);
    let required = json!({"nodeSelectorTerms": contradiction});
    let pod = json!({"name": "p", "affinity": {"nodeAffinity": {REQUIRED: required}}});
    assert_eq!(scene.reasons(NEW, &pod), [(Reason::NamesContradict, 2)].into(), "A11");
}

#[test]
fn i_affinity_wants_one_pod_that_matches_all_terms_unless_the_pod_is_the_first_of_its_kind() {
    let mut scene = two_zones(&["a"], &["b"]);
    let near = |terms: Value, labels: Value| json!({"name": "p", "labels": labels, "affinity": {"podAffinity": {REQUIRED: terms}}});
    let terms = json!([has("foo", ZONE), has("service", ZONE)]);
    scene.bound = vec![json!({"name": "x", "node": "a", "labels": {"foo": "1"}})];
    let own_kind = near(terms.clone(), json!({"foo": "1", "service": "1"}));
    assert_eq!(scene.feasible(&own_kind), ["a", "b"], "I2");
    assert!(scene.feasible(&near(terms.clone(), json!({"foo": "1"}))).is_empty());
    scene.bound.push(json!({"name": "y", "node": "b", "labels": {"service": "1"}}));
    assert_eq!(scene.feasible(&own_kind), ["a", "b"], "still the first that has both");
    scene.bound.push(json!({"name": "z", "node": "a", "labels": {"foo": "1", "service": "1"}}));
    assert_eq!(scene.feasible(&own_kind), ["a"], "I5");
    let unknown_key = json!([has("foo", "no-such-key")]);
    assert!(scene.feasible(&near(unknown_key, json!({"foo": "1"}))).is_empty(), "I3");
}

#[test]
fn i_existing_pods_repel_the_pods_that_their_terms_select() {
    let mut scene = two_zones(&["a"], &["b"]);
    scene.namespaces =
        json!({"prod": {"team": "x"}, "dev": {"team": "y"}}).as_object().cloned().expect("a map");
    let keeps = |mut term: Value, more: Value| {
        for (key, value) in more.as_object().into_iter().flatten() {
            term[key] = value.clone();
        }
        json!({
            "name": "guard", "namespace": "prod", "node": "a",
            "affinity": {"podAntiAffinity": {REQUIRED: [term]}},
        })
    };
    let pod = |namespace: &str| json!({"name": "p", "namespace": namespace, "labels": {"foo": "1"}});
    let mut feasible = |guard: Value, namespace: &str| {
        scene.bound = vec![guard];
        scene.feasible(&pod(namespace))
    };
    assert_eq!(feasible(keeps(has("foo", ZONE), json!({})), "prod"), ["b"], "I10");
    assert_eq!(feasible(keeps(has("foo", ZONE), json!({})), "dev"), ["a", "b"]);
    assert_eq!(feasible(keeps(has("foo", ZONE), json!({"namespaces": ["dev"]})), "dev"), ["b"]);
    assert_eq!(feasible(keeps(has("foo", ZONE), json!({"namespaceSelector": {}})), "dev"), ["b"], "I12");
    let of_team = |team: &str| json!({"namespaceSelector": {"matchLabels": {"team": team}}});
    assert_eq!(feasible(keeps(has("foo", ZONE), of_team("y")), "dev"), ["b"]);
    assert_eq!(feasible(keeps(has("foo", ZONE), of_team("z")), "dev"), ["a", "b"]);
    assert_eq!(feasible(keeps(has("foo", "no-such-key"), json!({})), "prod"), ["a", "b"], "I9");
}

#[test]
fn k_hard_spread_counts_the_pods_that_stay_on_the_nodes_that_count() {
    let fits =
        |counts: [usize; 4], constraints: &[Value]| spread_fixture(counts).feasible(&foo_pod(constraints));
    let of = |key: &str, max_skew: i64, more: Value| {
        let mut constraint = spread(key, max_skew, true);
        more.as_object().into_iter().flatten().for_each(|(key, value)| constraint[key] = value.clone());
        constraint
    };
    assert_eq!(fits([2, 1, 0, 3], &[spread(ZONE, 1, true)]), ["a", "b", "x", "y"], "K1");
    assert_eq!(fits([2, 1, 0, 3], &[spread(HOSTNAME, 1, true)]), ["x"], "K2");
    assert_eq!(fits([2, 1, 0, 3], &[spread(HOSTNAME, 2, true)]), ["b", "x"], "K3");
    let both = [spread(ZONE, 1, true), spread(HOSTNAME, 1, true)];
    assert_eq!(fits([2, 1, 0, 3], &both), ["x"], "K16");
    assert!(fits([2, 1, 0, 4], &both).is_empty(), "K17");
    assert!(fits([1, 1, 1, 1], &[spread("no-such-key", 1, true)]).is_empty(), "K8");
    assert_eq!(fits([2, 2, 1, 1], &[of(ZONE, 2, json!({"minDomains": 3}))]), Vec::<String>::new(), "K14");
    assert_eq!(fits([1, 1, 1, 0], &[of(ZONE, 2, json!({"minDomains": 3}))]), ["x", "y"], "K14");
    let nil = json!({"maxSkew": 1, "topologyKey": HOSTNAME, "whenUnsatisfiable": "DoNotSchedule"});
    assert_eq!(fits([2, 1, 0, 3], &[nil]), ["a", "b", "x", "y"], "K6");
    let mut leaving = spread_fixture([1, 1, 0, 0]);
    leaving.nodes.truncate(2);
    leaving.bound[0]["deleted"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(leaving.feasible(&foo_pod(&[spread(HOSTNAME, 1, true)])), ["a"], "K10");
}

#[test]
fn k_inclusion_policies_say_which_nodes_count() {
    let mut scene = spread_fixture([1, 1, 0, 1]);
    scene.nodes[2]["taints"] = json!([{"key": "t", "effect": "NoSchedule"}]);
    let mut constraint = spread(HOSTNAME, 1, true);
    assert!(
        scene.feasible(&foo_pod(&[constraint.clone()])).is_empty(),
        "the tainted node is empty, and counts"
    );
    constraint["nodeTaintsPolicy"] = json!("Honor");
    assert_eq!(scene.feasible(&foo_pod(&[constraint])), ["a", "b", "y"]);
    let mut choosy = foo_pod(&[spread(HOSTNAME, 1, true)]);
    choosy["affinity"] = requires_node(HOSTNAME, "In", &["a", "y"]);
    assert_eq!(spread_fixture([2, 1, 0, 3]).feasible(&choosy), ["a"], "K9");
}

#[test]
fn k_match_label_keys_count_one_revision_only() {
    let mut scene = spread_fixture([1, 1, 1, 0]);
    scene.bound[0]["labels"]["hash"] = json!("new");
    let mut constraint = spread(HOSTNAME, 1, true);
    constraint["matchLabelKeys"] = json!(["hash", "absent"]);
    let mut pod = foo_pod(&[constraint]);
    pod["labels"]["hash"] = json!("new");
    assert_eq!(scene.feasible(&pod), ["b", "x", "y"]);
}

#[test]
fn the_empty_selector_counts_none_from_1_28_to_1_37_and_all_before_and_after() {
    let scene = spread_fixture([1, 0, 0, 0]);
    let mut constraint = spread(HOSTNAME, 1, true);
    constraint["labelSelector"] = json!({});
    let pod = foo_pod(&[constraint]);
    let on = |version| names(&scene.snapshot(version).feasible(&scene.request(&pod)));
    let release = |minor| ServerVersion::new(1, minor);
    for version in [OLD, release(27), release(38)] {
        assert_eq!(on(version), ["b", "x", "y"], "{version}");
    }
    for version in [release(28), NEW, release(37)] {
        assert_eq!(on(version), ["a", "b", "x", "y"], "{version}");
    }
}

#[test]
fn l_soft_spread_scores_are_those_of_each_release() {
    let score = |version, counts: [usize; 4], max_skew| {
        let placement =
            spread_fixture(counts).placed(version, &foo_pod(&[spread(HOSTNAME, max_skew, false)]));
        let points = points(&placement, Scorer::Spread);
        ["a", "b", "x", "y"].map(|node| points[node] / 2)
    };
    assert_eq!(score(NEW, [2, 1, 0, 3], 1), [20, 60, 100, 0]);
    assert_eq!(score(OLD, [2, 1, 0, 3], 1), [40, 80, 100, 0]);
    assert_eq!(score(NEW, [2, 1, 0, 3], 2), [33, 66, 100, 16]);
    assert_eq!(score(NEW, [4, 3, 2, 1], 3), [44, 66, 77, 100]);
    assert_eq!(score(OLD, [4, 3, 2, 1], 3), [33, 55, 77, 100]);
    assert_eq!(score(NEW, [1, 1, 1, 1], 1), [100; 4]);
}

#[test]
fn j_wishes_are_normalised_between_the_lowest_and_the_highest() {
    let mut scene = two_zones(&["a"], &["b"]);
    scene.nodes.push(json!({"name": "c", "labels": {ZONE: "zone3"}}));
    scene.bound = (0..12)
        .map(|number| {
            let node = if number < 2 { "a" } else { "b" };
            json!({"name": format!("p{number}"), "node": node, "labels": {"app": "s1"}})
        })
        .collect();
    let wish = json!([{"weight": 1, "podAffinityTerm": term(&["s1"], ZONE)}]);
    let placement = scene.placed(NEW, &json!({"name": "p", "affinity": {"podAffinity": {PREFERRED: wish}}}));
    assert_eq!(
        points(&placement, Scorer::PodAffinity),
        [("a", 40), ("b", 200), ("c", 0)].into(),
        "J3, doubled"
    );
}

#[test]
fn n_images_count_by_size_and_by_how_many_nodes_have_them() {
    const MIB: i64 = 1 << 20;
    let points_of = |images: [&[(&str, i64)]; 2]| {
        let node = |(name, images): (&str, &[(&str, i64)])| {
            let images: Vec<Value> =
                images.iter().map(|(name, mib)| json!({"name": name, "sizeBytes": mib * MIB})).collect();
            json!({"name": name, "images": images})
        };
        let scene = BriefCluster {
            nodes: ["a", "b"].into_iter().zip(images).map(node).collect(),
            ..BriefCluster::default()
        };
        let containers = json!([{"name": "c", "image": "one"}, {"name": "d", "image": "two:v1"}]);
        let placement = scene.placed(NEW, &json!({"name": "p", "spec": {"containers": containers}}));
        points(&placement, Scorer::Images)["a"]
    };
    assert_eq!(points_of([&[("one:latest", 250)], &[]]), 5);
    assert_eq!(points_of([&[("one:latest", 40), ("two:v1", 300)], &[]]), 7);
    assert_eq!(points_of([&[("one:latest", 4000), ("two:v1", 300)], &[("one:latest", 4000)]]), 100);
    assert_eq!(points_of([&[("one:latest", 10)], &[]]), 0);
}

/// Facts from the sources of 1.35.0, 1.36.3 and 1.37.1 (`imagelocality.sumImageScores`).
#[test]
fn image_volumes_are_added_from_1_36_and_counted_from_1_37() {
    let image = json!([{"name": "model:v1", "sizeBytes": 250 << 20}]);
    let nodes = vec![json!({"name": "a", "images": image}), json!({"name": "b"})];
    let scene = BriefCluster { nodes, ..BriefCluster::default() };
    let volume = json!({"name": "model", "image": {"reference": "model:v1"}});
    let spec = json!({"containers": [{"name": "c", "image": "one"}], "volumes": [volume]});
    let points_in = |minor| {
        let placement = scene.placed(ServerVersion::new(1, minor), &json!({"name": "p", "spec": spec}));
        points(&placement, Scorer::Images)["a"]
    };
    assert_eq!([35, 36, 37].map(points_in), [0, 10, 5]);
}

#[test]
fn q_victims_are_as_few_and_as_unimportant_as_will_do() {
    let scene = |bound: &[(&str, &str, &str, &str)]| {
        let nodes = ["node1", "node2"].map(|name| json!({"name": name, "allocatable": {"cpu": "500m"}}));
        let mut scene = priorities(nodes.into());
        scene.bound = bound
            .iter()
            .map(|(name, node, class, cpu)| {
                json!({"name": name, "node": node, "priorityClassName": class, "requests": {"cpu": cpu}})
            })
            .collect();
        scene
    };
    let large = json!({"name": "p", "priorityClassName": "high", "requests": {"cpu": "300m"}});
    let q1 = [("a", "node1", "low", "100m"), ("b", "node1", "mid", "300m"), ("c", "node2", "mid", "300m")];
    assert_eq!(scene(&q1).preempted(&large), ("node1".into(), vec!["b".into()], 0), "Q1");
    let q2 = [("a", "node1", "high", "300m"), ("b", "node2", "high", "300m")];
    assert!(matches!(scene(&q2).unschedulable(NEW, &large).preemption, Preemption::Impossible { .. }), "Q2");
    let q3 = [
        ("a", "node1", "mid", "100m"),
        ("b", "node1", "low", "100m"),
        ("c", "node1", "mid", "200m"),
        ("d", "node1", "high", "100m"),
        ("e", "node2", "high", "500m"),
    ];
    assert_eq!(scene(&q3).preempted(&large), ("node1".into(), vec!["b".into(), "c".into()], 0), "Q3");
}

#[test]
fn q_budgets_are_spent_in_order_of_importance_and_broken_as_a_last_resort() {
    let mut scene = priorities(vec![json!({"name": "n", "allocatable": {"cpu": "500m"}})]);
    scene.bound = ["a", "b"]
        .map(|name| {
            json!({
                "name": name, "node": "n", "labels": {"app": "guarded"}, "priorityClassName": "mid",
                "requests": {"cpu": "200m"},
            })
        })
        .into();
    let budget = |disrupted: Value| {
        let spec = json!({"selector": {"matchLabels": {"app": "guarded"}}});
        let status = json!({"disruptionsAllowed": 1, "disruptedPods": disrupted});
        vec![json!({"object": {"metadata": {"name": "guard"}, "spec": spec}, "status": status})]
    };
    let pod = json!({"name": "p", "priorityClassName": "high", "requests": {"cpu": "400m"}});
    scene.pdbs = budget(json!({}));
    assert_eq!(scene.preempted(&pod).2, 1, "Q7");
    scene.pdbs = budget(json!({"a": "2026-01-01T00:00:00Z"}));
    assert_eq!(scene.preempted(&pod).2, 0, "Q8");
}

#[test]
fn q_of_equals_the_one_that_started_later_goes() {
    let mut scene = priorities(vec![json!({"name": "n", "allocatable": {"cpu": "500m"}})]);
    scene.bound = [("old", "2026-01-01T00:00:00Z"), ("young", "2026-06-01T00:00:00Z")]
        .map(|(name, started)| {
            json!({
                "name": name, "node": "n", "priorityClassName": "low", "requests": {"cpu": "200m"},
                "startTime": started,
            })
        })
        .into();
    let pod = json!({"name": "p", "priorityClassName": "high", "requests": {"cpu": "300m"}});
    assert_eq!(scene.preempted(&pod), ("n".into(), vec!["young".into()], 0), "Q4");
}

#[test]
fn of_equals_that_have_not_started_the_last_to_come_stays() {
    let mut scene = priorities(vec![json!({"name": "n", "allocatable": {"cpu": "500m"}})]);
    let bound = |name: &str| json!({"name": name, "node": "n", "priorityClassName": "low", "requests": {"cpu": "200m"}});
    scene.bound = vec![bound("a"), bound("b")];
    let pod = json!({"name": "p", "priorityClassName": "high", "requests": {"cpu": "300m"}});
    assert_eq!(scene.preempted(&pod), ("n".into(), vec!["a".into()], 0));
}

#[test]
fn the_worked_example_of_preemption_comes_out() {
    let mut scene = one_node(json!({"cpu": "1"}));
    scene.priority_classes = [("zero", 0), ("hundred", 100), ("thousand", 1000)]
        .map(|(name, value)| json!({"metadata": {"name": name}, "value": value}))
        .into();
    let bound = |name: &str, class: &str, cpu: &str, hour: u8| {
        json!({
            "name": name, "node": "n", "priorityClassName": class, "requests": {"cpu": cpu},
            "startTime": format!("2026-01-01T{hour}:00:00Z"),
        })
    };
    scene.bound = vec![
        bound("a", "zero", "400m", 10),
        bound("b", "zero", "300m", 11),
        bound("c", "hundred", "300m", 12),
    ];
    let pod = json!({"name": "p", "priorityClassName": "thousand", "requests": {"cpu": "500m"}});
    assert_eq!(scene.preempted(&pod), ("n".into(), vec!["a".into(), "b".into()], 0));
}

#[test]
fn pods_placed_in_a_row_see_those_before_them_and_taking_them_away_undoes_it() {
    let scene = spread_fixture([0, 0, 0, 0]);
    let cluster = scene.cluster();
    let mut snapshot = Snapshot::new(&cluster, NEW);
    let untouched = snapshot.place(&scene.request(&json!({"name": "q"})));
    let mut placed: Vec<NodeName> = Vec::new();
    for number in 0..8 {
        let mut pod = foo_pod(&[spread(HOSTNAME, 1, true)]);
        pod["name"] = json!(format!("row-{number}"));
        let pod = scene.pod(&pod, None);
        let SchedulingOutcome::Placed(placement) =
            snapshot.place(&SchedulingRequest::from_pod(&pod, &cluster))
        else {
            panic!("room")
        };
        placed.push(placement.choice().clone());
        snapshot.add(pod, placement.choice());
    }
    placed[..4].sort();
    assert_eq!(names(&placed[..4]), ["a", "b", "x", "y"], "one on each before a second on any");
    for node in ["a", "b", "x", "y"].map(NodeName::from) {
        let keys: Vec<_> = snapshot.pods_on(&node).map(|pod| pod.key.clone()).collect();
        assert_eq!(keys.len(), 2);
        assert!(keys.iter().all(|key| snapshot.remove(key, &node).is_some()));
    }
    assert_eq!(snapshot.place(&scene.request(&json!({"name": "q"}))), untouched);
}

#[test]
fn a_copy_that_lost_a_node_does_not_take_its_images_from_the_others() {
    let image = json!([{"name": "img:latest", "sizeBytes": 900_000_000}]);
    let node = |name: &str, images: &Value| json!({"name": name, "images": images});
    let scene = BriefCluster {
        nodes: vec![node("a", &json!([])), node("b", &image), node("c", &image)],
        ..BriefCluster::default()
    };
    let request = scene.request(&json!({"name": "p"}));
    let mut snapshot = scene.snapshot(NEW);
    let mut copy = snapshot.clone();
    copy.remove_node(&"b".into());
    assert!(matches!(copy.place(&request), SchedulingOutcome::Placed(_)));
    assert_eq!(snapshot.place(&request), scene.snapshot(NEW).place(&request));
}

#[test]
fn a_snapshot_that_follows_the_cluster_is_one_taken_afresh() {
    let seed = 7;
    let mut chance = fastrand::Rng::with_seed(seed);
    let scene = priorities(Vec::new());
    let (mut cluster, mut nodes, mut pods) = (scene.cluster(), Vec::new(), Vec::new());
    let mut followed = Snapshot::new(&cluster, NEW);
    for step in 0..400 {
        let change = match chance.u8(0..10) {
            0 => {
                let node = random_node(&mut chance);
                nodes.push(node.name.clone());
                Change::Node(ObjectEvent::Applied(node))
            }
            1 if chance.u8(0..3) == 0 && !nodes.is_empty() => {
                Change::Node(ObjectEvent::Deleted(nodes[chance.usize(0..nodes.len())].clone()))
            }
            2..4 if !pods.is_empty() => {
                let gone: &Key = &pods[chance.usize(0..pods.len())];
                Change::Pod(ObjectEvent::Deleted(gone.clone()))
            }
            _ => {
                let pod = random_pod(&mut chance, step);
                let node = format!("n{}", chance.u8(0..6));
                let pod = scene.pod(&pod, (chance.u8(0..10) > 0).then_some(&node));
                pods.push(pod.key.clone());
                Change::Pod(ObjectEvent::Applied((*pod).clone()))
            }
        };
        let mut applied = Vec::new();
        cluster.apply(change, &mut applied);
        followed.follow(&applied, &cluster);
        if step % 8 != 0 {
            continue;
        }
        let mut afresh = Snapshot::new(&cluster, NEW);
        for _ in 0..4 {
            let mut pod = random_pod(&mut chance, step);
            pod["name"] = json!("newcomer");
            let request = SchedulingRequest::from_pod(&scene.pod(&pod, None), &cluster);
            assert_eq!(followed.place(&request), afresh.place(&request), "step {step} of seed {seed}: {pod}");
        }
    }
}

fn random_node(chance: &mut fastrand::Rng) -> Node {
    let mut node = json!({
        "name": format!("n{}", chance.u8(0..6)),
        "labels": {ZONE: format!("z{}", chance.u8(0..2))},
        "allocatable": {"cpu": chance.u8(2..6).to_string()},
        "unschedulable": chance.u8(0..4) == 0,
        "images": [{"name": "img:latest", "sizeBytes": 500_000_000 + i64::from(chance.u8(0..2))}],
    });
    if chance.u8(0..3) == 0 {
        let effect = ["PreferNoSchedule", "NoSchedule"][chance.usize(0..2)];
        node["taints"] = json!([{"key": "x", "effect": effect}]);
    }
    let scene = BriefCluster { nodes: vec![node], ..BriefCluster::default() };
    (**scene.cluster().nodes().iter().next().expect("one node")).clone()
}

fn random_pod(chance: &mut fastrand::Rng, step: usize) -> Value {
    let app = |chance: &mut fastrand::Rng| ["foo", "bar"][chance.usize(0..2)];
    let mut pod = json!({
        "name": format!("p{}", chance.u8(0..40)), "labels": {"app": app(chance)},
        "requests": {"cpu": format!("{}m", chance.u16(0..1500))},
        "priorityClassName": (["low", "mid", "high"][chance.usize(0..3)]),
        "startTime": format!("2026-01-01T{:02}:{:02}:00Z", step / 60, step % 60),
    });
    let key = [ZONE, HOSTNAME][chance.usize(0..2)];
    let wish = json!([{"weight": chance.u8(1..100), "podAffinityTerm": term(&[app(chance)], key)}]);
    match chance.u8(0..7) {
        0 => pod["topologySpreadConstraints"] = json!([spread(key, 1, chance.bool())]),
        1 => pod["affinity"] = json!({"podAntiAffinity": {REQUIRED: [term(&[app(chance)], key)]}}),
        2 => pod["affinity"] = json!({"podAffinity": {PREFERRED: wish}}),
        3 => pod["affinity"] = json!({"podAffinity": {REQUIRED: [term(&[app(chance)], key)]}}),
        4 => pod["ports"] = json!([{"containerPort": 80, "hostPort": 80 + chance.u16(0..2)}]),
        _ => {}
    }
    pod
}

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const MASTER: &str = "node-role.kubernetes.io/master";

/// Shortcuts for placing a pod in a test cluster.
trait SchedulingOutcomeExt {
    fn with(&self, bound: &[Value]) -> BriefCluster;
    fn snapshot(&self, version: ServerVersion) -> Snapshot;
    fn request(&self, pod: &Value) -> SchedulingRequest;
    /// Returns the feasible nodes, by the newest rules.
    fn feasible(&self, pod: &Value) -> Vec<String>;
    /// Returns the nodes with the highest score, by the newest rules.
    fn best(&self, pod: &Value) -> Vec<String>;
    fn placed(&self, version: ServerVersion, pod: &Value) -> Placement;
    fn unschedulable(&self, version: ServerVersion, pod: &Value) -> Unschedulable;
    fn reasons(&self, version: ServerVersion, pod: &Value) -> BTreeMap<Reason, usize>;
    /// Returns the nominated node, the names of the victims and the number of violated budgets, by the newest rules.
    fn preempted(&self, pod: &Value) -> (String, Vec<String>, usize);
}

impl SchedulingOutcomeExt for BriefCluster {
    fn with(&self, bound: &[Value]) -> BriefCluster {
        let mut scene = self.clone();
        scene.bound.extend(bound.iter().cloned());
        scene
    }

    fn snapshot(&self, version: ServerVersion) -> Snapshot {
        Snapshot::new(&self.cluster(), version)
    }

    fn request(&self, pod: &Value) -> SchedulingRequest {
        SchedulingRequest::from_pod(&self.pod(pod, None), &self.cluster())
    }

    fn feasible(&self, pod: &Value) -> Vec<String> {
        names(&self.snapshot(NEW).feasible(&self.request(pod)))
    }

    fn best(&self, pod: &Value) -> Vec<String> {
        names(self.placed(NEW, pod).best.iter())
    }

    fn placed(&self, version: ServerVersion, pod: &Value) -> Placement {
        match self.snapshot(version).place(&self.request(pod)) {
            SchedulingOutcome::Placed(placement) => placement,
            other => panic!("not placed: {other:?}"),
        }
    }

    fn unschedulable(&self, version: ServerVersion, pod: &Value) -> Unschedulable {
        match self.snapshot(version).place(&self.request(pod)) {
            SchedulingOutcome::Unschedulable(unschedulable) => unschedulable,
            other => panic!("not unschedulable: {other:?}"),
        }
    }

    fn reasons(&self, version: ServerVersion, pod: &Value) -> BTreeMap<Reason, usize> {
        self.unschedulable(version, pod).reasons
    }

    fn preempted(&self, pod: &Value) -> (String, Vec<String>, usize) {
        let Preemption::Possible(candidate) = self.unschedulable(NEW, pod).preemption else {
            panic!("no pod is preempted")
        };
        let mut victims: Vec<String> = candidate.victims.iter().map(|pod| pod.key.name.to_string()).collect();
        victims.sort();
        (candidate.node.to_string(), victims, candidate.violations)
    }
}

fn names<'n>(nodes: impl IntoIterator<Item = &'n NodeName>) -> Vec<String> {
    nodes.into_iter().map(ToString::to_string).collect()
}

/// Returns the weighted points of one scorer, by node.
fn points(placement: &Placement, scorer: Scorer) -> BTreeMap<&str, i64> {
    let place = Scorer::ALL.iter().position(|other| *other == scorer).expect("all are there");
    placement.ranking.iter().map(|scored| (&*scored.node, scored.parts[place])).collect()
}

/// The cluster of the tutorials: a tainted master and two workers. The arguments are the values of the workers' label
/// `kgc`; a worker with an empty value does not get the label.
fn workers(first: &str, second: &str) -> BriefCluster {
    let labels = |value: &str| if value.is_empty() { json!({}) } else { json!({"kgc": value}) };
    BriefCluster {
        nodes: vec![
            json!({"name": "master", "taints": [{"key": MASTER, "effect": "NoSchedule"}]}),
            json!({"name": "node01", "labels": labels(first)}),
            json!({"name": "node02", "labels": labels(second)}),
        ],
        ..BriefCluster::default()
    }
}

fn master_taint() -> Reason {
    Reason::Taint { key: MASTER.into(), value: "".into() }
}

fn one_node(allocatable: Value) -> BriefCluster {
    BriefCluster { nodes: vec![json!({"name": "n", "allocatable": allocatable})], ..BriefCluster::default() }
}

fn two_zones(first: &[&str], second: &[&str]) -> BriefCluster {
    let zone = |names: &[&str], zone: &str| -> Vec<Value> {
        names.iter().map(|name| json!({"name": name, "labels": {ZONE: zone}})).collect()
    };
    BriefCluster { nodes: [zone(first, "zone1"), zone(second, "zone2")].concat(), ..BriefCluster::default() }
}

/// Nodes a and b in zone1, x and y in zone2, with this many pods labelled foo on each.
fn spread_fixture(counts: [usize; 4]) -> BriefCluster {
    let mut scene = two_zones(&["a", "b"], &["x", "y"]);
    let on =
        ["a", "b", "x", "y"].iter().zip(counts).flat_map(|(node, count)| std::iter::repeat_n(node, count));
    scene.bound = on.enumerate().map(counted_foo).collect();
    scene
}

fn priorities(nodes: Vec<Value>) -> BriefCluster {
    let class = |(name, value)| json!({"metadata": {"name": name}, "value": value});
    let priority_classes = [("low", 0), ("mid", 100), ("high", 1000)].map(class).into();
    BriefCluster { nodes, priority_classes, ..BriefCluster::default() }
}

fn app(name: &str, node: &str) -> Value {
    json!({"name": name, "node": node, "labels": {"app": name}})
}

fn foo(node: &str) -> Value {
    json!({"name": format!("foo-{node}"), "node": node, "labels": {"app": "foo"}})
}

fn counted_foo((number, node): (usize, &&str)) -> Value {
    json!({"name": format!("foo-{number}"), "node": node, "labels": {"app": "foo"}})
}

fn foo_pod(constraints: &[Value]) -> Value {
    json!({"name": "p", "labels": {"app": "foo"}, "topologySpreadConstraints": constraints})
}

fn spread(key: &str, max_skew: i64, hard: bool) -> Value {
    let when = if hard { "DoNotSchedule" } else { "ScheduleAnyway" };
    let selector = json!({"matchLabels": {"app": "foo"}});
    json!({"maxSkew": max_skew, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": selector})
}

/// A pod affinity term for pods whose label app has one of these values, with this topology key.
fn term(apps: &[&str], key: &str) -> Value {
    let expression = json!({"key": "app", "operator": "In", "values": apps});
    json!({"labelSelector": {"matchExpressions": [expression]}, "topologyKey": key})
}

/// A pod affinity term for pods that have this label, with this topology key.
fn has(label: &str, key: &str) -> Value {
    let expression = json!({"key": label, "operator": "Exists"});
    json!({"labelSelector": {"matchExpressions": [expression]}, "topologyKey": key})
}

fn requires_node(key: &str, operator: &str, values: &[&str]) -> Value {
    let expression = json!({"key": key, "operator": operator, "values": values});
    json!({"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}})
}

fn prefers_node(weight: i64, key: &str, value: &str) -> Value {
    let expression = json!({"key": key, "operator": "In", "values": [value]});
    let preference = json!({"matchExpressions": [expression]});
    json!({"nodeAffinity": {PREFERRED: [{"weight": weight, "preference": preference}]}})
}

fn selecting(key: &str, value: &str) -> kordon_core::cluster::Selector {
    let operator = kordon_core::cluster::SelectorOperator::In(vec![value.into()]);
    kordon_core::cluster::Selector {
        requirements: vec![kordon_core::cluster::Requirement { key: key.into(), operator }],
    }
}
