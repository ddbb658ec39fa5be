//! The keys of a session: a preset, changed by the configuration.

use std::collections::BTreeMap;

use crossterm::event::KeyEvent;
use tui_input::InputRequest;

use super::{
    chord::{Chord, ChordError},
    columns::{
        AuditColumn, BudgetColumn, DepartureColumn, EventColumn, EvictionColumn, NodeColumn, PendingColumn,
        PodColumn, SortColumn, ZoneColumn,
    },
    commands::{COMMANDS, Command, KeyContext, UserAction},
    key_presets::KeyPreset,
    pane::{KeyFocus, Pane},
};
use kordon_core::cluster::nearest::nearest;

/// The keys of all commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keymap {
    bindings: Vec<Binding>,
    /// Whether digits before a move repeat it.
    pub has_counts: bool,
    /// Whether moves after the start of a range extend it, as in vim.
    pub extends_ranges: bool,
}

/// A key that runs a command.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Binding {
    chord: Chord,
    command: &'static Command,
    /// Argument that the key gives to a typed command.
    argument: String,
    context: KeyContext,
}

/// Why keys cannot be bound as configured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeymapError {
    #[error("there is no command {name:?}{}", meant.map(|meant| format!("; did you mean {meant:?}?")).unwrap_or_default())]
    Unknown { name: String, meant: Option<&'static str> },
    #[error("{command}: {error}")]
    NoKey {
        command: String,
        #[source]
        error: ChordError,
    },
    #[error("{command} takes no argument")]
    NoArgument { command: &'static str },
    #[error("{chord} would be both {one} and {other}: bind one of them to another key")]
    Conflict { chord: Chord, one: String, other: String },
    #[error("no key quits, and none opens the palette for :quit: leave a key to one of them")]
    NoWayOut,
}

/// Keys by the command that they run, as in `drain` or `sort age`. They replace the command's own keys.
pub type ConfiguredKeys = BTreeMap<String, Vec<String>>;

impl Default for Keymap {
    fn default() -> Self {
        Self::preset(KeyPreset::Default)
    }
}

impl Keymap {
    /// Returns the keys of a preset, changed as the configuration says.
    ///
    /// # Errors
    /// There is no such command or key, or a key would run two commands at the same focus. The list is not empty: it has
    /// an error for each such command and key, and one for each two commands of a key.
    pub fn new(preset: KeyPreset, configured: &ConfiguredKeys) -> Result<Self, Vec<KeymapError>> {
        let mut keymap = Self::preset(preset);
        let mut errors: Vec<KeymapError> =
            configured.iter().flat_map(|(text, keys)| keymap.bind(text, keys)).collect();
        errors.extend(keymap.conflicts());
        let has_way_out =
            keymap.bindings.iter().any(|binding| ["quit", "palette"].contains(&binding.command.name));
        errors.extend((!has_way_out).then_some(KeymapError::NoWayOut));
        if errors.is_empty() { Ok(keymap) } else { Err(errors) }
    }

    fn preset(preset: KeyPreset) -> Self {
        let own = COMMANDS.iter().flat_map(|command| {
            let keys = preset.keys(command.name).unwrap_or(command.keys);
            keys.iter().map(|chord| Binding::new(*chord, command, String::new()))
        });
        let mut bindings: Vec<Binding> = own.collect();
        if preset.sorts_by_letter() {
            sort_keys::<ZoneColumn>(&[Pane::Zones], &mut bindings);
            sort_keys::<NodeColumn>(&[Pane::Nodes], &mut bindings);
            sort_keys::<PodColumn>(&[Pane::Pods], &mut bindings);
            sort_keys::<EvictionColumn>(&[Pane::Evictions], &mut bindings);
            sort_keys::<EventColumn>(&[Pane::Events], &mut bindings);
            sort_keys::<PendingColumn>(&[Pane::Pending], &mut bindings);
            sort_keys::<DepartureColumn>(&[Pane::Departures], &mut bindings);
            sort_keys::<BudgetColumn>(&[Pane::Budgets], &mut bindings);
            sort_keys::<AuditColumn>(&[Pane::Audit], &mut bindings);
        }
        Self { bindings, has_counts: preset.has_counts(), extends_ranges: preset == KeyPreset::Vim }
    }

    /// Binds a command, with its argument if it has one, to these keys alone. Returns what is wrong.
    fn bind(&mut self, text: &str, keys: &[String]) -> Vec<KeymapError> {
        let (name, argument) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let argument = argument.trim().to_owned();
        let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
            let meant = nearest(name, COMMANDS.iter().map(|command| command.name));
            return vec![KeymapError::Unknown { name: name.to_owned(), meant }];
        };
        if !argument.is_empty() && !command.takes_argument() {
            return vec![KeymapError::NoArgument { command: command.name }];
        }
        self.bindings.retain(|binding| binding.command != command || binding.argument != argument);
        let mut errors = Vec::new();
        for key in keys {
            match key.parse::<Chord>() {
                Ok(chord) => self.bindings.push(Binding::new(chord, command, argument.clone())),
                Err(error) => errors.push(KeymapError::NoKey { command: text.to_owned(), error }),
            }
        }
        errors
    }

    /// The keys that would run two commands at the same focus.
    fn conflicts(&self) -> impl Iterator<Item = KeymapError> {
        self.bindings.iter().enumerate().flat_map(move |(place, one)| {
            let others = self.bindings[place + 1..].iter().filter(move |other| one.conflicts_with(other));
            others.map(move |other| {
                let (chord, one, other) = (one.chord, one.text(), other.text());
                KeymapError::Conflict { chord, one, other }
            })
        })
    }

    /// Returns the action that a key runs with this focus, and the argument of a typed command.
    pub fn action(&self, key: KeyEvent, focus: KeyFocus) -> Option<(UserAction, &str)> {
        let chord = Chord::from(key);
        let binding = self.bindings.iter().find(|binding| binding.chord == chord && binding.applies(focus));
        let typed = || match (focus, chord.typed()) {
            (KeyFocus::Input(_), Some(letter)) => {
                Some((UserAction::Edit(InputRequest::InsertChar(letter)), ""))
            }
            _ => None,
        };
        binding.map(|binding| (binding.command.action, binding.argument.as_str())).or_else(typed)
    }

    /// Message for a key that runs nothing here.
    pub fn unknown(&self, key: KeyEvent) -> String {
        let chord = Chord::from(key);
        let is_elsewhere =
            |binding: &&Binding| binding.chord == chord && matches!(binding.context, KeyContext::In(_));
        let Some(first) = self.bindings.iter().find(is_elsewhere) else {
            return format!("{chord} is not a key: ? shows them all");
        };
        let mut elsewhere = self.bindings.iter().filter(is_elsewhere);
        if elsewhere.any(|binding| binding.command != first.command) {
            return format!("{chord} is a key of other panes: ? shows those of this pane");
        }
        let (name, context) = (first.text(), first.context);
        format!("{chord} ({name}) is a key {context}: ? shows those of this pane")
    }

    /// Keys of a command.
    pub fn keys<'a>(&'a self, command: &'a Command) -> impl Iterator<Item = Chord> + 'a {
        let of_command = move |binding: &&Binding| binding.command == command && binding.argument.is_empty();
        self.bindings.iter().filter(of_command).map(|binding| binding.chord)
    }

    /// The first key of a command as it is shown; empty if the command has no key.
    pub fn first_key(&self, command: &Command) -> String {
        self.keys(command).next().map(|chord| chord.to_string()).unwrap_or_default()
    }

    /// The first key of the command with this action; empty if no key runs it.
    pub fn key_for(&self, action: UserAction) -> String {
        let command = COMMANDS.iter().find(|command| command.action == action);
        command.map(|command| self.first_key(command)).unwrap_or_default()
    }

    /// Keys of the command. For a command that can only be typed, the text to type, as in `:enforce [LIFETIME]`.
    pub fn shortcuts(&self, command: &Command) -> Vec<String> {
        let typed = command.takes.map(|takes| format!(":{} {takes}", command.name).trim_end().to_owned());
        self.keys(command).map(|chord| chord.to_string()).chain(typed).collect()
    }
}

