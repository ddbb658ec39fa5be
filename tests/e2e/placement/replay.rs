//! The scheduler's work once more: what it saw, in its order, and kordon asked before each of its decisions.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt::Write as _,
    sync::Arc,
};

use anyhow::{Context, Result, ensure};
use kordon::{
    cluster::{Change, Cluster, Key, NodeName, ObjectEvent, Pod},
    engine::ServerVersion,
    placement::{SchedulingOutcome, SchedulingRequest, Scorer, Snapshot},
    time::Timestamp,
};

use super::{
    diary::{Entry, Line},
    history::Told,
};
use crate::common::placements::Seen;

/// What became of one attempt to place a pod, and what kordon foretold of it.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub at: Timestamp,
    pub pod: Arc<Pod>,
    pub real: Real,
    /// By node, what each plugin gave it; empty where the scheduler did not score.
    pub scores: Scores,
    pub foretold: SchedulingOutcome,
    pub feasible: Vec<NodeName>,
}

/// By node, what each plugin gave it.
pub type Scores = BTreeMap<String, BTreeMap<String, i64>>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Real {
    Bound(NodeName),
    Unfit(String),
}

/// Goes through the diary, and asks before each decision.
///
/// # Errors
/// The diary tells of something that the history does not know.
pub fn replay(told: Vec<Told>, diary: &[Line], version: ServerVersion) -> Result<Vec<Attempt>> {
    let mut replay = Replay::new(told);
    let mut attempts = Vec::new();
    for (place, line) in diary.iter().enumerate() {
        match &line.entry {
            Entry::Attempt(pod) => {
                replay.others_until(line.at);
                let after = &diary[place + 1..];
                attempts.extend(replay.attempt(line.at, pod, after, version));
            }
            Entry::Waiting(pod) => replay.waiting(pod),
            Entry::Placed(pod) => replay.placed(pod).with_context(|| format!("{pod} has come"))?,
            Entry::Changed(pod) => replay.changed(pod).with_context(|| format!("{pod} has changed"))?,
            Entry::Gone(pod) => replay.gone(pod).with_context(|| format!("{pod} has gone"))?,
            Entry::NodeAdded(node) => replay.node_until(node, line.at),
            Entry::NodeChanged(node) => {
                replay.node_changed(node).with_context(|| format!("{node} has changed"))?;
            }
            Entry::Scored { .. } | Entry::Bound { .. } | Entry::Unfit { .. } => {}
        }
    }
    let behind = replay.nodes.values().flatten().count();
    // The scheduler may have ended between a change and its line.
    ensure!(behind < 5, "{behind} changes of nodes were never seen by the scheduler: out of step");
    Ok(attempts)
}

/// What has not been taken in yet, by what it is of.
struct Replay {
    cluster: Cluster,
    pods: BTreeMap<Key, VecDeque<ObjectEvent<Pod>>>,
    nodes: BTreeMap<NodeName, VecDeque<Told>>,
    others: VecDeque<Told>,
}

impl Replay {
    fn new(told: Vec<Told>) -> Self {
        let mut replay = Self {
            cluster: Cluster::default(),
            pods: BTreeMap::new(),
            nodes: BTreeMap::new(),
            others: VecDeque::new(),
        };
        for told in told {
            match &told.change {
                Change::Pod(ObjectEvent::Applied(pod)) => {
                    let event = ObjectEvent::Applied(pod.clone());
                    replay.pods.entry(pod.key.clone()).or_default().push_back(event);
                }
                Change::Pod(ObjectEvent::Deleted(key)) => {
                    replay.pods.entry(key.clone()).or_default().push_back(ObjectEvent::Deleted(key.clone()));
                }
                Change::Node(ObjectEvent::Applied(node)) => {
                    replay.nodes.entry(node.name.clone()).or_default().push_back(told);
                }
                Change::Node(ObjectEvent::Deleted(node)) => {
                    replay.nodes.entry(node.clone()).or_default().push_back(told);
                }
                // Lists of nothing, from before there was anything.
                Change::Pod(_) | Change::Node(_) => replay.apply(told.change),
                _ => replay.others.push_back(told),
            }
        }
        replay
    }

    fn apply(&mut self, change: Change) {
        self.cluster.apply(change, &mut Vec::new());
    }

    fn others_until(&mut self, at: Timestamp) {
        while let Some(told) = self.others.pop_front_if(|told| told.at <= at) {
            self.apply(told.change);
        }
    }

    fn node_until(&mut self, node: &str, at: Timestamp) {
        while let Some(told) =
            self.nodes.get_mut(node).and_then(|told| told.pop_front_if(|told| told.at <= at))
        {
            self.apply(told.change);
        }
    }

    fn node_changed(&mut self, node: &str) -> Result<()> {
        let told = self.nodes.get_mut(node).and_then(VecDeque::pop_front);
        self.apply(told.context("nobody has told of it")?.change);
        Ok(())
    }

    /// The pod's next event that is wanted, if that is the next.
    fn next(
        &mut self,
        pod: &Key,
        wanted: impl FnOnce(&mut ObjectEvent<Pod>) -> bool,
    ) -> Option<ObjectEvent<Pod>> {
        self.pods.get_mut(pod)?.pop_front_if(wanted)
    }

    /// A pod that waits: the diary leaves out changes of pods that have been decided over.
    fn waiting(&mut self, pod: &Key) {
        let waits =
            |event: &mut ObjectEvent<Pod>| matches!(event, ObjectEvent::Applied(pod) if pod.node.is_none());
        if let Some(event) = self.next(pod, waits) {
            self.apply(Change::Pod(event));
        }
    }

