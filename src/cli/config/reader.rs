//! Reads the file: checks it against its schema, and finds the line of each value.

use std::{borrow::Cow, path::Path};

use serde_json::Value;
use strsim::levenshtein;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    ConfigError, ConfigSource, ConfigValue,
    file::schema,
    flags::{check_flag, check_setting, not_one_of},
    notify::check_notify,
};
use crate::app::preferences::MarkColour;
use kordon_core::cluster::{
    Selector,
    nearest::{did_you_mean, nearest},
};

/// Maximum length of the word that marks a context, in characters.
const LONGEST_WORD: usize = 24;

/// What the reader has found in a file.
pub struct ReadFile {
    pub values: Vec<ConfigValue>,
    /// Every error, in the order of the lines.
    pub errors: Vec<ConfigError>,
    /// Paths of the keys that have an error.
    pub wrong: Vec<Vec<String>>,
}

/// Reads the text of a file.
pub fn read(path: &Path, text: &str) -> ReadFile {
    let mut reader = Reader { path, text, values: Vec::new(), errors: Vec::new(), wrong: Vec::new() };
    let (table, syntax) = DeTable::parse_recoverable(text);
    for error in &syntax {
        reader.error(error.span().map_or(0, |span| span.start), error.message().to_owned());
    }
    // After a syntax error no values are read, because the parser may have put them into the wrong tables.
    if syntax.is_empty() {
        reader.read_table(&[], &schema(), table.get_ref());
    }
    reader.errors.sort_by_key(ConfigError::line);
    ReadFile { values: reader.values, errors: reader.errors, wrong: reader.wrong }
}

struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
    values: Vec<ConfigValue>,
    errors: Vec<ConfigError>,
    wrong: Vec<Vec<String>>,
}

impl Reader<'_> {
    fn read_table(&mut self, path: &[String], schema: &Value, table: &DeTable<'_>) {
        for (key, value) in table {
            let path = [path, &[key.get_ref().to_string()]].concat();
            match child(schema, key.get_ref()) {
                Some(child) => self.read_value(path, child, key.span().start, value),
                None => {
                    self.report_unknown(key, &known_names(schema));
                    self.wrong.push(path);
                }
            }
        }
    }

    fn read_value(&mut self, path: Vec<String>, schema: &Value, at: usize, value: &Spanned<DeValue<'_>>) {
        let is_table = schema["properties"].is_object() || schema["additionalProperties"].is_object();
        match value.get_ref() {
            DeValue::Table(table) if is_table => self.read_table(&path, schema, table),
            _ if is_table => {
                self.error(value.span().start, format!("{} is not a table", path.join(".")));
                self.wrong.push(path);
            }
            value => match leaf(&path, schema, value) {
                Ok(texts) => {
                    let source = ConfigSource::Line(self.line(at));
                    self.values.push(ConfigValue { path, text: texts.join(", "), source });
                }
                Err(why) => {
                    self.error(at, why);
                    self.wrong.push(path);
                }
            },
        }
    }

    /// Reports an unknown key with the most similar known one.
    fn report_unknown(&mut self, key: &Spanned<Cow<'_, str>>, known: &[&str]) {
        let name = key.get_ref().as_ref();
        let nearest = known.iter().min_by_key(|known| levenshtein(known, name));
        let nearest = nearest.filter(|known| levenshtein(known, name) <= 1 + name.len() / 3);
        let hint = match nearest {
            Some(nearest) => format!("did you mean {nearest:?}?"),
            None => format!("known here: {}", known.join(", ")),
        };
        self.error(key.span().start, format!("unknown key {name:?}: {hint}"));
    }

    fn line(&self, at: usize) -> usize {
        1 + self.text.bytes().take(at).filter(|byte| *byte == b'\n').count()
    }

    fn error(&mut self, at: usize, text: String) {
        let error = ConfigError::Bad { path: self.path.to_owned(), line: self.line(at), text };
        self.errors.push(error);
    }
}

/// Schema of a key of a table; `None` if the key is unknown.
fn child<'a>(schema: &'a Value, key: &str) -> Option<&'a Value> {
    if let Some(child) = schema["properties"].get(key) {
        return Some(child);
    }
    let names = schema["propertyNames"]["enum"].as_array();
    let may_be = names.is_none_or(|names| names.iter().any(|name| name == key));
    Some(&schema["additionalProperties"]).filter(|any| any.is_object() && may_be)
}

