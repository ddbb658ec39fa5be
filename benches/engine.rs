//! Duration of the engine's main operations at scale: medians of 20 runs against their budgets. Run with `cargo bench
//! --bench engine`.

#[path = "median.rs"]
mod median;
#[path = "../crates/kordon-core/tests/simulations/sim.rs"]
mod sim;

use kordon_core::{
    engine::{ServerVersion, Settings},
    forecast::Forecast,
};
use kordon_time::Span;
use median::median;
use sim::Sim;

/// The same allocator as in the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const NODES: usize = 5_000;
const PODS: usize = 150_000;
/// Number of copies of the store that exist at the same time, to measure the memory of one copy.
const COPIES: u64 = 200;

fn main() {
    let settings = Settings::defaults(ServerVersion::new(1, 36));
    let mut sim = Sim::new();
    for number in 0..NODES {
        let zone = ["a", "b", "c"][number % 3];
        sim.add_node(&format!("node-{number:04}"), zone, Span::from_millis(2 * number as i64));
    }
    for number in 0..PODS {
        sim.add_pod(&format!("pod-{number:06}"), &format!("node-{:04}", number % NODES), Some(300));
    }
    sim.attach_shadow(settings);

    let before = resident();
    let copies: Vec<_> = (0..COPIES).map(|_| sim.cluster.clone()).collect();
    println!("memory of a copy of the store: {} KiB", resident().saturating_sub(before) / COPIES / 1024);
    drop(copies);
    let copy = median(|| (), |_| drop(std::hint::black_box(sim.cluster.clone())));
    println!("copy of the store, {NODES} nodes and {PODS} pods: {copy:?}");

    // After 20 s, every node has renewed its Lease since the last monitor pass.
    sim.run(Span::from_secs(20));
    let next_pass = sim.now + Span::from_secs(5);
    let attached = sim.shadow.clone().expect("attached");
    let pass = median(|| attached.clone(), |shadow| shadow.handle_timeout(&sim.cluster, next_pass));
    println!("monitor pass over {NODES} nodes: {pass:?} (budget 4 ms)");

    let forecast = |sim: &Sim| {
        let shadow = sim.shadow.as_ref().expect("attached");
        Forecast::run(shadow, &sim.cluster, sim.now, Span::from_secs(1800))
    };
    let peace = median(|| (), |_| drop(std::hint::black_box(forecast(&sim))));
    println!("forecast of 30 minutes of peace: {peace:?}");

    for number in (0..NODES).step_by(3) {
        sim.silence(&format!("node-{number:04}"));
    }
    sim.run(Span::from_secs(30));
    let (lost, steps) = (NODES / 3, forecast(&sim).steps.len());
    let loss = median(|| (), |_| drop(std::hint::black_box(forecast(&sim))));
    println!("forecast of 30 minutes after losing a zone of {lost} nodes ({steps} steps): {loss:?}");
    let charted = |sim: &Sim| forecast(sim).with_chart(sim.shadow.as_ref().expect("attached"), &sim.cluster);
    let chart = median(|| (), |_| drop(std::hint::black_box(charted(&sim))));
    println!("the same with its chart: {chart:?}");
}

/// Returns the resident memory of this process in bytes; 0 if the kernel does not report it.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
