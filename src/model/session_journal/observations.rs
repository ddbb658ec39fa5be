//! Journal entries about nodes and their pods: for changes that the watches report, and for decisions of kordon's
//! engine on which the cluster's controller did not act.

use std::{collections::VecDeque, sync::Arc};

use super::{JournalEntry, JournalSubject, MISSED};
use crate::model::{ControllerRole, DepartureEntry, DepartureStage};
use kordon_core::{
    cluster::{
        Applied, Cluster, ConditionStatus, Key, Node, NodeName, Pod, Taint, TaintEffect, Uid, ZoneKey,
        pod::BY_API,
    },
    engine::{DELETION_BY_TAINT, Effect, Engine, Severity, Write, controllers_own},
    forecast::{EventKind, accuracy::Judgement},
    pressure::PressureCondition,
    why::departure::{BY_COLLECTOR, DepartureKind},
};
use kordon_time::{Span, Timestamp};

/// Time after which a decision of kordon's engine is reported because the cluster's controller has not acted on it: the
/// time in which the controller makes two monitor passes.
const SOON: Span = Span::from_secs(10);

/// Maximum number of decisions on which the cluster's controller has not acted yet. The oldest decisions are dropped
/// first.
const WAITING: usize = 2000;

/// A change that is worth a journal entry.
#[derive(Clone, Debug, PartialEq)]
struct Observation {
    entry: JournalEntry,
    /// The controller's event that caused the change; `None` if another component caused the change.
    event: Option<(EventKind, Subject)>,
}

/// The object that an event of the controller is about.
#[derive(Clone, Debug, PartialEq)]
enum Subject {
    Node(NodeName),
    /// Any node of the zone. Which of the waiting nodes is tainted next depends on chance.
    Zone(ZoneKey),
    Pod(Key),
}

/// A decision of kordon's engine on which the cluster's controller has not acted yet.
#[derive(Clone, Debug)]
struct Expected {
    at: Timestamp,
    kind: EventKind,
    subject: Subject,
    node: NodeName,
    /// The pod that the decision deletes; `None` if it deletes no pod.
    pod: Option<(Key, Uid)>,
    entry: JournalEntry,
}

/// Decisions of kordon's engine on which the cluster's controller has not acted yet, oldest first.
#[derive(Clone, Debug, Default)]
pub struct Expectations(VecDeque<Expected>);

impl Expectations {
    /// Records a decision of kordon's engine on which the controller is expected to act.
    pub fn on_decision(&mut self, effect: &Effect, cluster: &Cluster, now: Timestamp) {
        let Some(expected) = Expected::new(effect, cluster, now) else { return };
        if self.0.len() == WAITING {
            self.0.pop_front();
        }
        self.0.push_back(expected);
    }

    /// Drops all decisions on which the controller has not acted yet, because the watches were down or the controller
    /// changed.
    pub fn restart(&mut self) {
        self.0.clear();
    }

    /// Removes the decisions on which the controller should already have acted. Returns a journal entry for each
    /// removed decision that kordon's engine would still make now.
    pub fn missed(&mut self, engine: &Engine, cluster: &Cluster, now: Timestamp) -> Vec<JournalEntry> {
        let due = self.0.iter().take_while(|expected| now.since(expected.at) > SOON).count();
        let missed = self.0.drain(..due).filter(|expected| expected.still_holds(engine, cluster, now));
        missed.map(|expected| JournalEntry { at: now, last: now, ..expected.entry }).collect()
    }

    fn on_event(&mut self, kind: EventKind, subject: &Subject) {
        let is_it = |expected: &Expected| expected.kind == kind && expected.subject == *subject;
        if let Some(place) = self.0.iter().position(is_it) {
            self.0.remove(place);
        }
    }
}

