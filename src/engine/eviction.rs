//! Taint eviction: which pods leave a node with NoExecute taints, and when (docs/upstream/node-lifecycle.md#7; upstream
//! taint manager, since 1.29 `taint-eviction-controller`).

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    sync::Arc,
};

use super::{
    effect::{Deletion, EventObject, RecordedEvent, Severity, Write},
    outbox::{EffectSubject, Outbox},
    settings::ControllerRules,
    view::{Due, PendingEviction},
    why::{Cause, Certainty, Why},
};
use crate::{
    cluster::{Cluster, Delta, Key, Node, NodeName, Pod, Taint, TaintEffect, Toleration},
    time::{Span, Timestamp},
};

/// What taint eviction remembers.
#[derive(Clone, Debug, Default)]
pub struct Evictor {
    manner: TimerSource,
    /// The NoExecute taints of the nodes that have any.
    tainted: BTreeMap<NodeName, Arc<[Taint]>>,
    /// By pod name and not by uid, as upstream: a successor of the same name inherits the timer
    /// (docs/upstream/node-lifecycle.md#12.36).
    timers: BTreeMap<Key, Timer>,
    /// The running timers by the time they fire.
    agenda: BTreeSet<(Timestamp, Key)>,
    /// When the deletions were due that have been asked for and not answered.
    asked: BTreeMap<Key, Timestamp>,
}

/// A pod's entry among the timed workers.
#[derive(Clone, Debug)]
enum Timer {
    Running(Running),
    /// The deletion has been asked for and nothing came of it: a dry run, whose subject will or will not do it.
    Overdue(Running),
    /// Done; refuses later timers until it is cancelled, up to 1.32 (docs/upstream/node-lifecycle.md#7.8).
    Tombstone,
}

/// A timer that runs.
#[derive(Clone, Debug)]
struct Running {
    created: Timestamp,
    fires: Timestamp,
    certainty: Certainty,
    why: Why,
}

/// Whose timers these are.
#[derive(Clone, Copy, Debug, Default)]
pub enum TimerSource {
    /// Ours: they start when an event is processed, whatever the taint's timeAdded says.
    #[default]
    Controller,
    /// Another controller's, which has been running since `began` and whose server's clock is `ahead` of ours:
    /// they started when the taint was added.
    Shadow { ahead: Span, began: Option<Timestamp> },
}

/// How we came to know of a taint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaintSource {
    /// It was not there before: we saw it come.
    Live,
    /// It was there when we first looked.
    Found,
}

/// How far timeAdded, which has whole seconds, may lie behind the moment at which we see a taint come.
const LIVE_LAG: Span = Span::from_secs(3);

/// What a pod's tolerations make of a node's NoExecute taints (docs/upstream/node-lifecycle.md#7.6).
#[derive(Clone, Debug, PartialEq)]
pub enum Tolerance<'a> {
    NotTolerated(&'a Taint),
    Forever,
    /// The shortest time that a toleration gives.
    For {
        span: Span,
        taint: &'a Taint,
    },
}

impl Evictor {
    pub fn new(manner: TimerSource) -> Self {
        Self { manner, ..Self::default() }
    }

    /// Reacts to a node that was added, changed or removed (upstream `NodeUpdated`, `handleNodeUpdate`).
    pub fn on_node(
        &mut self,
        cluster: &Cluster,
        delta: &Delta<Node>,
        rules: &ControllerRules,
        out: &mut Outbox,
        now: Timestamp,
    ) {
        let before = delta.old.as_ref().map_or_else(Vec::new, |node| no_execute(node));
        let Some(node) = &delta.new else {
            // The timers of its pods continue and still fire (docs/upstream/node-lifecycle.md#12.35).
            if let Some(node) = &delta.old {
                self.tainted.remove(&node.name);
            }
            return;
        };
        let taints = no_execute(node);
        let sighting = if delta.old.is_some() { TaintSource::Live } else { TaintSource::Found };
        if delta.old.is_none() || before != taints {
            self.take_node(cluster, &node.name, taints, sighting, rules, out, now);
        }
    }

