//! Plans, scenario by scenario (docs/upstream/operator-actions.md#10).

use std::{collections::BTreeSet, sync::Arc};

use kordon_core::{
    cluster::{
        CordonNote, DrainClaim, IntOrPercent, JobLimits, Key, LocalVolume, MaintenanceNote, Name, Namespace,
        NodeName, Phase, Pod, PodEnding, Selector, UnhealthyPolicy, WorkloadKind,
    },
    engine::{Origin, ServerVersion, Settings},
    operation::Confirmation,
    plan::{
        Action, BlockPattern, Departing, DrainFlag, DrainOptions, DrainRefusal, Environment, Estimate,
        FreeEviction, JobFailure, Landing, LeaveReason, LostNodes, MetadataEdits, MetadataField, NodeChange,
        NotNeeded, NotRecreated, OutcomeKind, Permission, Plan, PlanError, PlanEvent, PlanStep, PodOutcome,
        Prospect, Quality, RemovalOptions, Retry, Skip, Stragglers, TaintEdits, Verdict, Warning,
        failover::{failover, leave_lost_nodes, leave_running_nodes},
        warning::PodWarning,
    },
};
use kordon_time::{ClusterTime, Span};
use proptest::prelude::*;
use serde_json::json;

use crate::plan_fixture::{
    NEWEST, NOW, PlanFixture, at, least, not_ready, of, own, percent, starting, taint, terminating, tolerates,
};

const OLD: ServerVersion = ServerVersion::new(1, 23);

fn nodes(names: &[&str]) -> Vec<NodeName> {
    names.iter().map(|name| NodeName::from(*name)).collect()
}

fn cordon(fixture: &PlanFixture, names: &[&str]) -> Plan {
    fixture.plan(Action::Cordon { nodes: nodes(names) })
}

fn drained(fixture: &PlanFixture) -> Plan {
    fixture.drain(&["n1"], DrainOptions::default())
}

fn timed(seconds: i64) -> DrainOptions {
    DrainOptions { timeout: Some(Span::from_secs(seconds)), ..DrainOptions::default() }
}

fn refusals(plan: &Plan, pod: &str) -> Vec<DrainRefusal> {
    match &of(plan, pod).verdict {
        Verdict::Refused { refusals, .. } => refusals.clone(),
        _ => Vec::new(),
    }
}

fn leaves(plan: &Plan, pod: &str) -> bool {
    matches!(of(plan, pod).verdict, Verdict::Leaves(_))
}

/// Scenario 1: Cordoning a schedulable node sends one PATCH that sets `unschedulable`.
#[test]
fn cordoning_a_schedulable_node_is_one_patch_with_its_uid() {
    let plan = cordon(&PlanFixture::new(&["n1", "n2"]), &["n1"]);
    let calls: Vec<_> = plan.steps.iter().map(PlanStep::call).collect();
    assert_eq!(calls.len(), 1);
    assert_eq!((calls[0].method, calls[0].path.as_str()), ("PATCH", "/api/v1/nodes/n1"));
    assert_eq!(calls[0].body, json!({"metadata": {"uid": "Node/n1"}, "spec": {"unschedulable": true}}));
    assert_eq!(plan.command.as_deref(), Some("kubectl cordon n1"));
    assert_eq!(plan.prospect(), Prospect::Completes);
}

/// Scenario 2: Cordoning a cordoned node sends nothing and reports it as already cordoned.
#[test]
fn cordoning_a_cordoned_node_writes_nothing() {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture.node("n1", |node| node.unschedulable = true);
    let plan = cordon(&fixture, &["n1"]);
    assert_eq!(plan.nodes[0].change, NodeChange::Unchanged { text: "already cordoned" });
    assert_eq!(plan.steps, []);
    assert!(plan.undo.is_empty());
    assert_eq!(plan.prospect(), Prospect::Completes);
}

#[test]
fn a_node_that_somebody_drains_is_a_warning_and_so_is_one_with_an_interrupted_drain() {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    let mark = |since: i64| DrainClaim {
        by: "bob@desk".into(),
        operation: "p".parse().unwrap(),
        renewed: NOW - Span::from_secs(since),
        ..DrainClaim::default()
    };
    fixture.node("n1", |node| node.drain_claim = Some(Arc::new(mark(20))));
    fixture.node("n2", |node| node.drain_claim = Some(Arc::new(mark(3600))));
    let reported = |plan: &Plan| -> Vec<(String, bool)> {
        let marked = plan.warnings.iter().filter_map(|warning| match warning {
            Warning::Claimed { node, by, active, .. } => Some((format!("{node} by {by}"), *active)),
            _ => None,
        });
        marked.collect()
    };
    let both = [("n1 by bob@desk".to_owned(), true), ("n2 by bob@desk".to_owned(), false)];
    assert_eq!(reported(&fixture.drain(&["n1", "n2"], DrainOptions::default())), both);
    assert_eq!(reported(&cordon(&fixture, &["n1"])), both[..1]);
    assert_eq!(reported(&edit(&fixture, &["a:NoExecute"], false)), both[..1]);
}

/// A running maintenance renews the note of only one of its nodes.
#[test]
fn a_node_in_a_maintenance_is_a_warning_for_actions_that_disturb_it() {
    let mut fixture = PlanFixture::new(&["n1", "n2", "n3"]);
    let mut note = |node: &str, operation: &str, since: i64| {
        let note = MaintenanceNote {
            by: "bob@desk".into(),
            operation: operation.parse().unwrap(),
            renewed: NOW - Span::from_secs(since),
            ..MaintenanceNote::default()
        };
        fixture.node(node, |node| node.maintenance = Some(note.into()));
    };
    note("n1", "m1", 3600);
    note("n2", "m1", 20);
    note("n3", "m2", 3600);
    let reported = |plan: &Plan| -> Vec<String> {
        let marked = plan.warnings.iter().filter(|warning| warning.word() == "inMaintenance");
        marked.map(ToString::to_string).collect()
    };
    let running = ["n1 is in m1, a maintenance of bob@desk"];
    let stopped = ["n3 is in m2, a maintenance of bob@desk, which was stopped"];
    assert_eq!(reported(&fixture.drain(&["n1"], DrainOptions::default())), running);
    assert_eq!(reported(&cordon(&fixture, &["n1"])), running);
    assert_eq!(reported(&fixture.plan(Action::Uncordon { nodes: nodes(&["n3"]) })), stopped);
    assert_eq!(reported(&fixture.plan(Action::DeleteNode { nodes: nodes(&["n1"]) })), running);
    assert_eq!(reported(&edit(&fixture, &["a:NoExecute"], false)), running);
    assert!(reported(&edit(&fixture, &["a:NoSchedule"], false)).is_empty(), "a maintenance may wait for it");
}

/// Scenario 3: Uncordoning a node clears `unschedulable`, and the controller removes its taint.
#[test]
fn uncordoning_takes_the_field_away() {
    let mut fixture = PlanFixture::new(&["n1"]);
    fixture.node("n1", |node| node.unschedulable = true);
    let plan = fixture.plan(Action::Uncordon { nodes: nodes(&["n1"]) });
    assert_eq!(plan.steps[0].call().body["spec"], json!({"unschedulable": null}));
}

#[test]
fn uncordoning_says_who_cordoned_and_why_and_warns_while_the_time_is_not_over() {
    let mut fixture = PlanFixture::new(&["n1", "n2", "n3", "n4"]);
    let note = |until: Option<Span>| CordonNote {
        by: "bob".into(),
        reason: "new kernel".into(),
        at: NOW - Span::from_secs(3600),
        until: until.map(|span| NOW + span),
        operation: "p".parse().ok(),
    };
    for (name, until, unschedulable) in [
        ("n1", Some(Span::from_secs(7200)), true),
        ("n2", Some(-Span::from_secs(60)), true),
        ("n3", None, true),
        // Another tool uncordoned this node, but did not remove kordon's note about the cordon.
        ("n4", Some(Span::from_secs(7200)), false),
    ] {
        fixture.node(name, |node| {
            node.unschedulable = unschedulable;
            node.cordon_note = Some(Arc::new(note(until)));
        });
    }
    let plan = fixture.plan(Action::Uncordon { nodes: nodes(&["n1", "n2", "n3", "n4"]) });
    let reported: Vec<(&str, String)> =
        plan.warnings.iter().map(|warning| (warning.word(), warning.to_string())).collect();
    let expected = [
        (
            "cordonStands",
            "the cordon of n1 is meant to stand: by bob: new kernel, until 2027-01-15T10:00:00Z (2h00m left)",
        ),
        ("cordonNoted", "n2 was cordoned by bob: new kernel, until 2027-01-15T07:59:00Z (expired 1m00s ago)"),
        ("cordonNoted", "n3 was cordoned by bob: new kernel"),
    ];
    assert_eq!(reported, expected.map(|(word, text)| (word, text.to_owned())));
}

/// Scenario 4: One of two nodes to cordon does not exist: nothing is written, and the command fails.
#[test]
fn one_missing_name_and_nothing_is_planned() {
    let fixture = PlanFixture::new(&["n1"]);
    let action = Action::Cordon { nodes: nodes(&["n1", "gone"]) };
    let error = Plan::new(action, &fixture.cluster, &fixture.environment, fixture.version, NOW)
        .expect_err("gone is gone");
    assert_eq!(error, PlanError::NoSuchNode { names: nodes(&["gone"]), meant: Vec::new() });
}

/// Scenario 5: Cordoning with a selector that matches no node is no error.
#[test]
fn no_nodes_are_no_error() {
    let plan = cordon(&PlanFixture::new(&["n1"]), &[]);
    assert_eq!((plan.steps.len(), plan.prospect()), (0, Prospect::Completes));
}

fn tainted(taints: &[&str]) -> PlanFixture {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture.node("n1", |node| node.taints = taints.iter().map(|text| taint(text)).collect());
    fixture
}

fn edit(fixture: &PlanFixture, words: &[&str], overwrite: bool) -> Plan {
    let edits = TaintEdits::parse(words.iter().copied(), overwrite).expect("taints");
    fixture.plan(Action::Taint { nodes: nodes(&["n1"]), edits })
}

/// Returns the taints that a plan leaves on n1, or the reason why the plan refuses to change the node.
fn after(plan: &Plan) -> Result<Vec<String>, String> {
    match &plan.nodes[0].change {
        NodeChange::Taints { after, .. } => Ok(after.iter().map(ToString::to_string).collect()),
        NodeChange::Refused { text } => Err(text.clone()),
        other => panic!("{other:?}"),
    }
}

/// Scenario 8: Adding a taint that the node has is refused, unless overwriting is allowed.
#[test]
fn a_taint_that_is_there_is_refused_unless_it_may_be_overwritten() {
    let fixture = tainted(&["a=1:NoSchedule"]);
    let refused = edit(&fixture, &["a=1:NoSchedule"], false);
    assert_eq!(
        after(&refused),
        Err("node n1 already has a taint(s) with same effect(s) and --overwrite is false".into())
    );
    assert_eq!((refused.steps.len(), refused.prospect()), (0, Prospect::Refused));
    assert_eq!(
        edit(&fixture, &["a=1:NoSchedule"], true).nodes[0].change,
        NodeChange::Unchanged { text: "has these taints already" }
    );
}

