//! One write: create, update or delete, with the checks that a real server makes first.

use std::sync::Arc;

use fastrand::Rng;
use serde_json::{Value, json};

use kordon_time::{Span, Timestamp};

use super::{
    ApiOptions, admission,
    json::{metadata, text},
    kinds::{self, KINDS, Kind, Subresource},
    managed_fields,
    object::{ObjectKey, Stored},
    quota,
    refusal::{FieldCause, Refusal},
    store::Store,
    validation,
};

/// A write in progress on the locked store. A dry run makes all checks but changes nothing.
pub struct Transaction<'a> {
    pub store: &'a mut Store,
    pub rng: &'a mut Rng,
    pub options: &'a ApiOptions,
    pub dry_run: bool,
    pub now: Timestamp,
}

/// Index of the field `status.phase` among the selectable fields of namespaces.
const NAMESPACE_PHASE: usize = 0;

/// The part of an object that an update changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All fields except the status, for kinds with a status subresource.
    Main,
    /// The status, and the metadata that the status subresource may change.
    Status,
    /// The update may change all fields. Only the server itself makes such updates.
    Whole,
}

/// The method of a write. It determines the error for a wrong uid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteMethod {
    Put,
    Patch,
}

/// The options of a delete, from a `DeleteOptions` body or from the query.
#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    pub grace_seconds: Option<i64>,
    pub uid: Option<String>,
    pub revision: Option<String>,
}

/// The result of a delete.
pub struct Deleted {
    /// The last state of a removed object, or the state of an object that is now terminating.
    pub object: Arc<Stored>,
    /// Whether the object is removed. If it is not, a grace period or a finalizer keeps it for now.
    pub gone: bool,
}

