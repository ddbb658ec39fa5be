//! The objects of a cluster and the indexes over them. [`Cluster::apply`] is the way to change them; copies are cheap.
//!
//! The module is pure: no clock, no IO, no client types. What a watch reported enters as a [`Change`]; what it changed
//! leaves as an [`Applied`].
//!
//! # Which object refers to which
//!
//! ```text
//!  Lease, CsiNode              Budget, Service
//!        | name of the node          | selector over labels, same namespace
//!        v                           v
//!      Node <-------- node --------- Pod -------- owner (uid) -------> Workload --- owner (uid) ---> Workload
//!        ^                           |                                 ReplicaSet …                  Deployment
//!        | node affinity             | claims by name (scheduling.volumes)
//!        |                           v
//!      Volume <------ volume ------ Claim ------- class ------> StorageClass
//!        '---------- claim ---------->
//!
//!  PriorityClass, Namespace: by name, from pods        LeaderLease: kube-system/kube-controller-manager, alone
//!  CsiDriver: by name, from volumes                   StorageCapacity: by class, from claims without a volume
//! ```
//!
//! A reference may lead nowhere: watches are independent, and objects disappear in any order.
//!
//! # Indexes
//!
//! | index | from | to | read by |
//! | --- | --- | --- | --- |
//! | `by_node` | node name | pods bound to it | [`Cluster::pods_on`] |
//! | `by_owner` | uid of an owner | its pods | [`Cluster::pods_owned_by`] |
//! | `terminating` | | pods whose deletion has started | [`Cluster::terminating_pods`] |
//! | `unscheduled` | | pods that wait for a node | [`Cluster::unscheduled_pods`] |
//! | `loads` | node name | totals of its pods | [`Cluster::load`] |
//!
//! Every table is sorted by key, namespace first, so [`Cluster::pods_in`], [`Cluster::budgets_of`] and
//! [`Cluster::services_of`] scan one namespace.

mod applying;
mod autoscaler;
pub mod budget;
pub mod claim;
pub mod cow_map;
pub mod cron_job;
pub mod device;
pub mod device_tables;
pub mod drain_markers;
pub mod encoding;
pub mod event;
mod fetched_list;
pub mod fetched_object;
pub mod fields;
mod foreign_drain;
mod health_check;
pub mod image;
pub mod job;
pub mod knowledge;
pub mod labels;
pub mod lease;
pub mod maintenance_note;
mod maintenance_notes;
pub mod names;
pub mod nearest;
pub mod node;
mod node_claim;
mod node_devices;
mod node_load;
pub mod operation_id;
mod operator_settings;
pub mod owner;
pub mod pod;
mod pod_groups;
pub mod pod_resources;
pub mod quantity;
pub mod quota;
pub mod reboot_lock;
pub mod resources;
pub mod scheduling;
pub mod scope;
pub mod service;
mod shared_list;
mod shutdown_periods;
pub mod stateful_set;
pub mod storage;
pub mod table;
pub mod taint;
pub mod taint_owner;
mod uid;
mod upgrade_plan;
mod volume_attachment;
pub mod workload;

use std::{collections::BTreeMap, mem, sync::Arc};

