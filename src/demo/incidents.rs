//! What happens to the embedded cluster after its beginning: a scenario's timeline, and its ordinary bustle.

use http::Request;
use kube::Client;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    chance::Chance,
    kubelets::{self, LeaseLevel, NodeFault},
    objects::{Key, Object, Pod, WorkloadKind},
    seed::nodes::Machine,
    troubles::Troubles,
    writer::{Patch, Refused, Writer, path},
};
use crate::{clock::Clock, time::Span};

/// Something that happens, so long after the beginning.
#[derive(Clone, Debug)]
pub struct ScriptStep {
    pub after: Span,
    pub what: DemoEvent,
}

/// What can happen.
#[derive(Clone, Debug)]
pub enum DemoEvent {
    /// Something happens to a node by itself.
    Fate(String, NodeFault),
    /// An operator drains a node, reboots it with this kernel, and lets it work again.
    Upgrade { node: String, kernel: &'static str },
    /// A Deployment gets new pods, a few at a time, as by `kubectl rollout restart`.
    Rollout { namespace: &'static str, deployment: &'static str },
}

/// The kernel that the rolling upgrade brings.
const NEW_KERNEL: &str = "6.1.0-41-cloud-amd64";
/// How long an operator waits for a drain, and for a node to come up.
const PATIENCE: Span = Span::from_secs(180);

/// A scenario's timeline.
pub type Script = fn(&[Machine]) -> Vec<ScriptStep>;

pub fn nothing(_: &[Machine]) -> Vec<ScriptStep> {
    Vec::new()
}

/// The tour, for two hours: a rollout every 50 seconds, pressure that comes and goes, and every ten minutes a node that
/// falls silent and comes back five minutes later.
pub fn tour(machines: &[Machine]) -> Vec<ScriptStep> {
    let workers = workers(machines);
    let node = |turn: usize| workers.get(turn * 7 % workers.len().max(1));
    let mut steps = Vec::new();
    for (turn, (namespace, deployment)) in ROLLED_OUT.iter().cycle().take(144).enumerate() {
        let what = DemoEvent::Rollout { namespace, deployment };
        steps.push(ScriptStep { after: secs(3 + 50 * turn as i64), what });
    }
    for turn in 0..30 {
        let begin = 4 + 240 * turn as i64;
        let kind = ["DiskPressure", "PIDPressure", "MemoryPressure"][turn % 3];
        if let Some(node) = node(turn + 1) {
            steps.push(fate(begin, node, NodeFault::Pressure(kind, LeaseLevel::High)));
            steps.push(fate(begin + 100, node, NodeFault::Pressure(kind, LeaseLevel::Normal)));
        }
    }
    for turn in 0..12 {
        let begin = 150 + 600 * turn as i64;
        if let Some(node) = node(turn + 4) {
            steps.push(fate(begin, node, NodeFault::FallsSilent));
            steps.push(fate(begin + 300, node, NodeFault::ComesBack));
        }
    }
    steps.sort_by_key(|step| step.after);
    steps
}

/// Deployments that the tour rolls out, in turn.
const ROLLED_OUT: [(&str, &str); 6] = [
    ("shop", "frontend"),
    ("search", "query-api"),
    ("shop", "cart"),
    ("payments", "fraud-scoring"),
    ("shop", "catalog"),
    ("batch", "image-resize"),
];

pub fn silent_node(machines: &[Machine]) -> Vec<ScriptStep> {
    workers(machines).first().map(|node| fate(5, node, NodeFault::FallsSilent)).into_iter().collect()
}

/// One node comes and goes each minute and a half; another loses its container runtime for four minutes.
pub fn flapping(machines: &[Machine]) -> Vec<ScriptStep> {
    let workers = workers(machines);
    let [flaps, broken, ..] = workers.as_slice() else { return Vec::new() };
    let mut steps =
        vec![fate(20, broken, NodeFault::LosesRuntime), fate(260, broken, NodeFault::RegainsRuntime)];
    for round in 0..20 {
        steps.push(fate(5 + 90 * round, flaps, NodeFault::FallsSilent));
        steps.push(fate(70 + 90 * round, flaps, NodeFault::ComesBack));
    }
    steps.sort_by_key(|step| step.after);
    steps
}

pub fn zone_outage(machines: &[Machine]) -> Vec<ScriptStep> {
    let zone = || machines.iter().filter(|machine| machine.zone == 1);
    let fall = zone().map(|machine| fate(10, &machine.name, NodeFault::FallsSilent));
    let rise = zone().map(|machine| fate(610, &machine.name, NodeFault::ComesBack));
    fall.chain(rise).collect()
}

/// Two thirds of a large zone, a node every other second.
pub fn partial_disruption(machines: &[Machine]) -> Vec<ScriptStep> {
    let zone: Vec<_> =
        machines.iter().filter(|machine| machine.zone == 0 && !machine.is_control_plane()).collect();
    let lost = zone.iter().take(zone.len() * 2 / 3).zip(0..);
    lost.map(|(machine, place)| fate(5 + 2 * place, &machine.name, NodeFault::FallsSilent)).collect()
}

pub fn full_outage(machines: &[Machine]) -> Vec<ScriptStep> {
    let fall = machines.iter().map(|machine| fate(10, &machine.name, NodeFault::FallsSilent));
    let rise = machines
        .iter()
        .zip(0..)
        .map(|(machine, place)| fate(240 + place / 4, &machine.name, NodeFault::ComesBack));
    fall.chain(rise).collect()
}

pub fn kernel_upgrade(machines: &[Machine]) -> Vec<ScriptStep> {
    let upgrade = |node| ScriptStep { after: secs(5), what: DemoEvent::Upgrade { node, kernel: NEW_KERNEL } };
    workers(machines).into_iter().map(upgrade).collect()
}

fn secs(secs: i64) -> Span {
    Span::from_secs(secs)
}

fn fate(after: i64, node: &str, fate: NodeFault) -> ScriptStep {
    ScriptStep { after: secs(after), what: DemoEvent::Fate(node.to_owned(), fate) }
}

/// The nodes that run the users' pods and have no past of their own.
fn workers(machines: &[Machine]) -> Vec<String> {
    let is_well =
        |machine: &&Machine| !machine.is_control_plane() && machine.past == super::seed::MachineHistory::Well;
    machines.iter().filter(is_well).map(|machine| machine.name.clone()).collect()
}

/// Lets things happen.
pub struct Incidents {
    pub clock: Clock,
    pub writer: Writer,
    pub chance: Chance,
    pub troubles: Troubles,
    pub kubelets: mpsc::Sender<kubelets::KubeletMessage>,
}

impl Incidents {
    /// Plays a script, in its order; a step that takes time delays those after it.
    pub async fn play(self, script: Vec<ScriptStep>, cancel: CancellationToken) {
        let begun = self.clock.now();
        for step in script {
            tokio::select! {
                () = cancel.cancelled() => return,
                () = self.clock.sleep_until(begun + step.after) => {}
            }
            tokio::select! {
                () = cancel.cancelled() => return,
                () = self.happen(step.what) => {}
            }
        }
    }

