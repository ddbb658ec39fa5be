//! The pod that replaces another one: its contents, and when it finds a node.

use std::{collections::BTreeMap, sync::Arc};

use kordon_core::{
    cluster::{
        AccessModes, Change, Claim, Condition, ConditionStatus, ContainerResources, Key, KubeletSpec, Labels,
        Name, ObjectEvent, Pod, PodResources, READY, Requests, Requirement, Selector, SelectorOperator,
        Taint, Toleration, TolerationOperator, Volume, VolumeProperties, WorkloadKind,
        scheduling::{PodDeviceClaim, PodTerm, PodTerms, PodVolume, SchedulingSpec, SpreadConstraint},
        stateful_set::StatefulRules,
    },
    placement::Snapshot,
    plan::{
        Action, Failover, FailoverRun, Landing, LostNodes, OutcomeKind, PlacingEnvironment, PodOutcome,
        RemovalOptions, StuckReason, TaintEdits, failover,
        failover::{leave_lost_nodes, leave_running_nodes},
    },
};
use kordon_time::{ClusterTime, Span};

use crate::{
    landing::{asks, drain, evict, node, plan, replicas, roomy},
    plan_fixture::{NEWEST, NOW, PlanFixture, at, least, of, own, taint, terminating},
};

/// Kubernetes 1.36: a node that is Unknown stays in `NodeInfo`, and `podtopologyspread/common.go`
/// `countPodsMatchSelector` skips terminating pods. So the domain of this node has zero pods, and with maxSkew 1 no
/// other domain may have two.
#[test]
fn a_failed_node_stays_a_domain_of_spread_constraints_and_a_deleted_one_does_not() {
    let mut fixture = roomy(&[("n1", 4), ("n2", 4), ("n3", 4)]);
    replicas(&mut fixture, "web", &["n1", "n2", "n3"], 1);
    for (place, name) in ["n1", "n2", "n3"].into_iter().enumerate() {
        fixture.node(name, |node| node.labels = labels(&[("kubernetes.io/hostname", name)]));
        fixture.pod(&format!("web-{place}"), name, |pod| {
            let spread = SpreadConstraint {
                max_skew: 1,
                topology_key: "kubernetes.io/hostname".into(),
                hard: true,
                selector: Some(with_label("app", "web")),
                match_label_keys: Box::default(),
                min_domains: 1,
                honours_affinity: true,
                honours_taints: false,
            };
            pod.scheduling = SchedulingSpec { spread: [spread].into(), ..SchedulingSpec::default() }.into();
        });
    }
    let lost = fail(&fixture, &["n1"]);
    assert_eq!(lost.counts().text(), "1 Pending");
    let deleted = plan(&fixture, Action::DeleteNode { nodes: vec!["n1".into()] });
    assert_eq!(of(&deleted, "web-0").outcome.kind(), OutcomeKind::Moves);
}

#[test]
fn no_replacement_lands_on_a_failed_node_whatever_it_tolerates() {
    let mut fixture = roomy(&[("n1", 4), ("n2", 1)]);
    replicas(&mut fixture, "web", &["n1"], 2);
    fixture.pod("web-0", "n1", |pod| {
        let (operator, seconds) = (TolerationOperator::Exists, Some(300));
        let mut toleration = Toleration { operator, seconds, ..Toleration::default() };
        toleration.key = Name::default();
        pod.tolerations = [toleration].into();
    });
    assert_eq!(fail(&fixture, &["n1"]).counts().text(), "1 Pending");
}

