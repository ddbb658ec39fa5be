//! The workload controllers of the embedded cluster, in one task: who owns pods keeps them at their number.

mod budget;
mod daemon_set;
mod deployment;
mod job;
mod pod_gc;
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
    chance::{Chance, suffix},
    feed::{FeedChange, KnownObjects, Turn},
    objects::{Budget, Key, Node, Object, Pod, Workload, WorkloadKind, selects},
    troubles::Troubles,
    writer::{Patch, Refused, Writer, path},
};
use crate::{
    clock::Clock,
    time::{Span, Timestamp},
};

/// All workload controllers, the disruption controller and the pod garbage collector.
///
/// They share one picture of the cluster. What changed is queued by name and then looked at as a whole, as upstream's
/// controllers do; own writes enter the picture at once, so that nothing is made twice.
pub struct Workloads {
    clock: Clock,
    writer: Writer,
    chance: Chance,
    troubles: Troubles,
    nodes: KnownObjects<Node>,
    pods: KnownObjects<Pod>,
    workloads: BTreeMap<WorkloadKind, KnownObjects<Workload>>,
    budgets: KnownObjects<Budget>,
    /// Pods by the uid of their controller.
    owned: BTreeMap<String, BTreeSet<Key>>,
    /// Pods of each budget, and budgets of each pod.
    budgeted: Pairs,
    /// What has not been listed yet: nothing is decided before all is known.
    unlisted: BTreeSet<&'static str>,
    queue: BTreeSet<Target>,
    later: BTreeSet<(Timestamp, Target)>,
    pod_gc: PodGc,
    /// Pods made so far, by owner; gives each its own name.
    made: BTreeMap<String, u64>,
}

/// What the controllers hear.
#[derive(Debug)]
pub enum WorkloadMessage {
    Nodes(FeedChange<Node>),
    Pods(FeedChange<Pod>),
    Workloads(WorkloadKind, FeedChange<Workload>),
    Budgets(FeedChange<Budget>),
}

/// One thing to be looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    Workload(WorkloadKind, Key),
    Budget(Key),
    /// The pods' finalizers that somebody has to take off.
    Finalizer(Key),
    PodGc,
}

/// Budgets and the pods they choose.
#[derive(Debug, Default)]
struct Pairs {
    pods: BTreeMap<Key, BTreeSet<Key>>,
    budgets: BTreeMap<Key, BTreeSet<Key>>,
}

/// How soon a thing that failed is looked at again.
const RETRY: Span = Span::from_secs(1);
/// How long the owner of a pod's finalizer needs.
const FINALIZER_HELD: Span = Span::from_secs(20);

impl Workloads {
    pub fn new(clock: Clock, writer: Writer, chance: Chance, troubles: Troubles) -> Self {
        let mut unlisted: BTreeSet<&'static str> = WorkloadKind::ALL.iter().map(|kind| kind.name()).collect();
        unlisted.extend(["Node", "Pod", "Budget"]);
        Self {
            later: [(clock.now(), Target::PodGc)].into(),
            clock,
            writer,
            chance,
            troubles,
            nodes: KnownObjects::new(),
            pods: KnownObjects::new(),
            workloads: WorkloadKind::ALL.iter().map(|kind| (*kind, KnownObjects::new())).collect(),
            budgets: KnownObjects::new(),
            owned: BTreeMap::new(),
            budgeted: Pairs::default(),
            unlisted,
            queue: BTreeSet::new(),
            pod_gc: PodGc::default(),
            made: BTreeMap::new(),
        }
    }

    pub async fn run(mut self, mut inbox: mpsc::Receiver<WorkloadMessage>, cancel: CancellationToken) {
        loop {
            // Everything that is known already is taken in before anything is decided.
            while let Ok(message) = inbox.try_recv() {
                self.hear(message);
            }
            self.wake();
            if self.unlisted.is_empty()
                && let Some(target) = self.queue.pop_first()
            {
                tokio::select! {
                    () = cancel.cancelled() => return,
                    () = self.look_at(target) => {}
                }
                continue;
            }
            let next = self.later.first().map_or(Timestamp::MAX, |(at, _)| *at);
            let idle = !self.unlisted.is_empty();
            tokio::select! {
                () = cancel.cancelled() => return,
                message = inbox.recv() => match message {
                    None => return,
                    Some(message) => self.hear(message),
                },
                () = self.clock.sleep_until(next), if !idle => {}
            }
        }
    }

