//! Operations from the dashboard: its real loop with typed keys, and a demo cluster whose API shows the writes.

use std::time::Duration;

use kordon::{
    app::Mode,
    run::{self, RunError},
};
use kordon_core::cluster::claim::DRAIN;
use kordon_demo::api::{Fault, FaultAnswer, Verb};
use kube::ResourceExt;
use tokio_util::sync::CancellationToken;

use crate::{
    common::{program::is_cordoned, terminal::Terminal},
    dashboard_driver::{DRAIN_IT, DashboardDriver, NODE, shows_pods},
    harness::Harness,
};

/// Speed of the cluster's time compared with real time.
const SPEED: f64 = 5.0;

#[tokio::test(flavor = "multi_thread")]
async fn in_dry_run_no_key_writes_anything() {
    let harness = Harness::start(SPEED).await;
    let seed = 7;
    for mode in [Mode::DryRun, Mode::ReadOnly] {
        let script = async |dashboard: &DashboardDriver| {
            dashboard.ready().await;
            dashboard.press(DRAIN_IT).await;
            dashboard.wait_for_plan().await;
            dashboard.press("A").await;
            dashboard
                .wait(if mode == Mode::DryRun { "dry-run: nothing is written" } else { "read-only: nothing" })
                .await;
            dashboard.press("<Enter><Enter>here<Enter><Esc><Esc><Esc>").await;
            let mut chance = fastrand::Rng::with_seed(seed);
            let keys: Vec<char> = "jkgGMcurtlxeDEFBPNOZAoURXCpdzwsSf 12345/?".chars().collect();
            for _ in 0..600 {
                let key = keys[chance.usize(..keys.len())].to_string();
                let other = ["<Enter>", "<Esc>", "<Tab>", "<Down>", "<Del>"][chance.usize(..5)];
                dashboard.type_in(if chance.u8(..5) == 0 { other } else { &key });
                if chance.u8(..20) == 0 {
                    dashboard.press("<Esc>").await;
                }
            }
            dashboard.press("<Esc>").await;
        };
        harness.with_dashboard(mode, script).await;
    }
    assert_eq!(harness.server.written(), Vec::<String>::new(), "seed {seed}");
    assert!(!harness.journal().path().exists(), "a journal of nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn read_only_cannot_be_unlocked_and_nothing_typed_is_lost_by_a_mistake() {
    let harness = Harness::start(SPEED).await;
    harness
        .with_dashboard(Mode::ReadOnly, async |dashboard| {
            dashboard.press(":enforce 1h<Enter>").await;
            dashboard.wait("this session was started with --read-only").await;
            assert!(dashboard.screen().contains(":enforce 1h"), "{}", dashboard.screen());
        })
        .await;
    harness
        .with_dashboard(Mode::DryRun, async |dashboard| {
            dashboard.press(":enforce soon<Enter>").await;
            dashboard.wait("soon is not a duration such as 30s, 15m or 1h30m").await;
            dashboard.press("<Ctrl-u>enforce 13h<Enter>").await;
            dashboard.wait("at most 12h00m at a time").await;
            dashboard.press("<Ctrl-u>enforce<Enter>").await;
            dashboard.wait("ENFORCE").await;
            dashboard.press(":dry-run<Enter>").await;
            dashboard.wait("DRY-RUN").await;
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_is_confirmed_paused_applied_reported_and_undone() {
    let harness = Harness::start(SPEED).await;
    harness
        .with_dashboard(Mode::DryRun, async |dashboard| {
            dashboard.ready().await;
            dashboard.press(":reason new kernel<Enter>:enforce 12h<Enter>").await;
            dashboard.wait("ENFORCE").await;
            dashboard.press(DRAIN_IT).await;
            dashboard.wait_for_plan().await;
            dashboard.press("A").await;
            dashboard.wait("Type here to continue").await;
            assert!(dashboard.screen().contains("reason: new kernel"), "{}", dashboard.screen());
            dashboard.press("<Enter>").await;
            dashboard.wait("does not match").await;
            dashboard.press("yes<Enter>").await;
            assert_eq!(harness.server.written(), Vec::<String>::new(), "before it was agreed to");
            dashboard.press("<Ctrl-u>").await;
            dashboard.agree().await;
            harness.until(|harness| !harness.server.evictions().is_empty()).await;
            dashboard.press("p").await;
            dashboard.wait("paused").await;
            let (asked, _) = harness.assert_paused().await;
            dashboard.press("p").await;
            dashboard.wait("done after").await;
            assert!(harness.server.evictions().len() >= asked);
            assert_eq!(harness.server.left_on(NODE).await, Vec::<String>::new());
            let node = harness.server.node(NODE).await;
            assert!(
                is_cordoned(&node) && !node.annotations().contains_key(DRAIN),
                "cordoned, and no mark is left"
            );
            assert!(dashboard.screen().contains("1 node drained"), "{}", dashboard.screen());
            dashboard.press("U").await;
            dashboard.wait("uncordon general-1a-02").await;
            dashboard.wait("Yes, undo").await;
            dashboard.press("<Tab><Enter>").await;
            dashboard.wait("undo of drain general-1a-02 · done").await;
            assert!(!is_cordoned(&harness.server.node(NODE).await));
            harness.until(|harness| harness.operations()[0].undone).await;
            let past = &harness.operations()[0];
            assert_eq!((past.ended.as_deref(), past.start.reason.as_str()), (Some("done"), "new kernel"));
            assert_eq!(harness.evicted_twice(0), Vec::<String>::new());
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_pods_a_drain_reads_those_of_its_node_and_is_applied() {
    let harness = Harness::start(SPEED).await;
    harness
        .with_dashboard_without_pods(Mode::DryRun, async |dashboard| {
            dashboard.wait(NODE).await;
            dashboard.ask_to_drain().await;
            dashboard.agree().await;
            harness.until(|harness| !harness.server.evictions().is_empty()).await;
            dashboard.wait("done in ~").await;
            dashboard.wait("done after").await;
            assert_eq!(harness.server.left_on(NODE).await, Vec::<String>::new());
            assert!(dashboard.screen().contains("1 node drained"), "{}", dashboard.screen());
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cordon_needs_a_yes_that_is_not_the_default_and_the_command_line_undoes_it() {
    let harness = Harness::start(SPEED).await;
    harness
        .with_dashboard_that_quits(Mode::DryRun, async |dashboard| {
            dashboard.ready().await;
            dashboard.press(":enforce 12h<Enter>2/general-1a-02<Enter>c").await;
            dashboard.wait("2 Plan  cordon general-1a-02").await;
            dashboard.wait("/api/v1/nodes/general-1a-02").await;
            dashboard.press("A").await;
            dashboard.wait("[ Cancel ]").await;
            dashboard.press("<Enter>").await;
            dashboard.wait_gone("Yes, cordon").await;
            assert_eq!(harness.server.written(), Vec::<String>::new());
            dashboard.press("A").await;
            dashboard.wait("Yes, cordon").await;
            dashboard.press("<Tab><Enter>").await;
            dashboard.wait("cordon general-1a-02 · done").await;
        })
        .await;
    assert!(is_cordoned(&harness.server.node(NODE).await));
    let journal = harness.run(&["journal"]).await.done();
    let plan = harness.operations()[0].id.clone();
    assert!(journal.contains(&*plan) && journal.contains("done"), "{journal}");
    harness.run(&["undo", &plan, "--enforce", "--yes"]).await;
    assert!(!is_cordoned(&harness.server.node(NODE).await));
}

#[tokio::test(flavor = "multi_thread")]
async fn enforcing_ends_by_itself_and_running_operations_continue() {
    let harness = Harness::start(SPEED).await;
    harness
        .with_dashboard(Mode::DryRun, async |dashboard| {
            dashboard.ready().await;
            dashboard.start_drain(&harness).await;
            dashboard.press(":enforce 1s<Enter>").await;
            dashboard.wait("DRY-RUN").await;
            dashboard.wait("1 operation continues").await;
            dashboard.wait("done after").await;
            dashboard.press("<Esc>").await;
            dashboard.press("/<Ctrl-u>general-1b-02<Enter>c").await;
            dashboard.wait("2 Plan  cordon general-1b-02").await;
            dashboard.press("A").await;
            dashboard.wait("dry-run: nothing is written").await;
        })
        .await;
    assert_eq!(harness.server.left_on(NODE).await, Vec::<String>::new());
    assert!(!is_cordoned(&harness.server.node("general-1b-02").await));
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_permissions_are_named_and_nothing_is_written() {
    let harness = Harness::start(SPEED).await;
    harness.server.api.inject(Fault::always(FaultAnswer::Forbidden).on(&[Verb::Create], "pods/eviction"));
    harness
        .with_dashboard(Mode::DryRun, async |dashboard| {
            dashboard.ready().await;
            dashboard.ask_to_drain().await;
            dashboard.wait("these permissions are missing").await;
            assert!(dashboard.screen().contains("create pods/eviction in "), "{}", dashboard.screen());
            dashboard.press("<Enter>").await;
            dashboard.wait_gone("these permissions are missing").await;
        })
        .await;
    assert_eq!(harness.server.written(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_may_not_do_is_named_before_it_is_tried_until_it_is_granted() {
    let harness = Harness::start(SPEED).await;
    harness.server.api.inject(Fault::always(FaultAnswer::Forbidden).on(&[Verb::Patch], "nodes"));
    harness
        .with_dashboard(Mode::DryRun, async |dashboard| {
            dashboard.ready().await;
            dashboard.press("?/plan to<Enter>").await;
            dashboard.wait("(may not patch nodes) Plan to cordon").await;
            let screen = dashboard.screen();
            assert!(!screen.contains("(may not patch nodes) Predict"), "a what-if writes nothing: {screen}");
            dashboard.press("<Esc>:evict").await;
            dashboard.wait("Plan to evict the marked pods").await;
            assert!(!dashboard.screen().contains("may not"), "{}", dashboard.screen());
            // The preview of a cordon stays possible without the permission to patch nodes. The key `c` asks the server
            // about the permission again.
            harness.server.api.clear_faults();
            dashboard.press("<Esc>2c").await;
            dashboard.wait("may not patch nodes: this is a preview").await;
            dashboard.wait("unschedulable").await;
            dashboard.press("<Esc>?/plan to<Enter>").await;
            dashboard.wait("Plan to cordon").await;
            dashboard.wait_gone("may not patch nodes").await;
        })
        .await;
    assert_eq!(harness.server.written(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_right_that_is_missing_in_one_namespace_is_named_for_its_pods_only() {
    let harness = Harness::start(SPEED).await;
    let forbidden = || Fault::always(FaultAnswer::Forbidden).on(&[Verb::Create], "pods/eviction");
    harness.server.api.inject(forbidden());
    harness
        .with_dashboard(Mode::DryRun, async |dashboard| {
            dashboard.ready().await;
            dashboard.press("2/general-1a-02<Enter><Enter>").await;
            dashboard.wait("2 Pods").await;
            // The table of commands is longer than the screen, so the test searches in it.
            dashboard.press("?/Plan to<Enter>").await;
            dashboard.wait("(may not create pods/eviction in ").await;
            let screen = dashboard.screen();
            assert!(
                screen.contains("(may not create pods/eviction in all namespaces) Plan to drain"),
                "{screen}"
            );
            dashboard.press("<Esc><Esc>e").await;
            dashboard.wait("may not create pods/eviction in ").await;
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_review_access_leaves_every_right_unknown() {
    let harness = Harness::start(SPEED).await;
    let reviews = Fault::always(FaultAnswer::InternalError).on(&[Verb::Create], "selfsubjectaccessreviews");
    harness.server.api.inject(reviews);
    harness
        .with_dashboard(Mode::DryRun, async |dashboard| {
            dashboard.ready().await;
            harness
                .until(|harness| {
                    harness.server.api.log().iter().any(|logged| logged.uri.contains("selfsubjectaccess"))
                })
                .await;
            dashboard.press("?/plan to<Enter>").await;
            dashboard.wait("Plan to cordon").await;
            assert!(!dashboard.screen().contains("may not"), "{}", dashboard.screen());
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_that_was_killed_is_offered_and_resumed_in_enforce_only() {
    let harness = Harness::start(SPEED).await;
    let line = ["drain", NODE, "--ignore-daemonsets", "--delete-emptydir-data", "--force"];
    let mut child = harness.enforcing(&line).spawn().expect("started");
    harness.until(|harness| !harness.server.evictions().is_empty()).await;
    child.kill().await.expect("killed");
    assert!(harness.operations()[0].is_unfinished(), "it was over before it was killed");
    harness
        .with_dashboard(Mode::DryRun, async |dashboard| {
            dashboard.wait("drain general-1a-02 was interrupted").await;
            dashboard.ready().await;
            dashboard.press("R").await;
            dashboard.wait("dry-run: nothing is written").await;
            dashboard.press(":enforce 12h<Enter>").await;
            dashboard.wait("ENFORCE").await;
            dashboard.press("R").await;
            dashboard.wait("Resume an interrupted drain").await;
            dashboard.agree().await;
            dashboard.wait("done after").await;
            assert!(!dashboard.screen().contains("was interrupted"), "{}", dashboard.screen());
        })
        .await;
    assert_eq!(harness.server.left_on(NODE).await, Vec::<String>::new());
    harness.until(|harness| harness.operations()[0].ended.as_deref() == Some("done")).await;
    assert_eq!(harness.evicted_twice(0), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_program_that_is_killed_in_a_drain_offers_it_when_it_starts_again() {
    let harness = Harness::start(SPEED).await;
    let start = || Terminal::with(harness.shell.under_terminal(&harness.connection()));
    let begun = || {
        let mut terminal = start();
        // Waits until the screen shows the pods. Before that, the terminal may not be set up, and keys are lost.
        terminal.wait_until("no pods", shows_pods);
        terminal.type_in(":enforce 1h\r");
        terminal.wait("ENFORCE");
        terminal.type_in("2/general-1a-02\r");
        terminal.wait("▪ general-1a-02");
        terminal.type_in("r");
        terminal.wait("2 Plan");
        terminal.type_in("DEF");
        let reported = |screen: &str| screen.contains("leave now") && !screen.contains("refused");
        terminal.wait_until("no plan", reported);
        terminal.type_in("A");
        terminal.agree("here");
        terminal
    };
    let mut terminal = tokio::task::block_in_place(begun);
    harness.until(|harness| !harness.server.evictions().is_empty()).await;
    terminal.child.kill().expect("killed");
    assert!(harness.operations()[0].is_unfinished(), "it was over before it was killed");
    tokio::task::block_in_place(|| {
        let mut terminal = start();
        terminal.wait("drain general-1a-02 was interrupted");
        terminal.wait_until("no pods", shows_pods);
        terminal.type_in(":enforce 1h\r");
        terminal.wait("ENFORCE");
        terminal.type_once_ready("R", "here");
        terminal.agree("here");
        terminal.wait("done after");
        terminal.wait_gone("was interrupted");
        terminal.type_in("q");
        assert!(terminal.end().success());
    });
    assert_eq!(harness.operations()[0].ended.as_deref(), Some("done"));
    assert_eq!(harness.server.left_on(NODE).await, Vec::<String>::new());
    assert_eq!(harness.evicted_twice(0), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_resumes_an_unfinished_operation_of_the_dashboard() {
    let harness = Harness::start(SPEED).await;
    harness
        .with_dashboard(Mode::DryRun, async |dashboard| {
            dashboard.ready().await;
            dashboard.start_drain(&harness).await;
            dashboard.press("q").await;
            dashboard.wait("In progress:").await;
            dashboard.press("<Esc>").await;
            dashboard.wait_gone("In progress:").await;
            // The dashboard is dropped here, in the middle of the drain.
        })
        .await;
    let past = harness.operations().remove(0);
    if past.is_unfinished() {
        let output = harness.run(&["drain", "--resume", "--enforce", "--yes"]).await;
        assert_eq!(output.code, 0, "{}", output.err);
    }
    assert_eq!(harness.operations()[0].ended.as_deref(), Some("done"));
    assert_eq!(harness.server.left_on(NODE).await, Vec::<String>::new());
    assert_eq!(harness.evicted_twice(0), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn leaving_cancels_first_where_that_is_what_is_answered() {
    let harness = Harness::start(SPEED).await;
    let left = harness
        .until_exit(Mode::DryRun, async |dashboard| {
            dashboard.ready().await;
            dashboard.start_drain(&harness).await;
            dashboard.press("p").await;
            dashboard.wait("paused").await;
            dashboard.press("q").await;
            dashboard.wait("In progress:").await;
            dashboard.press("<Tab><Tab><Enter>").await;
        })
        .await;
    left.expect("left in order");
    let past = harness.operations().remove(0);
    assert_eq!(past.ended.as_deref(), Some("cancelled"));
    assert!(!harness.server.node(NODE).await.annotations().contains_key(DRAIN), "a mark is left");
}

impl Harness {
    /// Runs the dashboard until the script makes it exit.
    async fn until_exit(
        &self,
        mode: Mode,
        script: impl AsyncFnOnce(&DashboardDriver),
    ) -> Result<(), RunError> {
        let cancel = CancellationToken::new();
        let _ends = cancel.clone().drop_guard();
        let dashboard = self.dashboard(mode, false, cancel).await;
        let (driver, typed) = DashboardDriver::new();
        let mut screen = driver.recording.clone();
        let (exit, ()) = tokio::join!(run::run_dashboard(dashboard, &mut screen, typed), script(&driver));
        exit
    }

    /// Asserts that no eviction is granted while the operation is paused. Returns the number of evictions granted
    /// before.
    pub async fn assert_paused(&self) -> (usize, ()) {
        // Waits for the responses to requests that were in flight.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let granted = self.server.evictions().len();
        // Waits in real time, because there is no event to wait for.
        tokio::time::sleep(Duration::from_millis(1500)).await;
        assert_eq!(self.server.evictions().len(), granted, "evicted while it was paused");
        (granted, ())
    }
}
