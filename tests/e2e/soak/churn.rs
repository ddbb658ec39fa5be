//! The changes in the cluster of the soak test: nodes fall silent, come back, are deleted and created, pods are created
//! and deleted, and from time to time an object of another kind is created or deleted.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result};
use k8s_openapi::{
    api::{
        apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet},
        batch::v1::Job,
        core::v1::{
            Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, ReplicationController, Service,
        },
        policy::v1::PodDisruptionBudget,
        scheduling::v1::PriorityClass,
        storage::v1::{CSINode, StorageClass},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    core::{ApiResource, DynamicObject},
};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::harness::{kubelets::Kubelets, objects::deployment};

/// Number of lanes: tasks that each make one node at a time silent, or delete it.
const LANES: usize = 8;
/// Number of lanes that delete nodes instead of making them silent.
const REMOVING: usize = 2;

/// The Deployments of the cluster, as `app-NUMBER`.
#[derive(Clone, Copy, Debug)]
pub struct Workloads {
    pub deployments: u32,
    pub replicas: u32,
}

/// Creates the Deployments, each with a budget.
pub async fn create_workloads(client: &Client, workloads: Workloads) -> Result<()> {
    for number in 0..workloads.deployments {
        let name = format!("app-{number}");
        let mut object = deployment(&name, workloads.replicas, 2);
        object["spec"]["revisionHistoryLimit"] = json!(2);
        create::<Deployment>(client, object).await?;
        let selector = json!({ "matchLabels": { "app": name } });
        let budget =
            json!({ "metadata": { "name": name }, "spec": { "maxUnavailable": 1, "selector": selector } });
        create::<PodDisruptionBudget>(client, budget).await?;
    }
    Ok(())
}

async fn create<K>(client: &Client, object: Value) -> Result<()>
where
    K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
        + serde::de::DeserializeOwned
        + serde::Serialize
        + Clone
        + std::fmt::Debug,
{
    let api = Api::<K>::namespaced(client.clone(), "default");
    api.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
    Ok(())
}

/// The running changes, until [`Churn::finish`].
pub struct Churn {
    ends: CancellationToken,
    tasks: JoinSet<Result<()>>,
}

/// Shared state of each task of the churn.
#[derive(Clone)]
struct Hand {
    client: Client,
    kubelets: Arc<Kubelets>,
    workloads: Workloads,
    ends: CancellationToken,
    rng: fastrand::Rng,
}

impl Churn {
    pub fn start(client: &Client, kubelets: Arc<Kubelets>, workloads: Workloads, seed: u64) -> Self {
        let (ends, mut tasks) = (CancellationToken::new(), JoinSet::new());
        let hand = |number: u64| Hand {
            client: client.clone(),
            kubelets: kubelets.clone(),
            workloads,
            ends: ends.clone(),
            rng: fastrand::Rng::with_seed(seed.wrapping_mul(1000).wrapping_add(number)),
        };
        let names: Vec<String> = kubelets.names().map(str::to_owned).collect();
        for lane in 0..LANES {
            let mine: Vec<String> = names.iter().skip(lane).step_by(LANES).cloned().collect();
            tasks.spawn(hand(lane as u64).move_nodes(mine, lane < REMOVING));
        }
        tasks.spawn(hand(100).delete_pods());
        tasks.spawn(hand(101).scale());
        tasks.spawn(hand(102).roll_out());
        tasks.spawn(hand(103).change_other_kinds());
        Self { ends, tasks }
    }

    /// Fails if a task of the churn has ended by itself.
    pub fn check(&mut self) -> Result<()> {
        match self.tasks.try_join_next() {
            None => Ok(()),
            Some(ended) => ended?.and_then(|()| anyhow::bail!("a part of the churn has ended")),
        }
    }

    /// Stops the changes. All nodes are back when it returns.
    pub async fn finish(mut self) -> Result<()> {
        self.ends.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            ended??;
        }
        Ok(())
    }
}

impl Hand {
    /// Sleeps for a random time in seconds. Returns `false` once the churn ends.
    async fn pause(&mut self, from: f64, to: f64) -> bool {
        let pause = Duration::from_secs_f64(from + self.rng.f64() * (to - from));
        self.ends.run_until_cancelled(tokio::time::sleep(pause)).await.is_some()
    }

