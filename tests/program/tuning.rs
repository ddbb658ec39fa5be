//! The counterfactual of other settings, computed from recorded heartbeats, agrees with a controller that has these
//! settings. The counterfactual of the settings in force agrees with the recording.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Cursor,
    sync::atomic::{AtomicUsize, Ordering},
};

use kordon::{
    executor::effects::EffectExecutor,
    k8s::connect::Connection,
    model::ModelOptions,
    recording::{RecordingReader, RecordingStart, RecordingWriter},
    run::{
        Session,
        record::write_keyframe_if_due,
        replay::Replay,
        tuning::{SettingsTrial, TuningScope},
    },
};
use kordon_clock::Clock;
use kordon_core::{
    cluster::{Key, NodeName},
    counterfactual::{Acts, Alternative, Counterfactual, Uncertainty},
    engine::{Origin, ServerVersion, Settings},
};
use kordon_demo::{scenario::Scenario, world::NodeFault};
use kordon_time::{Span, Timestamp};
use tokio_util::sync::CancellationToken;

use crate::scenario_frames::start_demo_with;

const EPOCH: Timestamp = Timestamp::from_secs(1_800_000_000);
const VERSION: ServerVersion = ServerVersion::new(1, 36);

/// Time between two passes of the controller.
const PERIOD: Span = Span::from_secs(5);

/// Allowed difference of times: two passes. One pass notices a heartbeat and another its absence, and a recording does
/// not show the times of the passes. So even two recordings of the same controller differ by up to two passes
/// ([`recordings_of_the_same_outage_differ_by_up_to_two_passes`]). Requests and watches take no virtual time.
const PHASE: Span = Span::from_secs(10);

/// The seconds after the start at which a fault occurs, the node, and the fault.
pub type Fault = (i64, String, NodeFault);

#[tokio::test(start_paused = true)]
async fn the_settings_in_force_give_what_was_recorded() {
    for scenario in ["silent-node", "flapping", "zone-outage", "restart"] {
        let file = record(scenario, &settings(50), &[], 900).await;
        let layer = play(&file, "node-monitor-grace-period=50s");
        let happened = layer.happened();
        assert!(!happened.unreachable.is_empty(), "{scenario}");
        match layer.uncertain().count(Uncertainty::NearDeadline) {
            0 => assert_same(happened, layer.would(), scenario),
            near => {
                assert_same_nodes(happened, layer.would(), scenario);
                // The result for a pod depends on the phase only if its node came back within two passes of its
                // eviction: two recordings of the same outage differ by up to two passes (see below). `near` has each
                // of these pods, so no more pods than that may be evicted in only one of the two.
                let differ = pods(happened).symmetric_difference(&pods(layer.would())).count();
                assert!(differ <= near, "{scenario}: {near} near deadlines, {differ} pods");
            }
        }
    }
}

/// Real recordings vary: nodes have the same outage, but their kubelets renew their Leases at different times between
/// two passes of the controller.
#[tokio::test(start_paused = true)]
async fn recordings_of_the_same_outage_differ_by_up_to_two_passes() {
    let mut detections = Vec::new();
    for number in 0..8 {
        let file = record("healthy", &settings(50), &away("general", number, 60, 120), 200).await;
        let layer = play(&file, "node-monitor-grace-period=50s");
        let [act] = &layer.happened().unreachable[..] else { panic!("one node") };
        detections.push(act.detection());
    }
    detections.sort_unstable();
    let (least, most) = (detections[0], detections[detections.len() - 1]);
    let expected = Span::from_secs(50)..=Span::from_secs(50) + PHASE;
    assert!(expected.contains(&least) && expected.contains(&most), "{detections:?}");
    assert!((most - least) * 2 > PERIOD, "the tolerance is of something that does not vary: {detections:?}");
}

