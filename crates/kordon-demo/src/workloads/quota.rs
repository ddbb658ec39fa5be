//! The quota controller: counts what the pods of a namespace use of its ResourceQuotas.

use std::sync::Arc;

use serde_json::json;

use super::{WorkItem, Workloads};
use crate::{
    feed::ObjectChange,
    objects::{Key, Pod, QuotaObject},
    quota,
    writer::{WriteError, path},
};
use kordon_time::Span;

/// Interval at which quotas are counted again even without a change.
const RESYNC: Span = Span::from_secs(300);

impl Workloads {
    /// Queues the quotas of a namespace if a pod of the namespace is gone or has finished, because this frees
    /// resources.
    pub(super) fn on_pod_counted(&mut self, change: &ObjectChange<Pod>) {
        let is_free = |pod: &Option<Arc<Pod>>| pod.as_ref().is_none_or(|pod| pod.is_finished());
        if is_free(&change.after) && !is_free(&change.before) {
            let namespace = change.key().namespace;
            let quotas = self.quotas.within(&namespace).map(|(key, _)| WorkItem::Quota(key.clone()));
            self.queue.extend(quotas);
        }
    }

    pub(super) async fn sync_quota(&mut self, key: &Key) -> Result<(), WriteError> {
        let Some(found) = self.quotas.object(key).cloned() else { return Ok(()) };
        let now = self.clock.now();
        let pods: Vec<&Pod> = self.pods.within(&key.namespace).map(|(_, pod)| &**pod).collect();
        let used = quota::used(&found.spec, &pods, now);
        let status = json!({"hard": found.spec["hard"], "used": used});
        if status == found.status {
            return Ok(());
        }
        // Admission may have added pods to the quota since it was read. Because of the precondition on the revision,
        // this patch cannot overwrite a newer status.
        let revision = found.metadata.resource_version.clone();
        let patch = json!({"metadata": {"resourceVersion": revision}, "status": status});
        let written: QuotaObject = self.patch(&format!("{}/status", path::quota(key)), &patch).await?;
        self.quotas.record(Arc::new(written));
        Ok(())
    }

    /// Queues all quotas, because a terminating pod stops counting at some time without any change of the pod.
    pub(super) fn resync_quotas(&mut self) {
        let quotas = self.quotas.all().map(|(key, _)| WorkItem::Quota(key.clone()));
        self.queue.extend(quotas);
        self.delayed.insert((self.clock.now() + RESYNC, WorkItem::QuotaResync));
    }

    /// Returns the backoff of an item of the work queue whose write a quota has refused. The backoff is 5 ms at first,
    /// doubles with each refusal, and is at most 1000 seconds.
    pub(super) fn after_refusal(&mut self, item: &WorkItem) -> Span {
        let refusals = self.refusals.entry(item.clone()).or_insert(0);
        *refusals += 1;
        Span::from_millis(5_i64 << (*refusals - 1).min(17)).min(Span::from_secs(1000))
    }
}
