//! What the dashboard does beside its loop to carry plans out: asks, reads, works out, writes the journal, and has the
//! errands of undertakings done. The app decides all of it; here it is only done, and what came of it told.

use std::collections::{BTreeMap, VecDeque};

use futures::future::select_all;
use tokio::sync::mpsc;

use crate::{
    app::{
        App,
        operations::{Job, JobResult, PermissionCheck, StartedOperation},
    },
    clock::Clock,
    cluster::OperationId,
    executor::{
        guards,
        requests::RequestLink,
        write_context::{OperationLock, WriteContext, WriteContextError, undone_lines},
    },
    journal::{JournalLine, JournalWriter, JournaledOperation, LineKind, OperationLockFile},
    operation::{OperationNotice, OperationOptions, Overrides, Request},
    plan::Plan,
};

/// Answers not yet taken in. When it is full, whoever has one waits, and so do the requests behind it.
const TOLD: usize = 64;

/// The loop's ends of everything that is carried out.
pub struct OperationsDriver {
    /// None where nothing can be.
    context: Option<WriteContext>,
    tell: mpsc::Sender<BackgroundResult>,
    pub tidings: mpsc::Receiver<BackgroundResult>,
    underway: BTreeMap<OperationId, Underway>,
}

/// What came of something that was done beside the loop.
pub enum BackgroundResult {
    Told(JobResult),
    /// An undertaking stands in the journal, and this is what it has.
    Begun {
        number: u64,
        begun: StartedOperation,
        lock: OperationLock,
    },
    /// The lines that were given stand in the journal, or why not.
    Written {
        id: OperationId,
        trouble: Option<String>,
    },
}

/// An undertaking that has begun and is not closed.
struct Underway {
    lock: OperationLock,
    /// When full, errands wait in their conduct. None once it is over: then nothing is asked for any more.
    errands: Option<mpsc::Sender<Request>>,
    /// Lines that wait to be written, in their order.
    lines: VecDeque<JournalLine>,
    /// Whether lines are being written.
    writes: bool,
    /// Whether it is let go of when all lines are written.
    ends: bool,
}

impl OperationsDriver {
    pub fn new(context: Option<WriteContext>) -> Self {
        let (tell, tidings) = mpsc::channel(TOLD);
        Self { context, tell, tidings, underway: BTreeMap::new() }
    }

    /// Does everything that the app wants done.
    pub fn work_off(&mut self, app: &mut App, clock: Clock) {
        while let Some(chore) = app.next_chore() {
            self.begin(chore, clock);
        }
    }

    fn begin(&mut self, chore: Job, clock: Clock) {
        match chore {
            Job::Plan { number, job } => {
                let work = tokio::task::spawn_blocking(move || job.work());
                self.beside(async move {
                    let failed = |_| Err("working it out failed: this is a fault of kordon".into());
                    JobResult::Planned { number, plan: work.await.unwrap_or_else(failed) }
                });
            }
            Job::Say { id, notice } => {
                let OperationNotice { at, level, subject, text } = notice;
                self.write(
                    &id,
                    JournalLine {
                        at,
                        operation: id.clone(),
                        kind: LineKind::Notice { level, subject, text },
                    },
                );
            }
            Job::End { id, end, text, undid } => {
                let kind = LineKind::Ended { end: end.as_str().into(), text };
                self.write(&id, JournalLine { at: clock.now(), operation: id.clone(), kind });
                for line in undid.iter().flat_map(|past| undone_lines(&id, past, clock.now())) {
                    self.write(&id, line);
                }
                self.end(&id);
            }
            Job::FindUnfinished => {
                // Where nothing can be carried out, nothing was.
                let Some(context) = self.context.clone() else { return };
                let found = tokio::task::spawn_blocking(move || context.journal.interrupted());
                self.beside(async move {
                    let found = found.await.map(|found| found.map_err(|error| error.to_string()));
                    JobResult::Unfinished(found.unwrap_or_else(|error| Err(error.to_string())))
                });
            }
            Job::FindUndoable { number, id } => self.with_context(
                move |context| async move {
                    let found = tokio::task::spawn_blocking(move || context.undoable(id.as_ref())).await;
                    found.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
                },
                move |found| JobResult::Undoable { number, found },
            ),
            Job::Check { number, wanted } => self.with_context(
                move |context| async move {
                    let guards = guards::read(None).map_err(|error| error.to_string())?;
                    let missing = context.missing_permissions(&wanted).await;
                    let unasked = |why| format!("it could not be asked what is permitted: {why}");
                    Ok(PermissionCheck { guards, missing: missing.map_err(unasked)? })
                },
                move |checked| JobResult::Checked { number, checked },
            ),
            Job::Begin { number, word, plan, orders, waivers } => {
                self.set_out(number, |context| begin(context, word, plan, orders, waivers));
            }
            Job::Resume { number, id } => self.set_out(number, |context| resume(context, id)),
            Job::Undo { number, id } => self.set_out(number, |context| undo(context, id)),
        }
    }

