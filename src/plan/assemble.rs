//! Makes the plan's rows of what the simulation found.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    action::RemovalMode,
    budget::BudgetState,
    environment::{self, Bound, Environment, Quality},
    eviction::{self, EvictionAnswer, EvictionBlock, EvictionDecision, FreeEviction},
    landing::Landing,
    node_plan::{NodeDrain, NodePlan},
    outlook,
    owner::{self, NotRecreated, Recreation},
    placement_trace::Receiver,
    plan::{BudgetPlan, Plan},
    pod_plan::{PodPlan, Window, bare, is_stuck},
    rules::EvictionRules,
    simulation::{self, PodResult, RunResult, Simulation, SimulationInput, TaskEnd},
    timeline::{PlanEvent, PlanMoment},
    totals::PlanTotals,
    verdict::{LeaveReason, Verdict},
    warning::{self, PodWarning},
};
use crate::{
    cluster::{Cluster, Key, Pod},
    time::{Span, Timestamp},
};

/// The runs of one undertaking, and what they are told by.
pub(super) struct Assembly<'a, S> {
    cluster: &'a Cluster,
    input: &'a SimulationInput,
    rules: &'a EvictionRules,
    environment: &'a S,
    now: Timestamp,
    before: BTreeMap<Key, BudgetState>,
    soonest: RunResult,
    likely: RunResult,
    latest: RunResult,
    /// The likely course if there were no time limit: verdicts come from it, for a limit says nothing of budgets.
    patient: RunResult,
    leaving: BTreeSet<Key>,
}

impl<'a, S: Environment> Assembly<'a, S> {
    pub(super) fn new(
        cluster: &'a Cluster,
        input: &'a SimulationInput,
        rules: &'a EvictionRules,
        environment: &'a S,
        states: BTreeMap<Key, BudgetState>,
        now: Timestamp,
    ) -> Self {
        let simulation = Simulation::new(cluster, input, &states, rules, now);
        let likely = simulation.run(environment.clone(), Bound::Likely);
        let mut known = environment.clone();
        known.fix_landings(likely.landings(), &likely.trace);
        let patient = if input.timeout.is_some() {
            let patient = SimulationInput { timeout: None, ..input.clone() };
            Simulation::new(cluster, &patient, &states, rules, now).run(known.clone(), Bound::Likely)
        } else {
            likely.clone()
        };
        let goes = |course: &&PodResult| course.granted.is_some();
        let leaving =
            patient.pods.iter().filter(|(_, course)| goes(course)).map(|(key, _)| key.clone()).collect();
        Self {
            cluster,
            input,
            rules,
            environment,
            now,
            soonest: simulation.run(known.clone(), Bound::Soonest),
            latest: simulation.run(known, Bound::Latest),
            likely,
            before: states,
            patient,
            leaving,
        }
    }

    pub(super) fn mode(&self) -> RemovalMode {
        self.input.mode
    }

    pub(super) fn sees_budgets(&self) -> bool {
        self.cluster.budgets().is_synced()
    }

