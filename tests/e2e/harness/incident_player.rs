//! Plays a script of incidents on a real control plane, and records the time of each action.

use anyhow::{Context, Result};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{Node, Pod};
use kordon_clock::Clock;
use kordon_time::Timestamp;
use kube::{
    Api, Client,
    api::{ListParams, PostParams},
};
use serde_json::{Value, json};

use super::{
    kubelets::Kubelets,
    plane::{ControllerManager, Plane},
    script::{IncidentAction, ScheduledAction},
};

/// The key of the NoExecute taint that [`IncidentAction::Taint`] adds.
pub const FOREIGN_TAINT: &str = "kordon.test/maintenance";

/// A completed action, with its start and end.
#[derive(Clone, Debug)]
pub struct CompletedAction {
    pub started: Timestamp,
    pub finished: Timestamp,
    pub node: String,
    pub action: IncidentAction,
}

pub struct IncidentPlayer {
    client: Client,
    kubelets: Kubelets,
    clock: Clock,
}

impl IncidentPlayer {
    pub fn new(client: Client, kubelets: Kubelets) -> Self {
        Self { client, kubelets, clock: Clock::system() }
    }

    /// Creates the usual pods on every node.
    pub async fn fill(&self) -> Result<()> {
        try_join_all(self.kubelets.names().map(|node| self.refill(node))).await.map(drop)
    }

    /// Performs these actions: first those on the controller manager, then all others concurrently. Returns the start
    /// and the end of each action.
    pub async fn play(
        &self,
        scheduled: &[ScheduledAction],
        plane: &mut Plane,
        manager: &ControllerManager,
    ) -> Result<Vec<CompletedAction>> {
        for scheduled in scheduled {
            match scheduled.action {
                IncidentAction::RestartController => {
                    plane.kill_controller_manager()?;
                    plane.start_controller_manager(manager)?;
                }
                IncidentAction::StartStandby => plane.start_standby(manager)?,
                IncidentAction::FailOver => plane.fail_over()?,
                IncidentAction::PauseController => plane.pause_controller_manager()?,
                IncidentAction::ResumeController => plane.resume_controller_manager()?,
                _ => {}
            }
        }
        try_join_all(scheduled.iter().map(|scheduled| self.perform(scheduled))).await
    }

    async fn perform(&self, scheduled: &ScheduledAction) -> Result<CompletedAction> {
        let (node, started) = (scheduled.node.as_str(), self.clock.now());
        let done = match &scheduled.action {
            IncidentAction::Silence => self.kubelets.silence(node).await.map(drop),
            IncidentAction::ComeBack => self.kubelets.come_back(node).await,
            IncidentAction::Post(status) => self.kubelets.post(node, "Ready", status).await,
            IncidentAction::Remove => self.kubelets.remove(node).await,
            IncidentAction::Rejoin => self.kubelets.rejoin(node).await,
            IncidentAction::AddPod { tolerates } => self.add_pod(node, "late", Some(*tolerates)).await,
            IncidentAction::Refill => self.refill(node).await,
            IncidentAction::Taint => self.taint(node, true).await,
            IncidentAction::Untaint => self.taint(node, false).await,
            // `play` has already performed the actions on the controller manager.
            IncidentAction::RestartController
            | IncidentAction::StartStandby
            | IncidentAction::FailOver
            | IncidentAction::PauseController
            | IncidentAction::ResumeController
            | IncidentAction::BecomeLeader => Ok(()),
        };
        done.with_context(|| format!("{:?} of {node}", scheduled.action))?;
        Ok(CompletedAction {
            started,
            finished: self.clock.now(),
            node: node.into(),
            action: scheduled.action.clone(),
        })
    }

    /// Creates the usual pods that a node lacks. The four usual pods differ in how long they tolerate NoExecute taints:
    /// for the time that admission sets, for 20 s, for 5 s, and forever.
    async fn refill(&self, node: &str) -> Result<()> {
        const KINDS: [(&str, Option<Option<i64>>); 4] =
            [("usual", None), ("longer", Some(Some(20))), ("shorter", Some(Some(5))), ("ever", Some(None))];
        let on_node = ListParams::default().fields(&format!("spec.nodeName={node}"));
        let there = self.pods().list(&on_node).await?;
        for (kind, tolerates) in KINDS {
            let named = |pod: &Pod| pod.metadata.name.as_ref().is_some_and(|name| name.starts_with(kind));
            let lives = |pod: &&Pod| pod.metadata.deletion_timestamp.is_none();
            if !there.iter().filter(lives).any(named) {
                self.add_pod(node, kind, tolerates).await?;
            }
        }
        Ok(())
    }

    /// Creates a pod on a node. The pod tolerates NoExecute taints for the number of seconds in `tolerates`, or forever
    /// if the inner value is `None`. If the outer value is `None`, the pod has no tolerations of its own.
    async fn add_pod(&self, node: &str, kind: &str, tolerates: Option<Option<i64>>) -> Result<()> {
        let tolerations: Vec<Value> = tolerates
            .map(|seconds| json!({ "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds }))
            .into_iter()
            .collect();
        let pod = json!({
            "metadata": { "generateName": format!("{kind}-{node}-") },
            "spec": {
                "nodeName": node,
                "tolerations": tolerations,
                "containers": [{ "name": "c", "image": "example.invalid/none" }],
            },
        });
        self.pods().create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
        Ok(())
    }

    /// Adds a third party's NoExecute taint to a node, as `kubectl taint` does, or removes it.
    async fn taint(&self, node: &str, on: bool) -> Result<()> {
        let nodes = Api::<Node>::all(self.client.clone());
        loop {
            let mut object = nodes.get(node).await?;
            let spec = object.spec.get_or_insert_default();
            let taints = spec.taints.get_or_insert_default();
            taints.retain(|taint| taint.key != FOREIGN_TAINT);
            if on {
                let taint = json!({ "key": FOREIGN_TAINT, "effect": "NoExecute" });
                taints.push(serde_json::from_value(taint)?);
            }
            match nodes.replace(node, &PostParams::default(), &object).await {
                // Retries after a conflict: a kubelet or a controller has written the node in between.
                Err(kube::Error::Api(status)) if status.is_conflict() => {}
                answer => return Ok(answer.map(drop)?),
            }
        }
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), "default")
    }
}
