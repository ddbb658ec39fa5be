//! Reads which workloads autoscalers scale, for an open plan that may scale Deployments up.

use super::events::EventServer;
use crate::k8s::autoscalers;
use kordon_core::cluster::KnownAutoscalers;
use tokio_util::task::AbortOnDropHandle;

/// Reads the autoscalers once for each plan that needs them.
pub struct PlannedAutoscalers {
    /// API server from which they are read; none if there is no API server.
    server: Option<EventServer>,
    is_wanted: bool,
    reading: Option<AbortOnDropHandle<KnownAutoscalers>>,
}

impl PlannedAutoscalers {
    pub const fn new(server: Option<EventServer>) -> Self {
        Self { server, is_wanted: false, reading: None }
    }

    /// Reads the autoscalers once a plan needs them.
    pub fn follow(&mut self, is_wanted: bool) {
        if is_wanted
            && !self.is_wanted
            && let Some(EventServer(client)) = self.server.clone()
        {
            let task = tokio::spawn(async move { autoscalers::read(&client).await });
            self.reading = Some(AbortOnDropHandle::new(task));
        }
        self.is_wanted = is_wanted;
    }

    /// Waits for the autoscalers. Waits forever if they are not being read. May be dropped and awaited again.
    pub async fn next(&mut self) -> KnownAutoscalers {
        let Some(reading) = &mut self.reading else { return std::future::pending().await };
        let read = reading.await;
        self.reading = None;
        read.unwrap_or_else(|_| KnownAutoscalers::Unreadable("reading them failed by a bug in kordon".into()))
    }
}
