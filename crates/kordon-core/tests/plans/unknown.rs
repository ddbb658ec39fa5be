//! A plan does not treat missing data as empty: everything that a plan from incomplete data states as certain is also
//! stated by the plan from complete data.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kordon_core::{
    cluster::{
        Change, Cluster, FeedKind, IntOrPercent, Key, Known, LocalVolume, NodeName, ObjectEvent, Phase,
        ReadBy, Resources, Scope, ScopeRead, TableObject, Version, WorkloadKind,
    },
    placement::Snapshot,
    plan::{
        Action, DrainOptions, LeaveReason, MetadataEdits, MetadataField, Plan, PlanError, PlanPart, Prospect,
        RemovalOptions, TaintEdits, Verdict, Warning,
    },
};
use proptest::prelude::*;

use crate::plan_fixture::{NEWEST, NOW, PlanFixture, not_ready, own, terminating, tolerates};

/// The kinds of objects that kordon does not fully know.
#[derive(Clone, Debug, Default)]
struct Missing {
    kinds: BTreeMap<FeedKind, Known>,
    /// Nodes whose pods are known only from a list of the node's own pods, not from the list of all pods.
    pods_of: BTreeSet<NodeName>,
}

const FORBIDDEN: &str = "User cannot list resource at the cluster scope";

fn forbidden() -> Known {
    Known::Forbidden { error: FORBIDDEN.into() }
}

fn missing(kinds: impl IntoIterator<Item = FeedKind>, known: &Known) -> Missing {
    let kinds = kinds.into_iter().map(|kind| (kind, known.clone())).collect();
    Missing { kinds, pods_of: BTreeSet::new() }
}

/// Returns the cluster as kordon knows it if these kinds are missing. A kind that is not listed yet has only the first
/// half of its objects; a stale kind has the objects of `earlier`.
fn known(now: &Cluster, earlier: &Cluster, missing: &Missing) -> Cluster {
    let mut known = Cluster::default();
    for kind in FeedKind::ALL {
        let state = missing.kinds.get(&kind);
        let source = if matches!(state, Some(Known::Stale { .. })) { earlier } else { now };
        list(&mut known, source, kind, state.unwrap_or(&Known::Live));
        apply(&mut known, Change::Known(kind, state.unwrap_or(&Known::Live).clone()));
    }
    for node in &missing.pods_of {
        read_pods_of(&mut known, now, node);
    }
    known
}

/// Reads the pods of one node.
fn read_pods_of(known: &mut Cluster, now: &Cluster, node: &NodeName) {
    let mut found = Vec::new();
    for pod in now.pods_on(node) {
        found.push(pod.key.clone());
        apply(known, Change::Pod(ObjectEvent::Prefetched((**pod).clone())));
    }
    let (scope, version) = (Scope::PodsOn(node.clone()), Version(u64::MAX));
    apply(known, Change::Read(Box::new(ScopeRead { scope, version, found, by: ReadBy::Request })));
}

fn apply(cluster: &mut Cluster, change: Change) {
    cluster.apply(change, &mut Vec::new());
}

fn list(known: &mut Cluster, source: &Cluster, kind: FeedKind, state: &Known) {
    match kind {
        FeedKind::Nodes => copy(known, source.nodes().iter(), state, Change::Node),
        FeedKind::Pods => copy(known, source.pods().iter(), state, Change::Pod),
        FeedKind::Budgets => copy(known, source.budgets().iter(), state, Change::Budget),
        FeedKind::Workloads(kind) => {
            copy(known, source.workloads(kind).iter(), state, |event| Change::Workload(kind, event));
        }
        FeedKind::Namespaces => copy(known, source.namespaces().iter(), state, Change::Namespace),
        FeedKind::Services => copy(known, source.services().iter(), state, Change::Service),
        FeedKind::Claims => copy(known, source.claims().iter(), state, Change::Claim),
        FeedKind::Volumes => copy(known, source.volumes().iter(), state, Change::Volume),
        FeedKind::StorageClasses => copy(known, source.storage_classes().iter(), state, Change::StorageClass),
        FeedKind::CsiNodes => copy(known, source.csi_nodes().iter(), state, Change::CsiNode),
        FeedKind::CsiDrivers => copy(known, source.csi_drivers().iter(), state, Change::CsiDriver),
        FeedKind::Quotas => copy(known, source.quotas().iter(), state, Change::Quota),
        FeedKind::Leases
        | FeedKind::PriorityClasses
        | FeedKind::Leader
        | FeedKind::DeviceClasses
        | FeedKind::ResourceClaims
        | FeedKind::ResourceSlices
        | FeedKind::DeviceTaintRules
        | FeedKind::ClaimTemplates
        | FeedKind::StorageCapacities
        | FeedKind::CronJobs => {}
    }
}

