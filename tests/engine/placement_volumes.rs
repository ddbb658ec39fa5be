//! Restrictions of placement by volumes (docs/upstream/placement-and-pressure.md#2.9), with the rows V1 to V6 of
//! docs/upstream/placement-and-pressure.md#8.8.

use std::collections::BTreeMap;

use kordon::k8s::decode::{
    Decoder, WatchEvent,
    service::ServiceDecoder,
    storage::{
        ClaimDecoder, CsiDriverDecoder, CsiNodeDecoder, StorageCapacityDecoder, StorageClassDecoder,
        VolumeDecoder,
    },
};
use kordon_core::{
    cluster::{Change, Cluster, NodeName, Pod},
    engine::ServerVersion,
    placement::{
        Caveat, Constraint, Preemption, Reason, SchedulingOutcome, SchedulingRequest, Snapshot,
        volume_topology,
    },
};
use serde_json::{Value, json};

use crate::common::placements::{BriefCluster, list};

const NEW: ServerVersion = ServerVersion::new(1, 36);
const ZONE: &str = "topology.kubernetes.io/zone";
const REGION: &str = "topology.kubernetes.io/region";
const OLD_ZONE: &str = "failure-domain.beta.kubernetes.io/zone";

#[test]
fn v1_and_v2_a_volume_is_in_any_of_the_zones_of_its_label() {
    let mut harness =
        Harness::new(&[("a", json!({ZONE: "a"})), ("b", json!({ZONE: "b"})), ("c", json!({ZONE: "c"}))]);
    harness.bound_claim("data", json!({"labels": {ZONE: "a"}}), json!({}));
    assert_eq!(harness.feasible(&["data"]), ["a"]);
    assert_eq!(harness.reasons(&["data"]), [(Reason::VolumeZone, 2)].into());
    harness.bound_claim("both", json!({"labels": {ZONE: "a__c"}}), json!({}));
    assert_eq!(harness.feasible(&["both"]), ["a", "c"]);
    assert_eq!(harness.feasible(&["data", "both"]), ["a"]);
}

#[test]
fn v3_an_old_label_of_a_volume_finds_the_new_one_of_a_node_and_not_the_other_way_round() {
    let mut harness = Harness::new(&[("new", json!({ZONE: "a"})), ("old", json!({OLD_ZONE: "a"}))]);
    harness.bound_claim("of-old", json!({"labels": {OLD_ZONE: "a"}}), json!({}));
    harness.bound_claim("of-new", json!({"labels": {ZONE: "a"}}), json!({}));
    assert_eq!(harness.feasible(&["of-old"]), ["new", "old"]);
    assert_eq!(harness.feasible(&["of-new"]), ["new"]);
}

#[test]
fn v4_and_v5_each_label_counts_unless_the_node_says_nothing_of_where_it_is() {
    let mut harness = Harness::new(&[("zone-only", json!({ZONE: "a"})), ("silent", json!({}))]);
    harness.bound_claim("data", json!({"labels": {ZONE: "a", REGION: "r"}}), json!({}));
    assert_eq!(harness.feasible(&["data"]), ["silent"]);
}

#[test]
fn v6_a_node_attaches_no_more_volumes_than_its_driver_allows() {
    let mut harness = Harness::new(&[("n1", json!({})), ("n2", json!({}))]);
    for name in ["one", "two", "three"] {
        harness.bound_claim(name, json!({}), json!({"csi": {"driver": "d", "volumeHandle": name}}));
    }
    harness.csi_nodes.push(json!({"metadata": {"name": "n1"}, "spec": {"drivers": [
        {"name": "d", "allocatable": {"count": 2}}, {"name": "other", "allocatable": {"count": 0}},
    ]}}));
    harness.run("first", "n1", &["one"]);
    harness.run("second", "n1", &["two"]);
    assert_eq!(harness.feasible(&["three"]), ["n2"], "n2 has no limit");
    assert_eq!(harness.reasons(&["three"]), [(Reason::VolumeLimit, 1)].into());
    assert_eq!(harness.feasible(&["two"]), ["n1", "n2"], "what is there already does not count again");
}