    /// Takes in what was told of the pod up to its being on a node.
    fn placed(&mut self, pod: &Key) -> Result<()> {
        loop {
            let event = self.next(pod, |_| true).context("nobody has told of it")?;
            let placed = matches!(&event, ObjectEvent::Applied(pod) if pod.node.is_some());
            self.apply(Change::Pod(event));
            if placed {
                return Ok(());
            }
        }
    }

    fn changed(&mut self, pod: &Key) -> Result<()> {
        let event = self.next(pod, |event| matches!(event, ObjectEvent::Applied(_)));
        self.apply(Change::Pod(event.context("nobody has told of it")?));
        Ok(())
    }

    /// Takes in what was told of the pod up to its end.
    fn gone(&mut self, pod: &Key) -> Result<()> {
        loop {
            let event = self.next(pod, |_| true).context("nobody has told of it")?;
            let gone = matches!(event, ObjectEvent::Deleted(_));
            self.apply(Change::Pod(event));
            if gone {
                return Ok(());
            }
        }
    }

    /// Asks kordon, reads what became of the attempt, and from then on reckons with the pod on its node, as the
    /// scheduler does. None where nothing became of it before the diary ends.
    fn attempt(
        &mut self,
        at: Timestamp,
        pod: &Key,
        after: &[Line],
        version: ServerVersion,
    ) -> Option<Attempt> {
        let (real, scores) = outcome(pod, after)?;
        let pod = self.cluster.pod(pod)?.clone();
        let mut snapshot = Snapshot::new(&self.cluster, version);
        let shape = SchedulingRequest::of(&pod, &self.cluster);
        let foretold = snapshot.place(&shape);
        let feasible = snapshot.feasible(&shape);
        if let Real::Bound(node) = &real {
            let assumed = Pod { node: Some(node.clone()), nominated: None, ..(*pod).clone() };
            self.apply(Change::Pod(ObjectEvent::Applied(assumed)));
        }
        Some(Attempt { at, pod, real, scores, foretold, feasible })
    }
}

/// How the attempt ended that has just begun, and the scores that were given in it.
fn outcome(pod: &Key, after: &[Line]) -> Option<(Real, Scores)> {
    let mut scores = Scores::new();
    for line in after {
        match &line.entry {
            Entry::Scored { pod: of, plugin, node, points } if of == pod => {
                scores.entry(node.clone()).or_default().insert(plugin.clone(), *points);
            }
            Entry::Bound { pod: of, node } if of == pod => {
                return Some((Real::Bound(node.as_str().into()), scores));
            }
            Entry::Unfit { pod: of, why } if of == pod => return Some((Real::Unfit(why.clone()), scores)),
            Entry::Attempt(of) if of == pod => return None,
            _ => {}
        }
    }
    None
}

impl Attempt {
    /// Whether the node it went to is one of those foretold; of an attempt in vain, whether that was foretold.
    pub fn is_foretold(&self) -> bool {
        match (&self.real, &self.foretold) {
            (Real::Bound(node), SchedulingOutcome::Placed(placement)) => placement.best.contains(node),
            (Real::Unfit(_), SchedulingOutcome::Unschedulable(_)) => true,
            (Real::Bound(_) | Real::Unfit(_), _) => false,
        }
    }

    /// Of an attempt in vain, where the reasons that were counted differ from those foretold.
    pub fn wrong_reasons(&self) -> Vec<String> {
        match (&self.real, &self.foretold) {
            (Real::Unfit(why), SchedulingOutcome::Unschedulable(foretold)) => {
                Seen::in_vain(&self.pod.key.to_string(), why).differences_of_counts(why, foretold)
            }
            _ => Vec::new(),
        }
    }

    /// Whether the nodes that would do are those that the scheduler scored; none where it did not score.
    pub fn feasible_agrees(&self) -> Option<bool> {
        let scored = self.scores.keys().map(String::as_str);
        (!self.scores.is_empty()).then(|| scored.eq(self.feasible.iter().map(|node| &**node)))
    }

    /// Whether the best-scored nodes have exactly the scores that the scheduler's plugins gave them.
    pub fn scores_agree(&self) -> Option<bool> {
        let SchedulingOutcome::Placed(placement) = &self.foretold else { return None };
        let agrees = |scored: &kordon::placement::Scored| {
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

    /// How many nodes were foretold as equally good.
    pub fn best(&self) -> usize {
        match &self.foretold {
            SchedulingOutcome::Placed(placement) => placement.best.len(),
            SchedulingOutcome::Unschedulable(_) | SchedulingOutcome::NotTried(_) => 0,
        }
    }

    /// Both score tables, for the nodes that matter.
    pub fn tables(&self) -> String {
        let mut out = format!("{} {}", self.at, self.pod.key);
        let foretold = match (&self.real, &self.foretold) {
            (Real::Bound(node), SchedulingOutcome::Placed(placement)) => {
                let _ = writeln!(out, " went to {node}; foretold {:?}", placement.best);
                placement
            }
            (real, foretold) => {
                let _ = writeln!(out, ": {real:?}; foretold {foretold:?}");
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
        if let Real::Bound(node) = &self.real {
            let _ = writeln!(out, "    the node it took: {:?}", self.scores.get(&**node));
        }
        let _ = writeln!(out, "  kordon scored {} nodes:", self.feasible.len());
        for scored in foretold.ranking.iter().take(5) {
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

/// Upstream's name for it.
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
