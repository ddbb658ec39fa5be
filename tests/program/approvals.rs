//! One table of cases, run through both interfaces: the command line on a pseudo terminal, and the dashboard with typed
//! keys. Both ask the same questions and refuse the same things, with the same text.

use std::time::Duration;

use futures::{StreamExt, stream};
use k8s_openapi::api::{core::v1::Node, policy::v1::PodDisruptionBudget};
use kordon::app::Mode;
use kordon_core::cluster::{DrainClaim, claim::DRAIN};
use kordon_demo::api::{Fault, FaultAnswer, Verb};
use kordon_time::Span;
use kube::{
    Api as Objects, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{
    common::terminal::Terminal,
    dashboard_driver::{DashboardDriver, NODE},
    harness::Harness,
};

/// Speed of the cluster's time compared with real time.
const SPEED: f64 = 20.0;

const OTHER: &str = "general-1b-02";

/// A node that the test adds, with one pod that its controller recreates.
const QUIET: &str = "quiet";

/// The proposed operation.
#[derive(Clone, Copy, Debug)]
enum Proposal {
    Cordon(&'static [&'static str]),
    Drain(&'static [&'static str]),
    /// The undo of a cordon of these nodes. The test applies the cordon first.
    Undo(&'static [&'static str]),
}
use Proposal::{Cordon, Drain, Undo};

