//! What kordon foretells against what the real controllers do, while nodes fail and recover at random: for each thing
//! they did, the last forecast made five seconds before; and for each thing foretold, whether it came.
//!
//! Asserts that everything was foretold, for the right reasons, or that something explains why it could not be.
//! Prints by how much the times were off. Left out as `tests/e2e/control_plane.rs` says.
//!
//! Three minutes; `KORDON_RUN=1h` runs as long as it says, and then times that are off by more than a monitor period
//! and a second fail too. `KORDON_SEED` is another script of incidents.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Node;
use kordon::{
    clock::Clock,
    time::{Span, Timestamp},
};
use kube::{Api, api::ListParams};

use crate::harness::{
    eventually::eventually,
    judge::{GROSS, Judge},
    kubelets::{Beats, Kubelets, NodeSpec},
    observer::Observer,
    plane::{self, ControllerManager, Options, Plane},
    player::Player,
    say,
    script::{self, Due, Zone},
    witness::Witness,
};

/// One zone is large for the controller's `--large-cluster-size-threshold`, two are small.
const ZONES: [Zone; 3] =
    [Zone { name: "a", nodes: 26 }, Zone { name: "b", nodes: 20 }, Zone { name: "c", nodes: 14 }];
/// What admission gives pods here, in place of 300 s.
const TOLERATION: u32 = 11;
/// After the last incident, until everything that follows from it has been judged.
const AFTERMATH: Span = Span::from_secs(30);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_foretold_is_what_the_real_controllers_do() {
    let Some(binary) = plane::binary("e2e_forecasts").unwrap() else { return };
    let mut plane = Plane::start(&binary, Options { toleration_seconds: TOLERATION, ..Options::default() })
        .await
        .unwrap();
    if let Err(error) = failures_and_recoveries(&mut plane).await {
        panic!("{error:#}");
    }
}

async fn failures_and_recoveries(plane: &mut Plane) -> Result<()> {
    let long = std::env::var("KORDON_RUN").ok();
    let length = match &long {
        Some(text) => humantime::parse_duration(text).context("KORDON_RUN")?.into(),
        None => Span::from_secs(180),
    };
    let seed = std::env::var("KORDON_SEED").ok().map_or(Ok(1), |text| text.parse()).context("KORDON_SEED")?;
    let incidents = script::write(&ZONES, seed, length);
    let manager = ControllerManager {
        monitor_period: Span::from_secs(2),
        grace_period: Span::from_secs(16),
        startup_grace_period: Span::from_secs(20),
        eviction_rate: 0.15,
        secondary_eviction_rate: 0.08,
        large_cluster_threshold: 22,
        ..ControllerManager::default()
    };
    say(&format!("e2e_forecasts: {length} of incidents, seed {seed}: {} deeds", incidents.len()));

    let client = plane.client();
    let specs = ZONES.iter().flat_map(|zone| zone.names().map(|name| NodeSpec::new(name, zone.name)));
    let player =
        Player::new(client.clone(), Kubelets::start(&client, specs.collect(), Beats::default()).await?);
    player.fill().await?;
    plane.start_controller_manager(&manager)?;
    settle(plane).await?;
    let witness = Witness::start(&client).await?;
    let observer = Observer::start(client, manager.settings()?);
    // Long enough for the observer to have seen every node renew its lease.
    tokio::time::sleep(Duration::from_secs(8)).await;

    let nodes = ZONES.iter().flat_map(|zone| zone.names());
    let judge = Judge::new(nodes, &manager);
    let judge = play(plane, &incidents, &player, &witness, observer, judge).await?;
    say(&format!("e2e_forecasts: seed {seed}\n{judge}"));
    for (sort, tally) in judge.tallies() {
        let is_wrong = |off: &Option<Span>| off.is_none_or(|off| long.is_some() || off.max(-off) > GROSS);
        let wrong: Vec<&str> = tally
            .unexplained
            .iter()
            .filter(|miss| is_wrong(&miss.off))
            .map(|miss| miss.text.as_str())
            .collect();
        ensure!(wrong.is_empty(), "{sort}, with seed {seed}: {}", wrong.join("\n"));
    }
    let absent = &judge.reverse().absent;
    ensure!(absent.is_empty(), "with seed {seed}: {}", absent.join("\n"));
    Ok(())
}

/// Plays the script to its end and judges as it goes.
async fn play(
    plane: &mut Plane,
    script: &[Due],
    player: &Player,
    witness: &Witness,
    mut observer: Observer,
    mut judge: Judge,
) -> Result<Judge> {
    let clock = Clock::system();
    let begun = clock.now();
    let (mut played, mut heard, mut minutes) = (0, 0, 0);
    let ends = begun + script.last().map_or(Span::ZERO, |due| due.at) + AFTERMATH;
    while clock.now() < ends {
        let due = |due: &&Due| begun + due.at <= clock.now();
        let count = script[played..].iter().take_while(due).count();
        judge.hear_deeds(player.play(&script[played..played + count]).await?);
        played += count;
        judge.hear_looks(observer.looks());
        let effects = witness.beyond(heard);
        heard += effects.len();
        judge.hear_effects(effects);
        for unexplained in judge.judge(clock.now()) {
            say(&format!("e2e_forecasts: {:>7.1} s: {unexplained}", since(begun, clock)));
        }
        if clock.now().since(begun) > Span::from_secs(60) * (minutes + 1) {
            minutes += 1;
            plane.check()?;
            say(&format!("e2e_forecasts: after {minutes} minutes\n{judge}"));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let model = observer.finish().await?;
    ensure!(model.engine.is_some(), "the observer never began: {:?}", model.feeds);
    Ok(judge)
}

fn since(begun: Timestamp, clock: Clock) -> f64 {
    clock.now().since(begun).as_secs_f64()
}

/// Waits until the controllers have taken off the taint that new nodes get.
async fn settle(plane: &mut Plane) -> Result<()> {
    let nodes = Api::<Node>::all(plane.client());
    eventually("nodes without taints", Span::from_secs(30), async || {
        plane.check()?;
        let listed = nodes.list(&ListParams::default()).await?;
        let tainted = |node: &Node| node.spec.as_ref().is_some_and(|spec| spec.taints.is_some());
        Ok((!listed.iter().any(tainted)).then_some(()))
    })
    .await
}
