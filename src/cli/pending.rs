//! `kordon pending`: pods that wait for a node, and what would help each of them.

use clap::Args;
use serde::Serialize;

use super::{
    connection::ConnectionArgs,
    exit::CliError,
    gaps::UnknownReport,
    lists::{FilterArgs, check_filter, say_empty},
    once::{OnceArgs, OneShot},
    page::{Emphasis, Page},
    table::PageTable,
};
use crate::{
    app::{Filter, Pane, Sort, order::pending_rows},
    k8s::feed::FeedKind,
    model::{Model, PendingAdvice, pending_pods::pending_since},
    ui::text,
};
use kordon_core::cluster::{Key, NodeName, Pod};
use kordon_time::Timestamp;

#[derive(Args, Debug)]
pub struct PendingArgs {
    #[command(flatten)]
    once: OnceArgs,
    #[command(flatten)]
    filter: FilterArgs,
}

/// Prints pods that wait for a node.
pub async fn run(args: PendingArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    let filter = args.filter.in_namespace(Pane::Pending, &connection)?;
    let mut shot = OneShot::ask_for(&args.once, &FeedKind::PREDICTION, connection).await?;
    shot.model.run_pending(None);
    shot.model.refresh(shot.at);
    check_filter(&filter, Pane::Pending, &shot.model)?;
    args.once.output.print(&PendingReport::new(&shot.model, filter, shot.at), table)?;
    shot.done()
}

/// Pods that wait for a node (`docs/reference/pending.md`). Every field is always present; unknown values are null.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct PendingReport {
    /// `kordon.pending/v1`: fields are added, never removed or renamed.
    schema: &'static str,
    /// When the report was made. Durations below count from here.
    taken_at: Timestamp,
    /// The pods that wait for a node, the longest wait first.
    pods: Vec<PendingPodReport>,
    #[serde(flatten)]
    unknown: UnknownReport,
    /// Number of pods that wait for a node, before the filter.
    #[serde(skip)]
    total: usize,
    #[serde(skip)]
    #[cfg_attr(test, schemars(skip))]
    filter: Filter,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct PendingPodReport {
    /// The pod's namespace.
    namespace: String,
    /// The pod's name.
    pod: String,
    /// The pod's priority, from its PriorityClass.
    priority: i32,
    /// When the wait began: when the scheduler said that no node takes the pod (PodScheduled is False), else when the
    /// pod was created.
    since: Timestamp,
    /// How long the pod has waited.
    for_seconds: f64,
    /// The cause that the scheduler reports in the pod's condition PodScheduled, shortened; text, not for parsing.
    cause: String,
    /// What comes next: `fits` (a node takes the pod: the scheduler has not tried again), `preempts` (the pod takes the
    /// place of pods of lower priority), `waits` (the pod takes its nominated node once the pods that it preempts are
    /// gone: nothing is needed), `unschedulable` (no node takes the pod), `notTried` (the default scheduler
    /// does not place the pod), `leftOut` (there are too many pods to compute it for each); `null` if it was not
    /// computed, because nodes or pods are unknown.
    advice: Option<&'static str>,
    /// The node that takes the pod, for `fits`, `preempts` and `waits`.
    node: Option<NodeName>,
    /// Number of pods whose place the pod takes, for `preempts`.
    preempts: Option<usize>,
    /// What would help, the most helpful first, as text.
    help: Vec<String>,
}

impl PendingReport {
    fn new(model: &Model, filter: Filter, at: Timestamp) -> Self {
        let gaps = model.cluster.gaps(FeedKind::PREDICTION);
        let keys = pending_rows(model, &filter, Sort::default());
        let pods = keys.iter().filter_map(|key| model.cluster.pod(key));
        Self {
            schema: "kordon.pending/v1",
            taken_at: at,
            pods: pods.map(|pod| PendingPodReport::new(pod, model, at)).collect(),
            unknown: UnknownReport::new(&gaps),
            total: model.cluster.unscheduled_count(),
            filter,
        }
    }
}

impl PendingPodReport {
    fn new(pod: &Pod, model: &Model, now: Timestamp) -> Self {
        let Key { namespace, name } = &pod.key;
        let since = pending_since(&model.cluster, pod);
        let advice = model.predictions.pending_advice(&pod.key);
        let (node, preempts) = match advice {
            Some(PendingAdvice::Fits { node } | PendingAdvice::Waits { node, .. }) => {
                (Some(node.clone()), None)
            }
            Some(PendingAdvice::Preempts { node, pods }) => (Some(node.clone()), Some(*pods)),
            Some(
                PendingAdvice::Unschedulable { .. } | PendingAdvice::NotTried { .. } | PendingAdvice::LeftOut,
            )
            | None => (None, None),
        };
        Self {
            namespace: namespace.to_string(),
            pod: name.to_string(),
            priority: pod.priority,
            since,
            for_seconds: now.since(since).or_zero().as_secs_f64(),
            cause: pod.pending_cause(),
            advice: advice.map(PendingAdvice::as_str),
            node,
            preempts,
            help: advice.map(PendingAdvice::lines).unwrap_or_default(),
        }
    }
}

fn table(report: &PendingReport, out: &mut Page) {
    report.unknown.say(out);
    match report.total {
        _ if !report.pods.is_empty() || !report.unknown.is_empty() => {}
        0 => out.line(Emphasis::Plain, "no pod waits for a node"),
        total => say_empty(out, total, ("pod that waits", "pods that wait"), &report.filter),
    }
    PageTable::new(&report.pods)
        .key("POD", |pod| format!("{}/{}", pod.namespace, pod.pod))
        .essential("FOR", |pod| text::age(report.taken_at, pod.since))
        .right()
        .essential("WHY", |pod| text::brief(&pod.cause))
        .flexible()
        .useful("WHAT WOULD HELP", help)
        .flexible()
        .print(out);
}

fn help(pod: &PendingPodReport) -> String {
    match pod.advice {
        Some(_) if pod.help.is_empty() => "nothing that kordon knows".to_owned(),
        Some(_) => text::brief(&pod.help.join("; ")).to_string(),
        None => "not known".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::documented;

    #[test]
    fn the_page_documents_every_field() {
        documented::check::<PendingReport>("pending");
    }
}
