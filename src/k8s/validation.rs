//! Sends every write of a plan once as a dry run, and returns the outcomes.
//!
//! An outcome covers one write only. A dry run does not use up a disruption. If two pods have the same budget, the dry
//! run of the second eviction may therefore succeed although the eviction would not. But outcomes include what a plan
//! cannot know: webhooks, enforced permissions, and changed objects.

use futures::{StreamExt, stream};
use kube::Client;

use super::requests::{DryRun, send_request};
use kordon_core::{
    engine::ServerVersion,
    operation::{RequestKind, RequestOutcome},
    plan::PlanStep,
};

/// Maximum number of concurrent dry runs.
const AT_ONCE: usize = 4;

/// Release in which the dry run of an eviction may mark the pod permanently (bug of 1.26.0 to 1.26.3). Servers of this
/// release get no dry runs of evictions.
const MARKS_PODS: ServerVersion = ServerVersion::new(1, 26);

/// Sends each write once as a dry run, without retries, and returns the outcomes in the order of the writes. On release
/// `MARKS_PODS`, evictions are not sent, and their outcomes are `None`.
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