    /// Takes a node's taints for what they are and decides over its pods.
    #[expect(clippy::too_many_arguments, reason = "the engine's parts, borrowed apart")]
    pub fn take_node(
        &mut self,
        cluster: &Cluster,
        node: &NodeName,
        taints: Vec<Taint>,
        sighting: TaintSource,
        rules: &ControllerRules,
        out: &mut Outbox,
        now: Timestamp,
    ) {
        if !rules.evicts_by_taint {
            return;
        }
        if taints.is_empty() {
            // A node that comes back under its name, without taints, ends the timers that outlived it.
            let had_timers = self.tainted.remove(node).is_some() || !self.timers.is_empty();
            if had_timers {
                for pod in cluster.pods_on(node) {
                    self.cancel(&pod.key, Cause::TaintsGone, rules, out, now);
                }
            }
            return;
        }
        let taints: Arc<[Taint]> = taints.into();
        self.tainted.insert(node.clone(), taints.clone());
        for pod in cluster.pods_on(node) {
            self.decide(pod, &taints, sighting, rules, out, now);
        }
    }

    /// Reacts to a pod that was added, changed or removed (upstream `PodUpdated`, `handlePodUpdate`).
    pub fn on_pod(&mut self, delta: &Delta<Pod>, rules: &ControllerRules, out: &mut Outbox, now: Timestamp) {
        match (&delta.old, &delta.new) {
            (Some(old), None) => self.cancel(&old.key, Cause::PodGone, rules, out, now),
            (old, Some(pod)) => {
                if pod.termination.is_some() {
                    self.settle(&pod.key, out);
                }
                let same = |old: &Arc<Pod>| old.tolerations == pod.tolerations && old.node == pod.node;
                if old.as_ref().is_some_and(same) {
                    return;
                }
                let Some(taints) = pod.node.as_ref().and_then(|node| self.tainted.get(node)).cloned() else {
                    return;
                };
                self.decide(pod, &taints, TaintSource::Found, rules, out, now);
            }
            (None, None) => {}
        }
    }

    /// Deletes the pods whose time has come.
    pub fn on_timeout(
        &mut self,
        cluster: &Cluster,
        rules: &ControllerRules,
        out: &mut Outbox,
        now: Timestamp,
    ) {
        while self.agenda.first().is_some_and(|(fires, _)| *fires <= now) {
            let Some((_, key)) = self.agenda.pop_first() else { return };
            let Some(Timer::Running(running)) = self.timers.remove(&key) else { continue };
            self.delete(cluster, &key, running, rules, out, now);
        }
    }

    /// When the next pod's time comes, and why.
    pub fn next(&self) -> Option<(Timestamp, &Why)> {
        let (fires, key) = self.agenda.first()?;
        match self.timers.get(key) {
            Some(Timer::Running(running)) => Some((*fires, &running.why)),
            Some(Timer::Overdue(_) | Timer::Tombstone) | None => None,
        }
    }

    /// The deletion was recorded and not done: it stays on the list as overdue until it is seen, or not needed.
    fn overdue(&mut self, pod: &Key, running: Running) {
        self.timers.insert(pod.clone(), Timer::Overdue(running));
    }

    /// The deletion that was only recorded has been seen to happen.
    fn settle(&mut self, pod: &Key, out: &mut Outbox) {
        if let Some(Timer::Overdue(_)) = self.timers.get(pod) {
            self.timers.remove(pod);
        }
        out.settle(&EffectSubject::PodDeleted(pod.clone()));
    }

    /// The deletion was recorded and not done (dry-run): see [`Timer::Overdue`].
    pub fn on_recorded(&mut self, pod: &Key, at: Timestamp, why: Why) {
        self.overdue(pod, Running { created: at, fires: at, certainty: Certainty::Observed, why });
    }

    /// A deletion has been answered for: when it was due.
    pub fn answered(&mut self, pod: &Key) -> Option<Timestamp> {
        self.asked.remove(pod)
    }

    /// The deletion failed: upstream frees the key, and the next relevant event decides anew.
    pub fn on_failed(&mut self, pod: &Key) {
        self.asked.remove(pod);
        if let Some(Timer::Tombstone) = self.timers.get(pod) {
            self.timers.remove(pod);
        }
    }

    /// Takes every node's taints for found, as at the start of a controller.
    pub fn take_all(&mut self, cluster: &Cluster, rules: &ControllerRules, out: &mut Outbox, now: Timestamp) {
        for node in cluster.nodes().iter() {
            self.take_node(cluster, &node.name, no_execute(node), TaintSource::Found, rules, out, now);
        }
    }

    /// A copy that runs ahead: there, what is overdue is done at once.
    pub fn run_ahead(&self) -> Self {
        let mut copy = Self { asked: BTreeMap::new(), ..self.clone() };
        for (key, timer) in &mut copy.timers {
            if let Timer::Overdue(running) = timer {
                copy.agenda.insert((running.fires, key.clone()));
                *timer = Timer::Running(running.clone());
            }
        }
        copy
    }

