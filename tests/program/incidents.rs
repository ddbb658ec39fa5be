//! Postmortems and counterfactuals of hand-made recordings, whose results can be computed by hand.

use std::collections::BTreeMap;

use kordon::{
    k8s::feed::{FeedEvent, FeedHealth, FeedState},
    recording::{RecordingStart, RecordingWriter},
};
use kordon_core::{
    cluster::{
        Change, Condition, ConditionStatus, FeedKind, Key, Lease, Node, NodeName, ObjectEvent, Owner,
        OwnerKind, Phase, Pod, PodReady, READY, Requests, Resources, TableObject, Taint, TaintEffect,
        Termination, Toleration, TolerationOperator, Uid, Version, Workload, WorkloadKind, WorkloadStage,
    },
    engine::{DELETION_BY_TAINT, NOT_READY, Origin, ServerVersion, Settings, UNREACHABLE},
};
use kordon_time::{ClusterTime, Span, Timestamp};
use serde_json::Value;

use crate::common::program::{Output, Shell};

const START: Timestamp = Timestamp::from_secs(1_800_000_000);
/// Interval of Lease renewals in seconds; the first renewal is a second after the start.
const RENEWAL: usize = 10;

/// A hand-made recording: the events of each second.
#[derive(Default)]
struct HandMade {
    grace: i64,
    nodes: Vec<Node>,
    pods: Vec<Pod>,
    events: BTreeMap<i64, Vec<Change>>,
    version: u64,
}

/// Duration of two passes of the controller in seconds, with the default flags of 1.36.
const PASSES: f64 = 10.0;

#[tokio::test]
async fn settings_are_compared_by_what_people_pay_for_the_same_outages() {
    // The recorded controller does nothing. Node a is away for five minutes, node b forever.
    let mut made = HandMade { grace: 2000, ..HandMade::default() };
    for (node, silent) in [("a", Some((101, 401))), ("b", Some((201, 900))), ("c", None)] {
        made.node(node, silent, 900);
    }
    for (name, node, owner) in [
        ("web-1", "a", Some(WorkloadKind::ReplicaSet)),
        ("db-0", "a", Some(WorkloadKind::StatefulSet)),
        ("bare", "a", None),
        ("agent", "a", Some(WorkloadKind::DaemonSet)),
        ("web-2", "b", Some(WorkloadKind::ReplicaSet)),
    ] {
        made.pods.push(pod(name, Some(node), owner));
    }
    let (shell, file) = made.write(900);
    let grid = [
        "tune",
        &file,
        "--with",
        "node-monitor-grace-period=50s",
        "--grid",
        "default-unreachable-toleration-seconds=30,300,1000",
        "-o",
        "json",
    ];
    let report = json(&shell.run(&grid).await);
    let outages = &report["outages"];
    assert_eq!((outages["ended"].as_u64(), outages["endedPods"].as_u64()), (Some(1), Some(3)), "{outages}");
    assert_eq!((outages["blips"].as_u64(), outages["blipPods"].as_u64()), (Some(1), Some(3)), "{outages}");
    assert_eq!(
        (outages["notEnded"].as_u64(), outages["notEndedPods"].as_u64()),
        (Some(1), Some(1)),
        "{outages}"
    );
    assert_eq!(report["startSeconds"].as_f64(), Some(10.0), "no pod became Ready");
    // Nodes a and b are silent from second 101 and 201 on. The controller marks each node Unknown after 50 s plus at
    // most two passes; then the toleration begins. A replacement runs 10 s after the eviction. The replacement of db-0
    // runs once node a is back, and bare has no replacement. A pod that is not evicted runs again once its node is
    // back.
    let evicted = |toleration: f64| 50.0 + toleration;
    let expected = [
        (
            "default-unreachable-toleration-seconds=30",
            evicted(30.0) + 10.0 + 310.0 + 799.0,
            3,
            evicted(30.0) + 10.0,
            1,
        ),
        ("", 3.0 * 300.0, 0, evicted(300.0) + 10.0, 1),
        ("default-unreachable-toleration-seconds=1000", 3.0 * 300.0, 0, 699.0, 0),
    ];
    let row = |with: &str| {
        let rows = report["settings"].as_array().expect("rows");
        let words = |row: &Value| -> Vec<String> {
            row["with"]
                .as_array()
                .expect("settings")
                .iter()
                .filter_map(Value::as_str)
                .map(Into::into)
                .collect()
        };
        let found = rows.iter().find(|row| words(row).join(" ") == with);
        found.unwrap_or_else(|| panic!("no row {with}: {report}"))
    };
    for (with, nowhere, moves, not_ended, not_ended_moves) in expected {
        let row = row(format!("node-monitor-grace-period=50s {with}").trim_end());
        let is_near = |field: &str, least: f64| {
            let found = row[field].as_f64().expect("a number");
            assert!(
                least <= found && found <= least + PASSES + 1.0,
                "{with}: {field} {found}, {least} at least"
            );
        };
        is_near("ranNowhereSeconds", nowhere);
        is_near("notEndedRanNowhereSeconds", not_ended);
        assert_eq!((row["moves"].as_u64(), row["blipMoves"].as_u64()), (Some(moves), Some(moves)), "{row}");
        assert_eq!(row["notEndedMoves"].as_u64(), Some(not_ended_moves), "{row}");
    }
    let in_force = row("");
    assert_eq!(in_force["ranNowhereSeconds"].as_f64(), Some(900.0), "{in_force}");
    assert_eq!(in_force["notEndedRanNowhereSeconds"].as_f64(), Some(699.0), "{in_force}");
    assert_eq!(in_force["moves"].as_u64(), Some(0), "{in_force}");
    for field in ["ranNowhereSeconds", "moves", "blipMoves", "notEndedRanNowhereSeconds", "notEndedMoves"] {
        assert_eq!(report["happened"][field], in_force[field], "{field}");
    }
    // The outage of node a lasted 300 s, counted from the node's last heartbeat.
    for (blip, blips, moves) in [("299s", 0, 0), ("301s", 1, 3)] {
        let hasty =
            [&grid[..5], &["default-unreachable-toleration-seconds=30", "--blip", blip, "-o", "json"]]
                .concat();
        let report = json(&shell.run(&hasty).await);
        assert_eq!(report["outages"]["blips"].as_u64(), Some(blips), "{blip}");
        assert_eq!(report["settings"][1]["blipMoves"].as_u64(), Some(moves), "{blip}: {report}");
    }
}

