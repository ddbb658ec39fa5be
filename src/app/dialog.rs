//! A question that lies over everything until it is answered, and how far its subject has come.

use tui_input::{Input, InputRequest};

use crate::{
    cluster::{NodeName, OperationId},
    journal::JournaledOperation,
    operation::{Breach, Guards, OperationOptions, Overrides, drift::Drift},
    plan::{Action, Permission, Plan, PlanStep, undo::NotUndone},
};

/// The question. Nothing but the word that is asked for, or the choice that is not the first, is a yes.
#[derive(Clone, Debug)]
pub struct Dialog {
    /// Told to whatever is found out for it, so that answers to an earlier question are known as such.
    pub number: u64,
    pub about: DialogSubject,
    pub stage: DialogStage,
    /// The choice that Enter gives; the first one changes nothing.
    pub chosen: usize,
    /// The word as far as it was typed.
    pub input: Input,
    /// Why the last answer was none.
    pub fault: Option<String>,
}

/// What it is about.
#[derive(Clone, Debug)]
pub enum DialogSubject {
    Apply(Box<ApplyRequest>),
    Undo(Box<UndoRequest>),
    /// To cancel this undertaking.
    Cancel(OperationId),
    /// To leave while something is carried out.
    Quit,
}

/// A plan that is about to be carried out.
#[derive(Clone, Debug)]
pub struct ApplyRequest {
    pub action: Action,
    pub orders: OperationOptions,
    /// The undertaking that it goes on with; none for a new one.
    pub resumes: Option<JournaledOperation>,
    /// As it is shown and agreed to; none until it has been worked out.
    pub plan: Option<Box<Plan>>,
    /// What has changed since it was agreed to first.
    pub drifts: Vec<Drift>,
    pub guards: Guards,
    /// Guard rails that it would break.
    pub breaches: Vec<Breach>,
    /// Nodes that somebody else is at work on, and who.
    pub taken: Vec<(NodeName, String)>,
    /// What agreeing waives.
    pub waivers: Overrides,
}

/// What is about to be put back.
#[derive(Clone, Debug)]
pub struct UndoRequest {
    /// The undertaking that is undone; none until it has been found.
    pub past: Option<JournaledOperation>,
    pub steps: Vec<PlanStep>,
    pub kept: Vec<NotUndone>,
}

/// How far it has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DialogStage {
    /// Something is found out for it.
    Waits(DialogWait),
    Asks(Prompt),
    /// It cannot be, and why.
    Refused(Vec<String>),
}

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DialogWait {
    Journal,
    Plan,
    Permissions,
    /// The plan once more, over the newest state.
    PlanAgain,
    /// The beginning stands in the journal in a moment: too late to leave it.
    Beginning,
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prompt {
    /// One of these.
    Choice(&'static [&'static str]),
    /// These very words.
    Words(String),
}

/// What was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DialogReply {
    No,
    /// The choice with this place, or the words.
    Yes(usize),
}

impl Dialog {
    pub fn new(number: u64, about: DialogSubject, stage: DialogStage) -> Self {
        Self { number, about, stage, chosen: 0, input: Input::default(), fault: None }
    }

    /// Goes on to another stage; what was typed for the last one is forgotten.
    pub fn go_on(&mut self, stage: DialogStage) {
        (self.stage, self.chosen, self.fault) = (stage, 0, None);
        self.input = Input::default();
    }

    /// Whether it can still be left.
    pub fn can_be_left(&self) -> bool {
        self.stage != DialogStage::Waits(DialogWait::Beginning)
    }

    /// Chooses another answer, so many places on.
    pub fn choose(&mut self, by: isize) {
        if let DialogStage::Asks(Prompt::Choice(choices)) = &self.stage {
            self.chosen = self.chosen.wrapping_add_signed(by).wrapping_add(choices.len()) % choices.len();
        }
    }

