//! Findings about pods that have nowhere to run, now or once they are evicted.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use super::{
    Finding, PartKind, Phrase, VerdictLevel,
    evictions::{ALL_NODES, hangs, until_first, within},
    seconds,
};
use crate::model::{Model, PendingSummary};
use kordon_core::{
    cluster::{Key, NodeName, Pod, Uid},
    plan::{OutcomeCounts, OutcomeKind, owner, words::counted},
};
use kordon_time::Timestamp;

/// Returns the finding about pods that have nowhere to run now, or will have nowhere to run once they are evicted. It
/// names their outcomes, because each needs another remedy: `11 pods have nowhere to run: 6 Pending 1m58s, 5 stuck, 2 more
/// lost, first in 26s`. The name of the only outcome replaces the sum: `10 pods Pending 1m58s: web 8, api 2`, `5 pods stuck
/// on dead nodes, 5 more soon`, `1 pod will be lost in 56s`. If the worst finding is about one node, but the pods are not
/// all of this node: `all nodes: 2 pods will be stuck`, `n-3 Silent: 1 pod will be lost in 56s`.
pub(super) fn nowhere(model: &Model, subject: Option<&NodeName>, now: Timestamp) -> Option<Finding> {
    let waiting = model.views.pending.pods;
    let present = parts(&model.views.counts.hanging, waiting);
    let future = future(model);
    let Whose { long: whose, short: whose_in_short, node } =
        subject.map(|node| Whose::new(model, node)).unwrap_or_default();
    let more: usize = future.iter().map(|(_, pods)| pods).sum();
    let when = When::new(model, more, now);
    let soon = || more_soon(&present, &future, &when);
    let pending = |text: String| match model.views.pending.since {
        Some(since) => Phrase::from(text + " ").time(seconds(now.since(since))),
        None => Phrase::from(text),
    };
    let all: usize = present.iter().map(|(_, pods)| pods).sum();
    let (phrase, mut shorter): (Phrase, Vec<String>) = match (present.as_slice(), future.as_slice()) {
        ([], []) => return None,
        ([], [(kind, pods)]) => {
            let words = will_be(*kind, *pods);
            let phrase = format!("{whose}{} {words}{}", counted(*pods, "pod", "pods"), within(model));
            let pods = format!("{whose_in_short}{}", pods_by_outcome(&future));
            let mut shorter = vec![format!("{pods} {}", when.in_short()), format!("{pods} {SOON}")];
            shorter.dedup();
            (Phrase::from(phrase).and_phrase(when.phrase("")), shorter)
        }
        ([], _) => {
            let pods = counted(more, "pod", "pods");
            let outcomes = by_outcome(&future);
            let phrase = Phrase::from(format!("{whose}{pods} will have nowhere to run{}", within(model)));
            let phrase = phrase.and_phrase(when.phrase("")).and(&format!(": {outcomes}"));
            let shorter = [
                will_be_by_outcome(&future),
                format!("{} {}", when.in_short(), pods_by_outcome(&future)),
                format!("{pods} stranded {}", when.in_short()),
            ];
            (phrase, shorter.map(|words| format!("{whose_in_short}{words}")).into())
        }
        ([(OutcomeKind::Pending, _)], _) => {
            let phrase = pending(pods_by_outcome(&present));
            match more {
                0 => {
                    let shorter = vec![phrase.text.clone()];
                    (phrase.and(&of_workloads(model, now)), shorter)
                }
                _ => (phrase.and_phrase(soon()), Vec::new()),
            }
        }
        ([(OutcomeKind::Stuck, _)], []) => {
            let stuck = stuck_pods(model);
            let phrase = remedy_for_stuck(model).unwrap_or_else(|| stuck.clone());
            let shorter = remedy_in_short(model, subject).map(|remedy| format!("{whose_in_short}{remedy}"));
            let shorter = shorter.into_iter().chain([format!("{whose_in_short}{stuck}")]);
            (format!("{whose}{phrase}").into(), shorter.collect())
        }
        ([(kind, _)], _) => {
            let pods = match kind {
                OutcomeKind::Stuck => stuck_pods(model),
                _ => pods_by_outcome(&present),
            };
            (Phrase::from(format!("{whose}{pods}")).and_phrase(soon()), Vec::new())
        }
        ([first, rest @ ..], _) => {
            let pods = counted(all, "pod has", "pods have");
            let text = format!("{whose}{pods} nowhere to run: {}", by_outcome(&[*first]));
            let phrase = if waiting > 0 { pending(text) } else { text.into() };
            (phrase.and(&format!(", {}", by_outcome(rest))).and_phrase(soon()), Vec::new())
        }
    };
    if !present.is_empty() {
        let pods = format!("{whose_in_short}{}", pods_by_outcome(&present));
        shorter.extend((more > 0).then(|| format!("{pods}, {}", soon_in_short(&present, &future, &when))));
        shorter.push(pods);
    }
    let finding = Finding::new(VerdictLevel::Warning, phrase);
    Some(Finding { node, ..finding }.shortens_to(PartKind::Consequence, shorter))
}

