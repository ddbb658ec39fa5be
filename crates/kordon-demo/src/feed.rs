//! Watches that agents share, and the objects that an agent knows.

use std::{collections::BTreeMap, fmt::Debug, ops::Bound, sync::Arc, time::Duration};

use futures::{AsyncBufReadExt, StreamExt, future::BoxFuture};
use http::Request;
use kube::{Client, core::Status};
use serde::{Deserialize, de::DeserializeOwned};
use tokio::{sync::mpsc, time::sleep};
use tokio_util::sync::CancellationToken;

use super::{
    errors::ErrorReporter,
    objects::{Key, Object},
};

/// Pause after a failed list or watch.
const PAUSE: Duration = Duration::from_secs(1);

/// Timeout of a watch. The server then ends it, and the next one starts.
const WATCH_SECONDS: u32 = 290;

/// One watch that serves any number of agents. Each object is decoded only once.
pub struct Feed<K> {
    inboxes: Vec<Inbox<K>>,
}

type Inbox<K> = Box<dyn Fn(FeedChange<K>) -> BoxFuture<'static, ()> + Send + Sync>;

/// A change reported by a watch.
#[derive(Debug)]
pub enum FeedChange<K> {
    /// The complete list of objects. An object that is not in the list no longer exists.
    Listed(Vec<Arc<K>>),
    Applied(Arc<K>),
    Deleted(Arc<K>),
}

impl<K> Clone for FeedChange<K> {
    fn clone(&self) -> Self {
        match self {
            Self::Listed(all) => Self::Listed(all.clone()),
            Self::Applied(object) => Self::Applied(object.clone()),
            Self::Deleted(object) => Self::Deleted(object.clone()),
        }
    }
}

impl<K> Feed<K>
where
    K: Object + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    pub fn new() -> Self {
        Self { inboxes: Vec::new() }
    }

    /// Adds an agent that gets all changes. `wrap` puts a change into the agent's message type. While the agent's inbox
    /// is full, the watch waits. A watch that waits too long starts again with a list.
    pub fn deliver<M: Send + 'static>(
        mut self,
        inbox: &mpsc::Sender<M>,
        wrap: impl Fn(FeedChange<K>) -> M + Send + Sync + 'static,
    ) -> Self {
        let inbox = inbox.clone();
        self.inboxes.push(Box::new(move |change| {
            let (inbox, message) = (inbox.clone(), wrap(change));
            Box::pin(async move {
                // Sending fails if the agent has stopped. It needs no messages then.
                let _ = inbox.send(message).await;
            })
        }));
        self
    }

    /// Watches the objects under `path` until `cancel` is cancelled. After an error, starts again with a list.
    pub async fn run(self, client: Client, path: String, errors: ErrorReporter, cancel: CancellationToken) {
        let follow = async {
            loop {
                if let Err(error) = self.list_and_watch(&client, &path).await {
                    errors.report("watch", &error);
                }
                sleep(PAUSE).await;
            }
        };
        cancel.run_until_cancelled(follow).await;
    }

    /// Lists all objects, then watches from the version of the list on, until an error occurs.
    async fn list_and_watch(&self, client: &Client, path: &str) -> kube::Result<()> {
        let get = |uri: &str| Request::get(uri).body(Vec::new()).map_err(kube::Error::HttpError);
        let list: List<K> = client.request(get(path)?).await?;
        let mut version = list.metadata.resource_version;
        self.send(FeedChange::Listed(list.items.into_iter().map(Arc::new).collect())).await;
        loop {
            let watch = format!(
                "{path}?watch=true&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}&resourceVersion={version}"
            );
            let mut lines = client.request_stream(get(&watch)?).await?.lines();
            while let Some(line) = lines.next().await {
                match Event::read(&line.map_err(kube::Error::ReadEvents)?)? {
                    Event::Change(newest, change) => {
                        version = newest.unwrap_or(version);
                        self.send(change).await;
                    }
                    Event::Bookmark(newest) => version = newest,
                    Event::Error(status) => return Err(kube::Error::Api(status)),
                }
            }
        }
    }

    async fn send(&self, change: FeedChange<K>) {
        for inbox in &self.inboxes {
            inbox(change.clone()).await;
        }
    }
}

