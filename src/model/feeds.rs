//! The state of the watches, and whether the engine can rely on them.

use std::collections::BTreeMap;

use crate::k8s::feed::{FeedHealth, FeedKind, FeedState};
use kordon_core::{cluster::Known, engine::WatchHealth, operation::approval::Watches};
use kordon_time::{Span, Timestamp};

/// The last reported state of every watch.
#[derive(Clone, Debug)]
pub struct Feeds {
    by_kind: BTreeMap<FeedKind, FeedHealth>,
    /// The API server's clock minus the local clock.
    pub clock_difference: Option<Span>,
    started_at: Timestamp,
    watch_health: WatchHealth,
}

impl Feeds {
    pub fn new(started_at: Timestamp) -> Self {
        let (by_kind, watch_health) = (BTreeMap::new(), WatchHealth::Live);
        Self { by_kind, clock_difference: None, started_at, watch_health }
    }

    pub fn health(&self, kind: FeedKind) -> Option<&FeedHealth> {
        self.by_kind.get(&kind)
    }

    pub fn state(&self, kind: FeedKind) -> Option<&FeedState> {
        self.health(kind).map(|health| &health.state)
    }

    pub fn iter(&self) -> impl Iterator<Item = (FeedKind, &FeedHealth)> {
        self.by_kind.iter().map(|(kind, health)| (*kind, health))
    }

    pub fn is_empty(&self) -> bool {
        self.by_kind.is_empty()
    }

    /// Stores the state of a watch. Returns the health of the watches of nodes and Leases if it has changed.
    pub fn set(&mut self, kind: FeedKind, health: FeedHealth) -> Option<WatchHealth> {
        self.by_kind.insert(kind, health);
        let watch_health = self.watch_health_after(self.watch_health);
        (std::mem::replace(&mut self.watch_health, watch_health) != watch_health).then_some(watch_health)
    }

    /// Numbers of requests made and of bytes received by all watches together.
    pub fn traffic(&self) -> (u64, u64) {
        self.by_kind.values().fold((0, 0), |(requests, bytes), health| {
            (requests.saturating_add(health.requests), bytes.saturating_add(health.bytes))
        })
    }

    pub fn relists(&self) -> u32 {
        self.by_kind.values().fold(0, |sum, health| sum.saturating_add(health.relists))
    }

    /// Whether the server has responded to the watch of a kind, or the watch is off. False while the watch connects or
    /// lists.
    pub fn has_answered(&self, kind: FeedKind) -> bool {
        match self.state(kind) {
            None | Some(FeedState::Connecting | FeedState::Listing { .. }) => false,
            Some(
                FeedState::Off | FeedState::Live | FeedState::Broken { .. } | FeedState::Forbidden { .. },
            ) => true,
        }
    }

    /// Returns how well the objects of a watch in this state are known. While the watch reconnects, the result is the
    /// earlier one, `before`.
    pub fn known(before: Known, state: &FeedState) -> Known {
        match state {
            FeedState::Live => Known::Live,
            FeedState::Off => Known::Off { flag: "--no-pods" },
            FeedState::Forbidden { error } => Known::from_refusal(error),
            FeedState::Connecting | FeedState::Listing { .. } => before,
            FeedState::Broken { since, .. } => match before {
                Known::Live => Known::Stale { since: *since },
                known @ (Known::Stale { .. }
                | Known::NotListed
                | Known::Forbidden { .. }
                | Known::Off { .. }
                | Known::Absent) => known,
            },
        }
    }

    /// Returns the state of the watches in the form that the approval of a plan checks.
    pub fn for_approval(&self) -> Watches {
        let live = |kind| self.state(kind) == Some(&FeedState::Live);
        let is_listed = |kind: &FeedKind| {
            !matches!(self.state(*kind), None | Some(FeedState::Connecting | FeedState::Listing { .. }))
        };
        Watches {
            nodes_live: live(FeedKind::Nodes),
            pods_live: live(FeedKind::Pods),
            unlisted: FeedKind::REMOVAL.iter().find(|kind| !is_listed(kind)).map(|kind| kind.to_string()),
        }
    }

