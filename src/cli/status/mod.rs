//! `kordon status`: prints the state of the cluster once.

mod follow;
pub mod predictions;
pub mod report;
pub mod table;

use clap::Args;

use super::{
    answer::CommandAnswer,
    connection::ConnectionArgs,
    exit::CliError,
    once::{OnceArgs, OneShot},
};
use crate::model::{HeadroomProgress, HeadroomSnapshot, Model, VerdictLevel};
use kordon_core::{cluster::FeedKind, placement::ClusterSnapshot};
use kordon_time::{Span, Timestamp};
pub use report::StatusReport;

#[derive(Args, Debug)]
pub struct StatusArgs {
    #[command(flatten)]
    once: OnceArgs,
    /// Do not read pods; evictions are not shown
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
        hide_default_value = true, hide_possible_values = true, action = clap::ArgAction::Set,
        conflicts_with = "recording")]
    no_pods: bool,
    /// Exit with the level of the verdict: 14 notice, 15 warning, 16 critical, 17 disconnected
    #[arg(long)]
    exit_code: bool,
    /// Wait until the loss of every node and every zone is simulated, instead of half a second
    #[arg(long = "n-1", conflicts_with = "no_pods")]
    n_1: bool,
    /// Print the verdict now and whenever it changes, one line each
    #[arg(long, short, conflicts_with_all = ["exit_code", "recording", "from", "n_1"])]
    watch: bool,
}

pub async fn run(args: StatusArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    connection.refuse_namespace("the status is that of the whole cluster")?;
    // A recording has its pods whatever the configuration says of clusters.
    let no_pods = args.no_pods && !args.once.is_recorded();
    if args.watch {
        return follow::run(&args.once, connection, no_pods).await;
    }
    let mut shot = match no_pods {
        true => OneShot::ask(&args.once, connection, true).await?,
        false => OneShot::ask_for(&args.once, &FeedKind::PREDICTION, connection).await?,
    };
    if !args.once.is_recorded() {
        shot.read_kordon_lease().await;
    }
    let snapshot = if no_pods { None } else { compute_headroom(&mut shot, args.n_1) };
    shot.model.run_pending(snapshot.clone());
    shot.run_forecast();
    if !args.once.is_recorded() {
        shot.model.run_event_ranges();
    }
    if !no_pods {
        shot.model.run_outcomes(snapshot, shot.at);
    }
    let report = StatusReport::new(&shot.model, shot.at);
    args.once.output.print(&report, table::render)?;
    let level = report.verdict.severity;
    shot.done()?;
    if args.exit_code && level != VerdictLevel::Healthy {
        return Err(CliError::NotHealthy { level });
    }
    Ok(())
}

/// The answer of `kordon status` about a model that was refreshed at `now`.
pub fn status_answer(model: &Model, now: Timestamp) -> CommandAnswer {
    CommandAnswer::new(&StatusReport::new(model, now), table::render)
}

/// Time limit for simulating the losses of single nodes and zones (N-1), unless the command line asks for every loss.
const N_1: Span = Span::from_millis(500);

/// Computes N-1, the effects of losing any one node or zone: all of it, or as much as possible in half a second.
/// Returns the snapshot that it was computed from; `None` if it cannot be computed.
fn compute_headroom(shot: &mut OneShot, all: bool) -> Option<ClusterSnapshot> {
    let job = shot.model.next_headroom_job(shot.at)?.awaited(true);
    let progress = HeadroomProgress::default();
    let mut progress = if all { progress.with_all_zones() } else { progress };
    let ends = shot.clock.now() + N_1;
    let found = job.advance(&mut progress, || all || shot.clock.now() < ends);
    shot.model.predictions.set_headroom(found.map(HeadroomSnapshot::stopped));
    progress.state()
}
