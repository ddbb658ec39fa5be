//! `kordon evictions`: the pods that are or will be evicted, as the pane of the dashboard lists them.

use serde::Serialize;

use super::{ListArgs, check_filter, say_empty, yes_or_no};
use crate::{
    app::{EvictionColumn, Filter, Pane, Sort, order::eviction_rows},
    cli::{
        answer::CommandAnswer,
        connection::ConnectionArgs,
        exit::CliError,
        gaps::UnknownReport,
        kubelet_evictions::KubeletEvictionsReport,
        once::OneShot,
        page::{Emphasis, Page, none},
        status::{report::EvictionReport, table::due_in},
        table::PageTable,
    },
    k8s::feed::FeedKind,
    model::{EvictionRow, EvictionState, Model, cluster_verdict::pause},
};
use kordon_core::engine::Confidence;
use kordon_time::Timestamp;

/// Prints the evictions.
pub async fn run(args: ListArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    let (sort, filter) = (args.sort.column()?, args.filter.in_namespace(Pane::Evictions, &connection)?);
    let mut shot = OneShot::ask_for(&args.once, &FeedKind::PREDICTION, connection).await?;
    shot.run_forecast();
    shot.model.run_outcomes(None, shot.at);
    check_filter(&filter, Pane::Evictions, &shot.model)?;
    args.once.output.print(&EvictionListReport::new(&shot.model, filter, sort, shot.at), table)?;
    shot.done()
}

/// The answer of `kordon evictions` about a model that was refreshed at `now`.
pub fn evictions_answer(model: &Model, now: Timestamp) -> CommandAnswer {
    CommandAnswer::new(&EvictionListReport::new(model, Filter::default(), Sort::default(), now), table)
}

/// Evictions (`docs/reference/evictions.md`). Every field is always present; unknown values are null.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct EvictionListReport {
    /// `kordon.evictions/v1`: fields are added, never removed or renamed.
    schema: &'static str,
    /// When the report was made. Durations below count from here.
    taken_at: Timestamp,
    /// The end of the forecast that the predicted evictions come from. Equal to `takenAt` if no forecast could be made.
    forecast_until: Timestamp,
    /// Why the controller evicts nothing now, as text; `null` if it evicts.
    paused: Option<String>,
    /// The pods that pass the filter, in the order of `--sort`; `null` if pods are unknown.
    evictions: Option<Vec<EvictionReport>>,
    /// Number of evictions, whether or not they pass the filter; `null` if pods are unknown.
    total: Option<usize>,
    #[serde(flatten)]
    kubelets: KubeletEvictionsReport,
    #[serde(flatten)]
    unknown: UnknownReport,
    #[serde(skip)]
    #[cfg_attr(test, schemars(skip))]
    filter: Filter,
}

impl EvictionListReport {
    fn new(model: &Model, filter: Filter, sort: Sort<EvictionColumn>, now: Timestamp) -> Self {
        let gaps = model.cluster.gaps(FeedKind::PREDICTION);
        let all = &model.views.leaving.evictions;
        let keys = eviction_rows(model, &filter, sort);
        let rows = keys.iter().filter_map(|key| EvictionReport::new(model, key, all.get(key)?, now));
        // Cancelled evictions have no report, and those by kubelets a report of their own.
        let is_left_out = |row: &&EvictionRow| match row.state {
            EvictionState::ByKubelet { .. } | EvictionState::Cancelled { .. } => true,
            EvictionState::Scheduled { .. }
            | EvictionState::Predicted { .. }
            | EvictionState::Terminating { .. }
            | EvictionState::Never => false,
        };
        let left_out = all.values().filter(is_left_out).count();
        let is_known = model.eviction_gaps().is_empty() || all.len() > left_out;
        Self {
            schema: "kordon.evictions/v1",
            taken_at: now,
            forecast_until: model.predictions.forecast().map_or(now, |forecast| forecast.until),
            paused: paused(model),
            evictions: is_known.then(|| rows.collect()),
            total: is_known.then_some(all.len() - left_out),
            kubelets: KubeletEvictionsReport::new(model, now),
            unknown: UnknownReport::new(&gaps),
            filter,
        }
    }
}

/// Returns why the controller evicts nothing now; `None` if it evicts.
fn paused(model: &Model) -> Option<String> {
    let has_controller = model.views.confidence.is_none_or(Confidence::has_controller);
    if has_controller { pause(&model.views.zones) } else { Some(NO_CONTROLLER.into()) }
}

const NO_CONTROLLER: &str = "no active kube-controller-manager: nothing is evicted until there is one";

fn table(report: &EvictionListReport, out: &mut Page) {
    report.unknown.say(out);
    if let Some(paused) = &report.paused {
        out.line(Emphasis::Critical, paused);
    }
    report.kubelets.say(out);
    match &report.evictions {
        None => out.gap("evictions: unknown"),
        Some(evictions) if evictions.is_empty() => {
            let all = report.total.unwrap_or(0);
            if all > 0 || report.kubelets.is_empty() {
                say_empty(out, all, ("eviction", "evictions"), &report.filter);
            }
        }
        Some(_) => {}
    }
    PageTable::new(report.evictions.as_deref().unwrap_or_default())
        .key("POD", |eviction| format!("{}/{}", eviction.namespace, eviction.pod))
        .essential("IN", |eviction| due_in(eviction, report.taken_at).unwrap_or_else(none))
        .useful("NODE", |eviction| eviction.node.to_string())
        .essential("STATE", |eviction| eviction.state)
        .detail("CHANCE", |eviction| {
            eviction.probability.map_or_else(none, |chance| format!("{:.0}%", 100.0 * chance))
        })
        .right()
        .essential("OUTCOME", |eviction| eviction.outcome_text.clone().unwrap_or_else(none))
        .flexible()
        .detail("BUDGET IGNORED", |eviction| yes_or_no(eviction.budget_ignored))
        .detail("FINALIZERS", |eviction| eviction.finalizers.join(","))
        .flexible()
        .detail("WHY", |eviction| eviction.why.to_string())
        .flexible()
        .print(out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::documented;

    #[test]
    fn the_page_documents_every_field() {
        documented::check::<EvictionListReport>("evictions");
    }
}
