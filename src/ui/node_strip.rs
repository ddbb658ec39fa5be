//! The node strip: a cell per node, grouped by zone. If nodes outnumber cells, a cell stands for several nodes and
//! shows the worst.

use ratatui::{buffer::Buffer, layout::Rect, style::Style, text::Span as Run};

use crate::{
    app::screen_part::ScreenPart,
    model::{NodeState, ZoneNodes},
    ui::{
        Scene, text,
        theme::Role,
        widgets::segments::{Runs, Segments},
    },
};
use kordon_core::cluster::ZoneKey;

/// Nodes of one zone, or of all zones together if they have too little space to be separate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StripZone {
    pub name: String,
    pub states: Vec<NodeState>,
    /// Index of the zone's first node among all nodes.
    pub first: usize,
    /// Number of the zone's nodes in each of `states`.
    pub nodes_a_cell: usize,
}

/// Draws the strip, with the number of nodes in each state at its end. If a cell stands for several nodes, the end says
/// so:
/// ```text
/// a ▪▪▪▪▪▪▪▪  b ✖✖✖✖✖✖✖✖  c ▪▪◌▪▪▪▪▪                            24 · 8 Unknown · 1 Silent · 15 Ready
/// a ▪▪▪▪▪▪▪▪▪▪  b ✖✖✖✖✖✖✖✖✖▪  c ▪▪◌▪▪▪▪▪▪▪   1 cell = 2 nodes · 60 · 18 Unknown · 1 Silent · 41 Ready
/// ```
pub fn draw(scene: &Scene, area: Rect, buf: &mut Buffer) {
    let zones = zones(scene);
    let width = usize::from(area.width);
    let mut fitting = fitted(&zones, width);
    let mut right = counts(scene);
    let nodes_a_cell = |zones: &[StripZone]| zones.first().map_or(1, |zone| zone.nodes_a_cell);
    if nodes_a_cell(&fitting) > 1 {
        // Each cell stands for several nodes anyway, so the strip gives up cells to keep space for the counts.
        fitting = shrunk(&zones, width.saturating_sub(right.width() + UNIT_WIDTH)).unwrap_or(fitting);
        right = unit(scene, nodes_a_cell(&fitting)).join(right);
    }
    let mut line = Segments::default().right(1, right);
    let mut cells = Runs::default();
    for zone in fitting {
        if !cells.is_empty() {
            cells = cells.and("  ", scene.style(Role::Dim));
        }
        if !zone.name.is_empty() {
            cells = cells.and(&format!("{} ", zone.name), scene.style(Role::Dim));
        }
        let start = area.x.saturating_add(u16::try_from(cells.width()).unwrap_or(u16::MAX));
        let width = u16::try_from(zone.states.len()).unwrap_or(u16::MAX);
        let part = ScreenPart::NodeCells { first: zone.first, nodes_a_cell: zone.nodes_a_cell, indent: 0 };
        scene.can_click(Rect { x: start, width, height: 1, ..area }.intersection(area), part);
        cells =
            self::cells(scene, &zone.states, 1).fold(cells, |cells, (text, style)| cells.and(&text, style));
    }
    line = line.left(0, cells);
    line.render(area, &Run::styled("   ", scene.style(Role::Dim)), buf);
}

/// Number of cells for the text of [`unit`], which says how many nodes a cell stands for, and for the spaces around it.
const UNIT_WIDTH: usize = 24;

/// How many nodes a cell stands for: `1 cell = 2 nodes · `.
fn unit(scene: &Scene, nodes_a_cell: usize) -> Runs {
    let text = format!("1 cell = {} nodes", text::count(nodes_a_cell));
    Runs::new(&text, scene.style(Role::Dim)).and(" · ", scene.style(Role::Faint))
}

/// Nodes by state: `24 · 8 Unknown · 1 Silent · 15 Ready`.
pub fn counts(scene: &Scene) -> Runs {
    let nodes = scene.shown.cluster.nodes().len();
    if nodes == 0 {
        return Runs::default();
    }
    let mut runs = Runs::new(&text::count(nodes), scene.style(Role::Dim));
    for (state, number) in scene.shown.watchlist.counts() {
        runs = runs
            .and(" · ", scene.style(Role::Faint))
            .and(&format!("{} {state}", text::count(*number)), scene.style(Role::for_state(state.role())));
    }
    runs
}

/// States of all nodes by zone, each zone with its short name.
fn zones(scene: &Scene) -> Vec<StripZone> {
    let watchlist = &scene.shown.watchlist;
    let mut first = 0;
    let zone = |(key, nodes): (&ZoneKey, &ZoneNodes)| {
        let states = nodes.states().to_vec();
        let name = watchlist.zone_names().short(key);
        let zone = StripZone { name, first, nodes_a_cell: 1, states };
        first += zone.states.len();
        zone
    };
    watchlist.zones().iter().map(zone).collect()
}

