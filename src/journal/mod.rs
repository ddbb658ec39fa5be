//! The journal on disk: all writes to a cluster. Each cluster has its own journal, and each line is a JSON object.
//!
//! The journal is in the state folder (`$XDG_STATE_HOME/kordon/journal`, else `~/.local/state/…`), readable only by its
//! owner, and is rotated when it is large. A request is on the disk before it is sent. After a crash the journal
//! therefore shows which writes may have been made ([`unfinished`]).

pub mod line;
pub mod unfinished;

use std::{
    collections::BTreeSet,
    env,
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, BufRead, BufReader, Write},
    os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::sync::{mpsc, oneshot};

use crate::k8s::cluster_id::ClusterId;
use kordon_core::cluster::OperationId;

pub use line::{JournalLine, LineKind, OperationStart};
pub use unfinished::{JournaledOperation, operations};

/// Size in bytes at which a file is rotated.
const LARGE: u64 = 8 << 20;

/// Number of rotated files that are kept.
const KEPT: usize = 4;

/// Capacity of the queue of lines to write. While the queue is full, callers wait; a request is sent only after its
/// line is written.
const QUEUED: usize = 256;

/// The journal of one cluster.
#[derive(Clone, Debug)]
pub struct Journal {
    folder: PathBuf,
    stem: String,
}

/// Reason why the journal of a cluster cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("there is no folder for the journal: set XDG_STATE_HOME or HOME")]
    NoFolder,
    #[error("objects of files have no journal")]
    Files,
    #[error("cannot tell which cluster's journal to use: {0}; try again")]
    UnknownCluster(String),
    #[error("cannot use the journal {}: {error}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        error: io::Error,
    },
}

/// Lock of an operation, which prevents other processes of this machine from running the operation. The lock ends with
/// the process, or with the last command that the process has left running (see [`OperationLockFile::shared`]).
#[derive(Debug)]
pub struct OperationLockFile {
    file: File,
    path: PathBuf,
    /// Number of commands that have the file as their input and have not ended.
    commands: Arc<AtomicUsize>,
}

/// A command that has a lock file as its input.
#[derive(Debug)]
pub struct LockingCommand(Arc<AtomicUsize>);

impl Journal {
    /// Returns the journal of a cluster in the state folder.
    ///
    /// # Errors
    /// There is no state folder.
    pub fn for_cluster(cluster: &ClusterId) -> Result<Self, JournalError> {
        Ok(Self::within(&folder().ok_or(JournalError::NoFolder)?, cluster.as_str()))
    }

    /// Returns the journal of kordon as a cluster's controller, which is separate from the journal of operations. Its
    /// folder is `kordon/controller` in the state folder.
    ///
    /// # Errors
    /// There is no state folder.
    pub fn for_controller(cluster: &ClusterId) -> Result<Self, JournalError> {
        let folder = folder().ok_or(JournalError::NoFolder)?.with_file_name("controller");
        Ok(Self::within(&folder, cluster.as_str()))
    }

    /// The journal of a cluster in this folder.
    pub fn within(folder: &Path, cluster: &str) -> Self {
        Self { folder: folder.to_owned(), stem: stem(cluster) }
    }

    /// Returns the folder of all journals, and the journals in this folder, sorted by name.
    ///
    /// # Errors
    /// There is no state folder, or it cannot be read.
    pub fn all() -> Result<(PathBuf, Vec<Self>), JournalError> {
        let folder = folder().ok_or(JournalError::NoFolder)?;
        let journals = Self::all_within(&folder)?;
        Ok((folder, journals))
    }

