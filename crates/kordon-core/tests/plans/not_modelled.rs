//! Plans name what they do not model, where it matters.

use kordon_core::{
    cluster::{
        Change, Claim, CsiDriver, FeedKind, Key, ObjectEvent, Owner, OwnerKind, Selector, StorageClass,
        Version, Workload, WorkloadKind, WorkloadStage,
        scheduling::{PodVolume, SchedulingSpec},
    },
    engine::ServerVersion,
    plan::{DrainOptions, NotModelledKind, Plan, PodWarning},
};

use crate::plan_fixture::{PlanFixture, least, of, own, uid};

fn kinds(plan: &Plan) -> Vec<(NotModelledKind, usize)> {
    plan.not_modelled.iter().map(|found| (found.what, found.pods)).collect()
}

/// Two nodes of Kubernetes 1.37, and on n0 a pod of a ReplicaSet with a PersistentVolumeClaim.
fn with_claim() -> PlanFixture {
    let mut fixture = PlanFixture::new(&["n0", "n1"]);
    fixture.version = ServerVersion::new(1, 37);
    fixture.replica_set("web", 1, &["n0"]).pod("web-0", "n0", |pod| {
        let volumes = [PodVolume::Claim("data".into())].into();
        pod.scheduling = SchedulingSpec { volumes, ..SchedulingSpec::default() }.into();
    });
    fixture
}

#[test]
fn a_quota_whose_scope_is_not_known_is_named() {
    let mut fixture = PlanFixture::new(&["n0", "n1"]);
    fixture.replica_set("web", 2, &["n0", "n0"]);
    let names = |plan: &Plan| plan.not_modelled.iter().map(|found| found.what.word()).collect::<Vec<_>>();
    let others = ["autoscalers", "webhooks", "schedulerConfiguration", "kubeletAdmission"];
    assert_eq!(names(&fixture.sync().drain(&["n0"], DrainOptions::default())), others);
    fixture.quota("team", &[("pods", 2, 2)], &["Newer"]);
    let plan = fixture.drain(&["n0"], DrainOptions::default());
    assert_eq!(kinds(&plan)[0], (NotModelledKind::Quota, 2));
    assert_eq!(names(&plan)[1..], others);
}

#[test]
fn missing_csi_drivers_are_named_while_csi_drivers_are_not_known() {
    let mut fixture = with_claim();
    let names = |fixture: &PlanFixture| {
        let plan = fixture.drain(&["n0"], DrainOptions::default());
        kinds(&plan).iter().any(|(what, _)| *what == NotModelledKind::VolumeLimitScaling)
    };
    assert!(!names(fixture.sync()));
    assert!(names(fixture.forbid(FeedKind::CsiDrivers)));
}

#[test]
fn scores_by_storage_capacity_are_named_for_new_volumes_whose_driver_publishes_it() {
    let names = |publishes_capacity: bool| {
        let mut fixture = with_claim();
        let (provisioner, waits_for_consumer) = ("local.example.com".into(), true);
        let class =
            StorageClass { name: "local".into(), provisioner, waits_for_consumer, ..StorageClass::default() };
        let driver =
            CsiDriver { name: "local.example.com".into(), publishes_capacity, ..CsiDriver::default() };
        let claim = Claim { key: Key::new("default", "data"), class: "local".into(), ..Claim::default() };
        for change in [
            Change::StorageClass(ObjectEvent::Applied(class)),
            Change::CsiDriver(ObjectEvent::Applied(driver)),
            Change::Claim(ObjectEvent::Applied(claim)),
        ] {
            fixture.cluster.apply(change, &mut Vec::new());
        }
        let plan = fixture.sync().drain(&["n0"], DrainOptions::default());
        kinds(&plan).iter().any(|(what, _)| *what == NotModelledKind::StorageCapacityScoring)
    };
    assert!(names(true));
    assert!(!names(false));
}

#[test]
fn a_plan_that_replaces_no_pod_names_nothing() {
    let mut fixture = PlanFixture::new(&["n0", "n1"]);
    fixture.pod("alone", "n0", |_| {});
    let plan = fixture.sync().drain(&["n0"], DrainOptions { force: true, ..DrainOptions::default() });
    assert_eq!(kinds(&plan), []);
}

