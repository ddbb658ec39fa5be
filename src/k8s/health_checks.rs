//! NodeHealthChecks of medik8s, read by one request.

use std::time::Duration;

use kube::Client;

use super::{
    decode::health_check,
    fetched_list,
    watch::{self, WatchError},
};
use kordon_core::cluster::KnownHealthChecks;

/// The path at which the server lists the kinds of the group.
const GROUP: &str = "/apis/remediation.medik8s.io/v1alpha1";

/// The path of all NodeHealthChecks.
const PATH: &str = "/apis/remediation.medik8s.io/v1alpha1/nodehealthchecks";

/// Time limit for reading the kinds of the group.
const PATIENCE: Duration = Duration::from_secs(10);

/// Reads all NodeHealthChecks of a cluster. Every user may read the kinds of a group, so that a user without rights does
/// not take a cluster without medik8s for one whose NodeHealthChecks are forbidden.
pub async fn read(client: &Client) -> KnownHealthChecks {
    match watch::open(client, GROUP, PATIENCE).await {
        Err(WatchError::NotServed(_)) => KnownHealthChecks::NotServed,
        Ok(_) | Err(_) => fetched_list::read(client, PATH, health_check::parse).await,
    }
}
