//! How long the engine takes at scale: medians of 20 against their budgets. `cargo bench --bench engine`.

#[path = "../tests/common/sim.rs"]
mod sim;

use std::time::{Duration, Instant};

use kordon::{
    engine::{ServerVersion, Settings},
    forecast::Forecast,
    time::Span,
};
use sim::Sim;

const NODES: usize = 5_000;
const PODS: usize = 150_000;
const RUNS: usize = 20;

fn main() {
    let settings = Settings::defaults(ServerVersion::new(1, 36));
    let mut sim = Sim::new();
    for number in 0..NODES {
        let zone = ["a", "b", "c"][number % 3];
        sim.add_node(&format!("node-{number:04}"), zone, Span::from_secs(3600));
    }
    for number in 0..PODS {
        sim.add_pod(&format!("pod-{number:06}"), &format!("node-{:04}", number % NODES), Some(300));
    }
    sim.attach_shadow(settings);

    let copy = median(|| drop(std::hint::black_box(sim.cluster.clone())));
    println!("copy of the store, {NODES} nodes and {PODS} pods: {copy:?}");

    let mut shadow = sim.shadow.clone().expect("attached");
    let mut now = sim.now;
    let pass = median(|| {
        now += Span::from_secs(6);
        for node in sim.cluster.nodes().iter() {
            shadow.assume_alive(&node.name);
        }
        shadow.handle_timeout(&sim.cluster, now);
    });
    println!("monitor pass over {NODES} nodes: {pass:?} (budget 4 ms)");

    let peace = median(|| {
        let shadow = sim.shadow.as_ref().expect("attached");
        std::hint::black_box(Forecast::run(shadow, &sim.cluster, Span::ZERO, sim.now, Span::from_secs(1800)));
    });
    println!("forecast of 30 minutes of peace: {peace:?}");

    for number in (0..NODES).step_by(3) {
        sim.silence(&format!("node-{number:04}"));
    }
    sim.run(Span::from_secs(20));
    let shadow = sim.shadow.as_ref().expect("attached");
    let steps = Forecast::run(shadow, &sim.cluster, Span::ZERO, sim.now, Span::from_secs(1800)).steps.len();
    let loss = median(|| {
        std::hint::black_box(Forecast::run(shadow, &sim.cluster, Span::ZERO, sim.now, Span::from_secs(1800)));
    });
    println!(
        "forecast of 30 minutes after losing a zone of {} nodes ({steps} steps): {loss:?} (budget 250 ms)",
        NODES / 3
    );
}

fn median(mut run: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let begun = Instant::now();
            run();
            begun.elapsed()
        })
        .collect();
    times.sort();
    times[RUNS / 2]
}
