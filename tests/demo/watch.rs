//! The watches against the embedded API server, in process and on a paused clock, so that no test takes real time.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::{Request, Response};
use k8s_openapi::api::core::v1::Pod as CorePod;
use kordon::k8s::{
    connect::Connection,
    decode::kinds::decoder_of,
    feed::{FeedEvent, FeedHealth, FeedKind, FeedState},
    watch::{self, WatchOptions, read_scope},
};
use kordon_clock::Clock;
use kordon_core::{
    cluster::{Change, Cluster, Key, ObjectEvent, Scope},
    engine::ServerVersion,
};
use kordon_demo::api::{Api, ApiOptions, Fault, FaultAnswer, LoggedRequest, Verb};
use kordon_time::{Span, Timestamp};
use kube::{api::DeleteParams, client::Body};
use serde_json::{Value, json};
use tokio::{sync::mpsc, task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;

#[tokio::test(start_paused = true)]
async fn streamed_and_paged_lists_end_in_the_same_cluster() {
    let api = server();
    seed(&api, 12, 1300);
    let mut streamed = Session::start(&api);
    let mut paged = Session::with(&api, ServerVersion::new(1, 26), false);
    streamed.until("all live", Session::all_live).await;
    paged.until("all live", Session::all_live).await;
    assert_eq!(paged.cluster.pods().len(), 1300);
    assert!(streamed.cluster.pods().iter().eq(paged.cluster.pods().iter()));
    assert!(streamed.cluster.nodes().iter().eq(paged.cluster.nodes().iter()));
    assert!(streamed.cluster.leases().iter().eq(paged.cluster.leases().iter()));
    assert_eq!(streamed.cluster.leases().len(), 12);
    assert!(streamed.cluster.priority_classes().iter().eq(paged.cluster.priority_classes().iter()));
    assert_eq!(streamed.cluster.leader().map(|lease| lease.holder.to_string()), Some("m1".into()));
}

#[tokio::test(start_paused = true)]
async fn a_server_without_streamed_lists_is_asked_for_pages() {
    let api = Api::new(clock(), ApiOptions { streaming_lists: false, ..ApiOptions::default() });
    seed(&api, 2, 5);
    let mut session = Session::start(&api);
    session.until("all live", Session::all_live).await;
    assert_eq!(session.cluster.pods().len(), 5);
    let refused = api.log().iter().filter(|request| request.code == 422).count();
    assert!((1..=3).contains(&refused), "only those that began together find out: {refused}");
    assert_eq!(session.troubles, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_watch_resumes_where_it_stopped() {
    let api = server();
    seed(&api, 2, 5);
    let mut session = Session::start(&api);
    session.until("all live", Session::all_live).await;
    api.cut_watches();
    api.load("pods", pod("late", "n0"));
    session.until("the late pod", |session| session.has_pod("late")).await;
    session.until("all live", Session::all_live).await;
    assert_eq!(session.health[&FeedKind::Pods].relists, 0);
    let again = api.log().into_iter().filter(|request| is_list(request, "/api/v1/pods")).count();
    assert_eq!(again, 1, "the pods were listed once");
}

#[tokio::test(start_paused = true)]
async fn an_expired_version_leads_to_one_more_list() {
    let api = server();
    seed(&api, 2, 5);
    let mut session = Session::start(&api);
    session.until("all live", Session::all_live).await;
    api.set_down(true);
    session.until("pods broken", |session| session.is_broken(FeedKind::Pods)).await;
    api.load("pods", pod("late", "n0"));
    api.compact_history();
    api.set_down(false);
    session.until("the late pod", |session| session.has_pod("late")).await;
    session.until("all live", Session::all_live).await;
    assert_eq!(session.health[&FeedKind::Pods].relists, 1);
    assert_eq!(session.cluster.pods().len(), 6);
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_a_minute_is_reported_and_recovered_from() {
    let api = server();
    seed(&api, 3, 9);
    let mut session = Session::start(&api);
    session.until("all live", Session::all_live).await;
    let away = session.clock.now();
    api.set_down(true);
    session.until("all broken", |session| session.health.values().all(is_broken)).await;
    for health in session.health.values() {
        let FeedState::Broken { since, .. } = health.state else { panic!("{health:?}") };
        assert!(since <= away, "blind since the last word, not since it was noticed");
    }
    session.pass(Duration::from_secs(60)).await;
    assert_eq!(session.cluster.nodes().len(), 3, "what was known stays");
    api.set_down(false);
    let back = session.clock.now();
    session.until("all live", Session::all_live).await;
    assert!(session.clock.now().since(back) < Span::from_secs(10));
    assert_eq!(session.health[&FeedKind::Nodes].relists, 0);
}

#[tokio::test(start_paused = true)]
async fn a_hung_link_is_noticed_and_left_behind() {
    let api = server();
    seed(&api, 30, 3);
    let mut session = Session::start(&api);
    session.until("all live", Session::all_live).await;
    let hung = session.clock.now();
    api.stall_watches(true);
    api.inject(Fault::always(FaultAnswer::Hang));
    session.until("leases broken", |session| session.is_broken(FeedKind::Leases)).await;
    assert!(session.clock.now().since(hung) < Span::from_secs(25), "{:?}", session.clock.now().since(hung));
    session.until("nodes broken", |session| session.is_broken(FeedKind::Nodes)).await;
    api.clear_faults();
    api.stall_watches(false);
    session.until("all live", Session::all_live).await;
}

#[tokio::test(start_paused = true)]
async fn a_quiet_link_that_works_stays_live() {
    let api = server();
    seed(&api, 30, 3);
    let mut session = Session::start(&api);
    session.until("all live", Session::all_live).await;
    session.pass(Duration::from_secs(600)).await;
    assert!(session.all_live());
    assert_eq!(session.troubles, Vec::<String>::new());
    let opened = api.log().len();
    assert!(opened < 250, "{opened} requests in ten minutes of silence");
}

#[tokio::test(start_paused = true)]
async fn kinds_that_may_not_be_listed_are_named_alike_and_the_rest_works() {
    let api = server();
    seed(&api, 2, 5);
    for kind in ["pods", "services"] {
        api.inject(Fault::always(FaultAnswer::Forbidden).on(&[Verb::List, Verb::Watch], kind));
    }
    let mut session = Session::start(&api);
    session
        .until("pods and services forbidden, the rest live", |session| {
            let is_there = session.health.len() == FeedKind::ALWAYS.len();
            is_there
                && session.health.iter().all(|(kind, health)| match kind {
                    FeedKind::Pods | FeedKind::Services => {
                        matches!(&health.state, FeedState::Forbidden { error } if error.contains("cannot"))
                    }
                    _ => health.state == FeedState::Live,
                })
        })
        .await;
    // The error messages on pods and services differ only in the name of the kind, so that the journal can merge them
    // into one line.
    let words = "may not be listed; continuing without it, and trying again every minute";
    let mut troubles = session.troubles.clone();
    troubles.sort();
    assert_eq!(troubles, ["pods", "services"].map(|kind| format!("{kind}: {words}")));
    api.clear_faults();
    session.until("all live", Session::all_live).await;
    assert_eq!(session.cluster.pods().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_everybody_as_it_starts_is_tried_again_within_seconds() {
    let api = server();
    seed(&api, 2, 5);
    let mut session = Session::start(&api);
    session.until("all live", Session::all_live).await;
    api.inject(Fault::always(FaultAnswer::Forbidden).on(&[Verb::List, Verb::Watch], "pods"));
    api.cut_watches();
    session.until("pods broken", |session| session.is_broken(FeedKind::Pods)).await;
    session.pass(Duration::from_secs(10)).await;
    assert!(session.is_broken(FeedKind::Pods), "{:?}", session.health[&FeedKind::Pods]);
    let cleared = tokio::time::Instant::now();
    api.clear_faults();
    session.until("all live", Session::all_live).await;
    assert!(cleared.elapsed() < Duration::from_secs(15), "{:?}", cleared.elapsed());
    // A refusal that lasts counts as a withdrawn permission.
    api.inject(Fault::always(FaultAnswer::Forbidden).on(&[Verb::List, Verb::Watch], "pods"));
    api.cut_watches();
    session
        .until("pods forbidden", |session| {
            matches!(session.health[&FeedKind::Pods].state, FeedState::Forbidden { .. })
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn pods_of_nodes_that_are_not_ready_come_before_the_whole_list() {
    let api = server();
    seed(&api, 4, 40);
    api.load("nodes", node("dead", "False"));
    api.load("pods", pod("urgent", "dead"));
    // Watches of pods get no response. The list of all pods hangs, because it is streamed by a watch. The pods of
    // single nodes are read with ordinary lists.
    api.inject(Fault::always(FaultAnswer::Hang).on(&[Verb::Watch], "pods"));
    let mut session = Session::start(&api);
    session.until("the urgent pod", |session| session.has_pod("urgent")).await;
    assert_eq!(session.cluster.pods().len(), 1);
    assert!(!session.cluster.pods().is_synced());
    let patch = json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}});
    let nodes = kube::Api::<k8s_openapi::api::core::v1::Node>::all(api.client());
    let patched = nodes
        .patch_status("n1", &kube::api::PatchParams::default(), &kube::api::Patch::Strategic(patch))
        .await;
    patched.expect("the status is patched");
    session.until("n1's pods", |session| session.cluster.pods().len() == 11).await;
    api.clear_faults();
    session.until("all live", Session::all_live).await;
    assert_eq!(session.cluster.pods().len(), 41);
}

#[tokio::test(start_paused = true)]
async fn pods_of_nodes_in_view_come_before_a_whole_list_that_takes_long() {
    let api = server();
    seed(&api, 4, 40);
    api.inject(Fault::always(FaultAnswer::Hang).on(&[Verb::Watch], "pods"));
    let mut session = Session::start(&api);
    session.wanted.send_replace([Scope::PodsOn("n1".into())].into());
    session.until("n1's pods", |session| session.cluster.pods().len() == 10).await;
    session.wanted.send_replace([Scope::PodsOn("n1".into()), Scope::PodsOn("n2".into())].into());
    session.until("n2's pods", |session| session.cluster.pods().len() == 20).await;
    let lists = api.log().iter().filter(|request| request.uri.contains("spec.nodeName")).count();
    assert_eq!(lists, 2, "no node is read twice");
    api.clear_faults();
    session.until("all live", Session::all_live).await;
    session.wanted.send_replace([Scope::PodsOn("n3".into())].into());
    session.pass(Duration::from_secs(30)).await;
    let lists = api.log().iter().filter(|request| request.uri.contains("spec.nodeName")).count();
    assert_eq!(
        (lists, session.cluster.pods().len()),
        (2, 40),
        "nothing is read ahead of a list that is complete"
    );
}

#[tokio::test(start_paused = true)]
async fn an_overloaded_server_is_left_alone_for_as_long_as_it_asks() {
    let api = server();
    seed(&api, 2, 5);
    api.inject(Fault::always(FaultAnswer::Overloaded { retry_after_secs: 20 }).on(&[], "nodes"));
    let mut session = Session::start(&api);
    session.pass(Duration::from_secs(100)).await;
    assert!(session.is_broken(FeedKind::Nodes));
    let log = api.log();
    let of_nodes = || log.iter().filter(|request| request.uri.starts_with("/api/v1/nodes"));
    let asked: Vec<Timestamp> =
        of_nodes().filter(|request| is_list(request, "/api/v1/nodes")).map(|request| request.at).collect();
    assert_eq!(of_nodes().count(), asked.len() + 1, "their number is asked for once");
    assert!(asked.len() >= 3);
    assert!(asked.windows(2).all(|pair| pair[1].since(pair[0]) >= Span::from_secs(20)), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn watches_that_end_at_once_do_not_spin() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let client = kube::Client::new(
        tower::service_fn(move |request: Request<Body>| {
            counted.fetch_add(1, Ordering::Relaxed);
            let list = json!({"metadata": {"resourceVersion": "1"}, "items": []}).to_string();
            let watched = request.uri().query().is_some_and(|query| query.contains("watch=true"));
            let body = Body::from(if watched { Vec::new() } else { list.into_bytes() });
            async move { Ok::<_, std::io::Error>(Response::new(body)) }
        }),
        "default",
    );
    let mut session = Session::of(client, ServerVersion::new(1, 20), false);
    session.pass(Duration::from_secs(60)).await;
    let requests = count.load(Ordering::Relaxed);
    assert!(requests < 13 * 25, "{requests} requests in a minute");
}

#[tokio::test(start_paused = true)]
async fn a_broken_object_is_named_and_left_out() {
    // Uses JSON, because a protobuf field cannot have the wrong type.
    let api = Api::new(clock(), ApiOptions { protobuf: false, ..ApiOptions::default() });
    seed(&api, 2, 5);
    let mut bad = pod("bad", "n0");
    bad["spec"]["tolerations"] = json!("all\u{1b}[2J");
    api.load("pods", bad.clone());
    let mut session = Session::start(&api);
    session.until("all live", Session::all_live).await;
    assert_eq!(session.cluster.pods().len(), 5);
    assert_eq!(session.troubles, ["pods: default/bad cannot be read and is left out"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_without_protobuf_is_read_in_json() {
    for (protobuf, streaming_lists) in [(true, true), (true, false), (false, true), (false, false)] {
        let api = Api::new(clock(), ApiOptions { protobuf, streaming_lists, ..ApiOptions::default() });
        seed(&api, 3, 700);
        let mut session = Session::start(&api);
        session.until("all live", Session::all_live).await;
        assert_eq!((session.cluster.nodes().len(), session.cluster.pods().len()), (3, 700));
        api.load("pods", pod("later", "n0"));
        session.until("a pod of the watch", |session| session.has_pod("later")).await;
        assert_eq!(session.troubles, Vec::<String>::new());
    }
}

#[tokio::test(start_paused = true)]
async fn without_pods_no_pods_are_requested() {
    let api = server();
    seed(&api, 2, 5);
    api.load("nodes", node("dead", "False"));
    let mut session = Session::with(&api, ServerVersion::new(1, 36), true);
    session
        .until("the rest live", |session| {
            session.health.values().filter(|health| health.state == FeedState::Live).count() == 11
        })
        .await;
    assert_eq!(session.health[&FeedKind::Pods].state, FeedState::Off);
    assert!(!api.log().iter().any(|request| request.uri.starts_with("/api/v1/pods")));
}

#[tokio::test(start_paused = true)]
async fn the_difference_of_the_clocks_is_measured() {
    let ahead = Clock::new(clock().now() + Span::from_secs(90), 1.0);
    let api = Api::new(ahead, ApiOptions::default());
    let mut session = Session::start(&api);
    session.until("a difference", |session| session.difference.is_some()).await;
    let difference = session.difference.expect("it has been waited for");
    assert!((Span::from_secs(89)..=Span::from_secs(91)).contains(&difference), "{difference:?}");
}

#[tokio::test(start_paused = true)]
async fn everything_ends_when_it_is_cancelled_or_the_receiver_is_gone() {
    let api = server();
    let cancelled = Session::start(&api);
    cancelled.cancel.cancel();
    timeout(Duration::from_secs(60), cancelled.task).await.expect("it ends").expect("without a panic");
    let Session { task, events, .. } = Session::start(&api);
    drop(events);
    timeout(Duration::from_secs(60), task).await.expect("it ends").expect("without a panic");
}

#[tokio::test(start_paused = true)]
async fn a_watched_scope_has_its_objects_alone_and_is_listed_again_after_a_gap() {
    let api = server();
    seed(&api, 2, 6);
    let (sender, events) = mpsc::channel(16);
    let (wanted, scopes) = tokio::sync::watch::channel(BTreeSet::new());
    let (cancel, clock) = (CancellationToken::new(), clock());
    let version = ServerVersion::new(1, 36);
    let options = WatchOptions { version, kinds: &FeedKind::ALL, no_pods: false, request_timeout: None };
    let task = watch::spawn_scopes(api.client(), options, scopes, clock, sender, cancel.clone());
    let mut session = Session::receiving(events, task, cancel);
    let scope = Scope::PodsOn("n0".into());
    let is_live = |session: &Session| session.scopes.get(&scope) == Some(&FeedState::Live);
    wanted.send_replace([scope.clone()].into());
    session.until("the pods of n0", is_live).await;
    assert!(session.cluster.knows(&scope) && !session.cluster.knows(&Scope::Pods));
    assert_eq!(session.cluster.pods().len(), 3);
    // Changes of pods on n0 are reported, those of other pods are not.
    api.load("pods", pod("elsewhere", "n1"));
    api.load("pods", pod("late", "n0"));
    session.until("the late pod", |session| session.has_pod("late")).await;
    assert!(!session.has_pod("elsewhere"));
    // A pod is deleted while its watch is broken, and the history is lost. The next list no longer has the pod.
    api.set_down(true);
    let is_broken = |session: &Session| matches!(session.scopes[&scope], FeedState::Broken { .. });
    session.until("broken", is_broken).await;
    api.set_down(false);
    api.inject(Fault::always(FaultAnswer::Hang).on(&[Verb::List, Verb::Watch], "pods"));
    let pods: kube::Api<CorePod> = kube::Api::namespaced(api.client(), "default");
    pods.delete("late", &DeleteParams::default().grace_period(0)).await.expect("deleted");
    api.compact_history();
    api.clear_faults();
    session.until("live again", is_live).await;
    session.until("the late pod is gone", |session| !session.has_pod("late")).await;
    assert_eq!(session.cluster.pods().len(), 3);
    // More scopes (sets of objects to read) can be requested while the watches run, including all objects of a kind.
    wanted.send_replace([scope.clone(), Scope::Node("n1".into()), Scope::Nodes].into());
    session.until("the nodes", |session| session.cluster.nodes().len() == 2).await;
    let lists_all = |request: &LoggedRequest| {
        request.uri.starts_with("/api/v1/pods") && !request.uri.contains("fieldSelector")
    };
    assert!(!api.log().iter().any(lists_all), "{:#?}", api.log());
}

#[tokio::test(start_paused = true)]
async fn what_a_scope_reads_stays_whatever_its_kind() {
    let api = server();
    let connection = Connection::embedded(api.client(), "here");
    for (kind, scope) in FeedKind::ALL.into_iter().filter_map(|kind| Some((kind, Scope::all_of(kind)?))) {
        let (resource, _) = kind.resource().split_once('.').unwrap_or((kind.resource(), ""));
        let before = api.count(resource);
        let is_namespaced = !matches!(kind, FeedKind::Nodes | FeedKind::Namespaces | FeedKind::Volumes);
        let namespace = is_namespaced.then_some("default");
        api.load(resource, json!({"metadata": {"name": "an-object", "namespace": namespace}}));
        let (mut cluster, mut version) = (Cluster::default(), None);
        for _ in 0..2 {
            let changes = read_scope(&connection, &scope, decoder_of, version).await.expect("it may be read");
            for change in changes {
                if let Change::Read(read) = &change {
                    version = Some(read.version);
                }
                cluster.apply(change, &mut Vec::new());
            }
        }
        assert_eq!(cluster.count(kind), before + 1, "{kind}");
        assert!(cluster.knows(&scope), "{kind}");
    }
}

struct Session {
    events: mpsc::Receiver<FeedEvent>,
    task: JoinHandle<()>,
    cancel: CancellationToken,
    clock: Clock,
    cluster: Cluster,
    health: BTreeMap<FeedKind, FeedHealth>,
    scopes: BTreeMap<Scope, FeedState>,
    troubles: Vec<String>,
    difference: Option<Span>,
    /// The scopes (sets of objects) that the session reads before it lists whole kinds.
    wanted: tokio::sync::watch::Sender<BTreeSet<Scope>>,
}

impl Session {
    fn start(api: &Api) -> Self {
        Self::with(api, ServerVersion::new(1, 36), false)
    }

    fn with(api: &Api, version: ServerVersion, no_pods: bool) -> Self {
        Self::of(api.client(), version, no_pods)
    }

    fn of(client: kube::Client, version: ServerVersion, no_pods: bool) -> Self {
        let (sender, events) = mpsc::channel(16);
        let (cancel, clock) = (CancellationToken::new(), clock());
        let options = WatchOptions { version, kinds: &FeedKind::ALL, no_pods, request_timeout: None };
        let wanted = tokio::sync::watch::Sender::default();
        let task = watch::spawn(client, options, wanted.subscribe(), clock, sender, cancel.clone());
        Self { wanted, ..Self::receiving(events, task, cancel) }
    }

    fn receiving(events: mpsc::Receiver<FeedEvent>, task: JoinHandle<()>, cancel: CancellationToken) -> Self {
        Self {
            task,
            events,
            cancel,
            clock: clock(),
            cluster: Cluster::default(),
            health: BTreeMap::new(),
            scopes: BTreeMap::new(),
            troubles: Vec::new(),
            difference: None,
            wanted: tokio::sync::watch::Sender::default(),
        }
    }

    /// Receives reports of the watches until a condition holds, at most ten minutes of paused time.
    async fn until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        let patience = Duration::from_secs(600);
        let waited = timeout(patience, async {
            while !holds(self) {
                let event = self.events.recv().await.expect("the watches go on");
                self.take(event);
            }
        })
        .await;
        assert!(waited.is_ok(), "no {what}: {:#?} {:#?}", self.health, self.troubles);
    }

    /// Receives reports of the watches for this long.
    async fn pass(&mut self, time: Duration) {
        let _ = timeout(time, async {
            while let Some(event) = self.events.recv().await {
                self.take(event);
            }
        })
        .await;
    }

    fn take(&mut self, event: FeedEvent) {
        match event {
            FeedEvent::Changes(changes) => {
                assert!(!changes.is_empty() && changes.len() <= 512 || changes.iter().all(is_predicted));
                for change in changes {
                    self.cluster.apply(change, &mut Vec::new());
                }
            }
            FeedEvent::Health(kind, health) => drop(self.health.insert(kind, health)),
            FeedEvent::ScopeState(scope, state) => drop(self.scopes.insert(*scope, state)),
            FeedEvent::ClockDifference(difference) => self.difference = Some(difference),
            FeedEvent::Trouble(text) => self.troubles.push(text),
        }
    }

    fn all_live(&self) -> bool {
        self.health.len() == FeedKind::ALWAYS.len()
            && self.health.values().all(|health| health.state == FeedState::Live)
    }

    fn is_broken(&self, kind: FeedKind) -> bool {
        self.health.get(&kind).is_some_and(is_broken)
    }

    fn has_pod(&self, name: &str) -> bool {
        self.cluster.pod(&Key::new("default", name)).is_some()
    }
}

fn is_broken(health: &FeedHealth) -> bool {
    matches!(health.state, FeedState::Broken { .. })
}

fn is_predicted(change: &Change) -> bool {
    matches!(change, Change::Pod(ObjectEvent::Prefetched(_)))
}

/// Whether a request lists all objects of a kind.
fn is_list(request: &LoggedRequest, path: &str) -> bool {
    request.uri.starts_with(path) && request.uri.contains("sendInitialEvents")
}

fn clock() -> Clock {
    Clock::new(Timestamp::from_secs(1_800_000_000), 1.0)
}

fn server() -> Api {
    Api::new(clock(), ApiOptions { log_entries: 10_000, ..ApiOptions::default() })
}

/// Loads nodes with their Leases, pods spread over the nodes, and the Lease of a controller manager.
fn seed(api: &Api, nodes: usize, pods: usize) {
    for i in 0..nodes {
        api.load("nodes", node(&format!("n{i}"), "True"));
        let lease = json!({"metadata": {"name": format!("n{i}"), "namespace": "kube-node-lease"},
            "spec": {"renewTime": "2027-01-15T08:00:00.000000Z", "leaseDurationSeconds": 40}});
        api.load("leases", lease);
    }
    for i in 0..pods {
        api.load("pods", pod(&format!("p{i}"), &format!("n{}", i % nodes)));
    }
    let leader = json!({"metadata": {"name": "kube-controller-manager", "namespace": "kube-system"},
        "spec": {"holderIdentity": "m1", "leaseDurationSeconds": 15}});
    api.load("leases", leader);
}

fn node(name: &str, ready: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"conditions": [{"type": "Ready", "status": ready}]}})
}

fn pod(name: &str, node: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": "default", "labels": {"app": "web"}},
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}, "status": {"phase": "Running"}})
}
