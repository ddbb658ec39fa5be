//! The postmortem as an HTML page with pictures of the dashboard. The page loads no resources and has no scripts.

use std::fmt::Write as _;

use super::{
    Picture,
    document::IncidentReport,
    sections::{self, Block, ReportTable},
};
use kordon_core::visible;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:1200px;margin:2em auto;padding:0 1em;color:#1d2430;background:#fff}\
table{border-collapse:collapse;margin:.5em 0 1.5em}th,td{text-align:left;padding:.25em .8em;border-bottom:1px solid #d8dee6;vertical-align:top}\
th{color:#566375;font-weight:600}figure{margin:1em 0 2em}figure svg{max-width:100%;height:auto}figcaption{color:#566375}\
.critical{color:#a8292d;font-weight:600}.warning{color:#8a4b12}.disconnected{color:#6b5310}.fault{color:#a8292d}";

/// The whole page. Text from the cluster is escaped.
pub fn page(report: &IncidentReport, pictures: &[Picture]) -> String {
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'\"><title>{0}</title><style>{STYLE}</style></head>\n\
         <body><h1>{0}</h1>\n",
        escaped(&sections::title(report)),
    );
    for block in sections::blocks(report) {
        let _ = match block {
            Block::Paragraph(text) => writeln!(out, "<p>{}</p>", escaped(&text)),
            Block::Fault(text) => writeln!(out, "<p class=\"fault\">{}</p>", escaped(&text)),
            Block::Heading(text) => writeln!(out, "<h2>{text}</h2>"),
            Block::List(items) => writeln!(out, "{}", list(&items)),
            Block::Details(title, items) => {
                let (title, items) = (escaped(&title), list(&items));
                writeln!(out, "<details><summary>{title}</summary>{items}</details>")
            }
            Block::Table(table) => writeln!(out, "{}", written(&table)),
            Block::Pictures => pictures.iter().try_for_each(|picture| figure(picture, &mut out)),
        };
    }
    out.push_str("</body></html>\n");
    out
}

fn figure(Picture { at, caption, svg }: &Picture, out: &mut String) -> std::fmt::Result {
    let caption = format!("{}: {caption}", at.to_time());
    writeln!(out, "<figure>{svg}<figcaption>{}</figcaption></figure>", escaped(&caption))
}

fn list(items: &[String]) -> String {
    let items: String = items.iter().map(|item| format!("<li>{}</li>", escaped(item))).collect();
    format!("<ul>{items}</ul>")
}

fn written(ReportTable { columns, rows }: &ReportTable) -> String {
    if rows.is_empty() {
        return "<p>None.</p>".into();
    }
    let cell = |cell: &String| match cell.as_str() {
        // Levels of the verdict get a class, by which the style sheet colours them.
        level @ ("critical" | "warning" | "disconnected") => format!("<td class=\"{level}\">{level}</td>"),
        text => format!("<td>{}</td>", escaped(text)),
    };
    let line = |row: &Vec<String>| format!("<tr>{}</tr>\n", row.iter().map(cell).collect::<String>());
    let rows: String = rows.iter().map(line).collect();
    format!("<table><tr><th>{}</th></tr>\n{rows}</table>", columns.join("</th><th>"))
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
