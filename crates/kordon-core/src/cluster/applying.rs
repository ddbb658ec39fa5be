//! How a change is applied to the objects of a cluster and to the indexes over them.

use std::{collections::BTreeSet, mem, sync::Arc};

use super::{
    Applied, Change, Cluster, CronJob, Delta, FeedKind, Key, Known, Name, NamespaceObject, Node, NodeLoad,
    NodeName, ObjectEvent, Pod, ReadBy, Scope, ScopeRead, ShutdownPeriods, Table, TableObject, Uid, Volume,
    Workload, WorkloadKind, cow_map::CowMap, device_tables::DeviceDemand, node_load, pod_groups::PodGroups,
};

impl Cluster {
    /// Applies a change, and appends what it did to `applied`.
    pub fn apply(&mut self, change: Change, applied: &mut Vec<Applied>) {
        match change {
            Change::Node(mut event) => {
                if let Some(node) = listed(&mut event)
                    && let Some(lease) = self.leases.get(&node.name)
                {
                    node.name.clone_from(&lease.node);
                }
                if let Some(node) = reported(&mut event) {
                    node.reboot_lock = self.reboot_locks.get(&node.name).cloned();
                    // Once the machine is back, its kubelet may have another configuration.
                    if !node.is_shutting_down() && self.shutdown_periods.contains_key(&node.name) {
                        Arc::make_mut(&mut self.shutdown_periods).remove(&node.name);
                    }
                }
                self.nodes.apply(event, |delta| applied.push(Applied::Node(delta)));
            }
            Change::Lease(mut event) => {
                if let Some(lease) = listed(&mut event)
                    && let Some(node) = self.nodes.get(&lease.node)
                {
                    lease.node.clone_from(&node.name);
                }
                self.leases.apply(event, |delta| applied.push(Applied::Lease(delta)));
            }
            // The watch of the pod may already have reported the pod's deletion, so reads of the pod are ignored.
            Change::Pod(ObjectEvent::Prefetched(pod)) if self.watches_pod(&pod) => {}
            Change::Pod(event) => self.apply_pod(event, applied),
            Change::Budget(event) => self.budgets.apply(event, |_| applied.push(Applied::Other)),
            Change::Workload(kind, event) => {
                self.apply_workload(kind, event, applied);
            }
            Change::PriorityClass(event) => {
                self.priority_classes.apply(event, |_| applied.push(Applied::Other))
            }
            Change::Namespace(event) => self.namespaces.apply(event, |_| applied.push(Applied::Other)),
            Change::Service(event) => self.services.apply(event, |_| applied.push(Applied::Other)),
            Change::Claim(event) => self.claims.apply(event, |_| applied.push(Applied::Other)),
            Change::Volume(event) => self.volumes.apply(event, |_| applied.push(Applied::Other)),
            Change::StorageClass(event) => {
                self.storage_classes.apply(event, |_| applied.push(Applied::Other))
            }
            Change::CsiNode(event) => self.csi_nodes.apply(event, |_| applied.push(Applied::Other)),
            Change::CsiDriver(event) => self.csi_drivers.apply(event, |_| applied.push(Applied::Other)),
            Change::StorageCapacity(event) => {
                self.storage_capacities.apply(event, |_| applied.push(Applied::Other));
            }
            Change::Autoscalers(known) => update(&mut self.autoscalers, known, Applied::Other, applied),
            Change::NodeClaims(known) => update(&mut self.node_claims, known, Applied::Other, applied),
            Change::HealthChecks(known) => update(&mut self.health_checks, known, Applied::Other, applied),
            Change::ShutdownPeriods(node, read) => self.apply_shutdown_periods(node, read, applied),
            Change::VolumeAttachments(known) => {
                update(&mut self.volume_attachments, known, Applied::Other, applied);
            }
            Change::OperatorSettings(settings) => {
                update(&mut self.operator_settings, settings, Applied::Other, applied);
            }
            Change::Quota(event) => self.quotas.apply(event, |_| applied.push(Applied::Other)),
            Change::Device(change) => self.devices.apply(change, || applied.push(Applied::Other)),
            Change::CronJob(event) => self.cron_jobs.apply(event, |_| applied.push(Applied::Other)),
            Change::KordonLease(lease) => {
                update(&mut self.kordon_lease, lease, Applied::KordonLease, applied);
            }
            Change::Leader(lease) => {
                let old = mem::replace(&mut self.leader, lease.clone());
                applied.push(Applied::Leader(old, lease));
            }
            Change::Known(kind, known) => {
                if self.knowledge.set(kind, known) {
                    applied.push(Applied::Other);
                }
            }
            Change::Read(read) => self.apply_read(*read, applied),
            Change::KnownIn(scope, known) => {
                if self.scopes.insert(*scope, known.clone()) != Some(known) {
                    applied.push(Applied::Other);
                }
            }
        }
    }

