//! Checks that documents list the fields of a report.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

/// Checks that a page documents exactly the fields of a report. In `full`, every field must have a value.
pub fn check(full: &impl Serialize, page: &str) {
    let mut produced = BTreeSet::new();
    paths("", &serde_json::to_value(full).expect("a report is plain data"), &mut produced);
    let documented: BTreeSet<String> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next().map(str::to_owned))
        .collect();
    let missing: Vec<_> = produced.difference(&documented).collect();
    let stale: Vec<_> = documented.difference(&produced).collect();
    assert!(missing.is_empty() && stale.is_empty(), "not documented: {missing:?}\nnot produced: {stale:?}");
}

/// Collects the paths of all leaves of a document, such as `nodes[].next.why`.
fn paths(at: &str, value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
                paths(&path, value, found);
            }
        }
        Value::Array(items) => {
            assert!(!items.is_empty(), "{at} is empty");
            items.iter().for_each(|item| paths(&format!("{at}[]"), item, found));
        }
        Value::Null => panic!("{at} is null"),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => _ = found.insert(at.to_owned()),
    }
}
