//! Jobs: run pods until enough have succeeded.

use serde_json::json;

use super::Workloads;
use crate::{
    objects::{Key, Object, WorkloadKind},
    writer::WriteError,
};

impl Workloads {
    pub(super) async fn sync_job(&mut self, key: &Key) -> Result<(), WriteError> {
        let Some(job) = self.workload(WorkloadKind::Job, key) else { return Ok(()) };
        let complete = job.status["conditions"].as_array().is_some_and(|all| !all.is_empty());
        if complete {
            return Ok(());
        }
        let pods = self.pods_of(&job);
        let phase = |phase: &str| pods.iter().filter(|pod| pod.status.phase == phase).count();
        let (succeeded, failed) = (phase("Succeeded"), phase("Failed"));
        let active = pods.iter().filter(|pod| pod.is_active()).count();
        let wanted = job.spec.completions.unwrap_or(1).saturating_sub(succeeded);
        let given_up = failed > job.spec.backoff_limit.unwrap_or(6);
        let parallel = if given_up { 0 } else { wanted.min(job.spec.parallelism.unwrap_or(1)) };
        for _ in active..parallel {
            self.create_pod(WorkloadKind::Job, &job, None, |_| {}).await?;
        }
        let pods = self.pods_of(&job);
        let now = self.clock.now().to_time();
        let mut status = json!({
            "active": pods.iter().filter(|pod| pod.is_active()).count(),
            "ready": pods.iter().filter(|pod| pod.is_active() && pod.is_ready()).count(),
            "terminating": pods.iter().filter(|pod| pod.is_deleted() && !pod.is_finished()).count(),
            "succeeded": succeeded,
            "failed": failed,
        });
        if wanted == 0 || given_up {
            let kind = if given_up { "Failed" } else { "Complete" };
            status["conditions"] = json!([{"type": kind, "status": "True", "lastTransitionTime": now}]);
            if !given_up {
                status["completionTime"] = json!(now);
            }
        }
        self.write_status(WorkloadKind::Job, &job, status).await
    }
}
