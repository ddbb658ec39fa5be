//! A scenario that is played, what is known of it at some moments, and facts about them.

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
use kordon_demo::{api::Api, scenario::Scenario};
use kordon_time::{Span, Timestamp};
use kube::{Api as Objects, ResourceExt, api::ListParams};
use ratatui::{Terminal, backend::TestBackend};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::scenario_frames::{EPOCH, open_dashboard, start_demo};

pub const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

pub const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// Checks the facts of a scenario and collects those that are wrong.
pub struct Facts {
    scenario: &'static str,
    stated: usize,
    wrong: Vec<String>,
}

impl Facts {
    pub fn equal<T: PartialEq + std::fmt::Debug>(&mut self, fact: &str, found: T, expected: T) {
        self.stated += 1;
        if found != expected {
            self.wrong.push(format!("{fact}:\n    found    {found:?}\n    expected {expected:?}"));
        }
    }

    pub fn within(&mut self, fact: &str, found: f64, least: f64, most: f64) {
        self.stated += 1;
        if !(least..=most).contains(&found) {
            self.wrong.push(format!("{fact}: found {found}, expected {least} to {most}"));
        }
    }

    pub fn holds(&mut self, fact: &str, holds: bool, found: &dyn std::fmt::Debug) {
        self.stated += 1;
        if !holds {
            self.wrong.push(format!("{fact}: found {found:?}"));
        }
    }

    /// States that the text is in the verdict, and in the drawn frame.
    pub fn shows(&mut self, fact: &str, moment: &Moment, text: &str) {
        let shown = [moment.verdict(), moment.header().to_owned()];
        let fact = format!("{fact}: {text:?} at {} s", moment.at);
        self.holds(&fact, shown.iter().all(|shown| shown.contains(text)), &shown);
    }

    pub fn check(self) {
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
pub struct ClusterObjects {
    pub nodes: Vec<Node>,
    pub pods: Vec<Pod>,
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

    pub fn on<'a>(&'a self, node: &'a str) -> impl Iterator<Item = &'a Pod> {
        self.pods.iter().filter(move |pod| node_of(pod) == node)
    }

    pub fn pods_on(&self, node: &str, is_meant: impl Fn(&Pod) -> bool) -> BTreeSet<String> {
        self.on(node).filter(|pod| is_meant(pod)).map(key_of).collect()
    }

    pub fn named<'a>(&'a self, namespace: &'a str, start: &'a str) -> impl Iterator<Item = &'a Pod> {
        self.pods.iter().filter(move |pod| {
            pod.namespace().as_deref() == Some(namespace) && pod.name_any().starts_with(start)
        })
    }

    /// Returns the pods that end only if they are removed: all pods except those of Jobs.
    pub fn lasting_pods(&self) -> impl Iterator<Item = &Pod> {
        self.pods.iter().filter(|pod| owner(pod) != "Job")
    }

    /// Returns the uids of [`Self::lasting_pods`].
    pub fn lasting_uids(&self) -> BTreeSet<String> {
        self.lasting_pods().filter_map(ResourceExt::uid).collect()
    }

    /// Returns the names of [`Self::lasting_pods`].
    pub fn lasting(&self) -> BTreeSet<String> {
        self.lasting_pods().map(key_of).collect()
    }

    /// Returns the number of nodes with this kernel.
    pub fn with_kernel(&self, kernel: &str) -> usize {
        let version = |node: &Node| Some(node.status.as_ref()?.node_info.as_ref()?.kernel_version.clone());
        self.nodes.iter().filter(|node| version(node).as_deref() == Some(kernel)).count()
    }

    pub fn daemon_pods(&self) -> BTreeSet<String> {
        self.pods.iter().filter(|pod| owner(pod) == "DaemonSet").map(key_of).collect()
    }

    /// Returns the pods without a node.
    pub fn waiting(&self) -> BTreeSet<String> {
        self.pods.iter().filter(|pod| node_of(pod).is_empty() && !is_deleted(pod)).map(key_of).collect()
    }
}

/// The state of the cluster and the report of kordon at a moment.
pub struct Moment {
    pub at: i64,
    pub started: Timestamp,
    pub model: Model,
    /// Output of `kordon status -o json`.
    pub status: Value,
    /// The last frame that was drawn, as text.
    pub frame: String,
    pub objects: ClusterObjects,
}

impl Moment {
    pub fn node(&self, name: &str) -> &Value {
        let nodes = self.status["nodes"].as_array().expect("nodes");
        nodes
            .iter()
            .find(|node| node["name"] == name)
            .unwrap_or_else(|| panic!("no node {name} at {} s", self.at))
    }

