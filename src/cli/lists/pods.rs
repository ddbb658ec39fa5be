//! `kordon pods`: lists the pods on nodes, as the dashboard's pane of pods does.

use std::{collections::BTreeSet, sync::Arc};

use clap::Args;
use serde::Serialize;

use super::{ListArgs, check_filter_of, say_empty, yes_or_no};
use crate::{
    app::{Filter, Pane, PodColumn, Sort, filter_fields::FilterablePod, order::pod_rows},
    cli::{
        connection::ConnectionArgs,
        exit::CliError,
        gaps::UnknownReport,
        once::OneShot,
        page::{Page, none},
        status::{report::EvictionReport, table::due_in},
        table::PageTable,
    },
    k8s::feed::FeedKind,
    model::Model,
    ui::text,
};
use kordon_core::cluster::{LocalVolume, NodeName, Pod};
use kordon_time::Timestamp;

#[derive(Args, Debug)]
pub struct PodListArgs {
    /// Names of nodes; without a name all nodes
    #[arg(value_name = "NODE")]
    nodes: Vec<String>,
    /// List pods of all namespaces; the default without --namespace
    #[arg(long, short = 'A')]
    all_namespaces: bool,
    #[command(flatten)]
    list: ListArgs,
}

/// Which pods to list.
#[derive(Debug)]
struct PodChoice {
    /// Names of the nodes; empty for all nodes.
    nodes: BTreeSet<NodeName>,
    /// Namespace of the pods; `None` for all namespaces.
    namespace: Option<String>,
}

/// Prints the pods of nodes.
pub async fn run(args: PodListArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    let (sort, filter) = (args.list.sort.column()?, args.list.filter.for_pane(Pane::Pods)?);
    let choice = PodChoice {
        nodes: args.nodes.iter().map(|name| name.as_str().into()).collect(),
        namespace: connection.namespace.clone().filter(|_| !args.all_namespaces),
    };
    let mut shot = OneShot::ask_for(&args.list.once, &FeedKind::PREDICTION, connection).await?;
    if let Some(gone) = choice.nodes.iter().find(|name| shot.model.cluster.node(name).is_none()) {
        return Err(CliError::no_node(gone, &shot.model.cluster));
    }
    shot.run_forecast();
    shot.model.run_outcomes(None, shot.at);
    let model = &shot.model;
    check_filter_of(&filter, Pane::Pods, &|visit| {
        choice.pods(model).for_each(|pod| visit(&FilterablePod { shown: model, pod }));
    })?;
    args.list.once.output.print(&PodListReport::new(model, &choice, filter, sort, shot.at), table)?;
    shot.done()
}

/// Pods on nodes (`docs/reference/pods.md`). Every field is always present; unknown values are null.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct PodListReport {
    /// `kordon.pods/v1`: fields are added, never removed or renamed.
    schema: &'static str,
    /// When the report was made. Durations below count from here.
    taken_at: Timestamp,
    /// The pods on the nodes, in the order of `--sort`; pods that do not pass the filter are left out. If `unknown`
    /// lists pods, only the known pods are included.
    pods: Vec<ListedPodReport>,
    /// Number of pods on the nodes, before the filter.
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
struct ListedPodReport {
    /// The pod's namespace.
    namespace: String,
    /// The pod's name.
    pod: String,
    /// The pod's node.
    node: Option<NodeName>,
    /// Whether the pod's Ready condition is True.
    ready: bool,
    /// The condition types that the pod's readiness gates wait for.
    unmet_gates: Vec<String>,
    /// The pod's phase: `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    phase: &'static str,
    /// The pod's eviction; `null` unless the pod is terminating, or its node has a NoExecute taint or is expected to
    /// get one.
    eviction: Option<EvictionReport>,
    /// The kind of the pod's owner; `null` without an owner.
    owner_kind: Option<String>,
    /// The name of the pod's owner; `null` without an owner.
    owner: Option<String>,
    /// Whether the pod is the mirror pod of a static pod.
    is_static: bool,
    /// Volumes whose data stays on the node or is lost with the pod: `emptyDir`, `emptyDir in memory`,
    /// `hostPath`, `ephemeral volume`.
    local_data: Vec<&'static str>,
    /// The pod's priority, from its PriorityClass.
    priority: i32,
    /// The CPU that the pod requests, in thousandths of a core.
    cpu_milli: i64,
    /// The memory that the pod requests, in bytes.
    memory_bytes: i64,
    /// When the pod was created.
    created: Timestamp,
}

