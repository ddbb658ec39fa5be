//! Both encodings of the server mean the same objects: the demo's encoder, which knows every field of the published
//! messages, beside kordon's two decoders.

use bytes::Bytes;
use http_body_util::BodyExt;
use kordon::{
    clock::Clock,
    cluster::{Change, WorkloadKind},
    demo::api::{Api, ApiOptions},
    k8s::decode::{
        Decoder, Encoding, ListPurpose, StreamEvent,
        budget::BudgetDecoder,
        lease::{LeaderDecoder, LeaseDecoder},
        namespace::NamespaceDecoder,
        node::NodeDecoder,
        pod::PodDecoder,
        priority_class::PriorityClassDecoder,
        quota::QuotaDecoder,
        service::ServiceDecoder,
        storage::{ClaimDecoder, CsiNodeDecoder, StorageClassDecoder, VolumeDecoder},
        workload::WorkloadDecoder,
    },
    time::Timestamp,
};
use kube::client::Body;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// The messages as published, with all their fields: random objects are made of them.
const MESSAGES: &str = include_str!("../../src/demo/api/protobuf/messages.txt");

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_object_is_the_same_in_protobuf_and_in_json(seed in any::<u64>()) {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .expect("a runtime")
            .block_on(compare_all(seed));
    }
}

async fn compare_all(seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    compare("Node", "nodes", "/api/v1/nodes", NodeDecoder::default, &mut random).await;
    compare("Pod", "pods", "/api/v1/pods", PodDecoder::default, &mut random).await;
    compare("Namespace", "namespaces", "/api/v1/namespaces", NamespaceDecoder::default, &mut random).await;
    compare("Service", "services", "/api/v1/services", ServiceDecoder::default, &mut random).await;
    compare("ResourceQuota", "resourcequotas", "/api/v1/resourcequotas", QuotaDecoder::default, &mut random)
        .await;
    let claims = ("PersistentVolumeClaim", "persistentvolumeclaims", "/api/v1/persistentvolumeclaims");
    compare(claims.0, claims.1, claims.2, ClaimDecoder::default, &mut random).await;
    let volumes = ("PersistentVolume", "persistentvolumes", "/api/v1/persistentvolumes");
    compare(volumes.0, volumes.1, volumes.2, VolumeDecoder::default, &mut random).await;
    let classes = "/apis/storage.k8s.io/v1/storageclasses";
    compare("StorageClass", "storageclasses", classes, StorageClassDecoder::default, &mut random).await;
    let csi = "/apis/storage.k8s.io/v1/csinodes";
    compare("CSINode", "csinodes", csi, CsiNodeDecoder::default, &mut random).await;
    let priorities = "/apis/scheduling.k8s.io/v1/priorityclasses";
    compare("PriorityClass", "priorityclasses", priorities, PriorityClassDecoder::default, &mut random).await;
    let budgets = "/apis/policy/v1/poddisruptionbudgets";
    compare("PodDisruptionBudget", "poddisruptionbudgets", budgets, BudgetDecoder::default, &mut random)
        .await;
    let leases = "/apis/coordination.k8s.io/v1/leases";
    compare("Lease", "leases", leases, LeaseDecoder::default, &mut random).await;
    compare("Lease", "leases", leases, LeaderDecoder::default, &mut random).await;
    for kind in WorkloadKind::ALL {
        let (plural, group) = match kind {
            WorkloadKind::ReplicaSet => ("replicasets", "apis/apps"),
            WorkloadKind::Deployment => ("deployments", "apis/apps"),
            WorkloadKind::StatefulSet => ("statefulsets", "apis/apps"),
            WorkloadKind::DaemonSet => ("daemonsets", "apis/apps"),
            WorkloadKind::ReplicationController => ("replicationcontrollers", "api"),
            WorkloadKind::Job => ("jobs", "apis/batch"),
        };
        let path = format!("/{group}/v1/{plural}");
        compare(kind.as_str(), plural, &path, || WorkloadDecoder::new(kind), &mut random).await;
    }
}

