//! `kordon nodes`: the nodes, as the pane of the dashboard lists them.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{ListArgs, check_filter, say_empty, yes_or_no};
use crate::{
    app::{Filter, NodeColumn, Pane, Sort, filter_fields::instance_type, order::node_rows},
    cli::{
        connection::ConnectionArgs,
        exit::CliError,
        gaps::UnknownReport,
        once::OneShot,
        page::{Emphasis, Page, none, zone_name},
        status::{
            report::{StatusNodeReport, seconds},
            table::{grace_left, next, next_in, span, taints},
        },
        table::PageTable,
    },
    k8s::feed::FeedKind,
    model::Model,
    ui::text,
};
use kordon_core::cluster::{ExtendedResource, Node, NodeDevices, NodeName};
use kordon_time::Timestamp;

/// Prints the nodes.
pub async fn run(args: ListArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    connection.refuse_namespace("nodes have no namespace")?;
    let (sort, filter) = (args.sort.column()?, args.filter.for_pane(Pane::Nodes)?);
    let mut shot = OneShot::ask_for(&args.once, &FeedKind::PREDICTION, connection).await?;
    if !args.once.is_recorded() {
        shot.read_usage().await;
        shot.read_devices().await;
    }
    shot.run_forecast();
    check_filter(&filter, Pane::Nodes, &shot.model)?;
    args.once.output.print(&NodeListReport::new(&shot.model, filter, sort, shot.at), table)?;
    shot.done()
}

