//! Node pressure: what kubelets have measured while somebody looked, and what follows from it.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use super::Model;
use crate::k8s::kubelet::{KubeletReport, UsageSource};
use kordon_core::{
    cluster::{Cluster, ConditionStatus, Node, NodeName, Pod},
    engine::ServerVersion,
    pressure::{
        EvictionManager, EvictionOrder, EvictionSettings, EvictionSignal, KubeletRules, NodeStats,
        PressureCondition, PressurePass, SignalLevel, Threshold, Trend, UsageMetric,
    },
};
use kordon_time::{Span, Timestamp};

/// How many measurements of a node are kept: an hour of them.
const MOST_SAMPLES: usize = 360;

/// Of how many nodes measurements are kept; those of the one that was not asked for longest go first.
const MOST_NODES: usize = 64;

/// What the kubelets that were asked have said.
#[derive(Clone, Debug, Default)]
pub struct PressureReadings(BTreeMap<NodeName, Arc<NodeReadings>>);

/// What one kubelet has said.
#[derive(Clone, Debug)]
struct NodeReadings {
    last: KubeletReport,
    /// The levels, the oldest first.
    samples: VecDeque<(Timestamp, Vec<(EvictionSignal, i64)>)>,
    manager: EvictionManager,
    pass: PressurePass,
    /// What the kubelet evicts now.
    eviction: Option<KubeletEviction>,
}

/// What a kubelet evicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KubeletEviction {
    pub condition: PressureCondition,
    /// How many pods at most: freed images may be enough.
    pub pods: usize,
    /// When it begins, unless the resource is as usual before.
    pub at: Timestamp,
}

impl PressureReadings {
    /// Keeps what a kubelet said, and follows what it does about that.
    fn on_report(&mut self, node: &Node, report: KubeletReport, version: ServerVersion) {
        let settings = thresholds(&report, rules_of(node, version));
        let before = self.0.remove(&node.name).map(Arc::unwrap_or_clone);
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
        self.0.insert(node.name.clone(), Arc::new(readings));
        if self.0.len() > MOST_NODES {
            let oldest = self.0.iter().min_by_key(|(_, readings)| readings.last.at);
            let oldest = oldest.map(|(name, _)| name.clone());
            oldest.and_then(|name| self.0.remove(&name));
        }
    }
}

/// The live usage of nodes (metrics.k8s.io).
#[derive(Clone, Debug)]
pub struct NodeUsage {
    /// When it was read.
    pub at: Timestamp,
    pub nodes: BTreeMap<NodeName, UsageMetric>,
}

/// What is known about pressure on a node.
#[derive(Clone, Debug)]
pub struct NodePressure {
    /// The pressure conditions that the node reports as True.
    pub conditions: Vec<PressureCondition>,
    /// Where usage comes from, and when it was measured; or why it is not known.
    pub usage: Result<(UsageSource, Timestamp), String>,
    /// Why the thresholds are upstream's defaults; none if they are the kubelet's own.
    pub assumed_thresholds: Option<String>,
    /// Thresholds of the kubelet that could not be read.
    pub ignored_thresholds: Vec<String>,
    /// The signals that have a threshold; and memory, disk and process ids, if they are measured.
    pub signals: Vec<SignalPressure>,
    /// What happens for the signal that is nearest to its threshold, or the one that was asked for.
    pub order: EvictionOrder,
    pub rules: KubeletRules,
    /// In bytes; none if it is not known.
    pub memory_capacity: Option<i64>,
}

/// One signal of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct SignalPressure {
    pub signal: EvictionSignal,
    pub level: Option<SignalLevel>,
    pub thresholds: Vec<Threshold>,
    /// The levels of the session, the oldest first.
    pub samples: Vec<i64>,
    /// When the level reaches the nearest threshold, if it goes on to fall as it does.
    pub reaches_threshold: Option<Span>,
    /// The threshold that is met and when it evicts.
    pub evicts: Option<(Threshold, Timestamp)>,
}

impl SignalPressure {
    /// The threshold that is met first when the level falls.
    pub fn nearest(&self) -> Option<&Threshold> {
        let capacity = self.level?.capacity;
        self.thresholds.iter().max_by_key(|threshold| threshold.level(capacity))
    }

