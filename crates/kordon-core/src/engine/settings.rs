//! The controller's settings: upstream's flag names, defaults by version, and the origin of each value.

use std::fmt;

use minicbor::{Decode, Encode};

use kordon_time::Span;

/// The release of the control plane; patch releases do not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerVersion {
    pub major: u32,
    pub minor: u32,
}

impl ServerVersion {
    /// The newest release whose controllers and scheduler have been compared with kordon's rules.
    pub const NEWEST_TESTED: Self = Self::new(1, 38);

    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }

    /// Parses a release, such as `v1.36.3`, `1.36`, or the two fields of `/version` joined by a dot (`1.33+`).
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

/// The value of a setting and its origin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting<T> {
    pub value: T,
    pub origin: Origin,
}

/// Where a setting comes from, in ascending order of precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[cbor(index_only)]
pub enum Origin {
    /// Upstream's default for the server's version.
    #[n(0)]
    Default,
    /// The command line of the cluster's kube-controller-manager pod.
    #[n(1)]
    Cluster,
    /// What the active `kordon controller` states on its Lease.
    #[n(4)]
    Lease,
    /// The configuration of this program.
    #[n(2)]
    Configuration,
    /// A flag of this program.
    #[n(3)]
    Override,
}

impl Origin {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Cluster => "cluster",
            Self::Lease => "lease",
            Self::Configuration => "configuration",
            Self::Override => "override",
        }
    }
}

/// The flags of kube-controller-manager that the node lifecycle controller reads (docs/upstream/node-lifecycle.md#1.1).
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub version: ServerVersion,
    /// `--node-monitor-period`: from the end of one pass to the start of the next.
    pub node_monitor_period: Setting<Span>,
    /// `--node-monitor-grace-period`: how long a node may send no heartbeat.
    pub node_monitor_grace_period: Setting<Span>,
    /// `--node-startup-grace-period`: how long a node that never posted its status may send no heartbeat.
    pub node_startup_grace_period: Setting<Span>,
    /// `--node-eviction-rate`: nodes per second and zone.
    pub node_eviction_rate: Setting<f32>,
    /// `--secondary-node-eviction-rate`: nodes per second in a large zone that is partially disrupted.
    pub secondary_node_eviction_rate: Setting<f32>,
    /// `--large-cluster-size-threshold`: zones with more nodes than this are large.
    pub large_cluster_size_threshold: Setting<i32>,
    /// `--unhealthy-zone-threshold`: a zone is partially disrupted from this share of not-ready nodes on.
    pub unhealthy_zone_threshold: Setting<f32>,
    /// `--enable-taint-manager`: whether NoExecute taints evict pods; if not, legacy mode does. The flag was removed in
    /// 1.27. Since then, the value is always true.
    pub enable_taint_manager: Setting<bool>,
    /// `--pod-eviction-timeout`: in legacy mode, how long pods stay on a node that is not ready. The flag was removed
    /// in 1.27.
    pub pod_eviction_timeout: Setting<Span>,
    /// `--terminated-pod-gc-threshold`: how many finished pods are kept. With zero or less, all finished pods are kept.
    pub terminated_pod_gc_threshold: Setting<i32>,
    /// `--controllers`: which controllers run.
    pub controllers: Setting<Controllers>,
    /// `--full-disruption`: what happens to a zone in which no node is ready while other zones have ready nodes. Only
    /// kordon has this flag: kube-controller-manager always evicts.
    pub full_disruption: Setting<FullDisruptionPolicy>,
}

/// What happens to a zone in which no node is ready, while other zones have ready nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FullDisruptionPolicy {
    /// The zone's nodes get their NoExecute taint at the normal rate, as upstream does.
    Evict,
    /// The zone is not emptied: its nodes get no NoExecute taint, and lose those that they have.
    Pause,
}

impl fmt::Display for FullDisruptionPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Evict => "evict",
            Self::Pause => "pause",
        })
    }
}

/// Which controllers run in kube-controller-manager, as far as kordon simulates them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Controllers {
    pub node_lifecycle: bool,
    /// The taint eviction controller; before 1.29 a part of the node lifecycle controller.
    pub taint_eviction: bool,
    pub pod_gc: bool,
}