/// Loads random objects of a kind, and reads them as a list and as a watch in each encoding.
async fn compare<D: Decoder>(
    kind: &'static str,
    plural: &str,
    path: &str,
    decoder: impl Fn() -> D,
    random: &mut fastrand::Rng,
) {
    let api = Api::new(Clock::new(Timestamp::from_secs(1_800_000_000), 1.0), ApiOptions::default());
    for number in 0..4 {
        let mut object = random_message(kind, 0, random);
        let metadata = object["metadata"].as_object_mut().expect("every kind has metadata");
        metadata.insert("name".into(), format!("o{number}").into());
        metadata.insert("uid".into(), format!("u{number}").into());
        metadata.insert("creationTimestamp".into(), "2026-01-02T03:04:05Z".into());
        api.load(plural, object);
    }
    let json = read(&api, path, "application/json", decoder()).await;
    let protobuf = read(&api, path, "application/vnd.kubernetes.protobuf, application/json", decoder()).await;
    assert_eq!((json.encoding, protobuf.encoding), (Encoding::Json, Encoding::Protobuf));
    assert!(json.listed.len() >= 4, "{kind}: {:?}", json.listed);
    for (one, other) in [(&json.listed, &protobuf.listed), (&json.watched, &protobuf.watched)] {
        assert_eq!(one.len(), other.len(), "{kind}");
        for (one, other) in one.iter().zip(other) {
            assert_eq!(format!("{one:?}"), format!("{other:?}"), "{kind}");
        }
    }
    assert_eq!(json.versions, protobuf.versions, "{kind}: versions to resume from");
}

struct ReadObjects {
    encoding: Encoding,
    listed: Vec<Change>,
    watched: Vec<Change>,
    /// Of the list, and of each event of the watch.
    versions: Vec<String>,
}

async fn read<D: Decoder>(api: &Api, path: &str, accept: &str, mut decoder: D) -> ReadObjects {
    let (encoding, body) = get(api, path, accept).await;
    let mut listed = Vec::new();
    let end = encoding.page(&mut decoder, &body, ListPurpose::Whole, &mut listed).expect("a list");
    assert!(end.bad.is_empty(), "{path}: {:?}", end.bad);
    let mut versions = vec![end.version];
    let watch = format!(
        "{path}?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1"
    );
    let (encoding, body) = get(api, &watch, accept).await;
    let (mut watched, mut ended) = (Vec::new(), false);
    for event in events(encoding, &body) {
        match encoding.event(&mut decoder, event, true) {
            StreamEvent::Object { change, version } => {
                watched.extend(change);
                versions.push(version);
            }
            StreamEvent::Bookmark { version, list_ends } => {
                versions.push(version);
                ended |= list_ends;
            }
            odd @ (StreamEvent::Error(_) | StreamEvent::Bad(_) | StreamEvent::Broken(_)) => {
                panic!("{path}: {odd:?}")
            }
        }
    }
    assert!(ended, "the bookmark that ends the list is read");
    ReadObjects { encoding, listed, watched, versions }
}

async fn get(api: &Api, path: &str, accept: &str) -> (Encoding, Bytes) {
    let request = http::Request::get(path).header(http::header::ACCEPT, accept);
    let answer = api.client().send(request.body(Body::empty()).expect("a request")).await.expect("an answer");
    let media = answer.headers()[http::header::CONTENT_TYPE].to_str().expect("text").to_owned();
    (Encoding::of(&media), answer.into_body().collect().await.expect("a body").to_bytes())
}

fn events(encoding: Encoding, mut body: &[u8]) -> Vec<&[u8]> {
    if encoding == Encoding::Json {
        return body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
    }
    let mut events = Vec::new();
    while let Some((length, rest)) = body.split_first_chunk() {
        let (event, rest) = rest.split_at(u32::from_be_bytes(*length) as usize);
        events.push(event);
        body = rest;
    }
    events
}

/// An object with each of its fields more often than not, and values that mean something somewhere.
fn random_message(name: &str, depth: usize, random: &mut fastrand::Rng) -> Value {
    let mut object = Map::new();
    fill(name, depth, &mut object, random);
    Value::Object(object)
}

