//! Pods.

mod resize;
mod template;

use std::sync::Arc;

use serde::Deserialize;

pub(super) use self::template::template;

use super::{
    Decoder, WatchEvent,
    affinity::{WireAffinity, WireSpread},
    has_metadata,
    leaf::{Amounts, Flag, Int, LenientBool, LenientList, Pairs, Quantity, Text, Time, or_default},
    meta::Meta,
    node::WireCondition,
    pool::SharedParts,
    protobuf::{message, wire},
    requests::{self, ContainerRequests, RequestSum, WireResources},
    volume::{self, WireVolume},
};
use kordon_core::{
    cluster::{
        Change, ConditionStatus, ContainerExit, ContainerResources, ContainerRole, IndexFailures,
        KubeletSpec, LocalVolume, Name, NodeName, Phase, Pod, PodEnding, PodReady, PodResources,
        PodUnscheduled, QosClass, QuotaSpec, Resources, SchedulingSpec, TaintEffect, Toleration,
        TolerationOperator,
        scheduling::{HostPort, PodDeviceClaim},
    },
    pressure,
};
use kordon_time::{ClusterTime, Span};

/// The API server's default of `spec.terminationGracePeriodSeconds`.
const DEFAULT_GRACE: Span = Span::from_secs(30);

/// Reads pods.
#[derive(Debug, Default)]
pub struct PodDecoder(SharedParts);

impl Decoder for PodDecoder {
    type Wire<'a> = WirePod<'a>;

    fn change(&mut self, event: WatchEvent<WirePod<'_>>) -> Option<Change> {
        Some(Change::Pod(event.map(|wire| pod(&wire, &mut self.0))))
    }

    fn tidy(&mut self) {
        self.0.tidy();
    }
}

fn pod(wire: &WirePod<'_>, pool: &mut SharedParts) -> Pod {
    let WirePod { metadata, spec, status } = wire;
    let tolerations: Vec<Toleration> = spec.tolerations.iter().map(|wire| wire.toleration(pool)).collect();
    let finalizers: Vec<Name> = metadata.finalizers.iter().map(|text| pool.name(text)).collect();
    let condition = |kind: &str| status.conditions.iter().find(|condition| *condition.kind == *kind);
    let sum = spec.sum();
    let scheduling = spec.scheduling(pool);
    let mut resources = spec.resources(sum, &status.qos_class, pool);
    spec.apply_resize(status, &mut resources);
    let target = condition("DisruptionTarget").filter(|condition| *condition.status == *"True");
    Pod {
        key: metadata.key(pool),
        uid: metadata.uid(),
        version: metadata.version(),
        created: metadata.created(),
        labels: pool.labels(&metadata.labels),
        owner: metadata.owner(pool).map(|owner| pool.owner(owner)),
        node: (!spec.node_name.is_empty()).then(|| NodeName(pool.name(&spec.node_name))),
        tolerations: pool.tolerations(&tolerations),
        priority: spec.priority.narrow().unwrap_or_default(),
        resources: pool.resources(resources),
        scheduling: pool.scheduling(scheduling),
        started: status.start_time.time(),
        nominated: (!status.nominated_node_name.is_empty())
            .then(|| NodeName(pool.name(&status.nominated_node_name))),
        grace: spec.termination_grace_period_seconds.seconds().unwrap_or(DEFAULT_GRACE),
        phase: Phase::parse(&status.phase),
        reason: pool.name(&status.reason),
        ready: condition("Ready").map(|ready| PodReady {
            status: ConditionStatus::parse(&ready.status),
            last_transition: ready.last_transition_time.time(),
        }),
        unscheduled: condition("PodScheduled").filter(|condition| *condition.status != *"True").map(
            |condition| {
                Arc::new(PodUnscheduled {
                    reason: pool.name(&condition.reason),
                    message: pool.name(&condition.message),
                    since: condition.last_transition_time.time(),
                })
            },
        ),
        disruption_target: target.map(|condition| pool.name(&condition.reason)),
        ending: ending(wire, target, pool).map(Arc::new),
        termination: metadata.termination().map(Box::new),
        mirror: metadata.annotations.mirror,
        kept_from: metadata.annotations.kept_from,
        finalizers: pool.names(&finalizers),
        storage: volume::local_storage(&spec.volumes),
    }
}

