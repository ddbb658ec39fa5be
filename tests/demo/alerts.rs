//! The alert rules of `docs/alerts.md`, evaluated every 15 seconds on the metrics of `kordon controller` during
//! incidents in the demo cluster. The tests check when each rule fires. A rule that is meant to fire before evictions
//! must fire at least as early as the page's table states.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, Pod};
use kordon::{
    journal::Journal,
    k8s::{connect::Connection, leader_client::RequestRate, leadership::ElectionOptions},
    model::ConnectionInfo,
    run::{
        controller::{
            Controller,
            endpoints::{Endpoint, EndpointRequest},
            line::LineWriter,
            process::{ControllerProcess, Enforcement},
        },
        demo_scheduler::PlacementScheduler,
        notify::{Notifier, NotifyOptions},
    },
};
use kordon_clock::Clock;
use kordon_core::engine::{Origin, ServerVersion, Settings};
use kordon_demo::{
    api::{Api as Server, ApiOptions, Fault, FaultAnswer, Verb},
    scenario::Scenario,
    world::{NodeFault, Scheduling, World, WorldOptions},
};
use kordon_time::{Span, Timestamp};
use kube::{Api, ResourceExt, api::ListParams};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::promql::{Expression, Pending, Scrapes};

/// The tolerationSeconds that the admission plugin DefaultTolerationSeconds adds.
const DEFAULT: i64 = 300;
/// Interval at which Prometheus scrapes and evaluates the rules.
const EVERY: Span = Span::from_secs(15);

#[tokio::test(start_paused = true)]
async fn a_silent_node_is_reported_before_its_pods_are_evicted() {
    let mut outage = Outage::start("silent-node", Exporter::Shadow);
    let seen = outage.run(480).await;
    seen.fires_before_evictions("NodeSilent");
    seen.fires_before_evictions("EvictionsWithinFiveMinutes");
    seen.fires_before_evictions("EvictionsWithinAMinute");
    // The demo's pods with the shortest tolerations, 30 s and 60 s, are evicted first.
    for alert in ["NodeSilent", "EvictionsWithinFiveMinutes", "EvictionsWithinAMinute"] {
        seen.fires_before_any_eviction(alert);
    }
    seen.fires_none_but(&["NodeSilent", "EvictionsWithinFiveMinutes", "EvictionsWithinAMinute"]);
}

#[tokio::test(start_paused = true)]
async fn a_zone_that_is_down_is_reported_before_its_pods_are_evicted() {
    let mut outage = Outage::start("zone-outage", Exporter::Shadow);
    let seen = outage.run(480).await;
    for alert in ["NodeSilent", "EvictionsWithinFiveMinutes", "ZoneMostlyDown"] {
        seen.fires_before_evictions(alert);
    }
    seen.fires_before_evictions("EvictionsWithinAMinute");
    for alert in ["NodeSilent", "EvictionsWithinFiveMinutes", "EvictionsWithinAMinute"] {
        seen.fires_before_any_eviction(alert);
    }
}

/// In a small zone, evictions stop while most of the zone's nodes are down. One node is tainted before evictions stop.
#[tokio::test(start_paused = true)]
async fn a_zone_whose_evictions_stop_is_reported_before_a_pod_is_evicted() {
    let mut outage = Outage::start("healthy", Exporter::Shadow);
    let zone = outage.nodes_of_a_zone().await;
    outage.world.inject(&zone[0], NodeFault::Disconnect).await;
    outage.run(80).await;
    for node in &zone[1..zone.len() - 2] {
        outage.world.inject(node, NodeFault::Disconnect).await;
    }
    let seen = outage.run(400).await;
    seen.fires_before_evictions("EvictionsPausedInZone");
    // Most nodes of the zone fail 80 s after the node whose pods are evicted.
    seen.fires_this_long_before_evictions("ZoneMostlyDown", Span::from_secs(120));
}

/// Only one zone accepts pods. Long before a node fails, the zone has no room for the pods of one of its nodes.
#[tokio::test(start_paused = true)]
async fn missing_room_is_reported_before_a_pod_is_evicted() {
    let mut outage = Outage::start("healthy", Exporter::Shadow);
    outage.run(30).await;
    for node in outage.workers().await.iter().filter(|node| !node.contains("-1c-")) {
        outage.cordon(node).await;
    }
    let cordoned = outage.run(720).await;
    cordoned.fires_none_but(&["NoRoomForANode"]);
    assert!(cordoned.fired.contains_key("NoRoomForANode"), "{cordoned:#?}");
    let zone = outage.nodes_of_a_zone().await;
    outage.world.inject(&zone[0], NodeFault::Disconnect).await;
    outage.run(420).await.fires_before_evictions("NoRoomForANode");
}

