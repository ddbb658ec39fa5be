//! From the start of the process to the first rows, all nodes and all pods, beside bare clients.

use super::{
    bare::{Bare, Format, Lists, Unsupported},
    cluster::TestCluster,
    dashboard::Dashboard,
    report::{Budget, ClusterSize, Figure, Report},
};

pub fn measure(cluster: &TestCluster, size: ClusterSize, report: &mut Report) {
    cluster.renew_all();
    // What a server keeps once it has written it is there for all of them.
    for lists in [Lists::NodesAndLeases, Lists::Pods] {
        // A server without protobuf has nothing to keep.
        let _ = Bare::measure(&cluster.kubeconfig, Format::Protobuf, lists);
    }
    report.heading("Bare clients, which throw everything away");
    let small = download(cluster, Format::Protobuf, Lists::NodesAndLeases, report);
    let small_json = download(cluster, Format::Json, Lists::NodesAndLeases, report);
    let json = download(cluster, Format::Json, Lists::Pods, report);
    let first = download(cluster, Format::Protobuf, Lists::Pods, report);

    cluster.renew_all();
    let mut dashboard = Dashboard::start(cluster);
    let rows = dashboard.wait_for_first_rows();
    dashboard.open_information();
    let nodes = dashboard.wait_for_lists(&["nodes", "leases"]);
    let pods = dashboard.wait_for_lists(&["pods"]);
    dashboard.close_overlay();
    dashboard.wait_for_count(cluster.nodes);
    let (resident, peak) = (dashboard.process().resident_mib(), dashboard.process().peak_mib());
    let screen = dashboard.screen();
    drop(dashboard);
    let second = download(cluster, Format::Protobuf, Lists::Pods, report);

    println!("\n{screen}");
    report.heading("Dashboard, from the start of its process");
    let first_bytes = small.as_ref().or(small_json.as_ref()).map(|bare| bare.to_first.as_secs_f64());
    let note = first_bytes
        .map_or_else(|_| String::new(), |first| format!("bare client's first bytes: {first:.2} s"));
    report.add("first rows with their leases", Figure::seconds(rows), Budget::AtMost(0.5), note);
    report.add("all nodes with leases", Figure::seconds(nodes), Budget::None, "");
    if let Ok(bare) = &small {
        let times = nodes.as_secs_f64() / bare.to_all.as_secs_f64();
        report.add("  against bare protobuf", Figure::Times(times), Budget::AtMost(1.3), "");
    }
    report.add("all pods joined", Figure::seconds(pods), Budget::None, "");
    let of_download = |most: f64| if size.is_larger() { Budget::None } else { Budget::AtMost(most) };
    if let (Ok(first), Ok(second)) = (&first, &second) {
        let bare = (first.to_all + second.to_all) / 2;
        let times = pods.as_secs_f64() / bare.as_secs_f64();
        report.add(
            "  against bare protobuf",
            Figure::Times(times),
            of_download(1.1),
            "mean of before and after",
        );
    }
    if let Ok(json) = &json {
        let times = pods.as_secs_f64() / json.to_all.as_secs_f64();
        report.add("  against bare JSON", Figure::Times(times), of_download(0.6), "");
    }
    report.add(
        "resident with everything loaded",
        Figure::MiB(resident),
        Budget::AtMost(size.memory_mib()),
        "",
    );
    report.add("  at its peak", Figure::MiB(peak), Budget::AtMost(size.memory_mib()), "");
}

fn download(
    cluster: &TestCluster,
    format: Format,
    lists: Lists,
    report: &mut Report,
) -> Result<Bare, Unsupported> {
    let bare = Bare::measure(&cluster.kubeconfig, format, lists);
    let what = match (format, lists) {
        (Format::Json, Lists::NodesAndLeases) => "nodes and leases, JSON",
        (Format::Protobuf, Lists::NodesAndLeases) => "nodes and leases, protobuf",
        (Format::Json, Lists::Pods) => "pods, JSON",
        (Format::Protobuf, Lists::Pods) => "pods, protobuf",
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
