//! Holds a Lease, so that only one controller acts at a time (as client-go's `leaderelection` does).

use std::collections::BTreeMap;

use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
    jiff,
};
use kube::{Api, Client, api::PostParams};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::error::words;
use kordon_clock::Clock;
use kordon_time::{Span, Timestamp};

/// The Lease, and the times of the leader election. By default, the times are upstream's.
#[derive(Clone, Debug, PartialEq)]
pub struct ElectionOptions {
    pub namespace: String,
    pub name: String,
    /// Time after which an unchanged Lease is free.
    pub lease_duration: Span,
    /// Time without a renewal after which the holder stops writing. It is shorter than `lease_duration`.
    pub renew_deadline: Span,
    /// Time between two attempts to acquire or renew the Lease.
    pub retry_period: Span,
    /// Maximum random delay that is added to a candidate's retry, as a fraction of the retry period: client-go's 1.2,
    /// or 0 for no delay.
    pub jitter: f64,
    /// Annotations that the holder writes on the Lease.
    pub annotations: BTreeMap<String, String>,
}

/// Election times that do not allow a safe change of the holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadElection {
    #[error(
        "--leader-elect-lease-duration={duration} must be longer than --leader-elect-renew-deadline={deadline}"
    )]
    LeaseTooShort { duration: Span, deadline: Span },
    #[error(
        "--leader-elect-renew-deadline={deadline} must be longer than 1.2 times --leader-elect-retry-period={period}"
    )]
    DeadlineTooShort { deadline: Span, period: Span },
    #[error(
        "--leader-elect-lease-duration={duration} is shorter than a second, the least that a Lease can say"
    )]
    NotASecond { duration: Span },
}

/// The Lease of the controller managers.
pub const MANAGER_LEASE: (&str, &str) = ("kube-system", "kube-controller-manager");

impl ElectionOptions {
    /// Options for a Lease with upstream's times.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
            lease_duration: Span::from_secs(15),
            renew_deadline: Span::from_secs(10),
            retry_period: Span::from_secs(2),
            jitter: JITTER,
            annotations: BTreeMap::new(),
        }
    }

    /// The Lease kube-system/kube-controller-manager.
    pub fn for_manager() -> Self {
        Self::new(MANAGER_LEASE.0, MANAGER_LEASE.1)
    }

    pub fn is_of_manager(&self) -> bool {
        (self.namespace.as_str(), self.name.as_str()) == MANAGER_LEASE
    }

    /// Checks the times of the leader election, as client-go does.
    ///
    /// # Errors
    /// With these times, two holders could write at once, or no holder could renew in time.
    pub fn check(&self) -> Result<(), BadElection> {
        let Self { lease_duration: duration, renew_deadline: deadline, retry_period: period, .. } = *self;
        if duration <= deadline {
            return Err(BadElection::LeaseTooShort { duration, deadline });
        }
        if duration < Span::from_secs(1) {
            return Err(BadElection::NotASecond { duration });
        }
        if deadline.as_secs_f64() <= JITTER * period.as_secs_f64() {
            return Err(BadElection::DeadlineTooShort { deadline, period });
        }
        Ok(())
    }
}

/// client-go's `JitterFactor`.
const JITTER: f64 = 1.2;

/// A candidate's knowledge of the Lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseState {
    /// Time until which this candidate may write; `None` while it does not hold the Lease.
    pub writes_until: Option<Timestamp>,
    /// Time at which this candidate sent the last request that renewed the Lease.
    pub renewed: Option<Timestamp>,
    /// The holder (`spec.holderIdentity`) when the Lease was last read.
    pub holder: String,
    /// Reason why the last attempt to acquire or renew the Lease failed.
    pub error: Option<String>,
}

impl LeaseState {
    pub const fn is_held(&self) -> bool {
        self.writes_until.is_some()
    }
}

/// A candidate for a Lease.
///
/// Call [`acquire`](Self::acquire), then [`keep`](Self::keep) while the controller acts, then
/// [`release`](Self::release); or [`run`](Self::run), which does all of this.
pub struct LeaderElector {
    leases: Api<Lease>,
    options: ElectionOptions,
    identity: String,
    clock: Clock,
    /// The Lease as last read or written, and when this state was first seen.
    ///
    /// Its expiry is measured from that time, as in client-go, because the clocks of other machines are not trusted.
    seen: Option<(Lease, Timestamp)>,
    state: watch::Sender<LeaseState>,
}

impl LeaderElector {
    /// Creates a candidate. `identity` is the candidate's name as holder of the Lease; each candidate needs its own.
    pub fn new(client: Client, options: ElectionOptions, identity: String, clock: Clock) -> Self {
        let leases = Api::namespaced(client, &options.namespace);
        Self { leases, options, identity, clock, seen: None, state: watch::Sender::default() }
    }

