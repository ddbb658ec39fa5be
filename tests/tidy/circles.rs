//! Finds cycles in the use of files: modules of one layer that use each other.
//!
//! In the graph, each file is a node, and each path to a name that another file defines is an edge. A re-exported name
//! (`pub use`) counts as a use of the file that defines it. Two uses are ignored: those in code that is compiled only
//! for tests, and those of a module by the files below it, because a module and its parts are one unit.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    expect_none,
    repository::{PACKAGES, sources},
    source::{Source, Token},
};

#[test]
fn files_of_a_layer_do_not_use_each_other_in_circles() {
    let graphs = PACKAGES.map(|folder| Graph::of(&sources(folder)));
    let circles: BTreeSet<Vec<String>> = graphs
        .iter()
        .flat_map(|graph| graph.circles().into_iter().chain(graph.of_folders().circles()))
        .collect();
    expect_none(circles.iter().map(|circle| circle.join(" <-> ")));
}

#[test]
fn the_finder_of_circles_follows_names_to_the_file_that_defines_them() {
    let parse = |files: &[(&str, &str)]| -> Vec<Source> {
        files.iter().map(|(path, text)| Source::parse(path, text)).collect()
    };
    let mut files = vec![
        ("src/lib.rs", "pub mod pair; pub mod ring;"),
        ("src/pair/mod.rs", "mod left; mod right; pub use left::Left; pub use right::{Right as Other};"),
        ("src/pair/left.rs", "use super::Other; pub struct Left(Other);"),
        ("src/pair/right.rs", "pub struct Right; #[cfg(test)] mod tests { use super::super::Left; }"),
        ("src/ring/mod.rs", "mod first; mod second; pub struct Ring; fn go() { first::go() }"),
        ("src/ring/first.rs", "pub fn go(_: super::Ring) -> crate::ring::second::Second { loop {} }"),
        ("src/ring/second.rs", "pub struct Second;"),
    ];
    assert_eq!(Graph::of(&parse(&files)).circles(), Vec::<Vec<String>>::new());
    // The first cycle uses a name that the parent re-exports. The second cycle uses a path in the body of a function.
    files[3].1 = "pub struct Right(Option<Box<super::Left>>);";
    files[6].1 = "pub struct Second; fn go() { crate::ring::first::go(super::Ring) }";
    let circles = [["src/pair/left.rs", "src/pair/right.rs"], ["src/ring/first.rs", "src/ring/second.rs"]];
    assert_eq!(Graph::of(&parse(&files)).circles(), circles);
    // No two files use each other, but two folders do.
    let files = [
        ("src/top/mod.rs", "mod one; mod two;"),
        ("src/top/one/mod.rs", "pub mod a; pub mod b;"),
        ("src/top/one/a.rs", "pub struct A;"),
        ("src/top/one/b.rs", "pub struct B(super::super::two::Two);"),
        ("src/top/two.rs", "pub struct Two(crate::top::one::a::A);"),
    ];
    let graph = Graph::of(&parse(&files));
    assert_eq!(graph.circles(), Vec::<Vec<String>>::new());
    assert_eq!(graph.of_folders().circles(), [["src/top/one", "src/top/two.rs"]]);
}

/// Edges from each file to the files that it uses.
struct Graph {
    uses: BTreeMap<String, BTreeSet<String>>,
}

impl Graph {
    fn of(sources: &[Source]) -> Self {
        let modules = Modules::of(sources);
        let uses = modules.by_path.iter().map(|(path, module)| {
            let others = module.paths.iter().filter_map(|used| match modules.resolve(path, used, 0)? {
                Found::Item(owner) => {
                    let counts = owner.first() == path.first() && !path.starts_with(&owner);
                    counts.then(|| modules.by_path[&owner].file.clone())
                }
                Found::Module(_) => None,
            });
            (module.file.clone(), others.collect())
        });
        Self { uses: uses.collect() }
    }

    /// Merges all files of a folder right below a layer into one node.
    fn of_folders(&self) -> Self {
        let folder = |file: &String| -> String {
            let (package, inside) = file.split_once("src/").unwrap_or(("", file));
            format!("{package}src/{}", inside.split('/').take(2).collect::<Vec<_>>().join("/"))
        };
        let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (file, used) in &self.uses {
            let own = folder(file);
            let others = used.iter().map(folder).filter(|other| *other != own);
            uses.entry(own.clone()).or_default().extend(others);
        }
        Self { uses }
    }

    /// Returns the cycles: sets of files in which each file reaches all others.
    fn circles(&self) -> Vec<Vec<String>> {
        let reach: BTreeMap<&String, BTreeSet<&String>> =
            self.uses.keys().map(|file| (file, self.reachable(file))).collect();
        let mut found = BTreeSet::new();
        for (file, others) in &reach {
            if others.contains(file) {
                let circle = others.iter().filter(|other| reach[**other].contains(*file));
                found.insert(circle.map(|other| (*other).clone()).collect::<Vec<_>>());
            }
        }
        found.into_iter().collect()
    }

