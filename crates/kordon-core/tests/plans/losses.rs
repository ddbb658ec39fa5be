//! Pods that are lost because another pod leaves: pods of the same Job, JobSet or group.

use kordon_core::{
    cluster::{
        Change, Claim, CronJob, FeedKind, JobLimits, Key, Known, Name, ObjectEvent, Owner, OwnerKind, Pod,
        SchedulingSpec, Version, WorkloadKind, WorkloadStage, scheduling::PodVolume,
    },
    plan::{DrainOptions, JobOwner, Landing, Loss, OutcomeKind, Plan, PodWarning, Warning},
};

use crate::{
    landing::{asks, drain, replicas, roomy},
    plan_fixture::{PlanFixture, of, own, uid},
};

/// A Job with `backoffLimit: 0` and a pod on each of these nodes.
fn job(fixture: &mut PlanFixture, name: &str, on: &[&str], owner: Option<(&str, &str, &str)>) {
    let pods = i32::try_from(on.len()).expect("few");
    fixture.workload(WorkloadKind::Job, name, pods, |workload| {
        workload.job = Some(JobLimits { backoff_limit: 0, ..JobLimits::default() }.into());
        workload.owner = owner.map(|(kind, group, name)| Owner {
            kind: OwnerKind::other(kind, group),
            name: name.into(),
            uid: uid(kind, name),
        });
    });
    for node in on {
        fixture.pod(&format!("{name}-{node}"), node, |pod| own(pod, WorkloadKind::Job, name));
    }
}

fn drained(fixture: &PlanFixture) -> Plan {
    fixture.drain(&["n1"], DrainOptions { force: true, ..DrainOptions::default() })
}

/// Returns the content of the warning about a Job that fails: the number of its pods in the plan, the number of its
/// other pods, and the owner of the Job.
fn failure(plan: &Plan) -> (usize, usize, Option<JobOwner>) {
    let failure = |warning: &Warning| match warning {
        Warning::JobFails { pods, others, owner, .. } => Some((*pods, *others, owner.clone())),
        _ => None,
    };
    plan.warnings.iter().find_map(failure).expect("a Job that fails")
}

/// Kubernetes 1.37 `pkg/controller/job/job_controller.go`, `syncJob`: a Job that fails deletes its active pods.
#[test]
fn a_job_that_fails_takes_its_pods_on_other_nodes_with_it() {
    let mut fixture = PlanFixture::new(&["n1", "n2", "n3"]);
    job(&mut fixture, "fit", &["n1", "n2", "n3"], None);
    let plan = drained(&fixture);
    assert_eq!(failure(&plan), (1, 2, None));
    let outcome = &of(&plan, "fit-n1").outcome;
    assert_eq!(outcome.kind(), OutcomeKind::FailsJob);
    assert!(outcome.to_string().ends_with("2 pods of it on other nodes are deleted, too"), "{outcome}");
}

/// Kubernetes 1.37 `pkg/controller/job/job_controller.go`, `syncJob`: the controller deletes the pods of a Job that has
/// ended. A drain only deletes them earlier.
#[test]
fn a_pod_of_a_job_that_has_already_failed_is_no_loss_of_the_drain() {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    job(&mut fixture, "fit", &["n1"], None);
    fixture.change_workload(WorkloadKind::Job, "fit", |workload| {
        let failure = Some("BackoffLimitExceeded".into());
        workload.job = Some(JobLimits { failed: 1, failure, ..JobLimits::default() }.into());
        workload.stage = WorkloadStage::Finished;
    });
    let plan = drained(&fixture);
    assert_eq!(of(&plan, "fit-n1").outcome.to_string(), "not recreated: its Job has ended");
    assert_eq!((plan.losses(), plan.totals.lost), (vec![], 0));
    assert!(!plan.warnings.iter().any(|warning| warning.word() == "jobFails"), "{:?}", plan.warnings);
}

/// A preempted pod is a failed pod, too (Kubernetes 1.37 `pkg/controller/job/job_controller.go`, `getNewFinishedPods`).
#[test]
fn a_preempted_pod_fails_its_job() {
    let mut fixture = roomy(&[("n1", 2), ("n2", 2)]);
    replicas(&mut fixture, "web", &["n1"], 2);
    fixture.pod("web-0", "n1", |pod| pod.priority = 1000);
    job(&mut fixture, "fit", &["n2"], None);
    fixture.pod("fit-n2", "n2", |pod| asks(pod, 2));
    let plan = drain(&fixture, &["n1"]);
    assert_eq!(failure(&plan), (1, 0, None));
    let trace = of(&plan, "web-0").placement.as_ref().expect("a trace");
    let [preempted] = trace.preempts.as_slice() else { panic!("{trace:?}") };
    assert!(preempted.to_string().ends_with("its Job fails (BackoffLimitExceeded: 1 failure, limit 0)"));
}

