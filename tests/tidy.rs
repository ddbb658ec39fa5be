//! Reads the sources and holds the promises that neither the compiler nor clippy can.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// The modules of the library, top down: each may use those after it.
const LAYERS: [&str; 18] = [
    "cli",
    "run",
    "ui",
    "app",
    "model",
    "executor",
    "journal",
    "k8s",
    "demo",
    "why",
    "forecast",
    "operation",
    "plan",
    "placement",
    "engine",
    "cluster",
    "clock",
    "time",
];

/// Modules that are functions of their arguments: no clock, IO, randomness, async, logging or client types.
const PURE: [&str; 8] = ["why", "forecast", "operation", "plan", "placement", "engine", "cluster", "time"];

/// Modules that wait, and so may use tokio's clock. All others are told the time.
const WAITING: [&str; 5] = ["run", "executor", "k8s", "demo", "clock"];

/// Files of pure modules that may hold a hash map, for nobody sees its order there.
const UNORDERED: [&str; 2] = ["src/cluster/names.rs", "src/placement/ids.rs"];

#[test]
fn modules_are_listed_top_down_in_the_library() {
    let library = Source::read("src/lib.rs");
    let listed: Vec<&str> =
        library.tokens.windows(2).filter(|pair| pair[0].text == "mod").map(|pair| &*pair[1].text).collect();
    assert_eq!(listed, LAYERS);
}

#[test]
fn imports_go_down_the_layers_only() {
    expect_none(sources("src").iter().flat_map(|source| {
        let layer = source.layer();
        source.imports().into_iter().filter(move |import| !may_use(&layer, &import.text)).map({
            let layer = source.layer();
            move |import| format!("{}:{}: {layer} uses {}", source.path, import.line, import.text)
        })
    }));
}

#[test]
fn pure_modules_touch_nothing_outside() {
    const BANNED: [&str; 19] = [
        "tokio",
        "tokio_util",
        "futures",
        "kube",
        "k8s_openapi",
        "hyper",
        "http",
        "fastrand",
        "tracing",
        "ratatui",
        "crossterm",
        "async",
        "await",
        "Mutex",
        "RefCell",
        "SystemTime",
        "Instant",
        "println",
        "eprintln",
    ];
    expect_none(sources("src").iter().filter(|source| PURE.contains(&&*source.layer())).flat_map(|source| {
        let banned = source.tokens.iter().filter(|token| BANNED.contains(&&*token.text));
        let std_io = source.paths_of("std", &["fs", "io", "net", "thread", "env", "process"]);
        banned.cloned().chain(std_io).map(|token| format!("{}:{}: {}", source.path, token.line, token.text))
    }));
}

#[test]
fn no_order_of_a_hash_map_can_leave_the_pure_modules() {
    let hash_types = ["HashMap", "HashSet", "FxHashMap", "FxHashSet"];
    let pure = |source: &&Source| PURE.contains(&&*source.layer()) && !UNORDERED.contains(&&*source.path);
    expect_none(sources("src").iter().filter(pure).flat_map(|source| {
        let used = source.tokens.iter().filter(|token| hash_types.contains(&&*token.text));
        used.map(|token| format!("{}:{}: {}", source.path, token.line, token.text))
    }));
}

#[test]
fn only_modules_that_wait_use_the_runtimes_clock() {
    let told = |source: &&Source| !WAITING.contains(&&*source.layer());
    expect_none(sources("src").iter().filter(told).flat_map(|source| {
        let uses = source.paths_of("tokio", &["time"]);
        uses.into_iter().map(|token| format!("{}:{}: tokio::time", source.path, token.line))
    }));
}

#[test]
fn shared_state_is_not_hidden_behind_locks_or_globals() {
    expect_none(sources("src").iter().flat_map(|source| {
        let arc_mutex_app = source.tokens.windows(4).filter(|t| t[0].text == "Mutex" && t[2].text == "App");
        let mutable_globals =
            source.tokens.windows(2).filter(|t| t[0].text == "static" && t[1].text == "mut");
        arc_mutex_app
            .chain(mutable_globals)
            .map(|t| format!("{}:{}", source.path, t[0].line))
            .collect::<Vec<_>>()
    }));
}

