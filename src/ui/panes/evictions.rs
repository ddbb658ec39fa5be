//! Evictions: every pod that is or will be evicted, when, and why.

use ratatui::{buffer::Buffer, layout::Rect};

use super::{Nothing, column, draw_cause, nodes::mark, open, plain, say};
use crate::{
    app::{EvictionColumn, Pane},
    cluster::Key,
    engine::{Certainty, Confidence},
    k8s::feed::{FeedKind, FeedState},
    model::{EvictionRow, EvictionState},
    plan::EvictionNote,
    ui::{
        Scene, text,
        theme::Role,
        widgets::{Cell, Column, TableWidget, Urgency, Width, segments::Runs},
    },
};

/// ```text
/// ─ 3 Evictions  2 scheduled · 1 terminating · 1 stay ───────────────────────────────────────
///      in  pod                        node   state        why
/// ▶   12s  shop/web-7d4b9-x2x         n-3    scheduled    unreachable:NoExecute since … → tolerated for 5m
/// ·  5m2s  shop/db-0                  n-4    predicted    …
/// ⊗   28s  shop/cache-1               n-3    terminating  stuck Terminating: kubelet down
/// ∞ never  kube-system/proxy-zz       n-3    stays        tolerates the taint: never evicted
/// ```
/// Draws each eviction; returns how many rows there is room for.
pub fn draw(scene: &Scene, area: Rect, buf: &mut Buffer) -> usize {
    let list = &scene.screen.evictions.list;
    let inner = open(scene, Pane::Evictions, area, facts(scene), buf);
    if list.is_empty() {
        let (glyph, text, role) = nothing(scene);
        say(scene, glyph, &text, role, inner, buf);
        return TableWidget::page(inner);
    }
    let selected = list.selected().and_then(|key| Some((key, scene.shown.views.evictions.get(key)?)));
    let why = selected.map(|(key, row)| reasons(scene, key, row));
    let inner = draw_cause(scene, Pane::Evictions, why, inner, buf);
    let page = TableWidget::page(inner);
    let table = TableWidget {
        columns: columns(scene),
        rows: list.len(),
        first: list.first_shown(page),
        selected: list.cursor(),
        looks: scene.looks(Pane::Evictions),
    };
    table.render(inner, buf, |row| {
        let key = list.keys().get(row);
        let row = key.and_then(|key| Some((key, scene.shown.views.evictions.get(key)?)));
        row.map(|(key, row)| cells(scene, key, row)).unwrap_or_default()
    });
    page
}

/// Why there is none.
pub(super) fn nothing(scene: &Scene) -> Nothing {
    let listing = !matches!(scene.shown.feeds.state(FeedKind::Pods), Some(FeedState::Live));
    if !listing && scene.screen.filter(Pane::Evictions).is_empty() {
        match scene.shown.views.confidence {
            None => return ("◌", "waiting for nodes and Leases".into(), Role::FeedBusy),
            Some(Confidence::NoController { .. }) => {
                return ("○", "no evictions: no active kube-controller-manager".into(), Role::Dim);
            }
            Some(Confidence::Live | Confidence::Assumed | Confidence::Disconnected { .. }) => {}
        }
    }
    super::nothing(scene, FeedKind::Pods, Pane::Evictions, "no evictions")
}

/// `12 scheduled · 4 predicted · 3 terminating · 8 stay`
fn facts(scene: &Scene) -> Runs {
    let [mut scheduled, mut predicted, mut terminating, mut cancelled, mut never] = [0; 5];
    for row in scene.shown.views.evictions.values() {
        match row.state {
            EvictionState::Scheduled { .. } => scheduled += 1,
            EvictionState::Predicted { .. } => predicted += 1,
            EvictionState::Terminating { .. } => terminating += 1,
            EvictionState::Cancelled { .. } => cancelled += 1,
            EvictionState::Never => never += 1,
        }
    }
    let parts: [(usize, &str, Role); 5] = [
        (scheduled, "scheduled", Role::CountdownSoon),
        (predicted, "predicted", Role::EvictionPredicted),
        (terminating, "terminating", Role::EvictionTerminating),
        (cancelled, "cancelled", Role::EvictionCancelled),
        (never, "stay", Role::EvictionNever),
    ];
    let mut runs = match scene.shown.views.confidence {
        Some(Confidence::Disconnected { .. }) => Runs::new("last known state", scene.style(Role::FeedBroken)),
        Some(Confidence::NoController { .. }) => Runs::new("no controller", scene.style(Role::FeedBroken)),
        Some(Confidence::Live | Confidence::Assumed) | None => Runs::default(),
    };
    for (number, what, role) in parts.into_iter().filter(|(number, ..)| *number > 0) {
        if !runs.is_empty() {
            runs = runs.and(" · ", scene.style(Role::Faint));
        }
        runs = runs.and(&format!("{} {what}", text::count(number)), scene.style(role));
    }
    runs
}

