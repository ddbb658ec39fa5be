//! A set of objects, by kind and name.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use serde_json::Value;

use kordon_core::{cluster::Lease, engine::ServerVersion, plan::words::counted};
use kordon_demo::api::kinds::{KINDS, Kind};
use kordon_time::{ClusterTime, Span, Timestamp};

use super::{
    ObjectsError,
    documents::documents,
    files::{NamedFile, for_each_file},
};
use crate::k8s::error::plain;

/// Namespace and name of an object.
pub type ObjectName = (String, String);

/// Objects of the kinds that kordon reads. Other objects, Secrets above all, are dropped when they are read.
#[derive(Clone, Debug, Default)]
pub struct ObjectSet {
    /// Objects by their kind. A kind whose list was empty is present, without objects.
    kinds: BTreeMap<KindId, BTreeMap<ObjectName, Value>>,
    /// Files of a folder or archive that were left out, with the reason, and items of lists that are no objects.
    unreadable: Vec<String>,
}

/// The newest time in the objects of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewestTime {
    pub at: Timestamp,
    /// Why this time may be wrong; `None` if it is not by the clock of one node alone.
    pub note: Option<String>,
}

/// Group and plural name of a kind.
type KindId = (&'static str, &'static str);

fn id(kind: &Kind) -> KindId {
    (kind.group, kind.plural)
}

impl ObjectSet {
    /// Reads the objects of a file, folder or archive.
    ///
    /// # Errors
    /// The path cannot be read, or has no objects of known kinds. A file of a folder or archive that is no list of
    /// objects is left out, with a note.
    pub fn read(path: &Path) -> Result<Self, ObjectsError> {
        let mut set = Self::default();
        for_each_file(path, &mut |file| set.add_file(&file))?;
        if set.kinds.is_empty() {
            return Err(ObjectsError::Nothing { path: plain(&path.display().to_string()) });
        }
        Ok(set)
    }

    fn add_file(&mut self, file: &NamedFile) -> Result<(), ObjectsError> {
        if file.is_outside {
            self.unreadable.push(format!("{}: its path leads out of the archive", file.name));
            return Ok(());
        }
        match documents(&file.bytes) {
            Ok(documents) => {
                let kind = kind_of_file(&file.name);
                let no_objects: usize = documents.into_iter().map(|document| self.add(document, kind)).sum();
                if no_objects > 0 {
                    let items = counted(no_objects, "item that is no object", "items that are no objects");
                    self.unreadable.push(format!("{items} of {}", file.name));
                }
                Ok(())
            }
            Err(why) if file.is_one_of_many => {
                self.unreadable.push(format!("{}: {why}", file.name));
                Ok(())
            }
            Err(why) => Err(ObjectsError::NotObjects { file: file.name.clone(), why }),
        }
    }

    /// Adds an object or a list of objects. `hint` is the kind of objects that do not state their kind. Returns the
    /// number of items of Kubernetes lists that are no objects, which are left out.
    fn add(&mut self, mut document: Value, hint: Option<&'static Kind>) -> usize {
        let is_kubernetes_list = document.is_object();
        let listed = listed_kind(&document);
        let items = match &mut document {
            Value::Array(items) => Some(std::mem::take(items)),
            Value::Object(fields) => match fields.get_mut("items") {
                Some(Value::Array(items)) => Some(std::mem::take(items)),
                _ => None,
            },
            _ => return 0,
        };
        let Some(items) = items else {
            if let Some(kind) = kind_of(&document).or(hint) {
                self.insert(kind, document);
            }
            return 0;
        };
        let hint = listed.or(hint);
        if let Some(kind) = hint {
            self.kinds.entry(id(kind)).or_default();
        }
        let mut no_objects = 0;
        for item in items {
            if is_kubernetes_list && !item.is_object() {
                no_objects += 1;
            } else if item["kind"].is_string() {
                no_objects += self.add(item, None);
            } else if let Some(kind) = hint {
                self.insert(kind, item);
            }
        }
        no_objects
    }

    /// Inserts an object. Of two objects with the same name, the newer one is kept.
    pub fn insert(&mut self, kind: &'static Kind, object: Value) {
        let Some(name) = name_of(kind, &object) else { return };
        let objects = self.kinds.entry(id(kind)).or_default();
        let version = |object: &Value| object["metadata"]["resourceVersion"].as_str()?.parse::<u64>().ok();
        if objects.get(&name).is_some_and(|known| version(known) > version(&object)) {
            return;
        }
        objects.insert(name, object);
    }

    /// Inserts an object. Replaces an object with the same name, even a newer one.
    pub fn replace(&mut self, kind: &'static Kind, name: ObjectName, object: Value) {
        self.kinds.entry(id(kind)).or_default().insert(name, object);
    }

