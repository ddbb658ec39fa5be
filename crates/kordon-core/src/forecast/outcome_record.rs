//! Accuracy of predicted outcomes: compares where the replacement of each evicted pod went, if anywhere, with the
//! outcome that was predicted when the pod's deletion began.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
};

use super::newest::keep;
use crate::{
    cluster::{Cluster, Delta, Key, NodeName, Pod, Uid},
    placement::TiedNodes,
    plan::{MAX_BACK_OFF, OutcomeKind, PodOutcome, warning::has_identity},
};
use kordon_time::{Span, Timestamp};

/// Time from the start of a pod's deletion, or from the time at which its replacement should be Ready, until the pod's
/// outcome is read. After this time the replacement should be created, have a node, and run. Jobs replace their pods
/// only after a back-off.
pub const SETTLES: Span = Span::from_secs(60);
/// Maximum time between two evictions of pods of one owner that count as simultaneous. Controllers need less time than
/// this to create the replacements.
const AT_ONCE: Span = Span::from_secs(1);
/// Maximum number of differences that are kept. The oldest are dropped.
const KEPT: usize = 100;

/// Compares the outcomes of evicted pods with their predicted outcomes.
#[derive(Clone, Debug, Default)]
pub struct OutcomeRecord {
    /// The pods whose outcome is not read yet, in order of their evictions.
    open: VecDeque<OpenCase>,
    /// Pods by owner, in order of creation. Only for the owners of evicted pods, and only pods created since the
    /// eviction.
    created: BTreeMap<Uid, Vec<CreatedPod>>,
    counts: OutcomeScore,
    differences: BTreeMap<(&'static str, &'static str), usize>,
    last: VecDeque<OutcomeDifference>,
}

/// An evicted pod whose outcome is not read yet.
#[derive(Clone, Debug)]
struct OpenCase {
    at: Timestamp,
    /// Time at which the outcome will be read.
    due: Timestamp,
    /// Whether the forecast predicts a replacement, but not the time of its creation. The outcome is then read
    /// [`SETTLES`] after the owner creates a pod.
    awaits_creation: bool,
    pod: Key,
    uid: Uid,
    owner: Option<Uid>,
    /// Which of the owner's new pods is the pod's replacement.
    succession: ReplacementRule,
    from: Option<NodeName>,
    predicted: Option<PredictedOutcome>,
}

/// Which of an owner's new pods replaces an evicted pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReplacementRule {
    /// The pod of the same name.
    SameName,
    /// The pod on the same node: a DaemonSet has one on each node.
    SameNode,
    /// Any new pod of the owner, preferably one on the node for which the replacement was predicted.
    Any,
}

impl ReplacementRule {
    fn of(pod: &Pod) -> Self {
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
    node: Option<NodeName>,
    /// Whether the pod has ever been Ready.
    has_run: bool,
}

/// The parts of a predicted outcome that are compared.
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

/// Accuracy of the predicted outcomes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutcomeReport {
    pub counts: OutcomeScore,
    /// Numbers of pods whose predicted and observed outcomes differ, by these two outcomes.
    pub differences: Vec<OutcomeDifferences>,
    /// The last differences, oldest first.
    pub last: Vec<OutcomeDifference>,
}

/// Number of pods with a certain predicted and a certain observed outcome, which differ in kind or in the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutcomeDifferences {
    pub predicted: &'static str,
    pub became: &'static str,
    pub pods: usize,
}

impl OutcomeDifferences {
    /// Whether the predicted outcome names a node for each replacement.
    fn had_nodes(&self) -> bool {
        let words = [OutcomeKind::Moves.word(), OutcomeKind::Preempts.word()];
        words.contains(&self.predicted)
    }
}

/// Formats the difference: `5 predicted moves, became pending`, `5 predicted moves, became moves to another node`.
impl fmt::Display for OutcomeDifferences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { predicted, became, pods } = self;
        let node = match *became {
            "moves" if self.had_nodes() => " to another node",
            "notStarted" if self.had_nodes() => " on another node",
            _ => "",
        };
        write!(f, "{pods} predicted {predicted}, became {became}{node}")
    }
}

