//! Access to a cluster for writing: a client, the journal, and the name of the user.
//!
//! The command line and the dashboard share this code. It checks permissions, locks an operation while it runs, records
//! its start and end, and resumes interrupted operations.

use std::{fmt, io};

use kube::Client;

use super::requests::{RequestExecutor, RequestLink, RequestWriter};
use crate::{
    journal::{
        Journal, JournalError, JournalLine, JournalWriter, JournaledOperation, LineKind, LockingCommand,
        OperationLockFile, OperationStart, operations,
    },
    k8s::{access, cluster_id::ClusterId, connect::Connection},
};
use kordon_clock::Clock;
use kordon_core::{
    cluster::OperationId,
    operation::{
        Confirmation, OperationEnd, OperationNotice, OperationOptions, Overrides, PriorPod,
        approval::{NotStarted, PriorOperation, StartRequest, Started},
    },
    plan::{Action, Permission, Plan, PodPlan, Verdict},
};
use kordon_time::Timestamp;

/// Access to a cluster for writing.
#[derive(Clone)]
pub struct WriteContext {
    pub client: Client,
    pub journal: Journal,
    /// Name of the kubeconfig context.
    pub kube_context: String,
    pub server: String,
    /// Name of this user, as others see it: `user@host`, or the host if the user is unknown.
    pub by: String,
    pub clock: Clock,
    /// Notice about the journal for the operator, if any.
    pub notice: Option<String>,
}

/// Name that the journal records as the action of a maintenance.
const MAINTENANCE: &str = "maintenance";

/// Name that the journal records as the action of an undo.
const UNDO: &str = "undo";

/// An operation that this process has locked, with the writer of its journal.
#[derive(Debug)]
pub struct OperationLock {
    pub id: OperationId,
    pub writer: JournalWriter,
    file: OperationLockFile,
}

/// Reason why an operation did not start or resume, or why its end was not recorded.
#[derive(Debug, thiserror::Error)]
pub enum WriteContextError {
    #[error("{}", NotStarted::InProgress(.0.clone()))]
    Locked(OperationId),
    #[error("{id} is not in the journal {journal}: `kordon journal` lists what is")]
    NotFound { id: OperationId, journal: String },
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("cannot write the journal, and without it nothing is written to the cluster: {0}")]
    Write(#[source] io::Error),
}

impl fmt::Debug for WriteContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("WriteContext");
        debug.field("kube_context", &self.kube_context).field("by", &self.by).finish_non_exhaustive()
    }
}

impl WriteContext {
    /// Reads the id of the server's cluster, and opens access with the journal of that cluster.
    ///
    /// # Errors
    /// There is no folder for the journal, or the server does not report the id of its cluster.
    pub async fn for_connection(connection: &Connection, clock: Clock) -> Result<Self, JournalError> {
        let cluster = ClusterId::from_connection(connection).await.map_err(JournalError::UnknownCluster)?;
        let context = Self::with(connection, Journal::for_cluster(&cluster)?, clock);
        Ok(Self { notice: cluster.notice(), ..context })
    }

    pub fn with(connection: &Connection, journal: Journal, clock: Clock) -> Self {
        Self {
            client: connection.writer.clone(),
            journal,
            kube_context: connection.context.clone(),
            server: connection.server.clone(),
            by: whoami(&connection.identity.user),
            clock,
            notice: None,
        }
    }

    /// Returns the id of a new operation; `word` names the action, such as `drain`.
    fn new_id(&self, word: &str) -> OperationId {
        let now = self.clock.now().utc().format("%Y%m%d-%H%M%S");
        let random: String = std::iter::repeat_with(fastrand::alphanumeric).take(5).collect();
        let id = format!("{word}-{now}-{}", random.to_lowercase());
        id.parse().expect("a word, digits and letters")
    }

    /// Returns the wanted permissions that this user does not have.
    ///
    /// # Errors
    /// The server did not answer; the text gives the reason.
    pub async fn missing_permissions(&self, wanted: &[Permission]) -> Result<Vec<Permission>, String> {
        access::missing(&self.client, wanted).await
    }

