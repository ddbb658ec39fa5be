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

use std::{collections::BTreeSet, io};

use crossterm::event::Event;
use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::{Node, Pod};
use kordon::{
    app::App,
    cli::StatusReport,
    model::Model,
    run::{self, Surface},
    ui::{Drawn, snapshot},
};
use kordon_clock::Clock;
use kordon_core::{cluster::Key, why::departure::DepartureKind};
use kordon_demo::{
    api::Api,
    scenario::{SCENARIOS, Scenario},
};
use kordon_time::{Span, Timestamp};
use kube::{Api as Objects, ResourceExt, api::ListParams};
use ratatui::{Terminal, backend::TestBackend};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{
    scenario_frames::{EPOCH, open_dashboard, start_demo},
    stated_counts::DENIALS,
};

/// The nodes of zone b, as the demo distributes its node pools over the zones.
const ZONE_B: [&str; 8] = [
    "control-plane-1b-01",
    "general-1b-01",
    "general-1b-02",
    "general-1b-03",
    "general-1b-04",
    "memory-1b-01",
    "memory-1b-02",
    "spot-1b-01",
];
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const NOT_READY: &str = "node.kubernetes.io/not-ready";

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

/// general-1a-01 is disconnected at second 5.
#[tokio::test(start_paused = true)]
async fn silent_node() {
    const LOST: &str = "general-1a-01";
    let (mut facts, start, [at_48, at_75, at_170]) = play("silent-node", [48, 75, 170]).await;
    facts.equal("no node is given up before second 50", at_48.with_ready("True").len(), 24);
    facts.within("general-1a-01 is marked between second 50 and 65", at_75.ready_since(LOST), 50.0, 65.5);
    facts.equal("and tainted in the same pass", at_75.no_execute(LOST), set([UNREACHABLE]));
    facts.equal("alone", at_75.tainted(), set([LOST]));
    facts.equal("one node of eight: its zone is Normal", at_75.zone("a"), ("Normal".into(), 0.1));
    facts.equal(
        "its pods are not Ready from then on (docs/upstream/node-lifecycle.md#3.9)",
        at_75.pods_by(LOST, is_ready),
        set([]),
    );
    facts.equal(
        "no pod has left by the taint: the shortest toleration is 30 s",
        at_75.departed(|kind| kind == DepartureKind::TaintEviction),
        set([]),
    );
    let lasts = |most: i64| move |pod: &Pod| tolerates(pod, UNREACHABLE).is_some_and(|span| span <= most);
    facts.equal(
        "by second 170 pods that tolerate it for up to 60 s have left",
        at_170.departed(|kind| kind == DepartureKind::TaintEviction),
        start.pods_on(LOST, lasts(60)),
    );
    facts.equal(
        "and are Terminating, for their kubelet confirms nothing (docs/upstream/neighbours.md#3)",
        at_170.pods_by(LOST, is_deleted),
        start.pods_on(LOST, lasts(60)),
    );
    let later = at_170.evictions_on(LOST, "scheduled");
    facts.equal(
        "those that tolerate it for 300 s are to leave",
        later.keys().cloned().collect(),
        start.pods_on(LOST, |pod| tolerates(pod, UNREACHABLE) == Some(300)),
    );
    let text = format!("{} pods of {LOST} to be evicted", later.len());
    facts.shows("which the verdict counts", &at_170, &text);
    for (pod, at) in later {
        facts.within(&format!("{pod} 300 s after the taint"), at, 350.0, 365.5);
    }
    facts.check();
}