impl Controllers {
    pub const ALL: Self = Self { node_lifecycle: true, taint_eviction: true, pod_gc: true };
    /// The controllers that kordon runs when it is the controller.
    pub const OWN: Self = Self { pod_gc: false, ..Self::ALL };

    /// Parses the value of `--controllers`: names, names with a leading minus, and `*` for all others. Accepts the
    /// names of 1.28 and later, and the older names.
    pub fn parse(text: &str) -> Self {
        let words: Vec<&str> = text.split(',').map(str::trim).collect();
        let runs = |names: &[&str]| {
            let named = words.iter().find(|word| names.contains(&word.trim_start_matches('-')));
            named.map_or_else(|| words.contains(&"*"), |word| !word.starts_with('-'))
        };
        Self {
            node_lifecycle: runs(&["node-lifecycle-controller", "nodelifecycle"]),
            taint_eviction: runs(&["taint-eviction-controller"]),
            pod_gc: runs(&["pod-garbage-collector-controller", "podgc"]),
        }
    }
}

impl Controllers {
    /// The controllers that run in both `self` and `other`.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            node_lifecycle: self.node_lifecycle && other.node_lifecycle,
            taint_eviction: self.taint_eviction && other.taint_eviction,
            pod_gc: self.pod_gc && other.pod_gc,
        }
    }

    /// The names of the controllers that run, as in kube-controller-manager.
    pub fn names(self) -> Vec<&'static str> {
        let all = [
            (self.node_lifecycle, "node-lifecycle-controller"),
            (self.taint_eviction, "taint-eviction-controller"),
            (self.pod_gc, "pod-garbage-collector-controller"),
        ];
        all.into_iter().filter(|(runs, _)| *runs).map(|(_, name)| name).collect()
    }

    /// Value of `--controllers` for a kube-controller-manager that runs all controllers except those in `self`:
    /// `*,-node-lifecycle-controller`.
    pub fn exclusion(self) -> String {
        self.names().iter().fold("*".into(), |text, name| format!("{text},-{name}"))
    }
}

impl fmt::Display for Controllers {
    /// Writes the value of `--controllers`: `*`, followed by the controllers that do not run, each with a minus.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node_lifecycle, taint_eviction, pod_gc } = *self;
        let all = [
            (node_lifecycle, ",-node-lifecycle-controller"),
            (taint_eviction, ",-taint-eviction-controller"),
            (pod_gc, ",-pod-garbage-collector-controller"),
        ];
        let left_out = all.iter().filter(|(runs, _)| !runs).map(|(_, text)| *text);
        f.pad(&format!("*{}", left_out.collect::<String>()))
    }
}