/// Scenarios of operators' actions that are numbered in spec/operator-actions.md, section 10.
const SCENARIOS: u32 = 70;

/// Remade by `UPDATE=1 cargo test --test tidy`.
#[test]
fn every_numbered_scenario_has_a_test_and_the_page_names_it() {
    let mut found: BTreeMap<u32, BTreeSet<String>> = BTreeMap::new();
    for file in files("tests").into_iter().filter(|path| path.ends_with(".rs")) {
        let text = fs::read_to_string(&file).expect("readable");
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        for (place, line) in lines.iter().enumerate() {
            let numbers = line.strip_prefix("/// ").map(leading_numbers).unwrap_or_default();
            let name = lines[place..].iter().find_map(|line| {
                let rest = line.split_once("fn ")?.1;
                rest.split(['(', '<']).next().map(str::to_owned)
            });
            for number in numbers {
                let test = name.clone().expect("a number stands above a test");
                found.entry(number).or_default().insert(format!("`{test}` ({file})"));
            }
        }
    }
    let missing: Vec<u32> = (1..=SCENARIOS).filter(|number| !found.contains_key(number)).collect();
    assert!(missing.is_empty(), "no test has these numbers in its comment: {missing:?}");
    let mut page = String::from(
        "# Scenarios\n\nWhat operators do to nodes, and the tests that show what comes of it. Made from the numbers in the \
         comments of the tests by\n`tests/tidy.rs`; run it with `UPDATE=1` after a change.\n\n| scenario | shown by |\n| --- | --- |\n",
    );
    for (number, tests) in &found {
        let tests: Vec<&str> = tests.iter().map(String::as_str).collect();
        page.push_str(&format!("| {number} | {} |\n", tests.join(", ")));
    }
    let path = "docs/scenarios.md";
    if std::env::var_os("UPDATE").is_some() {
        fs::write(path, &page).expect("written");
    }
    assert_eq!(fs::read_to_string(path).unwrap_or_default(), page, "docs/scenarios.md: UPDATE=1 remakes it");
}

/// The numbers that a comment begins with, as in "16, 19: what it is about".
fn leading_numbers(comment: &str) -> Vec<u32> {
    let words = comment.split([',', ':']).map(str::trim);
    words.map_while(|word| word.parse().ok()).filter(|number| (1..=SCENARIOS).contains(number)).collect()
}

#[test]
fn every_source_file_says_what_it_is() {
    expect_none(sources("src").iter().filter(|s| !s.text.starts_with("//! ")).map(|s| s.path.clone()));
}

#[test]
fn no_file_is_a_drawer_for_odds_and_ends() {
    const DRAWERS: [&str; 8] =
        ["utils", "util", "helpers", "helper", "constants", "consts", "misc", "manager"];
    let stems = sources("src").into_iter().chain(sources("tests"));
    expect_none(stems.map(|source| source.path).filter(|path| {
        Path::new(path).components().any(|part| {
            let part = part.as_os_str().to_string_lossy();
            DRAWERS.contains(&part.strip_suffix(".rs").unwrap_or(&part))
        })
    }));
}

#[test]
fn every_pane_shows_what_it_draws() {
    let drawn = |source: &Source| {
        source.text.lines().any(|line| line.trim_start().starts_with("//") && line.contains(['│', '─', '┌']))
    };
    let is_pane = |source: &Source| !source.path.ends_with("/mod.rs");
    expect_none(sources("src/ui/panes").iter().filter(|s| is_pane(s) && !drawn(s)).map(|s| s.path.clone()));
}

