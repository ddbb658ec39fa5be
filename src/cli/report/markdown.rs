//! The postmortem in Markdown.

use std::fmt::Write as _;

use super::{
    document::IncidentReport,
    sections::{self, Block, ReportTable},
};
use crate::ui::markdown::escaped;

/// Maximum number of printed rows of a table or list. The JSON document has all of them.
const ROWS: usize = 200;

/// The whole page. Text from the cluster is escaped, so it is not interpreted as Markdown or HTML.
pub fn page(report: &IncidentReport) -> String {
    let mut out = format!("# {}\n", escaped(&sections::title(report)));
    for block in sections::blocks(report) {
        let _ = match block {
            Block::Paragraph(text) => writeln!(out, "\n{}", escaped(&text)),
            Block::Fault(text) => writeln!(out, "\n**{}**", escaped(&text)),
            Block::Heading(text) => writeln!(out, "\n## {text}"),
            Block::List(items) => writeln!(out, "\n{}", list(&items)),
            Block::Details(title, items) => writeln!(out, "\n{}:\n\n{}", escaped(&title), list(&items)),
            Block::Table(table) => writeln!(out, "\n{}", written(&table)),
            Block::Pictures => Ok(()),
        };
    }
    out
}

fn list(items: &[String]) -> String {
    let lines = items.iter().take(ROWS).map(|item| format!("- {}", escaped(item)));
    lines.chain(rest(items.len())).collect::<Vec<_>>().join("\n")
}

fn written(table: &ReportTable) -> String {
    let ReportTable { columns, rows } = table;
    if rows.is_empty() {
        return "None.".into();
    }
    let head = format!("| {} |\n|{}", columns.join(" | "), " --- |".repeat(columns.len()));
    let line = |row: &Vec<String>| {
        let cells: Vec<String> = row.iter().map(|cell| escaped(cell)).collect();
        format!("| {} |", cells.join(" | "))
    };
    let lines = rows.iter().take(ROWS).map(line).chain(rest(rows.len()));
    [head].into_iter().chain(lines).collect::<Vec<_>>().join("\n")
}

/// Returns a note that only the first rows are printed; `None` if all are printed.
fn rest(all: usize) -> Option<String> {
    (all > ROWS).then(|| format!("\nThe first {ROWS} of {all}; `-o json` has all."))
}
