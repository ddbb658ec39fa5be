//! `kordon` without a subcommand: the dashboard of a cluster, of another cluster if that of the current context cannot
//! be used, or the demo for somebody who has no kubeconfig.

use std::io::{self, IsTerminal, Write};

use crossterm::{
    event::{Event, EventStream, KeyCode, KeyEventKind, KeyModifiers},
    terminal,
};
use futures::StreamExt;
use tokio::signal::unix::{SignalKind, signal};

use super::{
    connection::ConnectionArgs,
    dashboard::{self, DashboardArgs},
    demo::{self, DemoArgs},
    exit::{self, CliError},
};
use crate::k8s::connect::ConnectError;
use kordon_core::{
    cluster::nearest::{did_you_mean, nearest},
    visible,
};

/// Runs the dashboard. Where there is no kubeconfig and no cluster was named, it offers the demo. If the cluster of the
/// current context cannot be used, it names the other contexts, and on a terminal asks which of them to open.
pub async fn run(args: DashboardArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    let (show, settings) = args.without_cluster();
    let names_none = connection.names_no_cluster() && !show.is_snapshot();
    let can_ask = !show.is_snapshot() && is_on_terminal();
    let (demo, config) =
        (DemoArgs::instead_of_dashboard(show.clone(), settings.clone()), connection.config.clone());
    match dashboard::run(args.clone(), connection.clone()).await {
        Err(CliError::Connect(ConnectError::NoKubeconfig { looked }))
            if names_none && is_demo_wanted(&looked).await? =>
        {
            demo::run(demo, config).await
        }
        Err(CliError::Connect(error)) => match connection.clone().with_other_contexts(error) {
            CliError::CurrentContext { error, others } if can_ask => {
                open_other(args, connection, error, others).await
            }
            error => Err(error),
        },
        done => done,
    }
}

/// Opens the dashboard of another context, which the user chooses; asks again if its cluster cannot be used either.
///
/// # Errors
/// The user chose none, or the chosen dashboard failed.
async fn open_other(
    args: DashboardArgs,
    connection: ConnectionArgs,
    error: ConnectError,
    others: Vec<String>,
) -> Result<(), CliError> {
    let mut why = CliError::CurrentContext { error, others: others.clone() };
    loop {
        print(&format!("{}\n", exit::error_text(&why)))?;
        let Some(context) = chosen(&others).await? else { return Err(why) };
        match dashboard::run(args.clone(), connection.for_context(context)).await {
            Err(error @ CliError::Connect(_)) => why = error,
            done => return done,
        }
    }
}

/// Asks for the name of one of these contexts; `None` if the user quits.
async fn chosen(contexts: &[String]) -> Result<Option<String>, CliError> {
    loop {
        print("Context to open instead, as :ctx does in the dashboard (Enter quits): ")?;
        let line = tokio::task::spawn_blocking(|| {
            let mut line = String::new();
            io::stdin().read_line(&mut line).map(|_| line)
        });
        let line = line.await.expect("reading does not panic").map_err(failed)?;
        let name = line.trim();
        if name.is_empty() || contexts.iter().any(|context| context == name) {
            return Ok(Some(name.to_owned()).filter(|name| !name.is_empty()));
        }
        let meant = did_you_mean(nearest(name, contexts.iter().map(String::as_str)));
        print(&format!("{}\n", visible::text(&format!("there is no context {name}{meant}"))))?;
    }
}

fn is_on_terminal() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Asks whether to open the demo. Returns `false` without a question if there is no terminal to ask on.
///
/// # Errors
/// The terminal cannot be read or written.
async fn is_demo_wanted(looked: &str) -> Result<bool, CliError> {
    if !is_on_terminal() {
        return Ok(false);
    }
    let looked = visible::text(looked);
    let answer = {
        // Raw mode is entered before the question, so that the answer is read key by key.
        let _raw = RawMode::enable()?;
        print(&format!(
            "No kubeconfig found (looked for {looked}).\r\nPress Enter for the demo, q to quit: "
        ))?;
        answer().await
    };
    print("\n")?;
    answer
}

/// Waits for Enter or for a key that declines. The end of the input counts as
/// declining, and so does a signal that ends the program.
async fn answer() -> Result<bool, CliError> {
    let mut terminated = signal(SignalKind::terminate()).map_err(failed)?;
    let mut keys = EventStream::new();
    loop {
        let event = tokio::select! {
            event = keys.next() => event,
            _ = terminated.recv() => None,
        };
        let key = match event.transpose().map_err(failed)? {
            None => return Ok(false),
            Some(Event::Key(key)) if key.kind != KeyEventKind::Release => key,
            Some(_) => continue,
        };
        match key.code {
            KeyCode::Enter => return Ok(true),
            KeyCode::Esc | KeyCode::Char('q') => return Ok(false),
            KeyCode::Char('c' | 'd') if key.modifiers == KeyModifiers::CONTROL => return Ok(false),
            _ => {}
        }
    }
}

/// Raw mode of the terminal: keys are read as they are typed. Dropping this value ends raw mode.
struct RawMode;

impl RawMode {
    fn enable() -> Result<Self, CliError> {
        terminal::enable_raw_mode().map_err(failed)?;
        Ok(Self)
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        let _ = terminal::disable_raw_mode();
    }
}

fn print(text: &str) -> Result<(), CliError> {
    let mut out = io::stderr().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(failed)
}

fn failed(error: io::Error) -> CliError {
    CliError::Io { doing: "asking on the terminal".into(), error }
}
