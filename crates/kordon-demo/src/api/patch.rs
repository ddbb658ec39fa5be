//! Patches: JSON merge patch, JSON patch, strategic merge patch.

use serde_json::{Map, Value};

use super::{kinds::Kind, refusal::Refusal, request::PatchType};

/// Applies `patch` to `object`.
pub fn apply(kind: &Kind, way: PatchType, object: &Value, patch: Value) -> Result<Value, Refusal> {
    let mut patched = object.clone();
    match way {
        PatchType::Merge => merge(&mut patched, patch),
        PatchType::Json => {
            let patch: json_patch::Patch = serde_json::from_value(patch)
                .map_err(|e| Refusal::bad_request(format!("error decoding patch: {e}")))?;
            let error = "the server rejected our request due to an error in our request";
            json_patch::patch(&mut patched, &patch).map_err(|_| Refusal::new(422, "Invalid", error))?;
        }
        // Server-side apply without field ownership. Fields that an earlier apply has set stay, even if this apply
        // omits them.
        PatchType::Strategic | PatchType::Apply => {
            let Value::Object(patch) = patch else {
                return Err(Refusal::bad_request("a strategic merge patch must be a JSON object"));
            };
            let fields = as_object(&mut patched);
            merge_strategically(kind, fields, patch)?;
        }
    }
    Ok(patched)
}

/// Applies a strategic merge patch to an object of a kind.
///
/// # Errors
/// The patch is not an object, or its lists cannot be merged.
pub fn strategic(kind: &Kind, object: &Value, patch: Value) -> Result<Value, Refusal> {
    apply(kind, PatchType::Strategic, object, patch)
}

/// Removes from `live` the fields that `old` has and `new` does not name: the deletions of a three-way merge (upstream
/// `CreateThreeWayMergePatch` in `strategicpatch/patch.go`). Does not touch values that a strategic merge patch replaces
/// as a whole.
pub fn remove_unnamed(kind: &Kind, live: &mut Value, old: &Value, new: &Value) {
    let (Some(live), Some(old), Some(new)) = (live.as_object_mut(), old.as_object(), new.as_object()) else {
        return;
    };
    for (field, old) in old {
        let Some(new) = new.get(field) else {
            live.remove(field);
            continue;
        };
        match (live.get_mut(field), old, new) {
            (Some(Value::Array(live)), Value::Array(old), Value::Array(new)) => {
                remove_unnamed_elements(kind, live, old, new, list_rule(kind, field));
            }
            (Some(live), old, new) if !is_replaced(kind, field) => remove_unnamed(kind, live, old, new),
            _ => {}
        }
    }
}

fn remove_unnamed_elements(kind: &Kind, live: &mut Vec<Value>, old: &[Value], new: &[Value], rule: ListRule) {
    match rule {
        ListRule::Atomic => {}
        ListRule::Set => live.retain(|item| !old.contains(item) || new.contains(item)),
        ListRule::ByKey(key) => live.retain_mut(|item| {
            let id = item[key].clone();
            let is_same = |other: &&Value| other[key] == id;
            match (old.iter().find(is_same), new.iter().find(is_same)) {
                (Some(_), None) => false,
                (Some(old), Some(new)) => {
                    remove_unnamed(kind, item, old, new);
                    true
                }
                (None, _) => true,
            }
        }),
    }
}

/// Applies a JSON merge patch (RFC 7386).
fn merge(target: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    let fields = as_object(target);
    for (key, value) in patch {
        if value.is_null() {
            fields.remove(&key);
        } else {
            merge(fields.entry(key).or_insert(Value::Null), value);
        }
    }
}

fn as_object(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("made an object above")
}

