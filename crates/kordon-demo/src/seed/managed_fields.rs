//! `managedFields`, which make up a third of a real object's size.

use serde_json::{Map, Value, json};

use kordon_time::Timestamp;

/// Returns the `managedFields` of `object`. `managers` has one item for each entry: the manager, the subresource (may
/// be empty), and the time of the manager's last write.
///
/// A manager with the subresource `status` owns the status. Other managers own all other fields.
pub fn managed(object: &Value, managers: &[(&str, &str, Timestamp)]) -> Value {
    managers
        .iter()
        .map(|(manager, subresource, at)| {
            let mut entry = json!({
                "manager": manager,
                "operation": "Update",
                "apiVersion": object["apiVersion"],
                "time": at.to_time(),
                "fieldsType": "FieldsV1",
                "fieldsV1": owned(object, *subresource == "status"),
            });
            if !subresource.is_empty() {
                entry["subresource"] = json!(subresource);
            }
            entry
        })
        .collect()
}

fn owned(object: &Value, status: bool) -> Value {
    let mut fields = Map::new();
    for (name, value) in object.as_object().into_iter().flatten() {
        let set = match name.as_str() {
            "apiVersion" | "kind" => continue,
            "metadata" if status => continue,
            "metadata" => metadata(value),
            name if (name == "status") == status => set_of(value),
            _ => continue,
        };
        fields.insert(format!("f:{name}"), set);
    }
    Value::Object(fields)
}

/// Returns the metadata fields that clients set.
fn metadata(value: &Value) -> Value {
    let mut set = Map::new();
    for name in ["annotations", "finalizers", "generateName", "labels", "ownerReferences"] {
        if let Some(value) = value.get(name) {
            set.insert(format!("f:{name}"), set_of(value));
        }
    }
    Value::Object(set)
}

/// The keys that identify the items of a list. A list without such a key is owned as a whole.
const KEYS: [&[&str]; 5] = [&["containerPort", "protocol"], &["mountPath"], &["uid"], &["type"], &["name"]];

fn set_of(value: &Value) -> Value {
    let mut set = Map::new();
    match value {
        Value::Object(fields) => {
            set.insert(".".into(), json!({}));
            for (name, value) in fields {
                set.insert(format!("f:{name}"), set_of(value));
            }
        }
        Value::Array(items) => {
            for item in items {
                let Some(keys) = KEYS.iter().find(|keys| keys.iter().all(|key| item.get(key).is_some()))
                else {
                    return json!({});
                };
                let key: Map<String, Value> =
                    keys.iter().map(|key| ((*key).to_owned(), item[*key].clone())).collect();
                set.insert(format!("k:{}", Value::Object(key)), set_of(item));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    Value::Object(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_distinguished_by_their_keys_and_the_status_has_its_own_manager() {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"app": "x"}},
            "spec": {"containers": [{"name": "c", "args": ["a"]}]}, "status": {"phase": "Running"},
        });
        let at = Timestamp::from_secs(0);
        let entries = managed(&pod, &[("kube-controller-manager", "", at), ("kubelet", "status", at)]);
        assert_eq!(
            entries[0]["fieldsV1"],
            json!({
                "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
                "f:spec": {".": {}, "f:containers": {"k:{\"name\":\"c\"}": {".": {}, "f:args": {}, "f:name": {}}}},
            })
        );
        assert_eq!(entries[1]["fieldsV1"], json!({"f:status": {".": {}, "f:phase": {}}}));
        assert_eq!(entries[1]["subresource"], "status");
    }
}
