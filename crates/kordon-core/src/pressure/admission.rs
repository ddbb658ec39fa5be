//! Admission of pods by the kubelet of a node under pressure.

use super::PressureCondition;
use crate::cluster::{Node, Pod, QosClass, tolerates_no_schedule};

/// Returns whether the kubelet of a node rejects a new pod because of the pressure conditions that the node reports
/// (upstream `Admit` of the eviction manager). Static pods are not considered, because their kubelet does not reject
/// them.
pub fn rejects(node: &Node, pod: &Pod) -> bool {
    let reported = PressureCondition::reported(node);
    if reported.is_empty() || pod.is_critical() {
        return false;
    }
    let is_of_memory_alone = reported == [PressureCondition::Memory];
    !(is_of_memory_alone
        && (pod.resources.kubelet.qos != QosClass::BestEffort || tolerates_memory_pressure(pod)))
}

fn tolerates_memory_pressure(pod: &Pod) -> bool {
    tolerates_no_schedule(&pod.tolerations, PressureCondition::Memory.taint_key())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{
        Condition, ConditionStatus, KubeletSpec, PodResources, Toleration, TolerationOperator,
    };

    /// Kubernetes 1.37 `pkg/kubelet/eviction/eviction_manager.go`, `Admit`.
    #[test]
    fn only_memory_pressure_admits_pods_that_request_memory_or_tolerate_it() {
        let pod = |qos, tolerates: bool| {
            let toleration = Toleration {
                key: "node.kubernetes.io/memory-pressure".into(),
                operator: TolerationOperator::Exists,
                ..Toleration::default()
            };
            Pod {
                tolerations: tolerates.then_some(toleration).into_iter().collect(),
                resources: PodResources {
                    kubelet: KubeletSpec { qos, ..KubeletSpec::default() },
                    ..PodResources::default()
                }
                .into(),
                ..Pod::default()
            }
        };
        let pods = [
            pod(QosClass::BestEffort, false),
            pod(QosClass::BestEffort, true),
            pod(QosClass::Burstable, false),
            Pod { priority: 2_000_000_000, ..pod(QosClass::BestEffort, false) },
        ];
        let rejected = |kinds: &[&str]| {
            let condition = |kind: &&str| Condition {
                kind: (*kind).into(),
                status: ConditionStatus::True,
                ..Condition::default()
            };
            let node = Node { conditions: kinds.iter().map(condition).collect(), ..Node::default() };
            pods.each_ref().map(|pod| rejects(&node, pod))
        };
        assert_eq!(rejected(&["Ready"]), [false, false, false, false]);
        assert_eq!(rejected(&["Ready", "MemoryPressure"]), [true, false, false, false]);
        assert_eq!(rejected(&["DiskPressure"]), [true, true, true, false]);
        assert_eq!(rejected(&["MemoryPressure", "PIDPressure"]), [true, true, true, false]);
    }
}