    /// Every pod on a tainted node. Pods whose deletion has begun are not pending any more.
    pub fn pending(&self, cluster: &Cluster) -> Vec<PendingEviction> {
        let mut pending: Vec<PendingEviction> = Vec::new();
        for (key, timer) in &self.timers {
            let (Timer::Running(running) | Timer::Overdue(running)) = timer else { continue };
            let Some(pod) = cluster.pod(key).filter(|pod| pod.termination.is_none()) else { continue };
            pending.push(due_at(pod, running));
        }
        for (node, taints) in &self.tainted {
            let pods = cluster.pods_on(node).filter(|pod| pod.termination.is_none());
            pending.extend(pods.filter_map(|pod| never_due(pod, taints)));
        }
        pending
    }

    /// The same for the pods of one node.
    pub fn pending_on(&self, cluster: &Cluster, node: &NodeName) -> Vec<PendingEviction> {
        let taints = self.tainted.get(node);
        let of = |pod: &Arc<Pod>| match self.timers.get(&pod.key) {
            Some(Timer::Running(running) | Timer::Overdue(running)) => Some(due_at(pod, running)),
            Some(Timer::Tombstone) | None => never_due(pod, taints?),
        };
        cluster.pods_on(node).filter(|pod| pod.termination.is_none()).filter_map(of).collect()
    }

    /// Upstream `processPodOnNode`; the taints are never empty.
    fn decide(
        &mut self,
        pod: &Pod,
        taints: &[Taint],
        sighting: TaintSource,
        rules: &ControllerRules,
        out: &mut Outbox,
        now: Timestamp,
    ) {
        match tolerance(&pod.tolerations, taints) {
            Tolerance::NotTolerated(taint) => {
                let (since, certainty) = self.beginning(taint, pod, sighting, now);
                let not_tolerated = Cause::NotTolerated { taint: taint.key.clone() };
                self.replace(&pod.key, not_tolerated.clone(), rules, out, now);
                let why = Why::from(Cause::Tainted { key: taint.key.clone(), since, certainty })
                    .then(not_tolerated);
                self.add(&pod.key, Running { created: now, fires: now, certainty, why });
            }
            Tolerance::Forever => self.cancel(&pod.key, Cause::ToleratedForever, rules, out, now),
            Tolerance::For { span, taint } => {
                let (since, certainty) = self.beginning(taint, pod, sighting, now);
                let tolerated = Cause::Tolerated { key: taint.key.clone(), span };
                let created = match self.timers.get(&pod.key) {
                    // A running timer is neither lengthened nor shortened
                    // (docs/upstream/node-lifecycle.md#12.32).
                    Some(Timer::Running(running)) if running.created < now => return,
                    Some(Timer::Running(running)) => {
                        let created = running.created;
                        self.replace(&pod.key, tolerated.clone(), rules, out, now);
                        created
                    }
                    Some(Timer::Tombstone | Timer::Overdue(_)) => return,
                    None => since,
                };
                let why =
                    Why::from(Cause::Tainted { key: taint.key.clone(), since, certainty }).then(tolerated);
                self.add(&pod.key, Running { created, fires: since + span, certainty, why });
            }
        }
    }

    /// From when the toleration of a taint counts for a pod, and how well that is known.
    fn beginning(
        &self,
        taint: &Taint,
        pod: &Pod,
        sighting: TaintSource,
        now: Timestamp,
    ) -> (Timestamp, Certainty) {
        let TimerSource::Shadow { ahead, began } = self.manner else { return (now, Certainty::Observed) };
        let Some(added) = taint.time_added else {
            return (
                now,
                if sighting == TaintSource::Live { Certainty::Observed } else { Certainty::AtLatest },
            );
        };
        // A pod that came later than the taint, and a controller that began later still, count from their own time.
        let theirs = added.max(pod.created) - ahead;
        let since = began.map_or(theirs, |began| theirs.max(began)).min(now);
        if sighting == TaintSource::Live && now.since(since) < LIVE_LAG {
            (now, Certainty::Observed)
        } else {
            (since, Certainty::Estimated)
        }
    }

    /// Starts a timer. An entry that is there refuses it.
    fn add(&mut self, pod: &Key, running: Running) {
        if let Entry::Vacant(place) = self.timers.entry(pod.clone()) {
            self.agenda.insert((running.fires, pod.clone()));
            place.insert(Timer::Running(running));
        }
    }

