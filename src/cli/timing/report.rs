//! The report of the timing of profiles, with stable names (`docs/reference/timing.md`).

use serde::Serialize;

use crate::ui::text;
use kordon_core::{
    engine::Origin,
    timing::{
        Blip, ClusterSize, CountRange, KubeletFlags, LEASE_BYTES, NODE_BYTES, Timing, TimingProfile,
        TimingRange,
    },
};
use kordon_time::Span;

/// Timing of profiles. Every field is always present; what does not happen is null.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TimingReport {
    /// `kordon.timing/v1`: fields are added, never removed or renamed.
    pub schema: &'static str,
    /// The release whose rules apply.
    pub kubernetes_version: String,
    /// The context of the cluster whose settings were read; `null` if none was.
    pub context: Option<String>,
    /// Why no settings of a cluster were read; `null` if they were.
    pub no_cluster: Option<String>,
    /// Number of nodes of the assumed cluster.
    pub nodes: usize,
    /// Number of pods on each node.
    pub pods_per_node: usize,
    /// Number of zones that the nodes are spread over.
    pub zones: usize,
    /// The heartbeat of the kubelets: `lease` or `status`.
    pub heartbeat: &'static str,
    /// How long pods tolerate an unreachable node.
    pub toleration_seconds: i64,
    /// How long a replacement takes to start.
    pub pod_startup_seconds: f64,
    /// The assumed size of a Node object.
    pub node_object_bytes: f64,
    /// The assumed size of a Lease.
    pub lease_object_bytes: f64,
    pub profiles: Vec<ProfileReport>,
    /// With `--compare`: the flags and numbers in which the two profiles differ; `[]` without `--compare`.
    pub differences: Vec<DifferenceReport>,
}

#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProfileReport {
    /// Name of the profile: `default`, `fast`, `medium`, `low`, `cluster` or `flags`.
    pub name: String,
    pub flags: Vec<FlagReport>,
    /// The time between two heartbeats.
    pub heartbeat_interval_seconds: f64,
    /// How many heartbeats fit into the grace period; 0 if not even one is certain, because kubelets renew their Leases
    /// with a jitter of 4 %.
    pub heartbeats_in_grace: i64,
    /// Time from the node's death until the node is Unknown.
    pub unknown: Option<RangeReport>,
    /// Time from the node's death until the node has the NoExecute taint; `null` in legacy mode.
    pub tainted: Option<RangeReport>,
    /// Time from the node's death until the node's pods are deleted.
    pub deleted: Option<RangeReport>,
    /// Time from the node's death until a replacement runs.
    pub replaced: Option<RangeReport>,
    /// Writes of node status by all nodes.
    pub status_writes_per_minute: f64,
    /// Renewals of Leases by all nodes, with the maximum jitter of kubelets.
    pub lease_writes_per_minute_least: f64,
    /// Renewals of Leases by all nodes, without jitter.
    pub lease_writes_per_minute_most: f64,
    /// The estimated growth of etcd by writes of node status and Leases, in bytes.
    pub etcd_bytes_per_minute: f64,
    /// The most bytes that writes of node status and Leases take in etcd before it is compacted.
    pub etcd_bytes_until_compaction: f64,
    /// The longest network outage of one node that does not make the node Unknown, in whole seconds.
    pub harmless_without_unknown_seconds: Option<f64>,
    /// The longest network outage of one node that evicts no pod, in whole seconds; `null` if pods are never evicted.
    pub harmless_without_eviction_seconds: Option<f64>,
    pub blips: Vec<BlipReport>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FlagReport {
    /// A flag that determines the times of the profile.
    pub flag: &'static str,
    /// The flag's value.
    pub value: String,
    /// Where the flag's value comes from: `default`, `cluster`, `configuration` or `override`, as in [`kordon
    /// status`](status.md).
    pub origin: &'static str,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RangeReport {
    /// The shortest time.
    pub best_seconds: f64,
    /// The median.
    pub typical_seconds: f64,
    /// The longest time.
    pub worst_seconds: f64,
}

#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BlipReport {
    /// The length of the blip, an outage of the network that ends.
    pub lasts_seconds: f64,
    /// What the blip cuts off: `one node`, `one zone` or `all nodes`.
    pub scope: &'static str,
    /// Number of nodes that become Unknown.
    pub nodes_unknown: CountReport,
    /// Number of pods that are marked not ready and leave the endpoints of their Services.
    pub pods_not_ready: CountReport,
    /// Number of pods that are evicted.
    pub pods_evicted: CountReport,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CountReport {
    /// The number of nodes or pods if heartbeats and the controller's passes happen at the most favourable moments.
    pub least: usize,
    /// The number of nodes or pods if heartbeats and the controller's passes happen at the least favourable moments.
    pub most: usize,
}

/// A difference between two profiles.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DifferenceReport {
    /// The flag or number that differs between the profiles.
    pub what: String,
    /// The value in the first profile; `null` if it is the time of an event that never happens.
    pub a: Option<String>,
    /// The value in the second profile; `null` if it is the time of an event that never happens.
    pub b: Option<String>,
    /// The second profile's value minus the first profile's, with its sign; `null` if one is not a number.
    pub difference: Option<String>,
}

