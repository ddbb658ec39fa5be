//! Requests for objects, handled by verb and subresource.

use serde_json::{Value, json};

use super::{
    Api, events, eviction,
    json::{metadata, set_condition, text},
    kinds::{KINDS, Kind, METRICS_KINDS, ResourceScope, Subresource},
    list::List,
    object::{ObjectKey, Stored},
    patch, protobuf,
    refusal::{FieldCause, Refusal},
    reply::{self, Reply},
    request::{ApiRequest, PatchType, Resource, Verb, View, dry_run_in},
    scale,
    selector::Selection,
    table,
    transaction::{DeleteOptions, Part, WriteMethod},
    view, watch,
};

/// Handles a request for objects of a kind.
pub fn answer(api: &Api, request: &ApiRequest, resource: &Resource) -> Result<Reply, Refusal> {
    if resource.kind.scope == ResourceScope::Review {
        return match request.verb {
            Verb::Create => review(api, request, resource),
            _ => Err(Refusal::no_such_method()),
        };
    }
    match (request.verb, resource.subresource) {
        (Verb::Get | Verb::Update | Verb::Patch, Some(Subresource::Scale)) => {
            scale::answer(api, request, resource)
        }
        (Verb::Get, None | Some(Subresource::Status)) => get(api, request, resource),
        (Verb::List, None) => list(api, request, resource),
        (Verb::Watch, None) => watched(api, request, resource),
        (Verb::Create, None) => create(api, request, resource),
        (Verb::Create, Some(Subresource::Eviction)) => eviction::answer(api, request, resource),
        (Verb::Create, Some(Subresource::Binding)) => bind(api, request, resource),
        (Verb::Update, None | Some(Subresource::Status)) => update(api, request, resource),
        (Verb::Patch, None | Some(Subresource::Status)) => patched(api, request, resource),
        (Verb::Delete, None) => delete(api, request, resource),
        (Verb::DeleteCollection, None) => delete_all(api, request, resource),
        _ => Err(Refusal::no_such_method()),
    }
}

fn get(api: &Api, request: &ApiRequest, resource: &Resource) -> Result<Reply, Refusal> {
    let key = resource.key()?;
    let state = api.state();
    let object = state.store.object(resource.kind, &key);
    let object = object.ok_or_else(|| Refusal::not_found(resource.kind, &key.name))?.clone();
    drop(state);
    Ok(shown(api, 200, request, resource.kind, &object))
}

fn list(api: &Api, request: &ApiRequest, resource: &Resource) -> Result<Reply, Refusal> {
    let selection = selection(request, resource)?;
    let list = List::read(&mut api.state().store, resource.kind, &selection, &request.query)?;
    Ok(list.reply(request.view, &request.query, api.inner.clock.now()))
}

fn watched(api: &Api, request: &ApiRequest, resource: &Resource) -> Result<Reply, Refusal> {
    let mut selection = selection(request, resource)?;
    if let Some(name) = &resource.name {
        selection = selection.only(name);
    }
    watch::open(api, request, resource.kind, selection)
}

fn create(api: &Api, request: &ApiRequest, resource: &Resource) -> Result<Reply, Refusal> {
    let kind = resource.kind;
    let value = object_in(request, resource)?;
    let dry_run = request.dry_run()?;
    let mut state = api.state();
    let object = api.transaction(&mut state, dry_run).create(kind, &resource.namespace, value)?;
    drop(state);
    Ok(shown(api, 201, request, kind, &object))
}

fn update(api: &Api, request: &ApiRequest, resource: &Resource) -> Result<Reply, Refusal> {
    let kind = resource.kind;
    let key = resource.key()?;
    let value = object_in(request, resource)?;
    let dry_run = request.dry_run()?;
    if kind.name == "Lease" && text(&value, "/metadata/resourceVersion").is_empty() {
        let cause =
            FieldCause::invalid("metadata.resourceVersion", &json!(0), "must be specified for an update");
        return Err(Refusal::invalid(kind, &key.name, vec![cause]));
    }
    let mut state = api.state();
    let mut transaction = api.transaction(&mut state, dry_run);
    let object = transaction.update(kind, &key, (part(resource), WriteMethod::Put), |_| Ok(value))?;
    drop(state);
    Ok(shown(api, 200, request, kind, &object))
}

