//! Facts of each demo scenario at three or four moments: numbers and sets that were computed by hand from the
//! specification and the scenario's script, never taken from kordon's output. They are compared with the model, the
//! JSON and the drawn frame of the dashboard's real loop, on a virtual clock.
//!
//! Common to all of them (release 1.36): a node becomes Unknown when a pass, each 5 s, finds its last observed
//! heartbeat more than 50 s old (docs/upstream/node-lifecycle.md#3.4). A heartbeat is observed by the pass after it.
//! The demo's controller starts with the scenario, so it has observed nothing before second 0. A kubelet renews its
//! Lease every 10 to 10.4 s (docs/upstream/node-lifecycle.md#11.3). So a node that is disconnected at second d becomes
//! Unknown in a pass between d + 39.6 and d + 60, and not before second 50. The NoExecute taint follows in the same
//! pass if the rate allows it (docs/upstream/node-lifecycle.md#6.6), and pods leave when their toleration has passed
//! (docs/upstream/node-lifecycle.md#7.6).

mod moment;
mod outages;

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Pod;
use kordon_core::why::departure::DepartureKind;
use kordon_demo::scenario::SCENARIOS;
use kube::ResourceExt;

use self::moment::{
    UNREACHABLE, has_requests, is_deleted, is_in, key_of, node_of, owner, play, set, tolerates,
};
use crate::stated_counts::DENIALS;

/// general-1b-01 became Unknown 245 s before the start, memory-1c-01 has been silent since 25 s before it, and
/// spot-1a-01 has had memory pressure for 1140 s. The tour gives the eighth healthy worker, memory-1a-01, disk pressure
/// from second 4 to 104.
#[tokio::test(start_paused = true)]
async fn default() {
    let (mut facts, _, [at_45, at_60, at_120]) = play("default", [45, 60, 120]).await;
    facts.equal(
        "55 s after its last heartbeat and before second 50, the new controller has not given memory-1c-01 up \
         (docs/upstream/node-lifecycle.md#3.4, row B1)",
        at_45.ready("memory-1c-01"),
        "True",
    );
    facts.equal(
        "general-1b-01 was Unknown at the start, and is tainted",
        at_45.no_execute("general-1b-01"),
        set([UNREACHABLE]),
    );
    facts.within(
        "memory-1c-01 is Unknown in the first pass after second 50",
        at_60.ready_since("memory-1c-01"),
        50.0,
        55.5,
    );
    facts.equal(
        "its zone has one node of eight down: Normal, and the bucket is full, so the taint comes at once \
         (docs/upstream/node-lifecycle.md#5.2)",
        at_60.no_execute("memory-1c-01"),
        set([UNREACHABLE]),
    );
    facts.equal("all zones are Normal", at_60.zone_states(), ["Normal"; 3].map(str::to_owned).to_vec());
    facts.equal(
        "64 s after the taint, the pods have left that tolerate it for 60 s or less (docs/upstream/node-lifecycle.md#7.6)",
        at_120.evicted_from("memory-1c-01"),
        at_120.pods_by("memory-1c-01", |pod| tolerates(pod, UNREACHABLE).is_some_and(|span| span <= 60)),
    );
    let scheduled = at_120.evictions_on("memory-1c-01", "scheduled");
    facts.equal(
        "those that tolerate it for 300 s are to leave",
        scheduled.keys().cloned().collect(),
        at_120.pods_by("memory-1c-01", |pod| tolerates(pod, UNREACHABLE) == Some(300)),
    );
    for (pod, at) in scheduled {
        facts.within(&format!("{pod} 300 s after the taint"), at, 350.0, 355.5);
    }
    let to_leave = |node: &str| {
        at_120.pods_by(node, |pod| !is_deleted(pod) && tolerates(pod, UNREACHABLE).is_some()).len()
    };
    let to_leave = to_leave("general-1b-01") + to_leave("memory-1c-01");
    facts.shows("the pods of both nodes are counted", &at_120, &format!("{to_leave} pods to be evicted"));
    facts.equal(
        "spot-1a-01 and memory-1a-01 are under pressure: a condition stays for 5 minutes \
         (docs/upstream/placement-and-pressure.md#6.3)",
        at_120.in_state("Pressure"),
        set(["memory-1a-01", "spot-1a-01"]),
    );
    facts.check();
}

