//! HorizontalPodAutoscalers, all of which are read with one request.

use kube::Client;
use serde::Deserialize;

use super::{decode::items::items, fetched_list};
use kordon_core::{
    cluster::{Autoscaler, Key, KnownAutoscalers, Owner, OwnerKind},
    plan::autoscalers_path,
};

/// The value of `minReplicas` if it is not set.
const LEAST: i32 = 1;

/// Reads all autoscalers of a cluster.
pub async fn read(client: &Client) -> KnownAutoscalers {
    fetched_list::read(client, &autoscalers_path(None), parse).await
}

/// Parses a list of autoscalers.
///
/// # Errors
/// The bytes are not a list of HorizontalPodAutoscalers.
pub fn parse(list: &[u8]) -> Result<Vec<Autoscaler>, String> {
    let items: Vec<Item> = items(list, "list of HorizontalPodAutoscalers")?;
    Ok(items.into_iter().map(Item::autoscaler).collect())
}

#[derive(Deserialize)]
struct Item {
    metadata: Metadata,
    spec: Spec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    namespace: String,
    #[serde(default)]
    owner_references: Vec<OwnerReference>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OwnerReference {
    api_version: String,
    kind: String,
    name: String,
    uid: String,
    #[serde(default)]
    controller: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    scale_target_ref: Target,
    min_replicas: Option<i32>,
    max_replicas: i32,
}

#[derive(Deserialize)]
struct Target {
    kind: String,
    name: String,
}

impl Item {
    fn autoscaler(self) -> Autoscaler {
        let Self { metadata, spec } = self;
        let owner = metadata.owner_references.into_iter().find(|reference| reference.controller);
        Autoscaler {
            key: Key::new(&metadata.namespace, &metadata.name),
            target_kind: spec.scale_target_ref.kind.as_str().into(),
            target: spec.scale_target_ref.name.as_str().into(),
            min: spec.min_replicas.unwrap_or(LEAST),
            max: spec.max_replicas,
            owner: owner.map(|owner| Owner {
                kind: OwnerKind::other(
                    owner.kind.as_str(),
                    owner.api_version.split_once('/').map_or("", |(group, _)| group),
                ),
                name: owner.name.as_str().into(),
                uid: owner.uid.as_str().into(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// An autoscaler as KEDA 2.17 makes it (`kedacore/keda`, `controllers/keda/hpa.go`, `newHPAForScaledObject`: the
    /// ScaledObject is its controller), and one that somebody made by hand.
    #[test]
    fn an_autoscaler_names_what_it_scales_and_who_made_it() {
        let owner = json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "cart", "uid": "u",
            "controller": true});
        let target = |name: &str| json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": name});
        let list = json!({"kind": "HorizontalPodAutoscalerList", "items": [
            {"metadata": {"name": "keda-hpa-cart", "namespace": "shop", "ownerReferences": [owner]},
             "spec": {"scaleTargetRef": target("cart"), "minReplicas": 2, "maxReplicas": 5}},
            {"metadata": {"name": "web", "namespace": "shop"},
             "spec": {"scaleTargetRef": target("web"), "maxReplicas": 3}},
        ]});
        let found = parse(list.to_string().as_bytes()).expect("a list");
        let cart = &found[0];
        assert!(cart.scales(&Key::new("shop", "cart")) && !cart.scales(&Key::new("other", "cart")));
        let made_by = cart.owner.as_ref().map(|owner| (owner.kind.as_str(), &*owner.name));
        assert_eq!((made_by, cart.min, cart.max), (Some(("ScaledObject", "cart")), 2, 5));
        let web = &found[1];
        assert!(web.scales(&Key::new("shop", "web")));
        assert_eq!((web.min, web.max, &web.owner), (1, 3, &None));
        assert!(parse(b"{}").is_err());
    }
}
