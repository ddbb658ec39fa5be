//! A plan or a failure in a few lines.
//!
//! ```text
//! ── drain n-3 · 2 pods blocked ────────────────────
//! ██████████████████▓▓✖✖✖✖
//! 12 pods: █ 9 leave now · ▓ 1 leave later · ✖ 2 blocked
//! ```

use crate::{
    app::preview::{FailureImpact, PlanView},
    ui::{
        Scene,
        panes::evictions,
        text,
        theme::Role,
        widgets::{Cell, segments::Runs, stacked},
    },
};
use kordon_core::{
    forecast::Succession,
    plan::{Plan, PlanTotals, PodCount, Prospect, parts},
};

/// Text and theme role of a plan's prospect: whether the plan completes, and when.
pub fn prospect(plan: &Plan) -> (String, Role) {
    let prospect = plan.prospect();
    let role = match prospect {
        Prospect::Completes => Role::NodeReady,
        Prospect::Unknown => Role::NodeNotice,
        Prospect::Stalls => Role::CountdownSoon,
        Prospect::Blocked => Role::LevelError,
        Prospect::Refused => Role::NodeWarning,
    };
    if plan.totals.changed == 0 && plan.steps.is_empty() && prospect == Prospect::Completes {
        return ("changes nothing".into(), Role::Dim);
    }
    let words = match prospect {
        Prospect::Completes if !plan.is_definite() => {
            format!("likely {} {}", prospect.word(), plan.ends())
        }
        Prospect::Completes => format!("{} {}", prospect.word(), plan.ends()),
        Prospect::Unknown => format!("{}, {}", prospect.word(), plan.ends()),
        Prospect::Stalls => format!("{}: {}", prospect.word(), plan.summary()),
        Prospect::Blocked => plan.summary(),
        Prospect::Refused if plan.needs.is_empty() => plan.summary(),
        Prospect::Refused => "refused without the options marked !".into(),
    };
    (words, role)
}

/// Totals as text: `12 pods · 9 leave now · 1 leave later · 2 refused   1 lost`. The parts add up to all pods.
pub fn totals(scene: &Scene, plan: &Plan) -> Runs {
    let mut runs = sizes(scene, &plan.totals);
    for (part, number) in parts(&plan.pods, plan.made) {
        runs = count(scene, runs, number, part.words(), role(part));
    }
    with_consequences(scene, runs, consequences(scene, &plan.totals))
}

/// Numbers of nodes and pods: `3 nodes · 1 refused · 12 pods`.
fn sizes(scene: &Scene, totals: &PlanTotals) -> Runs {
    let mut runs = Runs::default();
    if totals.nodes > 1 {
        runs = count(scene, runs, totals.nodes, "nodes", Role::Base);
        runs = count(scene, runs, totals.refused_nodes, "refused", Role::NodeWarning);
    }
    count(scene, runs, totals.pods, if totals.pods == 1 { "pod" } else { "pods" }, Role::Base)
}

/// Consequences of the plan: `with the options marked !: 1 lost · 1 lose data`. Refused pods count as if they left.
fn consequences(scene: &Scene, totals: &PlanTotals) -> Runs {
    let consequences = totals
        .consequences()
        .into_iter()
        .fold(Runs::default(), |runs, (part, number)| count(scene, runs, number, part.words(), role(part)));
    if consequences.is_empty() || totals.refused_pods == 0 {
        return consequences;
    }
    Runs::new("with the options marked !: ", scene.style(Role::Dim)).join(consequences)
}

/// Appends the consequences of the plan. A wider gap separates them from the parts: a pod that is lost is also counted
/// there.
fn with_consequences(scene: &Scene, runs: Runs, consequences: Runs) -> Runs {
    if consequences.is_empty() { runs } else { runs.and("   ", scene.style(Role::Dim)).join(consequences) }
}

/// Maximum width in cells of the bar of pods.
const BAR: usize = 72;

/// Bar of the pods by outcome: `████████████████████████▓▓▓▓····✖✖✖✖`. The parts add up to all pods.
pub fn stacked_bar(scene: &Scene, view: &PlanView, room: usize) -> Runs {
    let numbers: Vec<usize> = view.parts.iter().map(|(_, number)| *number).collect();
    let lengths = stacked(&numbers, room.min(BAR));
    let bar = view.parts.iter().zip(lengths);
    bar.fold(Runs::default(), |runs, ((part, _), cells)| {
        runs.and(&glyph(*part).repeat(cells), scene.style(role(*part)))
    })
}

