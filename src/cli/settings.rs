//! The controller's settings on the command line, with upstream's flag names.

use clap::Args;

use super::exit::CliError;
use kordon_core::{
    counterfactual::BadAlternative,
    engine::{Origin, ServerVersion, Settings},
};

#[derive(Args, Clone, Debug, Default, PartialEq)]
#[command(
    next_help_heading = "Controller settings, named as in kube-controller-manager (default: the cluster's own)"
)]
pub struct SettingsArgs {
    /// Pause between two checks of all nodes
    #[arg(long, value_name = "DURATION", value_parser = checked("node-monitor-period"))]
    node_monitor_period: Option<String>,
    /// How long a node may send no heartbeat before it becomes Unknown
    #[arg(long, value_name = "DURATION", value_parser = checked("node-monitor-grace-period"))]
    node_monitor_grace_period: Option<String>,
    /// How long a node that has never reported its status may send no heartbeat
    #[arg(long, value_name = "DURATION", value_parser = checked("node-startup-grace-period"))]
    node_startup_grace_period: Option<String>,
    /// Nodes that get the NoExecute taint, per second and zone
    #[arg(long, value_name = "RATE", value_parser = checked("node-eviction-rate"))]
    node_eviction_rate: Option<String>,
    /// Nodes that get the NoExecute taint in a large, partially disrupted zone, per second and zone
    #[arg(long, value_name = "RATE", value_parser = checked("secondary-node-eviction-rate"))]
    secondary_node_eviction_rate: Option<String>,
    /// Zones with more nodes than this are large
    #[arg(long, value_name = "NODES", value_parser = checked("large-cluster-size-threshold"))]
    large_cluster_size_threshold: Option<String>,
    /// A zone is partially disrupted if at least this share of its nodes is not ready
    #[arg(long, value_name = "SHARE", value_parser = checked("unhealthy-zone-threshold"))]
    unhealthy_zone_threshold: Option<String>,
    /// Whether NoExecute taints evict pods (up to 1.26); if not, --pod-eviction-timeout applies
    #[arg(long, value_name = "BOOL", value_parser = checked("enable-taint-manager"))]
    enable_taint_manager: Option<String>,
    /// How long pods stay on a node that is not ready, with --enable-taint-manager=false (up to 1.26)
    #[arg(long, value_name = "DURATION", value_parser = checked("pod-eviction-timeout"))]
    pod_eviction_timeout: Option<String>,
    /// How many terminated pods are kept; with 0 or less all are kept
    #[arg(long, value_name = "PODS", allow_hyphen_values = true,
        value_parser = checked("terminated-pod-gc-threshold"))]
    terminated_pod_gc_threshold: Option<String>,
    /// Controllers that run: names, -names to exclude, * for all others
    #[arg(long, value_name = "LIST", allow_hyphen_values = true, value_parser = checked("controllers"))]
    controllers: Option<String>,
    /// Zones in which no node is ready while others have ready nodes: evict as upstream does, or pause (kordon's own)
    #[arg(long, value_name = "evict|pause", value_parser = checked("full-disruption"))]
    full_disruption: Option<String>,
}

impl SettingsArgs {
    /// Overrides settings of a known release with the given flags.
    ///
    /// # Errors
    /// The release does not have one of the flags.
    pub fn apply_to_recorded(&self, settings: &mut Settings) -> Result<(), CliError> {
        self.apply(settings);
        match self.given().find(|(flag, _)| !settings.has_flag(flag)) {
            Some((flag, _)) => {
                let version = settings.version;
                let removed = BadAlternative::RemovedFlag { flag: flag.into(), version };
                Err(CliError::Usage(removed.to_string()))
            }
            None => Ok(()),
        }
    }

    /// Overrides settings with the given flags.
    pub fn apply(&self, settings: &mut Settings) {
        for (flag, text) in self.given() {
            settings.set(flag, text, Origin::Override).expect("checked when it was parsed");
        }
    }

    fn given(&self) -> impl Iterator<Item = (&'static str, &String)> {
        let flags = [
            ("node-monitor-period", &self.node_monitor_period),
            ("node-monitor-grace-period", &self.node_monitor_grace_period),
            ("node-startup-grace-period", &self.node_startup_grace_period),
            ("node-eviction-rate", &self.node_eviction_rate),
            ("secondary-node-eviction-rate", &self.secondary_node_eviction_rate),
            ("large-cluster-size-threshold", &self.large_cluster_size_threshold),
            ("unhealthy-zone-threshold", &self.unhealthy_zone_threshold),
            ("enable-taint-manager", &self.enable_taint_manager),
            ("pod-eviction-timeout", &self.pod_eviction_timeout),
            ("terminated-pod-gc-threshold", &self.terminated_pod_gc_threshold),
            ("controllers", &self.controllers),
            ("full-disruption", &self.full_disruption),
        ];
        flags.into_iter().filter_map(|(flag, text)| Some((flag, text.as_ref()?)))
    }
}

/// Checks the value of a flag by applying it to default settings.
fn checked(flag: &'static str) -> impl Fn(&str) -> Result<String, String> + Clone + Send + Sync {
    move |text| {
        let mut defaults = Settings::defaults(ServerVersion::new(1, 36));
        match defaults.set(flag, text, Origin::Override) {
            Ok(_) => Ok(text.into()),
            Err(bad) => Err(format!("not {}", bad.wanted)),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{Parser, error::ErrorKind};

    use super::*;
    use kordon_time::Span;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        settings: SettingsArgs,
    }

    #[test]
    fn every_setting_can_be_overridden_by_its_upstream_name() {
        let value = |flag: &str| match flag {
            "enable-taint-manager" => "false",
            "controllers" => "*",
            flag if flag.ends_with("period") || flag.ends_with("timeout") => "7s",
            _ => "7",
        };
        // Kubernetes 1.26 is the latest release that has all settings.
        let mut settings = Settings::defaults(ServerVersion::new(1, 26));
        let flags = settings.rows().into_iter().map(|(flag, ..)| format!("--{flag}={}", value(flag)));
        let line = Line::parse_from(std::iter::once("kordon".into()).chain(flags));
        line.settings.apply(&mut settings);
        assert!(settings.rows().iter().all(|(_, _, origin)| *origin == Origin::Override));
        assert_eq!(settings.node_monitor_grace_period.value, Span::from_secs(7));
    }

    #[test]
    fn an_invalid_setting_is_refused_while_arguments_are_parsed() {
        let error = Line::try_parse_from(["kordon", "--node-eviction-rate=fast"]).err().expect("no number");
        assert_eq!(error.kind(), ErrorKind::ValueValidation);
        assert!(error.to_string().contains("not a number of zero or more"), "{error}");
    }
}
