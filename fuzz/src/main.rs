//! The fuzzer's side of `tests/fuzz/targets`: `kordon-fuzz TARGET` under `cargo afl fuzz`, or `kordon-fuzz TARGET
//! FILE…` to run single inputs.

#[path = "../../tests/program/dashboard_fixture.rs"]
mod dashboard_fixture;
#[path = "../../tests/fuzz/targets/mod.rs"]
mod targets;

use std::{env, fs, process::ExitCode};

use targets::TARGETS;

fn main() -> ExitCode {
    let mut arguments = env::args().skip(1);
    let name = arguments.next().unwrap_or_default();
    let Some(target) = TARGETS.iter().find(|target| target.name == name) else {
        let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        println!("{}", names.join("\n"));
        return ExitCode::FAILURE;
    };
    (target.prepare)();
    let files: Vec<String> = arguments.collect();
    for path in &files {
        (target.run)(&fs::read(path).expect("the file of the input"));
    }
    if files.is_empty() {
        afl::fuzz!(|data: &[u8]| (target.run)(data));
    }
    ExitCode::SUCCESS
}
