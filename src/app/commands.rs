//! The command table: dispatch, help, footer and `docs/keys.md` all come from it.

use std::fmt;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use tui_input::InputRequest;

use super::{
    listing::Movement,
    pane::{InputTarget, KeyFocus, Pane},
    preview::{PlanKind, PlanOption},
};

/// Something that the user can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserAction {
    Move(Movement),
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
    /// Mark the selected row, or take its mark away.
    Mark,
    /// Mark every row that is shown, or where all are, none.
    MarkAll,
    /// Open a plan for what is marked or selected.
    Plan(PlanKind),
    /// Change an option of the open plan.
    Toggle(PlanOption),
    Redraw,
    Suspend,
    Quit,
    /// While something is typed.
    Edit(InputRequest),
    /// Complete the typed text as proposed.
    Complete,
    /// Choose the next proposal, command or answer.
    ChooseNext,
    ChoosePrevious,
    KeepFilter,
    /// While taints or labels are typed.
    KeepEdits,
    /// Open the line in which commands are typed.
    Palette,
    RunCommand,
    /// A command that can only be typed: it takes an argument or must not run by accident.
    Typed(TypedCommand),
    /// Apply the open plan.
    Apply,
    /// Answer the open question.
    Answer,
    /// Show the running operation, or the one before the shown one.
    Progress,
    /// Pause the shown operation, or resume it.
    Pause,
    Cancel,
    /// Undo the last operation, or the one that was interrupted.
    Undo,
    Resume,
    Dismiss,
}

/// A command that is typed, with or without an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypedCommand {
    Enforce,
    DryRun,
    Reason,
    Until,
    Within,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    pub name: &'static str,
    /// One sentence, for help and docs.
    pub doc: &'static str,
    /// One or two words for the footer; empty where it is not shown there.
    pub hint: &'static str,
    /// None of a command that can only be typed.
    pub keys: &'static [Chord],
    /// What may be typed behind it, as `[LIFETIME]`; none where it is no typed command.
    pub takes: Option<&'static str>,
    pub context: KeyContext,
    pub danger: Danger,
    pub action: UserAction,
}

/// Where a command applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyContext {
    Everywhere,
    /// While one of these panes has the focus.
    In(&'static [Pane]),
    /// While anything is typed: of the commands for everywhere, only chords with Ctrl apply then.
    Typing,
    /// While this is typed.
    TypingOf(InputTarget),
}

/// What can go wrong by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Danger {
    /// It changes what is shown, and nothing else.
    Harmless,
    /// It ends or suspends the program; the cluster does not notice.
    Leaves,
    /// It lets plans be carried out.
    Unlocks,
    /// It leads to writes, after a confirmation.
    Writes,
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
    action: UserAction,
) -> Command {
    let (context, danger) = (KeyContext::Everywhere, Danger::Harmless);
    Command { name, doc, hint, keys, takes: None, context, danger, action }
}

const fn typing(
    name: &'static str,
    doc: &'static str,
    hint: &'static str,
    keys: &'static [Chord],
    action: UserAction,
) -> Command {
    Command { context: KeyContext::Typing, ..view(name, doc, hint, keys, action) }
}

/// A command that opens a plan; its name is its hint.
const fn plan(
    panes: &'static [Pane],
    name: &'static str,
    doc: &'static str,
    keys: &'static [Chord],
    verb: PlanKind,
) -> Command {
    Command { context: KeyContext::In(panes), ..view(name, doc, name, keys, UserAction::Plan(verb)) }
}

/// A command that turns an option of a plan.
const fn option(
    name: &'static str,
    doc: &'static str,
    keys: &'static [Chord],
    switch: PlanOption,
) -> Command {
    Command {
        context: KeyContext::In(&[Pane::Plan]),
        ..view(name, doc, "", keys, UserAction::Toggle(switch))
    }
}

const fn words(
    name: &'static str,
    doc: &'static str,
    hint: &'static str,
    keys: &'static [Chord],
    action: UserAction,
) -> Command {
    Command { context: KeyContext::TypingOf(InputTarget::Edits), ..typing(name, doc, hint, keys, action) }
}

const fn palette(
    name: &'static str,
    doc: &'static str,
    hint: &'static str,
    keys: &'static [Chord],
    action: UserAction,
) -> Command {
    Command { context: KeyContext::TypingOf(InputTarget::Command), ..typing(name, doc, hint, keys, action) }
}

