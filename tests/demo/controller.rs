//! `kordon controller` against the demo's API server: its writes, the conditions under which it does not write, and its
//! metrics and probes.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{Event as StoredEvent, Node, Pod},
};
use kordon::{
    journal::{Journal, LineKind},
    k8s::{connect::Connection, leader_client::RequestRate, leadership::ElectionOptions},
    model::ConnectionInfo,
    run::{
        controller::{
            endpoints::{Endpoint, EndpointRequest},
            line::{ControllerLine, LineWriter},
            metrics::METRICS,
            process::{ControllerProcess, Enforcement},
        },
        notify::{Notifier, NotifyOptions},
    },
};
use kordon_clock::Clock;
use kordon_core::engine::{ServerVersion, Settings};
use kordon_demo::api::{Api, ApiOptions, Fault, FaultAnswer, LoggedRequest, Verb};
use kordon_time::{Span, Timestamp};
use kube::{Api as Objects, ResourceExt, api::ListParams};
use serde_json::json;
use tokio::{
    sync::{Mutex, mpsc, oneshot},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

#[tokio::test(start_paused = true)]
async fn a_shadow_decides_and_writes_nothing() {
    let bench = Bench::new();
    let controller = bench.start("shadow", None);
    bench.silence("n1").await;
    bench.pass(120).await;
    let reported = controller.reported().await;
    // No controller runs here, so the node does not become Unknown. The shadow engine therefore decides none of the
    // effects that would follow.
    for text in ["mark node/n1 Unknown", "mark pod/default/p-n1 not ready"] {
        assert!(
            reported.iter().any(|line| line.text == text && line.outcome == "recorded"),
            "{text}: {reported:#?}"
        );
    }
    controller.stop().await;
    assert_eq!(bench.writes_of("shadow"), BTreeMap::new());
}

#[tokio::test(start_paused = true)]
async fn the_leader_marks_taints_and_evicts_and_journals_each_write_before_it_is_sent() {
    let bench = Bench::new();
    let controller = bench.start("one", Some(bench.enforcement("one")));
    bench.silence("n1").await;
    bench.pass(150).await;
    assert_eq!(bench.tainted().await, ["n1"]);
    assert_eq!(bench.terminating().await, ["p-n1"]);
    let metrics = controller.ask(Endpoint::Metrics).await;
    controller.stop().await;

    let lines = bench.journal("one").lines().expect("a journal");
    let mut requested = BTreeSet::new();
    for line in &lines {
        match &line.kind {
            LineKind::Request { id, .. } => assert!(requested.insert(*id)),
            LineKind::Outcome { id, .. } => assert!(requested.contains(id), "{line:?}"),
            _ => {}
        }
    }
    let is_deletion = |kind: &LineKind| {
        matches!(kind, LineKind::Request { method, path, why, .. }
            if method == "DELETE" && path == "/api/v1/namespaces/default/pods/p-n1" && !why.is_empty())
    };
    assert!(lines.iter().any(|line| is_deletion(&line.kind)), "{lines:#?}");
    assert!(matches!(lines[0].kind, LineKind::Started(_)));
    assert!(matches!(lines.last().expect("some").kind, LineKind::Ended { .. }));

    let reasons: BTreeSet<String> =
        bench.events().await.iter().filter_map(|event| event.reason.clone()).collect();
    assert_eq!(reasons, ["NodeNotReady", "RegisteredNode", "TaintManagerEviction"].map(String::from).into());
    for sample in [
        "leader_election_master_status{name=\"kordon-controller\"} 1.0",
        "node_collector_evictions_total{zone=\"r:\0:a\"} 1",
        "taint_eviction_controller_pod_deletions_total 1",
        "kordon_enforcing 1.0",
    ] {
        assert!(metrics.contains(sample), "{sample}\n{metrics}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_lease_is_free_within_a_second_after_the_controller_was_asked_to_stop() {
    let bench = Bench::new();
    let controller = bench.start("one", Some(bench.enforcement("one")));
    bench.pass(10).await;
    assert!(bench.lease("kordon-controller").await.is_some_and(|holder| holder == "one"));
    let reported = bench.clock.now();
    controller.stop().await;
    assert!(bench.clock.now().since(reported) <= Span::from_secs(1), "{}", bench.clock.now().since(reported));
    assert_eq!(bench.lease("kordon-controller").await.as_deref(), Some(""));
}

#[tokio::test(start_paused = true)]
async fn it_waits_while_a_kube_controller_manager_is_active_and_leads_once_that_is_silent() {
    let bench = Bench::new();
    bench.api.load(
        "leases",
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"namespace": "kube-system", "name": "kube-controller-manager"},
        "spec": {"holderIdentity": "real", "leaseDurationSeconds": 60}}),
    );
    let controller = bench.start("one", Some(bench.enforcement("one")));
    bench.pass(50).await;
    assert_eq!(bench.lease("kordon-controller").await, None, "not even a candidate");
    let ready = controller.ask(Endpoint::Ready).await;
    assert!(ready.contains("waits: kube-controller-manager (real) is active"), "{ready}");
    assert!(controller.reported().await.iter().any(|line| line.kind == "waiting"));
    bench.pass(40).await;
    assert_eq!(bench.lease("kordon-controller").await.as_deref(), Some("one"));
    controller.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_manager_that_was_silent_for_an_hour_is_waited_for_and_never_called_active() {
    let bench = Bench::new();
    let renewed = (bench.clock.now() - Span::from_secs(3600)).to_micro_time();
    bench.api.load(
        "leases",
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"namespace": "kube-system", "name": "kube-controller-manager"},
        "spec": {"holderIdentity": "real", "leaseDurationSeconds": 15, "renewTime": renewed}}),
    );
    let controller = bench.start("one", Some(bench.enforcement("one")));
    bench.pass(10).await;
    let lines = controller.reported().await;
    let says = |text: &str| lines.iter().any(|line| line.text.contains(text));
    assert!(says("no active kube-controller-manager for 1h"), "{lines:#?}");
    assert!(says("last renewed its Lease at") && !says("is active"), "{lines:#?}");
    assert_eq!(bench.lease("kordon-controller").await, None, "its clock may be wrong");
    bench.pass(20).await;
    assert_eq!(bench.lease("kordon-controller").await.as_deref(), Some("one"));
    controller.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_manager_without_these_controllers_does_not_matter() {
    let bench = Bench::new();
    bench.api.load(
        "leases",
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"namespace": "kube-system", "name": "kube-controller-manager"},
        "spec": {"holderIdentity": "real", "leaseDurationSeconds": 3600}}),
    );
    bench.api.load("pods", json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": "kube-system", "name": "kube-controller-manager-m",
            "labels": {"component": "kube-controller-manager"}},
        "spec": {"containers": [{"name": "kube-controller-manager", "image": "i", "command": ["kube-controller-manager",
            "--controllers=*,-node-lifecycle-controller,-taint-eviction-controller"]}]}}));
    let controller = bench.start("one", Some(bench.enforcement("one")));
    bench.pass(10).await;
    assert_eq!(bench.lease("kordon-controller").await.as_deref(), Some("one"));
    controller.stop().await;
}

