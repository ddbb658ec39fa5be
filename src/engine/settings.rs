//! The controller's settings, with upstream's flag names and defaults by version, and where each came from.

use std::fmt;

use crate::time::Span;

/// The release of the control plane that is acted for or shadowed; patch releases do not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerVersion {
    pub major: u32,
    pub minor: u32,
}

impl ServerVersion {
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }

    /// Reads `v1.36.3`, `1.36`, or the two fields of `/version` joined by a dot (`1.33+`).
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim_start_matches('v').splitn(3, '.');
        let mut number = || {
            let part = parts.next()?;
            part[..part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len())].parse().ok()
        };
        Some(Self::new(number()?, number()?))
    }
}

impl fmt::Display for ServerVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A setting's value and where it came from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting<T> {
    pub value: T,
    pub origin: Origin,
}

/// Where a setting came from; a later one overrides an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// Upstream's default for the server's version.
    Default,
    /// The command line of the cluster's kube-controller-manager pod.
    Cluster,
    /// A flag or the configuration of this program.
    Override,
}

impl Origin {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Cluster => "cluster",
            Self::Override => "override",
        }
    }
}

/// The flags of kube-controller-manager that the node lifecycle controller reads (spec/node-lifecycle.md 1.1).
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub version: ServerVersion,
    /// `--node-monitor-period`: from the end of one pass to the beginning of the next.
    pub node_monitor_period: Setting<Span>,
    /// `--node-monitor-grace-period`: how long a node may be silent.
    pub node_monitor_grace_period: Setting<Span>,
    /// `--node-startup-grace-period`: the same for a node that never posted its status.
    pub node_startup_grace_period: Setting<Span>,
    /// `--node-eviction-rate`: nodes per second and zone.
    pub node_eviction_rate: Setting<f32>,
    /// `--secondary-node-eviction-rate`: the same in a large zone that is partially disrupted.
    pub secondary_node_eviction_rate: Setting<f32>,
    /// `--large-cluster-size-threshold`: zones with more nodes than this are large.
    pub large_cluster_size_threshold: Setting<i32>,
    /// `--unhealthy-zone-threshold`: the share of nodes not ready from which a zone is partially disrupted.
    pub unhealthy_zone_threshold: Setting<f32>,
}

/// A flag that could not be read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("--{flag}={text} is not {wanted}")]
pub struct BadSetting {
    pub flag: String,
    pub text: String,
    pub wanted: &'static str,
}

impl Settings {
    /// Upstream's defaults for a release.
    pub fn defaults(version: ServerVersion) -> Self {
        fn default<T>(value: T) -> Setting<T> {
            Setting { value, origin: Origin::Default }
        }
        let grace = if version >= ServerVersion::new(1, 32) { 50 } else { 40 };
        Self {
            version,
            node_monitor_period: default(Span::from_secs(5)),
            node_monitor_grace_period: default(Span::from_secs(grace)),
            node_startup_grace_period: default(Span::from_secs(60)),
            node_eviction_rate: default(0.1),
            secondary_node_eviction_rate: default(0.01),
            large_cluster_size_threshold: default(50),
            unhealthy_zone_threshold: default(0.55),
        }
    }