fn ending(
    wire: &WirePod<'_>,
    target: Option<&WireCondition<'_>>,
    pool: &mut SharedParts,
) -> Option<PodEnding> {
    let WirePod { metadata, spec, status } = wire;
    let ending = status.ending(target, spec, pool);
    let failures =
        metadata.annotations.index_failures.filter(|failures| *failures != IndexFailures::default());
    match failures {
        None => ending,
        Some(_) => Some(PodEnding { index_failures: failures, ..ending.unwrap_or_default() }),
    }
}

wire! {
    /// A Pod on the wire.
    pub struct WirePod<'a> {
        #[serde(deserialize_with = "or_default")]
        metadata: Meta<'a> = 1,
        #[serde(deserialize_with = "or_default")]
        spec: Spec<'a> = 2,
        #[serde(deserialize_with = "or_default")]
        status: Status<'a> = 3,
    }
}

has_metadata!(WirePod);

wire! {
    struct Spec<'a> {
        restart_policy: Text<'a> = 3,
        node_name: Text<'a> = 10,
        host_network: LenientBool = 11,
        #[serde(rename = "hostPID")]
        host_pid: LenientBool = 12,
        #[serde(rename = "hostIPC")]
        host_ipc: LenientBool = 13,
        priority: Int = 25,
        priority_class_name: Text<'a> = 24,
        active_deadline_seconds: Int = 5,
        termination_grace_period_seconds: Int = 4,
        tolerations: LenientList<WireToleration<'a>> = 22,
        containers: LenientList<Container<'a>> = 2,
        init_containers: LenientList<Container<'a>> = 20,
        #[serde(deserialize_with = "or_default")]
        overhead: Amounts<'a> = 32,
        #[serde(deserialize_with = "or_default")]
        resources: WireResources<'a> = 40,
        node_selector: Pairs<'a> = 7,
        #[serde(deserialize_with = "or_default")]
        affinity: WireAffinity<'a> = 18,
        topology_spread_constraints: LenientList<WireSpread<'a>> = 33,
        volumes: LenientList<WireVolume<'a>> = 1,
        preemption_policy: Text<'a> = 31,
        scheduling_gates: LenientList<Named<'a>> = 38,
        scheduler_name: Text<'a> = 19,
        resource_claims: LenientList<WireDeviceClaim<'a>> = 39,
        readiness_gates: LenientList<WireReadinessGate<'a>> = 28,
        host_users: Flag = 37,
    }
}

