//! Executes the requests of an operation: journals each write, then sends it.

use kube::Client;

use super::{Executor, Limits, Link, WorkItem};
use crate::{
    journal::{JournalLine, JournalWriter, LineKind},
    k8s::requests::{DryRun, send_request},
};
use kordon_clock::Clock;
use kordon_core::{
    cluster::OperationId,
    operation::{Request, RequestId, RequestOutcome},
};

pub type RequestExecutor = Executor<Request>;
pub type RequestLink = Link<Request>;

/// Sends the requests of one operation to a cluster. The journal records each write before the write is sent.
#[derive(Clone)]
pub struct RequestWriter {
    pub client: Client,
    pub clock: Clock,
    pub journal: JournalWriter,
    pub operation: OperationId,
}

impl WorkItem for Request {
    type Id = RequestId;
    type Outcome = RequestOutcome;
    /// Each request has its own lane, so requests run in parallel: an operation never sends a request that depends on
    /// an unfinished one.
    type Lane = RequestId;
    type Writer = RequestWriter;
    /// The limits `sent` and `accepted` are small, because an operation can withdraw only requests that it has not sent
    /// yet. `in_flight` is larger than the number of parallel evictions, so that the claims on drained nodes are
    /// renewed while evictions hang.
    const LIMITS: Limits = Limits { sent: 1, accepted: 12, in_flight: 12, outcomes: 64 };

    fn id(&self) -> RequestId {
        self.id
    }

    fn lane(&self) -> RequestId {
        self.id
    }

    fn recorded(&self) -> RequestOutcome {
        RequestOutcome::Recorded
    }

    async fn write(self, writer: &RequestWriter) -> RequestOutcome {
        let RequestWriter { client, clock, journal, operation } = writer;
        let writes = self.task.call().is_some();
        let line = |kind| JournalLine { at: clock.now(), operation: operation.clone(), kind };
        if writes && let Err(error) = journal.append(line(LineKind::request(&self))).await {
            return RequestOutcome::Refused(format!(
                "cannot write the journal ({error}): without it nothing is written to the cluster"
            ));
        }
        let outcome = send_request(client, &self.task, DryRun::Off).await;
        if writes && let Err(error) = journal.append(line(LineKind::outcome(self.id, &outcome))).await {
            // The write was sent, but the journal lacks its outcome; the cluster shows whether it was applied. As long
            // as the journal cannot be written, later writes are refused.
            tracing::error!(%error, "cannot write the journal");
        }
        outcome
    }
}
