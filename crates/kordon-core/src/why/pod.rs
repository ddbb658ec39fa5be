//! Explains a pod: its node, when and why the pod is evicted or why it is not, and what becomes of the pod.

use std::sync::Arc;

use super::{Explainer, Step, Tense, Topic, in_order, toleration};
use crate::{
    cluster::{
        ClusterEvent, KnownVolumeAttachments, MaintenanceNote, MaintenanceNotes, Name, Node, Phase, Pod,
        TaintEffect, Termination, VolumeAttachment, in_maintenance,
    },
    engine::{Certainty, Due, UNREACHABLE},
    forecast::{ForecastKind, ForecastStep},
    plan::{
        CordonWait, Departing, Departure, EvictionNote, EvictionRules, JobConsequences, NotRecreated,
        PodOutcome, Recreation, budget_gap,
        environment::has_running_kubelet,
        eviction,
        eviction_note::{HeldVolume, awaited_claim, held_volume},
        forced_removal::{FORCED_DETACH, collected_within, keeps_pods, removes_by_force},
        outcome::tolerates_forever,
        owner::recreation,
        refusal,
    },
};
use kordon_time::Timestamp;

/// How the deletion of a pod ends.
#[derive(Clone, Debug, PartialEq)]
enum End {
    /// The kubelet ends the pod within its grace period.
    Grace,
    /// The grace period is over, and the kubelet has not confirmed the end of the pod.
    Overdue,
    /// The kubelet is down, so that nothing ends the pod.
    NoKubelet {
        /// Whether the pod's grace period is over.
        is_over: bool,
    },
    /// The pod garbage collector removes the object.
    Collected {
        /// Time of the removal; `None` if it is not predicted.
        at: Option<Timestamp>,
        why: String,
    },
}