fn copy<'a, T: TableObject + Clone + PartialEq + 'a>(
    known: &mut Cluster,
    objects: impl Iterator<Item = &'a Arc<T>>,
    state: &Known,
    of: impl Fn(ObjectEvent<T>) -> Change,
) {
    let objects: Vec<T> = objects.map(|object| (**object).clone()).collect();
    let listed = match state {
        Known::Live | Known::Stale { .. } => objects.len(),
        Known::NotListed => objects.len() / 2,
        Known::Forbidden { .. } | Known::Off { .. } | Known::Absent => return,
    };
    apply(known, of(ObjectEvent::ListStarted));
    objects.into_iter().take(listed).for_each(|object| apply(known, of(ObjectEvent::Listed(object))));
    if state.is_known() {
        apply(known, of(ObjectEvent::ListDone));
    }
}

fn plan(cluster: &Cluster, action: &Action) -> Result<Plan, PlanError> {
    Plan::over(action.clone(), cluster, Some(Snapshot::new(cluster, NEWEST)), NEWEST, NOW)
}

/// Returns the definite statements of a plan, or of the error in place of the plan, as text.
fn statements(answer: &Result<Plan, PlanError>) -> BTreeSet<String> {
    let plan = match answer {
        Ok(plan) => plan,
        Err(PlanError::Unknown(_)) => return BTreeSet::new(),
        Err(error) => return [error.to_string()].into(),
    };
    let lacks = |part| plan.gap_of(part).is_some();
    if lacks(PlanPart::Everything) {
        return BTreeSet::new();
    }
    let mut found = BTreeSet::from([
        format!("{} pods", plan.pods.len()),
        format!("changes {:?}", plan.nodes.iter().map(|node| &node.change).collect::<Vec<_>>()),
    ]);
    // The order of the plan's steps is not compared, because it depends on budgets.
    found.extend(plan.steps.iter().map(|step| format!("{step:?}")));
    if plan.is_definite() {
        found.insert(format!("{} {:?}", plan.prospect().word(), plan.needs));
        // The predicted end of a refused plan is not compared, because it assumes flags that the plan lacks.
        if plan.prospect() != Prospect::Refused {
            found.insert(format!("ends {:?}, remain {:?}", plan.totals.ends, remaining(plan)));
        }
    }
    let replaces = !lacks(PlanPart::Workloads) && !lacks(PlanPart::Quotas);
    let counts = !lacks(PlanPart::Budgets) && replaces && !lacks(PlanPart::Placement);
    for pod in &plan.pods {
        let mut say = |what: String| found.insert(format!("{} {what}", pod.pod));
        if matches!(pod.verdict.as_if_granted(), Verdict::Undecided { .. }) {
            assert!(
                pod.leaves.likely.is_none() && pod.gone.likely.is_none(),
                "no time is stated of {}",
                pod.pod
            );
        } else if counts || !rests_on_numbers(&pod.verdict) {
            say(pod.verdict.word().into());
        }
        if pod.lost.is_some() || !lacks(PlanPart::Workloads) {
            say(format!("lost {:?}", pod.lost));
        }
        if counts {
            say(format!("{:?}", pod.quota));
        }
        // Only a pod with a replacement has a landing: the node of the replacement, or why it gets no node.
        if !lacks(PlanPart::Placement) && replaces {
            say(format!("{:?}", pod.landing));
        }
        if !lacks(PlanPart::Workloads) {
            for warning in &pod.warnings {
                say(format!("{warning:?}"));
            }
        }
        if let Some(answer) = pod.answer.as_ref().filter(|_| !lacks(PlanPart::Budgets)) {
            say(format!("answer {}", answer.code));
        }
    }
    if !lacks(PlanPart::Placement) {
        found.insert(format!("arrivals {:?}", plan.arrivals));
    }
    found.extend(
        plan.warnings.iter().filter(|warning| is_definite(warning, counts)).map(|w| format!("{w:?}")),
    );
    found
}

