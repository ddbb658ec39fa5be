//! The approval of an operation: what it needs, what it asks the operator, what it refuses, and when it asks again.

use kordon_core::{
    cluster::{
        Change, Condition, ConditionStatus, DrainClaim, FeedKind, Key, Known, LocalVolume, MaintenanceNote,
        NodeName, READY, Uid, WorkloadKind,
    },
    engine::ServerVersion,
    operation::{
        Confirmation, Guards, OperationOptions, Overrides,
        approval::{
            Answer, Approval, ApprovalRefusal, Approved, Checks, Decision, Need, NotStarted, Operator,
            PriorOperation, Prompt, Situation, Started, Terms, Wait, Watches,
        },
    },
    plan::{
        Action, DrainOptions, MetadataEdits, MetadataField, Permission, RemovalOptions, TaintEdits, Undo,
        undo::{NodeUndo, UndoStep},
    },
};
use kordon_time::Span;

use crate::plan_fixture::{NEWEST, NOW, PlanFixture, least, own, taint, uid};

#[test]
fn a_proposal_is_planned_checked_asked_planned_again_and_started_in_this_order() {
    let desk = Desk::new(&["n1", "n2"]);
    let mut approval = desk.apply(cordon(&["n1"]));
    desk.serve(&mut approval);
    assert_eq!(approval.waits_for(), Some(Wait::Answer));
    let needs = desk.answer(&mut approval, Answer::Yes);
    assert_eq!(needs, ["plan", "start"]);
    let approved = approved(approval);
    let options = approved.operation.options();
    assert_eq!((&*approved.title, &*options.id, &*options.by), ("cordon n1", "the-id", "alice"));
    assert!(approved.plan.is_some() && approved.undoes.is_none());

    let mut approval = desk.apply(cordon(&["n1"]));
    assert_eq!(desk.serve(&mut approval), ["plan", "checks", "answer"]);
    // If the operator already looks at a plan, the approval does not make the plan again before it asks.
    let shown = Box::new(desk.fixture.plan(cordon(&["n1"])));
    let mut approval = Approval::apply(cordon(&["n1"]), Some(shown), desk.terms(), &desk.situation());
    assert_eq!(desk.serve(&mut approval), ["checks", "answer"]);
}

#[test]
fn an_operator_who_agreed_in_advance_is_not_asked_and_one_who_is_absent_is_refused() {
    let mut desk = Desk::new(&["n1", "n2"]);
    desk.operator = Operator::AgreedInAdvance;
    let mut approval = desk.apply(cordon(&["n1"]));
    assert_eq!(desk.serve(&mut approval), ["plan", "checks", "plan", "start"]);
    assert!(matches!(approval.decision(), Some(Decision::Approved(_))));
    desk.operator = Operator::Absent;
    let mut approval = desk.apply(cordon(&["n1"]));
    assert_eq!((desk.serve(&mut approval), refusal(&approval)), (vec![], ApprovalRefusal::NobodyToAsk));
}

#[test]
fn no_is_final_and_answers_that_nobody_asked_for_are_ignored() {
    let desk = Desk::new(&["n1", "n2"]);
    let mut approval = desk.apply(cordon(&["n1"]));
    approval.handle_answer(Answer::Yes, &desk.situation(), NOW);
    approval.handle_checks(Ok(Checks::default()), &desk.situation(), NOW);
    approval.handle_started(Err(NotStarted::Over("x".parse().unwrap())), &desk.situation(), NOW);
    assert_eq!(approval.waits_for(), Some(Wait::Plan), "none of them was asked for");
    desk.serve(&mut approval);
    assert_eq!(desk.answer(&mut approval, Answer::No), Vec::<&str>::new());
    assert!(matches!(approval.decision(), Some(Decision::Declined)));
    approval.handle_answer(Answer::Yes, &desk.situation(), NOW);
    assert!(matches!(approval.decision(), Some(Decision::Declined)) && approval.poll_need().is_none());
}

#[test]
fn the_more_is_at_stake_the_more_has_to_be_typed() {
    let mut desk = Desk::new(&["n1", "n2", "n3"]);
    desk.fixture.replica_set("web", 2, &["n1", "n2"]);
    assert_eq!(desk.prompt(cordon(&["n1"])), Prompt::Yes("Yes, cordon"));
    assert_eq!(desk.prompt(drain(&["n1"])), Prompt::Yes("Yes, drain"));
    assert_eq!(desk.prompt(drain(&["n1", "n2"])), words("here"));
    let tainted = Action::Taint { nodes: names(&["n1"]), edits: edits("a=b:NoExecute") };
    assert_eq!(desk.prompt(tainted), words("here"), "pods are deleted");
    let now = RemovalOptions { grace: Some(Span::ZERO), ..RemovalOptions::default() };
    let delete = |options| Action::Delete { pods: vec![Key::new("default", "web-0")], options };
    assert_eq!(desk.prompt(delete(RemovalOptions::default())), Prompt::Yes("Yes, delete"));
    assert_eq!(desk.prompt(delete(now)), words("here"));
    let label = Action::Metadata {
        nodes: names(&["n1"]),
        edits: MetadataEdits::parse(MetadataField::Labels, ["a=b"], false).expect("a label"),
    };
    assert_eq!(desk.prompt(label), Prompt::Yes("Yes, label"));
    desk.fixture.pod("alone", "n1", |_| {});
    assert_eq!(desk.prompt(drain(&["n1"])), words("here"), "a pod is lost");
    desk.claim("n1", "theirs", Span::ZERO);
    desk.guards.max_nodes = Some(1);
    assert_eq!(desk.prompt(drain(&["n1", "n2"])), words("here override max-nodes take-over"));
    desk.context = "\u{7}".into();
    assert_eq!(desk.prompt(cordon(&["n2", "n3"])), words("yes override max-nodes"), "it cannot be typed");
}