/// Returns the pods that will have nowhere to run once they are evicted, the worst outcome first; empty while that is not
/// predicted.
fn future(model: &Model) -> Vec<(OutcomeKind, usize)> {
    if !model.views.is_predicted() {
        return Vec::new();
    }
    let mut future = parts(&model.views.counts.future_nowhere(), 0);
    future.sort_by_key(|(kind, _)| *kind);
    future
}

/// Returns the outcomes that leave pods with nowhere to run, each with its number of pods. Pending is first; `pending`
/// pods are added to it.
fn parts(counts: &OutcomeCounts, pending: usize) -> Vec<(OutcomeKind, usize)> {
    let pending = pending + counts.of(OutcomeKind::Pending);
    let first = (pending > 0).then_some((OutcomeKind::Pending, pending));
    let is_other = |kind: OutcomeKind| kind.has_nowhere_to_run() && kind != OutcomeKind::Pending;
    first.into_iter().chain(counts.parts().filter(|(kind, _)| is_other(*kind))).collect()
}

/// Formats outcomes with their numbers: `6 Pending, 5 stuck`.
fn by_outcome(parts: &[(OutcomeKind, usize)]) -> String {
    let words = |(kind, pods): &(OutcomeKind, usize)| {
        let (one, several) = kind.words();
        counted(*pods, one, several)
    };
    parts.iter().map(words).collect::<Vec<_>>().join(", ")
}

/// Formats outcomes with their numbers, and says that these are pods: `6 pods Pending, 5 stuck`.
fn pods_by_outcome(parts: &[(OutcomeKind, usize)]) -> String {
    let text = by_outcome(parts);
    match text.split_once(' ') {
        Some((number, rest)) => format!("{number} {} {rest}", if number == "1" { "pod" } else { "pods" }),
        None => text,
    }
}

/// Formats future outcomes with their numbers: `1 pod will be lost, 4 stuck`.
fn will_be_by_outcome(future: &[(OutcomeKind, usize)]) -> String {
    let [(kind, pods), others @ ..] = future else { return String::new() };
    format!("{} {}, {}", counted(*pods, "pod", "pods"), will_be(*kind, *pods), by_outcome(others))
}

/// What becomes of pods that will have nowhere to run: `will be lost`, `will fail their Jobs`.
fn will_be(kind: OutcomeKind, pods: usize) -> String {
    match (kind == OutcomeKind::FailsJob, pods) {
        (true, 1) => "will fail its Job".into(),
        (true, _) => "will fail their Jobs".into(),
        (false, _) => format!("will be {}", kind.words().1),
    }
}

