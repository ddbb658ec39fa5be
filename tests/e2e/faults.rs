//! `kordon controller --enforce` with an API server that is unreachable, slow, or answers 409, 429 and 500. Checks that
//! the controller evicts no pod for lack of information, recovers by itself, and does only once the work that became
//! due during the fault.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kordon_time::Span;

use crate::{
    control_plane::{create_running, on, pod, three_zones},
    controller::{CONTROLLER, apply_role},
    harness::{
        component::Component,
        effect_watcher::{Effect, EffectKind, EffectWatcher},
        kubelets::Kubelets,
        plane::{self, ControllerManager, LIFECYCLE, Options, Plane},
        proxy::{Faults, Proxy},
        say,
    },
};

/// The `tolerationSeconds` that admission adds in this test; the default is 300.
const TOLERATION: u32 = 4;
/// Duration of each fault: longer than the grace period, the Lease and the toleration together.
const LASTS: Duration = Duration::from_secs(20);
/// Time for recovery, long enough for a backoff, another term as leader, a grace period and the toleration.
const RECOVERED: Span = Span::from_secs(90);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_of_the_api_server_evict_nobody_and_delay_what_is_due() {
    let Some(binary) = plane::binary("e2e_faults").unwrap() else { return };
    let options = Options {
        toleration_seconds: TOLERATION,
        audit: true,
        users: vec![CONTROLLER],
        ..Options::default()
    };
    let plane = Plane::start(&binary, options).await.unwrap();
    if let Err(error) = faults(&plane).await {
        panic!("{error:#}");
    }
}

async fn faults(plane: &Plane) -> Result<()> {
    apply_role(plane, "controller").await?;
    let client = plane.client();
    let kubelets = three_zones(&client, 2).await?;
    let proxy = Proxy::start(plane.client_of(CONTROLLER).await?).await?;
    let mut kordon = start_kordon(plane, &proxy)?;
    let mut watcher = EffectWatcher::start(&client).await?;
    // New nodes have a taint until the controller has seen them.
    for node in kubelets.names() {
        let (key, effect) = ("node.kubernetes.io/not-ready".into(), "NoSchedule".into());
        let reached = EffectKind::TaintRemoved { node: node.into(), key, effect };
        watcher.wait_for_effect(&reached, Span::from_secs(30)).await?;
    }
    let bystanders: Vec<_> = kubelets.names().map(|node| pod(&format!("stays-{node}"), node, None)).collect();
    create_running(&client, &bystanders).await?;

    let rounds = [
        ("away", "a1", Faults { down: true, ..Faults::default() }),
        ("409", "a2", Faults { conflicting: 1.0, ..Faults::default() }),
        ("429", "b1", Faults { throttled: 0.7, ..Faults::default() }),
        ("500", "b2", Faults { failing: 0.7, ..Faults::default() }),
        ("stalled", "c1", Faults { stalled: 0.5, ..Faults::default() }),
    ];
    for (name, node, faults) in rounds {
        let started = tokio::time::Instant::now();
        round(plane, &kubelets, &proxy, name, node, faults)
            .await
            .with_context(|| format!("{name}: {:?}", proxy.tally()))?;
        kordon.check()?;
        say(&format!("e2e_faults: {name}: {:.1} s", started.elapsed().as_secs_f64()));
    }
    kordon.stop().await
}

fn start_kordon(plane: &Plane, proxy: &Proxy) -> Result<Component> {
    let manager = ControllerManager { grace_period: Span::from_secs(6), ..ControllerManager::default() };
    let of_lifecycle = manager.settings()?.flags();
    let of_lifecycle = of_lifecycle.into_iter().filter(|(flag, ..)| *flag != "controllers");
    let flags = of_lifecycle.map(|(flag, value, _)| format!("--{flag}={value}"));
    let kubeconfig = plane.kubeconfig_of(&proxy.url)?;
    plane.start_kordon_with("kordon", &kubeconfig, &LIFECYCLE[..2].join(","), flags)
}

/// One node falls silent during the fault; the others stay healthy.
async fn round(
    plane: &Plane,
    kubelets: &Kubelets,
    proxy: &Proxy,
    name: &str,
    node: &str,
    faults: Faults,
) -> Result<()> {
    let client = plane.client();
    let victim = format!("victim-{name}");
    create_running(&client, &[pod(&victim, node, None)]).await?;
    let mut watcher = EffectWatcher::start(&client).await?;
    proxy.set(faults);
    // Faults apply to new connections, so the open ones are cut.
    proxy.cut_all();
    kubelets.silence(node).await?;
    tokio::time::sleep(LASTS).await;
    let is_blind = faults.down || faults.conflicting == 1.0;
    let is_marked = watcher.time_of(&EffectKind::unknown(node)).is_some();
    ensure!(!(is_blind && is_marked), "{node} was marked through the fault\n{watcher}");
    proxy.set(Faults::default());
    for effect in [
        EffectKind::unknown(node),
        EffectKind::unreachable_taint(node),
        EffectKind::PodDeleted(on(node, &victim)),
    ] {
        watcher.wait_for_effect(&effect, RECOVERED).await?;
    }
    kubelets.come_back(node).await?;
    // Waits for late effects, which the next round would otherwise count as its own.
    let [key, bystander] = ["node.kubernetes.io/unreachable".to_owned(), format!("stays-{node}")];
    let removed = |effect: &str| EffectKind::TaintRemoved {
        node: node.into(),
        key: key.clone(),
        effect: effect.into(),
    };
    for effect in [
        removed("NoSchedule"),
        removed("NoExecute"),
        EffectKind::PodGone(on(node, &victim)),
        EffectKind::PodGone(on(node, &bystander)),
    ] {
        watcher.wait_for_effect(&effect, RECOVERED).await?;
    }
    // Effects that belong to no node are ignored: one of them is a change of the leader, which the fault may cause.
    let is_elsewhere = |effect: &Effect| effect.kind.node().is_some_and(|other| other != node);
    let elsewhere = watcher.effects().into_iter().find(is_elsewhere);
    ensure!(elsewhere.is_none(), "{watcher}\na healthy node was touched: {elsewhere:?}");
    let deletions = deletions(plane, &victim)?;
    ensure!(deletions == 1, "{watcher}\n{deletions} deletions of {victim}");
    Ok(())
}

/// Returns how often kordon deleted the pod.
fn deletions(plane: &Plane, pod: &str) -> Result<usize> {
    let is_deletion = |line: &serde_json::Value| {
        line["verb"] == "delete"
            && line["objectRef"]["resource"] == "pods"
            && line["objectRef"]["name"] == pod
            && line["responseStatus"]["code"].as_i64().is_some_and(|code| code < 300)
    };
    Ok(plane.audit_of(CONTROLLER)?.iter().filter(|line| is_deletion(line)).count())
}