#[test]
fn without_budgets_evictions_start_and_deletions_have_to_be_overridden() {
    let mut desk = Desk::new(&["n1", "n2"]);
    desk.fixture.replica_set("web", 2, &["n1", "n2"]);
    let error = "forbidden".into();
    desk.fixture.cluster.apply(Change::Known(FeedKind::Budgets, Known::Forbidden { error }), &mut Vec::new());
    assert_eq!(desk.prompt(drain(&["n1"])), Prompt::Yes("Yes, drain"), "the server checks the budgets");
    let pods = vec![Key::new("default", "web-0")];
    let delete = Action::Delete { pods: pods.clone(), options: RemovalOptions::default() };
    assert_eq!(desk.prompt(delete.clone()), words("override unknown-budgets"), "nobody checks them");
    let options = DrainOptions { disable_eviction: true, ..DrainOptions::default() };
    let drain_by_deletion = Action::Drain { nodes: names(&["n1"]), options };
    assert_eq!(desk.prompt(drain_by_deletion), words("here override unknown-budgets"));
    desk.operator = Operator::AgreedInAdvance;
    let ApprovalRefusal::Objections(objections) = desk.refusal(delete) else { panic!("refused") };
    let text = "deletions ignore budgets, and which ones protect the pods is unknown: budgets cannot be listed \
                (missing permission: list poddisruptionbudgets.policy)";
    assert_eq!(objections[0].lines(), [format!("guard rail unknown-budgets: {text}")]);
}

#[test]
fn while_writing_is_locked_nothing_starts() {
    let mut desk = Desk::new(&["n1", "n2"]);
    desk.locked = Some("dry-run".into());
    assert_eq!(desk.refusal(cordon(&["n1"])), ApprovalRefusal::Locked("dry-run".into()));
    // If writing is locked during an approval, the approval ends at once, unless the start of the operation is already
    // being written to the journal.
    desk.locked = None;
    let mut approval = desk.apply(cordon(&["n1"]));
    approval.handle_lock("dry-run again");
    assert_eq!(refusal(&approval), ApprovalRefusal::Locked("dry-run again: nothing was written".into()));
    let mut approval = desk.starting(cordon(&["n1"]));
    assert!(!approval.can_be_cancelled());
    approval.handle_lock("dry-run again");
    assert_eq!(approval.waits_for(), Some(Wait::Start));
}

#[test]
fn nothing_starts_on_a_watch_that_is_not_live() {
    let mut desk = Desk::new(&["n1", "n2"]);
    desk.watches.nodes_live = false;
    assert_eq!(desk.refusal(cordon(&["n1"])), ApprovalRefusal::Stale("nodes"));
    desk.watches = Watches { pods_live: false, unlisted: Some("services".into()), ..live() };
    assert_eq!(desk.prompt(cordon(&["n1"])), Prompt::Yes("Yes, cordon"), "it touches no pods");
    assert_eq!(desk.refusal(drain(&["n1"])), ApprovalRefusal::Stale("pods"));
    desk.watches.pods_live = true;
    assert_eq!(desk.refusal(drain(&["n1"])), ApprovalRefusal::Unlisted("services".into()));
    desk.watches.nodes_live = false;
    assert_eq!(desk.undo_refusal(&["n1"]), ApprovalRefusal::Stale("nodes"));
}

#[test]
fn a_watch_that_breaks_while_the_question_stands_stops_the_start_and_not_the_question() {
    for (action, broken, kind) in [
        (drain(&["n1"]), Watches { pods_live: false, ..live() }, "pods"),
        (cordon(&["n1"]), Watches { nodes_live: false, ..live() }, "nodes"),
    ] {
        let mut desk = Desk::new(&["n1", "n2"]);
        desk.fixture.replica_set("web", 1, &["n1"]);
        let mut approval = desk.apply(action.clone());
        desk.serve(&mut approval);
        desk.watches = broken.clone();
        assert!(approval.question().is_some());
        assert_eq!(desk.answer(&mut approval, Answer::Yes), Vec::<&str>::new());
        assert_eq!(refusal(&approval), ApprovalRefusal::Stale(kind));
        // If the watch is live when the operator answers, the approval continues.
        desk.watches = live();
        let mut approval = desk.apply(action.clone());
        desk.serve(&mut approval);
        assert_eq!(desk.answer(&mut approval, Answer::Yes), ["plan", "start"]);
        // If the watch breaks while the plan is made again, the approval ends.
        let mut approval = desk.planning_again(action.clone());
        desk.watches = broken;
        desk.serve(&mut approval);
        assert_eq!(refusal(&approval), ApprovalRefusal::Stale(kind));
    }
    let mut desk = Desk::new(&["n1"]);
    let mut approval = desk.undo(&["n1"]);
    desk.serve(&mut approval);
    desk.watches.nodes_live = false;
    desk.answer(&mut approval, Answer::Yes);
    assert_eq!(refusal(&approval), ApprovalRefusal::Stale("nodes"));
}

#[test]
fn a_plan_that_fails_is_refused_by_a_filter_or_changes_nothing_ends_the_approval() {
    let mut desk = Desk::new(&["n1", "n2"]);
    let mut approval = desk.apply(cordon(&["n1"]));
    assert!(matches!(approval.poll_need(), Some(Need::Plan(_))));
    approval.handle_plan(Err("node n9 is not there".into()), &desk.situation(), NOW);
    assert_eq!(refusal(&approval), ApprovalRefusal::NoPlan("node n9 is not there".into()));
    desk.fixture.pod("alone", "n1", |_| {});
    let unforced = Action::Drain { nodes: names(&["n1"]), options: DrainOptions::default() };
    let ApprovalRefusal::PlanRefused { summary, pods } = desk.refusal(unforced) else { panic!() };
    assert_eq!((&*summary, pods.len()), ("1 pod refused without --force", 1));
    desk.fixture.node("n1", |node| node.unschedulable = true);
    let mut approval = desk.apply(cordon(&["n1"]));
    assert_eq!(desk.serve(&mut approval), ["plan"], "nothing is asked for what changes nothing");
    assert!(matches!(approval.decision(), Some(Decision::NothingToDo(_))));
}