/// When pods will have nowhere to run.
enum When {
    /// All at this time, which is in words: `in 56s`.
    At(String),
    /// From this time on, which is in words.
    From(String),
    /// At a time that is not predicted: some of these pods are not evicted within the forecast.
    Unknown,
}

impl When {
    /// Returns when `pods` pods, all that will have nowhere to run, leave their nodes.
    fn new(model: &Model, pods: usize, now: Timestamp) -> Self {
        let outcomes = model.predictions.outcomes();
        let nowhere = outcomes.into_iter().flat_map(|outcomes| outcomes.nowhere.values().flatten());
        let rows = &model.views.leaving.evictions;
        let times: BTreeMap<&Key, Timestamp> =
            nowhere.filter_map(|(pod, _)| Some((pod, rows.get(pod)?.state.leaves_at()?))).collect();
        let (Some(first), Some(last)) = (times.values().min(), times.values().max()) else {
            return Self::Unknown;
        };
        if times.len() != pods {
            return Self::Unknown;
        }
        let time = until_first(model, *first, times.iter().map(|(pod, at)| (*pod, *at)), now);
        match first == last {
            true => Self::At(time),
            false => Self::From(time),
        }
    }

    /// Returns the words after a number of pods: ` in 56s`, `, first in 56s`. If the time is unknown, they are `unknown`.
    fn phrase(&self, unknown: &str) -> Phrase {
        match self {
            Self::At(time) => Phrase::from(" ").time(time),
            Self::From(time) => Phrase::from(", first ").time(time),
            Self::Unknown => unknown.into(),
        }
    }

    /// Returns the time, or `soon` if the pods leave at different times.
    fn in_short(&self) -> &str {
        match self {
            Self::At(time) => time,
            Self::From(_) | Self::Unknown => SOON,
        }
    }
}

/// Replaces a time for which there is no room.
const SOON: &str = "soon";

/// Returns how many more pods will have nowhere to run: `, 5 more soon`, `, 5 more stuck in 56s`, `, 5 more (1 lost, 4
/// stuck), first in 56s`.
fn more_soon(present: &[(OutcomeKind, usize)], future: &[(OutcomeKind, usize)], when: &When) -> Phrase {
    let more: usize = future.iter().map(|(_, pods)| pods).sum();
    let pods = match (present, future) {
        (_, []) => return "".into(),
        ([(one, _)], [(other, _)]) if one == other => format!(", {more} more"),
        (_, [(kind, _)]) => {
            let (one, several) = kind.words();
            format!(", {more} more {}", if more == 1 { one } else { several })
        }
        (_, several) => format!(", {more} more ({})", by_outcome(several)),
    };
    Phrase::from(pods).and_phrase(when.phrase(" soon"))
}

/// The short form of [`more_soon`]: `5 soon`, `5 more stuck soon`, `5 lost in 56s`, `soon 1 lost, 4 stuck`. The kinds are
/// named if pods will be lost.
fn soon_in_short(present: &[(OutcomeKind, usize)], future: &[(OutcomeKind, usize)], when: &When) -> String {
    let is_lost = |kind: OutcomeKind| matches!(kind, OutcomeKind::Lost | OutcomeKind::FailsJob);
    let is_present = |kind: OutcomeKind| present.iter().any(|(other, _)| *other == kind);
    let when = when.in_short();
    match (present, future) {
        ([(one, _)], [(other, more)]) if one == other => format!("{more} {when}"),
        (_, [(kind, more)]) if is_present(*kind) => format!("{more} more {} {when}", kind.words().1),
        (_, [_]) => format!("{} {when}", by_outcome(future)),
        (_, [(worst, _), ..]) if is_lost(*worst) => format!("{when} {}", by_outcome(future)),
        (_, several) => format!("{} {when}", several.iter().map(|(_, pods)| pods).sum::<usize>()),
    }
}

