//! What happens in a large cluster all the time: Leases are renewed, pods change and are replaced.

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
use kordon::clock::Clock;
use kube::Client;
use serde_json::{Value, json};
use tokio::time::{MissedTickBehavior, interval};

use super::objects::{LEADER, LargeCluster, PodHealth, node_name, pod_name, pod_namespace};

/// Requests in flight, as of this many clients.
const WORKERS: usize = 8;
/// Of this many changes of pods, one replaces the pod: three writes.
const CHANGES_PER_REPLACEMENT: usize = 10;
/// A prime: pods next to each other change at different times.
const STRIDE: usize = 7919;

/// Changes a cluster at given rates, over its API.
pub struct Churn {
    client: Client,
    cluster: LargeCluster,
    rates: ChurnRates,
    pub done: ChurnCounts,
    pods: Mutex<BTreeMap<usize, PodState>>,
}

#[derive(Clone, Copy, Debug)]
pub struct ChurnRates {
    pub renewals_per_second: u32,
    /// Writes to pods.
    pub changes_per_second: u32,
}

/// The writes so far.
#[derive(Debug, Default)]
pub struct ChurnCounts {
    pub renewals: AtomicU64,
    pub changes: AtomicU64,
    pub failures: AtomicU64,
}

#[derive(Clone, Copy)]
struct PodState {
    generation: usize,
    health: PodHealth,
}

impl Churn {
    pub fn new(client: Client, cluster: LargeCluster, rates: ChurnRates) -> Self {
        Self { client, cluster, rates, done: ChurnCounts::default(), pods: Mutex::default() }
    }

    /// Renews every Lease once, as all kubelets have within the last ten seconds.
    pub async fn renew_all(&self) {
        let all = (0..self.cluster.nodes).map(|node| self.renew(node));
        stream::iter(all).for_each_concurrent(WORKERS, |done| done).await;
        self.lead().await;
    }

    /// Runs without end.
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
            self.lead().await;
            1
        });
        join(join_all(workers), leading).await;
    }

    async fn renew(&self, node: usize) {
        let patch = json!({"spec": {"renewTime": Clock::system().now().to_micro_time()}});
        let path =
            format!("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{}", node_name(node));
        self.send(merge(path), &patch).await;
        self.done.renewals.fetch_add(1, Ordering::Relaxed);
    }

    async fn lead(&self) {
        let patch = json!({"spec": {"renewTime": Clock::system().now().to_micro_time()}});
        self.send(
            merge(format!("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{LEADER}")),
            &patch,
        )
        .await;
    }

    /// Returns the number of writes.
    async fn change(&self, number: usize) -> usize {
        let index = number * STRIDE % self.cluster.pods.max(1);
        let good = PodState { generation: 0, health: PodHealth::GOOD };
        let mut state = self.pods.lock().expect("no panic").get(&index).copied().unwrap_or(good);
        let writes = if (number / WORKERS) % CHANGES_PER_REPLACEMENT == CHANGES_PER_REPLACEMENT - 1 {
            self.delete(index, state.generation).await;
            state = PodState { generation: state.generation + 1, health: PodHealth::GOOD };
            self.create(index, state.generation).await;
            self.report(index, state).await;
            3
        } else {
            let PodHealth { ready, restarts } = state.health;
            state.health = PodHealth { ready: !ready, restarts: restarts + usize::from(!ready) };
            self.report(index, state).await;
            1
        };
        self.pods.lock().expect("no panic").insert(index, state);
        self.done.changes.fetch_add(writes as u64, Ordering::Relaxed);
        writes
    }

    async fn report(&self, index: usize, state: PodState) {
        let cluster = LargeCluster { now: Clock::system().now(), ..self.cluster };
        let status = cluster.pod_status(index, state.health);
        self.send(merge(format!("{}/status", pod_path(index, state.generation))), &json!({"status": status}))
            .await;
    }

    async fn delete(&self, index: usize, generation: usize) {
        let request = Request::delete(pod_path(index, generation)).header("content-type", "application/json");
        self.send(request, &json!({"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}))
            .await;
    }

    async fn create(&self, index: usize, generation: usize) {
        let mut pod = self.cluster.pod(index, generation, PodHealth::GOOD);
        if let Some(metadata) = pod["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        let request = Request::post(pods_path(index)).header("content-type", "application/json");
        self.send(request, &pod).await;
    }

    async fn send(&self, request: Builder, body: &Value) {
        let request = request
            // The answers are not read: short ones will do.
            .header("accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json")
            .body(body.to_string().into_bytes())
            .expect("a path");
        if let Err(error) = self.client.request_text(request).await
            && self.done.failures.fetch_add(1, Ordering::Relaxed) == 0
        {
            eprintln!("a write failed: {error}");
        }
    }
}

fn merge(path: String) -> Builder {
    Request::patch(path).header("content-type", "application/merge-patch+json")
}

fn pods_path(index: usize) -> String {
    format!("/api/v1/namespaces/{}/pods", pod_namespace(index))
}

fn pod_path(index: usize, generation: usize) -> String {
    format!("{}/{}", pods_path(index), pod_name(index, generation))
}

/// Does something this many times a second, without end; `act` returns how often it has done it.
async fn each(per_second: f64, mut act: impl AsyncFnMut(usize) -> usize) {
    if per_second <= 0.0 {
        return std::future::pending().await;
    }
    // Timers are no finer than a millisecond: rounds, each of as many as are due.
    let mut round = interval(Duration::from_millis(10));
    round.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut begun = round.tick().await;
    let (mut done, mut number) = (0, 0);
    loop {
        let now = round.tick().await;
        let due = now.duration_since(begun).as_secs_f64() * per_second;
        // After a pause nothing is made up for.
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