    /// Time at which this watch broke; `None` unless the watch is broken.
    pub fn stale_since(&self, kind: FeedKind) -> Option<Timestamp> {
        match &self.health(kind)?.state {
            FeedState::Broken { since, .. } => Some(*since),
            FeedState::Off
            | FeedState::Connecting
            | FeedState::Listing { .. }
            | FeedState::Live
            | FeedState::Forbidden { .. } => None,
        }
    }

    /// Whether the watches of nodes and Leases are live.
    pub const fn watch_health(&self) -> WatchHealth {
        self.watch_health
    }

    /// Returns whether the watches of nodes and Leases are live. While a watch reconnects, the result is the previous
    /// one, `before`. A forbidden or disabled watch counts as disconnected since `started_at`. Leases that are missing
    /// from files do not count as disconnected, because such files still show the states of the nodes and what evicts
    /// their pods.
    fn watch_health_after(&self, before: WatchHealth) -> WatchHealth {
        let mut pending = false;
        let mut missing = None;
        for kind in [FeedKind::Nodes, FeedKind::Leases] {
            let since = match self.state(kind) {
                Some(FeedState::Broken { since, .. }) => Some(*since),
                Some(state) if kind == FeedKind::Leases && state.is_absent() => None,
                Some(FeedState::Forbidden { .. } | FeedState::Off) => Some(self.started_at),
                Some(FeedState::Live) => None,
                None | Some(FeedState::Connecting | FeedState::Listing { .. }) => {
                    pending = true;
                    None
                }
            };
            missing = [missing, since].into_iter().flatten().min();
        }
        match (missing, before) {
            // An outage begins with the first failure and lasts until the watches of nodes and Leases are both live
            // again. A later failure does not move its beginning.
            (Some(since), WatchHealth::Disconnected { since: first }) => {
                WatchHealth::Disconnected { since: since.min(first) }
            }
            (Some(since), WatchHealth::Live) => WatchHealth::Disconnected { since },
            (None, before) if pending => before,
            (None, _) => WatchHealth::Live,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STARTED_AT: Timestamp = Timestamp::from_secs(1000);

    fn feeds(nodes: FeedState, leases: FeedState, heard: i64) -> Feeds {
        let mut feeds = Feeds::new(STARTED_AT);
        for (kind, state) in [(FeedKind::Nodes, nodes), (FeedKind::Leases, leases)] {
            let last_heard = Some(Timestamp::from_secs(heard));
            feeds.set(kind, FeedHealth { state, last_heard, relists: 0, requests: 1, bytes: 10 });
        }
        feeds
    }

    fn broken(since: i64) -> FeedState {
        FeedState::Broken { since: Timestamp::from_secs(since), error: "reset".into() }
    }

    #[test]
    fn a_broken_watch_disconnecteds_until_it_is_live_again() {
        let since = Timestamp::from_secs(1090);
        let disconnected = WatchHealth::Disconnected { since };
        let listing = || FeedState::Listing { received: 5, expected: None };
        assert_eq!(
            feeds(FeedState::Live, FeedState::Live, 1099).watch_health_after(disconnected),
            WatchHealth::Live
        );
        assert_eq!(
            feeds(broken(1090), FeedState::Live, 1099).watch_health_after(WatchHealth::Live),
            disconnected
        );
        assert_eq!(
            feeds(broken(1095), FeedState::Live, 1099).watch_health_after(disconnected),
            disconnected,
            "one gap"
        );
        assert_eq!(
            feeds(listing(), FeedState::Live, 1099).watch_health_after(disconnected),
            disconnected,
            "not yet"
        );
        assert_eq!(
            feeds(listing(), FeedState::Live, 1099).watch_health_after(WatchHealth::Live),
            WatchHealth::Live
        );
    }

    #[test]
    fn leases_that_may_not_be_read_disconnected_from_the_beginning() {
        let forbidden = FeedState::Forbidden { error: "no".into() };
        let watch_health = feeds(FeedState::Live, forbidden, 1099).watch_health_after(WatchHealth::Live);
        assert_eq!(watch_health, WatchHealth::Disconnected { since: STARTED_AT });
    }
}
