//! Syntax of the keys and values of labels and taints (apimachinery `IsQualifiedName`, `IsValidLabelValue`).

/// Maximum length of a name or value.
const LONGEST: usize = 63;
/// Maximum length of the prefix of a key.
const LONGEST_PREFIX: usize = 253;

const ALPHABET: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
    alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc')";
const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
    and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
    '.', and must start and end with an alphanumeric character (e.g. 'example.com')";

/// Checks a key, which is a name with an optional prefix.
///
/// # Errors
/// The key is not valid. The text lists all faults in the server's words.
pub fn key(text: &str) -> Result<(), String> {
    let mut faults = Vec::new();
    let mut parts = text.split('/');
    let (name, prefix) = match (parts.next(), parts.next(), parts.next()) {
        (Some(name), None, None) => (name, None),
        (Some(prefix), Some(name), None) => (name, Some(prefix)),
        _ => {
            return Err(format!(
                "a qualified name {ALPHABET} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            ));
        }
    };
    match prefix {
        Some("") => faults.push("prefix part must be non-empty".to_owned()),
        Some(prefix) if prefix.len() > LONGEST_PREFIX => {
            faults.push(format!("prefix part must be no more than {LONGEST_PREFIX} characters"));
        }
        Some(prefix) if !is_subdomain(prefix) => faults.push(format!("prefix part {SUBDOMAIN}")),
        Some(_) | None => {}
    }
    if name.is_empty() {
        faults.push("name part must be non-empty".into());
    } else if name.len() > LONGEST {
        faults.push(format!("name part must be no more than {LONGEST} characters"));
    }
    if !is_name(name) {
        faults.push(format!("name part {ALPHABET}"));
    }
    report(faults)
}

/// Checks a value. An empty value is valid.
///
/// # Errors
/// The value is not valid. The text lists all faults in the server's words.
pub fn value(text: &str) -> Result<(), String> {
    let mut faults = Vec::new();
    if text.len() > LONGEST {
        faults.push(format!("must be no more than {LONGEST} characters"));
    }
    if !text.is_empty() && !is_name(text) {
        faults.push(VALUE.into());
    }
    report(faults)
}

fn report(faults: Vec<String>) -> Result<(), String> {
    if faults.is_empty() { Ok(()) } else { Err(faults.join("; ")) }
}

fn is_name(text: &str) -> bool {
    let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    ends(text.chars().next())
        && ends(text.chars().next_back())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

fn is_subdomain(text: &str) -> bool {
    let is_label = |label: &str| {
        let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        ends(label.chars().next())
            && ends(label.chars().next_back())
            && label.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    text.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_are_checked_as_by_the_server() {
        for good in ["a", "A_b.c-9", "example.com/x", "node.kubernetes.io/out-of-service", &"k".repeat(63)] {
            assert_eq!(key(good), Ok(()), "{good}");
        }
        for (bad, fault) in [
            ("", "name part must be non-empty"),
            ("/x", "prefix part must be non-empty"),
            ("a/b/c", "a qualified name"),
            ("-a", "name part must consist"),
            ("Example.com/x", "prefix part a lowercase"),
            (&"k".repeat(64), "name part must be no more than 63 characters"),
            (&format!("{}/x", "p".repeat(254)), "prefix part must be no more than 253"),
        ] {
            assert!(key(bad).is_err_and(|text| text.contains(fault)), "{bad}");
        }
        assert_eq!((value(""), value("a.b_c-d")), (Ok(()), Ok(())));
        assert!(value(&"v".repeat(64)).is_err_and(|text| text.starts_with("must be no more than 63")));
        assert!(value("a b").is_err() && value("a-").is_err());
    }
}