    /// Does something beside the loop, and tells what came of it.
    fn beside(&self, work: impl Future<Output = JobResult> + Send + 'static) {
        let tell = self.tell.clone();
        tokio::spawn(async move {
            // Nobody listens any more at the end of the program.
            let _ = tell.send(BackgroundResult::Told(work.await)).await;
        });
    }

    /// The same for what takes a cluster that may be written to.
    fn with_context<T, W>(
        &self,
        work: impl FnOnce(WriteContext) -> W,
        told: impl FnOnce(Result<T, String>) -> JobResult + Send + 'static,
    ) where
        T: Send + 'static,
        W: Future<Output = Result<T, String>> + Send + 'static,
    {
        let work = self.context.clone().map(work);
        self.beside(async move {
            let done = match work {
                Some(work) => work.await,
                None => Err("nothing can be carried out here".into()),
            };
            told(done)
        });
    }

    fn set_out<W>(&self, number: u64, work: impl FnOnce(WriteContext) -> W)
    where
        W: Future<Output = Result<(StartedOperation, OperationLock), WriteContextError>> + Send + 'static,
    {
        let (work, tell) = (self.context.clone().map(work), self.tell.clone());
        tokio::spawn(async move {
            let begun = match work {
                Some(work) => work.await.map_err(|error| error.to_string()),
                None => Err("nothing can be carried out here".into()),
            };
            let tidings = match begun {
                Ok((begun, lock)) => BackgroundResult::Begun { number, begun, lock },
                Err(why) => BackgroundResult::Told(JobResult::Begun { number, begun: Err(why) }),
            };
            let _ = tell.send(tidings).await;
        });
    }

    /// Takes in what came of something; tells what of it the app has to know.
    pub fn take_in(&mut self, tidings: BackgroundResult) -> Option<JobResult> {
        match tidings {
            BackgroundResult::Told(told) => Some(told),
            BackgroundResult::Begun { number, begun, lock } => {
                self.set_up(lock);
                Some(JobResult::Begun { number, begun: Ok(begun) })
            }
            BackgroundResult::Written { id, trouble } => {
                let underway = self.underway.get_mut(&id)?;
                underway.writes = false;
                let closed = underway.ends && underway.lines.is_empty();
                self.go_on_writing(&id);
                if closed {
                    self.underway.remove(&id);
                }
                (closed || trouble.is_some()).then_some(JobResult::Written { id, trouble, closed })
            }
        }
    }

    /// Starts the hands of an undertaking. What came of its errands joins all other tidings.
    fn set_up(&mut self, lock: OperationLock) {
        let Some(context) = &self.context else { return };
        let RequestLink { items: errands, mut outcomes } = context.start_executor(&lock);
        let (operation, tell) = (lock.id.clone(), self.tell.clone());
        tokio::spawn(async move {
            while let Some((id, outcome)) = outcomes.recv().await {
                let told = JobResult::Errand { operation: operation.clone(), id, outcome };
                if tell.send(BackgroundResult::Told(told)).await.is_err() {
                    return;
                }
            }
        });
        let id = lock.id.clone();
        let (errands, lines) = (Some(errands), VecDeque::new());
        self.underway.insert(id, Underway { lock, errands, lines, writes: false, ends: false });
    }

