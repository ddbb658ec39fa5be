//! Carries out writes of the engine, each with its preconditions and none of them twice.

use kube::Client;

use crate::{
    engine::{Outcome, Write},
    time::Timestamp,
};

/// Carries out one write at `now` (by which new taints and events are dated).
pub async fn carry_out(client: &Client, write: &Write, now: Timestamp) -> Outcome {
    let _ = (client, now);
    Outcome::Failed(format!("{}: writing is not built in yet", write.summary()))
}
