//! Deployments that are scaled up by one while their pods leave: what plans say of them, and how such plans are
//! applied, undone and resumed.
//!
//! Facts from upstream: `pkg/controller/disruption/disruption.go` (1.36, `getExpectedPodCount`: the scale of the
//! Deployment counts), `pkg/controller/controller_utils.go` (`ActivePodsWithRanks`: pods that are not Ready are deleted
//! first),
//! `pkg/registry/apps/deployment/storage/storage.go` (`ScaleREST`: uid and resourceVersion are preconditions), and
//! `pkg/controller/podautoscaler/horizontal.go` (`reconcileAutoscaler`: sets what its metrics ask for).

use std::sync::Arc;

use kordon_core::{
    cluster::{
        Autoscaler, Change, Claim, ClaimedSurge, DrainClaim, IntOrPercent, Key, KnownAutoscalers, NodeName,
        ObjectEvent, Owner, OwnerKind, Version, WorkloadKind, claim, scheduling::PodVolume,
    },
    operation::{
        DeploymentScale, Operation, OperationEnd, OperationOptions, PriorRun, RequestKind, RequestOutcome,
        SurgeProgressStage,
    },
    plan::{
        Action, DrainOptions, Plan, PlanStep, Prospect, Retry, SurgeFate, SurgePlan, Undo, Verdict,
        undo::{ScaleUndo, WriteUndo},
    },
};
use kordon_time::{Span, Timestamp};

use crate::plan_fixture::{NOW, PlanFixture, at, least, of, own, percent, uid};

/// A Deployment with a Ready pod on each of these nodes, and no autoscaler anywhere.
pub fn deployment(fixture: &mut PlanFixture, name: &str, on: &[&str]) {
    let replicas = i32::try_from(on.len()).expect("a few");
    fixture.owner(WorkloadKind::Deployment, name, replicas).replica_set(name, replicas, on);
    fixture.change_workload(WorkloadKind::ReplicaSet, name, |set| {
        let kind = OwnerKind::Workload(WorkloadKind::Deployment);
        set.owner = Some(Owner { kind, name: name.into(), uid: uid("Deployment", name) });
    });
    fixture.autoscalers(Vec::new());
}

/// One pod of Deployment web on n0, under a budget that needs it.
fn single() -> PlanFixture {
    let mut fixture = PlanFixture::new(&["n0", "n1"]);
    deployment(&mut fixture, "web", &["n0"]);
    fixture.budget("web", |budget| budget.min_available = least(1)).sync();
    fixture
}

fn surging() -> DrainOptions {
    DrainOptions { surge: true, retry: Retry::OnRecovery, ..DrainOptions::default() }
}

fn surge(plan: &Plan) -> &SurgePlan {
    let [surge] = &plan.surges[..] else { panic!("one surge: {:?}", plan.surges) };
    surge
}

/// Plans a drain that removes pods of only one Deployment. Returns why the plan does not scale this Deployment up.
fn refusal(fixture: &PlanFixture, nodes: &[&str]) -> &'static str {
    let plan = fixture.drain(nodes, surging());
    assert_eq!(plan.prospect(), Prospect::Blocked, "{:?}", plan.surges);
    assert!(!plan.steps.iter().any(|step| matches!(step, PlanStep::Scale { .. })));
    match &surge(&plan).fate {
        SurgeFate::Refused(refusal) => refusal.word(),
        SurgeFate::Scales { .. } => "scales",
    }
}

fn scaled_to(plan: &Plan) -> Vec<(String, i32)> {
    let step = |step: &PlanStep| match step {
        PlanStep::Scale { deployment, replicas, .. } => Some((deployment.name.to_string(), *replicas)),
        _ => None,
    };
    plan.steps.iter().filter_map(step).collect()
}

