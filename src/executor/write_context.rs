//! Where plans are carried out: a cluster that is written to, the journal of it, and in whose name.
//!
//! What the command line and the dashboard do alike: asking what is permitted, writing down how an undertaking begins
//! and ends, holding it meanwhile, and taking up one that was cut off.

use std::{fmt, io};

use kube::Client;

use super::requests::{RequestExecutor, RequestLink, RequestWriter};
use crate::{
    clock::Clock,
    cluster::OperationId,
    journal::{
        Journal, JournalError, JournalLine, JournalWriter, JournaledOperation, LineKind, OperationLockFile,
        OperationStart, undertakings,
    },
    k8s::{access, connect::Connection},
    operation::{OperationEnd, OperationOptions, Overrides},
    plan::{Action, Permission, Plan},
    time::Timestamp,
};

/// A cluster that may be written to.
#[derive(Clone)]
pub struct WriteContext {
    pub client: Client,
    pub journal: Journal,
    pub context: String,
    pub server: String,
    /// Who we are, as others should see it.
    pub by: String,
    pub clock: Clock,
}

/// What an undertaking has for as long as it lasts.
#[derive(Debug)]
pub struct OperationLock {
    /// Its name in the journal and on the nodes.
    pub id: OperationId,
    pub writer: JournalWriter,
    _hold: OperationLockFile,
}

/// Why an undertaking did not begin, or its end is not written down.
#[derive(Debug, thiserror::Error)]
pub enum WriteContextError {
    #[error("{0} is at work, in another process on this machine")]
    AtWork(OperationId),
    #[error("{0} is over, or is no drain: there is nothing to go on with")]
    Over(OperationId),
    #[error("{id} is not in the journal {journal}")]
    NotThere { id: OperationId, journal: String },
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("writing the journal, without which nothing else is written: {0}")]
    Write(#[source] io::Error),
}

impl fmt::Debug for WriteContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Site").field("context", &self.context).field("by", &self.by).finish_non_exhaustive()
    }
}

impl WriteContext {
    /// # Errors
    /// There is no place for a journal.
    pub fn of(connection: &Connection, clock: Clock) -> Result<Self, JournalError> {
        Ok(Self::with(connection, Journal::of(&connection.context)?, clock))
    }

    pub fn with(connection: &Connection, journal: Journal, clock: Clock) -> Self {
        Self {
            client: connection.writer.clone(),
            journal,
            context: connection.context.clone(),
            server: connection.server.clone(),
            by: whoami(&connection.identity.user),
            clock,
        }
    }

    /// A name that no other undertaking has.
    pub fn new_id(&self, word: &str) -> OperationId {
        let now = self.clock.now().utc().format("%Y%m%d-%H%M%S");
        let chance: String = std::iter::repeat_with(fastrand::alphanumeric).take(5).collect();
        OperationId::from(format!("{word}-{now}-{}", chance.to_lowercase()).as_str())
    }

    /// What of this we may not do.
    ///
    /// # Errors
    /// It could not be asked, in words.
    pub async fn missing(&self, wanted: &[Permission]) -> Result<Vec<Permission>, String> {
        access::missing(&self.client, wanted).await
    }