/// general-1a-01 is disconnected at second 5 for 65 s, and again every 90 s. The runtime of memory-1b-01 does not
/// answer from second 20 to 260.
#[tokio::test(start_paused = true)]
async fn flapping() {
    let (flaps, broken) = ("general-1a-01", "memory-1b-01");
    let (mut facts, start, [at_40, at_92, at_300]) = play("flapping", [40, 92, 300]).await;
    facts.equal("a kubelet says within 10 s that its runtime does not answer", at_40.ready(broken), "False");
    facts.equal(
        "and the next pass taints the node not-ready (docs/upstream/node-lifecycle.md#4.3)",
        at_40.no_execute(broken),
        set([NOT_READY]),
    );
    facts.equal("a node that is silent for 35 s is still Ready", at_40.ready(flaps), "True");
    facts.within(
        "Unknown from a pass after second 50 on, it is Ready again after second 70",
        at_92.ready_since(flaps),
        70.0,
        82.0,
    );
    facts.equal(
        "and the taint is gone with the next pass (docs/upstream/node-lifecycle.md#4.4)",
        at_92.no_execute(flaps),
        set([]),
    );
    facts.equal(
        "the broken node recovers after second 260, the other one is silent again",
        at_300.ready(broken),
        "True",
    );
    facts.equal(
        "pods that tolerate it for 300 s have outlived 240 s of not-ready (docs/upstream/node-lifecycle.md#7.4)",
        at_300.pods_by(broken, |pod| tolerates(pod, NOT_READY) == Some(300) && is_in(&start, pod)),
        start.pods_on(broken, |pod| tolerates(pod, NOT_READY) == Some(300)),
    );
    facts.equal(
        "pods that tolerate it for up to 60 s are gone, for this kubelet answers",
        at_300.pods_by(broken, |pod| {
            tolerates(pod, NOT_READY).is_some_and(|span| span <= 60) && is_in(&start, pod)
        }),
        set([]),
    );
    facts.check();
}

/// All nodes of zone b are disconnected at second 10, for ten minutes.
#[tokio::test(start_paused = true)]
async fn zone_outage() {
    let (mut facts, start, [at_48, at_340, at_480]) = play("zone-outage", [48, 340, 480]).await;
    let in_zone = |lasts: &dyn Fn(&Pod) -> bool| -> BTreeSet<String> {
        ZONE_B.iter().flat_map(|node| start.pods_on(node, lasts)).collect()
    };
    facts.equal("no node is given up before second 50", at_48.with_ready("True").len(), 24);
    facts.equal("the nodes of zone b are Unknown, and no others", at_340.with_ready("Unknown"), set(ZONE_B));
    facts.shows("the verdict names the zone", &at_340, "zone b down (8 of 8)");
    facts.holds(
        "no node of zone b is drawn as well, and all others are",
        is_drawn_down(&at_340.marks("b")) && ["a", "c"].map(|zone| at_340.marks(zone)) == ["▪▪▪▪▪▪▪▪"; 2],
        &["a", "b", "c"].map(|zone| at_340.marks(zone)),
    );
    facts.equal(
        "a zone without a Ready node is in FullDisruption, and goes on at 0.1/s while others are not \
         (docs/upstream/node-lifecycle.md#5.4)",
        ["a", "b", "c"].map(|zone| at_340.zone(zone)),
        ["Normal", "FullDisruption", "Normal"].map(|state| (state.to_owned(), 0.1)),
    );
    facts.equal(
        "80 s after the last was marked, all eight are tainted (docs/upstream/node-lifecycle.md#6.6)",
        at_340.tainted(),
        set(ZONE_B),
    );
    facts.holds(
        "one each 10 s, in whole seconds",
        at_340.pauses_between_taints().iter().all(|pause| *pause >= 9),
        &at_340.pauses_between_taints(),
    );
    let finite = |pod: &Pod| tolerates(pod, UNREACHABLE).is_some();
    let stateful = in_zone(&|pod| finite(pod) && owner(pod) == "StatefulSet");
    facts.holds("zone b has pods of StatefulSets that leave", stateful.len() >= 5, &stateful);
    facts.equal(
        "a pod of a StatefulSet gets no successor before it is gone, and nobody confirms that: it is stuck, not Pending \
         (docs/upstream/neighbours.md#3), before it leaves",
        at_340.with_outcome("stuck").intersection(&stateful).cloned().collect::<BTreeSet<_>>(),
        stateful.clone(),
    );
    facts.equal(
        "and after it has left",
        at_480.with_outcome("stuck").intersection(&stateful).cloned().collect::<BTreeSet<_>>(),
        stateful.clone(),
    );
    facts.equal(
        "it does not wait for a node before",
        at_340.waiting().intersection(&stateful).cloned().collect::<BTreeSet<_>>(),
        set([]),
    );
    facts.equal(
        "nor after",
        at_480.waiting().intersection(&stateful).cloned().collect::<BTreeSet<_>>(),
        set([]),
    );
    facts.equal(
        "a pod that is recreated elsewhere is not said to stay Pending while a node takes it",
        at_340.with_outcome("pending").intersection(&stateful).cloned().collect::<BTreeSet<_>>(),
        set([]),
    );
    let all_stateful = in_zone(&|pod| owner(pod) == "StatefulSet");
    for moment in [&at_48, &at_340, &at_480] {
        facts.equal(
            &format!(
                "a pod of a StatefulSet has nowhere to run until its node is back, whether or not it tolerates the taint: known \
                 beforehand at {} s",
                moment.at
            ),
            moment.nowhere(),
            all_stateful.len(),
        );
    }
    let short = in_zone(&|pod| tolerates(pod, UNREACHABLE).is_some_and(|span| span <= 60));
    let left_by = |moment: &Moment| moment.departed(|kind| kind == DepartureKind::TaintEviction);
    facts.equal(
        "at 340 s, before 300 s after the first taint, pods that tolerate it for up to 60 s have left",
        left_by(&at_340),
        short,
    );
    facts.equal(
        "at 480 s, 300 s after the last taint, all have that tolerate it for a time",
        left_by(&at_480),
        in_zone(&finite),
    );
    facts.check();
}

