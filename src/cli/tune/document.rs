//! The comparison of other settings as a document (`docs/reference/tune.md`).

use serde::Serialize;

use crate::run::tuning::{SettingsTrial, TuningScope};
use kordon_core::counterfactual::{ActsTotals, Alternative, Paid, START, Spread, Uncertainties};
use kordon_time::{Span, Timestamp};

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TuneReport {
    /// `kordon.tune/v1`: fields are added, never removed or renamed.
    pub schema: &'static str,
    /// The kubeconfig context of the recording.
    pub context: String,
    /// Start of the part of the recording that is counted.
    pub from: Timestamp,
    /// End of the part of the recording that is counted.
    pub until: Timestamp,
    /// `--back-within`, for `podsUnnecessary`.
    pub back_within_seconds: f64,
    /// `--blip`: outages shorter than this, from the last heartbeat, are blips.
    pub blip_seconds: f64,
    /// How long a replacement takes until it is Ready.
    pub start_seconds: f64,
    pub outages: TunedOutages,
    /// What the recorded controller did.
    pub happened: TunedTotals,
    /// What a controller with other settings would have done.
    pub settings: Vec<TunedSettings>,
}

/// Outages of nodes that had pods. Every row of the comparison covers the same outages.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TunedOutages {
    /// Outages whose node came back.
    pub ended: usize,
    /// Pods of the outages that ended; a pod counts in each outage of its node.
    pub ended_pods: usize,
    /// Outages that ended and were blips (shorter than `--blip`).
    pub blips: usize,
    /// Pods on the nodes of the blips; a pod counts in each blip of its node.
    pub blip_pods: usize,
    /// Outages whose node did not come back before it was deleted or the recording ended.
    pub not_ended: usize,
    /// Pods of the outages that did not end.
    pub not_ended_pods: usize,
}

/// Totals of a controller's actions over the recording, and of their consequences.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TunedTotals {
    /// How often the controller declared a node Unknown.
    pub nodes_unreachable: usize,
    /// Pods that the controller evicted.
    pub pods_evicted: usize,
    /// Pods whose node was back within `--back-within` of their eviction. Not for comparing settings: settings that
    /// evict sooner have fewer of these pods, because more time passes from the eviction until the node is back.
    pub pods_unnecessary: usize,
    /// Time from a node's last heartbeat until the controller declares the node Unknown; `null` if it declared none.
    pub detection: Option<TunedSpread>,
    /// Time from a node's last heartbeat until its pods are evicted, for nodes that did not come back in time; `null`
    /// if there were no such evictions.
    pub eviction: Option<TunedSpread>,
    /// The time in which a pod ran nowhere, summed over the pods of the outages that ended.
    pub ran_nowhere_seconds: f64,
    /// Number of pods that were evicted in outages that ended.
    pub moves: usize,
    /// Number of pods that were evicted in blips.
    pub blip_moves: usize,
    /// The time in which a pod ran nowhere, summed over the pods of the outages that did not end.
    pub not_ended_ran_nowhere_seconds: f64,
    /// Number of pods that were evicted in outages that did not end.
    pub not_ended_moves: usize,
}

#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TunedSettings {
    /// Letter of the settings in the chart.
    pub letter: String,
    /// Whether these settings were in force.
    pub present: bool,
    /// The settings that differ from those in force: `node-monitor-grace-period=20s`.
    pub with: Vec<String>,
    /// `--node-monitor-grace-period`.
    pub grace_period_seconds: f64,
    /// How long pods with the default toleration tolerate an unreachable node.
    pub toleration_seconds: f64,
    #[serde(flatten)]
    pub totals: TunedTotals,
    /// How often any uncertainty applies: the sum of `uncertainties[].count`.
    pub uncertain: usize,
    pub uncertainties: Vec<TunedUncertainty>,
}

#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TunedSpread {
    /// The median time.
    pub median_seconds: f64,
    /// The longest time.
    pub longest_seconds: f64,
}

#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TunedUncertainty {
    /// The kind of uncertainty, as in `nearDeadline`.
    pub kind: &'static str,
    /// How often the uncertainty applies.
    pub count: usize,
}

impl TuneReport {
    pub fn new(context: &str, present: &Alternative, trials: &[SettingsTrial], scope: TuningScope) -> Self {
        let first = trials.first();
        let happened = first.map(|trial| trial.happened.clone()).unwrap_or_default();
        let paid = first.map(|trial| trial.happened_paid).unwrap_or_default();
        let settings =
            trials.iter().enumerate().map(|(place, trial)| TunedSettings::new(place, trial, present));
        Self {
            schema: "kordon.tune/v1",
            context: context.into(),
            from: scope.from,
            until: scope.until,
            back_within_seconds: scope.back_within.as_secs_f64(),
            blip_seconds: scope.blip.as_secs_f64(),
            start_seconds: first.map_or(START, |trial| trial.start).as_secs_f64(),
            outages: TunedOutages::from_paid(&paid),
            happened: TunedTotals::new(&happened, &paid),
            settings: settings.collect(),
        }
    }
}