impl<'a> Spec<'a> {
    fn sum(&self) -> RequestSum<'_> {
        self.sum_of(|resources| &resources.requests, &self.overhead)
    }

    fn sum_of<'w>(
        &'w self,
        amounts: fn(&'w WireResources<'a>) -> &'w Amounts<'a>,
        overhead: &'w Amounts<'a>,
    ) -> RequestSum<'w> {
        let of = |container: &'w Container<'a>| ContainerRequests {
            amounts: amounts(&container.resources),
            restart_policy: &container.restart_policy,
        };
        let (containers, init_containers) = (self.containers.iter(), self.init_containers.iter());
        requests::requests(containers.map(of), init_containers.map(of), amounts(&self.resources), overhead)
    }

    /// Returns the requests and limits of the pod; `sum` is the sum of its requests.
    fn resources(&self, sum: RequestSum<'_>, class: &str, pool: &mut SharedParts) -> PodResources {
        PodResources {
            quota: self.quota(pool),
            kubelet: self.kubelet(&sum, class, pool),
            requests: sum.requests(pool),
        }
    }

    /// Returns the amounts that quotas count. The pod's overhead is added to a limit only if the limit is not zero.
    fn quota(&self, pool: &mut SharedParts) -> QuotaSpec {
        let none = Amounts::default();
        let limits = self.sum_of(|resources| &resources.limits, &none);
        let overhead = |resource: &str| self.overhead.amount(resource);
        let with = |limit: i64, overhead: Option<i64>| match limit {
            0 => 0,
            limit => limit.saturating_add(overhead.unwrap_or(0)),
        };
        let Resources { cpu_milli, memory_bytes, .. } = limits.resources();
        QuotaSpec {
            cpu_limit_milli: with(cpu_milli, overhead("cpu").map(|amount| amount.milli())),
            memory_limit_bytes: with(memory_bytes, overhead("memory").map(|amount| amount.units())),
            ephemeral_limit_bytes: limits.ephemeral_bytes(),
            priority_class: pool.name(&self.priority_class_name),
            has_deadline: self.active_deadline_seconds.0.is_some_and(|seconds| seconds >= 0),
        }
    }

    fn scheduling(&self, pool: &mut SharedParts) -> SchedulingSpec {
        let mut node_selector: Vec<(Name, Name)> =
            self.node_selector.0.iter().map(|(key, value)| (pool.name(key), pool.name(value))).collect();
        node_selector.sort();
        let scheduler = match &*self.scheduler_name {
            "default-scheduler" => "",
            other => other,
        };
        SchedulingSpec {
            node_selector: node_selector.into(),
            node_affinity: self.affinity.required_nodes(pool),
            preferred_nodes: self.affinity.preferred_nodes(pool),
            pod_affinity: self.affinity.near(pool),
            pod_anti_affinity: self.affinity.apart(pool),
            spread: self.topology_spread_constraints.iter().map(|wire| wire.constraint(pool)).collect(),
            host_ports: self.host_ports(pool),
            images: self.containers.iter().map(|container| image(&container.image, pool)).collect(),
            init_images: self.init_containers.iter().map(|container| image(&container.image, pool)).collect(),
            volume_images: self
                .volumes
                .iter()
                .filter_map(|volume| Some(image(volume.image()?, pool)))
                .collect(),
            volumes: self.volumes.iter().filter_map(|volume| volume.volume(pool)).collect(),
            never_preempts: *self.preemption_policy == *"Never",
            gates: self.scheduling_gates.iter().map(|gate| pool.name(&gate.name)).collect(),
            scheduler: pool.name(scheduler),
            claims_devices: !self.resource_claims.is_empty(),
            device_claims: self.resource_claims.iter().map(|claim| claim.claim(pool)).collect(),
            required_features: self.required_features(pool),
        }
    }

    /// Returns the features that a node has to declare for the pod (component-helpers of 1.37,
    /// `nodedeclaredfeatures/features`: `InferForScheduling`). Mount options of bind mounts, which are off by default in
    /// 1.37 (`VolumeBindMountOptions`), are not read.
    fn required_features(&self, pool: &mut SharedParts) -> Box<[Name]> {
        let mut containers = self.containers.iter().chain(self.init_containers.iter());
        let restarts_all = containers.any(Container::may_restart_all);
        let maps_users_of_host = self.host_network.0 && self.host_users == Flag(Some(false));
        let features = [
            (restarts_all, "RestartAllContainersOnContainerExits"),
            (maps_users_of_host, "UserNamespacesHostNetworkSupport"),
        ];
        let required = features.into_iter().filter(|(is_required, _)| *is_required);
        required.map(|(_, feature)| pool.name(feature)).collect()
    }

    /// Returns the pod's resources as the kubelet uses them; `sum` is the sum of the requests. The QoS class is the
    /// server's class, or is computed if the server has not set one.
    fn kubelet(&self, sum: &RequestSum<'_>, class: &str, pool: &mut SharedParts) -> KubeletSpec {
        let app = self.containers.iter().map(|container| (container, ContainerRole::App));
        let init = self.init_containers.iter().map(|container| {
            (container, if container.is_sidecar() { ContainerRole::Sidecar } else { ContainerRole::Init })
        });
        let containers: Box<[ContainerResources]> =
            app.chain(init).map(|(container, role)| container.resources(role, pool)).collect();
        let unless_overhead_alone = |resource: &str, sum: i64| {
            let overhead = self.overhead.amount(resource).map_or(0, Quantity::units);
            if sum == overhead { 0 } else { sum }
        };
        let local_volumes: Vec<Name> =
            self.volumes.iter().filter_map(|volume| volume.local_data(pool)).collect();
        KubeletSpec {
            memory_request_bytes: unless_overhead_alone("memory", sum.resources().memory_bytes),
            ephemeral_request_bytes: unless_overhead_alone("ephemeral-storage", sum.ephemeral_bytes()),
            qos: QosClass::parse(class).unwrap_or_else(|| pressure::qos_class(&containers)),
            containers,
            local_volumes: pool.names(&local_volumes),
            pre_stop_sleep: self.pre_stop_sleep(),
            exceeds_baseline: self.exceeds_baseline(),
        }
    }

    /// Whether the pod uses the host's namespaces, a hostPath volume, a privileged container or a host port. The Pod
    /// Security level `baseline` forbids these.
    fn exceeds_baseline(&self) -> bool {
        let mut containers = self.containers.iter().chain(self.init_containers.iter());
        let has_host_port =
            |container: &Container<'_>| container.ports.iter().any(|port| port.host_port.or(0) != 0);
        self.host_network.0
            || self.host_pid.0
            || self.host_ipc.0
            || volume::local_storage(&self.volumes).has(LocalVolume::HostPath)
            || containers.any(|container| container.is_privileged() || has_host_port(container))
    }

    /// Returns the longest `preStop` sleep of a container or sidecar, in seconds. The kubelet sleeps before it sends
    /// SIGTERM. Init containers that are not sidecars do not count, because they have already ended.
    fn pre_stop_sleep(&self) -> u32 {
        let sidecars = self.init_containers.iter().filter(|container| container.is_sidecar());
        let sleeps = self.containers.iter().chain(sidecars).filter_map(Container::pre_stop_sleep);
        u32::try_from(sleeps.max().unwrap_or_default().as_secs()).unwrap_or_default()
    }

    /// Returns the host ports of containers and sidecars. Ports of other init containers do not count, because these
    /// containers end before the pod serves clients.
    fn host_ports(&self, pool: &mut SharedParts) -> Box<[HostPort]> {
        let sidecars = self.init_containers.iter().filter(|container| container.is_sidecar());
        let ports = self.containers.iter().chain(sidecars).flat_map(|container| container.ports.iter());
        ports.filter_map(|port| port.host_port(pool)).collect()
    }
}

