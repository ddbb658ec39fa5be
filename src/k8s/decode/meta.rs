//! `metadata`, reduced to the fields that kordon uses.

use std::sync::Arc;

use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::{
    leaf::{Int, LenientBool, LenientList, Pairs, Text, Time},
    managed_fields::UnreadFields,
    pool::SharedParts,
    protobuf::{NotAMessage, ReadField, WireValue, wire},
};
use kordon_core::cluster::{
    CordonNote, DrainClaim, DrainedNote, IndexFailures, KeptFrom, Key, MaintenanceNote, Name, Namespace,
    NodeName, Owner, OwnerKind, RebootLock, Termination, Uid, Version, WorkloadKind,
    claim::{CORDON, DRAIN, DRAINED},
    drain_markers::ANNOTATIONS,
    lease::FULL_DISRUPTION,
    maintenance_note::MAINTENANCE,
    pod::{DO_NOT_DISRUPT, SAFE_TO_EVICT},
    reboot_lock::REBOOT_LOCK,
};
use kordon_time::ClusterTime;

wire! {
    /// `metadata` of an object, a list or a bookmark.
    #[derive(Debug)]
    pub struct Meta<'a> {
        pub name: Text<'a> = 1,
        pub namespace: Text<'a> = 3,
        pub uid: Text<'a> = 5,
        pub resource_version: Text<'a> = 6,
        pub generation: Int = 7,
        pub creation_timestamp: Time<'a> = 8,
        pub deletion_timestamp: Time<'a> = 9,
        pub deletion_grace_period_seconds: Int = 10,
        pub labels: Pairs<'a> = 11,
        pub owner_references: LenientList<OwnerReference<'a>> = 13,
        pub finalizers: LenientList<Text<'a>> = 14,
        pub annotations: KnownAnnotations<'a> = 12,
        /// Managed fields of a JSON object. Those of a node in protobuf are read from the whole message instead.
        pub managed_fields: UnreadFields<'a>,
    }
}

impl Meta<'_> {
    pub fn key(&self, pool: &mut SharedParts) -> Key {
        Key { namespace: Namespace(pool.name(&self.namespace)), name: (*self.name).into() }
    }

    pub fn node_name(&self, pool: &mut SharedParts) -> NodeName {
        NodeName(pool.name(&self.name))
    }

    pub fn uid(&self) -> Uid {
        Uid::from(&*self.uid)
    }

    pub fn version(&self) -> Version {
        Version::parse(&self.resource_version)
    }

    pub fn created(&self) -> ClusterTime {
        self.creation_timestamp.time().unwrap_or_default()
    }

    /// Returns the deletion's deadline and grace period; `None` if the object is not being deleted.
    pub fn termination(&self) -> Option<Termination> {
        let deadline = self.deletion_timestamp.time()?;
        Some(Termination {
            deadline,
            grace: self.deletion_grace_period_seconds.seconds().unwrap_or_default(),
        })
    }

    /// Returns the owner whose reference is marked as controller.
    pub fn owner(&self, pool: &mut SharedParts) -> Option<Owner> {
        let reference = self.owner_references.iter().find(|reference| reference.controller.0)?;
        Some(Owner {
            kind: reference.owner_kind(pool),
            name: pool.name(&reference.name),
            uid: Uid::from(&*reference.uid),
        })
    }
}

wire! {
    /// One of `metadata.ownerReferences`.
    #[derive(Debug)]
    pub struct OwnerReference<'a> {
        api_version: Text<'a> = 5,
        kind: Text<'a> = 1,
        name: Text<'a> = 3,
        uid: Text<'a> = 4,
        controller: LenientBool = 6,
    }
}

impl OwnerReference<'_> {
    /// Returns the owner's kind. The API group is compared too, because other groups also define kinds named Job or
    /// StatefulSet.
    fn owner_kind(&self, pool: &mut SharedParts) -> OwnerKind {
        let group = self.api_version.split_once('/').map_or("", |(group, _)| group);
        let workload = WorkloadKind::ALL.into_iter().find(|kind| {
            let groups: &[&str] = match kind {
                WorkloadKind::ReplicaSet | WorkloadKind::Deployment | WorkloadKind::DaemonSet => {
                    &["apps", "extensions"]
                }
                WorkloadKind::StatefulSet => &["apps"],
                WorkloadKind::ReplicationController => &[""],
                WorkloadKind::Job => &["batch"],
            };
            *self.kind == *kind.as_str() && groups.contains(&group)
        });
        match workload {
            Some(kind) => OwnerKind::Workload(kind),
            None if *self.kind == *"Node" && group.is_empty() => OwnerKind::Node,
            None => OwnerKind::Other { kind: pool.name(&self.kind), group: Some(pool.name(group)) },
        }
    }
}

