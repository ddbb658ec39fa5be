//! Changing the context: without leaving the dashboard, without waiting for a context that does not answer, and without
//! losing an operation.

use std::{sync::Arc, time::Duration};

use kordon::{
    app::Mode,
    run::{self, ContextOpener, Dashboard},
};
use tokio_util::sync::CancellationToken;

use crate::{dashboard_driver::DashboardDriver, harness::Harness};

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
        driver.press("<Esc>:ctx secnd<Enter>").await;
        driver.wait("has no context secnd; did you mean second?").await;
        driver.press("<Esc>:ctx dead<Enter>").await;
        driver.wait("connecting to dead; here is shown until it answers").await;
        driver.press("?").await;
        driver.wait("Esc closes").await;
        driver.press("<Esc>").await;
        driver.press(":ctx refusing<Enter>").await;
        driver.wait("cannot go to refusing: connection refused").await;
        driver.press("2/zone:b<Enter>:ctx second<Enter>").await;
        driver.wait("context second").await;
        driver.wait_until("the filter of the other context", |screen| !screen.contains("/zone:b")).await;
        driver.ready().await;
        driver.press(":ctx here<Enter>").await;
        driver.wait("context here").await;
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
        assert!(!first.server.evictions().is_empty());
        assert_eq!(second.server.evictions().len(), writes, "nothing was written here");
        driver.press(":ctx here<Enter>").await;
        driver.wait("context here").await;
        driver.wait("DRY-RUN").await;
    })
    .await;
}
