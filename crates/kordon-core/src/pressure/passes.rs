//! The passes of a kubelet's eviction manager (docs/upstream/placement-and-pressure.md#6.3; `eviction.synchronize`).

use std::collections::{BTreeMap, BTreeSet};

use super::{
    settings::{EvictionSettings, Threshold, ThresholdKind},
    signal::{EvictionSignal, PressureCondition},
    stats::NodeStats,
};
use kordon_time::{Span, Timestamp};

/// State that a kubelet's eviction manager keeps between its passes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EvictionManager {
    /// The time at which kordon first saw each threshold met. The kubelet may have seen the threshold met earlier. The
    /// node's condition does not show since when a threshold is met, because the condition stays True for the
    /// transition period after a threshold was last met.
    met_since: BTreeMap<ThresholdId, Timestamp>,
    /// Thresholds that have started to evict pods and have not reached their target yet.
    unresolved: BTreeSet<ThresholdId>,
    /// For each condition, the time at which one of its thresholds was last met.
    last_met: BTreeMap<PressureCondition, Timestamp>,
}

/// Identifier of a threshold of a node. A signal has at most one threshold of each kind.
type ThresholdId = (EvictionSignal, ThresholdKind);

/// Result of one pass of a kubelet's eviction manager.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PressurePass {
    /// The pressure conditions of the node that are True after the pass.
    pub conditions: BTreeSet<PressureCondition>,
    /// The thresholds that are met, each with the time at which it evicts pods.
    pub met: Vec<(Threshold, Timestamp)>,
    /// The threshold for which the pass evicts a pod.
    pub evicts: Option<Threshold>,
}

impl EvictionManager {
    /// Runs one pass, which compares the measurements with the thresholds. If several thresholds evict, a memory
    /// threshold comes first.
    pub fn pass(&mut self, settings: &EvictionSettings, stats: &NodeStats, now: Timestamp) -> PressurePass {
        let mut met = Vec::new();
        for threshold in &settings.thresholds {
            let id = (threshold.signal, threshold.kind);
            let is_met =
                stats.level(threshold.signal).is_some_and(|level| match self.unresolved.contains(&id) {
                    true => threshold.is_unresolved(level),
                    false => threshold.is_met(level),
                });
            if is_met {
                let since = *self.met_since.entry(id).or_insert(now);
                self.last_met.insert(threshold.signal.condition(), now);
                met.push((threshold.clone(), since + threshold.grace()));
            } else {
                self.met_since.remove(&id);
                self.unresolved.remove(&id);
            }
        }
        let due = met.iter().filter(|(_, at)| *at <= now);
        for (threshold, _) in due.clone() {
            self.unresolved.insert((threshold.signal, threshold.kind));
        }
        let evicts = due.min_by_key(|(threshold, _)| threshold.signal.condition());
        PressurePass {
            conditions: self.conditions(settings.transition_period, now),
            evicts: evicts.map(|(threshold, _)| threshold.clone()),
            met,
        }
    }

