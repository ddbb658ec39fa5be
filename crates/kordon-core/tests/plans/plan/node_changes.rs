//! Cordons, taints, labels and annotations, and how they are undone.

use std::sync::Arc;

use kordon_core::{
    cluster::{CordonNote, DrainClaim, MaintenanceNote, Name},
    plan::{
        Action, DrainOptions, MetadataEdits, MetadataField, NodeChange, Permission, Plan, PlanError,
        PlanStep, Prospect, TaintEdits, Warning,
    },
};
use kordon_time::Span;
use serde_json::json;

use super::{edit, nodes};
use crate::plan_fixture::{NOW, PlanFixture, taint};

fn cordon(fixture: &PlanFixture, names: &[&str]) -> Plan {
    fixture.plan(Action::Cordon { nodes: nodes(names) })
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
