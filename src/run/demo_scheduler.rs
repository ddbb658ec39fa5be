//! kordon as the scheduler of the embedded cluster: watches the cluster, places one pod after the other, and reports
//! why a pod fits nowhere.
//!
//! `kordon demo` uses it, because the scheduler of `kordon-demo` is small: it has no affinity, no volumes and no
//! preemption, and so would show Pending pods and landings that no real cluster has. Whether `placement` is right is
//! tested against recordings of the real scheduler, not here.
//!
//! It uses the API as any scheduler does: bindings, the condition PodScheduled, nominations, deletion of preempted
//! pods. `placement` selects the nodes, so that pods land where plans predict. If several nodes are equally good, the
//! first by name is selected, as in plans.

mod queue;

use std::{collections::BTreeMap, sync::Arc};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::queue::SchedulingQueue;
use super::session::watch_kinds;
use crate::{
    k8s::{
        connect::Connection,
        feed::{FeedEvent, FeedKind},
        scheduler_writes::{self, PreemptionVictim},
    },
    model::{AppliedChange, Model, ModelOptions},
};
use kordon_clock::Clock;
use kordon_core::{
    cluster::{Applied, Change, Delta, Key, NodeName, ObjectEvent, Pod, Uid, WorkloadKind},
    engine::Outcome,
    placement::{self, Preemption, PreemptionCandidate, SchedulingRequest, Snapshot, Unschedulable},
    plan::placement_trace::reasons,
};

/// The scheduler of the embedded cluster.
pub struct PlacementScheduler {
    pub connection: Connection,
    pub clock: Clock,
}

/// Kinds that the scheduler reads, because placement depends on them.
const READS: &[FeedKind] = &[
    FeedKind::Nodes,
    FeedKind::Pods,
    FeedKind::Budgets,
    FeedKind::Workloads(WorkloadKind::ReplicaSet),
    FeedKind::Workloads(WorkloadKind::StatefulSet),
    FeedKind::Workloads(WorkloadKind::ReplicationController),
    FeedKind::Namespaces,
    FeedKind::Services,
    FeedKind::Claims,
    FeedKind::Volumes,
    FeedKind::StorageClasses,
    FeedKind::CsiNodes,
];

impl PlacementScheduler {
    /// Places pods until `cancel` is cancelled.
    pub async fn run(self, cancel: CancellationToken) {
        let feeds = watch_kinds(&self.connection, READS, false, self.clock, cancel.clone());
        let options = ModelOptions::observer(self.connection.version);
        let work = Work {
            model: Model::new(options, self.clock.now()),
            connection: self.connection,
            clock: self.clock,
            snapshot: None,
            queue: SchedulingQueue::default(),
            assumed: BTreeMap::new(),
            unschedulable: Vec::new(),
            reported: BTreeMap::new(),
        };
        tokio::select! {
            () = cancel.cancelled() => {}
            () = work.run(feeds) => tracing::error!("the watches of the scheduler ended"),
        }
    }
}

/// State of the scheduler.
struct Work {
    connection: Connection,
    clock: Clock,
    /// Model of the watched cluster, without the engine that follows the node lifecycle controller.
    model: Model,
    /// Snapshot of the cluster in which pods are placed; none until all kinds that the scheduler reads have been
    /// listed.
    snapshot: Option<Snapshot>,
    queue: SchedulingQueue,
    /// Node of each pod that was bound, until the watch reports the binding. A report without the binding is outdated.
    assumed: BTreeMap<Key, (Uid, NodeName)>,
    /// Scheduling requests that fit on no node, each with the reason. Requests that depend on other pods are left out.
    /// A pod with an equal request is refused without a search. Each change that makes room clears the list.
    unschedulable: Vec<(SchedulingRequest, String)>,
    /// Reason in the condition of each pod that fits nowhere, by pod.
    reported: BTreeMap<Key, String>,
}

