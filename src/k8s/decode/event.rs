//! Events. There are few, and components write them in different ways, so each field is read separately.

use serde_json::Value;

use kordon_core::cluster::{ClusterEvent, EventSubject, InvolvedObject, ReportedEvent};
use kordon_time::ClusterTime;

/// Maximum length of a message, in characters.
const LONGEST: usize = 1000;

/// Reads an Event about an object; `None` if the Event is about another object of the same name.
pub fn event(value: &Value, subject: &EventSubject) -> Option<ClusterEvent> {
    let uid = value.pointer("/involvedObject/uid").and_then(Value::as_str).unwrap_or_default();
    subject.is_meant(uid).then(|| reported(value).event)
}

/// Reads an Event.
///
/// The times and the count are the ones that kubectl describe shows: those of the series if the Event has one,
/// otherwise those of the Event itself.
pub fn reported(value: &Value) -> ReportedEvent {
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let time = |pointer: &str| ClusterTime::parse(text(pointer));
    let count = |pointer: &str| value.pointer(pointer).and_then(Value::as_u64);
    let first_of =
        |texts: [&str; 2]| texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default().into();
    let created = time("/metadata/creationTimestamp");
    let single = time("/eventTime").or(created);
    let about = InvolvedObject {
        kind: text("/involvedObject/kind").into(),
        namespace: text("/involvedObject/namespace").into(),
        name: text("/involvedObject/name").into(),
    };
    let is_of_kubelet = text("/reportingComponent") == "kubelet";
    let node = match &*about.kind {
        "Node" => about.name.clone(),
        _ => first_of([text("/source/host"), if is_of_kubelet { text("/reportingInstance") } else { "" }]),
    };
    let event = ClusterEvent {
        is_warning: text("/type") == "Warning",
        reason: text("/reason").into(),
        message: text("/message").chars().take(LONGEST).collect(),
        source: first_of([text("/source/component"), text("/reportingComponent")]),
        count: count("/series/count").or_else(|| count("/count")).unwrap_or(1).max(1),
        first: time("/firstTimestamp").or(single),
        last: time("/series/lastObservedTime").or_else(|| time("/lastTimestamp")).or(single),
    };
    ReportedEvent { about, node, event }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use kordon_core::cluster::Node;

    #[test]
    fn an_event_names_its_object_and_the_node_of_its_kubelet() {
        let about = |object: Value, source: Value, instance: &str| {
            let event = json!({"involvedObject": object, "source": source, "reportingComponent": "kubelet",
                "reportingInstance": instance});
            let ReportedEvent { about, node, .. } = reported(&event);
            (about.to_string(), node.to_string())
        };
        let pod = json!({"kind": "Pod", "namespace": "shop", "name": "web-1"});
        let node = json!({"kind": "Node", "name": "n1"});
        let expected = |object: &str, node: &str| (object.to_owned(), node.to_owned());
        assert_eq!(about(pod.clone(), json!({"host": "n1"}), "n1"), expected("Pod shop/web-1", "n1"));
        assert_eq!(about(pod, json!({}), "n2"), expected("Pod shop/web-1", "n2"));
        assert_eq!(about(node, json!({}), ""), expected("Node n1", "n1"));
        assert_eq!(
            reported(&json!(null)),
            ReportedEvent {
                event: ClusterEvent { count: 1, ..ClusterEvent::default() },
                ..ReportedEvent::default()
            }
        );
    }

    #[test]
    fn both_forms_of_events_are_read_and_damaged_ones_do_no_harm() {
        let node = Node { name: "n1".into(), uid: "u1".into(), ..Node::default() };
        let subject = EventSubject::node(&node);
        let old = json!({
            "involvedObject": {"kind": "Node", "name": "n1", "uid": "n1"},
            "type": "Warning", "reason": "Rebooted", "message": "booted", "count": 4,
            "firstTimestamp": "2026-01-02T03:00:00Z", "lastTimestamp": "2026-01-02T03:05:00Z",
            "source": {"component": "kubelet", "host": "n1"},
        });
        let read = event(&old, &subject).expect("it is about the node");
        assert_eq!(
            (&*read.reason, read.count, &*read.source, read.is_warning),
            ("Rebooted", 4, "kubelet", true)
        );
        assert!(read.first < read.last);
        let new = json!({
            "involvedObject": {"uid": "u1"}, "type": "Normal", "reason": "Scheduled",
            "eventTime": "2026-01-02T03:00:00.123456Z", "firstTimestamp": null, "lastTimestamp": null,
            "series": {"count": 7, "lastObservedTime": "2026-01-02T03:09:00.000000Z"},
            "reportingComponent": "default-scheduler", "source": {},
        });
        let read = event(&new, &subject).expect("it is about the node");
        assert_eq!((read.count, &*read.source, read.is_warning), (7, "default-scheduler", false));
        assert!(read.first.is_some() && read.first < read.last);
        assert_eq!(event(&json!({"involvedObject": {"uid": "u0"}}), &subject), None);
        for damaged in [json!(null), json!([]), json!({"count": -1, "message": 5, "firstTimestamp": {}})] {
            assert_eq!(event(&damaged, &subject).map(|event| event.count), Some(1), "{damaged}");
        }
    }
}