    /// Keeps the periods that were read earlier if this read failed: the kubelet of a machine that stops does not answer
    /// for long.
    fn apply_shutdown_periods(
        &mut self,
        node: NodeName,
        read: Result<ShutdownPeriods, Name>,
        applied: &mut Vec<Applied>,
    ) {
        let known = self.shutdown_periods.get(&node);
        let is_lost = read.is_err() && known.is_some_and(Result::is_ok);
        if !is_lost && known != Some(&read) {
            Arc::make_mut(&mut self.shutdown_periods).insert(node, read);
            applied.push(Applied::Other);
        }
    }

    fn apply_workload(
        &mut self,
        kind: WorkloadKind,
        event: ObjectEvent<Workload>,
        applied: &mut Vec<Applied>,
    ) {
        let mut changes_locks = false;
        let Self { workloads, device_demand, started_by_cron_jobs, .. } = self;
        workloads[kind as usize].apply(event, |Delta { old, new }| {
            device_demand.follow(template(old.as_ref()), template(new.as_ref()));
            let [started, starts] =
                [&old, &new].map(|job| job.as_ref().is_some_and(|job| CronJob::has_started(job)));
            *started_by_cron_jobs = *started_by_cron_jobs + usize::from(starts) - usize::from(started);
            let [before, after] =
                [&old, &new].map(|set| set.as_ref().map_or(&[][..], |set| &set.reboot_locks));
            changes_locks |= before != after;
            applied.push(Applied::Other);
        });
        if changes_locks {
            self.pass_reboot_locks_on(applied);
        }
    }

    /// Updates the nodes that hold kured's lock, and those that held it before.
    fn pass_reboot_locks_on(&mut self, applied: &mut Vec<Applied>) {
        let locks = self.workloads(WorkloadKind::DaemonSet).iter().flat_map(|set| set.reboot_locks.iter());
        let locks = locks.map(|lock| (lock.node.clone(), Arc::new(lock.clone()))).collect();
        let before = mem::replace(&mut self.reboot_locks, Arc::new(locks));
        let names: BTreeSet<&NodeName> = before.keys().chain(self.reboot_locks.keys()).collect();
        for name in names {
            let Some(node) = self.nodes.get(name) else { continue };
            let node = Node { reboot_lock: self.reboot_locks.get(name).cloned(), ..(**node).clone() };
            self.nodes.apply(ObjectEvent::Prefetched(node), |delta| applied.push(Applied::Node(delta)));
        }
    }

    /// Removes the objects of the scope that the read did not find. Objects newer than the read stay.
    fn apply_read(&mut self, read: ScopeRead, applied: &mut Vec<Applied>) {
        for change in self.gone_since(&read) {
            self.apply(change, applied);
        }
        if read.by == ReadBy::Watch {
            self.watched.insert(read.scope.clone(), ());
        }
        self.scopes.insert(read.scope, Known::Live);
        applied.push(Applied::Other);
    }

    /// Whether a watch reports the changes of a pod. If so, reads of the pod are ignored.
    fn watches_pod(&self, pod: &Pod) -> bool {
        let on_node = pod.node.clone().map(Scope::PodsOn);
        let mut scopes = on_node.into_iter().chain([Scope::Pod(pod.key.clone())]);
        scopes.any(|scope| self.watched.get(&scope).is_some())
    }

