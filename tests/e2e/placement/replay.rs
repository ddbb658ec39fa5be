//! Replays the changes in the order in which the scheduler saw them, and predicts each of the scheduler's decisions.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt::Write as _,
    sync::Arc,
};

use anyhow::{Context, Result, ensure};
use kordon_core::{
    cluster::{Change, Cluster, Key, NodeName, ObjectEvent, Pod},
    engine::ServerVersion,
    placement::{SchedulingOutcome, SchedulingRequest, Scorer, Snapshot},
};
use kordon_time::Timestamp;

use super::{
    as_planned::ObservedDrain,
    history::ReceivedChange,
    scheduler_log::{LogEntry, LogLine},
};
use crate::common::placements::RecordedPlacement;

/// An attempt of the scheduler to place a pod, and kordon's prediction.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub at: Timestamp,
    pub pod: Arc<Pod>,
    pub real: ActualOutcome,
    /// Scores that the scheduler gave; empty if it did not score.
    pub scores: Scores,
    pub predicted: SchedulingOutcome,
    pub feasible: Vec<NodeName>,
}

/// Score that each plugin gave a node, by node and plugin.
pub type Scores = BTreeMap<String, BTreeMap<String, i64>>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActualOutcome {
    Bound(NodeName),
    Unschedulable(String),
}

impl ActualOutcome {
    /// Whether the node is one of the predicted best nodes, or the pod is unschedulable as predicted.
    pub fn is_among(&self, predicted: &SchedulingOutcome) -> bool {
        match (self, predicted) {
            (Self::Bound(node), SchedulingOutcome::Placed(placement)) => placement.best.contains(node),
            (Self::Unschedulable(_), SchedulingOutcome::Unschedulable(_)) => true,
            (Self::Bound(_) | Self::Unschedulable(_), _) => false,
        }
    }
}

/// Replays the changes in the order of the scheduler's log, and predicts each of its attempts. Also returns the changes
/// and decisions that the scheduler's log has after `drained`.
///
/// # Errors
/// The log has a change that is not in `changes`.
pub fn replay(
    changes: Vec<ReceivedChange>,
    scheduler_log: &[LogLine],
    version: ServerVersion,
    drained: Timestamp,
) -> Result<(Vec<Attempt>, ObservedDrain)> {
    let mut replay = Replay::new(changes);
    let mut attempts = Vec::new();
    for (place, line) in scheduler_log.iter().enumerate() {
        if replay.drain.is_none() && line.at >= drained {
            replay.apply_others_until(line.at);
            replay.drain = Some(ObservedDrain::of(replay.cluster.clone(), line.at));
        }
        match &line.entry {
            LogEntry::Attempt(pod) => {
                replay.apply_others_until(line.at);
                let after = &scheduler_log[place + 1..];
                attempts.extend(replay.attempt(line.at, pod, after, version));
            }
            LogEntry::Waiting(pod) => replay.on_waiting(pod),
            LogEntry::Assigned(pod) => {
                replay.on_assigned(pod).with_context(|| format!("{pod} was assigned"))?
            }
            LogEntry::Changed(pod) => replay.on_changed(pod).with_context(|| format!("{pod} has changed"))?,
            LogEntry::Deleted(pod) => replay.on_deleted(pod).with_context(|| format!("{pod} was deleted"))?,
            LogEntry::NodeAdded(node) => replay.apply_node_until(node, line.at),
            LogEntry::NodeChanged(node) => {
                replay.on_node_changed(node).with_context(|| format!("{node} has changed"))?;
            }
            LogEntry::Scored { .. } | LogEntry::Bound { .. } | LogEntry::Unschedulable { .. } => {}
        }
    }
    let behind = replay.nodes.values().flatten().count();
    // The scheduler may have stopped between a change and its log line.
    ensure!(behind < 5, "the scheduler's log has no line for {behind} changes of nodes");
    Ok((attempts, replay.drain.context("the log ends before the drain")?))
}

/// The cluster as the scheduler sees it, and the changes that the scheduler has not seen yet, by object.
struct Replay {
    cluster: Cluster,
    pods: BTreeMap<Key, VecDeque<ObjectEvent<Pod>>>,
    nodes: BTreeMap<NodeName, VecDeque<ReceivedChange>>,
    others: VecDeque<ReceivedChange>,
    /// Changes and decisions of the drain; `None` until the drain has begun.
    drain: Option<ObservedDrain>,
}

