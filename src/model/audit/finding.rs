//! Findings of an audit: why a drain does not end, or what is lost by it.

use std::{collections::BTreeSet, fmt};

use kordon_core::cluster::{Key, Name, Namespace, NodeName};

/// Severity of a cause, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingSeverity {
    /// The drain does not empty the node until something is changed.
    Error,
    /// The drain may wait, or something is lost or down for a while.
    Warning,
    /// Nothing is lost. The finding is only informative.
    Note,
}

impl FindingSeverity {
    pub const ALL: [Self; 3] = [Self::Error, Self::Warning, Self::Note];

    /// Name of the severity in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// Kind of a cause, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingKind {
    /// A budget can never allow an eviction, however healthy its pods are.
    BudgetNeverAllows,
    /// Several budgets select a pod. The API server refuses its eviction.
    OverlappingBudgets,
    /// Unhealthy pods keep a budget from allowing evictions.
    UnhealthyUnderBudget,
    /// A budget stays used up, because the replacements of the pods that left first do not become healthy.
    ReplacementsNotHealthy,
    /// An operator that owns the budget needs a ready replica on another node, and has none.
    OperatorWithoutReplica,
    /// The drain does not empty the node: its pods come back.
    ComesBack,
    /// A finalizer keeps the pod's object.
    Finalizer,
    /// The kubelet of the node is down, so its pods stay Terminating.
    KubeletDown,
    /// The budget of an operator allows no eviction. The operator moves the pod itself.
    OperatorBudget,
    /// A budget allows no eviction now, but may later.
    BudgetHasNoRoom,
    /// The disruption controller has not computed the budget, or cannot.
    BudgetNotComputed,
    /// No controller creates the pod again.
    NotRecreated,
    /// A Job fails.
    JobFails,
    /// An index of a Job fails for good. The Job continues.
    IndexFails,
    /// The pod's replacement finds no node.
    NoNodeForReplacement,
    /// The pod's replacement is not created, or does not start, until something else changes.
    ReplacementStuck,
    /// A ResourceQuota refuses the pod's replacement.
    QuotaRefuses,
    /// Data in a volume of the pod is lost with the pod: an emptyDir, a generic ephemeral volume, or the volume of a
    /// claim that is being deleted.
    DataLost,
    /// The pod's volume exists on its node only.
    LocalVolume,
    /// The only replica of a workload leaves, and no budget protects it.
    SingleReplica,
    /// The namespace is being deleted: the API server refuses evictions there.
    NamespaceTerminating,
    /// The outcome of the pod in a drain is not known.
    NotKnown,
    /// The operator (software) that manages the pod first moves the pod's role, such as primary, to another node.
    Switchover,
    /// The pod's volume ties its replacement to a zone.
    ZonalVolume,
    /// The pod uses files of its node.
    HostPath,
    /// An annotation of the pod keeps an autoscaler from evicting the pod, or from removing its node.
    KeepsNode,
    /// An admission webhook is asked about evictions.
    EvictionWebhook,
}

impl FindingKind {
    pub const ALL: [Self; 27] = [
        Self::BudgetNeverAllows,
        Self::OverlappingBudgets,
        Self::UnhealthyUnderBudget,
        Self::ReplacementsNotHealthy,
        Self::OperatorWithoutReplica,
        Self::ComesBack,
        Self::Finalizer,
        Self::KubeletDown,
        Self::OperatorBudget,
        Self::BudgetHasNoRoom,
        Self::BudgetNotComputed,
        Self::NotRecreated,
        Self::JobFails,
        Self::IndexFails,
        Self::NoNodeForReplacement,
        Self::ReplacementStuck,
        Self::QuotaRefuses,
        Self::DataLost,
        Self::LocalVolume,
        Self::SingleReplica,
        Self::NamespaceTerminating,
        Self::NotKnown,
        Self::Switchover,
        Self::ZonalVolume,
        Self::HostPath,
        Self::KeepsNode,
        Self::EvictionWebhook,
    ];

