//! Holds the Lease of the controller manager, so that only one controller acts at a time.

use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
    jiff,
};
use kube::{Api, Client, api::PostParams};

use crate::{
    clock::Clock,
    time::{Span, Timestamp},
};

/// A Lease that was not renewed for this long is free (upstream's default).
const LEASE_DURATION: Span = Span::from_secs(15);
/// A holder that could not renew for this long gives up (upstream's default).
const RENEW_DEADLINE: Span = Span::from_secs(10);
/// How often a candidate tries (upstream's default).
const RETRY_PERIOD: Span = Span::from_secs(2);

/// The Lease of the controller managers.
const NAMESPACE: &str = "kube-system";
const NAME: &str = "kube-controller-manager";

/// A candidate for the Lease kube-system/kube-controller-manager.
///
/// [`acquire`](Self::acquire) it, then [`keep`](Self::keep) it while the controller acts, then
/// [`release`](Self::release) it.
pub struct LeaderElector {
    leases: Api<Lease>,
    identity: String,
    clock: Clock,
    /// The Lease of another holder as it was last read, and when this state was first read.
    ///
    /// Its expiry counts from then, as in client-go: clocks of other machines are not trusted.
    seen: Option<(LeaseSpec, Timestamp)>,
}

impl LeaderElector {
    /// `identity` is the holder in the Lease; no other process may use the same.
    pub fn new(client: Client, identity: String, clock: Clock) -> Self {
        Self { leases: Api::namespaced(client, NAMESPACE), identity, clock, seen: None }
    }

    /// Waits until this candidate holds the Lease.
    pub async fn acquire(&mut self) {
        loop {
            match self.try_hold().await {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => tracing::warn!(%error, "cannot take the lease {NAMESPACE}/{NAME}"),
            }
            self.clock.sleep(RETRY_PERIOD).await;
        }
    }

    /// Renews the Lease; returns when it was lost or could not be renewed in time.
    pub async fn keep(&mut self) {
        let mut renewed = self.clock.now();
        loop {
            self.clock.sleep(RETRY_PERIOD).await;
            match self.try_hold().await {
                Ok(true) => renewed = self.clock.now(),
                Ok(false) => return,
                Err(error) => tracing::warn!(%error, "cannot renew the lease {NAMESPACE}/{NAME}"),
            }
            if self.clock.now().since(renewed) > RENEW_DEADLINE {
                return;
            }
        }
    }

    /// Releases the Lease, so that the next candidate need not wait until it expires.
    ///
    /// # Errors
    /// The request failed; the Lease will expire.
    pub async fn release(&mut self) -> kube::Result<()> {
        let Some(mut lease) = self.leases.get_opt(NAME).await? else { return Ok(()) };
        let spec = lease.spec.get_or_insert_default();
        if spec.holder_identity.as_deref() != Some(&self.identity) {
            return Ok(());
        }
        spec.holder_identity = Some(String::new());
        spec.lease_duration_seconds = Some(1);
        self.leases.replace(NAME, &PostParams::default(), &lease).await.map(drop)
    }

