//! `kordon man`: the manual page.

use super::{CliError, definition, exit};

pub fn print() -> Result<(), CliError> {
    let mut page = Vec::new();
    let rendered = clap_mangen::Man::new(definition()).render(&mut page);
    rendered.map_err(|error| CliError::Io { doing: "writing the manual page".into(), error })?;
    exit::print(&page)
}
