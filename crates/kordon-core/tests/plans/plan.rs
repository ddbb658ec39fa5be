//! Plans, scenario by scenario (docs/upstream/operator-actions.md#10).

mod budgets;
mod drained_pods;
mod node_changes;

use std::{collections::BTreeSet, sync::Arc};

use kordon_core::{
    cluster::{JobLimits, Key, LocalVolume, Name, Namespace, NodeName, Phase, Pod, WorkloadKind},
    engine::{Origin, ServerVersion, Settings},
    operation::Confirmation,
    plan::{
        Action, Departing, DrainOptions, Environment, Estimate, JobFailure, Landing, LeaveReason, LostNodes,
        NotNeeded, NotRecreated, OutcomeKind, Permission, Plan, PlanEvent, PodOutcome, Prospect, Quality,
        RemovalOptions, Stragglers, TaintEdits, Verdict, Warning,
        failover::{failover, leave_lost_nodes, leave_running_nodes},
        warning::PodWarning,
    },
};
use kordon_time::{ClusterTime, Span};
use proptest::prelude::*;
use serde_json::json;

use crate::plan_fixture::{
    NEWEST, NOW, PlanFixture, at, least, of, own, percent, starting, taint, terminating, tolerates,
};

fn nodes(names: &[&str]) -> Vec<NodeName> {
    names.iter().map(|name| NodeName::from(*name)).collect()
}

fn drained(fixture: &PlanFixture) -> Plan {
    fixture.drain(&["n1"], DrainOptions::default())
}

fn timed(seconds: i64) -> DrainOptions {
    DrainOptions { timeout: Some(Span::from_secs(seconds)), ..DrainOptions::default() }
}

fn leaves(plan: &Plan, pod: &str) -> bool {
    matches!(of(plan, pod).verdict, Verdict::Leaves(_))
}

fn edit(fixture: &PlanFixture, words: &[&str], overwrite: bool) -> Plan {
    let edits = TaintEdits::parse(words.iter().copied(), overwrite).expect("taints");
    fixture.plan(Action::Taint { nodes: nodes(&["n1"]), edits })
}

fn five(make: impl FnOnce(&mut kordon_core::cluster::Budget)) -> PlanFixture {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture.replica_set("web", 5, &["n1", "n1", "n1", "n1", "n1"]).budget("web", make).sync();
    fixture
}

/// Scenario 54: In a terminating namespace the eviction of a running pod is refused and retried; a terminating
/// pod is waited for.
#[test]
fn in_a_terminating_namespace_evictions_are_refused_and_terminating_pods_waited_for() {
    let mut fixture = PlanFixture::new(&["n1"]);
    fixture.replica_set("web", 2, &["n1", "n1"]).pod("web-1", "n1", |pod| terminating(pod, 20));
    fixture.namespace("default", true);
    assert_eq!(fixture.evict("web-0").0, 403);
    let plan = drained(&fixture);
    assert_eq!(of(&plan, "web-0").verdict, Verdict::WaitsForNamespace);
    assert_eq!(
        (of(&plan, "web-1").verdict.clone(), at(of(&plan, "web-1").gone.likely)),
        (Verdict::Terminating, Some(20))
    );
}

/// Scenario 62: A ReplicaSet and a Job replace an evicted pod at once, a StatefulSet once the old pod is gone.
#[test]
fn only_a_statefulset_waits_with_the_successor_until_the_old_pod_is_gone() {
    let mut fixture = PlanFixture::new(&["n1"]);
    let kinds =
        [("rs", WorkloadKind::ReplicaSet), ("sts", WorkloadKind::StatefulSet), ("job", WorkloadKind::Job)];
    for (name, kind) in kinds {
        fixture.owner(kind, name, 1).pod(&format!("{name}-0"), "n1", |pod| {
            own(pod, kind, name);
            pod.finalizers = [Name::from("example.com/hold")].into();
        });
    }
    let plan = drained(&fixture);
    let replaced = |pod: &str| of(&plan, pod).landing.is_some();
    assert_eq!((replaced("rs-0"), replaced("job-0"), replaced("sts-0")), (true, true, false));
}

