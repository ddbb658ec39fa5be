//! `kordon maintenance`: plans in which waves nodes are maintained, and with `--enforce` carries it out.

mod args;
mod outcome;
mod report;
mod start;
mod table;

pub use args::MaintenanceArgs;

use super::{connection::ConnectionArgs, exit::CliError, once::OneShot, progress::ProgressLine};
use crate::k8s::feed::FeedKind;
use kordon_core::{
    maintenance::{self, MaintenancePlan, PlanningProgress},
    plan::{EvictionRules, Prospect, words::counted},
};
use report::MaintenanceReport;

/// Prints the plan of a maintenance, or carries it out.
pub async fn run(args: MaintenanceArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    connection.refuse_namespace("nodes have no namespace")?;
    if args.agreement.enforce {
        return start::run(args, connection).await;
    }
    let config = connection.config.clone();
    let shot = read(&args, connection).await?;
    let guards = config.guarded(&shot.connection.context, args.agreement.guards()?);
    let options = args.options(args.chosen(&shot)?, guards, &shot);
    let rules = EvictionRules::from(&shot.model.settings);
    let plan =
        MaintenancePlan::with_progress(&shot.model.cluster, &options, rules, shot.at, &tell_on_terminal());
    args.once.output.print(&MaintenanceReport::new(&plan, &options), table::render)?;
    shot.done()?;
    match plan.left_out.len() {
        0 => expect_no_losses(&plan),
        nodes => Err(CliError::WouldNot {
            prospect: Prospect::Blocked,
            text: format!("{} in no wave", counted(nodes, "node is", "nodes are")),
        }),
    }
}

/// Returns the function that shows the progress of a plan on a terminal.
fn tell_on_terminal() -> impl Fn(PlanningProgress) + Send + 'static {
    let line = ProgressLine::new();
    move |progress| line.show(|| progress.to_string())
}

/// Fails if pods are lost for good and no flag accepts that.
fn expect_no_losses(plan: &MaintenancePlan) -> Result<(), CliError> {
    let losses = plan.waves.iter().flat_map(|wave| &wave.losses);
    let pods: Vec<String> =
        losses.filter(|loss| !loss.is_accepted_by_force()).map(ToString::to_string).collect();
    if pods.is_empty() { Ok(()) } else { Err(CliError::WouldLose { pods }) }
}

/// Reads the objects from which the waves of a maintenance are planned.
///
/// # Errors
/// The cluster cannot be read, or not all of it.
async fn read(args: &MaintenanceArgs, connection: ConnectionArgs) -> Result<OneShot, CliError> {
    let mut shot = OneShot::ask_for(&args.once, &FeedKind::PREDICTION, connection).await?;
    if args.surge {
        shot.read_autoscalers().await;
    }
    let cluster = &shot.model.cluster;
    if !maintenance::knows_enough(cluster) {
        let gaps = maintenance::unknown(cluster);
        return Err(CliError::Unknown { what: "no waves can be worked out".into(), gaps });
    }
    Ok(shot)
}