/// A number that can differ between profiles.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Measure {
    Seconds(f64),
    PerMinute(f64),
    Bytes(f64),
    Pods(usize),
}

impl TimingReport {
    pub fn new(
        timings: &[Timing],
        size: ClusterSize,
        context: Option<String>,
        no_cluster: Option<String>,
    ) -> Option<Self> {
        let profile = &timings.first()?.profile;
        Some(Self {
            schema: "kordon.timing/v1",
            kubernetes_version: profile.settings.version.to_string(),
            context,
            no_cluster,
            nodes: size.nodes,
            pods_per_node: size.pods_per_node,
            zones: size.zones,
            heartbeat: profile.kubelet.heartbeat.as_str(),
            toleration_seconds: profile.toleration.as_secs(),
            pod_startup_seconds: profile.pod_startup.as_secs_f64(),
            node_object_bytes: NODE_BYTES,
            lease_object_bytes: LEASE_BYTES,
            profiles: timings.iter().map(ProfileReport::new).collect(),
            differences: Vec::new(),
        })
    }

    /// Adds the differences between its two profiles to the report.
    #[must_use]
    pub fn compared(mut self) -> Self {
        if let [a, b] = &self.profiles[..] {
            self.differences = differences(a, b);
        }
        self
    }
}

impl ProfileReport {
    fn new(timing: &Timing) -> Self {
        let Timing { profile, death, load, harmless, risks } = timing;
        let seconds = |span: Option<Span>| span.map(Span::as_secs_f64);
        let blips = risks.iter().flat_map(|risk| {
            risk.blips.iter().map(|(scope, blip)| BlipReport::new(risk.lasts, scope.as_str(), blip))
        });
        Self {
            name: profile.name.clone(),
            flags: flags(profile),
            heartbeat_interval_seconds: profile.kubelet.interval().as_secs_f64(),
            heartbeats_in_grace: profile.heartbeats_in_grace(),
            unknown: death.unknown.map(Into::into),
            tainted: death.tainted.map(Into::into),
            deleted: death.deleted.map(Into::into),
            replaced: death.replaced.map(Into::into),
            status_writes_per_minute: load.status_writes_per_minute,
            lease_writes_per_minute_least: load.lease_writes_per_minute[0],
            lease_writes_per_minute_most: load.lease_writes_per_minute[1],
            etcd_bytes_per_minute: load.etcd_bytes_per_minute,
            etcd_bytes_until_compaction: load.etcd_bytes_kept,
            harmless_without_unknown_seconds: seconds(harmless.without_unknown),
            harmless_without_eviction_seconds: seconds(harmless.without_eviction),
            blips: blips.collect(),
        }
    }

    fn measures(&self) -> Vec<(String, Option<Measure>)> {
        let of_range = |what: &str, range: Option<RangeReport>| {
            let part = move |part: &str, seconds: Option<f64>| {
                (format!("{what}, {part}"), seconds.map(Measure::Seconds))
            };
            [
                part("best", range.map(|range| range.best_seconds)),
                part("typical", range.map(|range| range.typical_seconds)),
                part("worst", range.map(|range| range.worst_seconds)),
            ]
        };
        let mut measures: Vec<(String, Option<Measure>)> = [
            of_range("Unknown", self.unknown),
            of_range("taint", self.tainted),
            of_range("deletion", self.deleted),
            of_range("replacement", self.replaced),
        ]
        .into_iter()
        .flatten()
        .collect();
        let mut add = |what: &str, measure: Option<Measure>| measures.push((what.into(), measure));
        add("status writes per minute", Some(Measure::PerMinute(self.status_writes_per_minute)));
        add("Lease writes per minute", Some(Measure::PerMinute(self.lease_writes_per_minute_most)));
        add("etcd growth per minute", Some(Measure::Bytes(self.etcd_bytes_per_minute)));
        add("blip without Unknown, up to", self.harmless_without_unknown_seconds.map(Measure::Seconds));
        add("blip without eviction, up to", self.harmless_without_eviction_seconds.map(Measure::Seconds));
        for blip in &self.blips {
            let lasts = Span::from_secs_f64(blip.lasts_seconds);
            let what = format!("pods evicted by a blip of {lasts}, {}", blip.scope);
            add(&what, Some(Measure::Pods(blip.pods_evicted.most)));
        }
        measures
    }
}

/// Flags that decide the times of a profile: first those of the kubelet, then those of the controller.
fn flags(profile: &TimingProfile) -> Vec<FlagReport> {
    let KubeletFlags { heartbeat, .. } = profile.kubelet;
    let (given, usual) = (profile.kubelet.rows(), KubeletFlags::defaults(heartbeat).rows());
    let of_kubelet = given.into_iter().zip(usual).map(|((flag, value), (_, usual))| {
        (flag, value.to_string(), if value == usual { Origin::Default } else { Origin::Override })
    });
    let decides = |flag: &str| !matches!(flag, "terminated-pod-gc-threshold" | "node-startup-grace-period");
    let of_controller = profile.settings.rows().into_iter().filter(|(flag, ..)| decides(flag));
    let report = |(flag, value, origin): (&'static str, String, Origin)| FlagReport {
        flag,
        value,
        origin: origin.as_str(),
    };
    of_kubelet.chain(of_controller).map(report).collect()
}

