//! The configuration from a file and environment variables: defaults of flags, settings of the controller, and
//! preferences for the dashboard.

mod file;
mod flags;
mod in_force;
mod notify;
mod reader;

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs, io,
    path::{Path, PathBuf},
};

use serde::Serialize;

pub use file::{ConfigFile, schema};
pub use flags::{check as check_value, controller_defaults};
pub use in_force::ConfigInForce;

use super::{definition, themes::OwnThemes};
use crate::{
    app::{Preferences, keymap::KeymapError},
    executor::guards,
    run::{notify::NotifyOptions, preferences_file::FileState},
};
use flags::{configurable, flag_definition, known_keys};
use kordon_core::{
    engine::{Origin, Settings},
    operation::Guards,
};
use reader::ReadFile;

/// The configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    path: PathBuf,
    /// Configured values; those of the environment come first, because they override those of the file.
    values: Vec<ConfigValue>,
    file: ConfigFile,
    /// State of the file just before it was read; `None` if there was no file.
    state: Option<FileState>,
    /// Guard rails of contexts, the strictest of this configuration and earlier ones of the session.
    guards: BTreeMap<String, Guards>,
    /// Contexts that this configuration or an earlier one of the session makes read-only, each with the reason.
    read_only: BTreeMap<String, String>,
}

/// A configured value.
#[derive(Clone, Debug, PartialEq)]
struct ConfigValue {
    /// Path of the key: the names of its tables, then its own name, as in `["drain", "parallel"]`.
    path: Vec<String>,
    /// Text of the value, as on the command line; the texts of a list are joined by commas.
    text: String,
    source: ConfigSource,
}

#[derive(Clone, Debug, PartialEq)]
enum ConfigSource {
    /// Name of an environment variable.
    Environment(String),
    /// Number of a line of the configuration file.
    Line(usize),
}

/// Why the configuration could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read the configuration {}: {error}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        error: io::Error,
    },
    #[error("{}:{line}: {text}", path.display())]
    Bad { path: PathBuf, line: usize, text: String },
    #[error("environment variable {variable}: {text}")]
    Variable { variable: String, text: String },
}

impl ConfigError {
    /// Text of the error for the screen. It names the file without its folder.
    pub fn in_short(&self) -> String {
        match self {
            Self::Bad { path, line, text } => format!("{}:{line}: {text}", file_name(path)),
            Self::Io { .. } | Self::Variable { .. } => self.to_string(),
        }
    }

    /// Line of the file, from 1; 0 if the error is not about a line.
    fn line(&self) -> usize {
        match self {
            Self::Bad { line, .. } => *line,
            Self::Io { .. } | Self::Variable { .. } => 0,
        }
    }
}

impl Config {
    /// Reads the environment, and `config.toml` in the configuration folder if there is one.
    ///
    /// # Errors
    /// The file cannot be read or has an unknown key, or a value is invalid.
    pub fn load() -> Result<Self, ConfigError> {
        let mut config = Self::load_file()?;
        config.values.splice(0..0, environment(|name| env::var(name).ok())?);
        Ok(config)
    }

    /// The file that is read, whether or not it exists; `None` if there is no folder for it.
    pub fn own_file() -> Option<PathBuf> {
        guards::configuration_folder().map(|folder| folder.join("config.toml"))
    }

    /// Reads the file again, and keeps the values of the environment. A context that was read-only stays so in the
    /// [preferences at its opening](Self::preferences_at_opening).
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn read_again(&self) -> Result<Self, ConfigError> {
        let mut config = Self::read_file(self.path.clone())?;
        let is_of_environment = |value: &&ConfigValue| matches!(value.source, ConfigSource::Environment(_));
        config.values.splice(0..0, self.values.iter().filter(is_of_environment).cloned());
        let still = std::mem::take(&mut config.read_only);
        config.read_only.clone_from(&self.read_only);
        config.read_only.extend(still);
        for (context, earlier) in &self.guards {
            let guards = config.guards.remove(context).map_or(earlier.clone(), |guards| guards.and(earlier));
            config.guards.insert(context.clone(), guards);
        }
        Ok(config)
    }

    fn load_file() -> Result<Self, ConfigError> {
        Self::own_file().map_or_else(|| Ok(Self::default()), Self::read_file)
    }

