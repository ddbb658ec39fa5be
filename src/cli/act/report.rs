//! The report of an applied action, with stable names (`docs/reference/report.md`).

use std::fmt::Write as _;

use serde::Serialize;

use super::super::{
    page::{Page, none},
    table::PageTable,
};
use kordon_core::{
    cluster::{NodeName, OperationId},
    operation::{
        DrainCount, NodeProgress, NodeProgressStage, OperationEnd, OperationProgress, PodProgress,
        SurgeProgress, approval::Approval,
    },
};
use kordon_time::Timestamp;

/// An action that was applied. Every field is always present; values that do not apply are null.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OperationReport {
    /// `kordon.report/v1`: fields are added, never removed or renamed.
    pub schema: &'static str,
    /// Id of the operation, as on the nodes and in the journal; `--resume` and `kordon undo` take it. `null` if no
    /// operation was started, because there was nothing to do.
    pub operation: Option<OperationId>,
    /// When the operation started.
    pub began: Timestamp,
    /// When the operation ended.
    pub ended: Timestamp,
    /// How the operation ended: `done`, `recorded`, `partly` (some of it could not be done), `timedOut`, `forbidden`,
    /// `claimedByOther` (somebody else is draining a node) or `cancelled`.
    pub end: &'static str,
    /// Progress of the pods that the operation removes; pods that stay are not counted.
    pub count: DrainCountReport,
    pub nodes: Vec<OperationNodeReport>,
    pub pods: Vec<OperationPodReport>,
    /// The Deployments that `--surge` scales up while their pods leave.
    pub surges: Vec<OperationSurgeReport>,
    /// Summary of the operation in one line.
    #[serde(skip)]
    pub in_short: String,
}

#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OperationNodeReport {
    /// The node.
    pub name: NodeName,
    /// The node's stage: `waiting`, `written`, `unchanged`, `draining`, `verifying`, `drained`, `recorded` or
    /// `incomplete`.
    pub stage: &'static str,
    /// The node's stage in words, with the reason.
    pub text: String,
    /// Whether this operation cordoned the node. A node that was cordoned before stays cordoned on `kordon undo`.
    pub cordoned: bool,
    /// Progress of the pods that the operation removes from the node.
    pub count: DrainCountReport,
}

/// Numbers of the pods that a drain removes: all of them, and the pods in each state.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DrainCountReport {
    /// Number of pods that the drain removes, pods that are already gone included. The parts below add up to it.
    pub total: usize,
    /// Pods that are already deleted.
    pub gone: usize,
    /// Pods that are terminating.
    pub terminating: usize,
    /// Pods whose eviction is refused, for example by a budget. The report of the drain counts a refusal at once.
    /// `kordon status` counts refused pods as `waiting` until budgets have refused all remaining pods for 30 seconds.
    pub blocked: usize,
    /// Pods that are not evicted yet.
    pub waiting: usize,
    /// Pods that finished before they were evicted (`Succeeded` or `Failed`), and are not deleted yet.
    pub finished: usize,
}

impl From<DrainCount> for DrainCountReport {
    fn from(count: DrainCount) -> Self {
        let DrainCount { gone, terminating, blocked, waiting, finished } = count;
        Self { total: count.total(), gone, terminating, blocked, waiting, finished }
    }
}

#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OperationPodReport {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub pod: String,
    /// The uid of the pod for which the plan was made; a newer pod may have its name now.
    pub uid: String,
    /// The node that the pod was to leave; `null` if the operation names pods instead of nodes.
    pub node: Option<NodeName>,
    /// The pod's stage: `gone`, `replaced` or `stays`; for other pods the last stage that they reached: `waiting`,
    /// `requested`, `blocked`, `terminating`, `refused`, `successor`, `forbidden`, `failed`, `timedOut` or `cancelled`.
    pub stage: &'static str,
    /// The pod's stage in words; if a budget blocked the pod, with the budget and its numbers.
    pub text: String,
    /// How many eviction or deletion requests were sent.
    pub tries: u32,
    /// Whether the pod was bound to the node after the plan was made.
    pub late: bool,
}

