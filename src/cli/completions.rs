//! `kordon completions`: what a shell needs to complete our command line.

use clap::Args;
use clap_complete::Shell;

use super::{CliError, definition, exit};

#[derive(Args, Debug)]
pub struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub fn print(args: &CompletionsArgs) -> Result<(), CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut definition(), "kordon", &mut script);
    exit::print(&script)
}
