//! Events: those about one object, or those of the whole cluster. They are listed, and watched while somebody looks at
//! them.

use std::{collections::BTreeMap, time::Duration};

use http_body_util::BodyExt;
use kube::{Client, client::Body};
use serde_json::Value;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, sleep_until, timeout},
};

use super::{
    Closed,
    backoff::Backoff,
    error::{self, WatchError},
    framing::Framing,
    paths::CollectionQuery,
};
use crate::k8s::decode::{
    self, Encoding,
    event::{event, reported},
};
use kordon_core::cluster::{ClusterEvent, EventSubject, EventsOfCluster, ObjectEvents, ReportedEvent};

/// Maximum number of Events that are kept for an object. It is rarely reached: the server keeps Events for an hour, and
/// components combine repeated Events.
const MOST: usize = 500;

/// Maximum number of Events that are kept for a cluster (`MOST_OF_CLUSTER`), and number of Events in one page of their
/// list (`PAGE`).
const MOST_OF_CLUSTER: usize = 10_000;
const PAGE: usize = 1000;

/// Maximum size of a list of Events or of one line of the watch, in bytes.
const LONGEST: usize = 16 << 20;

/// Time within which a response must start.
const OPENING: Duration = Duration::from_secs(10);

/// Timeout of reading the Events of an object once. It is short, because these Events are only additional evidence.
const PATIENCE: Duration = Duration::from_secs(5);

/// Maximum silence of a watch before it is reopened. Servers send a bookmark about every minute.
const SILENCE: Duration = Duration::from_secs(90);

/// Duration of a watch in seconds.
const LIFETIME: u64 = 300;

/// Maximum delay between attempts to read Events.
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

/// Delay after a watch has ended (`PAUSE`), and between attempts while Events are forbidden (`FORBIDDEN_PAUSE`).
const PAUSE: Duration = Duration::from_secs(1);
const FORBIDDEN_PAUSE: Duration = Duration::from_secs(60);

/// Delay before changes of the cluster's Events are reported, so that one report covers many changes.
const GATHERING: Duration = Duration::from_secs(1);

/// Reports the Events about an object until the receiver is dropped.
pub async fn follow_events(client: Client, subject: EventSubject, reports: mpsc::Sender<ObjectEvents>) {
    EventFollower::new(client, EventScope::Object(subject), Reports::Object(reports)).run().await;
}

/// Reports the Events of the cluster until the receiver is dropped.
pub async fn follow_cluster_events(client: Client, reports: mpsc::Sender<EventsOfCluster>) {
    EventFollower::new(client, EventScope::Cluster(None), Reports::Cluster(reports)).run().await;
}

/// Reads the Events about an object once.
///
/// # Errors
/// The Events cannot be read; the reason in words.
pub async fn read_events(client: &Client, subject: &EventSubject) -> Result<Vec<ClusterEvent>, String> {
    match timeout(PATIENCE, EventScope::Object(subject.clone()).list(client)).await {
        Ok(Ok(list)) => Ok(list.events.into_values().map(|reported| reported.event).collect()),
        Ok(Err(error)) => Err(error.words().unwrap_or_else(|| "the list has expired".into())),
        Err(_) => Err(format!("no response within {} s", PATIENCE.as_secs())),
    }
}

/// Why Events cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventsUnread {
    /// The user has no permission to list Events. The text is the server's message.
    Forbidden(String),
    Failed(String),
}

/// Reads the Events of one namespace or of the whole cluster, once.
///
/// # Errors
/// The Events cannot be read.
pub async fn read_cluster_events(
    client: &Client,
    namespace: Option<&str>,
) -> Result<EventsOfCluster, EventsUnread> {
    match EventScope::Cluster(namespace.map(str::to_owned)).list(client).await {
        Ok(EventList { events, left_out, .. }) => {
            Ok(EventsOfCluster { events: Some(events.into_values().collect()), left_out, failure: None })
        }
        Err(WatchError::Forbidden(words)) => Err(EventsUnread::Forbidden(words)),
        Err(error) => {
            Err(EventsUnread::Failed(error.words().unwrap_or_else(|| "the list has expired".into())))
        }
    }
}