    fn delete(
        &mut self,
        cluster: &Cluster,
        key: &Key,
        running: Running,
        rules: &ControllerRules,
        out: &mut Outbox,
        now: Timestamp,
    ) {
        if rules.leaves_tombstones {
            self.timers.insert(key.clone(), Timer::Tombstone);
        }
        record(key, "Marking for deletion", &running.why, rules, out, now);
        let Some(pod) = cluster.pod(key) else { return };
        let write = Write::DeletePod {
            pod: key.clone(),
            uid: pod.uid.clone(),
            node: pod.node.clone().unwrap_or_default(),
            deletion: Deletion::ByTaint { disruption_target: rules.marks_disruption_target },
        };
        let proposed = out.propose(write, running.why.clone(), now);
        if proposed {
            self.asked.insert(key.clone(), running.fires);
        }
        if !proposed && out.is_recorded(&EffectSubject::PodDeleted(key.clone())) {
            self.overdue(key, running);
        }
    }

    /// Cancels a timer and records the event (docs/upstream/node-lifecycle.md#7.7).
    fn cancel(&mut self, pod: &Key, cause: Cause, rules: &ControllerRules, out: &mut Outbox, now: Timestamp) {
        match self.timers.remove(pod) {
            Some(Timer::Running(running)) => {
                self.agenda.remove(&(running.fires, pod.clone()));
                let why = Why::from(cause);
                record(pod, "Cancelling deletion of", &why, rules, out, now);
                out.notice(Severity::Info, format!("eviction of pod {pod} cancelled"), why, now);
            }
            Some(Timer::Overdue(_) | Timer::Tombstone) | None => {}
        }
        out.settle(&EffectSubject::PodDeleted(pod.clone()));
    }

    /// Ends a timer because another follows at once: upstream's event without our notice.
    fn replace(
        &mut self,
        pod: &Key,
        cause: Cause,
        rules: &ControllerRules,
        out: &mut Outbox,
        now: Timestamp,
    ) {
        if let Some(Timer::Running(running)) = self.timers.remove(pod) {
            self.agenda.remove(&(running.fires, pod.clone()));
            record(pod, "Cancelling deletion of", &cause.into(), rules, out, now);
        }
    }
}

/// A pod whose timer runs.
fn due_at(pod: &Pod, running: &Running) -> PendingEviction {
    PendingEviction {
        pod: pod.key.clone(),
        uid: pod.uid.clone(),
        node: pod.node.clone().unwrap_or_default(),
        due: Due::At { at: running.fires, certainty: running.certainty },
        why: running.why.clone(),
    }
}

/// A pod that tolerates its node's taints for ever; none where it does not.
fn never_due(pod: &Pod, taints: &[Taint]) -> Option<PendingEviction> {
    (tolerance(&pod.tolerations, taints) == Tolerance::Forever).then(|| PendingEviction {
        pod: pod.key.clone(),
        uid: pod.uid.clone(),
        node: pod.node.clone().unwrap_or_default(),
        due: Due::Never,
        why: Cause::ToleratedForever.into(),
    })
}

/// The node's NoExecute taints, in its order.
pub fn no_execute(node: &Node) -> Vec<Taint> {
    node.taints.iter().filter(|taint| taint.effect == TaintEffect::NoExecute).cloned().collect()
}

/// For every taint the first toleration that tolerates it; of those the shortest time.
pub fn tolerance<'a>(tolerations: &[Toleration], taints: &'a [Taint]) -> Tolerance<'a> {
    let mut shortest: Option<(i64, &Taint)> = None;
    for taint in taints {
        let Some(toleration) = tolerations.iter().find(|toleration| toleration.tolerates(taint)) else {
            return Tolerance::NotTolerated(taint);
        };
        if let Some(seconds) = toleration.seconds.map(|seconds| seconds.max(0))
            && shortest.is_none_or(|(least, _)| seconds < least)
        {
            shortest = Some((seconds, taint));
        }
    }
    match shortest {
        Some((seconds, taint)) => Tolerance::For { span: Span::from_secs(seconds), taint },
        None => Tolerance::Forever,
    }
}

fn record(pod: &Key, what: &str, why: &Why, rules: &ControllerRules, out: &mut Outbox, now: Timestamp) {
    let event = || {
        let event = RecordedEvent {
            object: EventObject::Pod(pod.clone()),
            warning: false,
            reason: "TaintManagerEviction",
            message: format!("{what} Pod {pod}"),
            source: rules.taint_eviction_source,
        };
        (event, why.clone())
    };
    out.propose_event(event, now);
}
