//! Command lines.

use std::{ffi::OsString, os::unix::ffi::OsStringExt};

use kordon::cli;

/// The arguments, one a line: they are understood, or refused with an error that is harmless on a terminal.
pub fn arguments(data: &[u8]) {
    let words = data.split(|byte| *byte == b'\n').map(|word| OsString::from_vec(word.to_vec()));
    if let Err(error) = cli::check(std::iter::once("kordon".into()).chain(words)) {
        super::assert_harmless(&error);
    }
}
