//! The lifecycle of a pod on its node: created, running, ready, stopped.

use serde_json::{Value, json};

use crate::{
    objects::{Object, Pod},
    random::RandomSource,
    seed::pods::RUN_SECONDS,
};
use kordon_time::{Span, Timestamp};

/// The next step of a pod, with its timer.
#[derive(Clone, Debug)]
pub struct PendingStep {
    /// The uid of the pod.
    pub uid: String,
    pub step: ContainerStep,
    /// The number of the timer that is set for the step.
    pub number: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContainerStep {
    /// The kubelet creates the pod's sandbox and pulls images (ContainerCreating).
    Create,
    /// The kubelet starts the containers, which are not ready yet.
    Run,
    /// The pod becomes ready: its readiness probes succeed. A running pod that the controller has marked as not ready
    /// takes this step again.
    Ready,
    /// A container that was killed is restarted.
    Restart,
    /// The containers exit on their own.
    Finish,
    /// The pod was deleted with this grace period. Its containers exit, and then its object is removed.
    Stop { grace_seconds: i64 },
}

/// Returns the next step of a pod and the time until this step. None if nothing happens until the pod changes.
pub fn next_step(pod: &Pod, random: RandomSource, now: Timestamp) -> Option<(ContainerStep, Span)> {
    let between = |what: &str, low: f64, high: f64| {
        let share = random.rng(&[what, pod.uid()]).f64();
        Span::from_secs_f64(low + (high - low) * share)
    };
    if pod.is_deleted() {
        let grace_seconds = pod.metadata.deletion_grace_period_seconds.unwrap_or(30);
        if grace_seconds == 0 {
            return None; // The pod has stopped, and only a finalizer keeps the object.
        }
        return Some((ContainerStep::Stop { grace_seconds }, stopping_time(pod, grace_seconds, random)));
    }
    match pod.status.phase.as_str() {
        "" | "Pending" if pod.status.container_statuses.is_empty() => {
            Some((ContainerStep::Create, between("create", 0.1, 0.5)))
        }
        "" | "Pending" => Some((ContainerStep::Run, between("run", 0.6, 2.2))),
        "Running" if waits_to_restart(pod) => Some((ContainerStep::Restart, back_off(pod))),
        "Running" if !pod.is_ready() => Some((ContainerStep::Ready, between("ready", 0.4, 1.4))),
        "Running" => {
            let seconds: f64 = pod.annotation(RUN_SECONDS)?.parse().ok()?;
            let started = Timestamp::parse(&pod.status.start_time).unwrap_or(now);
            let end = started + between("finish", seconds * 0.6, seconds * 1.4);
            // Some pods of the initial cluster should already have ended when the demo starts. They end within two
            // minutes.
            Some((ContainerStep::Finish, end.since(now).max(between("overdue", 20.0, 120.0))))
        }
        _ => None,
    }
}

fn waits_to_restart(pod: &Pod) -> bool {
    pod.status.container_statuses.iter().any(|container| container.started_at().is_empty())
}

/// Backoff before the restart of a container. It is 10 seconds at the second failure, doubles with each further
/// failure, and is at most 300 seconds.
fn back_off(pod: &Pod) -> Span {
    let restarts = pod.status.container_statuses.iter().map(|container| container.restart_count).max();
    let doublings = u32::try_from(restarts.unwrap_or(0) - 2).unwrap_or(0).min(5);
    Span::from_secs((10 << doublings).min(300))
}

/// The time that the containers of a pod take to stop. Most stop quickly; some use the whole grace period.
pub fn stopping_time(pod: &Pod, grace_seconds: i64, random: RandomSource) -> Span {
    let mut rng = random.rng(&["stop", pod.uid()]);
    let wanted = match rng.u8(..10) {
        0..6 => Span::from_secs_f64(0.5 + 3.0 * rng.f64()),
        6..8 => Span::from_secs_f64(grace_seconds as f64 * (0.3 + 0.5 * rng.f64())),
        _ => Span::MAX,
    };
    wanted.min(Span::from_secs(grace_seconds))
}

/// Returns the status to write for a step; None if no status is written.
pub fn status_after(pod: &Pod, step: ContainerStep, random: RandomSource, now: Timestamp) -> Option<Value> {
    let at = now.to_time();
    let condition = |kind: &str, status: &str| {
        let kept =
            pod.condition(kind).filter(|is| is.status == status).map(|is| is.last_transition_time.clone());
        json!({"type": kind, "status": status, "lastTransitionTime": kept.unwrap_or_else(|| at.clone())})
    };
    let status = match step {
        ContainerStep::Create => {
            let mut status = json!({
                "phase": "Pending",
                "conditions": [
                    condition("PodReadyToStartContainers", "False"), condition("Initialized", "True"),
                    unready("Ready", &at), unready("ContainersReady", &at), condition("PodScheduled", "True"),
                ],
                "containerStatuses": containers(pod, false, &json!({"waiting": {"reason": "ContainerCreating"}})),
            });
            if pod.status.start_time.is_empty() {
                status["startTime"] = json!(at);
            }
            status
        }
        ContainerStep::Run => {
            let address = address(pod, random);
            json!({
                "phase": "Running",
                "podIP": address,
                "podIPs": [{"ip": address}],
                "conditions": [condition("PodReadyToStartContainers", "True")],
                "containerStatuses": containers(pod, false, &json!({"running": {"startedAt": at}})),
            })
        }
        ContainerStep::Ready => {
            let mut status = json!({"conditions": [
                condition("PodReadyToStartContainers", "True"),
                clear(condition("Ready", "True")), clear(condition("ContainersReady", "True")),
            ]});
            // If the controller has marked a pod as not ready, the pod's containers are still ready. The status of the
            // containers then does not change.
            if !pod.status.container_statuses.iter().all(|container| container.ready) {
                let started = pod.status.container_statuses.iter().map(|container| container.started_at());
                let started = started.max().filter(|started| !started.is_empty()).unwrap_or(&at);
                status["containerStatuses"] =
                    containers(pod, true, &json!({"running": {"startedAt": started}}));
            }
            status
        }
        ContainerStep::Restart => {
            json!({"containerStatuses": containers(pod, false, &json!({"running": {"startedAt": at}}))})
        }
        // The pod has no finalizers. Its object is removed immediately, so no status is written.
        ContainerStep::Stop { .. } if pod.metadata.finalizers.as_ref().is_none_or(Vec::is_empty) => {
            return None;
        }
        ContainerStep::Finish | ContainerStep::Stop { .. } => json!({
            "phase": "Succeeded",
            "conditions": [
                because(condition("Ready", "False"), "PodCompleted"),
                because(condition("ContainersReady", "False"), "PodCompleted"),
            ],
            "containerStatuses":
                containers(pod, false, &json!({"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": at}})),
        }),
    };
    Some(status)
}