/// Adds a ReplicaSet that belongs to the Deployment `web`.
fn revision(fixture: &mut PlanFixture, name: &str, replicas: i32) {
    let versions =
        fixture.cluster.workloads(WorkloadKind::ReplicaSet).iter().map(|workload| workload.version.0);
    let newest = versions.max().unwrap_or(0);
    let deployment = Owner {
        kind: OwnerKind::Workload(WorkloadKind::Deployment),
        name: "web".into(),
        uid: uid("d", "web"),
    };
    let replica_set = Workload {
        kind: WorkloadKind::ReplicaSet,
        key: Key::new("default", name),
        uid: uid("ReplicaSet", name),
        version: Version(newest + 1),
        replicas: Some(replicas),
        selector: None,
        owner: Some(deployment),
        replaces_only_failed: false,
        is_recreated: false,
        reboot_locks: Vec::new(),
        stateful: None,
        job: None,
        template: None,
        stage: WorkloadStage::Active,
    };
    let change = Change::Workload(WorkloadKind::ReplicaSet, ObjectEvent::Applied(replica_set));
    fixture.cluster.apply(change, &mut Vec::new());
}

#[test]
fn a_rollout_in_progress_is_named_for_its_pods() {
    let mut fixture = PlanFixture::new(&["n0", "n1"]);
    fixture.replica_set("old", 2, &["n0", "n1"]).replica_set("new", 1, &["n0"]);
    revision(&mut fixture, "old", 2);
    revision(&mut fixture, "new", 1);
    fixture.sync();
    let plan = fixture.drain(&["n0"], DrainOptions::default());
    assert!(of(&plan, "old-0").warnings.contains(&PodWarning::RolloutInProgress));
    assert!(kinds(&plan).contains(&(NotModelledKind::Rollout, 2)), "{:?}", plan.not_modelled);
    // The rollout is finished once the old ReplicaSet has no replicas.
    revision(&mut fixture, "old", 0);
    let plan = fixture.drain(&["n0"], DrainOptions::default());
    assert!(!of(&plan, "new-0").warnings.contains(&PodWarning::RolloutInProgress));
}

#[test]
fn a_stateful_set_rolls_out_while_its_pods_have_different_revisions() {
    let mut fixture = PlanFixture::new(&["n0", "n1"]);
    fixture.owner(WorkloadKind::StatefulSet, "db", 2);
    for (name, node, revision) in [("db-0", "n0", "a"), ("db-1", "n1", "b")] {
        fixture.pod(name, node, |pod| {
            own(pod, WorkloadKind::StatefulSet, "db");
            let revision = ("controller-revision-hash".into(), revision.into());
            pod.labels = pod.labels.entries().iter().cloned().chain([revision]).collect();
        });
    }
    let plan = fixture.sync().drain(&["n0"], DrainOptions::default());
    assert!(of(&plan, "db-0").warnings.contains(&PodWarning::RolloutInProgress));
}

#[test]
fn budgets_that_may_be_out_of_date_are_named_before_1_38() {
    let pods = |minor, second_selects: &str| {
        let mut fixture = PlanFixture::new(&["n0", "n1"]);
        fixture.version = ServerVersion::new(1, minor);
        fixture.replica_set("web", 2, &["n0", "n0"]).replica_set("api", 1, &["n0"]);
        fixture.budget("web", |budget| budget.min_available = least(1));
        fixture.budget("other", |budget| {
            budget.selector = Some(Selector::parse(second_selects).expect("a selector"));
            budget.min_available = least(1);
        });
        // Pods are deleted, because a running pod under two budgets cannot be evicted.
        let options = DrainOptions { disable_eviction: true, ..DrainOptions::default() };
        let plan = fixture.sync().drain(&["n0"], options);
        kinds(&plan).into_iter().find(|(what, _)| *what == NotModelledKind::BudgetUpdates)
    };
    let both_of_web = Some((NotModelledKind::BudgetUpdates, 2));
    assert_eq!((pods(37, "app=web"), pods(38, "app=web")), (both_of_web, None));
    assert_eq!(pods(37, "app=api"), None, "each pod has one budget");
}