#[tokio::test(start_paused = true)]
async fn healthy() {
    let (mut facts, _, moments) = play("healthy", [10, 60, 200]).await;
    for moment in &moments {
        let at = moment.at;
        facts.equal(&format!("all nodes are Ready at {at} s"), moment.with_ready("True").len(), 24);
        facts.equal(&format!("no node is tainted NoExecute at {at} s"), moment.tainted(), set([]));
        facts.equal(
            &format!("all zones are Normal at {at} s"),
            moment.zone_states(),
            ["Normal"; 3].map(str::to_owned).to_vec(),
        );
        facts.equal(&format!("no pod is to leave at {at} s"), moment.evictions().len(), 0);
        facts.equal(&format!("no pod waits for a node at {at} s"), moment.waiting(), set([]));
        facts.shows("the verdict says so", moment, "all 24 nodes Ready");
        facts.equal(
            &format!("no pod has left at {at} s but those of Jobs that are done"),
            moment.departed(|kind| kind != DepartureKind::JobCompletion),
            set([]),
        );
    }
    facts.check();
}

/// The kernel of the nodes that are upgraded, according to the script.
const NEW_KERNEL: &str = "6.1.0-41-cloud-amd64";

/// Each worker in turn is cordoned, drained, down for 15 s, and uncordoned.
#[tokio::test(start_paused = true)]
async fn kernel_upgrade() {
    let (mut facts, start, moments) = play("kernel-upgrade", [15, 120, 280]).await;
    for moment in &moments {
        let at = moment.at;
        facts.holds(
            &format!("one node at a time is cordoned at {at} s"),
            moment.cordoned().len() <= 1,
            &moment.cordoned(),
        );
        facts.equal(
            &format!("15 s without a heartbeat are less than the grace period: no node is Unknown at {at} s"),
            moment.with_ready("Unknown"),
            set([]),
        );
        facts.equal(&format!("nobody is tainted NoExecute at {at} s"), moment.tainted(), set([]));
        facts.equal(
            &format!("nothing leaves by a taint at {at} s"),
            moment.departed(|kind| kind == DepartureKind::TaintEviction),
            set([]),
        );
    }
    let [at_15, at_120, at_280] = &moments;
    facts.equal("the first worker is drained first", at_15.cordoned(), set(["general-1a-01"]));
    facts.equal("and says so", at_15.state("general-1a-01"), "Draining");
    facts.equal(
        "what left it was evicted through the API (docs/upstream/operator-actions.md#4.1)",
        at_15.departed_from("general-1a-01").into_values().collect::<BTreeSet<_>>(),
        [DepartureKind::ApiEviction].into(),
    );
    facts.shows("so does the verdict", at_15, "node general-1a-01 Draining");
    facts.equal(
        "a drain takes at most 180 s, and a reboot 29: by second 280 the first is Ready",
        at_280.state("general-1a-01"),
        "Ready",
    );
    for moment in [at_120, at_280] {
        facts.equal(
            &format!("the frame counts the nodes with the new kernel at {} s", moment.at),
            moment.number_after(&format!("kernel {NEW_KERNEL} on ")),
            moment.objects.with_kernel(NEW_KERNEL),
        );
    }
    facts.within(
        "each takes 34 s and more, so by second 280 one to eight have it",
        at_280.number_after(&format!("kernel {NEW_KERNEL} on ")) as f64,
        1.0,
        8.0,
    );
    facts.within(
        "and at most three by second 120",
        at_120.number_after(&format!("kernel {NEW_KERNEL} on ")) as f64,
        0.0,
        3.0,
    );
    facts.equal("pods of DaemonSets stay", at_280.objects.daemon_pods(), start.daemon_pods());
    facts.equal(
        "no pod of a DaemonSet has left (docs/upstream/operator-actions.md#3.3)",
        at_280.departed(|_| true).intersection(&start.daemon_pods()).cloned().collect::<BTreeSet<_>>(),
        set([]),
    );
    facts.check();
}

