//! Writes of a maintenance to a node, as the node is when it is read.

use kordon_core::{
    cluster::{Cluster, CordonNote, MaintenanceNote, MaintenanceStage, Node, Version},
    engine::ServerVersion,
    operation::{MaintenanceWrite, NodePatch, Operation, OperationOptions, RequestKind, RequestOutcome},
    plan::EvictionRules,
};
use kordon_time::{Span, Timestamp};

const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);

/// A cordoned node in the maintenance `m1`, at this stage. Its note was renewed by this user some seconds ago.
fn noted(stage: MaintenanceStage, by: &str, seconds: i64) -> Node {
    let operation: kordon_core::cluster::OperationId = "m1".parse().expect("an id");
    let note = MaintenanceNote {
        by: by.into(),
        operation: operation.clone(),
        stage,
        renewed: NOW - Span::from_secs(seconds),
        before: "b-1".into(),
        paused: None,
    };
    let cordon = CordonNote { operation: Some(operation), ..CordonNote::default() };
    Node {
        name: "n1".into(),
        uid: "uid-n1".into(),
        version: Version(7),
        unschedulable: true,
        maintenance: Some(note.into()),
        cordon_note: Some(cordon.into()),
        ..Node::default()
    }
}

/// Options of the maintenance `m1`, which alice runs.
fn by_alice() -> OperationOptions {
    OperationOptions {
        id: "m1".parse().expect("an id"),
        by: "alice@desk".into(),
        ..OperationOptions::default()
    }
}

/// Starts to write to the node, which reads as `seen`. Returns the patch; `None` if nothing is written.
fn patch(write: MaintenanceWrite, options: OperationOptions, seen: Node) -> Option<NodePatch> {
    let (cluster, rules) = (Cluster::default(), EvictionRules::for_version(ServerVersion::new(1, 36)));
    let writes = vec![(seen.name.clone(), seen.uid.clone(), write)];
    let mut operation = Operation::maintain(writes, options, rules, &cluster, NOW);
    let read = operation.poll_request().expect("the node is read first");
    operation.handle_outcome(&cluster, read.id, RequestOutcome::Node(Box::new(seen)), NOW);
    match operation.poll_request()?.task {
        RequestKind::Patch(patch) => Some(patch),
        other => panic!("{other:?}"),
    }
}

/// Returns the maintenance note that a patch writes.
fn written(patch: &NodePatch) -> MaintenanceNote {
    let text = patch.notes.iter().find_map(|(_, text)| text.as_deref()).expect("a note");
    MaintenanceNote::parse(text).expect("a note of a maintenance")
}

/// The command of the node has ended. To write its earlier stage again, as a watch may still show it, would run the
/// command twice after an interruption.
#[test]
fn a_renewal_leaves_the_stage_and_the_cordon_as_the_node_has_them() {
    let seen = noted(MaintenanceStage::Awaited, "alice@desk", 60);
    let paused = Some(NOW - Span::from_secs(1));
    let patch = patch(MaintenanceWrite::Renew { paused }, by_alice(), seen).expect("written");
    assert_eq!((patch.version, patch.unschedulable), (Some(Version(7)), None));
    let note = written(&patch);
    assert_eq!((note.stage, note.renewed, note.paused), (MaintenanceStage::Awaited, NOW, paused));
    assert_eq!(note.before, "b-1");
}

#[test]
fn a_node_without_a_note_has_nothing_to_renew() {
    let seen = Node { maintenance: None, ..noted(MaintenanceStage::Waiting, "alice@desk", 60) };
    assert!(patch(MaintenanceWrite::Renew { paused: None }, by_alice(), seen).is_none());
}

/// Bob has resumed the maintenance of alice. Whatever alice may take over, she may not go on beside him.
#[test]
fn a_note_that_another_process_renews_is_not_written() {
    let by_bob = |seconds| noted(MaintenanceStage::Working, "bob@laptop", seconds);
    let stage = MaintenanceStage::Returning;
    let mark = MaintenanceWrite::Mark { stage, cordoned: true, before: String::new(), paused: None };
    let renew = MaintenanceWrite::Renew { paused: None };
    for write in [mark, renew, MaintenanceWrite::Stop, MaintenanceWrite::Release, MaintenanceWrite::Leave] {
        let options = OperationOptions { take_over: true, ..by_alice() };
        assert_eq!(patch(write.clone(), options, by_bob(179)), None, "{write:?}");
        assert!(patch(write.clone(), by_alice(), by_bob(180)).is_some(), "{write:?}: bob's process is gone");
    }
}

#[test]
fn only_one_process_takes_over_the_note_of_a_maintenance_that_was_stopped() {
    let by_bob = |seconds| noted(MaintenanceStage::Working, "bob@laptop", seconds);
    let resume = |options, seen| patch(MaintenanceWrite::Resume, options, seen);
    let taken = written(&resume(by_alice(), by_bob(180)).expect("written"));
    assert_eq!((&*taken.by, taken.renewed, taken.stage), ("alice@desk", NOW, MaintenanceStage::Working));
    assert_eq!(resume(by_alice(), by_bob(1)), None, "bob was first");
    let options = OperationOptions { take_over: true, ..by_alice() };
    assert!(resume(options, by_bob(1)).is_some());
}