    pub fn names(&self) -> BTreeSet<String> {
        self.nodes_where(|_| true)
    }

    pub fn nodes_where(&self, is_meant: impl Fn(&Value) -> bool) -> BTreeSet<String> {
        let nodes = self.status["nodes"].as_array().expect("nodes").iter().filter(|node| is_meant(node));
        nodes.map(|node| text(&node["name"])).collect()
    }

    pub fn ready(&self, node: &str) -> &str {
        self.node(node)["ready"]["status"].as_str().unwrap_or_default()
    }

    pub fn state(&self, node: &str) -> &str {
        self.node(node)["state"].as_str().unwrap_or_default()
    }

    pub fn with_ready(&self, status: &str) -> BTreeSet<String> {
        self.nodes_where(|node| node["ready"]["status"] == status)
    }

    /// Returns the second since which the Ready condition is unchanged.
    pub fn ready_since(&self, node: &str) -> f64 {
        self.seconds(&self.node(node)["ready"]["since"])
    }

    pub fn seconds(&self, time: &Value) -> f64 {
        let at = Timestamp::parse(&text(time)).unwrap_or_else(|| panic!("{time} is no time"));
        at.since(self.started).as_secs_f64()
    }

    /// Returns the keys of the node's NoExecute taints that belong to the controller.
    pub fn no_execute(&self, node: &str) -> BTreeSet<String> {
        no_execute_of(self.node(node)).map(|taint| text(&taint["key"])).collect()
    }

    /// Returns the nodes with a NoExecute taint that belongs to the controller.
    pub fn tainted(&self) -> BTreeSet<String> {
        self.nodes_where(|node| no_execute_of(node).next().is_some())
    }