    /// Locks an operation and records its start or resume in the journal, before anything is written to the cluster. An
    /// undo locks the operation that it undoes.
    ///
    /// # Errors
    /// Another process runs the operation, or the journal cannot be read or written.
    pub async fn start(&self, request: StartRequest) -> Result<(Started, OperationLock), NotStarted> {
        match request {
            StartRequest::Apply { plan, options, overrides } => {
                self.start_plan(&plan, &options, &overrides).await
            }
            StartRequest::Resume(id) => self.start_resume(id).await,
            StartRequest::Undo(id) => self.start_undo(id).await,
        }
    }

    async fn start_plan(
        &self,
        plan: &Plan,
        options: &OperationOptions,
        overrides: &Overrides,
    ) -> Result<(Started, OperationLock), NotStarted> {
        let id = self.new_id(plan.action.word());
        let lock = self.open(self.lock_file(&id)?, &id)?;
        let start = self.describe(plan, options, overrides);
        lock.record(LineKind::Started(Box::new(start)), self.clock).await?;
        Ok((Started { id, by: self.by.clone(), prior: None }, lock))
    }

    /// Locks a maintenance and records its start, before anything is written to the cluster. `id` is that of a
    /// maintenance that was started on another machine; `None` for a new one.
    ///
    /// # Errors
    /// Another process runs the maintenance, or the journal cannot be read or written.
    pub async fn start_maintenance(
        &self,
        id: Option<OperationId>,
        start: OperationStart,
    ) -> Result<OperationLock, WriteContextError> {
        let id = id.unwrap_or_else(|| self.new_id(MAINTENANCE));
        let lock = self.open(self.lock_file(&id)?, &id)?;
        let start = OperationStart {
            by: self.by.clone(),
            context: self.kube_context.clone(),
            server: self.server.clone(),
            action: MAINTENANCE.into(),
            ..start
        };
        lock.record(LineKind::Started(Box::new(start)), self.clock).await?;
        Ok(lock)
    }

    /// Locks a maintenance that was stopped, and records that it continues. `start` describes a maintenance that was
    /// started on another machine, which this machine's journal does not have; `None` if the journal has it.
    ///
    /// # Errors
    /// Another process runs the maintenance, or the journal cannot be read or written.
    pub async fn lock_maintenance(
        &self,
        id: OperationId,
        start: Option<OperationStart>,
    ) -> Result<OperationLock, WriteContextError> {
        match start {
            Some(start) => self.start_maintenance(Some(id), start).await,
            None => self.resume_maintenance(&id).await,
        }
    }

    /// Locks a maintenance that was interrupted on this machine, and records that it continues.
    ///
    /// # Errors
    /// Another process runs the maintenance, or the journal cannot be read or written.
    pub async fn resume_maintenance(&self, id: &OperationId) -> Result<OperationLock, WriteContextError> {
        let lock = self.open(self.lock_file(id)?, id)?;
        lock.record(LineKind::Resumed { by: self.by.clone() }, self.clock).await?;
        Ok(lock)
    }

