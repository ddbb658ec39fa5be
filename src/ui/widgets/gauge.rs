//! A thin bar for a level, with its thresholds.

use super::bar;

/// ```text
/// ━━┃━━━╸───       ━ filled, ─ rest
/// ```
/// Returns a bar of `cells` for a level from 0 to 1, with a mark at each threshold: the filled part and the rest, so
/// that the caller can give each a style of its own.
pub fn gauge(level: f32, thresholds: impl IntoIterator<Item = f32>, cells: usize) -> (String, String) {
    let (filled, rest) = bar(level, cells);
    let length = filled.chars().count();
    let mut marked: Vec<char> = filled.chars().chain(rest.chars()).collect();
    for threshold in thresholds {
        #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let place = (threshold.clamp(0.0, 1.0) * cells as f32) as usize;
        if let Some(cell) = marked.get_mut(place.min(cells.saturating_sub(1))) {
            *cell = '┃';
        }
    }
    (marked[..length].iter().collect(), marked[length..].iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_marked_on_either_side_of_the_level() {
        let parts = |level, thresholds: &[f32]| {
            let (filled, rest) = gauge(level, thresholds.iter().copied(), 8);
            format!("{filled}|{rest}")
        };
        assert_eq!(parts(0.5, &[]), "━━━━|────");
        assert_eq!(parts(0.5, &[0.0, 0.3]), "┃━┃━|────");
        assert_eq!(parts(0.5, &[1.0]), "━━━━|───┃");
        assert_eq!(parts(0.0, &[0.2]), "|─┃──────");
        assert_eq!(gauge(0.5, [0.5], 0), (String::new(), String::new()));
    }
}
