//! Resource requests of a pod, summed as in the scheduler.

use super::{
    leaf::{Amounts, Quantity, Text, or_default},
    pool::SharedParts,
    protobuf::wire,
};
use kordon_core::cluster::{Requests, Resources};

/// CPU in thousandths that scoring assumes for a container without a request.
const ASSUMED_CPU_MILLI: i64 = 100;
/// Memory in bytes that scoring assumes for a container without a request.
const ASSUMED_MEMORY_BYTES: i64 = 200 << 20;

wire! {
    /// `resources` of a container or a pod on the wire.
    pub struct WireResources<'a> {
        #[serde(deserialize_with = "or_default")]
        pub requests: Amounts<'a> = 2,
        #[serde(deserialize_with = "or_default")]
        pub limits: Amounts<'a> = 1,
    }
}

/// The requests or the limits of one container.
#[derive(Clone, Copy)]
pub struct ContainerRequests<'w, 'a> {
    pub amounts: &'w Amounts<'a>,
    /// `restartPolicy` of an init container. An init container with `Always` is a sidecar.
    pub restart_policy: &'w Text<'a>,
}

/// Sums the requests of a pod as the scheduler does (component-helpers `resource.PodRequests`). The sum is that of
/// containers and sidecars, or the maximum during initialisation if that is larger. Pod-level requests replace the sum,
/// and the overhead is added to it. Limits are summed in the same way (`resource.PodLimits`).
pub fn requests<'w, 'a: 'w>(
    containers: impl Iterator<Item = ContainerRequests<'w, 'a>>,
    init_containers: impl Iterator<Item = ContainerRequests<'w, 'a>>,
    of_pod: &'w Amounts<'a>,
    overhead: &'w Amounts<'a>,
) -> RequestSum<'w> {
    let mut running = RequestSum::default();
    for container in containers {
        running.add(&RequestSum::from_container(container.amounts));
    }
    let (mut sidecars, mut initial) = (RequestSum::default(), RequestSum::default());
    for container in init_containers {
        let own = RequestSum::from_container(container.amounts);
        let mut needed = sidecars.clone();
        needed.add(&own);
        if **container.restart_policy == *"Always" {
            sidecars.clone_from(&needed);
            running.add(&own);
        }
        initial.raise_to(&needed);
    }
    running.raise_to(&initial);
    running.replace(of_pod);
    running.add(&RequestSum::from_amounts(overhead));
    running
}

/// Sum of a pod's requests, and of the amounts that scoring assumes.
#[derive(Clone, Default)]
pub struct RequestSum<'w> {
    cpu_milli: i64,
    memory_bytes: i64,
    ephemeral_bytes: i64,
    assumed_cpu_milli: i64,
    assumed_memory_bytes: i64,
    scalars: Vec<(&'w str, i64)>,
}

impl<'w> RequestSum<'w> {
    fn from_amounts(amounts: &'w Amounts<'_>) -> Self {
        let mut sum = Self::default();
        for (resource, amount) in &amounts.0 {
            match &**resource {
                "cpu" => sum.cpu_milli = amount.milli(),
                "memory" => sum.memory_bytes = amount.units(),
                "ephemeral-storage" => sum.ephemeral_bytes = amount.units(),
                other if is_scalar(other) => sum.scalars.push((other, amount.units())),
                _ => {}
            }
        }
        (sum.assumed_cpu_milli, sum.assumed_memory_bytes) = (sum.cpu_milli, sum.memory_bytes);
        sum
    }

    fn from_container(amounts: &'w Amounts<'_>) -> Self {
        let mut sum = Self::from_amounts(amounts);
        if amounts.amount("cpu").is_none() {
            sum.assumed_cpu_milli = ASSUMED_CPU_MILLI;
        }
        if amounts.amount("memory").is_none() {
            sum.assumed_memory_bytes = ASSUMED_MEMORY_BYTES;
        }
        sum
    }

    fn add(&mut self, other: &Self) {
        self.combine(other, i64::saturating_add);
    }

    fn raise_to(&mut self, other: &Self) {
        self.combine(other, i64::max);
    }

    fn combine(&mut self, other: &Self, with: fn(i64, i64) -> i64) {
        self.cpu_milli = with(self.cpu_milli, other.cpu_milli);
        self.memory_bytes = with(self.memory_bytes, other.memory_bytes);
        self.ephemeral_bytes = with(self.ephemeral_bytes, other.ephemeral_bytes);
        self.assumed_cpu_milli = with(self.assumed_cpu_milli, other.assumed_cpu_milli);
        self.assumed_memory_bytes = with(self.assumed_memory_bytes, other.assumed_memory_bytes);
        for (resource, amount) in &other.scalars {
            match self.scalars.iter_mut().find(|(known, _)| known == resource) {
                Some((_, own)) => *own = with(*own, *amount),
                None => self.scalars.push((resource, *amount)),
            }
        }
    }

    /// Replaces the sums of those resources for which the pod has pod-level requests.
    fn replace(&mut self, of_pod: &'w Amounts<'_>) {
        for (resource, amount) in &of_pod.0 {
            match &**resource {
                "cpu" => (self.cpu_milli, self.assumed_cpu_milli) = (amount.milli(), amount.milli()),
                "memory" => (self.memory_bytes, self.assumed_memory_bytes) = (amount.units(), amount.units()),
                pages if pages.starts_with("hugepages-") => {
                    self.scalars.retain(|(known, _)| *known != pages);
                    self.scalars.push((pages, amount.units()));
                }
                _ => {}
            }
        }
    }

    /// The resources that every view shows.
    pub fn resources(&self) -> Resources {
        Resources { cpu_milli: self.cpu_milli, memory_bytes: self.memory_bytes, pods: 1 }
    }

    /// The ephemeral storage in bytes.
    pub const fn ephemeral_bytes(&self) -> i64 {
        self.ephemeral_bytes
    }

    pub fn requests(mut self, pool: &mut SharedParts) -> Requests {
        self.scalars.sort_unstable();
        Requests {
            cpu_milli: self.cpu_milli,
            memory_bytes: self.memory_bytes,
            ephemeral_bytes: self.ephemeral_bytes,
            scalars: self.scalars.iter().map(|(resource, amount)| (pool.name(resource), *amount)).collect(),
            assumed_cpu_milli: self.assumed_cpu_milli,
            assumed_memory_bytes: self.assumed_memory_bytes,
        }
    }
}

/// Returns a node's resources other than cpu, memory and pods, by name, without zero amounts.
pub fn extended<'w>(amounts: &'w Amounts<'_>) -> Vec<(&'w str, i64)> {
    let counts = |resource: &str| resource == "ephemeral-storage" || is_scalar(resource);
    let units = |amount: &Quantity<'_>| amount.units();
    let mut offered: Vec<(&str, i64)> = amounts
        .0
        .iter()
        .map(|(resource, amount)| (&**resource, units(amount)))
        .filter(|(resource, amount)| counts(resource) && *amount > 0)
        .collect();
    offered.sort_unstable();
    offered
}

/// Whether the scheduler counts the resource by name (`schedutil.IsScalarResourceName`).
fn is_scalar(resource: &str) -> bool {
    resource.contains('/')
        || resource.starts_with("hugepages-")
        || resource.starts_with("attachable-volumes-")
}
