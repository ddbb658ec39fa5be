//! The steady changes of a large cluster: Leases are renewed, pods change and are replaced.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures::{
    StreamExt,
    future::{join, join_all},
    stream,
};
use http::{Request, request::Builder};
use kordon_clock::Clock;
use kube::Client;
use serde_json::json;
use tokio::time::{MissedTickBehavior, interval};

use super::objects::{LEADER, LargeCluster, PodHealth, node_name, pod_name, pod_namespace};

/// Requests in flight at once, as from this many clients.
const WORKERS: usize = 8;
/// One in this many changes of pods replaces the pod, which takes three writes.
const CHANGES_PER_REPLACEMENT: usize = 10;
/// Distance between the pods of successive changes. It is a prime, so that neighbouring pods change at different times.
const STRIDE: usize = 7919;

/// Changes a cluster at given rates.
pub struct Churn<T> {
    target: T,
    cluster: LargeCluster,
    rates: ChurnRates,
    pub done: ChurnCounts,
    pods: Mutex<BTreeMap<usize, ChangedPod>>,
}

/// The destination of the writes.
pub trait WriteTarget {
    /// Makes one write to a cluster whose `now` is the present time.
    async fn write(&self, cluster: LargeCluster, write: Write) -> anyhow::Result<()>;
}

#[derive(Clone, Copy, Debug)]
pub enum Write {
    /// Renews the Lease of a node.
    Renew(usize),
    /// Renews the Lease of kube-controller-manager.
    Lead,
    Status(ChangedPod),
    Delete(ChangedPod),
    Create(ChangedPod),
}

/// A pod that changes. Its generation is the number of times it was replaced.
#[derive(Clone, Copy, Debug)]
pub struct ChangedPod {
    pub index: usize,
    pub generation: usize,
    pub health: PodHealth,
}

/// An API server, written to through its API.
pub struct ApiServer(pub Client);

#[derive(Clone, Copy, Debug)]
pub struct ChurnRates {
    pub renewals_per_second: u32,
    /// Writes to pods per second.
    pub changes_per_second: u32,
}

/// Counts of the writes so far.
#[derive(Debug, Default)]
pub struct ChurnCounts {
    pub renewals: AtomicU64,
    pub changes: AtomicU64,
    pub failures: AtomicU64,
}

impl<T: WriteTarget> Churn<T> {
    pub fn new(target: T, cluster: LargeCluster, rates: ChurnRates) -> Self {
        Self { target, cluster, rates, done: ChurnCounts::default(), pods: Mutex::default() }
    }

    /// Renews every Lease once, as if all kubelets had done so within the last ten seconds.
    pub async fn renew_all(&self) {
        let all = (0..self.cluster.nodes).map(|node| self.renew(node));
        stream::iter(all).for_each_concurrent(WORKERS, |done| done).await;
        self.write(Write::Lead).await;
    }

    /// Changes the cluster forever.
    pub async fn run(&self) {
        let share = |rate: u32| f64::from(rate) / WORKERS as f64;
        let (renewals, changes) =
            (share(self.rates.renewals_per_second), share(self.rates.changes_per_second));
        let nodes = self.cluster.nodes.max(1);
        let workers = (0..WORKERS).map(async |worker| {
            let renewing = each(renewals, async |count| {
                self.renew((count * WORKERS + worker) % nodes).await;
                1
            });
            let changing = each(changes, async |count| self.change(count * WORKERS + worker).await);
            join(renewing, changing).await;
        });
        let leading = each(0.5, async |_| {
            self.write(Write::Lead).await;
            1
        });
        join(join_all(workers), leading).await;
    }

    async fn renew(&self, node: usize) {
        self.write(Write::Renew(node)).await;
        self.done.renewals.fetch_add(1, Ordering::Relaxed);
    }