    /// Repeatedly picks a random node. The node falls silent for a short or a long time and comes back. With
    /// `removing`, the node is deleted instead, and created again.
    async fn move_nodes(mut self, nodes: Vec<String>, removing: bool) -> Result<()> {
        while self.pause(2.0, 15.0).await {
            let node = self.rng.choice(&nodes).context("more lanes than nodes")?.clone();
            if removing {
                self.kubelets.remove(&node).await?;
                self.pause(5.0, 40.0).await;
                self.kubelets.rejoin(&node).await?;
            } else {
                self.kubelets.silence(&node).await?;
                self.pause(20.0, 240.0).await;
                self.kubelets.come_back(&node).await?;
            }
        }
        Ok(())
    }

    /// Deletes two pods a second; their Deployments create others.
    async fn delete_pods(mut self) -> Result<()> {
        let pods = Api::<Pod>::namespaced(self.client.clone(), "default");
        loop {
            let mut listed = pods.list_metadata(&ListParams::default()).await?.items;
            listed.retain(|pod| pod.metadata.deletion_timestamp.is_none());
            self.rng.shuffle(&mut listed);
            for pod in listed.iter().take(40) {
                if !self.pause(0.3, 0.7).await {
                    return Ok(());
                }
                ignore_missing(pods.delete(&pod.name_any(), &DeleteParams::default()).await)?;
            }
            if !self.pause(0.1, 0.2).await {
                return Ok(());
            }
        }
    }

    /// Changes the number of replicas of Deployments; at the end all are restored.
    async fn scale(mut self) -> Result<()> {
        let usual = self.workloads.replicas;
        while self.pause(10.0, 20.0).await {
            let name = self.any_deployment();
            let replicas = self.rng.u32(usual / 2..=usual * 3 / 2);
            self.patch(&name, &json!({ "spec": { "replicas": replicas } })).await?;
            self.pause(10.0, 20.0).await;
            self.patch(&name, &json!({ "spec": { "replicas": usual } })).await?;
        }
        Ok(())
    }

    /// Changes the template of a Deployment, so that all of its pods are replaced.
    async fn roll_out(mut self) -> Result<()> {
        while self.pause(50.0, 70.0).await {
            let (name, revision) = (self.any_deployment(), self.rng.u32(..).to_string());
            let template = json!({ "metadata": { "annotations": { "revision": revision } } });
            self.patch(&name, &json!({ "spec": { "template": template } })).await?;
        }
        Ok(())
    }

    fn any_deployment(&mut self) -> String {
        format!("app-{}", self.rng.u32(..self.workloads.deployments))
    }

    async fn patch(&self, deployment: &str, change: &Value) -> Result<()> {
        let deployments = Api::<Deployment>::namespaced(self.client.clone(), "default");
        deployments.patch(deployment, &PatchParams::default(), &Patch::Merge(change)).await?;
        Ok(())
    }

    /// Creates an object of a random other kind, or deletes it if it exists.
    async fn change_other_kinds(mut self) -> Result<()> {
        let kinds = other_kinds();
        while self.pause(3.0, 8.0).await {
            let kind = self.rng.choice(&kinds).context("there are kinds")?;
            // The namespace controller does not run, so a namespace would stay Terminating.
            if kind.resource.kind == "Namespace" {
                continue;
            }
            if kind.api(&self.client).get_opt("churn").await?.is_some() {
                ignore_missing(kind.api(&self.client).delete("churn", &DeleteParams::default()).await)?;
            } else {
                kind.create(&self.client, "churn").await?;
            }
        }
        Ok(())
    }
}

fn ignore_missing<T>(answer: kube::Result<T>) -> Result<()> {
    match answer {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        other => Ok(other.map(drop)?),
    }
}

/// A kind that no controller of the test changes. Its objects are created with the fewest fields that the API server
/// accepts.
pub struct OtherKind {
    /// Name of the kind's watch in kordon.
    pub watch: &'static str,
    resource: ApiResource,
    namespaced: bool,
    rest: Value,
}

impl OtherKind {
    fn new<K: Resource<DynamicType = ()>>(watch: &'static str, namespaced: bool, rest: Value) -> Self {
        Self { watch, resource: ApiResource::erase::<K>(&()), namespaced, rest }
    }

    fn api(&self, client: &Client) -> Api<DynamicObject> {
        if self.namespaced {
            Api::namespaced_with(client.clone(), "default", &self.resource)
        } else {
            Api::all_with(client.clone(), &self.resource)
        }
    }

