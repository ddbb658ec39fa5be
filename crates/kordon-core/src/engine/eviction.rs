//! Taint eviction: which pods leave a node with NoExecute taints, and when (docs/upstream/node-lifecycle.md#7; upstream
//! taint manager, since 1.29 `taint-eviction-controller`).

use std::{collections::BTreeMap, sync::Arc};

use super::{
    WatchHealth,
    effect::{Deletion, EventObject, RecordedEvent, Severity, Write},
    outbox::{EffectSubject, Outbox},
    settings::ControllerRules,
    view::{Due, Expiry, LeavingPods, PendingEviction},
    why::{Cause, Certainty, Why},
};
use crate::cluster::{
    Cluster, Delta, Key, Node, NodeName, Pod, Taint, TaintEffect, Toleration, cow_map::CowMap,
};
use kordon_time::{Span, Timestamp};

/// The timers of taint eviction.
#[derive(Clone, Debug, Default)]
pub struct Evictor {
    timer_source: TimerSource,
    /// The NoExecute taints of each node; nodes without NoExecute taints are left out.
    tainted: BTreeMap<NodeName, Arc<[Taint]>>,
    /// Timers by pod name, not by uid, as upstream. A later pod of the same name inherits the timer
    /// (docs/upstream/node-lifecycle.md#12.36).
    timers: CowMap<Key, Timer>,
    /// The running timers, by the time when they fire.
    by_time: CowMap<(Timestamp, Key), ()>,
    /// Requested deletions without an outcome yet, each with the time at which it was due.
    requested: BTreeMap<Key, Timestamp>,
}

/// The state of a pod's timer.
#[derive(Clone, Debug)]
enum Timer {
    Running(Running),
    /// Dry run: the deletion of the pod was recorded instead of being sent. The shadowed controller may still delete
    /// the pod.
    Overdue(Running),
    /// The pod was deleted. Up to 1.32 this tombstone keeps later timers of the pod from starting, until the tombstone
    /// is cancelled (docs/upstream/node-lifecycle.md#7.8).
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

/// Owner of the timers. The owner decides when timers start.
#[derive(Clone, Copy, Debug, Default)]
pub enum TimerSource {
    /// kordon is the controller: timers start when an event is processed, regardless of the taint's timeAdded.
    #[default]
    Controller,
    /// Another controller owns the timers, and started them when the taint was added. That controller has run since
    /// `started`.
    Shadow { started: Option<Timestamp> },
}

/// How the engine learned of a node's taints.
#[derive(Clone, Copy, Debug)]
pub enum TaintSource<'a> {
    /// The node changed while the watches were live. `before` has the node's NoExecute taints before the change. Taints
    /// that are not in `before` count as added now, even if their timeAdded differs.
    Live { before: &'a [Taint] },
    /// The engine found the taints on the node, which may have had them for some time.
    Found,
}

/// How a pod tolerates the NoExecute taints of its node (docs/upstream/node-lifecycle.md#7.6).
#[derive(Clone, Debug, PartialEq)]
pub enum Tolerance<'a> {
    NotTolerated(&'a Taint),
    Forever,
    /// The pod tolerates the taints for `span`, the shortest time that a matching toleration gives.
    For {
        span: Span,
        taint: &'a Taint,
    },
}

/// The input on which taint eviction bases its decisions, and the outbox for its effects.
pub struct Context<'a> {
    pub cluster: &'a Cluster,
    pub rules: &'a ControllerRules,
    pub out: &'a mut Outbox,
    pub now: Timestamp,
}

/// When a pod began to tolerate a taint, and how well that is known.
#[derive(Clone, Copy, Debug)]
struct TolerationStart {
    at: Timestamp,
    certainty: Certainty,
}

impl TolerationStart {
    /// Returns the cause "the node has the taint since `at`".
    fn why(self, taint: &Taint) -> Why {
        Cause::Tainted { key: taint.key.clone(), since: self.at, certainty: self.certainty }.into()
    }
}

impl Evictor {
    pub fn new(timer_source: TimerSource) -> Self {
        Self { timer_source, ..Self::default() }
    }