/// Prefix for the number of pods that have nowhere to run, if they are not of the node of the worst finding.
#[derive(Default)]
struct Whose {
    long: String,
    short: String,
    /// The node that the prefix names; `None` if the pods are of several nodes.
    node: Option<NodeName>,
}

impl Whose {
    /// Creates the prefix. It is empty if all of the pods are on the node of the worst finding. It names the other node
    /// if they are all on one, and otherwise says that they are of all nodes.
    fn new(model: &Model, subject: &NodeName) -> Self {
        let of_all = || Self { long: ALL_NODES.to_owned(), short: ALL_NODES.to_owned(), node: None };
        let counts = &model.views.counts;
        let (is_hanging, is_predicted) = (counts.hanging.nowhere() > 0, model.views.is_predicted());
        if model.views.pending.pods > 0 && !is_hanging {
            // Pending pods are of no node.
            return Self::default();
        }
        if model.views.pending.pods > 0 || is_predicted && counts.preempted.nowhere() > 0 {
            return of_all();
        }
        let rows = model.views.leaving.evictions.iter().filter(|_| is_hanging);
        let hanging = rows.filter(|(pod, row)| hangs(model, pod, row)).map(|(_, row)| &row.node);
        let outcomes = model.predictions.outcomes().filter(|_| is_predicted);
        let mut nodes = hanging.chain(outcomes.into_iter().flat_map(|outcomes| outcomes.nowhere.keys()));
        let Some(first) = nodes.next() else { return Self::default() };
        if nodes.any(|node| node != first) {
            return of_all();
        }
        let long = match model.watchlist.state(first) {
            _ if first == subject => return Self::default(),
            Some(state) => format!("{first} {state}: "),
            None => format!("deleted node {first}: "),
        };
        Self { long, short: format!("{first}: "), node: Some(first.clone()) }
    }
}

/// Returns the workloads of the Pending pods, those with the most pods first: `: web 8, api 2`, `: web`, `: web 8, api 2 and
/// 4 others`.
fn of_workloads(model: &Model, now: Timestamp) -> String {
    // The workload is looked up once for each owner, because most pods of a workload have the same owner.
    let mut by_owner: BTreeMap<Result<&Uid, &Key>, (&Pod, usize)> = BTreeMap::new();
    for pod in PendingSummary::counted_pods(&model.cluster, now) {
        let owner = pod.owner.as_ref().map(|owner| &owner.uid).ok_or(&pod.key);
        by_owner.entry(owner).or_insert((pod, 0)).1 += 1;
    }
    let mut by_name: BTreeMap<String, usize> = BTreeMap::new();
    for (pod, pods) in by_owner.into_values() {
        *by_name.entry(workload_name(model, pod)).or_default() += pods;
    }
    let mut workloads: Vec<(String, usize)> = by_name.into_iter().collect();
    workloads.sort_by_key(|(name, pods)| (Reverse(*pods), name.clone()));
    if let [(name, _)] = &workloads[..] {
        return format!(": {name}");
    }
    let (named, others) = workloads.split_at(workloads.len().min(NAMED_WORKLOADS));
    let named: Vec<String> = named.iter().map(|(name, pods)| format!("{name} {pods}")).collect();
    match others.iter().map(|(_, pods)| pods).sum::<usize>() {
        _ if named.is_empty() => String::new(),
        0 => format!(": {}", named.join(", ")),
        others => format!(": {} and {}", named.join(", "), counted(others, "other", "others")),
    }
}

/// Maximum number of workloads of Pending pods that the verdict names.
const NAMED_WORKLOADS: usize = 3;

/// Name of the workload of a pod; without a workload, of the pod.
fn workload_name(model: &Model, pod: &Pod) -> String {
    let workload = owner::workload(&model.cluster, pod);
    workload.map_or_else(|| pod.key.name.to_string(), |workload| workload.key.name.to_string())
}

