//! Data about the object of the detail, read while the detail is shown: its Events and the whole object.

use std::sync::Arc;

use super::{Detail, DetailRow, DetailSubject};
use crate::{
    app::App,
    model::{Model, Timeline},
};
use kordon_core::cluster::{
    EventSubject, FetchedObject, Key, KnownHealthChecks, KnownNodeClaims, Labels, Name, NodeName,
    ObjectEvents, ObjectRead, Version,
};
use kordon_core::plan::{eviction_note::awaited_claim, words::counted};
use kordon_time::Timestamp;

/// The object whose detail is shown, as the watches have reported it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownObject {
    pub subject: EventSubject,
    pub version: Version,
}

/// Data that was read about the shown object: its Events, or the whole object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubjectReport {
    Events(ObjectEvents),
    Object(ObjectRead),
}

impl App {
    /// The object whose detail is shown; `None` if no detail is shown or the screen is frozen.
    pub fn shown_object(&self) -> Option<ShownObject> {
        let detail = self.screen.overlays.shown_detail().filter(|_| !self.is_frozen())?;
        detail.shown_object(&self.model)
    }

    /// The node whose detail is shown; `None` if no node's detail is shown or the screen is frozen.
    pub fn shown_node(&self) -> Option<NodeName> {
        let detail = self.screen.overlays.shown_detail().filter(|_| !self.is_frozen())?;
        match &detail.subject {
            DetailSubject::Node(node) => Some(node.clone()),
            DetailSubject::Pod(_) | DetailSubject::Budget(_) => None,
        }
    }

    /// The node whose detail is shown, with its version, if Karpenter manages the node.
    pub fn shown_karpenter_node(&self) -> Option<(NodeName, Version)> {
        let node = self.model.cluster.node(&self.shown_node()?)?;
        KnownNodeClaims::concern(node).then(|| (node.name.clone(), node.version))
    }

    /// The node whose detail is shown, with its version, if medik8s may fence the node.
    pub fn shown_unhealthy_node(&self) -> Option<(NodeName, Version)> {
        let node = self.model.cluster.node(&self.shown_node()?)?;
        KnownHealthChecks::concern(node).then(|| (node.name.clone(), node.version))
    }

    /// The pod whose detail is shown, with its version, if it may wait for a volume that is attached to another node.
    pub fn shown_starting_pod(&self) -> Option<(Key, Version)> {
        let detail = self.screen.overlays.shown_detail().filter(|_| !self.is_frozen())?;
        let DetailSubject::Pod(key) = &detail.subject else { return None };
        let cluster = &self.model.cluster;
        let pod = cluster.pod(key)?;
        awaited_claim(cluster, pod).is_some().then(|| (key.clone(), pod.version))
    }

    /// Shows the data read about an object, if its detail is still open.
    pub fn on_subject_report(&mut self, subject: &EventSubject, report: SubjectReport, now: Timestamp) {
        let model = &self.model;
        let detail = self.screen.overlays.detail_mut();
        let is_shown =
            |detail: &Detail| detail.shown_object(model).is_some_and(|shown| shown.subject == *subject);
        let Some(detail) = detail.filter(|detail| is_shown(detail)) else { return };
        match report {
            SubjectReport::Events(events) => {
                detail.events = events.after(std::mem::take(&mut detail.events));
            }
            SubjectReport::Object(object) => {
                if let Some(object) = &object.object {
                    detail.yaml.replace(&object.yaml);
                }
                detail.object = object.after(std::mem::take(&mut detail.object));
            }
        }
        self.arrange(now);
    }
}

impl Detail {
    /// Marks Events and the object as unknown: a recording has neither.
    pub(in crate::app) fn set_unrecorded(&mut self) {
        let failure = Some("a recording has only what watches report".to_owned());
        self.events = ObjectEvents { events: None, failure: failure.clone() };
        self.object = ObjectRead { object: None, failure };
    }

    fn shown_object(&self, model: &Model) -> Option<ShownObject> {
        match &self.subject {
            DetailSubject::Node(name) => {
                let node = model.cluster.node(name)?;
                Some(ShownObject { subject: EventSubject::node(node), version: node.version })
            }
            DetailSubject::Pod(key) => {
                let pod = model.cluster.pod(key)?;
                Some(ShownObject { subject: EventSubject::pod(pod), version: pod.version })
            }
            DetailSubject::Budget(key) => {
                let budget = model.cluster.budgets().get(key)?;
                Some(ShownObject { subject: EventSubject::budget(budget), version: budget.version })
            }
        }
    }

