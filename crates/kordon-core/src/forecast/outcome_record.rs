//! How right predicted outcomes have been: where each pod went that was evicted, or that it went nowhere, compared with what had been
//! predicted when its deletion began.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
};

use super::accuracy::keep;
use crate::{
    cluster::{Cluster, Delta, Key, NodeName, Pod, Uid},
    placement::TiedNodes,
    plan::{OutcomeKind, PodOutcome, warning::has_identity},
};
use kordon_time::{Span, Timestamp};

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
    created: BTreeMap<Uid, Vec<CreatedPod>>,
    counts: OutcomeScore,
    differences: BTreeMap<(&'static str, &'static str), usize>,
    last: VecDeque<OutcomeDifference>,
}

/// A pod that is being evicted.
#[derive(Clone, Debug)]
struct OpenCase {
    at: Timestamp,
    pod: Key,
    uid: Uid,
    owner: Option<Uid>,
    /// Whether its replacement has the same name.
    keeps_its_name: bool,
    from: Option<NodeName>,
    predicted: Option<PredictedOutcome>,
}

/// A pod that was created since, which may be gone again.
#[derive(Clone, Debug)]
struct CreatedPod {
    at: Timestamp,
    key: Key,
    uid: Uid,
    node: Option<NodeName>,
    /// Whether it has been Ready.
    has_run: bool,
}