/// Whether all pods that have nowhere to run are stuck on dead nodes, and no further pods will have nowhere to run. The
/// finding about them then has their remedy.
pub(super) fn are_all_stuck(model: &Model) -> bool {
    model.views.counts.stuck() == model.views.nowhere_now() && future(model).is_empty()
}

/// Returns what stuck pods wait for: `2 pods stuck on dead nodes until the nodes are back, deleted or tainted
/// out-of-service`. The out-of-service taint is named only for pods that do not tolerate it. Finalizers keep pods even
/// then.
pub(super) fn remedy_for_stuck(model: &Model) -> Option<String> {
    let stuck = model.views.counts.stuck();
    let are = if model.views.counts.stuck_on == 1 { "it is" } else { "the nodes are" };
    let help = match stuck.saturating_sub(model.views.counts.unfenced) {
        0 => "back or deleted".to_owned(),
        fenced if fenced == stuck => "back, deleted or tainted out-of-service".to_owned(),
        fenced => format!("back, deleted or (for {fenced}) tainted out-of-service"),
    };
    let held = match model.views.counts.held {
        0 => String::new(),
        pods => format!(" and the finalizers of {} are removed", counted(pods, "pod", "pods")),
    };
    let text = || format!("{} until {are} {help}{held}", stuck_pods(model));
    (stuck > 0 && model.views.is_predicted()).then(text)
}

/// Returns the short form of [`remedy_for_stuck`], which leaves out the out-of-service taint: `2 pods stuck until their
/// nodes are back or deleted`; `None` if finalizers keep some of the pods even then. `subject` is the node that the verdict
/// names before.
fn remedy_in_short(model: &Model, subject: Option<&NodeName>) -> Option<String> {
    let counts = &model.views.counts;
    let pods = counted(counts.stuck(), "pod", "pods");
    let are = match (counts.stuck_on, subject) {
        (1, Some(_)) => "it is",
        (1, None) => "the node is",
        _ => "their nodes are",
    };
    let is_known = counts.held == 0 && model.views.is_predicted();
    is_known.then(|| format!("{pods} stuck until {are} back or deleted"))
}

fn stuck_pods(model: &Model) -> String {
    let nodes = if model.views.counts.stuck_on == 1 { "a dead node" } else { "dead nodes" };
    format!("{} stuck on {nodes}", counted(model.views.counts.stuck(), "pod", "pods"))
}

/// The most common reason why pods are Pending: `no node has 4 CPU free`.
pub(super) fn why_pending(model: &Model) -> Option<Finding> {
    let cause = model.predictions.most_common_pending_cause().filter(|_| model.views.pending.pods > 0)?;
    let finding = Finding::new(VerdictLevel::Notice, cause.to_string());
    Some(finding.shortens_to(PartKind::Consequence, Vec::new()))
}

/// Finding about preemptions in progress: `payments/risk-model preempts 6 pods`.
pub(super) fn preempting(model: &Model) -> Option<Finding> {
    let mut preemptors: BTreeSet<String> = BTreeSet::new();
    let mut victims: BTreeSet<&Key> = BTreeSet::new();
    for (pod, of_pod) in model.predictions.pending()?.waits_for() {
        let Some(pod) = model.cluster.pod(pod).filter(|pod| pod.is_unscheduled()) else { continue };
        let left = of_pod.iter().filter(|victim| model.cluster.pod(victim).is_some());
        let before = victims.len();
        victims.extend(left);
        if victims.len() > before {
            preemptors.insert(format!("{}/{}", pod.key.namespace, workload_name(model, pod)));
        }
    }
    let (first, others) = (preemptors.first()?, preemptors.len() - 1);
    let who = match others {
        0 => format!("{first} preempts"),
        _ => format!("{first} and {} preempt", counted(others, "other workload", "other workloads")),
    };
    let text = format!("{who} {}", counted(victims.len(), "pod", "pods"));
    Some(Finding::new(VerdictLevel::Notice, text))
}