#[test]
fn a_single_replica_leaves_once_the_new_pod_is_ready() {
    let fixture = single();
    let without = fixture.drain(&["n0"], DrainOptions { surge: false, ..surging() });
    assert_eq!((without.prospect(), without.surges.len()), (Prospect::Blocked, 0), "never by default");
    let plan = fixture.drain(&["n0"], surging());
    assert_eq!(plan.prospect(), Prospect::Completes, "{:?}", plan.surges);
    let SurgeFate::Scales { surge, run } = &surge(&plan).fate else { panic!("{:?}", plan.surges) };
    assert_eq!((surge.replicas, surge.raised()), (1, 2));
    // The new pod is Ready after 10 s, and the disruption controller syncs 200 ms later.
    let web = of(&plan, "web-0");
    let leaves = web.leaves.likely.map(|leaves| leaves.since(NOW));
    assert_eq!(leaves, Some(Span::from_millis(10_200)));
    assert_eq!((at(run.scaled_up), at(run.ready), run.scaled_back), (Some(0), Some(10), web.leaves.likely));
    assert_eq!(at(web.gone.likely), Some(40));
    assert!(matches!(&web.verdict, Verdict::LeavesAfter { recoveries: 1, .. }), "{}", web.verdict);
    // The new pod takes the place of the old one, so no second pod is created.
    assert_eq!(at(web.ready_again), Some(10));
    assert_eq!(web.landing.as_ref().and_then(|landing| landing.node()), Some(&NodeName::from("elsewhere")));
    let words: Vec<&str> = plan.timeline.iter().map(|moment| moment.event.columns().1).collect();
    assert_eq!(words, ["starts", "scaled", "ready", "leaves", "scaled", "gone", "ends"], "{words:?}");
    let details = |place: usize| plan.timeline[place].event.columns().2;
    assert_eq!((details(1), details(4)), ("to 2 replicas".into(), "to 1 replica".into()));
}

#[test]
fn the_writes_of_a_surge_are_in_the_plan_with_their_preconditions_and_rights() {
    let plan = single().drain(&["n0"], surging());
    let [PlanStep::Cordon { .. }, up, PlanStep::Evict { .. }, back] = &plan.steps[..] else {
        panic!("{:?}", plan.steps)
    };
    let call = up.call();
    assert_eq!(
        (call.method, &*call.path),
        ("PATCH", "/apis/apps/v1/namespaces/default/deployments/web/scale")
    );
    let PlanStep::Scale { version: Some(version), .. } = up else { panic!("{up:?}") };
    let metadata = serde_json::json!({"uid": "Deployment/web", "resourceVersion": version.0.to_string()});
    assert_eq!(call.body, serde_json::json!({"metadata": metadata, "spec": {"replicas": 2}}));
    assert_eq!(back.call().body["spec"]["replicas"], 1);
    let rights: Vec<String> = plan.permissions.iter().map(ToString::to_string).collect();
    for right in [
        "patch deployments/scale web in default",
        "get deployments/scale web in default",
        "list horizontalpodautoscalers in default",
    ] {
        assert!(rights.iter().any(|known| known == right), "{right} is missing: {rights:?}");
    }
}

#[test]
fn one_surge_serves_the_pods_of_all_nodes_one_after_the_other() {
    let mut fixture = PlanFixture::new(&["n0", "n1", "n2"]);
    deployment(&mut fixture, "web", &["n0", "n1", "n2"]);
    fixture.budget("web", |budget| budget.min_available = least(3)).sync();
    let plan = fixture.drain(&["n0", "n1", "n2"], surging());
    assert_eq!(plan.prospect(), Prospect::Completes, "{:?}", plan.surges);
    assert_eq!(scaled_to(&plan), [("web".into(), 4), ("web".into(), 3)]);
    let leaves = |pod| of(&plan, pod).leaves.likely.expect("it leaves");
    let [first, second, third] = ["web-0", "web-1", "web-2"].map(leaves);
    assert!(first < second && second < third, "one at a time");
    let SurgeFate::Scales { run, .. } = &surge(&plan).fate else { panic!("{:?}", plan.surges) };
    assert_eq!(run.scaled_back, Some(third));
    let replaced = |moment: &&kordon_core::plan::PlanMoment| moment.event.columns().1 == "replaced";
    assert_eq!(plan.timeline.iter().filter(replaced).count(), 2, "the last one has the new pod of the surge");
}

