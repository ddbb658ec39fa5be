//! Makes the tables of fields in `docs/reference/` from the schemas of reports.
//!
//! The meaning of a field is the first paragraph of its doc comment. Headings, text and the order of the rows of a page
//! are written by hand. Each field that is a value has a row in one of the tables, and so has each object or list with
//! a doc comment.

use std::{collections::BTreeMap, env, fs};

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::Value;

/// Checks that the tables of a page in `docs/reference/` say what the doc comments of a report say. `UPDATE=1` rewrites
/// their rows; only rows that are missing have to be added by hand.
pub fn check<T: JsonSchema>(page: &str) {
    let file = format!("{}/docs/reference/{page}.md", env!("CARGO_MANIFEST_DIR"));
    let written = fs::read_to_string(&file).expect("the page exists");
    let mut rows = rows::<T>();
    let mut made = String::new();
    for line in written.lines() {
        let row = match row_path(line) {
            None => Some(line.to_owned()),
            Some(path) => rows.remove(path),
        };
        made.extend(row.map(|row| row + "\n"));
    }
    let missing: Vec<String> = rows.into_values().collect();
    assert!(missing.is_empty(), "{page}.md lacks these rows:\n{}", missing.join("\n"));
    if env::var_os("UPDATE").is_some() {
        return fs::write(&file, made).expect("the page is writable");
    }
    let difference = written.lines().zip(made.lines()).find(|(is, should_be)| is != should_be);
    assert!(written == made, "{page}.md differs, first in {difference:#?}; UPDATE=1 rewrites it");
}

/// Returns the path of the field that a line describes, if the line is a row of a table of fields.
fn row_path(line: &str) -> Option<&str> {
    line.strip_prefix("| `")?.split('`').next()
}

/// Returns the row of each field of a report, by the field's path, such as `nodes[].next.why`.
fn rows<T: JsonSchema>() -> BTreeMap<String, String> {
    let mut settings = SchemaSettings::default().for_serialize();
    settings.inline_subschemas = true;
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let mut rows = BTreeMap::new();
    collect_properties("", schema.as_value(), &mut rows);
    rows
}

fn collect_properties(parent: &str, object: &Value, rows: &mut BTreeMap<String, String>) {
    let properties = object["properties"].as_object().expect("an object has fields");
    let required = object["required"].as_array().map_or(0, Vec::len);
    assert_eq!(required, properties.len(), "a field of {parent:?} is not always present");
    for (name, schema) in properties {
        let path = if parent.is_empty() { name.clone() } else { format!("{parent}.{name}") };
        collect(path, schema, rows);
    }
}

/// Adds the row of a field, and the rows of the fields inside it. In a path, `*` stands for any key.
fn collect(mut path: String, mut schema: &Value, rows: &mut BTreeMap<String, String>) {
    let meaning = schema["description"].as_str().map(first_paragraph);
    let whole = path.clone();
    while schema["items"].is_object() {
        schema = &schema["items"];
        path.push_str("[]");
    }
    if schema["additionalProperties"].is_object() {
        path.push_str(".*");
    }
    let has_fields = schema["properties"].is_object();
    if has_fields {
        collect_properties(&path, schema, rows);
    }
    let path = if has_fields { whole } else { path };
    if let Some(meaning) = meaning {
        let has_links_of_rustdoc = meaning.split("`]").skip(1).any(|rest| !rest.starts_with('('));
        assert!(!has_links_of_rustdoc && !meaning.contains('|'), "{path}: not for a table: {meaning}");
        let row = format!("| `{path}` | {meaning} |");
        rows.insert(path, row);
    } else {
        assert!(has_fields, "{path} has no doc comment");
    }
}

fn first_paragraph(doc: &str) -> String {
    let paragraph = doc.split("\n\n").next().unwrap_or_default();
    paragraph.split_whitespace().collect::<Vec<_>>().join(" ")
}