fn patched(api: &Api, request: &ApiRequest, resource: &Resource) -> Result<Reply, Refusal> {
    let kind = resource.kind;
    let key = resource.key()?;
    let Some(way) = request.patch else {
        return Err(Refusal::new(
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: \
             application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, \
             application/apply-patch+yaml",
        ));
    };
    let body = request.value()?;
    let dry_run = request.dry_run()?;
    let mut state = api.state();
    let is_new = state.store.object(kind, &key).is_none();
    let mut transaction = api.transaction(&mut state, dry_run);
    if way == PatchType::Apply && is_new && resource.subresource.is_none() {
        let mut value = to_stored(kind, body);
        metadata(&mut value).insert("name".into(), key.name.as_str().into());
        let object = transaction.create(kind, &key.namespace, value)?;
        drop(state);
        return Ok(shown(api, 201, request, kind, &object));
    }
    let change = |present: &Value| {
        // An Event of events.k8s.io is patched in the form of that group.
        let patched = patch::apply(kind, way, &from_stored(kind, present.clone()), body)?;
        Ok(to_stored(kind, patched))
    };
    let object = transaction.update(kind, &key, (part(resource), WriteMethod::Patch), change)?;
    drop(state);
    Ok(shown(api, 200, request, kind, &object))
}

fn delete(api: &Api, request: &ApiRequest, resource: &Resource) -> Result<Reply, Refusal> {
    let kind = resource.kind;
    let key = resource.key()?;
    let (options, dry_run) = delete_options(request)?;
    let mut state = api.state();
    let deleted = api.transaction(&mut state, dry_run).delete(kind, &key, &options)?;
    drop(state);
    // After a removal, a real server sends a `Status`, except for pods and services: it sends their last state.
    if deleted.gone && !matches!(kind.name, "Pod" | "Service") {
        return Ok(reply::json(200, &gone(kind, &deleted.object)));
    }
    Ok(shown(api, 200, request, kind, &deleted.object))
}

fn gone(kind: &Kind, object: &Stored) -> Value {
    let value = object.value();
    let mut details =
        json!({"name": object.key.name.as_str(), "kind": kind.plural, "uid": value["metadata"]["uid"]});
    if !kind.group.is_empty() {
        details["group"] = kind.group.into();
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

fn delete_all(api: &Api, request: &ApiRequest, resource: &Resource) -> Result<Reply, Refusal> {
    let kind = resource.kind;
    let selection = selection(request, resource)?;
    let (options, dry_run) = delete_options(request)?;
    let mut state = api.state();
    let keys: Vec<ObjectKey> =
        state.store.objects_of(kind).select(&selection).map(|object| object.key.clone()).collect();
    let mut items = Vec::new();
    for key in keys {
        let deleted = api.transaction(&mut state, dry_run).delete(kind, &key, &options)?;
        items.push(from_stored(kind, deleted.object.value()));
    }
    let revision = state.store.revision().to_string();
    drop(state);
    Ok(reply::json(
        200,
        &json!({"kind": format!("{}List", kind.name), "apiVersion": kind.api_version(),
            "metadata": {"resourceVersion": revision}, "items": items}),
    ))
}

/// The binding subresource: sets the node of a pod that has none.
fn bind(api: &Api, request: &ApiRequest, resource: &Resource) -> Result<Reply, Refusal> {
    let kind = resource.kind;
    let key = resource.key()?;
    let binding = request.value()?;
    let node = text(&binding, "/target/name").to_owned();
    if node.is_empty() {
        return Err(Refusal::invalid(kind, &key.name, vec![FieldCause::required("target.name")]));
    }
    let dry_run = request.dry_run()?;
    let mut state = api.state();
    let mut transaction = api.transaction(&mut state, dry_run);
    let now = transaction.now.to_time();
    transaction.update(kind, &key, (Part::Whole, WriteMethod::Put), |pod| {
        let uid = text(&binding, "/metadata/uid");
        if !uid.is_empty() && uid != text(pod, "/metadata/uid") {
            return Err(Refusal::conflict(kind, &key, "Precondition failed: UID in precondition"));
        }
        if !pod["metadata"]["deletionTimestamp"].is_null() {
            let why = format!("pod {} is being deleted, cannot be assigned to a host", key.name);
            return Err(Refusal::conflict(kind, &key, &why));
        }
        let assigned = text(pod, "/spec/nodeName");
        if !assigned.is_empty() {
            let why = format!("pod {} is already assigned to node \"{assigned}\"", key.name);
            return Err(Refusal::conflict(kind, &key, &why));
        }
        let mut bound = pod.clone();
        bound["spec"]["nodeName"] = node.into();
        set_condition(
            &mut bound,
            json!({"type": "PodScheduled", "status": "True", "lastTransitionTime": now}),
        );
        Ok(bound)
    })?;
    Ok(reply::success(201, None))
}

/// Answers an access review. Everything is allowed unless a fault forbids it.
fn review(api: &Api, request: &ApiRequest, resource: &Resource) -> Result<Reply, Refusal> {
    let mut review = object_in(request, resource)?;
    review["status"] = if resource.kind.name == "SelfSubjectRulesReview" {
        let everything = json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]);
        json!({"resourceRules": everything, "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": true})
    } else if is_allowed(api, request, &review["spec"]["resourceAttributes"]) {
        json!({"allowed": true, "reason": "the embedded cluster allows everything that no fault forbids"})
    } else {
        json!({"allowed": false})
    };
    Ok(reply::json(201, &review))
}

