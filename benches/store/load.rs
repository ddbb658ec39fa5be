//! Measures a dashboard with everything loaded: the CPU cost of changes, the delay of keys and of the mouse, and the
//! redraws when nothing changes.

use std::{
    collections::BTreeMap,
    thread::sleep,
    time::{Duration, Instant},
};

use super::{
    actions::Action,
    cluster::TestCluster,
    dashboard::Dashboard,
    process::Process,
    report::{Budget, ClusterSize, Figure, Report},
};

/// How often each action is repeated. With fewer repetitions, one or two during which the machine was busy would decide
/// the p99.
const REPETITIONS: usize = 600;
/// Length in seconds of the windows over which CPU time is averaged. Each window has to meet the budget.
const WINDOW: usize = 30;
/// Seconds during which CPU time is measured.
const WATCHED: usize = 90;
/// Arguments that shorten the interval between keyframes of the history from ten minutes to its minimum, so that some
/// of the windows contain a keyframe.
const OFTEN: [&str; 2] = ["--history", "12m"];
/// Longest wait for the end of a keyframe.
const LONGEST_KEYFRAME: Duration = Duration::from_secs(300);
/// Budget of the time from the last change of a pod until N-1 is completely computed.
const HEADROOM_WITHIN: Duration = Duration::from_secs(15 * 60);
/// Budget of the CPU time of N-1 while it is computed, in percent of a core.
const HEADROOM_CPU: f64 = 5.0;
/// Longest wait for N-1. It is longer than the budget, so that a missed budget is measured.
const LONGEST_HEADROOM: Duration = Duration::from_secs(1800);
/// CPU usage in percent of a core, averaged over [`IDLE_FOR`], below which the worker threads count as idle.
const IDLE: f64 = 1.0;
const IDLE_FOR: Duration = Duration::from_secs(10);
/// Duration of the measurement of a frozen screen.
const FROZEN: Duration = Duration::from_secs(8);
/// Length of a window in which no data arrives, so that the dashboard has nothing to do. When heartbeats stop, the last
/// ones are up to 10 s old, and nodes are late after 15 s. Of the 5 s in between, 1 s is for processing earlier data.
const QUIET: Duration = Duration::from_millis(3500);
const SETTLING: Duration = Duration::from_secs(1);
const QUIET_WINDOWS: u32 = 6;
/// Pause between two windows, long enough for all nodes to renew their Leases.
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
    // The API server shares the cores with the dashboard, and accepts renewals late while it sends the list of pods.
    // The pause gives time for the work after the lists, and for the work caused by nodes that seemed silent.
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

    // Other processes get a lower priority, so that only kordon's own delay is measured. With equal priority, the API
    // server's garbage collector would take both cores for tens of milliseconds.
    cluster.server.processes().into_iter().for_each(|(_, server)| server.give_way());
    churn.process().give_way();
    report.heading("From a key, click or turn of the wheel to its frame, under the same load");
    delays(&mut dashboard, Action::Move, "as it starts", report);
    // Each view, and the keys that lead to it from the view before.
    for (view, keys) in
        [("zone map", "1z"), ("nodes by zone", "z2G"), ("groups folded", "F"), ("nodes", "FGGG")]
    {
        dashboard.press(keys);
        delays(&mut dashboard, Action::Move, view, report);
    }
    for action in Action::OTHERS {
        delays(&mut dashboard, action, "nodes", report);
    }
    report.heading("After all that");
    let (resident, peak) = (dashboard.process().resident_mib(), dashboard.process().peak_mib());
    report.add("resident", Figure::MiB(resident), Budget::AtMost(size.memory_mib()), "");
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
    wait_for_headroom(&dashboard, renewals_alone.process(), size, report);
    quiet(&dashboard, renewals_alone.process(), report);
}

