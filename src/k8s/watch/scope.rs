//! Reads scopes of a cluster, such as the pods of one node, or one object by name.

use std::time::Duration;

use kube::Client;
use tokio::time::sleep;

use super::{
    backoff::Backoff,
    error::{self, ObjectBody, Pieces, WatchError},
    paths::CollectionQuery,
};
use crate::k8s::{
    connect::Connection,
    decode::{
        ListPurpose,
        kinds::{AnyDecoder, PageReader},
    },
    feed::FeedKind,
};
use kordon_core::{
    cluster::{Change, Key, ReadBy, Scope, ScopeRead, Version, WorkloadKind},
    engine::ServerVersion,
};

/// Number of objects in one page of a long list.
const PAGE: &str = "500";

/// Maximum size of a response, in bytes.
const LONGEST: usize = 256 << 20;

/// Field selector for finished pods (upstream `gcTerminated` recognises them by their phase).
const FINISHED: &str = "status.phase!=Pending,status.phase!=Running,status.phase!=Unknown";

/// Time within which a response must start.
const RESPONSE: Duration = Duration::from_secs(60);

/// Maximum pause in a response.
const SILENCE: Duration = Duration::from_secs(30);

/// Maximum delay between attempts to read a scope (part of a kind).
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

/// Function that creates the decoder of a kind.
pub type DecoderOf = fn(FeedKind) -> Box<dyn AnyDecoder>;

/// Reads a scope. Returns its objects as prefetched objects, followed by the [`ScopeRead`]. Retries without a limit
/// while the connection is broken or the server is overloaded.
///
/// Without `not_older_than`, the result is as new as the request. With it, the result may be as old as this version,
/// which must be a version of the same kind. The server then responds sooner if only other kinds have changed.
///
/// # Errors
/// The server forbids the list or does not support its parameters. The text is the server's message.
pub async fn read_scope(
    connection: &Connection,
    scope: &Scope,
    decoder_of: DecoderOf,
    not_older_than: Option<Version>,
) -> Result<Vec<Change>, String> {
    let mut backoff = Backoff::default();
    let reader = ScopeReader {
        decoder_of,
        not_older_than,
        client: &connection.client,
        version: connection.version,
        scope,
        request_timeout: connection.request_timeout.unwrap_or(RESPONSE),
    };
    loop {
        let pause = match reader.read().await {
            Ok(changes) => return Ok(changes),
            Err(WatchError::Forbidden(words) | WatchError::NotServed(words) | WatchError::Invalid(words)) => {
                return Err(words);
            }
            Err(WatchError::Overloaded(_, asked)) => asked,
            Err(WatchError::Expired | WatchError::Failed(_)) => None,
        };
        sleep(backoff.next(LONGEST_PAUSE, pause)).await;
    }
}

/// Returns the number of pods in the cluster; `None` if the server does not report it.
pub async fn count_pods(connection: &Connection) -> Option<usize> {
    let query = CollectionQuery::new(FeedKind::Pods, connection.version).with("limit", "1");
    let limit = connection.request_timeout.unwrap_or(RESPONSE);
    let ObjectBody { encoding, body } =
        error::open_objects(&connection.client, query.as_str(), limit).await.ok()?;
    let bytes = error::collect(body, limit, LONGEST).await.ok()?;
    encoding.count(&bytes)
}

/// Returns a query of the collection that selects exactly the objects of a scope.
///
/// A single object is queried by name as a list with one item. The server then reads only this object, and the
/// permission to list can be granted for its name alone.
pub fn query(scope: &Scope, version: ServerVersion) -> CollectionQuery {
    let all = || CollectionQuery::new(scope.kind(), version);
    let within = |namespace: &str| CollectionQuery::within(scope.kind(), version, namespace);
    let named =
        |key: &Key| within(&key.namespace).with("fieldSelector", &format!("metadata.name={}", key.name));
    match scope {
        Scope::Nodes
        | Scope::Pods
        | Scope::Budgets
        | Scope::Namespaces
        | Scope::Workloads(_)
        | Scope::Claims
        | Scope::Volumes
        | Scope::Quotas
        | Scope::Whole(_) => all(),
        Scope::NodesWith(selector) | Scope::PodsWith(None, selector) => {
            all().with("labelSelector", &selector.to_string())
        }
        Scope::PodsWith(Some(namespace), selector) if selector.is_empty() => within(namespace),
        Scope::PodsWith(Some(namespace), selector) => {
            within(namespace).with("labelSelector", &selector.to_string())
        }
        Scope::PodsOn(node) => all().with("fieldSelector", &format!("spec.nodeName={node}")),
        Scope::FinishedPods => all().with("fieldSelector", FINISHED),
        Scope::Node(name) => all().with("fieldSelector", &format!("metadata.name={name}")),
        Scope::Volume(name) => all().with("fieldSelector", &format!("metadata.name={name}")),
        Scope::Namespace(name) => all().with("fieldSelector", &format!("metadata.name={name}")),
        Scope::BudgetsIn(namespace) | Scope::QuotasIn(namespace) => within(namespace),
        Scope::Pod(key) | Scope::Workload(_, key) | Scope::Claim(key) => named(key),
    }
}

struct ScopeReader<'a> {
    decoder_of: DecoderOf,
    not_older_than: Option<Version>,
    client: &'a Client,
    version: ServerVersion,
    scope: &'a Scope,
    request_timeout: Duration,
}

