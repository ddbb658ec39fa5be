//! Pods.

use serde::{Deserialize, de::IgnoredAny};

use super::{
    Decoder, News, Wire,
    leaf::{Int, List, Quantity, Text, or_default},
    meta::Meta,
    node::WireCondition,
    pool::Pool,
};
use crate::{
    cluster::{
        Change, ConditionStatus, LocalStorage, NodeName, Phase, Pod, PodReady, Resources, TaintEffect,
        Toleration, TolerationOperator,
    },
    time::Span,
};

/// What the API server fills in for `spec.terminationGracePeriodSeconds`.
const DEFAULT_GRACE: Span = Span::from_secs(30);

/// Reads pods.
#[derive(Debug, Default)]
pub struct Pods(Pool);

impl Decoder for Pods {
    type Wire<'a> = WirePod<'a>;

    fn change(&mut self, news: News<WirePod<'_>>) -> Option<Change> {
        Some(Change::Pod(news.event(|wire| pod(&wire, &mut self.0))))
    }

    fn tidy(&mut self) {
        self.0.tidy();
    }
}

fn pod(wire: &WirePod<'_>, pool: &mut Pool) -> Pod {
    let WirePod { metadata, spec, status } = wire;
    let tolerations: Vec<Toleration> = spec.tolerations.iter().map(|wire| wire.toleration(pool)).collect();
    let condition = |kind: &str| status.conditions.iter().find(|condition| *condition.kind == *kind);
    let target = condition("DisruptionTarget").filter(|condition| *condition.status == *"True");
    Pod {
        key: metadata.key(pool),
        uid: metadata.uid(),
        version: metadata.version(),
        created: metadata.created(),
        labels: pool.labels(&metadata.labels),
        owner: metadata.owner(pool),
        node: (!spec.node_name.is_empty()).then(|| NodeName(pool.name(&spec.node_name))),
        tolerations: pool.tolerations(&tolerations),
        priority: spec.priority.narrow().unwrap_or_default(),
        requests: spec.requests(),
        grace: spec.termination_grace_period_seconds.seconds().unwrap_or(DEFAULT_GRACE),
        phase: Phase::parse(&status.phase),
        ready: condition("Ready").map(|ready| PodReady {
            status: ConditionStatus::parse(&ready.status),
            last_transition: ready.last_transition_time.time(),
        }),
        disruption_target: target.map(|condition| pool.name(&condition.reason)),
        termination: metadata.termination(),
        mirror: metadata.annotations.mirror,
        finalizers: pool.names(&metadata.finalizers),
        storage: spec.local_storage(),
    }
}

/// A Pod as it is read.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct WirePod<'a> {
    #[serde(borrow, deserialize_with = "or_default")]
    metadata: Meta<'a>,
    #[serde(borrow, deserialize_with = "or_default")]
    spec: Spec<'a>,
    #[serde(borrow, deserialize_with = "or_default")]
    status: Status<'a>,
}

impl Wire for WirePod<'_> {
    fn meta(&self) -> &Meta<'_> {
        &self.metadata
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec<'a> {
    #[serde(borrow)]
    node_name: Text<'a>,
    priority: Int,
    termination_grace_period_seconds: Int,
    #[serde(borrow)]
    tolerations: List<WireToleration<'a>>,
    #[serde(borrow)]
    containers: List<Container<'a>>,
    #[serde(borrow)]
    init_containers: List<Container<'a>>,
    #[serde(borrow, deserialize_with = "or_default")]
    overhead: Amounts<'a>,
    #[serde(borrow, deserialize_with = "or_default")]
    resources: Requirements<'a>,
    #[serde(borrow)]
    volumes: List<Volume<'a>>,
}

impl Spec<'_> {
    fn local_storage(&self) -> LocalStorage {
        let mut storage = LocalStorage::default();
        for Volume { empty_dir, host_path, ephemeral } in self.volumes.iter() {
            match empty_dir {
                Some(medium) if *medium.medium == *"Memory" => storage.memory = true,
                Some(_) => storage.empty_dir = true,
                None => {}
            }
            storage.host_path |= host_path.is_some();
            storage.ephemeral |= ephemeral.is_some();
        }
        storage
    }

    /// What the scheduler counts (component-helpers `resource.PodRequests`): containers and sidecars together,
    /// or what the initialisation needs at its most, whichever is more; pod-level requests replace that sum;
    /// overhead comes on top.
    fn requests(&self) -> Resources {
        let mut running = Resources::default();
        for container in self.containers.iter() {
            running += container.requests();
        }
        let (mut sidecars, mut initial) = (Resources::default(), Resources::default());
        for container in self.init_containers.iter() {
            let mut needed = sidecars;
            needed += container.requests();
            if *container.restart_policy == *"Always" {
                sidecars = needed;
                running += container.requests();
            }
            initial = larger(initial, needed);
        }
        let mut total = larger(running, initial);
        self.resources.requests.replace(&mut total);
        total += self.overhead.resources();
        total.pods = 1;
        total
    }
}

fn larger(left: Resources, right: Resources) -> Resources {
    Resources {
        cpu_milli: left.cpu_milli.max(right.cpu_milli),
        memory_bytes: left.memory_bytes.max(right.memory_bytes),
        pods: 0,
    }
}

/// A volume, by what it is made of.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Volume<'a> {
    #[serde(borrow)]
    empty_dir: Option<EmptyDir<'a>>,
    host_path: Option<IgnoredAny>,
    ephemeral: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct EmptyDir<'a> {
    #[serde(borrow)]
    medium: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Container<'a> {
    #[serde(borrow)]
    restart_policy: Text<'a>,
    #[serde(borrow, deserialize_with = "or_default")]
    resources: Requirements<'a>,
}

impl Container<'_> {
    fn requests(&self) -> Resources {
        self.resources.requests.resources()
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Requirements<'a> {
    #[serde(borrow, deserialize_with = "or_default")]
    requests: Amounts<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Amounts<'a> {
    #[serde(borrow)]
    cpu: Quantity<'a>,
    #[serde(borrow)]
    memory: Quantity<'a>,
}

impl Amounts<'_> {
    fn resources(&self) -> Resources {
        Resources { cpu_milli: self.cpu.milli(), memory_bytes: self.memory.units(), pods: 0 }
    }

    /// Puts those that are given in place of the sum.
    fn replace(&self, total: &mut Resources) {
        if self.cpu.is_given() {
            total.cpu_milli = self.cpu.milli();
        }
        if self.memory.is_given() {
            total.memory_bytes = self.memory.units();
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireToleration<'a> {
    #[serde(borrow)]
    key: Text<'a>,
    #[serde(borrow)]
    operator: Text<'a>,
    #[serde(borrow)]
    value: Text<'a>,
    #[serde(borrow)]
    effect: Text<'a>,
    toleration_seconds: Int,
}

impl WireToleration<'_> {
    fn toleration(&self, pool: &mut Pool) -> Toleration {
        Toleration {
            key: pool.name(&self.key),
            operator: TolerationOperator::parse(&self.operator),
            value: pool.name(&self.value),
            effect: (!self.effect.is_empty()).then(|| TaintEffect::parse(&self.effect)),
            seconds: self.toleration_seconds.0,
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status<'a> {
    #[serde(borrow)]
    phase: Text<'a>,
    #[serde(borrow)]
    conditions: List<WireCondition<'a>>,
}
