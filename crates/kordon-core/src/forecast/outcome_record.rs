//! Accuracy of predicted outcomes: compares where the replacement of each evicted pod went, if anywhere, with the
//! outcome that was predicted when the pod's deletion began.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
};

use super::{comparison::magnitude, newest::keep};
use crate::{
    cluster::{Cluster, Delta, Key, NodeName, Pod, Uid},
    placement::TiedNodes,
    plan::{MAX_BACK_OFF, OutcomeKind, PodOutcome, warning::has_identity},
};
use kordon_time::{Span, Timestamp};

/// Time from the start of a pod's deletion, or from the time at which its replacement should be Ready, until the pod's
/// outcome is read. After this time the replacement should be created (by a Job, only after its back-off), have a node,
/// and run.
pub const SETTLES: Span = Span::from_secs(60);
/// Evictions within this time happen at once. Those of pods of one owner belong to one group.
const AT_ONCE: Span = Span::from_secs(1);
/// Maximum number of differences between predicted and observed outcomes that are kept. The oldest are dropped.
const KEPT: usize = 100;

/// Compares the outcomes of evicted pods with their predicted outcomes.
#[derive(Clone, Debug, Default)]
pub struct OutcomeRecord {
    /// The pods whose outcome is not read yet, in order of their evictions.
    open: VecDeque<OpenCase>,
    /// New pods by owner, in order of creation. Contains only owners of evicted pods, and only pods created since the
    /// eviction.
    created: BTreeMap<Uid, Vec<CreatedPod>>,
    counts: OutcomeScore,
    differences: BTreeMap<(&'static str, &'static str), DifferenceCounts>,
    last: VecDeque<OutcomeDifference>,
    /// The last pods whose replacements were not placed on their predicted nodes, by chance or not.
    misplaced: VecDeque<Misplaced>,
}

/// Numbers of pods with one pair of predicted and observed outcomes.
#[derive(Clone, Copy, Debug, Default)]
struct DifferenceCounts {
    pods: usize,
    /// Number of these pods that were placed in another order than predicted.
    reordered: usize,
}

/// An evicted pod whose replacement was not placed on its predicted node.
#[derive(Clone, Debug)]
struct Misplaced {
    /// When the pod's deletion began.
    at: Timestamp,
    predicted: NodeName,
    /// The node of the replacement; none without a placed replacement.
    node: Option<NodeName>,
}

impl Misplaced {
    /// Whether the order in which the scheduler placed two replacements explains the difference: this pod, which was
    /// evicted at the same time, took the node that was predicted for the other one, or left its own node to it.
    fn explains(&self, difference: &OutcomeDifference) -> bool {
        let OutcomeDifference { at, predicted_node, became, .. } = difference;
        let is_scheduled = match became {
            Became::Runs(_) | Became::NotStarted(_) | Became::Pending => true,
            Became::Stuck | Became::Lost | Became::NotReplaced => false,
        };
        let took = predicted_node.is_some() && self.node == *predicted_node;
        let left = became.node() == Some(&self.predicted);
        is_scheduled && are_at_once(self.at, *at) && (took || left)
    }
}

/// Whether evictions at these two times happen at once.
fn are_at_once(one: Timestamp, other: Timestamp) -> bool {
    magnitude(one.since(other)) < AT_ONCE
}

/// An evicted pod whose outcome is not read yet.
#[derive(Clone, Debug)]
struct OpenCase {
    at: Timestamp,
    /// Time at which the outcome will be read.
    due: Timestamp,
    /// Whether the forecast predicts a replacement, but not the time of its creation. The outcome is then read
    /// [`SETTLES`] after the owner creates a pod for this group of evictions.
    awaits_creation: bool,
    group: Group,
    pod: Key,
    uid: Uid,
    owner: Option<Uid>,
    /// Which of the owner's new pods counts as the replacement of the evicted pod.
    succession: ReplacementRule,
    from: Option<NodeName>,
    predicted: Option<PredictedOutcome>,
}

/// Identifies a group: evictions of one owner's pods within [`AT_ONCE`]. The value is the start of the first eviction.
/// The replacements of a group are interchangeable.
type Group = Timestamp;

