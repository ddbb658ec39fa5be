//! How right predicted outcomes have been: where each pod went that was evicted, or that it went nowhere, compared with what had been
//! predicted when its deletion began.

use std::{collections::VecDeque, fmt};

use super::accuracy::keep;
use crate::{
    cluster::{Cluster, Delta, Key, NodeName, Pod, Uid},
    ordered::{OrderedMap, OrderedSet},
    plan::{OutcomeKind, PodOutcome},
    time::{Span, Timestamp},
};

/// How long after the start of a pod's deletion its outcome is read: by then its replacement is created, has a node, and runs.
pub const SETTLES: Span = Span::from_secs(60);
/// Differences that are kept, the last ones.
const KEPT: usize = 100;

/// Compares what became of evicted pods with their predicted outcomes.
#[derive(Clone, Debug, Default)]
pub struct OutcomeRecord {
    /// The pods whose outcome is not read yet, oldest first.
    open: VecDeque<OpenCase>,
    /// The pods that were created for the owners of those since, in order of their creation.
    created: OrderedMap<Uid, Vec<Key>>,
    counts: OutcomeScore,
    differences: OrderedMap<(&'static str, &'static str), usize>,
    last: VecDeque<OutcomeDifference>,
}

/// A pod that is being evicted.
#[derive(Clone, Debug)]
struct OpenCase {
    at: Timestamp,
    pod: Key,
    uid: Uid,
    owner: Option<Uid>,
    from: Option<NodeName>,
    predicted: Option<PredictedOutcome>,
}

/// A predicted outcome, as far as it is compared.
#[derive(Clone, Debug)]
struct PredictedOutcome {
    kind: OutcomeKind,
    node: Option<NodeName>,
    among: usize,
}

/// How many outcomes were predicted rightly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutcomeScore {
    /// As predicted, on the node that was predicted where it was to move.
    pub right: usize,
    /// It was to move to any of several nodes that were equally good, and landed on another than the one that was named.
    pub by_chance: usize,
    pub wrong: usize,
    /// No outcome had been predicted, or only that it is not known.
    pub not_predicted: usize,
    /// Its deletion began less than `SETTLES` ago.
    pub open: usize,
}

impl OutcomeScore {
    pub const fn all(self) -> usize {
        self.right + self.by_chance + self.wrong + self.not_predicted + self.open
    }
}

/// What became of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Became {
    /// Its replacement is on this node, and Ready.
    Runs(NodeName),
    /// Its replacement is on this node, and not Ready.
    NotStarted(NodeName),
    /// Its replacement has no node.
    Pending,
    /// It is still there, and has no replacement.
    Stuck,
    /// It is gone, has no replacement, and no owner.
    Lost,
    /// It is gone, and has no replacement.
    NotReplaced,
}

impl Became {
    /// The stable word for it; the same as that of a predicted outcome where they mean the same.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Runs(_) => "moves",
            Self::NotStarted(_) => "notStarted",
            Self::Pending => "pending",
            Self::Stuck => "stuck",
            Self::Lost => "lost",
            Self::NotReplaced => "notReplaced",
        }
    }

    /// The node of the replacement; none if it has none.
    pub const fn node(&self) -> Option<&NodeName> {
        match self {
            Self::Runs(node) | Self::NotStarted(node) => Some(node),
            Self::Pending | Self::Stuck | Self::Lost | Self::NotReplaced => None,
        }
    }
}

/// A pod that became something else than was predicted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutcomeDifference {
    /// When its deletion began.
    pub at: Timestamp,
    pub pod: Key,
    /// The word of the predicted outcome, and the node that it was to move to.
    pub predicted: &'static str,
    pub predicted_node: Option<NodeName>,
    pub became: Became,
}

impl fmt::Display for OutcomeDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pod, predicted, predicted_node, became, .. } = self;
        let to = |node: Option<&NodeName>| node.map(|node| format!(" to {node}")).unwrap_or_default();
        let on = |node: Option<&NodeName>| node.map(|node| format!(" on {node}")).unwrap_or_default();
        let became_node =
            if matches!(became, Became::Runs(_)) { to(became.node()) } else { on(became.node()) };
        write!(
            f,
            "{pod}: predicted {predicted}{}, became {}{became_node}",
            to(predicted_node.as_ref()),
            became.word()
        )
    }
}

/// How right predicted outcomes have been.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutcomeReport {
    pub counts: OutcomeScore,
    /// How often which predicted outcome was which other one.
    pub differences: Vec<OutcomeDifferences>,
    /// The last differences, oldest first.
    pub last: Vec<OutcomeDifference>,
}

/// How often a predicted outcome was another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutcomeDifferences {
    pub predicted: &'static str,
    pub became: &'static str,
    pub pods: usize,
}

impl OutcomeRecord {
    /// The deletion of a pod by taint eviction begins, with the outcome that is predicted for it.
    pub fn on_evicted(&mut self, pod: &Pod, predicted: Option<&PodOutcome>, now: Timestamp) {
        let owner = pod.owner.as_ref().map(|owner| owner.uid.clone());
        if let Some(owner) = &owner {
            self.created.entry(owner.clone()).or_default();
        }
        self.open.push_back(OpenCase {
            at: now,
            pod: pod.key.clone(),
            uid: pod.uid.clone(),
            owner,
            from: pod.node.clone(),
            predicted: predicted.and_then(PredictedOutcome::of),
        });
    }

