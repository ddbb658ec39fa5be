//! The forecast as lanes of a chart: one lane for each node with events. If there is too little room, several similar
//! nodes or a whole zone share a lane.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{DeletedRange, Forecast, ForecastKind, ForecastStep, time_range::TimeRange};
use crate::{
    cluster::{Cluster, ConditionStatus, Key, Node, NodeName, TaintEffect, ZoneKey},
    engine::{Engine, Why, controllers_own},
    plan::OutcomeKind,
};
use kordon_time::{Span, Timestamp};

/// Length of the time spans by which lanes are sorted. Lanes that begin in the same span are sorted by zone and name,
/// so that the nodes of one failure stand together.
const TOGETHER: Span = Span::from_secs(60);

/// The content of a forecast's chart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chart {
    pub lanes: Vec<Lane>,
    /// Number of deleted pods, see [`Forecast::deleted`].
    pub deleted: DeletedRange,
}

/// A lane of the chart: past and predicted events of one node or of several.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lane {
    /// The nodes of the lane, sorted by name; at least one.
    pub nodes: Vec<NodeName>,
    pub zone: ZoneKey,
    pub fold: LaneFold,
    /// The last heartbeat of a silent or Unknown node.
    pub silent: Option<TimeRange>,
    /// When the kubelet reported the node not ready.
    pub not_ready: Option<TimeRange>,
    /// When the conditions become Unknown.
    pub unknown: Option<TimeRange>,
    /// When the node gets a NoExecute taint. A range of times if several nodes wait for one token of the rate limiter.
    pub tainted: Option<TimeRange>,
    /// When the kubelet evicts the first pod because the node is under pressure.
    pub kubelet: Option<TimeRange>,
    /// Times at which pods leave the endpoints of their Services, each with the number of pods; sorted by time.
    pub endpoints: Vec<(Timestamp, usize)>,
    /// The pods that are deleted, sorted by time.
    pub pods: Vec<LanePods>,
    /// Why the next event of the lane happens.
    pub why: Why,
}

/// What a lane combines: nothing, similar nodes, or the nodes of a zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LaneFold {
    #[default]
    Node,
    /// Nodes of a zone with the same events at about the same times.
    Alike,
    /// All nodes of a zone that have a lane.
    Zone,
}

/// Pods of a lane that leave at the same time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LanePods {
    /// Time at which the pods leave if the nodes are tainted in the order of the forecast.
    pub at: Timestamp,
    /// The first and the last time at which the pods may leave, over all orders in which the nodes may be tainted.
    pub range: TimeRange,
    pub pods: Arc<Vec<Key>>,
    /// Outcomes of the pods that have nowhere to run; empty until [`Lane::with_nowhere`] sets them.
    pub nowhere: BTreeSet<OutcomeKind>,
}

impl Lane {
    /// Time of the lane's first event, past or predicted.
    pub fn start(&self) -> Timestamp {
        let pods = self.pods.first().map(|pods| pods.range);
        self.states().into_iter().flatten().chain(pods).map(|range| range.first).min().unwrap_or_default()
    }

    /// Times of the states of the nodes, and of evictions by their kubelets, without the other events of pods.
    const fn states(&self) -> [Option<TimeRange>; 5] {
        [self.silent, self.not_ready, self.unknown, self.tainted, self.kubelet]
    }

    /// Creates the lane of a node about which nothing is predicted but an eviction by its kubelet.
    pub fn for_kubelet(node: &Node, evicts: Timestamp, why: Why) -> Self {
        let (nodes, zone) = (vec![node.name.clone()], node.zone());
        Self { nodes, zone, kubelet: Some(evicts.into()), why, ..Self::default() }
    }