/// memory-1a-01 became Unknown 330 s before the start. Pods with a toleration of 300 s have been Terminating for 30 s.
#[tokio::test(start_paused = true)]
async fn stuck_statefulset() {
    const LOST: &str = "memory-1a-01";
    let (mut facts, start, moments) = play("stuck-statefulset", [10, 60, 200]).await;
    let stateful = |pod: &Pod| owner(pod) == "StatefulSet" && tolerates(pod, UNREACHABLE).is_some();
    let stuck = start.pods_on(LOST, stateful);
    facts.holds("it has such pods", !stuck.is_empty(), &stuck);
    for moment in &moments {
        let at = moment.at;
        facts.equal(
            &format!("they are Terminating on it at {at} s"),
            moment.pods_by(LOST, |pod| is_deleted(pod) && stateful(pod)),
            stuck.clone(),
        );
        facts.equal(
            &format!(
                "they get no successors, and so none is Pending at {at} s (docs/upstream/neighbours.md#3)"
            ),
            moment.waiting().intersection(&stuck).cloned().collect::<BTreeSet<_>>(),
            set([]),
        );
        facts.equal(
            &format!("their outcome is stuck at {at} s"),
            moment.with_outcome("stuck").intersection(&stuck).cloned().collect::<BTreeSet<_>>(),
            stuck.clone(),
        );
        facts.equal(
            &format!("the node is Unknown at {at} s, and alone"),
            moment.with_ready("Unknown"),
            set([LOST]),
        );
    }
    let forever =
        start.pods_on(LOST, |pod| owner(pod) == "StatefulSet" && tolerates(pod, UNREACHABLE).is_none());
    for moment in &moments {
        facts.equal(
            &format!("nothing runs in place of either kind at {} s", moment.at),
            moment.nowhere(),
            stuck.len() + forever.len(),
        );
        let text = format!("{} pods stuck on a dead node", stuck.len() + forever.len());
        facts.shows("the verdict counts both kinds", moment, &text);
    }
    facts.equal(
        "those that tolerate it without a limit never leave",
        moments[2].evictions_on(LOST, "never").into_keys().filter(|pod| forever.contains(pod)).collect(),
        forever.clone(),
    );
    facts.check();
}

/// An operator drains the node of monitoring/grafana from second 5 on; the budget grafana requires 1 of 1 pods.
#[tokio::test(start_paused = true)]
async fn blocked_drain() {
    let (mut facts, start, moments) = play("blocked-drain", [30, 120, 280]).await;
    let grafana = start.pods.iter().find(|pod| pod.name_any().starts_with("grafana-")).expect("it runs");
    let node = node_of(grafana).to_owned();
    let drained = |pod: &Pod| !matches!(owner(pod).as_str(), "DaemonSet" | "Node");
    let [at_30, at_120, at_280] = &moments;
    for moment in &moments {
        let at = moment.at;
        facts.equal(
            &format!("its node alone is cordoned at {at} s"),
            moment.cordoned(),
            set([node.as_str()]),
        );
        facts.equal(&format!("it is Draining at {at} s"), moment.state(&node), "Draining");
        facts.equal(
            &format!("1 of 1 is needed, so the budget allows none at {at} s (docs/upstream/operator-actions.md#5.1)"),
            moment.model.cluster.budgets().iter().filter(|budget| budget.status.disruptions_allowed == 0 && *budget.key.namespace == *"monitoring").map(|budget| budget.key.name.to_string()).collect(),
            set(["grafana"]),
        );
        facts.holds(
            &format!("grafana is there and not Terminating at {at} s"),
            moment.pods_by(&node, |pod| !is_deleted(pod)).contains(&key_of(grafana)),
            &moment.pods_by(&node, |_| true),
        );
    }
    let all = start.pods_on(&node, drained);
    facts.equal(
        "a drain that found so many pods has as many to remove",
        at_30.claim(&node, "pods"),
        all.len() as u64,
    );
    facts.equal(
        "after every grace period only grafana is left",
        at_280.pods_by(&node, drained),
        set([key_of(grafana).as_str()]),
    );
    facts.equal("which the drain still has to remove", at_280.claim(&node, "podsLeft"), 1);
    facts.equal(
        "the others were evicted through the API",
        at_280
            .departed(|kind| kind == DepartureKind::ApiEviction)
            .intersection(&all)
            .cloned()
            .collect::<BTreeSet<_>>(),
        all.iter().filter(|pod| **pod != key_of(grafana)).cloned().collect(),
    );
    let text = format!("drain of {node} ({} of {} pods gone) blocked", all.len() - 1, all.len());
    facts.shows("the verdict names the drain, and counts its pods", at_280, &text);
    facts.shows("and the budget", at_280, "PodDisruptionBudget monitoring/grafana");
    facts.holds("no replacement waits for a node", at_120.waiting().is_empty(), &at_120.waiting());
    facts.check();
}

