//! The alert rules of `docs/alerts.md`, evaluated every 15 seconds on the metrics of `kordon controller` during incidents:
//! those of the demo cluster, and recordings of the real controllers. The tests check what the page's table states about
//! each alert.

mod recorded;

use std::collections::{BTreeMap, BTreeSet};

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

/// Makes a test of each incident. A test plays its incident and checks every row that the table of `docs/alerts.md` has
/// for it. Several tests may play one incident.
macro_rules! incidents {
    ($($test:ident: $incident:literal => $play:expr,)*) => {
        $(
            #[tokio::test(start_paused = true)]
            async fn $test() {
                let reported = $play.await;
                reported.check($incident);
            }
        )*

        /// The incidents that are played, as the table names them.
        const INCIDENTS: &[&str] = &[$($incident),*];
    };
}

incidents! {
    a_recorded_silent_node_of_1_23: "a node, recorded" => recorded::play("taint--silent-node"),
    a_recorded_silent_node_of_1_36: "a node, recorded" => recorded::play("modern--daemonset-pods"),
    recorded_silent_nodes_of_1_37: "a node, recorded" => recorded::play("modern--1.37--rate-limited"),
    a_recorded_silent_node_of_1_38: "a node, recorded" => recorded::play("modern--1.38--random-93-27"),
    a_recorded_zone_whose_evictions_stop: "most of a zone, until a part is back, recorded" =>
        recorded::play("taint--partial-then-normal"),
    a_silent_node: "a node" => silent_node(),
    a_zone_that_is_down: "a zone" => zone_outage(),
    a_zone_whose_evictions_stop: "a node, then most of its zone" => node_and_most_of_its_zone(),
    missing_room: "a node of a cluster without room for another" => node_without_room(),
    a_controller_that_is_gone: "a node and kube-controller-manager" => node_and_controller(),
    a_controller_with_other_flags: "a node; the shadow assumes another value of a flag" => node_and_other_flags(),
    a_watch_that_is_broken: "a node and the watch of budgets" => node_and_watch(),
    a_kordon_that_waits: "a node; kordon waits for kube-controller-manager" => node_and_waiting_kordon(),
    writes_that_fail: "a zone and the writes of kordon" => zone_and_writes(),
    evictions_that_wait: "two nodes; one eviction a minute is allowed" => limited_evictions(),
}

#[tokio::test(start_paused = true)]
async fn nothing_is_reported_of_a_healthy_cluster() {
    let mut outage = Outage::start("healthy", Exporter::Shadow);
    outage.run(660).await.fires_none_but(&[]);
}

/// The table and the rules name the same alerts, and every incident of the table is played.
#[test]
fn every_alert_is_checked() {
    let (table, rules) = (table(), rules());
    let in_table: BTreeSet<&str> = table.iter().map(|row| row.alert.as_str()).collect();
    let in_rules: BTreeSet<&str> = rules.iter().map(|rule| rule.alert.as_str()).collect();
    assert_eq!(in_table, in_rules);
    for row in &table {
        assert!(INCIDENTS.contains(&row.incident.as_str()), "nothing plays {:?}", row.incident);
    }
}

/// An alert that fires too late, or not at all, keeps no statement.
#[test]
fn a_late_alert_is_found() {
    let at = |minutes: i64| Timestamp::from_secs(60 * minutes);
    let reported = |fired: Option<i64>| Reported {
        failed: at(0),
        fired: fired.map(|minutes| ("A".into(), at(minutes))).into_iter().collect(),
        evictions: vec![at(5), at(9)],
        by_default: vec![at(9)],
    };
    let breaks = |statement: &str, fired: Option<i64>| {
        Statement::parse(statement).contradiction(&reported(fired), "A").is_some()
    };
    for (statement, latest) in [
        ("before the first eviction", 4),
        ("before the last eviction", 8),
        ("6m before the first pod with default tolerations", 3),
        ("at most 7m after the failure", 7),
        ("at most 2m after the first eviction", 7),
    ] {
        assert!(!breaks(statement, Some(latest)), "{statement}");
        assert!(breaks(statement, Some(latest + 1)), "{statement}");
        assert!(breaks(statement, None), "{statement}");
    }
    assert!(breaks("nobody is evicted", Some(1)));
}

async fn silent_node() -> Reported {
    let mut outage = Outage::start("silent-node", Exporter::Shadow);
    let seen = outage.run(480).await;
    seen.fires_none_but(&["NodeSilent", "EvictionsWithinFiveMinutes", "EvictionsWithinAMinute"]);
    seen
}

async fn zone_outage() -> Reported {
    Outage::start("zone-outage", Exporter::Shadow).run(480).await
}

