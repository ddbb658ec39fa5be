//! Commands of the operator for the machine of a node: run directly, never through a shell.

use std::{fs::File, io, process::Stdio};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, BufReader},
    process::Command,
    sync::mpsc,
};

use kordon_core::{cluster::NodeName, visible};

/// Maximum number of output lines that are kept of one run. Further lines are read and dropped.
const LINES: usize = 200;

/// Maximum number of characters that are kept of a line.
const LINE: usize = 500;

/// A program with its arguments. In each argument, `{node}` stands for the name of the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook(Vec<String>);

/// A line of output: the node that the command ran for, and the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookLine {
    pub node: Option<NodeName>,
    pub text: String,
}

impl Hook {
    /// Splits a command line into words as a shell does. No other syntax of shells is understood.
    ///
    /// # Errors
    /// A quote is not closed, or there is no word.
    pub fn parse(text: &str) -> Result<Self, String> {
        let words = shell_words::split(text).map_err(|error| error.to_string())?;
        if words.is_empty() { Err("the command is empty".into()) } else { Ok(Self(words)) }
    }

    /// Runs the command to its end, for one node or, without a node, for the whole cluster. Its output goes to `lines`.
    /// The names of the node and the maintenance are in its arguments and its environment. `input` is its standard
    /// input.
    ///
    /// The command runs in its own process group, so that an interrupt at the terminal does not stop the work on a
    /// machine halfway.
    ///
    /// # Errors
    /// The program does not start or fails; the text says how.
    pub async fn run(
        &self,
        node: Option<&NodeName>,
        maintenance: &str,
        input: File,
        lines: mpsc::Sender<HookLine>,
    ) -> Result<(), String> {
        let name = node.map_or("", |node| &**node);
        let words: Vec<String> = self.0.iter().map(|word| word.replace("{node}", name)).collect();
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .env("KORDON_NODE", name)
            .env("KORDON_MAINTENANCE", maintenance)
            .stdin(Stdio::from(input))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let failed = |error: io::Error| format!("{}: {error}", words[0]);
        let mut child = command.spawn().map_err(failed)?;
        let (out, errors) = (child.stdout.take(), child.stderr.take());
        let read = async { tokio::join!(pass_on(out, node, &lines), pass_on(errors, node, &lines)) };
        let (status, _) = tokio::join!(child.wait(), read);
        let status = status.map_err(failed)?;
        if status.success() { Ok(()) } else { Err(format!("{}: {status}", words[0])) }
    }
}

/// Sends the lines of a stream to `lines`, until the stream ends.
async fn pass_on(
    stream: Option<impl AsyncRead + Unpin>,
    node: Option<&NodeName>,
    lines: &mpsc::Sender<HookLine>,
) {
    let Some(stream) = stream else { return };
    let (mut stream, mut line, mut count) = (BufReader::new(stream), Vec::new(), 0);
    while stream.read_until(b'\n', &mut line).await.is_ok_and(|read| read > 0) {
        count += 1;
        let text = match count {
            ..=LINES => String::from_utf8_lossy(&line).trim_end().chars().take(LINE).collect(),
            _ if count == LINES + 1 => "the rest of its output is left out".to_owned(),
            _ => String::new(),
        };
        line.clear();
        if count <= LINES + 1 {
            let text = visible::text(&text).to_string();
            // Sending fails if the maintenance was stopped, because the receiver is then gone.
            let _ = lines.send(HookLine { node: node.cloned(), text }).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn run(command: &str, node: &str) -> (Result<(), String>, Vec<String>) {
        let (sender, mut lines) = mpsc::channel(1000);
        let input = tempfile::tempfile().expect("a file");
        let ended =
            Hook::parse(command).expect("a command").run(Some(&node.into()), "m1", input, sender).await;
        let mut texts = Vec::new();
        while let Ok(line) = lines.try_recv() {
            texts.push(line.text);
        }
        (ended, texts)
    }

    #[tokio::test]
    async fn the_name_of_a_node_is_an_argument_and_never_read_by_a_shell() {
        let (ended, lines) = run("printf '%s|' 'a b' {node}", "n1; rm -rf $HOME").await;
        assert_eq!(ended, Ok(()));
        assert_eq!(lines, ["a b|n1; rm -rf $HOME|"]);
        let (_, lines) = run("sh -c 'echo $KORDON_NODE $KORDON_MAINTENANCE; cat'", "n2").await;
        assert_eq!(lines, ["n2 m1"], "the input is empty");
    }

    #[tokio::test]
    async fn the_exit_code_decides() {
        let (ended, lines) = run("sh -c 'echo broken >&2; exit 3'", "n1").await;
        assert_eq!(ended, Err("sh: exit status: 3".into()));
        assert_eq!(lines, ["broken"]);
        assert!(run("/no/such/program", "n1").await.0.expect_err("it fails").contains("No such file"));
        assert!(Hook::parse("'a").is_err() && Hook::parse(" ").is_err());
    }

    #[tokio::test]
    async fn a_flood_of_output_is_cut_and_cannot_control_the_terminal() {
        let (ended, lines) = run("sh -c 'seq 1000; printf \"\\033[2J\"'", "n1").await;
        assert_eq!((ended, lines.len()), (Ok(()), LINES + 1));
        assert_eq!(lines[LINES], "the rest of its output is left out");
        let (_, lines) = run("printf '\\033[2J'", "n1").await;
        assert!(!lines[0].contains('\u{1b}'), "{lines:?}");
    }
}