/// Nodes (`docs/reference/nodes.md`). Every field is always present; unknown values are null.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct NodeListReport {
    /// `kordon.nodes/v1`: fields are added, never removed or renamed.
    schema: &'static str,
    /// When the report was made. Durations below count from here.
    taken_at: Timestamp,
    /// The end of the forecast that `next` comes from. Equal to `takenAt` if no forecast could be made.
    forecast_until: Timestamp,
    /// The nodes that pass the filter, in the order of `--sort`.
    nodes: Vec<ListedNodeReport>,
    /// Number of nodes in the cluster.
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
struct ListedNodeReport {
    #[serde(flatten)]
    status: StatusNodeReport,
    /// Whether the node is being deleted.
    terminating: bool,
    /// Number of times that the node went down or came back in the last ten minutes, as far as a recording shows it;
    /// `null` if less than three.
    flaps: Option<usize>,
    /// Intervals between the latest known heartbeats, the oldest first.
    heartbeat_intervals_seconds: Vec<f64>,
    /// CPU, in thousandths of a core.
    cpu_milli: NodeResourceReport,
    /// Memory, in bytes.
    memory_bytes: NodeResourceReport,
    /// The extended resources of the node, such as `nvidia.com/gpu`.
    extended: Vec<ExtendedResourceReport>,
    /// The devices that drivers publish in ResourceSlices for this node alone (dynamic resource allocation); `null` if
    /// they are unknown. Devices are unknown until a pod claims devices.
    devices: Option<Vec<NodeDevicesReport>>,
    /// The first InternalIP of the node; empty if it has none.
    address: String,
    /// The release of the kubelet; empty if it never posted one.
    kubelet_version: String,
    /// The release of the kernel; empty if the kubelet never posted one.
    kernel_version: String,
    /// The instance type, from the label that cloud providers set; `null` without the label.
    instance_type: Option<String>,
    /// When the node was created.
    created: Timestamp,
    /// The types of the conditions that report a problem, without Ready.
    problems: Vec<String>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct NodeResourceReport {
    /// What pods may request (`status.allocatable`).
    allocatable: i64,
    /// What the pods on the node request, without those that have finished; `null` if the node's pods are unknown.
    requested: Option<i64>,
    /// The usage from metrics.k8s.io; `null` if the API does not answer within two seconds.
    used: Option<i64>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct ExtendedResourceReport {
    /// Name of the resource.
    resource: String,
    /// What pods may request of the resource (`status.allocatable`).
    allocatable: i64,
    /// What the pods on the node request, without those that have finished; `null` if the node's pods are unknown.
    requested: Option<i64>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct NodeDevicesReport {
    /// The driver that publishes the devices.
    driver: String,
    /// Number of published devices.
    published: usize,
    /// Whether ResourceSlices of the driver are missing, so that it may have more devices than `published`.
    partial: bool,
    /// Number of published devices that a claim has for itself; `null` if claims are unknown.
    allocated: Option<usize>,
    /// Number of published devices that claims share, or use with `adminAccess`, other than those in `allocated`;
    /// `null` if claims are unknown.
    shared: Option<usize>,
}

impl NodeListReport {
    fn new(model: &Model, filter: Filter, sort: Sort<NodeColumn>, now: Timestamp) -> Self {
        let gaps = model.cluster.gaps(FeedKind::PREDICTION);
        let names = node_rows(model, &filter, sort);
        let nodes = names.iter().filter_map(|name| model.cluster.node(name));
        let devices = model.cluster.node_devices();
        Self {
            schema: "kordon.nodes/v1",
            taken_at: now,
            forecast_until: model.predictions.forecast().map_or(now, |forecast| forecast.until),
            nodes: nodes.map(|node| ListedNodeReport::new(model, node, devices.as_ref(), now)).collect(),
            total: model.cluster.nodes().len(),
            unknown: UnknownReport::new(&gaps),
            filter,
        }
    }
}

impl ListedNodeReport {
    fn new(
        model: &Model,
        node: &Node,
        devices: Option<&BTreeMap<NodeName, Vec<NodeDevices>>>,
        now: Timestamp,
    ) -> Self {
        let status = StatusNodeReport::new(model, node, now);
        let requested = model.cluster.load(&node.name).requested;
        let requested = status.pods.is_some().then_some(requested);
        let usage = model.measurements.usage(&node.name);
        let engine = model.engine.as_ref();
        let intervals = engine.into_iter().flat_map(|engine| engine.heartbeats().intervals(&node.name));
        Self {
            status,
            terminating: node.terminating,
            flaps: model.watchlist.flaps(&node.name, now),
            heartbeat_intervals_seconds: intervals.map(seconds).collect(),
            cpu_milli: NodeResourceReport {
                allocatable: node.allocatable.cpu_milli,
                requested: requested.map(|requested| requested.cpu_milli),
                used: usage.map(|usage| usage.cpu_milli),
            },
            memory_bytes: NodeResourceReport {
                allocatable: node.allocatable.memory_bytes,
                requested: requested.map(|requested| requested.memory_bytes),
                used: usage.map(|usage| usage.memory_bytes),
            },
            extended: extended(model, node, requested.is_some()),
            devices: devices.map(|devices| {
                let of_node = devices.get(&node.name).map_or(&[][..], Vec::as_slice);
                of_node.iter().map(NodeDevicesReport::new).collect()
            }),
            address: node.address.to_string(),
            kubelet_version: node.kubelet_version.to_string(),
            kernel_version: node.kernel_version.to_string(),
            instance_type: instance_type(node).map(ToString::to_string),
            created: model.cluster.local(node.created),
            problems: node.problems().map(|condition| condition.kind.to_string()).collect(),
        }
    }
}

/// The extended resources of a node.
fn extended(model: &Model, node: &Node, knows_pods: bool) -> Vec<ExtendedResourceReport> {
    let report = |resource: ExtendedResource| ExtendedResourceReport {
        resource: resource.name.to_string(),
        allocatable: resource.allocatable,
        requested: knows_pods.then_some(resource.requested),
    };
    model.cluster.extended_resources(node).into_iter().map(report).collect()
}

impl NodeDevicesReport {
    fn new(devices: &NodeDevices) -> Self {
        let NodeDevices { driver, published, is_partial, allocated } = devices;
        Self {
            driver: driver.to_string(),
            published: *published,
            partial: *is_partial,
            allocated: allocated.map(|allocated| allocated.alone),
            shared: allocated.map(|allocated| allocated.shared),
        }
    }

    /// Allocated and published devices of the driver, such as `gpu.example.com 2/8`. A `+` means that there may be more
    /// devices, a `?` that the number of allocated ones is unknown.
    fn text(&self) -> String {
        let allocated = match (self.allocated, self.shared) {
            (Some(alone), Some(shared @ 1..)) => format!("{alone}+{shared} shared"),
            (Some(alone), _) => alone.to_string(),
            (None, _) => "?".into(),
        };
        format!("{} {allocated}/{}{}", self.driver, self.published, if self.partial { "+" } else { "" })
    }
}

impl NodeResourceReport {
    /// An amount as a share of what is allocatable: `62%`.
    fn share(&self, amount: Option<i64>) -> String {
        let percent = amount.and_then(|amount| amount.saturating_mul(100).checked_div(self.allocatable));
        percent.map_or_else(none, |percent| format!("{percent}%"))
    }
}

fn table(report: &NodeListReport, out: &mut Page) {
    report.unknown.say(out);
    if report.nodes.is_empty() {
        say_empty(out, report.total, ("node", "nodes"), &report.filter);
    }
    let now = report.taken_at;
    let or_none = |text: Option<String>| text.unwrap_or_else(none);
    PageTable::new(&report.nodes)
        .key("NODE", |node| node.status.name.to_string())
        .essential("STATE", move |node| or_none(node.status.status.map(|status| status.text(now))))
        .toned(|node| {
            node.status.status.map_or(Emphasis::Plain, |status| Emphasis::for_state(status.state.role()))
        })
        .useful("HEARTBEAT", move |node| or_none(node.status.last_heartbeat.map(|at| text::age(now, at))))
        .right()
        .detail("RENEWALS", renewals)
        .detail("GRACE LEFT", move |node| or_none(grace_left(&node.status, now)))
        .essential("NEXT", move |node| or_none(next(&node.status)))
        .essential("IN", move |node| or_none(next_in(&node.status, now)))
        .useful("ZONE", |node| zone_name(&node.status.region, &node.status.zone))
        .flexible()
        .useful("PODS", move |node| or_none(node.status.pods.map(|pods| pods.to_string())))
        .right()
        .useful("CPU REQ", |node| node.cpu_milli.share(node.cpu_milli.requested))
        .right()
        .detail("CPU USED", |node| node.cpu_milli.share(node.cpu_milli.used))
        .right()
        .useful("MEM REQ", |node| node.memory_bytes.share(node.memory_bytes.requested))
        .right()
        .detail("MEM USED", |node| node.memory_bytes.share(node.memory_bytes.used))
        .right()
        .detail("EXTENDED", extended_words)
        .flexible()
        .detail("DEVICES", device_words)
        .flexible()
        .detail("CORDONED", |node| yes_or_no(node.status.unschedulable))
        .detail("ROLES", |node| node.status.roles.join(","))
        .detail("PROBE", move |node| or_none(node.status.probe_timestamp.map(Timestamp::to_time)))
        .detail("ADDRESS", |node| node.address.clone())
        .detail("KUBELET", |node| node.kubelet_version.clone())
        .detail("KERNEL", |node| node.kernel_version.clone())
        .detail("TYPE", move |node| or_none(node.instance_type.clone()))
        .detail("AGE", move |node| text::age(now, node.created))
        .right()
        .detail("TAINTS", move |node| or_none(taints(&node.status)))
        .flexible()
        .detail("CONDITIONS", |node| node.problems.join(","))
        .flexible()
        .detail("REASON", |node| not_ready(node, node.status.ready.reason.as_ref()))
        .flexible()
        .detail("MESSAGE", |node| not_ready(node, node.status.ready.message.as_ref()))
        .flexible()
        .detail("WHY", move |node| or_none(node.status.next.as_ref().map(|next| next.why.to_string())))
        .flexible()
        .print(out);
}

/// Extended resources, with the requested and the allocatable amount, as in `nvidia.com/gpu 3/8`.
fn extended_words(node: &ListedNodeReport) -> String {
    let words = node.extended.iter().map(|ExtendedResourceReport { resource, allocatable, requested }| {
        let requested = requested.map_or("?".into(), |requested| requested.to_string());
        format!("{resource} {requested}/{allocatable}")
    });
    let words: Vec<String> = words.collect();
    if words.is_empty() { none() } else { words.join(", ") }
}

/// Devices by driver, with the number that claims have and the number that is published; `?` if devices are unknown.
fn device_words(node: &ListedNodeReport) -> String {
    match node.devices.as_deref() {
        None => "?".into(),
        Some([]) => none(),
        Some(devices) => devices.iter().map(NodeDevicesReport::text).collect::<Vec<_>>().join(", "),
    }
}

fn renewals(node: &ListedNodeReport) -> String {
    let intervals = node.heartbeat_intervals_seconds.iter().map(|seconds| span(*seconds));
    let intervals: Vec<String> = intervals.collect();
    if intervals.is_empty() { none() } else { intervals.join(" ") }
}

/// The reason or message of the Ready condition (`text`) if the node is not Ready; empty if it is Ready.
fn not_ready(node: &ListedNodeReport, text: Option<&String>) -> String {
    let is_ready = node.status.ready.status == Some("True");
    text.filter(|_| !is_ready).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::documented;

    #[test]
    fn the_page_documents_every_field() {
        documented::check::<NodeListReport>("nodes");
    }
}
