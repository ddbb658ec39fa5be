//! The Events about the subject of the detail: followed only while it is shown.

use super::{Detail, DetailRow, DetailSubject, Tone};
use crate::{
    app::App,
    cluster::{ClusterEvent, EventSubject, ObjectEvents, event::fold},
    model::Model,
    plan::words::counted,
    time::Timestamp,
};

impl App {
    /// Whose Events are shown now; none where no detail is, and on a frozen screen.
    pub fn shown_event_subject(&self) -> Option<EventSubject> {
        let detail = self.screen.overlays.shown_detail().filter(|_| !self.is_frozen())?;
        detail.event_subject(&self.model)
    }

    /// Shows the Events about an object, if its detail is still open.
    pub fn on_events(&mut self, subject: &EventSubject, events: ObjectEvents, now: Timestamp) {
        let model = &self.model;
        let detail = self.screen.overlays.detail_mut();
        let Some(detail) = detail.filter(|detail| detail.event_subject(model).as_ref() == Some(subject))
        else {
            return;
        };
        // What was listed before stays beside the failure.
        let before = std::mem::take(&mut detail.events).events;
        detail.events = ObjectEvents { events: events.events.or(before), failure: events.failure };
        self.arrange(now);
    }
}

impl Detail {
    fn event_subject(&self, model: &Model) -> Option<EventSubject> {
        match &self.subject {
            DetailSubject::Node(name) => Some(EventSubject::node(model.cluster.node(name)?)),
            DetailSubject::Pod(key) => Some(EventSubject::pod(model.cluster.pod(key)?)),
        }
    }

    /// The Events, folded by reason, the newest first; and why they are not known, if so.
    pub(super) fn event_rows(&self, model: &Model) -> Vec<DetailRow> {
        let ObjectEvents { events, failure } = &self.events;
        let folded = fold(events.as_deref().unwrap_or_default());
        let note = match (failure, events) {
            (Some(why), _) => format!("unknown: {why}"),
            (None, None) => "listing".into(),
            (None, Some(events)) if events.is_empty() => "none that the server still has".into(),
            (None, Some(_)) => String::new(),
        };
        let row = |event: &ClusterEvent| DetailRow::Fact {
            name: event.reason.to_string(),
            at: event.last.map(|at| model.cluster.local(at)),
            text: event_text(event, model),
            tone: if event.is_warning { Tone::Marked } else { Tone::Plain },
        };
        let title = DetailRow::Section { title: "events", note };
        std::iter::once(title).chain(folded.iter().map(row)).collect()
    }
}

/// `Warning · 4 times in 3m20s · disk pressure · kubelet`
fn event_text(event: &ClusterEvent, model: &Model) -> String {
    let warning = event.is_warning.then(|| "Warning".to_owned());
    let span = event.first.zip(event.last).map(|(first, last)| {
        let span = model.cluster.local(last).since(model.cluster.local(first));
        format!("{} in {span}", counted(usize::try_from(event.count).unwrap_or(usize::MAX), "time", "times"))
    });
    let times = span.filter(|_| event.count > 1);
    let source = Some(event.source.to_string()).filter(|source| !source.is_empty());
    let parts = [warning, times, Some(event.message.clone()), source];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}