pub use autoscaler::{Autoscaler, KnownAutoscalers};
pub use budget::{Budget, BudgetStatus, IntOrPercent, UnhealthyPolicy};
pub use claim::{ClaimedSurge, CordonNote, DrainClaim, DrainedNote};
pub use cron_job::CronJob;
pub use device::{DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice};
pub use device_tables::{DeviceChange, DeviceTables};
pub use drain_markers::DrainStage;
pub use event::{
    ClusterEvent, EventKey, EventSubject, EventsOfCluster, InvolvedObject, ObjectEvents, ReportedEvent,
};
pub use fetched_list::FetchedList;
pub use fetched_object::{FetchedObject, ObjectRead};
pub use fields::{BadFieldSelector, FieldSelector};
pub use foreign_drain::{CordonOrigin, ForeignDrain, ForeignNote, PodTreatment};
pub use health_check::{KnownHealthChecks, NodeHealthCheck, StartedRemediation, UnhealthyCondition};
pub use image::{Image, ImageNames};
pub use job::{ExitCodes, JobLimits, PodFailureAction, PodFailureRule, count_indexes};
pub use knowledge::{FeedKind, Gap, Gaps, Known, NOT_IN_FILES};
pub use labels::{BadSelector, Labels, Requirement, Selector, SelectorOperator};
pub use lease::{ClockDifference, LeaderLease, Lease, by_server_clock};
pub use maintenance_note::{MaintenanceNote, MaintenanceStage};
pub use maintenance_notes::{MaintenanceNotes, in_maintenance};
pub use names::{Interner, Key, Name, Namespace, NodeName};
pub use node::{Condition, ConditionStatus, FieldManager, Node, READY, ZoneKey};
pub use node_claim::{KnownNodeClaims, NodeClaim, RemovalStage};
pub use node_devices::{AllocatedCount, ExtendedResource, NodeDevices};
pub use node_load::NodeLoad;
pub use operation_id::{NotAnOperationId, OperationId};
pub use operator_settings::{KnownSetting, OperatorSettings, OwnerDecision};
pub use owner::{Owner, OwnerKind, WorkloadKind};
pub use pod::{
    ContainerExit, IndexFailures, KeptFrom, LocalStorage, LocalVolume, PREEMPTED, Phase, Pod, PodEnding,
    PodReady, PodUnscheduled, Termination,
};
pub use pod_resources::{
    ContainerResources, ContainerRole, KubeletSpec, PodResources, QosClass, QuotaSpec, Requests,
};
pub use quota::{Quota, QuotaCount, QuotaLimit, QuotaScope};
pub use reboot_lock::RebootLock;
pub use resources::Resources;
pub use scheduling::SchedulingSpec;
pub use scope::{ReadBy, Scope, ScopeRead};
pub use service::Service;
pub use shared_list::SharedList;
pub use shutdown_periods::{ShutdownPeriod, ShutdownPeriods};
pub use stateful_set::StatefulRules;
pub use storage::{
    AccessModes, Claim, CsiDriver, CsiNode, StorageCapacity, StorageClass, Volume, VolumeProperties,
};
pub use table::{Delta, ObjectEvent, Table, TableObject, Version};
pub use taint::{
    OUT_OF_SERVICE, Taint, TaintEffect, Toleration, TolerationOperator, UNSCHEDULABLE, tolerates_no_schedule,
};
pub use taint_owner::TaintOwner;
pub use uid::Uid;
pub use volume_attachment::{KnownVolumeAttachments, VolumeAttachment};
pub use workload::{NamespaceObject, PriorityClass, Workload, WorkloadStage};

use cow_map::CowMap;
use device_tables::DeviceDemand;
use knowledge::Knowledge;
use kordon_time::{ClusterClock, ClusterTime, Timestamp};
use pod_groups::PodGroups;