/// A budget with a percentage expects as many pods as the scale of the Deployment. So one more pod can change the
/// number of pods that the budget requires.
#[test]
fn budgets_with_percentages_are_worked_out_with_the_raised_scale() {
    let with = |pods: &[&str], least| {
        let mut fixture = PlanFixture::new(&["n0", "n1", "n2", "n3"]);
        deployment(&mut fixture, "web", pods);
        fixture.budget("web", |budget| budget.min_available = least).sync();
        fixture
    };
    // `minAvailable: 50%` requires 1 of one pod, and 1 of two.
    assert_eq!(with(&["n0"], percent(50)).drain(&["n0"], surging()).prospect(), Prospect::Completes);
    // `minAvailable: 80%` requires 4 of four pods, and 4 of five.
    let four = with(&["n0", "n1", "n2", "n3"], percent(80));
    assert_eq!(four.drain(&["n0"], surging()).prospect(), Prospect::Completes);
    // `minAvailable: 90%` requires 2 of two pods, and 3 of three.
    assert_eq!(refusal(&with(&["n0", "n1"], percent(90)), &["n0"]), "notEnough");
    assert_eq!(refusal(&with(&["n0"], percent(100)), &["n0"]), "needsAll");
    let mut none = with(&["n0"], None);
    none.budget("web", |budget| budget.max_unavailable = least(0)).sync();
    assert_eq!(refusal(&none, &["n0"]), "needsAll");
}

#[test]
fn deployments_under_one_budget_are_scaled_up_together_where_that_helps() {
    let both = |least, recreated: bool| {
        let mut fixture = PlanFixture::new(&["n0", "n1"]);
        deployment(&mut fixture, "a", &["n0"]);
        deployment(&mut fixture, "b", &["n0"]);
        fixture.change_workload(WorkloadKind::Deployment, "b", |it| it.is_recreated = recreated);
        for name in ["a-0", "b-0"] {
            fixture.pod(name, "n0", |pod| {
                pod.labels = [("app".into(), "both".into())].into();
            });
        }
        fixture.budget("both", |budget| budget.min_available = least).sync();
        fixture.drain(&["n0"], surging())
    };
    let fates = |plan: &Plan| {
        let fate = |surge: &SurgePlan| match &surge.fate {
            SurgeFate::Refused(refusal) => refusal.word(),
            SurgeFate::Scales { .. } => "scales",
        };
        plan.surges.iter().map(fate).collect::<Vec<_>>()
    };
    // `minAvailable: 60%` requires 3 of four pods, and 2 of three. One pod leaves, its Deployment is scaled back, and
    // then the other pod leaves.
    let plan = both(percent(60), false);
    assert_eq!((plan.prospect(), fates(&plan)), (Prospect::Completes, vec!["scales", "scales"]));
    let mut scaled = scaled_to(&plan);
    scaled.sort();
    assert_eq!(scaled, [("a".into(), 1), ("a".into(), 2), ("b".into(), 1), ("b".into(), 2)]);
    // `minAvailable: 67%` requires 3 of four pods, and 3 of three. Once one Deployment is scaled back, the budget
    // blocks the other pod again.
    let plan = both(percent(67), false);
    assert_eq!((plan.prospect(), fates(&plan)), (Prospect::Blocked, vec!["stillHeld", "stillHeld"]));
    // Only one of the two Deployments may be scaled up, so only three pods run at once.
    assert_eq!(fates(&both(percent(67), true)), ["notEnough", "recreated"]);
    assert_eq!(fates(&both(least(2), true)), ["scales", "recreated"]);
}