impl Transaction<'_> {
    /// Creates the object that a client sent, in `namespace`.
    pub fn create(&mut self, kind: &Kind, namespace: &str, mut value: Value) -> Result<Arc<Stored>, Refusal> {
        self.name(&mut value);
        let name = text(&value, "/metadata/name").to_owned();
        let key = ObjectKey::new(namespace, &name);
        if kind.is_namespaced() {
            self.check_namespace(kind, namespace, &name)?;
        }
        if self.store.object(kind, &key).is_some() {
            return Err(Refusal::already_exists(kind, &name));
        }
        let given = text(&value, "/metadata/resourceVersion");
        if !matches!(given, "" | "0") {
            return Err(Refusal::new(500, "", "resourceVersion should not be set on objects to be created"));
        }
        let uid = self.uid();
        self.set_server_metadata(kind, namespace, &uid, &mut value);
        admission::on_create(kind, &mut value, self.options, self.store)?;
        validation::check(kind, &value, None)?;
        if kind.name == "Pod" {
            self.count_in_quotas(namespace, &value)?;
        }
        Ok(self.put(kind, key, value))
    }

    /// Checks that the quotas of the namespace allow a new pod, and adds the pod's amounts to the quotas.
    fn count_in_quotas(&mut self, namespace: &str, pod: &Value) -> Result<(), Refusal> {
        let kind = kinds::named("resourcequotas");
        let quotas = self.store.objects_of(kind).objects().filter(|quota| quota.key.namespace == namespace);
        let quotas: Vec<Value> = quotas.map(|quota| quota.value()).collect();
        for counted in quota::admit(&quotas, pod)? {
            let key = ObjectKey::new(namespace, text(&counted, "/metadata/name"));
            self.update(kind, &key, (Part::Whole, WriteMethod::Put), |_| Ok(counted))?;
        }
        Ok(())
    }

    /// Stores a seed object without checks. Fills in missing metadata.
    pub fn load(&mut self, kind: &Kind, mut value: Value) -> Arc<Stored> {
        self.name(&mut value);
        let namespace =
            if kind.is_namespaced() { text(&value, "/metadata/namespace").to_owned() } else { String::new() };
        let namespace =
            if kind.is_namespaced() && namespace.is_empty() { "default".to_owned() } else { namespace };
        let key = ObjectKey::new(&namespace, text(&value, "/metadata/name"));
        let given = |pointer: &str| Some(text(&value, pointer).to_owned()).filter(|text| !text.is_empty());
        let (uid, created) = (given("/metadata/uid"), given("/metadata/creationTimestamp"));
        let uid = uid.unwrap_or_else(|| self.uid());
        self.set_server_metadata(kind, &namespace, &uid, &mut value);
        if let Some(created) = created {
            metadata(&mut value).insert("creationTimestamp".into(), created.into());
        }
        self.put(kind, key, value)
    }

    /// Updates an object. `change` computes the new state from the current one.
    pub fn update(
        &mut self,
        kind: &Kind,
        key: &ObjectKey,
        (part, way): (Part, WriteMethod),
        change: impl FnOnce(&Value) -> Result<Value, Refusal>,
    ) -> Result<Arc<Stored>, Refusal> {
        let Some(stored) = self.store.object(kind, key).cloned() else {
            return Err(Refusal::not_found(kind, &key.name));
        };
        let before = stored.value();
        let mut after = change(&before)?;
        check_identity(kind, key, way, &before, &mut after)?;
        keep_server_fields(&before, &mut after);
        match part {
            Part::Main => {
                admission::on_update(kind, &mut after, self.options);
                if kind.has(Subresource::Status) {
                    copy_field(&before, &mut after, "status");
                }
            }
            Part::Status => {
                admission::on_update(kind, &mut after, self.options);
                let fields: Vec<String> =
                    before.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
                for field in fields.iter().filter(|f| !matches!(f.as_str(), "metadata" | "status")) {
                    copy_field(&before, &mut after, field);
                }
                copy_field(&before, &mut after, "spec");
            }
            Part::Whole => {}
        }
        if part == Part::Main {
            validation::check(kind, &after, Some(&before))?;
        }
        if after == before {
            return Ok(stored);
        }
        if kind.generation && before.get("spec") != after.get("spec") {
            increment_generation(&mut after);
        }
        match kind.name {
            "Lease" => managed_fields::on_lease_update(&before, &mut after, self.now),
            "Node" => managed_fields::on_node_update(&before, &mut after, self.now),
            _ => {}
        }
        if is_released(&after) {
            return Ok(self.remove(kind, key, after));
        }
        Ok(self.put(kind, key.clone(), after))
    }

    /// Deletes an object. The object is removed immediately, after its grace period, or once its finalizers are
    /// removed.
    pub fn delete(
        &mut self,
        kind: &Kind,
        key: &ObjectKey,
        options: &DeleteOptions,
    ) -> Result<Deleted, Refusal> {
        let Some(stored) = self.store.object(kind, key).cloned() else {
            return Err(Refusal::not_found(kind, &key.name));
        };
        let mut value = stored.value();
        options.check_preconditions(kind, key, &stored, &value)?;
        let grace = grace_of(kind, &value, options);
        let has_finalizers = value["metadata"]["finalizers"].as_array().is_some_and(|f| !f.is_empty());
        let terminating = Timestamp::parse(text(&value, "/metadata/deletionTimestamp"));
        let so_far = value["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
        if terminating.is_some() && grace >= so_far && (so_far > 0 || has_finalizers) {
            return Ok(Deleted { object: stored, gone: false });
        }
        if grace == 0 && !has_finalizers && kind.name != "Namespace" {
            return Ok(Deleted { object: self.remove(kind, key, value), gone: true });
        }
        let due = match terminating {
            // The object is already terminating. The new, shorter grace period also counts from the start of the
            // deletion.
            Some(due) => due + Span::from_secs(grace - so_far),
            None => self.now + Span::from_secs(grace),
        };
        let fields = metadata(&mut value);
        fields.insert("deletionTimestamp".into(), due.to_time().into());
        fields.insert("deletionGracePeriodSeconds".into(), grace.into());
        if kind.generation {
            increment_generation(&mut value);
        }
        if kind.name == "Namespace" {
            value["status"]["phase"] = "Terminating".into();
        }
        let object = self.put(kind, key.clone(), value);
        if kind.name == "Namespace" && !self.dry_run {
            self.delete_namespace_contents(&key.name);
        }
        Ok(Deleted { object, gone: false })
    }

    /// Deletes the contents of a terminating namespace, in place of the missing namespace controller.
    fn delete_namespace_contents(&mut self, namespace: &str) {
        for kind in KINDS.iter().filter(|kind| kind.is_namespaced()) {
            for key in self.store.objects_of(kind).keys_in(namespace) {
                // The delete cannot fail: the object exists, and there are no preconditions.
                let _ = self.delete(kind, &key, &DeleteOptions::default());
            }
        }
        self.remove_empty_namespace(namespace);
    }

    fn is_terminating(&self, namespace: &str) -> bool {
        let namespace = self.store.object(kinds::named("namespaces"), &ObjectKey::new("", namespace));
        namespace.is_some_and(|object| object.field(NAMESPACE_PHASE) == "Terminating")
    }

    fn remove_empty_namespace(&mut self, namespace: &str) {
        let namespaces = kinds::named("namespaces");
        let key = ObjectKey::new("", namespace);
        let Some(object) = self.store.object(namespaces, &key) else { return };
        let is_empty = |kind: &Kind| self.store.objects_of(kind).keys_in(namespace).is_empty();
        let value = object.value();
        if self.is_terminating(namespace) && KINDS.iter().filter(|kind| kind.is_namespaced()).all(is_empty) {
            self.store.remove(namespaces, &key, value);
        }
    }

    fn put(&mut self, kind: &Kind, key: ObjectKey, value: Value) -> Arc<Stored> {
        if self.dry_run {
            let revision = self.store.object(kind, &key).map_or(0, |object| object.revision);
            return Arc::new(Stored::encode(kind, key, revision, value));
        }
        self.store.put(kind, key, value)
    }

    fn remove(&mut self, kind: &Kind, key: &ObjectKey, value: Value) -> Arc<Stored> {
        if self.dry_run {
            let revision = self.store.object(kind, key).map_or(0, |object| object.revision);
            return Arc::new(Stored::encode(kind, key.clone(), revision, value));
        }
        let removed = self.store.remove(kind, key, value);
        if kind.is_namespaced() && self.is_terminating(&key.namespace) {
            self.remove_empty_namespace(&key.namespace);
        }
        removed
    }

    /// Generates a name from generateName if the object has no name.
    fn name(&mut self, value: &mut Value) {
        let prefix = text(value, "/metadata/generateName").to_owned();
        if text(value, "/metadata/name").is_empty() && !prefix.is_empty() {
            let name = format!("{prefix}{}", self.suffix());
            metadata(value).insert("name".into(), name.into());
        }
    }

    /// The NamespaceLifecycle admission plugin: refuses objects in missing or terminating namespaces.
    fn check_namespace(&self, kind: &Kind, namespace: &str, name: &str) -> Result<(), Refusal> {
        let namespaces = kinds::named("namespaces");
        let Some(object) = self.store.object(namespaces, &ObjectKey::new("", namespace)) else {
            return Err(Refusal::not_found(namespaces, namespace));
        };
        refuse_in_terminating_namespace(kind, name, object)
    }

    /// Sets the metadata that the server controls on every new object.
    fn set_server_metadata(&mut self, kind: &Kind, namespace: &str, uid: &str, value: &mut Value) {
        let created = self.now.to_time();
        let fields = metadata(value);
        fields.insert("uid".into(), uid.into());
        fields.insert("creationTimestamp".into(), created.into());
        if kind.is_namespaced() {
            fields.insert("namespace".into(), namespace.into());
        } else {
            fields.remove("namespace");
        }
        fields.remove("selfLink");
        if kind.generation {
            fields.entry("generation").or_insert_with(|| json!(1));
        }
        value["kind"] = kind.name.into();
        // Events of both API groups are stored in the form of the core group.
        value["apiVersion"] = kinds::named(kind.plural).api_version().into();
    }

    /// A random (version 4) UUID.
    fn uid(&mut self) -> String {
        let bits = self.rng.u128(..);
        let bits = bits & !(0xf << 76) | (4 << 76);
        let bits = bits & !(0x3 << 62) | (2 << 62);
        let hex = format!("{bits:032x}");
        [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
    }

    /// A random suffix of five characters. The alphabet has no vowels, so it forms no words.
    fn suffix(&mut self) -> String {
        const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        (0..5).map(|_| char::from(ALPHABET[self.rng.usize(..ALPHABET.len())])).collect()
    }
}

impl DeleteOptions {
    /// Parses a `DeleteOptions` object.
    pub fn from_value(value: &Value) -> Self {
        let precondition = |field: &str| value["preconditions"][field].as_str().map(str::to_owned);
        Self {
            grace_seconds: value["gracePeriodSeconds"].as_i64(),
            uid: precondition("uid"),
            revision: precondition("resourceVersion"),
        }
    }

    fn check_preconditions(
        &self,
        kind: &Kind,
        key: &ObjectKey,
        stored: &Stored,
        value: &Value,
    ) -> Result<(), Refusal> {
        let uid = text(value, "/metadata/uid");
        if let Some(wanted) = self.uid.as_deref().filter(|wanted| *wanted != uid) {
            let why =
                format!("Precondition failed: UID in precondition: {wanted}, UID in object meta: {uid}");
            return Err(Refusal::conflict(kind, key, &why));
        }
        let revision = stored.revision.to_string();
        if let Some(wanted) = self.revision.as_deref().filter(|wanted| *wanted != revision) {
            let why = format!(
                "Precondition failed: ResourceVersion in precondition: {wanted}, ResourceVersion in object meta: {revision}"
            );
            return Err(Refusal::conflict(kind, key, &why));
        }
        Ok(())
    }
}

/// Fails with 403 and the cause NamespaceTerminating if the namespace is terminating.
pub fn refuse_in_terminating_namespace(kind: &Kind, name: &str, namespace: &Stored) -> Result<(), Refusal> {
    let namespace = namespace.value();
    if namespace["metadata"]["deletionTimestamp"].is_null() {
        return Ok(());
    }
    let namespace = text(&namespace, "/metadata/name");
    let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
    let cause = FieldCause {
        reason: "NamespaceTerminating",
        message: format!("namespace {namespace} is being terminated"),
        field: "metadata.namespace".into(),
    };
    Err(Refusal::forbidden(kind, name, &why).because(vec![cause]))
}

/// Checks the preconditions in the metadata of an object: name, uid, resourceVersion.
fn check_identity(
    kind: &Kind,
    key: &ObjectKey,
    way: WriteMethod,
    before: &Value,
    after: &mut Value,
) -> Result<(), Refusal> {
    let fields = metadata(after);
    let owned = |field: &str| text(before, &format!("/metadata/{field}")).to_owned();
    let given = |field: &str| fields.get(field).and_then(Value::as_str).unwrap_or_default();
    if given("name") != key.name && !given("name").is_empty() {
        let why = "the name of the object does not match the name on the URL";
        return Err(Refusal::bad_request(format!("{why} ({}, {})", given("name"), key.name)));
    }
    let uid = given("uid");
    if !uid.is_empty() && uid != owned("uid") {
        return Err(match way {
            WriteMethod::Put => {
                let real = owned("uid");
                let why =
                    format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {real}");
                Refusal::conflict(kind, key, &why)
            }
            WriteMethod::Patch => {
                let cause = FieldCause::invalid("metadata.uid", &json!(uid), "field is immutable");
                Refusal::invalid(kind, &key.name, vec![cause])
            }
        });
    }
    let revision = given("resourceVersion");
    if !matches!(revision, "" | "0") && revision != owned("resourceVersion") {
        return Err(Refusal::stale(kind, key));
    }
    Ok(())
}

/// Restores the fields of `before` that a client must not change.
fn keep_server_fields(before: &Value, after: &mut Value) {
    let fields = metadata(after);
    for owned in [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        match before["metadata"].get(owned) {
            Some(value) => fields.insert(owned.to_owned(), value.clone()),
            None => fields.remove(owned),
        };
    }
    if fields.get("managedFields").is_none_or(Value::is_null)
        && let Some(managed) = before["metadata"].get("managedFields")
    {
        fields.insert("managedFields".into(), managed.clone());
    }
    for owned in ["kind", "apiVersion"] {
        after[owned] = before[owned].clone();
    }
}

fn copy_field(before: &Value, after: &mut Value, field: &str) {
    match before.get(field) {
        Some(value) => after[field] = value.clone(),
        None => {
            after.as_object_mut().map(|fields| fields.remove(field));
        }
    }
}

fn increment_generation(value: &mut Value) {
    let generation = value["metadata"]["generation"].as_i64().unwrap_or(0);
    metadata(value).insert("generation".into(), (generation + 1).into());
}

/// Whether the object can be removed: it is terminating without a grace period, and has no finalizers left.
fn is_released(value: &Value) -> bool {
    let fields = &value["metadata"];
    !fields["deletionTimestamp"].is_null()
        && fields["finalizers"].as_array().is_none_or(Vec::is_empty)
        && fields["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) == 0
        && value["kind"] != "Namespace"
}

/// Returns the grace period of a deletion in seconds (docs/upstream/operator-actions.md#4.4). Only pods have a grace
/// period.
fn grace_of(kind: &Kind, value: &Value, options: &DeleteOptions) -> i64 {
    if kind.name != "Pod" {
        return 0;
    }
    let finished = matches!(text(value, "/status/phase"), "Succeeded" | "Failed");
    if finished || text(value, "/spec/nodeName").is_empty() {
        return 0;
    }
    let own = || value["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(30);
    match options.grace_seconds.unwrap_or_else(own) {
        negative if negative < 0 => 1,
        grace => grace,
    }
}
