//! Asks the server about every write of a plan, each once and as a dry run: what it answers, nothing being done.
//!
//! An answer holds for one write by itself: a dry run uses no budget up, so it says nothing of the second pod that a
//! budget covers. It sees what no plan can: webhooks, rights as they are enforced, objects that have changed.

use futures::{StreamExt, stream};
use kube::Client;

use super::requests::{DryRun, carry_out};
use crate::{
    engine::ServerVersion,
    operation::{RequestKind, RequestOutcome},
    plan::PlanStep,
};

/// Questions under way at a time.
const AT_ONCE: usize = 4;

/// The releases some of which mark a pod for good that is evicted as a dry run (1.26.0 to 1.26.3).
const MARKS_PODS: ServerVersion = ServerVersion::new(1, 26);

/// Asks about each write once, without trying again; answers in the order of the writes. None: not asked, for on this
/// release the question itself may write.
pub async fn validate(
    client: &Client,
    steps: &[PlanStep],
    version: ServerVersion,
) -> Vec<Option<RequestOutcome>> {
    let ask = |step: &PlanStep| {
        let asked = version != MARKS_PODS || !matches!(step, PlanStep::Evict { .. });
        let task = RequestKind::Write(step.clone());
        async move { if asked { Some(carry_out(client, &task, DryRun::On).await) } else { None } }
    };
    stream::iter(steps.iter().map(ask)).buffered(AT_ONCE).collect().await
}
