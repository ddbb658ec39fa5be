//! Start options of the dashboard, and the user's preferences from the configuration.

use std::{collections::BTreeMap, fmt};

use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    aliases::Aliases,
    chosen_columns::PaneColumns,
    filter::Filter,
    filter_fields::{fields, misspelt_name},
    groups::Grouping,
    keymap::Keymap,
    options::{Mode, ThemeChoice},
    pane::Pane,
    pane_layout::PaneLayout,
    sorting::check_sort,
};
use kordon_core::operation::Guards;

/// Start options of the dashboard, apart from the model.
#[derive(Clone, Debug, Default)]
pub struct AppOptions {
    pub mode: Mode,
    /// Themes that `T` cycles through; the first is active at the start. Empty means the dark theme.
    pub themes: Vec<ThemeChoice>,
    /// Preferences of the configuration for this context.
    pub preferences: Preferences,
}

/// Preferences for one context. Preferences of the context itself override those for all contexts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Preferences {
    /// Name of the configured theme; `auto` chooses a theme for the terminal; `None` if the configuration names no
    /// theme.
    pub theme: Option<String>,
    pub keymap: Keymap,
    /// Commands of the user: the name that is typed, and the command line that it stands for.
    pub aliases: Aliases,
    /// Configured columns of the lists. A list without an entry has its default columns.
    pub columns: BTreeMap<Pane, PaneColumns>,
    /// Saved views, by name.
    pub views: BTreeMap<String, SavedView>,
    /// Sizes and places of the panes.
    pub layout: PaneLayout,
    /// How this context is marked on screen; `None` if it has no mark.
    pub mark: Option<ContextMark>,
    /// Why nothing may be written in this context; `None` if the configuration allows writing.
    pub read_only: Option<String>,
    /// Guard rails of this context, besides those of the file of guard rails; the strictest of the session.
    pub guards: Option<Guards>,
}

/// A list with its filter and order, saved under a name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct SavedView {
    /// The pane that has the focus.
    #[schemars(extend("enum" = view_names()))]
    pub pane: String,
    /// Filter of the list, as it is typed.
    pub filter: String,
    /// Column that the list is sorted by; after a leading `-` its values fall from row to row.
    pub sort: String,
    /// What nodes are grouped by: `zone`, `pool`, `role` or a label.
    pub group: String,
    /// Whether the list shows its wide columns.
    pub wide: bool,
    /// Whether the pane fills the screen.
    pub zoom: bool,
    /// Sizes and places of the panes; if absent, the panes stay as they are.
    #[schemars(with = "PaneLayout")]
    pub layout: Option<PaneLayout>,
}

impl SavedView {
    /// Checks the filter, the order and the groups of the list. Returns each key with an error, and what is wrong.
    pub fn errors(&self) -> Vec<(&'static str, String)> {
        let pane = view_named(&self.pane).unwrap_or_default();
        let filter = Filter::parse(&self.filter);
        let filter = filter.error(fields(pane)).or_else(|| misspelt_name(&filter, pane));
        let sort = (!self.sort.is_empty()).then(|| check_sort(pane, &self.sort).err()).flatten();
        let group = Grouping::check(&self.group).err();
        let wrong = [("filter", filter), ("sort", sort), ("group", group)];
        wrong.into_iter().filter_map(|(key, why)| Some((key, why?))).collect()
    }

    /// The view as a table to append to a configuration. Values that equal their default are left out.
    pub fn to_toml(&self, name: &str) -> String {
        let mut lines = format!("\n[views.{name}]\npane = {}\n", quoted(&self.pane));
        for (key, text) in [("filter", &self.filter), ("sort", &self.sort), ("group", &self.group)] {
            if !text.is_empty() {
                lines.push_str(&format!("{key} = {}\n", quoted(text)));
            }
        }
        for (key, is_on) in [("wide", self.wide), ("zoom", self.zoom)] {
            if is_on {
                lines.push_str(&format!("{key} = true\n"));
            }
        }
        if let Some(layout) = &self.layout {
            lines.push_str(&format!("layout = {{ {} }}\n", layout.to_toml().join(", ")));
        }
        lines
    }
}

