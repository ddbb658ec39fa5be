//! Differences between releases of the API server, the disruption controller and kubectl, and the settings of the node
//! lifecycle controller that matter to plans.

use crate::engine::{ServerVersion, Settings};

/// Rules of one release (docs/upstream/operator-actions.md#0, version timeline).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvictionRules {
    pub version: ServerVersion,
    /// A budget's selector `{}` selects every pod of the namespace (policy/v1, read from 1.21). Before, it selects
    /// none.
    pub empty_selector_selects: bool,
    /// Eviction honours budgets with the selector `{}` (1.29; late patches of 1.28 too).
    pub empty_selector_protects: bool,
    /// `unhealthyPodEvictionPolicy` is honoured (beta, on, from 1.27).
    pub unhealthy_policy: bool,
    /// The message of a refused eviction may say more than "needs … has …" (1.35).
    pub reports_failed_sync: bool,
    /// A change of a pod updates every budget that matches it (1.38). Before, it updates an arbitrary one of them.
    pub updates_every_budget: bool,
    /// kubectl drain treats a pod as DaemonSet-managed only if its owner is of group apps (1.34).
    pub daemonsets_by_group: bool,
    /// kubectl drain says that pods "declare no controller" instead of listing the kinds it knows (1.24).
    pub says_no_controller: bool,
    /// The taint `node.kubernetes.io/out-of-service` lets pods be removed by force (beta, on, from 1.26).
    pub out_of_service: bool,
    /// Whether NoExecute taints evict pods. They do, unless the controller's settings disable it.
    pub taints_evict: bool,
}

impl EvictionRules {
    /// Returns the rules for the controller's default settings.
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
        }
    }
}

impl From<ServerVersion> for EvictionRules {
    fn from(version: ServerVersion) -> Self {
        Self::for_version(version)
    }
}

impl From<&Settings> for EvictionRules {
    fn from(settings: &Settings) -> Self {
        Self { taints_evict: settings.rules().evicts_by_taint, ..Self::for_version(settings.version) }
    }
}
