//! Reads scopes again and again while the scopes are wanted and their kind is not watched. For example, with
//! `--no-pods` the pods of the nodes in an open plan are read in this way.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use tokio::{
    sync::{mpsc, watch},
    time::{sleep, timeout},
};

use crate::k8s::{connect::Connection, decode::kinds::decoder_of, feed::FeedEvent, watch::read_scope};
use kordon_clock::Clock;
use kordon_core::cluster::{Change, Known, ReadBy, Scope, ScopeRead, Version};
use kordon_time::Timestamp;

/// Interval at which a wanted scope (set of objects) is read again.
const AGAIN: Duration = Duration::from_secs(5);

/// Timeout of a read. After a timeout, the result of the last read counts as stale.
const PATIENCE: Duration = Duration::from_secs(10);

/// Reads the wanted scopes (sets of objects) until `wanted` or `reports` is closed.
pub struct WantedReader {
    pub connection: Connection,
    pub wanted: watch::Receiver<BTreeSet<Scope>>,
    pub reports: mpsc::Sender<FeedEvent>,
    pub clock: Clock,
}

impl WantedReader {
    pub async fn run(mut self) {
        // Time of the last successful read of each scope.
        let mut read: BTreeMap<Scope, Timestamp> = BTreeMap::new();
        loop {
            let wanted = self.wanted.borrow_and_update().clone();
            for scope in &wanted {
                let changes = self.read(scope, &mut read).await;
                if self.reports.send(FeedEvent::Changes(changes)).await.is_err() {
                    return;
                }
            }
            let unwanted: Vec<Scope> = read.keys().filter(|scope| !wanted.contains(scope)).cloned().collect();
            for scope in unwanted {
                read.remove(&scope);
                if self.reports.send(FeedEvent::Changes(forget(scope))).await.is_err() {
                    return;
                }
            }
            tokio::select! {
                changed = self.wanted.changed() => if changed.is_err() { return },
                () = sleep(AGAIN), if !wanted.is_empty() => {}
            }
        }
    }

    async fn read(&self, scope: &Scope, read: &mut BTreeMap<Scope, Timestamp>) -> Vec<Change> {
        let unread = |known| vec![Change::KnownIn(Box::new(scope.clone()), known)];
        match timeout(PATIENCE, read_scope(&self.connection, scope, decoder_of, None)).await {
            Ok(Ok(changes)) => {
                read.insert(scope.clone(), self.clock.now());
                changes
            }
            Ok(Err(error)) => unread(Known::from_refusal(&error)),
            Err(_) => {
                let before = read.get(scope);
                unread(before.map_or(Known::NotListed, |since| Known::Stale { since: *since }))
            }
        }
    }
}

/// Returns changes that remove the objects of a scope from the model. The scope is no longer wanted, so its objects are
/// no longer updated.
fn forget(scope: Scope) -> Vec<Change> {
    let nothing = ScopeRead {
        scope: scope.clone(),
        version: Version(u64::MAX),
        found: Vec::new(),
        by: ReadBy::Request,
    };
    let off = Known::Off { flag: "--no-pods" };
    vec![Change::Read(Box::new(nothing)), Change::KnownIn(Box::new(scope), off)]
}