    fn hear(&mut self, message: WorkloadMessage) {
        match message {
            WorkloadMessage::Nodes(change) => {
                self.listed("Node", &change);
                for turn in self.nodes.absorb(change) {
                    self.on_node(&turn);
                }
            }
            WorkloadMessage::Pods(change) => {
                self.listed("Pod", &change);
                for turn in self.pods.absorb(change) {
                    self.on_pod(&turn);
                }
            }
            WorkloadMessage::Workloads(kind, change) => {
                self.listed(kind.name(), &change);
                let known = self.workloads.get_mut(&kind).expect("made for every kind");
                for turn in known.absorb(change) {
                    self.on_workload(kind, &turn);
                }
            }
            WorkloadMessage::Budgets(change) => {
                self.listed("Budget", &change);
                for turn in self.budgets.absorb(change) {
                    self.on_budget(&turn);
                }
            }
        }
    }

    fn listed<K>(&mut self, what: &'static str, change: &FeedChange<K>) {
        if matches!(change, FeedChange::Listed(_)) {
            self.unlisted.remove(what);
        }
    }

    fn wake(&mut self) {
        let now = self.clock.now();
        while let Some((at, _)) = self.later.first()
            && *at <= now
        {
            self.queue.extend(self.later.pop_first().map(|(_, target)| target));
        }
    }

    fn on_node(&mut self, turn: &Turn<Node>) {
        let placing = |node: &Option<Arc<Node>>| {
            node.as_ref().map(|node| (node.spec.taints.clone(), node.metadata.labels.clone()))
        };
        if placing(&turn.before) != placing(&turn.after) {
            let all = self.workloads[&WorkloadKind::DaemonSet].all();
            let targets: Vec<Target> =
                all.map(|(key, _)| Target::Workload(WorkloadKind::DaemonSet, key.clone())).collect();
            self.queue.extend(targets);
        }
    }