/// Scenario 63: Of a StatefulSet's two pods on the node, the second waits until the first is gone, recreated and
/// Ready.
#[test]
fn the_second_pod_of_a_statefulset_waits_until_the_first_is_gone_recreated_and_ready() {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture.owner(WorkloadKind::StatefulSet, "db", 3);
    for (pod, node) in [("db-0", "n1"), ("db-1", "n1"), ("db-2", "n2")] {
        fixture.pod(pod, node, |pod| {
            own(pod, WorkloadKind::StatefulSet, "db");
            pod.grace = Span::from_secs(60);
        });
    }
    fixture.budget("db", |budget| budget.min_available = least(2)).sync();
    (fixture.environment.stop, fixture.environment.ready) = (Span::from_secs(60), Some(Span::from_secs(40)));
    let plan = drained(&fixture);
    assert_eq!(at(of(&plan, "db-0").gone.likely), Some(60));
    assert_eq!(at(of(&plan, "db-0").ready_again), Some(100));
    let second = of(&plan, "db-1");
    let behind = vec![Key::new("default", "db-0")];
    let budget = Key::new("default", "db");
    assert_eq!(second.verdict, Verdict::LeavesAfter { budget, recoveries: 1, behind, operator: None });
    assert_eq!((at(second.leaves.likely), at(second.gone.likely)), (Some(105), Some(165)));
    assert_eq!(at(plan.totals.ends.likely), Some(165));
}

/// Environment whose pods end 5 s after the start of their deletion, unless they are stragglers.
#[derive(Clone, Debug)]
struct SometimesStubborn;

/// Shares of pods that use up their grace period because they ignore SIGTERM, and of pods that use part of it to finish
/// their work.
const STRAGGLERS: Stragglers = Stragglers { use_up_grace: 0.2, use_part_of_grace: 0.3 };

impl Environment for SometimesStubborn {
    fn time_to_terminate(&self, _pod: &Pod, grace: Span) -> Estimate {
        let likely = Some(Span::from_secs(5));
        Estimate { soonest: Some(Span::ZERO), likely, latest: Some(grace), quality: Quality::Guess }
    }

    fn land(&mut self, _pod: &Pod, _closed: &BTreeSet<NodeName>) -> Landing {
        Landing::Unknown
    }

    fn time_to_ready(&self, _pod: &Pod, _landing: &Landing) -> Estimate {
        Estimate::exactly(Span::from_secs(1))
    }

    fn stragglers(&self) -> Stragglers {
        STRAGGLERS
    }
}

/// Which pods are stragglers is random. A node is drained when its last pod has ended, and the drain ends with its
/// slowest node. The likely end is the average over these possibilities, also if only few pods have a long grace
/// period.
#[test]
fn a_drain_likely_ends_when_its_last_straggler_does_on_average() {
    const GRACES: [i64; 8] = [30, 30, 30, 30, 30, 45, 90, 180];
    const NODES: usize = 8;
    const PARALLEL: usize = 4;
    let names: Vec<String> = (0..NODES).map(|number| format!("n{number}")).collect();
    let mut fixture = PlanFixture::new(&names.iter().map(String::as_str).collect::<Vec<_>>());
    for node in &names {
        for (number, grace) in GRACES.iter().enumerate() {
            fixture.pod(&format!("{node}-{number}"), node, |pod| pod.grace = Span::from_secs(*grace));
        }
    }
    let options = DrainOptions { force: true, parallel: PARALLEL, ..DrainOptions::default() };
    let action = Action::Drain { nodes: names.iter().map(|name| NodeName::from(&**name)).collect(), options };
    let plan = Plan::new(action, &fixture.cluster, &SometimesStubborn, NEWEST, NOW).expect("a plan");
    let likely = plan.totals.ends.likely.expect("it ends").since(NOW).as_secs_f64();

    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut node = || {
        let Stragglers { use_up_grace, use_part_of_grace } = STRAGGLERS;
        let ends = GRACES.map(|grace| match random.f64() {
            share if share < use_up_grace => grace,
            share if share < use_up_grace + use_part_of_grace => random.i64(5..=grace),
            _ => 5,
        });
        ends.into_iter().max().unwrap_or_default()
    };
    let mut drain = || {
        let mut free_at = [0; PARALLEL];
        for _ in 0..NODES {
            let first = free_at.iter_mut().min().expect("several");
            *first += node();
        }
        free_at.into_iter().max().unwrap_or_default()
    };
    const DRAINS: i32 = 4000;
    let average = (0..DRAINS).map(|_| drain() as f64).sum::<f64>() / f64::from(DRAINS);
    assert!((likely / average - 1.0).abs() < 0.1, "likely {likely} s, {average} s on average");
}

