//! Reads the file of guard rails.

use std::{
    collections::BTreeSet,
    env, fs, io,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use kordon_core::{cluster::Selector, operation::Guards};

/// Error that leaves the guard rails unknown. While the guard rails are unknown, nothing is written to the cluster.
#[derive(Debug, thiserror::Error)]
pub enum GuardsError {
    #[error("cannot read the guard rails {}: {error}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        error: io::Error,
    },
    #[error("{}:{line}: {text}", path.display())]
    Bad { path: PathBuf, line: usize, text: String },
}

/// The contents of the file of guard rails.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    max_nodes: Option<usize>,
    max_zone_percent: Option<u8>,
    keep_last_ready: Option<bool>,
    protected_namespaces: BTreeSet<String>,
    protected_pods: Vec<String>,
}

/// Reads the file `named`. If `named` is `None`, reads `guards.toml` in the configuration folder; if that file does not
/// exist, returns the default guard rails.
///
/// # Errors
/// The file cannot be read, or is not a file of guard rails.
pub fn read(named: Option<&Path>) -> Result<Guards, GuardsError> {
    let Some(path) = named.map(Path::to_owned).or_else(default_file) else { return Ok(Guards::default()) };
    match fs::read_to_string(&path) {
        Ok(text) => parse(&text).map_err(|(line, text)| GuardsError::Bad { path, line, text }),
        Err(error) if error.kind() == io::ErrorKind::NotFound && named.is_none() => Ok(Guards::default()),
        Err(error) => Err(GuardsError::Io { path, error }),
    }
}

/// Parses the text of a file. An error has its line, from 1.
fn parse(text: &str) -> Result<Guards, (usize, String)> {
    let line_at = |at: usize| 1 + text[..at].matches('\n').count();
    let file: File = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_at(span.start));
        (line, error.message().to_owned())
    })?;
    let selector = |pods: &String| {
        Selector::parse(pods)
            .map_err(|error| (text.find(pods.as_str()).map_or(1, line_at), error.to_string()))
    };
    Ok(Guards {
        max_nodes: file.max_nodes,
        max_zone_percent: file.max_zone_percent,
        keep_last_ready: file.keep_last_ready.unwrap_or(true),
        protected_namespaces: file.protected_namespaces.iter().map(|name| name.as_str().into()).collect(),
        protected_pods: file.protected_pods.iter().map(selector).collect::<Result<_, _>>()?,
    })
}

/// Default path of the file of guard rails, whether or not the file exists.
pub fn default_file() -> Option<PathBuf> {
    configuration_folder().map(|folder| folder.join("guards.toml"))
}

/// kordon's configuration folder; none if neither `XDG_CONFIG_HOME` nor `HOME` is an absolute path.
pub fn configuration_folder() -> Option<PathBuf> {
    let set = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")))?;
    Some(folder.join("kordon"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_the_line_and_what_is_wrong_with_it() {
        let error = |text: &str| parse(text).expect_err(text);
        let (line, why) = error("max-nodes = 3\nmax-zone-percent = \"many\"");
        assert_eq!(line, 2);
        assert!(why.starts_with("invalid type") && !why.contains('\n'), "{why}");
        let (line, why) = error("# limits\nmax-nods = 3");
        assert!(line == 2 && why.contains("unknown field `max-nods`"), "{line}: {why}");
        assert_eq!(error("\n\nprotected-pods = [\"app in web\"]").0, 3);
    }
}
