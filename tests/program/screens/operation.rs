//! Confirmations, and the progress and report of an operation.

use kordon::{
    app::{
        Mode, Pane,
        preferences::{ContextMark, MarkColour},
    },
    k8s::connect::EMBEDDED,
    ui::snapshot,
};
use kordon_core::cluster::{ConditionStatus, PodReady, WorkloadKind};
use kordon_time::{ClusterTime, Span};
use ratatui::{buffer::Cell, style::Color};

use super::{about_to_drain, at_work, drawn, expect, interrupted};
use crate::dashboard_fixture::DashboardFixture;

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
