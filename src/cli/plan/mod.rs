//! `kordon plan`: previews an operation over the cluster as it is now. Nothing is written.

mod args;
mod report;
mod table;
mod targets;
mod validate;

use super::{
    connection::ConnectionArgs,
    exit::CliError,
    forecast,
    once::{OneShot, OneShotQuery},
    settings::SettingsArgs,
};
use crate::{
    cluster::WorkloadKind,
    k8s::feed::FeedKind,
    placement::Snapshot,
    plan::{Plan, PlanError, Prospect},
};
use args::PlanSubject;
pub use args::{DrainArgs, LabelArgs, NodesArgs, PlanArgs, PlanCommand, PodsArgs, PrintArgs, TaintArgs};
use report::PlanReport;
use validate::ValidationAnswers;
pub use validate::{word as answer_word, words as step_words};

/// The kinds of objects that plans need.
pub const WANTED: [FeedKind; 16] = [
    FeedKind::Nodes,
    FeedKind::Leases,
    FeedKind::Pods,
    FeedKind::Budgets,
    FeedKind::Workloads(WorkloadKind::ReplicaSet),
    FeedKind::Workloads(WorkloadKind::Deployment),
    FeedKind::Workloads(WorkloadKind::StatefulSet),
    FeedKind::Workloads(WorkloadKind::ReplicationController),
    FeedKind::Workloads(WorkloadKind::DaemonSet),
    FeedKind::Workloads(WorkloadKind::Job),
    FeedKind::Namespaces,
    FeedKind::Services,
    FeedKind::Claims,
    FeedKind::Volumes,
    FeedKind::StorageClasses,
    FeedKind::CsiNodes,
];

/// Prints the plan of an operation, or the forecast of a failure.
pub async fn run(args: PlanArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    match args.subject {
        PlanSubject::Operation(command) => preview(&command, connection).await,
        PlanSubject::NodeFailure(args) => forecast::node_failure(args, connection).await,
        PlanSubject::ZoneFailure(args) => forecast::zone_failure(args, connection).await,
    }
}

/// Prints the plan of an operation.
pub async fn preview(command: &PlanCommand, connection: ConnectionArgs) -> Result<(), CliError> {
    let target = command.target()?;
    let print = command.print();
    let query = OneShotQuery {
        wanted: &WANTED,
        no_pods: false,
        timeout: print.list_timeout,
        settings: &SettingsArgs::default(),
        flag: "--list-timeout",
    };
    let shot = OneShot::answer(&query, connection).await?;
    let (cluster, now) = (&shot.model.cluster, shot.at);
    let action = target.action(cluster, &shot.namespace);
    let version = shot.model.settings.version;
    let snapshot = Some(Snapshot::new(cluster, version));
    let plan = Plan::over(action, cluster, snapshot, version, now).map_err(not_found)?;
    let mut report = PlanReport::new(&plan);
    let answers = if print.validate {
        ValidationAnswers::ask(&plan, &shot.connection).await
    } else {
        ValidationAnswers::default()
    };
    report.add_answers(&answers);
    print.output.print(&report, table::render)?;
    let prospect = plan.prospect();
    shot.done()?;
    match prospect {
        Prospect::Completes => answers.verdict(&plan),
        Prospect::Stalls | Prospect::Blocked | Prospect::Refused => {
            Err(CliError::WouldNot { prospect, text: plan.summary() })
        }
    }
}

/// The error for an object that a plan names and the cluster does not have.
pub fn not_found(error: PlanError) -> CliError {
    match error {
        PlanError::NoSuchNode(names) => CliError::NotFound(format!("node {}", joined(&names))),
        PlanError::NoSuchPod(keys) => CliError::NotFound(format!("pod {}", joined(&keys))),
    }
}

fn joined<T: std::fmt::Display>(names: &[T]) -> String {
    names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// A plan as a table.
pub fn table_of(plan: &Plan) -> String {
    table::render(&PlanReport::new(plan))
}
