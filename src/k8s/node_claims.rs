//! Karpenter's NodeClaims, read by one request.

use std::collections::BTreeMap;

use kube::Client;
use serde::Deserialize;

use super::{decode::items::items, fetched_list};
use kordon_core::cluster::{Condition, ConditionStatus, KnownNodeClaims, Name, NodeClaim, NodeName};
use kordon_time::ClusterTime;

/// The path of all NodeClaims (kubernetes-sigs/karpenter 226646810, `pkg/apis/crds/karpenter.sh_nodeclaims.yaml`).
const PATH: &str = "/apis/karpenter.sh/v1/nodeclaims";

/// Reads all NodeClaims of a cluster.
pub async fn read(client: &Client) -> KnownNodeClaims {
    fetched_list::read(client, PATH, parse).await
}

/// Parses a list of NodeClaims.
fn parse(list: &[u8]) -> Result<Vec<NodeClaim>, String> {
    let items: Vec<Item> = items(list, "list of NodeClaims")?;
    Ok(items.into_iter().map(Item::claim).collect())
}

#[derive(Deserialize)]
struct Item {
    metadata: Metadata,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    deletion_timestamp: Option<String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    node_name: String,
    conditions: Vec<WireCondition>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireCondition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
    reason: String,
    message: String,
    last_transition_time: Option<String>,
}

impl Item {
    fn claim(self) -> NodeClaim {
        let Self { metadata, status } = self;
        let time = |text: Option<&String>| text.and_then(|text| ClusterTime::parse(text));
        NodeClaim {
            name: metadata.name.as_str().into(),
            node: NodeName(Name::from(status.node_name.as_str())),
            deleted: time(metadata.deletion_timestamp.as_ref()),
            forced: time(metadata.annotations.get("karpenter.sh/nodeclaim-termination-timestamp")),
            conditions: status.conditions.into_iter().map(WireCondition::condition).collect(),
        }
    }
}

impl WireCondition {
    fn condition(self) -> Condition {
        Condition {
            kind: self.kind.as_str().into(),
            status: ConditionStatus::parse(&self.status),
            reason: self.reason.as_str().into(),
            message: self.message.as_str().into(),
            last_heartbeat: None,
            last_transition: self.last_transition_time.and_then(|text| ClusterTime::parse(&text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kordon_core::cluster::RemovalStage;
    use serde_json::{Value, json};

    fn one(status: &[(&str, &str)], deleted: bool) -> NodeClaim {
        let conditions: Vec<Value> = status
            .iter()
            .map(|(kind, status)| {
                json!({"type": kind, "status": status, "reason": kind, "message": "",
                    "lastTransitionTime": "2026-11-29T09:00:00Z"})
            })
            .collect();
        let mut metadata = json!({"name": "general-x7k2p"});
        if deleted {
            metadata["deletionTimestamp"] = "2026-11-29T09:00:00Z".into();
            metadata["annotations"] =
                json!({"karpenter.sh/nodeclaim-termination-timestamp": "2026-11-29T11:00:00Z"});
        }
        let status = json!({"nodeName": "n1", "conditions": conditions});
        let list = json!({"kind": "NodeClaimList", "items": [{"metadata": metadata, "status": status}]});
        let found = parse(list.to_string().as_bytes()).expect("a list");
        assert_eq!(found.len(), 1);
        found.into_iter().next().expect("one")
    }

    /// Karpenter sets one condition in each step (kubernetes-sigs/karpenter 226646810,
    /// `pkg/controllers/node/termination/controller.go`): `awaitDrain` sets Drained to Unknown and then True,
    /// `awaitVolumeDetachment` sets VolumesDetached, and `awaitInstanceTermination` sets InstanceTerminating.
    #[test]
    fn the_stage_of_a_removal_follows_from_the_conditions() {
        let stage = |status: &[(&str, &str)]| one(status, true).removal();
        assert_eq!(stage(&[]), Some(RemovalStage::Draining));
        assert_eq!(stage(&[("Drained", "Unknown")]), Some(RemovalStage::Draining));
        let drained = [("Drained", "True"), ("VolumesDetached", "Unknown")];
        assert_eq!(stage(&drained), Some(RemovalStage::AwaitingVolumes));
        let ends = [("Drained", "True"), ("VolumesDetached", "False"), ("InstanceTerminating", "True")];
        assert_eq!(stage(&ends), Some(RemovalStage::Terminating));
        let stays = one(&[("Drifted", "True"), ("Drained", "True")], false);
        assert_eq!((stays.removal(), stays.forced), (None, None));
        assert!(
            stays.true_condition("Drifted").is_some() && stays.true_condition("DisruptionReason").is_none()
        );
    }

    #[test]
    fn a_claim_without_a_node_is_read_and_another_answer_is_refused() {
        let list = json!({"items": [{"metadata": {"name": "new"}}]});
        let found = parse(list.to_string().as_bytes()).expect("a list");
        assert_eq!((&*found[0].name, &*found[0].node), ("new", ""));
        assert!(parse(b"{}").is_err_and(|why| why.contains("no list of NodeClaims")));
    }
}
