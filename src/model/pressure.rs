//! Node pressure: measurements of kubelets, taken while a user looked at a node or the node reported pressure, and the
//! consequences.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use super::{
    Model,
    eviction::{EvictionRow, EvictionState},
    horizon::Horizon,
};
use crate::k8s::kubelet::{KubeletReport, UsageSource};
use kordon_core::{
    cluster::{Change, Cluster, ClusterEvent, Key, Node, NodeName, Pod},
    engine::{Cause, Certainty, Confidence, ServerVersion, Why},
    forecast::Lane,
    pressure::{
        EvictionManager, EvictionOrder, EvictionSettings, EvictionSignal, KubeletRules, NodeStats,
        PressureCondition, PressurePass, SignalLevel, Threshold, Trend, UsageMetric,
    },
    why::{Step, Tense, Topic, in_order},
};
use kordon_time::{Span, Timestamp};

/// Maximum number of measurements that are kept for a node: those of one hour.
const MOST_SAMPLES: usize = 360;

/// Maximum number of nodes with measurements. The measurements of the node with the oldest last measurement are dropped
/// first.
const MOST_NODES: usize = 64;

/// Longest time from a kubelet's pass that finds pressure until kordon's first measurement, if kordon sees the node's
/// condition change: about one pass of the kubelet.
const NOTICED_WITHIN: Span = Span::from_secs(15);

/// Measurements of nodes.
#[derive(Clone, Debug, Default)]
pub struct NodeMeasurements {
    /// Readings from the kubelets that were queried.
    kubelets: BTreeMap<NodeName, Arc<NodeReadings>>,
    /// Live usage of nodes from metrics.k8s.io, while it is shown and available.
    usage: Option<Arc<NodeUsage>>,
}

/// Readings from one kubelet.
#[derive(Clone, Debug)]
struct NodeReadings {
    last: KubeletReport,
    /// Levels of the signals at each measurement, oldest first.
    samples: VecDeque<(Timestamp, Vec<(EvictionSignal, i64)>)>,
    manager: EvictionManager,
    pass: PressurePass,
    /// Eviction that the kubelet performs now, or after the grace period of a soft threshold; `None` if there is none.
    eviction: Option<KubeletEviction>,
}

/// An eviction by a kubelet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KubeletEviction {
    pub condition: PressureCondition,
    /// The signal whose threshold is met.
    pub signal: EvictionSignal,
    /// Maximum number of evicted pods. Fewer are evicted if deleting images frees enough.
    pub pods: usize,
    /// Time at which the eviction starts, unless the resource recovers earlier.
    pub at: Timestamp,
    /// Whether the eviction may start earlier, because the threshold may have been met before kordon measured it.
    pub is_latest: bool,
}

impl NodeMeasurements {
    /// Returns the live usage of a node; `None` if it is unknown.
    pub fn usage(&self, node: &NodeName) -> Option<&UsageMetric> {
        self.usage.as_ref()?.nodes.get(node)
    }

    /// Stores the usage of all nodes from metrics.k8s.io. After an error, the previous usage is kept until it is three
    /// minutes old.
    pub fn on_usage(&mut self, usage: Result<BTreeMap<NodeName, UsageMetric>, String>, now: Timestamp) {
        const STALE: Span = Span::from_secs(180);
        match usage {
            Ok(nodes) => self.usage = Some(Arc::new(NodeUsage { at: now, nodes })),
            Err(_) if self.usage.as_ref().is_some_and(|usage| now.since(usage.at) > STALE) => {
                self.usage = None
            }
            Err(_) => {}
        }
    }