/// All differences between two profiles.
fn differences(a: &ProfileReport, b: &ProfileReport) -> Vec<DifferenceReport> {
    let flags = a.flags.iter().zip(&b.flags).filter(|(a, b)| a.value != b.value);
    let of_flags = flags.map(|(a, b)| DifferenceReport {
        what: format!("--{}", a.flag),
        a: Some(a.value.clone()),
        b: Some(b.value.clone()),
        difference: None,
    });
    let measures = a.measures().into_iter().zip(b.measures());
    let of_measures = measures.filter_map(|((what, a), (_, b))| {
        let text = |measure: Option<Measure>| measure.map(Measure::text);
        (text(a) != text(b)).then(|| DifferenceReport {
            what,
            a: text(a),
            b: text(b),
            difference: a.zip(b).and_then(|(a, b)| Measure::difference(a, b)),
        })
    });
    of_flags.chain(of_measures).collect()
}

impl Measure {
    fn text(self) -> String {
        match self {
            Self::Seconds(seconds) => text::nearest_second(Span::from_secs_f64(seconds)),
            Self::PerMinute(writes) => text::rounded(writes),
            Self::Bytes(bytes) => text::rounded_bytes(bytes),
            Self::Pods(pods) => text::count(pods),
        }
    }

    /// Value of `b` minus value of `a`, with its sign; `None` if the units of the two values differ.
    fn difference(a: Self, b: Self) -> Option<String> {
        let (sign, distance) = match (a, b) {
            (Self::Seconds(a), Self::Seconds(b)) => (b < a, Self::Seconds((b - a).abs())),
            (Self::PerMinute(a), Self::PerMinute(b)) => (b < a, Self::PerMinute((b - a).abs())),
            (Self::Bytes(a), Self::Bytes(b)) => (b < a, Self::Bytes((b - a).abs())),
            (Self::Pods(a), Self::Pods(b)) => (b < a, Self::Pods(a.abs_diff(b))),
            _ => return None,
        };
        Some(format!("{}{}", if sign { "-" } else { "+" }, distance.text()))
    }
}

impl From<TimingRange> for RangeReport {
    fn from(range: TimingRange) -> Self {
        Self {
            best_seconds: range.best.as_secs_f64(),
            typical_seconds: range.typical.as_secs_f64(),
            worst_seconds: range.worst.as_secs_f64(),
        }
    }
}

impl RangeReport {
    pub fn spans(self) -> [Span; 3] {
        [self.best_seconds, self.typical_seconds, self.worst_seconds].map(Span::from_secs_f64)
    }
}

impl From<CountRange> for CountReport {
    fn from(CountRange { least, most }: CountRange) -> Self {
        Self { least, most }
    }
}

impl BlipReport {
    fn new(lasts: Span, scope: &'static str, blip: &Blip) -> Self {
        Self {
            lasts_seconds: lasts.as_secs_f64(),
            scope,
            nodes_unknown: blip.unknown.into(),
            pods_not_ready: blip.not_ready.into(),
            pods_evicted: blip.evicted.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::documented;
    use kordon_core::{engine::ServerVersion, timing::HeartbeatKind};

    const SIZE: ClusterSize = ClusterSize { nodes: 9, pods_per_node: 2, zones: 3 };

    fn report(names: [&str; 2]) -> TimingReport {
        let defaults = TimingProfile::defaults(ServerVersion::new(1, 36), HeartbeatKind::Lease);
        let presets = TimingProfile::presets(&defaults);
        let timing = |name: &str| {
            let profile = presets.iter().find(|profile| profile.name == name).expect("a preset").clone();
            Timing::new(profile, SIZE, &[Span::from_secs(600)])
        };
        let timings = names.map(timing);
        TimingReport::new(&timings, SIZE, Some("here".into()), Some("none".into())).expect("profiles")
    }

    #[test]
    fn the_page_documents_every_field() {
        documented::check::<TimingReport>("timing");
    }

    #[test]
    fn only_what_differs_is_a_difference() {
        assert_eq!(report(["low", "low"]).compared().differences, []);
        let report = report(["default", "fast"]).compared();
        let of = |what: &str| report.differences.iter().find(|row| row.what == what).expect(what).clone();
        let row = |what: &str, [a, b]: [&str; 2], difference: Option<&str>| DifferenceReport {
            what: what.into(),
            a: Some(a.into()),
            b: Some(b.into()),
            difference: difference.map(Into::into),
        };
        let grace = "--node-monitor-grace-period";
        assert_eq!(of(grace), row(grace, ["50s", "20s"], None));
        assert_eq!(of("Unknown, best"), row("Unknown, best", ["40s", "10s"], Some("-30s")));
        assert!(report.differences.iter().all(|row| row.what != "status writes per minute"), "the same");
    }
}