impl Replay {
    fn new(changes: Vec<ReceivedChange>) -> Self {
        let mut replay = Self {
            cluster: Cluster::default(),
            pods: BTreeMap::new(),
            nodes: BTreeMap::new(),
            others: VecDeque::new(),
            drain: None,
        };
        for changes in changes {
            match &changes.change {
                Change::Pod(ObjectEvent::Applied(pod)) => {
                    let event = ObjectEvent::Applied(pod.clone());
                    replay.pods.entry(pod.key.clone()).or_default().push_back(event);
                }
                Change::Pod(ObjectEvent::Deleted(key)) => {
                    replay.pods.entry(key.clone()).or_default().push_back(ObjectEvent::Deleted(key.clone()));
                }
                Change::Node(ObjectEvent::Applied(node)) => {
                    replay.nodes.entry(node.name.clone()).or_default().push_back(changes);
                }
                Change::Node(ObjectEvent::Deleted(node)) => {
                    replay.nodes.entry(node.clone()).or_default().push_back(changes);
                }
                // All other events of pods and nodes come from the first lists, which are empty.
                Change::Pod(_) | Change::Node(_) => replay.apply(changes.change),
                _ => replay.others.push_back(changes),
            }
        }
        replay
    }

    fn apply(&mut self, change: Change) {
        let mut applied = Vec::new();
        self.cluster.apply(change, &mut applied);
        if let Some(drain) = &mut self.drain {
            applied.iter().for_each(|applied| drain.on_applied(applied));
        }
    }

    fn apply_others_until(&mut self, at: Timestamp) {
        while let Some(changes) = self.others.pop_front_if(|changes| changes.at <= at) {
            self.apply(changes.change);
        }
    }

    fn apply_node_until(&mut self, node: &str, at: Timestamp) {
        while let Some(changes) =
            self.nodes.get_mut(node).and_then(|changes| changes.pop_front_if(|changes| changes.at <= at))
        {
            self.apply(changes.change);
        }
    }

    fn on_node_changed(&mut self, node: &str) -> Result<()> {
        let changes = self.nodes.get_mut(node).and_then(VecDeque::pop_front);
        self.apply(changes.context("no watch has reported it")?.change);
        Ok(())
    }

    /// Returns the pod's next event if `wanted` accepts it.
    fn next(
        &mut self,
        pod: &Key,
        wanted: impl FnOnce(&mut ObjectEvent<Pod>) -> bool,
    ) -> Option<ObjectEvent<Pod>> {
        self.pods.get_mut(pod)?.pop_front_if(wanted)
    }

    /// Applies the next change of a pod if the pod has no node after that change. A change with a node waits for
    /// [`Self::on_assigned`]: the scheduler's log has no line for changes of pods that the scheduler has already
    /// assumed on a node.
    fn on_waiting(&mut self, pod: &Key) {
        let waits =
            |event: &mut ObjectEvent<Pod>| matches!(event, ObjectEvent::Applied(pod) if pod.node.is_none());
        if let Some(event) = self.next(pod, waits) {
            self.apply(Change::Pod(event));
        }
    }

    /// Applies the pod's changes up to the change that assigns the pod to a node.
    fn on_assigned(&mut self, pod: &Key) -> Result<()> {
        loop {
            let event = self.next(pod, |_| true).context("no watch has reported it")?;
            let assigned = matches!(&event, ObjectEvent::Applied(pod) if pod.node.is_some());
            self.apply(Change::Pod(event));
            if assigned {
                return Ok(());
            }
        }
    }

    fn on_changed(&mut self, pod: &Key) -> Result<()> {
        let event = self.next(pod, |event| matches!(event, ObjectEvent::Applied(_)));
        self.apply(Change::Pod(event.context("no watch has reported it")?));
        Ok(())
    }

    /// Applies the pod's changes up to its deletion.
    fn on_deleted(&mut self, pod: &Key) -> Result<()> {
        loop {
            let event = self.next(pod, |_| true).context("no watch has reported it")?;
            let deleted = matches!(event, ObjectEvent::Deleted(_));
            self.apply(Change::Pod(event));
            if deleted {
                return Ok(());
            }
        }
    }

    /// Predicts an attempt, and reads its outcome from the log. From then on the pod is assumed on its node, as in the
    /// scheduler. Returns `None` if the log ends before the outcome.
    fn attempt(
        &mut self,
        at: Timestamp,
        pod: &Key,
        after: &[LogLine],
        version: ServerVersion,
    ) -> Option<Attempt> {
        let (real, scores) = outcome(pod, after)?;
        let pod = self.cluster.pod(pod)?.clone();
        let mut snapshot = Snapshot::new(&self.cluster, version);
        let shape = SchedulingRequest::from_pod(&pod, &self.cluster);
        let predicted = snapshot.place(&shape);
        let feasible = snapshot.feasible(&shape);
        if let Some(drain) = &mut self.drain {
            drain.on_decision(pod.clone(), real.clone());
        }
        if let ActualOutcome::Bound(node) = &real {
            let assumed = Pod { node: Some(node.clone()), nominated: None, ..(*pod).clone() };
            self.apply(Change::Pod(ObjectEvent::Applied(assumed)));
        }
        Some(Attempt { at, pod, real, scores, predicted, feasible })
    }
}

