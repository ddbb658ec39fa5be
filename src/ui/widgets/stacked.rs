//! A bar that shows the parts of a whole.

/// Returns how many of `cells` each part gets. A whole that exceeds `cells` fills the bar. In a smaller whole, every
/// unit gets the same number of cells. Nonempty parts get at least one cell, as long as there are enough.
pub fn stacked(parts: &[usize], cells: usize) -> Vec<usize> {
    let whole: usize = parts.iter().sum();
    if whole == 0 {
        return vec![0; parts.len()];
    }
    if whole <= cells {
        return parts.iter().map(|part| part * (cells / whole)).collect();
    }
    let mut lengths: Vec<usize> =
        parts.iter().map(|part| (part * cells / whole).max((*part).min(1))).collect();
    // Rounding down leaves cells unused, and minimum lengths need extra cells. The largest part compensates for both.
    let largest = (0..parts.len()).max_by_key(|place| (parts[*place], std::cmp::Reverse(*place)));
    if let Some(largest) = largest {
        let others = lengths.iter().sum::<usize>() - lengths[largest];
        lengths[largest] = cells.saturating_sub(others);
    }
    lengths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_small_whole_have_as_many_cells_for_each_unit() {
        assert_eq!(stacked(&[6, 1, 0, 2], 60), [36, 6, 0, 12]);
        assert_eq!(stacked(&[6, 1, 2], 9), [6, 1, 2]);
        assert_eq!(stacked(&[0, 0], 9), [0, 0]);
    }

    #[test]
    fn the_parts_of_a_large_whole_fill_the_bar_and_none_disappears() {
        assert_eq!(stacked(&[1000, 1, 0, 499], 30), [20, 1, 0, 9]);
        assert_eq!(stacked(&[7, 7, 7], 20), [8, 6, 6]);
        for cells in 4..40 {
            let lengths = stacked(&[300, 2, 1, 17], cells);
            assert_eq!(lengths.iter().sum::<usize>(), cells, "{lengths:?}");
            assert!(lengths.iter().all(|length| *length > 0), "{lengths:?}");
        }
    }
}
