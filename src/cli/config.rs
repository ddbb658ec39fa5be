//! The configuration from a file and environment variables: defaults of flags, and settings of the controller.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use clap::error::{ContextKind, ContextValue};
use serde::Serialize;
use toml::{Spanned, de::DeTable, de::DeValue};

use super::definition;
use crate::executor::guards;
use kordon_core::engine::{Origin, ServerVersion, Settings};

/// Flags of several commands that the file may set.
const FLAGS: [&str; 10] = [
    "theme",
    "ascii",
    "no-mouse",
    "no-pods",
    "read-only",
    "placement",
    "percentage-of-nodes-to-score",
    "list-timeout",
    "history",
    "history-size",
];

/// The tables of the file.
const TABLES: [&str; 3] = ["drain", "controller", "contexts"];

/// Flags of a drain that the file may set. Flags that lose pods without a controller, or that ignore budgets, must be
/// typed.
const DRAIN_FLAGS: [&str; 6] = [
    "ignore-daemonsets",
    "delete-emptydir-data",
    "grace-period",
    "timeout",
    "skip-wait-for-delete-timeout",
    "parallel",
];

/// Latest release that has every setting.
const ALL_SETTINGS: ServerVersion = ServerVersion::new(1, 26);

/// The configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    path: PathBuf,
    /// Values; those of the environment come first, because they override the file.
    values: Vec<ConfigValue>,
}

/// A configured value.
#[derive(Clone, Debug, PartialEq)]
struct ConfigValue {
    part: ConfigPart,
    key: String,
    /// Text of the value, as on the command line.
    text: String,
    source: ConfigSource,
}

#[derive(Clone, Debug, PartialEq)]
enum ConfigSource {
    /// Name of an environment variable.
    Environment(String),
    /// Number of a line of the file.
    Line(usize),
}

/// A table of the file.
#[derive(Clone, Debug, PartialEq)]
enum ConfigPart {
    Flags,
    Drain,
    /// Settings of the controller of every cluster.
    Controller,
    /// Settings of the controller of this context's cluster.
    Context(String),
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

    fn load_file() -> Result<Self, ConfigError> {
        let Some(path) = guards::configuration_folder().map(|folder| folder.join("config.toml")) else {
            return Ok(Self::default());
        };
        match fs::read_to_string(&path) {
            Ok(text) => Self::parse(&path, &text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self { path, values: Vec::new() }),
            Err(error) => Err(ConfigError::Io { path, error }),
        }
    }

    /// Parses the text of the file.
    pub(super) fn parse(path: &Path, text: &str) -> Result<Self, ConfigError> {
        let reader = Reader { path, text };
        let table = DeTable::parse(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            reader.error(at, error.message().to_owned())
        })?;
        let mut values = Vec::new();
        for (key, value) in table.into_inner() {
            let name = key.get_ref().as_ref();
            match value.get_ref() {
                DeValue::Table(table) if name == "drain" => {
                    reader.read(table, &ConfigPart::Drain, &DRAIN_FLAGS, &mut values)?;
                }
                DeValue::Table(table) if name == "controller" => {
                    reader.read_controller(table, &ConfigPart::Controller, &mut values)?;
                }
                DeValue::Table(contexts) if name == "contexts" => {
                    for (context, table) in contexts {
                        reader.read_context(context.get_ref(), table, &mut values)?;
                    }
                }
                _ => {
                    reader.know(&key, &[&FLAGS[..], &TABLES].concat())?;
                    if TABLES.contains(&name) {
                        return Err(reader.error(value.span().start, format!("{name} is not a table")));
                    }
                    values.push(reader.value(&key, &value, ConfigPart::Flags)?);
                }
            }
        }
        Ok(Self { path: path.to_owned(), values })
    }

    /// Returns the command line's definition with configured values as the defaults of flags. A flag on the command
    /// line overrides its default.
    pub fn apply(&self, command: clap::Command) -> clap::Command {
        let is_drain = command.get_name() == "drain";
        let default = |flag: &str| {
            let applies = |part: &ConfigPart| match part {
                ConfigPart::Flags => true,
                ConfigPart::Drain => is_drain,
                ConfigPart::Controller | ConfigPart::Context(_) => false,
            };
            let set = self.values.iter().find(|value| value.key == flag && applies(&value.part));
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

    /// All settings; those of contexts come last.
    pub fn effective(&self) -> Vec<ConfiguredValue> {
        let command = definition();
        let of_contexts = self.values.iter().filter(|value| matches!(value.part, ConfigPart::Context(_)));
        let of_contexts = of_contexts.map(|value| ConfiguredValue::new(value.part.key(&value.key), value));
        let others = keys().map(|(part, flag)| {
            let is_it = |value: &&ConfigValue| value.part == part && value.key == flag;
            let key = part.key(flag);
            match self.values.iter().find(is_it) {
                Some(value) => ConfiguredValue::new(key, value),
                None => {
                    let value = part.default(&command, flag);
                    ConfiguredValue { key, value, from: "default", place: None }
                }
            }
        });
        others.chain(of_contexts).collect()
    }

    /// Applies the configured settings of the controller of a context's cluster. The environment overrides the
    /// context's table, which overrides the table for all clusters.
    pub fn set(&self, context: &str, settings: &mut Settings) {
        let rank = |value: &ConfigValue| match (&value.part, &value.source) {
            (ConfigPart::Controller, ConfigSource::Line(_)) => Some(0),
            (ConfigPart::Context(name), _) if name == context => Some(1),
            (ConfigPart::Controller, ConfigSource::Environment(_)) => Some(2),
            (ConfigPart::Context(_) | ConfigPart::Flags | ConfigPart::Drain, _) => None,
        };
        let mut values: Vec<(u8, &ConfigValue)> =
            self.values.iter().filter_map(|value| Some((rank(value)?, value))).collect();
        values.sort_by_key(|(rank, _)| *rank);
        for (_, value) in values {
            let set = settings.set(&value.key, &value.text, Origin::Configuration);
            set.expect("checked when it was read");
        }
    }
}

/// Reads the environment variables. Their names are the keys in capitals, as in `KORDON_DRAIN_PARALLEL`.
fn environment(variable: impl Fn(&str) -> Option<String>) -> Result<Vec<ConfigValue>, ConfigError> {
    let mut values = Vec::new();
    for (part, key) in keys() {
        let name = part.variable(key);
        let Some(text) = variable(&name) else { continue };
        check(&part, key, &text).map_err(|why| ConfigError::Variable {
            variable: name.clone(),
            text: format!("{text:?} is {why}"),
        })?;
        values.push(ConfigValue { part, key: key.into(), text, source: ConfigSource::Environment(name) });
    }
    Ok(values)
}

/// All keys except those of contexts.
fn keys() -> impl Iterator<Item = (ConfigPart, &'static str)> {
    let flags = FLAGS.into_iter().map(|flag| (ConfigPart::Flags, flag));
    let drain = DRAIN_FLAGS.into_iter().map(|flag| (ConfigPart::Drain, flag));
    let controller = controller_settings().into_iter().map(|flag| (ConfigPart::Controller, flag));
    flags.chain(drain).chain(controller)
}

/// Reads the file. Each error names its line.
struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
}