    /// Stores a kubelet's report, and simulates the next pass of its eviction manager with the reported measurements.
    fn on_report(&mut self, node: &Node, report: KubeletReport, version: ServerVersion) {
        let settings = thresholds(&report, rules_of(node, version));
        let before = self.kubelets.remove(&node.name).map(Arc::unwrap_or_clone);
        let mut readings = before.unwrap_or_else(|| NodeReadings {
            last: report.clone(),
            samples: VecDeque::new(),
            manager: EvictionManager::default(),
            pass: PressurePass::default(),
            eviction: None,
        });
        if let Ok(stats) = &report.stats {
            let levels = stats.levels().map(|(signal, level)| (signal, level.available));
            readings.samples.push_back((report.at, levels.collect()));
            readings.samples.drain(..readings.samples.len().saturating_sub(MOST_SAMPLES));
            readings.pass = readings.manager.pass(&settings, stats, report.at);
        }
        readings.last = report;
        self.kubelets.insert(node.name.clone(), Arc::new(readings));
        if self.kubelets.len() > MOST_NODES {
            let oldest = self.kubelets.iter().min_by_key(|(_, readings)| readings.last.at);
            let oldest = oldest.map(|(name, _)| name.clone());
            oldest.and_then(|name| self.kubelets.remove(&name));
        }
    }
}

/// Live usage of nodes (metrics.k8s.io).
#[derive(Clone, Debug)]
struct NodeUsage {
    /// Time at which the usage was read.
    at: Timestamp,
    nodes: BTreeMap<NodeName, UsageMetric>,
}

/// Information about pressure on a node.
#[derive(Clone, Debug)]
pub struct NodePressure {
    /// The pressure conditions that the node reports as True.
    pub conditions: Vec<PressureCondition>,
    /// Source and time of the usage; if the usage is unknown, the reason.
    pub usage: Result<(UsageSource, Timestamp), String>,
    /// Reason why upstream's default thresholds are used; `None` if the kubelet's own thresholds are known.
    pub assumed_thresholds: Option<String>,
    /// Thresholds of the kubelet that could not be parsed.
    pub ignored_thresholds: Vec<String>,
    /// Signals that have a threshold. Also memory, disk and process ids, if they are measured.
    pub signals: Vec<SignalPressure>,
    /// Order in which pods are evicted for the requested signal. Without a request, for the signal nearest to its
    /// threshold.
    pub order: EvictionOrder,
    pub rules: KubeletRules,
    /// Memory capacity in bytes; `None` if unknown.
    pub memory_capacity: Option<i64>,
}

/// A signal of a node, with its level and thresholds.
#[derive(Clone, Debug, PartialEq)]
pub struct SignalPressure {
    pub signal: EvictionSignal,
    pub level: Option<SignalLevel>,
    pub thresholds: Vec<Threshold>,
    /// Levels of the signal in this session, oldest first.
    pub samples: Vec<i64>,
    /// Time until the level reaches the nearest threshold, if the current trend continues.
    pub reaches_threshold: Option<Span>,
    /// A threshold that the level has reached, and the time at which the kubelet evicts pods because of it.
    pub evicts: Option<(Threshold, Timestamp)>,
}

impl SignalPressure {
    /// Returns the threshold that a falling level meets first.
    pub fn nearest(&self) -> Option<&Threshold> {
        let capacity = self.level?.capacity;
        self.thresholds.iter().max_by_key(|threshold| threshold.level(capacity))
    }

    /// Distance of the level from its nearest threshold. It is negative if the level is below the threshold.
    pub fn distance(&self) -> Option<i64> {
        let level = self.level?;
        Some(level.available.saturating_sub(self.nearest()?.level(level.capacity)))
    }

    /// The distance of the level from its nearest threshold, as a share of the resource's capacity, in thousandths.
    fn distance_share(&self) -> Option<i64> {
        let capacity = self.level?.capacity.max(1);
        Some(i64::try_from(i128::from(self.distance()?) * 1000 / i128::from(capacity)).unwrap_or(i64::MAX))
    }
}