#[test]
fn a_pod_that_a_taint_deletes_says_which_budget_is_ignored_and_what_its_replacement_waits_for() {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture.replica_set("web", 1, &["n1"]).budget("web", |budget| budget.min_available = least(1)).sync();
    fixture.owner(WorkloadKind::StatefulSet, "db", 1);
    fixture.pod("db-0", "n1", |pod| own(pod, WorkloadKind::StatefulSet, "db"));
    let plan = edit(&fixture, &["maintenance:NoExecute"], false);
    let notes = |pod: &str| of(&plan, pod).notes().join("; ");
    assert!(notes("web-0").contains("budget default/web ignored"), "{}", notes("web-0"));
    assert!(notes("db-0").contains("no replacement until the old pod is gone"), "{}", notes("db-0"));
    assert!(!notes("db-0").contains("budget") && !notes("web-0").contains("old pod"));
}

/// Scenario 64: A NoExecute taint deletes pods by their tolerations: at once, after the given time, or never.
/// Budgets do not count.
#[test]
fn a_noexecute_taint_names_every_deleted_pod_with_its_time_and_ignores_budgets() {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture
        .replica_set("web", 3, &["n1", "n1", "n1"])
        .budget("web", |budget| budget.min_available = least(3))
        .sync();
    fixture.pod("web-1", "n1", |pod| tolerates(pod, "maintenance", Some(30)));
    fixture.pod("web-2", "n1", |pod| tolerates(pod, "maintenance", None));
    let plan = edit(&fixture, &["maintenance:NoExecute"], false);
    let key = || Name::from("maintenance");
    assert_eq!(of(&plan, "web-0").verdict, Verdict::Deleted { at: NOW, taint: key() });
    assert_eq!(of(&plan, "web-1").verdict, Verdict::Deleted { at: NOW + Span::from_secs(30), taint: key() });
    assert_eq!(of(&plan, "web-2").verdict, Verdict::Tolerates);
    assert!(plan.warnings.contains(&Warning::BudgetsIgnored { pods: 2, blocked: Some(2) }));
    let mild = edit(&fixture, &["maintenance:NoSchedule"], false);
    assert!(mild.pods.is_empty(), "no other effect touches a running pod");
    fixture.node("n1", |node| node.taints = [taint("maintenance:NoExecute")].into());
    let untainted = edit(&fixture, &["maintenance-"], false);
    let verdicts: Vec<_> = untainted.pods.iter().map(|pod| pod.verdict.word()).collect();
    assert_eq!(verdicts, ["deletionCancelled", "deletionCancelled", "tolerates"]);
    fixture.node("n1", |node| {
        let added = Some(ClusterTime::new(NOW + Span::from_secs(-20)));
        node.taints =
            [kordon_core::cluster::Taint { time_added: added, ..taint("maintenance:NoExecute") }].into();
    });
    fixture.pod("web-1", "n1", |pod| tolerates(pod, "", Some(30)));
    let again = edit(&fixture, &["other:NoExecute"], false);
    assert_eq!(at(of(&again, "web-1").leaves.likely), Some(10), "a timer that runs is not lengthened");
}