    /// A pod changed.
    pub fn on_pod(&mut self, delta: &Delta<Pod>) {
        let Some(new) = &delta.new else { return };
        let is_new = delta.old.as_ref().is_none_or(|old| old.uid != new.uid);
        let owner = new.owner.as_ref().filter(|_| is_new);
        if let Some(created) = owner.and_then(|owner| self.created.get_mut(&owner.uid)) {
            created.push(new.key.clone());
        }
    }

    /// Reads the outcomes that are settled.
    pub fn on_time(&mut self, cluster: &Cluster, now: Timestamp) {
        while self.open.front().is_some_and(|case| now.since(case.at) >= SETTLES) {
            let Some(case) = self.open.pop_front() else { return };
            let became = self.became(&case, cluster);
            self.count(case, became);
        }
    }

    /// What is observed from now on is not complete: outcomes that are open stay unknown.
    pub fn restart(&mut self) {
        self.counts.not_predicted += self.open.len();
        self.open.clear();
        self.created.clear();
    }

    pub fn report(&self) -> OutcomeReport {
        let differences = self.differences.iter();
        let differences = differences.map(|((predicted, became), pods)| OutcomeDifferences {
            predicted,
            became,
            pods: *pods,
        });
        OutcomeReport {
            counts: OutcomeScore { open: self.open.len(), ..self.counts },
            differences: differences.collect(),
            last: self.last.iter().cloned().collect(),
        }
    }

    /// What became of a pod. Each pod that its owner created since replaces one: the one of its name, or one that was predicted to land
    /// where it is.
    fn became(&mut self, case: &OpenCase, cluster: &Cluster) -> Became {
        let replacement = case.owner.as_ref().and_then(|owner| {
            let created = self.created.get_mut(owner)?;
            let awaited: OrderedSet<&NodeName> = self
                .open
                .iter()
                .filter(|other| other.owner.as_ref() == Some(owner))
                .filter_map(|other| other.predicted.as_ref()?.node.as_ref())
                .collect();
            let predicted = case.predicted.as_ref().and_then(|predicted| predicted.node.as_ref());
            let node = |key: &Key| cluster.pod(key).and_then(|pod| pod.node.as_ref());
            let found = created
                .iter()
                .position(|key| *key == case.pod)
                .or_else(|| created.iter().position(|key| predicted.is_some() && node(key) == predicted))
                .or_else(|| {
                    created.iter().position(|key| !node(key).is_some_and(|node| awaited.contains(node)))
                })
                .or_else(|| (!created.is_empty()).then_some(0))?;
            Some(created.remove(found))
        });
        if !self.open.iter().any(|other| other.owner == case.owner)
            && let Some(owner) = &case.owner
        {
            self.created.remove(owner);
        }
        let pod = |key: &Key| cluster.pod(key).filter(|pod| pod.uid != case.uid);
        match replacement.as_ref().and_then(pod) {
            Some(pod) => match &pod.node {
                Some(node) if pod.is_ready() => Became::Runs(node.clone()),
                Some(node) => Became::NotStarted(node.clone()),
                None => Became::Pending,
            },
            None if cluster.pod(&case.pod).is_some_and(|pod| pod.uid == case.uid) => Became::Stuck,
            None if case.owner.is_none() => Became::Lost,
            None => Became::NotReplaced,
        }
    }

    fn count(&mut self, case: OpenCase, became: Became) {
        let OpenCase { at, pod, from, predicted, .. } = case;
        let Some(predicted) = predicted else {
            self.counts.not_predicted += 1;
            return;
        };
        if predicted.is_right(&became, from.as_ref()) {
            self.counts.right += 1;
        } else if predicted.among > 1 && became.node().is_some() {
            self.counts.by_chance += 1;
        } else {
            self.counts.wrong += 1;
            *self.differences.entry((predicted.kind.word(), became.word())).or_default() += 1;
            let PredictedOutcome { kind, node, .. } = predicted;
            let difference =
                OutcomeDifference { at, pod, predicted: kind.word(), predicted_node: node, became };
            keep(&mut self.last, difference, KEPT);
        }
    }
}

impl PredictedOutcome {
    /// None for an outcome that says that nothing is known.
    fn of(outcome: &PodOutcome) -> Option<Self> {
        let among = match outcome {
            PodOutcome::Moves { among, .. } => *among,
            PodOutcome::Unknown { .. } | PodOutcome::LeftOut => return None,
            _ => 1,
        };
        Some(Self { kind: outcome.kind(), node: outcome.node().cloned(), among })
    }

    fn is_right(&self, became: &Became, from: Option<&NodeName>) -> bool {
        match (self.kind, became) {
            (OutcomeKind::Moves | OutcomeKind::Preempts, Became::Runs(node) | Became::NotStarted(node)) => {
                self.node.as_ref() == Some(node)
            }
            (OutcomeKind::SameNode, Became::Runs(node) | Became::NotStarted(node)) => from == Some(node),
            // A volume is held: the replacement has a node, and cannot start there.
            (OutcomeKind::Stuck, Became::Stuck | Became::NotStarted(_))
            | (OutcomeKind::Refused, Became::NotReplaced | Became::Stuck)
            | (OutcomeKind::Lost, Became::Lost | Became::Stuck)
            | (OutcomeKind::NotRecreated | OutcomeKind::Finished, Became::NotReplaced | Became::Stuck)
            | (OutcomeKind::Replaced, Became::Runs(_) | Became::NotStarted(_) | Became::Pending)
            | (
                OutcomeKind::WaitsForOldPod,
                Became::Runs(_) | Became::NotStarted(_) | Became::Pending | Became::Stuck,
            )
            | (OutcomeKind::Pending, Became::Pending) => true,
            _ => false,
        }
    }
}