    fn reachable(&self, from: &String) -> BTreeSet<&String> {
        let mut found = BTreeSet::new();
        let mut next: Vec<&String> = self.uses[from].iter().collect();
        while let Some(file) = next.pop() {
            if found.insert(file) {
                next.extend(&self.uses[file]);
            }
        }
        found
    }
}

/// The path of a module below the crate's root: `["app", "screen"]`.
type ModulePath = Vec<String>;

/// The target of a path: a module, or an item that a module defines.
enum Found {
    Module(ModulePath),
    Item(ModulePath),
}

/// One module with a file of its own.
struct Module {
    file: String,
    /// Names of the items that the module defines.
    items: BTreeSet<String>,
    /// Names that the module imports, with their paths.
    imports: BTreeMap<String, Vec<String>>,
    /// Paths of the module's glob imports.
    globs: Vec<Vec<String>>,
    /// Paths that the module uses.
    paths: BTreeSet<Vec<String>>,
}

struct Modules {
    by_path: BTreeMap<ModulePath, Module>,
}

impl Modules {
    fn of(sources: &[Source]) -> Self {
        let mut by_path = BTreeMap::new();
        let mut only_tests = BTreeSet::new();
        for source in sources {
            let path = source.module();
            let (tokens, left_out) = without_tests(&source.tokens);
            only_tests.extend(left_out.into_iter().map(|name| [&path[..], &[name]].concat()));
            by_path.insert(path, Module::of(&source.path, &tokens));
        }
        by_path.retain(|path, _| !(1..=path.len()).any(|depth| only_tests.contains(&path[..depth])));
        Self { by_path }
    }

    /// Resolves a path from a module, through re-exported names.
    fn resolve(&self, from: &ModulePath, path: &[String], depth: usize) -> Option<Found> {
        let mut at = from.clone();
        for (place, name) in path.iter().enumerate() {
            let child = [&at[..], std::slice::from_ref(name)].concat();
            match &**name {
                "crate" => at = Vec::new(),
                "self" => {}
                "super" => _ = at.pop(),
                _ if self.by_path.contains_key(&child) => at = child,
                _ => {
                    let module = self.by_path.get(&at)?;
                    if module.items.contains(name) {
                        return Some(Found::Item(at));
                    }
                    match self.passed_on(&at, module, name, depth) {
                        Some(Found::Module(other)) => at = other,
                        Some(item) => return Some(item),
                        // An unknown first name is that of another crate. An unknown later name was made by a macro.
                        None if place == 0 => return None,
                        None => return Some(Found::Item(at)),
                    }
                }
            }
        }
        Some(Found::Module(at))
    }

    /// Resolves a name that a module imports.
    fn passed_on(&self, at: &ModulePath, module: &Module, name: &str, depth: usize) -> Option<Found> {
        if depth > 8 {
            return None;
        }
        if let Some(path) = module.imports.get(name) {
            return self.resolve(at, path, depth + 1);
        }
        module.globs.iter().find_map(|glob| {
            let Some(Found::Module(other)) = self.resolve(at, glob, depth + 1) else { return None };
            let defines = self.by_path.get(&other)?.items.contains(name);
            defines.then_some(Found::Item(other))
        })
    }
}

impl Module {
    fn of(file: &str, tokens: &[Token]) -> Self {
        let mut module = Self {
            file: file.into(),
            items: items(tokens),
            imports: BTreeMap::new(),
            globs: Vec::new(),
            paths: BTreeSet::new(),
        };
        let (mut at, mut passed_on, mut words) = (0, Vec::new(), BTreeSet::new());
        while at < tokens.len() {
            let text = &*tokens[at].text;
            let starts = at == 0 || tokens[at - 1].text != "::";
            if text == "use" {
                let end = (at..tokens.len()).find(|at| tokens[*at].text == ";").unwrap_or(tokens.len());
                let public = at > 0 && matches!(&*tokens[at - 1].text, "pub" | ")");
                for leaf in leaves(&tokens[at + 1..end]) {
                    if leaf.name == "*" {
                        module.globs.push(leaf.path);
                    } else {
                        module.imports.insert(leaf.name.clone(), leaf.path.clone());
                        if public {
                            passed_on.push(leaf);
                        } else {
                            module.paths.insert(leaf.path);
                        }
                    }
                }
                at = end;
            } else if starts && is_name(text) && tokens.get(at + 1).is_some_and(|next| next.text == "::") {
                let path: Vec<String> = tokens[at..]
                    .chunks(2)
                    .take_while(|pair| is_name(&pair[0].text))
                    .scan(true, |more, pair| {
                        let here = *more;
                        *more = pair.get(1).is_some_and(|mark| mark.text == "::");
                        here.then(|| pair[0].text.clone())
                    })
                    .collect();
                words.insert(text.to_owned());
                module.paths.insert(path);
            } else {
                words.insert(text.to_owned());
            }
            at += 1;
        }
        // A re-export counts as a use only if this file also uses the name.
        let used = passed_on.into_iter().filter(|leaf| words.contains(&leaf.name));
        module.paths.extend(used.map(|leaf| leaf.path));
        module
    }
}