/// general-1b-01 has been silent since 25 s before the start, and general-1a-01 is disconnected at second 5. The
/// controller is away from second 15 to 35. At second 35 its successor first observes the Lease. It acquires the Lease
/// 15 s later at the earliest (client-go's LeaderElector counts from its observation of the last renewal).
#[tokio::test(start_paused = true)]
async fn restart() {
    let (mut facts, _, [at_30, at_95, at_120]) = play("restart", [30, 95, 120]).await;
    let silent = set(["general-1a-01", "general-1b-01"]);
    facts.equal("nobody is given up", at_30.with_ready("True").len(), 24);
    facts.equal("without a controller nothing is expected", at_30.confidence(), "noController");
    facts.shows("the verdict says so", &at_30, "no active kube-controller-manager");
    facts.equal("so no pod has a time at which it leaves", at_30.evictions_due(), set([]));
    facts.equal("and the chart counts none", at_30.number_after("pods gone "), 0);
    facts.equal(
        "the successor has observed nothing before second 50: nobody is given up before second 100, 125 s after a last \
         heartbeat (docs/upstream/node-lifecycle.md#3.4, row B1)",
        at_95.with_ready("True").len(),
        24,
    );
    facts.equal("then both are", at_120.with_ready("Unknown"), silent.clone());
    for node in &silent {
        facts.within(
            &format!("{node} 50 s after the successor's start, with up to 5 s of retries and as much to the next pass"),
            at_120.ready_since(node),
            100.0,
            115.0,
        );
    }
    facts.equal("each is the first of its zone, and tainted at once", at_120.tainted(), silent);
    facts.equal("in zones that are Normal", at_120.zone_states(), ["Normal"; 3].map(str::to_owned).to_vec());
    facts.check();
}

/// An operator drains the node of the first pod of payments/api from second 5 on, while the quotas of shop, payments
/// and search are used up. The pods of payments/api take up to 60 s to terminate.
#[tokio::test(start_paused = true)]
async fn quota() {
    let (mut facts, start, moments) = play("quota", [8, 25, 90, 170]).await;
    let [at_8, at_25, at_90, at_170] = &moments;
    let is_api = |pod: &str| pod.starts_with("payments/api-");
    let api = start.named("payments", "api-");
    let node = api.map(node_of).next().expect("it runs").to_owned();
    facts.equal("the node of the first pod is cordoned", at_25.cordoned(), set([node.as_str()]));
    let all = start.pods_on(&node, |pod| !matches!(owner(pod).as_str(), "DaemonSet" | "Node"));
    facts.equal("all its pods are to be removed", at_25.claim(&node, "pods"), all.len() as u64);
    let evicted = at_25.departed(|kind| kind == DepartureKind::ApiEviction);
    let evicted: BTreeSet<String> = evicted.into_iter().filter(|pod| is_api(pod)).collect();
    facts.equal(
        "a budget of 4 of 5 allows one eviction (docs/upstream/operator-actions.md#5.1), and only one of them runs there",
        evicted.clone(),
        all.iter().filter(|pod| is_api(pod)).cloned().collect(),
    );
    facts.equal("exactly one", evicted.len(), 1);
    let terminating = at_8.pods_by(&node, is_deleted).into_iter();
    let counted = ["shop/", "payments/", "search/"];
    let held: BTreeSet<String> =
        terminating.filter(|pod| counted.iter().any(|namespace| pod.starts_with(namespace))).collect();
    facts.equal("a pod that a quota counts is still terminating", held.is_empty(), false);
    facts.equal(
        "the quota refuses a replacement while the old pod is there: it is not said to be replaced, but to be waited for",
        at_8.with_outcome("replacedWhenGone"),
        held,
    );
    facts.equal("when they are gone, nothing is waited for", at_90.with_outcome("replacedWhenGone"), set([]));
    facts.equal(
        "there are five again",
        at_90.objects.named("payments", "api-").filter(|pod| !is_deleted(pod)).count(),
        5,
    );
    for moment in &moments {
        facts.equal(
            &format!("what a quota refuses is not Pending at {} s", moment.at),
            moment.waiting().into_iter().filter(|pod| is_api(pod)).collect(),
            set([]),
        );
    }
    facts.equal("the drain is done", at_170.in_state("Drained"), set([node.as_str()]));
    facts.shows("the verdict counts the node", at_170, "1 Drained");
    facts.equal(
        "in the end nothing is left to drain",
        at_170.pods_by(&node, |pod| !matches!(owner(pod).as_str(), "DaemonSet" | "Node")),
        set([]),
    );
    facts.check();
}