#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OperationSurgeReport {
    /// The Deployment's namespace.
    pub namespace: String,
    /// The Deployment's name.
    pub deployment: String,
    /// Replicas of the Deployment before it is scaled up.
    pub replicas: i32,
    /// Replicas of the Deployment while it is scaled up.
    pub raised_replicas: i32,
    /// The stage of the scale-up: `waiting`, `scaledUp`, `scaledBack`, `recorded`, `notScaled` (nothing was written),
    /// `leftAlone` (somebody else has scaled the Deployment since) or `stranded` (kordon could not scale it back;
    /// `kordon undo` does).
    pub stage: &'static str,
    /// The stage of the scale-up in words, with the reason.
    pub text: String,
}

impl OperationReport {
    pub fn new(progress: &OperationProgress, end: OperationEnd, now: Timestamp) -> Self {
        let node = |row: &NodeProgress| OperationNodeReport {
            name: row.node.clone(),
            stage: row.stage.word(),
            text: row.text(),
            cordoned: row.cordoned,
            count: progress.count_on(&row.node).into(),
        };
        let pod = |row: &PodProgress| OperationPodReport {
            namespace: row.pod.namespace.to_string(),
            pod: row.pod.name.to_string(),
            uid: row.uid.to_string(),
            node: row.node.clone(),
            stage: row.stage.word(),
            text: row.stage.to_string(),
            tries: row.tries,
            late: row.late,
        };
        Self {
            schema: "kordon.report/v1",
            operation: Some(progress.id.clone()),
            began: progress.started_at,
            ended: progress.ended.map_or(now, |(at, _)| at),
            end: end.as_str(),
            count: progress.count().into(),
            nodes: progress.nodes.iter().map(node).collect(),
            pods: progress.pods.iter().map(pod).collect(),
            surges: progress.surges.iter().map(surge).collect(),
            in_short: progress.in_short(),
        }
    }

    /// The report of an approval that started no operation, because nothing would change.
    pub fn unchanged(approval: &Approval, now: Timestamp) -> Self {
        let stage = NodeProgressStage::Unchanged;
        let node = |name: &NodeName| OperationNodeReport {
            name: name.clone(),
            stage: stage.word(),
            text: stage.to_string(),
            cordoned: false,
            count: DrainCountReport::default(),
        };
        Self {
            schema: "kordon.report/v1",
            operation: None,
            began: now,
            ended: now,
            end: OperationEnd::Done.as_str(),
            count: DrainCountReport::default(),
            nodes: approval.targets().into_iter().map(node).collect(),
            pods: Vec::new(),
            surges: Vec::new(),
            in_short: "nothing to do".into(),
        }
    }
}

fn surge(row: &SurgeProgress) -> OperationSurgeReport {
    OperationSurgeReport {
        namespace: row.deployment.namespace.to_string(),
        deployment: row.deployment.name.to_string(),
        replicas: row.replicas.0,
        raised_replicas: row.replicas.1,
        stage: row.stage.word(),
        text: row.stage.to_string(),
    }
}

/// Renders the report for people.
pub fn render(report: &OperationReport, out: &mut Page) {
    let took = report.ended.since(report.began);
    let _ = match report.operation.as_deref() {
        Some(operation) => writeln!(out, "{operation} {} after {took}: {}", report.end, report.in_short),
        None => writeln!(out, "{}: no operation was started", report.in_short),
    };
    PageTable::new(&report.nodes)
        .key("NODE", |node| node.name.to_string())
        .useful("CORDONED BY THIS", |node| if node.cordoned { "yes" } else { "-" })
        .essential("RESULT", |node| node.text.clone())
        .flexible()
        .print(out);
    let late = |pod: &OperationPodReport| if pod.late { " (came late)" } else { "" };
    PageTable::new(&report.pods)
        .key("POD", |pod| format!("{}/{}", pod.namespace, pod.pod))
        .useful("NODE", |pod| pod.node.as_deref().map_or_else(none, str::to_owned))
        .detail("TRIES", |pod| pod.tries.to_string())
        .right()
        .essential("RESULT", |pod| format!("{}{}", pod.text, late(pod)))
        .flexible()
        .print(out);
    PageTable::new(&report.surges)
        .key("DEPLOYMENT", |surge| format!("{}/{}", surge.namespace, surge.deployment))
        .useful("REPLICAS", |surge| format!("{} -> {}", surge.replicas, surge.raised_replicas))
        .essential("RESULT", |surge| surge.text.clone())
        .flexible()
        .print(out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_documents_every_field() {
        crate::cli::documented::check::<OperationReport>("report");
    }
}