/// Which of an owner's new pods replaces an evicted pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReplacementRule {
    /// The new pod with the name of the evicted pod.
    SameName,
    /// The new pod on the node of the evicted pod: a DaemonSet has one pod on each node.
    SameNode,
    /// Any pod that the owner created for the group of evictions, preferably the one on the node for which the
    /// replacement was predicted.
    Any,
}

impl ReplacementRule {
    fn for_pod(pod: &Pod) -> Self {
        match (has_identity(pod), pod.is_of_daemon_set()) {
            (true, _) => Self::SameName,
            (false, true) => Self::SameNode,
            (false, false) => Self::Any,
        }
    }
}

/// A pod that was created after an eviction. The pod may no longer exist.
#[derive(Clone, Debug)]
struct CreatedPod {
    at: Timestamp,
    key: Key,
    uid: Uid,
    /// The oldest group of evictions that lacked a replacement when the pod was created.
    group: Option<Group>,
    node: Option<NodeName>,
    /// Whether the pod has ever been Ready.
    has_run: bool,
}

/// The parts of a predicted outcome that are compared with the observed one.
#[derive(Clone, Debug)]
struct PredictedOutcome {
    kind: OutcomeKind,
    node: Option<NodeName>,
    /// Nodes that are equally good for the replacement, if the pod was predicted to move.
    among: Option<TiedNodes>,
}

/// Numbers of pods by how well their outcome was predicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutcomeScore {
    /// The outcome was as predicted. A pod that was predicted to move has moved to the predicted node.
    pub right: usize,
    /// The pod was predicted to move to any of several equally good nodes, and landed on one of these nodes, but not on
    /// the one that the forecast named.
    pub by_chance: usize,
    pub wrong: usize,
    /// No outcome was predicted, or the predicted outcome was unknown.
    pub not_predicted: usize,
    /// The pod's outcome is not read yet.
    pub open: usize,
}

impl OutcomeScore {
    pub const fn all(self) -> usize {
        self.right + self.by_chance + self.wrong + self.not_predicted + self.open
    }
}

/// The observed outcome of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Became {
    /// The pod's replacement was placed on this node, and has been Ready.
    Runs(NodeName),
    /// The pod's replacement was placed on this node, and has not been Ready.
    NotStarted(NodeName),
    /// The pod's replacement was not placed on a node.
    Pending,
    /// The pod still exists, and has no replacement.
    Stuck,
    /// The pod is gone, and has neither a replacement nor an owner.
    Lost,
    /// The pod is gone, and its owner has not replaced it.
    NotReplaced,
}

impl Became {
    /// Stable name of the outcome: the name of the predicted outcome with the same meaning, if one exists.
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

    /// The node of the replacement; none without a placed replacement.
    pub const fn node(&self) -> Option<&NodeName> {
        match self {
            Self::Runs(node) | Self::NotStarted(node) => Some(node),
            Self::Pending | Self::Stuck | Self::Lost | Self::NotReplaced => None,
        }
    }
}

/// A pod whose observed outcome differs from its predicted one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutcomeDifference {
    /// When the pod's deletion began.
    pub at: Timestamp,
    /// When the pod's outcome was read.
    pub read: Timestamp,
    pub pod: Key,
    /// Stable name of the predicted outcome. `predicted_node` is the node to which the pod was predicted to move.
    pub predicted: &'static str,
    pub predicted_node: Option<NodeName>,
    pub became: Became,
    /// Whether the scheduler placed the replacements of pods that were evicted at once in another order than predicted,
    /// so that this pod and another one do not have the predicted nodes. In upstream, this order is random.
    pub reordered: bool,
}

impl fmt::Display for OutcomeDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pod, predicted, predicted_node, became, reordered, .. } = self;
        let to = |node: Option<&NodeName>| node.map(|node| format!(" to {node}")).unwrap_or_default();
        let on = |node: Option<&NodeName>| node.map(|node| format!(" on {node}")).unwrap_or_default();
        let became_node =
            if matches!(became, Became::Runs(_)) { to(became.node()) } else { on(became.node()) };
        let order = if *reordered { " (placed in another order)" } else { "" };
        write!(
            f,
            "{pod}: predicted {predicted}{}, became {}{became_node}{order}",
            to(predicted_node.as_ref()),
            became.word()
        )
    }
}

