//! The id of an operation.

use std::{fmt, ops::Deref, str::FromStr};

use super::Name;

/// Identifies one operation: in the journal, in the name of its lock file, and in annotations of nodes.
///
/// It has 1 to 100 letters, digits, `-` and `_`, so that it is safe in file names, on a screen and in a shell.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct OperationId(Name);

/// Error for a text that is not the id of an operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not the id of an operation, as in drain-20260102-030101-q3w4e: `kordon journal` lists those that exist"
)]
pub struct NotAnOperationId;

/// Maximum length of an id. It is more than kordon's own ids need, and fits into a file name.
const LONGEST: usize = 100;

impl Default for OperationId {
    /// The id of an operation that has not started.
    fn default() -> Self {
        Self("unnamed".into())
    }
}

impl FromStr for OperationId {
    type Err = NotAnOperationId;

    fn from_str(text: &str) -> Result<Self, NotAnOperationId> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let is_valid = (1..=LONGEST).contains(&text.len()) && text.bytes().all(is_plain);
        if is_valid { Ok(Self(text.into())) } else { Err(NotAnOperationId) }
    }
}

impl Deref for OperationId {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_texts_of_limited_length_are_ids() {
        for text in ["drain-20260102-030101-q3w4e", "p", "Under_score"] {
            assert_eq!(text.parse::<OperationId>().expect(text).to_string(), text);
        }
        let long = "x".repeat(LONGEST + 1);
        for text in ["", "a/b", "../journal", "a b", "a\u{1b}[31m", "ü", &long] {
            assert_eq!(text.parse::<OperationId>(), Err(NotAnOperationId), "{text:?}");
        }
    }
}
