//! Probabilities of predicted taints and evictions where several nodes wait for one token of their zone's rate limiter.
//! Upstream taints any of these nodes (docs/upstream/node-lifecycle.md#12.24).
//!
//! A forecast gives the tokens to the waiting nodes in one order. The times of the tokens, and the number of nodes that
//! wait for each, are the same in every other order. A node that still waits therefore gets the next token with
//! probability one divided by the number of waiting nodes.
//!
//! Thousands of nodes may wait for hundreds of tokens. Each token multiplies the probability that a node still waits by
//! the same factor for all nodes. The probability that a node gets one of several consecutive tokens is therefore a
//! difference of two prefix sums ([`Contest::shares`]).

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, mem,
    ops::Range,
    sync::Arc,
};

use super::{ForecastKind, ForecastStep, time_range::TimeRange};
use crate::{
    cluster::{Cluster, NodeName, Pod, Taint, TaintEffect, ZoneKey},
    engine::{QueueChange, QueueEvent, Tolerance, UNREACHABLE, tolerance},
};
use kordon_time::{Span, Timestamp};

/// The probability that a step happens at its predicted time. The step follows from a taint, and the taint needs a
/// token of the zone's rate limiter: with a token earlier or later, the step happens earlier or later.
#[derive(Clone, Debug, PartialEq)]
pub struct Chance {
    /// The nodes that may get the token of the rate limiter, sorted by name.
    pub among: Arc<[NodeName]>,
    /// Probability from 0 to 1.
    pub probability: f64,
}

/// Maximum number of nodes that the text of a [`Chance`] names.
const NAMED: usize = 4;

impl Chance {
    /// The probability in words: `33 %`.
    pub fn percent(&self) -> String {
        match self.probability * 100.0 {
            percent if percent < 1.0 => "<1 %".into(),
            percent => format!("{percent:.0} %"),
        }
    }
}

/// Writes the probability and the nodes: `33 %: any of 3 waiting nodes (a, b, c)`.
impl fmt::Display for Chance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named: Vec<&str> = self.among.iter().take(NAMED).map(|node| &**node).collect();
        let more = if self.among.len() > NAMED { ", …" } else { "" };
        write!(
            f,
            "{}: any of {} waiting nodes ({}{more})",
            self.percent(),
            self.among.len(),
            named.join(", ")
        )
    }
}

/// Number of pods that are deleted before the end of a forecast, over all orders in which waiting nodes may be tainted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DeletedRange {
    /// Smallest number of deleted pods, over all orders of the waiting nodes.
    pub least: usize,
    pub expected: f64,
    /// Largest number of deleted pods, over all orders of the waiting nodes.
    pub most: usize,
}

/// For each zone, the chances with which its nodes get the tokens of its rate limiter in a forecast.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Chances(BTreeMap<ZoneKey, Contest>);

impl Chances {
    pub fn new(events: impl Iterator<Item = QueueEvent>) -> Self {
        let mut zones: BTreeMap<ZoneKey, Contest> = BTreeMap::new();
        for event in events {
            match event {
                QueueEvent::Changed { zone, change } => zones.entry(zone).or_default().on_change(change),
                QueueEvent::Tainted { zone, node, at } => zones.entry(zone).or_default().on_token(node, at),
            }
        }
        zones.values_mut().for_each(Contest::end_spells);
        Self(zones)
    }

    /// Sets the chance of each predicted step; none if the time of the step is certain.
    pub fn add_to(&self, steps: &mut [ForecastStep]) {
        let tokens = self.0.values().flat_map(|contest| &contest.tokens);
        let tokens: BTreeMap<(Timestamp, &NodeName), &Chance> =
            tokens.filter_map(|token| Some(((token.at, &token.node), token.chance.as_ref()?))).collect();
        // Chance of each node's last taint. The evictions from the node have the same chance.
        let mut of_node: BTreeMap<NodeName, Option<Chance>> = BTreeMap::new();
        for step in steps {
            let node = step.kind.node();
            match &step.kind {
                ForecastKind::NoExecute { .. } => {
                    step.chance = tokens.get(&(step.at, node)).copied().cloned();
                    of_node.insert(node.clone(), step.chance.clone());
                }
                ForecastKind::Deleted { .. } => step.chance = of_node.get(node).cloned().flatten(),
                ForecastKind::Unknown { .. } | ForecastKind::Ended { .. } | ForecastKind::Removed { .. } => {}
            }
        }
    }