/// A flag with an invalid value.
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
            enable_taint_manager: default(true),
            pod_eviction_timeout: default(Span::from_secs(300)),
            terminated_pod_gc_threshold: default(12_500),
            controllers: default(Controllers::ALL),
            full_disruption: default(FullDisruptionPolicy::Evict),
        }
    }

    /// Sets a flag, given without dashes, from the text of its value. Does nothing if an [`Origin`] of higher
    /// precedence has set the flag. Returns whether the controller has a flag of this name.
    ///
    /// # Errors
    /// The text is not a valid value of the flag.
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
            "enable-taint-manager" => {
                let on = text.parse().map_err(|_| bad("true or false"))?;
                self.enable_taint_manager.replace(on, origin);
            }
            "pod-eviction-timeout" => self.pod_eviction_timeout.replace(span()?, origin),
            "terminated-pod-gc-threshold" => {
                let pods = text.parse().map_err(|_| bad("a whole number"))?;
                self.terminated_pod_gc_threshold.replace(pods, origin);
            }
            "controllers" => self.controllers.replace(Controllers::parse(text), origin),
            FULL_DISRUPTION => {
                let policy = match text {
                    "evict" => FullDisruptionPolicy::Evict,
                    "pause" => FullDisruptionPolicy::Pause,
                    _ => return Err(bad("evict or pause")),
                };
                self.full_disruption.replace(policy, origin);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Takes over the `--full-disruption` that the active `kordon controller` states on its Lease; `None` if it states
    /// none, or none is active. A flag or the configuration of this program has precedence. Returns whether the settings
    /// change.
    pub fn follow_lease(&mut self, stated: Option<&str>) -> bool {
        let before = self.full_disruption;
        if before.origin == Origin::Lease {
            self.full_disruption = Setting { value: FullDisruptionPolicy::Evict, origin: Origin::Default };
        }
        if let Some(text) = stated {
            // A newer kordon may state a value that this one does not know.
            let _ = self.set(FULL_DISRUPTION, text, Origin::Lease);
        }
        self.full_disruption != before
    }

    /// Every flag of the release, with its value in words, and its origin. A flag of kordon's own is listed if it is
    /// set.
    pub fn rows(&self) -> Vec<(&'static str, String, Origin)> {
        self.rows_with(|span| span.to_string())
    }

    /// Every flag of the release, with its value exactly as [`Settings::set`] reads it, and its origin.
    pub fn flags(&self) -> Vec<(&'static str, String, Origin)> {
        self.rows_with(|span| humantime::format_duration(span.to_std()).to_string())
    }

    /// Whether only kordon has a flag of this name, and no release of kube-controller-manager does.
    pub fn is_own_flag(flag: &str) -> bool {
        flag == FULL_DISRUPTION
    }

    /// Whether the release has a flag of this name. Flags of kordon's own exist in every release.
    pub fn has_flag(&self, flag: &str) -> bool {
        Self::is_own_flag(flag) || self.rows().iter().any(|(name, ..)| *name == flag)
    }

    fn rows_with(&self, duration: impl Fn(Span) -> String) -> Vec<(&'static str, String, Origin)> {
        fn row<T: ToString>(flag: &'static str, setting: &Setting<T>) -> (&'static str, String, Origin) {
            (flag, setting.value.to_string(), setting.origin)
        }
        let time = |flag, setting: &Setting<Span>| (flag, duration(setting.value), setting.origin);
        let mut rows = vec![
            time("node-monitor-period", &self.node_monitor_period),
            time("node-monitor-grace-period", &self.node_monitor_grace_period),
            time("node-startup-grace-period", &self.node_startup_grace_period),
            row("node-eviction-rate", &self.node_eviction_rate),
            row("secondary-node-eviction-rate", &self.secondary_node_eviction_rate),
            row("large-cluster-size-threshold", &self.large_cluster_size_threshold),
            row("unhealthy-zone-threshold", &self.unhealthy_zone_threshold),
        ];
        if self.version < TAINTS_ONLY {
            rows.push(row("enable-taint-manager", &self.enable_taint_manager));
            rows.push(time("pod-eviction-timeout", &self.pod_eviction_timeout));
        }
        rows.push(row("terminated-pod-gc-threshold", &self.terminated_pod_gc_threshold));
        rows.push(row("controllers", &self.controllers));
        if self.full_disruption.origin != Origin::Default {
            rows.push(row(FULL_DISRUPTION, &self.full_disruption));
        }
        rows
    }

    /// Adapts the settings for kordon as the controller. kordon then runs `Controllers::OWN`, unless its own
    /// configuration or command line says otherwise. The controllers that the cluster's kube-controller-manager runs do
    /// not matter.
    #[must_use]
    pub fn as_controller(mut self) -> Self {
        if self.controllers.origin < Origin::Configuration {
            self.controllers.value = Controllers::OWN;
        }
        self
    }

    /// The rules of the controllers' behaviour that changed between releases.
    pub fn rules(&self) -> ControllerRules {
        let Controllers { node_lifecycle, taint_eviction, .. } = self.controllers.value;
        let rules = ControllerRules::for_version(self.version);
        let legacy = self.version < TAINTS_ONLY && !self.enable_taint_manager.value;
        let separate = self.version >= ServerVersion::new(1, 29);
        ControllerRules {
            profile: if legacy { Profile::Legacy } else { Profile::Taint },
            evicts_by_taint: !legacy && if separate { taint_eviction } else { node_lifecycle },
            ..rules
        }
    }
}

/// Name of the flag that only kordon has, not kube-controller-manager.
const FULL_DISRUPTION: &str = "full-disruption";

/// The first release without legacy mode.
const TAINTS_ONLY: ServerVersion = ServerVersion::new(1, 27);

