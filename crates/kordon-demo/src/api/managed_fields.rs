//! `metadata.managedFields` of Leases: when the server wrote a heartbeat, by its own clock.

use serde_json::{Value, json};

use super::json::metadata;
use kordon_time::Timestamp;

/// Path of the field whose changes are heartbeats.
const RENEW_TIME: &str = "/spec/renewTime";

/// Sets the time at which `spec.renewTime` was last changed, if a write changes it. The entries of other fields are
/// kept as they are.
pub fn on_update(before: &Value, after: &mut Value, now: Timestamp) {
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
        on_update(&before, &mut after, Timestamp::parse("2026-01-01T00:00:10Z").expect("a time"));
        let managed = &after["metadata"]["managedFields"];
        assert_eq!((&managed[0], &managed[1]["time"]), (&label, &json!("2026-01-01T00:00:10Z")));
        assert_eq!(managed.as_array().map(Vec::len), Some(2));
        let mut same = before.clone();
        on_update(&before, &mut same, Timestamp::EPOCH);
        assert_eq!(same, before, "no heartbeat");
    }
}
