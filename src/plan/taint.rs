//! Taints: kubectl's words for them, what they do to a node's list, and whom a NoExecute taint deletes
//! (spec/operator-actions.md 2).

use std::{collections::BTreeSet, sync::Arc};

use super::{
    Action, NodeChange, NodePlan, Plan, PlanError, PlanEvent, PlanMoment, PodPlan, Window, assemble,
    environment::{Environment, Quality},
    eviction::{self, EvictionAnswer},
    nodes_named,
    rehouse::{Departure, rehouse},
    rules::EvictionRules,
    step::PlanStep,
    syntax,
    verdict::Verdict,
    warning::{self, PodWarning, Warning},
};
use crate::{
    cluster::{Cluster, Name, Node, NodeName, Pod, Taint, TaintEffect},
    engine::{Tolerance, tolerance},
    time::Timestamp,
};

/// What kubectl taint is told.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaintEdits {
    pub add: Vec<Taint>,
    pub remove: Vec<Removal>,
    /// `--overwrite`.
    pub overwrite: bool,
}

/// A taint to be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    pub key: Name,
    /// None: every effect of the key.
    pub effect: Option<TaintEffect>,
}

/// Words that make no sense, in kubectl's words for it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TaintError {
    #[error("invalid taint effect: {0}, unsupported taint effect")]
    Effect(String),
    #[error("invalid taint spec: {0}")]
    Spec(String),
    #[error("invalid taint spec: {0}, {1}")]
    Invalid(String, String),
    #[error("unknown taint spec: {0}")]
    Unknown(String),
    #[error("duplicated taints with the same key and effect: {0}")]
    Duplicate(String),
    #[error("can not both modify and remove the following taint(s) in the same command: {0}")]
    Conflict(String),
    #[error("at least one taint update is required")]
    Nothing,
}

impl TaintEdits {
    /// Whether a word speaks of a taint rather than naming a node.
    pub fn is_word(word: &str) -> bool {
        word.contains(['=', ':']) || word.ends_with('-')
    }

    /// Reads kubectl's words: `key=value:effect`, `key:effect`, `key:effect-`, `key-`.
    ///
    /// # Errors
    /// A word makes no sense, or two contradict each other.
    pub fn parse<'a>(words: impl IntoIterator<Item = &'a str>, overwrite: bool) -> Result<Self, TaintError> {
        let mut edits = Self { overwrite, ..Self::default() };
        for word in words {
            if let Some(removed) = word.strip_suffix('-') {
                let (key, _, effect) = parts(removed)?;
                edits.remove.push(Removal { key, effect });
            } else if word.contains(':') {
                let (key, value, effect) = parts(word)?;
                let effect = effect.ok_or_else(|| TaintError::Unknown(word.into()))?;
                if edits.add.iter().any(|taint| taint.is(&key, effect)) {
                    return Err(TaintError::Duplicate(format!("{{{key} {value} {effect} <nil>}}")));
                }
                edits.add.push(Taint { key, value, effect, time_added: None });
            } else {
                return Err(TaintError::Unknown(word.into()));
            }
        }
        if edits.add.is_empty() && edits.remove.is_empty() {
            return Err(TaintError::Nothing);
        }
        match edits.conflicts() {
            conflicts if conflicts.is_empty() => Ok(edits),
            conflicts => Err(TaintError::Conflict(conflicts.join(","))),
        }
    }

    fn conflicts(&self) -> Vec<String> {
        let clashes = |taint: &Taint, removal: &Removal| {
            taint.key == removal.key && removal.effect.is_none_or(|effect| effect == taint.effect)
        };
        let pairs = self
            .add
            .iter()
            .flat_map(|taint| self.remove.iter().filter(move |removal| clashes(taint, removal)));
        let shown =
            |removal: &Removal| format!("{}={}", removal.key, removal.effect.map_or("", TaintEffect::as_str));
        pairs.map(shown).collect()
    }

    /// The node's list after the edits: what is new or changed first, in the order of the command, then the rest.
    ///
    /// # Errors
    /// A taint is there and may not be overwritten, or one to be removed is not there; in kubectl's words.
    pub fn over(&self, node: &Node) -> Result<Vec<Taint>, String> {
        if !self.overwrite {
            let there = |taint: &&Taint| node.taints.iter().any(|old| old.is(&taint.key, taint.effect));
            let there: Vec<&str> = self.add.iter().filter(there).map(|taint| taint.key.as_str()).collect();
            if !there.is_empty() {
                let (node, there) = (&node.name, there.join(","));
                return Err(format!(
                    "node {node} already has {there} taint(s) with same effect(s) and --overwrite is false"
                ));
            }
        }
        let mut taints = self.add.clone();
        let is_new = |old: &&Taint| !self.add.iter().any(|taint| taint.is(&old.key, old.effect));
        taints.extend(node.taints.iter().filter(is_new).cloned());
        let mut missing = Vec::new();
        for Removal { key, effect } in &self.remove {
            let before = taints.len();
            taints.retain(|taint| taint.key != *key || effect.is_some_and(|effect| effect != taint.effect));
            if taints.len() == before {
                let effect = effect.map_or(String::new(), |effect| format!(":{effect}"));
                missing.push(format!("taint \"{key}{effect}\" not found"));
            }
        }
        if missing.is_empty() { Ok(taints) } else { Err(missing.join(", ")) }
    }

    /// What kubectl says it did: `modified`, `tainted` or `untainted`.
    pub fn word(&self, before: &[Taint]) -> &'static str {
        let is_new = |taint: &Taint| !before.iter().any(|old| old.is(&taint.key, taint.effect));
        let added = self.add.iter().any(is_new);
        if self.overwrite || (added && !self.remove.is_empty()) {
            "modified"
        } else if added {
            "tainted"
        } else {
            "untainted"
        }
    }
}

