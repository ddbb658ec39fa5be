//! Watches the object whose detail is shown, and the Events about this object. Other objects are not watched. Events of
//! the whole cluster are watched while their list is open.

use std::fmt;

use kube::Client;
use tokio::sync::{mpsc, watch};
use tokio_util::task::AbortOnDropHandle;

use crate::{
    app::detail::{ShownObject, SubjectReport},
    k8s::watch::{follow_cluster_events, follow_events, follow_object},
};
use kordon_core::{
    cluster::{EventSubject, EventsOfCluster, ObjectEvents, ObjectRead, Version},
    engine::ServerVersion,
};

/// Capacity of each queue of reports. While the queue is full, the sender waits. No change is lost, because each report
/// has the full state.
const REPORTS: usize = 4;

/// An API server from which Events and objects are read.
#[derive(Clone)]
pub struct EventServer {
    pub client: Client,
    pub(super) version: ServerVersion,
}

impl fmt::Debug for EventServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventServer")
    }
}

/// Follows one object at a time, and the Events about this object.
pub struct ShownEvents {
    /// API server from which the object and its Events are read; none if there is no API server.
    server: Option<EventServer>,
    following: Option<Following>,
}

/// The object that is followed. Dropping this value stops the tasks that follow the object.
struct Following {
    subject: EventSubject,
    /// Sends each version of the object that the watches report.
    versions: watch::Sender<Version>,
    events: mpsc::Receiver<ObjectEvents>,
    objects: mpsc::Receiver<ObjectRead>,
    _tasks: [AbortOnDropHandle<()>; 2],
}

impl ShownEvents {
    pub fn new(server: Option<EventServer>) -> Self {
        Self { server, following: None }
    }

    /// Follows the `wanted` object from now on, in place of the previous one; follows nothing if it is `None`.
    pub fn follow(&mut self, wanted: Option<ShownObject>) {
        match (&self.following, &wanted) {
            (Some(following), Some(wanted)) if following.subject == wanted.subject => {
                following.versions.send_if_modified(|version| {
                    let before = std::mem::replace(version, wanted.version);
                    before != wanted.version
                });
            }
            (None, None) => {}
            _ => {
                let wanted = wanted.zip(self.server.clone());
                self.following = wanted.map(|(shown, server)| Following::start(server, shown));
            }
        }
    }

    /// Waits for the next report. Waits forever if nothing is followed. May be dropped and awaited again.
    pub async fn next(&mut self) -> (EventSubject, SubjectReport) {
        let Some(following) = &mut self.following else { return std::future::pending().await };
        let report = tokio::select! {
            Some(events) = following.events.recv() => SubjectReport::Events(events),
            Some(object) = following.objects.recv() => SubjectReport::Object(object),
            else => std::future::pending().await,
        };
        (following.subject.clone(), report)
    }
}

impl Following {
    fn start(server: EventServer, shown: ShownObject) -> Self {
        let EventServer { client, version: release } = server;
        let ShownObject { subject, version } = shown;
        let (event_reports, events) = mpsc::channel(REPORTS);
        let (object_reports, objects) = mpsc::channel(REPORTS);
        let (versions, seen) = watch::channel(version);
        let following_events = tokio::spawn(follow_events(client.clone(), subject.clone(), event_reports));
        let following_object =
            tokio::spawn(follow_object(client, release, subject.clone(), seen, object_reports));
        let _tasks = [following_events, following_object].map(AbortOnDropHandle::new);
        Self { subject, versions, events, objects, _tasks }
    }
}

/// Follows the Events of the cluster while their list is open.
pub struct ListedEvents {
    /// API server from which Events are read; none if there is no API server.
    server: Option<EventServer>,
    /// Reports of the Events, and the task that sends them; `None` while the list is closed. Dropping the task stops
    /// it.
    following: Option<(mpsc::Receiver<EventsOfCluster>, AbortOnDropHandle<()>)>,
}

impl ListedEvents {
    pub fn new(server: Option<EventServer>) -> Self {
        Self { server, following: None }
    }

    /// Starts to follow the Events if their list is open, and stops if it is closed.
    pub fn follow(&mut self, is_open: bool) {
        if !is_open {
            self.following = None;
        } else if let (None, Some(EventServer { client, .. })) = (&self.following, &self.server) {
            let (reports, events) = mpsc::channel(REPORTS);
            let task = tokio::spawn(follow_cluster_events(client.clone(), reports));
            self.following = Some((events, AbortOnDropHandle::new(task)));
        }
    }