    /// Returns the lane with the outcomes of its pods that have nowhere to run. `of_node` returns these outcomes for a
    /// node.
    pub fn with_nowhere<'a>(
        &self,
        of_node: impl Fn(&NodeName) -> Option<&'a BTreeMap<Key, OutcomeKind>>,
    ) -> Cow<'_, Self> {
        let [node] = self.nodes.as_slice() else { return Cow::Borrowed(self) };
        let Some(nowhere) = of_node(node) else { return Cow::Borrowed(self) };
        let mut lane = self.clone();
        for pods in &mut lane.pods {
            pods.nowhere = pods.pods.iter().filter_map(|pod| nowhere.get(pod).copied()).collect();
        }
        Cow::Owned(lane)
    }

    fn for_node(name: &NodeName, cluster: &Cluster) -> Self {
        let node = cluster.node(name);
        let zone = node.map(|node| node.zone()).unwrap_or_default();
        let ready = node.and_then(|node| node.ready());
        let since = ready
            .and_then(|ready| ready.last_transition)
            .map_or(Timestamp::EPOCH, |transition| cluster.local(transition));
        let since_of = |status| ready.filter(|ready| ready.status == status).map(|_| TimeRange::from(since));
        Self {
            nodes: vec![name.clone()],
            zone,
            not_ready: since_of(ConditionStatus::False),
            unknown: since_of(ConditionStatus::Unknown),
            tainted: node.and_then(|node| tainted_since(node, cluster)).map(TimeRange::from),
            ..Self::default()
        }
    }

    /// Adds a predicted event to the lane. `turns` are the times at which the node may be tainted.
    fn add(&mut self, step: &ForecastStep, turns: Option<TimeRange>, tainted: &mut Option<Timestamp>) {
        let at = step.at;
        match &step.kind {
            ForecastKind::Unknown { .. } => {
                self.unknown.get_or_insert(at.into());
                if step.not_ready > 0 {
                    self.endpoints.push((at, step.not_ready));
                }
            }
            ForecastKind::NoExecute { .. } => {
                self.tainted = self.tainted.or(turns).or(Some(at.into()));
                *tainted = Some(at);
            }
            ForecastKind::Ended { pod, .. }
            | ForecastKind::Deleted { pod, .. }
            | ForecastKind::Removed { pod, .. } => {
                let after = |turn: Timestamp, taint: Timestamp| turn + at.since(taint);
                let range = match (turns, *tainted, &step.chance) {
                    (Some(turns), Some(taint), Some(_)) => {
                        TimeRange { first: after(turns.first, taint), last: after(turns.last, taint) }
                    }
                    _ => at.into(),
                };
                match self.pods.last_mut() {
                    Some(last) if last.range == range => Arc::make_mut(&mut last.pods).push(pod.clone()),
                    _ => {
                        let pods = Arc::new(vec![pod.clone()]);
                        self.pods.push(LanePods { at, range, pods, nowhere: BTreeSet::new() });
                    }
                }
            }
        }
    }

    /// Combines the lanes, at least one, into a single lane.
    fn folded(lanes: &[&Self], fold: LaneFold) -> Self {
        let mut folded = lanes[0].clone();
        lanes[1..].iter().for_each(|other| folded.take(other));
        folded.nodes.sort_unstable();
        folded.endpoints.sort_unstable();
        folded.pods.sort_unstable();
        if lanes.len() > 1 || fold == LaneFold::Zone {
            folded.fold = fold;
        }
        folded
    }

    /// Merges another lane into this one.
    fn take(&mut self, other: &Self) {
        let both = |own: &mut Option<TimeRange>, other: Option<TimeRange>| {
            *own = own.map(|own| other.map_or(own, |other| own.with(other))).or(other);
        };
        self.nodes.extend(other.nodes.iter().cloned());
        both(&mut self.silent, other.silent);
        both(&mut self.not_ready, other.not_ready);
        both(&mut self.unknown, other.unknown);
        both(&mut self.tainted, other.tainted);
        both(&mut self.kubelet, other.kubelet);
        self.endpoints.extend(&other.endpoints);
        self.pods.extend(other.pods.iter().cloned());
    }

    /// Key by which lanes are combined: the zone, and all times as multiples of `unit`.
    fn likeness(&self, unit: Span) -> (&ZoneKey, Vec<Option<(i64, i64)>>) {
        let rounded = |at: Timestamp| at.as_nanos().div_euclid(unit.as_nanos().max(1));
        let range = |range: TimeRange| (rounded(range.first), rounded(range.last));
        let mut times: Vec<_> = self.states().into_iter().map(|state| state.map(range)).collect();
        times.extend(self.pods.iter().map(|pods| Some(range(pods.range))));
        times.dedup();
        (&self.zone, times)
    }
}

