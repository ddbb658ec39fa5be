//! The predictions of `kordon tune` for other settings, compared with the real controllers under these settings. In
//! every run, the same nodes are away for the same times.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::BufReader,
    iter,
    path::Path,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::apps::v1::ReplicaSet;
use kordon::{
    executor::effects::EffectExecutor,
    k8s::connect::Connection,
    model::ModelOptions,
    recording::{RecordingReader, RecordingStart, RecordingWriter},
    run::{Session, record::record, replay::Replay},
};
use kordon_clock::Clock;
use kordon_core::{
    cluster::{Cluster, Pod},
    counterfactual::{
        Acts, AffectedPod, Alternative, CostScope, Counterfactual, OutageCost, Paid, RecordedOutage, Whose,
    },
    engine::Settings,
};
use kordon_time::{Span, Timestamp};
use kube::{Api, Client, ResourceExt, api::PostParams};
use serde_json::json;
use tokio::{sync::oneshot, time::sleep};
use tokio_util::sync::CancellationToken;

use crate::{
    control_plane::{create_running, pod, start_controllers, three_zones},
    harness::{
        self,
        plane::{self, ControllerManager, Options, Plane},
    },
};

/// The `tolerationSeconds` that admission adds in this test; the default is 300.
const TOLERATION: u32 = 8;

/// Nodes by the seconds of their absence; all absences begin at the same time. An absence of 10 s is too short for an
/// eviction. 21 s are long enough for the fast controller; longer absences are long enough for both controllers, with a
/// margin of two seconds. In zone a, three of four nodes are away.
const AWAY: [(u64, &[&str]); 4] = [(10, &["c1"]), (21, &["b1"]), (34, &["c2"]), (60, &["a1", "a2", "a3"])];
const IN_EACH_ZONE: usize = 4;

/// Heartbeat interval of the simulated kubelets. The last heartbeats of nodes that fall silent together are at most
/// this far apart.
const HEARTBEAT: Span = Span::from_secs(1);

/// Time for a request of the controller, and for the watch to report the change.
const REQUEST: Span = Span::from_millis(500);

/// Precision of the times in the conditions of pods.
const WHOLE_SECOND: Span = Span::from_secs(1);

/// Outages shorter than this are blips.
const BLIP: Span = Span::from_secs(30);

/// A fast controller. Its threshold of unhealthy nodes is so high that its rate stays the same when most of zone a is
/// down. A change of the rate would be a race in the real controller: the first of these nodes may be tainted before or
/// after the pass that finds the others Unknown.
fn hasty() -> ControllerManager {
    ControllerManager {
        grace_period: Span::from_secs(5),
        unhealthy_zone_threshold: 0.9,
        controllers: vec!["node-lifecycle-controller", "taint-eviction-controller", "replicaset-controller"],
        ..ControllerManager::default()
    }
}

/// A slow controller, with another monitor period, grace period and eviction rate.
fn patient() -> ControllerManager {
    ControllerManager {
        monitor_period: Span::from_secs(2),
        grace_period: Span::from_secs(15),
        eviction_rate: 0.2,
        ..hasty()
    }
}

/// Returns the allowed difference between a prediction of `kordon tune` and a recording. A controller notices a
/// heartbeat up to one pass later, and the absence of heartbeats up to another pass later. A recording does not show
/// the times of the passes. So even two recordings of the same controller differ by up to two passes;
/// [`ensure_passes_matter`] checks this.
fn tolerance(controller: &ControllerManager) -> Span {
    controller.monitor_period * 2 + REQUEST
}

