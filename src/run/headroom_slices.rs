//! Computes headroom in slices, beside a loop.

use std::time::Duration;

use tokio::time::Instant;

use super::background::{Background, Failed};
use crate::model::{HeadroomJob, HeadroomProgress, HeadroomSnapshot};
use kordon_core::placement::ClusterSnapshot;

/// The slices of headroom, one at a time, and the progress from one to the next.
pub struct HeadroomSlices {
    slice: Background<(HeadroomProgress, Option<HeadroomSnapshot>)>,
    /// The progress between slices; a default value while a slice runs.
    progress: HeadroomProgress,
    /// Whether the last slice left more to do.
    has_more: bool,
}

impl HeadroomSlices {
    pub fn new(pace: Duration) -> Self {
        let (slice, progress) = (Background::new(pace), HeadroomProgress::default());
        Self { slice, progress, has_more: false }
    }

    /// Cancels the running slice and forgets the progress, because the cluster is another one.
    pub fn restart(&mut self, pace: Duration) {
        *self = Self { has_more: self.has_more, ..Self::new(pace) };
    }

    /// Whether no slice runs and the pace allows the next.
    pub fn is_due(&self) -> bool {
        self.slice.is_due()
    }

    /// When the next slice is due without a change of the cluster; none if there is no more to do.
    pub fn next_slice(&self) -> Option<Instant> {
        self.has_more.then(|| self.slice.due()).flatten()
    }

    /// Copy of the state that was started last; none before the first, and while a slice runs.
    pub fn state(&self) -> Option<ClusterSnapshot> {
        self.progress.state()
    }

    pub const fn has_state(&self) -> bool {
        self.progress.has_state()
    }

    /// Whether work that uses the state can start: no slice runs, and no state is being made.
    pub fn is_idle(&self) -> bool {
        !self.slice.is_running() && !self.progress.is_starting()
    }

    /// Starts the next slice; none if there is nothing to compute.
    pub fn start(&mut self, job: Option<HeadroomJob>) {
        self.has_more = false;
        let Some(job) = job else { return };
        let mut progress = std::mem::take(&mut self.progress);
        self.slice.start(move |cancelled| {
            let slice = cancelled.slice();
            let headroom = job.advance(&mut progress, || !slice.is_over());
            (progress, headroom)
        });
    }

    /// Waits for the headroom after the running slice, forever if none runs; none until a state is available. May be
    /// dropped and awaited again.
    ///
    /// # Errors
    /// The slice panicked.
    pub async fn finished(&mut self) -> Result<Option<Box<HeadroomSnapshot>>, Failed> {
        let (progress, headroom) = self.slice.finished().await?;
        self.progress = progress;
        self.has_more = headroom.as_ref().is_none_or(|headroom| !headroom.is_finished());
        Ok(headroom.map(Box::new))
    }
}
