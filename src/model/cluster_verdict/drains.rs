//! Findings about drains that are blocked, and about maintenances.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{Finding, PartKind, Phrase, VerdictLevel, seconds};
use crate::model::Model;
use kordon_core::{
    cluster::{Key, MaintenanceNotes, NodeName, Pod},
    operation::DrainCount,
    plan::{BlockedDrain, CordonWait, EvictionRules, Verdict, words::counted},
};
use kordon_time::{Span, Timestamp};

/// Findings about blocked drains, with advice: `drain of n3 (2 of 7 pods gone) blocked 2m by PodDisruptionBudget
/// monitoring/grafana · scale up its workload, or relax the budget`. In short, `PodDisruptionBudget` is `PDB`, then the
/// budget has no namespace.
pub(super) fn blocked_drains(model: &Model, now: Timestamp) -> Vec<Finding> {
    let finding = |drain: &BlockedDrain| {
        let foreign = model.cluster.node(&drain.node).and_then(|node| model.foreign_drain(node));
        let by = foreign.and_then(|drain| drain.by).map(|by| format!(" by {by}")).unwrap_or_default();
        let gone =
            drain_count(model, &drain.node).map_or(String::new(), |count| format!(" ({})", gone(count)));
        let phrase = Phrase::from(format!("drain of {}{by}{gone} blocked ", drain.node))
            .time(seconds(now.since(drain.since)));
        let others = others_of_blocked(model, &drain.node, now);
        let budgets = drain.to_string().replace("PodDisruptionBudget", "PDB");
        let names = match drain.budgets.as_slice() {
            [budget] if drain.awaited.is_empty() => format!("PDB {}", budget.name),
            _ => budgets.clone(),
        };
        let in_short = |budgets: &str| format!("{} by {budgets}", phrase.text);
        let shorter = [in_short(&budgets) + &others.text, in_short(&names) + &others.text, in_short(&names)];
        let phrase = phrase.and(&format!(" by {drain}")).and_phrase(others);
        Finding::new(VerdictLevel::Warning, phrase).shortens_to(PartKind::Other, shorter.into())
    };
    let mut findings = match model.views.blocked_drains.as_slice() {
        [] => Vec::new(),
        drains @ ([_] | [_, _]) => drains.iter().map(finding).collect(),
        drains => {
            let longest =
                drains.iter().map(|drain| drain.since).min().map_or(Span::ZERO, |since| now.since(since));
            let by_budgets = drains.iter().all(|drain| drain.awaited.is_empty());
            let by = if by_budgets { " by PodDisruptionBudgets" } else { "" };
            let phrase = Phrase::from(format!("{} drains blocked{by}, up to ", drains.len()));
            vec![Finding::new(VerdictLevel::Warning, phrase.time(seconds(longest)))]
        }
    };
    findings.extend(waiting_for_each_other(model));
    // The advice has the same level as the findings about drains. A stable sort by level therefore keeps it after them.
    let wait = |node: &NodeName| model.views.cordon_waits.iter().find(|wait| wait.node == *node);
    let advice = model.views.blocked_drains.iter().filter_map(|drain| match wait(&drain.node) {
        // If two drains wait for each other, the advice for one of them is enough. It is added below.
        Some(CordonWait { waits_in_turn: Some(_), .. }) => None,
        Some(wait) => Some(wait.advice()),
        None => Some(drain.advice()),
    });
    let advice: BTreeSet<String> = advice.chain(mutual(model).map(CordonWait::advice).take(1)).collect();
    findings.extend(advice.into_iter().map(|advice| Finding::new(VerdictLevel::Warning, advice)));
    findings
}

/// Progress of a drain: `2 of 7 pods gone`.
pub(super) fn gone(count: DrainCount) -> String {
    format!("{} of {} gone", count.gone, counted(count.total(), "pod", "pods"))
}

/// Progress of the drain of a node; `None` if it is unknown.
fn drain_count(model: &Model, node: &NodeName) -> Option<DrainCount> {
    let count = model.node_status(model.cluster.node(node)?)?.drain?;
    Some(count).filter(|count| count.total() > 0)
}

/// The terminating pods of a node that is drained.
struct LeavingPods {
    pods: usize,
    /// Number of these pods that finalizers hold.
    held: usize,
    /// Time at which the last grace period ends.
    deadline: Timestamp,
}