impl Work {
    /// Runs until the watches end.
    async fn run(mut self, mut feeds: mpsc::Receiver<FeedEvent>) {
        loop {
            while let Ok(event) = feeds.try_recv() {
                self.on_watch_event(event);
            }
            self.queue.wake(self.clock.now());
            if self.snapshot.is_some()
                && let Some(pod) = self.queue.pop()
            {
                self.schedule(&pod).await;
                // Placing a pod on thousands of nodes takes a while, so other tasks may run before the next pod.
                tokio::task::yield_now().await;
                continue;
            }
            let wakes = self.queue.wakes_at().filter(|_| self.snapshot.is_some());
            tokio::select! {
                event = feeds.recv() => match event {
                    Some(event) => self.on_watch_event(event),
                    None => return,
                },
                () = self.clock.sleep_until(wakes.unwrap_or_default()), if wakes.is_some() => {}
            }
        }
    }

    fn on_watch_event(&mut self, mut event: FeedEvent) {
        match &mut event {
            FeedEvent::Changes(changes) => changes.iter_mut().for_each(|change| self.assume(change)),
            FeedEvent::Trouble(text) => tracing::warn!(text, "the scheduler's watches"),
            FeedEvent::Health(..) | FeedEvent::ScopeState(..) | FeedEvent::ClockDifference(_) => {}
        }
        let changes = self.model.on_watch_event(event, self.clock.now());
        self.follow(&changes);
        if self.snapshot.is_none() && self.knows_all() {
            self.snapshot = Some(Snapshot::new(&self.model.cluster, self.connection.version));
        }
    }

    /// Whether all kinds that the scheduler reads have been listed.
    fn knows_all(&self) -> bool {
        READS.iter().all(|kind| match kind {
            FeedKind::Nodes => self.model.cluster.nodes().is_synced(),
            FeedKind::Pods => self.model.cluster.pods().is_synced(),
            FeedKind::Budgets => self.model.cluster.budgets().is_synced(),
            FeedKind::Workloads(kind) => self.model.cluster.workloads(*kind).is_synced(),
            FeedKind::Namespaces => self.model.cluster.namespaces().is_synced(),
            FeedKind::Services => self.model.cluster.services().is_synced(),
            FeedKind::Claims => self.model.cluster.claims().is_synced(),
            FeedKind::Volumes => self.model.cluster.volumes().is_synced(),
            FeedKind::StorageClasses => self.model.cluster.storage_classes().is_synced(),
            FeedKind::CsiNodes => self.model.cluster.csi_nodes().is_synced(),
            // The scheduler does not wait for the kinds that it does not read. The demo has no devices.
            FeedKind::Leases
            | FeedKind::PriorityClasses
            | FeedKind::CsiDrivers
            | FeedKind::StorageCapacities
            | FeedKind::Leader
            | FeedKind::Quotas
            | FeedKind::DeviceClasses
            | FeedKind::ResourceClaims
            | FeedKind::ResourceSlices
            | FeedKind::DeviceTaintRules
            | FeedKind::ClaimTemplates
            | FeedKind::CronJobs => true,
        })
    }

    /// Adds the node to a reported pod that is already bound, if the report lacks the binding.
    fn assume(&mut self, change: &mut Change) {
        match change {
            Change::Pod(
                ObjectEvent::Listed(pod) | ObjectEvent::Applied(pod) | ObjectEvent::Prefetched(pod),
            ) => match self.assumed.get(&pod.key) {
                Some((uid, node)) if *uid == pod.uid && pod.node.is_none() => {
                    pod.node = Some(node.clone());
                }
                Some(_) => _ = self.assumed.remove(&pod.key),
                None => {}
            },
            Change::Pod(ObjectEvent::Deleted(pod)) => _ = self.assumed.remove(pod),
            _ => {}
        }
    }

    /// Applies a change that the scheduler itself made, without waiting for the report of the watch.
    fn apply(&mut self, change: Change) {
        let changes = self.model.apply(vec![change], self.clock.now());
        self.follow(&changes);
    }