/// Scenario 9: Overwriting the value of a taint leaves one taint with that key and effect.
#[test]
fn overwriting_a_taint_leaves_one_of_it() {
    let plan = edit(&tainted(&["b:NoSchedule", "a=1:NoSchedule"]), &["a=2:NoSchedule"], true);
    assert_eq!(after(&plan), Ok(vec!["a=2:NoSchedule".into(), "b:NoSchedule".into()]));
}

/// Scenario 10: Removing a taint by its key removes it for every effect.
#[test]
fn removing_a_key_removes_all_its_effects() {
    let plan = edit(&tainted(&["a=1:NoSchedule", "a=1:NoExecute"]), &["a-"], false);
    assert_eq!(after(&plan), Ok(vec![]));
    assert_eq!(plan.steps[0].call().body["spec"], json!({"taints": null}));
}

/// Scenario 11: Removing a taint by key and effect leaves the key's other effects.
#[test]
fn removing_one_effect_leaves_the_other() {
    let plan = edit(&tainted(&["a=1:NoSchedule", "a=1:NoExecute"]), &["a:NoSchedule-"], false);
    assert_eq!(after(&plan), Ok(vec!["a=1:NoExecute".into()]));
}

/// Scenario 12: Removing a taint that the node lacks is an error, and the command's other changes are not written
/// either.
#[test]
fn removing_what_is_not_there_keeps_the_node_from_being_written_at_all() {
    let plan = edit(&tainted(&[]), &["zzz-", "b:NoSchedule"], false);
    assert_eq!(after(&plan), Err("taint \"zzz\" not found".into()));
    assert!(plan.steps.is_empty());
}

/// Scenario 13: Malformed taints are refused before any request, with kubectl's texts.
#[test]
fn invalid_taints_are_refused_in_kubectls_words() {
    let text =
        |words: &[&str]| TaintEdits::parse(words.iter().copied(), false).expect_err("nonsense").to_string();
    assert_eq!(text(&["foo=abc:noschedule"]), "invalid taint effect: noschedule, unsupported taint effect");
    assert_eq!(text(&["foo:"]), "invalid taint effect: , unsupported taint effect");
    assert_eq!(text(&["foo=a=b:NoSchedule"]), "invalid taint spec: foo=a=b:NoSchedule");
    assert_eq!(text(&["a:b:c"]), "invalid taint spec: a:b:c");
    assert!(
        text(&["/x:NoSchedule"])
            .starts_with("invalid taint spec: /x:NoSchedule, prefix part must be non-empty")
    );
    assert!(text(&["a=x y:NoSchedule"]).starts_with("invalid taint spec: a=x y:NoSchedule, a valid label"));
    assert!(text(&["a/b/c:NoSchedule"]).contains("a qualified name"));
    assert!(text(&[&format!("{}:NoSchedule", "k".repeat(64))]).contains("no more than 63 characters"));
    assert!(text(&["key=value-"]).starts_with("invalid taint spec: key=value, "));
    assert_eq!(
        text(&["a=1:NoSchedule", "a=2:NoSchedule"]),
        "duplicated taints with the same key and effect: {a 2 NoSchedule <nil>}"
    );
    assert_eq!(
        text(&["a=1:NoSchedule", "a:NoSchedule-"]),
        "can not both modify and remove the following taint(s) in the same command: a=NoSchedule"
    );
    assert_eq!(text(&["x=y"]), "unknown taint spec: x=y");
    assert_eq!(text(&[]), "at least one taint update is required");
}

/// Scenario 14: A taint list that somebody else changed meanwhile is not overwritten: 409, and the list is
/// computed again (kubectl overwrites it).
#[test]
fn a_taint_list_is_replaced_only_as_it_was_read() {
    let fixture = tainted(&["a=1:NoSchedule"]);
    let version = fixture.cluster.node(&"n1".into()).expect("a node").version.0.to_string();
    let plan = edit(&fixture, &["b:NoSchedule"], false);
    assert_eq!(plan.steps[0].call().body["metadata"], json!({"uid": "Node/n1", "resourceVersion": version}));
}

/// Scenario 15: A ReplicaSet's pod without a budget is evicted.
#[test]
fn a_replicated_pod_without_budget_leaves_at_once() {
    let mut fixture = PlanFixture::new(&["n1"]);
    fixture.replica_set("web", 1, &["n1"]);
    let plan = drained(&fixture);
    assert_eq!(of(&plan, "web-0").verdict, Verdict::Leaves(LeaveReason::Free(FreeEviction::NoBudget)));
    assert_eq!((at(of(&plan, "web-0").gone.likely), plan.prospect()), (Some(30), Prospect::Completes));
    let [cordon, evict] = &plan.steps[..] else { panic!("{:?}", plan.steps) };
    assert!(matches!(cordon, PlanStep::Cordon { on: true, .. }));
    let call = evict.call();
    assert_eq!((call.method, call.path.as_str()), ("POST", "/api/v1/namespaces/default/pods/web-0/eviction"));
    assert_eq!(call.body["deleteOptions"], json!({"preconditions": {"uid": "Pod/web-0"}}));
}

fn with_daemonset(there: bool) -> PlanFixture {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture.replica_set("web", 1, &["n1"]);
    fixture.pod("ds-1", "n1", |pod| own(pod, WorkloadKind::DaemonSet, "ds"));
    if there {
        fixture.owner(WorkloadKind::DaemonSet, "ds", 0);
    }
    fixture
}

/// Scenario 16: A DaemonSet's pod without `--ignore-daemonsets` refuses the drain, and no pod is touched.
/// Scenario 19: With `--ignore-daemonsets` a DaemonSet's pod stays, with a warning, and the node drains.
#[test]
fn a_daemonset_pod_is_refused_without_the_flag_and_stays_with_it() {
    let fixture = with_daemonset(true);
    let plan = drained(&fixture);
    assert_eq!(refusals(&plan, "ds-1"), [DrainRefusal::DaemonSet]);
    assert_eq!(plan.needs, BTreeSet::from([DrainFlag::IgnoreDaemonsets]));
    assert_eq!(plan.prospect(), Prospect::Refused);
    let ignoring = DrainOptions { ignore_daemonsets: true, ..DrainOptions::default() };
    let plan = fixture.drain(&["n1"], ignoring);
    assert_eq!(of(&plan, "ds-1").verdict, Verdict::Skipped(Skip::DaemonSet));
    assert!(leaves(&plan, "web-0") && plan.prospect() == Prospect::Completes);
    assert_eq!(plan.steps.len(), 2, "the pod that stays is not evicted");
}

/// Scenario 17: A finished pod of a DaemonSet is evicted.
#[test]
fn a_finished_daemonset_pod_is_evicted() {
    let mut fixture = with_daemonset(true);
    fixture.pod("ds-1", "n1", |pod| pod.phase = Phase::Failed);
    assert_eq!(
        of(&drained(&fixture), "ds-1").verdict,
        Verdict::Leaves(LeaveReason::Free(FreeEviction::Finished))
    );
}

/// Scenario 18: A pod whose DaemonSet no longer exists is refused without `--force` and evicted with it.
#[test]
fn a_pod_of_a_daemonset_that_is_gone_needs_force_and_is_lost() {
    let fixture = with_daemonset(false);
    let plan = drained(&fixture);
    assert_eq!(refusals(&plan, "ds-1"), [DrainRefusal::DaemonSetGone]);
    let drain = plan.nodes[0].drain.as_ref().expect("a drain");
    assert_eq!(drain.refusals, ["cannot delete daemonsets.apps \"ds\" not found: default/ds-1"]);
    let plan = fixture.drain(&["n1"], DrainOptions { force: true, ..DrainOptions::default() });
    assert!(leaves(&plan, "ds-1"));
    assert_eq!(of(&plan, "ds-1").lost, Some(NotRecreated::OwnerGone));
}

/// Scenario 20: A DaemonSet's pod that is ignored needs no `--delete-emptydir-data`.
#[test]
fn a_daemonset_pod_that_is_ignored_needs_no_flag_for_its_emptydir() {
    let mut fixture = with_daemonset(true);
    fixture.pod("ds-1", "n1", |pod| pod.storage.add(LocalVolume::EmptyDir));
    let plan = fixture.drain(&["n1"], DrainOptions { ignore_daemonsets: true, ..DrainOptions::default() });
    assert_eq!(of(&plan, "ds-1").verdict, Verdict::Skipped(Skip::DaemonSet));
}

/// Scenario 21: A pod without a controller is refused without `--force`, and evicted with it, with a warning.
#[test]
fn a_pod_without_controller_needs_force_and_is_lost() {
    let mut fixture = PlanFixture::new(&["n1"]);
    fixture.pod("bare", "n1", |_| {});
    let plan = drained(&fixture);
    assert_eq!((refusals(&plan, "bare"), plan.needs.len()), (vec![DrainRefusal::Unmanaged], 1));
    let plan = fixture.drain(&["n1"], DrainOptions { force: true, ..DrainOptions::default() });
    assert!(leaves(&plan, "bare"));
    assert_eq!((of(&plan, "bare").lost, plan.totals.lost), (Some(NotRecreated::NoOwner), 1));
}

/// Scenario 22: A finished pod without a controller and with an emptyDir is evicted without any flag.
#[test]
fn a_finished_pod_needs_no_flag_whatever_it_has() {
    let mut fixture = PlanFixture::new(&["n1"]);
    fixture.pod("done", "n1", |pod| {
        pod.phase = Phase::Succeeded;
        pod.storage.add(LocalVolume::EmptyDir);
    });
    let plan = drained(&fixture);
    assert_eq!(of(&plan, "done").verdict, Verdict::Leaves(LeaveReason::Free(FreeEviction::Finished)));
    assert!(of(&plan, "done").warnings.is_empty() && of(&plan, "done").lost.is_none());
    assert_eq!(at(of(&plan, "done").gone.likely), Some(0), "nothing runs that could need a grace");
}

/// Scenario 23: A ReplicaSet's pod with an emptyDir is refused without `--delete-emptydir-data`; with it the loss
/// of data is a warning (kubectl is silent).
#[test]
fn the_data_of_a_replicated_pod_is_warned_of() {
    let mut fixture = PlanFixture::new(&["n1"]);
    fixture.replica_set("web", 3, &["n1"]).pod("web-0", "n1", |pod| pod.storage.add(LocalVolume::EmptyDir));
    assert_eq!(refusals(&drained(&fixture), "web-0"), [DrainRefusal::EmptyDir]);
    let plan = fixture.drain(&["n1"], DrainOptions { delete_emptydir_data: true, ..DrainOptions::default() });
    assert!(leaves(&plan, "web-0") && of(&plan, "web-0").warnings.contains(&PodWarning::EmptyDirData));
    assert_eq!(plan.totals.data_lost, 1);
}

/// Scenario 24: A mirror pod is skipped, and the node counts as drained while it runs.
#[test]
fn a_static_pod_stays_and_the_node_counts_as_drained() {
    let mut fixture = PlanFixture::new(&["n1"]);
    fixture.pod("etcd-n1", "n1", |pod| pod.mirror = true);
    let plan = drained(&fixture);
    assert_eq!(of(&plan, "etcd-n1").verdict, Verdict::Skipped(Skip::Mirror));
    assert_eq!(plan.prospect(), Prospect::Completes);
}

