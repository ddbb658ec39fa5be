//! How well each kind of object is known. Objects of an unknown kind may still exist. All code that answers a question
//! therefore calls [`Cluster::gap`](super::Cluster::gap) for the kinds that the answer needs, and names the missing
//! kinds.

use std::{collections::BTreeMap, fmt};

use minicbor::{Decode, Encode};

use super::{Name, WorkloadKind, encoding::EncodingContext};
use kordon_time::Timestamp;

/// A kind of object that is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub enum FeedKind {
    #[n(0)]
    Nodes,
    #[n(1)]
    Leases,
    #[n(2)]
    Pods,
    #[n(3)]
    Budgets,
    #[n(4)]
    Workloads(#[n(0)] WorkloadKind),
    #[n(5)]
    PriorityClasses,
    #[n(6)]
    Namespaces,
    #[n(7)]
    Services,
    #[n(8)]
    Claims,
    #[n(9)]
    Volumes,
    #[n(10)]
    StorageClasses,
    #[n(11)]
    CsiNodes,
    /// The Lease kube-system/kube-controller-manager.
    #[n(12)]
    Leader,
    #[n(13)]
    Quotas,
    #[n(14)]
    DeviceClasses,
    #[n(15)]
    ResourceClaims,
    #[n(16)]
    ResourceSlices,
    #[n(17)]
    DeviceTaintRules,
    #[n(18)]
    CsiDrivers,
    #[n(19)]
    ClaimTemplates,
    #[n(20)]
    CronJobs,
    #[n(21)]
    StorageCapacities,
}

/// The part of a prediction that the objects of a kind decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decides {
    /// Objects of the kind decide whether and how pods can be removed. They also influence where pods land.
    Removal,
    /// Objects of the kind decide whether nodes are alive.
    Heartbeats,
    /// Objects of the kind decide only where pods land. They affect no other part of a prediction.
    Placement,
    /// Objects of the kind decide when the replacement of a pod is created.
    Replacement,
    /// Objects of the kind decide when the replacement of a pod starts. If they are unknown, they are not reported as
    /// missing, because kordon assumes what is true of most of them.
    Attachment,
    /// Objects of the kind decide which devices pods get, and which devices are tainted. Most clusters have no devices.
    Devices,
    /// Objects of the kind add details to an answer that kordon gives without them, too: what the claims of a new pod
    /// ask for, when the next Job starts, and where new volumes fit. If they are unknown, they are not reported as
    /// missing.
    Details,
    /// Objects of the kind decide nothing: plans and placements do not depend on them.
    Nothing,
}

impl FeedKind {
    pub const ALL: [Self; 27] = [
        Self::Nodes,
        Self::Leases,
        Self::Pods,
        Self::Budgets,
        Self::Workloads(WorkloadKind::ReplicaSet),
        Self::Workloads(WorkloadKind::Deployment),
        Self::Workloads(WorkloadKind::StatefulSet),
        Self::Workloads(WorkloadKind::ReplicationController),
        Self::Workloads(WorkloadKind::DaemonSet),
        Self::Workloads(WorkloadKind::Job),
        Self::PriorityClasses,
        Self::Namespaces,
        Self::Services,
        Self::Claims,
        Self::Volumes,
        Self::StorageClasses,
        Self::CsiNodes,
        Self::CsiDrivers,
        Self::Leader,
        Self::Quotas,
        Self::DeviceClasses,
        Self::ResourceClaims,
        Self::ResourceSlices,
        Self::DeviceTaintRules,
        Self::ClaimTemplates,
        Self::CronJobs,
        Self::StorageCapacities,
    ];

    /// The kinds that decide whether and how pods can be removed. Kinds that decide only about heartbeats, placement or
    /// replacements are left out.
    pub const REMOVAL: [Self; 10] = Self::that_decide(&[Decides::Removal]);

    /// The kinds that only placement reads.
    pub const PLACEMENT: [Self; 6] = Self::that_decide(&[Decides::Placement]);

    /// The kinds that only predictions of replacements need. Such predictions also need the pods.
    pub const REPLACEMENTS: [Self; 8] =
        Self::that_decide(&[Decides::Placement, Decides::Replacement, Decides::Attachment]);