const fn consent(
    name: &'static str,
    doc: &'static str,
    hint: &'static str,
    keys: &'static [Chord],
    action: UserAction,
) -> Command {
    Command { context: KeyContext::TypingOf(InputTarget::Answer), ..typing(name, doc, hint, keys, action) }
}

/// A command that has no key.
const fn typed_only(
    name: &'static str,
    takes: &'static str,
    doc: &'static str,
    what: TypedCommand,
) -> Command {
    Command { takes: Some(takes), ..view(name, doc, "", &[], UserAction::Typed(what)) }
}

/// Every command, in the order of help and docs.
pub const COMMANDS: &[Command] = &[
    view(
        "down",
        "Select the next row.",
        "",
        &[key(KeyCode::Down), char('j')],
        UserAction::Move(Movement::Down),
    ),
    view("up", "Select the row before.", "", &[key(KeyCode::Up), char('k')], UserAction::Move(Movement::Up)),
    view("page-down", "Go down a page.", "", &[key(KeyCode::PageDown)], UserAction::Move(Movement::PageDown)),
    view("page-up", "Go up a page.", "", &[key(KeyCode::PageUp)], UserAction::Move(Movement::PageUp)),
    view(
        "first",
        "Go to the first row.",
        "",
        &[char('g'), key(KeyCode::Home)],
        UserAction::Move(Movement::First),
    ),
    view(
        "last",
        "Go to the last row.",
        "",
        &[char('G'), key(KeyCode::End)],
        UserAction::Move(Movement::Last),
    ),
    view("next-pane", "Focus the next pane.", "pane", &[key(KeyCode::Tab)], UserAction::NextPane),
    view("previous-pane", "Focus the pane before.", "", &[key(KeyCode::BackTab)], UserAction::PreviousPane),
    view("zones", "Focus the zones.", "", &[char('1')], UserAction::Focus(1)),
    view("nodes", "Focus the nodes, or the pods of a node.", "", &[char('2')], UserAction::Focus(2)),
    view("evictions", "Focus the evictions.", "", &[char('3')], UserAction::Focus(3)),
    view("journal", "Focus the journal.", "", &[char('4')], UserAction::Focus(4)),
    view("forecast", "Focus the forecast.", "", &[char('5')], UserAction::Focus(5)),
    Command {
        context: KeyContext::In(&[Pane::Zones]),
        ..view(
            "filter-zone",
            "Show only the nodes of the selected zone.",
            "its nodes",
            ENTER,
            UserAction::Enter,
        )
    },
    Command {
        context: KeyContext::In(&[Pane::Nodes]),
        ..view("pods", "Show the pods of the selected node.", "pods", ENTER, UserAction::Enter)
    },
    Command {
        context: KeyContext::In(&[Pane::Forecast]),
        ..view(
            "node-foreseen",
            "Show the node of the selected row and its pods.",
            "node",
            ENTER,
            UserAction::Enter,
        )
    },
    Command {
        context: KeyContext::In(&[Pane::Evictions]),
        ..view(
            "node-of-pod",
            "Show the node of the selected pod and its pods.",
            "node",
            ENTER,
            UserAction::Enter,
        )
    },
    Command {
        context: KeyContext::In(&[Pane::Pods]),
        ..view("pod-detail", "Show everything about the selected pod.", "detail", ENTER, UserAction::Detail)
    },
    Command {
        context: KeyContext::In(&[Pane::Plan]),
        ..view("edit-words", "Go back to typing the taints or labels.", "", ENTER, UserAction::Enter)
    },
    Command { context: KeyContext::In(MARKED), ..view("mark", MARK, "mark", &[char(' ')], UserAction::Mark) },
    Command {
        context: KeyContext::In(MARKED),
        ..view("mark-all", MARK_ALL, "", &[char('M')], UserAction::MarkAll)
    },
    plan(
        NODES,
        "cordon",
        "Plan to cordon the marked nodes, or the selected one.",
        &[char('c')],
        PlanKind::Cordon,
    ),
    Command {
        hint: "",
        ..plan(
            NODES,
            "uncordon",
            "Plan to uncordon the marked nodes, or the selected one.",
            &[char('u')],
            PlanKind::Uncordon,
        )
    },
    plan(
        NODES,
        "drain",
        "Plan to drain the marked nodes, or the selected one.",
        &[char('r')],
        PlanKind::Drain,
    ),
    plan(
        NODES,
        "taint",
        "Plan to taint the marked nodes, or the selected one.",
        &[char('t')],
        PlanKind::Taint,
    ),
    Command {
        hint: "",
        ..plan(
            NODES,
            "labels",
            "Plan to label the marked nodes, or the selected one.",
            &[char('l')],
            PlanKind::Label,
        )
    },
    plan(
        FAILING,
        "what-if",
        "Tell what follows if these nodes, or their zones, fall silent.",
        &[char('x')],
        PlanKind::Failure,
    ),
    plan(PODS, "evict", "Plan to evict the marked pods, or the selected one.", &[char('e')], PlanKind::Evict),
    Command {
        context: KeyContext::In(PODS),
        ..view(
            "delete",
            "Plan to delete the marked pods, or the selected one.",
            "delete",
            &[key(KeyCode::Delete)],
            UserAction::Plan(PlanKind::Delete),
        )
    },
    option(
        "ignore-daemonsets",
        "Drain: leave the pods of DaemonSets alone.",
        &[char('D')],
        PlanOption::IgnoreDaemonsets,
    ),
    option(
        "delete-emptydir-data",
        "Drain: let emptyDir data be lost.",
        &[char('E')],
        PlanOption::DeleteEmptydirData,
    ),
    option("force", "Drain: take pods too that nobody brings back.", &[char('F')], PlanOption::Force),
    option(
        "disable-eviction",
        "Drain: delete pods, so that budgets are not asked.",
        &[char('B')],
        PlanOption::DisableEviction,
    ),
    option("grace-period", "Go on to another grace period for the pods.", &[char('P')], PlanOption::Grace),
    option(
        "parallel",
        "Drain: go on to another number of nodes at a time.",
        &[char('N')],
        PlanOption::Parallel,
    ),
    option(
        "overwrite",
        "Taints, labels: let those that are there be changed.",
        &[char('O')],
        PlanOption::Overwrite,
    ),
    option(
        "whole-zones",
        "What if: let the whole zones of the nodes fail.",
        &[char('Z')],
        PlanOption::WholeZones,
    ),
    Command {
        context: KeyContext::In(&[Pane::Plan]),
        danger: Danger::Writes,
        ..view(
            "carry-out",
            "Carry the plan out, after a confirmation; in enforce only.",
            "carry out",
            &[char('A')],
            UserAction::Apply,
        )
    },
    Command {
        context: KeyContext::In(&[Pane::Progress]),
        ..view(
            "pause",
            "Pause what is carried out, or let it go on.",
            "pause",
            &[char('p')],
            UserAction::Pause,
        )
    },
    Command {
        context: KeyContext::In(&[Pane::Progress]),
        ..view(
            "cancel",
            "Begin nothing more of it, after a confirmation.",
            "cancel",
            &[char('C')],
            UserAction::Cancel,
        )
    },
    view(
        "progress",
        "Show what is being carried out; once more, the one before it.",
        "",
        &[char('o')],
        UserAction::Progress,
    ),
    Command {
        danger: Danger::Writes,
        ..view(
            "undo",
            "Put back what the last undertaking changed on nodes, or the one that was cut off, after a confirmation.",
            "",
            &[char('U')],
            UserAction::Undo,
        )
    },
    Command {
        danger: Danger::Writes,
        ..view(
            "resume",
            "Go on with the drain that was cut off, after a confirmation.",
            "",
            &[char('R')],
            UserAction::Resume,
        )
    },
    view("dismiss", "Leave the drain that was cut off as it is.", "", &[char('X')], UserAction::Dismiss),
    Command {
        danger: Danger::Unlocks,
        ..typed_only(
            "enforce",
            "[LIFETIME]",
            "Let plans be carried out, for 15m or as long as is said; then it is dry-run again.",
            TypedCommand::Enforce,
        )
    },
    typed_only("dry-run", "", "Let nothing be begun any more that writes.", TypedCommand::DryRun),
    typed_only(
        "reason",
        "[WORDS]",
        "Say why the next plans are carried out, for others to read on the nodes and in the journal.",
        TypedCommand::Reason,
    ),
    typed_only(
        "until",
        "[SPAN]",
        "Say for how long the next cordons are meant to stand, for others to read.",
        TypedCommand::Until,
    ),
    typed_only("within", "[SPAN]", "Say how long all of the next plan may take.", TypedCommand::Within),
    view("palette", "Type a command, or find one by words.", "command", &[char(':')], UserAction::Palette),
    view(
        "detail",
        "Show everything about the selected node or pod, why it stands as it does first.",
        "why",
        &[char('d')],
        UserAction::Detail,
    ),
    view(
        "back",
        "Go back: close help, clear the filter, leave a detail, a plan or a progress, drop the marks, leave a node, end the zoom.",
        "back",
        &[key(KeyCode::Esc)],
        UserAction::Back,
    ),
    view(
        "filter",
        "Filter the focused pane: words, `zone:a`, `ready:no`, `!word`.",
        "filter",
        &[char('/')],
        UserAction::Filter,
    ),
    view("sort", "Sort the focused pane by the next column.", "sort", &[char('s')], UserAction::NextSort),
    view("sort-direction", "Turn the order around.", "", &[char('S')], UserAction::FlipSort),
    view(
        "zoom",
        "Give the focused pane the whole screen, or take it back.",
        "zoom",
        &[char('z')],
        UserAction::Zoom,
    ),
    view("wide", "Show more columns, or fewer.", "wide", &[char('w')], UserAction::Wide),
    view("freeze", "Hold the picture still, or let it go on.", "freeze", &[char('f')], UserAction::Freeze),
    view("theme", "Change to the next theme.", "theme", &[char('T')], UserAction::Theme),
    view("help", "Show this help, or close it.", "help", &[char('?')], UserAction::Help),
    view("redraw", "Draw the whole screen anew.", "", &[ctrl('l')], UserAction::Redraw),
    Command {
        danger: Danger::Leaves,
        ..view("suspend", "Suspend the program; `fg` brings it back.", "", &[ctrl('z')], UserAction::Suspend)
    },
    Command {
        danger: Danger::Leaves,
        ..view("quit", "Leave.", "quit", &[char('q'), ctrl('c')], UserAction::Quit)
    },
    Command {
        context: KeyContext::TypingOf(InputTarget::Filter),
        ..typing(
            "keep-filter",
            "Keep the filter and go back to the list.",
            "keep",
            ENTER,
            UserAction::KeepFilter,
        )
    },
    Command {
        context: KeyContext::TypingOf(InputTarget::Filter),
        ..typing("drop-filter", "Clear the filter and go back to the list.", "clear", ESC, UserAction::Back)
    },
    words(
        "complete",
        "Complete the word as proposed.",
        "complete",
        &[key(KeyCode::Tab)],
        UserAction::Complete,
    ),
    words(
        "next-proposal",
        "Go on to the next proposal.",
        "next",
        &[key(KeyCode::Down)],
        UserAction::ChooseNext,
    ),
    words(
        "keep-words",
        "Keep what was typed and go to the plan.",
        "to the plan",
        ENTER,
        UserAction::KeepEdits,
    ),
    words("drop-words", "Go back to where the plan was opened.", "back", ESC, UserAction::Back),
    palette("run", "Run the chosen command.", "run", ENTER, UserAction::RunCommand),
    palette("complete-name", "Complete the name.", "complete", &[key(KeyCode::Tab)], UserAction::Complete),
    palette(
        "next-command",
        "Choose the next command.",
        "next",
        &[key(KeyCode::Down)],
        UserAction::ChooseNext,
    ),
    palette(
        "previous-command",
        "Choose the command before.",
        "",
        &[key(KeyCode::Up)],
        UserAction::ChoosePrevious,
    ),
    palette("close", "Close the line.", "close", ESC, UserAction::Back),
    consent(
        "answer",
        "Give the chosen answer, or the one that was typed.",
        "answer",
        ENTER,
        UserAction::Answer,
    ),
    consent("other-answer", "Choose the next answer.", "other", &[key(KeyCode::Tab)], UserAction::ChooseNext),
    consent("decline", "Leave it.", "leave it", ESC, UserAction::Back),
    typing(
        "delete-word",
        "Delete the word before the cursor.",
        "",
        &[ctrl('w')],
        UserAction::Edit(InputRequest::DeletePrevWord),
    ),
    typing(
        "delete-line",
        "Delete everything typed.",
        "",
        &[ctrl('u')],
        UserAction::Edit(InputRequest::DeleteLine),
    ),
    typing(
        "delete-left",
        "Delete the character before the cursor.",
        "",
        &[key(KeyCode::Backspace)],
        UserAction::Edit(InputRequest::DeletePrevChar),
    ),
    typing(
        "delete-right",
        "Delete the character under the cursor.",
        "",
        &[key(KeyCode::Delete)],
        UserAction::Edit(InputRequest::DeleteNextChar),
    ),
    typing("left", "Go left.", "", &[key(KeyCode::Left)], UserAction::Edit(InputRequest::GoToPrevChar)),
    typing("right", "Go right.", "", &[key(KeyCode::Right)], UserAction::Edit(InputRequest::GoToNextChar)),
    typing(
        "line-start",
        "Go to the start.",
        "",
        &[key(KeyCode::Home), ctrl('a')],
        UserAction::Edit(InputRequest::GoToStart),
    ),
    typing(
        "line-end",
        "Go to the end.",
        "",
        &[key(KeyCode::End), ctrl('e')],
        UserAction::Edit(InputRequest::GoToEnd),
    ),
];

