//! Measuring: the median of some runs, for a machine is rarely alone with one.

use std::time::{Duration, Instant};

/// The median of what twenty runs take, each with a new copy of what it may change.
pub fn median<T>(given: impl Fn() -> T, run: impl Fn(&mut T)) -> Duration {
    median_of(20, given, run)
}

/// The same of this many runs.
pub fn median_of<T>(runs: usize, given: impl Fn() -> T, run: impl Fn(&mut T)) -> Duration {
    percentile_of(50, runs, given, run)
}

/// What this percentage of the runs do not exceed.
#[expect(clippy::disallowed_methods, reason = "a benchmark is about the machine's own time")]
pub fn percentile_of<T>(
    percent: usize,
    runs: usize,
    given: impl Fn() -> T,
    run: impl Fn(&mut T),
) -> Duration {
    let mut times: Vec<Duration> = (0..runs)
        .map(|_| {
            let mut given = given();
            let begun = Instant::now();
            run(&mut given);
            begun.elapsed()
        })
        .collect();
    times.sort();
    times[runs * percent / 100]
}
