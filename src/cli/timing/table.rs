//! The table of `kordon timing`.

use std::fmt::Write as _;

use super::{
    super::page::{Emphasis, Page, none, section, shown},
    report::{BlipReport, CountReport, DifferenceReport, ProfileReport, RangeReport, TimingReport},
};
use crate::{
    time::Span,
    ui::{
        text,
        widgets::{range_axis, range_bar},
    },
};

/// Cells of the time axis, at least and at most.
const AXIS: [usize; 2] = [20, 60];

/// The cells of a row beside its bar.
const BESIDE: usize = 60;

/// Renders the report.
pub fn render(report: &TimingReport, out: &mut Page) {
    let cluster = match (&report.context, &report.no_cluster) {
        (Some(context), _) => format!("cluster: settings of {}", shown(context)),
        (None, why) => {
            format!("no cluster: {}", shown(why.as_deref().unwrap_or("none was asked")))
        }
    };
    let _ = writeln!(
        out,
        "Kubernetes {}, {} nodes in {} zones, {} pods per node, heartbeat: {}\nassumed: toleration {}, pod startup {}",
        report.kubernetes_version,
        text::count(report.nodes),
        report.zones,
        report.pods_per_node,
        report.heartbeat,
        Span::from_secs(report.toleration_seconds),
        Span::from_secs_f64(report.pod_startup_seconds),
    );
    out.line(Emphasis::Dim, &cluster);
    for profile in report.profiles.iter().filter(|profile| profile.heartbeats_in_grace < 1) {
        let text = format!(
            "{}: the grace period is shorter than the heartbeat interval: healthy nodes become Unknown",
            profile.name
        );
        out.line(Emphasis::Warning, &text);
    }
    let flags = |profile: &ProfileReport| {
        let of = |flag: &str| {
            let found = profile.flags.iter().find(|row| row.flag == flag);
            found.map_or_else(none, |row| row.value.clone())
        };
        [
            profile.name.clone(),
            text::nearest_second(Span::from_secs_f64(profile.heartbeat_interval_seconds)),
            of("node-status-update-frequency"),
            of("node-monitor-period"),
            of("node-monitor-grace-period"),
            of("pod-eviction-timeout"),
            profile.heartbeats_in_grace.to_string(),
        ]
    };
    section(
        out,
        ["PROFILE", "HEARTBEAT", "STATUS", "PERIOD", "GRACE", "EVICTION TIMEOUT", "HEARTBEATS IN GRACE"],
        report.profiles.iter().map(flags).collect(),
    );
    times(report, out);
    section(
        out,
        ["PROFILE", "STATUS WRITES/MIN", "LEASE WRITES/MIN", "ETCD GROWTH/MIN", "UNTIL COMPACTION"],
        report.profiles.iter().map(load).collect(),
    );
    let _ = writeln!(
        out,
        "etcd growth: writes per minute times object size (assumed: {} a node, {} a Lease);\nit holds up to ten minutes of that until compaction",
        text::rounded_bytes(report.node_object_bytes),
        text::rounded_bytes(report.lease_object_bytes)
    );
    blips(report, out);
    let difference = |row: &DifferenceReport| {
        let cell = |text: &Option<String>| text.clone().unwrap_or_else(|| "never".into());
        [row.what.clone(), cell(&row.a), cell(&row.b), row.difference.clone().unwrap_or_else(none)]
    };
    if let [a, b] = &report.profiles[..]
        && !report.differences.is_empty()
    {
        let _ = writeln!(out, "\ndifferences: A is {}, B is {}", a.name, b.name);
        section(out, ["WHAT", "A", "B", "B - A"], report.differences.iter().map(difference).collect());
    }
}

