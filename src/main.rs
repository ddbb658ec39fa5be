//! The program: parses arguments, chooses cluster and mode, runs, and returns the exit code.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    kordon::cli::main()
}