#[test]
fn what_would_not_help_is_refused_with_its_reason() {
    let changed = |change: &dyn Fn(&mut PlanFixture)| {
        let mut fixture = single();
        change(&mut fixture);
        fixture.sync();
        refusal(&fixture, &["n0"])
    };
    let of_deployment = |make: &dyn Fn(&mut kordon_core::cluster::Workload)| {
        changed(&|fixture| {
            fixture.change_workload(WorkloadKind::Deployment, "web", |it| make(it));
        })
    };
    let operator =
        || Owner { kind: OwnerKind::other("Kafka", "kafka.strimzi.io"), name: "k".into(), uid: "k".into() };
    assert_eq!(of_deployment(&|it| it.owner = Some(operator())), "owned");
    assert_eq!(of_deployment(&|it| it.is_recreated = true), "recreated");
    assert_eq!(
        changed(&|it| {
            it.change_workload(WorkloadKind::ReplicaSet, "web", |set| set.replicas = Some(2));
            it.change_workload(WorkloadKind::Deployment, "web", |it| it.replicas = Some(1));
        }),
        "rollsOut"
    );
}

#[test]
fn a_stateful_set_is_not_scaled_up() {
    let mut fixture = PlanFixture::new(&["n0"]);
    fixture.owner(WorkloadKind::StatefulSet, "db", 1);
    fixture.pod("db-0", "n0", |pod| own(pod, WorkloadKind::StatefulSet, "db"));
    fixture.autoscalers(Vec::new());
    fixture.budget("db", |budget| budget.max_unavailable = Some(IntOrPercent::Int(1))).sync();
    fixture.budget("db", |budget| (budget.max_unavailable, budget.min_available) = (None, least(1))).sync();
    assert_eq!(refusal(&fixture, &["n0"]), "noDeployment");
}

#[test]
fn a_volume_of_one_node_keeps_the_new_pod_from_starting() {
    let mut fixture = single();
    let claim = Claim {
        key: Key::new("default", "data"),
        version: Version(1_000),
        requested: kordon_core::cluster::VolumeProperties {
            modes: kordon_core::cluster::AccessModes::parse(["ReadWriteOnce"].into_iter()),
            ..Default::default()
        },
        ..Claim::default()
    };
    fixture.cluster.apply(Change::Claim(ObjectEvent::Applied(claim)), &mut Vec::new());
    fixture.pod("web-0", "n0", |pod| {
        Arc::make_mut(&mut pod.scheduling).volumes = [PodVolume::Claim("data".into())].into();
    });
    assert_eq!(refusal(&fixture, &["n0"]), "volume");
}

#[test]
fn quotas_and_missing_room_are_found_by_the_simulation() {
    let mut full = single();
    full.quota("team", &[("pods", 1, 1)], &[]);
    assert_eq!(refusal(&full, &["n0"]), "quota");
    let mut crowded = single();
    crowded.environment.room = 0;
    assert_eq!(refusal(&crowded, &["n0"]), "pending");
    let mut broken = single();
    broken.environment.ready = None;
    assert_eq!(refusal(&broken, &["n0"]), "neverReady");
}