/// A change that a watch or a read reported.
#[derive(Clone, Debug)]
pub enum Change {
    Node(ObjectEvent<Node>),
    Lease(ObjectEvent<Lease>),
    Pod(ObjectEvent<Pod>),
    Budget(ObjectEvent<Budget>),
    /// A change of a workload, with its kind. Each of the six kinds is listed separately, so events of a list need the
    /// kind, too.
    Workload(WorkloadKind, ObjectEvent<Workload>),
    PriorityClass(ObjectEvent<PriorityClass>),
    Namespace(ObjectEvent<NamespaceObject>),
    Service(ObjectEvent<Service>),
    Claim(ObjectEvent<Claim>),
    Volume(ObjectEvent<Volume>),
    StorageClass(ObjectEvent<StorageClass>),
    CsiNode(ObjectEvent<CsiNode>),
    CsiDriver(ObjectEvent<CsiDriver>),
    StorageCapacity(ObjectEvent<StorageCapacity>),
    Quota(ObjectEvent<Quota>),
    Device(DeviceChange),
    CronJob(ObjectEvent<CronJob>),
    /// All autoscalers, as read by one request.
    Autoscalers(Arc<KnownAutoscalers>),
    /// All NodeClaims of Karpenter, as read by one request.
    NodeClaims(Arc<KnownNodeClaims>),
    /// All NodeHealthChecks of medik8s, as read by one request.
    HealthChecks(Arc<KnownHealthChecks>),
    /// The kubelet's periods for the graceful shutdown of a node, or why they could not be read.
    ShutdownPeriods(NodeName, Result<ShutdownPeriods, Name>),
    /// All VolumeAttachments, as read by one request.
    VolumeAttachments(Arc<KnownVolumeAttachments>),
    /// Settings of operators, as read for a plan.
    OperatorSettings(Arc<OperatorSettings>),
    /// The controller manager's Lease; none if it does not exist.
    Leader(Option<LeaderLease>),
    /// The Lease of `kordon controller`, as read by one request; none if it does not exist.
    KordonLease(Option<LeaderLease>),
    /// How well the objects of a kind are known from now on.
    Known(FeedKind, Known),
    /// A scope (set of objects) was read completely. This change follows one change for each object of the scope:
    /// [`ObjectEvent::Applied`] if the scope is watched, [`ObjectEvent::Prefetched`] otherwise.
    Read(Box<ScopeRead>),
    /// How well the objects of a scope (a part of the cluster) are known from now on.
    KnownIn(Box<Scope>, Known),
}

impl Change {
    /// Returns the key of the object, if a read of a scope found the object; none for other changes. The namespace of a
    /// cluster-scoped object is empty.
    pub fn found(&self) -> Option<Key> {
        match self {
            Self::Node(event) => found(event, |node| Key::new("", &node.name)),
            Self::Lease(event) => found(event, |lease| Key::new("", &lease.node)),
            Self::Pod(event) => found(event, |pod| pod.key.clone()),
            Self::Budget(event) => found(event, |budget| budget.key.clone()),
            Self::Workload(_, event) => found(event, |workload| workload.key.clone()),
            Self::PriorityClass(event) => found(event, |class| Key::new("", &class.name)),
            Self::Namespace(event) => found(event, |namespace| Key::new("", &namespace.name)),
            Self::Service(event) => found(event, |service| service.key.clone()),
            Self::Claim(event) => found(event, |claim| claim.key.clone()),
            Self::Volume(event) => found(event, |volume| Key::new("", &volume.name)),
            Self::StorageClass(event) => found(event, |class| Key::new("", &class.name)),
            Self::CsiNode(event) => found(event, |node| Key::new("", &node.name)),
            Self::CsiDriver(event) => found(event, |driver| Key::new("", &driver.name)),
            Self::StorageCapacity(event) => found(event, |capacity| capacity.key.clone()),
            Self::Quota(event) => found(event, |quota| quota.key.clone()),
            Self::Device(change) => change.found(),
            Self::CronJob(event) => found(event, |cron_job| cron_job.key.clone()),
            Self::Autoscalers(_)
            | Self::NodeClaims(_)
            | Self::HealthChecks(_)
            | Self::ShutdownPeriods(..)
            | Self::VolumeAttachments(_)
            | Self::OperatorSettings(_)
            | Self::Leader(_)
            | Self::KordonLease(_)
            | Self::Known(..)
            | Self::Read(_)
            | Self::KnownIn(..) => None,
        }
    }
}

impl DeviceChange {
    fn found(&self) -> Option<Key> {
        match self {
            Self::Class(event) => found(event, |class| Key::new("", &class.name)),
            Self::Claim(event) => found(event, |claim| claim.key.clone()),
            Self::Slice(event) => found(event, |slice| Key::new("", &slice.name)),
            Self::Rule(event) => found(event, |rule| Key::new("", &rule.name)),
            Self::Template(event) => found(event, |template| template.key.clone()),
        }
    }
}

