//! Runs the user's command for a notice, never through a shell.

use std::{process::Stdio, time::Duration};

use tokio::{process::Command, time::timeout};

use super::words::NoticeWords;

/// Time after which the command is killed.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs a program with its arguments. Texts of the notice are only in the arguments and the environment.
///
/// # Errors
/// The program does not start, fails, or takes too long. The text gives the reason.
pub async fn run(command: &[String], words: &NoticeWords) -> Result<(), String> {
    let (program, arguments) = command.split_first().ok_or("the command is empty")?;
    let mut child = Command::new(program);
    child
        .args(arguments.iter().map(|argument| words.filled(argument)))
        .envs(words.variables())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    match timeout(PATIENCE, child.status()).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(format!("command {program}: {status}")),
        Ok(Err(error)) => Err(format!("command {program}: {error}")),
        Err(_) => Err(format!("command {program} took longer than {} s", PATIENCE.as_secs())),
    }
}
