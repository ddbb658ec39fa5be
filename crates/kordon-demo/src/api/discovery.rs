//! Version and discovery: groups and resources.

use serde_json::{Value, json};

use super::{
    ApiOptions,
    kinds::{KINDS, Kind, METRICS_GROUP, METRICS_KINDS, ResourceScope, Subresource},
    refusal::Refusal,
    reply::{self, Reply},
    request::ApiRequest,
};

/// The response to `/version`.
pub fn version(options: &ApiOptions) -> Value {
    let minor = options.minor_version;
    json!({"major": "1", "minor": minor.to_string(), "gitVersion": format!("v1.{minor}.3+kordon-demo"),
        "gitCommit": "", "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z", "goVersion": "none",
        "compiler": "rustc", "platform": "demo/any"})
}

/// Answers `/api`, `/apis` and the paths of groups and versions below them.
pub fn answer(request: &ApiRequest, has_metrics: bool) -> Result<Reply, Refusal> {
    let metrics = if has_metrics { METRICS_KINDS } else { &[] };
    let kinds: Vec<&Kind> = KINDS.iter().chain(metrics).collect();
    let groups = groups(&kinds);
    let parts: Vec<&str> = request.path.split('/').skip(1).collect();
    let found = match parts.as_slice() {
        ["api"] => json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}),
        ["apis"] => json!({"kind": "APIGroupList", "apiVersion": "v1",
            "groups": groups.iter().map(|(name, version)| group(name, version)).collect::<Vec<_>>()}),
        ["apis", name] => {
            let found = groups.iter().find(|(group, _)| group == name);
            let (name, version) = found.ok_or_else(Refusal::no_such_path)?;
            let mut group = group(name, version);
            group["kind"] = "APIGroup".into();
            group["apiVersion"] = "v1".into();
            group
        }
        ["api", version] => resources(&kinds, "", version)?,
        ["apis", name, version] => resources(&kinds, name, version)?,
        _ => return Err(Refusal::no_such_path()),
    };
    Ok(reply::json(200, &found))
}

/// The groups with their versions, in the order of `kinds`, without the core group.
fn groups(kinds: &[&Kind]) -> Vec<(&'static str, &'static str)> {
    let mut names: Vec<(&str, &str)> = Vec::new();
    for kind in kinds {
        let group = (kind.group, kind.version);
        if !kind.group.is_empty() && !names.contains(&group) {
            names.push(group);
        }
    }
    names
}

fn group(name: &str, version: &str) -> Value {
    let version = json!({"groupVersion": format!("{name}/{version}"), "version": version});
    json!({"name": name, "versions": [version], "preferredVersion": version})
}

fn resources(kinds: &[&Kind], group: &str, version: &str) -> Result<Value, Refusal> {
    let kinds: Vec<&&Kind> = kinds.iter().filter(|k| k.group == group && k.version == version).collect();
    let Some(first) = kinds.first() else { return Err(Refusal::no_such_path()) };
    let resources: Vec<Value> = kinds.iter().flat_map(|kind| resources_of(kind)).collect();
    Ok(json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": first.api_version(),
        "resources": resources}))
}

fn resources_of(kind: &Kind) -> Vec<Value> {
    let verbs: &[&str] = match kind.scope {
        ResourceScope::Review => &["create"],
        _ if kind.group == METRICS_GROUP => &["get", "list"],
        ResourceScope::Namespaced | ResourceScope::Cluster => {
            &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
        }
    };
    let mut main = json!({"name": kind.plural, "singularName": kind.singular, "kind": kind.name,
        "namespaced": kind.is_namespaced(), "verbs": verbs});
    if !kind.short_names.is_empty() {
        main["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        main["categories"] = json!(kind.categories);
    }
    let subresources = kind.subresources.iter().map(|sub| {
        let mut resource = json!({"name": format!("{}/{}", kind.plural, sub.name()), "singularName": "",
            "kind": kind.name, "namespaced": kind.is_namespaced(), "verbs": ["get", "patch", "update"]});
        let (group, version, name, verbs) = match sub {
            Subresource::Status => return resource,
            Subresource::Finalize => {
                resource["verbs"] = json!(["update"]);
                return resource;
            }
            Subresource::Scale => ("autoscaling", "v1", "Scale", json!(["get", "patch", "update"])),
            Subresource::Eviction => ("policy", "v1", "Eviction", json!(["create"])),
            Subresource::Binding => ("", "v1", "Binding", json!(["create"])),
            Subresource::Proxy => ("", "v1", "NodeProxyOptions", json!(["get"])),
        };
        resource["kind"] = name.into();
        resource["verbs"] = verbs;
        if !group.is_empty() {
            resource["group"] = group.into();
            resource["version"] = version.into();
        }
        resource
    });
    std::iter::once(main).chain(subresources).collect()
}