    /// Begins an undertaking: it is held, and stands in the journal, before anything of it is written.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub async fn begin(
        &self,
        plan: &Plan,
        orders: &OperationOptions,
        waivers: &Overrides,
    ) -> Result<OperationLock, WriteContextError> {
        let hold = self.hold(&orders.id)?;
        let beginning = self.beginning(plan, orders, waivers);
        self.go_on(hold, &orders.id, LineKind::Began(Box::new(beginning))).await
    }

    /// Goes on with one that was taken up.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub async fn resume(
        &self,
        hold: OperationLockFile,
        id: &OperationId,
    ) -> Result<OperationLock, WriteContextError> {
        self.go_on(hold, id, LineKind::Resumed { by: self.by.clone() }).await
    }

    async fn go_on(
        &self,
        hold: OperationLockFile,
        id: &OperationId,
        what: LineKind,
    ) -> Result<OperationLock, WriteContextError> {
        let held = self.open(hold, id)?;
        held.write(what, self.clock).await?;
        Ok(held)
    }

    /// Opens the journal for an undertaking, and writes nothing yet.
    ///
    /// # Errors
    /// The journal cannot be opened.
    pub fn open(
        &self,
        hold: OperationLockFile,
        id: &OperationId,
    ) -> Result<OperationLock, WriteContextError> {
        Ok(OperationLock { id: id.clone(), writer: self.journal.open()?, _hold: hold })
    }

    /// The undertaking of that name, or else the last one that changed something and that nobody has at work.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub fn undoable(
        &self,
        id: Option<&OperationId>,
    ) -> Result<Option<JournaledOperation>, WriteContextError> {
        let pasts = undertakings(&self.journal.lines()?);
        let is_meant = |past: &&JournaledOperation| match id {
            Some(id) => past.id == *id,
            None => {
                !past.undone && !past.undo().is_empty() && matches!(self.journal.hold(&past.id), Ok(Some(_)))
            }
        };
        Ok(pasts.iter().rev().find(is_meant).cloned())
    }

    fn hold(&self, id: &OperationId) -> Result<OperationLockFile, WriteContextError> {
        self.journal.hold(id)?.ok_or_else(|| WriteContextError::AtWork(id.clone()))
    }

    /// Takes up an undertaking of the journal, as it stands once nobody else can go on with it.
    ///
    /// # Errors
    /// A living process has it, or it is not there, or the journal cannot be read.
    pub fn take_up(
        &self,
        id: &OperationId,
    ) -> Result<(OperationLockFile, JournaledOperation), WriteContextError> {
        let hold = self.hold(id)?;
        let found = undertakings(&self.journal.lines()?).into_iter().find(|past| past.id == *id);
        let journal = || self.journal.path().display().to_string();
        found
            .map(|past| (hold, past))
            .ok_or_else(|| WriteContextError::NotThere { id: id.clone(), journal: journal() })
    }

    /// Starts to carry out the errands of an undertaking.
    pub fn hands(&self, held: &OperationLock) -> RequestLink {
        let (client, clock) = (self.client.clone(), self.clock);
        let writer =
            RequestWriter { client, clock, journal: held.writer.clone(), operation: held.id.clone() };
        RequestExecutor::Writer(writer).start()
    }

    fn beginning(&self, plan: &Plan, orders: &OperationOptions, waivers: &Overrides) -> OperationStart {
        let drain = match &plan.action {
            Action::Drain { options, .. } => Some(options.clone()),
            _ => None,
        };
        OperationStart {
            by: orders.by.clone(),
            why: orders.why.clone(),
            until: orders.until,
            context: self.context.clone(),
            server: self.server.clone(),
            action: plan.action.word().into(),
            command: plan.command.clone().unwrap_or_default(),
            drain,
            nodes: plan.nodes.iter().map(|node| (node.node.clone(), node.uid.clone())).collect(),
            pods: plan.pods.iter().map(|pod| (pod.pod.clone(), pod.uid.clone())).collect(),
            overrides: waivers.words(),
        }
    }
}

impl OperationLock {
    /// Writes down how it ended.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub async fn end(&self, end: OperationEnd, text: String, clock: Clock) -> Result<(), WriteContextError> {
        self.write(LineKind::Ended { end: end.as_str().into(), text }, clock).await
    }

    /// Writes down that another undertaking was put back by this one.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub async fn undid(&self, past: &JournaledOperation, clock: Clock) -> Result<(), WriteContextError> {
        for line in undoing(&self.id, past, clock.now()) {
            self.append(line).await?;
        }
        Ok(())
    }

    async fn write(&self, what: LineKind, clock: Clock) -> Result<(), WriteContextError> {
        self.append(JournalLine { at: clock.now(), operation: self.id.clone(), what }).await
    }

    async fn append(&self, line: JournalLine) -> Result<(), WriteContextError> {
        self.writer.append(line).await.map_err(WriteContextError::Write)
    }
}

/// What the journal is told of an undertaking that was put back by another.
pub fn undoing(by: &OperationId, past: &JournaledOperation, now: Timestamp) -> Vec<JournalLine> {
    let line = |what| JournalLine { at: now, operation: past.id.clone(), what };
    let mut lines = vec![line(LineKind::Undone { by: by.to_string() })];
    if past.is_unfinished() {
        let (end, text) = (OperationEnd::Cancelled.as_str().into(), format!("undone by {by}"));
        lines.push(line(LineKind::Ended { end, text }));
    }
    lines
}

/// Who we are, as others should see it.
fn whoami(user: &str) -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    if user.is_empty() { host } else { format!("{user}@{host}") }
}
