//! Plans, from their options to their diff.

use kordon::{
    app::{
        Pane, ThemeName,
        overlays::Overlay,
        pane::{InputTarget, KeyFocus},
        preview::Preview,
    },
    ui::{Theme, snapshot},
};
use kordon_core::{
    cluster::{Phase, WorkloadKind},
    placement::Snapshot,
    plan::{Action, DrainOptions, PlacingEnvironment, Plan},
};
use kordon_time::Span;

use super::{at_work, drawn, expect, expect_picture, gallery};
use crate::dashboard_fixture::DashboardFixture;

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