impl Model {
    /// Returns the information about pressure on a node. The order of eviction is for `signal`; if that is `None`, for
    /// the signal nearest to its threshold.
    pub fn node_pressure(&self, node: &Node, signal: Option<EvictionSignal>) -> Option<NodePressure> {
        let readings = self.measurements.kubelets.get(&node.name)?;
        let rules = rules_of(node, self.settings.version);
        let settings = thresholds(&readings.last, rules);
        let none = NodeStats::default();
        let stats = readings.last.stats.as_ref().unwrap_or(&none);
        let signals = readings.signals(&settings, stats);
        let signal = signal.unwrap_or_else(|| most_pressing(&signals));
        let pods: Vec<Arc<Pod>> = self.cluster.pods_on(&node.name).cloned().collect();
        let capacity = Some(node.memory_capacity_bytes).filter(|bytes| *bytes > 0);
        Some(NodePressure {
            conditions: PressureCondition::reported(node),
            usage: readings.last.usage(&self.cluster),
            assumed_thresholds: readings.last.settings.as_ref().err().cloned(),
            ignored_thresholds: settings.ignored.clone(),
            order: EvictionOrder::new(node, &pods, stats, &settings, signal),
            signals,
            rules,
            memory_capacity: stats.memory.map(|level| level.capacity).or(capacity),
        })
    }

    /// Stores the report of a kubelet.
    pub fn on_kubelet_report(&mut self, node: &NodeName, report: KubeletReport, now: Timestamp) {
        let Some(node) = self.cluster.node(node).cloned() else { return };
        if node.is_shutting_down() {
            let periods = report.shutdown.clone().map_err(|why| why.as_str().into());
            self.apply(vec![Change::ShutdownPeriods(node.name.clone(), periods)], now);
        }
        self.measurements.on_report(&node, report, self.settings.version);
        let eviction = self.kubelet_eviction(&node);
        if let Some(readings) = self.measurements.kubelets.get_mut(&node.name) {
            Arc::make_mut(readings).eviction = eviction;
        }
    }

    fn kubelet_eviction(&self, node: &Node) -> Option<KubeletEviction> {
        let NodeReadings { pass, last, samples, .. } = &**self.measurements.kubelets.get(&node.name)?;
        let (threshold, at) = match &pass.evicts {
            Some(threshold) => (threshold, last.at),
            None => {
                let soonest =
                    pass.met.iter().min_by_key(|(threshold, at)| (*at, threshold.signal.condition()));
                soonest.map(|(threshold, at)| (threshold, *at))?
            }
        };
        let (signal, condition) = (threshold.signal, threshold.signal.condition());
        let pods = self.node_pressure(node, Some(signal))?.order.evicted().count();
        let seen = at - threshold.grace();
        let is_first = samples.front().is_some_and(|(first, _)| *first == seen);
        let reported = node.conditions.iter().find(|other| *other.kind == *condition.as_str());
        let since = reported.and_then(|reported| reported.last_transition);
        let is_older = since.is_some_and(|since| seen.since(self.cluster.local(since)) > NOTICED_WITHIN);
        let is_latest = pass.evicts.is_none() && is_first && is_older;
        (pods > 0).then_some(KubeletEviction { condition, signal, pods, at, is_latest })
    }

    /// Returns the nodes whose kubelets evict pods now, or will if nothing changes. Only nodes whose kubelets were
    /// queried, and which still report pressure, are included. Pods that have left since the query do not count.
    pub fn evicting_kubelets(&self) -> impl Iterator<Item = (&NodeName, KubeletEviction)> {
        let evicting =
            self.measurements.kubelets.iter().filter_map(|(name, readings)| Some((name, readings.eviction?)));
        evicting.filter_map(|(name, eviction)| {
            let node = self.cluster.node(name)?;
            let reports_it = PressureCondition::reported(node).contains(&eviction.condition);
            let pods = self.node_pressure(node, Some(eviction.signal))?.order.evicted().count();
            (reports_it && pods > 0).then_some((name, KubeletEviction { pods, ..eviction }))
        })
    }

    /// Number of pods that kubelets evict at most, now or if nothing changes.
    pub fn evicted_by_kubelets(&self) -> usize {
        self.evicting_kubelets().map(|(_, eviction)| eviction.pods).sum()
    }

