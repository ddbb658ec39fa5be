//! The evictions: each pod that is or will be evicted, when, and its outcome.

use ratatui::{buffer::Buffer, layout::Rect};

use super::{
    Nothing, column, draw_cause, nodes::mark, object_name, open, say_nothing, sort_on_click, table_of, tabs,
};
use crate::{
    app::{EvictionColumn, Pane},
    k8s::feed::{FeedKind, FeedState},
    model::{EvictionRow, EvictionState, cluster_verdict},
    ui::{
        Scene,
        column_choice::ColumnChoice,
        text,
        theme::Role,
        widgets::{Cell, Column, TableWidget, Urgency, Width, segments::Runs},
    },
};
use kordon_core::{
    cluster::Key,
    engine::Confidence,
    plan::{OutcomeCounts, OutcomeKind, PodOutcome},
};

/// ```text
/// ─ 3 Evictions  5 to be evicted · 2 stuck · 1 Pending · 2 move · 1 terminating · 1 stay ───
///           in  pod                    node  outcome
/// ▶        12s  shop/web-7d4b9-x2x     n-3   → n-7
/// ◇ 11 % ~1m2s  shop/api-5c9f6-k8d     n-4   → Pending: no node has 4 CPU free
/// ▲  not known  shop/logs-5f7c8-abc    n-5   → n-7 · kubelet: MemoryPressure
/// ·       5m2s  shop/db-0              n-4   stuck with its node
/// ⊗        28s  shop/cache-1           n-3   replaced; old pod hangs · kubelet down
/// ∞      never  kube-system/proxy-zz   n-3   tolerates the taint
/// taint eviction ignores budgets: 3 would have refused
/// ```
/// Draws the evictions. Returns the number of rows that fit.
pub fn draw(scene: &Scene, area: Rect, buf: &mut Buffer) -> usize {
    let list = &scene.screen.evictions.list;
    let inner = open(scene, Pane::Evictions, area, facts(scene, area), buf);
    if list.is_empty() {
        say_nothing(scene, Pane::Evictions, nothing(scene), inner, buf);
        return TableWidget::page(inner);
    }
    let selected = list.selected().and_then(|key| Some((key, scene.shown.views.leaving.evictions.get(key)?)));
    let why = selected.map(|(key, row)| reasons(scene, key, row));
    let inner = draw_cause(scene, Pane::Evictions, why, inner, buf);
    let inner = draw_note(scene, inner, buf);
    let page = TableWidget::page(inner);
    let choice = ColumnChoice::new(scene, Pane::Evictions);
    let shown = choice.columns(columns(scene, inner.width));
    let table = table_of(scene, Pane::Evictions, list, shown, TableWidget::body(inner));
    let style = if inner.width >= WHOLE_OUTCOMES { OutcomeStyle::Whole } else { OutcomeStyle::Short };
    let cells_of = |row| {
        let key = list.keys().get(row);
        let row = key.and_then(|key| Some((key, scene.shown.views.leaving.evictions.get(key)?)));
        let cells_of = |(key, row)| {
            let pod = scene.shown.cluster.pod(key).map(AsRef::as_ref);
            choice.cells_of_pod(scene, pod, cells(scene, key, row, style))
        };
        row.map(cells_of).unwrap_or_default()
    };
    scene.record(Pane::Evictions, &table, cells_of);
    let headings = table.render(inner, buf, cells_of);
    sort_on_click(scene, Pane::Evictions, headings);
    page
}

/// Length of an outcome's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutcomeStyle {
    /// The outcome in a few words.
    Short,
    /// The outcome as a whole statement, with the time at which the replacement is Ready, and a note if the eviction
    /// ignores a budget.
    Whole,
}

/// Minimum width of the pane, in cells, at which outcomes are shown as whole statements.
const WHOLE_OUTCOMES: u16 = 150;

/// Maximum width of a pod's name, so that an outcome has space for the name of a node.
const fn longest_pod(width: u16) -> u16 {
    match width {
        0..76 => 26,
        76..100 => 38,
        _ => 48,
    }
}

/// Reason why the list of evictions is empty.
pub(super) fn nothing(scene: &Scene) -> Nothing {
    let listing = !matches!(scene.shown.feeds.state(FeedKind::Pods), Some(FeedState::Live));
    if !listing && scene.screen.filter(Pane::Evictions).is_empty() {
        let taints = match scene.shown.views.confidence {
            None => return ("◌", "waiting for nodes and Leases".into(), Role::FeedBusy),
            Some(Confidence::NoController { .. }) => {
                Some(("○", "no evictions: no active kube-controller-manager".to_owned(), Role::Dim))
            }
            Some(Confidence::Live | Confidence::Assumed | Confidence::Disconnected { .. }) => {
                let pause = cluster_verdict::pause(&scene.shown.views.zones);
                pause.map(|pause| ("✖", pause, Role::NodeCritical))
            }
        };
        let kubelets = cluster_verdict::kubelet_evictions(scene.shown, scene.now).join("; ");
        match taints {
            Some(taints) if kubelets.is_empty() => return taints,
            Some((glyph, text, role)) => return (glyph, format!("{text}; {kubelets}"), role),
            None if !kubelets.is_empty() => return ("▲", kubelets, Role::NodeWarning),
            None => {}
        }
    }
    super::nothing(scene, FeedKind::Pods, Pane::Evictions, "none expected")
}

