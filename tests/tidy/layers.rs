//! The layers: which module may use which others, and what pure modules must not use.

use crate::{
    expect_none,
    repository::{file, library, sources},
    source::Source,
};

/// The modules of the program, top down. Each module may use the modules after it, and the packages below the program.
pub const PROGRAM: [&str; 10] =
    ["cli", "run", "ui", "app", "model", "executor", "journal", "recording", "objects", "k8s"];

/// The modules of `kordon-core`, top down. They are functions of their arguments: no clock, IO, randomness, async,
/// logging or client types.
pub const CORE: [&str; 12] = [
    "counterfactual",
    "why",
    "timing",
    "forecast",
    "maintenance",
    "operation",
    "plan",
    "placement",
    "pressure",
    "engine",
    "cluster",
    "visible",
];

/// Packages without side effects.
const PURE: [&str; 2] = ["crates/kordon-core", "crates/kordon-time"];

/// Packages of the repository that each package may use. The demo shares no objects and no rules with kordon, because a
/// fake that shares code with the code under test shares its bugs.
const OURS: [(&str, &[&str]); 4] = [
    ("crates/kordon-core", &["kordon-time"]),
    ("crates/kordon-demo", &["kordon-clock", "kordon-time"]),
    ("crates/kordon-clock", &["kordon-time"]),
    ("crates/kordon-time", &[]),
];

/// Modules of the program that wait and so may use tokio's clock. All others get the time as an argument.
const WAITING: [&str; 3] = ["run", "executor", "k8s"];

/// Files of pure packages that may use a hash map, because the order of the map has no visible effect.
const UNORDERED: [&str; 4] = [
    "crates/kordon-core/src/cluster/encoding.rs",
    "crates/kordon-core/src/cluster/names.rs",
    "crates/kordon-core/src/placement/devices/selector.rs",
    "crates/kordon-core/src/placement/ids.rs",
];

#[test]
fn modules_are_listed_top_down_in_the_library() {
    let listed = |library: &str| -> Vec<String> {
        let pairs = Source::read(library).tokens.into_iter().map(|token| token.text).collect::<Vec<_>>();
        pairs.windows(2).filter(|pair| pair[0] == "mod").map(|pair| pair[1].clone()).collect()
    };
    assert_eq!(listed("src/lib.rs"), PROGRAM);
    assert_eq!(listed("crates/kordon-core/src/lib.rs"), CORE);
}

#[test]
fn imports_go_down_the_layers_only() {
    let packages: [(&str, &[&str]); 2] = [("src", &PROGRAM), ("crates/kordon-core/src", &CORE)];
    expect_none(packages.into_iter().flat_map(|(folder, layers)| {
        sources(folder).into_iter().flat_map(move |source| {
            let layer = source.layer();
            let wrong = source.imports().into_iter().filter(|import| !may_use(layers, &layer, &import.text));
            wrong
                .map(|import| format!("{}:{}: {layer} uses {}", source.path, import.line, import.text))
                .collect::<Vec<_>>()
        })
    }));
}

#[test]
fn packages_use_of_ours_only_what_they_may() {
    expect_none(OURS.into_iter().flat_map(|(package, may)| {
        let used = dependencies(package).into_iter().filter(|name| name.starts_with("kordon"));
        used.filter(|name| !may.contains(&&**name)).map(move |name| format!("{package} uses {name}"))
    }));
}

#[test]
fn pure_modules_touch_nothing_outside() {
    // Packages on which pure packages must not depend.
    const PACKAGES: [&str; 11] = [
        "tokio",
        "tokio-util",
        "futures",
        "kube",
        "k8s-openapi",
        "hyper",
        "http",
        "fastrand",
        "tracing",
        "ratatui",
        "crossterm",
    ];
    let names = PURE.into_iter().flat_map(dependencies);
    expect_none(names.filter(|name| PACKAGES.contains(&&**name)));
    const BANNED: [&str; 8] =
        ["async", "await", "Mutex", "RefCell", "SystemTime", "Instant", "println", "eprintln"];
    expect_none(pure().iter().flat_map(|source| {
        let banned = source.tokens.iter().filter(|token| BANNED.contains(&&*token.text));
        let std_io = source.paths_of("std", &["fs", "io", "net", "thread", "env", "process"]);
        banned.cloned().chain(std_io).map(|token| format!("{}:{}: {}", source.path, token.line, token.text))
    }));
}

#[test]
fn no_order_of_a_hash_map_can_leave_the_pure_modules() {
    let hash_types = ["HashMap", "HashSet", "FxHashMap", "FxHashSet"];
    expect_none(pure().iter().filter(|source| !UNORDERED.contains(&&*source.path)).flat_map(|source| {
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
    expect_none(library().iter().flat_map(|source| {
        let arc_mutex_app = source.tokens.windows(4).filter(|t| t[0].text == "Mutex" && t[2].text == "App");
        let mutable_globals =
            source.tokens.windows(2).filter(|t| t[0].text == "static" && t[1].text == "mut");
        arc_mutex_app
            .chain(mutable_globals)
            .map(|t| format!("{}:{}", source.path, t[0].line))
            .collect::<Vec<_>>()
    }));
}

#[test]
fn the_reader_of_sources_sees_through_text_and_nesting() {
    let source = Source::parse(
        "src/ui/panes/nodes.rs",
        r##"
        use crate::{engine::{Why, Settings}, cluster::Node, k8s};
        // a comment that names crate::run
        const TEXT: &str = "crate::cli"; const RAW: &str = r#"crate::demo "quoted""#;
        const CHAR: char = '"'; fn life<'a>(x: &'a str) { let y = crate::forecast::run(x); }
        use super::super::text;       // ui::text
        use super::super::super::app; // the crate root
        mod tests { use super::super::super::super::clock; use super::super::super::theme; }
        "##,
    );
    let mut names: Vec<_> = source.imports().into_iter().map(|import| import.text).collect();
    names.sort();
    assert_eq!(names, ["app", "clock", "cluster", "engine", "forecast", "k8s"]);
    assert!(
        may_use(&PROGRAM, "run", "k8s")
            && !may_use(&PROGRAM, "k8s", "run")
            && !may_use(&CORE, "engine", "app")
    );
}

/// Whether a module may use another module of its package: only itself and those below it.
fn may_use(layers: &[&str], layer: &str, used: &str) -> bool {
    let place = |name: &str| layers.iter().position(|layer| *layer == name);
    match (place(layer), place(used)) {
        _ if layer == used => true,
        (Some(own), Some(other)) => own < other,
        // A file outside the layers is the crate root, which may use everything. A used name outside the layers belongs
        // to the crate root, which no layer may use.
        (None, _) => true,
        (Some(_), None) => false,
    }
}

/// Returns the files of the pure packages.
fn pure() -> Vec<Source> {
    PURE.into_iter().flat_map(|package| sources(&format!("{package}/src"))).collect()
}

/// Returns the dependencies of a package, without those of its tests.
fn dependencies(package: &str) -> Vec<String> {
    let manifest = file(&format!("{package}/Cargo.toml"));
    let section = manifest.split_once("\n[dependencies]\n").map_or("", |(_, section)| section);
    let section = section.split("\n[").next().unwrap_or_default();
    let names = section.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    names.filter_map(|line| line.split([' ', '.']).next()).map(str::to_owned).collect()
}
