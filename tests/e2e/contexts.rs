//! One dashboard with two contexts, each of a real API server. One of the servers stops answering, and later dies.
//! Changing the context never hangs. An operation of the first context continues, and keys that are typed in the second
//! context do not affect it.

use std::fs;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kordon_time::Span;
use kube::{Api, Client, api::ListParams};
use serde_json::{Value, json};

use crate::{
    actions::cluster::{ClusterSize, OPERATOR, may_drain, nodes, pods_on, set_budget, start_cluster},
    common::{
        program::{Shell, is_cordoned},
        terminal::Terminal,
    },
    harness::{
        eventually::eventually,
        kubelets::{Heartbeats, Kubelets, NodeSpec},
        plane::{self, Options, Plane},
    },
};

/// Names of the contexts.
const FIRST: &str = "here";
const SECOND: &str = "second";

/// A node of the second cluster.
const OTHER: &str = "z1";

/// The word that a user types to confirm a drain although a budget blocks it.
const OVERRIDE: &str = "try-blocked";

const SIZE: ClusterSize = ClusterSize::PATIENT;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operation_outlives_its_context_being_left_and_a_dead_server_keeps_nobody_waiting() {
    let Some(binary) = plane::binary("e2e_contexts").unwrap() else { return };
    let options = || Options { audit: true, users: vec![OPERATOR], ..Options::default() };
    let mut first = Plane::start(&binary, options()).await.unwrap();
    let mut second = Plane::start(&binary, options()).await.unwrap();
    first.scenario("two contexts", async |first| two_contexts(first, &mut second).await).await;
}

async fn two_contexts(first: &mut Plane, second: &mut Plane) -> Result<()> {
    let _kubelets = start_cluster(first, &SIZE).await?;
    let client = first.client();
    let others = vec![NodeSpec::new(OTHER, "z"), NodeSpec::new("z2", "z")];
    let _others = Kubelets::start(&second.client(), others, Heartbeats::default()).await?;
    first.grant(OPERATOR, &may_drain()).await?;
    second.grant(OPERATOR, &may_drain()).await?;
    let drained = node_of_web(&client).await?;
    // A budget blocks the drain until the test changes the budget.
    set_budget(&client, "web", json!(SIZE.web)).await?;

    let shell = Shell::new();
    let kubeconfig = shell.file("kubeconfig", &both(first, second)?.to_string());
    let mut terminal = Terminal::sized(shell.under_terminal(&["--kubeconfig", &kubeconfig]), 48, 160);
    terminal.wait("6 Ready");
    start_drain(&mut terminal, &drained);
    eventually("a cordoned node", Span::from_secs(30), async || {
        Ok(nodes(&client).await?.iter().any(is_cordoned).then_some(()))
    })
    .await?;

    go_to_second(&mut terminal);
    terminal.wait(&format!("operations in {FIRST} (:ctx)"));
    terminal.type_in("2/z\r");
    terminal.wait("/z");
    // Keys that would pause, cancel or undo the operation of the first context, or write to the second cluster.
    for keys in ["p", "C", "U", "X", "2c", "A", "\x1b", "2r", "A", "\x1b"] {
        terminal.type_in(keys);
    }
    first.kill_api_server()?;
    is_responsive(&mut terminal);
    terminal.type_in("q");
    terminal.wait(&format!("operations run in {FIRST} (:ctx {FIRST})"));
    terminal.type_in(&format!(":ctx {FIRST}\r"));
    terminal.wait(&format!("context {FIRST}"));
    terminal.wait("2 Progress");
    is_responsive(&mut terminal);
    go_to_second(&mut terminal);
    terminal.wait("/z");

    first.start_api_server().await?;
    set_budget(&client, "web", json!(SIZE.web - 1)).await?;
    terminal.wait_gone(&format!("operations in {FIRST} (:ctx)"));
    is_drained(&client, &drained).await?;
    ensure!(writes(&second.audit_of(OPERATOR)?).is_empty(), "{:?}", writes(&second.audit_of(OPERATOR)?));

    // A stopped server accepts connections, but answers none.
    terminal.type_in(&format!(":ctx {FIRST}\r"));
    terminal.wait(&format!("context {FIRST}"));
    second.pause_api_server()?;
    terminal.type_in(&format!(":ctx {SECOND}\r"));
    terminal.wait(&format!("connecting to {SECOND}; {FIRST} is shown until it answers"));
    is_responsive(&mut terminal);
    second.resume_api_server()?;
    terminal.wait(&format!("context {SECOND}"));
    terminal.wait("/z");
    terminal.type_in("q");
    ensure!(terminal.end().success(), "{}", terminal.text());
    Ok(())
}

