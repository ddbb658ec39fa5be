//! The audit for people: the counts, the causes by kind, and the nodes.

use super::report::{AuditReport, AuditedNodeReport, FindingReport, NamedGroupReport};
use crate::{
    cli::{
        page::{Emphasis, Page, none},
        table::PageTable,
    },
    model::{FindingSeverity, audit::nothing_found},
};
use kordon_core::{cluster::NodeName, plan::words::counted};

/// Maximum number of nodes that are named at a finding; the other nodes are counted.
const NAMED: usize = 3;

/// Maximum number of changes that are listed for a finding; `-o json` has all changes.
const FIXES: usize = 2;

pub fn render(report: &AuditReport, out: &mut Page) {
    report.unknown.say(out);
    let tone = if report.nodes.iter().all(|node| node.drains) { Emphasis::Good } else { Emphasis::Warning };
    out.line(tone, &format!("{} (each node alone)", report.total.text));
    groups("zone", &report.zones, out);
    groups("pool", &report.pools, out);
    if out.export().is_some() {
        findings(&report.findings, out);
    } else {
        for kind in report.findings.chunk_by(|one, other| one.kind == other.kind) {
            let first = &kind[0];
            out.line(Emphasis::Plain, "");
            out.line(emphasis(first.level), &format!("{}: {}", first.severity, first.title));
            kind.iter().for_each(|finding| block(finding, out));
        }
    }
    let hidden = report.other_namespaces.unwrap_or(0);
    if report.findings.is_empty() {
        let text = match hidden {
            0 => nothing_found(report.total.unknown, report.known),
            _ => "nothing was found in this namespace",
        };
        out.line(Emphasis::Plain, text);
    }
    if hidden > 0 {
        let findings = counted(hidden, "finding", "findings");
        out.line(
            Emphasis::Dim,
            &format!("left out: {findings} of other namespaces; the nodes' answers count them"),
        );
    }
    if report.known > 0 {
        let known = counted(report.known, "finding is", "findings are");
        out.line(Emphasis::Dim, &format!("{known} in the baseline, and left out"));
    }
    nodes(&report.nodes, out);
}

const fn emphasis(severity: FindingSeverity) -> Emphasis {
    match severity {
        FindingSeverity::Error => Emphasis::Critical,
        FindingSeverity::Warning => Emphasis::Warning,
        FindingSeverity::Note => Emphasis::Notice,
    }
}

/// Prints one line for each zone or pool, if there are several.
fn groups(what: &str, groups: &[NamedGroupReport], out: &mut Page) {
    if groups.len() < 2 {
        return;
    }
    for group in groups {
        let name =
            if group.name.is_empty() { format!("no {what}") } else { format!("{what} {}", group.name) };
        out.line(Emphasis::Plain, &format!("  {name}: {}", group.counts.text));
    }
}

/// Prints a finding in a few lines: what it concerns, the cause, and what would help. Commands are not shortened.
fn block(finding: &FindingReport, out: &mut Page) {
    let pods = match finding.pods.len() {
        0 => String::new(),
        pods => format!("{} on ", counted(pods, "pod", "pods")),
    };
    out.line(Emphasis::Plain, &format!("  {}: {pods}{}", finding.subject, some(&finding.nodes)));
    out.line(Emphasis::Plain, &format!("    {}", finding.says));
    for fix in finding.fixes.iter().take(FIXES) {
        out.line(Emphasis::Dim, &format!("    fix: {}", fix.says));
        if let Some(command) = &fix.command {
            out.line(Emphasis::Dim, &format!("         {command}"));
        }
    }
}

fn findings(findings: &[FindingReport], out: &mut Page) {
    PageTable::new(findings)
        .key("SEVERITY", |finding| finding.severity)
        .key("CAUSE", |finding| finding.title)
        .key("OBJECT", |finding| finding.subject.clone())
        .essential("PODS", |finding| finding.pods.len().to_string())
        .essential("NODES", |finding| some(&finding.nodes))
        .essential("WHAT", |finding| finding.says.clone())
        .useful("FIX", fixes)
        .print(out);
}

/// Text of the smallest change that would help with a finding, with its command.
fn fixes(finding: &FindingReport) -> String {
    match finding.fixes.first() {
        Some(fix) => match &fix.command {
            Some(command) => format!("{}: {command}", fix.says),
            None => fix.says.clone(),
        },
        None => none(),
    }
}

/// Names the first nodes, and counts the others.
fn some(nodes: &[NodeName]) -> String {
    let named: Vec<String> = nodes.iter().take(NAMED).map(ToString::to_string).collect();
    match nodes.len().saturating_sub(NAMED) {
        0 if named.is_empty() => none(),
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

fn nodes(nodes: &[AuditedNodeReport], out: &mut Page) {
    PageTable::new(nodes)
        .key("NODE", |node| node.node.to_string())
        .useful("ZONE", |node| node.zone.clone())
        .detail("POOL", |node| node.pool.clone().unwrap_or_else(none))
        .essential("DRAIN", |node| node.says.clone())
        .toned(|node| if node.drains { Emphasis::Plain } else { Emphasis::Warning })
        .useful("LEAVE", |node| node.leave.to_string())
        .right()
        .useful("LOST", |node| node.lost.to_string())
        .right()
        .detail("DATA LOST", |node| node.data_lost.to_string())
        .right()
        .useful("PENDING", |node| node.pending.to_string())
        .right()
        .essential("FIRST CAUSE", |node| if node.cause.is_empty() { none() } else { node.cause.clone() })
        .flexible()
        .print(out);
}
