//! What `kordon tune` says of other settings is what the real controllers do with them, on nodes that are away for the same times.

use std::{fs::File, io::BufReader, time::Duration};

use anyhow::{Context, Result, ensure};
use kordon::{
    clock::Clock,
    counterfactual::{Acts, Alternative, Counterfactual},
    engine::Settings,
    executor::effects::EffectExecutor,
    k8s::connect::Connection,
    model::ModelOptions,
    recording::{RecordingReader, RecordingStart, RecordingWriter},
    run::{Session, record::record, replay::Replay},
    time::Span,
};
use tokio::{sync::oneshot, time::sleep};
use tokio_util::sync::CancellationToken;

use crate::{
    control_plane::{create_running, pod, start_controllers, three_zones},
    harness::plane::{self, ControllerManager, Options, Plane},
};

/// The tolerationSeconds that admission adds, instead of 300.
const TOLERATION: u32 = 4;

/// The grace periods of both controllers, in seconds.
const HASTY: i64 = 5;
const PATIENT: i64 = 20;

/// How long nodes are away, in seconds: enough for one of the controllers, and for both.
const AWAY: [(&str, u64); 2] = [("a1", 13), ("b1", 32)];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_real_controllers_do_with_other_settings_what_tune_says() {
    let Some(binary) = plane::binary("e2e_tuning").unwrap() else { return };
    let options = Options { toleration_seconds: TOLERATION, ..Options::default() };
    let mut plane = Plane::start(&binary, options).await.unwrap();
    plane
        .scenario("both settings, each asked about the other's recording", async |plane| {
            let hasty = recorded(plane, HASTY).await.context("the hasty controller")?;
            plane.stop_controller_manager().await?;
            plane.wipe().await?;
            let patient = recorded(plane, PATIENT).await.context("the patient controller")?;
            for (file, settings, other) in [(&hasty, PATIENT, &patient), (&patient, HASTY, &hasty)] {
                let asked = play(file, settings)?;
                let really = play(other, settings)?;
                let place = format!("asked about {settings}s");
                same(asked.would(), really.happened(), &place)?;
                same(really.would(), really.happened(), &format!("{settings}s in force"))?;
                ensure!(nodes(asked.would()) != nodes(asked.happened()), "{place}: nothing differs");
            }
            Ok(())
        })
        .await;
}

/// Records what happens under a grace period while nodes are away. Returns the file.
async fn recorded(plane: &mut Plane, grace: i64) -> Result<std::path::PathBuf> {
    let client = plane.client();
    let manager = ControllerManager { grace_period: Span::from_secs(grace), ..ControllerManager::default() };
    let settings = manager.settings()?;
    let kubelets = three_zones(&client, 3).await?;
    create_running(&client, &AWAY.map(|(node, _)| pod(&format!("on-{node}"), node, None))).await?;
    start_controllers(plane, &manager).await?;
    let path = plane.folder().join(format!("grace-{grace}.kordon"));
    let clock = Clock::system();
    let start = RecordingStart::new(&settings, Span::from_secs(60), clock.now());
    let writer = RecordingWriter::start(File::create(&path)?, start, None)?;
    let cancel = CancellationToken::new();
    let _ends_with_us = cancel.clone().drop_guard();
    let session = Session::start(
        &Connection::embedded(client, "e2e"),
        ModelOptions::observer(settings.version),
        false,
        EffectExecutor::Recorder,
        clock,
        cancel.clone(),
    );
    let (stop, stopped) = oneshot::channel::<()>();
    let recording = tokio::spawn(record(session, writer, async {
        let _ = stopped.await;
    }));
    sleep(Duration::from_secs(4)).await;
    for (node, seconds) in AWAY {
        kubelets.silence(node).await?;
        sleep(Duration::from_secs(seconds)).await;
        kubelets.come_back(node).await?;
        sleep(Duration::from_secs(4)).await;
    }
    let _ = stop.send(());
    recording.await.context("recording")??;
    Ok(path)
}

/// Plays a recording with another grace period.
fn play(file: &std::path::Path, grace: i64) -> Result<Counterfactual> {
    let reader = RecordingReader::open(BufReader::new(File::open(file)?))?;
    let (settings, until): (Settings, _) = (reader.start().settings(), reader.until());
    let mut alternative = Alternative::new(settings);
    alternative.set(&format!("node-monitor-grace-period={grace}s"))?;
    let mut replay = Replay::under(reader, alternative);
    replay.seek(until)?;
    replay.counterfactual().cloned().context("other settings")
}

/// Ensures that the same nodes were declared Unknown as late after their last heartbeats, and the same pods evicted.
fn same(asked: &Acts, really: &Acts, place: &str) -> Result<()> {
    ensure!(nodes(asked) == nodes(really), "{place}: {asked:?}\nreally {really:?}");
    let pods = |acts: &Acts| acts.evicted.iter().map(|pod| pod.pod.to_string()).collect::<Vec<_>>();
    ensure!(pods(asked) == pods(really), "{place}: {asked:?}\nreally {really:?}");
    // A pass each second notices the last heartbeat, and another one its absence.
    let phase = Span::from_secs(3);
    for (one, other) in asked.unreachable.iter().zip(&really.unreachable) {
        let apart = one.detection() - other.detection();
        ensure!(apart < phase && -apart < phase, "{place}: {one:?}\nreally {other:?}");
    }
    Ok(())
}

fn nodes(acts: &Acts) -> Vec<String> {
    acts.unreachable.iter().map(|act| act.node.to_string()).collect()
}
