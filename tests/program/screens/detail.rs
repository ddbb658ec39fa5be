//! The detail of a node or pod, with its actions, its YAML and its timeline.

use std::sync::Arc;

use kordon::{
    app::{Detail, Pane, detail::SubjectReport, preview::Preview},
    model::suggestions::{Means, Numbers, SuggestionKind},
    ui::snapshot,
};
use kordon_core::{
    cluster::{
        ClusterEvent, ConditionStatus, DrainClaim, FetchedObject, ObjectEvents, ObjectRead, TaintEffect,
    },
    operation::Guards,
    plan::Action,
};
use kordon_time::{ClusterTime, Span};

use super::{at_work, drawn, expect};
use crate::dashboard_fixture::{DashboardFixture, set_condition, taint};

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
fn an_eviction_is_explained_where_the_focus_is() {
    let mut fixture = DashboardFixture::incident();
    fixture.press("3<Down>z");
    expect(&mut fixture, "evictions", (120, 40));
}