/// Scenario 25: One refused pod keeps all pods of its node from being evicted.
#[test]
fn one_refusal_keeps_all_pods_of_the_node_and_every_flag_is_named_at_once() {
    let mut fixture = with_daemonset(true);
    fixture.pod("bare", "n1", |pod| pod.storage.add(LocalVolume::EmptyDir));
    let plan = drained(&fixture);
    let drain = plan.nodes[0].drain.as_ref().expect("a drain");
    assert!(drain.refused);
    assert_eq!(drain.remaining, Some(3));
    assert_eq!(refusals(&plan, "bare"), [DrainRefusal::EmptyDir, DrainRefusal::Unmanaged]);
    assert_eq!(
        plan.needs,
        BTreeSet::from([DrainFlag::IgnoreDaemonsets, DrainFlag::DeleteEmptydirData, DrainFlag::Force])
    );
    assert!(leaves(&plan, "web-0"), "what would become of it is reported all the same");
}

/// Scenario 26: A pod whose deletion is overdue for longer than `--skip-wait-for-delete-timeout` is skipped.
#[test]
fn a_pod_whose_deletion_is_long_overdue_is_left_alone() {
    let mut fixture = PlanFixture::new(&["n1"]);
    fixture.replica_set("web", 1, &["n1"]).pod("web-0", "n1", |pod| terminating(pod, -100));
    let verdict = |limit: Option<i64>| {
        let skip_wait_for_delete = limit.map(Span::from_secs);
        let plan = fixture.drain(&["n1"], DrainOptions { skip_wait_for_delete, ..DrainOptions::default() });
        of(&plan, "web-0").verdict.clone()
    };
    assert_eq!(verdict(Some(20)), Verdict::Skipped(Skip::LongTerminating));
    assert_eq!((verdict(Some(120)), verdict(None)), (Verdict::Terminating, Verdict::Terminating));
}

fn held() -> PlanFixture {
    let mut fixture = PlanFixture::new(&["n1"]);
    fixture.replica_set("web", 1, &["n1"]).pod("web-0", "n1", |pod| {
        pod.grace = Span::ZERO;
        terminating(pod, 0);
        pod.finalizers = [Name::from("example.com/hold")].into();
    });
    fixture
}

/// Scenario 27: A drain that waits for a terminating pod with a finalizer times out; the node stays cordoned.
#[test]
fn a_pod_with_a_finalizer_is_waited_for_until_the_timeout() {
    let plan = held().drain(&["n1"], timed(6));
    assert_eq!(at(of(&plan, "web-0").times_out), Some(6));
    assert_eq!((at(plan.totals.ends.likely), plan.prospect()), (Some(6), Prospect::Stalls));
    assert!(of(&plan, "web-0").warnings.contains(&PodWarning::HeldByFinalizer));
    let without_timeout = drained(&held());
    assert_eq!((without_timeout.totals.ends.likely, without_timeout.prospect()), (None, Prospect::Stalls));
}

/// Scenario 28: With `--skip-wait-for-delete-timeout` a drain does not wait for a pod with a finalizer.
#[test]
fn a_pod_with_a_finalizer_is_left_if_requested() {
    let options = DrainOptions { skip_wait_for_delete: Some(Span::from_secs(2)), ..timed(60) };
    let plan = held().drain(&["n1"], options);
    assert_eq!((at(plan.totals.ends.likely), plan.prospect()), (Some(3), Prospect::Completes));
}

/// Scenario 29: When the first of two nodes is blocked, the second is drained, and the first is reported as not
/// drained.
#[test]
fn a_blocked_node_does_not_keep_the_next_one_from_being_drained() {
    let mut fixture = PlanFixture::new(&["n1", "n2", "n3"]);
    fixture.replica_set("web", 2, &["n1", "n3"]).replica_set("api", 1, &["n2"]);
    fixture.budget("web", |budget| budget.min_available = least(2)).sync();
    let plan = fixture.drain(&["n1", "n2"], timed(6));
    assert!(matches!(of(&plan, "web-0").verdict, Verdict::Blocked { .. }));
    assert_eq!(at(of(&plan, "web-0").times_out), Some(10), "retries look at the time only when they try");
    let second = of(&plan, "api-0");
    assert_eq!((at(second.leaves.likely), at(second.times_out)), (Some(10), Some(16)));
    assert_eq!(at(second.gone.likely), Some(40), "nobody takes the eviction back");
    let patient = fixture.drain(&["n1", "n2"], timed(60));
    assert_eq!(at(of(&patient, "api-0").gone.likely), Some(90));
    assert!(patient.warnings.contains(&Warning::DrainIncomplete { node: "n1".into(), pods: 1 }));
}

/// Scenario 31: With `--pod-selector` the other pods stay, and the plan says so (kubectl is silent).
#[test]
fn pods_that_are_not_selected_stay_and_the_plan_says_so() {
    let mut fixture = PlanFixture::new(&["n1"]);
    fixture.replica_set("web", 2, &["n1", "n1"]).replica_set("db", 1, &["n1"]);
    let selector = Selector::parse("app=db").expect("a selector");
    let plan =
        fixture.drain(&["n1"], DrainOptions { pod_selector: Some(selector), ..DrainOptions::default() });
    assert_eq!(of(&plan, "web-0").verdict, Verdict::Skipped(Skip::NotSelected));
    assert!(leaves(&plan, "db-0"));
    assert!(plan.warnings.contains(&Warning::UnselectedRemain { node: "n1".into(), pods: 2 }));
    assert_eq!(plan.command.as_deref(), Some("kubectl drain n1 --pod-selector=app=db"));
}

fn five(make: impl FnOnce(&mut kordon_core::cluster::Budget)) -> PlanFixture {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture.replica_set("web", 5, &["n1", "n1", "n1", "n1", "n1"]).budget("web", make).sync();
    fixture
}

/// Scenario 32: Percentages of a budget round up: with 5 healthy pods `maxUnavailable: 25%` needs 3 and allows 2.
///
/// Checks all rows of the table in docs/upstream/operator-actions.md#5.1.
#[test]
fn percentages_round_up_both_ways() {
    let most = |value| five(move |budget| budget.max_unavailable = value).status("web");
    let min = |value| five(move |budget| budget.min_available = value).status("web");
    assert_eq!(most(percent(25)), [5, 3, 5, 2]);
    assert_eq!(most(percent(10)), [5, 4, 5, 1]);
    assert_eq!(most(percent(30)), [5, 3, 5, 2]);
    assert_eq!((most(percent(0)), most(least(0))), ([5, 5, 5, 0], [5, 5, 5, 0]));
    assert_eq!(most(percent(100)), [5, 0, 5, 5]);
    assert_eq!((min(percent(34)), min(percent(1))), ([5, 2, 5, 3], [5, 1, 5, 4]));
    assert_eq!((min(percent(100)), min(least(10))), ([5, 5, 5, 0], [5, 10, 5, 0]));
    assert_eq!(min(least(0)), [5, 0, 5, 5]);
}

/// Scenario 33: A server-side dry run of every eviction succeeds, also where the budget allows fewer.
#[test]
fn a_dry_run_of_each_pod_says_nothing_of_the_second() {
    let fixture = five(|budget| budget.max_unavailable = percent(25));
    assert!((0..5).all(|pod| fixture.evict(&format!("web-{pod}")).0 == 201));
    let plan = drained(&fixture);
    assert_eq!((plan.totals.leave_now, plan.totals.leave_later), (2, 3), "the plan does");
}

/// Scenario 34: Without the disruption controller a budget lets no more pods go than its status allowed.
#[test]
fn a_granted_eviction_that_is_not_seen_counts_against_the_budget_for_two_minutes() {
    let mut fixture = five(|budget| budget.max_unavailable = percent(25));
    fixture.budget("web", |budget| {
        budget.status.disrupted_pods =
            ["web-0", "web-1"].map(|name| (name.into(), ClusterTime::new(NOW))).into();
    });
    fixture.sync();
    assert_eq!(fixture.status("web"), [5, 3, 3, 0]);
    assert_eq!(fixture.evict("web-2").0, 429);
    let plan = drained(&fixture);
    assert_eq!(
        at(of(&plan, "web-0").leaves.likely),
        Some(125),
        "the promises end at 120 s, between two tries"
    );
}

/// Another drain has just evicted a pod, whose replacement is already Ready. The budget's status allows no eviction
/// until the disruption controller has synced the budget.
#[test]
fn a_budget_whose_status_is_behind_its_pods_allows_evictions_after_the_next_sync() {
    let mut fixture = five(|budget| budget.max_unavailable = percent(25));
    fixture.sync().budget("web", |budget| budget.status.disruptions_allowed = 0);
    assert_eq!((fixture.status("web"), fixture.evict("web-0").0), ([5, 3, 5, 0], 429));
    let plan = drained(&fixture);
    assert_eq!((plan.prospect(), plan.totals.leave_later), (Prospect::Completes, 5));
    assert_eq!(at(of(&plan, "web-0").leaves.likely), Some(5), "at the second try");
}

/// Scenario 35: An exhausted budget answers 429 with its numbers and without Retry-After.
#[test]
fn an_exhausted_budget_answers_with_its_numbers() {
    let fixture = five(|budget| budget.min_available = least(5));
    assert_eq!(
        fixture.evict("web-0"),
        (429, Some("The disruption budget web needs 5 healthy pods and has 5 currently".into()))
    );
}

/// Scenario 36: A budget whose status is stale refuses ready pods with Retry-After, and lets unready pods go.
#[test]
fn a_stale_budget_holds_ready_pods_and_lets_unready_ones_go() {
    let mut fixture = five(|budget| budget.min_available = least(2));
    fixture.budget("web", |budget| budget.generation = 2).pod("web-1", "n1", not_ready);
    let (code, cause) = fixture.evict("web-0");
    assert_eq!(code, 429);
    assert!(cause.is_some_and(|cause| cause.contains("still being processed")));
    assert_eq!(fixture.evict("web-1").0, 201);
    assert_eq!(
        of(&drained(&fixture), "web-0").verdict,
        Verdict::WaitsForController { budget: Key::new("default", "web") }
    );
}

/// Scenario 37: A Pending pod is evicted although its budget is exhausted.
#[test]
fn a_pending_pod_leaves_under_an_exhausted_budget() {
    let mut fixture = five(|budget| budget.min_available = least(5));
    fixture.pod("web-0", "n1", |pod| pod.phase = Phase::Pending);
    assert_eq!(fixture.evict("web-0").0, 201);
}

fn two_budgets() -> PlanFixture {
    let mut fixture = five(|budget| budget.min_available = least(1));
    let selector = Selector::parse("app=web").expect("a selector");
    fixture.budget("other", |budget| {
        budget.selector = Some(selector);
        budget.min_available = least(1);
    });
    fixture.sync();
    fixture
}

