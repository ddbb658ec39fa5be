//! With everything loaded: what changes cost, how soon a key shows, and what is drawn when there is nothing to draw.

use std::{
    collections::BTreeMap,
    thread::sleep,
    time::{Duration, Instant},
};

use super::{
    cluster::TestCluster,
    dashboard::Dashboard,
    process::Process,
    report::{Budget, ClusterSize, Figure, Report},
};

/// In each view: the p99 of fewer is one or two keys that the machine was busy for.
const KEYS: usize = 600;
/// CPU time is judged over each window of this length.
const WINDOW: usize = 30;
/// How long it is watched, in seconds.
const WATCHED: usize = 90;
/// Keyframes of the history as often as they may come, instead of each ten minutes: some of the windows have one.
const OFTEN: [&str; 2] = ["--history", "12m"];
/// The longest that is waited until one is written.
const LONGEST_KEYFRAME: Duration = Duration::from_secs(300);
/// What the cluster could lose is worked out in slices of 3 % of a core for some time after the last change of a pod.
const LONGEST_WORK: Duration = Duration::from_secs(600);
/// What was known is shown while it is proved again after the last changes: that ends in this time.
const PROVED_AGAIN: Duration = Duration::from_secs(30);
/// How long a frozen screen is watched.
const FROZEN: Duration = Duration::from_secs(8);
/// Nothing arrives for so long at a time. Heartbeats are up to ten seconds old when they stop, and late after fifteen: what
/// arrived before has a second to be over, and then nothing may happen in a window of this length.
const QUIET: Duration = Duration::from_millis(3500);
const SETTLING: Duration = Duration::from_secs(1);
const QUIET_WINDOWS: u32 = 6;
/// Between two windows every heartbeat is renewed.
const RENEWING: Duration = Duration::from_secs(12);

pub fn measure(
    cluster: &TestCluster,
    size: ClusterSize,
    (renewals, changes): (u32, u32),
    report: &mut Report,
) {
    report.heading(&format!(
        "Under load: {renewals} renewals of Leases and {changes} writes to pods a second asked for"
    ));
    cluster.renew_all();
    cluster.server.wait_until_idle(report);
    let churn = cluster.churn(renewals, changes);
    let mut dashboard = Dashboard::start(cluster, &OFTEN);
    dashboard.wait_for_first_rows();
    dashboard.open_information();
    dashboard.wait_for_lists(&["nodes", "leases", "pods"]);
    dashboard.close_overlay();
    // A server on the same cores that is busy with the list of pods takes renewals late. What the end of the lists has set off
    // is over, and what nodes that seemed to be silent have.
    dashboard.wait_until_ready(cluster.nodes);
    sleep(Duration::from_secs(15));
    let mut cpu = Vec::new();
    let servers = cluster.server.processes().into_iter();
    let servers: Vec<_> = servers.map(|(name, server)| (name, server.count_cpu())).collect();
    let (renewed, changed, failed) = churn.rates_during(|| cpu = sample(dashboard.process()));
    report.add("Leases renewed", Figure::PerSecond(renewed), Budget::None, format!("{failed} writes failed"));
    report.add("pods written", Figure::PerSecond(changed), Budget::None, "");
    for (name, mut server) in servers {
        let used = Figure::Percent(percent(server.used(), Duration::from_secs(WATCHED as u64)));
        report.add(format!("CPU of {name}"), used, Budget::None, "of a core");
    }
    let mean = Figure::Percent(share(&cpu));
    let worst = cpu.windows(WINDOW).map(share).fold(0.0, f64::max);
    report.add("CPU, any 30 s window", Figure::Percent(worst), Budget::AtMost(15.0), format!("mean {mean}"));

    // How long kordon takes is what counts. An API server on the same two cores, whose garbage collector takes both for tens of
    // milliseconds, would be measured with it.
    cluster.server.processes().into_iter().for_each(|(_, server)| server.give_way());
    churn.process().give_way();
    key_delays(&mut dashboard, "as it starts", report);
    // Each view, and the keys that lead to it from the one before.
    for (view, keys) in
        [("zone map", "1z"), ("nodes by zone", "z2G"), ("groups folded", "F"), ("nodes", "FGGG")]
    {
        dashboard.press(keys);
        key_delays(&mut dashboard, view, report);
    }
    let (resident, peak) = (dashboard.process().resident_mib(), dashboard.process().peak_mib());
    report.add("resident after all that", Figure::MiB(resident), Budget::AtMost(size.memory_mib()), "");
    report.add("  at its peak", Figure::MiB(peak), Budget::AtMost(size.memory_mib()), "");

    let (frames, took) = dashboard.frames_during(Duration::from_secs(10));
    let rate = frames as f64 / took.as_secs_f64();
    report.add("redraws", Figure::PerSecond(rate), Budget::AtMost(30.0), "");
    dashboard.freeze();
    let (frames, took) = dashboard.frames_during(FROZEN);
    report.add("redraws while frozen", Figure::Count(frames), Budget::AtMost(0.0), format!("in {took:.1?}"));
    dashboard.freeze();
    drop(churn);
    let renewals_alone = cluster.churn(renewals, 0);
    wait_for_headroom(&dashboard, report);
    quiet(&dashboard, renewals_alone.process(), report);
}

