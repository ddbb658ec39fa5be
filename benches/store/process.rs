//! A process, as Linux shows it.

use std::{fs, time::Duration};

pub struct Process(pub u32);

/// Linux counts processor time in hundredths of a second for everybody to see.
const TICKS_A_SECOND: u64 = 100;

impl Process {
    /// Peak resident memory in MiB.
    pub fn peak_mib(&self) -> f64 {
        let status = self.read("status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("it lives");
        let kib = line.trim().trim_end_matches(" kB").parse::<f64>().expect("a number of kB");
        kib / 1024.0
    }

    /// Processor time used so far, by the program itself and by the kernel for it.
    pub fn cpu(&self) -> Duration {
        let stat = self.read("stat");
        // The name before it may have spaces. Fields 14 and 15 of proc(5) are utime and stime.
        let (_, fields) = stat.rsplit_once(") ").expect("its name in parentheses");
        let ticks: u64 = fields
            .split(' ')
            .skip(11)
            .take(2)
            .map(|ticks| ticks.parse::<u64>().expect("a number of ticks"))
            .sum();
        Duration::from_millis(ticks * 1000 / TICKS_A_SECOND)
    }

    fn read(&self, what: &str) -> String {
        fs::read_to_string(format!("/proc/{}/{what}", self.0)).expect("it lives, on Linux")
    }
}