/// Cells that stand for `nodes_a_cell` nodes each and show the worst of their states. Adjacent equal cells form one
/// run.
pub fn cells<'a>(
    scene: &'a Scene,
    states: &'a [NodeState],
    nodes_a_cell: usize,
) -> impl Iterator<Item = (String, Style)> + 'a {
    let worst: Vec<NodeState> = states.chunks(nodes_a_cell.max(1)).filter_map(NodeState::worst).collect();
    let mut runs: Vec<(NodeState, usize)> = Vec::new();
    for state in worst {
        match runs.last_mut() {
            Some((last, count)) if *last == state => *count += 1,
            _ => runs.push((state, 1)),
        }
    }
    runs.into_iter()
        .map(|(state, count)| (state.glyph().repeat(count), scene.style(Role::for_state(state.role()))))
}

/// Fits the strip into `width` cells: first without the names of zones, then without separating zones.
fn fitted(zones: &[StripZone], width: usize) -> Vec<StripZone> {
    let bare = || -> Vec<StripZone> {
        zones.iter().map(|zone| StripZone { name: String::new(), ..zone.clone() }).collect()
    };
    let together = || {
        let states = zones.iter().flat_map(|zone| zone.states.clone()).collect();
        [StripZone { name: String::new(), states, first: 0, nodes_a_cell: 1 }]
    };
    let shrunk = |zones: &[StripZone]| shrunk(zones, width);
    shrunk(zones).or_else(|| shrunk(&bare())).or_else(|| shrunk(&together())).unwrap_or_default()
}

/// Fits the zones by putting several nodes into a cell; `None` if one cell per zone is still too much.
fn shrunk(zones: &[StripZone], width: usize) -> Option<Vec<StripZone>> {
    let named = |zone: &StripZone| if zone.name.is_empty() { 0 } else { text::width(&zone.name) + 1 };
    let fixed: usize = zones.iter().map(named).sum::<usize>() + 2 * zones.len().saturating_sub(1);
    let room = width.checked_sub(fixed)?;
    let most = zones.iter().map(|zone| zone.states.len()).max().unwrap_or(0).max(1);
    let cells = |per: usize| zones.iter().map(|zone| zone.states.len().div_ceil(per)).sum::<usize>();
    let per = (1..=most).find(|per| cells(*per) <= room)?;
    let shrink = |zone: &StripZone| StripZone {
        name: zone.name.clone(),
        first: zone.first,
        nodes_a_cell: per,
        states: zone.states.chunks(per).filter_map(NodeState::worst).collect(),
    };
    Some(zones.iter().map(shrink).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(name: &str, nodes: usize, bad: &[(usize, NodeState)]) -> StripZone {
        let mut states = vec![NodeState::Ready; nodes];
        bad.iter().for_each(|(place, state)| states[*place] = *state);
        StripZone { name: name.into(), states, first: 0, nodes_a_cell: 1 }
    }

    fn shown(zones: &[StripZone]) -> String {
        let text = |zone: &StripZone| {
            let cells: String = zone.states.iter().map(|state| state.glyph()).collect();
            format!("{} {cells}", zone.name).trim().to_owned()
        };
        zones.iter().map(text).collect::<Vec<_>>().join("  ")
    }

    #[test]
    fn a_cell_is_a_node_where_there_is_room_else_the_worst_of_several() {
        let zones = vec![
            zone("a", 8, &[(2, NodeState::Silent), (3, NodeState::Late)]),
            zone("b", 4, &[(3, NodeState::Unknown)]),
        ];
        assert_eq!(shown(&fitted(&zones, 80)), "a ▪▪◌◦▪▪▪▪  b ▪▪▪✕");
        assert_eq!(shown(&fitted(&zones, 12)), "a ▪◌▪▪  b ▪✕");
        assert_eq!(shown(&fitted(&zones, 7)), "◌◦▪  ▪✕", "no room for the names");
        assert_eq!(shown(&fitted(&zones, 5)), "◌▪  ✕", "nor for more than a cell for four nodes");
        assert_eq!(shown(&fitted(&zones, 2)), "◌✕", "nor for zones");
        assert_eq!(fitted(&zones, 0), []);
        assert_eq!(fitted(&[], 80), []);
    }

    #[test]
    fn a_strip_always_fits_and_shows_the_worst_state() {
        for nodes in [1, 2, 7, 60, 5000] {
            for width in [1, 2, 5, 20, 78, 218] {
                let zones = vec![
                    zone("eu-1a", nodes, &[(nodes / 2, NodeState::Evicting)]),
                    zone("eu-1b", nodes / 3, &[]),
                    zone("", nodes, &[]),
                ];
                let fitted = fitted(&zones, width);
                assert!(text::width(&shown(&fitted)) <= width, "{nodes} nodes in {width} cells");
                let worst = fitted.iter().flat_map(|zone| &zone.states).min();
                assert_eq!(worst, Some(&NodeState::Evicting), "{nodes} nodes in {width} cells");
            }
        }
    }
}
