//! Compares an answer of kordon with what happened.
//!
//! Pods of one controller are interchangeable. So the comparison counts how many of them run on each node, how many
//! wait for a node, and how many have no successor.

use std::collections::BTreeMap;

use kordon_time::{Span, Timestamp};
use serde_json::Value;

use super::history::Seen;

/// Seconds by which a replacement may be Ready before its soonest time.
const SOONER: f64 = 5.0;
/// Seconds by which a replacement may be Ready after twice its predicted time.
const LATER: f64 = 15.0;
/// The scheduler's reason in the condition DisruptionTarget.
const PREEMPTED: &str = "PreemptionByScheduler";
/// Replacements whose predicted times are at least this many seconds apart must be Ready in the predicted order.
const APART: f64 = 3.0;

/// The fate of a pod, without the names of interchangeable pods.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    /// The pod's successor is on a node. The name is given if only one node is possible.
    Runs(Option<String>),
    /// The pod's successor has no node.
    Pending,
    /// The pod is still on its node.
    Stays,
    /// The pod has no successor.
    None,
    /// The pod has no successor. It may or may not still be on its node.
    Stuck,
}

/// A pod in kordon's answer.
struct Predicted<'a> {
    name: &'a str,
    outcome: &'a str,
    text: &'a str,
    fate: Fate,
    ready: Option<f64>,
    /// Seconds until the replacement is Ready at the soonest. If its time to Ready is a guess, it may take no time.
    soonest: f64,
}

/// What happened in a namespace.
#[derive(Clone, Copy)]
pub struct Happened<'a> {
    /// When the observation began.
    pub since: Timestamp,
    /// Whether each pod has to be on the node that the answer names, not just on any node.
    pub names_nodes: bool,
    pub pods: &'a BTreeMap<String, Seen>,
    /// For each failed Job, the reason of its failure, by the name of the Job.
    pub failed_jobs: &'a BTreeMap<String, String>,
    /// Number of failed indexes, by the name of the Job.
    pub failed_indexes: &'a BTreeMap<String, usize>,
}

/// Returns each difference in words.
pub fn differences(answer: &Value, namespace: &str, happened: &Happened<'_>) -> Vec<String> {
    let mut by_owner: BTreeMap<(String, String), Vec<Predicted<'_>>> = BTreeMap::new();
    for pod in pods(answer).filter(|pod| pod["namespace"] == namespace) {
        let name = pod["pod"].as_str().unwrap_or_default();
        let old = happened.pods.values().find(|seen| seen.name == name && seen.first_seen < happened.since);
        let owner = old.and_then(|seen| seen.owner.clone()).unwrap_or_else(|| ("Pod".into(), name.into()));
        by_owner.entry(owner).or_default().push(predicted(pod, name, happened.names_nodes));
    }
    let mut found = Vec::new();
    for (owner, predicted) in &by_owner {
        let words = format!("{} {}", owner.0, owner.1);
        found.extend(of_owner(owner, predicted, happened).into_iter().map(|text| format!("{words}: {text}")));
    }
    found.extend(preemptions(answer, namespace, happened));
    found.extend(surprises(answer, namespace, happened));
    found
}

/// Returns the pods that left although the answer does not name them. Preempted pods, and pods of failed Jobs, do not
/// count.
fn surprises(answer: &Value, namespace: &str, happened: &Happened<'_>) -> Vec<String> {
    let named: Vec<&str> = pods(answer)
        .filter(|pod| pod["namespace"] == namespace)
        .filter_map(|pod| pod["pod"].as_str())
        .collect();
    let is_of_failed_job = |seen: &Seen| {
        seen.owner.as_ref().is_some_and(|(kind, job)| kind == "Job" && happened.failed_jobs.contains_key(job))
    };
    let is_surprise = |seen: &&Seen| {
        seen.first_seen < happened.since
            && seen.deleted.is_some_and(|deleted| deleted >= happened.since)
            && !named.contains(&seen.name.as_str())
            && seen.disrupted.as_deref() != Some(PREEMPTED)
            && !is_of_failed_job(seen)
    };
    let left = happened.pods.values().filter(is_surprise);
    left.map(|seen| format!("{} left, which was not predicted", seen.name)).collect()
}