#[test]
fn a_cordon_that_stands_already_says_that_it_gets_no_new_reason_and_end() {
    let mut desk = Desk::new(&["n1", "n2"]);
    desk.fixture.node("n1", |node| node.unschedulable = true);
    let why = |options: OperationOptions| {
        let terms = Terms { options, ..desk.terms() };
        let mut approval = Approval::apply(cordon(&["n1"]), None, terms, &desk.situation());
        desk.serve(&mut approval);
        let Some(Decision::NothingToDo(why)) = approval.decision() else { panic!("{approval:?}") };
        why.clone()
    };
    assert_eq!(why(OperationOptions::default()), "it changes nothing");
    let until = Some(NOW + Span::from_secs(3600));
    let reason = "a new disk".to_owned();
    for options in [
        OperationOptions { until, ..OperationOptions::default() },
        OperationOptions { reason, ..OperationOptions::default() },
    ] {
        assert!(why(options).contains("uncordon it first"));
    }
}

#[test]
fn permissions_are_checked_first_those_of_an_undo_too() {
    let mut desk = Desk::new(&["n1", "n2"]);
    let patch = Permission::on_node("patch", &"n1".into());
    let get = Permission::on_node("get", &"n1".into());
    assert_eq!(desk.wanted(desk.apply(cordon(&["n1"]))), [get.clone(), patch.clone()]);
    desk.fixture.node("n1", |node| node.unschedulable = true);
    let mut wanted = desk.wanted(desk.undo(&["n1"]));
    wanted.sort();
    assert_eq!(wanted, [get, patch.clone()]);
    desk.missing = vec![patch.clone()];
    assert_eq!(desk.refusal(cordon(&["n2"])), ApprovalRefusal::Permissions(vec![patch.clone()]));
    assert_eq!(desk.undo_refusal(&["n1"]), ApprovalRefusal::Permissions(vec![patch.clone()]));
    desk.operator = Operator::AgreedInAdvance;
    assert_eq!(desk.undo_refusal(&["n1"]), ApprovalRefusal::Permissions(vec![patch]));
    let mut approval = desk.apply(cordon(&["n2"]));
    approval.poll_need();
    approval.handle_plan(Ok(Box::new(desk.fixture.plan(cordon(&["n2"])))), &desk.situation(), NOW);
    approval.handle_checks(Err("timeout".into()), &desk.situation(), NOW);
    assert_eq!(refusal(&approval), ApprovalRefusal::NotChecked("timeout".into()));
}

#[test]
fn a_permission_that_is_gone_when_the_operator_is_asked_again_is_named() {
    let mut desk = Desk::new(&["n1", "n2"]);
    let mut approval = desk.apply(drain(&["n1"]));
    desk.serve(&mut approval);
    desk.fixture.pod("alone", "n1", |_| {});
    desk.missing = vec![Permission::on_node("patch", &"n1".into())];
    assert_eq!(desk.answer(&mut approval, Answer::Yes), ["plan", "checks"]);
    assert_eq!(refusal(&approval), ApprovalRefusal::Permissions(desk.missing));
}

#[test]
fn a_fresh_claim_of_somebody_else_is_asked_about_up_front_an_old_or_own_one_is_not() {
    let mut desk = Desk::new(&["n1", "n2"]);
    for action in [drain(&["n1"]), cordon(&["n1"])] {
        desk.claim("n1", "theirs", Span::from_secs(89));
        assert_eq!(desk.prompt(action.clone()), words("take-over"));
        desk.claim("n1", "theirs", Span::from_secs(90));
        assert!(matches!(desk.prompt(action), Prompt::Yes(_)), "it is old");
    }
    desk.fixture.node("n1", |node| node.unschedulable = true);
    desk.claim("n1", "theirs", Span::ZERO);
    let mut undo = desk.undo(&["n1"]);
    desk.serve(&mut undo);
    assert_eq!(undo.question().expect("asked").prompt, words("take-over"));
    assert!(desk.answer(&mut undo, Answer::Yes).contains(&"start"));
    assert!(approved(undo).operation.options().take_over, "the operation takes it over");
    desk.claim("n1", "drain-1", Span::ZERO);
    let mut undo = desk.undo(&["n1"]);
    desk.serve(&mut undo);
    assert_eq!(undo.question().expect("asked").prompt, Prompt::Yes("Yes, undo"), "its own");
    assert!(desk.answer(&mut undo, Answer::Yes).contains(&"start"));
}

/// A running maintenance renews the note of only one of its nodes.
#[test]
fn a_running_maintenance_of_the_node_is_asked_about_up_front_a_stopped_or_own_one_is_not() {
    let mut desk = Desk::new(&["n1", "n2"]);
    desk.maintain("n1", "theirs", Span::from_secs(3600));
    desk.maintain("n2", "theirs", Span::from_secs(179));
    assert_eq!(desk.prompt(drain(&["n1"])), words("take-over"));
    assert_eq!(desk.prompt(cordon(&["n1"])), words("take-over"));
    assert_eq!(desk.prompt(Action::DeleteNode { nodes: names(&["n1"]) }), words("take-over"));
    let tainted = |text: &str| Action::Taint { nodes: names(&["n1"]), edits: edits(text) };
    assert_eq!(desk.prompt(tainted("a=b:NoExecute")), words("take-over"));
    assert_eq!(desk.prompt(tainted("a=b:NoSchedule")), Prompt::Yes("Yes, taint"));
    desk.fixture.node("n1", |node| node.unschedulable = true);
    assert_eq!(desk.prompt(Action::Uncordon { nodes: names(&["n1"]) }), words("take-over"));
    let mut undo = desk.undo(&["n1"]);
    desk.serve(&mut undo);
    assert_eq!(undo.question().expect("asked").prompt, words("take-over"));

    desk.fixture.node("n1", |node| node.unschedulable = false);
    desk.operator = Operator::AgreedInAdvance;
    let refused = desk.refusal(drain(&["n1"])).lines();
    assert_eq!(refused, ["n1 is in theirs, a maintenance of bob (--take-over overrides this)"]);
    // The drain of a wave has the id of its maintenance.
    let mut terms = desk.terms();
    terms.options.id = "theirs".parse().unwrap();
    let mut wave = Approval::apply(drain(&["n1"]), None, terms, &desk.situation());
    assert!(desk.serve(&mut wave).contains(&"start"));
    desk.maintain("n2", "theirs", Span::from_secs(180));
    let mut approval = desk.apply(drain(&["n1"]));
    assert!(desk.serve(&mut approval).contains(&"start"), "the maintenance was stopped");
}

