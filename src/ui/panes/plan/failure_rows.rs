//! Rows of the impact of a failure.
//!
//! ```text
//! │ predicted
//! │    in 50s  n-3               Unknown  lease renewed 03:12:05 → …
//! │  in 5m54s  shop/web-7d4b9    evicted  …
//! ```

use super::{after, in_time, landing, pod_name};
use crate::{
    app::preview::{FailureImpact, FailureRow, HORIZON},
    ui::{
        Scene,
        panes::event_row::{self, EventRow},
        text,
        theme::Role,
        widgets::Cell,
    },
};
use kordon_core::{
    forecast::{ForecastKind, ForecastStep, leave_endpoints},
    plan::PodOutcome,
};
use kordon_time::Timestamp;

/// Cells of a row. In a row with fewer cells than columns, the last cell extends to the edge.
pub fn cells(scene: &Scene, impact: &FailureImpact, row: FailureRow) -> Vec<Cell> {
    let made = impact.forecast.made;
    let line = |text: &str, role| vec![Cell::new("  ", scene.style(Role::Dim)).and(text, scene.style(role))];
    match row {
        FailureRow::PodsUnknown | FailureRow::PlacementUnknown => {
            line(&impact.unknown(row).unwrap_or_default(), Role::LevelError)
        }
        FailureRow::PlacementLikely => line(&impact.unknown(row).unwrap_or_default(), Role::LevelWarning),
        FailureRow::Step(place) => step(scene, &impact.forecast.steps[place], made).cells(),
        FailureRow::Chance(place) => {
            let chance = &impact.forecast.uncertain_taints[place];
            let words = format!(
                "up to {} of {} queued nodes of zone {} may be tainted in {}",
                chance.at_most,
                chance.among.len(),
                chance.zone,
                after(chance.at, made)
            );
            line(&words, Role::CountdownSoon)
        }
        FailureRow::Staying(place) => staying(scene, impact, place).cells(),
        FailureRow::Successor(place) => impact
            .successor(place)
            .map(|successor| landing::successor(scene, successor, made).cells())
            .unwrap_or_default(),
        FailureRow::Help(place, help) => impact
            .successor(place)
            .map(|successor| landing::help(scene, &successor.of, &impact.help(place), help).cells())
            .unwrap_or_default(),
        FailureRow::Receiver(place) => impact
            .receivers()
            .get(place)
            .map(|node| landing::receiver(scene, node).cells())
            .unwrap_or_default(),
        FailureRow::TooMany => line("too many pods to predict here: run the command below", Role::Dim),
        FailureRow::Kordon => line(&impact.kordon(), Role::Base),
    }
}

fn step(scene: &Scene, step: &ForecastStep, made: Timestamp) -> EventRow {
    let (word, role) = match &step.kind {
        ForecastKind::Unknown { .. } => ("Unknown", Role::NodeCritical),
        ForecastKind::NoExecute { .. } => ("tainted", Role::TaintNoExecute),
        ForecastKind::Ended { .. } => ("ended", Role::EvictionPredicted),
        ForecastKind::Deleted { .. } => ("evicted", Role::EvictionPredicted),
        ForecastKind::Removed { .. } => ("removed", Role::EvictionTerminating),
    };
    let subject = match step.kind.pod() {
        Some(pod) => pod_name(scene, pod),
        None => Cell::new(step.kind.node(), scene.style(Role::Strong)),
    };
    EventRow {
        when: in_time(scene, Some(step.at), made),
        subject,
        state: Cell::new(word, scene.style(role)),
        text: Cell::new(&text::brief(&step_text(step)), scene.style(Role::Dim)),
    }
}

/// Consequences of a step of the predicted failure, the step's chance, and its causes.
fn step_text(step: &ForecastStep) -> String {
    let endpoints = (step.not_ready > 0).then(|| leave_endpoints(step.not_ready));
    let chance = step.chance.as_ref().map(ToString::to_string);
    let parts: Vec<String> = endpoints.into_iter().chain(chance).chain([step.why.to_string()]).collect();
    parts.join(" · ")
}

fn staying(scene: &Scene, impact: &FailureImpact, place: usize) -> EventRow {
    let (pod, node) = &impact.staying[place];
    let dim = scene.style(Role::Dim);
    let outcome = impact.outcome(pod).map_or_else(|| "stays".into(), PodOutcome::short);
    EventRow {
        when: event_row::when("–", dim),
        subject: pod_name(scene, pod),
        state: Cell::new(&outcome, dim),
        text: Cell::new(&format!("on {node}: not evicted within {HORIZON}"), dim),
    }
}

/// Full text of the selected row; `None` if the list already shows the whole text.
pub fn full_text(impact: &FailureImpact, row: FailureRow) -> Option<String> {
    match row {
        FailureRow::Step(place) => impact.forecast.steps.get(place).map(step_text),
        FailureRow::Successor(place) => {
            let successor = impact.successor(place)?;
            let why = successor.why();
            Some(match successor.node() {
                Some(node) => format!("{} lands on {node} ({why})", successor.of),
                None => format!("{}: {why}", successor.of),
            })
        }
        FailureRow::Help(place, help) => impact.help(place).get(help).cloned(),
        FailureRow::PodsUnknown | FailureRow::PlacementUnknown | FailureRow::PlacementLikely => {
            impact.unknown(row)
        }
        FailureRow::Kordon => Some(impact.kordon()),
        FailureRow::Chance(_) | FailureRow::Staying(_) | FailureRow::TooMany | FailureRow::Receiver(_) => {
            None
        }
    }
}