/// 41 of the 63 nodes of zone a are disconnected, one every 2 s from second 5 on.
#[tokio::test(start_paused = true)]
async fn partial_disruption() {
    let (mut facts, _, [at_45, at_90, at_180]) = play("partial-disruption", [45, 90, 180]).await;
    facts.equal("no node is given up before second 50", at_45.with_ready("True").len(), 190);
    facts.equal(
        "by second 90 at least those are down that were disconnected by second 30, and at most those by second 50.4: fewer \
         than 55 % of the zone (docs/upstream/node-lifecycle.md#5.2)",
        at_90.zone("a"),
        ("Normal".into(), 0.1),
    );
    facts.within("so many", at_90.with_ready("Unknown").len() as f64, 13.0, 23.0);
    facts.within(
        "one is tainted each 10 s from the first pass after second 50 on (docs/upstream/node-lifecycle.md#6.6)",
        at_90.tainted().len() as f64,
        3.0,
        5.0,
    );
    facts.equal("by second 180 all 41 are", at_180.with_ready("Unknown").len(), 41);
    facts.equal(
        "41 of 63 are 65 %, and the zone has more than 50 nodes: one node each 100 s (docs/upstream/node-lifecycle.md#5.4)",
        at_180.zone("a"),
        ("PartialDisruption".into(), 0.01),
    );
    facts.shows("the verdict counts them", &at_180, "41 of 63");
    facts.shows("and says how long the next one takes: 1 / 0.01 s", &at_180, "1m40s");
    facts.equal(
        "the other zones are Normal",
        ["b", "c"].map(|zone| at_180.zone(zone)),
        ["Normal"; 2].map(|state| (state.to_owned(), 0.1)),
    );
    // 55 % of 63 nodes are 35 nodes. The 35th node was disconnected at second 73, and so became Unknown between seconds
    // 112.6 and 133.
    facts.within(
        "tainted each 10 s from a pass between 50 and 65 on, five to nine are by then, and at most one more by second 180",
        at_180.tainted().len() as f64,
        5.0,
        10.0,
    );
    facts.check();
}