/// A node that comes back takes the pods that were Pending until then.
#[test]
fn a_pending_replacement_lands_once_a_node_is_back() {
    let mut fixture = roomy(&[("n1", 2), ("n2", 1)]);
    replicas(&mut fixture, "web", &["n1"], 2);
    let back = NOW + Span::from_secs(1200);
    let failover = |fixture: &PlanFixture| {
        let lost = LostNodes { recovering: BTreeMap::from([("n1".into(), back)]), ..LostNodes::default() };
        let mut pods = leave_lost_nodes(&fixture.cluster, &["n1".into()].into());
        pods[0].created = Some(NOW + Span::from_secs(350));
        let mut run = FailoverRun::new(pods, lost, placing(fixture));
        while run.advance(&fixture.cluster) {}
        run.finish()
    };
    let found = failover(&fixture);
    let web = &found.pods[0];
    assert_eq!(
        (web.landing.as_ref().and_then(Landing::node).map(|node| &**node), web.landed),
        (Some("n1"), Some(back))
    );
    assert_eq!(web.outcome.kind(), OutcomeKind::SameNode);
    fixture.pod("batch", "n2", |pod| {
        pod.node = None;
        asks(pod, 2);
    });
    assert_eq!(
        failover(&fixture).pods[0].outcome.kind(),
        OutcomeKind::Pending,
        "the other has waited longer"
    );
}

/// Kubernetes 1.37, `queuesort/priority_sort.go`: the scheduler tries pods of equal priority in the order in which they
/// began to wait. A replacement waits from the moment at which it did not fit.
#[test]
fn a_pod_that_was_pending_before_takes_the_room_of_an_evicted_one() {
    let found = |priority: i32, cores: i64, taints: &[Taint]| {
        let mut fixture = roomy(&[("n1", 4)]);
        fixture.node("n1", |node| node.taints = taints.iter().cloned().collect());
        replicas(&mut fixture, "web", &["n1"], 3);
        let tolerates = |pod: &mut Pod| {
            let (operator, seconds) = (TolerationOperator::Exists, Some(10));
            pod.tolerations = [Toleration { operator, seconds, ..Toleration::default() }].into();
        };
        fixture.pod("web-0", "n1", |pod| {
            pod.priority = priority;
            tolerates(pod);
        });
        fixture.pod("batch", "n1", |pod| {
            pod.node = None;
            asks(pod, cores);
            tolerates(pod);
        });
        let pod = fixture.cluster.pods_on(&"n1".into()).next().expect("web-0").clone();
        let pods = leave_running_nodes(&fixture.cluster, [pod]);
        let found = failover(&fixture.cluster, pods, LostNodes::default(), placing(&fixture));
        found.pods[0].outcome.kind()
    };
    let outcome = |priority: i32, cores: i64| found(priority, cores, &[]);
    assert_eq!(outcome(0, 3), OutcomeKind::Pending);
    assert_eq!(outcome(0, 5), OutcomeKind::SameNode, "the other pod does not fit");
    assert_eq!(outcome(0, 1), OutcomeKind::SameNode, "there is room for both");
    assert_eq!(outcome(1, 3), OutcomeKind::SameNode, "the replacement goes first");
    let taints = [taint("gone=x:NoExecute")];
    assert_eq!(found(0, 3, &taints), OutcomeKind::SameNode, "the other pod leaves again after 10 s");
}

