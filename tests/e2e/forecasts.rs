//! Forecasts compared with the real controllers, while nodes fail and recover at random, and while the controller
//! manager is killed, replaced by a standby, and paused for 20 s and 60 s. Each event is compared with the last
//! forecast made at least five seconds before, and each prediction with the events.
//!
//! Asserts that every event was predicted with the right causes in the right order, and that no time is off by more
//! than a monitor period and a second, unless there is an explanation. Prints how many predictions were right, and the
//! errors of their times.
//!
//! A second test runs for 90 s with a clock that is 28 s behind the cluster's.
//!
//! Takes four minutes. With `KORDON_RUN=1h`, each test runs for that time. `KORDON_SEED` selects another script of
//! incidents.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Node;
use kordon_clock::Clock;
use kordon_time::{Span, Timestamp};
use kube::{Api, api::ListParams};

use crate::harness::{
    effect_watcher::EffectWatcher,
    eventually::eventually,
    forecast_checker::ForecastChecker,
    incident_player::IncidentPlayer,
    kubelets::{Heartbeats, Kubelets, NodeSpec},
    observer::Observer,
    plane::{self, ControllerManager, Options, Plane},
    say,
    script::{self, IncidentAction, ScheduledAction, Zone},
};

/// Zone a is large by the controller's `--large-cluster-size-threshold`, the other two are small.
const ZONES: [Zone; 3] =
    [Zone { name: "a", nodes: 26 }, Zone { name: "b", nodes: 20 }, Zone { name: "c", nodes: 14 }];