    fn on_pod(&mut self, turn: &Turn<Pod>) {
        let key = turn.key();
        for (pod, present) in [(&turn.before, false), (&turn.after, true)] {
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
                    self.queue.insert(Target::Workload(kind, owner));
                }
            }
        }
        let budgets = match &turn.after {
            None => BTreeSet::new(),
            Some(pod) => budget::of_pod(&self.budgets, pod),
        };
        let touched = self.budgeted.choose(&key, budgets);
        self.queue.extend(touched.into_iter().map(Target::Budget));
        if let Some(pod) = &turn.after
            && pod.is_deleted()
            && pod.metadata.deletion_grace_period_seconds == Some(0)
            && pod.metadata.finalizers.as_ref().is_some_and(|all| !all.is_empty())
        {
            self.later.insert((self.clock.now() + FINALIZER_HELD, Target::Finalizer(key)));
        }
    }

    fn on_workload(&mut self, kind: WorkloadKind, turn: &Turn<Workload>) {
        let key = turn.key();
        // A budget counts the replicas that the owners of its pods want.
        let wanted = |workload: &Option<Arc<Workload>>| workload.as_ref().map(|w| w.spec.replicas);
        if wanted(&turn.before) != wanted(&turn.after) {
            let budgets = self.budgets.within(&key.namespace);
            let targets: Vec<Target> = budgets.map(|(budget, _)| Target::Budget(budget.clone())).collect();
            self.queue.extend(targets);
        }
        if kind == WorkloadKind::ReplicaSet
            && let Some(owner) = turn.after.as_ref().or(turn.before.as_ref()).and_then(|set| set.controller())
        {
            let owner = Key { namespace: key.namespace.clone(), name: owner.name.clone() };
            self.queue.insert(Target::Workload(WorkloadKind::Deployment, owner));
        }
        self.queue.insert(Target::Workload(kind, key));
    }

    fn on_budget(&mut self, turn: &Turn<Budget>) {
        let key = turn.key();
        let chosen: BTreeSet<Key> = match &turn.after {
            None => BTreeSet::new(),
            Some(budget) => self
                .pods
                .within(&key.namespace)
                .filter(|(_, pod)| selects(budget.spec.selector.as_ref(), pod.metadata.labels.as_ref()))
                .map(|(pod, _)| pod.clone())
                .collect(),
        };
        self.budgeted.set(&key, chosen);
        self.queue.insert(Target::Budget(key));
    }

    async fn look_at(&mut self, target: Target) {
        let looked = match &target {
            Target::Workload(WorkloadKind::Deployment, key) => self.sync_deployment(key).await,
            Target::Workload(WorkloadKind::ReplicaSet, key) => self.sync_replica_set(key).await,
            Target::Workload(WorkloadKind::StatefulSet, key) => self.sync_stateful_set(key).await,
            Target::Workload(WorkloadKind::DaemonSet, key) => self.sync_daemon_set(key).await,
            Target::Workload(WorkloadKind::Job, key) => self.sync_job(key).await,
            Target::Budget(key) => self.sync_budget(key).await,
            Target::Finalizer(key) => self.take_finalizers_off(key).await,
            Target::PodGc => self.collect_pods().await,
        };
        match looked {
            Ok(()) => {}
            // The object is gone or was changed by another: the watch will tell, and a second look costs nothing.
            Err(Refused::Gone | Refused::Conflict(_)) => {
                self.later.insert((self.clock.now() + RETRY, target));
            }
            Err(refused) => {
                self.troubles.tell(format!("controller of {target:?}"), &refused);
                self.later.insert((self.clock.now() + RETRY, target));
            }
        }
    }

    fn workload(&self, kind: WorkloadKind, key: &Key) -> Option<Arc<Workload>> {
        self.workloads[&kind].object(key).filter(|workload| !workload.is_deleted()).cloned()
    }

    /// The pods that `owner` controls, in the order of their names.
    fn pods_of(&self, owner: &Workload) -> Vec<Arc<Pod>> {
        let keys = self.owned.get(owner.uid()).into_iter().flatten();
        keys.filter_map(|key| self.pods.object(key)).cloned().collect()
    }

    /// Makes a pod from the owner's template, with a name of its own or the one given.
    async fn make_pod(
        &mut self,
        kind: WorkloadKind,
        owner: &Workload,
        name: Option<String>,
        adapt: impl FnOnce(&mut Value),
    ) -> Result<(), Refused> {
        let Key { namespace, name: owner_name } = Key::of(owner);
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
        if let Some(turn) = self.pods.note(Arc::new(made)) {
            self.on_pod(&turn);
        }
        Ok(())
    }

    fn fresh_name(&mut self, namespace: &str, owner: &str) -> String {
        loop {
            let number = self.made.entry(format!("{namespace}/{owner}")).or_insert(0);
            *number += 1;
            let mut rng = self.chance.about(&["made", namespace, owner, &number.to_string()]);
            let key =
                Key { namespace: namespace.to_owned(), name: format!("{owner}-{}", suffix(&mut rng, 5)) };
            if self.pods.object(&key).is_none() {
                return key.name;
            }
        }
    }

    async fn delete_pod(&mut self, pod: &Pod, grace_seconds: Option<i64>) -> Result<(), Refused> {
        match self.writer.delete(&path::pod(&Key::of(pod)), pod.uid(), grace_seconds).await {
            Ok(()) | Err(Refused::Gone | Refused::Conflict(_)) => Ok(()),
            Err(refused) => Err(refused),
        }
    }

    /// Writes what differs of a workload's status.
    async fn write_status(
        &mut self,
        kind: WorkloadKind,
        workload: &Workload,
        wanted: Value,
    ) -> Result<(), Refused> {
        let Some(patch) = difference(&workload.status, wanted) else { return Ok(()) };
        let path = format!("{}/status", path::workload(kind, &Key::of(workload)));
        let written: Workload = self.patch(&path, &json!({ "status": patch })).await?;
        let known = self.workloads.get_mut(&kind).expect("made for every kind");
        if let Some(turn) = known.note(Arc::new(written)) {
            self.on_workload_written(kind, &turn);
        }
        Ok(())
    }

    /// A status that we wrote ourselves needs no second look at its workload, but one at what depends on it.
    fn on_workload_written(&mut self, kind: WorkloadKind, turn: &Turn<Workload>) {
        let own = Target::Workload(kind, turn.key());
        let queued = self.queue.contains(&own);
        self.on_workload(kind, turn);
        if !queued {
            self.queue.remove(&own);
        }
    }

    async fn patch<T: DeserializeOwned + Debug>(&self, path: &str, patch: &Value) -> Result<T, Refused> {
        self.writer.patch(path, Patch::Merge, patch).await
    }

    async fn take_finalizers_off(&mut self, key: &Key) -> Result<(), Refused> {
        let Some(pod) = self.pods.object(key).filter(|pod| pod.is_deleted()).cloned() else { return Ok(()) };
        let patch = json!({"metadata": {"uid": pod.uid(), "finalizers": null}});
        let _gone: serde::de::IgnoredAny = self.writer.patch(&path::pod(key), Patch::Merge, &patch).await?;
        Ok(())
    }
}

impl Pairs {
    /// Sets which budgets choose a pod. Returns those whose numbers this may change.
    fn choose(&mut self, pod: &Key, budgets: BTreeSet<Key>) -> BTreeSet<Key> {
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

    /// Sets which pods a budget chooses.
    fn set(&mut self, budget: &Key, pods: BTreeSet<Key>) {
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

/// The fields of `wanted` that `is` has not got like this; None where it has them all.
fn difference(is: &Value, wanted: Value) -> Option<Value> {
    let Value::Object(wanted) = wanted else { return None };
    let differing = wanted.into_iter().filter(|(field, value)| {
        let is = is.get(field).unwrap_or(&Value::Null);
        // An absent number is zero.
        is != value && !(is.is_null() && (*value == json!(0) || value.is_null()))
    });
    let differing: serde_json::Map<String, Value> = differing.collect();
    (!differing.is_empty()).then_some(Value::Object(differing))
}