/// Kubernetes 1.36, `kubelet/lifecycle/predicate.go` `generalFilter`: the kubelet checks resources and NoExecute
/// taints.
#[test]
fn a_node_that_a_template_names_must_run_the_pod() {
    let pinned = || {
        let mut fixture = roomy(&[("n1", 4), ("n2", 4)]);
        replicas(&mut fixture, "web", &["n1"], 2);
        fixture.change_workload(WorkloadKind::ReplicaSet, "web", |workload| {
            workload.template = Some(Box::new(Pod { node: Some("n2".into()), ..Pod::default() }));
        });
        fixture
    };
    let why = |fixture: &PlanFixture| {
        let plan = drain(fixture, &["n1"]);
        let web = of(&plan, "web-0");
        web.landing.clone().expect("it is replaced").to_string()
            + web.landing.as_ref().and_then(Landing::why).map_or("", |why| why)
    };
    assert_eq!(why(&pinned()), "n2its template names the node");
    let mut full = pinned();
    full.pod("big", "n2", |pod| asks(pod, 3));
    assert_eq!(
        why(&full),
        "never runsits template names node n2, whose kubelet rejects it: insufficient cpu"
    );
    let mut leaving = pinned();
    leaving.pod("big", "n2", |pod| {
        asks(pod, 3);
        terminating(pod, 10);
    });
    assert_eq!(why(&leaving), "n2its template names the node", "the other pod is about to leave");
    let mut tainted = pinned();
    tainted.node("n2", |node| node.taints = [taint("gone=x:NoExecute")].into());
    assert!(why(&tainted).ends_with("whose kubelet rejects it: untolerated taints"), "{}", why(&tainted));
    let mut cordoned = pinned();
    cordoned.node("n2", |node| node.unschedulable = true);
    assert_eq!(why(&cordoned), "n2its template names the node", "no scheduler is asked");
    let mut dead = pinned();
    dead.node("n2", |node| node.conditions = [unknown()].into());
    assert!(why(&dead).ends_with("whose kubelet is down"), "{}", why(&dead));
    // A what-if forecast of a node's failure and N-1 (the loss of any one node) give the same result.
    let mut own = pinned();
    own.change_workload(WorkloadKind::ReplicaSet, "web", |workload| {
        workload.template = Some(Box::new(Pod { node: Some("n1".into()), ..Pod::default() }));
    });
    assert_eq!(fail(&own, &["n1"]).counts().text(), "1 Pending");
}

/// Kubernetes 1.36, `plugin/pkg/admission/limitranger/admission.go` `mergePodResourceRequirements`: the LimitRanger
/// plugin sets requests that a pod lacks.
#[test]
fn requests_that_the_template_leaves_open_are_those_that_admission_gave_the_pod() {
    let mut fixture = roomy(&[("n1", 4), ("n2", 4)]);
    fixture.pod("big", "n2", |pod| asks(pod, 4));
    replicas(&mut fixture, "web", &["n1"], 1);
    fixture.pod("web-0", "n1", |pod| pod.resources = container(1000, 1000).into());
    // The container of the template requests no CPU; scores assume 100m for it.
    fixture.change_workload(WorkloadKind::ReplicaSet, "web", |workload| {
        workload.template = Some(Box::new(Pod { resources: container(0, 100).into(), ..Pod::default() }));
    });
    let plan = drain(&fixture, &["n1"]);
    assert_eq!(of(&plan, "web-0").outcome.short(), "→ Pending: no matching node has 1 CPU free");
}

/// A pod on n1, and its ReplicaSet, whose template has this `pod-template-hash`. `change` adds to the pod what the
/// template does not have. n2 has 4 CPU. n3 also has 4 CPU, and the label `kind=kata`.
fn with_additions(hash: &str, change: impl Fn(&mut Pod)) -> PlanFixture {
    let mut fixture = roomy(&[("n1", 4), ("n2", 4), ("n3", 4)]);
    fixture.node("n3", |node| node.labels = labels(&[("kind", "kata")]));
    replicas(&mut fixture, "web", &["n1"], 1);
    fixture.pod("web-0", "n1", |pod| {
        pod.resources = container(3000, 3000).into();
        pod.labels = labels(&[("app", "web"), ("pod-template-hash", "1")]);
        change(pod);
    });
    fixture.change_workload(WorkloadKind::ReplicaSet, "web", |workload| {
        let labels = labels(&[("app", "web"), ("pod-template-hash", hash)]);
        let resources = container(3000, 3000).into();
        workload.template = Some(Box::new(Pod { labels, resources, ..Pod::default() }));
    });
    fixture
}

