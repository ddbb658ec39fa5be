//! Objects in the text of a file: JSON, one document or several, or YAML.

use serde_json::{Deserializer, Value};

/// Lines before and after a container's log, which `kubectl cluster-info dump` prints among its JSON documents.
const LOG_BEGINS: &str = "==== START logs for container ";
const LOG_ENDS: &str = "==== END logs for container ";

/// Reads all documents of a text.
///
/// # Errors
/// The text is neither JSON nor YAML; the parser's reason.
pub fn documents(bytes: &[u8]) -> Result<Vec<Value>, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not text".to_owned())?;
    let text = text.trim_start_matches('\u{feff}');
    if !text.trim_start().starts_with(['{', '[']) {
        return yaml(text);
    }
    // YAML may begin with a bracket too, so text that is not JSON may still be YAML.
    json(text).or_else(|why| yaml(text).map_err(|_| why))
}

fn json(text: &str) -> Result<Vec<Value>, String> {
    let without_logs;
    let text = if text.contains(LOG_BEGINS) {
        without_logs = remove_logs(text);
        &without_logs
    } else {
        text
    };
    Deserializer::from_str(text).into_iter().collect::<Result<_, _>>().map_err(|error| error.to_string())
}

fn remove_logs(text: &str) -> String {
    let mut is_log = false;
    let mut kept = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        is_log |= line.starts_with(LOG_BEGINS);
        if !is_log {
            kept.push_str(line);
        }
        is_log &= !line.starts_with(LOG_ENDS);
    }
    kept
}

/// Reads YAML. The parser's limits grow with the text, because a list of pods is one document. The limits of
/// aliases stay fixed.
fn yaml(text: &str) -> Result<Vec<Value>, String> {
    let size = text.len();
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: size, max_nodes: size, max_total_scalar_bytes: size, max_documents: size,
            max_total_comment_bytes: size,
        },
        with_snippet: false,
    };
    serde_saphyr::from_multiple_with_options(text, options).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_and_yaml_are_read_with_one_document_or_several() {
        let both = vec![json!({"kind": "Node"}), json!({"kind": "Pod"})];
        assert_eq!(documents(b"{\"kind\":\"Node\"}\n{\"kind\":\"Pod\"}"), Ok(both.clone()));
        assert_eq!(documents(b"---\nkind: Node\n---\nkind: Pod\n---\n"), Ok(both.clone()));
        let dump = "{\"kind\":\"Node\"}\n==== START logs for container c of pod a/b ====\n{not json\n\
                    ==== END logs for container c of pod a/b ====\n{\"kind\":\"Pod\"}\n";
        assert_eq!(documents(dump.as_bytes()), Ok(both));
        assert_eq!(
            documents(b"{kind: Node}\n---\n{kind: Pod}"),
            Ok(vec![json!({"kind": "Node"}), json!({"kind": "Pod"})])
        );
        assert!(documents(b"{\"kind\":").is_err());
        assert!(documents(b"\xff\xfe").is_err());
    }

    #[test]
    fn a_long_list_in_yaml_is_read_and_a_bomb_of_aliases_is_not() {
        let long = "items:\n".to_owned() + &"- {a: 1, b: 2}\n".repeat(400_000);
        let read = documents(long.as_bytes()).expect("YAML");
        assert_eq!(read[0]["items"].as_array().map(Vec::len), Some(400_000));
        let mut bomb = "a0: &a0 [x]\n".to_owned();
        for level in 1..40 {
            let last = level - 1;
            bomb += &format!("a{level}: &a{level} [*a{last}, *a{last}, *a{last}, *a{last}]\n");
        }
        assert!(documents(bomb.as_bytes()).is_err());
    }
}
