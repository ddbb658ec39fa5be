//! What really happened: watches nodes and pods and notes every visible effect with the time it was seen.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use anyhow::{Context, Result, bail};
use futures::StreamExt;
use k8s_openapi::api::core::v1::{Node, Pod};
use kordon::{
    clock::Clock,
    time::{Span, Timestamp},
};
use kube::{
    Api, Client, Resource, ResourceExt,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use serde::de::DeserializeOwned;
use tokio::{sync::watch, task::JoinSet};

/// One thing that was seen to happen. Ordered by time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Effect {
    /// When our watch told us: within milliseconds of the write, or when the watch was back after an interruption.
    pub at: Timestamp,
    pub kind: Kind,
}

/// Whoever did it: controllers, kubelets and tests look alike to a watch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    NodeAdded {
        node: String,
    },
    NodeGone {
        node: String,
    },
    /// A condition took another status.
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
    /// The pod's Ready went from True to something else.
    PodNotReady(PodName),
    /// The pod's DisruptionTarget condition became True.
    PodDisrupted {
        pod: PodName,
        reason: String,
    },
    /// Its deletion began: a deletion timestamp, or the object is gone without ever having had one.
    PodDeleted(PodName),
    PodGone(PodName),
}

impl Kind {
    /// The node's Ready condition became Unknown.
    pub fn unknown(node: &str) -> Self {
        Self::Condition { node: node.into(), condition: "Ready".into(), status: "Unknown".into() }
    }

    /// The taint with which the node lifecycle controller evicts from an unreachable node.
    pub fn unreachable_taint(node: &str) -> Self {
        let (key, effect) = ("node.kubernetes.io/unreachable".into(), "NoExecute".into());
        Self::TaintAdded { node: node.into(), key, effect }
    }

    /// The node it is about; None for a pod that was never bound.
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
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodName {
    pub namespace: String,
    pub name: String,
    pub node: Option<String>,
}

/// Two watches and what they have seen. They end with this value.
pub struct Witness {
    seen: watch::Receiver<Vec<Effect>>,
    begun: Timestamp,
    _watches: JoinSet<()>,
}

impl Witness {
    /// Looks at what is there, which is no effect, and notes from then on what changes.
    pub async fn start(client: &Client) -> Result<Self> {
        let clock = Clock::system();
        let (see, seen) = watch::channel(Vec::new());
        let (nodes_known, pods_known) = (watch::Sender::new(false), watch::Sender::new(false));
        let mut known = [nodes_known.subscribe(), pods_known.subscribe()];
        let mut watches = JoinSet::new();
        watches.spawn(follow::<Node>(Api::all(client.clone()), clock, see.clone(), nodes_known));
        watches.spawn(follow::<Pod>(Api::all(client.clone()), clock, see, pods_known));
        for known in &mut known {
            let first_list = known.wait_for(|known| *known);
            let listed = tokio::time::timeout(Span::from_secs(20).to_std(), first_list).await;
            listed.context("the witness got no first list of nodes and pods")??;
        }
        Ok(Self { seen, begun: clock.now(), _watches: watches })
    }

    /// All effects so far, by time.
    pub fn effects(&self) -> Vec<Effect> {
        let mut effects = self.seen.borrow().clone();
        effects.sort();
        effects
    }

    /// The effects beyond the first so many, as they came.
    pub fn beyond(&self, count: usize) -> Vec<Effect> {
        self.seen.borrow()[count..].to_vec()
    }

    /// When an effect was first seen.
    pub fn time_of(&self, kind: &Kind) -> Option<Timestamp> {
        self.seen.borrow().iter().find(|effect| effect.kind == *kind).map(|effect| effect.at)
    }

    /// Waits until an effect is among those seen since the start, and tells when it was first seen.
    pub async fn saw(&mut self, kind: &Kind, within: Span) -> Result<Timestamp> {
        let of_kind =
            |effects: &[Effect]| effects.iter().find(|effect| effect.kind == *kind).map(|effect| effect.at);
        self.wait(&format!("{kind:?}"), within, of_kind).await
    }

    /// Waits until `look` finds in the effects what it looks for. The error lists what was seen.
    pub async fn wait<T>(
        &mut self,
        what: &str,
        within: Span,
        look: impl Fn(&[Effect]) -> Option<T>,
    ) -> Result<T> {
        let mut found = None;
        let waiting = self.seen.wait_for(|effects| {
            found = look(effects);
            found.is_some()
        });
        // Either way `found` tells: a timeout or the end of the watches leaves it empty.
        drop(tokio::time::timeout(within.to_std(), waiting).await.map(|seen| seen.map(drop)));
        match found {
            Some(found) => Ok(found),
            None => bail!("waited {within} in vain: {what}; the witness saw:\n{self}"),
        }
    }
}

/// One effect a line, with its time since the witness began.
impl fmt::Display for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Effect { at, kind } in self.effects() {
            writeln!(f, "{:>8.2} s  {kind:?}", at.since(self.begun).as_secs_f64())?;
        }
        Ok(())
    }
}

/// What the witness remembers of an object: enough to tell what changed.
trait Seen: Resource<DynamicType = ()> + Clone + DeserializeOwned + fmt::Debug + Send + 'static {
    /// Where its uid differs it is another object of the same name.
    fn changes(before: Option<&Self>, now: Option<&Self>) -> Vec<Kind>;
}