/// A kubeconfig with a context for each control plane.
fn both(first: &Plane, second: &Plane) -> Result<Value> {
    let mut lists = [("clusters", "cluster"), ("users", "user"), ("contexts", "context")]
        .map(|(list, item)| (list, item, Vec::new()));
    for (name, plane) in [(FIRST, first), (SECOND, second)] {
        let text = fs::read_to_string(plane.kubeconfig(OPERATOR)?)?;
        let config: Value = serde_json::from_str(&text)?;
        for (list, item, found) in &mut lists {
            let mut entry = config[&**list][0][&**item].clone();
            if *list == "contexts" {
                entry = json!({"cluster": name, "user": name});
            }
            found.push(json!({"name": name, *item: entry}));
        }
    }
    let mut all = json!({"apiVersion": "v1", "kind": "Config", "current-context": FIRST});
    for (list, _, found) in lists {
        all[list] = found.into();
    }
    Ok(all)
}

/// Returns a node with a pod that the budget covers.
async fn node_of_web(client: &Client) -> Result<String> {
    let pods =
        Api::<Pod>::default_namespaced(client.clone()).list(&ListParams::default().labels("app=web")).await?;
    let node = pods.items.into_iter().find_map(|pod| pod.spec?.node_name);
    node.context("no pod of web is on a node")
}

/// Starts the drain of a node, which a budget blocks.
fn start_drain(terminal: &mut Terminal, node: &str) {
    terminal.type_in(":enforce\r");
    terminal.wait("ENFORCE");
    terminal.type_in(&format!("2/{node}\rr"));
    terminal.wait("2 Plan");
    terminal.type_once_ready("A", OVERRIDE);
    terminal.agree(OVERRIDE);
    terminal.wait("2 Progress");
}

fn go_to_second(terminal: &mut Terminal) {
    terminal.type_in(&format!(":ctx {SECOND}\r"));
    terminal.wait(&format!("context {SECOND}"));
    terminal.wait("DRY-RUN");
    terminal.wait(OTHER);
}

/// Checks that the dashboard still responds to keys.
fn is_responsive(terminal: &mut Terminal) {
    terminal.type_in("?");
    terminal.wait("Esc closes");
    terminal.type_in("\x1b");
    terminal.wait_gone("Esc closes");
}

async fn is_drained(client: &Client, name: &str) -> Result<()> {
    let node = nodes(client).await?.into_iter().find(|node| node.metadata.name.as_deref() == Some(name));
    ensure!(is_cordoned(&node.context("it is there")?), "{name} is not cordoned");
    let pods = pods_on(client, name).await?;
    ensure!(pods.iter().all(|pod| pod.metadata.deletion_timestamp.is_some()), "pods are left on {name}");
    Ok(())
}

/// Returns the requests of an audit log that change something. Reviews of the user's own name and rights do not count.
fn writes(audit: &[Value]) -> Vec<&Value> {
    let is_write = |line: &&Value| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (verb, group) = (text(&line["verb"]), text(&line["objectRef"]["apiGroup"]));
        !["get", "list", "watch"].contains(&&*verb)
            && !["authentication.k8s.io", "authorization.k8s.io"].contains(&&*group)
    };
    audit.iter().filter(is_write).collect()
}