    /// Returns a receiver of the state of the Lease.
    pub fn state(&self) -> watch::Receiver<LeaseState> {
        self.state.subscribe()
    }

    /// Holds the Lease whenever possible while `may_lead` is true, and releases it otherwise. Once `stop` is cancelled,
    /// releases the Lease and returns.
    pub async fn run(mut self, mut may_lead: watch::Receiver<bool>, stop: CancellationToken) {
        loop {
            let held = async {
                until(&mut may_lead, true).await;
                tokio::select! {
                    () = self.acquire() => {}
                    () = until(&mut may_lead, false) => return,
                }
                tokio::select! {
                    () = self.keep() => {}
                    () = until(&mut may_lead, false) => {}
                }
            };
            let stopped = stop.run_until_cancelled(held).await.is_none();
            let was_held = self.state.borrow().is_held();
            self.lose();
            if was_held && let Err(error) = self.release().await {
                tracing::warn!(error = words(&error), "the lease was not released and will expire");
            }
            if stopped {
                return;
            }
        }
    }

    /// Waits until this candidate holds the Lease.
    pub async fn acquire(&mut self) {
        loop {
            if let Try::Held = self.try_within(self.options.renew_deadline).await {
                return;
            }
            let retry =
                self.options.retry_period.as_secs_f64() * (1.0 + self.options.jitter * fastrand::f64());
            self.clock.sleep(Span::from_secs_f64(retry)).await;
        }
    }

    /// Renews the Lease until it is lost or was not renewed in time.
    pub async fn keep(&mut self) {
        while let Some(until) = self.writes_until() {
            let retry = self.clock.now() + self.options.retry_period;
            self.clock.sleep_until(retry.min(until)).await;
            let left = until.since(self.clock.now());
            match self.try_within(left).await {
                Try::Held => {}
                Try::Failed if self.clock.now() < until => {}
                Try::Failed | Try::HeldByOther => break,
            }
        }
        self.lose();
    }

    fn writes_until(&self) -> Option<Timestamp> {
        self.state.borrow().writes_until
    }

    /// Marks the Lease as not held. From now on nothing is written.
    fn lose(&mut self) {
        self.state.send_if_modified(|state| state.writes_until.take().is_some());
    }

    /// Releases the Lease, so that the next candidate need not wait for its expiry. Takes at most half the renew
    /// deadline.
    ///
    /// # Errors
    /// The request failed; the Lease will expire.
    pub async fn release(&mut self) -> kube::Result<()> {
        self.lose();
        let releasing = async {
            let Some(mut lease) = self.leases.get_opt(&self.options.name).await? else { return Ok(()) };
            let spec = lease.spec.get_or_insert_default();
            if spec.holder_identity.as_deref() != Some(&self.identity) {
                return Ok(());
            }
            let now = micro_time(self.clock.now());
            spec.holder_identity = Some(String::new());
            spec.lease_duration_seconds = Some(1);
            (spec.renew_time, spec.acquire_time) = (Some(now.clone()), Some(now));
            self.leases.replace(&self.options.name, &PostParams::default(), &lease).await.map(drop)
        };
        tokio::select! {
            released = releasing => released,
            () = self.clock.sleep(self.request_limit()) => Err(kube::Error::Service("no response in time".into())),
        }
    }

    /// Timeout of one request (as in kube-controller-manager).
    fn request_limit(&self) -> Span {
        Span::from_nanos(self.options.renew_deadline.as_nanos() / 2)
    }

    /// Attempts once to acquire or renew the Lease, for at most `limit`, and publishes the result.
    async fn try_within(&mut self, limit: Span) -> Try {
        let started = self.clock.now();
        let ends = started + limit.min(self.request_limit());
        let clock = self.clock;
        let answer = tokio::select! {
            answer = self.try_hold() => answer.map_err(|error| words(&error)),
            () = clock.sleep_until(ends) => Err("no response in time".into()),
        };
        let holder = self.seen.as_ref().and_then(|(lease, _)| holder(lease)).unwrap_or_default().to_owned();
        let (result, error) = match answer {
            Ok(true) => (Try::Held, None),
            Ok(false) => (Try::HeldByOther, None),
            Err(error) => {
                let ElectionOptions { namespace, name, .. } = &self.options;
                tracing::warn!(error, "cannot hold the lease {namespace}/{name}");
                (Try::Failed, Some(error))
            }
        };
        self.state.send_if_modified(|state| {
            let before = state.clone();
            (state.holder, state.error) = (holder, error);
            if let Try::Held = result {
                // The renewal counts from before the request was sent, so that the right to write ends before others
                // see the Lease expire.
                (state.renewed, state.writes_until) =
                    (Some(started), Some(started + self.options.renew_deadline));
            }
            *state != before
        });
        result
    }

