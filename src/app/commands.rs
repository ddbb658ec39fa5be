//! The command table: dispatch, help, footer and `docs/keys.md` all come from it.

use std::fmt;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use tui_input::InputRequest;

use super::{listing::Step, screen::Pane};

/// Something that the user can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Move(Step),
    /// Focus the pane with this digit, from 1.
    Focus(usize),
    NextPane,
    PreviousPane,
    Zoom,
    NextSort,
    FlipSort,
    Filter,
    Enter,
    Detail,
    Back,
    Wide,
    Freeze,
    Theme,
    Help,
    Redraw,
    Suspend,
    Quit,
    /// While a filter is typed.
    Edit(InputRequest),
    KeepFilter,
    DropFilter,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    pub name: &'static str,
    /// One sentence, for help and docs.
    pub doc: &'static str,
    /// One or two words for the footer; empty where it is not shown there.
    pub hint: &'static str,
    pub keys: &'static [Chord],
    pub place: Place,
    pub danger: Danger,
    pub action: Action,
}

/// Where a command applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Everywhere,
    /// While this pane has the focus.
    In(Pane),
    /// While a filter is typed: of the commands for everywhere, only chords with Ctrl apply then.
    Typing,
}

/// What can go wrong by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Danger {
    /// It changes what is shown, and nothing else.
    Harmless,
    /// It ends or suspends the program; the cluster does not notice.
    Leaves,
}

/// A key, perhaps with Ctrl. Shift is in the letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chord {
    pub code: KeyCode,
    pub ctrl: bool,
}

const fn key(code: KeyCode) -> Chord {
    Chord { code, ctrl: false }
}

const fn char(letter: char) -> Chord {
    key(KeyCode::Char(letter))
}

const fn ctrl(letter: char) -> Chord {
    Chord { code: KeyCode::Char(letter), ctrl: true }
}

/// A harmless command for everywhere.
const fn view(
    name: &'static str,
    doc: &'static str,
    hint: &'static str,
    keys: &'static [Chord],
    action: Action,
) -> Command {
    Command { name, doc, hint, keys, place: Place::Everywhere, danger: Danger::Harmless, action }
}

const fn typing(
    name: &'static str,
    doc: &'static str,
    hint: &'static str,
    keys: &'static [Chord],
    action: Action,
) -> Command {
    Command { name, doc, hint, keys, place: Place::Typing, danger: Danger::Harmless, action }
}

