//! Lists that keep only their newest values.

use std::collections::VecDeque;

/// Appends a value, and drops the oldest value if there are already `most` values.
pub(super) fn keep<T>(values: &mut VecDeque<T>, value: T, most: usize) {
    if values.len() == most {
        values.pop_front();
    }
    values.push_back(value);
}
