//! Asking before anything is written; the graver it is, the more has to be typed.

use std::io::{self, BufRead, IsTerminal, Write};

use super::{HowArgs, progress};
use crate::{
    cli::{CliError, plan::table_of},
    operation::Confirmation,
    plan::Plan,
};

/// Whether there is somebody to ask, or it was said that nobody need be.
pub fn possible(how: &HowArgs) -> Result<(), CliError> {
    if how.yes || (io::stdin().is_terminal() && io::stderr().is_terminal()) {
        Ok(())
    } else {
        Err(CliError::Usage("there is no terminal to ask on: with --enforce, --yes is needed too".into()))
    }
}

/// Shows the plan and asks; nothing but the word that is asked for is a yes.
pub async fn ask(plan: &Plan, how: &HowArgs, context: &str) -> Result<(), CliError> {
    let word = match Confirmation::to(plan) {
        _ if how.yes => return Ok(()),
        Confirmation::Needless => return Ok(()),
        Confirmation::Plain => "yes",
        Confirmation::Grave => context,
    };
    // Made for a terminal, each line by itself.
    for line in table_of(plan).lines() {
        progress(line);
    }
    confirm(word.to_owned(), context).await
}

async fn confirm(word: String, context: &str) -> Result<(), CliError> {
    let question = format!("This writes to {context}. Type {word} to go on, anything else to leave it: ");
    let typed = tokio::task::spawn_blocking(move || answer(&question)).await;
    match typed {
        Ok(Ok(typed)) if typed == word => Ok(()),
        Ok(Ok(_)) | Err(_) => Err(CliError::Declined),
        Ok(Err(error)) => Err(CliError::Io { doing: "reading the answer".into(), error }),
    }
}

/// Asks without a plan to show.
pub async fn ask_plainly(how: &HowArgs, context: &str) -> Result<(), CliError> {
    if how.yes { Ok(()) } else { confirm("yes".into(), context).await }
}

fn answer(question: &str) -> io::Result<String> {
    let mut out = io::stderr();
    out.write_all(crate::ui::text::clean(question).as_bytes())?;
    out.flush()?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(line.trim().to_owned())
}