/// Returns the number of pods that stay on the nodes of a drain; `None` if it is unknown.
fn remaining(plan: &Plan) -> Option<usize> {
    let drains = plan.nodes.iter().filter_map(|node| node.drain.as_ref());
    drains.map(|drain| drain.remaining).sum()
}

/// Whether the verdict on a pod depends on the numbers of budgets.
fn rests_on_numbers(verdict: &Verdict) -> bool {
    match verdict.as_if_granted() {
        Verdict::Leaves(LeaveReason::Deleted) | Verdict::Skipped(_) | Verdict::Terminating => false,
        Verdict::Leaves(LeaveReason::Free(free)) => *free != kordon_core::plan::FreeEviction::NoBudget,
        Verdict::Deleted { .. } | Verdict::Orphaned => false,
        Verdict::Tolerates | Verdict::DeletionCancelled => false,
        Verdict::WaitsForNamespace | Verdict::WaitsForFinalizer { .. } | Verdict::TwoBudgets { .. } => false,
        Verdict::Leaves(LeaveReason::BudgetAllows { .. })
        | Verdict::LeavesAfter { .. }
        | Verdict::Waits { .. }
        | Verdict::WaitsForOperator { .. }
        | Verdict::WaitsForController { .. }
        | Verdict::Blocked { .. }
        | Verdict::Refused { .. }
        | Verdict::Undecided { .. }
        | Verdict::Unknown { .. } => true,
    }
}

fn is_definite(warning: &Warning, counts: bool) -> bool {
    match warning {
        Warning::Unknown(_) | Warning::StatusDiffers { .. } => false,
        Warning::BudgetsIgnored { .. }
        | Warning::DrainIncomplete { .. }
        | Warning::QuotaExceeded { .. }
        | Warning::JobFails { .. }
        | Warning::Preempts { .. }
        | Warning::GroupRestarts { .. }
        | Warning::ComesBack { .. }
        | Warning::MayTimeOut { .. }
        | Warning::WaitsForUncordon(_)
        | Warning::EvictedAgain { .. }
        | Warning::CapacityExhausted { .. } => counts,
        Warning::ZoneLosesLastReady { .. }
        | Warning::Switchover { .. }
        | Warning::NoSchedulableNode
        | Warning::ControlPlane { .. }
        | Warning::KubeletDown { .. }
        | Warning::UnselectedRemain { .. }
        | Warning::OutOfService { .. }
        | Warning::MachineRuns { .. }
        | Warning::NodeHeld { .. }
        | Warning::OwnedPodsDeleted { .. }
        | Warning::ControllersTaint { .. }
        | Warning::TaintsDoNotEvict
        | Warning::CordonStands { .. }
        | Warning::CordonNoted { .. }
        | Warning::Claimed { .. }
        | Warning::Maintained { .. } => true,
    }
}

/// A random pod: its workload, its node, and a number that selects a special property.
type RandomPod = (usize, usize, u8);

const NODES: [&str; 3] = ["n0", "n1", "n2"];
const WORKLOADS: [(WorkloadKind, &str); 4] = [
    (WorkloadKind::ReplicaSet, "web"),
    (WorkloadKind::ReplicaSet, "api"),
    (WorkloadKind::DaemonSet, "agent"),
    (WorkloadKind::StatefulSet, "db"),
];