/// The annotations that kordon uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownAnnotations<'a> {
    /// The unparsed annotations of a JSON object; empty if it has none. Those of a node in protobuf are read from the
    /// bytes of the whole metadata instead.
    pub json: &'a str,
    /// `kubernetes.io/config.mirror`: the pod mirrors a static pod.
    pub mirror: bool,
    /// `k8s.io/initial-events-end`: the bookmark ends a streamed list.
    pub list_ends: bool,
    /// `kordon.dev/cordon`: who cordoned the node, and why.
    pub cordon: Option<Arc<CordonNote>>,
    /// `kordon.dev/drain`: who is draining the node.
    pub drain: Option<Arc<DrainClaim>>,
    /// `kordon.dev/drained`: the drain that has emptied the node.
    pub drained: Option<Arc<DrainedNote>>,
    /// `kordon.dev/maintenance`: the maintenance that the node is in.
    pub maintenance: Option<Arc<MaintenanceNote>>,
    /// `pv.kubernetes.io/bind-completed`: the claim has its volume.
    pub bound: bool,
    /// `volume.kubernetes.io/selected-node`: the node for which a volume is provisioned.
    pub selected_node: Option<Name>,
    /// `volume.beta.kubernetes.io/storage-class`: the class of a claim or volume, in its old form.
    pub storage_class: Option<Name>,
    /// `resource.kubernetes.io/pod-claim-name`: the entry of the pod's claims for which a ResourceClaim was made.
    pub pod_claim: Option<Name>,
    /// `batch.kubernetes.io/job-index-failure-count` and `batch.kubernetes.io/job-index-ignored-failure-count`: how
    /// often the pod's index of an indexed Job has failed.
    pub index_failures: Option<IndexFailures>,
    /// `karpenter.sh/do-not-disrupt` and `cluster-autoscaler.kubernetes.io/safe-to-evict`: the autoscalers that leave the
    /// pod on its node.
    pub kept_from: KeptFrom,
    /// `weave.works/kured-node-lock`: the nodes that hold kured's lock.
    pub reboot_locks: Vec<RebootLock>,
    /// `kordon.dev/full-disruption`: what the `kordon controller` that holds the Lease does with zones that are down.
    pub full_disruption: Option<Name>,
    /// Annotations by which other projects say what they do with a node ([`ANNOTATIONS`]).
    pub marks: Vec<(Name, Name)>,
}

impl KnownAnnotations<'_> {
    /// Annotations whose value is read. All others are skipped, because they may be long.
    const WITH_VALUE: [&'static str; 13] = [
        CORDON,
        DRAIN,
        DRAINED,
        MAINTENANCE,
        REBOOT_LOCK,
        "volume.kubernetes.io/selected-node",
        "volume.beta.kubernetes.io/storage-class",
        "resource.kubernetes.io/pod-claim-name",
        INDEX_FAILURES,
        IGNORED_INDEX_FAILURES,
        DO_NOT_DISRUPT,
        SAFE_TO_EVICT,
        FULL_DISRUPTION,
    ];

    /// Whether the value of this annotation is read.
    fn reads(key: &str) -> bool {
        Self::WITH_VALUE.contains(&key) || ANNOTATIONS.contains(&key)
    }

    fn set(&mut self, key: &str, value: &str) {
        match key {
            CORDON => self.cordon = CordonNote::parse(value).map(Arc::new),
            DRAIN => self.drain = DrainClaim::parse(value).map(Arc::new),
            DRAINED => self.drained = DrainedNote::parse(value).map(Arc::new),
            MAINTENANCE => self.maintenance = MaintenanceNote::parse(value).map(Arc::new),
            REBOOT_LOCK => self.reboot_locks = RebootLock::parse(value),
            "volume.kubernetes.io/selected-node" => self.selected_node = Some(value.into()),
            "volume.beta.kubernetes.io/storage-class" => self.storage_class = Some(value.into()),
            "resource.kubernetes.io/pod-claim-name" => self.pod_claim = Some(value.into()),
            INDEX_FAILURES => self.index_failures.get_or_insert_default().counted = count(value),
            IGNORED_INDEX_FAILURES => self.index_failures.get_or_insert_default().ignored = count(value),
            DO_NOT_DISRUPT | SAFE_TO_EVICT => self.kept_from.set(key, value),
            FULL_DISRUPTION => self.full_disruption = Some(value.into()),
            "pv.kubernetes.io/bind-completed" => self.bound = true,
            "kubernetes.io/config.mirror" => self.mirror = true,
            "k8s.io/initial-events-end" => self.list_ends = true,
            _ if ANNOTATIONS.contains(&key) => self.marks.push((key.into(), value.into())),
            _ => {}
        }
    }
}

