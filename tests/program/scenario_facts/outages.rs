//! Facts of scenarios in which nodes or zones fail.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Pod;
use kordon_core::why::departure::DepartureKind;

use super::moment::{
    Moment, NOT_READY, UNREACHABLE, is_deleted, is_drawn_down, is_in, is_ready, owner, play, set, tolerates,
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
