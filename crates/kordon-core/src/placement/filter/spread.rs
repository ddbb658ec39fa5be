//! Hard spread constraints (PodTopologySpread, DoNotSchedule).

use std::sync::Arc;

use super::{
    super::{
        columns::{ABSENT, LabelColumn},
        pod_classes::NamespaceScope,
        reason::{FilterRefusal, Reason},
        scheduling_request::SchedulingRequest,
        snapshot::{Resident, Snapshot},
    },
    NodeMatch, taints,
};
use crate::cluster::{Requirement, Selector, SelectorOperator, scheduling::SpreadConstraint};

/// The hard spread constraints of a pod, each with the current number of selected pods in each domain.
#[derive(Clone, Debug)]
pub(super) struct HardSpread {
    constraints: Vec<HardConstraint>,
}

#[derive(Clone, Debug)]
struct HardConstraint {
    max_skew: i64,
    /// `minDomains`. With fewer domains than this, the lowest count is taken as zero.
    min_domains: usize,
    /// What this pod adds to the count of its own domain: 1 if it matches the selector, else 0.
    own: i64,
    counted: CountedNodes,
    tally: Tally,
    /// Whether each value of the label is a domain, indexed like `tally.column.values`. A domain has at least one node
    /// whose pods count for the constraint.
    is_domain: Vec<bool>,
    domains: usize,
    /// The domain with the lowest pod count, as (count, domain).
    least: Option<(i64, u32)>,
    /// The lowest pod count among all domains except the one in `least`.
    next: Option<i64>,
}

impl HardSpread {
    pub fn new(snapshot: &Snapshot, request: &SchedulingRequest, nodes: &NodeMatch) -> Self {
        let hard: Vec<&SpreadConstraint> = request.spec.spread.iter().filter(|spread| spread.hard).collect();
        let keys: Vec<Arc<LabelColumn>> =
            hard.iter().map(|spread| snapshot.column(&spread.topology_key).clone()).collect();
        let constraints = hard.iter().zip(&keys).map(|(spread, column)| {
            let selector = effective_selector(spread, request);
            let counted = CountedNodes::new(nodes, spread, &keys);
            let own = selector.as_ref().is_some_and(|selector| selector.matches(&request.labels));
            let is_counted = |node| counted.counts(snapshot, request, nodes, node);
            let pod_classes = selected_classes(snapshot, request, selector.as_ref());
            let tally = Tally::new(snapshot, column.clone(), is_counted, pod_classes);
            let domains = domains(snapshot, column, is_counted);
            HardConstraint::new(spread, counted, tally, domains, i64::from(own))
        });
        Self { constraints: constraints.collect() }
    }

    /// Returns whether there are no constraints.
    pub fn is_empty(&self) -> bool {
        self.constraints.is_empty()
    }

    #[inline]
    pub fn check<R: FilterRefusal>(&self, node: u32) -> Result<(), R> {
        self.constraints.iter().try_for_each(|constraint| constraint.check(node))
    }

    pub fn assume(
        &mut self,
        snapshot: &Snapshot,
        request: &SchedulingRequest,
        nodes: &NodeMatch,
        resident: &Resident,
        node: u32,
        sign: i64,
    ) {
        for HardConstraint { counted, tally, .. } in &mut self.constraints {
            if resident.pod.termination.is_none() && counted.counts(snapshot, request, nodes, node) {
                tally.assume(resident, node, sign);
            }
        }
    }
}