fn known_names(schema: &Value) -> Vec<&str> {
    let properties = schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    let names = schema["propertyNames"]["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
    properties.chain(names).collect()
}

/// Texts of a configured value that is not a table; a list has several. The error says what is wrong with the value.
fn leaf(path: &[String], schema: &Value, value: &DeValue<'_>) -> Result<Vec<String>, String> {
    let words: Vec<&str> = path.iter().map(String::as_str).collect();
    let key = words.last().expect("a value has a key");
    let texts = match (value, takes_list(schema)) {
        (DeValue::Array(items), true) => {
            let texts: Option<Vec<_>> =
                items.iter().map(|item| item.get_ref().as_str().map(str::to_owned)).collect();
            texts
                .filter(|texts| !texts.is_empty() || may_be_empty(&words))
                .ok_or_else(|| format!("{key} is not a list of texts"))?
        }
        _ if schema["type"] == "array" => return Err(format!("{key} is not a list of texts")),
        _ => {
            let text = scalar(value);
            vec![text.ok_or_else(|| format!("{key} is not a text, a number, true or false"))?]
        }
    };
    for text in &texts {
        let checked = check_type(&words, schema, value).and_then(|()| check_text(&words, schema, text));
        checked.map_err(|why| format!("{key} = {text:?} is {why}"))?;
    }
    Ok(texts)
}

/// Whether an empty list says something: that no key runs a command, or that nobody is notified.
fn may_be_empty(path: &[&str]) -> bool {
    matches!(path, [.., "bind", _] | [.., "notify", "on" | "by"])
}

fn takes_list(schema: &Value) -> bool {
    let either = schema["anyOf"].as_array().into_iter().flatten();
    schema["type"] == "array" || either.into_iter().any(|schema| schema["type"] == "array")
}

fn scalar(value: &DeValue<'_>) -> Option<String> {
    Some(match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(truth) => truth.to_string(),
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => return None,
    })
}

/// Checks the type of a value. Values of flags and of settings may be written as texts, as on the command line.
fn check_type(path: &[&str], schema: &Value, value: &DeValue<'_>) -> Result<(), String> {
    let is_flag = matches!(path, [_] | ["drain" | "controller", _] | ["contexts", _, "controller", _]);
    let is_right = match schema["type"].as_str() {
        _ if is_flag => true,
        Some("boolean") => value.is_bool(),
        Some("array") => value.is_array(),
        Some("integer") => value.is_integer(),
        _ => value.is_str() || value.is_array(),
    };
    match schema["type"].as_str() {
        _ if is_right => Ok(()),
        Some("boolean") => Err("not true or false".into()),
        Some("integer") => Err("not a whole number".into()),
        _ => Err("not a text".into()),
    }
}

/// Checks a value of a key. The error says what is wrong with the value.
fn check_text(path: &[&str], schema: &Value, text: &str) -> Result<(), String> {
    match path {
        [flag] | ["drain", flag] => return check_flag(flag, text),
        ["controller", flag] | ["contexts", _, "controller", flag] => return check_setting(flag, text),
        ["notify", key] | ["contexts", _, "notify", key] => return check_notify(key, text),
        ["contexts", _, "theme"] => return check_flag("theme", text),
        ["contexts", _, "colour"] if MarkColour::parse(text).is_none() => {
            let names = MarkColour::names();
            let meant = did_you_mean(nearest(text, names));
            return Err(format!("not a colour: #rrggbb, {}{meant}", names.join(", ")));
        }
        ["contexts", _, "word"] if !is_word(text) => {
            return Err(format!("not a word of 1 to {LONGEST_WORD} printable characters"));
        }
        ["contexts", _, "guards", "protected-pods"] if Selector::parse(text).is_err() => {
            return Err("not a label selector, such as app=web".into());
        }
        [.., "aliases", name] if name.is_empty() || name.contains(char::is_whitespace) => {
            return Err("not possible: the name of an alias has no spaces".into());
        }
        [.., "aliases", _] | [.., "bind", _] | [.., "show"] if text.trim().is_empty() => {
            return Err("empty".into());
        }
        _ => {}
    }
    if let (Some(least), Some(most)) = (schema["minimum"].as_i64(), schema["maximum"].as_i64())
        && !text.parse().is_ok_and(|number: i64| (least..=most).contains(&number))
    {
        return Err(format!("not a whole number from {least} to {most}"));
    }
    match schema["enum"].as_array() {
        Some(values) if values.iter().all(|value| value != text) => {
            let values: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
            Err(not_one_of(text, &values))
        }
        Some(_) | None => Ok(()),
    }
}

fn is_word(text: &str) -> bool {
    let length = text.chars().count();
    (1..=LONGEST_WORD).contains(&length) && text == text.trim() && !text.contains(char::is_control)
}