    /// Acquires the Lease if it is free or expired, or renews it. Returns whether this candidate holds it now.
    async fn try_hold(&mut self) -> kube::Result<bool> {
        let now = self.clock.now();
        let written = match self.leases.get_opt(NAME).await? {
            None => {
                let metadata = ObjectMeta {
                    name: Some(NAME.into()),
                    namespace: Some(NAMESPACE.into()),
                    ..ObjectMeta::default()
                };
                let lease = Lease { metadata, spec: Some(self.held(None, now)) };
                self.leases.create(&PostParams::default(), &lease).await
            }
            Some(mut lease) => {
                if !self.may_take(lease.spec.as_ref(), now) {
                    return Ok(false);
                }
                lease.spec = Some(self.held(lease.spec.as_ref(), now));
                // It has the resourceVersion that was read: the first to write wins.
                self.leases.replace(NAME, &PostParams::default(), &lease).await
            }
        };
        match written {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.is_conflict() || status.is_already_exists() => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn may_take(&mut self, spec: Option<&LeaseSpec>, now: Timestamp) -> bool {
        let Some(spec) = spec else { return true };
        let holder = spec.holder_identity.as_deref().unwrap_or_default();
        if holder.is_empty() || holder == self.identity {
            return true;
        }
        let since = match &self.seen {
            Some((seen, since)) if seen == spec => *since,
            _ => {
                self.seen = Some((spec.clone(), now));
                now
            }
        };
        now.since(since) > LEASE_DURATION
    }

    /// The spec of the Lease with this candidate as its holder.
    fn held(&self, before: Option<&LeaseSpec>, now: Timestamp) -> LeaseSpec {
        let ours = before.filter(|spec| spec.holder_identity.as_deref() == Some(&self.identity));
        let transitions = before.and_then(|spec| spec.lease_transitions).unwrap_or(0);
        LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            acquire_time: ours.and_then(|spec| spec.acquire_time.clone()).or_else(|| Some(micro_time(now))),
            renew_time: Some(micro_time(now)),
            lease_duration_seconds: i32::try_from(LEASE_DURATION.as_secs()).ok(),
            lease_transitions: Some(
                transitions.saturating_add(i32::from(ours.is_none() && before.is_some())),
            ),
            ..LeaseSpec::default()
        }
    }
}

fn micro_time(at: Timestamp) -> MicroTime {
    // The API stores whole microseconds.
    MicroTime(jiff::Timestamp::from_microsecond(at.as_nanos() / 1000).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::api::{self, Api as Demo};

    struct Bench {
        api: Demo,
        clock: Clock,
    }

    impl Bench {
        fn new() -> Self {
            let clock = Clock::new(Timestamp::from_secs(1_800_000_000), 1.0);
            Self { api: Demo::new(clock, api::ApiOptions::default()), clock }
        }

        fn candidate(&self, identity: &str) -> LeaderElector {
            LeaderElector::new(self.api.client(), identity.into(), self.clock)
        }

        async fn spec(&self) -> LeaseSpec {
            let leases: Api<Lease> = Api::namespaced(self.api.client(), NAMESPACE);
            leases.get(NAME).await.expect("there is a lease").spec.expect("it has a spec")
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_controller_waits_until_the_first_is_silent_for_the_leases_duration() {
        let bench = Bench::new();
        bench.candidate("first").acquire().await;
        let taken = bench.clock.now();
        bench.candidate("second").acquire().await;
        let waited = bench.clock.now().since(taken);
        assert!(waited > LEASE_DURATION && waited <= LEASE_DURATION + RETRY_PERIOD, "{waited}");
        let spec = bench.spec().await;
        assert_eq!((spec.holder_identity.as_deref(), spec.lease_transitions), (Some("second"), Some(1)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_was_given_back_is_taken_at_once() {
        let bench = Bench::new();
        let mut first = bench.candidate("first");
        first.acquire().await;
        first.release().await.expect("the API answers");
        let free = bench.clock.now();
        bench.candidate("second").acquire().await;
        assert_eq!(bench.clock.now(), free);
    }

    #[tokio::test(start_paused = true)]
    async fn renewing_keeps_the_time_of_acquisition_and_ends_when_somebody_else_takes_over() {
        let bench = Bench::new();
        let mut first = bench.candidate("first");
        first.acquire().await;
        let acquired = bench.spec().await;
        let keeping = tokio::spawn(async move { first.keep().await });
        bench.clock.sleep(Span::from_secs(60)).await;
        let renewed = bench.spec().await;
        assert_eq!(renewed.acquire_time, acquired.acquire_time);
        assert!(renewed.renew_time > acquired.renew_time);
        assert!(!keeping.is_finished());
        let leases: Api<Lease> = Api::namespaced(bench.api.client(), NAMESPACE);
        let mut lease = leases.get(NAME).await.expect("there is a lease");
        lease.spec.get_or_insert_default().holder_identity = Some("thief".into());
        leases.replace(NAME, &PostParams::default(), &lease).await.expect("the API takes it");
        keeping.await.expect("it ends by itself");
    }

    #[tokio::test(start_paused = true)]
    async fn a_holder_that_cannot_renew_gives_up_before_others_may_take_over() {
        let bench = Bench::new();
        let mut first = bench.candidate("first");
        first.acquire().await;
        let taken = bench.clock.now();
        bench.api.set_down(true);
        first.keep().await;
        assert!(bench.clock.now().since(taken) < LEASE_DURATION);
    }
}