/// Annotation of an indexed Job's pod: how many failures of the pod's index count towards the limit of each index.
const INDEX_FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
/// Annotation of an indexed Job's pod: how many failures of the pod's index a `podFailurePolicy` ignores.
const IGNORED_INDEX_FAILURES: &str = "batch.kubernetes.io/job-index-ignored-failure-count";

/// Reads a number of failures. As in upstream (`parseInt32`), a text that is not a number counts as zero.
fn count(text: &str) -> i32 {
    text.parse::<i32>().map_or(0, |count| count.max(0))
}

impl<'a> ReadField<'a> for KnownAnnotations<'_> {
    fn read(&mut self, value: WireValue<'a>) -> Result<(), NotAMessage> {
        let Some((key, value)) = value.entry()? else { return Ok(()) };
        self.set(key, if Self::reads(key) { value.text()?.unwrap_or_default() } else { "" });
        Ok(())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for KnownAnnotations<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = <&RawValue>::deserialize(deserializer)?.get();
        let known = KnownKeys::deserialize(&mut serde_json::Deserializer::from_str(json));
        let KnownKeys(known) = known.map_err(D::Error::custom)?;
        Ok(Self { json, ..known })
    }
}

/// The known annotations of a JSON object.
struct KnownKeys(KnownAnnotations<'static>);

impl<'de> Deserialize<'de> for KnownKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeysOnly;
        impl<'de> Visitor<'de> for KeysOnly {
            type Value = KnownKeys;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("annotations")
            }
            fn visit_unit<E: Error>(self) -> Result<KnownKeys, E> {
                Ok(KnownKeys(KnownAnnotations::default()))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<KnownKeys, A::Error> {
                let mut marks = KnownAnnotations::default();
                while let Some(key) = map.next_key::<Text<'de>>()? {
                    if KnownAnnotations::reads(&key) {
                        marks.set(&key, &map.next_value::<Text<'de>>()?);
                    } else {
                        map.next_value::<IgnoredAny>()?;
                        marks.set(&key, "");
                    }
                }
                Ok(KnownKeys(marks))
            }
        }
        deserializer.deserialize_any(KeysOnly)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(json: &str) -> Option<Owner> {
        let meta: Meta<'_> = serde_json::from_str(json).expect("metadata");
        meta.owner(&mut SharedParts::default())
    }

    #[test]
    fn the_owner_is_the_controller_and_known_by_group_and_kind() {
        let json = |api: &str, kind: &str| {
            format!(
                r#"{{"ownerReferences":[{{"kind":"Tenant","name":"t","uid":"0"}},
                {{"apiVersion":"{api}","kind":"{kind}","name":"o","uid":"u","controller":true}}]}}"#
            )
        };
        let kind = |api, of| owner(&json(api, of)).expect("an owner").kind;
        assert_eq!(kind("apps/v1", "ReplicaSet"), OwnerKind::Workload(WorkloadKind::ReplicaSet));
        assert_eq!(kind("batch/v1", "Job"), OwnerKind::Workload(WorkloadKind::Job));
        assert_eq!(kind("v1", "Node"), OwnerKind::Node);
        assert_eq!(kind("batch.volcano.sh/v1alpha1", "Job"), OwnerKind::other("Job", "batch.volcano.sh"));
        assert_eq!(owner(r#"{"ownerReferences":null}"#), None);
    }

    fn marks(json: &str) -> KnownAnnotations<'static> {
        serde_json::from_str::<KnownKeys>(json).expect("annotations").0
    }

    #[test]
    fn annotations_are_only_looked_at_for_their_keys() {
        assert!(marks(r#"{"a":"b","kubernetes.io/config.mirror":"h"}"#).mirror);
        assert!(marks(r#"{"k8s.io/initial-events-end":"true"}"#).list_ends);
        assert_eq!(marks("null"), KnownAnnotations::default());
        let text = r#"{\"by\":\"bob\",\"operation\":\"p\",\"renewed\":\"2026-01-02T03:04:05Z\"}"#;
        let marked: KnownAnnotations<'_> =
            marks(&format!(r#"{{"kordon.dev/drain":"{text}","kordon.dev/cordon":"theirs"}}"#));
        assert_eq!((marked.drain.expect("a mark").by.as_str(), marked.cordon), ("bob", None));
        let failures = |text: &str| {
            let job = format!(r#"{{"batch.kubernetes.io/job-index-failure-count":"{text}"}}"#);
            marks(&job).index_failures.map(|failures| failures.counted)
        };
        let kept = |value: &str| {
            marks(&format!(r#"{{"cluster-autoscaler.kubernetes.io/safe-to-evict":"{value}"}}"#)).kept_from
        };
        assert!(kept("false").cluster_autoscaler() && !kept("false").karpenter());
        assert_eq!(kept("true"), KeptFrom::default());
        assert_eq!((failures("2"), failures("-1"), failures("x")), (Some(2), Some(0), Some(0)));
    }
}
