//! Chart, in characters, of the trade-off between settings: moves of pods because of blips, against the time in which
//! pods ran nowhere.

use super::document::TunedSettings;

/// Width and height of the chart.
const FIELD: (usize, usize) = (60, 10);

/// Lines of the chart. Each setting is a letter, and a star marks the settings in force.
///
/// ```text
/// moves for outages shorter than 10m
///  12 | a
///     |    b
///   0 |        *      d
///     +------------------------
///     1h10m               5h40m in which pods ran nowhere, in all outages
/// ```
pub fn lines(settings: &[TunedSettings], blip_seconds: f64) -> Vec<String> {
    let times: Vec<f64> = settings.iter().map(|one| one.totals.all_nowhere_seconds()).collect();
    let least = times.iter().copied().fold(f64::INFINITY, f64::min);
    let longest = times.iter().copied().fold(0.0, f64::max);
    let most = settings.iter().map(|one| one.totals.blip_moves).max().unwrap_or(0);
    let (width, height) = FIELD;
    let mut field = vec![vec![' '; width]; height];
    for (one, time) in settings.iter().zip(&times) {
        let column = share(time - least, longest - least, width);
        let row = height - 1 - share(one.totals.blip_moves as f64, most as f64, height);
        // If the cell already has the letter of another setting, this letter moves to the nearest free cell on the
        // right, or else on the left.
        let free = (column..width).chain((0..column).rev()).find(|column| field[row][*column] == ' ');
        let letter = if one.present { '*' } else { one.letter.chars().next().unwrap_or('?') };
        if let Some(free) = free {
            field[row][free] = letter;
        }
    }
    let blip = super::document::duration(blip_seconds);
    let mut lines = vec![format!("moves for outages shorter than {blip}")];
    for (number, row) in field.iter().enumerate() {
        let label = match number {
            0 => most.to_string(),
            _ if number == height - 1 => "0".into(),
            _ => String::new(),
        };
        lines.push(format!("{label:>6} |{}", String::from_iter(row).trim_end()));
    }
    lines.push(format!("{:6} +{}", "", "-".repeat(width)));
    let (least, longest) = (super::document::duration(least), super::document::duration(longest));
    let gap = width.saturating_sub(least.len() + longest.len());
    lines.push(format!(
        "{:8}{least}{}{longest} in which pods ran nowhere, in all outages",
        "",
        " ".repeat(gap)
    ));
    lines
}

/// Index of the cell that stands for `part`, in a row of `places` cells from zero to `whole`.
fn share(part: f64, whole: f64, places: usize) -> usize {
    if whole <= 0.0 {
        return 0;
    }
    // The rounded index is between zero and the number of places, so the cast is exact.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a few places")]
    let place = (part / whole * (places - 1) as f64).round() as usize;
    place.min(places - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::tune::document::tests::settings;

    #[test]
    fn each_setting_is_where_its_numbers_are() {
        let present = TunedSettings { present: true, ..settings("b", 0, 340.0) };
        let lines = lines(&[settings("a", 12, 70.0), present, settings("c", 0, 340.0)], 600.0);
        assert_eq!(lines[0], "moves for outages shorter than 10m00s");
        assert_eq!(lines.len(), FIELD.1 + 3);
        assert_eq!(lines[1], "    12 |a");
        let last = &lines[FIELD.1];
        assert!(last.starts_with("     0 |") && last.ends_with("c*"), "{last}");
        assert!(lines[FIELD.1 + 2].contains("1m10s") && lines[FIELD.1 + 2].contains("5m40s"), "{lines:?}");
    }

    #[test]
    fn settings_that_all_do_the_same_have_a_chart_too() {
        let lines = lines(&[settings("a", 0, 300.0)], 600.0);
        assert!(lines[FIELD.1].ends_with("|a"), "{lines:?}");
    }
}
