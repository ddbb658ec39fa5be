//! A synthetic cluster, and runs of the engine over it on a virtual clock.

use std::collections::BTreeSet;

use super::{HeartbeatKind, TimingProfile};
use crate::{
    cluster::{
        Change, Cluster, Condition, ConditionStatus, Key, Lease, Name, Namespace, Node, NodeName,
        ObjectEvent, Phase, Pod, PodReady, READY, SharedList, Toleration, TolerationOperator, Uid, Version,
    },
    engine::{Engine, NOT_READY, PASS_TAKES, Settings, UNREACHABLE},
    forecast::{Assumptions, ForecastStep, Incident, IncidentKind, Run},
};
use kordon_time::{ClusterTime, Span, Timestamp};

/// The size of a synthetic cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterSize {
    pub nodes: usize,
    pub pods_per_node: usize,
    /// Number of zones. The nodes are spread evenly over them.
    pub zones: usize,
}

/// Duration of a monitor pass. The next pass starts one monitor period after the end of this pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassDuration {
    /// A pass takes no time, so passes start exactly a period apart. A pass exactly at the end of the grace period does
    /// not find it expired yet; the next pass does.
    WithinPeriod,
    /// A pass takes a short time, so each pass starts slightly more than a period after the previous one. A pass at the
    /// end of the grace period then finds it expired.
    AfterPeriod,
}

impl PassDuration {
    pub const ALL: [Self; 2] = [Self::WithinPeriod, Self::AfterPeriod];
}

/// Start of the virtual clock. The value does not matter.
const START: Timestamp = Timestamp::from_secs(1_767_225_600);

/// Number of monitor passes before any node may send its last heartbeat.
const WARM_UP: i64 = 2;

/// The last heartbeat of a node before an outage.
#[derive(Clone, Debug)]
pub struct LastHeartbeat {
    pub node: NodeName,
    pub at: Timestamp,
}

/// A cluster of Ready nodes with Ready pods.
pub struct SyntheticCluster<'a> {
    profile: &'a TimingProfile,
    pub nodes: Vec<NodeName>,
    cluster: Cluster,
}

impl<'a> SyntheticCluster<'a> {
    pub fn new(profile: &'a TimingProfile, size: ClusterSize) -> Self {
        let nodes: Vec<NodeName> =
            (0..size.nodes).map(|place| NodeName::from(format!("node-{place:05}").as_str())).collect();
        let mut world = Self { profile, nodes, cluster: Cluster::default() };
        let zones: Vec<Name> =
            (0..size.zones.max(1)).map(|zone| format!("zone-{zone}").as_str().into()).collect();
        let tolerations: SharedList<Toleration> =
            [NOT_READY, UNREACHABLE].map(|key| world.toleration(key)).into();
        let written = ClusterTime::new(START);
        let mut applied = Vec::new();
        for (place, name) in world.nodes.iter().enumerate() {
            let mut add = |change| world.cluster.apply(change, &mut applied);
            add(Change::Node(ObjectEvent::Applied(node(name, &zones[place % zones.len()], written))));
            if profile.kubelet.heartbeat == HeartbeatKind::Lease {
                add(Change::Lease(ObjectEvent::Applied(lease(profile, name, written, Version(1)))));
            }
            for number in 0..size.pods_per_node {
                add(Change::Pod(ObjectEvent::Applied(pod(name, number, &tolerations, written))));
            }
        }
        world
    }

    fn toleration(&self, key: &str) -> Toleration {
        Toleration {
            key: key.into(),
            operator: TolerationOperator::Exists,
            seconds: Some(self.profile.toleration.as_secs()),
            ..Toleration::default()
        }
    }

    /// The earliest time at which a node may send its last heartbeat. At this time the controller has registered the
    /// nodes.
    pub fn warm_from(&self) -> Timestamp {
        START + self.profile.settings.node_monitor_period.value * (WARM_UP + 1)
    }

