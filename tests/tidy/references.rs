//! Checks references to documents: links, and citations such as `docs/upstream/node-lifecycle.md#3.4`.

use std::{collections::BTreeSet, path::Path};

use crate::{
    expect_none,
    repository::{documents, file, sources},
    source::{Source, Token},
};

/// Folders with sources that cite documents.
const SOURCES: [&str; 5] = ["src", "crates", "tests", "benches", "examples"];

#[test]
fn references_to_documents_lead_somewhere() {
    let repository = Documents::read();
    let in_documents = documents().into_iter().flat_map(|path| {
        let text = file(&path);
        repository.wrong_in_document(&path, &text)
    });
    // The sources of this test program are left out, because they contain made-up references.
    let read = |source: &Source| !source.path.starts_with("tests/tidy/");
    let cited = SOURCES.into_iter().flat_map(sources).filter(read);
    expect_none(in_documents.chain(cited.flat_map(|source| repository.wrong_in_source(&source))));
}

#[test]
fn paths_in_documents_lead_to_files() {
    expect_none(documents().into_iter().flat_map(|path| {
        let text = file(&path);
        dead_paths(&text)
            .into_iter()
            .map(move |(line, dead)| format!("{path}:{line}: {dead}"))
            .collect::<Vec<_>>()
    }));
}

#[test]
fn the_finder_of_dead_paths_sees_code_and_leaves_placeholders() {
    let dead = |text: &str| {
        dead_paths(text)
            .into_iter()
            .map(|(line, path)| format!("{line} {path}"))
            .collect::<Vec<_>>()
            .join("; ")
    };
    assert_eq!(dead("`tests/tidy/main.rs`, `src/cli/`, `docs/reference/cli.md#flags` and src/none.rs"), "");
    assert_eq!(
        dead("a\n`src/none.rs` `cat docs/none.md, deploy/none`"),
        "2 src/none.rs; 2 docs/none.md; 2 deploy/none"
    );
    assert_eq!(
        dead("`deploy/ROLE` `tests/vectors/modern--*` `docs/upstream/<page>.md` `tests/{a,b}.rs`"),
        ""
    );
    assert_eq!(dead("```sh\nsrc/none.rs\n```\n`src/gone.rs`"), "4 src/gone.rs");
}

/// Folders whose files are named in documents with their full path.
const FOLDERS: [&str; 5] = ["src/", "crates/", "tests/", "docs/", "deploy/"];

/// Returns paths in backticks that do not exist, with their lines. Paths with a name in capitals or a pattern are
/// placeholders.
fn dead_paths(text: &str) -> Vec<(usize, &str)> {
    let mut dead = Vec::new();
    for (line, text) in text.lines().enumerate() {
        // A line is split at backticks, so every second part is code. The three backticks around a code block do not
        // change that.
        for code in text.split('`').skip(1).step_by(2) {
            let words = code.split_whitespace().map(|word| word.trim_end_matches([',', '.', ';', ':']));
            for word in words.filter(|word| FOLDERS.iter().any(|folder| word.starts_with(folder))) {
                let is_placeholder = word.contains(['*', '<', '{', '…'])
                    || word
                        .split('/')
                        .any(|part| part.len() > 1 && part.chars().all(|c| c.is_ascii_uppercase()));
                let path = word.split('#').next().unwrap_or(word);
                if !is_placeholder && !Path::new(path).exists() {
                    dead.push((line + 1, word));
                }
            }
        }
    }
    dead
}

#[test]
fn every_section_of_a_specification_can_be_cited_by_its_number() {
    expect_none(documents().into_iter().filter(|path| path.starts_with("docs/upstream/")).flat_map(|path| {
        let text = file(&path);
        let headings = headings(&text).into_iter().map(str::to_owned).collect::<Vec<_>>();
        headings.into_iter().filter_map(move |heading| {
            let (anchor, title) = heading.strip_prefix("<a id=\"")?.split_once("\"></a>")?;
            let number = title.split(' ').next()?.trim_end_matches('.');
            (anchor != number).then(|| format!("{path}: section {number} has the anchor {anchor}"))
        })
    }));
}