/// Returns the image name as the scheduler compares it, with a tag (`imagelocality.normalizedImageName`).
fn image(name: &str, pool: &mut SharedParts) -> Name {
    if name.rfind(':') <= name.rfind('/') { pool.name(&format!("{name}:latest")) } else { pool.name(name) }
}

wire! {
    struct Container<'a> {
        name: Text<'a> = 1,
        image: Text<'a> = 2,
        restart_policy: Text<'a> = 24,
        #[serde(deserialize_with = "or_default")]
        resources: WireResources<'a> = 8,
        ports: LenientList<WirePort<'a>> = 6,
        lifecycle: Option<WireLifecycle> = 12,
        security_context: Option<WireSecurityContext> = 15,
        restart_policy_rules: LenientList<WireRestartRule<'a>> = 25,
    }
}

wire! {
    struct WireRestartRule<'a> {
        action: Text<'a> = 1,
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireSecurityContext {
    privileged: LenientBool,
}

message! {
    impl<'a> WireSecurityContext {
        2 => privileged,
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireLifecycle {
    pre_stop: Option<WireHandler>,
}

message! {
    impl<'a> WireLifecycle {
        2 => pre_stop,
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireHandler {
    sleep: Option<WireSleep>,
}

message! {
    impl<'a> WireHandler {
        4 => sleep,
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireSleep {
    seconds: Int,
}

message! {
    impl<'a> WireSleep {
        1 => seconds,
    }
}

impl Container<'_> {
    fn pre_stop_sleep(&self) -> Option<Span> {
        self.lifecycle.as_ref()?.pre_stop.as_ref()?.sleep.as_ref()?.seconds.seconds()
    }

    fn is_privileged(&self) -> bool {
        self.security_context.as_ref().is_some_and(|context| context.privileged.0)
    }

    /// Whether an exit of the container may restart all containers of the pod.
    fn may_restart_all(&self) -> bool {
        self.restart_policy_rules.iter().any(|rule| *rule.action == *"RestartAllContainers")
    }

    fn is_sidecar(&self) -> bool {
        *self.restart_policy == *"Always"
    }

    fn resources(&self, role: ContainerRole, pool: &mut SharedParts) -> ContainerResources {
        let WireResources { requests, limits } = &self.resources;
        let cpu = |amounts: &Amounts<'_>| amounts.amount("cpu").map_or(0, Quantity::milli);
        let memory = |amounts: &Amounts<'_>| amounts.amount("memory").map_or(0, Quantity::units);
        ContainerResources {
            name: pool.name(&self.name),
            role,
            cpu_request_milli: cpu(requests),
            cpu_limit_milli: cpu(limits),
            memory_request_bytes: memory(requests),
            memory_limit_bytes: memory(limits),
        }
    }
}

wire! {
    struct WirePort<'a> {
        host_port: Int = 2,
        container_port: Int = 3,
        #[serde(rename = "hostIP")]
        host_ip: Text<'a> = 5,
        protocol: Text<'a> = 4,
    }
}

impl WirePort<'_> {
    fn host_port(&self, pool: &mut SharedParts) -> Option<HostPort> {
        let port = self.host_port.narrow().filter(|port| *port > 0)?;
        let protocol = if self.protocol.is_empty() { "TCP" } else { &*self.protocol };
        Some(HostPort { ip: pool.name(&self.host_ip), protocol: pool.name(protocol), port })
    }
}