    /// Runs the engine until these nodes have sent their last heartbeats. `last` is sorted by time. Other nodes
    /// continue to send heartbeats. One of the monitor passes is at `pass`.
    pub fn outage(&self, last: &[LastHeartbeat], pass: Timestamp, duration: PassDuration) -> Outage<'a> {
        let settings = settings(self.profile, duration);
        let period = settings.node_monitor_period.value + PASS_TAKES;
        let passes_before = pass.since(START).as_nanos() / period.as_nanos().max(1);
        let engine = Engine::start(settings, &self.cluster, pass - period * passes_before, START);
        let run = Run::new(&engine, &self.cluster, &BTreeSet::new(), START);
        let mut outage = Outage { profile: self.profile, run, steps: Vec::new(), version: 1 };
        for last in last {
            outage.fail(last);
        }
        outage
    }
}

/// A run of the engine after nodes have sent their last heartbeat.
#[derive(Clone)]
pub struct Outage<'a> {
    profile: &'a TimingProfile,
    run: Run,
    /// Events that the run has predicted so far.
    pub steps: Vec<ForecastStep>,
    version: u64,
}

impl Outage<'_> {
    pub fn run_until(&mut self, until: Timestamp) {
        self.run.run_until(until, &Assumptions::default(), &mut self.steps);
    }

    /// Lets a node send its last heartbeat and fail. The next monitor pass notices the heartbeat.
    fn fail(&mut self, last: &LastHeartbeat) {
        let LastHeartbeat { node, at } = last;
        self.run_until(*at);
        self.run.apply_incident(&Incident { at: *at, node: node.clone(), kind: IncidentKind::Fails });
        self.heartbeat(node, *at);
    }

    /// Writes a heartbeat of the node's kubelet at this time.
    pub fn heartbeat(&mut self, node: &NodeName, at: Timestamp) {
        self.run_until(at);
        self.version += 1;
        match self.profile.kubelet.heartbeat {
            HeartbeatKind::Status => self.run.post_status(node, at),
            HeartbeatKind::Lease => {
                let renewed = lease(self.profile, node, ClusterTime::new(at), Version(self.version));
                self.run.apply(Change::Lease(ObjectEvent::Applied(renewed)), at);
            }
        }
    }

    /// Lets the kubelet post that the node is Ready and continue its heartbeats.
    pub fn recover(&mut self, node: &NodeName, at: Timestamp) {
        self.run_until(at);
        self.run.apply_incident(&Incident { at, node: node.clone(), kind: IncidentKind::Recovers });
    }
}

/// Returns the controller's settings, with a monitor period that is adapted to the duration of a pass. With
/// `WithinPeriod`, passes start exactly a period apart. With `AfterPeriod`, the duration of a pass is added.
fn settings(profile: &TimingProfile, duration: PassDuration) -> Settings {
    let mut settings = profile.settings.clone();
    settings.controllers.value.pod_gc = false;
    let period = &mut settings.node_monitor_period.value;
    *period = match duration {
        PassDuration::WithinPeriod => (*period - PASS_TAKES).max(PASS_TAKES),
        PassDuration::AfterPeriod => *period,
    };
    settings
}

fn node(name: &NodeName, zone: &Name, written: ClusterTime) -> Node {
    let ready = Condition {
        kind: READY.into(),
        status: ConditionStatus::True,
        reason: "KubeletReady".into(),
        last_heartbeat: Some(written),
        last_transition: Some(written),
        ..Condition::default()
    };
    Node {
        name: name.clone(),
        uid: Uid::from(name.0.as_ref()),
        version: Version(1),
        created: written,
        labels: [("topology.kubernetes.io/zone".into(), zone.clone())].into(),
        conditions: [ready].into(),
        ..Node::default()
    }
}

fn lease(profile: &TimingProfile, node: &NodeName, renewed: ClusterTime, version: Version) -> Lease {
    Lease {
        node: node.clone(),
        version,
        renewed: Some(renewed),
        duration: Some(profile.kubelet.lease_duration),
        written: None,
    }
}

fn pod(node: &NodeName, number: usize, tolerations: &SharedList<Toleration>, written: ClusterTime) -> Pod {
    let name = format!("{node}-pod-{number}");
    Pod {
        key: Key { namespace: Namespace("default".into()), name: name.as_str().into() },
        uid: Uid::from(name.as_str()),
        version: Version(1),
        created: written,
        node: Some(node.clone()),
        tolerations: tolerations.clone(),
        grace: Span::from_secs(30),
        phase: Phase::Running,
        ready: Some(PodReady { status: ConditionStatus::True, last_transition: Some(written) }),
        ..Pod::default()
    }
}