/// Rule for merging a list.
#[derive(Clone, Copy)]
enum ListRule {
    /// The list is replaced as a whole, for example `spec.taints` and `tolerations`.
    Atomic,
    /// The lists are merged element by element. This field identifies an element.
    ByKey(&'static str),
    /// The list is a set of plain values.
    Set,
}

/// Upstream's `patchStrategy` and `patchMergeKey`, by field name. A field name has the same rule in all served kinds,
/// except `ports`.
fn list_rule(kind: &Kind, field: &str) -> ListRule {
    match field {
        "conditions" | "addresses" => ListRule::ByKey("type"),
        "containers"
        | "initContainers"
        | "ephemeralContainers"
        | "volumes"
        | "env"
        | "imagePullSecrets"
        | "schedulingGates"
        | "resourceClaims" => ListRule::ByKey("name"),
        "ports" if kind.name == "Service" => ListRule::ByKey("port"),
        "ports" => ListRule::ByKey("containerPort"),
        "volumeMounts" => ListRule::ByKey("mountPath"),
        "volumeDevices" => ListRule::ByKey("devicePath"),
        "topologySpreadConstraints" => ListRule::ByKey("topologyKey"),
        "hostAliases" | "podIPs" | "hostIPs" => ListRule::ByKey("ip"),
        "ownerReferences" => ListRule::ByKey("uid"),
        "podCIDRs" => ListRule::Set,
        "finalizers" if kind.name != "Namespace" => ListRule::Set,
        _ => ListRule::Atomic,
    }
}

/// Whether a strategic merge patch replaces the object in a field as a whole: upstream's `patchStrategy:"replace"`,
/// which only the selector of a `policy/v1` PodDisruptionBudget has (Kubernetes 1.37 `policy/v1/types.go`;
/// `mergeMapHandler` in `strategicpatch/patch.go`).
fn is_replaced(kind: &Kind, field: &str) -> bool {
    kind.name == "PodDisruptionBudget" && field == "selector"
}

fn merge_strategically(
    kind: &Kind,
    target: &mut Map<String, Value>,
    mut patch: Map<String, Value>,
) -> Result<(), Refusal> {
    match patch.remove("$patch").as_ref().map(|d| d.as_str().unwrap_or_default()) {
        None | Some("merge") => {}
        Some("replace") => {
            *target = patch;
            return Ok(());
        }
        Some("delete") => {
            target.clear();
            return Ok(());
        }
        Some(other) => return Err(unknown_directive(other)),
    }
    if let Some(Value::Array(kept)) = patch.remove("$retainKeys") {
        target.retain(|key, _| kept.iter().any(|k| k == key));
    }
    let mut orders = Vec::new();
    for (key, value) in patch {
        if let Some(field) = key.strip_prefix("$setElementOrder/") {
            orders.push((field.to_owned(), value));
        } else if let Some(field) = key.strip_prefix("$deleteFromPrimitiveList/") {
            let gone = value.as_array().cloned().unwrap_or_default();
            if let Some(list) = target.get_mut(field).and_then(Value::as_array_mut) {
                list.retain(|item| !gone.contains(item));
            }
        } else if key.starts_with('$') {
            return Err(unknown_directive(&key));
        } else {
            merge_field(kind, target, key, value)?;
        }
    }
    for (field, order) in orders {
        if let (Some(Value::Array(list)), Value::Array(order)) = (target.get_mut(&field), order) {
            put_in_order(list, &order, list_rule(kind, &field));
        }
    }
    Ok(())
}

fn merge_field(
    kind: &Kind,
    target: &mut Map<String, Value>,
    key: String,
    value: Value,
) -> Result<(), Refusal> {
    match value {
        Value::Null => {
            target.remove(&key);
        }
        Value::Object(patch) if is_replaced(kind, &key) => {
            target.insert(key, Value::Object(patch));
        }
        Value::Object(patch) => {
            let field = as_object(target.entry(key).or_insert(Value::Null));
            merge_strategically(kind, field, patch)?;
        }
        Value::Array(patch) => {
            let rule = list_rule(kind, &key);
            let list = target.entry(key).or_insert(Value::Null);
            if !list.is_array() {
                *list = Value::Array(Vec::new());
            }
            let list = list.as_array_mut().expect("made a list above");
            merge_list(kind, list, patch, rule)?;
        }
        plain => {
            target.insert(key, plain);
        }
    }
    Ok(())
}

fn merge_list(kind: &Kind, list: &mut Vec<Value>, patch: Vec<Value>, rule: ListRule) -> Result<(), Refusal> {
    let replaced = patch.iter().any(|item| item["$patch"] == "replace");
    match rule {
        ListRule::Atomic => *list = patch,
        ListRule::Set => {
            for item in patch {
                if !list.contains(&item) {
                    list.push(item);
                }
            }
        }
        ListRule::ByKey(_) if replaced => {
            *list = patch.into_iter().filter(|item| item["$patch"] != "replace").collect();
        }
        ListRule::ByKey(key) => {
            for item in patch {
                merge_item(kind, list, item, key)?;
            }
        }
    }
    Ok(())
}

fn merge_item(kind: &Kind, list: &mut Vec<Value>, item: Value, key: &str) -> Result<(), Refusal> {
    let Value::Object(mut item) = item else {
        return Err(Refusal::bad_request(format!("an element of a list merged by {key} must be an object")));
    };
    let Some(id) = item.get(key).cloned() else {
        return Err(Refusal::bad_request(format!("map does not contain the merge key: {key}")));
    };
    if item.get("$patch").is_some_and(|directive| directive == "delete") {
        list.retain(|old| old[key] != id);
        return Ok(());
    }
    match list.iter_mut().find(|old| old[key] == id) {
        Some(Value::Object(old)) => merge_strategically(kind, old, item),
        _ => {
            item.remove("$patch");
            list.push(Value::Object(item));
            Ok(())
        }
    }
}

/// Sorts a list. The elements that are in `order` come first, in the order of `order`. All others follow, and keep
/// their order.
fn put_in_order(list: &mut [Value], order: &[Value], rule: ListRule) {
    let place = |item: &Value| {
        let same = |wanted: &&Value| match rule {
            ListRule::ByKey(key) => wanted[key] == item[key],
            ListRule::Set | ListRule::Atomic => *wanted == item,
        };
        order.iter().position(|wanted| same(&wanted)).unwrap_or(usize::MAX)
    };
    list.sort_by_key(place);
}

fn unknown_directive(directive: &str) -> Refusal {
    Refusal::bad_request(format!(
        "unable to apply the strategic merge patch: unknown directive {directive:?}"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::kinds;

    #[test]
    fn conditions_merge_by_type_and_taints_are_replaced_whole() {
        let node = json!({"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}, "status": {"conditions": [
            {"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": "True", "reason": "KubeletReady"}]}});
        let patch = json!({"spec": {"taints": [{"key": "b", "effect": "NoExecute"}]},
            "status": {"conditions": [{"type": "Ready", "status": "Unknown"}, {"type": "New", "status": "True"}]}});
        let patched = strategic("nodes", &node, patch);
        assert_eq!(patched["spec"]["taints"], json!([{"key": "b", "effect": "NoExecute"}]));
        assert_eq!(
            patched["status"]["conditions"],
            json!([{"type": "MemoryPressure", "status": "False"},
                {"type": "Ready", "status": "Unknown", "reason": "KubeletReady"}, {"type": "New", "status": "True"}])
        );
    }

    #[test]
    fn directives_delete_replace_and_reorder() {
        let pod = json!({"metadata": {"finalizers": ["a", "b"]}, "spec": {"containers": [
            {"name": "one", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}, {"name": "two"}]}});
        let patch = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["c"]},
            "spec": {"$setElementOrder/containers": [{"name": "two"}, {"name": "one"}], "containers": [
                {"name": "one", "env": [{"name": "A", "$patch": "delete"}]}]}});
        let patched = strategic("pods", &pod, patch);
        assert_eq!(patched["metadata"]["finalizers"], json!(["b", "c"]));
        assert_eq!(
            patched["spec"]["containers"],
            json!([{"name": "two"}, {"name": "one", "env": [{"name": "B", "value": "2"}]}])
        );
        let emptied = strategic("pods", &pod, json!({"spec": {"containers": [{"$patch": "replace"}]}}));
        assert_eq!(emptied["spec"]["containers"], json!([]));
    }

    #[test]
    fn the_selector_of_a_budget_is_replaced_whole() {
        let budget = json!({"spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "cart"}}}});
        let other =
            json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["cart", "web"]}]});
        for selector in [other, json!({})] {
            let patched = strategic("poddisruptionbudgets", &budget, json!({"spec": {"selector": selector}}));
            assert_eq!(patched["spec"], json!({"minAvailable": 1, "selector": selector}));
        }
        let set = json!({"spec": {"selector": {"matchLabels": {"app": "cart"}}}});
        let patched = strategic("replicasets", &set, json!({"spec": {"selector": {}}}));
        assert_eq!(patched, set, "selectors of other kinds are merged");
    }

    #[test]
    fn fields_that_an_older_configuration_has_alone_are_removed() {
        let template = |spec: Value| json!({"spec": {"replicas": 2, "template": {"spec": spec}}});
        let container = |name: &str| json!({"name": name, "image": "i"});
        let old = template(json!({"nodeName": "n1", "nodeSelector": {"a": "1", "b": "2"},
            "containers": [{"name": "one", "image": "i", "tty": true}, container("two")],
            "tolerations": [{"key": "a"}]}));
        let new = template(json!({"nodeSelector": {"a": "1"}, "containers": [container("one")],
            "tolerations": []}));
        let mut live = template(json!({"nodeName": "n1", "nodeSelector": {"a": "1", "b": "2"},
            "containers": [{"name": "one", "image": "i", "tty": true}, container("two"), container("injected")],
            "tolerations": [{"key": "a"}]}));
        live["spec"]["paused"] = json!(true);
        remove_unnamed(kinds::named("deployments"), &mut live, &old, &new);
        let mut left = template(json!({"nodeSelector": {"a": "1"},
            "containers": [container("one"), container("injected")], "tolerations": [{"key": "a"}]}));
        left["spec"]["paused"] = json!(true);
        assert_eq!(live, left);
    }

    #[test]
    fn null_removes_and_an_absent_field_stays() {
        let node = json!({"spec": {"unschedulable": true, "podCIDR": "10.0.0.0/24"}});
        for way in [PatchType::Merge, PatchType::Strategic] {
            let patched = apply(kinds::named("nodes"), way, &node, json!({"spec": {"unschedulable": null}}));
            assert_eq!(patched, Ok(json!({"spec": {"podCIDR": "10.0.0.0/24"}})));
        }
    }

    #[test]
    fn a_failing_json_patch_test_is_refused_without_details() {
        let patch =
            json!([{"op": "test", "path": "/a", "value": 2}, {"op": "replace", "path": "/a", "value": 3}]);
        let refusal = apply(kinds::named("nodes"), PatchType::Json, &json!({"a": 1}), patch);
        assert_eq!(refusal.map_err(|r| (r.code, r.to_value()["details"].clone())), Err((422, Value::Null)));
    }

    #[test]
    fn nonsense_is_a_bad_request() {
        let object = json!({"spec": {"containers": []}});
        for (way, patch) in [
            (PatchType::Strategic, json!([])),
            (PatchType::Strategic, json!({"spec": {"containers": [{"image": "x"}]}})),
            (PatchType::Strategic, json!({"$patch": "explode"})),
            (PatchType::Json, json!({"spec": 1})),
        ] {
            let answer = apply(kinds::named("pods"), way, &object, patch.clone());
            assert_eq!(answer.map_err(|r| r.code), Err(400), "{patch}");
        }
    }

    fn strategic(plural: &str, object: &Value, patch: Value) -> Value {
        apply(kinds::named(plural), PatchType::Strategic, object, patch).expect("a good patch")
    }
}
