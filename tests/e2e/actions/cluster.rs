//! kordon run by a user of the control plane, and a small cluster to operate on.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, Result};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Node, Pod},
    policy::v1::PodDisruptionBudget,
    rbac::v1::PolicyRule,
};
use kordon::journal::{Journal, JournaledOperation, operations};
use kordon_core::cluster::Key;
use kordon_time::Span;
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    common::program::{self, Shell},
    harness::{
        eventually::eventually,
        kubelets::{Heartbeats, Kubelets, NodeSpec, is_ready},
        objects::deployment,
        plane::{ControllerManager, Plane},
    },
};

/// A user with the rights to drain.
pub const OPERATOR: &str = "operator";

/// A user that only makes plans. The audit log must not have any write by this user.
pub const PLANNER: &str = "planner";

/// kordon with the kubeconfig of a user.
pub struct UserShell {
    pub shell: Shell,
    pub kubeconfig: String,
}

impl UserShell {
    pub fn new(kubeconfig: PathBuf) -> Self {
        Self { shell: Shell::new(), kubeconfig: program::path(&kubeconfig).to_owned() }
    }

    pub async fn run(&self, line: &[&str]) -> program::Output {
        self.shell.run(&[&["--kubeconfig", &self.kubeconfig][..], line].concat()).await
    }

    /// Returns the operations in the journal. There is only one journal, because there is only one cluster.
    pub fn operations(&self) -> Result<Vec<JournaledOperation>> {
        let folder = self.shell.home.path().join(".local/state/kordon/journal");
        let journals = Journal::all_within(&folder)?;
        let lines = journals.iter().map(Journal::lines).collect::<Result<Vec<_>, _>>()?;
        Ok(operations(&lines.concat()))
    }
}

/// The size of the cluster.
pub struct ClusterSize {
    /// The number of nodes in each of the zones a, b and c; nodes are named a1, a2, and so on.
    pub nodes_per_zone: usize,
    /// Pods of the Deployment `web`, with a budget that allows one disruption.
    pub web: u32,
    /// Pods of the Deployment `db`, without a budget.
    pub db: u32,
    /// The grace period of the node lifecycle controller.
    pub grace: Span,
}

impl ClusterSize {
    pub const SMALL: Self = Self { nodes_per_zone: 2, web: 6, db: 12, grace: Span::from_secs(5) };
    /// A small cluster with a long grace period: a node does not become Unknown while a test silences it for a short
    /// time, or while the machine is busy.
    pub const PATIENT: Self = Self { grace: Span::from_secs(120), ..Self::SMALL };
}

/// Starts nodes with kubelets and two Deployments, one of them with a budget, and waits until all are ready.
pub async fn start_cluster(plane: &mut Plane, size: &ClusterSize) -> Result<Kubelets> {
    let client = plane.client();
    let specs = ["a", "b", "c"].into_iter().flat_map(|zone| {
        (1..=size.nodes_per_zone).map(move |number| NodeSpec::new(format!("{zone}{number}"), zone))
    });
    let kubelets = Kubelets::start(&client, specs.collect(), Heartbeats::default()).await?;
    plane.start_controller_manager(&ControllerManager {
        controllers: vec!["*"],
        grace_period: size.grace,
        ..ControllerManager::default()
    })?;
    plane.start_scheduler()?;
    for (name, replicas) in [("web", size.web), ("db", size.db)] {
        let deployments = Api::<Deployment>::namespaced(client.clone(), "default");
        deployments
            .create(&PostParams::default(), &serde_json::from_value(deployment(name, replicas, 2))?)
            .await?;
    }
    create_budget(&client, "web", "web", json!(size.web - 1)).await?;
    wait_until_ready(&client, size).await?;
    wait_until_initialized(&client).await?;
    Ok(kubelets)
}

/// Waits until the controllers have initialized every new node: labels and the annotation of the ttl controller are
/// set, and no taint is left.
async fn wait_until_initialized(client: &Client) -> Result<()> {
    let initialized = |node: &Node| {
        let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
        node.labels().contains_key("beta.kubernetes.io/os")
            && node.annotations().contains_key("node.alpha.kubernetes.io/ttl")
            && taints.is_none_or(Vec::is_empty)
    };
    eventually("nodes that their controllers have initialized", Span::from_secs(20), async || {
        Ok(nodes(client).await?.iter().all(initialized).then_some(()))
    })
    .await
}