/// Keeps the objects of one kind and notes what each event changes.
async fn follow<K: Seen>(
    api: Api<K>,
    clock: Clock,
    seen: watch::Sender<Vec<Effect>>,
    listed: watch::Sender<bool>,
) {
    let mut objects: BTreeMap<String, K> = BTreeMap::new();
    let mut still_there = BTreeSet::new();
    let mut events = watcher(api, watcher::Config::default()).default_backoff().boxed();
    while let Some(event) = events.next().await {
        let note = |kinds: Vec<Kind>| {
            if !kinds.is_empty() && *listed.borrow() {
                let at = clock.now();
                seen.send_modify(|seen| seen.extend(kinds.into_iter().map(|kind| Effect { at, kind })));
            }
        };
        match event {
            Ok(Event::Init) => still_there.clear(),
            Ok(Event::InitApply(object) | Event::Apply(object)) => {
                let uid = object.uid().unwrap_or_default();
                still_there.insert(uid.clone());
                note(K::changes(objects.get(&uid), Some(&object)));
                objects.insert(uid, object);
            }
            Ok(Event::InitDone) => {
                for (_, gone) in objects.extract_if(.., |uid, _| !still_there.contains(uid)) {
                    note(K::changes(Some(&gone), None));
                }
                listed.send_replace(true);
            }
            Ok(Event::Delete(object)) => {
                let before = objects.remove(&object.uid().unwrap_or_default());
                note(K::changes(before.as_ref(), Some(&object)));
                note(K::changes(Some(&object), None));
            }
            Err(error) => eprintln!("the witness' watch of {}: {error}", K::plural(&())), // it goes on by itself
        }
    }
}

impl Seen for Node {
    fn changes(before: Option<&Self>, now: Option<&Self>) -> Vec<Kind> {
        let Some(node) = before.or(now).map(ResourceExt::name_any) else { return Vec::new() };
        let Some(now) = now else { return vec![Kind::NodeGone { node }] };
        let mut kinds = Vec::new();
        if before.is_none() {
            kinds.push(Kind::NodeAdded { node: node.clone() });
        }
        let (conditions_before, taints_before) =
            before.map(|node| (conditions(node), taints(node))).unwrap_or_default();
        for (condition, status) in conditions(now).difference(&conditions_before).cloned() {
            kinds.push(Kind::Condition { node: node.clone(), condition, status });
        }
        for (key, effect) in taints(now).difference(&taints_before).cloned() {
            kinds.push(Kind::TaintAdded { node: node.clone(), key, effect });
        }
        for (key, effect) in taints_before.difference(&taints(now)).cloned() {
            kinds.push(Kind::TaintRemoved { node: node.clone(), key, effect });
        }
        match (before.is_some_and(is_cordoned), is_cordoned(now)) {
            (false, true) => kinds.push(Kind::Cordoned { node }),
            (true, false) => kinds.push(Kind::Uncordoned { node }),
            (true, true) | (false, false) => {}
        }
        kinds
    }
}

/// Type and status of each.
fn conditions(node: &Node) -> BTreeSet<(String, String)> {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.map(|condition| (condition.type_.clone(), condition.status.clone())).collect()
}

/// Key and effect of each.
fn taints(node: &Node) -> BTreeSet<(String, String)> {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    taints.map(|taint| (taint.key.clone(), taint.effect.clone())).collect()
}

fn is_cordoned(node: &Node) -> bool {
    node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or(false)
}

impl Seen for Pod {
    fn changes(before: Option<&Self>, now: Option<&Self>) -> Vec<Kind> {
        let Some(pod) = now.or(before).map(pod_name) else { return Vec::new() };
        let was = |is: fn(&Pod) -> bool| before.is_some_and(is);
        let Some(now) = now else {
            let began = (!was(is_terminating)).then(|| Kind::PodDeleted(pod.clone()));
            return began.into_iter().chain([Kind::PodGone(pod)]).collect();
        };
        let mut kinds = Vec::new();
        if !was(is_bound) && is_bound(now) {
            kinds.push(Kind::PodBound(pod.clone()));
        }
        match (was(is_ready), is_ready(now)) {
            (false, true) => kinds.push(Kind::PodReady(pod.clone())),
            (true, false) => kinds.push(Kind::PodNotReady(pod.clone())),
            (true, true) | (false, false) => {}
        }
        if let (None, Some(reason)) = (before.and_then(disruption), disruption(now)) {
            kinds.push(Kind::PodDisrupted { pod: pod.clone(), reason });
        }
        if !was(is_terminating) && is_terminating(now) {
            kinds.push(Kind::PodDeleted(pod));
        }
        kinds
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

/// The reason of the DisruptionTarget condition, where it is True.
fn disruption(pod: &Pod) -> Option<String> {
    true_condition(pod, "DisruptionTarget").map(|reason| reason.unwrap_or_default())
}

/// The reason, if any, of a condition that is there and True.
fn true_condition(pod: &Pod, name: &str) -> Option<Option<String>> {
    let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let found = conditions.find(|condition| condition.type_ == name && condition.status == "True")?;
    Some(found.reason.clone())
}
