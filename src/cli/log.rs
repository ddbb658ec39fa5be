//! The log: appended to a file on request, never written to the terminal.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    path::Path,
    sync::Mutex,
};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::{filter::Targets, fmt, layer::SubscriberExt};

use super::exit::CliError;
use kordon_core::visible;

/// Starts logging to the end of a file. Without a file, nothing is logged.
pub fn start(file: Option<&Path>) -> Result<(), CliError> {
    let Some(path) = file else { return Ok(()) };
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .map_err(|error| CliError::Io { doing: format!("opening the log {}", path.display()), error })?;
    let lines = fmt::layer().with_ansi(false).with_writer(Mutex::new(LogFile(file)));
    // `set_global_default` fails only if the process already has a log. That log stays.
    let _ =
        tracing::subscriber::set_global_default(tracing_subscriber::registry().with(filter()).with(lines));
    tracing::info!(version = env!("CARGO_PKG_VERSION"), "kordon started");
    Ok(())
}

/// A log file. Control and invisible characters in a line are made visible, since people read the file in a terminal.
/// Each write contains one whole log event.
struct LogFile(File);

impl Write for LogFile {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        self.0.write_all(visible::lines(&String::from_utf8_lossy(event)).as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Levels of the log. kube_client is limited to errors, because its warnings quote whole responses, secrets included.
fn filter() -> Targets {
    Targets::new()
        .with_default(LevelFilter::WARN)
        .with_target("kordon", LevelFilter::DEBUG)
        .with_target("kube_client", LevelFilter::ERROR)
}