/// Accuracy of the predicted outcomes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutcomeReport {
    pub counts: OutcomeScore,
    /// Numbers of pods whose predicted and observed outcomes differ, by these two outcomes.
    pub differences: Vec<OutcomeDifferences>,
    /// The last differences between predicted and observed outcomes, oldest first.
    pub last: Vec<OutcomeDifference>,
}

/// Number of pods with one pair of predicted and observed outcomes, which differ in kind or in the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutcomeDifferences {
    pub predicted: &'static str,
    pub became: &'static str,
    pub pods: usize,
    /// Number of these pods that were placed in another order than predicted ([`OutcomeDifference::reordered`]).
    pub reordered: usize,
}

impl OutcomeDifferences {
    /// Whether the replacements were predicted for a node, and were placed on another one.
    pub fn is_of_node(&self) -> bool {
        let had_node = [OutcomeKind::Moves.word(), OutcomeKind::Preempts.word()].contains(&self.predicted);
        had_node && ["moves", "notStarted"].contains(&self.became)
    }
}

/// Formats the difference: `5 predicted moves, became pending`, `5 predicted moves, became moves to another node (3
/// placed in another order)`.
impl fmt::Display for OutcomeDifferences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { predicted, became, pods, reordered } = self;
        write!(f, "{pods} predicted {predicted}, became {became}")?;
        if self.is_of_node() {
            let preposition = if *became == "moves" { "to" } else { "on" };
            write!(f, " {preposition} another node")?;
        }
        if *reordered > 0 {
            write!(f, " ({reordered} placed in another order)")?;
        }
        Ok(())
    }
}

impl OutcomeRecord {
    /// Records that the deletion of a pod by taint eviction begins. `predicted` is the pod's predicted outcome at that
    /// time.
    pub fn on_evicted(&mut self, pod: &Pod, predicted: Option<&PodOutcome>, now: Timestamp) {
        let owner = pod.owner.as_ref().map(|owner| owner.uid.clone());
        if let Some(owner) = &owner {
            self.created.entry(owner.clone()).or_default();
        }
        // A Job may create the replacement of its pod after the end of the forecast.
        let (settles, awaits_creation) = match predicted {
            Some(PodOutcome::Moves { ready: Some(ready), .. }) => ((*ready).max(now), false),
            Some(PodOutcome::Moves { ready: None, .. }) => (now + MAX_BACK_OFF + SETTLES, true),
            _ => (now, false),
        };
        let mut of_owner =
            self.open.iter().rev().filter(|other| other.owner.is_some() && other.owner == owner);
        let last = of_owner.next().map(|other| other.group);
        self.open.push_back(OpenCase {
            at: now,
            due: settles + SETTLES,
            awaits_creation,
            group: last.filter(|group| now.since(*group) < AT_ONCE).unwrap_or(now),
            pod: pod.key.clone(),
            uid: pod.uid.clone(),
            owner,
            succession: ReplacementRule::for_pod(pod),
            from: pod.node.clone(),
            predicted: predicted.and_then(PredictedOutcome::from_outcome),
        });
    }

    /// Records a changed pod, if an owner of an evicted pod created it.
    pub fn on_pod(&mut self, delta: &Delta<Pod>, now: Timestamp) {
        let Some(new) = &delta.new else { return };
        let Some(owner) = new.owner.as_ref().map(|owner| &owner.uid) else { return };
        let is_new = delta.old.as_ref().is_none_or(|old| old.uid != new.uid);
        let group = if is_new { self.next_group(owner) } else { None };
        let Some(created) = self.created.get_mut(owner) else { return };
        if is_new {
            let (key, uid) = (new.key.clone(), new.uid.clone());
            created.push(CreatedPod { at: now, key, uid, group, node: None, has_run: false });
            let is_awaited = |case: &&mut OpenCase| {
                case.awaits_creation && case.owner.as_ref() == Some(owner) && Some(case.group) == group
            };
            for case in self.open.iter_mut().filter(is_awaited) {
                case.due = case.due.min(now + SETTLES);
            }
        }
        if let Some(pod) = created.iter_mut().find(|pod| pod.uid == new.uid) {
            pod.node.clone_from(&new.node);
            pod.has_run |= new.is_ready();
        }
    }