fn add_pods(fixture: &mut PlanFixture, pods: &[RandomPod], prefix: &str) {
    for (place, (workload, node, special)) in pods.iter().enumerate() {
        let owner = WORKLOADS.get(*workload);
        fixture.pod(&format!("{prefix}{place}"), NODES[node % NODES.len()], |pod| {
            if let Some((kind, name)) = owner {
                own(pod, *kind, name);
            }
            match special {
                0 => not_ready(pod),
                1 => terminating(pod, 20),
                2 => pod.storage.add(LocalVolume::EmptyDir),
                3 => tolerates(pod, "flaky", None),
                4 => Arc::make_mut(&mut pod.resources).requests.cpu_milli = 3000,
                5 => pod.node = None,
                _ => {}
            }
        });
    }
}

prop_compose! {
    /// Generates a cluster, the same cluster slightly earlier, and an action.
    fn scenes()(
        pods in prop::collection::vec((0..6usize, 0..3usize, 0..20u8), 0..10),
        more in prop::collection::vec((0..6usize, 0..3usize, 0..20u8), 0..3),
        replicas in prop::collection::vec(0..4i32, 4),
        gone in prop::option::weighted(0.2, 0..4usize),
        budgets in prop::collection::vec(prop::option::of((0..4u32, prop::bool::ANY)), 4),
        is_terminating in prop::bool::weighted(0.1),
        kind in 0..9usize,
        nodes in prop::sample::subsequence(&NODES[..], 1..=2),
        flags in any::<u8>(),
        quota in prop::option::of(0..6i64),
    ) -> (Cluster, Cluster, Action) {
        let mut fixture = PlanFixture::new(&NODES);
        for node in NODES {
            fixture.node(node, |node| {
                node.allocatable = Resources { cpu_milli: 4000, memory_bytes: 1 << 34, pods: 10 };
            });
        }
        for (place, (kind, name)) in WORKLOADS.iter().enumerate() {
            if gone != Some(place) {
                fixture.owner(*kind, name, replicas[place]);
            }
            if let Some((number, at_most)) = budgets[place] {
                fixture.budget(name, |budget| {
                    let number = Some(IntOrPercent::Int(number.cast_signed()));
                    let of = if at_most { &mut budget.max_unavailable } else { &mut budget.min_available };
                    *of = number;
                });
            }
        }
        add_pods(&mut fixture, &pods, "p");
        if let Some(left) = quota {
            let used = i64::try_from(pods.len()).expect("few");
            fixture.quota("team", &[("pods", used + left / 2, used)], &[]);
        }
        fixture.sync();
        let earlier = fixture.cluster.clone();
        add_pods(&mut fixture, &more, "m");
        fixture.namespace("default", is_terminating);
        fixture.sync();
        let action = action(kind, &nodes, &fixture.cluster, flags);
        (fixture.cluster, earlier, action)
    }
}

fn action(kind: usize, nodes: &[&str], cluster: &Cluster, flags: u8) -> Action {
    let nodes: Vec<NodeName> = nodes.iter().map(|node| NodeName::from(*node)).collect();
    let pods = || cluster.pods().iter().map(|pod| pod.key.clone()).take(3).collect::<Vec<Key>>();
    let taints = |text: &str| TaintEdits::parse([text], false).expect("taints");
    let options = || DrainOptions {
        force: flags & 1 > 0,
        ignore_daemonsets: flags & 2 > 0,
        delete_emptydir_data: flags & 4 > 0,
        disable_eviction: flags & 24 == 0,
        ..DrainOptions::default()
    };
    match kind {
        0 => Action::Cordon { nodes },
        1 => Action::Uncordon { nodes },
        2 => Action::Taint { nodes, edits: taints("flaky:NoSchedule") },
        3 => Action::Taint { nodes, edits: taints("flaky:NoExecute") },
        4 => Action::Metadata {
            nodes,
            edits: MetadataEdits::parse(MetadataField::Labels, ["a=b"], false).expect("labels"),
        },
        5 => Action::Evict { pods: pods(), options: RemovalOptions::default() },
        6 => Action::Delete { pods: pods(), options: RemovalOptions::default() },
        _ => Action::Drain { nodes, options: options() },
    }
}

