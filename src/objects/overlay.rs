//! Objects that are laid over those of a cluster or of files, as if applied (`--with`).

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use http::Request;
use kube::{Client, client::Body};
use serde_json::{Value, json};

use kordon_core::cluster::{BudgetStatus, UNSCHEDULABLE, workload::TEMPLATE_HASH};
use kordon_demo::api::{
    kinds::{KINDS, Kind},
    remove_unnamed, strategic_patch,
};

use super::{
    ObjectsError,
    documents::documents,
    files::for_each_file,
    last_applied::{LAST_APPLIED, last_applied, settable},
    serve,
    set::{ObjectSet, kind_of, listed_kind, name_of},
};
use crate::k8s::{connect::Connection, error};
use kordon_time::Timestamp;

/// Plural name of ReplicaSets, through which a Deployment creates its pods.
const REPLICA_SETS: &str = "replicasets";

/// Number of objects in a page of a list.
const PAGE: usize = 500;

/// An object in a file of `--with`, or an empty list. The empty list means that no objects of a kind exist.
struct LaidOver {
    file: String,
    kind: &'static Kind,
    /// The object; `None` for an empty list.
    object: Option<Value>,
}

/// Lays the objects of files over a set: an object that exists in the set is changed as by `kubectl apply`, any other
/// object is created. The directive `$patch: delete` removes an object. Returns notes about the changes, and about
/// objects that were left out.
///
/// # Errors
/// A file cannot be read, or has an object without a name or of a kind that kordon does not read.
pub fn apply(set: &mut ObjectSet, files: &[PathBuf], now: Timestamp) -> Result<Vec<String>, ObjectsError> {
    let overlay = Overlay::read(files)?;
    let left_out = overlay.left_out();
    let applied: Result<Vec<String>, ObjectsError> =
        overlay.objects.into_iter().map(|laid_over| laid_over.apply(set, now)).collect();
    Ok(applied?.into_iter().chain(left_out).collect())
}

/// Returns a connection on which the objects of files are laid over those of the cluster. Kinds with such objects are
/// read once; all others are read and watched as before.
///
/// # Errors
/// A file cannot be read, or has an object that cannot be laid over the cluster; or the cluster's objects of these
/// kinds cannot be listed.
pub async fn overlaid(mut connection: Connection, files: &[PathBuf]) -> Result<Connection, ObjectsError> {
    let overlay = Overlay::read(files)?;
    connection.notes.extend(overlay.left_out());
    let mut plurals: BTreeSet<&'static str> =
        overlay.objects.iter().map(|laid_over| laid_over.kind.plural).collect();
    if plurals.contains("deployments") {
        plurals.insert(REPLICA_SETS);
    }
    let mut set = ObjectSet::default();
    for versions in versions_of_kinds().filter(|versions| plurals.contains(versions[0].plural)) {
        list(&connection.client, versions, &mut set).await?;
    }
    for laid_over in overlay.objects {
        connection.notes.push(laid_over.apply(&mut set, connection.clock.now())?);
    }
    let changed = serve(&set, connection.clock, connection.version).client();
    let cluster = connection.client.clone();
    let client = tower::service_fn(move |request: Request<Body>| {
        let is_changed = plurals.iter().any(|plural| is_of_kind(request.uri().path(), plural));
        let client = if is_changed { &changed } else { &cluster }.clone();
        async move { client.send(request).await.map_err(tower::BoxError::from) }
    });
    connection.client = Client::new(client, connection.namespace.as_str());
    Ok(connection)
}

/// The objects of the files of `--with`.
#[derive(Default)]
struct Overlay {
    objects: Vec<LaidOver>,
    /// Kinds that kordon does not read, with the number of objects of each. Folders of manifests often have some.
    others: BTreeMap<String, usize>,
}

impl Overlay {
    fn read(files: &[PathBuf]) -> Result<Self, ObjectsError> {
        let mut overlay = Self::default();
        for file in files {
            for_each_file(file, &mut |file| {
                let name = file.name;
                let read = documents(&file.bytes);
                let documents = read.map_err(|why| ObjectsError::NotObjects { file: name.clone(), why })?;
                documents.into_iter().try_for_each(|document| overlay.add(document, &name))
            })?;
        }
        Ok(overlay)
    }