/// The `tolerationSeconds` that admission adds in this test; the default is 300.
const TOLERATION: u32 = 11;
/// The time after the last incident until all of its effects have been checked.
const AFTERMATH: Span = Span::from_secs(30);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_real_controllers_do_what_is_predicted() {
    let Some(binary) = plane::binary("e2e_forecasts").unwrap() else { return };
    let mut plane = Plane::start(&binary, Options { toleration_seconds: TOLERATION, ..Options::default() })
        .await
        .unwrap();
    if let Err(error) = failures_and_recoveries(&mut plane, Span::from_secs(180), Span::ZERO).await {
        panic!("{error:#}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_real_controllers_do_what_is_predicted_with_a_clock_that_is_behind() {
    let Some(binary) = plane::binary("e2e_forecasts").unwrap() else { return };
    let mut plane = Plane::start(&binary, Options { toleration_seconds: TOLERATION, ..Options::default() })
        .await
        .unwrap();
    if let Err(error) = failures_and_recoveries(&mut plane, Span::from_secs(90), Span::from_secs(-28)).await {
        panic!("{error:#}");
    }
}

/// Runs incidents for `length`, or for `KORDON_RUN`. kordon's clock is `ahead` of the cluster's.
async fn failures_and_recoveries(plane: &mut Plane, length: Span, ahead: Span) -> Result<()> {
    let length = match std::env::var("KORDON_RUN") {
        Ok(text) => humantime::parse_duration(&text).context("KORDON_RUN")?.into(),
        Err(_) => length,
    };
    let seed = std::env::var("KORDON_SEED").ok().map_or(Ok(1), |text| text.parse()).context("KORDON_SEED")?;
    let incidents = script::write(&ZONES, seed, length);
    ensure!(!incidents.is_empty(), "no incident fits into {length}");
    let manager = ControllerManager {
        monitor_period: Span::from_secs(2),
        grace_period: Span::from_secs(16),
        startup_grace_period: Span::from_secs(20),
        eviction_rate: 0.15,
        secondary_eviction_rate: 0.08,
        large_cluster_threshold: 22,
        ..ControllerManager::default()
    }
    .with_short_lease();
    say(&format!("e2e_forecasts: {length} of incidents, seed {seed}: {} actions", incidents.len()));

    let client = plane.client();
    let specs = ZONES.iter().flat_map(|zone| zone.names().map(|name| NodeSpec::new(name, zone.name)));
    let player = IncidentPlayer::new(
        client.clone(),
        Kubelets::start(&client, specs.collect(), Heartbeats::default()).await?,
    );
    player.fill().await?;
    plane.start_controller_manager(&manager)?;
    wait_until_untainted(plane).await?;
    let watcher = EffectWatcher::start(&client).await?;
    let observer = Observer::start_with_clock(client, manager.settings()?, ahead);
    // Waits until every node has renewed its Lease while the observer watches.
    tokio::time::sleep(Duration::from_secs(8)).await;

    let nodes = ZONES.iter().flat_map(|zone| zone.names());
    let checker = ForecastChecker::new(nodes, &manager);
    let checker = play(plane, &manager, &incidents, &player, &watcher, observer, checker).await?;
    say(&format!("e2e_forecasts: seed {seed}\n{checker}"));
    for (kind, tally) in checker.tallies() {
        let wrong: Vec<&str> = tally.unexplained.iter().map(|miss| miss.text.as_str()).collect();
        ensure!(wrong.is_empty(), "{kind}, with seed {seed}: {}", wrong.join("\n"));
    }
    let wrong = &checker.out_of_order;
    ensure!(wrong.is_empty(), "with seed {seed}: {} explanations, the first: {}", wrong.len(), wrong[0]);
    let absent = &checker.predictions().absent;
    ensure!(absent.is_empty(), "with seed {seed}: {}", absent.join("\n"));
    Ok(())
}

/// Plays the script to its end, and checks the forecasts while it runs.
async fn play(
    plane: &mut Plane,
    manager: &ControllerManager,
    script: &[ScheduledAction],
    player: &IncidentPlayer,
    watcher: &EffectWatcher,
    mut observer: Observer,
    mut checker: ForecastChecker,
) -> Result<ForecastChecker> {
    let clock = Clock::system();
    let started = clock.now();
    let (mut played, mut effects_checked, mut minutes) = (0, 0, 0);
    let ends = started + script.last().map_or(Span::ZERO, |scheduled| scheduled.at) + AFTERMATH;
    while clock.now() < ends {
        let scheduled = |scheduled: &&ScheduledAction| started + scheduled.at <= clock.now();
        let count = script[played..].iter().take_while(scheduled).count();
        checker.add_actions(player.play(&script[played..played + count], plane, manager).await?);
        played += count;
        if plane.revive_controller_manager(manager)? {
            checker.add_consequence(clock.now(), IncidentAction::RestartController);
        }
        checker.add_samples(observer.samples());
        let effects = watcher.after(effects_checked);
        effects_checked += effects.len();
        checker.add_effects(effects);
        for unexplained in checker.check(clock.now()) {
            say(&format!("e2e_forecasts: {:>7.1} s: {unexplained}", since(started, clock)));
        }
        if clock.now().since(started) > Span::from_secs(60) * (minutes + 1) {
            minutes += 1;
            plane.check()?;
            say(&format!("e2e_forecasts: after {minutes} minutes\n{checker}"));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let model = observer.finish().await?;
    ensure!(model.engine.is_some(), "the observer never started: {:?}", model.feeds);
    Ok(checker)
}

fn since(started: Timestamp, clock: Clock) -> f64 {
    clock.now().since(started).as_secs_f64()
}

/// Waits until the controllers have removed the taint that new nodes get.
async fn wait_until_untainted(plane: &mut Plane) -> Result<()> {
    let nodes = Api::<Node>::all(plane.client());
    eventually("nodes without taints", Span::from_secs(30), async || {
        plane.check()?;
        let listed = nodes.list(&ListParams::default()).await?;
        let tainted = |node: &Node| node.spec.as_ref().is_some_and(|spec| spec.taints.is_some());
        Ok((!listed.iter().any(tainted)).then_some(()))
    })
    .await
}