/// Every command, in the order of help and docs.
pub const COMMANDS: &[Command] = &[
    view("down", "Select the next row.", "", &[key(KeyCode::Down), char('j')], Action::Move(Step::Down)),
    view("up", "Select the row before.", "", &[key(KeyCode::Up), char('k')], Action::Move(Step::Up)),
    view("page-down", "Go down a page.", "", &[key(KeyCode::PageDown)], Action::Move(Step::PageDown)),
    view("page-up", "Go up a page.", "", &[key(KeyCode::PageUp)], Action::Move(Step::PageUp)),
    view("first", "Go to the first row.", "", &[char('g'), key(KeyCode::Home)], Action::Move(Step::First)),
    view("last", "Go to the last row.", "", &[char('G'), key(KeyCode::End)], Action::Move(Step::Last)),
    view("next-pane", "Focus the next pane.", "pane", &[key(KeyCode::Tab)], Action::NextPane),
    view("previous-pane", "Focus the pane before.", "", &[key(KeyCode::BackTab)], Action::PreviousPane),
    view("zones", "Focus the zones.", "", &[char('1')], Action::Focus(1)),
    view("nodes", "Focus the nodes, or the pods of a node.", "", &[char('2')], Action::Focus(2)),
    view("evictions", "Focus the evictions.", "", &[char('3')], Action::Focus(3)),
    view("journal", "Focus the journal.", "", &[char('4')], Action::Focus(4)),
    view("forecast", "Focus the forecast.", "", &[char('5')], Action::Focus(5)),
    Command {
        place: Place::In(Pane::Zones),
        ..view("filter-zone", "Show only the nodes of the selected zone.", "its nodes", ENTER, Action::Enter)
    },
    Command {
        place: Place::In(Pane::Nodes),
        ..view("pods", "Show the pods of the selected node.", "pods", ENTER, Action::Enter)
    },
    Command {
        place: Place::In(Pane::Forecast),
        ..view(
            "node-foreseen",
            "Show the node of the selected row and its pods.",
            "node",
            ENTER,
            Action::Enter,
        )
    },
    Command {
        place: Place::In(Pane::Evictions),
        ..view("node-of-pod", "Show the node of the selected pod and its pods.", "node", ENTER, Action::Enter)
    },
    Command {
        place: Place::In(Pane::Pods),
        ..view("pod-detail", "Show everything about the selected pod.", "detail", ENTER, Action::Detail)
    },
    view(
        "detail",
        "Show everything about the selected node or pod, why it stands as it does first.",
        "why",
        &[char('d')],
        Action::Detail,
    ),
    view(
        "back",
        "Go back: close help, clear the filter, leave a detail or a node, end the zoom.",
        "back",
        &[key(KeyCode::Esc)],
        Action::Back,
    ),
    view(
        "filter",
        "Filter the focused pane: words, `zone:a`, `ready:no`, `!word`.",
        "filter",
        &[char('/')],
        Action::Filter,
    ),
    view("sort", "Sort the focused pane by the next column.", "sort", &[char('s')], Action::NextSort),
    view("sort-direction", "Turn the order around.", "", &[char('S')], Action::FlipSort),
    view(
        "zoom",
        "Give the focused pane the whole screen, or take it back.",
        "zoom",
        &[char('z')],
        Action::Zoom,
    ),
    view("wide", "Show more columns, or fewer.", "wide", &[char('w')], Action::Wide),
    view("freeze", "Hold the picture still, or let it go on.", "freeze", &[char('f')], Action::Freeze),
    view("theme", "Change to the next theme.", "theme", &[char('T')], Action::Theme),
    view("help", "Show this help, or close it.", "help", &[char('?')], Action::Help),
    view("redraw", "Draw the whole screen anew.", "", &[ctrl('l')], Action::Redraw),
    Command {
        danger: Danger::Leaves,
        ..view("suspend", "Suspend the program; `fg` brings it back.", "", &[ctrl('z')], Action::Suspend)
    },
    Command {
        danger: Danger::Leaves,
        ..view("quit", "Leave.", "quit", &[char('q'), ctrl('c')], Action::Quit)
    },
    typing("keep-filter", "Keep the filter and go back to the list.", "keep", ENTER, Action::KeepFilter),
    typing(
        "drop-filter",
        "Clear the filter and go back to the list.",
        "clear",
        &[key(KeyCode::Esc)],
        Action::DropFilter,
    ),
    typing(
        "delete-word",
        "Delete the word before the cursor.",
        "",
        &[ctrl('w')],
        Action::Edit(InputRequest::DeletePrevWord),
    ),
    typing(
        "delete-line",
        "Delete everything typed.",
        "",
        &[ctrl('u')],
        Action::Edit(InputRequest::DeleteLine),
    ),
    typing(
        "delete-left",
        "Delete the character before the cursor.",
        "",
        &[key(KeyCode::Backspace)],
        Action::Edit(InputRequest::DeletePrevChar),
    ),
    typing(
        "delete-right",
        "Delete the character under the cursor.",
        "",
        &[key(KeyCode::Delete)],
        Action::Edit(InputRequest::DeleteNextChar),
    ),
    typing("left", "Go left.", "", &[key(KeyCode::Left)], Action::Edit(InputRequest::GoToPrevChar)),
    typing("right", "Go right.", "", &[key(KeyCode::Right)], Action::Edit(InputRequest::GoToNextChar)),
    typing(
        "line-start",
        "Go to the start.",
        "",
        &[key(KeyCode::Home), ctrl('a')],
        Action::Edit(InputRequest::GoToStart),
    ),
    typing(
        "line-end",
        "Go to the end.",
        "",
        &[key(KeyCode::End), ctrl('e')],
        Action::Edit(InputRequest::GoToEnd),
    ),
];

const ENTER: &[Chord] = &[key(KeyCode::Enter)];

/// What a key asks for, in the place where the user is.
pub fn action(key: KeyEvent, focus: Pane, typing: bool) -> Option<Action> {
    let chord = Chord::from(key);
    let applies = |command: &&Command| {
        command.keys.contains(&chord)
            && match command.place {
                Place::Everywhere => !typing || chord.ctrl,
                Place::In(pane) => !typing && pane == focus,
                Place::Typing => typing,
            }
    };
    let command = COMMANDS.iter().find(applies);
    command.map(|command| command.action).or_else(|| typing.then(|| typed(chord)).flatten())
}

/// A character that goes into the filter.
fn typed(chord: Chord) -> Option<Action> {
    match chord {
        Chord { code: KeyCode::Char(letter), ctrl: false } => {
            Some(Action::Edit(InputRequest::InsertChar(letter)))
        }
        _ => None,
    }
}

/// The table as Markdown: the text of `docs/keys.md`.
pub fn markdown() -> String {
    let mut text = String::from(
        "# Keys\n\nMade from the command table (`src/app/commands.rs`) by its test; run it with `UPDATE=1` after \
         a change.\nNo key changes a cluster.\n\n| keys | command | what it does | where |\n| --- | --- | --- | --- |\n",
    );
    for command in COMMANDS {
        let keys: Vec<String> = command.keys.iter().map(|key| format!("`{key}`")).collect();
        let (name, doc, place) = (command.name, command.doc, command.place);
        text += &format!("| {} | {name} | {doc} | {place} |\n", keys.join(" "));
    }
    text
}

