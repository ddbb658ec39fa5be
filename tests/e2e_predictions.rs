//! What kordon foretells against what the real controllers do: for each thing they did, the last forecast made five
//! seconds before.
//!
//! Asserts what was foretold and why; prints by how much the times were off. Left out as `tests/e2e.rs` says.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Node, Pod};
use kordon::{
    engine::{Origin, ServerVersion, Settings},
    forecast::{Forecast, Step, What},
    time::{Span, Timestamp},
};
use kube::{
    Api, Client,
    api::{ListParams, PostParams},
};
use serde_json::json;

use common::{
    eventually::eventually,
    kubelets::{Beats, Kubelets, NodeSpec},
    observer::Observer,
    plane::{self, ControllerManager, Options, Plane},
    say,
    witness::{Kind, Witness},
};

const ZONES: [&str; 3] = ["a", "b", "c"];
const NODES_A_ZONE: usize = 10;
/// Two in zone a and two in zone b wait for each other's token; the one in zone c has nobody to wait for.
const SILENT: [&str; 5] = ["a1", "a2", "b1", "b2", "c1"];
/// What admission gives pods here, and what some ask for themselves.
const TOLERATION: u32 = 6;
const LONGER: i64 = 9;
/// An error of so many seconds is not noise: the wrong thing was foretold.
const GROSS: f64 = 15.0;
/// How long before it happens a thing must be foretold.
const NOTICE: Span = Span::from_secs(5);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_foretold_is_what_the_real_controllers_do() {
    let Some(binary) = plane::binary("e2e_predictions").unwrap() else { return };
    let mut plane = Plane::start(&binary, Options { toleration_seconds: TOLERATION, ..Options::default() })
        .await
        .unwrap();
    if let Err(error) = silent_nodes_are_foretold(&mut plane).await {
        panic!("{error:#}");
    }
}

async fn silent_nodes_are_foretold(plane: &mut Plane) -> Result<()> {
    let manager = ControllerManager {
        grace_period: Span::from_secs(12),
        eviction_rate: 0.5,
        secondary_eviction_rate: 0.25,
        ..ControllerManager::default()
    };
    let client = plane.client();
    let names = ZONES.into_iter().flat_map(|zone| (1..=NODES_A_ZONE).map(move |number| (zone, number)));
    let specs = names.map(|(zone, number)| NodeSpec::new(format!("{zone}{number}"), zone)).collect();
    let kubelets = Kubelets::start(&client, specs, Beats::default()).await?;
    create_pods(&client).await?;
    plane.start_controller_manager(&manager)?;
    settle(plane).await?;

    let witness = Witness::start(&client).await?;
    let observer = Observer::start(client, settings(&manager)?);
    // Long enough for the observer to have seen every node renew its lease.
    tokio::time::sleep(std::time::Duration::from_secs(8)).await;
    for node in SILENT {
        kubelets.silence(node).await?;
    }
    let mut witness = witness;
    for node in SILENT {
        witness.saw(&Kind::unreachable_taint(node), Span::from_secs(40)).await?;
    }
    witness
        .wait("all pods of the silent nodes deleted", Span::from_secs(40), |effects| {
            let deleted = effects.iter().filter(|effect| matches!(effect.kind, Kind::PodDeleted(_))).count();
            (deleted == 2 * SILENT.len()).then_some(())
        })
        .await?;
    let (app, forecasts) = observer.finish().await?;
    ensure!(app.live.engine.is_some(), "the observer never began: {:?}", app.live.feeds);

    let real = Happened::of_witness(&witness);
    let silent: BTreeSet<String> = SILENT.map(String::from).into();
    ensure!(real.unknown.keys().cloned().collect::<BTreeSet<_>>() == silent, "{witness}");
    let errors = compare(&real, &forecasts, &witness)?;
    print(&errors, &manager);
    let worst = errors.values().flatten().map(|off| off.abs()).fold(0.0, f64::max);
    ensure!(worst < GROSS, "off by {worst} s: that is no lateness of the machine\n{witness}");
    foretold_nothing_else(&forecasts, &silent)
}

