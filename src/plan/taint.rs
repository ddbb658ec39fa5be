//! Taints: kubectl's words for them, what they do to a node's list, and whom a NoExecute taint deletes
//! (docs/upstream/operator-actions.md#2).

use std::{collections::BTreeSet, sync::Arc};

use super::{
    action::Action,
    assemble,
    environment::{Environment, Quality},
    eviction::{self, EvictionAnswer},
    node_plan::{NodeChange, NodePlan},
    plan::Plan,
    pod_plan::{self, PodPlan, Window},
    replacement::{Departure, rehouse},
    rules::EvictionRules,
    step::PlanStep,
    taint_edits::TaintEdits,
    targets::{PlanError, nodes_named},
    timeline::{PlanEvent, PlanMoment},
    verdict::Verdict,
    warning::{self, PodWarning, Warning},
};
use crate::{
    cluster::{Cluster, Node, NodeName, Pod, Taint, TaintEffect},
    engine::{Tolerance, tolerance},
    time::Timestamp,
};

pub(super) fn plan<S: Environment>(
    action: &Action,
    cluster: &Cluster,
    names: &[NodeName],
    edits: &TaintEdits,
    environment: &S,
    rules: &EvictionRules,
    now: Timestamp,
) -> Result<Plan, PlanError> {
    let nodes = nodes_named(cluster, names)?;
    let mut plan = Plan::blank(action, rules, now);
    let mut altered = environment.clone();
    for node in &nodes {
        let change = match edits.over(node) {
            Err(text) => NodeChange::Refused { text },
            Ok(after) => {
                let step = PlanStep::SetTaints {
                    node: node.name.clone(),
                    uid: node.uid.clone(),
                    version: node.version,
                    taints: after.clone(),
                };
                plan.steps.push(step);
                if after[..] == node.taints[..] {
                    // kubectl writes it all the same; it changes nothing.
                    plan.steps.pop();
                    NodeChange::None
                } else {
                    plan.victims(cluster, node, &after, environment, rules, now);
                    altered.update_node(Arc::new(Node { taints: after.clone().into(), ..(**node).clone() }));
                    NodeChange::Taints { before: node.taints.to_vec(), after }
                }
            }
        };
        plan.nodes.push(NodePlan { node: node.name.clone(), uid: node.uid.clone(), change, drain: None });
    }
    plan.rehouse(cluster, altered);
    plan.finish_taints(&nodes, edits, rules);
    Ok(plan)
}

impl Plan {
    /// Tells of every pod of a node what its NoExecute taints will do to it, where these change.
    fn victims<S: Environment>(
        &mut self,
        cluster: &Cluster,
        node: &Node,
        after: &[Taint],
        environment: &S,
        rules: &EvictionRules,
        now: Timestamp,
    ) {
        let no_execute = |list: &[Taint]| -> Vec<Taint> {
            list.iter().filter(|taint| taint.effect == TaintEffect::NoExecute).cloned().collect()
        };
        let (before, after) = (no_execute(&node.taints), no_execute(after));
        if before == after {
            return;
        }
        for pod in cluster.pods_on(&node.name) {
            let pod_plan = victim(cluster, pod, (&before, &after), environment, rules, now);
            self.pods.push(pod_plan);
        }
    }

    /// Says where the replacements of those who are deleted land.
    fn rehouse<S: Environment>(&mut self, cluster: &Cluster, environment: S) {
        let departure = |plan: &PodPlan| {
            let pod = cluster.pod(&plan.pod)?.clone();
            Some(Departure { pod, leaves: plan.leaves.likely?, gone: plan.gone.likely })
        };
        let departures: Vec<Departure> = self.pods.iter().filter_map(departure).collect();
        let (replacements, account) = rehouse(cluster, &departures, &[], &BTreeSet::new(), environment);
        for pod in &mut self.pods {
            let Some(replacement) = replacements.get(&pod.pod) else { continue };
            let (of, landing) = (pod.pod.clone(), replacement.landing.clone());
            pod.landing = Some(landing.clone());
            pod.ready_again = replacement.ready;
            pod.placement = account.placements.get(&pod.pod).cloned();
            let what = PlanEvent::Replaced { of: of.clone(), landing };
            self.timeline.push(PlanMoment { at: replacement.created, what });
            let ready = replacement.ready.map(|at| PlanMoment { at, what: PlanEvent::Ready { of } });
            self.timeline.extend(ready);
        }
        self.receivers = account.receivers;
    }

