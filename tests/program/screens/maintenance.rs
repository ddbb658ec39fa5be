//! The maintenance sheet.

use std::sync::Arc;

use kordon::{
    app::{
        maintenance::{MaintenanceEvent, MaintenanceRequest, MaintenanceSheet},
        operations::JobResult,
    },
    ui::snapshot,
};
use kordon_core::{
    cluster::{
        Change, DrainClaim, KnownAutoscalers, LocalVolume, MaintenanceNote, MaintenanceStage, NodeName,
        OperationId,
    },
    maintenance::{MaintenanceEnd, MaintenanceEndKind, MaintenanceNews, MaintenanceOutcome, NodeResult},
    operation::Guards,
};
use kordon_time::Timestamp;

use super::{drawn, expect};
use crate::dashboard_fixture::DashboardFixture;

#[test]
fn the_maintenance_sheet_has_the_waves_of_marked_nodes_and_how_far_a_maintenance_is() {
    let mut fixture = DashboardFixture::well();
    fixture.press("m");
    let text = |fixture: &mut DashboardFixture| snapshot::plain(&drawn(fixture, (120, 40)));
    fixture.press("m");
    fixture.press("2jjjjjjjjjjj jjjjjjjjjj m");
    let waits = "working out the waves of 2 nodes, and N-1 of 30 nodes after each wave";
    assert!(text(&mut fixture).contains(waits), "{}", text(&mut fixture));
    let job = fixture.app.next_maintenance_job(fixture.now).expect("a job");
    fixture.app.on_maintenance(job.work(Guards::default()));
    assert!(fixture.app.next_maintenance_job(fixture.now).is_none(), "the waves are there");
    let operation: OperationId = "maintenance-20261129-0300-x1".parse().expect("an id");
    let stages = [MaintenanceStage::Draining, MaintenanceStage::Awaited, MaintenanceStage::Waiting];
    for (name, stage) in ["pool-a-04", "pool-a-05", "pool-a-06"].into_iter().zip(stages) {
        let note = MaintenanceNote {
            by: "alice@desk".into(),
            operation: operation.clone(),
            stage,
            renewed: fixture.now,
            before: String::new(),
            paused: None,
        };
        fixture.change_node(name, |node| node.maintenance = Some(note.into()));
    }
    expect(&mut fixture, "maintenance", (80, 24));
    expect(&mut fixture, "maintenance", (160, 48));
    fixture.press("<Esc>");
    assert!(fixture.app.screen.overlays.top().is_none());
}

#[test]
fn the_maintenance_sheet_keeps_its_options_until_a_maintenance_starts() {
    let mut fixture = DashboardFixture::well();
    let request = |fixture: &DashboardFixture| {
        fixture.app.screen.overlays.maintenance().map(|sheet| sheet.request.clone()).expect("the sheet")
    };
    fixture.press("2jjjjjjjjjjj mxdate<Enter>FI<Ctrl-u>90s<Enter>:max-per-zone 2<Enter>");
    fixture.press(":gate-timeout 10m<Enter>:allow-worse-loss<Enter>");
    let typed = request(&fixture);
    let flags = " --exec date --max-per-zone 2 --settle 1m30s --force --allow-worse-loss --gate-timeout 10m --enforce";
    assert!(typed.command().ends_with(flags), "{}", typed.command());
    for keys in ["<Esc>m", "mm"] {
        fixture.press(keys);
        assert_eq!(request(&fixture), typed, "{keys}");
    }
    fixture.press("mjjjjjjjjjj m");
    let wider = request(&fixture);
    assert_eq!(wider, MaintenanceRequest { nodes: wider.nodes.clone(), ..typed });
    assert_eq!(wider.nodes.len(), 2);
    let job = fixture.app.next_maintenance_job(fixture.now).expect("a job");
    fixture.app.on_maintenance(job.work(Guards::default()));
    start_maintenance(&mut fixture);
    assert_eq!(request(&fixture), MaintenanceRequest::new(Vec::new()));
    fixture.press("m m");
    let nodes = request(&fixture).nodes;
    assert_eq!(request(&fixture), MaintenanceRequest::new(nodes));
}