fn found<T: TableObject>(event: &ObjectEvent<T>, key: impl FnOnce(&T) -> Key) -> Option<Key> {
    match event {
        ObjectEvent::Prefetched(object) | ObjectEvent::Applied(object) => Some(key(object)),
        ObjectEvent::ListStarted
        | ObjectEvent::Listed(_)
        | ObjectEvent::ListDone
        | ObjectEvent::Deleted(_) => None,
    }
}

/// What a [`Change`] did to the cluster.
#[derive(Clone, Debug)]
pub enum Applied {
    Node(Delta<Node>),
    Lease(Delta<Lease>),
    Pod(Delta<Pod>),
    /// The controller manager's Lease, before and after.
    Leader(Option<LeaderLease>, Option<LeaderLease>),
    /// The Lease of `kordon controller`.
    KordonLease,
    /// A change of an object that is read by plans only, or of how well a kind or scope is known.
    Other,
}

/// Everything known about a cluster: a table per kind, and the indexes.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    nodes: Table<Node>,
    leases: Table<Lease>,
    pods: Table<Pod>,
    budgets: Table<Budget>,
    workloads: [Table<Workload>; WorkloadKind::ALL.len()],
    priority_classes: Table<PriorityClass>,
    namespaces: Table<NamespaceObject>,
    services: Table<Service>,
    claims: Table<Claim>,
    volumes: Table<Volume>,
    storage_classes: Table<StorageClass>,
    csi_nodes: Table<CsiNode>,
    csi_drivers: Table<CsiDriver>,
    storage_capacities: Table<StorageCapacity>,
    quotas: Table<Quota>,
    devices: DeviceTables,
    cron_jobs: Table<CronJob>,
    autoscalers: Arc<KnownAutoscalers>,
    node_claims: Arc<KnownNodeClaims>,
    health_checks: Arc<KnownHealthChecks>,
    /// Periods of kubelets, by node. Read only for nodes that are shutting down.
    shutdown_periods: Arc<BTreeMap<NodeName, Result<ShutdownPeriods, Name>>>,
    volume_attachments: Arc<KnownVolumeAttachments>,
    operator_settings: Arc<OperatorSettings>,
    leader: Option<LeaderLease>,
    kordon_lease: Option<LeaderLease>,
    clock: ClusterClock,
    knowledge: Knowledge,
    /// How well the objects are known in each scope (set of objects) that kordon has read or tried to read.
    scopes: CowMap<Scope, Known>,
    /// The scopes (sets of objects) that are watched.
    watched: CowMap<Scope, ()>,
    /// Pods by the node to which they are bound.
    by_node: PodGroups<NodeName>,
    /// Pods by the uid of their owner.
    by_owner: PodGroups<Uid>,
    /// Pods whose deletion has started.
    terminating: CowMap<Key, ()>,
    unscheduled: CowMap<Key, ()>,
    /// Totals over the pods of each node, such as their number and the sum of their requests.
    loads: CowMap<NodeName, NodeLoad>,
    device_demand: DeviceDemand,
    /// Number of unfinished Jobs that CronJobs started.
    started_by_cron_jobs: usize,
    /// kured's locks, by the node that holds each.
    reboot_locks: Arc<BTreeMap<NodeName, Arc<RebootLock>>>,
}

impl Cluster {
    /// Returns a copy of the objects without the indexes, for callers that keep the copy for long and query no index. A
    /// copy with the indexes would share them with this cluster, which would then copy them before its next change.
    #[must_use]
    pub fn without_indexes(&self) -> Self {
        Self {
            by_node: PodGroups::default(),
            by_owner: PodGroups::default(),
            terminating: CowMap::default(),
            unscheduled: CowMap::default(),
            loads: CowMap::default(),
            ..self.clone()
        }
    }

