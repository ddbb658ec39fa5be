//! Words that must not stand in what people read.

use std::{collections::BTreeSet, process::Command};

use crate::{
    expect_none,
    repository::{documents, file, library, sources, tests},
    source::Source,
};

/// Old or obscure words, and words of our own for which the field has a term. A `*` at the end stands for any ending.
const BANNED: [&str; 63] = [
    // Archaisms.
    "betimes",
    "by now",
    "foresee*",
    "foreseen",
    "foresaw",
    "foretell*",
    "foretold",
    "heed*",
    "may be had",
    "so already",
    "thereof",
    "tidings",
    "whom",
    // Old-fashioned.
    "anew",
    "for ever",
    "told",
    "whoever",
    // Own words.
    "carries out",
    "carry out",
    "carried out",
    "carrying out",
    "chore*",
    "conduct*",
    "errand*",
    "footing*",
    "sign of life",
    "undertaking*",
    "undertook",
    // Riddles and personification.
    "as good, of",
    "blind for",
    "brings it back",
    "but for its",
    "came of it",
    "can lose not",
    "close call",
    "comes to nothing",
    "cut off",
    "done with",
    "doubts itself",
    "go on with",
    "held against",
    "in earnest",
    "is looked over",
    "knew no end",
    "lost for good",
    "nobody brings",
    "nobody carries",
    "nobody confirms",
    "none covers",
    "not done with",
    "put back",
    "puts back",
    "rate limits it",
    "see to it",
    "sees to it",
    "stand still",
    "stands still",
    "stood still",
    "taken for granted",
    "takes for granted",
    "under way",
    "what was said",
    "would not have us",
];

/// What must not stand in the specifications of upstream either, which are otherwise left as they are.
const ARCHAISMS: usize = 13;

#[test]
fn strings_have_no_banned_words() {
    let sources = library();
    expect_none(sources.iter().flat_map(in_strings));
}

#[test]
fn comments_and_names_have_no_banned_words() {
    let tests = tests().into_iter().filter(|source| !source.path.starts_with("tests/tidy/"));
    let sources = ["benches", "examples"].into_iter().flat_map(sources).chain(library()).chain(tests);
    expect_none(sources.flat_map(|source| [in_comments(&source), in_names(&source)].concat()));
}

#[test]
fn documents_have_no_banned_words() {
    expect_none(documents().into_iter().flat_map(|path| {
        let banned = if path.starts_with("docs/upstream/") { &BANNED[..ARCHAISMS] } else { &BANNED[..] };
        let text = file(&path);
        in_lines(&text, banned).into_iter().map(move |found| format!("{path}:{found}")).collect::<Vec<_>>()
    }));
}

#[test]
fn the_help_of_every_command_has_no_banned_words() {
    let (mut left, mut wrong) = (vec![Vec::new()], Vec::new());
    while let Some(command) = left.pop() {
        let help = help_of(&command);
        let name = [&["kordon".to_owned()], &command[..]].concat().join(" ");
        wrong.extend(in_lines(&help, &BANNED).into_iter().map(|found| format!("{name} --help:{found}")));
        left.extend(subcommands(&help).into_iter().map(|next| [&command[..], &[next]].concat()));
    }
    expect_none(wrong);
}

#[test]
fn the_finder_of_banned_words_reads_strings_comments_names_and_documents() {
    let source = Source::parse(
        "src/made/up.rs",
        r##"
        // A comment may say errand and footing.
        const ONE: &str = "the errand of node {errand}"; const TWO: &str = r#"comes to
        nothing"#; const THREE: &str = "a misconduct, put \
            back"; fn putBack() {} fn
        footing() { let fine = "chorale, backfooting, {footing:?} putback"; }
        "##,
    );
    assert_eq!(
        in_strings(&source).into_iter().collect::<Vec<_>>(),
        ["src/made/up.rs:3: errand", "src/made/up.rs:3: comes to nothing", "src/made/up.rs:4: put back"]
    );
    assert_eq!(in_comments(&source), ["src/made/up.rs:2: errand", "src/made/up.rs:2: footing"]);
    assert_eq!(in_names(&source), ["src/made/up.rs:5: putBack", "src/made/up.rs:6: footing"]);
    let document = "It sees\nto it that\nUndertakings end, by now.\n";
    assert_eq!(in_lines(document, &BANNED), ["1: sees to it", "3: by now", "3: undertaking"]);
    assert_eq!(in_lines(document, &BANNED[..ARCHAISMS]), ["3: by now"]);
    assert_eq!(subcommands("Commands:\n  one  A\n       b\n  two\n\nOptions:\n"), ["one", "two"]);
}

/// The banned words in the string literals of a file, without the names of variables in them.
fn in_strings(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    for string in &source.strings {
        let text = without_placeholders(&string.text.replace("\\\n", " "));
        let words = in_lines(&text.replace('\n', " "), &BANNED).into_iter();
        let words =
            words.map(|word| word.split_once(": ").map_or_else(String::new, |(_, word)| word.to_owned()));
        found.extend(words.map(|word| format!("{}:{}: {word}", source.path, string.line)));
    }
    found
}