    /// Acquires the Lease if it is free or expired, or renews it. Returns true if this candidate then holds the Lease.
    async fn try_hold(&mut self) -> kube::Result<bool> {
        // A holder writes without reading the Lease again. A conflict shows that somebody else has written to it.
        if self.writes_until().is_some()
            && let Some((lease, _)) = self.seen.clone().filter(|(lease, _)| self.is_ours(lease))
        {
            match self.write(lease).await {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(error) => return Err(error),
            }
        }
        let Some(lease) = self.leases.get_opt(&self.options.name).await? else {
            let mut metadata = ObjectMeta {
                name: Some(self.options.name.clone()),
                namespace: Some(self.options.namespace.clone()),
                ..ObjectMeta::default()
            };
            self.annotate(&mut metadata);
            let lease = Lease { metadata, spec: Some(self.held(None)) };
            return self.written(self.leases.create(&PostParams::default(), &lease).await);
        };
        if self.seen.as_ref().is_none_or(|(seen, _)| seen.spec != lease.spec) {
            self.seen = Some((lease.clone(), self.clock.now()));
        }
        if self.may_take(&lease) { self.write(lease).await } else { Ok(false) }
    }

    /// Writes this candidate into the Lease. The write has the resourceVersion that was read. If several candidates
    /// write, only the first write therefore succeeds.
    async fn write(&mut self, mut lease: Lease) -> kube::Result<bool> {
        lease.spec = Some(self.held(lease.spec.as_ref()));
        self.annotate(&mut lease.metadata);
        let answer = self.leases.replace(&self.options.name, &PostParams::default(), &lease).await;
        self.written(answer)
    }

    fn annotate(&self, metadata: &mut ObjectMeta) {
        if !self.options.annotations.is_empty() {
            metadata.annotations.get_or_insert_default().extend(self.options.annotations.clone());
        }
    }

    fn written(&mut self, answer: kube::Result<Lease>) -> kube::Result<bool> {
        match answer {
            Ok(lease) => {
                self.seen = Some((lease, self.clock.now()));
                Ok(true)
            }
            Err(kube::Error::Api(status)) if status.is_conflict() || status.is_already_exists() => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn is_ours(&self, lease: &Lease) -> bool {
        holder(lease) == Some(&self.identity)
    }

    /// Whether this candidate may take the Lease: the Lease is free, is held by this candidate, or has not changed for
    /// the duration in its spec.
    fn may_take(&self, lease: &Lease) -> bool {
        let Some(other) = holder(lease).filter(|holder| !holder.is_empty()) else { return true };
        let said = lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds);
        let duration = said.map_or(self.options.lease_duration, |secs| Span::from_secs(secs.into()));
        let since = self.seen.as_ref().map_or_else(|| self.clock.now(), |(_, since)| *since);
        other == self.identity || self.clock.now().since(since) > duration
    }

    /// Returns the spec of the Lease with this candidate as its holder.
    fn held(&self, before: Option<&LeaseSpec>) -> LeaseSpec {
        let now = micro_time(self.clock.now());
        let ours = before.filter(|spec| spec.holder_identity.as_deref() == Some(&self.identity));
        let transitions = before.and_then(|spec| spec.lease_transitions).unwrap_or(0);
        LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            acquire_time: ours.and_then(|spec| spec.acquire_time.clone()).or_else(|| Some(now.clone())),
            renew_time: Some(now),
            lease_duration_seconds: i32::try_from(self.options.lease_duration.as_secs()).ok(),
            lease_transitions: Some(
                transitions.saturating_add(i32::from(ours.is_none() && before.is_some())),
            ),
            ..before.cloned().unwrap_or_default()
        }
    }
}

