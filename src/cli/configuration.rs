//! `kordon config`: the effective settings.

use clap::Args;
use serde::Serialize;

use super::{
    config::{Config, ConfiguredValue},
    exit::CliError,
    output::OutputArgs,
    page::{Emphasis, Page, none},
    table::PageTable,
};

#[derive(Args, Debug)]
pub struct ConfigArgs {
    #[command(flatten)]
    output: OutputArgs,
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

/// Prints each setting with its value and its source.
pub fn run(args: &ConfigArgs, config: &Config) -> Result<(), CliError> {
    args.output.print(&ConfigReport::new(config), render)
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
        let page = include_str!("../../docs/reference/config.md");
        let report = ConfigReport::new(&Config::default());
        for setting in &report.settings {
            let key = setting.key.rsplit('.').next().unwrap_or_default();
            assert!(page.contains(&format!("`{key}`")), "{} is not documented", setting.key);
        }
        documented::check::<ConfigReport>("config");
    }
}
