//! Number of times that the dashboard draws a large cluster while no change arrives.

use std::time::Duration;

use crossterm::event::{Event, KeyCode};
use futures::{StreamExt, stream};
use kordon::{
    app::AppOptions,
    run::{self, Dashboard},
};
use tokio::time::{pause, timeout};

use crate::{loaded::ServedCluster, recording_screen::RecordingScreen};

/// Duration of a measurement. It is shorter than the grace period, because the Leases are not renewed here.
const SECONDS: usize = 20;

/// The screen is drawn once a second, and for each result of background work. The number of results depends on the
/// speed of the machine, but there are fewer than one a second.
#[test]
fn with_nothing_arriving_a_thousand_nodes_are_drawn_at_most_twice_a_second() {
    let draws = draws("");
    assert!((SECONDS - 2..=SECONDS * 2).contains(&draws), "{draws} draws in {SECONDS} s");
}

#[test]
fn a_frozen_screen_of_a_thousand_nodes_is_not_drawn() {
    let draws = draws("f");
    assert!(draws <= 2, "{draws} draws: more than the first and that of the key");
}

/// Types the keys, and returns the number of draws within [`SECONDS`].
fn draws(keys: &str) -> usize {
    let served = ServedCluster::new(1000, 1000);
    let session = served.load();
    let mut recording = RecordingScreen::default();
    served.runtime.block_on(async {
        pause();
        let typed = keys.chars().map(|key| Ok(Event::Key(KeyCode::Char(key).into())));
        let keys = stream::iter(typed.collect::<Vec<_>>()).chain(stream::pending());
        let dashboard = Dashboard::over(session, AppOptions::default(), None);
        let running = run::run_dashboard(dashboard, &mut recording, Box::pin(keys));
        let ended = timeout(Duration::from_secs(SECONDS as u64), running).await;
        assert!(ended.is_err(), "it left");
    });
    recording.draws.lock().expect("no panic").len()
}