    /// Reacts to a node that was added, changed or removed (upstream `NodeUpdated`, `handleNodeUpdate`).
    pub fn on_node(&mut self, delta: &Delta<Node>, health: WatchHealth, context: &mut Context<'_>) {
        if let (Some(old), Some(new)) = (&delta.old, &delta.new)
            && Arc::ptr_eq(&old.taints, &new.taints)
        {
            return;
        }
        let before = delta.old.as_ref().map_or_else(Vec::new, |node| no_execute(node));
        let Some(node) = &delta.new else {
            // When a node is deleted, the timers of its pods continue and still fire
            // (docs/upstream/node-lifecycle.md#12.35).
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
            self.evaluate_node(&node.name, taints, taint_source, context);
        }
    }

    /// Evaluates a node's taints and schedules the eviction of its pods.
    fn evaluate_node(
        &mut self,
        node: &NodeName,
        taints: Vec<Taint>,
        taint_source: TaintSource<'_>,
        context: &mut Context<'_>,
    ) {
        if !context.rules.evicts_by_taint {
            return;
        }
        if taints.is_empty() {
            return self.on_taints_gone(node, context);
        }
        let taints: Arc<[Taint]> = taints.into();
        self.tainted.insert(node.clone(), taints.clone());
        for pod in context.cluster.pods_on(node) {
            self.decide(pod, &taints, taint_source, context);
        }
    }

    /// Cancels the timers of a node's pods, including timers that outlived an older node of the same name.
    fn on_taints_gone(&mut self, node: &NodeName, context: &mut Context<'_>) {
        let was_tainted = self.tainted.remove(node).is_some();
        if was_tainted || !self.timers.is_empty() {
            for pod in context.cluster.pods_on(node) {
                self.cancel(&pod.key, Cause::TaintsGone, context);
            }
        }
    }

    /// Reacts to a pod that was added, changed or removed (upstream `PodUpdated`, `handlePodUpdate`).
    pub fn on_pod(&mut self, delta: &Delta<Pod>, context: &mut Context<'_>) {
        match (&delta.old, &delta.new) {
            (Some(old), None) => self.cancel(&old.key, Cause::PodGone, context),
            (old, Some(pod)) => self.on_pod_changed(old.as_deref(), pod, context),
            (None, None) => {}
        }
    }

    /// Evaluates a changed pod again if its tolerations or its node changed.
    fn on_pod_changed(&mut self, old: Option<&Pod>, pod: &Pod, context: &mut Context<'_>) {
        if pod.termination.is_some() {
            self.on_terminating(&pod.key, context.out);
        }
        if old.is_some_and(|old| old.tolerations == pod.tolerations && old.node == pod.node) {
            return;
        }
        let taints = pod.node.as_ref().and_then(|node| self.tainted.get(node)).cloned();
        if let Some(taints) = taints {
            self.decide(pod, &taints, TaintSource::Found, context);
        }
    }

    /// Deletes the pods whose timers have fired.
    pub fn on_timeout(&mut self, context: &mut Context<'_>) {
        while self.by_time.first().is_some_and(|((fires, _), ())| *fires <= context.now) {
            let Some(((_, key), ())) = self.by_time.pop_first() else { return };
            let Some(Timer::Running(running)) = self.timers.remove(&key) else { continue };
            self.delete(&key, running, context);
        }
    }

    /// When the next timer fires, and why.
    pub fn next(&self) -> Option<(Timestamp, &Why)> {
        let ((fires, key), ()) = self.by_time.first()?;
        match self.timers.get(key) {
            Some(Timer::Running(running)) => Some((*fires, &running.why)),
            Some(Timer::Overdue(_) | Timer::Tombstone) | None => None,
        }
    }

    /// Marks a timer overdue after the deletion of its pod was recorded in a dry run instead of being sent. The timer
    /// stays overdue until the deletion is observed or cancelled.
    fn overdue(&mut self, pod: &Key, running: Running) {
        self.timers.insert(pod.clone(), Timer::Overdue(running));
    }

    /// Handles a pod that became Terminating. If a dry run had recorded the pod's deletion, the deletion has now been
    /// observed.
    fn on_terminating(&mut self, pod: &Key, out: &mut Outbox) {
        // Skip the search if no deletion was recorded in a dry run, because only recorded deletions make timers
        // overdue.
        if out.has_recorded()
            && let Some(Timer::Overdue(_)) = self.timers.get(pod)
        {
            self.timers.remove(pod);
        }
        out.forget_deletion(pod);
    }