#[test]
fn a_noexecute_taint_deletes_nobody_where_the_settings_say_that_no_controller_does() {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture.replica_set("web", 1, &["n1"]).sync();
    let plan_of = |minor, flag, value| {
        let mut settings = Settings::defaults(ServerVersion::new(1, minor));
        settings.set(flag, value, Origin::Override).expect("valid");
        let edits = TaintEdits::parse(["maintenance:NoExecute"], false).expect("a taint");
        let action = Action::Taint { nodes: nodes(&["n1"]), edits };
        Plan::new(action, &fixture.cluster, &fixture.environment, &settings, NOW).expect("the node is there")
    };
    for (minor, flag, value, deletes) in [
        (26, "enable-taint-manager", "false", false),
        (28, "controllers", "*,-node-lifecycle-controller", false),
        (28, "controllers", "*,-taint-eviction-controller", true),
        (36, "controllers", "*,-taint-eviction-controller", false),
        (36, "controllers", "*,-node-lifecycle-controller", true),
        (36, "node-eviction-rate", "0", true),
    ] {
        let plan = plan_of(minor, flag, value);
        assert_eq!(plan.pods.len(), usize::from(deletes), "1.{minor} --{flag}={value}");
        assert_eq!(
            plan.warnings.contains(&Warning::TaintsDoNotEvict),
            !deletes,
            "1.{minor} --{flag}={value}"
        );
    }
}

/// Kubernetes 1.37 `job/job_controller.go`, `syncJob`: `pastActiveDeadline` fails the Job and deletes its pods.
#[test]
fn a_job_fails_if_its_deadline_passes_before_the_replacement_is_ready() {
    let failure = |seconds: i64| {
        let mut fixture = PlanFixture::new(&["n1", "n2"]);
        let deadline = Some(ClusterTime::new(NOW + Span::from_secs(seconds)));
        fixture.workload(WorkloadKind::Job, "train", 1, |workload| {
            workload.job = Some(JobLimits { backoff_limit: 6, deadline, ..JobLimits::default() }.into());
        });
        fixture.pod("train-0", "n1", |pod| own(pod, WorkloadKind::Job, "train"));
        let plan = drained(&fixture);
        (of(&plan, "train-0").lost, at(of(&plan, "train-0").ready_again))
    };
    assert_eq!(failure(21), (None, Some(20)), "created after a back-off of 10 s, Ready after 10 s");
    assert_eq!(failure(15), (Some(NotRecreated::JobFails(JobFailure::DeadlineExceeded)), None));
}

/// Scenario 68: Where evictions are allowed in one namespace only, the pods of the other are refused for lack of
/// permission.
#[test]
fn missing_permissions_are_named_by_namespace() {
    let mut fixture = PlanFixture::new(&["n1"]);
    fixture.replica_set("web", 1, &["n1"]);
    let plan = drained(&fixture);
    let missing: Vec<String> =
        plan.missing(|permission| permission.subresource != "eviction").map(ToString::to_string).collect();
    assert_eq!(missing, ["create pods/eviction in default"]);
    let eviction = Permission::on_pods("create", "eviction", &Namespace::from("default"));
    assert_eq!((eviction.group, eviction.resource), ("", "pods"), "not policy/evictions");
    let deleting = fixture.drain(&["n1"], DrainOptions { disable_eviction: true, ..DrainOptions::default() });
    assert!(deleting.permissions.iter().any(|permission| permission.verb == "delete"));
}

#[test]
fn pods_that_nobody_should_lose_sight_of_are_marked() {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture.replica_set("solo", 1, &["n1"]).replica_set("pair", 2, &["n1", "n1"]).replica_set(
        "web",
        3,
        &["n1", "n2"],
    );
    fixture.pod("web-0", "n1", |pod| tolerates(pod, "", None));
    fixture.replica_set("left", 1, &["n1", "n2"]).pod("left-0", "n1", |pod| terminating(pod, 20));
    let plan = drained(&fixture);
    let marks = |pod: &str| of(&plan, pod).warnings.iter().copied().collect::<Vec<_>>();
    assert_eq!(marks("solo-0"), [PodWarning::SingleReplica]);
    assert_eq!(
        (marks("pair-0"), marks("pair-1")),
        (vec![PodWarning::LastReady], vec![PodWarning::LastReady])
    );
    assert_eq!(marks("web-0"), [PodWarning::MayReturn]);
    assert_eq!(marks("left-0"), [], "its successor is Ready on n2");
}

