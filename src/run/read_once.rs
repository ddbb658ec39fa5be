//! Reads data with one request, once for each item on screen that needs the data.

use futures::{FutureExt, future::BoxFuture};
use kube::Client;
use tokio_util::task::AbortOnDropHandle;

use super::events::EventServer;
use crate::{
    k8s::{autoscalers, health_checks, kordon_lease, node_claims, operator_settings, volume_attachments},
    model::Model,
};
use kordon_core::cluster::{
    Key, KnownAutoscalers, KnownHealthChecks, KnownNodeClaims, KnownVolumeAttachments, LeaderLease,
    Namespace, NodeName, OperatorSettings, Owner, Version,
};
use kordon_time::{Span, Timestamp};

/// Reason in the result if the task that reads the data panics.
const FAILED: &str = "reading them failed by a bug in kordon";

/// Reads data of type `T` once for each item on screen, of type `K`, that needs the data.
#[derive(Debug)]
pub struct ReadOnce<K, T> {
    /// API server from which the data is read; `None` if there is no API server.
    server: Option<EventServer>,
    read: fn(Client, K) -> BoxFuture<'static, T>,
    unreadable: fn(&str) -> T,
    wanted: Option<K>,
    reading: Option<AbortOnDropHandle<T>>,
}

/// Reads the autoscalers for an open plan that may scale Deployments up.
pub type PlannedAutoscalers = ReadOnce<(), KnownAutoscalers>;

/// Reads Karpenter's NodeClaims for the node whose detail is open, once for each version of the node.
pub type ShownNodeClaims = ReadOnce<(NodeName, Version), KnownNodeClaims>;

/// Reads the NodeHealthChecks of medik8s for the node whose detail is open, once for each version of the node.
pub type ShownHealthChecks = ReadOnce<(NodeName, Version), KnownHealthChecks>;

/// Reads the VolumeAttachments for the pod whose detail is open and that may wait for a volume, once for each version of
/// the pod.
pub type ShownVolumeAttachments = ReadOnce<(Key, Version), KnownVolumeAttachments>;

/// Reads the settings of operators once for each set of owners of the pods that an open plan moves, whose details are
/// open, or that an open audit is about.
pub type ShownOperatorSettings = ReadOnce<Vec<(Namespace, Owner)>, OperatorSettings>;

/// Reads the Lease of `kordon controller` once for each period of `LEASE_AGAIN`, by the number of the period.
pub type KordonLeaseReader = ReadOnce<i64, Result<Option<LeaderLease>, String>>;

/// Nanoseconds until kordon's Lease is read again: half of the time for which it is valid without a renewal.
const LEASE_AGAIN: i64 = 7_500_000_000;

/// Time for reading kordon's Lease before the Lease of kube-controller-manager expires, so that the verdict is not that
/// no controller is active until the answer arrives. A Lease that is renewed as usual is valid for longer.
const LEASE_AHEAD: Span = Span::from_secs(5);

impl KordonLeaseReader {
    pub fn kordon_lease(server: Option<EventServer>) -> Self {
        let read = |client: Client, _| async move { kordon_lease::read(&client).await }.boxed();
        Self::new(server, read, |why| Err(why.into()))
    }

    /// Reads the Lease if it is due, and is on screen or decides whether a controller is active. What is on screen may
    /// also depend on it, as the prediction of a failure does.
    pub fn keep(&mut self, model: &Model, is_shown: bool, now: Timestamp) {
        let is_wanted = is_shown || model.needs_kordon_lease(now + LEASE_AHEAD);
        self.follow(is_wanted.then(|| now.as_nanos() / LEASE_AGAIN));
    }
}

impl PlannedAutoscalers {
    pub fn autoscalers(server: Option<EventServer>) -> Self {
        let read = |client: Client, _| async move { autoscalers::read(&client).await }.boxed();
        Self::new(server, read, |why| KnownAutoscalers::Unreadable(why.into()))
    }
}

impl ShownNodeClaims {
    pub fn node_claims(server: Option<EventServer>) -> Self {
        let read = |client: Client, _| async move { node_claims::read(&client).await }.boxed();
        Self::new(server, read, |why| KnownNodeClaims::Unreadable(why.into()))
    }
}

impl ShownHealthChecks {
    pub fn health_checks(server: Option<EventServer>) -> Self {
        let read = |client: Client, _| async move { health_checks::read(&client).await }.boxed();
        Self::new(server, read, |why| KnownHealthChecks::Unreadable(why.into()))
    }
}

impl ShownVolumeAttachments {
    pub fn volume_attachments(server: Option<EventServer>) -> Self {
        let read = |client: Client, _| async move { volume_attachments::read(&client).await }.boxed();
        Self::new(server, read, |why| KnownVolumeAttachments::Unreadable(why.into()))
    }
}

impl ShownOperatorSettings {
    pub fn operator_settings(server: Option<EventServer>) -> Self {
        let read = |client: Client, owners: Vec<(Namespace, Owner)>| {
            async move { operator_settings::read(&client, &owners).await }.boxed()
        };
        // Settings that are missing in the result count as not read.
        Self::new(server, read, |_| OperatorSettings::default())
    }
}

impl<K, T> ReadOnce<K, T> {
    fn new(
        server: Option<EventServer>,
        read: fn(Client, K) -> BoxFuture<'static, T>,
        unreadable: fn(&str) -> T,
    ) -> Self {
        Self { server, read, unreadable, wanted: None, reading: None }
    }
}

impl<K: Clone + PartialEq, T: Send + 'static> ReadOnce<K, T> {
    /// Starts to read the data if `wanted`, the item on screen that needs the data, differs from the item of the last
    /// call.
    pub fn follow(&mut self, wanted: Option<K>) {
        if let Some(item) = &wanted
            && wanted != self.wanted
            && let Some(EventServer { client, .. }) = self.server.clone()
        {
            self.reading = Some(AbortOnDropHandle::new(tokio::spawn((self.read)(client, item.clone()))));
        }
        self.wanted = wanted;
    }

    /// Waits for the data. Waits forever if the data is not being read. May be dropped and awaited again.
    pub async fn next(&mut self) -> T {
        let Some(reading) = &mut self.reading else { return std::future::pending().await };
        let read = reading.await;
        self.reading = None;
        read.unwrap_or_else(|_| (self.unreadable)(FAILED))
    }
}