/// One name of a `use` declaration, with its path.
struct Leaf {
    name: String,
    path: Vec<String>,
}

/// Returns the names of a `use` declaration: `a::{b, c as d, e::*}` has b, d and all names of e.
fn leaves(tokens: &[Token]) -> Vec<Leaf> {
    let mut path = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match &*token.text {
            "::" => {}
            "{" => {
                return groups(&tokens[at + 1..])
                    .into_iter()
                    .flat_map(|group| prefixed(&path, group))
                    .collect();
            }
            "*" => return vec![Leaf { name: "*".into(), path }],
            "as" => {
                let name = tokens.get(at + 1).map_or_else(String::new, |token| token.text.clone());
                return vec![Leaf { name, path }];
            }
            "self" if !path.is_empty() => {}
            name => path.push(name.to_owned()),
        }
        at += 1;
    }
    vec![Leaf { name: path.last().cloned().unwrap_or_default(), path }]
}

fn prefixed(path: &[String], group: &[Token]) -> Vec<Leaf> {
    let inner = leaves(group).into_iter().map(|leaf| {
        // `a::{self}` means a itself.
        let itself = leaf.path == ["self"];
        let path = if itself { path.to_vec() } else { [path, &leaf.path].concat() };
        let name = if leaf.name == "self" { path.last().cloned().unwrap_or_default() } else { leaf.name };
        Leaf { name, path }
    });
    inner.collect()
}

/// Returns the comma-separated parts of a group, up to its closing brace.
fn groups(tokens: &[Token]) -> Vec<&[Token]> {
    let (mut depth, mut begin, mut found) = (0, 0, Vec::new());
    for (at, token) in tokens.iter().enumerate() {
        match &*token.text {
            "{" => depth += 1,
            "}" if depth == 0 => {
                found.push(&tokens[begin..at]);
                break;
            }
            "}" => depth -= 1,
            "," if depth == 0 => {
                found.push(&tokens[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    found.into_iter().filter(|group| !group.is_empty()).collect()
}

/// Returns the names of the items at the top level of a file.
fn items(tokens: &[Token]) -> BTreeSet<String> {
    const KINDS: [&str; 9] =
        ["struct", "enum", "union", "trait", "type", "fn", "const", "static", "macro_rules"];
    let (mut depth, mut found) = (0_usize, BTreeSet::new());
    for (at, token) in tokens.iter().enumerate() {
        match &*token.text {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth = depth.saturating_sub(1),
            kind if depth == 0 && KINDS.contains(&kind) => {
                let name = tokens[at + 1..].iter().find(|token| !matches!(&*token.text, "mut" | "!"));
                found.extend(name.filter(|name| is_name(&name.text)).map(|name| name.text.clone()));
            }
            _ => {}
        }
    }
    found
}

/// Returns the tokens without the code that is compiled only for tests, and the names of the modules that are compiled
/// only for tests.
pub fn without_tests(tokens: &[Token]) -> (Vec<Token>, Vec<String>) {
    const ATTRIBUTE: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let (mut kept, mut modules, mut at) = (Vec::new(), Vec::new(), 0);
    while at < tokens.len() {
        let window = tokens[at..].iter().take(ATTRIBUTE.len()).map(|token| &*token.text);
        if window.eq(ATTRIBUTE) {
            let end = end_of_item(tokens, at + ATTRIBUTE.len());
            let item = &tokens[at + ATTRIBUTE.len()..end];
            if let [keyword, name, mark] = item
                && (&*keyword.text, &*mark.text) == ("mod", ";")
            {
                modules.push(name.text.clone());
            }
            at = end;
        } else {
            kept.push(tokens[at].clone());
            at += 1;
        }
    }
    (kept, modules)
}

/// Returns the index after an item: after its semicolon or its closing brace.
fn end_of_item(tokens: &[Token], from: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(from) {
        match &*token.text {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => {
                depth = depth.saturating_sub(1);
                if depth == 0 && token.text == "}" {
                    return at + 1;
                }
            }
            ";" if depth == 0 => return at + 1,
            _ => {}
        }
    }
    tokens.len()
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}
