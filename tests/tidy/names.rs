//! No two public types share a name.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    circles::without_tests,
    expect_none,
    repository::library,
    source::{Source, Token},
};

const MIRROR: &str = "the demo reads API objects into types of its own: it shares no code with what it tests";

/// Exceptions: types that share a name on purpose. Each has the name, one of the files with such a type, and the
/// reason.
const SHARED: [(&str, &str, &str); 10] = [
    ("Budget", "crates/kordon-demo/src/objects.rs", MIRROR),
    ("Condition", "crates/kordon-demo/src/objects.rs", MIRROR),
    ("Key", "crates/kordon-demo/src/objects.rs", MIRROR),
    ("Node", "crates/kordon-demo/src/objects.rs", MIRROR),
    ("Pod", "crates/kordon-demo/src/objects.rs", MIRROR),
    ("Resources", "crates/kordon-demo/src/objects.rs", MIRROR),
    ("Taint", "crates/kordon-demo/src/objects.rs", MIRROR),
    ("Toleration", "crates/kordon-demo/src/objects.rs", MIRROR),
    ("Workload", "crates/kordon-demo/src/objects.rs", MIRROR),
    ("WorkloadKind", "crates/kordon-demo/src/objects.rs", MIRROR),
];

#[test]
fn public_types_do_not_share_a_name() {
    let sources = library();
    let excepted = |path: &str, name: &str| {
        SHARED.iter().any(|(shared, file, reason)| (*shared, *file) == (name, path) && !reason.is_empty())
    };
    expect_none(
        doubles(&sources, excepted)
            .into_iter()
            .map(|(name, places)| format!("{name}: {}", places.into_iter().collect::<Vec<_>>().join(", "))),
    );
    let doubles = doubles(&sources, |_, _| false);
    let no_longer = SHARED.iter().filter(|(name, ..)| !doubles.contains_key(*name));
    expect_none(no_longer.map(|(name, ..)| format!("{name} stands once: take it off the table")));
}

#[test]
fn the_finder_of_shared_names_sees_every_kind_of_public_type() {
    let one =
        "pub struct A; pub(crate) enum B {} pub(super) trait C {} pub(in crate::x) type D = u8; struct E;";
    let two = "pub enum A {} pub struct B; pub type C = u8; pub trait D {} pub struct E;
               #[cfg(test)] mod tests { pub struct F; }";
    let three = "pub struct F; fn pub_struct() { let text = \"pub struct A\"; }";
    let sources =
        [("one", one), ("two", two), ("three", three)].map(|(name, text)| Source::parse(name, text));
    let all: Vec<String> = doubles(&sources, |_, _| false).into_keys().collect();
    assert_eq!(all, ["A", "B", "C", "D"]);
    let rest = doubles(&sources, |file, name| (file, name) == ("two", "B"));
    assert!(!rest.contains_key("B") && rest.len() == 3);
}

/// Returns the names of public types that are defined in more than one file, with their places. Ignores a type if
/// `excepted` accepts its file and name.
fn doubles(sources: &[Source], excepted: impl Fn(&str, &str) -> bool) -> BTreeMap<String, BTreeSet<String>> {
    let mut places: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for source in sources {
        for token in public_types(source).into_iter().filter(|token| !excepted(&source.path, &token.text)) {
            places.entry(token.text).or_default().insert(format!("{}:{}", source.path, token.line));
        }
    }
    places.retain(|_, places| places.len() > 1);
    places
}

/// Returns the names of the types that a file makes visible to others.
pub fn public_types(source: &Source) -> Vec<Token> {
    let (tokens, _) = without_tests(&source.tokens);
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate().filter(|(_, token)| token.text == "pub") {
        // Skips `(crate)` and other scopes of `pub`.
        let after = if tokens.get(at + 1).is_some_and(|next| next.text == "(") {
            tokens[at..].iter().position(|next| next.text == ")").map_or(tokens.len(), |place| at + place + 1)
        } else {
            at + 1
        };
        if let [kind, name, ..] = &tokens[after.min(tokens.len())..]
            && matches!(&*kind.text, "struct" | "enum" | "union" | "trait" | "type")
            // Skips the `$name` of a macro.
            && name.text != "$"
        {
            found.push(Token { text: name.text.clone(), line: token.line });
        }
    }
    found
}
