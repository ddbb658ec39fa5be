//! Whom a pod would displace (DefaultPreemption).

use std::{cmp::Reverse, collections::BTreeMap, fmt, sync::Arc};

use super::{
    filter::{Filters, Hypothesis},
    node_resources::NodeResources,
    reason::{NodeRefusal, Reason, Remedy},
    snapshot::Resident,
};
use crate::{
    cluster::{Budget, Key, NodeName, Pod},
    time::Timestamp,
};

/// What preemption makes of a pod that fits nowhere.
#[derive(Clone, Debug, PartialEq)]
pub enum Preemption {
    /// Its `preemptionPolicy` is Never.
    NotAllowed,
    /// Room is being made for it already: a pod of lower priority is leaving the node that it is nominated for.
    Waits { node: NodeName },
    /// No node can be emptied far enough; how many say why.
    Helpless { hindrances: BTreeMap<Hindrance, usize> },
    /// These pods are deleted; the pod is nominated for their node, and placed when they have gone.
    Displaces(Displacement),
}

/// What keeps preemption from making room on a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hindrance {
    /// What speaks against the node does not go away with its pods.
    NoHelp,
    /// It has no pod of lower priority.
    NoVictims,
    /// Without all pods of lower priority it would still refuse, for this reason.
    Still(Reason),
}

impl fmt::Display for Hindrance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoHelp => f.write_str("displacing pods does not help"),
            Self::NoVictims => f.write_str("no pods of lower priority"),
            Self::Still(reason) => write!(f, "{reason}, even without the pods of lower priority"),
        }
    }
}

/// Who would go, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct Displacement {
    pub node: NodeName,
    /// The pods to be deleted, most important first.
    pub victims: Vec<Arc<Pod>>,
    /// How many of them a budget would have kept.
    pub violations: usize,
    /// Other nodes that upstream might as well take, by name, each with its victims.
    pub ties: Vec<(NodeName, Vec<Key>)>,
}

/// Looks for the node where making room hurts least.
pub(super) fn preempt(filters: &mut Filters<'_>, refusals: &[(u32, NodeRefusal)]) -> Preemption {
    if filters.request.spec.never_preempts {
        return Preemption::NotAllowed;
    }
    if let Some(node) = waits_for(filters, refusals) {
        return Preemption::Waits { node };
    }
    let mut hindrances: BTreeMap<Hindrance, usize> = BTreeMap::new();
    let mut candidates: Vec<Candidate> = Vec::new();
    for (node, refusal) in refusals {
        let found = match refusal.remedy {
            Remedy::None => Err(vec![Hindrance::NoHelp]),
            Remedy::FewerPods => Candidate::on(filters, *node),
        };
        match found {
            Ok(candidate) => candidates.push(candidate),
            Err(found) => found.into_iter().for_each(|found| *hindrances.entry(found).or_default() += 1),
        }
    }
    let mut candidates: Vec<(Harm, Candidate)> =
        candidates.into_iter().map(|candidate| (candidate.harm(), candidate)).collect();
    candidates.sort_by(|(left, one), (right, other)| {
        let place = |candidate: &Candidate| filters.snapshot.place_of(candidate.node);
        left.cmp(right).then_with(|| place(one).cmp(&place(other)))
    });
    let name = |node: u32| filters.snapshot.node(node).name.clone();
    let mut equals = candidates.into_iter();
    let Some((harm, best)) = equals.next() else { return Preemption::Helpless { hindrances } };
    let as_good = equals.take_while(|(other, _)| *other == harm).map(|(_, candidate)| candidate);
    let keys = |victims: &[Arc<Pod>]| victims.iter().map(|pod| pod.key.clone()).collect();
    Preemption::Displaces(Displacement {
        ties: as_good.map(|other| (name(other.node), keys(&other.victims))).collect(),
        node: name(best.node),
        violations: best.violations,
        victims: best.victims,
    })
}

/// The node where room is being made already.
fn waits_for(filters: &Filters<'_>, refusals: &[(u32, NodeRefusal)]) -> Option<NodeName> {
    let (snapshot, request) = (filters.snapshot, filters.request);
    let name = request.nominated.as_ref()?;
    let node = snapshot.number(name)?;
    let lost = refusals.iter().any(|(other, refusal)| *other == node && refusal.remedy == Remedy::None);
    let leaving =
        |resident: &Resident| resident.pod.priority < request.priority && resident.pod.termination.is_some();
    (!lost && snapshot.residents_of(node).iter().any(leaving)).then(|| name.clone())
}

/// A node and who would have to go.
#[derive(Clone, Debug)]
struct Candidate {
    node: u32,
    /// Most important first; at least one.
    victims: Vec<Arc<Pod>>,
    violations: usize,
}

/// How bad a candidate is; the least harm is taken (docs/upstream/placement-and-pressure.md#4.4).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Harm {
    violations: usize,
    highest_priority: i32,
    priorities: i64,
    victims: usize,
    /// The longer the most important ones have run, the worse.
    running_since: Reverse<Started>,
}

/// When a pod started; one that has not yet counts as starting now, after all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Started {
    At(Timestamp),
    Now,
}

