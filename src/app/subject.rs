//! The node, pod or budget that a row is about.

use super::{App, Pane, detail::DetailSubject, preview::Preview};
use crate::model::JournalSubject;
use kordon_core::{cluster::NodeName, forecast::LaneFold};

/// Node, pod or budget of the selected row in the focused pane.
///
/// # Errors
/// The row has no detail, or its subject no longer exists.
pub(super) fn subject_of_row(app: &App) -> Result<Option<DetailSubject>, String> {
    let screen = &app.screen;
    Ok(match screen.focus {
        Pane::Nodes => screen.selected_node().cloned().map(DetailSubject::Node),
        Pane::Pods => screen.pods.list.selected().cloned().map(DetailSubject::Pod),
        Pane::Evictions => screen.evictions.list.selected().cloned().map(DetailSubject::Pod),
        Pane::Pending => screen.pending.list.selected().cloned().map(DetailSubject::Pod),
        Pane::Forecast => {
            let lane = screen.forecast.selected();
            if lane.is_some_and(|lane| lane.fold == LaneFold::Zone) {
                return Err("this lane is of a whole zone: Enter shows its nodes".into());
            }
            screen.forecast.node().cloned().map(DetailSubject::Node)
        }
        Pane::Plan => {
            let pod = screen.overlays.plan().and_then(Preview::selected_pod);
            pod.map(DetailSubject::Pod)
        }
        Pane::Progress => {
            let shown = screen.overlays.progress().zip(app.shown_operation());
            let pod = shown.and_then(|(shown, entry)| shown.selected_pod(&entry.progress));
            pod.cloned().map(DetailSubject::Pod)
        }
        Pane::Journal => subject_of_entry(app)?,
        Pane::Departures => subject_of_departure(app)?,
        Pane::Events => app.subject_of_event()?,
        Pane::Audit => subject_of_finding(app)?,
        Pane::Budgets => screen.budgets.list.selected().cloned().map(DetailSubject::Budget),
        Pane::Zones | Pane::Detail => None,
    })
}

/// Subject of the selected journal entry.
///
/// # Errors
/// The subject no longer exists, or is neither a node nor a pod.
fn subject_of_entry(app: &App) -> Result<Option<DetailSubject>, String> {
    let (shown, selected) = (app.shown(), app.screen.journal.selected());
    let Some(entry) = selected.and_then(|number| shown.journal.entry(*number)) else { return Ok(None) };
    let cluster = &shown.cluster;
    match entry.subject() {
        Some(JournalSubject::Node(node)) if cluster.node(node).is_some() => {
            Ok(Some(DetailSubject::Node(node.clone())))
        }
        Some(JournalSubject::Pod(pod, _)) if cluster.pod(pod).is_some() => {
            Ok(Some(DetailSubject::Pod(pod.clone())))
        }
        Some(JournalSubject::Node(node)) => Err(format!("node {node} is gone")),
        Some(JournalSubject::Pod(pod, _)) => Err(format!("pod {pod} is gone")),
        Some(JournalSubject::Other(_)) | None => Err("this entry is about neither a node nor a pod".into()),
    }
}

/// Pod of the selected departure.
///
/// # Errors
/// The pod is gone.
fn subject_of_departure(app: &App) -> Result<Option<DetailSubject>, String> {
    let (shown, selected) = (app.shown(), app.screen.departures.list.selected());
    let Some(entry) = selected.and_then(|id| shown.departures.entry(*id)) else { return Ok(None) };
    match shown.cluster.pod(&entry.pod) {
        Some(pod) if pod.uid == entry.uid => Ok(Some(DetailSubject::Pod(entry.pod.clone()))),
        Some(_) | None => Err(format!("pod {} is gone", entry.pod)),
    }
}

/// Node of the selected finding of the audit, or its pod if it concerns only one.
///
/// # Errors
/// The node or pod is gone, or the finding concerns several pods or none.
fn subject_of_finding(app: &App) -> Result<Option<DetailSubject>, String> {
    let (shown, selected) = (app.shown(), app.screen.audit.list.selected());
    let Some((id, known)) = selected.zip(shown.predictions.audit()) else { return Ok(None) };
    let Some(finding) = known.audit.findings.iter().find(|finding| finding.id() == *id) else {
        return Ok(None);
    };
    let cluster = &shown.cluster;
    if finding.subject.kind == *"Node" {
        let node = NodeName(finding.subject.name.clone());
        let is_there = cluster.node(&node).is_some();
        return if is_there {
            Ok(Some(DetailSubject::Node(node)))
        } else {
            Err(format!("node {node} is gone"))
        };
    }
    match finding.pods.first().filter(|_| finding.pods.len() == 1) {
        Some(pod) if cluster.pod(pod).is_some() => Ok(Some(DetailSubject::Pod(pod.clone()))),
        Some(pod) => Err(format!("pod {pod} is gone")),
        None => Err("this finding is about neither a node nor a single pod".into()),
    }
}
