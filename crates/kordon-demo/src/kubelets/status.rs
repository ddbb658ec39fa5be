//! The node status that a kubelet writes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Kubelet;
use crate::{objects::Node, seed::nodes::HEALTHY_CONDITIONS};
use kordon_time::Timestamp;

/// Returns the patch of the node's status; None if nothing has changed and the periodic report is not `due`.
pub fn report(
    kubelet: &Kubelet,
    pressures: &BTreeSet<&'static str>,
    node: &Node,
    due: bool,
    now: Timestamp,
) -> Option<Value> {
    let wanted = conditions(kubelet, pressures);
    let differs = |(kind, status, reason, _): &(&str, &str, &str, &str)| {
        node.condition(kind).is_none_or(|is| is.status != *status || is.reason != *reason)
    };
    let rebooted = kubelet.kernel.as_ref().filter(|kernel| **kernel != node.status.node_info.kernel_version);
    if !due && rebooted.is_none() && !wanted.iter().any(differs) {
        return None;
    }
    let conditions: Vec<Value> = wanted
        .iter()
        .map(|(kind, status, reason, message)| {
            let kept = node
                .condition(kind)
                .filter(|is| is.status == *status)
                .map(|is| is.last_transition_time.clone());
            json!({
                "type": kind, "status": status, "reason": reason, "message": message,
                "lastHeartbeatTime": now.to_time(),
                "lastTransitionTime": kept.unwrap_or_else(|| now.to_time()),
            })
        })
        .collect();
    let mut status = json!({ "conditions": conditions });
    if let Some(kernel) = rebooted {
        let boot =
            format!("{:08x}-0000-4000-8000-{:012x}", kubelet.session, now.as_nanos() & 0xffff_ffff_ffff);
        status["nodeInfo"] = json!({"kernelVersion": kernel, "bootID": boot});
    }
    Some(json!({ "status": status }))
}

/// Type, status, reason and message of each condition of a node.
fn conditions(
    kubelet: &Kubelet,
    pressures: &BTreeSet<&'static str>,
) -> [(&'static str, &'static str, &'static str, &'static str); 4] {
    let [memory, disk, pid] = HEALTHY_CONDITIONS.map(|(kind, reason, message)| {
        if !pressures.contains(kind) {
            return (kind, "False", reason, message);
        }
        match kind {
            "MemoryPressure" => {
                (kind, "True", "KubeletHasInsufficientMemory", "kubelet has insufficient memory available")
            }
            "DiskPressure" => (kind, "True", "KubeletHasDiskPressure", "kubelet has disk pressure"),
            _ => (kind, "True", "KubeletHasInsufficientPID", "kubelet has insufficient PID available"),
        }
    });
    let ready = if kubelet.runtime {
        ("Ready", "True", "KubeletReady", "kubelet is posting ready status")
    } else {
        ("Ready", "False", "KubeletNotReady", "container runtime is down")
    };
    [memory, disk, pid, ready]
}
