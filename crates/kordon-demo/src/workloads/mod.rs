//! The workload controllers of the embedded cluster, in one task.

mod budget;
mod daemon_set;
mod deployment;
mod job;
mod pod_gc;
mod quota;
mod replica_set;
mod stateful_set;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
    sync::Arc,
};

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::pod_gc::PodGc;
use super::{
    errors::ErrorReporter,
    feed::{FeedChange, KnownObjects, ObjectChange},
    objects::{Budget, Key, Node, Object, Pod, QuotaObject, Workload, WorkloadKind, selects},
    random::{RandomSource, suffix},
    writer::{Patch, WriteError, Writer, path},
};
use kordon_clock::Clock;
use kordon_time::{Span, Timestamp};

/// The workload controllers, the disruption controller, the quota controller and the pod garbage collector.
///
/// They share one view of the cluster. As in upstream's controllers, changed objects are queued by name and then
/// synced. The view has the controllers' own writes immediately, so that nothing is created twice.
pub struct Workloads {
    clock: Clock,
    writer: Writer,
    random: RandomSource,
    errors: ErrorReporter,
    nodes: KnownObjects<Node>,
    pods: KnownObjects<Pod>,
    workloads: BTreeMap<WorkloadKind, KnownObjects<Workload>>,
    budgets: KnownObjects<Budget>,
    quotas: KnownObjects<QuotaObject>,
    /// For each item of the work queue, the number of consecutive times that a quota has refused its writes.
    refusals: BTreeMap<WorkItem, u32>,
    /// Pods by the uid of their controller.
    owned: BTreeMap<String, BTreeSet<Key>>,
    /// The pods of each budget, and the budgets of each pod.
    budgeted: BudgetedPods,
    /// Kinds that are not listed yet. Nothing is synced until this set is empty.
    unlisted: BTreeSet<&'static str>,
    queue: BTreeSet<WorkItem>,
    delayed: BTreeSet<(Timestamp, WorkItem)>,
    pod_gc: PodGc,
    /// Number of pods created so far for each owner. The number makes the names of pods unique.
    created_pods: BTreeMap<String, u64>,
}

/// A message to the controllers.
#[derive(Debug)]
pub enum WorkloadMessage {
    Nodes(FeedChange<Node>),
    Pods(FeedChange<Pod>),
    Workloads(WorkloadKind, FeedChange<Workload>),
    Budgets(FeedChange<Budget>),
    Quotas(FeedChange<QuotaObject>),
}

/// An item of the controllers' work queue: an object to sync, or a pass over many objects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum WorkItem {
    Workload(WorkloadKind, Key),
    Budget(Key),
    /// Removes the finalizers of a pod, in place of the controller that set them.
    Finalizer(Key),
    PodGc,
    Quota(Key),
    QuotaResync,
}

/// The pods that each budget selects, and the budgets that select each pod.
#[derive(Debug, Default)]
struct BudgetedPods {
    pods: BTreeMap<Key, BTreeSet<Key>>,
    budgets: BTreeMap<Key, BTreeSet<Key>>,
}

/// Delay before a failed item of the work queue is retried.
const RETRY: Span = Span::from_secs(1);
/// Time after which the finalizers of a terminating pod are removed.
const FINALIZER_DELAY: Span = Span::from_secs(20);

impl Workloads {
    pub fn new(clock: Clock, writer: Writer, random: RandomSource, errors: ErrorReporter) -> Self {
        let mut unlisted: BTreeSet<&'static str> = WorkloadKind::ALL.iter().map(|kind| kind.name()).collect();
        unlisted.extend(["Node", "Pod", "Budget", "Quota"]);
        Self {
            delayed: [(clock.now(), WorkItem::PodGc), (clock.now(), WorkItem::QuotaResync)].into(),
            clock,
            writer,
            random,
            errors,
            nodes: KnownObjects::new(),
            pods: KnownObjects::new(),
            workloads: WorkloadKind::ALL.iter().map(|kind| (*kind, KnownObjects::new())).collect(),
            budgets: KnownObjects::new(),
            quotas: KnownObjects::new(),
            refusals: BTreeMap::new(),
            owned: BTreeMap::new(),
            budgeted: BudgetedPods::default(),
            unlisted,
            queue: BTreeSet::new(),
            pod_gc: PodGc::default(),
            created_pods: BTreeMap::new(),
        }
    }