    fn write(&mut self, id: &OperationId, line: JournalLine) {
        if let Some(underway) = self.underway.get_mut(id) {
            underway.lines.push_back(line);
            self.go_on_writing(id);
        }
    }

    /// Nothing more is asked for; it is let go of when its last line stands in the journal.
    fn end(&mut self, id: &OperationId) {
        if let Some(underway) = self.underway.get_mut(id) {
            (underway.ends, underway.errands) = (true, None);
        }
    }

    /// Writes the lines that wait, one batch at a time, so that they stand in their order.
    fn go_on_writing(&mut self, id: &OperationId) {
        let Some(underway) = self.underway.get_mut(id) else { return };
        if underway.writes || underway.lines.is_empty() {
            return;
        }
        underway.writes = true;
        let lines = std::mem::take(&mut underway.lines);
        let (id, writer, tell) = (id.clone(), underway.lock.writer.clone(), self.tell.clone());
        tokio::spawn(async move {
            let trouble = write_all(&writer, lines).await.err();
            let trouble = trouble.map(|error| format!("the journal cannot be written: {error}"));
            let _ = tell.send(BackgroundResult::Written { id, trouble }).await;
        });
    }

    /// What errands of these undertakings can be sent through.
    pub fn doors<'a>(
        &self,
        wanting: impl Iterator<Item = &'a OperationId>,
    ) -> Vec<(OperationId, mpsc::Sender<Request>)> {
        let door = |id: &OperationId| Some((id.clone(), self.underway.get(id)?.errands.clone()?));
        wanting.filter_map(door).collect()
    }
}

/// Waits until one of them has room for an errand; tells its name, and the room. For ever where there is none.
pub async fn room(
    doors: Vec<(OperationId, mpsc::Sender<Request>)>,
) -> Option<(OperationId, mpsc::OwnedPermit<Request>)> {
    if doors.is_empty() {
        return std::future::pending().await;
    }
    let rooms =
        doors.into_iter().map(|(id, errands)| Box::pin(async move { (id, errands.reserve_owned().await) }));
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

async fn begin(
    context: WriteContext,
    word: &'static str,
    plan: Box<Plan>,
    orders: OperationOptions,
    waivers: Overrides,
) -> Result<(StartedOperation, OperationLock), WriteContextError> {
    let (id, by) = (context.new_id(word), context.by.clone());
    let orders = OperationOptions { id: id.clone(), by: by.clone(), ..orders };
    let lock = context.start(&plan, &orders, &waivers).await?;
    Ok((StartedOperation { id, by, past: None }, lock))
}

async fn resume(
    context: WriteContext,
    id: OperationId,
) -> Result<(StartedOperation, OperationLock), WriteContextError> {
    let (file, past) = lock(&context, &id).await?;
    if !past.is_unfinished() {
        return Err(WriteContextError::NotResumable(id));
    }
    let lock = context.resume(file, &id).await?;
    Ok((StartedOperation { id, by: context.by, past: Some(past) }, lock))
}

async fn undo(
    context: WriteContext,
    id: OperationId,
) -> Result<(StartedOperation, OperationLock), WriteContextError> {
    let (file, past) = lock(&context, &id).await?;
    let id = context.new_id("undo");
    let lock = context.open(file, &id)?;
    Ok((StartedOperation { id, by: context.by, past: Some(past) }, lock))
}

/// Reading the journal may take a while.
async fn lock(
    context: &WriteContext,
    id: &OperationId,
) -> Result<(OperationLockFile, JournaledOperation), WriteContextError> {
    let (context, id) = (context.clone(), id.clone());
    let taken = tokio::task::spawn_blocking(move || context.lock(&id)).await;
    taken.unwrap_or_else(|error| Err(WriteContextError::Write(std::io::Error::other(error))))
}
