//! Events, reported by components of the cluster: those about one object, and those of the whole cluster.

use std::{collections::BTreeMap, fmt, sync::Arc};

use super::{
    budget::Budget,
    names::{Key, Name},
    node::Node,
    owner::OwnerKind,
    pod::Pod,
    uid::Uid,
};
use kordon_time::ClusterTime;

/// The object whose Events are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSubject {
    /// `Node`, `Pod`, `PodDisruptionBudget`, or the kind of a workload.
    pub kind: &'static str,
    /// Namespace of the Events; none for a node, whose Events may be in any namespace.
    pub namespace: Option<Name>,
    pub name: Name,
    /// Uid of the object; empty for an object that is gone. With an empty uid, Events about any object of this name
    /// match.
    pub uid: Uid,
}

impl EventSubject {
    pub fn node(node: &Node) -> Self {
        Self { kind: "Node", namespace: None, name: (*node.name).into(), uid: node.uid.clone() }
    }

    pub fn pod(pod: &Pod) -> Self {
        let namespace = Some((*pod.key.namespace).into());
        Self { kind: "Pod", namespace, name: pod.key.name.clone(), uid: pod.uid.clone() }
    }

    pub fn budget(budget: &Budget) -> Self {
        let namespace = Some((*budget.key.namespace).into());
        let uid = budget.uid.clone();
        Self { kind: "PodDisruptionBudget", namespace, name: budget.key.name.clone(), uid }
    }

    /// Selects the Events about a pod that is gone. Only the name of the pod is known, not its uid.
    pub fn gone_pod(pod: &Key) -> Self {
        let namespace = Some((*pod.namespace).into());
        Self { kind: "Pod", namespace, name: pod.name.clone(), uid: Uid::default() }
    }

    /// Selects the Events about the owner of a pod; none if the kind of the owner is not watched.
    pub fn owner_of(pod: &Pod) -> Option<Self> {
        let owner = pod.owner.as_ref()?;
        let OwnerKind::Workload(kind) = owner.kind else { return None };
        let namespace = Some((*pod.key.namespace).into());
        Some(Self { kind: kind.as_str(), namespace, name: owner.name.clone(), uid: owner.uid.clone() })
    }

    /// Whether an Event about an object of the same name is about this object, and not about an earlier object. `uid`
    /// is the uid that the Event gives.
    ///
    /// Kubelets give the name of a node as its uid, and the taint manager gives no uid
    /// (docs/upstream/node-lifecycle.md#7.10). The uid can therefore not be part of the query.
    pub fn is_meant(&self, uid: &str) -> bool {
        uid.is_empty()
            || self.uid.is_empty()
            || self.uid == *uid
            || (self.kind == "Node" && *uid == *self.name)
    }
}

/// An Event, cut down to the fields that kordon shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterEvent {
    /// Whether the type of the Event is Warning.
    pub is_warning: bool,
    pub reason: Name,
    pub message: String,
    /// The component that reported the Event.
    pub source: Name,
    /// Number of times that the Event happened.
    pub count: u64,
    pub first: Option<ClusterTime>,
    pub last: Option<ClusterTime>,
}

/// The Events about an object, as far as they are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectEvents {
    /// The Events; none until they have been listed.
    pub events: Option<Vec<ClusterEvent>>,
    /// Why the Events are unknown or outdated.
    pub failure: Option<String>,
}

impl ObjectEvents {
    /// Merges this result of a read into an earlier result. If this read failed, keeps the earlier Events and adds the
    /// failure.
    #[must_use]
    pub fn after(self, before: Self) -> Self {
        Self { events: self.events.or(before.events), failure: self.failure }
    }
}

/// The object that an Event is about, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct InvolvedObject {
    pub kind: Name,
    /// Namespace of the object; empty for a cluster-scoped object.
    pub namespace: Name,
    pub name: Name,
}

impl fmt::Display for InvolvedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace.is_empty() {
            true => write!(f, "{} {}", self.kind, self.name),
            false => write!(f, "{} {}/{}", self.kind, self.namespace, self.name),
        }
    }
}

/// An Event with the object that it is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportedEvent {
    pub about: InvolvedObject,
    /// The node that the Event is about, or whose kubelet reported the Event; empty if the Event names no node.
    pub node: Name,
    pub event: ClusterEvent,
}

/// Identity of a row of Events that were [folded](fold_by_object).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventKey {
    pub about: InvolvedObject,
    pub reason: Name,
    pub is_warning: bool,
    pub source: Name,
}

impl ReportedEvent {
    pub fn key(&self) -> EventKey {
        let ClusterEvent { reason, is_warning, source, .. } = &self.event;
        EventKey {
            about: self.about.clone(),
            reason: reason.clone(),
            is_warning: *is_warning,
            source: source.clone(),
        }
    }
}

/// The Events of a cluster, as far as they are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventsOfCluster {
    /// The Events; none until they have been listed.
    pub events: Option<Arc<[ReportedEvent]>>,
    /// Number of older Events that are left out, because there are too many.
    pub left_out: usize,
    /// Why the Events are unknown or outdated.
    pub failure: Option<String>,
}

