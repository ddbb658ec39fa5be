//! Measures the duration of a function as a median or percentile of several runs, because other processes disturb
//! single runs.

use std::time::{Duration, Instant};

/// Returns the median duration of 20 runs. Each run gets a new input from `given`, and may change the input.
pub fn median<T>(given: impl Fn() -> T, run: impl Fn(&mut T)) -> Duration {
    median_of(20, given, run)
}

/// Returns the median duration of `runs` runs; see [`median`].
pub fn median_of<T>(runs: usize, given: impl Fn() -> T, run: impl Fn(&mut T)) -> Duration {
    percentile_of(50, runs, given, run)
}

/// Returns the duration that `percent` percent of the runs do not exceed.
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
