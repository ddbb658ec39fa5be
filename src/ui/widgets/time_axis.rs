//! A time axis divided into cells.

use kordon_time::{Span, Timestamp};

/// Possible distances between ticks, in minutes.
const STEPS: [i64; 9] = [1, 2, 3, 5, 10, 15, 20, 30, 60];

/// Minimum number of cells between ticks: space for `03:02` or `+1h30m`.
const APART: i64 = 7;

/// A period of time divided into equal cells.
///
/// The axis starts at a round time. As time passes, the start moves in steps, each of which is a twelfth of the axis.
/// Between two steps, events stay in their cells, and only `now` moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeAxis {
    pub start: Timestamp,
    pub end: Timestamp,
    pub cells: u16,
}

impl TimeAxis {
    /// Creates an axis that starts a tenth to a fifth of `ahead` before `now`, and ends `ahead` to 1.1 times `ahead`
    /// after it.
    pub fn around(now: Timestamp, ahead: Span, cells: u16) -> Self {
        let tenth = Span::from_nanos((ahead.as_nanos() / 10).max(1));
        let start = floor(now, tenth) - tenth;
        Self { start, end: start + tenth * 12, cells }
    }

    /// Index of the cell for a time; `None` if it is outside the axis.
    pub fn cell(&self, at: Timestamp) -> Option<u16> {
        (self.start <= at && at < self.end).then(|| self.clamped(at)).filter(|cell| *cell < self.cells)
    }

    /// Index of the cell for a time: 0 for a time before the start of the axis, and the number of cells for a time
    /// after its end.
    pub fn clamped(&self, at: Timestamp) -> u16 {
        let into = i128::from(at.since(self.start).or_zero().as_nanos()) * i128::from(self.cells);
        let cell = into / i128::from(self.end.since(self.start).as_nanos().max(1));
        u16::try_from(cell).unwrap_or(u16::MAX).min(self.cells)
    }

    /// Time at which a cell ends.
    pub fn end_of(&self, cell: u16) -> Timestamp {
        let whole = i128::from(self.end.since(self.start).as_nanos());
        let into = whole * (i128::from(cell) + 1) / i128::from(self.cells.max(1));
        self.start + Span::from_nanos(i64::try_from(into).unwrap_or(i64::MAX))
    }

    /// Ticks at round times, with their cells.
    pub fn ticks(&self) -> Vec<(u16, Timestamp)> {
        let step = self.step();
        let first = floor(self.start + step - Span::from_nanos(1), step);
        self.at_steps(first, step)
    }

    /// Ticks at round distances after `now`, with their cells.
    pub fn ruler(&self, now: Timestamp) -> Vec<(u16, Span)> {
        let step = self.step();
        let ahead = self.at_steps(now + step, step);
        ahead.into_iter().map(|(cell, at)| (cell, at.since(now))).collect()
    }

    fn at_steps(&self, first: Timestamp, step: Span) -> Vec<(u16, Timestamp)> {
        let times = std::iter::successors(Some(first), |at| Some(*at + step));
        times.map_while(|at| Some((self.cell(at)?, at))).collect()
    }

    fn step(&self) -> Span {
        let whole = self.end.since(self.start).as_secs().max(1);
        let is_wide = |minutes: &i64| minutes * 60 * i64::from(self.cells) / whole >= APART;
        Span::from_secs(60 * STEPS.into_iter().find(is_wide).unwrap_or(120))
    }
}

/// The last multiple of `unit` at or before `at`.
fn floor(at: Timestamp, unit: Span) -> Timestamp {
    at - Span::from_nanos(at.as_nanos().rem_euclid(unit.as_nanos().max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const AHEAD: Span = Span::from_secs(600);

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(1_800_000_000 + secs)
    }

    #[test]
    fn what_stands_on_the_axis_stays_in_its_cell_while_now_moves() {
        let axis = |secs| TimeAxis::around(at(secs), AHEAD, 72);
        assert_eq!(axis(0), axis(59));
        assert_eq!((axis(0).cell(at(0)), axis(59).cell(at(59))), (Some(6), Some(11)));
        assert_eq!(axis(60).cell(at(60)), Some(6), "then it moves by a tenth of the time ahead");
        assert!((0..60).all(|now| axis(now).cell(at(now) + AHEAD).is_some()), "all of it is on the axis");
    }

    #[test]
    fn ticks_are_round_times_with_room_for_their_labels() {
        for cells in [20, 33, 50, 72, 150] {
            for ahead in [600, 1800, 7200] {
                let axis = TimeAxis::around(at(17), Span::from_secs(ahead), cells);
                let ticks = axis.ticks();
                assert!(ticks.len() > 1, "{cells} cells, {ahead} s: {ticks:?}");
                assert!(ticks.windows(2).all(|pair| pair[1].0 - pair[0].0 >= 6), "{cells}: {ticks:?}");
                assert!(ticks.iter().all(|(_, at)| at.as_nanos() % 60_000_000_000 == 0));
                let ruler = axis.ruler(at(17));
                assert!(ruler.iter().all(|(cell, ahead)| axis.cell(at(17) + *ahead) == Some(*cell)));
            }
        }
    }

    #[test]
    fn no_axis_is_too_short() {
        let axis = TimeAxis::around(at(0), AHEAD, 0);
        assert_eq!((axis.cell(at(0)), axis.clamped(at(9999)), axis.ticks().len()), (None, 0, 0));
        assert_eq!(TimeAxis::around(at(0), Span::ZERO, 5).cell(at(9)), None);
    }
}
