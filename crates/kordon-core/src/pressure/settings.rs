//! The thresholds of a kubelet: defaults and configuration.

use std::{collections::BTreeMap, fmt};

use super::{rules::KubeletRules, signal::EvictionSignal, stats::SignalLevel};
use crate::cluster::quantity;
use kordon_time::Span;

/// The fields of a kubelet's configuration for node-pressure eviction.
#[derive(Clone, Debug, PartialEq)]
pub struct EvictionSettings {
    pub thresholds: Vec<Threshold>,
    /// How long a pressure condition stays True after its threshold was last met.
    pub transition_period: Span,
    /// Longest grace period of pods that a soft threshold evicts.
    pub max_pod_grace: Span,
    /// Thresholds that could not be parsed, as written.
    pub ignored: Vec<String>,
}

/// The defaults of `evictionHard`. The default of `imagefs.inodesFree` applies since 1.30.
const DEFAULT_HARD: [(EvictionSignal, &str); 5] = [
    (EvictionSignal::Memory, "100Mi"),
    (EvictionSignal::NodefsBytes, "10%"),
    (EvictionSignal::NodefsInodes, "5%"),
    (EvictionSignal::ImagefsBytes, "15%"),
    (EvictionSignal::ImagefsInodes, "5%"),
];

/// The default of `evictionPressureTransitionPeriod`.
const DEFAULT_TRANSITION: Span = Span::from_secs(300);

impl EvictionSettings {
    /// The settings of a kubelet without configuration (docs/upstream/placement-and-pressure.md#6.2).
    pub fn defaults(rules: KubeletRules) -> Self {
        let has_default =
            |signal| signal != EvictionSignal::ImagefsInodes || rules.inodes_of_images_have_a_default;
        let hard = DEFAULT_HARD.into_iter().filter(|(signal, _)| has_default(*signal));
        let hard = hard.map(|(signal, value)| (signal.as_str().to_owned(), value.to_owned())).collect();
        Self::parse(&EvictionSettingsText { hard, pods_are_limited: true, ..EvictionSettingsText::default() })
    }

    /// Parses the effective configuration of a kubelet. Signals that the configuration does not name have no threshold.
    pub fn parse(text: &EvictionSettingsText) -> Self {
        let mut settings = Self {
            thresholds: Vec::new(),
            transition_period: text.transition_period.unwrap_or(DEFAULT_TRANSITION),
            max_pod_grace: text.max_pod_grace.unwrap_or_default(),
            ignored: Vec::new(),
        };
        for (signal, value) in &text.hard {
            settings.add(text, signal, value, Some(ThresholdKind::Hard));
        }
        for (signal, value) in &text.soft {
            let grace = text.soft_grace.get(signal).map(|grace| ThresholdKind::Soft { grace: *grace });
            settings.add(text, signal, value, grace);
        }
        let copied = settings.thresholds.iter().filter(|threshold| {
            text.pods_are_limited
                && threshold.signal == EvictionSignal::Memory
                && threshold.kind == ThresholdKind::Hard
        });
        let copied: Vec<_> = copied
            .map(|threshold| Threshold { signal: EvictionSignal::AllocatableMemory, ..threshold.clone() })
            .collect();
        settings.thresholds.extend(copied);
        settings.thresholds.sort_by_key(|threshold| (threshold.signal, threshold.kind));
        settings
    }

    /// Adds a threshold, unless it is turned off. A soft threshold without a grace period is ignored, as are values
    /// that cannot be parsed.
    fn add(&mut self, text: &EvictionSettingsText, name: &str, value: &str, kind: Option<ThresholdKind>) {
        let signal = EvictionSignal::parse(name);
        let parsed = (signal, ThresholdValue::parse(value), kind);
        let (Some(signal), Some(value), Some(kind)) = parsed else {
            self.ignored.push(format!("{name}<{value}"));
            return;
        };
        let minimum_reclaim = text.minimum_reclaim.get(name).and_then(|value| ThresholdValue::parse(value));
        if !value.is_off() {
            self.thresholds.push(Threshold { signal, kind, value, minimum_reclaim });
        }
    }

    /// The thresholds of a signal, the hard one first.
    pub fn of(&self, signal: EvictionSignal) -> impl Iterator<Item = &Threshold> {
        self.thresholds.iter().filter(move |threshold| threshold.signal == signal)
    }
}

/// The fields of `KubeletConfiguration` for node-pressure eviction, as written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EvictionSettingsText {
    /// `evictionHard`.
    pub hard: BTreeMap<String, String>,
    /// `evictionSoft`.
    pub soft: BTreeMap<String, String>,
    /// `evictionSoftGracePeriod`.
    pub soft_grace: BTreeMap<String, Span>,
    /// `evictionMinimumReclaim`.
    pub minimum_reclaim: BTreeMap<String, String>,
    /// `evictionPressureTransitionPeriod`.
    pub transition_period: Option<Span>,
    /// `evictionMaxPodGracePeriod`.
    pub max_pod_grace: Option<Span>,
    /// Whether `enforceNodeAllocatable` contains `pods`. The hard memory threshold then also applies to the pods'
    /// cgroup.
    pub pods_are_limited: bool,
}

/// The level of a signal below which a kubelet evicts pods.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    pub signal: EvictionSignal,
    pub kind: ThresholdKind,
    pub value: ThresholdValue,
    /// Minimum reclaim: evictions stop only when the level is above the threshold by this amount.
    pub minimum_reclaim: Option<ThresholdValue>,
}