    /// Returns the journals in a folder, sorted by name. If the folder does not exist, there are none.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn all_within(folder: &Path) -> Result<Vec<Self>, JournalError> {
        let failed = |error| JournalError::Io { path: folder.to_owned(), error };
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut stems = BTreeSet::new();
        for entry in entries {
            let name = entry.map_err(failed)?.file_name();
            // Rotated files have a number before the extension, as in `prod.1.jsonl`.
            let stem = name.to_str().and_then(|name| name.strip_suffix(".jsonl")?.split('.').next());
            stems.extend(stem.map(str::to_owned));
        }
        Ok(stems.into_iter().map(|stem| Self { folder: folder.to_owned(), stem }).collect())
    }

    pub fn path(&self) -> PathBuf {
        self.folder.join(format!("{}.jsonl", self.stem))
    }

    /// Path of a rotated file. The newest one has age 1.
    fn older(&self, age: usize) -> PathBuf {
        self.folder.join(format!("{}.{age}.jsonl", self.stem))
    }

    fn failed(&self, error: io::Error) -> JournalError {
        JournalError::Io { path: self.path(), error }
    }

    /// Opens the journal to append lines.
    ///
    /// # Errors
    /// The folder or the file cannot be created or opened.
    pub fn open(&self) -> Result<JournalWriter, JournalError> {
        self.create_folder()?;
        let file = self.file().and_then(|mut file| end_cut_line(&mut file).map(|()| file));
        let mut pen = Pen { journal: self.clone(), file: file.map_err(|error| self.failed(error))? };
        let (lines, mut written) = mpsc::channel::<Entry>(QUEUED);
        tokio::spawn(async move {
            while let Some(first) = written.recv().await {
                let mut entries = vec![first];
                while let Ok(entry) = written.try_recv() {
                    entries.push(entry);
                }
                // The disk may be slow, so a blocking task writes each batch. No blocking task waits for lines, because
                // tokio does not advance its paused clock, which tests use, while a blocking task runs.
                let writing = tokio::task::spawn_blocking(move || {
                    pen.write(entries);
                    pen
                });
                let Ok(returned) = writing.await else { return };
                pen = returned;
            }
        });
        Ok(JournalWriter { lines })
    }

    fn create_folder(&self) -> Result<(), JournalError> {
        let created = DirBuilder::new().recursive(true).mode(0o700).create(&self.folder);
        created.map_err(|error| self.failed(error))
    }

    fn file(&self) -> io::Result<File> {
        OpenOptions::new().create(true).read(true).append(true).mode(0o600).open(self.path())
    }

    /// Returns all lines, oldest first. Skips lines that a crash has truncated or that cannot be read for another
    /// reason.
    ///
    /// # Errors
    /// A file cannot be read.
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

    /// Returns the interrupted drains, oldest first: the unfinished drains that no process of this machine runs.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub fn interrupted(&self) -> Result<Vec<JournaledOperation>, JournalError> {
        let mut operations = operations(&self.lines()?);
        operations.retain(|past| past.is_unfinished() && matches!(self.lock(&past.id), Ok(Some(_))));
        Ok(operations)
    }

    /// Locks an operation. Returns `None` while another process holds the lock.
    ///
    /// # Errors
    /// The lock file cannot be created.
    pub fn lock(&self, id: &OperationId) -> Result<Option<OperationLockFile>, JournalError> {
        self.create_folder()?;
        let path = self.folder.join(format!("{}.{}.lock", self.stem, id));
        OperationLockFile::lock(&path).map_err(|error| JournalError::Io { path, error })
    }
}

impl OperationLockFile {
    /// Locks the file at the path. Returns `None` while another process holds the lock.
    fn lock(path: &Path) -> io::Result<Option<Self>> {
        loop {
            match LockAttempt::new(Self::open(path)?, path)? {
                LockAttempt::Locked(lock) => return Ok(Some(lock)),
                LockAttempt::Taken => return Ok(None),
                LockAttempt::Removed => {}
            }
        }
    }

    /// Returns a duplicate of the file handle, as the input of a command. If the lock is dropped before the command has
    /// ended ([`LockingCommand::end`]), the operation stays locked until the command closes its input.
    ///
    /// # Errors
    /// The process has too many files open.
    pub fn shared(&self) -> io::Result<(File, LockingCommand)> {
        let file = self.file.try_clone()?;
        self.commands.fetch_add(1, Ordering::Relaxed);
        Ok((file, LockingCommand(Arc::clone(&self.commands))))
    }

    fn open(path: &Path) -> io::Result<File> {
        OpenOptions::new().create(true).write(true).truncate(false).mode(0o600).open(path)
    }
}