    /// How far the level is above its nearest threshold; below it if negative.
    pub fn distance(&self) -> Option<i64> {
        let level = self.level?;
        Some(level.available.saturating_sub(self.nearest()?.level(level.capacity)))
    }

    /// The distance as a share of the capacity, in thousandths.
    fn distance_share(&self) -> Option<i64> {
        let capacity = self.level?.capacity.max(1);
        Some(i64::try_from(i128::from(self.distance()?) * 1000 / i128::from(capacity)).unwrap_or(i64::MAX))
    }
}

impl Model {
    /// What is known about pressure on a node, looked at for one signal or for the one nearest to its threshold.
    pub fn node_pressure(&self, node: &Node, signal: Option<EvictionSignal>) -> Option<NodePressure> {
        let readings = self.pressure.0.get(&node.name)?;
        let rules = rules_of(node, self.settings.version);
        let settings = thresholds(&readings.last, rules);
        let none = NodeStats::default();
        let stats = readings.last.stats.as_ref().unwrap_or(&none);
        let signals = readings.signals(&settings, stats);
        let signal = signal.unwrap_or_else(|| most_pressing(&signals));
        let pods: Vec<Arc<Pod>> = self.cluster.pods_on(&node.name).cloned().collect();
        let capacity = Some(node.memory_capacity_bytes).filter(|bytes| *bytes > 0);
        Some(NodePressure {
            conditions: reported(node),
            usage: readings.last.usage(&self.cluster),
            assumed_thresholds: readings.last.settings.as_ref().err().cloned(),
            ignored_thresholds: settings.ignored.clone(),
            order: EvictionOrder::new(node, &pods, stats, &settings, signal),
            signals,
            rules,
            memory_capacity: stats.memory.map(|level| level.capacity).or(capacity),
        })
    }

    /// Keeps what a kubelet said.
    pub fn on_kubelet_report(&mut self, node: &NodeName, report: KubeletReport) {
        let Some(node) = self.cluster.node(node).cloned() else { return };
        self.pressure.on_report(&node, report, self.settings.version);
        let eviction = self.kubelet_eviction(&node);
        if let Some(readings) = self.pressure.0.get_mut(&node.name) {
            Arc::make_mut(readings).eviction = eviction;
        }
    }

    fn kubelet_eviction(&self, node: &Node) -> Option<KubeletEviction> {
        let NodeReadings { pass, last, .. } = &**self.pressure.0.get(&node.name)?;
        let (signal, at) = match &pass.evicts {
            Some(threshold) => (threshold.signal, last.at),
            None => {
                let soonest =
                    pass.met.iter().min_by_key(|(threshold, at)| (*at, threshold.signal.condition()));
                soonest.map(|(threshold, at)| (threshold.signal, *at))?
            }
        };
        let pods = self.node_pressure(node, Some(signal))?.order.evicted().count();
        (pods > 0).then_some(KubeletEviction { condition: signal.condition(), pods, at })
    }

    /// The nodes whose kubelets evict pods, or will if nothing changes, as far as they were asked and report pressure still.
    pub fn evicting_kubelets(&self) -> impl Iterator<Item = (&NodeName, KubeletEviction)> {
        let reports_it = |name: &NodeName, eviction: &KubeletEviction| {
            self.cluster.node(name).is_some_and(|node| reported(node).contains(&eviction.condition))
        };
        let evicting = self.pressure.0.iter().filter_map(|(name, readings)| Some((name, readings.eviction?)));
        evicting.filter(move |(name, eviction)| reports_it(name, eviction))
    }

    /// Keeps what metrics.k8s.io said of all nodes. After an error, what it said before is kept for a while.
    pub fn on_node_usage(&mut self, usage: Result<BTreeMap<NodeName, UsageMetric>, String>, now: Timestamp) {
        const STALE: Span = Span::from_secs(180);
        match usage {
            Ok(nodes) => self.usage = Some(Arc::new(NodeUsage { at: now, nodes })),
            Err(_) if self.usage.as_ref().is_some_and(|usage| now.since(usage.at) > STALE) => {
                self.usage = None
            }
            Err(_) => {}
        }
    }

    /// The nodes that report pressure: their kubelets are asked even if nobody looks.
    pub fn nodes_under_pressure(&self) -> BTreeSet<NodeName> {
        let nodes: Vec<&Arc<Node>> = if self.engine.is_some() {
            // None of those that are Ready is under pressure, and most are.
            self.watchlist.notable().filter_map(|(name, _)| self.cluster.node(name)).collect()
        } else {
            self.cluster.nodes().iter().collect()
        };
        let reporting = nodes.into_iter().filter(|node| !reported(node).is_empty());
        reporting.map(|node| node.name.clone()).collect()
    }
}