    /// The first and the last time at which each node may be tainted, for nodes whose time is not certain.
    pub fn turns(&self) -> BTreeMap<NodeName, TimeRange> {
        let mut turns: BTreeMap<NodeName, TimeRange> = BTreeMap::new();
        for contest in self.0.values() {
            for Spell { node, tokens, .. } in &contest.spells {
                let (first, last) = (contest.tokens[tokens.start].at, contest.tokens[tokens.end - 1].at);
                let known = turns.entry(node.clone()).or_insert(TimeRange { first, last });
                *known = known.with(TimeRange { first, last });
            }
        }
        turns.retain(|_, turns| turns.first < turns.last);
        turns
    }

    /// Returns how many pods are deleted up to `until`. `predicted` is the number for the order in which the forecast
    /// taints the nodes.
    pub fn deleted(&self, cluster: &Cluster, predicted: usize, until: Timestamp) -> DeletedRange {
        let mut range = DeletedRange { least: 0, expected: 0.0, most: 0 };
        let mut by_tokens = 0;
        for contest in self.0.values() {
            let schedules = contest.schedules(cluster);
            let of_token = |token: &Token| schedules[&token.node].deleted(until.since(token.at));
            by_tokens += contest.tokens.iter().map(of_token).sum::<usize>();
            range.expected += contest.expected(&schedules, until);
            let (least, most) = contest.bounds(&schedules, until);
            range.least += least;
            range.most += most;
        }
        let certain = predicted.saturating_sub(by_tokens);
        DeletedRange {
            least: certain + range.least,
            expected: as_f64(certain) + range.expected,
            most: certain + range.most,
        }
    }
}

impl DeletedRange {
    /// Whether the number of deleted pods depends on the order in which nodes are tainted.
    pub const fn is_by_chance(&self) -> bool {
        self.least < self.most
    }

    /// Subtracts `deletions` from each of the three numbers of deleted pods.
    pub(super) fn without(self, deletions: usize) -> Self {
        Self {
            least: self.least.saturating_sub(deletions),
            expected: (self.expected - as_f64(deletions)).max(0.0),
            most: self.most.saturating_sub(deletions),
        }
    }
}

/// Writes the number of deleted pods: `12`, or `8 to 20, 13 expected` if it depends on chance.
impl fmt::Display for DeletedRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_by_chance() {
            return write!(f, "{}", self.most);
        }
        write!(f, "{} to {}, {:.0} expected", self.least, self.most, self.expected)
    }
}

/// The competition of nodes for the tokens of one zone, over all orders of the waiting nodes.
#[derive(Debug, PartialEq)]
struct Contest {
    /// The nodes that still wait in at least one order of the waiting nodes.
    contenders: BTreeMap<NodeName, Contender>,
    /// Sum of the probabilities that each of the `contenders` still waits.
    total: f64,
    /// Factor by which the tokens since the last [`Contest::end_spells`] have reduced each node's probability of still
    /// waiting.
    remaining: f64,
    /// Lower bound of [`Contender::weight`] of the `contenders`.
    smallest: f64,
    tokens: Vec<Token>,
    /// Prefix sums over the tokens: each token adds the probability that a node of weight 1 gets it.
    shares: Vec<f64>,
    spells: Vec<Spell>,
    /// Cached names of the `contenders`; none after the `contenders` have changed.
    among: Option<Arc<[NodeName]>>,
}

/// A node that may still wait for a token of the zone's rate limiter.
#[derive(Debug, PartialEq)]
struct Contender {
    /// Index of the first token of the rate limiter that the node waits for.
    since: usize,
    /// Weight of the node. The weight times [`Contest::remaining`] is the probability that the node waits.
    weight: f64,
    /// Whether the node has got a token and left its queue in the order of the forecast.
    is_tainted: bool,
}

/// A token of the zone's rate limiter.
#[derive(Debug, PartialEq)]
struct Token {
    at: Timestamp,
    /// The node that gets this token in the order of the forecast.
    node: NodeName,
    /// Chance that `node` gets this token of the rate limiter; none if no other node may get it.
    chance: Option<Chance>,
}

/// A node, and the range of tokens of the rate limiter from which it may have got one.
#[derive(Debug, PartialEq)]
struct Spell {
    node: NodeName,
    tokens: Range<usize>,
    weight: f64,
}

/// Probabilities below this count as zero, because they consist of rounding errors.
const NONE: f64 = 1e-9;

