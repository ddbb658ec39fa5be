//! What the configuration file may have: the tables of the dashboard as types, and the JSON schema of the whole file.
//!
//! The schema of flags and of controller settings is made from the definition of the command line, the schema of the
//! other tables from the types here. [`super::reader`] checks a file against the schema, so a field that is added here
//! is known to the reader, to editors and to the documents.

use std::collections::BTreeMap;

use schemars::{JsonSchema, generate::SchemaSettings};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    flags::{DRAIN_FLAGS, FLAGS, argument, check_argument, controller_defaults},
    notify::NotifyFile,
};
use crate::{
    app::{
        Aliases, ChosenColumn, Pane, PaneColumns, PaneLayout, Preferences,
        key_presets::KeyPreset,
        keymap::{ConfiguredKeys, Keymap, KeymapError},
        preferences::{ContextMark, MarkColour, SavedView, list_named, list_names},
    },
    cli::definition,
    executor::guards::GuardsFile,
};
use kordon_core::operation::Guards;

/// The tables of the file that are not defaults of flags or settings of the controller.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct ConfigFile {
    #[serde(flatten)]
    look: LookFile,
    /// Notifications: the changes and the receivers. Without `on` or `by`, nobody is notified.
    pub notify: NotifyFile,
    /// Settings of single contexts, by the context's name in the kubeconfig. They override those for all contexts.
    contexts: BTreeMap<String, ContextFile>,
}

/// Tables that are allowed both at the top level and in the table of a context.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
struct LookFile {
    /// The keys that run the dashboard's commands.
    keys: KeysFile,
    /// Commands of your own for the palette: a name, and the command line that it stands for.
    aliases: BTreeMap<String, String>,
    /// Columns of each list, by the name of its pane.
    #[schemars(extend("propertyNames" = json!({"enum": list_names()})))]
    columns: BTreeMap<String, ColumnsFile>,
    /// Saved views, by name.
    views: BTreeMap<String, SavedView>,
    /// Sizes and places of the panes.
    layout: PaneLayout,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
struct KeysFile {
    /// The preset of keys: kordon's own, or the keys that users of k9s or vim expect.
    #[schemars(with = "KeyPreset")]
    preset: Option<KeyPreset>,
    /// Keys of single commands, by the command's name. They replace the keys that the preset gives to the command.
    bind: BTreeMap<String, KeysOfCommand>,
}

/// Columns of one list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct ColumnsFile {
    /// Columns in the order in which they are shown: `name`, `state`, `label:topology.kubernetes.io/zone`.
    show: Vec<String>,
    /// Widths of columns in cells, by the names of the columns.
    #[schemars(extend("additionalProperties" = {"type": "integer", "minimum": 2, "maximum": 200}))]
    widths: BTreeMap<String, u16>,
}

/// One key that runs a command, or a list of such keys.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
enum KeysOfCommand {
    One(String),
    Several(Vec<String>),
}

/// Settings of one context.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
struct ContextFile {
    /// Whether every command refuses to write to the cluster of this context.
    read_only: bool,
    /// Theme to start with in this context.
    #[schemars(with = "String", extend("examples" = flag_schema(&definition(), "theme")["examples"]))]
    theme: Option<String>,
    /// Colour that marks the context: one of the terminal's sixteen colours, or `#rrggbb`.
    #[schemars(with = "String", extend("examples" = MarkColour::names()))]
    colour: Option<String>,
    /// Word that marks the context, in the header and in confirmations: `PRODUCTION`.
    #[schemars(with = "String")]
    word: Option<String>,
    /// Guard rails in this context, besides those of `guards.toml`: the stricter of each holds.
    guards: GuardsFile,
    /// Notifications in this context; keys that are not set are those of all contexts.
    notify: NotifyFile,
    #[serde(flatten)]
    look: LookFile,
}

impl ConfigFile {
    /// Checks the aliases, columns and views. Returns the path of each wrong setting, and what is wrong with it.
    pub fn wrong_settings(&self) -> Vec<(Vec<String>, String)> {
        let own = self.contexts.iter().flat_map(|(name, context)| {
            let wrong = context.look.wrong_settings().into_iter();
            wrong.map(move |(path, why)| ([vec!["contexts".to_owned(), name.clone()], path].concat(), why))
        });
        self.look.wrong_settings().into_iter().chain(own).collect()
    }

    /// Preferences for a context. The context's own preferences override those for all contexts, entry by entry.
    pub fn preferences(&self, context: &str) -> Preferences {
        let look = self.look_of(Some(context));
        let own = self.contexts.get(context);
        let keymap = look.keys.keymap().unwrap_or_default();
        let columns = look.columns.iter().filter_map(|(name, columns)| {
            let list = list_named(name)?;
            Some((list, columns.chosen(list).ok()?))
        });
        Preferences {
            theme: own.and_then(|own| own.theme.clone()),
            keymap,
            columns: columns.collect(),
            aliases: Aliases::new(look.aliases),
            views: look.views,
            layout: look.layout,
            mark: own.and_then(|own| own.mark(context)),
            read_only: None,
            guards: None,
        }
    }

