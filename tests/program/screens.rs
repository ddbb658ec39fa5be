//! The screens, drawn over small cluster stories and compared with what was read and found good.
//!
//! `UPDATE=1` makes the golden files anew; read the difference. `GALLERY=FOLDER` writes every screen as SVG too.

use std::{fs, path::Path};

use crossterm::event::{KeyCode, KeyModifiers};
use kordon::{
    app::{
        Mode, Pane, ThemeName, commands,
        pane::{InputTarget, KeyFocus},
        preview::Preview,
        update,
    },
    cluster::{Change, Condition, ConditionStatus, Key, ObjectEvent, Phase, TaintEffect, WorkloadKind},
    journal::{JournalLine, JournaledOperation, LineKind, OperationStart, operations},
    k8s::feed::{FeedEvent, FeedKind, FeedState},
    placement::Snapshot,
    plan::{
        DrainOptions, PlacingEnvironment, Plan,
        undo::{NodeUndo, UndoStep},
    },
    run::Surface,
    time::{Span, Timestamp},
    ui::{Theme, snapshot},
};
use ratatui::{Terminal, backend::TestBackend, buffer::Buffer};

use crate::story::{BEGIN, Story, taint};

const SIZES: [(u16, u16); 4] = [(80, 24), (120, 40), (160, 48), (220, 60)];

#[test]
fn an_incident_reads_well_at_every_size() {
    for (width, height) in SIZES {
        expect(&mut Story::incident(), "incident", (width, height));
    }
}

#[test]
fn a_well_cluster_is_calm() {
    expect(&mut Story::well(), "well", (120, 40));
}

#[test]
fn what_the_cluster_can_lose_stands_over_the_zones_with_its_age_where_that_matters() {
    let mut story = Story::well();
    let title = |story: &mut Story| {
        let screen = snapshot::plain(&drawn(story, (120, 40)));
        screen.lines().find(|line| line.contains("1 Zones")).expect("the pane of the zones").to_owned()
    };
    assert!(title(&mut story).contains("· can lose any node, any zone ─"), "{}", title(&mut story));
    story.now += Span::from_secs(120);
    assert!(!title(&mut story).contains("ago"), "nothing has changed: {}", title(&mut story));
    story.change_pod("data/postgres-0", |pod| pod.labels = Default::default());
    assert!(title(&mut story).contains("any zone (2m00s ago) ─"), "{}", title(&mut story));
    story.app.model.headroom = None;
    assert!(title(&mut story).contains("· working out what it can lose ─"), "{}", title(&mut story));
}

#[test]
fn wide_shows_the_lesser_columns() {
    let mut story = Story::incident();
    story.press("w");
    expect(&mut story, "wide", (220, 60));
}

#[test]
fn the_pods_of_a_node_take_the_place_of_the_nodes() {
    let mut story = Story::incident();
    story.press("2<Enter>");
    assert_eq!(story.app.screen.focus, Pane::Pods);
    expect(&mut story, "pods", (120, 40));
    story.press("<Esc>");
    assert_eq!((story.app.screen.focus, story.app.screen.pods_of.clone()), (Pane::Nodes, None));
}

#[test]
fn the_detail_tells_the_story_of_a_node_and_of_a_pod_and_goes_back_where_it_came_from() {
    let mut story = Story::incident();
    story.press("2d");
    assert_eq!(story.app.screen.focus, Pane::Detail);
    expect(&mut story, "detail-node", (120, 40));
    story.press("<Esc><Enter>d");
    expect(&mut story, "detail-pod", (120, 40));
    story.press("<Esc>");
    assert_eq!(story.app.screen.focus, Pane::Pods);
    story.press("3d<Esc>");
    assert_eq!(
        (story.app.screen.focus, story.app.screen.overlays.detail().is_none()),
        (Pane::Evictions, true)
    );
}

#[test]
fn the_forecast_stands_on_a_time_axis() {
    let mut story = Story::incident();
    story.press("5");
    expect(&mut story, "forecast", (120, 40));
    story.press("jz");
    expect(&mut story, "forecast", (80, 24));
    story.press("d");
    assert_eq!(story.app.screen.focus, Pane::Detail);
    let mut story = Story::well();
    story.press("5");
    expect(&mut story, "forecast-well", (120, 40));
}

