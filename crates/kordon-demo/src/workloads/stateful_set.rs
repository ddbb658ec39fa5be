//! StatefulSets: a pod is recreated under the same name once the old object is gone
//! (docs/upstream/placement-and-pressure.md#5.4).

use std::sync::Arc;

use serde::de::IgnoredAny;
use serde_json::json;

use super::Workloads;
use crate::{
    objects::{Key, Object, Pod, Workload, WorkloadKind},
    writer::{WriteError, path},
};

impl Workloads {
    pub(super) async fn sync_stateful_set(&mut self, key: &Key) -> Result<(), WriteError> {
        let Some(set) = self.workload(WorkloadKind::StatefulSet, key) else { return Ok(()) };
        let wanted = set.spec.replicas.unwrap_or(1);
        self.ensure_ordinals(&set, wanted).await?;
        self.delete_surplus(&set, wanted).await?;
        let pods = self.pods_of(&set);
        let ready = pods.iter().filter(|pod| pod.is_ready() && !pod.is_deleted()).count();
        let status = json!({
            "observedGeneration": set.metadata.generation.unwrap_or(0),
            "replicas": pods.len(), "currentReplicas": pods.len(), "updatedReplicas": pods.len(),
            "readyReplicas": ready, "availableReplicas": ready,
        });
        self.write_status(WorkloadKind::StatefulSet, &set, status).await
    }

    /// Creates the missing pods in the order of their ordinals. With OrderedReady, a pod that is missing or not ready
    /// blocks the pods after it.
    async fn ensure_ordinals(&mut self, set: &Workload, wanted: usize) -> Result<(), WriteError> {
        let ordered = set.spec.pod_management_policy != "Parallel";
        let owner = Key::from_object(set);
        for ordinal in 0..wanted {
            let name = format!("{}-{ordinal}", owner.name);
            let key = Key { namespace: owner.namespace.clone(), name };
            match self.pods.object(&key).cloned() {
                None => self.create_ordinal(set, ordinal, key.name).await?,
                Some(pod) if pod.is_finished() && !pod.is_deleted() => self.delete_pod(&pod, None).await?,
                Some(pod) if pod.is_ready() && !pod.is_deleted() => continue,
                Some(_) => {}
            }
            if ordered {
                return Ok(());
            }
        }
        Ok(())
    }

    async fn create_ordinal(
        &mut self,
        set: &Workload,
        ordinal: usize,
        name: String,
    ) -> Result<(), WriteError> {
        let claims = set.spec.template["spec"]["volumes"].is_array();
        for template in &set.spec.volume_claim_templates {
            let mut claim = template.clone();
            let volume = template["metadata"]["name"].as_str().unwrap_or_default();
            claim["metadata"]["name"] = json!(format!("{volume}-{name}"));
            let made = self.writer.create(&path::claims(&Key::from_object(set).namespace), &claim).await;
            match made.map(|IgnoredAny| ()) {
                // A conflict means that the claim already exists. The pod then uses this claim again.
                Ok(()) | Err(WriteError::Conflict(_)) => {}
                Err(error) => return Err(error),
            }
        }
        self.create_pod(WorkloadKind::StatefulSet, set, Some(name.clone()), |pod| {
            pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] = json!(ordinal.to_string());
            pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] = json!(name);
            if let (true, Some(volumes)) = (claims, pod["spec"]["volumes"].as_array_mut()) {
                let claim = json!({"claimName": format!("data-{name}")});
                volumes.push(json!({"name": "data", "persistentVolumeClaim": claim}));
            }
        })
        .await
    }

    async fn delete_surplus(&mut self, set: &Workload, wanted: usize) -> Result<(), WriteError> {
        let surplus = |pod: &Arc<Pod>| {
            let name = pod.metadata.name.as_deref().unwrap_or_default();
            let ordinal: Option<usize> = name.rsplit('-').next().and_then(|number| number.parse().ok());
            ordinal.filter(|ordinal| *ordinal >= wanted)
        };
        let highest =
            self.pods_of(set).into_iter().filter(|pod| surplus(pod).is_some()).max_by_key(|pod| surplus(pod));
        match highest {
            Some(pod) if !pod.is_deleted() => self.delete_pod(&pod, None).await,
            _ => Ok(()),
        }
    }
}
