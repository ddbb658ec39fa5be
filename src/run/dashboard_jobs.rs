//! The dashboard's driver of operations: runs the app's jobs, sends the requests of operations, and writes the
//! operations' journal. The driver makes no decisions.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt::Display,
    time::Duration,
};

use futures::future::select_all;
use tokio::sync::mpsc;

use super::{
    approval_driver::{checks, make_plan},
    background::{Background, Failed, first_finished},
    dashboard_maintenance::MaintenanceTasks,
};
use crate::{
    app::{
        App,
        operations::{Job, JobResult},
        preview::ReadNodes,
    },
    executor::{
        guards,
        requests::RequestLink,
        write_context::{OperationLock, WriteContext, undone_lines},
    },
    journal::{JournalLine, JournalWriter, LineKind},
    k8s::requests::read_whole_nodes,
    model::Model,
};
use kordon_clock::Clock;
use kordon_core::{
    cluster::OperationId,
    operation::{
        Guards, OperationNotice, Request, RequestId, RequestOutcome,
        approval::{Checks, NotStarted},
    },
    plan::Permission,
};

/// Connects the operations of the dashboard to the cluster and the journal.
pub struct OperationsDriver {
    /// Client and journal for writes; none if nothing can be written.
    context: Option<WriteContext>,
    /// The app's jobs that are in progress. Several may run at once, because a long job continues after its dialog was
    /// closed.
    jobs: Vec<Background<DoneJob>>,
    running: BTreeMap<OperationId, RunningOperation>,
    maintenances: MaintenanceTasks,
    /// The strictest guard rails that were read in this session. Relaxing guard rails during the session has no effect.
    /// `None` if they could not be read at the start.
    guards: Option<Guards>,
}

/// An event of the operations.
pub enum OperationEvent {
    /// Result of a job, for the app.
    Result(Result<Box<JobResult>, Failed>),
    /// The channel to the executor of an operation has room for a request; `None` if that executor has ended.
    Room(Option<(OperationId, mpsc::OwnedPermit<Request>)>),
}

/// Result of a job for the app. If the job started an operation, also the lock of the operation.
struct DoneJob {
    result: JobResult,
    lock: Option<OperationLock>,
    /// Guard rails that the job read.
    guards: Option<Guards>,
}

/// An operation that this process has locked.
struct RunningOperation {
    lock: OperationLock,
    /// Channel to the executor. While the channel is full, requests wait in the operation. None once the operation has
    /// ended.
    requests: Option<mpsc::Sender<Request>>,
    outcomes: mpsc::Receiver<(RequestId, RequestOutcome)>,
    /// Journal lines that wait to be written, oldest first.
    lines: VecDeque<JournalLine>,
    /// Writes the waiting lines in batches, one batch at a time, so that the lines keep their order.
    journal: Background<std::io::Result<()>>,
}

impl OperationsDriver {
    pub fn new(context: Option<WriteContext>) -> Self {
        // If the file of the guard rails cannot be read now, the first check of an operation reports the error.
        let guards = context.as_ref().and_then(|_| guards::read(None).ok());
        let maintenances = MaintenanceTasks::default();
        Self { context, jobs: Vec::new(), running: BTreeMap::new(), maintenances, guards }
    }

    /// The strictest guard rails that were read in this session; `None` if they could not be read.
    pub const fn guards(&self) -> Option<&Guards> {
        self.guards.as_ref()
    }

    /// Keeps the guard rails of another context that was shown in this session in force, because those of the file
    /// are the same for all contexts.
    pub fn keep_guards(&mut self, earlier: Option<&Guards>) {
        self.guards = stricter(self.guards.take(), earlier.cloned());
    }

    /// Starts every job that the app asks for.
    pub fn start_jobs(&mut self, app: &mut App, clock: Clock) {
        while let Some(job) = app.next_job() {
            match job {
                Job::StartMaintenance { number, start } => {
                    let guards = stricter(self.guards.clone(), app.preferences.guards.clone());
                    let context = self.context.clone();
                    self.maintenances.start(number, *start, context, guards, &app.model, clock);
                }
                job => self.start(job, app.preferences.guards.as_ref(), clock),
            }
        }
    }

    /// Gives the running maintenances a copy of the newest model.
    pub fn show(&self, model: &Model) {
        self.maintenances.show(model);
    }

