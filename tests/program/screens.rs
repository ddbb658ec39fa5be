//! The screens, drawn for states of a small cluster and compared with golden files.
//!
//! `UPDATE=1` rewrites the golden files; read the diff. `GALLERY=FOLDER` also writes every screen as SVG.

use std::{collections::BTreeSet, fs, path::Path, sync::Arc};

use crossterm::event::KeyCode;
use kordon::{
    app::{
        Detail, Glyphs, Mode, Pane, ThemeName, UserAction, commands,
        detail::SubjectReport,
        maintenance::{MaintenanceEvent, MaintenanceRequest, MaintenanceSheet},
        operations::JobResult,
        overlays::Overlay,
        pane::{InputTarget, KeyFocus},
        preferences::{ContextMark, MarkColour},
        preview::Preview,
        tour::TourStep,
        update,
    },
    journal::{JournalLine, JournaledOperation, LineKind, OperationStart, operations},
    k8s::{
        connect::EMBEDDED,
        feed::{FeedEvent, FeedKind, FeedState},
    },
    model::{
        Predictions,
        suggestions::{Means, Numbers, SuggestionKind},
    },
    run::Surface,
    ui::{Theme, snapshot},
};
use kordon_core::{
    cluster::{
        Change, ClusterEvent, Condition, ConditionStatus, CordonNote, DrainClaim, FetchedObject, Key,
        KnownAutoscalers, LocalVolume, MaintenanceNote, MaintenanceStage, NodeName, ObjectEvent,
        ObjectEvents, ObjectRead, OperationId, Phase, PodReady, TaintEffect, WorkloadKind,
    },
    forecast::LaneFold,
    maintenance::{MaintenanceEnd, MaintenanceEndKind, MaintenanceNews, MaintenanceOutcome, NodeResult},
    operation::Guards,
    placement::Snapshot,
    plan::{
        Action, DrainOptions, Permission, PlacingEnvironment, Plan,
        undo::{NodeUndo, UndoStep, WriteUndo},
    },
    pressure::UsageMetric,
};
use kordon_time::{ClusterTime, Span, Timestamp};
use ratatui::{
    Terminal,
    backend::TestBackend,
    buffer::{Buffer, Cell},
    style::Color,
};

use crate::{
    cells::{add_gpus, choose},
    dashboard_fixture::{DashboardFixture, START, set_condition, taint},
    event_list::show_events,
};

const SIZES: [(u16, u16); 4] = [(80, 24), (120, 40), (160, 48), (220, 60)];

#[test]
fn an_incident_reads_well_at_every_size() {
    for (width, height) in SIZES {
        expect(&mut DashboardFixture::incident(), "incident", (width, height));
    }
}

#[test]
fn an_outage_is_seen_while_every_node_is_ready_as_far_as_the_controller_says() {
    let mut fixture = DashboardFixture::well();
    let nodes: Vec<String> = fixture.world.nodes().iter().map(|node| node.name.to_string()).collect();
    for node in &nodes[1..] {
        fixture.silence(node);
    }
    fixture.run(40);
    let screen = snapshot::plain(&drawn(&mut fixture, (120, 40)));
    let strip = screen.lines().nth(2).expect("the strip");
    assert_eq!(strip.matches(['▪', '◌']).collect::<String>(), format!("▪{}", "◌".repeat(29)));
    expect(&mut fixture, "silent", (80, 24));
    expect(&mut fixture, "silent", (160, 48));
}

#[test]
fn the_information_sheet_has_controller_settings_and_watches() {
    let mut fixture = DashboardFixture::incident();
    fixture.press("i");
    expect(&mut fixture, "information", (120, 40));
    expect(&mut fixture, "information", (80, 24));
    fixture.press("i");
    assert!(fixture.app.screen.overlays.top().is_none());
}

#[test]
fn the_timing_sheet_has_this_cluster_beside_the_profiles_of_the_field() {
    let mut fixture = DashboardFixture::well();
    fixture.press("a");
    assert!(fixture.app.next_timing_job().is_some());
    fixture.work_out_timing();
    assert!(fixture.app.next_timing_job().is_none(), "nothing has changed");
    expect(&mut fixture, "timing", (80, 24));
    expect(&mut fixture, "timing", (160, 48));
    fixture.press("a");
    assert!(fixture.app.screen.overlays.top().is_none());
}

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

#[test]
fn pods_that_wait_for_a_node_are_listed_with_what_would_help() {
    let mut fixture = DashboardFixture::incident();
    fixture.add_waiting_pods();
    fixture.press("6");
    expect(&mut fixture, "pending", (80, 24));
    expect(&mut fixture, "pending", (160, 48));
}

#[test]
fn tabs_have_their_names_where_the_line_has_room_and_a_count_is_no_number_of_a_tab() {
    let mut fixture = DashboardFixture::incident();
    fixture.add_waiting_pods();
    let tabs = |fixture: &mut DashboardFixture, size| {
        let screen = snapshot::plain(&drawn(fixture, size));
        screen.lines().find(|line| line.contains("3 Evictions")).expect("the tabs").to_owned()
    };
    fixture.press("3");
    let shown = tabs(&mut fixture, (80, 24));
    assert!(shown.contains(" 6 Pending 3  7  8  9 "), "{shown}");
    fixture.press("6");
    let shown = tabs(&mut fixture, (60, 24));
    assert!(!shown.contains("6 3"), "{shown}");
    fixture.press("3");
    fixture.press("6");
    let shown = tabs(&mut fixture, (120, 40));
    assert!(shown.contains("[6 Pending 3] 7 Departures  8 Budgets  9 "), "{shown}");
}

#[test]
fn the_audit_lists_causes_with_what_would_help() {
    let mut fixture = DashboardFixture::maintenance();
    fixture.press("9");
    fixture.run(1);
    expect(&mut fixture, "audit", (80, 24));
    expect(&mut fixture, "audit", (160, 48));
    fixture.press("z");
    expect(&mut fixture, "audit-whole", (220, 60));
}

#[test]
fn budgets_are_listed_with_the_drains_that_they_hold_up() {
    let mut fixture = DashboardFixture::maintenance();
    fixture.press("8");
    expect(&mut fixture, "budgets", (80, 24));
    expect(&mut fixture, "budgets", (160, 48));
    fixture.press("z");
    expect(&mut fixture, "budgets-whole", (220, 60));
}

#[test]
fn pods_that_left_are_listed_with_who_removed_them_and_counted_by_kind() {
    let mut fixture = DashboardFixture::incident();
    fixture.remove_pods_in_every_way();
    fixture.press("7");
    for size in SIZES {
        expect(&mut fixture, "departures", size);
    }
    fixture.press("<Home>d");
    expect(&mut fixture, "departures-detail", (120, 40));
}

#[test]
fn departures_and_findings_are_sorted_by_their_columns() {
    let mut fixture = DashboardFixture::incident();
    fixture.remove_pods_in_every_way();
    fixture.press("7:sort pod<Enter>");
    fixture.run(1);
    let shown = &fixture.app.model.departures;
    let rows = fixture.app.screen.departures.list.keys().iter();
    let pods: Vec<String> = rows.filter_map(|id| Some(shown.entry(*id)?.pod.to_string())).collect();
    assert!(pods.len() > 2 && pods.is_sorted(), "{pods:?}");

    let mut fixture = DashboardFixture::maintenance();
    fixture.press("9");
    fixture.run(1);
    let findings = |fixture: &DashboardFixture| fixture.app.screen.audit.list.keys().to_vec();
    let by_cause = findings(&fixture);
    assert!(by_cause.len() > 1, "{by_cause:?}");
    fixture.press("S");
    fixture.run(1);
    assert!(findings(&fixture).iter().eq(by_cause.iter().rev()), "{by_cause:?}");
}

#[test]
fn every_outcome_of_an_eviction_is_shown_and_the_budgets_that_it_ignores() {
    let mut fixture = DashboardFixture::maintenance();
    fixture.fill("pool-a-01");
    fixture.silence("pool-a-01");
    fixture.run(35);
    fixture.press("3");
    expect(&mut fixture, "outcomes", (80, 24));
    expect(&mut fixture, "outcomes", (160, 48));
    fixture.press("z");
    expect(&mut fixture, "outcomes-whole", (220, 60));
}

#[test]
fn a_well_cluster_is_calm() {
    expect(&mut DashboardFixture::well(), "well", (120, 40));
}

#[test]
fn wide_shows_the_lesser_columns() {
    let mut fixture = DashboardFixture::incident();
    fixture.press("w");
    expect(&mut fixture, "wide", (220, 60));
}

#[test]
fn taints_are_whole_where_their_column_has_room() {
    let mut fixture = DashboardFixture::incident();
    choose(&mut fixture, Pane::Nodes, &["name", "taints"]);
    let screen = snapshot::plain(&drawn(&mut fixture, (160, 48)));
    assert!(screen.contains("unreachable:NoExecute 55s, NoSchedule"), "{screen}");
}

#[test]
fn taints_are_whole_on_a_large_screen() {
    let mut fixture = DashboardFixture::incident();
    for keys in ["", "w"] {
        fixture.press(keys);
        let screen = snapshot::plain(&drawn(&mut fixture, (220, 60)));
        assert!(screen.contains("unreachable:NoExecute 55s, NoSchedule"), "{keys}: {screen}");
    }
}

#[test]
fn wide_shows_no_fewer_columns_at_any_width() {
    let mut fixture = DashboardFixture::incident();
    fixture.press("2z");
    let mut headings = |width: u16| -> Vec<String> {
        let screen = snapshot::plain(&drawn(&mut fixture, (width, 24)));
        fixture.press("w");
        let is_heading = |line: &&str| line.contains("  node ") && line.contains(" state ");
        let line = screen.lines().find(is_heading).unwrap_or_else(|| panic!("{screen}"));
        let titles = line.trim_matches(|it: char| it == '│' || it.is_whitespace()).split("  ");
        titles.map(str::trim).filter(|title| !title.is_empty()).map(str::to_owned).collect()
    };
    for width in (60..=320).step_by(4) {
        let (narrow, wide) = (headings(width), headings(width));
        assert!(wide.len() >= narrow.len(), "{width}: {narrow:?} {wide:?}");
        let may_go = ["renewals", "reason", "message"];
        let mut stays = narrow.iter().filter(|title| !may_go.contains(&title.as_str()));
        assert!(stays.all(|title| wide.contains(title)), "{width}: {narrow:?} {wide:?}");
    }
    for (width, titles) in [(160, &["taints", "cpu req", "cpu use"][..]), (200, &["mem req"])] {
        let [_, wide] = [width, width].map(&mut headings);
        for title in titles {
            assert!(wide.iter().any(|shown| shown == title), "{width}, {title}: {wide:?}");
        }
    }
}

#[test]
fn wide_shows_what_nodes_use_and_the_gpus_that_they_have() {
    let mut fixture = DashboardFixture::incident();
    let usage = |number: i64| UsageMetric {
        cpu_milli: 7910 * (17 + 23 * number % 80) / 100,
        memory_bytes: (29 << 30) / 100 * (30 + 7 * number % 66),
        measured: None,
    };
    // Only Ready nodes are measured, because the kubelets of nodes that are down no longer answer.
    let nodes = fixture.world.nodes().iter().filter(|node| node.is_ready()).map(|node| node.name.clone());
    let usage = nodes.zip((0..).map(usage)).collect();
    fixture.app.model.measurements.on_usage(Ok(usage), fixture.now);
    add_gpus(&mut fixture, "pool-c-04", "shop/web-11-h4wzd");
    fixture.press("w");
    expect(&mut fixture, "wide-usage", (220, 60));
}