/// Returns the pods in an answer: the pods of a plan, or the replacements of a forecast.
pub fn pods(answer: &Value) -> impl Iterator<Item = &Value> {
    let of_plan = answer["pods"].as_array();
    of_plan.or_else(|| answer["replacements"].as_array()).into_iter().flatten()
}

fn predicted<'a>(pod: &'a Value, name: &'a str, names_nodes: bool) -> Predicted<'a> {
    let text = |field: &str| pod[field].as_str();
    let is_tied = pod["placement"]["tied"].as_u64().is_some_and(|tied| tied > 1);
    let node = || text("landingNode").filter(|_| names_nodes && !is_tied).map(str::to_owned);
    let outcome = text("outcome").unwrap_or_default();
    let fate = match outcome {
        "moves" | "preempts" => Fate::Runs(node()),
        "sameNode" => Fate::Runs(text("node").map(str::to_owned)),
        "pending" => Fate::Pending,
        "blocked" | "stays" => Fate::Stays,
        "stuck" => Fate::Stuck,
        _ => Fate::None,
    };
    let ready = pod["readyAgainInSeconds"].as_f64().or_else(|| pod["readyInSeconds"].as_f64());
    let gone = |bound: &str| pod["deleted"][bound].as_f64().unwrap_or_default();
    let takes = ready.filter(|_| text("quality") != Some("guess")).map(|ready| ready - gone("likelySeconds"));
    let soonest = gone("soonestSeconds") + takes.unwrap_or_default();
    Predicted { name, outcome, text: text("outcomeText").unwrap_or_default(), fate, ready, soonest }
}

fn of_owner(owner: &(String, String), predicted: &[Predicted<'_>], happened: &Happened<'_>) -> Vec<String> {
    let mut found = Vec::new();
    let is_of_owner = |seen: &&Seen| match &seen.owner {
        Some(other) => other == owner,
        None => owner.0 == "Pod" && seen.name == owner.1,
    };
    let all: Vec<&Seen> = happened.pods.values().filter(is_of_owner).collect();
    let new: Vec<&Seen> = all.iter().copied().filter(|seen| seen.first_seen >= happened.since).collect();
    let mut fates: Vec<Fate> = new
        .iter()
        .filter(|seen| seen.lives())
        .map(|seen| seen.node.clone().map_or(Fate::Pending, |node| Fate::Runs(Some(node))))
        .collect();
    let stays = |pod: &&Predicted<'_>| {
        all.iter().any(|seen| seen.name == pod.name && seen.first_seen < happened.since && seen.lives())
    };
    fates.extend(predicted.iter().filter(stays).map(|_| Fate::Stays));
    fates.extend((fates.len()..predicted.len()).map(|_| Fate::None));
    let expected: Vec<Fate> = predicted.iter().map(|pod| pod.fate.clone()).collect();
    if !agree(&expected, &fates) {
        let texts: Vec<String> =
            predicted.iter().map(|pod| format!("{} {}", pod.name, pod.outcome)).collect();
        found.push(format!("predicted {expected:?} ({}), became {fates:?}", texts.join(", ")));
    }
    if owner.0 == "Job" {
        found.extend(of_job(&owner.1, predicted, happened));
    }
    found.extend(times(owner, predicted, &new, happened.since));
    found
}

/// Whether the expected fates match the actual fates one to one, in any order.
fn agree(expected: &[Fate], became: &[Fate]) -> bool {
    let mut left = became.to_vec();
    let mut take =
        |fate: &dyn Fn(&Fate) -> bool| left.iter().position(fate).map(|place| left.remove(place)).is_some();
    let is_open = |fate: &&Fate| matches!(fate, Fate::Runs(None) | Fate::Stuck);
    let (open, certain): (Vec<&Fate>, Vec<&Fate>) = expected.iter().partition(is_open);
    let all = certain.into_iter().all(|fate| take(&|other: &Fate| other == fate))
        && open.into_iter().all(|fate| match fate {
            Fate::Stuck => take(&|other: &Fate| matches!(other, Fate::Stays | Fate::None)),
            _ => take(&|other: &Fate| matches!(other, Fate::Runs(_))),
        });
    all && left.is_empty()
}

