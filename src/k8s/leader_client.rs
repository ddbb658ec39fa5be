//! A client that sends requests only while a Lease is held, and at a limited rate.
//!
//! It serves processes that write as the leader. Once the Lease is lost, no request starts, and requests in flight are
//! abandoned. Each request tells the server (`timeout=`) how long the right to write lasts. The server therefore does
//! not execute a delayed request after another leader has started.

use std::sync::Arc;

use http::{Request, Uri};
use kube::{Client, client::Body};
use tokio::sync::{Mutex, watch};

use super::leadership::LeaseState;
use kordon_clock::Clock;
use kordon_time::{Span, Timestamp};

/// Rate limit of a client (kube-controller-manager's `--kube-api-qps` and `--kube-api-burst`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RequestRate {
    /// Requests per second; greater than zero.
    pub qps: f64,
    /// Requests that may be sent at once after a pause; at least one.
    pub burst: u32,
}

impl Default for RequestRate {
    /// Upstream's defaults.
    fn default() -> Self {
        Self { qps: 20.0, burst: 30 }
    }
}

/// Reason why a request was not sent, or was abandoned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotLeading {
    #[error("not sent: this process does not hold the Lease any more")]
    NotSent,
    #[error("given up, because this process does not hold the Lease any more; it may have been executed")]
    GivenUp,
}

/// Returns a client that sends the requests of `client` while the Lease is held.
pub fn while_leading(
    client: Client,
    lease: watch::Receiver<LeaseState>,
    rate: RequestRate,
    clock: Clock,
) -> Client {
    let namespace = client.default_namespace().to_owned();
    let pace = Arc::new(Mutex::new(Pace { rate, free_from: Timestamp::EPOCH }));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, lease, pace) = (client.clone(), lease.clone(), pace.clone());
        async move {
            let turn = pace.lock().await.next(clock.now());
            let until = wait_for_turn(turn, lease.clone(), clock).await?;
            let left = until.since(clock.now());
            if left <= Span::ZERO {
                return Err(NotLeading::NotSent.into());
            }
            let request = with_timeout(request, left)?;
            tokio::select! {
                answer = client.send(request) => answer.map_err(tower::BoxError::from),
                () = lost(lease, until, clock) => Err(NotLeading::GivenUp.into()),
            }
        }
    });
    Client::new(service, namespace)
}

/// Waits for the turn of a request. Returns the time until which the request may be executed.
async fn wait_for_turn(
    turn: Timestamp,
    lease: watch::Receiver<LeaseState>,
    clock: Clock,
) -> Result<Timestamp, NotLeading> {
    // The Lease's state is read after the wait, because the Lease may be renewed during the wait.
    clock.sleep_until(turn).await;
    let until = lease.borrow().writes_until;
    until.ok_or(NotLeading::NotSent)
}

/// Completes at `until`, or earlier if the Lease is lost or its right to write ends before `until`.
async fn lost(mut lease: watch::Receiver<LeaseState>, until: Timestamp, clock: Clock) {
    tokio::select! {
        _ = lease.wait_for(|state| state.writes_until.is_none_or(|ends| ends < until)) => {}
        () = clock.sleep_until(until) => {}
    }
}

/// Adds a timeout to the request, after which the server must not execute it any more.
fn with_timeout(mut request: Request<Body>, left: Span) -> Result<Request<Body>, http::Error> {
    let uri = request.uri();
    let mark = if uri.query().is_some() { '&' } else { '?' };
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let path = format!("{path}{mark}timeout={}ms", left.as_nanos() / 1_000_000);
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(path.parse()?);
    *request.uri_mut() = Uri::from_parts(parts)?;
    Ok(request)
}

/// Rate limiter.
struct Pace {
    rate: RequestRate,
    /// Time of the next request if requests were sent at even intervals, without bursts.
    free_from: Timestamp,
}

