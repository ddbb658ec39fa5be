//! The rows of a pane as text: all of them, not only those that fit the screen, with all columns.

use serde_json::{Map, Value};

use super::exported_table::{ExportFormat, ExportedTable};

/// A table as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShownRows {
    /// Names of the columns, mostly their headings; empty for a list whose columns have no names.
    pub heads: Vec<String>,
    /// Cells of the rows, in the order of the headings. A row may have fewer cells.
    pub rows: Vec<Vec<String>>,
    /// Index of the selected row; `None` if none is selected.
    pub selected: Option<usize>,
}

impl ShownRows {
    /// Whether the pane has no table. An empty table has headings.
    pub const fn has_no_table(&self) -> bool {
        self.heads.is_empty() && self.rows.is_empty()
    }

    /// The selected row, its cells separated by tabs.
    pub fn selected_row(&self) -> Option<String> {
        Some(self.rows.get(self.selected?)?.join("\t").trim_end().to_owned())
    }

    /// The cell of the selected row in the column with this heading.
    pub fn selected_cell(&self, head: &str) -> Option<&str> {
        let column = self.heads.iter().position(|known| known == head)?;
        self.rows.get(self.selected?)?.get(column).map(String::as_str)
    }

    /// All rows below their headings, one per line, with cells separated by tabs.
    pub fn tabbed(&self) -> String {
        let heads = (!self.heads.is_empty()).then(|| self.heads.join("\t"));
        let rows = self.rows.iter().map(|row| row.join("\t").trim_end().to_owned());
        heads.into_iter().chain(rows).map(|line| line + "\n").collect()
    }

    /// The rows as a table in CSV or Markdown.
    pub fn exported(&self, format: ExportFormat) -> String {
        let width = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let heads = if self.heads.is_empty() {
            vec![""; width]
        } else {
            self.heads.iter().map(String::as_str).collect()
        };
        ExportedTable { rows: self.rows.iter().map(|row| whole(row, heads.len())).collect(), heads }
            .text(format)
    }

    /// The rows as JSON: an object for each row, with the headings as names. In a list without headings, an array for
    /// each row. Cells of columns of numbers are numbers, unless they say that the number is not known.
    pub fn json(&self) -> Value {
        let value = |head: &String, cell: &String| match cell.parse::<i64>() {
            Ok(number) if NUMBERS.contains(&head.as_str()) => number.into(),
            _ => cell.clone().into(),
        };
        let object = |row: &Vec<String>| -> Value {
            let fields = self.heads.iter().zip(row).map(|(head, cell)| (head.clone(), value(head, cell)));
            fields.collect::<Map<String, Value>>().into()
        };
        let rows = self.rows.iter();
        if self.heads.is_empty() {
            rows.cloned().map(Value::from).collect()
        } else {
            rows.map(object).collect()
        }
    }
}

/// Headings of the columns of numbers.
const NUMBERS: [&str; 5] = ["count", "nodes", "pods", "priority", "terminating"];

/// A row with exactly this many cells. Missing cells are empty.
fn whole(row: &[String], columns: usize) -> Vec<&[String]> {
    (0..columns).map(|place| row.get(place).map_or(&[][..], std::slice::from_ref)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_numbers_in_json() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let rows = ShownRows {
            heads: ["node", "pods", "nodes"].map(str::to_owned).to_vec(),
            rows: vec![row(["7", "8", "▪▪"]), row(["a-2", "8+", ""])],
            selected: None,
        };
        let expected = serde_json::json!([
            {"node": "7", "pods": 8, "nodes": "▪▪"},
            {"node": "a-2", "pods": "8+", "nodes": ""},
        ]);
        assert_eq!(rows.json(), expected);
    }

    #[test]
    fn a_row_a_cell_and_all_rows_are_taken_as_text() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let rows = ShownRows {
            heads: ["node", "taints"].map(str::to_owned).to_vec(),
            rows: vec![row(["a-1", ""]), row(["a-2", "x:NoExecute"])],
            selected: Some(1),
        };
        assert_eq!(rows.selected_row().as_deref(), Some("a-2\tx:NoExecute"));
        assert_eq!(rows.selected_cell("node"), Some("a-2"));
        assert_eq!(rows.selected_cell("age"), None);
        assert_eq!(rows.tabbed(), "node\ttaints\na-1\na-2\tx:NoExecute\n");
        assert_eq!(rows.json()[1]["taints"], "x:NoExecute");
        let bare = ShownRows { heads: Vec::new(), selected: None, ..rows };
        assert_eq!(bare.json()[0][0], "a-1");
        assert!(!bare.has_no_table() && ShownRows::default().has_no_table());
        assert_eq!(bare.selected_row(), None);
    }
}