#[test]
fn the_maintenance_sheet_says_one_thing_about_a_maintenance_of_this_dashboard() {
    let mut fixture = DashboardFixture::well();
    fixture.press("2jjjjjjjjjjj jjjjjjjjjj m");
    let job = fixture.app.next_maintenance_job(fixture.now).expect("a job");
    fixture.app.on_maintenance(job.work(Guards::default()));
    let mut outcome = start_maintenance(&mut fixture);
    let nodes: Vec<NodeName> = outcome.nodes.keys().cloned().collect();
    let annotate = |fixture: &mut DashboardFixture, renewed: Timestamp| {
        for name in &nodes {
            let note = MaintenanceNote {
                by: "sre@desk".into(),
                operation: maintenance_id(),
                stage: MaintenanceStage::Draining,
                renewed,
                before: String::new(),
                paused: None,
            };
            fixture.change_node(name, |node| node.maintenance = Some(note.into()));
        }
    };
    let began = fixture.now;
    annotate(&mut fixture, began);
    let pods = fixture.world.workload_pods(&nodes[0]).count();
    let claim = DrainClaim { operation: maintenance_id(), pods: Some(pods + 2), ..DrainClaim::default() };
    fixture.change_node(&nodes[0], |node| node.drain_claim = Some(claim.into()));
    let sheet = |fixture: &mut DashboardFixture| snapshot::plain(&drawn(fixture, (160, 48)));
    let running = sheet(&mut fixture);
    assert!(running.contains(" runs after 0s: 0 of 2 nodes done, 2 pods moved"), "{running}");
    assert!(running.contains(" by sre@desk: runs, 2 nodes left"), "{running}");
    let pod = fixture.world.workload_pods(&nodes[0]).next().expect("a pod").key.to_string();
    fixture.terminate(&pod, &[]);
    fixture.press("p");
    let paused = sheet(&mut fixture);
    let progress = " is paused after 0s: 0 of 2 nodes done, 2 pods moved, 1 still terminating";
    assert!(paused.contains(progress), "{paused}");
    assert!(paused.contains("p resume  ") && running.contains("p pause  "), "the key does this: {paused}");
    assert!(paused.contains(" by sre@desk: is paused, 2 nodes left"), "{paused}");

    fixture.run(5);
    outcome.record(&nodes[0], NodeResult::Failed("cancelled".into()), fixture.now);
    let end = MaintenanceEnd {
        operation: maintenance_id(),
        began,
        ended: fixture.now,
        kind: MaintenanceEndKind::Cancelled,
        says: "interrupted; --resume goes on".into(),
        outcome,
        not_started: Vec::new(),
    };
    report(&mut fixture, MaintenanceEvent::Ended(Ok(Box::new(end))));
    let cancelled = sheet(&mut fixture);
    assert!(cancelled.contains("--resume goes on"), "{cancelled}");
    assert!(cancelled.contains(" by sre@desk: was cancelled, 2 nodes left"), "{cancelled}");
    fixture.run(5);
    let renewed = fixture.now;
    annotate(&mut fixture, renewed);
    let resumed = sheet(&mut fixture);
    assert!(resumed.contains("it was resumed elsewhere since then"), "{resumed}");
    assert!(resumed.contains(" by sre@desk: runs, 2 nodes left"), "{resumed}");
    for name in &nodes {
        fixture.change_node(name, |node| node.maintenance = None);
    }
    let over = sheet(&mut fixture);
    assert!(
        over.contains("it was ended elsewhere since then") && !over.contains("--resume goes on"),
        "{over}"
    );
}

fn maintenance_id() -> OperationId {
    "maintenance-20261129-0300-x1".parse().expect("an id")
}

/// Reports that the maintenance of the open sheet has started, with its first wave. Returns its progress.
fn start_maintenance(fixture: &mut DashboardFixture) -> MaintenanceOutcome {
    let plan = fixture.app.screen.overlays.maintenance().and_then(MaintenanceSheet::plan).cloned();
    let plan = plan.expect("the waves");
    let mut outcome = MaintenanceOutcome::planned(&plan);
    outcome.start_wave(&plan.waves[0].nodes, fixture.now);
    report(fixture, MaintenanceEvent::Started(maintenance_id(), Box::new(plan)));
    let progress = MaintenanceNews::Progress(Box::new(outcome.clone()));
    report(fixture, MaintenanceEvent::News(progress));
    outcome
}

fn report(fixture: &mut DashboardFixture, event: MaintenanceEvent) {
    fixture.app.on_job_result(JobResult::Maintenance { number: 1, event }, fixture.now);
}

#[test]
fn the_maintenance_sheet_says_how_many_pods_lose_data() {
    let mut fixture = DashboardFixture::well();
    fixture.change_pod("shop/cart-04-x7f2q", |pod| pod.storage.add(LocalVolume::EmptyDir));
    fixture.press("2jjjjjjjjjjj mE");
    let job = fixture.app.next_maintenance_job(fixture.now).expect("a job");
    fixture.app.on_maintenance(job.work(Guards::default()));
    let sheet = snapshot::plain(&drawn(&mut fixture, (120, 40)));
    assert!(sheet.contains("▲ 1 pod loses data in volumes that are deleted with their pods"), "{sheet}");
    assert!(sheet.contains("in wave 1: ") && sheet.contains(" pool-b-02 \u{2192} "), "{sheet}");
}

/// Whether a surge is possible depends on autoscalers, which are read once the option is on.
#[test]
fn waves_with_surges_wait_for_the_autoscalers_and_follow_them() {
    let mut fixture = DashboardFixture::well();
    fixture.press("2jjjjjjjjjjj jjjjjjjjjj m");
    let job = |fixture: &DashboardFixture| fixture.app.next_maintenance_job(fixture.now);
    let work = |fixture: &mut DashboardFixture| {
        let job = job(fixture).expect("a job");
        fixture.app.on_maintenance(job.work(Guards::default()));
    };
    work(&mut fixture);
    assert!(job(&fixture).is_none() && !fixture.app.plans_surges());
    fixture.press("V");
    assert!(fixture.app.plans_surges(), "the loop reads the autoscalers");
    assert!(job(&fixture).is_none(), "they are not known yet");
    let sheet = snapshot::plain(&drawn(&mut fixture, (120, 40)));
    assert!(sheet.contains("V surge on") && sheet.contains("working out the waves"), "{sheet}");
    let known = |fixture: &mut DashboardFixture, known| {
        let now = fixture.now;
        fixture.app.model.apply(vec![Change::Autoscalers(Arc::new(known))], now);
        fixture.app.refresh(now);
    };
    known(&mut fixture, KnownAutoscalers::Unreadable("no".into()));
    work(&mut fixture);
    assert!(job(&fixture).is_none());
    known(&mut fixture, KnownAutoscalers::Read(Vec::new()));
    let before = snapshot::plain(&drawn(&mut fixture, (120, 40)));
    assert!(before.contains("in 1 wave"), "the earlier waves stay meanwhile: {before}");
    work(&mut fixture);
    assert!(job(&fixture).is_none());
    fixture.press("Y");
    let copied = fixture.app.screen.overlays.maintenance().map(|sheet| sheet.request.command());
    assert!(copied.is_some_and(|command| command.contains(" --surge ")));
}
