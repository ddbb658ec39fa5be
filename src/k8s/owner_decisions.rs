//! Owners of other projects whose own fields decide what they do after one of their pods has left.

use kube::Client;
use serde_json::Value;

use super::fetched_list;
use kordon_core::cluster::{KnownSetting, Namespace, OperatorSettings, Owner, OwnerDecision};

/// A kind of such owners.
#[derive(Debug)]
pub struct DecidingKind {
    pub kind: &'static str,
    pub group: &'static str,
    version: &'static str,
    plural: &'static str,
    /// Returns what an owner does; `None` if its fields do not decide it.
    decide: fn(&Value) -> Option<OwnerDecision>,
}

pub const DECIDING_KINDS: &[DecidingKind] = &[
    DecidingKind {
        kind: "GameServer",
        group: "agones.dev",
        version: "v1",
        plural: "gameservers",
        decide: game_server,
    },
    DecidingKind { kind: "TFJob", group: "kubeflow.org", version: "v1", plural: "tfjobs", decide: tf_job },
    DecidingKind {
        kind: "Job",
        group: "batch.volcano.sh",
        version: "v1alpha1",
        plural: "jobs",
        decide: volcano_job,
    },
];

impl DecidingKind {
    /// Reads what these owners of a namespace do.
    pub async fn read(
        &self,
        client: &Client,
        namespace: &Namespace,
        owners: Vec<&Owner>,
    ) -> OperatorSettings {
        let Self { group, version, plural, .. } = self;
        let path = format!("/apis/{group}/{version}/namespaces/{namespace}/{plural}");
        let mut found = OperatorSettings::default();
        match fetched_list::items_at::<Value>(client, &path).await {
            Ok(objects) => found.decisions.extend(owners.into_iter().filter_map(|owner| {
                let is_owner = |object: &&Value| object["metadata"]["name"] == owner.name.as_str();
                let object = objects.iter().find(is_owner)?;
                Some((owner.uid.clone(), (self.decide)(object)?))
            })),
            Err(why) => {
                let unreadable = |owner: &Owner| (owner.uid.clone(), KnownSetting::Unreadable(why.clone()));
                found.settings.extend(owners.into_iter().map(unreadable));
            }
        }
        found
    }
}

/// A GameServer without its pod becomes Unhealthy and ends; its GameServerSet starts another one. Whether the set still
/// wants as many GameServers is certain only if this one is not allocated, because a set that was scaled down keeps
/// those (Agones 1.56, `pkg/gameservers/health.go` and `pkg/gameserversets/controller.go`).
fn game_server(server: &Value) -> Option<OwnerDecision> {
    let owners = server["metadata"]["ownerReferences"].as_array();
    let controller = owners.into_iter().flatten().find(|owner| owner["controller"] == true);
    match controller {
        None => Some(OwnerDecision::Ends),
        Some(owner) if owner["kind"] == "GameServerSet" && server["status"]["state"] != "Allocated" => {
            Some(OwnerDecision::Recreates)
        }
        Some(_) => None,
    }
}

/// With Never, the default, the job fails if the controller sees that the pod failed before it is gone; with ExitCode,
/// the exit code decides. A back-off limit of 0 fails the job (Training Operator 1.9, `pkg/controller.v1/common/pod.go`
/// and `job.go`).
fn tf_job(job: &Value) -> Option<OwnerDecision> {
    let replicas = job["spec"]["tfReplicaSpecs"].as_object()?;
    let restarts = |spec: &Value| matches!(spec["restartPolicy"].as_str(), Some("Always" | "OnFailure"));
    let has_retries = job["spec"]["runPolicy"]["backoffLimit"] != 0;
    (has_retries && replicas.values().all(restarts)).then_some(OwnerDecision::Recreates)
}

/// The deletion of a pod is the event PodEvicted. A policy of its task, or else of the Job, decides what follows;
/// without one, the pod is created again (Volcano 1.15, `pkg/controllers/job/job_controller_util.go`, `applyPolicies`,
/// and `pkg/controllers/job/state/running.go`).
fn volcano_job(job: &Value) -> Option<OwnerDecision> {
    let spec = &job["spec"];
    let of_task = |task: &Value| match policy(&task["policies"]).or_else(|| policy(&spec["policies"])) {
        Some(policy) => after_policy(policy, job),
        None => Some(OwnerDecision::Recreates),
    };
    let mut decisions = spec["tasks"].as_array()?.iter().map(of_task);
    let first = decisions.next()??;
    decisions.all(|decision| decision == Some(first)).then_some(first)
}

