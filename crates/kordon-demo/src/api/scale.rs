//! The scale subresource.

use serde_json::{Value, json};

use super::{
    Api,
    json::text,
    kinds::Kind,
    patch,
    refusal::Refusal,
    reply::{self, Reply},
    request::{ApiRequest, Resource, Verb},
    transaction::{Part, WriteMethod},
};

/// Answers GET, PUT and PATCH of `…/NAME/scale`.
pub fn answer(api: &Api, request: &ApiRequest, resource: &Resource) -> Result<Reply, Refusal> {
    let kind = resource.kind;
    let key = resource.key()?;
    let mut state = api.state();
    let object = if request.verb == Verb::Get {
        let object = state.store.object(kind, &key).cloned();
        object.ok_or_else(|| Refusal::not_found(kind, &key.name))?
    } else {
        let body = request.value()?;
        let dry_run = request.dry_run()?;
        let mut transaction = api.transaction(&mut state, dry_run);
        transaction.update(kind, &key, (Part::Main, WriteMethod::Patch), |present| {
            let wanted = match (request.verb, request.patch) {
                (Verb::Patch, Some(way)) => patch::apply(kind, way, &scale(present), body)?,
                _ => body,
            };
            scaled(kind, present, &wanted)
        })?
    };
    drop(state);
    Ok(reply::json(200, &scale(&object.value())))
}

/// An autoscaling/v1 Scale.
fn scale(object: &Value) -> Value {
    let metadata = &object["metadata"];
    let mut scale = json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {},
        "spec": {"replicas": object["spec"]["replicas"]},
        "status": {"replicas": object["status"]["replicas"].as_i64().unwrap_or(0)}});
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        scale["metadata"][field] = metadata[field].clone();
    }
    let selector = object["spec"]["selector"]["matchLabels"].as_object();
    let pairs: Vec<String> = selector
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or("")))
        .collect();
    if !pairs.is_empty() {
        scale["status"]["selector"] = pairs.join(",").into();
    }
    scale
}

fn scaled(kind: &Kind, present: &Value, wanted: &Value) -> Result<Value, Refusal> {
    let Some(replicas) = wanted["spec"]["replicas"].as_i64() else {
        return Err(Refusal::bad_request(format!("a Scale of {} needs spec.replicas", kind.plural)));
    };
    let mut object = present.clone();
    object["spec"]["replicas"] = replicas.into();
    for field in ["uid", "resourceVersion"] {
        let given = text(wanted, &format!("/metadata/{field}"));
        if !given.is_empty() {
            object["metadata"][field] = given.into();
        }
    }
    Ok(object)
}
