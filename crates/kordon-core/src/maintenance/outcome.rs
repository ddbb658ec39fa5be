//! Progress of a maintenance: its waves so far, and the state of each node.

use std::collections::{BTreeMap, BTreeSet};

use super::{LeftOutReason, MaintenancePlan, MaintenanceWave};
use crate::{
    cluster::{NodeName, Uid},
    operation::{OperationProgress, PodEnd, PodProgressStage},
    plan::{Plan, PodOutcome},
};
use kordon_time::Timestamp;

/// Progress of a maintenance.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MaintenanceOutcome {
    pub nodes: BTreeMap<NodeName, NodeRecord>,
    started: Vec<StartedWave>,
    /// Waves of the newest plan that have not started, in order.
    pub planned: Vec<MaintenanceWave>,
    /// Nodes that are in no wave of the newest plan.
    pub left_out: Vec<(NodeName, LeftOutReason)>,
    /// Number of pods that have left their node, and whose replacement was to land on a node.
    pub moves: usize,
    /// Number of evictions that had to be repeated because they were refused or failed.
    pub repeated: usize,
}

/// A wave that has started: its actual start and its planned times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StartedWave {
    starts: Timestamp,
    planned: Option<(Timestamp, Timestamp)>,
}

/// The progress of a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeRecord {
    /// Number of the node's wave, from 1.
    pub wave: usize,
    pub drained: Option<Timestamp>,
    pub worked: Option<Timestamp>,
    pub done: Option<Timestamp>,
    pub failed: Option<String>,
}

/// A step that a node has completed in the maintenance, or its failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeResult {
    Drained,
    /// The work on the node's machine is done.
    Worked,
    /// The node is back in service.
    Done,
    Failed(String),
}

/// The course of a wave so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastWave {
    pub nodes: Vec<NodeName>,
    pub starts: Timestamp,
    /// When the drain of the wave's last node ended; `None` until every node has been drained.
    pub drained: Option<Timestamp>,
    /// When the last node of the wave was back in service; `None` until every node is back.
    pub ends: Option<Timestamp>,
    /// Planned times at which all nodes of the wave are empty and at which all are back, computed from the actual start
    /// of the wave; `None` if this process did not plan the wave.
    pub planned: Option<(Timestamp, Timestamp)>,
    /// Whether the drain or the work of a node has failed.
    pub has_failed: bool,
}

impl MaintenanceOutcome {
    /// A maintenance of which no wave has started.
    pub fn planned(plan: &MaintenancePlan) -> Self {
        Self { planned: plan.waves.clone(), left_out: plan.left_out.clone(), ..Self::default() }
    }

    /// Starts a wave with these nodes. Returns its number, from 1.
    pub fn start_wave(&mut self, nodes: &[NodeName], now: Timestamp) -> usize {
        let wave = self.planned.iter().find(|wave| wave.nodes == nodes);
        let planned = wave.map(|wave| {
            let from_start = |at: Timestamp| now + at.since(wave.starts);
            (from_start(wave.drained), from_start(wave.ends))
        });
        self.started.push(StartedWave { starts: now, planned });
        for node in nodes {
            self.nodes.entry(node.clone()).or_default().wave = self.started.len();
        }
        self.planned.retain(|wave| wave.nodes != nodes);
        self.started.len()
    }

    pub fn record(&mut self, node: &NodeName, result: NodeResult, now: Timestamp) {
        let record = self.nodes.entry(node.clone()).or_default();
        match result {
            NodeResult::Drained => record.drained = Some(now),
            NodeResult::Worked => record.worked = Some(now),
            NodeResult::Done => record.done = Some(now),
            NodeResult::Failed(why) => record.failed = Some(why),
        }
    }

    /// Adds the pods of a drain to the numbers of moves and repeated evictions. The plan of the drain decides which
    /// pods move, as in the plan of the maintenance: lost and finished pods do not.
    pub fn count_pods(&mut self, progress: &OperationProgress, plan: &Plan) {
        let moves = plan.pods.iter().filter(|row| matches!(row.outcome, PodOutcome::Moves { .. }));
        let moves: BTreeSet<&Uid> = moves.map(|row| &row.uid).collect();
        for pod in &progress.pods {
            let is_gone = matches!(pod.stage, PodProgressStage::Ended(PodEnd::Gone | PodEnd::Replaced));
            self.moves += usize::from(is_gone && moves.contains(&pod.uid));
            self.repeated += usize::try_from(pod.tries.saturating_sub(1)).unwrap_or(usize::MAX);
        }
    }