impl ScopeReader<'_> {
    async fn read(&self) -> Result<Vec<Change>, WatchError> {
        let mut decoder = (self.decoder_of)(self.scope.kind());
        let (mut changes, mut next) = (Vec::new(), String::new());
        let version = loop {
            let mut query = list_query(self.scope, self.version, self.not_older_than);
            if !next.is_empty() {
                query = query.with("continue", &next);
            }
            let answer = error::open_objects(self.client, query.as_str(), self.request_timeout).await?;
            let mut page = PageReader::new(answer.encoding, ListPurpose::Prefetch);
            let mut pieces = Pieces::new(answer.body, SILENCE, LONGEST);
            while let Some(piece) = pieces.next().await? {
                page.read(&mut *decoder, &piece, &mut changes).map_err(WatchError::no_list)?;
            }
            let end = page.end(&mut *decoder, &mut changes).map_err(WatchError::no_list)?;
            if end.next.is_empty() {
                break end.version;
            }
            next = end.next;
        };
        let found = changes.iter().filter_map(Change::found).collect();
        let (scope, version) = (self.scope.clone(), Version::parse(&version));
        let read = ScopeRead { scope, version, found, by: ReadBy::Request };
        changes.push(Change::Read(Box::new(read)));
        Ok(changes)
    }
}

/// Returns the query of the first page of a scope's list.
///
/// Long lists are read in pages. Short lists are read from the server's cache, which has indexes and needs no pages.
/// From 1.31, servers ensure that the cache is current (upstream `ConsistentListFromCache`). Older servers would read
/// every object of the kind from the store, so they are asked for version 0.
///
/// If only other kinds change, a server needs up to 0.1 s for each list to find out that the cache of this kind is
/// current (upstream `progressRequestPeriod`). If the cache has reached `not_older_than`, the server answers at once.
pub fn list_query(scope: &Scope, version: ServerVersion, not_older_than: Option<Version>) -> CollectionQuery {
    let query = query(scope, version);
    if is_paged(scope) {
        return query.with("limit", PAGE);
    }
    if version < ServerVersion::new(1, 31) {
        return query.with("resourceVersion", "0");
    }
    match not_older_than {
        // Version 0 means any version, so it is not a minimum.
        Some(Version(least @ 1..)) => {
            query.with("resourceVersion", &least.to_string()).with("resourceVersionMatch", "NotOlderThan")
        }
        Some(Version(0)) | None => query,
    }
}

/// Whether the list of a scope is read in pages.
const fn is_paged(scope: &Scope) -> bool {
    match scope {
        Scope::Pods
        | Scope::PodsWith(None, _)
        | Scope::FinishedPods
        | Scope::Claims
        | Scope::Volumes
        | Scope::Budgets
        | Scope::Quotas
        | Scope::Whole(_)
        | Scope::Namespaces
        | Scope::Workloads(
            WorkloadKind::ReplicaSet
            | WorkloadKind::Deployment
            | WorkloadKind::StatefulSet
            | WorkloadKind::ReplicationController
            | WorkloadKind::Job,
        ) => true,
        Scope::Nodes
        | Scope::NodesWith(_)
        | Scope::Node(_)
        | Scope::PodsWith(Some(_), _)
        | Scope::PodsOn(_)
        | Scope::Pod(_)
        | Scope::BudgetsIn(_)
        | Scope::Namespace(_)
        | Scope::Workloads(WorkloadKind::DaemonSet)
        | Scope::Workload(..)
        | Scope::Claim(_)
        | Scope::Volume(_)
        | Scope::QuotasIn(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kordon_core::cluster::Selector;

    #[test]
    fn each_scope_asks_for_its_objects_and_no_others() {
        let path = |scope: Scope| query(&scope, ServerVersion::new(1, 36)).as_str().to_owned();
        let selector = || Selector::parse("app in (a,b)").expect("a selector");
        assert_eq!(path(Scope::PodsOn("n0".into())), "/api/v1/pods?fieldSelector=spec.nodeName%3Dn0");
        assert_eq!(path(Scope::Node("n0".into())), "/api/v1/nodes?fieldSelector=metadata.name%3Dn0");
        assert_eq!(
            path(Scope::PodsWith(Some("web".into()), selector())),
            "/api/v1/namespaces/web/pods?labelSelector=app%20in%20%28a%2Cb%29"
        );
        assert_eq!(
            path(Scope::Workload(WorkloadKind::Deployment, Key::new("web", "front"))),
            "/apis/apps/v1/namespaces/web/deployments?fieldSelector=metadata.name%3Dfront"
        );
        assert_eq!(
            path(Scope::BudgetsIn("a/../b".into())),
            "/apis/policy/v1/namespaces/a%2F..%2Fb/poddisruptionbudgets",
            "a name cannot lead elsewhere"
        );
    }

    #[test]
    fn what_is_read_later_need_not_be_newer_than_what_was_read_first() {
        let asked = |scope: Scope, minor: u32, least: Option<Version>| {
            list_query(&scope, ServerVersion::new(1, minor), least).as_str().to_owned()
        };
        let budgets = || Scope::BudgetsIn("web".into());
        let path = "/apis/policy/v1/namespaces/web/poddisruptionbudgets";
        assert_eq!(asked(budgets(), 36, None), path);
        assert_eq!(
            asked(budgets(), 36, Some(Version(7))),
            format!("{path}?resourceVersion=7&resourceVersionMatch=NotOlderThan")
        );
        assert_eq!(asked(budgets(), 36, Some(Version(0))), path, "0 would be any version");
        assert_eq!(asked(budgets(), 30, Some(Version(7))), format!("{path}?resourceVersion=0"));
        assert_eq!(
            asked(Scope::Budgets, 36, Some(Version(7))),
            "/apis/policy/v1/poddisruptionbudgets?limit=500",
            "pages come from the store"
        );
    }
}