/// Events that are read: those about one object, of one namespace, or of the whole cluster.
enum EventScope {
    /// Events about one object.
    Object(EventSubject),
    /// Events of a namespace, or of the whole cluster.
    Cluster(Option<String>),
}

/// Channel on which Events are reported.
enum Reports {
    Object(mpsc::Sender<ObjectEvents>),
    Cluster(mpsc::Sender<EventsOfCluster>),
}

/// Events by their namespace and name.
type EventTable = BTreeMap<(String, String), ReportedEvent>;

/// Events that were read so far.
#[derive(Default)]
struct EventList {
    events: EventTable,
    /// Number of older Events that were dropped.
    left_out: usize,
    /// The resource version from which a watch continues.
    version: String,
}

impl EventScope {
    /// Returns the query by which `kubectl describe` finds the Events of an object, but without the uid, which
    /// [`EventSubject::is_meant`] compares instead. For a cluster or a namespace, returns the query of all its Events.
    fn query(&self) -> CollectionQuery {
        match self {
            Self::Object(subject) => {
                let selector =
                    format!("involvedObject.kind={},involvedObject.name={}", subject.kind, subject.name);
                CollectionQuery::for_events(subject.namespace.as_deref()).with("fieldSelector", &selector)
            }
            Self::Cluster(namespace) => CollectionQuery::for_events(namespace.as_deref()),
        }
    }

    /// Decodes an Event; `None` if the Event is not about the watched object.
    fn read(&self, value: &Value) -> Option<ReportedEvent> {
        match self {
            Self::Object(subject) => {
                event(value, subject).map(|event| ReportedEvent { event, ..ReportedEvent::default() })
            }
            Self::Cluster(_) => Some(reported(value)),
        }
    }

    /// Returns the maximum number of Events that are kept, and the number of Events in one page of the list.
    const fn limits(&self) -> (usize, usize) {
        match self {
            Self::Object(_) => (MOST, MOST),
            Self::Cluster(_) => (MOST_OF_CLUSTER, PAGE),
        }
    }

    /// Lists the Events. An object has few Events, so only the first page of its list is read.
    async fn list(&self, client: &Client) -> Result<EventList, WatchError> {
        let (_, page) = self.limits();
        let (mut list, mut next) = (EventList::default(), String::new());
        loop {
            let query = self.query().with("limit", &page.to_string());
            let query = if next.is_empty() { query } else { query.with("continue", &next) };
            let bytes = error::read(client, query.as_str(), OPENING, LONGEST).await?;
            let read: Value = serde_json::from_slice(&bytes)
                .map_err(|_| WatchError::Failed("the list is not a list of the Kubernetes API".into()))?;
            let items = read["items"].as_array().map(Vec::as_slice).unwrap_or_default();
            list.events.extend(items.iter().filter_map(|item| Some((key(item), self.read(item)?))));
            self.drop_oldest(&mut list);
            let metadata = |name: &str| read["metadata"][name].as_str().unwrap_or_default().to_owned();
            list.version = metadata("resourceVersion");
            next = metadata("continue");
            if next.is_empty() || matches!(self, Self::Object(_)) {
                return Ok(list);
            }
        }
    }

    /// Drops the oldest Events if there are more than the maximum.
    fn drop_oldest(&self, list: &mut EventList) {
        let (most, _) = self.limits();
        let too_many = list.events.len().saturating_sub(most);
        if too_many == 0 {
            return;
        }
        let by_age = |(key, event): (&(String, String), &ReportedEvent)| (event.event.last, key.clone());
        let mut oldest: Vec<_> = list.events.iter().map(by_age).collect();
        oldest.sort_unstable();
        for (_, key) in oldest.into_iter().take(too_many) {
            list.events.remove(&key);
        }
        list.left_out += too_many;
    }
}

struct EventFollower {
    client: Client,
    scope: EventScope,
    reports: Reports,
    list: EventList,
    is_listed: bool,
}

impl EventFollower {
    fn new(client: Client, scope: EventScope, reports: Reports) -> Self {
        Self { client, scope, reports, list: EventList::default(), is_listed: false }
    }

