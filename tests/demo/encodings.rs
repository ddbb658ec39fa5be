//! Both encodings of the demo's server have the same meaning. The demo's encoder, which has every field of the
//! published messages, is tested together with kordon's two decoders.

use kordon::k8s::decode::Encoding;
use kordon_clock::Clock;
use kordon_demo::api::{Api, ApiOptions};
use kordon_time::Timestamp;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::common::encodings::ReadKind;

/// The published messages with all their fields, from which random objects are generated.
const MESSAGES: &str = include_str!("../../crates/kordon-demo/src/api/protobuf/messages.txt");

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

/// Loads random objects of each kind. Compares them as read in each encoding, as a list and as a watch.
async fn compare_all(seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    for kind in ReadKind::ALL {
        let api = with_random_objects(kind, &mut random);
        let [json, protobuf] = kind.read_both(&api.client()).await;
        assert_eq!((json.encoding, protobuf.encoding), (Encoding::Json, Encoding::Protobuf));
        assert!(json.listed.len() >= 4, "{kind:?}: {:?}", json.listed);
        json.assert_same(&protobuf);
    }
}

/// Creates a server with random objects of a kind.
pub fn with_random_objects(kind: ReadKind, random: &mut fastrand::Rng) -> Api {
    let api = Api::new(Clock::new(Timestamp::from_secs(1_800_000_000), 1.0), ApiOptions::default());
    for number in 0..4 {
        let mut object = random_message(kind.name, 0, random);
        let metadata = object["metadata"].as_object_mut().expect("every kind has metadata");
        metadata.insert("name".into(), format!("o{number}").into());
        metadata.insert("uid".into(), format!("u{number}").into());
        metadata.insert("creationTimestamp".into(), "2026-01-02T03:04:05Z".into());
        api.load(kind.plural(), object);
    }
    api
}

/// Generates an object. The root has all fields. A field below the root exists with a probability of two thirds, and at
/// a depth of 6 or more with a probability of a quarter. Texts and numbers are values that have a meaning in some
/// field.
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
                None => drop(object.insert(name.into(), random_value(of, depth, random))),
            }
        }
    }
}

fn random_value(of: &str, depth: usize, random: &mut fastrand::Rng) -> Value {
    if let Some(of) = of.strip_prefix("[]") {
        return (0..random.usize(0..3)).map(|_| random_value(of, depth, random)).collect();
    }
    if let Some(of) = of.strip_prefix("{}") {
        let mut entry = || (pick(KEYS, random).to_owned(), random_value(of, depth, random));
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
        "json" if random.bool() => json!({"f:spec": {"f:unschedulable": {}}}),
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
    "machineconfiguration.openshift.io/desiredDrain",
    "weave.works/kured-reboot-in-progress",
    "pv.kubernetes.io/bind-completed",
    "volume.kubernetes.io/selected-node",
    "volume.beta.kubernetes.io/storage-class",
    "requests.cpu",
    "topology.kubernetes.io/zone",
    "acme.example/team",
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
    "acme-shop",
    r#"{"by":"bob","operation":"p","renewed":"2026-01-02T03:04:05Z"}"#,
];