/// A state of the cluster, or an event in it.
#[derive(Clone, Copy, Debug)]
enum Event {
    Nothing,
    /// The user loses this permission.
    Forbidden(Verb, &'static str),
    /// Another user claims the node for a drain.
    Claimed,
    /// The watch of this kind breaks, and cannot be resumed.
    WatchBreaks(&'static str),
    /// One more pod is bound to the node.
    Pod(Newcomer),
    /// All other nodes of the node's zone are cordoned.
    LastOfZone,
}
use Event::{Claimed, Forbidden, LastOfZone, Nothing, WatchBreaks};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Newcomer {
    /// The pod has a controller that recreates it.
    Replicated,
    Unreplicated,
    WithData,
    /// The pod's budget never allows its eviction.
    Blocked,
}

/// Answers to the questions, in order.
type Answers = &'static [bool];

/// A case: the proposal, the state of the cluster before the proposal, the event while the first question is open, the
/// answers, and the expected transcript of questions and result.
type Case = (Proposal, Event, Event, Answers, &'static [&'static str]);

const CASES: &[Case] = &[
    (Cordon(&[NODE]), Nothing, Nothing, &[false], &["asked yes", "declined"]),
    (Cordon(&[NODE, OTHER]), Nothing, Nothing, &[true], &["asked here", "started"]),
    (Drain(&[NODE, OTHER]), Nothing, Nothing, &[false], &["asked here", "declined"]),
    // Permissions are checked before any question, also for an undo.
    (
        Drain(&[QUIET]),
        Forbidden(Verb::Create, "pods/eviction"),
        Nothing,
        &[],
        &["refused these permissions are missing: create pods/eviction in default"],
    ),
    (
        Undo(&[NODE]),
        Forbidden(Verb::Patch, "nodes"),
        Nothing,
        &[],
        &["refused these permissions are missing: patch nodes general-1a-02"],
    ),
    // An undo is confirmed like a plan.
    (Undo(&[NODE]), Nothing, Nothing, &[false], &["asked yes", "declined"]),
    (Undo(&[NODE, OTHER]), Nothing, Nothing, &[false], &["asked here", "declined"]),
    // The first question asks about an existing claim of another user. A claim that is made while a question is open
    // leads to one more question.
    (
        Drain(&[NODE]),
        Claimed,
        Nothing,
        &[false],
        &["asked here take-over, for bob@desk is draining general-1a-02", "declined"],
    ),
    (
        Undo(&[NODE]),
        Claimed,
        Nothing,
        &[false],
        &["asked take-over, for bob@desk is draining general-1a-02", "declined"],
    ),
    (
        Cordon(&[NODE]),
        Nothing,
        Claimed,
        &[true, false],
        &["asked yes", "asked take-over, for bob@desk is draining general-1a-02", "declined"],
    ),
    // A watch that breaks while a question is open prevents the start.
    (
        Drain(&[NODE]),
        Nothing,
        WatchBreaks("pods"),
        &[true],
        &["asked here", "refused the watch of pods is not live: nothing is started on old data"],
    ),
    (
        Cordon(&[NODE]),
        Nothing,
        WatchBreaks("nodes"),
        &[true],
        &["asked yes", "refused the watch of nodes is not live: nothing is started on old data"],
    ),
    (
        Undo(&[NODE]),
        Nothing,
        WatchBreaks("nodes"),
        &[true],
        &["asked yes", "refused the watch of nodes is not live: nothing is started on old data"],
    ),
    // The confirmation of a drain also covers one more pod on the node, unless the pod has a new kind of risk.
    (Drain(&[QUIET]), Nothing, Event::Pod(Newcomer::Replicated), &[true], &["asked yes", "started"]),
    (
        Drain(&[QUIET]),
        Nothing,
        Event::Pod(Newcomer::Unreplicated),
        &[true, true],
        &[
            "asked yes",
            "asked here, since pod default/newcomer would be lost: no controller recreates it",
            "started",
        ],
    ),
    (
        Drain(&[QUIET]),
        Nothing,
        Event::Pod(Newcomer::WithData),
        &[true, false],
        &["asked yes", "asked here, since data of pod default/newcomer would be lost", "declined"],
    ),
    (
        Drain(&[QUIET]),
        Nothing,
        Event::Pod(Newcomer::Blocked),
        &[true, false],
        &[
            "asked yes",
            "asked try-blocked, since pod default/newcomer: blocked by default/strict (needs 1 healthy, has 1: 0 \
             disruptions allowed): can never be allowed: needs 1 of 1; scale its workload up, or relax the budget, for \
             pod default/newcomer: blocked by default/strict (needs 1 healthy, has 1: 0 disruptions allowed): can never \
             be allowed: needs 1 of 1; scale its workload up, or relax the budget",
            "declined",
        ],
    ),
    (
        Cordon(&[NODE]),
        LastOfZone,
        Nothing,
        &[false],
        &[
            "asked override last-ready, for guard rail last-ready: zone eu-central-1/eu-central-1a would lose its last \
             ready, schedulable node",
            "declined",
        ],
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn both_ways_to_act_ask_and_refuse_the_same() {
    // The command line and the dashboard each have a cluster of their own, because some cases change the cluster.
    let rows = CASES.iter().map(|case| async move {
        let cli = tokio::spawn(async { through_cli(&prepared(case).await, case).await });
        let dashboard = tokio::spawn(async { through_dashboard(&prepared(case).await, case).await });
        (case, cli.await.expect("no panic"), dashboard.await.expect("no panic"))
    });
    let rows: Vec<_> = stream::iter(rows).buffered(2).collect().await;
    let mut wrong = Vec::new();
    for (case, cli, dashboard) in rows {
        let (proposal, before, meanwhile, _, expected) = case;
        if cli != *expected || dashboard != *expected {
            wrong.push(format!(
                "{proposal:?}, before {before:?}, meanwhile {meanwhile:?}\n  expected  {expected:?}\n  command line {cli:?}\n  \
                 dashboard    {dashboard:?}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Starts a cluster in which the case can be proposed.
async fn prepared((proposal, before, ..): &Case) -> Harness {
    let harness = Harness::start(SPEED).await;
    harness.load_quiet_node();
    if let Undo(nodes) = proposal {
        harness.enforced(&[&["cordon"], *nodes].concat()).await;
    }
    harness.happens(*before).await;
    harness
}

async fn through_cli(harness: &Harness, case: &Case) -> Vec<String> {
    let (proposal, _, meanwhile, answers, _) = case;
    let id = harness.operations().first().map(|operation| operation.id.to_string()).unwrap_or_default();
    let line = match proposal {
        Cordon(nodes) => [&["cordon"], *nodes].concat(),
        Drain(nodes) => {
            [&["drain", "--ignore-daemonsets", "--delete-emptydir-data", "--force"], *nodes].concat()
        }
        Undo(_) => vec!["undo", &id],
    };
    let arguments = [&harness.connection()[..], &line, &["--enforce"]].concat();
    let mut transcript = Transcript::default();
    let before = harness.started();
    let mut program = Program::start(harness, &arguments);
    while let Some(prompt) = program.next(|| harness.started() > before, &mut transcript).await {
        let answer = answers.get(transcript.asked - 1).copied().unwrap_or_default();
        if transcript.asked == 1 {
            harness.happens(*meanwhile).await;
        }
        program.terminal.type_in(&format!("{}\r", if answer { &prompt } else { "no" }));
    }
    transcript.lines
}

async fn through_dashboard(harness: &Harness, case: &Case) -> Vec<String> {
    let (proposal, _, meanwhile, answers, _) = case;
    let mut transcript = Transcript::default();
    let transcribed = &mut transcript;
    harness
        .with_dashboard(Mode::DryRun, async |dashboard: &DashboardDriver| {
            dashboard.ready().await;
            dashboard.press(":enforce 12h<Enter>").await;
            dashboard.wait("ENFORCE").await;
            dashboard.propose(*proposal).await;
            while dashboard.next(transcribed).await {
                let answer = answers.get(transcribed.asked - 1).copied().unwrap_or_default();
                if transcribed.asked == 1 {
                    harness.happens(*meanwhile).await;
                }
                if answer { dashboard.answer_yes().await } else { dashboard.answer_no().await }
            }
        })
        .await;
    transcript.lines
}

/// The questions that were asked, and the result.
#[derive(Debug, Default)]
struct Transcript {
    lines: Vec<String>,
    asked: usize,
}

impl Transcript {
    /// Records a question: the words to type, the changes since the last question, and the objections to override.
    fn on_question(&mut self, prompt: &str, drifts: &str, objections: &str) {
        self.asked += 1;
        let part =
            |lead: &str, text: &str| if text.is_empty() { String::new() } else { format!("{lead}{text}") };
        let (drifts, objections) = (part(", since ", drifts), part(", for ", objections));
        self.lines.push(format!("asked {prompt}{drifts}{objections}"));
    }
}

/// The program on a pseudo terminal.
struct Program {
    terminal: Terminal,
    /// Length of the terminal's output that was read already.
    read: usize,
}

impl Program {
    fn start(harness: &Harness, arguments: &[&str]) -> Self {
        Self { terminal: Terminal::with(harness.shell.under_terminal(arguments)), read: 0 }
    }

    /// Waits for the next question and returns the words to type; `None` if the program has ended or started the
    /// operation.
    async fn next(&mut self, has_started: impl Fn() -> bool, transcript: &mut Transcript) -> Option<String> {
        const QUESTION: &str = " to continue, anything else to cancel: ";
        loop {
            let output = self.terminal.raw();
            let new = &output[self.read..];
            if let Some((before, _)) = new.split_once(QUESTION) {
                let (before, prompt) = before.rsplit_once("Type ").expect("what is to be typed");
                let prompt = prompt.to_owned();
                let changed =
                    before.lines().filter_map(|line| line.strip_prefix("changed since you agreed: "));
                let objection = |line: &&str| {
                    ["(--try-blocked)", "(--take-over)"].iter().any(|flag| line.ends_with(flag))
                        || line.contains(" (--override ")
                };
                let objections = before.lines().filter(objection);
                let objections = objections.filter_map(|line| Some(line.rsplit_once(" (--")?.0));
                transcript.on_question(&prompt, &joined(changed), &joined(objections));
                self.read =
                    output.len() - new.len() + new.find(QUESTION).expect("it is there") + QUESTION.len();
                return Some(prompt);
            }
            let has_ended = self.terminal.child.try_wait().expect("a child").is_some();
            if has_started() {
                if !has_ended {
                    self.terminal.child.kill().expect("killed");
                }
                transcript.lines.push("started".into());
                return None;
            }
            if has_ended {
                self.terminal.end();
                transcript.lines.push(ending(&self.terminal.raw()[self.read..]));
                return None;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Reads from the program's output how the program ended.
fn ending(output: &str) -> String {
    match output.split_once("nothing was written: ") {
        Some((_, why)) => format!("refused {}", joined(why.lines())),
        None if output.contains("not confirmed: nothing was written") => "declined".into(),
        None => format!("ended: {output}"),
    }
}

impl DashboardDriver {
    /// Opens the plan and applies it.
    async fn propose(&self, proposal: Proposal) {
        let (nodes, key) = match proposal {
            Cordon(nodes) => (nodes, "c"),
            Drain(nodes) => (nodes, "rDEF"),
            Undo(_) => (&[][..], "U"),
        };
        self.press("2").await;
        for node in nodes {
            self.press(&format!("/<Ctrl-u>{node}<Enter>")).await;
            self.press("<Space>").await;
        }
        self.press(key).await;
        match proposal {
            Cordon(_) => self.wait("/api/v1/nodes/").await,
            Drain(_) => self.wait_for_plan().await,
            Undo(_) => {}
        }
        if !nodes.is_empty() {
            self.press("A").await;
        }
        self.wait_until("no dialog", |screen| dialog(screen).is_some()).await;
    }

    /// Waits for the next question. Returns `false` if the proposal was decided or the operation has started.
    async fn next(&self, transcript: &mut Transcript) -> bool {
        let decided = |screen: &str| {
            dialog(screen).is_none_or(|lines| {
                lines.iter().any(|line| line.contains(" to continue:") || line.contains("[ Cancel ]"))
                    || lines.last().is_some_and(|hint| hint.contains("Esc closes"))
            })
        };
        self.wait_until("no question", decided).await;
        let screen = self.screen();
        let Some(lines) = dialog(&screen) else {
            let end = if screen.contains("2 Progress") { "started" } else { "declined" };
            transcript.lines.push(end.into());
            return false;
        };
        let (changed, rest) = match lines.iter().position(|line| line.contains("Changed since you agreed:")) {
            Some(place) => {
                let rest = &lines[place + 1..];
                rest.split_at(rest.iter().position(String::is_empty).unwrap_or(rest.len()))
            }
            None => (&[][..], &lines[..]),
        };
        let signed = |line: &String| line.starts_with('✗');
        let against: Vec<&str> = rest
            .iter()
            .skip_while(|line| !signed(line))
            .take_while(|line| !line.is_empty() && !line.contains("Esc closes"))
            .map(|line| line.trim_start_matches('✗'))
            .collect();
        let prompt = rest
            .iter()
            .find_map(|line| if line.contains("[ Cancel ]") { Some("yes") } else { typed_words(line) });
        let against = joined(against.into_iter());
        match prompt {
            Some(prompt) => {
                transcript.on_question(prompt, &joined(changed.iter().map(String::as_str)), &against);
                true
            }
            None => {
                transcript.lines.push(format!("refused {against}"));
                false
            }
        }
    }

    /// Answers the open question with yes.
    async fn answer_yes(&self) {
        let asked = dialog(&self.screen()).unwrap_or_default();
        match asked.iter().find_map(|line| typed_words(line)) {
            Some(words) => {
                self.type_in(words);
                let is_typed =
                    |screen: &str| dialog(screen).is_some_and(|lines| lines.iter().any(|line| line == words));
                self.wait_until("not typed", is_typed).await;
            }
            None => {
                self.type_in("<Tab>");
                self.wait_until("not chosen", |screen| screen.contains("[ Yes, ")).await;
            }
        }
        let typed = dialog(&self.screen());
        self.type_in("<Enter>");
        self.wait_until("not answered", |screen| dialog(screen) != typed).await;
    }

    async fn answer_no(&self) {
        self.type_in("<Esc>");
        self.wait_until("not closed", |screen| dialog(screen).is_none()).await;
    }
}

/// Returns the words to type if a line asks for them.
fn typed_words(line: &str) -> Option<&str> {
    line.strip_prefix("Type ")?.strip_suffix(" to continue:")
}

/// Returns the lines of the dialog on a screen, or `None` without a dialog. The last line has the hints of the dialog.
fn dialog(screen: &str) -> Option<Vec<String>> {
    let mut lines = screen.lines().map(|line| line.chars().collect::<Vec<char>>());
    let titles = ["╭ Apply ", "╭ Undo "].map(|title| title.chars().collect::<Vec<char>>());
    let (left, right) = lines.by_ref().find_map(|line| {
        let left =
            line.windows(7).position(|part| titles.iter().any(|title| part.starts_with(&title[..7])))?;
        let right = left + line[left..].iter().position(|char| *char == '╮')?;
        Some((left, right))
    })?;
    let mut inner = Vec::new();
    for line in lines {
        let text: String = line.get(left + 1..right).unwrap_or_default().iter().collect();
        inner.push(text.trim().to_owned());
        if line.get(left) == Some(&'╰') {
            break;
        }
    }
    Some(inner)
}

/// Joins all words into one line, with single spaces.
fn joined<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
}

impl Harness {
    /// Returns the number of started operations.
    fn started(&self) -> usize {
        if self.journal().path().exists() { self.operations().len() } else { 0 }
    }

    async fn happens(&self, event: Event) {
        match event {
            Nothing => {}
            Forbidden(verb, resource) => {
                self.server.api.inject(Fault::always(FaultAnswer::Forbidden).on(&[verb], resource));
            }
            Claimed => {
                // The claim is renewed far in the future, so that it does not expire, however fast the cluster's time
                // runs.
                let renewed = self.now() + Span::from_secs(86_400);
                let claim = DrainClaim {
                    by: "bob@desk".into(),
                    operation: "theirs".parse().unwrap(),
                    renewed,
                    ..DrainClaim::default()
                };
                self.patch_node(NODE, json!({"metadata": {"annotations": {DRAIN: claim.to_text()}}})).await;
                self.let_it_be_heard().await;
            }
            WatchBreaks(kind) => self.break_watch(kind).await,
            Event::Pod(newcomer) => {
                self.load_newcomer(newcomer);
                if newcomer == Newcomer::Blocked {
                    self.wait_for_budget().await;
                }
                self.let_it_be_heard().await;
            }
            LastOfZone => self.cordon_rest_of_zone().await,
        }
    }

    async fn break_watch(&self, kind: &str) {
        let fault = Fault::always(FaultAnswer::InternalError).on(&[Verb::List, Verb::Watch], kind);
        self.server.api.inject(fault);
        self.server.api.cut_watches_of(kind);
        let failures = |harness: &Self| {
            let log = harness.server.api.log();
            let failed = log
                .iter()
                .filter(|request| request.code == 500 && request.uri.contains(&format!("/{kind}?")));
            failed.filter(|request| request.identity.agent.starts_with("kordon/")).count()
        };
        // A second failed request means that the first failure was reported.
        self.until(|harness| failures(harness) >= 2).await;
    }

    fn load_quiet_node(&self) {
        let resources = json!({"cpu": "4", "memory": "8Gi", "pods": "110"});
        let taint = json!({"key": "quiet", "effect": "NoSchedule"});
        let zone = json!({"topology.kubernetes.io/region": "eu-central-1",
            "topology.kubernetes.io/zone": "eu-central-1b"});
        self.server.api.load(
            "nodes",
            json!({"metadata": {"name": QUIET, "labels": zone}, "spec": {"taints": [taint]},
                "status": {"conditions": [{"type": "Ready", "status": "True"}],
                    "capacity": resources, "allocatable": resources}}),
        );
        self.load_replicated("first", json!({}));
    }

    /// Adds a pod on the quiet node, and the ReplicaSet that owns only that pod.
    fn load_replicated(&self, name: &str, spec: Value) {
        let labels = json!({"app": name});
        let set = json!({"metadata": {"name": name, "namespace": "default", "uid": name},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
        self.server.api.load("replicasets", set);
        let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": name,
            "controller": true});
        self.load_pod(json!({"name": name, "labels": labels, "ownerReferences": [owner]}), spec);
    }

    fn load_pod(&self, mut metadata: Value, mut spec: Value) {
        metadata["namespace"] = json!("default");
        spec["nodeName"] = json!(QUIET);
        spec["containers"] = json!([{"name": "c", "image": "i"}]);
        self.server.api.load(
            "pods",
            json!({"metadata": metadata, "spec": spec,
                "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}),
        );
    }

    fn load_newcomer(&self, newcomer: Newcomer) {
        let name = "newcomer";
        match newcomer {
            Newcomer::Replicated => self.load_replicated(name, json!({})),
            Newcomer::Unreplicated => self.load_pod(json!({"name": name}), json!({})),
            Newcomer::WithData => {
                self.load_replicated(name, json!({"volumes": [{"name": "v", "emptyDir": {}}]}));
            }
            Newcomer::Blocked => {
                let budget = json!({"metadata": {"name": "strict", "namespace": "default"},
                    "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": name}}}});
                self.server.api.load("poddisruptionbudgets", budget);
                self.load_replicated(name, json!({}));
            }
        }
    }

    /// Waits until the disruption controller has counted the added pod.
    async fn wait_for_budget(&self) {
        let budgets: Objects<PodDisruptionBudget> = Objects::namespaced(self.server.api.client(), "default");
        let counted = async || {
            let budget = budgets.get("strict").await.expect("the budget");
            budget.status.is_some_and(|status| status.expected_pods == 1 && status.current_healthy == 1)
        };
        let waiting = async {
            while !counted().await {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(180), waiting).await.expect("the budget is synced");
    }

    async fn cordon_rest_of_zone(&self) {
        const ZONE: &str = "topology.kubernetes.io/zone";
        let nodes: Objects<Node> = Objects::all(self.server.api.client());
        let node = nodes.get(NODE).await.expect("the node");
        let zone = node.labels().get(ZONE);
        let all = nodes.list(&ListParams::default()).await.expect("nodes").items;
        for node in all.iter().filter(|node| node.name_any() != NODE && node.labels().get(ZONE) == zone) {
            self.patch_node(&node.name_any(), json!({"spec": {"unschedulable": true}})).await;
        }
    }

    /// Sleeps in real time, until the program has received the latest changes. The program does not show changes while
    /// it asks.
    async fn let_it_be_heard(&self) {
        tokio::time::sleep(Duration::from_millis(700)).await;
    }

    async fn patch_node(&self, node: &str, patch: Value) {
        let nodes: Objects<Node> = Objects::all(self.server.api.client());
        nodes.patch(node, &PatchParams::default(), &Patch::Merge(patch)).await.expect("patched");
    }
}