    /// Returns the unfinished maintenances in this machine's journal, running ones included, oldest first.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub fn unfinished_maintenances(&self) -> Result<Vec<JournaledOperation>, WriteContextError> {
        let mut found = operations(&self.journal.lines()?);
        found.retain(|past| past.start.action == MAINTENANCE && past.ended.is_none() && !past.undone);
        Ok(found)
    }

    /// Whether a process on this machine runs the operation.
    pub fn is_locked(&self, id: &OperationId) -> bool {
        matches!(self.journal.lock(id), Ok(None))
    }

    async fn start_resume(&self, id: OperationId) -> Result<(Started, OperationLock), NotStarted> {
        let (file, prior) = self.lock_beside(&id).await?;
        if !prior.is_unfinished() {
            return Err(NotStarted::Over(id));
        }
        let (lock, by) = (self.open(file, &id)?, self.by.clone());
        lock.record(LineKind::Resumed { by: by.clone() }, self.clock).await?;
        Ok((Started { id, by, prior: Some(prior) }, lock))
    }

    /// Starts an undo. The undo has its own id, but holds the lock of the operation that it undoes.
    async fn start_undo(&self, undone: OperationId) -> Result<(Started, OperationLock), NotStarted> {
        let (file, prior) = self.lock_beside(&undone).await?;
        let id = self.new_id(UNDO);
        let lock = self.open(file, &id)?;
        let start = OperationStart {
            by: self.by.clone(),
            context: self.kube_context.clone(),
            server: self.server.clone(),
            action: UNDO.into(),
            command: format!("kordon undo {undone}"),
            nodes: prior.undo.nodes.iter().map(|undo| (undo.node.clone(), undo.uid.clone())).collect(),
            ..OperationStart::default()
        };
        lock.record(LineKind::Started(Box::new(start)), self.clock).await?;
        Ok((Started { id, by: self.by.clone(), prior: Some(prior) }, lock))
    }

    /// Opens the journal for an operation without writing to it.
    fn open(&self, file: OperationLockFile, id: &OperationId) -> Result<OperationLock, WriteContextError> {
        Ok(OperationLock { id: id.clone(), writer: self.journal.open()?, file })
    }

    /// Reads an operation from the journal, while no process runs the operation.
    ///
    /// # Errors
    /// Another process has locked the operation, the operation is not in the journal, or the journal cannot be read.
    pub fn prior(&self, id: &OperationId) -> Result<PriorOperation, WriteContextError> {
        self.lock(id).map(|(_, prior)| prior)
    }

    /// Returns the interrupted drains, oldest first.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub fn interrupted(&self) -> Result<Vec<PriorOperation>, WriteContextError> {
        Ok(self.journal.interrupted()?.iter().map(JournaledOperation::prior).collect())
    }

    /// Returns the operation with this id. Without an id, returns the last operation that changed something, was not
    /// undone and is not running.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub fn undoable(&self, id: Option<&OperationId>) -> Result<Option<PriorOperation>, WriteContextError> {
        let is_meant = |past: &&JournaledOperation| match id {
            Some(id) => past.id == *id,
            None => {
                !past.undone && !past.undo().is_empty() && matches!(self.journal.lock(&past.id), Ok(Some(_)))
            }
        };
        let found = operations(&self.journal.lines()?);
        Ok(found.iter().rev().find(is_meant).map(JournaledOperation::prior))
    }

    fn lock_file(&self, id: &OperationId) -> Result<OperationLockFile, WriteContextError> {
        self.journal.lock(id)?.ok_or_else(|| WriteContextError::Locked(id.clone()))
    }

    /// Locks an operation, then reads it from the journal. The lock comes first, so that no other process changes the
    /// operation after it was read.
    fn lock(&self, id: &OperationId) -> Result<(OperationLockFile, PriorOperation), WriteContextError> {
        let file = self.lock_file(id)?;
        match operations(&self.journal.lines()?).into_iter().find(|past| past.id == *id) {
            Some(past) => Ok((file, past.prior())),
            None => Err(WriteContextError::NotFound {
                id: id.clone(),
                journal: self.journal.path().display().to_string(),
            }),
        }
    }

    /// Calls `lock` on a blocking thread, because reading the journal may take a while.
    async fn lock_beside(
        &self,
        id: &OperationId,
    ) -> Result<(OperationLockFile, PriorOperation), WriteContextError> {
        let (context, id) = (self.clone(), id.clone());
        let locked = tokio::task::spawn_blocking(move || context.lock(&id)).await;
        locked.unwrap_or_else(|error| Err(WriteContextError::Write(io::Error::other(error))))
    }

    /// Starts an executor for the requests of an operation.
    pub fn start_executor(&self, lock: &OperationLock) -> RequestLink {
        let writer = RequestWriter {
            client: self.client.clone(),
            clock: self.clock,
            journal: lock.writer.clone(),
            operation: lock.id.clone(),
        };
        RequestExecutor::Writer(writer).start()
    }

    fn describe(&self, plan: &Plan, options: &OperationOptions, overrides: &Overrides) -> OperationStart {
        let drain = match &plan.action {
            Action::Drain { options, .. } => Some(options.clone()),
            _ => None,
        };
        let prior =
            |pod: &PodPlan| (pod.pod.clone(), PriorPod { uid: pod.uid.clone(), node: pod.node.clone() });
        OperationStart {
            by: self.by.clone(),
            reason: options.reason.clone(),
            until: options.until,
            context: self.kube_context.clone(),
            server: self.server.clone(),
            action: plan.action.word().into(),
            command: plan.command.clone().unwrap_or_default(),
            drain,
            nodes: plan.nodes.iter().map(|node| (node.node.clone(), node.uid.clone())).collect(),
            pods: plan
                .pods
                .iter()
                .filter(|pod| !matches!(pod.verdict, Verdict::Skipped(_)))
                .map(prior)
                .collect(),
            overrides: overrides.words(),
            confirmation: Some(Confirmation::to(plan)),
        }
    }
}

