//! Explains a node or a pod step by step: the causes of its state, what happens next, and what does not happen and why,
//! each with its time.

mod deleted_node;
pub mod departure;
mod devices;
mod evictions;
mod health_check;
pub mod needs;
mod pod;
mod node_claim;
mod shutdown;

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    cluster::{
        Cluster, ClusterEvent, ConditionStatus, CordonOrigin, DrainStage, ForeignDrain, ForeignNote, Key,
        MaintenanceNote, MaintenanceNotes, Name, Node, NodeName, Pod, Scope, Taint, TaintEffect, TaintOwner,
        in_maintenance, pod::SAFE_TO_EVICT,
    },
    engine::{
        Cause, Certainty, Confidence, Engine, EvictionStatus, NodeStage, NodeView, Silence, UNREACHABLE, Why,
        ZoneState, ZoneView, is_clock_doubtful,
    },
    forecast::{Forecast, ForecastKind, ForecastStep, leave_endpoints},
    operation::DrainCount,
    plan::{
        BlockedDrain, CordonWait, EvictionRules, PodOutcome, PreemptedFor, foreign_drain, foreign_time_left,
        words::named,
    },
};
use kordon_time::{Span, Timestamp};

/// One step of an explanation.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The time of the step; `None` for a step without a time.
    pub at: Option<Timestamp>,
    pub tense: Tense,
    /// Whether the time is an estimate or depends on chance.
    pub estimated: bool,
    pub topic: Topic,
    /// The step in words. Contains text from the cluster.
    pub text: String,
}

/// Whether a step is past, present, future or ruled out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tense {
    /// The step has happened.
    Past,
    /// The step applies now.
    Present,
    /// The step will happen unless something intervenes.
    Future,
    /// The step does not happen, for the reason given.
    Never,
}

/// The subject of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// How reliable the explanation is: whether watches are connected, and whether a controller runs.
    Confidence,
    /// The last heartbeat.
    Heartbeat,
    /// A grace period that starts again without a new heartbeat, for example after a restart of the controller.
    Restart,
    Grace,
    /// The Ready condition.
    Ready,
    /// When pods leave the endpoints of their Services.
    Endpoints,
    NoSchedule,
    /// The zone's queue of nodes that wait for their NoExecute taint, and its rate.
    Queue,
    NoExecute,
    /// Why the scheduler has no node for the pod.
    Scheduling,
    /// Progress of the node's eviction in legacy mode, which has no NoExecute taints.
    NodeEviction,
    /// How long a pod tolerates a NoExecute taint.
    Toleration,
    /// The deletion of pods.
    Eviction,
    /// The deletion of a pod, once it has begun.
    Termination,
    /// Who cordoned the node.
    Cordon,
    /// The drain of the node, and what blocks it; what other projects plan to do with the node.
    Drain,
    /// What refuses a request to evict the pod.
    Budget,
    /// A volume that the pod holds or waits for.
    Volume,
    /// What an eviction or deletion of the pod would cost.
    Outcome,
}

impl Tense {
    /// Symbol of a step that is past, present, future or ruled out, on screen and in tables.
    pub const fn glyph(self) -> &'static str {
        match self {
            Self::Past => "·",
            Self::Present => "●",
            Self::Future => "→",
            Self::Never => "–",
        }
    }

    /// Heading on screen of the steps that are past, present, future or ruled out.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Past => "past",
            Self::Present => "now",
            Self::Future => "expected",
            Self::Never => "not expected",
        }
    }

    /// Name of the tense in reports and filters: `past`, `present`, `future` or `never`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Past => "past",
            Self::Present => "present",
            Self::Future => "future",
            Self::Never => "never",
        }
    }
}

impl Topic {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Confidence => "confidence",
            Self::Heartbeat => "heartbeat",
            Self::Restart => "restart",
            Self::Grace => "gracePeriod",
            Self::Ready => "ready",
            Self::Endpoints => "endpoints",
            Self::NoSchedule => "noSchedule",
            Self::Queue => "queue",
            Self::NoExecute => "noExecute",
            Self::Scheduling => "scheduling",
            Self::NodeEviction => "nodeEviction",
            Self::Toleration => "toleration",
            Self::Eviction => "eviction",
            Self::Termination => "termination",
            Self::Cordon => "cordon",
            Self::Drain => "drain",
            Self::Budget => "budget",
            Self::Volume => "volume",
            Self::Outcome => "outcome",
        }
    }
}

