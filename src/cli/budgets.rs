//! `kordon budgets`: PodDisruptionBudgets, and the drains that they delay or block.

use clap::Args;
use serde::Serialize;

use super::{
    connection::ConnectionArgs,
    exit::CliError,
    gaps::UnknownReport,
    once::{OnceArgs, OneShot},
    page::{Emphasis, Page, none},
    table::PageTable,
};
use crate::{
    k8s::feed::FeedKind,
    model::{BudgetRoom, BudgetRow, DrainUnderBudget, Model},
};
use kordon_core::cluster::{Key, NodeName};
use kordon_time::Timestamp;

/// Kinds of objects that the report of budgets depends on.
const NEEDS: [FeedKind; 2] = [FeedKind::Budgets, FeedKind::Pods];

#[derive(Args, Debug)]
pub struct BudgetsArgs {
    #[command(flatten)]
    once: OnceArgs,
}

/// Prints the budgets, those that refuse evictions first.
pub async fn run(args: BudgetsArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    let namespace = connection.namespace.clone();
    let mut shot = OneShot::ask_for(&args.once, &FeedKind::PREDICTION, connection).await?;
    let at = shot.at;
    // The list of budgets needs the drains, which this refresh finds.
    shot.model.refresh(at);
    shot.model.run_budgets(at);
    args.once.output.print(&BudgetsReport::new(&shot.model, namespace, at), table)?;
    shot.done()
}

/// PodDisruptionBudgets (`docs/reference/budgets.md`). Every field is always present; unknown values are null.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct BudgetsReport {
    /// `kordon.budgets/v1`: fields are added, never removed or renamed.
    schema: &'static str,
    /// When the report was made.
    taken_at: Timestamp,
    /// The budgets, the most urgent first. Budgets that refuse evictions come before all others.
    budgets: Vec<BudgetReport>,
    #[serde(flatten)]
    unknown: UnknownReport,
    /// The namespace whose budgets are listed; `None` for all namespaces.
    #[serde(skip)]
    namespace: Option<String>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct BudgetReport {
    /// The budget's namespace.
    namespace: String,
    /// The budget's name.
    budget: String,
    /// The rule in the budget's spec, as in `minAvailable 2`; `null` if the spec has no rule.
    rule: Option<String>,
    /// Whether pods may leave: `now`, `after` (once more pods are healthy), `never`, `operator` (only if an operator
    /// lifts the budget or moves the pod), `notComputed` (the disruption controller has not computed the budget since
    /// it was changed), `noPods` (the budget selects no pods) or `unknown` (pods are unknown).
    room: &'static str,
    /// Whether pods may leave, in words; text, not for parsing.
    says: String,
    /// Number of pods that may leave now: `disruptionsAllowed`, or fewer if the status is outdated; `null` if unknown.
    allowed: Option<i32>,
    /// Number of healthy pods.
    healthy: i32,
    /// Number of pods that must be healthy according to the budget.
    desired: i32,
    /// Number of pods that the budget selects.
    pods: usize,
    /// Pods whose eviction would be refused now, as `namespace/name`.
    refused: Vec<String>,
    /// Nodes of the pods in `refused`: a drain of such a node would wait for the budget, or never end.
    blocks: Vec<NodeName>,
    /// Other budgets that select some of the pods of this budget, as `namespace/name`. The API server refuses every
    /// eviction of a pod with several budgets, even if all of them allow it.
    shares_with: Vec<String>,
    /// Drains of nodes on which the budget has pods.
    drains: Vec<BudgetDrainReport>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct BudgetDrainReport {
    /// The node.
    node: NodeName,
    /// Who drains the node; `null` if nothing on the node says who.
    by: Option<String>,
    /// When the budget began to block the drain; `null` if it does not block the drain.
    blocked_since: Option<Timestamp>,
    /// Text about the drain, as in `n-3 by ann, blocked 2m`.
    #[serde(skip)]
    says: String,
}

impl BudgetsReport {
    fn new(model: &Model, namespace: Option<String>, at: Timestamp) -> Self {
        let gaps = model.cluster.gaps(NEEDS);
        let is_meant =
            |row: &&BudgetRow| namespace.as_ref().is_none_or(|namespace| *row.key.namespace == **namespace);
        let rows = model.predictions.budgets().into_iter().flat_map(|list| list.rows());
        let mut rows: Vec<&BudgetRow> = rows.filter(is_meant).collect();
        rows.sort_by_key(|row| (row.urgency(), &row.key));
        Self {
            schema: "kordon.budgets/v1",
            taken_at: at,
            budgets: rows.into_iter().map(|row| BudgetReport::new(row, at)).collect(),
            unknown: UnknownReport::new(&gaps),
            namespace,
        }
    }
}

impl BudgetReport {
    fn new(row: &BudgetRow, now: Timestamp) -> Self {
        let Key { namespace, name } = &row.key;
        let is_known = !matches!(row.room, BudgetRoom::Unknown(_));
        Self {
            namespace: namespace.to_string(),
            budget: name.to_string(),
            rule: Some(row.rule.clone()).filter(|rule| !rule.is_empty()),
            room: row.room.as_str(),
            says: row.room.to_string(),
            allowed: is_known.then_some(row.numbers.allowed.max(0)),
            healthy: row.numbers.healthy,
            desired: row.numbers.desired,
            pods: row.pods.len(),
            refused: row.refused.iter().map(ToString::to_string).collect(),
            blocks: row.blocks.iter().cloned().collect(),
            shares_with: row.shares_with.iter().map(ToString::to_string).collect(),
            drains: row.drains.iter().map(|drain| BudgetDrainReport::new(drain, now)).collect(),
        }
    }
}

impl BudgetDrainReport {
    fn new(drain: &DrainUnderBudget, now: Timestamp) -> Self {
        let DrainUnderBudget { node, by, blocked_since } = drain;
        let says = drain.text(now);
        Self { node: node.clone(), by: by.clone(), blocked_since: *blocked_since, says }
    }
}

fn table(report: &BudgetsReport, out: &mut Page) {
    report.unknown.say(out);
    if report.budgets.is_empty() && report.unknown.is_empty() {
        let place = match &report.namespace {
            None => "the cluster".to_owned(),
            Some(namespace) => format!("namespace {namespace}"),
        };
        out.line(Emphasis::Plain, &format!("{place} has no PodDisruptionBudgets"));
    }
    let names = |nodes: &[NodeName]| match nodes {
        [] => none(),
        nodes => nodes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    };
    PageTable::new(&report.budgets)
        .key("BUDGET", |budget| format!("{}/{}", budget.namespace, budget.budget))
        .essential("ROOM", |budget| budget.says.clone())
        .toned(|budget| if budget.refused.is_empty() { Emphasis::Plain } else { Emphasis::Notice })
        .flexible()
        .useful("HEALTHY", |budget| format!("{} of {}", budget.healthy, budget.desired))
        .detail("RULE", |budget| budget.rule.clone().unwrap_or_else(none))
        .detail("PODS", |budget| budget.pods.to_string())
        .right()
        .essential("BLOCKS", |budget| names(&budget.blocks))
        .flexible()
        .useful("DRAINS", drains)
        .flexible()
        .print(out);
}

/// The drains of a budget: `n-3 by ann, blocked 2m`.
fn drains(budget: &BudgetReport) -> Vec<String> {
    match budget.drains.as_slice() {
        [] => vec![none()],
        drains => drains.iter().map(|drain| drain.says.clone()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::documented;

    #[test]
    fn the_page_documents_every_field() {
        documented::check::<BudgetsReport>("budgets");
    }
}
