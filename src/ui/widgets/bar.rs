//! A thin bar for a share of a whole.

/// ```text
/// ━━━━╸───       ━ filled, ─ rest
/// ```
/// Returns a bar of `cells` for a share from 0 to 1, in half cells: the filled part and the rest, so that the caller
/// can give each a style of its own. Any share above 0 shows, and only 1 fills the bar.
pub fn bar(share: f32, cells: usize) -> (String, String) {
    let halves = 2 * cells;
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let filled = (share.clamp(0.0, 1.0) * halves as f32).round() as usize;
    let filled = if share > 0.0 { filled.max(1) } else { 0 };
    let filled = if share < 1.0 { filled.min(halves.saturating_sub(1)) } else { filled.min(halves) };
    let mut fill = "━".repeat(filled / 2);
    if filled % 2 == 1 {
        fill.push('╸');
    }
    (fill, "─".repeat(cells - filled.div_ceil(2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_little_shows_and_almost_all_is_not_all() {
        let parts = |share| {
            let (fill, rest) = bar(share, 4);
            format!("{fill}|{rest}")
        };
        assert_eq!([0.0, 0.001, 0.5, 0.999, 1.0].map(parts), ["|────", "╸|───", "━━|──", "━━━╸|", "━━━━|"]);
        assert_eq!([7.0, -1.0, f32::NAN].map(parts), ["━━━━|", "|────", "|────"]);
        assert_eq!(bar(0.5, 0), (String::new(), String::new()));
    }
}