#[test]
fn deleting_pods_asks_no_budget_and_says_how_many_it_passes_by() {
    let fixture = five(|budget| budget.min_available = least(5));
    let pods = vec![Key::new("default", "web-0"), Key::new("default", "web-1")];
    let options = RemovalOptions { grace: Some(Span::ZERO), ..RemovalOptions::default() };
    let delete = || Action::Delete { pods: pods.clone(), options };
    let plan = fixture.plan(delete());
    assert_eq!(of(&plan, "web-0").verdict, Verdict::Leaves(LeaveReason::Deleted));
    assert!(plan.warnings.contains(&Warning::BudgetsIgnored { pods: 2, blocked: Some(2) }));
    let loose = five(|budget| budget.min_available = least(1)).plan(delete());
    assert!(!loose.warnings.iter().any(|warning| warning.word() == "budgetsIgnored"), "it would allow both");
    assert_eq!(
        plan.command.as_deref(),
        Some("kubectl delete pod web-0 web-1 -n default --grace-period=0 --force")
    );
    let call = plan.steps[0].call();
    assert_eq!((call.method, &call.body["gracePeriodSeconds"]), ("DELETE", &json!(0)));
    assert_eq!(call.body["preconditions"], json!({"uid": "Pod/web-0"}));
}

/// The plan has the numbers of the worked example in docs/upstream/operator-actions.md#6.9.
#[test]
fn the_worked_example_comes_out_as_worked() {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture.replica_set("web", 5, &["n2", "n1", "n1", "n2", "n2"]);
    fixture.budget("web", |budget| budget.max_unavailable = percent(25));
    fixture.owner(WorkloadKind::StatefulSet, "db", 3).owner(WorkloadKind::DaemonSet, "agent", 0);
    fixture.owner(WorkloadKind::Job, "job-x", 1);
    for (pod, node) in [("db-0", "n1"), ("db-1", "n2"), ("db-2", "n2")] {
        fixture.pod(pod, node, |pod| {
            own(pod, WorkloadKind::StatefulSet, "db");
            pod.grace = Span::from_secs(60);
        });
    }
    fixture.budget("db", |budget| budget.min_available = least(2));
    fixture.pod("agent", "n1", |pod| own(pod, WorkloadKind::DaemonSet, "agent"));
    fixture.pod("kube-proxy", "n1", |pod| pod.mirror = true);
    fixture.pod("job-x", "n1", |pod| {
        own(pod, WorkloadKind::Job, "job-x");
        pod.storage.add(LocalVolume::EmptyDir);
    });
    fixture.pod("tmp", "n1", |pod| pod.phase = Phase::Succeeded).sync();
    fixture.environment.stop = Span::MAX;
    let options =
        DrainOptions { ignore_daemonsets: true, delete_emptydir_data: true, ..DrainOptions::default() };
    let plan = fixture.drain(&["n1"], options);
    assert_eq!((plan.totals.leave_now, plan.totals.stay, plan.totals.leave_later), (5, 2, 0));
    assert_eq!((at(plan.totals.ends.likely), plan.totals.data_lost), (Some(60), 1));
    assert!(
        matches!(&of(&plan, "db-0").verdict, Verdict::Leaves(LeaveReason::BudgetAllows { numbers, .. }) if numbers.allowed == 1)
    );
}

/// A plan depends on nothing but the snapshot of the cluster.
#[test]
fn the_same_snapshot_gives_the_same_plan() {
    let mut fixture = five(|budget| budget.max_unavailable = percent(25));
    fixture.replica_set("api", 3, &["n1", "n2", "n2"]);
    let options = DrainOptions { parallel: 2, ..DrainOptions::default() };
    assert_eq!(fixture.drain(&["n1", "n2"], options.clone()), fixture.drain(&["n1", "n2"], options));
}

