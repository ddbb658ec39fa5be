//! Tables for other programs: CSV for spreadsheets, Markdown for documents. They have all columns and rows, and no text
//! is cut.

use std::borrow::Cow;

use csv::{QuoteStyle, WriterBuilder};

use super::markdown;

/// Format of a table for other programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// CSV by RFC 4180, but with the line breaks of Unix.
    Csv,
    /// A table of GitHub's Markdown.
    Markdown,
}

/// A table with the lines of each cell. Cells are already sanitized.
#[derive(Debug)]
pub struct ExportedTable<'a> {
    pub heads: Vec<&'a str>,
    pub rows: Vec<Vec<&'a [String]>>,
}

impl ExportedTable<'_> {
    /// The table as text. Without rows, CSV has the headings, and Markdown has nothing.
    pub fn text(&self, format: ExportFormat) -> String {
        match format {
            ExportFormat::Csv => self.csv(),
            ExportFormat::Markdown if self.rows.is_empty() => String::new(),
            ExportFormat::Markdown => self.markdown(),
        }
    }

    fn csv(&self) -> String {
        // All text is quoted, because some spreadsheets also split cells at semicolons.
        let mut writer = WriterBuilder::new().quote_style(QuoteStyle::NonNumeric).from_writer(Vec::new());
        writer.write_record(&self.heads).expect("memory takes every byte");
        for row in &self.rows {
            let cells = row.iter().map(|lines| inert(&lines.join("; ")).into_owned());
            writer.write_record(cells).expect("a row has a cell for each heading");
        }
        let bytes = writer.into_inner().expect("memory takes every byte");
        String::from_utf8(bytes).expect("cells are text")
    }

    fn markdown(&self) -> String {
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let cell = |lines: &&[String]| {
            lines.iter().map(|line| markdown::escaped(line)).collect::<Vec<_>>().join("<br>")
        };
        let heads = line(self.heads.iter().map(|head| markdown::escaped(head)).collect());
        let rule = format!("|{}\n", " --- |".repeat(self.heads.len()));
        let rows = self.rows.iter().map(|row| line(row.iter().map(cell).collect()));
        [heads, rule].into_iter().chain(rows).collect()
    }
}

/// The first characters of a formula, according to OWASP (CSV Injection). Tabs and line breaks are not in the list,
/// because they have already been replaced with visible characters.
const FORMULA: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];

/// Text that no spreadsheet evaluates: a possible formula gets an apostrophe in front. Numbers, and the dash for a
/// missing value, are not changed.
fn inert(cell: &str) -> Cow<'_, str> {
    let is_number = cell.parse().is_ok_and(f64::is_finite);
    if is_number || cell == "-" || !cell.trim_start().starts_with(FORMULA) {
        return cell.into();
    }
    format!("'{cell}").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(rows: &[[&str; 2]], format: ExportFormat) -> String {
        let lines: Vec<Vec<String>> =
            rows.iter().flatten().map(|cell| cell.split('\n').map(str::to_owned).collect()).collect();
        let rows = lines.chunks(2).map(|row| row.iter().map(Vec::as_slice).collect()).collect();
        ExportedTable { heads: vec!["NAME", "PODS"], rows }.text(format)
    }

    #[test]
    fn csv_quotes_text_and_leaves_numbers() {
        let csv = text(&[["a,\"b\"", "12"], ["c;d", "-1.5"], ["two\nlines", "-"]], ExportFormat::Csv);
        assert_eq!(csv, "\"NAME\",\"PODS\"\n\"a,\"\"b\"\"\",12\n\"c;d\",-1.5\n\"two; lines\",\"-\"\n");
        assert_eq!(text(&[], ExportFormat::Csv), "\"NAME\",\"PODS\"\n");
    }

    #[test]
    fn no_text_in_csv_is_a_formula() {
        for text in ["=1+1", "+cmd", "-2+3", "@SUM(A1)", " =1", "--flag", "＝1+1", "-inf"] {
            assert_eq!(inert(text), format!("'{text}"));
        }
        for text in ["web-1", "-", "-5", "+5", "-1e3", "", "~4s"] {
            assert_eq!(inert(text), text);
        }
    }

    #[test]
    fn markdown_escapes_what_would_end_a_cell_or_be_markup() {
        let table = text(&[["a|b", "<b>"], ["two\nlines", "1"]], ExportFormat::Markdown);
        assert_eq!(table, "| NAME | PODS |\n| --- | --- |\n| a\\|b | \\<b\\> |\n| two<br>lines | 1 |\n");
        assert_eq!(text(&[], ExportFormat::Markdown), "");
    }
}