/// Scenario 39: Finished and terminating pods are evicted under two budgets.
#[test]
fn finished_and_terminating_pods_leave_under_two_budgets() {
    let mut fixture = two_budgets();
    fixture.pod("web-0", "n1", |pod| pod.phase = Phase::Succeeded);
    fixture.pod("web-1", "n1", |pod| pod.phase = Phase::Failed);
    fixture.pod("web-2", "n1", |pod| terminating(pod, 30));
    assert!((0..3).all(|pod| fixture.evict(&format!("web-{pod}")).0 == 201));
}

#[test]
fn the_timeline_says_why_a_pod_is_given_up() {
    let gave_up = |fixture: &PlanFixture, options: DrainOptions| {
        let plan = fixture.drain(&["n1"], options);
        let details = plan.timeline.iter().map(|moment| moment.event.columns());
        details.filter(|(_, word, _)| *word == "given up").map(|(.., details)| details).next_back()
    };
    assert_eq!(gave_up(&two_budgets(), DrainOptions::default()).as_deref(), Some("eviction failed"));
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture.replica_set("web", 1, &["n1"]);
    assert_eq!(gave_up(&fixture, timed(1)).as_deref(), Some("timeout expired"));
}

/// Scenario 40: The eviction of a running pod under two budgets is answered 500.
/// Scenario 57: Two budgets over one of ten pods fail that pod; the other nine are evicted.
#[test]
fn two_budgets_over_a_pod_fail_it_and_the_others_go() {
    let mut fixture = two_budgets();
    fixture.pod("web-3", "n1", not_ready);
    for pod in ["web-0", "web-3"] {
        let (code, message) = fixture.evict(pod);
        assert_eq!(code, 500);
        assert!(
            message.is_some_and(|text| text.starts_with("This pod has more than one PodDisruptionBudget"))
        );
    }
    fixture.replica_set("api", 9, &["n1"; 9]);
    let plan = drained(&fixture);
    assert!(matches!(&of(&plan, "web-0").verdict, Verdict::TwoBudgets { budgets } if budgets.len() == 2));
    assert_eq!((plan.totals.leave_now, plan.totals.blocked, plan.prospect()), (9, 5, Prospect::Blocked));
}

/// Scenario 41: An unready pod of a healthy budget is evicted, and the budget's allowance stays.
#[test]
fn an_unready_pod_of_a_healthy_budget_costs_nothing() {
    let mut fixture = five(|budget| budget.min_available = least(3));
    fixture.pod("web-0", "n1", not_ready).pod("web-1", "n1", not_ready).sync();
    assert_eq!(
        (fixture.status("web"), fixture.evict("web-0").0, fixture.evict("web-2").0),
        ([5, 3, 3, 0], 201, 429)
    );
}

/// Scenario 42: An unready pod of an unhealthy budget is refused, unless `unhealthyPodEvictionPolicy` is
/// AlwaysAllow.
#[test]
fn an_unready_pod_of_a_sick_budget_waits_unless_its_policy_lets_it_go() {
    let sick = |policy, version| {
        let mut fixture = five(|budget| budget.min_available = least(3));
        fixture.version = version;
        for pod in ["web-0", "web-1", "web-2"] {
            fixture.pod(pod, "n1", not_ready);
        }
        fixture.budget("web", |budget| budget.unhealthy = policy).sync();
        fixture.evict("web-0").0
    };
    assert_eq!(sick(UnhealthyPolicy::IfHealthyBudget, NEWEST), 429);
    assert_eq!(sick(UnhealthyPolicy::AlwaysAllow, NEWEST), 201);
    assert_eq!(sick(UnhealthyPolicy::AlwaysAllow, ServerVersion::new(1, 27)), 201);
    assert_eq!(sick(UnhealthyPolicy::AlwaysAllow, OLD), 429, "a server that does not know the policy");
    assert_eq!(sick(UnhealthyPolicy::Invalid, NEWEST), 429);
}

/// Scenario 43: With no pod ready, a budget with `minAvailable: 0` refuses evictions.
#[test]
fn with_no_pod_ready_even_a_budget_of_nothing_blocks() {
    let mut fixture = five(|budget| budget.min_available = least(0));
    for pod in 0..5 {
        fixture.pod(&format!("web-{pod}"), "n1", not_ready);
    }
    fixture.sync();
    assert_eq!(
        fixture.evict("web-0"),
        (429, Some("The disruption budget web needs 0 healthy pods and has 0 currently".into()))
    );
    let plan = drained(&fixture);
    assert!(
        matches!(&of(&plan, "web-0").verdict, Verdict::Waits { recoveries: 1, unhealthy, .. } if unhealthy.len() == 5)
    );
}

/// Scenario 44: A budget with an empty selector protects pods from 1.29 on, and not in 1.23.
#[test]
fn an_empty_selector_protects_from_1_29_on() {
    let answers = |version| {
        let mut fixture = five(|budget| {
            budget.selector = Some(Selector::default());
            budget.min_available = least(5);
        });
        fixture.version = version;
        fixture.sync();
        (fixture.status("web")[3], fixture.evict("web-0").0)
    };
    assert_eq!(answers(OLD), (0, 201), "the status says blocked, and eviction does not look");
    assert_eq!(answers(ServerVersion::new(1, 29)), (0, 429));
}

/// Scenario 45: A budget with neither `minAvailable` nor `maxUnavailable` refuses every eviction.
#[test]
fn a_budget_that_names_neither_bound_blocks_everything() {
    let mut fixture = five(|_| {});
    assert_eq!(fixture.status("web"), [0, 0, 5, 0]);
    fixture.version = OLD;
    assert_eq!(
        fixture.evict("web-0"),
        (429, Some("The disruption budget web needs 0 healthy pods and has 5 currently".into()))
    );
    assert_eq!(pattern(&drained(&fixture), "web-0"), Some(BlockPattern::NothingGiven));
}

fn pattern(plan: &Plan, pod: &str) -> Option<BlockPattern> {
    match &of(plan, pod).verdict {
        Verdict::Blocked { pattern, .. } => Some(pattern.clone()),
        _ => None,
    }
}

/// Scenario 46: A budget with `maxUnavailable` over a Job's pods fails to sync and always refuses; `minAvailable`
/// as a number works.
#[test]
fn a_budget_over_a_job_needs_a_number_to_hold_on_to() {
    let job = |make: fn(&mut kordon_core::cluster::Budget)| {
        let mut fixture = PlanFixture::new(&["n1"]);
        fixture.owner(WorkloadKind::Job, "job", 3);
        for pod in ["job-0", "job-1", "job-2"] {
            fixture.pod(pod, "n1", |pod| own(pod, WorkloadKind::Job, "job"));
        }
        fixture.budget("job", make).sync();
        fixture
    };
    let failed = job(|budget| budget.max_unavailable = least(1));
    let (code, cause) = failed.evict("job-0");
    assert!(code == 429 && cause.is_some_and(|cause| cause.contains("still being processed")));
    assert!(matches!(pattern(&drained(&failed), "job-0"), Some(BlockPattern::SyncFailed { .. })));
    assert_eq!(job(|budget| budget.min_available = least(2)).status("job"), [3, 2, 3, 1]);
}

/// Scenario 47: Pods without a controller are never evictable under a percentage; under `minAvailable` as a
/// number they are.
#[test]
fn bare_pods_under_a_share_are_never_evictable() {
    let bare = |value| {
        let mut fixture = PlanFixture::new(&["n1"]);
        for pod in ["a", "b", "c"] {
            fixture.pod(pod, "n1", |pod| pod.labels = [("app".into(), "bare".into())].into());
        }
        fixture.budget("bare", |budget| budget.min_available = value).sync();
        fixture
    };
    let never = bare(percent(50));
    assert_eq!(never.status("bare"), [0, 0, 3, 0]);
    let plan = never.drain(&["n1"], DrainOptions { force: true, ..DrainOptions::default() });
    assert_eq!(pattern(&plan, "a"), Some(BlockPattern::ExpectsNone));
    assert_eq!(bare(least(1)).status("bare"), [3, 1, 3, 2]);
}

/// Scenario 48: A budget with `maxUnavailable` as a number follows the scale of its ReplicaSet.
/// Scenario 49: A budget with `maxUnavailable` as a percentage follows the scale of its ReplicaSet.
#[test]
fn a_budget_follows_the_scale() {
    let scaled = |most: Option<IntOrPercent>, to: i32| {
        let mut fixture = PlanFixture::new(&["n1"]);
        fixture
            .replica_set("web", 7, &["n1"; 7])
            .budget("web", |budget| budget.max_unavailable = most)
            .sync();
        let before = fixture.status("web")[1];
        fixture.owner(WorkloadKind::ReplicaSet, "web", to).sync();
        (before, fixture.status("web")[1])
    };
    assert_eq!(scaled(least(2), 5), (5, 3));
    assert_eq!(scaled(percent(30), 3), (4, 2));
}

/// Scenario 50: A percentage in a budget is a share of the total scale of all controllers of the budget's pods.
#[test]
fn the_scales_of_all_controllers_of_its_pods_add_up() {
    let mut fixture = PlanFixture::new(&["n1"]);
    let rc = |pod: &mut _| own(pod, WorkloadKind::ReplicationController, "rc");
    fixture.owner(WorkloadKind::ReplicationController, "rc", 11).pod("rc-0", "n1", rc);
    let selector = Selector::parse("app in (rc,web)").expect("a selector");
    fixture.budget("both", |budget| {
        budget.selector = Some(selector);
        budget.min_available = percent(28);
    });
    fixture.sync();
    assert_eq!(fixture.status("both")[..2], [11, 4]);
    fixture.replica_set("web", 11, &["n1"]).sync();
    assert_eq!(fixture.status("both")[..2], [22, 7]);
}