    /// Handles a deletion that was recorded in a dry run instead of being sent: see [`Timer::Overdue`].
    pub fn on_recorded(&mut self, pod: &Key, at: Timestamp, why: Why) {
        self.overdue(pod, Running { created: at, fires: at, certainty: Certainty::Observed, why });
    }

    /// Handles a deletion that succeeded. Returns the time at which the deletion was due.
    pub fn on_deleted(&mut self, pod: &Key) -> Option<Timestamp> {
        self.requested.remove(pod)
    }

    /// Handles a failed deletion. As upstream, the failure removes the pod's timer entry, so that the next relevant
    /// event of the pod or its node can schedule a new deletion.
    pub fn on_failed(&mut self, pod: &Key) {
        self.requested.remove(pod);
        if let Some(Timer::Tombstone) = self.timers.get(pod) {
            self.timers.remove(pod);
        }
    }

    /// Evaluates the taints of every node, as at the start of a controller.
    pub fn evaluate_all(&mut self, context: &mut Context<'_>) {
        for node in context.cluster.nodes().iter() {
            self.evaluate_node(&node.name, no_execute(node), TaintSource::Found, context);
        }
    }

    /// Resumes after a pause of the controller that began at `paused_since`. Timers created during the pause start now,
    /// because the controller did not start them then.
    pub fn go_on(&mut self, paused_since: Timestamp, now: Timestamp) {
        let started = self.timers.iter().filter_map(|(key, timer)| match timer {
            Timer::Running(running) if running.created > paused_since => Some((key.clone(), running.clone())),
            Timer::Running(_) | Timer::Overdue(_) | Timer::Tombstone => None,
        });
        for (key, mut running) in started.collect::<Vec<_>>() {
            if self.by_time.remove(&(running.fires, key.clone())).is_some() {
                let later = now.since(running.created);
                running.created += later;
                running.fires += later;
                self.by_time.insert((running.fires, key.clone()), ());
                self.timers.insert(key, Timer::Running(running));
            }
        }
    }

    /// Returns a copy for a forecast, in which overdue deletions happen at once.
    pub fn forecast_copy(&self) -> Self {
        let mut copy = Self { requested: BTreeMap::new(), ..self.clone() };
        for (key, timer) in self.timers.iter() {
            if let Timer::Overdue(running) = timer {
                copy.by_time.insert((running.fires, key.clone()), ());
                copy.timers.insert(key.clone(), Timer::Running(running.clone()));
            }
        }
        copy
    }