    fn add(&mut self, mut document: Value, file: &str) -> Result<(), ObjectsError> {
        if let Some(Value::Array(items)) = document.get_mut("items").map(Value::take) {
            if let Some(kind) = listed_kind(&document).filter(|_| items.is_empty()) {
                self.objects.push(LaidOver { file: file.into(), kind, object: None });
            }
            return items.into_iter().try_for_each(|item| self.add(item, file));
        }
        let refused = |why: &str| ObjectsError::Overlay { file: file.into(), why: why.into() };
        let Some(kind) = kind_of(&document) else {
            let named = document["kind"].as_str().ok_or_else(|| refused("an object has no kind"))?;
            *self.others.entry(error::plain(named)).or_default() += 1;
            return Ok(());
        };
        name_of(kind, &document).ok_or_else(|| refused("an object has no name"))?;
        self.objects.push(LaidOver { file: file.into(), kind, object: Some(document) });
        Ok(())
    }

    /// Returns a note about the objects whose kinds kordon does not read; `None` if there are no such objects.
    fn left_out(&self) -> Option<String> {
        let kinds: Vec<String> =
            self.others.iter().map(|(kind, objects)| format!("{objects} {kind}")).collect();
        (!kinds.is_empty())
            .then(|| format!("left out, because kordon reads no such kind: {}", kinds.join(", ")))
    }
}

impl LaidOver {
    /// Lays the object over the set. Returns a note about the change.
    fn apply(self, set: &mut ObjectSet, now: Timestamp) -> Result<String, ObjectsError> {
        let Self { file, kind, object } = self;
        set.know(kind);
        let Some(mut object) = object else { return Ok(format!("other {} do not exist", kind.plural)) };
        let Some(name) = name_of(kind, &object) else { return Ok(String::new()) };
        let shown = match name.0.as_str() {
            "" => format!("{} {}", kind.singular, name.1),
            namespace => format!("{} {namespace}/{}", kind.singular, name.1),
        };
        let shown = error::plain(&shown);
        if object["$patch"] == "delete" {
            let removed = set.remove(kind, &name);
            return match removed {
                Some(_) => Ok(format!("{shown} is removed")),
                None => Err(ObjectsError::Overlay { file, why: format!("{shown} does not exist") }),
            };
        }
        let before = set.object(kind, &name).cloned();
        let is_new = before.is_none();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("resourceVersion");
            metadata.remove("uid");
        }
        if let Some(before) = &before {
            prepare(&mut object, before, &name.0);
        }
        if let Some(spec) =
            object.get_mut("spec").filter(|_| kind.plural == "poddisruptionbudgets" && !is_new)
        {
            replace_threshold(spec);
        }
        let applied = before.as_ref().and_then(last_applied);
        let kept = match &before {
            Some(before) if applied.is_none() && keeps_unnamed(kind, before, &object) => {
                "; fields that the manifest does not name stay: the object has no last-applied configuration"
            }
            Some(_) | None => "",
        };
        let mut after = match &before {
            Some(before) => merged(kind, before, applied.as_ref(), object)
                .map_err(|why| ObjectsError::Overlay { file, why: format!("{shown}: {why}") })?,
            None => object,
        };
        if ["devicetaintrules", "resourceslices"].contains(&kind.plural) {
            stamp_device_taints(before.as_ref(), &mut after, now);
        }
        if kind.plural == "nodes" {
            taint_cordoned(&mut after, now);
        }
        if before.as_ref() == Some(&after) {
            return Ok(format!("{shown} is unchanged{kept}"));
        }
        if kind.plural == "poddisruptionbudgets" {
            after["status"] = json!({ "observedGeneration": BudgetStatus::LAID_OVER });
        }
        if kind.plural == "deployments" && !is_new {
            set_templates(set, &after);
        }
        let added = before.as_ref().map_or(0, |before| added_pods(kind, before, &after));
        let is_other_template = |before: &Value| before["spec"]["template"] != after["spec"]["template"];
        if kind.plural == "statefulsets" && before.as_ref().is_some_and(is_other_template) {
            forget_revisions(&mut after);
        }
        set.replace(kind, name, after);
        Ok(match (is_new, has_template(kind)) {
            (true, _) => format!("{shown} is added"),
            (false, true) if added > 0 => format!(
                "{shown} is changed: its template and scale, not the pods that run; the pods that it adds ({added}) are \
                 not modelled, budgets wait for them{kept}"
            ),
            (false, true) => format!("{shown} is changed: its template, not the pods that run{kept}"),
            (false, false) => format!("{shown} is changed{kept}"),
        })
    }
}