impl Explainer<'_> {
    /// Explains a pod: first its node, then its toleration and its eviction.
    pub fn pod(&self, pod: &Arc<Pod>) -> Vec<Step> {
        let node = pod.node.as_ref().and_then(|name| self.cluster.node(name));
        let mut explanation = node.map_or_else(Vec::new, |node| self.until_tainted_with_name(node));
        if let Some(termination) = &pod.termination {
            self.explain_termination(pod, termination, &mut explanation);
            return in_order(explanation);
        }
        let Some(node) = node else {
            let text = match &pod.node {
                None => "not bound to a node: nothing evicts it".to_owned(),
                Some(name) => format!("node {name} is gone: the pod garbage collector deletes it"),
            };
            explanation.push(Step::new(Tense::Never, Topic::Eviction, text));
            if pod.is_unscheduled() {
                let text = format!("Pending: {}", pod.pending_cause());
                explanation.push(Step::new(Tense::Present, Topic::Scheduling, text));
            }
            let waits = self.cordon_waits.iter().filter(|wait| wait.pod == pod.key);
            let step = |wait: &CordonWait| Step::new(Tense::Present, Topic::Drain, wait.to_string());
            explanation.extend(waits.map(step));
            if pod.node.is_some() {
                self.explain_outcome(pod, &mut explanation);
                self.explain_volume(pod, &mut explanation);
            }
            return in_order(explanation);
        };
        self.explain_endpoints(pod, &mut explanation);
        self.explain_held_volume(pod, &mut explanation);
        self.explain_refusal(pod, &mut explanation);
        self.explain_end_by_shutdown(pod, node, &mut explanation);
        explain_kept(pod, &mut explanation);
        self.explain_eviction(pod, node, &mut explanation);
        if explanation.iter().any(is_eviction) {
            let outcome = self.outcomes.and_then(|outcomes| outcomes.get(&pod.key));
            let is_said = |note: &EvictionNote| outcome.is_some_and(|outcome| outcome.says(note));
            let notes = EvictionNote::for_pod(self.cluster, pod).into_iter().filter(|note| !is_said(note));
            let note = |note: EvictionNote| Step::new(Tense::Future, Topic::Eviction, note.to_string());
            explanation.extend(notes.map(note));
            self.explain_outcome(pod, &mut explanation);
        } else {
            self.explain_never_evicted(pod, node, &mut explanation);
            self.explain_preemption(pod, &mut explanation);
            self.explain_loss(pod, &mut explanation);
        }
        self.explain_finalizers(pod, &mut explanation);
        in_order(explanation)
    }

    /// Explains the node of a pod. A step that the node is Ready names it, because a pod has such a condition, too.
    fn until_tainted_with_name(&self, node: &Node) -> Vec<Step> {
        let mut explanation = self.until_tainted(node);
        let is_ready = |step: &&mut Step| step.topic == Topic::Ready && step.tense == Tense::Present;
        for step in explanation.iter_mut().filter(is_ready).filter(|_| node.is_ready()) {
            step.text = format!("node {} is Ready", node.name);
        }
        explanation
    }

    /// Explains a pod, with what the Events about it say of its volumes.
    pub fn pod_with_events(&self, pod: &Arc<Pod>, events: &[ClusterEvent]) -> Vec<Step> {
        let mut explanation = self.pod(pod);
        explanation.extend(self.failed_attachment(pod, events));
        in_order(explanation)
    }

    /// Adds what an eviction and a deletion would cost, if the pod's owner does not simply replace it. For pods of
    /// Jobs, the two have different costs.
    fn explain_loss(&self, pod: &Arc<Pod>, explanation: &mut Vec<Step>) {
        let (leaves, gone) = (self.now, Some(self.now));
        let departures = [Departure { pod: pod.clone(), leaves, gone, unready: None }];
        let evicted = self.loss(pod, &JobConsequences::new(self.cluster, &departures));
        let deleted = self.loss(pod, &JobConsequences::for_deletions(self.cluster, &departures));
        let are_equal =
            evicted.as_ref().map(|(outcome, _)| outcome) == deleted.as_ref().map(|(outcome, _)| outcome);
        let losses = match are_equal {
            true => vec![("evicted or deleted", evicted)],
            false => vec![("evicted", evicted), ("deleted", deleted)],
        };
        for (how, loss) in losses {
            let Some((outcome, owner)) = loss else { continue };
            let text = format!("if it is {how}: {outcome}");
            explanation.push(Step::new(Tense::Present, Topic::Outcome, text));
            explanation.extend(owner.map(|owner| Step::new(Tense::Present, Topic::Outcome, owner)));
        }
    }

    /// Returns the outcome of a pod that is not simply replaced when it leaves. If its Job then fails, also returns, in
    /// words, what the owner of the Job does.
    fn loss(&self, pod: &Pod, jobs: &JobConsequences) -> Option<(PodOutcome, Option<String>)> {
        let departing = Departing::from_running_node(self.cluster, pod, false);
        let departing = departing.with_recreation(self.cluster, pod, jobs.recreation(self.cluster, pod));
        if !departing.missing.is_empty() {
            return None;
        }
        match departing.recreation {
            Recreation::Never(NotRecreated::Finished)
            | Recreation::Immediately
            | Recreation::WhenGone
            | Recreation::OnSameNode => None,
            Recreation::Never(_) | Recreation::Unknown => {
                let outcome = departing.decide(pod, None);
                Some((outcome, departing.failed_job.owner.map(|owner| owner.to_string())))
            }
        }
    }

    /// Adds the finalizers that keep the pod's object after a deletion.
    fn explain_finalizers(&self, pod: &Pod, explanation: &mut Vec<Step>) {
        let names: Vec<&str> = pod.holding_finalizers().map(Name::as_str).collect();
        if !names.is_empty() {
            let text =
                format!("a deletion does not end before {} is removed from its finalizers", names.join(", "));
            explanation.push(Step::new(Tense::Present, Topic::Outcome, text));
        }
    }

    /// Adds how a deletion that has begun ends, or why it does not end.
    fn explain_termination(&self, pod: &Pod, termination: &Termination, explanation: &mut Vec<Step>) {
        let end = self.end(pod, termination);
        let mut text = match &end {
            End::Grace => format!("Terminating, its grace period of {} ends", termination.grace),
            End::Overdue => {
                "Terminating: its grace period is over, and its kubelet has not confirmed the deletion".into()
            }
            End::NoKubelet { is_over: true } => {
                "Terminating: its grace period is over, and its kubelet is down".into()
            }
            End::NoKubelet { is_over: false } => {
                format!(
                    "Terminating; its kubelet is down, so it does not end with its grace period of {}",
                    termination.grace
                )
            }
            End::Collected { why, .. } => {
                format!("Terminating: the pod garbage collector removes it by force: {why}")
            }
        };
        if !pod.finalizers.is_empty() {
            let names: Vec<&str> = pod.finalizers.iter().map(|name| name.as_str()).collect();
            text += &format!("; held by {}", names.join(", "));
        }
        let deadline = self.cluster.local(termination.deadline);
        let step = match end {
            End::Grace => Step::new(Tense::Future, Topic::Termination, text).at(deadline),
            End::Overdue | End::NoKubelet { is_over: true } => {
                Step::new(Tense::Present, Topic::Termination, text).at(deadline)
            }
            End::NoKubelet { is_over: false } => Step::new(Tense::Present, Topic::Termination, text),
            End::Collected { at, .. } => {
                Step { at, estimated: true, ..Step::new(Tense::Future, Topic::Termination, text) }
            }
        };
        let is_ended_by_kubelet = matches!(step.tense, Tense::Future) && step.at == Some(deadline);
        explanation.push(step);
        if !is_ended_by_kubelet {
            self.explain_successor(pod, explanation);
        }
    }

    /// Returns how the deletion of a pod ends.
    fn end(&self, pod: &Pod, termination: &Termination) -> End {
        let is_over = self.cluster.local(termination.deadline) <= self.now;
        let rules = EvictionRules::from(self.engine.settings());
        let collected = |why: String| End::Collected { at: self.removed(pod), why };
        let Some(name) = &pod.node else { return collected("it was never scheduled".into()) };
        match self.cluster.node(name) {
            None => collected(format!("its node {name} is gone")),
            Some(node) if removes_by_force(node, &rules) => {
                collected(format!("its node {name} is out of service"))
            }
            Some(node) if has_running_kubelet(self.cluster, &node.name) && is_over => End::Overdue,
            Some(node) if has_running_kubelet(self.cluster, &node.name) => End::Grace,
            Some(_) => End::NoKubelet { is_over },
        }
    }

    /// Returns when the pod garbage collector removes the object of a pod; `None` if that is not predicted.
    fn removed(&self, pod: &Pod) -> Option<Timestamp> {
        let is_removal = |step: &&ForecastStep| matches!(&step.kind, ForecastKind::Removed { pod: removed, .. } if *removed == pod.key);
        let node = pod.node.clone().unwrap_or_default();
        self.forecast?.of_node(&node).find(is_removal).map(|step| step.at).filter(|at| *at > self.now)
    }

    /// Adds what becomes of a pod that its kubelet does not end: its replacement, and its volume.
    fn explain_successor(&self, pod: &Pod, explanation: &mut Vec<Step>) {
        let predicted = self.outcomes.and_then(|outcomes| outcomes.get(&pod.key)).cloned();
        let outcome = predicted.unwrap_or_else(|| PodOutcome::for_terminating(self.cluster, pod));
        explanation.push(Step::new(Tense::Present, Topic::Termination, format!("outcome: {outcome}")));
        self.explain_volume(pod, explanation);
    }

    /// Adds when the volume of a pod that its kubelet does not end is detached.
    fn explain_volume(&self, pod: &Pod, explanation: &mut Vec<Step>) {
        let rules = EvictionRules::from(self.engine.settings());
        let node = pod.node.as_ref().and_then(|name| self.cluster.node(name));
        let notes = match node.is_some_and(|node| removes_by_force(node, &rules)) {
            true => EvictionNote::for_forced_removal(self.cluster, pod),
            false => EvictionNote::for_pod(self.cluster, pod),
        };
        let is_of_volume = |note: &EvictionNote| {
            matches!(note, EvictionNote::VolumeAttached { .. } | EvictionNote::VolumeDetached { .. })
        };
        let volumes = notes.into_iter().filter(is_of_volume).map(|note| note.to_string());
        explanation.extend(volumes.map(|text| Step::new(Tense::Present, Topic::Volume, text)));
    }

    /// Adds the volume that a starting pod waits for, because it is still attached to another node; or that this is not
    /// known.
    fn explain_held_volume(&self, pod: &Pod, explanation: &mut Vec<Step>) {
        if pod.phase != Phase::Pending {
            return;
        }
        let Some(held) = held_volume(self.cluster, pod) else {
            explanation.extend(self.unknown_attachment(pod));
            return;
        };
        let until = self.until_detached(&held);
        let detached = self.forced_detach(pod, &held);
        let HeldVolume { claim, node, holder, .. } = held;
        let held = match holder {
            Some(holder) => format!("which {holder} holds on {node}"),
            None => format!("which is still attached to {node}"),
        };
        let text = format!("waits for ReadWriteOnce volume {claim}, {held}, {until}");
        explanation.push(Step::new(Tense::Present, Topic::Volume, text));
        if let Some(at) = detached {
            let text = format!("volume {claim} is detached from {node} by force, and the pod can start");
            explanation.push(Step::new(Tense::Future, Topic::Volume, text).at(at).estimated(true));
        }
    }

    /// Returns that it is not known whether a volume of a starting pod is attached to another node; `None` if it is
    /// known, or was not asked.
    fn unknown_attachment(&self, pod: &Pod) -> Option<Step> {
        let claim = awaited_claim(self.cluster, pod)?;
        let why = match self.cluster.volume_attachments() {
            KnownVolumeAttachments::NotRead | KnownVolumeAttachments::Read(_) => return None,
            KnownVolumeAttachments::NotServed => "the server does not serve volumeattachments",
            KnownVolumeAttachments::Unreadable(why) => why.as_str(),
        };
        let text =
            format!("whether ReadWriteOnce volume {claim} is attached to another node is not known: {why}");
        Some(Step::new(Tense::Present, Topic::Volume, text))
    }

    /// Returns when a held volume is detached, in words that follow the name of its node.
    fn until_detached(&self, held: &HeldVolume) -> String {
        let HeldVolume { node, holder, attachment, .. } = held;
        let within = collected_within();
        if let Some(VolumeAttachment { deleted: Some(_), detach_error, .. }) = attachment {
            let error = match detach_error.is_empty() {
                true => String::new(),
                false => format!("; the last attempt failed: {detach_error}"),
            };
            return format!("and is being detached{error}");
        }
        match (self.cluster.node(node), holder) {
            (None, Some(holder)) => format!(
                "whose Node object is gone: {holder} is removed {within} after that, and the volume is detached by \
                 force {FORCED_DETACH} later"
            ),
            (None, None) => format!(
                "whose Node object is gone: detached by force {FORCED_DETACH} after the pod that used it was gone"
            ),
            _ if keeps_pods(self.cluster, node) => {
                let gone = holder.as_ref().map(|holder| format!("{holder} is gone"));
                let gone = gone.unwrap_or_else(|| "the pod that used it was gone".into());
                format!(
                    "whose kubelet is down: detached by force {FORCED_DETACH} after {gone}, at once if {node} is Ready \
                     or tainted out-of-service"
                )
            }
            (_, Some(holder)) => format!("detached once {holder} is gone"),
            (_, None) => "detached once it is unmounted there".into(),
        }
    }

    /// Returns when a held volume is detached by force from a node that is down or gone (Kubernetes 1.37
    /// `pkg/controller/volume/attachdetach/reconciler/reconciler.go`, `maxWaitForUnmountDuration`). `None` if that is
    /// over or not known: only the owner that waits until the old pod is gone shows when that was.
    fn forced_detach(&self, pod: &Pod, held: &HeldVolume) -> Option<Timestamp> {
        let is_detaching = held.attachment.as_ref().is_some_and(|attachment| attachment.deleted.is_some());
        let is_gone = held.holder.is_none() && recreation(self.cluster, pod) == Recreation::WhenGone;
        let is_down = self.cluster.node(&held.node).is_none() || keeps_pods(self.cluster, &held.node);
        let at = self.cluster.local(pod.created) + FORCED_DETACH;
        (is_gone && is_down && !is_detaching && at > self.now).then_some(at)
    }

    /// Returns that a volume of a starting pod could not be attached, from the latest of its Events about this; `None`
    /// without such an Event (Kubernetes 1.37 `pkg/controller/volume/attachdetach/util/util.go`).
    fn failed_attachment(&self, pod: &Pod, events: &[ClusterEvent]) -> Option<Step> {
        let is_starting = pod.lives() && pod.phase == Phase::Pending;
        let failed = events.iter().filter(|event| is_starting && event.reason == *"FailedAttachVolume");
        let event = failed.max_by_key(|event| event.last)?;
        let text = format!("its volume could not be attached: {}", event.message);
        let at = event.last.map(|at| self.cluster.local(at));
        Some(Step { at, ..Step::new(Tense::Past, Topic::Volume, text) })
    }

    /// Adds why the API server would refuse a request to evict the pod; adds nothing if it would grant the request. A
    /// plan that evicts the pod comes to the same verdict.
    fn explain_refusal(&self, pod: &Arc<Pod>, explanation: &mut Vec<Step>) {
        let rules = EvictionRules::from(self.engine.settings());
        let verdict = refusal(self.cluster, pod, &rules, self.now).filter(|_| !pod.mirror);
        let Some(verdict) = verdict else {
            return self.explain_budget_gap([pod], explanation);
        };
        let code = eviction::answer(self.cluster, pod, &rules, self.now).code;
        let text = format!("an eviction request, as a drain sends it, is answered with {code}: {verdict}");
        explanation.push(Step::new(Tense::Present, Topic::Budget, text));
    }

    /// Adds that it is unknown whether a budget blocks the eviction of these pods. Adds nothing if it is known.
    pub(super) fn explain_budget_gap<'a>(
        &self,
        pods: impl IntoIterator<Item = &'a Arc<Pod>>,
        explanation: &mut Vec<Step>,
    ) {
        let evicted = pods.into_iter().filter(|pod| pod.is_workload());
        let gap = budget_gap(self.cluster, evicted);
        explanation.extend(gap.map(|gap| Step::new(Tense::Present, Topic::Budget, gap.to_string())));
    }

    /// Adds the outcome of the pod's eviction, with reasons. If it has not been computed, adds what the eviction would
    /// cost.
    fn explain_outcome(&self, pod: &Arc<Pod>, explanation: &mut Vec<Step>) {
        let Some(outcome) = self.outcomes.and_then(|outcomes| outcomes.get(&pod.key)) else {
            return self.explain_loss(pod, explanation);
        };
        let texts = [format!("outcome: {outcome}")].into_iter().chain(outcome.reasons());
        explanation.extend(texts.map(|text| Step::new(Tense::Future, Topic::Eviction, text)));
    }

    /// Adds the outcome of a pod that nothing evicts, although its kubelet is down or soon counts as down.
    fn explain_never_evicted(&self, pod: &Pod, node: &Node, explanation: &mut Vec<Step>) {
        if !pod.lives() {
            return;
        }
        let is_down = !has_running_kubelet(self.cluster, &node.name);
        let forecast = self.staying.and_then(|staying| staying.get(&pod.key));
        let forecast = forecast.filter(|it| it.kind().holds_without_deletion() && self.has_controller());
        let outcome = if let Some(outcome) = forecast {
            outcome.clone()
        } else if is_down && !self.has_controller()
            || self.forecast.is_some_and(|forecast| forecast.leaves_alone(self.cluster, &node.name))
        {
            Departing::from_paused_node(self.cluster, pod, false).decide(pod, None)
        } else if is_down && self.tolerates_taints_of(pod, node) {
            PodOutcome::for_never_evicted(self.cluster, pod)
        } else if self.becomes_unknown(node) && self.tolerates_next_taint(pod, node) {
            Departing::from_lost_node(self.cluster, pod, false).decide(pod, None)
        } else {
            return;
        };
        let text = format!("outcome: {outcome}");
        explanation.push(Step::new(Tense::Present, Topic::Outcome, text));
    }

    /// Adds that the pod is going to be preempted for the replacement of an evicted pod.
    fn explain_preemption(&self, pod: &Pod, explanation: &mut Vec<Step>) {
        if let Some(preempted) = self.preempted.and_then(|preempted| preempted.get(&pod.key)) {
            explanation.push(Step::new(Tense::Future, Topic::Outcome, preempted.to_string()));
        }
    }

    /// Whether the pod tolerates the NoExecute taints of its node without a limit.
    fn tolerates_taints_of(&self, pod: &Pod, node: &Node) -> bool {
        let pending = self.engine.evictions_left_on(self.cluster, node, self.now);
        pending.iter().any(|eviction| eviction.pod == pod.key && eviction.due == Due::Never)
    }

    /// Whether the node is Unknown, or is tainted as unreachable within the forecast.
    fn becomes_unknown(&self, node: &Node) -> bool {
        let is_taint = |step: &ForecastStep| matches!(&step.kind, ForecastKind::NoExecute { key, .. } if **key == *UNREACHABLE);
        !has_running_kubelet(self.cluster, &node.name) || self.steps(node).any(is_taint)
    }

    /// Whether the forecast adds a NoExecute taint to the node, and the pod tolerates this taint without a limit.
    fn tolerates_next_taint(&self, pod: &Pod, node: &Node) -> bool {
        self.steps(node).any(|step| match &step.kind {
            ForecastKind::NoExecute { key, .. } => tolerates_forever(pod, key),
            ForecastKind::Unknown { .. }
            | ForecastKind::Ended { .. }
            | ForecastKind::Deleted { .. }
            | ForecastKind::Removed { .. } => false,
        })
    }

    /// Adds since when and why a pod is not ready, and so not in the endpoints of its Services.
    fn explain_endpoints(&self, pod: &Pod, explanation: &mut Vec<Step>) {
        let Some(ready) = pod.ready.as_ref().filter(|_| !pod.is_ready()) else { return };
        let since = ready.last_transition.map(|since| self.cluster.stated_by_kubelet(pod, since));
        let at = since.map(|since| self.cluster.local(since));
        let text = "not ready: its Services send it nothing".to_owned();
        explanation.push(Step { at, ..Step::new(Tense::Past, Topic::Endpoints, text) });
        let gates: Vec<&str> = pod.unmet_gates().iter().map(Name::as_str).collect();
        let gates = (!gates.is_empty()).then(|| format!("readiness gates not met: {}", gates.join(", ")));
        let trouble = pod.trouble().map(|trouble| format!("not expected to become ready: {trouble}"));
        let causes = gates.into_iter().chain(trouble);
        explanation.extend(causes.map(|text| Step::new(Tense::Present, Topic::Endpoints, text)));
    }

    fn explain_eviction(&self, pod: &Pod, node: &Node, explanation: &mut Vec<Step>) {
        let predicted = self.steps(node).find(|step| match &step.kind {
            ForecastKind::Deleted { pod: deleted, .. } | ForecastKind::Removed { pod: deleted, .. } => {
                *deleted == pod.key
            }
            ForecastKind::Unknown { .. } | ForecastKind::NoExecute { .. } | ForecastKind::Ended { .. } => {
                false
            }
        });
        let of_device = self.device_eviction(pod);
        let pending = self.engine.evictions_left_on(self.cluster, node, self.now);
        let pending = pending.into_iter().find(|eviction| eviction.pod == pod.key);
        if (of_device.is_some() || pending.is_some()) && !self.has_controller() {
            let text = "no controller is active: nothing evicts it until one is";
            explanation.push(Step::new(Tense::Never, Topic::Eviction, text.into()));
            return;
        }
        if let Some(steps) = of_device {
            explanation.extend(steps);
            return;
        }
        match (pending.map(|eviction| (eviction.due, eviction.why)), predicted) {
            (Some((Due::At { .. }, _)), _)
                if self.forecast.is_some_and(|forecast| forecast.cancels(&pod.key)) =>
            {
                let text = "the controller removes the taint before its toleration ends: it is not evicted";
                explanation.push(Step::new(Tense::Never, Topic::Eviction, text.into()));
            }
            (Some((Due::At { at, certainty }, why)), _) => {
                explanation
                    .extend(toleration(&why).map(|text| Step::new(Tense::Present, Topic::Toleration, text)));
                let (tense, text) = match at <= self.now {
                    true => (Tense::Present, "its eviction is overdue"),
                    false => (Tense::Future, "it is evicted"),
                };
                let step = Step::new(tense, Topic::Eviction, text.into());
                explanation.push(step.at(at).estimated(certainty != Certainty::Observed));
            }
            (Some((Due::Never, _)), _) => {
                let whose = match pod.is_of_daemon_set() {
                    true => "it tolerates its node's taints, as all pods of its DaemonSet: never evicted",
                    false => "it tolerates its node's taints: never evicted",
                };
                explanation.push(Step::new(Tense::Never, Topic::Eviction, whose.into()));
            }
            (None, Some(step)) => {
                explanation.extend(
                    toleration(&step.why).map(|text| Step::new(Tense::Future, Topic::Toleration, text)),
                );
                let chance = step.chance.as_ref().map(|chance| format!(" ({chance})")).unwrap_or_default();
                let text = format!("it is evicted{chance}");
                explanation.push(Step::new(Tense::Future, Topic::Eviction, text).at(step.at).estimated(true));
            }
            (None, None) => explanation.push(self.not_evicted(pod, node)),
        }
    }

    fn not_evicted(&self, pod: &Pod, node: &Node) -> Step {
        let taint_comes = self.steps(node).any(|step| matches!(step.kind, ForecastKind::NoExecute { .. }));
        let step = |text: &str| Step::new(Tense::Never, Topic::Eviction, text.into());
        match self.forecast {
            Some(_) if self.tolerates_next_taint(pod, node) => {
                step("it tolerates the taint that its node gets: never evicted")
            }
            Some(forecast) if taint_comes => {
                step("its tolerations outlast the forecast: it is not evicted before then").at(forecast.until)
            }
            _ if node.taints.iter().any(|taint| taint.effect == TaintEffect::NoExecute) => {
                step("its node is Ready again: the next pass removes the taint and cancels its eviction")
            }
            _ => match self.drain_of_maintenance(pod, node) {
                Some(text) => Step::new(Tense::Future, Topic::Drain, text),
                None => step("its node has no NoExecute taint, and none is predicted: nothing evicts it"),
            },
        }
    }

    /// Text about the drain by which a maintenance of the node will evict the pod; `None` if none will.
    fn drain_of_maintenance(&self, pod: &Pod, node: &Node) -> Option<String> {
        let note = node.maintenance.as_ref().filter(|note| pod.is_workload() && !note.stage.is_drained())?;
        let MaintenanceNote { by, operation, stage, .. } = &**note;
        let is_running = MaintenanceNotes::runs(self.cluster, operation, self.now);
        let resumed = if is_running { "" } else { ", once the maintenance is resumed" };
        let maintenance = in_maintenance(operation, by, is_running);
        Some(format!("its node {} {maintenance}: its drain evicts the pod{resumed}", stage.text()))
    }
}

/// Adds which autoscalers leave the pod on its node. They evict pods of DaemonSets and mirror pods in no case.
fn explain_kept(pod: &Pod, explanation: &mut Vec<Step>) {
    if pod.is_workload() && !pod.is_finished() {
        let step = |text: &str| Step::new(Tense::Never, Topic::Drain, text.into());
        explanation.extend(pod.kept_from.texts().map(step));
    }
}

/// Whether a step says that the pod is evicted, now or later.
fn is_eviction(step: &Step) -> bool {
    let is_ahead = match step.tense {
        Tense::Present | Tense::Future => true,
        Tense::Past | Tense::Never => false,
    };
    step.topic == Topic::Eviction && is_ahead
}
