//! kordon as the controller: acquires the Lease, watches, decides and writes, until it is stopped.
//!
//! [`Controller`] is the controller of the demo; [`process`] is the one that `kordon controller` runs.

pub mod endpoints;
pub mod kube_controller_manager;
pub mod line;
pub mod metrics;
pub mod process;

use tokio_util::sync::CancellationToken;

use super::Session;
use crate::{
    executor::effects::{EffectExecutor, EffectTarget, EffectWriter},
    k8s::{
        connect::Connection,
        leadership::{ElectionOptions, LeaderElector},
    },
    model::{ConnectionInfo, ControllerRole, ModelOptions},
};
use kordon_clock::Clock;
use kordon_core::engine::Settings;
use kordon_time::Span;

/// The node lifecycle controller of a cluster.
pub struct Controller {
    pub connection: Connection,
    pub settings: Settings,
    pub clock: Clock,
    /// Holder identity in the Lease.
    pub identity: String,
}

impl Controller {
    /// Runs until `cancel` is cancelled. While this process holds the Lease, a session acts as the controller. Each
    /// time the process acquires the Lease, it starts a new session.
    pub async fn run(self, cancel: CancellationToken) {
        let mut leadership = LeaderElector::new(
            self.connection.writer.clone(),
            // Leader election without jitter, so that the demo does the same each time it runs with the same seed.
            ElectionOptions { jitter: 0.0, ..ElectionOptions::for_manager() },
            self.identity.clone(),
            self.clock,
        );
        loop {
            tokio::select! {
                () = cancel.cancelled() => return,
                () = leadership.acquire() => tracing::info!(identity = self.identity, "acquired the lease"),
            }
            let watches = cancel.child_token();
            let mut session = self.session(watches.clone());
            let lost = tokio::select! {
                () = cancel.cancelled() => false,
                () = leadership.keep() => true,
                ended = session.run_until(|_| false) => {
                    // The watches end when the program ends. If they end for another reason, that is an error.
                    if !cancel.is_cancelled() {
                        tracing::error!(?ended, "the watches of the controller ended");
                    }
                    false
                }
            };
            watches.cancel();
            if lost {
                tracing::warn!(identity = self.identity, "lost the lease");
                continue;
            }
            if let Err(error) = leadership.release().await {
                tracing::warn!(%error, "the lease was not released and will expire");
            }
            if cancel.is_cancelled() {
                return;
            }
        }
    }

    /// Runs this controller for the duration `dies`, then stops it without releasing the Lease. The controller
    /// `successor` starts when the duration `starts` has passed since the call.
    pub async fn run_until_replaced(
        self,
        successor: Self,
        (dies, starts): (Span, Span),
        cancel: CancellationToken,
    ) {
        let clock = self.clock;
        let started = clock.now();
        let life = cancel.child_token();
        tokio::select! {
            () = self.run(life.clone()) => return,
            () = clock.sleep_until(started + dies) => life.cancel(),
        }
        tokio::select! {
            () = cancel.cancelled() => {}
            () = clock.sleep_until(started + starts) => successor.run(cancel.clone()).await,
        }
    }

    fn session(&self, watches: CancellationToken) -> Session {
        let options = ModelOptions {
            connection: ConnectionInfo::default(),
            settings: self.settings.clone(),
            role: ControllerRole::Controller,
        };
        let (client, clock) = (self.connection.writer.clone(), self.clock);
        let executor = EffectExecutor::Writer(EffectWriter::new(EffectTarget::Cluster(client), clock));
        Session::start(&self.connection, options, false, executor, self.clock, watches)
    }
}
