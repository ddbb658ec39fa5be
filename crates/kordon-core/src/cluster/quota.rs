//! ResourceQuotas: what the pods of a namespace may use in total, and what the API server counts for each pod.

use minicbor::{Decode, Encode};

use super::{
    encoding::EncodingContext,
    names::{Key, Name},
    pod::Pod,
    pod_resources::{PodResources, QosClass, QuotaSpec},
    quantity,
    table::{TableObject, Version},
};

/// A ResourceQuota, as far as it limits pods.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct Quota {
    #[n(0)]
    pub key: Key,
    #[n(1)]
    pub version: Version,
    /// `spec.scopes` and `spec.scopeSelector`: the quota counts only pods that match all of them.
    #[n(2)]
    pub scopes: Box<[QuotaScope]>,
    /// The limits in `status.hard` on resources that pods use, by name.
    #[n(3)]
    pub limits: Box<[QuotaLimit]>,
}

/// The limit that a quota sets on one resource.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct QuotaLimit {
    /// The resource's name in the quota: `pods`, `requests.cpu`.
    #[n(0)]
    pub resource: Name,
    #[n(1)]
    pub counts: QuotaCount,
    /// `status.hard`: CPU in thousandths of a core, other resources in their own unit.
    #[n(2)]
    pub hard: i64,
    /// `status.used`. For each new pod, admission adds the amount of the pod to this amount.
    #[n(3)]
    pub used: i64,
}