#[tokio::test(start_paused = true)]
async fn random_incidents_are_reproduced_with_the_settings_in_force() {
    let seed = std::env::var("KORDON_SEED").map_or(11, |seed| seed.parse().expect("a number"));
    let mut compared = 0;
    for seed in seed..seed + 3 {
        let faults = random_faults(seed);
        let file = record("healthy", &settings(40), &faults, 900).await;
        let layer = play(&file, "node-monitor-grace-period=40s");
        if layer.uncertain().count(Uncertainty::NearDeadline) > 0 {
            continue; // Near a deadline, the result depends on the unknown phase of the passes.
        }
        assert_same(layer.happened(), layer.would(), &format!("seed {seed}: {faults:?}"));
        compared += usize::from(!layer.happened().unreachable.is_empty());
    }
    assert!(compared > 0 || std::env::var_os("KORDON_SEED").is_some(), "every incident was near a deadline");
}

#[tokio::test(start_paused = true)]
async fn other_settings_give_what_a_controller_with_them_does() {
    // The grace periods are 20 s and 50 s. The time for which a node is away is so far from both that the phase of the
    // passes does not matter.
    let faults =
        [away("general", 0, 60, 34), away("general", 1, 80, 400), away("memory", 0, 100, 120)].concat();
    let with_50 = record("healthy", &settings(50), &faults, 900).await;
    let with_20 = record("healthy", &settings(20), &faults, 900).await;
    for (file, recorded, other, asked) in [(&with_50, 50, &with_20, 20), (&with_20, 20, &with_50, 50)] {
        let layer = play(file, &format!("node-monitor-grace-period={asked}s"));
        let really = play(other, &format!("node-monitor-grace-period={asked}s"));
        let place = format!("recorded with {recorded}s, asked about {asked}s");
        assert_ne!(nodes(layer.happened()), nodes(layer.would()), "{place}: they differ");
        assert_same(really.happened(), layer.would(), &place);
    }
}

/// While a recording is being written, its file is longer each time it is opened.
#[tokio::test(start_paused = true)]
async fn settings_are_compared_over_the_same_outages_of_a_file_that_grows() {
    let gone = [(60, "general/0".to_owned(), NodeFault::Disconnect)];
    let file = record("healthy", &settings(50), &gone, 600).await;
    let opened = AtomicUsize::new(0);
    // The first reader has half of the file, the second three quarters, and all others have the whole file.
    let open = || {
        let quarters = (opened.fetch_add(1, Ordering::Relaxed) + 2).min(4);
        RecordingReader::open(Cursor::new(&file[..file.len() * quarters / 4]))
    };
    let end = open().expect("a recording").until();
    let grows_by = RecordingReader::open(Cursor::new(&file)).expect("a recording").until().since(end);
    assert!(grows_by > Span::from_secs(60), "the file grows by {grows_by}");
    let back_within = Span::from_secs(300);
    let scope = TuningScope { from: EPOCH, until: end, end, back_within, blip: Span::from_secs(600) };
    let in_force = Alternative::new(settings(50));
    let alternatives = [in_force.clone(), in_force.clone(), in_force];
    let trials = SettingsTrial::run_all(open, &alternatives, scope).expect("it can be read");
    let [first, others @ ..] = &trials[..] else { panic!("three trials") };
    assert!(first.paid.not_ended.outages == 1 && first.paid.not_ended.pods > 0, "{:?}", first.paid);
    for other in others {
        assert_eq!((other.paid, other.happened_paid), (first.paid, first.happened_paid));
        assert_eq!((&other.totals, &other.happened), (&first.totals, &first.happened));
    }
}

