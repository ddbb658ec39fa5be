//! Watches nodes and pods and records every visible effect with the time at which the watch reported it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use anyhow::{Context, Result, bail};
use futures::StreamExt;
use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{Node, Pod},
};
use kordon_clock::Clock;
use kordon_time::{Span, Timestamp};
use kube::{
    Api, Client, Resource, ResourceExt,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use serde::de::DeserializeOwned;
use tokio::{sync::watch, task::JoinSet};

/// An observed effect. Effects are ordered by time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Effect {
    /// Time at which the watch reported the effect, normally milliseconds after the write. If the watch was interrupted
    /// at that time, this is the time at which the watch reconnected.
    pub at: Timestamp,
    pub kind: EffectKind,
}

/// What changed. A watch does not show who made the change: a controller, a kubelet or the test.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EffectKind {
    NodeAdded {
        node: String,
    },
    NodeGone {
        node: String,
    },
    /// A condition has a new status.
    Condition {
        node: String,
        condition: String,
        status: String,
    },
    TaintAdded {
        node: String,
        key: String,
        effect: String,
    },
    TaintRemoved {
        node: String,
        key: String,
        effect: String,
    },
    Cordoned {
        node: String,
    },
    Uncordoned {
        node: String,
    },
    PodBound(PodName),
    PodReady(PodName),
    /// The pod's Ready condition changed from True.
    PodNotReady(PodName),
    /// The pod's DisruptionTarget condition became True.
    PodDisrupted {
        pod: PodName,
        reason: String,
    },
    /// The pod's deletion started: it has a deletion timestamp, or its object is gone without one.
    PodDeleted(PodName),
    PodGone(PodName),
    /// Another controller manager became the leader.
    LeaderChanged {
        holder: String,
    },
}

impl EffectKind {
    /// The node's Ready condition became Unknown.
    pub fn unknown(node: &str) -> Self {
        Self::Condition { node: node.into(), condition: "Ready".into(), status: "Unknown".into() }
    }

    /// The taint with which the node lifecycle controller evicts pods from an unreachable node.
    pub fn unreachable_taint(node: &str) -> Self {
        let (key, effect) = ("node.kubernetes.io/unreachable".into(), "NoExecute".into());
        Self::TaintAdded { node: node.into(), key, effect }
    }