/// Scenario 51: Ten evictions at once under one budget all succeed in the end, and no client sees a 409.
#[test]
fn evictions_at_once_all_get_through_in_time() {
    let mut fixture = PlanFixture::new(&["n1"]);
    fixture
        .replica_set("web", 10, &["n1"; 10])
        .budget("web", |budget| budget.min_available = least(0))
        .sync();
    let names: Vec<String> = (0..10).map(|pod| format!("web-{pod}")).collect();
    let plan = fixture.evictions(&names.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!((plan.totals.leave_now, plan.prospect()), (10, Prospect::Completes));
    assert_eq!(plan.command, None, "kubectl has no word for it");
}

/// Scenario 54: In a terminating namespace the eviction of a running pod is refused and retried; a terminating
/// pod is waited for.
#[test]
fn in_a_terminating_namespace_evictions_are_refused_and_terminating_pods_waited_for() {
    let mut fixture = PlanFixture::new(&["n1"]);
    fixture.replica_set("web", 2, &["n1", "n1"]).pod("web-1", "n1", |pod| terminating(pod, 20));
    fixture.namespace("default", true);
    assert_eq!(fixture.evict("web-0").0, 403);
    let plan = drained(&fixture);
    assert_eq!(of(&plan, "web-0").verdict, Verdict::WaitsForNamespace);
    assert_eq!(
        (of(&plan, "web-1").verdict.clone(), at(of(&plan, "web-1").gone.likely)),
        (Verdict::Terminating, Some(20))
    );
}

/// Scenario 58: The plan of a blocked pod names the budget that blocks it (`kubectl drain --dry-run=client` says
/// drained).
#[test]
fn a_blocked_pod_is_reported_with_its_budget_and_not_as_drained() {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture
        .replica_set("web", 2, &["n1", "n2"])
        .budget("web", |budget| budget.min_available = least(2))
        .sync();
    let plan = drained(&fixture);
    assert_eq!(
        pattern(&plan, "web-0"),
        Some(BlockPattern::CannotBeMet { needs: 2, max_healthy: 2, scaling_helps: true })
    );
    assert_eq!((plan.prospect(), plan.totals.ends.likely), (Prospect::Blocked, None));
    let drain = plan.nodes[0].drain.as_ref().expect("a drain");
    assert_eq!(drain.dominated_by, Some(Key::new("default", "web")));
}

/// Scenario 62: A ReplicaSet and a Job replace an evicted pod at once, a StatefulSet once the old pod is gone.
#[test]
fn only_a_statefulset_waits_with_the_successor_until_the_old_pod_is_gone() {
    let mut fixture = PlanFixture::new(&["n1"]);
    let kinds =
        [("rs", WorkloadKind::ReplicaSet), ("sts", WorkloadKind::StatefulSet), ("job", WorkloadKind::Job)];
    for (name, kind) in kinds {
        fixture.owner(kind, name, 1).pod(&format!("{name}-0"), "n1", |pod| {
            own(pod, kind, name);
            pod.finalizers = [Name::from("example.com/hold")].into();
        });
    }
    let plan = drained(&fixture);
    let replaced = |pod: &str| of(&plan, pod).landing.is_some();
    assert_eq!((replaced("rs-0"), replaced("job-0"), replaced("sts-0")), (true, true, false));
}

/// Scenario 63: Of a StatefulSet's two pods on the node, the second waits until the first is gone, recreated and
/// Ready.
#[test]
fn the_second_pod_of_a_statefulset_waits_until_the_first_is_gone_recreated_and_ready() {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture.owner(WorkloadKind::StatefulSet, "db", 3);
    for (pod, node) in [("db-0", "n1"), ("db-1", "n1"), ("db-2", "n2")] {
        fixture.pod(pod, node, |pod| {
            own(pod, WorkloadKind::StatefulSet, "db");
            pod.grace = Span::from_secs(60);
        });
    }
    fixture.budget("db", |budget| budget.min_available = least(2)).sync();
    (fixture.environment.stop, fixture.environment.ready) = (Span::from_secs(60), Some(Span::from_secs(40)));
    let plan = drained(&fixture);
    assert_eq!(at(of(&plan, "db-0").gone.likely), Some(60));
    assert_eq!(at(of(&plan, "db-0").ready_again), Some(100));
    let second = of(&plan, "db-1");
    let behind = vec![Key::new("default", "db-0")];
    let budget = Key::new("default", "db");
    assert_eq!(second.verdict, Verdict::LeavesAfter { budget, recoveries: 1, behind, operator: None });
    assert_eq!((at(second.leaves.likely), at(second.gone.likely)), (Some(105), Some(165)));
    assert_eq!(at(plan.totals.ends.likely), Some(165));
}

/// Environment whose pods end 5 s after the start of their deletion, unless they are stragglers.
#[derive(Clone, Debug)]
struct SometimesStubborn;

/// Shares of pods that use up their grace period because they ignore SIGTERM, and of pods that use part of it to finish
/// their work.
const STRAGGLERS: Stragglers = Stragglers { use_up_grace: 0.2, use_part_of_grace: 0.3 };

impl Environment for SometimesStubborn {
    fn time_to_terminate(&self, _pod: &Pod, grace: Span) -> Estimate {
        let likely = Some(Span::from_secs(5));
        Estimate { soonest: Some(Span::ZERO), likely, latest: Some(grace), quality: Quality::Guess }
    }

    fn land(&mut self, _pod: &Pod, _closed: &BTreeSet<NodeName>) -> Landing {
        Landing::Unknown
    }

    fn time_to_ready(&self, _pod: &Pod, _landing: &Landing) -> Estimate {
        Estimate::exactly(Span::from_secs(1))
    }

    fn stragglers(&self) -> Stragglers {
        STRAGGLERS
    }
}

/// Which pods are stragglers is random. A node is drained when its last pod has ended, and the drain ends with its
/// slowest node. The likely end is the average over these possibilities, also if only few pods have a long grace
/// period.
#[test]
fn a_drain_likely_ends_when_its_last_straggler_does_on_average() {
    const GRACES: [i64; 8] = [30, 30, 30, 30, 30, 45, 90, 180];
    const NODES: usize = 8;
    const PARALLEL: usize = 4;
    let names: Vec<String> = (0..NODES).map(|number| format!("n{number}")).collect();
    let mut fixture = PlanFixture::new(&names.iter().map(String::as_str).collect::<Vec<_>>());
    for node in &names {
        for (number, grace) in GRACES.iter().enumerate() {
            fixture.pod(&format!("{node}-{number}"), node, |pod| pod.grace = Span::from_secs(*grace));
        }
    }
    let options = DrainOptions { force: true, parallel: PARALLEL, ..DrainOptions::default() };
    let action = Action::Drain { nodes: names.iter().map(|name| NodeName::from(&**name)).collect(), options };
    let plan = Plan::new(action, &fixture.cluster, &SometimesStubborn, NEWEST, NOW).expect("a plan");
    let likely = plan.totals.ends.likely.expect("it ends").since(NOW).as_secs_f64();

    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut node = || {
        let Stragglers { use_up_grace, use_part_of_grace } = STRAGGLERS;
        let ends = GRACES.map(|grace| match random.f64() {
            share if share < use_up_grace => grace,
            share if share < use_up_grace + use_part_of_grace => random.i64(5..=grace),
            _ => 5,
        });
        ends.into_iter().max().unwrap_or_default()
    };
    let mut drain = || {
        let mut free_at = [0; PARALLEL];
        for _ in 0..NODES {
            let first = free_at.iter_mut().min().expect("several");
            *first += node();
        }
        free_at.into_iter().max().unwrap_or_default()
    };
    const DRAINS: i32 = 4000;
    let average = (0..DRAINS).map(|_| drain() as f64).sum::<f64>() / f64::from(DRAINS);
    assert!((likely / average - 1.0).abs() < 0.1, "likely {likely} s, {average} s on average");
}

#[test]
fn a_pod_that_a_taint_deletes_says_which_budget_is_ignored_and_what_its_replacement_waits_for() {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture.replica_set("web", 1, &["n1"]).budget("web", |budget| budget.min_available = least(1)).sync();
    fixture.owner(WorkloadKind::StatefulSet, "db", 1);
    fixture.pod("db-0", "n1", |pod| own(pod, WorkloadKind::StatefulSet, "db"));
    let plan = edit(&fixture, &["maintenance:NoExecute"], false);
    let notes = |pod: &str| of(&plan, pod).notes().join("; ");
    assert!(notes("web-0").contains("budget default/web ignored"), "{}", notes("web-0"));
    assert!(notes("db-0").contains("no replacement until the old pod is gone"), "{}", notes("db-0"));
    assert!(!notes("db-0").contains("budget") && !notes("web-0").contains("old pod"));
}

/// Scenario 64: A NoExecute taint deletes pods by their tolerations: at once, after the given time, or never.
/// Budgets do not count.
#[test]
fn a_noexecute_taint_names_every_deleted_pod_with_its_time_and_ignores_budgets() {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture
        .replica_set("web", 3, &["n1", "n1", "n1"])
        .budget("web", |budget| budget.min_available = least(3))
        .sync();
    fixture.pod("web-1", "n1", |pod| tolerates(pod, "maintenance", Some(30)));
    fixture.pod("web-2", "n1", |pod| tolerates(pod, "maintenance", None));
    let plan = edit(&fixture, &["maintenance:NoExecute"], false);
    let key = || Name::from("maintenance");
    assert_eq!(of(&plan, "web-0").verdict, Verdict::Deleted { at: NOW, taint: key() });
    assert_eq!(of(&plan, "web-1").verdict, Verdict::Deleted { at: NOW + Span::from_secs(30), taint: key() });
    assert_eq!(of(&plan, "web-2").verdict, Verdict::Tolerates);
    assert!(plan.warnings.contains(&Warning::BudgetsIgnored { pods: 2, blocked: Some(2) }));
    let mild = edit(&fixture, &["maintenance:NoSchedule"], false);
    assert!(mild.pods.is_empty(), "no other effect touches a running pod");
    fixture.node("n1", |node| node.taints = [taint("maintenance:NoExecute")].into());
    let untainted = edit(&fixture, &["maintenance-"], false);
    let verdicts: Vec<_> = untainted.pods.iter().map(|pod| pod.verdict.word()).collect();
    assert_eq!(verdicts, ["deletionCancelled", "deletionCancelled", "tolerates"]);
    fixture.node("n1", |node| {
        let added = Some(ClusterTime::new(NOW + Span::from_secs(-20)));
        node.taints =
            [kordon_core::cluster::Taint { time_added: added, ..taint("maintenance:NoExecute") }].into();
    });
    fixture.pod("web-1", "n1", |pod| tolerates(pod, "", Some(30)));
    let again = edit(&fixture, &["other:NoExecute"], false);
    assert_eq!(at(of(&again, "web-1").leaves.likely), Some(10), "a timer that runs is not lengthened");
}

#[test]
fn a_noexecute_taint_deletes_nobody_where_the_settings_say_that_no_controller_does() {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture.replica_set("web", 1, &["n1"]).sync();
    let plan_of = |minor, flag, value| {
        let mut settings = Settings::defaults(ServerVersion::new(1, minor));
        settings.set(flag, value, Origin::Override).expect("valid");
        let edits = TaintEdits::parse(["maintenance:NoExecute"], false).expect("a taint");
        let action = Action::Taint { nodes: nodes(&["n1"]), edits };
        Plan::new(action, &fixture.cluster, &fixture.environment, &settings, NOW).expect("the node is there")
    };
    for (minor, flag, value, deletes) in [
        (26, "enable-taint-manager", "false", false),
        (28, "controllers", "*,-node-lifecycle-controller", false),
        (28, "controllers", "*,-taint-eviction-controller", true),
        (36, "controllers", "*,-taint-eviction-controller", false),
        (36, "controllers", "*,-node-lifecycle-controller", true),
        (36, "node-eviction-rate", "0", true),
    ] {
        let plan = plan_of(minor, flag, value);
        assert_eq!(plan.pods.len(), usize::from(deletes), "1.{minor} --{flag}={value}");
        assert_eq!(
            plan.warnings.contains(&Warning::TaintsDoNotEvict),
            !deletes,
            "1.{minor} --{flag}={value}"
        );
    }
}

/// Scenario 65: When a replacement cannot be placed, the next pod of its budget never gets its turn and is
/// blocked.
#[test]
fn without_a_node_for_the_first_replacement_the_second_pod_is_blocked_forever() {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture
        .replica_set("web", 3, &["n1", "n1", "n2"])
        .budget("web", |budget| budget.min_available = least(2))
        .sync();
    fixture.environment.room = 0;
    let plan = drained(&fixture);
    assert!(leaves(&plan, "web-0"));
    assert_eq!(
        pattern(&plan, "web-1"),
        Some(BlockPattern::ReplacementPending {
            of: vec![Key::new("default", "web-0")],
            why: "insufficient cpu".into()
        })
    );
    assert!(plan.warnings.iter().any(|warning| warning.word() == "capacityExhausted"));
}

/// Scenario 66: Nodes that are drained in parallel share a budget: the second pod waits for the first one's
/// replacement.
#[test]
fn nodes_in_parallel_share_a_budget() {
    let mut fixture = PlanFixture::new(&["n1", "n2", "n3"]);
    fixture
        .replica_set("web", 3, &["n1", "n2", "n3"])
        .budget("web", |budget| budget.min_available = least(2))
        .sync();
    let plan = fixture.drain(&["n1", "n2"], DrainOptions { parallel: 2, ..DrainOptions::default() });
    assert!(leaves(&plan, "web-0"));
    assert!(matches!(&of(&plan, "web-1").verdict, Verdict::LeavesAfter { recoveries: 1, .. }));
    let second = plan.nodes[1].drain.as_ref().expect("a drain");
    assert_eq!(
        (at(Some(second.starts)), second.dominated_by.clone()),
        (Some(0), Some(Key::new("default", "web")))
    );
    assert_eq!(
        at(of(&plan, "web-1").leaves.likely),
        Some(15),
        "ready at 10 s, seen a little later, tried at 15 s"
    );
    let waking = DrainOptions { parallel: 2, retry: Retry::OnRecovery, ..DrainOptions::default() };
    assert_eq!(at(of(&fixture.drain(&["n1", "n2"], waking), "web-1").leaves.likely), Some(10));
}

/// Scenario 67: A healthy pod waits for an unready pod on another node, and the plan names that pod.
#[test]
fn a_healthy_pod_may_be_hostage_to_a_sick_one_elsewhere() {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture
        .replica_set("web", 3, &["n1", "n2", "n2"])
        .budget("web", |budget| budget.min_available = least(2));
    fixture.pod("web-2", "n2", not_ready).sync();
    let plan = drained(&fixture);
    assert!(matches!(
        &of(&plan, "web-0").verdict,
        Verdict::Waits { recoveries: 1, unhealthy, .. } if *unhealthy == [Key::new("default", "web-2")]
    ));
    assert_eq!(plan.prospect(), Prospect::Stalls);
}

/// A pod that waits for its budget leaves once another pod is Ready. The other pod was created just before the plan,
/// for example after an earlier drain. A pod that has taken much longer than its siblings is not expected to become
/// Ready.
#[test]
fn a_pod_leaves_when_a_pod_elsewhere_has_started() {
    let plan = |age: i64| {
        let mut fixture = PlanFixture::new(&["n1", "n2"]);
        fixture
            .replica_set("web", 3, &["n1", "n2", "n2"])
            .budget("web", |budget| budget.min_available = least(2));
        fixture.pod("web-2", "n2", |pod| starting(pod, age)).sync();
        fixture.drain(&["n1"], DrainOptions { retry: Retry::OnRecovery, ..DrainOptions::default() })
    };
    let young = plan(4);
    assert!(
        matches!(&of(&young, "web-0").verdict, Verdict::LeavesAfter { recoveries: 1, behind, .. } if behind.is_empty())
    );
    let started = PlanEvent::Started { pod: Key::new("default", "web-2") };
    assert!(young.timeline.iter().any(|moment| moment.event == started && at(Some(moment.at)) == Some(6)));
    let window = |plan: &Plan| {
        let leaves = of(plan, "web-0").leaves;
        [leaves.soonest, leaves.likely, leaves.latest].map(at)
    };
    assert_eq!((window(&young), young.prospect()), ([Some(6); 3], Prospect::Completes));
    let overdue = plan(15);
    assert_eq!((window(&overdue), &*overdue.ends()), ([Some(0), Some(5), None], "in ~36s (possibly never)"));
    assert_eq!((window(&plan(25)), plan(25).prospect()), ([None; 3], Prospect::Stalls));
}

/// Kubernetes 1.37 `job/job_controller.go`, `syncJob`: `pastActiveDeadline` fails the Job and deletes its pods.
#[test]
fn a_job_fails_if_its_deadline_passes_before_the_replacement_is_ready() {
    let failure = |seconds: i64| {
        let mut fixture = PlanFixture::new(&["n1", "n2"]);
        let deadline = Some(ClusterTime::new(NOW + Span::from_secs(seconds)));
        fixture.workload(WorkloadKind::Job, "train", 1, |workload| {
            workload.job = Some(JobLimits { backoff_limit: 6, deadline, ..JobLimits::default() }.into());
        });
        fixture.pod("train-0", "n1", |pod| own(pod, WorkloadKind::Job, "train"));
        let plan = drained(&fixture);
        (of(&plan, "train-0").lost, at(of(&plan, "train-0").ready_again))
    };
    assert_eq!(failure(21), (None, Some(20)), "created after a back-off of 10 s, Ready after 10 s");
    assert_eq!(failure(15), (Some(NotRecreated::JobFails(JobFailure::DeadlineExceeded)), None));
}

/// Kubernetes 1.37 `registry/core/pod/storage/eviction.go`: the eviction that comes first uses up the allowed
/// disruption of the budget. A bare pod is not recreated, so after its eviction the budget allows no further
/// disruption.
#[test]
fn a_pod_that_nothing_recreates_leaves_after_those_that_share_its_budget() {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture.replica_set("web", 2, &["n1", "n2"]).pod("a-shell", "n1", |pod| {
        own(pod, WorkloadKind::ReplicaSet, "web");
        pod.owner = None;
    });
    fixture.budget("web", |budget| budget.min_available = least(2)).sync();
    let plan = fixture.drain(&["n1"], DrainOptions { force: true, ..DrainOptions::default() });
    assert!(leaves(&plan, "web-0"));
    assert_eq!(at(of(&plan, "a-shell").leaves.likely), Some(15), "once the replacement of web-0 is Ready");
    assert_eq!(plan.prospect(), Prospect::Completes);
}

/// A pod whose container was just restarted counts as a starting pod, however old the pod is.
#[test]
fn a_pod_leaves_when_a_restarted_pod_elsewhere_is_ready_again() {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture
        .replica_set("web", 3, &["n1", "n2", "n2"])
        .budget("web", |budget| budget.min_available = least(2));
    fixture.pod("web-2", "n2", |pod| {
        not_ready(pod);
        let restarted = Some(ClusterTime::new(NOW - Span::from_secs(4)));
        pod.ending = Some(PodEnding { restarted, ..PodEnding::default() }.into());
    });
    let plan = drained(fixture.sync());
    assert_eq!(
        at(of(&plan, "web-0").leaves.likely),
        Some(10),
        "Ready 10 s after its restart, tried every 5 s"
    );
}

/// Scenario 68: Where evictions are allowed in one namespace only, the pods of the other are refused for lack of
/// permission.
#[test]
fn missing_permissions_are_named_by_namespace() {
    let mut fixture = PlanFixture::new(&["n1"]);
    fixture.replica_set("web", 1, &["n1"]);
    let plan = drained(&fixture);
    let missing: Vec<String> =
        plan.missing(|permission| permission.subresource != "eviction").map(ToString::to_string).collect();
    assert_eq!(missing, ["create pods/eviction in default"]);
    let eviction = Permission::on_pods("create", "eviction", &Namespace::from("default"));
    assert_eq!((eviction.group, eviction.resource), ("", "pods"), "not policy/evictions");
    let deleting = fixture.drain(&["n1"], DrainOptions { disable_eviction: true, ..DrainOptions::default() });
    assert!(deleting.permissions.iter().any(|permission| permission.verb == "delete"));
}

/// Scenario 70: Undo leaves a node cordoned that was cordoned before the plan.
#[test]
fn undo_uncordons_only_what_the_plan_cordoned() {
    let mut fixture = PlanFixture::new(&["n1", "n2", "n3"]);
    fixture.node("n2", |node| node.unschedulable = true);
    let plan = fixture.drain(&["n1", "n2"], DrainOptions::default());
    for node in ["n1", "n2"] {
        fixture.node(node, |node| node.unschedulable = true);
    }
    let (steps, _) = plan.undo.writes(&fixture.cluster);
    let uncordoned: Vec<_> = steps.iter().map(|step| step.call().path).collect();
    assert_eq!(uncordoned, ["/api/v1/nodes/n1"]);
    fixture.node("n1", |node| node.uid = "another".into());
    assert!(plan.undo.writes(&fixture.cluster).0.is_empty(), "a node of the same name is not the same node");
}

#[test]
fn undo_puts_taints_and_labels_back_and_keeps_what_others_changed() {
    let mut fixture = tainted(&["a=1:NoSchedule", "b:NoSchedule"]);
    let plan = edit(&fixture, &["a=2:NoSchedule", "c:NoSchedule"], true);
    fixture.node("n1", |node| {
        let theirs = [
            taint("a=2:NoSchedule"),
            taint("c=theirs:NoSchedule"),
            taint("b:NoSchedule"),
            taint("d:NoSchedule"),
        ];
        node.taints = theirs.into();
    });
    let (steps, kept) = plan.undo.writes(&fixture.cluster);
    let [PlanStep::SetTaints { taints, .. }] = &steps[..] else { panic!("{steps:?}") };
    let texts: Vec<String> = taints.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["a=1:NoSchedule", "c=theirs:NoSchedule", "b:NoSchedule", "d:NoSchedule"]);
    assert_eq!(kept.len(), 1);

    let edits = MetadataEdits::parse(MetadataField::Labels, ["tier=front", "old-"], false).expect("labels");
    fixture.node("n1", |node| node.labels = [("old".into(), "x".into())].into());
    let plan = fixture.plan(Action::Metadata { nodes: nodes(&["n1"]), edits });
    assert_eq!(plan.steps[0].call().body["metadata"]["labels"], json!({"old": null, "tier": "front"}));
    fixture.node("n1", |node| node.labels = [("tier".into(), "front".into())].into());
    let (steps, _) = plan.undo.writes(&fixture.cluster);
    assert_eq!(steps[0].call().body["metadata"]["labels"], json!({"old": "x", "tier": null}));
}

