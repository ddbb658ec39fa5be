//! The quality of service (QoS) class of a pod (`qos.ComputePodQOS`).

use crate::cluster::{ContainerResources, QosClass};

/// Returns the class that an API server gives a pod with these containers. Whether a container is an init container, a
/// sidecar or an app container does not matter. Only CPU and memory above zero count.
pub fn qos_class(containers: &[ContainerResources]) -> QosClass {
    let requests =
        |container: &ContainerResources| [container.cpu_request_milli, container.memory_request_bytes];
    let limits = |container: &ContainerResources| [container.cpu_limit_milli, container.memory_limit_bytes];
    let sum = |of: fn(&ContainerResources) -> [i64; 2]| {
        containers.iter().map(of).fold([0_i64; 2], |sum, amounts| {
            [sum[0].saturating_add(amounts[0]), sum[1].saturating_add(amounts[1])]
        })
    };
    let (requested, limited) = (sum(requests), sum(limits));
    if requested == [0; 2] && limited == [0; 2] {
        return QosClass::BestEffort;
    }
    let all_limited = containers.iter().all(|container| limits(container).iter().all(|limit| *limit > 0));
    if all_limited && requested == limited { QosClass::Guaranteed } else { QosClass::Burstable }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container(requests: [i64; 2], limits: [i64; 2]) -> ContainerResources {
        ContainerResources {
            cpu_request_milli: requests[0],
            memory_request_bytes: requests[1],
            cpu_limit_milli: limits[0],
            memory_limit_bytes: limits[1],
            ..ContainerResources::default()
        }
    }

    #[test]
    fn the_class_depends_on_every_container() {
        let none = container([0, 0], [0, 0]);
        let full = container([100, 5], [100, 5]);
        let partial = container([100, 5], [0, 5]);
        let higher = container([100, 5], [200, 5]);
        for (containers, class) in [
            (vec![], QosClass::BestEffort),
            (vec![none.clone()], QosClass::BestEffort),
            (vec![full.clone()], QosClass::Guaranteed),
            (vec![full.clone(), full.clone()], QosClass::Guaranteed),
            (vec![full, none], QosClass::Burstable),
            (vec![partial], QosClass::Burstable),
            (vec![higher], QosClass::Burstable),
            (vec![container([0, 0], [100, 0])], QosClass::Burstable),
        ] {
            assert_eq!(qos_class(&containers), class, "{containers:?}");
        }
    }
}
