//! Sections of the postmortem as plain text. The modules for Markdown and HTML add only their format.

use super::{
    document::IncidentReport,
    predictions::{EVENT_COLUMNS, OUTCOME_COLUMNS, event_cells, order_line, outcome_cells},
};
use kordon_time::{Span, Timestamp};

/// A part of the page. All its text is unescaped.
pub enum Block {
    Paragraph(String),
    /// A sentence that the reader must not miss.
    Fault(String),
    Heading(&'static str),
    List(Vec<String>),
    /// A list with a title, which HTML folds.
    Details(String, Vec<String>),
    Table(ReportTable),
    /// The place of the pictures, in formats that have pictures.
    Pictures,
}

/// A table. A table without rows is printed as `None.`
pub struct ReportTable {
    pub columns: Vec<&'static str>,
    pub rows: Vec<Vec<String>>,
}

fn table<const N: usize>(columns: [&'static str; N], rows: impl IntoIterator<Item = [String; N]>) -> Block {
    let rows = rows.into_iter().map(Vec::from).collect();
    Block::Table(ReportTable { columns: columns.to_vec(), rows })
}

/// Title of the page.
pub fn title(report: &IncidentReport) -> String {
    format!("Incident on {}, {}", report.context, report.from.to_time())
}

/// Everything on the page below its title.
pub fn blocks(report: &IncidentReport) -> Vec<Block> {
    let lead = format!(
        "{} to {} ({}). Kubernetes {}, recorded by kordon {}.",
        report.from.to_time(),
        report.until.to_time(),
        Span::from_secs(report.until.since(report.from).as_secs()),
        report.server_version,
        report.recorded_by
    );
    let mut blocks = vec![Block::Paragraph(lead)];
    blocks.extend(report.fault.as_ref().map(|fault| Block::Fault(format!("The recording {fault}."))));
    blocks.extend([Block::Heading("Summary"), summary(report), Block::Pictures]);
    blocks.extend([Block::Heading("Time line"), timeline(report)]);
    blocks.extend([Block::Heading("Nodes"), nodes(report)]);
    blocks.extend(whys(report));
    blocks.extend([Block::Heading("Workloads that lacked pods"), workloads(report)]);
    blocks.extend(evictions(report));
    blocks.extend(predictions(report));
    blocks
}

fn summary(report: &IncidentReport) -> Block {
    let summary = &report.summary;
    Block::List(vec![
        format!("Nodes that failed (declared NotReady or Unknown): {}", summary.nodes_failed),
        format!("Nodes that were silent and did not fail: {}", summary.nodes_silent),
        format!("Outages of a node in which pods were evicted from it: {}", summary.nodes_evicted),
        format!("Pods evicted: {}", summary.pods_evicted),
        format!(
            "Workloads that lacked pods: {} ({} of missing pods in total)",
            summary.workloads_affected,
            seconds(summary.missing_pod_seconds)
        ),
    ])
}

fn timeline(report: &IncidentReport) -> Block {
    let rows = report
        .moments
        .iter()
        .map(|moment| [time(Some(moment.at)), moment.level.to_owned(), moment.text.to_string()]);
    table(["time", "level", "what happened"], rows)
}

fn nodes(report: &IncidentReport) -> Block {
    let rows = report.nodes.iter().map(|node| {
        [
            node.node.to_string(),
            node.zone.to_string(),
            time(Some(node.from)),
            time(node.down),
            time(node.evicting),
            node.until.map_or("not Ready".into(), |at| time(Some(at))),
            seconds(node.seconds),
            node.evicted_pods.to_string(),
        ]
    });
    let columns = ["node", "zone", "from", "failed", "evicting", "Ready again", "for", "pods evicted"];
    table(columns, rows)
}

fn whys(report: &IncidentReport) -> impl Iterator<Item = Block> {
    let explained = report.nodes.iter().filter(|node| !node.why.is_empty());
    explained.map(|node| {
        let steps = node.why.iter().map(ToString::to_string).collect();
        Block::Details(format!("Why {} was {}", node.node, node.worst), steps)
    })
}

fn workloads(report: &IncidentReport) -> Block {
    let rows = report.workloads.iter().map(|workload| {
        [
            format!("{} {}", workload.kind, workload.workload),
            time(Some(workload.from)),
            workload.until.map_or("still lacking".into(), |at| time(Some(at))),
            seconds(workload.seconds),
            format!("{} of {}", workload.least_ready, workload.desired),
            seconds(workload.missing_pod_seconds),
        ]
    });
    let columns = ["workload", "from", "until", "for", "fewest ready", "missing pods × time"];
    table(columns, rows)
}

fn evictions(report: &IncidentReport) -> [Block; 2] {
    let kinds = report.evictions.kinds.iter().map(|kind| [kind.kind.to_owned(), kind.pods.to_string()]);
    [Block::Heading("Evictions"), table(["kind", "pods"], kinds)]
}

fn predictions(report: &IncidentReport) -> Vec<Block> {
    let predictions = &report.predictions;
    let listed = |word: &str, items: &[String]| -> Option<Block> {
        let items: Vec<String> = items.iter().map(|item| format!("{word}: {item}")).collect();
        (!items.is_empty()).then_some(Block::List(items))
    };
    let mut blocks = vec![Block::Heading("Predictions, five seconds before")];
    blocks.push(table(EVENT_COLUMNS, predictions.events.iter().map(event_cells)));
    blocks.extend(predictions.lines().into_iter().map(Block::Paragraph));
    blocks.extend(listed("missed", &predictions.misses));
    blocks.push(Block::Heading("Predicted outcomes of evicted pods"));
    blocks.push(table(OUTCOME_COLUMNS, [outcome_cells(&predictions.outcomes)]));
    blocks.extend(order_line(&predictions.outcomes).map(Block::Paragraph));
    blocks.extend(listed("other", &predictions.outcome_differences));
    blocks
}

fn time(at: Option<Timestamp>) -> String {
    at.map_or("–".into(), |at| at.utc().format("%Y-%m-%d %H:%M:%S").to_string())
}

/// A duration in whole seconds: `1h2m3s`.
fn seconds(seconds: f64) -> String {
    Span::from_secs(Span::from_secs_f64(seconds).as_secs()).to_string()
}
