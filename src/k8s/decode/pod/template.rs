//! Pod templates. The API server completes a pod when it is created, but not the template from which the pod is made
//! (upstream `SetDefaults_Pod`).

use super::{Container, SharedParts, Spec, WirePod, WireResources, pod};
use crate::k8s::decode::leaf::{Amounts, LenientList};
use kordon_core::cluster::Pod;

/// Returns the pod that is created from a template, without a name. The pod has the defaults that the API server sets:
/// limits replace missing requests, the ports of a pod in the host's network are host ports, and the label keys of
/// affinities have become requirements.
pub fn template(wire: &mut WirePod<'_>, pool: &mut SharedParts) -> Pod {
    wire.spec.set_defaults();
    wire.spec.affinity.apply_label_keys(&wire.metadata.labels);
    pod(wire, pool)
}

impl Spec<'_> {
    fn set_defaults(&mut self) {
        for container in self.containers.0.iter_mut().chain(&mut self.init_containers.0) {
            let WireResources { requests, limits } = &mut container.resources;
            default_to(requests, limits, |_| true);
        }
        self.set_pod_level_defaults();
        if self.host_network.0 {
            set_host_ports(&mut self.containers);
            set_host_ports(&mut self.init_containers);
        }
    }

    /// Sets missing pod-level requests to the pod-level limits. If a container requests CPU or memory, the sum of the
    /// containers counts for that resource instead (upstream `defaultPodRequests`).
    fn set_pod_level_defaults(&mut self) {
        let containers = || self.containers.iter().chain(self.init_containers.iter());
        let is_requested = |resource: &str| {
            containers().any(|container| container.resources.requests.amount(resource).is_some())
        };
        let (cpu, memory) = (is_requested("cpu"), is_requested("memory"));
        let WireResources { requests, limits } = &mut self.resources;
        default_to(requests, limits, |resource| match resource {
            "cpu" => !cpu,
            "memory" => !memory,
            other => other.starts_with("hugepages-"),
        });
    }
}

/// Sets missing requests to the limits, for the resources that `takes` accepts.
fn default_to<'a>(requests: &mut Amounts<'a>, limits: &Amounts<'a>, takes: impl Fn(&str) -> bool) {
    for (resource, limit) in &limits.0 {
        if takes(resource) && requests.amount(resource).is_none() {
            requests.0.push((resource.clone(), limit.clone()));
        }
    }
}

/// Sets missing host ports to the ports of the containers (upstream `defaultHostNetworkPorts`).
fn set_host_ports(containers: &mut LenientList<Container<'_>>) {
    for port in containers.0.iter_mut().flat_map(|container| &mut container.ports.0) {
        if port.host_port.or(0) == 0 {
            port.host_port = port.container_port;
        }
    }
}