/// How the controller evicts the pods of a node that is not ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Adds NoExecute taints to nodes, at the zone's rate. Each pod's tolerations decide when the pod is evicted.
    Taint,
    /// `--enable-taint-manager=false`: deletes all pods of the node after `--pod-eviction-timeout`, at the zone's rate.
    Legacy,
}

impl<T> Setting<T> {
    fn replace(&mut self, value: T, origin: Origin) {
        if origin >= self.origin {
            *self = Self { value, origin };
        }
    }
}

/// What the controllers do differently from release to release (docs/upstream/node-lifecycle.md#0, version timeline).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControllerRules {
    pub profile: Profile,
    /// Whether NoExecute taints evict pods at all.
    pub evicts_by_taint: bool,
    /// Whether a pass taints by the Ready condition that it has just written (from 1.34), not by the one that it found.
    pub taints_by_current_ready: bool,
    /// Whether a finished deletion leaves a tombstone that keeps later timers of the pod from starting (up to 1.32).
    pub leaves_tombstones: bool,
    /// Whether an evicted pod first gets the condition DisruptionTarget (from 1.26).
    pub marks_disruption_target: bool,
    /// Whether zone statistics exclude nodes with "master" names (up to 1.20).
    pub excludes_master_names: bool,
    /// Whether zone statistics exclude nodes with the label `node.kubernetes.io/exclude-disruption` (from 1.19).
    pub excludes_labelled: bool,
    /// Whether the pod garbage collector honours the out-of-service taint (from 1.26).
    pub collects_out_of_service: bool,
    /// Whether the pod garbage collector sets a pod to Failed before it deletes the pod (from 1.26).
    pub fails_collected: bool,
    /// Whether the live Lease is read again before a node becomes Unknown (from 1.37).
    pub rereads_lease: bool,
    /// Whether the health of a node is dropped when its Node object is deleted (from 1.38). Before 1.38, a new Node of
    /// the same name takes over the old health.
    pub forgets_deleted_nodes: bool,
    /// The source component of taint eviction's events.
    pub taint_eviction_source: &'static str,
}

impl ControllerRules {
    pub fn for_version(version: ServerVersion) -> Self {
        let since = |minor| version >= ServerVersion::new(1, minor);
        Self {
            profile: Profile::Taint,
            evicts_by_taint: true,
            taints_by_current_ready: since(34),
            leaves_tombstones: !since(33),
            marks_disruption_target: since(26),
            excludes_master_names: !since(21),
            excludes_labelled: since(19),
            collects_out_of_service: since(26),
            fails_collected: since(26),
            rereads_lease: since(37),
            forgets_deleted_nodes: since(38),
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
    fn controllers_are_written_as_the_flag_is() {
        let parse = Controllers::parse;
        assert_eq!((parse("*"), parse("")), (Controllers::ALL, parse("-*")));
        assert_eq!(parse("*,-podgc"), Controllers::OWN);
        assert_eq!(parse("nodelifecycle,taint-eviction-controller"), Controllers::OWN);
        assert_eq!(parse("*,-node-lifecycle-controller").to_string(), "*,-node-lifecycle-controller");
        assert_eq!(parse(&Controllers::OWN.to_string()), Controllers::OWN);
    }

    #[test]
    fn there_is_a_legacy_mode_up_to_1_26_only() {
        let profile = |minor| {
            let mut settings = Settings::defaults(ServerVersion::new(1, minor));
            settings.set("enable-taint-manager", "false", Origin::Cluster).expect("a flag of old");
            (settings.rules().profile, settings.rules().evicts_by_taint, settings.rows().len())
        };
        assert_eq!(profile(26), (Profile::Legacy, false, 11));
        assert_eq!(profile(27), (Profile::Taint, true, 9));
    }

    #[test]
    fn as_the_controller_the_managers_own_choice_of_controllers_does_not_matter() {
        let mut settings = Settings::defaults(ServerVersion::new(1, 36));
        settings.set("controllers", "*,-node-lifecycle-controller", Origin::Cluster).expect("a list");
        assert_eq!(settings.clone().as_controller().controllers.value, Controllers::OWN);
        settings.set("controllers", "*", Origin::Override).expect("a list");
        assert_eq!(settings.as_controller().controllers.value, Controllers::ALL);
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