    /// The kinds that are read from every cluster. Those that are read [on demand](Self::ON_DEMAND) are left out.
    pub const ALWAYS: [Self; 20] = Self::that_decide(&[
        Decides::Removal,
        Decides::Heartbeats,
        Decides::Placement,
        Decides::Replacement,
        Decides::Attachment,
        Decides::Nothing,
    ]);

    /// The kinds that decide which devices pods get, and which devices are tainted.
    pub const DEVICES: [Self; 4] = Self::that_decide(&[Decides::Devices]);

    /// The kinds that are read only once other objects show that an answer depends on them, such as devices once a pod
    /// needs devices ([`Cluster::needs_devices`](super::Cluster::needs_devices)).
    pub const ON_DEMAND: [Self; 7] = Self::that_decide(&[Decides::Devices, Decides::Details]);

    /// The kinds that must be known in every cluster for the state of the cluster, headroom, plans, placements and
    /// forecasts.
    pub const PREDICTION: [Self; 19] = Self::that_decide(&[
        Decides::Removal,
        Decides::Heartbeats,
        Decides::Placement,
        Decides::Replacement,
        Decides::Attachment,
    ]);

    const fn decides(self) -> Decides {
        match self {
            Self::Nodes | Self::Pods | Self::Budgets | Self::Workloads(_) | Self::Namespaces => {
                Decides::Removal
            }
            Self::Leases => Decides::Heartbeats,
            Self::Services
            | Self::Claims
            | Self::Volumes
            | Self::StorageClasses
            | Self::CsiNodes
            | Self::PriorityClasses => Decides::Placement,
            Self::Quotas => Decides::Replacement,
            Self::CsiDrivers => Decides::Attachment,
            Self::DeviceClasses | Self::ResourceClaims | Self::ResourceSlices | Self::DeviceTaintRules => {
                Decides::Devices
            }
            Self::ClaimTemplates | Self::CronJobs | Self::StorageCapacities => Decides::Details,
            Self::Leader => Decides::Nothing,
        }
    }

    /// Whether plans may do without objects of this kind. kordon then assumes what is true of most objects of the kind
    /// and does not name the kind among the unknown kinds.
    pub(super) const fn may_be_missing(self) -> bool {
        matches!(self.decides(), Decides::Attachment | Decides::Details)
    }

    /// Returns the kinds whose [`Decides`] is in `what`, in the order of `ALL`. `COUNT` must be the number of these
    /// kinds.
    const fn that_decide<const COUNT: usize>(what: &[Decides]) -> [Self; COUNT] {
        let (mut kinds, mut count, mut place) = ([Self::Nodes; COUNT], 0, 0);
        while place < Self::ALL.len() {
            let mut asked = 0;
            while asked < what.len() {
                if what[asked] as u8 == Self::ALL[place].decides() as u8 {
                    kinds[count] = Self::ALL[place];
                    count += 1;
                }
                asked += 1;
            }
            place += 1;
        }
        assert!(count == COUNT, "one of these kinds has no place in the array");
        kinds
    }

    /// The resource as RBAC roles name it, with its API group after a dot.
    pub const fn resource(self) -> &'static str {
        match self {
            Self::Nodes => "nodes",
            Self::Leases | Self::Leader => "leases.coordination.k8s.io",
            Self::Pods => "pods",
            Self::Budgets => "poddisruptionbudgets.policy",
            Self::Workloads(WorkloadKind::ReplicaSet) => "replicasets.apps",
            Self::Workloads(WorkloadKind::Deployment) => "deployments.apps",
            Self::Workloads(WorkloadKind::StatefulSet) => "statefulsets.apps",
            Self::Workloads(WorkloadKind::ReplicationController) => "replicationcontrollers",
            Self::Workloads(WorkloadKind::DaemonSet) => "daemonsets.apps",
            Self::Workloads(WorkloadKind::Job) => "jobs.batch",
            Self::PriorityClasses => "priorityclasses.scheduling.k8s.io",
            Self::Namespaces => "namespaces",
            Self::Services => "services",
            Self::Claims => "persistentvolumeclaims",
            Self::Volumes => "persistentvolumes",
            Self::StorageClasses => "storageclasses.storage.k8s.io",
            Self::CsiNodes => "csinodes.storage.k8s.io",
            Self::CsiDrivers => "csidrivers.storage.k8s.io",
            Self::Quotas => "resourcequotas",
            Self::DeviceClasses => "deviceclasses.resource.k8s.io",
            Self::ResourceClaims => "resourceclaims.resource.k8s.io",
            Self::ResourceSlices => "resourceslices.resource.k8s.io",
            Self::DeviceTaintRules => "devicetaintrules.resource.k8s.io",
            Self::ClaimTemplates => "resourceclaimtemplates.resource.k8s.io",
            Self::CronJobs => "cronjobs.batch",
            Self::StorageCapacities => "csistoragecapacities.storage.k8s.io",
        }
    }
}