#[test]
fn an_autoscaler_over_the_deployment_is_named_and_so_is_what_is_not_known() {
    let mut fixture = single();
    let hpa = Autoscaler {
        key: Key::new("default", "web-hpa"),
        target_kind: "Deployment".into(),
        target: "web".into(),
        min: 1,
        max: 5,
        owner: None,
    };
    fixture.autoscalers(vec![hpa.clone()]);
    assert_eq!(refusal(&fixture, &["n0"]), "autoscaled");
    let text = surge(&fixture.drain(&["n0"], surging())).text(NOW);
    assert!(
        text.contains("web-hpa (1 to 5 replicas)") && text.contains("raise its minReplicas to 2"),
        "{text}"
    );
    let keda =
        Owner { kind: OwnerKind::other("ScaledObject", "keda.sh"), name: "web".into(), uid: "s".into() };
    fixture.autoscalers(vec![Autoscaler { owner: Some(keda), ..hpa.clone() }]);
    let text = surge(&fixture.drain(&["n0"], surging())).text(NOW);
    assert!(text.contains("of ScaledObject web"), "{text}");
    fixture.autoscalers(vec![Autoscaler { target: "other".into(), ..hpa.clone() }]);
    assert_eq!(fixture.drain(&["n0"], surging()).prospect(), Prospect::Completes);
    for unknown in [
        KnownAutoscalers::NotRead,
        KnownAutoscalers::NotServed,
        KnownAutoscalers::Unreadable("forbidden".into()),
    ] {
        fixture.known_autoscalers(unknown);
        assert_eq!(refusal(&fixture, &["n0"]), "autoscalersUnknown");
    }
}

/// A server with Deployment web, whose controllers act at once: the new pod is Ready when `ready` says so, and an
/// evicted pod is gone at once.
struct FakeServer {
    fixture: PlanFixture,
    now: Timestamp,
    ready: Span,
    ready_at: Option<Timestamp>,
    replicas: i32,
    version: u64,
    claim: Option<DrainClaim>,
    autoscaler: Option<&'static str>,
    words: Vec<String>,
    undos: Vec<ScaleUndo>,
    /// Outcomes of the next requests that read or write a scale, in place of the usual outcomes.
    answers: Vec<RequestOutcome>,
    /// Whether the next write of a scale takes effect, but its response is lost.
    loses_response: bool,
}

impl FakeServer {
    fn new() -> Self {
        Self {
            fixture: single(),
            now: NOW,
            ready: Span::from_secs(10),
            ready_at: None,
            replicas: 1,
            version: 70,
            claim: None,
            autoscaler: None,
            words: Vec::new(),
            undos: Vec::new(),
            answers: Vec::new(),
            loses_response: false,
        }
    }

    fn start(&self, options: OperationOptions) -> Operation {
        let plan = self.fixture.drain(&["n0"], surging());
        Operation::start(&plan, options, &self.fixture.cluster, self.now)
    }

    /// Serves requests and lets time pass until the operation has ended, or for `span`.
    fn run(&mut self, operation: &mut Operation, span: Span) {
        let end = self.now + span;
        loop {
            while let Some(request) = operation.poll_request() {
                let outcome = self.serve(&request.task);
                if let Some(WriteUndo::Scale(undo)) = request.undo {
                    self.undos.push(undo);
                }
                operation.handle_change(&self.fixture.cluster, self.now);
                operation.handle_outcome(&self.fixture.cluster, request.id, outcome, self.now);
            }
            let due = operation.poll_timeout().into_iter().chain(self.ready_at).min();
            let Some(due) = due.filter(|due| *due <= end && operation.ended().is_none()) else { return };
            self.now = due.max(self.now);
            if self.ready_at.is_some_and(|at| at <= self.now) {
                self.add_new_pod();
            }
            operation.handle_change(&self.fixture.cluster, self.now);
            operation.handle_timeout(&self.fixture.cluster, self.now);
        }
    }

    /// Adds the new pod of the Deployment that was scaled up. The pod is Ready.
    fn add_new_pod(&mut self) {
        self.ready_at = None;
        self.fixture.pod("web-new", "n1", |pod| own(pod, WorkloadKind::ReplicaSet, "web")).sync();
    }