    /// Returns the node of the effect; `None` for a pod that was never bound, and for a leader.
    pub fn node(&self) -> Option<&str> {
        match self {
            Self::NodeAdded { node }
            | Self::NodeGone { node }
            | Self::Condition { node, .. }
            | Self::TaintAdded { node, .. }
            | Self::TaintRemoved { node, .. }
            | Self::Cordoned { node }
            | Self::Uncordoned { node } => Some(node),
            Self::PodBound(pod)
            | Self::PodReady(pod)
            | Self::PodNotReady(pod)
            | Self::PodDisrupted { pod, .. }
            | Self::PodDeleted(pod)
            | Self::PodGone(pod) => pod.node.as_deref(),
            Self::LeaderChanged { .. } => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodName {
    pub namespace: String,
    pub name: String,
    pub node: Option<String>,
}

/// Several watches and their reported effects. Dropping this value ends the watches.
pub struct EffectWatcher {
    seen: watch::Receiver<Vec<Effect>>,
    started: Timestamp,
    _watches: JoinSet<()>,
}

impl EffectWatcher {
    /// Lists the existing objects without recording effects, and records every later change.
    pub async fn start(client: &Client) -> Result<Self> {
        let clock = Clock::system();
        let (send, seen) = watch::channel(Vec::new());
        let [nodes_known, pods_known, leader_known] = [(); 3].map(|()| watch::Sender::new(false));
        let mut known = [nodes_known.subscribe(), pods_known.subscribe(), leader_known.subscribe()];
        let mut watches = JoinSet::new();
        watches.spawn(watch_kind::<Node>(Api::all(client.clone()), clock, send.clone(), nodes_known));
        watches.spawn(watch_kind::<Pod>(Api::all(client.clone()), clock, send.clone(), pods_known));
        let leases = Api::<Lease>::namespaced(client.clone(), "kube-system");
        watches.spawn(watch_kind(leases, clock, send, leader_known));
        for known in &mut known {
            let first_list = known.wait_for(|known| *known);
            let listed = tokio::time::timeout(Span::from_secs(20).to_std(), first_list).await;
            listed.context("the effect watcher got no first lists")??;
        }
        Ok(Self { seen, started: clock.now(), _watches: watches })
    }

    /// Returns all effects so far, sorted by time.
    pub fn effects(&self) -> Vec<Effect> {
        let mut effects = self.seen.borrow().clone();
        effects.sort();
        effects
    }

    /// Returns all effects except the first `count`, in the order in which they were reported.
    pub fn after(&self, count: usize) -> Vec<Effect> {
        self.seen.borrow()[count..].to_vec()
    }

    /// Returns the time at which an effect was first reported.
    pub fn time_of(&self, kind: &EffectKind) -> Option<Timestamp> {
        self.seen.borrow().iter().find(|effect| effect.kind == *kind).map(|effect| effect.at)
    }

    /// Waits until an effect has been reported since the start. Returns the time of the first such report.
    pub async fn wait_for_effect(&mut self, kind: &EffectKind, within: Span) -> Result<Timestamp> {
        let of_kind =
            |effects: &[Effect]| effects.iter().find(|effect| effect.kind == *kind).map(|effect| effect.at);
        self.wait_until(&format!("{kind:?}"), within, of_kind).await
    }

    /// Waits until `find` returns something. The error lists the effects so far.
    pub async fn wait_until<T>(
        &mut self,
        what: &str,
        within: Span,
        find: impl Fn(&[Effect]) -> Option<T>,
    ) -> Result<T> {
        let mut found = None;
        let waiting = self.seen.wait_for(|effects| {
            found = find(effects);
            found.is_some()
        });
        // After a timeout or the end of the watches, `found` is empty.
        drop(tokio::time::timeout(within.to_std(), waiting).await.map(|seen| seen.map(drop)));
        match found {
            Some(found) => Ok(found),
            None => bail!("not within {within}: {what}; the effects so far:\n{self}"),
        }
    }
}

/// Lists one effect on each line, with its time since the start.
impl fmt::Display for EffectWatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Effect { at, kind } in self.effects() {
            writeln!(f, "{:>8.2} s  {kind:?}", at.since(self.started).as_secs_f64())?;
        }
        Ok(())
    }
}

/// An object of a watched kind.
trait Observed: Resource<DynamicType = ()> + Clone + DeserializeOwned + fmt::Debug + Send + 'static {
    /// Returns the changes between two versions of an object. An object with another uid is another object.
    fn changes(before: Option<&Self>, now: Option<&Self>) -> Vec<EffectKind>;
}

/// Keeps the objects of one kind, and records the changes of each event.
async fn watch_kind<K: Observed>(
    api: Api<K>,
    clock: Clock,
    seen: watch::Sender<Vec<Effect>>,
    listed: watch::Sender<bool>,
) {
    let mut objects: BTreeMap<String, K> = BTreeMap::new();
    let mut present = BTreeSet::new();
    let mut events = watcher(api, watcher::Config::default()).default_backoff().boxed();
    while let Some(event) = events.next().await {
        let record = |kinds: Vec<EffectKind>| {
            if !kinds.is_empty() && *listed.borrow() {
                let at = clock.now();
                seen.send_modify(|seen| seen.extend(kinds.into_iter().map(|kind| Effect { at, kind })));
            }
        };
        match event {
            Ok(Event::Init) => present.clear(),
            Ok(Event::InitApply(object) | Event::Apply(object)) => {
                let uid = object.uid().unwrap_or_default();
                present.insert(uid.clone());
                record(K::changes(objects.get(&uid), Some(&object)));
                objects.insert(uid, object);
            }
            Ok(Event::InitDone) => {
                for (_, gone) in objects.extract_if(.., |uid, _| !present.contains(uid)) {
                    record(K::changes(Some(&gone), None));
                }
                listed.send_replace(true);
            }
            Ok(Event::Delete(object)) => {
                let before = objects.remove(&object.uid().unwrap_or_default());
                record(K::changes(before.as_ref(), Some(&object)));
                record(K::changes(Some(&object), None));
            }
            Err(error) => eprintln!("effect watcher: watching {}: {error}", K::plural(&())), // it reconnects by itself
        }
    }
}

