//! Times at which the API server wrote the Leases of nodes. The server states them in `metadata.managedFields`, which
//! `kubectl get` leaves out unless it is called with `--show-managed-fields`.

use kordon_core::{cluster::READY, engine::MARKED_WITHIN};
use kordon_demo::api::kinds::{self, Kind};
use kordon_time::{Span, Timestamp};
use serde_json::{Value, json};

use super::set::{ObjectName, ObjectSet};
use crate::k8s::leadership::{ElectionOptions, MANAGER_LEASE};

/// Sets the write time of Leases that do not state it, if their kubelets must be alive: kube-controller-manager runs,
/// and Ready of their nodes is not Unknown although their heartbeats seem older than any grace period (upstream
/// `tryUpdateNodeHealth`). The clocks of these kubelets are behind. Their Leases count as written at `now`.
pub fn infer(set: &mut ObjectSet, now: Timestamp) {
    let (nodes, leases) = (kinds::named("nodes"), kinds::named("leases"));
    let (namespace, name) = MANAGER_LEASE;
    let manager = set.object(leases, &(namespace.to_owned(), name.to_owned()));
    if !manager.is_some_and(|lease| has_led(lease, now)) {
        return;
    }
    for (name, mut lease) in alive(set, nodes, leases, now) {
        lease["metadata"]["managedFields"] = json!([{"time": now.to_time()}]);
        set.replace(leases, name, lease);
    }
}

/// Whether the holder of the controller's Lease renews it, and has held it long enough to mark every dead node.
fn has_led(lease: &Value, now: Timestamp) -> bool {
    let spec = &lease["spec"];
    let default = ElectionOptions::for_manager().lease_duration;
    let valid = spec["leaseDurationSeconds"].as_i64().map_or(default, Span::from_secs);
    let (acquired, renewed) = (time(&spec["acquireTime"]), time(&spec["renewTime"]));
    let is_held = spec["holderIdentity"].as_str().is_some_and(|holder| !holder.is_empty());
    is_held
        && renewed.is_some_and(|renewed| now.since(renewed) <= valid)
        && acquired.is_some_and(|acquired| now.since(acquired) > MARKED_WITHIN)
}

/// Returns the Leases of the nodes that must be alive, with their names.
fn alive(
    set: &ObjectSet,
    nodes: &'static Kind,
    leases: &'static Kind,
    now: Timestamp,
) -> Vec<(ObjectName, Value)> {
    let lease_if_alive = |node: &Value| {
        let name = ("kube-node-lease".to_owned(), node["metadata"]["name"].as_str()?.to_owned());
        let lease = set.object(leases, &name)?;
        let states_time = lease["metadata"]["managedFields"].is_array();
        let ready =
            node["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == READY)?;
        let heartbeat = time(&lease["spec"]["renewTime"])?.max(time(&ready["lastHeartbeatTime"])?);
        let is_alive = ready["status"] != "Unknown" && now.since(heartbeat) > MARKED_WITHIN;
        (is_alive && !states_time).then(|| (name, lease.clone()))
    };
    set.objects(nodes).filter_map(lease_if_alive).collect()
}

fn time(value: &Value) -> Option<Timestamp> {
    Timestamp::parse(value.as_str()?)
}