/// What happened, or is foretold to, by name.
#[derive(Debug, Default)]
struct Happened {
    unknown: BTreeMap<String, Timestamp>,
    tainted: BTreeMap<String, Timestamp>,
    /// By name of the pod: its node, and when.
    deleted: BTreeMap<String, (String, Timestamp)>,
}

impl Happened {
    fn of_witness(witness: &Witness) -> Self {
        let mut happened = Self::default();
        for effect in witness.effects() {
            match &effect.kind {
                Kind::Condition { node, condition, status }
                    if condition == "Ready" && status == "Unknown" =>
                {
                    happened.unknown.insert(node.clone(), effect.at);
                }
                Kind::TaintAdded { node, effect: kind, .. } if kind == "NoExecute" => {
                    happened.tainted.insert(node.clone(), effect.at);
                }
                Kind::PodDeleted(pod) => {
                    let node = pod.node.clone().unwrap_or_default();
                    happened.deleted.insert(pod.name.clone(), (node, effect.at));
                }
                _ => {}
            }
        }
        happened
    }

    fn of_steps<'a>(steps: impl IntoIterator<Item = &'a Step>) -> Self {
        let mut happened = Self::default();
        for step in steps {
            match &step.what {
                What::Unknown { node } => drop(happened.unknown.insert(node.to_string(), step.at)),
                What::NoExecute { node, .. } => drop(happened.tainted.insert(node.to_string(), step.at)),
                // The pod garbage collector does not run here.
                What::Removed { .. } => {}
                What::Deleted { pod, node } => {
                    happened.deleted.insert(pod.name.to_string(), (node.to_string(), step.at));
                }
            }
        }
        happened
    }
}

/// By how many seconds each forecast was late (or, below zero, early), by what it was about.
type Errors = BTreeMap<&'static str, Vec<f64>>;

fn compare(real: &Happened, forecasts: &[Forecast], witness: &Witness) -> Result<Errors> {
    let mut errors = Errors::new();
    let mut note = |what, foretold: Timestamp, real: Timestamp| {
        errors.entry(what).or_default().push(foretold.since(real).as_secs_f64());
    };
    for (node, at) in &real.unknown {
        let step = foretold(
            forecasts,
            *at,
            |step| matches!(&step.what, What::Unknown { node: of } if **of == **node),
        );
        let step = step.with_context(|| format!("Unknown of {node} was not foretold\n{witness}"))?;
        let why = step.why.to_string();
        ensure!(why.contains("lease renewed") && why.contains("node-monitor-grace-period 12s"), "{why}");
        note("Unknown", step.at, *at);
    }
    // Which of the nodes that wait in a zone comes first is chance: times are compared in order, zone by zone.
    for zone in ZONES {
        let of_zone = |happened: &Happened| -> Vec<Timestamp> {
            let of_zone = happened.tainted.iter().filter(|(node, _)| node.starts_with(zone));
            let mut times: Vec<_> = of_zone.map(|(_, at)| *at).collect();
            times.sort();
            times
        };
        for (place, at) in of_zone(real).into_iter().enumerate() {
            let forecast = before(forecasts, at).context("a forecast 5 s before the first taint")?;
            let mut then = Happened::of_steps(&forecast.steps);
            then.tainted.extend(real.tainted.clone().into_iter().filter(|(_, at)| *at <= forecast.made));
            let foretold = of_zone(&then);
            ensure!(
                foretold.len() == of_zone(real).len(),
                "zone {zone}: {foretold:?} at {}\n{witness}",
                forecast.made
            );
            note("NoExecute", foretold[place], at);
        }
    }
    for (pod, (node, at)) in &real.deleted {
        let forecast = before(forecasts, *at).context("a forecast 5 s before the first deletion")?;
        let then = Happened::of_steps(&forecast.steps);
        let (_, foretold) = then
            .deleted
            .get(pod)
            .with_context(|| format!("deletion of {pod} was not foretold at {}\n{witness}", forecast.made))?;
        let tainted = real.tainted.get(node).context("no pod leaves an untainted node")?;
        let since = then.tainted.get(node).unwrap_or(tainted);
        note("deletion", *tainted + foretold.since(*since), *at);
    }
    Ok(errors)
}