/// Data that explanations are made from.
#[derive(Clone, Copy, Debug)]
pub struct Explainer<'a> {
    pub engine: &'a Engine,
    pub cluster: &'a Cluster,
    /// The newest forecast, from which predicted steps are taken. Without a forecast, an explanation has only steps
    /// from the engine's current state.
    pub forecast: Option<&'a Forecast>,
    /// The outcomes of evicted pods; `None` if they are not computed.
    pub outcomes: Option<&'a BTreeMap<Key, PodOutcome>>,
    /// The outcomes of pods on nodes that are down that are not evicted; `None` if they are not computed.
    pub staying: Option<&'a BTreeMap<Key, PodOutcome>>,
    /// The pods that are preempted for the replacements of evicted pods; `None` if they are not computed.
    pub preempted: Option<&'a BTreeMap<Key, PreemptedFor>>,
    /// Nodes whose drain ends only after another node is uncordoned; empty if this is not computed.
    pub cordon_waits: &'a [CordonWait],
    pub now: Timestamp,
}

impl Explainer<'_> {
    /// Explains a node: last heartbeat, grace period, Unknown, NoSchedule, queue, NoExecute, evictions.
    pub fn node(&self, node: &Node) -> Vec<Step> {
        let mut explanation = self.until_tainted(node);
        self.explain_cordon(node, &mut explanation);
        explain_deletion(node, &mut explanation);
        self.explain_drain(node, &mut explanation);
        if needs::is_drained(node) {
            self.explain_budget_gap(self.cluster.workload_pods(&node.name), &mut explanation);
        }
        self.explain_cordon_wait(node, &mut explanation);
        self.explain_maintenance(node, &mut explanation);
        self.explain_plans(node, &mut explanation);
        self.explain_kept_pods(node, &mut explanation);
        self.explain_node_claim(node, &mut explanation);
        self.explain_health_checks(node, &mut explanation);
        self.explain_shutdown(node, &mut explanation);
        self.explain_evictions(node, &mut explanation);
        in_order(explanation)
    }

    /// Explains a node, with what the Events about it say of Karpenter.
    pub fn node_with_events(&self, node: &Node, events: &[ClusterEvent]) -> Vec<Step> {
        let mut explanation = self.node(node);
        explanation.extend(disruption_blocked(self.cluster, events));
        in_order(explanation)
    }

    fn until_tainted(&self, node: &Node) -> Vec<Step> {
        let mut explanation = Vec::new();
        self.explain_confidence(&mut explanation);
        let Some(health) = self.engine.node_view(node) else {
            explanation.push(Step::new(
                Tense::Future,
                Topic::Heartbeat,
                "not covered by a monitor pass yet".into(),
            ));
            return explanation;
        };
        self.explain_life(node, &health, &mut explanation);
        self.explain_ready(node, &health, &mut explanation);
        self.explain_no_schedule(node, &mut explanation);
        self.explain_queue(node, &health, &mut explanation);
        match health.eviction {
            None => self.explain_no_execute(node, &health, &mut explanation),
            Some(status) => self.explain_node_eviction(node, status, &mut explanation),
        }
        explanation
    }

    /// Adds who cordoned the node, and when. Adds nothing if it is not known who cordoned it.
    fn explain_cordon(&self, node: &Node, explanation: &mut Vec<Step>) {
        let Some(CordonOrigin { by: Some(by), at, is_latest }) = CordonOrigin::find(self.cluster, node)
        else {
            return;
        };
        let step = Step::new(Tense::Past, Topic::Cordon, format!("cordoned by {by}"));
        explanation.push(Step { at, ..step }.estimated(is_latest));
    }

    /// Adds the drain of the node and what blocks it, or the stage of another project's work on the node.
    fn explain_drain(&self, node: &Node, explanation: &mut Vec<Step>) {
        let claim = node.drain_claim.as_ref().filter(|claim| claim.is_fresh(self.now));
        let rules = EvictionRules::for_version(self.engine.settings().version);
        let foreign = foreign_drain(self.cluster, node, &rules, self.now).filter(|_| claim.is_none());
        // Text after the word "drain", "drained" or "reboot": who drains the node, or what shows the drain.
        let by = match (claim, &foreign) {
            (Some(claim), _) => format!("by {}", claim.by),
            (None, Some(ForeignDrain { by: Some(by), evidence, .. })) => format!("by {by} ({evidence})"),
            (None, Some(ForeignDrain { by: None, evidence, .. })) => format!("({evidence})"),
            (None, None) => return,
        };
        let is_empty = || self.knows_pods(node) && self.cluster.workload_pods(&node.name).next().is_none();
        let text = match foreign.as_ref().map_or(DrainStage::Draining, |foreign| foreign.stage) {
            DrainStage::Rebooting => format!("reboot {by}"),
            DrainStage::Drained => format!("drain {by} has ended"),
            DrainStage::Maintaining if is_empty() => format!("drain {by} has ended"),
            DrainStage::Draining | DrainStage::Maintaining => {
                let blocked = BlockedDrain::find(self.cluster, node, None, &rules, self.now);
                let left = foreign.as_ref().and_then(|_| self.words_of_rest(node, blocked.as_ref(), &rules));
                drain_words(&by, blocked.as_ref()) + &left.unwrap_or_default()
            }
        };
        let step = Step::new(Tense::Present, Topic::Drain, text);
        explanation.push(Step { at: foreign.and_then(|foreign| foreign.since), ..step });
    }

    /// Adds that a drain of the node waits for the uncordon of another node.
    fn explain_cordon_wait(&self, node: &Node, explanation: &mut Vec<Step>) {
        let wait = self.cordon_waits.iter().find(|wait| wait.node == node.name);
        explanation.extend(wait.map(|wait| Step::new(Tense::Present, Topic::Drain, wait.to_string())));
    }

    /// The rest of a drain by another client, in words that follow what is said of the drain: `; 2 pods left (1
    /// terminating, 1 waiting), done in ~30s (at most 35s)`. `None` if the pods of the node are unknown.
    fn words_of_rest(
        &self,
        node: &Node,
        blocked: Option<&BlockedDrain>,
        rules: &EvictionRules,
    ) -> Option<String> {
        let count = DrainCount::of_foreign(node, self.cluster, 0, blocked)?;
        let ends = match blocked {
            None if count.left() > 0 => {
                let left = foreign_time_left(self.cluster, node, rules, self.now);
                format!(", {}", left.text(self.now))
            }
            Some(_) | None => String::new(),
        };
        Some(format!("; {}{ends}", count.left_text()))
    }

    fn knows_pods(&self, node: &Node) -> bool {
        self.cluster.knows(&Scope::PodsOn(node.name.clone()))
    }

    /// Adds the maintenance of the node, and its stage.
    fn explain_maintenance(&self, node: &Node, explanation: &mut Vec<Step>) {
        let Some(note) = &node.maintenance else { return };
        let MaintenanceNote { by, operation, stage, .. } = &**note;
        let is_running = MaintenanceNotes::runs(self.cluster, operation, self.now);
        let next = match is_running {
            true => String::new(),
            false => format!(
                ": `kordon maintenance --resume={operation} --enforce` goes on, --release={operation} ends it"
            ),
        };
        let text = format!("{} {}{next}", stage.text(), in_maintenance(operation, by, is_running));
        explanation.push(Step::new(Tense::Present, Topic::Drain, text));
    }

    /// Adds what other projects report about the node or plan for it.
    fn explain_plans(&self, node: &Node, explanation: &mut Vec<Step>) {
        for ForeignNote { text, at } in ForeignNote::all(self.cluster, node) {
            let tense = if at.is_some_and(|at| at > self.now) { Tense::Future } else { Tense::Present };
            explanation.push(Step { at, ..Step::new(tense, Topic::Drain, text) });
        }
    }

    /// Adds that the Cluster Autoscaler does not remove the node, because it may not evict pods of the node.
    fn explain_kept_pods(&self, node: &Node, explanation: &mut Vec<Step>) {
        if ForeignDrain::stage(node).is_some() {
            return;
        }
        let is_kept = |pod: &&Arc<Pod>| pod.kept_from.cluster_autoscaler() && !pod.is_finished();
        let kept = self.cluster.workload_pods(&node.name).filter(is_kept);
        let kept: Vec<Key> = kept.map(|pod| pod.key.clone()).collect();
        if !kept.is_empty() {
            let text = format!(
                "the Cluster Autoscaler does not remove it: {SAFE_TO_EVICT} is false for {}",
                named(&kept)
            );
            explanation.push(Step::new(Tense::Never, Topic::Drain, text));
        }
    }

    fn explain_confidence(&self, explanation: &mut Vec<Step>) {
        let (since, text) = match self.engine.confidence(self.now) {
            Confidence::Live | Confidence::Assumed => return,
            Confidence::Disconnected { since } => {
                (since, "disconnected from nodes and Leases: states are frozen")
            }
            Confidence::NoController { since } => {
                (since, "no active kube-controller-manager: no evictions until one renews its Lease")
            }
        };
        explanation.push(Step::new(Tense::Present, Topic::Confidence, text.into()).at(since));
    }

    fn is_firm(&self) -> bool {
        self.engine.confidence(self.now).allows_predictions()
    }

    fn has_controller(&self) -> bool {
        self.engine.confidence(self.now).has_controller()
    }

    fn is_silent(&self, node: &Node) -> bool {
        self.engine.is_silent(self.cluster, node, self.now)
    }

    fn renews_again(&self, node: &Node) -> bool {
        self.engine.renews_again(self.cluster, node, self.now)
    }

    fn explain_life(&self, node: &Node, health: &NodeView, explanation: &mut Vec<Step>) {
        let Silence { heartbeat, is_of_lease, .. } = self.engine.silence(self.cluster, node);
        let heartbeat = heartbeat.min(self.now);
        let lease = self.cluster.lease(&node.name);
        let text = match node.ready().and_then(|ready| ready.last_heartbeat) {
            _ if is_of_lease => "last heartbeat: its Lease was renewed",
            Some(_) => "last heartbeat: its kubelet posted its status",
            None => "no heartbeat yet: the node was created",
        };
        let clock = match lease.and_then(|lease| lease.clock_difference()) {
            Some(clock) => format!(" (its clock is {clock})"),
            None if lease.is_some_and(|lease| is_clock_doubtful(self.cluster, lease, self.now)) => {
                " (its clock may be wrong)".into()
            }
            None => String::new(),
        };
        explanation.push(Step::new(Tense::Past, Topic::Heartbeat, format!("{text}{clock}")).at(heartbeat));
        if self.renews_again(node) {
            let text = "it renews its Lease again: its status should follow within some seconds";
            explanation.push(Step::new(Tense::Present, Topic::Heartbeat, text.into()));
        }
        let restarted = self.explain_restart(health, heartbeat, explanation);
        let flag = self.engine.why_silent(&node.name).and_then(grace_flag).unwrap_or("grace");
        let unknown = node.ready().filter(|ready| ready.status == ConditionStatus::Unknown);
        if let Some(unknown) = unknown {
            let since = unknown.last_transition.map_or(self.now, |at| self.cluster.local(at));
            return self.explain_ended_grace(flag, health, heartbeat, restarted, since, explanation);
        }
        let (grace, expires) = (health.grace, health.expires());
        let (tense, what) = match (self.is_silent(node), expires < self.now) {
            (true, true) => (Tense::Past, "is over"),
            (true, false) => (Tense::Future, "ends"),
            (false, true) => {
                (Tense::Past, "is over: Unknown in the next pass, unless its Lease is renewed before")
            }
            (false, false) => (Tense::Never, "does not expire while its Lease is renewed"),
        };
        let step = Step::new(tense, Topic::Grace, format!("{flag} {grace} {what}"));
        explanation.push(match tense {
            Tense::Never => step,
            _ => step.at(expires).estimated(health.certainty != Certainty::Observed),
        });
    }

    /// Adds why the grace period counts from a later time than the last heartbeat. Returns the later time; `None` if
    /// the grace period counts from the heartbeat.
    fn explain_restart(
        &self,
        health: &NodeView,
        heartbeat: Timestamp,
        explanation: &mut Vec<Step>,
    ) -> Option<Timestamp> {
        let (by, at) = (health.heartbeat_source, health.probe.min(self.now));
        if !by.restarts_grace() || at <= heartbeat {
            return None;
        }
        let text = Cause::GraceRestarted { by, at }.to_string();
        explanation.push(Step::new(Tense::Past, Topic::Restart, text).at(at));
        Some(at)
    }

    /// Adds the grace period that ended before the node became Unknown. Adds nothing if the present data no longer
    /// explain it: the node may have sent heartbeats since, or the controller may have been restarted.
    fn explain_ended_grace(
        &self,
        flag: &str,
        health: &NodeView,
        heartbeat: Timestamp,
        restarted: Option<Timestamp>,
        unknown_since: Timestamp,
        explanation: &mut Vec<Step>,
    ) {
        let counted_from = restarted.filter(|at| *at <= unknown_since).unwrap_or(heartbeat);
        let ended = counted_from + health.grace;
        if ended <= unknown_since + ROUNDING {
            let text = format!("{flag} {} is over", health.grace);
            let step = Step::new(Tense::Past, Topic::Grace, text);
            explanation.push(step.at(ended.min(unknown_since)).estimated(restarted != Some(counted_from)));
        }
    }

    fn explain_ready(&self, node: &Node, health: &NodeView, explanation: &mut Vec<Step>) {
        let Some(ready) = node.ready() else {
            explanation.push(Step::new(
                Tense::Present,
                Topic::Ready,
                "its kubelet has never posted its status".into(),
            ));
            return self.predict_unknown(node, health, explanation);
        };
        let since = ready.last_transition.map(|at| self.cluster.local(at));
        let text = match ready.status {
            ConditionStatus::True => "Ready".to_owned(),
            ConditionStatus::Unknown => {
                format!("the controller set its conditions to Unknown ({})", ready.reason)
            }
            ConditionStatus::False if node.is_shutting_down() => {
                "its kubelet reports Ready=False (node is shutting down): it ends the pods before the machine stops"
                    .to_owned()
            }
            ConditionStatus::False | ConditionStatus::Invalid => {
                format!(
                    "its kubelet reports Ready={} ({}): no grace period applies",
                    ready.status.as_str(),
                    ready.reason
                )
            }
        };
        let tense = if ready.status == ConditionStatus::True { Tense::Present } else { Tense::Past };
        explanation.push(Step { at: since, ..Step::new(tense, Topic::Ready, text) });
        if ready.status != ConditionStatus::Unknown {
            self.predict_unknown(node, health, explanation);
        }
    }

    fn predict_unknown(&self, node: &Node, health: &NodeView, explanation: &mut Vec<Step>) {
        if !self.is_silent(node) || !self.is_firm() {
            return;
        }
        let predicted = self.steps(node).find(|step| matches!(step.kind, ForecastKind::Unknown { .. }));
        let at = predicted.map_or(health.expires(), |step| step.at).max(self.now);
        let text = "the first monitor pass after that sets its conditions to Unknown";
        let step = Step::new(Tense::Future, Topic::Ready, text.into());
        explanation.push(step.at(at).estimated(health.certainty != Certainty::Observed));
        let not_ready = predicted.map_or(0, |step| step.not_ready);
        if not_ready > 0 {
            let text = format!("marks its Ready pods not ready: {}", leave_endpoints(not_ready));
            explanation.push(Step::new(Tense::Future, Topic::Endpoints, text).at(at));
        }
        let text = format!("taint {UNREACHABLE}:NoSchedule (immediate, not rate limited)");
        explanation.push(Step::new(Tense::Future, Topic::NoSchedule, text).at(at));
    }

    fn explain_no_schedule(&self, node: &Node, explanation: &mut Vec<Step>) {
        let ours = |taint: &&Taint| {
            taint.effect == TaintEffect::NoSchedule && taint.key.starts_with("node.kubernetes.io/")
        };
        for taint in node.taints.iter().filter(ours) {
            let at = taint.time_added.map(|at| self.cluster.local(at));
            let text = format!("{}:NoSchedule: no new pods without a toleration", taint.key);
            explanation.push(Step { at, ..Step::new(Tense::Past, Topic::NoSchedule, text) });
        }
        for taint in node.taints.iter().filter(|taint| taint.effect != TaintEffect::NoExecute) {
            let Some(owner) = TaintOwner::from_taint(taint).filter(|owner| owner.is_readiness()) else {
                continue;
            };
            let at = taint.time_added.map(|at| self.cluster.local(at));
            let (key, effect) = (&taint.key, taint.effect.as_str());
            let text = format!("{key}:{effect}, by {}: {}", owner.name, owner.meaning);
            explanation.push(Step { at, ..Step::new(Tense::Past, Topic::NoSchedule, text) });
        }
    }

    /// Adds the queue in which the node waits or will wait. If all zones are down or the zone's rate is zero, adds
    /// instead that there are no evictions.
    fn explain_queue(&self, node: &Node, health: &NodeView, explanation: &mut Vec<Step>) {
        let concerned = match health.stage {
            NodeStage::Queued | NodeStage::Requested => true,
            NodeStage::Healthy => self.is_silent(node) || !node.is_ready(),
            NodeStage::Tainted | NodeStage::Evicted => false,
        };
        if !concerned || !self.is_firm() {
            return;
        }
        let zones = self.engine.zones(self.now);
        let Some(zone) = zones.iter().find(|zone| zone.key == health.zone) else { return };
        let all_down =
            zones.iter().filter(|zone| zone.size > 0).all(|zone| zone.state == ZoneState::FullDisruption);
        let rate = rate_words(zone);
        let (tense, at, text) = if all_down {
            let text =
                "all zones down: NoExecute taints removed and evictions paused (master disruption mode)";
            (Tense::Never, None, text.to_owned())
        } else if zone.rate == 0.0 {
            (Tense::Never, None, format!("{rate}: no evictions there"))
        } else if health.stage == NodeStage::Healthy {
            (Tense::Future, None, rate)
        } else {
            let others = zone.queue.iter().filter(|waiting| **waiting != node.name).count();
            let company = match others {
                0 => "alone".to_owned(),
                1 => "with 1 other, in random order".to_owned(),
                others => format!("with {others} others, in random order"),
            };
            (Tense::Present, zone.next_token, format!("it waits {company}; {rate}; the next slot comes"))
        };
        explanation.push(Step { at, ..Step::new(tense, Topic::Queue, text) });
    }

    /// Adds the node's eviction in legacy mode, which has no NoExecute taints: the pods of a node are deleted all at
    /// once.
    fn explain_node_eviction(&self, node: &Node, status: EvictionStatus, explanation: &mut Vec<Step>) {
        let timeout = self.engine.settings().pod_eviction_timeout.value;
        let (tense, text) = match status {
            EvictionStatus::Unmarked if node.is_ready() && !self.is_silent(node) => return,
            EvictionStatus::Unmarked => (
                Tense::Future,
                format!("marked toBeEvicted once it was not ready for pod-eviction-timeout {timeout}"),
            ),
            EvictionStatus::ToBeEvicted => {
                (Tense::Present, "marked toBeEvicted: all its pods are deleted when its turn comes".into())
            }
            EvictionStatus::Evicted => {
                (Tense::Past, "marked evicted: its pods were deleted, and later ones are at once".into())
            }
        };
        explanation.push(Step::new(tense, Topic::NodeEviction, text));
    }

    fn explain_no_execute(&self, node: &Node, health: &NodeView, explanation: &mut Vec<Step>) {
        for taint in node.taints.iter().filter(|taint| taint.effect == TaintEffect::NoExecute) {
            let at = taint.time_added.map(|at| self.cluster.local(at));
            let owner = TaintOwner::from_taint(taint);
            let by = owner.map_or_else(|| "by somebody".to_owned(), |owner| format!("by {}", owner.name));
            let text = format!("{}:NoExecute, {by}: pods leave when their tolerations end", taint.key);
            explanation.push(Step { at, ..Step::new(Tense::Past, Topic::NoExecute, text) });
        }
        self.explain_uncertain_taint(node, explanation);
        let predicted = self.steps(node).find(|step| matches!(step.kind, ForecastKind::NoExecute { .. }));
        let Some(step) = predicted else { return self.explain_no_taint(node, health, explanation) };
        let ForecastKind::NoExecute { key, .. } = &step.kind else { return };
        let estimated =
            health.certainty != Certainty::Observed || is_by_chance(&step.why, self.engine, self.now);
        let chance = step.chance.as_ref().map(|chance| format!(", {chance}")).unwrap_or_default();
        let text = format!("{key}:NoExecute{chance}");
        explanation.push(Step::new(Tense::Future, Topic::NoExecute, text).at(step.at).estimated(estimated));
    }

    /// Adds that the node may get its NoExecute taint in the same monitor pass that finds its zone disrupted (since
    /// 1.34).
    fn explain_uncertain_taint(&self, node: &Node, explanation: &mut Vec<Step>) {
        let chances = self.forecast.into_iter().flat_map(|forecast| &forecast.uncertain_taints);
        for chance in chances.filter(|chance| chance.at > self.now && chance.among.contains(&node.name)) {
            let (most, among) = (chance.at_most, chance.among.len());
            let text = format!(
                "it may get its NoExecute taint in the pass that finds its zone disrupted: up to {most} of {among} waiting \
                 nodes do, by chance"
            );
            explanation.push(Step::new(Tense::Future, Topic::NoExecute, text).at(chance.at).estimated(true));
        }
    }

    /// Adds that a queued node does not get its NoExecute taint before the forecast ends.
    fn explain_no_taint(&self, node: &Node, health: &NodeView, explanation: &mut Vec<Step>) {
        let on_its_way = matches!(health.stage, NodeStage::Queued | NodeStage::Requested);
        let is_queued =
            explanation.iter().any(|step| step.topic == Topic::Queue && step.tense == Tense::Never);
        let Some(forecast) = self.forecast.filter(|_| on_its_way && !is_queued && self.is_firm()) else {
            return;
        };
        if node.taints.iter().all(|taint| taint.effect != TaintEffect::NoExecute) {
            let text = "no NoExecute taint before then".to_owned();
            explanation.push(Step::new(Tense::Never, Topic::NoExecute, text).at(forecast.until));
        }
    }

    /// The predicted steps of the node that are still ahead.
    fn steps(&self, node: &Node) -> impl Iterator<Item = &ForecastStep> {
        let name: &NodeName = &node.name;
        let now = self.now;
        self.forecast
            .into_iter()
            .flat_map(move |forecast| forecast.of_node(name))
            .filter(move |step| step.at > now)
    }
}