impl LockingCommand {
    /// Records that the command has ended. Without this call, the command counts as left running.
    pub fn end(self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Result of locking the file at a path.
enum LockAttempt {
    Locked(OperationLockFile),
    /// Another process holds the lock.
    Taken,
    /// The last owner removed the file after this process had opened it. A lock on a removed file excludes no other
    /// process.
    Removed,
}

impl LockAttempt {
    fn new(file: File, path: &Path) -> io::Result<Self> {
        match file.try_lock() {
            Ok(()) if is_at(&file, path)? => {
                let (path, commands) = (path.to_owned(), Arc::default());
                Ok(Self::Locked(OperationLockFile { file, path, commands }))
            }
            Ok(()) => Ok(Self::Removed),
            Err(TryLockError::WouldBlock) => Ok(Self::Taken),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

/// Whether the path still leads to the opened file.
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
        // The commands that still run keep the file locked. When they have ended, it is left behind unlocked.
        if self.commands.load(Ordering::Relaxed) > 0 {
            return;
        }
        // The file is removed before its lock is released. A process that has opened the file earlier then locks a
        // removed file, notices that, and opens a new file. A crash leaves the file behind, but unlocked.
        let _ = fs::remove_file(&self.path);
        let _ = self.file.unlock();
    }
}

/// Appends lines to a journal. Clones append to the same file.
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
    /// Writes a line, and returns once the line is on the disk.
    ///
    /// # Errors
    /// The line was not written.
    pub async fn append(&self, line: JournalLine) -> io::Result<()> {
        let (done, written) = oneshot::channel();
        let entry = Entry { text: line.to_text(), done };
        let gone = || io::Error::other("the writer of the journal has ended");
        self.lines.send(entry).await.map_err(|_| gone())?;
        written.await.map_err(|_| gone())?
    }
}

/// The current file of a journal.
struct Pen {
    journal: Journal,
    file: File,
}

impl Pen {
    /// Writes all queued lines with one flush to the disk.
    fn write(&mut self, entries: Vec<Entry>) {
        let text: String = entries.iter().map(|entry| entry.text.as_str()).collect();
        let written = self.rotate().and_then(|()| {
            self.file.write_all(text.as_bytes())?;
            self.file.sync_data()
        });
        for entry in entries {
            let result = match &written {
                Ok(()) => Ok(()),
                Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
            };
            // If the caller no longer waits for the result, the result is dropped.
            let _ = entry.done.send(result);
        }
    }

    /// Starts a new file if the open file is large. If another process has already rotated the journal, opens its new
    /// file.
    fn rotate(&mut self) -> io::Result<()> {
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

/// Appends a newline if a crash has truncated the last line, so that the next line does not continue the truncated one.
fn end_cut_line(file: &mut File) -> io::Result<()> {
    let length = file.metadata()?.len();
    let mut last = [b'\n'];
    if length > 0 {
        file.read_exact_at(&mut last, length - 1)?;
    }
    if last == *b"\n" { Ok(()) } else { file.write_all(b"\n") }
}

/// The folder of all journals; none if neither `XDG_STATE_HOME` nor `HOME` is an absolute path.
pub fn folder() -> Option<PathBuf> {
    let set = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state")))?;
    Some(state.join("kordon/journal"))
}

/// Turns a name into a part of a file name. A name that has to be changed gets its hash as a suffix, to stay unique.
fn stem(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let mut stem: String = name.chars().map(|c| if plain(c) { c } else { '_' }).take(100).collect();
    if stem != name {
        // FNV-1a.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
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
    use kordon_core::engine::Severity;
    use kordon_time::Timestamp;

    fn notice(operation: &str, text: String) -> JournalLine {
        let kind = LineKind::Notice { level: Severity::Info, subject: String::new(), text };
        JournalLine {
            at: Timestamp::from_secs(1_800_000_000),
            operation: operation.parse().expect("an id"),
            kind,
        }
    }

    #[tokio::test]
    async fn lines_are_on_the_disk_and_only_their_owner_can_read_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let journal = Journal::within(folder.path(), "arn:aws:eks/prod");
        let writer = journal.open().expect("opened");
        writer.append(notice("p", "a \u{1b}[2J".into())).await.expect("written");
        assert_eq!(journal.lines().expect("read"), [notice("p", "a \u{1b}[2J".into())]);
        let mode = fs::metadata(journal.path()).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let others = Journal::within(folder.path(), "arn_aws_eks_prod");
        assert_ne!(journal.path(), others.path(), "clusters do not share a journal");
    }

    #[tokio::test]
    async fn a_truncated_line_is_skipped_and_the_rest_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let journal = Journal::within(folder.path(), "here");
        journal.open().expect("opened").append(notice("p", "one".into())).await.expect("written");
        let mut file = OpenOptions::new().append(true).open(journal.path()).expect("there");
        file.write_all(b"{\"at\": \"20").expect("written");
        journal.open().expect("opened").append(notice("p", "two".into())).await.expect("written");
        assert_eq!(journal.lines().expect("read").len(), 2);
    }

    #[tokio::test]
    async fn a_journal_is_rotated_and_loses_only_the_oldest_lines() {
        let folder = tempfile::tempdir().expect("a folder");
        let journal = Journal::within(folder.path(), "here");
        let writer = journal.open().expect("opened");
        let bulk = "x".repeat(1 << 20);
        for number in 0..20 {
            writer.append(notice(&number.to_string(), bulk.clone())).await.expect("written");
        }
        assert!(journal.older(2).exists() && !journal.older(3).exists());
        let ids: Vec<OperationId> =
            journal.lines().expect("read").into_iter().map(|line| line.operation).collect();
        assert_eq!(ids, (0..20).map(|number| number.to_string().parse().expect("an id")).collect::<Vec<_>>());
    }

    #[test]
    fn an_operation_is_locked_by_one_owner_at_a_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let journal = Journal::within(folder.path(), "here");
        let lock = |text: &str| journal.lock(&text.parse().expect("an id")).expect("no error");
        let first = lock("p1").expect("free");
        assert!(lock("p1").is_none() && lock("p2").is_some());
        drop(first);
        assert!(lock("p1").is_some());
    }

    #[test]
    fn a_command_that_was_left_running_keeps_the_lock() {
        let folder = tempfile::tempdir().expect("a folder");
        let journal = Journal::within(folder.path(), "here");
        let lock = || journal.lock(&"p1".parse().expect("an id")).expect("no error");
        let first = lock().expect("free");
        let (_input, ended) = first.shared().expect("a handle");
        ended.end();
        drop(first);
        let second = lock().expect("the command has ended, even if something else still has its input");
        let (_input, _left) = second.shared().expect("a handle");
        drop(second);
        assert!(lock().is_none(), "the command still runs");
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
