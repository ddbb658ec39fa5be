//! A process, as Linux shows it.

use std::{collections::BTreeMap, ffi::OsString, fs, time::Duration};

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

    /// Starts to count the processor time that it uses.
    pub fn count_cpu(self) -> CpuCounter {
        let mut counter = CpuCounter { process: self, of_threads: BTreeMap::new() };
        counter.used();
        counter
    }

    /// The processor time of each of its threads, by its number, in nanoseconds.
    fn threads(self) -> impl Iterator<Item = (OsString, u64)> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.0)).expect("it lives, on Linux");
        tasks.flatten().filter_map(|task| {
            // A thread may end meanwhile.
            let stat = fs::read_to_string(task.path().join("schedstat")).ok()?;
            Some((task.file_name(), stat.split(' ').next()?.parse().ok()?))
        })
    }

    /// How long its first thread has been ready to run and another process had the core.
    pub fn waited(self) -> Duration {
        let stat = self.read(&format!("task/{}/schedstat", self.0));
        let nanos = stat.split(' ').nth(1).and_then(|nanos| nanos.parse().ok());
        Duration::from_nanos(nanos.expect("Linux counts it"))
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

/// Counts the processor time of a process, to the nanosecond.
pub struct CpuCounter {
    process: Process,
    of_threads: BTreeMap<OsString, u64>,
}

impl CpuCounter {
    /// What was used since the last call. What a thread has used between that and its end is not counted.
    pub fn used(&mut self) -> Duration {
        let threads = self.process.threads();
        let used = threads.map(|(thread, now)| {
            let before = self.of_threads.insert(thread, now).unwrap_or(0);
            now.saturating_sub(before)
        });
        Duration::from_nanos(used.sum())
    }
}