/// The maintenance story with the focus on the node that is to be worked on.
fn at_work() -> Story {
    let mut story = Story::maintenance();
    story.press("2/pool-a-01<Enter>");
    story
}

#[test]
fn a_drain_is_refused_until_its_options_are_turned_and_then_tells_each_pods_fate() {
    let mut story = at_work();
    story.press("r");
    assert_eq!(story.app.screen.focus, Pane::Plan);
    expect(&mut story, "plan-drain-refused", (120, 40));
    story.press("DEF");
    expect(&mut story, "plan-drain", (120, 40));
    expect(&mut story, "plan-drain", (80, 24));
    story.press("BP");
    expect(&mut story, "plan-drain-deletes", (120, 40));
    story.press("BPPPz<Down><Down><Down>");
    expect(&mut story, "plan-drain-whole", (220, 60));
    story.press("<Esc>");
    assert_eq!((story.app.screen.focus, story.app.screen.overlays.plan().is_none()), (Pane::Nodes, true));
    story.press("<Esc>z<Down>r");
    let drain = &story.app.screen.overlays.plan().expect("another plan").request.drain;
    assert!(drain.force && drain.ignore_daemonsets, "the options of the last drain are kept");
}

#[test]
fn a_plan_is_filtered_and_the_detail_of_a_pod_lies_over_it() {
    let mut story = at_work();
    story.press("r/verdict:refused<Enter><Down>");
    let list = &story.app.screen.overlays.plan().expect("a plan").list;
    assert_eq!(list.len(), 4, "a title and three pods");
    story.press("d");
    assert_eq!(story.app.screen.focus, Pane::Detail);
    story.press("<Esc>");
    assert_eq!(story.app.screen.focus, Pane::Plan);
}

#[test]
fn marked_rows_are_planned_over_together() {
    let mut story = Story::maintenance();
    drawn(&mut story, (120, 40));
    story.press("2<Space><Space><Down><Space>");
    expect(&mut story, "marked", (120, 40));
    story.press("rDEF");
    expect(&mut story, "plan-marked", (120, 40));
    story.press("<Esc>");
    assert_eq!(story.app.screen.marked_nodes.len(), 3, "the plan was only looked at");
    story.press("<Esc>");
    assert!(story.app.screen.marked_nodes.is_empty());
    story.press("/zone:b<Enter>M");
    assert_eq!(story.app.screen.marked_nodes.len(), 10);
    story.press("M");
    assert!(story.app.screen.marked_nodes.is_empty());
}

#[test]
fn keys_and_esc_go_to_the_topmost_overlay_and_esc_goes_back_one_by_one() {
    let mut story = at_work();
    let at = |story: &Story| story.app.screen.key_focus();
    story.press("d");
    assert_eq!(at(&story), KeyFocus::Pane(Pane::Detail));
    story.press("t");
    assert_eq!(at(&story), KeyFocus::Input(InputTarget::Edits), "a plan over the detail");
    story.press("dedicated:NoExecute<Enter>/postgres<Enter>d");
    assert_eq!(at(&story), KeyFocus::Pane(Pane::Detail), "the detail of a pod of the plan");
    story.press("?");
    assert!(story.app.screen.overlays.is_help_open());
    story.press(":");
    assert_eq!(at(&story), KeyFocus::Input(InputTarget::Command));
    assert!(!story.app.screen.overlays.is_help_open(), "what is opened closes the help");
    let focuses = [
        KeyFocus::Pane(Pane::Detail),
        KeyFocus::Pane(Pane::Plan),
        // Its filter goes first.
        KeyFocus::Pane(Pane::Plan),
        KeyFocus::Pane(Pane::Detail),
        KeyFocus::Pane(Pane::Nodes),
    ];
    for focus in focuses {
        story.press("<Esc>");
        assert_eq!(at(&story), focus);
    }
    assert!(story.app.screen.overlays.top().is_none());
}