/// The times from a node's death, as bars on one axis.
fn times(report: &TimingReport, out: &mut Page) {
    let worst = |profile: &ProfileReport| {
        milestones(profile).into_iter().filter_map(|(_, range)| range).map(|range| range.spans()[2]).max()
    };
    let end = report.profiles.iter().filter_map(worst).max().unwrap_or(Span::from_secs(1));
    let [narrowest, widest] = AXIS;
    let cells = out.width().map_or(widest, |width| width.saturating_sub(BESIDE).clamp(narrowest, widest));
    let axis = range_axis(end, cells);
    let mut rows = vec![["from death", "", "", "", "", &axis].map(str::to_owned)];
    for profile in &report.profiles {
        for (place, (what, range)) in milestones(profile).into_iter().enumerate() {
            let name = if place == 0 { profile.name.clone() } else { String::new() };
            rows.push(match range {
                None => [name, what.into(), "never".into(), none(), none(), String::new()],
                Some(range) => {
                    let spans = range.spans();
                    let [best, typical, worst] = spans.map(text::nearest_second);
                    [name, what.into(), best, typical, worst, range_bar(spans, end, cells)]
                }
            });
        }
    }
    section(out, ["PROFILE", "EVENT", "BEST", "TYPICAL", "WORST", "TIME"], rows);
}

fn milestones(profile: &ProfileReport) -> [(&'static str, Option<RangeReport>); 4] {
    [
        ("Unknown", profile.unknown),
        ("NoExecute taint", profile.tainted),
        ("pods deleted", profile.deleted),
        ("replacement runs", profile.replaced),
    ]
}

fn load(profile: &ProfileReport) -> [String; 5] {
    let [least, most] =
        [profile.lease_writes_per_minute_least, profile.lease_writes_per_minute_most].map(text::rounded);
    [
        profile.name.clone(),
        text::rounded(profile.status_writes_per_minute),
        if least == most { most } else { format!("{least}\u{2013}{most}") },
        text::rounded_bytes(profile.etcd_bytes_per_minute),
        text::rounded_bytes(profile.etcd_bytes_until_compaction),
    ]
}

/// What blips evict, with a row for each of a profile's.
fn blips(report: &TimingReport, out: &mut Page) {
    let harmless = |profile: &ProfileReport| {
        let cell = |seconds: Option<f64>| {
            seconds.map_or_else(|| "any".into(), |seconds| Span::from_secs_f64(seconds).to_string())
        };
        [
            profile.name.clone(),
            cell(profile.harmless_without_unknown_seconds),
            cell(profile.harmless_without_eviction_seconds),
        ]
    };
    let columns = ["PROFILE", "BLIP WITHOUT UNKNOWN", "BLIP WITHOUT EVICTION"];
    section(out, columns, report.profiles.iter().map(harmless).collect());
    let mut rows = Vec::new();
    for profile in &report.profiles {
        for (place, of_length) in profile.blips.chunk_by(same_length).enumerate() {
            let [node, zone, all] = of_length else { continue };
            let name = if place == 0 { profile.name.clone() } else { String::new() };
            let lasts = Span::from_secs_f64(node.lasts_seconds).to_string();
            rows.push([name, lasts, evicted(node), evicted(zone), evicted(all)]);
        }
    }
    let columns = ["PROFILE", "BLIP OF", "PODS OF ONE NODE", "OF ONE ZONE", "OF ALL NODES"];
    section(out, columns, rows);
}

fn same_length(a: &BlipReport, b: &BlipReport) -> bool {
    Span::from_secs_f64(a.lasts_seconds) == Span::from_secs_f64(b.lasts_seconds)
}

/// `120 evicted`, or what happens to the pods instead.
fn evicted(blip: &BlipReport) -> String {
    let pods = |count: CountReport| match (count.least, count.most) {
        (least, most) if least == most => text::count(most),
        (least, most) => format!("{}\u{2013}{}", text::count(least), text::count(most)),
    };
    match (blip.pods_evicted.most, blip.pods_not_ready.most) {
        (0, 0) => "nothing".into(),
        (0, _) => format!("{} not ready", pods(blip.pods_not_ready)),
        _ => format!("{} evicted", pods(blip.pods_evicted)),
    }
}
