//! Writes figures about the dashboard itself to the log: tasks, objects and watches. A number that only grows shows a
//! leak. An age that only grows shows that a watch was lost.

use std::time::Duration;

use tokio::runtime::Handle;

use crate::model::Model;
use kordon_time::Timestamp;

/// Interval between two writes to the log.
pub const EVERY: Duration = Duration::from_secs(30);

/// Writes one line about the program and one for each watch.
pub fn log(model: &Model, now: Timestamp) {
    let tasks = Handle::current().metrics().num_alive_tasks();
    let (requests, bytes) = model.feeds.traffic();
    tracing::debug!(tasks, journal = model.journal.len(), requests, bytes, "program");
    for (kind, health) in model.feeds.iter() {
        let objects = model.cluster.count(kind);
        let age = health.last_heard.map(|heard| now.since(heard).as_secs());
        let (state, relists) = (health.state.as_str(), health.relists);
        tracing::debug!(%kind, state, objects, age, relists, "watch");
    }
}
