//! What happens to the embedded cluster after its beginning: a scenario's timeline, and its ordinary bustle.

use http::Request;
use kube::Client;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    chance::Chance,
    kubelets::{self, Fate, Level},
    objects::Key,
    seed::nodes::Machine,
    troubles::Troubles,
    writer::{Patch, Refused, Writer, path},
};
use crate::{clock::Clock, time::Span};

/// Something that happens, so long after the beginning.
#[derive(Clone, Debug)]
pub struct Step {
    pub after: Span,
    pub what: Happening,
}

/// What can happen.
#[derive(Clone, Debug)]
pub enum Happening {
    /// Something happens to a node by itself.
    Fate(String, Fate),
    /// An operator drains a node, reboots it with this kernel, and lets it work again.
    Upgrade { node: String, kernel: &'static str },
    /// So many pods of a workload are replaced, one after the other.
    Rollout { pods: usize },
}

/// The kernel that the rolling upgrade brings.
const NEW_KERNEL: &str = "6.8.0-58-generic";
/// How long an operator waits for a drain, and for a node to come up.
const PATIENCE: Span = Span::from_secs(180);

/// A scenario's timeline.
pub type Script = fn(&[Machine]) -> Vec<Step>;

pub fn nothing(_: &[Machine]) -> Vec<Step> {
    Vec::new()
}

/// The tour: a rollout, a node short of processes for a while, a second node lost, the first one back.
pub fn tour(machines: &[Machine]) -> Vec<Step> {
    let workers = workers(machines);
    let mut steps = vec![Step { after: secs(3), what: Happening::Rollout { pods: 8 } }];
    if let [.., hurt, lost] = workers.as_slice() {
        steps.push(fate(12, hurt, Fate::Pressure("PIDPressure", Level::High)));
        steps.push(fate(90, hurt, Fate::Pressure("PIDPressure", Level::Normal)));
        steps.push(fate(150, lost, Fate::FallsSilent));
        steps.push(fate(420, lost, Fate::ComesBack));
    }
    steps.push(Step { after: secs(200), what: Happening::Rollout { pods: 8 } });
    steps
}

pub fn silent_node(machines: &[Machine]) -> Vec<Step> {
    workers(machines).first().map(|node| fate(5, node, Fate::FallsSilent)).into_iter().collect()
}

/// One node comes and goes each minute and a half; another loses its container runtime for four minutes.
pub fn flapping(machines: &[Machine]) -> Vec<Step> {
    let workers = workers(machines);
    let [flaps, broken, ..] = workers.as_slice() else { return Vec::new() };
    let mut steps = vec![fate(20, broken, Fate::LosesRuntime), fate(260, broken, Fate::RegainsRuntime)];
    for round in 0..20 {
        steps.push(fate(5 + 90 * round, flaps, Fate::FallsSilent));
        steps.push(fate(70 + 90 * round, flaps, Fate::ComesBack));
    }
    steps.sort_by_key(|step| step.after);
    steps
}

pub fn zone_outage(machines: &[Machine]) -> Vec<Step> {
    let zone = || machines.iter().filter(|machine| machine.zone == 1);
    let fall = zone().map(|machine| fate(10, &machine.name, Fate::FallsSilent));
    let rise = zone().map(|machine| fate(610, &machine.name, Fate::ComesBack));
    fall.chain(rise).collect()
}

/// Two thirds of a large zone, a node every other second.
pub fn partial_disruption(machines: &[Machine]) -> Vec<Step> {
    let zone: Vec<_> =
        machines.iter().filter(|machine| machine.zone == 0 && !machine.is_control_plane()).collect();
    let lost = zone.iter().take(zone.len() * 2 / 3).zip(0..);
    lost.map(|(machine, place)| fate(5 + 2 * place, &machine.name, Fate::FallsSilent)).collect()
}

pub fn full_outage(machines: &[Machine]) -> Vec<Step> {
    let fall = machines.iter().map(|machine| fate(10, &machine.name, Fate::FallsSilent));
    let rise = machines
        .iter()
        .zip(0..)
        .map(|(machine, place)| fate(240 + place / 4, &machine.name, Fate::ComesBack));
    fall.chain(rise).collect()
}

pub fn kernel_upgrade(machines: &[Machine]) -> Vec<Step> {
    let upgrade = |node| Step { after: secs(5), what: Happening::Upgrade { node, kernel: NEW_KERNEL } };
    workers(machines).into_iter().map(upgrade).collect()
}

fn secs(secs: i64) -> Span {
    Span::from_secs(secs)
}

fn fate(after: i64, node: &str, fate: Fate) -> Step {
    Step { after: secs(after), what: Happening::Fate(node.to_owned(), fate) }
}

/// The nodes that run the users' pods and have no past of their own.
fn workers(machines: &[Machine]) -> Vec<String> {
    let is_well = |machine: &&Machine| !machine.is_control_plane() && machine.past == super::seed::Past::Well;
    machines.iter().filter(is_well).map(|machine| machine.name.clone()).collect()
}

/// Lets things happen.
pub struct Incidents {
    pub clock: Clock,
    pub writer: Writer,
    pub chance: Chance,
    pub troubles: Troubles,
    pub kubelets: mpsc::Sender<kubelets::Message>,
}

impl Incidents {
    /// Plays a script, in its order; a step that takes time delays those after it.
    pub async fn play(self, script: Vec<Step>, cancel: CancellationToken) {
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

    async fn happen(&self, what: Happening) {
        match what {
            Happening::Fate(node, fate) => self.strike(node, fate).await,
            Happening::Upgrade { node, kernel } => {
                if let Err(refused) = self.upgrade(&node, kernel).await {
                    self.troubles.tell(format!("upgrade of {node}"), &refused);
                }
            }
            Happening::Rollout { pods } => {
                if let Err(refused) = self.roll_out(pods).await {
                    self.troubles.tell("rollout", &refused);
                }
            }
        }
    }

    async fn strike(&self, node: String, fate: Fate) {
        // Kubelets that have stopped are past all fate.
        let _ = self.kubelets.send(kubelets::Message::Fate(node, fate)).await;
    }

    async fn upgrade(&self, node: &str, kernel: &str) -> Result<(), Refused> {
        self.cordon(node, true).await?;
        let end = self.clock.now() + PATIENCE;
        while self.clock.now() < end && self.evict_from(node).await? > 0 {
            self.clock.sleep(secs(3)).await;
        }
        self.strike(node.to_owned(), Fate::Reboots { down: secs(15), kernel: kernel.to_owned() }).await;
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
        let leaving: Vec<&Value> = pods.iter().filter(|pod| drains(pod)).collect();
        for pod in leaving.iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_null()) {
            let key = key_of(pod);
            let eviction = json!({
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": {"name": key.name, "namespace": key.namespace},
            });
            match self.writer.create::<IgnoredAny>(&format!("{}/eviction", path::pod(&key)), &eviction).await
            {
                Ok(_) | Err(Refused::NotNow(_) | Refused::Gone) => {}
                Err(refused) => return Err(refused),
            }
        }
        Ok(leaving.len())
    }