impl Expected {
    fn new(effect: &Effect, cluster: &Cluster, now: Timestamp) -> Option<Self> {
        let (kind, subject, node, pod) = match &effect.write {
            Write::MarkUnknown { node, .. } => (EventKind::Unknown, Subject::Node(node.clone()), node, None),
            Write::SwapTaints { node, add, .. } => {
                add.iter().find(|taint| taint.effect == TaintEffect::NoExecute)?;
                (EventKind::NoExecute, Subject::Zone(cluster.node(node)?.zone()), node, None)
            }
            Write::DeletePod { pod, uid, node, .. } => {
                (EventKind::Deletion, Subject::Pod(pod.clone()), node, Some((pod.clone(), uid.clone())))
            }
            Write::SetLabels { .. }
            | Write::MarkPodNotReady { .. }
            | Write::MarkPodLost { .. }
            | Write::RecordEvent(_) => return None,
        };
        let verb = format!("{MISSED}: {}", effect.write.verb());
        let entry = JournalEntry::new(now, Severity::Warning, "", &effect.write.rest(), effect.why.clone());
        let entry = entry.about(JournalSubject::from_write(&effect.write)).with_verb(&verb);
        Some(Self { at: now, kind, subject, node: node.clone(), pod, entry })
    }

    /// Whether kordon's engine would still make this decision. It would not if the node has sent a heartbeat since the
    /// decision.
    fn still_holds(&self, engine: &Engine, cluster: &Cluster, now: Timestamp) -> bool {
        let Some(node) = cluster.node(&self.node) else { return false };
        match (self.kind, &self.pod) {
            (EventKind::Unknown, _) => {
                status(node) != Some(ConditionStatus::Unknown) && engine.is_silent(cluster, node, now)
            }
            (EventKind::NoExecute | EventKind::Swap, _) => {
                !node.is_ready() && controllers_own(node).next().is_none()
            }
            (EventKind::Deletion, Some((pod, uid))) => cluster
                .pod(pod)
                .is_some_and(|pod| pod.uid == *uid && pod.termination.is_none() && has_no_execute(node)),
            (EventKind::Deletion, None) => false,
        }
    }
}

/// Whether the node has a taint that evicts pods.
fn has_no_execute(node: &Node) -> bool {
    node.taints.iter().any(|taint| taint.effect == TaintEffect::NoExecute)
}

/// Context of a change for which journal entries are made.
#[derive(Clone, Copy, Debug)]
pub struct HistoryContext<'a> {
    pub cluster: &'a Cluster,
    pub role: ControllerRole,
    /// The node monitor grace period: the time without a heartbeat after which a node becomes Unknown.
    pub grace: Span,
    /// The pod that left because of this change, or whose departure the change explains.
    pub departed: Option<&'a DepartureEntry>,
    /// Accuracy of the forecasts of the controller's actions that are part of the change.
    pub judged: &'a [(EventKind, Judgement)],
    pub now: Timestamp,
}

impl Expectations {
    /// Returns the journal entries for a change. Heartbeats have no entries. A pod has one only if it left because of
    /// its node or was evicted. If kordon is the controller, its own actions are left out, because their writes are in
    /// the journal already.
    pub fn on_change(&mut self, change: &Applied, context: &HistoryContext) -> Vec<JournalEntry> {
        let observations = match change {
            Applied::Node(delta) => match (&delta.old, &delta.new) {
                (Some(old), Some(new)) => of_changed_node(old, new, context),
                (None, Some(new)) => vec![of_node(new, Severity::Info, "joined", context)],
                (Some(old), None) => vec![of_node(old, Severity::Warning, "was deleted", context)],
                (None, None) => Vec::new(),
            },
            Applied::Pod(delta) => match &delta.old {
                Some(old) => of_pod(old, delta.new.as_ref(), context).into_iter().collect(),
                None => Vec::new(),
            },
            Applied::Leader(before, after) => {
                if before.as_ref().map(|lease| &lease.holder) != after.as_ref().map(|lease| &lease.holder) {
                    self.restart();
                }
                Vec::new()
            }
            Applied::Lease(_) | Applied::KordonLease | Applied::Other => Vec::new(),
        };
        observations.into_iter().filter_map(|observation| self.on_observation(observation, context)).collect()
    }

    fn on_observation(&mut self, observation: Observation, context: &HistoryContext) -> Option<JournalEntry> {
        let Observation { mut entry, event } = observation;
        if let Some((kind, subject)) = event {
            if context.role == ControllerRole::Controller {
                return None;
            }
            self.on_event(kind, &subject);
            let is_taint = |kind| matches!(kind, EventKind::NoExecute | EventKind::Swap);
            let is_it =
                |judged: &&(EventKind, Judgement)| judged.0 == kind || is_taint(judged.0) && is_taint(kind);
            entry.judgement = context.judged.iter().find(is_it).map(|(_, judgement)| *judgement);
        }
        Some(entry)
    }
}

