//! The dashboard's real loop, with typed keys, a screen in memory and paused time.

use std::{io, sync::Mutex, time::Duration};

use crossterm::event::Event;
use futures::channel::mpsc as futures_mpsc;
use kordon::{
    app::App,
    executor::effects::EffectExecutor,
    k8s::feed::{FeedEvent, FeedHealth, FeedKind, FeedState},
    run::{self, Dashboard, Links, RunError, notify::NotifyOptions},
    ui::snapshot,
};
use kordon_clock::Clock;
use kordon_core::{
    cluster::{Change, LeaderLease, Lease},
    engine::{Effect, EffectId, Outcome, Write},
};
use kordon_time::{ClusterTime, Span, Timestamp};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep},
};

use crate::{
    dashboard_fixture::{self, DashboardFixture, typed},
    recording_screen::RecordingScreen,
};

#[tokio::test(start_paused = true)]
async fn with_nothing_to_show_nothing_is_drawn_after_the_first_frame() {
    let harness = LoopHarness::new(DashboardFixture::new().app);
    harness
        .while_running(async |harness| {
            sleep(Duration::from_secs(600)).await;
            assert_eq!(harness.draws().len(), 1);
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn while_something_counts_down_there_is_one_draw_a_second() {
    let harness = LoopHarness::new(DashboardFixture::well().app);
    harness
        .while_running(async |harness| {
            sleep(Duration::from_millis(10_500)).await;
            assert_eq!(harness.draws().len(), 11, "the first, and one a second");
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_frozen_screen_is_drawn_for_keys_only() {
    let harness = LoopHarness::new(DashboardFixture::well().app);
    harness
        .while_running(async |harness| {
            sleep(Duration::from_secs(2)).await;
            harness.press("f").await;
            let frozen = harness.draws().len();
            for second in 0..30 {
                harness.renew("pool-a-01", second).await;
                sleep(Duration::from_secs(1)).await;
            }
            assert_eq!(harness.draws().len(), frozen, "data was drawn");
            harness.press("j").await;
            assert_eq!(harness.draws().len(), frozen + 1, "the key was not drawn at once");
            harness.press("f").await;
            sleep(Duration::from_secs(5)).await;
            assert!(harness.draws().len() >= frozen + 6, "it goes on");
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn data_is_drawn_at_most_thirty_times_a_second_and_a_key_at_once() {
    let harness = LoopHarness::new(DashboardFixture::well().app);
    harness
        .while_running(async |harness| {
            sleep(Duration::from_secs(3)).await;
            let before = harness.draws().len();
            for tick in 0..2000 {
                harness.renew("pool-a-02", tick).await;
                sleep(Duration::from_millis(1)).await;
            }
            let draws = harness.draws().len() - before;
            assert!((40..=62).contains(&draws), "{draws} draws in two seconds of data");
            harness.renew("pool-a-02", 5000).await;
            sleep(Duration::from_millis(40)).await;
            harness.renew("pool-a-02", 5001).await;
            harness.press("j").await;
            let last = *harness.draws().last().expect("drawn");
            assert_eq!(Instant::now(), last, "not in the same instant");
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn effects_go_to_the_executor_and_their_outcomes_into_the_journal() {
    let mut harness = LoopHarness::new(DashboardFixture::well().app);
    let link = EffectExecutor::Recorder.start();
    (harness.effects, harness.outcomes) = (link.items, Some(link.outcomes));
    harness
        .while_running(async |harness| {
            // Only the controller renews its Lease, so all kubelets seem silent.
            for _ in 0..70 {
                harness.renew_leader().await;
                harness.send_health(FeedKind::Leases).await;
                sleep(Duration::from_secs(1)).await;
            }
            // Zooms the journal, because its lines are truncated beside other panes.
            harness.press("5").await;
            harness.press("z").await;
            let screen = harness.screen();
            assert!(screen.contains("expected, did not happen: mark node"), "{screen}");
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn effects_wait_without_blocking_anything_while_the_executor_is_busy() {
    let mut harness = LoopHarness::new(DashboardFixture::well().app);
    let (effects, mut effects_out) = mpsc::channel(1);
    harness.effects = effects;
    harness
        .while_running(async |harness| {
            for _ in 0..70 {
                harness.renew_leader().await;
                sleep(Duration::from_secs(1)).await;
            }
            let before = harness.draws().len();
            harness.press("j").await;
            assert_eq!(harness.draws().len(), before + 1, "the loop still answers");
            let mut nodes = Vec::new();
            while let Ok(Some(effect)) =
                tokio::time::timeout(Duration::from_millis(10), effects_out.recv()).await
            {
                if let Write::MarkUnknown { node, .. } = effect.write {
                    nodes.push(node);
                }
            }
            assert_eq!(nodes.len(), 30, "none was lost");
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn watches_that_end_are_named_and_the_screen_stays() {
    let harness = LoopHarness::new(DashboardFixture::well().app);
    harness
        .while_running(async |harness| {
            harness.feeds.lock().expect("no panic").take();
            sleep(Duration::from_secs(2)).await;
            let screen = harness.screen();
            assert!(screen.contains("the watches have ended"), "{screen}");
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn q_leaves_and_so_does_the_end_of_the_keys() {
    let harness = LoopHarness::new(DashboardFixture::well().app);
    let keys = harness.keys.clone();
    let left = harness.run();
    type_in(&keys, "jjq");
    left.await.expect("left in order");
    let harness = LoopHarness::new(DashboardFixture::well().app);
    let keys = harness.keys.clone();
    let left = harness.run();
    keys.close_channel();
    left.await.expect("left in order");
}

#[tokio::test(start_paused = true)]
async fn a_failing_terminal_ends_the_loop_with_an_error() {
    let harness = LoopHarness::new(DashboardFixture::well().app);
    let keys = harness.keys.clone();
    keys.unbounded_send(Err(io::Error::other("gone"))).expect("open");
    let error = harness.run().await.expect_err("it must not go on");
    assert_eq!(error.to_string(), "reading keys from the terminal: gone");
    assert!(matches!(error, RunError::Keys(_)));
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_is_the_screen_at_its_moment_with_the_keys_typed_before() {
    let fixture = DashboardFixture::incident();
    let (begin, until) = (fixture.now, fixture.now + Span::from_secs(7));
    let harness = LoopHarness::new(fixture.app);
    let keys = typed("3z").into_iter().map(|key| (begin + Span::from_secs(1), key)).collect();
    let (dashboard, _open) = harness.dashboard();
    let buffer = run::headless(dashboard, (120, 40), until, keys).await.expect("a frame");
    let text = snapshot::plain(&buffer);
    assert!(text.contains("3 Evictions") && !text.contains("2 Nodes"), "zoomed\n{text}");
    assert!(text.contains("~43s"), "50 s were left 7 s before\n{text}");
}

#[tokio::test(start_paused = true)]
async fn a_plan_is_computed_beside_the_loop_and_again_when_an_option_changes() {
    let harness = LoopHarness::new(DashboardFixture::maintenance().app);
    harness
        .while_running(async |harness| {
            let shows = async |text: &str| {
                // Paused time advances only while nothing is being computed, so the result is on the screen after this
                // pause.
                sleep(Duration::from_millis(100)).await;
                assert!(harness.screen().contains(text), "{text}\n{}", harness.screen());
            };
            harness.press("2/pool-a-01<Enter>r").await;
            shows("refused without the options marked !").await;
            harness.press("DEF").await;
            shows("1 pod blocked").await;
            harness.press("B").await;
            shows("completes in").await;
            harness.press("<Esc>").await;
            assert!(!harness.screen().contains("2 Plan"));
        })
        .await;
}

/// The dashboard's loop, and the other ends of its channels.
struct LoopHarness {
    app: Option<App>,
    clock: Clock,
    feeds: Mutex<Option<mpsc::Sender<FeedEvent>>>,
    feed_ends: Option<mpsc::Receiver<FeedEvent>>,
    effects: mpsc::Sender<Effect>,
    effects_out: Option<mpsc::Receiver<Effect>>,
    outcomes: Option<mpsc::Receiver<(EffectId, Outcome)>>,
    outcomes_in: Option<mpsc::Sender<(EffectId, Outcome)>>,
    keys: futures_mpsc::UnboundedSender<io::Result<Event>>,
    typed: Option<futures_mpsc::UnboundedReceiver<io::Result<Event>>>,
    recording: RecordingScreen,
}

impl LoopHarness {
    /// Creates the loop; its clock starts at the time up to which the fixture was simulated.
    fn new(app: App) -> Self {
        let clock = Clock::new(app.model.views.taken.max(dashboard_fixture::START), 1.0);
        let (feeds, feed_ends) = mpsc::channel(100);
        let (effects, effects_out) = mpsc::channel(1000);
        let (outcomes_in, outcomes) = mpsc::channel(1000);
        let (keys, typed) = futures_mpsc::unbounded();
        Self {
            app: Some(app),
            clock,
            feeds: Mutex::new(Some(feeds)),
            feed_ends: Some(feed_ends),
            effects,
            effects_out: Some(effects_out),
            outcomes: Some(outcomes),
            outcomes_in: Some(outcomes_in),
            keys,
            typed: Some(typed),
            recording: RecordingScreen::default(),
        }
    }

    /// Returns the dashboard, and the channel ends that have to stay open while it runs.
    fn dashboard(mut self) -> (Dashboard, Self) {
        let app = self.app.take().expect("taken once");
        let feeds = self.feed_ends.take().expect("taken once");
        let outcomes = self.outcomes.take().expect("taken once");
        let links = Links {
            feeds,
            effects: self.effects.clone(),
            outcomes,
            wanted: Default::default(),
            events: None,
        };
        (
            Dashboard {
                notify: NotifyOptions::default(),
                app,
                links: Some(links),
                clock: self.clock,
                context: None,
                player: None,
                history: None,
                preferences: None,
                opener: None,
            },
            self,
        )
    }

    async fn run(self) -> Result<(), RunError> {
        let mut recording = self.recording.clone();
        let (dashboard, mut open) = self.dashboard();
        let typed = open.typed.take().expect("taken once");
        run::run_dashboard(dashboard, &mut recording, typed).await
    }

    /// Runs the loop until the end of the script.
    async fn while_running(self, script: impl AsyncFnOnce(&Self)) {
        let mut recording = self.recording.clone();
        let (dashboard, mut open) = self.dashboard();
        let typed = open.typed.take().expect("taken once");
        let effects_out = open.effects_out.take();
        tokio::select! {
            biased;
            () = script(&open) => {}
            left = run::run_dashboard(dashboard, &mut recording, typed) => panic!("it left: {left:?}"),
        }
        drop((open.outcomes_in.take(), effects_out));
    }

    fn draws(&self) -> Vec<Instant> {
        self.recording.draws.lock().expect("no panic").clone()
    }

    fn screen(&self) -> String {
        self.recording.screen.lock().expect("no panic").clone()
    }

    /// Types keys and lets the loop handle them.
    async fn press(&self, keys: &str) {
        type_in(&self.keys, keys);
        yield_to_loop().await;
    }

    async fn send(&self, event: FeedEvent) {
        let feeds = self.feeds.lock().expect("no panic").clone().expect("open");
        feeds.send(event).await.expect("the loop runs");
    }

    async fn renew(&self, node: &str, version: u64) {
        let lease = Lease {
            node: node.into(),
            version: kordon_core::cluster::Version(1_000_000 + version),
            renewed: Some(ClusterTime::new(self.clock.now())),
            duration: Some(Span::from_secs(40)),
            written: None,
        };
        self.send(FeedEvent::Changes(vec![Change::Lease(kordon_core::cluster::ObjectEvent::Applied(lease))]))
            .await;
    }

    async fn renew_leader(&self) {
        let lease = LeaderLease {
            holder: "control-plane-2_5b0f7c1e".into(),
            acquired: Some(ClusterTime::new(Timestamp::from_secs(1_000_000))),
            renewed: Some(ClusterTime::new(self.clock.now())),
            duration: Some(Span::from_secs(15)),
            ..LeaderLease::default()
        };
        self.send(FeedEvent::Changes(vec![Change::Leader(Some(lease))])).await;
    }

    async fn send_health(&self, kind: FeedKind) {
        let last_heard = Some(self.clock.now());
        let health = FeedHealth { state: FeedState::Live, last_heard, relists: 0, requests: 3, bytes: 100 };
        self.send(FeedEvent::Health(kind, health)).await;
    }
}

fn type_in(keys: &futures_mpsc::UnboundedSender<io::Result<Event>>, text: &str) {
    for key in typed(text) {
        keys.unbounded_send(Ok(Event::Key(key))).expect("the loop runs");
    }
}

/// Lets all tasks run without advancing the time.
async fn yield_to_loop() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}