impl fmt::Display for FeedKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Nodes => "nodes",
            Self::Leases => "leases",
            Self::Pods => "pods",
            Self::Budgets => "budgets",
            Self::Workloads(WorkloadKind::ReplicaSet) => "replicasets",
            Self::Workloads(WorkloadKind::Deployment) => "deployments",
            Self::Workloads(WorkloadKind::StatefulSet) => "statefulsets",
            Self::Workloads(WorkloadKind::ReplicationController) => "replicationcontrollers",
            Self::Workloads(WorkloadKind::DaemonSet) => "daemonsets",
            Self::Workloads(WorkloadKind::Job) => "jobs",
            Self::PriorityClasses => "priorityclasses",
            Self::Namespaces => "namespaces",
            Self::Services => "services",
            Self::Claims => "persistentvolumeclaims",
            Self::Volumes => "persistentvolumes",
            Self::StorageClasses => "storageclasses",
            Self::CsiNodes => "csinodes",
            Self::CsiDrivers => "csidrivers",
            Self::Leader => "controller lease",
            Self::Quotas => "resourcequotas",
            Self::DeviceClasses => "deviceclasses",
            Self::ResourceClaims => "resourceclaims",
            Self::ResourceSlices => "resourceslices",
            Self::DeviceTaintRules => "devicetaintrules",
            Self::ClaimTemplates => "resourceclaimtemplates",
            Self::CronJobs => "cronjobs",
            Self::StorageCapacities => "csistoragecapacities",
        })
    }
}

/// How well the objects of a kind are known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Known {
    /// The objects are known as the API server has them now.
    Live,
    /// The objects are known as they were when their watch broke.
    Stale { since: Timestamp },
    /// The objects are unknown until they have been listed for the first time.
    NotListed,
    /// The objects are unknown: the server forbids listing them, with this error.
    Forbidden { error: Name },
    /// The objects are unknown: this flag tells kordon not to read them.
    Off { flag: &'static str },
    /// The objects are unknown: kordon reads files instead of a cluster, and the files do not have this kind.
    Absent,
}

/// Error with which the server of objects from files refuses a kind that is not in the files.
pub const NOT_IN_FILES: &str = "the files have no objects of this kind";

impl Known {
    /// The state of objects whose list the server refused with this error.
    pub fn from_refusal(error: &str) -> Self {
        if error.contains(NOT_IN_FILES) { Self::Absent } else { Self::Forbidden { error: error.into() } }
    }

    /// Whether the objects are known, now or at an earlier time.
    pub const fn is_known(&self) -> bool {
        match self {
            Self::Live | Self::Stale { .. } => true,
            Self::NotListed | Self::Forbidden { .. } | Self::Off { .. } | Self::Absent => false,
        }
    }

    /// Whether both states have the same reason, apart from the server's error text.
    fn has_reason_of(&self, other: &Self) -> bool {
        self == other || matches!((self, other), (Self::Forbidden { .. }, Self::Forbidden { .. }))
    }

    /// Stable name of the state.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Stale { .. } => "stale",
            Self::NotListed => "notListed",
            Self::Forbidden { .. } => "forbidden",
            Self::Off { .. } => "off",
            Self::Absent => "absent",
        }
    }
}

/// A kind whose objects are needed for an answer, but are unknown or outdated.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gap {
    pub kind: FeedKind,
    /// Why the objects are unknown or outdated; never [`Known::Live`].
    pub known: Known,
}

impl Gap {
    /// The permission with which the objects would be known; none if no permission is missing.
    pub fn missing_permission(&self) -> Option<String> {
        matches!(self.known, Known::Forbidden { .. }).then(|| format!("list {}", self.kind.resource()))
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_gaps(f, &[self])
    }
}

