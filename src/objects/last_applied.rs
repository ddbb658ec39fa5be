//! The configuration with which an object was applied last. An apply removes the fields that this configuration has and
//! the new one does not name.

use serde_json::{Map, Value};

/// Annotation in which `kubectl apply` keeps the configuration. With server-side apply, the API server updates it.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Field managers that apply whole configurations by server-side apply: kubectl, Flux, Argo CD and Helm.
const APPLIERS: [&str; 5] =
    ["kubectl", "kustomize-controller", "helm-controller", "argocd-controller", "helm"];

/// The fields in `metadata` that a configuration can set in an existing object.
const METADATA: [&str; 4] = ["labels", "annotations", "finalizers", "ownerReferences"];

/// Returns the fields of the configuration with which an object was applied last, as far as a configuration can set
/// them: the annotation of `kubectl apply`, or the fields that the manager of a server-side apply owns alone. `None` if
/// the object says neither.
pub fn last_applied(object: &Value) -> Option<Value> {
    let annotation = object["metadata"]["annotations"][LAST_APPLIED].as_str();
    let applied =
        annotation.and_then(|text| serde_json::from_str(text).ok()).or_else(|| applied_alone(object))?;
    Some(settable(applied))
}

/// Removes what an apply does not change in an existing object: its type, its status, and the metadata of the server.
pub fn settable(mut configuration: Value) -> Value {
    if let Some(fields) = configuration.as_object_mut() {
        fields.retain(|field, _| !["apiVersion", "kind", "status"].contains(&field.as_str()));
        if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|field, _| METADATA.contains(&field.as_str()));
        }
    }
    configuration
}

/// Returns the fields that the manager of a server-side apply owns, without those that other managers own too.
fn applied_alone(object: &Value) -> Option<Value> {
    let entries = object["metadata"]["managedFields"].as_array()?;
    let is_applier = |entry: &&Value| {
        let is_known = entry["manager"].as_str().is_some_and(|manager| APPLIERS.contains(&manager));
        is_known && entry["operation"] == "Apply" && entry["subresource"].as_str().is_none_or(str::is_empty)
    };
    let applier = entries.iter().find(is_applier)?;
    let others = entries.iter().filter(|entry| *entry != applier);
    let others: Vec<&Map<String, Value>> = others.filter_map(|entry| entry["fieldsV1"].as_object()).collect();
    owned_alone(object, applier["fieldsV1"].as_object()?, &others)
}

/// Returns the part of a value that `fields` names (`fieldsV1` of a manager) and none of `others` does.
fn owned_alone(value: &Value, fields: &Map<String, Value>, others: &[&Map<String, Value>]) -> Option<Value> {
    if fields.is_empty() {
        return others.is_empty().then(|| value.clone());
    }
    match value {
        Value::Object(value) => {
            let owned = fields.iter().filter_map(|(key, fields)| {
                let name = key.strip_prefix("f:")?;
                let others: Vec<&Map<String, Value>> =
                    others.iter().filter_map(|other| other.get(key)?.as_object()).collect();
                Some((name.to_owned(), owned_alone(value.get(name)?, fields.as_object()?, &others)?))
            });
            let owned: Map<String, Value> = owned.collect();
            (!owned.is_empty()).then_some(Value::Object(owned))
        }
        Value::Array(items) => {
            let alone = fields.iter().filter(|(key, _)| !others.iter().any(|other| other.contains_key(*key)));
            let owned =
                alone.filter_map(|(key, fields)| owned_alone(element(items, key)?, fields.as_object()?, &[]));
            Some(Value::Array(owned.collect()))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// Returns the element of a list that a key of `fieldsV1` names: `k:{"name":"web"}` by its fields, or `v:"web"` by its
/// value.
fn element<'a>(items: &'a [Value], key: &str) -> Option<&'a Value> {
    if let Some(fields) = key.strip_prefix("k:") {
        let fields: Map<String, Value> = serde_json::from_str(fields).ok()?;
        return items.iter().find(|item| fields.iter().all(|(field, value)| item[field] == *value));
    }
    let value: Value = serde_json::from_str(key.strip_prefix("v:")?).ok()?;
    items.iter().find(|item| **item == value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_annotation_comes_before_the_managed_fields() {
        let text = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"a": "b"}},
            "spec": {"nodeName": "n1"}, "status": {}})
        .to_string();
        let mut pod = json!({"metadata": {"annotations": {LAST_APPLIED: text}, "managedFields": [
            {"manager": "kubectl", "operation": "Apply", "fieldsV1": {"f:spec": {"f:hostNetwork": {}}}}]},
            "spec": {"nodeName": "n1", "hostNetwork": true}});
        let applied = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"nodeName": "n1"}});
        assert_eq!(last_applied(&pod), Some(applied));
        pod["metadata"]["annotations"] = json!({});
        assert_eq!(last_applied(&pod), Some(json!({"spec": {"hostNetwork": true}})));
        pod["metadata"]["managedFields"][0]["operation"] = json!("Update");
        assert_eq!(last_applied(&pod), None);
    }

    #[test]
    fn a_field_that_another_manager_owns_too_was_not_applied_alone() {
        let (log, web) = (r#"k:{"name":"log"}"#, r#"k:{"name":"web"}"#);
        let container = json!({".": {}, "f:name": {}, "f:image": {}});
        let object = json!({
            "metadata": {"finalizers": ["a", "b"], "managedFields": [
                {"manager": "autoscaler", "operation": "Update", "fieldsV1": {
                    "f:spec": {"f:replicas": {}, "f:containers": {log: {"f:image": {}}}}}},
                {"manager": "kustomize-controller", "operation": "Apply", "fieldsV1": {
                    "f:metadata": {"f:finalizers": {r#"v:"b""#: {}}},
                    "f:spec": {"f:replicas": {}, "f:paused": {},
                        "f:containers": {log: container, web: container}}}},
            ]},
            "spec": {"replicas": 3, "paused": true, "containers": [
                {"name": "log", "image": "i"}, {"name": "web", "image": "i", "tty": true}]},
        });
        let owned = json!({"metadata": {"finalizers": ["b"]},
            "spec": {"paused": true, "containers": [{"name": "web", "image": "i"}]}});
        assert_eq!(last_applied(&object), Some(owned));
    }
}
