//! `metadata.managedFields` of Leases and nodes: when the server wrote a heartbeat, by its own clock.

use serde_json::{Value, json};

use super::json::metadata;
use kordon_time::Timestamp;

/// Path of the field of a Lease whose changes are heartbeats.
const RENEW_TIME: &str = "/spec/renewTime";

/// Path of the heartbeat time of Ready in an entry of a node's managed fields.
const HEARTBEAT: &str = r#"/fieldsV1/f:status/f:conditions/k:{"type":"Ready"}/f:lastHeartbeatTime"#;

/// Sets the time at which `spec.renewTime` was last changed, if a write changes it. The entries of other fields are
/// kept as they are.
pub fn on_lease_update(before: &Value, after: &mut Value, now: Timestamp) {
    if before.pointer(RENEW_TIME) == after.pointer(RENEW_TIME) {
        return;
    }
    let entry = json!({
        "manager": "kubelet",
        "operation": "Update",
        "apiVersion": after["apiVersion"],
        "time": now.to_time(),
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:renewTime": {}}},
    });
    let managed = metadata(after).entry("managedFields").or_insert_with(|| json!([]));
    let Some(managed) = managed.as_array_mut() else { return };
    managed.retain(|entry| {
        entry.pointer("/fieldsV1").is_some_and(|fields| fields.pointer("/f:spec/f:renewTime").is_none())
    });
    managed.push(entry);
}

/// Updates `metadata.managedFields` after a write to a Node: if `lastHeartbeatTime` of the Ready condition has changed,
/// its manager gets the time of the write.
pub fn on_node_update(before: &Value, after: &mut Value, now: Timestamp) {
    let heartbeat = |node: &Value| {
        let conditions = node["status"]["conditions"].as_array()?;
        conditions.iter().find(|condition| condition["type"] == "Ready")?.get("lastHeartbeatTime").cloned()
    };
    if heartbeat(before) == heartbeat(after) {
        return;
    }
    let managed = metadata(after).get_mut("managedFields").and_then(Value::as_array_mut);
    for entry in managed.into_iter().flatten().filter(|entry| entry.pointer(HEARTBEAT).is_some()) {
        entry["time"] = json!(now.to_time());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renewal_is_written_by_the_servers_clock() {
        let lease = |renewed: &str, managed: Value| {
            json!({"apiVersion": "coordination.k8s.io/v1", "metadata": {"managedFields": managed},
                "spec": {"renewTime": renewed}})
        };
        let label = json!({"manager": "kubectl", "fieldsV1": {"f:metadata": {"f:labels": {}}}});
        let old = json!({"manager": "kubelet", "time": "2026-01-01T00:00:00Z"});
        let before = lease("2026-01-01T08:00:00Z", json!([label, old]));
        let mut after = lease("2026-01-01T08:00:10Z", json!([label, old]));
        on_lease_update(&before, &mut after, Timestamp::parse("2026-01-01T00:00:10Z").expect("a time"));
        let managed = &after["metadata"]["managedFields"];
        assert_eq!((&managed[0], &managed[1]["time"]), (&label, &json!("2026-01-01T00:00:10Z")));
        assert_eq!(managed.as_array().map(Vec::len), Some(2));
        let mut same = before.clone();
        on_lease_update(&before, &mut same, Timestamp::EPOCH);
        assert_eq!(same, before, "no heartbeat");
    }

    #[test]
    fn a_status_is_written_by_the_servers_clock() {
        let ready = r#"k:{"type":"Ready"}"#;
        let node = |heartbeat: &str, written: &str| {
            json!({"metadata": {"managedFields": [
                {"manager": "kubelet", "time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:spec": {}}},
                {"manager": "kubelet", "time": written, "fieldsV1": {"f:status": {"f:conditions": {
                    ready: {"f:lastHeartbeatTime": {}}}}}}]},
                "status": {"conditions": [{"type": "Ready", "lastHeartbeatTime": heartbeat}]}})
        };
        let before = node("2026-01-01T08:00:00Z", "2026-01-01T00:00:00Z");
        let mut after = node("2026-01-01T08:05:00Z", "2026-01-01T00:00:00Z");
        on_node_update(&before, &mut after, Timestamp::parse("2026-01-01T00:05:00Z").expect("a time"));
        assert_eq!(after, node("2026-01-01T08:05:00Z", "2026-01-01T00:05:00Z"));
        let mut same = before.clone();
        on_node_update(&before, &mut same, Timestamp::EPOCH);
        assert_eq!(same, before, "no heartbeat");
    }
}
