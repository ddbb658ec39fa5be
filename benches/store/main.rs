//! What the dashboard takes on a large cluster, beside a bare client of the same API server; each with its budget.
//!
//! `cargo bench --bench store`, or with fewer nodes and pods: `cargo bench --bench store -- 500 15000`. The commands that
//! answer and end, alone: `cargo bench --bench store -- commands`.

#![expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]

mod bare;
mod commands;
mod dashboard;
mod demo;
#[path = "../median.rs"]
mod median;
mod process;

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

use bare::Bare;
use dashboard::Dashboard;
use demo::Demo;

/// The same as the program's, so that both clients allocate alike.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Load while keys are typed: with 5,000 nodes there are 500 renewals of leases a second beside them.
const POD_CHANGES_A_SECOND: &str = "200";
const KEYS: usize = 200;
const UNDER_LOAD: Duration = Duration::from_secs(30);
/// Shorter than a silence of the leases that makes the dashboard ask what is wrong.
const QUIET: Duration = Duration::from_secs(8);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let [what, server] = arguments.as_slice()
        && what == bare::ARGUMENT
    {
        return bare::run(server);
    }
    let (alone, counts) = match arguments.as_slice() {
        [first, counts @ ..] if first == "commands" => (true, counts),
        counts => (false, counts),
    };
    let count = |place: usize, default| counts.get(place).map_or(Ok(default), |text| text.parse());
    match (count(0, 5_000), count(1, 150_000)) {
        (Ok(nodes), Ok(pods)) if alone => commands_alone(nodes, pods),
        (Ok(nodes), Ok(pods)) => measure(nodes, pods),
        (Err(error), _) | (_, Err(error)) => println!("not a number of nodes or pods: {error}"),
    }
}

fn commands_alone(nodes: usize, pods: usize) {
    let demo = Demo::start(nodes, pods, "0");
    demo.settle();
    commands::measure(&demo);
}

fn measure(nodes: usize, pods: usize) {
    let demo = Demo::start(nodes, pods, "0");
    demo.settle();
    loading(&demo, nodes);
    commands::measure(&demo);
    drop(demo);
    let demo = Demo::start(nodes, pods, POD_CHANGES_A_SECOND);
    demo.settle();
    load(&demo, nodes);
}

/// From the start of the process to all nodes and to all pods: the bare client, the dashboard, the bare client again.
fn loading(demo: &Demo, nodes: usize) {
    let first = Bare::measure(&demo.server);
    let mut dashboard = Dashboard::start(&demo.server);
    let nodes_shown = dashboard.wait_for_nodes(nodes);
    let pods_shown = dashboard.wait_for_pods();
    let peak = dashboard.process().peak_mib();
    println!("{}\n", dashboard.screen());
    drop(dashboard);
    let second = Bare::measure(&demo.server);
    println!(
        "API server: {} nodes, {} pods of {} bytes on average",
        first.nodes, first.pods, first.pod_bytes
    );
    println!("bare client, nodes listed:      {:?} and {:?}", first.to_nodes, second.to_nodes);
    println!("bare client, everything listed: {:?} and {:?}", first.to_pods, second.to_pods);
    println!("bare client, peak memory:       {:.0} MiB", first.peak_mib);
    let ratio = |took: Duration, one: Duration, other: Duration| {
        took.as_secs_f64() / ((one + other).as_secs_f64() / 2.0)
    };
    let times = ratio(nodes_shown, first.to_nodes, second.to_nodes);
    println!("dashboard, frame with all nodes: {nodes_shown:?}, {times:.2} times the bare client (budget 2)");
    let times = ratio(pods_shown, first.to_pods, second.to_pods);
    println!(
        "dashboard, all pods joined:      {pods_shown:?}, {times:.2} times the bare client (budget 1.5)"
    );
    println!("dashboard, peak memory:          {peak:.0} MiB (budget 600)");
}

/// How long it takes until a key shows.
fn key_delays(dashboard: &mut Dashboard, view: &str) {
    let mut delays: Vec<Duration> = (0..KEYS).map(|number| dashboard.key_to_frame(number)).collect();
    delays.sort();
    let quantile = |share: f64| delays[((KEYS - 1) as f64 * share).round() as usize];
    println!(
        "key to frame, {view}, {KEYS} keys: median {:?}, p99 {:?} (budget 16 ms), longest {:?}",
        quantile(0.5),
        quantile(0.99),
        quantile(1.0),
    );
}

/// With everything joined: what changes cost, how soon a key shows, and what is drawn when there is nothing to draw.
fn load(demo: &Demo, nodes: usize) {
    let mut dashboard = Dashboard::start(&demo.server);
    dashboard.wait_for_nodes(nodes);
    dashboard.wait_for_pods();
    // What the end of the lists has set off is over.
    sleep(Duration::from_secs(5));
    let (cpu, server) = (dashboard.process().cpu(), demo.process().cpu());
    let revision = demo.revision();
    let begun = Instant::now();
    sleep(UNDER_LOAD);
    let took = begun.elapsed().as_secs_f64();
    let share = |used: Duration| 100.0 * used.as_secs_f64() / took;
    let (cpu, server) = (dashboard.process().cpu() - cpu, demo.process().cpu() - server);
    println!(
        "load: {:.0} writes a second, {POD_CHANGES_A_SECOND} of them pods; the API server takes {:.0} % of a core",
        (demo.revision() - revision) as f64 / took,
        share(server),
    );
    println!("dashboard under load: {:.1} % of a core over {took:.0} s (budget 10)", share(cpu));

    key_delays(&mut dashboard, "under load");
    // Each view, and the keys that lead to it from the one before.
    for (view, keys) in
        [("zone map", "1z"), ("nodes by zone", "z2G"), ("groups folded", "F"), ("nodes", "FGGG")]
    {
        dashboard.press(keys);
        key_delays(&mut dashboard, view);
    }
    println!("dashboard, peak memory after all that: {:.0} MiB (budget 600)", dashboard.process().peak_mib());

    let (frames, took) = dashboard.frames_during(UNDER_LOAD / 3);
    println!("redraws under load: {:.1} a second (budget 30)", frames as f64 / took.as_secs_f64());
    dashboard.freeze();
    let (frames, took) = dashboard.frames_during(QUIET);
    println!("redraws while frozen, under load: {frames} in {took:.1?} (budget 0)");
    dashboard.freeze();
    demo.hold();
    // What was on its way has arrived.
    sleep(Duration::from_secs(1));
    let (frames, took) = dashboard.frames_during(QUIET);
    demo.go_on();
    println!(
        "redraws with nothing arriving: {frames} in {took:.1?}, {:.2} a second (budget 1)",
        frames as f64 / took.as_secs_f64()
    );
}