    /// The conditions that are True: one of their thresholds was met within the transition period.
    fn conditions(&self, transition: Span, now: Timestamp) -> BTreeSet<PressureCondition> {
        let recent = self.last_met.iter().filter(|(_, met)| now.since(**met) < transition || **met == now);
        recent.map(|(condition, _)| *condition).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pressure::{EvictionSettingsText, SignalLevel};

    const MEBI: i64 = 1 << 20;

    fn settings(soft: bool, minimum_reclaim: Option<&str>) -> EvictionSettings {
        let memory = "memory.available".to_owned();
        let one = |value: &str| BTreeMap::from([(memory.clone(), value.to_owned())]);
        let disk = ("nodefs.available".to_owned(), "10%".to_owned());
        EvictionSettings::parse(&EvictionSettingsText {
            hard: one("1Gi").into_iter().chain([disk]).collect(),
            soft: if soft { one("2Gi") } else { BTreeMap::new() },
            soft_grace: BTreeMap::from([(memory.clone(), Span::from_secs(120))]),
            minimum_reclaim: minimum_reclaim.map(one).unwrap_or_default(),
            ..EvictionSettingsText::default()
        })
    }

    fn memory(mebi: i64) -> NodeStats {
        let level = SignalLevel { available: mebi * MEBI, capacity: 16 << 30 };
        NodeStats { memory: Some(level), ..NodeStats::default() }
    }

    /// Runs one pass of the eviction manager. Returns whether the pass evicts a pod, and whether the node then has
    /// MemoryPressure.
    fn after(manager: &mut EvictionManager, settings: &EvictionSettings, mebi: i64, at: i64) -> (bool, bool) {
        let pass = manager.pass(settings, &memory(mebi), Timestamp::from_secs(at));
        (pass.evicts.is_some(), pass.conditions.contains(&PressureCondition::Memory))
    }

    #[test]
    fn a_soft_threshold_sets_the_condition_at_once_and_evicts_after_its_grace_period() {
        let (settings, mut manager) = (settings(true, None), EvictionManager::default());
        assert_eq!(after(&mut manager, &settings, 3000, 0), (false, false));
        assert_eq!(after(&mut manager, &settings, 1500, 10), (false, true));
        assert_eq!(after(&mut manager, &settings, 1500, 120), (false, true));
        assert_eq!(after(&mut manager, &settings, 1500, 130), (true, true));
        let pass = manager.pass(&settings, &memory(1500), Timestamp::from_secs(140));
        assert_eq!(pass.evicts.map(|threshold| threshold.grace()), Some(Span::from_secs(120)));
    }

    #[test]
    fn the_grace_period_starts_again_when_the_level_was_above_meanwhile() {
        let (settings, mut manager) = (settings(true, None), EvictionManager::default());
        after(&mut manager, &settings, 1500, 0);
        after(&mut manager, &settings, 2500, 60);
        assert_eq!(after(&mut manager, &settings, 1500, 130), (false, true));
    }

    #[test]
    fn a_hard_threshold_evicts_at_once() {
        let (settings, mut manager) = (settings(true, None), EvictionManager::default());
        assert_eq!(after(&mut manager, &settings, 1023, 0), (true, true));
        assert_eq!(after(&mut manager, &settings, 1024, 10), (false, true), "not below it");
    }

    #[test]
    fn a_condition_outlives_the_pressure_by_the_transition_period() {
        let (settings, mut manager) = (settings(false, None), EvictionManager::default());
        after(&mut manager, &settings, 500, 0);
        assert_eq!(after(&mut manager, &settings, 4000, 60), (false, true));
        assert_eq!(after(&mut manager, &settings, 4000, 299), (false, true));
        assert_eq!(after(&mut manager, &settings, 4000, 300), (false, false));
    }

    #[test]
    fn evictions_go_on_until_the_minimum_is_reclaimed() {
        let (settings, mut manager) = (settings(false, Some("500Mi")), EvictionManager::default());
        assert_eq!(after(&mut manager, &settings, 1200, 0), (false, false), "above the threshold");
        assert_eq!(after(&mut manager, &settings, 900, 10), (true, true));
        assert_eq!(after(&mut manager, &settings, 1200, 20), (true, true), "not enough yet");
        assert_eq!(after(&mut manager, &settings, 2000, 30), (false, true));
        assert_eq!(after(&mut manager, &settings, 1200, 40), (false, true), "it has recovered");
    }

    #[test]
    fn memory_is_served_before_disk() {
        use crate::pressure::Filesystem;
        let disk = SignalLevel { available: 5, capacity: 100 };
        let nodefs = Some(Filesystem { bytes: Some(disk), inodes: None });
        let stats = NodeStats { nodefs, ..memory(500) };
        let pass = EvictionManager::default().pass(&settings(false, None), &stats, Timestamp::EPOCH);
        assert_eq!(pass.evicts.map(|threshold| threshold.signal), Some(EvictionSignal::Memory));
        assert_eq!(pass.met.len(), 2);
        assert_eq!(pass.conditions.len(), 2);
    }
}
