//! What was begun before: drains that were cut off, and what can be put back.

use super::{
    super::{
        dialog::{ApplyRequest, DialogStage, DialogSubject, DialogWait, Prompt, UndoRequest},
        pane::Pane,
    },
    App, Job, StartedOperation,
    apply::short,
};
use crate::{
    cluster::NodeName,
    engine::{Severity, Why},
    journal::JournaledOperation,
    model::JournalEntry,
    operation::{Guards, Operation, OperationOptions, Overrides},
    plan::{Action, EvictionRules},
    time::Timestamp,
};

impl App {
    pub(super) fn on_unfinished(&mut self, found: Result<Vec<JournaledOperation>, String>, now: Timestamp) {
        match found {
            Ok(pasts) => {
                let ours = |past: &JournaledOperation| self.acts.undertaking(&past.id).is_some();
                let pasts: Vec<JournaledOperation> = pasts.into_iter().filter(|past| !ours(past)).collect();
                self.acts.unfinished = pasts.into();
            }
            Err(why) => {
                let text = format!("what was cut off cannot be told: {why}");
                self.model.journal.add(JournalEntry::new(
                    now,
                    Severity::Warning,
                    "journal",
                    &text,
                    Why::default(),
                ));
            }
        }
    }

    /// Leaves the drain that is offered as it is; it is offered again at the next start.
    pub(in crate::app) fn dismiss(&mut self) {
        self.screen.message = Some(match self.acts.unfinished.pop_front() {
            Some(past) => format!("{} stays as it is; `kordon journal` lists it", past.id),
            None => "no drain was cut off".into(),
        });
    }

    /// Goes on with the drain that was cut off: a plan of what is left of it, and a confirmation.
    pub(in crate::app) fn resume(&mut self, now: Timestamp) {
        let Some(past) = self.acts.unfinished.front().cloned() else {
            self.screen.message = Some("no drain was cut off".into());
            return;
        };
        if let Some(why) = self.why_not_now() {
            self.screen.message = Some(why);
            return;
        }
        let Some(options) = past.start.drain.clone() else { return };
        let nodes = self.still_there(&past, now);
        if nodes.is_empty() {
            self.screen.message = Some("none of its nodes is there any more: X dismisses it".into());
            return;
        }
        let action = Action::Drain { nodes, options };
        let orders = OperationOptions {
            why: past.start.why.clone(),
            until: past.start.until,
            total_timeout: self.acts.within,
            ..OperationOptions::default()
        };
        let apply = ApplyRequest {
            action: action.clone(),
            orders,
            resumes: Some(past),
            plan: None,
            drifts: Vec::new(),
            guards: Guards::default(),
            breaches: Vec::new(),
            taken: Vec::new(),
            waivers: Overrides::default(),
        };
        let number = self.ask(DialogSubject::Apply(Box::new(apply)), DialogStage::Waits(DialogWait::Plan));
        self.plan(number, DialogWait::Plan, action, now);
    }

    /// The nodes of a drain that are the same as then.
    fn still_there(&mut self, past: &JournaledOperation, now: Timestamp) -> Vec<NodeName> {
        let mut nodes = Vec::new();
        for (name, uid) in &past.start.nodes {
            let text = match self.model.cluster.node(name) {
                Some(node) if node.uid == *uid => {
                    nodes.push(name.clone());
                    continue;
                }
                Some(_) => "is another one by now: it is left alone",
                None => "is gone",
            };
            let subject = format!("node/{name}");
            self.model.journal.add(JournalEntry::new(now, Severity::Warning, &subject, text, Why::default()));
        }
        nodes
    }

    /// Looks for what is to be undone: what is shown, the drain that was cut off, or the last one there is.
    pub(in crate::app) fn undo(&mut self) {
        let shown = self.shown_undertaking().filter(|_| self.screen.focus == Pane::Progress);
        let shown = shown.filter(|shown| !shown.is_undo());
        if shown.is_some_and(super::OperationEntry::runs) {
            self.screen.message = Some("it goes on: C cancels it, then it can be undone".into());
            return;
        }
        let named = shown.map(|shown| shown.id().clone());
        let id = named.or_else(|| self.acts.unfinished.front().map(|past| past.id.clone()));
        let number = self.ask(
            DialogSubject::Undo(Box::new(UndoRequest::NOTHING)),
            DialogStage::Waits(DialogWait::Journal),
        );
        self.acts.chores.push_back(Job::FindUndoable { number, id });
    }

    pub(super) fn on_undoable(&mut self, number: u64, found: Result<Option<JournaledOperation>, String>) {
        let past = match found {
            Ok(Some(past)) => past,
            Ok(None) => return self.refuse(number, vec!["there is nothing to put back".into()]),
            Err(why) => return self.refuse(number, vec![why]),
        };
        let (steps, kept) = past.undo().writes(&self.model.cluster);
        let nothing = steps.is_empty();
        let undone = past.undone;
        let put_back = UndoRequest { past: Some(past), steps, kept };
        let wanted = put_back.permissions();
        let why_not = self.why_not_now();
        let Some(dialog) = self.question(number) else { return };
        dialog.about = DialogSubject::Undo(Box::new(put_back));
        match why_not {
            _ if undone && nothing => self.refuse(number, vec!["it was put back already".into()]),
            _ if nothing => self.refuse(number, vec!["there is nothing to put back".into()]),
            Some(why) => self.refuse(number, vec![why]),
            None => self.wait(number, DialogWait::Permissions, Job::Check { number, wanted }),
        }
    }

    pub(super) fn ask_about_undo(&mut self, number: u64) {
        let context = self.word_of_context();
        let Some(dialog) = self.question(number) else { return };
        let DialogSubject::Undo(put_back) = &dialog.about else { return };
        let asked = if put_back.nodes() > 1 {
            Prompt::Words(context)
        } else {
            Prompt::Choice(&["Cancel", "Yes, put it back"])
        };
        dialog.go_on(DialogStage::Asks(asked));
    }

    pub(super) fn agreed_to_undo(&mut self) {
        let why_not = self.why_not_now();
        let Some(dialog) = self.screen.overlays.question() else { return };
        let number = dialog.number;
        let DialogSubject::Undo(put_back) = &dialog.about else { return };
        let Some(id) = put_back.past.as_ref().map(|past| past.id.clone()) else { return };
        match why_not {
            Some(why) => self.refuse(number, vec![why]),
            None => self.wait(number, DialogWait::Beginning, Job::Undo { number, id }),
        }
    }

    pub(super) fn on_undo_begun(&mut self, begun: StartedOperation, now: Timestamp) {
        let StartedOperation { id, by, past: Some(past) } = begun else { return };
        let undoes = Some(past.id.clone());
        let orders =
            OperationOptions { id, by, why: self.acts.reason.clone(), undoes, ..OperationOptions::default() };
        let rules = EvictionRules::of(self.model.settings.version);
        let conduct = Operation::undo(&past.undo(), orders, rules, &self.model.cluster, now);
        let title = format!("undo of {}", title(&past));
        self.acts.unfinished.retain(|other| other.id != past.id);
        self.take_up(title, conduct, None, Some(past), now);
    }
}

/// What an undertaking of the journal is of, as `drain general-1a-02`.
pub fn title(past: &JournaledOperation) -> String {
    let start = &past.start;
    let nodes = start.nodes.iter().map(|(node, _)| node.to_string());
    let pods = start.pods.iter().map(|(pod, _)| pod.to_string());
    let names: Vec<String> = if start.nodes.is_empty() { pods.collect() } else { nodes.collect() };
    format!("{} {}", start.action, short(&names))
}
