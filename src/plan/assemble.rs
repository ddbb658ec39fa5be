//! Makes the plan's rows of what the simulation found.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    BudgetPlan, Happening, Moment, NodeDrain, NodePlan, Plan, PodPlan, Totals, Window,
    budget::State,
    eviction::{self, Answer, Block, Free, Gate},
    judgement::Receiver,
    outlook,
    owner::{self, Lost, Return},
    rules::Rules,
    simulation::{self, Course, End, Manner, PodCourse, Simulation, Undertaking},
    surroundings::{Bound, Landing, Quality, Surroundings},
    verdict::{Passage, Verdict},
    warning::{self, OfPod},
};
use crate::{
    cluster::{Cluster, Key, Pod},
    time::{Span, Timestamp},
};

/// The runs of one undertaking, and what they are told by.
pub(super) struct Assembly<'a, S> {
    cluster: &'a Cluster,
    undertaking: &'a Undertaking,
    rules: &'a Rules,
    surroundings: &'a S,
    now: Timestamp,
    before: BTreeMap<Key, State>,
    soonest: Course,
    likely: Course,
    latest: Course,
    /// The likely course if there were no time limit: verdicts come from it, for a limit says nothing of budgets.
    patient: Course,
    leaving: BTreeSet<Key>,
}

impl<'a, S: Surroundings> Assembly<'a, S> {
    pub(super) fn new(
        cluster: &'a Cluster,
        undertaking: &'a Undertaking,
        rules: &'a Rules,
        surroundings: &'a S,
        states: BTreeMap<Key, State>,
        now: Timestamp,
    ) -> Self {
        let simulation = Simulation::new(cluster, undertaking, &states, rules, now);
        let likely = simulation.run(surroundings.clone(), Bound::Likely);
        let mut known = surroundings.clone();
        known.keep_to(likely.landings(), &likely.account);
        let patient = if undertaking.timeout.is_some() {
            let patient = Undertaking { timeout: None, ..undertaking.clone() };
            Simulation::new(cluster, &patient, &states, rules, now).run(known.clone(), Bound::Likely)
        } else {
            likely.clone()
        };
        let goes = |course: &&PodCourse| course.granted.is_some();
        let leaving =
            patient.pods.iter().filter(|(_, course)| goes(course)).map(|(key, _)| key.clone()).collect();
        Self {
            cluster,
            undertaking,
            rules,
            surroundings,
            now,
            soonest: simulation.run(known.clone(), Bound::Soonest),
            latest: simulation.run(known, Bound::Latest),
            likely,
            before: states,
            patient,
            leaving,
        }
    }

    pub(super) fn manner(&self) -> Manner {
        self.undertaking.manner
    }

    pub(super) fn sees_budgets(&self) -> bool {
        self.cluster.budgets().is_synced()
    }

    /// The row of a pod that is tried.
    pub(super) fn pod(&self, pod: &Arc<Pod>) -> PodPlan {
        let mut plan = bare(pod, self.verdict(pod));
        let when =
            |course: &Course, of: fn(&PodCourse) -> Option<Timestamp>| course.pods.get(&pod.key).and_then(of);
        let window = |of: fn(&PodCourse) -> Option<Timestamp>| Window {
            soonest: when(&self.soonest, of),
            likely: when(&self.likely, of),
            latest: when(&self.latest, of),
        };
        plan.leaves = window(|course| course.granted);
        plan.gone = window(|course| course.gone);
        let gate = eviction::gate_at(self.cluster, pod, &self.before, self.rules);
        plan.answer = Some(Answer::to(&gate, self.rules));
        let likely = self.likely.pods.get(&pod.key);
        let is_late = likely.is_some_and(|course| course.end == Some(End::TimedOut));
        plan.times_out = if is_late { self.timed_out_at(&pod.key) } else { None };
        let replacement = likely.and_then(|course| course.replacement.as_ref());
        plan.landing = replacement.map(|replacement| replacement.landing.clone());
        plan.ready_again = replacement.and_then(|replacement| replacement.ready);
        plan.judgement = self.likely.account.judgements.get(&pod.key).cloned();
        if let (Return::Here, Some(node), Some(_)) =
            (owner::comes_back(self.cluster, pod), &pod.node, plan.gone.likely)
        {
            plan.landing = Some(Landing::Node { node: node.clone(), why: "nowhere but here".into() });
        }
        plan.quality = self.quality(pod, &plan.verdict);
        plan.lost = lost(self.cluster, pod);
        let unprotected = self.manner() == Manner::Delete
            || eviction::budgets_of(self.cluster, pod, self.rules).next().is_none();
        plan.warnings = warning::of_pod(self.cluster, pod, &self.leaving, unprotected);
        if self.undertaking.grace == Some(Span::ZERO) && warning::has_identity(pod) {
            plan.warnings.insert(OfPod::TwoOfAKind);
        }
        let silent = |node: &_| !super::surroundings::has_living_kubelet(self.cluster, node);
        if pod.node.as_ref().is_some_and(silent) && plan.gone.likely.is_none() {
            plan.warnings.insert(OfPod::KubeletSilent);
        }
        plan
    }