    /// Pending evictions of all pods on tainted nodes, Terminating pods left out.
    pub fn pending(&self, cluster: &Cluster) -> Vec<PendingEviction> {
        let mut pending: Vec<PendingEviction> = Vec::new();
        for (key, timer) in self.timers.iter() {
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

    /// Pending evictions of the pods on one node, Terminating pods left out.
    pub fn pending_on(&self, cluster: &Cluster, node: &NodeName) -> Vec<PendingEviction> {
        let taints = self.tainted.get(node);
        let of = |pod: &Arc<Pod>| match self.timers.get(&pod.key) {
            Some(Timer::Running(running) | Timer::Overdue(running)) => Some(due_at(pod, running)),
            Some(Timer::Tombstone) | None => never_due(pod, taints?),
        };
        cluster.pods_on(node).filter(|pod| pod.termination.is_none()).filter_map(of).collect()
    }

    /// Returns whether any pod of the node is terminating or has a timer that runs or is overdue, and how long this
    /// result is valid.
    pub fn leaving_pods(&self, cluster: &Cluster, node: &NodeName) -> LeavingPods {
        let mut expiry = Expiry::OnChange;
        for pod in cluster.pods_on(node) {
            let timer = self.timers.get(&pod.key);
            if pod.termination.is_some() || matches!(timer, Some(Timer::Overdue(_))) {
                return LeavingPods { any: true, expiry: Expiry::OnChange };
            }
            if let Some(Timer::Running(running)) = timer {
                return LeavingPods { any: true, expiry: Expiry::At(running.fires) };
            }
            if self.requested.contains_key(&pod.key) {
                // If the deletion is recorded in a dry run instead of being sent, the pod's timer becomes overdue.
                expiry = Expiry::AnyTime;
            }
        }
        LeavingPods { any: false, expiry }
    }

    /// Schedules or cancels a pod's eviction, depending on how the pod tolerates its node's taints (upstream
    /// `processPodOnNode`). `taints` must not be empty.
    fn decide(
        &mut self,
        pod: &Pod,
        taints: &[Taint],
        taint_source: TaintSource<'_>,
        context: &mut Context<'_>,
    ) {
        match tolerance(&pod.tolerations, taints) {
            Tolerance::Forever => self.cancel(&pod.key, Cause::ToleratedForever, context),
            Tolerance::NotTolerated(taint) => {
                let start = self.toleration_start(taint, pod, taint_source, context);
                self.evict_now(pod, taint, start, context);
            }
            Tolerance::For { .. } => {
                let start = |taint| self.toleration_start(taint, pod, taint_source, context);
                let tolerated: Vec<_> = taints.iter().map(|taint| (start(taint).at, taint)).collect();
                let Some(FirstTimer { span, taint, .. }) = first_timer(&pod.tolerations, &tolerated) else {
                    return;
                };
                // A taint without timeAdded may be older than the other taints. The timer may then have started
                // earlier, so the known start is only the latest possible one.
                let is_latest = |taint| start(taint).certainty == Certainty::AtLatest;
                let start = match taints.iter().any(is_latest) {
                    true => TolerationStart { certainty: Certainty::AtLatest, ..start(taint) },
                    false => start(taint),
                };
                self.evict_after(span, pod, taint, start, context);
            }
        }
    }

    /// Replaces the pod's timer with one that fires at once.
    fn evict_now(&mut self, pod: &Pod, taint: &Taint, start: TolerationStart, context: &mut Context<'_>) {
        let cause = Cause::NotTolerated { taint: taint.key.clone() };
        self.replace(&pod.key, cause.clone(), context);
        let (created, fires) = (context.now, context.now);
        let why = start.why(taint).then(cause);
        self.add(&pod.key, Running { created, fires, certainty: start.certainty, why });
    }

    /// Starts a timer that fires when the pod has tolerated the taint for `span`. A timer that was started earlier
    /// keeps its time (docs/upstream/node-lifecycle.md#12.32).
    fn evict_after(
        &mut self,
        span: Span,
        pod: &Pod,
        taint: &Taint,
        start: TolerationStart,
        context: &mut Context<'_>,
    ) {
        let cause = Cause::Tolerated { key: taint.key.clone(), span };
        let fires = start.at + span;
        let running = |created| {
            let why = start.why(taint).then(cause.clone());
            Running { created, fires, certainty: start.certainty, why }
        };
        match self.timers.get(&pod.key) {
            None => self.add(&pod.key, running(start.at)),
            Some(Timer::Running(known)) if known.created >= context.now => {
                let running = running(known.created);
                self.replace(&pod.key, cause, context);
                self.add(&pod.key, running);
            }
            Some(Timer::Running(_) | Timer::Tombstone | Timer::Overdue(_)) => {}
        }
    }

    /// When the toleration time of a pod starts.
    fn toleration_start(
        &self,
        taint: &Taint,
        pod: &Pod,
        taint_source: TaintSource<'_>,
        context: &Context<'_>,
    ) -> TolerationStart {
        let now = context.now;
        let TimerSource::Shadow { started } = self.timer_source else {
            return TolerationStart { at: now, certainty: Certainty::Observed };
        };
        if let TaintSource::Live { before } = taint_source
            && !before.contains(taint)
        {
            return TolerationStart { at: now, certainty: Certainty::Observed };
        }
        let Some(added) = taint.time_added else {
            return TolerationStart { at: now, certainty: Certainty::AtLatest };
        };
        // The toleration time starts when the taint was added, the pod was created or the controller started, whichever
        // is last.
        let theirs = context.cluster.local(added.max(pod.created));
        let at = started.map_or(theirs, |started| theirs.max(started)).min(now);
        TolerationStart { at, certainty: Certainty::Estimated }
    }

    /// Starts a timer, unless the pod already has a timer or tombstone.
    fn add(&mut self, pod: &Key, running: Running) {
        if !self.timers.contains_key(pod) {
            self.by_time.insert((running.fires, pod.clone()), ());
            self.timers.insert(pod.clone(), Timer::Running(running));
        }
    }

    fn delete(&mut self, key: &Key, running: Running, context: &mut Context<'_>) {
        if context.rules.leaves_tombstones {
            self.timers.insert(key.clone(), Timer::Tombstone);
        }
        context.record_event(key, "Marking for deletion", &running.why);
        let Some(pod) = context.cluster.pod(key) else { return };
        let write = Write::DeletePod {
            pod: key.clone(),
            uid: pod.uid.clone(),
            node: pod.node.clone().unwrap_or_default(),
            deletion: Deletion::ByTaint { disruption_target: context.rules.marks_disruption_target },
        };
        if context.out.propose(write, running.why.clone(), context.now) {
            self.requested.insert(key.clone(), running.fires);
        } else if context.out.is_recorded(&EffectSubject::PodDeleted(key.clone())) {
            self.overdue(key, running);
        }
    }

    /// Cancels a pod's timer and records upstream's event (docs/upstream/node-lifecycle.md#7.7). Sends no notice about a
    /// pod that is terminating, because it leaves all the same.
    fn cancel(&mut self, pod: &Key, cause: Cause, context: &mut Context<'_>) {
        if let Some(Timer::Running(running)) = self.timers.remove(pod) {
            self.by_time.remove(&(running.fires, pod.clone()));
            let why = Why::from(cause);
            context.record_event(pod, "Cancelling deletion of", &why);
            let terminates = context.cluster.pod(pod).is_some_and(|pod| pod.termination.is_some());
            if !terminates {
                let text = format!("eviction of pod {pod} cancelled");
                context.out.notice(Severity::Info, text, why, context.now);
            }
        }
        context.out.forget_deletion(pod);
    }

    /// Cancels a pod's timer, which the caller replaces at once. Records upstream's event, but sends no notice.
    fn replace(&mut self, pod: &Key, cause: Cause, context: &mut Context<'_>) {
        if let Some(Timer::Running(running)) = self.timers.remove(pod) {
            self.by_time.remove(&(running.fires, pod.clone()));
            context.record_event(pod, "Cancelling deletion of", &cause.into());
        }
    }
}

impl Context<'_> {
    /// Records upstream's event about the deletion of a pod.
    fn record_event(&mut self, pod: &Key, what: &str, why: &Why) {
        let event = || {
            let event = RecordedEvent {
                object: EventObject::Pod(pod.clone()),
                warning: false,
                reason: "TaintManagerEviction",
                message: format!("{what} Pod {pod}"),
                source: self.rules.taint_eviction_source,
            };
            (event, why.clone())
        };
        self.out.propose_event(event, self.now);
    }
}

/// The pending eviction of a pod with a timer.
fn due_at(pod: &Pod, running: &Running) -> PendingEviction {
    PendingEviction {
        pod: pod.key.clone(),
        uid: pod.uid.clone(),
        node: pod.node.clone().unwrap_or_default(),
        due: Due::At { at: running.fires, certainty: running.certainty },
        why: running.why.clone(),
    }
}

/// Returns the pending eviction of a pod that tolerates its node's taints without a time limit. This eviction is never
/// due. Returns `None` for other pods.
fn never_due(pod: &Pod, taints: &[Taint]) -> Option<PendingEviction> {
    (tolerance(&pod.tolerations, taints) == Tolerance::Forever).then(|| PendingEviction {
        pod: pod.key.clone(),
        uid: pod.uid.clone(),
        node: pod.node.clone().unwrap_or_default(),
        due: Due::Never,
        why: Cause::ToleratedForever.into(),
    })
}

/// Nanoseconds in a second.
const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// The node's NoExecute taints, in the order in which the node lists them.
pub fn no_execute(node: &Node) -> Vec<Taint> {
    node.taints.iter().filter(|taint| taint.effect == TaintEffect::NoExecute).cloned().collect()
}

/// The timer of a pod, and the taint that started it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FirstTimer<'a> {
    pub taint: &'a Taint,
    /// The time at which the timer started.
    pub started: Timestamp,
    /// The time for which the pod tolerates the taint.
    pub span: Span,
}

