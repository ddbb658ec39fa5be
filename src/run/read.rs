//! Reads the parts of a cluster that a command needs.

use std::collections::{BTreeSet, VecDeque};

use futures::{
    StreamExt,
    stream::{self, FuturesUnordered},
};

use crate::{
    clock::Clock,
    cluster::{Change, Known, Scope},
    k8s::{connect::Connection, decode::kinds::decoder_without_images, watch::read_scope},
    model::Model,
};

/// Requests in flight at once.
const AT_ONCE: usize = 10;

/// Reads what `needs` names, and asks it again until it names nothing new. What may not be read stays unknown.
///
/// Everything is read once in a call: a second call brings what is known up to date.
pub async fn read_needed(
    connection: &Connection,
    model: &mut Model,
    clock: Clock,
    needs: impl Fn(&Model) -> BTreeSet<Scope>,
) {
    let (mut asked, mut waiting, mut reads) = (BTreeSet::new(), VecDeque::new(), FuturesUnordered::new());
    let mut awaited = 0;
    loop {
        if awaited == 0 {
            let missing: Vec<Scope> = needs(model).difference(&asked).cloned().collect();
            awaited = missing.iter().filter(|scope| leads_on(scope)).count();
            asked.extend(missing.iter().cloned());
            waiting.extend(missing);
        }
        let free = AT_ONCE.saturating_sub(reads.len()).min(waiting.len());
        reads.extend(waiting.drain(..free).map(|scope| read(connection, scope)));
        let Some((scope, changes)) = reads.next().await else { return };
        awaited -= usize::from(leads_on(&scope));
        model.apply(changes, clock.now());
    }
}

/// Whether what is needed next depends on a scope. On all nodes, the longest list of most plans, it does not.
fn leads_on(scope: &Scope) -> bool {
    *scope != Scope::Nodes
}

/// Reads scopes. What may not be read stays unknown.
pub async fn read_scopes(connection: &Connection, model: &mut Model, clock: Clock, scopes: Vec<Scope>) {
    let mut reads = stream::iter(scopes).map(|scope| read(connection, scope)).buffer_unordered(AT_ONCE);
    while let Some((_, changes)) = reads.next().await {
        model.apply(changes, clock.now());
    }
}

/// Reads a scope. Nothing is placed over parts of a cluster: images are left out.
async fn read(connection: &Connection, scope: Scope) -> (Scope, Vec<Change>) {
    let changes = read_scope(connection, &scope, decoder_without_images).await.unwrap_or_else(|error| {
        let known = Known::Forbidden { error: error.as_str().into() };
        vec![Change::KnownIn(Box::new(scope.clone()), known)]
    });
    (scope, changes)
}
