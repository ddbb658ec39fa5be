//! The API groups that a server serves.

use std::{collections::BTreeSet, time::Duration};

use kube::Client;
use serde::Deserialize;

use super::watch;

/// Maximum size of the list of groups, in bytes.
const LONGEST: usize = 4 << 20;

#[derive(Deserialize)]
struct ApiGroups {
    groups: Vec<ApiGroup>,
}

#[derive(Deserialize)]
struct ApiGroup {
    #[serde(default)]
    versions: Vec<ApiVersion>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ApiVersion {
    group_version: String,
}

/// Returns the versions of all API groups except the core group, such as `policy/v1`.
///
/// # Errors
/// The server did not answer within `limit`, or its answer is not a list of groups. The error text gives the reason.
pub async fn group_versions(client: &Client, limit: Duration) -> Result<BTreeSet<String>, String> {
    let answer = watch::get(client, "/apis", limit, LONGEST).await?;
    let found: ApiGroups =
        serde_json::from_slice(&answer).map_err(|_| "the answer is not a list of API groups".to_owned())?;
    let versions = found.groups.into_iter().flat_map(|group| group.versions);
    Ok(versions.map(|version| version.group_version).collect())
}
