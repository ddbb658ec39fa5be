//! Tables of the command line: aligned columns.

use std::fmt::Write as _;

use crate::{cluster::ZoneKey, ui::text, visible};

/// The cell for a missing value.
pub fn none() -> String {
    "-".into()
}

/// Text from the cluster, safe for a terminal.
pub fn shown(raw: &str) -> String {
    visible::text(raw).into_owned()
}

/// `region/zone`, as `ZoneKey` writes it.
pub fn zone_name(region: &str, zone: &str) -> String {
    ZoneKey { region: region.into(), zone: zone.into() }.to_string()
}

/// Writes a blank line and a table whose columns align by display width; without rows, nothing.
pub fn section<const N: usize>(out: &mut String, header: [&str; N], rows: Vec<[String; N]>) {
    if rows.is_empty() {
        return;
    }
    let rows: Vec<[String; N]> = std::iter::once(header.map(str::to_owned))
        .chain(rows.into_iter().map(|row| row.map(|cell| shown(&cell))))
        .collect();
    let width = |column: usize| rows.iter().map(|row| text::width(&row[column])).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    out.push('\n');
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            let padding = width.saturating_sub(text::width(cell)) + 2;
            let _ = write!(line, "{cell}{:padding$}", "");
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align_by_display_width_and_hostile_text_stays_text() {
        let mut out = String::new();
        let rows = [["節点", "ok"], ["\x1b[2Jevil", "bad"]].map(|row| row.map(str::to_owned));
        section(&mut out, ["NODE", "STATE"], rows.into());
        assert_eq!(out, "\nNODE      STATE\n節点      ok\n␛[2Jevil  bad\n");
    }
}