impl Observed for Node {
    fn changes(before: Option<&Self>, now: Option<&Self>) -> Vec<EffectKind> {
        let Some(node) = before.or(now).map(ResourceExt::name_any) else { return Vec::new() };
        let Some(now) = now else { return vec![EffectKind::NodeGone { node }] };
        let mut kinds = Vec::new();
        if before.is_none() {
            kinds.push(EffectKind::NodeAdded { node: node.clone() });
        }
        let (conditions_before, taints_before) =
            before.map(|node| (conditions(node), taints(node))).unwrap_or_default();
        for (condition, status) in conditions(now).difference(&conditions_before).cloned() {
            kinds.push(EffectKind::Condition { node: node.clone(), condition, status });
        }
        for (key, effect) in taints(now).difference(&taints_before).cloned() {
            kinds.push(EffectKind::TaintAdded { node: node.clone(), key, effect });
        }
        for (key, effect) in taints_before.difference(&taints(now)).cloned() {
            kinds.push(EffectKind::TaintRemoved { node: node.clone(), key, effect });
        }
        match (before.is_some_and(is_cordoned), is_cordoned(now)) {
            (false, true) => kinds.push(EffectKind::Cordoned { node }),
            (true, false) => kinds.push(EffectKind::Uncordoned { node }),
            (true, true) | (false, false) => {}
        }
        kinds
    }
}

/// Returns type and status of each condition.
fn conditions(node: &Node) -> BTreeSet<(String, String)> {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.map(|condition| (condition.type_.clone(), condition.status.clone())).collect()
}

/// Returns key and effect of each taint.
fn taints(node: &Node) -> BTreeSet<(String, String)> {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    taints.map(|taint| (taint.key.clone(), taint.effect.clone())).collect()
}

fn is_cordoned(node: &Node) -> bool {
    node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or(false)
}

impl Observed for Pod {
    fn changes(before: Option<&Self>, now: Option<&Self>) -> Vec<EffectKind> {
        let Some(pod) = now.or(before).map(pod_name) else { return Vec::new() };
        let was = |is: fn(&Pod) -> bool| before.is_some_and(is);
        let Some(now) = now else {
            let deleted = (!was(is_terminating)).then(|| EffectKind::PodDeleted(pod.clone()));
            return deleted.into_iter().chain([EffectKind::PodGone(pod)]).collect();
        };
        let mut kinds = Vec::new();
        if !was(is_bound) && is_bound(now) {
            kinds.push(EffectKind::PodBound(pod.clone()));
        }
        match (was(is_ready), is_ready(now)) {
            (false, true) => kinds.push(EffectKind::PodReady(pod.clone())),
            (true, false) => kinds.push(EffectKind::PodNotReady(pod.clone())),
            (true, true) | (false, false) => {}
        }
        if let (None, Some(reason)) = (before.and_then(disruption), disruption(now)) {
            kinds.push(EffectKind::PodDisrupted { pod: pod.clone(), reason });
        }
        if !was(is_terminating) && is_terminating(now) {
            kinds.push(EffectKind::PodDeleted(pod));
        }
        kinds
    }
}

/// A Lease of a component of the control plane.
impl Observed for Lease {
    fn changes(before: Option<&Self>, now: Option<&Self>) -> Vec<EffectKind> {
        let holder =
            |lease: &Self| lease.spec.as_ref()?.holder_identity.clone().filter(|name| !name.is_empty());
        let Some(now) = now.filter(|lease| lease.name_any() == "kube-controller-manager") else {
            return Vec::new();
        };
        match holder(now) {
            Some(new) if before.and_then(holder).as_ref() != Some(&new) => {
                vec![EffectKind::LeaderChanged { holder: new }]
            }
            Some(_) | None => Vec::new(),
        }
    }
}

fn pod_name(pod: &Pod) -> PodName {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
    PodName { namespace: pod.namespace().unwrap_or_default(), name: pod.name_any(), node }
}

fn is_bound(pod: &Pod) -> bool {
    pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some())
}

fn is_terminating(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

fn is_ready(pod: &Pod) -> bool {
    true_condition(pod, "Ready").is_some()
}

/// Returns the reason of the DisruptionTarget condition if its status is True.
fn disruption(pod: &Pod) -> Option<String> {
    true_condition(pod, "DisruptionTarget").map(|reason| reason.unwrap_or_default())
}

/// Returns the reason, if any, of a condition that exists and is True.
fn true_condition(pod: &Pod, name: &str) -> Option<Option<String>> {
    let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let found = conditions.find(|condition| condition.type_ == name && condition.status == "True")?;
    Some(found.reason.clone())
}