/// The first pod of shop/session-cache leaks 600 MiB/s from second 3 until its node has 1200 MiB left. The first pod of
/// shop/cart leaks 4 MiB/s from second 5 up to its limit of 256 MiB. The soft threshold is 1536 MiB with a grace period
/// of 90 s.
#[tokio::test(start_paused = true)]
async fn memory_pressure() {
    let (mut facts, start, [at_40, at_90, at_120, at_200, at_250]) =
        play("memory-pressure", [40, 90, 120, 200, 250]).await;
    let runs = |pod: &&Pod| !node_of(pod).is_empty();
    let leaks = start.named("shop", "session-cache-").find(runs).expect("it runs");
    let cart = start.named("shop", "cart-").find(runs).expect("it runs");
    let node = node_of(leaks).to_owned();
    facts.equal(
        "the grace of 90 s has not passed: no pod is evicted by second 90",
        at_90.departed(|kind| kind == DepartureKind::NodePressure),
        set([]),
    );
    facts.equal(
        "but the condition is True as soon as the threshold is met (docs/upstream/placement-and-pressure.md#6.3)",
        at_90.in_state("Pressure"),
        set([node.as_str()]),
    );
    facts.shows("the verdict names it", &at_90, &format!("node {node} MemoryPressure"));
    let interruptible =
        |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.priority) == Some(-100) && !has_requests(pod);
    let mut expected = start.pods_on(&node, interruptible);
    expected.insert(key_of(leaks));
    let text = format!("its kubelet evicts up to {} pods, first in ", expected.len());
    facts.shows("and how many pods will be evicted", &at_90, &text);
    facts.shows("also half a minute before they are", &at_120, &text);
    facts.equal(
        "and no pane says that none is",
        DENIALS.into_iter().find(|denial| at_120.frame.contains(denial)),
        None,
    );
    let gone = at_200.departed(|kind| kind == DepartureKind::NodePressure);
    facts.holds("two are gone by second 200", gone.len() == 2 && gone.is_subset(&expected), &gone);
    facts.shows(
        "and the verdict counts the one that is left",
        &at_200,
        "its kubelet evicts up to 1 more pod",
    );
    facts.equal(
        "pods above their request go first, those of lower priority before the one that grew, one in each pass; without the one \
         that grew there is enough (docs/upstream/placement-and-pressure.md#6.7)",
        at_250.departed(|kind| kind == DepartureKind::NodePressure),
        expected,
    );
    facts.equal("no other node is under pressure", at_250.in_state("Pressure"), set([node.as_str()]));
    facts.holds(
        "a container at its limit is OOM killed and restarts on its node (docs/upstream/placement-and-pressure.md#6.8)",
        at_250.departed(|kind| kind == DepartureKind::OomKill).contains(&key_of(cart)),
        &at_250.departed(|kind| kind == DepartureKind::OomKill),
    );
    facts.holds(
        "and stays there",
        at_250.pods_by(node_of(cart), |pod| is_in(&start, pod)).contains(&key_of(cart)),
        &key_of(cart),
    );
    facts.equal("nobody is given up", at_40.with_ready("True").len(), 24);
    facts.holds(
        "the evictions are in the journal",
        at_250
            .journal()
            .iter()
            .any(|text| text.starts_with("evicted pod") && text.contains("by the kubelet (MemoryPressure)")),
        &at_250.journal(),
    );
    facts.holds(
        "and the OOM kills",
        at_250.journal().iter().any(|text| text.starts_with("OOM killed pod")),
        &at_250.journal(),
    );
    facts.check();
}

