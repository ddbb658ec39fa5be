//! `kordon status`: what is known, once.

mod report;
mod table;

use clap::Args;

use super::{
    Failure,
    connection::ConnectionArgs,
    once::{Asked, OnceArgs},
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
    let asked = Asked::ask(&args.once, connection, args.no_pods).await?;
    args.once.output.print(&Report::new(&asked.app, asked.at), table::render)?;
    asked.done()
}
