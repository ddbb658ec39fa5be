//! Work whose result is not needed any more.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Tells long work to stop. Copies are one: who started the work keeps one, and the work asks its own now and then. What it
/// returns once it was cancelled is of no use.
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