impl Started {
    fn of(pod: &Pod) -> Self {
        pod.started.map_or(Self::Now, Self::At)
    }
}

impl Candidate {
    /// Takes every pod of lower priority away, and puts back as many as fit beside the newcomer, budgets' first.
    fn on(filters: &mut Filters<'_>, node: u32) -> Result<Self, Vec<Hindrance>> {
        let snapshot = filters.snapshot;
        let lower = |resident: &&Resident| resident.pod.priority < filters.request.priority;
        let mut victims: Vec<&Resident> = snapshot.residents_of(node).iter().filter(lower).collect();
        if victims.is_empty() {
            return Err(vec![Hindrance::NoVictims]);
        }
        most_important_first(&mut victims);
        let mut resources = snapshot.resources(node).clone();
        for victim in &victims {
            resources.remove(&victim.pod);
            filters.imagine(victim, node, Hypothesis::Gone);
        }
        let verdict = filters.judge_in(node, &resources);
        let mut candidate = Self { node, victims: Vec::new(), violations: 0 };
        let mut put_back = Vec::new();
        if verdict.is_ok() {
            let (violating, others) = split_by_budget(&victims, snapshot.budgets());
            let tried =
                violating.iter().map(|victim| (1, victim)).chain(others.iter().map(|victim| (0, victim)));
            for (violations, victim) in tried {
                if candidate.reprieve(filters, &mut resources, victim) {
                    put_back.push(*victim);
                } else {
                    candidate.violations += violations;
                }
            }
        }
        // As it was, for the next node.
        let gone = |victim: &&&Resident| !put_back.iter().any(|back| std::ptr::eq(*back, **victim));
        for victim in victims.iter().filter(gone) {
            filters.imagine(victim, node, Hypothesis::There);
        }
        verdict.map_err(|refusal| refusal.reasons.into_iter().map(Hindrance::Still).collect::<Vec<_>>())?;
        let rank = |pod: &Arc<Pod>| victims.iter().position(|victim| Arc::ptr_eq(&victim.pod, pod));
        candidate.victims.sort_by_cached_key(rank);
        // Nobody has to go after all: the pod fits, and that is no matter of preemption.
        if candidate.victims.is_empty() { Err(vec![Hindrance::NoVictims]) } else { Ok(candidate) }
    }

    /// Lets a victim stay if the newcomer still fits.
    fn reprieve(
        &mut self,
        filters: &mut Filters<'_>,
        resources: &mut NodeResources,
        victim: &Resident,
    ) -> bool {
        resources.add(&victim.pod);
        filters.imagine(victim, self.node, Hypothesis::There);
        let fits = filters.judge_in(self.node, resources).is_ok();
        if !fits {
            resources.remove(&victim.pod);
            filters.imagine(victim, self.node, Hypothesis::Gone);
            self.victims.push(victim.pod.clone());
        }
        fits
    }

    fn harm(&self) -> Harm {
        let highest_priority = self.victims.iter().map(|pod| pod.priority).max().unwrap_or(i32::MIN);
        let most_important = self.victims.iter().filter(|pod| pod.priority == highest_priority);
        Harm {
            violations: self.violations,
            highest_priority,
            priorities: self.victims.iter().map(|pod| i64::from(pod.priority) + (1 << 31)).sum(),
            victims: self.victims.len(),
            running_since: Reverse(most_important.map(|pod| Started::of(pod)).min().unwrap_or(Started::Now)),
        }
    }
}

/// Sorts by priority, then by who started earlier, then by who came earlier.
///
/// Of those that have not started, who came last counts most: upstream takes the time afresh for each comparison, and
/// so turns their order around.
fn most_important_first(residents: &mut Vec<&Resident>) {
    let mut keyed: Vec<_> = (0_i64..)
        .zip(&*residents)
        .map(|(came, resident)| {
            let started = Started::of(&resident.pod);
            let order = if started == Started::Now { -came } else { came };
            ((Reverse(resident.pod.priority), started, order), *resident)
        })
        .collect();
    keyed.sort_by_key(|(key, _)| *key);
    *residents = keyed.into_iter().map(|(_, resident)| resident).collect();
}

/// Parts those whose going would break a budget from the others, spending what the budgets allow in order.
fn split_by_budget<'r>(
    victims: &[&'r Resident],
    budgets: &[Arc<Budget>],
) -> (Vec<&'r Resident>, Vec<&'r Resident>) {
    let mut left: Vec<i32> = budgets.iter().map(|budget| budget.status.disruptions_allowed).collect();
    victims.iter().partition(|victim| {
        let pod = &victim.pod;
        let mut violates = false;
        for (budget, left) in budgets.iter().zip(&mut left) {
            let selects = budget.selector.as_ref().is_some_and(|selector| !selector.is_empty());
            let spoken_of = selects && !pod.labels.is_empty() && budget.covers(pod);
            if !spoken_of || budget.status.disrupted_pods.contains_key(&pod.key.name) {
                continue;
            }
            *left -= 1;
            violates |= *left < 0;
        }
        violates
    })
}