/// Fields that a pod has and its template lacks were added by admission, which adds the same fields to the next pod:
/// kubernetes 1.37 `plugin/pkg/admission/runtimeclass`, `podnodeselector`, `podtolerationrestriction`. Webhooks add
/// sidecars.
#[test]
fn what_admission_added_to_a_pod_it_adds_to_its_replacement() {
    let outcome = |fixture: &PlanFixture| of(&drain(fixture, &["n1"]), "web-0").outcome.short().to_string();
    let selected = |pod: &mut Pod| {
        let node_selector = [("kind".into(), "kata".into())].into();
        pod.scheduling = SchedulingSpec { node_selector, ..SchedulingSpec::default() }.into();
    };
    assert_eq!(outcome(&with_additions("1", selected)), "→ n3");
    assert_eq!(outcome(&with_additions("2", selected)), "→ any of 2 nodes", "of another template");
    let overhead = |pod: &mut Pod| {
        let mut resources = container(3000, 3000);
        resources.requests.cpu_milli = 4500;
        pod.resources = resources.into();
    };
    assert!(outcome(&with_additions("1", overhead)).contains("Pending"), "3 CPU and an overhead of 1.5");
    assert_eq!(outcome(&with_additions("2", overhead)), "→ any of 2 nodes");
    let injected = |pod: &mut Pod| {
        let mut resources = container(3000, 3000);
        let proxy =
            ContainerResources { name: "proxy".into(), cpu_request_milli: 1500, ..Default::default() };
        resources.kubelet.containers = [resources.kubelet.containers[0].clone(), proxy].into();
        resources.requests.cpu_milli = 4500;
        pod.resources = resources.into();
    };
    assert!(outcome(&with_additions("1", injected)).contains("Pending"), "3 CPU and a proxy of 1.5");
    let tolerated = |hash: &str| {
        let mut fixture = with_additions(hash, |pod| {
            let key = "kata".into();
            let operator = TolerationOperator::Exists;
            pod.tolerations = [Toleration { key, operator, ..Default::default() }].into();
        });
        for node in ["n2", "n3"] {
            fixture.node(node, |node| node.taints = [taint("kata=x:NoSchedule")].into());
        }
        outcome(&fixture)
    };
    assert_eq!(tolerated("1"), "→ any of 2 nodes");
    assert!(tolerated("2").contains("Pending"), "{}", tolerated("2"));
}

/// Admission changes all pods of a template, and `kubectl edit` one.
#[test]
fn a_toleration_that_a_sibling_lacks_is_not_that_of_the_replacement() {
    let outcome = |does_sibling_tolerate: bool| {
        let tolerating = |pod: &mut Pod| {
            let (key, operator) = ("kata".into(), TolerationOperator::Exists);
            pod.tolerations = [Toleration { key, operator, ..Default::default() }].into();
        };
        let mut fixture = with_additions("1", tolerating);
        let of_web_0 = (**fixture.cluster.pod(&Key::new("default", "web-0")).expect("added")).clone();
        fixture.change_workload(WorkloadKind::ReplicaSet, "web", |workload| workload.replicas = Some(2));
        fixture.pod("web-1", "n2", |pod| {
            (pod.owner, pod.labels) = (of_web_0.owner, of_web_0.labels);
            if does_sibling_tolerate {
                tolerating(pod);
            }
        });
        for node in ["n2", "n3"] {
            fixture.node(node, |node| node.taints = [taint("kata=x:NoSchedule")].into());
        }
        of(&drain(&fixture, &["n1"]), "web-0").outcome.kind()
    };
    assert_eq!((outcome(true), outcome(false)), (OutcomeKind::Moves, OutcomeKind::Pending));
}