    fn read_file(path: PathBuf) -> Result<Self, ConfigError> {
        // A change between the two readings is noticed by the program that follows the file.
        let state = FileState::read(&path);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Self { state, ..Self::parse(&path, &text)? }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self { path, ..Self::default() }),
            Err(error) => Err(ConfigError::Io { path, error }),
        }
    }

    /// Parses the text of the configuration file. Fails with the first of its errors.
    pub(super) fn parse(path: &Path, text: &str) -> Result<Self, ConfigError> {
        Self::parse_fully(path, text).map_err(|errors| errors.into_iter().next().expect("an error"))
    }

    /// Parses the text of the configuration file, and finds all its errors.
    ///
    /// # Errors
    /// Every error of the file, in the order of its lines; at least one.
    pub(super) fn parse_fully(path: &Path, text: &str) -> Result<Self, Vec<ConfigError>> {
        let ReadFile { values, mut errors, wrong } = reader::read(path, text);
        let mut config = Self { path: path.to_owned(), values, ..Self::default() };
        // One wrong key must not hide the errors of the other tables.
        let file = toml::from_str(text).or_else(|error| match errors.is_empty() {
            true => Err(error),
            false => without(text, &wrong).ok_or(error),
        });
        match file {
            Ok(file) => {
                config.file = file;
                config.read_only = config.read_only_contexts();
                let contexts = config.file.context_names();
                let guards = |name: &str| Some((name.to_owned(), config.file.guards(name)?));
                config.guards = contexts.filter_map(guards).collect();
                config.check_tables(&mut errors);
            }
            Err(error) if errors.is_empty() => {
                let line = error.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count());
                errors.push(config.error(line, error.message().to_owned()));
            }
            // The reader has found what is wrong.
            Err(_) => {}
        }
        errors.sort_by_key(ConfigError::line);
        if errors.is_empty() { Ok(config) } else { Err(errors) }
    }

    /// Finds the errors in the tables of the dashboard and of notifications. An error that the keys of all contexts
    /// have is reported once, and so is what the reader has found on a line.
    fn check_tables(&self, errors: &mut Vec<ConfigError>) {
        let keys = self.file.wrong_keys().into_iter();
        let keys = keys.map(|(context, error)| (self.line_of_keys(context, &error), error.to_string()));
        let settings = self.file.wrong_settings().into_iter().map(|(path, why)| {
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            (self.line_of(&path), why)
        });
        // The reader leaves out a value in which it has found an error itself.
        let of_all = self.file.notify.options().err().map(|(key, why)| (vec!["notify", key], why));
        let of_contexts = self.file.context_names().filter_map(|name| {
            let (key, why) = self.file.notify_of(name).options().err()?;
            Some((vec!["contexts", name, "notify", key], why))
        });
        let notify = of_all.into_iter().chain(of_contexts);
        let notify = notify.filter_map(|(path, why)| Some((self.line_if_set(&path)?, why)));
        let read: BTreeSet<usize> = errors.iter().map(ConfigError::line).collect();
        let found: BTreeSet<(usize, String)> = keys.chain(settings).chain(notify).collect();
        let new = found.into_iter().filter(|(line, _)| !read.contains(line));
        errors.extend(new.map(|(line, text)| self.error(line, text)));
    }

    /// Finds the chosen themes of the user whose files are invalid. Such a theme is no error of the configuration,
    /// because the command line can choose another one.
    pub fn broken_themes(&self) -> Vec<ConfigError> {
        let own = OwnThemes::find();
        let names = own.names();
        let chosen = self.values.iter().filter(|value| {
            matches!(&value.path()[..], ["theme"] | ["contexts", _, "theme"]) && names.contains(&value.text)
        });
        let broken = chosen.filter_map(|value| Some((value.line(), own.read(&value.text).err()?)));
        let mut errors: Vec<_> = broken.map(|(line, error)| self.error(line, error.to_string())).collect();
        errors.sort_by_key(ConfigError::line);
        errors
    }

    fn error(&self, line: usize, text: String) -> ConfigError {
        ConfigError::Bad { path: self.path.clone(), line, text }
    }

    /// Line, from 1, at which the file sets a value; 1 if the file does not set it.
    fn line_of(&self, path: &[&str]) -> usize {
        self.line_if_set(path).unwrap_or(1)
    }

    fn line_if_set(&self, path: &[&str]) -> Option<usize> {
        self.values.iter().find(|value| value.path() == path).map(ConfigValue::line)
    }

    /// The notifications that the configuration asks for in a context.
    pub fn notify(&self, context: &str) -> NotifyOptions {
        self.file.notify_of(context).options().expect("checked when it was read")
    }

    /// Adds the guard rails of a context to those of the file of guard rails: the stricter of each holds.
    pub fn guarded(&self, context: &str, guards: Guards) -> Guards {
        self.guards.get(context).into_iter().fold(guards, Guards::and)
    }

    /// Line, from 1, of the last setting under `keys` that causes this error in a context.
    fn line_of_keys(&self, context: Option<&str>, error: &KeymapError) -> usize {
        let commands: Vec<&str> = match error {
            KeymapError::Unknown { name, .. } => vec![name],
            KeymapError::NoKey { command, .. } => vec![command],
            KeymapError::NoArgument { command } => vec![command],
            KeymapError::NoWayOut => vec!["quit", "palette"],
            KeymapError::Conflict { one, other, .. } => vec![one, other],
        };
        let is_bind = |value: &&ConfigValue| {
            match &value.path()[..] {
                ["keys", "bind", command] => Some((None, *command)),
                ["contexts", name, "keys", "bind", command] => Some((Some(*name), *command)),
                _ => None,
            }
            .is_some_and(|(of, command)| {
                let is_meant = |name: &&str| command.split(' ').next() == Some(name) || command == *name;
                (of.is_none() || of == context) && commands.iter().any(is_meant)
            })
        };
        let is_of_keys = |value: &&ConfigValue| value.path().contains(&"keys");
        let found = self
            .values
            .iter()
            .filter(is_bind)
            .max_by_key(|value| value.line())
            .or_else(|| self.values.iter().find(is_of_keys));
        found.map_or(1, ConfigValue::line)
    }

    /// Returns the command line's definition with configured values as the defaults of flags. A flag on the command
    /// line overrides its default.
    pub fn apply(&self, command: clap::Command) -> clap::Command {
        let is_drain = command.get_name() == "drain";
        let default = |flag: &str| {
            let set = self.values.iter().find(|value| match &value.path()[..] {
                [key] => *key == flag,
                ["drain", key] => is_drain && *key == flag,
                _ => false,
            });
            // clap needs texts with a static lifetime. The program has one configuration, so the leaked memory stays
            // small.
            set.map(|value| &*Box::leak(value.text.clone().into_boxed_str()))
        };
        let command = command.mut_args(|arg| match configurable(&arg).and_then(default) {
            Some(text) => arg.default_value(text),
            None => arg,
        });
        command.mut_subcommands(|subcommand| self.apply(subcommand))
    }

    /// Path of the file, whether or not it exists.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Preferences for the dashboard of a context.
    pub fn preferences(&self, context: &str) -> Preferences {
        let preferences = self.file.preferences(context);
        let general = self.values.iter().find(|value| value.path() == ["theme"]);
        let general_theme = general.map(|value| value.text.clone());
        let theme = match general.map(|value| &value.source) {
            // A theme from the environment overrides the themes in the file.
            Some(ConfigSource::Environment(_)) => general_theme,
            Some(ConfigSource::Line(_)) | None => preferences.theme.or(general_theme),
        };
        let guards = self.guards.get(context).cloned();
        Preferences { theme, read_only: self.read_only_key(context), guards, ..preferences }
    }

    /// Preferences for a dashboard that is opened now. A context that was read-only earlier in this session stays so.
    pub fn preferences_at_opening(&self, context: &str) -> Preferences {
        Preferences { read_only: self.read_only.get(context).cloned(), ..self.preferences(context) }
    }

    /// The key that forbids writing in a context, with its place: `contexts.prod.read-only (config.toml:7)`; `None` if
    /// the file allows writing.
    fn read_only_key(&self, context: &str) -> Option<String> {
        let line = self.line_of_read_only(context)?;
        Some(format!("contexts.{context}.read-only ({}:{line})", file_name(&self.path)))
    }

    /// Contexts in which the file forbids writing, each with the key that forbids it.
    fn read_only_contexts(&self) -> BTreeMap<String, String> {
        let contexts = self.file.context_names();
        contexts.filter_map(|name| Some((name.to_owned(), self.read_only_key(name)?))).collect()
    }

    /// Why nothing may be written in a context: `contexts.prod.read-only in config.toml:7`; `None` if the
    /// configuration allows writing.
    pub fn why_read_only(&self, context: &str) -> Option<String> {
        let line = self.line_of_read_only(context)?;
        Some(format!("contexts.{context}.read-only in {}:{line}", self.path.display()))
    }

    /// Line of the key that forbids writing in a context; `None` if writing is allowed.
    fn line_of_read_only(&self, context: &str) -> Option<usize> {
        let path = ["contexts", context, "read-only"];
        let value = self.values.iter().find(|value| value.path() == path)?;
        self.file.is_read_only(context).then(|| value.line())
    }

    /// All settings; those of contexts and of the dashboard come last.
    pub fn effective(&self) -> Vec<ConfiguredValue> {
        let command = definition();
        let known: Vec<Vec<&str>> = known_keys().collect();
        let others = self.values.iter().filter(|value| !known.contains(&value.path()));
        let others = others.map(|value| ConfiguredValue::new(&value.path(), value));
        let with_default =
            known.iter().map(|path| match self.values.iter().find(|value| value.path() == *path) {
                Some(value) => ConfiguredValue::new(path, value),
                None => ConfiguredValue::default_of(&command, path),
            });
        with_default.chain(others).collect()
    }

    /// Applies the configured settings of the controller of a context's cluster. The environment overrides the
    /// context's table, which overrides the table for all clusters.
    pub fn set(&self, context: &str, settings: &mut Settings) {
        let rank = |value: &ConfigValue| match (&value.path()[..], &value.source) {
            (["controller", _], ConfigSource::Line(_)) => Some(0),
            (["contexts", name, "controller", _], _) if *name == context => Some(1),
            (["controller", _], ConfigSource::Environment(_)) => Some(2),
            _ => None,
        };
        let mut values: Vec<(u8, &ConfigValue)> =
            self.values.iter().filter_map(|value| Some((rank(value)?, value))).collect();
        values.sort_by_key(|(rank, _)| *rank);
        for (_, value) in values {
            let key = value.path.last().expect("a value has a key");
            let set = settings.set(key, &value.text, Origin::Configuration);
            set.expect("checked when it was read");
        }
    }
}