#[test]
fn events_of_the_cluster_take_the_place_of_the_nodes() {
    let mut fixture = DashboardFixture::incident();
    fixture.press("2:events<Enter>");
    show_events(&mut fixture);
    fixture.press("j");
    for size in [(80, 24), (160, 48)] {
        expect(&mut fixture, "events", size);
    }
}

#[test]
fn columns_depend_on_the_size_of_the_screen_and_not_on_what_is_in_them() {
    let headings = |mut fixture: DashboardFixture, size| -> Vec<String> {
        let screen = snapshot::plain(&drawn(&mut fixture, size));
        let is_heading = |line: &&str| line.contains("  zone  ") || line.contains("  node  ");
        screen.lines().filter(is_heading).map(str::to_owned).collect()
    };
    for size in [(80, 24), (120, 40), (160, 48), (220, 60)] {
        let well = headings(DashboardFixture::well(), size);
        assert!(!well.is_empty());
        assert_eq!(headings(DashboardFixture::incident(), size)[..well.len()], well, "{size:?}");
    }
}

#[test]
fn a_table_that_is_cut_says_that_all_the_rest_is_ready() {
    let mut fixture = DashboardFixture::incident();
    let screen = snapshot::plain(&drawn(&mut fixture, (80, 24)));
    let is_row = |line: &&str| {
        line.contains(" pool-") && ["  a  ", "  b  ", "  c  "].iter().any(|zone| line.contains(zone))
    };
    let shown = screen.lines().filter(is_row).count();
    assert!(screen.contains(&format!("… {} more, all Ready", 30 - shown)), "{screen}");
    // Scrolled to its end, the list has no more rows below.
    fixture.press("2<End>");
    let screen = snapshot::plain(&drawn(&mut fixture, (80, 24)));
    assert!(!screen.contains("all Ready"), "{screen}");
    // If the list is sorted by name, the rows that do not fit are not all Ready.
    fixture.press("2<Home>ss");
    assert!(!snapshot::plain(&drawn(&mut fixture, (80, 24))).contains("more, all Ready"));
}

#[test]
fn a_zone_with_nodes_that_are_down_or_silent_does_not_look_calm() {
    let screen = snapshot::plain(&drawn(&mut DashboardFixture::incident(), (160, 48)));
    for (sign, zone, worst) in [("✖", "a", "Evicting"), ("✖", "b", "Evicting"), ("◌", "c", "Silent")] {
        let start = format!("{sign} eu-1/{zone} ");
        let line = screen.lines().find(|line| line.contains(&start));
        let line = line.unwrap_or_else(|| panic!("{start:?} in\n{screen}"));
        assert!(line.contains(&format!("Normal, {worst} ")), "the word has what the sign is of: {line}");
    }
}

#[test]
fn five_thousand_nodes_fit_a_zoomed_zone_map() {
    let mut fixture = DashboardFixture::new();
    for number in 0..5000 {
        fixture.add_node(&format!("n-{number:04}"), ["a", "b", "c"][number % 3]);
    }
    fixture.lists();
    fixture.app.refresh(fixture.now);
    fixture.press("1z");
    let screen = snapshot::plain(&drawn(&mut fixture, (220, 60)));
    let body = screen.lines().skip(3).flat_map(str::chars);
    assert_eq!(body.filter(|letter| *letter == '▪').count(), 5000, "{screen}");
    // On a small screen, a cell stands for several nodes.
    assert!(snapshot::plain(&drawn(&mut fixture, (80, 24))).contains('▪'));
}

#[test]
fn nodes_are_grouped_with_a_line_for_each_group_and_the_selection_stays_with_its_node() {
    let mut fixture = DashboardFixture::incident();
    drawn(&mut fixture, (160, 48));
    fixture.press("2jj");
    let selected = fixture.app.screen.selected_node().cloned().expect("a node");
    fixture.press("G");
    assert_eq!(fixture.app.screen.selected_node(), Some(&selected));
    let screen = snapshot::plain(&drawn(&mut fixture, (160, 48)));
    assert!(screen.contains("▾ ✖ eu-1/a  10 nodes · 3 Evicting · 7 Ready · "), "{screen}");
    expect(&mut fixture, "grouped", (160, 48));
    fixture.press("F");
    assert_eq!(fixture.app.screen.nodes.list.len(), 3, "one line a group");
    assert_eq!(fixture.app.screen.nodes.list.selected().map(ToString::to_string).as_deref(), Some("eu-1/a"));
    fixture.press("<Space>");
    assert_eq!(fixture.app.screen.marked_nodes.len(), 10, "a group is marked as a whole");
    fixture.press("<Esc><Home><Enter>");
    assert_eq!(fixture.app.screen.nodes.list.len(), 13, "one is unfolded");
    fixture.press(":group node.kubernetes.io/instance-type<Enter>");
    assert_eq!(fixture.app.screen.nodes.list.keys()[0].to_string(), "m7i.2xlarge");
    fixture.change_node("pool-b-01", |node| {
        let pool = ("karpenter.sh/nodepool".into(), "blue".into());
        node.labels = node.labels.entries().iter().cloned().chain([pool]).collect();
    });
    fixture.run(0);
    fixture.press(":group pool<Enter>");
    let rows = fixture.app.screen.nodes.list.keys().iter();
    let mut groups: Vec<String> = rows.filter(|row| row.node().is_none()).map(ToString::to_string).collect();
    groups.sort();
    assert_eq!(groups, ["blue", "no pool"]);
    fixture.press(":group<Enter>");
    assert_eq!(fixture.app.screen.nodes.list.len(), 30);
}

#[test]
fn the_pods_of_a_node_take_the_place_of_the_nodes() {
    let mut fixture = DashboardFixture::incident();
    fixture.press("2<Enter>");
    assert_eq!(fixture.app.screen.focus, Pane::Pods);
    expect(&mut fixture, "pods", (120, 40));
    fixture.press("<Esc>");
    assert_eq!((fixture.app.screen.focus, fixture.app.screen.pods_of.clone()), (Pane::Nodes, None));
}

#[test]
fn the_detail_tells_the_story_of_a_node_and_of_a_pod_and_goes_back_where_it_came_from() {
    let mut fixture = DashboardFixture::incident();
    fixture.press("2d");
    assert_eq!(fixture.app.screen.focus, Pane::Detail);
    fixture.work_out_detail();
    expect(&mut fixture, "detail-node", (120, 40));
    fixture.press("<Esc><Enter>d");
    fixture.work_out_detail();
    expect(&mut fixture, "detail-pod", (120, 40));
    fixture.press("<Esc>");
    assert_eq!(fixture.app.screen.focus, Pane::Pods);
    fixture.press("3d<Esc>");
    assert_eq!(
        (fixture.app.screen.focus, fixture.app.screen.overlays.detail().is_none()),
        (Pane::Evictions, true)
    );
}

#[test]
fn the_detail_on_a_small_screen_has_most_of_the_width_for_its_text() {
    let mut fixture = DashboardFixture::incident();
    fixture.press("2d");
    let screen = snapshot::plain(&drawn(&mut fixture, (80, 24)));
    let line = screen.lines().find(|line| line.contains("last heartbeat")).expect("a step of the chain");
    let label = line.split("last heartbeat").next().expect("the text before it");
    assert!(label.chars().count() <= 32 && label.contains(" ago "), "{screen}");
}

#[test]
fn enter_on_an_action_of_the_detail_opens_its_plan_and_on_what_nobody_can_apply_nothing() {
    let mut fixture = DashboardFixture::incident();
    fixture.press("2/pool-a-03<Enter>d");
    let unplanned = snapshot::plain(&drawn(&mut fixture, (160, 48)));
    assert!(unplanned.contains("working out what each would do"), "{unplanned}");
    fixture.work_out_detail();
    let at = |secs| Some(ClusterTime::new(fixture.now - Span::from_secs(secs)));
    let not_ready = ClusterEvent {
        reason: "NodeNotReady".into(),
        message: "Node pool-a-03 status is now: NodeNotReady".into(),
        source: "node-controller".into(),
        count: 1,
        first: at(55),
        last: at(55),
        ..ClusterEvent::default()
    };
    let rebooted = ClusterEvent {
        is_warning: true,
        reason: "ImageGCFailed".into(),
        message: "failed to garbage collect required amount of images".into(),
        source: "kubelet".into(),
        count: 4,
        first: at(1500),
        last: at(160),
    };
    let subject = fixture.app.shown_object().expect("the node").subject;
    let events = ObjectEvents { events: Some(vec![rebooted, not_ready]), failure: None };
    fixture.app.on_subject_report(&subject, SubjectReport::Events(events), fixture.now);
    expect(&mut fixture, "detail-unknown", (160, 48));
    let mut opened = Vec::new();
    for _ in 0..40 {
        let means = fixture.app.screen.overlays.detail().and_then(Detail::selected_means).cloned();
        let is_offered = snapshot::plain(&drawn(&mut fixture, (160, 48))).contains("Enter plan");
        assert_eq!(is_offered, matches!(means, Some(Means::Plan(_) | Means::WhatIf(_))), "{means:?}");
        fixture.press("<Enter>");
        let plan = fixture.app.screen.overlays.plan().map(|plan| plan.request.clone());
        assert_eq!(plan.is_some(), is_offered, "{means:?}");
        if let Some(request) = plan {
            opened.push(format!("{} {}", request.kind.word(), request.edits).trim_end().to_owned());
            fixture.plan();
            let fault = fixture.app.screen.overlays.plan().and_then(Preview::fault).map(str::to_owned);
            assert_eq!(fault, None);
            fixture.press("<Esc>");
        }
        fixture.press("j");
    }
    // The pod that terminates on the dead node can also be deleted by force.
    assert_eq!(
        opened,
        ["taint node.kubernetes.io/out-of-service=nodeshutdown:NoExecute", "delete", "delete node"]
    );
}

#[test]
fn the_whole_object_is_shown_with_whole_keys_and_what_is_not_known_of_it_is_said() {
    let mut fixture = DashboardFixture::incident();
    fixture.press("2/pool-a-03<Enter>y");
    let text = |fixture: &mut DashboardFixture| snapshot::plain(&drawn(fixture, (120, 40)));
    assert!(text(&mut fixture).contains("loading"));
    let subject = fixture.app.shown_object().expect("the node").subject;
    let forbidden = "nodes \"pool-a-03\" is forbidden: User \"sre\" cannot get resource";
    let report = ObjectRead { object: None, failure: Some(forbidden.into()) };
    fixture.app.on_subject_report(&subject, SubjectReport::Object(report), fixture.now);
    assert!(text(&mut fixture).contains("unknown: nodes \"pool-a-03\" is forbidden"));
    let yaml = "apiVersion: v1\nkind: Node\nmetadata:\n  annotations:\n    node.alpha.kubernetes.io/ttl: \"0\"\n    \
                example.com/hostile: \"\u{1b}[2J\u{202e}\"\n  name: pool-a-03\nspec: {}\nstatus:\n  conditions:\n  - type: \
                Ready\n    status: Unknown";
    let annotations = [("node.alpha.kubernetes.io/ttl", "0"), ("example.com/hostile", "\u{1b}[2J\u{202e}")];
    let object = FetchedObject {
        annotations: annotations.map(|(key, value)| (key.into(), value.into())).into(),
        yaml: yaml.lines().map(Into::into).collect(),
    };
    let report = ObjectRead { object: Some(object), failure: None };
    fixture.app.on_subject_report(&subject, SubjectReport::Object(report), fixture.now);
    expect(&mut fixture, "detail-yaml", (120, 40));
    let failed = ObjectRead { object: None, failure: Some("connection reset".into()) };
    fixture.app.on_subject_report(&subject, SubjectReport::Object(failed), fixture.now);
    let stale = text(&mut fixture);
    assert!(stale.contains("as it was before: connection reset") && stale.contains("kind: Node"), "{stale}");
    fixture.press("/ttl<Enter>");
    let searched = text(&mut fixture);
    assert!(searched.contains("kind: Node") && searched.contains("›      node.alpha"), "{searched}");
    // The first Esc clears the search, the second shows the summary, and the third closes the summary.
    fixture.press("<Esc><Esc>");
    let summary = text(&mut fixture);
    assert!(summary.contains("what you can do") && !summary.contains("kind: Node"), "{summary}");
    fixture.press("<End>");
    let end = text(&mut fixture);
    assert!(end.contains("node.kubernetes.io/instance-type=m7i.2xlarge"), "{end}");
    assert!(end.contains("example.com/hostile=␛[2J�") && !end.contains('\u{1b}'), "{end}");
    fixture.press("<Esc>");
    assert_eq!(fixture.app.screen.focus, Pane::Nodes);
}