fn of_node(node: &Node, level: Severity, text: &str, context: &HistoryContext) -> Observation {
    let entry = JournalEntry::new(context.now, level, "", text, Default::default());
    Observation { entry: entry.about(JournalSubject::Node(node.name.clone())), event: None }
}

fn of_changed_node(old: &Arc<Node>, new: &Arc<Node>, context: &HistoryContext) -> Vec<Observation> {
    if old.differs_only_in_heartbeat(new) {
        return Vec::new();
    }
    let mut seen = Vec::new();
    if old.uid != new.uid {
        seen.push(of_node(new, Severity::Warning, "was replaced by a new object", context));
    }
    seen.extend(of_status(old, new, context));
    if old.unschedulable != new.unschedulable {
        let mut cordon = of_node(new, Severity::Info, "", context);
        cordon.entry.verb = if new.unschedulable { "cordoned" } else { "uncordoned" }.into();
        cordon.entry.detail =
            new.cordon_note.as_deref().filter(|_| new.unschedulable).map_or_else(String::new, |note| {
                match note.reason.as_str() {
                    "" => format!("by {}", note.by),
                    why => format!("by {}: {why}", note.by),
                }
            });
        cordon.entry.act.clone_from(&cordon.entry.detail);
        seen.push(cordon);
    }
    seen.extend(of_taints(old, new, context));
    seen.extend(of_problems(old, new, context));
    seen
}

fn status(node: &Node) -> Option<ConditionStatus> {
    node.ready().map(|ready| ready.status)
}

/// Returns the entry for a change of the Ready condition: `became Unknown: no heartbeat for 50s`.
fn of_status(old: &Node, new: &Node, context: &HistoryContext) -> Option<Observation> {
    let (before, after) = (status(old), status(new)?);
    if before == Some(after) {
        return None;
    }
    let (level, text, detail) = match after {
        ConditionStatus::Unknown => {
            (Severity::Warning, "became Unknown", format!("no heartbeat for {}", context.grace))
        }
        ConditionStatus::False | ConditionStatus::Invalid => {
            let reason = new.ready().map(|ready| ready.reason.to_string()).unwrap_or_default();
            (Severity::Warning, "became NotReady", reason)
        }
        ConditionStatus::True => {
            let since = old.ready().and_then(|ready| ready.last_transition);
            let after = since.map(|since| context.now.since(context.cluster.local(since)).or_zero());
            let detail = after.map(|after| format!("after {}", Span::from_secs(after.as_secs())));
            (Severity::Info, "became Ready", detail.unwrap_or_default())
        }
    };
    let mut seen = of_node(new, level, text, context);
    seen.entry.detail = detail;
    if after == ConditionStatus::Unknown {
        seen.event = Some((EventKind::Unknown, Subject::Node(new.name.clone())));
    }
    Some(seen)
}

/// Returns the entries for changes of taints: `tainted node a-03 unreachable:NoExecute`. NoSchedule taints that follow
/// from conditions or a cordon are left out, because conditions and cordons have entries of their own.
fn of_taints(old: &Node, new: &Node, context: &HistoryContext) -> Vec<Observation> {
    let difference = |of: &Node, without: &Node| -> Vec<Taint> {
        let is_known = |taint: &Taint| {
            without.taints.iter().any(|other| other.key == taint.key && other.effect == taint.effect)
        };
        let follows = |taint: &Taint| {
            taint.effect == TaintEffect::NoSchedule && taint.key.starts_with("node.kubernetes.io/")
        };
        of.taints.iter().filter(|taint| !is_known(taint) && !follows(taint)).cloned().collect()
    };
    let entry = |verb: &str, taint: &Taint| {
        let evicts = verb == "tainted" && taint.effect == TaintEffect::NoExecute;
        let level = if evicts { Severity::Warning } else { Severity::Info };
        let mut seen = of_node(new, level, &format!("{}:{}", taint.key, taint.effect), context);
        seen.entry.verb = verb.into();
        if evicts && controllers_own(new).any(|own| own.key == taint.key) {
            seen.event = Some((EventKind::NoExecute, Subject::Zone(new.zone())));
        }
        seen
    };
    let added = difference(new, old);
    let removed = difference(old, new);
    let added = added.iter().map(|taint| entry("tainted", taint));
    added.chain(removed.iter().map(|taint| entry("untainted", taint))).collect()
}

