//! How a kubelet is configured for graceful node shutdown.

use super::pod::CRITICAL_PRIORITY;
use kordon_time::Span;

/// The pods that a kubelet ends at the same time when its machine stops, and how much time it gives them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShutdownPeriod {
    /// The lowest priority of the pods. The first period also has all pods of lower priorities.
    pub priority: i32,
    pub time: Span,
}

/// The periods of a kubelet, sorted by priority; empty if the kubelet does not end its pods when its machine stops.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShutdownPeriods(Box<[ShutdownPeriod]>);

impl ShutdownPeriods {
    /// Creates the periods of `shutdownGracePeriod` and `shutdownGracePeriodCriticalPods` (upstream `migrateConfig`).
    pub fn new(requested: Span, critical: Span) -> Self {
        if requested == Span::ZERO || critical > requested {
            return Self::default();
        }
        Self::by_priority([
            ShutdownPeriod { priority: 0, time: requested - critical },
            ShutdownPeriod { priority: CRITICAL_PRIORITY, time: critical },
        ])
    }

    /// Creates the periods of `shutdownGracePeriodByPodPriority`.
    pub fn by_priority(periods: impl IntoIterator<Item = ShutdownPeriod>) -> Self {
        let mut periods: Vec<ShutdownPeriod> = periods.into_iter().collect();
        periods.sort_by_key(|period| period.priority);
        Self(periods.into())
    }

    pub fn as_slice(&self) -> &[ShutdownPeriod] {
        &self.0
    }
}