#[test]
fn the_timeline_tells_what_this_session_saw_of_the_node_beside_its_events() {
    let mut fixture = DashboardFixture::incident();
    fixture.press("2/pool-a-03<Enter>d/evicted<Enter>");
    let screen = snapshot::plain(&drawn(&mut fixture, (160, 48)));
    let lines: Vec<&str> = screen.lines().collect();
    let title = lines.iter().position(|line| line.contains(" timeline ")).expect("a timeline");
    assert!(lines[title].contains("this session and Events, newest first · listing Events"), "{screen}");
    assert!(lines[title + 1].contains("evicted pod edge/gateway"), "{screen}");
    assert!(!screen.contains(" annotations"), "a heading without a row in\n{screen}");
}

#[test]
fn waiting_for_a_drain_says_at_once_that_a_budget_never_lets_it_end() {
    let mut fixture = at_work();
    let claim = DrainClaim {
        by: "ops@example.com".into(),
        operation: "drain-20260102-030000-x1".parse().expect("an id"),
        renewed: fixture.now,
        ..DrainClaim::default()
    };
    fixture.change_node("pool-a-01", |node| {
        node.unschedulable = true;
        node.drain_claim = Some(Arc::new(claim));
    });
    fixture.run(1);
    let model = &fixture.app.model;
    let node = model.cluster.node(&"pool-a-01".into()).expect("there");
    let job = model.node_suggestions(node, fixture.now).expect("its state is known");
    let suggestions = job.work(Numbers::OfPlans, &Ok(Guards::default()));
    let wait = suggestions.iter().find(|suggestion| suggestion.kind == SuggestionKind::Wait).expect("a wait");
    assert!(
        wait.text.ends_with(
            "; blocked by PodDisruptionBudget data/postgres: scale up its workload, or relax the budget"
        ),
        "{}",
        wait.text
    );
}

#[test]
fn the_selected_action_stays_selected_while_rows_above_it_come_and_go() {
    let mut fixture = DashboardFixture::incident();
    fixture.press("2/pool-c-09<Enter>d");
    fixture.work_out_detail();
    let selected = |fixture: &DashboardFixture| {
        fixture.app.screen.overlays.detail().and_then(Detail::selected_means).cloned()
    };
    while !matches!(selected(&fixture), Some(Means::Plan(Action::Cordon { .. }))) {
        fixture.press("j");
    }
    // The node gets a condition and a taint, so the detail gets more rows.
    let rows = |fixture: &DashboardFixture| fixture.app.screen.overlays.detail().map(|it| it.rows.len());
    let (before, chosen) = (rows(&fixture), selected(&fixture));
    let renamed = fixture.now;
    fixture
        .change_node("pool-c-09", |node| set_condition(node, "DiskPressure", ConditionStatus::True, renamed));
    fixture.change_node("pool-c-09", |node| {
        node.taints = [taint("example.com/broken", TaintEffect::NoSchedule, None)].into();
    });
    fixture.run(1);
    assert_ne!(rows(&fixture), before);
    assert_eq!(selected(&fixture), chosen);
    // Once the cordon is no longer suggested, no other action takes its place under the cursor.
    fixture.run(30);
    assert!(!matches!(selected(&fixture), Some(Means::Plan(_))), "{:?}", selected(&fixture));
}

#[test]
fn the_forecast_stands_on_a_time_axis() {
    let mut fixture = DashboardFixture::incident();
    fixture.press("4");
    expect(&mut fixture, "forecast", (120, 40));
    fixture.press("jz");
    expect(&mut fixture, "forecast", (80, 24));
    fixture.press("d");
    assert_eq!(fixture.app.screen.focus, Pane::Detail);
    let mut fixture = DashboardFixture::well();
    fixture.press("4");
    expect(&mut fixture, "forecast-well", (120, 40));
}

#[test]
fn the_journal_tells_what_happened_and_leads_to_what_it_is_about() {
    let mut fixture = DashboardFixture::incident();
    fixture.press("5");
    expect(&mut fixture, "journal", (80, 24));
    expect(&mut fixture, "journal", (120, 40));
    fixture.press("z");
    expect(&mut fixture, "journal-zoom", (120, 40));
    fixture.press("/tainted pool-a-05<Enter><Enter>");
    let subject = fixture.app.screen.overlays.detail().map(|detail| detail.subject.clone());
    assert_eq!(subject, Some(kordon::app::DetailSubject::Node("pool-a-05".into())));
    fixture.press("<Esc>");
    assert_eq!(fixture.app.screen.focus, Pane::Journal);
    fixture.remove_node("pool-a-05");
    fixture.run(1);
    fixture.press("<Enter>");
    assert_eq!(fixture.app.screen.message.as_deref(), Some("node pool-a-05 is gone"));
}

/// The cluster of [`DashboardFixture::maintenance`], with the focus on the node to be drained.
pub fn at_work() -> DashboardFixture {
    let mut fixture = DashboardFixture::maintenance();
    fixture.press("2/pool-a-01<Enter>");
    fixture
}

#[test]
fn a_drain_is_refused_until_its_options_are_turned_and_then_tells_each_pods_fate() {
    let mut fixture = at_work();
    fixture.press("r");
    assert_eq!(fixture.app.screen.focus, Pane::Plan);
    expect(&mut fixture, "plan-drain-refused", (120, 40));
    fixture.press("DEF");
    expect(&mut fixture, "plan-drain", (120, 40));
    expect_picture("plan", &drawn(&mut fixture, (120, 40)));
    expect(&mut fixture, "plan-drain", (80, 24));
    fixture.press("BP");
    expect(&mut fixture, "plan-drain-deletes", (120, 40));
    fixture.press("BPPPz<Down><Down><Down>");
    expect(&mut fixture, "plan-drain-whole", (220, 60));
    fixture.press("<Esc>");
    assert_eq!((fixture.app.screen.focus, fixture.app.screen.overlays.plan().is_none()), (Pane::Nodes, true));
    fixture.press("<Esc>z<Down>r");
    let drain = &fixture.app.screen.overlays.plan().expect("another plan").request.drain;
    assert!(!drain.force && drain.ignore_daemonsets, "every plan begins with the defaults");
}

#[test]
fn a_small_screen_shows_all_that_a_drain_loses() {
    let mut fixture = at_work();
    fixture.press("r");
    let screen = snapshot::plain(&drawn(&mut fixture, (80, 24)));
    assert!(screen.contains(" with the options marked !: 1 lost · 1 lose data"), "{screen}");
    for (pod, loss) in [("shop/debug-0", " lost · "), ("shop/cart-00", " loses data · ")] {
        let is_shown = |line: &str| line.contains(pod) && line.contains(loss);
        assert!(screen.lines().any(is_shown), "{pod}{loss}\n{screen}");
    }
}

#[test]
fn a_plan_is_filtered_and_the_detail_of_a_pod_lies_over_it() {
    let mut fixture = at_work();
    fixture.press("r/verdict:refused<Enter><Down>");
    let list = &fixture.app.screen.overlays.plan().expect("a plan").list;
    assert_eq!(list.len(), 4, "a title and three pods");
    fixture.press("d");
    assert_eq!(fixture.app.screen.focus, Pane::Detail);
    fixture.press("<Esc>");
    assert_eq!(fixture.app.screen.focus, Pane::Plan);
}

#[test]
fn marked_rows_that_the_filter_hides_are_named_in_the_list_and_in_the_plan() {
    let mut fixture = DashboardFixture::incident();
    let mut said = |keys: &str| {
        fixture.press(keys);
        snapshot::plain(&drawn(&mut fixture, (160, 48)))
    };
    let screen = said("2/pool-a-01<Enter><Space>/<Ctrl-u>pool-b<Enter>");
    assert!(screen.contains("✓ 1 marked, not shown"), "{screen}");
    let screen = said("c");
    assert!(screen.contains("cordon pool-a-01 · 1 not shown in the list"), "{screen}");
    let screen = said("<Esc><Space>");
    assert!(screen.contains("✓ 2 marked, 1 not shown"), "{screen}");
    let screen = said("<Esc>");
    assert!(screen.contains("✓ 2 marked") && !screen.contains("not shown"), "{screen}");
}

#[test]
fn marked_rows_are_planned_over_together() {
    let mut fixture = DashboardFixture::maintenance();
    drawn(&mut fixture, (120, 40));
    fixture.press("2<Space><Space><Down><Space>");
    expect(&mut fixture, "marked", (120, 40));
    fixture.press("rDEF");
    expect(&mut fixture, "plan-marked", (120, 40));
    fixture.press("<Esc>");
    assert_eq!(fixture.app.screen.marked_nodes.len(), 3, "the plan was only looked at");
    fixture.press("<Esc>");
    assert!(fixture.app.screen.marked_nodes.is_empty());
    fixture.press("/zone:b<Enter>M");
    assert_eq!(fixture.app.screen.marked_nodes.len(), 10);
    fixture.press("M");
    assert!(fixture.app.screen.marked_nodes.is_empty());
}

#[test]
fn keys_and_esc_go_to_the_topmost_overlay_and_esc_goes_back_one_by_one() {
    let mut fixture = at_work();
    let at = |fixture: &DashboardFixture| fixture.app.screen.key_focus();
    fixture.press("d");
    assert_eq!(at(&fixture), KeyFocus::Pane(Pane::Detail));
    fixture.press("t");
    assert_eq!(at(&fixture), KeyFocus::Input(InputTarget::Edits), "a plan over the detail");
    fixture.press("dedicated:NoExecute<Enter>/postgres<Enter>d");
    assert_eq!(at(&fixture), KeyFocus::Pane(Pane::Detail), "the detail of a pod of the plan");
    fixture.press("?");
    assert!(matches!(fixture.app.screen.overlays.top(), Some(Overlay::Help(_))));
    fixture.press(":");
    assert_eq!(at(&fixture), KeyFocus::Input(InputTarget::Command));
    assert!(
        !matches!(fixture.app.screen.overlays.top(), Some(Overlay::Help(_))),
        "what is opened closes the help"
    );
    let focuses = [
        KeyFocus::Pane(Pane::Detail),
        KeyFocus::Pane(Pane::Plan),
        // The first Esc clears the filter of the plan.
        KeyFocus::Pane(Pane::Plan),
        KeyFocus::Pane(Pane::Detail),
        KeyFocus::Pane(Pane::Nodes),
    ];
    for focus in focuses {
        fixture.press("<Esc>");
        assert_eq!(at(&fixture), focus);
    }
    assert!(fixture.app.screen.overlays.top().is_none());
}