impl HardConstraint {
    fn new(
        spread: &SpreadConstraint,
        counted: CountedNodes,
        tally: Tally,
        is_domain: Vec<bool>,
        own: i64,
    ) -> Self {
        let mut hard = Self {
            max_skew: spread.max_skew.into(),
            min_domains: usize::try_from(spread.min_domains).unwrap_or(0),
            own,
            domains: is_domain.iter().filter(|is_domain| **is_domain).count(),
            is_domain,
            counted,
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

    #[inline]
    fn check<R: FilterRefusal>(&self, node: u32) -> Result<(), R> {
        let value = self.tally.column.of_node[node as usize];
        if value == ABSENT {
            return Err(R::unresolvable(&[Reason::SpreadLabel]));
        }
        let count = self.tally.counts[value as usize];
        // If no domain exists, every node satisfies the constraint.
        let Some(least) = self.least_with(value, count) else { return Ok(()) };
        if count + self.own - least > self.max_skew {
            return Err(R::resolvable(&[Reason::Spread]));
        }
        Ok(())
    }

    /// Returns the lowest pod count of all domains. Uses `count` for the domain `value`, because `least` and `next`
    /// may be outdated for this domain.
    #[inline]
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

/// Number of pods that a constraint selects in each domain.
#[derive(Clone, Debug)]
pub(in super::super) struct Tally {
    pub column: Arc<LabelColumn>,
    /// Number of selected pods in each domain, indexed like the label values in `column.values`.
    pub counts: Vec<i64>,
    /// Numbers of the pod classes (pods with equal labels) that the constraint selects, ascending.
    pod_classes: Vec<u32>,
}

impl Tally {
    /// Counts the pods of `pod_classes` in each domain. Leaves out terminating pods, nodes for which `is_counted` is
    /// false, and nodes without the label.
    pub fn new(
        snapshot: &Snapshot,
        column: Arc<LabelColumn>,
        is_counted: impl Fn(u32) -> bool,
        pod_classes: Vec<u32>,
    ) -> Self {
        let mut counts = vec![0; column.values.len()];
        for number in &pod_classes {
            for presence in snapshot.pod_classes().on(*number).iter() {
                let value = column.of_node[presence.node as usize];
                if value != ABSENT && is_counted(presence.node) {
                    counts[value as usize] += presence.staying();
                }
            }
        }
        Self { counts, column, pod_classes }
    }

    /// Adds a pod to the number of pods in its node's domain, or subtracts it. The pods of the node must count for the
    /// constraint.
    fn assume(&mut self, resident: &Resident, node: u32, sign: i64) {
        if self.pod_classes.binary_search(&resident.pod_class).is_ok() {
            self.counts[self.column.of_node[node as usize] as usize] += sign;
        }
    }
}

/// Returns the pod classes (pods with equal labels) that a constraint with this selector counts, ascending. Only
/// classes in the namespace of the request count.
pub(in super::super) fn selected_classes(
    snapshot: &Snapshot,
    request: &SchedulingRequest,
    selector: Option<&Selector>,
) -> Vec<u32> {
    let counts = |selector: &&Selector| !selector.is_empty() || !snapshot.rules().empty_spread_counts_nothing;
    let Some(selector) = selector.filter(counts) else { return Vec::new() };
    let home = NamespaceScope::Some(vec![request.namespace.clone()]);
    snapshot.pod_classes().selected(&home, selector).map(|(number, _)| number).collect()
}

/// Returns the selector of a constraint, extended by its `matchLabelKeys`.
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

/// The nodes whose pods count for a spread constraint: they have the topology keys of all constraints of the pod, and
/// pass the node policies of this constraint.
#[derive(Clone, Debug)]
pub(in super::super) enum CountedNodes {
    All,
    Some { keys: Box<[Arc<LabelColumn>]>, checks_affinity: bool, checks_taints: bool },
}

impl CountedNodes {
    pub fn new(nodes: &NodeMatch, spread: &SpreadConstraint, keys: &[Arc<LabelColumn>]) -> Self {
        Self::Some {
            keys: keys.into(),
            checks_affinity: spread.honours_affinity && !nodes.is_empty(),
            checks_taints: spread.honours_taints,
        }
    }

    /// Returns whether the pods of a node count for the spread constraint.
    pub fn counts(
        &self,
        snapshot: &Snapshot,
        request: &SchedulingRequest,
        nodes: &NodeMatch,
        node: u32,
    ) -> bool {
        let Self::Some { keys, checks_affinity, checks_taints } = self else { return true };
        let resources = snapshot.resources(node);
        resources.present
            && keys.iter().all(|column| column.of_node[node as usize] != ABSENT)
            && (!checks_affinity || nodes.matches(node))
            && (!checks_taints
                || !resources.has_hard_taints
                || taints::are_tolerated(&snapshot.node(node).taints, &request.tolerations))
    }
}

/// Returns whether each value of a label is a domain: a value that at least one node has whose pods count. Indexed like
/// `column.values`.
fn domains(snapshot: &Snapshot, column: &LabelColumn, is_counted: impl Fn(u32) -> bool) -> Vec<bool> {
    let mut is_domain = vec![false; column.values.len()];
    let mut unseen = is_domain.len();
    for node in snapshot.node_numbers() {
        // Stops once every value is known to be a domain. If the values are zones, the first few nodes usually suffice.
        if unseen == 0 {
            break;
        }
        let value = column.of_node[node as usize];
        if value != ABSENT && !is_domain[value as usize] && is_counted(node) {
            is_domain[value as usize] = true;
            unseen -= 1;
        }
    }
    is_domain
}