impl TunedOutages {
    fn from_paid(paid: &Paid) -> Self {
        let Paid { ended, blips, not_ended } = paid;
        Self {
            ended: ended.outages,
            ended_pods: ended.pods,
            blips: blips.outages,
            blip_pods: blips.pods,
            not_ended: not_ended.outages,
            not_ended_pods: not_ended.pods,
        }
    }
}

impl TunedTotals {
    fn new(totals: &ActsTotals, paid: &Paid) -> Self {
        Self {
            nodes_unreachable: totals.unreachable,
            pods_evicted: totals.evicted,
            pods_unnecessary: totals.unnecessary,
            detection: totals.detection.map(Into::into),
            eviction: totals.eviction.map(Into::into),
            ran_nowhere_seconds: paid.ended.nowhere.as_secs_f64(),
            moves: paid.ended.moves,
            blip_moves: paid.blips.moves,
            not_ended_ran_nowhere_seconds: paid.not_ended.nowhere.as_secs_f64(),
            not_ended_moves: paid.not_ended.moves,
        }
    }

    /// Time in which pods ran nowhere, summed over all outages, ended or not.
    pub fn all_nowhere_seconds(&self) -> f64 {
        self.ran_nowhere_seconds + self.not_ended_ran_nowhere_seconds
    }
}

impl TunedSettings {
    fn new(place: usize, trial: &SettingsTrial, present: &Alternative) -> Self {
        let SettingsTrial { alternative, totals, uncertain, paid, .. } = trial;
        let with = alternative.differences(present);
        let is_present = with.is_empty();
        Self {
            letter: letter(place),
            present: is_present,
            with,
            grace_period_seconds: alternative.settings.node_monitor_grace_period.value.as_secs_f64(),
            toleration_seconds: alternative.toleration().as_secs_f64(),
            totals: TunedTotals::new(totals, paid),
            uncertain: uncertain.total(),
            uncertainties: uncertainties(uncertain),
        }
    }
}

impl From<Spread> for TunedSpread {
    fn from(Spread { median, longest }: Spread) -> Self {
        Self { median_seconds: median.as_secs_f64(), longest_seconds: longest.as_secs_f64() }
    }
}

fn uncertainties(uncertain: &Uncertainties) -> Vec<TunedUncertainty> {
    uncertain.iter().map(|(kind, count)| TunedUncertainty { kind: kind.as_str(), count }).collect()
}

/// The letter at an index: a to z, then A to Z, then from the start again.
fn letter(place: usize) -> String {
    let letters = ('a'..='z').chain('A'..='Z');
    letters.cycle().nth(place).map(String::from).unwrap_or_default()
}

/// A duration in whole seconds.
pub fn duration(seconds: f64) -> String {
    Span::from_secs(Span::from_secs_f64(seconds).as_secs()).to_string()
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use kordon_core::counterfactual::Uncertainty;

    pub fn settings(letter: &str, blip_moves: usize, nowhere: f64) -> TunedSettings {
        let spread = || Some(TunedSpread { median_seconds: 45.0, longest_seconds: 50.0 });
        TunedSettings {
            letter: letter.into(),
            present: false,
            with: vec!["node-monitor-grace-period=20s".into()],
            grace_period_seconds: 20.0,
            toleration_seconds: 300.0,
            totals: TunedTotals {
                nodes_unreachable: 3,
                pods_evicted: 20,
                pods_unnecessary: 4,
                detection: spread(),
                eviction: spread(),
                ran_nowhere_seconds: nowhere - 10.0,
                moves: blip_moves + 1,
                blip_moves,
                not_ended_ran_nowhere_seconds: 10.0,
                not_ended_moves: 1,
            },
            uncertain: 1,
            uncertainties: vec![TunedUncertainty { kind: Uncertainty::NearDeadline.as_str(), count: 1 }],
        }
    }

    /// A report that compares the given settings.
    pub fn report(settings: Vec<TunedSettings>) -> TuneReport {
        TuneReport {
            schema: "kordon.tune/v1",
            context: "demo".into(),
            from: Timestamp::EPOCH,
            until: Timestamp::EPOCH,
            back_within_seconds: 300.0,
            blip_seconds: 600.0,
            start_seconds: 10.0,
            outages: TunedOutages::from_paid(&Paid::default()),
            happened: TunedTotals {
                nodes_unreachable: 3,
                pods_evicted: 21,
                pods_unnecessary: 4,
                ..TunedTotals::new(&ActsTotals::default(), &Paid::default())
            },
            settings,
        }
    }

    #[test]
    fn the_page_documents_every_field() {
        crate::cli::documented::check::<TuneReport>("tune");
    }
}
