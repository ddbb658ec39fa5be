//! Acting from the dashboard: the loop as it ships, with typed keys, over a demo cluster that is served; what was
//! written is seen by its API.

use std::{collections::BTreeMap, io, process::Stdio, time::Duration};

use crossterm::event::Event;
use futures::channel::mpsc;
use k8s_openapi::api::core::v1::Node;
use kordon::{
    app::{AppOptions, Mode},
    cluster::claim::DRAIN,
    demo::{
        api::{ApiOptions, Fault, FaultAnswer, Verb},
        scenario::Scenario,
        world,
    },
    engine::{ServerVersion, Settings},
    executor::{effects::EffectExecutor, write_context},
    journal::{Journal, JournaledOperation, operations},
    k8s::connect::{ConnectOptions, connect},
    model::{ConnectionInfo, ControllerRole, ModelOptions},
    run::{self, Dashboard, RunError, Session},
};
use kube::ResourceExt;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{
    common::{
        program::{self, Server, Shell},
        terminal::{Terminal, assent},
    },
    paper::Paper,
    story,
};

const NODE: &str = "general-1a-02";

/// Opens the plan to drain the node, with all that it takes.
const DRAIN_IT: &str = "2/general-1a-02<Enter>rDEF";

#[tokio::test(flavor = "multi_thread")]
async fn in_dry_run_no_key_writes_anything() {
    let site = Site::new().await;
    let seed = 7;
    for mode in [Mode::DryRun, Mode::ReadOnly] {
        let script = async |desk: &Desk| {
            desk.ready().await;
            desk.press(DRAIN_IT).await;
            desk.planned().await;
            desk.press("A").await;
            desk.wait(if mode == Mode::DryRun {
                "dry-run: nothing is written"
            } else {
                "read-only: nothing"
            })
            .await;
            desk.press("<Enter><Enter>here<Enter><Esc><Esc><Esc>").await;
            let mut chance = fastrand::Rng::with_seed(seed);
            let keys: Vec<char> = "jkgGMcurtlxeDEFBPNOZAoURXCpdzwsSf 12345/?".chars().collect();
            for _ in 0..600 {
                let key = keys[chance.usize(..keys.len())].to_string();
                let other = ["<Enter>", "<Esc>", "<Tab>", "<Down>", "<Del>"][chance.usize(..5)];
                desk.type_in(if chance.u8(..5) == 0 { other } else { &key });
                if chance.u8(..20) == 0 {
                    desk.press("<Esc>").await;
                }
            }
            desk.press("<Esc>").await;
        };
        site.at_the_desk(mode, script).await;
    }
    assert_eq!(site.server.written(), Vec::<String>::new(), "seed {seed}");
    assert!(!site.journal().path().exists(), "a journal of nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn read_only_cannot_be_unlocked_and_nothing_typed_is_lost_by_a_mistake() {
    let site = Site::new().await;
    site.at_the_desk(Mode::ReadOnly, async |desk| {
        desk.press(":enforce 1h<Enter>").await;
        desk.wait("--read-only, which locks enforcing out").await;
        assert!(desk.screen().contains(":enforce 1h"), "{}", desk.screen());
    })
    .await;
    site.at_the_desk(Mode::DryRun, async |desk| {
        desk.press(":enforce soon<Enter>").await;
        desk.wait("soon is no time such as 30s, 15m or 1h30m").await;
        desk.press("<Ctrl-u>enforce 13h<Enter>").await;
        desk.wait("at most 12h00m at a time").await;
        desk.press("<Ctrl-u>enforce<Enter>").await;
        desk.wait("ENFORCE").await;
        desk.press(":dry-run<Enter>").await;
        desk.wait("DRY-RUN").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_is_confirmed_paused_carried_out_reported_and_put_back() {
    let site = Site::new().await;
    site.at_the_desk(Mode::DryRun, async |desk| {
        desk.ready().await;
        desk.press(":reason new kernel<Enter>:enforce 12h<Enter>").await;
        desk.wait("ENFORCE").await;
        desk.press(DRAIN_IT).await;
        desk.planned().await;
        desk.press("A").await;
        desk.wait("Type here to go on").await;
        assert!(desk.screen().contains("why: new kernel"), "{}", desk.screen());
        desk.press("<Enter>").await;
        desk.wait("that is not what is to be typed").await;
        desk.press("yes<Enter>").await;
        assert_eq!(site.server.written(), Vec::<String>::new(), "before it was agreed to");
        desk.press("<Ctrl-u>").await;
        desk.agree().await;
        site.until(|site| !site.server.evictions().is_empty()).await;
        desk.press("p").await;
        desk.wait("paused").await;
        let (asked, _) = site.still().await;
        desk.press("p").await;
        desk.wait("done after").await;
        assert!(site.server.evictions().len() >= asked);
        assert_eq!(site.server.left_on(NODE).await, Vec::<String>::new());
        let node = site.server.node(NODE).await;
        assert!(cordoned(&node) && !node.annotations().contains_key(DRAIN), "cordoned, and no mark is left");
        assert!(desk.screen().contains("1 node drained"), "{}", desk.screen());
        desk.press("U").await;
        desk.wait("general-1a-02 is uncordoned").await;
        desk.wait("Yes, put it back").await;
        desk.press("<Tab><Enter>").await;
        desk.wait("undo of drain general-1a-02 · done").await;
        assert!(!cordoned(&site.server.node(NODE).await));
        site.until(|site| site.pasts()[0].undone).await;
        let past = &site.pasts()[0];
        assert_eq!((past.ended.as_deref(), past.start.why.as_str()), (Some("done"), "new kernel"));
        site.each_evicted_once();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cordon_takes_a_yes_that_is_not_the_default_and_the_command_line_undoes_it() {
    let site = Site::new().await;
    site.at_the_desk(Mode::DryRun, async |desk| {
        desk.ready().await;
        desk.press(":enforce 12h<Enter>2/general-1a-02<Enter>c").await;
        desk.wait("2 Plan  cordon general-1a-02").await;
        desk.wait("/api/v1/nodes/general-1a-02").await;
        desk.press("A").await;
        desk.wait("[ Cancel ]").await;
        desk.press("<Enter>").await;
        desk.wait_gone("Yes, cordon").await;
        assert_eq!(site.server.written(), Vec::<String>::new());
        desk.press("A").await;
        desk.wait("Yes, cordon").await;
        desk.press("<Tab><Enter>").await;
        desk.wait("cordon general-1a-02 · done").await;
    })
    .await;
    assert!(cordoned(&site.server.node(NODE).await));
    let journal = site.run(&["journal"]).await.done();
    let plan = site.pasts()[0].id.clone();
    assert!(journal.contains(&*plan) && journal.contains("done"), "{journal}");
    site.run(&["undo", &plan, "--enforce", "--yes"]).await;
    assert!(!cordoned(&site.server.node(NODE).await));
}

#[tokio::test(flavor = "multi_thread")]
async fn enforcing_ends_by_itself_and_what_runs_goes_on() {
    let site = Site::new().await;
    site.at_the_desk(Mode::DryRun, async |desk| {
        desk.ready().await;
        desk.begin_to_drain(&site).await;
        desk.press(":enforce 1s<Enter>").await;
        desk.wait("DRY-RUN").await;
        desk.wait("what is being carried out goes on").await;
        desk.wait("done after").await;
        desk.press("<Esc>").await;
        desk.press("/<Ctrl-u>general-1b-02<Enter>c").await;
        desk.wait("2 Plan  cordon general-1b-02").await;
        desk.press("A").await;
        desk.wait("dry-run: nothing is written").await;
    })
    .await;
    assert_eq!(site.server.left_on(NODE).await, Vec::<String>::new());
    assert!(!cordoned(&site.server.node("general-1b-02").await));
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_permissions_are_named_and_nothing_is_written() {
    let site = Site::new().await;
    site.server.api.inject(Fault::always(FaultAnswer::Forbidden).on(&[Verb::Create], "pods/eviction"));
    site.at_the_desk(Mode::DryRun, async |desk| {
        desk.ready().await;
        desk.ask_to_drain().await;
        desk.wait("these permissions are missing").await;
        assert!(desk.screen().contains("create pods/eviction in "), "{}", desk.screen());
        desk.press("<Enter>").await;
        desk.wait_gone("these permissions are missing").await;
    })
    .await;
    assert_eq!(site.server.written(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_has_changed_since_it_was_agreed_to_is_shown_again() {
    let site = Site::new().await;
    site.at_the_desk(Mode::DryRun, async |desk| {
        desk.ready().await;
        desk.ask_to_drain().await;
        desk.wait("Type here to go on").await;
        let owner = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": "x", "controller": true}]);
        let pod = json!({"metadata": {"name": "newcomer", "namespace": "default", "ownerReferences": owner},
            "spec": {"nodeName": NODE, "containers": [{"name": "c", "image": "i"}]},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
        site.server.api.load("pods", pod);
        // The plan behind the question is worked out anew.
        desk.wait("newcomer").await;
        desk.press("here<Enter>").await;
        desk.wait("This has changed since you looked").await;
        desk.wait("pod default/newcomer has come").await;
        assert_eq!(site.server.written(), Vec::<String>::new());
        desk.agree().await;
        desk.wait("done after").await;
    })
    .await;
    assert!(
        site.server.evictions().iter().any(|pod| pod == "default/newcomer"),
        "{:?}",
        site.server.evictions()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_that_was_killed_is_offered_and_resumed_in_enforce_only() {
    let site = Site::new().await;
    let line =
        ["drain", NODE, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--enforce", "--yes"];
    let arguments = [&site.connection()[..], &line].concat();
    let mut command = site.shell.command(&arguments);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("started");
    site.until(|site| !site.server.evictions().is_empty()).await;
    child.kill().await.expect("killed");
    assert!(site.pasts()[0].is_unfinished(), "it was over before it was killed");
    site.at_the_desk(Mode::DryRun, async |desk| {
        desk.wait("drain general-1a-02 was cut off").await;
        desk.ready().await;
        desk.press("R").await;
        desk.wait("dry-run: nothing is written").await;
        desk.press(":enforce 12h<Enter>").await;
        desk.wait("ENFORCE").await;
        desk.press("R").await;
        desk.wait("Go on with a drain that was cut off").await;
        desk.agree().await;
        desk.wait("done after").await;
        assert!(!desk.screen().contains("was cut off"), "{}", desk.screen());
    })
    .await;
    assert_eq!(site.server.left_on(NODE).await, Vec::<String>::new());
    site.until(|site| site.pasts()[0].ended.as_deref() == Some("done")).await;
    site.each_evicted_once();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_program_that_is_killed_in_a_drain_offers_it_when_it_starts_again() {
    let site = Site::new().await;
    let start = || Terminal::with(site.shell.under_terminal(&site.connection()));
    let begun = || {
        let mut terminal = start();
        // Before that, it is not yet in a mode to be typed into.
        terminal.wait("● pods");
        terminal.type_in(":enforce 1h\r");
        terminal.wait("ENFORCE");
        terminal.type_in("2/general-1a-02\r");
        terminal.wait("● general-1a-02");
        terminal.type_in("r");
        terminal.wait("2 Plan");
        terminal.type_in("DEF");
        let told = |screen: &str| screen.contains("leave now") && !screen.contains("refused");
        terminal.wait_until("no plan", told);
        terminal.type_in("A");
        terminal.agree();
        terminal
    };
    let mut terminal = tokio::task::block_in_place(begun);
    site.until(|site| !site.server.evictions().is_empty()).await;
    terminal.child.kill().expect("killed");
    assert!(site.pasts()[0].is_unfinished(), "it was over before it was killed");
    tokio::task::block_in_place(|| {
        let mut terminal = start();
        terminal.wait("drain general-1a-02 was cut off");
        terminal.wait("● pods");
        terminal.type_in(":enforce 1h\r");
        terminal.wait("ENFORCE");
        terminal.type_in("R");
        terminal.agree();
        terminal.wait("done after");
        terminal.wait_gone("was cut off");
        terminal.type_in("q");
        assert!(terminal.end().success());
    });
    assert_eq!(site.pasts()[0].ended.as_deref(), Some("done"));
    assert_eq!(site.server.left_on(NODE).await, Vec::<String>::new());
    site.each_evicted_once();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_dashboard_left_unfinished_the_command_line_resumes() {
    let site = Site::new().await;
    site.at_the_desk(Mode::DryRun, async |desk| {
        desk.ready().await;
        desk.begin_to_drain(&site).await;
        desk.press("q").await;
        desk.wait("This is being carried out").await;
        desk.press("<Esc>").await;
        desk.wait_gone("This is being carried out").await;
        // The desk is left in the midst of it.
    })
    .await;
    let past = site.pasts().remove(0);
    if past.is_unfinished() {
        let output = site.run(&["drain", "--resume", "--enforce", "--yes"]).await;
        assert_eq!(output.code, 0, "{}", output.err);
    }
    assert_eq!(site.pasts()[0].ended.as_deref(), Some("done"));
    assert_eq!(site.server.left_on(NODE).await, Vec::<String>::new());
    site.each_evicted_once();
}

#[tokio::test(flavor = "multi_thread")]
async fn leaving_cancels_first_where_that_is_what_is_answered() {
    let site = Site::new().await;
    let left = site
        .until_left(Mode::DryRun, async |desk| {
            desk.ready().await;
            desk.begin_to_drain(&site).await;
            desk.press("p").await;
            desk.wait("paused").await;
            desk.press("q").await;
            desk.wait("This is being carried out").await;
            desk.press("<Tab><Tab><Enter>").await;
        })
        .await;
    left.expect("left in order");
    let past = site.pasts().remove(0);
    assert_eq!(past.ended.as_deref(), Some("cancelled"));
    assert!(!site.server.node(NODE).await.annotations().contains_key(DRAIN), "a mark is left");
}

/// A demo cluster that lives five times as fast as we do, served; and a home for journals.
struct Site {
    shell: Shell,
    server: Server,
    kubeconfig: String,
    _world: world::World,
}

impl Site {
    async fn new() -> Self {
        let options = ApiOptions { log_entries: 1_000_000, ..ApiOptions::default() };
        let (shell, server) = (Shell::new(), Server::start_at_speed(options, 5.0).await);
        let scenario = Scenario::named("healthy").expect("there is one");
        let world = server.inhabit_as(&world::WorldOptions { scenario, ..world::WorldOptions::default() });
        let kubeconfig = shell.kubeconfig(&server.url, json!({"token": "t"}));
        let site = Self { shell, server, kubeconfig, _world: world };
        site.until(|site| site.server.api.count("pods") > 150).await;
        site.server.govern().await;
        site
    }

    async fn dashboard(&self, mode: Mode, cancel: CancellationToken) -> Dashboard {
        let options =
            ConnectOptions { kubeconfig: Some(self.kubeconfig.clone().into()), ..ConnectOptions::default() };
        let connection = connect(&options).await.expect("the demo answers");
        let options = ModelOptions {
            connection: ConnectionInfo { context: connection.context.clone(), ..ConnectionInfo::default() },
            settings: Settings::defaults(ServerVersion::new(1, 36)),
            role: ControllerRole::Shadow,
        };
        let clock = self.server.clock;
        let session = Session::start(&connection, options, false, EffectExecutor::Recorder, clock, cancel);
        let context = write_context::WriteContext::with(&connection, self.journal(), clock);
        Dashboard::over(session, AppOptions { mode, ..AppOptions::default() }, Some(context))
    }

    /// Runs the dashboard for as long as the script takes, and then drops it as it is.
    async fn at_the_desk(&self, mode: Mode, script: impl AsyncFnOnce(&Desk)) {
        let cancel = CancellationToken::new();
        let _ends = cancel.clone().drop_guard();
        let dashboard = self.dashboard(mode, cancel).await;
        let (keys, typed) = mpsc::unbounded();
        let desk = Desk { keys, paper: Paper::default() };
        let mut paper = desk.paper.clone();
        tokio::select! {
            () = script(&desk) => {}
            left = run::run_dashboard(dashboard, &mut paper, typed) => panic!("it left: {left:?}\n{}", desk.screen()),
        }
    }

    /// Runs it until it leaves by itself.
    async fn until_left(&self, mode: Mode, script: impl AsyncFnOnce(&Desk)) -> Result<(), RunError> {
        let cancel = CancellationToken::new();
        let _ends = cancel.clone().drop_guard();
        let dashboard = self.dashboard(mode, cancel).await;
        let (keys, typed) = mpsc::unbounded();
        let desk = Desk { keys, paper: Paper::default() };
        let mut paper = desk.paper.clone();
        let (left, ()) = tokio::join!(run::run_dashboard(dashboard, &mut paper, typed), script(&desk));
        left
    }

    fn connection(&self) -> [&str; 2] {
        ["--kubeconfig", &self.kubeconfig]
    }

    async fn run(&self, line: &[&str]) -> program::Output {
        self.shell.run(&[&self.connection()[..], line].concat()).await
    }

    fn journal(&self) -> Journal {
        Journal::within(&self.shell.home.path().join(".local/state/kordon/journal"), "here")
    }

    fn pasts(&self) -> Vec<JournaledOperation> {
        operations(&self.journal().lines().expect("read"))
    }

    /// Waits until something holds, for three minutes at most: the machine may be busy.
    async fn until(&self, holds: impl Fn(&Self) -> bool) {
        let waiting = async {
            while !holds(self) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(180), waiting).await.expect("it comes true");
    }

    /// Waits until nothing that was asked for is unanswered any more; tells how many evictions were granted by then,
    /// and that a while later there are no more.
    async fn still(&self) -> (usize, ()) {
        // What was under way when it was paused still comes in.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let granted = self.server.evictions().len();
        // A pause has a length; nothing happens in it that could be waited for.
        tokio::time::sleep(Duration::from_millis(1500)).await;
        assert_eq!(self.server.evictions().len(), granted, "evicted while it was paused");
        (granted, ())
    }

    fn each_evicted_once(&self) {
        let mut times: BTreeMap<String, usize> = BTreeMap::new();
        for pod in self.server.evictions() {
            *times.entry(pod).or_default() += 1;
        }
        let twice: Vec<_> = times.iter().filter(|(_, count)| **count > 1).collect();
        assert!(twice.is_empty(), "evicted more than once: {twice:?}");
    }
}

/// Whoever sits before the dashboard.
struct Desk {
    keys: mpsc::UnboundedSender<io::Result<Event>>,
    paper: Paper,
}

impl Desk {
    /// Waits until the cluster is seen.
    async fn ready(&self) {
        self.wait(NODE).await;
        self.wait("● pods").await;
    }

    /// Waits until the plan of the drain has been worked out with its options.
    async fn planned(&self) {
        let told = |screen: &str| screen.contains("leave now") && !screen.contains("refused");
        self.wait_until("no plan", |screen| told(screen) && !screen.contains("working it out")).await;
    }

    /// Unlocks writing and has the drain carried out, as far as the first question.
    async fn ask_to_drain(&self) {
        self.press(":enforce 12h<Enter>").await;
        self.press(DRAIN_IT).await;
        self.planned().await;
        self.press("A").await;
    }

    /// The same, agreed to, until the first pod is evicted.
    async fn begin_to_drain(&self, site: &Site) {
        self.ask_to_drain().await;
        self.agree().await;
        site.until(|site| !site.server.evictions().is_empty()).await;
    }

    /// Types, whether it means something or not.
    fn type_in(&self, keys: &str) {
        for key in story::typed(keys) {
            self.keys.unbounded_send(Ok(Event::Key(key))).expect("the loop runs");
        }
    }

    /// Types what means something, and waits until it was drawn.
    async fn press(&self, keys: &str) {
        self.type_in(keys);
        let draws = || self.paper.draws.lock().expect("no panic").len();
        let before = draws();
        let drawn = async {
            while draws() == before {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(180), drawn).await.expect("keys are drawn at once");
    }

    fn screen(&self) -> String {
        self.paper.screen.lock().expect("no panic").clone()
    }

    async fn wait(&self, text: &str) {
        self.wait_until(&format!("no {text:?}"), |screen| screen.contains(text)).await;
    }

    async fn wait_gone(&self, text: &str) {
        self.wait_until(&format!("still {text:?}"), |screen| !screen.contains(text)).await;
    }

    /// Gives the answer that is asked for, once more where the plan has changed meanwhile, until it begins.
    async fn agree(&self) {
        loop {
            let over = |screen: &str| assent(screen).is_some() || screen.contains("2 Progress");
            self.wait_until("no question", over).await;
            let Some(keys) = assent(&self.screen()) else { return };
            self.type_in(&keys.replace('\r', "<Enter>").replace('\t', "<Tab>"));
            self.wait_until("no key is taken", |screen| assent(screen) != Some(keys)).await;
        }
    }

    /// Waits for what is on the screen and never for a time; the limit is for a program that has failed.
    async fn wait_until(&self, what: &str, holds: impl Fn(&str) -> bool) {
        let waiting = async {
            while !holds(&self.screen()) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(180), waiting).await;
        assert!(waited.is_ok(), "{what} on\n{}", self.screen());
    }
}

fn cordoned(node: &Node) -> bool {
    node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or(false)
}