/// A taint's key, value and effect (kubectl `parseTaint`).
fn parts(spec: &str) -> Result<(Name, Name, Option<TaintEffect>), TaintError> {
    let mut halves = spec.split(':');
    let (left, effect, more) = (halves.next().unwrap_or_default(), halves.next(), halves.next());
    if more.is_some() {
        return Err(TaintError::Spec(spec.into()));
    }
    let effect = match effect.map(|text| (text, TaintEffect::parse(text))) {
        None => None,
        Some((text, TaintEffect::Invalid)) => return Err(TaintError::Effect(text.into())),
        Some((_, effect)) => Some(effect),
    };
    let (key, value) = match effect {
        None => (left, ""),
        Some(_) => match left.split_once('=') {
            Some((_, value)) if value.contains('=') => return Err(TaintError::Spec(spec.into())),
            Some(pair) => pair,
            None => (left, ""),
        },
    };
    let invalid = |fault| TaintError::Invalid(spec.into(), fault);
    syntax::value(value).map_err(invalid)?;
    syntax::key(key).map_err(invalid)?;
    Ok((key.into(), value.into(), effect))
}

/// What the API server says of a node's taints: the field, and what is wrong with it. All faults at once.
pub fn validate(taints: &[Taint]) -> Vec<(String, String)> {
    let mut faults = Vec::new();
    for (place, taint) in taints.iter().enumerate() {
        let mut fault = |field: &str, text: String| {
            faults.push((format!("metadata.taints[{place}]{field}"), text));
        };
        if let Err(text) = syntax::key(&taint.key) {
            fault(".key", text);
        }
        if let Err(text) = syntax::value(&taint.value) {
            fault(".value", text);
        }
        if taint.effect == TaintEffect::Invalid {
            let supported = r#"supported values: "NoSchedule", "PreferNoSchedule", "NoExecute""#;
            fault(".effect", format!("Unsupported value: {supported}"));
        }
        if taints[..place].iter().any(|before| before.is(&taint.key, taint.effect)) {
            fault("", "taints must be unique by key and effect pair".into());
        }
    }
    faults
}