/// All nodes are disconnected at second 10, and are back from second 240 on.
#[tokio::test(start_paused = true)]
async fn full_outage() {
    let (mut facts, start, [at_48, at_200, at_290]) = play("full-outage", [48, 200, 290]).await;
    facts.equal("no node is given up before second 50", at_48.with_ready("True").len(), 24);
    facts.equal("all nodes are Unknown", at_200.with_ready("Unknown").len(), 24);
    facts.equal(
        "where every zone is down, nothing is tainted, and taints are taken off (docs/upstream/node-lifecycle.md#5.3, 3a)",
        at_200.tainted(),
        set([]),
    );
    facts.equal(
        "at rate 0",
        ["a", "b", "c"].map(|zone| at_200.zone(zone)),
        ["FullDisruption"; 3].map(|state| (state.to_owned(), 0.0)),
    );
    facts.equal("no pod is to leave", at_200.evictions_due(), set([]));
    facts.shows("the verdict says that evictions have stopped", &at_200, "evictions paused");
    facts.shows("and why", &at_200, "no node reports: every zone is down (24 of 24 nodes)");
    facts.holds(
        "every node is drawn as down",
        ["a", "b", "c"].iter().all(|zone| is_drawn_down(&at_200.marks(zone))),
        &["a", "b", "c"].map(|zone| at_200.marks(zone)),
    );
    facts.equal("no pod has left", at_200.departed(|_| true), set([]));
    facts.equal("after second 260 all are Ready", at_290.with_ready("True").len(), 24);
    facts.equal("and the zones Normal", at_290.zone_states(), ["Normal"; 3].map(str::to_owned).to_vec());
    facts.equal(
        "with the pods of the start, those of Jobs aside",
        at_290.objects.lasting_uids(),
        start.lasting_uids(),
    );
    facts.equal(
        "and they have not left",
        at_290.departed(|_| true).intersection(&start.lasting()).cloned().collect::<BTreeSet<_>>(),
        set([]),
    );
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
    let text = include_str!("scenario_facts.rs");
    for scenario in SCENARIOS {
        assert!(text.contains(&format!("play(\"{}\"", scenario.name)), "{} has none", scenario.name);
    }
}

/// Checks the facts of a scenario and collects those that are wrong.
struct Facts {
    scenario: &'static str,
    stated: usize,
    wrong: Vec<String>,
}

impl Facts {
    fn equal<T: PartialEq + std::fmt::Debug>(&mut self, fact: &str, found: T, expected: T) {
        self.stated += 1;
        if found != expected {
            self.wrong.push(format!("{fact}:\n    found    {found:?}\n    expected {expected:?}"));
        }
    }

    fn within(&mut self, fact: &str, found: f64, least: f64, most: f64) {
        self.stated += 1;
        if !(least..=most).contains(&found) {
            self.wrong.push(format!("{fact}: found {found}, expected {least} to {most}"));
        }
    }

    fn holds(&mut self, fact: &str, holds: bool, found: &dyn std::fmt::Debug) {
        self.stated += 1;
        if !holds {
            self.wrong.push(format!("{fact}: found {found:?}"));
        }
    }

    /// States that the text is in the verdict, and in the drawn frame.
    fn shows(&mut self, fact: &str, moment: &Moment, text: &str) {
        let shown = [moment.verdict(), moment.header().to_owned()];
        let fact = format!("{fact}: {text:?} at {} s", moment.at);
        self.holds(&fact, shown.iter().all(|shown| shown.contains(text)), &shown);
    }

    fn check(self) {
        assert!(self.stated >= 5, "{} has {} facts", self.scenario, self.stated);
        assert!(
            self.wrong.is_empty(),
            "{}, {} of {} facts:\n{}",
            self.scenario,
            self.wrong.len(),
            self.stated,
            self.wrong.join("\n")
        );
    }
}

/// The objects of the cluster, as its API returns them.
struct ClusterObjects {
    nodes: Vec<Node>,
    pods: Vec<Pod>,
}