#[test]
fn lints_that_replace_memory_stay_on() {
    let (manifest, library, clippy) = (file("Cargo.toml"), file("src/lib.rs"), file("clippy.toml"));
    assert!(manifest.contains("unsafe_code = \"forbid\""));
    for lint in ["dbg_macro", "todo", "iter_over_hash_type"] {
        assert!(manifest.contains(&format!("{lint} = \"warn\"")), "{lint}");
    }
    for lint in ["unwrap_used", "panic", "print_stdout", "print_stderr"] {
        assert!(library.contains(&format!("clippy::{lint}")), "{lint}");
    }
    for method in
        ["std::time::Instant::now", "std::time::SystemTime::now", "chrono::Utc::now", "std::process::exit"]
    {
        assert!(clippy.contains(&format!("\"{method}\"")), "{method}");
    }
}

#[test]
fn every_dependency_has_its_reason_and_no_default_features() {
    // Crates without default features of their own.
    const PLAIN: [&str; 1] = ["humantime"];
    let manifest = file("Cargo.toml");
    let (mut section, mut reason, mut wrong) = (String::new(), false, Vec::new());
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            (section, reason) = (line.into(), false);
        } else if line.is_empty() {
            reason = false;
        } else if line.starts_with('#') {
            reason = true;
        } else if section == "[dependencies]" {
            let name = line.split([' ', '=']).next().unwrap_or_default();
            if !reason {
                wrong.push(format!("{name}: say above it why it is needed"));
            }
            if !line.contains("default-features = false") && !PLAIN.contains(&name) {
                wrong.push(format!("{name}: default-features = false"));
            }
        }
    }
    expect_none(wrong);
}

#[test]
fn the_repository_names_no_machine_and_no_registry() {
    // Put together here, so that this file does not name them.
    let banned =
        [["/wo", "rk/"], ["/ro", "ot/"], ["/ho", "me/"], ["proxy.go", "lang.org"], ["index.crates", ".io"]]
            .map(|p| p.concat());
    expect_none(files(".").into_iter().filter(|path| path != "./Cargo.lock").flat_map(|path| {
        let text =
            fs::read(&path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
        let found = banned.iter().filter(|word| text.contains(&**word)).cloned().collect::<Vec<_>>();
        found.into_iter().map(move |word| format!("{path}: {word}"))
    }));
}

#[test]
fn the_repository_has_what_a_newcomer_looks_for() {
    for name in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE"] {
        assert!(!file(name).trim().is_empty(), "{name} is empty");
    }
    let readme = file("README.md");
    for command in ["cargo run --release -- demo", "cargo test"] {
        assert!(readme.contains(command), "README.md does not name `{command}`");
    }
    let architecture = file("ARCHITECTURE.md");
    for layer in LAYERS {
        assert!(architecture.contains(&format!("`{layer}`")), "ARCHITECTURE.md does not speak of `{layer}`");
    }
}

#[test]
fn links_between_the_documents_lead_somewhere() {
    let documents = files(".").into_iter().filter(|path| path.ends_with(".md"));
    expect_none(documents.flat_map(|path| {
        let folder = Path::new(&path).parent().unwrap_or(Path::new("")).to_owned();
        let text = fs::read_to_string(&path).expect("a document can be read");
        let dead: Vec<String> = links(&text)
            .filter(|target| !target.contains("://") && !target.starts_with('#'))
            .filter(|target| !folder.join(target.split('#').next().unwrap_or_default()).exists())
            .map(|target| format!("{path}: {target}"))
            .collect();
        dead
    }));
}

#[test]
fn the_reader_of_sources_sees_through_text_and_nesting() {
    let source = Source::parse(
        "src/ui/panes/nodes.rs",
        r##"
        use crate::{engine::{Why, Settings}, cluster::Node, k8s};
        // crate::run is only spoken of
        const TEXT: &str = "crate::cli"; const RAW: &str = r#"crate::demo "quoted""#;
        const CHAR: char = '"'; fn life<'a>(x: &'a str) { let y = crate::forecast::run(x); }
        use super::super::text;       // ui::text
        use super::super::super::app; // above every module: the root
        mod tests { use super::super::super::super::clock; use super::super::super::theme; }
        "##,
    );
    let mut names: Vec<_> = source.imports().into_iter().map(|import| import.text).collect();
    names.sort();
    assert_eq!(names, ["app", "clock", "cluster", "engine", "forecast", "k8s"]);
    assert!(may_use("demo", "clock") && !may_use("demo", "cluster") && !may_use("engine", "k8s"));
}

