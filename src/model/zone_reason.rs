//! Why a zone has its state and its eviction rate.

use super::{NodeState, StateRole};
use kordon_core::engine::{FullDisruptionPolicy, Settings, ZoneState, ZoneView, is_every_zone_down};

/// Returns the state of the worst node of a zone that is not disrupted, if that node needs attention. `states` are the
/// states of the zone's nodes.
pub fn worst_node(zone: &ZoneView, states: &[NodeState]) -> Option<NodeState> {
    match zone.state {
        ZoneState::Normal | ZoneState::Initial => {
            NodeState::worst(states).filter(|state| state.role() < StateRole::Maintenance)
        }
        ZoneState::PartialDisruption | ZoneState::FullDisruption => None,
    }
}

/// Why a zone has its eviction rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateReason {
    /// No node is ready in any zone (upstream's master disruption mode).
    AllZonesDown,
    /// The zone is partly down, and large enough for the secondary rate.
    LargeZonePartlyDown,
    /// The zone is partly down, and too small for the secondary rate.
    SmallZonePartlyDown,
    /// No node of the zone is ready, but nodes of other zones are.
    OtherZonesHealthy,
    /// No node of the zone is ready, but nodes of other zones are. The zone's nodes get no NoExecute taint, because of
    /// `--full-disruption=pause` or an eviction rate of 0.
    ZonePaused,
    NotDisrupted,
}

impl RateReason {
    /// Finds the reason for the eviction rate of a zone. `zones` are all zones of the cluster.
    pub fn new(zone: &ZoneView, zones: &[ZoneView]) -> Self {
        match zone.state {
            _ if is_every_zone_down(zones) => Self::AllZonesDown,
            ZoneState::PartialDisruption if zone.rate > 0.0 => Self::LargeZonePartlyDown,
            ZoneState::PartialDisruption => Self::SmallZonePartlyDown,
            ZoneState::FullDisruption if zone.is_paused() => Self::ZonePaused,
            ZoneState::FullDisruption => Self::OtherZonesHealthy,
            ZoneState::Normal | ZoneState::Initial => Self::NotDisrupted,
        }
    }

    /// Kind of eviction rate: `paused`, `reduced`, `stopped` or `normal`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::AllZonesDown | Self::ZonePaused => "paused",
            Self::LargeZonePartlyDown => "reduced",
            Self::SmallZonePartlyDown => "stopped",
            Self::OtherZonesHealthy | Self::NotDisrupted => "normal",
        }
    }

    /// The reason in a few words; `None` if the zone is not disrupted.
    pub const fn text(self) -> Option<&'static str> {
        match self {
            Self::AllZonesDown => Some("all zones down"),
            Self::LargeZonePartlyDown => Some("large zone partly down"),
            Self::SmallZonePartlyDown => Some("small zone partly down"),
            Self::OtherZonesHealthy => Some("other zones healthy"),
            Self::ZonePaused => Some("zone wholly down"),
            Self::NotDisrupted => None,
        }
    }
}

/// Why a zone has its state and rate, and what would change them. `zones` are all zones of the cluster, and `silent` is
/// the number of silent nodes in `zone`.
pub fn zone_reason(zone: &ZoneView, zones: &[ZoneView], settings: &Settings, silent: usize) -> String {
    let (not_ready, size) = (zone.not_ready, zone.size);
    let threshold = 100.0 * settings.unhealthy_zone_threshold.value;
    let large = settings.large_cluster_size_threshold.value;
    if is_every_zone_down(zones) {
        return "no node is ready in any zone (master disruption mode): the controller removes its NoExecute taints and \
                evicts no pods; once any node is ready again, every node gets a fresh grace period"
            .into();
    }
    if zone.is_outdated() {
        return format!(
            "as the controller's last pass left it; {not_ready} of {size} nodes are not ready now, and the next pass makes it {}",
            zone.next_state
        );
    }
    match zone.state {
        ZoneState::Initial => "new: the next monitor pass decides its state".into(),
        ZoneState::Normal if not_ready > 0 => format!(
            "{not_ready} of {size} nodes are not ready: fewer than {threshold:.0}%, or fewer than 3; queued nodes get \
             their NoExecute taint at the normal rate"
        ),
        ZoneState::Normal if silent > 0 => format!(
            "all nodes are Ready as far as anyone has said, but {silent} of {size} are silent: the controller declares each \
             Unknown when its grace period is over"
        ),
        ZoneState::Normal => "all nodes are ready".into(),
        ZoneState::PartialDisruption if zone.rate > 0.0 => format!(
            "{not_ready} of {size} nodes are not ready: at least {threshold:.0}%; a zone of more than {large} nodes \
             continues at the secondary rate"
        ),
        ZoneState::PartialDisruption => format!(
            "{not_ready} of {size} nodes are not ready: at least {threshold:.0}%; in a zone of at most {large} nodes no \
             node gets a NoExecute taint until fewer are not ready"
        ),
        ZoneState::FullDisruption if settings.full_disruption.value == FullDisruptionPolicy::Pause => {
            format!(
                "none of its {size} nodes is ready, and --full-disruption=pause keeps their pods: no node gets a NoExecute taint \
             until one of them is ready"
            )
        }
        ZoneState::FullDisruption => format!(
            "none of its {size} nodes is ready, but nodes of other zones are: its nodes get their NoExecute taint at the \
             normal rate"
        ),
    }
}
