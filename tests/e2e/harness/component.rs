//! One component of the control plane: a process and its log.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
};

use anyhow::{Context, Result, bail};
use kordon_time::Span;
use rustix::process::{Pid, Signal};

use super::eventually::eventually;

/// A child process. It ends when this value is dropped. It also ends with this program: it exits when its standard
/// input closes, and this value holds the other end of that pipe.
pub struct Component {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Component {
    /// Starts the component `name` of the control plane's binary, and appends its output to `LOGS/NAME.log`.
    pub fn start(binary: &Path, name: &'static str, flags: &[String], logs: &Path) -> Result<Self> {
        let log = logs.join(format!("{name}.log"));
        let output = File::options().create(true).append(true).open(&log).context("opening a log")?;
        let child = Command::new(binary)
            .arg(name)
            .args(flags)
            .env("CONTROL_PLANE_LEASH", "1")
            .env("TZ", "UTC") // times in the log have no zone
            .stdin(Stdio::piped())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("starting {name} from {}", binary.display()))?;
        Ok(Self { name, child, log })
    }

    /// Starts `kordon controller` with a state folder in `logs`, and appends its output to `LOGS/NAME.log`.
    pub fn start_kordon(binary: &Path, name: &'static str, flags: &[String], logs: &Path) -> Result<Self> {
        let log = logs.join(format!("{name}.log"));
        let output = File::options().create(true).append(true).open(&log).context("opening a log")?;
        let child = Command::new(binary)
            .arg("controller")
            .args(flags)
            .env_clear()
            .env("HOME", logs)
            .env("XDG_STATE_HOME", logs.join("state").join(name))
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("starting {name} from {}", binary.display()))?;
        Ok(Self { name, child, log })
    }

    /// Fails with the last lines of the log if the process has ended by itself.
    pub fn check(&mut self) -> Result<()> {
        match self.ended()? {
            None => Ok(()),
            Some(status) => bail!("{} ended by itself ({status}):\n{}", self.name, self.last_lines(8)),
        }
    }

    /// Kills the process, as a crash of its machine would.
    pub fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Pauses the process with SIGSTOP, like a machine that freezes.
    pub fn pause(&self) -> Result<()> {
        self.signal(Signal::STOP)
    }

    /// Lets a paused process continue.
    pub fn resume(&self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        rustix::process::kill_process(Pid::from_child(&self.child), signal)
            .with_context(|| format!("signalling {}", self.name))
    }

    /// Sends SIGTERM and waits for the end of the process.
    pub async fn stop(&mut self) -> Result<()> {
        self.signal(Signal::TERM)?;
        let what = format!("the end of {}", self.name);
        eventually(&what, Span::from_secs(20), async || self.ended()).await?;
        Ok(())
    }

    /// Returns the exit status of the process if it has ended.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    fn last_lines(&self, count: usize) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_else(|error| format!("no log: {error}"));
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(count)..].join("\n")
    }
}

impl Drop for Component {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.kill();
    }
}