#[test]
fn a_view_without_the_focus_leaves_the_keys_to_the_pane_that_has_it() {
    let mut story = at_work();
    story.press("t");
    story.press("dedicated:NoExecute<Enter>3");
    assert_eq!(story.app.screen.key_focus(), KeyFocus::Pane(Pane::Evictions));
    story.press("<Esc>");
    assert!(story.app.screen.overlays.plan().is_some(), "Esc is of the evictions");
    story.press("2<Enter>");
    assert_eq!(story.app.screen.key_focus(), KeyFocus::Input(InputTarget::Edits));
}

#[test]
fn taints_are_typed_with_proposals_and_their_victims_follow() {
    let mut story = at_work();
    story.press("t");
    expect(&mut story, "plan-taint-empty", (120, 40));
    story.press("dedi<Tab>=x y:NoSch");
    expect(&mut story, "plan-taint-fault", (120, 40));
    story.press("<Ctrl-u>dedicated=gpu:NoE<Tab>");
    expect(&mut story, "plan-taint", (120, 40));
    story.press("<Enter>");
    assert_eq!(story.app.screen.key_focus(), KeyFocus::Pane(Pane::Plan));
    story.press("O<Enter><Esc>");
    assert_eq!(story.app.screen.focus, Pane::Nodes);
}

#[test]
fn labels_are_typed_and_told_as_what_changes() {
    let mut story = at_work();
    story.press("ltopology.kubernetes.io/zone=b pool=blue<Enter>");
    expect(&mut story, "plan-label-refused", (100, 30));
    story.press("O");
    expect(&mut story, "plan-label", (100, 30));
}

#[test]
fn pods_are_evicted_or_deleted_from_their_list_as_plans() {
    let mut story = at_work();
    story.press("<Enter>/postgres<Enter>e");
    expect(&mut story, "plan-evict", (120, 40));
    story.press("<Esc><Del>");
    expect(&mut story, "plan-delete", (120, 40));
}

#[test]
fn what_if_tells_what_the_controller_would_do_about_a_node_and_about_a_zone() {
    let mut story = at_work();
    story.press("x");
    expect(&mut story, "plan-failure", (120, 40));
    story.press("G");
    expect(&mut story, "plan-failure-places", (120, 40));
    story.press("g");
    story.press("<Esc>1x");
    expect(&mut story, "plan-zone-failure", (120, 40));
}

#[test]
fn a_plan_follows_the_cluster_while_it_is_open() {
    let mut story = at_work();
    story.press("rDEF");
    let blocked = |story: &Story| planned(story).totals.blocked;
    assert_eq!(blocked(&story), 1);
    story.run(5);
    let before = story.app.next_plan(story.now);
    assert!(before.is_none(), "heartbeats are nothing to a drain");
    story.change_pod("data/postgres-0", |pod| pod.labels = Default::default());
    story.run(1);
    assert_eq!(blocked(&story), 0);
}

fn planned(story: &Story) -> &Plan {
    story.app.screen.overlays.plan().and_then(Preview::plan).expect("a plan")
}

#[test]
fn a_plan_over_a_snapshot_that_has_followed_the_cluster_is_the_one_over_a_new_snapshot() {
    let mut story = at_work();
    story.press("rDEF");
    for round in 0..4 {
        match round {
            0 => story.change_node("pool-b-03", |node| node.unschedulable = true),
            1 => story.add_pod("shop/late-0", "pool-c-02", WorkloadKind::ReplicaSet, Vec::new(), 300, 256),
            2 => story.change_pod("shop/late-0", |pod| pod.phase = Phase::Succeeded),
            _ => story.silence("pool-a-04"),
        }
        story.run(15);
        story.press("EE");
        let plan = planned(&story);
        let (cluster, version) = (&story.app.model.cluster, story.app.model.settings.version);
        let placing = PlacingEnvironment::new(cluster, Snapshot::new(cluster, version), plan.made);
        let anew =
            Plan::new(plan.action.clone(), cluster, &placing, version, plan.made).expect("nodes are there");
        assert!(*plan == anew, "after round {round}");
    }
}

