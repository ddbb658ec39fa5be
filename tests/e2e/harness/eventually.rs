//! Waits for a condition.

use std::time::Duration;

use anyhow::{Context, Result};
use kordon_time::Span;

/// Calls `look` twenty times a second until it returns a value, and returns that value.
///
/// Fails with `what` after the given time, and immediately when `look` fails.
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
        .with_context(|| format!("not within {within}: {what}"))?
        .with_context(|| format!("while waiting: {what}"))
}