    /// Guard rails of a context; `None` if the file has no table for it, or wrong guard rails.
    pub fn guards(&self, context: &str) -> Option<Guards> {
        self.contexts.get(context)?.guards.guards(false).ok()
    }

    /// Notifications in a context.
    pub fn notify_of(&self, context: &str) -> NotifyFile {
        match self.contexts.get(context) {
            Some(own) => self.notify.clone().overridden_with(own.notify.clone()),
            None => self.notify.clone(),
        }
    }

    /// Checks that keys can be bound as configured, for all contexts and for each. Each error comes with the name of
    /// the context, or `None` if it is in the keys for all contexts.
    pub fn wrong_keys(&self) -> Vec<(Option<&str>, KeymapError)> {
        let contexts = self.contexts.keys().map(|context| Some(context.as_str()));
        let wrong = |context| {
            let errors = self.look_of(context).keys.keymap().err().unwrap_or_default();
            errors.into_iter().map(move |error| (context, error))
        };
        std::iter::once(None).chain(contexts).flat_map(wrong).collect()
    }

    /// Names of the contexts that have a table.
    pub fn context_names(&self) -> impl Iterator<Item = &str> {
        self.contexts.keys().map(String::as_str)
    }

    fn look_of(&self, context: Option<&str>) -> LookFile {
        let mut look = self.look.clone();
        if let Some(own) = context.and_then(|context| self.contexts.get(context)) {
            look.override_with(own.look.clone());
        }
        look
    }

    /// Whether the configuration forbids writing to the cluster of a context.
    pub fn is_read_only(&self, context: &str) -> bool {
        self.contexts.get(context).is_some_and(|own| own.read_only)
    }
}

impl LookFile {
    /// Checks the aliases, columns and views. Returns the path of each wrong setting, and what is wrong with it.
    fn wrong_settings(&self) -> Vec<(Vec<String>, String)> {
        let path = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let aliases = self.aliases.iter().filter_map(|(name, meant)| {
            Some((path(&["aliases", name.as_str()]), Aliases::check(meant).err()?))
        });
        let columns = self.columns.iter().flat_map(|(pane, columns)| {
            let errors = list_named(pane).and_then(|list| columns.chosen(list).err()).unwrap_or_default();
            let of_pane = move |key: Vec<String>| {
                path(&["columns", pane.as_str()]).into_iter().chain(key).collect::<Vec<_>>()
            };
            errors.into_iter().map(move |(key, why)| (of_pane(key), why))
        });
        let views = self.views.iter().flat_map(|(name, view)| {
            view.errors().into_iter().map(move |(key, why)| (path(&["views", name.as_str(), key]), why))
        });
        aliases.chain(columns).chain(views).collect()
    }

    fn override_with(&mut self, own: Self) {
        self.keys.preset = own.keys.preset.or(self.keys.preset);
        self.keys.bind.extend(own.keys.bind);
        self.aliases.extend(own.aliases);
        self.columns.extend(own.columns);
        self.views.extend(own.views);
        self.layout = std::mem::take(&mut self.layout).overridden_with(own.layout);
    }
}

impl KeysFile {
    fn keymap(&self) -> Result<Keymap, Vec<KeymapError>> {
        let bound = self.bind.iter().map(|(command, keys)| (command.clone(), keys.clone().into_list()));
        Keymap::new(self.preset.unwrap_or_default(), &bound.collect::<ConfiguredKeys>())
    }
}

impl ColumnsFile {
    /// The columns of a list.
    ///
    /// # Errors
    /// The list lacks configured columns. Each of them has the path of its setting in this table, and what is wrong.
    fn chosen(&self, list: Pane) -> Result<PaneColumns, Vec<(Vec<String>, String)>> {
        let mut columns = PaneColumns::default();
        let mut errors = Vec::new();
        for text in &self.show {
            match ChosenColumn::parse(list, text) {
                Ok(column) => columns.show.push(column),
                Err(why) => errors.push((vec!["show".to_owned()], why)),
            }
        }
        for (text, width) in &self.widths {
            match ChosenColumn::parse(list, text) {
                Ok(column) => {
                    columns.widths.insert(column, *width);
                }
                Err(why) => errors.push((vec!["widths".to_owned(), text.clone()], why)),
            }
        }
        if errors.is_empty() { Ok(columns) } else { Err(errors) }
    }
}

impl KeysOfCommand {
    fn into_list(self) -> Vec<String> {
        match self {
            Self::One(key) => vec![key],
            Self::Several(keys) => keys,
        }
    }
}