/// Adds the keys that sort by the columns of a pane.
fn sort_keys<C: SortColumn>(panes: &'static [Pane], bindings: &mut Vec<Binding>) {
    let Some(command) = COMMANDS.iter().find(|command| command.name == "sort") else { return };
    bindings.extend(C::ALL.iter().map(|column| Binding {
        chord: Chord::letter(column.letter()),
        command,
        argument: column.title().to_owned(),
        context: KeyContext::In(panes),
    }));
}

impl Binding {
    const fn new(chord: Chord, command: &'static Command, argument: String) -> Self {
        Self { chord, command, argument, context: command.context }
    }

    /// Text of the command with its argument, as in `sort age`.
    fn text(&self) -> String {
        format!("{} {}", self.command.name, self.argument).trim_end().to_owned()
    }

    /// Whether the key runs the command with this focus. While text is typed, a key that types a character cannot run a
    /// command that applies everywhere.
    fn applies(&self, focus: KeyFocus) -> bool {
        self.context.applies(focus)
            || self.context == KeyContext::Always
                && matches!(focus, KeyFocus::Input(_))
                && self.chord.typed().is_none()
    }

    /// Whether both bindings have the same key and apply at the same focus.
    fn conflicts_with(&self, other: &Self) -> bool {
        self.chord == other.chord && self.context.overlaps(other.context, self.chord)
    }
}

