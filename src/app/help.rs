//! The help: commands that apply here first, in groups, then the others. It can be searched.

use tui_input::{Input, InputRequest};

use super::{
    App,
    commands::{COMMANDS, Command, KeyContext, TypedCommand, UserAction},
};

/// The help while it is open.
#[derive(Clone, Debug, Default)]
pub struct HelpSheet {
    /// Index of the first row of the help that is shown.
    pub scrolled: usize,
    /// Words to search the help for; empty shows all rows.
    pub search: Input,
    /// Whether keys are typed into the search.
    pub is_typing: bool,
}

/// A row of the help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HelpRow {
    Title(HelpGroup),
    Command(&'static Command, HelpGroup),
}

/// Groups of commands in the help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HelpGroup {
    Move,
    Look,
    Act,
    /// Commands for a recording or the history.
    Time,
    Session,
    /// Commands that do nothing with the present focus.
    Elsewhere,
    Typing,
}

impl HelpGroup {
    pub const fn title(self) -> &'static str {
        match self {
            Self::Move => "move",
            Self::Look => "look",
            Self::Act => "act",
            Self::Time => "time",
            Self::Session => "session",
            Self::Elsewhere => "elsewhere",
            Self::Typing => "while something is typed",
        }
    }

    const fn for_action(action: UserAction) -> Self {
        match action {
            UserAction::Move(_)
            | UserAction::Focus(_)
            | UserAction::NextPane
            | UserAction::PreviousPane
            | UserAction::PreviousPlace
            | UserAction::NextPlace
            | UserAction::Enter
            | UserAction::Back => Self::Move,
            UserAction::Zoom
            | UserAction::Resize(..)
            | UserAction::MovePane(_)
            | UserAction::ResetLayout
            | UserAction::FlipSort
            | UserAction::Group
            | UserAction::FoldAll
            | UserAction::Fold
            | UserAction::Events
            | UserAction::NextMatch
            | UserAction::PreviousMatch
            | UserAction::Filter
            | UserAction::Detail
            | UserAction::Yaml
            | UserAction::Copy
            | UserAction::Wide
            | UserAction::Horizon
            | UserAction::Freeze
            | UserAction::Info
            | UserAction::Timing
            | UserAction::Typed(
                TypedCommand::Group
                | TypedCommand::Theme
                | TypedCommand::Sort
                | TypedCommand::Zone
                | TypedCommand::Namespace
                | TypedCommand::Export
                | TypedCommand::View
                | TypedCommand::SaveView
                | TypedCommand::SaveLayout,
            ) => Self::Look,
            UserAction::Seek(_)
            | UserAction::Faster
            | UserAction::Slower
            | UserAction::Typed(TypedCommand::At | TypedCommand::Speed | TypedCommand::Save) => Self::Time,
            UserAction::Mark
            | UserAction::MarkAll
            | UserAction::MarkRange
            | UserAction::Plan(_)
            | UserAction::Maintenance
            | UserAction::Maintain(_)
            | UserAction::Toggle(_)
            | UserAction::Apply
            | UserAction::Progress
            | UserAction::Pause
            | UserAction::Cancel
            | UserAction::Undo
            | UserAction::Resume
            | UserAction::Dismiss => Self::Act,
            UserAction::NextStep | UserAction::PreviousStep => Self::Session,
            UserAction::Theme
            | UserAction::Help
            | UserAction::Redraw
            | UserAction::Suspend
            | UserAction::Quit
            | UserAction::Palette
            | UserAction::Typed(_) => Self::Session,
            UserAction::Edit(_)
            | UserAction::Complete
            | UserAction::ChooseNext
            | UserAction::ChoosePrevious
            | UserAction::KeepFilter
            | UserAction::KeepTheme
            | UserAction::KeepEdits
            | UserAction::RunCommand
            | UserAction::Answer => Self::Typing,
        }
    }
}

impl HelpSheet {
    pub(super) fn edit(&mut self, request: InputRequest) {
        self.search.handle(request);
        self.scrolled = 0;
    }

    /// Clears the search and shows the full list again. Returns whether a search was open.
    pub(super) fn leave_search(&mut self) -> bool {
        let was_open = self.is_typing || !self.search.value().is_empty();
        if was_open {
            *self = Self::default();
        }
        was_open
    }

    /// Commands that match the search, in groups. Commands that would do something come first; within a group, commands
    /// of the focused pane come first.
    pub fn rows(&self, app: &App) -> Vec<HelpRow> {
        let words = self.search.value().to_lowercase();
        let words: Vec<&str> = words.split_whitespace().collect();
        let mut found: Vec<(HelpGroup, bool, &'static Command)> = COMMANDS
            .iter()
            .filter(|command| matches(app, command, &words))
            .map(|command| (group(app, command), is_general(command), command))
            .collect();
        found.sort_by_key(|(group, is_general, _)| (*group, *is_general && *group < HelpGroup::Elsewhere));
        let mut rows = Vec::with_capacity(found.len() + 6);
        let mut before = None;
        for (group, _, command) in found {
            if before.replace(group) != Some(group) {
                rows.push(HelpRow::Title(group));
            }
            rows.push(HelpRow::Command(command, group));
        }
        rows
    }
}

fn group(app: &App, command: &Command) -> HelpGroup {
    if matches!(command.context, KeyContext::Typing | KeyContext::TypingOf(_)) {
        return HelpGroup::Typing;
    }
    let applies = command.context.applies(app.screen.command_focus());
    if applies && app.would_act(command.action) {
        HelpGroup::for_action(command.action)
    } else {
        HelpGroup::Elsewhere
    }
}

/// Whether a command applies in all panes.
const fn is_general(command: &Command) -> bool {
    matches!(command.context, KeyContext::Everywhere | KeyContext::Always)
}

fn matches(app: &App, command: &Command, words: &[&str]) -> bool {
    let text = format!("{} {} {}", command.name, command.doc, command.context).to_lowercase();
    let is_key =
        |word: &str| app.preferences.keymap.shortcuts(command).iter().any(|key| key.to_lowercase() == word);
    words.iter().all(|word| text.contains(word) || is_key(word))
}
