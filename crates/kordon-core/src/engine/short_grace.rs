//! A grace period that is not longer than the interval in which kubelets renew their Leases.

use std::fmt;

use super::{Settings, heartbeats::longest_interval};
use kordon_time::Span;

/// A grace period that is over before a healthy node's next renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortGrace {
    /// `--node-monitor-grace-period`.
    pub grace: Span,
    /// Longest time between two renewals of a kubelet, jitter included.
    pub longest: Span,
    /// Whether a healthy node becomes Unknown between two renewals at all events. If false, this depends on when the
    /// passes of the controller are.
    pub is_certain: bool,
}

impl ShortGrace {
    /// Compares the grace period with the longest renewal interval of a kubelet, jitter left out. `None` if the grace
    /// period is longer.
    ///
    /// It counts from the pass that notices a renewal, up to one period after the renewal. A later pass before the next
    /// renewal, which comes after the interval at the earliest, finds it over.
    pub fn find(settings: &Settings, interval: Span) -> Option<Self> {
        let (grace, period) = (settings.node_monitor_grace_period.value, settings.node_monitor_period.value);
        let longest = longest_interval(interval);
        let passes = (grace.as_nanos() - 1).div_euclid(period.as_nanos().max(1)) + 1;
        let is_certain = period * (passes + 1) <= interval;
        (grace <= longest).then_some(Self { grace, longest, is_certain })
    }

    /// Compares the two: `--node-monitor-grace-period 10s is not longer than the renewal interval of kubelets (up to
    /// 10.4s)`.
    pub fn comparison(&self) -> String {
        let longest = self.longest.as_secs_f64();
        format!(
            "--node-monitor-grace-period {} is not longer than the renewal interval of kubelets (up to {longest:.1}s)",
            self.grace
        )
    }
}

impl fmt::Display for ShortGrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let may = if self.is_certain { "" } else { "may " };
        write!(f, "{}: healthy nodes {may}become Unknown and flap", self.comparison())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Origin, ServerVersion};

    #[test]
    fn healthy_nodes_certainly_become_unknown_if_a_pass_lies_between_the_grace_period_and_the_renewal() {
        let found = |grace: &str, interval| {
            let mut settings = Settings::defaults(ServerVersion::new(1, 37));
            settings.set("node-monitor-grace-period", grace, Origin::Cluster).expect("a flag");
            let found = ShortGrace::find(&settings, Span::from_secs(interval))?;
            Some((found.is_certain, found.longest.as_nanos() / 100_000_000))
        };
        assert_eq!(found("11s", 10), None);
        assert_eq!(found("10s", 10), Some((false, 104)));
        assert_eq!(
            found("6s", 10),
            Some((false, 104)),
            "the second pass after 6 s may come after the renewal"
        );
        assert_eq!(found("5s", 10), Some((true, 104)));
        assert_eq!(found("50s", 60), Some((true, 624)));
    }
}
