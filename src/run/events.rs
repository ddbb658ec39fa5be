//! Follows the Events about the object whose detail is shown, and about no other.

use std::fmt;

use kube::Client;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use crate::{
    cluster::{EventSubject, ObjectEvents},
    k8s::watch::follow_events,
};

/// Reports that wait to be shown. When it is full, the watch waits: each report has all Events.
const REPORTS: usize = 4;

/// A server that is asked for Events.
#[derive(Clone)]
pub struct EventServer(pub(super) Client);

impl fmt::Debug for EventServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventServer")
    }
}

/// Follows the Events about one object at a time.
pub struct ShownEvents {
    /// None where there is no server to ask.
    server: Option<EventServer>,
    following: Option<Following>,
}

/// A watch that runs. It ends when this is dropped.
struct Following {
    subject: EventSubject,
    reports: mpsc::Receiver<ObjectEvents>,
    _task: AbortOnDropHandle<()>,
}

impl ShownEvents {
    pub fn new(server: Option<EventServer>) -> Self {
        Self { server, following: None }
    }

    /// Follows the Events about this object from now on, and about no other one.
    pub fn follow(&mut self, wanted: Option<EventSubject>) {
        if self.following.as_ref().map(|following| &following.subject) == wanted.as_ref() {
            return;
        }
        self.following = wanted.zip(self.server.clone()).map(|(subject, EventServer(client))| {
            let (sender, reports) = mpsc::channel(REPORTS);
            let task = tokio::spawn(follow_events(client, subject.clone(), sender));
            Following { subject, reports, _task: AbortOnDropHandle::new(task) }
        });
    }

    /// The next report; forever none while nothing is followed. May be dropped and awaited again.
    pub async fn next(&mut self) -> (EventSubject, ObjectEvents) {
        let Some(following) = &mut self.following else { return std::future::pending().await };
        match following.reports.recv().await {
            Some(events) => (following.subject.clone(), events),
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};
    use tokio::{
        runtime::Handle,
        task::yield_now,
        time::{sleep, timeout},
    };

    use super::*;
    use crate::{
        clock::Clock,
        cluster::Node,
        demo::api::{Api, ApiOptions, Fault, FaultAnswer},
    };

    fn about(node: &str, name: &str, reason: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"name": name, "namespace": "default"},
            "involvedObject": {"kind": "Node", "name": node, "uid": node},
            "type": "Normal", "reason": reason, "message": "it happened", "source": {"component": "kubelet"},
        })
    }

    fn subject(node: &str) -> EventSubject {
        EventSubject::node(&Node { name: node.into(), uid: "u1".into(), ..Node::default() })
    }

    async fn next(shown: &mut ShownEvents) -> (Vec<String>, Option<String>) {
        let (_, ObjectEvents { events, failure }) =
            timeout(Duration::from_secs(30), shown.next()).await.expect("a report");
        let reasons = events.unwrap_or_default().iter().map(|event| event.reason.to_string()).collect();
        (reasons, failure)
    }

    fn asked(api: &Api) -> usize {
        api.log().iter().filter(|request| request.uri.contains("/events?")).count()
    }

    #[tokio::test(start_paused = true)]
    async fn events_of_the_shown_object_are_watched_and_no_task_is_left_once_nobody_looks() {
        let api = Api::new(Clock::system(), ApiOptions::default());
        api.load("events", about("n1", "one", "Starting"));
        api.load("events", about("n2", "other", "Rebooted"));
        let mut shown = ShownEvents::new(Some(EventServer(api.client())));
        let tasks = || Handle::current().metrics().num_alive_tasks();
        let before = tasks();
        shown.follow(Some(subject("n1")));
        assert_eq!(next(&mut shown).await, (vec!["Starting".into()], None));
        assert!(tasks() > before);
        api.load("events", about("n1", "two", "NodeReady"));
        api.load("events", about("n2", "more", "NodeReady"));
        assert_eq!(next(&mut shown).await.0.len(), 2, "its own, as they come");
        shown.follow(Some(subject("n2")));
        assert_eq!(next(&mut shown).await.0.len(), 2, "those of the other object");
        shown.follow(None);
        for _ in 0..100 {
            yield_now().await;
        }
        assert_eq!(tasks(), before, "a task is left behind");
        let requests = asked(&api);
        sleep(Duration::from_secs(900)).await;
        assert_eq!(asked(&api), requests, "nobody looks, and it asks on");
    }

    #[tokio::test(start_paused = true)]
    async fn a_missing_permission_is_said_once_and_a_granted_one_noticed() {
        let api = Api::new(Clock::system(), ApiOptions::default());
        api.load("events", about("n1", "one", "Starting"));
        api.inject(Fault::always(FaultAnswer::Forbidden).on(&[], "events"));
        let mut shown = ShownEvents::new(Some(EventServer(api.client())));
        shown.follow(Some(subject("n1")));
        let (events, failure) = next(&mut shown).await;
        assert!(events.is_empty() && failure.is_some_and(|why| why.contains("events")));
        assert!(timeout(Duration::from_secs(30), shown.next()).await.is_err(), "it asks once a minute");
        api.clear_faults();
        sleep(Duration::from_secs(60)).await;
        assert_eq!(next(&mut shown).await, (vec!["Starting".into()], None));
    }
}
