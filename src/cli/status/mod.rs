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
    asked.run_forecast();
    if !args.no_pods {
        add_headroom(&mut asked);
    }
    args.once.output.print(&StatusReport::new(&asked.model, asked.at), table::render)?;
    asked.done()
}

/// How long working out what the cluster can lose may take: on very large ones the answer is given without it.
const PATIENCE: Span = Span::from_secs(5);

fn add_headroom(asked: &mut OneShot) {
    let Some(job) = asked.model.next_headroom_job(asked.at) else { return };
    let until = asked.clock.now() + PATIENCE;
    asked.model.headroom = job.work(|| asked.clock.now() < until);
}
