//! The findings as JUnit XML. Each kind of cause is a test suite, and each finding is a test case. Errors and warnings
//! fail; a note passes and has output. A kind without findings has one test case that passes.

use std::path::Path;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use crate::{
    cli::exit::CliError,
    model::{DrainAudit, Finding, FindingKind, FindingSeverity},
};

/// Writes the findings of an audit to a file.
///
/// # Errors
/// The file cannot be written.
pub fn write(audit: &DrainAudit, file: &Path) -> Result<(), CliError> {
    let failed = |error| CliError::Io { doing: format!("writing {}", file.display()), error };
    let text = report(audit).to_string().map_err(|error| failed(std::io::Error::other(error)))?;
    std::fs::write(file, text).map_err(failed)
}

fn report(audit: &DrainAudit) -> Report {
    let mut report = Report::new("kordon audit");
    report.add_test_suites(FindingKind::ALL.map(|kind| {
        let found = audit.findings.iter().filter(|finding| finding.kind == kind);
        let mut suite = TestSuite::new(kind.as_str());
        suite.add_test_cases(found.map(case));
        if suite.test_cases.is_empty() {
            suite.add_test_case(TestCase::new(
                format!("no {}", lower(kind.title())),
                TestCaseStatus::success(),
            ));
        }
        suite
    }));
    report
}

fn case(finding: &Finding) -> TestCase {
    let nodes: Vec<String> = finding.nodes.iter().map(ToString::to_string).collect();
    let fixes = finding.fixes.iter().map(|fix| match &fix.command {
        Some(command) => format!("{}: {command}", fix.text),
        None => fix.text.clone(),
    });
    let lines = [finding.text.clone(), format!("nodes: {}", nodes.join(", "))].into_iter().chain(fixes);
    let text = lines.collect::<Vec<_>>().join("\n");
    let status = match finding.severity() {
        FindingSeverity::Error | FindingSeverity::Warning => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status
                .set_type(finding.severity().as_str())
                .set_message(finding.text.as_str())
                .set_description(text);
            return TestCase::new(finding.subject.to_string(), status);
        }
        FindingSeverity::Note => TestCaseStatus::success(),
    };
    let mut case = TestCase::new(finding.subject.to_string(), status);
    case.set_system_out(text);
    case
}

/// A title with its first letter in lower case, for use within a sentence.
fn lower(title: &str) -> String {
    let mut letters = title.chars();
    let first = letters.next().map(|letter| letter.to_lowercase().to_string()).unwrap_or_default();
    format!("{first}{}", letters.as_str())
}