    pub const fn severity(self) -> FindingSeverity {
        match self {
            Self::BudgetNeverAllows
            | Self::OverlappingBudgets
            | Self::UnhealthyUnderBudget
            | Self::ReplacementsNotHealthy
            | Self::OperatorWithoutReplica
            | Self::ComesBack
            | Self::Finalizer
            | Self::KubeletDown => FindingSeverity::Error,
            Self::OperatorBudget
            | Self::BudgetHasNoRoom
            | Self::BudgetNotComputed
            | Self::NotRecreated
            | Self::JobFails
            | Self::IndexFails
            | Self::NoNodeForReplacement
            | Self::ReplacementStuck
            | Self::QuotaRefuses
            | Self::DataLost
            | Self::LocalVolume
            | Self::SingleReplica
            | Self::NamespaceTerminating
            | Self::NotKnown => FindingSeverity::Warning,
            Self::Switchover
            | Self::ZonalVolume
            | Self::HostPath
            | Self::KeepsNode
            | Self::EvictionWebhook => FindingSeverity::Note,
        }
    }

    /// Name of the kind in reports. It never changes.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BudgetNeverAllows => "budgetNeverAllows",
            Self::OverlappingBudgets => "overlappingBudgets",
            Self::UnhealthyUnderBudget => "unhealthyUnderBudget",
            Self::ReplacementsNotHealthy => "replacementsNotHealthy",
            Self::OperatorWithoutReplica => "operatorWithoutReplica",
            Self::ComesBack => "comesBack",
            Self::Finalizer => "finalizer",
            Self::KubeletDown => "kubeletDown",
            Self::OperatorBudget => "operatorBudget",
            Self::BudgetHasNoRoom => "budgetHasNoRoom",
            Self::BudgetNotComputed => "budgetNotComputed",
            Self::NotRecreated => "notRecreated",
            Self::JobFails => "jobFails",
            Self::IndexFails => "jobIndexFails",
            Self::NoNodeForReplacement => "noNodeForReplacement",
            Self::ReplacementStuck => "replacementStuck",
            Self::QuotaRefuses => "quotaRefuses",
            Self::DataLost => "dataLost",
            Self::LocalVolume => "localVolume",
            Self::SingleReplica => "singleReplica",
            Self::NamespaceTerminating => "namespaceTerminating",
            Self::NotKnown => "notKnown",
            Self::Switchover => "switchover",
            Self::ZonalVolume => "zonalVolume",
            Self::HostPath => "hostPath",
            Self::KeepsNode => "keepsNode",
            Self::EvictionWebhook => "evictionWebhook",
        }
    }

    /// Heading of the findings of this kind.
    pub const fn title(self) -> &'static str {
        match self {
            Self::BudgetNeverAllows => "Budgets that can never allow an eviction",
            Self::OverlappingBudgets => "Pods with more than one budget",
            Self::UnhealthyUnderBudget => "Budgets held up by pods that are not healthy",
            Self::ReplacementsNotHealthy => "Budgets used up by replacements that do not become healthy",
            Self::OperatorWithoutReplica => "Operators without a ready replica on another node",
            Self::ComesBack => "Pods that come back to the drained node",
            Self::Finalizer => "Pods held by a finalizer",
            Self::KubeletDown => "Nodes whose kubelet is down",
            Self::OperatorBudget => "Budgets that an operator lifts itself",
            Self::BudgetHasNoRoom => "Budgets without room now",
            Self::BudgetNotComputed => "Budgets that the disruption controller has not computed",
            Self::NotRecreated => "Pods that no controller recreates",
            Self::JobFails => "Jobs that fail",
            Self::IndexFails => "Indexes of Jobs that fail",
            Self::NoNodeForReplacement => "Replacements that find no node",
            Self::ReplacementStuck => "Replacements that wait for something else",
            Self::QuotaRefuses => "Replacements that a quota refuses",
            Self::DataLost => "Data that is lost with its pod",
            Self::LocalVolume => "Volumes that exist on one node only",
            Self::SingleReplica => "Single replicas without a budget",
            Self::NamespaceTerminating => "Pods in namespaces that are being deleted",
            Self::NotKnown => "Pods of which kordon cannot say what becomes of them",
            Self::Switchover => "Roles that an operator moves first",
            Self::ZonalVolume => "Volumes that tie pods to a zone",
            Self::HostPath => "Pods that use files of their node",
            Self::KeepsNode => "Pods that keep an autoscaler from their node",
            Self::EvictionWebhook => "Webhooks that are asked about evictions",
        }
    }
}

