//! Dialogs: questions drawn over all panes until the operator answers.

use tui_input::{Input, InputRequest};

use kordon_core::{
    cluster::OperationId,
    operation::approval::{Approval, Prompt},
};

use super::maintenance::{MaintenanceProposal, StoppedProposal};

/// An open question to the operator. Only the requested words, or a choice other than the first, count as yes.
#[derive(Clone, Debug)]
pub struct Dialog {
    /// Number that every result of the dialog's jobs carries; a result with another number belongs to an earlier
    /// dialog.
    pub number: u64,
    pub subject: DialogSubject,
    /// Index of the choice that Enter takes. The first choice changes nothing.
    pub chosen: usize,
    /// The words of the answer that have been typed so far.
    pub input: Input,
    /// Whether the last answer differed from the requested words.
    pub mismatch: bool,
}

/// What a dialog asks about.
#[derive(Clone, Debug)]
pub enum DialogSubject {
    /// An undo, while its operation is looked up in the journal.
    FindUndo,
    /// An operation that is about to start.
    Approval(Box<Approval>),
    /// A maintenance that is about to start.
    Maintenance(Box<MaintenanceProposal>),
    /// A maintenance that was stopped and is about to be resumed or released.
    Stopped(Box<StoppedProposal>),
    /// The cancellation of this operation.
    Cancel(OperationId),
    /// The cancellation of this maintenance.
    CancelMaintenance(OperationId),
    /// The decision to quit while operations are in progress.
    Quit,
}

/// The kind of answer that a dialog asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DialogPrompt<'a> {
    /// The operator selects one of these choices.
    Choice(Vec<&'a str>),
    /// The operator types exactly these words.
    Words(&'a str),
}

/// The operator's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DialogReply {
    No,
    /// The answer yes, with the index of the selected choice; 1 if the dialog asks for typed words.
    Yes(usize),
}

const QUIT: [&str; 3] = ["Stay", "Quit, leave it as it is", "Cancel it, then quit"];

impl Dialog {
    pub fn new(number: u64, subject: DialogSubject) -> Self {
        Self { number, subject, chosen: 0, input: Input::default(), mismatch: false }
    }

    /// Clears the chosen or typed answer to an earlier question.
    pub fn clear(&mut self) {
        (self.chosen, self.mismatch) = (0, false);
        self.input = Input::default();
    }

    /// The approval that the dialog asks for.
    pub fn approval(&self) -> Option<&Approval> {
        match &self.subject {
            DialogSubject::Approval(approval) => Some(approval),
            DialogSubject::FindUndo
            | DialogSubject::Maintenance(_)
            | DialogSubject::Stopped(_)
            | DialogSubject::Cancel(_)
            | DialogSubject::CancelMaintenance(_)
            | DialogSubject::Quit => None,
        }
    }

    /// The kind of answer that the dialog asks for; `None` while it asks for no answer.
    pub fn prompt(&self) -> Option<DialogPrompt<'_>> {
        match &self.subject {
            DialogSubject::FindUndo => None,
            DialogSubject::Approval(_) | DialogSubject::Maintenance(_) | DialogSubject::Stopped(_) => {
                Some(match self.asked()? {
                    Prompt::Yes(words) => DialogPrompt::Choice(vec!["Cancel", words]),
                    Prompt::Words(words) => DialogPrompt::Words(words),
                })
            }
            DialogSubject::Cancel(_) | DialogSubject::CancelMaintenance(_) => {
                Some(DialogPrompt::Choice(vec!["Continue it", "Cancel it"]))
            }
            DialogSubject::Quit => Some(DialogPrompt::Choice(QUIT.to_vec())),
        }
    }

    /// The confirmation that an operation or a maintenance needs before it starts; `None` if the dialog asks for no
    /// confirmation now.
    fn asked(&self) -> Option<&Prompt> {
        match &self.subject {
            DialogSubject::Approval(approval) => Some(&approval.question()?.prompt),
            DialogSubject::Maintenance(proposal) => Some(&proposal.prompt),
            DialogSubject::Stopped(proposal) => Some(&proposal.prompt),
            DialogSubject::FindUndo
            | DialogSubject::Cancel(_)
            | DialogSubject::CancelMaintenance(_)
            | DialogSubject::Quit => None,
        }
    }

    /// Whether the dialog's approval has ended; `false` for a dialog without an approval.
    pub fn has_ended(&self) -> bool {
        match &self.subject {
            DialogSubject::Approval(approval) => approval.decision().is_some(),
            DialogSubject::FindUndo
            | DialogSubject::Maintenance(_)
            | DialogSubject::Stopped(_)
            | DialogSubject::Cancel(_)
            | DialogSubject::CancelMaintenance(_)
            | DialogSubject::Quit => false,
        }
    }

    /// Whether Esc closes the dialog.
    pub fn can_be_left(&self) -> bool {
        match &self.subject {
            DialogSubject::Approval(approval) => self.has_ended() || approval.can_be_cancelled(),
            DialogSubject::FindUndo
            | DialogSubject::Maintenance(_)
            | DialogSubject::Stopped(_)
            | DialogSubject::Cancel(_)
            | DialogSubject::CancelMaintenance(_)
            | DialogSubject::Quit => true,
        }
    }

    pub fn choose(&mut self, by: isize) {
        if let Some(DialogPrompt::Choice(choices)) = self.prompt() {
            self.chosen = self.chosen.wrapping_add_signed(by).wrapping_add(choices.len()) % choices.len();
        }
    }

    /// Edits the typed words. If the dialog offers choices, arrow keys and first letters select a choice.
    pub fn edit(&mut self, request: InputRequest) {
        match (self.prompt(), request) {
            (Some(DialogPrompt::Words(_)), request) => {
                self.input.handle(request);
                self.mismatch = false;
            }
            (_, InputRequest::GoToPrevChar) => self.choose(-1),
            (_, InputRequest::GoToNextChar) => self.choose(1),
            (Some(DialogPrompt::Choice(choices)), InputRequest::InsertChar(letter)) => {
                let starts = |choice: &&str| choice.to_lowercase().starts_with(letter.to_ascii_lowercase());
                self.chosen = choices.iter().position(starts).unwrap_or(self.chosen);
            }
            _ => {}
        }
    }

    /// The answer that Enter gives; `None` if the typed words are not the requested ones, or there is nothing to
    /// answer.
    pub fn reply(&mut self) -> Option<DialogReply> {
        if self.has_ended() {
            return Some(DialogReply::No);
        }
        if let Some(prompt @ Prompt::Words(_)) = self.asked() {
            self.mismatch = !prompt.accepts(self.input.value());
            return (!self.mismatch).then_some(DialogReply::Yes(1));
        }
        self.prompt().map(|_| if self.chosen == 0 { DialogReply::No } else { DialogReply::Yes(self.chosen) })
    }
}
