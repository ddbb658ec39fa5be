//! A maintenance that is started, paused and cancelled on its sheet: the dashboard's real loop with typed keys, and a
//! demo cluster whose API shows the writes.

use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kordon::app::Mode;
use kordon_core::cluster::{MaintenanceNote, claim::DRAIN, maintenance_note::MAINTENANCE};
use kube::{Api as Objects, ResourceExt as _, api::ListParams};

use crate::{
    dashboard_driver::DashboardDriver,
    harness::Harness,
    maintained::{NODES, Runs, left_behind, once_each},
};

/// Speed of the cluster's time compared with real time.
const SPEED: f64 = 20.0;

/// Opens the sheet for the three nodes, with all options that their drains need.
async fn open_sheet(dashboard: &DashboardDriver) {
    dashboard.ready().await;
    dashboard.press("2/general -02<Enter>M").await;
    dashboard.wait("3 marked").await;
    dashboard.press("mFE").await;
    dashboard.wait("force on").await;
    for (key, flag, value) in [("I", "settle", "2s"), ("t", "work-takes", "2s"), ("N", "parallel", "1")] {
        dashboard.press(&format!("{key}<Ctrl-u>{value}<Enter>")).await;
        dashboard.wait(&format!("{flag} {value}")).await;
    }
    dashboard.wait("3 nodes in 3 waves").await;
}

async fn type_work(dashboard: &DashboardDriver, command: &str) {
    dashboard.press("x").await;
    dashboard.wait("no shell reads it").await;
    dashboard.type_in(command);
    dashboard.press("<Enter>").await;
}

async fn start(dashboard: &DashboardDriver) {
    dashboard.press("A").await;
    dashboard.wait("Type here to continue").await;
    dashboard.press("yes<Enter>").await;
    dashboard.wait("does not match").await;
    dashboard.press("<Ctrl-u>here<Enter>").await;
    dashboard.wait(" runs after").await;
}