impl OutcomeRecord {
    /// Opens a case when the deletion of a pod by taint eviction begins. `predicted` is the pod's predicted outcome at
    /// that time.
    pub fn on_evicted(&mut self, pod: &Pod, predicted: Option<&PodOutcome>, now: Timestamp) {
        let owner = pod.owner.as_ref().map(|owner| owner.uid.clone());
        if let Some(owner) = &owner {
            self.created.entry(owner.clone()).or_default();
        }
        // The replacement of a pod of a Job may be created after the end of the forecast.
        let (settles, awaits_creation) = match predicted {
            Some(PodOutcome::Moves { ready: Some(ready), .. }) => ((*ready).max(now), false),
            Some(PodOutcome::Moves { ready: None, .. }) => (now + MAX_BACK_OFF + SETTLES, true),
            _ => (now, false),
        };
        self.open.push_back(OpenCase {
            at: now,
            due: settles + SETTLES,
            awaits_creation,
            pod: pod.key.clone(),
            uid: pod.uid.clone(),
            owner,
            succession: ReplacementRule::of(pod),
            from: pod.node.clone(),
            predicted: predicted.and_then(PredictedOutcome::from_outcome),
        });
    }

    /// Records a changed pod, if an owner of an evicted pod created it.
    pub fn on_pod(&mut self, delta: &Delta<Pod>, now: Timestamp) {
        let Some(new) = &delta.new else { return };
        let Some(created) = new.owner.as_ref().and_then(|owner| self.created.get_mut(&owner.uid)) else {
            return;
        };
        if delta.old.as_ref().is_none_or(|old| old.uid != new.uid) {
            let (key, uid) = (new.key.clone(), new.uid.clone());
            created.push(CreatedPod { at: now, key, uid, node: None, has_run: false });
            let owner = new.owner.as_ref().map(|owner| &owner.uid);
            for case in
                self.open.iter_mut().filter(|case| case.awaits_creation && case.owner.as_ref() == owner)
            {
                case.due = case.due.min(now + SETTLES);
            }
        }
        if let Some(pod) = created.iter_mut().find(|pod| pod.uid == new.uid) {
            pod.node.clone_from(&new.node);
            pod.has_run |= new.is_ready();
        }
    }

    /// Reads the outcomes of pods that are due ([`SETTLES`]).
    pub fn on_time(&mut self, cluster: &Cluster, now: Timestamp) {
        while let Some(place) = self.open.iter().position(|case| case.due <= now) {
            let Some(case) = self.open.remove(place) else { return };
            let became = self.became(&case, cluster);
            self.count(case, became);
        }
    }

    /// Closes all open cases and counts them as not predicted, because changes may have been missed.
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

    /// Returns the observed outcome of a pod. Each pod that its owner created after the eviction can replace one
    /// evicted pod ([`ReplacementRule`]).
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
            // Skip pods that existed before the eviction, such as the evicted pod itself: they replace another pod.
            // Prefer pods that were created before the next eviction of this owner, because later ones likely replace
            // the next pod. Pods that are evicted at once are replaced in any order.
            let is_later = |pod: &CreatedPod| pod.at >= case.at && pod.uid != case.uid;
            let others = self
                .open
                .iter()
                .filter(|other| other.owner.as_ref() == Some(owner) && other.at >= case.at + AT_ONCE);
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
                let before_next = rules.iter().find_map(|rule| position(next, rule));
                before_next.or_else(|| position(Timestamp::MAX, &|_| true))
            };
            // A DaemonSet's new pod that is not bound to a node yet may be meant for any node.
            let of_its_node = || {
                position(Timestamp::MAX, &|pod| pod.node == case.from)
                    .or_else(|| position(Timestamp::MAX, &|pod| pod.node.is_none()))
            };
            let found = match case.succession {
                ReplacementRule::SameName => of_its_name,
                ReplacementRule::SameNode => of_its_node(),
                ReplacementRule::Any => of_its_name.or_else(another),
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
        } else if predicted.is_by_chance(&became) {
            self.counts.by_chance += 1;
        } else {
            self.counts.wrong += 1;
            *self.differences.entry((predicted.kind.word(), became.word())).or_default() += 1;
            let PredictedOutcome { kind, node, .. } = predicted;
            let difference = OutcomeDifference {
                at,
                read: due,
                pod,
                predicted: kind.word(),
                predicted_node: node,
                became,
            };
            keep(&mut self.last, difference, KEPT);
        }
    }
}

