//! Preemption: which pods would be deleted to make room for a pod (DefaultPreemption).

use std::{cmp::Reverse, collections::BTreeMap, fmt, sync::Arc};

use super::{
    filter::{Filters, Hypothesis},
    node_resources::NodeResources,
    reason::{NodeRefusal, Reason, Remedy, Unexplained},
    snapshot::Resident,
};
use crate::cluster::{Budget, Key, NodeName, Pod};
use kordon_time::ClusterTime;

/// The result of preemption for a pod without a feasible node.
#[derive(Clone, Debug, PartialEq)]
pub enum Preemption {
    /// The pod's `preemptionPolicy` is Never.
    NotAllowed,
    /// The pod waits for its nominated node, on which pods that it preempts are already terminating.
    Waits { node: NodeName, victims: Vec<Key> },
    /// Preemption would make no node feasible. `hindrances` has the number of nodes for each cause.
    Impossible { hindrances: BTreeMap<Hindrance, usize> },
    /// The victims are deleted. The pod is nominated for their node, and is placed there once the victims are gone.
    Possible(PreemptionCandidate),
}

/// Why preemption does not make a node feasible.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hindrance {
    /// The node's refusal does not depend on its pods, so deleting pods does not help.
    NotHelpful,
    /// The node has no pod of lower priority.
    NoVictims,
    /// The node refuses the new pod even without the node's pods of lower priority.
    StillRefused(Reason),
}

impl fmt::Display for Hindrance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotHelpful => f.write_str("preemption does not help"),
            Self::NoVictims => f.write_str("no pods of lower priority"),
            Self::StillRefused(reason) => write!(f, "{reason}, even without the pods of lower priority"),
        }
    }
}

/// A node, with the pods that would be preempted there.
#[derive(Clone, Debug, PartialEq)]
pub struct PreemptionCandidate {
    pub node: NodeName,
    /// The pods that would be deleted, most important first.
    pub victims: Vec<Arc<Pod>>,
    /// Number of victims whose deletion violates a PodDisruptionBudget.
    pub violations: usize,
    /// Other nodes where preemption does equally little harm, sorted by name, each with its victims. The scheduler may
    /// take any of these nodes instead.
    pub ties: Vec<(NodeName, Vec<Key>)>,
}

/// Finds the node where preemption does the least harm.
pub(super) fn preempt(filters: &mut Filters<'_>, refusals: &[(u32, NodeRefusal)]) -> Preemption {
    if filters.request.spec.never_preempts {
        return Preemption::NotAllowed;
    }
    if let Some((node, victims)) = waits_for(filters, refusals) {
        return Preemption::Waits { node, victims };
    }
    let mut hindrances: BTreeMap<Hindrance, usize> = BTreeMap::new();
    let mut candidates: Vec<Candidate> = Vec::new();
    for (node, refusal) in refusals {
        let found = match refusal.remedy {
            Remedy::None => Err(vec![Hindrance::NotHelpful]),
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
        let place = |candidate: &Candidate| filters.snapshot.rank_of(candidate.node);
        left.cmp(right).then_with(|| place(one).cmp(&place(other)))
    });
    let name = |node: u32| filters.snapshot.node(node).name.clone();
    let mut equals = candidates.into_iter();
    let Some((harm, best)) = equals.next() else { return Preemption::Impossible { hindrances } };
    let as_good = equals.take_while(|(other, _)| *other == harm).map(|(_, candidate)| candidate);
    let keys = |victims: &[Arc<Pod>]| victims.iter().map(|pod| pod.key.clone()).collect();
    Preemption::Possible(PreemptionCandidate {
        ties: as_good.map(|other| (name(other.node), keys(&other.victims))).collect(),
        node: name(best.node),
        violations: best.violations,
        victims: best.victims,
    })
}

/// Returns the nominated node of the pod, and the pods that are already terminating there to make room
/// (`PodEligibleToPreemptOthers`). `None` if there are no such pods.
fn waits_for(filters: &Filters<'_>, refusals: &[(u32, NodeRefusal)]) -> Option<(NodeName, Vec<Key>)> {
    let (snapshot, request) = (filters.snapshot, filters.request);
    let only_preempted = snapshot.rules().only_preempted_make_room;
    let name = request.nominated.as_ref()?;
    let node = snapshot.number(name)?;
    let lost = refusals.iter().any(|(other, refusal)| *other == node && refusal.remedy == Remedy::None);
    let makes_room = |pod: &&Pod| {
        let is_leaving = if only_preempted { pod.is_being_preempted() } else { pod.termination.is_some() };
        pod.priority < request.priority && is_leaving
    };
    let pods = snapshot.residents_of(node).iter().map(|resident| &*resident.pod);
    let victims: Vec<Key> = pods.filter(makes_room).map(|pod| pod.key.clone()).collect();
    (!lost && !victims.is_empty()).then(|| (name.clone(), victims))
}

