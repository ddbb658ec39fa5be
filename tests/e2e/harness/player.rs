//! Plays a script of incidents on a real control plane, and notes what was done when.

use anyhow::{Context, Result};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{Node, Pod};
use kordon::{clock::Clock, time::Timestamp};
use kube::{
    Api, Client,
    api::{ListParams, PostParams},
};
use serde_json::{Value, json};

use super::{
    kubelets::Kubelets,
    script::{Deed, Due},
};

/// The key of the NoExecute taint that [`Deed::Taint`] puts on nodes.
pub const FOREIGN_TAINT: &str = "kordon.test/maintenance";

/// A deed that was done, between two points in time.
#[derive(Clone, Debug)]
pub struct Done {
    pub began: Timestamp,
    pub ended: Timestamp,
    pub node: String,
    pub deed: Deed,
}

pub struct Player {
    client: Client,
    kubelets: Kubelets,
    clock: Clock,
}

impl Player {
    pub fn new(client: Client, kubelets: Kubelets) -> Self {
        Self { client, kubelets, clock: Clock::system() }
    }

    /// Gives every node its pods.
    pub async fn fill(&self) -> Result<()> {
        try_join_all(self.kubelets.names().map(|node| self.refill(node))).await.map(drop)
    }

    /// Does these deeds at once, and tells when each was done.
    pub async fn play(&self, due: &[Due]) -> Result<Vec<Done>> {
        try_join_all(due.iter().map(|due| self.perform(due))).await
    }

    async fn perform(&self, due: &Due) -> Result<Done> {
        let (node, began) = (due.node.as_str(), self.clock.now());
        let done = match &due.deed {
            Deed::Silence => self.kubelets.silence(node).await.map(drop),
            Deed::ComeBack => self.kubelets.come_back(node).await,
            Deed::Post(status) => self.kubelets.post(node, "Ready", status).await,
            Deed::Remove => self.kubelets.remove(node).await,
            Deed::Rejoin => self.kubelets.rejoin(node).await,
            Deed::AddPod { bears } => self.add_pod(node, "late", Some(*bears)).await,
            Deed::Refill => self.refill(node).await,
            Deed::Taint => self.taint(node, true).await,
            Deed::Untaint => self.taint(node, false).await,
        };
        done.with_context(|| format!("{:?} of {node}", due.deed))?;
        Ok(Done { began, ended: self.clock.now(), node: node.into(), deed: due.deed.clone() })
    }

    /// Of each kind of pod that every node has, one: as admission makes it, one that bears taints for longer than
    /// that, one that bears them for less, one for ever.
    async fn refill(&self, node: &str) -> Result<()> {
        const KINDS: [(&str, Option<Option<i64>>); 4] =
            [("usual", None), ("longer", Some(Some(20))), ("shorter", Some(Some(5))), ("ever", Some(None))];
        let on_node = ListParams::default().fields(&format!("spec.nodeName={node}"));
        let there = self.pods().list(&on_node).await?;
        for (kind, bears) in KINDS {
            let named = |pod: &Pod| pod.metadata.name.as_ref().is_some_and(|name| name.starts_with(kind));
            let lives = |pod: &&Pod| pod.metadata.deletion_timestamp.is_none();
            if !there.iter().filter(lives).any(named) {
                self.add_pod(node, kind, bears).await?;
            }
        }
        Ok(())
    }

    /// Binds a pod to a node: one that bears NoExecute taints for so many seconds or for ever, or one without
    /// tolerations of its own.
    async fn add_pod(&self, node: &str, kind: &str, bears: Option<Option<i64>>) -> Result<()> {
        let tolerations: Vec<Value> = bears
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

    /// Puts somebody else's NoExecute taint on a node, as `kubectl taint` does, or takes it off.
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
                // A kubelet's status or a controller's taint came between.
                Err(kube::Error::Api(status)) if status.is_conflict() => {}
                answer => return Ok(answer.map(drop)?),
            }
        }
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), "default")
    }
}
