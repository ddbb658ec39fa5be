//! A range on a time axis from zero, as text.

use kordon_time::Span;

/// ```text
///       ├──●────┤        shortest, typical, longest
/// ```
/// Draws a range on an axis of `cells` from zero to `end`, without trailing blanks. A range within one cell only shows
/// its middle.
pub fn range_bar([shortest, typical, longest]: [Span; 3], end: Span, cells: usize) -> String {
    let Some(last) = cells.checked_sub(1) else { return String::new() };
    let cell = |at: Span| {
        let place = i128::from(at.as_nanos().max(0)) * i128::try_from(last).unwrap_or(0);
        usize::try_from(place / i128::from(end.as_nanos().max(1))).unwrap_or(last).min(last)
    };
    let [from, middle, to] = [shortest, typical, longest].map(cell);
    let glyph = |place: usize| match place {
        _ if place < from => ' ',
        _ if place == middle => '●',
        _ if place == from => '├',
        _ if place == to => '┤',
        _ => '─',
    };
    (0..=to).map(glyph).collect()
}

/// Labels of the axis: round times, as many as fit.
pub fn range_axis(end: Span, cells: usize) -> String {
    const STEPS: [i64; 10] = [5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600];
    const APART: i64 = 8;
    let seconds = end.as_secs().max(1);
    let last = i64::try_from(cells).unwrap_or(i64::MAX).saturating_sub(1);
    let is_wide = |step: &i64| step.saturating_mul(last) / seconds >= APART;
    let step = STEPS.into_iter().find(is_wide).unwrap_or(seconds);
    let mut axis = String::new();
    for at in (0..=seconds).step_by(usize::try_from(step).unwrap_or(1).max(1)) {
        let place = usize::try_from(at.saturating_mul(last) / seconds).unwrap_or(0);
        let label = Span::from_secs(at).to_string();
        if place + label.len() > cells {
            break;
        }
        axis.extend(std::iter::repeat_n(' ', place.saturating_sub(axis.len())));
        axis.push_str(&label);
    }
    axis
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(seconds: [i64; 3]) -> String {
        range_bar(seconds.map(Span::from_secs), Span::from_secs(100), 21)
    }

    #[test]
    fn a_range_begins_and_ends_in_its_cells_and_shows_its_middle() {
        assert_eq!(bar([10, 20, 40]), "  ├─●───┤");
        assert_eq!(bar([10, 11, 12]), "  ●");
        assert_eq!(bar([0, 50, 100]), "├─────────●─────────┤");
        assert_eq!(bar([90, 100, 500]), "                  ├─●", "longer than the axis");
        assert_eq!(range_bar([Span::ZERO; 3], Span::ZERO, 0), "");
    }

    #[test]
    fn an_axis_has_round_times_that_do_not_touch() {
        assert_eq!(range_axis(Span::from_secs(100), 41), "0s          30s         1m00s       1m30s");
        assert_eq!(range_axis(Span::from_secs(100), 1), "");
        assert_eq!(range_axis(Span::ZERO, 0), "");
    }
}