    /// Changes or replaces a pod. Returns the number of writes.
    async fn change(&self, number: usize) -> usize {
        let index = number * STRIDE % self.cluster.pods.max(1);
        let good = ChangedPod { index, generation: 0, health: PodHealth::GOOD };
        let mut pod = self.pods.lock().expect("no panic").get(&index).copied().unwrap_or(good);
        let writes = if (number / WORKERS) % CHANGES_PER_REPLACEMENT == CHANGES_PER_REPLACEMENT - 1 {
            self.write(Write::Delete(pod)).await;
            pod = ChangedPod { generation: pod.generation + 1, ..good };
            self.write(Write::Create(pod)).await;
            self.write(Write::Status(pod)).await;
            3
        } else {
            let PodHealth { ready, restarts } = pod.health;
            pod.health = PodHealth { ready: !ready, restarts: restarts + usize::from(!ready) };
            self.write(Write::Status(pod)).await;
            1
        };
        self.pods.lock().expect("no panic").insert(index, pod);
        self.done.changes.fetch_add(writes as u64, Ordering::Relaxed);
        writes
    }

    async fn write(&self, write: Write) {
        let cluster = LargeCluster { now: Clock::system().now(), ..self.cluster };
        if let Err(error) = self.target.write(cluster, write).await
            && self.done.failures.fetch_add(1, Ordering::Relaxed) == 0
        {
            eprintln!("a write failed: {error}");
        }
    }
}

impl WriteTarget for ApiServer {
    async fn write(&self, cluster: LargeCluster, write: Write) -> anyhow::Result<()> {
        let renewed = || json!({"spec": {"renewTime": cluster.now.to_micro_time()}});
        let (request, body) = match write {
            Write::Renew(node) => (merge(lease_path("kube-node-lease", &node_name(node))), renewed()),
            Write::Lead => (merge(lease_path("kube-system", LEADER)), renewed()),
            Write::Status(pod) => {
                let status = cluster.pod_status(pod.index, pod.health);
                (merge(format!("{}/status", pod_path(pod))), json!({"status": status}))
            }
            Write::Delete(pod) => {
                let request = Request::delete(pod_path(pod)).header("content-type", "application/json");
                (request, json!({"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}))
            }
            Write::Create(pod) => {
                let mut object = cluster.pod(pod.index, pod.generation, pod.health);
                if let Some(metadata) = object["metadata"].as_object_mut() {
                    metadata.remove("managedFields");
                }
                let request = Request::post(pods_path(pod.index)).header("content-type", "application/json");
                (request, object)
            }
        };
        let request = request
            // The responses are not used, so short ones are requested.
            .header("accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json")
            .body(body.to_string().into_bytes())?;
        self.0.request_text(request).await?;
        Ok(())
    }
}

fn merge(path: String) -> Builder {
    Request::patch(path).header("content-type", "application/merge-patch+json")
}

fn pods_path(index: usize) -> String {
    format!("/api/v1/namespaces/{}/pods", pod_namespace(index))
}

fn pod_path(pod: ChangedPod) -> String {
    format!("{}/{}", pods_path(pod.index), pod_name(pod.index, pod.generation))
}

fn lease_path(namespace: &str, name: &str) -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}")
}

/// Calls `act` forever, so that it reaches this rate; `act` returns how many times it has acted.
async fn each(per_second: f64, mut act: impl AsyncFnMut(usize) -> usize) {
    if per_second <= 0.0 {
        return std::future::pending().await;
    }
    // Timers have a resolution of a millisecond; each round does all calls that are due.
    let mut round = interval(Duration::from_millis(10));
    round.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut begun = round.tick().await;
    let (mut done, mut number) = (0, 0);
    loop {
        let now = round.tick().await;
        let due = now.duration_since(begun).as_secs_f64() * per_second;
        // Calls missed during a pause are not made up for.
        if due > done as f64 + per_second.max(1.0) {
            (begun, done) = (now, 0);
            continue;
        }
        while (done as f64) < due.floor() {
            done += act(number).await;
            number += 1;
        }
    }
}
