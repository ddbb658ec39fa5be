//! `kordon completions`: shell completions for the command line.

use clap::Args;
use clap_complete::Shell;

use super::exit::{self, CliError};

#[derive(Args, Debug)]
pub struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub fn print(args: &CompletionsArgs, definition: &mut clap::Command) -> Result<(), CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, definition, "kordon", &mut script);
    exit::print(&script)
}
