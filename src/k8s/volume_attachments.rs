//! VolumeAttachments, read by one request.

use kube::Client;
use serde::Deserialize;

use super::{decode::items::items, fetched_list};
use kordon_core::cluster::{KnownVolumeAttachments, Name, NodeName, VolumeAttachment};
use kordon_time::ClusterTime;

/// The path of all VolumeAttachments.
const PATH: &str = "/apis/storage.k8s.io/v1/volumeattachments";

/// Reads all VolumeAttachments of a cluster.
pub async fn read(client: &Client) -> KnownVolumeAttachments {
    fetched_list::read(client, PATH, parse).await
}

/// Parses a list of VolumeAttachments.
fn parse(list: &[u8]) -> Result<Vec<VolumeAttachment>, String> {
    let items: Vec<Item> = items(list, "list of VolumeAttachments")?;
    Ok(items.into_iter().map(Item::attachment).collect())
}

#[derive(Deserialize)]
struct Item {
    metadata: Metadata,
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    deletion_timestamp: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    node_name: String,
    source: Source,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Source {
    persistent_volume_name: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    detach_error: Option<DetachError>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct DetachError {
    message: String,
}

impl Item {
    fn attachment(self) -> VolumeAttachment {
        let Self { metadata, spec, status } = self;
        VolumeAttachment {
            volume: spec.source.persistent_volume_name.unwrap_or_default().into(),
            node: NodeName(Name::from(spec.node_name)),
            deleted: metadata.deletion_timestamp.and_then(|time| ClusterTime::parse(&time)),
            detach_error: status.detach_error.unwrap_or_default().message.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_attachment_names_its_volume_its_node_and_why_it_stays() {
        let list = json!({"kind": "VolumeAttachmentList", "items": [
            {"metadata": {"name": "csi-1"}, "spec": {"attacher": "csi.example.com", "nodeName": "n1",
                "source": {"persistentVolumeName": "pv-1"}}, "status": {"attached": true}},
            {"metadata": {"name": "csi-2", "deletionTimestamp": "2026-11-29T09:00:00Z"},
                "spec": {"attacher": "csi.example.com", "nodeName": "n2", "source": {"inlineVolumeSpec": {}}},
                "status": {"attached": true, "detachError": {"message": "instance not found"}}},
        ]});
        let found = parse(list.to_string().as_bytes()).expect("a list");
        let attached =
            VolumeAttachment { volume: "pv-1".into(), node: "n1".into(), ..VolumeAttachment::default() };
        let detaching = VolumeAttachment {
            volume: "".into(),
            node: "n2".into(),
            deleted: ClusterTime::parse("2026-11-29T09:00:00Z"),
            detach_error: "instance not found".into(),
        };
        assert_eq!(found, [attached, detaching]);
        assert!(parse(b"{}").is_err_and(|why| why.contains("no list of VolumeAttachments")));
    }
}
