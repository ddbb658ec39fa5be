//! The rows of a plan.

use std::collections::{BTreeMap, BTreeSet};

use super::rows::{Row, Rows};
use crate::app::filter::Filterable;
use kordon_core::{
    cluster::Key,
    plan::{
        self, Action, NodeChange, Plan, PlanStep, PlannedWorkload, PodCount, PodPlan, Verdict, by_workload,
    },
};
use kordon_time::Timestamp;

/// A plan with the rows in which it is shown.
#[derive(Clone, Debug)]
pub struct PlanView {
    pub plan: Box<Plan>,
    pub rows: Vec<Row<PlanRow>>,
    /// Numbers of pods by outcome; they add up to the number of all pods.
    pub parts: Vec<(PodCount, usize)>,
    /// Workloads that have several pods in the plan.
    pub workloads: Vec<PlannedWorkload>,
    /// Indices of the pods that are listed under a workload.
    grouped: BTreeSet<usize>,
}

/// A row of a plan, in most cases as an index into one of the plan's lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanRow {
    Warning(usize),
    /// A workload that is scaled up while its pods leave, or the reason why it is not scaled up.
    Surge(usize),
    Node(usize),
    /// A workload with several pods, whose rows follow.
    Workload(usize),
    Pod(usize),
    /// A proposed change that would let a pod's replacement be placed: index of the pod, and of its proposal.
    Help(usize, usize),
    /// A Pending pod that is placed because of the plan.
    Arrival(usize),
    /// A node that receives pods because of the plan.
    Receiver(usize),
    Budget(usize),
    Moment(usize),
    Kubectl,
    Kordon,
    Call(usize),
    Assumption(usize),
    NotModelled(usize),
}

impl PlanView {
    pub fn new(plan: Box<Plan>) -> Self {
        let mut order: Vec<usize> = (0..plan.pods.len()).collect();
        order.sort_by_key(|place| urgency(&plan.pods[*place]));
        let mut workloads = by_workload(&plan.pods, &order, plan.made);
        workloads.retain(|workload| workload.pods.len() > 1);
        let pods = pod_rows(&order, &workloads);
        let parts = plan::parts(&plan.pods, plan.made);
        let grouped = workloads.iter().flat_map(|workload| &workload.pods).copied().collect();
        Self { rows: rows(&plan, &order, pods), plan, parts, workloads, grouped }
    }

    /// Whether a pod is listed under its workload.
    pub fn is_grouped(&self, pod: usize) -> bool {
        self.grouped.contains(&pod)
    }

    /// The pod that a row of the plan is about.
    pub(super) fn pod_of(&self, row: PlanRow) -> Option<&Key> {
        match row {
            PlanRow::Pod(place) | PlanRow::Help(place, _) => self.plan.pods.get(place).map(|pod| &pod.pod),
            PlanRow::Arrival(place) => self.plan.arrivals.get(place).map(|pod| &pod.pod),
            PlanRow::Moment(place) => self.plan.timeline.get(place)?.event.pod(),
            PlanRow::Warning(_)
            | PlanRow::Surge(_)
            | PlanRow::Node(_)
            | PlanRow::Workload(_)
            | PlanRow::Receiver(_)
            | PlanRow::Budget(_)
            | PlanRow::Kubectl
            | PlanRow::Kordon
            | PlanRow::Call(_)
            | PlanRow::Assumption(_)
            | PlanRow::NotModelled(_) => None,
        }
    }

    /// Wraps a row of the plan, so that filters can be applied to it.
    pub(super) fn filterable(&self, row: PlanRow) -> impl Filterable + '_ {
        FilterableRow { view: self, row }
    }
}

/// Formats an API call in one line.
pub fn call(step: &PlanStep) -> String {
    let call = step.call();
    format!("{} {} {}", call.method, call.path, call.body)
}

/// Rows of the pods in their order; pods of a workload with several pods follow the workload's row.
fn pod_rows(order: &[usize], workloads: &[PlannedWorkload]) -> Vec<PlanRow> {
    let groups = workloads.iter().enumerate();
    let group_of: BTreeMap<usize, usize> =
        groups.flat_map(|(group, workload)| workload.pods.iter().map(move |pod| (*pod, group))).collect();
    let rows_of = |pod: &usize| match group_of.get(pod) {
        None => vec![PlanRow::Pod(*pod)],
        Some(group) => {
            let pods = &workloads[*group].pods;
            if pods.first() != Some(pod) {
                return Vec::new();
            }
            [PlanRow::Workload(*group)].into_iter().chain(pods.iter().copied().map(PlanRow::Pod)).collect()
        }
    };
    order.iter().flat_map(rows_of).collect()
}