impl Reader<'_> {
    fn read(
        &self,
        table: &DeTable<'_>,
        part: &ConfigPart,
        known: &[&str],
        values: &mut Vec<ConfigValue>,
    ) -> Result<(), ConfigError> {
        for (key, value) in table {
            self.know(key, known)?;
            values.push(self.value(key, value, part.clone())?);
        }
        Ok(())
    }

    fn read_controller(
        &self,
        table: &DeTable<'_>,
        part: &ConfigPart,
        values: &mut Vec<ConfigValue>,
    ) -> Result<(), ConfigError> {
        self.read(table, part, &controller_settings(), values)
    }

    fn read_context(
        &self,
        context: &str,
        value: &Spanned<DeValue<'_>>,
        values: &mut Vec<ConfigValue>,
    ) -> Result<(), ConfigError> {
        let DeValue::Table(table) = value.get_ref() else {
            return Err(self.error(value.span().start, format!("contexts.{context} is not a table")));
        };
        for (key, value) in table {
            self.know(key, &["controller"])?;
            let DeValue::Table(table) = value.get_ref() else {
                let text = format!("contexts.{context}.controller is not a table");
                return Err(self.error(value.span().start, text));
            };
            self.read_controller(table, &ConfigPart::Context(context.to_owned()), values)?;
        }
        Ok(())
    }

    fn value(
        &self,
        key: &Spanned<std::borrow::Cow<'_, str>>,
        value: &Spanned<DeValue<'_>>,
        part: ConfigPart,
    ) -> Result<ConfigValue, ConfigError> {
        let (at, key) = (key.span().start, key.get_ref().to_string());
        let text = match value.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(number) => number.as_str().to_owned(),
            DeValue::Float(number) => number.as_str().to_owned(),
            DeValue::Boolean(truth) => truth.to_string(),
            DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => {
                return Err(self.error(at, format!("{key} is not a text, a number, true or false")));
            }
        };
        check(&part, &key, &text).map_err(|why| self.error(at, format!("{key} = {text:?} is {why}")))?;
        Ok(ConfigValue { part, key, text, source: ConfigSource::Line(self.line(at)) })
    }

    /// Fails for an unknown key, and names the most similar known one.
    fn know(&self, key: &Spanned<std::borrow::Cow<'_, str>>, known: &[&str]) -> Result<(), ConfigError> {
        let name = key.get_ref().as_ref();
        if known.contains(&name) {
            return Ok(());
        }
        let nearest = known.iter().min_by_key(|known| distance(known, name));
        let nearest = nearest.filter(|known| distance(known, name) <= 1 + name.len() / 3);
        let hint = match nearest {
            Some(nearest) => format!("did you mean {nearest:?}?"),
            None => format!("known here: {}", known.join(", ")),
        };
        Err(self.error(key.span().start, format!("unknown key {name:?}: {hint}")))
    }

    fn line(&self, at: usize) -> usize {
        1 + self.text.bytes().take(at).filter(|byte| *byte == b'\n').count()
    }

    fn error(&self, at: usize, text: String) -> ConfigError {
        ConfigError::Bad { path: self.path.to_owned(), line: self.line(at), text }
    }
}