/// A maintenance that was killed during a drain leaves a claim with its own id. The resumed wave takes the claim over at
/// once, and removes it even if every pod has left.
#[test]
fn the_claim_of_its_own_maintenance_does_not_stop_a_wave_and_is_not_left_behind() {
    let mut desk = Desk::new(&["n1", "n2"]);
    desk.operator = Operator::AgreedInAdvance;
    desk.fixture.replica_set("web", 2, &["n1", "n2"]);
    desk.claim("n1", "m1", Span::ZERO);
    let wave = |desk: &Desk, node: &str| {
        let mut terms = desk.terms();
        terms.options.id = "m1".parse().unwrap();
        let mut wave = Approval::apply(drain(&[node]), None, terms, &desk.situation());
        desk.serve(&mut wave);
        wave
    };
    assert!(approved(wave(&desk, "n1")).operation.ended().is_none());
    let refused = desk.refusal(drain(&["n1"])).lines();
    assert_eq!(refused, ["bob is draining n1 (--take-over overrides this)"]);

    let mut desk = Desk::new(&["n1", "n2"]);
    desk.operator = Operator::AgreedInAdvance;
    desk.fixture.node("n1", |node| node.unschedulable = true);
    let is_idle = |desk: &Desk| matches!(wave(desk, "n1").decision(), Some(Decision::NothingToDo(_)));
    assert!(is_idle(&desk), "the node is cordoned and empty");
    desk.claim("n1", "m1", Span::ZERO);
    assert!(approved(wave(&desk, "n1")).operation.ended().is_none());
    desk.claim("n1", "theirs", Span::from_secs(90));
    assert!(is_idle(&desk), "the claim of another operation is not removed");
}

#[test]
fn what_is_overridden_in_advance_is_not_asked_and_anything_else_is_refused_after_yes() {
    let mut desk = Desk::new(&["n1", "n2", "n3"]);
    desk.fixture
        .replica_set("web", 1, &["n1"])
        .budget("web", |budget| budget.min_available = least(9))
        .sync();
    desk.claim("n1", "theirs", Span::ZERO);
    desk.guards.max_nodes = Some(1);
    let action = drain(&["n1", "n2"]);
    assert_eq!(desk.prompt(action.clone()), words("here override max-nodes take-over try-blocked"));
    desk.operator = Operator::AgreedInAdvance;
    let ApprovalRefusal::Objections(objections) = desk.refusal(action.clone()) else { panic!() };
    let flags: Vec<String> = objections.iter().map(|objection| objection.flag()).collect();
    assert_eq!(flags, ["--try-blocked", "--override max-nodes", "--take-over"]);
    let refusal = ApprovalRefusal::Objections(objections).lines();
    assert!(refusal.iter().any(|line| line.contains("bob is draining n1 (--take-over")), "{refusal:?}");
    desk.overrides = Overrides { guards: vec!["max-nodes".into()], take_over: true, try_blocked: true };
    let mut approval = desk.apply(action.clone());
    assert_eq!(desk.serve(&mut approval), ["plan", "checks", "plan", "start"]);
    desk.operator = Operator::Present;
    assert_eq!(desk.prompt(action), words("here"), "only what is left");
}

#[test]
fn one_more_pod_that_its_controller_recreates_is_covered_by_what_was_agreed_to() {
    let mut desk = Desk::new(&["n1", "n2"]);
    desk.fixture.replica_set("web", 3, &["n1"]);
    let mut approval = desk.apply(drain(&["n1"]));
    desk.serve(&mut approval);
    desk.fixture.pod("web-9", "n1", |pod| own(pod, WorkloadKind::ReplicaSet, "web"));
    desk.fixture.pod("web-0", "n1", |pod| pod.uid = uid("Pod", "a later web-0"));
    assert_eq!(desk.answer(&mut approval, Answer::Yes), ["plan", "start"]);
    let plan = approved(approval).plan.expect("a plan");
    assert_eq!(plan.pods.len(), 2, "the newest plan is applied");
}

