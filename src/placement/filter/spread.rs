//! Hard spread constraints (PodTopologySpread, DoNotSchedule).

use std::sync::Arc;

use super::{
    super::{
        columns::{ABSENT, LabelColumn},
        pod_classes::NamespaceScope,
        reason::{NodeRefusal, Reason},
        scheduling_request::SchedulingRequest,
        snapshot::{Resident, Snapshot},
    },
    NodeMatch, taints,
};
use crate::cluster::{Requirement, Selector, SelectorOperator, scheduling::SpreadConstraint};

/// The hard constraints of a pod, and how its pods are spread now.
#[derive(Clone, Debug)]
pub(super) struct HardSpread {
    constraints: Vec<HardConstraint>,
}

#[derive(Clone, Debug)]
struct HardConstraint {
    max_skew: i64,
    /// With fewer domains than this, the minimum counts as zero.
    min_domains: usize,
    /// 1 where the pod itself counts.
    own: i64,
    tally: Tally,
    /// Which values are domains: those that a counted node has.
    is_domain: Vec<bool>,
    domains: usize,
    /// The lowest count and its domain.
    least: Option<(i64, u32)>,
    /// The lowest count of the other domains.
    next: Option<i64>,
}

impl HardSpread {
    pub fn new(snapshot: &Snapshot, request: &SchedulingRequest, nodes: &NodeMatch) -> Self {
        let hard: Vec<&SpreadConstraint> = request.spec.spread.iter().filter(|spread| spread.hard).collect();
        let keys: Vec<Arc<LabelColumn>> =
            hard.iter().map(|spread| snapshot.column(&spread.topology_key).clone()).collect();
        let constraints = hard.iter().zip(&keys).map(|(spread, column)| {
            let selector = effective_selector(spread, request);
            let counted = counted_nodes(snapshot, request, nodes, spread, &keys);
            let own = selector.as_ref().is_some_and(|selector| selector.matches(&request.labels));
            let tally = Tally::new(snapshot, request, column.clone(), counted, selector.as_ref());
            HardConstraint::new(spread, tally, i64::from(own))
        });
        Self { constraints: constraints.collect() }
    }

    pub fn check(&self, node: u32) -> Result<(), NodeRefusal> {
        self.constraints.iter().try_for_each(|constraint| constraint.check(node))
    }

    pub fn assume(&mut self, resident: &Resident, node: u32, sign: i64) {
        for constraint in &mut self.constraints {
            constraint.tally.assume(resident, node, sign);
        }
    }
}

impl HardConstraint {
    fn new(spread: &SpreadConstraint, tally: Tally, own: i64) -> Self {
        let mut is_domain = vec![false; tally.column.values.len()];
        for (value, counted) in tally.column.of_node.iter().zip(&tally.counted) {
            if *counted {
                is_domain[*value as usize] = true;
            }
        }
        let mut hard = Self {
            max_skew: spread.max_skew.into(),
            min_domains: usize::try_from(spread.min_domains).unwrap_or(0),
            own,
            domains: is_domain.iter().filter(|is_domain| **is_domain).count(),
            is_domain,
            tally,
            least: None,
            next: None,
        };
        hard.find_least();
        hard
    }

    fn find_least(&mut self) {
        for (value, count) in (0_u32..).zip(&self.tally.counts) {
            if !self.is_domain[value as usize] {
                continue;
            }
            match self.least {
                Some((least, _)) if *count >= least => {
                    self.next = Some(self.next.map_or(*count, |next| next.min(*count)));
                }
                _ => {
                    self.next = self.least.map(|(least, _)| least);
                    self.least = Some((*count, value));
                }
            }
        }
    }