    async fn happen(&self, what: DemoEvent) {
        match what {
            DemoEvent::Fate(node, fate) => self.strike(node, fate).await,
            DemoEvent::Upgrade { node, kernel } => {
                if let Err(refused) = self.upgrade(&node, kernel).await {
                    self.troubles.tell(format!("upgrade of {node}"), &refused);
                }
            }
            DemoEvent::Rollout { namespace, deployment } => {
                match self.roll_out(namespace, deployment).await {
                    // A small cluster has not got every Deployment.
                    Ok(()) | Err(Refused::Gone) => {}
                    Err(refused) => {
                        self.troubles.tell(format!("rollout of {namespace}/{deployment}"), &refused)
                    }
                }
            }
        }
    }

    async fn strike(&self, node: String, fate: NodeFault) {
        // Kubelets that have stopped are past all fate.
        let _ = self.kubelets.send(kubelets::KubeletMessage::Fate(node, fate)).await;
    }

    async fn upgrade(&self, node: &str, kernel: &str) -> Result<(), Refused> {
        self.cordon(node, true).await?;
        let end = self.clock.now() + PATIENCE;
        while self.clock.now() < end && self.evict_from(node).await? > 0 {
            self.clock.sleep(secs(3)).await;
        }
        self.delete_from(node).await?;
        self.strike(node.to_owned(), NodeFault::Reboots { down: secs(15), kernel: kernel.to_owned() }).await;
        self.clock.sleep(secs(25)).await;
        self.cordon(node, false).await?;
        self.clock.sleep(secs(5)).await;
        Ok(())
    }

    async fn cordon(&self, node: &str, on: bool) -> Result<(), Refused> {
        let patch = json!({"spec": {"unschedulable": on.then_some(true)}});
        self.writer.patch::<IgnoredAny>(&path::node(node), Patch::Merge, &patch).await.map(drop)
    }