    fn serve(&mut self, task: &RequestKind) -> RequestOutcome {
        let is_scale =
            matches!(task, RequestKind::ReadScale { .. } | RequestKind::Write(PlanStep::Scale { .. }));
        if is_scale && !self.answers.is_empty() {
            self.words.push(format!("{task}: refused"));
            return self.answers.remove(0);
        }
        match task {
            RequestKind::ReadNode { node } => {
                let mut node = (**self.fixture.cluster.node(node).expect("there")).clone();
                node.drain_claim = self.claim.clone().map(Into::into);
                RequestOutcome::Node(Box::new(node))
            }
            RequestKind::Patch(patch) => {
                if let Some((_, text)) = patch.notes.iter().find(|(key, _)| *key == claim::DRAIN) {
                    self.claim = text.as_deref().and_then(DrainClaim::parse);
                }
                if patch.unschedulable == Some(true) {
                    self.fixture.node("n0", |node| node.unschedulable = true);
                }
                RequestOutcome::Done
            }
            RequestKind::ListPods { .. } => RequestOutcome::Pods(Vec::new()),
            RequestKind::ReadScale { .. } => RequestOutcome::Scale(DeploymentScale {
                uid: uid("Deployment", "web"),
                version: Version(self.version),
                replicas: self.replicas,
                autoscaler: self.autoscaler.map(Into::into),
            }),
            RequestKind::Write(PlanStep::Scale { version, replicas, .. }) => {
                self.words.push(format!("scale to {replicas}"));
                if *version != Some(Version(self.version)) {
                    return RequestOutcome::Conflict;
                }
                self.scale(*replicas);
                if std::mem::take(&mut self.loses_response) {
                    return RequestOutcome::NoResponse;
                }
                RequestOutcome::Done
            }
            RequestKind::Write(PlanStep::Evict { pod, .. }) => {
                let [_, _, _, allowed] = self.fixture.status("web");
                self.words.push(format!("evict {}, {allowed} allowed", pod.name));
                if allowed < 1 {
                    return RequestOutcome::BudgetExhausted("needs 1, has 1".into());
                }
                let gone = Change::Pod(ObjectEvent::Deleted(pod.clone()));
                self.fixture.cluster.apply(gone, &mut Vec::new());
                self.fixture.sync();
                RequestOutcome::Done
            }
            RequestKind::Write(other) => panic!("a drain asks for {other:?}"),
        }
    }

    /// Scales the Deployment, as another client may also do.
    fn scale(&mut self, replicas: i32) {
        self.version += 1;
        if replicas > self.replicas {
            self.ready_at = Some(self.now + self.ready);
        }
        self.replicas = replicas;
        for kind in [WorkloadKind::Deployment, WorkloadKind::ReplicaSet] {
            self.fixture.change_workload(kind, "web", |it| it.replicas = Some(replicas));
        }
        self.fixture.sync();
    }
}

fn by_alice() -> OperationOptions {
    OperationOptions { id: "p1".parse().expect("an id"), by: "alice".into(), ..OperationOptions::default() }
}

fn stage(operation: &Operation) -> SurgeProgressStage {
    operation.progress().surges[0].stage.clone()
}

const HOUR: Span = Span::from_secs(3600);

#[test]
fn the_pod_is_evicted_only_when_the_new_one_is_there_and_the_scale_is_put_back() {
    let mut server = FakeServer::new();
    let mut operation = server.start(by_alice());
    server.run(&mut operation, HOUR);
    assert_eq!(operation.ended(), Some(OperationEnd::Done), "{:?}", operation.progress());
    assert_eq!(server.words, ["scale to 2", "evict web-0, 1 allowed", "scale to 1"]);
    assert_eq!((server.replicas, stage(&operation)), (1, SurgeProgressStage::ScaledBack));
    let undo = ScaleUndo {
        deployment: Key::new("default", "web"),
        uid: uid("Deployment", "web"),
        before: 1,
        after: 2,
    };
    assert_eq!(server.undos, [undo], "the write up can be undone, and the one back is the undo");
    assert_eq!(server.claim, None);
}