    /// Returns the owner's oldest group of evicted pods that lacks a replacement.
    fn next_group(&self, owner: &Uid) -> Option<Group> {
        let created = self.created.get(owner)?;
        let cases = || self.open.iter().filter(|case| case.owner.as_ref() == Some(owner));
        let lacks_one = |group: &Group| {
            let evicted = cases().filter(|case| case.group == *group).count();
            created.iter().filter(|pod| pod.group == Some(*group)).count() < evicted
        };
        cases().map(|case| case.group).find(lacks_one)
    }

    /// Reads the outcomes of pods that are due ([`SETTLES`]).
    pub fn on_time(&mut self, cluster: &Cluster, now: Timestamp) {
        while let Some(place) = self.open.iter().position(|case| case.due <= now) {
            let Some(case) = self.open.remove(place) else { return };
            let became = self.became(&case, cluster);
            self.count(case, became);
        }
    }

    /// Forgets the evicted pods whose outcome is not read yet, and counts them as not predicted, because changes may
    /// have been missed.
    pub fn restart(&mut self) {
        self.counts.not_predicted += self.open.len();
        self.open.clear();
        self.created.clear();
        self.misplaced.clear();
    }

    pub fn report(&self) -> OutcomeReport {
        let differences = self.differences.iter();
        let differences = differences.map(|((predicted, became), counts)| {
            let DifferenceCounts { pods, reordered } = *counts;
            OutcomeDifferences { predicted, became, pods, reordered }
        });
        OutcomeReport {
            counts: OutcomeScore { open: self.open.len(), ..self.counts },
            differences: differences.collect(),
            last: self.last.iter().cloned().collect(),
        }
    }