/// The file without the keys of these paths; `None` if it still cannot be read.
fn without(text: &str, wrong: &[Vec<String>]) -> Option<ConfigFile> {
    let mut file: toml::Table = toml::from_str(text).ok()?;
    for path in wrong {
        let (key, tables) = path.split_last()?;
        let table = tables.iter().try_fold(&mut file, |table, name| table.get_mut(name)?.as_table_mut());
        table.and_then(|table| table.remove(key));
    }
    toml::Value::Table(file).try_into().ok()
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Reads the environment variables. Their names are the keys in capitals, as in `KORDON_DRAIN_PARALLEL`.
fn environment(variable: impl Fn(&str) -> Option<String>) -> Result<Vec<ConfigValue>, ConfigError> {
    let mut values = Vec::new();
    for path in known_keys() {
        let name = format!("KORDON_{}", path.join("_").replace('-', "_").to_uppercase());
        let Some(text) = variable(&name) else { continue };
        flags::check(&path, &text).map_err(|why| ConfigError::Variable {
            variable: name.clone(),
            text: format!("{text:?} is {why}"),
        })?;
        let path = path.into_iter().map(str::to_owned).collect();
        values.push(ConfigValue { path, text, source: ConfigSource::Environment(name) });
    }
    Ok(values)
}

impl ConfigValue {
    fn path(&self) -> Vec<&str> {
        self.path.iter().map(String::as_str).collect()
    }

    /// Line of the file, from 1; 0 for a value of the environment.
    const fn line(&self) -> usize {
        match self.source {
            ConfigSource::Line(line) => line,
            ConfigSource::Environment(_) => 0,
        }
    }
}

/// A setting with its effective value (`docs/reference/config.md`).
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConfiguredValue {
    /// The key as in the file: `drain.parallel`, `contexts.prod.controller.node-eviction-rate`.
    pub key: String,
    /// The effective value; `null` if the cluster or the command decides.
    pub value: Option<String>,
    /// Kind of source of the value: `environment`, `file` or `default`.
    pub from: &'static str,
    /// The environment variable, or the line of the file; `null` for a default.
    pub place: Option<String>,
}

impl ConfiguredValue {
    fn new(path: &[&str], value: &ConfigValue) -> Self {
        let (from, place) = match &value.source {
            ConfigSource::Environment(name) => ("environment", name.clone()),
            ConfigSource::Line(line) => ("file", format!("line {line}")),
        };
        Self { key: path.join("."), value: Some(value.text.clone()), from, place: Some(place) }
    }

    fn default_of(command: &clap::Command, path: &[&str]) -> Self {
        let default =
            flag_definition(command, path).and_then(|arg| arg.get_default_values().first()?.to_str());
        Self { key: path.join("."), value: default.map(str::to_owned), from: "default", place: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::{Aliases, ChosenColumn, Keymap, Pane, key_presets::KeyPreset, preferences::MarkColour};
    use kordon_core::engine::ServerVersion;

    const PATH: &str = "/config.toml";

    fn parse(text: &str) -> Result<Config, ConfigError> {
        Config::parse(Path::new(PATH), text)
    }

    fn error(text: &str) -> String {
        let error = parse(text).expect_err(text).to_string();
        error.strip_prefix(PATH).unwrap_or_else(|| panic!("{error} does not name the file")).to_owned()
    }

    #[test]
    fn an_error_names_the_file_the_line_and_the_nearest_key() {
        assert_eq!(error("\ntehme = \"dark\""), ":2: unknown key \"tehme\": did you mean \"theme\"?");
        assert_eq!(
            error("[drain]\n# comment\nignore-daemonset = true"),
            ":3: unknown key \"ignore-daemonset\": did you mean \"ignore-daemonsets\"?"
        );
        assert!(
            error("[drain]\nforce = true").contains("known here: delete-emptydir-data, "),
            "is to be typed"
        );
        assert_eq!(
            error("[contexts.prod.controler]\n"),
            ":1: unknown key \"controler\": did you mean \"controller\"?"
        );
        assert_eq!(
            error("[controller]\nnode-eviction-rate = \"fast\""),
            ":2: node-eviction-rate = \"fast\" is not a number of zero or more"
        );
        assert!(
            error("theme = \"pink\"").starts_with(":1: theme = \"pink\" is not one of auto, dark, light")
        );
        assert!(error("placement = \"now\"").contains("is not one of wait, skip, auto"));
        assert!(error("[drain]\nparallel = 0").starts_with(":2: parallel = \"0\" is not valid"));
        for table in ["drain", "controller", "contexts", "keys", "aliases", "columns", "views"] {
            assert_eq!(error(&format!("{table} = \"2s\"")), format!(":1: {table} is not a table"));
        }
        assert_eq!(error("theme = [1]"), ":1: theme is not a text, a number, true or false");
        assert!(error("theme = \"dark").starts_with(":1: "));
    }

    #[test]
    fn errors_in_the_tables_of_the_dashboard_name_what_is_possible() {
        assert_eq!(
            error("[keys]\npreset = \"emacs\""),
            ":2: preset = \"emacs\" is not one of default, k9s, vim"
        );
        assert_eq!(error("[keys.bind]\nquit = 3"), ":2: quit = \"3\" is not a text");
        assert_eq!(error("[keys.bind]\nquit = [\"q\", 3]"), ":2: quit is not a list of texts");
        assert_eq!(
            error("[keys.bind]\nquti = \"q\""),
            ":2: there is no command \"quti\"; did you mean \"quit\"?"
        );
        assert!(
            error("[keys.bind]\nquit = \"q\"\nzoom = \"strg-z\"")
                .starts_with(":3: zoom: \"strg-z\" is not a key")
        );
        let conflict = error("[keys.bind]\nquit = \"f7\"\n[contexts.prod.keys.bind]\nzoom = \"f7\"");
        assert!(conflict.starts_with(":4: ") && conflict.contains("would be both"), "{conflict}");
        assert_eq!(error("[columns.nods]"), ":1: unknown key \"nods\": did you mean \"nodes\"?");
        assert_eq!(error("[columns.nodes]\nshow = \"name\""), ":2: show is not a list of texts");
        assert_eq!(
            error("[columns.nodes]\nshow = [\"name\", \"stat\"]"),
            ":2: \"stat\" is not a column: did you mean \"state\"?"
        );
        assert_eq!(
            error("[aliases]\n\"my drain\" = \"drain\""),
            ":2: my drain = \"drain\" is not possible: the name of an alias has no spaces"
        );
        assert!(
            error("[views.mine]\npane = \"node\"")
                .starts_with(":2: pane = \"node\" is not one of zones, nodes")
        );
        let context = |line: &str| error(&format!("[contexts.prod]\n{line}"));
        assert_eq!(context("read-only = \"yes\""), ":2: read-only = \"yes\" is not true or false");
        assert!(
            context("colour = \"pink\"").starts_with(":2: colour = \"pink\" is not a colour: #rrggbb, black")
        );
        assert!(
            context("theme = \"pink\"").starts_with(":2: theme = \"pink\" is not one of auto, dark, light")
        );
        assert!(context("word = \"\"").contains("is not a word of 1 to 24"));
        assert_eq!(context("colr = \"red\""), ":2: unknown key \"colr\": did you mean \"colour\"?");
    }

    #[test]
    fn preferences_of_a_context_override_those_for_all_entry_by_entry() {
        let text = "[keys]\npreset = \"k9s\"\n[keys.bind]\nquit = [\"q\", \"ctrl-q\"]\nzoom = \"z\"\n\
                    [aliases]\nd = \"drain\"\n[columns.nodes]\nshow = [\"name\", \"state\"]\n\
                    [views.bad]\npane = \"nodes\"\nfilter = \"state!=Ready\"\nwide = true\n\
                    [contexts.prod]\nread-only = true\ncolour = \"#ff0000\"\ntheme = \"light\"\n\
                    [contexts.prod.keys]\nbind = { zoom = \"f7\" }\n[contexts.prod.aliases]\ne = \"evict\"";
        let config = parse(text).expect("valid");
        let (prod, test) = (config.preferences("prod"), config.preferences("test"));
        let keymap = |zoom: &str| {
            let bound =
                [("quit", vec!["q".to_owned(), "ctrl-q".to_owned()]), ("zoom", vec![zoom.to_owned()])];
            let bound = bound.map(|(command, keys)| (command.to_owned(), keys));
            Keymap::new(KeyPreset::K9s, &bound.into()).expect("no conflict")
        };
        assert_eq!((prod.keymap, test.keymap), (keymap("f7"), keymap("z")));
        let aliases = |own: &[(&str, &str)]| {
            Aliases::new(own.iter().map(|(name, meant)| ((*name).to_owned(), (*meant).to_owned())).collect())
        };
        assert_eq!(prod.aliases, aliases(&[("d", "drain"), ("e", "evict")]));
        assert_eq!(test.aliases, aliases(&[("d", "drain")]));
        let shown = [ChosenColumn::Own("node"), ChosenColumn::Own("state")];
        assert_eq!(prod.columns[&Pane::Nodes].show, shown, "name, state");
        assert!(prod.views["bad"].wide && prod.views["bad"].filter == "state!=Ready");
        let mark = prod.mark.expect("it has a colour");
        assert_eq!((&*mark.word, mark.colour), ("prod", Some(MarkColour::Rgb(255, 0, 0))));
        assert_eq!((prod.theme.as_deref(), test.theme, test.mark), (Some("light"), None, None));
        assert_eq!(prod.read_only.as_deref(), Some("contexts.prod.read-only (config.toml:15)"));
        assert_eq!(test.read_only, None);
    }

    #[test]
    fn guard_rails_and_notices_of_a_context_are_checked_and_add_to_those_of_all() {
        let text = "[notify]\non = [\"node\"]\nby = [\"bell\"]\n[contexts.prod.guards]\nmax-nodes = 1\n\
                    [contexts.prod.notify]\non = []";
        let config = parse(text).expect("valid");
        let file = Guards { max_nodes: Some(3), max_zone_percent: Some(50), ..Guards::default() };
        let prod = config.guarded("prod", file.clone());
        assert_eq!((prod.max_nodes, prod.max_zone_percent), (Some(1), Some(50)));
        assert_eq!(config.guarded("test", file.clone()), file);
        let off = Guards { keep_last_ready: false, ..file.clone() };
        assert!(!config.guarded("prod", off).keep_last_ready, "a context adds only what it names");
        assert_eq!((config.notify("prod").on.len(), config.notify("test").on.len()), (0, 1));
        assert_eq!(
            error("[contexts.a.guards]\nmax-node = 1"),
            ":2: unknown key \"max-node\": did you mean \"max-nodes\"?"
        );
        assert_eq!(
            error("[contexts.a.guards]\nmax-zone-percent = 101"),
            ":2: max-zone-percent = \"101\" is not a whole number from 0 to 100"
        );
        assert!(
            error("[contexts.a.guards]\nprotected-pods = [\"a in b\"]").contains("is not a label selector")
        );
        assert!(error("[contexts.a.notify]\nby = [\"command\"]").starts_with(":2: by has \"command\""));
        assert!(error("[contexts.a.notify]\nby = [\"mail\"]").contains("is not one of bell"));
    }

    #[test]
    fn all_errors_of_a_file_are_found_in_the_order_of_its_lines() {
        let text = "theme = \"pink\"\n[drain]\nparallel = 0\n[contexts.a]\nx = 1\n[keys]\npreset = 1";
        let errors = reader::read(Path::new(PATH), text).errors;
        assert_eq!(errors.iter().map(ConfigError::line).collect::<Vec<_>>(), [1, 3, 5, 7]);
    }

    #[test]
    fn errors_of_all_tables_are_found_at_once() {
        let text = "[aliases]\nfoo = \"drian x\"\n[keys.bind]\ndraan = \"f5\"\nquit = \"f7\"\nzoom = \"f7\"\n\
                    [views.bad]\nfilter = \"pods>abc\"\n[views.worse]\nsort = \"-pds\"\n\
                    [columns.nodes]\nshow = [\"stat\"]\n[contexts.a]\ntheme = \"nrod\"\n\
                    [contexts.b.aliases]\nbar = \"drian\"";
        let errors = Config::parse_fully(Path::new(PATH), text).expect_err("errors");
        assert_eq!(errors.iter().map(ConfigError::line).collect::<Vec<_>>(), [2, 4, 6, 8, 10, 12, 14, 16]);
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let meant = ["drain", "drain", "", "", "pods", "state", "nord", "drain"];
        for (text, meant) in texts.iter().zip(meant) {
            assert!(text.contains(meant), "{text} does not name {meant}");
        }
    }

    #[test]
    fn unknown_names_in_a_view_are_errors_that_name_the_nearest() {
        let label = "A label is -l NAME=VALUE.";
        for (view, said) in [
            ("filter = \"web zoen=a\"", format!(":2: zoen is no field here; did you mean zone? {label}")),
            (
                "pane = \"pods\"\nfilter = \"phas:x\"",
                format!(":3: phas is no field here; did you mean phase? {label}"),
            ),
            (
                "pane = \"evictions\"\nfilter = \"nod:x\"",
                ":3: nod is no field here; did you mean node?".into(),
            ),
            ("group = \"zoen\"", ":2: nodes are not grouped by zoen; did you mean zone?".into()),
        ] {
            assert_eq!(error(&format!("[views.mine]\n{view}")), said);
        }
        let said = error("[views.mine]\npane = \"budgets\"\nfilter = \"colour=red\"");
        assert!(said.contains("colour is no label of any row and no field; fields are budget, ns"), "{said}");
        let views = "[views.a]\nfilter = \"team=a example.com/state=b name:c taints:d -l stage=e\"\ngroup = \"team\"\n\
                     [views.b]\npane = \"evictions\"\nfilter = \"namespace=a name:b\"";
        assert!(parse(views).is_ok());
    }

    #[test]
    fn a_wrong_key_hides_no_errors_of_other_tables() {
        let text = "[layout]\nabov = 6\n[views.bad]\npane = \"nodes\"\nfilter = \"pods>abc\"\nsort = \"-pds\"\n\
                    [columns.nodes]\nshow = [\"nme\"]\n[keys.bind]\nquit = \"f7\"\nzoom = \"f7\"";
        let errors = Config::parse_fully(Path::new(PATH), text).expect_err("errors");
        assert_eq!(errors.iter().map(ConfigError::line).collect::<Vec<_>>(), [2, 5, 6, 8, 11], "{errors:?}");
    }

    #[test]
    fn a_command_can_lose_its_keys() {
        assert!(parse("[keys.bind]\nquit = []").is_ok());
        assert!(error("[keys.bind]\nquit = []\npalette = []").starts_with(":3: no key quits"));
    }

    #[test]
    fn all_conflicts_of_keys_and_all_errors_of_a_view_or_list_are_found() {
        let text = "[keys.bind]\nquit = \"f7\"\nzoom = \"f7\"\nhelp = \"f8\"\ninfo = \"f8\"\nwide = [\"hyper-a\", \"hyper-b\"]\n\
                    [views.bad]\nfilter = \"pods>abc\"\nsort = \"-pds\"\n\
                    [columns.nodes]\nshow = [\"stat\", \"zoen\"]\nwidths = { stat = 9 }";
        let errors = Config::parse_fully(Path::new(PATH), text).expect_err("errors");
        let lines: Vec<usize> = errors.iter().map(ConfigError::line).collect();
        assert_eq!(lines, [3, 5, 6, 6, 8, 9, 11, 11, 12]);
    }

    #[test]
    fn flags_override_the_environment_that_the_file_and_that_the_defaults() {
        let mut config = parse("no-pods = true\n[drain]\nparallel = 4").expect("valid");
        let given = |config: &Config, line: &str| {
            let matches = config.apply(definition()).get_matches_from(line.split(' '));
            let (_, drain) = matches.subcommand().expect("drain");
            *drain.get_one::<u16>("parallel").expect("it has a default")
        };
        assert_eq!(given(&Config::default(), "kordon drain n1"), 1);
        assert_eq!(given(&config, "kordon drain n1"), 4);
        let variable = |name: &str| (name == "KORDON_DRAIN_PARALLEL").then(|| "5".to_owned());
        config.values.splice(0..0, environment(variable).expect("valid"));
        assert_eq!(given(&config, "kordon drain n1"), 5);
        assert_eq!(given(&config, "kordon drain n1 --parallel=6"), 6);
        let status = |line: &str| {
            let matches = config.apply(definition()).get_matches_from(line.split(' '));
            matches.subcommand().expect("status").1.get_flag("no_pods")
        };
        assert!(status("kordon status") && !status("kordon status --no-pods=false"));
    }

    #[test]
    fn a_context_overrides_all_clusters_and_the_environment_overrides_both() {
        let text = "[controller]\nnode-eviction-rate = 1\nnode-monitor-period = \"2s\"\n\
                    [contexts.prod.controller]\nnode-eviction-rate = 2.5";
        let mut config = parse(text).expect("valid");
        let rate = |config: &Config, context: &str| {
            let mut settings = Settings::defaults(ServerVersion::new(1, 36));
            config.set(context, &mut settings);
            assert_eq!(settings.node_monitor_period.origin, Origin::Configuration);
            settings.node_eviction_rate.value.to_string()
        };
        assert_eq!((rate(&config, "prod"), rate(&config, "test")), ("2.5".into(), "1".into()));
        let name = "KORDON_CONTROLLER_NODE_EVICTION_RATE";
        let variable = |asked: &str| (asked == name).then(|| "3".to_owned());
        config.values.splice(0..0, environment(variable).expect("valid"));
        assert_eq!((rate(&config, "prod"), rate(&config, "test")), ("3".into(), "3".into()));
        let wrong = environment(|asked| (asked == name).then(|| "x".to_owned())).expect_err("no number");
        let text = format!("environment variable {name}: \"x\" is not a number of zero or more");
        assert_eq!(wrong.to_string(), text);
    }
}