/// Kubernetes 1.37.1 `pkg/controller/garbagecollector/garbagecollector.go`, `attemptToDeleteItem`; apache/spark
/// `BasicExecutorFeatureStep.scala`: the driver's pod is the controller of its executors.
#[test]
fn the_executors_of_a_spark_driver_are_deleted_with_it() {
    let mut fixture = PlanFixture::new(&["n1", "n2", "n3"]);
    fixture.pod("driver", "n1", |_| {});
    for (executor, node) in [("exec-1", "n1"), ("exec-2", "n2"), ("exec-3", "n3")] {
        fixture.pod(executor, node, |pod| {
            let owner =
                Owner { kind: OwnerKind::other("Pod", ""), name: "driver".into(), uid: uid("Pod", "driver") };
            pod.owner = Some(owner.into());
        });
    }
    let plan = drained(&fixture);
    let executor = of(&plan, "exec-1");
    assert_eq!((executor.outcome.kind(), executor.landing.clone()), (OutcomeKind::Lost, None));
    let deleted = Warning::OwnedPodsDeleted { pod: Key::new("default", "driver"), pods: 2 };
    assert!(plan.warnings.contains(&deleted), "{:?}", plan.warnings);

    let others = fixture.drain(&["n2"], DrainOptions { force: true, ..DrainOptions::default() });
    assert_eq!(of(&others, "exec-2").outcome.kind(), OutcomeKind::Moves, "the driver requests another");
}

/// Kubernetes 1.37.1 `pkg/controller/volume/pvcprotection/pvc_protection_controller.go`, `podUsesPVCForDeletion`: a
/// claim that is being deleted stays as long as a pod on a node uses it.
#[test]
fn a_claim_that_is_being_deleted_goes_with_its_last_pod() {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    let uses = |pod: &mut Pod, claim: &str| {
        own(pod, WorkloadKind::ReplicaSet, "db");
        let volumes = [PodVolume::Claim(claim.into())].into();
        pod.scheduling = SchedulingSpec { volumes, ..SchedulingSpec::default() }.into();
    };
    fixture.owner(WorkloadKind::ReplicaSet, "db", 4);
    for (pod, node, claim) in [
        ("alone", "n1", "ending"),
        ("shares", "n1", "shared"),
        ("stays", "n2", "shared"),
        ("safe", "n1", "kept"),
    ] {
        fixture.pod(pod, node, |pod| uses(pod, claim));
    }
    for (name, is_terminating) in [("ending", true), ("shared", true), ("kept", false)] {
        let claim = Claim { key: Key::new("default", name), is_terminating, ..Claim::default() };
        fixture.cluster.apply(Change::Claim(ObjectEvent::Applied(claim)), &mut Vec::new());
    }
    let plan = drained(&fixture);
    let loses = |pod: &str| of(&plan, pod).warnings.contains(&PodWarning::ClaimDeleted);
    assert_eq!(["alone", "shares", "safe"].map(loses), [true, false, false]);
}

/// `kubernetes-sigs/jobset/pkg/controllers/failure_policy.go`, `executeFailurePolicy`.
#[test]
fn a_jobset_ends_the_pods_of_all_its_jobs() {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    let set = Some(("JobSet", "jobset.x-k8s.io", "train"));
    job(&mut fixture, "workers-0", &["n1"], set);
    job(&mut fixture, "workers-1", &["n2"], set);
    let plan = drained(&fixture);
    assert_eq!(failure(&plan), (1, 0, Some(JobOwner::JobSet { name: "train".into(), others: 1 })));
    let reasons = of(&plan, "workers-0-n1").outcome.reasons().join("; ");
    assert!(reasons.contains("JobSet train restarts all its Jobs"), "{reasons}");
}

