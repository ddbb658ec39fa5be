//! The configuration in force while the program runs.

use std::sync::{Arc, Mutex, PoisonError};

use super::{Config, ConfigError};
use crate::run::preferences_file::{PreferencesFile, ReadConfiguration};
use kordon_core::visible;

/// The configuration in force: the last one that was read without an error. The dashboards of all contexts share it, so
/// a change that one of them reads also applies to the contexts that are opened later.
#[derive(Clone, Debug, Default)]
pub struct ConfigInForce(Arc<Mutex<Config>>);

impl ConfigInForce {
    pub fn new(config: Config) -> Self {
        Self(Arc::new(Mutex::new(config)))
    }

    pub fn current(&self) -> Config {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the file again, and returns the configuration that is in force from now on.
    ///
    /// # Errors
    /// As [`Config::read_again`]; the configuration in force stays as it was.
    pub fn read_again(&self) -> Result<Config, ConfigError> {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *current = current.read_again()?;
        Ok(current.clone())
    }

    /// The file, for a program that reads it again when it changes; `None` if there is no configuration folder.
    pub fn followed(&self, context: &str) -> Option<PreferencesFile> {
        let Config { path, state, .. } = self.current();
        if path.as_os_str().is_empty() {
            return None;
        }
        let (config, context) = (self.clone(), context.to_owned());
        let read = move || {
            let error_text = |error: ConfigError| visible::text(&error.in_short()).into_owned();
            let config = config.read_again().map_err(error_text)?;
            Ok(ReadConfiguration {
                preferences: config.preferences(&context),
                notify: config.notify(&context),
            })
        };
        Some(PreferencesFile { path, known: state, read: Arc::new(read) })
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::PathBuf};

    use super::*;
    use kordon_core::operation::Guards;

    struct File {
        _folder: tempfile::TempDir,
        path: PathBuf,
    }

    impl File {
        fn new(text: &str) -> (Self, ConfigInForce) {
            let folder = tempfile::tempdir().expect("a folder");
            let file = Self { path: folder.path().join("config.toml"), _folder: folder };
            file.write(text);
            let config = Config::read_file(file.path.clone()).expect("valid");
            (file, ConfigInForce::new(config))
        }

        fn write(&self, text: &str) {
            fs::write(&self.path, text).expect("written");
        }
    }

    /// Why a dashboard that is opened now may not write in context `prod`.
    fn read_only(config: &ConfigInForce) -> Option<String> {
        config.current().preferences_at_opening("prod").read_only
    }

    #[test]
    fn what_one_dashboard_reads_holds_in_the_contexts_that_are_opened_later() {
        let (file, config) = File::new("");
        let followed = config.followed("test").expect("there is a file");
        assert_eq!(read_only(&config), None);
        file.write("[contexts.prod]\nread-only = true");
        (followed.read)().expect("valid");
        let why = Some("contexts.prod.read-only (config.toml:2)".to_owned());
        assert_eq!(read_only(&config), why);

        file.write("[contexts.prod]\nread-onyl = true");
        config.read_again().expect_err("no such key");
        assert_eq!(read_only(&config), why, "the configuration in force stays");
    }

    #[test]
    fn guard_rails_of_a_context_only_become_stricter() {
        let most = |config: &Config| config.guarded("prod", Guards::default()).max_nodes;
        let (file, config) = File::new("");
        for (nodes, in_force) in [(3, 3), (5, 3), (1, 1)] {
            file.write(&format!("[contexts.prod.guards]\nmax-nodes = {nodes}"));
            assert_eq!(most(&config.read_again().expect("valid")), Some(in_force));
        }
        file.write("");
        assert_eq!(most(&config.read_again().expect("valid")), Some(1));
    }

    #[test]
    fn a_context_that_was_read_only_once_stays_so_until_the_next_start() {
        let (file, config) = File::new("[contexts.prod]\nread-only = true");
        for text in ["", "[contexts.prod]\nread-only = false"] {
            file.write(text);
            let read = config.read_again().expect("valid");
            assert_eq!(read.preferences("prod").read_only, None, "the file allows it");
            assert_eq!(read_only(&config).as_deref(), Some("contexts.prod.read-only (config.toml:2)"));
        }
    }
}