#[test]
fn each_new_kind_of_risk_is_asked_about_once() {
    let mut desk = Desk::new(&["n1", "n2"]);
    desk.fixture.replica_set("web", 2, &["n1", "n2"]);
    let mut approval = desk.apply(drain(&["n1"]));
    desk.serve(&mut approval);
    desk.fixture.pod("alone", "n1", |_| {});
    let again = ["plan", "checks", "answer"];
    assert_eq!(desk.answer(&mut approval, Answer::Yes), again);
    let question = approval.question().expect("asked").clone();
    assert_eq!(drifts(&approval), ["pod default/alone would be lost: no controller recreates it"]);
    assert_eq!(question.prompt, words("here"), "it is graver than before");
    desk.fixture.pod("web-7", "n1", |pod| {
        own(pod, WorkloadKind::ReplicaSet, "web");
        pod.storage.add(LocalVolume::EmptyDir);
    });
    desk.fixture.pod("alone-too", "n1", |_| {});
    assert_eq!(desk.answer(&mut approval, Answer::Yes), again);
    assert_eq!(drifts(&approval), ["data of pod default/web-7 would be lost"]);
    desk.fixture.budget("web", |budget| budget.min_available = least(9)).sync();
    assert_eq!(desk.answer(&mut approval, Answer::Yes), again);
    assert!(drifts(&approval).iter().all(|drift| drift.contains("blocked by default/web")));
    assert_eq!(approval.question().expect("asked").prompt, words("here try-blocked"));
    // The operator has agreed to every kind of risk, so another pod with these risks needs no question.
    desk.fixture.pod("alone-again", "n1", |pod| pod.storage.add(LocalVolume::Memory));
    assert_eq!(desk.answer(&mut approval, Answer::Yes), ["plan", "start"]);
}

#[test]
fn another_node_of_that_name_and_another_write_are_asked_about_less_is_not() {
    let mut desk = Desk::new(&["n1", "n2", "n3"]);
    let mut approval = desk.apply(drain(&["n1", "n2"]));
    desk.serve(&mut approval);
    desk.fixture.node("n1", |node| node.uid = uid("Node", "a new n1"));
    desk.answer(&mut approval, Answer::Yes);
    assert_eq!(drifts(&approval), ["node n1 has changed"]);
    desk.fixture.node("n2", |node| node.unschedulable = true);
    assert_eq!(desk.answer(&mut approval, Answer::Yes), ["plan", "start"], "it is cordoned: less is written");

    desk.fixture.node("n3", |node| node.taints = [taint("a=x:NoSchedule")].into());
    let mut approval = desk.apply(Action::Taint { nodes: names(&["n3"]), edits: edits("a-") });
    desk.serve(&mut approval);
    desk.fixture.node("n3", |node| {
        node.taints = [taint("a=x:NoSchedule"), taint("a=y:NoExecute")].into();
    });
    desk.answer(&mut approval, Answer::Yes);
    assert_eq!(drifts(&approval), ["node n3 has changed"], "one more taint would be removed");
    desk.fixture.node("n3", |node| {
        node.taints = [taint("a=x:NoSchedule"), taint("a=y:NoExecute"), taint("b=c:NoSchedule")].into();
    });
    assert_eq!(desk.answer(&mut approval, Answer::Yes), ["plan", "start"], "what is removed is the same");
}

#[test]
fn of_pods_that_were_named_another_one_of_the_name_is_asked_about() {
    let mut desk = Desk::new(&["n1", "n2"]);
    desk.fixture.replica_set("web", 3, &["n1", "n2"]);
    let evict =
        Action::Evict { pods: vec![Key::new("default", "web-0")], options: RemovalOptions::default() };
    let mut approval = desk.apply(evict);
    desk.serve(&mut approval);
    desk.fixture.pod("web-0", "n1", |pod| pod.uid = uid("Pod", "a later web-0"));
    desk.answer(&mut approval, Answer::Yes);
    assert_eq!(drifts(&approval), ["another pod has the name default/web-0 now"]);
    assert_eq!(desk.answer(&mut approval, Answer::Yes), ["plan", "start"]);
}

#[test]
fn a_taint_that_would_delete_pods_now_is_graver_and_asked_about() {
    let mut desk = Desk::new(&["n1", "n2"]);
    let tainted = Action::Taint { nodes: names(&["n1"]), edits: edits("a=b:NoExecute") };
    let mut approval = desk.apply(tainted);
    desk.serve(&mut approval);
    assert_eq!(approval.question().expect("asked").prompt, Prompt::Yes("Yes, taint"));
    desk.fixture.replica_set("web", 1, &["n1"]);
    desk.answer(&mut approval, Answer::Yes);
    assert_eq!(drifts(&approval), ["pod default/web-0: deleted for taint a; budgets are ignored"]);
    assert_eq!(approval.question().expect("asked").prompt, words("here"));
}

#[test]
fn a_claim_or_a_guard_rail_that_comes_while_the_question_stands_is_asked_about() {
    let mut desk = Desk::new(&["n1", "n2"]);
    let mut approval = desk.apply(drain(&["n1"]));
    desk.serve(&mut approval);
    desk.claim("n1", "theirs", Span::ZERO);
    desk.answer(&mut approval, Answer::Yes);
    assert_eq!(approval.question().expect("asked").prompt, words("take-over"));
    // n2, the other node of the zone, fails, so n1 is the last Ready node.
    desk.fixture.node("n2", |node| {
        let down = Condition { kind: READY.into(), status: ConditionStatus::Unknown, ..Condition::default() };
        node.conditions = [down].into();
    });
    desk.answer(&mut approval, Answer::Yes);
    assert_eq!(approval.question().expect("asked").prompt, words("override last-ready take-over"));
    assert!(desk.answer(&mut approval, Answer::Yes).contains(&"start"));
}

#[test]
fn a_plan_that_is_refused_or_idle_when_it_is_made_again_ends_the_approval() {
    let mut desk = Desk::new(&["n1", "n2"]);
    let unforced = Action::Drain { nodes: names(&["n1"]), options: DrainOptions::default() };
    let mut approval = desk.apply(unforced);
    desk.serve(&mut approval);
    desk.fixture.pod("alone", "n1", |_| {});
    desk.answer(&mut approval, Answer::Yes);
    assert!(matches!(refusal(&approval), ApprovalRefusal::PlanRefused { .. }));
    let mut approval = desk.apply(cordon(&["n2"]));
    desk.serve(&mut approval);
    desk.fixture.node("n2", |node| node.unschedulable = true);
    desk.answer(&mut approval, Answer::Yes);
    assert!(matches!(approval.decision(), Some(Decision::NothingToDo(_))));
    let mut approval = desk.planning_again(drain(&["n1"]));
    approval.poll_need();
    approval.handle_plan(Err("node n1 is not there".into()), &desk.situation(), NOW);
    assert_eq!(refusal(&approval), ApprovalRefusal::NoPlan("node n1 is not there".into()));
}

