//! How long a frame takes on a large cluster of which a zone is silent: the 99th percentile of 200 frames against its
//! budget.
//! `cargo bench --bench frames`.

#[path = "../tests/program/dashboard_fixture.rs"]
mod dashboard_fixture;
#[path = "median.rs"]
mod median;

use std::hint::black_box;

use dashboard_fixture::DashboardFixture;
use kordon::{cluster::WorkloadKind, forecast::fold, model::Horizon, run::Surface};
use median::{median, percentile_of};
use ratatui::{Terminal, backend::TestBackend};

/// What the program itself uses.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const NODES: usize = 5_000;
const PODS_A_NODE: usize = 6;

fn main() {
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

    let forecast = fixture.app.model.forecast.as_ref().expect("a zone is silent");
    let (lanes, unit) = (&forecast.chart.lanes, Horizon::default().alike());
    let folding = median(|| lanes.clone(), |lanes| drop(black_box(fold(std::mem::take(lanes), 40, unit))));
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