/// Kubernetes 1.37 `plugin/pkg/admission/priority/admission.go`: a pod is refused if its priority class no longer
/// exists.
#[test]
fn a_replacement_whose_priority_class_is_gone_is_refused() {
    let mut fixture = roomy(&[("n1", 4), ("n2", 4)]);
    replicas(&mut fixture, "web", &["n1"], 1);
    fixture.change_workload(WorkloadKind::ReplicaSet, "web", |workload| {
        let mut resources = container(1000, 1000);
        resources.quota.priority_class = "high".into();
        workload.template = Some(Box::new(Pod { resources: resources.into(), ..Pod::default() }));
    });
    fixture.priority_class("other", 1000, false);
    let plan = drain(&fixture, &["n1"]);
    assert_eq!(
        of(&plan, "web-0").outcome.short(),
        "→ Pending: the API server refuses it: its PriorityClass high is gone"
    );
    fixture.priority_class("high", 1000, false);
    assert_eq!(of(&drain(&fixture, &["n1"]), "web-0").outcome.kind(), OutcomeKind::Moves);
}

#[test]
fn no_new_node_is_suggested_with_the_host_name_of_the_drained_one() {
    let mut fixture = roomy(&[("n1", 4), ("n2", 4)]);
    for name in ["n1", "n2"] {
        fixture.node(name, |node| node.labels = labels(&[("kubernetes.io/hostname", name)]));
    }
    replicas(&mut fixture, "web", &["n1"], 1);
    let mut needed = |host: &str| {
        fixture.pod("web-0", "n1", |pod| {
            let node_selector = [("kubernetes.io/hostname".into(), host.into())].into();
            pod.scheduling = SchedulingSpec { node_selector, ..SchedulingSpec::default() }.into();
        });
        let plan = drain(&fixture, &["n1"]);
        let help = of(&plan, "web-0").placement.as_ref().and_then(|trace| trace.help.clone());
        help.expect("it stays Pending").node.is_some()
    };
    assert_eq!((needed("n1"), needed("n9")), (false, true));
}

#[test]
fn the_cause_names_what_the_replacement_requests() {
    let mut fixture = roomy(&[("n1", 4), ("n2", 2)]);
    replicas(&mut fixture, "web", &["n1"], 1);
    fixture.change_workload(WorkloadKind::ReplicaSet, "web", |workload| {
        workload.template = Some(Box::new(Pod { resources: container(3000, 3000).into(), ..Pod::default() }));
    });
    let plan = drain(&fixture, &["n1"]);
    assert_eq!(of(&plan, "web-0").outcome.short(), "→ Pending: no matching node has 3 CPU free");
}

/// Kubernetes 1.36, `plugin/pkg/admission/priority/admission.go` `admitPod`: the Priority plugin sets the priority of a
/// pod from its priority class.
#[test]
fn the_priority_of_a_replacement_is_that_of_the_class_in_its_template() {
    let full = |class: &str, old: i32| {
        let mut fixture = roomy(&[("n1", 4), ("n2", 2)]);
        replicas(&mut fixture, "low", &["n2"], 2);
        replicas(&mut fixture, "web", &["n1"], 2);
        fixture.pod("web-0", "n1", |pod| pod.priority = old);
        fixture.change_workload(WorkloadKind::ReplicaSet, "web", |workload| {
            let mut resources = container(2000, 2000);
            resources.quota.priority_class = class.into();
            workload.template = Some(Box::new(Pod { resources: resources.into(), ..Pod::default() }));
        });
        fixture.priority_class("high", 1000, false);
        fixture
    };
    let outcome = |fixture: &PlanFixture| of(&drain(fixture, &["n1"]), "web-0").outcome.kind();
    assert_eq!(outcome(&full("high", 0)), OutcomeKind::Preempts);
    assert_eq!(outcome(&full("", 1000)), OutcomeKind::Pending);
    let mut with_default = full("", 0);
    with_default.priority_class("usual", 500, true);
    assert_eq!(outcome(&with_default), OutcomeKind::Preempts);
    let mut unknown = full("", 1000);
    unknown.forbid(kordon_core::cluster::FeedKind::PriorityClasses);
    assert_eq!(outcome(&unknown), OutcomeKind::Preempts, "that of the old pod");
}