    pub fn nodes(&self) -> &Table<Node> {
        &self.nodes
    }

    pub fn leases(&self) -> &Table<Lease> {
        &self.leases
    }

    pub fn pods(&self) -> &Table<Pod> {
        &self.pods
    }

    /// Removes all pods from this cluster and returns them.
    pub fn take_pods(&mut self) -> Table<Pod> {
        mem::take(&mut self.pods)
    }

    pub fn budgets(&self) -> &Table<Budget> {
        &self.budgets
    }

    pub fn workloads(&self, kind: WorkloadKind) -> &Table<Workload> {
        &self.workloads[kind as usize]
    }

    /// The workloads of a kind in a namespace, by name.
    pub fn workloads_in(
        &self,
        kind: WorkloadKind,
        namespace: &Namespace,
    ) -> impl Iterator<Item = &Arc<Workload>> {
        let namespace = namespace.clone();
        let from = (kind, Key { namespace: namespace.clone(), name: Name::default() });
        self.workloads(kind).iter_from(&from).take_while(move |workload| workload.key.namespace == namespace)
    }

    pub fn priority_classes(&self) -> &Table<PriorityClass> {
        &self.priority_classes
    }

    pub fn namespaces(&self) -> &Table<NamespaceObject> {
        &self.namespaces
    }

    pub fn services(&self) -> &Table<Service> {
        &self.services
    }

    pub fn claims(&self) -> &Table<Claim> {
        &self.claims
    }

    pub fn volumes(&self) -> &Table<Volume> {
        &self.volumes
    }

    pub fn storage_classes(&self) -> &Table<StorageClass> {
        &self.storage_classes
    }

    pub fn csi_nodes(&self) -> &Table<CsiNode> {
        &self.csi_nodes
    }

    pub fn csi_drivers(&self) -> &Table<CsiDriver> {
        &self.csi_drivers
    }

    pub fn storage_capacities(&self) -> &Table<StorageCapacity> {
        &self.storage_capacities
    }

    /// Whether the scheduler compares a new volume of this class with the free capacity of the storage (upstream
    /// `hasEnoughCapacity`). False while CSIDrivers are unknown.
    pub fn publishes_capacity(&self, class: &Name) -> bool {
        let class = self.storage_classes.get(class).filter(|class| class.waits_for_consumer);
        let driver = class.and_then(|class| self.csi_drivers.get(&class.provisioner));
        driver.is_some_and(|driver| driver.publishes_capacity)
    }

    /// Whether a claim waits for a new volume that the scheduler compares with the free capacity of the storage.
    pub fn needs_storage_capacities(&self) -> bool {
        let waits = |claim: &Arc<Claim>| claim.volume.is_empty() && self.publishes_capacity(&claim.class);
        self.csi_drivers.iter().any(|driver| driver.publishes_capacity) && self.claims.iter().any(waits)
    }

    /// Whether a controller attaches a volume to nodes. If the CSIDriver object of the volume's driver is missing or
    /// unknown, a controller is assumed to attach the volume (upstream `skipAttach`).
    pub fn is_attached(&self, volume: &Volume) -> bool {
        let driver = volume.handle.as_ref().and_then(|(driver, _)| self.csi_drivers.get(driver));
        !volume.needs_no_attachment && driver.is_none_or(|driver| driver.attaches)
    }

    pub fn quotas(&self) -> &Table<Quota> {
        &self.quotas
    }

    pub fn devices(&self) -> &DeviceTables {
        &self.devices
    }

    pub fn cron_jobs(&self) -> &Table<CronJob> {
        &self.cron_jobs
    }

    pub fn node_claims(&self) -> &KnownNodeClaims {
        &self.node_claims
    }

    pub fn health_checks(&self) -> &KnownHealthChecks {
        &self.health_checks
    }