    /// The nodes that failed, with the reasons; `None` if no node failed.
    pub fn failure(&self) -> Option<String> {
        let failed = self.nodes.iter().filter_map(|(node, record)| {
            let why = record.failed.as_ref()?;
            Some(format!("{node}: {why}"))
        });
        let failed: Vec<String> = failed.collect();
        (!failed.is_empty()).then(|| failed.join("; "))
    }

    /// Whether this process has seen that a node is drained.
    pub fn is_drained(&self, node: &NodeName) -> bool {
        self.nodes.get(node).is_some_and(|record| record.drained.is_some())
    }

    /// Returns those of the nodes whose wave has not started, and that are not left out.
    pub fn not_started(&self, nodes: &[NodeName]) -> Vec<NodeName> {
        let is_left_out = |name: &NodeName| self.left_out.iter().any(|(node, _)| node == name);
        nodes.iter().filter(|name| !self.nodes.contains_key(*name) && !is_left_out(name)).cloned().collect()
    }

    /// Number of nodes that are back in service.
    pub fn done(&self) -> usize {
        self.nodes.values().filter(|record| record.failed.is_none() && record.done.is_some()).count()
    }

    /// Number of nodes that are in a wave, or will be by the newest plan.
    pub fn count(&self) -> usize {
        self.nodes.len() + self.planned.iter().map(|wave| wave.nodes.len()).sum::<usize>()
    }

    /// The waves that have started, in order.
    pub fn waves(&self) -> Vec<PastWave> {
        self.started.iter().enumerate().map(|(place, started)| self.wave(place + 1, *started)).collect()
    }

    fn wave(&self, number: usize, StartedWave { starts, planned }: StartedWave) -> PastWave {
        let of_wave = || self.nodes.iter().filter(move |(_, record)| record.wave == number);
        // Returns the latest `time` among the wave's nodes; `None` until every node of the wave has one.
        let last = |time: fn(&NodeRecord) -> Option<Timestamp>| {
            of_wave().map(|(_, record)| time(record)).reduce(|one, other| Some(one?.max(other?))).flatten()
        };
        PastWave {
            nodes: of_wave().map(|(node, _)| node.clone()).collect(),
            starts,
            planned,
            drained: last(|record| record.drained),
            ends: last(|record| record.done),
            has_failed: of_wave().any(|(_, record)| record.failed.is_some()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wave_is_over_when_its_last_node_is_back() {
        let at = Timestamp::from_secs;
        let nodes: [NodeName; 2] = ["n1".into(), "n2".into()];
        let mut outcome = MaintenanceOutcome::default();
        assert_eq!(outcome.start_wave(&nodes, at(10)), 1);
        outcome.record(&nodes[0], NodeResult::Drained, at(20));
        let wave = outcome.waves().remove(0);
        assert_eq!((wave.starts, wave.drained, wave.ends), (at(10), None, None));
        outcome.record(&nodes[1], NodeResult::Drained, at(25));
        outcome.record(&nodes[1], NodeResult::Done, at(40));
        outcome.record(&nodes[0], NodeResult::Done, at(30));
        let wave = outcome.waves().remove(0);
        assert_eq!((wave.drained, wave.ends, wave.has_failed), (Some(at(25)), Some(at(40)), false));
        assert_eq!((outcome.done(), outcome.failure()), (2, None));

        outcome.left_out.push(("n4".into(), LeftOutReason::NoRoom { pods: 1 }));
        let names = ["n2", "n3", "n4"].map(NodeName::from);
        assert_eq!(outcome.not_started(&names), ["n3".into()]);
        assert_eq!(outcome.start_wave(&["n3".into()], at(41)), 2);
        assert_eq!(outcome.not_started(&names), []);
        outcome.record(&"n3".into(), NodeResult::Failed("exit status: 7".into()), at(50));
        let waves = outcome.waves();
        assert!(waves[1].has_failed && waves[1].ends.is_none() && !waves[0].has_failed);
        assert_eq!(outcome.failure().as_deref(), Some("n3: exit status: 7"));
    }
}