const ESC: &[Chord] = &[key(KeyCode::Esc)];

/// Where nodes are meant: those that are marked, the selected one, the one whose pods or detail are shown.
const NODES: &[Pane] = &[Pane::Nodes, Pane::Pods, Pane::Detail];
/// Where nodes can be thought away: also whole zones.
const FAILING: &[Pane] = &[Pane::Nodes, Pane::Pods, Pane::Detail, Pane::Zones, Pane::Forecast];
/// Where pods are meant.
const PODS: &[Pane] = &[Pane::Pods, Pane::Detail, Pane::Evictions];
/// Where rows can be marked.
const MARKED: &[Pane] = &[Pane::Nodes, Pane::Pods];

const MARK: &str = "Mark the selected row for the next plan, or unmark it.";
const MARK_ALL: &str = "Mark every row that is shown, or where all are, none.";

const ENTER: &[Chord] = &[key(KeyCode::Enter)];

impl Command {
    /// What is pressed or typed for it: its keys, or `:enforce [LIFETIME]`.
    pub fn spoken(&self) -> Vec<String> {
        match self.takes {
            Some(takes) => vec![format!(":{} {takes}", self.name).trim_end().to_owned()],
            None => self.keys.iter().map(ToString::to_string).collect(),
        }
    }
}

