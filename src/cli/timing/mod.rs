//! `kordon timing`: compares sets of flags by how soon they detect a dead node and evict its pods, and by their load
//! and risk.

mod report;
mod table;

use clap::{Args, ValueEnum};

use super::{
    connection::ConnectionArgs, exit::CliError, once::Patience, output::OutputArgs, settings::SettingsArgs,
    source::SourceArgs, span,
};
use crate::k8s::settings::lease_duration;
use kordon_core::{
    engine::{ServerVersion, Settings},
    timing::{ClusterSize, HeartbeatKind, KubeletFlags, PROFILE_NAMES, Timing, TimingProfile},
};
use kordon_time::Span;
use report::TimingReport;

/// Names of two profiles: the cluster's own settings, and the given flags.
const CLUSTER: &str = "cluster";
const FLAGS: &str = "flags";

#[derive(Args, Debug)]
pub struct TimingArgs {
    #[command(flatten)]
    output: OutputArgs,
    /// Number of nodes in the cluster, for writes per minute and for blips
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    nodes: u32,
    /// Pods on each node
    #[arg(long, value_name = "P", default_value_t = 30, value_parser = clap::value_parser!(u32).range(0..=500))]
    pods_per_node: u32,
    /// Zones over which the nodes are spread evenly
    #[arg(long, value_name = "Z", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    zones: u32,
    /// Two profiles side by side, with their differences: default, fast, medium, low, cluster, flags
    #[arg(long, num_args = 2, value_names = ["A", "B"], value_parser = profile_name)]
    compare: Option<Vec<String>>,
    /// Length of a blip, an outage of the network that ends; may be repeated
    #[arg(long, value_name = "DURATION", default_values = ["1m", "6m", "10m"], value_parser = positive)]
    blip: Vec<Span>,
    /// Release whose rules and defaults apply, without asking a cluster (default: the cluster's, else 1.36)
    #[arg(long, value_name = "VERSION", value_parser = version)]
    kubernetes_version: Option<ServerVersion>,
    /// Time to wait for a cluster's settings
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = span::span)]
    timeout: Span,
    /// How long a replacement takes from its creation until it runs
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = span::span)]
    pod_startup: Span,
    /// Seconds for which pods tolerate an unreachable node, as the API server's flag
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u32).range(0..=86_400))]
    default_unreachable_toleration_seconds: u32,
    #[command(flatten)]
    kubelet: KubeletArgs,
    #[command(flatten)]
    settings: SettingsArgs,
    #[command(flatten)]
    source: SourceArgs,
}

