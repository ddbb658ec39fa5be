//! Taint eviction: which pods leave a node with NoExecute taints, and when (docs/upstream/node-lifecycle.md#7; upstream
//! taint manager, since 1.29 `taint-eviction-controller`).

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    sync::Arc,
};

use super::{
    WatchHealth,
    effect::{Deletion, EventObject, RecordedEvent, Severity, Write},
    outbox::{EffectSubject, Outbox},
    settings::ControllerRules,
    view::{Due, PendingEviction},
    why::{Cause, Certainty, Why},
};
use crate::{
    cluster::{Cluster, Delta, Key, Node, NodeName, Pod, Taint, TaintEffect, Toleration},
    time::{ClusterClock, Span, Timestamp},
};

/// The timers of taint eviction.
#[derive(Clone, Debug, Default)]
pub struct Evictor {
    timer_source: TimerSource,
    /// The NoExecute taints, by node; nodes without any are left out.
    tainted: BTreeMap<NodeName, Arc<[Taint]>>,
    /// By pod name and not by uid, as upstream: a successor of the same name inherits the timer
    /// (docs/upstream/node-lifecycle.md#12.36).
    timers: BTreeMap<Key, Timer>,
    /// The running timers, by the time when they fire.
    by_time: BTreeSet<(Timestamp, Key)>,
    /// The requested deletions that are not answered, with the time when each was due.
    requested: BTreeMap<Key, Timestamp>,
}

/// The state of a pod's timer.
#[derive(Clone, Debug)]
enum Timer {
    Running(Running),
    /// The deletion was recorded and not written (dry-run): the shadowed controller may still delete the pod.
    Overdue(Running),
    /// The pod was deleted; refuses later timers until it is cancelled, up to 1.32
    /// (docs/upstream/node-lifecycle.md#7.8).
    Tombstone,
}

/// A running timer.
#[derive(Clone, Debug)]
struct Running {
    created: Timestamp,
    fires: Timestamp,
    certainty: Certainty,
    why: Why,
}

/// Whose timers these are, which decides when they start.
#[derive(Clone, Copy, Debug, Default)]
pub enum TimerSource {
    /// Ours: they start when an event is processed, regardless of the taint's timeAdded.
    #[default]
    Controller,
    /// Another controller's: they started when the taint was added. It has run since `started`.
    Shadow { started: Option<Timestamp> },
}

/// How the engine learned of a node's taints.
#[derive(Clone, Copy, Debug)]
pub enum TaintSource<'a> {
    /// The node changed while the watches were live. It had these NoExecute taints before: any other was added now,
    /// whatever its timeAdded says.
    Live { before: &'a [Taint] },
    /// They may have been there for some time.
    Found,
}