impl Forecast {
    /// Returns the forecast with its chart. The chart has a lane for each node with predictions. A node that is down
    /// and not tainted has a lane too, although nothing happens to it until evictions are resumed. Lanes are sorted by
    /// the time of their first event, rounded down to a multiple of `TOGETHER`, so that the lanes keep their order.
    #[must_use]
    pub fn with_chart(self, engine: &Engine, cluster: &Cluster) -> Self {
        if !engine.confidence(self.made).allows_predictions() {
            return self;
        }
        let names: BTreeSet<&NodeName> = self
            .by_node
            .keys()
            .chain(&self.silent)
            .chain(self.taint_turns.keys())
            .chain(&self.down)
            .filter(|name| !name.is_empty())
            .collect();
        let mut lanes: Vec<Lane> =
            names.into_iter().filter_map(|name| self.lane_of(name, engine, cluster)).collect();
        let begin = |lane: &Lane| lane.start().as_nanos().div_euclid(TOGETHER.as_nanos());
        lanes.sort_by(|one, other| {
            (begin(one), &one.zone, &one.nodes).cmp(&(begin(other), &other.zone, &other.nodes))
        });
        let chart = Chart { lanes, deleted: self.deleted(cluster) };
        Self { chart, ..self }
    }

    fn lane_of(&self, name: &NodeName, engine: &Engine, cluster: &Cluster) -> Option<Lane> {
        let mut lane = Lane::for_node(name, cluster);
        let turns = self.taint_turns.get(name).copied();
        let mut steps = self.of_node(name).peekable();
        if steps.peek().is_none() && turns.is_none() && lane.tainted.is_some() {
            return None;
        }
        let node = cluster.node(name);
        if let Some(node) = node.filter(|_| lane.unknown.is_some() || self.silent.contains(name)) {
            lane.silent = Some(engine.silence(cluster, node).heartbeat.into());
        }
        let next = steps.peek().map(|step| step.why.clone());
        lane.why = next.or_else(|| engine.why_silent(name)).unwrap_or_default();
        let mut tainted = None;
        // Pods that their kubelets have ended. A later deletion of such a pod's object is not added to the lane.
        let mut ended = BTreeSet::new();
        for step in steps {
            let is_left = step.kind.pod().is_some_and(|pod| ended.contains(pod));
            if let ForecastKind::Ended { pod, .. } = &step.kind {
                ended.insert(pod);
            }
            if !is_left {
                lane.add(step, turns, &mut tainted);
            }
        }
        lane.tainted = lane.tainted.or(turns);
        (lane.states().iter().any(Option::is_some) || !lane.pods.is_empty()).then_some(lane)
    }
}

/// Returns the time of the controller's NoExecute taint on the node, or else of the node's oldest NoExecute taint; none
/// if the node has no NoExecute taint. A taint without timeAdded counts as added at the epoch.
fn tainted_since(node: &Node, cluster: &Cluster) -> Option<Timestamp> {
    let no_execute = node.taints.iter().filter(|taint| taint.effect == TaintEffect::NoExecute);
    let taint = controllers_own(node).next().or_else(|| no_execute.min_by_key(|taint| taint.time_added))?;
    Some(taint.time_added.map_or(Timestamp::EPOCH, |added| cluster.local(added)))
}