    pub fn remove(&mut self, kind: &'static Kind, name: &ObjectName) -> Option<Value> {
        self.kinds.get_mut(&id(kind))?.remove(name)
    }

    pub fn object(&self, kind: &'static Kind, name: &ObjectName) -> Option<&Value> {
        self.kinds.get(&id(kind))?.get(name)
    }

    /// Returns the objects of a kind, sorted by namespace and name.
    pub fn objects(&self, kind: &'static Kind) -> impl Iterator<Item = &Value> {
        self.kinds.get(&id(kind)).into_iter().flat_map(BTreeMap::values)
    }

    /// Whether the set has objects of a kind, or an empty list of them.
    pub fn knows(&self, kind: &'static Kind) -> bool {
        self.kinds.contains_key(&id(kind))
    }

    /// Marks a kind as known, even if it has no objects.
    pub fn know(&mut self, kind: &'static Kind) {
        self.kinds.entry(id(kind)).or_default();
    }

    /// Whether the files have Leases of a namespace.
    pub fn knows_leases_in(&self, namespace: &str) -> bool {
        let leases = self.kinds.get(&("coordination.k8s.io", "leases"));
        leases.is_some_and(|leases| leases.keys().any(|(in_namespace, _)| in_namespace == namespace))
    }

    /// The newest time in the objects. For an object with `metadata.managedFields`, only the server's write times
    /// count, because other times may come from clocks that are ahead. Times by kubelets whose Lease shows that their
    /// clock is wrong are ignored. Deletion timestamps are ignored, because they lie in the future.
    pub fn newest(&self) -> Option<NewestTime> {
        let by_clock = self.newest_by_clock();
        let at = by_clock.values().copied().max()?;
        Some(NewestTime { at, note: clock_note(&by_clock) })
    }

    /// The newest time by the clock of each node, as far as it is not known to be wrong. The key `None` stands for the
    /// clocks of the API server and the controllers.
    fn newest_by_clock(&self) -> BTreeMap<Option<&str>, Timestamp> {
        let wrong = self.nodes_with_wrong_clocks();
        let mut by_clock = BTreeMap::new();
        let mut add = |clock, at: Option<Timestamp>| {
            if let Some(at) = at {
                let newest = by_clock.entry(clock).or_insert(at);
                *newest = at.max(*newest);
            }
        };
        for (kind, objects) in &self.kinds {
            for object in objects.values() {
                let of_server = || newest_in(&object["metadata"]).max(newest_in(&object["spec"]));
                match (written_at(object), kubelet_of(kind, object)) {
                    (Some(written), _) => add(None, Some(written)),
                    (None, None) => add(None, newest_in(object)),
                    (None, Some(node)) if wrong.contains(node) => add(None, of_server()),
                    (None, Some(node)) if kind.1 == "leases" => add(Some(node), newest_in(object)),
                    (None, Some(node)) => {
                        add(None, of_server());
                        add(Some(node), newest_in(object));
                    }
                }
            }
        }
        by_clock
    }

    /// The nodes whose clock differs from the server's clock, by their Leases.
    fn nodes_with_wrong_clocks(&self) -> BTreeSet<&str> {
        let leases = self.kinds.get(&("coordination.k8s.io", "leases")).into_iter().flatten();
        let wrong =
            leases.filter(|((namespace, _), lease)| namespace == "kube-node-lease" && has_wrong_clock(lease));
        wrong.map(|((_, node), _)| node.as_str()).collect()
    }

    /// The highest release of the kubelets. The release of the API server is at least as high.
    pub fn release(&self) -> Option<ServerVersion> {
        let nodes = self.kinds.get(&("", "nodes")).into_iter().flat_map(BTreeMap::values);
        let release = |node: &Value| {
            node["status"]["nodeInfo"]["kubeletVersion"].as_str().and_then(ServerVersion::parse)
        };
        nodes.filter_map(release).max()
    }

    /// Notes about files that were left out because they could not be read.
    pub fn notes(&self) -> Vec<String> {
        self.unreadable.iter().map(|file| format!("left out {}", plain(file))).collect()
    }
}

/// Namespace and name of an object; none for an object without a name.
pub fn name_of(kind: &Kind, object: &Value) -> Option<ObjectName> {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    let name = Some(text("name")).filter(|name| !name.is_empty())?;
    let namespace = match text("namespace") {
        _ if !kind.is_namespaced() => String::new(),
        namespace if namespace.is_empty() => "default".into(),
        namespace => namespace,
    };
    Some((namespace, name))
}