/// Returns the policy that applies to an evicted pod.
fn policy(policies: &Value) -> Option<&Value> {
    let is_meant = |event: &Value| event == "PodEvicted" || event == "*";
    policies.as_array()?.iter().find(|policy| {
        is_meant(&policy["event"])
            || policy["events"].as_array().is_some_and(|events| events.iter().any(is_meant))
    })
}

fn after_policy(policy: &Value, job: &Value) -> Option<OwnerDecision> {
    if !policy["timeout"].is_null() {
        return None;
    }
    match policy["action"].as_str()? {
        "SyncJob" => Some(OwnerDecision::Recreates),
        "RestartJob" | "RestartTask" | "RestartPod" | "RestartPartition" => {
            let retries = job["status"]["retryCount"].as_i64().unwrap_or_default() + 1;
            let is_last = retries >= job["spec"]["maxRetry"].as_i64().unwrap_or_default();
            Some(if is_last { OwnerDecision::Ends } else { OwnerDecision::Recreates })
        }
        "AbortJob" | "TerminateJob" | "CompleteJob" => Some(OwnerDecision::Ends),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{OwnerDecision::*, *};

    #[test]
    fn a_game_server_of_a_set_is_replaced() {
        let of = |owner: Option<&str>, state: &str| {
            let owners: Vec<Value> =
                owner.map(|kind| json!({"kind": kind, "controller": true})).into_iter().collect();
            game_server(&json!({"metadata": {"ownerReferences": owners}, "status": {"state": state}}))
        };
        assert_eq!(of(None, "Ready"), Some(Ends));
        assert_eq!(of(Some("GameServerSet"), "Ready"), Some(Recreates));
        assert_eq!(of(Some("GameServerSet"), "Allocated"), None, "its set may be scaled down");
        assert_eq!(of(Some("Room"), "Ready"), None);
    }

    #[test]
    fn a_job_of_tensorflow_restarts_its_pods_if_all_its_policies_do() {
        let of = |chief: Option<&str>, worker: &str, limit: Option<i64>| {
            tf_job(&json!({"spec": {"runPolicy": {"backoffLimit": limit}, "tfReplicaSpecs": {
                "Chief": {"restartPolicy": chief}, "Worker": {"restartPolicy": worker}}}}))
        };
        assert_eq!(of(Some("Always"), "OnFailure", None), Some(Recreates));
        assert_eq!(of(Some("Always"), "OnFailure", Some(3)), Some(Recreates));
        assert_eq!(of(Some("Always"), "OnFailure", Some(0)), None);
        assert_eq!(of(None, "OnFailure", None), None, "Never is the default");
        assert_eq!(of(Some("OnFailure"), "ExitCode", None), None);
    }

    #[test]
    fn the_policies_of_a_volcano_job_decide_what_follows_an_eviction() {
        let of = |task: Value, job: Value| {
            volcano_job(&json!({"spec": {"maxRetry": 3, "tasks": [{"policies": task}, {}], "policies": job},
                "status": {"retryCount": 1}}))
        };
        let on = |event: &str, action: &str| json!([{"event": event, "action": action}]);
        assert_eq!(of(json!([]), json!([])), Some(Recreates));
        assert_eq!(of(json!([]), on("PodFailed", "AbortJob")), Some(Recreates));
        assert_eq!(of(json!([]), on("PodEvicted", "AbortJob")), Some(Ends));
        let listed = json!([{"events": ["PodFailed", "PodEvicted"], "action": "RestartJob"}]);
        assert_eq!(of(json!([]), listed.clone()), Some(Recreates));
        assert_eq!(of(on("*", "RestartTask"), listed), Some(Recreates));
        assert_eq!(of(on("PodEvicted", "CompleteJob"), json!([])), None, "the tasks differ");
        let later = json!([{"event": "PodEvicted", "action": "AbortJob", "timeout": "5m"}]);
        assert_eq!(of(json!([]), later), None);
        let last = json!({"spec": {"maxRetry": 1, "tasks": [{}], "policies": on("*", "RestartJob")}});
        assert_eq!(volcano_job(&last), Some(Ends));
    }
}
