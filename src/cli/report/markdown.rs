//! The postmortem in Markdown.

use std::fmt::Write as _;

use super::{
    document::IncidentReport,
    predictions::{EVENT_COLUMNS, OUTCOME_COLUMNS, event_cells, outcome_cells},
};
use kordon_core::visible;
use kordon_time::{Span, Timestamp};

/// Maximum number of printed rows of a table. The JSON document has all of them.
const ROWS: usize = 200;

/// The whole page. Text from the cluster is escaped, so it is not interpreted as Markdown or HTML.
pub fn page(report: &IncidentReport) -> String {
    let mut out = String::new();
    let title = escaped(&report.context);
    let _ = writeln!(out, "# Incident on {title}, {}\n", report.from.to_time());
    let _ = writeln!(
        out,
        "{} to {} ({}). Kubernetes {}, recorded by kordon {}.",
        report.from.to_time(),
        report.until.to_time(),
        Span::from_secs(report.until.since(report.from).as_secs()),
        escaped(&report.server_version),
        escaped(&report.recorded_by)
    );
    if let Some(fault) = &report.fault {
        let _ = writeln!(out, "\n**The recording {fault}.**");
    }
    summary(report, &mut out);
    timeline(report, &mut out);
    nodes(report, &mut out);
    workloads(report, &mut out);
    evictions(report, &mut out);
    predictions(report, &mut out);
    out
}

fn summary(report: &IncidentReport, out: &mut String) {
    let summary = &report.summary;
    let _ = writeln!(out, "\n## Summary\n");
    let _ = writeln!(out, "- Nodes that failed (declared NotReady or Unknown): {}", summary.nodes_failed);
    let _ = writeln!(out, "- Nodes that were silent and did not fail: {}", summary.nodes_silent);
    let _ = writeln!(out, "- Times that the pods of a node were evicted: {}", summary.nodes_evicted);
    let _ = writeln!(out, "- Pods evicted: {}", summary.pods_evicted);
    let _ = writeln!(
        out,
        "- Workloads that lacked pods: {} ({} of missing pods in total)",
        summary.workloads_affected,
        seconds(summary.missing_pod_seconds)
    );
    let _ = writeln!(
        out,
        "- Evictions that were not necessary (node back within {}): {}",
        seconds(report.evictions.back_within_seconds),
        report.evictions.unnecessary.len()
    );
}

fn timeline(report: &IncidentReport, out: &mut String) {
    let rows = report
        .moments
        .iter()
        .map(|moment| [time(Some(moment.at)), moment.level.to_owned(), escaped(&moment.text)]);
    table(out, "Time line", ["time", "level", "what happened"], rows);
}

fn nodes(report: &IncidentReport, out: &mut String) {
    let rows = report.nodes.iter().map(|node| {
        [
            escaped(&node.node),
            escaped(&node.zone),
            time(Some(node.from)),
            time(node.down),
            time(node.evicting),
            node.until.map_or("not Ready".into(), |at| time(Some(at))),
            seconds(node.seconds),
            node.evicted_pods.to_string(),
        ]
    });
    let columns = ["node", "zone", "from", "failed", "evicting", "Ready again", "for", "pods evicted"];
    table(out, "Nodes", columns, rows);
    for node in report.nodes.iter().filter(|node| !node.why.is_empty()).take(ROWS) {
        let _ = writeln!(out, "\nWhy {} was {}:\n", escaped(&node.node), node.worst);
        for step in &node.why {
            let _ = writeln!(out, "- {}", escaped(step));
        }
    }
}

fn workloads(report: &IncidentReport, out: &mut String) {
    let rows = report.workloads.iter().map(|workload| {
        [
            format!("{} {}", workload.kind, escaped(&workload.workload)),
            time(Some(workload.from)),
            workload.until.map_or("still lacking".into(), |at| time(Some(at))),
            seconds(workload.seconds),
            format!("{} of {}", workload.least_ready, workload.desired),
            seconds(workload.missing_pod_seconds),
        ]
    });
    let columns = ["workload", "from", "until", "for", "fewest ready", "missing pods × time"];
    table(out, "Workloads that lacked pods", columns, rows);
}

fn evictions(report: &IncidentReport, out: &mut String) {
    let kinds = report.evictions.kinds.iter().map(|kind| [kind.kind.to_owned(), kind.pods.to_string()]);
    table(out, "Evictions", ["kind", "pods"], kinds);
    let rows = report.evictions.unnecessary.iter().map(|eviction| {
        [
            escaped(&eviction.pod),
            escaped(&eviction.node),
            time(Some(eviction.at)),
            seconds(eviction.back_after_seconds),
        ]
    });
    let title = "Evictions that were not necessary";
    table(out, title, ["pod", "node", "evicted", "node back after"], rows);
}

fn predictions(report: &IncidentReport, out: &mut String) {
    let predictions = &report.predictions;
    table(out, "Predictions, five seconds before", EVENT_COLUMNS, predictions.events.iter().map(event_cells));
    for line in predictions.lines() {
        let _ = writeln!(out, "\n{}", escaped(&line));
    }
    for miss in predictions.misses.iter().take(ROWS) {
        let _ = writeln!(out, "- missed: {}", escaped(miss));
    }
    table(
        out,
        "Predicted outcomes of evicted pods",
        OUTCOME_COLUMNS,
        [outcome_cells(&predictions.outcomes)].into_iter(),
    );
    for difference in predictions.outcome_differences.iter().take(ROWS) {
        let _ = writeln!(out, "- other: {}", escaped(difference));
    }
}

fn table<const N: usize>(
    out: &mut String,
    title: &str,
    columns: [&str; N],
    rows: impl ExactSizeIterator<Item = [String; N]>,
) {
    let _ = writeln!(out, "\n## {title}\n");
    let all = rows.len();
    if all == 0 {
        let _ = writeln!(out, "None.");
        return;
    }
    let _ = writeln!(out, "| {} |\n|{}", columns.join(" | "), " --- |".repeat(N));
    for row in rows.take(ROWS) {
        let _ = writeln!(out, "| {} |", row.join(" | "));
    }
    if all > ROWS {
        let _ = writeln!(out, "\nThe first {ROWS} of {all}; `-o json` has all.");
    }
}

fn time(at: Option<Timestamp>) -> String {
    at.map_or("–".into(), |at| at.utc().format("%Y-%m-%d %H:%M:%S").to_string())
}

/// A duration in whole seconds: `1h2m3s`.
pub fn seconds(seconds: f64) -> String {
    Span::from_secs(Span::from_secs_f64(seconds).as_secs()).to_string()
}

/// Escapes text for Markdown, including tables.
pub fn escaped(text: &str) -> String {
    const SPECIAL: &str = "\\`*_{}[]()<>#+!|~&$@:";
    let mut out = String::with_capacity(text.len());
    for letter in visible::text(text).chars() {
        match letter {
            '\n' | '\r' => out.push(' '),
            // Times have many colons, which only matter in links.
            ':' if !text.contains("//") => out.push(':'),
            letter if SPECIAL.contains(letter) => {
                out.push('\\');
                out.push(letter);
            }
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_the_cluster_is_no_markdown() {
        assert_eq!(escaped("a-1 at 03:12"), "a-1 at 03:12");
        assert_eq!(escaped("a|b `c` [x](http://y)"), "a\\|b \\`c\\` \\[x\\]\\(http\\://y\\)");
        assert_eq!(escaped("<script>\nalert(1)"), "\\<script\\>\u{240a}alert\\(1\\)");
    }
}