/// Returns the status of a pod whose first container was killed at its memory limit. The container restarts, the first
/// time without a backoff.
pub fn out_of_memory(pod: &Pod, now: Timestamp) -> Value {
    let at = now.to_time();
    let statuses = pod.status.container_statuses.iter().map(|container| {
        let killed = json!({"terminated": {"exitCode": 137, "reason": "OOMKilled",
            "startedAt": container.started_at(), "finishedAt": at}});
        let state = if container.restart_count == 0 {
            json!({"running": {"startedAt": at}})
        } else {
            let message = format!("back-off restarting failed container={}", container.name);
            json!({"waiting": {"reason": "CrashLoopBackOff", "message": message}})
        };
        json!({"name": container.name, "image": container.image, "imageID": "", "ready": false, "started": false,
            "restartCount": container.restart_count + 1, "lastState": killed, "state": state})
    });
    json!({
        "conditions": [unready("Ready", &at), unready("ContainersReady", &at)],
        "containerStatuses": statuses.collect::<Vec<_>>(),
    })
}

/// Returns the status of a pod that was evicted because of pressure.
pub fn evicted(pod: &Pod, message: &str, now: Timestamp) -> Value {
    let at = now.to_time();
    let failed = |kind: &str| json!({"type": kind, "status": "False", "reason": "PodFailed", "lastTransitionTime": at});
    json!({
        "phase": "Failed",
        "reason": "Evicted",
        "message": message,
        "conditions": [
            {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet", "message": message,
                "lastTransitionTime": at},
            failed("Ready"), failed("ContainersReady"),
        ],
        "containerStatuses":
            containers(pod, false, &json!({"terminated": {"exitCode": 137, "reason": "Error", "finishedAt": at}})),
    })
}

fn unready(kind: &str, at: &str) -> Value {
    json!({
        "type": kind, "status": "False", "reason": "ContainersNotReady", "lastTransitionTime": at,
        "message": "containers with unready status: [app]",
    })
}

fn because(mut condition: Value, reason: &str) -> Value {
    condition["reason"] = json!(reason);
    condition
}

/// Clears the reason and message that an earlier write set on the condition.
fn clear(mut condition: Value) -> Value {
    condition["reason"] = Value::Null;
    condition["message"] = Value::Null;
    condition
}

fn containers(pod: &Pod, ready: bool, state: &Value) -> Value {
    let before = |name: &str| pod.status.container_statuses.iter().find(|status| status.name == name);
    let restarts = |name: &str| before(name).map_or(0, |status| status.restart_count);
    let last = |name: &str| before(name).map_or_else(|| json!({}), |status| status.last_state.clone());
    pod.spec
        .containers
        .iter()
        .map(|container| {
            json!({
                "name": container.name, "image": container.image, "imageID": "", "lastState": last(&container.name),
                "ready": ready, "started": ready, "restartCount": restarts(&container.name), "state": state,
            })
        })
        .collect()
}

fn address(pod: &Pod, random: RandomSource) -> String {
    let mut rng = random.rng(&["address", pod.uid()]);
    format!("10.{}.{}.{}", rng.u8(128..160), rng.u8(..), rng.u8(2..))
}