/// Returns the allowed difference of the time in which one pod ran nowhere: that of an eviction (see [`same`]), and the
/// precision of the time at which its replacement was Ready.
fn cost_tolerance(controller: &ControllerManager) -> Span {
    tolerance(controller) + HEARTBEAT + WHOLE_SECOND
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_real_controllers_do_with_other_settings_what_tune_says() {
    let Some(binary) = plane::binary("e2e_tuning").unwrap() else { return };
    let folder = tempfile::tempdir().unwrap();
    let run = async |name: &str, toleration, controller: ControllerManager| {
        let options = Options { toleration_seconds: toleration, ..Options::default() };
        let mut plane = Plane::start(&binary, options).await.unwrap();
        let file = folder.path().join(format!("{name}.kordon"));
        plane.scenario(name, async |plane| recorded(plane, &controller, &file).await).await;
        file
    };
    let (first, again, late, tolerant) = tokio::join!(
        run("hasty", TOLERATION, hasty()),
        run("again", TOLERATION, hasty()),
        run("patient", TOLERATION, patient()),
        run("tolerant", 300, hasty()),
    );
    compare(&first, &again, &late, &tolerant).unwrap();
}

/// Plays each recording with the settings of the other recordings, and compares the results with those recordings.
fn compare(first: &Path, again: &Path, late: &Path, tolerant: &Path) -> Result<()> {
    let (soon, slow) = (hasty(), patient());
    let [first_time, second_time] = [play(first, &soon, None)?, play(again, &soon, None)?];
    let two = [first_time.happened(), second_time.happened()];
    let apart = same(&two[0], &two[1], tolerance(&soon), "two recordings of the same")?;
    harness::say(&format!("e2e_tuning: two recordings of the same differ by up to {apart}"));
    ensure_passes_matter(&two, &soon)?;
    ensure_heartbeats_matter(&[&first_time, &second_time])?;
    let [one, other] = [first_time.ran_nowhere(Span::MAX)?, second_time.ran_nowhere(Span::MAX)?];
    let apart = nearly_equal(&one, &other, cost_tolerance(&soon), "two recordings of the same")?;
    harness::say(&format!(
        "e2e_tuning: two recordings of the same: pods ran nowhere for times that differ by up to {apart}"
    ));
    let really_late = play(late, &slow, None)?;
    let toleration = Some(Span::from_secs(i64::from(TOLERATION)));
    for (asked, controller, really, place) in [
        (&first_time, &soon, &first_time, "hasty, as recorded"),
        (&second_time, &soon, &second_time, "again, as recorded"),
        (&really_late, &slow, &really_late, "patient, as recorded"),
        (&play(first, &slow, None)?, &slow, &really_late, "hasty asked about patient"),
        (&play(late, &soon, None)?, &soon, &first_time, "patient asked about hasty"),
        (&play(tolerant, &soon, toleration)?, &soon, &first_time, "300 s of toleration asked about less"),
        (&play(tolerant, &slow, toleration)?, &slow, &really_late, "the same asked about patient"),
    ] {
        let most = same(&asked.would(), &really.happened(), tolerance(controller), place)?;
        harness::say(&format!("e2e_tuning: {place}: differs by up to {most}"));
        same_costs(asked, really, controller, place)?;
    }
    ensure!(
        nodes(&first_time.happened()) != nodes(&really_late.happened()),
        "the settings make no difference"
    );
    let longer = sum(&really_late.ran_nowhere(Span::MAX)?) - sum(&first_time.ran_nowhere(Span::MAX)?);
    let allowed = cost_tolerance(&slow) * i64::try_from(away().count())?;
    ensure!(longer > allowed, "pods ran nowhere for only {longer} longer, and {allowed} are allowed");
    Ok(())
}

/// Ensures that the recordings of a controller show why times may differ by [`tolerance`]: how long a node is silent
/// until it is Unknown depends on when its last heartbeat was between two passes. The twelve nodes send heartbeats at
/// even intervals within a second, which is the period of the fast controller. So the times of the six silent nodes
/// differ by 5/12 s or more. They must differ by more than a quarter of the period, and at most by the tolerance.
fn ensure_passes_matter(recordings: &[Acts], controller: &ControllerManager) -> Result<()> {
    let mut times: Vec<Span> =
        recordings.iter().flat_map(|acts| detections(acts).into_values().flatten()).collect();
    times.sort_unstable();
    let [least, .., most] = times[..] else { bail!("too few nodes became Unknown: {times:?}") };
    let apart = most - least;
    harness::say(&format!("e2e_tuning: the same controller needs from {least} to {most} for a node"));
    ensure!(
        apart * 4 > controller.monitor_period,
        "the tolerance is of something that varies little: {times:?}"
    );
    ensure!(apart <= tolerance(controller), "the same controller varies by {apart}: {times:?}");
    Ok(())
}

/// Ensures that the recordings show why times may differ by [`HEARTBEAT`] where chance decides which node of a zone is
/// tainted first: the last heartbeats of nodes that fall silent together are that far apart. In a recording they must be
/// more than a quarter of the interval apart, and at most the interval and the time of a request.
fn ensure_heartbeats_matter(recordings: &[&Played]) -> Result<()> {
    for played in recordings {
        let mut times: Vec<Timestamp> = played.outages.iter().map(|outage| outage.from).collect();
        times.sort_unstable();
        let [first, .., last] = times[..] else { bail!("too few outages: {times:?}") };
        let apart = last.since(first);
        harness::say(&format!("e2e_tuning: the last heartbeats are up to {apart} apart"));
        ensure!(apart * 4 > HEARTBEAT && apart <= HEARTBEAT + REQUEST, "heartbeats {apart} apart: {times:?}");
    }
    Ok(())
}

/// Ensures that the predicted costs of the outages are the real ones: the numbers of outages, pods and moves, and for
/// each pod the time in which it ran nowhere.
fn same_costs(asked: &Played, really: &Played, controller: &ControllerManager, place: &str) -> Result<()> {
    let counts = |cost: OutageCost| (cost.outages, cost.pods, cost.moves);
    let (said, paid) = (asked.paid(true), really.paid(false));
    for (said, paid) in [(said.ended, paid.ended), (said.blips, paid.blips), (said.not_ended, paid.not_ended)]
    {
        ensure!(counts(said) == counts(paid), "{place}: {said:?}\nreally {paid:?}");
    }
    ensure!(said.ended.outages == away().count(), "{place}: {said:?}");
    for (said, longest, which) in [(said.ended, Span::MAX, "outages"), (said.blips, BLIP, "blips")] {
        let (would_run, ran) = (asked.would_run_nowhere(longest), really.ran_nowhere(longest)?);
        ensure!(sum(&would_run) == said.nowhere, "{place}: {would_run:?} are not {}", said.nowhere);
        let apart = nearly_equal(&would_run, &ran, cost_tolerance(controller), &format!("{place}: {which}"))?;
        harness::say(&format!(
            "e2e_tuning: {place}: in {which} pods ran nowhere for {}, really for {}; each differs by up to {apart}",
            said.nowhere,
            sum(&ran)
        ));
    }
    Ok(())
}

/// Ensures that the times of pods differ by at most `tolerance`, and returns the greatest difference. The pods of a zone
/// are compared in their order, because upstream gives tokens to the waiting nodes in random order.
fn nearly_equal(one: &PodTimes, other: &PodTimes, tolerance: Span, place: &str) -> Result<Span> {
    let counts = |times: &PodTimes| times.iter().map(|(zone, pods)| (zone.clone(), pods.len())).collect();
    let [pods, others]: [BTreeMap<String, usize>; 2] = [counts(one), counts(other)];
    ensure!(pods == others, "{place}: {one:?}\nreally {other:?}");
    let pairs = one.values().flatten().zip(other.values().flatten());
    let most = pairs.map(|(one, other)| (*one - *other).max(*other - *one)).max().unwrap_or(Span::ZERO);
    ensure!(most <= tolerance, "{place}: differs by {most}: {one:?}\nreally {other:?}");
    Ok(most)
}

fn sum(times: &PodTimes) -> Span {
    times.values().flatten().fold(Span::ZERO, |sum, time| sum + *time)
}

/// Returns the nodes that are away for a while.
fn away() -> impl Iterator<Item = &'static str> {
    AWAY.iter().flat_map(|(_, nodes)| nodes.iter().copied())
}