    pub async fn run(mut self, mut inbox: mpsc::Receiver<WorkloadMessage>, cancel: CancellationToken) {
        loop {
            // All waiting messages are applied before anything is synced.
            while let Ok(message) = inbox.try_recv() {
                self.on_message(message);
            }
            self.queue_due_items();
            if self.unlisted.is_empty()
                && let Some(item) = self.queue.pop_first()
            {
                tokio::select! {
                    () = cancel.cancelled() => return,
                    () = self.sync(item) => {}
                }
                continue;
            }
            let next = self.delayed.first().map_or(Timestamp::MAX, |(at, _)| *at);
            let idle = !self.unlisted.is_empty();
            tokio::select! {
                () = cancel.cancelled() => return,
                message = inbox.recv() => match message {
                    None => return,
                    Some(message) => self.on_message(message),
                },
                () = self.clock.sleep_until(next), if !idle => {}
            }
        }
    }

    fn on_message(&mut self, message: WorkloadMessage) {
        match message {
            WorkloadMessage::Nodes(change) => {
                self.listed("Node", &change);
                for change in self.nodes.apply(change) {
                    self.on_node(&change);
                }
            }
            WorkloadMessage::Pods(change) => {
                self.listed("Pod", &change);
                for change in self.pods.apply(change) {
                    self.on_pod(&change);
                }
            }
            WorkloadMessage::Workloads(kind, change) => {
                self.listed(kind.name(), &change);
                let known = self.workloads.get_mut(&kind).expect("made for every kind");
                for change in known.apply(change) {
                    self.on_workload(kind, &change);
                }
            }
            WorkloadMessage::Budgets(change) => {
                self.listed("Budget", &change);
                for change in self.budgets.apply(change) {
                    self.on_budget(&change);
                }
            }
            WorkloadMessage::Quotas(change) => {
                self.listed("Quota", &change);
                for change in self.quotas.apply(change) {
                    self.queue.insert(WorkItem::Quota(change.key()));
                }
            }
        }
    }

    fn listed<K>(&mut self, what: &'static str, change: &FeedChange<K>) {
        if matches!(change, FeedChange::Listed(_)) {
            self.unlisted.remove(what);
        }
    }

    fn queue_due_items(&mut self) {
        let now = self.clock.now();
        while let Some((at, _)) = self.delayed.first()
            && *at <= now
        {
            self.queue.extend(self.delayed.pop_first().map(|(_, item)| item));
        }
    }

    fn on_node(&mut self, change: &ObjectChange<Node>) {
        let placing = |node: &Option<Arc<Node>>| {
            node.as_ref().map(|node| (node.spec.taints.clone(), node.metadata.labels.clone()))
        };
        if placing(&change.before) != placing(&change.after) {
            let all = self.workloads[&WorkloadKind::DaemonSet].all();
            let items: Vec<WorkItem> =
                all.map(|(key, _)| WorkItem::Workload(WorkloadKind::DaemonSet, key.clone())).collect();
            self.queue.extend(items);
        }
    }

    fn on_pod(&mut self, change: &ObjectChange<Pod>) {
        let key = change.key();
        for (pod, present) in [(&change.before, false), (&change.after, true)] {
            let Some(pod) = pod else { continue };
            if let Some(owner) = pod.controller() {
                let owned = self.owned.entry(owner.uid.clone()).or_default();
                if present {
                    owned.insert(key.clone())
                } else {
                    owned.remove(&key)
                };
                if let Some(kind) = WorkloadKind::named(&owner.kind) {
                    let owner = Key { namespace: key.namespace.clone(), name: owner.name.clone() };
                    self.queue.insert(WorkItem::Workload(kind, owner));
                }
            }
        }
        self.on_pod_counted(change);
        let budgets = match &change.after {
            None => BTreeSet::new(),
            Some(pod) => budget::of_pod(&self.budgets, pod),
        };
        let touched = self.budgeted.set_budgets(&key, budgets);
        self.queue.extend(touched.into_iter().map(WorkItem::Budget));
        if let Some(pod) = &change.after
            && pod.is_deleted()
            && pod.metadata.deletion_grace_period_seconds == Some(0)
            && pod.metadata.finalizers.as_ref().is_some_and(|all| !all.is_empty())
        {
            self.delayed.insert((self.clock.now() + FINALIZER_DELAY, WorkItem::Finalizer(key)));
        }
    }

