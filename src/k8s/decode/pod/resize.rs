//! Resizes in place: what a pod uses on its node while its requests change.

use super::{Amounts, Quantity, Spec, Status, WireContainerStatus};
use kordon_core::cluster::{ContainerResources, PodResources};

/// A resize that is not done.
#[derive(Clone, Copy, PartialEq)]
enum Resize {
    /// The kubelet resizes the pod, now or later.
    Wanted,
    /// The node is too small for the resize.
    Infeasible,
}

impl Spec<'_> {
    /// Sets the requests that count on the node while a pod is resized: the largest of the spec, the allocated
    /// resources and the resources of the containers. The spec of an infeasible resize does not count
    /// (component-helpers of 1.37, `resource/helpers.go`, `AggregateContainerRequests` with `UseStatusResources`).
    pub(super) fn apply_resize(&self, status: &Status<'_>, resources: &mut PodResources) {
        let Some(resize) = status.resize() else { return };
        let before = resources.kubelet.containers.clone();
        for container in resources.kubelet.containers.iter_mut() {
            let mut statuses = status.container_statuses.iter().chain(status.init_container_statuses.iter());
            if let Some(status) = statuses.find(|status| *status.name == *container.name.as_str()) {
                status.apply_resize(resize, container);
            }
        }
        let grown = |request: fn(&ContainerResources) -> i64| {
            let after = ContainerResources::sum(&resources.kubelet.containers, request);
            after - ContainerResources::sum(&before, request)
        };
        let (cpu, memory) = (grown(|of| of.cpu_request_milli), grown(|of| of.memory_request_bytes));
        // Requests of the pod as a whole replace those of its containers.
        let requests = &mut resources.requests;
        if self.resources.requests.amount("cpu").is_none() {
            requests.cpu_milli += cpu;
            requests.assumed_cpu_milli += cpu;
        }
        if self.resources.requests.amount("memory").is_none() {
            requests.memory_bytes += memory;
            requests.assumed_memory_bytes += memory;
        }
    }
}

impl Status<'_> {
    /// Returns the pod's resize that is not done yet (conditions `PodResizePending` and `PodResizeInProgress`).
    fn resize(&self) -> Option<Resize> {
        let has = |kind: &str| self.conditions.iter().find(|condition| *condition.kind == *kind);
        match has("PodResizePending") {
            Some(pending) if *pending.reason == *"Infeasible" => Some(Resize::Infeasible),
            Some(_) => Some(Resize::Wanted),
            None => has("PodResizeInProgress").map(|_| Resize::Wanted),
        }
    }
}

impl WireContainerStatus<'_> {
    fn apply_resize(&self, resize: Resize, container: &mut ContainerResources) {
        let in_use = |resource: &str, unit: fn(&Quantity<'_>) -> i64, wanted: i64| {
            let amount = |amounts: &Amounts<'_>| amounts.amount(resource).map(unit);
            let known = [amount(&self.allocated_resources), amount(&self.resources.requests)];
            match known.into_iter().flatten().max() {
                Some(known) if resize == Resize::Infeasible => known,
                Some(known) => known.max(wanted),
                None => wanted,
            }
        };
        container.cpu_request_milli = in_use("cpu", |amount| amount.milli(), container.cpu_request_milli);
        container.memory_request_bytes =
            in_use("memory", |amount| amount.units(), container.memory_request_bytes);
    }
}