#[test]
fn after_yes_in_advance_new_risk_is_a_notice_and_what_needs_an_override_is_refused() {
    let mut desk = Desk::new(&["n1", "n2"]);
    desk.operator = Operator::AgreedInAdvance;
    let mut approval = desk.planning_again(drain(&["n1"]));
    desk.fixture.pod("alone", "n1", |_| {});
    assert_eq!(desk.serve(&mut approval), ["plan", "start"]);
    let reported = approval.poll_notice().expect("reported").text;
    assert_eq!(
        reported,
        "since the plan was made: pod default/alone would be lost: no controller recreates it"
    );
    let mut approval = desk.planning_again(drain(&["n1"]));
    desk.claim("n1", "theirs", Span::ZERO);
    assert_eq!(desk.serve(&mut approval), ["plan"]);
    assert!(matches!(refusal(&approval), ApprovalRefusal::Objections(_)));
}

#[test]
fn what_the_journal_refuses_is_not_started() {
    let desk = Desk::new(&["n1", "n2"]);
    let mut approval = desk.starting(cordon(&["n1"]));
    let why = NotStarted::Journal("disk full".into());
    approval.handle_started(Err(why.clone()), &desk.situation(), NOW);
    assert_eq!(refusal(&approval), ApprovalRefusal::NotStarted(why));
}

#[test]
fn it_can_be_cancelled_until_the_journal_is_written() {
    let desk = Desk::new(&["n1", "n2"]);
    let mut approval = desk.apply(cordon(&["n1"]));
    assert!(approval.can_be_cancelled(), "while the plan is made");
    desk.serve(&mut approval);
    assert!(approval.can_be_cancelled(), "while the question stands");
    assert!(desk.planning_again(cordon(&["n1"])).can_be_cancelled());
    assert!(!desk.starting(cordon(&["n1"])).can_be_cancelled());
}

#[test]
fn a_drain_is_resumed_on_those_of_its_nodes_that_are_still_the_same() {
    let mut desk = Desk::new(&["n1", "n2", "n3"]);
    let prior = prior(&["n1", "n2", "n3"], Some(DrainOptions { force: true, ..DrainOptions::default() }));
    desk.fixture.node("n2", |node| node.uid = uid("Node", "a new n2"));
    desk.fixture.node("n1", |node| node.unschedulable = true);
    let mut approval = Approval::resume(prior.clone(), desk.terms(), &desk.situation(), NOW);
    let reported: Vec<_> =
        std::iter::from_fn(|| approval.poll_notice()).map(|notice| notice.subject).collect();
    assert_eq!(reported, ["node/n2"]);
    assert_eq!(desk.serve(&mut approval), ["plan", "checks", "answer"]);
    let plan = approval.plan().expect("a plan");
    let Action::Drain { options, .. } = &plan.action else { panic!() };
    assert!(plan.nodes.iter().map(|node| &*node.node).eq(["n1", "n3"]) && options.force);
    assert!(
        desk.answer(&mut approval, Answer::Yes).contains(&"start"),
        "what is done already is no reason not to"
    );
    assert_eq!(&*approved(approval).operation.options().reason, "new kernel");

    let resume = |prior| Approval::resume(prior, desk.terms(), &desk.situation(), NOW);
    let gone = PriorOperation { nodes: vec![("n9".into(), uid("Node", "n9"))], ..prior.clone() };
    assert_eq!(refusal(&resume(gone)), ApprovalRefusal::NoNodesLeft);
    let ended = PriorOperation { end: Some("done".into()), ..prior.clone() };
    let over = ApprovalRefusal::NotStarted(NotStarted::Over(prior.id.clone()));
    assert_eq!(refusal(&resume(ended)), over);
    assert_eq!(refusal(&resume(PriorOperation { drain: None, ..prior })), over);
}

/// A resume asks for the same confirmation as the start, although less is left to do. A resume does not warn of the
/// drain claims (annotations of nodes) that its own operation has left.
#[test]
fn a_resume_is_confirmed_as_its_start_was_and_does_not_warn_of_its_own_claim() {
    let mut desk = Desk::new(&["n1", "n2", "n3"]);
    desk.fixture.replica_set("web", 2, &["n1", "n2"]);
    let options = Some(DrainOptions::default());
    let asked = |desk: &Desk, prior: PriorOperation| {
        let mut approval = Approval::resume(prior, desk.terms(), &desk.situation(), NOW);
        desk.serve(&mut approval);
        let warnings: Vec<String> =
            approval.plan().expect("a plan").warnings.iter().map(ToString::to_string).collect();
        (approval.question().expect("asked").prompt.clone(), warnings)
    };
    // The nodes are cordoned already, so the plan of the resume cordons none of them.
    assert_eq!(desk.prompt(drain(&["n1", "n2"])), words("here"), "the start");
    for node in ["n1", "n2"] {
        desk.fixture.node(node, |node| node.unschedulable = true);
        desk.claim(node, "drain-1", Span::ZERO);
    }
    let two = prior(&["n1", "n2"], options.clone());
    let (prompt, warnings) = asked(&desk, two.clone());
    assert_eq!(prompt, words("here"), "a journal of an older version does not tell: two nodes are grave");
    assert!(!warnings.iter().any(|warning| warning.contains("drain")), "{warnings:?}");
    // A resume asks for the confirmation that is in the journal, not for one that the remaining pods need: the pod that
    // required `Confirmation::Grave` may have been evicted before the interruption.
    let one = prior(&["n1"], options);
    let with = |confirmation| PriorOperation { confirmation: Some(confirmation), ..one.clone() };
    assert_eq!(asked(&desk, with(Confirmation::Plain)).0, Prompt::Yes("Yes, resume"));
    assert_eq!(asked(&desk, with(Confirmation::Grave)).0, words("here"));
    // The start had to override the guard rails max-nodes and max-zone-percent. The resume has to override them too,
    // although only the operation's own cordons violate them.
    desk.guards.max_zone_percent = Some(50);
    desk.guards.max_nodes = Some(1);
    assert_eq!(asked(&desk, two.clone()).0, words("here override max-nodes max-zone-percent"));
    desk.claim("n1", "theirs", Span::ZERO);
    let (prompt, warnings) = asked(&desk, one);
    assert_eq!(prompt, words("override max-zone-percent take-over"));
    assert!(warnings.iter().any(|warning| warning.contains("drain")), "another's claim: {warnings:?}");
}