/// Whether a module may use another: itself and those below it. The demo may use next to nothing: a fake that
/// shares code with what it tests shares its bugs.
fn may_use(layer: &str, used: &str) -> bool {
    let place = |name: &str| LAYERS.iter().position(|layer| *layer == name);
    match (place(layer), place(used)) {
        _ if layer == used => true,
        (Some(_), Some(_)) if layer == "demo" => matches!(used, "clock" | "time"),
        (Some(own), Some(other)) => own < other,
        // The program itself stands above all; anything else at the root is no module of ours.
        (None, _) => true,
        (Some(_), None) => false,
    }
}

/// A word or a mark of a source file, without comments and the insides of texts.
#[derive(Clone, Debug)]
struct Token {
    text: String,
    line: usize,
}

/// A source file and its tokens.
struct Source {
    /// From the root of the repository, with forward slashes.
    path: String,
    text: String,
    tokens: Vec<Token>,
}

impl Source {
    fn read(path: &str) -> Self {
        Self::parse(path, &file(path))
    }

    fn parse(path: &str, text: &str) -> Self {
        Self { path: path.into(), text: text.into(), tokens: tokens(text) }
    }

    /// The module of the library that the file belongs to; `main` and `lib` for those two.
    fn layer(&self) -> String {
        let inside = self.path.strip_prefix("src/").unwrap_or(&self.path);
        inside.split(['/', '.']).next().unwrap_or_default().into()
    }

    /// How many modules deep the file's own module is.
    fn depth(&self) -> usize {
        let inside = self.path.strip_prefix("src/").unwrap_or(&self.path).trim_end_matches(".rs");
        inside.split('/').filter(|part| !matches!(*part, "mod" | "lib" | "main")).count()
    }

    /// The names at the crate's root that the file refers to, whether by `crate::` or by a chain of `super::`.
    fn imports(&self) -> Vec<Token> {
        let mut found = Vec::new();
        let mut inline = InlineModules::default();
        let mut at = 0;
        while at < self.tokens.len() {
            inline.step(&self.tokens, at);
            let begins = at == 0 || self.tokens[at - 1].text != "::";
            let after = match &*self.tokens[at].text {
                "crate" => Some(at + 1),
                "super" if begins => {
                    let chain =
                        self.tokens[at..].chunks(2).take_while(|pair| pair[0].text == "super").count();
                    at += 2 * chain - 2;
                    (chain >= self.depth() + inline.depth()).then_some(at + 1)
                }
                _ => None,
            };
            if let Some(after) = after
                && self.tokens.get(after).is_some_and(|token| token.text == "::")
            {
                found.extend(heads(&self.tokens[after + 1..]));
            }
            at += 1;
        }
        found
    }

    /// Where `root::name` is referred to, for one of the names.
    fn paths_of(&self, root: &str, names: &[&str]) -> Vec<Token> {
        let roots =
            self.tokens.windows(2).enumerate().filter(|(_, t)| t[0].text == root && t[1].text == "::");
        roots
            .flat_map(|(at, _)| heads(&self.tokens[at + 2..]))
            .filter(|token| names.contains(&&*token.text))
            .collect()
    }
}

/// Follows the braces, to know how many `mod name { … }` a token is inside of.
#[derive(Default)]
struct InlineModules {
    braces: usize,
    opened: Vec<usize>,
}

impl InlineModules {
    fn step(&mut self, tokens: &[Token], at: usize) {
        match &*tokens[at].text {
            "{" => {
                if at >= 2 && tokens[at - 2].text == "mod" {
                    self.opened.push(self.braces);
                }
                self.braces += 1;
            }
            "}" => {
                self.braces = self.braces.saturating_sub(1);
                self.opened.pop_if(|opened| *opened == self.braces);
            }
            _ => {}
        }
    }

    fn depth(&self) -> usize {
        self.opened.len()
    }
}

