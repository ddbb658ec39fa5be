//! Fuzz targets: responses of a server as they arrive over the network.

use std::{
    collections::VecDeque,
    str,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures::stream;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body_util::StreamBody;
use kordon::k8s::{
    feed::{FeedEvent, FeedHealth, FeedKind, FeedState},
    settings,
    watch::{self, WatchOptions},
};
use kordon_clock::Clock;
use kordon_core::{
    cluster::{Cluster, ClusterEvent, EventSubject, ObjectEvents, event::fold},
    engine::{Origin, ServerVersion, Settings},
};
use kordon_time::Timestamp;
use kube::{Client, client::Body};
use tokio::{runtime::Builder, sync::mpsc, time::timeout};
use tokio_util::sync::CancellationToken;

use super::{assert_harmless, objects::kind_of, wait};

/// Input: the response to a list of the controller manager's pods. kordon may make two such lists, and gets the same
/// response to each.
pub fn controller_flags(data: &[u8]) {
    let whole = Bytes::copy_from_slice(data);
    let found = wait(async {
        let answers = move |_: Request<Body>| {
            let body = Body::from(whole.clone());
            async move { Ok::<_, tower::BoxError>(Response::new(body)) }
        };
        settings::controller_flags(&Client::new(tower::service_fn(answers), "default")).await
    });
    assert_harmless(&found.note);
    let mut settings = Settings::defaults(ServerVersion::new(1, 26));
    for (flag, value) in &found.flags {
        let _ = settings.set(flag, value, Origin::Cluster);
    }
    let _ = (settings.rows(), settings.rules());
}

/// Input: the response to a watch. The first line has a letter for the kind, the minor version of the server, the
/// status, and the size of the chunks in which the body arrives. Headers follow up to an empty line, then the body.
pub fn watch(data: &[u8]) {
    let Some(served) = Served::parse(data) else { return };
    // With a paused clock, waiting takes no real time.
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().expect("a runtime");
    runtime.block_on(served.watch());
}

/// Input: events about a pod: the list up to an empty line, then the lines of the watch.
pub fn events(data: &[u8]) {
    let Some(end) = data.windows(2).position(|pair| pair == b"\n\n") else { return };
    let (listed, watched) = (Bytes::copy_from_slice(&data[..end]), Bytes::copy_from_slice(&data[end + 2..]));
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().expect("a runtime");
    runtime.block_on(async {
        let asked = Arc::new(AtomicUsize::new(0));
        let answers = {
            let asked = asked.clone();
            move |request: Request<Body>| {
                let is_watch = request.uri().query().is_some_and(|query| query.contains("watch="));
                let body = Body::from(if is_watch { &watched } else { &listed }.clone());
                let is_last = asked.fetch_add(1, Ordering::Relaxed) >= 6;
                async move {
                    if is_last {
                        std::future::pending::<()>().await;
                    }
                    Ok::<_, tower::BoxError>(Response::new(body))
                }
            }
        };
        let client = Client::new(tower::service_fn(answers), "default");
        let subject =
            EventSubject { kind: "Pod", namespace: Some("shop".into()), name: "p".into(), uid: "u".into() };
        let (sender, mut reports) = mpsc::channel(4);
        let follower = tokio::spawn(watch::follow_events(client, subject, sender));
        // The watch waits for some seconds of paused time between retries.
        while let Ok(Some(report)) = timeout(Duration::from_secs(9), reports.recv()).await {
            assert_events(&report);
        }
        drop(reports);
        follower.await.expect("it ends without a panic");
    });
}

fn assert_events(report: &ObjectEvents) {
    report.failure.iter().for_each(|failure| assert_harmless(failure));
    let events = report.events.as_deref().unwrap_or_default();
    assert!(events.len() <= 500, "{} Events are kept", events.len());
    assert!(events.iter().all(|event| event.count > 0 && event.message.chars().count() <= 1000));
    let folded = fold(events);
    let sum =
        |events: &[ClusterEvent]| events.iter().fold(0u64, |sum, event| sum.saturating_add(event.count));
    assert!(folded.len() <= events.len() && sum(&folded) == sum(events), "{folded:?} of {events:?}");
}

struct Served {
    kinds: &'static [FeedKind],
    minor: u32,
    status: StatusCode,
    headers: Vec<(HeaderName, HeaderValue)>,
    pieces: VecDeque<Bytes>,
}

impl Served {
    fn parse(data: &[u8]) -> Option<Self> {
        let end = data.windows(2).position(|pair| pair == b"\n\n")?;
        let mut head = str::from_utf8(&data[..end]).ok()?.lines();
        let words: Vec<&str> = head.next()?.split(' ').collect();
        let [kind, minor, status, size] = words[..] else { return None };
        let kind = kind_of(*kind.as_bytes().first()?)?;
        let place = FeedKind::ALL.iter().position(|known| *known == kind)?;
        let headers = head.filter_map(|line| {
            let (name, value) = line.split_once(": ")?;
            Some((name.parse().ok()?, value.parse().ok()?))
        });
        let body = Bytes::copy_from_slice(&data[end + 2..]);
        let size = size.parse::<usize>().ok().filter(|size| *size > 0)?;
        // Limits the number of chunks to 64; more chunks would test nothing new.
        let size = size.max(body.len() / 64 + 1);
        let pieces = (0..body.len()).step_by(size).map(|at| body.slice(at..body.len().min(at + size)));
        Some(Self {
            kinds: &FeedKind::ALL[place..=place],
            minor: minor.parse().ok().filter(|minor| *minor < 100)?,
            status: StatusCode::from_u16(status.parse().ok()?).ok()?,
            headers: headers.collect(),
            pieces: pieces.collect(),
        })
    }

    /// Sends the response to each of the first six requests. Later requests get no response, so that the watch waits.
    /// Checks all reports of the watch.
    async fn watch(self) {
        let Self { kinds, minor, status, headers, pieces } = self;
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let client = Client::new(
            tower::service_fn(move |_: Request<Body>| {
                let place = count.fetch_add(1, Ordering::Relaxed);
                let frames = pieces
                    .clone()
                    .into_iter()
                    .map(|piece| Ok::<_, std::io::Error>(http_body::Frame::data(piece)));
                let mut response = Response::new(StreamBody::new(stream::iter(frames)));
                *response.status_mut() = status;
                response
                    .headers_mut()
                    .extend(headers.iter().map(|(name, value)| (name.clone(), value.clone())));
                async move {
                    if place >= 6 {
                        std::future::pending::<()>().await;
                    }
                    Ok::<_, tower::BoxError>(response)
                }
            }),
            "default",
        );
        let (sender, mut events) = mpsc::channel(64);
        let cancel = CancellationToken::new();
        let clock = Clock::new(Timestamp::from_secs(1_800_000_000), 1.0);
        let version = ServerVersion::new(1, minor);
        let options = WatchOptions { version, kinds, no_pods: false, request_timeout: None };
        let task = watch::spawn(
            client,
            options,
            tokio::sync::watch::Sender::default().subscribe(),
            clock,
            sender,
            cancel.clone(),
        );
        let mut cluster = Cluster::default();
        // The watch waits for some seconds of paused time between retries.
        while let Ok(Some(event)) = timeout(Duration::from_secs(100), events.recv()).await {
            match event {
                FeedEvent::Changes(changes) => {
                    changes.into_iter().for_each(|change| cluster.apply(change, &mut Vec::new()));
                }
                FeedEvent::Health(_, FeedHealth { state, .. }) | FeedEvent::ScopeState(_, state) => {
                    match state {
                        FeedState::Broken { error, .. } | FeedState::Forbidden { error } => {
                            assert_harmless(&error)
                        }
                        FeedState::Off
                        | FeedState::Connecting
                        | FeedState::Listing { .. }
                        | FeedState::Live => {}
                    }
                }
                FeedEvent::ClockDifference(difference) => {
                    let _ = clock.now() + difference;
                }
                FeedEvent::Trouble(text) => {
                    assert_harmless(&text);
                    assert!(!text.contains("bug in kordon"), "{text}");
                }
            }
            if asked.load(Ordering::Relaxed) > 8 {
                break;
            }
        }
        cancel.cancel();
        task.await.expect("the watches end without a panic");
    }
}
