//! `kordon man`: the manual page.

use super::exit::{self, CliError};

pub fn print(definition: clap::Command) -> Result<(), CliError> {
    let mut page = Vec::new();
    let rendered = clap_mangen::Man::new(definition).render(&mut page);
    rendered.map_err(|error| CliError::Io { doing: "writing the manual page".into(), error })?;
    exit::print(&page)
}