/// Formats a text as a basic string of TOML.
fn quoted(text: &str) -> String {
    // JSON escapes every character that TOML requires to be escaped except DEL, with sequences that are valid in TOML.
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// How a context is marked on screen, so that it is not mistaken for another one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContextMark {
    /// Word in the header and in confirmations: `PRODUCTION`; the name of the context if the configuration has no word.
    pub word: String,
    pub colour: Option<MarkColour>,
}

/// Colour of a context's mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkColour {
    /// One of the terminal's sixteen colours, by its number.
    Ansi(u8),
    Rgb(u8, u8, u8),
}

/// Names of the terminal's sixteen colours, by their numbers.
const ANSI_COLOURS: [&str; 16] = [
    "black",
    "red",
    "green",
    "yellow",
    "blue",
    "magenta",
    "cyan",
    "white",
    "bright-black",
    "bright-red",
    "bright-green",
    "bright-yellow",
    "bright-blue",
    "bright-magenta",
    "bright-cyan",
    "bright-white",
];

impl MarkColour {
    /// Parses a name of the terminal's sixteen colours, or `#rrggbb`.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(digits) = text.strip_prefix('#') {
            let is_colour = digits.len() == 6 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            let [_, red, green, blue] =
                u32::from_str_radix(digits, 16).ok().filter(|_| is_colour)?.to_be_bytes();
            return Some(Self::Rgb(red, green, blue));
        }
        let number = ANSI_COLOURS.iter().position(|name| *name == text)?;
        u8::try_from(number).ok().map(Self::Ansi)
    }

    /// The names that [`Self::parse`] accepts, besides `#rrggbb`.
    pub const fn names() -> [&'static str; 16] {
        ANSI_COLOURS
    }
}

impl fmt::Display for MarkColour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ansi(number) => f.write_str(ANSI_COLOURS[usize::from(*number) % ANSI_COLOURS.len()]),
            Self::Rgb(red, green, blue) => write!(f, "#{red:02x}{green:02x}{blue:02x}"),
        }
    }
}

/// Names of the panes that are lists, as the configuration has them.
pub fn list_names() -> Vec<String> {
    Pane::LISTS.iter().map(|pane| pane.title().to_lowercase()).collect()
}

/// The list with this name.
pub fn list_named(name: &str) -> Option<Pane> {
    Pane::LISTS.into_iter().find(|pane| pane.title().to_lowercase() == name)
}

/// The panes that a view can show: the lists, and the journal, whose order is fixed.
fn view_panes() -> impl Iterator<Item = Pane> {
    Pane::LISTS.into_iter().chain([Pane::Journal])
}

fn view_names() -> Vec<String> {
    view_panes().map(|pane| pane.title().to_lowercase()).collect()
}

/// The pane with this name, if a view can show it.
pub fn view_named(name: &str) -> Option<Pane> {
    view_panes().find(|pane| pane.title().to_lowercase() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_that_is_kept_is_read_back() {
        let views = [
            SavedView {
                pane: "nodes".into(),
                filter: "state!=Ready \"a\\b\" /é\\t/\u{7f}".into(),
                sort: "-pods".into(),
                group: "zone".into(),
                wide: true,
                zoom: false,
                layout: toml::from_str("below = 50\nplaces = { journal = \"left\" }").expect("a layout"),
            },
            SavedView { pane: "budgets".into(), ..SavedView::default() },
        ];
        let text: String =
            views.iter().enumerate().map(|(number, view)| view.to_toml(&format!("v-{number}"))).collect();
        #[derive(Deserialize)]
        struct File {
            views: BTreeMap<String, SavedView>,
        }
        let file: File = toml::from_str(&format!("theme = \"nord\"{text}")).expect("valid TOML");
        assert_eq!(file.views.into_values().collect::<Vec<_>>(), views);
    }

    #[test]
    fn colours_are_names_of_the_terminals_or_six_hexadecimal_digits() {
        assert_eq!(MarkColour::parse("red"), Some(MarkColour::Ansi(1)));
        assert_eq!(MarkColour::parse("#ff8000"), Some(MarkColour::Rgb(255, 128, 0)));
        for text in ["bright-white", "#ff8000"] {
            assert_eq!(MarkColour::parse(text).map(|colour| colour.to_string()).as_deref(), Some(text));
        }
        for wrong in ["", "pink", "Red", "#fff", "#+12345", "#ff80000", "#é0000"] {
            assert_eq!(MarkColour::parse(wrong), None, "{wrong}");
        }
    }
}