/// The amount that a limit counts for each pod.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub enum QuotaCount {
    /// For a limit on `pods`: one for each pod, until the pod has finished.
    #[n(0)]
    Pod,
    /// For a limit on `count/pods`: one for each pod, as long as the object exists.
    #[n(1)]
    Object,
    /// The pod's request, for limits on `requests.X`, and on `cpu`, `memory`, `ephemeral-storage` and `hugepages-X`
    /// without a prefix.
    #[n(2)]
    Request(#[n(0)] Name),
    /// The pod's limit, for limits on `limits.X`.
    #[n(3)]
    Limit(#[n(0)] Name),
}

/// A scope of a quota: a condition that the quota sets on pods.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub enum QuotaScope {
    /// `Terminating` (true): pods with `spec.activeDeadlineSeconds`; or `NotTerminating` (false): pods without.
    #[n(0)]
    Deadline(#[n(0)] bool),
    /// `BestEffort` (true) or `NotBestEffort` (false).
    #[n(1)]
    BestEffort(#[n(0)] bool),
    /// `PriorityClass`: the pod's class is one of these names (true), or none of them (false).
    #[n(2)]
    PriorityClassIn(#[n(0)] Box<[Name]>, #[n(1)] bool),
    /// `PriorityClass`: the pod has a class (true), or none (false).
    #[n(3)]
    HasPriorityClass(#[n(0)] bool),
    /// A scope of the quota that kordon does not know.
    #[n(4)]
    Other(#[n(0)] Name),
    /// `CrossNamespacePodAffinity`: pods with an affinity or anti-affinity term that names or selects namespaces.
    #[n(5)]
    CrossNamespaceAffinity,
    /// A scope that no pod is in: `VolumeAttributesClass`, which is for claims.
    #[n(6)]
    NoPod,
}

impl Quota {
    /// Whether the quota counts a pod; `None` if this depends on a scope of the quota that kordon does not know.
    pub fn counts(&self, pod: &Pod) -> Option<bool> {
        let holds: Vec<Option<bool>> = self.scopes.iter().map(|scope| scope.holds(pod)).collect();
        if holds.contains(&Some(false)) {
            Some(false)
        } else {
            holds.into_iter().all(|holds| holds.is_some()).then_some(true)
        }
    }
}

impl QuotaCount {
    /// Returns the amount that a limit on this resource counts for each pod; none if the limit does not apply to pods.
    pub fn for_resource(resource: &str) -> Option<Self> {
        Some(match resource {
            "pods" => Self::Pod,
            "count/pods" => Self::Object,
            "requests.storage" => return None,
            "cpu" | "memory" | "ephemeral-storage" => Self::Request(resource.into()),
            other => match (other.strip_prefix("requests."), other.strip_prefix("limits.")) {
                (Some(name), _) => Self::Request(name.into()),
                (None, Some(name)) => Self::Limit(name.into()),
                (None, None) if other.starts_with("hugepages-") => Self::Request(other.into()),
                (None, None) => return None,
            },
        })
    }

    /// Returns the amount that an unfinished pod adds to the usage of the limit.
    pub fn charge(&self, pod: &Pod) -> i64 {
        let (requests, quota) = (&pod.resources.requests, &pod.resources.quota);
        match self {
            Self::Pod | Self::Object => 1,
            Self::Request(name) => match &**name {
                "cpu" => pod.requests().cpu_milli,
                "memory" => pod.requests().memory_bytes,
                "ephemeral-storage" => requests.ephemeral_bytes,
                other => {
                    let scalar = requests.scalars.iter().find(|(name, _)| **name == *other);
                    scalar.map_or(0, |(_, amount)| *amount)
                }
            },
            Self::Limit(name) => match &**name {
                "cpu" => quota.cpu_limit_milli,
                "memory" => quota.memory_limit_bytes,
                "ephemeral-storage" => quota.ephemeral_limit_bytes,
                _ => 0,
            },
        }
    }

    /// Formats an amount of this resource for users.
    pub fn amount(&self, amount: i64) -> String {
        match self {
            Self::Pod | Self::Object => amount.to_string(),
            Self::Request(name) | Self::Limit(name) => quantity::amount(name, amount),
        }
    }

    /// Whether amounts of this resource are in thousandths.
    pub fn is_in_thousandths(&self) -> bool {
        match self {
            Self::Request(name) | Self::Limit(name) => **name == *"cpu",
            Self::Pod | Self::Object => false,
        }
    }
}

impl QuotaScope {
    /// Whether the scope holds for a pod (upstream `podMatchesScopeFunc`); none if kordon does not know the scope.
    fn holds(&self, pod: &Pod) -> Option<bool> {
        let PodResources { quota: QuotaSpec { priority_class, has_deadline, .. }, kubelet, .. } =
            &*pod.resources;
        Some(match self {
            Self::Deadline(with) => has_deadline == with,
            Self::BestEffort(with) => (kubelet.qos == QosClass::BestEffort) == *with,
            Self::PriorityClassIn(classes, among) => classes.contains(priority_class) == *among,
            Self::HasPriorityClass(with) => priority_class.is_empty() != *with,
            Self::CrossNamespaceAffinity => {
                let (near, apart) = (&pod.scheduling.pod_affinity, &pod.scheduling.pod_anti_affinity);
                let mut terms = near.iter().chain(apart.iter());
                terms.any(|term| !term.namespaces.is_empty() || term.namespace_selector.is_some())
            }
            Self::NoPod => false,
            Self::Other(_) => return None,
        })
    }

    /// Parses a scope of a quota from its name, and the operator and values of its expression.
    pub fn parse(name: &str, operator: &str, values: Box<[Name]>) -> Self {
        match (name, operator) {
            ("Terminating", _) => Self::Deadline(true),
            ("NotTerminating", _) => Self::Deadline(false),
            ("BestEffort", _) => Self::BestEffort(true),
            ("NotBestEffort", _) => Self::BestEffort(false),
            ("PriorityClass", "In") => Self::PriorityClassIn(values, true),
            ("PriorityClass", "NotIn") => Self::PriorityClassIn(values, false),
            ("PriorityClass", "" | "Exists") => Self::HasPriorityClass(true),
            ("PriorityClass", "DoesNotExist") => Self::HasPriorityClass(false),
            ("CrossNamespacePodAffinity", _) => Self::CrossNamespaceAffinity,
            ("VolumeAttributesClass", _) => Self::NoPod,
            (other, _) => Self::Other(other.into()),
        }
    }
}

impl TableObject for Quota {
    type Key = Key;
    fn key(&self) -> Key {
        self.key.clone()
    }
    fn version(&self) -> Version {
        self.version
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::cluster::{
        KubeletSpec, Requests, Selector,
        scheduling::{PodTerm, PodTerms, SchedulingSpec},
    };

    fn pod(quota: QuotaSpec) -> Pod {
        pod_of_class(QosClass::Burstable, quota)
    }

    fn pod_of_class(qos: QosClass, quota: QuotaSpec) -> Pod {
        let requests = Requests { cpu_milli: 250, memory_bytes: 1 << 20, ..Requests::default() };
        let kubelet = KubeletSpec { qos, ..KubeletSpec::default() };
        let resources = Arc::new(PodResources { requests, quota, kubelet });
        Pod { resources, ..Pod::default() }
    }

    #[test]
    fn resources_count_pods_their_requests_and_limits_and_nothing_else() {
        let pod = pod(QuotaSpec { cpu_limit_milli: 500, ..QuotaSpec::default() });
        let charge = |resource: &str| QuotaCount::for_resource(resource).map(|counts| counts.charge(&pod));
        for (resource, amount) in [
            ("pods", 1),
            ("count/pods", 1),
            ("cpu", 250),
            ("requests.cpu", 250),
            ("requests.memory", 1 << 20),
            ("limits.cpu", 500),
            ("limits.memory", 0),
            ("requests.nvidia.com/gpu", 0),
        ] {
            assert_eq!(charge(resource), Some(amount), "{resource}");
        }
        for other in ["services", "requests.storage", "count/deployments.apps"] {
            assert_eq!(charge(other), None, "{other}");
        }
    }

    #[test]
    fn a_quota_counts_the_pods_for_which_all_of_its_scopes_hold() {
        let scope = |name, operator, values: &[&str]| {
            QuotaScope::parse(name, operator, values.iter().map(|value| Name::from(*value)).collect())
        };
        let counts = |scopes: &[QuotaScope], pod: &Pod| {
            Quota { scopes: scopes.into(), ..Quota::default() }.counts(pod)
        };
        let (plain, best_effort) = (
            pod(QuotaSpec { priority_class: "high".into(), ..QuotaSpec::default() }),
            pod_of_class(QosClass::BestEffort, QuotaSpec { has_deadline: true, ..QuotaSpec::default() }),
        );
        for (scopes, of_plain, of_best_effort) in [
            (vec![], Some(true), Some(true)),
            (vec![scope("BestEffort", "", &[])], Some(false), Some(true)),
            (vec![scope("NotBestEffort", "", &[])], Some(true), Some(false)),
            (vec![scope("NotTerminating", "", &[])], Some(true), Some(false)),
            (vec![scope("Terminating", "", &[]), scope("BestEffort", "", &[])], Some(false), Some(true)),
            (vec![scope("PriorityClass", "In", &["high"])], Some(true), Some(false)),
            (vec![scope("PriorityClass", "NotIn", &["high"])], Some(false), Some(true)),
            (vec![scope("PriorityClass", "Exists", &[])], Some(true), Some(false)),
            (vec![scope("PriorityClass", "DoesNotExist", &[])], Some(false), Some(true)),
            (vec![scope("CrossNamespacePodAffinity", "Exists", &[])], Some(false), Some(false)),
            (vec![scope("VolumeAttributesClass", "Exists", &[])], Some(false), Some(false)),
            (vec![scope("New", "", &[]), scope("BestEffort", "", &[])], Some(false), None),
        ] {
            assert_eq!((counts(&scopes, &plain), counts(&scopes, &best_effort)), (of_plain, of_best_effort));
        }
    }

    /// Kubernetes 1.37 `pkg/quota/v1/evaluator/core/pods.go`, `usesCrossNamespacePodAffinity`.
    #[test]
    fn a_pod_with_affinity_to_other_namespaces_is_in_the_scope_for_it() {
        let scopes = [QuotaScope::parse("CrossNamespacePodAffinity", "Exists", Box::default())].into();
        let quota = Quota { scopes, ..Quota::default() };
        let own = PodTerm::default();
        let named = PodTerm { namespaces: ["web".into()].into(), ..PodTerm::default() };
        let selected = PodTerm { namespace_selector: Some(Selector::default()), ..PodTerm::default() };
        for (term, expected) in [(own, false), (named, true), (selected, true)] {
            let terms = PodTerms { required: Box::default(), preferred: [(1, term)].into() };
            let scheduling = SchedulingSpec { pod_anti_affinity: terms, ..SchedulingSpec::default() };
            let pod = Pod { scheduling: scheduling.into(), ..Pod::default() };
            assert_eq!(quota.counts(&pod), Some(expected));
        }
    }
}
