//! The controller's settings on the command line, by upstream's flag names.

use clap::Args;

use crate::engine::{Origin, ServerVersion, Settings};

#[derive(Args, Clone, Debug, Default, PartialEq)]
#[command(
    next_help_heading = "Settings of the controller, as kube-controller-manager has them (default: the cluster's)"
)]
pub struct SettingsArgs {
    /// From the end of one look at all nodes to the next
    #[arg(long, value_name = "DURATION", value_parser = checked("node-monitor-period"))]
    node_monitor_period: Option<String>,
    /// How long a node may be silent
    #[arg(long, value_name = "DURATION", value_parser = checked("node-monitor-grace-period"))]
    node_monitor_grace_period: Option<String>,
    /// How long a node may be silent that never posted its status
    #[arg(long, value_name = "DURATION", value_parser = checked("node-startup-grace-period"))]
    node_startup_grace_period: Option<String>,
    /// Nodes given the NoExecute taint, per second and zone
    #[arg(long, value_name = "RATE", value_parser = checked("node-eviction-rate"))]
    node_eviction_rate: Option<String>,
    /// The same in a large zone that is partially disrupted
    #[arg(long, value_name = "RATE", value_parser = checked("secondary-node-eviction-rate"))]
    secondary_node_eviction_rate: Option<String>,
    /// Zones with more nodes than this are large
    #[arg(long, value_name = "NODES", value_parser = checked("large-cluster-size-threshold"))]
    large_cluster_size_threshold: Option<String>,
    /// The share of nodes not ready from which a zone is partially disrupted
    #[arg(long, value_name = "SHARE", value_parser = checked("unhealthy-zone-threshold"))]
    unhealthy_zone_threshold: Option<String>,
}

impl SettingsArgs {
    /// Sets what was given over what the settings hold.
    pub fn apply(&self, settings: &mut Settings) {
        let flags = [
            ("node-monitor-period", &self.node_monitor_period),
            ("node-monitor-grace-period", &self.node_monitor_grace_period),
            ("node-startup-grace-period", &self.node_startup_grace_period),
            ("node-eviction-rate", &self.node_eviction_rate),
            ("secondary-node-eviction-rate", &self.secondary_node_eviction_rate),
            ("large-cluster-size-threshold", &self.large_cluster_size_threshold),
            ("unhealthy-zone-threshold", &self.unhealthy_zone_threshold),
        ];
        for (flag, text) in flags {
            if let Some(text) = text {
                settings.set(flag, text, Origin::Override).expect("checked when it was parsed");
            }
        }
    }
}

/// Checks a flag's text by setting it somewhere.
fn checked(flag: &'static str) -> impl Fn(&str) -> Result<String, String> + Clone + Send + Sync {
    move |text| {
        let mut anywhere = Settings::defaults(ServerVersion::new(1, 36));
        match anywhere.set(flag, text, Origin::Override) {
            Ok(_) => Ok(text.into()),
            Err(bad) => Err(format!("not {}", bad.wanted)),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{Parser, error::ErrorKind};

    use super::*;
    use crate::time::Span;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        settings: SettingsArgs,
    }

    #[test]
    fn every_setting_can_be_overridden_by_its_upstream_name() {
        let flags = Settings::defaults(ServerVersion::new(1, 36)).rows().map(|(flag, ..)| flag);
        let line = Line::parse_from(std::iter::once("kordon".into()).chain(flags.map(|flag| {
            let value = if flag.ends_with("period") { "7s" } else { "7" };
            format!("--{flag}={value}")
        })));
        let mut settings = Settings::defaults(ServerVersion::new(1, 36));
        line.settings.apply(&mut settings);
        assert!(settings.rows().iter().all(|(_, _, origin)| *origin == Origin::Override));
        assert_eq!(settings.node_monitor_grace_period.value, Span::from_secs(7));
    }

    #[test]
    fn what_a_setting_does_not_take_is_told_before_anything_begins() {
        let error = Line::try_parse_from(["kordon", "--node-eviction-rate=fast"]).err().expect("no number");
        assert_eq!(error.kind(), ErrorKind::ValueValidation);
        assert!(error.to_string().contains("not a number of zero or more"), "{error}");
    }
}