/// Prepares the manifest of an existing object for the merge. Removes fields that an apply does not change: the type,
/// and metadata that the API server or kubectl sets. Adds the namespace, as kubectl does.
fn prepare(manifest: &mut Value, live: &Value, namespace: &str) {
    let Some(fields) = manifest.as_object_mut() else { return };
    fields.retain(|field, _| !["apiVersion", "kind"].contains(&field.as_str()));
    let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    metadata
        .retain(|field, _| !["creationTimestamp", "generation", "managedFields"].contains(&field.as_str()));
    if live["metadata"]["namespace"] == namespace {
        metadata.insert("namespace".into(), namespace.into());
    }
    if live["metadata"]["annotations"].is_object() {
        let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
        if let Some(annotations) = annotations.as_object_mut() {
            annotations.remove(LAST_APPLIED);
        }
    }
}

/// Returns an object after an apply of its manifest. Like `kubectl apply`, removes the fields that were `applied` before
/// and that the manifest does not name.
fn merged(kind: &Kind, live: &Value, applied: Option<&Value>, manifest: Value) -> Result<Value, String> {
    let mut kept = live.clone();
    if let Some(applied) = applied {
        remove_unnamed(kind, &mut kept, applied, &manifest);
    }
    let text = manifest.to_string();
    let mut after = strategic_patch(kind, &kept, manifest).map_err(|refusal| refusal.message)?;
    let is_template = |object: &Value| has_template(kind) && object["spec"]["template"].is_object();
    if is_template(live) && !is_template(&after) {
        return Err("its manifest has no spec.template; an apply needs the whole manifest".into());
    }
    let is_changed = after != *live;
    let annotations = after.pointer_mut("/metadata/annotations").filter(|_| is_changed);
    if let Some(applied) = annotations.and_then(|annotations| annotations.get_mut(LAST_APPLIED)) {
        *applied = json!(text);
    }
    Ok(after)
}

/// Whether objects of a kind have a template of pods.
fn has_template(kind: &Kind) -> bool {
    ["deployments", "replicasets", "statefulsets", "daemonsets", "jobs"].contains(&kind.plural)
}

/// Whether an object without a last-applied configuration has fields that its manifest does not name.
fn keeps_unnamed(kind: &Kind, live: &Value, manifest: &Value) -> bool {
    let mut named = live.clone();
    remove_unnamed(kind, &mut named, &settable(live.clone()), manifest);
    named != *live
}

/// Makes the patch of a budget's spec remove the threshold that it does not set. A budget has either `minAvailable` or
/// `maxUnavailable` (Kubernetes 1.37: `ValidatePodDisruptionBudgetSpec` in `pkg/apis/policy/validation/validation.go`).
fn replace_threshold(spec: &mut Value) {
    for (set, other) in [("minAvailable", "maxUnavailable"), ("maxUnavailable", "minAvailable")] {
        if !spec[set].is_null() && spec.get(other).is_none() {
            spec[other] = Value::Null;
        }
    }
}

/// Returns how many more pods a changed workload wants.
fn added_pods(kind: &Kind, before: &Value, after: &Value) -> i64 {
    // The API server sets `replicas` to 1 if it is missing.
    let replicas = |object: &Value| object["spec"]["replicas"].as_i64().unwrap_or(1);
    let is_scaled = ["deployments", REPLICA_SETS, "statefulsets"].contains(&kind.plural);
    if is_scaled { replicas(after).saturating_sub(replicas(before)) } else { 0 }
}

