//! kordon's display while it is disconnected and while no controller is active: the real API server stops, and the real
//! controller manager stops and another one becomes the leader.
//!
//! `KORDON_OUTAGE` is the number of seconds for which the API server is down. The default of 70 is longer than the
//! grace period.

use std::time::Duration;

use anyhow::{Result, ensure};
use kordon_core::engine::{Confidence, Settings};
use kordon_time::Span;

use crate::harness::{
    kubelets::{Heartbeats, Kubelets, NodeSpec},
    observer::{Observer, ObserverState},
    plane::{self, ControllerManager, Options, Plane},
    say,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outages_are_reported_and_no_node_is_marked() {
    let Some(binary) = plane::binary("e2e_outage").unwrap() else { return };
    let mut plane = Plane::start(&binary, Options::default()).await.unwrap();
    if let Err(error) = outages(&mut plane).await {
        panic!("{error:#}");
    }
}

async fn outages(plane: &mut Plane) -> Result<()> {
    let client = plane.client();
    let specs =
        (1..=6).map(|number| NodeSpec::new(format!("n{number}"), ["a", "b", "c"][number % 3])).collect();
    let kubelets = Kubelets::start(&client, specs, Heartbeats::default()).await?;
    let manager = ControllerManager { grace_period: Span::from_secs(50), ..ControllerManager::default() }
        .with_short_lease();
    plane.start_controller_manager(&manager)?;
    let mut observer = Observer::start(client, Settings::defaults(plane::VERSION));
    observer.wait_until("a leader", Duration::from_secs(40), is_live).await?;

    api_server_goes_away(plane, &manager, &mut observer).await?;
    controller_goes_away(plane, &manager, &mut observer, &kubelets).await?;
    observer.finish().await?;
    Ok(())
}

/// The API server is down for longer than the grace period. During this time kordon cannot observe renewals, and must
/// not treat the nodes as silent.
async fn api_server_goes_away(
    plane: &mut Plane,
    manager: &ControllerManager,
    observer: &mut Observer,
) -> Result<()> {
    let seconds_down = std::env::var("KORDON_OUTAGE").ok().and_then(|text| text.parse().ok()).unwrap_or(70);
    let started = tokio::time::Instant::now();
    plane.kill_api_server()?;
    let disconnected =
        |state: &ObserverState| matches!(state.confidence, Some(Confidence::Disconnected { .. }));
    let state = observer.wait_until("disconnected", Duration::from_secs(30), disconnected).await?;
    say(&format!(
        "e2e_outage: disconnected {:.1} s after the API server was killed",
        started.elapsed().as_secs_f64()
    ));
    ensure!(state.predicted == 0, "predicted while disconnected: {state:#?}");
    tokio::time::sleep_until(started + Duration::from_secs(seconds_down)).await;
    // A controller manager that cannot renew its Lease exits; in a cluster its kubelet restarts it.
    plane.kill_controller_manager()?;
    plane.start_api_server().await?;
    let back = tokio::time::Instant::now();
    plane.start_controller_manager(manager)?;
    let live_again = |state: &ObserverState| is_live(state) && says(state, "starts again");
    let state =
        observer.wait_until("live again, with another leader", Duration::from_secs(60), live_again).await?;
    say(&format!("e2e_outage: live {:.1} s after the API server was back", back.elapsed().as_secs_f64()));
    ensure!(!marked_a_node(&state), "a node was marked Unknown while disconnected: {state:#?}");
    Ok(())
}

async fn controller_goes_away(
    plane: &mut Plane,
    manager: &ControllerManager,
    observer: &mut Observer,
    kubelets: &Kubelets,
) -> Result<()> {
    plane.stop_controller_manager().await?;
    let no_leader = |state: &ObserverState| {
        matches!(state.confidence, Some(Confidence::NoController { .. })) && says(state, "no evictions")
    };
    observer.wait_until("no leader", Duration::from_secs(40), no_leader).await?;
    kubelets.silence("n1").await?;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let state = observer.wait_until("still no leader", Duration::from_secs(1), no_leader).await?;
    ensure!(state.predicted == 0, "predicted without a controller: {state:#?}");
    plane.start_controller_manager(manager)?;
    let state = observer
        .wait_until(
            "another leader, and a prediction for the silent node",
            Duration::from_secs(40),
            |state| is_live(state) && state.predicted > 0,
        )
        .await?;
    ensure!(says(&state, "new leader"), "{state:#?}");
    Ok(())
}

fn is_live(state: &ObserverState) -> bool {
    state.confidence == Some(Confidence::Live)
}

/// Whether kordon's shadow controller decided to mark a node Unknown.
fn marked_a_node(state: &ObserverState) -> bool {
    state.recorded.iter().any(|(_, what)| what.contains("Unknown"))
}

fn says(state: &ObserverState, what: &str) -> bool {
    state.journal.iter().any(|text| text.contains(what))
}