/// Totals: `44 to be evicted · 5 stuck · 10 Pending · 29 move · 3 terminating · 2 stuck, not evicted · 8 stay`. The
/// outcomes after the first number add up to it. If space is short, the last parts are left out.
fn facts(scene: &Scene, area: Rect) -> Runs {
    let titles: usize = tabs(scene, Pane::Evictions, 0).iter().map(|(_, title)| title.width()).sum();
    let room = usize::from(area.width).saturating_sub(6 + titles);
    let counts = &scene.shown.views.counts;
    let unmeasured = scene.shown.unmeasured_under_pressure().len();
    let outcomes = |outcomes: OutcomeCounts| {
        let part = |(kind, pods): (OutcomeKind, usize)| {
            let (one, several) = kind.words();
            (pods, if pods == 1 { one } else { several }, role(kind))
        };
        outcomes.parts().map(part).collect::<Vec<_>>()
    };
    let parts = [(counts.leaving(), "to be evicted", Role::CountdownSoon)].into_iter();
    let parts = parts.chain(outcomes(counts.outcomes)).chain([
        (counts.working_out, "being worked out", Role::FeedBusy),
        (scene.shown.evicted_by_kubelets(), "at most by kubelets", Role::NodeWarning),
        (unmeasured, unmeasured_words(unmeasured), Role::NodeWarning),
        (counts.preempted.total(), "preempted for them", Role::NodeNotice),
        (counts.terminating, "terminating", Role::EvictionTerminating),
        (counts.cancelled, "cancelled", Role::EvictionCancelled),
        (counts.never_stuck, "stuck, not evicted", Role::NodeCritical),
        (counts.never.saturating_sub(counts.never_stuck), "stay", Role::EvictionNever),
    ]);
    let mut runs = match scene.shown.views.confidence {
        Some(Confidence::Disconnected { .. }) => Runs::new("last known state", scene.style(Role::FeedBroken)),
        Some(Confidence::NoController { .. }) => Runs::new("no controller", scene.style(Role::FeedBroken)),
        Some(Confidence::Live | Confidence::Assumed) | None => Runs::default(),
    };
    for (number, what, role) in parts.filter(|(number, ..)| *number > 0) {
        let separator = if runs.is_empty() { "" } else { " · " };
        let part = format!("{} {what}", text::count(number));
        if runs.width() + text::width(separator) + text::width(&part) > room {
            break;
        }
        runs = runs.and(separator, scene.style(Role::Faint)).and(&part, scene.style(role));
    }
    runs
}

/// What is said of the kubelets of nodes under pressure that were not measured, so that their evictions are not known.
pub(super) const fn unmeasured_words(kubelets: usize) -> &'static str {
    if kubelets == 1 { "kubelet not measured" } else { "kubelets not measured" }
}

/// Draws a note below the rows: why evictions are paused, or how many budgets the evictions ignore. Returns the
/// remaining area.
fn draw_note(scene: &Scene, area: Rect, buf: &mut Buffer) -> Rect {
    let pause = cluster_verdict::pause(&scene.shown.views.zones);
    let against = scene.shown.views.counts.against_budgets.filter(|pods| *pods > 0);
    let (note, role) = match (pause, against) {
        (Some(pause), _) => (pause, Role::NodeCritical),
        (None, Some(pods)) => {
            (format!("taint eviction ignores budgets: {pods} would have refused"), Role::NodeNotice)
        }
        (None, None) => return area,
    };
    if area.height < 4 {
        return area;
    }
    let line = Rect { y: area.bottom() - 1, height: 1, ..area };
    buf.set_stringn(line.x, line.y, &note, usize::from(line.width), scene.style(role));
    Rect { height: area.height - 1, ..area }
}

fn columns(scene: &Scene, width: u16) -> Vec<Column> {
    let sort = scene.screen.evictions.sort;
    vec![
        Column::plain("", Width::Fixed(1)).named("sign"),
        column(sort, EvictionColumn::Due, "in", Width::Fit(6, 14)).right(),
        column(sort, EvictionColumn::Pod, "pod", Width::Fit(16, longest_pod(width))),
        column(sort, EvictionColumn::Node, "node", Width::Fit(6, 28)).gives_way(1),
        column(sort, EvictionColumn::Outcome, "outcome", Width::Grow(32, 1)),
    ]
}

