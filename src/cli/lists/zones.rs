//! `kordon zones`: lists the zones, as the dashboard's pane of zones does.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{ListArgs, check_filter, say_empty};
use crate::{
    app::{Filter, Pane, Sort, ZoneColumn, order::zone_rows},
    cli::{
        connection::ConnectionArgs,
        exit::CliError,
        gaps::UnknownReport,
        once::OneShot,
        page::{Page, zone_name},
        status::{report::StatusZoneReport, table::next_slot},
        table::PageTable,
    },
    k8s::feed::FeedKind,
    model::{
        Model, NodeState, ZoneNodes,
        zone_reason::{RateReason, zone_reason},
    },
};
use kordon_core::engine::ZoneView;
use kordon_time::Timestamp;

/// Prints the zones.
pub async fn run(args: ListArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    connection.refuse_namespace("zones have no namespace")?;
    let (sort, filter) = (args.sort.column()?, args.filter.for_pane(Pane::Zones)?);
    let mut shot = OneShot::ask(&args.once, connection, true).await?;
    shot.run_forecast();
    check_filter(&filter, Pane::Zones, &shot.model)?;
    args.once.output.print(&ZoneListReport::new(&shot.model, filter, sort, shot.at), table)?;
    shot.done()
}

/// Zones (`docs/reference/zones.md`). Every field is always present; unknown values are null.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct ZoneListReport {
    /// `kordon.zones/v1`: fields are added, never removed or renamed.
    schema: &'static str,
    /// When the report was made.
    taken_at: Timestamp,
    /// The share of not-ready nodes, from 0 to 1, at which a zone counts as disrupted (`--unhealthy-zone-threshold`).
    unhealthy_threshold: f32,
    /// The zones that pass the filter, in the order of `--sort`.
    zones: Vec<ListedZoneReport>,
    /// Number of zones in the cluster.
    total: usize,
    #[serde(flatten)]
    unknown: UnknownReport,
    #[serde(skip)]
    #[cfg_attr(test, schemars(skip))]
    filter: Filter,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct ListedZoneReport {
    #[serde(flatten)]
    status: StatusZoneReport,
    /// Number of nodes by state ([status.md](status.md)), including nodes that do not count for the zone's state.
    node_states: BTreeMap<&'static str, usize>,
    /// The kind of eviction rate: `normal`, `reduced` (the secondary rate), `stopped` or `paused` (no zone has a ready
    /// node).
    rate: &'static str,
    /// Why the zone has its state and rate, and what would change them, as text.
    reason: String,
}

impl ZoneListReport {
    fn new(model: &Model, filter: Filter, sort: Sort<ZoneColumn>, now: Timestamp) -> Self {
        let gaps = model.cluster.gaps([FeedKind::Nodes, FeedKind::Leases]);
        let zones = &model.views.zones;
        let keys = zone_rows(model, &filter, sort);
        let views = keys.iter().filter_map(|key| zones.iter().find(|zone| zone.key == *key));
        Self {
            schema: "kordon.zones/v1",
            taken_at: now,
            unhealthy_threshold: model.settings.unhealthy_zone_threshold.value,
            zones: views.map(|view| ListedZoneReport::new(model, view)).collect(),
            total: zones.len(),
            unknown: UnknownReport::new(&gaps),
            filter,
        }
    }
}

impl ListedZoneReport {
    fn new(model: &Model, view: &ZoneView) -> Self {
        let zones = &model.views.zones;
        let states = model.watchlist.zones().get(&view.key).map_or(&[][..], ZoneNodes::states);
        let mut node_states = BTreeMap::new();
        states.iter().for_each(|state| *node_states.entry(state.as_str()).or_default() += 1);
        let silent = node_states.get(NodeState::Silent.as_str()).copied().unwrap_or(0);
        Self {
            status: StatusZoneReport::new(model, view),
            rate: RateReason::new(view, zones).word(),
            reason: zone_reason(view, zones, &model.settings, silent),
            node_states,
        }
    }
}

fn table(report: &ZoneListReport, out: &mut Page) {
    report.unknown.say(out);
    if report.zones.is_empty() {
        say_empty(out, report.total, ("zone", "zones"), &report.filter);
    }
    PageTable::new(&report.zones)
        .key("ZONE", |zone| zone_name(&zone.status.region, &zone.status.zone))
        .essential("STATE", |zone| zone.status.state_text())
        .essential("NOT READY", |zone| zone.status.not_ready.to_string())
        .right()
        .essential("SIZE", |zone| zone.status.nodes.to_string())
        .right()
        .useful("UNHEALTHY", |zone| format!("{:.0}%", 100.0 * zone.status.not_ready_share))
        .right()
        .useful("RATE", |zone| format!("{}/s {}", zone.status.eviction_rate, zone.rate))
        .useful("QUEUE", |zone| zone.status.queue.len().to_string())
        .right()
        .useful("NEXT SLOT", |zone| next_slot(&zone.status))
        .useful("NODE STATES", nodes)
        .flexible()
        .detail("WHY", |zone| zone.reason.clone())
        .flexible()
        .print(out);
}

/// The nodes of a zone by state: `2 Silent, 8 Ready`.
fn nodes(zone: &ListedZoneReport) -> String {
    let states = zone.node_states.iter().map(|(state, nodes)| format!("{nodes} {state}"));
    states.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::documented;

    #[test]
    fn the_page_documents_every_field() {
        documented::check::<ZoneListReport>("zones");
    }
}
