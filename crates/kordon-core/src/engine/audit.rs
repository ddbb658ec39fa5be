//! Checks whether a shadowed controller acts as kordon's settings predict.
//!
//! The controller's flags cannot always be read, and predictions from wrong flags are useless. A flag that does not fit
//! the controller's actions is reported once per leader.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    health::NodeHealth,
    settings::Settings,
    why::{Certainty, HeartbeatSource},
    zone::{Zone, ZoneState},
};
use crate::cluster::{NodeName, ZoneKey};
use kordon_time::{Span, Timestamp};

/// Maximum difference between the times at which kordon and the controller observe a change through their own watches.
const SLACK: Span = Span::from_secs(3);

/// Suffix of each warning about a controller whose actions differ from what the settings predict.
pub const WOULD_EXPLAIN: &str = "would explain it";

/// Observations of the shadowed controller, and the flags that were already reported because they do not fit its
/// actions.
#[derive(Clone, Debug, Default)]
pub struct Audit {
    /// The time of each zone's last NoExecute taint that took a token of the zone's rate limiter.
    tainted: BTreeMap<ZoneKey, Timestamp>,
    reported: BTreeSet<&'static str>,
}

impl Audit {
    /// Checks a node that became Unknown. Returns a warning if it became Unknown earlier or later than the grace period
    /// allows.
    ///
    /// Skips nodes whose last heartbeat kordon did not observe itself.
    pub fn on_unknown(
        &mut self,
        node: &NodeName,
        record: &NodeHealth,
        settings: &Settings,
        now: Timestamp,
    ) -> Option<String> {
        if record.certainty != Certainty::Observed
            || !matches!(record.heartbeat_source, HeartbeatSource::Lease | HeartbeatSource::Status)
        {
            return None;
        }
        let (flag, grace) = record.grace_flag(settings);
        let period = settings.node_monitor_period.value;
        let silent = now.since(record.probe);
        // The controller's passes notice a heartbeat up to a period before or after kordon's passes do.
        let off = period + SLACK;
        let word = if silent + off < grace {
            "earlier"
        } else if silent > grace + period + off {
            "later"
        } else {
            return None;
        };
        self.reported.insert(flag).then(|| {
            let least = Span::from_nanos((silent - period).as_nanos().max(0));
            format!(
                "node {node} became Unknown {silent} after its last heartbeat, {word} than --{flag}={grace} allows: a \
                 value between {least} and {silent} {WOULD_EXPLAIN}"
            )
        })
    }

    /// Checks a node that was tainted with a token of its zone's rate limiter. Returns a warning if the eviction rate
    /// did not allow the taint yet.
    pub fn on_taint(
        &mut self,
        node: &NodeName,
        key: &ZoneKey,
        zone: &Zone,
        settings: &Settings,
        now: Timestamp,
    ) -> Option<String> {
        let before = self.tainted.insert(key.clone(), now)?;
        let gap = now.since(before);
        let rate = zone.limiter.rate();
        let state = zone.state.unwrap_or(ZoneState::Initial);
        if rate == 0.0 {
            // The zone evicts nothing now, but the controller may have requested the taint before the zone's state
            // changed.
            let (flag, value) = match state {
                ZoneState::PartialDisruption => (
                    "secondary-node-eviction-rate",
                    "--large-cluster-size-threshold or --unhealthy-zone-threshold",
                ),
                ZoneState::Initial | ZoneState::Normal | ZoneState::FullDisruption => {
                    ("unhealthy-zone-threshold", "--node-eviction-rate")
                }
            };
            let steady = gap > settings.node_monitor_period.value + SLACK;
            return (steady && self.reported.insert(flag)).then(|| {
                format!(
                    "node {node} was tainted NoExecute although zone {key} is {state} with eviction rate 0: another \
                     --{flag}, {value} {WOULD_EXPLAIN}"
                )
            });
        }
        let apart = Span::from_secs_f64(1.0 / f64::from(rate));
        let flag = match state {
            ZoneState::PartialDisruption => "secondary-node-eviction-rate",
            ZoneState::Initial | ZoneState::Normal | ZoneState::FullDisruption => "node-eviction-rate",
        };
        (gap + SLACK < apart && self.reported.insert(flag)).then(|| {
            format!(
                "two nodes of zone {key} were tainted NoExecute {gap} apart, but --{flag}={rate} allows one every \
                 {apart}: a higher --{flag} {WOULD_EXPLAIN}"
            )
        })
    }

    /// The flags that were reported because they do not fit the controller's actions.
    pub fn reported(&self) -> impl Iterator<Item = &'static str> {
        self.reported.iter().copied()
    }

    /// Forgets all observations, because a new controller has full rate limiters and its own flags.
    pub fn restart(&mut self) {
        *self = Self::default();
    }
}
