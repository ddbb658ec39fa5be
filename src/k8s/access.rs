//! Checks permissions before they are needed (SelfSubjectAccessReview).

use std::collections::BTreeMap;

use kube::Client;
use serde_json::{Value, json};

use super::error::{plain, words};
use kordon_core::plan::Permission;

/// Returns the permissions that the user does not have. A permission for all namespaces and names takes one request;
/// any other permission takes one request for each namespace or node.
///
/// # Errors
/// The server did not answer a review; the text gives the reason.
pub async fn missing(client: &Client, wanted: &[Permission]) -> Result<Vec<Permission>, String> {
    let mut everywhere: BTreeMap<Permission, bool> = BTreeMap::new();
    let mut missing = Vec::new();
    for permission in wanted {
        let general = permission.everywhere();
        let allowed = match everywhere.get(&general) {
            Some(allowed) => *allowed,
            None => {
                let allowed = is_allowed(client, &general).await?;
                everywhere.insert(general.clone(), allowed);
                allowed
            }
        };
        if !allowed && (general == *permission || !is_allowed(client, permission).await?) {
            missing.push(permission.clone());
        }
    }
    Ok(missing)
}

async fn is_allowed(client: &Client, permission: &Permission) -> Result<bool, String> {
    let Permission { verb, group, resource, subresource, namespace, name } = permission;
    let attributes = json!({"verb": verb, "group": group, "resource": resource, "subresource": subresource,
        "namespace": namespace, "name": name});
    let body = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes}});
    let reviews = kube::core::Request::new("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews");
    let request = reviews
        .create(&kube::api::PostParams::default(), body.to_string().into_bytes())
        .map_err(|error| plain(&error.to_string()))?;
    let review: Value = client.request(request).await.map_err(|error| words(&error))?;
    Ok(review["status"]["allowed"].as_bool().unwrap_or(false))
}
