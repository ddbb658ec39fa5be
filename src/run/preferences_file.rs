//! Reads the configuration again when its file changes.

use std::{
    fmt, fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::{sync::mpsc, time::sleep};
use tokio_util::task::AbortOnDropHandle;

use super::notify::NotifyOptions;
use crate::app::Preferences;

/// Interval at which the file is checked for changes.
const INTERVAL: Duration = Duration::from_secs(2);

/// The parts of a configuration that a running program applies when the file was read again.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadConfiguration {
    pub preferences: Preferences,
    pub notify: NotifyOptions,
}

/// The configuration, or what is wrong with the file.
pub type ReadPreferences = Result<ReadConfiguration, String>;

/// Path of the preferences file, and the function that reads the file.
#[derive(Clone)]
pub struct PreferencesFile {
    pub path: PathBuf,
    /// State of the file when the configuration in force was read; `None` if there was no file.
    pub known: Option<FileState>,
    pub read: Arc<dyn Fn() -> ReadPreferences + Send + Sync>,
}

impl fmt::Debug for PreferencesFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreferencesFile").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Reads the preferences file again when it changes, in a task of its own.
pub struct PreferencesReader {
    /// Receives the result of each reading of the file. The capacity is one: while a result has not been received, the
    /// file is not checked.
    results: mpsc::Receiver<ReadPreferences>,
    _task: AbortOnDropHandle<()>,
}

impl PreferencesReader {
    pub fn start(file: PreferencesFile) -> Self {
        let (send, results) = mpsc::channel(1);
        let task = AbortOnDropHandle::new(tokio::spawn(follow(file, send)));
        Self { results, _task: task }
    }

    /// Waits until the file has changed and was read. May be dropped and awaited again.
    pub async fn next(&mut self) -> ReadPreferences {
        match self.results.recv().await {
            Some(read) => read,
            None => std::future::pending().await,
        }
    }
}

/// Waits until the reader's file has changed and was read; forever if there is no reader.
pub async fn next_read(reader: &mut Option<PreferencesReader>) -> ReadPreferences {
    match reader {
        Some(reader) => reader.next().await,
        None => std::future::pending().await,
    }
}

async fn follow(file: PreferencesFile, results: mpsc::Sender<ReadPreferences>) {
    let mut known = file.known;
    loop {
        let (path, read) = (file.path.clone(), file.read.clone());
        let changed = move || {
            let state = FileState::read(&path);
            (state != known).then(|| (state, read()))
        };
        let Ok(changed) = tokio::task::spawn_blocking(changed).await else { return };
        if let Some((state, read)) = changed {
            known = state;
            if results.send(read).await.is_err() {
                return;
            }
        }
        sleep(INTERVAL).await;
    }
}

/// Properties of a file that change when it is written or replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileState {
    modified: Option<SystemTime>,
    size: u64,
    inode: u64,
}

impl FileState {
    /// Reads the properties of a file; `None` if there is no such file.
    pub fn read(path: &Path) -> Option<Self> {
        let data = fs::metadata(path).ok()?;
        Some(Self { modified: data.modified().ok(), size: data.len(), inode: data.ino() })
    }
}