/// Opens the sheet in enforce, and starts a maintenance whose work is this command.
async fn start_work(dashboard: &DashboardDriver, command: &str) {
    dashboard.press(":enforce 12h<Enter>").await;
    open_sheet(dashboard).await;
    type_work(dashboard, command).await;
    start(dashboard).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_dry_run_the_sheet_says_what_is_missing_and_nothing_is_written() {
    let (harness, runs) = (Harness::start(SPEED).await, Runs::new());
    harness
        .with_dashboard(Mode::DryRun, async |dashboard| {
            open_sheet(dashboard).await;
            dashboard.wait("missing to carry it out: the work").await;
            dashboard.press("A").await;
            dashboard.wait("the work: a command, or what shows that others have done it").await;
            type_work(dashboard, &runs.command("0")).await;
            dashboard.wait("missing to carry it out: dry-run").await;
            dashboard.press("A").await;
            dashboard.wait("dry-run: nothing is written").await;
            dashboard.press("W").await;
            dashboard.wait("annotation=KEY").await;
            dashboard.press("reboot<Enter>").await;
            dashboard.wait("neither boot").await;
            dashboard.press("<Esc>").await;
        })
        .await;
    assert_eq!(harness.server.written(), Vec::<String>::new());
    assert!(!runs.path().exists() && !harness.journal().path().exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_maintenance_is_confirmed_paused_and_carried_out_on_its_sheet() {
    let (harness, runs) = (Harness::start(SPEED).await, Runs::new());
    harness
        .with_dashboard(Mode::DryRun, async |dashboard| {
            start_work(dashboard, &runs.command("0.2")).await;
            assert_eq!(harness.operations().len(), 1);
            harness.until(|_| !runs.ended().is_empty()).await;
            dashboard.press("p").await;
            dashboard.wait(" is paused after").await;
            dashboard.wait("maintenance is paused (m shows it)").await;
            harness.assert_paused().await;
            assert!(runs.ended().len() < NODES.len(), "it has not gone on");
            dashboard.press("p").await;
            dashboard.wait(" is done after").await;
            dashboard.wait("3 nodes done in").await;
        })
        .await;
    assert_eq!(runs.ended(), once_each());
    assert_eq!(left_behind(&harness).await, Vec::<String>::new());
    assert_eq!(harness.evicted_twice(0), Vec::<String>::new());
    let operations = harness.operations();
    assert_eq!((operations.len(), operations[0].ended.as_deref()), (1, Some("done")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_ends_while_it_is_paused_is_recorded_at_once() {
    let (harness, runs) = (Harness::start(SPEED).await, Runs::new());
    harness
        .with_dashboard(Mode::DryRun, async |dashboard| {
            start_work(dashboard, &runs.command("3")).await;
            harness.until(|_| runs.path().exists()).await;
            dashboard.press("p").await;
            dashboard.wait(" is paused after").await;
            dashboard.wait("its work is done").await;
            dashboard.wait(" is paused after").await;
            dashboard.press("p").await;
            dashboard.wait(" is done after").await;
        })
        .await;
    assert_eq!(runs.ended(), once_each());
    assert_eq!(left_behind(&harness).await, Vec::<String>::new());
}

/// Waits until the annotation of a node says that its maintenance is paused. Returns all nodes as they are then.
async fn nodes_once_paused(harness: &Harness) -> Vec<Node> {
    let nodes: Objects<Node> = Objects::all(harness.server.api.client());
    let is_paused = |node: &Node| {
        let note = node.annotations().get(MAINTENANCE).and_then(|text| MaintenanceNote::parse(text));
        note.is_some_and(|note| note.paused.is_some())
    };
    let waiting = async {
        loop {
            let nodes = nodes.list(&ListParams::default()).await.expect("nodes").items;
            if nodes.iter().any(is_paused) {
                return nodes;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waiting).await.expect("a node shows the pause")
}

/// Others see on the nodes that it is paused, and not only after the drains of the wave, which wait for the operator.
#[tokio::test(flavor = "multi_thread")]
async fn a_pause_during_a_drain_is_noted_on_a_node_before_the_drain_ends() {
    // The grace periods of the evicted pods are long enough to pause the drain within them.
    let (harness, runs) = (Harness::start(2.0).await, Runs::new());
    harness
        .with_dashboard(Mode::DryRun, async |dashboard| {
            start_work(dashboard, &runs.command("0")).await;
            harness.until(|harness| !harness.server.evictions().is_empty()).await;
            dashboard.press("p").await;
            dashboard.wait(" is paused after").await;
            let nodes = nodes_once_paused(&harness).await;
            assert!(nodes.iter().any(|node| node.annotations().contains_key(DRAIN)), "the drain goes on");
        })
        .await;
}

/// Starts the maintenance of the open sheet, and cancels it after the first node.
async fn start_and_cancel(harness: &Harness, dashboard: &DashboardDriver, runs: &Runs) {
    start_work(dashboard, &runs.command("0.2")).await;
    harness.until(|_| !runs.ended().is_empty()).await;
    dashboard.press("C").await;
    dashboard.wait("Continue it").await;
    dashboard.press("<Tab><Enter>").await;
    dashboard.wait(" was cancelled after").await;
    dashboard.wait("R resumes it, U ends it and uncordons its nodes").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_maintenance_that_was_cancelled_is_resumed_on_its_sheet() {
    let (harness, runs) = (Harness::start(SPEED).await, Runs::new());
    harness
        .with_dashboard(Mode::DryRun, async |dashboard| {
            start_and_cancel(&harness, dashboard, &runs).await;
            dashboard.press("R").await;
            dashboard.wait("first the wave that was interrupted").await;
            dashboard.press("here<Enter>").await;
            dashboard.wait(" is done after").await;
        })
        .await;
    assert_eq!(runs.ended(), once_each());
    assert_eq!(left_behind(&harness).await, Vec::<String>::new());
    let operations = harness.operations();
    assert_eq!((operations.len(), operations[0].ended.as_deref()), (1, Some("done")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_maintenance_that_was_cancelled_is_released_on_its_sheet_after_a_restart() {
    let (harness, runs) = (Harness::start(SPEED).await, Runs::new());
    harness
        .with_dashboard(Mode::DryRun, async |dashboard| start_and_cancel(&harness, dashboard, &runs).await)
        .await;
    harness
        .with_dashboard(Mode::DryRun, async |dashboard| {
            dashboard.ready().await;
            dashboard.press(":enforce 12h<Enter>").await;
            dashboard.press("2m").await;
            dashboard.wait("R resumes it").await;
            dashboard.press("U").await;
            dashboard.wait("Work on machines is not undone").await;
            dashboard.press("here<Enter>").await;
            dashboard.wait("is over: its nodes are released").await;
        })
        .await;
    assert!(runs.ended().len() < NODES.len(), "nothing more was started");
    assert_eq!(left_behind(&harness).await, Vec::<String>::new());
    assert_eq!(harness.operations()[0].ended.as_deref(), Some("cancelled"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_maintenance_that_was_cancelled_on_its_sheet_goes_on_from_the_command_line() {
    let (harness, runs) = (Harness::start(SPEED).await, Runs::new());
    harness
        .with_dashboard(Mode::DryRun, async |dashboard| {
            start_and_cancel(&harness, dashboard, &runs).await;
            dashboard.wait("--resume=").await;
        })
        .await;
    assert!(runs.ended().len() < NODES.len(), "nothing more was started");
    assert!(!left_behind(&harness).await.is_empty(), "its nodes show that it is not over");
    let output = harness.enforce(&["maintenance", "--resume", "-o", "json"]).await;
    assert_eq!(output.code, 0, "{}", output.err);
    assert_eq!(runs.ended(), once_each());
    assert_eq!(left_behind(&harness).await, Vec::<String>::new());
    assert_eq!(harness.evicted_twice(0), Vec::<String>::new());
}
