//! URL paths and queries for the objects of each kind on an API server.

use crate::k8s::feed::FeedKind;
use kordon_core::{
    cluster::{EventSubject, WorkloadKind},
    engine::ServerVersion,
};

const METRICS: &str = "/apis/metrics.k8s.io/v1beta1";

/// Path of a kind's collection.
pub fn collection(kind: FeedKind, version: ServerVersion) -> &'static str {
    match kind {
        FeedKind::Nodes => "/api/v1/nodes",
        FeedKind::Leases => "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
        FeedKind::Leader => "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases",
        FeedKind::Pods => "/api/v1/pods",
        FeedKind::Budgets if version < ServerVersion::new(1, 21) => {
            "/apis/policy/v1beta1/poddisruptionbudgets"
        }
        FeedKind::Budgets => "/apis/policy/v1/poddisruptionbudgets",
        FeedKind::Workloads(WorkloadKind::ReplicaSet) => "/apis/apps/v1/replicasets",
        FeedKind::Workloads(WorkloadKind::Deployment) => "/apis/apps/v1/deployments",
        FeedKind::Workloads(WorkloadKind::StatefulSet) => "/apis/apps/v1/statefulsets",
        FeedKind::Workloads(WorkloadKind::ReplicationController) => "/api/v1/replicationcontrollers",
        FeedKind::Workloads(WorkloadKind::DaemonSet) => "/apis/apps/v1/daemonsets",
        FeedKind::Workloads(WorkloadKind::Job) => "/apis/batch/v1/jobs",
        FeedKind::PriorityClasses => "/apis/scheduling.k8s.io/v1/priorityclasses",
        FeedKind::Namespaces => "/api/v1/namespaces",
        FeedKind::Services => "/api/v1/services",
        FeedKind::Claims => "/api/v1/persistentvolumeclaims",
        FeedKind::Volumes => "/api/v1/persistentvolumes",
        FeedKind::StorageClasses => "/apis/storage.k8s.io/v1/storageclasses",
        FeedKind::CsiNodes => "/apis/storage.k8s.io/v1/csinodes",
        FeedKind::CsiDrivers => "/apis/storage.k8s.io/v1/csidrivers",
        FeedKind::StorageCapacities => "/apis/storage.k8s.io/v1/csistoragecapacities",
        FeedKind::Quotas => "/api/v1/resourcequotas",
        FeedKind::DeviceClasses => "/apis/resource.k8s.io/v1/deviceclasses",
        FeedKind::ResourceClaims => "/apis/resource.k8s.io/v1/resourceclaims",
        FeedKind::ResourceSlices => "/apis/resource.k8s.io/v1/resourceslices",
        FeedKind::DeviceTaintRules if version < ServerVersion::new(1, 37) => {
            "/apis/resource.k8s.io/v1beta2/devicetaintrules"
        }
        FeedKind::DeviceTaintRules => "/apis/resource.k8s.io/v1/devicetaintrules",
        FeedKind::ClaimTemplates => "/apis/resource.k8s.io/v1/resourceclaimtemplates",
        FeedKind::CronJobs => "/apis/batch/v1/cronjobs",
    }
}

/// A query of a collection.
pub struct CollectionQuery(String);

impl CollectionQuery {
    pub fn new(kind: FeedKind, version: ServerVersion) -> Self {
        let query = Self(collection(kind, version).into());
        if kind == FeedKind::Leader {
            return query.with("fieldSelector", "metadata.name=kube-controller-manager");
        }
        query
    }

    /// Query of the objects in one namespace.
    pub fn within(kind: FeedKind, version: ServerVersion, namespace: &str) -> Self {
        let path = collection(kind, version);
        let (group, resource) = path.rsplit_once('/').expect("every path has parts");
        let mut query = Self(format!("{group}/namespaces/"));
        query.push_encoded(namespace);
        query.0.push('/');
        query.0.push_str(resource);
        query
    }

    /// Query of the Events in a namespace, or in all namespaces.
    pub fn for_events(namespace: Option<&str>) -> Self {
        let Some(namespace) = namespace else { return Self("/api/v1/events".into()) };
        let mut query = Self("/api/v1/namespaces/".into());
        query.push_encoded(namespace);
        query.0.push_str("/events");
        query
    }