impl LeavingPods {
    /// Finds the terminating pods of a node; `None` if there are none.
    fn find(model: &Model, node: &NodeName) -> Option<Self> {
        let pods: Vec<&Arc<Pod>> =
            model.cluster.workload_pods(node).filter(|pod| pod.termination.is_some()).collect();
        let deadlines =
            pods.iter().filter_map(|pod| Some(model.cluster.local(pod.termination.as_ref()?.deadline)));
        let held = pods.iter().filter(|pod| pod.holding_finalizers().next().is_some()).count();
        Some(Self { pods: pods.len(), held, deadline: deadlines.max()? })
    }

    /// `last pod`, `last 3 pods`.
    fn last(&self) -> String {
        if self.pods == 1 { "last pod".into() } else { format!("last {} pods", self.pods) }
    }
}

/// Time after the last grace period from which a drain hangs although no finalizer holds its pods: kubelets end pods some
/// seconds after their grace periods.
const OVERDUE: Span = Span::from_secs(15);

/// Finding about a drain that only finalizers hold, or whose last pods stay after their grace periods: `drain of n-3 (6 of
/// 7 pods gone) hangs 45s: last pod held by a finalizer`.
pub(super) fn hanging_drain(model: &Model, node: &NodeName, now: Timestamp) -> Option<Finding> {
    let count = drain_count(model, node)?;
    let leaving = LeavingPods::find(model, node).filter(|leaving| leaving.pods == count.left())?;
    let overdue = now.since(leaving.deadline);
    let is_held = leaving.held == leaving.pods;
    if overdue < Span::ZERO || !is_held && overdue < OVERDUE {
        return None;
    }
    let why = match (is_held, leaving.pods) {
        (true, 1) => "held by a finalizer",
        (true, _) => "held by finalizers",
        (false, _) => "not ended after its grace period",
    };
    let (last, time) = (leaving.last(), seconds(overdue));
    let phrase = Phrase::from(format!("drain of {node} ({}) hangs ", gone(count))).time(time);
    let short = format!("drain of {node} hangs {time}: {last} {why}");
    let finding = Finding::new(VerdictLevel::Warning, phrase.and(&format!(": {last} {why}")));
    Some(Finding { node: Some(node.clone()), ..finding }.shortens_to(PartKind::Other, vec![short]))
}

/// Returns what the last pods of a drain wait for, if all of them are terminating: `, last 3 pods end within 15s`, `, last
/// 2 pods end within 15s, 1 once its finalizer is removed`, `, last pod 5s overdue`.
pub(super) fn last_of_drain(model: &Model, node: &NodeName, count: DrainCount, now: Timestamp) -> Phrase {
    let leaving = LeavingPods::find(model, node).filter(|leaving| leaving.pods == count.left());
    let Some(leaving) = leaving else { return Phrase::from("") };
    let last = leaving.last();
    if leaving.deadline <= now {
        let phrase = Phrase::from(format!(", {last} ")).time(seconds(now.since(leaving.deadline)));
        return phrase.and(" overdue");
    }
    let end = if leaving.pods == 1 { "ends" } else { "end" };
    let phrase = Phrase::from(format!(", {last} {end} within "));
    let phrase = phrase.time(leaving.deadline.since(now).rounded_up());
    match leaving.held {
        0 => phrase,
        1 if leaving.pods == 1 => phrase.and(" once its finalizer is removed"),
        1 => phrase.and(", 1 once its finalizer is removed"),
        held => phrase.and(&format!(", {held} once their finalizers are removed")),
    }
}

/// Returns which budgets refuse evictions of the drains of these nodes now, and whether they allow the next one by
/// themselves: `, waits for PodDisruptionBudget shop/web: 1 more pod must be Ready`; of several drains `, 2 wait for
/// PodDisruptionBudget shop/web, which never allows it: repair the pods`. Empty if none does.
///
/// These words belong to the finding that the nodes are Draining, which is a notice. They therefore need not wait until a
/// refusal lasts: when it ends, neither the level nor another finding changes. Drains that are blocked are left out, because
/// other findings are about them.
pub(super) fn waits_for_budgets(model: &Model, nodes: &[&NodeName], now: Timestamp) -> Phrase {
    let rules = EvictionRules::from(&model.settings);
    let is_blocked = |node: &NodeName| model.views.blocked_drains.iter().any(|drain| drain.node == *node);
    let refusing: Vec<BTreeMap<Key, Verdict>> = nodes
        .iter()
        .filter(|node| !is_blocked(node))
        .filter_map(|node| model.cluster.node(node))
        .map(|node| BlockedDrain::refusing_now(&model.cluster, node, &rules, now))
        .filter(|budgets| !budgets.is_empty())
        .collect();
    let who = if nodes.len() == 1 { String::new() } else { format!("{} ", refusing.len()) };
    let wait = if refusing.len() == 1 { "waits" } else { "wait" };
    let budgets: Vec<(Key, Verdict)> =
        refusing.into_iter().flatten().collect::<BTreeMap<_, _>>().into_iter().collect();
    Phrase::from(match budgets.as_slice() {
        [] => String::new(),
        [(budget, verdict)] => {
            format!(", {who}{wait} for PodDisruptionBudget {budget}{}", when_it_allows(verdict))
        }
        several => format!(", {who}{wait} for {} PodDisruptionBudgets", several.len()),
    })
}