#[test]
fn the_finder_of_wrong_references_sees_files_sections_and_bare_numbers() {
    let text = "# A page\n\n## <a id=\"3.4\"></a>3.4 How to `do` it (1.23)\n\n## Known differences\n\n```\n# no heading\n```\n";
    let repository = Documents { anchors: vec![("docs/page.md".into(), anchors(text))] };
    let code = |text: &str| repository.wrong_in_source(&Source::parse("src/a/b.rs", text)).join("; ");
    assert_eq!(code("// as docs/page.md#3.4 says, and docs/page.md. (1.29), (0.5)"), "");
    assert_eq!(
        code("//! docs/page.md#known-differences\nconst TEXT: &str = include_str!(\"../../docs/page.md\");"),
        ""
    );
    assert_eq!(code("// docs/page.md#34-how-to-do-it-123, or docs/page.md#3.4."), "");
    assert_eq!(code("\n// docs/page.md#3.5"), "src/a/b.rs:2: docs/page.md#3.5");
    assert_eq!(code("const TEXT: &str = \"see docs/pages.md\";"), "src/a/b.rs:1: docs/pages.md");
    assert_eq!(code("// page.md, 3.4"), "src/a/b.rs:1: page.md");
    assert_eq!(code("/// As in [the\n/// page](page.md), [here](page.md#3.4)."), "");
    assert_eq!(code("const TEXT: &str = \"[page](page.md)\"; const PATH: &str = \"/docs/page.md\";"), "");
    assert_eq!(code("// spec/page.md"), "src/a/b.rs:1: spec/page.md");
    assert_eq!(code("// it runs on (12.35) (7.8, up to 1.32)"), "src/a/b.rs:1: (12.35); src/a/b.rs:1: (7.8");
    assert_eq!(
        code("// as section 3.4 has it; spec 6.5"),
        "src/a/b.rs:1: section 3.4; src/a/b.rs:1: spec 6.5"
    );
    assert_eq!(code("fn a() { b(12.35) } const TEXT: &str = \"(12.35)\";"), "");
    let document = |text: &str| repository.wrong_in_document("docs/other.md", text).join("; ");
    assert_eq!(
        document("[a](page.md#3.4) [b](#here) [c](https://x.io/y.md)\n# Here\n`docs/page.md#3.4` (1.29)"),
        ""
    );
    assert_eq!(
        document("[a](page.md#3.5) [b](#there)\n[c](none.md) docs/none.md (12.17)"),
        "docs/other.md:1: page.md#3.5; docs/other.md:1: #there; docs/other.md:2: none.md; \
         docs/other.md:2: docs/none.md; docs/other.md:2: (12.17)"
    );
}

/// All documents, with the anchors of each.
struct Documents {
    anchors: Vec<(String, BTreeSet<String>)>,
}

impl Documents {
    fn read() -> Self {
        let anchors = documents().into_iter().map(|path| {
            let found = anchors(&file(&path));
            (path, found)
        });
        Self { anchors: anchors.collect() }
    }

    /// Returns citations of missing targets in comments and strings, and section numbers without a document.
    fn wrong_in_source(&self, source: &Source) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut add = |token: &Token, line: usize, found: Vec<String>| {
            wrong.extend(
                found.into_iter().map(|found| format!("{}:{}: {found}", source.path, token.line + line)),
            );
        };
        let dead = |target: &String| !self.has(target, &source.path);
        for token in &source.comments {
            for (line, text) in token.text.lines().enumerate() {
                // A link belongs to the page that is generated from this comment, and is checked in that page.
                add(token, line, citations(&without_links(text)).into_iter().filter(dead).collect());
                add(token, line, bare_numbers(text));
            }
        }
        for token in &source.strings {
            for (line, text) in token.text.lines().enumerate() {
                // A file name without a folder may be a link in a page that is generated from this text.
                let paths = citations(text).into_iter().filter(|target| target.contains('/'));
                add(
                    token,
                    line,
                    paths.map(|path| path.trim_start_matches('/').to_owned()).filter(dead).collect(),
                );
            }
        }
        wrong
    }

    /// Returns links and citations of missing targets in a document, and section numbers without a document. The
    /// specifications may refer to their own sections by number, and to upstream's files.
    fn wrong_in_document(&self, path: &str, text: &str) -> Vec<String> {
        let own = anchors(text);
        let is_upstream = path.starts_with("docs/upstream/");
        let mut wrong = Vec::new();
        for (line, text) in text.lines().enumerate() {
            let links = links(text).filter(|target| !target.contains("://")).filter(|target| {
                match target.strip_prefix('#') {
                    Some(anchor) => !own.contains(anchor),
                    None => !self.has(target, path),
                }
            });
            wrong.extend(links.map(|target| format!("{path}:{}: {target}", line + 1)));
            if !is_upstream {
                let plain = without_links(text);
                let dead = citations(&plain).into_iter().filter(|target| !self.has(target, path));
                wrong.extend(
                    dead.chain(bare_numbers(&plain)).map(|found| format!("{path}:{}: {found}", line + 1)),
                );
            }
        }
        wrong
    }

    /// Whether the target of a reference exists: the document or file, and its section if one is given. Paths are
    /// relative to the root of the repository or to the referring file.
    fn has(&self, target: &str, from: &str) -> bool {
        let (path, anchor) =
            target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
        let folder = Path::new(from).parent().unwrap_or(Path::new(""));
        let beside = normal(&folder.join(path));
        let document = self.anchors.iter().find(|(known, _)| known == path || *known == beside);
        match (document, anchor) {
            (Some((_, anchors)), Some(anchor)) => anchors.contains(anchor),
            (Some(_), None) => true,
            (None, _) => !path.ends_with(".md") && Path::new(&beside).exists(),
        }
    }
}