#[test]
fn the_scale_is_read_again_after_a_conflict() {
    let mut server = FakeServer::new();
    let scale = || DeploymentScale {
        uid: uid("Deployment", "web"),
        version: Version(69),
        replicas: 1,
        autoscaler: None,
    };
    // The first read of the scale returns an outdated version, so the first write has a conflict.
    server.answers = vec![RequestOutcome::Scale(scale())];
    let mut operation = server.start(by_alice());
    server.run(&mut operation, HOUR);
    assert_eq!(operation.ended(), Some(OperationEnd::Done), "{:?}", operation.progress());
    let writes: Vec<&str> =
        server.words.iter().map(String::as_str).filter(|word| word.starts_with("scale to")).collect();
    assert_eq!(writes, ["scale to 2", "scale to 2", "scale to 1"], "the first has a conflict");
}

#[test]
fn the_scale_is_read_again_after_a_lost_response() {
    let mut server = FakeServer::new();
    server.loses_response = true;
    let mut operation = server.start(by_alice());
    server.run(&mut operation, HOUR);
    assert_eq!(operation.ended(), Some(OperationEnd::Done), "{:?}", operation.progress());
    assert_eq!(server.words, ["scale to 2", "evict web-0, 1 allowed", "scale to 1"], "no second scale up");
    assert_eq!((server.replicas, stage(&operation)), (1, SurgeProgressStage::ScaledBack));
}

#[test]
fn a_cancel_before_the_new_pod_is_there_puts_the_scale_back() {
    let mut server = FakeServer::new();
    server.ready = HOUR;
    let mut operation = server.start(by_alice());
    server.run(&mut operation, Span::from_secs(20));
    assert_eq!((server.replicas, operation.ended()), (2, None));
    operation.cancel(&server.fixture.cluster, server.now);
    server.run(&mut operation, HOUR);
    assert_eq!(operation.ended(), Some(OperationEnd::Cancelled));
    assert_eq!((server.replicas, stage(&operation)), (1, SurgeProgressStage::ScaledBack));
    assert!(!server.words.iter().any(|word| word.ends_with("1 allowed")), "{:?}", server.words);
}

#[test]
fn a_timeout_puts_the_scale_back() {
    let mut server = FakeServer::new();
    server.ready = HOUR;
    let options = OperationOptions { total_timeout: Some(Span::from_secs(60)), ..by_alice() };
    let mut operation = server.start(options);
    server.run(&mut operation, HOUR);
    assert_eq!(operation.ended(), Some(OperationEnd::TimedOut));
    assert_eq!((server.replicas, stage(&operation)), (1, SurgeProgressStage::ScaledBack));
}

#[test]
fn what_somebody_else_scales_meanwhile_is_left_alone() {
    let mut server = FakeServer::new();
    server.ready = HOUR;
    let mut operation = server.start(by_alice());
    server.run(&mut operation, Span::from_secs(5));
    server.scale(7);
    operation.cancel(&server.fixture.cluster, server.now);
    server.run(&mut operation, HOUR);
    assert_eq!(server.replicas, 7);
    assert!(matches!(stage(&operation), SurgeProgressStage::LeftAlone(why) if why.contains("7 replicas")));
}

#[test]
fn an_autoscaler_that_came_after_the_plan_keeps_it_from_being_scaled() {
    let mut server = FakeServer::new();
    server.autoscaler = Some("web-hpa");
    let mut operation = server.start(by_alice());
    server.run(&mut operation, Span::from_secs(60));
    assert_eq!(server.replicas, 1);
    assert!(matches!(stage(&operation), SurgeProgressStage::NotScaled(why) if why.contains("web-hpa")));
    assert_eq!(operation.ended(), None, "its budget holds the pod as without a surge");
}

#[test]
fn a_scale_that_cannot_be_put_back_is_named_and_not_called_done() {
    let mut server = FakeServer::new();
    let mut operation = server.start(by_alice());
    server.run(&mut operation, Span::from_secs(5));
    server.answers = vec![RequestOutcome::Forbidden("no".into())];
    server.run(&mut operation, HOUR);
    assert_eq!((operation.ended(), server.replicas), (Some(OperationEnd::Partly), 2));
    assert_eq!(stage(&operation), SurgeProgressStage::Stranded("no".into()));
}