pub(super) fn plan<S: Environment>(
    action: &Action,
    cluster: &Cluster,
    names: &[NodeName],
    edits: &TaintEdits,
    surroundings: &S,
    rules: &EvictionRules,
    now: Timestamp,
) -> Result<Plan, PlanError> {
    let nodes = nodes_named(cluster, names)?;
    let mut plan = Plan::blank(action, rules, now);
    let mut altered = surroundings.clone();
    for node in &nodes {
        let change = match edits.over(node) {
            Err(text) => NodeChange::Refused { text },
            Ok(after) => {
                let step = PlanStep::SetTaints {
                    node: node.name.clone(),
                    uid: node.uid.clone(),
                    version: node.version,
                    taints: after.clone(),
                };
                plan.steps.push(step);
                if after[..] == node.taints[..] {
                    // kubectl writes it all the same; it changes nothing.
                    plan.steps.pop();
                    NodeChange::None
                } else {
                    plan.victims(cluster, node, &after, surroundings, rules, now);
                    altered.alter(Arc::new(Node { taints: after.clone().into(), ..(**node).clone() }));
                    NodeChange::Taints { before: node.taints.to_vec(), after }
                }
            }
        };
        plan.nodes.push(NodePlan { node: node.name.clone(), uid: node.uid.clone(), change, drain: None });
    }
    plan.rehouse(cluster, altered);
    plan.finish_taints(&nodes, edits, rules);
    Ok(plan)
}

impl Plan {
    /// Tells of every pod of a node what its NoExecute taints will do to it, where these change.
    fn victims<S: Environment>(
        &mut self,
        cluster: &Cluster,
        node: &Node,
        after: &[Taint],
        surroundings: &S,
        rules: &EvictionRules,
        now: Timestamp,
    ) {
        let no_execute = |list: &[Taint]| -> Vec<Taint> {
            list.iter().filter(|taint| taint.effect == TaintEffect::NoExecute).cloned().collect()
        };
        let (before, after) = (no_execute(&node.taints), no_execute(after));
        if before == after {
            return;
        }
        for pod in cluster.pods_on(&node.name) {
            let pod_plan = victim(cluster, pod, (&before, &after), surroundings, rules, now);
            self.pods.push(pod_plan);
        }
    }

    /// Says where the replacements of those who are deleted land.
    fn rehouse<S: Environment>(&mut self, cluster: &Cluster, surroundings: S) {
        let departure = |plan: &PodPlan| {
            let pod = cluster.pod(&plan.pod)?.clone();
            Some(Departure { pod, leaves: plan.leaves.likely?, gone: plan.gone.likely })
        };
        let departures: Vec<Departure> = self.pods.iter().filter_map(departure).collect();
        let (replacements, account) = rehouse(cluster, &departures, &[], &BTreeSet::new(), surroundings);
        for pod in &mut self.pods {
            let Some(replacement) = replacements.get(&pod.pod) else { continue };
            let (of, landing) = (pod.pod.clone(), replacement.landing.clone());
            pod.landing = Some(landing.clone());
            pod.ready_again = replacement.ready;
            pod.judgement = account.judgements.get(&pod.pod).cloned();
            let what = PlanEvent::Replaced { of: of.clone(), landing };
            self.timeline.push(PlanMoment { at: replacement.created, what });
            let ready = replacement.ready.map(|at| PlanMoment { at, what: PlanEvent::Ready { of } });
            self.timeline.extend(ready);
        }
        self.receivers = account.receivers;
    }

