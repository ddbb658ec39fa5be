//! `kordon config`: prints, checks and edits the configuration.

mod default_file;
mod edit;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};
use serde::Serialize;

use super::{
    config::{Config, ConfigError, ConfiguredValue, schema},
    exit::{self, CliError},
    output::OutputArgs,
    page::{Emphasis, Page, none},
    table::PageTable,
};

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ConfigArgs {
    #[command(subcommand)]
    command: Option<ConfigCommand>,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Print each setting, its value, and where that comes from; the same as `kordon config` alone
    Show {
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Check the file, and print every error with its line
    Check {
        /// File to check (default: the file that kordon reads)
        file: Option<PathBuf>,
    },
    /// Print a file with every key, its meaning and its default
    Default,
    /// Print the JSON schema of the file, for editors
    Schema,
    /// Edit the file with $VISUAL or $EDITOR; it is replaced only if the result is valid
    Edit,
}

impl ConfigArgs {
    /// Whether the command works with a configuration that cannot be read.
    pub const fn is_about_the_file(&self) -> bool {
        matches!(
            self.command,
            Some(
                ConfigCommand::Check { .. }
                    | ConfigCommand::Default
                    | ConfigCommand::Schema
                    | ConfigCommand::Edit
            )
        )
    }
}

/// The effective configuration (`docs/reference/config.md`).
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct ConfigReport {
    /// `kordon.config/v1`: fields are added, never removed or renamed.
    schema: &'static str,
    /// Path of the file, whether or not it exists.
    file: String,
    settings: Vec<ConfiguredValue>,
}

pub fn run(args: &ConfigArgs, config: &Config) -> Result<(), CliError> {
    let show = |output: &OutputArgs| output.print(&ConfigReport::new(config), render);
    match &args.command {
        None => show(&args.output),
        Some(ConfigCommand::Show { output }) => show(output),
        Some(ConfigCommand::Check { file }) => check(file.as_deref()),
        Some(ConfigCommand::Default) => exit::print(default_file::text().as_bytes()),
        Some(ConfigCommand::Schema) => exit::print(exit::to_json(&schema()).as_bytes()),
        Some(ConfigCommand::Edit) => edit::edit(&own_file()?),
    }
}

/// Prints every error of a file, or that the file has no errors.
fn check(named: Option<&Path>) -> Result<(), CliError> {
    let path = named.map_or_else(own_file, |path| Ok(path.to_owned()))?;
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound && named.is_none() => {
            return exit::print(
                format!("{}: no file, so every key has its default\n", path.display()).as_bytes(),
            );
        }
        Err(error) => return Err(ConfigError::Io { path, error }.into()),
    };
    let checked = Config::parse_fully(&path, &text).and_then(|config| match config.broken_themes() {
        broken if broken.is_empty() => Ok(()),
        broken => Err(broken),
    });
    match checked {
        Ok(()) => exit::print(format!("{}: ok\n", path.display()).as_bytes()),
        Err(errors) => {
            exit::print(lines(&errors).as_bytes())?;
            let count = errors.len();
            let errors = if count == 1 { "1 error".into() } else { format!("{count} errors") };
            Err(CliError::Usage(format!("{errors} in {}", path.display())))
        }
    }
}

/// A line for each error: `FILE:LINE: TEXT`.
fn lines(errors: &[ConfigError]) -> String {
    errors.iter().map(|error| exit::error_text(error) + "\n").collect()
}

/// The file that kordon reads, whether or not it exists.
fn own_file() -> Result<PathBuf, CliError> {
    Config::own_file().ok_or_else(|| {
        CliError::Usage("there is no place for a configuration: set XDG_CONFIG_HOME or HOME".into())
    })
}

impl ConfigReport {
    fn new(config: &Config) -> Self {
        let file = config.path().display().to_string();
        Self { schema: "kordon.config/v1", file, settings: config.effective() }
    }
}

fn render(report: &ConfigReport, out: &mut Page) {
    out.line(Emphasis::Plain, &report.file);
    let text = |text: &Option<String>| text.clone().unwrap_or_else(none);
    PageTable::new(&report.settings)
        .key("KEY", |value| value.key.clone())
        .essential("VALUE", |value| text(&value.value))
        .flexible()
        .useful("FROM", |value| value.from)
        .detail("PLACE", |value| text(&value.place))
        .flexible()
        .print(out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::documented;

    #[test]
    fn the_page_documents_every_key_and_field() {
        let page = include_str!("../../../docs/reference/config.md");
        let report = ConfigReport::new(&Config::default());
        for setting in &report.settings {
            let key = setting.key.rsplit('.').next().unwrap_or_default();
            assert!(page.contains(&format!("`{key}`")), "{} is not documented", setting.key);
        }
        documented::check::<ConfigReport>("config");
    }
    #[test]
    fn the_schema_that_is_shipped_is_the_one_that_is_checked_against() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference/config.schema.json");
        let made = exit::to_json(&schema());
        if std::env::var_os("UPDATE").is_some() {
            fs::write(file, &made).expect("the file is writable");
        }
        let shipped = fs::read_to_string(file).expect("the schema is shipped");
        assert!(shipped == made, "docs/reference/config.schema.json differs; UPDATE=1 rewrites it");
    }
}