/// Returns the entries for problems that a node has started or stopped reporting: `reported MemoryPressure`.
fn of_problems(old: &Node, new: &Node, context: &HistoryContext) -> Vec<Observation> {
    let has = |node: &Node, kind: &str| node.problems().any(|problem| problem.kind == *kind);
    let begun = new.problems().filter(|problem| !has(old, &problem.kind));
    let over = old.problems().filter(|problem| !has(new, &problem.kind));
    let begun = begun.map(|problem| {
        let mut seen = of_node(new, Severity::Warning, &format!("reported {}", problem.kind), context);
        seen.entry.detail = problem.reason.to_string();
        seen
    });
    let over = over.map(|problem| {
        of_node(new, Severity::Info, &format!("reported no {} any more", problem.kind), context)
    });
    begun.chain(over).collect()
}

fn of_pod(old: &Pod, new: Option<&Arc<Pod>>, context: &HistoryContext) -> Option<Observation> {
    let pod = new.map_or(old, |new| new);
    let starts = old.termination.is_none() && new.is_none_or(|new| new.termination.is_some());
    let is_same = new.is_none_or(|new| new.uid == old.uid);
    let falls_out = old.is_ready() && new.is_some_and(|new| !new.is_ready() && new.termination.is_none());
    let gone = new.is_none() && old.termination.is_some();
    let (name, departed) = (pod.node.as_ref()?, context.departed.filter(|left| left.uid == pod.uid));
    let (level, verb, text, detail) = match departed.and_then(|departed| departure_words(departed, pod, name))
    {
        Some((verb, text, detail)) => (Severity::Warning, verb, text, detail),
        None if is_same && (starts || falls_out || gone) => {
            let node = (name, context.cluster.node(name));
            let (level, verb, text, detail) = words(pod, PodChange { starts, gone }, node)?;
            (level, verb, text.to_owned(), detail)
        }
        None => return None,
    };
    let entry = JournalEntry::new(context.now, level, "", &text, Default::default());
    let subject = JournalSubject::Pod(pod.key.clone(), pod.node.clone());
    let is_asked_for = pod.disruption_target.as_deref() == Some(BY_API);
    let act = if is_asked_for { name.to_string() } else { String::new() };
    let entry = JournalEntry { detail, act, ..entry.about(subject).with_verb(verb) };
    let by_taint = pod.disruption_target.as_ref().is_some_and(|reason| *reason == *DELETION_BY_TAINT);
    let event = (starts && (by_taint || pod.disruption_target.is_none()))
        .then(|| (EventKind::Deletion, Subject::Pod(pod.key.clone())));
    Some(Observation { entry, event })
}

/// What happened to a pod that leaves.
#[derive(Clone, Copy)]
struct PodChange {
    /// Whether the pod's deletion began.
    starts: bool,
    /// Whether the pod's object was removed.
    gone: bool,
}

/// Returns the words for a departure that the node or another pod caused: the verb, the text after the pod, and the
/// detail. An example is `evicted pod shop/web-1 by the kubelet (MemoryPressure): from node a`. `None` for other
/// departures.
fn departure_words(
    departed: &DepartureEntry,
    pod: &Pod,
    node: &NodeName,
) -> Option<(&'static str, String, String)> {
    let from = format!("from node {node}");
    let by_kubelet = |what: &str| format!("by the kubelet ({what})");
    Some(match departed.departure.kind {
        DepartureKind::Preemption => ("preempted", String::new(), from),
        DepartureKind::OomKill => {
            let stage = if departed.stage == DepartureStage::Restarted { ", it restarts" } else { "" };
            ("OOM killed", String::new(), format!("on node {node}{stage}"))
        }
        DepartureKind::NodePressure => {
            let message = pod.ending.as_ref().map_or("", |ending| &*ending.message);
            let pressure = PressureCondition::from_message(message);
            ("evicted", by_kubelet(pressure.map_or("node pressure", PressureCondition::as_str)), from)
        }
        DepartureKind::StorageLimit => ("evicted", by_kubelet("its storage limit"), from),
        DepartureKind::NodeShutdown => ("ended", by_kubelet("node shutdown"), from),
        DepartureKind::Rejection
        | DepartureKind::TaintEviction
        | DepartureKind::DeviceTaintEviction
        | DepartureKind::GarbageCollection
        | DepartureKind::OutOfService
        | DepartureKind::Failure
        | DepartureKind::ApiEviction
        | DepartureKind::ScaleDown
        | DepartureKind::Deletion
        | DepartureKind::JobCompletion
        | DepartureKind::Completion => return None,
    })
}