#[test]
fn an_undo_is_confirmed_like_a_plan_and_asked_about_again_if_it_would_write_more() {
    let mut desk = Desk::new(&["n1", "n2", "n3"]);
    for node in ["n1", "n2"] {
        desk.fixture.node(node, |node| node.unschedulable = true);
    }
    let mut approval = desk.undo(&["n1"]);
    assert_eq!(desk.serve(&mut approval), ["checks", "answer"]);
    assert_eq!(approval.question().expect("asked").prompt, Prompt::Yes("Yes, undo"));
    assert_eq!(desk.answer(&mut approval, Answer::Yes), ["start"]);
    let approved = approved(approval);
    assert_eq!(&*approved.title, "undo of drain n1");
    assert_eq!(approved.operation.options().undoes.as_deref(), Some("drain-1"));

    let mut approval = desk.undo(&["n1", "n2"]);
    desk.serve(&mut approval);
    assert_eq!(approval.question().expect("asked").prompt, words("here"), "more than one node");
    desk.fixture.node("n2", |node| node.unschedulable = false);
    assert_eq!(desk.answer(&mut approval, Answer::Yes), ["start"], "it would write less");

    let mut approval = desk.undo(&["n1", "n2"]);
    desk.serve(&mut approval);
    assert_eq!(approval.question().expect("asked").prompt, Prompt::Yes("Yes, undo"), "one is left");
    desk.fixture.node("n2", |node| node.unschedulable = true);
    assert_eq!(desk.answer(&mut approval, Answer::Yes), ["checks", "answer"]);
    assert_eq!(drifts(&approval), ["node n2 has changed"]);
    assert_eq!(approval.question().expect("asked").prompt, words("here"));
}

#[test]
fn what_is_undone_is_not_undone_twice() {
    let desk = Desk::new(&["n1"]);
    let undone = PriorOperation { undone: true, ..prior(&["n1"], None) };
    let approval = Approval::undo(undone, desk.terms(), &desk.situation());
    assert!(matches!(approval.decision(), Some(Decision::NothingToDo(_))), "{:?}", approval.decision());
}

#[test]
fn what_a_finished_operation_has_not_left_is_not_undone() {
    let desk = Desk::new(&["n1"]);
    let finished = PriorOperation { end: Some("done".into()), ..prior(&["n1"], None) };
    let approval = Approval::undo(finished, desk.terms(), &desk.situation());
    assert!(matches!(approval.decision(), Some(Decision::NothingToDo(_))), "{:?}", approval.decision());
    assert!(desk.undo(&["n1"]).decision().is_none(), "the undo of an interrupted operation ends it");
}

/// A cluster, the state of its watches, and the other input of an approval.
struct Desk {
    fixture: PlanFixture,
    watches: Watches,
    locked: Option<String>,
    context: String,
    operator: Operator,
    overrides: Overrides,
    guards: Guards,
    missing: Vec<Permission>,
}

impl Desk {
    fn new(nodes: &[&str]) -> Self {
        Self {
            fixture: PlanFixture::new(nodes),
            watches: live(),
            locked: None,
            context: "here".into(),
            operator: Operator::Present,
            overrides: Overrides::default(),
            guards: Guards::default(),
            missing: Vec::new(),
        }
    }