wire! {
    struct WireDeviceClaim<'a> {
        name: Text<'a> = 1,
        resource_claim_name: Text<'a> = 3,
        resource_claim_template_name: Text<'a> = 4,
    }
}

impl WireDeviceClaim<'_> {
    fn claim(&self, pool: &mut SharedParts) -> PodDeviceClaim {
        let mut named = |name: &str| (!name.is_empty()).then(|| pool.name(name));
        PodDeviceClaim {
            claim: named(&self.resource_claim_name),
            template: named(&self.resource_claim_template_name),
            entry: pool.name(&self.name),
        }
    }
}

wire! {
    struct WireReadinessGate<'a> {
        condition_type: Text<'a> = 1,
    }
}

wire! {
    struct Named<'a> {
        name: Text<'a> = 1,
    }
}

wire! {
    struct WireToleration<'a> {
        key: Text<'a> = 1,
        operator: Text<'a> = 2,
        value: Text<'a> = 3,
        effect: Text<'a> = 4,
        toleration_seconds: Int = 5,
    }
}

impl WireToleration<'_> {
    fn toleration(&self, pool: &mut SharedParts) -> Toleration {
        Toleration {
            key: pool.name(&self.key),
            operator: TolerationOperator::parse(&self.operator),
            value: pool.name(&self.value),
            effect: (!self.effect.is_empty()).then(|| TaintEffect::parse(&self.effect)),
            seconds: self.toleration_seconds.0,
        }
    }
}

wire! {
    struct Status<'a> {
        phase: Text<'a> = 1,
        reason: Text<'a> = 4,
        qos_class: Text<'a> = 9,
        start_time: Time<'a> = 7,
        nominated_node_name: Text<'a> = 11,
        conditions: LenientList<WireCondition<'a>> = 2,
        message: Text<'a> = 3,
        container_statuses: LenientList<WireContainerStatus<'a>> = 8,
        init_container_statuses: LenientList<WireContainerStatus<'a>> = 10,
    }
}