    /// Returns the number of the kind's objects in the API server, in all namespaces.
    pub async fn count(&self, client: &Client) -> Result<usize> {
        let all = Api::<DynamicObject>::all_with(client.clone(), &self.resource);
        Ok(all.list_metadata(&ListParams::default()).await?.items.len())
    }

    pub async fn create(&self, client: &Client, name: &str) -> Result<()> {
        let object = DynamicObject {
            types: None,
            metadata: ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() },
            data: self.rest.clone(),
        };
        let created = self.api(client).create(&PostParams::default(), &object).await;
        created.map(drop).with_context(|| format!("creating one of the {}", self.watch))
    }
}

/// Returns the kinds that kordon watches, except those that the test changes all the time.
pub fn other_kinds() -> Vec<OtherKind> {
    let labels = json!({ "app": "inert" });
    let template = json!({
        "metadata": { "labels": labels },
        "spec": { "containers": [{ "name": "c", "image": "img" }] },
    });
    let selected = |more: Value| {
        let mut spec = json!({ "selector": { "matchLabels": labels }, "template": template });
        merge(&mut spec, more);
        json!({ "spec": spec })
    };
    let mut job_template = template.clone();
    job_template["spec"]["restartPolicy"] = json!("Never");
    let storage = json!({ "requests": { "storage": "1Gi" } });
    vec![
        OtherKind::new::<Namespace>("namespaces", false, json!({})),
        OtherKind::new::<PriorityClass>("priorityclasses", false, json!({ "value": 1 })),
        OtherKind::new::<Service>("services", true, json!({ "spec": { "ports": [{ "port": 80 }] } })),
        OtherKind::new::<PersistentVolumeClaim>(
            "persistentvolumeclaims",
            true,
            json!({ "spec": { "accessModes": ["ReadWriteOnce"], "resources": storage } }),
        ),
        OtherKind::new::<PersistentVolume>(
            "persistentvolumes",
            false,
            json!({ "spec": { "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "1Gi" }, "hostPath": { "path": "/x" } } }),
        ),
        OtherKind::new::<StorageClass>("storageclasses", false, json!({ "provisioner": "test" })),
        OtherKind::new::<CSINode>("csinodes", false, json!({ "spec": { "drivers": [] } })),
        OtherKind::new::<StatefulSet>("statefulsets", true, selected(json!({ "serviceName": "s" }))),
        OtherKind::new::<DaemonSet>("daemonsets", true, selected(json!({}))),
        OtherKind::new::<ReplicaSet>("replicasets", true, selected(json!({ "replicas": 0 }))),
        OtherKind::new::<Deployment>("deployments", true, selected(json!({ "replicas": 0 }))),
        OtherKind::new::<PodDisruptionBudget>(
            "budgets",
            true,
            json!({ "spec": { "minAvailable": 1, "selector": { "matchLabels": labels } } }),
        ),
        OtherKind::new::<ReplicationController>(
            "replicationcontrollers",
            true,
            json!({ "spec": { "replicas": 0, "selector": labels, "template": template } }),
        ),
        OtherKind::new::<Job>("jobs", true, json!({ "spec": { "suspend": true, "template": job_template } })),
    ]
}

fn merge(into: &mut Value, from: Value) {
    if let (Some(into), Value::Object(from)) = (into.as_object_mut(), from) {
        into.extend(from);
    }
}

/// Returns the nodes in the API server: whether each is ready, and its number of pods.
pub async fn nodes(client: &Client) -> Result<Vec<(String, bool, usize)>> {
    let pods = Api::<Pod>::all(client.clone()).list(&ListParams::default()).await?.items;
    let nodes = Api::<Node>::all(client.clone()).list(&ListParams::default()).await?.items;
    let row = |node: &Node| {
        let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
        let is_ready = conditions
            .is_some_and(|all| all.iter().any(|each| each.type_ == "Ready" && each.status == "True"));
        let name = node.name_any();
        let is_here =
            |pod: &&Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) == Some(name.as_str());
        let here = pods.iter().filter(is_here).count();
        (name, is_ready, here)
    };
    Ok(nodes.iter().map(row).collect())
}

pub async fn count_pods(client: &Client) -> Result<usize> {
    Ok(Api::<Pod>::all(client.clone()).list_metadata(&ListParams::default()).await?.items.len())
}