#[tokio::test(start_paused = true)]
async fn a_longer_toleration_keeps_the_pods_of_a_node_that_comes_back() {
    let faults = away("general", 0, 60, 450);
    let file = record("healthy", &settings(50), &faults, 900).await;
    let recorded = play(&file, "node-monitor-grace-period=50s");
    let patient = play(&file, "default-unreachable-toleration-seconds=600");
    let hasty = play(&file, "default-unreachable-toleration-seconds=30");
    let within = Span::from_secs(300);
    let totals = |layer: &Counterfactual| layer.would().totals(within, EPOCH + Span::from_secs(900));
    assert!(totals(&recorded).unnecessary > 0, "the node was back after {:?}", totals(&recorded));
    assert!(totals(&patient).evicted < totals(&recorded).evicted);
    assert!(patient.uncertain().count(Uncertainty::ReplacementLeftOut) > 0, "{:?}", patient.uncertain());
    assert!(hasty.uncertain().count(Uncertainty::ReplacementMissing) == 0, "{:?}", hasty.uncertain());
    let sooner = recorded.would().evicted.iter().any(|pod| {
        let same = hasty.would().evicted.iter().find(|hasty| hasty.uid == pod.uid);
        same.is_some_and(|hasty| pod.at.since(hasty.at) > Span::from_secs(200))
    });
    assert!(sooner, "a pod with the default toleration is evicted 270 s sooner");
}

#[tokio::test(start_paused = true)]
async fn a_node_back_before_the_deadline_is_not_declared_unknown_and_one_back_after_it_is() {
    for (away_for, is_declared) in [(12, false), (45, true)] {
        let faults = away("general", 0, 60, away_for);
        let file = record("healthy", &settings(90), &faults, 300).await;
        let layer = play(&file, "node-monitor-grace-period=25s");
        assert!(layer.happened().unreachable.is_empty(), "90 s are enough");
        assert_eq!(layer.would().unreachable.len(), usize::from(is_declared), "away for {away_for} s");
        for node in &layer.would().unreachable {
            let detection = node.detection();
            assert!(detection > Span::from_secs(25) && detection <= Span::from_secs(25) + PHASE, "{node:?}");
            assert!(node.back.is_some(), "{node:?}");
        }
        let assumed = layer.uncertain().count(Uncertainty::PostAssumed);
        assert_eq!(assumed, usize::from(is_declared), "only a node that was declared posts again");
    }
}

/// Asserts that two controllers did the same. The times may differ only by the phase of the controllers' passes.
fn assert_same(one: &Acts, other: &Acts, place: &str) {
    assert_same_nodes(one, other, place);
    assert_eq!(pods(one), pods(other), "{place}");
    // A zone's tokens go to its waiting nodes in random order. So the evictions of a zone are compared in their order:
    // the first with the first, and so on.
    let (ones, others) = (evictions(one), evictions(other));
    for (zone, times) in &ones {
        for (one, other) in times.iter().zip(&others[zone]) {
            assert!(
                one.since(*other) < PHASE && other.since(*one) < PHASE,
                "{place}: evictions of {zone:?} at {one:?}, {other:?}"
            );
        }
    }
}

/// Asserts that two controllers declared the same nodes Unknown. The times may differ only by the phase of the passes.
fn assert_same_nodes(one: &Acts, other: &Acts, place: &str) {
    assert_eq!(nodes(one), nodes(other), "{place}");
    let times = |acts: &Acts| -> Vec<(NodeName, Timestamp)> {
        let mut times: Vec<_> = acts.unreachable.iter().map(|act| (act.node.clone(), act.at)).collect();
        times.sort();
        times
    };
    for ((node, one), (_, other)) in times(one).into_iter().zip(times(other)) {
        assert!(
            one.since(other) < PHASE && other.since(one) < PHASE,
            "{place}: {node} at {one:?}, {other:?}"
        );
    }
}

/// Returns the times of the evictions in each zone, in ascending order.
fn evictions(acts: &Acts) -> BTreeMap<String, Vec<Timestamp>> {
    let mut zones: BTreeMap<String, Vec<Timestamp>> = BTreeMap::new();
    for act in &acts.evicted {
        // The name of a node contains its zone, as in general-1a-01.
        let zone = act.node.split('-').nth(1).expect("nodes are named after their zones");
        zones.entry(zone.to_owned()).or_default().push(act.at);
    }
    zones.values_mut().for_each(|times| times.sort_unstable());
    zones
}

/// Counts how often each node became Unknown.
fn nodes(acts: &Acts) -> BTreeMap<NodeName, usize> {
    let mut nodes = BTreeMap::new();
    for act in &acts.unreachable {
        *nodes.entry(act.node.clone()).or_default() += 1;
    }
    nodes
}