/// The tables of keys as Markdown: the text of `docs/reference/keys.md`.
#[cfg(test)]
fn markdown() -> String {
    let [keymap, k9s, vim] = [KeyPreset::Default, KeyPreset::K9s, KeyPreset::Vim].map(Keymap::preset);
    let quoted = |keymap: &Keymap, command: &Command| {
        let keys: Vec<String> = keymap.shortcuts(command).iter().map(|key| format!("`{key}`")).collect();
        keys.join(" ")
    };
    let mut text = String::from(
        "# Keys\n\nMade from the command table (`src/app/commands.rs`) by its test; run it with `UPDATE=1` after \
         a change.\nNo key changes a cluster: keys open plans, and plans are applied in enforce only \
         (`:enforce`), after a\nconfirmation (docs/acting.md). `:` finds every command by its words. The configuration \
         ([config.md](config.md)) chooses\nanother preset and binds other keys.\n\n| keys | command | what it does | where |\n| --- | --- | --- | --- |\n",
    );
    for command in COMMANDS {
        let (name, doc, context) = (command.name, command.doc, command.context);
        text += &format!("| {} | {name} | {doc} | {context} |\n", quoted(&keymap, command));
    }
    text += "\n## Presets\n\nWith `preset = \"k9s\"` or `\"vim\"`, capital letters sort by a column (again: the other way \
             round), digits before\na move repeat it (`5j`; `7G` and `:7` go to the seventh row) if it follows within 0.7 s, in the \
             pane that had the focus before, and these\ncommands have other keys:\n\n| command | k9s | vim |\n| --- | --- | --- |\n";
    for command in COMMANDS {
        let keys = [&keymap, &k9s, &vim].map(|keymap| quoted(keymap, command));
        if keys[1] != keys[0] || keys[2] != keys[0] {
            text += &format!("| {} | {} | {} |\n", command.name, keys[1], keys[2]);
        }
    }
    text += "\nColumns by their letters; in kordon's own keys a small letter after `s` does the same. `↑` in a \
             heading: its values rise from row to row,\n`↓`: they fall. Times are compared as they are shown, states \
             by their urgency:\n\n";
    text += &columns_by_letter::<NodeColumn>(Pane::Nodes);
    text += &columns_by_letter::<ZoneColumn>(Pane::Zones);
    text += &columns_by_letter::<PodColumn>(Pane::Pods);
    text += &columns_by_letter::<EvictionColumn>(Pane::Evictions);
    text += &columns_by_letter::<PendingColumn>(Pane::Pending);
    text += &columns_by_letter::<EventColumn>(Pane::Events);
    text += &columns_by_letter::<DepartureColumn>(Pane::Departures);
    text += &columns_by_letter::<BudgetColumn>(Pane::Budgets);
    text += &columns_by_letter::<AuditColumn>(Pane::Audit);
    text
}