impl Step {
    /// Creates a step without a time.
    pub const fn new(tense: Tense, topic: Topic, text: String) -> Self {
        Self { at: None, tense, estimated: false, topic, text }
    }

    fn at(self, at: Timestamp) -> Self {
        Self { at: Some(at), ..self }
    }

    fn estimated(self, estimated: bool) -> Self {
        Self { estimated, ..self }
    }
}

/// Says who drains a node (`by`), and what blocks the drain.
fn drain_words(by: &str, blocked: Option<&BlockedDrain>) -> String {
    let Some(blocked) = blocked else { return format!("being drained {by}") };
    let pods: Vec<String> = blocked.pods.iter().map(ToString::to_string).collect();
    let refused = if pods.is_empty() { String::new() } else { format!(": it refuses {}", pods.join(", ")) };
    format!("drain {by} blocked by {blocked}{refused}")
}

/// Says why Karpenter did not disrupt a node, from the latest of its Events about this; `None` without such an Event
/// (kubernetes-sigs/karpenter 2266468: `pkg/controllers/disruption/events/events.go`, `Blocked`).
fn disruption_blocked(cluster: &Cluster, events: &[ClusterEvent]) -> Option<Step> {
    let blocked = events.iter().filter(|event| event.reason == *"DisruptionBlocked");
    let event = blocked.max_by_key(|event| event.last)?;
    let text = format!("Karpenter did not disrupt it: {}", event.message);
    let at = event.last.map(|at| cluster.local(at));
    Some(Step { at, ..Step::new(Tense::Past, Topic::Drain, text) })
}