#[tokio::test]
async fn a_flag_that_the_recorded_release_does_not_have_is_refused() {
    let mut made = HandMade { grace: 50, ..HandMade::default() };
    made.node("a", None, 60);
    let (shell, file) = made.write(60);
    for arguments in [
        &["tune", &file, "--with", "pod-eviction-timeout=1m"][..],
        &["tune", &file, "--grid", "pod-eviction-timeout=1m,2m"],
        &["tune", &file, "--pod-eviction-timeout=1m"],
        &["replay", &file, "--with", "enable-taint-manager=false", "--snapshot", "frame.txt"],
        &["report", &file, "--enable-taint-manager=false"],
    ] {
        let output = shell.run(arguments).await;
        assert!(
            output.code == 2 && output.err.contains("is no flag of Kubernetes 1.36"),
            "{arguments:?}: {}",
            output.err
        );
    }
}

#[tokio::test]
async fn a_node_that_is_late_or_starts_is_not_ready_in_a_postmortem_and_one_that_was_silent_did_not_fail() {
    let mut made = HandMade { grace: 50, ..HandMade::default() };
    made.node("failed", Some((101, 261)), 600);
    made.node("silent", Some((101, 141)), 600);
    made.node("late", Some((301, 321)), 600);
    made.nodes[2].unschedulable = true;
    made.post("failed", 155, Some(ConditionStatus::Unknown));
    // The node comes back as a new object on another machine, whose kubelet has not posted yet.
    made.events.entry(258).or_default().push(Change::Node(ObjectEvent::Deleted("failed".into())));
    made.post("failed", 258, None);
    made.post("failed", 280, Some(ConditionStatus::True));
    let (shell, file) = made.write(600);
    let report = json(&shell.run(&["report", &file, "-o", "json"]).await);
    let summary = &report["summary"];
    assert_eq!(
        (summary["nodesFailed"].as_u64(), summary["nodesSilent"].as_u64()),
        (Some(1), Some(1)),
        "{report}"
    );
    let until = |name: &str| {
        let nodes = report["nodes"].as_array().expect("nodes");
        let outages: Vec<&Value> = nodes.iter().filter(|outage| outage["node"] == name).collect();
        let [outage] = outages[..] else { panic!("{name} had one outage: {report}") };
        let until = Timestamp::parse(outage["until"].as_str().expect("it ended")).expect("a time");
        (until.since(START).as_secs(), outage["down"].is_null())
    };
    // The outage may end a second late, because the Ready condition is checked every second.
    let (ended, was_only_silent) = until("failed");
    assert!(
        (280..=281).contains(&ended) && !was_only_silent,
        "it starts from 258 to 280, and ended at {ended}"
    );
    let (ended, was_only_silent) = until("silent");
    assert!((141..=142).contains(&ended) && was_only_silent, "ended at {ended}");
    let moments = report["moments"].as_array().expect("moments").iter();
    let texts: Vec<&str> = moments.filter_map(|moment| moment["text"].as_str()).collect();
    assert!(
        !texts.iter().any(|text| text.starts_with("node late")),
        "it was cordoned all the time: {texts:?}"
    );
    let text = shell.run(&["report", &file]).await.out;
    assert!(text.contains("- Nodes that failed (declared NotReady or Unknown): 1\n"), "{text}");
    assert!(text.contains("- Nodes that were silent and did not fail: 1\n"), "{text}");
    assert!(!text.contains("not necessary"), "this measure does not compare settings: {text}");
}

