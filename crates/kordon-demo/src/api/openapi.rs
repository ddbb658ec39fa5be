//! The part of OpenAPI that kubectl reads before a write: the parameters of each kind's PATCH.

use serde_json::{Map, Value, json};

use super::{
    kinds::{KINDS, Kind, ResourceScope},
    refusal::Refusal,
    reply::{self, Reply},
    request::ApiRequest,
};

/// Answers `/openapi/v3` and the paths below it. There is no v2, because newer kubectls do not need it.
pub fn answer(request: &ApiRequest) -> Result<Reply, Refusal> {
    let Some(rest) = request.path.strip_prefix("/openapi/v3") else { return Err(Refusal::no_such_path()) };
    let rest = rest.trim_start_matches('/');
    if rest.is_empty() {
        let paths: Map<String, Value> = KINDS
            .iter()
            .map(|kind| {
                let root = root_of(kind);
                (root.clone(), json!({"serverRelativeURL": format!("/openapi/v3/{root}")}))
            })
            .collect();
        return Ok(reply::json(200, &json!({"paths": paths})));
    }
    let kinds: Vec<&Kind> = KINDS.iter().filter(|kind| root_of(kind) == rest).collect();
    if kinds.is_empty() {
        return Err(Refusal::no_such_path());
    }
    let paths: Map<String, Value> = kinds.iter().map(|kind| (path_of(kind), operations(kind))).collect();
    let document = json!({"openapi": "3.0.0", "info": {"title": "kordon demo", "version": "v1"},
        "paths": paths, "components": {"schemas": {}}});
    Ok(reply::json(200, &document))
}

/// The path of a kind's group and version, for example `api/v1` or `apis/apps/v1`.
fn root_of(kind: &Kind) -> String {
    if kind.group.is_empty() { "api/v1".to_owned() } else { format!("apis/{}", kind.api_version()) }
}

fn path_of(kind: &Kind) -> String {
    let root = root_of(kind);
    match kind.scope {
        ResourceScope::Namespaced => format!("/{root}/namespaces/{{namespace}}/{}/{{name}}", kind.plural),
        ResourceScope::Cluster => format!("/{root}/{}/{{name}}", kind.plural),
        ResourceScope::Review => format!("/{root}/{}", kind.plural),
    }
}

fn operations(kind: &Kind) -> Value {
    let parameters: Vec<Value> = ["dryRun", "fieldManager", "fieldValidation"]
        .into_iter()
        .map(|name| json!({"name": name, "in": "query", "schema": {"type": "string"}}))
        .collect();
    let operation = json!({"parameters": parameters, "responses": {"200": {"description": "OK"}},
        "x-kubernetes-group-version-kind":
            {"group": kind.group, "version": kind.version, "kind": kind.name}});
    match kind.scope {
        ResourceScope::Namespaced | ResourceScope::Cluster => json!({"patch": operation, "put": operation}),
        ResourceScope::Review => json!({"post": operation}),
    }
}