/// Largest rounding error of a time. Times are whole seconds, and the clock offsets measured from such times are also
/// inexact.
const ROUNDING: Span = Span::from_secs(2);

/// Sorts the steps of an explanation: past, present, future, then ruled out. Past and future steps are ordered by time.
/// A step without a time stays after its cause.
pub fn in_order(mut steps: Vec<Step>) -> Vec<Step> {
    let mut latest = [Timestamp::EPOCH; 4];
    let mut order: Vec<(usize, Timestamp, usize)> = Vec::with_capacity(steps.len());
    for (place, step) in steps.iter_mut().enumerate() {
        let group = match step.tense {
            Tense::Past => 0,
            Tense::Present => 1,
            Tense::Future => 2,
            Tense::Never => 3,
        };
        // Rounding may move an effect to a time before its cause. The effect then gets the time of the cause.
        if let Some(at) = &mut step.at
            && *at < latest[group]
            && latest[group].since(*at) <= ROUNDING
        {
            *at = latest[group];
        }
        let at = step.at.unwrap_or(latest[group]);
        latest[group] = latest[group].max(at);
        let by_time = matches!(step.tense, Tense::Past | Tense::Future);
        order.push((group, if by_time { at } else { Timestamp::EPOCH }, place));
    }
    order.sort_unstable();
    let mut steps: Vec<Option<Step>> = steps.into_iter().map(Some).collect();
    order.into_iter().filter_map(|(_, _, place)| steps[place].take()).collect()
}