fn is_allowed(api: &Api, request: &ApiRequest, wanted: &Value) -> bool {
    let field = |name: &str| wanted[name].as_str().unwrap_or_default();
    let verbs = [
        Verb::Get,
        Verb::List,
        Verb::Watch,
        Verb::Create,
        Verb::Update,
        Verb::Patch,
        Verb::Delete,
        Verb::DeleteCollection,
    ];
    let known = |kind: &&Kind| kind.group == field("group") && kind.plural == field("resource");
    let Some(kind) = KINDS.iter().chain(METRICS_KINDS).find(known) else { return true };
    let sub = Subresource::ALL.into_iter().find(|sub| sub.name() == field("subresource"));
    let faults = &api.state().faults;
    verbs
        .into_iter()
        .filter(|verb| matches!(field("verb"), "*") || verb.name() == field("verb"))
        .all(|verb| !faults.forbids(&request.identity.user, verb, kind, sub))
}

/// The options of a delete. A body replaces all options of the query (docs/upstream/operator-actions.md#4.1).
fn delete_options(request: &ApiRequest) -> Result<(DeleteOptions, bool), Refusal> {
    if request.body.is_empty() {
        let grace_seconds = request.query.number("gracePeriodSeconds")?;
        let options = DeleteOptions { grace_seconds, ..DeleteOptions::default() };
        return Ok((options, request.dry_run()?));
    }
    let body = request.value()?;
    Ok((DeleteOptions::from_value(&body), dry_run_in(&body)?))
}

/// The object in a request's body, checked against the URL and converted to its stored form.
fn object_in(request: &ApiRequest, resource: &Resource) -> Result<Value, Refusal> {
    let kind = resource.kind;
    let value = request.value()?;
    if !value.is_object() {
        return Err(Refusal::bad_request("the body of the request must be an object"));
    }
    let (api_version, name) = (text(&value, "/apiVersion"), text(&value, "/kind"));
    if !(api_version.is_empty() || api_version == kind.api_version())
        || !(name.is_empty() || name == kind.name)
    {
        let message = format!(
            "{name} in version {api_version:?} does not match the expected {} {:?}",
            kind.name,
            kind.api_version()
        );
        return Err(Refusal::bad_request(message));
    }
    let namespace = text(&value, "/metadata/namespace");
    if kind.is_namespaced() && !namespace.is_empty() && namespace != resource.namespace {
        let message = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Refusal::bad_request(message));
    }
    if kind.is_namespaced() && resource.namespace.is_empty() && request.verb == Verb::Create {
        return Err(Refusal::bad_request("an empty namespace may not be set during creation"));
    }
    Ok(to_stored(kind, value))
}

fn to_stored(kind: &Kind, value: Value) -> Value {
    if kind.group == events::GROUP { events::to_core(value) } else { value }
}

fn from_stored(kind: &Kind, value: Value) -> Value {
    if kind.group == events::GROUP { events::from_core(value) } else { value }
}

fn selection(request: &ApiRequest, resource: &Resource) -> Result<Selection, Refusal> {
    let (labels, fields) = (request.query.text("labelSelector"), request.query.text("fieldSelector"));
    Selection::parse(resource.kind, &resource.namespace, labels, fields)
}

fn shown(api: &Api, code: u16, request: &ApiRequest, kind: &Kind, object: &Stored) -> Reply {
    if request.view == View::Table {
        let now = api.inner.clock.now();
        let table = table::table(kind, std::iter::once(object.value()), &request.query, now);
        return reply::json(code, &table);
    }
    let media = if request.view == View::Protobuf { protobuf::MEDIA } else { "application/json" };
    reply::bytes(code, media, view::shown(kind, object, request.view))
}

fn part(resource: &Resource) -> Part {
    match resource.subresource {
        Some(Subresource::Status) => Part::Status,
        _ => Part::Main,
    }
}
