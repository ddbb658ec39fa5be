//! The maintenances of a cluster, as the notes on its nodes show them.

use std::collections::BTreeMap;

use super::{
    Change, Cluster, DrainClaim, MaintenanceNote, MaintenanceStage, Node, NodeName, ObjectEvent, OperationId,
    Version,
};
use kordon_time::Timestamp;

/// A maintenance as the notes on its nodes show it: the nodes that it has not completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaintenanceNotes {
    pub operation: OperationId,
    /// Who runs the maintenance, for example `alice@desk`.
    pub by: String,
    pub nodes: BTreeMap<NodeName, MaintenanceNote>,
    /// The claims of the maintenance's drains. While nodes are drained, only these claims are renewed.
    pub claims: Vec<DrainClaim>,
}

impl MaintenanceNotes {
    /// A maintenance without known nodes.
    pub const fn blank(operation: OperationId, by: String) -> Self {
        Self { operation, by, nodes: BTreeMap::new(), claims: Vec::new() }
    }

    /// All maintenances of a cluster, by their ids.
    pub fn all(cluster: &Cluster) -> Vec<Self> {
        let mut found: BTreeMap<&OperationId, Self> = BTreeMap::new();
        for node in cluster.nodes().iter() {
            let Some(note) = &node.maintenance else { continue };
            let blank = || Self::blank(note.operation.clone(), note.by.clone());
            let notes = found.entry(&note.operation).or_insert_with(blank);
            notes.nodes.insert(node.name.clone(), (**note).clone());
            let claim = node.drain_claim.as_ref().filter(|claim| claim.operation == note.operation);
            notes.claims.extend(claim.map(|claim| (**claim).clone()));
        }
        found.into_values().collect()
    }

    /// The maintenance with this id; `None` if no node has a note of it.
    pub fn find(cluster: &Cluster, operation: &OperationId) -> Option<Self> {
        Self::all(cluster).into_iter().find(|notes| notes.operation == *operation)
    }

    /// Whether the maintenance with this id is running.
    pub fn runs(cluster: &Cluster, operation: &OperationId, now: Timestamp) -> bool {
        Self::find(cluster, operation).is_some_and(|notes| notes.is_running(now))
    }

    /// Names a maintenance that has one of these nodes, running or stopped, with its owner; `None` if there is none.
    pub fn on_nodes(cluster: &Cluster, nodes: &[NodeName], now: Timestamp) -> Option<String> {
        Self::all(cluster).into_iter().find_map(|notes| {
            let node = nodes.iter().find(|node| notes.nodes.contains_key(*node))?;
            Some(format!("{node} is {}", in_maintenance(&notes.operation, &notes.by, notes.is_running(now))))
        })
    }

    /// Whether the maintenance is running. A running maintenance keeps renewing one of its notes, or the claims of its
    /// drains.
    pub fn is_running(&self, now: Timestamp) -> bool {
        self.nodes.values().any(|note| note.is_fresh(now))
            || self.claims.iter().any(|claim| claim.is_fresh(now))
    }

    /// When a note of the maintenance or a claim of its drains was last renewed; `None` without nodes.
    pub fn renewed(&self) -> Option<Timestamp> {
        let notes = self.nodes.values().map(|note| note.renewed);
        notes.chain(self.claims.iter().map(|claim| claim.renewed)).max()
    }

    /// Since when the maintenance is paused; `None` if it is not. The newest note says so, because a note is written at
    /// the start and at the end of a pause.
    pub fn paused(&self) -> Option<Timestamp> {
        self.nodes.values().max_by_key(|note| note.renewed)?.paused
    }

    /// The nodes of the maintenance that are in one of these stages.
    pub fn in_stages(&self, stages: &[MaintenanceStage]) -> Vec<NodeName> {
        let is_in = |(_, note): &(&NodeName, &MaintenanceNote)| stages.contains(&note.stage);
        self.nodes.iter().filter(is_in).map(|(node, _)| node.clone()).collect()
    }

    /// A copy of the cluster from which waves are computed. Nodes that this maintenance has cordoned until their turn
    /// are schedulable in it.
    pub fn without_cordons(&self, cluster: &Cluster) -> Cluster {
        let mut copy = cluster.clone();
        let is_ours = |node: &&Node| {
            let by = node.cordon().and_then(|note| note.operation.as_ref());
            by == Some(&self.operation) && self.nodes.contains_key(&node.name)
        };
        for node in cluster.nodes().iter().map(|node| &**node).filter(is_ours) {
            let version = Version(node.version.0 + 1);
            let open = Node { unschedulable: false, version, ..node.clone() };
            copy.apply(Change::Node(ObjectEvent::Applied(open)), &mut Vec::new());
        }
        copy
    }
}