/// Records the events while nodes are away.
async fn recorded(plane: &mut Plane, controller: &ControllerManager, path: &Path) -> Result<()> {
    let client = plane.client();
    let settings = controller.settings()?;
    let kubelets = three_zones(&client, IN_EACH_ZONE).await?;
    create_pods(&client).await?;
    start_controllers(plane, controller).await?;
    let clock = Clock::system();
    let start = RecordingStart::new(&settings, Span::from_secs(60), clock.now());
    let writer = RecordingWriter::start(File::create(path)?, start, None)?;
    let cancel = CancellationToken::new();
    let _ends_with_us = cancel.clone().drop_guard();
    let session = Session::start(
        &Connection::embedded(client, "e2e"),
        ModelOptions::observer(settings.version),
        false,
        EffectExecutor::Recorder,
        clock,
        cancel.clone(),
    );
    let (stop, stopped) = oneshot::channel::<()>();
    let recording = tokio::spawn(record(session, writer, async {
        let _ = stopped.await;
    }));
    sleep(Duration::from_secs(4)).await;
    for node in away() {
        kubelets.silence(node).await?;
    }
    let mut passed = 0;
    for (seconds, nodes) in AWAY {
        sleep(Duration::from_secs(seconds - passed)).await;
        passed = seconds;
        for node in nodes {
            kubelets.come_back(node).await?;
        }
    }
    sleep(Duration::from_secs(4)).await;
    let _ = stop.send(());
    recording.await.context("recording")??;
    Ok(())
}

