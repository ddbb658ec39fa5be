//! What a pod requires of its node whatever other pods there are.

use super::{
    super::reason::NodeRefusal, NodeMatch, PodVolumes, SchedulingRequest, Snapshot, taints, tolerates_cordons,
};

/// The filters that do not depend on other pods: cordons, taints, node selector and affinity, and the reach of volumes.
#[derive(Clone, Debug)]
pub(in super::super) struct OwnNeeds<'s> {
    snapshot: &'s Snapshot,
    request: &'s SchedulingRequest,
    nodes: NodeMatch,
    volumes: PodVolumes,
    tolerates_cordons: bool,
}

impl<'s> OwnNeeds<'s> {
    /// The snapshot is prepared for the request, which is not pinned to a node.
    pub fn new(snapshot: &'s Snapshot, request: &'s SchedulingRequest) -> Self {
        Self {
            nodes: NodeMatch::new(snapshot, &request.spec),
            volumes: PodVolumes::new(snapshot, request),
            tolerates_cordons: tolerates_cordons(&request.tolerations),
            snapshot,
            request,
        }
    }

    /// Whether the node meets them.
    pub fn are_met_by(&self, node: u32) -> bool {
        let resources = self.snapshot.resources(node);
        let rules = self.snapshot.rules();
        let tolerates_taints = || {
            let taints = &self.snapshot.node(node).taints;
            taints::are_tolerated(taints, &self.request.tolerations)
        };
        resources.present
            && (!resources.cordoned || self.tolerates_cordons)
            && (!resources.has_hard_taints || tolerates_taints())
            && (!rules.pinned_names_narrow || self.nodes.narrow::<NodeRefusal>(node).is_ok())
            && self.nodes.matches(node)
            && self.volumes.can_be_reached(self.snapshot, node)
    }
}