    async fn run(mut self) {
        let mut backoff = Backoff::default();
        loop {
            let pause = match self.list_and_watch().await {
                Ok(()) => {
                    backoff.reset();
                    PAUSE
                }
                Err(error) => {
                    let pause = match &error {
                        WatchError::Forbidden(_) | WatchError::NotServed(_) => FORBIDDEN_PAUSE,
                        WatchError::Overloaded(_, asked) => backoff.next(LONGEST_PAUSE, *asked),
                        WatchError::Invalid(_) | WatchError::Failed(_) => backoff.next(LONGEST_PAUSE, None),
                        WatchError::Expired => PAUSE,
                    };
                    let failure = error.words().filter(|words| !words.is_empty());
                    if self.report(failure).await.is_err() {
                        return;
                    }
                    pause
                }
            };
            tokio::select! {
                () = sleep(pause) => {}
                () = self.reports.closed() => return,
            }
        }
    }

    /// Lists the Events, then watches them until the watch ends.
    async fn list_and_watch(&mut self) -> Result<(), WatchError> {
        (self.list, self.is_listed) = (self.scope.list(&self.client).await?, true);
        if self.report(None).await.is_err() {
            return Ok(());
        }
        let query = self.scope.query().watched(LIFETIME).with("resourceVersion", &self.list.version);
        let body = error::open(&self.client, query.as_str(), OPENING).await?.into_body();
        self.read_watch(body).await
    }

    async fn read_watch(&mut self, mut body: Body) -> Result<(), WatchError> {
        let mut framing = Framing::new(Encoding::Json, LONGEST);
        // Time at which pending changes are reported; `None` if no changes are pending.
        let mut due: Option<Instant> = None;
        loop {
            let frame = tokio::select! {
                frame = timeout(SILENCE, body.frame()) => frame,
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    due = None;
                    if self.report(None).await.is_err() {
                        return Ok(());
                    }
                    continue;
                }
                () = self.reports.closed() => return Ok(()),
            };
            let Ok(frame) = frame else { return Ok(()) };
            let Some(bytes) = error::piece(frame)? else { return Ok(()) };
            let (mut received, mut is_changed) = (&*bytes, false);
            while let Some(line) = framing.next(&mut received)? {
                is_changed |= self.on_line(line)?;
            }
            if is_changed {
                self.scope.drop_oldest(&mut self.list);
                let gathering = match self.scope {
                    EventScope::Object(_) => Duration::ZERO,
                    EventScope::Cluster(_) => GATHERING,
                };
                due.get_or_insert(Instant::now() + gathering);
            }
        }
    }

    /// Applies a line of the watch. Returns true if the line changed an Event.
    fn on_line(&mut self, line: &[u8]) -> Result<bool, WatchError> {
        let Ok(line) = serde_json::from_slice::<Value>(line) else {
            return Err(WatchError::Failed("a line is not an event of the Kubernetes API".into()));
        };
        let object = &line["object"];
        match line["type"].as_str() {
            Some("ADDED" | "MODIFIED") => {
                let read = self.scope.read(object);
                let is_meant = read.is_some();
                self.list.events.extend(read.map(|event| (key(object), event)));
                Ok(is_meant)
            }
            Some("DELETED") => Ok(self.list.events.remove(&key(object)).is_some()),
            Some("ERROR") => Err(WatchError::from(decode::status_error(object))),
            _ => Ok(false),
        }
    }

    async fn report(&self, failure: Option<String>) -> Result<(), Closed> {
        let EventList { events, left_out, .. } = &self.list;
        let sent = match &self.reports {
            Reports::Object(reports) => {
                let events =
                    self.is_listed.then(|| events.values().map(|reported| reported.event.clone()).collect());
                reports.send(ObjectEvents { events, failure }).await.is_ok()
            }
            Reports::Cluster(reports) => {
                let events = self.is_listed.then(|| events.values().cloned().collect());
                reports.send(EventsOfCluster { events, left_out: *left_out, failure }).await.is_ok()
            }
        };
        if sent { Ok(()) } else { Err(Closed) }
    }
}

impl Reports {
    /// Waits until the receiver of the reports is dropped.
    async fn closed(&self) {
        match self {
            Self::Object(reports) => reports.closed().await,
            Self::Cluster(reports) => reports.closed().await,
        }
    }
}

fn key(object: &Value) -> (String, String) {
    let field = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
    (field("namespace"), field("name"))
}
