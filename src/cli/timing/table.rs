//! The table of `kordon timing`.

use std::fmt::Write as _;

use super::{
    super::{
        page::{Emphasis, Page, none, shown},
        table::PageTable,
    },
    report::{BlipReport, CountReport, ProfileReport, RangeReport, TimingReport},
};
use crate::ui::{
    text,
    widgets::{range_axis, range_bar},
};
use kordon_time::Span;

/// Minimum and maximum width of the time axis.
const AXIS: [usize; 2] = [20, 60];

/// Width of a row without its bar, in cells.
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
            "{}: the grace period is not longer than the heartbeat interval with its jitter: no heartbeat fits with \
             certainty, and healthy nodes may become Unknown",
            profile.name
        );
        out.line(Emphasis::Warning, &text);
    }
    let flag = |profile: &ProfileReport, flag: &str| {
        let found = profile.flags.iter().find(|row| row.flag == flag);
        found.map_or_else(none, |row| row.value.clone())
    };
    let heartbeat = |profile: &ProfileReport| Span::from_secs_f64(profile.heartbeat_interval_seconds);
    PageTable::new(&report.profiles)
        .key("PROFILE", |profile| profile.name.clone())
        .essential("HEARTBEAT", |profile| text::nearest_second(heartbeat(profile)))
        .useful("STATUS", |profile| flag(profile, "node-status-update-frequency"))
        .useful("PERIOD", |profile| flag(profile, "node-monitor-period"))
        .essential("GRACE", |profile| flag(profile, "node-monitor-grace-period"))
        .useful("EVICTION TIMEOUT", |profile| flag(profile, "pod-eviction-timeout"))
        .essential("HEARTBEATS IN GRACE", |profile| profile.heartbeats_in_grace.to_string())
        .right()
        .print(out);
    times(report, out);
    PageTable::new(&report.profiles)
        .key("PROFILE", |profile| profile.name.clone())
        .essential("STATUS WRITES/MIN", |profile| text::rounded(profile.status_writes_per_minute))
        .right()
        .essential("LEASE WRITES/MIN", lease_writes)
        .right()
        .useful("ETCD GROWTH/MIN", |profile| text::rounded_bytes(profile.etcd_bytes_per_minute))
        .right()
        .detail("UNTIL COMPACTION", |profile| text::rounded_bytes(profile.etcd_bytes_until_compaction))
        .right()
        .print(out);
    let _ = writeln!(
        out,
        "\netcd growth: writes per minute times object size (assumed: {} a node, {} a Lease);\nit holds up to ten minutes of that until compaction",
        text::rounded_bytes(report.node_object_bytes),
        text::rounded_bytes(report.lease_object_bytes)
    );
    blips(report, out);
    if let [a, b] = &report.profiles[..]
        && !report.differences.is_empty()
    {
        let _ = writeln!(out, "\ndifferences: A is {}, B is {}", a.name, b.name);
        let cell = |text: &Option<String>| text.clone().unwrap_or_else(|| "never".into());
        PageTable::new(&report.differences)
            .key("WHAT", |row| row.what.clone())
            .essential("A", |row| cell(&row.a))
            .essential("B", |row| cell(&row.b))
            .useful("B - A", |row| row.difference.clone().unwrap_or_else(none))
            .print(out);
    }
}

/// Prints the times since a node's death, as bars on one axis.
fn times(report: &TimingReport, out: &mut Page) {
    let worst = |profile: &ProfileReport| {
        milestones(profile).into_iter().filter_map(|(_, range)| range).map(|range| range.spans()[2]).max()
    };
    let end = report.profiles.iter().filter_map(worst).max().unwrap_or(Span::from_secs(1));
    let [narrowest, widest] = AXIS;
    let cells = out.width().map_or(widest, |width| width.saturating_sub(BESIDE).clamp(narrowest, widest));
    let axis = range_axis(end, cells);
    // In tables for other programs each row names its profile, and no column is a drawing.
    let is_drawn = out.export().is_none();
    let axis = TimeRow { profile: "from death", bar: axis, ..TimeRow::default() };
    let mut rows: Vec<TimeRow<'_>> = is_drawn.then_some(axis).into_iter().collect();
    for profile in &report.profiles {
        for (place, (event, range)) in milestones(profile).into_iter().enumerate() {
            let profile = if place == 0 || !is_drawn { &*profile.name } else { "" };
            let times = match range {
                None => ["never".to_owned(), none(), none()],
                Some(range) => range.spans().map(text::nearest_second),
            };
            let bar = range.map_or_else(String::new, |range| range_bar(range.spans(), end, cells));
            rows.push(TimeRow { profile, event, times, bar });
        }
    }
    let table = PageTable::new(&rows)
        .with_blanks()
        .key("PROFILE", |row| row.profile.to_owned())
        .key("EVENT", |row| row.event)
        .essential("BEST", |row| row.times[0].clone())
        .essential("TYPICAL", |row| row.times[1].clone())
        .essential("WORST", |row| row.times[2].clone());
    if is_drawn { table.useful("TIME", |row| row.bar.clone()) } else { table }.print(out);
}

/// Time of an event since the death of a node: best, typical and worst.
#[derive(Default)]
struct TimeRow<'a> {
    /// Name of the profile; empty in all rows of a profile except its first.
    profile: &'a str,
    event: &'static str,
    times: [String; 3],
    bar: String,
}

fn milestones(profile: &ProfileReport) -> [(&'static str, Option<RangeReport>); 4] {
    [
        ("Unknown", profile.unknown),
        ("NoExecute taint", profile.tainted),
        ("pods deleted", profile.deleted),
        ("replacement runs", profile.replaced),
    ]
}

fn lease_writes(profile: &ProfileReport) -> String {
    let [least, most] =
        [profile.lease_writes_per_minute_least, profile.lease_writes_per_minute_most].map(text::rounded);
    if least == most { most } else { format!("{least}\u{2013}{most}") }
}

/// Prints the evictions caused by blips, with a row for each profile and length of blip.
fn blips(report: &TimingReport, out: &mut Page) {
    let harmless = |seconds: Option<f64>| {
        seconds.map_or_else(|| "any".into(), |seconds| Span::from_secs_f64(seconds).to_string())
    };
    PageTable::new(&report.profiles)
        .key("PROFILE", |profile| profile.name.clone())
        .essential("BLIP WITHOUT UNKNOWN", |profile| harmless(profile.harmless_without_unknown_seconds))
        .essential("BLIP WITHOUT EVICTION", |profile| harmless(profile.harmless_without_eviction_seconds))
        .print(out);
    let mut rows = Vec::new();
    for profile in &report.profiles {
        for of_length in profile.blips.chunk_by(same_length) {
            let [node, zone, all] = of_length else { continue };
            rows.push((&profile.name, [node, zone, all]));
        }
    }
    PageTable::new(&rows)
        .key("PROFILE", |(profile, _)| (*profile).clone())
        .key("BLIP OF", |(_, [node, ..])| Span::from_secs_f64(node.lasts_seconds).to_string())
        .essential("PODS OF ONE NODE", |(_, [node, ..])| evicted(node))
        .essential("OF ONE ZONE", |(_, [_, zone, _])| evicted(zone))
        .essential("OF ALL NODES", |(_, [.., all])| evicted(all))
        .print(out);
}

fn same_length(a: &BlipReport, b: &BlipReport) -> bool {
    Span::from_secs_f64(a.lasts_seconds) == Span::from_secs_f64(b.lasts_seconds)
}

/// Number of evicted pods, as in `120 evicted`. If no pod is evicted, the number of pods that are not ready, or
/// `nothing`.
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