    /// Rows of the timeline of the object, newest entry first. If Events are unknown, the rows say so and give the
    /// reason.
    pub(super) fn timeline_rows(&self, model: &Model) -> Vec<DetailRow> {
        let ObjectEvents { events, failure } = &self.events;
        let known = events.as_deref().unwrap_or_default();
        let Timeline { entries, total } = match &self.subject {
            DetailSubject::Node(node) => Timeline::for_node(model, node, known),
            DetailSubject::Pod(pod) => Timeline::for_pod(model, pod, known),
            DetailSubject::Budget(_) => Timeline::for_events(model, known),
        };
        let state = match (failure, events) {
            (Some(why), _) => Some(format!("Events unknown: {why}")),
            (None, None) => Some("listing Events".into()),
            (None, Some(_)) if entries.is_empty() => Some("nothing in this session, and no Events".into()),
            (None, Some(_)) => None,
        };
        let order = match (entries.len(), total) {
            (0, _) => None,
            (shown, total) if shown < total => Some(format!("the newest {shown} of {total}")),
            _ => Some("this session and Events, newest first".into()),
        };
        let note = order.into_iter().chain(state).collect::<Vec<_>>().join(" · ");
        let title = DetailRow::Section { title: "timeline", note };
        std::iter::once(title)
            .chain(entries.into_iter().map(|entry| DetailRow::Past(Box::new(entry))))
            .collect()
    }

    /// Rows of the object's labels, as the watches report them.
    pub(super) fn label_rows(labels: &Labels) -> Vec<DetailRow> {
        let note = if labels.is_empty() { "none" } else { "" };
        let row =
            |(key, value): (&Name, &Name)| DetailRow::Pair { key: (**key).into(), value: (**value).into() };
        let title = DetailRow::Section { title: "labels", note: note.into() };
        std::iter::once(title).chain(labels.iter().map(row)).collect()
    }

    /// Rows of the object's annotations, if the object could be read.
    pub(super) fn annotation_rows(&self) -> Vec<DetailRow> {
        let empty = |object: &FetchedObject| object.annotations.is_empty().then(|| "none".into());
        let title = DetailRow::Section { title: "annotations", note: self.object_note(empty) };
        let pairs = self.object.object.iter().flat_map(|object| &object.annotations);
        let row =
            |(key, value): (&Arc<str>, &Arc<str>)| DetailRow::Pair { key: key.clone(), value: value.clone() };
        std::iter::once(title).chain(pairs.map(row)).collect()
    }

    /// Rows of the whole object as YAML.
    pub(super) fn yaml_rows(&self) -> Vec<DetailRow> {
        let hint = |_: &FetchedObject| Some(self.search_note());
        let title = DetailRow::Section { title: "yaml", note: self.object_note(hint) };
        let rows = self.yaml.rows().into_iter().map(|row| DetailRow::Yaml(Box::new(row)));
        std::iter::once(title).chain(rows).collect()
    }

    /// Note on the search: the number of lines that match; without a search, the key that starts one.
    fn search_note(&self) -> String {
        let path = self.go_to.clone().or_else(|| self.selected_path());
        match self.yaml.match_count() {
            None => "without managedFields · / finds · y closes".into(),
            Some(0) => "no line matches".into(),
            Some(count) => match path.and_then(|path| self.yaml.match_number(&path)) {
                Some(number) => format!("match {number} of {count} · n next, N previous"),
                None => format!("{} · n next, N previous", counted(count, "line matches", "lines match")),
            },
        }
    }

    /// The lines of the object as YAML; `None` until the object is known.
    pub(in crate::app) fn yaml_lines(&self) -> Option<&[Arc<str>]> {
        self.object.object.as_ref().map(|object| &object.yaml[..])
    }

    /// Note about the whole object: the reason if the object is unknown or outdated, otherwise the text that
    /// `of_object` makes from the object.
    fn object_note(&self, of_object: impl Fn(&FetchedObject) -> Option<String>) -> String {
        match &self.object {
            ObjectRead { object: None, failure: None } => "loading".into(),
            ObjectRead { object: None, failure: Some(why) } => format!("unknown: {why}"),
            ObjectRead { object: Some(_), failure: Some(why) } => format!("as it was before: {why}"),
            ObjectRead { object: Some(object), failure: None } => of_object(object).unwrap_or_default(),
        }
    }
}
