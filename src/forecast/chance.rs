//! How likely predicted taints and evictions are at their time, where several nodes wait for one token of their zone's rate
//! limiter: upstream takes any of them (docs/upstream/node-lifecycle.md#12.24).
//!
//! A forecast gives the tokens to the waiting nodes in order of their names. Of every other order it knows the same: when
//! each token is there, and how many nodes wait for it. So a node that still waits gets the next token with one chance in
//! as many as wait.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use super::{ForecastKind, ForecastStep};
use crate::{
    cluster::{Cluster, NodeName, Taint, TaintEffect, ZoneKey},
    engine::{TaintTurn, Tolerance, UNREACHABLE, tolerance},
    time::{Span, Timestamp},
};

/// The chance that a step happens at its time, rather than at that of another token.
#[derive(Clone, Debug, PartialEq)]
pub struct Chance {
    /// The nodes that may get the token, by name.
    pub among: Arc<[NodeName]>,
    /// From 0 to 1.
    pub probability: f64,
}

/// The most nodes that are named.
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

/// `33 %: any of 3 waiting nodes (a, b, c)`
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

/// How many pods are deleted until the end of a forecast, over all orders in which waiting nodes may be tainted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DeletedRange {
    /// At least this many.
    pub least: usize,
    pub expected: f64,
    /// At most this many.
    pub most: usize,
}

/// The chances of all tokens of a forecast.
#[derive(Debug, Default)]
pub(super) struct Chances {
    zones: BTreeMap<ZoneKey, Contest>,
    tokens: Vec<Token>,
}

/// The nodes that may still wait for a token of a zone.
#[derive(Debug, Default)]
struct Contest {
    /// The probability that each still waits.
    waits: BTreeMap<NodeName, f64>,
    /// Those that have had a token in the order of the forecast.
    served: BTreeSet<NodeName>,
}

/// A token, and who may get it.
#[derive(Debug)]
struct Token {
    at: Timestamp,
    zone: ZoneKey,
    /// Who gets it in the order of the forecast.
    node: NodeName,
    /// The probability that each node gets it.
    gets: BTreeMap<NodeName, f64>,
}

/// A smaller probability is none: rounding is all that is left of it.
const NONE: f64 = 1e-9;

impl Chances {
    pub fn new(turns: impl Iterator<Item = TaintTurn>) -> Self {
        let mut chances = Self::default();
        for turn in turns {
            let gets = chances.zones.entry(turn.zone.clone()).or_default().next(&turn);
            chances.tokens.push(Token { at: turn.at, zone: turn.zone, node: turn.node, gets });
        }
        chances
    }

    /// Adds to each step the chance that it happens at its time; none if that is certain.
    pub fn add_to(&self, steps: &mut [ForecastStep]) {
        let uncertain = self.tokens.iter().filter(|token| token.gets.len() > 1);
        let of_token = |token: &Token| {
            let among = token.gets.keys().cloned().collect();
            Chance { among, probability: token.gets.get(&token.node).copied().unwrap_or_default() }
        };
        let tokens: BTreeMap<(Timestamp, &NodeName), Chance> =
            uncertain.map(|token| ((token.at, &token.node), of_token(token))).collect();
        // The chance of the last taint of each node, which its evictions share.
        let mut of_node: BTreeMap<NodeName, Option<Chance>> = BTreeMap::new();
        for step in steps {
            let node = step.kind.node();
            match &step.kind {
                ForecastKind::NoExecute { .. } => {
                    step.chance = tokens.get(&(step.at, node)).cloned();
                    of_node.insert(node.clone(), step.chance.clone());
                }
                ForecastKind::Deleted { .. } => step.chance = of_node.get(node).cloned().flatten(),
                ForecastKind::Unknown { .. } | ForecastKind::Removed { .. } => {}
            }
        }
    }