impl Default for Contest {
    fn default() -> Self {
        Self {
            contenders: BTreeMap::new(),
            total: 0.0,
            remaining: 1.0,
            smallest: 1.0,
            tokens: Vec::new(),
            shares: vec![0.0],
            spells: Vec::new(),
            among: None,
        }
    }
}

impl Contest {
    fn on_change(&mut self, change: QueueChange) {
        match change {
            QueueChange::Waits(node) => {
                if self.contenders.get(&node).is_none_or(|contender| contender.is_tainted) {
                    self.leave(&node);
                    let (since, weight) = (self.tokens.len(), 1.0 / self.remaining);
                    self.contenders.insert(node, Contender { since, weight, is_tainted: false });
                    self.total += 1.0;
                    self.among = None;
                }
            }
            // A node that was tainted in the order of the forecast stays a contender: it may still wait in another
            // order.
            QueueChange::StopsWaiting(node) => {
                if self.contenders.get(&node).is_some_and(|contender| !contender.is_tainted) {
                    self.leave(&node);
                }
            }
        }
    }

    fn leave(&mut self, node: &NodeName) {
        if let Some(contender) = self.contenders.remove(node) {
            self.total -= contender.weight * self.remaining;
            self.among = None;
            self.spells.extend(contender.ended(node.clone(), self.tokens.len()));
        }
    }

    /// Gives a token of the rate limiter to one of the waiting nodes. Each has the same chance: one divided by their
    /// number.
    fn on_token(&mut self, node: NodeName, at: Timestamp) {
        let contenders = &self.contenders;
        let among = self.among.get_or_insert_with(|| contenders.keys().cloned().collect());
        let share = self.remaining / self.total;
        let chance = self.contenders.get_mut(&node).map(|contender| {
            contender.is_tainted = true;
            Chance { among: among.clone(), probability: contender.weight * share }
        });
        let chance = chance.filter(|chance| chance.among.len() > 1);
        self.tokens.push(Token { at, node, chance });
        let before = self.shares.last().copied().unwrap_or_default();
        self.shares.push(if share.is_finite() { before + share } else { before });

        self.remaining *= 1.0 - 1.0 / self.total;
        self.total -= 1.0;
        if self.total <= NONE || self.smallest * self.remaining <= NONE {
            self.end_spells();
        }
    }

    /// Ends all ranges of tokens, and starts new ones for the nodes that still wait. A node that waits in the order of
    /// the forecast stays a contender, however small its probability has become.
    fn end_spells(&mut self) {
        let since = self.tokens.len();
        let remaining = if self.total <= NONE { 0.0 } else { self.remaining };
        (self.remaining, self.smallest, self.total, self.among) = (1.0, 1.0, 0.0, None);
        for (node, contender) in mem::take(&mut self.contenders) {
            let Contender { weight, is_tainted, .. } = contender;
            self.spells.extend(contender.ended(node.clone(), since));
            let weight = match weight * remaining {
                waits if waits > NONE => waits,
                _ if is_tainted => continue,
                _ => 1.0,
            };
            self.total += weight;
            self.smallest = self.smallest.min(weight);
            self.contenders.insert(node, Contender { since, weight, is_tainted });
        }
    }

    /// The deletion times of the pods on each node that may get a token of the rate limiter.
    fn schedules(&self, cluster: &Cluster) -> BTreeMap<&NodeName, Schedule> {
        let nodes = self.spells.iter().map(|spell| &spell.node);
        let nodes: BTreeSet<&NodeName> = nodes.chain(self.tokens.iter().map(|token| &token.node)).collect();
        let taints = [Taint { key: UNREACHABLE.into(), effect: TaintEffect::NoExecute, ..Taint::default() }];
        nodes.into_iter().map(|node| (node, Schedule::new(cluster, node, &taints))).collect()
    }

    /// Returns how many pods are deleted up to `until`, as the mean over all orders of the waiting nodes.
    fn expected(&self, schedules: &BTreeMap<&NodeName, Schedule>, until: Timestamp) -> f64 {
        let of_pods = |spell: &Spell, after: Span, pods: usize| {
            let in_time = self.tokens.partition_point(|token| until.since(token.at) >= after);
            let tokens = spell.tokens.start..spell.tokens.end.min(in_time).max(spell.tokens.start);
            as_f64(pods) * spell.weight * (self.shares[tokens.end] - self.shares[tokens.start])
        };
        let of_spell = |spell: &Spell| {
            let groups = schedules[&spell.node].groups();
            groups.map(|(after, pods)| of_pods(spell, after, pods)).sum::<f64>()
        };
        self.spells.iter().map(of_spell).sum()
    }