/// Returns the timer of a pod that tolerates all `taints`, each from the given time on; `None` if the pod tolerates
/// them without a time limit. A timer that runs is neither extended nor shortened by later taints
/// (docs/upstream/node-lifecycle.md#12.32; upstream `processPodOnNode`).
pub fn first_timer<'a>(
    tolerations: &[Toleration],
    taints: &[(Timestamp, &'a Taint)],
) -> Option<FirstTimer<'a>> {
    let mut times: Vec<Timestamp> = taints.iter().map(|(at, _)| *at).collect();
    times.sort_unstable();
    times.dedup();
    times.into_iter().find_map(|started| {
        let until_then = taints.iter().filter(|(at, _)| *at <= started).map(|(_, taint)| *taint);
        match tolerance(tolerations, until_then) {
            Tolerance::For { span, taint } => Some(FirstTimer { taint, started, span }),
            Tolerance::NotTolerated(_) | Tolerance::Forever => None,
        }
    })
}

/// Returns how a pod with these tolerations tolerates the taints. The first toleration that matches a taint decides for
/// that taint; the shortest time among all taints counts.
///
/// Upstream (`getMinTolerationTime`) converts the seconds to nanoseconds in a 64-bit integer. If the product overflows
/// to a negative number, as for `9223372036854775807`, the pod tolerates the taints without a time limit.
pub fn tolerance<'a>(
    tolerations: &[Toleration],
    taints: impl IntoIterator<Item = &'a Taint>,
) -> Tolerance<'a> {
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
    let nanos = |seconds: i64| seconds.wrapping_mul(NANOS_PER_SECOND);
    match shortest.map(|(seconds, taint)| (nanos(seconds), taint)) {
        Some((nanos @ 0.., taint)) => Tolerance::For { span: Span::from_nanos(nanos), taint },
        Some(_) | None => Tolerance::Forever,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::TolerationOperator;

    fn toleration(key: &str, seconds: i64) -> Toleration {
        let operator = TolerationOperator::Exists;
        Toleration { key: key.into(), operator, seconds: Some(seconds), ..Toleration::default() }
    }

    fn taint(key: &str) -> Taint {
        Taint { key: key.into(), effect: TaintEffect::NoExecute, ..Taint::default() }
    }

    /// Upstream code with this behaviour: Kubernetes 1.37.1 `pkg/controller/tainteviction/taint_eviction.go`,
    /// `getMinTolerationTime`.
    #[test]
    fn seconds_whose_nanoseconds_overflow_have_no_limit() {
        let taints = [taint("a")];
        let of = |seconds| tolerance(&[toleration("a", seconds)], &taints);
        let finite = |span| Tolerance::For { span, taint: &taints[0] };
        assert_eq!(of(9_223_372_036), finite(Span::from_secs(9_223_372_036)));
        assert_eq!(of(9_223_372_037), Tolerance::Forever);
        assert_eq!(of(i64::MAX), Tolerance::Forever);
        assert_eq!(of(-1), finite(Span::ZERO));
    }

    /// As upstream, an eviction that is already scheduled keeps its time (Kubernetes 1.37.1
    /// `pkg/controller/tainteviction/taint_eviction.go`, `processPodOnNode`).
    #[test]
    fn a_later_taint_neither_extends_nor_shortens_the_timer_of_an_earlier_one() {
        let (maintenance, broken) = (taint("maintenance"), taint("gpu-broken"));
        let tolerations = [toleration("maintenance", 1800), toleration("gpu-broken", 400)];
        let at = |seconds| Timestamp::from_secs(seconds);
        let timer = |maintenance_at, broken_at| {
            let taints = [(at(maintenance_at), &maintenance), (at(broken_at), &broken)];
            first_timer(&tolerations, &taints).map(|timer| (&*timer.taint.key, timer.started, timer.span))
        };
        assert_eq!(timer(0, 75), Some(("maintenance", at(0), Span::from_secs(1800))));
        assert_eq!(timer(75, 0), Some(("gpu-broken", at(0), Span::from_secs(400))));
        assert_eq!(
            timer(5, 5),
            Some(("gpu-broken", at(5), Span::from_secs(400))),
            "a controller that starts"
        );
    }

    #[test]
    fn a_taint_that_is_tolerated_without_a_limit_starts_no_timer() {
        let (first, second) = (taint("first"), taint("second"));
        let tolerations = [Toleration { seconds: None, ..toleration("first", 0) }, toleration("second", 30)];
        let at = |seconds| Timestamp::from_secs(seconds);
        let timer = first_timer(&tolerations, &[(at(0), &first), (at(60), &second)]).expect("a timer");
        assert_eq!((&*timer.taint.key, timer.started), ("second", at(60)));
        assert_eq!(first_timer(&tolerations, &[(at(0), &first)]), None);
    }
}
