//! Redaction of recordings for other people: hashes every text except Kubernetes' own words.

use std::hash::{BuildHasher, RandomState};

use kordon_core::cluster::encoding::Redaction;

/// Hashes texts with a random key that is not stored. In one recording, equal texts have equal hashes. Nobody can find
/// a name by hashing guesses.
#[derive(Clone, Debug, Default)]
pub struct Redactor(RandomState);

/// Texts that are not hashed, because they have a meaning in Kubernetes itself.
const KEPT: &[&str] = &[
    // Types of node conditions, and reasons of these conditions.
    "Ready",
    "MemoryPressure",
    "DiskPressure",
    "PIDPressure",
    "NetworkUnavailable",
    "KubeletReady",
    "KubeletNotReady",
    "KubeletHasSufficientMemory",
    "KubeletHasInsufficientMemory",
    "KubeletHasNoDiskPressure",
    "KubeletHasDiskPressure",
    "KubeletHasSufficientPID",
    "KubeletHasInsufficientPID",
    "NodeStatusUnknown",
    "NodeStatusNeverUpdated",
    "RouteCreated",
    "NoRouteCreated",
    // Reasons in the status of pods and containers.
    "NodeLost",
    "Evicted",
    "Terminated",
    "NodeAffinity",
    "OutOfcpu",
    "OutOfmemory",
    "OutOfpods",
    "Unschedulable",
    "SchedulingGated",
    "SchedulerError",
    "PreemptionByScheduler",
    "DeletionByTaintManager",
    "DeletionByDeviceTaintManager",
    "EvictionByEvictionAPI",
    "DeletionByPodGC",
    "TerminationByKubelet",
    "Completed",
    "Error",
    "OOMKilled",
    "DeadlineExceeded",
    // Resources, under all names that quotas use for them.
    "cpu",
    "memory",
    "pods",
    "ephemeral-storage",
    "storage",
    "count/pods",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    // Names that every cluster has.
    "default",
    "kube-system",
    "kube-public",
    "kube-node-lease",
    "kube-controller-manager",
    "kube-scheduler",
    "default-scheduler",
    "system-node-critical",
    "system-cluster-critical",
    "metadata.name",
    "metadata.namespace",
    // Common values of fields and labels.
    "true",
    "false",
    "linux",
    "windows",
    "amd64",
    "arm64",
    "TCP",
    "UDP",
    "SCTP",
    "0.0.0.0",
    // What `kordon controller` does with zones that are down (`--full-disruption`).
    "evict",
    "pause",
];

/// Prefixes of label keys. The cluster's owner chooses the part of the key after the prefix.
const OWN_SUFFIX: [&str; 2] = ["node-role.kubernetes.io/", "node-restriction.kubernetes.io/"];

/// Common values of the part of a label key after a prefix in `OWN_SUFFIX`. They are not hashed.
const ROLES: [&str; 3] = ["control-plane", "master", "worker"];

impl Redactor {
    /// Returns the hash of a text: `r` and 16 hexadecimal digits, which is a valid name in Kubernetes.
    pub fn hash(&self, text: &str) -> String {
        format!("r{:016x}", self.0.hash_one(text))
    }

    /// Returns the function that replaces texts while a recording is written.
    pub fn redaction(&self) -> Redaction {
        let redactor = self.clone();
        Box::new(move |text| redactor.replace(text))
    }

    fn replace(&self, text: &str) -> Option<String> {
        if text.is_empty() || KEPT.contains(&text) || is_release(text) {
            return None;
        }
        let own = OWN_SUFFIX.iter().find_map(|prefix| Some((prefix, text.strip_prefix(prefix)?)));
        match own {
            Some((_, role)) if ROLES.contains(&role) => None,
            Some((prefix, suffix)) => Some(format!("{prefix}{}", self.hash(suffix))),
            None if is_of_kubernetes(text) => None,
            None => Some(self.hash(text)),
        }
    }
}

/// Whether a text is a key in a domain of Kubernetes, such as `topology.kubernetes.io/zone`.
fn is_of_kubernetes(text: &str) -> bool {
    let is_plain =
        |part: &str| part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte));
    text.split_once('/').is_some_and(|(domain, name)| {
        let of = |parent: &str| {
            domain == parent || domain.strip_suffix(parent).is_some_and(|sub| sub.ends_with('.'))
        };
        is_plain(domain) && is_plain(name) && (of("kubernetes.io") || of("k8s.io"))
    })
}

/// Whether a text is a release such as `v1.36.2`.
fn is_release(text: &str) -> bool {
    let digits = text.strip_prefix('v');
    digits.is_some_and(|rest| {
        !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_kubernetes_are_kept_and_all_others_hashed() {
        let redactor = Redactor::default();
        for kept in [
            "",
            "Ready",
            "topology.kubernetes.io/zone",
            "node.kubernetes.io/unreachable",
            "v1.36.2",
            "kube-system",
        ] {
            assert_eq!(redactor.replace(kept), None, "{kept}");
        }
        assert_eq!(redactor.replace("node-role.kubernetes.io/control-plane"), None);
        let role = redactor.replace("node-role.kubernetes.io/acme-db").expect("replaced");
        assert!(role.starts_with("node-role.kubernetes.io/r") && !role.contains("acme"), "{role}");
        for own in ["acme", "acme.com/team", "v1.2-acme", "notkubernetes.io/a", "a message of k8s.io/ acme"] {
            let hashed = redactor.replace(own).expect("replaced");
            assert!(hashed.len() == 17 && !hashed.contains("acme"), "{hashed}");
            assert_eq!(redactor.replace(own), Some(hashed), "equal texts have equal hashes");
        }
        assert_ne!(
            Redactor::default().hash("acme"),
            redactor.hash("acme"),
            "the key is another one each time"
        );
    }
}