#[derive(Args, Clone, Debug, Default, PartialEq)]
#[command(next_help_heading = "Kubelet settings")]
struct KubeletArgs {
    /// What kubelets write as their heartbeat
    #[arg(long, value_enum, value_name = "KIND", default_value_t = HeartbeatArg::Lease)]
    heartbeat: HeartbeatArg,
    /// How often a kubelet computes its node's status, and with --heartbeat=status also writes it
    #[arg(long, value_name = "DURATION", value_parser = positive)]
    node_status_update_frequency: Option<Span>,
    /// How often a kubelet writes an unchanged status of its node, with --heartbeat=lease
    #[arg(long, value_name = "DURATION", value_parser = positive)]
    node_status_report_frequency: Option<Span>,
    /// Duration of a node's Lease; the kubelet renews the Lease four times in this duration
    #[arg(long, value_name = "DURATION", value_parser = positive)]
    node_lease_duration: Option<Span>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum HeartbeatArg {
    #[default]
    Lease,
    Status,
}

/// Settings of the cluster, or why there are none.
struct ClusterSettings {
    context: Option<String>,
    settings: Option<Settings>,
    /// Duration of the Leases of its nodes; `None` if it is not known.
    lease_duration: Option<Span>,
    missing: Option<String>,
}

/// Prints the timing of the profiles.
pub async fn run(args: TimingArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    connection.refuse_namespace("times are the same in all namespaces")?;
    let ClusterSettings { context, settings, lease_duration, missing } =
        cluster_settings(&args, connection).await?;
    let count = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    let size = ClusterSize {
        nodes: count(args.nodes),
        pods_per_node: count(args.pods_per_node),
        zones: count(args.zones),
    };
    let profiles = chosen(args.profiles(settings, lease_duration), args.compare.as_deref())?;
    let timings: Vec<Timing> =
        profiles.into_iter().map(|profile| Timing::new(profile, size, &args.blip)).collect();
    let Some(mut report) = TimingReport::new(&timings, size, context, missing) else { return Ok(()) };
    if args.compare.is_some() {
        report = report.compared();
    }
    args.output.print(&report, table::render)
}

/// Reads the cluster's settings. If no flag names a cluster, an unreachable cluster is not an error.
async fn cluster_settings(
    args: &TimingArgs,
    connection: ConnectionArgs,
) -> Result<ClusterSettings, CliError> {
    let none = |why: String| ClusterSettings {
        context: None,
        settings: None,
        lease_duration: None,
        missing: Some(why),
    };
    if args.kubernetes_version.is_some() {
        connection.refuse("--kubernetes-version asks no cluster")?;
        return Ok(none("--kubernetes-version was given".into()));
    }
    let is_named = connection.refuse("").is_err() || args.source.has_files();
    let patience = Patience::start(args.timeout, "--timeout");
    let config = connection.config.clone();
    let asked = async {
        let connection = patience.connect(connection, &args.source).await?;
        let settings = patience.settings(&connection, &config, &SettingsArgs::default()).await?;
        let lease_duration = patience.wait(lease_duration(&connection.client)).await.flatten();
        let (context, settings) = (Some(connection.context), Some(settings));
        Ok::<_, CliError>(ClusterSettings { context, settings, lease_duration, missing: None })
    };
    match asked.await {
        Err(error) if !is_named => Ok(none(error.to_string())),
        result => result,
    }
}

impl TimingArgs {
    /// Profiles of the given flags, of the cluster, and the presets.
    fn profiles(&self, cluster: Option<Settings>, lease_duration: Option<Span>) -> Vec<TimingProfile> {
        let of_cluster = cluster.as_ref().map(|settings| settings.version);
        let version = self.kubernetes_version.or(of_cluster).unwrap_or(ServerVersion::NEWEST_TESTED);
        let heartbeat = match self.kubelet.heartbeat {
            HeartbeatArg::Lease => HeartbeatKind::Lease,
            HeartbeatArg::Status => HeartbeatKind::Status,
        };
        let defaults = TimingProfile {
            toleration: Span::from_secs(self.default_unreachable_toleration_seconds.into()),
            pod_startup: self.pod_startup,
            ..TimingProfile::defaults(version, heartbeat)
        };
        let presets = TimingProfile::presets(&defaults);
        let kubelet = KubeletFlags {
            lease_duration: lease_duration.unwrap_or(defaults.kubelet.lease_duration),
            ..defaults.kubelet
        };
        let own = cluster.map(|settings| TimingProfile {
            name: CLUSTER.into(),
            settings,
            kubelet,
            ..defaults.clone()
        });
        let given = self.has_flags().then(|| {
            let mut given = TimingProfile { name: FLAGS.into(), ..own.clone().unwrap_or(defaults) };
            self.settings.apply(&mut given.settings);
            self.kubelet.apply(&mut given.kubelet);
            given
        });
        given.into_iter().chain(own).chain(presets).collect()
    }

