//! The rows of a forecast: one for each node, second and kind; and how many events happen when.

use super::{Chance, Forecast, ForecastKind, ForecastStep};
use crate::{
    cluster::{Name, NodeName},
    engine::Why,
    time::Timestamp,
};

/// An event of one node, with the deletions of one second in one row.
#[derive(Clone, Debug, PartialEq)]
pub struct ForecastRow {
    pub at: Timestamp,
    pub node: NodeName,
    pub event: NodeForecast,
    /// Why the first of its events happens.
    pub why: Why,
    /// The chance that it happens at this time; none if that is certain.
    pub chance: Option<Chance>,
}

impl ForecastRow {
    /// Whether two rows predict the same kind of event for the same node, whenever and of however many pods.
    pub fn is_same(&self, other: &Self) -> bool {
        let is_same_event = match (&self.event, &other.event) {
            (NodeForecast::Deletions(_), NodeForecast::Deletions(_)) => true,
            (one, other) => one == other,
        };
        self.node == other.node && is_same_event
    }
}

/// What is predicted for a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeForecast {
    /// It becomes Unknown, and this many of its pods leave the endpoints of their Services.
    Unknown(usize),
    /// The NoExecute taint with this key.
    NoExecute(Name),
    /// This many of its pods are deleted, or their objects removed by the garbage collector.
    Deletions(usize),
}

/// Counts of predicted events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForecastTotals {
    pub unknown: usize,
    pub tainted: usize,
    pub deleted: usize,
}

impl ForecastTotals {
    pub const fn add(&mut self, kind: &ForecastKind) {
        match kind {
            ForecastKind::Unknown { .. } => self.unknown += 1,
            ForecastKind::NoExecute { .. } => self.tainted += 1,
            ForecastKind::Deleted { .. } | ForecastKind::Removed { .. } => self.deleted += 1,
        }
    }

    pub const fn is_empty(&self) -> bool {
        self.unknown + self.tainted + self.deleted == 0
    }
}

impl Forecast {
    /// The steps after `now`.
    pub fn after(&self, now: Timestamp) -> &[ForecastStep] {
        &self.steps[self.steps.partition_point(|step| step.at <= now)..]
    }

    pub fn totals(&self, now: Timestamp) -> ForecastTotals {
        let mut totals = ForecastTotals::default();
        self.after(now).iter().for_each(|step| totals.add(&step.kind));
        totals
    }

    /// The steps after `now`, in order of time; deletions on one node within one second are one row.
    pub fn rows(&self, now: Timestamp) -> Vec<ForecastRow> {
        let mut rows: Vec<ForecastRow> = Vec::new();
        // The first row of the current second.
        let mut second = 0;
        for step in self.after(now) {
            if rows.last().is_some_and(|row| second_of(row.at) != second_of(step.at)) {
                second = rows.len();
            }
            let event = match &step.kind {
                ForecastKind::Unknown { .. } => NodeForecast::Unknown(step.not_ready),
                ForecastKind::NoExecute { key, .. } => NodeForecast::NoExecute(key.clone()),
                ForecastKind::Deleted { node, .. } | ForecastKind::Removed { node, .. } => {
                    let same = |row: &&mut ForecastRow| {
                        row.node == *node && matches!(row.event, NodeForecast::Deletions(_))
                    };
                    if let Some(row) = rows[second..].iter_mut().find(same) {
                        if let NodeForecast::Deletions(pods) = &mut row.event {
                            *pods += 1;
                        }
                        continue;
                    }
                    NodeForecast::Deletions(1)
                }
            };
            rows.push(ForecastRow {
                at: step.at,
                node: step.kind.node().clone(),
                event,
                why: step.why.clone(),
                chance: step.chance.clone(),
            });
        }
        rows
    }

    /// The totals of each of `cells` equal parts of the time from `now` to the end.
    pub fn density(&self, now: Timestamp, cells: usize) -> Vec<ForecastTotals> {
        let mut density = vec![ForecastTotals::default(); cells];
        let whole = self.until.since(now).as_nanos().max(1);
        for step in self.after(now) {
            let into = i128::from(step.at.since(now).as_nanos()) * cells as i128 / i128::from(whole);
            let cell = usize::try_from(into).unwrap_or(0).min(cells.saturating_sub(1));
            if let Some(totals) = density.get_mut(cell) {
                totals.add(&step.kind);
            }
        }
        density
    }
}

/// The whole second that a moment lies in.
fn second_of(at: Timestamp) -> i64 {
    at.since(Timestamp::EPOCH).as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cluster::Key, time::Span};

    fn forecast() -> Forecast {
        let node = |name: &str| NodeName::from(name);
        let deleted =
            |name: &str, on: &str| ForecastKind::Deleted { pod: Key::new("d", name), node: node(on) };
        let step = |millis, kind| ForecastStep {
            at: Timestamp::EPOCH + Span::from_millis(millis),
            kind,
            why: Why::default(),
            not_ready: 0,
            chance: None,
        };
        Forecast {
            until: Timestamp::EPOCH + Span::from_secs(10),
            steps: vec![
                step(500, ForecastKind::Unknown { node: node("a") }),
                step(2000, ForecastKind::NoExecute { node: node("a"), key: "k".into() }),
                step(3000, deleted("p1", "a")),
                step(3100, deleted("p2", "b")),
                step(3900, deleted("p3", "a")),
                step(4000, deleted("p4", "a")),
            ],
            ..Forecast::default()
        }
    }

    #[test]
    fn deletions_of_a_second_are_one_row_per_node() {
        let rows: Vec<_> = forecast()
            .rows(Timestamp::from_secs(1))
            .into_iter()
            .map(|row| (row.node.to_string(), row.event))
            .collect();
        let row = |node: &str, event| (node.to_owned(), event);
        assert_eq!(
            rows,
            [
                row("a", NodeForecast::NoExecute("k".into())),
                row("a", NodeForecast::Deletions(2)),
                row("b", NodeForecast::Deletions(1)),
                row("a", NodeForecast::Deletions(1)),
            ]
        );
    }

    #[test]
    fn density_counts_each_step_once() {
        let density = forecast().density(Timestamp::EPOCH, 5);
        let deleted: Vec<usize> = density.iter().map(|totals| totals.deleted).collect();
        assert_eq!(deleted, [0, 3, 1, 0, 0]);
        assert_eq!((density[0].unknown, density[1].tainted), (1, 1));
        assert_eq!(
            forecast().totals(Timestamp::EPOCH),
            ForecastTotals { unknown: 1, tainted: 1, deleted: 4 }
        );
        assert_eq!(forecast().density(Timestamp::EPOCH, 0), []);
    }
}