impl PodChoice {
    fn pods<'a>(&'a self, model: &'a Model) -> impl Iterator<Item = &'a Arc<Pod>> {
        model.cluster.pods().iter().filter(move |pod| self.has(pod))
    }

    fn has(&self, pod: &Pod) -> bool {
        let is_on = |node: &NodeName| self.nodes.is_empty() || self.nodes.contains(node);
        pod.node.as_ref().is_some_and(is_on)
            && self.namespace.as_ref().is_none_or(|namespace| *pod.key.namespace == **namespace)
    }
}

impl PodListReport {
    fn new(model: &Model, choice: &PodChoice, filter: Filter, sort: Sort<PodColumn>, now: Timestamp) -> Self {
        let gaps = model.cluster.gaps(FeedKind::PREDICTION);
        let keys = pod_rows(model, choice.pods(model), &filter, sort);
        let pods = keys.iter().filter_map(|key| model.cluster.pod(key));
        Self {
            schema: "kordon.pods/v1",
            taken_at: now,
            pods: pods.map(|pod| ListedPodReport::new(model, pod, now)).collect(),
            total: choice.pods(model).count(),
            unknown: UnknownReport::new(&gaps),
            filter,
        }
    }
}

impl ListedPodReport {
    fn new(model: &Model, pod: &Pod, now: Timestamp) -> Self {
        let eviction = model.views.leaving.evictions.get(&pod.key);
        let (owner, requests) = (pod.owner.as_ref(), pod.requests());
        Self {
            namespace: pod.key.namespace.to_string(),
            pod: pod.key.name.to_string(),
            node: pod.node.clone(),
            ready: pod.is_ready(),
            unmet_gates: pod.unmet_gates().iter().map(ToString::to_string).collect(),
            phase: pod.phase.as_str(),
            eviction: eviction.and_then(|row| EvictionReport::new(model, &pod.key, row, now)),
            owner_kind: owner.map(|owner| owner.kind.as_str().to_owned()),
            owner: owner.map(|owner| owner.name.to_string()),
            is_static: pod.mirror,
            local_data: pod.storage.kinds().map(LocalVolume::as_str).collect(),
            priority: pod.priority,
            cpu_milli: requests.cpu_milli,
            memory_bytes: requests.memory_bytes,
            created: model.cluster.local(pod.created),
        }
    }
}

fn table(report: &PodListReport, out: &mut Page) {
    report.unknown.say(out);
    if report.pods.is_empty() && report.unknown.is_empty() {
        say_empty(out, report.total, ("pod", "pods"), &report.filter);
    }
    PageTable::new(&report.pods)
        .key("POD", |pod| format!("{}/{}", pod.namespace, pod.pod))
        .essential("READY", |pod| yes_or_no(pod.ready))
        .essential("PHASE", |pod| pod.phase)
        .detail("UNMET GATES", |pod| pod.unmet_gates.join(","))
        .flexible()
        .essential("EVICTION", |pod| eviction(pod, report.taken_at))
        .useful("NODE", |pod| pod.node.as_ref().map_or_else(none, ToString::to_string))
        .flexible()
        .useful("OWNER", owner)
        .flexible()
        .detail("LOCAL DATA", |pod| pod.local_data.join(", "))
        .flexible()
        .detail("PRIORITY", |pod| pod.priority.to_string())
        .right()
        .detail("CPU", |pod| text::cores(pod.cpu_milli))
        .right()
        .detail("MEMORY", |pod| text::memory(pod.memory_bytes))
        .right()
        .useful("AGE", |pod| text::age(report.taken_at, pod.created))
        .right()
        .print(out);
}

/// Time until the pod's eviction, as text; `never` if the pod tolerates the taint.
fn eviction(pod: &ListedPodReport, now: Timestamp) -> String {
    let Some(eviction) = &pod.eviction else { return none() };
    due_in(eviction, now).unwrap_or_else(|| eviction.state.to_owned())
}

fn owner(pod: &ListedPodReport) -> String {
    match (&pod.owner_kind, &pod.owner) {
        _ if pod.is_static => "static pod".into(),
        (Some(kind), Some(name)) => format!("{kind} {name}"),
        _ => "none".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::documented;

    #[test]
    fn the_page_documents_every_field() {
        documented::check::<PodListReport>("pods");
    }
}
