//! What other settings would have done, as a document (`docs/tune.md`).

use serde::Serialize;

use crate::{
    counterfactual::{ActsTotals, Alternative, Spread, Uncertainties},
    run::tuning::{SettingsTrial, TuningScope},
    time::{Span, Timestamp},
};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TuneReport {
    /// `kordon.tune/v1`: fields are added, never removed or renamed.
    pub schema: &'static str,
    pub context: String,
    pub from: Timestamp,
    pub until: Timestamp,
    pub back_within_seconds: f64,
    pub happened: TunedTotals,
    pub settings: Vec<TunedSettings>,
}

/// What a controller did.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TunedTotals {
    pub nodes_unreachable: usize,
    pub pods_evicted: usize,
    pub pods_unnecessary: usize,
    pub detection: Option<TunedSpread>,
    pub eviction: Option<TunedSpread>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TunedSettings {
    /// What names it in the chart.
    pub letter: String,
    pub present: bool,
    pub with: Vec<String>,
    pub grace_period_seconds: f64,
    pub toleration_seconds: f64,
    pub nodes_unreachable: usize,
    pub pods_evicted: usize,
    pub pods_unnecessary: usize,
    pub detection: Option<TunedSpread>,
    pub eviction: Option<TunedSpread>,
    pub uncertain: usize,
    pub uncertainties: Vec<TunedUncertainty>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TunedSpread {
    pub median_seconds: f64,
    pub longest_seconds: f64,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TunedUncertainty {
    pub kind: &'static str,
    pub count: usize,
}

impl TuneReport {
    pub fn new(context: &str, present: &Alternative, trials: &[SettingsTrial], scope: TuningScope) -> Self {
        let happened = trials.first().map(|trial| &trial.happened);
        let settings =
            trials.iter().enumerate().map(|(place, trial)| TunedSettings::new(place, trial, present));
        Self {
            schema: "kordon.tune/v1",
            context: context.into(),
            from: scope.from,
            until: scope.until,
            back_within_seconds: scope.back_within.as_secs_f64(),
            happened: TunedTotals::of(happened.unwrap_or(&ActsTotals::default())),
            settings: settings.collect(),
        }
    }
}

impl TunedTotals {
    fn of(totals: &ActsTotals) -> Self {
        Self {
            nodes_unreachable: totals.unreachable,
            pods_evicted: totals.evicted,
            pods_unnecessary: totals.unnecessary,
            detection: totals.detection.map(Into::into),
            eviction: totals.eviction.map(Into::into),
        }
    }
}

impl TunedSettings {
    fn new(place: usize, trial: &SettingsTrial, present: &Alternative) -> Self {
        let SettingsTrial { alternative, totals, uncertain, .. } = trial;
        let TunedTotals { nodes_unreachable, pods_evicted, pods_unnecessary, detection, eviction } =
            TunedTotals::of(totals);
        let with = alternative.differences(present);
        let is_present = with.is_empty();
        Self {
            letter: letter(place),
            present: is_present,
            with,
            grace_period_seconds: alternative.settings.node_monitor_grace_period.value.as_secs_f64(),
            toleration_seconds: alternative.toleration().as_secs_f64(),
            nodes_unreachable,
            pods_evicted,
            pods_unnecessary,
            detection,
            eviction,
            uncertain: uncertain.total(),
            uncertainties: uncertainties(uncertain),
        }
    }

    /// From a node's last heartbeat until its pods are evicted: as measured, or else what the settings say.
    pub fn eviction_seconds(&self) -> f64 {
        let nominal = self.grace_period_seconds + self.toleration_seconds;
        self.eviction.as_ref().map_or(nominal, |eviction| eviction.median_seconds)
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

/// a to z, then A to Z, and then the same again.
fn letter(place: usize) -> String {
    let letters = ('a'..='z').chain('A'..='Z');
    letters.cycle().nth(place).map(String::from).unwrap_or_default()
}

/// In whole seconds.
pub fn duration(seconds: f64) -> String {
    Span::from_secs(Span::from_secs_f64(seconds).as_secs()).to_string()
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::counterfactual::Uncertainty;

    pub fn settings(letter: &str, unnecessary: usize, eviction: f64) -> TunedSettings {
        let spread = || Some(TunedSpread { median_seconds: eviction, longest_seconds: eviction });
        TunedSettings {
            letter: letter.into(),
            present: false,
            with: vec!["node-monitor-grace-period=20s".into()],
            grace_period_seconds: 20.0,
            toleration_seconds: 300.0,
            nodes_unreachable: 3,
            pods_evicted: 20,
            pods_unnecessary: unnecessary,
            detection: spread(),
            eviction: spread(),
            uncertain: 1,
            uncertainties: vec![TunedUncertainty { kind: Uncertainty::NearDeadline.as_str(), count: 1 }],
        }
    }

    #[test]
    fn every_field_of_the_document_is_documented() {
        let spread = || Some(TunedSpread { median_seconds: 45.0, longest_seconds: 50.0 });
        let full = TuneReport {
            schema: "kordon.tune/v1",
            context: "demo".into(),
            from: Timestamp::EPOCH,
            until: Timestamp::EPOCH,
            back_within_seconds: 300.0,
            happened: TunedTotals {
                nodes_unreachable: 1,
                pods_evicted: 1,
                pods_unnecessary: 0,
                detection: spread(),
                eviction: spread(),
            },
            settings: vec![settings("a", 0, 300.0)],
        };
        crate::cli::documented::check(&full, include_str!("../../../docs/tune.md"));
    }
}