/// A ReplicaSet creates pods from its template, so a replacement has a label that somebody removed from the old pod.
#[test]
fn the_labels_of_a_replacement_are_those_of_its_template() {
    let mut fixture = roomy(&[("n1", 4), ("n2", 4)]);
    replicas(&mut fixture, "web", &["n1"], 1);
    fixture.change_workload(WorkloadKind::ReplicaSet, "web", |workload| {
        let labels = labels(&[("app", "web"), ("role", "main")]);
        workload.template =
            Some(Box::new(Pod { labels, resources: container(1000, 1000).into(), ..Pod::default() }));
    });
    fixture.pod("lonely", "n2", |pod| {
        let term = PodTerm {
            selector: Some(with_label("role", "main")),
            topology_key: "kubernetes.io/hostname".into(),
            ..PodTerm::default()
        };
        let pod_anti_affinity = PodTerms { required: [term].into(), ..PodTerms::default() };
        pod.scheduling = SchedulingSpec { pod_anti_affinity, ..SchedulingSpec::default() }.into();
    });
    for name in ["n1", "n2"] {
        fixture.node(name, |node| node.labels = labels(&[("kubernetes.io/hostname", name)]));
    }
    assert_eq!(of(&drain(&fixture, &["n1"]), "web-0").outcome.kind(), OutcomeKind::Pending);
}

/// Budgets also count the replacement, by the labels that it will have.
#[test]
fn a_budget_counts_a_replacement_by_the_labels_of_its_template() {
    let mut fixture = roomy(&[("n1", 4), ("n2", 4)]);
    replicas(&mut fixture, "web", &["n1", "n1"], 1);
    fixture.change_workload(WorkloadKind::ReplicaSet, "web", |workload| {
        let template = Pod { labels: labels(&[("app", "other")]), ..Pod::default() };
        workload.template = Some(Box::new(template));
    });
    fixture.budget("web", |budget| budget.min_available = least(1)).sync();
    let plan = drain(&fixture, &["n1"]);
    let leave = plan.pods.iter().filter(|pod| pod.leaves.likely.is_some()).count();
    assert_eq!(leave, 1, "no new pod counts for the budget");
}

#[test]
fn nothing_says_when_the_gates_of_a_replacement_are_removed() {
    let mut fixture = roomy(&[("n1", 4), ("n2", 4)]);
    replicas(&mut fixture, "web", &["n1"], 1);
    fixture.change_workload(WorkloadKind::ReplicaSet, "web", |workload| {
        let scheduling =
            SchedulingSpec { gates: ["example.com/wait".into()].into(), ..SchedulingSpec::default() };
        workload.template = Some(Box::new(Pod { scheduling: scheduling.into(), ..Pod::default() }));
    });
    let plan = drain(&fixture, &["n1"]);
    let web = of(&plan, "web-0");
    assert_eq!((web.ready_again, web.outcome.kind()), (None, OutcomeKind::Unknown));
}

