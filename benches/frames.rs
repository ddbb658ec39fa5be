//! Duration of a frame on a large cluster with a silent zone: the 99th percentile of 200 frames against its budget.
//! Also measures each step of the dashboard's loop while all pods of the zone are evicted. `cargo bench --bench
//! frames`; `cargo bench --bench frames -- loop` measures the loop alone.

#[path = "../tests/program/dashboard_fixture.rs"]
mod dashboard_fixture;
#[path = "median.rs"]
mod median;

use std::{
    borrow::Cow,
    hint::black_box,
    time::{Duration, Instant},
};

use dashboard_fixture::{DashboardFixture, START};
use kordon::{
    k8s::feed::FeedEvent,
    model::{HORIZON, Horizon},
    run::Surface,
};
use kordon_core::{
    cluster::{Change, Key, Lease, ObjectEvent, Toleration, TolerationOperator, Version, WorkloadKind},
    engine::Origin,
    forecast::{Forecast, fold},
    plan::Cancellation,
};
use kordon_time::{ClusterTime, Span};
use median::{median, percentile_of};
use ratatui::{Terminal, backend::TestBackend};

/// The same allocator as in the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const NODES: usize = 5_000;
const PODS_A_NODE: usize = 6;
/// Pods on each node while the loop is measured.
const MANY_PODS_A_NODE: usize = 30;

fn main() {
    let parts: Vec<String> = std::env::args().skip(1).filter(|part| !part.starts_with('-')).collect();
    if parts.is_empty() {
        draw_frames();
    }
    if parts.is_empty() || parts.iter().any(|part| part == "loop") {
        time_loop();
    }
}

fn draw_frames() {
    let mut fixture = DashboardFixture::new();
    let name = |number: usize| format!("node-{number:04}");
    for number in 0..NODES {
        fixture.add_node(&name(number), ["a", "b", "c"][number % 3]);
        for pod in 0..PODS_A_NODE {
            let key = format!("shop/web-{number:04}-{pod}");
            fixture.add_pod(&key, &name(number), WorkloadKind::ReplicaSet, Vec::new(), 100, 128);
        }
    }
    fixture.lists();
    fixture.run(20);
    for number in (0..NODES).step_by(3) {
        fixture.silence(&name(number));
    }
    fixture.run(60);

    let forecast = fixture.app.model.predictions.forecast().expect("a zone is silent");
    let lanes: Vec<_> = forecast.chart.lanes.iter().map(Cow::Borrowed).collect();
    let folding = median(|| (), |_| drop(black_box(fold(&lanes, 40, Horizon::default().alike()))));
    println!("folding {} lanes of the forecast: {folding:?}", lanes.len());
    let panes =
        [("all panes", "2"), ("the forecast zoomed", "4z"), ("the zone map", "z1z"), ("groups", "z2G")];
    for (pane, keys) in panes {
        fixture.press(keys);
        for (width, height) in [(80, 24), (160, 48), (220, 60)] {
            let terminal = || Terminal::new(TestBackend::new(width, height)).expect("a buffer");
            let drawn = terminal().draw_app(&fixture.app, fixture.now).expect("a buffer");
            fixture.app.screen.drawn(&drawn.rows);
            fixture.app.arrange(fixture.now);
            let frame = percentile_of(99, 200, terminal, |terminal| {
                drop(black_box(terminal.draw_app(&fixture.app, fixture.now)));
            });
            println!("frame of {pane}, {width}x{height}, {NODES} nodes, p99: {frame:?} (budget 16 ms)");
        }
    }
}

/// Measures the steps of the loop on its own thread while a zone is down and all its pods wait for eviction.
fn time_loop() {
    let mut fixture = outage();
    let app = &mut fixture.app;
    let mut now = fixture.now;
    let mut steps = Steps::default();
    let alive: Vec<_> =
        app.model.cluster.leases().iter().filter(|lease| !is_lost(&lease.node)).cloned().collect();
    let pods = app.model.cluster.pods().iter().map(|pod| pod.key.clone());
    let lost: Vec<Key> = pods.filter(|key| is_lost(&key.name)).collect();
    for round in 0..20 {
        now += Span::from_secs(1);
        steps.time("the engine's timeout", || app.on_timeout(now));
        // Each kubelet renews its Lease every ten seconds, at the same second as in the fixture.
        let mut renewals: Vec<Change> = alive
            .iter()
            .filter(|lease| number(&lease.node) * 7 % 10 == now.since(START).as_secs() as usize % 10)
            .map(|lease| {
                let renewed = Some(ClusterTime::new(now));
                let version = Version(now.as_nanos().unsigned_abs());
                Change::Lease(ObjectEvent::Applied(Lease { renewed, version, ..(**lease).clone() }))
            })
            .collect();
        let later = renewals.split_off(renewals.len() / 2);
        steps.time("half a second of renewals", || app.on_watch_event(FeedEvent::Changes(renewals), now));
        let gone = Change::Pod(ObjectEvent::Deleted(lost[round * 1_000].clone()));
        steps.time("a pod of the zone is gone", || app.on_watch_event(FeedEvent::Changes(vec![gone]), now));
        steps.time("nodes and zones", || app.model.refresh_nodes(now));
        steps.time("refresh of nodes", || app.refresh_nodes(now));

        let job =
            steps.time("copies for evictions", || app.model.next_leaving_job(now)).expect("an engine runs");
        let leaving = steps.beside("working out evictions", || job.work());
        let before = steps.time("taking them", || app.model.set_leaving(leaving));
        steps.time("sorting lists after them", || app.arrange(now));
        drop(before);

        let (engine, cluster) = steps.time("copies for a forecast", || {
            (app.model.engine.clone().expect("it runs"), app.model.cluster.clone())
        });
        let forecast = steps.beside("the forecast", || {
            Forecast::run(&engine, &cluster, now, HORIZON).with_chart(&engine, &cluster)
        });
        steps.time("half a second of renewals after copies", || {
            app.on_watch_event(FeedEvent::Changes(later), now)
        });
        drop((engine, cluster));
        drop(steps.time("taking it", || app.model.set_forecast(forecast)));
        steps.time("nodes and zones after it", || app.model.refresh_nodes(now));
        steps.time("refresh of nodes after it", || app.refresh_nodes(now));

        if let Some(job) = steps.time("copies for outcomes", || app.model.next_outcomes_job(now)) {
            let outcomes = steps.beside("working out outcomes", || job.work(None, &Cancellation::default()));
            drop(steps.time("taking outcomes", || app.model.set_outcomes(outcomes)));
            steps.time("sorting lists after outcomes", || app.arrange(now));
        }
        drop(steps.time("copies for headroom", || app.model.next_headroom_job(now)));
        drop(steps.time("a copy of the model, to freeze it", || app.model.clone()));
    }
    println!(
        "{} evictions of {NODES} nodes with {MANY_PODS_A_NODE} pods each:",
        app.model.views.leaving.evictions.len()
    );
    steps.print();
}