    /// Waits for the next report. Waits forever if nothing is followed. May be dropped and awaited again.
    pub async fn next(&mut self) -> EventsOfCluster {
        let following = self.following.as_mut();
        let report = match following {
            Some((events, _)) => events.recv().await,
            None => None,
        };
        match report {
            Some(events) => events,
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
    use kordon_clock::Clock;
    use kordon_core::cluster::{Budget, Key, Node};
    use kordon_demo::api::{Api, ApiOptions, Fault, FaultAnswer};

    fn server(api: &Api) -> EventServer {
        EventServer { client: api.client(), version: ServerVersion::new(1, 36) }
    }

    fn about(node: &str, name: &str, reason: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"name": name, "namespace": "default"},
            "involvedObject": {"kind": "Node", "name": node, "uid": node},
            "type": "Normal", "reason": reason, "message": "it happened", "source": {"component": "kubelet"},
        })
    }

    fn object(node: &str, version: u64) -> ShownObject {
        let subject = EventSubject::node(&Node { name: node.into(), uid: "u1".into(), ..Node::default() });
        ShownObject { subject, version: Version(version) }
    }

    fn node(name: &str, note: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "annotations": {"example.com/note": note}},
        })
    }

    /// Returns the reasons of the Events in the next report, and the error if they could not be read.
    async fn next(shown: &mut ShownEvents) -> (Vec<String>, Option<String>) {
        loop {
            let report = timeout(Duration::from_secs(30), shown.next()).await.expect("a report");
            let (_, SubjectReport::Events(ObjectEvents { events, failure })) = report else { continue };
            let reasons = events.unwrap_or_default().iter().map(|event| event.reason.to_string()).collect();
            return (reasons, failure);
        }
    }

    /// Returns the annotation `example.com/note` of the object in the next report, and the error if the object could
    /// not be read.
    async fn next_object(shown: &mut ShownEvents) -> (Option<String>, Option<String>) {
        loop {
            let report = timeout(Duration::from_secs(90), shown.next()).await.expect("a report");
            let (_, SubjectReport::Object(ObjectRead { object, failure })) = report else { continue };
            let note = object.and_then(|object| object.annotations.get("example.com/note").cloned());
            return (note.map(|note| note.to_string()), failure);
        }
    }

    fn asked(api: &Api, path: &str) -> usize {
        api.log().iter().filter(|request| request.uri.contains(path)).count()
    }

    #[tokio::test(start_paused = true)]
    async fn events_of_the_shown_object_are_watched_and_no_task_is_left_once_nobody_looks() {
        let api = Api::new(Clock::system(), ApiOptions::default());
        api.load("events", about("n1", "one", "Starting"));
        api.load("events", about("n2", "other", "Rebooted"));
        let mut shown = ShownEvents::new(Some(server(&api)));
        let tasks = || Handle::current().metrics().num_alive_tasks();
        let before = tasks();
        shown.follow(Some(object("n1", 1)));
        assert_eq!(next(&mut shown).await, (vec!["Starting".into()], None));
        assert!(tasks() > before);
        api.load("events", about("n1", "two", "NodeReady"));
        api.load("events", about("n2", "more", "NodeReady"));
        assert_eq!(next(&mut shown).await.0.len(), 2, "its own, as they come");
        shown.follow(Some(object("n2", 1)));
        assert_eq!(next(&mut shown).await.0.len(), 2, "those of the other object");
        shown.follow(None);
        for _ in 0..100 {
            yield_now().await;
        }
        assert_eq!(tasks(), before, "a task is left behind");
        let requests = asked(&api, "n2");
        sleep(Duration::from_secs(900)).await;
        assert_eq!(asked(&api, "n2"), requests, "nobody looks, and it asks on");
    }

    /// Returns the reasons of the cluster's Events in the next report, and the error if they could not be read.
    async fn next_of_cluster(listed: &mut ListedEvents) -> (Vec<String>, Option<String>) {
        let report = timeout(Duration::from_secs(90), listed.next()).await.expect("a report");
        let events = report.events.as_deref().unwrap_or_default();
        (events.iter().map(|reported| reported.event.reason.to_string()).collect(), report.failure)
    }

    #[tokio::test(start_paused = true)]
    async fn events_of_the_cluster_are_read_only_while_their_list_is_open() {
        let api = Api::new(Clock::system(), ApiOptions::default());
        let count = 2500;
        for number in 0..count {
            api.load("events", about("n1", &format!("event-{number:04}"), "Starting"));
        }
        let mut listed = ListedEvents::new(Some(server(&api)));
        listed.follow(false);
        sleep(Duration::from_secs(100)).await;
        assert_eq!(asked(&api, "/events"), 0, "nobody looks");
        listed.follow(true);
        let (reasons, failure) = next_of_cluster(&mut listed).await;
        assert_eq!((reasons.len(), failure), (count, None), "all pages of the list");
        listed.follow(true);
        api.load("events", about("n2", "new", "Rebooted"));
        api.load("events", about("n2", "newer", "Rebooted"));
        let (reasons, _) = next_of_cluster(&mut listed).await;
        assert_eq!(reasons.iter().filter(|reason| *reason == "Rebooted").count(), 2, "in one report");
        listed.follow(false);
        for _ in 0..100 {
            yield_now().await;
        }
        let requests = asked(&api, "/events");
        sleep(Duration::from_secs(900)).await;
        assert_eq!(asked(&api, "/events"), requests, "the list is closed, and it asks on");
    }

    #[tokio::test(start_paused = true)]
    async fn events_that_may_not_be_listed_are_asked_for_again_after_a_minute() {
        let api = Api::new(Clock::system(), ApiOptions::default());
        api.load("events", about("n1", "one", "Starting"));
        api.inject(Fault::always(FaultAnswer::Forbidden).on(&[], "events"));
        let mut listed = ListedEvents::new(Some(server(&api)));
        listed.follow(true);
        let (reasons, failure) = next_of_cluster(&mut listed).await;
        assert!(reasons.is_empty() && failure.is_some_and(|why| why.contains("events")));
        api.clear_faults();
        assert_eq!(next_of_cluster(&mut listed).await, (vec!["Starting".into()], None));
    }

    #[tokio::test(start_paused = true)]
    async fn a_missing_permission_is_said_once_and_a_granted_one_noticed() {
        let api = Api::new(Clock::system(), ApiOptions::default());
        api.load("events", about("n1", "one", "Starting"));
        api.inject(Fault::always(FaultAnswer::Forbidden).on(&[], "events"));
        let mut shown = ShownEvents::new(Some(server(&api)));
        shown.follow(Some(object("n1", 1)));
        let (events, failure) = next(&mut shown).await;
        assert!(events.is_empty() && failure.is_some_and(|why| why.contains("events")));
        let before = asked(&api, "/events?");
        sleep(Duration::from_secs(30)).await;
        assert_eq!(asked(&api, "/events?"), before, "it asks once a minute");
        api.clear_faults();
        sleep(Duration::from_secs(60)).await;
        assert_eq!(next(&mut shown).await, (vec!["Starting".into()], None));
    }

    #[tokio::test(start_paused = true)]
    async fn the_shown_object_is_read_once_and_again_after_it_has_changed() {
        let api = Api::new(Clock::system(), ApiOptions::default());
        api.load("nodes", node("n1", "first"));
        let mut shown = ShownEvents::new(Some(server(&api)));
        shown.follow(Some(object("n1", 1)));
        assert_eq!(next_object(&mut shown).await, (Some("first".into()), None));
        sleep(Duration::from_secs(900)).await;
        shown.follow(Some(object("n1", 1)));
        assert_eq!(asked(&api, "/nodes/n1"), 1, "nothing has changed");
        api.load("nodes", node("n1", "second"));
        shown.follow(Some(object("n1", 2)));
        assert_eq!(next_object(&mut shown).await, (Some("second".into()), None));
        assert_eq!(asked(&api, "/nodes/n1"), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_budget_is_read_while_its_detail_is_shown() {
        let api = Api::new(Clock::system(), ApiOptions::default());
        let annotations = json!({"example.com/note": "first"});
        let metadata = json!({"name": "web", "namespace": "shop", "annotations": annotations});
        let object = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata});
        api.load("poddisruptionbudgets", object);
        let mut shown = ShownEvents::new(Some(server(&api)));
        let budget = Budget { key: Key::new("shop", "web"), ..Budget::default() };
        shown.follow(Some(ShownObject { subject: EventSubject::budget(&budget), version: Version(1) }));
        assert_eq!(next_object(&mut shown).await, (Some("first".into()), None));
        assert_eq!(asked(&api, "/apis/policy/v1/namespaces/shop/poddisruptionbudgets/web"), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_that_may_not_be_read_is_said_and_read_once_that_is_granted() {
        let api = Api::new(Clock::system(), ApiOptions::default());
        api.load("nodes", node("n1", "first"));
        api.inject(Fault::always(FaultAnswer::Forbidden).on(&[], "nodes"));
        let mut shown = ShownEvents::new(Some(server(&api)));
        shown.follow(Some(object("n1", 1)));
        let (note, failure) = next_object(&mut shown).await;
        assert!(note.is_none() && failure.is_some_and(|why| why.contains("nodes")));
        shown.follow(Some(object("n1", 2)));
        sleep(Duration::from_secs(30)).await;
        assert_eq!(asked(&api, "/nodes/n1"), 1, "once a minute");
        api.clear_faults();
        assert_eq!(next_object(&mut shown).await, (Some("first".into()), None));
    }
}