/// Kubernetes 1.37 `pkg/controller/cronjob/cronjob_controllerv2.go`, `syncCronJob`.
#[test]
fn a_cron_job_starts_another_job_by_its_schedule_unless_it_is_suspended() {
    let mut fixture = PlanFixture::new(&["n1"]);
    job(&mut fixture, "nightly-1", &["n1"], Some(("CronJob", "batch", "nightly")));
    let cron_job = |version: u64, is_suspended: bool| {
        Change::CronJob(ObjectEvent::Applied(CronJob {
            key: Key::new("default", "nightly"),
            uid: uid("CronJob", "nightly"),
            version: Version(version),
            schedule: "0 3 * * *".into(),
            time_zone: "Europe/Berlin".into(),
            is_suspended,
        }))
    };
    let forbidden = Known::Forbidden { error: "no".into() };
    for (change, expected) in [
        (
            Change::Known(FeedKind::CronJobs, forbidden),
            "unless it is suspended, CronJob nightly starts another Job at its next time",
        ),
        (Change::Known(FeedKind::CronJobs, Known::Live), "CronJob nightly is gone and starts no other Job"),
        (cron_job(1, false), "CronJob nightly starts another Job by its schedule: 0 3 * * * (Europe/Berlin)"),
        (cron_job(2, true), "CronJob nightly is suspended and starts no other Job"),
    ] {
        fixture.cluster.apply(change, &mut Vec::new());
        let (.., owner) = failure(&drained(&fixture));
        assert_eq!(owner.expect("an owner").to_string(), expected);
    }
    assert!(fixture.cluster.needs_cron_jobs());
}

#[test]
fn what_an_unknown_owner_of_a_job_does_is_not_known() {
    let mut fixture = PlanFixture::new(&["n1"]);
    job(&mut fixture, "step", &["n1"], Some(("Pipeline", "flows.example.com", "etl")));
    let owner = JobOwner::Other { kind: "Pipeline".into(), name: "etl".into() };
    assert_eq!(failure(&drained(&fixture)), (1, 0, Some(owner)));
}

/// `kubernetes-sigs/lws/pkg/controllers/pod_controller.go`, `handleRestartPolicy`.
#[test]
fn a_group_of_a_leader_worker_set_restarts_as_a_whole() {
    let mut fixture = PlanFixture::new(&["n1", "n2", "n3"]);
    for (place, node) in ["n1", "n2", "n3"].into_iter().enumerate() {
        fixture.pod(&format!("llm-{place}"), node, |pod| {
            let label = |name: &str, value: &str| {
                (Name::from(format!("leaderworkerset.sigs.k8s.io/{name}").as_str()), Name::from(value))
            };
            let worker = if place == 0 { "0" } else { "1" };
            let group = if place == 2 { "1" } else { "0" };
            pod.labels = [label("name", "llm"), label("group-index", group), label("worker-index", worker)]
                .into_iter()
                .collect();
        });
    }
    let options = || DrainOptions { force: true, ..DrainOptions::default() };
    let restarts = |node: &str| {
        let plan = fixture.drain(&[node], options());
        let restarts = |warning: &Warning| match warning {
            Warning::GroupRestarts { leads, others, .. } => Some((*leads, *others)),
            _ => None,
        };
        plan.warnings.iter().find_map(restarts)
    };
    assert_eq!((restarts("n1"), restarts("n2")), (Some((true, 1)), Some((false, 1))));
    assert_eq!(restarts("n3"), None, "a group of one pod");
    let plan = fixture.drain(&["n1"], options());
    assert!(of(&plan, "llm-0").warnings.contains(&PodWarning::RestartsGroup));
}

/// Returns the plan of a drain of n1. The only pod of n1 has a high priority, and preempts the pods that fill n2.
fn preempting(fill: impl FnOnce(&mut PlanFixture)) -> Plan {
    let mut fixture = roomy(&[("n1", 2), ("n2", 2)]);
    replicas(&mut fixture, "web", &["n1"], 2);
    fixture.pod("web-0", "n1", |pod| pod.priority = 1000);
    fill(&mut fixture);
    drain(&fixture, &["n1"])
}

/// Returns the preempted pods that are lost for good, each with the reason and with whether `--force` accepts the loss.
fn losses(plan: &Plan) -> Vec<(&str, &'static str, bool)> {
    let losses = plan.losses();
    let name = |pod| plan.pods.iter().flat_map(|row| row.preempted()).find(|other| other.pod == pod);
    let loss = |loss: Loss| {
        let preempted = name(loss.pod.clone()).expect("a preempted pod");
        (&*preempted.pod.name, loss.why.word(), loss.is_accepted_by_force())
    };
    let mut found: Vec<_> = losses.into_iter().map(loss).collect();
    found.sort_unstable();
    found
}

fn preemption_warning(plan: &Plan) -> Option<String> {
    plan.warnings.iter().find(|warning| warning.word() == "preempts").map(ToString::to_string)
}

