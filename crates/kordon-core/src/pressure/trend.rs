//! Linear trend of a signal's level, and the time until the level falls to a given value.

use kordon_time::{Span, Timestamp};

/// A line fitted to measurements of one level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// Change per second; negative if the level falls.
    pub slope: f64,
    /// Time from the first to the last measurement.
    pub over: Span,
}

impl Trend {
    /// Fits the line by least squares; `None` for fewer than three measurements, or if all have the same time.
    #[expect(clippy::cast_precision_loss, reason = "levels are far below 2^53")]
    pub fn from_samples(samples: impl IntoIterator<Item = (Timestamp, i64)>) -> Option<Self> {
        let samples: Vec<(Timestamp, i64)> = samples.into_iter().collect();
        let [(first, _), _, .., (last, _)] = samples[..] else { return None };
        let points = || samples.iter().map(|(at, level)| (at.since(first).as_secs_f64(), *level as f64));
        let count = samples.len() as f64;
        let (x_sum, y_sum) = points().fold((0.0, 0.0), |(x, y), point| (x + point.0, y + point.1));
        let (x_mean, y_mean) = (x_sum / count, y_sum / count);
        let covariance: f64 = points().map(|(x, y)| (x - x_mean) * (y - y_mean)).sum();
        let variance: f64 = points().map(|(x, _)| (x - x_mean).powi(2)).sum();
        (variance > 0.0).then(|| Self { slope: covariance / variance, over: last.since(first) })
    }

    /// The time until the level falls from one value to another; `None` if the level does not fall, has already reached
    /// the second value, or needs more than a day.
    #[expect(clippy::cast_precision_loss, reason = "levels are far below 2^53")]
    pub fn reaches(self, from: i64, to: i64) -> Option<Span> {
        const LONGEST: f64 = 24.0 * 3600.0;
        let seconds = from.saturating_sub(to) as f64 / -self.slope;
        (self.slope < 0.0 && from > to && seconds <= LONGEST).then(|| Span::from_secs_f64(seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_that_falls_evenly_reaches_another_in_time() {
        let at = Timestamp::from_secs;
        let falling =
            Trend::from_samples((0..6).map(|step| (at(10 * step), 1000 - 50 * step))).expect("a trend");
        assert!((falling.slope + 5.0).abs() < 1e-9, "{falling:?}");
        assert_eq!(falling.over, Span::from_secs(50));
        assert_eq!(falling.reaches(750, 500), Some(Span::from_secs(50)));
        assert_eq!(falling.reaches(500, 500), None, "it is there");
        assert_eq!(falling.reaches(5_000_000, 500), None, "too far away to say");
        let rising = Trend::from_samples((0..6).map(|step| (at(10 * step), 50 * step))).expect("a trend");
        assert_eq!(rising.reaches(750, 500), None);
    }

    #[test]
    fn two_measurements_are_no_trend() {
        assert_eq!(Trend::from_samples([(Timestamp::EPOCH, 1), (Timestamp::from_secs(1), 2)]), None);
        assert_eq!(
            Trend::from_samples([(Timestamp::EPOCH, 1), (Timestamp::EPOCH, 2), (Timestamp::EPOCH, 3)]),
            None
        );
    }
}
