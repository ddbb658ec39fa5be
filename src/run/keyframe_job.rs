//! Writes a keyframe of the history on a thread of its own, slowly: that of 600,000 pods takes two to four seconds of a core.

use std::{
    io, panic,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use tokio::time::Instant;

use super::{background::give_way, record::keyframe_of};
use crate::{
    model::Feeds,
    recording::{RecordingError, SegmentKeyframe},
};
use kordon_core::cluster::Cluster;

/// Between two blocks it rests this many times what the one before took: it uses 0.6 % of a core. After the first block it goes on
/// at once, so that of a small cluster is done.
const REST: u32 = 160;

/// A keyframe that is being written. What is known is kept until it is. Dropping the job ends it.
#[derive(Debug)]
pub struct KeyframeJob {
    /// None once it was waited for.
    thread: Option<JoinHandle<Result<SegmentKeyframe, RecordingError>>>,
    pace: Arc<Pace>,
    begun: Instant,
}

/// What is known when a keyframe is made.
#[derive(Debug)]
pub struct KnownState {
    pub cluster: Cluster,
    pub feeds: Feeds,
}

#[derive(Debug, Default)]
struct Pace {
    /// Somebody waits for it.
    is_urgent: AtomicBool,
    /// Nobody needs it any more.
    is_cancelled: AtomicBool,
}

impl KeyframeJob {
    /// Starts to write it.
    ///
    /// # Errors
    /// There can be no thread.
    pub fn start(mut keyframe: SegmentKeyframe, state: KnownState) -> io::Result<Self> {
        let pace = Arc::<Pace>::default();
        let of_thread = pace.clone();
        let write = move || {
            give_way();
            let KnownState { cluster, feeds } = state;
            let health: Vec<_> = feeds.iter().collect();
            let mut block_begun: Option<Instant> = None;
            let rest = || {
                if let Some(begun) = block_begun {
                    of_thread.rest(begun.elapsed() * REST)?;
                }
                block_begun = Some(Instant::now());
                Ok(())
            };
            keyframe.write(keyframe_of(cluster, &feeds, &health), rest)?;
            Ok(keyframe)
        };
        let thread = thread::Builder::new().name("keyframe".into()).spawn(write)?;
        Ok(Self { thread: Some(thread), pace, begun: Instant::now() })
    }

    pub const fn begun(&self) -> Instant {
        self.begun
    }

    pub fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for it, which now takes no rest any more.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(mut self) -> Result<SegmentKeyframe, RecordingError> {
        self.pace.is_urgent.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("it is waited for once");
        thread.thread().unpark();
        thread.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked))
    }
}

impl Drop for KeyframeJob {
    fn drop(&mut self) {
        self.pace.is_cancelled.store(true, Ordering::Relaxed);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Pace {
    /// Waits this long, unless somebody waits for what comes then.
    ///
    /// # Errors
    /// Nobody needs it.
    fn rest(&self, span: Duration) -> io::Result<()> {
        let until = Instant::now() + span;
        loop {
            if self.is_cancelled.load(Ordering::Relaxed) {
                return Err(io::Error::other("the history has ended"));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || self.is_urgent.load(Ordering::Relaxed) {
                return Ok(());
            }
            thread::park_timeout(left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_ends_a_rest_and_so_does_the_end_of_the_history() {
        let long = Duration::from_secs(3600);
        let pace = Arc::<Pace>::default();
        let resting = |pace: &Arc<Pace>| {
            let pace = pace.clone();
            thread::spawn(move || pace.rest(long))
        };
        let waited_for = resting(&pace);
        pace.is_urgent.store(true, Ordering::Relaxed);
        waited_for.thread().unpark();
        assert!(waited_for.join().expect("no panic").is_ok());
        let ended = resting(&pace);
        pace.is_cancelled.store(true, Ordering::Relaxed);
        ended.thread().unpark();
        // Both may have been said before it began to rest.
        let _ = ended.join().expect("no panic");
        assert!(pace.rest(long).is_err());
    }
}