/// Waits until the dashboard has computed headroom (N-1) after the last changes of pods, as its verdict shows.
///
/// Pauses `churn` while the CPU time of the worker threads is measured, because some of them read Leases. First pauses it
/// for one measurement while headroom is computed. This is shorter than the time after which a node is late.
fn wait_for_headroom(dashboard: &Dashboard, churn: Process, size: ClusterSize, report: &mut Report) {
    let within = match size.is_larger() {
        true => Budget::None,
        false => Budget::AtMost(HEADROOM_WITHIN.as_secs_f64()),
    };
    let worker_share = || {
        let mut cpu = dashboard.process().count_cpu();
        sleep(IDLE_FOR);
        percent(cpu.used_by_name().remove("tokio-rt-worker").unwrap_or_default(), IDLE_FOR)
    };
    let begun = Instant::now();
    churn.pause();
    let computing = worker_share();
    churn.resume();
    let note = format!("of a core in {IDLE_FOR:?}, all worker threads");
    report.add(
        "CPU while headroom is computed",
        Figure::Percent(computing),
        Budget::AtMost(HEADROOM_CPU),
        note,
    );
    while !dashboard.knows_headroom() && begun.elapsed() < LONGEST_HEADROOM {
        sleep(Duration::from_millis(500));
    }
    let note = if dashboard.knows_headroom() { "" } else { "it is not known yet" };
    report.add("until headroom was known", Figure::seconds(begun.elapsed()), within, note);
    churn.pause();
    let mut share = f64::MAX;
    while share >= IDLE && begun.elapsed() < LONGEST_HEADROOM {
        share = worker_share();
    }
    churn.resume();
    let took = begun.elapsed();
    sleep(RENEWING);
    let note = if share < IDLE { "" } else { "it is still being computed" };
    report.add("  until all of it was computed", Figure::seconds(took), within, note);
}

/// Measures a dashboard while nothing arrives.
fn quiet(dashboard: &Dashboard, churn: Process, report: &mut Report) {
    report.heading("Nothing arriving");
    let (mut all_frames, mut all_took) = (0, Duration::ZERO);
    let (mut by_thread, mut windows) = (BTreeMap::<String, Duration>::new(), Vec::new());
    for _ in 0..QUIET_WINDOWS {
        // Waits for the end of a keyframe that earlier data has caused. Without new data no other keyframe begins.
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
    // The dashboard redraws once a second, so a window has at most one redraw for each second that it covers or begins.
    let most = f64::from(QUIET_WINDOWS) * QUIET.as_secs_f64().ceil();
    let note = format!("in {QUIET_WINDOWS} times {QUIET:.1?}: one a second");
    report.add("redraws", Figure::Count(all_frames), Budget::AtMost(most), note);
    let share = |used: Duration| Figure::Percent(percent(used, all_took));
    let of_threads = by_thread.iter().map(|(thread, used)| format!("{thread} {}", share(*used)));
    let of_threads = of_threads.collect::<Vec<_>>().join(", ");
    let note = format!("of a core: {of_threads}; of each window: {}", windows.join(", "));
    report.add("CPU", share(by_thread.values().sum()), Budget::AtMost(1.0), note);
}

/// Returns the CPU time that a process uses in each second, for [`WATCHED`] seconds.
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

/// Returns the mean of CPU times per second, in percent of a core.
fn share(seconds: &[Duration]) -> f64 {
    percent(seconds.iter().sum(), Duration::from_secs(seconds.len() as u64))
}

/// Returns CPU time in percent of a core.
fn percent(used: Duration, took: Duration) -> f64 {
    100.0 * used.as_secs_f64() / took.as_secs_f64()
}

/// Measures the time until the screen shows the effect of an action, and the part of this time in which the loop's
/// thread waits for a core.
fn delays(dashboard: &mut Dashboard, action: Action, view: &str, report: &mut Report) {
    dashboard.press_each(action.start());
    let (mut delays, mut waits): (Vec<_>, Vec<_>) =
        (0..REPETITIONS).map(|number| dashboard.act(action, number)).unzip();
    dashboard.press_each(action.end());
    delays.sort();
    waits.sort();
    let quantile = |of: &[Duration], share: f64| of[((REPETITIONS - 1) as f64 * share).round() as usize];
    let [p50, p99, longest] = [0.5, 0.99, 1.0].map(|share| quantile(&delays, share));
    let waited = quantile(&waits, 0.99);
    let note = format!("p50 {p50:.1?}, longest {longest:.1?}; the loop waited for a core: p99 {waited:.1?}");
    let what = format!("{}, p99: {view}", action.name());
    report.add(what, Figure::millis(p99), Budget::AtMost(16.0), note);
}