#[test]
fn labels_follow_kubectls_rules() {
    let mut fixture = PlanFixture::new(&["n1"]);
    fixture.node("n1", |node| node.labels = [("app".into(), "web".into())].into());
    let label = |words: &[&str], overwrite| {
        let edits =
            MetadataEdits::parse(MetadataField::Labels, words.iter().copied(), overwrite).expect("labels");
        fixture.plan(Action::Metadata { nodes: nodes(&["n1"]), edits }).nodes[0].change.clone()
    };
    let refused =
        NodeChange::Refused { text: "'app' already has a value (web), and --overwrite is false".into() };
    assert_eq!(label(&["app=db"], false), refused);
    assert!(matches!(label(&["app=db"], true), NodeChange::Metadata { .. }));
    assert_eq!(label(&["app=web"], false), NodeChange::Unchanged { text: "has these labels already" });
    assert_eq!(label(&["gone-"], false), NodeChange::Unchanged { text: "has these labels already" });
    let text = |words: &[&str]| {
        MetadataEdits::parse(MetadataField::Labels, words.iter().copied(), false)
            .expect_err("nonsense")
            .to_string()
    };
    assert_eq!(text(&["a=b=c"]), "invalid label spec: a=b=c");
    assert_eq!(text(&["a=b", "a-"]), "can not both modify and remove a label in the same command");
    assert!(text(&["a=b c"]).starts_with("invalid label value: \"a=b c\": a valid label must be"));
}

