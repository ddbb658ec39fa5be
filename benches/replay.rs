//! Duration of a jump to another moment in a recording of an hour of a cluster of 500 nodes. Run with `cargo bench
//! --bench replay`. `-- --keep FILE` keeps the recording in a file for the next run.
//!
//! A demo cluster that loses a zone for ten minutes is recorded in virtual time. The benchmark jumps to random moments,
//! as a key of the dashboard does, and computes everything that the dashboard would show. It does so first with a file
//! that was only just opened, then after the search for notable moments has read the whole file. It reports wall-clock
//! time, and the CPU time of all threads, which a busy machine lengthens far less.

use std::{
    env, fs,
    io::{BufReader, Cursor},
    time::{Duration, Instant},
};

use kordon::{
    app::{Playback, PlaybackKind},
    executor::effects::EffectExecutor,
    k8s::connect::Connection,
    model::{Model, ModelOptions},
    recording::{RecordingReader, RecordingStart, RecordingWriter},
    run::{
        Session,
        controller::Controller,
        demo_scheduler::PlacementScheduler,
        player::{AnyReplay, Player, RecordingSource},
        record::record,
        replay::Replay,
    },
};
use kordon_clock::Clock;
use kordon_core::engine::{ServerVersion, Settings};
use kordon_demo::{
    api::{Api, ApiOptions},
    scenario::Scenario,
    world::{Scheduling, World, WorldOptions},
};
use kordon_time::{Span, Timestamp};
use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;

/// The same allocator as in the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const NODES: usize = 500;
const PODS: usize = 5_000;
const PODS_CHANGED_PER_SECOND: f64 = 2.0;
const LENGTH: Span = Span::from_secs(3600);
const EPOCH: Timestamp = Timestamp::from_secs(1_800_000_000);
const VERSION: ServerVersion = ServerVersion::new(1, 36);
/// Number of jumps to random moments.
const MOMENTS: usize = 40;
const BUDGET: Duration = Duration::from_millis(200);

fn main() {
    let kept = env::args().skip_while(|argument| argument != "--keep").nth(1);
    let file = match kept.as_ref().and_then(|file| fs::read(file).ok()) {
        Some(file) => file,
        None => {
            let paused = Builder::new_current_thread().enable_all().start_paused(true).build();
            paused.expect("a runtime").block_on(recording())
        }
    };
    if let Some(kept) = kept {
        fs::write(kept, &file).expect("it can be written");
    }
    let runtime = Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut random = fastrand::Rng::with_seed(1);
        let moments: Vec<Timestamp> = (0..MOMENTS)
            .map(|_| EPOCH + Span::from_millis(random.i64(0..LENGTH.as_nanos() / 1_000_000)))
            .collect();
        let mut first = Vec::new();
        for moment in &moments {
            first.push(PlayedFile::open(&file).show(*moment).await);
        }
        report("right after it was opened", first);
        let mut played = PlayedFile::open(&file);
        let before = resident_mib();
        let searched = played.search().await;
        println!(
            "search for notable moments, and what is kept to go on from: {searched:.1?}, {:.0} MiB more",
            resident_mib() - before
        );
        let mut later = Vec::new();
        for moment in &moments {
            later.push(played.show(*moment).await);
        }
        report("after the search", later);
    });
}

/// Records an hour of a demo cluster.
#[expect(clippy::disallowed_methods, reason = "a benchmark is about the machine's own time")]
async fn recording() -> Vec<u8> {
    let begun = Instant::now();
    let clock = Clock::new(EPOCH, 1.0);
    let cancel = CancellationToken::new();
    let _ends_with_us = cancel.clone().drop_guard();
    let api = Api::new(clock, ApiOptions::default());
    let options = WorldOptions {
        scenario: Scenario::named("zone-outage").expect("a scenario"),
        nodes: Some(NODES),
        pods: Some(PODS),
        pod_changes_per_second: Some(PODS_CHANGED_PER_SECOND),
        scheduling: Scheduling::External,
        ..WorldOptions::default()
    };
    let _world = World::start(&api, clock, &options, cancel.clone());
    let connection = |user: &str| Connection::embedded(api.client_as(user), "demo");
    let settings = Settings::defaults(VERSION);
    let controller = Controller {
        connection: connection("system:kordon-controller"),
        settings: settings.clone(),
        clock,
        identity: "kordon-demo".into(),
    };
    tokio::spawn(controller.run(cancel.clone()));
    let scheduler = PlacementScheduler { connection: connection("system:kordon-scheduler"), clock };
    tokio::spawn(scheduler.run(cancel.clone()));
    let session = Session::start(
        &connection("kordon"),
        ModelOptions::observer(VERSION),
        false,
        EffectExecutor::Recorder,
        clock,
        cancel.clone(),
    );
    let mut file = Vec::new();
    let start = RecordingStart::new(&settings, Span::from_secs(120), clock.now());
    let writer = RecordingWriter::start(&mut file, start, None).expect("memory");
    let recorded = record(session, writer, clock.sleep_until(EPOCH + LENGTH)).await.expect("memory");
    println!(
        "{LENGTH} of {} nodes and {} pods: {} changes, {} keyframes, {:.1} MB; made in {:.0?}",
        recorded.model.cluster.nodes().len(),
        recorded.model.cluster.pods().len(),
        recorded.totals.changes,
        recorded.totals.keyframes,
        file.len() as f64 / 1e6,
        begun.elapsed(),
    );
    file
}