    /// Returns the pods that kubelets evict at most, now or if nothing changes, as rows of the evictions. Terminating pods
    /// are left out.
    pub(super) fn kubelet_rows(&self) -> BTreeMap<Key, EvictionRow> {
        let mut rows = BTreeMap::new();
        for (node, KubeletEviction { condition, at, is_latest, .. }, order) in self.kubelet_orders() {
            let certainty = if is_latest { Certainty::AtLatest } else { Certainty::Observed };
            for (place, pod) in order.evicted().enumerate().filter(|(_, pod)| pod.termination.is_none()) {
                let state = EvictionState::ByKubelet { at: (place == 0).then_some(at), certainty };
                let row = EvictionRow { node: node.name.clone(), state, why: why(condition) };
                rows.insert(pod.key.clone(), row);
            }
        }
        rows
    }

    /// Explains a pod, and adds what its kubelet does to it under pressure, instead of the step that nothing evicts it.
    pub fn explain_pod(&self, pod: &Arc<Pod>, events: &[ClusterEvent], now: Timestamp) -> Vec<Step> {
        let Some(explainer) = self.explainer(now) else { return Vec::new() };
        let mut steps = explainer.pod_with_events(pod, events);
        let by_kubelet = self.explain_kubelet_eviction(pod, now);
        if by_kubelet.is_empty() {
            return steps;
        }
        steps.retain(|step| (step.tense, step.topic) != (Tense::Never, Topic::Eviction));
        steps.extend(by_kubelet);
        in_order(steps)
    }

    /// Explains that the kubelet of a pod evicts it, or that this is not known.
    fn explain_kubelet_eviction(&self, pod: &Pod, now: Timestamp) -> Vec<Step> {
        let topic = Topic::Eviction;
        if !pod.lives() {
            return Vec::new();
        }
        if pod.node.as_ref().is_some_and(|node| self.unmeasured_under_pressure().contains(node)) {
            let text =
                "its node is under pressure, and evictions by its kubelet are not known: no measurements";
            return vec![Step::new(Tense::Present, topic, text.into())];
        }
        let rows = self.kubelet_rows();
        let Some(row) = rows.get(&pod.key) else { return Vec::new() };
        let EvictionState::ByKubelet { at, certainty } = row.state else { return Vec::new() };
        let (tense, when) = match at {
            Some(at) if at <= now => (Tense::Present, " now"),
            Some(_) => (Tense::Future, ""),
            None => (Tense::Future, " after other pods, unless their evictions free enough"),
        };
        let estimated = at.is_some() && certainty != Certainty::Observed;
        let text = format!("it is evicted{when} ({})", row.why);
        let evicted = Step { at, estimated, ..Step::new(tense, topic, text) };
        let outcome = self.outcome(&pod.key, row);
        let texts = outcome
            .iter()
            .flat_map(|outcome| [format!("outcome: {outcome}")].into_iter().chain(outcome.reasons()));
        let outcome = texts.map(|text| Step::new(tense, topic, text));
        [evicted].into_iter().chain(outcome).collect()
    }

    /// Returns the evictions by kubelets that the forecast's chart shows. While predictions cannot be made, there are none.
    pub fn charted_kubelets(&self) -> impl Iterator<Item = (&NodeName, KubeletEviction)> {
        let is_charted = self.views.confidence.is_some_and(Confidence::allows_predictions);
        self.evicting_kubelets().filter(move |_| is_charted)
    }