/// The first names of a path or of a group of paths: `a::b` has `a`, `{a::{b, c}, d}` has `a` and `d`.
fn heads(tokens: &[Token]) -> Vec<Token> {
    let Some(first) = tokens.first() else { return Vec::new() };
    if first.text != "{" {
        return vec![first.clone()];
    }
    let (mut depth, mut found) = (0, Vec::new());
    for pair in tokens.windows(2) {
        match &*pair[0].text {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        if depth == 1 && matches!(&*pair[0].text, "{" | ",") && pair[1].text != "}" {
            found.push(pair[1].clone());
        }
    }
    found
}

/// Splits a source into words and marks; comments and the insides of texts are left out.
fn tokens(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let at = |place: usize| chars.get(place).copied().unwrap_or('\0');
    let (mut found, mut place, mut line) = (Vec::new(), 0, 1);
    while place < chars.len() {
        let begin = place;
        match (at(place), at(place + 1)) {
            ('/', '/') => place = end_of(&chars, place, &['\n']),
            ('/', '*') => place = end_of(&chars, place + 2, &['*', '/']),
            ('"', _) => place = end_of_text(&chars, place + 1),
            ('r', '"' | '#') if raw_hashes(&chars, place + 1).is_some() => {
                let hashes = raw_hashes(&chars, place + 1).unwrap_or(0);
                let end: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
                place = end_of(&chars, place + hashes + 2, &end);
            }
            ('\'', '\\') => place = end_of(&chars, place + 3, &['\'']),
            ('\'', _) if at(place + 2) == '\'' => place += 3,
            (':', ':') => {
                place += 2;
                found.push(Token { text: "::".into(), line });
            }
            (first, _) if first.is_alphanumeric() || first == '_' => {
                while at(place).is_alphanumeric() || at(place) == '_' {
                    place += 1;
                }
                found.push(Token { text: chars[begin..place].iter().collect(), line });
            }
            (mark, _) => {
                place += 1;
                if !mark.is_whitespace() {
                    found.push(Token { text: mark.into(), line });
                }
            }
        }
        place = place.min(chars.len());
        line += chars[begin..place].iter().filter(|c| **c == '\n').count();
    }
    found
}

/// The number of `#` before the quote of a raw text; none where no raw text begins.
fn raw_hashes(chars: &[char], from: usize) -> Option<usize> {
    let hashes = chars[from.min(chars.len())..].iter().take_while(|c| **c == '#').count();
    (chars.get(from + hashes) == Some(&'"')).then_some(hashes)
}

/// The place behind the next `end`.
fn end_of(chars: &[char], from: usize, end: &[char]) -> usize {
    let rest = chars.get(from..).unwrap_or_default();
    rest.windows(end.len())
        .position(|window| window == end)
        .map_or(chars.len(), |found| from + found + end.len())
}

/// The place behind the quote that ends a text.
fn end_of_text(chars: &[char], mut place: usize) -> usize {
    while let Some(c) = chars.get(place) {
        place += 1;
        match c {
            '\\' => place += 1,
            '"' => break,
            _ => {}
        }
    }
    place
}

/// The targets of a document's links and pictures.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next())
}

/// The Rust files under a folder.
fn sources(folder: &str) -> Vec<Source> {
    files(folder).into_iter().filter(|path| path.ends_with(".rs")).map(|path| Source::read(&path)).collect()
}

/// All files under a folder of the repository, in order; what is built and what git keeps is left out.
fn files(folder: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut folders = vec![PathBuf::from(folder)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for path in entries.map(|entry| entry.expect("a folder can be read").path()) {
            // In a linked worktree, git's is a file.
            let left_out = [".git", "target"].iter().any(|name| path.ends_with(name));
            match path.is_dir() {
                _ if left_out => {}
                true => folders.push(path),
                false => _ = found.insert(path.to_string_lossy().replace('\\', "/")),
            }
        }
    }
    found
}

/// A file of the repository: tests run in its root.
fn file(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn expect_none(wrong: impl IntoIterator<Item = String>) {
    let wrong: Vec<String> = wrong.into_iter().collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
