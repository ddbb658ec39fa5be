//! Names of themes on the command line and in the configuration.

use std::ffi::OsStr;

use clap::{
    Arg, Command, Error,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};

use super::own::OwnThemes;
use crate::app::ThemeName;

/// Name for the bundled theme that suits the terminal's background.
pub const AUTO: &str = "auto";

/// Accepts `auto`, the bundled themes, and those of the user.
#[derive(Clone, Debug)]
pub struct ThemeNameParser;

fn bundled() -> impl Iterator<Item = &'static str> {
    std::iter::once(AUTO).chain(ThemeName::ALL.iter().map(|theme| theme.as_str()))
}

impl TypedValueParser for ThemeNameParser {
    type Value = String;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<String, Error> {
        let given = value.to_str().map(str::to_owned);
        match given.filter(|name| OwnThemes::find().names().contains(name)) {
            Some(own) => Ok(own),
            None => PossibleValuesParser::new(bundled()).parse_ref(command, arg, value),
        }
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(bundled().map(PossibleValue::new)))
    }
}
