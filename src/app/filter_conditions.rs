//! The conditions of a filter, as they stand in its text.

/// Splits a filter into its conditions. As in k9s, a label selector may follow `-l`, and a fuzzy word `-f`.
pub fn words(text: &str) -> Vec<String> {
    let mut conditions = Vec::new();
    let words = split(text);
    let mut rest = words.as_slice();
    while let [word, values @ ..] = rest {
        let taken = match (word.as_str(), values) {
            // The user has not typed the value of `-l` or `-f` yet.
            ("-l" | "-f", []) => 0,
            ("-l", _) => {
                let length = selector_length(values);
                conditions.push(format!("{SELECTOR}{}", values[..length].join(" ")));
                length
            }
            ("-f", [letters, ..]) => {
                conditions.push(format!("~{letters}"));
                1
            }
            _ => {
                conditions.push(word.clone());
                0
            }
        };
        rest = &values[taken..];
    }
    conditions
}

/// Start of a condition that is a label selector.
pub const SELECTOR: &str = "-l ";

/// Number of words that belong to the label selector at the start of `words`. The selector goes on behind a blank
/// within parentheses, and around a comma or an operator.
fn selector_length(words: &[String]) -> usize {
    let is_operator = |word: &str| matches!(word.split('(').next(), Some("in" | "notin"));
    let continues =
        |next: &String| is_operator(next) || next.starts_with([',', '=', '(']) || next.starts_with("!=");
    let mut depth = 0_usize;
    for (place, word) in words.iter().enumerate() {
        depth += word.matches('(').count();
        depth = depth.saturating_sub(word.matches(')').count());
        let is_open =
            depth > 0 || word.ends_with([',', '=', '!']) || is_operator(word) && !word.ends_with(')');
        if !is_open && !words.get(place + 1).is_some_and(continues) {
            return place + 1;
        }
    }
    words.len()
}

/// Splits a filter at blanks, but not within `/…/`.
fn split(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_regex = false;
    for letter in text.chars() {
        let word = words.last_mut().expect("at least one");
        match letter {
            '/' if is_regex => is_regex = false,
            '/' if word.is_empty() || word == "!" => is_regex = true,
            blank if blank.is_whitespace() && !is_regex => {
                words.push(String::new());
                continue;
            }
            _ => {}
        }
        word.push(letter);
    }
    words.retain(|word| !word.is_empty());
    words
}