impl ContextFile {
    fn mark(&self, context: &str) -> Option<ContextMark> {
        let colour = self.colour.as_deref().and_then(MarkColour::parse);
        let is_marked = colour.is_some() || self.word.is_some();
        is_marked.then(|| ContextMark { word: self.word.clone().unwrap_or_else(|| context.into()), colour })
    }
}

/// JSON schema of the file.
pub fn schema() -> Value {
    let mut settings = SchemaSettings::draft07();
    settings.inline_subschemas = true;
    let mut schema = settings.into_generator().into_root_schema_for::<ConfigFile>().to_value();
    schema["title"] = json!("Configuration of kordon");
    schema["description"] =
        json!("config.toml in the folder kordon of $XDG_CONFIG_HOME (default: ~/.config)");
    let command = definition();
    let properties = &mut schema["properties"];
    for flag in FLAGS {
        properties[flag] = flag_schema(&command, flag);
    }
    properties["drain"] = table(
        "Flags of `kordon drain` and `kordon plan drain`.",
        DRAIN_FLAGS.map(|flag| (flag.to_owned(), drain_flag_schema(&command, flag))),
    );
    properties["controller"] = controller_schema(
        &command,
        "Settings of the controller of every cluster, named as in kube-controller-manager, where its command line cannot be read.",
    );
    properties["contexts"]["additionalProperties"]["properties"]["controller"] =
        controller_schema(&command, "Settings of the controller of this context's cluster.");
    close(&mut schema);
    schema
}

fn table(description: &str, properties: impl IntoIterator<Item = (String, Value)>) -> Value {
    let properties: Map<String, Value> = properties.into_iter().collect();
    json!({"description": description, "type": "object", "properties": properties})
}

fn controller_schema(command: &clap::Command, description: &str) -> Value {
    let setting = |(flag, default): (&'static str, String)| {
        let help = argument(command, flag).and_then(clap::Arg::get_help).map(ToString::to_string);
        let kind = match &*default {
            "true" | "false" => json!("boolean"),
            number if number.parse::<f64>().is_ok() => json!("number"),
            _ => json!("string"),
        };
        (flag.to_owned(), json!({"description": help, "type": kind}))
    };
    table(description, controller_defaults().into_iter().map(setting))
}

/// Schema of a flag of several commands.
fn flag_schema(command: &clap::Command, flag: &str) -> Value {
    argument_schema(argument(command, flag).expect("every flag of the list belongs to a command"))
}

fn drain_flag_schema(command: &clap::Command, flag: &str) -> Value {
    let drain = command.find_subcommand("drain").expect("a subcommand");
    argument_schema(argument(drain, flag).expect("every flag of the list belongs to kordon drain"))
}

fn argument_schema(arg: &clap::Arg) -> Value {
    let help = arg.get_help().map(ToString::to_string);
    let values =
        arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect::<Vec<_>>();
    let kind = if values == ["true", "false"] {
        json!("boolean")
    } else if is_number(arg) {
        json!("integer")
    } else {
        json!("string")
    };
    let mut schema = json!({"description": help, "type": kind});
    if let Some(default) = arg.get_default_values().first().and_then(|default| default.to_str()) {
        let parsed = serde_json::from_str(default).ok().filter(|_| kind != "string");
        schema["default"] = parsed.unwrap_or_else(|| json!(default));
    }
    if kind == "string" && !values.is_empty() {
        // The names of the user's own themes are valid too.
        let is_open = arg.get_id() == "theme";
        schema[if is_open { "examples" } else { "enum" }] = json!(values);
    }
    schema
}

/// Whether an argument takes numbers and nothing else.
fn is_number(arg: &clap::Arg) -> bool {
    check_argument(arg, "50").is_ok() && ["x", "30s"].iter().all(|text| check_argument(arg, text).is_err())
}

/// Forbids unknown keys in every table that has known keys.
fn close(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else { return };
    if object.contains_key("properties") {
        object.insert("additionalProperties".into(), json!(false));
    }
    for name in ["properties", "additionalProperties", "items"] {
        match object.get_mut(name) {
            Some(Value::Object(inner)) if name == "properties" => inner.values_mut().for_each(close),
            Some(inner) => close(inner),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_describes_every_key_and_nothing_else_is_allowed() {
        let schema = schema();
        let mut open = vec![("".to_owned(), &schema)];
        let mut keys = 0;
        while let Some((path, schema)) = open.pop() {
            assert!(schema["description"].is_string(), "{path} has no description");
            let Some(properties) = schema["properties"].as_object() else { continue };
            assert_eq!(schema["additionalProperties"], json!(false), "{path}");
            keys += properties.len();
            open.extend(properties.iter().map(|(key, schema)| (format!("{path}.{key}"), schema)));
        }
        assert!(keys > 30, "{keys}");
        assert_eq!(schema["properties"]["drain"]["properties"]["parallel"]["type"], "integer");
    }
}