    /// Sets the flag (without dashes) from its text, unless it has been set from a later origin.
    ///
    /// # Errors
    /// The text is not what the flag takes. A flag of another name is none of the controller's: Ok(false).
    pub fn set(&mut self, flag: &str, text: &str, origin: Origin) -> Result<bool, BadSetting> {
        let bad = |wanted| BadSetting { flag: flag.into(), text: text.into(), wanted };
        let span = || {
            let parsed =
                humantime::parse_duration(text).ok().map(Span::from).filter(|span| *span > Span::ZERO);
            parsed.ok_or_else(|| bad("a duration above zero, as 5s or 1m30s"))
        };
        let rate = || {
            let parsed = text.parse().ok().filter(|rate: &f32| rate.is_finite() && *rate >= 0.0);
            parsed.ok_or_else(|| bad("a number of zero or more"))
        };
        match flag {
            "node-monitor-period" => self.node_monitor_period.replace(span()?, origin),
            "node-monitor-grace-period" => self.node_monitor_grace_period.replace(span()?, origin),
            "node-startup-grace-period" => self.node_startup_grace_period.replace(span()?, origin),
            "node-eviction-rate" => self.node_eviction_rate.replace(rate()?, origin),
            "secondary-node-eviction-rate" => self.secondary_node_eviction_rate.replace(rate()?, origin),
            "unhealthy-zone-threshold" => self.unhealthy_zone_threshold.replace(rate()?, origin),
            "large-cluster-size-threshold" => {
                let size = text.parse().map_err(|_| bad("a whole number"))?;
                self.large_cluster_size_threshold.replace(size, origin);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Every flag with its value as upstream would write it, and where it came from, in upstream's order.
    pub fn rows(&self) -> [(&'static str, String, Origin); 7] {
        fn row<T>(
            flag: &'static str,
            setting: &Setting<T>,
            text: impl Fn(&T) -> String,
        ) -> (&'static str, String, Origin) {
            (flag, text(&setting.value), setting.origin)
        }
        [
            row("node-monitor-period", &self.node_monitor_period, Span::to_string),
            row("node-monitor-grace-period", &self.node_monitor_grace_period, Span::to_string),
            row("node-startup-grace-period", &self.node_startup_grace_period, Span::to_string),
            row("node-eviction-rate", &self.node_eviction_rate, f32::to_string),
            row("secondary-node-eviction-rate", &self.secondary_node_eviction_rate, f32::to_string),
            row("large-cluster-size-threshold", &self.large_cluster_size_threshold, i32::to_string),
            row("unhealthy-zone-threshold", &self.unhealthy_zone_threshold, f32::to_string),
        ]
    }

    /// The rules of behaviour that changed between releases.
    pub fn rules(&self) -> Rules {
        Rules::of(self.version)
    }
}

impl<T> Setting<T> {
    fn replace(&mut self, value: T, origin: Origin) {
        if origin >= self.origin {
            *self = Self { value, origin };
        }
    }
}

/// What the controllers do differently from release to release (spec/node-lifecycle.md, version timeline).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Tainting goes by the Ready condition as rewritten in the same pass (1.34), not as observed.
    pub taints_by_current_ready: bool,
    /// A finished deletion leaves its key behind, which refuses later timers (up to 1.32).
    pub leaves_tombstones: bool,
    /// An evicted pod first gets the condition DisruptionTarget (beta, on, from 1.26).
    pub marks_disruption_target: bool,
    /// Nodes with "master" names are left out of zone statistics (up to 1.20).
    pub excludes_master_names: bool,
    /// The component that taint eviction's events name.
    pub taint_eviction_source: &'static str,
}

impl Rules {
    pub fn of(version: ServerVersion) -> Self {
        let since = |minor| version >= ServerVersion::new(1, minor);
        Self {
            taints_by_current_ready: since(34),
            leaves_tombstones: !since(33),
            marks_disruption_target: since(26),
            excludes_master_names: !since(21),
            taint_eviction_source: if since(29) { "taint-eviction-controller" } else { "taint-controller" },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_every_provider_parse() {
        for text in ["v1.36.3", "1.36", "1.36+", "v1.36.3-eks-1"] {
            assert_eq!(ServerVersion::parse(text), Some(ServerVersion::new(1, 36)), "{text}");
        }
        assert_eq!(ServerVersion::parse("latest"), None);
    }

    #[test]
    fn the_default_grace_period_grew_in_1_32() {
        let grace = |minor| Settings::defaults(ServerVersion::new(1, minor)).node_monitor_grace_period.value;
        assert_eq!((grace(31), grace(32)), (Span::from_secs(40), Span::from_secs(50)));
    }

    #[test]
    fn a_later_origin_wins_whatever_the_order() {
        let mut settings = Settings::defaults(ServerVersion::new(1, 36));
        assert_eq!(settings.set("node-monitor-period", "2s", Origin::Override), Ok(true));
        assert_eq!(settings.set("node-monitor-period", "7s", Origin::Cluster), Ok(true));
        assert_eq!(settings.node_monitor_period.value, Span::from_secs(2));
        assert_eq!(settings.set("leader-elect", "true", Origin::Cluster), Ok(false));
    }

    #[test]
    fn what_a_flag_does_not_take_is_named() {
        let mut settings = Settings::defaults(ServerVersion::new(1, 36));
        let error = settings.set("node-eviction-rate", "fast", Origin::Override).expect_err("no number");
        assert_eq!(error.to_string(), "--node-eviction-rate=fast is not a number of zero or more");
        assert!(settings.set("node-monitor-period", "0s", Origin::Override).is_err(), "would never end");
        assert_eq!(settings, Settings::defaults(ServerVersion::new(1, 36)));
    }
}