#[test]
fn no_key_sequence_panics_and_the_focus_is_always_on_a_pane() {
    use crossterm::event::KeyEvent;
    let mut keys: Vec<KeyEvent> = commands::COMMANDS
        .iter()
        .flat_map(|command| command.keys)
        .map(|chord| {
            let modifiers = if chord.ctrl { KeyModifiers::CONTROL } else { KeyModifiers::NONE };
            KeyEvent::new(chord.code, modifiers)
        })
        .collect();
    keys.extend("ab:=-/ßNoExecute".chars().map(|letter| KeyEvent::from(KeyCode::Char(letter))));
    for seed in 0..8 {
        let mut chance = fastrand::Rng::with_seed(seed);
        let mut story = if seed % 2 == 0 { Story::maintenance() } else { Story::incident() };
        for step in 0..600 {
            let key = keys[chance.usize(..keys.len())];
            if let Some(action) = commands::action(key, story.app.screen.key_focus()) {
                update(&mut story.app, action, story.now);
            }
            // Plans come when they come.
            if chance.u8(..3) > 0 {
                story.plan();
            }
            let screen = &story.app.screen;
            assert!(screen.panes().contains(&screen.focus), "{:?} at {step} of seed {seed}", screen.focus);
            if step % 7 == 0 {
                drawn(&mut story, [(120, 40), (80, 24), (61, 15)][step % 3]);
            }
            if step % 150 == 149 {
                story.run(1);
            }
        }
    }
}

#[test]
fn an_eviction_is_explained_where_the_focus_is() {
    let mut story = Story::incident();
    story.press("3<Down>z");
    expect(&mut story, "evictions", (120, 40));
}

#[test]
fn a_filter_is_typed_in_the_footer_and_named_in_the_title() {
    let mut story = Story::incident();
    story.press("/zone:a ready:no");
    expect(&mut story, "filter-typed", (100, 30));
    story.press("<Enter>");
    expect(&mut story, "filtered", (100, 30));
}

#[test]
fn help_is_the_command_table() {
    let mut story = Story::well();
    story.press("?");
    expect(&mut story, "help", (120, 48));
}

#[test]
fn before_anything_is_known_the_screen_waits_in_words() {
    expect(&mut Story::new(), "connecting", (100, 30));
}

#[test]
fn loading_counts_what_has_come() {
    let mut story = Story::well();
    story.health(FeedKind::Pods, FeedState::Listing { received: 61_500, expected: Some(150_000) });
    expect(&mut story, "loading", (120, 40));
    let mut story = Story::new();
    story.health(FeedKind::Nodes, FeedState::Listing { received: 1200, expected: Some(5000) });
    story.health(FeedKind::Leases, FeedState::Connecting);
    expect(&mut story, "loading-nodes", (100, 30));
}

#[test]
fn an_empty_cluster_says_so() {
    let mut story = Story::new();
    story.lists();
    expect(&mut story, "empty", (100, 30));
}

#[test]
fn a_lost_link_is_staleness_with_an_age_and_nothing_is_judged() {
    let mut story = Story::incident();
    let since = story.now;
    for kind in FeedKind::ALL {
        story.health(kind, FeedState::Broken { since, error: "connection reset by peer".into() });
    }
    story.run_blind(47);
    expect(&mut story, "stale", (120, 40));
}

#[test]
fn a_controller_that_stopped_is_named_as_the_reason_why_nothing_happens() {
    let mut story = Story::incident();
    story.led = false;
    story.run(50);
    expect(&mut story, "no-controller", (120, 40));
}

#[test]
fn what_may_not_be_listed_is_named_and_the_rest_works() {
    let mut story = Story::well();
    let error =
        "pods is forbidden: User \"sre@example.com\" cannot list resource \"pods\" at the cluster scope";
    story.health(FeedKind::Pods, FeedState::Forbidden { error: error.into() });
    let gone =
        story.app.model.cluster.pods().iter().map(|pod| Change::Pod(ObjectEvent::Deleted(pod.key.clone())));
    let gone = FeedEvent::Changes(gone.collect());
    story.app.on_watch_event(gone, story.now);
    story.run(1);
    expect(&mut story, "forbidden", (120, 40));
}