    /// Returns the lanes of the forecast's chart, with the next eviction by each kubelet that evicts. Nodes about which
    /// nothing else is predicted come last.
    pub fn forecast_lanes(&self, horizon: Horizon) -> Vec<Cow<'_, Lane>> {
        let forecast = self.predictions.forecast_until(horizon);
        let lanes = forecast.into_iter().flat_map(|forecast| &forecast.chart.lanes);
        let mut lanes: Vec<Cow<'_, Lane>> = lanes.map(Cow::Borrowed).collect();
        for (name, KubeletEviction { condition, at, .. }) in self.charted_kubelets() {
            match lanes.iter_mut().find(|lane| lane.nodes.contains(name)) {
                Some(lane) => lane.to_mut().kubelet = Some(at.into()),
                None => {
                    let node = self.cluster.node(name);
                    lanes.extend(node.map(|node| Cow::Owned(Lane::for_kubelet(node, at, why(condition)))));
                }
            }
        }
        lanes
    }

    /// Returns the nodes of [`evicting_kubelets`](Self::evicting_kubelets), each with the order of its evictions.
    pub(super) fn kubelet_orders(
        &self,
    ) -> impl Iterator<Item = (&Arc<Node>, KubeletEviction, EvictionOrder)> {
        self.evicting_kubelets().filter_map(|(name, eviction)| {
            let node = self.cluster.node(name)?;
            Some((node, eviction, self.node_pressure(node, Some(eviction.signal))?.order))
        })
    }

    /// Returns the nodes that report pressure, and of which it is not known whether their kubelets evict pods: a
    /// resource that is short was not measured.
    pub fn unmeasured_under_pressure(&self) -> BTreeSet<NodeName> {
        let mut nodes = self.nodes_where(|node| {
            let readings = self.measurements.kubelets.get(&node.name);
            let stats = readings.and_then(|readings| readings.last.stats.as_ref().ok());
            let is_measured = |condition: &PressureCondition| {
                let mut signals =
                    EvictionSignal::ALL.into_iter().filter(|signal| signal.condition() == *condition);
                stats.is_some_and(|stats| signals.any(|signal| stats.level(signal).is_some()))
            };
            !PressureCondition::reported(node).iter().all(is_measured)
        });
        for (name, _) in self.evicting_kubelets() {
            nodes.remove(name);
        }
        nodes
    }

    /// Returns the nodes whose kubelets are queried even if no user looks at the nodes: those that report pressure, and
    /// those that are shutting down, until their periods for that are known.
    pub fn queried_nodes(&self) -> BTreeSet<NodeName> {
        let has_periods = |node: &Node| matches!(self.cluster.shutdown_periods(&node.name), Some(Ok(_)));
        self.nodes_where(|node| is_under_pressure(node) || node.is_shutting_down() && !has_periods(node))
    }

    /// Returns the nodes that report pressure.
    pub fn nodes_under_pressure(&self) -> BTreeSet<NodeName> {
        self.nodes_where(is_under_pressure)
    }

    /// Returns the nodes in another state than Ready that satisfy a condition.
    fn nodes_where(&self, condition: impl Fn(&Node) -> bool) -> BTreeSet<NodeName> {
        let nodes: Vec<&Arc<Node>> = if self.engine.is_some() {
            self.watchlist.notable().filter_map(|(name, _)| self.cluster.node(name)).collect()
        } else {
            self.cluster.nodes().iter().collect()
        };
        let found = nodes.into_iter().filter(|node| condition(node));
        found.map(|node| node.name.clone()).collect()
    }
}

/// Why a kubelet evicts pods.
fn why(condition: PressureCondition) -> Why {
    Cause::NodePressure { condition: condition.as_str().into() }.into()
}

fn is_under_pressure(node: &Node) -> bool {
    !PressureCondition::reported(node).is_empty()
}

impl NodeReadings {
    /// Returns the signals that the screen shows, in their usual order.
    fn signals(&self, settings: &EvictionSettings, stats: &NodeStats) -> Vec<SignalPressure> {
        let signals = EvictionSignal::ALL.into_iter().map(|signal| SignalPressure {
            signal,
            level: stats.level(signal),
            thresholds: settings.of(signal).cloned().collect(),
            samples: self.samples_of(signal).map(|(_, level)| level).collect(),
            reaches_threshold: None,
            evicts: self.pass.met.iter().find(|(threshold, _)| threshold.signal == signal).cloned(),
        });
        let matters = |signal: &SignalPressure| {
            let is_of_node = matches!(
                signal.signal,
                EvictionSignal::Memory | EvictionSignal::NodefsBytes | EvictionSignal::Pids
            );
            !signal.thresholds.is_empty() || is_of_node && signal.level.is_some()
        };
        let mut signals: Vec<SignalPressure> = signals.filter(matters).collect();
        for signal in &mut signals {
            signal.reaches_threshold = self.reaches(signal);
        }
        signals
    }

