//! Reads the file of guard rails.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use schemars::JsonSchema;
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

/// Guard rails as they are written in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct GuardsFile {
    /// Maximum number of nodes that one plan may take out of service.
    #[schemars(with = "usize")]
    max_nodes: Option<usize>,
    /// Maximum share of a zone's nodes that may be out of service, in percent.
    #[schemars(with = "u8", extend("maximum" = 100))]
    max_zone_percent: Option<u8>,
    /// Whether each zone must keep its last ready, schedulable node.
    #[schemars(with = "bool")]
    keep_last_ready: Option<bool>,
    /// Namespaces whose pods must not be removed.
    protected_namespaces: Vec<String>,
    /// Label selectors of pods that must not be removed.
    protected_pods: Vec<String>,
}

impl GuardsFile {
    /// The guard rails. `keep_last_ready` holds where the file does not say it.
    ///
    /// # Errors
    /// A text is not a label selector. The error has the text and what is wrong with it.
    pub fn guards<'a>(&'a self, keep_last_ready: bool) -> Result<Guards, (&'a str, String)> {
        let selector =
            |text: &'a String| Selector::parse(text).map_err(|error| (text.as_str(), error.to_string()));
        Ok(Guards {
            max_nodes: self.max_nodes,
            max_zone_percent: self.max_zone_percent,
            keep_last_ready: self.keep_last_ready.unwrap_or(keep_last_ready),
            protected_namespaces: self.protected_namespaces.iter().map(|name| name.as_str().into()).collect(),
            protected_pods: self.protected_pods.iter().map(selector).collect::<Result<_, _>>()?,
        })
    }
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
    let file: GuardsFile = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_at(span.start));
        (line, error.message().to_owned())
    })?;
    file.guards(true).map_err(|(pods, why)| (text.find(pods).map_or(1, line_at), why))
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
