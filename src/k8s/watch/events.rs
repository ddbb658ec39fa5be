//! Events about one object: listed, and watched while somebody looks at them.

use std::{collections::BTreeMap, time::Duration};

use http_body_util::BodyExt;
use kube::{Client, client::Body};
use serde_json::Value;
use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};

use super::{
    Closed,
    backoff::Backoff,
    error::{self, WatchError},
    framing::Framing,
    paths::CollectionQuery,
};
use crate::k8s::decode::{self, Encoding, event::event};
use kordon_core::cluster::{ClusterEvent, EventSubject, ObjectEvents};

/// Maximum number of Events that are kept for an object. It is rarely reached: the server keeps Events for an hour, and
/// components combine repeated Events.
const MOST: usize = 500;

/// Maximum size of a list or line, in bytes.
const LONGEST: usize = 16 << 20;

/// Time within which a response must start.
const OPENING: Duration = Duration::from_secs(10);

/// Timeout of reading Events once. It is short, because the Events are only additional evidence.
const PATIENCE: Duration = Duration::from_secs(5);

/// Maximum silence of a watch before it is reopened. Servers send a bookmark about every minute.
const SILENCE: Duration = Duration::from_secs(90);

/// Duration of a watch in seconds.
const LIFETIME: u64 = 300;

/// Maximum delay between attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

/// Delay after a watch has ended (`PAUSE`), and between attempts while Events are forbidden (`FORBIDDEN_PAUSE`).
const PAUSE: Duration = Duration::from_secs(1);
const FORBIDDEN_PAUSE: Duration = Duration::from_secs(60);

/// Reports the Events about an object until the receiver is dropped.
pub async fn follow_events(client: Client, subject: EventSubject, reports: mpsc::Sender<ObjectEvents>) {
    let mut follower = EventFollower { client, subject, reports, events: BTreeMap::new(), is_listed: false };
    let mut backoff = Backoff::default();
    loop {
        let pause = match follower.list_and_watch().await {
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
                if follower.report(failure).await.is_err() {
                    return;
                }
                pause
            }
        };
        tokio::select! {
            () = sleep(pause) => {}
            () = follower.reports.closed() => return,
        }
    }
}

/// Reads the Events about an object once.
///
/// # Errors
/// The Events cannot be read; the reason in words.
pub async fn read_events(client: &Client, subject: &EventSubject) -> Result<Vec<ClusterEvent>, String> {
    match timeout(PATIENCE, list(client, subject)).await {
        Ok(Ok((events, _))) => Ok(events.into_values().collect()),
        Ok(Err(error)) => Err(error.words().unwrap_or_else(|| "the list has expired".into())),
        Err(_) => Err(format!("no response within {} s", PATIENCE.as_secs())),
    }
}

/// Events by their namespace and name.
type EventTable = BTreeMap<(String, String), ClusterEvent>;

struct EventFollower {
    client: Client,
    subject: EventSubject,
    reports: mpsc::Sender<ObjectEvents>,
    events: EventTable,
    is_listed: bool,
}

impl EventFollower {
    /// Lists the Events, then watches them until the watch ends.
    async fn list_and_watch(&mut self) -> Result<(), WatchError> {
        let (events, version) = list(&self.client, &self.subject).await?;
        (self.events, self.is_listed) = (events, true);
        if self.report(None).await.is_err() {
            return Ok(());
        }
        let query = query(&self.subject).watched(LIFETIME).with("resourceVersion", &version);
        let body = error::open(&self.client, query.as_str(), OPENING).await?.into_body();
        self.read_watch(body).await
    }

    async fn read_watch(&mut self, mut body: Body) -> Result<(), WatchError> {
        let mut framing = Framing::new(Encoding::Json, LONGEST);
        loop {
            let frame = tokio::select! {
                frame = timeout(SILENCE, body.frame()) => frame,
                () = self.reports.closed() => return Ok(()),
            };
            let Ok(frame) = frame else { return Ok(()) };
            let Some(bytes) = error::piece(frame)? else { return Ok(()) };
            let (mut received, mut is_changed) = (&*bytes, false);
            while let Some(line) = framing.next(&mut received)? {
                is_changed |= self.on_line(line)?;
            }
            if is_changed && self.report(None).await.is_err() {
                return Ok(());
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
                let read = event(object, &self.subject);
                let is_meant = read.is_some();
                self.events.extend(read.map(|event| (key(object), event)));
                drop_oldest(&mut self.events);
                Ok(is_meant)
            }
            Some("DELETED") => Ok(self.events.remove(&key(object)).is_some()),
            Some("ERROR") => Err(WatchError::from(decode::status_error(object))),
            _ => Ok(false),
        }
    }

    async fn report(&self, failure: Option<String>) -> Result<(), Closed> {
        let events = self.is_listed.then(|| self.events.values().cloned().collect());
        self.reports.send(ObjectEvents { events, failure }).await.map_err(|_| Closed)
    }
}

/// The query of kubectl describe, except that it has no uid: [`EventSubject::is_meant`] compares the uid.
fn query(subject: &EventSubject) -> CollectionQuery {
    let selector = format!("involvedObject.kind={},involvedObject.name={}", subject.kind, subject.name);
    CollectionQuery::for_events(subject.namespace.as_deref()).with("fieldSelector", &selector)
}

/// Returns the Events, and the version from which a watch continues.
async fn list(client: &Client, subject: &EventSubject) -> Result<(EventTable, String), WatchError> {
    let query = query(subject).with("limit", &MOST.to_string());
    let body = error::open(client, query.as_str(), OPENING).await?.into_body();
    let bytes = error::collect(body, OPENING, LONGEST).await?;
    let list: Value = serde_json::from_slice(&bytes)
        .map_err(|_| WatchError::Failed("the list is not a list of the Kubernetes API".into()))?;
    let items = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut events: EventTable =
        items.iter().filter_map(|item| Some((key(item), event(item, subject)?))).collect();
    drop_oldest(&mut events);
    Ok((events, list["metadata"]["resourceVersion"].as_str().unwrap_or_default().into()))
}

fn key(object: &Value) -> (String, String) {
    let field = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
    (field("namespace"), field("name"))
}

fn drop_oldest(events: &mut EventTable) {
    while events.len() > MOST {
        let oldest = events.iter().min_by_key(|(_, event)| event.last).map(|(key, _)| key.clone());
        oldest.and_then(|key| events.remove(&key));
    }
}
