//! `kordon status`: what is known, once.

mod report;
mod table;

use clap::Args;

use super::{
    Failure,
    connection::ConnectionArgs,
    once::{Asked, OnceArgs},
};
use crate::{
    placement::Snapshot,
    plan::{Headroom, headroom},
    time::Span,
};
use report::Report;

#[derive(Args, Debug)]
pub struct StatusArgs {
    #[command(flatten)]
    once: OnceArgs,
    /// Leave the pods out, and with them the evictions
    #[arg(long)]
    no_pods: bool,
}

pub async fn run(args: StatusArgs, connection: ConnectionArgs) -> Result<(), Failure> {
    let mut asked = Asked::ask(&args.once, connection, args.no_pods).await?;
    asked.foresee();
    if !args.no_pods {
        asked.app.live.headroom = what_it_can_lose(&asked);
    }
    args.once.output.print(&Report::new(&asked.app, asked.at), table::render)?;
    asked.done()
}

/// How long working out what the cluster can lose may take: on very large ones the answer is given without it.
const PATIENCE: Span = Span::from_secs(5);

fn what_it_can_lose(asked: &Asked) -> Option<Headroom> {
    let live = &asked.app.live;
    live.layout()?;
    let snapshot = Snapshot::new(&live.cluster, asked.app.settings.version);
    let until = asked.clock.now() + PATIENCE;
    headroom(&live.cluster, &snapshot, || asked.clock.now() < until)
}
