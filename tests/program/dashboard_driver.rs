//! The dashboard's real loop over a demo cluster, with typed keys and a screen in memory.

use std::{io, time::Duration};

use crossterm::event::Event;
use futures::channel::mpsc;
use kordon::{
    app::{AppOptions, Mode},
    executor::{effects::EffectExecutor, write_context},
    k8s::connect::{ConnectOptions, connect},
    model::{ConnectionInfo, ControllerRole, ModelOptions},
    run::{self, Dashboard, Session},
};
use kordon_core::engine::{ServerVersion, Settings};
use tokio_util::sync::CancellationToken;

use crate::{
    common::terminal::assent, dashboard_fixture, harness::Harness, recording_screen::RecordingScreen,
};

/// Name of the context, which confirmations ask for.
const CONTEXT: &str = "here";

/// The node that scripts act on.
pub const NODE: &str = "general-1a-02";

/// Keys that open the plan to drain the node, with all options that this drain needs.
pub const DRAIN_IT: &str = "2/general-1a-02<Enter>rDEF";

impl Harness {
    pub async fn dashboard(&self, mode: Mode, no_pods: bool, cancel: CancellationToken) -> Dashboard {
        let options =
            ConnectOptions { kubeconfig: Some(self.kubeconfig.clone().into()), ..ConnectOptions::default() };
        let connection = connect(&options).await.expect("the demo answers");
        let options = ModelOptions {
            connection: ConnectionInfo { context: connection.context.clone(), ..ConnectionInfo::default() },
            settings: Settings::defaults(ServerVersion::new(1, 36)),
            role: ControllerRole::Shadow,
        };
        let clock = self.server.clock;
        let session = Session::start(&connection, options, no_pods, EffectExecutor::Recorder, clock, cancel);
        let context = write_context::WriteContext::with(&connection, self.journal(), clock);
        Dashboard::over(session, AppOptions { mode, ..AppOptions::default() }, Some(context))
    }

    /// Runs the dashboard until the end of the script, and drops it without quitting.
    pub async fn with_dashboard(&self, mode: Mode, script: impl AsyncFnOnce(&DashboardDriver)) {
        self.with_dashboard_of(mode, false, script).await;
    }

    /// Like [`Self::with_dashboard`], with `--no-pods`.
    pub async fn with_dashboard_without_pods(&self, mode: Mode, script: impl AsyncFnOnce(&DashboardDriver)) {
        self.with_dashboard_of(mode, true, script).await;
    }

    /// Runs a script on the dashboard, quits it with `q`, and waits until it has ended.
    pub async fn with_dashboard_that_quits(&self, mode: Mode, script: impl AsyncFnOnce(&DashboardDriver)) {
        let dashboard = self.dashboard(mode, false, CancellationToken::new()).await;
        let (driver, typed) = DashboardDriver::new();
        let mut screen = driver.recording.clone();
        let script = async {
            script(&driver).await;
            driver.type_in("q");
            tokio::time::sleep(Duration::from_secs(20)).await;
        };
        tokio::select! {
            exit = run::run_dashboard(dashboard, &mut screen, typed) => exit.expect("it quits"),
            () = script => panic!("it did not quit:\n{}", driver.screen()),
        }
    }

    async fn with_dashboard_of(&self, mode: Mode, no_pods: bool, script: impl AsyncFnOnce(&DashboardDriver)) {
        let cancel = CancellationToken::new();
        let _ends = cancel.clone().drop_guard();
        let dashboard = self.dashboard(mode, no_pods, cancel).await;
        let (driver, typed) = DashboardDriver::new();
        let mut screen = driver.recording.clone();
        tokio::select! {
            () = script(&driver) => {}
            exit = run::run_dashboard(dashboard, &mut screen, typed) => panic!("it exited: {exit:?}\n{}", driver.screen()),
        }
    }
}

/// Whether the screen shows the cluster with its pods. A screen that does not show them reports the pods as missing.
pub fn shows_pods(screen: &str) -> bool {
    screen.contains("live ") && !screen.contains("loading: ") && !screen.contains("not listed yet")
}

/// Types keys into a dashboard and reads its screen.
pub struct DashboardDriver {
    keys: mpsc::UnboundedSender<io::Result<Event>>,
    pub recording: RecordingScreen,
}

impl DashboardDriver {
    /// Creates a driver, and the stream of keys that it types.
    pub fn new() -> (Self, mpsc::UnboundedReceiver<io::Result<Event>>) {
        let (keys, typed) = mpsc::unbounded();
        (Self { keys, recording: RecordingScreen::default() }, typed)
    }

    /// Waits until the dashboard shows the cluster.
    pub async fn ready(&self) {
        self.wait(NODE).await;
        self.wait_until("no pods", shows_pods).await;
    }

    /// Waits until the screen shows the plan of the drain with its options.
    pub async fn wait_for_plan(&self) {
        let reported = |screen: &str| screen.contains("leave now") && !screen.contains("refused");
        self.wait_until("no plan", |screen| reported(screen) && !screen.contains("working it out")).await;
    }

    /// Enables enforce and starts the drain, up to the first question.
    pub async fn ask_to_drain(&self) {
        self.press(":enforce 12h<Enter>").await;
        self.press(DRAIN_IT).await;
        self.wait_for_plan().await;
        self.press("A").await;
    }

    /// Starts the drain, and waits until the first pod is evicted.
    pub async fn start_drain(&self, harness: &Harness) {
        self.ask_to_drain().await;
        self.agree().await;
        harness.until(|harness| !harness.server.evictions().is_empty()).await;
    }

    /// Types keys, which may or may not have an effect.
    pub fn type_in(&self, keys: &str) {
        for key in dashboard_fixture::typed(keys) {
            self.keys.unbounded_send(Ok(Event::Key(key))).expect("the loop runs");
        }
    }

    /// Types keys that have an effect, and waits until the screen has been drawn.
    pub async fn press(&self, keys: &str) {
        self.type_in(keys);
        let draws = || self.recording.draws.lock().expect("no panic").len();
        let before = draws();
        let drawn = async {
            while draws() == before {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(180), drawn).await.expect("keys are drawn at once");
    }

    pub fn screen(&self) -> String {
        self.recording.screen.lock().expect("no panic").clone()
    }

    pub async fn wait(&self, text: &str) {
        self.wait_until(&format!("no {text:?}"), |screen| screen.contains(text)).await;
    }

    pub async fn wait_gone(&self, text: &str) {
        self.wait_until(&format!("still {text:?}"), |screen| !screen.contains(text)).await;
    }

    /// Confirms, repeatedly if the plan changes, until the operation starts.
    pub async fn agree(&self) {
        loop {
            let over = |screen: &str| assent(screen, CONTEXT).is_some() || screen.contains("2 Progress");
            self.wait_until("no question", over).await;
            let Some(keys) = assent(&self.screen(), CONTEXT) else { return };
            self.type_in(&keys.replace('\r', "<Enter>").replace('\t', "<Tab>"));
            self.wait_until("no key is taken", |screen| assent(screen, CONTEXT) != Some(keys)).await;
        }
    }

    /// Waits until the screen fulfils a condition. The time limit is reached only if the program has failed.
    pub async fn wait_until(&self, what: &str, holds: impl Fn(&str) -> bool) {
        let waiting = async {
            while !holds(&self.screen()) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(180), waiting).await;
        assert!(waited.is_ok(), "{what} on\n{}", self.screen());
    }
}