    /// How many pods are deleted until a time, of which `predicted` are by the order of the forecast.
    pub fn deleted(&self, cluster: &Cluster, predicted: usize, until: Timestamp) -> DeletedRange {
        let pods = PodsOfNodes::new(cluster, self.tokens.iter().flat_map(|token| token.gets.keys()));
        let mut range = DeletedRange { least: 0, expected: 0.0, most: 0 };
        let mut by_tokens = 0;
        for zone in self.zones.keys() {
            let tokens: Vec<&Token> = self.tokens.iter().filter(|token| token.zone == *zone).collect();
            for token in &tokens {
                by_tokens += pods.deleted(&token.node, until.since(token.at));
                let of_node = |(node, gets): (&NodeName, &f64)| {
                    gets * as_f64(pods.deleted(node, until.since(token.at)))
                };
                range.expected += token.gets.iter().map(of_node).sum::<f64>();
            }
            let (least, most) = pods.bounds(&tokens, until);
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
    /// Whether it depends on the order in which nodes are tainted.
    pub const fn is_by_chance(&self) -> bool {
        self.least < self.most
    }

    /// Without this many deletions, which are not asked about.
    pub(super) fn without(self, deletions: usize) -> Self {
        Self {
            least: self.least.saturating_sub(deletions),
            expected: (self.expected - as_f64(deletions)).max(0.0),
            most: self.most.saturating_sub(deletions),
        }
    }
}

/// `12`, or `8 to 20, 13 expected` where chance decides.
impl fmt::Display for DeletedRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_by_chance() {
            return write!(f, "{}", self.most);
        }
        write!(f, "{} to {}, {:.0} expected", self.least, self.most, self.expected)
    }
}

impl Contest {
    /// The probability that each node gets this token.
    fn next(&mut self, turn: &TaintTurn) -> BTreeMap<NodeName, f64> {
        let waiting: BTreeSet<&NodeName> = turn.waiting.iter().collect();
        self.waits.retain(|node, _| waiting.contains(node) || self.served.contains(node));
        for node in waiting {
            if self.served.remove(node) || !self.waits.contains_key(node) {
                self.waits.insert(node.clone(), 1.0);
            }
        }
        let total: f64 = self.waits.values().sum();
        let gets = self.waits.iter().map(|(node, waits)| (node.clone(), waits / total)).collect();
        self.waits.values_mut().for_each(|waits| *waits *= 1.0 - 1.0 / total);
        self.waits.retain(|_, waits| *waits > NONE);
        self.served.insert(turn.node.clone());
        self.served.retain(|node| self.waits.contains_key(node));
        gets
    }
}

/// How long after the taint of its node each pod of some nodes is deleted, in order.
#[derive(Debug)]
struct PodsOfNodes(BTreeMap<NodeName, Vec<Span>>);

impl PodsOfNodes {
    fn new<'a>(cluster: &Cluster, nodes: impl Iterator<Item = &'a NodeName>) -> Self {
        let taints = [Taint { key: UNREACHABLE.into(), effect: TaintEffect::NoExecute, ..Taint::default() }];
        let of_node = |node: &NodeName| {
            let pods = cluster.pods_on(node).filter(|pod| pod.termination.is_none());
            let stays_for = pods.filter_map(|pod| match tolerance(&pod.tolerations, &taints) {
                Tolerance::NotTolerated(_) => Some(Span::ZERO),
                Tolerance::For { span, .. } => Some(span),
                Tolerance::Forever => None,
            });
            let mut spans: Vec<Span> = stays_for.collect();
            spans.sort_unstable();
            spans
        };
        let nodes: BTreeSet<&NodeName> = nodes.collect();
        Self(nodes.into_iter().map(|node| (node.clone(), of_node(node))).collect())
    }

    /// How many pods of a node are deleted so long after its taint.
    fn deleted(&self, node: &NodeName, after: Span) -> usize {
        self.0.get(node).map_or(0, |spans| spans.partition_point(|span| *span <= after))
    }

    /// The least and the most pods that are deleted, whichever nodes get these tokens of one zone.
    ///
    /// A node's count falls from token to token: the most is bounded by the largest counts of the first token, one for each
    /// token that can still lead to deletions; the least by the smallest counts of each token in turn, one for each token
    /// up to it.
    fn bounds(&self, tokens: &[&Token], until: Timestamp) -> (usize, usize) {
        let nodes: BTreeSet<&NodeName> = tokens.iter().flat_map(|token| token.gets.keys()).collect();
        let counts = |at: Timestamp| {
            let mut counts: Vec<usize> =
                nodes.iter().map(|node| self.deleted(node, until.since(at))).collect();
            counts.sort_unstable();
            counts
        };
        let lead_to_deletions =
            tokens.iter().filter(|token| counts(token.at).last().is_some_and(|most| *most > 0));
        let lead_to_deletions = lead_to_deletions.count();
        let first = tokens.first().map(|token| counts(token.at)).unwrap_or_default();
        let most = first.iter().rev().take(lead_to_deletions).sum();
        let least_by = |(place, token): (usize, &&Token)| counts(token.at).iter().take(place + 1).sum();
        (tokens.iter().enumerate().map(least_by).max().unwrap_or(0), most)
    }
}

#[expect(clippy::cast_precision_loss, reason = "far fewer pods than 2^52")]
const fn as_f64(count: usize) -> f64 {
    count as f64
}