    /// The row of a pod that is tried.
    pub(super) fn pod(&self, pod: &Arc<Pod>) -> PodPlan {
        let mut plan = bare(pod, self.verdict(pod));
        let when = |course: &RunResult, of: fn(&PodResult) -> Option<Timestamp>| {
            course.pods.get(&pod.key).and_then(of)
        };
        let window = |of: fn(&PodResult) -> Option<Timestamp>| Window {
            soonest: when(&self.soonest, of),
            likely: when(&self.likely, of),
            latest: when(&self.latest, of),
        };
        plan.leaves = window(|course| course.granted);
        plan.gone = window(|course| course.gone);
        let gate = eviction::decision(self.cluster, pod, &self.before, self.rules);
        plan.answer = Some(EvictionAnswer::to(&gate, self.rules));
        let likely = self.likely.pods.get(&pod.key);
        let is_late = likely.is_some_and(|course| course.end == Some(TaskEnd::TimedOut));
        plan.times_out = if is_late { self.timed_out_at(&pod.key) } else { None };
        let replacement = likely.and_then(|course| course.replacement.as_ref());
        plan.landing = replacement.map(|replacement| replacement.landing.clone());
        plan.ready_again = replacement.and_then(|replacement| replacement.ready);
        plan.placement = self.likely.trace.placements.get(&pod.key).cloned();
        if let (Recreation::Here, Some(node), Some(_)) =
            (owner::recreation(self.cluster, pod), &pod.node, plan.gone.likely)
        {
            plan.landing = Some(Landing::Node { node: node.clone(), why: "nowhere but here".into() });
        }
        plan.quality = self.quality(pod, &plan.verdict);
        plan.lost = lost(self.cluster, pod);
        let unprotected = self.mode() == RemovalMode::Delete
            || eviction::budgets_of(self.cluster, pod, self.rules).next().is_none();
        plan.warnings = warning::of_pod(self.cluster, pod, &self.leaving, unprotected);
        if self.input.grace == Some(Span::ZERO) && warning::has_identity(pod) {
            plan.warnings.insert(PodWarning::TwoOfAKind);
        }
        let silent = |node: &_| !environment::has_living_kubelet(self.cluster, node);
        if pod.node.as_ref().is_some_and(silent) && plan.gone.likely.is_none() {
            plan.warnings.insert(PodWarning::KubeletSilent);
        }
        plan
    }

    fn timed_out_at(&self, pod: &Key) -> Option<Timestamp> {
        let gave_up = |moment: &&simulation::SimulationMoment| matches!(&moment.what, simulation::SimulationEvent::GaveUp { pod: of, end: TaskEnd::TimedOut } if of == pod);
        self.likely.moments.iter().find(gave_up).map(|moment| moment.at)
    }

    fn verdict(&self, pod: &Pod) -> Verdict {
        let Some(course) = self.patient.pods.get(&pod.key) else {
            return Verdict::Unknown { missing: "its turn never comes".into() };
        };
        if pod.termination.is_some() && course.end != Some(TaskEnd::Failed) {
            return Verdict::Leaving;
        }
        if course.granted.is_none() {
            return match &course.block {
                Some(block) => outlook::verdict(self.cluster, block, &self.patient, self.rules),
                None => Verdict::Unknown { missing: "its turn never comes".into() },
            };
        }
        if let Some(budget) = course.block.as_ref().and_then(EvictionBlock::budget) {
            let (recoveries, behind) = (course.recoveries, course.behind.clone());
            return Verdict::LeavesAfter { budget: budget.clone(), recoveries, behind };
        }
        match &course.first {
            _ if self.mode() == RemovalMode::Delete => Verdict::Leaves(LeaveReason::Deleted),
            Some(EvictionDecision::Free(FreeEviction::NoBudget)) if !self.sees_budgets() => {
                Verdict::Unknown { missing: "budgets cannot be read".into() }
            }
            Some(EvictionDecision::Costs { budget }) => {
                let numbers = self.before.get(budget).map(|state| state.numbers).unwrap_or_default();
                Verdict::Leaves(LeaveReason::Within { budget: budget.clone(), numbers })
            }
            Some(EvictionDecision::Free(free)) => Verdict::Leaves(LeaveReason::Free(*free)),
            Some(EvictionDecision::Blocked(_)) | None => {
                Verdict::Leaves(LeaveReason::Free(FreeEviction::NoBudget))
            }
        }
    }

    fn quality(&self, pod: &Pod, verdict: &Verdict) -> Quality {
        let stop = self.environment.stop(pod, self.input.grace.unwrap_or(pod.grace)).quality;
        match verdict.as_if_granted() {
            Verdict::LeavesAfter { .. } => stop.min(self.environment.ready(pod, &Landing::Somewhere).quality),
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
            after_incomplete: likely.after_incomplete,
            dominated_by: stuck.or(last).and_then(|pod| pod.verdict.budget().cloned()),
            remaining: if refused {
                pods.len()
            } else {
                pods.iter().filter(|pod| pod.gone.likely.is_none()).count()
            },
        }
    }