impl PredictedOutcome {
    /// Returns the parts of a predicted outcome that are compared; none for an unknown outcome and for an outcome that
    /// was left out.
    fn from_outcome(outcome: &PodOutcome) -> Option<Self> {
        let among = match outcome {
            PodOutcome::Moves { among, .. } => Some(among.clone()),
            PodOutcome::Unknown { .. } | PodOutcome::LeftOut => return None,
            _ => None,
        };
        Some(Self { kind: outcome.kind(), node: outcome.node().cloned(), among })
    }

    /// Whether the pod's replacement landed on one of the nodes that were equally good.
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

    use super::{ReplacementRule::*, *};
    use crate::cluster::{Owner, OwnerKind, WorkloadKind};

    /// A case of a pod with this name, evicted from n0 and predicted to move to n1 or n2.
    fn case(pod: &str, succession: ReplacementRule) -> OpenCase {
        let nodes: BTreeSet<NodeName> = ["n1".into(), "n2".into()].into();
        let predicted = PredictedOutcome {
            kind: OutcomeKind::Moves,
            node: Some("n1".into()),
            among: Some(TiedNodes::from_nodes(nodes)),
        };
        OpenCase {
            at: Timestamp::EPOCH,
            due: Timestamp::EPOCH + SETTLES,
            awaits_creation: false,
            pod: Key::new("shop", pod),
            uid: "uid".into(),
            owner: Some("owner".into()),
            succession,
            from: Some("n0".into()),
            predicted: Some(predicted),
        }
    }