/// The action of a key.
pub fn action(key: KeyEvent, focus: KeyFocus) -> Option<UserAction> {
    let chord = Chord::from(key);
    let applies = |command: &&Command| {
        command.keys.contains(&chord)
            && (command.context.applies(focus) || command.context == KeyContext::Everywhere && chord.ctrl)
    };
    let command = COMMANDS.iter().find(applies);
    match focus {
        KeyFocus::Pane(_) => command.map(|command| command.action),
        KeyFocus::Input(_) => command.map(|command| command.action).or_else(|| typed(chord)),
    }
}

impl KeyContext {
    /// Whether a command of this context can be run by a key.
    pub fn applies(self, focus: KeyFocus) -> bool {
        match (self, focus) {
            (Self::Everywhere, KeyFocus::Pane(_)) | (Self::Typing, KeyFocus::Input(_)) => true,
            (Self::In(panes), KeyFocus::Pane(pane)) => panes.contains(&pane),
            (Self::TypingOf(own), KeyFocus::Input(target)) => own == target,
            (Self::Everywhere | Self::In(_), KeyFocus::Input(_))
            | (Self::Typing | Self::TypingOf(_), KeyFocus::Pane(_)) => false,
        }
    }
}

/// A character that goes into what is typed.
fn typed(chord: Chord) -> Option<UserAction> {
    match chord {
        Chord { code: KeyCode::Char(letter), ctrl: false } => {
            Some(UserAction::Edit(InputRequest::InsertChar(letter)))
        }
        _ => None,
    }
}

