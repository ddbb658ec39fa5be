//! A plan or failure in one line.
//!
//! ```text
//! ── drain n-3 · completes in ~35s ─────────────────
//! 12 pods · 9 leave now · 1 leave later · 2 refused
//! ```

use crate::{
    app::preview::FailureImpact,
    plan::{Plan, PodCount, Prospect},
    ui::{Scene, text, theme::Role, widgets::segments::Runs},
};

/// Whether a plan completes, in words.
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

/// `12 pods · 9 leave now · 1 leave later · 2 refused`
pub fn totals(scene: &Scene, plan: &Plan) -> Runs {
    let totals = &plan.totals;
    let mut runs = Runs::default();
    if totals.nodes > 1 {
        runs = count(scene, runs, totals.nodes, "nodes", Role::Base);
        runs = count(scene, runs, totals.refused_nodes, "refused", Role::NodeWarning);
    }
    let pods = if totals.pods == 1 { "pod" } else { "pods" };
    runs = count(scene, runs, totals.pods, pods, Role::Base);
    for (pods, number) in totals.counts() {
        runs = count(scene, runs, number, pods.words(), role(pods));
    }
    runs
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

/// `within 30m · 1 silent · 1 Unknown · 1 tainted · 12 evicted · 3 stay · 2 Pending`
pub fn failure_totals(scene: &Scene, impact: &FailureImpact) -> Runs {
    let ahead = impact.forecast.until.since(impact.forecast.made);
    let pending = impact.succession.as_ref().map_or(0, |succession| succession.pending);
    let mut runs = Runs::new(&format!("within {ahead}"), scene.style(Role::Dim));
    for (number, words, role) in [
        (impact.nodes.len(), "silent", Role::NodeCritical),
        (impact.totals.unknown, "Unknown", Role::NodeCritical),
        (impact.totals.tainted, "tainted", Role::TaintNoExecute),
        (impact.totals.deleted, "evicted", Role::EvictionPredicted),
        (impact.staying.len(), "stay", Role::Dim),
        (pending, "Pending", Role::NodeNotice),
    ] {
        runs = count(scene, runs, number, words, role);
    }
    if impact.pods_unknown.is_empty() {
        return runs;
    }
    runs.and(" · ", scene.style(Role::Faint)).and("evictions unknown", scene.style(Role::LevelError))
}

/// Appends a number of something, unless there is none.
fn count(scene: &Scene, runs: Runs, number: usize, words: &str, role: Role) -> Runs {
    if number == 0 {
        return runs;
    }
    let runs = if runs.is_empty() { runs } else { runs.and(" · ", scene.style(Role::Faint)) };
    runs.and(&format!("{} {words}", text::count(number)), scene.style(role))
}