/// Upstream of 1.37, `nodevolumelimits/csi.go` `checkCSIDriverOnNode` (`VolumeLimitScaling`).
#[test]
fn a_driver_may_keep_pods_off_the_nodes_that_do_not_have_it() {
    let mut harness = Harness::new(&[("n1", json!({})), ("n2", json!({}))]);
    harness.bound_claim("data", json!({}), json!({"csi": {"driver": "d", "volumeHandle": "data"}}));
    harness.csi_nodes.push(json!({"metadata": {"name": "n1"}, "spec": {"drivers": [{"name": "d"}]}}));
    let refusals = |harness: &Harness, minor| {
        let request = harness.request(&pod("p", &["data"]));
        Snapshot::new(&harness.cluster(), ServerVersion::new(1, minor)).refusals(&request)
    };
    harness.csi_drivers.push(json!({"metadata": {"name": "d"}, "spec": {}}));
    assert_eq!(refusals(&harness, 37), BTreeMap::new());
    harness.csi_drivers[0]["spec"]["preventPodSchedulingIfMissing"] = json!(true);
    assert_eq!(refusals(&harness, 37), [(Reason::DriverMissing("d".into()), 1)].into());
    assert_eq!(refusals(&harness, 36), BTreeMap::new(), "off by default");
}