fn fill(name: &str, depth: usize, object: &mut Map<String, Value>, random: &mut fastrand::Rng) {
    let line = MESSAGES.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let fields = line.unwrap_or_else(|| panic!("no message {name}")).split(',').map(str::trim);
    for field in fields.filter(|field| !field.is_empty()) {
        let [_, name, of] = field.split(' ').collect::<Vec<_>>()[..] else { panic!("{field}") };
        if depth == 0 || random.u8(..) < if depth < 6 { 170 } else { 60 } {
            match of.strip_prefix('+') {
                Some(inline) => fill(inline, depth + 1, object, random),
                None => drop(object.insert(name.into(), random_value(name, of, depth, random))),
            }
        }
    }
}

fn random_value(name: &str, of: &str, depth: usize, random: &mut fastrand::Rng) -> Value {
    if let Some(of) = of.strip_prefix("[]") {
        return (0..random.usize(0..3)).map(|_| random_value(name, of, depth, random)).collect();
    }
    if let Some(of) = of.strip_prefix("{}") {
        let mut entry = || (pick(KEYS, random).to_owned(), random_value(name, of, depth, random));
        return Value::Object((0..4).map(|_| entry()).collect());
    }
    match of {
        "text" => pick(WORDS, random).into(),
        "int" => {
            pick(&[0_i64, 1, 2, 30, 300, 8080, -1, i64::from(i32::MAX), i64::from(i32::MIN)], random).into()
        }
        "bool" => random.bool().into(),
        "bytes" => "aGk=".into(),
        "time" => format!("2026-01-02T03:04:{:02}Z", random.u8(0..60)).into(),
        "micros" => format!("2026-01-02T03:04:05.{:06}Z", random.u32(0..1_000_000)).into(),
        "quantity" => pick(&["250m", "1Gi", "4", "-1", "lots", "1500M", "0"], random).into(),
        "intOrText" => {
            if random.bool() {
                json!(random.u8(..))
            } else {
                json!(pick(&["50%", "web"], random))
            }
        }
        "json" => json!({"f:spec": {}}),
        message => random_message(message, depth + 1, random),
    }
}

fn pick<T: Copy>(from: &[T], random: &mut fastrand::Rng) -> T {
    from[random.usize(..from.len())]
}

const KEYS: &[&str] = &[
    "cpu",
    "memory",
    "pods",
    "storage",
    "ephemeral-storage",
    "example.com/gpu",
    "hugepages-2Mi",
    "app",
    "matchLabels",
    "kubernetes.io/config.mirror",
    "kordon.dev/cordon",
    "kordon.dev/drain",
    "pv.kubernetes.io/bind-completed",
    "volume.kubernetes.io/selected-node",
    "volume.beta.kubernetes.io/storage-class",
    "requests.cpu",
    "topology.kubernetes.io/zone",
];

const WORDS: &[&str] = &[
    "",
    "web",
    "é",
    "10",
    "True",
    "False",
    "Unknown",
    "Ready",
    "DisruptionTarget",
    "PodScheduled",
    "DisruptionAllowed",
    "SyncFailed",
    "Complete",
    "Running",
    "Failed",
    "Succeeded",
    "Pending",
    "OOMKilled",
    "Always",
    "Memory",
    "Block",
    "InternalIP",
    "Terminating",
    "Never",
    "Honor",
    "Ignore",
    "ScheduleAnyway",
    "WaitForFirstConsumer",
    "ReadWriteOnce",
    "In",
    "NotIn",
    "Exists",
    "DoesNotExist",
    "Gt",
    "Equal",
    "NoSchedule",
    "NoExecute",
    "Bound",
    "Lost",
    "Available",
    "Burstable",
    "apps/v1",
    "v1",
    "ReplicaSet",
    "Node",
    "metadata.name",
    "AlwaysAllow",
    "TCP",
    "default-scheduler",
    r#"{"by":"bob","operation":"p","renewed":"2026-01-02T03:04:05Z"}"#,
];