#[tokio::test(start_paused = true)]
async fn nobody_is_evicted_for_want_of_sight_and_it_recovers_by_itself() {
    let bench = Bench::new();
    let controller = bench.start("one", Some(bench.enforcement("one")));
    bench.pass(60).await;
    bench.api.set_down(true);
    bench.pass(300).await;
    bench.api.set_down(false);
    bench.pass(45).await;
    assert_eq!(bench.tainted().await, Vec::<String>::new(), "all nodes renew again");
    assert!(bench.unknown().await.is_empty());
    bench.silence("n2").await;
    bench.pass(180).await;
    assert_eq!((bench.tainted().await, bench.terminating().await), (vec!["n2".into()], vec!["p-n2".into()]));
    controller.stop().await;
}

#[tokio::test(start_paused = true)]
async fn stalled_watches_evict_nobody() {
    let bench = Bench::new();
    let controller = bench.start("one", Some(bench.enforcement("one")));
    bench.pass(60).await;
    bench.api.stall_watches(true);
    bench.pass(200).await;
    assert_eq!((bench.tainted().await, bench.unknown().await), (Vec::new(), Vec::new()));
    controller.stop().await;
}

#[tokio::test(start_paused = true)]
async fn refused_writes_are_made_later_and_none_is_lost() {
    for answer in [
        FaultAnswer::Overloaded { retry_after_secs: 1 },
        FaultAnswer::InternalError,
        FaultAnswer::Conflict,
        FaultAnswer::Reset,
    ] {
        let bench = Bench::new();
        let controller = bench.start("one", Some(bench.enforcement("one")));
        bench.pass(30).await;
        for (verb, resource) in [
            (Verb::Patch, "nodes"),
            (Verb::Patch, "nodes/status"),
            (Verb::Patch, "pods/status"),
            (Verb::Delete, "pods"),
        ] {
            bench.api.inject(Fault::always(answer).on(&[verb], resource).share(0.5));
        }
        bench.silence("n1").await;
        bench.pass(300).await;
        let done = (bench.tainted().await, bench.terminating().await);
        assert_eq!(done, (vec!["n1".into()], vec!["p-n1".into()]), "{answer:?}");
        bench.api.clear_faults();
        controller.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_only_one_writes_and_the_other_goes_on_where_the_first_was_killed() {
    let bench = Bench::new();
    let first = bench.start("one", Some(bench.enforcement("one")));
    bench.pass(5).await;
    let second = bench.start("two", Some(bench.enforcement("two")));
    bench.pass(30).await;
    let [one, two] = ["one", "two"].map(|user| bench.writes_of(user));
    assert!(!one.is_empty() && two.is_empty(), "{two:?}");
    bench.silence("n1").await;
    bench.pass(52).await;
    first.kill().await;
    let killed = bench.clock.now();
    bench.pass(240).await;
    assert_eq!((bench.tainted().await, bench.terminating().await), (vec!["n1".into()], vec!["p-n1".into()]));
    let late = |seen: &LoggedRequest| seen.identity.user == "one" && seen.at > killed;
    assert!(!bench.api.log().iter().any(late));
    let deletions = bench.api.log().into_iter().filter(|seen| seen.verb == Verb::Delete).count();
    assert_eq!(deletions, 1, "once");
    second.stop().await;
}

#[tokio::test(start_paused = true)]
async fn evictions_above_the_limit_wait_and_none_is_lost() {
    let bench = Bench::new();
    for number in 0..5 {
        bench.pod(&format!("more-{number}"), "n1");
    }
    let enforcement = Enforcement { evictions_per_minute: Some(2), ..bench.enforcement("one") };
    let controller = bench.start("one", Some(enforcement));
    bench.silence("n1").await;
    let mut before = 0;
    for _ in 0..40 {
        bench.pass(10).await;
        let now = bench.terminating().await.len();
        assert!(now - before <= 2, "{before} and {now}");
        before = now;
    }
    assert_eq!(before, 6);
    let metrics = controller.ask(Endpoint::Metrics).await;
    assert!(metrics.contains("kordon_eviction_limit_reached_total 2"), "{metrics}");
    assert!(
        controller
            .reported()
            .await
            .iter()
            .any(|line| line.text.contains("limit of evictions a minute is reached"))
    );
    controller.stop().await;
}

#[tokio::test(start_paused = true)]
async fn metrics_parse_and_every_one_that_is_documented_is_exported() {
    let bench = Bench::new();
    let controller = bench.start("one", Some(bench.enforcement("one")));
    let shadow = bench.start("shadow", None);
    bench.silence("n1").await;
    // The node is tainted, and its pod is not evicted yet.
    bench.pass(57).await;
    let texts = [controller.ask(Endpoint::Metrics).await, shadow.ask(Endpoint::Metrics).await];
    let mut exported = BTreeSet::new();
    for text in &texts {
        // Upstream's zone names contain NUL, which Prometheus accepts, but `openmetrics_parser` does not.
        let parsed =
            openmetrics_parser::openmetrics::parse_openmetrics(&text.replace('\0', "")).expect("it parses");
        exported.extend(parsed.families.keys().cloned());
    }
    // `kordon_settings_contradicted` is exported only if the observed controller does not behave as its flags say.
    let is_rare = |name: &str| name == "kordon_settings_contradicted";
    let known: BTreeSet<String> =
        METRICS.iter().filter(|metric| !is_rare(metric.name)).map(|metric| metric.name.to_owned()).collect();
    assert_eq!(exported, known);
    assert!(shadow.ask(Endpoint::Ready).await.contains("[+]watch-pods ok"));
    assert!(controller.ask(Endpoint::Ready).await.contains("leader: writes"));
    assert!(controller.ask(Endpoint::Live).await.contains("[+]leader-election ok"));
    controller.stop().await;
    shadow.stop().await;
}

/// A cluster of four nodes in one zone, each with a pod that tolerates taints for 10 s. The kubelets only renew their
/// Leases.
struct Bench {
    api: Api,
    clock: Clock,
    silent: Arc<Mutex<BTreeSet<String>>>,
    folder: tempfile::TempDir,
    _kubelets: tokio_util::sync::DropGuard,
}

impl Bench {
    fn new() -> Self {
        let clock = Clock::new(Timestamp::from_secs(1_800_000_000), 1.0);
        let options = ApiOptions { log_entries: 1_000_000, taint_new_nodes: false, ..ApiOptions::default() };
        let api = Api::new(clock, options);
        let (silent, cancel) = (Arc::<Mutex<BTreeSet<String>>>::default(), CancellationToken::new());
        let bench = Self {
            api,
            clock,
            silent,
            folder: tempfile::tempdir().expect("a folder"),
            _kubelets: cancel.clone().drop_guard(),
        };
        for number in 1..=4 {
            let name = format!("n{number}");
            bench.node(&name);
            bench.pod(&format!("p-{name}"), &name);
        }
        tokio::spawn(cancel.run_until_cancelled_owned(renew(bench.api.clone(), clock, bench.silent.clone())));
        bench
    }

    fn node(&self, name: &str) {
        let now = self.clock.now();
        let condition = json!({"type": "Ready", "status": "True", "reason": "KubeletReady",
            "lastHeartbeatTime": now.to_time(), "lastTransitionTime": now.to_time()});
        self.api.load("nodes", json!({"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": "a", "topology.kubernetes.io/region": "r"}},
            "status": {"conditions": [condition]}}));
        self.api.load(
            "leases",
            json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"namespace": "kube-node-lease", "name": name},
            "spec": {"holderIdentity": name, "renewTime": now.to_micro_time(), "leaseDurationSeconds": 40}}),
        );
    }

    fn pod(&self, name: &str, node: &str) {
        let now = self.clock.now().to_time();
        let toleration =
            json!({"key": UNREACHABLE, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 10});
        self.api.load("pods", json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "default", "name": name},
            "spec": {"nodeName": node, "tolerations": [toleration], "terminationGracePeriodSeconds": 3000,
                "containers": [{"name": "c", "image": "i"}]},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": now}]}}));
    }

    async fn silence(&self, node: &str) {
        self.silent.lock().await.insert(node.to_owned());
    }

    async fn pass(&self, secs: i64) {
        self.clock.sleep(Span::from_secs(secs)).await;
    }

    fn journal(&self, identity: &str) -> Journal {
        Journal::within(self.folder.path(), identity)
    }

    fn enforcement(&self, identity: &str) -> Enforcement {
        Enforcement {
            election: ElectionOptions::new("kube-system", "kordon-controller"),
            identity: identity.into(),
            rate: RequestRate::default(),
            journal: self.journal(identity),
            evictions_per_minute: None,
            manager_controllers: None,
        }
    }

    /// Starts a controller under a user of this name.
    fn start(&self, user: &str, enforcement: Option<Enforcement>) -> Running {
        let (lines, mut reader) = LineWriter::new();
        let (asking, asked) = mpsc::channel(4);
        let stop = CancellationToken::new();
        let process = ControllerProcess {
            notifier: Notifier::new(NotifyOptions::default()),
            reader: None,
            connection: Connection::embedded(self.api.client_as(user), "demo"),
            info: ConnectionInfo::default(),
            settings: Settings::defaults(ServerVersion::new(1, 36)),
            clock: self.clock,
            enforcement,
            lines,
            asked,
        };
        let reported = Arc::<Mutex<Vec<ControllerLine>>>::default();
        let kept = reported.clone();
        tokio::spawn(async move {
            while let Some(line) = reader.next().await {
                kept.lock().await.push(line);
            }
        });
        let stopped = stop.clone().cancelled_owned();
        let task = tokio::spawn(async move { process.run(stopped).await.expect("it ends when reported") });
        Running { task, stop, reported, asking }
    }

    /// Returns the number of a user's writes by verb, Leases excluded.
    fn writes_of(&self, user: &str) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for seen in self.api.log() {
            let is_write = !matches!(seen.verb, Verb::Get | Verb::List | Verb::Watch | Verb::Other);
            if is_write && seen.identity.user == user && !seen.uri.contains("/leases") {
                *counts.entry(format!("{:?}", seen.verb)).or_default() += 1;
            }
        }
        counts
    }

    async fn nodes(&self) -> Vec<Node> {
        let nodes: Objects<Node> = Objects::all(self.api.client_as("test"));
        nodes.list(&ListParams::default()).await.expect("a list").items
    }

    /// Returns the nodes with the taint unreachable:NoExecute.
    async fn tainted(&self) -> Vec<String> {
        let is_tainted = |node: &Node| {
            let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref()).into_iter().flatten();
            taints.into_iter().any(|taint| taint.key == UNREACHABLE && taint.effect == "NoExecute")
        };
        self.nodes().await.iter().filter(|node| is_tainted(node)).map(ResourceExt::name_any).collect()
    }

    /// Returns the nodes whose Ready condition is Unknown.
    async fn unknown(&self) -> Vec<String> {
        let is_unknown = |node: &Node| {
            let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
            conditions
                .into_iter()
                .flatten()
                .any(|condition| condition.type_ == "Ready" && condition.status == "Unknown")
        };
        self.nodes().await.iter().filter(|node| is_unknown(node)).map(ResourceExt::name_any).collect()
    }

    async fn terminating(&self) -> Vec<String> {
        let pods: Objects<Pod> = Objects::namespaced(self.api.client_as("test"), "default");
        let pods = pods.list(&ListParams::default()).await.expect("a list");
        pods.iter()
            .filter(|pod| pod.metadata.deletion_timestamp.is_some())
            .map(ResourceExt::name_any)
            .collect()
    }

    async fn events(&self) -> Vec<StoredEvent> {
        let events: Objects<StoredEvent> = Objects::all(self.api.client_as("test"));
        events.list(&ListParams::default()).await.expect("a list").items
    }

    /// Returns the holder of a Lease in kube-system; `None` if there is no such Lease.
    async fn lease(&self, name: &str) -> Option<String> {
        let leases: Objects<Lease> = Objects::namespaced(self.api.client_as("test"), "kube-system");
        leases.get_opt(name).await.expect("an answer")?.spec?.holder_identity
    }
}