fn columns(scene: &Scene) -> Vec<Column> {
    let sort = scene.screen.evictions.sort;
    vec![
        plain("", Width::Fixed(1)),
        column(sort, EvictionColumn::Due, "in", Width::Fit(6, 13)).right(),
        column(sort, EvictionColumn::Pod, "pod", Width::Fit(16, 48)),
        column(sort, EvictionColumn::Node, "node", Width::Fit(6, 28)).gives_way(1),
        column(sort, EvictionColumn::State, "state", Width::Fit(8, 11)).gives_way(2),
        plain("why", Width::Grow(10, 1)).gives_way(3),
    ]
}

fn cells(scene: &Scene, key: &Key, row: &EvictionRow) -> Vec<Cell> {
    let (word, role) = state_words(&row.state);
    let quiet = matches!(row.state, EvictionState::Never | EvictionState::Cancelled { .. });
    let named = scene.style(if quiet { Role::Dim } else { Role::Base });
    vec![
        glyph(scene, &row.state),
        time(scene, &row.state),
        Cell::new(&key.namespace, scene.style(Role::Dim))
            .and("/", scene.style(Role::Faint))
            .and(&key.name, named),
        Cell::new(&row.node, scene.style(Role::Dim)),
        Cell::new(word, scene.style(role)),
        reason(scene, key, row),
    ]
}

fn glyph(scene: &Scene, state: &EvictionState) -> Cell {
    let near = |at, role| {
        let urgency = Urgency::of(at, scene.now);
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
        EvictionState::Terminating { .. } => ("⊗", Role::EvictionTerminating),
        EvictionState::Cancelled { .. } => ("↺", Role::EvictionCancelled),
        EvictionState::Never => ("∞", Role::EvictionNever),
    };
    Cell::new(glyph, scene.style(role))
}

/// The time left; `~` before an estimate.
pub fn time(scene: &Scene, state: &EvictionState) -> Cell {
    match state {
        EvictionState::Scheduled { at, certainty } => {
            let cell = Cell::new(mark(*certainty), scene.style(Role::Faint));
            cell.join(scene.countdown(*at, false))
        }
        EvictionState::Predicted { at, .. } => Cell::new("~", scene.style(Role::Faint))
            .and(&text::left(*at, scene.now), scene.style(Role::EvictionPredicted)),
        EvictionState::Terminating { deadline, .. } if *deadline <= scene.now => {
            let stuck = format!("stuck {}", text::age(scene.now, *deadline));
            Cell::new(&stuck, scene.style(Role::EvictionTerminating))
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

/// The state of an eviction in a word, and how it looks.
pub const fn state_words(state: &EvictionState) -> (&'static str, Role) {
    match state {
        EvictionState::Scheduled { certainty: Certainty::Observed, .. } => ("scheduled", Role::Base),
        EvictionState::Scheduled { .. } => ("estimated", Role::Base),
        EvictionState::Predicted { .. } => ("predicted", Role::EvictionPredicted),
        EvictionState::Terminating { .. } => ("terminating", Role::EvictionTerminating),
        EvictionState::Cancelled { .. } => ("cancelled", Role::EvictionCancelled),
        EvictionState::Never => ("stays", Role::EvictionNever),
    }
}

/// Why a pod is evicted or not, and what to know of that.
fn reasons(scene: &Scene, key: &Key, row: &EvictionRow) -> String {
    let cluster = &scene.shown.cluster;
    let notes = match &row.state {
        EvictionState::Scheduled { .. }
        | EvictionState::Predicted { .. }
        | EvictionState::Terminating { .. } => {
            cluster.pod(key).and_then(|pod| EvictionNote::line(cluster, pod))
        }
        EvictionState::Never | EvictionState::Cancelled { .. } => None,
    };
    let why = Some(row.why.to_string()).filter(|why| !why.is_empty());
    notes.into_iter().chain(why).collect::<Vec<_>>().join(" · ")
}

/// Why a pod is evicted or not; of a terminating pod, what it waits for.
fn reason(scene: &Scene, key: &Key, row: &EvictionRow) -> Cell {
    let dim = scene.style(Role::Dim);
    let EvictionState::Terminating { deadline, finalizers, kubelet_silent } = &row.state else {
        let why = text::brief(&reasons(scene, key, row));
        return match &row.state {
            EvictionState::Predicted { chance: Some(chance), .. } => {
                Cell::new(&format!("{}, any of {} nodes · {why}", chance.percent(), chance.among.len()), dim)
            }
            _ => Cell::new(&why, dim),
        };
    };
    if !finalizers.is_empty() {
        let names: Vec<&str> = finalizers.iter().map(|name| name.as_str()).collect();
        return Cell::new("blocked by ", dim).and(&names.join(", "), scene.style(Role::NodeNotice));
    }
    match (kubelet_silent, *deadline <= scene.now) {
        (true, _) => Cell::new("stuck Terminating: kubelet down", scene.style(Role::NodeCritical)),
        (false, true) => {
            Cell::new("grace period expired: not confirmed by the kubelet", scene.style(Role::NodeNotice))
        }
        (false, false) => Cell::new("the kubelet is stopping it", dim),
    }
}