proptest! {
    /// Invariants for all budgets and pods. A pod leaves only when its budget allows the eviction at that moment. A pod
    /// waits forever only under an exhausted budget.
    #[test]
    fn no_budget_is_overdrawn(
        places in prop::collection::vec((0..3_usize, prop::option::of(0..3_i64)), 1..12),
        missing in 0..3_i32,
        bound in 0..14_i32,
        kind in 0..3_u8,
        (stop, ready, room) in (0..40_i64, prop::option::of(0..30_i64), 0..6_usize),
        parallel in 1..3_usize,
    ) {
        let nodes = ["n1", "n2", "n3"];
        let mut fixture = PlanFixture::new(&nodes);
        let on: Vec<&str> = places.iter().map(|(node, _)| nodes[*node]).collect();
        let replicas = i32::try_from(on.len()).expect("few") + missing;
        fixture.replica_set("web", replicas, &on);
        // Each pod is Ready or, if it has an `age`, was created `age` times ten seconds ago and is still starting.
        for (place, (node, age)) in places.iter().enumerate() {
            if let Some(age) = age {
                fixture.pod(&format!("web-{place}"), nodes[*node], |pod| starting(pod, age * 10));
            }
        }
        fixture.budget("web", |budget| match kind {
            0 => budget.min_available = least(bound),
            1 => budget.max_unavailable = least(bound),
            _ => budget.max_unavailable = percent(bound * 7),
        }).sync();
        (fixture.environment.stop, fixture.environment.room) = (Span::from_secs(stop), room);
        fixture.environment.ready = ready.map(Span::from_secs);
        let plan = fixture.drain(&["n1", "n2"], DrainOptions { parallel, ..DrainOptions::default() });

        let [_, desired, mut healthy, _] = fixture.status("web");
        let was_ready = |pod: &Key| fixture.cluster.pod(pod).expect("planned").is_ready();
        for moment in &plan.timeline {
            match &moment.event {
                PlanEvent::Leaves { pod } if was_ready(pod) => {
                    healthy -= 1;
                    prop_assert!(healthy >= desired, "{pod} leaves at {}: {healthy} of {desired}", moment.at);
                }
                PlanEvent::Ready { .. } | PlanEvent::Started { .. } => healthy += 1,
                _ => {}
            }
        }
        for pod in plan.pods.iter().filter(|pod| pod.leaves.likely.is_none() && was_ready(&pod.pod)) {
            prop_assert!(healthy <= desired, "{} waits, and {healthy} of {desired} are healthy", pod.pod);
            prop_assert!(matches!(pod.verdict, Verdict::Waits { .. } | Verdict::Blocked { .. }), "{:?}", pod.verdict);
        }
        let after = plan.budgets.first().map(|budget| budget.after.numbers.healthy);
        prop_assert!(after.is_none_or(|after| after == healthy));
    }
}

