//! The journal on disk: what was decided and done to a cluster, one JSON object a line, one journal for each context.
//!
//! It stands in the state folder (`$XDG_STATE_HOME/kordon/journal`, else `~/.local/state/…`), readable by its owner
//! alone, and is turned over when it has grown. Whatever announces a write is on the disk before that write is sent:
//! after a crash it tells what may have been done ([`unfinished`]).

pub mod line;
pub mod unfinished;

use std::{
    env,
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, BufRead, BufReader, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use tokio::sync::{mpsc, oneshot};

pub use line::{JournalLine, LineKind, OperationStart};
pub use unfinished::{JournaledOperation, undertakings};

use crate::cluster::OperationId;

/// How large a file may grow before the next is begun.
const LARGE: u64 = 8 << 20;

/// Files kept beside the one that is written.
const KEPT: usize = 4;

/// Lines waiting to be written. When full, whoever has something to tell waits, and so does the write it announces.
const WAITING: usize = 256;

/// The journal of one context.
#[derive(Clone, Debug)]
pub struct Journal {
    folder: PathBuf,
    stem: String,
}

/// Why there is no journal.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("there is no place for a journal: set XDG_STATE_HOME or HOME")]
    NoPlace,
    #[error("the journal {}: {error}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        error: io::Error,
    },
}

/// Holds an undertaking for as long as the process lives: nobody else on this machine takes it up.
#[derive(Debug)]
pub struct OperationLockFile {
    file: File,
    path: PathBuf,
}

impl Journal {
    /// The journal of a context, in the state folder.
    ///
    /// # Errors
    /// There is no state folder.
    pub fn of(context: &str) -> Result<Self, JournalError> {
        Ok(Self::within(&folder().ok_or(JournalError::NoPlace)?, context))
    }

    /// The journal of a context in this folder.
    pub fn within(folder: &Path, context: &str) -> Self {
        Self { folder: folder.to_owned(), stem: stem(context) }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.join(format!("{}.jsonl", self.stem))
    }

    /// The file before the one that is written, and those before it.
    fn older(&self, age: usize) -> PathBuf {
        self.folder.join(format!("{}.{age}.jsonl", self.stem))
    }

    fn failed(&self, error: io::Error) -> JournalError {
        JournalError::Io { path: self.path(), error }
    }

    /// Begins to write, behind what is there.
    ///
    /// # Errors
    /// The folder or file cannot be made or written to.
    pub fn open(&self) -> Result<JournalWriter, JournalError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)
            .map_err(|error| self.failed(error))?;
        let mut pen = Pen { journal: self.clone(), file: self.file().map_err(|error| self.failed(error))? };
        let (lines, mut written) = mpsc::channel::<Entry>(WAITING);
        tokio::spawn(async move {
            while let Some(first) = written.recv().await {
                let mut entries = vec![first];
                while let Ok(entry) = written.try_recv() {
                    entries.push(entry);
                }
                // A disk may take its time. Nobody blocks in between: a thread that did would hold up paused time.
                let writing = tokio::task::spawn_blocking(move || {
                    pen.write(entries);
                    pen
                });
                let Ok(back) = writing.await else { return };
                pen = back;
            }
        });
        Ok(JournalWriter { lines })
    }

    fn file(&self) -> io::Result<File> {
        OpenOptions::new().create(true).append(true).mode(0o600).open(self.path())
    }

    /// All lines that are there, oldest first. What makes no sense (a line cut off by a crash) is skipped.
    ///
    /// # Errors
    /// A file that is there cannot be read.
    pub fn lines(&self) -> Result<Vec<JournalLine>, JournalError> {
        let mut lines = Vec::new();
        let files = (1..=KEPT).rev().map(|age| self.older(age)).chain([self.path()]);
        for path in files {
            match File::open(&path) {
                Ok(file) => {
                    for text in BufReader::new(file).split(b'\n') {
                        let text = text.map_err(|error| JournalError::Io { path: path.clone(), error })?;
                        lines.extend(JournalLine::parse(&text));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(JournalError::Io { path, error }),
            }
        }
        Ok(lines)
    }

    /// The drains that were cut off, oldest first: not over, and no living process of this machine has them.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub fn cut_off(&self) -> Result<Vec<JournaledOperation>, JournalError> {
        let mut pasts = undertakings(&self.lines()?);
        pasts.retain(|past| past.is_unfinished() && matches!(self.hold(&past.id), Ok(Some(_))));
        Ok(pasts)
    }

    /// Takes an undertaking up, unless a living process has it: none then.
    ///
    /// # Errors
    /// The lock's file cannot be made.
    pub fn hold(&self, id: &OperationId) -> Result<Option<OperationLockFile>, JournalError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)
            .map_err(|error| self.failed(error))?;
        let path = self.folder.join(format!("{}.{}.lock", self.stem, stem(id)));
        OperationLockFile::lock(&path).map_err(|error| JournalError::Io { path, error })
    }
}