    fn has_flags(&self) -> bool {
        let heartbeat = self.kubelet.heartbeat;
        self.settings != SettingsArgs::default()
            || self.kubelet != KubeletArgs { heartbeat, ..KubeletArgs::default() }
    }
}

impl KubeletArgs {
    fn apply(&self, flags: &mut KubeletFlags) {
        let set = |flag: &mut Span, given: Option<Span>| *flag = given.unwrap_or(*flag);
        set(&mut flags.status_update_frequency, self.node_status_update_frequency);
        set(&mut flags.status_report_frequency, self.node_status_report_frequency);
        set(&mut flags.lease_duration, self.node_lease_duration);
    }
}

/// The profiles to compare, in the order of `names`; all profiles if there are no names.
fn chosen(profiles: Vec<TimingProfile>, names: Option<&[String]>) -> Result<Vec<TimingProfile>, CliError> {
    let Some(names) = names else { return Ok(profiles) };
    let named = |name: &String| {
        let found = profiles.iter().find(|profile| profile.name == *name).cloned();
        found.ok_or_else(|| {
            let why = if name == CLUSTER { "no cluster was reached" } else { "no flag was given" };
            CliError::Usage(format!("there is no profile {name} to compare: {why}"))
        })
    };
    names.iter().map(named).collect()
}

fn profile_name(text: &str) -> Result<String, String> {
    match text {
        "slow" => Ok("low".into()),
        CLUSTER | FLAGS => Ok(text.into()),
        name if PROFILE_NAMES.contains(&name) => Ok(text.into()),
        _ => Err(format!("the profiles are {}, {CLUSTER}, {FLAGS}", PROFILE_NAMES.join(", "))),
    }
}

fn version(text: &str) -> Result<ServerVersion, String> {
    ServerVersion::parse(text).ok_or_else(|| "not a release as 1.36".into())
}

fn positive(text: &str) -> Result<Span, String> {
    span::span(text).and_then(|span| {
        let is_sensible = (Span::from_secs(1)..=Span::from_secs(86_400)).contains(&span);
        if is_sensible { Ok(span) } else { Err("must be between 1s and 24h".into()) }
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: TimingArgs,
    }

    fn parsed(line: &str) -> Result<TimingArgs, clap::Error> {
        Line::try_parse_from(line.split(' ')).map(|line| line.args)
    }

    fn profiles(line: &str, cluster: Option<Settings>) -> Vec<TimingProfile> {
        parsed(line).expect("valid arguments").profiles(cluster, None)
    }

    fn names(profiles: &[TimingProfile]) -> Vec<&str> {
        profiles.iter().map(|profile| profile.name.as_str()).collect()
    }

    #[test]
    fn flags_that_are_given_change_the_clusters_own_and_not_the_profiles_of_the_field() {
        assert_eq!(names(&profiles("timing", None)), PROFILE_NAMES);
        let mut own = Settings::defaults(ServerVersion::new(1, 30));
        own.set("node-monitor-period", "3s", kordon_core::engine::Origin::Cluster).expect("a flag");
        let all = profiles("timing --node-monitor-grace-period 20s --node-lease-duration 20s", Some(own));
        assert_eq!(names(&all), [&["flags", "cluster"], &PROFILE_NAMES[..]].concat());
        let times = |profile: &TimingProfile| {
            let settings = &profile.settings;
            [
                settings.node_monitor_period.value,
                settings.node_monitor_grace_period.value,
                profile.kubelet.interval(),
            ]
            .map(Span::as_secs)
        };
        assert_eq!([0, 1, 2].map(|place| times(&all[place])), [[3, 20, 5], [3, 40, 10], [5, 40, 10]]);
    }

    #[test]
    fn what_cannot_be_compared_is_refused() {
        assert!(parsed("timing --compare default slow").is_ok());
        assert!(
            parsed("timing --compare default").is_err() && parsed("timing --compare default quick").is_err()
        );
        let low = profile_name("slow").expect("a name of the field");
        let compared = |wanted: [&str; 2]| chosen(profiles("timing", None), Some(&wanted.map(String::from)));
        assert_eq!(names(&compared([&low, "fast"]).expect("both exist")), ["low", "fast"]);
        let error = compared(["cluster", "fast"]).expect_err("no cluster");
        assert!(error.to_string().contains("no cluster was reached"), "{error}");
        let error = compared(["flags", "fast"]).expect_err("no flags");
        assert!(error.to_string().contains("no flag was given"), "{error}");
    }
}
