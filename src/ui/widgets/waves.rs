//! The waves of a maintenance over time, a lane each.

use kordon_core::{
    maintenance::{MaintenanceWave, PastWave},
    plan::words::counted,
};
use kordon_time::{Span, Timestamp};

/// Number of cells of a lane (row of one wave).
const CELLS: i64 = 48;

/// A lane: when the wave starts, when its nodes are empty, when it ends, and the text beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaveLane {
    pub starts: Timestamp,
    pub drained: Timestamp,
    pub ends: Timestamp,
    pub text: String,
}

impl WaveLane {
    /// The text beside a planned wave: `2 nodes, 12 moves`.
    pub fn text(nodes: usize, moves: usize) -> String {
        format!("{}, {moves} moves", counted(nodes, "node", "nodes"))
    }

    /// A wave that has started. Steps that have not happened yet are drawn at their planned times, but not before
    /// `now`. A drain that takes longer than planned delays the end of the wave by as much.
    pub fn past(wave: &PastWave, now: Timestamp) -> Self {
        let PastWave { nodes, starts, drained, ends, planned, has_failed } = wave;
        let planned = planned.unwrap_or((*starts, *starts));
        let drained = drained.unwrap_or_else(|| planned.0.max(now));
        let back = drained + planned.1.since(planned.0);
        let text = match (has_failed, ends) {
            (true, _) => "failed".into(),
            (false, Some(ends)) => format!("back after {}", Span::from_secs(ends.since(*starts).as_secs())),
            (false, None) => counted(nodes.len(), "node", "nodes"),
        };
        Self { starts: *starts, drained, ends: ends.unwrap_or_else(|| back.max(now)), text }
    }

    /// Returns the lane (row of one wave), cut off at the time at which its maintenance ended or stopped.
    pub fn until(self, end: Timestamp) -> Self {
        Self { drained: self.drained.min(end), ends: self.ends.min(end), ..self }
    }

    /// Returns the lane (row of one wave), moved by the time `by`.
    pub fn later(self, by: Span) -> Self {
        Self { starts: self.starts + by, drained: self.drained + by, ends: self.ends + by, ..self }
    }
}

impl From<&MaintenanceWave> for WaveLane {
    fn from(wave: &MaintenanceWave) -> Self {
        let MaintenanceWave { starts, drained, ends, nodes, moves, .. } = wave;
        let text = Self::text(nodes.len(), moves.len());
        Self { starts: *starts, drained: *drained, ends: *ends, text }
    }
}

/// Draws the lanes, with a legend as the last line: `▒` for the drains, and `█` for the work until all nodes are
/// healthy again. If `now` is given, `┊` shows it. Empty if there are no lanes. `shown` formats a time.
pub fn waves(lanes: &[WaveLane], now: Option<Timestamp>, shown: impl Fn(Timestamp) -> String) -> Vec<String> {
    let (Some(first), Some(last)) = (lanes.first(), lanes.last()) else { return Vec::new() };
    let whole = last.ends.since(first.starts).as_secs().max(1);
    let place = |at: Timestamp| at.since(first.starts).as_secs() * CELLS / whole;
    let now = now.map(|now| place(now).clamp(0, CELLS - 1));
    let lane = |(number, wave): (usize, &WaveLane)| {
        let (starts, drained, end) = (place(wave.starts), place(wave.drained), place(wave.ends));
        let cell = |cell: i64| match cell {
            cell if now == Some(cell) => '┊',
            cell if cell < starts || cell >= end.max(starts + 1) => '·',
            cell if cell < drained.max(starts + 1) => '▒',
            _ => '█',
        };
        let bar: String = (0..CELLS).map(cell).collect();
        format!("wave {:>3} {bar} {}", number + 1, wave.text)
    };
    let mut lines: Vec<String> = lanes.iter().enumerate().map(lane).collect();
    let (from, to) = (shown(first.starts), shown(last.ends));
    let marker = if now.is_some() { "  ┊ now" } else { "" };
    lines.push(format!("         ▒ drains  █ work, back and settled{marker}; from {from} to {to}"));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    /// A wave that started at 100, with its drains planned to end at 110 and the wave planned to end at 140.
    fn past(drained: Option<i64>) -> PastWave {
        PastWave {
            nodes: vec!["n1".into()],
            starts: at(100),
            drained: drained.map(at),
            ends: None,
            planned: Some((at(110), at(140))),
            has_failed: false,
        }
    }

    #[test]
    fn a_wave_ends_later_by_as_much_as_its_drains_do() {
        let drawn = |drained, now| {
            let lane = WaveLane::past(&past(drained), at(now));
            (lane.drained, lane.ends)
        };
        assert_eq!(drawn(None, 105), (at(110), at(140)), "as planned");
        assert_eq!(drawn(None, 125), (at(125), at(155)), "the drains last");
        assert_eq!(drawn(Some(130), 145), (at(130), at(160)), "the work is still to do");
        assert_eq!(drawn(Some(130), 170), (at(130), at(170)), "the work lasts");
    }

    #[test]
    fn a_wave_of_a_stopped_maintenance_is_not_drawn_beyond_the_stop() {
        let lane = |drained| WaveLane::past(&past(drained), at(105)).until(at(105));
        assert_eq!((lane(None).drained, lane(None).ends), (at(105), at(105)));
        assert_eq!((lane(Some(103)).drained, lane(Some(103)).ends), (at(103), at(105)));
    }
}