impl ClusterObjects {
    async fn read(api: &Api) -> Self {
        let all = ListParams::default();
        let client = api.client();
        Self {
            nodes: Objects::<Node>::all(client.clone()).list(&all).await.expect("nodes").items,
            pods: Objects::<Pod>::all(client).list(&all).await.expect("pods").items,
        }
    }

    fn on<'a>(&'a self, node: &'a str) -> impl Iterator<Item = &'a Pod> {
        self.pods.iter().filter(move |pod| node_of(pod) == node)
    }

    fn pods_on(&self, node: &str, is_meant: impl Fn(&Pod) -> bool) -> BTreeSet<String> {
        self.on(node).filter(|pod| is_meant(pod)).map(key_of).collect()
    }

    fn named<'a>(&'a self, namespace: &'a str, start: &'a str) -> impl Iterator<Item = &'a Pod> {
        self.pods.iter().filter(move |pod| {
            pod.namespace().as_deref() == Some(namespace) && pod.name_any().starts_with(start)
        })
    }

    /// Returns the pods that end only if they are removed: all pods except those of Jobs.
    fn lasting_pods(&self) -> impl Iterator<Item = &Pod> {
        self.pods.iter().filter(|pod| owner(pod) != "Job")
    }

    /// Returns the uids of [`Self::lasting_pods`].
    fn lasting_uids(&self) -> BTreeSet<String> {
        self.lasting_pods().filter_map(ResourceExt::uid).collect()
    }

    /// Returns the names of [`Self::lasting_pods`].
    fn lasting(&self) -> BTreeSet<String> {
        self.lasting_pods().map(key_of).collect()
    }

    /// Returns the number of nodes with this kernel.
    fn with_kernel(&self, kernel: &str) -> usize {
        let version = |node: &Node| Some(node.status.as_ref()?.node_info.as_ref()?.kernel_version.clone());
        self.nodes.iter().filter(|node| version(node).as_deref() == Some(kernel)).count()
    }

    fn daemon_pods(&self) -> BTreeSet<String> {
        self.pods.iter().filter(|pod| owner(pod) == "DaemonSet").map(key_of).collect()
    }

    /// Returns the pods without a node.
    fn waiting(&self) -> BTreeSet<String> {
        self.pods.iter().filter(|pod| node_of(pod).is_empty() && !is_deleted(pod)).map(key_of).collect()
    }
}

/// The state of the cluster and the report of kordon at a moment.
struct Moment {
    at: i64,
    started: Timestamp,
    model: Model,
    /// Output of `kordon status -o json`.
    status: Value,
    /// The last frame that was drawn, as text.
    frame: String,
    objects: ClusterObjects,
}

impl Moment {
    fn node(&self, name: &str) -> &Value {
        let nodes = self.status["nodes"].as_array().expect("nodes");
        nodes
            .iter()
            .find(|node| node["name"] == name)
            .unwrap_or_else(|| panic!("no node {name} at {} s", self.at))
    }

    fn names(&self) -> BTreeSet<String> {
        self.nodes_where(|_| true)
    }

    fn nodes_where(&self, is_meant: impl Fn(&Value) -> bool) -> BTreeSet<String> {
        let nodes = self.status["nodes"].as_array().expect("nodes").iter().filter(|node| is_meant(node));
        nodes.map(|node| text(&node["name"])).collect()
    }

    fn ready(&self, node: &str) -> &str {
        self.node(node)["ready"]["status"].as_str().unwrap_or_default()
    }

    fn state(&self, node: &str) -> &str {
        self.node(node)["state"].as_str().unwrap_or_default()
    }

    fn with_ready(&self, status: &str) -> BTreeSet<String> {
        self.nodes_where(|node| node["ready"]["status"] == status)
    }

    /// Returns the second since which the Ready condition is unchanged.
    fn ready_since(&self, node: &str) -> f64 {
        self.seconds(&self.node(node)["ready"]["since"])
    }