/// Writes several gaps (unknown or outdated kinds) as one phrase. All of them must have the same reason.
fn write_gaps(f: &mut fmt::Formatter<'_>, gaps: &[&Gap]) -> fmt::Result {
    let Some(first) = gaps.first() else { return Ok(()) };
    let kinds = joined(gaps.iter().map(|gap| gap.kind.to_string()));
    let are = if matches!(gaps, [gap] if gap.kind == FeedKind::Leader) { "is" } else { "are" };
    match &first.known {
        Known::Live => write!(f, "{kinds} {are} live"),
        Known::Stale { since } => write!(f, "{kinds} {are} as of {}", since.to_time()),
        Known::NotListed => write!(f, "{kinds} {are} not listed yet"),
        Known::Forbidden { .. } => {
            let permissions = joined(gaps.iter().map(|gap| format!("list {}", gap.kind.resource())));
            let word = if gaps.len() == 1 { "permission" } else { "permissions" };
            write!(f, "{kinds} cannot be listed (missing {word}: {permissions})")
        }
        Known::Off { flag } => write!(f, "{kinds} {are} not read ({flag})"),
        Known::Absent => write!(f, "{kinds} {are} not in the files"),
    }
}

fn joined(all: impl Iterator<Item = String>) -> String {
    all.collect::<Vec<_>>().join(", ")
}

/// Several gaps (unknown or outdated kinds), possibly with different reasons.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gaps(pub Vec<Gap>);

impl Gaps {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Keeps only the kinds whose objects are unknown.
    pub fn unknown(self) -> Self {
        Self(self.0.into_iter().filter(|gap| !gap.known.is_known()).collect())
    }

    /// Keeps only the kinds whose objects have not been listed yet.
    pub fn not_listed(self) -> Self {
        Self(self.0.into_iter().filter(|gap| gap.known == Known::NotListed).collect())
    }

    /// Keeps only the kinds whose objects are known, but outdated.
    pub fn known(self) -> Self {
        Self(self.0.into_iter().filter(|gap| gap.known.is_known()).collect())
    }

    pub fn contains(&self, kind: FeedKind) -> bool {
        self.0.iter().any(|gap| gap.kind == kind)
    }

    /// Whether one of the kinds is unknown because of a missing permission.
    pub fn needs_permission(&self) -> bool {
        self.0.iter().any(|gap| gap.missing_permission().is_some())
    }
}

/// Keeps one gap (unknown or outdated kind) for each kind and reason, sorted.
impl FromIterator<Gap> for Gaps {
    fn from_iter<I: IntoIterator<Item = Gap>>(gaps: I) -> Self {
        let mut gaps: Vec<Gap> = gaps.into_iter().collect();
        gaps.sort_unstable();
        gaps.dedup_by(|gap, before| gap.kind == before.kind && gap.known.has_reason_of(&before.known));
        Self(gaps)
    }
}

/// Writes gaps with the same reason together: `pods, services are not listed yet; budgets are not read (--no-pods)`.
impl fmt::Display for Gaps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest: Vec<&Gap> = self.0.iter().collect();
        let mut separator = "";
        while let Some(first) = rest.first().map(|gap| gap.known.clone()) {
            let (same, others): (Vec<&Gap>, Vec<&Gap>) =
                rest.into_iter().partition(|gap| gap.known.has_reason_of(&first));
            f.write_str(separator)?;
            write_gaps(f, &same)?;
            (rest, separator) = (others, "; ");
        }
        Ok(())
    }
}

/// How well each kind is known.
#[derive(Clone, Debug, Default)]
pub(super) struct Knowledge {
    /// State of each kind, as its watch reported it. The state of a kind without a report depends on whether
    /// its list is complete.
    kinds: BTreeMap<FeedKind, Known>,
}

impl Knowledge {
    pub fn set(&mut self, kind: FeedKind, known: Known) -> bool {
        let before = self.kinds.insert(kind, known.clone());
        before.as_ref() != Some(&known)
    }