    fn timed_out_at(&self, pod: &Key) -> Option<Timestamp> {
        let gave_up = |moment: &&simulation::Moment| matches!(&moment.what, simulation::Happening::GaveUp { pod: of, end: End::TimedOut } if of == pod);
        self.likely.moments.iter().find(gave_up).map(|moment| moment.at)
    }

    fn verdict(&self, pod: &Pod) -> Verdict {
        let Some(course) = self.patient.pods.get(&pod.key) else {
            return Verdict::Unknown { missing: "its turn never comes".into() };
        };
        if pod.termination.is_some() && course.end != Some(End::Failed) {
            return Verdict::Leaving;
        }
        if course.granted.is_none() {
            return match &course.block {
                Some(block) => outlook::verdict(self.cluster, block, &self.patient, self.rules),
                None => Verdict::Unknown { missing: "its turn never comes".into() },
            };
        }
        if let Some(budget) = course.block.as_ref().and_then(Block::budget) {
            let (recoveries, behind) = (course.recoveries, course.behind.clone());
            return Verdict::LeavesAfter { budget: budget.clone(), recoveries, behind };
        }
        match &course.first {
            _ if self.manner() == Manner::Delete => Verdict::Leaves(Passage::Deleted),
            Some(Gate::Free(Free::NoBudget)) if !self.sees_budgets() => {
                Verdict::Unknown { missing: "budgets cannot be read".into() }
            }
            Some(Gate::Costs { budget }) => {
                let numbers = self.before.get(budget).map(|state| state.numbers).unwrap_or_default();
                Verdict::Leaves(Passage::Within { budget: budget.clone(), numbers })
            }
            Some(Gate::Free(free)) => Verdict::Leaves(Passage::Free(*free)),
            Some(Gate::Blocked(_)) | None => Verdict::Leaves(Passage::Free(Free::NoBudget)),
        }
    }

    fn quality(&self, pod: &Pod, verdict: &Verdict) -> Quality {
        let stop = self.surroundings.stop(pod, self.undertaking.grace.unwrap_or(pod.grace)).quality;
        match verdict.as_if_granted() {
            Verdict::LeavesAfter { .. } => {
                stop.min(self.surroundings.ready(pod, &Landing::Somewhere).quality)
            }
            _ => stop,
        }
    }

    /// How the drain of a node goes.
    pub(super) fn node(
        &self,
        place: usize,
        refused: bool,
        refusals: Vec<String>,
        pods: &[PodPlan],
    ) -> NodeDrain {
        let likely = self.likely.groups[place];
        let last = pods
            .iter()
            .filter(|pod| matches!(pod.verdict.as_if_granted(), Verdict::LeavesAfter { .. }))
            .max_by_key(|pod| (pod.leaves.likely, pod.pod.clone()));
        let stuck = pods.iter().find(|pod| pod.verdict.budget().is_some() && is_stuck(pod));
        NodeDrain {
            refused,
            refusals,
            starts: likely.started,
            ends: Window {
                soonest: self.soonest.groups[place].ended,
                likely: likely.ended,
                latest: self.latest.groups[place].ended,
            },
            regardless: likely.regardless,
            dominated_by: stuck.or(last).and_then(|pod| pod.verdict.budget().cloned()),
            remaining: if refused {
                pods.len()
            } else {
                pods.iter().filter(|pod| pod.gone.likely.is_none()).count()
            },
        }
    }

    pub(super) fn budgets(&self) -> Vec<BudgetPlan> {
        let pods = || self.undertaking.groups.iter().flat_map(|group| &group.pods);
        let protects = |budget: &Key, pod: &Pod| {
            eviction::budgets_of(self.cluster, pod, self.rules).any(|of| of.key == *budget)
        };
        let plan = |(key, before): (&Key, &State)| BudgetPlan {
            budget: key.clone(),
            before: before.clone(),
            after: self.likely.budgets.get(key).unwrap_or(before).clone(),
            pods: pods().filter(|pod| protects(key, pod)).count(),
        };
        self.before.iter().map(plan).collect()
    }

    pub(super) fn timeline(&self, nodes: &[NodePlan]) -> Vec<Moment> {
        let node = |group: usize| nodes.get(group).map(|node| node.node.clone());
        let tell = |moment: &simulation::Moment| {
            let what = match &moment.what {
                simulation::Happening::GroupStarts { group } => Happening::NodeStarts { node: node(*group)? },
                simulation::Happening::GroupEnds { group } => Happening::NodeEnds { node: node(*group)? },
                simulation::Happening::Leaves { pod } => Happening::Leaves { pod: pod.clone() },
                simulation::Happening::Refused { pod, block } => {
                    Happening::Refused { pod: pod.clone(), budget: block.budget().cloned() }
                }
                simulation::Happening::Gone { pod } => Happening::Gone { pod: pod.clone() },
                simulation::Happening::Replaced { of, landing } => {
                    Happening::Replaced { of: of.clone(), landing: landing.clone() }
                }
                simulation::Happening::Ready { of } => Happening::Ready { of: of.clone() },
                simulation::Happening::GaveUp { pod, .. } => Happening::GaveUp { pod: pod.clone() },
            };
            Some(Moment { at: moment.at, what })
        };
        self.likely.moments.iter().filter_map(tell).collect()
    }