/// Kubernetes 1.37 `pkg/scheduler/framework/preemption/executor.go`, `PreemptPod`: the preempted pod gets the condition
/// DisruptionTarget and is deleted, whatever its owner is. No flag of a drain covers this.
#[test]
fn a_bare_pod_that_a_replacement_preempts_is_lost_and_no_flag_accepts_it() {
    let plan = preempting(|fixture| {
        fixture.pod("tool", "n2", |pod| asks(pod, 2));
    });
    assert_eq!(losses(&plan), [("tool", "noOwner", false)]);
    assert_eq!((plan.totals.lost, plan.totals.pending, plan.totals.preempted), (1, 0, 1));
    let warning = preemption_warning(&plan).expect("a warning");
    assert!(warning.contains("1 pod on another node: 1 lost (default/tool)"), "{warning}");
}

/// `web` takes the place of `middle` on n2, whose replacement takes the place of `low` on n3.
#[test]
fn a_preempted_pod_may_preempt_in_turn_and_only_the_last_one_has_nowhere_to_run() {
    let mut fixture = roomy(&[("n1", 2), ("n2", 2), ("n3", 2)]);
    for (name, node, priority) in [("web", "n1", 1000), ("middle", "n2", 100), ("low", "n3", 10)] {
        replicas(&mut fixture, name, &[node], 2);
        fixture.pod(&format!("{name}-0"), node, |pod| pod.priority = priority);
    }
    fixture.node("n2", |node| node.labels = [(Name::from("kind"), Name::from("big"))].into());
    fixture.pod("web-0", "n1", |pod| {
        let node_selector = [(Name::from("kind"), Name::from("big"))].into();
        pod.scheduling = SchedulingSpec { node_selector, ..SchedulingSpec::default() }.into();
    });
    let plan = drain(&fixture, &["n1"]);
    let web = of(&plan, "web-0");
    let preempted: Vec<_> = web.preempted().map(|pod| (&*pod.pod.name, pod.in_turn_for.is_some())).collect();
    assert_eq!(preempted, [("middle-0", false), ("low-0", true)]);
    let why = match &web.landing {
        Some(Landing::Node { why, .. }) => why.to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(why, "preempts default/middle-0");
    let warning = preemption_warning(&plan).expect("a warning");
    let text = "2 pods on other nodes, of which 1 has nowhere to run: 1 Pending (default/low-0)";
    assert!(warning.contains(text), "{warning}");
}

/// Kubernetes 1.37 `pkg/controller/job/job_controller.go`, `isPodFailed`: a deleted pod counts as failed.
#[test]
fn pods_that_are_preempted_count_as_failures_of_their_job() {
    let with_limit = |limit: i32| {
        preempting(|fixture| {
            fixture.workload(WorkloadKind::Job, "train", 2, |workload| {
                workload.job = Some(JobLimits { backoff_limit: limit, ..JobLimits::default() }.into());
            });
            for name in ["train-0", "train-1"] {
                fixture.pod(name, "n2", |pod: &mut Pod| {
                    own(pod, WorkloadKind::Job, "train");
                    asks(pod, 1);
                });
            }
        })
    };
    let fails = with_limit(1);
    assert_eq!(losses(&fails), [("train-0", "jobFails", false), ("train-1", "jobFails", false)]);
    assert_eq!((fails.totals.lost, fails.totals.pending), (2, 0));
    let text = of(&fails, "web-0").preempted().next().expect("a victim").to_string();
    assert!(text.ends_with("its Job fails (BackoffLimitExceeded: 2 failures, limit 1)"), "{text}");

    let goes_on = with_limit(2);
    assert_eq!(losses(&goes_on), []);
    assert_eq!((goes_on.totals.lost, goes_on.totals.pending), (0, 2), "no node is left for the new pods");
    let warning = preemption_warning(&goes_on).expect("a warning");
    assert!(warning.contains("2 pods on other nodes: 2 Pending"), "{warning}");
}

#[test]
fn a_preempted_pod_whose_owner_is_of_an_unknown_kind_is_not_called_lost() {
    let plan = preempting(|fixture| {
        fixture.pod("vm", "n2", |pod| {
            asks(pod, 2);
            let kind = OwnerKind::other("Machine", "vm.example.com");
            pod.owner = Some(Owner { kind, name: "vm".into(), uid: uid("Machine", "vm") }.into());
        });
    });
    let [preempted] = &of(&plan, "web-0").placement.as_ref().expect("it is placed").preempts[..] else {
        panic!("{plan:#?}")
    };
    assert_eq!((OutcomeKind::for_preempted(preempted), preempted.lost), (OutcomeKind::Unknown, None));
    assert_eq!((losses(&plan), plan.totals.lost), (vec![], 0));
}
