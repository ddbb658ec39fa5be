//! An earlier report of `kordon audit`, whose findings a new report leaves out.

use std::{collections::BTreeSet, path::Path};

use serde::Deserialize;

use super::report::SCHEMA;
use crate::{cli::exit::CliError, model::DrainAudit};

/// Identities of the findings of an earlier report.
pub struct Baseline(BTreeSet<String>);

#[derive(Deserialize)]
struct KnownReport {
    schema: String,
    findings: Vec<KnownFinding>,
}

#[derive(Deserialize)]
struct KnownFinding {
    id: String,
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
        Ok(Self(report.findings.into_iter().map(|finding| finding.id).collect()))
    }

    /// Leaves out the findings that the earlier report has, and returns their number.
    pub fn remove_known(&self, audit: &mut DrainAudit) -> usize {
        let before = audit.findings.len();
        audit.retain(|finding| !self.0.contains(&finding.id()));
        before - audit.findings.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_files_are_refused_with_a_reason() {
        let error = |text| Baseline::parse(text).err().unwrap_or_default();
        assert!(error("[]").starts_with("not a report of `kordon audit -o json`: "), "{}", error("[]"));
        let other = r#"{"schema":"kordon.nodes/v1","findings":[]}"#;
        assert_eq!(error(other), "its schema is kordon.nodes/v1, not kordon.audit/v1");
    }
}