impl Threshold {
    /// The level below which the threshold is met.
    pub fn level(&self, capacity: i64) -> i64 {
        self.value.of(capacity)
    }

    /// The level at which evictions stop.
    pub fn target(&self, capacity: i64) -> i64 {
        let more = self.minimum_reclaim.map_or(0, |value| value.of(capacity));
        self.level(capacity).saturating_add(more)
    }

    /// Whether the threshold is met at this level of its signal.
    pub fn is_met(&self, level: SignalLevel) -> bool {
        level.available < self.level(level.capacity)
    }

    /// Whether evictions that the threshold has started must continue at this level of its signal.
    pub fn is_unresolved(&self, level: SignalLevel) -> bool {
        level.available < self.target(level.capacity)
    }

    /// The time for which the threshold must be met before it evicts.
    pub const fn grace(&self) -> Span {
        match self.kind {
            ThresholdKind::Hard => Span::ZERO,
            ThresholdKind::Soft { grace } => grace,
        }
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}<{}", self.signal, self.value.words(self.signal))
    }
}

/// Kind of threshold: evicts at once, or after a grace period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ThresholdKind {
    Hard,
    Soft {
        /// The time for which the threshold must be met.
        grace: Span,
    },
}

impl ThresholdKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hard => "hard",
            Self::Soft { .. } => "soft",
        }
    }
}

/// Value of a threshold: an amount, or a share of the capacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ThresholdValue {
    /// An amount in bytes, inodes or processes.
    Amount(i64),
    /// A share of the capacity: 0.1 is 10 %.
    Share(f32),
}

impl ThresholdValue {
    /// Parses `100Mi` or `10%`; `None` for anything else, negative values, and shares above 100 %.
    pub fn parse(text: &str) -> Option<Self> {
        match text.strip_suffix('%') {
            Some(percent) => {
                let percent: f32 = percent.parse().ok()?;
                (0.0..=100.0).contains(&percent).then_some(Self::Share(percent / 100.0))
            }
            None => quantity::parse_units(text).filter(|amount| *amount >= 0).map(Self::Amount),
        }
    }

    /// Converts the value to an amount in the unit of the capacity.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "as upstream (`evictionapi.GetThresholdQuantity`)"
    )]
    pub fn of(self, capacity: i64) -> i64 {
        match self {
            Self::Amount(amount) => amount,
            Self::Share(share) => (capacity as f64 * f64::from(share)) as i64,
        }
    }

    /// Whether the value turns its threshold off: 0 % and 100 % do.
    fn is_off(self) -> bool {
        matches!(self, Self::Share(share) if share <= 0.0 || share >= 1.0)
    }

    /// The value as written in a configuration.
    pub fn words(self, signal: EvictionSignal) -> String {
        match self {
            Self::Amount(amount) => signal.amount(amount),
            // The percentage is rounded to the digits that a 32-bit float can hold.
            Self::Share(share) => format!("{}%", (f64::from(share) * 1e5).round() / 1e3),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ServerVersion;

    fn written(settings: &EvictionSettings) -> Vec<String> {
        settings.thresholds.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn defaults_depend_on_the_release() {
        let of = |minor| EvictionSettings::defaults(KubeletRules::for_version(ServerVersion::new(1, minor)));
        let old = [
            "memory.available<100Mi",
            "allocatableMemory.available<100Mi",
            "nodefs.available<10%",
            "nodefs.inodesFree<5%",
            "imagefs.available<15%",
        ];
        assert_eq!(written(&of(29)), old);
        assert_eq!(written(&of(30)), [&old[..], &["imagefs.inodesFree<5%"]].concat());
        assert_eq!(of(30).transition_period, Span::from_secs(300));
    }

    #[test]
    fn what_is_configured_replaces_every_default() {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let settings = EvictionSettings::parse(&EvictionSettingsText {
            hard: BTreeMap::from([pair("memory.available", "5%"), pair("pid.available", "0%")]),
            soft: BTreeMap::from([
                pair("memory.available", "1Gi"),
                pair("nodefs.available", "20%"),
                pair("gpu.available", "1"),
            ]),
            soft_grace: BTreeMap::from([("memory.available".to_owned(), Span::from_secs(120))]),
            minimum_reclaim: BTreeMap::from([pair("memory.available", "500Mi")]),
            ..EvictionSettingsText::default()
        });
        assert_eq!(written(&settings), ["memory.available<5%", "memory.available<1Gi"]);
        assert_eq!(settings.ignored, ["gpu.available<1", "nodefs.available<20%"], "unknown; without grace");
        let [hard, soft] = &settings.thresholds[..] else { panic!("{settings:?}") };
        assert_eq!((hard.grace(), soft.grace()), (Span::ZERO, Span::from_secs(120)));
        let gibi = 1 << 30;
        assert_eq!(soft.target(16 * gibi), 1524 << 20);
        let level = |available| SignalLevel { available, capacity: 16 * gibi };
        assert!(!soft.is_met(level(gibi)) && soft.is_met(level(gibi - 1)));
        assert!(soft.is_unresolved(level((1524 << 20) - 1)) && !soft.is_unresolved(level(1524 << 20)));
    }

    #[test]
    fn what_is_no_threshold_is_refused() {
        for text in ["", "%", "-1%", "101%", "-5Mi", "lots", "NaN%"] {
            assert_eq!(ThresholdValue::parse(text), None, "{text}");
        }
    }
}