    fn on_workload(&mut self, kind: WorkloadKind, change: &ObjectChange<Workload>) {
        let key = change.key();
        // The numbers of a budget depend on the desired replicas of the workloads that own its pods.
        let wanted = |workload: &Option<Arc<Workload>>| workload.as_ref().map(|w| w.spec.replicas);
        if wanted(&change.before) != wanted(&change.after) {
            let budgets = self.budgets.within(&key.namespace);
            let items: Vec<WorkItem> = budgets.map(|(budget, _)| WorkItem::Budget(budget.clone())).collect();
            self.queue.extend(items);
        }
        if kind == WorkloadKind::ReplicaSet
            && let Some(owner) =
                change.after.as_ref().or(change.before.as_ref()).and_then(|set| set.controller())
        {
            let owner = Key { namespace: key.namespace.clone(), name: owner.name.clone() };
            self.queue.insert(WorkItem::Workload(WorkloadKind::Deployment, owner));
        }
        self.queue.insert(WorkItem::Workload(kind, key));
    }

    fn on_budget(&mut self, change: &ObjectChange<Budget>) {
        let key = change.key();
        let chosen: BTreeSet<Key> = match &change.after {
            None => BTreeSet::new(),
            Some(budget) => self
                .pods
                .within(&key.namespace)
                .filter(|(_, pod)| selects(budget.spec.selector.as_ref(), pod.metadata.labels.as_ref()))
                .map(|(pod, _)| pod.clone())
                .collect(),
        };
        self.budgeted.set_pods(&key, chosen);
        self.queue.insert(WorkItem::Budget(key));
    }

    async fn sync(&mut self, item: WorkItem) {
        let result = match &item {
            WorkItem::Workload(WorkloadKind::Deployment, key) => self.sync_deployment(key).await,
            WorkItem::Workload(WorkloadKind::ReplicaSet, key) => self.sync_replica_set(key).await,
            WorkItem::Workload(WorkloadKind::StatefulSet, key) => self.sync_stateful_set(key).await,
            WorkItem::Workload(WorkloadKind::DaemonSet, key) => self.sync_daemon_set(key).await,
            WorkItem::Workload(WorkloadKind::Job, key) => self.sync_job(key).await,
            WorkItem::Budget(key) => self.sync_budget(key).await,
            WorkItem::Finalizer(key) => self.remove_finalizers(key).await,
            WorkItem::PodGc => self.collect_pods().await,
            WorkItem::Quota(key) => self.sync_quota(key).await,
            WorkItem::QuotaResync => {
                self.resync_quotas();
                Ok(())
            }
        };
        match result {
            Ok(()) => {
                self.refusals.remove(&item);
            }
            // The write would exceed a quota, so the sync is retried with a backoff.
            Err(WriteError::Forbidden(_)) => {
                let pause = self.after_refusal(&item);
                self.delayed.insert((self.clock.now() + pause, item));
            }
            // The object is gone, or another client has changed it. The sync is retried later.
            Err(WriteError::NotFound | WriteError::Conflict(_)) => {
                self.delayed.insert((self.clock.now() + RETRY, item));
            }
            Err(error) => {
                self.errors.report(format!("controller of {item:?}"), &error);
                self.delayed.insert((self.clock.now() + RETRY, item));
            }
        }
    }

    fn workload(&self, kind: WorkloadKind, key: &Key) -> Option<Arc<Workload>> {
        self.workloads[&kind].object(key).filter(|workload| !workload.is_deleted()).cloned()
    }

    /// The pods that `owner` controls, sorted by name.
    fn pods_of(&self, owner: &Workload) -> Vec<Arc<Pod>> {
        let keys = self.owned.get(owner.uid()).into_iter().flatten();
        keys.filter_map(|key| self.pods.object(key)).cloned().collect()
    }