    /// Updates the snapshot and the queue for changes of the cluster.
    fn follow(&mut self, changes: &[AppliedChange]) {
        if let Some(snapshot) = &mut self.snapshot {
            snapshot.follow(changes.iter().map(|change| &change.applied), &self.model.cluster);
        }
        let (mut room, mut company) = (false, false);
        for change in changes {
            match &change.applied {
                Applied::Pod(delta) => {
                    self.follow_pod(delta);
                    room |= makes_room(delta);
                    company |= is_elsewhere(delta);
                }
                Applied::Node(_)
                | Applied::Other
                | Applied::Lease(_)
                | Applied::Leader(..)
                | Applied::KordonLease => {
                    room |= change.impact.bears_on_plans();
                }
            }
        }
        if room {
            self.unschedulable.clear();
            self.queue.retry(|_| true);
        } else if company {
            let cluster = &self.model.cluster;
            let cares = |pod: &Key| cluster.pod(pod).is_some_and(|pod| !pod.scheduling.ignores_other_pods());
            self.queue.retry(cares);
        }
    }

    /// Queues a pod that needs a node, and removes any other pod from the queue.
    fn follow_pod(&mut self, delta: &Delta<Pod>) {
        match (&delta.old, &delta.new) {
            (_, Some(pod)) if pod.is_unscheduled() => {
                self.queue.offer(&pod.key, pod.priority, self.clock.now())
            }
            (_, Some(pod)) | (Some(pod), None) => self.let_go(&pod.key),
            (None, None) => {}
        }
    }

    fn let_go(&mut self, pod: &Key) {
        self.queue.withdraw(pod);
        self.reported.remove(pod);
    }

    /// Places a pod, or reports in its condition why it fits nowhere.
    async fn schedule(&mut self, pod: &Key) {
        let Some(pod) = self.model.cluster.pod(pod).filter(|pod| pod.is_unscheduled()).cloned() else {
            return self.let_go(pod);
        };
        let Some(snapshot) = &mut self.snapshot else { return };
        let request = SchedulingRequest::from_pod(&pod, &self.model.cluster);
        let nameless = SchedulingRequest { name: Default::default(), ..request.clone() };
        if let Some((_, why)) = self.unschedulable.iter().find(|(other, _)| *other == nameless) {
            let why = why.clone();
            return self.refuse(&pod, why, None).await;
        }
        match snapshot.place(&request) {
            placement::SchedulingOutcome::Placed(placement) => self.bind(&pod, placement.choice()).await,
            placement::SchedulingOutcome::Unschedulable(refused) => {
                let why = message(&refused, snapshot.node_count());
                if let Preemption::Possible(candidate) = &refused.preemption {
                    return self.preempt(&pod, candidate, why).await;
                }
                if request.spec.ignores_other_pods() {
                    self.unschedulable.push((nameless, why.clone()));
                }
                self.refuse(&pod, why, None).await;
            }
            // The pod belongs to another scheduler or is gated. Its next change adds it to the queue again.
            placement::SchedulingOutcome::NotTried(_) => self.let_go(&pod.key),
        }
    }

    async fn bind(&mut self, pod: &Arc<Pod>, node: &NodeName) {
        let bound = scheduler_writes::bind(&self.connection.writer, &pod.key, &pod.uid, node).await;
        if self.is_done("bind", &pod.key, bound) {
            // The model has the binding at once, so that the placement of the next pod takes this pod into account.
            self.assumed.insert(pod.key.clone(), (pod.uid.clone(), node.clone()));
            let there = Pod { node: Some(node.clone()), nominated: None, ..(**pod).clone() };
            self.apply(Change::Pod(ObjectEvent::Applied(there)));
        } else {
            self.queue.park(&pod.key, self.clock.now());
            self.queue.retry(|other| *other == pod.key);
        }
    }

