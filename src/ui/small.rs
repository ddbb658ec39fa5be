//! A few lines for a terminal that has no space for tables.

use ratatui::{buffer::Buffer, layout::Rect};

use super::{
    Scene,
    layout::LEAST,
    panes::header,
    text,
    theme::Role,
    widgets::segments::{Runs, cut_line},
};
use crate::{
    app::{Mode, Playback},
    k8s::feed::FeedKind,
    model::{EvictionState, NodeState},
};

/// ```text
/// too small: 40x14, needs 60x15
/// DRY-RUN  prod-eu
/// 22 of 30 nodes Ready
/// ✖ zone b down (8 of 8)
/// shop/web-1 evicted in 12s
/// ```
pub fn draw(scene: &Scene, area: Rect, buf: &mut Buffer) {
    let mut lines = vec![
        Runs::new(
            &format!("too small: {}x{}, needs {}x{}", area.width, area.height, LEAST.0, LEAST.1),
            scene.style(Role::Dim),
        ),
        place(scene),
        nodes(scene),
    ];
    let verdict = scene.verdict;
    let text = format!("{} {}", verdict.level.glyph(), verdict.text());
    lines.push(Runs::new(&text, scene.style(header::level_role(verdict.level))));
    lines.extend(evictions(scene));
    // If at most two lines fit, they show the mode and the nodes, not the required size.
    if area.height < 3 {
        lines.rotate_left(1);
    }
    for (y, line) in (area.y..area.bottom()).zip(lines) {
        let line = cut_line(line.line(), usize::from(area.width));
        text::draw_line(&line, (area.x, y), area.width, buf);
    }
}

fn place(scene: &Scene) -> Runs {
    let (badge, role) = match scene.app.operations.mode {
        Mode::DryRun => (" DRY-RUN ", Role::ModeDryRun),
        Mode::Enforce => (" ENFORCE ", Role::ModeEnforce),
        Mode::ReadOnly => (" READ-ONLY ", Role::ModeReadOnly),
        Mode::Replay if scene.app.playback.as_ref().is_some_and(Playback::is_counterfactual) => {
            (" REPLAY with other settings ", Role::ModeReplay)
        }
        Mode::Replay => (" REPLAY ", Role::ModeReplay),
    };
    Runs::new(badge, scene.style(role))
        .and(&format!(" {}", scene.app.model.connection.context), scene.style(Role::Strong))
}

fn nodes(scene: &Scene) -> Runs {
    let nodes = scene.shown.cluster.nodes();
    if nodes.is_empty() {
        let is_watched = scene.shown.feeds.health(FeedKind::Nodes).is_some();
        let text = if is_watched { "no nodes yet" } else { "waiting for nodes" };
        return Runs::new(text, scene.style(Role::Dim));
    }
    let counts = scene.shown.watchlist.counts();
    let ready = counts.get(&NodeState::Ready).copied().unwrap_or(0);
    let role = counts.keys().next().map_or(Role::Dim, |worst| Role::for_state(worst.role()));
    Runs::new(
        &format!("{} of {} nodes Ready", text::count(ready), text::count(nodes.len())),
        scene.style(role),
    )
}

/// A line for each of the next evictions.
fn evictions(scene: &Scene) -> Vec<Runs> {
    let rows = scene.screen.evictions.list.keys().iter().filter_map(|key| {
        let row = scene.shown.views.leaving.evictions.get(key)?;
        match row.state {
            EvictionState::Scheduled { at, .. } | EvictionState::Predicted { at, .. } => Some((key, at)),
            EvictionState::ByKubelet { at, .. } => at.map(|at| (key, at.max(scene.now))),
            EvictionState::Never | EvictionState::Terminating { .. } | EvictionState::Cancelled { .. } => {
                None
            }
        }
    });
    let line = |(key, at): (&kordon_core::cluster::Key, _)| {
        Runs::new(&format!("{key} "), scene.style(Role::Base))
            .and(&format!("evicted in {}", text::left(at, scene.now)), scene.style(Role::CountdownSoon))
    };
    rows.take(20).map(line).collect()
}