/// Removes the revisions from the status of a changed StatefulSet, because its pods may no longer match its template.
fn forget_revisions(stateful_set: &mut Value) {
    for revision in ["currentRevision", "updateRevision"] {
        stateful_set["status"][revision] = Value::Null;
    }
}

/// Value of the label `pod-template-hash` in a changed template of a Deployment. No existing pod has this value.
const CHANGED: &str = "changed";

/// Sets `timeAdded` of device taints to `now` if it is missing, or if the effect of a rule changes, as the API server
/// does (Kubernetes 1.37: `SetDefaults_DeviceTaint` in `pkg/apis/resource/v1/defaults.go`, and `PrepareForUpdate` in
/// `pkg/registry/resource/devicetaintrule/strategy.go`).
fn stamp_device_taints(before: Option<&Value>, after: &mut Value, now: Timestamp) {
    let stamp = |taint: &mut Value| {
        if taint["timeAdded"].is_null() {
            taint["timeAdded"] = json!(now.to_time());
        }
    };
    let devices = after["spec"]["devices"].as_array_mut().into_iter().flatten();
    devices.flat_map(|device| device["taints"].as_array_mut().into_iter().flatten()).for_each(stamp);
    let Some(taint) = after["spec"].get_mut("taint") else { return };
    let old = before.map(|before| &before["spec"]["taint"]);
    let is_new_effect =
        |old: &Value| old["effect"] != taint["effect"] && old["timeAdded"] == taint["timeAdded"];
    if old.is_some_and(is_new_effect) {
        taint["timeAdded"] = Value::Null;
    }
    stamp(taint);
}

/// Adds the taint of cordoned nodes to a node that is cordoned, or removes it from any other node, as the node lifecycle
/// controller does (upstream `doNoScheduleTaintingPass`).
fn taint_cordoned(node: &mut Value, now: Timestamp) {
    let Some(spec) = node.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let is_cordoned = spec.get("unschedulable") == Some(&json!(true));
    let is_of_cordon = |taint: &Value| taint["key"] == UNSCHEDULABLE && taint["effect"] == "NoSchedule";
    if !is_cordoned {
        if let Some(taints) = spec.get_mut("taints").and_then(Value::as_array_mut) {
            taints.retain(|taint| !is_of_cordon(taint));
        }
        return;
    }
    let taints = spec.entry("taints").or_insert(Value::Null);
    if taints.is_null() {
        *taints = json!([]);
    }
    if let Some(taints) = taints.as_array_mut().filter(|taints| !taints.iter().any(is_of_cordon)) {
        taints.push(json!({"key": UNSCHEDULABLE, "effect": "NoSchedule", "timeAdded": now.to_time()}));
    }
}

/// Gives the ReplicaSets of a Deployment the Deployment's template, so that replacements are built from that template.
fn set_templates(set: &mut ObjectSet, deployment: &Value) {
    let Some(kind) = KINDS.iter().find(|kind| kind.plural == REPLICA_SETS) else { return };
    let owner = &deployment["metadata"]["uid"];
    let is_owned = |set: &&Value| {
        let owners = set["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        owner.is_string() && owners.into_iter().any(|reference| reference["uid"] == *owner)
    };
    let owned: Vec<Value> = set.objects(kind).filter(is_owned).cloned().collect();
    for mut replica_set in owned {
        let (template, new) = (&mut replica_set["spec"]["template"], &deployment["spec"]["template"]["spec"]);
        if template["spec"] != *new {
            template["spec"] = new.clone();
            template["metadata"]["labels"][TEMPLATE_HASH] = json!(CHANGED);
        }
        if let Some(name) = name_of(kind, &replica_set) {
            set.replace(kind, name, replica_set);
        }
    }
}

/// The versions of each kind that kordon reads, grouped by kind.
fn versions_of_kinds() -> impl Iterator<Item = &'static [Kind]> {
    KINDS.chunk_by(|one, other| (one.group, one.plural) == (other.group, other.plural))
}