fn cells(scene: &Scene, key: &Key, row: &EvictionRow, style: OutcomeStyle) -> Vec<Cell> {
    let quiet = matches!(row.state, EvictionState::Never | EvictionState::Cancelled { .. });
    let named = if quiet { Role::Dim } else { Role::Base };
    vec![
        glyph(scene, &row.state),
        chance(scene, &row.state).join(time(scene, &row.state)),
        object_name(scene, key, named),
        Cell::new(&row.node, scene.style(Role::Dim)),
        outcome(scene, key, row, style),
    ]
}

fn glyph(scene: &Scene, state: &EvictionState) -> Cell {
    let near = |at, role| {
        let urgency = Urgency::new(at, scene.now);
        let role = match urgency {
            Urgency::Far => role,
            Urgency::Soon => Role::CountdownSoon,
            Urgency::Near => Role::CountdownNear,
        };
        (urgency.glyph(), role)
    };
    let (glyph, role) = match state {
        EvictionState::Scheduled { at, .. } => near(*at, Role::CountdownFar),
        EvictionState::Predicted { .. } => ("◇", Role::EvictionPredicted),
        EvictionState::ByKubelet { .. } => ("▲", Role::NodeWarning),
        EvictionState::Terminating { .. } => ("⊗", Role::EvictionTerminating),
        EvictionState::Cancelled { .. } => ("↺", Role::EvictionCancelled),
        EvictionState::Never => ("∞", Role::EvictionNever),
    };
    Cell::new(glyph, scene.style(role))
}

/// Time left until a pod is evicted or, if it terminates, until its grace period ends: `~12s`, `≤30s`, `52s overdue`,
/// `hangs` if its kubelet is down, or `not known` if a kubelet evicts other pods before.
pub fn time(scene: &Scene, state: &EvictionState) -> Cell {
    match state {
        EvictionState::Scheduled { at, certainty } => {
            let cell = Cell::new(mark(*certainty), scene.style(Role::Faint));
            cell.join(scene.countdown(*at, false))
        }
        EvictionState::ByKubelet { at: Some(at), certainty } => {
            let cell = Cell::new(mark(*certainty), scene.style(Role::Faint));
            cell.join(scene.countdown((*at).max(scene.now), false))
        }
        EvictionState::ByKubelet { at: None, .. } => Cell::new("not known", scene.style(Role::Dim)),
        EvictionState::Predicted { at, .. } => Cell::new("~", scene.style(Role::Faint))
            .and(&text::left(*at, scene.now), scene.style(Role::EvictionPredicted)),
        EvictionState::Terminating { removed: Some(at), .. } => Cell::new("~", scene.style(Role::Faint))
            .and(&text::left(*at, scene.now), scene.style(Role::EvictionTerminating)),
        EvictionState::Terminating { .. } if state.hangs(scene.now) => {
            Cell::new(text::HANGS, scene.style(Role::EvictionTerminating))
        }
        EvictionState::Terminating { deadline, .. } => {
            Cell::new(&text::left(*deadline, scene.now), scene.style(Role::EvictionTerminating))
        }
        EvictionState::Cancelled { at } => {
            Cell::new(&text::age(scene.now, *at), scene.style(Role::EvictionCancelled))
                .and(" ago", scene.style(Role::Faint))
        }
        EvictionState::Never => Cell::new("never", scene.style(Role::EvictionNever)),
    }
}

/// Chance that a pod is evicted at the predicted time; empty if the eviction does not depend on chance.
fn chance(scene: &Scene, state: &EvictionState) -> Cell {
    match state {
        EvictionState::Predicted { chance: Some(chance), .. } => {
            Cell::new(&format!("{} ", chance.percent()), scene.style(Role::Dim))
        }
        EvictionState::Predicted { chance: None, .. }
        | EvictionState::Scheduled { .. }
        | EvictionState::ByKubelet { .. }
        | EvictionState::Terminating { .. }
        | EvictionState::Cancelled { .. }
        | EvictionState::Never => Cell::default(),
    }
}

