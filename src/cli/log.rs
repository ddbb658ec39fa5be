//! The log: into a file on request, never to the terminal.

use std::{fs::OpenOptions, path::Path, sync::Mutex};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::{filter::Targets, fmt, layer::SubscriberExt};

use super::exit::CliError;

/// Begins the log, appending to the file; without a file there is none.
pub fn begin(file: Option<&Path>) -> Result<(), CliError> {
    let Some(path) = file else { return Ok(()) };
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .map_err(|error| CliError::Io { doing: format!("opening the log {}", path.display()), error })?;
    let lines = fmt::layer().with_ansi(false).with_writer(Mutex::new(file));
    // A second log can only be begun by a program that has one already: that one stays.
    let _ =
        tracing::subscriber::set_global_default(tracing_subscriber::registry().with(filter()).with(lines));
    tracing::info!(version = env!("CARGO_PKG_VERSION"), "kordon begins");
    Ok(())
}

/// What is worth a line. kube_client's warnings quote whole answers of the server, secrets included.
fn filter() -> Targets {
    Targets::new()
        .with_default(LevelFilter::WARN)
        .with_target("kordon", LevelFilter::DEBUG)
        .with_target("kube_client", LevelFilter::ERROR)
}