/// The last forecast made five seconds before something happened.
fn before(forecasts: &[Forecast], at: Timestamp) -> Option<&Forecast> {
    forecasts.iter().rfind(|forecast| forecast.made + NOTICE <= at)
}

fn foretold(forecasts: &[Forecast], at: Timestamp, is: impl Fn(&Step) -> bool) -> Option<&Step> {
    before(forecasts, at)?.steps.iter().find(|step| is(step))
}

/// No forecast may name a node that lived on.
fn foretold_nothing_else(forecasts: &[Forecast], silent: &BTreeSet<String>) -> Result<()> {
    for forecast in forecasts {
        let others: Vec<_> =
            forecast.steps.iter().filter(|step| !silent.contains(&**step.what.node())).collect();
        ensure!(others.is_empty(), "foretold at {}, and did not happen: {others:?}", forecast.made);
    }
    Ok(())
}

fn print(errors: &Errors, manager: &ControllerManager) {
    let allowed = manager.monitor_period.as_secs_f64() + 1.0;
    for (what, off) in errors {
        let mut sizes: Vec<f64> = off.iter().map(|off| off.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        let within = sizes.iter().filter(|off| **off <= allowed).count();
        let (median, worst) = (sizes[sizes.len() / 2], sizes[sizes.len() - 1]);
        say(&format!(
            "e2e_predictions: {what}: {within} of {} within {allowed} s of what happened; off by {median:.2} s (median), \
             {worst:.2} s (worst)",
            sizes.len()
        ));
    }
}

fn settings(manager: &ControllerManager) -> Result<Settings> {
    let mut settings = Settings::defaults(ServerVersion::new(1, 36));
    let flags = [
        ("node-monitor-period", format!("{}s", manager.monitor_period.as_secs())),
        ("node-monitor-grace-period", format!("{}s", manager.grace_period.as_secs())),
        ("node-startup-grace-period", format!("{}s", manager.startup_grace_period.as_secs())),
        ("node-eviction-rate", manager.eviction_rate.to_string()),
        ("secondary-node-eviction-rate", manager.secondary_eviction_rate.to_string()),
    ];
    for (flag, text) in flags {
        ensure!(settings.set(flag, &text, Origin::Override)?, "{flag}");
    }
    Ok(settings)
}

/// Two pods on each node: one as admission makes it, one that bears an unreachable node for longer.
async fn create_pods(client: &Client) -> Result<()> {
    let api = Api::<Pod>::namespaced(client.clone(), "default");
    let pod = |name: &str, node: &str, tolerations: serde_json::Value| {
        json!({
            "metadata": { "name": name },
            "spec": {
                "nodeName": node,
                "tolerations": tolerations,
                "containers": [{ "name": "c", "image": "example.invalid/none" }],
            },
        })
    };
    let longer = json!([{ "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": LONGER }]);
    for zone in ZONES {
        for number in 1..=NODES_A_ZONE {
            let node = format!("{zone}{number}");
            for pod in [
                pod(&format!("usual-{node}"), &node, json!([])),
                pod(&format!("longer-{node}"), &node, longer.clone()),
            ] {
                api.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
            }
        }
    }
    Ok(())
}

/// Waits until the controllers have taken off the taint that new nodes get.
async fn settle(plane: &mut Plane) -> Result<()> {
    let nodes = Api::<Node>::all(plane.client());
    eventually("nodes without taints", Span::from_secs(30), async || {
        plane.check()?;
        let listed = nodes.list(&ListParams::default()).await?;
        let tainted = |node: &Node| node.spec.as_ref().is_some_and(|spec| spec.taints.is_some());
        Ok((!listed.iter().any(tainted)).then_some(()))
    })
    .await
}