/// payments/risk-model is scaled from 1 to 4 at second 10. Each of the three spot nodes has 15,890m of CPU, of which
/// pods of DaemonSets request 200m; that leaves room for ten pods of 1,500m, or five of 3,000m. The three nodes thus
/// have 30 slots of 1,500m. The pods want 40 slots: at priority -100, 28 pods of model-training and 4 of
/// video-transcode request 1,500m each; at priority 100,000, 4 pods of risk-model request 3,000m each.
#[tokio::test(start_paused = true)]
async fn preemption() {
    let (mut facts, start, moments) = play("preemption", [8, 60, 120]).await;
    let [at_8, at_60, at_120] = &moments;
    let interruptible =
        |name: &str| name.starts_with("batch/model-training-") || name.starts_with("batch/video-transcode-");
    let before = start.waiting();
    facts.equal("before, 34 slots are wanted: four pods wait", before.len(), 4);
    facts.equal("and kordon lists them", at_8.waiting(), before);
    for moment in [at_60, at_120] {
        let at = moment.at;
        facts.equal(&format!("ten of 40 find no room at {at} s"), moment.waiting().len(), 10);
        facts.holds(
            &format!("those of lower priority at {at} s (docs/upstream/placement-and-pressure.md#4.2)"),
            moment.waiting().iter().all(|pod| interruptible(pod)),
            &moment.waiting(),
        );
        let preempted = moment.departed(|kind| kind == DepartureKind::Preemption);
        facts.equal(
            &format!("three of four took the room of two each by {at} s (docs/upstream/placement-and-pressure.md#4.3)"),
            preempted.len(),
            6,
        );
        facts.holds(
            &format!("from pods of lower priority by {at} s (docs/upstream/placement-and-pressure.md#4.2)"),
            preempted.iter().all(|pod| interruptible(pod)),
            &preempted,
        );
        facts.equal(&format!("all nodes are Ready at {at} s"), moment.with_ready("True").len(), 24);
        facts.shows("the verdict counts those that wait", moment, "10 pods Pending");
        let waiting = |name: &str| moment.waiting().iter().filter(|pod| pod.contains(name)).count();
        let workloads = ["model-training", "video-transcode"].map(|name| format!("{name} {}", waiting(name)));
        facts.holds(
            "and names their workloads",
            workloads.iter().all(|workload| moment.verdict().contains(workload)),
            &workloads,
        );
    }
    facts.holds(
        "which is in the journal",
        at_120.journal().iter().any(|text| text.starts_with("preempted pod")),
        &at_120.journal(),
    );
    facts.check();
}

/// According to the script, memory-1a-01 is disconnected from second 30 to 240, memory-1b-02 is disconnected at second
/// 35 and out of service at 100, and general-1c-04 is disconnected at 40 and deleted at 45.
#[tokio::test(start_paused = true)]
async fn departures() {
    let (mut facts, start, [at_40, at_130, at_240]) = play("departures", [40, 130, 240]).await;
    facts.equal(
        "somebody deleted one pod of catalog",
        at_40
            .departed(|kind| kind == DepartureKind::Deletion)
            .iter()
            .filter(|pod| pod.starts_with("shop/catalog-"))
            .count(),
        1,
    );
    facts.equal(
        "frontend is scaled down to 7 (docs/upstream/neighbours.md#3)",
        at_40
            .departed(|kind| kind == DepartureKind::ScaleDown)
            .iter()
            .filter(|pod| pod.starts_with("shop/frontend-"))
            .count(),
        start.named("shop", "frontend-").count() - 7,
    );
    facts.equal(
        "pods of a deleted node are removed after 40 s and the next passes (docs/upstream/neighbours.md#1)",
        at_130.objects.on("general-1c-04").count(),
        0,
    );
    let orphans: BTreeSet<String> = start.pods_on("general-1c-04", |_| true);
    facts.equal(
        "by the garbage collector",
        at_130
            .departed(|kind| kind == DepartureKind::GarbageCollection)
            .intersection(&orphans)
            .cloned()
            .collect(),
        orphans,
    );
    facts.equal("the node is not listed", at_130.names().contains("general-1c-04"), false);
    facts.equal(
        "what does not tolerate out-of-service is removed by force in a pass, each 20 s (docs/upstream/neighbours.md#1)",
        at_130.pods_by("memory-1b-02", is_deleted),
        set([]),
    );
    facts.within(
        "memory-1a-01 is marked between second 69.6 and 90",
        at_130.ready_since("memory-1a-01"),
        69.6,
        90.5,
    );
    let kinds: BTreeSet<DepartureKind> =
        at_240.model.departures.counts().into_iter().map(|(kind, _)| kind).collect();
    for kind in [
        DepartureKind::NodePressure,
        DepartureKind::OomKill,
        DepartureKind::TaintEviction,
        DepartureKind::Preemption,
        DepartureKind::GarbageCollection,
        DepartureKind::ScaleDown,
        DepartureKind::Deletion,
    ] {
        facts.holds(&format!("pods left by {kind}"), kinds.contains(&kind), &kinds);
    }
    facts.check();
}

#[test]
fn every_scenario_has_facts() {
    let text = concat!(include_str!("scenario_facts.rs"), include_str!("scenario_facts/outages.rs"));
    for scenario in SCENARIOS {
        assert!(text.contains(&format!("play(\"{}\"", scenario.name)), "{} has none", scenario.name);
    }
}