    fn gone_since(&self, read: &ScopeRead) -> Vec<Change> {
        use ObjectEvent::Deleted;
        let scope = &read.scope;
        match scope.whole() {
            Scope::Nodes | Scope::NodesWith(_) | Scope::Node(_) => {
                let gone =
                    read.gone(&self.nodes, |node| scope.has_node(node), |node| Key::new("", &node.name));
                gone.map(|node| Change::Node(Deleted(node))).collect()
            }
            Scope::Pods | Scope::PodsWith(..) | Scope::PodsOn(_) | Scope::Pod(_) | Scope::FinishedPods => {
                let is_believed = |pod: &Pod| read.by == ReadBy::Watch || !self.watches_pod(pod);
                let is_in = |pod: &Pod| scope.has_pod(pod) && is_believed(pod);
                let gone = read.gone(&self.pods, is_in, |pod| pod.key.clone());
                gone.map(|pod| Change::Pod(Deleted(pod))).collect()
            }
            Scope::Budgets | Scope::BudgetsIn(_) => {
                let gone =
                    read.gone(&self.budgets, |budget| scope.has_budget(budget), |budget| budget.key.clone());
                gone.map(|budget| Change::Budget(Deleted(budget))).collect()
            }
            Scope::Namespaces | Scope::Namespace(_) => {
                let is_in = |namespace: &NamespaceObject| scope.has_namespace(namespace);
                let gone = read.gone(&self.namespaces, is_in, |namespace| Key::new("", &namespace.name));
                gone.map(|namespace| Change::Namespace(Deleted(namespace))).collect()
            }
            Scope::Workloads(kind) | Scope::Workload(kind, _) => {
                let is_in = |workload: &Workload| scope.has_workload(workload);
                let gone = read.gone(self.workloads(kind), is_in, |workload| workload.key.clone());
                gone.map(|workload| Change::Workload(kind, Deleted(workload))).collect()
            }
            Scope::Claims | Scope::Claim(_) => {
                let gone = read.gone(&self.claims, |claim| scope.has_claim(claim), |claim| claim.key.clone());
                gone.map(|claim| Change::Claim(Deleted(claim))).collect()
            }
            Scope::Volumes | Scope::Volume(_) => {
                let is_in = |volume: &Volume| scope.has_volume(volume);
                let gone = read.gone(&self.volumes, is_in, |volume| Key::new("", &volume.name));
                gone.map(|volume| Change::Volume(Deleted(volume))).collect()
            }
            Scope::Quotas | Scope::QuotasIn(_) => {
                let gone = read.gone(&self.quotas, |quota| scope.has_quota(quota), |quota| quota.key.clone());
                gone.map(|quota| Change::Quota(Deleted(quota))).collect()
            }
            Scope::Whole(FeedKind::CronJobs) => {
                let gone = read.gone(&self.cron_jobs, |_| true, |cron_job| cron_job.key.clone());
                gone.map(|cron_job| Change::CronJob(Deleted(cron_job))).collect()
            }
            Scope::Whole(FeedKind::StorageCapacities) => {
                let gone = read.gone(&self.storage_capacities, |_| true, |capacity| capacity.key.clone());
                gone.map(|capacity| Change::StorageCapacity(Deleted(capacity))).collect()
            }
            Scope::Whole(FeedKind::CsiDrivers) => {
                let gone = read.gone(&self.csi_drivers, |_| true, |driver| Key::new("", &driver.name));
                gone.map(|driver| Change::CsiDriver(Deleted(driver))).collect()
            }
            Scope::Whole(kind) => {
                self.devices.gone_since(kind, read).into_iter().map(Change::Device).collect()
            }
        }
    }

    fn apply_pod(&mut self, event: ObjectEvent<Pod>, applied: &mut Vec<Applied>) {
        let (pods, mut indexes) = self.pods_and_indexes();
        pods.apply(event, |delta| {
            indexes.follow(&delta);
            applied.push(Applied::Pod(delta));
        });
    }

    /// Changes a pod as if its watch had reported the change. Does nothing if there is no such pod.
    pub fn change_pod(&mut self, pod: &Key, change: impl FnOnce(&mut Pod), applied: &mut Vec<Applied>) {
        let (pods, mut indexes) = self.pods_and_indexes();
        pods.change(pod, change, |delta| {
            indexes.follow(&delta);
            applied.push(Applied::Pod(delta));
        });
    }

    /// Changes a node as if its watch had reported the change. Does nothing if there is no such node.
    pub fn change_node(
        &mut self,
        node: &NodeName,
        change: impl FnOnce(&mut Node),
        applied: &mut Vec<Applied>,
    ) {
        self.nodes.change(node, change, |delta| applied.push(Applied::Node(delta)));
    }