/// Waits until all pods are ready and the budget allows a disruption.
pub async fn wait_until_ready(client: &Client, size: &ClusterSize) -> Result<()> {
    let all = usize::try_from(size.web + size.db)?;
    eventually("ready pods and a budget that allows a disruption", Span::from_secs(60), async || {
        let pods = pods(client).await?;
        let lives = |pod: &&Pod| pod.metadata.deletion_timestamp.is_none();
        let ready = pods.len() == all && pods.iter().filter(lives).filter(|pod| is_ready(pod)).count() == all;
        let allowed =
            budgets(client).get("web").await?.status.is_some_and(|status| status.disruptions_allowed > 0);
        Ok((ready && allowed).then_some(()))
    })
    .await
}

pub fn budgets(client: &Client) -> Api<PodDisruptionBudget> {
    Api::namespaced(client.clone(), "default")
}

pub async fn create_budget(client: &Client, app: &str, name: &str, min_available: Value) -> Result<()> {
    let selector = json!({"matchLabels": {"app": app}});
    let budget =
        json!({"metadata": {"name": name}, "spec": {"minAvailable": min_available, "selector": selector}});
    budgets(client).create(&PostParams::default(), &serde_json::from_value(budget)?).await?;
    Ok(())
}

/// Changes a budget and waits until the disruption controller has updated its status.
pub async fn set_budget(client: &Client, name: &str, min_available: Value) -> Result<()> {
    let patch = Patch::Merge(json!({"spec": {"minAvailable": min_available}}));
    budgets(client).patch(name, &PatchParams::default(), &patch).await?;
    eventually("an updated budget", Span::from_secs(20), async || {
        let budget = budgets(client).get(name).await?;
        let seen = budget.status.as_ref().and_then(|status| status.observed_generation);
        Ok((seen == budget.metadata.generation).then_some(()))
    })
    .await
}

pub async fn pods(client: &Client) -> Result<Vec<Pod>> {
    Ok(Api::<Pod>::namespaced(client.clone(), "default").list(&ListParams::default()).await?.items)
}

/// The pods on a node, in all namespaces.
pub async fn pods_on(client: &Client, node: &str) -> Result<Vec<Pod>> {
    let on = ListParams::default().fields(&format!("spec.nodeName={node}"));
    Ok(Api::<Pod>::all(client.clone()).list(&on).await?.items)
}

pub async fn nodes(client: &Client) -> Result<Vec<Node>> {
    Ok(Api::<Node>::all(client.clone()).list(&ListParams::default()).await?.items)
}

pub fn key(pod: &Pod) -> Key {
    Key::new("default", &pod.name_any())
}

pub fn rule(group: &str, resource: &str, verbs: &[&str]) -> PolicyRule {
    PolicyRule {
        api_groups: Some(vec![group.into()]),
        resources: Some(vec![resource.into()]),
        verbs: verbs.iter().map(|verb| (*verb).into()).collect(),
        ..PolicyRule::default()
    }
}

pub fn reads() -> PolicyRule {
    rule("*", "*", &["get", "list", "watch"])
}

pub fn may_drain() -> [PolicyRule; 4] {
    [
        reads(),
        rule("", "nodes", &["patch"]),
        rule("", "pods/eviction", &["create"]),
        rule("", "pods", &["delete"]),
    ]
}

/// Whether a line of the audit log is an eviction that was granted.
pub fn is_granted_eviction(line: &Value) -> bool {
    is_eviction(line) && line["responseStatus"]["code"] == 201
}

pub fn is_eviction(line: &Value) -> bool {
    line["verb"] == "create" && line["objectRef"]["subresource"] == "eviction"
}

pub fn env_number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// The duration in `KORDON_RUN`, or another one if that is not set.
pub fn run_length(otherwise: Duration) -> Result<Duration> {
    match std::env::var("KORDON_RUN") {
        Ok(text) => humantime::parse_duration(&text).context("KORDON_RUN"),
        Err(_) => Ok(otherwise),
    }
}