impl OperationLock {
    /// Records in the journal how the operation ended.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub async fn record_end(
        &self,
        end: OperationEnd,
        text: String,
        clock: Clock,
    ) -> Result<(), WriteContextError> {
        self.record(LineKind::Ended { end: end.as_str().into(), text }, clock).await
    }

    /// Records that this operation undid another.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub async fn record_undone(
        &self,
        undone: &PriorOperation,
        clock: Clock,
    ) -> Result<(), WriteContextError> {
        for line in undone_lines(&self.id, undone, clock.now()) {
            self.append(line).await?;
        }
        Ok(())
    }

    /// Records a notice of the operation.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub async fn record_notice(&self, notice: OperationNotice) -> Result<(), WriteContextError> {
        let OperationNotice { at, level, subject, text } = notice;
        let kind = LineKind::Notice { level, subject, text };
        self.append(JournalLine { at, operation: self.id.clone(), kind }).await
    }

    /// Returns the lock file, which is empty, as the standard input of a command. The command keeps the operation
    /// locked until it has ended, even if this process ends earlier.
    ///
    /// # Errors
    /// The process has too many files open.
    pub fn as_input(&self) -> io::Result<(std::fs::File, LockingCommand)> {
        self.file.shared()
    }

    async fn record(&self, kind: LineKind, clock: Clock) -> Result<(), WriteContextError> {
        self.append(JournalLine { at: clock.now(), operation: self.id.clone(), kind }).await
    }

    async fn append(&self, line: JournalLine) -> Result<(), WriteContextError> {
        self.writer.append(line).await.map_err(WriteContextError::Write)
    }
}

/// Returns the lines with which the journal records that operation `by` has undone the operation `undone`.
pub fn undone_lines(by: &OperationId, undone: &PriorOperation, now: Timestamp) -> Vec<JournalLine> {
    let line = |kind| JournalLine { at: now, operation: undone.id.clone(), kind };
    let mut lines = vec![line(LineKind::Undone { by: by.clone() })];
    if undone.is_unfinished() {
        let (end, text) = (OperationEnd::Cancelled.as_str().into(), format!("undone by {by}"));
        lines.push(line(LineKind::Ended { end, text }));
    }
    lines
}

impl From<WriteContextError> for NotStarted {
    fn from(error: WriteContextError) -> Self {
        match error {
            WriteContextError::Locked(id) => Self::InProgress(id),
            error => Self::Journal(error.to_string()),
        }
    }
}

/// Name of this user, as others see it: `user@host`, or the host if the user is unknown.
pub fn whoami(user: &str) -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    if user.is_empty() { host } else { format!("{user}@{host}") }
}