#[test]
fn a_zone_outage_shows_the_queue_and_its_slots() {
    let mut story = Story::well();
    for number in 1..=8 {
        story.silence(&format!("pool-b-{number:02}"));
    }
    story.run(68);
    expect(&mut story, "outage", (160, 48));
}

#[test]
fn master_disruption_is_told_in_words() {
    let mut story = Story::well();
    for zone in ["a", "b", "c"] {
        for number in 1..=10 {
            story.silence(&format!("pool-{zone}-{number:02}"));
        }
    }
    story.run(68);
    story.press("1z");
    expect(&mut story, "all-down", (120, 40));
}

#[test]
fn enforce_and_read_only_look_different_from_dry_run() {
    for (mode, name) in [(Mode::Enforce, "enforce"), (Mode::ReadOnly, "read-only")] {
        let mut story = Story::well();
        story.app.mode = mode;
        expect(&mut story, name, (100, 30));
    }
}

#[test]
fn a_revived_node_cancels_its_evictions_and_says_so() {
    let mut story = Story::incident();
    story.run(20);
    story.revive("pool-a-03");
    story.run(7);
    story.press("3/state:c<Enter>");
    expect(&mut story, "cancelled", (120, 40));
}

#[test]
fn a_terminal_too_small_gets_the_answers_in_short() {
    expect(&mut Story::incident(), "small", (40, 24));
}

#[test]
fn text_from_the_cluster_is_shown_and_never_obeyed() {
    let mut story = hostile();
    for size in [(120, 40), (220, 60)] {
        for keys in ["2", "w", "3", "4", "1", "2<Enter>", "/zone\u{202e}"] {
            story.press(keys);
            for (place, cell) in drawn(&mut story, size).content.iter().enumerate() {
                let bad = |letter: char| {
                    letter.is_control()
                        || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
                };
                assert!(!cell.symbol().chars().any(bad), "{:?} at {place} after {keys}", cell.symbol());
            }
        }
        story.press("<Esc><Esc><Esc>w");
    }
    expect(&mut hostile(), "hostile", (120, 40));
}