/// Waits until the channel has this value. Waits forever if the sender is dropped.
async fn until(reported: &mut watch::Receiver<bool>, value: bool) {
    if reported.wait_for(|now| *now == value).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Result of an attempt to acquire or renew the Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Try {
    Held,
    /// Another candidate holds the Lease, or has written first.
    HeldByOther,
    /// There was no response, or an error. The holder is unknown.
    Failed,
}

fn holder(lease: &Lease) -> Option<&str> {
    lease.spec.as_ref()?.holder_identity.as_deref()
}

fn micro_time(at: Timestamp) -> MicroTime {
    // The API stores times in whole microseconds.
    MicroTime(jiff::Timestamp::from_microsecond(at.as_nanos() / 1000).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use kordon_demo::api::{self, Api as Demo, Fault, FaultAnswer};

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
            LeaderElector::new(self.api.client(), ElectionOptions::for_manager(), identity.into(), self.clock)
        }

        async fn spec(&self) -> LeaseSpec {
            let leases: Api<Lease> = Api::namespaced(self.api.client(), MANAGER_LEASE.0);
            leases.get(MANAGER_LEASE.1).await.expect("there is a lease").spec.expect("it has a spec")
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_controller_waits_until_the_first_is_silent_for_the_leases_duration() {
        let bench = Bench::new();
        bench.candidate("first").acquire().await;
        let taken = bench.clock.now();
        bench.candidate("second").acquire().await;
        let waited = bench.clock.now().since(taken);
        let ElectionOptions { lease_duration, retry_period, .. } = ElectionOptions::for_manager();
        assert!(waited > lease_duration && waited <= lease_duration + retry_period * 3, "{waited}");
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
        let leases: Api<Lease> = Api::namespaced(bench.api.client(), MANAGER_LEASE.0);
        let mut lease = leases.get(MANAGER_LEASE.1).await.expect("there is a lease");
        lease.spec.get_or_insert_default().holder_identity = Some("thief".into());
        leases.replace(MANAGER_LEASE.1, &PostParams::default(), &lease).await.expect("the API takes it");
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
        assert!(bench.clock.now().since(taken) < ElectionOptions::for_manager().lease_duration);
    }

    #[tokio::test(start_paused = true)]
    async fn a_holder_whose_requests_hang_may_not_write_from_the_renew_deadline_on() {
        let bench = Bench::new();
        let mut first = bench.candidate("first");
        let state = first.state();
        first.acquire().await;
        let acquired = bench.clock.now();
        let hangs = Fault::always(FaultAnswer::Hang).on(&[], "leases");
        bench.api.inject(hangs);
        let until = state.borrow().writes_until.expect("it holds the lease");
        assert!(until <= acquired + ElectionOptions::for_manager().renew_deadline);
        first.keep().await;
        assert!(bench.clock.now() <= until + Span::from_millis(2), "{}", bench.clock.now().since(until));
        assert!(!state.borrow().is_held());
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_is_given_up_while_it_may_not_be_held_and_taken_again_afterwards() {
        let bench = Bench::new();
        let (may_lead, reported) = watch::channel(false);
        let (elector, stop) = (bench.candidate("one"), CancellationToken::new());
        let mut state = elector.state();
        let running = tokio::spawn(elector.run(reported, stop.clone()));
        bench.clock.sleep(Span::from_secs(60)).await;
        assert!(!state.borrow().is_held() && bench.api.count("leases") == 0, "it did not even try");
        may_lead.send_replace(true);
        state.wait_for(LeaseState::is_held).await.expect("it runs");
        assert_eq!(bench.spec().await.holder_identity.as_deref(), Some("one"));
        may_lead.send_replace(false);
        state.wait_for(|state| !state.is_held()).await.expect("it runs");
        bench.clock.sleep(Span::from_secs(1)).await;
        assert_eq!(bench.spec().await.holder_identity.as_deref(), Some(""));
        may_lead.send_replace(true);
        state.wait_for(LeaseState::is_held).await.expect("it runs");
        stop.cancel();
        running.await.expect("it ends");
        assert_eq!(bench.spec().await.holder_identity.as_deref(), Some(""), "released");
    }

    #[tokio::test(start_paused = true)]
    async fn a_holder_writes_its_annotations_over_those_of_the_holder_before_it() {
        let bench = Bench::new();
        for policy in ["pause", "evict"] {
            let annotations = BTreeMap::from([("kordon.dev/full-disruption".into(), policy.into())]);
            let options = ElectionOptions { annotations, ..ElectionOptions::for_manager() };
            let mut elector = LeaderElector::new(bench.api.client(), options, policy.into(), bench.clock);
            elector.acquire().await;
            let leases: Api<Lease> = Api::namespaced(bench.api.client(), MANAGER_LEASE.0);
            let lease = leases.get(MANAGER_LEASE.1).await.expect("there is a lease");
            let stated = lease.metadata.annotations.expect("annotations");
            assert_eq!(stated.get("kordon.dev/full-disruption").map(String::as_str), Some(policy));
            elector.release().await.expect("the API answers");
        }
    }

    #[test]
    fn times_with_which_two_could_hold_a_lease_are_refused() {
        let times = |duration, deadline, period| {
            let [lease_duration, renew_deadline, retry_period] =
                [duration, deadline, period].map(Span::from_secs);
            ElectionOptions { lease_duration, renew_deadline, retry_period, ..ElectionOptions::new("a", "b") }
                .check()
        };
        assert_eq!(times(15, 10, 2), Ok(()));
        assert!(matches!(times(10, 10, 2), Err(BadElection::LeaseTooShort { .. })));
        assert!(matches!(times(15, 2, 2), Err(BadElection::DeadlineTooShort { .. })));
    }
}