/// `gcOrphaned` (pkg/controller/podgc/gc_controller.go, 1.37): the collector checks every 20 s. After a quarantine of
/// 40 s it deletes every pod of the missing node without a grace period. A DaemonSet does not recreate its pod, because
/// the node is gone.
#[test]
fn the_pods_of_a_deleted_node_are_left_to_the_garbage_collector() {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture
        .replica_set("web", 2, &["n1", "n2"])
        .budget("web", |budget| budget.min_available = least(2))
        .owner(WorkloadKind::DaemonSet, "agent", 2)
        .pod("agent-1", "n1", |pod| own(pod, WorkloadKind::DaemonSet, "agent"))
        .pod("held", "n1", |pod| pod.finalizers = ["a.b/keep".into()].into())
        .sync();
    let action = || Action::DeleteNode { nodes: nodes(&["n1"]) };
    let plan = fixture.plan(action());
    let web = of(&plan, "web-0");
    assert_eq!(web.verdict.word(), "orphaned");
    assert_eq!([web.gone.soonest, web.gone.likely, web.gone.latest].map(at), [Some(40), Some(50), Some(80)]);
    assert_eq!(of(&plan, "agent-1").outcome, PodOutcome::NotRecreated(NotNeeded::NodeGone));
    assert_eq!(of(&plan, "held").gone.likely, None, "a finalizer keeps it");
    assert_eq!((plan.totals.ends.likely, plan.prospect()), (None, Prospect::Stalls));
    assert_eq!(plan.command.as_deref(), Some("kubectl delete node n1"));
    let [step] = &plan.steps[..] else { panic!("{:?}", plan.steps) };
    let call = step.call();
    assert_eq!((call.method, call.path.as_str()), ("DELETE", "/api/v1/nodes/n1"));
    assert_eq!(call.body["preconditions"], json!({"uid": "Node/n1"}));
    assert!(plan.undo.is_empty(), "a deleted node does not come back");
    // If a machine with pods continues to run, a simple yes is not enough as confirmation.
    assert!(plan.warnings.iter().any(|warning| warning.word() == "machineRuns"), "{:?}", plan.warnings);
    assert_eq!(Confirmation::to(&plan), Confirmation::Grave);
    let mut empty = PlanFixture::new(&["n1", "n2"]);
    assert_eq!(Confirmation::to(&empty.plan(action())), Confirmation::Plain);
    let role = ("node-role.kubernetes.io/control-plane".into(), "".into());
    empty.node("n1", |node| node.labels = [role].into());
    let warnings: Vec<String> = empty.plan(action()).warnings.iter().map(ToString::to_string).collect();
    assert!(warnings.iter().any(|text| text.starts_with("n1 is Ready: its kubelet runs on")), "{warnings:?}");
    assert!(warnings.contains(&"n1 is a control plane node".to_owned()), "{warnings:?}");
    empty.replica_set("web", 1, &["n2"]).sync();
    assert_eq!(empty.plan(action()).totals.outcomes.total(), 0);
}

/// A Node with a finalizer stays after its deletion (Kubernetes 1.37.1 apiserver
/// `pkg/registry/generic/registry/store.go`, `Delete`). Karpenter 1 drains the node through the Eviction API before it
/// removes its own finalizer (kubernetes-sigs/karpenter `pkg/controllers/node/termination/controller.go`, `finalize`).
#[test]
fn a_finalizer_keeps_a_deleted_node_and_its_pods() {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture.node("n1", |node| node.finalizers = ["karpenter.sh/termination".into()].into());
    fixture
        .replica_set("web", 2, &["n1", "n2"])
        .budget("web", |budget| budget.min_available = least(2))
        .sync();
    let delete = |name: &str| Action::DeleteNode { nodes: nodes(&[name]) };
    let held = fixture.plan(delete("n1"));
    let web = of(&held, "web-0");
    assert_eq!((web.verdict.word(), web.leaves.likely), ("waitsForFinalizer", None));
    assert_eq!((held.prospect(), held.totals.placed), (Prospect::Stalls, 0));
    assert_eq!(Confirmation::to(&held), Confirmation::Grave);
    let finalizers = vec![Name::from("karpenter.sh/termination")];
    assert!(
        held.warnings.contains(&Warning::NodeHeld { node: "n1".into(), finalizers }),
        "{:?}",
        held.warnings
    );

    let free = fixture.plan(delete("n2"));
    assert_eq!((of(&free, "web-1").verdict.word(), free.prospect()), ("orphaned", Prospect::Completes));
    assert!(
        free.warnings.contains(&Warning::BudgetsIgnored { pods: 1, blocked: Some(1) }),
        "{:?}",
        free.warnings
    );
}

