//! Changing the context: without leaving the dashboard, without waiting for a context that does not answer, and without
//! losing an operation.

use std::{fs, path::PathBuf, sync::Arc, time::Duration};

use kordon::{
    app::Mode,
    run::{self, ContextOpener, Dashboard},
};
use kordon_demo::api::ApiOptions;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{
    common::{
        program::{Server, Shell},
        terminal::Terminal,
    },
    dashboard_driver::{DashboardDriver, NODE},
    harness::Harness,
};

/// Contexts of the kubeconfig: two clusters, one that does not answer, and one that refuses.
const CONTEXTS: [&str; 4] = ["here", "second", "dead", "refusing"];

/// Creates the dashboard of a cluster, with this name as its context.
async fn in_context(harness: &Harness, name: &str) -> Dashboard {
    let mut dashboard = harness.dashboard(Mode::DryRun, false, CancellationToken::new()).await;
    dashboard.app.model.connection.context = name.into();
    dashboard.app.contexts = CONTEXTS.map(str::to_owned).to_vec();
    dashboard
}

/// Returns the function that opens the dashboard of a context.
fn opener(clusters: [Arc<Harness>; 2]) -> ContextOpener {
    ContextOpener(Arc::new(move |name| {
        let [first, second] = clusters.clone();
        Box::pin(async move {
            match name.as_str() {
                "here" => Ok(in_context(&first, "here").await),
                "second" => Ok(in_context(&second, "second").await),
                "dead" => std::future::pending().await,
                _ => Err("connection refused".into()),
            }
        })
    }))
}

