//! Plans that evict or delete pods by name.

use std::collections::BTreeSet;

use super::{
    action::{Action, RemovalMode, RemovalOptions},
    context::PlanContext,
    environment::Environment,
    gaps, not_modelled,
    plan::Plan,
    prediction::Prediction,
    simulation::{RemovalGroup, SimulationInput},
    targets::{PlanError, pods_named, require},
    warning::PodWarning,
};
use crate::cluster::Key;

pub(super) fn plan<E: Environment>(
    action: &Action,
    keys: &[Key],
    options: RemovalOptions,
    mode: RemovalMode,
    context: &PlanContext<'_, E>,
) -> Result<Plan, PlanError> {
    let pods = pods_named(context.cluster, keys)?;
    let mut gaps = gaps::of_pods(context.cluster, &pods);
    require(&gaps)?;
    gaps.0.extend(gaps::of_removal(context.cluster, mode, &pods).known().0);
    let input = SimulationInput {
        groups: vec![RemovalGroup { node: None, pods }],
        mode,
        grace: options.grace,
        timeout: options.timeout,
        skip_wait_for_delete: None,
        parallel: 1,
        retry: options.retry,
        closed: BTreeSet::new(),
        surges: Vec::new(),
    };
    let prediction = Prediction::new(context, input);
    let mut plan = Plan::blank(action, context);
    plan.pods = prediction.pods(0);
    for pod in &mut plan.pods {
        // This plan cordons no node, so it needs no warning that a replacement may land on the same node.
        pod.warnings.remove(&PodWarning::MayReturn);
    }
    plan.steps = prediction.removals(&plan.pods);
    prediction.complete(&mut plan);
    plan.name_gaps(gaps, context.cluster);
    plan.not_modelled = not_modelled::of_pods(&plan.pods, &context.rules, context.cluster);
    Ok(plan)
}