    fn seconds(&self, time: &Value) -> f64 {
        let at = Timestamp::parse(&text(time)).unwrap_or_else(|| panic!("{time} is no time"));
        at.since(self.started).as_secs_f64()
    }

    /// Returns the keys of the node's NoExecute taints that belong to the controller.
    fn no_execute(&self, node: &str) -> BTreeSet<String> {
        no_execute_of(self.node(node)).map(|taint| text(&taint["key"])).collect()
    }

    /// Returns the nodes with a NoExecute taint that belongs to the controller.
    fn tainted(&self) -> BTreeSet<String> {
        self.nodes_where(|node| no_execute_of(node).next().is_some())
    }

    /// Returns the seconds between successive taints.
    fn pauses_between_taints(&self) -> Vec<i64> {
        let nodes = self.status["nodes"].as_array().expect("nodes").iter();
        let mut times: Vec<i64> =
            nodes.flat_map(no_execute_of).map(|taint| self.seconds(&taint["timeAdded"]) as i64).collect();
        times.sort_unstable();
        times.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    fn cordoned(&self) -> BTreeSet<String> {
        self.nodes_where(|node| node["unschedulable"] == true)
    }

    fn claim(&self, node: &str, field: &str) -> u64 {
        self.node(node)["drainClaim"][field].as_u64().unwrap_or_default()
    }

    fn confidence(&self) -> &str {
        self.status["controller"]["confidence"]["state"].as_str().unwrap_or_default()
    }

    fn verdict(&self) -> String {
        text(&self.status["verdict"]["text"])
    }

    /// Returns the state and eviction rate of the zone whose name ends with this letter.
    fn zone(&self, letter: &str) -> (String, f64) {
        let zones = self.status["zones"].as_array().expect("zones");
        let zone = zones.iter().find(|zone| text(&zone["zone"]).ends_with(letter)).expect("there is one");
        let rate = zone["evictionRate"].as_f64().expect("a rate");
        (text(&zone["state"]), (rate * 1e6).round() / 1e6)
    }

    fn zone_states(&self) -> Vec<String> {
        self.status["zones"].as_array().expect("zones").iter().map(|zone| text(&zone["state"])).collect()
    }

    /// Returns the nodes with this state.
    fn in_state(&self, state: &str) -> BTreeSet<String> {
        self.nodes_where(|node| node["state"] == state)
    }

    /// Returns the line of the frame with the verdict.
    fn header(&self) -> &str {
        self.frame.lines().nth(1).unwrap_or_default()
    }

    /// Returns the marks of a zone's nodes in the line below the verdict.
    fn marks(&self, zone: &str) -> String {
        let line = self.frame.lines().nth(2).unwrap_or_default();
        let marks = line.split("  ").find_map(|part| part.trim_start().strip_prefix(zone)?.strip_prefix(' '));
        marks.unwrap_or_default().to_owned()
    }

    /// Returns the number after this text in the frame; 0 without the text.
    fn number_after(&self, text: &str) -> usize {
        let after = self.frame.split_once(text).map_or("", |(_, after)| after);
        after.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
    }

    fn pods_by(&self, node: &str, is_meant: impl Fn(&Pod) -> bool) -> BTreeSet<String> {
        self.objects.pods_on(node, is_meant)
    }

    fn evictions(&self) -> &Vec<Value> {
        self.status["evictions"].as_array().expect("evictions")
    }

    /// Returns the pods with a known time of eviction.
    fn evictions_due(&self) -> BTreeSet<String> {
        self.evictions().iter().filter(|row| !row["at"].is_null()).map(pod_of).collect()
    }

    /// Returns the evictions from a node in this state, with their times in seconds after the start.
    fn evictions_on(&self, node: &str, state: &str) -> std::collections::BTreeMap<String, f64> {
        let rows = self.evictions().iter().filter(|row| row["node"] == node && row["state"] == state);
        rows.map(|row| {
            (pod_of(row), if row["at"].is_null() { f64::INFINITY } else { self.seconds(&row["at"]) })
        })
        .collect()
    }

    fn with_outcome(&self, outcome: &str) -> BTreeSet<String> {
        self.evictions().iter().filter(|row| row["outcome"] == outcome).map(pod_of).collect()
    }

    fn count(&self, field: &str) -> usize {
        let number =
            self.status["verdict"][field].as_u64().unwrap_or_else(|| panic!("no {field} at {} s", self.at));
        usize::try_from(number).expect("a small number")
    }

    /// Returns the number of pods that have nowhere to run, or will have.
    fn nowhere(&self) -> usize {
        self.count("nowhereNow") + self.count("nowherePredicted")
    }

    /// Returns the pods that kordon lists as waiting for a node.
    fn waiting(&self) -> BTreeSet<String> {
        self.model.pending_pods().into_iter().map(|pod| pod.key.to_string()).collect()
    }

    /// Returns the pods with a departure of a kind that `is_meant` accepts.
    fn departed(&self, is_meant: impl Fn(DepartureKind) -> bool) -> BTreeSet<String> {
        let entries = self.model.departures.newest().map(|(_, entry)| entry);
        entries.filter(|entry| is_meant(entry.departure.kind)).map(|entry| entry.pod.to_string()).collect()
    }

    fn departed_from(&self, node: &str) -> std::collections::BTreeMap<Key, DepartureKind> {
        let entries = self.model.departures.newest().map(|(_, entry)| entry);
        let from = entries.filter(|entry| entry.node.as_deref() == Some(node));
        from.map(|entry| (entry.pod.clone(), entry.departure.kind)).collect()
    }

    /// Returns the pods of a node that left by a taint.
    fn evicted_from(&self, node: &str) -> BTreeSet<String> {
        let left = self.departed_from(node).into_iter();
        left.filter(|(_, kind)| *kind == DepartureKind::TaintEviction)
            .map(|(pod, _)| pod.to_string())
            .collect()
    }

    fn journal(&self) -> Vec<String> {
        self.model.journal.entries().map(|entry| entry.words()).collect()
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn set<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.map(str::to_owned).into()
}

fn no_execute_of(node: &Value) -> impl Iterator<Item = &Value> {
    let taints = node["taints"].as_array().into_iter().flatten();
    taints.filter(|taint| {
        taint["effect"] == "NoExecute" && (taint["key"] == UNREACHABLE || taint["key"] == NOT_READY)
    })
}

fn pod_of(row: &Value) -> String {
    format!("{}/{}", text(&row["namespace"]), text(&row["pod"]))
}

fn key_of(pod: &Pod) -> String {
    format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any())
}

fn node_of(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}

/// Returns the kind of the pod's controller; empty if it has none.
fn owner(pod: &Pod) -> String {
    let owners = pod.metadata.owner_references.iter().flatten();
    owners
        .filter(|owner| owner.controller == Some(true))
        .map(|owner| owner.kind.clone())
        .next()
        .unwrap_or_default()
}

fn is_deleted(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

fn is_in(objects: &ClusterObjects, pod: &Pod) -> bool {
    objects.pods.iter().any(|other| other.uid() == pod.uid())
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Whether marks stand for eight nodes that are Unknown, tainted or not.
fn is_drawn_down(marks: &str) -> bool {
    marks.chars().count() == 8 && marks.chars().all(|mark| "✕✖".contains(mark))
}

/// Returns for how many seconds the pod tolerates this NoExecute taint without a value; `None` means forever
/// (docs/upstream/node-lifecycle.md#7.6). Pods of the demo tolerate all of the controller's taints.
fn tolerates(pod: &Pod, key: &str) -> Option<i64> {
    let tolerations = pod.spec.iter().flat_map(|spec| spec.tolerations.iter().flatten());
    let fits =
        |own: &Option<String>, wanted: &str| own.as_deref().is_none_or(|own| own.is_empty() || own == wanted);
    let mut matching = tolerations
        .into_iter()
        .filter(|toleration| fits(&toleration.key, key) && fits(&toleration.effect, "NoExecute"));
    matching.next().map_or(Some(0), |toleration| toleration.toleration_seconds)
}

fn has_requests(pod: &Pod) -> bool {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    containers
        .into_iter()
        .any(|container| container.resources.as_ref().is_some_and(|resources| resources.requests.is_some()))
}

/// Size of the frames.
const SIZE: (u16, u16) = (160, 48);

/// What is known and drawn at a moment: the model, its time, and the frame as text.
type Shown = (Model, Timestamp, String);

/// A screen that keeps the last frame before each moment, and its model.
struct MomentSurface {
    started: Timestamp,
    moments: Vec<i64>,
    shown: Vec<Option<Shown>>,
    /// Result of the last draw.
    drawn: Option<Drawn>,
}

impl Surface for MomentSurface {
    fn draw_app(&mut self, app: &App, now: Timestamp) -> io::Result<Drawn> {
        let after = now.since(self.started);
        let is_near = |at: &i64| after <= Span::from_secs(*at) && after > Span::from_secs(*at - 5);
        let near = self.moments.iter().position(is_near);
        if let (None, Some(drawn)) = (near, &self.drawn) {
            // Frames at other times are not kept, so they are not drawn. The last result is enough, because no keys are
            // typed.
            return Ok(drawn.clone());
        }
        let mut terminal = Terminal::new(TestBackend::new(SIZE.0, SIZE.1)).expect("a buffer");
        let drawn = terminal.draw_app(app, now)?;
        if let Some(near) = near {
            let frame = snapshot::plain(terminal.backend().buffer());
            self.shown[near] = Some((app.model.clone(), now, frame));
        }
        self.drawn = Some(drawn.clone());
        Ok(drawn)
    }

    fn repaint(&mut self) -> io::Result<()> {
        Ok(())
    }

    async fn suspend(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Plays a scenario as `kordon demo` does, until the last of these times, in seconds after its start. Also returns the
/// objects at the start.
async fn play<const N: usize>(name: &'static str, times: [i64; N]) -> (Facts, ClusterObjects, [Moment; N]) {
    let scenario = Scenario::named(name).expect("there is one");
    let clock = Clock::new(Timestamp::parse(EPOCH).expect("a time"), 1.0);
    let cancel = CancellationToken::new();
    let (api, _world) = start_demo(scenario, clock, &cancel);
    let started = clock.now();
    let start = ClusterObjects::read(&api).await;
    let dashboard = open_dashboard(&api, clock, &cancel);
    let reading = {
        let api = api.clone();
        tokio::spawn(async move {
            let mut read = Vec::new();
            for at in times {
                clock.sleep_until(started + Span::from_secs(at)).await;
                read.push(ClusterObjects::read(&api).await);
            }
            read
        })
    };
    let mut surface =
        MomentSurface { started, moments: times.to_vec(), shown: times.map(|_| None).into(), drawn: None };
    // The dashboard exits when its stream of keys ends.
    let end = clock.sleep_until(started + Span::from_secs(times[N - 1] + 1));
    let keys = Box::pin(stream::once(end).filter_map(async |()| None::<io::Result<Event>>));
    run::run_dashboard(dashboard, &mut surface, keys).await.expect("it runs");
    let objects = reading.await.expect("it has read");
    cancel.cancel();
    let moments = times.into_iter().zip(surface.shown).zip(objects).map(|((at, shown), objects)| {
        let (model, taken, frame) = shown.expect("it was drawn");
        let status = serde_json::to_value(StatusReport::new(&model, taken)).expect("plain data");
        Moment { at, started, model, status, frame, objects }
    });
    let moments = moments.collect::<Vec<_>>().try_into().ok().expect("as many");
    (Facts { scenario: name, stated: 0, wrong: Vec::new() }, start, moments)
}