/// Reasons for which a waiting container does not start until somebody removes the cause.
const STUCK_WAITING: [&str; 8] = [
    "CrashLoopBackOff",
    "ImagePullBackOff",
    "ErrImagePull",
    "ErrImageNeverPull",
    "InvalidImageName",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
];
/// A container that is not ready and has restarted at least this often counts as crashing, even if it runs at the
/// moment. One restart is enough if the pod was never Ready during the container's last run.
const MANY_RESTARTS: i64 = 3;
/// Duration of a container's run after which the kubelet forgets the restarts before the run (kubelet `NewMainKubelet`,
/// `HasExpiredFunc`).
const BACK_OFF_RESET: Span = Span::from_secs(600);

/// Maximum length of `status.message`, in characters.
const LONGEST: usize = 300;

impl Status<'_> {
    /// Returns the reason why one of the pod's containers does not run and is not expected to run; `None` if there is
    /// no such container. `restarts` is false for a pod whose containers are never restarted.
    fn trouble(&self, restarts: bool, pool: &mut SharedParts) -> Option<Name> {
        let statuses = self.init_container_statuses.iter().chain(self.container_statuses.iter());
        let is_unready =
            |condition: &&WireCondition<'_>| *condition.kind == *"Ready" && *condition.status != *"True";
        let unready_since = || self.conditions.iter().find(is_unready)?.last_transition_time.time();
        let trouble = |status: &WireContainerStatus<'_>| -> Option<String> {
            if status.ready.0 {
                return None;
            }
            let waiting = status.state.waiting.as_ref().map(|waiting| &*waiting.reason);
            if let Some(reason) = waiting.filter(|reason| STUCK_WAITING.contains(reason)) {
                return Some(reason.to_owned());
            }
            let exited = status.state.terminated.as_ref().filter(|ended| ended.exit_code.or(0) != 0);
            if let Some(ended) = exited.filter(|_| !restarts) {
                return Some(format!("exited with {}", ended.exit_code.or(0)));
            }
            let restarts = status.restart_count.or(0);
            let is_starting_badly = restarts > 0 && status.last_run_began_after(unready_since());
            let crashes = (restarts >= MANY_RESTARTS || is_starting_badly) && !status.last_run_was_long();
            crashes.then(|| match restarts {
                1 => "restarted once".to_owned(),
                restarts => format!("restarted {restarts} times"),
            })
        };
        statuses.into_iter().find_map(trouble).map(|trouble| pool.name(&trouble))
    }

    /// Returns the latest time at which one of the containers that are not ready was restarted; `None` if none of them
    /// was.
    fn restarted(&self) -> Option<ClusterTime> {
        let statuses = self.init_container_statuses.iter().chain(self.container_statuses.iter());
        let restarted = statuses.filter(|status| !status.ready.0 && status.restart_count.or(0) > 0);
        restarted.filter_map(|status| status.state.running.as_ref()?.started_at.time()).max()
    }

    /// Returns the readiness gates of the spec whose conditions are not True (kubelet `GeneratePodReadyCondition`).
    fn unmet_gates(&self, spec: &Spec<'_>, pool: &mut SharedParts) -> Box<[Name]> {
        let is_met = |gate: &&WireReadinessGate<'_>| {
            let mut conditions = self.conditions.iter();
            conditions
                .any(|condition| *condition.kind == *gate.condition_type && *condition.status == *"True")
        };
        let unmet = spec.readiness_gates.iter().filter(|gate| !is_met(gate));
        unmet.map(|gate| pool.name(&gate.condition_type)).collect()
    }

    /// Returns the ending of the pod, or signs of trouble: exits of containers, a disruption, containers that do not
    /// run or were restarted, and readiness gates that are not met. `None` if there is nothing of this kind, as for
    /// most pods.
    fn ending(
        &self,
        target: Option<&WireCondition<'_>>,
        spec: &Spec<'_>,
        pool: &mut SharedParts,
    ) -> Option<PodEnding> {
        let restarts = *spec.restart_policy != *"Never";
        let is_finished = matches!(Phase::parse(&self.phase), Phase::Succeeded | Phase::Failed);
        let exits: Box<[ContainerExit]> = self
            .container_statuses
            .iter()
            .flat_map(|container| {
                [(&container.state, false), (&container.last_state, true)].into_iter().filter_map(
                    move |(state, restarted)| Some((container, state.terminated.as_ref()?, restarted)),
                )
            })
            .filter(|(_, ended, restarted)| is_finished && !restarted || *ended.reason == *"OOMKilled")
            .map(|(container, ended, restarted)| ContainerExit {
                container: pool.name(&container.name),
                reason: pool.name(&ended.reason),
                code: ended.exit_code.narrow().unwrap_or_default(),
                at: ended.finished_at.time(),
                restarted,
            })
            .collect();
        let has_message = is_finished && !self.message.is_empty();
        let trouble = if is_finished { None } else { self.trouble(restarts, pool) };
        let unmet_gates = if is_finished { Box::default() } else { self.unmet_gates(spec, pool) };
        let restarted = if is_finished { None } else { self.restarted() };
        let is_ending = target.is_some()
            || has_message
            || !exits.is_empty()
            || trouble.is_some()
            || restarted.is_some()
            || !unmet_gates.is_empty();
        is_ending.then(|| PodEnding {
            trouble,
            restarted,
            unmet_gates,
            message: if self.message.chars().nth(LONGEST).is_none() {
                pool.name(&self.message)
            } else {
                pool.name(&self.message.chars().take(LONGEST).collect::<String>())
            },
            disrupted: target.and_then(|target| target.last_transition_time.time()),
            exits,
            index_failures: None,
        })
    }
}

