//! What the copy key puts on the clipboard of the user's terminal (OSC 52): the name of the selected object, the whole
//! object while it is shown as YAML, the equivalent command while a plan is shown, or its
//! diff.

use std::path::PathBuf;

use super::{
    App, Pane, PaneLayout,
    detail::{DetailSubject, DetailView},
    preferences::SavedView,
    subject::subject_of_row,
};
use crate::model::JournalSubject;

/// Maximum number of bytes that are copied. Terminals and tmux drop longer sequences.
pub const MOST_COPIED: usize = 72 * 1024;

/// A part of the focused pane to copy or save, and its destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TakenAlong {
    /// Copy the selected row to the clipboard.
    Row,
    /// Copy all rows to the clipboard.
    Rows,
    /// Copy the cell of the selected row in the column with this heading to the clipboard.
    Cell(String),
    /// Write all rows, or the screen, to a file.
    File(PathBuf),
    /// Save the focused list to the configuration, as a view of this name.
    View(String, SavedView),
    /// Save the sizes and places of the panes to the configuration.
    Layout(PaneLayout),
}

/// A text for the clipboard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    /// What was copied, for the message in the footer.
    pub what: String,
    pub text: String,
}

impl App {
    /// Returns the text that the copy key copies at the present focus.
    ///
    /// # Errors
    /// There is nothing to copy, or it is too long.
    pub(super) fn to_copy(&self) -> Result<Copied, String> {
        let copied = match self.screen.focus {
            _ if self.screen.overlays.maintenance().is_some() => self.maintenance_to_copy(),
            Pane::Detail => self.detail_to_copy(),
            Pane::Plan => self.command_to_copy(),
            Pane::Events => {
                let view = self.screen.overlays.event_list();
                view.and_then(|view| view.list.selected()).map(|row| name("object", row.about.to_string()))
            }
            Pane::Audit => self.screen.audit.list.selected().map(|finding| name("finding", finding.clone())),
            Pane::Departures => self.departure_to_copy(),
            Pane::Journal => self.entry_to_copy(),
            Pane::Zones => self.screen.zones.list.selected().map(|zone| name("zone", zone.to_string())),
            _ => subject_of_row(self)?.as_ref().map(subject),
        };
        let copied = copied.ok_or("there is nothing to copy here")?;
        if copied.text.len() > MOST_COPIED {
            return Err(format!("{} is too long for the clipboard of a terminal", copied.what));
        }
        Ok(copied)
    }

    fn detail_to_copy(&self) -> Option<Copied> {
        let detail = self.screen.overlays.detail()?;
        let lines = detail.yaml_lines().filter(|_| detail.view == DetailView::Yaml);
        Some(match lines {
            Some(lines) => {
                let text = lines.iter().map(|line| format!("{line}\n")).collect();
                Copied { what: "the YAML".into(), text }
            }
            None => subject(&detail.subject),
        })
    }

    /// The pod of the selected departure. Its name is copied although the pod is gone, because that is what the pane
    /// lists.
    fn departure_to_copy(&self) -> Option<Copied> {
        let entry = self.shown().departures.entry(*self.screen.departures.list.selected()?)?;
        Some(name("pod", entry.pod.to_string()))
    }

    /// The first object of the selected journal entry, whether or not it exists; the text of an entry without objects.
    fn entry_to_copy(&self) -> Option<Copied> {
        let entry = self.shown().journal.entry(*self.screen.journal.selected()?)?;
        Some(match entry.subject() {
            Some(JournalSubject::Node(node)) => name("node", node.to_string()),
            Some(JournalSubject::Pod(pod, _)) => name("pod", pod.to_string()),
            Some(JournalSubject::Other(_)) | None => Copied { what: "the entry".into(), text: entry.words() },
        })
    }

    /// The command that carries out the shown maintenance.
    fn maintenance_to_copy(&self) -> Option<Copied> {
        let request = &self.screen.overlays.maintenance()?.request;
        let copied = || Copied { what: "the command".into(), text: request.command() };
        (!request.nodes.is_empty()).then(copied)
    }

    fn command_to_copy(&self) -> Option<Copied> {
        let preview = self.screen.overlays.plan()?;
        if let Some(diff) = &preview.diff {
            return (!diff.lines.is_empty()).then(|| Copied { what: "the diff".into(), text: diff.text() });
        }
        let plan = preview.plan()?;
        let text = plan.command.clone().unwrap_or_else(|| plan.action.kordon());
        Some(Copied { what: "the command".into(), text })
    }
}

fn subject(subject: &DetailSubject) -> Copied {
    match subject {
        DetailSubject::Node(node) => name("node", node.to_string()),
        DetailSubject::Pod(pod) => name("pod", pod.to_string()),
        DetailSubject::Budget(budget) => name("budget", budget.to_string()),
    }
}

fn name(kind: &str, name: String) -> Copied {
    Copied { what: format!("{kind} {name}"), text: name }
}