/// Metadata of a list and of a bookmark.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListMetadata {
    resource_version: String,
}

#[derive(Deserialize)]
struct List<K> {
    metadata: ListMetadata,
    items: Vec<K>,
}

/// An event of a watch.
enum Event<K> {
    /// A change, with the version of the object.
    Change(Option<String>, FeedChange<K>),
    /// All changes up to this version have been reported.
    Bookmark(String),
    Error(Box<Status>),
}

impl<K: Object + DeserializeOwned> Event<K> {
    /// Parses a line of the watch. Parses the type of the event first, and then its object.
    fn read(line: &str) -> kube::Result<Self> {
        #[derive(Deserialize)]
        struct Header<'a> {
            r#type: &'a str,
        }

        #[derive(Deserialize)]
        struct Bookmark {
            metadata: ListMetadata,
        }

        let header: Header<'_> = read(line)?;
        Ok(match header.r#type {
            "ADDED" | "MODIFIED" => Self::change(line, FeedChange::Applied)?,
            "DELETED" => Self::change(line, FeedChange::Deleted)?,
            "BOOKMARK" => Self::Bookmark(object::<Bookmark>(line)?.metadata.resource_version),
            _ => Self::Error(object(line)?),
        })
    }

    fn change(line: &str, change: fn(Arc<K>) -> FeedChange<K>) -> kube::Result<Self> {
        let object: K = object(line)?;
        Ok(Self::Change(object.meta().resource_version.clone(), change(Arc::new(object))))
    }
}

/// The object of an event.
fn object<T: DeserializeOwned>(line: &str) -> kube::Result<T> {
    #[derive(Deserialize)]
    struct Object<T> {
        object: T,
    }

    read::<Object<T>>(line).map(|event| event.object)
}

fn read<'a, T: Deserialize<'a>>(json: &'a str) -> kube::Result<T> {
    serde_json::from_str(json).map_err(kube::Error::SerdeError)
}

/// All objects of a kind that an agent knows. They come from a feed and from the responses to the agent's own writes.
///
/// An agent records the response to its own write at once, without waiting for the watch, so that it does nothing
/// twice. Older versions that arrive later are ignored.
#[derive(Debug)]
pub struct KnownObjects<K> {
    objects: BTreeMap<Key, Arc<K>>,
}

/// The versions of an object before and after a change. At least one of them is Some.
#[derive(Debug)]
pub struct ObjectChange<K> {
    pub before: Option<Arc<K>>,
    pub after: Option<Arc<K>>,
}

impl<K: Object> ObjectChange<K> {
    pub fn key(&self) -> Key {
        let either = self.after.as_ref().or(self.before.as_ref()).expect("a change has at least one side");
        Key::from_object(&**either)
    }
}

impl<K: Object> KnownObjects<K> {
    pub fn new() -> Self {
        Self { objects: BTreeMap::new() }
    }

    pub fn object(&self, key: &Key) -> Option<&Arc<K>> {
        self.objects.get(key)
    }

    pub fn all(&self) -> impl Iterator<Item = (&Key, &Arc<K>)> {
        self.objects.iter()
    }

    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Returns all objects: first the objects whose keys come after `key`, then the others.
    pub fn after(&self, key: &Key) -> impl Iterator<Item = (&Key, &Arc<K>)> {
        let later = self.objects.range((Bound::Excluded(key), Bound::Unbounded));
        later.chain(self.objects.range(..=key))
    }

    /// The objects of one namespace.
    pub fn within<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = (&'a Key, &'a Arc<K>)> {
        let first = Key { namespace: namespace.to_owned(), name: String::new() };
        self.objects.range(first..).take_while(move |(key, _)| key.namespace == namespace)
    }

    /// Applies a change and returns the changes of single objects.
    pub fn apply(&mut self, change: FeedChange<K>) -> Vec<ObjectChange<K>> {
        match change {
            FeedChange::Applied(object) => self.record(object).into_iter().collect(),
            FeedChange::Deleted(object) => self.remove(&object).into_iter().collect(),
            FeedChange::Listed(all) => self.replace(all),
        }
    }