    /// Types into its line; where there is none, arrows go through the choices, and their first letters choose.
    pub fn edit(&mut self, request: InputRequest) {
        match (&self.stage, request) {
            (DialogStage::Asks(Prompt::Words(_)), request) => {
                self.input.handle(request);
                self.fault = None;
            }
            (_, InputRequest::GoToPrevChar) => self.choose(-1),
            (_, InputRequest::GoToNextChar) => self.choose(1),
            (DialogStage::Asks(Prompt::Choice(choices)), InputRequest::InsertChar(letter)) => {
                let begins = |choice: &&str| choice.to_lowercase().starts_with(letter.to_ascii_lowercase());
                self.chosen = choices.iter().position(begins).unwrap_or(self.chosen);
            }
            _ => {}
        }
    }

    /// What Enter says; none where it says nothing yet.
    pub fn reply(&mut self) -> Option<DialogReply> {
        match &self.stage {
            DialogStage::Waits(_) => None,
            DialogStage::Refused(_) => Some(DialogReply::No),
            DialogStage::Asks(Prompt::Choice(_)) if self.chosen == 0 => Some(DialogReply::No),
            DialogStage::Asks(Prompt::Choice(_)) => Some(DialogReply::Yes(self.chosen)),
            DialogStage::Asks(Prompt::Words(words)) if self.input.value().trim() == words => {
                Some(DialogReply::Yes(1))
            }
            DialogStage::Asks(Prompt::Words(_)) => {
                self.fault = Some("that is not what is to be typed; Esc leaves it".into());
                None
            }
        }
    }

    /// The plan that it is about, where it is.
    pub fn apply(&mut self) -> Option<&mut ApplyRequest> {
        match &mut self.about {
            DialogSubject::Apply(apply) => Some(apply),
            DialogSubject::Undo(_) | DialogSubject::Cancel(_) | DialogSubject::Quit => None,
        }
    }
}

impl UndoRequest {
    pub const NOTHING: Self = Self { past: None, steps: Vec::new(), kept: Vec::new() };

    /// What it takes.
    pub fn permissions(&self) -> Vec<Permission> {
        let steps = crate::plan::permission::of_steps(&self.steps);
        let nodes = self.past.iter().flat_map(|past| &past.start.nodes);
        let looks = nodes.map(|(node, _)| Permission::on_node("get", node));
        steps.into_iter().chain(looks).collect()
    }

    /// The nodes that are written to.
    pub fn nodes(&self) -> usize {
        let nodes: std::collections::BTreeSet<&NodeName> = self.steps.iter().filter_map(node_of).collect();
        nodes.len()
    }
}

/// The node that a step writes to.
fn node_of(step: &PlanStep) -> Option<&NodeName> {
    match step {
        PlanStep::Cordon { node, .. }
        | PlanStep::SetTaints { node, .. }
        | PlanStep::SetLabels { node, .. } => Some(node),
        PlanStep::Evict { .. } | PlanStep::Delete { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(asked: Prompt) -> Dialog {
        Dialog::new(1, DialogSubject::Quit, DialogStage::Asks(asked))
    }

    #[test]
    fn enter_alone_is_never_a_yes() {
        assert_eq!(asks(Prompt::Choice(&["Cancel", "Drain"])).reply(), Some(DialogReply::No));
        let mut dialog = asks(Prompt::Words("prod".into()));
        assert_eq!(dialog.reply(), None);
        assert!(dialog.fault.is_some());
        assert_eq!(Dialog::new(1, DialogSubject::Quit, DialogStage::Waits(DialogWait::Plan)).reply(), None);
    }

    #[test]
    fn choices_are_reached_by_arrows_and_first_letters_and_words_by_typing_them_whole() {
        let mut dialog = asks(Prompt::Choice(&["Cancel", "Drain"]));
        dialog.edit(InputRequest::GoToNextChar);
        assert_eq!(dialog.reply(), Some(DialogReply::Yes(1)));
        dialog.edit(InputRequest::InsertChar('c'));
        assert_eq!(dialog.reply(), Some(DialogReply::No));
        let mut dialog = asks(Prompt::Words("prod".into()));
        for letter in "pro".chars() {
            dialog.edit(InputRequest::InsertChar(letter));
        }
        assert_eq!(dialog.reply(), None);
        dialog.edit(InputRequest::InsertChar('d'));
        assert_eq!(dialog.reply(), Some(DialogReply::Yes(1)));
    }
}