/// A predicted outcome, as far as it is compared.
#[derive(Clone, Debug)]
struct PredictedOutcome {
    kind: OutcomeKind,
    node: Option<NodeName>,
    /// The nodes that are as good, where it is to move.
    among: Option<TiedNodes>,
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
    /// Its replacement was placed on this node, and has been Ready.
    Runs(NodeName),
    /// Its replacement was placed on this node, and has not been Ready.
    NotStarted(NodeName),
    /// Its replacement has had no node.
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
            keeps_its_name: has_identity(pod),
            from: pod.node.clone(),
            predicted: predicted.and_then(PredictedOutcome::of),
        });
    }

    /// A pod changed.
    pub fn on_pod(&mut self, delta: &Delta<Pod>, now: Timestamp) {
        let Some(new) = &delta.new else { return };
        let Some(created) = new.owner.as_ref().and_then(|owner| self.created.get_mut(&owner.uid)) else {
            return;
        };
        if delta.old.as_ref().is_none_or(|old| old.uid != new.uid) {
            let (key, uid) = (new.key.clone(), new.uid.clone());
            created.push(CreatedPod { at: now, key, uid, node: None, has_run: false });
        }
        if let Some(pod) = created.iter_mut().find(|pod| pod.uid == new.uid) {
            pod.node.clone_from(&new.node);
            pod.has_run |= new.is_ready();
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

    /// What became of a pod. Each pod that its owner created since replaces one: that of a StatefulSet the one of its name, another
    /// one that was predicted to land where it is.
    fn became(&mut self, case: &OpenCase, cluster: &Cluster) -> Became {
        let replacement = case.owner.as_ref().and_then(|owner| {
            let created = self.created.get_mut(owner)?;
            let awaited: BTreeSet<&NodeName> = self
                .open
                .iter()
                .filter(|other| other.owner.as_ref() == Some(owner))
                .filter_map(|other| other.predicted.as_ref()?.node.as_ref())
                .collect();
            let predicted = case.predicted.as_ref().and_then(|predicted| predicted.node.as_ref());
            // One that was there before, itself perhaps, replaces another; and one that was created once the next pod had left
            // likely replaces that.
            let is_later = |pod: &CreatedPod| pod.at >= case.at && pod.uid != case.uid;
            let others =
                self.open.iter().filter(|other| other.owner.as_ref() == Some(owner) && other.at > case.at);
            let next = others.map(|other| other.at).min().unwrap_or(Timestamp::MAX);
            let position = |until: Timestamp, is_it: &dyn Fn(&CreatedPod) -> bool| {
                created.iter().position(|pod| is_later(pod) && pod.at < until && is_it(pod))
            };
            let of_its_name = position(Timestamp::MAX, &|pod| pod.key == case.pod);
            let another = || {
                let rules: [&dyn Fn(&CreatedPod) -> bool; 3] = [
                    &|pod| predicted.is_some() && pod.node.as_ref() == predicted,
                    &|pod| !pod.node.as_ref().is_some_and(|node| awaited.contains(node)),
                    &|_| true,
                ];
                let first = |until| rules.iter().find_map(|rule| position(until, rule));
                first(next).or_else(|| first(Timestamp::MAX))
            };
            let found = if case.keeps_its_name { of_its_name } else { of_its_name.or_else(another) };
            Some(created.remove(found?))
        });
        if !self.open.iter().any(|other| other.owner == case.owner)
            && let Some(owner) = &case.owner
        {
            self.created.remove(owner);
        }
        match replacement {
            Some(CreatedPod { node: Some(node), has_run: true, .. }) => Became::Runs(node),
            Some(CreatedPod { node: Some(node), .. }) => Became::NotStarted(node),
            Some(_) => Became::Pending,
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
        } else if predicted.is_by_chance(&became) {
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
            PodOutcome::Moves { among, .. } => Some(among.clone()),
            PodOutcome::Unknown { .. } | PodOutcome::LeftOut => return None,
            _ => None,
        };
        Some(Self { kind: outcome.kind(), node: outcome.node().cloned(), among })
    }

    /// Whether it moved to another of the nodes that were as good.
    fn is_by_chance(&self, became: &Became) -> bool {
        became.node().zip(self.among.as_ref()).is_some_and(|(node, among)| among.contains(node))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A pod of this name that is evicted from n0, and was to move to n1 or n2.
    fn case(pod: &str, keeps_its_name: bool) -> OpenCase {
        let nodes: BTreeSet<NodeName> = ["n1".into(), "n2".into()].into();
        let predicted = PredictedOutcome {
            kind: OutcomeKind::Moves,
            node: Some("n1".into()),
            among: Some(TiedNodes::of(nodes)),
        };
        OpenCase {
            at: Timestamp::EPOCH,
            pod: Key::new("shop", pod),
            uid: "uid".into(),
            owner: Some("owner".into()),
            keeps_its_name,
            from: Some("n0".into()),
            predicted: Some(predicted),
        }
    }

    /// The counts after it became this.
    fn counts(became: Became) -> OutcomeScore {
        let mut record = OutcomeRecord::default();
        record.count(case("cart", false), became);
        record.report().counts
    }

    #[test]
    fn only_the_nodes_that_were_equally_good_are_chance() {
        let none = OutcomeScore::default();
        let runs = |node: &str| counts(Became::Runs(node.into()));
        assert_eq!(runs("n1"), OutcomeScore { right: 1, ..none });
        assert_eq!(runs("n2"), OutcomeScore { by_chance: 1, ..none });
        assert_eq!(runs("n3"), OutcomeScore { wrong: 1, ..none });
        assert_eq!(counts(Became::Pending), OutcomeScore { wrong: 1, ..none });
    }

    #[test]
    fn a_pod_of_a_stateful_set_is_replaced_by_the_one_of_its_name_alone() {
        let created = |pod: &str, node: &str, has_run| CreatedPod {
            at: Timestamp::EPOCH,
            key: Key::new("shop", pod),
            uid: pod.into(),
            node: Some(node.into()),
            has_run,
        };
        let became = |case: OpenCase| {
            let pods = vec![created("db-3", "n1", true), created("db-7", "n9", false)];
            let mut record = OutcomeRecord::default();
            record.created.insert("owner".into(), pods);
            // None of them exists any more: what became of them was seen.
            record.became(&case, &Cluster::default())
        };
        assert_eq!(became(case("db-7", true)), Became::NotStarted("n9".into()));
        assert_eq!(became(case("db-5", true)), Became::NotReplaced);
        assert_eq!(became(case("db-5", false)), Became::Runs("n1".into()));
        // Of two cases, the first takes what was created before the second began, though another is where it was to be.
        let of_first = {
            let mut record = OutcomeRecord::default();
            let later = CreatedPod { at: Timestamp::from_secs(2), ..created("web-b", "n1", true) };
            record.created.insert("owner".into(), vec![created("web-a", "n5", true), later]);
            record.open.push_back(OpenCase { at: Timestamp::from_secs(1), ..case("web-2", false) });
            record.became(&case("web-1", false), &Cluster::default())
        };
        assert_eq!(of_first, Became::Runs("n5".into()));
        let late = OpenCase { at: Timestamp::from_secs(1), ..case("db-7", true) };
        assert_eq!(became(late), Became::NotReplaced, "what was created before it left is no replacement");
        let itself = OpenCase { uid: "db-7".into(), ..case("db-7", true) };
        assert_eq!(became(itself), Became::NotReplaced);
    }
}