    fn check(&self, node: u32) -> Result<(), NodeRefusal> {
        let value = self.tally.column.of_node[node as usize];
        if value == ABSENT {
            return Err(NodeRefusal::unresolvable(Reason::SpreadLabel));
        }
        let count = self.tally.counts[value as usize];
        // Without a domain there is no skew.
        let Some(least) = self.least_with(value, count) else { return Ok(()) };
        if count + self.own - least > self.max_skew {
            return Err(NodeRefusal::resolvable(Reason::Spread));
        }
        Ok(())
    }

    /// The lowest count of all domains, where only that of `value` may have changed since they were compared.
    fn least_with(&self, value: u32, count: i64) -> Option<i64> {
        let (least, of) = self.least?;
        if self.domains < self.min_domains {
            return Some(0);
        }
        if !self.is_domain[value as usize] {
            return Some(least);
        }
        let others = if of == value { self.next } else { Some(least) };
        Some(others.map_or(count, |others| others.min(count)))
    }
}

/// How many of the selected pods are in each domain.
#[derive(Clone, Debug)]
pub(in super::super) struct Tally {
    pub column: Arc<LabelColumn>,
    /// By the value's number.
    pub counts: Vec<i64>,
    /// The nodes whose pods count.
    pub counted: Vec<bool>,
    /// The selected classes, ascending.
    pod_classes: Vec<u32>,
}

impl Tally {
    /// Counts the pods in the request's namespace that stay, on counted nodes with the label of the column.
    pub fn new(
        snapshot: &Snapshot,
        request: &SchedulingRequest,
        column: Arc<LabelColumn>,
        counted: Vec<bool>,
        selector: Option<&Selector>,
    ) -> Self {
        let mut tally =
            Self { counts: vec![0; column.values.len()], column, counted, pod_classes: Vec::new() };
        let counts =
            |selector: &&Selector| !selector.is_empty() || !snapshot.rules().empty_spread_counts_nothing;
        let Some(selector) = selector.filter(counts) else { return tally };
        let home = NamespaceScope::Some(vec![request.namespace.clone()]);
        for (number, pod_class) in snapshot.pod_classes().selected(&home, selector) {
            tally.pod_classes.push(number);
            for presence in pod_class.on.iter() {
                let value = tally.column.of_node[presence.node as usize];
                if tally.counted[presence.node as usize] && value != ABSENT {
                    tally.counts[value as usize] += presence.staying();
                }
            }
        }
        tally
    }

    fn assume(&mut self, resident: &Resident, node: u32, sign: i64) {
        let counts = self.counted[node as usize] && resident.pod.termination.is_none();
        if counts && self.pod_classes.binary_search(&resident.pod_class).is_ok() {
            self.counts[self.column.of_node[node as usize] as usize] += sign;
        }
    }
}

/// The selector of a constraint, with its matchLabelKeys.
pub(in super::super) fn effective_selector(
    spread: &SpreadConstraint,
    request: &SchedulingRequest,
) -> Option<Selector> {
    let mut selector = spread.selector.clone()?;
    for key in &spread.match_label_keys {
        if let Some(value) = request.labels.get(key) {
            let operator = SelectorOperator::In(vec![value.clone()]);
            selector.requirements.push(Requirement { key: key.clone(), operator });
        }
    }
    Some(selector)
}

/// The nodes that count for a constraint: those that have every key and that its policies do not exclude.
pub(in super::super) fn counted_nodes(
    snapshot: &Snapshot,
    request: &SchedulingRequest,
    nodes: &NodeMatch,
    spread: &SpreadConstraint,
    keys: &[Arc<LabelColumn>],
) -> Vec<bool> {
    let checks_affinity = spread.honours_affinity && !nodes.is_empty();
    let counts = |(node, resources): (u32, &super::NodeResources)| {
        resources.present
            && keys.iter().all(|column| column.of_node[node as usize] != ABSENT)
            && (!checks_affinity || nodes.matches(node))
            && (!spread.honours_taints
                || !resources.has_hard_taints
                || taints::check(&snapshot.node(node).taints, &request.tolerations, true).is_ok())
    };
    (0..).zip(snapshot.node_resources()).map(counts).collect()
}
