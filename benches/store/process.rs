//! A process, with the figures that Linux reports about it in `/proc`.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::{self, DirEntry},
    path::Path,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process, setpriority_process};

#[derive(Clone, Copy)]
pub struct Process(pub u32);

impl Process {
    /// Resident memory in MiB.
    pub fn resident_mib(self) -> f64 {
        self.memory_mib("VmRSS:")
    }

    /// Peak of the resident memory in MiB.
    pub fn peak_mib(self) -> f64 {
        self.memory_mib("VmHWM:")
    }

    fn memory_mib(self, field: &str) -> f64 {
        let status = self.read("status");
        let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("it lives");
        let kib = line.trim().trim_end_matches(" kB").parse::<f64>().expect("a number of kB");
        kib / 1024.0
    }

    /// Starts counting the CPU time of the process.
    pub fn count_cpu(self) -> CpuCounter {
        let mut counter = CpuCounter { process: self, of_threads: BTreeMap::new() };
        counter.used();
        counter
    }

    /// Returns the thread id, the name and the CPU time of each thread.
    fn threads(self) -> impl Iterator<Item = (OsString, String, Duration)> {
        // A thread that ended after it was listed is left out.
        self.tasks()
            .filter_map(|task| Some((task.file_name(), name_of(&task)?, ThreadTimes::of(&task.path())?.ran)))
    }

    /// Whether the process has a thread of this name.
    pub fn has_thread(self, name: &str) -> bool {
        self.tasks().filter_map(|task| name_of(&task)).any(|thread| thread == name)
    }

    fn tasks(self) -> impl Iterator<Item = DirEntry> {
        fs::read_dir(format!("/proc/{}/task", self.0)).expect("it lives, on Linux").flatten()
    }

    /// Returns how long the main thread has been ready to run without getting a core.
    pub fn waited(self) -> Duration {
        let first = format!("/proc/{0}/task/{0}", self.0);
        ThreadTimes::of(first.as_ref()).expect("it lives, on Linux").waited
    }

    /// Gives other processes precedence on the cores, as if this process ran on another machine. If Linux shares the
    /// cores between sessions (autogroup), the precedence applies to the whole session, which is also the session of
    /// the benchmark.
    pub fn give_way(self) {
        const LOWEST: i32 = 19;
        // Linux may be built without autogroups.
        let _ = fs::write(format!("/proc/{}/autogroup", self.0), LOWEST.to_string());
        for task in self.tasks() {
            let thread = task.file_name().to_str().and_then(|id| Pid::from_raw(id.parse().ok()?));
            // A thread may have ended after it was listed.
            let _ = setpriority_process(thread, LOWEST);
        }
    }

    /// Stops the process with SIGSTOP: its connections stay open, and it sends nothing.
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

/// Returns the name of a thread; `None` if it has ended.
fn name_of(task: &DirEntry) -> Option<String> {
    let name = fs::read_to_string(task.path().join("comm")).ok()?;
    Some(name.trim_end().to_owned())
}

/// Times that Linux counts for a thread.
struct ThreadTimes {
    ran: Duration,
    /// Time in which the thread was ready to run while another thread had the core.
    waited: Duration,
}

impl ThreadTimes {
    /// Reads the times of a thread; `None` if it has ended.
    fn of(task: &Path) -> Option<Self> {
        let stat = fs::read_to_string(task.join("schedstat")).ok()?;
        let mut nanos = stat.split(' ').map(|nanos| nanos.parse().ok().map(Duration::from_nanos));
        Some(Self { ran: nanos.next()??, waited: nanos.next()?? })
    }
}

/// Counts the CPU time of a process in nanoseconds.
pub struct CpuCounter {
    process: Process,
    of_threads: BTreeMap<OsString, Duration>,
}

impl CpuCounter {
    /// Returns the CPU time since the last call. The CPU time of a thread that ended between the two calls is not
    /// included.
    pub fn used(&mut self) -> Duration {
        self.used_by_name().into_values().sum()
    }

    /// Like [`Self::used`], by thread name.
    pub fn used_by_name(&mut self) -> BTreeMap<String, Duration> {
        let mut used: BTreeMap<String, Duration> = BTreeMap::new();
        for (thread, name, now) in self.process.threads() {
            let before = self.of_threads.insert(thread, now).unwrap_or_default();
            *used.entry(name).or_default() += now.saturating_sub(before);
        }
        used
    }
}
