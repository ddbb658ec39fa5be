//! Plays a recording under several settings of the controller, and counts the effects that each of them would have had.

use std::{
    io::{Read, Seek},
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
};

use super::replay::Replay;
use crate::recording::{RecordingError, RecordingReader};
use kordon_core::counterfactual::{
    Acts, ActsTotals, Alternative, CostScope, Paid, START, Uncertainties, Uncertainty, Whose,
};
use kordon_time::{Span, Timestamp};

/// Time range that is played with each set of settings, and thresholds for counting the effects.
#[derive(Clone, Copy, Debug)]
pub struct TuningScope {
    pub from: Timestamp,
    pub until: Timestamp,
    /// End of the recording, the same for all settings. A recording that is still being written may go on after it.
    pub end: Timestamp,
    /// Time within which a node must be back for an eviction of its pods to count as unnecessary.
    pub back_within: Span,
    /// Limit for blips. An outage that is shorter than this, counted from the last heartbeat, is a blip.
    pub blip: Span,
}

/// Result of playing a recording with one set of settings.
#[derive(Clone, Debug)]
pub struct SettingsTrial {
    pub alternative: Alternative,
    pub totals: ActsTotals,
    pub uncertain: Uncertainties,
    /// Cost of the outages with these settings.
    pub paid: Paid,
    /// Numbers and durations of the recorded controllers' actions, which are the same for all settings.
    pub happened: ActsTotals,
    /// Cost of the outages in the recording.
    pub happened_paid: Paid,
    /// Time that a replacement takes to become Ready.
    pub start: Span,
}

impl SettingsTrial {
    /// Plays a recording under the settings of `alternative`.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub fn run<R: Read + Seek>(
        reader: RecordingReader<R>,
        alternative: Alternative,
        scope: TuningScope,
    ) -> Result<Self, RecordingError> {
        let end = scope.end.min(scope.until + scope.back_within.max(scope.blip));
        let mut replay = Replay::under(reader, alternative.clone());
        replay.seek(end)?;
        let layer = replay.counterfactual().expect("it was asked about other settings");
        let totals = |acts: &Acts| acts.within(scope.from, scope.until).totals(scope.back_within, end);
        let (totals, happened) = (totals(layer.would()), totals(layer.happened()));
        let start = layer.start().unwrap_or(START);
        let counted = CostScope {
            from: scope.from,
            until: scope.until,
            blip: scope.blip,
            passes: alternative.settings.node_monitor_period.value * 2,
            start,
            end,
        };
        let outages = layer.outages(&replay.model().cluster, end);
        let paid = Paid::new(outages.iter(), Whose::Engine(layer.would()), &counted);
        let happened_paid = Paid::new(outages.iter(), Whose::Recorded(layer.happened()), &counted);
        let mut uncertain = layer.uncertain();
        uncertain.add(Uncertainty::OpenAtEnd, totals.open);
        uncertain.add(Uncertainty::Gap, replay.damaged().count());
        Ok(Self { alternative, totals, uncertain, paid, happened, happened_paid, start })
    }

    /// Plays the recording under each of several settings, over the same outages, on as many threads as there are
    /// processors. Returns the trials in the order of the settings.
    ///
    /// # Errors
    /// The recording cannot be opened or read.
    pub fn run_all<R: Read + Seek, E: From<RecordingError> + Send>(
        open: impl Fn() -> Result<RecordingReader<R>, E> + Sync,
        alternatives: &[Alternative],
        counted: TuningScope,
    ) -> Result<Vec<Self>, E> {
        let grace = |alternative: &Alternative| alternative.settings.node_monitor_grace_period.value;
        let least = alternatives.iter().map(grace).min().unwrap_or(Span::ZERO);
        let alternatives: Vec<Alternative> =
            alternatives.iter().map(|one| Alternative { least_silence: least, ..one.clone() }).collect();
        let workers = std::thread::available_parallelism().map_or(1, usize::from).min(alternatives.len());
        // The channel is unbounded, because it never has more messages than there are trials.
        let ((send, trials), next) = (mpsc::channel(), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..workers {
                let (send, open, next, alternatives) = (send.clone(), &open, &next, &alternatives);
                scope.spawn(move || {
                    while let place = next.fetch_add(1, Ordering::Relaxed)
                        && let Some(alternative) = alternatives.get(place)
                    {
                        let trial =
                            open().and_then(|reader| Ok(Self::run(reader, alternative.clone(), counted)?));
                        // Sending cannot fail, because the receiver lives as long as this function.
                        let _ = send.send((place, trial));
                    }
                });
            }
        });
        drop(send);
        let mut trials: Vec<(usize, Result<Self, E>)> = trials.iter().collect();
        trials.sort_by_key(|(place, _)| *place);
        trials.into_iter().map(|(_, trial)| trial).collect()
    }
}
