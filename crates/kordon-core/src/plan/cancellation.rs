//! Cancellation of work whose result is no longer needed.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// A flag that tells long-running work to stop.
///
/// Clones share the flag. The caller that starts the work keeps one clone, and the work regularly checks another. The
/// result of cancelled work must be discarded.
#[derive(Clone, Debug, Default)]
pub struct Cancellation(Arc<AtomicBool>);

impl Cancellation {
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
