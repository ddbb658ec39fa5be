//! `kordon`: the dashboard of a cluster.

use std::sync::Arc;

use clap::Args;

use super::{
    config::{Config, ConfigInForce},
    connection::ConnectionArgs,
    exit::{self, CliError},
    settings::SettingsArgs,
    show::{self, ShowArgs},
    source::SourceArgs,
};
use crate::{
    executor::write_context::WriteContext,
    journal::JournalError,
    k8s::{
        connect::{self, Connection},
        settings::{ControllerFlags, controller_flags},
    },
    run::{ContextOpener, Dashboard},
};
use kordon_clock::Clock;
use kordon_core::engine::{Origin, Settings};

#[derive(Args, Clone, Debug, Default)]
pub struct DashboardArgs {
    #[command(flatten)]
    show: ShowArgs,
    #[command(flatten)]
    settings: SettingsArgs,
    #[command(flatten)]
    source: SourceArgs,
}

impl DashboardArgs {
    /// Records that the theme was given on the command line.
    pub const fn set_theme_given(&mut self) {
        self.show.set_theme_given();
    }

    /// The dashboard's command-line arguments that do not depend on the cluster.
    pub fn without_cluster(&self) -> (&ShowArgs, &SettingsArgs) {
        (&self.show, &self.settings)
    }
}

pub async fn run(mut args: DashboardArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    let config = ConfigInForce::new(connection.config.clone());
    args.show.ask_background();
    if args.source.has_files() {
        return show_files(args, connection, &config).await;
    }
    let mut dashboard = open(args.clone(), connection.clone(), config.clone()).await?;
    connection.namespace.iter().for_each(|name| dashboard.app.filter_by_namespace(name));
    dashboard.opener = Some(opener(args.clone(), connection, config));
    show::show(args.show, dashboard).await
}

/// Opens the dashboard of a cluster.
async fn open(
    args: DashboardArgs,
    connection: ConnectionArgs,
    config: ConfigInForce,
) -> Result<Dashboard, CliError> {
    let open = connect::open(&connection.options()).await?;
    // The request for the controller's flags is sent before the lists of objects, because a request sent among the
    // lists would wait for them and slow them down. The lists start once the server's version is known.
    let flags = ControllerFlags::ask(open.client());
    let connection = open.confirm().await?;
    let clock = Clock::system();
    let show = args.show.with_preferences(&config, &connection.context);
    let watches = show.watch(&connection, clock);
    let (flags, context) = tokio::join!(flags, WriteContext::for_connection(&connection, clock));
    let (settings, notes) = settings_of(&connection, &config.current(), flags, &args.settings);
    let notice = context.as_ref().ok().and_then(|context| context.notice.clone());
    let notes = notes.into_iter().map(|note| ("settings", note)).chain(notice.map(|note| ("journal", note)));
    let mut dashboard =
        show::dashboard(show, &connection, watches, settings, notes.collect(), clock, context)?;
    dashboard.app.contexts = connection.contexts;
    Ok(dashboard)
}

/// Opens the dashboards of other contexts of the kubeconfig, with the configuration as it is then.
fn opener(args: DashboardArgs, connection: ConnectionArgs, config: ConfigInForce) -> ContextOpener {
    ContextOpener(Arc::new(move |name| {
        // If the file is invalid, the configuration in force applies, and the opened dashboard reports the error,
        // because it follows the file.
        let _ = config.read_again();
        let opened = open(args.clone(), connection.for_context(name), config.clone());
        Box::pin(async move { opened.await.map_err(|error| exit::error_text(&error)) })
    }))
}

/// Shows objects that were read from files. Time stands still, and nothing can be written.
async fn show_files(
    args: DashboardArgs,
    connection: ConnectionArgs,
    config: &ConfigInForce,
) -> Result<(), CliError> {
    let namespace = connection.namespace.clone();
    let connection = args.source.files(connection)?;
    let clock = connection.clock;
    let show = args.show.with_preferences(config, &connection.context);
    let watches = show.watch(&connection, clock);
    let flags = controller_flags(&connection.client).await;
    let (settings, notes) = settings_of(&connection, &config.current(), flags, &args.settings);
    let notes = notes.into_iter().map(|note| ("settings", note));
    let notes = notes.chain(connection.notes.iter().map(|note| ("files", note.clone()))).collect();
    let show = show.read_only().without_tour();
    let no_journal = Err(JournalError::Files);
    let mut dashboard =
        show::dashboard(show.clone(), &connection, watches, settings, notes, clock, no_journal)?;
    namespace.iter().for_each(|name| dashboard.app.filter_by_namespace(name));
    show::show(show, dashboard).await
}

/// Settings of the controller, with notes about their sources. The order of precedence is: flags of this command, the
/// configuration, flags of the cluster's kube-controller-manager, upstream's defaults.
pub fn settings_of(
    connection: &Connection,
    config: &Config,
    found: ControllerFlags,
    given: &SettingsArgs,
) -> (Settings, Vec<String>) {
    let mut settings = Settings::defaults(connection.version);
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