/// The controller dies while a node is silent.
#[tokio::test(start_paused = true)]
async fn a_controller_that_is_gone_is_reported_and_nobody_is_evicted() {
    let mut outage = Outage::start("silent-node", Exporter::Shadow);
    outage.run(20).await;
    outage.controller.cancel();
    let seen = outage.run(480).await;
    assert_eq!(seen.first_eviction, None);
    // The controller's Lease expires after 15 s; the alert rule waits two more minutes.
    seen.fires_within("PredictionsNotPossible", 175);
}

#[tokio::test(start_paused = true)]
async fn a_controller_with_other_flags_is_reported_before_a_pod_is_evicted() {
    let mut outage = Outage::start("silent-node", Exporter::ShadowWith("node-monitor-grace-period", "20s"));
    outage.run(480).await.fires_before_evictions("ControllerActsOtherwise");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_broken_is_reported_before_a_pod_is_evicted() {
    let mut outage = Outage::start("silent-node", Exporter::Shadow);
    outage.run(30).await;
    let broken = Fault::always(FaultAnswer::InternalError).of_user(EXPORTER);
    outage.server.inject(broken.on(&[Verb::Watch, Verb::List], "poddisruptionbudgets"));
    // Breaks every watch.
    outage.server.set_down(true);
    outage.clock.sleep(Span::from_secs(1)).await;
    outage.server.set_down(false);
    outage.run(450).await.fires_before_evictions("WatchBroken");
}

/// Starts kordon as a candidate for leadership. The candidate waits, because the demo's own controller runs.
#[tokio::test(start_paused = true)]
async fn a_kordon_that_waits_is_reported_before_a_pod_is_evicted() {
    let mut outage = Outage::start("silent-node", Exporter::Candidate);
    let seen = outage.run(480).await;
    seen.fires_before_evictions("NoKordonLeader");
    seen.fires_before_evictions("BlockedByManager");
}

#[tokio::test(start_paused = true)]
async fn writes_that_fail_are_reported_and_nobody_is_evicted() {
    let mut outage = Outage::start("zone-outage", Exporter::Leader { evictions_per_minute: None });
    for resource in ["nodes", "nodes/status"] {
        let fails = Fault::always(FaultAnswer::InternalError).of_user(EXPORTER);
        outage.server.inject(fails.on(&[Verb::Patch, Verb::Update], resource));
    }
    let seen = outage.run(600).await;
    assert_eq!(seen.first_eviction, None);
    seen.fires_within("WritesFail", 480);
}

/// The controller may evict one pod per minute. The alert fires at most about five minutes after the first eviction,
/// while other pods are still waiting.
#[tokio::test(start_paused = true)]
async fn evictions_that_wait_for_the_limit_are_reported() {
    let mut outage = Outage::start("healthy", Exporter::Leader { evictions_per_minute: Some(1) });
    let zone = outage.nodes_of_a_zone().await;
    for node in &zone[..2] {
        outage.world.inject(node, NodeFault::Disconnect).await;
    }
    let seen = outage.run(780).await;
    let evicted = seen.first_eviction.expect("one a minute is evicted");
    let waited = seen.fired["EvictionsHeld"].since(evicted);
    assert!(waited <= Span::from_secs(300) + EVERY + EVERY, "after {waited}");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_reported_of_a_healthy_cluster() {
    let mut outage = Outage::start("healthy", Exporter::Shadow);
    outage.run(660).await.fires_none_but(&[]);
}

/// User name of `kordon controller` at the API server.
const EXPORTER: &str = "exporter";

/// Role of `kordon controller`, beside the demo's own controller or in place of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exporter {
    Shadow,
    /// A shadow (an engine that only predicts) that assumes a wrong value of one flag of the controller: flag and
    /// value.
    ShadowWith(&'static str, &'static str),
    Candidate,
    Leader {
        evictions_per_minute: Option<usize>,
    },
}

/// A demo cluster with its control plane, and the scraped metrics of `kordon controller`.
struct Outage {
    server: Server,
    clock: Clock,
    world: World,
    /// Stops the demo's own controller.
    controller: CancellationToken,
    asking: mpsc::Sender<EndpointRequest>,
    scrapes: Scrapes,
    _journal: tempfile::TempDir,
    _cancel: DropGuard,
}

impl Outage {
    fn start(scenario: &str, exporter: Exporter) -> Self {
        let clock = Clock::new(Timestamp::parse("2026-11-21T03:00:00Z").expect("a time"), 1.0);
        let server = Server::new(clock, ApiOptions::default());
        let (cancel, scenario) = (CancellationToken::new(), Scenario::named(scenario).expect("a scenario"));
        let options = WorldOptions { scenario, scheduling: Scheduling::External, ..WorldOptions::default() };
        let world = World::start(&server, clock, &options, cancel.clone());
        let connection = |user: &str| Connection::embedded(server.client_as(user), "demo");
        let mut settings = Settings::defaults(ServerVersion::new(1, 36));
        let controller = cancel.child_token();
        if !matches!(exporter, Exporter::Leader { .. }) {
            let (connection, identity) = (connection("system:kordon-controller"), "kordon-demo".into());
            let acts = Controller { connection, settings: settings.clone(), clock, identity };
            tokio::spawn(acts.run(controller.clone()));
        }
        let scheduler = PlacementScheduler { connection: connection("system:kordon-scheduler"), clock };
        tokio::spawn(scheduler.run(cancel.clone()));

        if let Exporter::ShadowWith(flag, value) = exporter {
            assert_eq!(settings.set(flag, value, Origin::Override), Ok(true));
        }
        let journal = tempfile::tempdir().expect("a folder");
        let enforcement = |evictions_per_minute| Enforcement {
            election: ElectionOptions::new("kube-system", "kordon-controller"),
            identity: EXPORTER.into(),
            rate: RequestRate::default(),
            journal: Journal::within(journal.path(), EXPORTER),
            evictions_per_minute,
            manager_controllers: None,
        };
        let (lines, mut reader) = LineWriter::new();
        let (asking, asked) = mpsc::channel(4);
        let process = ControllerProcess {
            notifier: Notifier::new(NotifyOptions::default()),
            reader: None,
            connection: connection(EXPORTER),
            info: ConnectionInfo::default(),
            settings,
            clock,
            enforcement: match exporter {
                Exporter::Shadow | Exporter::ShadowWith(..) => None,
                Exporter::Candidate => Some(enforcement(None)),
                Exporter::Leader { evictions_per_minute } => Some(enforcement(evictions_per_minute)),
            },
            lines,
            asked,
        };
        tokio::spawn(async move { while reader.next().await.is_some() {} });
        let ends = cancel.clone().cancelled_owned();
        tokio::spawn(async move { process.run(ends).await.expect("it ends when the test does") });
        let (scrapes, _cancel) = (Scrapes::default(), cancel.drop_guard());
        Self { server, clock, world, controller, asking, scrapes, _journal: journal, _cancel }
    }

    /// Scrapes for this many seconds, then evaluates the rules on everything scraped so far.
    async fn run(&mut self, seconds: i64) -> Reported {
        let since = self.clock.now();
        let ends = since + Span::from_secs(seconds);
        while self.clock.now() + EVERY <= ends {
            self.clock.sleep(EVERY).await;
            let (answer, answered) = oneshot::channel();
            let request = EndpointRequest { endpoint: Endpoint::Metrics, answer };
            self.asking.send(request).await.expect("it runs");
            let text = answered.await.expect("it answers").text;
            self.scrapes.add(self.clock.now(), &text);
        }
        self.clock.sleep_until(ends).await;
        let (first_eviction, first_by_default) =
            (self.first_eviction(0).await, self.first_eviction(DEFAULT).await);
        Reported { since, fired: self.fired(), first_eviction, first_by_default }
    }

    /// Returns the time at which each rule fired first.
    fn fired(&self) -> BTreeMap<String, Timestamp> {
        let fires = |rule: &Rule| {
            let mut pending = Pending::default();
            self.scrapes
                .times()
                .find(|at| pending.evaluate(&self.scrapes.value(&rule.expression, *at), rule.lasts, *at))
        };
        rules().into_iter().filter_map(|rule| Some((rule.alert.clone(), fires(&rule)?))).collect()
    }

    /// Returns the time of the first taint eviction of a pod with a toleration of this many seconds. With 0, returns
    /// the time of the first taint eviction of any pod.
    async fn first_eviction(&self, tolerates: i64) -> Option<Timestamp> {
        let pods: Api<Pod> = Api::all(self.server.client());
        let pods = pods.list(&ListParams::default()).await.expect("listed");
        let tolerates_it = |pod: &Pod| {
            let tolerations = pod.spec.iter().flat_map(|spec| spec.tolerations.iter().flatten());
            let mut seconds = tolerations.filter_map(|toleration| toleration.toleration_seconds);
            tolerates == 0 || seconds.any(|seconds| seconds == tolerates)
        };
        let conditions = pods.items.into_iter().filter(tolerates_it).filter_map(|pod| pod.status?.conditions);
        conditions
            .flatten()
            .filter(|condition| condition.reason.as_deref() == Some("DeletionByTaintManager"))
            .filter_map(|condition| Timestamp::parse(&condition.last_transition_time?.0.to_string()))
            .min()
    }

    /// Returns the names of the workers in zone b.
    async fn nodes_of_a_zone(&self) -> Vec<String> {
        self.workers().await.into_iter().filter(|name| name.contains("-1b-")).collect()
    }

    async fn workers(&self) -> Vec<String> {
        let nodes: Api<Node> = Api::all(self.server.client());
        let nodes = nodes.list(&ListParams::default()).await.expect("listed");
        let names = nodes.iter().map(ResourceExt::name_any);
        names.filter(|name| !name.starts_with("control-plane")).collect()
    }

    async fn cordon(&self, node: &str) {
        let nodes: Api<Node> = Api::all(self.server.client());
        nodes.cordon(node).await.expect("cordoned");
    }
}

/// Alerts and evictions from the start of the cluster to the end of an [`Outage::run`].
#[derive(Debug)]
struct Reported {
    /// Start time of the last [`Outage::run`].
    since: Timestamp,
    fired: BTreeMap<String, Timestamp>,
    first_eviction: Option<Timestamp>,
    /// Time of the first eviction of a pod with the tolerations that admission adds.
    first_by_default: Option<Timestamp>,
}

impl Reported {
    /// Asserts that the alert fired before any pod was evicted.
    fn fires_before_any_eviction(&self, alert: &str) {
        let evicted = self.first_eviction.unwrap_or_else(|| panic!("no pod is evicted: {self:#?}"));
        assert!(self.fired[alert] < evicted, "{alert}: {self:#?}");
    }

    /// Asserts that the alert fired before the first eviction of a pod with default tolerations, at least as long as
    /// the table of `docs/alerts.md` states.
    fn fires_before_evictions(&self, alert: &str) {
        self.fires_this_long_before_evictions(alert, stated_lead(alert));
    }

    /// Asserts that the alert fired at least this long before the first eviction of a pod with default tolerations.
    fn fires_this_long_before_evictions(&self, alert: &str, least: Span) {
        let fired = self.fired.get(alert).unwrap_or_else(|| panic!("{alert} does not fire: {self:#?}"));
        let evicted = self.first_by_default.unwrap_or_else(|| panic!("no pod is evicted: {self:#?}"));
        let before = evicted.since(*fired);
        println!("{alert} fires {before} before the first eviction");
        assert!(before >= least, "{alert}: {before} before the first eviction, not {least}");
    }

    fn fires_within(&self, alert: &str, seconds: i64) {
        let fired = self.fired.get(alert).unwrap_or_else(|| panic!("{alert} does not fire: {self:#?}"));
        let after = fired.since(self.since);
        assert!(after >= Span::ZERO && after <= Span::from_secs(seconds), "{alert}: after {after}");
    }

    fn fires_none_but(&self, alerts: &[&str]) {
        let others: Vec<&String> =
            self.fired.keys().filter(|alert| !alerts.contains(&alert.as_str())).collect();
        assert!(others.is_empty(), "{others:?} fire: {self:#?}");
    }
}

/// An alert rule.
struct Rule {
    alert: String,
    expression: Expression,
    lasts: Span,
}

/// Returns the rules in `docs/alerts.md`.
fn rules() -> Vec<Rule> {
    let page = include_str!("../../docs/alerts.md");
    let yaml = page.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("rules");
    let groups: Value = serde_saphyr::from_str(yaml).expect("YAML");
    let rules =
        groups["groups"].as_array().expect("groups").iter().flat_map(|group| group["rules"].as_array());
    let text = |rule: &Value, field: &str| rule[field].as_str().expect("text").to_owned();
    let rule = |rule: &Value| Rule {
        alert: text(rule, "alert"),
        expression: Expression::parse(&text(rule, "expr")),
        lasts: humantime::parse_duration(&text(rule, "for")).expect("a duration").into(),
    };
    rules.flatten().map(rule).collect()
}

/// Returns the minimum time between an alert and the first eviction, as the table of `docs/alerts.md` states it.
fn stated_lead(alert: &str) -> Span {
    let start = format!("| `{alert}` |");
    let row = include_str!("../../docs/alerts.md").lines().find(|line| line.starts_with(&start));
    let cell = row.and_then(|row| row.split('|').nth(3)).unwrap_or_else(|| panic!("{alert} has no row"));
    let lead = cell.split(',').next().unwrap_or_default().trim();
    humantime::parse_duration(lead).expect("a duration").into()
}

/// Checks that every rule is named in a test above.
#[test]
fn every_alert_has_a_test() {
    let tests = include_str!("alerts.rs");
    for rule in rules() {
        let named =
            [format!("(\"{}\"", rule.alert), format!("[\"{}\"", rule.alert), format!("\"{}\",", rule.alert)];
        assert!(named.iter().any(|name| tests.contains(name)), "{} has no test", rule.alert);
    }
}
