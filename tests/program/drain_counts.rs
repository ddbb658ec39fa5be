//! The counts of a drain agree. The header, the nodes, the progress and the evictions are compared at every moment with
//! each other, and with the pods that the demo's kubelets have ended; also after a cancel, a kill and a resume. Runs
//! the real loop with typed keys on a virtual clock.

use std::{
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use k8s_openapi::api::{core::v1::Pod, policy::v1::PodDisruptionBudget};
use kordon::{
    app::{App, AppOptions, Mode},
    executor::{effects::EffectExecutor, write_context::WriteContext},
    journal::{Journal, operations},
    k8s::connect::Connection,
    model::{ConnectionInfo, ControllerRole, EvictionRow, EvictionState, ModelOptions},
    run::{self, Dashboard, Session, Surface},
    ui::Drawn,
};
use kordon_clock::Clock;
use kordon_core::{
    cluster::{Key, NodeName},
    engine::{ServerVersion, Settings},
    operation::DrainCount,
    plan::OutcomeKind,
};
use kordon_demo::{api::Api, scenario::Scenario, world::World};
use kordon_time::{Span, Timestamp};
use kube::{
    ResourceExt,
    api::{DeleteParams, ListParams},
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{
    dashboard_driver::{DRAIN_IT, DashboardDriver, NODE},
    drain_times::facts::Watcher,
    recording_screen::RecordingScreen,
    scenario_frames::start_demo,
};

const VERSION: ServerVersion = ServerVersion::new(1, 36);

/// Maximum age of a count on the screen, which is drawn once a second.
const BEHIND: Span = Span::from_secs(2);

#[tokio::test(start_paused = true)]
async fn a_drain_counts_the_same_pods_everywhere_to_its_end() {
    let mut demo = DrainDemo::start().await;
    demo.with_dashboard(async |demo, dashboard| {
        demo.start_drain(dashboard).await;
        dashboard.wait("done after").await;
    })
    .await;
    let last = demo.check(&["Draining", "▶", "gone"]);
    assert_eq!((last.left(), last.gone), (0, demo.began.len()), "the last count of all");
    assert!(demo.journal_ends_with(&last.text()));
    demo.with_dashboard(async |_, dashboard| dashboard.wait("23 of 24 nodes Ready, 1 Drained").await).await;
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_drain_counts_on_until_what_it_evicted_is_gone() {
    let mut demo = DrainDemo::start().await;
    demo.block_a_pod().await;
    demo.with_dashboard(async |demo, dashboard| {
        demo.start_drain(dashboard).await;
        demo.until_gone(1).await;
        dashboard.press("C").await;
        dashboard.wait("Cancel it").await;
        dashboard.press("<Tab><Enter>").await;
        dashboard.wait("cancelled after").await;
        demo.clock.sleep(Span::from_secs(60)).await;
    })
    .await;
    let last = demo.check(&["Draining", "▶", "gone"]);
    assert_eq!((last.terminating, last.total()), (0, demo.began.len()));
    assert_eq!(last.gone, demo.gone_at(demo.clock.now()));
    assert!(last.gone >= 1 && last.left() >= 1, "{}: nothing was cancelled", last.text());
}

#[tokio::test(start_paused = true)]
async fn a_drain_that_was_killed_and_is_resumed_counts_on() {
    let mut demo = DrainDemo::start().await;
    demo.block_a_pod().await;
    demo.with_dashboard(async |demo, dashboard| {
        demo.start_drain(dashboard).await;
        demo.until_gone(1).await;
    })
    .await;
    demo.check(&["Draining", "▶", "gone"]);
    demo.clock.sleep(Span::from_secs(5)).await;
    // Another dashboard knows only the claim on the node, not the operation.
    demo.with_dashboard(async |demo, dashboard| {
        dashboard.wait("Draining").await;
        demo.clock.sleep(Span::from_secs(3)).await;
    })
    .await;
    demo.check(&["Draining"]);
    demo.unblock().await;
    demo.with_dashboard(async |demo, dashboard| {
        dashboard.wait("was interrupted").await;
        dashboard.ready().await;
        dashboard.press(":enforce 12h<Enter>").await;
        dashboard.wait("ENFORCE").await;
        dashboard.press("R").await;
        dashboard.wait("Resume an interrupted drain").await;
        dashboard
            .wait_until("no question", |screen| {
                screen.contains("Type here") || screen.contains("Yes, resume")
            })
            .await;
        assert!(!dashboard.screen().contains("is draining"), "its own claim:\n{}", dashboard.screen());
        assert!(
            dashboard.screen().contains("Type here"),
            "the start had to be typed:\n{}",
            dashboard.screen()
        );
        dashboard.agree().await;
        dashboard.wait("done after").await;
        demo.clock.sleep(Span::from_secs(1)).await;
    })
    .await;
    let last = demo.check(&["Draining", "▶", "gone"]);
    assert_eq!((last.left(), last.gone), (0, demo.began.len()));
}

/// The budget that blocks a pod of the drain.
const BUDGET: &str = "held";

/// A demo cluster, and the frames that show the drain of [`NODE`].
struct DrainDemo {
    api: Api,
    clock: Clock,
    cancel: CancellationToken,
    folder: tempfile::TempDir,
    watcher: Watcher,
    /// Uids of the pods that the drain removes.
    began: Vec<String>,
    frames: Frames,
    _world: World,
}

impl Drop for DrainDemo {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

impl DrainDemo {
    async fn start() -> Self {
        let clock = Clock::new(Timestamp::parse("2026-11-22T03:00:00Z").expect("a time"), 1.0);
        let cancel = CancellationToken::new();
        let (api, world) = start_demo(Scenario::named("healthy").expect("there is one"), clock, &cancel);
        clock.sleep(Span::from_secs(60)).await;
        let watcher = Watcher::start(api.client_as("observer"), clock, &cancel).await;
        let folder = tempfile::tempdir().expect("a folder");
        Self {
            api,
            clock,
            cancel,
            folder,
            watcher,
            began: Vec::new(),
            frames: Frames::default(),
            _world: world,
        }
    }

    fn journal(&self) -> Journal {
        Journal::within(self.folder.path(), "demo")
    }

    /// Runs a dashboard until the end of the script, then kills it.
    async fn with_dashboard(&mut self, script: impl AsyncFnOnce(&mut Self, &DashboardDriver)) {
        let connection = Connection::embedded(self.api.client_as("kordon"), "here");
        let options = ModelOptions {
            connection: ConnectionInfo { context: "here".into(), ..ConnectionInfo::default() },
            settings: Settings::defaults(VERSION),
            role: ControllerRole::Shadow,
        };
        let cancel = self.cancel.child_token();
        let session =
            Session::start(&connection, options, false, EffectExecutor::Recorder, self.clock, cancel.clone());
        let context = WriteContext::with(&connection, self.journal(), self.clock);
        let options = AppOptions { mode: Mode::DryRun, ..AppOptions::default() };
        let dashboard = Dashboard::over(session, options, Some(context));
        let (driver, typed) = DashboardDriver::new();
        let mut surface = FramesSurface { screen: driver.recording.clone(), frames: self.frames.clone() };
        tokio::select! {
            () = script(self, &driver) => {}
            exit = run::run_dashboard(dashboard, &mut surface, typed) => panic!("it exited: {exit:?}\n{}", driver.screen()),
        }
        cancel.cancel();
        self.clock.sleep(Span::from_secs(1)).await;
    }

    /// Starts the drain: types the keys and confirms.
    async fn start_drain(&mut self, dashboard: &DashboardDriver) {
        dashboard.ready().await;
        dashboard.press(":enforce 12h<Enter>").await;
        dashboard.wait("ENFORCE").await;
        dashboard.press(DRAIN_IT).await;
        let is_there = |screen: &str| screen.contains("leave now") && !screen.contains("computing");
        dashboard.wait_until("no plan", is_there).await;
        // Waits until the screen shows the plan with the options that the keys select. The plan must not refuse
        // anything.
        dashboard.wait_until("refused", |screen| !screen.contains("1 refused")).await;
        self.began = self.pods_to_remove().await;
        assert!(self.began.len() > 3, "{:?}: that shows little", self.began);
        dashboard.press("A").await;
        let asked = |screen: &str| screen.contains(" to continue:") || screen.contains("2 Progress");
        loop {
            dashboard.wait_until("no question", asked).await;
            let screen = dashboard.screen();
            let Some((before, _)) = screen.split_once(" to continue:") else { return };
            let (_, words) = before.rsplit_once("Type ").expect("as in `Type here to continue:`");
            dashboard.type_in(&format!("{words}<Enter>"));
            dashboard.wait_gone(" to continue:").await;
        }
    }

    /// Waits until this many pods are gone.
    async fn until_gone(&self, pods: usize) {
        while self.gone_at(self.clock.now()) < pods {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        self.clock.sleep(Span::from_secs(1)).await;
    }

    /// Returns the pods on the node that are neither static nor of a DaemonSet.
    async fn pods_on_node(&self) -> Vec<Pod> {
        let pods: kube::Api<Pod> = kube::Api::all(self.api.client_as("observer"));
        let on_node = ListParams::default().fields(&format!("spec.nodeName={NODE}"));
        let mut pods = pods.list(&on_node).await.expect("listed").items;
        pods.retain(|pod| {
            let of_daemonset = pod.owner_references().iter().any(|owner| owner.kind == "DaemonSet");
            !of_daemonset && !pod.annotations().contains_key("kubernetes.io/config.mirror")
        });
        pods
    }

    async fn pods_to_remove(&self) -> Vec<String> {
        self.pods_on_node().await.iter().map(|pod| pod.uid().expect("it has one")).collect()
    }

    fn budgets(&self) -> kube::Api<PodDisruptionBudget> {
        kube::Api::all(self.api.client_as("observer"))
    }

    /// Picks a pod of the node that no budget selects, and adds a budget that allows no disruption of this pod.
    async fn block_a_pod(&mut self) {
        let budgets = self.budgets().list(&ListParams::default()).await.expect("listed").items;
        let is_protected = |pod: &Pod| {
            budgets.iter().any(|budget| {
                let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
                let wanted = selector.and_then(|selector| selector.match_labels.clone()).unwrap_or_default();
                let has = |(key, value): (&String, &String)| pod.labels().get(key) == Some(value);
                budget.namespace() == pod.namespace() && wanted.iter().all(has)
            })
        };
        let pods = self.pods_on_node().await;
        let of_set = |pod: &&Pod| pod.owner_references().iter().any(|owner| owner.kind == "ReplicaSet");
        let pod = pods.iter().filter(of_set).find(|pod| !is_protected(pod)).expect("one without a budget");
        self.api.load(
            "poddisruptionbudgets",
            json!({
                "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
                "metadata": {"namespace": pod.namespace(), "name": BUDGET},
                "spec": {"minAvailable": "100%", "selector": {"matchLabels": pod.labels()}},
            }),
        );
        self.clock.sleep(Span::from_secs(10)).await;
    }

    /// Deletes the budget.
    async fn unblock(&self) {
        let budgets = self.budgets().list(&ListParams::default()).await.expect("listed").items;
        let ours = budgets.iter().find(|budget| budget.name_any() == BUDGET).expect("it is there");
        let namespace = ours.namespace().expect("it has one");
        let in_namespace: kube::Api<PodDisruptionBudget> =
            kube::Api::namespaced(self.api.client_as("observer"), &namespace);
        in_namespace.delete(BUDGET, &DeleteParams::default()).await.expect("deleted");
        self.clock.sleep(Span::from_secs(1)).await;
    }

    /// Returns how many pods of the drain the kubelets had ended at `at`.
    fn gone_at(&self, at: Timestamp) -> usize {
        let facts = self.watcher.facts(&[], at, at);
        self.began.iter().filter(|uid| facts.gone.get(*uid).is_some_and(|gone| *gone <= at)).count()
    }

    fn journal_ends_with(&self, text: &str) -> bool {
        let lines = self.journal().lines().expect("read");
        assert!(operations(&lines)[0].ended.is_some());
        format!("{lines:?}").contains(text)
    }

    /// Asserts that every frame since the last check shows the same count in all places, and that the kubelets agree
    /// with it. Each of `words` has to be in a frame with a count. Returns the last count of the progress.
    fn check(&mut self, words: &[&str]) -> DrainCount {
        let frames = std::mem::take(&mut *self.frames.0.lock().expect("no panic"));
        let (mut last, mut seen) = (DrainCount::default(), Vec::new());
        // When the evictions and the progress began to count different terminating pods.
        let mut differ_since = None;
        for Frame { at, screen, progress, evictions } in &frames {
            let printed = printed(screen);
            for (word, (gone, total)) in &printed {
                seen.push(*word);
                let reported = || format!("{word} {gone} of {total} at {at}: {printed:?} on\n{screen}");
                assert!(printed.iter().all(|(_, other)| *other == (*gone, *total)), "{}", reported());
                assert_eq!(*total, self.began.len(), "{}", reported());
                let (least, most) = (self.gone_at(*at - BEHIND), self.gone_at(*at));
                assert!((least..=most).contains(gone), "kubelets: {least} to {most}; {}", reported());
            }
            if let Some(terminating) = terminating_in_title(screen) {
                assert_eq!(terminating, evictions.terminating, "at {at}:\n{screen}");
            }
            assert!(
                evictions.not_replaced.is_empty(),
                "at {at}: their replacements are there: {evictions:?}\n{screen}"
            );
            let Some(count) = progress else { continue };
            // The response to an eviction arrives before the watch reports the pod.
            if count.terminating == evictions.terminating {
                differ_since = None;
            } else {
                let since = *differ_since.get_or_insert(*at);
                assert!(
                    at.since(since) <= BEHIND,
                    "since {since}: {count:?}, {evictions:?} at {at}\n{screen}"
                );
            }
            let DrainCount { gone, terminating, blocked, waiting, finished } = *count;
            assert_eq!(count.total(), gone + terminating + blocked + waiting + finished);
            assert_eq!(count.total(), self.began.len(), "{count:?} at {at}");
            last = *count;
        }
        for word in words {
            assert!(seen.contains(word), "no {word:?} with a count in {} frames", frames.len());
        }
        last
    }
}

/// Returns the counts of the drain in a frame: for each, its place on the screen, and the numbers of gone and of all
/// pods.
fn printed(screen: &str) -> Vec<(&'static str, (usize, usize))> {
    let mut found = Vec::new();
    for line in screen.lines() {
        for (word, before) in [("Draining", "Draining "), ("▶", "▶ drain general-1a-02 ")] {
            if let Some((_, rest)) = line.split_once(before).filter(|_| line.contains(NODE)) {
                found.extend(ratio(rest).map(|count| (word, count)));
            }
        }
        if let Some((before, _)) = line.split_once(" pods gone") {
            let words: Vec<&str> = before.rsplitn(4, ' ').collect();
            if let [total, "of", gone, ..] = words[..] {
                found.extend(gone.parse().ok().zip(total.parse().ok()).map(|count| ("gone", count)));
            }
        }
    }
    found
}

/// Number of terminating pods in the title of the evictions: `3 Evictions  6 terminating`.
fn terminating_in_title(screen: &str) -> Option<usize> {
    let title = screen.lines().find_map(|line| line.split_once("3 Evictions")).map(|(_, title)| title)?;
    let (before, _) = title.split_once(" terminating")?;
    before.rsplit(' ').next()?.parse().ok()
}

/// Parses `3/8 …`.
fn ratio(text: &str) -> Option<(usize, usize)> {
    let word = text.split_whitespace().next()?;
    let (gone, total) = word.split_once('/')?;
    Some((gone.parse().ok()?, total.parse().ok()?))
}

/// A drawn frame, and the count of the only operation at that moment.
#[derive(Clone, Debug)]
struct Frame {
    at: Timestamp,
    screen: String,
    progress: Option<DrainCount>,
    evictions: Evictions,
}

/// What the evictions say of terminating pods.
#[derive(Clone, Debug, Default)]
struct Evictions {
    terminating: usize,
    /// The pods that are said to have no replacement, although the progress shows it.
    not_replaced: Vec<Key>,
}

impl Evictions {
    fn new(app: &App) -> Self {
        let rows = app.model.views.leaving.evictions.iter();
        let rows = rows.filter(|(_, row)| matches!(row.state, EvictionState::Terminating { .. }));
        let landings = app.operations.entries.first().map(|entry| &entry.landings);
        let is_wrong = |pod: &Key, row: &EvictionRow| {
            let kind = app.model.outcome(pod, row).map(|outcome| outcome.kind());
            landings.is_some_and(|landings| landings.contains_key(pod))
                && matches!(kind, Some(OutcomeKind::NotRecreated | OutcomeKind::Lost))
        };
        let not_replaced = rows.clone().filter(|(pod, row)| is_wrong(pod, row));
        Self {
            terminating: rows.clone().count(),
            not_replaced: not_replaced.map(|(pod, _)| pod.clone()).collect(),
        }
    }
}

/// All frames; clones share them.
#[derive(Clone, Default)]
struct Frames(Arc<Mutex<Vec<Frame>>>);

/// A screen that keeps all frames.
struct FramesSurface {
    screen: RecordingScreen,
    frames: Frames,
}

impl Surface for FramesSurface {
    fn draw_app(&mut self, app: &App, now: Timestamp) -> io::Result<Drawn> {
        let drawn = self.screen.draw_app(app, now)?;
        let screen = self.screen.screen.lock().expect("no panic").clone();
        let progress = app.operations.entries.first().map(|entry| {
            let node = NodeName::from(NODE);
            assert_eq!(entry.progress.count(), entry.progress.count_on(&node));
            entry.progress.count()
        });
        let evictions = Evictions::new(app);
        self.frames.0.lock().expect("no panic").push(Frame { at: now, screen, progress, evictions });
        Ok(drawn)
    }

    fn repaint(&mut self) -> io::Result<()> {
        Ok(())
    }

    async fn suspend(&mut self) -> io::Result<()> {
        Ok(())
    }
}