fn grace_flag(why: Why) -> Option<&'static str> {
    why.0.into_iter().find_map(|cause| match cause {
        Cause::Grace { flag, .. } => Some(flag),
        _ => None,
    })
}

/// Describes the toleration that decides whether and when the pod is evicted.
fn toleration(why: &Why) -> Option<String> {
    why.0.iter().find_map(|cause| match cause {
        Cause::Tolerated { .. } | Cause::NotTolerated { .. } => Some(cause.to_string()),
        _ => None,
    })
}

/// Whether the time of a predicted taint depends on which queued node gets the next token of the zone's rate limiter.
fn is_by_chance(why: &Why, engine: &Engine, now: Timestamp) -> bool {
    let zone = why.0.iter().find_map(|cause| match cause {
        Cause::Token { zone } => Some(zone),
        _ => None,
    });
    zone.is_some_and(|key| engine.zones(now).iter().any(|zone| zone.key == *key && zone.queue.len() > 1))
}

/// The state and rate of a zone, for example `zone a is Normal (5 of 30 not ready), 0.1 nodes a second`.
fn rate_words(zone: &ZoneView) -> String {
    format!(
        "zone {} is {} ({} of {} not ready), {} nodes a second",
        zone.key, zone.state, zone.not_ready, zone.size, zone.rate
    )
}

/// Adds that the Node object is being deleted, and the finalizers that keep it.
fn explain_deletion(node: &Node, explanation: &mut Vec<Step>) {
    if !node.terminating {
        return;
    }
    let finalizers: Vec<&str> = node.finalizers.iter().map(Name::as_str).collect();
    let kept =
        if finalizers.is_empty() { String::new() } else { format!(": kept by {}", finalizers.join(", ")) };
    let text = format!("the Node object is being deleted{kept}");
    explanation.push(Step::new(Tense::Present, Topic::Drain, text));
}