fn random_missing() -> impl Strategy<Value = Missing> {
    let state = prop_oneof![
        Just(forbidden()),
        Just(Known::Off { flag: "--no-pods" }),
        Just(Known::NotListed),
        Just(Known::Stale { since: NOW }),
    ];
    let kinds = prop::sample::subsequence(&FeedKind::ALL[..], 0..4);
    let kinds =
        (kinds, prop::bool::ANY, prop::collection::vec(state, 6)).prop_map(|(kinds, pods, states)| {
            let kinds = kinds.into_iter().chain(pods.then_some(FeedKind::Pods));
            kinds.zip(states).collect::<BTreeMap<_, _>>()
        });
    let pods_of = prop::sample::subsequence(&NODES[..], 0..=3)
        .prop_map(|nodes| nodes.into_iter().map(NodeName::from).collect());
    (kinds, pods_of).prop_map(|(kinds, pods_of)| Missing { kinds, pods_of })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn whatever_is_stated_with_less_knowledge_is_stated_with_full_knowledge(
        (now, earlier, action) in scenes(),
        missing in random_missing(),
    ) {
        let (full, less) = (plan(&now, &action), plan(&known(&now, &earlier, &missing), &action));
        let (stated, of_full) = (statements(&less), statements(&full));
        let wrong: Vec<&String> = stated.difference(&of_full).collect();
        prop_assert!(wrong.is_empty(), "{action:?}: stated without ground: {wrong:#?}");
        if let (Ok(less), Ok(full)) = (less, full)
            && less.gap_of(PlanPart::Everything).is_none()
            && let (Some(least), Some(end)) = (less.totals.not_before, full.totals.ends.likely)
            && matches!(full.prospect(), Prospect::Completes)
        {
            prop_assert!(end >= least, "{action:?}: it ends at {end:?}, and was said not to before {least:?}");
        }
    }

    #[test]
    fn with_nothing_missing_nothing_is_unknown((now, earlier, action) in scenes()) {
        let plan = plan(&known(&now, &earlier, &Missing::default()), &action).expect("everything is known");
        prop_assert!(plan.is_definite() && plan.gaps().next().is_none());
    }
}

/// Two nodes with two replicas of a workload under a budget, and a DaemonSet.
fn shop() -> Cluster {
    let mut fixture = PlanFixture::new(&["n0", "n1"]);
    fixture.replica_set("web", 2, &["n0", "n1"]);
    fixture.owner(WorkloadKind::DaemonSet, "agent", 2);
    fixture.pod("agent-0", "n1", |pod| own(pod, WorkloadKind::DaemonSet, "agent"));
    fixture.budget("web", |budget| budget.min_available = Some(IntOrPercent::Int(1)));
    fixture.sync().cluster.clone()
}

fn drain_of(node: &str) -> Action {
    let options = DrainOptions { ignore_daemonsets: true, ..DrainOptions::default() };
    Action::Drain { nodes: vec![node.into()], options }
}

fn refusal(cluster: &Cluster, action: &Action) -> String {
    plan(cluster, action).map(|plan| plan.summary()).expect_err("its outcome is unknown").to_string()
}

#[test]
fn a_drain_without_the_right_to_list_pods_is_refused_and_names_it() {
    let full = shop();
    let less = known(&full, &full, &missing([FeedKind::Pods], &forbidden()));
    let text = "outcome unknown: pods cannot be listed (missing permission: list pods)";
    assert_eq!(refusal(&less, &drain_of("n0")), text);
    let late = known(&full, &full, &missing([FeedKind::Pods], &Known::NotListed));
    assert_eq!(refusal(&late, &drain_of("n0")), "outcome unknown: pods are not listed yet");
    let evict =
        Action::Evict { pods: vec![Key::new("default", "web-0")], options: RemovalOptions::default() };
    assert_eq!(refusal(&less, &evict), text, "and the pod is not said to be gone");
}

