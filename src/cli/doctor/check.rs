//! The checks of `kordon doctor`, and the report of them (`docs/reference/doctor.md`).

use serde::Serialize;

use super::super::exit::Exit;
use kordon_time::Timestamp;

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum CheckResult {
    Ok,
    /// The check has no result, for example because an earlier check failed.
    Unknown,
    /// kordon works, but not with all features.
    Warning,
    /// kordon does not work, or an important part of it.
    Problem,
}

impl CheckResult {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unknown => "unknown",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// The state of one thing that kordon depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DoctorCheck {
    /// Area and name of the check, as in `connection.tls`. Checks are added, never renamed.
    pub id: &'static str,
    /// The result: `ok`, `warning` (kordon works, but not with all features), `problem` (kordon does not work, or an
    /// important part of it) or `unknown` (no result).
    #[cfg_attr(test, schemars(with = "String"))]
    pub result: CheckResult,
    /// What was found, for people.
    pub found: String,
    /// What to do; `null` if there is nothing to do.
    pub fix: Option<String>,
}

impl DoctorCheck {
    pub fn ok(id: &'static str, found: impl Into<String>) -> Self {
        Self { id, result: CheckResult::Ok, found: found.into(), fix: None }
    }

    pub fn warning(id: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { result: CheckResult::Warning, fix: Some(fix.into()), ..Self::ok(id, found) }
    }

    pub fn problem(id: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { result: CheckResult::Problem, fix: Some(fix.into()), ..Self::ok(id, found) }
    }

    pub fn unknown(id: &'static str, found: impl Into<String>) -> Self {
        Self { result: CheckResult::Unknown, ..Self::ok(id, found) }
    }

    /// Area of the check: the first part of its id.
    pub fn area(&self) -> &'static str {
        self.id.split('.').next().unwrap_or_default()
    }
}

/// The report of all checks. Every field is always present.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DoctorReport {
    /// `kordon.doctor/v1`: fields are added, never removed or renamed.
    schema: &'static str,
    /// When the checks began.
    taken_at: Timestamp,
    /// The worst result of all checks: `problem`, `warning`, `unknown` or `ok`.
    #[cfg_attr(test, schemars(with = "String"))]
    worst: CheckResult,
    /// The checks, in the order in which they build upon each other.
    pub checks: Vec<DoctorCheck>,
}

impl DoctorReport {
    pub fn new(checks: Vec<DoctorCheck>, taken_at: Timestamp) -> Self {
        let worst = checks.iter().map(|check| check.result).max().unwrap_or(CheckResult::Unknown);
        Self { schema: "kordon.doctor/v1", taken_at, worst, checks }
    }

    /// The ids of the checks that found a problem.
    pub fn problems(&self) -> Vec<&'static str> {
        let problems = self.checks.iter().filter(|check| check.result == CheckResult::Problem);
        problems.map(|check| check.id).collect()
    }

    /// Exit code for the problems: the code of a failed connection if there is one.
    pub fn exit(&self) -> Exit {
        match self.problems().iter().any(|id| id.starts_with("connection.")) {
            true => Exit::NoConnection,
            false if self.problems().is_empty() => Exit::Done,
            false => Exit::Failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_documents_every_field() {
        crate::cli::documented::check::<DoctorReport>("doctor");
    }

    #[test]
    fn the_worst_result_counts_and_only_problems_change_the_exit_code() {
        let report = |checks: &[DoctorCheck]| DoctorReport::new(checks.to_vec(), Timestamp::EPOCH);
        let unknown = DoctorCheck::unknown("cluster.clock", "no answer");
        let warning = DoctorCheck::warning("terminal.colours", "8 colours", "set TERM");
        let journal = DoctorCheck::problem("files.journal", "not writable", "chmod");
        let tcp = DoctorCheck::problem("connection.tcp", "refused", "check the address");
        let fine = report(&[DoctorCheck::ok("files.guards", "none"), unknown.clone()]);
        assert_eq!((fine.worst, fine.exit()), (CheckResult::Unknown, Exit::Done));
        let warned = report(&[warning.clone(), unknown]);
        assert_eq!((warned.worst, warned.exit()), (CheckResult::Warning, Exit::Done));
        let broken = report(&[warning, journal.clone()]);
        assert_eq!((broken.worst, broken.exit()), (CheckResult::Problem, Exit::Failed));
        assert_eq!(report(&[journal, tcp]).exit(), Exit::NoConnection);
        assert_eq!(report(&[]).worst, CheckResult::Unknown, "nothing was checked");
    }
}