impl EventsOfCluster {
    /// Merges this result of a read into an earlier result. If this read failed, keeps the earlier Events and adds the
    /// failure.
    #[must_use]
    pub fn after(self, before: Self) -> Self {
        match self.events {
            Some(_) => self,
            None => Self { failure: self.failure, ..before },
        }
    }
}

/// Merges Events about the same object that have the same reason, type and source. The key identifies each merged
/// Event.
pub fn fold_by_object(events: &[ReportedEvent]) -> BTreeMap<EventKey, ReportedEvent> {
    let mut objects: BTreeMap<&InvolvedObject, (&Name, Vec<ClusterEvent>)> = BTreeMap::new();
    for ReportedEvent { about, node, event } in events {
        let (known_node, of_object) = objects.entry(about).or_insert_with(|| (node, Vec::new()));
        if known_node.is_empty() {
            *known_node = node;
        }
        of_object.push(event.clone());
    }
    let rows = objects.into_iter().flat_map(|(about, (node, events))| {
        let row = move |event| ReportedEvent { about: about.clone(), node: node.clone(), event };
        fold(&events).into_iter().map(row)
    });
    rows.map(|row| (row.key(), row)).collect()
}

/// Merges Events with the same reason, type and source into one Event with the latest message. Sorts the merged Events
/// by time, newest first.
pub fn fold(events: &[ClusterEvent]) -> Vec<ClusterEvent> {
    let mut folded: BTreeMap<(&Name, bool, &Name), ClusterEvent> = BTreeMap::new();
    for event in events {
        let key = (&event.reason, event.is_warning, &event.source);
        let Some(known) = folded.get_mut(&key) else {
            folded.insert(key, event.clone());
            continue;
        };
        known.count = known.count.saturating_add(event.count);
        known.first = [known.first, event.first].into_iter().flatten().min();
        if event.last >= known.last {
            known.last = event.last;
            known.message.clone_from(&event.message);
        }
    }
    let mut folded: Vec<ClusterEvent> = folded.into_values().collect();
    folded.sort_by_key(|event| std::cmp::Reverse(event.last));
    folded
}

#[cfg(test)]
mod tests {
    use super::*;
    use kordon_time::{Span, Timestamp};

    fn event(reason: &str, message: &str, first: i64, last: i64, count: u64) -> ClusterEvent {
        let at = |secs| Some(ClusterTime::new(Timestamp::EPOCH + Span::from_secs(secs)));
        let (first, last) = (at(first), at(last));
        ClusterEvent {
            reason: reason.into(),
            message: message.into(),
            source: "kubelet".into(),
            count,
            first,
            last,
            ..ClusterEvent::default()
        }
    }

    #[test]
    fn events_fold_by_reason_type_and_source_with_the_last_message_and_the_newest_first() {
        let warning = ClusterEvent { is_warning: true, ..event("BackOff", "other", 5, 5, 1) };
        let folded = fold(&[
            event("BackOff", "second", 40, 90, 3),
            event("BackOff", "first", 10, 30, 2),
            event("Started", "started", 95, 95, 1),
            warning.clone(),
        ]);
        let expected =
            [event("Started", "started", 95, 95, 1), event("BackOff", "second", 10, 90, 5), warning];
        assert_eq!(folded, expected);
    }

    #[test]
    fn events_of_a_cluster_fold_by_object_and_reason() {
        let about =
            |name: &str| InvolvedObject { kind: "Pod".into(), namespace: "shop".into(), name: name.into() };
        let reported =
            |name: &str, node: &str, event| ReportedEvent { about: about(name), node: node.into(), event };
        let folded = fold_by_object(&[
            reported("a", "", event("BackOff", "first", 10, 30, 2)),
            reported("a", "n1", event("BackOff", "second", 40, 90, 3)),
            reported("a", "", event("Started", "started", 95, 95, 1)),
            reported("b", "", event("BackOff", "other", 5, 5, 1)),
        ]);
        let rows: Vec<ReportedEvent> = folded.into_values().collect();
        let expected = [
            reported("a", "n1", event("BackOff", "second", 10, 90, 5)),
            reported("a", "n1", event("Started", "started", 95, 95, 1)),
            reported("b", "", event("BackOff", "other", 5, 5, 1)),
        ];
        assert_eq!(rows, expected);
        assert_eq!(rows[0].about.to_string(), "Pod shop/a");
    }

    #[test]
    fn a_kubelet_names_its_node_by_name_and_an_object_of_the_same_name_before_is_another() {
        let node = Node { name: "n1".into(), uid: "u2".into(), ..Node::default() };
        let pod = Pod { uid: "u2".into(), ..Pod::default() };
        let meant = |subject: EventSubject| ["", "u2", "n1", "u1"].map(|uid| subject.is_meant(uid));
        assert_eq!(meant(EventSubject::node(&node)), [true, true, true, false]);
        assert_eq!(meant(EventSubject::pod(&pod)), [true, true, false, false]);
        let gone = EventSubject::gone_pod(&Key::new("d", "p"));
        assert_eq!(meant(gone), [true; 4], "nobody knows the uid any more");
    }
}
