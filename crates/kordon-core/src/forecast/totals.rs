//! Numbers of events that a forecast predicts.

use super::{Forecast, ForecastKind, ForecastStep};
use kordon_time::Timestamp;

/// Numbers of predicted events by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForecastTotals {
    pub unknown: usize,
    pub tainted: usize,
    /// Pods that their kubelets end, because their machines stop.
    pub ended: usize,
    pub deleted: usize,
}

impl ForecastTotals {
    pub const fn add(&mut self, kind: &ForecastKind) {
        match kind {
            ForecastKind::Unknown { .. } => self.unknown += 1,
            ForecastKind::NoExecute { .. } => self.tainted += 1,
            ForecastKind::Ended { .. } => self.ended += 1,
            ForecastKind::Deleted { .. } | ForecastKind::Removed { .. } => self.deleted += 1,
        }
    }

    pub const fn is_empty(&self) -> bool {
        self.unknown + self.tainted + self.ended + self.deleted == 0
    }
}

impl Forecast {
    /// The predicted steps that happen after `now`.
    pub fn after(&self, now: Timestamp) -> &[ForecastStep] {
        &self.steps[self.steps.partition_point(|step| step.at <= now)..]
    }

    /// Numbers of the predicted events that have not happened at `now`. Includes events that were overdue when the
    /// forecast was made.
    pub fn totals(&self, now: Timestamp) -> ForecastTotals {
        let mut totals = ForecastTotals::default();
        let is_ahead = |step: &&ForecastStep| step.at > now || step.at <= self.made;
        self.steps.iter().filter(is_ahead).for_each(|step| totals.add(&step.kind));
        totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        cluster::{Key, NodeName},
        engine::Why,
    };

    #[test]
    fn what_has_happened_is_not_counted() {
        let node = || NodeName::from("a");
        let step = |secs, kind| ForecastStep {
            at: Timestamp::from_secs(secs),
            kind,
            why: Why::default(),
            not_ready: 0,
            chance: None,
        };
        let steps = vec![
            step(1, ForecastKind::Unknown { node: node() }),
            step(2, ForecastKind::NoExecute { node: node(), key: "k".into() }),
            step(3, ForecastKind::Ended { pod: Key::new("d", "p3"), node: node() }),
            step(3, ForecastKind::Deleted { pod: Key::new("d", "p1"), node: node() }),
            step(3, ForecastKind::Removed { pod: Key::new("d", "p2"), node: node() }),
        ];
        let forecast = Forecast { steps, ..Forecast::default() };
        let totals = |secs| forecast.totals(Timestamp::from_secs(secs));
        assert_eq!(totals(0), ForecastTotals { unknown: 1, tainted: 1, ended: 1, deleted: 2 });
        assert_eq!(totals(1), ForecastTotals { unknown: 0, tainted: 1, ended: 1, deleted: 2 });
        assert!(totals(3).is_empty());
    }
}
