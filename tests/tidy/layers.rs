//! Which module may use which, and what pure modules may touch.

use crate::{
    expect_none,
    repository::{file, sources},
    source::Source,
};

/// The modules of the library, top down: each may use those after it.
pub const LAYERS: [&str; 23] = [
    "cli",
    "run",
    "ui",
    "app",
    "model",
    "executor",
    "journal",
    "recording",
    "k8s",
    "demo",
    "clock",
    "counterfactual",
    "why",
    "timing",
    "forecast",
    "operation",
    "plan",
    "placement",
    "pressure",
    "engine",
    "cluster",
    "time",
    "visible",
];

/// Modules that are functions of their arguments: no clock, IO, randomness, async, logging or client types. They are a package of
/// their own.
const PURE: [&str; 12] = [
    "counterfactual",
    "why",
    "timing",
    "forecast",
    "operation",
    "plan",
    "placement",
    "pressure",
    "engine",
    "cluster",
    "time",
    "visible",
];

/// Modules that wait, and so may use tokio's clock. All others are told the time.
const WAITING: [&str; 5] = ["run", "executor", "k8s", "demo", "clock"];

/// Files of pure modules that may hold a hash map, for nobody sees its order there.
const UNORDERED: [&str; 3] = ["src/cluster/encoding.rs", "src/cluster/names.rs", "src/placement/ids.rs"];

#[test]
fn modules_are_listed_top_down_in_the_library() {
    let listed = |library: &str| -> Vec<String> {
        let pairs = Source::read(library).tokens.into_iter().map(|token| token.text).collect::<Vec<_>>();
        pairs.windows(2).filter(|pair| pair[0] == "mod").map(|pair| pair[1].clone()).collect()
    };
    let pure = listed("src/pure.rs");
    assert_eq!(pure, PURE);
    assert_eq!([listed("src/lib.rs"), listed("src/core.rs"), pure].concat(), LAYERS);
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
    // What comes from other packages is not among the dependencies of theirs.
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
    let manifest = file("pure/Cargo.toml");
    let names = manifest.lines().filter_map(|line| line.split([' ', '.']).next()).map(str::to_owned);
    expect_none(names.filter(|name| PACKAGES.contains(&&**name)));
    const BANNED: [&str; 8] =
        ["async", "await", "Mutex", "RefCell", "SystemTime", "Instant", "println", "eprintln"];
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

/// Whether a module may use another: itself and those below it. The clock knows nothing but time, and the demo next to
/// nothing, which is to say no object and no rule: a fake that shares code with what it tests shares its bugs.
fn may_use(layer: &str, used: &str) -> bool {
    let place = |name: &str| LAYERS.iter().position(|layer| *layer == name);
    match (place(layer), place(used)) {
        _ if layer == used => true,
        (Some(_), Some(_)) if layer == "clock" => used == "time",
        (Some(_), Some(_)) if layer == "demo" => matches!(used, "clock" | "time"),
        (Some(own), Some(other)) => own < other,
        // The program itself stands above all; anything else at the root is no module of ours.
        (None, _) => true,
        (Some(_), None) => false,
    }
}
