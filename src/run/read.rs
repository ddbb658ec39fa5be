//! Reads the parts of a cluster that a command needs.

use std::collections::BTreeSet;

use futures::{StreamExt, stream};

use crate::{
    clock::Clock,
    cluster::{Change, Known, Scope},
    k8s::{connect::Connection, watch::read_scope},
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
    let mut asked = BTreeSet::new();
    loop {
        let missing: Vec<Scope> = needs(model).difference(&asked).cloned().collect();
        if missing.is_empty() {
            return;
        }
        asked.extend(missing.iter().cloned());
        read_scopes(connection, model, clock, missing).await;
    }
}

/// Reads scopes. What may not be read stays unknown.
pub async fn read_scopes(connection: &Connection, model: &mut Model, clock: Clock, scopes: Vec<Scope>) {
    let mut reads = stream::iter(scopes)
        .map(|scope| async move { (read_scope(connection, &scope).await, scope) })
        .buffer_unordered(AT_ONCE);
    while let Some((answer, scope)) = reads.next().await {
        let changes = answer.unwrap_or_else(|error| {
            let known = Known::Forbidden { error: error.as_str().into() };
            vec![Change::KnownIn(Box::new(scope), known)]
        });
        model.apply(changes, clock.now());
    }
}