    /// Deletes the pods that are preempted for `pod`, which is placed once they are gone.
    async fn preempt(&mut self, pod: &Arc<Pod>, candidate: &PreemptionCandidate, why: String) {
        let leaving: Vec<_> =
            candidate.victims.iter().filter(|victim| victim.termination.is_none()).collect();
        for victim in leaving {
            let now = self.clock.now();
            let of =
                PreemptionVictim { pod: &victim.key, uid: &victim.uid, by: &pod.uid, node: &candidate.node };
            let gone = scheduler_writes::preempt(&self.connection.writer, of, now).await;
            self.is_done("preempt", &victim.key, gone);
        }
        self.refuse(pod, why, Some(&candidate.node)).await;
        let nominated = Some(candidate.node.clone());
        self.apply(Change::Pod(ObjectEvent::Applied(Pod { nominated, ..(**pod).clone() })));
    }

    /// Reports in a pod's condition why the pod fits nowhere, unless the condition already has this reason. The pod
    /// then waits in the queue for another attempt.
    async fn refuse(&mut self, pod: &Arc<Pod>, why: String, room_on: Option<&NodeName>) {
        let now = self.clock.now();
        if room_on.is_some() || self.reported.get(&pod.key) != Some(&why) {
            let writer = &self.connection.writer;
            let said = scheduler_writes::refuse(writer, &pod.key, &pod.uid, &why, room_on, now).await;
            if self.is_done("refuse", &pod.key, said) {
                self.reported.insert(pod.key.clone(), why);
            }
        }
        self.queue.park(&pod.key, now);
    }

    /// Returns true if a write succeeded, and logs a failed write. A write to an object that is gone or has changed is
    /// not logged, because the watch will report the change.
    fn is_done(&self, what: &str, pod: &Key, outcome: Outcome) -> bool {
        match outcome {
            Outcome::Done => return true,
            Outcome::Recorded | Outcome::Conflict | Outcome::Gone => {}
            Outcome::Failed(error) => tracing::warn!(what, %pod, error, "the scheduler"),
        }
        false
    }
}

/// Returns the node whose resources a pod occupies; `None` for a pod that is not bound or has finished.
fn takes_room_on(pod: &Option<Arc<Pod>>) -> Option<&NodeName> {
    pod.as_ref().filter(|pod| !pod.is_finished()).and_then(|pod| pod.node.as_ref())
}

/// Whether a change of a pod may let other pods fit: the pod leaves its node, or starts or stops terminating.
fn makes_room(delta: &Delta<Pod>) -> bool {
    let leaves = |pod: &Option<Arc<Pod>>| pod.as_ref().is_some_and(|pod| pod.termination.is_some());
    let before = takes_room_on(&delta.old);
    before.is_some() && (before != takes_room_on(&delta.new) || leaves(&delta.old) != leaves(&delta.new))
}

/// Whether a pod has moved to another node or its labels have changed. Labels matter because other pods may select this
/// pod by them.
fn is_elsewhere(delta: &Delta<Pod>) -> bool {
    let labels = |pod: &Option<Arc<Pod>>| pod.as_ref().map(|pod| pod.labels.clone());
    takes_room_on(&delta.old) != takes_room_on(&delta.new) || labels(&delta.old) != labels(&delta.new)
}

/// Message of the condition, such as `0/30 nodes are available: 12 not enough cpu, 1 cordoned. Preemption: 30 no pods
/// of lower priority.`
fn message(refused: &Unschedulable, nodes: usize) -> String {
    let preemption = match &refused.preemption {
        Preemption::Possible(_) => String::new(),
        Preemption::NotAllowed => " Preemption: its preemptionPolicy forbids it.".into(),
        Preemption::Waits { node, .. } => format!(" Preemption: room is being made on {node}."),
        Preemption::Impossible { hindrances } => {
            let words: Vec<String> =
                hindrances.iter().map(|(hindrance, nodes)| format!("{nodes} {hindrance}")).collect();
            if words.is_empty() { String::new() } else { format!(" Preemption: {}.", words.join(", ")) }
        }
    };
    format!("0/{nodes} nodes are available: {}.{preemption}", reasons(&refused.reasons))
}