#[test]
fn annotations_are_planned_and_undone_like_labels() {
    let mut fixture = PlanFixture::new(&["n1"]);
    let had = [("example.com/note".into(), "slow disk".into()), ("old".into(), "x".into())];
    fixture.node("n1", |node| node.annotations = Some(had.into()));
    let words = ["example.com/note=it's a=b: replace", "old-", "new="];
    let edits = MetadataEdits::parse(MetadataField::Annotations, words, true).expect("annotations");
    let plan = fixture.plan(Action::Metadata { nodes: nodes(&["n1"]), edits });
    let patch = &plan.steps[0].call().body["metadata"];
    assert_eq!(
        patch["annotations"],
        json!({"example.com/note": "it's a=b: replace", "new": "", "old": null})
    );
    assert_eq!(patch.get("labels"), None);
    let command = r"kubectl annotate nodes n1 'example.com/note=it'\''s a=b: replace' new= old- --overwrite";
    assert_eq!(plan.command.as_deref(), Some(command));
    assert_eq!(plan.permissions, [Permission::on_node("patch", &"n1".into())]);

    let theirs = [("example.com/note".into(), "theirs".into()), ("new".into(), "".into())];
    fixture.node("n1", |node| node.annotations = Some(theirs.into()));
    let (steps, kept) = plan.undo.writes(&fixture.cluster);
    assert_eq!(steps[0].call().body["metadata"]["annotations"], json!({"new": null, "old": "x"}));
    let kept: Vec<String> = kept.iter().map(ToString::to_string).collect();
    assert_eq!(kept, ["annotation example.com/note of n1 has been changed since"]);
}

#[test]
fn annotations_follow_the_servers_rules_and_kordons_own_are_guarded() {
    let parse = |words: &[&str]| {
        MetadataEdits::parse(MetadataField::Annotations, words.iter().copied(), false)
            .map(drop)
            .map_err(|error| error.to_string())
    };
    // The server ignores the case of an annotation's key, and accepts any text as its value.
    assert_eq!(parse(&["Example.com/x=a=b, \"c\"\n ü"]), Ok(()));
    assert!(parse(&["a b=c"]).is_err_and(|text| text.starts_with("invalid annotation key \"a b\": ")));
    assert_eq!(parse(&["a"]), Err("unknown annotation spec: a".into()));
    assert_eq!(parse(&[]), Err("at least one annotation update is required".into()));
    let conflict = "can not both modify and remove an annotation in the same command";
    assert_eq!(parse(&["a=b", "a-"]), Err(conflict.into()));
    for (word, meaning) in [
        ("kordon.dev/cordon=x", "the reason of a cordon"),
        ("kordon.dev/drain-", "the claim of a drain"),
        ("kordon.dev/drained-", "the note of the drain that emptied the node"),
        ("kordon.dev/maintenance={}", "the note of a maintenance"),
        ("kordon.dev/else-", "an annotation of kordon's own"),
    ] {
        let error = parse(&[word]).expect_err(word);
        assert!(error.contains("is guarded") && error.contains(meaning), "{error}");
    }
    // Unlike annotations, labels with the prefix `kordon.dev/` are not guarded.
    let label = MetadataEdits::parse(MetadataField::Labels, ["kordon.dev/drain=x"], false);
    assert!(label.is_ok(), "{label:?}");
}

#[test]
fn annotations_that_are_too_large_or_unknown_are_refused() {
    // The server adds up the sizes of the keys and values of all annotations, and accepts at most 262,144 bytes.
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture.node("n1", |node| node.annotations = Some([("a".into(), "b".repeat(99).into())].into()));
    let fits = "k=".to_owned() + &"v".repeat(262_144 - 101);
    let change = |node: &str, word: &str| {
        let edits = MetadataEdits::parse(MetadataField::Annotations, [word], false).expect("annotations");
        fixture.plan(Action::Metadata { nodes: nodes(&[node]), edits }).nodes[0].change.clone()
    };
    assert!(matches!(change("n1", &fits), NodeChange::Metadata { .. }));
    let NodeChange::Refused { text } = change("n1", &(fits + "v")) else { panic!("it is too large") };
    assert!(text.contains("262145 bytes") && text.contains("256 KiB"), "{text}");
    let NodeChange::Refused { text } = change("n2", "a=b") else { panic!("nothing is known of n2") };
    assert!(text.contains("annotations are unknown"), "{text}");
    let alone = "k=".to_owned() + &"v".repeat(262_144);
    let error = MetadataEdits::parse(MetadataField::Annotations, [alone.as_str()], false);
    assert!(error.is_err_and(|error| error.to_string().contains("262145 bytes")));
}

#[test]
fn closing_the_last_node_of_a_zone_is_warned_of() {
    let mut fixture = PlanFixture::new(&["n1", "n2", "n3"]);
    for (node, zone) in [("n1", "a"), ("n2", "a"), ("n3", "b")] {
        let zone = Name::from(zone);
        fixture.node(node, |node| {
            node.labels = [("topology.kubernetes.io/zone".into(), zone)].into();
        });
    }
    let warns = |fixture: &PlanFixture, names: &[&str]| -> Vec<&'static str> {
        cordon(fixture, names).warnings.iter().map(Warning::word).collect()
    };
    assert!(warns(&fixture, &["n1"]).is_empty());
    assert_eq!(warns(&fixture, &["n1", "n2"]), ["zoneLosesLastReady"]);
    assert!(warns(&fixture, &["n1", "n2", "n3"]).contains(&"noSchedulableNode"));
    fixture.node("n2", |node| node.unschedulable = true);
    assert_eq!(warns(&fixture, &["n1"]), ["zoneLosesLastReady"]);
}

#[test]
fn pods_that_nobody_should_lose_sight_of_are_marked() {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture.replica_set("solo", 1, &["n1"]).replica_set("pair", 2, &["n1", "n1"]).replica_set(
        "web",
        3,
        &["n1", "n2"],
    );
    fixture.pod("web-0", "n1", |pod| tolerates(pod, "", None));
    fixture.replica_set("left", 1, &["n1", "n2"]).pod("left-0", "n1", |pod| terminating(pod, 20));
    let plan = drained(&fixture);
    let marks = |pod: &str| of(&plan, pod).warnings.iter().copied().collect::<Vec<_>>();
    assert_eq!(marks("solo-0"), [PodWarning::SingleReplica]);
    assert_eq!(
        (marks("pair-0"), marks("pair-1")),
        (vec![PodWarning::LastReady], vec![PodWarning::LastReady])
    );
    assert_eq!(marks("web-0"), [PodWarning::MayReturn]);
    assert_eq!(marks("left-0"), [], "its successor is Ready on n2");
}

#[test]
fn deleting_pods_asks_no_budget_and_says_how_many_it_passes_by() {
    let fixture = five(|budget| budget.min_available = least(5));
    let pods = vec![Key::new("default", "web-0"), Key::new("default", "web-1")];
    let options = RemovalOptions { grace: Some(Span::ZERO), ..RemovalOptions::default() };
    let delete = || Action::Delete { pods: pods.clone(), options };
    let plan = fixture.plan(delete());
    assert_eq!(of(&plan, "web-0").verdict, Verdict::Leaves(LeaveReason::Deleted));
    assert!(plan.warnings.contains(&Warning::BudgetsIgnored { pods: 2, blocked: Some(2) }));
    let loose = five(|budget| budget.min_available = least(1)).plan(delete());
    assert!(!loose.warnings.iter().any(|warning| warning.word() == "budgetsIgnored"), "it would allow both");
    assert_eq!(
        plan.command.as_deref(),
        Some("kubectl delete pod web-0 web-1 -n default --grace-period=0 --force")
    );
    let call = plan.steps[0].call();
    assert_eq!((call.method, &call.body["gracePeriodSeconds"]), ("DELETE", &json!(0)));
    assert_eq!(call.body["preconditions"], json!({"uid": "Pod/web-0"}));
}

/// The plan has the numbers of the worked example in docs/upstream/operator-actions.md#6.9.
#[test]
fn the_worked_example_comes_out_as_worked() {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture.replica_set("web", 5, &["n2", "n1", "n1", "n2", "n2"]);
    fixture.budget("web", |budget| budget.max_unavailable = percent(25));
    fixture.owner(WorkloadKind::StatefulSet, "db", 3).owner(WorkloadKind::DaemonSet, "agent", 0);
    fixture.owner(WorkloadKind::Job, "job-x", 1);
    for (pod, node) in [("db-0", "n1"), ("db-1", "n2"), ("db-2", "n2")] {
        fixture.pod(pod, node, |pod| {
            own(pod, WorkloadKind::StatefulSet, "db");
            pod.grace = Span::from_secs(60);
        });
    }
    fixture.budget("db", |budget| budget.min_available = least(2));
    fixture.pod("agent", "n1", |pod| own(pod, WorkloadKind::DaemonSet, "agent"));
    fixture.pod("kube-proxy", "n1", |pod| pod.mirror = true);
    fixture.pod("job-x", "n1", |pod| {
        own(pod, WorkloadKind::Job, "job-x");
        pod.storage.add(LocalVolume::EmptyDir);
    });
    fixture.pod("tmp", "n1", |pod| pod.phase = Phase::Succeeded).sync();
    fixture.environment.stop = Span::MAX;
    let options =
        DrainOptions { ignore_daemonsets: true, delete_emptydir_data: true, ..DrainOptions::default() };
    let plan = fixture.drain(&["n1"], options);
    assert_eq!((plan.totals.leave_now, plan.totals.stay, plan.totals.leave_later), (5, 2, 0));
    assert_eq!((at(plan.totals.ends.likely), plan.totals.data_lost), (Some(60), 1));
    assert!(
        matches!(&of(&plan, "db-0").verdict, Verdict::Leaves(LeaveReason::BudgetAllows { numbers, .. }) if numbers.allowed == 1)
    );
}

/// A plan depends on nothing but the snapshot of the cluster.
#[test]
fn the_same_snapshot_gives_the_same_plan() {
    let mut fixture = five(|budget| budget.max_unavailable = percent(25));
    fixture.replica_set("api", 3, &["n1", "n2", "n2"]);
    let options = DrainOptions { parallel: 2, ..DrainOptions::default() };
    assert_eq!(fixture.drain(&["n1", "n2"], options.clone()), fixture.drain(&["n1", "n2"], options));
}

