//! `kordon`: the dashboard of a cluster.

use clap::Args;

use super::{
    config::Config,
    connection::ConnectionArgs,
    exit::CliError,
    settings::SettingsArgs,
    show::{self, ShowArgs},
};
use crate::{
    clock::Clock,
    engine::{Origin, Settings},
    executor::write_context::WriteContext,
    k8s::{
        connect::{self, Connection},
        settings,
    },
};

#[derive(Args, Clone, Debug, Default)]
pub struct DashboardArgs {
    #[command(flatten)]
    show: ShowArgs,
    #[command(flatten)]
    settings: SettingsArgs,
}

pub async fn run(args: DashboardArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    let config = connection.config.clone();
    let connection = connect::connect(&connection.options()).await?;
    let clock = Clock::system();
    let watches = args.show.watch(&connection, clock);
    // Beside the list of nodes. That of pods, beside which these requests would take seconds on a large cluster, follows it.
    let (found, context) =
        tokio::join!(settings_of(&connection, &config, &args.settings), WriteContext::of(&connection, clock));
    let (settings, notes) = found;
    let notice = context.as_ref().ok().and_then(|context| context.notice.clone());
    let notes = notes.into_iter().map(|note| ("settings", note)).chain(notice.map(|note| ("journal", note)));
    show::show(args.show, &connection, watches, settings, notes.collect(), clock, context).await
}

/// The controller's settings: flags given here, else the configuration, else those of the cluster's controller manager,
/// else upstream's defaults; with notes about where they come from.
pub async fn settings_of(
    connection: &Connection,
    config: &Config,
    given: &SettingsArgs,
) -> (Settings, Vec<String>) {
    let mut settings = Settings::defaults(connection.version);
    let found = settings::controller_flags(&connection.client).await;
    let mut notes = vec![found.note];
    for (flag, text) in &found.flags {
        if let Err(bad) = settings.set(flag, text, Origin::Cluster) {
            notes.push(format!("the controller manager's {bad}: using upstream's default"));
        }
    }
    config.set(&connection.context, &mut settings);
    given.apply(&mut settings);
    (settings, notes)
}