/// Waits until the dashboard has worked out what the last changes of pods have set off, as the title of the zones says.
fn wait_for_headroom(dashboard: &Dashboard, report: &mut Report) {
    let begun = Instant::now();
    while !dashboard.knows_headroom() && begun.elapsed() < LONGEST_WORK {
        sleep(Duration::from_millis(500));
    }
    let note = if dashboard.knows_headroom() { "" } else { "it is not known yet" };
    report.add("until headroom was known", Figure::seconds(begun.elapsed()), Budget::None, note);
    sleep(PROVED_AGAIN);
}

/// With nothing arriving.
fn quiet(dashboard: &Dashboard, churn: Process, report: &mut Report) {
    report.heading("Nothing arriving");
    let (mut all_frames, mut all_took) = (0, Duration::ZERO);
    let (mut by_thread, mut windows) = (BTreeMap::<String, Duration>::new(), Vec::new());
    for _ in 0..QUIET_WINDOWS {
        // What arrived before has begun it, and nothing begins another one.
        let begun = Instant::now();
        while dashboard.process().has_thread("keyframe") && begun.elapsed() < LONGEST_KEYFRAME {
            sleep(Duration::from_millis(500));
        }
        churn.pause();
        sleep(SETTLING);
        let mut cpu = dashboard.process().count_cpu();
        let (frames, took) = dashboard.frames_during(QUIET);
        let used = cpu.used_by_name();
        (all_frames, all_took) = (all_frames + frames, all_took + took);
        windows.push(Figure::Percent(percent(used.values().sum(), took)).to_string());
        used.into_iter().for_each(|(thread, used)| *by_thread.entry(thread).or_default() += used);
        churn.resume();
        sleep(RENEWING);
    }
    // One more may fall into each window by its phase.
    let most = f64::from(QUIET_WINDOWS) * QUIET.as_secs_f64().ceil();
    let note = format!("in {QUIET_WINDOWS} times {QUIET:.1?}: one a second");
    report.add("redraws", Figure::Count(all_frames), Budget::AtMost(most), note);
    let share = |used: Duration| Figure::Percent(percent(used, all_took));
    let of_threads = by_thread.iter().map(|(thread, used)| format!("{thread} {}", share(*used)));
    let of_threads = of_threads.collect::<Vec<_>>().join(", ");
    let note = format!("of a core: {of_threads}; of each window: {}", windows.join(", "));
    report.add("CPU", share(by_thread.values().sum()), Budget::AtMost(1.0), note);
}

/// The CPU time of each second.
fn sample(process: Process) -> Vec<Duration> {
    let begun = Instant::now();
    let mut cpu = process.count_cpu();
    (1..=WATCHED)
        .map(|second| {
            sleep((begun + Duration::from_secs(second as u64)).saturating_duration_since(Instant::now()));
            cpu.used()
        })
        .collect()
}

/// Percent of a core, where so much was used in each second.
fn share(seconds: &[Duration]) -> f64 {
    percent(seconds.iter().sum(), Duration::from_secs(seconds.len() as u64))
}

/// Percent of a core.
fn percent(used: Duration, took: Duration) -> f64 {
    100.0 * used.as_secs_f64() / took.as_secs_f64()
}

/// How long it takes until a key shows, and for how much of that the loop waits for a core.
fn key_delays(dashboard: &mut Dashboard, view: &str, report: &mut Report) {
    let (mut delays, mut waits): (Vec<_>, Vec<_>) =
        (0..KEYS).map(|number| dashboard.key_to_frame(number)).unzip();
    delays.sort();
    waits.sort();
    let quantile = |of: &[Duration], share: f64| of[((KEYS - 1) as f64 * share).round() as usize];
    let [median, p99, longest] = [0.5, 0.99, 1.0].map(|share| quantile(&delays, share));
    let waited = quantile(&waits, 0.99);
    let note =
        format!("median {median:.1?}, longest {longest:.1?}; the loop waited for a core: p99 {waited:.1?}");
    report.add(format!("key to frame, p99: {view}"), Figure::millis(p99), Budget::AtMost(16.0), note);
}