impl From<KeyEvent> for Chord {
    fn from(event: KeyEvent) -> Self {
        let code = match event.code {
            // Some terminals send Tab with Shift where others send a key of its own.
            KeyCode::Tab if event.modifiers.contains(KeyModifiers::SHIFT) => KeyCode::BackTab,
            code => code,
        };
        Self { code, ctrl: event.modifiers.contains(KeyModifiers::CONTROL) }
    }
}

impl fmt::Display for Chord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ctrl {
            f.write_str("Ctrl-")?;
        }
        match self.code {
            KeyCode::Char(letter) if self.ctrl => write!(f, "{}", letter.to_ascii_uppercase()),
            KeyCode::Char(letter) => write!(f, "{letter}"),
            KeyCode::Up => f.write_str("↑"),
            KeyCode::Down => f.write_str("↓"),
            KeyCode::Left => f.write_str("←"),
            KeyCode::Right => f.write_str("→"),
            KeyCode::PageUp => f.write_str("PgUp"),
            KeyCode::PageDown => f.write_str("PgDn"),
            KeyCode::BackTab => f.write_str("Shift-Tab"),
            code => write!(f, "{code}"),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Everywhere => "everywhere",
            Self::In(Pane::Zones) => "in the zones",
            Self::In(Pane::Nodes) => "in the nodes",
            Self::In(Pane::Pods) => "in the pods",
            Self::In(Pane::Detail) => "in a detail",
            Self::In(Pane::Evictions) => "in the evictions",
            Self::In(Pane::Journal) => "in the journal",
            Self::In(Pane::Forecast) => "in the forecast",
            Self::Typing => "while a filter is typed",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether one key could mean both there.
    fn meet(a: &Command, b: &Command, chord: &Chord) -> bool {
        match (a.place, b.place) {
            (Place::Typing, Place::Typing) => true,
            (Place::Typing, _) | (_, Place::Typing) => chord.ctrl,
            (Place::Everywhere, _) | (_, Place::Everywhere) => true,
            (Place::In(a), Place::In(b)) => a == b,
        }
    }

    #[test]
    fn no_key_means_two_things_in_one_place() {
        for (place, a) in COMMANDS.iter().enumerate() {
            for b in &COMMANDS[place + 1..] {
                for chord in a.keys.iter().filter(|chord| b.keys.contains(chord)) {
                    assert!(!meet(a, b, chord), "{chord} is both {} and {}", a.name, b.name);
                }
                assert_ne!(a.name, b.name);
            }
        }
    }

    #[test]
    fn every_key_of_the_table_reaches_its_action() {
        for command in COMMANDS {
            let (focus, typing) = match command.place {
                Place::Everywhere => (Pane::Journal, false),
                Place::In(pane) => (pane, false),
                Place::Typing => (Pane::Nodes, true),
            };
            assert!(!command.keys.is_empty() && command.doc.ends_with('.'), "{}", command.name);
            for chord in command.keys {
                let modifiers = if chord.ctrl { KeyModifiers::CONTROL } else { KeyModifiers::NONE };
                let found = action(KeyEvent::new(chord.code, modifiers), focus, typing);
                assert_eq!(found, Some(command.action), "{chord} for {}", command.name);
            }
        }
    }

    #[test]
    fn letters_are_typed_into_the_filter_and_not_obeyed() {
        let pressed = |code, modifiers| action(KeyEvent::new(code, modifiers), Pane::Nodes, true);
        let insert = |letter| Some(Action::Edit(InputRequest::InsertChar(letter)));
        assert_eq!(pressed(KeyCode::Char('q'), KeyModifiers::NONE), insert('q'));
        assert_eq!(pressed(KeyCode::Char('Q'), KeyModifiers::SHIFT), insert('Q'));
        assert_eq!(pressed(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Action::Quit));
        assert_eq!(pressed(KeyCode::F(5), KeyModifiers::NONE), None);
    }

    #[test]
    fn shift_tab_goes_back_however_the_terminal_sends_it() {
        for (code, modifiers) in
            [(KeyCode::BackTab, KeyModifiers::SHIFT), (KeyCode::Tab, KeyModifiers::SHIFT)]
        {
            assert_eq!(
                action(KeyEvent::new(code, modifiers), Pane::Nodes, false),
                Some(Action::PreviousPane)
            );
        }
    }

    #[test]
    fn the_documentation_of_the_keys_is_up_to_date() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/keys.md");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(path, markdown()).expect("docs/ can be written");
        }
        let written = std::fs::read_to_string(path).unwrap_or_default();
        assert_eq!(written, markdown(), "run this test with UPDATE=1 and read the difference");
    }
}