    /// The nodes that receive replacements, likely.
    pub(super) fn receivers(&self) -> Vec<Receiver> {
        self.likely.account.receivers.clone()
    }

    /// When all groups have ended.
    pub(super) fn ends(&self) -> Window {
        let end = |course: &Course| {
            let ends: Option<Vec<Timestamp>> = course.groups.iter().map(|group| group.ended).collect();
            ends.map(|ends| ends.into_iter().max().unwrap_or(self.now))
        };
        Window { soonest: end(&self.soonest), likely: end(&self.likely), latest: end(&self.latest) }
    }
}

/// The row of a pod of which only the verdict is known.
pub(super) fn bare(pod: &Arc<Pod>, verdict: Verdict) -> PodPlan {
    PodPlan {
        pod: pod.key.clone(),
        uid: pod.uid.clone(),
        node: pod.node.clone(),
        owner: pod.owner.as_ref().map(|owner| (owner.kind.clone(), owner.name.clone())),
        verdict,
        lost: None,
        warnings: BTreeSet::new(),
        answer: None::<Answer>,
        leaves: Window::default(),
        gone: Window::default(),
        times_out: None,
        landing: None,
        judgement: None,
        ready_again: None,
        quality: Quality::Certain,
    }
}

/// Why nobody brings a pod back that leaves; none where somebody does, or it has ended anyway.
pub(super) fn lost(cluster: &Cluster, pod: &Pod) -> Option<Lost> {
    match owner::comes_back(cluster, pod) {
        Return::Never(Lost::Finished | Lost::ScaledDown) => None,
        Return::Never(lost @ (Lost::NoOwner | Lost::OwnerGone)) => (!pod.is_finished()).then_some(lost),
        Return::AtOnce(_) | Return::WhenGone(_) | Return::Here => None,
    }
}

/// Whether a pod neither goes nor may be left on its node.
pub(super) fn is_stuck(pod: &PodPlan) -> bool {
    match pod.verdict.as_if_granted() {
        Verdict::Waits { .. }
        | Verdict::WaitsForController { .. }
        | Verdict::WaitsForNamespace
        | Verdict::Blocked { .. }
        | Verdict::TwoBudgets { .. }
        | Verdict::Unknown { .. } => true,
        Verdict::Skipped(_)
        | Verdict::Refused { .. }
        | Verdict::Leaving
        | Verdict::Leaves(_)
        | Verdict::LeavesAfter { .. }
        | Verdict::Deleted { .. }
        | Verdict::Tolerates
        | Verdict::Spared => pod.times_out.is_some(),
    }
}

/// Counts the pods of a plan.
pub(super) fn count(plan: &mut Plan) {
    let mut totals = Totals { pods: plan.pods.len(), ends: plan.totals.ends, ..Totals::default() };
    for pod in &plan.pods {
        if let Verdict::Refused { .. } = pod.verdict {
            totals.refused_pods += 1;
        }
        let goes = match pod.verdict.as_if_granted() {
            Verdict::Skipped(_) | Verdict::Tolerates | Verdict::Spared | Verdict::Refused { .. } => {
                totals.stay += 1;
                false
            }
            Verdict::Leaving => {
                totals.leaving_already += 1;
                false
            }
            Verdict::Leaves(_) => {
                totals.leave_now += 1;
                true
            }
            Verdict::LeavesAfter { .. } => {
                totals.leave_later += 1;
                true
            }
            Verdict::Deleted { at, .. } => {
                let now = usize::from(*at <= plan.made);
                totals.leave_now += now;
                totals.leave_later += 1 - now;
                true
            }
            Verdict::Waits { .. } | Verdict::WaitsForController { .. } | Verdict::WaitsForNamespace => {
                totals.wait += 1;
                false
            }
            Verdict::Blocked { .. } | Verdict::TwoBudgets { .. } | Verdict::Unknown { .. } => {
                totals.blocked += 1;
                false
            }
        };
        match &pod.landing {
            Some(Landing::Node { .. }) => totals.placed += 1,
            Some(Landing::Nowhere { .. }) => totals.pending += 1,
            Some(Landing::Somewhere) | None => {}
        }
        totals.displaced += pod.judgement.as_ref().map_or(0, |judgement| judgement.displaces.len());
        totals.lost += usize::from(goes && pod.lost.is_some());
        totals.data_lost += usize::from(goes && pod.warnings.iter().any(|warning| warning.loses_data()));
    }
    plan.totals = totals;
    let ends =
        |of: fn(&PodPlan) -> Option<Timestamp>| plan.pods.iter().filter_map(of).max().or(Some(plan.made));
    plan.totals.ends = Window {
        soonest: ends(|pod| pod.gone.soonest),
        likely: ends(|pod| pod.gone.likely),
        latest: ends(|pod| pod.gone.latest),
    };
}
