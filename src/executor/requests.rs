//! Consumes the errands of a plan: takes them down (dry-run), or journals each and then carries it out.

use futures::{StreamExt, stream::FuturesUnordered};
use kube::Client;
use tokio::sync::mpsc;

use crate::{
    clock::Clock,
    journal::{JournalLine, JournalWriter, LineKind},
    k8s::requests::{DryRun, carry_out},
    operation::{Request, RequestId, RequestOutcome},
};

/// What becomes of errands. Who sends them cannot tell the two apart but by their outcomes.
#[derive(Clone)]
pub enum RequestExecutor {
    /// Nothing goes up, nothing is read: every errand is taken down.
    Recorder,
    /// Every errand is carried out; writes stand in the journal before they are sent.
    Enforcer { client: Client, clock: Clock, journal: JournalWriter, plan: String },
}

/// Both ends that whoever conducts a plan holds of them.
#[derive(Debug)]
pub struct RequestLink {
    /// When full, errands stay with the conduct, where they can still be taken back.
    pub errands: mpsc::Sender<Request>,
    /// One for each errand. When full, nothing new is begun until it has been emptied.
    pub outcomes: mpsc::Receiver<(RequestId, RequestOutcome)>,
}

/// Errands sent and not yet taken: few, for what is here is not taken back by a cancel.
const ERRANDS: usize = 1;

/// Outcomes not yet received.
const OUTCOMES: usize = 64;

/// Requests at once: more than a conduct asks evictions for, so that marks are renewed while those hang.
const AT_ONCE: usize = 12;

impl RequestExecutor {
    /// Starts a task that works off errands until `errands` is dropped.
    pub fn start(self) -> RequestLink {
        let (errands, taken) = mpsc::channel(ERRANDS);
        let (told, outcomes) = mpsc::channel(OUTCOMES);
        tokio::spawn(self.work(taken, told));
        RequestLink { errands, outcomes }
    }

    async fn work(
        self,
        mut errands: mpsc::Receiver<Request>,
        told: mpsc::Sender<(RequestId, RequestOutcome)>,
    ) {
        let mut under_way = FuturesUnordered::new();
        let mut open = true;
        loop {
            tokio::select! {
                errand = errands.recv(), if open && under_way.len() < AT_ONCE => match errand {
                    Some(errand) => under_way.push(self.carry_out(errand)),
                    None => open = false,
                },
                Some(done) = under_way.next() => {
                    // Nobody listens any more: what is under way is all that is finished.
                    let _ = told.send(done).await;
                }
                else => return,
            }
        }
    }

    async fn carry_out(&self, errand: Request) -> (RequestId, RequestOutcome) {
        let outcome = match self {
            Self::Recorder => RequestOutcome::Recorded,
            Self::Enforcer { client, clock, journal, plan } => {
                let writes = errand.task.call().is_some();
                let line = |what| JournalLine { at: clock.now(), plan: plan.clone(), what };
                if writes && let Err(error) = journal.append(line(LineKind::asked(&errand))).await {
                    let text = format!("the journal cannot be written ({error}), and so nothing else is");
                    return (errand.id, RequestOutcome::Refused(text));
                }
                let outcome = carry_out(client, &errand.task, DryRun::Yes).await;
                if writes && let Err(error) = journal.append(line(LineKind::came(errand.id, &outcome))).await
                {
                    // The next write will not be made; what was done is seen in the cluster.
                    tracing::error!(%error, "the journal cannot be written");
                }
                outcome
            }
        };
        (errand.id, outcome)
    }
}
