//! Requests and limits of a pod, as the scheduler, quotas and kubelets read them.

use minicbor::{Decode, Encode};

use super::{encoding::EncodingContext, names::Name, shared_list::SharedList};

/// Requests and limits of a pod.
///
/// They may differ between pods of a workload (in-place resizing, a vertical autoscaler). They are therefore not part
/// of [`super::SchedulingSpec`], which such pods still share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct PodResources {
    #[n(0)]
    pub requests: Requests,
    #[n(1)]
    pub quota: QuotaSpec,
    #[n(2)]
    pub kubelet: KubeletSpec,
}

impl From<Requests> for PodResources {
    fn from(requests: Requests) -> Self {
        Self { requests, ..Self::default() }
    }
}

/// The resources that a pod requests (component-helpers `resource.PodRequests`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct Requests {
    #[n(0)]
    pub cpu_milli: i64,
    #[n(1)]
    pub memory_bytes: i64,
    #[n(2)]
    pub ephemeral_bytes: i64,
    /// Huge pages and extended resources, by name; requests of zero included.
    #[n(3)]
    pub scalars: Box<[(Name, i64)]>,
    /// CPU requests, with 100m assumed for each container without a CPU request; used for scores only.
    #[n(4)]
    pub assumed_cpu_milli: i64,
    /// Memory requests, with 200 MiB assumed for each container without a memory request; used for scores only.
    #[n(5)]
    pub assumed_memory_bytes: i64,
}

impl Requests {
    /// Returns the requested amount of a resource, in its own unit (CPU in thousandths).
    pub fn of(&self, resource: &str) -> i64 {
        match resource {
            "cpu" => self.cpu_milli,
            "memory" => self.memory_bytes,
            "ephemeral-storage" => self.ephemeral_bytes,
            _ => self.scalars.iter().find(|(name, _)| *name == *resource).map_or(0, |(_, asked)| *asked),
        }
    }
}

/// The fields of a pod that quotas count, besides its requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct QuotaSpec {
    /// The sum of the CPU limits of the containers, computed like the sum of the requests.
    #[n(0)]
    pub cpu_limit_milli: i64,
    #[n(1)]
    pub memory_limit_bytes: i64,
    #[n(2)]
    pub ephemeral_limit_bytes: i64,
    /// `spec.priorityClassName`.
    #[n(3)]
    pub priority_class: Name,
    /// Whether the pod has `spec.activeDeadlineSeconds`.
    #[n(4)]
    pub has_deadline: bool,
}

/// The fields of a pod by which a kubelet ranks pods for eviction, scores their processes for the OOM killer, and ends
/// them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct KubeletSpec {
    /// `status.qosClass`; computed from the containers if the server has not set it.
    #[n(0)]
    pub qos: QosClass,
    /// The memory request in bytes that is compared with the pod's usage. The overhead of the runtime class is added
    /// only to a request that is not zero (component-helpers `GetResourceRequestQuantity`).
    #[n(1)]
    pub memory_request_bytes: i64,
    #[n(2)]
    pub ephemeral_request_bytes: i64,
    /// The pod's containers, then its init containers, each in their order.
    #[n(3)]
    pub containers: Box<[ContainerResources]>,
    /// The names of the volumes that hold data on the node's disk: `emptyDir` (not in memory), `hostPath`, `configMap`,
    /// `gitRepo`. The kubelet adds their usage to the usage of the pod.
    #[n(4)]
    pub local_volumes: SharedList<Name>,
    /// The longest `lifecycle.preStop.sleep` of the containers, in seconds: the kubelet waits so long before it sends
    /// SIGTERM.
    #[cbor(n(5), default)]
    pub pre_stop_sleep: u32,
    /// Whether the pod has a field that the Pod Security level `baseline` forbids: namespaces of the host, a privileged
    /// container, a hostPath volume or a host port.
    #[cbor(n(6), default)]
    pub exceeds_baseline: bool,
}

/// `status.qosClass`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(index_only)]
pub enum QosClass {
    #[n(0)]
    Guaranteed,
    #[default]
    #[n(1)]
    Burstable,
    /// No container of the pod has requests or limits.
    #[n(2)]
    BestEffort,
}

impl QosClass {
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Guaranteed, Self::Burstable, Self::BestEffort].into_iter().find(|class| class.as_str() == text)
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Guaranteed => "Guaranteed",
            Self::Burstable => "Burstable",
            Self::BestEffort => "BestEffort",
        }
    }
}

/// `resources` of one container, CPU in thousandths and memory in bytes; zero where nothing is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct ContainerResources {
    #[n(0)]
    pub name: Name,
    #[n(1)]
    pub role: ContainerRole,
    #[n(2)]
    pub cpu_request_milli: i64,
    #[n(3)]
    pub cpu_limit_milli: i64,
    #[n(4)]
    pub memory_request_bytes: i64,
    #[n(5)]
    pub memory_limit_bytes: i64,
}

impl ContainerResources {
    /// Sums a request over the containers of a pod (component-helpers `resource.PodRequests`).
    pub fn sum(containers: &[Self], request: fn(&Self) -> i64) -> i64 {
        let (mut running, mut sidecars, mut initial) = (0_i64, 0_i64, 0_i64);
        for container in containers {
            let own = request(container);
            match container.role {
                ContainerRole::App => running = running.saturating_add(own),
                ContainerRole::Sidecar => {
                    running = running.saturating_add(own);
                    sidecars = sidecars.saturating_add(own);
                    initial = initial.max(sidecars);
                }
                ContainerRole::Init => initial = initial.max(sidecars.saturating_add(own)),
            }
        }
        running.max(initial)
    }
}

/// When a container runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Encode, Decode)]
#[cbor(index_only)]
pub enum ContainerRole {
    #[default]
    #[n(0)]
    App,
    /// An init container with `restartPolicy: Always`, which runs beside the main containers.
    #[n(1)]
    Sidecar,
    /// An init container that ends before the main containers start.
    #[n(2)]
    Init,
}
