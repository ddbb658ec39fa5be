//! A row of small bars.

/// Bar for a share from 0 to 1, one cell wide: `▁▂▃▄▅▆▇█`.
pub fn strip(share: f32) -> char {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped, and NaN becomes 0")]
    let level = (share.clamp(0.0, 1.0) * 7.0).round() as usize;
    BARS[level.min(7)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bars_grow_with_the_share_and_stay_within() {
        assert_eq!([0.0, 0.2, 0.5, 1.0, 9.0, -1.0, f32::NAN].map(strip), ['▁', '▂', '▅', '█', '█', '▁', '▁']);
    }
}
