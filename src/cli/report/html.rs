//! The postmortem as an HTML page with pictures of the dashboard. The page loads no resources and has no scripts.

use std::fmt::Write as _;

use super::{
    Picture,
    document::IncidentReport,
    markdown::seconds,
    predictions::{EVENT_COLUMNS, OUTCOME_COLUMNS, event_cells, outcome_cells},
};
use kordon_core::visible;
use kordon_time::{Span, Timestamp};

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:1200px;margin:2em auto;padding:0 1em;color:#1d2430;background:#fff}\
table{border-collapse:collapse;margin:.5em 0 1.5em}th,td{text-align:left;padding:.25em .8em;border-bottom:1px solid #d8dee6;vertical-align:top}\
th{color:#566375;font-weight:600}figure{margin:1em 0 2em}figure svg{max-width:100%;height:auto}figcaption{color:#566375}\
.critical{color:#a8292d;font-weight:600}.warning{color:#8a4b12}.disconnected{color:#6b5310}.fault{color:#a8292d}";

/// The whole page. Text from the cluster is escaped.
pub fn page(report: &IncidentReport, pictures: &[Picture]) -> String {
    let mut out = String::new();
    let title = format!("Incident on {}, {}", report.context, report.from.to_time());
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'\"><title>{0}</title><style>{STYLE}</style></head>\n\
         <body><h1>{0}</h1>\n<p>{1} to {2} ({3}). Kubernetes {4}, recorded by kordon {5}.</p>\n",
        escaped(&title),
        report.from.to_time(),
        report.until.to_time(),
        Span::from_secs(report.until.since(report.from).as_secs()),
        escaped(&report.server_version),
        escaped(&report.recorded_by)
    );
    if let Some(fault) = &report.fault {
        let _ = writeln!(out, "<p class=\"fault\">The recording {}.</p>", escaped(fault));
    }
    summary(report, &mut out);
    for picture in pictures {
        let Picture { at, caption, svg } = picture;
        let caption = format!("{}: {caption}", at.to_time());
        let _ = writeln!(out, "<figure>{svg}<figcaption>{}</figcaption></figure>", escaped(&caption));
    }
    timeline(report, &mut out);
    nodes(report, &mut out);
    workloads(report, &mut out);
    evictions(report, &mut out);
    predictions(report, &mut out);
    out.push_str("</body></html>\n");
    out
}

fn summary(report: &IncidentReport, out: &mut String) {
    let summary = &report.summary;
    let _ = writeln!(
        out,
        "<h2>Summary</h2><ul><li>Nodes that failed (declared NotReady or Unknown): {}</li>\
         <li>Nodes that were silent and did not fail: {}</li><li>Times that the pods of a node were evicted: {}</li>\
         <li>Pods evicted: {}</li><li>Workloads that lacked pods: {} ({} of missing pods in total)</li>\
         <li>Evictions that were not necessary (node back within {}): {}</li></ul>",
        summary.nodes_failed,
        summary.nodes_silent,
        summary.nodes_evicted,
        summary.pods_evicted,
        summary.workloads_affected,
        seconds(summary.missing_pod_seconds),
        seconds(report.evictions.back_within_seconds),
        report.evictions.unnecessary.len()
    );
}

fn timeline(report: &IncidentReport, out: &mut String) {
    let _ = writeln!(out, "<h2>Time line</h2><table><tr><th>time</th><th>what happened</th></tr>");
    for moment in &report.moments {
        let (level, text) = (moment.level, escaped(&moment.text));
        let _ = writeln!(out, "<tr><td>{}</td><td class=\"{level}\">{text}</td></tr>", time(Some(moment.at)));
    }
    out.push_str("</table>\n");
}

fn nodes(report: &IncidentReport, out: &mut String) {
    let rows = report.nodes.iter().map(|node| {
        let why: String = node.why.iter().map(|step| format!("<br>{}", escaped(step))).collect();
        [
            escaped(&node.node),
            escaped(&node.zone),
            time(Some(node.from)),
            time(node.down),
            time(node.evicting),
            node.until.map_or("not Ready".into(), |at| time(Some(at))),
            seconds(node.seconds),
            node.evicted_pods.to_string(),
            format!("<details><summary>{}</summary>{why}</details>", node.worst),
        ]
    });
    let columns = ["node", "zone", "from", "failed", "evicting", "Ready again", "for", "pods evicted", "why"];
    table(out, "Nodes", columns, rows);
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
    table(out, "Evictions that were not necessary", ["pod", "node", "evicted", "node back after"], rows);
}

fn predictions(report: &IncidentReport, out: &mut String) {
    let predictions = &report.predictions;
    table(out, "Predictions, five seconds before", EVENT_COLUMNS, predictions.events.iter().map(event_cells));
    for line in predictions.lines() {
        let _ = writeln!(out, "<p>{}</p>", escaped(&line));
    }
    for miss in &predictions.misses {
        let _ = writeln!(out, "<p>missed: {}</p>", escaped(miss));
    }
    table(
        out,
        "Predicted outcomes of evicted pods",
        OUTCOME_COLUMNS,
        [outcome_cells(&predictions.outcomes)].into_iter(),
    );
    for difference in &predictions.outcome_differences {
        let _ = writeln!(out, "<p>other: {}</p>", escaped(difference));
    }
}

/// Appends a table. Its cells are HTML already.
fn table<const N: usize>(
    out: &mut String,
    title: &str,
    columns: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
) {
    let rows: String = rows.map(|row| format!("<tr><td>{}</td></tr>\n", row.join("</td><td>"))).collect();
    let _ = match rows.as_str() {
        "" => writeln!(out, "<h2>{title}</h2><p>None.</p>"),
        rows => writeln!(
            out,
            "<h2>{title}</h2><table><tr><th>{}</th></tr>\n{rows}</table>",
            columns.join("</th><th>")
        ),
    };
}

fn time(at: Option<Timestamp>) -> String {
    at.map_or("–".into(), |at| at.utc().format("%Y-%m-%d %H:%M:%S").to_string())
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in visible::text(text).chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_the_cluster_is_no_html() {
        assert_eq!(
            escaped("<img src=\"x\" onerror='y'>&"),
            "&lt;img src=&quot;x&quot; onerror=&#39;y&#39;&gt;&amp;"
        );
    }
}