/// Returns the words for a pod that left because of its node: the severity, the verb, the text after the pod, and the
/// detail. `None` for other pods.
fn words(
    pod: &Pod,
    change: PodChange,
    (name, node): (&NodeName, Option<&Arc<Node>>),
) -> Option<(Severity, &'static str, &'static str, String)> {
    let from = format!("from node {name}");
    let reason = pod.disruption_target.as_deref();
    let is_troubled = node.is_none_or(|node| node.unschedulable || !node.is_ready() || has_no_execute(node));
    let is_unknown = node.is_some_and(|node| status(node) == Some(ConditionStatus::Unknown));
    Some(match reason {
        Some(DELETION_BY_TAINT) if change.starts => {
            (Severity::Warning, "evicted", "", format!("{from}, by its taint"))
        }
        Some(BY_API) if change.starts => (Severity::Info, "evicted", "", format!("{from}, by request")),
        Some(BY_COLLECTOR) if change.starts => (Severity::Warning, "removed", "", "its node is gone".into()),
        Some(DELETION_BY_TAINT | BY_API | BY_COLLECTOR) if change.gone => {
            (Severity::Info, "", "is gone", from)
        }
        None if change.starts && is_troubled => (Severity::Info, "deleted", "", from),
        None if change.gone && is_troubled => (Severity::Info, "", "is gone", from),
        _ if !change.starts && !change.gone && is_unknown => {
            (Severity::Warning, "", "left the endpoints", format!("node {name} is Unknown"))
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{k8s::feed::FeedState, model::Departures};
    use kordon_core::{
        cluster::{
            Condition, ContainerExit, CordonNote, Delta, ObjectEvent, Phase, PodEnding, READY, Termination,
        },
        engine::{EffectId, LeaseCheck, ServerVersion, Settings, UNREACHABLE, Why},
    };
    use kordon_time::ClusterTime;

    const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);

    fn node(status: ConditionStatus) -> Node {
        let ready = Condition {
            kind: READY.into(),
            status,
            last_transition: Some(ClusterTime::new(NOW - Span::from_secs(130))),
            ..Condition::default()
        };
        Node { name: "a".into(), conditions: [ready].into(), ..Node::default() }
    }

    fn with_taint(node: Node) -> Node {
        let taint = Taint { key: UNREACHABLE.into(), effect: TaintEffect::NoExecute, ..Taint::default() };
        Node { taints: [taint].into(), ..node }
    }

    fn pod(terminating: bool, reason: Option<&str>) -> Pod {
        let termination =
            terminating.then(|| Box::new(Termination { deadline: ClusterTime::new(NOW), grace: Span::ZERO }));
        Pod {
            key: Key::new("shop", "web-1"),
            node: Some("a".into()),
            disruption_target: reason.map(Into::into),
            termination,
            ..Pod::default()
        }
    }

    fn cluster(node: Node) -> Cluster {
        let mut cluster = Cluster::default();
        cluster.apply(kordon_core::cluster::Change::Node(ObjectEvent::Applied(node)), &mut Vec::new());
        cluster
    }

    /// Returns the entries for a change as text.
    fn entries(
        expected: &mut Expectations,
        role: ControllerRole,
        cluster: &Cluster,
        change: &Applied,
    ) -> Vec<String> {
        let context = HistoryContext {
            cluster,
            role,
            grace: Span::from_secs(50),
            departed: None,
            judged: &[],
            now: NOW,
        };
        let entries = expected.on_change(change, &context);
        entries.iter().map(words_of).collect()
    }

    fn words_of(entry: &JournalEntry) -> String {
        let subject = entry.subject().map(ToString::to_string).unwrap_or_default();
        [entry.verb.as_str(), &subject, &entry.text, &entry.detail].join("|")
    }

    fn of_nodes(role: ControllerRole, old: Node, new: Node) -> Vec<String> {
        let change = Applied::Node(Delta { old: Some(old.into()), new: Some(new.clone().into()) });
        entries(&mut Expectations::default(), role, &cluster(new), &change)
    }

    fn of_pods(node: Node, old: Pod, new: Option<Pod>) -> Vec<String> {
        let change = Applied::Pod(Delta { old: Some(old.into()), new: new.map(Into::into) });
        entries(&mut Expectations::default(), ControllerRole::Shadow, &cluster(node), &change)
    }

    #[test]
    fn what_happens_to_a_node_is_recorded_as_it_was_seen() {
        use ConditionStatus::{True, Unknown};
        let shadow = |old, new| of_nodes(ControllerRole::Shadow, old, new);
        assert_eq!(shadow(node(True), node(Unknown)), ["|a|became Unknown|no heartbeat for 50s"]);
        assert_eq!(shadow(node(Unknown), node(True)), ["|a|became Ready|after 2m10s"]);
        let tainted = format!("tainted|a|{UNREACHABLE}:NoExecute|");
        assert_eq!(shadow(node(Unknown), with_taint(node(Unknown))), [tainted]);
        let note = CordonNote { by: "ana".into(), reason: "disk swap".into(), ..CordonNote::default() };
        let cordoned = Node { unschedulable: true, cordon_note: Some(note.into()), ..node(True) };
        assert_eq!(shadow(node(True), cordoned.clone()), ["cordoned|a||by ana: disk swap"]);
        assert_eq!(shadow(cordoned, node(True)), ["uncordoned|a||"]);
    }

    #[test]
    fn a_cordon_and_an_eviction_by_request_name_whose_act_they_are() {
        let act = |change: Applied, cluster: &Cluster| {
            let context = HistoryContext {
                cluster,
                role: ControllerRole::Shadow,
                grace: Span::from_secs(50),
                departed: None,
                judged: &[],
                now: NOW,
            };
            Expectations::default().on_change(&change, &context).remove(0).act
        };
        let healthy = node(ConditionStatus::True);
        let note = CordonNote { by: "ana".into(), ..CordonNote::default() };
        let cordoned = Node { unschedulable: true, cordon_note: Some(note.into()), ..healthy.clone() };
        let change = Delta { old: Some(healthy.clone().into()), new: Some(cordoned.into()) };
        assert_eq!(act(Applied::Node(change), &cluster(healthy.clone())), "by ana");
        let evicted = |reason: &str| {
            let change =
                Delta { old: Some(pod(false, None).into()), new: Some(pod(true, Some(reason)).into()) };
            act(Applied::Pod(change), &cluster(healthy.clone()))
        };
        assert_eq!((&*evicted(BY_API), &*evicted(DELETION_BY_TAINT)), ("a", ""));
    }

    #[test]
    fn heartbeats_and_what_kordon_wrote_itself_are_no_entries() {
        use ConditionStatus::{True, Unknown};
        let mut renewed = node(True);
        let posted =
            Condition { last_heartbeat: Some(ClusterTime::new(NOW)), ..renewed.conditions[0].clone() };
        renewed.conditions = [posted].into();
        assert_eq!(of_nodes(ControllerRole::Shadow, node(True), renewed), Vec::<String>::new());
        let by_us = of_nodes(ControllerRole::Controller, node(True), with_taint(node(Unknown)));
        assert_eq!(by_us, Vec::<String>::new());
    }

    #[test]
    fn pods_have_entries_where_their_node_or_an_eviction_is_the_cause() {
        use ConditionStatus::{True, Unknown};
        let by_taint = Some(DELETION_BY_TAINT);
        let tainted = || with_taint(node(Unknown));
        assert_eq!(
            of_pods(node(True), pod(false, None), Some(pod(true, None))),
            Vec::<String>::new(),
            "a rollout"
        );
        assert_eq!(of_pods(node(True), pod(true, None), None), Vec::<String>::new());
        assert_eq!(
            of_pods(tainted(), pod(false, None), Some(pod(true, by_taint))),
            ["evicted|shop/web-1||from node a, by its taint"]
        );
        assert_eq!(of_pods(tainted(), pod(true, by_taint), None), ["|shop/web-1|is gone|from node a"]);
        assert_eq!(
            of_pods(node(True), pod(false, None), Some(pod(true, Some(BY_API)))),
            ["evicted|shop/web-1||from node a, by request"]
        );
    }

    /// Returns the entries for a change of a pod on node `a`. The change is first recorded as a departure.
    fn of_departure(old: Pod, new: Pod) -> Vec<String> {
        let cluster = cluster(node(ConditionStatus::True));
        let change = Applied::Pod(Delta { old: Some(old.into()), new: Some(new.into()) });
        let mut departures = Departures::default();
        let departed = departures.on_applied(&change, &cluster, Some(&FeedState::Live), NOW);
        let context = HistoryContext {
            cluster: &cluster,
            role: ControllerRole::Shadow,
            grace: Span::from_secs(50),
            departed: departed.and_then(|id| departures.entry(id)),
            judged: &[],
            now: NOW,
        };
        Expectations::default().on_change(&change, &context).iter().map(words_of).collect()
    }

    #[test]
    fn pods_that_others_or_their_node_end_have_entries_in_the_past_tense() {
        let running = Pod { phase: Phase::Running, ..pod(false, None) };
        let preempted = Pod { phase: Phase::Running, ..pod(true, Some("PreemptionByScheduler")) };
        assert_eq!(of_departure(running.clone(), preempted.clone()), ["preempted|shop/web-1||from node a"]);
        assert_eq!(of_departure(preempted.clone(), preempted), Vec::<String>::new(), "it has one entry");
        let evicted = |message: &str| {
            let ending = PodEnding {
                message: message.into(),
                disrupted: Some(ClusterTime::new(NOW)),
                ..PodEnding::default()
            };
            let (phase, ending) = (Phase::Failed, Some(ending.into()));
            of_departure(
                running.clone(),
                Pod { phase, reason: "Evicted".into(), ending, ..pod(false, Some("TerminationByKubelet")) },
            )
        };
        let low = |resource: &str| evicted(&format!("The node was low on resource: {resource}. Threshold"));
        assert_eq!(low("memory"), ["evicted|shop/web-1|by the kubelet (MemoryPressure)|from node a"]);
        assert_eq!(low("inodes"), ["evicted|shop/web-1|by the kubelet (DiskPressure)|from node a"]);
        assert_eq!(low("pids"), ["evicted|shop/web-1|by the kubelet (PIDPressure)|from node a"]);
        let limit = "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi.";
        assert_eq!(evicted(limit), ["evicted|shop/web-1|by the kubelet (its storage limit)|from node a"]);
        let exit = ContainerExit {
            container: "app".into(),
            reason: "OOMKilled".into(),
            code: 137,
            at: Some(ClusterTime::new(NOW)),
            restarted: true,
        };
        let ending = Some(PodEnding { exits: [exit].into(), ..PodEnding::default() }.into());
        let killed = Pod { ending, ..running.clone() };
        assert_eq!(of_departure(running, killed), ["OOM killed|shop/web-1||on node a, it restarts"]);
    }

    fn decision() -> Effect {
        let write = Write::MarkUnknown {
            node: "a".into(),
            uid: Uid::default(),
            version: Default::default(),
            conditions: Vec::new(),
            lease: LeaseCheck::Skip,
        };
        Effect { id: EffectId(1), at: NOW, write, why: Why::default() }
    }

    /// Returns the journal entries if kordon's engine has decided that node `a` becomes Unknown, and the controller has
    /// not acted on this decision for `after` seconds. `node` is the node at the time of the decision.
    fn missed(node: Node, change: Option<Applied>, after: i64) -> Vec<String> {
        let cluster = cluster(node);
        let engine = Engine::attach(Settings::defaults(ServerVersion::new(1, 36)), &cluster, NOW);
        let mut expected = Expectations::default();
        expected.on_decision(&decision(), &cluster, NOW);
        change
            .iter()
            .for_each(|change| drop(entries(&mut expected, ControllerRole::Shadow, &cluster, change)));
        let missed = expected.missed(&engine, &cluster, NOW + Span::from_secs(after));
        missed.iter().map(words_of).collect()
    }

    #[test]
    fn what_a_shadow_decided_is_a_miss_once_it_should_have_happened() {
        use ConditionStatus::{True, Unknown};
        assert_eq!(missed(node(True), None, 10), Vec::<String>::new(), "it may still come");
        assert_eq!(missed(node(True), None, 11), ["expected, did not happen: mark|a|Unknown|"]);
        let change = Applied::Node(Delta { old: Some(node(True).into()), new: Some(node(Unknown).into()) });
        assert_eq!(missed(node(Unknown), Some(change), 11), Vec::<String>::new(), "it happened");
        let heard = Node { created: ClusterTime::new(NOW + Span::from_secs(9)), ..node(True) };
        assert_eq!(missed(heard, None, 11), Vec::<String>::new(), "a heartbeat came");
    }
}