/// Renews the Leases of all nodes that are not silent, every ten seconds.
async fn renew(api: Api, clock: Clock, silent: Arc<Mutex<BTreeSet<String>>>) {
    let leases: Objects<Lease> = Objects::namespaced(api.client_as("kubelets"), "kube-node-lease");
    loop {
        for number in 1..=4 {
            let node = format!("n{number}");
            if !silent.lock().await.contains(&node) {
                let renewal = json!({"spec": {"renewTime": clock.now().to_micro_time()}});
                let patch = kube::api::Patch::Merge(renewal);
                // A failed renewal is ignored: a kubelet retries while the API server is down.
                let _ = leases.patch(&node, &kube::api::PatchParams::default(), &patch).await;
            }
        }
        clock.sleep(Span::from_secs(10)).await;
    }
}

struct Running {
    task: JoinHandle<()>,
    stop: CancellationToken,
    reported: Arc<Mutex<Vec<ControllerLine>>>,
    asking: mpsc::Sender<EndpointRequest>,
}

impl Running {
    async fn reported(&self) -> Vec<ControllerLine> {
        self.reported.lock().await.clone()
    }

    async fn ask(&self, endpoint: Endpoint) -> String {
        let (answer, answered) = oneshot::channel();
        self.asking.send(EndpointRequest { endpoint, answer }).await.expect("it runs");
        answered.await.expect("it answers").text
    }

    async fn stop(self) {
        self.stop.cancel();
        self.task.await.expect("it ends");
    }

    /// Stops the controller as if its process was killed: nothing is released or finished.
    async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}