/// The object that a cause is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FindingSubject {
    /// Kind of the object, as in `PodDisruptionBudget`.
    pub kind: Name,
    /// Namespace of the object; empty for objects without one.
    pub namespace: Namespace,
    /// Name of the object; several names are separated by commas.
    pub name: Name,
}

impl FindingSubject {
    pub fn new(kind: impl Into<Name>, key: &Key) -> Self {
        Self { kind: kind.into(), namespace: key.namespace.clone(), name: key.name.clone() }
    }

    /// Creates the subject for an object without a namespace.
    pub fn for_cluster_object(kind: impl Into<Name>, name: impl Into<Name>) -> Self {
        Self { kind: kind.into(), namespace: Namespace::default(), name: name.into() }
    }
}

/// Formats the object, for example `PodDisruptionBudget shop/cart`.
impl fmt::Display for FindingSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, namespace, name } = self;
        match namespace.is_empty() {
            true => write!(f, "{kind} {name}"),
            false => write!(f, "{kind} {namespace}/{name}"),
        }
    }
}

/// A change that would help against a cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    pub text: String,
    /// Command that makes the change; `None` if the user has to edit an object.
    pub command: Option<String>,
}

impl Fix {
    pub(super) fn advice(text: &str) -> Vec<Self> {
        vec![Self { text: text.into(), command: None }]
    }
}

/// A cause, with all the pods and nodes that it concerns.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    pub kind: FindingKind,
    pub subject: FindingSubject,
    /// The cause, in words.
    pub text: String,
    pub pods: BTreeSet<Key>,
    /// Workloads of the pods (the Deployment, not its ReplicaSet); a pod without a workload stands for itself.
    pub workloads: BTreeSet<FindingSubject>,
    pub nodes: BTreeSet<NodeName>,
    /// Changes that would help against the cause, the smallest first.
    pub fixes: Vec<Fix>,
}

impl Finding {
    pub fn new(kind: FindingKind, subject: FindingSubject, text: impl Into<String>) -> Self {
        Self {
            kind,
            subject,
            text: text.into(),
            pods: BTreeSet::new(),
            workloads: BTreeSet::new(),
            nodes: BTreeSet::new(),
            fixes: Vec::new(),
        }
    }

    pub const fn severity(&self) -> FindingSeverity {
        self.kind.severity()
    }

    /// Whether the finding is about a budget, which can come to block further nodes and workloads. Most other findings
    /// are about the workload itself, whose pods move from node to node.
    pub fn is_of_budget(&self) -> bool {
        self.subject.kind == *"PodDisruptionBudget"
    }

    /// Identity of the finding, which is the same in every audit: the kind of cause and the object.
    pub fn id(&self) -> String {
        format!("{} {}", self.kind.as_str(), self.subject)
    }

    /// Sort key of findings: severity, then kind, then the number of nodes, the largest first.
    pub(super) fn rank(&self) -> (FindingSeverity, FindingKind, std::cmp::Reverse<usize>, &FindingSubject) {
        (self.severity(), self.kind, std::cmp::Reverse(self.nodes.len()), &self.subject)
    }

    /// Adds the pods and nodes of another finding with the same cause, and its fixes if there are none yet. If a Job
    /// fails for different reasons in the drains of different nodes, each reason is named once.
    pub(super) fn absorb(&mut self, other: Self) {
        if self.kind == FindingKind::JobFails && !self.text.split(OR).any(|text| text == other.text) {
            self.text = format!("{}{OR}{}", self.text, other.text);
        }
        self.pods.extend(other.pods);
        self.workloads.extend(other.workloads);
        self.nodes.extend(other.nodes);
        if self.fixes.is_empty() {
            self.fixes = other.fixes;
        }
    }
}

/// Separator between the reasons of one cause, if the reason differs from drain to drain.
const OR: &str = "; by another drain: ";

/// Key of a finding. Findings with equal keys are merged.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FindingKey(FindingKind, FindingSubject);

impl FindingKey {
    pub(super) fn new(finding: &Finding) -> Self {
        Self(finding.kind, finding.subject.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_in_the_order_of_their_severity_and_have_names_of_their_own() {
        assert!(FindingKind::ALL.is_sorted());
        assert!(FindingKind::ALL.is_sorted_by_key(|kind| kind.severity()));
        let names: BTreeSet<&str> = FindingKind::ALL.map(FindingKind::as_str).into();
        assert_eq!(names.len(), FindingKind::ALL.len());
    }
}