/// Kubernetes 1.36, `statefulset/stateful_set_control.go` `processReplica`: unless pods are created in parallel, a
/// terminating pod keeps the pods after it from being created.
#[test]
fn a_pod_behind_a_terminating_lower_ordinal_is_not_created() {
    let mut fixture = roomy(&[("n1", 4), ("n2", 4), ("n3", 4)]);
    fixture.owner(WorkloadKind::StatefulSet, "db", 2);
    fixture.change_workload(WorkloadKind::StatefulSet, "db", |workload| {
        workload.stateful = Some(StatefulRules::default());
    });
    for (place, name) in ["n1", "n2"].into_iter().enumerate() {
        fixture.node(name, |node| node.conditions = [unknown()].into());
        fixture.pod(&format!("db-{place}"), name, |pod| {
            own(pod, WorkloadKind::StatefulSet, "db");
            pod.created = ClusterTime::new(NOW - Span::from_secs(10));
            terminating(pod, -60);
        });
    }
    let taint = |nodes: &[&str]| {
        let edits =
            TaintEdits::parse(["node.kubernetes.io/out-of-service=x:NoExecute"], false).expect("a taint");
        plan(&fixture, Action::Taint { nodes: nodes.iter().map(|node| (*node).into()).collect(), edits })
    };
    let behind = PodOutcome::Stuck(StuckReason::LowerOrdinal { pod: "db-0".into() });
    assert_eq!(of(&taint(&["n2"]), "db-1").outcome, behind);
    let both = taint(&["n1", "n2"]);
    let (first, second) = (at(of(&both, "db-0").ready_again), at(of(&both, "db-1").ready_again));
    assert_eq!((first, second), (Some(20), Some(30)), "one after the other");
    let options = RemovalOptions { grace: Some(Span::ZERO), ..RemovalOptions::default() };
    let deleted = plan(&fixture, Action::Delete { pods: vec![Key::new("default", "db-1")], options });
    assert_eq!(of(&deleted, "db-1").outcome, behind);
}

/// Kubernetes 1.36, `attachdetach/reconciler/reconciler.go` `reconcile`: the volume is detached six minutes after the
/// removal of the pod, because nobody has unmounted it.
#[test]
fn a_volume_of_a_deleted_node_is_detached_by_force() {
    let mut fixture = with_volume(false);
    let ready = |fixture: &PlanFixture| {
        let plan = plan(fixture, Action::DeleteNode { nodes: vec!["n1".into()] });
        at(of(&plan, "web-0").ready_again)
    };
    assert_eq!(ready(&fixture), Some(50 + 360));
    fixture = with_volume(true);
    assert_eq!(ready(&fixture), Some(50), "nothing attaches it");
}

/// Kubernetes 1.36, `volume/plugins.go` `FindAttachablePluginBySpec`: local volumes, NFS and similar volumes have no
/// attacher.
#[test]
fn a_volume_that_nothing_attaches_holds_no_replacement() {
    assert_eq!(fail(&with_volume(false), &["n1"]).counts().text(), "1 stuck");
    assert_eq!(fail(&with_volume(true), &["n1"]).counts().text(), "1 moves");
}

#[test]
fn a_replacement_takes_the_room_of_pods_that_are_gone() {
    let mut fixture = roomy(&[("n1", 2), ("n2", 2)]);
    replicas(&mut fixture, "web", &["n1"], 2);
    replicas(&mut fixture, "other", &["n2"], 2);
    let evicted = evict(&fixture, &["web-0"]);
    assert_eq!(node(of(&evicted, "web-0")), Some("n1"));
    let edits = TaintEdits::parse(["gone=x:NoExecute"], false).expect("a taint");
    let tainted = plan(&fixture, Action::Taint { nodes: vec!["n1".into()], edits });
    assert_eq!(node(of(&tainted, "web-0")), None, "its node is tainted");
}

/// A pod on the first of two nodes. Only one node at a time can use the volume of its claim.
fn with_volume(needs_no_attachment: bool) -> PlanFixture {
    let mut fixture = roomy(&[("n1", 4), ("n2", 4)]);
    replicas(&mut fixture, "web", &["n1"], 1);
    let modes = AccessModes { read_write_once: true, ..AccessModes::default() };
    let properties = VolumeProperties { modes, ..VolumeProperties::default() };
    let volume = Volume { name: "data".into(), properties, needs_no_attachment, ..Volume::default() };
    let (key, volume_name) = (Key::new("default", "data"), "data".into());
    let claim = Claim { key, volume: volume_name, is_bound: true, requested: properties, ..Claim::default() };
    fixture.cluster.apply(Change::Volume(ObjectEvent::Applied(volume)), &mut Vec::new());
    fixture.cluster.apply(Change::Claim(ObjectEvent::Applied(claim)), &mut Vec::new());
    fixture.pod("web-0", "n1", |pod| {
        let volumes = [PodVolume::Claim("data".into())].into();
        pod.scheduling = SchedulingSpec { volumes, ..SchedulingSpec::default() }.into();
    });
    fixture
}

