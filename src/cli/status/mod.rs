//! `kordon status`: what is known, once.

mod report;
mod table;

use clap::Args;

use super::{
    connection::ConnectionArgs,
    exit::CliError,
    once::{OnceArgs, OneShot},
};
use crate::time::Span;
use report::StatusReport;

#[derive(Args, Debug)]
pub struct StatusArgs {
    #[command(flatten)]
    once: OnceArgs,
    /// Leave the pods out, and with them the evictions
    #[arg(long)]
    no_pods: bool,
}

pub async fn run(args: StatusArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    let mut asked = OneShot::ask(&args.once, connection, args.no_pods).await?;
    asked.foresee();
    if !args.no_pods {
        survey(&mut asked);
    }
    args.once.output.print(&StatusReport::new(&asked.app, asked.at), table::render)?;
    asked.done()
}

/// How long working out what the cluster can lose may take: on very large ones the answer is given without it.
const PATIENCE: Span = Span::from_secs(5);

fn survey(asked: &mut OneShot) {
    let Some(survey) = asked.app.next_survey(asked.at) else { return };
    let until = asked.clock.now() + PATIENCE;
    if let Some(spare) = survey.work(|| asked.clock.now() < until) {
        asked.app.surveyed(spare);
    }
}
