//! A process, as Linux shows it.

use std::{fs, time::Duration};

use rustix::process::{Pid, Signal, kill_process};

#[derive(Clone, Copy)]
pub struct Process(pub u32);

impl Process {
    /// Resident memory in MiB.
    pub fn resident_mib(self) -> f64 {
        self.memory_mib("VmRSS:")
    }

    /// The most that it has been.
    pub fn peak_mib(self) -> f64 {
        self.memory_mib("VmHWM:")
    }

    fn memory_mib(self, field: &str) -> f64 {
        let status = self.read("status");
        let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("it lives");
        let kib = line.trim().trim_end_matches(" kB").parse::<f64>().expect("a number of kB");
        kib / 1024.0
    }

    /// Processor time that its threads have used, to the nanosecond. Threads that have ended are not counted.
    pub fn cpu(self) -> Duration {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.0)).expect("it lives, on Linux");
        let nanos = tasks.flatten().filter_map(|task| {
            // A thread may end meanwhile.
            let stat = fs::read_to_string(task.path().join("schedstat")).ok()?;
            stat.split(' ').next()?.parse::<u64>().ok()
        });
        Duration::from_nanos(nanos.sum())
    }

    /// Stops it where it is: its connections stay open, and nothing comes over them.
    pub fn pause(self) {
        self.signal(Signal::STOP);
    }

    pub fn resume(self) {
        self.signal(Signal::CONT);
    }

    fn signal(self, signal: Signal) {
        let pid = i32::try_from(self.0).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("it is a process"), signal).expect("it lives");
    }

    fn read(self, what: &str) -> String {
        fs::read_to_string(format!("/proc/{}/{what}", self.0)).expect("it lives, on Linux")
    }
}
