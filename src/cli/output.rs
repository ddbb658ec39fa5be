//! Output of answers: format and colours.

use std::io::IsTerminal;

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::{
    CliError, exit,
    glyphs::glyphs,
    page::{Layout, Page},
};

#[derive(Args, Clone, Copy, Debug, Default)]
pub struct OutputArgs {
    /// How to print it; `wide` neither cuts nor folds rows on a terminal
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
            Output::Table | Output::Wide => {
                let mut page = self.page();
                table(report, &mut page);
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
        Page::new(Layout::for_stdout(self.output == Output::Wide, self.has_color(), glyphs))
    }

    /// Formats one of several reports: JSON in one line, YAML as a document.
    pub fn one_line<T: Serialize>(self, report: &T) -> String {
        match self.output {
            Output::Yaml => format!("---\n{}", exit::to_yaml(report)),
            Output::Table | Output::Wide | Output::Json => exit::to_json_line(report),
        }
    }

    /// Whether the output is for people, not for programs.
    pub fn is_for_people(self) -> bool {
        matches!(self.output, Output::Table | Output::Wide)
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
