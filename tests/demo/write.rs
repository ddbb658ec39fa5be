//! Writes with their preconditions against the demo's API server, and access reviews.

use std::time::Duration;

use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{Event as StoredEvent, Node, Pod},
};
use kordon::k8s::{access, settings, write::send_write};
use kordon_clock::Clock;
use kordon_core::{
    cluster::{Key, Taint, TaintEffect, Uid, Version},
    engine::{Deletion, EventObject, LeaseCheck, Outcome, RecordedEvent, UnknownCondition, Write},
    plan::Permission,
};
use kordon_demo::api::{Api, ApiOptions, Fault, FaultAnswer, Verb};
use kordon_time::{ClusterTime, Timestamp};
use kube::{
    Api as Objects, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::json;

const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

#[tokio::test(start_paused = true)]
async fn conditions_become_unknown_only_on_the_version_that_was_decided_on() {
    let cluster = Fixture::new();
    let node = cluster.node().await;
    let mark = |version| mark_unknown(&node, version, LeaseCheck::Skip);
    assert_eq!(cluster.write(&mark(Version(1))).await, Outcome::Conflict);
    assert_eq!(cluster.write(&mark(version(&node))).await, Outcome::Done);
    let expected = [("Ready", "Unknown"), ("DiskPressure", "False")];
    assert_eq!(conditions(&cluster).await, expected.map(|(kind, status)| (kind.into(), status.into())));
    assert_eq!(cluster.write(&mark(version(&node))).await, Outcome::Conflict, "it is newer now");
}

#[tokio::test(start_paused = true)]
async fn a_node_becomes_unknown_only_while_its_lease_is_the_one_that_was_decided_on() {
    let cluster = Fixture::new();
    let node = cluster.node().await;
    let mark = |known| mark_unknown(&node, version(&node), LeaseCheck::Version(known));
    let leases = Objects::<Lease>::namespaced(cluster.api.client(), "kube-node-lease");
    let lease =
        json!({"metadata": {"name": "n1", "namespace": "kube-node-lease"}, "spec": {"holderIdentity": "n1"}});
    let lease: Lease = serde_json::from_value(lease).unwrap();
    let created = leases.create(&PostParams::default(), &lease).await.unwrap();
    let known = Version::parse(&created.resource_version().unwrap());
    let renewal = json!({"spec": {"renewTime": "2027-01-15T08:00:00.000000Z"}});
    leases.patch("n1", &PatchParams::default(), &Patch::Merge(renewal)).await.unwrap();

    assert_eq!(cluster.write(&mark(Some(known))).await, Outcome::Conflict, "it was renewed since");
    assert_eq!(cluster.write(&mark(None)).await, Outcome::Conflict, "it was created since");
    assert!(conditions(&cluster).await.iter().all(|(_, status)| status != "Unknown"));

    leases.delete("n1", &DeleteParams::default()).await.unwrap();
    assert_eq!(
        cluster.write(&mark(Some(known))).await,
        Outcome::Done,
        "without a Lease there is no heartbeat"
    );
    assert!(conditions(&cluster).await.contains(&("Ready".into(), "Unknown".into())));
}

#[tokio::test(start_paused = true)]
async fn taints_are_swapped_over_the_newest_node_and_never_against_its_state() {
    let cluster = Fixture::new();
    let node = cluster.node().await;
    let swap = |uid| Write::SwapTaints {
        node: "n1".into(),
        uid,
        version: Version(1),
        add: vec![taint(UNREACHABLE)],
        remove: vec![taint("node.kubernetes.io/not-ready")],
    };
    assert_eq!(cluster.write(&swap(uid(&node))).await, Outcome::Conflict, "the node is ready");
    cluster.set_ready("Unknown").await;
    assert_eq!(cluster.write(&swap("another".into())).await, Outcome::Conflict);
    assert_eq!(cluster.write(&swap(uid(&node))).await, Outcome::Done, "an older version does not matter");
    let taints = cluster.node().await.spec.and_then(|spec| spec.taints).unwrap_or_default();
    let keys: Vec<&str> = taints.iter().map(|taint| taint.key.as_str()).collect();
    assert_eq!(keys, ["team", UNREACHABLE], "foreign taints stay, the removed one is gone");
    assert!(taints[1].time_added.is_some());
}

#[tokio::test(start_paused = true)]
async fn labels_are_set_beside_the_others() {
    let cluster = Fixture::new();
    let node = cluster.node().await;
    let labels = vec![("beta.kubernetes.io/os".into(), "linux".into())];
    let set = Write::SetLabels { node: "n1".into(), uid: uid(&node), version: version(&node), labels };
    assert_eq!(cluster.write(&set).await, Outcome::Done);
    let labels = cluster.node().await.metadata.labels.unwrap_or_default();
    assert_eq!((labels.len(), labels["beta.kubernetes.io/os"].as_str()), (2, "linux"));
    assert_eq!(cluster.write(&set).await, Outcome::Conflict);
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_marked_not_ready_with_its_reason_kept() {
    let cluster = Fixture::new();
    let pod = cluster.pod().await.expect("it is there");
    let mark = Write::MarkPodNotReady {
        pod: Key::new("web", "p1"),
        uid: uid(&pod),
        version: version(&pod),
        node: "n1".into(),
    };
    assert_eq!(cluster.write(&mark).await, Outcome::Done);
    let status = cluster.pod().await.and_then(|pod| pod.status).expect("a status");
    let ready = &status.conditions.expect("conditions")[0];
    assert_eq!((ready.status.as_str(), ready.reason.as_deref()), ("False", Some("Because")));
}

#[tokio::test(start_paused = true)]
async fn the_meant_pod_is_deleted_and_no_other() {
    let cluster = Fixture::new();
    let pod = cluster.pod().await.expect("it is there");
    let delete = |uid| Write::DeletePod {
        pod: Key::new("web", "p1"),
        uid,
        node: "n1".into(),
        deletion: Deletion::ByTaint { disruption_target: true },
    };
    assert_eq!(cluster.write(&delete("another".into())).await, Outcome::Conflict);
    assert!(cluster.pod().await.expect("it is there").metadata.deletion_timestamp.is_none());
    assert_eq!(cluster.write(&delete(uid(&pod))).await, Outcome::Done);
    let pod = cluster.pod().await.expect("it has its grace");
    assert!(pod.metadata.deletion_timestamp.is_some());
    let conditions = pod.status.and_then(|status| status.conditions).unwrap_or_default();
    assert!(conditions.iter().any(|condition| condition.type_ == "DisruptionTarget"));
    let gone = Write::DeletePod {
        pod: Key::new("web", "p2"),
        uid: "u".into(),
        node: "n1".into(),
        deletion: Deletion::ByTaint { disruption_target: false },
    };
    assert_eq!(cluster.write(&gone).await, Outcome::Gone);
}

#[tokio::test(start_paused = true)]
async fn events_are_recorded_where_kubectl_looks_for_them() {
    let cluster = Fixture::new();
    for object in [EventObject::Node("n1".into(), "u".into()), EventObject::Pod(Key::new("web", "p1"))] {
        let event = RecordedEvent {
            object,
            warning: true,
            reason: "NodeNotReady",
            message: "Node is not ready".into(),
            source: "node-controller",
        };
        assert_eq!(cluster.write(&Write::RecordEvent(event.clone())).await, Outcome::Done);
        assert_eq!(cluster.write(&Write::RecordEvent(event)).await, Outcome::Done);
    }
    for (namespace, kind) in [("default", "Node"), ("web", "Pod")] {
        let events: Objects<StoredEvent> = Objects::namespaced(cluster.api.client(), namespace);
        let events = events.list(&kube::api::ListParams::default()).await.expect("listed").items;
        assert_eq!(events.len(), 2);
        assert_eq!(events[0].involved_object.kind.as_deref(), Some(kind));
    }
}

#[tokio::test(start_paused = true)]
async fn refusals_are_reported_immediately_with_their_reason() {
    let cluster = Fixture::new();
    let node = cluster.node().await;
    let set = Write::SetLabels {
        node: "n1".into(),
        uid: uid(&node),
        version: version(&node),
        labels: vec![("a".into(), "b".into())],
    };
    cluster
        .api
        .inject(Fault::always(FaultAnswer::Overloaded { retry_after_secs: 60 }).on(&[Verb::Patch], "nodes"));
    let asked = cluster.api.log().len();
    assert!(
        matches!(cluster.write(&set).await, Outcome::Failed(words) if words.contains("Too many requests"))
    );
    assert_eq!(cluster.api.log().len(), asked + 1, "nothing is retried behind our back");
    cluster.api.clear_faults();
    cluster.api.inject(Fault::always(FaultAnswer::Forbidden).on(&[Verb::Patch], "nodes"));
    assert!(matches!(cluster.write(&set).await, Outcome::Failed(words) if words.contains("cannot patch")));
    cluster.api.clear_faults();
    cluster.api.inject(Fault::always(FaultAnswer::Hang));
    let hung = tokio::time::timeout(Duration::from_secs(60), cluster.write(&set)).await;
    assert!(matches!(hung, Ok(Outcome::Failed(words)) if words.contains("no response")));
}

#[tokio::test(start_paused = true)]
async fn rights_are_requested() {
    let cluster = Fixture::new();
    let client = cluster.api.client();
    let evict = [Permission::on_pods("create", "eviction", &"web".into())];
    assert_eq!(access::missing(&client, &evict).await.expect("asked"), []);
    cluster.api.inject(Fault::always(FaultAnswer::Forbidden).on(&[Verb::Create], "pods/eviction"));
    assert_eq!(access::missing(&client, &evict).await.expect("asked"), evict);
}

#[tokio::test(start_paused = true)]
async fn the_controllers_flags_are_read_where_that_is_allowed() {
    let cluster = Fixture::new();
    let client = cluster.api.client();
    assert!(settings::controller_flags(&client).await.note.contains("does not run as a pod"));
    let labels = json!({"component": "kube-controller-manager"});
    cluster.api.load(
        "pods",
        json!({"metadata": {"name": "kube-controller-manager-m1", "namespace": "kube-system", "labels": labels},
            "spec": {"containers": [{"name": "kube-controller-manager", "image": "i",
                "command": ["kube-controller-manager", "--node-monitor-grace-period=20s"]}]}}),
    );
    let found = settings::controller_flags(&client).await;
    assert_eq!(found.flags, [("node-monitor-grace-period".to_owned(), "20s".to_owned())]);
    assert!(found.note.contains("kube-controller-manager-m1"));
    cluster.api.inject(Fault::always(FaultAnswer::Forbidden).on(&[Verb::List], "pods"));
    assert!(settings::controller_flags(&client).await.note.contains("cannot read"));
}

/// A server with one node and one pod on it.
struct Fixture {
    api: Api,
}

impl Fixture {
    fn new() -> Self {
        let api = Api::new(Clock::new(now(), 1.0), ApiOptions::default());
        api.load(
            "nodes",
            json!({"metadata": {"name": "n1", "labels": {"kubernetes.io/os": "linux"}},
                "spec": {"taints": [{"key": "team", "effect": "NoExecute"},
                    {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}]},
                "status": {"conditions": [{"type": "Ready", "status": "True"},
                    {"type": "DiskPressure", "status": "False"}]}}),
        );
        api.load("namespaces", json!({"metadata": {"name": "web"}, "status": {"phase": "Active"}}));
        api.load(
            "pods",
            json!({"metadata": {"name": "p1", "namespace": "web"},
                "spec": {"nodeName": "n1", "terminationGracePeriodSeconds": 30,
                    "containers": [{"name": "c", "image": "i"}]},
                "status": {"phase": "Running", "conditions": [
                    {"type": "Ready", "status": "True", "reason": "Because"}]}}),
        );
        Self { api }
    }

    async fn write(&self, write: &Write) -> Outcome {
        send_write(&self.api.client(), write, now()).await
    }

    async fn node(&self) -> Node {
        Objects::all(self.api.client()).get("n1").await.expect("the node")
    }

    async fn pod(&self) -> Option<Pod> {
        Objects::namespaced(self.api.client(), "web").get_opt("p1").await.expect("asked")
    }

    async fn set_ready(&self, status: &str) {
        let nodes: Objects<Node> = Objects::all(self.api.client());
        let patch = json!({"status": {"conditions": [{"type": "Ready", "status": status}]}});
        let patch = Patch::Strategic(patch);
        nodes.patch_status("n1", &PatchParams::default(), &patch).await.expect("patched");
    }
}

fn mark_unknown(node: &Node, version: Version, lease: LeaseCheck) -> Write {
    let ready = UnknownCondition {
        kind: "Ready".into(),
        reason: "NodeStatusUnknown".into(),
        message: "Kubelet stopped posting node status.".into(),
        last_heartbeat: None,
        last_transition: ClusterTime::new(now()),
    };
    Write::MarkUnknown { node: "n1".into(), uid: uid(node), version, conditions: vec![ready], lease }
}

/// Returns type and status of each condition of the node.
async fn conditions(cluster: &Fixture) -> Vec<(String, String)> {
    let conditions = cluster.node().await.status.and_then(|status| status.conditions).unwrap_or_default();
    conditions.into_iter().map(|condition| (condition.type_, condition.status)).collect()
}

fn now() -> Timestamp {
    Timestamp::from_secs(1_800_000_000)
}

fn taint(key: &str) -> Taint {
    Taint { key: key.into(), effect: TaintEffect::NoExecute, ..Taint::default() }
}

fn uid(object: &impl ResourceExt) -> Uid {
    Uid::from(&*object.uid().expect("a uid"))
}

fn version(object: &impl ResourceExt) -> Version {
    Version::parse(&object.resource_version().expect("a version"))
}