    /// Starts a job. `own` are the guard rails of the context.
    fn start(&mut self, job: Job, own: Option<&Guards>, clock: Clock) {
        match job {
            Job::Plan { number, job } => {
                self.spawn(async move { JobResult::Planned { number, plan: make_plan(*job).await } });
            }
            Job::StartMaintenance { .. } => {}
            Job::SteerMaintenance { number, input } => self.maintenances.steer(number, input),
            Job::Notice { id, notice } => {
                let OperationNotice { at, level, subject, text } = notice;
                let kind = LineKind::Notice { level, subject, text };
                self.write(&id, [JournalLine { at, operation: id.clone(), kind }]);
            }
            Job::End { id, end, text, undid } => {
                let (now, kind) = (clock.now(), LineKind::Ended { end: end.as_str().into(), text });
                let ended = JournalLine { at: now, operation: id.clone(), kind };
                let undone = undid.iter().flat_map(|undone| undone_lines(&id, undone, now));
                self.write(&id, std::iter::once(ended).chain(undone));
                self.end(&id);
            }
            Job::FindInterrupted => {
                // Without a write context, no operation could have been started, so none was interrupted.
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
            Job::Check { number, permissions } => {
                let (context, earlier, own) = (self.context.clone(), self.guards.clone(), own.cloned());
                self.spawn_job(async move {
                    let (checks, guards) = match context {
                        Some(context) => check(&context, earlier, own, &permissions).await,
                        None => (Err(NO_CONTEXT.into()), None),
                    };
                    DoneJob { result: JobResult::Checked { number, checks }, lock: None, guards }
                });
            }
            Job::Rights(asked) => {
                let context = self.context.clone();
                self.spawn(async move {
                    let missing = match context {
                        Some(context) => context.missing_permissions(&asked).await,
                        None => Err(NO_CONTEXT.into()),
                    };
                    JobResult::Rights { asked, missing }
                });
            }
            Job::ReadNodes(names) => self.spawn_in_context(
                |context| async move {
                    let nodes = read_whole_nodes(&context.client, names).await;
                    Ok(ReadNodes { nodes, by: context.by })
                },
                JobResult::NodesRead,
            ),
            Job::Start { number, request } => {
                let context = self.context.clone();
                self.spawn_job(async move {
                    let started = match context {
                        Some(context) => context.start(*request).await,
                        None => Err(NotStarted::Journal(NO_CONTEXT.into())),
                    };
                    let (started, lock) = match started {
                        Ok((started, lock)) => (Ok(started), Some(lock)),
                        Err(why) => (Err(why), None),
                    };
                    DoneJob { result: JobResult::Started { number, started }, lock, guards: None }
                });
            }
        }
    }

    fn spawn_job(&mut self, work: impl Future<Output = DoneJob> + Send + 'static) {
        let mut job = Background::new(Duration::ZERO);
        job.start_waiting(work);
        self.jobs.push(job);
    }

    fn spawn(&mut self, work: impl Future<Output = JobResult> + Send + 'static) {
        self.spawn_job(async move { DoneJob { result: work.await, lock: None, guards: None } });
    }

    /// Starts a job that needs write access to a cluster. Without this access, the result is an error.
    fn spawn_in_context<T, W>(
        &mut self,
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

    /// Waits for the next result, or for room in one of the channels. May be dropped and awaited again.
    pub async fn next(&mut self, channels: Vec<(OperationId, mpsc::Sender<Request>)>) -> OperationEvent {
        tokio::select! {
            biased;
            result = self.next_result() => OperationEvent::Result(result.map(Box::new)),
            room = room(channels) => OperationEvent::Room(room),
        }
    }

    /// Waits for the next result for the app. Waits forever if nothing runs. May be dropped and awaited again.
    ///
    /// # Errors
    /// A job panicked.
    async fn next_result(&mut self) -> Result<JobResult, Failed> {
        let Self { jobs, running, maintenances, .. } = self;
        let result = tokio::select! {
            done = first_finished(jobs) => {
                let DoneJob { result, lock, guards } = done?;
                self.guards = stricter(guards, self.guards.take());
                lock.into_iter().for_each(|lock| self.start_executor(lock));
                result
            }
            result = next_of_any(running.values_mut()) => result,
            (number, event) = maintenances.next() => JobResult::Maintenance { number, event },
        };
        if let JobResult::Written { id, closed: true, .. } = &result {
            self.running.remove(id);
        }
        Ok(result)
    }

    /// Starts an executor for the requests of an operation.
    fn start_executor(&mut self, lock: OperationLock) {
        let Some(context) = &self.context else { return };
        let RequestLink { items, outcomes } = context.start_executor(&lock);
        let (requests, lines, journal) = (Some(items), VecDeque::new(), Background::new(Duration::ZERO));
        let id = lock.id.clone();
        self.running.insert(id, RunningOperation { lock, requests, outcomes, lines, journal });
    }

    fn write(&mut self, id: &OperationId, lines: impl IntoIterator<Item = JournalLine>) {
        if let Some(running) = self.running.get_mut(id) {
            running.lines.extend(lines);
            running.write_lines();
        }
    }

    /// Stops the requests of an operation. The lock of the operation is released once the last line is in the journal.
    fn end(&mut self, id: &OperationId) {
        if let Some(running) = self.running.get_mut(id) {
            running.requests = None;
        }
    }

    /// Returns the channel for requests of each of the `operations` that runs and takes requests.
    pub fn channels<'a>(
        &self,
        operations: impl Iterator<Item = &'a OperationId>,
    ) -> Vec<(OperationId, mpsc::Sender<Request>)> {
        let channel = |id: &OperationId| Some((id.clone(), self.running.get(id)?.requests.clone()?));
        operations.filter_map(channel).collect()
    }
}

impl RunningOperation {
    /// Waits for the next result for the app. May be dropped and awaited again.
    async fn next_result(&mut self) -> JobResult {
        loop {
            tokio::select! {
                Some((id, outcome)) = self.outcomes.recv() => {
                    return JobResult::Request { operation: self.lock.id.clone(), id, outcome };
                }
                written = self.journal.finished() => {
                    let error = match written {
                        Ok(written) => written.err().map(|error| error.to_string()),
                        Err(Failed) => Some("this is a fault of kordon".into()),
                    };
                    let error = error.map(|error| format!("cannot write the journal: {error}"));
                    let closed = self.requests.is_none() && self.lines.is_empty();
                    self.write_lines();
                    if closed || error.is_some() {
                        return JobResult::Written { id: self.lock.id.clone(), error, closed };
                    }
                }
            }
        }
    }