    /// The kubelet's periods for the graceful shutdown of a node, or why they could not be read; `None` if they were
    /// not read.
    pub fn shutdown_periods(&self, node: &NodeName) -> Option<&Result<ShutdownPeriods, Name>> {
        self.shutdown_periods.get(node)
    }

    pub fn volume_attachments(&self) -> &KnownVolumeAttachments {
        &self.volume_attachments
    }

    pub fn operator_settings(&self) -> &OperatorSettings {
        &self.operator_settings
    }

    pub fn autoscalers(&self) -> &KnownAutoscalers {
        &self.autoscalers
    }

    /// Whether a pod, or the template of a workload, claims devices, or requests an extended resource that at least one
    /// node does not have, so that devices may provide it.
    pub fn needs_devices(&self) -> bool {
        self.device_demand.needs_devices(&self.nodes)
    }

    /// Whether a pod, or the template of a workload, gets claims from ResourceClaimTemplates.
    pub fn needs_claim_templates(&self) -> bool {
        self.device_demand.needs_templates()
    }

    /// Whether a CronJob started a Job that has not finished.
    pub fn needs_cron_jobs(&self) -> bool {
        self.started_by_cron_jobs > 0
    }

    /// The quotas of a namespace, by name.
    pub fn quotas_in(&self, namespace: &Namespace) -> impl Iterator<Item = &Arc<Quota>> {
        in_namespace(&self.quotas, namespace, |quota| &quota.key)
    }