    /// Asks for the eviction of every pod that a drain would evict; tells how many are still there.
    async fn evict_from(&self, node: &str) -> Result<usize, Refused> {
        let pods = list_pods(&self.writer.client(), &format!("fieldSelector=spec.nodeName%3D{node}")).await?;
        let leaving: Vec<&Pod> = pods.iter().filter(|pod| drains(pod)).collect();
        for pod in leaving.iter().filter(|pod| !pod.is_deleted()) {
            let key = Key::of(*pod);
            let eviction = json!({
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": {"name": key.name, "namespace": key.namespace},
                "deleteOptions": {"preconditions": {"uid": pod.uid()}},
            });
            let path = format!("{}/eviction", path::pod(&key));
            match self.writer.create::<IgnoredAny>(&path, &eviction).await {
                // A budget may give way later; a pod that is gone or another by now is no longer in the way.
                Ok(_) | Err(Refused::NotNow(_) | Refused::Gone | Refused::Conflict(_)) => {}
                Err(refused) => return Err(refused),
            }
        }
        Ok(leaving.len())
    }

    /// What no budget let go, the operator deletes in the end.
    async fn delete_from(&self, node: &str) -> Result<(), Refused> {
        let pods = list_pods(&self.writer.client(), &format!("fieldSelector=spec.nodeName%3D{node}")).await?;
        for pod in pods.iter().filter(|pod| drains(pod) && !pod.is_deleted()) {
            match self.writer.delete(&path::pod(&Key::of(pod)), pod.uid(), None).await {
                Ok(()) | Err(Refused::Gone | Refused::Conflict(_)) => {}
                Err(refused) => return Err(refused),
            }
        }
        Ok(())
    }

    async fn roll_out(&self, namespace: &str, deployment: &str) -> Result<(), Refused> {
        let key = Key { namespace: namespace.to_owned(), name: deployment.to_owned() };
        let restarted = json!({"kubectl.kubernetes.io/restartedAt": self.clock.now().to_time()});
        let patch = json!({"spec": {"template": {"metadata": {"annotations": restarted}}}});
        let path = path::workload(WorkloadKind::Deployment, &key);
        self.writer.patch::<IgnoredAny>(&path, Patch::Merge, &patch).await.map(drop)
    }

    /// The bustle of every day: so many changes of pods a second, most of them of no consequence.
    pub async fn bustle(self, a_second: f64, cancel: CancellationToken) {
        if a_second <= 0.0 {
            return;
        }
        let pause = Span::from_secs_f64(1.0 / a_second);
        let mut known: Vec<Key> = Vec::new();
        let mut next = self.clock.now();
        for count in 0_u64.. {
            next = (next + pause).max(self.clock.now() - Span::from_secs(1));
            tokio::select! {
                () = cancel.cancelled() => return,
                () = self.clock.sleep_until(next) => {}
            }
            let mut rng = self.chance.about(&["bustle", &count.to_string()]);
            if count % 5000 == 0 {
                match list_pods(&self.writer.client(), "limit=5000&fieldSelector=status.phase%3DRunning")
                    .await
                {
                    Ok(pods) => known = pods.iter().map(Key::of).collect(),
                    Err(refused) => self.troubles.tell("bustle", &refused),
                }
            }
            let Some(pod) = rng.choice(&known) else { continue };
            let patch = json!({"metadata": {"annotations": {"demo.kordon/touched": count.to_string()}}});
            match self.writer.patch::<IgnoredAny>(&path::pod(pod), Patch::Merge, &patch).await {
                Ok(_) | Err(Refused::Gone | Refused::Conflict(_)) => {}
                Err(refused) => self.troubles.tell("bustle", &refused),
            }
        }
    }
}

async fn list_pods(client: &Client, query: &str) -> Result<Vec<Pod>, Refused> {
    #[derive(Deserialize)]
    struct List {
        items: Vec<Pod>,
    }
    let request =
        Request::get(format!("/api/v1/pods?{query}")).body(Vec::new()).map_err(kube::Error::HttpError)?;
    let list: List = client.request(request).await?;
    Ok(list.items)
}

/// Whether a drain evicts it: not what belongs to a DaemonSet or to the node itself, nor what has ended.
fn drains(pod: &Pod) -> bool {
    let stays = pod.controller().is_some_and(|owner| matches!(owner.kind.as_str(), "DaemonSet" | "Node"));
    !pod.is_finished() && !stays
}