#[cfg(test)]
fn columns_by_letter<C: SortColumn>(pane: Pane) -> String {
    let columns = C::ALL.iter().map(|column| format!("`{}` {}", column.letter(), column.title()));
    format!("- {}: {}\n", pane.title(), columns.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use crossterm::event::{KeyCode, KeyModifiers};

    use super::*;
    use crate::app::pane::InputTarget;

    fn configured(bind: &[(&str, &[&str])]) -> ConfiguredKeys {
        let keys = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect();
        bind.iter().map(|(command, of_command)| ((*command).to_owned(), keys(of_command))).collect()
    }

    fn runs(keymap: &Keymap, key: &str, pane: Pane) -> Option<(UserAction, String)> {
        let chord: Chord = key.parse().expect("a key");
        let found = keymap.action(KeyEvent::from(chord), KeyFocus::Pane(pane));
        found.map(|(action, argument)| (action, argument.to_owned()))
    }

    #[test]
    fn no_key_of_any_preset_means_two_things_in_one_place() {
        for preset in KeyPreset::ALL {
            assert_eq!(Keymap::preset(*preset).conflicts().next(), None, "{preset:?}");
        }
    }

    #[test]
    fn a_command_can_lose_all_its_keys_but_one_way_to_quit_stays() {
        let keymap = Keymap::new(KeyPreset::Default, &configured(&[("quit", &[])])).expect("`:quit` is left");
        assert_eq!(runs(&keymap, "q", Pane::Nodes), None);
        let stuck = Keymap::new(KeyPreset::Default, &configured(&[("quit", &[]), ("palette", &[])]));
        assert_eq!(stuck, Err(vec![KeymapError::NoWayOut]));
    }

    #[test]
    fn every_command_has_a_key_in_every_preset_or_can_be_typed() {
        for preset in KeyPreset::ALL {
            let keymap = Keymap::preset(*preset);
            for command in COMMANDS {
                assert!(!keymap.shortcuts(command).is_empty(), "{} in {preset:?}", command.name);
            }
        }
    }

    #[test]
    fn every_key_reaches_its_action() {
        let keymap = Keymap::default();
        for command in COMMANDS {
            let focuses: Vec<KeyFocus> = match command.context {
                KeyContext::Everywhere | KeyContext::Always => vec![KeyFocus::Pane(Pane::Journal)],
                KeyContext::In(panes) => panes.iter().copied().map(KeyFocus::Pane).collect(),
                KeyContext::Maintenance(panes) => {
                    let panes = panes.iter().copied().map(KeyFocus::Pane);
                    panes.chain([KeyFocus::Maintenance]).collect()
                }
                KeyContext::Typing => InputTarget::ALL.map(KeyFocus::Input).into(),
                KeyContext::TypingOf(target) => vec![KeyFocus::Input(target)],
                KeyContext::Tour => vec![KeyFocus::Tour],
            };
            assert!(!command.keys.is_empty() || command.takes.is_some(), "{}", command.name);
            assert!(command.doc.ends_with('.'), "{}", command.name);
            for chord in command.keys {
                for focus in &focuses {
                    let found = keymap.action(KeyEvent::from(*chord), *focus);
                    assert_eq!(found, Some((command.action, "")), "{chord} for {}", command.name);
                }
            }
        }
    }

    #[test]
    fn letters_are_typed_into_the_filter_and_are_no_commands() {
        let keymap = Keymap::default();
        let pressed = |code, modifiers| {
            let found = keymap.action(KeyEvent::new(code, modifiers), KeyFocus::Input(InputTarget::Filter));
            found.map(|(action, _)| action)
        };
        let insert = |letter| Some(UserAction::Edit(InputRequest::InsertChar(letter)));
        assert_eq!(pressed(KeyCode::Char('q'), KeyModifiers::NONE), insert('q'));
        assert_eq!(pressed(KeyCode::Char('Q'), KeyModifiers::SHIFT), insert('Q'));
        assert_eq!(pressed(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(UserAction::Quit));
        assert_eq!(pressed(KeyCode::Char('d'), KeyModifiers::CONTROL), None, "a key of the lists");
        assert_eq!(pressed(KeyCode::F(5), KeyModifiers::NONE), None);
    }

    #[test]
    fn shift_tab_goes_back_in_whichever_way_the_terminal_sends_it() {
        let keymap = Keymap::default();
        for code in [KeyCode::BackTab, KeyCode::Tab] {
            let found = keymap.action(KeyEvent::new(code, KeyModifiers::SHIFT), KeyFocus::Pane(Pane::Nodes));
            assert_eq!(found.map(|(action, _)| action), Some(UserAction::PreviousPane));
        }
    }

    #[test]
    fn capital_letters_sort_in_the_presets_for_k9s_and_vim() {
        for preset in [KeyPreset::K9s, KeyPreset::Vim] {
            let keymap = Keymap::preset(preset);
            let sorts = |key, pane| runs(&keymap, key, pane).map(|(_, argument)| argument);
            assert_eq!(sorts("A", Pane::Nodes), Some("age".into()));
            assert_eq!(sorts("N", Pane::Pods), Some("pod".into()));
            assert_eq!(sorts("N", Pane::Plan), Some(String::new()), "an option of a plan");
        }
    }

    #[test]
    fn configured_keys_replace_those_of_a_command() {
        let bind = configured(&[("drain", &["ctrl-n", "H"]), ("theme nord", &["f2"]), ("undo", &[])]);
        let keymap = Keymap::new(KeyPreset::Default, &bind).expect("no conflict");
        let drain = COMMANDS.iter().find(|command| command.name == "drain").expect("a command");
        assert_eq!(keymap.shortcuts(drain), ["Ctrl-N", "H", ":drain [NODE…]"]);
        assert_eq!(runs(&keymap, "r", Pane::Nodes), None);
        assert_eq!(runs(&keymap, "f2", Pane::Journal).map(|(_, argument)| argument), Some("nord".into()));
        assert_eq!(runs(&keymap, "U", Pane::Nodes), None);
    }

    #[test]
    fn what_cannot_be_bound_is_an_error_that_names_it() {
        for (bind, expected) in [
            (("drian", "d"), "there is no command \"drian\"; did you mean \"drain\"?"),
            (
                ("drain", "hyper-d"),
                "drain: \"hyper-d\" is not a key such as d, D, ctrl-d, alt-left, f5, space or pgdn",
            ),
            (("cancel now", "f2"), "cancel takes no argument"),
            (("drain", "c"), "c would be both cordon and drain: bind one of them to another key"),
            (("filter", "ctrl-c"), "Ctrl-C would be both quit and filter: bind one of them to another key"),
        ] {
            let (command, key) = bind;
            let keymap = Keymap::new(KeyPreset::Default, &configured(&[(command, &[key])]));
            let errors = keymap.map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>());
            assert_eq!(errors, Err(vec![expected.to_owned()]));
        }
    }

    #[test]
    fn the_documentation_of_the_keys_is_up_to_date() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/keys.md");
        let made = markdown();
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, &made).expect("docs/ can be written");
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(written, made, "run this test with UPDATE=1 and read the difference");
    }
}