/// Names the maintenance of a node, after the node's name: `in maintenance-20261129-0300-x1, a maintenance of
/// alice@desk`.
pub fn in_maintenance(operation: &OperationId, by: &str, is_running: bool) -> String {
    let state = if is_running { "" } else { ", which was stopped" };
    format!("in {operation}, a maintenance of {by}{state}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::CordonNote;
    use kordon_time::Span;

    fn node(name: &str, operation: &str, stage: MaintenanceStage, renewed: i64) -> Node {
        let operation: OperationId = operation.parse().expect("an id");
        let renewed = Timestamp::from_secs(renewed);
        let note = MaintenanceNote {
            by: "alice@desk".into(),
            operation: operation.clone(),
            stage,
            renewed,
            before: String::new(),
            paused: None,
        };
        let cordon = CordonNote { operation: Some(operation), ..CordonNote::default() };
        Node {
            name: name.into(),
            unschedulable: true,
            maintenance: Some(note.into()),
            cordon_note: Some(cordon.into()),
            ..Node::default()
        }
    }

    fn cluster(nodes: impl IntoIterator<Item = Node>) -> Cluster {
        let mut cluster = Cluster::default();
        for node in nodes {
            cluster.apply(Change::Node(ObjectEvent::Applied(node)), &mut Vec::new());
        }
        cluster
    }

    #[test]
    fn a_maintenance_runs_while_any_of_its_notes_is_renewed() {
        let stage = MaintenanceStage::Waiting;
        let cluster = cluster([node("n1", "m1", stage, 100), node("n2", "m1", stage, 1000)]);
        let notes = MaintenanceNotes::find(&cluster, &"m1".parse().expect("an id")).expect("noted");
        let renewed = Timestamp::from_secs(1000);
        assert!(notes.is_running(renewed + Span::from_secs(179)));
        assert!(!notes.is_running(renewed + Span::from_secs(180)));
        assert_eq!(notes.in_stages(&[stage]), ["n1".into(), "n2".into()]);
        assert_eq!(MaintenanceNotes::find(&cluster, &"m2".parse().expect("an id")), None);
    }

    #[test]
    fn the_newest_note_says_whether_a_maintenance_is_paused() {
        let since = Some(Timestamp::from_secs(950));
        let note = |name: &str, renewed, paused| {
            let mut node = node(name, "m1", MaintenanceStage::Waiting, renewed);
            let note = node.maintenance.take().expect("noted");
            node.maintenance = Some(MaintenanceNote { paused, ..(*note).clone() }.into());
            node
        };
        let paused = |nodes: [Node; 2]| MaintenanceNotes::all(&cluster(nodes))[0].paused();
        assert_eq!(paused([note("n1", 1000, since), note("n2", 900, None)]), since);
        assert_eq!(paused([note("n1", 1000, since), note("n2", 1100, None)]), None);
    }

    #[test]
    fn a_maintenance_has_its_nodes_also_once_it_was_stopped() {
        let cluster = cluster([node("n1", "m1", MaintenanceStage::Waiting, 1000)]);
        let on = |node: &str, second| {
            MaintenanceNotes::on_nodes(&cluster, &[node.into()], Timestamp::from_secs(second))
        };
        let running = "n1 is in m1, a maintenance of alice@desk";
        assert_eq!(on("n1", 1000).as_deref(), Some(running));
        assert_eq!(on("n1", 1180), Some(format!("{running}, which was stopped")));
        assert_eq!(on("n2", 1000), None);
    }

    #[test]
    fn a_maintenance_runs_while_one_of_its_drains_renews_its_claim() {
        let mut draining = node("n1", "m1", MaintenanceStage::Draining, 100);
        let claim = |operation: &str| DrainClaim {
            operation: operation.parse().expect("an id"),
            renewed: Timestamp::from_secs(1000),
            ..DrainClaim::default()
        };
        let now = Timestamp::from_secs(1080);
        let is_running = |node: Node| MaintenanceNotes::all(&cluster([node]))[0].is_running(now);
        draining.drain_claim = Some(claim("another").into());
        assert!(!is_running(draining.clone()));
        draining.drain_claim = Some(claim("m1").into());
        assert!(is_running(draining.clone()));
        let renewed = MaintenanceNotes::all(&cluster([draining]))[0].renewed();
        assert_eq!(renewed, Some(Timestamp::from_secs(1000)));
    }

    #[test]
    fn waves_are_worked_out_without_the_cordons_of_the_maintenance() {
        let stage = MaintenanceStage::Waiting;
        let mut other = node("n2", "m1", stage, 0);
        other.cordon_note = None;
        let cluster = cluster([node("n1", "m1", stage, 0), other]);
        let notes = MaintenanceNotes::find(&cluster, &"m1".parse().expect("an id")).expect("noted");
        let open = notes.without_cordons(&cluster);
        let is_cordoned = |name: &str| open.node(&name.into()).is_some_and(|node| node.unschedulable);
        assert!(!is_cordoned("n1") && is_cordoned("n2"), "somebody else has cordoned n2");
    }
}
