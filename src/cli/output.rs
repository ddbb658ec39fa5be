//! Output of answers: format and colours.

use std::io::IsTerminal;

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::{
    CliError, exit,
    glyphs::glyphs,
    page::{Layout, Page},
};
use crate::ui::exported_table::ExportFormat;

#[derive(Args, Clone, Copy, Debug, Default)]
pub struct OutputArgs {
    /// How to print the answer; `wide` neither cuts nor folds rows on a terminal, `csv` and `md` print tables for other
    /// programs
    #[arg(long, short, value_enum, default_value_t = Output::Table, global = true)]
    output: Output,
    /// When to use colours: `auto` on a terminal unless NO_COLOR is set
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = ColorMode::Auto, global = true)]
    color: ColorMode,
    /// Print with characters of ASCII only; by default on a terminal whose locale is not UTF-8
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
        hide_possible_values = true, global = true)]
    ascii: Option<bool>,
}

/// How an answer is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    #[default]
    Table,
    Wide,
    Json,
    Yaml,
    Csv,
    Md,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum ColorMode {
    #[default]
    Auto,
    Always,
    Never,
}

impl OutputArgs {
    /// Prints a report in the requested format; `table` renders it for people.
    pub fn print<T: Serialize>(self, report: &T, table: impl FnOnce(&T, &mut Page)) -> Result<(), CliError> {
        let text = match self.output {
            Output::Table | Output::Wide | Output::Csv | Output::Md => {
                let mut page = self.page();
                table(report, &mut page);
                page.unprinted_gaps().iter().for_each(|gap| exit::note(gap));
                page.into_text()
            }
            Output::Json => exit::to_json(report),
            Output::Yaml => exit::to_yaml(report),
        };
        exit::print(text.as_bytes())
    }

    /// Creates an empty page for standard output.
    pub fn page(self) -> Page {
        let glyphs = glyphs(self.ascii, std::io::stdout().is_terminal());
        Page::new(match self.export() {
            Some(format) => Layout::for_export(format, glyphs),
            None => Layout::for_stdout(self.output == Output::Wide, self.has_color(), glyphs),
        })
    }

    const fn export(self) -> Option<ExportFormat> {
        match self.output {
            Output::Csv => Some(ExportFormat::Csv),
            Output::Md => Some(ExportFormat::Markdown),
            Output::Table | Output::Wide | Output::Json | Output::Yaml => None,
        }
    }

    /// Fails if CSV was asked of a command without tables. `why` says what the command prints instead.
    pub fn refuse_csv(self, why: &str) -> Result<(), CliError> {
        match self.output {
            Output::Csv => {
                Err(CliError::Usage(format!("-o csv prints tables, and {why}: use -o md, json or yaml")))
            }
            Output::Table | Output::Wide | Output::Json | Output::Yaml | Output::Md => Ok(()),
        }
    }

    /// Fails if a table format for other programs (CSV, Markdown) was requested of a command that prints line by line.
    /// `why` is the reason in the error text.
    pub fn refuse_export(self, why: &str) -> Result<(), CliError> {
        match self.export() {
            Some(_) => {
                let text =
                    format!("-o csv and -o md print whole tables, and {why}: use -o table, json or yaml");
                Err(CliError::Usage(text))
            }
            None => Ok(()),
        }
    }

    /// Formats one report of a series: JSON in one line, YAML as a document.
    pub fn one_line<T: Serialize>(self, report: &T) -> String {
        match self.output {
            Output::Yaml => format!("---\n{}", exit::to_yaml(report)),
            Output::Table | Output::Wide | Output::Json | Output::Csv | Output::Md => {
                exit::to_json_line(report)
            }
        }
    }

    /// Whether the output is for people, not for programs.
    pub const fn is_for_people(self) -> bool {
        matches!(self.output, Output::Table | Output::Wide)
    }

    /// Whether the output has all fields of a report.
    pub const fn has_fields(self) -> bool {
        matches!(self.output, Output::Json | Output::Yaml)
    }

    fn has_color(self) -> bool {
        let is_set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        match self.color {
            ColorMode::Always => true,
            ColorMode::Never => false,
            ColorMode::Auto => {
                let is_dumb = is_set("TERM").is_none_or(|term| term == "dumb");
                std::io::stdout().is_terminal() && is_set("NO_COLOR").is_none() && !is_dumb
            }
        }
    }
}