fn rows(plan: &Plan, pods: &[usize], pod_rows: Vec<PlanRow>) -> Vec<Row<PlanRow>> {
    let mut rows = Rows::new();
    rows.section("warnings", (0..plan.warnings.len()).map(PlanRow::Warning));
    rows.section("surges", (0..plan.surges.len()).map(PlanRow::Surge));
    // A drain always cordons its nodes, so the node of a single-node drain needs no row.
    let drains_one = matches!(plan.action, Action::Drain { .. }) && plan.nodes.len() == 1;
    rows.section("nodes", (0..plan.nodes.len()).filter(|_| !drains_one).map(PlanRow::Node));
    rows.section("pods", pod_rows);
    let helps = |pod: &usize| {
        let pod = *pod;
        (0..plan.pods[pod].help().len()).map(move |help| PlanRow::Help(pod, help))
    };
    rows.section("how to place Pending pods", pods.iter().flat_map(helps));
    rows.section("Pending pods that land here", (0..plan.arrivals.len()).map(PlanRow::Arrival));
    // Refused pods leave only with the missing options, but their landings, budgets and times are planned.
    let is_granted = plan.totals.refused_pods > 0;
    let [receivers, budgets, timeline] = if is_granted {
        [
            "nodes that receive pods, if the options marked ! are given",
            "budgets, if the options marked ! are given",
            "timeline, if the options marked ! are given",
        ]
    } else {
        ["nodes that receive pods", "budgets", "timeline"]
    };
    rows.section(receivers, (0..plan.receivers.len()).map(PlanRow::Receiver));
    rows.section(budgets, (0..plan.budgets.len()).map(PlanRow::Budget));
    let kubectl = plan.command.as_ref().map(|_| PlanRow::Kubectl);
    rows.section("commands", kubectl.into_iter().chain([PlanRow::Kordon]));
    rows.section(timeline, (0..plan.timeline.len()).map(PlanRow::Moment));
    rows.section("API calls", (0..plan.steps.len()).map(PlanRow::Call));
    rows.section("assumptions", (0..plan.assumptions.len()).map(PlanRow::Assumption));
    rows.section("not modelled", (0..plan.not_modelled.len()).map(PlanRow::NotModelled));
    rows.into_vec()
}

/// Sort key of a pod. Pods that need a decision come first, then pods that leave, by time. Pods that stay come last.
fn urgency(pod: &PodPlan) -> (u8, Timestamp) {
    let class = match &pod.verdict {
        Verdict::Refused { .. } => 0,
        Verdict::Blocked { .. } | Verdict::TwoBudgets { .. } | Verdict::Unknown { .. } => 1,
        Verdict::Waits { .. }
        | Verdict::WaitsForOperator { .. }
        | Verdict::WaitsForController { .. }
        | Verdict::WaitsForNamespace
        | Verdict::WaitsForFinalizer { .. }
        | Verdict::Undecided { .. } => 2,
        Verdict::LeavesAfter { .. } => 3,
        Verdict::Leaves(_) | Verdict::Deleted { .. } | Verdict::Orphaned => 4,
        Verdict::Terminating => 5,
        Verdict::DeletionCancelled => 6,
        Verdict::Skipped(_) | Verdict::Tolerates => 7,
    };
    (class, pod.leaves.likely.unwrap_or(Timestamp::MAX))
}

struct FilterableRow<'a> {
    view: &'a PlanView,
    row: PlanRow,
}

impl Filterable for FilterableRow<'_> {
    fn field(&self, key: &str) -> Option<String> {
        let (PlanRow::Pod(place) | PlanRow::Help(place, _)) = self.row else { return None };
        let pod = self.view.plan.pods.get(place)?;
        match key {
            "pod" | "name" => Some(pod.pod.name.to_string()),
            "ns" | "namespace" => Some(pod.pod.namespace.to_string()),
            "node" => pod.node.as_ref().map(ToString::to_string),
            "verdict" => Some(pod.verdict.column().into()),
            "budget" => pod.verdict.budget().map(ToString::to_string),
            _ => None,
        }
    }

    fn texts(&self, found: &mut dyn FnMut(&str)) {
        let plan = &self.view.plan;
        match self.row {
            PlanRow::Workload(place) => {
                let workload = &self.view.workloads[place];
                [&*workload.namespace, &*workload.owner.1].into_iter().for_each(&mut *found);
                [workload.destinations(), workload.risks()].iter().for_each(|words| found(words));
            }
            PlanRow::Warning(place) => found(&plan.warnings[place].to_string()),
            PlanRow::Surge(place) => found(&plan.surges[place].line(plan.made)),
            PlanRow::Node(place) => {
                found(&plan.nodes[place].node);
                if let NodeChange::Refused { text } = &plan.nodes[place].change {
                    found(text);
                }
            }
            PlanRow::Pod(place) => {
                let pod = &plan.pods[place];
                found(&pod.pod.to_string());
                pod.node.iter().for_each(|node| found(node));
                found(pod.verdict.column());
                found(&pod.verdict.details());
                pod.notes().iter().for_each(|note| found(note));
            }
            PlanRow::Help(pod, help) => {
                found(&plan.pods[pod].pod.to_string());
                plan.pods[pod].help().get(help).into_iter().for_each(|help| found(help));
            }
            PlanRow::Arrival(place) => {
                found(&plan.arrivals[place].pod.to_string());
                found(&plan.arrivals[place].node);
            }
            PlanRow::Receiver(place) => found(&plan.receivers[place].node),
            PlanRow::Moment(place) => {
                let (subject, word, rest) = plan.timeline[place].event.columns();
                [&*subject, word, &*rest].into_iter().for_each(found);
            }
            PlanRow::Budget(place) => found(&plan.budgets[place].budget.to_string()),
            PlanRow::Kubectl => plan.command.iter().for_each(|command| found(command)),
            PlanRow::Kordon => found(&plan.action.kordon()),
            PlanRow::Call(place) => found(&call(&plan.steps[place])),
            PlanRow::Assumption(place) => found(plan.assumptions[place]),
            PlanRow::NotModelled(place) => found(&plan.not_modelled[place].what.to_string()),
        }
    }
}