    /// Replaces pods of one ReplicaSet as a rollout does: one goes, the next one comes.
    async fn roll_out(&self, pods: usize) -> Result<(), Refused> {
        let all = list_pods(&self.writer.client(), "limit=500").await?;
        let owned = |pod: &&Value| {
            owner_kind(pod) == Some("ReplicaSet") && pod["metadata"]["deletionTimestamp"].is_null()
        };
        let mut candidates: Vec<&Value> = all.iter().filter(owned).collect();
        self.chance.about(&["rollout", &self.clock.now().to_time()]).shuffle(&mut candidates);
        for pod in candidates.into_iter().take(pods) {
            let uid = pod["metadata"]["uid"].as_str().unwrap_or_default();
            match self.writer.delete(&path::pod(&key_of(pod)), uid, None).await {
                Ok(()) | Err(Refused::Gone | Refused::Conflict(_)) => {}
                Err(refused) => return Err(refused),
            }
            self.clock.sleep(secs(2)).await;
        }
        Ok(())
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
                    Ok(pods) => known = pods.iter().map(key_of).collect(),
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

async fn list_pods(client: &Client, query: &str) -> Result<Vec<Value>, Refused> {
    let request =
        Request::get(format!("/api/v1/pods?{query}")).body(Vec::new()).map_err(kube::Error::HttpError)?;
    let mut list: Value = client.request(request).await?;
    Ok(match list["items"].take() {
        Value::Array(items) => items,
        _ => Vec::new(),
    })
}

fn key_of(pod: &Value) -> Key {
    let text = |field: &str| pod["metadata"][field].as_str().unwrap_or_default().to_owned();
    Key { namespace: text("namespace"), name: text("name") }
}

fn owner_kind(pod: &Value) -> Option<&str> {
    let owners = pod["metadata"]["ownerReferences"].as_array()?;
    owners.iter().find(|owner| owner["controller"] == true)?["kind"].as_str()
}

/// Whether a drain evicts it: not what belongs to a DaemonSet or to the node itself, nor what has ended.
fn drains(pod: &Value) -> bool {
    let ended = matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    !ended && !matches!(owner_kind(pod), Some("DaemonSet" | "Node"))
}