/// Creates a running pod on each node that will be away, and a ReplicaSet of the same name that owns the pod. The
/// ReplicaSet creates a replacement on the last node of the zone, which is never away.
async fn create_pods(client: &Client) -> Result<()> {
    let sets = Api::<ReplicaSet>::namespaced(client.clone(), "default");
    let mut pods = Vec::new();
    for node in away() {
        let name = format!("on-{node}");
        let labels = json!({ "app": name });
        let set = json!({
            "metadata": { "name": name },
            "spec": {
                "replicas": 1,
                "selector": { "matchLabels": labels },
                "template": {
                    "metadata": { "labels": labels },
                    "spec": {
                        "nodeName": format!("{}{IN_EACH_ZONE}", &node[..1]),
                        "containers": [{ "name": "c", "image": "img" }],
                    },
                },
            },
        });
        let set = sets.create(&PostParams::default(), &serde_json::from_value(set)?).await?;
        let owner = json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": set.uid(), "controller": true,
        });
        let mut pod = pod(&name, node, None);
        pod["metadata"]["labels"] = labels;
        pod["metadata"]["ownerReferences"] = json!([owner]);
        pods.push(pod);
    }
    create_running(client, &pods).await
}

/// A recording, played with some settings.
struct Played {
    layer: Counterfactual,
    outages: Vec<RecordedOutage>,
    paid: [Paid; 2],
    scope: CostScope,
    /// The recorded cluster at the end.
    recorded: Cluster,
}

/// The times in which pods ran nowhere, by zone and in ascending order. Each node with an outage has one pod.
type PodTimes = BTreeMap<String, Vec<Span>>;

impl Played {
    fn would(&self) -> Acts {
        self.layer.would().clone()
    }

    fn happened(&self) -> Acts {
        self.layer.happened().clone()
    }

    fn paid(&self, by_engine: bool) -> Paid {
        self.paid[usize::from(by_engine)]
    }

    /// Returns the real times in which the pods of the outages shorter than `longest` ran nowhere: from the last
    /// heartbeat of the node until the recorded replacement was Ready or, without a replacement, until the node was
    /// back.
    fn ran_nowhere(&self, longest: Span) -> Result<PodTimes> {
        let mut nowhere = PodTimes::new();
        for outage in self.shorter_than(longest) {
            for pod in &outage.pods {
                let runs = match self.replacement(pod) {
                    Some(replacement) => self.ready_since(replacement)?,
                    None => outage.end.at(),
                };
                nowhere.entry(zone(outage)).or_default().push(runs.since(outage.from));
            }
        }
        nowhere.values_mut().for_each(|times| times.sort_unstable());
        Ok(nowhere)
    }

    /// Returns the times in which the same pods would have run nowhere under the engine.
    fn would_run_nowhere(&self, longest: Span) -> PodTimes {
        let mut nowhere = PodTimes::new();
        for outage in self.shorter_than(longest) {
            let paid = Paid::new(iter::once(outage), Whose::Engine(self.layer.would()), &self.scope);
            if paid.ended.outages > 0 {
                nowhere.entry(zone(outage)).or_default().push(paid.ended.nowhere);
            }
        }
        nowhere.values_mut().for_each(|times| times.sort_unstable());
        nowhere
    }

    fn shorter_than(&self, longest: Span) -> impl Iterator<Item = &RecordedOutage> {
        self.outages.iter().filter(move |outage| outage.length() < longest)
    }

    /// Returns the pod that the ReplicaSet of an evicted pod created. The ReplicaSet has the name of the evicted pod.
    fn replacement(&self, evicted: &AffectedPod) -> Option<&Pod> {
        let is_of_set = |pod: &Pod| pod.owner.as_ref().is_some_and(|owner| owner.name == evicted.pod.name);
        self.recorded.pods().iter().map(|pod| &**pod).find(|pod| is_of_set(pod) && pod.uid != evicted.uid)
    }

    fn ready_since(&self, pod: &Pod) -> Result<Timestamp> {
        let ready = pod.ready.as_ref().filter(|_| pod.is_ready()).and_then(|ready| ready.last_transition);
        Ok(self.recorded.local(ready.with_context(|| format!("{} is not Ready", pod.key))?))
    }
}

