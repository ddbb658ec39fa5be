//! `kordon config edit`: edits a copy of the file, and replaces the file if the copy is valid.

use std::{
    env, fs,
    io::{self, BufRead, IsTerminal, Write},
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::NamedTempFile;

use super::{default_file, lines};
use crate::cli::{
    config::Config,
    exit::{self, CliError},
};

/// Lets the user edit the file.
///
/// # Errors
/// There is no editor, it fails, the file cannot be written, or the user leaves an invalid text. The file is then
/// unchanged, and the edited text is kept in a file beside it.
pub fn edit(path: &Path) -> Result<(), CliError> {
    let editor = editor()?;
    // If the file is a symbolic link, the target is replaced, not the link.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let before = read(&path)?;
    let copy = copy(&path, before.as_deref().unwrap_or(&default_file::text()))?;
    loop {
        run(&editor, copy.path())?;
        let text = read(copy.path())?.unwrap_or_default();
        if before.as_deref().unwrap_or(&default_file::text()) == text {
            return exit::print(b"nothing was changed\n");
        }
        let Err(errors) = Config::parse_fully(&path, &text) else {
            return replace(&path, before.as_deref(), copy);
        };
        let _ = io::stderr().write_all(lines(&errors).as_bytes());
        if !wants_to_edit_again() {
            let kept = keep(copy)?;
            let text = format!("{} is as it was; what you edited is in {}", path.display(), kept.display());
            return Err(CliError::Usage(text));
        }
    }
}

/// The editor of the user: a command line, as git and kubectl read it.
fn editor() -> Result<String, CliError> {
    let set = |name: &str| env::var(name).ok().filter(|editor| !editor.trim().is_empty());
    let editor = set("VISUAL").or_else(|| set("EDITOR"));
    editor.ok_or_else(|| CliError::Usage("no editor: set VISUAL or EDITOR, as in EDITOR=vim".into()))
}

/// Reads a file; `None` if the file does not exist.
fn read(path: &Path) -> Result<Option<String>, CliError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(format!("reading {}", path.display()))(error)),
    }
}

/// Makes a copy in the folder of the file, so that it can replace the file in one step.
fn copy(path: &Path, text: &str) -> Result<NamedTempFile, CliError> {
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    let made = || {
        fs::create_dir_all(folder)?;
        let mut copy = tempfile::Builder::new().prefix("config-").suffix(".toml").tempfile_in(folder)?;
        copy.write_all(text.as_bytes())?;
        copy.flush()?;
        Ok(copy)
    };
    made().map_err(failed(format!("making a copy in {}", folder.display())))
}

fn run(editor: &str, copy: &Path) -> Result<(), CliError> {
    let line = format!("{editor} \"$1\"");
    let ended = Command::new("sh").args(["-c", &line, "kordon"]).arg(copy).status();
    let ended = ended.map_err(failed(format!("starting {editor}")))?;
    if ended.success() {
        return Ok(());
    }
    let error = io::Error::other(format!("{ended}; the configuration is as it was"));
    Err(failed(format!("editing with {editor}"))(error))
}

fn wants_to_edit_again() -> bool {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return false;
    }
    let mut answer = String::new();
    let asked = io::stderr().write_all(b"Edit again? [Y/n] ");
    let read = asked.and_then(|()| io::stdin().lock().read_line(&mut answer));
    read.is_ok_and(|read| read > 0) && !answer.trim().to_lowercase().starts_with('n')
}

/// Replaces the file with the copy, unless it has changed since it was read.
fn replace(path: &Path, before: Option<&str>, copy: NamedTempFile) -> Result<(), CliError> {
    if read(path)?.as_deref() != before {
        let kept = keep(copy)?;
        let text = "has changed while you edited it and is left as it is; what you edited is in";
        return Err(CliError::Usage(format!("{} {text} {}", path.display(), kept.display())));
    }
    let replaced = || {
        // The copy is opened by its path, because an editor may have replaced it with a new file.
        let (_, copy) = copy.keep()?;
        if let Ok(old) = fs::metadata(path) {
            fs::set_permissions(&copy, old.permissions())?;
        }
        fs::File::open(&copy)?.sync_all()?;
        fs::rename(&copy, path)
    };
    replaced().map_err(failed(format!("writing {}", path.display())))?;
    exit::print(format!("{}: ok\n", path.display()).as_bytes())
}

/// Keeps the edited copy, and returns its path.
fn keep(copy: NamedTempFile) -> Result<PathBuf, CliError> {
    let path = copy.path().to_owned();
    copy.keep()
        .map(|(_, path)| path)
        .map_err(|error| failed(format!("keeping {}", path.display()))(error.error))
}

fn failed(doing: String) -> impl FnOnce(io::Error) -> CliError {
    move |error| CliError::Io { doing, error }
}
