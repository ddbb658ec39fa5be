//! What kordon says when it cannot see, and when nobody acts: the real API server goes away, the real controller
//! manager goes away and another one leads.
//!
//! Left out as `tests/e2e/control_plane.rs` says. `KORDON_OUTAGE` is how many seconds the API server stays away (20).

use std::time::Duration;

use anyhow::{Result, ensure};
use kordon::{
    engine::{Confidence, ServerVersion, Settings},
    time::Span,
};

use crate::harness::{
    kubelets::{Beats, Kubelets, NodeSpec},
    observer::{Glance, Observer},
    plane::{self, ControllerManager, Options, Plane},
    say,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blindness_and_absence_are_told_and_judge_nobody() {
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
    let kubelets = Kubelets::start(&client, specs, Beats::default()).await?;
    let manager = ControllerManager {
        grace_period: Span::from_secs(50),
        leader_elect: true,
        flags: ["lease-duration=6s", "renew-deadline=4s", "retry-period=1s"]
            .map(|flag| format!("--leader-elect-{flag}"))
            .into(),
        ..ControllerManager::default()
    };
    plane.start_controller_manager(&manager)?;
    let mut observer = Observer::start(client, Settings::defaults(ServerVersion::new(1, 36)));
    observer.thinks("a leader is seen", Duration::from_secs(40), is_firm).await?;

    api_server_goes_away(plane, &manager, &mut observer).await?;
    controller_goes_away(plane, &manager, &mut observer, &kubelets).await?;
    observer.finish().await?;
    Ok(())
}

/// Longer than any silence that the watches put up with; in the benchmark, longer than the grace period.
async fn api_server_goes_away(
    plane: &mut Plane,
    manager: &ControllerManager,
    observer: &mut Observer,
) -> Result<()> {
    let away = std::env::var("KORDON_OUTAGE").ok().and_then(|text| text.parse().ok()).unwrap_or(20);
    let begun = tokio::time::Instant::now();
    plane.kill_api_server()?;
    let blind = |glance: &Glance| matches!(glance.footing, Some(Confidence::Disconnected { .. }));
    let glance = observer.thinks("the outage is noticed", Duration::from_secs(30), blind).await?;
    say(&format!("e2e_outage: blind {:.1} s after the API server was killed", begun.elapsed().as_secs_f64()));
    ensure!(glance.foretold == 0, "foretold while blind: {glance:#?}");
    tokio::time::sleep_until(begun + Duration::from_secs(away)).await;
    // A controller manager that cannot renew its lease ends; in a cluster its kubelet starts it again.
    plane.kill_controller_manager()?;
    plane.start_api_server().await?;
    let back = tokio::time::Instant::now();
    plane.start_controller_manager(manager)?;
    let led = |glance: &Glance| is_firm(glance) && says(glance, "begins anew");
    let glance =
        observer.thinks("sight is back, and another one leads", Duration::from_secs(60), led).await?;
    say(&format!("e2e_outage: firm {:.1} s after the API server was back", back.elapsed().as_secs_f64()));
    ensure!(!judged(&glance), "a node was judged by a blind shadow: {glance:#?}");
    Ok(())
}

async fn controller_goes_away(
    plane: &mut Plane,
    manager: &ControllerManager,
    observer: &mut Observer,
    kubelets: &Kubelets,
) -> Result<()> {
    plane.stop_controller_manager().await?;
    let nobody = |glance: &Glance| {
        matches!(glance.footing, Some(Confidence::NoController { .. })) && says(glance, "nothing will happen")
    };
    observer.thinks("nobody leads", Duration::from_secs(40), nobody).await?;
    kubelets.silence("n1").await?;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let glance = observer.thinks("still nobody", Duration::from_secs(1), nobody).await?;
    ensure!(glance.foretold == 0, "foretold though nobody acts: {glance:#?}");
    plane.start_controller_manager(manager)?;
    let glance = observer
        .thinks("another one leads and the silent node is foretold", Duration::from_secs(40), |glance| {
            is_firm(glance) && glance.foretold > 0
        })
        .await?;
    ensure!(says(&glance, "leads now"), "{glance:#?}");
    Ok(())
}

fn is_firm(glance: &Glance) -> bool {
    glance.footing == Some(Confidence::Live)
}

/// Whether the shadow would have marked any node.
fn judged(glance: &Glance) -> bool {
    glance.recorded.iter().any(|(_, what)| what.contains("Unknown"))
}

fn says(glance: &Glance, what: &str) -> bool {
    glance.journal.iter().any(|text| text.contains(what))
}