/// Creates a dashboard in which every node of one zone is tainted and all pods of these nodes wait for eviction.
fn outage() -> DashboardFixture {
    let mut fixture = DashboardFixture::new();
    let set = fixture.app.model.settings.set("node-eviction-rate", "100", Origin::Override);
    set.expect("a rate");
    let tolerated = |key: &str| Toleration {
        key: key.into(),
        operator: TolerationOperator::Exists,
        seconds: Some(300),
        ..Toleration::default()
    };
    let tolerations = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"].map(tolerated);
    for number in 0..NODES {
        let name = format!("{number:04}");
        fixture.add_node(&name, ["a", "b", "c"][number % 3]);
        for pod in 0..MANY_PODS_A_NODE {
            let key = format!("shop/web-{name}-{pod}");
            fixture.add_pod(&key, &name, WorkloadKind::ReplicaSet, tolerations.to_vec(), 100, 128);
        }
    }
    fixture.lists();
    fixture.run(20);
    for number in (0..NODES).step_by(3) {
        fixture.silence(&format!("{number:04}"));
    }
    // The tainting loop ticks ten times a second and taints one node each time.
    fixture.run(230);
    fixture.app.refresh(fixture.now);
    fixture
}

/// Whether a node is in the zone that is down. `name` is the name of the node, or of a pod on the node.
fn is_lost(name: &str) -> bool {
    number(name).is_multiple_of(3)
}

/// Returns the number of the node in the name of a node (`0042`) or of a pod (`web-0042-3`).
fn number(name: &str) -> usize {
    let number = name.trim_start_matches("web-").split('-').next().and_then(|number| number.parse().ok());
    number.expect("names have numbers")
}

/// Durations of the steps of the loop.
#[derive(Default)]
struct Steps {
    /// Name of each step, whether it runs on the loop's thread, and its durations; in the order in which the steps
    /// first ran.
    by_name: Vec<(&'static str, bool, Vec<Duration>)>,
}

impl Steps {
    /// Measures a step on the loop's thread.
    fn time<T>(&mut self, name: &'static str, step: impl FnOnce() -> T) -> T {
        self.record(name, true, step)
    }

    /// Measures a step that the dashboard runs on another thread.
    fn beside<T>(&mut self, name: &'static str, step: impl FnOnce() -> T) -> T {
        self.record(name, false, step)
    }

    #[expect(clippy::disallowed_methods, reason = "a benchmark is about the machine's own time")]
    fn record<T>(&mut self, name: &'static str, on_loop: bool, step: impl FnOnce() -> T) -> T {
        let started = Instant::now();
        let result = black_box(step());
        let took = started.elapsed();
        match self.by_name.iter_mut().find(|(known, ..)| *known == name) {
            Some((.., times)) => times.push(took),
            None => self.by_name.push((name, on_loop, vec![took])),
        }
        result
    }

    fn print(mut self) {
        self.by_name.iter_mut().for_each(|(.., times)| times.sort_unstable());
        let longest = self.by_name.iter().filter(|(_, on_loop, _)| *on_loop);
        let longest = longest.max_by_key(|(.., times)| times[times.len() / 2]).map(|(name, ..)| *name);
        for (name, on_loop, times) in &self.by_name {
            let (median, worst) = (times[times.len() / 2], times[times.len() - 1]);
            let place = if *on_loop { "" } else { ", beside the loop" };
            println!("  {name}{place}: {median:?}, at worst {worst:?} of {}", times.len());
        }
        println!("longest step of the loop: {} (budget 4 ms)", longest.unwrap_or_default());
    }
}
