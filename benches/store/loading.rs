//! Duration from the start of the process to the first rows, to all nodes and to all pods, compared with bare clients.

use std::{thread::sleep, time::Duration};

use super::{
    bare::{Bare, Format, Lists, Unsupported},
    cluster::TestCluster,
    dashboard::Dashboard,
    report::{Budget, ClusterSize, Figure, Report},
};

/// Number of rounds in which a bare client and the dashboard load nodes and Leases, one after the other. A round is so
/// short that one is not enough.
const PAIRS: usize = 9;
/// Number of rounds of loading pods. In each round, the dashboard loads the pods twice, between two bare clients of
/// each kind. A real server collects garbage during about every second list, which then takes twice as long. If client
/// and dashboard simply alternated, the same one of the two would be slowed down every time.
const ROUNDS_OF_PODS: usize = 5;
/// Pause after killing clients in the middle of a list, so that the server can clean up.
const PAUSE: Duration = Duration::from_secs(2);

/// Measures the time to the first rows and to all nodes with their Leases.
pub fn measure_nodes(cluster: &TestCluster, size: ClusterSize, report: &mut Report) {
    warm_up(cluster, Lists::NodesAndLeases);
    report.heading(&format!(
        "Nodes and Leases: medians of {PAIRS} runs, a bare client and the dashboard in turn"
    ));
    let [mut first_bytes, mut bare_to_all, mut rows, mut all, mut times] = [const { Vec::new() }; 5];
    let mut bare_format = Format::Protobuf;
    for _ in 0..PAIRS {
        cluster.renew_all();
        sleep(PAUSE);
        let measure = |format| Bare::measure(&cluster.kubeconfig, format, Lists::NodesAndLeases);
        let bare = measure(bare_format).or_else(|Unsupported| {
            bare_format = Format::Json;
            measure(bare_format)
        });
        let bare = bare.expect("every server writes JSON");
        cluster.renew_all();
        sleep(PAUSE);
        let mut dashboard = Dashboard::start(cluster, &[]);
        let first_rows = dashboard.wait_for_first_rows();
        dashboard.open_information();
        let nodes = dashboard.wait_for_lists(&["nodes", "leases"]);
        first_bytes.push(bare.to_first.as_secs_f64());
        bare_to_all.push(bare.to_all.as_secs_f64());
        rows.push(first_rows.as_secs_f64());
        all.push(nodes.as_secs_f64());
        times.push(nodes.as_secs_f64() / bare.to_all.as_secs_f64());
    }
    let range = |values: &[f64]| format!("{:.2} to {:.2}", smallest(values), largest(values));
    let seconds = |values: &[f64]| Figure::Seconds(median(values));
    report.add(
        format!("bare client, {bare_format:?}"),
        seconds(&bare_to_all),
        Budget::None,
        range(&bare_to_all),
    );
    let note = format!("{}; bare client's first bytes: {:.2} s", range(&rows), median(&first_bytes));
    report.add("first rows with their leases", seconds(&rows), Budget::AtMost(0.5), note);
    report.add("all nodes with leases", seconds(&all), Budget::None, range(&all));
    let allowed = if bare_format == Format::Protobuf { of_download(size, 2.0) } else { Budget::None };
    report.add(
        "  against the bare client, pair by pair",
        Figure::Times(median(&times)),
        allowed,
        range(&times),
    );
}

/// Fills the server's cache of encoded objects, which all clients share.
fn warm_up(cluster: &TestCluster, lists: Lists) {
    // A server without protobuf support refuses the request, and has no such cache.
    let _ = Bare::measure(&cluster.kubeconfig, Format::Protobuf, lists);
}

/// Measures the time to all pods, and the memory they take.
pub fn measure_pods(cluster: &TestCluster, size: ClusterSize, report: &mut Report) {
    warm_up(cluster, Lists::Pods);
    report.heading("Bare clients, which throw everything away");
    let json = download_pods(cluster, Format::Json, report);
    let (mut of_dashboard, mut times) = (Vec::new(), Vec::new());
    let (mut resident, mut peak) = (0.0_f64, 0.0_f64);
    let mut screen = String::new();
    for _ in 0..ROUNDS_OF_PODS {
        let mut download = || download_pods(cluster, Format::Protobuf, report);
        let before = download();
        let mut both = 0.0;
        for _ in 0..2 {
            cluster.renew_all();
            sleep(PAUSE);
            let mut dashboard = Dashboard::start(cluster, &[]);
            dashboard.wait_for_first_rows();
            dashboard.open_information();
            let pods = dashboard.wait_for_lists(&["nodes", "leases", "pods"]).as_secs_f64();
            dashboard.close_overlay();
            dashboard.wait_for_count(cluster.nodes);
            resident = resident.max(dashboard.process().resident_mib());
            peak = peak.max(dashboard.process().peak_mib());
            screen = dashboard.screen();
            of_dashboard.push(pods);
            both += pods;
        }
        sleep(PAUSE);
        if let (Ok(before), Ok(after)) = (before, download()) {
            times.push(both / (before.to_all + after.to_all).as_secs_f64());
        }
    }

    println!("\n{screen}");
    report.heading(&format!(
        "All pods, from the start of the dashboard's process: {ROUNDS_OF_PODS} times two between two bare clients"
    ));
    let note = format!("{:.2} to {:.2}", smallest(&of_dashboard), largest(&of_dashboard));
    report.add("all pods joined", Figure::Seconds(median(&of_dashboard)), Budget::None, note);
    if !times.is_empty() {
        let note = format!("median of the rounds; {:.2} to {:.2}", smallest(&times), largest(&times));
        report.add("  against bare protobuf", Figure::Times(median(&times)), of_download(size, 1.3), note);
    }
    if let Ok(json) = &json {
        let times = median(&of_dashboard) / json.to_all.as_secs_f64();
        report.add("  against bare JSON", Figure::Times(times), of_download(size, 0.6), "");
    }
    report.add(
        "resident with everything loaded",
        Figure::MiB(resident),
        Budget::AtMost(size.memory_mib()),
        "the most of all runs",
    );
    report.add("  at its peak", Figure::MiB(peak), Budget::AtMost(size.memory_mib()), "");
}

/// Returns the budget of a download. There is none if the cluster exceeds the size for which budgets hold.
fn of_download(size: ClusterSize, most: f64) -> Budget {
    if size.is_larger() { Budget::None } else { Budget::AtMost(most) }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

fn smallest(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

/// Downloads all pods with a bare client.
fn download_pods(cluster: &TestCluster, format: Format, report: &mut Report) -> Result<Bare, Unsupported> {
    let bare = Bare::measure(&cluster.kubeconfig, format, Lists::Pods);
    let what = match format {
        Format::Json => "pods, JSON",
        Format::Protobuf => "pods, protobuf",
    };
    match &bare {
        Ok(Bare { objects, bytes, to_first, to_all }) => {
            let note = format!(
                "{objects} objects of {} bytes, {:.0} MB; first bytes after {:.2} s",
                bytes / (*objects).max(1),
                *bytes as f64 / 1e6,
                to_first.as_secs_f64(),
            );
            report.add(what, Figure::seconds(*to_all), Budget::None, note);
        }
        Err(Unsupported) => println!("  {what}: the server does not write it"),
    }
    bare
}
