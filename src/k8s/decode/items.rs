//! The items of a list in JSON that one request has read.

use serde::Deserialize;

#[derive(Deserialize)]
struct List<T> {
    items: Vec<T>,
}

/// Parses the items of a list. `what` is what the bytes should be, for the error: `list of NodeClaims`.
///
/// # Errors
/// The bytes are not a list of such items.
pub fn items<'a, T: Deserialize<'a>>(list: &'a [u8], what: &str) -> Result<Vec<T>, String> {
    let list: List<T> =
        serde_json::from_slice(list).map_err(|error| format!("the answer is no {what}: {error}"))?;
    Ok(list.items)
}