/// The kind of an object by its `apiVersion` and `kind`. Any version of the API group matches.
pub fn kind_of(object: &Value) -> Option<&'static Kind> {
    let (api_version, name) = (object["apiVersion"].as_str()?, object["kind"].as_str()?);
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    KINDS.iter().find(|kind| kind.name == name && kind.group == group)
}

/// The kind of the items of a list, by the list's kind, such as `PodList`; none for a `List`, whose items may have any
/// kinds.
pub fn listed_kind(list: &Value) -> Option<&'static Kind> {
    let (api_version, name) = (list["apiVersion"].as_str()?, list["kind"].as_str()?);
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let name = name.strip_suffix("List")?;
    KINDS.iter().find(|kind| kind.name == name && kind.group == group)
}

/// The kind that a file's name states, such as `cluster-resources/pods/web.json` or `nodes.json`. It is needed for
/// lists that do not state their kind.
fn kind_of_file(name: &str) -> Option<&'static Kind> {
    let words = name.rsplit('/').take(2).map(|word| word.split('.').next().unwrap_or_default());
    let plurals: Vec<String> = words.map(|word| word.replace('-', "")).collect();
    plurals.iter().find_map(|plural| KINDS.iter().find(|kind| kind.plural == *plural))
}

/// Returns a note if the newest time in the objects comes from the clock of one node alone, and is more than a minute
/// later than the times by all other nodes, the API server and the controllers. Without write times it is not known
/// whether that clock is ahead.
fn clock_note(by_clock: &BTreeMap<Option<&str>, Timestamp>) -> Option<String> {
    let (node, newest) = by_clock.iter().max_by_key(|(_, newest)| **newest)?;
    let node = (*node)?;
    let others = || by_clock.iter().filter(|(other, _)| **other != Some(node));
    let later = newest.since(*others().map(|(_, newest)| newest).max()?);
    let has_other_nodes = others().any(|(other, _)| other.is_some());
    let (time, name) = (newest.to_time(), plain(node));
    (has_other_nodes && later > Span::from_secs(60)).then(|| {
        format!(
            "the time {time} is by the clock of node {name} alone: all other times are at least {later} earlier. If \
             the clock of {name} is ahead, set the time with --at, or read the objects with kubectl get \
             --show-managed-fields"
        )
    })
}

/// Time at which the server last wrote an object; none if the object does not state this time.
fn written_at(object: &Value) -> Option<Timestamp> {
    let fields = object["metadata"]["managedFields"].as_array()?;
    fields.iter().filter_map(|entry| Timestamp::parse(entry["time"].as_str()?)).max()
}

/// Whether the times in a Lease show that its kubelet's clock is wrong. Also true if somebody changed the Lease of a
/// dead node. The times by the kubelet of such a node are old and therefore never the newest ones.
fn has_wrong_clock(lease: &Value) -> bool {
    let renewed = lease["spec"]["renewTime"].as_str().and_then(ClusterTime::parse);
    let written = written_at(lease).map(ClusterTime::new);
    Lease { renewed, written, ..Lease::default() }.clock_difference().is_some()
}

/// The node whose kubelet writes times into an object of this kind: outside of its metadata and spec, or into the spec
/// of a Lease. None if no kubelet does.
fn kubelet_of<'a>(kind: &KindId, object: &'a Value) -> Option<&'a str> {
    match kind.1 {
        "nodes" => object["metadata"]["name"].as_str(),
        "pods" => object["spec"]["nodeName"].as_str(),
        "leases" if object["metadata"]["namespace"] == "kube-node-lease" => {
            object["metadata"]["name"].as_str()
        }
        "events" => object["source"]["host"].as_str().or_else(|| object["deprecatedSource"]["host"].as_str()),
        _ => None,
    }
}