    fn situation(&self) -> Situation<'_> {
        Situation {
            cluster: &self.fixture.cluster,
            watches: self.watches.clone(),
            locked: self.locked.clone(),
        }
    }

    fn terms(&self) -> Terms {
        const VERSION: ServerVersion = NEWEST;
        Terms {
            context: self.context.clone(),
            options: OperationOptions::default(),
            overrides: self.overrides.clone(),
            operator: self.operator,
            version: VERSION,
        }
    }

    fn apply(&self, action: Action) -> Approval {
        Approval::apply(action, None, self.terms(), &self.situation())
    }

    fn undo(&self, nodes: &[&str]) -> Approval {
        Approval::undo(prior(nodes, None), self.terms(), &self.situation())
    }

    /// Serves everything that the approval needs, except the operator's answer to its question. Returns the names of
    /// the needs.
    fn serve(&self, approval: &mut Approval) -> Vec<&'static str> {
        let mut needs = Vec::new();
        while let Some(need) = approval.poll_need() {
            match need {
                Need::Plan(action) => {
                    needs.push("plan");
                    approval.handle_plan(Ok(Box::new(self.fixture.plan(action))), &self.situation(), NOW);
                }
                Need::Checks(_) => {
                    needs.push("checks");
                    let checks = Checks { guards: self.guards.clone(), missing: self.missing.clone() };
                    approval.handle_checks(Ok(checks), &self.situation(), NOW);
                }
                Need::Answer(question) => {
                    needs.push("answer");
                    assert_eq!(approval.question(), Some(&question));
                }
                Need::Start(_) => {
                    needs.push("start");
                    let prior = approval.undo_proposal().map(|undo| undo.prior.clone());
                    let prior = prior.or_else(|| approval.resumes().cloned());
                    let started = Started { id: "the-id".parse().unwrap(), by: "alice".into(), prior };
                    approval.handle_started(Ok(started), &self.situation(), NOW);
                }
            }
        }
        needs
    }

    /// Gives the operator's answer to the approval's question, then continues with [`Self::serve`].
    fn answer(&self, approval: &mut Approval, answer: Answer) -> Vec<&'static str> {
        assert!(approval.question().is_some(), "nothing is asked: {:?}", approval.decision());
        approval.handle_answer(answer, &self.situation(), NOW);
        self.serve(approval)
    }

    /// Returns the prompt of the first question that the approval of an action asks.
    fn prompt(&self, action: Action) -> Prompt {
        let mut approval = self.apply(action);
        self.serve(&mut approval);
        approval.question().unwrap_or_else(|| panic!("{:?}", approval.decision())).prompt.clone()
    }

    fn refusal(&self, action: Action) -> ApprovalRefusal {
        let mut approval = self.apply(action);
        self.serve(&mut approval);
        refusal(&approval)
    }

    fn undo_refusal(&self, nodes: &[&str]) -> ApprovalRefusal {
        let mut approval = self.undo(nodes);
        self.serve(&mut approval);
        refusal(&approval)
    }

    /// Returns the permissions that the approval checks.
    fn wanted(&self, mut approval: Approval) -> Vec<Permission> {
        while let Some(need) = approval.poll_need() {
            match need {
                Need::Plan(action) => {
                    approval.handle_plan(Ok(Box::new(self.fixture.plan(action))), &self.situation(), NOW);
                }
                Need::Checks(wanted) => return wanted,
                Need::Answer(_) | Need::Start(_) => break,
            }
        }
        panic!("nothing is checked: {:?}", approval.decision())
    }

    /// Returns an approval that the operator has agreed to and that waits for the plan to be made again.
    fn planning_again(&self, action: Action) -> Approval {
        let mut approval = self.apply(action.clone());
        approval.poll_need();
        approval.handle_plan(Ok(Box::new(self.fixture.plan(action))), &self.situation(), NOW);
        approval.poll_need();
        approval.handle_checks(Ok(Checks::default()), &self.situation(), NOW);
        if approval.question().is_some() {
            approval.poll_need();
            approval.handle_answer(Answer::Yes, &self.situation(), NOW);
        }
        assert_eq!(approval.waits_for(), Some(Wait::PlanAgain));
        approval
    }

    /// Returns an approval whose start is being written to the journal.
    fn starting(&self, action: Action) -> Approval {
        let mut approval = self.planning_again(action.clone());
        approval.poll_need();
        approval.handle_plan(Ok(Box::new(self.fixture.plan(action))), &self.situation(), NOW);
        assert_eq!(approval.waits_for(), Some(Wait::Start));
        approval
    }

    /// Adds the drain claim (an annotation of the node) of an operation by the user bob. The claim was renewed this
    /// long ago.
    fn claim(&mut self, node: &str, operation: &str, ago: Span) {
        let claim = DrainClaim {
            by: "bob".into(),
            operation: operation.parse().unwrap(),
            renewed: NOW - ago,
            ..DrainClaim::default()
        };
        self.fixture.node(node, |node| node.drain_claim = Some(claim.into()));
    }

    /// Adds the note of a maintenance by the user bob. The note was renewed this long ago.
    fn maintain(&mut self, node: &str, operation: &str, ago: Span) {
        let note = MaintenanceNote {
            by: "bob".into(),
            operation: operation.parse().unwrap(),
            renewed: NOW - ago,
            ..MaintenanceNote::default()
        };
        self.fixture.node(node, |node| node.maintenance = Some(note.into()));
    }
}

const fn live() -> Watches {
    Watches { nodes_live: true, pods_live: true, unlisted: None }
}

fn names(nodes: &[&str]) -> Vec<NodeName> {
    nodes.iter().map(|node| NodeName::from(*node)).collect()
}

fn cordon(nodes: &[&str]) -> Action {
    Action::Cordon { nodes: names(nodes) }
}

/// A drain with all flags that pods may need, so that it refuses no pod.
fn drain(nodes: &[&str]) -> Action {
    let options = DrainOptions { force: true, delete_emptydir_data: true, ..DrainOptions::default() };
    Action::Drain { nodes: names(nodes), options }
}

fn edits(text: &str) -> TaintEdits {
    TaintEdits::parse([text], false).expect("a taint")
}

fn words(text: &str) -> Prompt {
    Prompt::Words(text.into())
}

/// An earlier operation that cordoned these nodes. If `drain` is given, the operation is an unfinished drain.
fn prior(nodes: &[&str], drain: Option<DrainOptions>) -> PriorOperation {
    let nodes: Vec<(NodeName, Uid)> = nodes.iter().map(|node| ((*node).into(), uid("Node", node))).collect();
    let undo = |(node, uid): &(NodeName, Uid)| NodeUndo {
        node: node.clone(),
        uid: uid.clone(),
        steps: vec![UndoStep::Uncordon],
    };
    PriorOperation {
        id: "drain-1".parse().unwrap(),
        title: "drain n1".into(),
        reason: "new kernel".into(),
        undo: Undo { nodes: nodes.iter().map(undo).collect(), scales: Vec::new() },
        nodes,
        drain,
        ..PriorOperation::default()
    }
}

fn refusal(approval: &Approval) -> ApprovalRefusal {
    match approval.decision() {
        Some(Decision::Refused(refusal)) => refusal.clone(),
        other => panic!("not refused: {other:?}"),
    }
}

fn approved(approval: Approval) -> Approved {
    match approval.into_decision() {
        Some(Decision::Approved(approved)) => *approved,
        other => panic!("not approved: {other:?}"),
    }
}

/// Returns the changes of the plan that the approval's question names.
fn drifts(approval: &Approval) -> Vec<String> {
    approval.question().expect("asked").drifts.iter().map(ToString::to_string).collect()
}
