//! Reads the files of recordings of real components.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde::de::DeserializeOwned;

/// Returns the folder of all recordings: `tests/vectors/`, or the folder that `KORDON_VECTORS` names. It has a folder
/// for each kind of recording.
pub fn root() -> PathBuf {
    std::env::var_os("KORDON_VECTORS").map_or_else(|| own(""), PathBuf::from)
}

/// Returns the repository's own folder for one kind of recording.
pub fn own(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(kind)
}

/// Reads all recordings of a kind, by file name.
pub fn recordings<R: DeserializeOwned>(root: &Path, kind: &str) -> Result<BTreeMap<String, R>, String> {
    let folder = root.join(kind);
    let failed = |error| format!("reading recordings (KORDON_VECTORS): {}: {error}", folder.display());
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(&folder).map_err(|error| failed(error.to_string()))? {
        let path = entry.map_err(|error| failed(error.to_string()))?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let name = path.file_name().expect("a file").to_string_lossy().into_owned();
            found.insert(name, read(&path)?);
        }
    }
    if found.is_empty() {
        return Err(failed("no recordings (*.json)".into()));
    }
    Ok(found)
}

/// Reads a file with one recording or a list of them.
pub fn read<R: DeserializeOwned>(path: &Path) -> Result<R, String> {
    let failed = |error: &dyn std::error::Error| format!("{}: {error}", path.display());
    let text = fs::read_to_string(path).map_err(|error| failed(&error))?;
    serde_json::from_str(&text).map_err(|error| failed(&error))
}