#[test]
fn a_view_without_the_focus_leaves_the_keys_to_the_pane_that_has_it() {
    let mut fixture = at_work();
    fixture.press("t");
    fixture.press("dedicated:NoExecute<Enter>3");
    assert_eq!(fixture.app.screen.key_focus(), KeyFocus::Pane(Pane::Evictions));
    fixture.press("<Esc>");
    assert!(fixture.app.screen.overlays.plan().is_some(), "Esc is of the evictions");
    fixture.press("2<Enter>");
    assert_eq!(fixture.app.screen.key_focus(), KeyFocus::Input(InputTarget::Edits));
}

#[test]
fn esc_closes_a_detail_that_is_open_without_the_focus() {
    let mut fixture = at_work();
    fixture.press("d5<Esc>");
    assert!(fixture.app.screen.overlays.detail().is_none());
    assert_eq!(fixture.app.screen.key_focus(), KeyFocus::Pane(Pane::Journal), "the focus stays");
}

#[test]
fn taints_are_typed_with_proposals_and_their_victims_follow() {
    let mut fixture = at_work();
    fixture.press("t");
    expect(&mut fixture, "plan-taint-empty", (120, 40));
    fixture.press("dedi<Tab>=x y:NoSch");
    expect(&mut fixture, "plan-taint-fault", (120, 40));
    fixture.press("<Ctrl-u>dedicated=gpu:NoE<Tab>");
    expect(&mut fixture, "plan-taint", (120, 40));
    fixture.press("<Enter>");
    assert_eq!(fixture.app.screen.key_focus(), KeyFocus::Pane(Pane::Plan));
    fixture.press("O<Enter><Esc>");
    assert_eq!(fixture.app.screen.focus, Pane::Nodes);
}

#[test]
fn labels_are_typed_and_shown_as_changes() {
    let mut fixture = at_work();
    fixture.press("ltopology.kubernetes.io/zone=b pool=blue<Enter>");
    expect(&mut fixture, "plan-label-refused", (100, 30));
    fixture.press("O");
    expect(&mut fixture, "plan-label", (100, 30));
}

#[test]
fn annotations_are_typed_and_shown_as_changes() {
    let mut fixture = at_work();
    fixture.press("@kordon.dev/drain-<Enter>");
    expect(&mut fixture, "plan-annotate-guarded", (100, 30));
    fixture.press("<Ctrl-u>example.com/note='disk 3 is slow' node.alpha.kubernetes.io/ttl=0<Enter>");
    expect(&mut fixture, "plan-annotate", (100, 30));
}

#[test]
fn options_of_a_drain_are_typed_completed_and_shown() {
    let mut fixture = at_work();
    fixture.press("rLapp");
    expect(&mut fixture, "plan-option-typed", (120, 40));
    fixture.press("=web=<Enter>");
    expect(&mut fixture, "plan-option-wrong", (120, 40));
    fixture.press("<Backspace><Enter>I90s<Enter>W30<Enter>");
    expect(&mut fixture, "plan-options", (120, 40));
    let options = |fixture: &DashboardFixture| {
        let Action::Drain { options, .. } = current_plan(fixture).action.clone() else { panic!("a drain") };
        let DrainOptions { pod_selector, timeout, skip_wait_for_delete, grace, parallel, .. } = options;
        (pod_selector.map(|selector| selector.to_string()), timeout, skip_wait_for_delete, grace, parallel)
    };
    let (selector, timeout, skip) = (Some("app=web".to_owned()), Span::from_secs(90), Span::from_secs(30));
    assert_eq!(options(&fixture), (selector.clone(), Some(timeout), Some(skip), None, 0));
    let command = current_plan(&fixture).command.clone().unwrap_or_default();
    for flag in ["--pod-selector=app=web", "--timeout=90s", "--skip-wait-for-delete-timeout=30"] {
        assert!(command.contains(flag), "{command}");
    }
    // Esc closes the input line without changing an option, and the plan stays open.
    fixture.press("I<Ctrl-u>5s<Esc>");
    assert_eq!(options(&fixture), (selector, Some(timeout), Some(skip), None, 0));
    // Any value can be typed after a command's name. An empty text removes the value.
    fixture
        .press(":grace-period 45<Enter>:parallel 3<Enter>I<Ctrl-u><Enter>W<Ctrl-u><Enter>L<Ctrl-u><Enter>");
    assert_eq!(options(&fixture), (None, None, None, Some(Span::from_secs(45)), 3));
    fixture.press(":timeout soon<Enter>");
    expect(&mut fixture, "plan-option-named-wrong", (120, 40));
}

#[test]
fn the_diff_of_a_plan_takes_the_place_of_its_rows() {
    let frame_of = |fixture: &mut DashboardFixture| snapshot::plain(&drawn(fixture, (120, 40)));
    let mut fixture = at_work();
    fixture.press("rDEFy");
    expect(&mut fixture, "plan-diff-reading", (120, 40));
    fixture.serve();
    expect(&mut fixture, "plan-diff", (120, 40));
    fixture.press("/unschedulable<Enter>");
    let frame = frame_of(&mut fixture);
    assert!(frame.contains("+  unschedulable: true") && !frame.contains("evict "), "{frame}");
    // Esc clears the filter, then closes the diff, then the plan.
    fixture.press("<Esc>");
    assert!(frame_of(&mut fixture).contains("evict "));
    fixture.press("<Esc>");
    let is_open =
        |fixture: &DashboardFixture| fixture.app.screen.overlays.plan().map(|preview| preview.diff.is_some());
    assert_eq!(is_open(&fixture), Some(false));
    fixture.press("<Esc>");
    assert_eq!(is_open(&fixture), None);

    // The diff names a node that cannot be read, and says if a plan changes nothing.
    fixture.press("cy");
    fixture.unreadable = Some("nodes is forbidden".into());
    fixture.serve();
    expect(&mut fixture, "plan-diff-unknown", (120, 40));
    fixture.press("<Esc><Esc>uy");
    fixture.serve();
    assert!(frame_of(&mut fixture).contains("nothing is written"));
}

#[test]
fn pods_are_evicted_or_deleted_from_their_list_as_plans() {
    let mut fixture = at_work();
    fixture.press("<Enter>/postgres<Enter>e");
    expect(&mut fixture, "plan-evict", (120, 40));
    fixture.press("<Esc><Del>");
    expect(&mut fixture, "plan-delete", (120, 40));
}

#[test]
fn what_if_shows_what_the_controller_would_do_about_a_node_and_a_zone() {
    let mut fixture = at_work();
    fixture.press("x");
    expect(&mut fixture, "plan-failure", (120, 40));
    fixture.press("<End>");
    expect(&mut fixture, "plan-failure-places", (120, 40));
    fixture.press("g");
    fixture.press("<Esc>1x");
    expect(&mut fixture, "plan-zone-failure", (120, 40));
}

#[test]
fn a_plan_follows_the_cluster_while_it_is_open() {
    let mut fixture = at_work();
    fixture.press("rDEF");
    let blocked = |fixture: &DashboardFixture| current_plan(fixture).totals.blocked;
    assert_eq!(blocked(&fixture), 1);
    fixture.run(5);
    let before = fixture.app.next_plan(fixture.now);
    assert!(before.is_none(), "heartbeats are nothing to a drain");
    fixture.change_pod("data/postgres-0", |pod| pod.labels = Default::default());
    fixture.run(1);
    assert_eq!(blocked(&fixture), 0);
}

fn current_plan(fixture: &DashboardFixture) -> &Plan {
    fixture.app.screen.overlays.plan().and_then(Preview::plan).expect("a plan")
}

#[test]
fn a_plan_over_a_snapshot_that_has_followed_the_cluster_is_the_one_over_a_new_snapshot() {
    let mut fixture = at_work();
    fixture.press("rDEF");
    for round in 0..4 {
        match round {
            0 => fixture.change_node("pool-b-03", |node| node.unschedulable = true),
            1 => fixture.add_pod("shop/late-0", "pool-c-02", WorkloadKind::ReplicaSet, Vec::new(), 300, 256),
            2 => fixture.change_pod("shop/late-0", |pod| pod.phase = Phase::Succeeded),
            _ => fixture.silence("pool-a-04"),
        }
        fixture.run(15);
        fixture.press("EE");
        let plan = current_plan(&fixture);
        let (cluster, version) = (&fixture.app.model.cluster, fixture.app.model.settings.version);
        let placing = PlacingEnvironment::new(cluster, Snapshot::new(cluster, version), plan.made);
        let made_again =
            Plan::new(plan.action.clone(), cluster, &placing, version, plan.made).expect("nodes are there");
        assert!(*plan == made_again, "after round {round}");
    }
}

#[test]
fn no_key_sequence_panics_and_the_focus_is_always_on_a_pane() {
    use crossterm::event::KeyEvent;
    let mut keys: Vec<KeyEvent> = commands::COMMANDS
        .iter()
        .flat_map(|command| command.keys)
        .map(|chord| KeyEvent::from(*chord))
        .collect();
    keys.extend("ab:=-/ßNoExecute".chars().map(|letter| KeyEvent::from(KeyCode::Char(letter))));
    for seed in 0..8 {
        let mut chance = fastrand::Rng::with_seed(seed);
        let mut fixture =
            if seed % 2 == 0 { DashboardFixture::maintenance() } else { DashboardFixture::incident() };
        for step in 0..600 {
            let key = keys[chance.usize(..keys.len())];
            fixture.app.on_key(key, fixture.now, fixture.now);
            // Some plans are computed before the next key, others later, at random.
            if chance.u8(..3) > 0 {
                fixture.plan();
            }
            let screen = &fixture.app.screen;
            assert!(screen.panes().contains(&screen.focus), "{:?} at {step} of seed {seed}", screen.focus);
            if step % 7 == 0 {
                drawn(&mut fixture, [(120, 40), (80, 24), (61, 15)][step % 3]);
            }
            if step % 150 == 149 {
                fixture.run(1);
            }
        }
    }
}

#[test]
fn an_eviction_is_explained_where_the_focus_is() {
    let mut fixture = DashboardFixture::incident();
    fixture.press("3<Down>z");
    expect(&mut fixture, "evictions", (120, 40));
}

#[test]
fn a_filter_is_typed_in_the_footer_and_named_in_the_title() {
    let mut fixture = DashboardFixture::incident();
    fixture.press("/zone:a state:evict");
    expect(&mut fixture, "filter-typed", (100, 30));
    fixture.press("<Enter>");
    expect(&mut fixture, "filtered", (100, 30));
}

#[test]
fn help_is_the_command_table_with_what_applies_here_first() {
    let mut fixture = DashboardFixture::well();
    fixture.press("?");
    expect(&mut fixture, "help", (120, 48));
    fixture.press("/drain pods");
    let found = snapshot::plain(&drawn(&mut fixture, (120, 48)));
    assert!(
        found.contains("Drain: include pods with emptyDir volumes") && !found.contains("Quit."),
        "{found}"
    );
    fixture.press("<Enter>q");
    assert!(snapshot::plain(&drawn(&mut fixture, (120, 48))).contains("/drain pods"), "q is a command again");
    fixture.press("<Esc>");
    let all = snapshot::plain(&drawn(&mut fixture, (120, 48)));
    assert!(all.contains(" Keys ") && !all.contains("/drain pods"), "{all}");
    fixture.press("<Esc>");
    assert!(!snapshot::plain(&drawn(&mut fixture, (120, 48))).contains(" Keys "));
}