    /// How well the objects of a kind are known. `is_listed` says whether the list of the kind is complete.
    pub fn of(&self, kind: FeedKind, is_listed: bool) -> Known {
        match (self.kinds.get(&kind), is_listed) {
            // The list is complete, so the kind is live, although the watch has not reported this yet.
            (Some(Known::NotListed), true) | (None, true) => Known::Live,
            (None, false) => Known::NotListed,
            (Some(known), _) => known.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Change, Cluster, ObjectEvent};

    fn apply(cluster: &mut Cluster, changes: impl IntoIterator<Item = Change>) {
        changes.into_iter().for_each(|change| cluster.apply(change, &mut Vec::new()));
    }

    /// Number of variants of an enum in a source file.
    fn variants(source: &str, of: &str) -> usize {
        let (_, rest) = source.split_once(&format!("pub enum {of} {{\n")).expect("it is defined there");
        let (body, _) = rest.split_once("\n}").expect("it ends");
        body.lines().map(str::trim).filter(|line| !line.starts_with("//") && line.ends_with(',')).count()
    }

    #[test]
    fn no_kind_is_forgotten() {
        let workloads = variants(include_str!("owner.rs"), "WorkloadKind");
        assert_eq!(WorkloadKind::ALL.len(), workloads);
        let kinds = variants(include_str!("knowledge.rs"), "FeedKind") - 1 + workloads;
        let all: std::collections::BTreeSet<FeedKind> = FeedKind::ALL.into();
        assert_eq!((FeedKind::ALL.len(), all.len()), (kinds, kinds));
    }

    #[test]
    fn predictions_rest_on_all_kinds_but_those_that_decide_nothing() {
        let unused = |kind: &FeedKind| !FeedKind::PREDICTION.contains(kind);
        let unused: Vec<FeedKind> = FeedKind::ALWAYS.into_iter().filter(unused).collect();
        assert_eq!(unused, [FeedKind::Leader]);
        let parts = FeedKind::REMOVAL.into_iter().chain(FeedKind::PLACEMENT);
        assert!(parts.into_iter().all(|kind| FeedKind::PREDICTION.contains(&kind)));
    }

    #[test]
    fn a_kind_is_known_from_its_first_complete_list_on() {
        let mut cluster = Cluster::default();
        assert_eq!(cluster.known(FeedKind::Pods), Known::NotListed);
        apply(&mut cluster, [Change::Pod(ObjectEvent::ListStarted)]);
        assert_eq!(cluster.known(FeedKind::Pods), Known::NotListed);
        apply(&mut cluster, [Change::Pod(ObjectEvent::ListDone)]);
        assert_eq!(cluster.gap(FeedKind::Pods), None);
    }

    #[test]
    fn a_gap_names_the_missing_permission_or_the_flag() {
        let text = |known| Gap { kind: FeedKind::Budgets, known }.to_string();
        let forbidden = Known::Forbidden { error: "no".into() };
        let list = "budgets cannot be listed (missing permission: list poddisruptionbudgets.policy)";
        assert_eq!(text(forbidden), list);
        assert_eq!(text(Known::Off { flag: "--no-pods" }), "budgets are not read (--no-pods)");
        assert_eq!(text(Known::NotListed), "budgets are not listed yet");
        let since = Timestamp::from_secs(0);
        assert_eq!(text(Known::Stale { since }), "budgets are as of 1970-01-01T00:00:00Z");
    }

    #[test]
    fn a_kind_that_is_forbidden_in_several_namespaces_is_one_gap() {
        let forbidden = |error: &str| Known::Forbidden { error: error.into() };
        let gap = |error| Gap { kind: FeedKind::Budgets, known: forbidden(error) };
        let gaps: Gaps = [gap("not in a"), gap("not in b")].into_iter().collect();
        assert_eq!(
            gaps.to_string(),
            "budgets cannot be listed (missing permission: list poddisruptionbudgets.policy)"
        );
    }

    #[test]
    fn gaps_with_the_same_reason_are_reported_together() {
        let gap = |kind, known| Gap { kind, known };
        let forbidden = |error: &str| Known::Forbidden { error: error.into() };
        let gaps = Gaps(vec![
            gap(FeedKind::Pods, forbidden("no pods")),
            gap(FeedKind::Services, Known::NotListed),
            gap(FeedKind::Namespaces, forbidden("no namespaces")),
        ]);
        let text = "pods, namespaces cannot be listed (missing permissions: list pods, list namespaces); \
                    services are not listed yet";
        assert_eq!(gaps.to_string(), text);
    }
}
