//! Pod garbage collection (docs/upstream/neighbours.md#1).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::json;

use super::{WorkItem, Workloads};
use crate::{
    objects::{Key, Node, Object, Pod},
    writer::{Patch, WriteError, path},
};
use kordon_time::{Span, Timestamp};

/// State of pod garbage collection between passes.
#[derive(Debug, Default)]
pub struct PodGc {
    /// Missing nodes to which pods are still bound, each with the time at which a pass first found it missing.
    missing: BTreeMap<String, Timestamp>,
}

const INTERVAL: Span = Span::from_secs(20);
const QUARANTINE: Span = Span::from_secs(40);
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

impl Workloads {
    pub(super) async fn collect_pods(&mut self) -> Result<(), WriteError> {
        let now = self.clock.now();
        self.delayed.insert((now + INTERVAL, WorkItem::PodGc));
        let mut removed = Vec::new();
        let mut missing = BTreeSet::new();
        for (_, pod) in self.pods.all() {
            let name = &pod.spec.node_name;
            let node = self.nodes.object(&Key { namespace: String::new(), name: name.clone() });
            if name.is_empty() {
                if pod.is_deleted() {
                    removed.push((pod.clone(), FinalStatus::Unchanged));
                }
            } else if let Some(node) = node {
                if pod.is_deleted() && is_out_of_service(node) {
                    removed.push((pod.clone(), FinalStatus::Failed));
                }
            } else {
                missing.insert(name.clone());
                let since = self.pod_gc.missing.get(name);
                if since.is_some_and(|since| now.since(*since) >= QUARANTINE) {
                    removed.push((pod.clone(), FinalStatus::Orphaned));
                }
            }
        }
        self.pod_gc.missing.retain(|name, _| missing.contains(name));
        for name in missing {
            self.pod_gc.missing.entry(name).or_insert(now);
        }
        for (pod, status) in removed {
            self.remove(&pod, status).await?;
        }
        Ok(())
    }

    async fn remove(&mut self, pod: &Arc<Pod>, status: FinalStatus) -> Result<(), WriteError> {
        if status != FinalStatus::Unchanged && !pod.is_finished() {
            let target = (status == FinalStatus::Orphaned).then(|| {
                json!({"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC",
                    "message": "PodGC: node no longer exists", "lastTransitionTime": self.clock.now().to_time()})
            });
            let status = json!({"phase": "Failed", "conditions": Vec::from_iter(target)});
            let patch = json!({"metadata": {"uid": pod.uid()}, "status": status});
            let path = format!("{}/status", path::pod(&Key::from_object(&**pod)));
            match self.writer.patch::<Pod>(&path, Patch::Strategic, &patch).await {
                Ok(_) | Err(WriteError::NotFound | WriteError::Conflict(_)) => {}
                Err(error) => return Err(error),
            }
        }
        self.delete_pod(pod, Some(0)).await
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FinalStatus {
    Unchanged,
    /// The pod gets the phase Failed but no condition DisruptionTarget, because it was already deleted for another
    /// reason.
    Failed,
    /// The pod gets the phase Failed and the condition DisruptionTarget.
    Orphaned,
}

fn is_out_of_service(node: &Node) -> bool {
    !node.is_ready() && node.spec.taints.iter().any(|taint| taint.key == OUT_OF_SERVICE)
}