/// Plays a recording with a controller's settings, and optionally with another toleration.
fn play(file: &Path, controller: &ControllerManager, toleration: Option<Span>) -> Result<Played> {
    let open = || -> Result<_> { Ok(RecordingReader::open(BufReader::new(File::open(file)?))?) };
    let reader = open()?;
    let (settings, until): (Settings, Timestamp) = (reader.start().settings(), reader.until());
    let from = reader.start().at;
    let mut as_recorded = Replay::new(open()?, settings.clone());
    as_recorded.seek(until)?;
    let mut alternative = Alternative::new(settings);
    for (flag, value, _) in controller.settings()?.flags() {
        alternative.set(&format!("{flag}={value}"))?;
    }
    if let Some(toleration) = toleration {
        alternative = alternative.with_toleration(toleration);
    }
    // Outages are counted by the shorter of both grace periods, so that all recordings have the same outages.
    alternative.least_silence = hasty().grace_period;
    let mut replay = Replay::under(reader, alternative);
    replay.seek(until)?;
    let layer = replay.counterfactual().cloned().context("other settings")?;
    let scope = CostScope {
        from,
        until,
        blip: BLIP,
        passes: controller.monitor_period * 2,
        // The simulated kubelets start pods at once.
        start: Span::ZERO,
        end: until,
    };
    let outages = layer.outages(&replay.model().cluster, until);
    let paid = [Whose::Recorded(layer.happened()), Whose::Engine(layer.would())];
    let paid = paid.map(|whose| Paid::new(outages.iter(), whose, &scope));
    Ok(Played { layer, outages, paid, scope, recorded: as_recorded.into_model().cluster })
}

/// Returns the zone of an outage: the first letter of the node.
fn zone(outage: &RecordedOutage) -> String {
    outage.node[..1].to_owned()
}

/// Ensures that the same nodes became Unknown and the same pods were evicted, and that the times since the last
/// heartbeats differ by at most `tolerance`. Returns the greatest difference.
///
/// Upstream gives tokens to the waiting nodes of a zone in random order. So the evictions of a zone are compared in
/// their order: the first with the first, the second with the second, and so on.
fn same(asked: &Acts, really: &Acts, tolerance: Span, place: &str) -> Result<Span> {
    ensure!(nodes(asked) == nodes(really), "{place}: {asked:?}\nreally {really:?}");
    let pods = |acts: &Acts| acts.evicted.iter().map(|pod| pod.pod.to_string()).collect::<BTreeSet<_>>();
    ensure!(pods(asked) == pods(really), "{place}: {asked:?}\nreally {really:?}");
    let mut most = Span::ZERO;
    let mut compare = |one: &[Span], other: &[Span], tolerance: Span, what: &str| -> Result<()> {
        for (one, other) in one.iter().zip(other) {
            let apart = (*one - *other).max(*other - *one);
            most = most.max(apart);
            ensure!(
                apart <= tolerance,
                "{place}: {what} after {one}, really {other}\n{asked:?}\nreally {really:?}"
            );
        }
        Ok(())
    };
    let (one, other) = (detections(asked), detections(really));
    for (node, spans) in &one {
        compare(spans, &other[node], tolerance, &format!("{node} Unknown"))?;
    }
    let (one, other) = (evictions(asked), evictions(really));
    for (zone, spans) in &one {
        compare(spans, &other[zone], tolerance + HEARTBEAT, &format!("evictions of zone {zone}"))?;
    }
    Ok(most)
}

/// Counts how often each node became Unknown.
fn nodes(acts: &Acts) -> BTreeMap<String, usize> {
    detections(acts).into_iter().map(|(node, spans)| (node, spans.len())).collect()
}

fn detections(acts: &Acts) -> BTreeMap<String, Vec<Span>> {
    let mut nodes: BTreeMap<String, Vec<Span>> = BTreeMap::new();
    for act in &acts.unreachable {
        nodes.entry(act.node.to_string()).or_default().push(act.detection());
    }
    nodes
}

/// Returns the times from the last heartbeat to the evictions of pods, by zone and in ascending order.
fn evictions(acts: &Acts) -> BTreeMap<String, Vec<Span>> {
    let mut zones: BTreeMap<String, Vec<Span>> = BTreeMap::new();
    for act in &acts.evicted {
        zones.entry(act.node[..1].to_owned()).or_default().push(act.at.since(act.silent_since));
    }
    zones.values_mut().for_each(|spans| spans.sort_unstable());
    zones
}