/// Combines lanes so that they need at most `room` rows, if possible. Tries one lane for each node, then one for
/// similar nodes, then one for each zone. `unit` is the maximum difference between the times of similar nodes.
pub fn fold(lanes: &[Cow<'_, Lane>], room: usize, unit: Span) -> Vec<Lane> {
    if lanes.len() <= room {
        return lanes.iter().map(|lane| lane.clone().into_owned()).collect();
    }
    let folded =
        |groups: Vec<Vec<&Lane>>, fold| groups.iter().map(|lanes| Lane::folded(lanes, fold)).collect();
    let alike = grouped(lanes, |lane| lane.likeness(unit));
    if alike.len() <= room {
        return folded(alike, LaneFold::Alike);
    }
    folded(grouped(lanes, |lane| &lane.zone), LaneFold::Zone)
}

/// Groups lanes by key. The groups are in the order of their first lanes.
fn grouped<'a, K: Ord>(lanes: &'a [Cow<'_, Lane>], key: impl Fn(&'a Lane) -> K) -> Vec<Vec<&'a Lane>> {
    let mut places: BTreeMap<K, usize> = BTreeMap::new();
    let mut groups: Vec<Vec<&Lane>> = Vec::new();
    for lane in lanes.iter().map(Cow::as_ref) {
        let place = *places.entry(key(lane)).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.push(lane),
            None => groups.push(vec![lane]),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        cluster::{Change, Condition, ObjectEvent, READY, Taint},
        engine::{ServerVersion, Settings, UNREACHABLE},
        forecast::Chance,
    };
    use kordon_time::ClusterTime;

    const UNIT: Span = Span::from_secs(30);

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(1_800_000_000 + secs)
    }

    fn range(first: i64, last: i64) -> TimeRange {
        TimeRange { first: at(first), last: at(last) }
    }

    /// Creates a node that is Unknown since `unknown` and tainted since `tainted`, both in seconds.
    fn node(name: &str, unknown: Option<i64>, tainted: Option<i64>) -> Node {
        let ready = unknown.map(|since| Condition {
            kind: READY.into(),
            status: ConditionStatus::Unknown,
            last_transition: Some(ClusterTime::new(at(since))),
            ..Condition::default()
        });
        let taint = tainted.map(|since| Taint {
            key: UNREACHABLE.into(),
            effect: TaintEffect::NoExecute,
            time_added: Some(ClusterTime::new(at(since))),
            ..Taint::default()
        });
        // The node has no Lease: its creation counts as its last heartbeat, 50 s before it became Unknown.
        let created = ClusterTime::new(at(unknown.unwrap_or(0) - 50));
        Node {
            name: name.into(),
            created,
            conditions: ready.into_iter().collect(),
            taints: taint.into_iter().collect(),
            ..Node::default()
        }
    }

    /// The lanes of a forecast over these nodes, made at second 0.
    fn lanes(nodes: Vec<Node>, steps: Vec<ForecastStep>, turns: &[(&str, TimeRange)]) -> Vec<Lane> {
        let mut cluster = Cluster::default();
        let names: BTreeSet<NodeName> = nodes.iter().map(|node| node.name.clone()).collect();
        for node in nodes {
            cluster.apply(Change::Node(ObjectEvent::Applied(node)), &mut Vec::new());
        }
        let engine = Engine::attach(Settings::defaults(ServerVersion::new(1, 36)), &cluster, at(0));
        let forecast = Forecast {
            made: at(0),
            until: at(600),
            by_node: super::super::baseline::by_node(&steps),
            steps,
            down: names,
            taint_turns: turns.iter().map(|(node, turns)| ((*node).into(), *turns)).collect(),
            ..Forecast::default()
        };
        forecast.with_chart(&engine, &cluster).chart.lanes
    }

    fn step(secs: i64, kind: ForecastKind, by_chance: bool) -> ForecastStep {
        let among: Arc<[NodeName]> = [kind.node().clone(), "other".into()].into();
        let chance = by_chance.then_some(Chance { among, probability: 0.5 });
        ForecastStep { at: at(secs), kind, why: Why::default(), not_ready: 0, chance }
    }

    fn taint(node: &str) -> ForecastKind {
        ForecastKind::NoExecute { node: node.into(), key: UNREACHABLE.into() }
    }

    /// Creates pods that leave together.
    fn leave(secs: i64, range: TimeRange, count: usize) -> LanePods {
        let pods = Arc::new(vec![Key::new("d", "p"); count]);
        LanePods { at: at(secs), range, pods, nowhere: BTreeSet::new() }
    }

    fn deleted(node: &str) -> ForecastKind {
        ForecastKind::Deleted { pod: Key::new("d", "p"), node: node.into() }
    }

    #[test]
    fn a_lane_has_what_happened_and_what_is_predicted() {
        let steps = vec![step(300, deleted("n"), false), step(300, deleted("n"), false)];
        let lanes = lanes(vec![node("n", Some(-5), Some(-2))], steps, &[]);
        let [lane] = lanes.as_slice() else { panic!("{lanes:?}") };
        assert_eq!((lane.unknown, lane.tainted), (Some(range(-5, -5)), Some(range(-2, -2))));
        assert_eq!(lane.pods, [leave(300, range(300, 300), 2)]);
    }

    #[test]
    fn where_chance_decides_the_taint_and_what_follows_from_it_is_a_range() {
        let steps = vec![step(20, taint("n"), true), step(320, deleted("n"), true)];
        let turns = [("n", range(10, 40)), ("other", range(10, 40))];
        let lanes = lanes(vec![node("n", Some(-5), None), node("other", Some(-5), None)], steps, &turns);
        assert!(lanes.iter().all(|lane| lane.tainted == Some(range(10, 40))), "{lanes:?}");
        assert_eq!(lanes[0].pods, [leave(320, range(310, 340), 1)]);
    }

    #[test]
    fn a_lane_knows_its_pods_that_have_nowhere_to_run() {
        let steps = vec![step(300, deleted("n"), false), step(310, deleted("n"), false)];
        let lanes = lanes(vec![node("n", Some(-5), Some(-2))], steps, &[]);
        let stuck = BTreeMap::from([(Key::new("d", "p"), OutcomeKind::Stuck)]);
        let lane = lanes[0].with_nowhere(|node| (**node == *"n").then_some(&stuck));
        assert!(
            lane.pods.iter().all(|pods| pods.nowhere == BTreeSet::from([OutcomeKind::Stuck])),
            "{lane:?}"
        );
        assert_eq!(*lanes[0].with_nowhere(|_| None), lanes[0]);
    }

    #[test]
    fn a_node_that_waits_has_a_lane_and_one_with_nothing_to_come_has_none() {
        let lanes =
            lanes(vec![node("waits", Some(-5), None), node("over", Some(-900), Some(-800))], vec![], &[]);
        assert_eq!(names(&lanes), ["waits"]);
    }

    #[test]
    fn the_order_is_that_of_their_begin_and_then_of_names() {
        let nodes = vec![node("b", Some(-309), None), node("a", Some(-300), None), node("0", Some(-5), None)];
        assert_eq!(names(&lanes(nodes, vec![], &[])), ["a", "b", "0"]);
    }

    #[test]
    fn lanes_are_folded_only_as_far_as_the_room_asks_for() {
        let lane = |name: &str, zone: &str, unknown: i64, pods: i64| Lane {
            nodes: vec![name.into()],
            zone: ZoneKey { region: "".into(), zone: zone.into() },
            unknown: Some(at(unknown).into()),
            pods: vec![leave(pods, at(pods).into(), 1)],
            ..Lane::default()
        };
        let all = [
            lane("a1", "a", 0, 300),
            lane("a2", "a", 5, 305),
            lane("a3", "a", 60, 360),
            lane("b1", "b", 0, 300),
        ];
        let all = all.each_ref().map(Cow::Borrowed);
        let folded = |room| {
            let lanes = fold(&all, room, UNIT);
            lanes.iter().map(|lane| (names_of(lane), lane.fold)).collect::<Vec<_>>()
        };
        let row = |names: &str, fold| (names.to_owned(), fold);
        assert_eq!(folded(4).len(), 4);
        assert_eq!(
            folded(3),
            [row("a1 a2", LaneFold::Alike), row("a3", LaneFold::Node), row("b1", LaneFold::Node)]
        );
        assert_eq!(folded(2), [row("a1 a2 a3", LaneFold::Zone), row("b1", LaneFold::Zone)]);
        let zone = &fold(&all, 1, UNIT)[0];
        assert_eq!((zone.unknown, zone.pods.len()), (Some(range(0, 60)), 3));
    }

    fn names(lanes: &[Lane]) -> Vec<String> {
        lanes.iter().map(names_of).collect()
    }

    fn names_of(lane: &Lane) -> String {
        lane.nodes.iter().map(|node| &**node).collect::<Vec<_>>().join(" ")
    }
}