/// Compares whether a Job fails, and why.
fn of_job(job: &str, predicted: &[Predicted<'_>], happened: &Happened<'_>) -> Vec<String> {
    let failing: Vec<&Predicted<'_>> = predicted.iter().filter(|pod| pod.outcome == "failsJob").collect();
    let reason = happened.failed_jobs.get(job);
    let indexes = happened.failed_indexes.get(job).copied().unwrap_or_default();
    match (failing.first(), reason) {
        (None, Some(reason)) => vec![format!("failed ({reason}), which was not predicted")],
        (Some(pod), Some(reason)) if !pod.text.contains(reason.as_str()) => {
            vec![format!("failed ({reason}), predicted was {}", pod.text)]
        }
        (Some(pod), None) if indexes < failing.len() => {
            vec![format!("{indexes} of its indexes have failed and it has not, predicted was {}", pod.text)]
        }
        _ => Vec::new(),
    }
}

/// Compares the times at which replacements are first Ready. The bounds are wide. If replacements keep the names of
/// their pods, their order is compared too.
fn times(
    owner: &(String, String),
    predicted: &[Predicted<'_>],
    new: &[&Seen],
    since: Timestamp,
) -> Vec<String> {
    let mut found = Vec::new();
    let after = |at: Timestamp| at.since(since).as_secs_f64();
    let mut expected: Vec<(f64, f64)> =
        predicted.iter().filter_map(|pod| Some((pod.ready?, pod.soonest))).collect();
    let mut became: Vec<f64> = new.iter().filter_map(|seen| seen.ready).map(after).collect();
    expected.sort_by(|one, other| one.0.total_cmp(&other.0));
    became.sort_by(f64::total_cmp);
    for ((expected, soonest), became) in expected.iter().zip(&became) {
        if *became < soonest - SOONER || *became > expected * 2.0 + LATER {
            found.push(format!("Ready again in {became:.1} s, predicted were {expected:.1} s"));
        }
    }
    if owner.0 == "StatefulSet" {
        let real = |name: &str| new.iter().find(|seen| seen.name == name).and_then(|seen| seen.ready);
        for first in predicted {
            for second in predicted {
                let (Some(a), Some(b)) = (first.ready, second.ready) else { continue };
                let (Some(x), Some(y)) = (real(first.name), real(second.name)) else { continue };
                if a + APART < b && x > y {
                    found.push(format!("{} was Ready before {}", second.name, first.name));
                }
            }
        }
    }
    found
}

/// Compares which pods are preempted.
fn preemptions(answer: &Value, namespace: &str, happened: &Happened<'_>) -> Vec<String> {
    if answer["pods"].is_null() {
        return Vec::new();
    }
    let is_preempted = |seen: &&Seen| seen.disrupted.as_deref() == Some(PREEMPTED);
    let became = happened.pods.values().filter(is_preempted).count();
    let here = pods(answer).any(|pod| pod["namespace"] == namespace);
    let predicted = answer["totals"]["preempted"].as_u64().unwrap_or_default();
    match here && predicted != became as u64 {
        true => vec![format!("predicted {predicted} preempted pods, were {became}")],
        false => Vec::new(),
    }
}

/// Returns how long to watch, so that the predicted events can happen, each as late as the answer allows.
pub fn lasts(answer: &Value) -> Span {
    let ready = pods(answer).filter_map(|pod| {
        let gone = |bound: &str| pod["deleted"][bound].as_f64().unwrap_or_default();
        let later = (gone("latestSeconds") - gone("likelySeconds")).max(0.0);
        let ready = pod["readyAgainInSeconds"].as_f64().or_else(|| pod["readyInSeconds"].as_f64())?;
        Some(ready + later)
    });
    Span::from_secs(ready.fold(0.0, f64::max) as i64)
}