/// Resolves `..` in a path.
fn normal(path: &Path) -> String {
    let mut parts: Vec<String> = Vec::new();
    for part in path.components() {
        match part.as_os_str().to_string_lossy().as_ref() {
            ".." => _ = parts.pop(),
            part => parts.push(part.to_owned()),
        }
    }
    parts.join("/")
}

/// Returns the paths of documents in a text, with the section after `#` if there is one.
fn citations(text: &str) -> Vec<String> {
    let of_path = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '/' | '-' | '#');
    let words = text.split(|c: char| !of_path(c)).filter(|word| word.contains(".md"));
    let whole = words.filter(|word| {
        word.split('#').next().is_some_and(|path| path.trim_end_matches('.').ends_with(".md"))
    });
    whole.map(|word| word.trim_end_matches(['.', '-', '/']).to_owned()).collect()
}

/// Returns section numbers without a document: `(12.20)`, `section 3.4`, `spec 6.5`. Releases such as `(1.34)` are not
/// section numbers.
fn bare_numbers(text: &str) -> Vec<String> {
    let is_section = |number: &str| {
        let parts =
            number.split_once('.').map(|(section, part)| (section.parse::<u32>(), part.parse::<u32>()));
        matches!(parts, Some((Ok(2..=15), Ok(_))))
    };
    let number = |text: &str| -> String {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        text[..end].trim_end_matches('.').to_owned()
    };
    let mut found = Vec::new();
    for (start, rest) in text.match_indices('(').map(|(at, _)| (at, &text[at + 1..])) {
        let inside = number(rest);
        let closed = text[start + 1 + inside.len()..].starts_with([')', ',', ';', ':']);
        if closed && is_section(&inside) {
            found.push(format!(
                "({inside}{}",
                if text[start + 1 + inside.len()..].starts_with(')') { ")" } else { "" }
            ));
        }
    }
    for word in ["section ", "spec "] {
        let numbers = text.match_indices(word).map(|(at, _)| number(&text[at + word.len()..]));
        found.extend(numbers.filter(|number| !number.is_empty()).map(|number| format!("{word}{number}")));
    }
    found
}

/// Returns the targets of a document's links and images.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next())
}

/// Removes links from a line.
fn without_links(text: &str) -> String {
    let mut parts = text.split("](");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        kept.truncate(kept.rfind('[').unwrap_or(kept.len()));
        kept.push_str(part.split_once(')').map_or("", |(_, after)| after));
    }
    kept
}

/// Returns the headings of a document, without `#`.
fn headings(text: &str) -> Vec<&str> {
    let mut in_code = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.starts_with("```") {
            in_code = !in_code;
        } else if !in_code && line.starts_with('#') {
            found.push(line.trim_start_matches('#').trim());
        }
    }
    found
}

/// Returns the anchors of a document: those given explicitly, and those made from headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let given = text.split("<a id=\"").skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned);
    let made = headings(text).into_iter().map(|heading| {
        let title = heading.split_once("</a>").map_or(heading, |(_, title)| title);
        let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect::<String>().to_lowercase()
    });
    given.chain(made).collect()
}
