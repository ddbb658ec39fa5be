//! What we may do, asked before it is tried (SelfSubjectAccessReview).

use std::collections::BTreeMap;

use kube::Client;
use serde_json::{Value, json};

use crate::plan;

/// One thing that may be permitted.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission {
    pub verb: &'static str,
    /// Empty: the core group.
    pub group: &'static str,
    pub resource: &'static str,
    /// Empty: the resource itself.
    pub subresource: &'static str,
    /// Empty: all namespaces, or none for what has none.
    pub namespace: String,
    /// Empty: whatever its name.
    pub name: String,
}

impl std::fmt::Display for Permission {
    /// As one would ask `kubectl auth can-i`: `create pods/eviction -n web`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        if !self.subresource.is_empty() {
            write!(f, "/{}", self.subresource)?;
        }
        if self.namespace.is_empty() { Ok(()) } else { write!(f, " -n {}", self.namespace) }
    }
}

/// The server's answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    pub allowed: bool,
    /// In the server's words; often empty.
    pub reason: String,
}

/// Asks whether we have a permission.
///
/// # Errors
/// The question could not be asked, in words.
pub async fn can(client: &Client, permission: &Permission) -> Result<Access, String> {
    let Permission { verb, group, resource, subresource, namespace, name } = permission;
    let attributes = json!({"verb": verb, "group": group, "resource": resource, "subresource": subresource,
        "namespace": namespace, "name": name});
    let body = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes}});
    let reviews = kube::core::Request::new("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews");
    let request = reviews
        .create(&kube::api::PostParams::default(), body.to_string().into_bytes())
        .map_err(|error| super::error::plain(&error.to_string()))?;
    let review: Value = client.request(request).await.map_err(|error| super::error::words(&error))?;
    let status = &review["status"];
    Ok(Access {
        allowed: status["allowed"].as_bool().unwrap_or(false),
        reason: super::error::plain(status["reason"].as_str().unwrap_or_default()),
    })
}

/// The permissions of a plan that we do not have. Who may do a thing everywhere is asked no more about it; who may
/// not is asked again for each namespace or node.
///
/// # Errors
/// The question could not be asked, in words.
pub async fn missing(client: &Client, wanted: &[plan::Permission]) -> Result<Vec<plan::Permission>, String> {
    let mut everywhere: BTreeMap<Permission, bool> = BTreeMap::new();
    let mut missing = Vec::new();
    for one in wanted {
        let plan::Permission { verb, group, resource, subresource, namespace, name } = one;
        let general = Permission { verb, group, resource, subresource, ..Permission::default() };
        let exact =
            Permission { namespace: namespace.to_string(), name: name.to_string(), ..general.clone() };
        let allowed = match everywhere.get(&general) {
            Some(allowed) => *allowed,
            None => {
                let allowed = can(client, &general).await?.allowed;
                everywhere.insert(general.clone(), allowed);
                allowed
            }
        };
        if !allowed && (general == exact || !can(client, &exact).await?.allowed) {
            missing.push(one.clone());
        }
    }
    Ok(missing)
}