    /// The counts after the pod of `case` had this outcome.
    fn counts(became: Became) -> OutcomeScore {
        let mut record = OutcomeRecord::default();
        record.count(case("cart", Any), became);
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
    fn a_difference_says_what_differed() {
        let became = |became: Became| {
            let mut record = OutcomeRecord::default();
            record.count(case("cart", Any), became);
            record.report().differences[0].to_string()
        };
        assert_eq!(became(Became::Runs("n3".into())), "1 predicted moves, became moves to another node");
        assert_eq!(
            became(Became::NotStarted("n3".into())),
            "1 predicted moves, became notStarted on another node"
        );
        assert_eq!(became(Became::Pending), "1 predicted moves, became pending");
        let stuck = OutcomeDifferences { predicted: "stuck", became: "moves", pods: 2 };
        assert_eq!(stuck.to_string(), "2 predicted stuck, became moves");
    }

    /// Seven pods of a Job that fail at once are replaced after ten minutes, when the forecast has ended.
    #[test]
    fn a_replacement_that_is_created_after_the_forecast_is_waited_for() {
        let owner =
            Owner { kind: OwnerKind::Workload(WorkloadKind::Job), name: "report".into(), uid: "job".into() };
        let pod = |name: &str| Pod {
            key: Key::new("shop", name),
            uid: name.into(),
            owner: Some(owner.clone().into()),
            ..Pod::default()
        };
        let moves = PodOutcome::Moves {
            node: "n1".into(),
            why: "the only feasible node".into(),
            is_back: false,
            among: TiedNodes::from_nodes(["n1".into()].into()),
            volume: None,
            quota: None,
            preempts: Vec::new(),
            ready: None,
        };
        let mut record = OutcomeRecord::default();
        record.on_evicted(&pod("report-a"), Some(&moves), Timestamp::EPOCH);
        record.on_time(&Cluster::default(), Timestamp::from_secs(600));
        assert_eq!(record.report().counts.open, 1);
        let mut never = record.clone();
        never.on_time(&Cluster::default(), Timestamp::from_secs(720));
        assert_eq!(never.report().counts.wrong, 1, "it was not created after the longest back-off");
        let new = Pod { node: Some("n1".into()), ..pod("report-b") };
        let created = Delta { old: None, new: Some(Arc::new(new)) };
        record.on_pod(&created, Timestamp::from_secs(610));
        record.on_time(&Cluster::default(), Timestamp::from_secs(670));
        assert_eq!(record.report().counts.right, 1);
    }

    /// Several pods of a DaemonSet are evicted at once, and their replacements are created in another order.
    #[test]
    fn a_pod_of_a_daemon_set_is_replaced_by_the_one_of_its_node_alone() {
        let created = |pod: &str, node: Option<&str>| CreatedPod {
            at: Timestamp::EPOCH,
            key: Key::new("shop", pod),
            uid: pod.into(),
            node: node.map(NodeName::from),
            has_run: true,
        };
        let mut record = OutcomeRecord::default();
        let pods =
            vec![created("agent-a", Some("n7")), created("agent-b", None), created("agent-c", Some("n0"))];
        record.created.insert("owner".into(), pods);
        record.open.push_back(case("agent-2", SameNode));
        let mut became = || record.became(&case("agent-1", SameNode), &Cluster::default());
        assert_eq!(became(), Became::Runs("n0".into()));
        assert_eq!(became(), Became::Pending, "agent-b may be for this node");
        assert_eq!(became(), Became::NotReplaced, "agent-a is of another node");
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
            // None of these pods exists any more, so the record must have observed their outcomes.
            record.became(&case, &Cluster::default())
        };
        assert_eq!(became(case("db-7", SameName)), Became::NotStarted("n9".into()));
        assert_eq!(became(case("db-5", SameName)), Became::NotReplaced);
        assert_eq!(became(case("db-5", Any)), Became::Runs("n1".into()));
        // With two open cases, the first takes the pod that was created before the second case began, although the
        // later pod is on the predicted node.
        let of_first = {
            let mut record = OutcomeRecord::default();
            let later = CreatedPod { at: Timestamp::from_secs(2), ..created("web-b", "n1", true) };
            record.created.insert("owner".into(), vec![created("web-a", "n5", true), later]);
            record.open.push_back(OpenCase { at: Timestamp::from_secs(1), ..case("web-2", Any) });
            record.became(&case("web-1", Any), &Cluster::default())
        };
        assert_eq!(of_first, Became::Runs("n5".into()));
        let late = OpenCase { at: Timestamp::from_secs(1), ..case("db-7", SameName) };
        assert_eq!(became(late), Became::NotReplaced, "what was created before it left is no replacement");
        let itself = OpenCase { uid: "db-7".into(), ..case("db-7", SameName) };
        assert_eq!(became(itself), Became::NotReplaced);
    }

    /// Two pods are evicted at once, and their replacements land where a third pod is predicted, which is evicted later.
    #[test]
    fn pods_that_are_evicted_at_once_take_no_replacement_of_a_later_one() {
        let at = |millis: i64| Timestamp::EPOCH + Span::from_millis(millis);
        let created = |millis: i64, pod: &str, node: &str| CreatedPod {
            at: at(millis),
            key: Key::new("shop", pod),
            uid: pod.into(),
            node: Some(node.into()),
            has_run: true,
        };
        let pods = vec![created(300, "a", "n1"), created(300, "b", "n1"), created(20_300, "c", "n5")];
        let mut record = OutcomeRecord::default();
        record.created.insert("owner".into(), pods);
        let unplaced = |millis: i64| OpenCase { at: at(millis), predicted: None, ..case("web", Any) };
        let mut cases: VecDeque<OpenCase> = [unplaced(0), unplaced(50)].into();
        cases.push_back(OpenCase { at: at(20_000), ..case("web", Any) });
        let became = std::iter::from_fn(|| {
            let case = cases.pop_front()?;
            record.open.clone_from(&cases);
            Some(record.became(&case, &Cluster::default()))
        });
        let nodes: Vec<Option<NodeName>> = became.map(|became| became.node().cloned()).collect();
        assert_eq!(nodes, [Some("n1".into()), Some("n1".into()), Some("n5".into())]);
    }
}
