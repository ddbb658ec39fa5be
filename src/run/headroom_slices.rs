//! Computes headroom in slices, outside the thread of the event loop.

use std::time::Duration;

use tokio::time::Instant;

use super::background::{Background, Failed};
use crate::model::{HeadroomJob, HeadroomProgress, HeadroomSnapshot};
use kordon_core::placement::ClusterSnapshot;

/// Runs the slices of the headroom computation one at a time, and keeps the progress between them.
pub struct HeadroomSlices {
    slice: Background<(HeadroomProgress, Option<HeadroomSnapshot>)>,
    /// Progress of the computation between slices; a default value while a slice runs.
    progress: HeadroomProgress,
    /// Whether the last slice left more to do.
    has_more: bool,
}

impl HeadroomSlices {
    pub fn new(pace: Duration) -> Self {
        let (slice, progress) = (Background::new(pace), HeadroomProgress::default());
        Self { slice, progress, has_more: false }
    }

    /// Cancels the running slice and drops the progress, because the next slices are about another state of the
    /// cluster.
    pub fn restart(&mut self, pace: Duration) {
        *self = Self { has_more: self.has_more, ..Self::new(pace) };
    }

    /// Whether the next slice may start: no slice is running, and the pause after the last slice is over.
    pub fn is_due(&self) -> bool {
        self.slice.is_due()
    }

    /// Time at which the next slice is due even if the cluster does not change. `None` if nothing is left to compute,
    /// or while a slice runs.
    pub fn next_slice(&self) -> Option<Instant> {
        self.has_more.then(|| self.slice.due()).flatten()
    }

    /// Returns a copy of the newest state of the cluster whose snapshot is complete; `None` before the first complete
    /// snapshot, and while a slice runs.
    pub fn state(&self) -> Option<ClusterSnapshot> {
        self.progress.state()
    }

    pub const fn has_state(&self) -> bool {
        self.progress.has_state()
    }

    /// Whether work that uses [`state`](Self::state) can start: no slice runs, and the snapshot of the newest state is
    /// complete.
    pub fn is_idle(&self) -> bool {
        !self.slice.is_running() && !self.progress.is_starting()
    }

    /// Starts the next slice of the headroom computation `job`. Does nothing if it is `None`, because there is nothing
    /// to compute.
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

    /// Waits for the result of the running slice; forever if no slice runs. The result is `None` until the snapshot of
    /// a state is complete. May be dropped and awaited again.
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