wire! {
    struct WireContainerStatus<'a> {
        name: Text<'a> = 1,
        #[serde(deserialize_with = "or_default")]
        state: WireContainerState<'a> = 2,
        #[serde(deserialize_with = "or_default")]
        last_state: WireContainerState<'a> = 3,
        ready: LenientBool = 4,
        restart_count: Int = 5,
        #[serde(deserialize_with = "or_default")]
        allocated_resources: Amounts<'a> = 10,
        #[serde(deserialize_with = "or_default")]
        resources: WireResources<'a> = 11,
    }
}

impl WireContainerStatus<'_> {
    /// Whether the container's last completed run was so long that the kubelet does not delay the next restart.
    fn last_run_was_long(&self) -> bool {
        let ended = self.state.terminated.as_ref().or(self.last_state.terminated.as_ref());
        let ran = ended.and_then(|ended| Some(ended.finished_at.time()?.since(ended.started_at.time()?)));
        ran.is_some_and(|ran| ran > BACK_OFF_RESET)
    }

    /// Whether the container's last completed run began at `time` or later. If this is not known because the container
    /// never started, the end of the run counts.
    fn last_run_began_after(&self, time: Option<ClusterTime>) -> bool {
        let ended = self.state.terminated.as_ref().or(self.last_state.terminated.as_ref());
        let began = ended.and_then(|ended| ended.started_at.time().or(ended.finished_at.time()));
        time.zip(began).is_some_and(|(time, began)| began >= time)
    }
}

wire! {
    struct WireContainerState<'a> {
        waiting: Option<WireWaiting<'a>> = 1,
        running: Option<WireRunning<'a>> = 2,
        terminated: Option<WireTerminated<'a>> = 3,
    }
}

wire! {
    struct WireWaiting<'a> {
        reason: Text<'a> = 1,
    }
}

wire! {
    struct WireRunning<'a> {
        started_at: Time<'a> = 1,
    }
}

wire! {
    struct WireTerminated<'a> {
        exit_code: Int = 1,
        reason: Text<'a> = 3,
        started_at: Time<'a> = 5,
        finished_at: Time<'a> = 6,
    }
}
