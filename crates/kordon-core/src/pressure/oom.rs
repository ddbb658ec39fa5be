//! The order in which the kernel kills processes when memory runs out (docs/upstream/placement-and-pressure.md#6.8).

use super::rules::KubeletRules;
use crate::cluster::{ContainerResources, ContainerRole, Pod, QosClass};

/// The `oom_score_adj` of containers that are killed last.
const PROTECTED: i64 = -997;
/// The `oom_score_adj` of the containers of BestEffort pods.
const FIRST: i64 = 1000;

/// Returns the `oom_score_adj` that a kubelet gives a container of a pod (`qos.GetContainerOOMScoreAdjust`).
/// `memory_capacity` is the memory capacity of the node, in bytes. Containers with a higher score are killed sooner.
pub fn oom_score_adj(
    pod: &Pod,
    container: &ContainerResources,
    memory_capacity: i64,
    rules: KubeletRules,
) -> i64 {
    if pod.is_critical() && pod.resources.quota.priority_class == *"system-node-critical" {
        return PROTECTED;
    }
    match pod.resources.kubelet.qos {
        QosClass::Guaranteed => PROTECTED,
        QosClass::BestEffort => FIRST,
        QosClass::Burstable => {
            let request = counted_request(pod, container, rules);
            let share = i128::from(request) * 1000 / i128::from(memory_capacity.max(1));
            let score = FIRST - i64::try_from(share).unwrap_or(i64::MAX);
            // The score is higher than that of Guaranteed and system-node-critical pods, and lower than that of
            // BestEffort pods.
            score.clamp(FIRST + PROTECTED, FIRST - 1)
        }
    }
}

/// The memory request from which a container's score is computed. For a sidecar, the request is at least the smallest
/// request of the app containers, so that the sidecar is not killed before the container that it serves.
fn counted_request(pod: &Pod, container: &ContainerResources, rules: KubeletRules) -> i64 {
    let own = container.memory_request_bytes;
    if container.role != ContainerRole::Sidecar || !rules.sidecars_share_oom_scores {
        return own;
    }
    let apps = pod.resources.kubelet.containers.iter().filter(|other| other.role == ContainerRole::App);
    apps.map(|app| app.memory_request_bytes).min().map_or(own, |smallest| own.max(smallest))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        cluster::{KubeletSpec, PodResources, QuotaSpec},
        engine::ServerVersion,
    };

    const GIBI: i64 = 1 << 30;

    fn pod(qos: QosClass, requests: &[(ContainerRole, i64)]) -> Pod {
        let containers = requests.iter().map(|(role, bytes)| ContainerResources {
            role: *role,
            memory_request_bytes: *bytes,
            ..ContainerResources::default()
        });
        let kubelet = KubeletSpec { qos, containers: containers.collect(), ..KubeletSpec::default() };
        Pod { resources: Arc::new(PodResources { kubelet, ..PodResources::default() }), ..Pod::default() }
    }

    fn scores(pod: &Pod, capacity: i64, minor: u32) -> Vec<i64> {
        let rules = KubeletRules::for_version(ServerVersion::new(1, minor));
        let containers = pod.resources.kubelet.containers.iter();
        containers.map(|container| oom_score_adj(pod, container, capacity, rules)).collect()
    }

    #[test]
    fn a_burstable_container_is_scored_by_its_share_of_the_node() {
        for (request, capacity, score) in [
            (4 * GIBI, 16 * GIBI, 750),
            (10 << 20, 64 * GIBI, 999),
            (GIBI, 64 * GIBI, 985),
            (16 * GIBI - 1, 16 * GIBI, 3),
            (8 * GIBI, 16 * GIBI, 500),
            (0, 16 * GIBI, 999),
            (i64::MAX, 0, 3),
        ] {
            let pod = pod(QosClass::Burstable, &[(ContainerRole::App, request)]);
            assert_eq!(scores(&pod, capacity, 30), [score], "{request} of {capacity}");
        }
    }

    #[test]
    fn the_other_classes_and_critical_pods_have_fixed_scores() {
        let app = [(ContainerRole::App, GIBI)];
        assert_eq!(scores(&pod(QosClass::Guaranteed, &app), 4 * GIBI, 30), [-997]);
        assert_eq!(scores(&pod(QosClass::BestEffort, &app), 4 * GIBI, 30), [1000]);
        let mut critical = pod(QosClass::BestEffort, &app);
        critical.priority = 2_000_001_000;
        assert_eq!(scores(&critical, 4 * GIBI, 30), [1000], "not by its priority alone");
        Arc::make_mut(&mut critical.resources).quota =
            QuotaSpec { priority_class: "system-node-critical".into(), ..QuotaSpec::default() };
        assert_eq!(scores(&critical, 4 * GIBI, 30), [-997]);
    }

    #[test]
    fn a_sidecar_is_not_killed_before_what_it_serves() {
        let roles =
            [(ContainerRole::App, 8 * GIBI), (ContainerRole::App, 4 * GIBI), (ContainerRole::Sidecar, GIBI)];
        let pod = pod(QosClass::Burstable, &roles);
        assert_eq!(scores(&pod, 16 * GIBI, 32), [500, 750, 938]);
        assert_eq!(scores(&pod, 16 * GIBI, 33), [500, 750, 750]);
    }
}