#[test]
fn the_help_and_the_footer_show_beforehand_what_one_may_not_do() {
    let mut fixture = DashboardFixture::well();
    let patch = Permission::on_node("patch", &"".into());
    let key = |fixture: &mut DashboardFixture| {
        let buffer = drawn(fixture, (120, 48));
        let at = |text: &str| {
            let last = buffer.area.bottom() - 1;
            let line: Vec<&str> = (0..buffer.area.width).map(|x| buffer[(x, last)].symbol()).collect();
            let place = line.concat().find(text).expect("the hint");
            buffer[(u16::try_from(place).expect("on screen"), last)].style()
        };
        (at("c cordon"), at("x what-if"))
    };
    fixture.press("2");
    let before = key(&mut fixture);
    assert_eq!(before.0, before.1, "nothing was asked");
    fixture.checks.missing = vec![patch];
    fixture.app.rights.ask();
    fixture.serve();
    let after = key(&mut fixture);
    assert_ne!(after.0, before.0, "the key of a cordon is dimmed");
    assert_eq!(after.1, before.1);
    fixture.press("?");
    expect(&mut fixture, "help-without-rights", (120, 40));
    fixture.press("/cordon<Enter>");
    expect(&mut fixture, "help-without-rights", (80, 24));
    fixture.press("<Esc><Esc>:cordon");
    expect(&mut fixture, "palette-without-rights", (80, 24));
    fixture.press("<Enter>");
    expect(&mut fixture, "plan-without-rights", (80, 24));
}

#[test]
fn the_tour_explains_what_is_on_the_screen_step_by_step() {
    for (width, height) in [(80, 24), (120, 40)] {
        let mut fixture = DashboardFixture::incident();
        fixture.press(":tour<Enter>");
        for step in TourStep::ALL {
            expect(&mut fixture, &format!("tour-{}", step.number()), (width, height));
            fixture.press("n");
        }
        assert_eq!(fixture.app.screen.overlays.tour(), None, "it ends after the last step");
    }
}

#[test]
fn the_tour_goes_back_ends_at_once_and_gives_way_to_a_question() {
    let mut fixture = DashboardFixture::incident();
    let step = |fixture: &DashboardFixture| fixture.app.screen.overlays.tour();
    fixture.app.screen.start_tour();
    fixture.press("p");
    assert_eq!(step(&fixture), Some(TourStep::Strip), "there is none before the first");
    fixture.press("<Enter>n");
    assert_eq!(step(&fixture), Some(TourStep::Why));
    fixture.press("<Backspace>");
    assert_eq!(step(&fixture), Some(TourStep::Verdict));
    fixture.press("r");
    assert_eq!(step(&fixture), Some(TourStep::Verdict), "other keys do nothing meanwhile");
    assert!(fixture.app.screen.overlays.plan().is_none());
    assert!(snapshot::plain(&drawn(&mut fixture, (80, 24))).contains("Esc ends the tour"));
    fixture.press("<Esc>");
    assert_eq!(step(&fixture), None);

    let mut fixture = about_to_drain();
    fixture.app.screen.start_tour();
    fixture.app.screen.overlays.plan().expect("the tour lies over the plan");
    update(&mut fixture.app, UserAction::Apply, START);
    fixture.serve();
    assert_eq!(step(&fixture), None, "a question is never below the tour");
    assert!(fixture.app.screen.overlays.question().is_some());
}

#[test]
fn before_anything_is_known_the_screen_says_what_it_waits_for() {
    expect(&mut DashboardFixture::new(), "connecting", (100, 30));
}

#[test]
fn loading_counts_what_has_come() {
    let mut fixture = DashboardFixture::well();
    fixture.health(FeedKind::Pods, FeedState::Listing { received: 61_500, expected: Some(150_000) });
    expect(&mut fixture, "loading", (120, 40));
    let mut fixture = DashboardFixture::new();
    fixture.health(FeedKind::Nodes, FeedState::Listing { received: 1200, expected: Some(5000) });
    fixture.health(FeedKind::Leases, FeedState::Connecting);
    expect(&mut fixture, "loading-nodes", (100, 30));
}

#[test]
fn an_empty_cluster_says_so() {
    let mut fixture = DashboardFixture::new();
    fixture.lists();
    expect(&mut fixture, "empty", (100, 30));
}

#[test]
fn a_lost_link_is_staleness_with_an_age_and_nothing_is_judged() {
    let mut fixture = DashboardFixture::incident();
    let since = fixture.now;
    for kind in FeedKind::ALL {
        fixture.health(kind, FeedState::Broken { since, error: "connection reset by peer".into() });
    }
    fixture.run_blind(47);
    expect(&mut fixture, "stale", (120, 40));
}

#[test]
fn a_controller_that_stopped_is_named_as_the_reason_why_nothing_happens() {
    let mut fixture = DashboardFixture::incident();
    fixture.led = false;
    fixture.run(50);
    expect(&mut fixture, "no-controller", (120, 40));
}

#[test]
fn a_kind_that_may_not_be_listed_is_named_and_the_rest_works() {
    let mut fixture = DashboardFixture::well();
    let error =
        "pods is forbidden: User \"sre@example.com\" cannot list resource \"pods\" at the cluster scope";
    fixture.health(FeedKind::Pods, FeedState::Forbidden { error: error.into() });
    let gone =
        fixture.app.model.cluster.pods().iter().map(|pod| Change::Pod(ObjectEvent::Deleted(pod.key.clone())));
    let gone = FeedEvent::Changes(gone.collect());
    fixture.app.on_watch_event(gone, fixture.now);
    fixture.run(1);
    expect(&mut fixture, "forbidden", (120, 40));
    fixture.press("r");
    expect(&mut fixture, "forbidden-drain", (120, 40));
    fixture.press("<Esc>x");
    expect(&mut fixture, "forbidden-failure", (120, 40));
}

#[test]
fn what_may_not_be_listed_is_named_in_one_line() {
    let mut fixture = DashboardFixture::well();
    for kind in [FeedKind::Pods, FeedKind::Services, FeedKind::Claims, FeedKind::CsiNodes] {
        fixture.health(kind, FeedState::Forbidden { error: "no".into() });
    }
    fixture.run(1);
    expect(&mut fixture, "forbidden-several", (120, 40));
}

#[test]
fn a_zone_outage_shows_the_queue_and_its_slots() {
    let mut fixture = DashboardFixture::well();
    for number in 1..=8 {
        fixture.silence(&format!("pool-b-{number:02}"));
    }
    fixture.run(68);
    expect(&mut fixture, "outage", (160, 48));
    fixture.press("4");
    expect(&mut fixture, "forecast-outage", (160, 48));
    expect(&mut fixture, "forecast-outage", (80, 24));
    fixture.press("hz");
    fixture.run(1);
    expect(&mut fixture, "forecast-horizon", (160, 48));
}

#[test]
fn the_selected_lane_stays_on_its_node_while_others_come_and_now_moves() {
    let mut fixture = DashboardFixture::incident();
    fixture.press("4");
    drawn(&mut fixture, (160, 48));
    fixture.press("jj");
    let selected =
        |fixture: &DashboardFixture| fixture.app.screen.forecast.selected().map(|lane| lane.nodes.clone());
    let before = selected(&fixture);
    let lanes = fixture.app.screen.forecast.lanes.len();
    fixture.silence("pool-b-04");
    fixture.run(100);
    drawn(&mut fixture, (160, 48));
    assert_eq!(fixture.app.screen.forecast.lanes.len(), lanes + 1);
    assert_eq!(selected(&fixture), before);
    drawn(&mut fixture, (80, 24));
    let zone = fixture.app.screen.forecast.selected().expect("the lane of its zone");
    assert!(zone.nodes.len() > 1 && before.iter().flatten().all(|node| zone.nodes.contains(node)));
    drawn(&mut fixture, (160, 48));
    fixture.press("<Enter>");
    let node = before.and_then(|nodes| nodes.first().cloned());
    assert_eq!((fixture.app.screen.focus, fixture.app.screen.pods_of.clone()), (Pane::Pods, node));
}

#[test]
fn a_lane_of_a_zone_leads_to_its_nodes() {
    let mut fixture = DashboardFixture::well();
    for number in 1..=10 {
        fixture.silence(&format!("pool-b-{number:02}"));
        fixture.run(12);
    }
    fixture.press("4");
    drawn(&mut fixture, (120, 30));
    let lanes = &fixture.app.screen.forecast.lanes;
    assert!(lanes.len() < 10 && lanes[0].fold == LaneFold::Zone, "{lanes:?}");
    fixture.press("d");
    assert!(fixture.app.screen.message.is_some(), "no single node to explain");
    fixture.press("<Enter>");
    assert_eq!(
        (fixture.app.screen.focus, fixture.app.screen.filter(Pane::Nodes).text()),
        (Pane::Nodes, "zone:eu-1/b")
    );
}

#[test]
fn master_disruption_is_explained() {
    let mut fixture = DashboardFixture::well();
    for zone in ["a", "b", "c"] {
        for number in 1..=10 {
            fixture.silence(&format!("pool-{zone}-{number:02}"));
        }
    }
    fixture.run(68);
    fixture.press("1z");
    expect(&mut fixture, "all-down", (120, 40));
}

#[test]
fn enforce_and_read_only_look_different_from_dry_run() {
    for (mode, name) in [(Mode::Enforce, "enforce"), (Mode::ReadOnly, "read-only")] {
        let mut fixture = DashboardFixture::well();
        fixture.app.operations.mode = mode;
        expect(&mut fixture, name, (100, 30));
    }
}

#[test]
fn a_marked_context_has_its_word_in_the_header() {
    let mut fixture = DashboardFixture::well();
    fixture.app.preferences.mark =
        Some(ContextMark { word: "PRODUCTION".into(), colour: MarkColour::parse("#c00000") });
    expect(&mut fixture, "marked-context", (120, 30));
}

#[test]
fn a_confirmation_in_a_marked_context_names_its_word_in_a_frame_of_its_colour() {
    let mut fixture = DashboardFixture::maintenance();
    let colour = MarkColour::parse("#c00000");
    fixture.app.preferences.mark = Some(ContextMark { word: "PRODUCTION".into(), colour });
    fixture.press("2/pool-b-04<Enter>:enforce 1m<Enter>rDEFA");
    let entries = fixture.app.model.journal.entries();
    let told: Vec<String> =
        entries.map(|entry| entry.words()).filter(|words| words.contains("enforce")).collect();
    assert_eq!(told, ["enforce mode for 1m00s: A in a plan applies it"]);
    fixture.serve();
    expect(&mut fixture, "marked-confirmation", (120, 40));
    let frame = drawn(&mut fixture, (120, 40));
    let colours = (Color::Rgb(0xc0, 0, 0), Color::Rgb(255, 255, 255));
    let is_corner = |cell: &&Cell| cell.symbol() == "┌" || cell.symbol() == "╭";
    let mut corners = frame.content.iter().filter(is_corner);
    assert!(corners.any(|cell| (cell.bg, cell.fg) == colours));
}

#[test]
fn a_revived_node_cancels_its_evictions_and_says_so() {
    let mut fixture = DashboardFixture::incident();
    fixture.run(20);
    fixture.revive("pool-a-03");
    fixture.run(7);
    fixture.press("3/state:c<Enter>");
    expect(&mut fixture, "cancelled", (120, 40));
}