/// The table as Markdown: the text of `docs/keys.md`.
pub fn markdown() -> String {
    let mut text = String::from(
        "# Keys\n\nMade from the command table (`src/app/commands.rs`) by its test; run it with `UPDATE=1` after \
         a change.\nNo key changes a cluster: keys open plans, and plans are carried out in enforce only \
         (`:enforce`), after a\nconfirmation ([acting.md](acting.md)). `:` finds every command by its words.\n\n| keys | command | what it does | where |\n| --- | --- | --- | --- |\n",
    );
    for command in COMMANDS {
        let keys: Vec<String> = command.spoken().iter().map(|key| format!("`{key}`")).collect();
        let (name, doc, context) = (command.name, command.doc, command.context);
        text += &format!("| {} | {name} | {doc} | {context} |\n", keys.join(" "));
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
            KeyCode::Char(' ') => f.write_str("Space"),
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

impl fmt::Display for KeyContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Everywhere => f.write_str("everywhere"),
            Self::In(panes) => {
                for (place, pane) in panes.iter().enumerate() {
                    f.write_str(if place == 0 { "in the " } else { ", " })?;
                    f.write_str(&pane.title().to_lowercase())?;
                }
                Ok(())
            }
            Self::Typing => f.write_str("while anything is typed"),
            Self::TypingOf(InputTarget::Filter) => f.write_str("while a filter is typed"),
            Self::TypingOf(InputTarget::Edits) => f.write_str("while taints or labels are typed"),
            Self::TypingOf(InputTarget::Command) => f.write_str("while a command is typed"),
            Self::TypingOf(InputTarget::Answer) => f.write_str("while a question is asked"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether one key could mean both there.
    fn meet(a: &Command, b: &Command, chord: &Chord) -> bool {
        match (a.context, b.context) {
            (KeyContext::TypingOf(a), KeyContext::TypingOf(b)) => a == b,
            (KeyContext::Typing | KeyContext::TypingOf(_), KeyContext::Typing | KeyContext::TypingOf(_)) => {
                true
            }
            (KeyContext::Typing | KeyContext::TypingOf(_), KeyContext::In(_))
            | (KeyContext::In(_), KeyContext::Typing | KeyContext::TypingOf(_)) => false,
            (KeyContext::Typing | KeyContext::TypingOf(_), KeyContext::Everywhere)
            | (KeyContext::Everywhere, KeyContext::Typing | KeyContext::TypingOf(_)) => chord.ctrl,
            (KeyContext::Everywhere, _) | (_, KeyContext::Everywhere) => true,
            (KeyContext::In(a), KeyContext::In(b)) => a.iter().any(|pane| b.contains(pane)),
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
            let focuses: Vec<KeyFocus> = match command.context {
                KeyContext::Everywhere => vec![KeyFocus::Pane(Pane::Journal)],
                KeyContext::In(panes) => panes.iter().copied().map(KeyFocus::Pane).collect(),
                KeyContext::Typing => InputTarget::ALL.map(KeyFocus::Input).into(),
                KeyContext::TypingOf(target) => vec![KeyFocus::Input(target)],
            };
            assert!(command.keys.is_empty() == command.takes.is_some(), "{}", command.name);
            assert!(command.doc.ends_with('.'), "{}", command.name);
            for chord in command.keys {
                let modifiers = if chord.ctrl { KeyModifiers::CONTROL } else { KeyModifiers::NONE };
                for focus in &focuses {
                    let found = action(KeyEvent::new(chord.code, modifiers), *focus);
                    assert_eq!(found, Some(command.action), "{chord} for {}", command.name);
                }
            }
        }
    }

    #[test]
    fn letters_are_typed_into_the_filter_and_not_obeyed() {
        let pressed =
            |code, modifiers| action(KeyEvent::new(code, modifiers), KeyFocus::Input(InputTarget::Filter));
        let insert = |letter| Some(UserAction::Edit(InputRequest::InsertChar(letter)));
        assert_eq!(pressed(KeyCode::Char('q'), KeyModifiers::NONE), insert('q'));
        assert_eq!(pressed(KeyCode::Char('Q'), KeyModifiers::SHIFT), insert('Q'));
        assert_eq!(pressed(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(UserAction::Quit));
        assert_eq!(pressed(KeyCode::F(5), KeyModifiers::NONE), None);
    }

    #[test]
    fn shift_tab_goes_back_however_the_terminal_sends_it() {
        for (code, modifiers) in
            [(KeyCode::BackTab, KeyModifiers::SHIFT), (KeyCode::Tab, KeyModifiers::SHIFT)]
        {
            assert_eq!(
                action(KeyEvent::new(code, modifiers), KeyFocus::Pane(Pane::Nodes)),
                Some(UserAction::PreviousPane)
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
