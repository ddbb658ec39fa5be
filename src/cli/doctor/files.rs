//! Checks of files on this machine: configuration, guard rails, journal, history.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{
    super::config::{Config, ConfigError},
    check::DoctorCheck,
};
use crate::{executor::guards, journal, run::history};
use kordon_core::operation::Guards;

/// Free space on a disk, in bytes, that counts as enough for the journal or the history.
const ENOUGH: u64 = 600 << 20;

/// Checks the files. `error` is the reason why the configuration could not be loaded.
pub fn checks(config: &Config, error: Option<&ConfigError>) -> Vec<DoctorCheck> {
    vec![of_configuration(config, error), of_guards(), of_journal(), of_history()]
}

fn of_configuration(config: &Config, error: Option<&ConfigError>) -> DoctorCheck {
    let id = "files.configuration";
    if let Some(error) = error {
        let fix =
            "correct the line, or set XDG_CONFIG_HOME to another folder; kordon refuses to start until then";
        return DoctorCheck::problem(id, error.to_string(), fix);
    }
    let settings = config.effective().into_iter().filter(|setting| setting.from != "default");
    let settings = settings.map(|setting| {
        let value = setting.value.unwrap_or_default();
        format!("{} = {value} ({})", setting.key, setting.place.unwrap_or_else(|| setting.from.into()))
    });
    let settings: Vec<String> = settings.collect();
    let file = config.path();
    let file = match (file.as_os_str().is_empty(), file.exists()) {
        (true, _) => "no file, because neither XDG_CONFIG_HOME nor HOME is an absolute path".into(),
        (false, false) => format!("{} does not exist", file.display()),
        (false, true) => file.display().to_string(),
    };
    match settings.as_slice() {
        [] => DoctorCheck::ok(id, format!("{file}; every setting has its default")),
        settings => DoctorCheck::ok(id, format!("{file}; {}", settings.join(", "))),
    }
}

fn of_guards() -> DoctorCheck {
    let id = "files.guards";
    let file = guards::default_file();
    let named = match &file {
        Some(file) if file.exists() => file.display().to_string(),
        Some(file) => format!("{} does not exist", file.display()),
        None => "no file".into(),
    };
    match guards::read(None) {
        Ok(guards) => DoctorCheck::ok(id, format!("{named}; {}", in_words(&guards))),
        Err(error) => {
            let fix = "correct the file: nothing is written to a cluster until then";
            DoctorCheck::problem(id, error.to_string(), fix)
        }
    }
}

fn in_words(guards: &Guards) -> String {
    let Guards { max_nodes, max_zone_percent, keep_last_ready, protected_namespaces, protected_pods } =
        guards;
    let limits = [
        max_nodes.map(|nodes| format!("at most {nodes} nodes")),
        max_zone_percent.map(|percent| format!("at most {percent} % of a zone")),
        keep_last_ready.then(|| "the last Ready node stays".to_owned()),
        (!protected_namespaces.is_empty())
            .then(|| format!("{} protected namespaces", protected_namespaces.len())),
        (!protected_pods.is_empty()).then(|| format!("{} selectors of protected pods", protected_pods.len())),
    ];
    let limits: Vec<String> = limits.into_iter().flatten().collect();
    if limits.is_empty() { "no guard rail".into() } else { limits.join(", ") }
}

fn of_journal() -> DoctorCheck {
    let id = "files.journal";
    match journal::folder() {
        None => {
            let fix = "set XDG_STATE_HOME or HOME: without a journal nothing is written to a cluster";
            DoctorCheck::problem(id, "there is no folder for it", fix)
        }
        Some(folder) => match FolderState::read(&folder) {
            Ok(state) => state.check(id, &folder),
            Err(error) => {
                let fix = "make it writable: without a journal nothing is written to a cluster";
                DoctorCheck::problem(id, format!("{}: {error}", folder.display()), fix)
            }
        },
    }
}