impl NodeReadings {
    /// The signals that matter, in their order.
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

    /// The trend of the last ten minutes, continued.
    fn reaches(&self, signal: &SignalPressure) -> Option<Span> {
        const RECENT: Span = Span::from_secs(600);
        let (level, threshold) = (signal.level?, signal.nearest()?);
        let recent = self.samples_of(signal.signal).filter(|(at, _)| self.last.at.since(*at) <= RECENT);
        Trend::of(recent)?.reaches(level.available, threshold.level(level.capacity))
    }
}

impl KubeletReport {
    /// Where usage comes from, and when it was measured on our clock.
    fn usage(&self, cluster: &Cluster) -> Result<(UsageSource, Timestamp), String> {
        let stats = self.stats.as_ref().map_err(Clone::clone)?;
        Ok((self.source, stats.measured.map_or(self.at, |at| cluster.local(at))))
    }
}

/// The signal that is nearest to its threshold; memory if none is measured.
fn most_pressing(signals: &[SignalPressure]) -> EvictionSignal {
    let distances = signals.iter().filter_map(|signal| Some((signal.distance_share()?, signal.signal)));
    distances.min().map_or(EvictionSignal::Memory, |(_, signal)| signal)
}

/// The kubelet's thresholds; upstream's defaults where they may not be read.
fn thresholds(report: &KubeletReport, rules: KubeletRules) -> EvictionSettings {
    report.settings.clone().unwrap_or_else(|_| EvictionSettings::defaults(rules))
}

/// The rules of the node's own kubelet, which may be older than the API server.
fn rules_of(node: &Node, version: ServerVersion) -> KubeletRules {
    KubeletRules::of(ServerVersion::parse(&node.kubelet_version).unwrap_or(version))
}

/// The pressure conditions that a node reports as True.
fn reported(node: &Node) -> Vec<PressureCondition> {
    // Of most nodes only Ready is True: the others' names need not be read.
    let is_true = |kind: &PressureCondition| {
        let mut conditions = node.conditions.iter();
        conditions
            .any(|condition| condition.status == ConditionStatus::True && *condition.kind == *kind.as_str())
    };
    PressureCondition::ALL.into_iter().filter(is_true).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ClusterVerdict, ModelOptions};
    use kordon_core::{
        cluster::{Change, Condition, Key, KubeletSpec, ObjectEvent, PodResources, QosClass},
        pressure::{EvictionSettingsText, PodUsage},
    };
    use kordon_time::ClusterTime;

    const GIBI: i64 = 1 << 30;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_secs(seconds)
    }

    /// A node with two pods that use 2 GiB each.
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
            model.on_kubelet_report(&"n1".into(), report((7 - step) * GIBI, 10 * step));
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
        model.on_kubelet_report(&"n1".into(), report(GIBI / 2, 0));
        let evicting: Vec<_> = model.evicting_kubelets().collect();
        let eviction = KubeletEviction { condition: PressureCondition::Memory, pods: 1, at: at(0) };
        assert_eq!(evicting, [(&"n1".into(), eviction)]);
        let verdict = ClusterVerdict::of(&model, at(1)).text();
        assert!(verdict.contains("kubelet of n1 evicts up to 1 pod (MemoryPressure)"), "{verdict}");
    }

    #[test]
    fn without_an_answer_the_defaults_of_the_release_are_assumed_and_named() {
        let mut model = model(ConditionStatus::False);
        let refused = || Err("nodes/proxy is forbidden".to_owned());
        let answer = KubeletReport { stats: Err("no".into()), settings: refused(), ..report(0, 0) };
        model.on_kubelet_report(&"n1".into(), answer);
        let pressure = pressure(&model);
        assert_eq!(pressure.assumed_thresholds.as_deref(), Some("nodes/proxy is forbidden"));
        assert_eq!(pressure.usage, Err("no".into()));
        assert_eq!(pressure.signals.len(), 6, "the defaults");
        assert_eq!(pressure.order.ranking.len(), 2);
        assert!(pressure.order.reclaim.is_none());
    }
}