fn controller_settings() -> Vec<&'static str> {
    Settings::defaults(ALL_SETTINGS).rows().into_iter().map(|(flag, ..)| flag).collect()
}

/// Checks a value of a key. The error says what is wrong with the value.
fn check(part: &ConfigPart, key: &str, text: &str) -> Result<(), String> {
    match part {
        ConfigPart::Controller | ConfigPart::Context(_) => check_setting(key, text),
        ConfigPart::Flags | ConfigPart::Drain => check_flag(key, text),
    }
}

fn check_setting(flag: &str, text: &str) -> Result<(), String> {
    let set = Settings::defaults(ALL_SETTINGS).set(flag, text, Origin::Configuration);
    set.map(drop).map_err(|bad| format!("not {}", bad.wanted))
}

/// Checks a value in the same way as the command line.
fn check_flag(flag: &str, text: &str) -> Result<(), String> {
    let command = definition();
    let arg = argument(&command, flag).expect("every flag of the lists belongs to a command");
    let value = clap::Arg::new("value").long("value").value_parser(arg.get_value_parser().clone());
    let alone = clap::Command::new("kordon").arg(value.num_args(1).allow_hyphen_values(true));
    let Err(error) = alone.try_get_matches_from(["kordon", "--value", text]) else { return Ok(()) };
    Err(match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(valid)) if !valid.is_empty() => format!("not one of {}", valid.join(", ")),
        _ => {
            let why = std::error::Error::source(&error).map(ToString::to_string);
            why.map_or_else(|| "not valid".into(), |why| format!("not valid: {why}"))
        }
    })
}

/// The first argument with this name, of the command or of its subcommands.
fn argument<'a>(command: &'a clap::Command, flag: &str) -> Option<&'a clap::Arg> {
    let own = command.get_arguments().find(|arg| configurable(arg) == Some(flag));
    own.or_else(|| command.get_subcommands().find_map(|subcommand| argument(subcommand, flag)))
}

/// Name of a flag that takes a value; `None` for other flags. Flags without a value cannot be configured, because the
/// command line could not switch them off.
fn configurable(arg: &clap::Arg) -> Option<&str> {
    arg.get_long().filter(|_| arg.get_action().takes_values())
}

/// Levenshtein distance: the number of letters to add, remove or replace between two words.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (line, letter) in left.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], line + 1);
        for (place, other) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[place + 1];
            row[place + 1] = replaced.min(diagonal + 1).min(row[place] + 1);
        }
    }
    row[right.len()]
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
    fn new(key: String, value: &ConfigValue) -> Self {
        let (from, place) = match &value.source {
            ConfigSource::Environment(name) => ("environment", name.clone()),
            ConfigSource::Line(line) => ("file", format!("line {line}")),
        };
        Self { key, value: Some(value.text.clone()), from, place: Some(place) }
    }
}

impl ConfigPart {
    /// Environment variable of a key.
    fn variable(&self, key: &str) -> String {
        format!("KORDON_{}", self.key(key).replace(['.', '-'], "_").to_uppercase())
    }

    /// Default of a flag; `None` for a controller setting, whose default is the cluster's.
    fn default(&self, command: &clap::Command, flag: &str) -> Option<String> {
        let arg = match self {
            Self::Flags => argument(command, flag),
            Self::Drain => argument(command.find_subcommand("drain")?, flag),
            Self::Controller | Self::Context(_) => None,
        };
        arg?.get_default_values().first()?.to_str().map(str::to_owned)
    }

    fn key(&self, key: &str) -> String {
        match self {
            Self::Flags => key.to_owned(),
            Self::Drain => format!("drain.{key}"),
            Self::Controller => format!("controller.{key}"),
            Self::Context(context) => format!("contexts.{context}.controller.{key}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(error("[drain]\nforce = true").contains("known here: ignore-daemonsets, "), "is to be typed");
        assert_eq!(
            error("[contexts.prod.controler]\n"),
            ":1: unknown key \"controler\": did you mean \"controller\"?"
        );
        assert_eq!(
            error("[controller]\nnode-eviction-rate = \"fast\""),
            ":2: node-eviction-rate = \"fast\" is not a number of zero or more"
        );
        assert!(error("theme = \"pink\"").starts_with(":1: theme = \"pink\" is not one of dark, light"));
        assert!(error("placement = \"now\"").contains("is not one of wait, skip, auto"));
        assert!(error("[drain]\nparallel = 0").starts_with(":2: parallel = \"0\" is not valid"));
        for table in TABLES {
            assert_eq!(error(&format!("{table} = \"2s\"")), format!(":1: {table} is not a table"));
        }
        assert_eq!(error("theme = [1]"), ":1: theme is not a text, a number, true or false");
        assert!(error("theme = \"dark").starts_with(":1: "));
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
