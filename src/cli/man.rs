//! `kordon man`: the manual page.

use super::{Failure, definition, exit};

pub fn print() -> Result<(), Failure> {
    let mut page = Vec::new();
    let rendered = clap_mangen::Man::new(definition()).render(&mut page);
    rendered.map_err(|error| Failure::Io { doing: "writing the manual page".into(), error })?;
    exit::print(&page)
}
