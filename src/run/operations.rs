//! The dashboard's driver of operations: does the app's jobs, sends the requests of operations, and writes their journal.
//! It decides nothing.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt::Display,
};

use futures::future::select_all;
use tokio::sync::mpsc;

use crate::{
    app::{
        App,
        operations::{Job, JobResult},
    },
    clock::Clock,
    cluster::OperationId,
    executor::{
        guards,
        requests::RequestLink,
        write_context::{OperationLock, WriteContext, undone_lines},
    },
    journal::{JournalLine, JournalWriter, LineKind},
    operation::{
        OperationNotice, Request,
        approval::{Checks, NotStarted, Started},
    },
    plan::Permission,
};

/// Results that are not applied yet. When it is full, jobs and requests wait.
const RESULTS: usize = 64;

/// What operations of the dashboard are connected to.
pub struct OperationsDriver {
    /// None where nothing can be written.
    context: Option<WriteContext>,
    sender: mpsc::Sender<BackgroundResult>,
    pub results: mpsc::Receiver<BackgroundResult>,
    running: BTreeMap<OperationId, RunningOperation>,
}

/// The result of something that was done beside the loop.
pub enum BackgroundResult {
    Job(JobResult),
    /// The start of an operation is in the journal.
    Started {
        number: u64,
        started: Started,
        lock: OperationLock,
    },
    /// Lines are in the journal, or why not.
    Written {
        id: OperationId,
        error: Option<String>,
    },
}

/// An operation whose lock we have.
struct RunningOperation {
    lock: OperationLock,
    /// When it is full, requests wait in their operation. None once the operation has ended.
    requests: Option<mpsc::Sender<Request>>,
    /// Lines to be written, in their order.
    lines: VecDeque<JournalLine>,
    /// Whether lines are being written.
    is_writing: bool,
    /// Whether its lock is released when all lines are written.
    is_ending: bool,
}

impl OperationsDriver {
    pub fn new(context: Option<WriteContext>) -> Self {
        let (sender, results) = mpsc::channel(RESULTS);
        Self { context, sender, results, running: BTreeMap::new() }
    }

    /// Starts every job of the app.
    pub fn start_jobs(&mut self, app: &mut App, clock: Clock) {
        while let Some(job) = app.next_job() {
            self.start(job, clock);
        }
    }

    fn start(&mut self, job: Job, clock: Clock) {
        match job {
            Job::Plan { number, job } => {
                let work = tokio::task::spawn_blocking(move || job.work());
                self.spawn(async move {
                    let failed = |_| Err("making the plan failed: this is a fault of kordon".into());
                    JobResult::Planned { number, plan: work.await.unwrap_or_else(failed) }
                });
            }
            Job::Notice { id, notice } => {
                let OperationNotice { at, level, subject, text } = notice;
                let kind = LineKind::Notice { level, subject, text };
                self.write(&id, JournalLine { at, operation: id.clone(), kind });
            }
            Job::End { id, end, text, undid } => {
                let kind = LineKind::Ended { end: end.as_str().into(), text };
                self.write(&id, JournalLine { at: clock.now(), operation: id.clone(), kind });
                for line in undid.iter().flat_map(|undone| undone_lines(&id, undone, clock.now())) {
                    self.write(&id, line);
                }
                self.end(&id);
            }
            Job::FindInterrupted => {
                // Where nothing can be written, nothing was interrupted.
                if self.context.is_some() {
                    self.spawn_in_context(
                        |context| blocking(move || context.interrupted()),
                        JobResult::Interrupted,
                    );
                }
            }
            Job::FindUndoable { number, id } => self.spawn_in_context(
                |context| blocking(move || context.undoable(id.as_ref())),
                move |found| JobResult::Undoable { number, found },
            ),
            Job::Check { number, permissions } => self.spawn_in_context(
                |context| async move { check(&context, &permissions).await },
                move |checks| JobResult::Checked { number, checks },
            ),
            Job::Start { number, request } => {
                let context = self.context.clone();
                let sender = self.sender.clone();
                tokio::spawn(async move {
                    let started = match context {
                        Some(context) => context.start(*request).await,
                        None => Err(NotStarted::Journal(NO_CONTEXT.into())),
                    };
                    let result = match started {
                        Ok((started, lock)) => BackgroundResult::Started { number, started, lock },
                        Err(why) => BackgroundResult::Job(JobResult::Started { number, started: Err(why) }),
                    };
                    // Fails only at the end of the program.
                    let _ = sender.send(result).await;
                });
            }
        }
    }

    fn spawn(&self, work: impl Future<Output = JobResult> + Send + 'static) {
        let sender = self.sender.clone();
        tokio::spawn(async move {
            // Fails only at the end of the program.
            let _ = sender.send(BackgroundResult::Job(work.await)).await;
        });
    }

