//! `kordon plan`: previews an operation on the present cluster. Nothing is written.

mod args;
mod diff;
mod metadata_list;
mod report;
pub mod source;
mod table;
mod targets;
mod validate;

use super::{connection::ConnectionArgs, exit::CliError, forecast, once::OneShot, page::Page, pressure};
use args::PlanSubject;
pub use args::{
    DrainArgs, MetadataArgs, NodesArgs, PlacementMode, PlanArgs, PlanCommand, PodsArgs, PrintArgs, TaintArgs,
};
use kordon_core::{
    cluster::{Gaps, Scope},
    placement::Snapshot,
    plan::{Action, Loss, Plan, PlanError, Prospect, needs},
};
pub use report::SurgeReport;
use report::{PlanReport, UnknownPlanReport};
use source::{Landings, PlanSource};
pub use table::surges;
pub use targets::PlanTarget;
use validate::ValidationAnswers;
pub use validate::{word as answer_word, words as step_words};

/// Prints the plan of an operation, or the forecast of a failure.
pub async fn run(args: PlanArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    match args.subject {
        PlanSubject::Operation(command) => preview(&command, connection).await,
        PlanSubject::NodeFailure(args) => forecast::node_failure(args, connection).await,
        PlanSubject::ZoneFailure(args) => forecast::zone_failure(args, connection).await,
        PlanSubject::Pressure(args) => pressure::run(args, connection).await,
    }
}

/// Prints the plan of an operation.
pub async fn preview(command: &PlanCommand, connection: ConnectionArgs) -> Result<(), CliError> {
    if let Some((field, args)) = command.listed() {
        return metadata_list::list(field, args, connection).await;
    }
    let target = command.target()?;
    let print = command.print();
    if print.diff && !print.output.is_for_people() {
        return Err(targets::usage("--diff and --output may not be specified together"));
    }
    let PlanSource { mut shot, landings } =
        PlanSource::read(&target, print, PlacementMode::Auto, connection).await?;
    let action = target.action(&shot.model.cluster, &shot.namespace);
    if let Action::Cordon { nodes } = &action {
        // Reads the nodes' pods, then the other instances of those that have a role, to warn about operators that may
        // switch over to an instance on another node. The waits are short, because a cordon should not be slow.
        shot.read_near(nodes.iter().cloned().map(Scope::PodsOn).collect()).await;
        let instances = needs::of_switchovers(&shot.model.cluster, nodes);
        shot.read_near(instances).await;
    }
    if action.surges() {
        shot.read_autoscalers().await;
    }
    let owners = needs::owners_with_settings(&action, &shot.model.cluster);
    shot.read_operator_settings(&owners).await;
    let (cluster, now) = (&shot.model.cluster, shot.at);
    let unselected = cluster.gaps_in(target.selection(&shot.namespace)).unknown();
    if !unselected.is_empty() {
        return refuse(&action, unselected, print, shot);
    }
    let scheduler = print.scheduler.options(shot.connection.version);
    let snapshot = (landings == Landings::Known).then(|| Snapshot::new(cluster, scheduler));
    let plan = match Plan::over(action.clone(), cluster, snapshot, &shot.model.settings, now) {
        Ok(plan) => plan,
        Err(PlanError::Unknown(gaps)) => return refuse(&action, gaps, print, shot),
        Err(error) => return Err(not_found(error)),
    };
    let mut report = PlanReport::new(&plan);
    let answers = if print.validates() {
        ValidationAnswers::ask(&plan, &shot.connection).await
    } else {
        ValidationAnswers::default()
    };
    report.add_answers(&answers);
    match print.diff {
        true => diff::print(&plan, &shot).await?,
        false => print.output.print(&report, table::render)?,
    }
    let prospect = plan.prospect();
    shot.done()?;
    match prospect {
        Prospect::Completes => answers.verdict(&plan).and_then(|()| expect_no_losses(&plan)),
        Prospect::Unknown => Err(CliError::Unknown {
            what: "whether the plan completes is unknown".into(),
            gaps: plan.undecided(),
        }),
        Prospect::Stalls | Prospect::Blocked | Prospect::Refused => {
            Err(CliError::WouldNot { prospect, text: plan.summary() })
        }
    }
}

/// Fails if pods are lost for good and nothing accepts the loss. `--force` of a drain accepts the loss of pods without a
/// controller, as in kubectl. An eviction or deletion of such a pod accepts its loss, because it names the pod. Nothing
/// accepts failed Jobs and pods that replacements preempt.
fn expect_no_losses(plan: &Plan) -> Result<(), CliError> {
    let accepts_bare_pods = match plan.action {
        Action::Drain { .. } | Action::Evict { .. } | Action::Delete { .. } => true,
        Action::Taint { .. }
        | Action::DeleteNode { .. }
        | Action::Cordon { .. }
        | Action::Uncordon { .. }
        | Action::Metadata { .. } => false,
    };
    let is_accepted = |loss: &&Loss| accepts_bare_pods && loss.is_accepted_by_force();
    let losses = plan.losses();
    let pods: Vec<String> =
        losses.iter().filter(|loss| !is_accepted(loss)).map(ToString::to_string).collect();
    if pods.is_empty() { Ok(()) } else { Err(CliError::WouldLose { pods }) }
}

/// Ends the command because the outcome of the plan is unknown: prints a report for programs and returns the error.
fn refuse(action: &Action, gaps: Gaps, print: &PrintArgs, shot: OneShot) -> Result<(), CliError> {
    if print.output.has_fields() {
        print.output.print(&UnknownPlanReport::new(action, &gaps, shot.at), |_, _| {})?;
    }
    // If objects were not listed in time, the command ends with the error about the timeout instead, because it is
    // clearer than the error about the plan.
    if !gaps.needs_permission() {
        shot.done()?;
    }
    Err(unknown_plan(gaps))
}

/// The error for a plan whose outcome is not known.
pub fn unknown_plan(gaps: Gaps) -> CliError {
    CliError::Unknown { what: "plan refused, its outcome is unknown".into(), gaps }
}

/// The error for an object that a plan names and that does not exist.
pub fn not_found(error: PlanError) -> CliError {
    match error {
        PlanError::NoSuchNode { names, meant } => missing("node", &names, &meant),
        PlanError::NoSuchPod { names, meant } => missing("pod", &names, &meant),
        PlanError::Unknown(gaps) => unknown_plan(gaps),
    }
}

fn missing<T: ToString>(kind: &str, names: &[T], meant: &[T]) -> CliError {
    let text = |names: &[T]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    CliError::NotFound { what: format!("{kind} {}", text(names).join(", ")), meant: text(meant) }
}

/// Formats a plan as a table.
pub fn table_of(plan: &Plan) -> String {
    let mut page = Page::default();
    table::render(&PlanReport::new(plan), &mut page);
    page.into_text()
}
