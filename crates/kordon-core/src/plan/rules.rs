//! Rules that differ between releases of the API server, the disruption controller and kubectl. Also the settings of
//! the node lifecycle controller that matter to plans.

use std::collections::BTreeSet;

use crate::{
    cluster::{Cluster, NodeName},
    engine::{ServerVersion, Settings, silent_by_lease},
};
use kordon_time::{Span, Timestamp};

/// Rules of one release (docs/upstream/operator-actions.md#0, version timeline).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvictionRules {
    pub version: ServerVersion,
    /// A budget with the selector `{}` selects every pod of the namespace (policy/v1, read from 1.21). In older
    /// releases it selects no pod.
    pub empty_selector_selects: bool,
    /// The eviction subresource checks budgets with the selector `{}` (from 1.29, and in late patches of 1.28).
    pub empty_selector_protects: bool,
    /// The eviction subresource honours `unhealthyPodEvictionPolicy` (beta and on by default from 1.27).
    pub unhealthy_policy: bool,
    /// The message of a refused eviction may have a text other than "needs … has …" (from 1.35).
    pub reports_failed_sync: bool,
    /// A change of a pod updates every budget that selects the pod (from 1.38). In older releases it updates an
    /// arbitrary one of these budgets.
    pub updates_every_budget: bool,
    /// kubectl drain treats a pod as DaemonSet-managed only if its owner's group is apps (from 1.34).
    pub daemonsets_by_group: bool,
    /// kubectl drain says that pods "declare no controller". Before 1.24, it lists the kinds of controllers that it
    /// knows instead.
    pub says_no_controller: bool,
    /// The taint `node.kubernetes.io/out-of-service` allows the forced removal of pods (beta and on by default from
    /// 1.26). The pod garbage collector removes these pods, unless the settings disable the collector.
    pub out_of_service: bool,
    /// Whether NoExecute taints evict pods. The settings of the node lifecycle controller can disable this.
    pub taints_evict: bool,
    /// Grace period of the node lifecycle controller. It decides when a node is silent, that is, sends no heartbeats
    /// ([`Silence`](crate::engine::Silence)). `None` in a plan for a later time, because it is not known which nodes
    /// are silent then.
    pub grace: Option<Span>,
}

impl EvictionRules {
    /// Returns the rules of a release, with the default settings of the node lifecycle controller.
    pub fn for_version(version: ServerVersion) -> Self {
        let since = |minor| version >= ServerVersion::new(1, minor);
        Self {
            version,
            empty_selector_selects: since(21),
            empty_selector_protects: since(29),
            unhealthy_policy: since(27),
            reports_failed_sync: since(35),
            updates_every_budget: since(38),
            daemonsets_by_group: since(34),
            says_no_controller: since(24),
            out_of_service: since(26),
            taints_evict: true,
            grace: Some(Settings::defaults(version).node_monitor_grace_period.value),
        }
    }

    /// Returns the silent nodes, which send no heartbeats. The scheduler may bind replacements to them, but no pod
    /// starts there.
    pub(crate) fn silent_nodes(&self, cluster: &Cluster, now: Timestamp) -> BTreeSet<NodeName> {
        self.grace.map(|grace| silent_by_lease(cluster, grace, now)).unwrap_or_default()
    }
}

impl From<ServerVersion> for EvictionRules {
    fn from(version: ServerVersion) -> Self {
        Self::for_version(version)
    }
}

impl From<&Settings> for EvictionRules {
    fn from(settings: &Settings) -> Self {
        let of_version = Self::for_version(settings.version);
        Self {
            taints_evict: settings.rules().evicts_by_taint,
            out_of_service: of_version.out_of_service && settings.controllers.value.pod_gc,
            grace: Some(settings.node_monitor_grace_period.value),
            ..of_version
        }
    }
}