/// The process is killed after it has scaled the Deployment up. This is recorded in the journal, or only in the claim
/// (an annotation) on the node.
#[test]
fn a_killed_surge_is_gone_on_with_from_the_journal_or_from_the_claim() {
    let killed = || {
        let mut server = FakeServer::new();
        let mut operation = server.start(by_alice());
        server.run(&mut operation, Span::from_secs(5));
        assert_eq!(server.replicas, 2);
        let surge = ClaimedSurge {
            deployment: Key::new("default", "web"),
            uid: uid("Deployment", "web"),
            replicas: 1,
        };
        assert_eq!(server.claim.as_ref().map(|claim| claim.surges.clone()), Some(vec![surge]));
        server.words.clear();
        server
    };
    let mut server = killed();
    let prior = PriorRun { surges: server.undos.clone(), ..PriorRun::default() };
    let mut resumed = server.start(OperationOptions { prior, ..by_alice() });
    server.run(&mut resumed, HOUR);
    assert_eq!((resumed.ended(), server.replicas), (Some(OperationEnd::Done), 1), "{:?}", resumed.progress());
    assert_eq!(server.words, ["evict web-0, 1 allowed", "scale to 1"]);

    let mut server = killed();
    server.add_new_pod();
    let (prior, began) = (PriorRun { surges: server.undos.clone(), ..PriorRun::default() }, server.now);
    let mut resumed = server.start(OperationOptions { prior, ..by_alice() });
    server.run(&mut resumed, HOUR);
    assert_eq!((resumed.ended(), server.now), (Some(OperationEnd::Done), began), "{:?}", resumed.progress());

    let mut server = killed();
    server.now += Span::from_secs(600);
    let options = OperationOptions { id: "p2".parse().expect("an id"), by: "bob".into(), ..by_alice() };
    let mut elsewhere = server.start(options);
    server.run(&mut elsewhere, HOUR);
    assert_eq!(
        (elsewhere.ended(), server.replicas),
        (Some(OperationEnd::Done), 1),
        "{:?}",
        elsewhere.progress()
    );
    assert_eq!(server.words.last().map(String::as_str), Some("scale to 1"));
}

#[test]
fn an_undo_scales_back_what_a_killed_drain_left() {
    let mut server = FakeServer::new();
    server.ready = HOUR;
    let mut operation = server.start(by_alice());
    server.run(&mut operation, Span::from_secs(5));
    let undo = Undo { scales: server.undos.clone(), ..Undo::default() };
    let (steps, _) = undo.writes(&server.fixture.cluster);
    assert!(matches!(&steps[..], [PlanStep::Scale { replicas: 1, .. }]), "{steps:?}");
    let rules = server.fixture.rules();
    let options = OperationOptions { undoes: "p1".parse().ok(), ..by_alice() };
    let mut back = Operation::undo(&undo, options, rules, &server.fixture.cluster, server.now);
    server.run(&mut back, HOUR);
    assert_eq!((back.ended(), server.replicas), (Some(OperationEnd::Done), 1));
}

#[test]
fn a_dry_run_records_both_writes() {
    let fixture = single();
    let plan = fixture.drain(&["n0"], surging());
    let mut operation = Operation::start(&plan, by_alice(), &fixture.cluster, NOW);
    let mut words = Vec::new();
    while let Some(request) = operation.poll_request() {
        words.push(request.task.to_string());
        operation.handle_outcome(&fixture.cluster, request.id, RequestOutcome::Recorded, NOW);
    }
    assert_eq!(operation.ended(), Some(OperationEnd::Recorded), "{:?}", operation.progress());
    assert_eq!(words, ["read", "cordon", "read", "scale", "evict", "read", "scale"], "{words:?}");
    assert_eq!(stage(&operation), SurgeProgressStage::Recorded);
    assert!(matches!(&plan.action, Action::Drain { options, .. } if options.surge));
}
