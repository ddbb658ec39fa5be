//! DaemonSets: one pod on every node whose taints the pod tolerates.

use std::collections::BTreeSet;

use serde_json::json;

use super::Workloads;
use crate::{
    objects::{Key, Node, Object, Toleration, Workload, WorkloadKind},
    seed::pods::{daemon_tolerations, pinned},
    writer::WriteError,
};

impl Workloads {
    pub(super) async fn sync_daemon_set(&mut self, key: &Key) -> Result<(), WriteError> {
        let Some(set) = self.workload(WorkloadKind::DaemonSet, key) else { return Ok(()) };
        let tolerations = tolerations(&set);
        let mut missing: BTreeSet<String> = self
            .nodes
            .all()
            .filter(|(_, node)| tolerated(node, &tolerations, &["NoSchedule", "NoExecute"]))
            .map(|(key, _)| key.name.clone())
            .collect();
        let desired = missing.len();
        for pod in self.pods_of(&set) {
            let node = pod.pinned_to().unwrap_or(&pod.spec.node_name);
            // The pods of a node that does not exist are left to the pod garbage collection.
            let known = self.nodes.object(&Key { namespace: String::new(), name: node.to_owned() });
            let stays = known.is_none_or(|node| tolerated(node, &tolerations, &["NoExecute"]));
            if pod.is_deleted() {
                missing.remove(node); // the pod is replaced once it is gone
            } else if pod.is_finished() || !stays {
                missing.remove(node);
                self.delete_pod(&pod, None).await?;
            } else {
                missing.remove(node);
            }
        }
        for node in &missing {
            self.create_pod(WorkloadKind::DaemonSet, &set, None, |pod| {
                pod["spec"]["affinity"] = pinned(node);
                let mut all = pod["spec"]["tolerations"].as_array().cloned().unwrap_or_default();
                all.extend(daemon_tolerations());
                pod["spec"]["tolerations"] = json!(all);
            })
            .await?;
        }
        let pods = self.pods_of(&set);
        let ready = pods.iter().filter(|pod| pod.is_ready()).count();
        let status = json!({
            "observedGeneration": set.metadata.generation.unwrap_or(0),
            "desiredNumberScheduled": desired, "currentNumberScheduled": pods.len(),
            "updatedNumberScheduled": pods.len(), "numberReady": ready, "numberAvailable": ready,
            "numberUnavailable": desired.saturating_sub(ready),
        });
        self.write_status(WorkloadKind::DaemonSet, &set, status).await
    }
}

fn tolerations(set: &Workload) -> Vec<Toleration> {
    let own = set.spec.template["spec"]["tolerations"].as_array().cloned().unwrap_or_default();
    // Invalid tolerations are left out, because they tolerate nothing.
    own.into_iter().chain(daemon_tolerations()).filter_map(|t| serde_json::from_value(t).ok()).collect()
}

fn tolerated(node: &Node, tolerations: &[Toleration], effects: &[&str]) -> bool {
    let mut taints = node.spec.taints.iter().filter(|taint| effects.contains(&taint.effect.as_str()));
    taints.all(|taint| tolerations.iter().any(|toleration| toleration.tolerates(taint)))
}
