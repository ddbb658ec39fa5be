//! Answers of commands about a model that is already known, to compare them with what the dashboard shows of it.

use serde::Serialize;
use serde_json::Value;

use super::page::{Layout, Page};

/// The answer of a command.
#[derive(Clone, Debug)]
pub struct CommandAnswer {
    /// The answer for people, as it is printed without a terminal.
    pub table: String,
    pub json: Value,
}

impl CommandAnswer {
    pub(super) fn new<T: Serialize>(report: &T, table: impl FnOnce(&T, &mut Page)) -> Self {
        let mut page = Page::new(Layout::default());
        table(report, &mut page);
        Self { table: page.into_text(), json: serde_json::to_value(report).expect("a report is plain data") }
    }
}