/// Legend of the bar: `9 pods: █ 6 leave now · ▓ 1 leave later · ✖ 2 blocked   1 lost · 1 lose data`. If both do not fit
/// `room` cells, the consequences have their own line.
pub fn legend(scene: &Scene, view: &PlanView, room: usize) -> Vec<Runs> {
    let mut runs = sizes(scene, &view.plan.totals);
    for (place, (part, number)) in view.parts.iter().enumerate() {
        let (gap, style) = (if place == 0 { ": " } else { " · " }, scene.style(role(*part)));
        runs = runs.and(gap, scene.style(Role::Faint)).and(glyph(*part), style);
        runs = runs.and(&format!(" {} {}", text::count(*number), part.words()), style);
    }
    let consequences = consequences(scene, &view.plan.totals);
    let line = with_consequences(scene, runs.clone(), consequences.clone());
    if line.width() <= room { vec![line] } else { vec![runs, consequences] }
}

/// Numbers of pods by outcome: `3 leave now, 1 blocked`.
pub fn fates(scene: &Scene, parts: &[(PodCount, usize)]) -> Cell {
    parts.iter().enumerate().fold(Cell::default(), |cell, (place, (part, number))| {
        let cell = if place > 0 { cell.and(", ", scene.style(Role::Dim)) } else { cell };
        cell.and(&format!("{} {}", text::count(*number), part.words()), scene.style(role(*part)))
    })
}

/// Glyph of a part of the bar of pods.
const fn glyph(pods: PodCount) -> &'static str {
    match pods {
        PodCount::LeaveNow => "█",
        PodCount::LeaveLater => "▓",
        PodCount::Wait => "▒",
        PodCount::AlreadyTerminating => "◇",
        PodCount::Stay => "·",
        PodCount::Blocked => "✖",
        PodCount::Undecided => "?",
        PodCount::Refused => "!",
        PodCount::Lost | PodCount::DataLost | PodCount::Pending | PodCount::Preempted => "▲",
    }
}

const fn role(pods: PodCount) -> Role {
    match pods {
        PodCount::LeaveNow => Role::NodeReady,
        PodCount::LeaveLater | PodCount::Wait => Role::CountdownSoon,
        PodCount::AlreadyTerminating => Role::EvictionTerminating,
        PodCount::Stay => Role::Dim,
        PodCount::Blocked => Role::LevelError,
        PodCount::Undecided => Role::NodeNotice,
        PodCount::Refused => Role::NodeWarning,
        PodCount::Lost | PodCount::DataLost | PodCount::Pending | PodCount::Preempted => Role::NodeNotice,
    }
}

/// Totals of a failure:
/// `within 30m · 1 silent · 1 Unknown · 1 tainted · 12 evicted · 15 pods lose their nodes · 4 stuck · 11 move`.
/// The outcomes (here: stuck, move) add up to the number of pods that lose their nodes.
pub fn failure_totals(scene: &Scene, impact: &FailureImpact) -> Runs {
    let ahead = impact.forecast.until.since(impact.forecast.made);
    let mut runs = Runs::new(&format!("within {ahead}"), scene.style(Role::Dim));
    for (number, words, role) in [
        (impact.nodes.len(), "silent", Role::NodeCritical),
        (impact.totals.unknown, "Unknown", Role::NodeCritical),
        (impact.totals.tainted, "tainted", Role::TaintNoExecute),
        (impact.totals.ended, "ended by kubelets", Role::EvictionPredicted),
        (impact.totals.deleted, "evicted", Role::EvictionPredicted),
    ] {
        runs = count(scene, runs, number, words, role);
    }
    if let Some(counts) = impact.succession.as_ref().map(Succession::counts) {
        let outcomes = counts.outcomes();
        runs = count(scene, runs, outcomes.total(), "pods lose their nodes", Role::Base);
        for (kind, pods) in outcomes.parts() {
            let (one, several) = kind.words();
            runs = count(scene, runs, pods, if pods == 1 { one } else { several }, evictions::role(kind));
        }
        runs = count(scene, runs, counts.preempted.nowhere(), "preempted without a node", Role::NodeNotice);
    }
    if impact.pods_unknown.is_empty() {
        return runs;
    }
    runs.and(" · ", scene.style(Role::Faint)).and("evictions unknown", scene.style(Role::LevelError))
}

/// Appends a number and its words, unless the number is 0.
fn count(scene: &Scene, runs: Runs, number: usize, words: &str, role: Role) -> Runs {
    if number == 0 {
        return runs;
    }
    let runs = if runs.is_empty() { runs } else { runs.and(" · ", scene.style(Role::Faint)) };
    runs.and(&format!("{} {words}", text::count(number)), scene.style(role))
}
