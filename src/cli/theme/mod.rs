//! `kordon theme`: converts themes of other programs.

mod colour_names;
mod skin;

use std::{fs, path::PathBuf};

use clap::{Args, Subcommand};

use super::exit::{self, CliError};

#[derive(Args, Clone, Debug)]
pub struct ThemeArgs {
    #[command(subcommand)]
    command: ThemeCommand,
}

#[derive(Clone, Debug, Subcommand)]
enum ThemeCommand {
    /// Print a theme made of a skin of k9s, for ~/.config/kordon/themes/NAME.toml
    Convert {
        /// Skin of k9s: a YAML file
        #[arg(value_name = "SKIN.yaml")]
        skin: PathBuf,
    },
}

/// Runs `kordon theme`.
pub fn run(args: &ThemeArgs) -> Result<(), CliError> {
    let ThemeCommand::Convert { skin: path } = &args.command;
    let text = fs::read_to_string(path)
        .map_err(|error| CliError::Io { doing: format!("reading {}", path.display()), error })?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let converted = skin::convert(&name, &text)
        .map_err(|why| CliError::Usage(format!("{} is not a skin of k9s: {why}", path.display())))?;
    converted.notes.iter().for_each(|text| exit::note(text));
    exit::print(converted.theme.as_bytes())
}