/// Node a becomes Unknown, is tainted five seconds later, and is back before its pod is evicted.
fn short_outage() -> HandMade {
    let mut made = HandMade { grace: 50, ..HandMade::default() };
    made.node("a", Some((101, 186)), 300);
    made.node("b", None, 300);
    made.pods.push(pod("web-1", Some("a"), Some(WorkloadKind::ReplicaSet)));
    made.post("a", 155, Some(ConditionStatus::Unknown));
    made.taint("a", 165);
    // The kubelet posts its status before it renews its Lease.
    made.post("a", 180, Some(ConditionStatus::True));
    made
}

#[tokio::test]
async fn pods_of_a_node_that_is_back_in_time_are_not_evicted() {
    let (shell, file) = short_outage().write(300);
    let report = json(&shell.run(&["report", &file, "-o", "json"]).await);
    let summary = &report["summary"];
    assert_eq!(
        (summary["nodesEvicted"].as_u64(), summary["podsEvicted"].as_u64()),
        (Some(0), Some(0)),
        "{summary}"
    );
    assert!(report["nodes"][0]["evicting"].is_string(), "they had a time: {}", report["nodes"]);
    let text = shell.run(&["report", &file]).await.out;
    assert!(text.contains("- Outages of a node in which pods were evicted from it: 0\n"), "{text}");
}

/// Kubernetes 1.37, `tryUpdateNodeHealth`: a new status is a heartbeat, beside a Lease too.
#[tokio::test]
async fn a_node_that_posts_its_status_again_is_not_silent() {
    let (shell, file) = short_outage().write(300);
    let report = json(&shell.run(&["report", &file, "-o", "json"]).await);
    let moments = report["moments"].as_array().expect("moments").iter();
    let texts: Vec<&str> = moments.filter_map(|moment| moment["text"].as_str()).collect();
    let of_node: Vec<&str> = texts.into_iter().filter(|text| text.starts_with("node a ")).collect();
    assert_eq!(of_node, ["node a Silent", "node a Unknown", "node a Evicting", "node a Ready"]);
}