#[test]
fn pods_that_use_a_limited_volume_can_be_preempted() {
    let mut harness = Harness::new(&[("n1", json!({}))]);
    for name in ["one", "two"] {
        harness.bound_claim(name, json!({}), json!({"csi": {"driver": "d", "volumeHandle": name}}));
    }
    harness.csi_nodes.push(
        json!({"metadata": {"name": "n1"}, "spec": {"drivers": [{"name": "d", "allocatable": {"count": 1}}]}}),
    );
    harness.run("first", "n1", &["one"]);
    let mut pod = pod("p", &["two"]);
    pod["priority"] = json!(10);
    match harness.place(&pod) {
        SchedulingOutcome::Unschedulable(refused) => match refused.preemption {
            Preemption::Possible(found) => assert_eq!(*found.victims[0].key.name, *"first"),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_bound_volume_keeps_its_pod_where_it_can_be_reached() {
    let mut harness = Harness::zones();
    harness.bound_claim("data", json!({}), in_zone("b"));
    assert_eq!(harness.feasible(&["data"]), ["b1"]);
    assert_eq!(harness.reasons(&["data"]), [(Reason::VolumeUnreachable, 2)].into());
    let request = harness.request(&pod("p", &["data"]));
    let topologies = harness.snapshot().volume_topology(&request);
    assert_eq!(volume_topology::words(&topologies).as_deref(), Some("its volume is in zone b"));
    let help = harness.snapshot().help(&request, &|node: &NodeName| **node == *"b1");
    assert_eq!(help.lifts[0].constraint, Constraint::Volumes);
    assert_eq!(help.lifts[0].to_string(), "fits a1 and 1 more without its volumes");
    assert_eq!(help.node.expect("a new node in that zone").zones, ["b"]);
}

#[test]
fn volumes_in_different_places_leave_no_node() {
    let mut harness = Harness::zones();
    harness.bound_claim("here", json!({}), in_zone("a"));
    harness.bound_claim("there", json!({}), in_zone("b"));
    assert_eq!(harness.reasons(&["here", "there"]), [(Reason::VolumeUnreachable, 3)].into());
    let topologies = harness.snapshot().volume_topology(&harness.request(&pod("p", &["here", "there"])));
    let words = "its volume here is in zone a, its volume there is in zone b";
    assert_eq!(volume_topology::words(&topologies).as_deref(), Some(words));
    let request = harness.request(&pod("p", &["here", "there"]));
    let help = harness.snapshot().help(&request, &|_: &NodeName| false);
    assert_eq!(help.lines(), [format!("nothing but another volume: {words}")], "no node is in two zones");
    assert_eq!(help.advice(), help.lines());
}

#[test]
fn unusable_claims_rule_out_every_node() {
    let mut harness = Harness::zones();
    harness.classes.push(class("at-once", "Immediate", "example.com/disks"));
    harness.claims.push(claim("unbound", json!({"storageClassName": "at-once"})));
    harness.claims.push(claim("classless", json!({})));
    let mut lost = claim("lost", json!({"volumeName": "gone"}));
    lost["status"] = json!({"phase": "Lost"});
    let mut leaving = claim("leaving", json!({}));
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    harness.claims.extend([lost, leaving]);
    harness.claims.push(bound(claim("dangling", json!({"volumeName": "nothing"}))));
    let lost = Reason::ClaimLost { claim: "lost".into(), volume: "gone".into() };
    for (claims, reason) in [
        (&["unbound"][..], Reason::ClaimUnbound),
        (&["classless"], Reason::ClaimUnbound),
        (&["lost"], lost.clone()),
        (&["leaving"], Reason::ClaimTerminating("leaving".into())),
        (&["dangling"], Reason::VolumeMissing("nothing".into())),
        (&["nowhere"], Reason::ClaimMissing("nowhere".into())),
        (&["unbound", "lost", "nowhere"], Reason::ClaimMissing("nowhere".into())),
        (&["unbound", "lost"], lost),
    ] {
        assert_eq!(harness.reasons(claims), [(reason, 3)].into(), "{claims:?}");
    }
}

#[test]
fn a_pending_claim_uses_an_existing_volume_or_one_that_can_be_provisioned() {
    let mut harness = Harness::zones();
    harness.classes.push(class("disks", "WaitForFirstConsumer", "kubernetes.io/no-provisioner"));
    let wants = |mode: &str| {
        json!({
            "storageClassName": "disks", "accessModes": [mode], "resources": {"requests": {"storage": "5Gi"}},
        })
    };
    harness.claims.push(claim("data", wants("ReadWriteOnce")));
    assert_eq!(harness.reasons(&["data"]), [(Reason::NoVolume, 3)].into());
    let disk = |name: &str, zone: &str, size: &str| {
        let mut spec = in_zone(zone);
        spec["storageClassName"] = json!("disks");
        spec["capacity"] = json!({"storage": size});
        spec["accessModes"] = json!(["ReadWriteOnce"]);
        json!({"metadata": {"name": name}, "spec": spec, "status": {"phase": "Available"}})
    };
    harness.volumes.push(disk("small", "a", "1Gi"));
    harness.volumes.push(disk("taken", "a", "10Gi"));
    harness.volumes[1]["spec"]["claimRef"] = json!({"namespace": "default", "name": "other", "uid": "u"});
    harness.volumes.push(disk("fits", "b", "10Gi"));
    assert_eq!(harness.feasible(&["data"]), ["b1"]);
    // Two claims of one pod need two different volumes.
    harness.claims.push(claim("more", wants("ReadWriteOnce")));
    assert_eq!(harness.reasons(&["data", "more"]), [(Reason::NoVolume, 3)].into());
    harness.claims.push(claim("shared", wants("ReadWriteMany")));
    assert_eq!(harness.reasons(&["shared"]), [(Reason::NoVolume, 3)].into(), "no volume has that mode");

    let mut made = class("made", "WaitForFirstConsumer", "example.com/disks");
    made["allowedTopologies"] = json!([{"matchLabelExpressions": [{"key": ZONE, "values": ["a", "c"]}]}]);
    harness.classes.push(made);
    harness.claims.push(claim("dynamic", json!({"storageClassName": "made"})));
    assert_eq!(harness.feasible(&["dynamic"]), ["a1", "c1"]);
    let mut chosen = claim("chosen", json!({"storageClassName": "made"}));
    chosen["metadata"]["annotations"] = json!({"volume.kubernetes.io/selected-node": "c1"});
    harness.claims.push(chosen);
    assert_eq!(harness.feasible(&["chosen"]), ["c1"], "the scheduler has chosen before");
    match harness.place(&pod("p", &["dynamic"])) {
        SchedulingOutcome::Placed(placement) => assert_eq!(placement.caveats, [], "there is no CSIDriver"),
        other => panic!("{other:?}"),
    }
}

/// Kubernetes 1.37 `plugins/volumebinding/binder.go`, `hasEnoughCapacity`.
#[test]
fn a_new_volume_needs_storage_with_enough_capacity() {
    let mut harness = Harness::zones();
    harness.classes.push(class("local", "WaitForFirstConsumer", "local.example.com"));
    let wants =
        |storage: &str| json!({"storageClassName": "local", "resources": {"requests": {"storage": storage}}});
    harness.claims.push(claim("data", wants("5Gi")));
    let caveats = |harness: &Harness| match harness.place(&pod("p", &["data"])) {
        SchedulingOutcome::Placed(placement) => placement.caveats,
        other => panic!("{other:?}"),
    };
    harness.csi_drivers.push(json!({"metadata": {"name": "local.example.com"}, "spec": {}}));
    assert_eq!(harness.feasible(&["data"]).len(), 3, "the driver does not publish its capacity");
    harness.csi_drivers[0]["spec"]["storageCapacity"] = json!(true);
    assert_eq!(harness.feasible(&["data"]).len(), 3, "CSIStorageCapacities are not listed");
    assert_eq!(caveats(&harness), [Caveat::Capacity]);

    harness.capacities = Some(Vec::new());
    assert_eq!(harness.reasons(&["data"]), [(Reason::NoStorageSpace, 3)].into());
    let capacity = |name: &str, class: &str, sizes: Value| {
        let mut capacity = sizes;
        capacity["metadata"] = json!({"namespace": "default", "name": name});
        capacity["storageClassName"] = json!(class);
        capacity
    };
    let of_zone = |zone: &str| json!({"matchLabels": {ZONE: zone}});
    let either = json!({"matchExpressions": [{"key": ZONE, "operator": "Exists"}]});
    harness.capacities = Some(vec![
        capacity("a", "local", json!({"capacity": "10Gi", "nodeTopology": of_zone("a")})),
        capacity(
            "b",
            "local",
            json!({"capacity": "10Gi", "maximumVolumeSize": "2Gi", "nodeTopology": of_zone("b")}),
        ),
        capacity("c", "local", json!({"capacity": "4Gi", "nodeTopology": of_zone("c")})),
        capacity("other", "other", json!({"capacity": "10Gi", "nodeTopology": either})),
        capacity("nowhere", "local", json!({"capacity": "10Gi"})),
    ]);
    assert_eq!(harness.feasible(&["data"]), ["a1"]);
    assert_eq!(caveats(&harness), []);
    harness.claims[0] = claim("data", wants("3Gi"));
    assert_eq!(harness.feasible(&["data"]), ["a1", "c1"]);
    let everywhere = json!({"capacity": "10Gi", "nodeTopology": either});
    harness.capacities.iter_mut().for_each(|all| all.push(capacity("all", "local", everywhere.clone())));
    assert_eq!(harness.feasible(&["data"]), ["a1", "b1", "c1"]);
}

#[test]
fn a_claim_for_one_pod_is_free_when_that_pod_has_gone() {
    let mut harness = Harness::zones();
    harness.bound_claim("mine", json!({}), json!({}));
    harness.claims[0]["spec"]["accessModes"] = json!(["ReadWriteOncePod"]);
    let user = harness.run("user", "a1", &["mine"]);
    assert_eq!(harness.reasons(&["mine"]), [(Reason::ClaimInUse, 3)].into());
    let mut snapshot = harness.snapshot();
    snapshot.remove(&user.key, &"a1".into()).expect("it is there");
    assert_eq!(snapshot.feasible(&harness.request(&pod("p", &["mine"]))).len(), 3);
}

#[test]
fn a_pod_that_is_yet_to_be_named_gets_its_own_claims_made() {
    let mut harness = Harness::zones();
    let mut made = class("made", "WaitForFirstConsumer", "example.com/disks");
    made["allowedTopologies"] = json!([{"matchLabelExpressions": [{"key": ZONE, "values": ["b"]}]}]);
    harness.classes.push(made);
    let template = json!({"volumeClaimTemplate": {"spec": {"storageClassName": "made"}}});
    let own = json!({"name": "p", "volumes": [{"name": "scratch", "ephemeral": template}]});
    assert_eq!(
        harness.reasons_of(&own),
        [(Reason::ClaimNotCreated("p-scratch".into()), 3)].into(),
        "the pod is there, its claim is not"
    );
    let nameless = SchedulingRequest { name: "".into(), ..harness.request(&own) };
    let feasible = harness.snapshot().feasible(&nameless);
    assert_eq!(feasible.iter().map(|node| &**node).collect::<Vec<_>>(), ["b1"]);
}

#[test]
fn a_kind_that_may_not_be_listed_is_reported_and_nothing_is_concluded_from_it() {
    let harness = Harness::zones();
    let cluster = harness.scene.cluster();
    let p = harness.scene.pod(&pod("p", &["data"]), None);
    match Snapshot::new(&cluster, NEW).place(&SchedulingRequest::from_pod(&p, &cluster)) {
        SchedulingOutcome::Placed(placement) => {
            assert_eq!(placement.feasible, 3);
            assert_eq!(placement.caveats, [Caveat::Volumes, Caveat::Services]);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn services_say_which_pods_a_pod_without_constraints_is_spread_among() {
    let mut harness = Harness::zones();
    let labelled = |name: &str| json!({"name": name, "labels": {"app": "web", "tier": "front"}});
    let mut there = labelled("there");
    there["node"] = json!("a1");
    harness.scene.bound.push(there);
    let ranked = |harness: &Harness| match harness.place(&labelled("p")) {
        SchedulingOutcome::Placed(placement) => {
            placement.best.iter().map(ToString::to_string).collect::<Vec<_>>()
        }
        other => panic!("{other:?}"),
    };
    // The pods request nothing, so resources do not decide between the nodes.
    harness.services.push(service("front", json!({"tier": "front"})));
    let request = harness.request(&labelled("p"));
    let selector = request.siblings.expect("a service speaks of it");
    assert_eq!(selector.requirements.len(), 1);
    assert_eq!(ranked(&harness), ["b1", "c1"]);
    harness.services.push(service("back", json!({"tier": "back"})));
    harness.services.push(service("web", json!({"app": "web"})));
    harness.services.push(service("outside", json!({})));
    let selector = harness.request(&labelled("p")).siblings.expect("services speak of it");
    assert_eq!(selector.requirements.len(), 2, "those that select it, and all of them must hold");
}

#[test]
fn what_is_not_modelled_is_named_where_its_marks_are_seen() {
    let mut harness = Harness::zones();
    let caveats = |harness: &Harness, version, pod: &Value| match Snapshot::new(&harness.cluster(), version)
        .place(&harness.request(pod))
    {
        SchedulingOutcome::Placed(placement) => placement.caveats,
        SchedulingOutcome::Unschedulable(refused) => refused.caveats,
        other => panic!("{other:?}"),
    };
    let nowhere = json!({"name": "p", "nodeSelector": {"disk": "tape"}});
    assert_eq!(caveats(&harness, NEW, &nowhere), []);
    harness.scene.nodes[0]["labels"]["karpenter.sh/nodepool"] = json!("general");
    assert_eq!(caveats(&harness, NEW, &nowhere), [Caveat::NewNodes]);
    let of_group = json!({"name": "p", "labels": {"scheduling.x-k8s.io/pod-group": "g"}});
    assert_eq!(caveats(&harness, NEW, &of_group), [Caveat::Group]);
    let to_come = ServerVersion::new(1, 39);
    assert_eq!(caveats(&harness, to_come, &of_group), [Caveat::Group, Caveat::Newer]);
}

/// A cluster with known volumes, claims and storage classes.
#[derive(Default)]
struct Harness {
    scene: BriefCluster,
    claims: Vec<Value>,
    volumes: Vec<Value>,
    classes: Vec<Value>,
    csi_nodes: Vec<Value>,
    csi_drivers: Vec<Value>,
    /// CSIStorageCapacities; none if they are not listed.
    capacities: Option<Vec<Value>>,
    services: Vec<Value>,
}

impl Harness {
    fn new(nodes: &[(&str, Value)]) -> Self {
        let nodes = nodes.iter().map(|(name, labels)| json!({"name": name, "labels": labels})).collect();
        Self { scene: BriefCluster { nodes, ..BriefCluster::default() }, ..Self::default() }
    }

    /// Creates one node in each of the zones a, b and c.
    fn zones() -> Self {
        Self::new(&["a", "b", "c"].map(|zone| match zone {
            "a" => ("a1", json!({ZONE: zone})),
            "b" => ("b1", json!({ZONE: zone})),
            _ => ("c1", json!({ZONE: zone})),
        }))
    }

    /// Adds a bound claim and its volume; `metadata` and `spec` are those of the volume.
    fn bound_claim(&mut self, name: &str, mut metadata: Value, spec: Value) {
        let volume = format!("pv-{name}");
        metadata["name"] = json!(volume);
        self.volumes.push(json!({"metadata": metadata, "spec": spec, "status": {"phase": "Bound"}}));
        self.claims.push(bound(claim(name, json!({"volumeName": volume}))));
    }

    /// Adds a pod that runs on a node.
    fn run(&mut self, name: &str, node: &str, claims: &[&str]) -> std::sync::Arc<Pod> {
        let mut pod = pod(name, claims);
        pod["node"] = json!(node);
        self.scene.bound.push(pod.clone());
        self.scene.pod(&pod, Some(node))
    }

    fn cluster(&self) -> Cluster {
        let mut cluster = self.scene.cluster();
        known(&mut cluster, ClaimDecoder::default(), &self.claims);
        known(&mut cluster, VolumeDecoder::default(), &self.volumes);
        known(&mut cluster, StorageClassDecoder::default(), &self.classes);
        known(&mut cluster, CsiNodeDecoder::default(), &self.csi_nodes);
        known(&mut cluster, CsiDriverDecoder::default(), &self.csi_drivers);
        if let Some(capacities) = &self.capacities {
            known(&mut cluster, StorageCapacityDecoder::default(), capacities);
        }
        known(&mut cluster, ServiceDecoder::default(), &self.services);
        cluster
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot::new(&self.cluster(), NEW)
    }

    fn request(&self, pod: &Value) -> SchedulingRequest {
        SchedulingRequest::from_pod(&self.scene.pod(pod, None), &self.cluster())
    }

    fn place(&self, pod: &Value) -> SchedulingOutcome {
        self.snapshot().place(&self.request(pod))
    }

    fn feasible(&self, claims: &[&str]) -> Vec<String> {
        let nodes = self.snapshot().feasible(&self.request(&pod("p", claims)));
        nodes.iter().map(ToString::to_string).collect()
    }

    fn reasons(&self, claims: &[&str]) -> BTreeMap<Reason, usize> {
        self.reasons_of(&pod("p", claims))
    }

    fn reasons_of(&self, pod: &Value) -> BTreeMap<Reason, usize> {
        self.snapshot().refusals(&self.request(pod))
    }
}

/// Applies a complete list of a kind.
fn known<D: Decoder>(cluster: &mut Cluster, mut decoder: D, objects: &[Value]) {
    let apply = |cluster: &mut Cluster, change: Option<Change>| {
        change.into_iter().for_each(|change| cluster.apply(change, &mut Vec::new()));
    };
    apply(cluster, decoder.change(WatchEvent::ListStarted));
    list(cluster, &mut decoder, objects.to_vec());
    apply(cluster, decoder.change(WatchEvent::ListDone));
}

fn pod(name: &str, claims: &[&str]) -> Value {
    let volume = |claim: &&str| json!({"name": claim, "persistentVolumeClaim": {"claimName": claim}});
    json!({"name": name, "volumes": claims.iter().map(volume).collect::<Vec<_>>()})
}

fn claim(name: &str, spec: Value) -> Value {
    json!({"metadata": {"namespace": "default", "name": name, "uid": format!("uid-{name}")}, "spec": spec})
}

fn bound(mut claim: Value) -> Value {
    claim["metadata"]["annotations"] = json!({"pv.kubernetes.io/bind-completed": "yes"});
    claim["status"] = json!({"phase": "Bound"});
    claim
}

fn class(name: &str, mode: &str, provisioner: &str) -> Value {
    json!({"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode})
}

fn in_zone(zone: &str) -> Value {
    let expression = json!({"key": ZONE, "operator": "In", "values": [zone]});
    json!({"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}})
}

fn service(name: &str, selector: Value) -> Value {
    json!({"metadata": {"namespace": "default", "name": name}, "spec": {"selector": selector}})
}