    /// Returns a lower and an upper bound of the number of deleted pods, whichever nodes get the tokens.
    ///
    /// The later a node gets its token, the fewer of its pods are deleted in time. The upper bound assumes that every
    /// token that can lead to deletions comes as early as the first token, and goes to one of the nodes with the most
    /// deletions. For the lower bound, one sum is computed for each token. The sum assumes that all tokens up to this
    /// one come as late as this one, and go to the nodes with the fewest deletions. The lower bound is the largest of
    /// these sums.
    fn bounds(&self, schedules: &BTreeMap<&NodeName, Schedule>, until: Timestamp) -> (usize, usize) {
        let mut alike: BTreeMap<&Schedule, usize> = BTreeMap::new();
        schedules.values().for_each(|schedule| *alike.entry(schedule).or_default() += 1);
        // Pairs (pods, nodes) for one token, in ascending order: the number of nodes that would each lose this number
        // of pods if they got the token.
        let counts = |token: &Token| {
            let count =
                |(schedule, nodes): (&&Schedule, &usize)| (schedule.deleted(until.since(token.at)), *nodes);
            let mut counts: Vec<(usize, usize)> = alike.iter().map(count).collect();
            counts.sort_unstable();
            counts
        };
        let of_tokens: Vec<Vec<(usize, usize)>> = self.tokens.iter().map(counts).collect();
        let leads_to_deletions =
            |counts: &&Vec<(usize, usize)>| counts.last().is_some_and(|(most, _)| *most > 0);
        let lead_to_deletions = of_tokens.iter().filter(leads_to_deletions).count();
        let first = of_tokens.first().map(Vec::as_slice).unwrap_or_default();
        let most = sum_of_first(first.iter().rev(), lead_to_deletions);
        let least_by =
            |(place, counts): (usize, &Vec<(usize, usize)>)| sum_of_first(counts.iter(), place + 1);
        (of_tokens.iter().enumerate().map(least_by).max().unwrap_or(0), most)
    }
}

/// Sums the pod counts of the first `nodes` nodes. Each item is a pod count and the number of nodes with this count.
fn sum_of_first<'a>(counts: impl Iterator<Item = &'a (usize, usize)>, mut nodes: usize) -> usize {
    let mut sum = 0;
    for (count, of_nodes) in counts {
        let taken = nodes.min(*of_nodes);
        sum += count * taken;
        nodes -= taken;
    }
    sum
}

impl Contender {
    /// Returns the range of tokens from which the node may have got one; none for an empty range.
    fn ended(self, node: NodeName, before: usize) -> Option<Spell> {
        let tokens = self.since..before;
        (!tokens.is_empty()).then_some(Spell { node, tokens, weight: self.weight })
    }
}

/// Deletion times of a node's pods: ascending spans after the taint, each with the number of pods deleted up to then.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Schedule(Vec<(Span, usize)>);

impl Schedule {
    /// Computes the deletion times of a node's pods for the case that the node gets these taints.
    fn new(cluster: &Cluster, node: &NodeName, taints: &[Taint]) -> Self {
        let stays_for = |pod: &Pod| match tolerance(&pod.tolerations, taints) {
            Tolerance::NotTolerated(_) => Some(Span::ZERO),
            Tolerance::For { span, .. } => Some(span),
            Tolerance::Forever => None,
        };
        let mut spans: Vec<Span> = Vec::with_capacity(cluster.load(node).pods);
        // Reuse the toleration time of the previous pod, because most pods share one list of tolerations.
        let mut known: Option<(&Arc<Pod>, Option<Span>)> = None;
        for pod in cluster.pods_on(node).filter(|pod| pod.termination.is_none()) {
            let span = match known {
                Some((other, span)) if other.tolerations.is_same_list(&pod.tolerations) => span,
                Some(_) | None => stays_for(pod),
            };
            known = Some((pod, span));
            spans.extend(span);
        }
        spans.sort_unstable();
        let mut schedule: Vec<(Span, usize)> = Vec::new();
        for (place, span) in spans.into_iter().enumerate() {
            match schedule.last_mut().filter(|(last, _)| *last == span) {
                Some((_, pods)) => *pods = place + 1,
                None => schedule.push((span, place + 1)),
            }
        }
        Self(schedule)
    }

