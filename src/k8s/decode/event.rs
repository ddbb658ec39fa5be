//! Events. There are few, and components write them in different ways, so each field is read separately.

use serde_json::Value;

use kordon_core::cluster::{ClusterEvent, EventSubject};
use kordon_time::ClusterTime;

/// Maximum length of a message, in characters.
const LONGEST: usize = 1000;

/// Reads an Event about an object; `None` if the Event is about another object of the same name.
///
/// The times and the count are the ones that kubectl describe shows: those of the series if the Event has one,
/// otherwise those of the Event itself.
pub fn event(value: &Value, subject: &EventSubject) -> Option<ClusterEvent> {
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let time = |pointer: &str| ClusterTime::parse(text(pointer));
    if !subject.is_meant(text("/involvedObject/uid")) {
        return None;
    }
    let count = |pointer: &str| value.pointer(pointer).and_then(Value::as_u64);
    let source = [text("/source/component"), text("/reportingComponent")];
    let created = time("/metadata/creationTimestamp");
    let single = time("/eventTime").or(created);
    Some(ClusterEvent {
        is_warning: text("/type") == "Warning",
        reason: text("/reason").into(),
        message: text("/message").chars().take(LONGEST).collect(),
        source: source.into_iter().find(|name| !name.is_empty()).unwrap_or_default().into(),
        count: count("/series/count").or_else(|| count("/count")).unwrap_or(1).max(1),
        first: time("/firstTimestamp").or(single),
        last: time("/series/lastObservedTime").or_else(|| time("/lastTimestamp")).or(single),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use kordon_core::cluster::Node;

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
