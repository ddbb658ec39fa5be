//! Reads the parts of a cluster that a command needs.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use futures::{FutureExt, StreamExt, future::LocalBoxFuture, stream::FuturesUnordered};
use tokio::time::Instant;

use crate::{
    k8s::{connect::Connection, decode::kinds::decoder_without_images, feed::FeedKind, watch::read_scope},
    model::Model,
};
use kordon_clock::Clock;
use kordon_core::cluster::{Change, Known, Scope, Version};

/// Maximum number of requests in flight.
const AT_ONCE: usize = 10;

/// Reads the scopes (sets of objects) that `needs` returns, then calls `needs` again, until it returns no new scopes.
/// Scopes that the user has no permission to read stay unknown.
///
/// One call of this function reads each scope once. A second call brings the model up to date.
pub async fn read_needed(
    connection: &Connection,
    model: &mut Model,
    clock: Clock,
    needs: impl Fn(&Model) -> BTreeSet<Scope>,
) {
    let (mut asked, mut reads) = (BTreeSet::new(), Reads::over(connection));
    let mut awaited = 0;
    loop {
        if awaited == 0 {
            let missing: Vec<Scope> = needs(model).difference(&asked).cloned().collect();
            awaited = missing.iter().filter(|scope| leads_on(scope)).count();
            asked.extend(missing.iter().cloned());
            reads.waiting.extend(missing);
        }
        let Some((scope, changes)) = reads.next().await else { return };
        awaited -= usize::from(leads_on(&scope));
        model.apply(changes, clock.now());
    }
}

/// Whether the objects of a scope can make it necessary to read further scopes (sets of objects). This is false for the
/// list of all nodes, for example, which is the longest list that most plans read.
const fn leads_on(scope: &Scope) -> bool {
    !matches!(
        scope,
        Scope::Nodes
            | Scope::Namespaces
            | Scope::Namespace(_)
            | Scope::Quotas
            | Scope::QuotasIn(_)
            | Scope::Whole(_)
    )
}

/// Reads scopes (sets of objects). Scopes that the user has no permission to read stay unknown.
pub async fn read_scopes(connection: &Connection, model: &mut Model, clock: Clock, scopes: Vec<Scope>) {
    let mut reads = Reads::over(connection);
    reads.waiting.extend(scopes);
    while let Some((_, changes)) = reads.next().await {
        model.apply(changes, clock.now());
    }
}

/// Queue of scopes (sets of objects) to read. At most `AT_ONCE` reads are in flight.
struct Reads<'a> {
    connection: &'a Connection,
    waiting: VecDeque<Scope>,
    running: FuturesUnordered<LocalBoxFuture<'a, (Scope, Vec<Change>)>>,
    /// Resource version of the first read of each kind: the minimum version of later reads of this kind.
    versions: BTreeMap<FeedKind, Version>,
}

impl<'a> Reads<'a> {
    fn over(connection: &'a Connection) -> Self {
        Self {
            connection,
            waiting: VecDeque::new(),
            running: FuturesUnordered::new(),
            versions: BTreeMap::new(),
        }
    }

    /// Returns the next scope that was read, with its changes; none once all scopes are read.
    async fn next(&mut self) -> Option<(Scope, Vec<Change>)> {
        let free = AT_ONCE.saturating_sub(self.running.len()).min(self.waiting.len());
        for scope in self.waiting.drain(..free) {
            let not_older_than = self.versions.get(&scope.kind()).copied();
            self.running.push(read(self.connection, scope, not_older_than).boxed_local());
        }
        let (scope, changes) = self.running.next().await?;
        if let Some(Change::Read(read)) = changes.last() {
            self.versions.entry(scope.kind()).or_insert(read.version);
        }
        Some((scope, changes))
    }
}

/// Reads a scope (set of objects). The images that nodes list are left out, because only placement needs them, and
/// placement does not run on parts of a cluster.
async fn read(
    connection: &Connection,
    scope: Scope,
    not_older_than: Option<Version>,
) -> (Scope, Vec<Change>) {
    let started = Instant::now();
    let changes = read_scope(connection, &scope, decoder_without_images, not_older_than).await;
    tracing::debug!(%scope, took = ?started.elapsed(), "read");
    let changes = changes.unwrap_or_else(|error| {
        let known = Known::from_refusal(&error);
        vec![Change::KnownIn(Box::new(scope.clone()), known)]
    });
    (scope, changes)
}
