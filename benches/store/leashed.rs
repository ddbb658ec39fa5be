//! A process that ends with its owner.

use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use super::process::Process;

/// A process that ends when its standard input does: with this value, and with us however we end.
pub struct Leashed {
    child: Child,
    _leash: ChildStdin,
}

impl Leashed {
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).spawn().expect("the program starts");
        let leash = child.stdin.take().expect("it is piped");
        Self { child, _leash: leash }
    }

    /// The same; what it prints is to be read.
    pub fn start_to_read(command: &mut Command) -> (Self, ChildStdout) {
        let mut leashed = Self::start(command.stdout(Stdio::piped()));
        let output = leashed.child.stdout.take().expect("it is piped");
        (leashed, output)
    }

    pub fn process(&self) -> Process {
        Process(self.child.id())
    }

    /// How it has ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("it is our child")
    }
}

impl Drop for Leashed {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