    fn finish_taints(&mut self, nodes: &[Arc<Node>], edits: &TaintEdits, rules: &EvictionRules) {
        let at = |pod: &PodPlan| pod.leaves.likely.unwrap_or(Timestamp::MAX);
        self.pods.sort_by_cached_key(|pod| (at(pod), pod.node.clone(), pod.pod.clone()));
        for pod in &self.pods {
            let leaves = pod.leaves.likely.map(|at| (at, PlanEvent::Leaves { pod: pod.pod.clone() }));
            let gone = pod.gone.likely.map(|at| (at, PlanEvent::Gone { pod: pod.pod.clone() }));
            self.timeline.extend(leaves.into_iter().chain(gone).map(|(at, what)| PlanMoment { at, what }));
        }
        self.timeline.sort_by_key(|moment| moment.at);
        let deleted = |pod: &&PodPlan| matches!(pod.verdict, Verdict::Deleted { .. });
        let pods = self.pods.iter().filter(deleted).count();
        let refused = |answer: &EvictionAnswer| answer.code != 201;
        let held = self.pods.iter().filter(deleted).filter(|pod| pod.answer.as_ref().is_some_and(refused));
        let held = held.count();
        if pods > 0 {
            self.warnings.push(Warning::BudgetsIgnored { pods, held });
        }
        self.warnings.extend(warning::of_marks(nodes, self.made));
        for node in nodes {
            let adds = |key: &str| edits.add.iter().any(|taint| taint.is(key, TaintEffect::NoExecute));
            if rules.out_of_service && adds("node.kubernetes.io/out-of-service") {
                self.warnings.push(Warning::OutOfService { node: node.name.clone() });
            }
            for key in
                edits.add.iter().map(|taint| &taint.key).chain(edits.remove.iter().map(|gone| &gone.key))
            {
                if CONTROLLERS.contains(&key.as_str()) {
                    let (node, key) = (node.name.clone(), key.clone());
                    self.warnings.push(Warning::ControllersTaint { node, key });
                }
            }
        }
        assemble::count(self);
        self.finish_nodes();
    }
}

/// The taints that the node lifecycle controller puts on and takes off by itself.
const CONTROLLERS: [&str; 7] = [
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/unschedulable",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/pid-pressure",
    "node.kubernetes.io/network-unavailable",
];

/// What becomes of a pod when its node's NoExecute taints change.
fn victim<S: Environment>(
    cluster: &Cluster,
    pod: &Arc<Pod>,
    (before, after): (&[Taint], &[Taint]),
    environment: &S,
    rules: &EvictionRules,
    now: Timestamp,
) -> PodPlan {
    let verdict = fate(pod, before, after, now);
    let mut plan = pod_plan::bare(pod, verdict);
    let Verdict::Deleted { at, .. } = &plan.verdict else { return plan };
    let at = *at;
    let stop = environment.stop(pod, pod.grace);
    plan.leaves = Window { soonest: Some(at), likely: Some(at), latest: Some(at) };
    plan.gone = Window {
        soonest: stop.soonest.map(|span| at + span),
        likely: stop.likely.map(|span| at + span),
        latest: stop.latest.map(|span| at + span),
    };
    plan.quality = Quality::Declared.min(stop.quality);
    if plan.gone.likely.is_none() {
        plan.warnings.insert(PodWarning::KubeletSilent);
    }
    plan.answer = Some(eviction::answer(cluster, pod, rules, now));
    let itself: BTreeSet<_> = [pod.key.clone()].into();
    plan.lost = assemble::lost(cluster, pod);
    plan.warnings.extend(warning::of_pod(cluster, pod, &itself, true));
    // The taint keeps it from coming back here, whatever it makes of a cordon.
    plan.warnings.remove(&PodWarning::ComesBackHere);
    if warning::is_of_living_daemonset(cluster, pod) {
        plan.warnings.insert(PodWarning::DaemonSetStaysAway);
    }
    plan
}

fn fate(pod: &Pod, before: &[Taint], after: &[Taint], now: Timestamp) -> Verdict {
    if pod.termination.is_some() {
        return Verdict::Leaving;
    }
    // A taint that does not tell when it was added may have been added just now: that is the latest.
    let running = match tolerance(&pod.tolerations, before) {
        Tolerance::For { span, taint } => Some(taint.time_added.unwrap_or(now) + span),
        Tolerance::NotTolerated(_) => Some(now),
        Tolerance::Forever => None,
    };
    match tolerance(&pod.tolerations, after) {
        Tolerance::NotTolerated(taint) => Verdict::Deleted { at: now, taint: taint.key.clone() },
        Tolerance::For { span, taint } => {
            // A timer that runs already is neither lengthened nor shortened.
            let at = running.unwrap_or(now + span).max(now);
            Verdict::Deleted { at, taint: taint.key.clone() }
        }
        Tolerance::Forever if running.is_some() => Verdict::Spared,
        Tolerance::Forever => Verdict::Tolerates,
    }
}
