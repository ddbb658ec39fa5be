//! Waiting for something to become true.

use std::time::Duration;

use anyhow::{Context, Result};
use kordon::time::Span;

/// Looks again and again, twenty times a second, until `look` finds what is waited for.
///
/// Fails with `what` when it has not come within the given span, and at once when looking itself fails.
pub async fn eventually<T>(
    what: &str,
    within: Span,
    mut look: impl AsyncFnMut() -> Result<Option<T>>,
) -> Result<T> {
    let looking = async {
        loop {
            if let Some(found) = look().await? {
                return anyhow::Ok(found);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(within.to_std(), looking)
        .await
        .with_context(|| format!("waited {within} in vain: {what}"))?
        .with_context(|| format!("while waiting: {what}"))
}