impl Pace {
    /// Reserves a turn for a request, and returns the time at which it may be sent.
    fn next(&mut self, now: Timestamp) -> Timestamp {
        let interval = Span::from_secs_f64(1.0 / self.rate.qps);
        let evenly = self.free_from.max(now);
        self.free_from = evenly + interval;
        now.max(evenly - interval * i64::from(self.rate.burst.saturating_sub(1)))
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Node;
    use kube::{
        Api,
        api::{Patch, PatchParams},
    };
    use serde_json::json;

    use super::*;
    use kordon_demo::api::{Api as Demo, ApiOptions, Fault, FaultAnswer, Verb};

    const START: Timestamp = Timestamp::from_secs(1_800_000_000);

    struct Bench {
        api: Demo,
        clock: Clock,
        lease: watch::Sender<LeaseState>,
        nodes: Api<Node>,
    }

    impl Bench {
        /// Creates a leader that may write for ten seconds.
        fn new() -> Self {
            let clock = Clock::new(START, 1.0);
            let api = Demo::new(clock, ApiOptions::default());
            api.load("nodes", json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}));
            let lease = watch::Sender::new(held_until(START + Span::from_secs(10)));
            let client = while_leading(api.client(), lease.subscribe(), RequestRate::default(), clock);
            Self { api, clock, lease, nodes: Api::all(client) }
        }

        async fn label(&self) -> kube::Result<Node> {
            let patch = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
            self.nodes.patch("n1", &PatchParams::default(), &patch).await
        }

        fn sent(&self) -> Vec<String> {
            self.api.log().into_iter().filter(|seen| seen.verb == Verb::Patch).map(|seen| seen.uri).collect()
        }
    }

    fn held_until(at: Timestamp) -> LeaseState {
        LeaseState { writes_until: Some(at), ..LeaseState::default() }
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_tells_the_server_how_long_it_is_of_use() {
        let bench = Bench::new();
        bench.label().await.expect("it leads");
        let sent = bench.sent();
        assert_eq!(sent.len(), 1);
        assert!(
            sent[0].ends_with("/api/v1/nodes/n1?timeout=10000ms") || sent[0].contains("&timeout="),
            "{sent:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_sent_once_the_lease_is_lost() {
        let bench = Bench::new();
        bench.lease.send_replace(LeaseState::default());
        let error = bench.label().await.expect_err("it does not lead");
        assert!(format!("{error:?}").contains("NotSent"), "{error:?}");
        bench.lease.send_replace(held_until(START));
        bench.label().await.expect_err("its time is over");
        assert_eq!(bench.sent(), Vec::<String>::new());
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_in_flight_ends_when_the_lease_is_lost_and_at_the_renew_deadline() {
        let bench = Bench::new();
        bench.api.inject(Fault::always(FaultAnswer::Hang));
        let lost = async {
            bench.clock.sleep(Span::from_secs(3)).await;
            bench.lease.send_replace(LeaseState::default());
        };
        let (answer, ()) = tokio::join!(bench.label(), lost);
        assert!(format!("{answer:?}").contains("GivenUp"), "{answer:?}");
        assert_eq!(bench.clock.now(), START + Span::from_secs(3));

        bench.lease.send_replace(held_until(START + Span::from_secs(8)));
        bench.label().await.expect_err("nothing answers");
        assert!(bench.clock.now() <= START + Span::from_millis(8002), "{}", bench.clock.now().since(START));
    }

    #[test]
    fn requests_come_in_a_burst_and_then_at_the_rate() {
        let mut pace = Pace { rate: RequestRate { qps: 2.0, burst: 3 }, free_from: Timestamp::EPOCH };
        let mut after =
            |now: i64| pace.next(START + Span::from_millis(now)).since(START).as_nanos() / 1_000_000;
        assert_eq!([after(0), after(0), after(0), after(0), after(0)], [0, 0, 0, 500, 1000]);
        assert_eq!([after(10_000), after(10_000)], [10_000, 10_000], "rested");
    }
}
