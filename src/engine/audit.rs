//! Doubts about the settings: a shadowed controller did what they would not have let it do.
//!
//! Its flags cannot always be read, and nothing foretold from wrong ones is worth anything. Each flag is doubted once
//! per leader.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    health::NodeHealth,
    settings::Settings,
    why::{Certainty, HeartbeatSource},
    zone::{Zone, ZoneState},
};
use crate::{
    cluster::{NodeName, ZoneKey},
    time::{Span, Timestamp},
};

/// How far what we see may lie from what the controller saw: both hear of a change through watches of their own.
const SLACK: Span = Span::from_secs(3);

/// What has been seen of the controller's doings.
#[derive(Clone, Debug, Default)]
pub struct Audit {
    /// The last NoExecute taint of each zone that cost a token.
    tainted: BTreeMap<ZoneKey, Timestamp>,
    doubted: BTreeSet<&'static str>,
}

impl Audit {
    /// A node has been declared silent. Doubts the grace period where it was sooner or later than that allows.
    ///
    /// Nothing can be said where we did not see the last sign of life come ourselves.
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
        // Its passes notice a sign of life up to a period before or after ours do.
        let off = period + SLACK;
        let word = if silent + off < grace {
            "earlier"
        } else if silent > grace + period + off {
            "later"
        } else {
            return None;
        };
        self.doubted.insert(flag).then(|| {
            let least = Span::from_nanos((silent - period).as_nanos().max(0));
            format!(
                "node {node} became Unknown {silent} after its last heartbeat, {word} than --{flag}={grace} allows: a \
                 value between {least} and {silent} would explain it"
            )
        })
    }

    /// A node has got its NoExecute taint at the cost of a token. Doubts the rates where it should not have yet.
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
            // The first after a zone's state changed may have been under way.
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
            return (steady && self.doubted.insert(flag)).then(|| {
                format!(
                    "node {node} was tainted NoExecute although zone {key} is {state} with eviction rate 0: another \
                     --{flag}, {value} would explain it"
                )
            });
        }
        let apart = Span::from_secs_f64(1.0 / f64::from(rate));
        let flag = match state {
            ZoneState::PartialDisruption => "secondary-node-eviction-rate",
            ZoneState::Initial | ZoneState::Normal | ZoneState::FullDisruption => "node-eviction-rate",
        };
        (gap + SLACK < apart && self.doubted.insert(flag)).then(|| {
            format!(
                "two nodes of zone {key} were tainted NoExecute {gap} apart, but --{flag}={rate} allows one every \
                 {apart}: a higher --{flag} would explain it"
            )
        })
    }

    /// A controller that begins has buckets that are full, and flags of its own.
    pub fn begin_anew(&mut self) {
        *self = Self::default();
    }
}
