//! A process that ends with its owner.

use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use super::process::Process;

/// A child process that exits when its standard input closes. The input closes when this value is dropped, and when the
/// parent ends in any way.
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

    /// Starts the child like [`Self::start`], and also returns its standard output.
    pub fn start_to_read(command: &mut Command) -> (Self, ChildStdout) {
        let mut leashed = Self::start(command.stdout(Stdio::piped()));
        let output = leashed.child.stdout.take().expect("it is piped");
        (leashed, output)
    }

    pub fn process(&self) -> Process {
        Process(self.child.id())
    }

    /// Returns the exit status of the child if it has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("it is our child")
    }
}

impl Drop for Leashed {
    fn drop(&mut self) {
        // The child may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