/// Returns the outcome of the attempt that has just started, and its scores.
fn outcome(pod: &Key, after: &[LogLine]) -> Option<(ActualOutcome, Scores)> {
    let mut scores = Scores::new();
    for line in after {
        match &line.entry {
            LogEntry::Scored { pod: of, plugin, node, points } if of == pod => {
                scores.entry(node.clone()).or_default().insert(plugin.clone(), *points);
            }
            LogEntry::Bound { pod: of, node } if of == pod => {
                return Some((ActualOutcome::Bound(node.as_str().into()), scores));
            }
            LogEntry::Unschedulable { pod: of, why } if of == pod => {
                return Some((ActualOutcome::Unschedulable(why.clone()), scores));
            }
            LogEntry::Attempt(of) if of == pod => return None,
            _ => {}
        }
    }
    None
}

impl Attempt {
    /// Whether the chosen node is one of the predicted nodes, or the pod is unschedulable as predicted.
    pub fn is_predicted(&self) -> bool {
        self.real.is_among(&self.predicted)
    }

    /// For an unschedulable pod, returns the counts of reasons that differ from the predicted ones.
    pub fn wrong_reasons(&self) -> Vec<String> {
        match (&self.real, &self.predicted) {
            (ActualOutcome::Unschedulable(why), SchedulingOutcome::Unschedulable(predicted)) => {
                RecordedPlacement::unschedulable(&self.pod.key.to_string(), why)
                    .differences_of_counts(why, predicted)
            }
            _ => Vec::new(),
        }
    }

    /// Whether the predicted feasible nodes are those that the scheduler scored; `None` if it did not score.
    pub fn feasible_agrees(&self) -> Option<bool> {
        let scored = self.scores.keys().map(String::as_str);
        (!self.scores.is_empty()).then(|| scored.eq(self.feasible.iter().map(|node| &**node)))
    }

    /// Whether the predicted scores are exactly those of the scheduler's plugins; `None` if it did not score.
    pub fn scores_agree(&self) -> Option<bool> {
        let SchedulingOutcome::Placed(placement) = &self.predicted else { return None };
        let agrees = |scored: &kordon_core::placement::Scored| {
            let real = self.scores.get(&*scored.node);
            real.is_some_and(|real| {
                Scorer::ALL
                    .iter()
                    .zip(scored.parts)
                    .all(|(scorer, ours)| real.get(plugin(*scorer)).copied().unwrap_or_default() == ours)
            })
        };
        (!self.scores.is_empty()).then(|| placement.ranking.iter().all(agrees))
    }

    /// Returns the number of nodes that were predicted to be tied for the best.
    pub fn best(&self) -> usize {
        match &self.predicted {
            SchedulingOutcome::Placed(placement) => placement.best.len(),
            SchedulingOutcome::Unschedulable(_) | SchedulingOutcome::NotTried(_) => 0,
        }
    }

    /// Describes the scheduler's and kordon's scores of the nodes that each of them ranks best.
    pub fn tables(&self) -> String {
        let mut out = format!("{} {}", self.at, self.pod.key);
        let predicted = match (&self.real, &self.predicted) {
            (ActualOutcome::Bound(node), SchedulingOutcome::Placed(placement)) => {
                let _ = writeln!(out, " went to {node}; predicted {:?}", placement.best);
                placement
            }
            (real, predicted) => {
                let _ = writeln!(out, ": {real:?}; predicted {predicted:?}");
                return out;
            }
        };
        let total = |node: &str| self.scores.get(node).map(|parts| parts.values().sum::<i64>());
        let mut real: Vec<&String> = self.scores.keys().collect();
        real.sort_by_key(|node| std::cmp::Reverse(total(node)));
        let _ = writeln!(out, "  kube-scheduler scored {} nodes:", real.len());
        for node in real.iter().take(5) {
            let _ = writeln!(out, "    {node} {:?}: {:?}", total(node), self.scores[*node]);
        }
        if let ActualOutcome::Bound(node) = &self.real {
            let _ = writeln!(out, "    the chosen node: {:?}", self.scores.get(&**node));
        }
        let _ = writeln!(out, "  kordon scored {} nodes:", self.feasible.len());
        for scored in predicted.ranking.iter().take(5) {
            let parts: Vec<String> = Scorer::ALL
                .iter()
                .zip(scored.parts)
                .map(|(of, part)| format!("{} {part}", plugin(*of)))
                .collect();
            let _ = writeln!(out, "    {} {}: {}", scored.node, scored.total, parts.join(", "));
        }
        out
    }
}

/// Returns the name of the upstream plugin that computes this score.
fn plugin(scorer: Scorer) -> &'static str {
    match scorer {
        Scorer::LeastAllocated => "NodeResourcesFit",
        Scorer::BalancedAllocation => "NodeResourcesBalancedAllocation",
        Scorer::Taints => "TaintToleration",
        Scorer::NodeAffinity => "NodeAffinity",
        Scorer::Spread => "PodTopologySpread",
        Scorer::PodAffinity => "InterPodAffinity",
        Scorer::Images => "ImageLocality",
    }
}
