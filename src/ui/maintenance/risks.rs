//! What the waves of a maintenance cost beyond moves: lost pods, lost data, drains that may not end in time, and
//! Deployments that are scaled up meanwhile.

use super::{Runs, Scene, text};
use crate::ui::theme::Role;
use kordon_core::{
    maintenance::{MaintenancePlan, data_loss},
    plan::{SurgePlan, words::counted},
};
use kordon_time::Span;

/// Maximum number of lines for a warning, and for the reason why a pod is lost.
const REASON_LINES: usize = 2;

/// ```text
/// ▲ 2 pods are lost for good, see below
/// ▲ 4 pods lose data in volumes that are deleted with their pods
/// ▲ wave 1: 1 pod may take longer than 2h: the maintenance then stops
/// ```
/// Lines that warn of lost pods, of lost data, of late drains and of control plane nodes; empty if there are none.
/// `timeout` is the maximum time for the drain of a node.
pub fn warnings(scene: &Scene, plan: &MaintenancePlan, timeout: Span, width: usize) -> Vec<Runs> {
    let lost = plan.waves.iter().map(|wave| wave.losses.len()).sum::<usize>();
    let lost =
        (lost > 0).then(|| format!("{} lost for good, see below", counted(lost, "pod is", "pods are")));
    let late = plan.waves.iter().enumerate().filter(|(_, wave)| wave.may_time_out > 0);
    let late = late.map(|(place, wave)| {
        let pods = counted(wave.may_time_out, "pod", "pods");
        format!("wave {}: {pods} may take longer than {timeout}: the maintenance then stops", place + 1)
    });
    let lines = |text: String| {
        let wrapped = text::wrap(&format!("▲ {text}"), width, REASON_LINES);
        wrapped.into_iter().map(|line| Runs::new(&line, scene.style(Role::LevelWarning))).collect::<Vec<_>>()
    };
    let data = data_loss(plan.cost().data_lost);
    lost.into_iter().chain(data).chain(late).chain(plan.control_plane_warning()).flat_map(lines).collect()
}

/// ```text
/// Deployment monitoring/grafana: 1 -> 2 replicas after ~0ms; …
/// ```
/// Lines about each workload whose budget can never allow an eviction; empty without `--surge`.
pub fn surges(scene: &Scene, plan: &MaintenancePlan, width: usize) -> Vec<Runs> {
    let lines = |surge: &SurgePlan| {
        let role = if surge.surge().is_some() { Role::Base } else { Role::LevelWarning };
        let wrapped = text::wrap(&surge.line(plan.made), width, REASON_LINES);
        wrapped.iter().map(|line| Runs::new(line, scene.style(role))).collect::<Vec<_>>()
    };
    plan.surges().flat_map(lines).collect()
}

/// ```text
/// lost in wave 1: shop/report-2
///   no controller recreates it
/// ```
/// Lines about each pod that is lost, with the reason.
pub fn losses(scene: &Scene, plan: &MaintenancePlan, width: usize) -> Vec<Runs> {
    let mut lines = Vec::new();
    for (place, wave) in plan.waves.iter().enumerate() {
        for loss in &wave.losses {
            let head = format!("lost in wave {}: {}", place + 1, loss.pod);
            lines.push(Runs::new(&head, scene.style(Role::LevelWarning)).fitted(width));
            let reasons = text::wrap(&loss.reason(), width.saturating_sub(2), REASON_LINES);
            lines.extend(reasons.iter().map(|line| Runs::new(&format!("  {line}"), scene.style(Role::Base))));
        }
    }
    lines
}