    /// Returns how many pods are deleted by the time `after` has passed since the taint.
    fn deleted(&self, after: Span) -> usize {
        let due = self.0.partition_point(|(span, _)| *span <= after);
        due.checked_sub(1).map_or(0, |last| self.0[last].1)
    }

    /// Returns the number of pods that are deleted at each span after the taint.
    fn groups(&self) -> impl Iterator<Item = (Span, usize)> {
        let before = [0].into_iter().chain(self.0.iter().map(|(_, pods)| *pods));
        self.0.iter().zip(before).map(|((span, pods), before)| (*span, pods - before))
    }
}

#[expect(clippy::cast_precision_loss, reason = "far fewer pods than 2^52")]
const fn as_f64(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference implementation: the probability that each node gets each token of the rate limiter, computed node by
    /// node.
    #[derive(Default)]
    struct NodeByNode {
        waits: BTreeMap<NodeName, f64>,
        tainted: BTreeSet<NodeName>,
        gets: Vec<BTreeMap<NodeName, f64>>,
    }

    impl NodeByNode {
        fn on_change(&mut self, change: &QueueChange) {
            match change {
                QueueChange::Waits(node) => {
                    if self.tainted.remove(node) || !self.waits.contains_key(node) {
                        self.waits.insert(node.clone(), 1.0);
                    }
                }
                QueueChange::StopsWaiting(node) => {
                    if !self.tainted.contains(node) {
                        self.waits.remove(node);
                    }
                }
            }
        }

        fn on_token(&mut self, node: &NodeName) {
            let total: f64 = self.waits.values().sum();
            self.gets.push(self.waits.iter().map(|(node, waits)| (node.clone(), waits / total)).collect());
            self.waits.values_mut().for_each(|waits| *waits *= 1.0 - 1.0 / total);
            self.tainted.insert(node.clone());
            self.waits.retain(|node, waits| *waits > NONE || !self.tainted.contains(node));
            self.waits.values_mut().filter(|waits| **waits <= NONE).for_each(|waits| *waits = 1.0);
            self.tainted.retain(|node| self.waits.contains_key(node));
        }
    }

    /// Pseudorandom numbers, good enough for these tests.
    struct Random(u64);

    impl Random {
        fn below(&mut self, limit: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % limit
        }
    }

    #[test]
    fn what_a_node_gets_of_many_tokens_is_what_it_gets_of_each() {
        for seed in 0..200 {
            let mut random = Random(seed);
            let (mut contest, mut reference) = (Contest::default(), NodeByNode::default());
            let mut waiting: BTreeSet<NodeName> = BTreeSet::new();
            for second in 0..300 {
                let node = NodeName::from(&*format!("n{}", random.below(12)));
                let change = match random.below(6) {
                    0 | 1 => {
                        waiting.insert(node.clone());
                        QueueChange::Waits(node)
                    }
                    2 if waiting.remove(&node) => QueueChange::StopsWaiting(node),
                    3 | 4 => {
                        let Some(first) = waiting.pop_first() else { continue };
                        contest.on_token(first.clone(), Timestamp::from_secs(second));
                        reference.on_token(&first);
                        QueueChange::StopsWaiting(first)
                    }
                    _ => continue,
                };
                reference.on_change(&change);
                contest.on_change(change);
            }
            contest.end_spells();
            compare(&contest, &reference, seed);
        }
    }

    /// Tolerance for rounding. After nearly all nodes had a token, a difference of two sums has few exact digits.
    const ROUNDING: f64 = 1e-4;

    fn compare(contest: &Contest, reference: &NodeByNode, seed: u64) {
        assert!(contest.tokens.len() > 20, "seed {seed}");
        for (place, (token, gets)) in contest.tokens.iter().zip(&reference.gets).enumerate() {
            let probability = token.chance.as_ref().map_or(1.0, |chance| chance.probability);
            assert!((probability - gets[&token.node]).abs() < ROUNDING, "seed {seed}, token {place}");
            for (node, wanted) in gets {
                let of_node = |spell: &&Spell| spell.node == *node && spell.tokens.contains(&place);
                let of_token = contest.shares[place + 1] - contest.shares[place];
                let share: f64 =
                    contest.spells.iter().filter(of_node).map(|spell| spell.weight * of_token).sum();
                assert!(
                    (share - wanted).abs() < ROUNDING,
                    "seed {seed}, token {place}: {node} {share} {wanted}"
                );
            }
        }
    }
}
