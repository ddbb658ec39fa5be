//! The waves of a maintenance over time, a lane each.

use kordon_core::{maintenance::MaintenanceWave, plan::words::counted};
use kordon_time::Timestamp;

/// Cells of a lane.
const CELLS: i64 = 48;

/// When a wave starts, when its nodes are empty and when it ends; its nodes, and how many pods move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaveLane {
    pub starts: Timestamp,
    pub drained: Timestamp,
    pub ends: Timestamp,
    pub nodes: usize,
    pub moves: usize,
}

impl From<&MaintenanceWave> for WaveLane {
    fn from(wave: &MaintenanceWave) -> Self {
        let MaintenanceWave { starts, drained, ends, nodes, moves, .. } = wave;
        Self { starts: *starts, drained: *drained, ends: *ends, nodes: nodes.len(), moves: moves.len() }
    }
}

/// Draws the lanes, with a legend as the last line: `▒` the drains, `█` the work until all is well again. Empty if there are
/// none. `shown` writes a time.
pub fn waves(lanes: &[WaveLane], shown: impl Fn(Timestamp) -> String) -> Vec<String> {
    let (Some(first), Some(last)) = (lanes.first(), lanes.last()) else { return Vec::new() };
    let whole = last.ends.since(first.starts).as_secs().max(1);
    let place = |at: Timestamp| at.since(first.starts).as_secs() * CELLS / whole;
    let lane = |(number, wave): (usize, &WaveLane)| {
        let (starts, drained, end) = (place(wave.starts), place(wave.drained), place(wave.ends));
        let cell = |cell: i64| match cell {
            cell if cell < starts || cell >= end.max(starts + 1) => '·',
            cell if cell < drained.max(starts + 1) => '▒',
            _ => '█',
        };
        let bar: String = (0..CELLS).map(cell).collect();
        let nodes = counted(wave.nodes, "node", "nodes");
        format!("wave {:>3} {bar} {nodes}, {} moves", number + 1, wave.moves)
    };
    let mut lines: Vec<String> = lanes.iter().enumerate().map(lane).collect();
    let (from, to) = (shown(first.starts), shown(last.ends));
    lines.push(format!("         ▒ drains  █ work, back and settled; from {from} to {to}"));
    lines
}