    /// Returns the seconds between successive taints.
    pub fn pauses_between_taints(&self) -> Vec<i64> {
        let nodes = self.status["nodes"].as_array().expect("nodes").iter();
        let mut times: Vec<i64> =
            nodes.flat_map(no_execute_of).map(|taint| self.seconds(&taint["timeAdded"]) as i64).collect();
        times.sort_unstable();
        times.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    pub fn cordoned(&self) -> BTreeSet<String> {
        self.nodes_where(|node| node["unschedulable"] == true)
    }

    pub fn claim(&self, node: &str, field: &str) -> u64 {
        self.node(node)["drainClaim"][field].as_u64().unwrap_or_default()
    }

    pub fn confidence(&self) -> &str {
        self.status["controller"]["confidence"]["state"].as_str().unwrap_or_default()
    }

    pub fn verdict(&self) -> String {
        text(&self.status["verdict"]["text"])
    }

    /// Returns the state and eviction rate of the zone whose name ends with this letter.
    pub fn zone(&self, letter: &str) -> (String, f64) {
        let zones = self.status["zones"].as_array().expect("zones");
        let zone = zones.iter().find(|zone| text(&zone["zone"]).ends_with(letter)).expect("there is one");
        let rate = zone["evictionRate"].as_f64().expect("a rate");
        (text(&zone["state"]), (rate * 1e6).round() / 1e6)
    }

    pub fn zone_states(&self) -> Vec<String> {
        self.status["zones"].as_array().expect("zones").iter().map(|zone| text(&zone["state"])).collect()
    }

    /// Returns the nodes with this state.
    pub fn in_state(&self, state: &str) -> BTreeSet<String> {
        self.nodes_where(|node| node["state"] == state)
    }

    /// Returns the line of the frame with the verdict.
    pub fn header(&self) -> &str {
        self.frame.lines().nth(1).unwrap_or_default()
    }

    /// Returns the marks of a zone's nodes in the line below the verdict.
    pub fn marks(&self, zone: &str) -> String {
        let line = self.frame.lines().nth(2).unwrap_or_default();
        let marks = line.split("  ").find_map(|part| part.trim_start().strip_prefix(zone)?.strip_prefix(' '));
        marks.unwrap_or_default().to_owned()
    }

    /// Returns the number after this text in the frame; 0 without the text.
    pub fn number_after(&self, text: &str) -> usize {
        let after = self.frame.split_once(text).map_or("", |(_, after)| after);
        after.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
    }

    pub fn pods_by(&self, node: &str, is_meant: impl Fn(&Pod) -> bool) -> BTreeSet<String> {
        self.objects.pods_on(node, is_meant)
    }

    pub fn evictions(&self) -> &Vec<Value> {
        self.status["evictions"].as_array().expect("evictions")
    }

    /// Returns the pods with a known time of eviction.
    pub fn evictions_due(&self) -> BTreeSet<String> {
        self.evictions().iter().filter(|row| !row["at"].is_null()).map(pod_of).collect()
    }

    /// Returns the evictions from a node in this state, with their times in seconds after the start.
    pub fn evictions_on(&self, node: &str, state: &str) -> std::collections::BTreeMap<String, f64> {
        let rows = self.evictions().iter().filter(|row| row["node"] == node && row["state"] == state);
        rows.map(|row| {
            (pod_of(row), if row["at"].is_null() { f64::INFINITY } else { self.seconds(&row["at"]) })
        })
        .collect()
    }

    pub fn with_outcome(&self, outcome: &str) -> BTreeSet<String> {
        self.evictions().iter().filter(|row| row["outcome"] == outcome).map(pod_of).collect()
    }

    pub fn count(&self, field: &str) -> usize {
        let number =
            self.status["verdict"][field].as_u64().unwrap_or_else(|| panic!("no {field} at {} s", self.at));
        usize::try_from(number).expect("a small number")
    }

    /// Returns the number of pods that have nowhere to run, or will have.
    pub fn nowhere(&self) -> usize {
        self.count("nowhereNow") + self.count("nowherePredicted")
    }

    /// Returns the pods that kordon lists as waiting for a node.
    pub fn waiting(&self) -> BTreeSet<String> {
        self.model.pending_pods().into_iter().map(|pod| pod.key.to_string()).collect()
    }

    /// Returns the pods with a departure of a kind that `is_meant` accepts.
    pub fn departed(&self, is_meant: impl Fn(DepartureKind) -> bool) -> BTreeSet<String> {
        let entries = self.model.departures.newest().map(|(_, entry)| entry);
        entries.filter(|entry| is_meant(entry.departure.kind)).map(|entry| entry.pod.to_string()).collect()
    }

    pub fn departed_from(&self, node: &str) -> std::collections::BTreeMap<Key, DepartureKind> {
        let entries = self.model.departures.newest().map(|(_, entry)| entry);
        let from = entries.filter(|entry| entry.node.as_deref() == Some(node));
        from.map(|entry| (entry.pod.clone(), entry.departure.kind)).collect()
    }

    /// Returns the pods of a node that left by a taint.
    pub fn evicted_from(&self, node: &str) -> BTreeSet<String> {
        let left = self.departed_from(node).into_iter();
        left.filter(|(_, kind)| *kind == DepartureKind::TaintEviction)
            .map(|(pod, _)| pod.to_string())
            .collect()
    }

    pub fn journal(&self) -> Vec<String> {
        self.model.journal.entries().map(|entry| entry.words()).collect()
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

pub fn set<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
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

pub fn key_of(pod: &Pod) -> String {
    format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any())
}

pub fn node_of(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}

/// Returns the kind of the pod's controller; empty if it has none.
pub fn owner(pod: &Pod) -> String {
    let owners = pod.metadata.owner_references.iter().flatten();
    owners
        .filter(|owner| owner.controller == Some(true))
        .map(|owner| owner.kind.clone())
        .next()
        .unwrap_or_default()
}

pub fn is_deleted(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

pub fn is_in(objects: &ClusterObjects, pod: &Pod) -> bool {
    objects.pods.iter().any(|other| other.uid() == pod.uid())
}

pub fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Whether marks stand for eight nodes that are Unknown, tainted or not.
pub fn is_drawn_down(marks: &str) -> bool {
    marks.chars().count() == 8 && marks.chars().all(|mark| "✕✖".contains(mark))
}

/// Returns for how many seconds the pod tolerates this NoExecute taint without a value; `None` means forever
/// (docs/upstream/node-lifecycle.md#7.6). Pods of the demo tolerate all of the controller's taints.
pub fn tolerates(pod: &Pod, key: &str) -> Option<i64> {
    let tolerations = pod.spec.iter().flat_map(|spec| spec.tolerations.iter().flatten());
    let fits =
        |own: &Option<String>, wanted: &str| own.as_deref().is_none_or(|own| own.is_empty() || own == wanted);
    let mut matching = tolerations
        .into_iter()
        .filter(|toleration| fits(&toleration.key, key) && fits(&toleration.effect, "NoExecute"));
    matching.next().map_or(Some(0), |toleration| toleration.toleration_seconds)
}

pub fn has_requests(pod: &Pod) -> bool {
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
pub async fn play<const N: usize>(
    name: &'static str,
    times: [i64; N],
) -> (Facts, ClusterObjects, [Moment; N]) {
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