/// Runs a script on the dashboard of the first context.
async fn with_contexts(script: impl AsyncFnOnce(&DashboardDriver, &Harness, &Harness)) {
    let [first, second] = [Arc::new(Harness::start(1.0).await), Arc::new(Harness::start(1.0).await)];
    let mut dashboard = in_context(&first, "here").await;
    dashboard.opener = Some(opener([first.clone(), second.clone()]));
    let (driver, typed) = DashboardDriver::new();
    let mut screen = driver.recording.clone();
    tokio::select! {
        () = script(&driver, &first, &second) => {}
        exit = run::run_dashboard(dashboard, &mut screen, typed) => panic!("it exited: {exit:?}\n{}", driver.screen()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_context_that_does_not_answer_keeps_nobody_waiting() {
    with_contexts(async |driver, _, _| {
        driver.ready().await;
        driver.press(":ctx<Enter>").await;
        driver.wait("contexts: here, second, dead, refusing").await;
        driver.press("dea<Tab>").await;
        driver.wait(":context dead").await;
        driver.press("<Esc>:ctx secnd<Enter>").await;
        driver.wait("has no context secnd; did you mean second?").await;
        driver.press("<Esc>:ctx dead<Enter>").await;
        driver.wait("connecting to dead; here is shown until it answers").await;
        driver.press("?").await;
        driver.wait("Esc closes").await;
        driver.press("<Esc>").await;
        driver.press(":ctx refusing<Enter>").await;
        driver.wait("cannot go to refusing: connection refused").await;
        driver.press("2/zone:b<Enter>").await;
        go_to(driver, "second").await;
        driver.wait_until("the filter of the other context", |screen| !screen.contains("/zone:b")).await;
        driver.ready().await;
        go_to(driver, "here").await;
        driver.wait("/zone:b").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_goes_on_in_the_context_that_was_left_and_no_key_reaches_it() {
    with_contexts(async |driver, first, second| {
        driver.ready().await;
        driver.start_drain(first).await;
        driver.type_in("<Esc>:ctx second<Enter>");
        driver.wait("context second").await;
        driver.wait("operations in here (:ctx)").await;
        driver.wait("DRY-RUN").await;
        driver.ready().await;
        let writes = second.server.evictions().len();
        driver.press("q").await;
        driver.wait("operations run in here (:ctx here)").await;
        // The drain ends although its context is not shown.
        let drained = driver.wait_gone("operations in here (:ctx)");
        tokio::time::timeout(Duration::from_secs(240), drained).await.expect("the drain ends");
        let has_drained = |first: &Harness| {
            first.operations().first().is_some_and(|drain| drain.ended.as_deref() == Some("done"))
        };
        first.until(has_drained).await;
        assert_eq!(first.server.left_on(NODE).await, Vec::<String>::new());
        assert_eq!(second.server.evictions().len(), writes, "nothing was written here");
        go_to(driver, "here").await;
        driver.wait("DRY-RUN").await;
    })
    .await;
}

/// Goes to a context that answers.
async fn go_to(driver: &DashboardDriver, context: &str) {
    driver.press(&format!(":ctx {context}<Enter>")).await;
    driver.wait(&format!("context {context}")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_terminal_another_context_is_offered_if_the_current_one_cannot_be_used() {
    let server = Server::start(ApiOptions::default()).await;
    let _world = server.inhabit();
    let shell = Shell::new();
    let cluster = |name: &str, server: &str| json!({"name": name, "cluster": {"server": server}});
    let context = |name: &str| json!({"name": name, "context": {"cluster": name, "user": "alice"}});
    let kubeconfig = json!({"apiVersion": "v1", "kind": "Config", "current-context": "dead",
        "clusters": [cluster("dead", "http://127.0.0.1:1"), cluster("prod", &server.url)],
        "users": [{"name": "alice", "user": {}}],
        "contexts": [context("dead"), context("prod")]});
    let kubeconfig = shell.file("kubeconfig", &kubeconfig.to_string());
    tokio::task::block_in_place(|| {
        let start = || {
            let terminal = Terminal::sized(shell.under_terminal(&["--kubeconfig", &kubeconfig]), 30, 160);
            terminal.wait("other contexts, for --context NAME: prod");
            terminal.wait("Context to open instead");
            terminal
        };
        let mut chosen = start();
        chosen.type_in("prdo\r");
        chosen.wait("there is no context prdo; did you mean prod?");
        chosen.type_in("prod\r");
        chosen.wait("control-plane-1a-01");
        chosen.type_in("q");
        assert!(chosen.end().success());
        let mut declined = start();
        declined.type_in("\r");
        assert_eq!(declined.end().exit_code(), 3);
    });
}

/// A dashboard whose kubeconfig has two contexts of one cluster, and its configuration file.
struct TwoContexts {
    terminal: Terminal,
    config: PathBuf,
}

/// Runs a script on the dashboard, which starts in context `test` with an empty configuration.
async fn with_two_contexts(script: impl FnOnce(&mut TwoContexts)) {
    let server = Server::start(ApiOptions::default()).await;
    let _world = server.inhabit();
    let shell = Shell::new();
    tokio::task::block_in_place(|| {
        let mut dashboard = TwoContexts::start(&shell, &server);
        script(&mut dashboard);
        dashboard.quit();
    });
}

impl TwoContexts {
    fn start(shell: &Shell, server: &Server) -> Self {
        let context = |name: &str| json!({"name": name, "context": {"cluster": "c", "user": "alice"}});
        let kubeconfig = json!({"apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "c", "cluster": {"server": server.url}}],
            "users": [{"name": "alice", "user": {}}],
            "contexts": [context("test"), context("prod")]});
        let kubeconfig = shell.file("kubeconfig", &kubeconfig.to_string());
        let folder = shell.home.path().join(".config/kordon");
        fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join("config.toml");
        fs::write(&file, "").expect("written");
        let command = shell.under_terminal(&["--kubeconfig", &kubeconfig]);
        // The terminal is wide enough for whole messages.
        let terminal = Terminal::sized(command, 30, 160);
        terminal.wait("control-plane-1a-01");
        Self { terminal, config: file }
    }

    fn configure(&self, text: &str) {
        fs::write(&self.config, text).expect("written");
    }

    fn go_to(&mut self, context: &str) {
        self.terminal.type_in(&format!(":ctx {context}\r"));
        let is_shown = |screen: &str| screen.lines().next().is_some_and(|header| header.contains(context));
        self.terminal.wait_until("another context", is_shown);
    }

    /// Types `:enforce`, which is refused because of this key.
    fn is_refused(&mut self, key: &str) {
        self.terminal.type_in(":enforce\r");
        self.terminal.wait(key);
        self.terminal.wait("READ-ONLY");
        self.terminal.type_in("\x1b");
        self.terminal.wait_gone(key);
    }

    fn quit(mut self) {
        self.terminal.type_in("q");
        assert!(self.terminal.end().success());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_context_that_became_read_only_while_another_was_shown_is_read_only_at_once() {
    with_two_contexts(|dashboard| {
        dashboard.configure("[contexts.prod]\nread-only = true");
        // The file is read when the context is opened, whether or not its change was noticed before.
        dashboard.go_to("prod");
        dashboard.is_refused("contexts.prod.read-only (config.toml:2)");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_context_opens_with_the_last_valid_configuration_and_never_with_a_looser_one() {
    with_two_contexts(|dashboard| {
        dashboard.configure("[contexts.prod]\nread-only = true");
        dashboard.terminal.wait("the configuration was read again");
        dashboard.configure("[contexts.prod]\nread-onyl = true");
        dashboard.terminal.wait("config.toml:2: unknown key");
        dashboard.go_to("prod");
        dashboard.is_refused("contexts.prod.read-only (config.toml:2)");
        dashboard.go_to("test");
        dashboard.configure("");
        dashboard.terminal.wait("the configuration was read again");
        dashboard.go_to("prod");
        dashboard.is_refused("contexts.prod.read-only (config.toml:2)");
    })
    .await;
}