    /// Query of the usage of one node, or of all nodes (metrics.k8s.io).
    pub fn for_node_metrics(node: Option<&str>) -> Self {
        let mut query = Self(format!("{METRICS}/nodes"));
        if let Some(node) = node {
            query.0.push('/');
            query.push_encoded(node);
        }
        query
    }

    /// Query of the usage of a namespace's pods (metrics.k8s.io).
    pub fn for_pod_metrics(namespace: &str) -> Self {
        let mut query = Self(format!("{METRICS}/namespaces/"));
        query.push_encoded(namespace);
        query.0.push_str("/pods");
        query
    }

    /// Query of a node, pod or budget by name.
    pub fn for_object(subject: &EventSubject, version: ServerVersion) -> Self {
        let mut query = match (subject.kind, &subject.namespace) {
            ("PodDisruptionBudget", Some(namespace)) => Self::within(FeedKind::Budgets, version, namespace),
            (_, Some(namespace)) => Self::within(FeedKind::Pods, version, namespace),
            (_, None) => Self::new(FeedKind::Nodes, version),
        };
        query.0.push('/');
        query.push_encoded(&subject.name);
        query
    }

    /// Adds a parameter to the query, percent-encoded (RFC 3986).
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.0.push(if self.0.contains('?') { '&' } else { '?' });
        self.0.push_str(name);
        self.0.push('=');
        self.push_encoded(value);
        self
    }

    fn push_encoded(&mut self, text: &str) {
        for byte in text.bytes() {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                    self.0.push(byte.into())
                }
                _ => self.0.push_str(&format!("%{byte:02X}")),
            }
        }
    }

    /// Requests a watch that the server closes after this many seconds.
    pub fn watched(self, seconds: u64) -> Self {
        self.with("watch", "true")
            .with("allowWatchBookmarks", "true")
            .with("timeoutSeconds", &seconds.to_string())
    }

    /// Requests a watch that starts with the whole list.
    pub fn streamed(self) -> Self {
        self.with("sendInitialEvents", "true").with("resourceVersionMatch", "NotOlderThan")
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kordon_core::cluster::{Budget, Key, Node, Pod};

    #[test]
    fn parameters_are_encoded() {
        let query =
            CollectionQuery::new(FeedKind::Leader, ServerVersion::new(1, 36)).with("continue", "a b+/=");
        assert!(query.as_str().ends_with(
            "/leases?fieldSelector=metadata.name%3Dkube-controller-manager&continue=a%20b%2B%2F%3D"
        ));
    }

    #[test]
    fn names_of_a_hostile_server_stay_one_part_of_a_path() {
        let pods = CollectionQuery::for_pod_metrics("a b/../c");
        assert_eq!(pods.as_str(), "/apis/metrics.k8s.io/v1beta1/namespaces/a%20b%2F..%2Fc/pods");
        let node = CollectionQuery::for_node_metrics(Some("n\u{1b}1"));
        assert_eq!(node.as_str(), "/apis/metrics.k8s.io/v1beta1/nodes/n%1B1");
    }

    #[test]
    fn old_servers_have_budgets_at_another_path() {
        let path = |minor| collection(FeedKind::Budgets, ServerVersion::new(1, minor));
        assert_ne!(path(20), path(21));
    }

    #[test]
    fn an_object_is_asked_for_by_its_kind_and_name() {
        let path = |subject: &EventSubject, minor: u32| {
            CollectionQuery::for_object(subject, ServerVersion::new(1, minor)).as_str().to_owned()
        };
        let node = EventSubject::node(&Node { name: "n1".into(), ..Node::default() });
        assert_eq!(path(&node, 36), "/api/v1/nodes/n1");
        let pod = EventSubject::pod(&Pod { key: Key::new("shop", "web-1"), ..Pod::default() });
        assert_eq!(path(&pod, 36), "/api/v1/namespaces/shop/pods/web-1");
        let budget = EventSubject::budget(&Budget { key: Key::new("shop", "web"), ..Budget::default() });
        assert_eq!(path(&budget, 36), "/apis/policy/v1/namespaces/shop/poddisruptionbudgets/web");
        assert_eq!(path(&budget, 20), "/apis/policy/v1beta1/namespaces/shop/poddisruptionbudgets/web");
    }
}