/// The resources of a pod with one container: its CPU request, and the request that scores assume.
fn container(cpu_milli: i64, assumed_cpu_milli: i64) -> PodResources {
    let requests = Requests { cpu_milli, assumed_cpu_milli, ..Requests::default() };
    let container =
        ContainerResources { name: "c".into(), cpu_request_milli: cpu_milli, ..Default::default() };
    let kubelet = KubeletSpec { containers: [container].into(), ..KubeletSpec::default() };
    PodResources { requests, kubelet, ..PodResources::default() }
}

fn labels(entries: &[(&str, &str)]) -> Labels {
    entries.iter().map(|(key, value)| (Name::from(*key), Name::from(*value))).collect()
}

fn with_label(key: &str, value: &str) -> Selector {
    let operator = SelectorOperator::In(vec![value.into()]);
    Selector { requirements: vec![Requirement { key: key.into(), operator }] }
}

fn unknown() -> Condition {
    Condition { kind: READY.into(), status: ConditionStatus::Unknown, ..Condition::default() }
}

fn placing(fixture: &PlanFixture) -> PlacingEnvironment<'_> {
    PlacingEnvironment::new(&fixture.cluster, Snapshot::new(&fixture.cluster, NEWEST), NOW)
}

/// The outcomes of the pods of nodes that fail and do not come back.
fn fail(fixture: &PlanFixture, nodes: &[&str]) -> Failover {
    let nodes = nodes.iter().map(|node| (*node).into()).collect();
    let pods = leave_lost_nodes(&fixture.cluster, &nodes);
    failover(&fixture.cluster, pods, LostNodes::failed(Arc::new(nodes)), placing(fixture))
}

/// On a control plane of Kubernetes 1.37.1, a node with three pods of `large` and one of `web` failed seven times. The
/// replacements were created within 50 ms, in another order each time; that of `web` was never the last one, so it
/// always landed on the empty node.
#[test]
fn replacements_that_are_created_at_once_take_turns_by_controller() {
    let mut fixture = roomy(&[("n1", 4), ("n2", 4), ("n3", 4)]);
    replicas(&mut fixture, "large", &["n1", "n1", "n1"], 1);
    replicas(&mut fixture, "other", &["n2", "n2"], 1);
    replicas(&mut fixture, "web", &["n1"], 1);
    let placed: Vec<Name> = fail(&fixture, &["n1"]).pods.iter().map(|pod| pod.pod.key.name.clone()).collect();
    assert_eq!(placed, ["large-0", "large-1", "web-0", "large-2"].map(Name::from));
}

/// Kubernetes 1.37.1 `pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go`, `PreEnqueue`: a pod waits
/// until its claims are created. Seen on the same control plane: the pod with a claim was the last one each time.
#[test]
fn a_replacement_whose_claim_is_created_for_it_comes_after_the_others() {
    let mut fixture = roomy(&[("n1", 4), ("n2", 4)]);
    replicas(&mut fixture, "train", &["n1"], 1);
    replicas(&mut fixture, "web", &["n1", "n1"], 1);
    fixture.pod("train-0", "n1", |pod| {
        own(pod, WorkloadKind::ReplicaSet, "train");
        let claim = PodDeviceClaim { template: Some("gpu".into()), ..PodDeviceClaim::default() };
        pod.scheduling =
            Arc::new(SchedulingSpec { device_claims: [claim].into(), ..(*pod.scheduling).clone() });
    });
    let placed: Vec<Name> = fail(&fixture, &["n1"]).pods.iter().map(|pod| pod.pod.key.name.clone()).collect();
    assert_eq!(placed, ["web-0", "web-1", "train-0"].map(Name::from));
}