    fn samples_of(&self, signal: EvictionSignal) -> impl Iterator<Item = (Timestamp, i64)> {
        self.samples.iter().filter_map(move |(at, levels)| {
            levels.iter().find(|(of, _)| *of == signal).map(|(_, level)| (*at, *level))
        })
    }

    /// Returns the time until the level reaches the threshold, if the trend of the last ten minutes continues.
    fn reaches(&self, signal: &SignalPressure) -> Option<Span> {
        const RECENT: Span = Span::from_secs(600);
        let (level, threshold) = (signal.level?, signal.nearest()?);
        let recent = self.samples_of(signal.signal).filter(|(at, _)| self.last.at.since(*at) <= RECENT);
        Trend::from_samples(recent)?.reaches(level.available, threshold.level(level.capacity))
    }
}

impl KubeletReport {
    /// Returns the source of the usage, and the time of the measurement by the local clock.
    fn usage(&self, cluster: &Cluster) -> Result<(UsageSource, Timestamp), String> {
        let stats = self.stats.as_ref().map_err(Clone::clone)?;
        Ok((self.source, stats.measured.map_or(self.at, |at| cluster.local(at))))
    }
}

/// Returns the signal nearest to its threshold. If no signal is measured, returns memory.
fn most_pressing(signals: &[SignalPressure]) -> EvictionSignal {
    let distances = signals.iter().filter_map(|signal| Some((signal.distance_share()?, signal.signal)));
    distances.min().map_or(EvictionSignal::Memory, |(_, signal)| signal)
}

/// Returns the kubelet's thresholds. If they could not be read, returns upstream's defaults.
fn thresholds(report: &KubeletReport, rules: KubeletRules) -> EvictionSettings {
    report.settings.clone().unwrap_or_else(|_| EvictionSettings::defaults(rules))
}