    /// Records a version of an object and returns the change. Returns None if a version that is at least as new is
    /// known.
    pub fn record(&mut self, object: Arc<K>) -> Option<ObjectChange<K>> {
        let key = Key::from_object(&*object);
        if self.objects.get(&key).is_some_and(|known| known.revision() >= object.revision()) {
            return None;
        }
        let before = self.objects.insert(key, object.clone());
        Some(ObjectChange { before, after: Some(object) })
    }

    /// Records an expected state of an object, until the watch reports the actual state.
    pub fn assume(&mut self, object: Arc<K>) -> ObjectChange<K> {
        let before = self.objects.insert(Key::from_object(&*object), object.clone());
        ObjectChange { before, after: Some(object) }
    }

    fn remove(&mut self, object: &K) -> Option<ObjectChange<K>> {
        let key = Key::from_object(object);
        if self.objects.get(&key).is_some_and(|known| known.revision() > object.revision()) {
            return None; // a newer object has the same name
        }
        let before = self.objects.remove(&key)?;
        Some(ObjectChange { before: Some(before), after: None })
    }

    fn replace(&mut self, all: Vec<Arc<K>>) -> Vec<ObjectChange<K>> {
        let mut old = std::mem::take(&mut self.objects);
        let mut changes = Vec::with_capacity(all.len());
        for object in all {
            let key = Key::from_object(&*object);
            let before = old.remove(&key);
            if before.as_ref().is_none_or(|before| before.revision() < object.revision()) {
                changes.push(ObjectChange { before, after: Some(object.clone()) });
            }
            self.objects.insert(key, object);
        }
        changes.extend(old.into_values().map(|gone| ObjectChange { before: Some(gone), after: None }));
        changes
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::objects::Pod;

    #[test]
    fn an_older_version_that_arrives_late_changes_nothing() {
        let mut known = KnownObjects::new();
        assert!(known.record(pod("a", "u1", 5)).is_some());
        assert!(known.apply(FeedChange::Applied(pod("a", "u1", 5))).is_empty());
        assert!(known.apply(FeedChange::Applied(pod("a", "u1", 4))).is_empty());
        assert_eq!(known.apply(FeedChange::Applied(pod("a", "u1", 6))).len(), 1);
    }

    #[test]
    fn the_end_of_an_old_object_does_not_remove_the_new_one_of_its_name() {
        let mut known = KnownObjects::new();
        known.record(pod("a", "u1", 5));
        known.record(pod("a", "u2", 9));
        assert!(known.apply(FeedChange::Deleted(pod("a", "u1", 8))).is_empty());
        assert_eq!(known.object(&key("a")).expect("still there").uid(), "u2");
        assert_eq!(known.apply(FeedChange::Deleted(pod("a", "u2", 10))).len(), 1);
        assert!(known.object(&key("a")).is_none());
    }

    #[test]
    fn a_new_list_tells_what_came_changed_and_went() {
        let mut known = KnownObjects::new();
        for (name, revision) in [("same", 1), ("changed", 2), ("gone", 3)] {
            known.record(pod(name, name, revision));
        }
        let list = vec![pod("same", "same", 1), pod("changed", "changed", 8), pod("new", "new", 9)];
        let changes = known.apply(FeedChange::Listed(list));
        let seen: Vec<(String, bool, bool)> =
            changes.iter().map(|t| (t.key().name, t.before.is_some(), t.after.is_some())).collect();
        assert_eq!(
            seen,
            [("changed".into(), true, true), ("new".into(), false, true), ("gone".into(), true, false)]
        );
    }

    fn pod(name: &str, uid: &str, revision: u64) -> Arc<Pod> {
        let metadata =
            json!({"name": name, "namespace": "d", "uid": uid, "resourceVersion": revision.to_string()});
        Arc::new(serde_json::from_value(json!({ "metadata": metadata })).expect("a pod"))
    }

    fn key(name: &str) -> Key {
        Key { namespace: "d".into(), name: name.into() }
    }
}