/// In a small zone, evictions stop while most of the zone's nodes are down. One node is tainted before evictions stop.
async fn node_and_most_of_its_zone() -> Reported {
    let mut outage = Outage::start("healthy", Exporter::Shadow);
    let zone = outage.nodes_of_a_zone().await;
    outage.world.inject(&zone[0], NodeFault::Disconnect).await;
    outage.run(80).await;
    for node in &zone[1..zone.len() - 2] {
        outage.world.inject(node, NodeFault::Disconnect).await;
    }
    outage.run(400).await
}

/// Only one zone accepts pods. Long before a node fails, the zone has no room for the pods of one of its nodes.
async fn node_without_room() -> Reported {
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
    outage.run(420).await
}

/// The controller dies while a node is silent.
async fn node_and_controller() -> Reported {
    let mut outage = Outage::start("silent-node", Exporter::Shadow);
    outage.run(20).await;
    outage.controller.cancel();
    outage.run(480).await
}

async fn node_and_other_flags() -> Reported {
    let exporter = Exporter::ShadowWith("node-monitor-grace-period", "20s");
    Outage::start("silent-node", exporter).run(480).await
}

async fn node_and_watch() -> Reported {
    let mut outage = Outage::start("silent-node", Exporter::Shadow);
    outage.run(30).await;
    let broken = Fault::always(FaultAnswer::InternalError).of_user(EXPORTER);
    outage.server.inject(broken.on(&[Verb::Watch, Verb::List], "poddisruptionbudgets"));
    // Breaks every watch.
    outage.server.set_down(true);
    outage.clock.sleep(Span::from_secs(1)).await;
    outage.server.set_down(false);
    outage.run(450).await
}

/// Starts kordon as a candidate for leadership. The candidate waits, because the demo's own controller runs.
async fn node_and_waiting_kordon() -> Reported {
    Outage::start("silent-node", Exporter::Candidate).run(480).await
}

async fn zone_and_writes() -> Reported {
    let mut outage = Outage::start("zone-outage", Exporter::Leader { evictions_per_minute: None });
    for resource in ["nodes", "nodes/status"] {
        let fails = Fault::always(FaultAnswer::InternalError).of_user(EXPORTER);
        outage.server.inject(fails.on(&[Verb::Patch, Verb::Update], resource));
    }
    outage.run(600).await
}

async fn limited_evictions() -> Reported {
    let mut outage = Outage::start("healthy", Exporter::Leader { evictions_per_minute: Some(1) });
    let zone = outage.nodes_of_a_zone().await;
    for node in &zone[..2] {
        outage.world.inject(node, NodeFault::Disconnect).await;
    }
    outage.run(780).await
}

/// Start of the clock.
const EPOCH: &str = "2026-11-21T03:00:00Z";
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

/// A `kordon controller` that watches a server.
struct Exported {
    asking: mpsc::Sender<EndpointRequest>,
    _journal: tempfile::TempDir,
}

impl Exported {
    fn start(
        server: &Server,
        clock: Clock,
        settings: Settings,
        exporter: Exporter,
        cancel: &CancellationToken,
    ) -> Self {
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
            connection: Connection::embedded(server.client_as(EXPORTER), "demo"),
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
        Self { asking, _journal: journal }
    }

    /// Returns the text of `/metrics`.
    async fn scrape(&self) -> String {
        let (answer, answered) = oneshot::channel();
        let request = EndpointRequest { endpoint: Endpoint::Metrics, answer };
        self.asking.send(request).await.expect("it runs");
        answered.await.expect("it answers").text
    }
}

/// A demo cluster with its control plane, and the scraped metrics of `kordon controller`.
struct Outage {
    server: Server,
    clock: Clock,
    world: World,
    /// Stops the demo's own controller.
    controller: CancellationToken,
    exported: Exported,
    scrapes: Scrapes,
    _cancel: DropGuard,
}

impl Outage {
    fn start(scenario: &str, exporter: Exporter) -> Self {
        let clock = Clock::new(Timestamp::parse(EPOCH).expect("a time"), 1.0);
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
        let exported = Exported::start(&server, clock, settings, exporter, &cancel);
        let (scrapes, _cancel) = (Scrapes::default(), cancel.drop_guard());
        Self { server, clock, world, controller, exported, scrapes, _cancel }
    }

    /// Scrapes for this many seconds, then evaluates the rules on everything scraped so far.
    async fn run(&mut self, seconds: i64) -> Reported {
        let failed = self.clock.now();
        let ends = failed + Span::from_secs(seconds);
        while self.clock.now() + EVERY <= ends {
            self.clock.sleep(EVERY).await;
            let text = self.exported.scrape().await;
            self.scrapes.add(self.clock.now(), &text);
        }
        self.clock.sleep_until(ends).await;
        let (evictions, by_default) = (self.evictions(0).await, self.evictions(DEFAULT).await);
        Reported { failed, fired: first_firings(&self.scrapes), evictions, by_default }
    }