/// Without pods, node a stays Unknown when it is tainted.
#[tokio::test]
async fn the_causes_of_an_outage_include_what_happened_later() {
    let mut made = short_outage();
    made.pods.clear();
    let (shell, file) = made.write(300);
    let report = json(&shell.run(&["report", &file, "-o", "json"]).await);
    let outage = &report["nodes"][0];
    assert_eq!(outage["worst"], "Unknown", "{outage}");
    let why: Vec<&str> = outage["why"].as_array().expect("causes").iter().filter_map(Value::as_str).collect();
    assert!(why.iter().any(|text| text.contains("unreachable:NoExecute, by node lifecycle")), "{why:?}");
    assert!(!why.iter().any(|text| text.contains("it waits")), "it was tainted: {why:?}");
}

/// Two pods of node a are evicted. Both are predicted to move to node b, the only other node. One pod moves there, and
/// the other pod gets no node.
#[tokio::test]
async fn outcomes_are_compared_with_where_pods_went() {
    let mut made = HandMade { grace: 50, ..HandMade::default() };
    made.node("a", Some((101, 600)), 600);
    made.node("b", None, 600);
    for name in ["web-1", "web-2"] {
        made.pods.push(pod(name, Some("a"), Some(WorkloadKind::ReplicaSet)));
    }
    made.post("a", 155, Some(ConditionStatus::Unknown));
    made.taint("a", 155);
    made.evict("web-1", 455, ("web-3", Some("b")));
    made.evict("web-2", 455, ("web-4", None));
    let (shell, file) = made.write(600);
    let report = json(&shell.run(&["report", &file, "-o", "json"]).await);
    let outcomes = &report["predictions"]["outcomes"];
    let counts =
        ["pods", "right", "byChance", "wrong", "notPredicted", "open"].map(|count| outcomes[count].as_u64());
    assert_eq!(counts, [2, 1, 0, 1, 0, 0].map(Some), "{outcomes}");
    let [other] = &outcomes["differences"].as_array().expect("differences")[..] else { panic!("{outcomes}") };
    assert_eq!((other["predicted"].as_str(), other["became"].as_str()), (Some("moves"), Some("pending")));
    assert_eq!(outcomes["last"][0]["predictedNode"].as_str(), Some("b"), "{outcomes}");
    let text = shell.run(&["report", &file]).await.out;
    assert!(text.contains("| 2 | 1 | 0 | 1 | 1 predicted moves, became pending | 0 | 0 |"), "{text}");
}

/// Node b is cordoned until two seconds before the pod of node a is evicted.
#[tokio::test]
async fn outcomes_are_compared_with_a_prediction_of_the_last_second() {
    let mut made = HandMade { grace: 50, ..HandMade::default() };
    made.node("a", Some((101, 600)), 600);
    made.node("b", None, 600);
    made.nodes[1].unschedulable = true;
    for (name, node) in [("web-1", "a"), ("web-2", "b")] {
        made.pods.push(pod(name, Some(node), Some(WorkloadKind::ReplicaSet)));
    }
    made.post("a", 155, Some(ConditionStatus::Unknown));
    made.taint("a", 155);
    made.post("b", 456, Some(ConditionStatus::True));
    made.evict("web-1", 458, ("web-3", Some("b")));
    let (shell, file) = made.write(600);
    let report = json(&shell.run(&["report", &file, "-o", "json"]).await);
    let outcomes = &report["predictions"]["outcomes"];
    assert_eq!((outcomes["pods"].as_u64(), outcomes["right"].as_u64()), (Some(1), Some(1)), "{outcomes}");
}

fn json(output: &Output) -> Value {
    assert_eq!(output.code, 0, "{}", output.err);
    output.json()
}

impl HandMade {
    /// Adds a node whose kubelet renews its Lease until the end, except for the time in `silent`.
    fn node(&mut self, name: &str, silent: Option<(i64, i64)>, until: i64) {
        self.nodes.push(node(name, Some(ConditionStatus::True), 0));
        for at in (1..until).step_by(RENEWAL) {
            if !silent.is_some_and(|(from, to)| from < at && at < to) {
                self.version += 1;
                let renewed = Some(ClusterTime::new(START + Span::from_secs(at)));
                let lease = Lease {
                    node: name.into(),
                    version: Version(self.version),
                    renewed,
                    duration: None,
                    written: None,
                };
                self.events.entry(at).or_default().push(Change::Lease(ObjectEvent::Applied(lease)));
            }
        }
    }