/// Returns the rules of the release of the node's kubelet, which may be older than the API server.
fn rules_of(node: &Node, version: ServerVersion) -> KubeletRules {
    KubeletRules::for_version(ServerVersion::parse(&node.kubelet_version).unwrap_or(version))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ClusterVerdict, ModelOptions, cluster_verdict::kubelet_evictions};
    use kordon_core::{
        cluster::{
            Condition, ConditionStatus, KubeletSpec, ObjectEvent, PodResources, QosClass, ShutdownPeriods,
            Version,
        },
        pressure::{EvictionSettingsText, PodUsage},
    };
    use kordon_time::ClusterTime;

    const GIBI: i64 = 1 << 30;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_secs(seconds)
    }

    /// Returns a model with a node and two pods that use 2 GiB each.
    fn model(memory_pressure: ConditionStatus) -> Model {
        let mut model = Model::new(ModelOptions::observer(ServerVersion::new(1, 36)), at(0));
        let condition = |kind: &str, status| Condition { kind: kind.into(), status, ..Condition::default() };
        let conditions =
            [condition("Ready", ConditionStatus::True), condition("MemoryPressure", memory_pressure)];
        let node = Node { name: "n1".into(), conditions: conditions.into(), ..Node::default() };
        let pod = |name: &str| {
            let kubelet = KubeletSpec { qos: QosClass::BestEffort, ..KubeletSpec::default() };
            Change::Pod(ObjectEvent::Applied(Pod {
                key: Key::new("default", name),
                node: Some("n1".into()),
                started: Some(ClusterTime::new(at(0))),
                resources: Arc::new(PodResources { kubelet, ..PodResources::default() }),
                ..Pod::default()
            }))
        };
        let changes = vec![Change::Node(ObjectEvent::Applied(node)), pod("a"), pod("b")];
        model.apply(changes, at(0));
        model
    }

    fn report(available: i64, seconds: i64) -> KubeletReport {
        let usage = |name: &str| {
            (Key::new("default", name), PodUsage { memory_bytes: Some(2 * GIBI), ..PodUsage::default() })
        };
        let stats = NodeStats {
            memory: Some(SignalLevel { available, capacity: 16 * GIBI }),
            pods: [usage("a"), usage("b")].into(),
            ..NodeStats::default()
        };
        let settings = EvictionSettings::parse(&EvictionSettingsText {
            hard: [("memory.available".to_owned(), "1Gi".to_owned())].into(),
            ..EvictionSettingsText::default()
        });
        KubeletReport {
            stats: Ok(stats),
            source: UsageSource::Kubelet,
            settings: Ok(settings),
            shutdown: Ok(ShutdownPeriods::default()),
            at: at(seconds),
        }
    }

    fn pressure(model: &Model) -> NodePressure {
        let node = model.cluster.node(&"n1".into()).expect("there").clone();
        model.node_pressure(&node, None).expect("asked")
    }

    #[test]
    fn a_level_that_falls_says_when_it_reaches_the_threshold() {
        let mut model = model(ConditionStatus::False);
        for step in 0..4 {
            model.on_kubelet_report(&"n1".into(), report((7 - step) * GIBI, 10 * step), at(10 * step));
        }
        let pressure = pressure(&model);
        let memory = &pressure.signals[0];
        assert_eq!(memory.samples, [7 * GIBI, 6 * GIBI, 5 * GIBI, 4 * GIBI]);
        assert_eq!(memory.distance(), Some(3 * GIBI));
        assert_eq!(memory.reaches_threshold, Some(Span::from_secs(30)));
        assert!(!pressure.order.is_met && memory.evicts.is_none());
        assert_eq!(pressure.order.evicted().count(), 1, "if it falls below the threshold");
        assert_eq!(model.evicting_kubelets().count(), 0);
    }

    #[test]
    fn the_verdict_names_a_kubelet_that_evicts() {
        let mut model = model(ConditionStatus::True);
        assert_eq!(model.nodes_under_pressure(), ["n1".into()].into());
        model.on_kubelet_report(&"n1".into(), report(GIBI / 2, 0), at(0));
        let evicting: Vec<_> = model.evicting_kubelets().collect();
        let (condition, signal) = (PressureCondition::Memory, EvictionSignal::Memory);
        let eviction = KubeletEviction { condition, signal, pods: 1, at: at(0), is_latest: false };
        assert_eq!(evicting, [(&"n1".into(), eviction)]);
        let verdict = ClusterVerdict::new(&model, at(1)).text();
        assert!(verdict.contains("kubelet of n1 evicts up to 1 pod (MemoryPressure)"), "{verdict}");
    }

    #[test]
    fn only_the_next_pod_that_a_kubelet_evicts_has_a_time() {
        let mut model = model(ConditionStatus::True);
        assert!(model.kubelet_rows().is_empty(), "not measured");
        model.on_kubelet_report(&"n1".into(), report(-2 * GIBI, 0), at(0));
        let rows = model.kubelet_rows();
        let states: Vec<_> = rows.values().map(|row| (row.state.at(), row.state.leaves_at())).collect();
        assert_eq!(states, [(Some(at(0)), None), (None, None)]);
        assert_eq!(rows.len(), model.evicted_by_kubelets());
        assert!(rows.values().all(|row| row.why.to_string() == "kubelet: MemoryPressure"), "{rows:?}");
    }

    #[test]
    fn evictions_of_a_kubelet_that_was_not_measured_are_said_to_be_not_known() {
        let mut model = model(ConditionStatus::True);
        let said = |model: &Model| kubelet_evictions(model, at(1));
        assert_eq!(said(&model), ["evictions by the kubelet of n1 not known: no measurements"]);
        model.on_kubelet_report(
            &"n1".into(),
            KubeletReport::unread("nodes/proxy is forbidden", at(0)),
            at(0),
        );
        assert_eq!(said(&model), ["evictions by the kubelet of n1 not known: no measurements"]);
        model.on_kubelet_report(&"n1".into(), report(GIBI / 2, 1), at(1));
        assert_eq!(said(&model), ["kubelet of n1 evicts up to 1 pod (MemoryPressure)"]);
        model.on_kubelet_report(&"n1".into(), report(4 * GIBI, 2), at(2));
        assert!(said(&model).is_empty(), "the level has recovered");
    }

    /// The kubelet counts the grace period from its own first pass, which nobody sees.
    #[test]
    fn the_grace_period_of_a_threshold_that_was_met_before_ends_at_the_latest_after_the_whole_period() {
        let soft = || {
            let one = |text: &str| ("memory.available".to_owned(), text.to_owned());
            let grace = [("memory.available".to_owned(), Span::from_secs(90))].into();
            let soft = EvictionSettingsText {
                soft: [one("1Gi")].into(),
                soft_grace: grace,
                ..EvictionSettingsText::default()
            };
            KubeletReport { settings: Ok(EvictionSettings::parse(&soft)), ..report(GIBI / 2, 100) }
        };
        let said = |reported: i64| {
            let mut model = model(ConditionStatus::True);
            let pressure = Condition {
                kind: "MemoryPressure".into(),
                status: ConditionStatus::True,
                last_transition: Some(ClusterTime::new(at(reported))),
                ..Condition::default()
            };
            let conditions = [pressure].into();
            let node = Node { name: "n1".into(), version: Version(1), conditions, ..Node::default() };
            model.apply(vec![Change::Node(ObjectEvent::Applied(node))], at(100));
            model.on_kubelet_report(&"n1".into(), soft(), at(100));
            kubelet_evictions(&model, at(100)).concat()
        };
        let text = "kubelet of n1 evicts up to 1 pod (MemoryPressure), first";
        assert_eq!(said(95), format!("{text} in 1m30s"));
        assert_eq!(said(30), format!("{text} within 1m30s"));
    }

    /// The kubelet of a machine that stops answers only for a while.
    #[test]
    fn the_periods_of_a_shutdown_are_kept_until_the_machine_is_back() {
        let mut model = model(ConditionStatus::False);
        let stopping = |status, version| {
            let kind = "GracefulNodeShutdownInProgress".into();
            let conditions = [Condition { kind, status, ..Condition::default() }].into();
            let node = Node { name: "n1".into(), version: Version(version), conditions, ..Node::default() };
            vec![Change::Node(ObjectEvent::Applied(node))]
        };
        assert!(model.queried_nodes().is_empty());
        model.apply(stopping(ConditionStatus::True, 1), at(0));
        assert_eq!(model.queried_nodes(), ["n1".into()].into());
        let periods = ShutdownPeriods::new(Span::from_secs(30), Span::from_secs(10));
        let answer = KubeletReport { shutdown: Ok(periods.clone()), ..report(GIBI, 0) };
        model.on_kubelet_report(&"n1".into(), answer, at(0));
        model.on_kubelet_report(&"n1".into(), KubeletReport::unread("it is gone", at(10)), at(10));
        assert_eq!(model.cluster.shutdown_periods(&"n1".into()), Some(&Ok(periods)));
        assert!(model.queried_nodes().is_empty());
        model.apply(stopping(ConditionStatus::False, 2), at(20));
        assert_eq!(model.cluster.shutdown_periods(&"n1".into()), None);
    }

    #[test]
    fn without_an_answer_the_defaults_of_the_release_are_assumed_and_named() {
        let mut model = model(ConditionStatus::False);
        let refused = || Err("nodes/proxy is forbidden".to_owned());
        let answer = KubeletReport { stats: Err("no".into()), settings: refused(), ..report(0, 0) };
        model.on_kubelet_report(&"n1".into(), answer, at(0));
        let pressure = pressure(&model);
        assert_eq!(pressure.assumed_thresholds.as_deref(), Some("nodes/proxy is forbidden"));
        assert_eq!(pressure.usage, Err("no".into()));
        assert_eq!(pressure.signals.len(), 6, "the defaults");
        assert_eq!(pressure.order.ranking.len(), 2);
        assert!(pressure.order.reclaim.is_none());
    }
}
