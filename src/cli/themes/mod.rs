//! The themes that can be chosen: their names, the user's own files, and the background of the terminal.

mod background;
mod name;
mod own;

pub use background::is_light;
pub use name::{AUTO, ThemeNameParser};
pub use own::{OwnThemeError, OwnThemes};
