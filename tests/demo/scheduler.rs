//! The demo's scheduler: it places pods where plans predict, reports why a pod is unschedulable, and preempts.

use std::{collections::BTreeSet, process::Stdio, time::Duration};

use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kordon::{k8s::connect::Connection, run::demo_scheduler::PlacementScheduler};
use kordon_clock::Clock;
use kordon_demo::api::{Api, ApiOptions};
use kordon_time::Timestamp;
use kube::{
    Api as Objects, ResourceExt,
    api::{DeleteParams, ListParams},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Child,
};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::common::program::Shell;

#[tokio::test(flavor = "multi_thread")]
async fn the_replacements_of_a_drain_land_where_the_plan_predicted() {
    let demo = ServedDemo::new().await;
    // Ends the Jobs. Their pods come and go, and can decide which of two equally good nodes is chosen.
    demo.end_the_jobs().await;
    let node = "general-1a-02";
    let mut reported = Vec::new();
    for pod in demo.pods().await.iter().filter(|pod| on(pod) == Some(node)) {
        let Some(hash) = pod.labels().get("pod-template-hash") else { continue };
        let selector = format!("--pod-selector=pod-template-hash={hash}");
        let drain = ["drain", node, &selector, "--delete-emptydir-data", "--grace-period=1"];
        let plan = demo.run(&[&["plan"], &drain[..], &["-o", "json"]].concat()).await;
        let plan: Value = serde_json::from_str(&plan).expect("a plan");
        let best = best(&plan, &pod.name_any());
        let before: BTreeSet<_> = demo.pods().await.iter().filter_map(ResourceExt::uid).collect();
        demo.run(&[&drain[..], &["--enforce", "--yes"]].concat()).await;
        let landed = demo.until(|pods| {
            let new = |pod: &&Pod| {
                pod.uid().is_some_and(|uid| !before.contains(&uid))
                    && pod.labels().get("pod-template-hash") == Some(hash)
            };
            pods.iter().find(new).and_then(on).map(ToOwned::to_owned)
        });
        reported.push((pod.name_any(), best, landed.await));
    }
    assert!(reported.len() >= 5, "too little to compare: {reported:#?}");
    assert!(reported.iter().all(|(_, best, landed)| best.contains(landed)), "{reported:#?}");
}

/// Returns the equally good nodes, any of which may get the replacement of a pod.
fn best(plan: &Value, pod: &str) -> BTreeSet<String> {
    let pods = plan["pods"].as_array().expect("pods");
    let pod = pods.iter().find(|reported| reported["pod"] == pod).expect("the pod is in the plan");
    let ranking = pod["placement"]["ranking"].as_array().expect("a ranking");
    let best = ranking.iter().filter(|node| node["score"] == ranking[0]["score"]);
    best.map(|node| node["node"].as_str().expect("a name").to_owned()).collect()
}

