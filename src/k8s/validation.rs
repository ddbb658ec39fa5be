//! Sends every write of a plan once as a dry run, and returns the answers.
//!
//! An answer is about one write: a dry run does not use a disruption up, so it says nothing about the second pod of a
//! budget. But it includes what a plan cannot know: webhooks, enforced permissions, objects that have changed.

use futures::{StreamExt, stream};
use kube::Client;

use super::requests::{DryRun, send_request};
use kordon_core::{
    engine::ServerVersion,
    operation::{RequestKind, RequestOutcome},
    plan::PlanStep,
};

/// Requests in flight at once.
const AT_ONCE: usize = 4;

/// The releases of which some mark a pod permanently when its eviction is a dry run (1.26.0 to 1.26.3).
const MARKS_PODS: ServerVersion = ServerVersion::new(1, 26);

/// Sends each write once, without retries, and returns the answers in the order of the writes. None if it was not sent,
/// because on this release the dry run may write.
pub async fn validate(
    client: &Client,
    steps: &[PlanStep],
    version: ServerVersion,
) -> Vec<Option<RequestOutcome>> {
    let ask = |step: &PlanStep| {
        let asked = version != MARKS_PODS || !matches!(step, PlanStep::Evict { .. });
        let task = RequestKind::Write(step.clone());
        async move { if asked { Some(send_request(client, &task, DryRun::On).await) } else { None } }
    };
    stream::iter(steps.iter().map(ask)).buffered(AT_ONCE).collect().await
}