    /// Returns the observed outcome of a pod. Each pod that its owner created after the eviction replaces at most one
    /// evicted pod ([`ReplacementRule`]).
    fn became(&mut self, case: &OpenCase, cluster: &Cluster) -> Became {
        let replacement = case.owner.as_ref().and_then(|owner| {
            let created = self.created.get_mut(owner)?;
            let position = |is_it: &dyn Fn(&CreatedPod) -> bool| created.iter().position(is_it);
            // Skip pods that existed before the eviction, such as the evicted pod itself: they replace another pod.
            let is_later = |pod: &CreatedPod| pod.at >= case.at && pod.uid != case.uid;
            let of_its_name = || position(&|pod| is_later(pod) && pod.key == case.pod);
            // A DaemonSet's new pod that is not bound to a node yet may be meant for any node.
            let of_its_node = || {
                position(&|pod| is_later(pod) && pod.node == case.from)
                    .or_else(|| position(&|pod| is_later(pod) && pod.node.is_none()))
            };
            let of_its_group = || {
                let is_of_group =
                    |other: &&OpenCase| other.owner.as_ref() == Some(owner) && other.group == case.group;
                let awaited: BTreeSet<&NodeName> = (self.open.iter().filter(is_of_group))
                    .filter_map(|other| other.predicted.as_ref()?.node.as_ref())
                    .collect();
                let predicted = case.predicted.as_ref().and_then(|predicted| predicted.node.as_ref());
                let rules: [&dyn Fn(&CreatedPod) -> bool; 3] = [
                    &|pod| predicted.is_some() && pod.node.as_ref() == predicted,
                    &|pod| !pod.node.as_ref().is_some_and(|node| awaited.contains(node)),
                    &|_| true,
                ];
                rules.iter().find_map(|rule| position(&|pod| pod.group == Some(case.group) && rule(pod)))
            };
            let found = match case.succession {
                ReplacementRule::SameName => of_its_name(),
                ReplacementRule::SameNode => of_its_node(),
                ReplacementRule::Any => of_its_group(),
            };
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
        let OpenCase { at, due, pod, from, predicted, .. } = case;
        let Some(predicted) = predicted else {
            self.counts.not_predicted += 1;
            return;
        };
        if predicted.is_right(&became, from.as_ref()) {
            self.counts.right += 1;
            return;
        }
        if let Some(node) = predicted.node.as_ref().filter(|node| became.node() != Some(*node)) {
            let misplaced = Misplaced { at, predicted: node.clone(), node: became.node().cloned() };
            keep(&mut self.misplaced, misplaced, KEPT);
        }
        if predicted.is_by_chance(&became) {
            self.counts.by_chance += 1;
        } else {
            self.counts.wrong += 1;
            self.differences.entry((predicted.kind.word(), became.word())).or_default().pods += 1;
            let PredictedOutcome { kind, node, .. } = predicted;
            let difference = OutcomeDifference {
                at,
                read: due,
                pod,
                predicted: kind.word(),
                predicted_node: node,
                became,
                reordered: false,
            };
            keep(&mut self.last, difference, KEPT);
        }
        self.explain_differences();
    }

    /// Marks the differences that another order of the replacements explains. The other pod may be read later than the
    /// difference.
    fn explain_differences(&mut self) {
        let Self { misplaced, last, differences, .. } = self;
        for difference in last.iter_mut().filter(|difference| !difference.reordered) {
            if misplaced.iter().any(|other| other.explains(difference)) {
                difference.reordered = true;
                let outcomes = (difference.predicted, difference.became.word());
                differences.entry(outcomes).or_default().reordered += 1;
            }
        }
    }
}

impl PredictedOutcome {
    /// Returns the parts of a predicted outcome that are compared with the observed one; none for an unknown outcome
    /// and for [`PodOutcome::LeftOut`].
    fn from_outcome(outcome: &PodOutcome) -> Option<Self> {
        let among = match outcome {
            PodOutcome::Moves { among, .. } => Some(among.clone()),
            PodOutcome::Unknown { .. } | PodOutcome::LeftOut => return None,
            _ => None,
        };
        Some(Self { kind: outcome.kind(), node: outcome.node().cloned(), among })
    }

    /// Whether the pod's replacement landed on one of the nodes that were equally good for it.
    fn is_by_chance(&self, became: &Became) -> bool {
        became.node().zip(self.among.as_ref()).is_some_and(|(node, among)| among.contains(node))
    }

    fn is_right(&self, became: &Became, from: Option<&NodeName>) -> bool {
        match (self.kind, became) {
            (OutcomeKind::Moves | OutcomeKind::Preempts, Became::Runs(node) | Became::NotStarted(node)) => {
                self.node.as_ref() == Some(node)
            }
            (OutcomeKind::SameNode, Became::Runs(node) | Became::NotStarted(node)) => from == Some(node),
            // While a volume is held, the replacement has a node but cannot start there.
            (OutcomeKind::Stuck, Became::Stuck | Became::NotStarted(_))
            | (OutcomeKind::Refused, Became::NotReplaced | Became::Stuck)
            | (OutcomeKind::Lost, Became::Lost | Became::Stuck)
            | (OutcomeKind::FailsJob, Became::Lost | Became::NotReplaced | Became::Stuck)
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
    use std::sync::Arc;

    use super::*;
    use crate::cluster::{ConditionStatus, Owner, OwnerKind, PodReady, WorkloadKind};

    /// A pod that belongs to a workload of this kind.
    fn pod(kind: WorkloadKind, name: &str, node: Option<&str>) -> Pod {
        let owner = Owner { kind: OwnerKind::Workload(kind), name: "owner".into(), uid: "owner".into() };
        Pod {
            key: Key::new("shop", name),
            uid: format!("{name} on {node:?}").as_str().into(),
            owner: Some(owner.into()),
            node: node.map(NodeName::from),
            ..Pod::default()
        }
    }

    /// The prediction that a pod moves to `node`, when all nodes in `among` are equally good.
    fn moves(node: &str, among: &[&str]) -> PodOutcome {
        PodOutcome::Moves {
            node: node.into(),
            why: "the only feasible node".into(),
            is_back: false,
            among: TiedNodes::from_nodes(among.iter().map(|node| NodeName::from(*node)).collect()),
            volume: None,
            quota: None,
            preempts: Vec::new(),
            ready: None,
        }
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::EPOCH + Span::from_millis(millis)
    }

    impl OutcomeRecord {
        /// The pod is created and placed, and becomes Ready.
        fn create(&mut self, pod: Pod, now: Timestamp) {
            let ready = PodReady { status: ConditionStatus::True, last_transition: None };
            self.create_unready(Pod { ready: Some(ready), ..pod }, now);
        }

        /// The pod is created and placed.
        fn create_unready(&mut self, pod: Pod, now: Timestamp) {
            self.on_pod(&Delta { old: None, new: Some(Arc::new(pod)) }, now);
        }

        /// Reads the outcome of the oldest evicted pod, in a cluster without pods.
        fn read(&mut self) -> Became {
            let case = self.open.pop_front().expect("an evicted pod");
            self.became(&case, &Cluster::default())
        }
    }

    /// The report after a pod on n0, predicted to move to n1 or n2, had this outcome.
    fn report(became: Became) -> OutcomeReport {
        let mut record = OutcomeRecord::default();
        let cart = pod(WorkloadKind::ReplicaSet, "cart", Some("n0"));
        record.on_evicted(&cart, Some(&moves("n1", &["n1", "n2"])), at(0));
        let case = record.open.pop_front().expect("the evicted pod");
        record.count(case, became);
        record.report()
    }

    #[test]
    fn only_the_nodes_that_were_equally_good_are_chance() {
        let none = OutcomeScore::default();
        let counts = |became: Became| report(became).counts;
        let runs = |node: &str| counts(Became::Runs(node.into()));
        assert_eq!(runs("n1"), OutcomeScore { right: 1, ..none });
        assert_eq!(runs("n2"), OutcomeScore { by_chance: 1, ..none });
        assert_eq!(runs("n3"), OutcomeScore { wrong: 1, ..none });
        assert_eq!(counts(Became::Pending), OutcomeScore { wrong: 1, ..none });
    }

    #[test]
    fn a_difference_says_what_differed() {
        let became = |became: Became| report(became).differences[0].to_string();
        assert_eq!(became(Became::Runs("n3".into())), "1 predicted moves, became moves to another node");
        assert_eq!(
            became(Became::NotStarted("n3".into())),
            "1 predicted moves, became notStarted on another node"
        );
        assert_eq!(became(Became::Pending), "1 predicted moves, became pending");
        let stuck = OutcomeDifferences { predicted: "stuck", became: "moves", pods: 2, reordered: 0 };
        assert_eq!(stuck.to_string(), "2 predicted stuck, became moves");
    }

    /// Two pods are evicted at once, and one five seconds later. The second pod is placed first, on the node that was
    /// predicted for the first one. The third pod lands on that node too, for another reason.
    #[test]
    fn a_difference_from_the_random_order_of_replacements_says_so() {
        let mut record = OutcomeRecord::default();
        for (name, node, among, millis) in [
            ("web-1", "n1", &["n1", "n2"][..], 0),
            ("web-2", "n3", &["n3"][..], 900),
            ("web-3", "n3", &["n3"][..], 5_900),
        ] {
            let web = pod(WorkloadKind::ReplicaSet, name, Some("n0"));
            record.on_evicted(&web, Some(&moves(node, among)), at(millis));
        }
        let mut read = |place: usize, node: &str| {
            let case = record.open.remove(place).expect("an evicted pod");
            record.count(case, Became::Runs(node.into()));
            record.report()
        };
        let before = read(1, "n1");
        assert_eq!(before.differences[0].to_string(), "1 predicted moves, became moves to another node");
        read(1, "n1");
        let after = read(0, "n2");
        assert_eq!(after.counts, OutcomeScore { by_chance: 1, wrong: 2, ..OutcomeScore::default() });
        let text = "2 predicted moves, became moves to another node (1 placed in another order)";
        assert_eq!(after.differences[0].to_string(), text);
        let texts: Vec<String> = after.last.iter().map(ToString::to_string).collect();
        let expected = [
            "shop/web-2: predicted moves to n3, became moves to n1 (placed in another order)",
            "shop/web-3: predicted moves to n3, became moves to n1",
        ];
        assert_eq!(texts, expected);
    }

    /// Seven pods of a Job that fail at once are replaced after ten minutes, when the forecast has ended.
    #[test]
    fn a_replacement_that_is_created_after_the_forecast_is_waited_for() {
        let mut record = OutcomeRecord::default();
        let old = pod(WorkloadKind::Job, "report-a", Some("n0"));
        record.on_evicted(&old, Some(&moves("n1", &["n1"])), Timestamp::EPOCH);
        record.on_time(&Cluster::default(), Timestamp::from_secs(600));
        assert_eq!(record.report().counts.open, 1);
        let mut never = record.clone();
        never.on_time(&Cluster::default(), Timestamp::from_secs(720));
        assert_eq!(never.report().counts.wrong, 1, "it was not created after the longest back-off");
        record.create(pod(WorkloadKind::Job, "report-b", Some("n1")), Timestamp::from_secs(610));
        record.on_time(&Cluster::default(), Timestamp::from_secs(670));
        assert_eq!(record.report().counts.right, 1);
    }

    /// Two pods of a DaemonSet are evicted at once, and pods for other nodes are created before theirs.
    #[test]
    fn a_pod_of_a_daemon_set_is_replaced_by_the_one_of_its_node_alone() {
        let pod = |name: &str, node: Option<&str>| pod(WorkloadKind::DaemonSet, name, node);
        let mut record = OutcomeRecord::default();
        for (name, node) in [("agent-1", "n0"), ("agent-2", "n1"), ("agent-3", "n2")] {
            record.on_evicted(&pod(name, Some(node)), None, at(0));
        }
        for (name, node) in [("agent-a", Some("n7")), ("agent-b", None), ("agent-c", Some("n0"))] {
            record.create(pod(name, node), at(0));
        }
        assert_eq!(record.read(), Became::Runs("n0".into()));
        assert_eq!(record.read(), Became::Pending, "agent-b may be for this node");
        assert_eq!(record.read(), Became::NotReplaced, "agent-a is for another node");
    }

    #[test]
    fn a_pod_of_a_stateful_set_is_replaced_by_the_one_of_its_name_alone() {
        let pod = |name: &str, node: &str| pod(WorkloadKind::StatefulSet, name, Some(node));
        let mut record = OutcomeRecord::default();
        record.on_evicted(&pod("db-3", "n0"), None, at(0));
        record.on_evicted(&pod("db-5", "n0"), None, at(0));
        record.create(pod("db-7", "n1"), at(0));
        record.create(pod("db-3", "n2"), at(0));
        record.on_evicted(&pod("db-7", "n1"), None, at(10_000));
        record.on_evicted(&pod("db-8", "n0"), None, at(20_000));
        record.create_unready(pod("db-8", "n3"), at(20_000));
        record.create(pod("db-9", "n1"), at(30_000));
        record.on_evicted(&pod("db-9", "n1"), None, at(30_000));
        assert_eq!(record.read(), Became::Runs("n2".into()));
        assert_eq!(record.read(), Became::NotReplaced);
        assert_eq!(record.read(), Became::NotReplaced, "db-7 was created before db-7 was evicted");
        assert_eq!(record.read(), Became::NotStarted("n3".into()));
        assert_eq!(record.read(), Became::NotReplaced, "no pod replaces itself");
    }

    /// Three pods are evicted, two of them at once. The first replacement exists before the second pod is evicted, and
    /// the replacements are read in another order than they were created.
    #[test]
    fn each_pod_of_a_group_has_a_replacement_of_its_group() {
        let pod = |name: &str, node: &str| pod(WorkloadKind::ReplicaSet, name, Some(node));
        let mut record = OutcomeRecord::default();
        record.on_evicted(&pod("web-1", "n0"), None, at(0));
        record.create(pod("web-a", "n4"), at(100));
        record.on_evicted(&pod("web-2", "n0"), Some(&moves("n4", &["n4"])), at(200));
        record.create(pod("web-b", "n3"), at(300));
        record.on_evicted(&pod("web-3", "n1"), Some(&moves("n3", &["n3"])), at(20_000));
        record.create(pod("web-c", "n5"), at(20_300));
        // A fourth pod of the owner, which replaces no evicted pod.
        record.create(pod("web-d", "n3"), at(20_400));
        let became = |node: &str| Became::Runs(node.into());
        let read = [record.read(), record.read(), record.read()];
        assert_eq!(read, [became("n3"), became("n4"), became("n5")]);
    }

    #[test]
    fn a_pod_without_a_replacement_takes_none_of_another_group() {
        let pod = |name: &str, node: &str| pod(WorkloadKind::ReplicaSet, name, Some(node));
        let mut record = OutcomeRecord::default();
        record.on_evicted(&pod("web-1", "n0"), None, at(0));
        record.create(pod("web-a", "n4"), at(100));
        record.on_evicted(&pod("web-a", "n4"), None, at(30_000));
        assert_eq!([record.read(), record.read()], [Became::Runs("n4".into()), Became::NotReplaced]);
    }
}