/// The banned words in the comments of a file. Comments on lines that follow each other are one text.
fn in_comments(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    for block in source.comments.chunk_by(|one, next| one.line + 1 == next.line) {
        let lines = block.iter().map(|comment| comment.text.trim_start_matches(['/', '!']));
        let text = lines.collect::<Vec<_>>().join("\n");
        found.extend(in_lines(&text, &BANNED).iter().filter_map(|word| {
            let (line, word) = word.split_once(": ")?;
            Some(format!("{}:{}: {word}", source.path, block[0].line + line.parse::<usize>().ok()? - 1))
        }));
    }
    found
}

/// The banned words among the parts of the names in a file: `carry_out` and `CarryOut` are `carry out`.
fn in_names(source: &Source) -> Vec<String> {
    let names: BTreeSet<&str> = source.tokens.iter().map(|name| &*name.text).collect();
    let banned: BTreeSet<&str> =
        names.into_iter().filter(|name| !in_lines(&parts(name), &BANNED).is_empty()).collect();
    let found = source.tokens.iter().filter(|name| banned.contains(&*name.text));
    let found: BTreeSet<String> =
        found.map(|name| format!("{}:{}: {}", source.path, name.line, name.text)).collect();
    found.into_iter().collect()
}

/// The parts of a name, in lower case and with spaces between them.
fn parts(name: &str) -> String {
    let mut parts = String::new();
    let mut was_lower = false;
    for c in name.chars() {
        if c.is_uppercase() && was_lower {
            parts.push(' ');
        }
        parts.extend(if c == '_' { " ".chars().collect::<Vec<_>>() } else { c.to_lowercase().collect() });
        was_lower = c.is_lowercase() || c.is_ascii_digit();
    }
    parts
}

/// The banned words of a text, each with its line. A phrase may go over the end of a line.
fn in_lines(text: &str, banned: &[&str]) -> Vec<String> {
    let mut words: Vec<(usize, String)> = Vec::new();
    for (line, text) in text.lines().enumerate() {
        let split = text.split(|c: char| !c.is_alphanumeric() && c != '-' && c != ',');
        let split = split.flat_map(|word| word.split_inclusive(',')).filter(|word| !word.is_empty());
        words.extend(split.map(|word| (line + 1, word.to_lowercase())));
    }
    let mut found = BTreeSet::new();
    for start in 0..words.len() {
        let first = words[start].1.chars().next();
        for phrase in banned.iter().filter(|phrase| phrase.chars().next() == first) {
            if begins_with(&words[start..], phrase) {
                found.insert((words[start].0, phrase.trim_end_matches('*')));
            }
        }
    }
    found.into_iter().map(|(line, phrase)| format!("{line}: {phrase}")).collect()
}

/// Whether words begin with a phrase.
fn begins_with(words: &[(usize, String)], phrase: &str) -> bool {
    let mut wanted = phrase.split(' ').peekable();
    let mut words = words.iter().map(|(_, word)| word);
    while let Some(wanted_word) = wanted.next() {
        let Some(word) = words.next() else { return false };
        let word = if wanted.peek().is_none() { word.trim_end_matches(',') } else { word };
        let is_same = match wanted_word.strip_suffix('*') {
            Some(stem) => is_form_of(word, stem),
            None => word == wanted_word,
        };
        if !is_same {
            return false;
        }
    }
    true
}

/// Whether a word is another with one of the usual endings: `chores`, but not `chorale`.
fn is_form_of(word: &str, stem: &str) -> bool {
    let endings = ["", "s", "es", "d", "ed", "n", "ing", "ings", "er", "ers", "or", "ors"];
    word.strip_prefix(stem).is_some_and(|ending| endings.contains(&ending))
}

/// A format string without the names of what it shows: `{errand:?}` is no word.
fn without_placeholders(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        kept.push_str(before);
        let name =
            after.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.'))).unwrap_or(after.len());
        let is_placeholder = after[name..].starts_with(['}', ':']);
        rest = if is_placeholder { &after[name..] } else { after };
        kept.push(' ');
    }
    kept + rest
}

/// What `kordon COMMAND --help` prints.
fn help_of(command: &[String]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_kordon")).args(command).arg("--help").output();
    let output = output.expect("kordon runs");
    assert!(output.status.success(), "kordon {} --help", command.join(" "));
    String::from_utf8(output.stdout).expect("text")
}

/// The names under `Commands:` of a help text.
fn subcommands(help: &str) -> Vec<String> {
    let list =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let name = |line: &str| {
        let indented = line.strip_prefix("  ")?;
        let name = indented.split(' ').next()?;
        (!name.is_empty() && name != "help").then(|| name.to_owned())
    };
    list.filter_map(name).collect()
}
