//! Deployments: one ReplicaSet for the current template, and rolling updates to it.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Workloads;
use crate::{
    objects::{Key, Object, Workload, WorkloadKind},
    random::template_hash,
    writer::{WriteError, path},
};

impl Workloads {
    pub(super) async fn sync_deployment(&mut self, key: &Key) -> Result<(), WriteError> {
        let Some(deployment) = self.workload(WorkloadKind::Deployment, key) else { return Ok(()) };
        let wanted = deployment.spec.replicas.unwrap_or(1);
        let sets = self.replica_sets_of(&deployment);
        let current = sets.iter().find(|set| without_hash(&set.spec.template) == *deployment.spec.template);
        match current {
            None => self.create_replica_set(&deployment, if sets.is_empty() { wanted } else { 0 }).await?,
            Some(current) => self.roll(current, &sets, wanted).await?,
        }
        let sets = self.replica_sets_of(&deployment);
        let current = sets.iter().find(|set| without_hash(&set.spec.template) == *deployment.spec.template);
        let sum = |field: &str| sets.iter().map(|set| count(set, field)).sum::<u64>();
        let available = sum("availableReplicas");
        let status = json!({
            "observedGeneration": deployment.metadata.generation.unwrap_or(0),
            "replicas": sum("replicas"),
            "updatedReplicas": current.map_or(0, |set| count(set, "replicas")),
            "readyReplicas": sum("readyReplicas"),
            "availableReplicas": available,
            "unavailableReplicas": (wanted as u64).saturating_sub(available),
        });
        self.write_status(WorkloadKind::Deployment, &deployment, status).await
    }

    fn replica_sets_of(&self, deployment: &Workload) -> Vec<Arc<Workload>> {
        let namespace = deployment.metadata.namespace.as_deref().unwrap_or_default();
        let of_it = |set: &&Arc<Workload>| {
            set.controller().is_some_and(|owner| owner.uid == deployment.uid()) && !set.is_deleted()
        };
        self.workloads[&WorkloadKind::ReplicaSet]
            .within(namespace)
            .map(|(_, set)| set)
            .filter(of_it)
            .cloned()
            .collect()
    }

    async fn create_replica_set(&mut self, deployment: &Workload, replicas: usize) -> Result<(), WriteError> {
        let Key { namespace, name } = Key::from_object(deployment);
        let hash = template_hash(&deployment.spec.template);
        let mut template = (*deployment.spec.template).clone();
        template["metadata"]["labels"]["pod-template-hash"] = json!(hash);
        let labels = template["metadata"]["labels"].clone();
        let set = json!({
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": format!("{name}-{hash}"), "namespace": namespace, "labels": labels,
                "ownerReferences": [{
                    "apiVersion": "apps/v1", "kind": "Deployment", "name": name, "uid": deployment.uid(),
                    "controller": true, "blockOwnerDeletion": true,
                }],
            },
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
        });
        let made: Workload =
            self.writer.create(&path::workloads(WorkloadKind::ReplicaSet, &namespace), &set).await?;
        self.record_replica_set(made);
        Ok(())
    }

    /// Makes one step of a rolling update, in which maxSurge and maxUnavailable are 25%.
    async fn roll(
        &mut self,
        current: &Workload,
        sets: &[Arc<Workload>],
        wanted: usize,
    ) -> Result<(), WriteError> {
        let (surge, unavailable) = (wanted.div_ceil(4), wanted / 4);
        let replicas = |set: &Workload| set.spec.replicas.unwrap_or(0);
        let total: usize = sets.iter().map(|set| replicas(set)).sum();
        let room = (wanted + surge).saturating_sub(total);
        let next = if replicas(current) > wanted { wanted } else { wanted.min(replicas(current) + room) };
        self.scale(current, next).await?;
        let available: u64 = sets.iter().map(|set| count(set, "availableReplicas")).sum();
        let mut spare = (available as usize).saturating_sub(wanted - unavailable.min(wanted));
        for old in sets.iter().filter(|set| set.uid() != current.uid() && replicas(set) > 0) {
            let unready = replicas(old).saturating_sub(count(old, "availableReplicas") as usize);
            let less = replicas(old).min(spare + unready);
            spare -= (less - unready.min(less)).min(spare);
            self.scale(old, replicas(old) - less).await?;
        }
        Ok(())
    }

    async fn scale(&mut self, set: &Workload, replicas: usize) -> Result<(), WriteError> {
        if set.spec.replicas == Some(replicas) {
            return Ok(());
        }
        let path = path::workload(WorkloadKind::ReplicaSet, &Key::from_object(set));
        let scaled: Workload = self.patch(&path, &json!({"spec": {"replicas": replicas}})).await?;
        self.record_replica_set(scaled);
        Ok(())
    }

    fn record_replica_set(&mut self, set: Workload) {
        let known = self.workloads.get_mut(&WorkloadKind::ReplicaSet).expect("made for every kind");
        if let Some(change) = known.record(Arc::new(set)) {
            self.on_workload(WorkloadKind::ReplicaSet, &change);
        }
    }
}

fn count(set: &Workload, field: &str) -> u64 {
    set.status[field].as_u64().unwrap_or(0)
}

/// Returns the template of a ReplicaSet as its Deployment has it: without the label `pod-template-hash`.
fn without_hash(template: &Value) -> Value {
    let mut template = template.clone();
    if let Some(labels) = template["metadata"]["labels"].as_object_mut() {
        labels.remove("pod-template-hash");
    }
    template
}