    /// Changes the Ready status of a node. `None` stands for a kubelet that has never posted.
    fn post(&mut self, name: &str, at: i64, status: Option<ConditionStatus>) {
        self.version += 1;
        let posted = Node { version: Version(self.version), ..node(name, status, at) };
        self.events.entry(at).or_default().push(Change::Node(ObjectEvent::Applied(posted)));
    }

    /// Taints an Unknown node, as the controller does.
    fn taint(&mut self, name: &str, at: i64) {
        self.version += 1;
        let taint = |effect| Taint {
            key: UNREACHABLE.into(),
            effect,
            time_added: Some(ClusterTime::new(START + Span::from_secs(at))),
            ..Taint::default()
        };
        let tainted = Node {
            version: Version(self.version),
            taints: [taint(TaintEffect::NoSchedule), taint(TaintEffect::NoExecute)].into(),
            ..node(name, Some(ConditionStatus::Unknown), at)
        };
        self.events.entry(at).or_default().push(Change::Node(ObjectEvent::Applied(tainted)));
    }

    fn pod(&mut self, at: i64, pod: Pod) {
        self.version += 1;
        let pod = Pod { version: Version(self.version), ..pod };
        self.events.entry(at).or_default().push(Change::Pod(ObjectEvent::Applied(pod)));
    }

    /// Evicts a pod of node a by its taint. The replacement is created at once. It runs on the given node five seconds
    /// later, or gets no node.
    fn evict(&mut self, name: &str, at: i64, (replacement, node): (&str, Option<&str>)) {
        let end = START + Span::from_secs(at + 30);
        let termination = Termination { deadline: ClusterTime::new(end), grace: Span::from_secs(30) };
        let evicted = Pod {
            disruption_target: Some(DELETION_BY_TAINT.into()),
            termination: Some(termination.into()),
            ..pod(name, Some("a"), Some(WorkloadKind::ReplicaSet))
        };
        self.pod(at, evicted);
        let waiting = Pod {
            phase: Phase::Pending,
            ready: None,
            ..pod(replacement, None, Some(WorkloadKind::ReplicaSet))
        };
        self.pod(at, Pod { created: ClusterTime::new(START + Span::from_secs(at)), ..waiting });
        if node.is_some() {
            self.pod(at + 5, pod(replacement, node, Some(WorkloadKind::ReplicaSet)));
        }
    }

    /// Writes the recording to a file in a new shell's home folder.
    fn write(self, until: i64) -> (Shell, String) {
        let mut settings = Settings::defaults(ServerVersion::new(1, 36));
        let grace = format!("{}s", self.grace);
        settings.set("node-monitor-grace-period", &grace, Origin::Cluster).expect("a duration");
        let start = RecordingStart::new(&settings, Span::from_secs(36_000), START);
        let mut file = Vec::new();
        let mut writer = RecordingWriter::start(&mut file, start, None).expect("memory");
        let workloads = self.pods.iter().filter_map(|pod| {
            let owner = pod.owner.as_ref()?;
            let OwnerKind::Workload(kind) = owner.kind else { return None };
            let key = Key { namespace: pod.key.namespace.clone(), name: owner.name.clone() };
            let (uid, replicas) = (owner.uid.clone(), Some(2));
            Some((
                kind,
                Workload {
                    kind,
                    key,
                    uid,
                    version: Version(1),
                    replicas,
                    selector: None,
                    owner: None,
                    replaces_only_failed: false,
                    is_recreated: false,
                    reboot_locks: Vec::new(),
                    stateful: None,
                    job: None,
                    template: None,
                    stage: WorkloadStage::Active,
                },
            ))
        });
        let workloads: BTreeMap<_, _> =
            workloads.map(|(kind, workload)| (kind.as_str(), (kind, workload))).collect();
        let mut listed = Vec::new();
        listed.extend(list(self.nodes, Change::Node));
        listed.extend(list(Vec::new(), Change::Lease));
        listed.extend(list(self.pods, Change::Pod));
        for kind in WorkloadKind::ALL {
            let own = workloads.get(kind.as_str()).map(|(_, workload)| workload.clone());
            listed.extend(list(own.into_iter().collect(), |event| Change::Workload(kind, event)));
        }
        listed.extend(list(Vec::new(), Change::Budget));
        listed.extend(list(Vec::new(), Change::PriorityClass));
        listed.extend(list(Vec::new(), Change::Namespace));
        listed.extend(list(Vec::new(), Change::Service));
        listed.extend(list(Vec::new(), Change::Claim));
        listed.extend(list(Vec::new(), Change::Volume));
        listed.extend(list(Vec::new(), Change::StorageClass));
        listed.extend(list(Vec::new(), Change::CsiNode));
        listed.extend(list(Vec::new(), Change::CsiDriver));
        listed.extend(list(Vec::new(), Change::Quota));
        writer.event(&FeedEvent::Changes(listed), START).expect("memory");
        for kind in FeedKind::ALL {
            let health = FeedHealth {
                state: FeedState::Live,
                last_heard: Some(START),
                relists: 0,
                requests: 1,
                bytes: 1,
            };
            writer.event(&FeedEvent::Health(kind, health), START).expect("memory");
        }
        for (at, changes) in self.events {
            writer.event(&FeedEvent::Changes(changes), START + Span::from_secs(at)).expect("memory");
        }
        writer.finish(START + Span::from_secs(until)).expect("memory");
        let shell = Shell::new();
        let path = shell.home.path().join("made.kordon");
        std::fs::write(&path, file).expect("written");
        (shell, path.to_str().expect("text").to_owned())
    }
}