/// Lists all objects of a kind into a set, in the first of its versions that the server serves.
async fn list(client: &Client, versions: &'static [Kind], set: &mut ObjectSet) -> Result<(), ObjectsError> {
    let mut result = Ok(());
    for kind in versions {
        result = list_version(client, kind, set).await;
        if !matches!(&result, Err(kube::Error::Api(status)) if status.is_not_found()) {
            break;
        }
    }
    result.map_err(|error| ObjectsError::Cluster {
        why: format!("listing {} failed: {}", versions[0].plural, error::words(&error)),
    })
}

async fn list_version(client: &Client, kind: &'static Kind, set: &mut ObjectSet) -> kube::Result<()> {
    let root = if kind.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", kind.group) };
    let mut next = String::new();
    set.know(kind);
    loop {
        let path = format!("{root}/{}/{}?limit={PAGE}&continue={next}", kind.version, kind.plural);
        let request = Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
        let mut page = client.request::<Value>(request).await?;
        if let Some(Value::Array(items)) = page.get_mut("items").map(Value::take) {
            items.into_iter().for_each(|item| set.insert(kind, item));
        }
        next = page["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
        if next.is_empty() {
            return Ok(());
        }
    }
}

/// Whether a request is about objects of a kind: its collection, in a namespace or not, or one of its objects.
fn is_of_kind(path: &str, plural: &str) -> bool {
    let mut words = path.trim_start_matches('/').split('/');
    let words: Vec<&str> = match words.next() {
        Some("api") => words.skip(1).collect(),
        Some("apis") => words.skip(2).collect(),
        _ => return false,
    };
    match words.as_slice() {
        ["namespaces", _, of, ..] => *of == plural,
        [of, ..] => *of == plural,
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use kordon_demo::api::kinds;

    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_000);

    fn set_of(objects: &[Value]) -> ObjectSet {
        let mut set = ObjectSet::default();
        for object in objects {
            set.insert(kind_of(object).expect("a known kind"), object.clone());
        }
        set
    }

    fn laid(set: &mut ObjectSet, text: &str) -> Result<Vec<String>, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("with.yaml");
        fs::write(&file, text).expect("a file");
        apply(set, &[file], NOW).map_err(|error| error.to_string())
    }

    #[test]
    fn objects_are_added_changed_and_removed_as_if_applied() {
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}});
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "a"},
            "spec": {"replicas": 3, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}});
        let mut set = set_of(&[node, deployment]);
        let done = laid(
            &mut set,
            "{apiVersion: v1, kind: Node, metadata: {name: n1}, $patch: delete}\n---\n\
             {apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: a}, spec: {replicas: 5}}\n---\n\
             {apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web, namespace: a}, spec: {maxUnavailable: 1}}\n",
        );
        let expected = [
            "node n1 is removed",
            "deployment a/web is changed: its template and scale, not the pods that run; the pods that it adds (2) are not \
             modelled, budgets wait for them; fields that the manifest does not name stay: the object has no last-applied \
             configuration",
            "poddisruptionbudget a/web is added",
        ];
        assert_eq!(done, Ok(expected.map(Into::into).into()));
        let deployment = set.objects(kinds::named("deployments")).next().expect("it is there");
        assert_eq!(deployment["spec"]["replicas"], 5);
        assert_eq!(deployment["spec"]["template"]["spec"]["containers"][0]["image"], "i");
        assert_eq!(set.objects(kinds::named("nodes")).count(), 0);
    }

    #[test]
    fn a_node_that_is_cordoned_gets_the_taint_of_the_cordon_and_loses_it_with_the_cordon() {
        let other = json!({"key": "gpu", "effect": "NoSchedule"});
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "spec": {"taints": [other]}});
        let mut set = set_of(&[node]);
        let taints = |set: &ObjectSet| {
            let node = set.objects(kinds::named("nodes")).next().expect("it is there");
            node["spec"]["taints"].clone()
        };
        let with = |cordoned: bool| {
            format!(
                "{{apiVersion: v1, kind: Node, metadata: {{name: n1}}, spec: {{unschedulable: {cordoned}}}}}"
            )
        };
        laid(&mut set, &with(true)).expect("it is laid over");
        let cordon =
            json!({"key": UNSCHEDULABLE, "effect": "NoSchedule", "timeAdded": "1970-01-01T00:16:40Z"});
        assert_eq!(taints(&set), json!([other, cordon]));
        laid(&mut set, &with(false)).expect("it is laid over");
        assert_eq!(taints(&set), json!([other]));
    }

    #[test]
    fn a_changed_budget_has_the_selector_and_the_threshold_of_its_file() {
        let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": "web", "namespace": "a"},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}});
        let mut set = set_of(&[budget]);
        let done = laid(
            &mut set,
            "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web, namespace: a}, spec: \
             {minAvailable: 100%, selector: {matchExpressions: [{key: app, operator: Exists}]}}}",
        );
        assert_eq!(done, Ok(vec!["poddisruptionbudget a/web is changed".into()]));
        let budget = set.objects(kinds::named("poddisruptionbudgets")).next().expect("it is there");
        let expected = json!({"minAvailable": "100%",
            "selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}});
        assert_eq!(budget["spec"], expected);
    }

    /// A budget to which `kubectl apply` has applied this spec, and to which another client has added a label.
    fn applied_budget(spec: &Value) -> Value {
        let manifest = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": "web", "namespace": "default", "annotations": {}}, "spec": spec});
        let mut live = manifest.clone();
        live["metadata"]["labels"] = json!({"team": "a"});
        live["metadata"]["annotations"] = json!({LAST_APPLIED: manifest.to_string(), "other": "kept"});
        live["status"] = json!({"disruptionsAllowed": 1, "observedGeneration": 1});
        live
    }

    #[test]
    fn a_field_that_was_applied_and_that_the_manifest_does_not_name_is_removed() {
        let selector = json!({"matchLabels": {"app": "web"}});
        let live = applied_budget(
            &json!({"maxUnavailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow", "selector": selector}),
        );
        let mut set = set_of(&[live]);
        let manifest = "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web}, spec: {maxUnavailable: \
                        1, selector: {matchLabels: {app: web}}}}";
        let changed = "poddisruptionbudget default/web is changed";
        assert_eq!(laid(&mut set, manifest), Ok(vec![changed.into()]));
        let budget = set.objects(kinds::named("poddisruptionbudgets")).next().expect("it is there").clone();
        assert_eq!(budget["spec"], json!({"maxUnavailable": 1, "selector": selector}));
        assert_eq!(budget["metadata"]["labels"], json!({"team": "a"}));
        assert_eq!(budget["metadata"]["annotations"]["other"], "kept");
        let unchanged = "poddisruptionbudget default/web is unchanged";
        assert_eq!(laid(&mut set, manifest), Ok(vec![unchanged.into()]));
        assert_eq!(laid(&mut set, &budget.to_string()), Ok(vec![unchanged.into()]), "its own export");
    }

    #[test]
    fn an_unchanged_object_keeps_its_status() {
        let live = applied_budget(&json!({"maxUnavailable": 1}));
        let mut set = set_of(std::slice::from_ref(&live));
        let manifest = "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web}, spec: {maxUnavailable: 1}}";
        laid(&mut set, manifest).expect("it is laid over");
        assert_eq!(set.objects(kinds::named("poddisruptionbudgets")).next(), Some(&live));
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "spec": {}});
        let mut set = set_of(std::slice::from_ref(&node));
        assert_eq!(laid(&mut set, &node.to_string()), Ok(vec!["node n1 is unchanged".into()]));
    }

    #[test]
    fn a_workload_whose_manifest_has_no_template_is_refused() {
        let manifest = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {"replicas": 1, "template": {"spec": {"nodeName": "n1"}}}});
        let mut live = manifest.clone();
        live["metadata"]["annotations"] = json!({LAST_APPLIED: manifest.to_string()});
        let partial = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 2}}";
        let refused = laid(&mut set_of(&[live]), partial).expect_err("it is refused");
        assert!(refused.contains("needs the whole manifest"), "{refused}");
    }

    #[test]
    fn the_taint_of_a_rule_is_added_now_unless_it_keeps_its_effect() {
        let rule = |effect: &str| {
            format!(
                "{{apiVersion: resource.k8s.io/v1, kind: DeviceTaintRule, metadata: {{name: r}}, spec: {{taint: {{key: \
                 k, effect: {effect}}}}}}}"
            )
        };
        let old = json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule", "metadata": {"name": "r"},
            "spec": {"taint": {"key": "k", "effect": "None", "timeAdded": "1970-01-01T00:00:01Z"}}});
        for (before, effect, added) in [
            (None, "NoExecute", "1970-01-01T00:16:40Z"),
            (Some(&old), "NoExecute", "1970-01-01T00:16:40Z"),
            (Some(&old), "None", "1970-01-01T00:00:01Z"),
        ] {
            let mut set = set_of(&before.cloned().into_iter().collect::<Vec<_>>());
            laid(&mut set, &rule(effect)).expect("it is laid over");
            let rule = set.objects(kinds::named("devicetaintrules")).next().expect("it is there");
            assert_eq!(rule["spec"]["taint"]["timeAdded"], added, "{before:?} {effect}");
        }
    }

    /// A client of a cluster that serves DeviceTaintRules in one version.
    fn serving(version: &'static str) -> Client {
        let service = tower::service_fn(move |request: Request<Body>| {
            let is_served =
                request.uri().path() == format!("/apis/resource.k8s.io/{version}/devicetaintrules");
            let (code, body) = match is_served {
                true => (200, json!({"items": [{"metadata": {"name": "r"}}]})),
                false => (404, json!({"kind": "Status", "code": 404, "reason": "NotFound", "message": "no"})),
            };
            let answer =
                http::Response::builder().status(code).body(Body::from(body.to_string().into_bytes()));
            async { answer }
        });
        Client::new(service, "default")
    }

    /// Kubernetes 1.37 serves `devicetaintrules` in v1 alone, 1.36 in v1beta2.
    #[tokio::test]
    async fn a_kind_is_listed_in_the_version_that_is_served() {
        let rule = kinds::named("devicetaintrules");
        let versions =
            versions_of_kinds().find(|versions| versions[0].plural == rule.plural).expect("a kind");
        for version in ["v1", "v1beta2"] {
            let mut set = ObjectSet::default();
            list(&serving(version), versions, &mut set).await.expect(version);
            assert_eq!(set.objects(rule).count(), 1, "{version}");
        }
        let refused = list(&serving("v9"), versions, &mut ObjectSet::default()).await;
        let refused = refused.expect_err("no version is served").to_string();
        assert!(refused.contains("listing devicetaintrules failed"), "{refused}");
    }

    #[test]
    fn what_cannot_be_laid_over_is_an_error_that_names_the_file() {
        let refused = |text| laid(&mut ObjectSet::default(), text).expect_err("it is refused");
        assert!(refused("{apiVersion: v1, metadata: {name: s}}").ends_with("an object has no kind"));
        assert!(refused("{apiVersion: v1, kind: Node}").ends_with("an object has no name"));
        assert!(
            refused("{apiVersion: v1, kind: Node, metadata: {name: n9}, $patch: delete}")
                .contains("n9 does not exist")
        );
        assert!(refused("{").contains("has no Kubernetes objects"));
    }

    #[test]
    fn kinds_that_kordon_does_not_read_are_left_out_and_counted() {
        let secret = "{apiVersion: v1, kind: Secret, metadata: {name: s}}";
        let done = laid(&mut ObjectSet::default(), &format!("{secret}\n---\n{secret}"));
        assert_eq!(done, Ok(vec!["left out, because kordon reads no such kind: 2 Secret".into()]));
    }

    #[test]
    fn requests_are_recognised_by_their_path() {
        assert!(is_of_kind("/api/v1/nodes", "nodes") && is_of_kind("/api/v1/nodes/n1", "nodes"));
        assert!(is_of_kind("/apis/apps/v1/namespaces/a/deployments", "deployments"));
        assert!(!is_of_kind("/api/v1/namespaces/a/pods", "namespaces"));
        assert!(!is_of_kind("/version", "nodes"));
    }
}
