//! Plays a recording under several settings of the controller, and counts what each of them would have done.

use std::{
    io::{Read, Seek},
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
};

use super::replay::Replay;
use crate::{
    counterfactual::{Acts, ActsTotals, Alternative, Uncertainties, Uncertainty},
    recording::{RecordingError, RecordingReader},
    time::{Span, Timestamp},
};

/// What is counted.
#[derive(Clone, Copy, Debug)]
pub struct TuningScope {
    pub from: Timestamp,
    pub until: Timestamp,
    /// An eviction was not necessary if its node was back within this time.
    pub back_within: Span,
}

/// What settings would have done.
#[derive(Clone, Debug)]
pub struct SettingsTrial {
    pub alternative: Alternative,
    pub totals: ActsTotals,
    pub uncertain: Uncertainties,
    /// What the recorded controllers did: the same for all settings.
    pub happened: ActsTotals,
}

impl SettingsTrial {
    /// Plays a recording under these settings.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn run<R: Read + Seek>(
        reader: RecordingReader<R>,
        alternative: Alternative,
        scope: TuningScope,
    ) -> Result<Self, RecordingError> {
        let end = reader.until().min(scope.until + scope.back_within);
        let mut replay = Replay::under(reader, alternative.clone());
        replay.seek(end)?;
        let layer = replay.counterfactual().expect("it was asked about other settings");
        let totals = |acts: &Acts| acts.within(scope.from, scope.until).totals(scope.back_within, end);
        let (totals, happened) = (totals(layer.would()), totals(layer.happened()));
        let mut uncertain = layer.uncertain();
        uncertain.add(Uncertainty::OpenAtEnd, totals.open);
        uncertain.add(Uncertainty::Gap, replay.damaged().count());
        Ok(Self { alternative, totals, uncertain, happened })
    }

    /// The same for several settings, on as many threads as there are processors. The trials come in the order of the settings.
    ///
    /// # Errors
    /// The recording cannot be opened or read.
    pub fn run_all<R: Read + Seek, E: From<RecordingError> + Send>(
        open: impl Fn() -> Result<RecordingReader<R>, E> + Sync,
        alternatives: &[Alternative],
        counted: TuningScope,
    ) -> Result<Vec<Self>, E> {
        let workers = std::thread::available_parallelism().map_or(1, usize::from).min(alternatives.len());
        // Never more than the trials, so no bound is needed.
        let ((send, trials), next) = (mpsc::channel(), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..workers {
                let (send, open, next) = (send.clone(), &open, &next);
                scope.spawn(move || {
                    while let place = next.fetch_add(1, Ordering::Relaxed)
                        && let Some(alternative) = alternatives.get(place)
                    {
                        let trial =
                            open().and_then(|reader| Ok(Self::run(reader, alternative.clone(), counted)?));
                        // The receiver lives as long as this function.
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