    pub(super) fn budgets(&self) -> Vec<BudgetPlan> {
        let pods = || self.input.groups.iter().flat_map(|group| &group.pods);
        let protects = |budget: &Key, pod: &Pod| {
            eviction::budgets_of(self.cluster, pod, self.rules).any(|of| of.key == *budget)
        };
        let plan = |(key, before): (&Key, &BudgetState)| BudgetPlan {
            budget: key.clone(),
            before: before.clone(),
            after: self.likely.budgets.get(key).unwrap_or(before).clone(),
            pods: pods().filter(|pod| protects(key, pod)).count(),
        };
        self.before.iter().map(plan).collect()
    }

    pub(super) fn timeline(&self, nodes: &[NodePlan]) -> Vec<PlanMoment> {
        let node = |group: usize| nodes.get(group).map(|node| node.node.clone());
        let tell = |moment: &simulation::SimulationMoment| {
            let what = match &moment.what {
                simulation::SimulationEvent::GroupStarts { group } => {
                    PlanEvent::NodeStarts { node: node(*group)? }
                }
                simulation::SimulationEvent::GroupEnds { group } => {
                    PlanEvent::NodeEnds { node: node(*group)? }
                }
                simulation::SimulationEvent::Leaves { pod } => PlanEvent::Leaves { pod: pod.clone() },
                simulation::SimulationEvent::Refused { pod, block } => {
                    PlanEvent::Refused { pod: pod.clone(), budget: block.budget().cloned() }
                }
                simulation::SimulationEvent::Gone { pod } => PlanEvent::Gone { pod: pod.clone() },
                simulation::SimulationEvent::Replaced { of, landing } => {
                    PlanEvent::Replaced { of: of.clone(), landing: landing.clone() }
                }
                simulation::SimulationEvent::Ready { of } => PlanEvent::Ready { of: of.clone() },
                simulation::SimulationEvent::GaveUp { pod, .. } => PlanEvent::GaveUp { pod: pod.clone() },
            };
            Some(PlanMoment { at: moment.at, what })
        };
        self.likely.moments.iter().filter_map(tell).collect()
    }

    /// The nodes that receive replacements, likely.
    pub(super) fn receivers(&self) -> Vec<Receiver> {
        self.likely.trace.receivers.clone()
    }

    /// When all groups have ended.
    pub(super) fn ends(&self) -> Window {
        let end = |course: &RunResult| {
            let ends: Option<Vec<Timestamp>> = course.groups.iter().map(|group| group.ended).collect();
            ends.map(|ends| ends.into_iter().max().unwrap_or(self.now))
        };
        Window { soonest: end(&self.soonest), likely: end(&self.likely), latest: end(&self.latest) }
    }
}

/// Why nobody brings a pod back that leaves; none where somebody does, or it has ended anyway.
pub(super) fn lost(cluster: &Cluster, pod: &Pod) -> Option<NotRecreated> {
    match owner::recreation(cluster, pod) {
        Recreation::Never(NotRecreated::Finished | NotRecreated::ScaledDown) => None,
        Recreation::Never(lost @ (NotRecreated::NoOwner | NotRecreated::OwnerGone)) => {
            (!pod.is_finished()).then_some(lost)
        }
        Recreation::AtOnce(_) | Recreation::WhenGone(_) | Recreation::Here => None,
    }
}

/// Counts the pods of a plan.
pub(super) fn count(plan: &mut Plan) {
    let mut totals = PlanTotals { pods: plan.pods.len(), ends: plan.totals.ends, ..PlanTotals::default() };
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
        totals.displaced += pod.placement.as_ref().map_or(0, |judgement| judgement.displaces.len());
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