    /// The services that select a pod with these labels, by name.
    pub fn services_of<'a>(
        &'a self,
        namespace: &Namespace,
        labels: &'a Labels,
    ) -> impl Iterator<Item = &'a Arc<Service>> {
        in_namespace(&self.services, namespace, |service| &service.key)
            .filter(move |service| service.selects(labels))
    }

    /// The controller manager's Lease; none if it does not exist or may not be read.
    pub fn leader(&self) -> Option<&LeaderLease> {
        self.leader.as_ref()
    }

    /// The Lease of `kordon controller`; none if it does not exist, may not be read or was not read.
    pub fn kordon_lease(&self) -> Option<&LeaderLease> {
        self.kordon_lease.as_ref()
    }

    /// The clock by which the cluster wrote the times in its objects.
    pub fn clock(&self) -> ClusterClock {
        self.clock
    }

    /// Sets the clock of the cluster after a new measurement.
    pub fn set_clock(&mut self, clock: ClusterClock) {
        self.clock = clock;
    }

    /// Converts a time by the cluster's clock to a time by our clock.
    pub fn local(&self, time: ClusterTime) -> Timestamp {
        self.clock.local(time)
    }

    pub fn node(&self, name: &NodeName) -> Option<&Arc<Node>> {
        self.nodes.get(name)
    }

    pub fn lease(&self, node: &NodeName) -> Option<&Arc<Lease>> {
        self.leases.get(node)
    }

    /// Converts a time that a pod's kubelet stated in the pod's status to the API server's clock. The result is exact to
    /// about a second. The difference of the clocks is that of the last renewal of the node's Lease; without a
    /// difference worth reporting ([`Lease::clock_difference`]), the time is returned as it is.
    pub fn stated_by_kubelet(&self, pod: &Pod, stated: ClusterTime) -> ClusterTime {
        let lease = pod.node.as_ref().and_then(|node| self.lease(node));
        lease.and_then(|lease| lease.clock_difference()).map_or(stated, |clock| stated - clock.span())
    }

    pub fn pod(&self, key: &Key) -> Option<&Arc<Pod>> {
        self.pods.get(key)
    }

    /// The pods bound to a node, by name.
    pub fn pods_on(&self, node: &NodeName) -> impl Iterator<Item = &Arc<Pod>> {
        self.by_node.pods(node).iter()
    }

    /// The pods on a node that a drain removes by default: neither static nor of a DaemonSet.
    pub fn workload_pods(&self, node: &NodeName) -> impl Iterator<Item = &Arc<Pod>> {
        self.pods_on(node).filter(|pod| pod.is_workload())
    }

    /// The pods whose controller has this uid, by name.
    pub fn pods_owned_by(&self, owner: &Uid) -> impl Iterator<Item = &Arc<Pod>> {
        self.by_owner.pods(owner).iter()
    }

    /// Number of pods whose controller has this uid.
    pub fn count_owned_by(&self, owner: &Uid) -> usize {
        self.by_owner.pods(owner).len()
    }

    /// The pods whose deletion has started, by namespace and name.
    pub fn terminating_pods(&self) -> impl Iterator<Item = &Arc<Pod>> {
        self.terminating.keys().map(|key| self.pods.get(key).expect("the index follows the table"))
    }

    /// The pods that wait for a node, by namespace and name.
    pub fn unscheduled_pods(&self) -> impl Iterator<Item = &Arc<Pod>> {
        self.unscheduled.keys().map(|key| self.pods.get(key).expect("the index follows the table"))
    }

    /// How many pods wait for a node.
    pub fn unscheduled_count(&self) -> usize {
        self.unscheduled.len()
    }

    /// The pods of a namespace, by name.
    pub fn pods_in(&self, namespace: &Namespace) -> impl Iterator<Item = &Arc<Pod>> {
        in_namespace(&self.pods, namespace, |pod| &pod.key)
    }

    /// The budgets that cover a pod, by name.
    pub fn budgets_of<'a>(&'a self, pod: &'a Pod) -> impl Iterator<Item = &'a Arc<Budget>> {
        in_namespace(&self.budgets, &pod.key.namespace, |budget| &budget.key)
            .filter(|budget| budget.covers(pod))
    }

    /// How well the objects of a kind are known.
    pub fn known(&self, kind: FeedKind) -> Known {
        let watched = self.watched(kind);
        let read = || Scope::all_of(kind).and_then(|scope| self.scopes.get(&scope)).cloned();
        if watched.is_known() { watched } else { read().unwrap_or(watched) }
    }

    /// How well the objects of a kind are known from the watch of the kind alone.
    fn watched(&self, kind: FeedKind) -> Known {
        self.knowledge.of(kind, self.is_listed(kind))
    }

    /// Why the objects of a kind are unknown or outdated (a gap); none if they are known and up to date.
    pub fn gap(&self, kind: FeedKind) -> Option<Gap> {
        gap(kind, self.known(kind))
    }

    /// The kinds among `kinds` whose objects are unknown or outdated (gaps), each with the reason.
    pub fn gaps(&self, kinds: impl IntoIterator<Item = FeedKind>) -> Gaps {
        Gaps(kinds.into_iter().filter_map(|kind| self.gap(kind)).collect())
    }

    /// The gaps (unknown or outdated kinds) of several scopes. Gaps of the same kind and reason are merged.
    pub fn gaps_in(&self, scopes: impl IntoIterator<Item = Scope>) -> Gaps {
        let gap = |scope: Scope| gap(scope.kind(), self.known_in(&scope));
        scopes.into_iter().filter_map(gap).collect()
    }

    /// How many objects of a kind are known.
    pub fn count(&self, kind: FeedKind) -> usize {
        match kind {
            FeedKind::Nodes => self.nodes.len(),
            FeedKind::Leases => self.leases.len(),
            FeedKind::Pods => self.pods.len(),
            FeedKind::Budgets => self.budgets.len(),
            FeedKind::Workloads(kind) => self.workloads(kind).len(),
            FeedKind::PriorityClasses => self.priority_classes.len(),
            FeedKind::Namespaces => self.namespaces.len(),
            FeedKind::Services => self.services.len(),
            FeedKind::Claims => self.claims.len(),
            FeedKind::Volumes => self.volumes.len(),
            FeedKind::StorageClasses => self.storage_classes.len(),
            FeedKind::CsiNodes => self.csi_nodes.len(),
            FeedKind::CsiDrivers => self.csi_drivers.len(),
            FeedKind::Quotas => self.quotas.len(),
            FeedKind::DeviceClasses
            | FeedKind::ResourceClaims
            | FeedKind::ResourceSlices
            | FeedKind::DeviceTaintRules
            | FeedKind::ClaimTemplates => self.devices.count(kind).unwrap_or_default(),
            FeedKind::CronJobs => self.cron_jobs.len(),
            FeedKind::StorageCapacities => self.storage_capacities.len(),
            FeedKind::Leader => usize::from(self.leader.is_some()),
        }
    }

    fn is_listed(&self, kind: FeedKind) -> bool {
        match kind {
            FeedKind::Nodes => self.nodes.is_synced(),
            FeedKind::Leases => self.leases.is_synced(),
            FeedKind::Pods => self.pods.is_synced(),
            FeedKind::Budgets => self.budgets.is_synced(),
            FeedKind::Workloads(kind) => self.workloads(kind).is_synced(),
            FeedKind::PriorityClasses => self.priority_classes.is_synced(),
            FeedKind::Namespaces => self.namespaces.is_synced(),
            FeedKind::Services => self.services.is_synced(),
            FeedKind::Claims => self.claims.is_synced(),
            FeedKind::Volumes => self.volumes.is_synced(),
            FeedKind::StorageClasses => self.storage_classes.is_synced(),
            FeedKind::CsiNodes => self.csi_nodes.is_synced(),
            FeedKind::CsiDrivers => self.csi_drivers.is_synced(),
            FeedKind::Quotas => self.quotas.is_synced(),
            FeedKind::DeviceClasses
            | FeedKind::ResourceClaims
            | FeedKind::ResourceSlices
            | FeedKind::DeviceTaintRules
            | FeedKind::ClaimTemplates => self.devices.is_listed(kind).unwrap_or_default(),
            FeedKind::CronJobs => self.cron_jobs.is_synced(),
            FeedKind::StorageCapacities => self.storage_capacities.is_synced(),
            FeedKind::Leader => self.leader.is_some(),
        }
    }

    /// Totals over the pods of a node, such as their number and the sum of their requests.
    pub fn load(&self, node: &NodeName) -> NodeLoad {
        self.loads.get(node).copied().unwrap_or_default()
    }

    /// Whether every object of the scope is known. If so, an object that is in the scope but not in this cluster does
    /// not exist.
    pub fn knows(&self, scope: &Scope) -> bool {
        self.known_in(scope).is_known()
    }

    /// How well the objects of a scope (set of objects) are known. They are known if all objects of their kind are
    /// known, if the scope itself was read, or if another scope was read that [covers](Scope::covers) it.
    pub fn known_in(&self, scope: &Scope) -> Known {
        let all = self.known(scope.kind());
        if all.is_known() {
            return all;
        }
        let own = self.scopes.get(scope);
        let covers = |(other, known): &(&Scope, &Known)| known.is_known() && other.covers(scope);
        let covering = || self.scopes.iter().find(covers).map(|(_, known)| known);
        let part = own.filter(|known| known.is_known()).or_else(covering).or(own);
        // The server may forbid reading all objects of a kind, but allow reading a part of them.
        part.cloned().unwrap_or_else(|| self.watched(scope.kind()))
    }
}

fn gap(kind: FeedKind, known: Known) -> Option<Gap> {
    let is_assumed = kind.may_be_missing() && known != Known::NotListed;
    (known != Known::Live && !is_assumed).then_some(Gap { kind, known })
}

/// The rows of a table in one namespace, by name.
fn in_namespace<'a, T: TableObject<Key = Key> + PartialEq>(
    table: &'a Table<T>,
    namespace: &Namespace,
    key: impl Fn(&T) -> &Key,
) -> impl Iterator<Item = &'a Arc<T>> {
    let namespace = namespace.clone();
    let from = Key { namespace: namespace.clone(), name: Name::default() };
    table.iter_from(&from).take_while(move |object| key(object).namespace == namespace)
}
