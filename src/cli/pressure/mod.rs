//! `kordon plan pressure`, and pressure in `kordon why node --pressure`.

mod report;
mod table;

use clap::Args;

use super::{
    connection::ConnectionArgs,
    exit::CliError,
    once::{OnceArgs, OneShot},
    scheduler_flags::SchedulerArgs,
};
use crate::{
    k8s::kubelet::{KubeletReport, read_kubelet},
    model::NodePressure,
};
use kordon_core::{
    cluster::{FeedKind, Node, NodeName},
    placement::Snapshot,
    plan::pressure_failover,
    pressure::EvictionSignal,
};
pub use report::PressureReport;
pub use table::render;

#[derive(Args, Debug)]
pub struct PressureArgs {
    /// Name of the node
    node: String,
    /// The signal that falls below its threshold, such as memory.available, nodefs.available or pid.available; by
    /// default the signal that is nearest to its threshold
    #[arg(long, value_name = "SIGNAL", value_parser = signal)]
    signal: Option<EvictionSignal>,
    #[command(flatten)]
    scheduler: SchedulerArgs,
    #[command(flatten)]
    once: OnceArgs,
}

/// Predicts which pods the kubelet of a node evicts when a signal falls below its threshold, and where their
/// replacements are placed.
pub async fn run(args: PressureArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    let mut shot = OneShot::ask_for(&args.once, &FeedKind::PREDICTION, connection).await?;
    let node = shot.model.cluster.node(&NodeName::from(args.node.as_str())).cloned();
    let node = node.ok_or_else(|| CliError::no_node(&args.node, &shot.model.cluster))?;
    ask_kubelet(&mut shot, &node, &args.once).await;
    let pressure = pressure(&shot, &node, args.signal);
    let mut report = PressureReport::new(&node.name, &pressure, shot.at);
    let cluster = &shot.model.cluster;
    let snapshot = Snapshot::new(cluster, args.scheduler.options(shot.connection.version));
    report.add_landings(&pressure_failover(cluster, snapshot, &node, &pressure.order, shot.at));
    args.once.output.print(&report, render)?;
    shot.done()
}

/// Reads the measurements of a node's kubelet once, unless they were read because the node is under pressure. Files and
/// recordings have none.
pub async fn ask_kubelet(shot: &mut OneShot, node: &Node, args: &OnceArgs) {
    if shot.model.node_pressure(node, None).is_some() {
        return;
    }
    let read = match args.reads_cluster_alone() {
        true => {
            let pods = shot.model.cluster.pods_on(&node.name).map(|pod| pod.key.clone()).collect();
            read_kubelet(&shot.connection.client, node, &pods, shot.clock).await
        }
        false => KubeletReport::unread("files and recordings have none", shot.clock.now()),
    };
    shot.at = shot.clock.now();
    shot.model.on_kubelet_report(&node.name, read, shot.at);
}

/// The report of pressure on a node, from the measurements that its kubelet returned.
pub fn report(shot: &OneShot, node: &Node) -> PressureReport {
    PressureReport::new(&node.name, &pressure(shot, node, None), shot.at)
}

fn pressure(shot: &OneShot, node: &Node, signal: Option<EvictionSignal>) -> NodePressure {
    shot.model.node_pressure(node, signal).expect("its kubelet has been asked")
}

fn signal(text: &str) -> Result<EvictionSignal, String> {
    EvictionSignal::parse(text).ok_or_else(|| {
        let known: Vec<&str> = EvictionSignal::ALL.iter().map(|signal| signal.as_str()).collect();
        format!("no eviction signal; one of {}", known.join(", "))
    })
}
