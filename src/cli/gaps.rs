//! Reports of what is unknown: the kinds of objects that an answer depends on, and that are unknown or outdated.

use serde::Serialize;

use super::page::Page;

use kordon_core::cluster::{Gap, Gaps, Known};
use kordon_time::Timestamp;

/// A kind of object that is unknown or outdated.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct GapReport {
    /// The kind of object.
    kind: String,
    /// What is known of the kind: `stale` (its watch is broken), `notListed`, `forbidden`, `off` (a flag says not to
    /// read it) or `absent`.
    state: &'static str,
    /// When the data became stale; `null` for other states.
    since: Option<Timestamp>,
    /// The permission to ask for, as in `list pods`; `null` unless `forbidden`.
    missing_permission: Option<String>,
}

/// The kinds of objects that an answer depends on, and that are unknown or outdated.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UnknownReport {
    /// Kinds of objects that are unknown or outdated, and that the answer depends on.
    unknown: Vec<GapReport>,
    #[serde(skip)]
    line: Option<String>,
}

impl UnknownReport {
    pub fn new(gaps: &Gaps) -> Self {
        Self { unknown: gap_reports(gaps), line: gap_line(gaps) }
    }

    pub const fn is_empty(&self) -> bool {
        self.line.is_none()
    }

    /// Prints which kinds of objects are unknown, if any are.
    pub fn say(&self, out: &mut Page) {
        if let Some(line) = &self.line {
            out.gap(line);
        }
    }
}

pub fn gap_reports(gaps: &Gaps) -> Vec<GapReport> {
    gaps.0.iter().map(GapReport::new).collect()
}

/// The unknown or outdated kinds of objects as a line for people; `None` if everything is known.
pub fn gap_line(gaps: &Gaps) -> Option<String> {
    (!gaps.is_empty()).then(|| format!("not known: {gaps}"))
}

impl GapReport {
    fn new(gap: &Gap) -> Self {
        let since = match gap.known {
            Known::Stale { since } => Some(since),
            Known::Live | Known::NotListed | Known::Forbidden { .. } | Known::Off { .. } | Known::Absent => {
                None
            }
        };
        let missing_permission = gap.missing_permission();
        Self { kind: gap.kind.to_string(), state: gap.known.word(), since, missing_permission }
    }
}