#[test]
fn no_size_makes_a_panic() {
    let mut states = [Story::incident(), Story::new(), hostile()];
    for story in &mut states {
        for keys in ["", "3", "4", "1", "2<Enter>", "w", "z", "?", "?/ab", "<Esc><Esc>2r", "<Esc>t"] {
            if !keys.contains("<Enter>") || !story.app.screen.nodes.list.is_empty() {
                story.press(keys);
            }
            for width in [1, 2, 3, 5, 9, 20, 40, 59, 60, 61, 80, 99, 100, 120, 300] {
                for height in [1, 2, 3, 5, 14, 15, 18, 19, 24, 30, 80] {
                    let buffer = drawn(story, (width, height));
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
fn a_plan_reads_without_colours() {
    let mut story = at_work();
    story.press("TTTrDEF");
    assert_eq!(story.app.screen.theme(), ThemeName::Mono);
    gallery("plan-mono", &drawn(&mut story, (120, 40)), Theme::bundled(ThemeName::Mono));
    let mut colourful = at_work();
    colourful.press("rDEF");
    assert_eq!(
        snapshot::plain(&drawn(&mut story, (120, 40))),
        snapshot::plain(&drawn(&mut colourful, (120, 40)))
    );
}

/// The maintenance story in enforce, before the plan to drain the node that is to be worked on.
fn about_to_drain() -> Story {
    let mut story = at_work();
    story.press(":reason new kernel<Enter>:enforce 30m<Enter>rDEF");
    story
}

#[test]
fn a_command_is_found_by_words_and_its_mistakes_are_told_beside_it() {
    let mut story = Story::well();
    story.press(":zone");
    expect(&mut story, "palette", (100, 30));
    story.press("<Ctrl-u>enforce 1y<Enter>");
    expect(&mut story, "palette-fault", (160, 48));
    assert_eq!(story.app.mode, Mode::DryRun);
    story.press("<Ctrl-u>more columns<Enter>");
    assert!(story.app.screen.wide && story.app.screen.overlays.palette().is_none());
}

#[test]
fn what_is_grave_takes_words_that_name_what_is_grave_about_it() {
    let mut story = about_to_drain();
    story.press("A");
    expect(&mut story, "acting-asks", (120, 40));
    story.serve();
    for size in [(80, 24), (120, 40), (220, 60)] {
        expect(&mut story, "acting-confirm", size);
    }
    story.press("prod-eu<Enter>");
    assert!(story.app.acts.undertakings.is_empty(), "a part of the words is no yes");
    story.checked.guards.protected_namespaces.insert("shop".into());
    story.press("<Esc>A");
    story.serve();
    expect(&mut story, "acting-guarded", (120, 40));
    story.press("prod-eu override protected-namespace try-blocked<Enter>");
    story.serve();
    assert_eq!(story.app.acts.running().count(), 1);
}

#[test]
fn the_progress_tells_what_is_waited_for_and_why() {
    let mut story = about_to_drain();
    story.press("A");
    story.serve();
    story.press("prod-eu try-blocked<Enter>");
    story.serve();
    assert_eq!(story.app.screen.focus, Pane::Progress);
    story.now += Span::from_secs(3);
    for size in [(80, 24), (120, 40), (220, 60)] {
        expect(&mut story, "acting-progress", size);
    }
    story.press("p");
    expect(&mut story, "acting-paused", (120, 40));
    story.press("q");
    expect(&mut story, "acting-quit", (80, 24));
    story.press("<Esc>C");
    expect(&mut story, "acting-cancel", (100, 30));
    story.press("<Enter>");
    assert_eq!(story.app.acts.running().count(), 1, "Enter alone cancels nothing");
    story.press("C<Tab><Enter>");
    story.serve();
    expect(&mut story, "acting-cancelled", (120, 40));
}

#[test]
fn the_report_stands_where_the_progress_was_and_the_mode_ends_by_itself() {
    let mut story = Story::maintenance();
    story.press("2/pool-b-04<Enter>:enforce 1m<Enter>rDEFA");
    story.serve();
    story.agree();
    assert_eq!(story.app.acts.running().count(), 1);
    story.run(20);
    story.reap();
    assert_eq!(story.app.acts.running().count(), 0);
    expect(&mut story, "acting-report", (120, 40));
    story.run(41);
    assert_eq!(story.app.mode, Mode::DryRun);
    story.press("<Esc>c");
    story.press("A");
    expect(&mut story, "acting-locked", (120, 40));
    assert!(story.app.screen.overlays.question().is_none() && story.app.next_chore().is_none());
}

#[test]
fn a_drain_that_was_cut_off_stands_on_a_line_until_it_is_answered() {
    let mut story = at_work();
    story.change_node("pool-a-01", |node| node.unschedulable = true);
    story.past = Some(cut_off(&story));
    story.app.find_unfinished();
    story.serve();
    expect(&mut story, "acting-unfinished", (160, 48));
    expect(&mut story, "acting-unfinished", (80, 24));
    story.press("R");
    assert!(story.app.screen.overlays.question().is_none(), "in dry-run nothing is resumed");
    story.press("U");
    story.serve();
    expect(&mut story, "acting-undo-locked", (120, 40));
    story.press("<Esc>:enforce<Enter>R");
    story.serve();
    expect(&mut story, "acting-resume", (120, 40));
    story.press("<Esc>X");
    assert!(story.app.acts.unfinished.is_empty());
}

/// A drain of the node that was cut off after it had cordoned it.
fn cut_off(story: &Story) -> JournaledOperation {
    let node = story.app.model.cluster.node(&"pool-a-01".into()).expect("there");
    let uid = node.uid.clone();
    let line = |kind| JournalLine {
        at: BEGIN - Span::from_secs(600),
        operation: "drain-20260102-025000-zx81c".into(),
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
        undo: Some(NodeUndo { node: "pool-a-01".into(), uid, steps: vec![UndoStep::Uncordon] }),
    };
    let lines = [line(LineKind::Started(Box::new(start))), line(request)];
    operations(&lines).remove(0)
}

#[test]
fn every_theme_draws_every_state() {
    for theme in ThemeName::ALL {
        let mut story = Story::incident();
        while story.app.screen.theme() != theme {
            story.press("T");
        }
        let buffer = drawn(&mut story, (160, 48));
        gallery(&format!("theme-{}", theme.as_str()), &buffer, Theme::bundled(theme));
        assert_eq!(
            snapshot::plain(&buffer),
            snapshot::plain(&drawn(&mut Story::incident(), (160, 48))),
            "the same words"
        );
    }
}

/// A cluster whose every text wants to be more than text.
fn hostile() -> Story {
    let mut story = Story::well();
    let evil = "\x1b]0;owned\x07\x1b[2J\u{202e}gnp.exe\u{200b}\r\n\x1b[31m";
    let now = story.now;
    story.change_node("pool-a-01", |node| {
        let condition = Condition {
            kind: format!("Evil{evil}").into(),
            status: ConditionStatus::True,
            reason: evil.into(),
            message: evil.into(),
            last_heartbeat: Some(now),
            last_transition: Some(now),
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
        node.taints = [taint(&format!("evil/{evil}"), TaintEffect::NoExecute, Some(now))].into();
        let mut labels = (*node.labels).clone();
        labels.insert("topology.kubernetes.io/zone".into(), format!("z{evil}").into());
        labels.insert(format!("node-role.kubernetes.io/{evil}").into(), "".into());
        labels.insert("node.kubernetes.io/instance-type".into(), evil.into());
        node.labels = labels.into();
    });
    story.add_node(&format!("node{evil}"), "a");
    story.add_pod(
        &format!("ns{evil}/pod{evil}-1"),
        "pool-a-01",
        WorkloadKind::ReplicaSet,
        Vec::new(),
        100,
        100,
    );
    story.app.model.connection.context = evil.into();
    story.app.model.connection.server = evil.into();
    story.app.model.connection.identity = Some(evil.into());
    story.app.model.connection.server_version = Some(evil.into());
    story.app.on_watch_event(FeedEvent::Trouble(format!("it broke: {evil}")), now);
    story.health(FeedKind::Budgets, FeedState::Broken { since: now, error: evil.into() });
    story.run(3);
    story.terminate("shop/cart-00-x7f2q", &[evil]);
    story.run(1);
    assert!(story.app.model.cluster.pod(&Key::new(&format!("ns{evil}"), &format!("pod{evil}-1"))).is_some());
    story
}

fn drawn(story: &mut Story, (width, height): (u16, u16)) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a buffer");
    let rows = terminal.draw_app(&story.app, story.now).expect("a buffer");
    story.app.screen.drawn(&rows);
    terminal.backend().buffer().clone()
}

/// Compares a screen with its golden file.
fn expect(story: &mut Story, name: &str, size: (u16, u16)) {
    let buffer = drawn(story, size);
    let name = format!("{name}-{}x{}", size.0, size.1);
    gallery(&name, &buffer, Theme::bundled(story.app.screen.theme()));
    let text = snapshot::plain(&buffer);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/screens").join(format!("{name}.txt"));
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &text).expect("tests/screens can be written");
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    assert!(golden == text, "{name} differs; with UPDATE=1 read the difference\n{text}");
}

/// Writes a screen for looking at, where that is asked for.
fn gallery(name: &str, buffer: &Buffer, theme: &Theme) {
    if let Some(folder) = std::env::var_os("GALLERY") {
        snapshot::write(&Path::new(&folder).join(format!("{name}.svg")), buffer, theme).expect("the gallery");
    }
}

#[test]
fn the_story_begins_where_it_says() {
    assert_eq!(BEGIN.to_time(), "2026-01-02T03:00:00Z");
    assert_eq!(Story::well().now, BEGIN + Span::from_secs(60));
    assert!(Timestamp::EPOCH < BEGIN);
}