#[test]
fn a_terminal_too_small_gets_the_answers_in_short() {
    expect(&mut DashboardFixture::incident(), "small", (40, 24));
}

#[test]
fn text_from_the_cluster_is_shown_and_never_obeyed() {
    let mut fixture = hostile();
    for size in [(120, 40), (220, 60)] {
        for keys in ["2", "w", "3", "4", "1", "2<Enter>", "/zone\u{202e}"] {
            fixture.press(keys);
            for (place, cell) in drawn(&mut fixture, size).content.iter().enumerate() {
                let bad = |letter: char| {
                    letter.is_control()
                        || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
                };
                assert!(!cell.symbol().chars().any(bad), "{:?} at {place} after {keys}", cell.symbol());
            }
        }
        fixture.press("<Esc><Esc><Esc>w");
    }
    expect(&mut hostile(), "hostile", (120, 40));
}

#[test]
fn no_size_makes_a_panic() {
    let mut states = [DashboardFixture::incident(), DashboardFixture::new(), hostile()];
    for fixture in &mut states {
        for keys in ["", "3", "4", "1", "2<Enter>", "w", "z", "?", "?/ab", "<Esc><Esc>2r", "<Esc>t"] {
            if !keys.contains("<Enter>") || !fixture.app.screen.nodes.list.is_empty() {
                fixture.press(keys);
            }
            for width in [1, 2, 3, 5, 9, 20, 40, 59, 60, 61, 80, 99, 100, 120, 300] {
                for height in [1, 2, 3, 5, 14, 15, 18, 19, 24, 30, 80] {
                    let buffer = drawn(fixture, (width, height));
                    assert!(
                        buffer.content.iter().any(|cell| cell.symbol() != " "),
                        "blank at {width}x{height}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_theme_is_chosen_by_its_name() {
    let mut fixture = DashboardFixture::well();
    fixture.press(":theme solarized-light<Enter>");
    assert_eq!(*fixture.app.screen.theme(), ThemeName::SolarizedLight);
    fixture.press(":theme solarised<Enter>");
    let said = snapshot::plain(&drawn(&mut fixture, (120, 40)));
    assert!(said.contains("there is no theme solarised"), "{said}");
    assert_eq!(*fixture.app.screen.theme(), ThemeName::SolarizedLight);
    fixture.press("<Esc>T");
    let name = fixture.app.screen.theme().name();
    assert_eq!(fixture.app.screen.message, Some(format!("theme {name}")));
    assert_ne!(name, ThemeName::SolarizedLight.as_str());
}

#[test]
fn a_theme_is_seen_before_it_is_chosen_and_the_one_before_comes_back() {
    let mut fixture = DashboardFixture::well();
    let theme = |fixture: &DashboardFixture| fixture.app.screen.theme().name().to_owned();
    fixture.press(":theme<Enter>");
    assert_eq!(theme(&fixture), "dark");
    fixture.press("<Down>");
    assert_eq!(theme(&fixture), "light", "it is shown at once");
    fixture.press("<Up><Up>");
    assert_eq!(theme(&fixture), "mono", "around the end");
    fixture.press("sol<Down>");
    assert_eq!(theme(&fixture), "solarized-light");
    expect(&mut fixture, "themes", (80, 24));
    expect(&mut fixture, "themes", (120, 40));
    fixture.press("<Esc>");
    assert_eq!(theme(&fixture), "dark");
    fixture.press(":theme<Enter>nor");
    fixture.press("x");
    assert_eq!(theme(&fixture), "dark", "no name has these letters");
    fixture.press("<Backspace><Enter>");
    assert_eq!(theme(&fixture), "nord");
    assert!(fixture.app.screen.overlays.top().is_none());
}

#[test]
fn a_filter_without_a_match_says_what_would_match() {
    let mut fixture = DashboardFixture::incident();
    let mut said = |keys: &str| {
        fixture.press(keys);
        snapshot::plain(&drawn(&mut fixture, (120, 40)))
    };
    let screen = said("2/zone:a pods>500<Enter>");
    assert!(screen.contains("no node matches; without \"pods>500\": 10 (Esc clears the filter)"), "{screen}");
    let screen = said("/<Ctrl-u>nowhere<Enter>");
    assert!(screen.contains("no node matches (Esc clears the filter: 30 of them)"), "{screen}");
    let screen = said("/<Ctrl-u>zoen:a<Enter>");
    let expected =
        "no node matches: zoen is no field here; did you mean zone? (Esc clears the filter: 30 of them)";
    assert!(screen.contains(expected), "{screen}");
    let screen = said("/<Ctrl-u>pool in (a, b)<Enter>");
    assert!(screen.contains("no node matches; a label selector is -l pool in (a, b) (Esc"), "{screen}");
    let screen = said("/<Ctrl-u>-l zone=b<Enter>");
    let expected = "no node matches, but zone=b has 10: fields stand without -l (Esc clears the filter)";
    assert!(screen.contains(expected), "{screen}");
    let screen = said("/<Ctrl-u>plb03<Enter>");
    assert!(screen.contains("no node matches, but ~plb03 has 1 (Esc clears the filter)"), "{screen}");
    for (filter, near) in [
        ("poool", "did you mean pool?"),
        ("pods>500", "values of pods are "),
        (
            "-l topology.kubernetes.io/region=eu-2",
            "no topology.kubernetes.io/region is eu-2; did you mean eu-1?",
        ),
    ] {
        let screen = said(&format!("/<Ctrl-u>{filter}<Enter>"));
        assert!(screen.contains(&format!("no node matches: {near}")), "{filter}: {screen}");
    }
    let screen = said("/<Ctrl-u>pool-a|pool-b<Enter>");
    let expected = "no node matches; a regular expression is /pool-a|pool-b/ (Esc clears the filter)";
    assert!(screen.contains(expected), "{screen}");
    let screen = said("<Esc>3/nowhere shop<Enter>");
    assert!(screen.contains("no pod matches; without \"nowhere\": "), "{screen}");
    let screen = said("<Esc>5/nowhere<Enter>");
    assert!(screen.contains("no entry matches (Esc clears the filter: "), "{screen}");
    let screen = said("<Esc>4/nowhere<Enter>");
    assert!(screen.contains("no lane matches (Esc clears the filter: "), "{screen}");
}

#[test]
fn a_filtered_list_counts_the_rows_that_match() {
    let mut fixture = DashboardFixture::incident();
    fixture.press("2<Enter>/edge<Enter>");
    let screen = snapshot::plain(&drawn(&mut fixture, (120, 40)));
    let shown = fixture.app.screen.pods.list.len();
    assert!(screen.contains(&format!(" /edge ─ {shown} shown ")), "{screen}");
    fixture.press("5/node<Enter>z");
    let screen = snapshot::plain(&drawn(&mut fixture, (120, 40)));
    let shown = fixture.app.screen.journal.len();
    assert!(screen.contains(&format!(" /node ─ {shown} shown ")), "{screen}");
}

#[test]
fn an_empty_pane_says_what_to_do_next() {
    let mut fixture = DashboardFixture::well();
    let mut said = |keys: &str| {
        fixture.press(keys);
        snapshot::plain(&drawn(&mut fixture, (120, 40)))
    };
    for (keys, expected) in [
        ("3z", "none expected · x on a node shows what its failure would cause"),
        ("4", "all nodes healthy, no evictions · x on a node"),
        ("5", "no entries yet · what happens from now on is listed here"),
        ("7", "no pod left in this session · pods that leave from now on"),
    ] {
        let screen = said(keys);
        assert!(screen.contains(expected), "{keys}: {screen}");
    }
}

#[test]
fn the_forecast_says_nothing_before_it_is_worked_out() {
    let mut fixture = DashboardFixture::incident();
    fixture.app.model.predictions = Predictions::new(Span::from_secs(5));
    fixture.press("4z");
    let screen = snapshot::plain(&drawn(&mut fixture, (160, 48)));
    assert!(screen.contains("working out the forecast"), "{screen}");
}

#[test]
fn the_forecast_calls_nothing_healthy_that_the_verdict_does_not() {
    let said = |fixture: &mut DashboardFixture| {
        fixture.press("4z");
        snapshot::plain(&drawn(fixture, (160, 48)))
    };
    let mut fixture = DashboardFixture::well();
    let now = fixture.now;
    fixture.change_node("pool-a-01", |node| {
        set_condition(node, "MemoryPressure", ConditionStatus::True, now);
    });
    fixture.run(1);
    let screen = said(&mut fixture);
    let text = "evictions by the kubelet of pool-a-01 not known: no measurements";
    assert!(screen.contains(text) && !screen.contains("nodes healthy"), "{screen}");
    fixture.press("3");
    let screen = snapshot::plain(&drawn(&mut fixture, (160, 48)));
    assert!(screen.contains(text) && !screen.contains("none expected"), "{screen}");
    let mut fixture = DashboardFixture::well();
    fixture.health(FeedKind::Pods, FeedState::Forbidden { error: "no".into() });
    fixture.run(1);
    let screen = said(&mut fixture);
    let text = "evictions unknown: pods cannot be listed (missing permission: list pods)";
    assert!(screen.contains(text) && !screen.contains("nodes healthy"), "{screen}");
}

/// Draws the screen of an incident after these keys.
fn incident_after(keys: &str) -> String {
    let mut fixture = DashboardFixture::incident();
    fixture.press(keys);
    snapshot::plain(&drawn(&mut fixture, (160, 48)))
}

#[test]
fn a_filter_compares_and_says_what_is_wrong_beside_it() {
    let mut fixture = DashboardFixture::incident();
    fixture.press("2/pods>3 !state=Ready<Enter>");
    let rows = fixture.app.screen.nodes.list.len();
    assert!(rows > 0 && rows < 10, "{rows}");
    assert!(incident_after("2/cpu>80").contains("cpu is compared with a share, such as 80%"));
    assert!(
        incident_after("2/mem>40").contains("memory is compared with a share, such as 80%"),
        "mem is in its heading"
    );
    let fields = incident_after("2/");
    assert!(fields.contains("node zone state role"), "{fields}");
    for (filter, rows) in [("cpu>300m", 2), ("memory>512Mi", 2), ("!mem>=1Gi !cpu>=1", 2), ("cpu>=1", 1)] {
        let mut fixture = DashboardFixture::incident();
        fixture.press(&format!("2/pool-b-02<Enter><Enter>/{filter}<Enter>"));
        assert_eq!(fixture.app.screen.pods.list.len(), rows, "{filter}");
        assert_eq!(fixture.app.screen.message, None, "{filter}");
    }
    assert!(incident_after("2/hear<Tab>").contains("/heartbeat>"));
}

#[test]
fn a_misspelt_name_or_value_of_a_filter_has_the_nearest_one_beside_it() {
    for (keys, said) in [
        ("2/state=Silnt", "no state is silnt; did you mean Silent?"),
        ("2/state=Silnt<Enter>", "no state is silnt; did you mean Silent?"),
        ("2:nodes state=Silnt<Enter>", "no state is silnt; did you mean Silent?"),
        ("2/pod>20", "pod cannot be compared; did you mean pods?"),
        ("2/zoen=a", "zoen is no field here; did you mean zone?"),
        ("2/zone=x", "no zone is x; there are a, b, c, eu-1/a, eu-1/b, eu-1/c"),
        ("4/zoen=a", "zoen is no field here; did you mean zone?"),
        ("4/what=evictd", "no what is evictd; did you mean evicted?"),
    ] {
        let screen = incident_after(keys);
        assert!(screen.contains(said), "{keys}: {screen}");
    }
    for keys in
        ["2/state=Sil", "2/state=Drained<Enter>", "2/topology.kubernetes.io/zone=a<Enter>", "2/zone=a"]
    {
        let screen = incident_after(keys);
        assert!(!screen.contains("no state is ") && !screen.contains("is no "), "{keys}: {screen}");
    }
}

#[test]
fn values_and_names_of_labels_are_completed_in_a_filter() {
    for (typed, completed) in [
        ("state=sil", "state=Silent"),
        ("a !state:Cord", "a !state:Cordoned"),
        ("zone=eu-1/b", "zone=eu-1/b"),
        ("zone=e", "zone=eu-1/"),
        ("taint=node.kubernetes.io/unr", "taint=node.kubernetes.io/unreachable"),
        ("topology.kubernetes.io/r", "topology.kubernetes.io/region="),
        ("instance", "node.kubernetes.io/instance-type="),
        ("node.kubernetes.io/instance-type=m7", "node.kubernetes.io/instance-type=m7i.2xlarge"),
    ] {
        let mut fixture = DashboardFixture::incident();
        fixture.press(&format!("2/{typed}<Tab>"));
        let typed = match fixture.app.screen.overlays.top() {
            Some(Overlay::Filter(input)) => input.value().to_owned(),
            other => panic!("no filter is typed: {other:?}"),
        };
        assert_eq!(typed, completed);
        assert_eq!(fixture.app.screen.filter(Pane::Nodes).text(), completed, "the list follows");
    }
    let screen = incident_after("2/state=");
    assert!(screen.contains("Cordoned Drained Draining"), "{screen}");
}

#[test]
fn tab_goes_through_the_candidates_of_a_filter_where_none_is_clear() {
    let mut fixture = DashboardFixture::incident();
    fixture.press("2/");
    let last_line = |fixture: &mut DashboardFixture| {
        let screen = snapshot::plain(&drawn(fixture, (80, 24)));
        screen.lines().last().unwrap_or_default().to_owned()
    };
    assert!(last_line(&mut fixture).contains("Tab node zone state role"));
    for (key, typed, listed) in [
        ("<Tab>", "node:", "Tab node zone state role"),
        ("<Tab>", "zone:", "Tab zone state role ready"),
        ("b<Ctrl-u>zone=eu-1/<Tab>", "zone=eu-1/a", "Tab eu-1/a eu-1/b eu-1/c"),
        ("<Tab>", "zone=eu-1/b", "Tab eu-1/b eu-1/c eu-1/a"),
    ] {
        fixture.press(key);
        assert_eq!(fixture.app.screen.filter(Pane::Nodes).text(), typed, "{key}");
        let line = last_line(&mut fixture);
        assert!(line.contains(listed), "{key}: {line}");
    }
    fixture.press("<Ctrl-u>nothing-like-it<Tab>");
    assert_eq!(fixture.app.screen.message.as_deref(), Some("Tab does nothing here"));
}

#[test]
fn a_plan_reads_without_colours() {
    let mut fixture = at_work();
    while *fixture.app.screen.theme() != ThemeName::Mono {
        fixture.press("T");
    }
    fixture.press("rDEF");
    gallery("plan-mono", &drawn(&mut fixture, (120, 40)), Theme::bundled(ThemeName::Mono));
    let mut colourful = at_work();
    colourful.press("rDEF");
    assert_eq!(
        snapshot::plain(&drawn(&mut fixture, (120, 40))),
        snapshot::plain(&drawn(&mut colourful, (120, 40)))
    );
}

/// The cluster of [`DashboardFixture::maintenance`] in enforce mode, just before the drain is applied.
pub fn about_to_drain() -> DashboardFixture {
    let mut fixture = at_work();
    fixture.press(":reason new kernel<Enter>:enforce 30m<Enter>rDEF");
    fixture
}

#[test]
fn an_error_beside_a_typed_command_takes_the_rest_of_the_line() {
    let mut fixture = DashboardFixture::well();
    fixture.press(":sort xyz<Enter>");
    let screen = snapshot::plain(&drawn(&mut fixture, (80, 24)));
    assert!(screen.contains(":sort xyz"), "{screen}");
    assert!(screen.contains("there is no column xyz: there are state, node, zone, roles, "), "{screen}");
}

#[test]
fn a_command_is_found_by_words_and_its_errors_are_shown_beside_it() {
    let mut fixture = DashboardFixture::well();
    fixture.press(":zone");
    expect(&mut fixture, "palette", (100, 30));
    expect(&mut fixture, "palette", (80, 24));
    fixture.press("<Ctrl-u>enforce 1y<Enter>");
    expect(&mut fixture, "palette-fault", (160, 48));
    assert_eq!(fixture.app.operations.mode, Mode::DryRun);
    fixture.press("<Ctrl-u>more columns<Enter>");
    assert!(!fixture.app.screen.wide, "what was found by words is only proposed");
    fixture.press("<Tab><Enter>");
    assert!(fixture.app.screen.wide && fixture.app.screen.overlays.palette().is_none());
}

#[test]
fn a_grave_operation_is_confirmed_with_words_that_name_the_risk() {
    let mut fixture = about_to_drain();
    fixture.press("A");
    expect(&mut fixture, "acting-asks", (120, 40));
    fixture.serve();
    for size in [(80, 24), (120, 40), (220, 60)] {
        expect(&mut fixture, "acting-confirm", size);
    }
    fixture.press("prod-eu<Enter>");
    assert!(fixture.app.operations.entries.is_empty(), "a part of the words is no yes");
    fixture.checks.guards.protected_namespaces.insert("shop".into());
    fixture.press("<Esc>A");
    fixture.serve();
    expect(&mut fixture, "acting-guarded", (120, 40));
    fixture.press("prod-eu override protected-namespace try-blocked<Enter>");
    fixture.serve();
    assert_eq!(fixture.app.operations.running().count(), 1);
}

#[test]
fn a_refusal_of_several_lines_is_a_dialog_that_shows_them_all() {
    let mut fixture = at_work();
    fixture.press(":enforce 30m<Enter>rA");
    let screen = snapshot::plain(&drawn(&mut fixture, (120, 40)));
    for pod in ["shop/cart-00-x7f2q", "shop/debug-0", "kube-system/proxy-00-k9x"] {
        let line = format!("pod {pod}: refused: ");
        assert!(screen.contains(&line), "{line:?} in\n{screen}");
    }
    fixture.press("<Esc>");
    assert!(fixture.app.screen.overlays.question().is_none());
}

#[test]
fn quitting_a_demo_cluster_promises_no_resume() {
    let mut fixture = about_to_drain();
    fixture.app.model.connection.server = EMBEDDED.into();
    fixture.press("A");
    fixture.serve();
    fixture.press("prod-eu try-blocked<Enter>");
    fixture.serve();
    fixture.press("q");
    let screen = snapshot::plain(&drawn(&mut fixture, (120, 40)));
    assert!(screen.contains("Quitting ends this demo cluster too"), "{screen}");
    assert!(!screen.contains("resume a drain"), "{screen}");
}

#[test]
fn the_progress_shows_what_it_waits_for_and_why() {
    let mut fixture = about_to_drain();
    fixture.press("A");
    fixture.serve();
    fixture.press("prod-eu try-blocked<Enter>");
    fixture.serve();
    assert_eq!(fixture.app.screen.focus, Pane::Progress);
    fixture.now += Span::from_secs(3);
    fixture.app.refresh(fixture.now);
    for size in [(80, 24), (120, 40), (220, 60)] {
        expect(&mut fixture, "acting-progress", size);
    }
    fixture.press("p");
    expect(&mut fixture, "acting-paused", (120, 40));
    let screen = snapshot::plain(&drawn(&mut fixture, (120, 40)));
    assert!(screen.contains("  p resume  ") && !screen.contains("p pause"), "{screen}");
    fixture.press("q");
    expect(&mut fixture, "acting-quit", (80, 24));
    fixture.press("<Esc>C");
    expect(&mut fixture, "acting-cancel", (100, 30));
    fixture.press("<Enter>");
    assert_eq!(fixture.app.operations.running().count(), 1, "Enter alone cancels nothing");
    fixture.press("C<Tab><Enter>");
    fixture.serve();
    expect(&mut fixture, "acting-cancelled", (120, 40));
}

#[test]
fn the_report_replaces_the_progress_and_the_mode_ends_by_itself() {
    let mut fixture = DashboardFixture::maintenance();
    fixture.press("2/pool-b-04<Enter>:enforce 1m<Enter>rDEFA");
    fixture.serve();
    fixture.agree();
    assert_eq!(fixture.app.operations.running().count(), 1);
    fixture.run(2);
    for (name, node, is_ready) in [("web-10-new4z", "pool-c-07", true), ("cart-10-new8q", "pool-a-02", false)]
    {
        fixture.add_pod(&format!("shop/{name}"), node, WorkloadKind::ReplicaSet, Vec::new(), 200, 256);
        let created = ClusterTime::new(fixture.now);
        fixture.change_pod(&format!("shop/{name}"), |pod| {
            pod.created = created;
            let status = if is_ready { ConditionStatus::True } else { ConditionStatus::False };
            pod.ready = Some(PodReady { status, last_transition: Some(created) });
        });
    }
    fixture.run(1);
    expect(&mut fixture, "acting-landings", (120, 40));
    fixture.run(17);
    fixture.reap();
    assert_eq!(fixture.app.operations.running().count(), 0);
    expect(&mut fixture, "acting-report", (120, 40));
    fixture.run(41);
    assert_eq!(fixture.app.operations.mode, Mode::DryRun);
    fixture.press("<Esc>c");
    fixture.press("A");
    expect(&mut fixture, "acting-locked", (120, 40));
    assert!(fixture.app.screen.overlays.question().is_none() && fixture.app.next_job().is_none());
}

#[test]
fn a_removed_pod_that_nothing_recreates_is_lost_in_the_progress_as_in_the_plan() {
    let mut fixture = about_to_drain();
    assert!(snapshot::plain(&drawn(&mut fixture, (220, 60))).contains("1 lost"));
    fixture.press("A");
    fixture.serve();
    fixture.press("prod-eu try-blocked<Enter>");
    fixture.serve();
    fixture.run(1);
    for state in ["terminating", "gone"] {
        let screen = snapshot::plain(&drawn(&mut fixture, (220, 60)));
        let row = screen.lines().find(|line| line.contains("shop/debug-0 ") && line.contains(state));
        assert!(row.is_some_and(|row| row.contains("  lost")), "{state}: {screen}");
        fixture.reap();
        fixture.run(1);
    }
}

#[test]
fn an_interrupted_drain_is_shown_on_a_line_until_it_is_handled() {
    let mut fixture = at_work();
    fixture.change_node("pool-a-01", |node| node.unschedulable = true);
    fixture.past = Some(interrupted(&fixture));
    fixture.app.find_interrupted();
    fixture.serve();
    expect(&mut fixture, "acting-unfinished", (160, 48));
    expect(&mut fixture, "acting-unfinished", (80, 24));
    fixture.press("R");
    assert!(fixture.app.screen.overlays.question().is_none(), "in dry-run nothing is resumed");
    fixture.press("U");
    fixture.serve();
    expect(&mut fixture, "acting-undo-locked", (120, 40));
    fixture.press("<Esc>:enforce<Enter>R");
    fixture.serve();
    expect(&mut fixture, "acting-resume", (120, 40));
    fixture.press("<Esc>X");
    assert!(fixture.app.operations.interrupted.is_empty());
}

/// A drain of the node that was interrupted after the cordon.
pub fn interrupted(fixture: &DashboardFixture) -> JournaledOperation {
    let node = fixture.app.model.cluster.node(&"pool-a-01".into()).expect("there");
    let uid = node.uid.clone();
    let line = |kind| JournalLine {
        at: START - Span::from_secs(600),
        operation: "drain-20260102-025000-zx81c".parse().unwrap(),
        kind,
    };
    let options = DrainOptions {
        force: true,
        ignore_daemonsets: true,
        delete_emptydir_data: true,
        ..DrainOptions::default()
    };
    let start = OperationStart {
        by: "sre@laptop".into(),
        action: "drain".into(),
        drain: Some(options),
        nodes: vec![("pool-a-01".into(), uid.clone())],
        ..OperationStart::default()
    };
    let request = LineKind::Request {
        id: 1,
        object: "node/pool-a-01".into(),
        request: "cordon".into(),
        why: String::new(),
        method: "PATCH".into(),
        path: String::new(),
        body: serde_json::Value::Null,
        undo: Some(WriteUndo::Node(NodeUndo {
            node: "pool-a-01".into(),
            uid,
            steps: vec![UndoStep::Uncordon],
        })),
    };
    let lines = [line(LineKind::Started(Box::new(start))), line(request)];
    operations(&lines).remove(0)
}

#[test]
fn every_theme_draws_every_state() {
    for theme in ThemeName::ALL.iter().copied() {
        let mut fixture = DashboardFixture::incident();
        while *fixture.app.screen.theme() != theme {
            fixture.press("T");
        }
        fixture.app.screen.message = None;
        let buffer = drawn(&mut fixture, (160, 48));
        gallery(&format!("theme-{}", theme.as_str()), &buffer, Theme::bundled(theme));
        assert_eq!(
            snapshot::plain(&buffer),
            snapshot::plain(&drawn(&mut DashboardFixture::incident(), (160, 48))),
            "the same words"
        );
    }
}

/// A cluster with hostile text in all strings.
fn hostile() -> DashboardFixture {
    let mut fixture = DashboardFixture::well();
    let evil = "\x1b]0;owned\x07\x1b[2J\u{202e}gnp.exe\u{200b}\r\n\x1b[31m";
    let now = fixture.now;
    fixture.change_node("pool-a-01", |node| {
        let condition = Condition {
            kind: format!("Evil{evil}").into(),
            status: ConditionStatus::True,
            reason: evil.into(),
            message: evil.into(),
            last_heartbeat: Some(ClusterTime::new(now)),
            last_transition: Some(ClusterTime::new(now)),
        };
        let mut conditions = node.conditions.to_vec();
        for own in &mut conditions {
            own.reason = evil.into();
            own.message = evil.into();
            own.status = if own.kind == *"Ready" { ConditionStatus::False } else { own.status };
        }
        conditions.push(condition);
        node.conditions = conditions.into();
        node.address = evil.into();
        node.kubelet_version = evil.into();
        node.taints =
            [taint(&format!("evil/{evil}"), TaintEffect::NoExecute, Some(ClusterTime::new(now)))].into();
        let labels = [
            ("topology.kubernetes.io/zone".into(), format!("z{evil}").into()),
            (format!("node-role.kubernetes.io/{evil}").into(), "".into()),
            ("node.kubernetes.io/instance-type".into(), evil.into()),
        ];
        node.labels = node.labels.entries().iter().cloned().chain(labels).collect();
        node.unschedulable = true;
        node.cordon_note =
            Some(Arc::new(CordonNote { by: evil.into(), reason: evil.into(), ..CordonNote::default() }));
        node.drain_claim = Some(Arc::new(DrainClaim { by: evil.into(), ..DrainClaim::default() }));
    });
    fixture.add_node(&format!("node{evil}"), "a");
    fixture.add_pod(
        &format!("ns{evil}/pod{evil}-1"),
        "pool-a-01",
        WorkloadKind::ReplicaSet,
        Vec::new(),
        100,
        100,
    );
    fixture.app.model.connection.context = evil.into();
    fixture.app.model.connection.server = evil.into();
    fixture.app.model.connection.identity = Some(evil.into());
    fixture.app.model.connection.server_version = Some(evil.into());
    fixture.app.on_watch_event(FeedEvent::Trouble(format!("it broke: {evil}")), now);
    fixture.health(FeedKind::Budgets, FeedState::Broken { since: now, error: evil.into() });
    fixture.run(3);
    fixture.terminate("shop/cart-00-x7f2q", &[evil]);
    fixture.run(1);
    assert!(
        fixture.app.model.cluster.pod(&Key::new(&format!("ns{evil}"), &format!("pod{evil}-1"))).is_some()
    );
    fixture
}

pub fn drawn(fixture: &mut DashboardFixture, size: (u16, u16)) -> Buffer {
    terminal_of(fixture, size).backend().buffer().clone()
}

/// Draws the dashboard on a terminal in memory.
pub fn terminal_of(fixture: &mut DashboardFixture, (width, height): (u16, u16)) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a buffer");
    let drawn = terminal.draw_app(&fixture.app, fixture.now).expect("a buffer");
    fixture.app.screen.drawn(&drawn.rows);
    fixture.app.screen.targets = drawn.targets;
    fixture.app.screen.drawn_layout = drawn.layout;
    // The first drawing shows how much room the forecast has. The second drawing merges lines of the forecast's chart
    // (lanes) until they fit.
    fixture.app.arrange(fixture.now);
    let drawn = terminal.draw_app(&fixture.app, fixture.now).expect("a buffer");
    fixture.app.screen.drawn(&drawn.rows);
    fixture.app.screen.targets = drawn.targets;
    fixture.app.screen.drawn_layout = drawn.layout;
    terminal
}

/// With `--ascii`, frames have only ASCII characters, except in the cluster's own text.
fn expect_ascii(fixture: &mut DashboardFixture, name: &str, size: (u16, u16)) {
    fixture.app.screen.glyphs = Glyphs::Ascii;
    let text = snapshot::plain(&drawn(fixture, size));
    fixture.app.screen.glyphs = Glyphs::Unicode;
    let others: BTreeSet<char> = text.chars().filter(|letter| !letter.is_ascii()).collect();
    assert!(others.is_empty() || name.starts_with("hostile"), "{name} has {others:?}:\n{text}");
}

/// Compares a screen with its golden file.
fn expect(fixture: &mut DashboardFixture, name: &str, size: (u16, u16)) {
    let buffer = drawn(fixture, size);
    let name = format!("{name}-{}x{}", size.0, size.1);
    gallery(&name, &buffer, &Theme::chosen(fixture.app.screen.theme()));
    let text = snapshot::plain(&buffer);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/screens").join(format!("{name}.txt"));
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &text).expect("tests/screens can be written");
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    assert!(golden == text, "{name} differs; with UPDATE=1 read the difference\n{text}");
    expect_ascii(fixture, &name, size);
}

/// Compares an image of the documentation with the screen that it shows.
pub fn expect_picture(name: &str, buffer: &Buffer) {
    let picture = snapshot::svg(buffer, Theme::bundled(ThemeName::ALL[0]));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(format!("{name}.svg"));
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &picture).expect("docs can be written");
    }
    let known = fs::read_to_string(&path).unwrap_or_default();
    assert!(known == picture, "docs/{name}.svg is older than the screen; UPDATE=1 remakes it");
}

/// Writes a screen to the gallery if `GALLERY` is set.
fn gallery(name: &str, buffer: &Buffer, theme: &Theme) {
    if let Some(folder) = std::env::var_os("GALLERY") {
        snapshot::write(&Path::new(&folder).join(format!("{name}.svg")), buffer, theme).expect("the gallery");
    }
}

#[test]
fn a_silent_node_never_looks_ready_and_one_that_comes_and_goes_is_counted() {
    let mut fixture = DashboardFixture::well();
    fixture.silence("pool-b-05");
    let row = |fixture: &mut DashboardFixture| {
        let screen = snapshot::plain(&drawn(fixture, (160, 48)));
        let is_row = |line: &&str| line.contains("pool-b-05") && line.contains("  b   ");
        screen.lines().find(is_row).expect("its row").to_owned()
    };
    fixture.run(18);
    assert!(row(&mut fixture).contains("◦ pool-b-05     Late"), "{}", row(&mut fixture));
    for _ in 0..2 {
        fixture.run(26);
        assert!(row(&mut fixture).contains("◌ pool-b-05"), "{}", row(&mut fixture));
        fixture.revive("pool-b-05");
        fixture.run(1);
        fixture.silence("pool-b-05");
    }
    assert!(row(&mut fixture).contains("▪ pool-b-05 ⇅4"), "{}", row(&mut fixture));
    fixture.press("/state:ready");
    fixture.run(26);
    assert_eq!(fixture.app.screen.nodes.list.len(), 29, "it is Silent again");
}

#[test]
fn a_cordon_says_who_made_it_why_and_until_when() {
    let mut fixture = DashboardFixture::well();
    let now = fixture.now;
    let note = |by: &str, left: i64| CordonNote {
        by: by.into(),
        reason: "new kernel".into(),
        at: now - Span::from_secs(60),
        until: Some(now + Span::from_secs(left)),
        operation: "cordon-1".parse().ok(),
    };
    for (node, note) in [("pool-a-01", note("alice", 7200)), ("pool-a-02", note("bob", -300))] {
        fixture.change_node(node, |node| {
            node.unschedulable = true;
            node.cordon_note = Some(Arc::new(note));
        });
    }
    let claim = DrainClaim {
        by: "carol".into(),
        operation: "drain-1".parse().unwrap(),
        renewed: now - Span::from_secs(300),
        ..DrainClaim::default()
    };
    let running = DrainClaim { renewed: now, pods: Some(8), ..claim.clone() };
    fixture.change_node("pool-a-03", |node| node.drain_claim = Some(Arc::new(claim)));
    fixture.change_node("pool-b-01", |node| node.drain_claim = Some(Arc::new(running)));
    fixture.run(0);
    let table = snapshot::plain(&drawn(&mut fixture, (220, 60)));
    for cell in [
        "2h00m left · alice: new kernel",
        "expired 5m00s ago · bob: new kernel",
        "drain by carol (operation drain-1)",
        "⊘ pool-a-01     Cordoned 1m00s",
        "▪ pool-a-03     Ready",
        "⊖ pool-b-01     Draining 6/8",
    ] {
        assert!(table.contains(cell), "no {cell:?} in\n{table}");
    }
    fixture.press("2/pool-a-02<Enter>");
    let narrow = snapshot::plain(&drawn(&mut fixture, (100, 40)));
    assert!(narrow.contains("cordoned by bob: new kernel, until 2026-01-02T02:56:00Z"), "{narrow}");
    fixture.press("d");
    let detail = snapshot::plain(&drawn(&mut fixture, (220, 60)));
    assert!(
        detail.contains("by bob: new kernel, until 2026-01-02T02:56:00Z (expired 5m00s ago)"),
        "{detail}"
    );
}

#[test]
fn the_fixture_starts_at_its_stated_time() {
    assert_eq!(START.to_time(), "2026-01-02T03:00:00Z");
    assert_eq!(DashboardFixture::well().now, START + Span::from_secs(60));
    assert!(Timestamp::EPOCH < START);
}