    /// The same for what needs a cluster that may be written to.
    fn spawn_in_context<T, W>(
        &self,
        work: impl FnOnce(WriteContext) -> W,
        result: impl FnOnce(Result<T, String>) -> JobResult + Send + 'static,
    ) where
        T: Send + 'static,
        W: Future<Output = Result<T, String>> + Send + 'static,
    {
        let work = self.context.clone().map(work);
        self.spawn(async move {
            result(match work {
                Some(work) => work.await,
                None => Err(NO_CONTEXT.into()),
            })
        });
    }

    /// Applies a result. Returns what the app has to know of it.
    pub fn on_result(&mut self, result: BackgroundResult) -> Option<JobResult> {
        match result {
            BackgroundResult::Job(result) => Some(result),
            BackgroundResult::Started { number, started, lock } => {
                self.start_executor(lock);
                Some(JobResult::Started { number, started: Ok(started) })
            }
            BackgroundResult::Written { id, error } => {
                let running = self.running.get_mut(&id)?;
                running.is_writing = false;
                let closed = running.is_ending && running.lines.is_empty();
                self.write_lines(&id);
                if closed {
                    self.running.remove(&id);
                }
                (closed || error.is_some()).then_some(JobResult::Written { id, error, closed })
            }
        }
    }

    /// Starts to execute the requests of an operation.
    fn start_executor(&mut self, lock: OperationLock) {
        let Some(context) = &self.context else { return };
        let RequestLink { items: requests, mut outcomes } = context.start_executor(&lock);
        let (operation, sender) = (lock.id.clone(), self.sender.clone());
        tokio::spawn(async move {
            while let Some((id, outcome)) = outcomes.recv().await {
                let result = JobResult::Request { operation: operation.clone(), id, outcome };
                if sender.send(BackgroundResult::Job(result)).await.is_err() {
                    return;
                }
            }
        });
        let id = lock.id.clone();
        let (requests, lines) = (Some(requests), VecDeque::new());
        let running = RunningOperation { lock, requests, lines, is_writing: false, is_ending: false };
        self.running.insert(id, running);
    }

    fn write(&mut self, id: &OperationId, line: JournalLine) {
        if let Some(running) = self.running.get_mut(id) {
            running.lines.push_back(line);
            self.write_lines(id);
        }
    }

    /// Sends no more requests. The lock is released once the last line is in the journal.
    fn end(&mut self, id: &OperationId) {
        if let Some(running) = self.running.get_mut(id) {
            (running.is_ending, running.requests) = (true, None);
        }
    }

    /// Writes the lines that wait, one batch at a time, so that their order stays.
    fn write_lines(&mut self, id: &OperationId) {
        let Some(running) = self.running.get_mut(id) else { return };
        if running.is_writing || running.lines.is_empty() {
            return;
        }
        running.is_writing = true;
        let lines = std::mem::take(&mut running.lines);
        let (id, writer, sender) = (id.clone(), running.lock.writer.clone(), self.sender.clone());
        tokio::spawn(async move {
            let error = write_all(&writer, lines).await.err();
            let error = error.map(|error| format!("cannot write the journal: {error}"));
            let _ = sender.send(BackgroundResult::Written { id, error }).await;
        });
    }

    /// The channels for requests of these operations.
    pub fn channels<'a>(
        &self,
        operations: impl Iterator<Item = &'a OperationId>,
    ) -> Vec<(OperationId, mpsc::Sender<Request>)> {
        let channel = |id: &OperationId| Some((id.clone(), self.running.get(id)?.requests.clone()?));
        operations.filter_map(channel).collect()
    }
}

const NO_CONTEXT: &str = "nothing can be applied here";

/// Asks which permissions are missing, and reads the guard rails.
async fn check(context: &WriteContext, permissions: &[Permission]) -> Result<Checks, String> {
    let guards = guards::read(None).map_err(|error| error.to_string())?;
    let missing = context.missing_permissions(permissions).await;
    Ok(Checks { guards, missing: missing.map_err(|why| format!("cannot check permissions: {why}"))? })
}

/// Runs blocking work, with its error in words.
async fn blocking<T, E>(work: impl FnOnce() -> Result<T, E> + Send + 'static) -> Result<T, String>
where
    T: Send + 'static,
    E: Display + Send + 'static,
{
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

/// Waits until one of the channels has room for a request; for ever where there is none.
pub async fn room(
    channels: Vec<(OperationId, mpsc::Sender<Request>)>,
) -> Option<(OperationId, mpsc::OwnedPermit<Request>)> {
    if channels.is_empty() {
        return std::future::pending().await;
    }
    let rooms = channels
        .into_iter()
        .map(|(id, requests)| Box::pin(async move { (id, requests.reserve_owned().await) }));
    let ((id, room), ..) = select_all(rooms).await;
    // The executor ends only with the program.
    Some((id, room.ok()?))
}

async fn write_all(writer: &JournalWriter, lines: VecDeque<JournalLine>) -> std::io::Result<()> {
    for line in lines {
        writer.append(line).await?;
    }
    Ok(())
}