/// Kubernetes 1.37.1 `plugin/pkg/admission/namespace/lifecycle/admission.go`, `Admit`: nothing is created in a
/// namespace that is being deleted; `pkg/controller/replicaset/replica_set.go`, `manageReplicas`, gives up silently.
#[test]
fn nothing_replaces_a_pod_in_a_namespace_that_is_being_deleted() {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture.replica_set("web", 1, &["n1"]).owner(WorkloadKind::StatefulSet, "db", 1).pod(
        "db-0",
        "n1",
        |pod| own(pod, WorkloadKind::StatefulSet, "db"),
    );
    let outcomes = |fixture: &PlanFixture| -> Vec<OutcomeKind> {
        let lost = LostNodes::failed(Arc::new(nodes(&["n1"]).into_iter().collect()));
        let leaving = leave_lost_nodes(&fixture.cluster, &lost.failed);
        let failover = failover(&fixture.cluster, leaving, lost, fixture.environment.clone());
        failover.pods.iter().map(|pod| pod.outcome.kind()).collect()
    };
    assert_eq!(outcomes(&fixture), [OutcomeKind::Moves, OutcomeKind::Stuck]);
    fixture.namespace("default", true);
    assert_eq!(outcomes(&fixture), [OutcomeKind::NotRecreated; 2]);
    let web = fixture.cluster.pod(&Key::new("default", "web-0")).expect("it is there");
    let departing = Departing::from_lost_node(&fixture.cluster, web, true);
    assert_eq!(departing.decide(web, None), PodOutcome::NotRecreated(NotNeeded::NamespaceEnds));
}

/// Kubernetes 1.37.1 `pkg/controller/daemon/daemon_controller.go`, `manage`: pods are made for the nodes that exist;
/// `pkg/kubelet/pod/mirror_client.go`, `CreateMirrorPod`: a mirror pod needs its Node.
#[test]
fn a_pod_that_runs_only_on_its_node_does_not_come_back_to_one_that_is_gone() {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture.owner(WorkloadKind::DaemonSet, "agent", 1);
    for (name, node) in [("agent-1", "n1"), ("agent-3", "n3")] {
        fixture.pod(name, node, |pod| own(pod, WorkloadKind::DaemonSet, "agent"));
    }
    let outcome = |name: &str, lost: LostNodes| {
        let pod = fixture.cluster.pod(&Key::new("default", name)).expect("it is there").clone();
        let leaving = leave_running_nodes(&fixture.cluster, [pod]);
        failover(&fixture.cluster, leaving, lost, fixture.environment.clone()).pods[0].outcome.clone()
    };
    let gone = PodOutcome::NotRecreated(NotNeeded::NodeGone);
    assert_eq!(outcome("agent-1", LostNodes::default()), PodOutcome::SameNode);
    let removed = LostNodes { removed: nodes(&["n1"]).into_iter().collect(), ..LostNodes::default() };
    assert_eq!(outcome("agent-1", removed), gone, "the Node is assumed to be deleted");
    assert_eq!(outcome("agent-3", LostNodes::default()), gone, "the Node is gone already");
}

/// Kubernetes 1.37.1 `pkg/controller/daemon/daemon_controller.go`, `NodeShouldRunDaemonPod`: a NoExecute taint that is
/// not tolerated ends the pod and keeps the next one away.
#[test]
fn the_pod_of_a_daemonset_that_a_taint_evicts_does_not_come_back_while_the_taint_is_there() {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture
        .owner(WorkloadKind::DaemonSet, "agent", 1)
        .pod("agent-1", "n1", |pod| own(pod, WorkloadKind::DaemonSet, "agent"));
    let tainted = PodOutcome::NotRecreated(NotNeeded::NodeTainted);
    let plan = edit(&fixture, &["maint:NoExecute"], false);
    assert_eq!(of(&plan, "agent-1").outcome, tainted, "the plan adds the taint");
    fixture.node("n1", |node| node.taints = [taint("maint:NoExecute")].into());
    let agent = fixture.cluster.pod(&Key::new("default", "agent-1")).expect("it is there");
    let outcome = |pod: &Pod| Departing::from_running_node(&fixture.cluster, pod, true).decide(pod, None);
    assert_eq!(outcome(agent), tainted, "the node has the taint");
    let mut tolerant = (**agent).clone();
    tolerates(&mut tolerant, "maint", None);
    assert_eq!(outcome(&tolerant), PodOutcome::SameNode);
}