fn on(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

/// `kordon demo` as a user starts it, serving its API without a dashboard.
struct ServedDemo {
    shell: Shell,
    kubeconfig: String,
    client: kube::Client,
    _demo: Child,
}

impl ServedDemo {
    async fn new() -> Self {
        let shell = Shell::new();
        let line = [
            "demo",
            "--serve-only",
            "--listen",
            "127.0.0.1:0",
            "--scenario",
            "healthy",
            "--pod-changes",
            "0",
        ];
        let mut demo = shell.command(&line).stdout(Stdio::piped()).spawn().expect("started");
        let mut said = BufReader::new(demo.stdout.take().expect("piped")).lines();
        let said = said.next_line().await.expect("read").expect("where it listens");
        let url = said.split_whitespace().nth(2).expect("kubectl --server URL").to_owned();
        let config = kube::Config::new(url.parse().expect("an address"));
        Self {
            kubeconfig: shell.kubeconfig(&url, json!({"token": "t"})),
            client: kube::Client::try_from(config).expect("a client"),
            shell,
            _demo: demo,
        }
    }

    /// Runs a command, which has to succeed. Returns its output.
    async fn run(&self, line: &[&str]) -> String {
        let output = self.shell.run(&[&["--kubeconfig", &self.kubeconfig], line].concat()).await;
        assert_eq!(output.code, 0, "{line:?}: {} {}", output.out, output.err);
        output.out
    }

    async fn pods(&self) -> Vec<Pod> {
        Objects::all(self.client.clone()).list(&ListParams::default()).await.expect("pods").items
    }

    async fn end_the_jobs(&self) {
        let jobs: Vec<Job> =
            Objects::all(self.client.clone()).list(&ListParams::default()).await.expect("jobs").items;
        for job in jobs {
            let of: Objects<Job> =
                Objects::namespaced(self.client.clone(), &job.namespace().unwrap_or_default());
            of.delete(&job.name_any(), &DeleteParams::default()).await.expect("deleted");
        }
        let is_of_job = |pod: &Pod| pod.owner_references().iter().any(|owner| owner.kind == "Job");
        for pod in self.pods().await.iter().filter(|pod| is_of_job(pod)) {
            let of: Objects<Pod> =
                Objects::namespaced(self.client.clone(), &pod.namespace().unwrap_or_default());
            // The pod may have ended already.
            let _ = of.delete(&pod.name_any(), &DeleteParams::default().grace_period(0)).await;
        }
        self.until(|pods| (!pods.iter().any(is_of_job)).then_some(())).await;
    }

    /// Polls the pods until `find` returns something.
    async fn until<T>(&self, find: impl Fn(&[Pod]) -> Option<T>) -> T {
        let looking = async {
            loop {
                if let Some(found) = find(&self.pods().await) {
                    return found;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(180), looking).await.expect("it comes true")
    }
}

#[tokio::test(start_paused = true)]
async fn an_unschedulable_pod_has_a_reason_and_is_placed_as_soon_as_it_fits() {
    let api = ScheduledApi::new(&["n1", "n2"]);
    api.create("a", 0, "900m", json!({})).await;
    api.create("b", 0, "900m", json!({})).await;
    api.until(async |api| api.node_of("a").await.is_some() && api.node_of("b").await.is_some()).await;
    assert_ne!(api.node_of("a").await, api.node_of("b").await);
    api.create("c", 0, "500m", json!({})).await;
    api.until(async |api| api.why_not("c").await.is_some()).await;
    let why = api.why_not("c").await.expect("it has been waited for");
    assert_eq!(why, "0/2 nodes are available: 2 insufficient cpu. Preemption: 2 no pods of lower priority.");
    let said = api.api.revision();
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(api.api.revision(), said, "it is said once");
    api.remove("b").await;
    api.until(async |api| api.node_of("c").await.is_some()).await;
}

#[tokio::test(start_paused = true)]
async fn pods_of_higher_priority_are_placed_first_and_preempt_others() {
    let api = ScheduledApi::new(&["n1"]);
    api.create("little", -1, "800m", json!({})).await;
    api.until(async |api| api.node_of("little").await.is_some()).await;
    api.create("great", 10, "800m", json!({})).await;
    api.until(async |api| api.pod("great").await["status"]["nominatedNodeName"] == "n1").await;
    let victim = api.pod("little").await;
    assert!(!victim["metadata"]["deletionTimestamp"].is_null(), "{victim}");
    let conditions = victim["status"]["conditions"].as_array().expect("conditions");
    assert!(
        conditions.iter().any(|condition| condition["reason"] == "PreemptionByScheduler"),
        "{conditions:?}"
    );
    // The room stays reserved for the pod that preempted others. Otherwise this smaller pod would fit once the victim
    // is gone.
    api.create("later", 0, "300m", json!({})).await;
    api.until(async |api| api.why_not("later").await.is_some()).await;
    api.remove("little").await;
    api.until(async |api| api.node_of("great").await.is_some()).await;
    assert_eq!(api.node_of("later").await, None);
}

#[tokio::test(start_paused = true)]
async fn pods_that_are_gated_or_of_another_scheduler_are_left_alone() {
    let api = ScheduledApi::new(&["n1"]);
    api.create("gated", 0, "100m", json!({"schedulingGates": [{"name": "example.com/wait"}]})).await;
    api.create("other", 0, "100m", json!({"schedulerName": "theirs"})).await;
    api.create("ours", 0, "100m", json!({})).await;
    api.until(async |api| api.node_of("ours").await.is_some()).await;
    for name in ["gated", "other"] {
        assert_eq!((api.node_of(name).await, api.why_not(name).await), (None, None), "{name}");
    }
}

/// An API with a few nodes of one CPU each, and the demo's scheduler.
struct ScheduledApi {
    api: Api,
    client: kube::Client,
    _stops: DropGuard,
}

const PODS: &str = "/api/v1/namespaces/default/pods";

impl ScheduledApi {
    fn new(nodes: &[&str]) -> Self {
        let clock = Clock::new(Timestamp::from_secs(1_767_225_600), 1.0);
        let api = Api::new(clock, ApiOptions::default());
        for name in nodes {
            let offers = json!({"cpu": "1", "memory": "4Gi", "pods": "10"});
            let node = json!({"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
                "spec": {}, "status": {"allocatable": offers, "capacity": offers,
                    "conditions": [{"type": "Ready", "status": "True"}]}});
            api.load("nodes", node);
        }
        let stop = CancellationToken::new();
        let connection = Connection::embedded(api.client_as("system:kordon-scheduler"), "here");
        tokio::spawn(PlacementScheduler { connection, clock }.run(stop.clone()));
        Self { client: api.client(), api, _stops: stop.drop_guard() }
    }

    async fn send(&self, method: &str, path: &str, body: &Value) -> Value {
        let request =
            http::Request::builder().method(method).uri(path).header("content-type", "application/json");
        let request = request.body(body.to_string().into_bytes()).expect("a request");
        self.client.request(request).await.expect("it is done")
    }

    async fn create(&self, name: &str, priority: i32, cpu: &str, spec: Value) {
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"priority": priority, "containers": [{"name": "main", "image": "demo/a:1",
                "resources": {"requests": {"cpu": cpu}}}]}});
        for (field, value) in spec.as_object().expect("fields") {
            pod["spec"][field] = value.clone();
        }
        self.send("POST", PODS, &pod).await;
    }

    async fn remove(&self, name: &str) {
        self.send("DELETE", &format!("{PODS}/{name}"), &json!({"gracePeriodSeconds": 0})).await;
    }

    async fn pod(&self, name: &str) -> Value {
        self.send("GET", &format!("{PODS}/{name}"), &Value::Null).await
    }

    async fn node_of(&self, name: &str) -> Option<String> {
        self.pod(name).await["spec"]["nodeName"].as_str().map(ToOwned::to_owned)
    }

    /// Returns the message on a pod that is unschedulable.
    async fn why_not(&self, name: &str) -> Option<String> {
        let pod = self.pod(name).await;
        let conditions = pod["status"]["conditions"].as_array()?;
        let scheduled = conditions.iter().find(|condition| condition["type"] == "PodScheduled")?;
        (scheduled["status"] == "False").then(|| scheduled["message"].as_str().unwrap_or_default().to_owned())
    }

    /// Waits until a condition holds, at most ten minutes of paused time.
    async fn until(&self, holds: impl AsyncFn(&Self) -> bool) {
        let waiting = async {
            while !holds(self).await {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(600), waiting).await.expect("it comes true");
    }
}