/// The newest time anywhere in a value, except in annotations, labels and deletion timestamps.
fn newest_in(value: &Value) -> Option<Timestamp> {
    const LEFT_OUT: [&str; 3] = ["deletionTimestamp", "annotations", "labels"];
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(name, _)| !LEFT_OUT.contains(&name.as_str()));
            fields.filter_map(|(_, field)| newest_in(field)).max()
        }
        Value::Array(items) => items.iter().filter_map(newest_in).max(),
        Value::String(text) => Timestamp::parse(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(files: &[(&str, Value)]) -> ObjectSet {
        let mut set = ObjectSet::default();
        for (name, content) in files {
            let file = NamedFile {
                name: (*name).into(),
                bytes: content.to_string().into_bytes(),
                is_one_of_many: true,
                is_outside: name.starts_with(".."),
            };
            set.add_file(&file).expect("it is left out at worst");
        }
        set
    }

    fn newest(files: &[(&str, Value)]) -> Option<Timestamp> {
        set(files).newest().map(|newest| newest.at)
    }

    fn kind(plural: &str) -> &'static Kind {
        KINDS.iter().find(|kind| kind.plural == plural).expect("a kind")
    }

    fn names(set: &ObjectSet, plural: &str) -> Vec<String> {
        set.objects(kind(plural))
            .map(|object| object["metadata"]["name"].as_str().unwrap_or_default().into())
            .collect()
    }

    fn named(name: &str) -> Value {
        json!({"metadata": {"name": name}})
    }

    #[test]
    fn lists_of_every_layout_are_read() {
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}});
        let set = set(&[
            ("all.json", json!({"apiVersion": "v1", "kind": "List", "items": [node]})),
            ("nodes.json", json!([named("n2")])),
            (
                "cluster-resources/pods/web.json",
                json!({"kind": "PodList", "apiVersion": "v1", "items": [named("p1")]}),
            ),
            ("cluster-resources/pod-disruption-budgets/web.json", json!({"items": []})),
            (
                "namespaces/web/apps/deployments.yaml",
                json!({"kind": "DeploymentList", "apiVersion": "apps/v1", "items": []}),
            ),
            ("secrets.json", json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}})),
            ("errors.json", json!(["forbidden"])),
        ]);
        assert_eq!(
            (names(&set, "nodes"), names(&set, "pods")),
            (vec!["n1".into(), "n2".into()], vec!["p1".into()])
        );
        assert!(set.knows(kind("poddisruptionbudgets")) && set.knows(kind("deployments")));
        assert!(!set.knows(kind("statefulsets")) && set.notes().is_empty());
    }

    #[test]
    fn what_is_left_out_is_noted() {
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}});
        let set = set(&[
            ("all.json", json!({"apiVersion": "v1", "kind": "List", "items": [node, "n2", 3]})),
            ("../evil.json", json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "evil"}})),
        ]);
        assert_eq!(names(&set, "nodes"), ["n1"]);
        let notes = [
            "left out 2 items that are no objects of all.json",
            "left out ../evil.json: its path leads out of the archive",
        ];
        assert_eq!(set.notes(), notes);
    }

    #[test]
    fn the_clock_is_that_of_the_server_where_it_is_known() {
        let at = |text: &str| Timestamp::parse(text);
        let ahead = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "managedFields": [{"time": "2026-01-01T00:05:00Z"}]}, "status": {"at": "2026-01-01T09:00:00Z"}});
        let deleted = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p1",
            "deletionTimestamp": "2026-01-01T00:10:00Z", "creationTimestamp": "2026-01-01T00:06:00Z"}});
        assert_eq!(newest(&[("a", ahead.clone())]), at("2026-01-01T00:05:00Z"));
        assert_eq!(newest(&[("a", ahead), ("b", deleted)]), at("2026-01-01T00:06:00Z"));
    }

    #[test]
    fn a_kubelet_with_a_wrong_clock_does_not_set_the_clock() {
        let at = |text: &str| Timestamp::parse(text);
        let (created, ahead) = ("2026-01-01T00:00:00Z", "2026-01-01T08:05:00Z");
        let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "n1", "namespace": "kube-node-lease",
                "managedFields": [{"time": "2026-01-01T00:05:00Z"}]},
            "spec": {"renewTime": ahead}});
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "creationTimestamp": created},
            "status": {"conditions": [{"type": "Ready", "lastHeartbeatTime": ahead}]}});
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p1", "creationTimestamp": created},
            "spec": {"nodeName": "n1"}, "status": {"startTime": ahead}});
        let event = json!({"apiVersion": "v1", "kind": "Event",
            "metadata": {"name": "e1", "creationTimestamp": created}, "source": {"component": "kubelet", "host": "n1"}, "lastTimestamp": ahead});
        let objects = [("lease", lease), ("node", node), ("pod", pod), ("event", event)];
        assert_eq!(newest(&objects), at("2026-01-01T00:05:00Z"));
        assert_eq!(newest(&objects[1..2]), at(ahead), "no Lease shows that the clock is wrong");
        let other = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "n2", "namespace": "kube-node-lease"},
            "spec": {"renewTime": "2026-01-01T00:05:00Z"}});
        let [lease, node, ..] = objects;
        let note = |files: &[_]| set(files).newest().and_then(|newest| newest.note);
        let said = note(&[node.clone(), ("other", other.clone())]).expect("one clock alone");
        assert!(
            said.starts_with("the time 2026-01-01T08:05:00Z is by the clock of node n1 alone: "),
            "{said}"
        );
        assert!(said.contains("at least 8h00m earlier") && said.contains("--show-managed-fields"), "{said}");
        assert_eq!(note(std::slice::from_ref(&node)), None, "no other node has a time");
        assert_eq!(note(&[lease, node, ("other", other)]), None, "the Lease shows that the clock is wrong");
    }
}