    /// Writes the waiting lines, unless earlier lines are still being written.
    fn write_lines(&mut self) {
        if self.journal.is_running() || self.lines.is_empty() {
            return;
        }
        let (writer, lines) = (self.lock.writer.clone(), std::mem::take(&mut self.lines));
        self.journal.start_waiting(async move { write_all(&writer, lines).await });
    }
}

/// Waits for the next result of any operation. Waits forever if there is no operation.
async fn next_of_any(running: impl Iterator<Item = &mut RunningOperation>) -> JobResult {
    let results: Vec<_> = running.map(|running| Box::pin(running.next_result())).collect();
    if results.is_empty() {
        return std::future::pending().await;
    }
    select_all(results).await.0
}

const NO_CONTEXT: &str = "nothing can be applied here";

/// Asks the API server which permissions the user does not have, and reads the guard rails. Also returns the guard
/// rails, combined with those that were in force earlier. Those of the context, `own`, hold besides.
async fn check(
    context: &WriteContext,
    earlier: Option<Guards>,
    own: Option<Guards>,
    permissions: &[Permission],
) -> (Result<Checks, String>, Option<Guards>) {
    match guards::read(None) {
        Ok(guards) => {
            let guards = earlier.iter().fold(guards, |guards, earlier| guards.and(earlier));
            let all = own.iter().fold(guards.clone(), Guards::and);
            (checks(context, all, permissions).await, Some(guards))
        }
        Err(error) => (Err(error.to_string()), None),
    }
}

/// Combines two sets of guard rails, either of which may be missing.
fn stricter(one: Option<Guards>, other: Option<Guards>) -> Option<Guards> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.and(&other)),
        (one, other) => one.or(other),
    }
}

/// Runs blocking work on another thread. Returns an error of the work as text.
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

/// Waits until one of the channels has room for a request. Waits forever if there are no channels.
async fn room(
    channels: Vec<(OperationId, mpsc::Sender<Request>)>,
) -> Option<(OperationId, mpsc::OwnedPermit<Request>)> {
    if channels.is_empty() {
        return std::future::pending().await;
    }
    let rooms = channels
        .into_iter()
        .map(|(id, requests)| Box::pin(async move { (id, requests.reserve_owned().await) }));
    let ((id, room), ..) = select_all(rooms).await;
    // Waiting for room fails only if the executor has ended, which happens only when the program ends.
    Some((id, room.ok()?))
}

async fn write_all(writer: &JournalWriter, lines: VecDeque<JournalLine>) -> std::io::Result<()> {
    for line in lines {
        writer.append(line).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guard_rails_of_the_context_that_was_left_stay_in_force() {
        let at_most = |nodes| Guards { max_nodes: Some(nodes), ..Guards::default() };
        let mut driver = OperationsDriver::new(None);
        for (earlier, in_force) in [(Some(3), 3), (Some(5), 3), (None, 3), (Some(2), 2)] {
            driver.keep_guards(earlier.map(at_most).as_ref());
            assert_eq!(driver.guards().and_then(|guards| guards.max_nodes), Some(in_force), "{earlier:?}");
        }
    }
}