/// How a pod tolerates the NoExecute taints of its node (docs/upstream/node-lifecycle.md#7.6).
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
    pub fn new(timer_source: TimerSource) -> Self {
        Self { timer_source, ..Self::default() }
    }

    /// Reacts to a node that was added, changed or removed (upstream `NodeUpdated`, `handleNodeUpdate`).
    pub fn on_node(
        &mut self,
        cluster: &Cluster,
        delta: &Delta<Node>,
        health: WatchHealth,
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
        let taint_source = match delta.old {
            Some(_) if health == WatchHealth::Live => TaintSource::Live { before: &before },
            Some(_) | None => TaintSource::Found,
        };
        if delta.old.is_none() || before != taints {
            self.evaluate_node(cluster, &node.name, taints, taint_source, rules, out, now);
        }
    }

    /// Evaluates a node's taints and schedules the eviction of its pods.
    #[expect(clippy::too_many_arguments, reason = "the engine's parts, borrowed apart")]
    pub fn evaluate_node(
        &mut self,
        cluster: &Cluster,
        node: &NodeName,
        taints: Vec<Taint>,
        taint_source: TaintSource<'_>,
        rules: &ControllerRules,
        out: &mut Outbox,
        now: Timestamp,
    ) {
        if !rules.evicts_by_taint {
            return;
        }
        if taints.is_empty() {
            // A node that returns under its name, without taints, cancels the timers that outlived it.
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
            self.decide(pod, &taints, taint_source, rules, out, cluster.clock(), now);
        }
    }

    /// Reacts to a pod that was added, changed or removed (upstream `PodUpdated`, `handlePodUpdate`).
    pub fn on_pod(
        &mut self,
        cluster: &Cluster,
        delta: &Delta<Pod>,
        rules: &ControllerRules,
        out: &mut Outbox,
        now: Timestamp,
    ) {
        match (&delta.old, &delta.new) {
            (Some(old), None) => self.cancel(&old.key, Cause::PodGone, rules, out, now),
            (old, Some(pod)) => {
                if pod.termination.is_some() {
                    self.on_terminating(&pod.key, out);
                }
                let same = |old: &Arc<Pod>| old.tolerations == pod.tolerations && old.node == pod.node;
                if old.as_ref().is_some_and(same) {
                    return;
                }
                let Some(taints) = pod.node.as_ref().and_then(|node| self.tainted.get(node)).cloned() else {
                    return;
                };
                self.decide(pod, &taints, TaintSource::Found, rules, out, cluster.clock(), now);
            }
            (None, None) => {}
        }
    }

    /// Deletes the pods whose timers have fired.
    pub fn on_timeout(
        &mut self,
        cluster: &Cluster,
        rules: &ControllerRules,
        out: &mut Outbox,
        now: Timestamp,
    ) {
        while self.by_time.first().is_some_and(|(fires, _)| *fires <= now) {
            let Some((_, key)) = self.by_time.pop_first() else { return };
            let Some(Timer::Running(running)) = self.timers.remove(&key) else { continue };
            self.delete(cluster, &key, running, rules, out, now);
        }
    }

    /// When the next timer fires, and why.
    pub fn next(&self) -> Option<(Timestamp, &Why)> {
        let (fires, key) = self.by_time.first()?;
        match self.timers.get(key) {
            Some(Timer::Running(running)) => Some((*fires, &running.why)),
            Some(Timer::Overdue(_) | Timer::Tombstone) | None => None,
        }
    }

    /// The deletion was recorded and not written: it stays overdue until it is observed or cancelled.
    fn overdue(&mut self, pod: &Key, running: Running) {
        self.timers.insert(pod.clone(), Timer::Overdue(running));
    }

    /// The recorded deletion was observed.
    fn on_terminating(&mut self, pod: &Key, out: &mut Outbox) {
        if let Some(Timer::Overdue(_)) = self.timers.get(pod) {
            self.timers.remove(pod);
        }
        out.forget(&EffectSubject::PodDeleted(pod.clone()));
    }

    /// The deletion was recorded and not written (dry-run): see [`Timer::Overdue`].
    pub fn on_recorded(&mut self, pod: &Key, at: Timestamp, why: Why) {
        self.overdue(pod, Running { created: at, fires: at, certainty: Certainty::Observed, why });
    }

    /// The deletion was written: returns when it was due.
    pub fn on_deleted(&mut self, pod: &Key) -> Option<Timestamp> {
        self.requested.remove(pod)
    }

    /// The deletion failed: upstream frees the key, and the next relevant event decides again.
    pub fn on_failed(&mut self, pod: &Key) {
        self.requested.remove(pod);
        if let Some(Timer::Tombstone) = self.timers.get(pod) {
            self.timers.remove(pod);
        }
    }

    /// Evaluates the taints of every node, as at the start of a controller.
    pub fn evaluate_all(
        &mut self,
        cluster: &Cluster,
        rules: &ControllerRules,
        out: &mut Outbox,
        now: Timestamp,
    ) {
        for node in cluster.nodes().iter() {
            self.evaluate_node(cluster, &node.name, no_execute(node), TaintSource::Found, rules, out, now);
        }
    }

    /// A copy for a forecast: there overdue deletions happen at once.
    pub fn forecast_copy(&self) -> Self {
        let mut copy = Self { requested: BTreeMap::new(), ..self.clone() };
        for (key, timer) in &mut copy.timers {
            if let Timer::Overdue(running) = timer {
                copy.by_time.insert((running.fires, key.clone()));
                *timer = Timer::Running(running.clone());
            }
        }
        copy
    }

    /// Every pod on a tainted node, Terminating pods left out.
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
    #[expect(clippy::too_many_arguments, reason = "the engine's parts, borrowed apart")]
    fn decide(
        &mut self,
        pod: &Pod,
        taints: &[Taint],
        taint_source: TaintSource<'_>,
        rules: &ControllerRules,
        out: &mut Outbox,
        clock: ClusterClock,
        now: Timestamp,
    ) {
        match tolerance(&pod.tolerations, taints) {
            Tolerance::NotTolerated(taint) => {
                let (since, certainty) = self.toleration_start(taint, pod, taint_source, clock, now);
                let not_tolerated = Cause::NotTolerated { taint: taint.key.clone() };
                self.replace(&pod.key, not_tolerated.clone(), rules, out, now);
                let why = Why::from(Cause::Tainted { key: taint.key.clone(), since, certainty })
                    .then(not_tolerated);
                self.add(&pod.key, Running { created: now, fires: now, certainty, why });
            }
            Tolerance::Forever => self.cancel(&pod.key, Cause::ToleratedForever, rules, out, now),
            Tolerance::For { span, taint } => {
                let (since, certainty) = self.toleration_start(taint, pod, taint_source, clock, now);
                let tolerated = Cause::Tolerated { key: taint.key.clone(), span };
                let created = match self.timers.get(&pod.key) {
                    // A running timer keeps its time (docs/upstream/node-lifecycle.md#12.32).
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

    /// When the toleration time of a pod starts, and how well that is known.
    fn toleration_start(
        &self,
        taint: &Taint,
        pod: &Pod,
        taint_source: TaintSource<'_>,
        clock: ClusterClock,
        now: Timestamp,
    ) -> (Timestamp, Certainty) {
        let TimerSource::Shadow { started } = self.timer_source else {
            return (now, Certainty::Observed);
        };
        if let TaintSource::Live { before } = taint_source
            && !before.contains(taint)
        {
            return (now, Certainty::Observed);
        }
        let Some(added) = taint.time_added else { return (now, Certainty::AtLatest) };
        // For a pod created after the taint, or a controller started after both, the time starts there.
        let theirs = clock.local(added.max(pod.created));
        (started.map_or(theirs, |started| theirs.max(started)).min(now), Certainty::Estimated)
    }

    /// Starts a timer, unless the pod has an entry.
    fn add(&mut self, pod: &Key, running: Running) {
        if let Entry::Vacant(place) = self.timers.entry(pod.clone()) {
            self.by_time.insert((running.fires, pod.clone()));
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
            self.requested.insert(key.clone(), running.fires);
        }
        if !proposed && out.is_recorded(&EffectSubject::PodDeleted(key.clone())) {
            self.overdue(key, running);
        }
    }

    /// Cancels a timer and records the event (docs/upstream/node-lifecycle.md#7.7).
    fn cancel(&mut self, pod: &Key, cause: Cause, rules: &ControllerRules, out: &mut Outbox, now: Timestamp) {
        match self.timers.remove(pod) {
            Some(Timer::Running(running)) => {
                self.by_time.remove(&(running.fires, pod.clone()));
                let why = Why::from(cause);
                record(pod, "Cancelling deletion of", &why, rules, out, now);
                out.notice(Severity::Info, format!("eviction of pod {pod} cancelled"), why, now);
            }
            Some(Timer::Overdue(_) | Timer::Tombstone) | None => {}
        }
        out.forget(&EffectSubject::PodDeleted(pod.clone()));
    }

    /// Ends a timer that is replaced at once: with upstream's event, without a notice.
    fn replace(
        &mut self,
        pod: &Key,
        cause: Cause,
        rules: &ControllerRules,
        out: &mut Outbox,
        now: Timestamp,
    ) {
        if let Some(Timer::Running(running)) = self.timers.remove(pod) {
            self.by_time.remove(&(running.fires, pod.clone()));
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

/// A pod that tolerates its node's taints without a time limit; none if it does not.
fn never_due(pod: &Pod, taints: &[Taint]) -> Option<PendingEviction> {
    (tolerance(&pod.tolerations, taints) == Tolerance::Forever).then(|| PendingEviction {
        pod: pod.key.clone(),
        uid: pod.uid.clone(),
        node: pod.node.clone().unwrap_or_default(),
        due: Due::Never,
        why: Cause::ToleratedForever.into(),
    })
}

/// The node's NoExecute taints, in the order of the node.
pub fn no_execute(node: &Node) -> Vec<Taint> {
    node.taints.iter().filter(|taint| taint.effect == TaintEffect::NoExecute).cloned().collect()
}

/// Finds for every taint the first toleration that matches; the shortest time of these counts.
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