    fn finish_taints(&mut self, nodes: &[Arc<Node>], edits: &TaintEdits, rules: &EvictionRules) {
        let at = |pod: &PodPlan| pod.leaves.likely.unwrap_or(Timestamp::MAX);
        self.pods.sort_by_cached_key(|pod| (at(pod), pod.node.clone(), pod.pod.clone()));
        for pod in &self.pods {
            let leaves = pod.leaves.likely.map(|at| (at, PlanEvent::Leaves { pod: pod.pod.clone() }));
            let gone = pod.gone.likely.map(|at| (at, PlanEvent::Gone { pod: pod.pod.clone() }));
            self.timeline.extend(leaves.into_iter().chain(gone).map(|(at, what)| PlanMoment { at, what }));
        }
        self.timeline.sort_by_key(|moment| moment.at);
        let deleted = |pod: &&PodPlan| matches!(pod.verdict, Verdict::Deleted { .. });
        let pods = self.pods.iter().filter(deleted).count();
        let refused = |answer: &EvictionAnswer| answer.code != 201;
        let held = self.pods.iter().filter(deleted).filter(|pod| pod.answer.as_ref().is_some_and(refused));
        let held = held.count();
        if pods > 0 {
            self.warnings.push(Warning::BudgetsIgnored { pods, held });
        }
        self.warnings.extend(warning::of_marks(nodes, self.made));
        for node in nodes {
            let adds = |key: &str| edits.add.iter().any(|taint| taint.is(key, TaintEffect::NoExecute));
            if rules.out_of_service && adds("node.kubernetes.io/out-of-service") {
                self.warnings.push(Warning::OutOfService { node: node.name.clone() });
            }
            for key in
                edits.add.iter().map(|taint| &taint.key).chain(edits.remove.iter().map(|gone| &gone.key))
            {
                if CONTROLLERS.contains(&key.as_str()) {
                    let (node, key) = (node.name.clone(), key.clone());
                    self.warnings.push(Warning::ControllersTaint { node, key });
                }
            }
        }
        assemble::count(self);
        self.finish_nodes();
    }
}

/// The taints that the node lifecycle controller puts on and takes off by itself.
const CONTROLLERS: [&str; 7] = [
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/unschedulable",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/pid-pressure",
    "node.kubernetes.io/network-unavailable",
];

/// What becomes of a pod when its node's NoExecute taints change.
fn victim<S: Environment>(
    cluster: &Cluster,
    pod: &Arc<Pod>,
    (before, after): (&[Taint], &[Taint]),
    surroundings: &S,
    rules: &EvictionRules,
    now: Timestamp,
) -> PodPlan {
    let verdict = fate(pod, before, after, now);
    let mut plan = assemble::bare(pod, verdict);
    let Verdict::Deleted { at, .. } = &plan.verdict else { return plan };
    let at = *at;
    let stop = surroundings.stop(pod, pod.grace);
    plan.leaves = Window { soonest: Some(at), likely: Some(at), latest: Some(at) };
    plan.gone = Window {
        soonest: stop.soonest.map(|span| at + span),
        likely: stop.likely.map(|span| at + span),
        latest: stop.latest.map(|span| at + span),
    };
    plan.quality = Quality::Declared.min(stop.quality);
    if plan.gone.likely.is_none() {
        plan.warnings.insert(PodWarning::KubeletSilent);
    }
    plan.answer = Some(eviction::answer(cluster, pod, rules, now));
    let itself: BTreeSet<_> = [pod.key.clone()].into();
    plan.lost = assemble::lost(cluster, pod);
    plan.warnings.extend(warning::of_pod(cluster, pod, &itself, true));
    // The taint keeps it from coming back here, whatever it makes of a cordon.
    plan.warnings.remove(&PodWarning::ComesBackHere);
    if warning::is_of_living_daemonset(cluster, pod) {
        plan.warnings.insert(PodWarning::DaemonSetStaysAway);
    }
    plan
}

fn fate(pod: &Pod, before: &[Taint], after: &[Taint], now: Timestamp) -> Verdict {
    if pod.termination.is_some() {
        return Verdict::Leaving;
    }
    // A taint that does not tell when it was added may have been added just now: that is the latest.
    let running = match tolerance(&pod.tolerations, before) {
        Tolerance::For { span, taint } => Some(taint.time_added.unwrap_or(now) + span),
        Tolerance::NotTolerated(_) => Some(now),
        Tolerance::ForEver => None,
    };
    match tolerance(&pod.tolerations, after) {
        Tolerance::NotTolerated(taint) => Verdict::Deleted { at: now, taint: taint.key.clone() },
        Tolerance::For { span, taint } => {
            // A timer that runs already is neither lengthened nor shortened.
            let at = running.unwrap_or(now + span).max(now);
            Verdict::Deleted { at, taint: taint.key.clone() }
        }
        Tolerance::ForEver if running.is_some() => Verdict::Spared,
        Tolerance::ForEver => Verdict::Tolerates,
    }
}
