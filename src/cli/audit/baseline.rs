//! An earlier report of `kordon audit`, whose findings a new report leaves out.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use serde::Deserialize;

use super::report::SCHEMA;
use crate::{
    cli::exit::CliError,
    model::{DrainAudit, Finding},
};

/// The findings of an earlier report, by identity.
pub struct Baseline(BTreeMap<String, KnownFinding>);

#[derive(Deserialize)]
struct KnownReport {
    schema: String,
    findings: Vec<KnownFinding>,
}

#[derive(Deserialize)]
struct KnownFinding {
    id: String,
    /// Nodes that the cause concerned; `None` if the file does not have them.
    nodes: Option<BTreeSet<String>>,
    /// Workloads whose pods the cause concerned; `None` in reports of older releases.
    workloads: Option<BTreeSet<String>>,
}

impl Baseline {
    /// Reads an earlier report.
    ///
    /// # Errors
    /// The file cannot be read, or is not a report of `kordon audit -o json`.
    pub fn read(file: &Path) -> Result<Self, CliError> {
        let name = file.display();
        let text = std::fs::read_to_string(file)
            .map_err(|error| CliError::Io { doing: format!("reading the baseline {name}"), error })?;
        Self::parse(&text).map_err(|why| CliError::Usage(format!("--baseline {name}: {why}")))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let report: KnownReport = serde_json::from_str(text)
            .map_err(|error| format!("not a report of `kordon audit -o json`: {error}"))?;
        if report.schema != SCHEMA {
            return Err(format!("its schema is {}, not {SCHEMA}", report.schema));
        }
        Ok(Self(report.findings.into_iter().map(|finding| (finding.id.clone(), finding)).collect()))
    }

    /// Whether the earlier report has the finding. A finding about a budget is new if the budget concerns a node or a
    /// workload that it did not concern then.
    fn has(&self, finding: &Finding) -> bool {
        let Some(known) = self.0.get(&finding.id()) else { return false };
        let has_all = |known: Option<&BTreeSet<String>>, now: Vec<String>| {
            known.is_none_or(|known| now.iter().all(|name| known.contains(name)))
        };
        let nodes = finding.nodes.iter().map(ToString::to_string).collect();
        let workloads = finding.workloads.iter().map(ToString::to_string).collect();
        !finding.is_of_budget()
            || (has_all(known.nodes.as_ref(), nodes) && has_all(known.workloads.as_ref(), workloads))
    }

    /// Leaves out the findings that the earlier report has, and returns their number.
    pub fn remove_known(&self, audit: &mut DrainAudit) -> usize {
        let before = audit.findings.len();
        audit.retain(|finding| !self.has(finding));
        before - audit.findings.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{FindingKind, FindingSubject};
    use kordon_core::cluster::Key;

    fn finding(kind: FindingKind, subject: &str, node: &str, workload: &str) -> Finding {
        let subject = FindingSubject::new(subject, &Key::new("shop", "eq"));
        let mut finding = Finding::new(kind, subject, "");
        finding.nodes.insert(node.into());
        finding.workloads.insert(FindingSubject::new("Deployment", &Key::new("shop", workload)));
        finding
    }

    /// Number of findings that a baseline with the budget `shop/eq` and the Job `shop/eq` leaves out. The budget
    /// blocked the pods of the Deployment `shop/cart` on n1.
    fn left_out(workloads: &str, finding: Finding) -> usize {
        let finding_of = |id: &str| format!(r#"{{"id":"{id}","nodes":["n1"]{workloads}}}"#);
        let (budget, job) = ("budgetNeverAllows PodDisruptionBudget shop/eq", "jobFails Job shop/eq");
        let findings = [budget, job].map(finding_of).join(",");
        let text = format!(r#"{{"schema":"kordon.audit/v1","findings":[{findings}]}}"#);
        let baseline = Baseline::parse(&text).expect("a report");
        baseline.remove_known(&mut DrainAudit { findings: vec![finding], ..DrainAudit::default() })
    }

    #[test]
    fn a_budget_is_new_if_it_blocks_another_node_or_workload() {
        let budget =
            |node, workload| finding(FindingKind::BudgetNeverAllows, "PodDisruptionBudget", node, workload);
        let workloads = r#","workloads":["Deployment shop/cart"]"#;
        assert_eq!(left_out(workloads, budget("n1", "cart")), 1);
        assert_eq!(left_out(workloads, budget("n2", "cart")), 0);
        assert_eq!(left_out(workloads, budget("n1", "web")), 0);
        let older = "";
        assert_eq!((left_out(older, budget("n1", "web")), left_out(older, budget("n2", "cart"))), (1, 0));
        let job = finding(FindingKind::JobFails, "Job", "n2", "eq");
        assert_eq!(left_out(workloads, job), 1, "the pods of a workload move");
    }

    #[test]
    fn other_files_are_refused_with_a_reason() {
        let error = |text| Baseline::parse(text).err().unwrap_or_default();
        assert!(error("[]").starts_with("not a report of `kordon audit -o json`: "), "{}", error("[]"));
        let other = r#"{"schema":"kordon.nodes/v1","findings":[]}"#;
        assert_eq!(error(other), "its schema is kordon.nodes/v1, not kordon.audit/v1");
    }
}