/// Says when a budget allows the next eviction, as words after its name: `: 1 more pod must be Ready`, `, which never allows
/// it: repair the pods`. Empty if that is not known.
fn when_it_allows(verdict: &Verdict) -> String {
    match (verdict, verdict.advice()) {
        (_, Some(advice)) => format!(", which never allows it: {advice}"),
        (Verdict::Waits { recoveries, .. }, None) => {
            let pods = usize::try_from(*recoveries).unwrap_or(usize::MAX);
            format!(": {} must be Ready", counted(pods, "more pod", "more pods"))
        }
        (Verdict::WaitsForOperator { operator, .. }, None) => format!(": {} must act", operator.operator),
        (_, None) => String::new(),
    }
}

/// Returns when the other pods of a blocked drain end: `; 4 others end within 1m39s`. Empty if no grace period runs.
fn others_of_blocked(model: &Model, node: &NodeName, now: Timestamp) -> Phrase {
    match LeavingPods::find(model, node).filter(|leaving| leaving.deadline > now) {
        Some(LeavingPods { pods, deadline, .. }) => {
            let (others, end) = (counted(pods, "other", "others"), if pods == 1 { "ends" } else { "end" });
            Phrase::from(format!("; {others} {end} within ")).time(deadline.since(now).rounded_up())
        }
        None => Phrase::from(""),
    }
}

/// Finding about drains that wait for each other: `drains of n1 and n2 wait for each other`.
fn waiting_for_each_other(model: &Model) -> Option<Finding> {
    let wait = mutual(model).next()?;
    let text = format!("drains of {} and {} wait for each other", wait.node, wait.waits_in_turn.as_ref()?);
    Some(Finding::new(VerdictLevel::Warning, text))
}

fn mutual(model: &Model) -> impl Iterator<Item = &CordonWait> {
    model.views.cordon_waits.iter().filter(|wait| wait.waits_in_turn.is_some())
}

/// Findings about maintenances that still have nodes: those that are running, and those that are paused or were stopped:
/// `maintenance of alice@desk runs with 3 nodes left`, `maintenance of alice@desk paused 5m with 3 nodes left`,
/// `maintenance of alice@desk was stopped with 3 nodes left · kordon maintenance --resume goes on`.
pub(super) fn maintenances(model: &Model, now: Timestamp) -> (Vec<Finding>, Vec<Finding>) {
    let (running, stopped): (Vec<_>, Vec<_>) =
        MaintenanceNotes::all(&model.cluster).into_iter().partition(|notes| notes.is_running(now));
    let left = |notes: &MaintenanceNotes| counted(notes.nodes.len(), "node", "nodes");
    let (paused, running): (Vec<_>, Vec<_>) =
        running.into_iter().partition(|notes: &MaintenanceNotes| notes.paused().is_some());
    let runs = |notes: MaintenanceNotes| {
        let text = format!("maintenance of {} runs with {} left", notes.by, left(&notes));
        Finding::new(VerdictLevel::Healthy, text)
    };
    let is_paused = |notes: MaintenanceNotes| {
        let phrase = Phrase::from(format!("maintenance of {} paused ", notes.by));
        let phrase = phrase.time(seconds(now.since(notes.paused().unwrap_or(now))));
        Finding::new(VerdictLevel::Notice, phrase.and(&format!(" with {} left", left(&notes))))
    };
    let was_stopped = |notes: MaintenanceNotes| {
        let text = format!(
            "maintenance of {} was stopped with {} left · kordon maintenance --resume={} goes on",
            notes.by,
            left(&notes),
            notes.operation
        );
        Finding::new(VerdictLevel::Notice, text)
    };
    let held_up = paused.into_iter().map(is_paused).chain(stopped.into_iter().map(was_stopped));
    (running.into_iter().map(runs).collect(), held_up.collect())
}
