//! What other pods, those that stay and those that are packed, leave of the nodes for one pod.

use std::sync::Arc;

use super::{
    super::{
        profile::{Relations, SpreadRelation},
        staying::StayingPods,
    },
    newcomers::Newcomers,
    reserve::Narrowing,
};
use crate::ordered::{OrderedMap, OrderedSet};

/// The domains that a pod may and may not come into now.
pub(super) struct OpenDomains<'a> {
    staying: StayingPods<'a>,
    newcomers: &'a Newcomers,
    relations: Arc<Relations>,
    /// It must come near others, in one of these domains; any will do where it is the first.
    near: Option<(u32, Option<OrderedSet<u32>>)>,
    closed: Vec<(u32, OrderedSet<u32>)>,
    spread: Vec<OpenSpread>,
}

/// The pods of each domain of a spread constraint.
struct OpenSpread {
    key: u32,
    counts: OrderedMap<u32, i64>,
    /// No domain may have more before the pod comes; none if there is no domain.
    most: Option<i64>,
}

impl<'a> OpenDomains<'a> {
    /// None if the pod can come into none.
    pub fn new(
        relations: Arc<Relations>,
        staying: StayingPods<'a>,
        newcomers: &'a Newcomers,
        domains_left: impl Fn(&SpreadRelation) -> &'a [u32],
    ) -> Option<Self> {
        let domain = |key: u32| move |node: u32| staying.profiles.domain(key, node);
        let near = match &relations.affinity {
            None => None,
            Some(affinity) => {
                let key = affinity.term.key;
                let mut values = staying.values_of_classes(&affinity.term);
                values.extend(newcomers.of_classes(&affinity.term.numbers).filter_map(domain(key)));
                if values.is_empty() && !affinity.may_be_first {
                    return None;
                }
                Some((key, (!values.is_empty()).then_some(values)))
            }
        };
        let apart = relations.anti_affinity.iter().map(|term| {
            let mut values = staying.values_of_classes(term);
            values.extend(newcomers.of_classes(&term.numbers).filter_map(domain(term.key)));
            (term.key, values)
        });
        let of_others = relations.of_others.iter().map(|term| {
            let mut values = staying.values_of_groups(term);
            values.extend(newcomers.of_groups(&term.numbers).filter_map(domain(term.key)));
            (term.key, values)
        });
        let closed = apart.chain(of_others).filter(|(_, values)| !values.is_empty()).collect();
        let spread = relations.spread.iter();
        let spread =
            spread.map(|spread| OpenSpread::new(spread, staying, newcomers, domains_left(spread))).collect();
        Some(Self { staying, newcomers, near, closed, spread, relations })
    }

    /// Records what the constraints take of the nodes of a set.
    pub fn narrow(&self, set: u32, nodes: &[u32], narrowing: &mut Narrowing) {
        let domains = |key: u32| self.staying.profiles.keys[key as usize].1.values.len();
        if let Some((key, values)) = &self.near {
            let closed = values.as_ref().map_or(0, |values| nodes.len().saturating_sub(values.len()));
            narrowing.add(set, *key, domains(*key), closed);
        }
        for (key, values) in &self.closed {
            narrowing.add(set, *key, domains(*key), values.len());
        }
        for spread in &self.spread {
            let closed = spread.counts.keys().filter(|value| !spread.allows(**value)).count();
            narrowing.add(set, spread.key, domains(spread.key), closed);
        }
        if !self.relations.ports.is_empty() {
            let closed = nodes.iter().filter(|node| !self.allow(**node)).count();
            narrowing.add(set, u32::MAX, usize::MAX, closed);
        }
    }

    /// Whether the pod may come to a node, if that has room.
    pub fn allow(&self, node: u32) -> bool {
        let domain = |key: u32| self.staying.profiles.domain(key, node);
        let is_near = |(key, values): &(u32, Option<OrderedSet<u32>>)| {
            domain(*key).is_some_and(|value| values.as_ref().is_none_or(|values| values.contains(&value)))
        };
        let is_closed = |(key, values): &(u32, OrderedSet<u32>)| {
            domain(*key).is_some_and(|value| values.contains(&value))
        };
        let is_open = |spread: &OpenSpread| domain(spread.key).is_some_and(|value| spread.allows(value));
        let ports = &self.relations.ports;
        self.near.as_ref().is_none_or(is_near)
            && !self.closed.iter().any(is_closed)
            && self.spread.iter().all(is_open)
            && (ports.is_empty()
                || !self.staying.uses_port(node, &self.relations) && !self.newcomers.use_port(node, ports))
    }
}

impl OpenSpread {
    fn new(spread: &SpreadRelation, staying: StayingPods<'_>, newcomers: &Newcomers, left: &[u32]) -> Self {
        let key = spread.term.key;
        let mut counts = staying.spread_counts(spread);
        let is_counted = &staying.profiles.counted[spread.counted as usize].of_node;
        for node in newcomers.of_classes(&spread.term.numbers).filter(|node| is_counted[*node as usize]) {
            if let Some(value) = staying.profiles.domain(key, node) {
                *counts.entry(value).or_default() += 1;
            }
        }
        let domains = left.iter().filter(|nodes| **nodes > 0).count();
        let of_domains = counts.iter().filter(|(value, _)| left[**value as usize] > 0);
        let least = of_domains.clone().map(|(_, count)| *count).min().unwrap_or(0);
        let is_zero = domains < spread.min_domains || of_domains.count() < domains;
        let least = if is_zero { 0 } else { least };
        Self { key, counts, most: (domains > 0).then_some(spread.max_skew + least - spread.own) }
    }

    fn allows(&self, value: u32) -> bool {
        let count = self.counts.get(&value).copied().unwrap_or(0);
        self.most.is_none_or(|most| count <= most)
    }
}