fn of_history() -> DoctorCheck {
    let id = "files.history";
    let fix =
        "set XDG_CACHE_HOME to a folder that can be written: without it, a frozen screen cannot go back";
    match history::folder() {
        None => DoctorCheck::warning(id, "there is no folder for it", fix),
        Some(folder) => match FolderState::read(&folder) {
            Ok(state) => state.check(id, &folder),
            Err(error) => DoctorCheck::warning(id, format!("{}: {error}", folder.display()), fix),
        },
    }
}

/// State of a folder that exists or can be created, and in which files can be written.
#[derive(Debug)]
struct FolderState {
    exists: bool,
    /// Total size in bytes of the files in the folder, without files in its subfolders.
    size: u64,
    /// Free space in bytes for this user on the folder's disk; `None` if it is not known.
    free: Option<u64>,
}

impl FolderState {
    /// Checks the folder by creating a temporary file in it, or in the nearest folder above that exists.
    ///
    /// # Errors
    /// No file can be created.
    fn read(folder: &Path) -> io::Result<Self> {
        let nearest: PathBuf = folder.ancestors().find(|folder| folder.exists()).unwrap_or(folder).to_owned();
        tempfile::tempfile_in(&nearest)?;
        let free = rustix::fs::statvfs(&nearest).ok();
        let sizes = fs::read_dir(folder).into_iter().flatten().flatten();
        let sizes = sizes.filter_map(|entry| entry.metadata().ok()).filter(fs::Metadata::is_file);
        Ok(Self {
            exists: folder.exists(),
            size: sizes.map(|file| file.len()).sum(),
            free: free.map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize)),
        })
    }

    fn check(&self, id: &'static str, folder: &Path) -> DoctorCheck {
        let use_of_it = match self.exists {
            true => format!("{}, writable, {} in it", folder.display(), mebibytes(self.size)),
            false => format!("{}, is created when it is needed", folder.display()),
        };
        match self.free {
            None => DoctorCheck::ok(id, format!("{use_of_it}; free space unknown")),
            Some(free) if free < ENOUGH => DoctorCheck::warning(
                id,
                format!("{use_of_it}, {} free", mebibytes(free)),
                "free space on its disk",
            ),
            Some(free) => DoctorCheck::ok(id, format!("{use_of_it}, {} free", mebibytes(free))),
        }
    }
}

fn mebibytes(bytes: u64) -> String {
    match bytes.div_ceil(1 << 20) {
        whole @ ..10_240 => format!("{whole} MiB"),
        whole => format!("{} GiB", whole >> 10),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::check::CheckResult, *};

    #[test]
    fn a_folder_that_does_not_exist_is_writable_if_one_above_it_is_and_is_not_created() {
        let home = tempfile::tempdir().expect("a folder");
        let folder = home.path().join("a/b");
        let state = FolderState::read(&folder).expect("the home can be written");
        assert!(!state.exists && state.free.is_some() && !folder.exists());
        fs::create_dir_all(&folder).expect("created");
        fs::write(folder.join("x.jsonl"), vec![0; 3 << 20]).expect("written");
        let state = FolderState::read(&folder).expect("writable");
        assert_eq!((state.exists, state.size), (true, 3 << 20));
        let file = folder.join("x.jsonl");
        FolderState::read(&file.join("below")).expect_err("a file is no folder");
    }

    #[test]
    fn a_disk_that_is_nearly_full_is_a_warning() {
        let check =
            |free| FolderState { exists: true, size: 5, free }.check("files.journal", Path::new("/j"));
        assert_eq!(check(Some(ENOUGH - 1)).result, CheckResult::Warning);
        assert_eq!(check(Some(ENOUGH)).result, CheckResult::Ok);
        assert!(check(None).found.ends_with("free space unknown"));
        assert_eq!((mebibytes(1), mebibytes(20 << 30)), ("1 MiB".into(), "20 GiB".into()));
    }
}