fn list<T: TableObject>(objects: Vec<T>, change: impl Fn(ObjectEvent<T>) -> Change) -> Vec<Change> {
    let listed = objects.into_iter().map(ObjectEvent::Listed);
    std::iter::once(ObjectEvent::ListStarted)
        .chain(listed)
        .chain([ObjectEvent::ListDone])
        .map(change)
        .collect()
}

fn node(name: &str, status: Option<ConditionStatus>, since: i64) -> Node {
    let at = Some(ClusterTime::new(START + Span::from_secs(since)));
    let ready = |status| Condition {
        kind: READY.into(),
        status,
        reason: if status == ConditionStatus::Unknown { "NodeStatusUnknown" } else { "KubeletReady" }.into(),
        last_heartbeat: at,
        last_transition: at,
        ..Condition::default()
    };
    Node {
        name: NodeName::from(name),
        uid: if since == 258 || since == 280 { "another" } else { name }.into(),
        version: Version(1),
        created: ClusterTime::new(START - Span::from_secs(3600)),
        conditions: status.map(ready).into_iter().collect(),
        allocatable: Resources { cpu_milli: 8000, memory_bytes: 8 << 30, pods: 110 },
        ..Node::default()
    }
}

/// A running pod with the tolerations that admission adds.
fn pod(name: &str, node: Option<&str>, owner: Option<WorkloadKind>) -> Pod {
    let toleration = |key: &str| Toleration {
        key: key.into(),
        operator: TolerationOperator::Exists,
        effect: Some(TaintEffect::NoExecute),
        seconds: Some(300),
        ..Toleration::default()
    };
    let owner = owner.map(|kind| Owner {
        kind: OwnerKind::Workload(kind),
        name: format!("owner-{kind}").to_lowercase().as_str().into(),
        uid: Uid::from(kind.as_str()),
    });
    Pod {
        key: Key::new("shop", name),
        uid: Uid::from(name),
        version: Version(1),
        created: ClusterTime::new(START - Span::from_secs(600)),
        node: node.map(Into::into),
        owner: owner.map(Into::into),
        tolerations: [toleration(NOT_READY), toleration(UNREACHABLE)].into(),
        resources: std::sync::Arc::new(
            Requests { cpu_milli: 1000, memory_bytes: 1 << 30, ..Requests::default() }.into(),
        ),
        grace: Span::from_secs(30),
        phase: Phase::Running,
        ready: node.map(|_| PodReady { status: ConditionStatus::True, last_transition: None }),
        ..Pod::default()
    }
}