    /// Returns the times of the taint evictions of pods with a toleration of this many seconds. With 0, returns the times
    /// of all taint evictions.
    async fn evictions(&self, tolerates: i64) -> Vec<Timestamp> {
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
            .collect()
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

/// Alerts and evictions of an incident.
#[derive(Debug)]
struct Reported {
    /// Time of the last failure of the incident.
    failed: Timestamp,
    /// Time at which each rule that fires fired first.
    fired: BTreeMap<String, Timestamp>,
    /// Times of the evictions, in any order.
    evictions: Vec<Timestamp>,
    /// Times of the evictions of pods with the tolerations that admission adds.
    by_default: Vec<Timestamp>,
}

impl Reported {
    /// Checks what the table of `docs/alerts.md` states about the alerts of an incident.
    fn check(&self, incident: &str) {
        let rows: Vec<Row> = table().into_iter().filter(|row| row.incident == incident).collect();
        assert!(!rows.is_empty(), "the table does not have {incident:?}");
        let broken = |row: &Row| {
            let statements =
                row.statements.iter().filter_map(|statement| statement.contradiction(self, &row.alert));
            statements.map(|broken| format!("{} {broken}", row.alert)).collect::<Vec<_>>()
        };
        let broken: Vec<String> = rows.iter().flat_map(broken).collect();
        assert!(broken.is_empty(), "{incident}:\n{}\n{self:#?}", broken.join("\n"));
    }

    fn fires_none_but(&self, alerts: &[&str]) {
        let others: Vec<&String> =
            self.fired.keys().filter(|alert| !alerts.contains(&alert.as_str())).collect();
        assert!(others.is_empty(), "{others:?} fire: {self:#?}");
    }
}

/// A row of the table in `docs/alerts.md`: what is stated about an alert in an incident.
struct Row {
    alert: String,
    incident: String,
    statements: Vec<Statement>,
}

/// What is stated about an alert.
#[derive(Clone, Copy, Debug)]
enum Statement {
    BeforeFirstEviction,
    BeforeLastEviction,
    NobodyEvicted,
    /// At least this long before the first eviction of a pod with default tolerations.
    BeforeDefault(Span),
    /// At most this long after the last failure of the incident.
    AfterFailure(Span),
    /// At most this long after the first eviction.
    AfterFirstEviction(Span),
}

impl Statement {
    /// Parses the words of the table.
    fn parse(text: &str) -> Self {
        let span = |text: &str| -> Span { humantime::parse_duration(text).expect("a duration").into() };
        let at_most = |end: &str| text.strip_prefix("at most ")?.strip_suffix(end).map(span);
        match text {
            "before the first eviction" => return Self::BeforeFirstEviction,
            "before the last eviction" => return Self::BeforeLastEviction,
            "nobody is evicted" => return Self::NobodyEvicted,
            _ => {}
        }
        let by_default = text.strip_suffix(" before the first pod with default tolerations").map(span);
        let later = || at_most(" after the failure").map(Self::AfterFailure);
        let last = || at_most(" after the first eviction").map(Self::AfterFirstEviction);
        let parsed = by_default.map(Self::BeforeDefault).or_else(later).or_else(last);
        parsed.unwrap_or_else(|| panic!("{text:?} is no statement"))
    }

    /// Returns what happened instead, if the statement is not true of the alert.
    fn contradiction(self, reported: &Reported, alert: &str) -> Option<String> {
        let Some(fired) = reported.fired.get(alert).copied() else { return Some("does not fire".into()) };
        let (first, last) = (reported.evictions.iter().min(), reported.evictions.iter().max());
        let by_default = reported.by_default.iter().min();
        let is_true = match self {
            Self::BeforeFirstEviction => first.is_some_and(|first| fired < *first),
            Self::BeforeLastEviction => last.is_some_and(|last| fired < *last),
            Self::NobodyEvicted => reported.evictions.is_empty(),
            Self::BeforeDefault(least) => by_default.is_some_and(|evicted| fired + least <= *evicted),
            Self::AfterFailure(most) => fired >= reported.failed && fired <= reported.failed + most,
            Self::AfterFirstEviction(most) => first.is_some_and(|first| fired <= *first + most),
        };
        (!is_true).then(|| format!("fires at {}, not {self:?}", fired.to_time()))
    }
}

/// Returns the rows of the table in `docs/alerts.md`.
fn table() -> Vec<Row> {
    let rows = include_str!("../../docs/alerts.md").lines().filter(|line| line.starts_with("| `"));
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let statements = cells[3].split(", ").map(Statement::parse).collect();
        Row { alert: cells[1].trim_matches('`').into(), incident: cells[2].into(), statements }
    };
    rows.map(row).collect()
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

/// Returns the time at which each rule fired first.
fn first_firings(scrapes: &Scrapes) -> BTreeMap<String, Timestamp> {
    let fires = |rule: &Rule| {
        let mut pending = Pending::default();
        scrapes.times().find(|at| pending.evaluate(&scrapes.value(&rule.expression, *at), rule.lasts, *at))
    };
    rules().into_iter().filter_map(|rule| Some((rule.alert.clone(), fires(&rule)?))).collect()
}