proptest! {
    /// Invariants for all budgets and pods. A pod leaves only when its budget allows the eviction at that moment. A pod
    /// waits forever only under an exhausted budget.
    #[test]
    fn no_budget_is_overdrawn(
        places in prop::collection::vec((0..3_usize, prop::option::of(0..3_i64)), 1..12),
        missing in 0..3_i32,
        bound in 0..14_i32,
        kind in 0..3_u8,
        (stop, ready, room) in (0..40_i64, prop::option::of(0..30_i64), 0..6_usize),
        parallel in 1..3_usize,
    ) {
        let nodes = ["n1", "n2", "n3"];
        let mut fixture = PlanFixture::new(&nodes);
        let on: Vec<&str> = places.iter().map(|(node, _)| nodes[*node]).collect();
        let replicas = i32::try_from(on.len()).expect("few") + missing;
        fixture.replica_set("web", replicas, &on);
        // Each pod is Ready or, if it has an `age`, was created `age` times ten seconds ago and is still starting.
        for (place, (node, age)) in places.iter().enumerate() {
            if let Some(age) = age {
                fixture.pod(&format!("web-{place}"), nodes[*node], |pod| starting(pod, age * 10));
            }
        }
        fixture.budget("web", |budget| match kind {
            0 => budget.min_available = least(bound),
            1 => budget.max_unavailable = least(bound),
            _ => budget.max_unavailable = percent(bound * 7),
        }).sync();
        (fixture.environment.stop, fixture.environment.room) = (Span::from_secs(stop), room);
        fixture.environment.ready = ready.map(Span::from_secs);
        let plan = fixture.drain(&["n1", "n2"], DrainOptions { parallel, ..DrainOptions::default() });

        let [_, desired, mut healthy, _] = fixture.status("web");
        let was_ready = |pod: &Key| fixture.cluster.pod(pod).expect("planned").is_ready();
        for moment in &plan.timeline {
            match &moment.event {
                PlanEvent::Leaves { pod } if was_ready(pod) => {
                    healthy -= 1;
                    prop_assert!(healthy >= desired, "{pod} leaves at {}: {healthy} of {desired}", moment.at);
                }
                PlanEvent::Ready { .. } | PlanEvent::Started { .. } => healthy += 1,
                _ => {}
            }
        }
        for pod in plan.pods.iter().filter(|pod| pod.leaves.likely.is_none() && was_ready(&pod.pod)) {
            prop_assert!(healthy <= desired, "{} waits, and {healthy} of {desired} are healthy", pod.pod);
            prop_assert!(matches!(pod.verdict, Verdict::Waits { .. } | Verdict::Blocked { .. }), "{:?}", pod.verdict);
        }
        let after = plan.budgets.first().map(|budget| budget.after.numbers.healthy);
        prop_assert!(after.is_none_or(|after| after == healthy));
    }
}

/// `gcOrphaned` (pkg/controller/podgc/gc_controller.go, 1.37): the collector checks every 20 s. After a quarantine of
/// 40 s it deletes every pod of the missing node without a grace period. A DaemonSet does not recreate its pod, because
/// the node is gone.
#[test]
fn the_pods_of_a_deleted_node_are_left_to_the_garbage_collector() {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture
        .replica_set("web", 2, &["n1", "n2"])
        .budget("web", |budget| budget.min_available = least(2))
        .owner(WorkloadKind::DaemonSet, "agent", 2)
        .pod("agent-1", "n1", |pod| own(pod, WorkloadKind::DaemonSet, "agent"))
        .pod("held", "n1", |pod| pod.finalizers = ["a.b/keep".into()].into())
        .sync();
    let action = || Action::DeleteNode { nodes: nodes(&["n1"]) };
    let plan = fixture.plan(action());
    let web = of(&plan, "web-0");
    assert_eq!(web.verdict.word(), "orphaned");
    assert_eq!([web.gone.soonest, web.gone.likely, web.gone.latest].map(at), [Some(40), Some(50), Some(80)]);
    assert_eq!(of(&plan, "agent-1").outcome, PodOutcome::NotRecreated(NotNeeded::NodeGone));
    assert_eq!(of(&plan, "held").gone.likely, None, "a finalizer keeps it");
    assert_eq!((plan.totals.ends.likely, plan.prospect()), (None, Prospect::Stalls));
    assert_eq!(plan.command.as_deref(), Some("kubectl delete node n1"));
    let [step] = &plan.steps[..] else { panic!("{:?}", plan.steps) };
    let call = step.call();
    assert_eq!((call.method, call.path.as_str()), ("DELETE", "/api/v1/nodes/n1"));
    assert_eq!(call.body["preconditions"], json!({"uid": "Node/n1"}));
    assert!(plan.undo.is_empty(), "a deleted node does not come back");
    // If a machine with pods continues to run, a simple yes is not enough as confirmation.
    assert!(plan.warnings.iter().any(|warning| warning.word() == "machineRuns"), "{:?}", plan.warnings);
    assert_eq!(Confirmation::to(&plan), Confirmation::Grave);
    let mut empty = PlanFixture::new(&["n1", "n2"]);
    assert_eq!(Confirmation::to(&empty.plan(action())), Confirmation::Plain);
    let role = ("node-role.kubernetes.io/control-plane".into(), "".into());
    empty.node("n1", |node| node.labels = [role].into());
    let warnings: Vec<String> = empty.plan(action()).warnings.iter().map(ToString::to_string).collect();
    assert!(warnings.iter().any(|text| text.starts_with("n1 is Ready: its kubelet runs on")), "{warnings:?}");
    assert!(warnings.contains(&"n1 is a control plane node".to_owned()), "{warnings:?}");
    empty.replica_set("web", 1, &["n2"]).sync();
    assert_eq!(empty.plan(action()).totals.outcomes.total(), 0);
}

/// A Node with a finalizer stays after its deletion (Kubernetes 1.37.1 apiserver
/// `pkg/registry/generic/registry/store.go`, `Delete`). Karpenter 1 drains the node through the Eviction API before it
/// removes its own finalizer (kubernetes-sigs/karpenter `pkg/controllers/node/termination/controller.go`, `finalize`).
#[test]
fn a_finalizer_keeps_a_deleted_node_and_its_pods() {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture.node("n1", |node| node.finalizers = ["karpenter.sh/termination".into()].into());
    fixture
        .replica_set("web", 2, &["n1", "n2"])
        .budget("web", |budget| budget.min_available = least(2))
        .sync();
    let delete = |name: &str| Action::DeleteNode { nodes: nodes(&[name]) };
    let held = fixture.plan(delete("n1"));
    let web = of(&held, "web-0");
    assert_eq!((web.verdict.word(), web.leaves.likely), ("waitsForFinalizer", None));
    assert_eq!((held.prospect(), held.totals.placed), (Prospect::Stalls, 0));
    assert_eq!(Confirmation::to(&held), Confirmation::Grave);
    let finalizers = vec![Name::from("karpenter.sh/termination")];
    assert!(
        held.warnings.contains(&Warning::NodeHeld { node: "n1".into(), finalizers }),
        "{:?}",
        held.warnings
    );

    let free = fixture.plan(delete("n2"));
    assert_eq!((of(&free, "web-1").verdict.word(), free.prospect()), ("orphaned", Prospect::Completes));
    assert!(
        free.warnings.contains(&Warning::BudgetsIgnored { pods: 1, blocked: Some(1) }),
        "{:?}",
        free.warnings
    );
}

/// Kubernetes 1.37.1 `plugin/pkg/admission/namespace/lifecycle/admission.go`, `Admit`: nothing is created in a
/// namespace that is being deleted; `pkg/controller/replicaset/replica_set.go`, `manageReplicas`, gives up silently.
#[test]
fn nothing_replaces_a_pod_in_a_namespace_that_is_being_deleted() {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture.replica_set("web", 1, &["n1"]).owner(WorkloadKind::StatefulSet, "db", 1).pod(
        "db-0",
        "n1",
        |pod| own(pod, WorkloadKind::StatefulSet, "db"),
    );
    let outcomes = |fixture: &PlanFixture| -> Vec<OutcomeKind> {
        let lost = LostNodes::failed(Arc::new(nodes(&["n1"]).into_iter().collect()));
        let leaving = leave_lost_nodes(&fixture.cluster, &lost.failed);
        let failover = failover(&fixture.cluster, leaving, lost, fixture.environment.clone());
        failover.pods.iter().map(|pod| pod.outcome.kind()).collect()
    };
    assert_eq!(outcomes(&fixture), [OutcomeKind::Moves, OutcomeKind::Stuck]);
    fixture.namespace("default", true);
    assert_eq!(outcomes(&fixture), [OutcomeKind::NotRecreated; 2]);
    let web = fixture.cluster.pod(&Key::new("default", "web-0")).expect("it is there");
    let departing = Departing::from_lost_node(&fixture.cluster, web, true);
    assert_eq!(departing.decide(web, None), PodOutcome::NotRecreated(NotNeeded::NamespaceEnds));
}

/// Kubernetes 1.37.1 `pkg/controller/daemon/daemon_controller.go`, `manage`: pods are made for the nodes that exist;
/// `pkg/kubelet/pod/mirror_client.go`, `CreateMirrorPod`: a mirror pod needs its Node.
#[test]
fn a_pod_that_runs_only_on_its_node_does_not_come_back_to_one_that_is_gone() {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture.owner(WorkloadKind::DaemonSet, "agent", 1);
    for (name, node) in [("agent-1", "n1"), ("agent-3", "n3")] {
        fixture.pod(name, node, |pod| own(pod, WorkloadKind::DaemonSet, "agent"));
    }
    let outcome = |name: &str, lost: LostNodes| {
        let pod = fixture.cluster.pod(&Key::new("default", name)).expect("it is there").clone();
        let leaving = leave_running_nodes(&fixture.cluster, [pod]);
        failover(&fixture.cluster, leaving, lost, fixture.environment.clone()).pods[0].outcome.clone()
    };
    let gone = PodOutcome::NotRecreated(NotNeeded::NodeGone);
    assert_eq!(outcome("agent-1", LostNodes::default()), PodOutcome::SameNode);
    let removed = LostNodes { removed: nodes(&["n1"]).into_iter().collect(), ..LostNodes::default() };
    assert_eq!(outcome("agent-1", removed), gone, "the Node is assumed to be deleted");
    assert_eq!(outcome("agent-3", LostNodes::default()), gone, "the Node is gone already");
}

/// Kubernetes 1.37.1 `pkg/controller/daemon/daemon_controller.go`, `NodeShouldRunDaemonPod`: a NoExecute taint that is
/// not tolerated ends the pod and keeps the next one away.
#[test]
fn the_pod_of_a_daemonset_that_a_taint_evicts_does_not_come_back_while_the_taint_is_there() {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture
        .owner(WorkloadKind::DaemonSet, "agent", 1)
        .pod("agent-1", "n1", |pod| own(pod, WorkloadKind::DaemonSet, "agent"));
    let tainted = PodOutcome::NotRecreated(NotNeeded::NodeTainted);
    let plan = edit(&fixture, &["maint:NoExecute"], false);
    assert_eq!(of(&plan, "agent-1").outcome, tainted, "the plan adds the taint");
    fixture.node("n1", |node| node.taints = [taint("maint:NoExecute")].into());
    let agent = fixture.cluster.pod(&Key::new("default", "agent-1")).expect("it is there");
    let outcome = |pod: &Pod| Departing::from_running_node(&fixture.cluster, pod, true).decide(pod, None);
    assert_eq!(outcome(agent), tainted, "the node has the taint");
    let mut tolerant = (**agent).clone();
    tolerates(&mut tolerant, "maint", None);
    assert_eq!(outcome(&tolerant), PodOutcome::SameNode);
}