#[test]
fn what_evicts_nobody_needs_no_pods() {
    let full = shop();
    let less = known(&full, &full, &missing([FeedKind::Pods], &forbidden()));
    let taint = |text: &str| {
        let edits = TaintEdits::parse([text], false).expect("a taint");
        Action::Taint { nodes: vec!["n0".into()], edits }
    };
    let cordon = Action::Cordon { nodes: vec!["n0".into()] };
    for action in [cordon, taint("a=b:NoSchedule"), taint("a=b:PreferNoSchedule")] {
        let plan = plan(&less, &action).expect("it rests on nodes alone");
        assert_eq!((plan.prospect(), plan.is_definite()), (Prospect::Completes, true));
    }
    assert!(refusal(&less, &taint("a=b:NoExecute")).contains("list pods"));
}

#[test]
fn with_the_pods_of_its_node_alone_a_drain_is_likely_and_says_what_it_does_not_know() {
    let full = shop();
    let off = Known::Off { flag: "--no-pods" };
    let missing = Missing { pods_of: ["n0".into()].into(), ..missing([FeedKind::Pods], &off) };
    let less = known(&full, &full, &missing);
    let plan = plan(&less, &drain_of("n0")).expect("the pods of n0 are known");
    assert_eq!((plan.prospect(), plan.is_definite(), plan.totals.leave_now), (Prospect::Completes, false, 1));
    let texts: Vec<String> = plan.gaps().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "which pods are recreated is not known for certain: pods are not read (--no-pods)",
            "budgets have the numbers of their status: pods are not read (--no-pods)",
            "where pods land is unknown: pods are not read (--no-pods)",
        ]
    );
    assert!(refusal(&less, &drain_of("n1")).contains("--no-pods"), "those of n1 are not");
}

#[test]
fn without_budgets_a_drain_is_planned_and_says_that_it_does_not_know_whether_one_blocks() {
    let full = shop();
    let less = known(&full, &full, &missing([FeedKind::Budgets], &forbidden()));
    let plan = plan(&less, &drain_of("n0")).expect("its pods are known");
    assert_eq!((plan.prospect(), plan.is_definite(), plan.totals.undecided), (Prospect::Unknown, false, 1));
    assert_eq!((plan.ends().as_str(), plan.totals.ends.likely), ("not before ~13s", None));
    let verdict = plan.pods[0].verdict.to_string();
    assert_eq!(verdict, "undecided: leaves unless a PodDisruptionBudget blocks it");
    let texts: Vec<String> = plan.gaps().map(ToString::to_string).collect();
    let list = "budgets cannot be listed (missing permission: list poddisruptionbudgets.policy)";
    assert_eq!(
        texts,
        [
            format!("whether a PodDisruptionBudget blocks an eviction is unknown: {list}"),
            format!("where pods land is unknown: {list}"),
        ]
    );
    assert_eq!(plan.steps.len(), 2, "the server checks the budgets: it can be applied");
}

#[test]
fn pods_that_no_budget_protects_need_no_budgets() {
    let mut fixture = PlanFixture::new(&["n0", "n1"]);
    fixture.owner(WorkloadKind::ReplicaSet, "web", 2);
    fixture.pod("web-0", "n0", |pod| {
        own(pod, WorkloadKind::ReplicaSet, "web");
        pod.phase = Phase::Pending;
    });
    fixture.pod("web-1", "n0", |pod| {
        own(pod, WorkloadKind::ReplicaSet, "web");
        terminating(pod, 20);
    });
    let full = fixture.sync().cluster.clone();
    let less = known(&full, &full, &missing([FeedKind::Budgets], &forbidden()));
    let plan = plan(&less, &drain_of("n0")).expect("a plan");
    assert_eq!((plan.prospect(), plan.is_definite()), (Prospect::Completes, true));
}

#[test]
fn deletions_need_no_budgets_and_say_that_they_ignore_some() {
    let full = shop();
    let less = known(&full, &full, &missing([FeedKind::Budgets], &forbidden()));
    let pods = vec![Key::new("default", "web-0")];
    let plan = plan(&less, &Action::Delete { pods, options: RemovalOptions::default() }).expect("a deletion");
    assert_eq!((plan.prospect(), plan.is_definite()), (Prospect::Completes, true));
    assert!(plan.warnings.contains(&Warning::BudgetsIgnored { pods: 1, blocked: None }));
    assert!(plan.pods[0].answer.is_none());
}