/// A recording that is played in the dashboard.
struct PlayedFile {
    player: Player,
    playback: Playback,
    shown: Model,
}

impl PlayedFile {
    fn open(file: &[u8]) -> Self {
        let replay = || -> AnyReplay {
            let source: Box<dyn RecordingSource> = Box::new(BufReader::new(Cursor::new(file.to_vec())));
            let reader = RecordingReader::open(source).expect("a recording");
            let settings = reader.start().settings();
            Replay::new(reader, settings)
        };
        let played = replay();
        let (from, until) = (played.reader().start().at, played.reader().until());
        let player = Player::new(played, replay());
        let shown = player.first_model();
        let mut playback = Playback::new(PlaybackKind::Recording, (from, until), from);
        playback.is_paused = true;
        Self { player, playback, shown }
    }

    /// Jumps to a moment. Returns the wall-clock time and the CPU time that it took.
    #[expect(clippy::disallowed_methods, reason = "a benchmark is about the machine's own time")]
    async fn show(&mut self, moment: Timestamp) -> (Duration, Duration) {
        let (begun, cpu) = (Instant::now(), cpu_time());
        self.playback.go_to(moment);
        self.player.start(&self.playback, &self.shown);
        let step = self.player.next_step().await.expect("it does not panic");
        let shown = self.player.on_step(step);
        let took = (begun.elapsed(), cpu_time().saturating_sub(cpu));
        self.shown = *shown.model.expect("it is whole");
        self.playback.at = shown.at;
        took
    }

    /// Searches the whole recording for notable moments. Returns the wall-clock time that it took.
    #[expect(clippy::disallowed_methods, reason = "a benchmark is about the machine's own time")]
    async fn search(&mut self) -> Duration {
        let begun = Instant::now();
        loop {
            self.player.start_search();
            if !self.player.is_searching() {
                return begun.elapsed();
            }
            let found = self.player.next_found().await.expect("it does not panic");
            self.player.add_checkpoints(found.checkpoints, found.until);
        }
    }
}

fn report(when: &str, times: Vec<(Duration, Duration)>) {
    let (times, cpu): (Vec<_>, Vec<_>) = times.into_iter().unzip();
    let ([median, longest], [median_cpu, longest_cpu]) = (middle_and_end(times), middle_and_end(cpu));
    let verdict = if longest <= BUDGET { "" } else { "  MISSED" };
    println!(
        "another moment, {when}: median {median:.1?}, longest {longest:.1?} (budget {BUDGET:?}){verdict}; \
         CPU: median {median_cpu:.1?}, longest {longest_cpu:.1?}"
    );
}

fn middle_and_end(mut times: Vec<Duration>) -> [Duration; 2] {
    times.sort();
    [times[times.len() / 2], times[times.len() - 1]]
}

/// Returns the CPU time of all threads of this process.
fn cpu_time() -> Duration {
    let tasks = fs::read_dir("/proc/self/task").expect("Linux");
    let nanos = tasks.flatten().filter_map(|task| {
        let stat = fs::read_to_string(task.path().join("schedstat")).ok()?;
        stat.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanos.sum())
}

/// Returns the resident memory of this process in MiB.
fn resident_mib() -> f64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it is always there");
    line.trim().trim_end_matches(" kB").parse::<f64>().expect("a number") / 1024.0
}