/// Returns the evicted pods with their nodes.
fn pods(acts: &Acts) -> BTreeSet<(NodeName, Key)> {
    acts.evicted.iter().map(|act| (act.node.clone(), act.pod.clone())).collect()
}

pub fn settings(grace: i64) -> Settings {
    let mut settings = Settings::defaults(VERSION);
    settings.set("node-monitor-grace-period", &format!("{grace}s"), Origin::Cluster).expect("a duration");
    settings
}

/// Returns the faults that disconnect a node of a pool at `at`, and reconnect it `seconds` later.
fn away(pool: &str, number: usize, at: i64, seconds: i64) -> Vec<Fault> {
    let node = format!("{pool}/{number}");
    vec![(at, node.clone(), NodeFault::Disconnect), (at + seconds, node, NodeFault::Reconnect)]
}

fn random_faults(seed: u64) -> Vec<Fault> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut faults = Vec::new();
    for number in 0..random.usize(2..6) {
        let (at, seconds) = (random.i64(30..400), random.i64(10..500));
        faults.extend(away("general", number, at, seconds));
    }
    if random.bool() {
        faults.push((random.i64(30..300), "memory/0".into(), NodeFault::StopRuntime));
    }
    faults.sort_by_key(|(at, ..)| *at);
    faults
}

/// Plays a recording with one setting replaced.
fn play(file: &[u8], with: &str) -> Counterfactual {
    let reader = RecordingReader::open(Cursor::new(file)).expect("a recording");
    let (mut alternative, until) = (Alternative::new(reader.start().settings()), reader.until());
    alternative.set(with).expect("a setting");
    let mut replay = Replay::under(reader, alternative);
    replay.seek(until).expect("it is whole");
    replay.counterfactual().expect("it was asked about").clone()
}

/// Records a scenario under a controller with these settings, with faults of nodes.
pub async fn record(scenario: &str, settings: &Settings, faults: &[Fault], seconds: i64) -> Vec<u8> {
    let clock = Clock::new(EPOCH, 1.0);
    let cancel = CancellationToken::new();
    let _ends_with_us = cancel.clone().drop_guard();
    let scenario = Scenario::named(scenario).expect("a scenario");
    let (api, world) = start_demo_with(settings, scenario, clock, &cancel);
    let Session { mut model, mut links, .. } = Session::start(
        &Connection::embedded(api.client(), "demo"),
        ModelOptions::observer(VERSION),
        false,
        EffectExecutor::Recorder,
        clock,
        cancel.clone(),
    );
    let start = RecordingStart::new(settings, Span::from_secs(120), clock.now());
    let mut file = Vec::new();
    let mut writer = RecordingWriter::start(&mut file, start, None).expect("memory");
    let mut faults: Vec<Fault> = faults.to_vec();
    faults.sort_by_key(|(at, ..)| *at);
    let mut faults = faults.into_iter().peekable();
    let ends = EPOCH + Span::from_secs(seconds);
    loop {
        let next = faults.peek().map_or(ends, |(at, ..)| (EPOCH + Span::from_secs(*at)).min(ends));
        tokio::select! {
            biased;
            () = clock.sleep_until(next) => match faults.next() {
                Some((_, node, fault)) => world.inject(&named(&model, &node), fault).await,
                None => break,
            },
            event = links.feeds.recv() => {
                let (event, now) = (event.expect("the watches run"), clock.now());
                writer.event(&event, now).expect("memory");
                model.on_watch_event(event, now);
                write_keyframe_if_due(&mut writer, &model, now).expect("memory");
            }
        }
    }
    writer.finish(clock.now()).expect("memory");
    file
}

/// Returns the node with this number in a pool, in order of names.
fn named(model: &kordon::model::Model, place: &str) -> String {
    let (pool, number) = place.split_once('/').expect("a pool and a number");
    let nodes = model.cluster.nodes().iter().filter(|node| node.name.contains(pool));
    let node = nodes.map(|node| node.name.to_string()).nth(number.parse().expect("a number"));
    node.expect("the pool has so many")
}
