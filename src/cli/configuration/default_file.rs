//! A configuration file with every key, its meaning and its default.
//!
//! Text is commented out with `# `, settings with `#`, so that removing one character enables a setting.

use serde_json::Value;

use crate::cli::config::{check_value, controller_defaults, schema};

/// Maximum width of a comment in the default configuration file.
const WIDEST: usize = 100;

const HEAD: &str = "\
#:schema ./config.schema.json
# Configuration of kordon: ~/.config/kordon/config.toml ($XDG_CONFIG_HOME).
# Remove the # in front of a setting to change it. `kordon config check` checks the file.
# Editors complete it from the schema: kordon config schema > ~/.config/kordon/config.schema.json
";

/// Examples of the tables whose keys the user chooses.
const EXAMPLES: &str = r#"
# Keys of the dashboard.
[keys]
# The keys to start from: default, k9s or vim.
#preset = "default"

# Keys of single commands, by the command's name (`?` in the dashboard lists them): a key, or several.
[keys.bind]
#zoom = "z"
#quit = ["q", "ctrl-c"]

# Commands of your own for the palette: a name, and the command line that it stands for.
[aliases]
#bad = "filter state!=Ready"

# Columns of each list, by the name of its pane.
[columns]
#nodes.show = ["name", "state", "label:topology.kubernetes.io/zone"]
# Widths of single columns, in cells.
#nodes.widths = { name = 40, state = 12 }

# Saved views, by name.
[views]
#zone-b = { pane = "nodes", filter = "zone=b", sort = "-pods", group = "pool", wide = true, zoom = false }

# Sizes and places of the panes; what is not set is as usual.
[layout]
# Height of the panes above the nodes, in lines with their frame.
#above = 6
# Height of the panes below the nodes while they have rows, in percent.
#below = 40
# Width of the nodes beside a detail or plan, in percent.
#beside = 40
# Shares of the width below the nodes.
#left = 40
#middle = 40
#right = 30
# Places of panes that are not where they usually are: above, left, middle, right.
#places = { journal = "left" }

# Who is notified of what. Without on or by, nobody is.
[notify]
# Changes to tell of: verdict>=LEVEL, node, zone, drain-done, drain-blocked.
#on = ["verdict>=warning", "drain-blocked"]
# Ways to tell: bell, osc9, osc777, osc99, command, webhook.
#by = ["bell", "command", "webhook"]
# Program and arguments for command, without a shell.
#command = ["notify-send", "{title}", "{text}"]
# URL for webhook, to which JSON is posted.
#webhook = "https://hooks.example.com/services/T00"
# The most notices in a time.
#at-most = "1 per 1m"

# Settings of one context of the kubeconfig. keys, aliases, columns, views and layout may be here, too.
#[contexts.production]
# Whether every command refuses to write to the cluster of this context.
#read-only = true
# Theme to start with in this context.
#theme = "light"
# Colour that marks the context: one of the terminal's sixteen colours, or #rrggbb.
#colour = "red"
# Word that marks the context, in the header and in confirmations.
#word = "PRODUCTION"
# Settings of the controller of this context's cluster, as in [controller].
#controller = { node-eviction-rate = 0.1 }
# Guard rails in this context, besides those of guards.toml: the stricter of each holds.
#guards = { max-nodes = 1, max-zone-percent = 20, keep-last-ready = true, protected-namespaces = ["payments"], protected-pods = ["app=vault"] }
# Notifications in this context; what is not set is as in [notify].
#notify = { on = ["verdict>=critical"], by = ["bell"] }
"#;

/// Text of the default configuration file.
pub fn text() -> String {
    let schema = schema();
    let mut text = HEAD.to_owned();
    let properties = schema["properties"].as_object().into_iter().flatten();
    let flags = properties.filter(|(_, schema)| schema["type"] != "object");
    flags.for_each(|(flag, schema)| add_setting(flag, schema, &example(&[flag], schema), &mut text));
    for table in ["drain", "controller"] {
        add_table(table, &schema["properties"][table], &mut text);
    }
    text + EXAMPLES
}

fn add_table(name: &str, schema: &Value, text: &mut String) {
    text.push('\n');
    add_comment(schema, text);
    text.push_str(&format!("[{name}]\n"));
    let defaults = controller_defaults();
    for (key, schema) in schema["properties"].as_object().into_iter().flatten() {
        let default = defaults.iter().find(|(flag, _)| name == "controller" && flag == key);
        let value = match default {
            Some((_, value)) if schema["type"] == "string" => format!("{value:?}"),
            Some((_, value)) => value.clone(),
            None => example(&[name, key], schema),
        };
        add_setting(key, schema, &value, text);
    }
}

fn add_setting(key: &str, schema: &Value, value: &str, text: &mut String) {
    if !text.ends_with("]\n") {
        text.push('\n');
    }
    add_comment(schema, text);
    text.push_str(&format!("#{key} = {value}\n"));
}

fn add_comment(schema: &Value, text: &mut String) {
    let description = schema["description"].as_str().unwrap_or_default();
    for line in crate::ui::text::wrap(description, WIDEST, usize::MAX) {
        text.push_str(&format!("# {line}\n"));
    }
}

/// The default of a key, or a value that it may have.
fn example(path: &[&str], schema: &Value) -> String {
    let default = &schema["default"];
    match schema["type"].as_str() {
        _ if !default.is_null() => default.to_string(),
        Some("boolean") => "false".into(),
        Some("integer") => "50".into(),
        _ => match schema["enum"].get(0).or_else(|| schema["examples"].get(0)) {
            Some(first) => first.to_string(),
            None if check_value(path, "30s").is_ok() => "\"30s\"".into(),
            None => "\"50\"".into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::cli::config::Config;

    fn check(text: &str) {
        if let Err(errors) = Config::parse_fully(Path::new("config.toml"), text) {
            panic!("{errors:?} in\n{text}");
        }
    }

    #[test]
    fn the_default_file_is_valid_as_it_is_and_with_all_its_settings() {
        let text = text();
        check(&text);
        let is_setting =
            |line: &str| line.starts_with('#') && !line.starts_with("# ") && !line.starts_with("#:");
        let uncommented: Vec<&str> =
            text.lines().map(|line| if is_setting(line) { &line[1..] } else { line }).collect();
        check(&uncommented.join("\n"));
    }

    #[test]
    fn the_default_file_is_about_no_context() {
        assert!(!text().lines().any(|line| line.starts_with("[contexts")));
    }

    #[test]
    fn the_default_file_has_every_key() {
        let (text, schema) = (text(), schema());
        let mut open = vec![&schema];
        while let Some(schema) = open.pop() {
            for (key, schema) in schema["properties"].as_object().into_iter().flatten() {
                assert!(text.contains(key.as_str()), "{key}");
                open.push(schema);
            }
            open.extend(
                schema["additionalProperties"].is_object().then_some(&schema["additionalProperties"]),
            );
        }
    }
}