    /// Creates a pod from the owner's template. The pod gets the given name or, without one, a generated name.
    async fn create_pod(
        &mut self,
        kind: WorkloadKind,
        owner: &Workload,
        name: Option<String>,
        adapt: impl FnOnce(&mut Value),
    ) -> Result<(), WriteError> {
        let Key { namespace, name: owner_name } = Key::from_object(owner);
        let name = name.unwrap_or_else(|| self.fresh_name(&namespace, &owner_name));
        let template = &owner.spec.template;
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": template["metadata"], "spec": template["spec"],
        });
        pod["metadata"]["name"] = json!(name);
        pod["metadata"]["namespace"] = json!(namespace);
        pod["metadata"]["generateName"] = json!(format!("{owner_name}-"));
        pod["metadata"]["ownerReferences"] = json!([{
            "apiVersion": format!("{}/v1", kind.group()), "kind": kind.name(), "name": owner_name,
            "uid": owner.uid(), "controller": true, "blockOwnerDeletion": true,
        }]);
        adapt(&mut pod);
        let made: Pod = self.writer.create(&path::pods(&namespace), &pod).await?;
        if let Some(change) = self.pods.record(Arc::new(made)) {
            self.on_pod(&change);
        }
        Ok(())
    }

    fn fresh_name(&mut self, namespace: &str, owner: &str) -> String {
        loop {
            let number = self.created_pods.entry(format!("{namespace}/{owner}")).or_insert(0);
            *number += 1;
            let mut rng = self.random.rng(&["made", namespace, owner, &number.to_string()]);
            let key =
                Key { namespace: namespace.to_owned(), name: format!("{owner}-{}", suffix(&mut rng, 5)) };
            if self.pods.object(&key).is_none() {
                return key.name;
            }
        }
    }

    async fn delete_pod(&mut self, pod: &Pod, grace_seconds: Option<i64>) -> Result<(), WriteError> {
        match self.writer.delete(&path::pod(&Key::from_object(pod)), pod.uid(), grace_seconds).await {
            Ok(()) | Err(WriteError::NotFound | WriteError::Conflict(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Writes those fields of a workload's status that have changed.
    async fn write_status(
        &mut self,
        kind: WorkloadKind,
        workload: &Workload,
        wanted: Value,
    ) -> Result<(), WriteError> {
        let Some(patch) = difference(&workload.status, wanted) else { return Ok(()) };
        let path = format!("{}/status", path::workload(kind, &Key::from_object(workload)));
        let written: Workload = self.patch(&path, &json!({ "status": patch })).await?;
        let known = self.workloads.get_mut(&kind).expect("made for every kind");
        if let Some(change) = known.record(Arc::new(written)) {
            self.on_workload_written(kind, &change);
        }
        Ok(())
    }

    /// Syncs everything that depends on a workload after this process has written the workload's status. The workload
    /// itself is not synced again.
    fn on_workload_written(&mut self, kind: WorkloadKind, change: &ObjectChange<Workload>) {
        let own = WorkItem::Workload(kind, change.key());
        let queued = self.queue.contains(&own);
        self.on_workload(kind, change);
        if !queued {
            self.queue.remove(&own);
        }
    }

    async fn patch<T: DeserializeOwned + Debug>(&self, path: &str, patch: &Value) -> Result<T, WriteError> {
        self.writer.patch(path, Patch::Merge, patch).await
    }

    async fn remove_finalizers(&mut self, key: &Key) -> Result<(), WriteError> {
        let Some(pod) = self.pods.object(key).filter(|pod| pod.is_deleted()).cloned() else { return Ok(()) };
        let patch = json!({"metadata": {"uid": pod.uid(), "finalizers": null}});
        let _gone: serde::de::IgnoredAny = self.writer.patch(&path::pod(key), Patch::Merge, &patch).await?;
        Ok(())
    }
}

impl BudgetedPods {
    /// Sets the budgets that select a pod. Returns the budgets whose numbers may change because of this.
    fn set_budgets(&mut self, pod: &Key, budgets: BTreeSet<Key>) -> BTreeSet<Key> {
        let before = self.budgets.remove(pod).unwrap_or_default();
        for budget in before.difference(&budgets) {
            if let Some(pods) = self.pods.get_mut(budget) {
                pods.remove(pod);
            }
        }
        for budget in &budgets {
            self.pods.entry(budget.clone()).or_default().insert(pod.clone());
        }
        let touched = before.union(&budgets).cloned().collect();
        if !budgets.is_empty() {
            self.budgets.insert(pod.clone(), budgets);
        }
        touched
    }

    /// Sets the pods that a budget selects.
    fn set_pods(&mut self, budget: &Key, pods: BTreeSet<Key>) {
        for pod in self.pods.remove(budget).unwrap_or_default() {
            if let Some(budgets) = self.budgets.get_mut(&pod) {
                budgets.remove(budget);
            }
        }
        for pod in &pods {
            self.budgets.entry(pod.clone()).or_default().insert(budget.clone());
        }
        self.pods.insert(budget.clone(), pods);
    }
}

/// Returns the fields of `wanted` that differ from the fields of `is`; None if no field differs.
fn difference(is: &Value, wanted: Value) -> Option<Value> {
    let Value::Object(wanted) = wanted else { return None };
    let differing = wanted.into_iter().filter(|(field, value)| {
        let is = is.get(field).unwrap_or(&Value::Null);
        // An absent field counts as the number 0.
        is != value && !(is.is_null() && (*value == json!(0) || value.is_null()))
    });
    let differing: serde_json::Map<String, Value> = differing.collect();
    (!differing.is_empty()).then_some(Value::Object(differing))
}