    fn pods_and_indexes(&mut self) -> (&mut Table<Pod>, PodIndexes<'_>) {
        let Self { pods, by_node, by_owner, terminating, unscheduled, loads, device_demand, .. } = self;
        (pods, PodIndexes { by_node, by_owner, terminating, unscheduled, loads, device_demand })
    }
}

/// The indexes over the pods, borrowed separately from the table of pods.
struct PodIndexes<'a> {
    by_node: &'a mut PodGroups<NodeName>,
    by_owner: &'a mut PodGroups<Uid>,
    terminating: &'a mut CowMap<Key, ()>,
    unscheduled: &'a mut CowMap<Key, ()>,
    loads: &'a mut CowMap<NodeName, NodeLoad>,
    device_demand: &'a mut DeviceDemand,
}

impl PodIndexes<'_> {
    fn follow(&mut self, delta: &Delta<Pod>) {
        let (old, new) = (delta.old.as_deref(), delta.new.as_deref());
        regroup(delta, self.by_node, |pod| pod.node.as_ref());
        regroup(delta, self.by_owner, |pod| pod.owner.as_ref().map(|owner| &owner.uid));
        node_load::count(old, new, self.loads);
        self.device_demand.follow(old, new);
        let is_terminating = |pod: Option<&Pod>| pod.is_some_and(|pod| pod.termination.is_some());
        match (old, new) {
            (_, Some(pod)) if is_terminating(new) => self.terminating.insert(pod.key.clone(), ()),
            (Some(pod), _) if is_terminating(old) => self.terminating.remove(&pod.key),
            _ => None,
        };
        let is_unscheduled = |pod: Option<&Pod>| pod.is_some_and(Pod::is_unscheduled);
        match (old, new) {
            (_, Some(pod)) if is_unscheduled(new) => self.unscheduled.insert(pod.key.clone(), ()),
            (Some(pod), _) if is_unscheduled(old) => self.unscheduled.remove(&pod.key),
            _ => None,
        };
    }
}

/// Replaces a value that was read as a whole. Appends `change` to `applied` if the new value differs.
fn update<T: PartialEq>(value: &mut T, new: T, change: Applied, applied: &mut Vec<Applied>) {
    if *value != new {
        *value = new;
        applied.push(change);
    }
}

/// The template of a workload, as a pod.
fn template(workload: Option<&Arc<Workload>>) -> Option<&Pod> {
    workload?.template.as_deref()
}

/// The object that an event reports; `None` if it reports none.
fn reported<T: TableObject>(event: &mut ObjectEvent<T>) -> Option<&mut T> {
    match event {
        ObjectEvent::Listed(object) | ObjectEvent::Prefetched(object) | ObjectEvent::Applied(object) => {
            Some(object)
        }
        ObjectEvent::ListStarted | ObjectEvent::ListDone | ObjectEvent::Deleted(_) => None,
    }
}

/// Returns the object that an event lists or prefetches; none for other events. The caller then lets a node and its
/// Lease share one name in memory, because the two names are compared often.
fn listed<T: TableObject>(event: &mut ObjectEvent<T>) -> Option<&mut T> {
    match event {
        ObjectEvent::Listed(object) | ObjectEvent::Prefetched(object) => Some(object),
        ObjectEvent::ListStarted
        | ObjectEvent::ListDone
        | ObjectEvent::Applied(_)
        | ObjectEvent::Deleted(_) => None,
    }
}

/// Updates an index of pods by group after a pod changed. `group_of` returns the group of a pod; none if the pod is in
/// no group.
fn regroup<K: Ord + Clone>(
    delta: &Delta<Pod>,
    groups: &mut PodGroups<K>,
    group_of: impl Fn(&Pod) -> Option<&K>,
) {
    let [old, new] =
        [&delta.old, &delta.new].map(|pod| pod.as_ref().and_then(|pod| Some((pod, group_of(pod)?))));
    match (old, new) {
        (Some((old, left)), Some((new, joined))) if left == joined => groups.replace(joined, old, new),
        (old, new) => {
            if let Some((old, left)) = old {
                groups.remove(left, &old.key);
            }
            if let Some((new, joined)) = new {
                groups.put(joined, new);
            }
        }
    }
}