impl OperationLockFile {
    /// Locks the file at the path; none while somebody else has locked it.
    fn lock(path: &Path) -> io::Result<Option<Self>> {
        loop {
            match LockAttempt::new(Self::open(path)?, path)? {
                LockAttempt::Locked(lock) => return Ok(Some(lock)),
                LockAttempt::Taken => return Ok(None),
                LockAttempt::Removed => {}
            }
        }
    }

    fn open(path: &Path) -> io::Result<File> {
        OpenOptions::new().create(true).write(true).truncate(false).mode(0o600).open(path)
    }
}

/// What came of locking a file that was opened at a path.
enum LockAttempt {
    Locked(OperationLockFile),
    /// Somebody else has locked it.
    Taken,
    /// The last owner removed the file after it was opened. A lock on it excludes nobody.
    Removed,
}

impl LockAttempt {
    fn new(file: File, path: &Path) -> io::Result<Self> {
        match file.try_lock() {
            Ok(()) if is_at(&file, path)? => {
                Ok(Self::Locked(OperationLockFile { file, path: path.to_owned() }))
            }
            Ok(()) => Ok(Self::Removed),
            Err(TryLockError::WouldBlock) => Ok(Self::Taken),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

/// Whether the path still leads to this file.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let opened = file.metadata()?;
    match fs::metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (opened.dev(), opened.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

impl Drop for OperationLockFile {
    fn drop(&mut self) {
        // Removed while it is locked: whoever has opened it and locks it next sees that it is gone. A file that
        // stays behind after a crash is not locked.
        let _ = fs::remove_file(&self.path);
        let _ = self.file.unlock();
    }
}

/// Writes lines. Copies write to the same file.
#[derive(Clone, Debug)]
pub struct JournalWriter {
    lines: mpsc::Sender<Entry>,
}

#[derive(Debug)]
struct Entry {
    text: String,
    done: oneshot::Sender<io::Result<()>>,
}

impl JournalWriter {
    /// Writes a line; it is on the disk when this returns.
    ///
    /// # Errors
    /// It could not be written.
    pub async fn append(&self, line: JournalLine) -> io::Result<()> {
        let (done, written) = oneshot::channel();
        let entry = Entry { text: line.to_text(), done };
        let gone = || io::Error::other("the journal's writer has ended");
        self.lines.send(entry).await.map_err(|_| gone())?;
        written.await.map_err(|_| gone())?
    }
}

/// The file and whose it is.
struct Pen {
    journal: Journal,
    file: File,
}

impl Pen {
    /// Writes all at once: one flush to the disk serves them all.
    fn write(&mut self, entries: Vec<Entry>) {
        let text: String = entries.iter().map(|entry| entry.text.as_str()).collect();
        let written = self.turn_over().and_then(|()| {
            self.file.write_all(text.as_bytes())?;
            self.file.sync_data()
        });
        for entry in entries {
            let told = match &written {
                Ok(()) => Ok(()),
                Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
            };
            // Whoever asked has gone: the line stands all the same.
            let _ = entry.done.send(told);
        }
    }

    /// Begins the next file when this one is large. Another process may have done so: then ours is its older one.
    fn turn_over(&mut self) -> io::Result<()> {
        if self.file.metadata()?.len() < LARGE {
            return Ok(());
        }
        let current = fs::metadata(self.journal.path()).map(|found| found.len()).unwrap_or_default();
        if current >= LARGE {
            for age in (1..KEPT).rev() {
                match fs::rename(self.journal.older(age), self.journal.older(age + 1)) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    Ok(()) | Err(_) => {}
                }
            }
            fs::rename(self.journal.path(), self.journal.older(1))?;
        }
        self.file = self.journal.file()?;
        Ok(())
    }
}

/// Where journals stand.
fn folder() -> Option<PathBuf> {
    let set = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state")))?;
    Some(state.join("kordon/journal"))
}

/// A context's name as part of a file's; names that had to be changed are told apart by their letters' sum.
fn stem(context: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let mut stem: String = context.chars().map(|c| if plain(c) { c } else { '_' }).take(100).collect();
    if stem != context {
        // FNV-1a.
        let hash = context.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        stem.push_str(&format!("-{hash:016x}"));
    }
    stem
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::{engine::Severity, time::Timestamp};

    fn said(plan: &str, text: String) -> JournalLine {
        let what = LineKind::Said { level: Severity::Info, subject: String::new(), text };
        JournalLine { at: Timestamp::from_secs(1_800_000_000), operation: plan.into(), what }
    }

    #[tokio::test]
    async fn lines_are_on_the_disk_for_their_owner_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let journal = Journal::within(folder.path(), "arn:aws:eks/prod");
        let writer = journal.open().expect("opened");
        writer.append(said("p", "a \u{1b}[2J".into())).await.expect("written");
        assert_eq!(journal.lines().expect("read"), [said("p", "a \u{1b}[2J".into())]);
        let mode = fs::metadata(journal.path()).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let others = Journal::within(folder.path(), "arn_aws_eks_prod");
        assert_ne!(journal.path(), others.path(), "contexts do not share a journal");
    }

    #[tokio::test]
    async fn a_line_that_was_cut_off_is_skipped_and_the_rest_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let journal = Journal::within(folder.path(), "here");
        journal.open().expect("opened").append(said("p", "one".into())).await.expect("written");
        let mut file = OpenOptions::new().append(true).open(journal.path()).expect("there");
        file.write_all(b"{\"at\": \"20\n").expect("written");
        journal.open().expect("opened").append(said("p", "two".into())).await.expect("written");
        assert_eq!(journal.lines().expect("read").len(), 2);
    }

    #[tokio::test]
    async fn a_journal_turns_over_and_forgets_only_the_oldest() {
        let folder = tempfile::tempdir().expect("a folder");
        let journal = Journal::within(folder.path(), "here");
        let writer = journal.open().expect("opened");
        let bulk = "x".repeat(1 << 20);
        for number in 0..20 {
            writer.append(said(&number.to_string(), bulk.clone())).await.expect("written");
        }
        assert!(journal.older(2).exists() && !journal.older(3).exists());
        let plans: Vec<String> =
            journal.lines().expect("read").into_iter().map(|line| line.operation.to_string()).collect();
        assert_eq!(plans, (0..20).map(|number| number.to_string()).collect::<Vec<_>>());
    }

    #[test]
    fn an_undertaking_is_held_by_one_at_a_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let journal = Journal::within(folder.path(), "here");
        let hold = journal.hold(&"p1".into()).expect("asked").expect("free");
        assert!(
            journal.hold(&"p1".into()).expect("asked").is_none()
                && journal.hold(&"p2".into()).expect("asked").is_some()
        );
        drop(hold);
        assert!(journal.hold(&"p1".into()).expect("asked").is_some());
    }

    #[test]
    fn a_lock_file_removed_between_opening_and_locking_it_is_not_locked() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("p1.lock");
        let first = OperationLockFile::lock(&path).expect("asked").expect("free");
        let opened = OperationLockFile::open(&path).expect("opened");
        drop(first);
        let second = OperationLockFile::lock(&path).expect("asked");
        assert!(second.is_some());
        assert!(
            matches!(LockAttempt::new(opened, &path), Ok(LockAttempt::Removed)),
            "two would hold the same lock"
        );
        assert!(OperationLockFile::lock(&path).expect("asked").is_none());
    }
}