/// A node and its victims.
#[derive(Clone, Debug)]
struct Candidate {
    node: u32,
    /// Victims, most important first; at least one.
    victims: Vec<Arc<Pod>>,
    violations: usize,
}

/// The harm that preemption does on a candidate node. The scheduler takes the candidate with the least harm
/// (docs/upstream/placement-and-pressure.md#4.4).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Harm {
    violations: usize,
    highest_priority: i32,
    priorities: i64,
    victims: usize,
    /// Earliest start among the victims of the highest priority. Preemption of pods that started later does less harm.
    running_since: Reverse<Started>,
}

/// Start time of a pod; `Now` for a pod that has not started. `Now` is later than all start times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Started {
    At(ClusterTime),
    Now,
}

impl Started {
    fn from_pod(pod: &Pod) -> Self {
        pod.started.map_or(Self::Now, Self::At)
    }
}

impl Candidate {
    /// Finds the victims on a node. Removes all pods of lower priority, then puts back as many of them as still fit
    /// beside the new pod. Pods whose removal violates a budget are put back first.
    ///
    /// # Errors
    /// Why preemption does not make the node feasible.
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
            filters.assume(victim, node, Hypothesis::Removed);
        }
        let verdict = filters.check_with::<NodeRefusal>(node, &resources);
        let mut candidate = Self { node, victims: Vec::new(), violations: 0 };
        let mut kept = Vec::new();
        if verdict.is_ok() {
            let (violating, others) = split_by_budget(&victims, snapshot.budgets());
            let tried =
                violating.iter().map(|victim| (1, victim)).chain(others.iter().map(|victim| (0, victim)));
            for (violations, victim) in tried {
                if candidate.reprieve(filters, &mut resources, victim) {
                    kept.push(*victim);
                } else {
                    candidate.violations += violations;
                }
            }
        }
        // Adds the removed pods to the filters again, so that the next node is checked without these removals.
        let is_removed = |victim: &&&Resident| !kept.iter().any(|kept| std::ptr::eq(*kept, **victim));
        for victim in victims.iter().filter(is_removed) {
            filters.assume(victim, node, Hypothesis::Added);
        }
        verdict.map_err(|refusal| {
            refusal.reasons.into_owned().into_iter().map(Hindrance::StillRefused).collect::<Vec<_>>()
        })?;
        let rank = |pod: &Arc<Pod>| victims.iter().position(|victim| Arc::ptr_eq(&victim.pod, pod));
        candidate.victims.sort_by_cached_key(rank);
        // No victim is left, so the new pod fits without preemption.
        if candidate.victims.is_empty() { Err(vec![Hindrance::NoVictims]) } else { Ok(candidate) }
    }

    /// Puts a victim back on the node if the new pod still fits beside it. Returns whether the victim was put back.
    fn reprieve(
        &mut self,
        filters: &mut Filters<'_>,
        resources: &mut NodeResources,
        victim: &Resident,
    ) -> bool {
        resources.add(&victim.pod);
        filters.assume(victim, self.node, Hypothesis::Added);
        let fits = filters.check_with::<Unexplained>(self.node, resources).is_ok();
        if !fits {
            resources.remove(&victim.pod);
            filters.assume(victim, self.node, Hypothesis::Removed);
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
            running_since: Reverse(
                most_important.map(|pod| Started::from_pod(pod)).min().unwrap_or(Started::Now),
            ),
        }
    }
}

/// Sorts pods by priority, then start time, then order of arrival.
///
/// Pods that have not started are sorted by reverse order of arrival. For these pods, upstream reads the clock again in
/// each comparison, which reverses their order.
fn most_important_first(residents: &mut Vec<&Resident>) {
    let mut keyed: Vec<_> = (0_i64..)
        .zip(&*residents)
        .map(|(arrival, resident)| {
            let started = Started::from_pod(&resident.pod);
            let order = if started == Started::Now { -arrival } else { arrival };
            ((Reverse(resident.pod.priority), started, order), *resident)
        })
        .collect();
    keyed.sort_by_key(|(key, _)| *key);
    *residents = keyed.into_iter().map(|(_, resident)| resident).collect();
}

/// Separates the victims whose removal violates a budget (first list) from the others. Each victim in turn uses up one
/// of the disruptions that its budgets allow.
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
            let is_covered = selects && !pod.labels.is_empty() && budget.covers(pod);
            if !is_covered || budget.status.disrupted_pods.contains_key(&pod.key.name) {
                continue;
            }
            *left -= 1;
            violates |= *left < 0;
        }
        violates
    })
}