/// Outcome of a pod. A terminating pod also shows what it waits for.
fn outcome(scene: &Scene, key: &Key, row: &EvictionRow, style: OutcomeStyle) -> Cell {
    let dim = scene.style(Role::Dim);
    let outcome = scene.shown.outcome(key, row);
    let with_outcome = |cell: Cell, outcome: &PodOutcome| {
        let text = if style == OutcomeStyle::Whole { outcome.to_string() } else { outcome.short() };
        cell.and(&text, scene.style(role(outcome.kind())))
    };
    match &row.state {
        EvictionState::Never => match outcome {
            Some(outcome) if outcome.kind().has_nowhere_to_run() => with_outcome(Cell::default(), &outcome),
            Some(_) | None => Cell::new("tolerates the taint", dim),
        },
        EvictionState::Cancelled { .. } => Cell::new("cancelled: nothing evicts it any more", dim),
        EvictionState::Scheduled { .. } | EvictionState::Predicted { .. } => match outcome {
            None if scene.shown.feeds.state(FeedKind::Pods) == Some(&FeedState::Off) => {
                Cell::new("not known", dim)
            }
            None => Cell::new("working out", scene.style(Role::FeedBusy)),
            Some(outcome) => {
                let cell = with_outcome(Cell::default(), &outcome);
                let ready =
                    outcome.ready().filter(|ready| style == OutcomeStyle::Whole && *ready > scene.now);
                let cell = ready.into_iter().fold(cell, |cell, ready| {
                    cell.and(&format!(" · Ready in ~{}", text::left(ready, scene.now)), dim)
                });
                let ignored = style == OutcomeStyle::Whole
                    && scene.shown.predictions.would_be_refused(key) == Some(true);
                if ignored {
                    cell.and(" · budget ignored by taint eviction", scene.style(Role::NodeNotice))
                } else {
                    cell
                }
            }
        },
        EvictionState::ByKubelet { .. } => {
            let cell = match outcome {
                Some(outcome) => with_outcome(Cell::default(), &outcome),
                None => Cell::new("working out", scene.style(Role::FeedBusy)),
            };
            cell.and(" · ", scene.style(Role::Faint))
                .and(&row.why.to_string(), scene.style(Role::NodeWarning))
        }
        EvictionState::Terminating { .. } => {
            let (what, role) = waits_for(&row.state, scene);
            match outcome {
                // The outcome `stuck` already says that the node is down, so the reason is left out.
                Some(outcome) if outcome.kind() == OutcomeKind::Stuck && style == OutcomeStyle::Short => {
                    with_outcome(Cell::default(), &outcome)
                }
                Some(outcome) => with_outcome(Cell::default(), &outcome)
                    .and(" · ", scene.style(Role::Faint))
                    .and(&what, scene.style(role)),
                None => Cell::new(&what, scene.style(role)),
            }
        }
    }
}

/// What a terminating pod waits for.
fn waits_for(state: &EvictionState, scene: &Scene) -> (String, Role) {
    let EvictionState::Terminating { deadline, removed, finalizers, kubelet_silent } = state else {
        return (String::new(), Role::Dim);
    };
    if removed.is_some() {
        return ("removed by force".into(), Role::Dim);
    }
    if !finalizers.is_empty() {
        let names: Vec<&str> = finalizers.iter().map(|name| name.as_str()).collect();
        return (format!("blocked by {}", names.join(", ")), Role::NodeNotice);
    }
    match (kubelet_silent, *deadline <= scene.now) {
        (true, _) => ("kubelet down".into(), Role::NodeCritical),
        (false, true) => ("not confirmed by its kubelet".into(), Role::NodeNotice),
        (false, false) => ("terminating".into(), Role::Dim),
    }
}

/// Theme role of an outcome.
pub(super) const fn role(kind: OutcomeKind) -> Role {
    match kind {
        OutcomeKind::Stuck | OutcomeKind::Lost | OutcomeKind::FailsJob => Role::NodeCritical,
        OutcomeKind::Pending | OutcomeKind::Refused | OutcomeKind::Blocked => Role::NodeWarning,
        OutcomeKind::Unknown | OutcomeKind::LeftOut => Role::NodeNotice,
        OutcomeKind::Moves | OutcomeKind::Preempts => Role::Base,
        OutcomeKind::WaitsForOldPod
        | OutcomeKind::Replaced
        | OutcomeKind::NotRecreated
        | OutcomeKind::Finished
        | OutcomeKind::SameNode
        | OutcomeKind::Stays => Role::Dim,
    }
}

/// Why a pod is evicted or not, and the reasons of its outcome.
fn reasons(scene: &Scene, key: &Key, row: &EvictionRow) -> String {
    let mut parts = Vec::new();
    if let EvictionState::Predicted { chance: Some(chance), .. } = &row.state {
        parts.push(format!("{}, any of {} nodes", chance.percent(), chance.among.len()));
    }
    if scene.shown.predictions.would_be_refused(key) == Some(true) {
        parts.push("budget ignored by taint eviction".into());
    }
    if let Some(outcome) = scene.shown.outcome(key, row) {
        let (whole, reasons) = (outcome.to_string(), outcome.reasons());
        parts.extend((whole != outcome.short()).then_some(whole));
        parts.extend(reasons);
    }
    parts.extend(Some(row.why.to_string()).filter(|why| !why.is_empty()));
    parts.join(" · ")
}
