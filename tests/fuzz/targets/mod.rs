//! The table of all fuzz targets, for the fuzzer (`fuzz/`) and for the replay of its kept inputs.

mod command_line;
mod demo;
mod files;
#[path = "../../common/harmless.rs"]
mod harmless;
mod kubelet;
mod objects;
mod recording;
mod screen;
mod texts;
mod wire;

use std::{fs, future::Future, path::PathBuf, sync::OnceLock};

use tokio::runtime::{Builder, Runtime};

pub use harmless::assert_harmless;

/// A function that takes untrusted input.
pub struct Target {
    pub name: &'static str,
    /// Runs one input. Panics if an invariant is violated.
    pub run: fn(&[u8]),
    /// Prepares what all inputs share. Runs once.
    #[allow(dead_code, reason = "the fuzzer calls it before it forks")]
    pub prepare: fn(),
}

const fn target(name: &'static str, run: fn(&[u8])) -> Target {
    Target { name, run, prepare: || {} }
}

pub const TARGETS: &[Target] = &[
    target("addresses", files::addresses),
    target("arguments", command_line::arguments),
    target("cluster", screen::cluster),
    target("configuration", command_line::configuration),
    target("controller-flags", wire::controller_flags),
    target("demo-api", demo::requests),
    target("edits", texts::edits),
    target("events", wire::events),
    target("fields", texts::fields),
    target("filter", texts::filter),
    target("guards", files::guards),
    target("journal", files::journal),
    Target { name: "keys", run: screen::keys, prepare: screen::prepare },
    target("kubeconfig", files::kubeconfig),
    target("kubelet", kubelet::kubelet),
    target("objects", objects::objects),
    target("plugin", files::plugin),
    target("protobuf", objects::protobuf),
    target("quantity", texts::quantity),
    target("recording", recording::recording),
    target("selector", texts::selector),
    target("text", texts::text),
    target("theme", texts::theme),
    target("watch", wire::watch),
];

/// Writes a file with these contents to the folder of this thread, and returns its path.
pub fn file(name: &str, contents: &[u8]) -> PathBuf {
    let path = folder().join(name);
    fs::write(&path, contents).expect("a temporary file can be written");
    path
}

/// Returns the temporary folder of this thread. It is reused and not removed, because the fuzzer ends processes without
/// warning.
pub fn folder() -> PathBuf {
    let thread = std::thread::current();
    let name =
        format!("kordon-fuzz-{}-{}", std::process::id(), thread.name().unwrap_or("main").replace(':', "_"));
    let folder = std::env::temp_dir().join(name);
    fs::create_dir_all(&folder).expect("a temporary folder can be made");
    folder
}

/// Blocks on a future.
pub fn wait<T>(future: impl Future<Output = T>) -> T {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    let build = || Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("threads");
    RUNTIME.get_or_init(build).block_on(future)
}
