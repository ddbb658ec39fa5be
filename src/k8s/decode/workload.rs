//! The six kinds that own pods, read in the same way.

use std::borrow::Cow;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};

use super::{
    Decoder, WatchEvent, Wire,
    leaf::{Int, LenientList, Pairs, Text, or_default},
    meta::Meta,
    node::WireCondition,
    pool::SharedParts,
    protobuf::{Message, messages},
};
use crate::cluster::{
    Change, Requirement, Selector, SelectorOperator, Workload, WorkloadKind, WorkloadStage,
};

/// Reads workloads of one kind.
#[derive(Debug)]
pub struct WorkloadDecoder {
    kind: WorkloadKind,
    pool: SharedParts,
}

impl WorkloadDecoder {
    pub fn new(kind: WorkloadKind) -> Self {
        Self { kind, pool: SharedParts::default() }
    }

    fn workload(&mut self, wire: &WireWorkload<'_>) -> Workload {
        let WireWorkload { metadata, spec, status } = wire;
        let replicas = match self.kind {
            WorkloadKind::Job => spec.parallelism,
            WorkloadKind::DaemonSet => Int(None),
            WorkloadKind::ReplicaSet
            | WorkloadKind::Deployment
            | WorkloadKind::StatefulSet
            | WorkloadKind::ReplicationController => spec.replicas,
        };
        Workload {
            kind: self.kind,
            key: metadata.key(&mut self.pool),
            uid: metadata.uid(),
            version: metadata.version(),
            replicas: replicas.narrow(),
            selector: spec.selector.as_ref().map(|selector| selector.selector(&mut self.pool)),
            owner: metadata.owner(&mut self.pool),
            replaces_only_failed: *spec.pod_replacement_policy == *"Failed",
            stage: if metadata.termination().is_some() {
                WorkloadStage::Deleting
            } else if self.kind == WorkloadKind::Job && status.is_finished() {
                WorkloadStage::Finished
            } else {
                WorkloadStage::Active
            },
        }
    }
}

impl Decoder for WorkloadDecoder {
    type Wire<'a> = WireWorkload<'a>;

    fn message(&self) -> Message {
        match self.kind {
            WorkloadKind::ReplicaSet | WorkloadKind::Deployment | WorkloadKind::StatefulSet => {
                messages::REPLICATED
            }
            WorkloadKind::ReplicationController => messages::REPLICATION_CONTROLLER,
            WorkloadKind::DaemonSet => messages::DAEMON_SET,
            WorkloadKind::Job => messages::JOB,
        }
    }

    fn change(&mut self, event: WatchEvent<WireWorkload<'_>>) -> Option<Change> {
        Some(Change::Workload(self.kind, event.map(|wire| self.workload(&wire))))
    }

    fn tidy(&mut self) {
        self.pool.tidy();
    }
}

/// A workload on the wire; the kinds differ in the spec's fields that they have.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct WireWorkload<'a> {
    #[serde(borrow, deserialize_with = "or_default")]
    metadata: Meta<'a>,
    #[serde(borrow, deserialize_with = "or_default")]
    spec: Spec<'a>,
    #[serde(borrow, deserialize_with = "or_default")]
    status: Status<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status<'a> {
    #[serde(borrow)]
    conditions: LenientList<WireCondition<'a>>,
}

impl Status<'_> {
    /// Of a Job: whether it is complete or has failed.
    fn is_finished(&self) -> bool {
        let ends = |kind: &str| kind == "Complete" || kind == "Failed";
        self.conditions.iter().any(|condition| ends(&condition.kind) && *condition.status == *"True")
    }
}

impl Wire for WireWorkload<'_> {
    fn meta(&self) -> &Meta<'_> {
        &self.metadata
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec<'a> {
    replicas: Int,
    parallelism: Int,
    #[serde(borrow)]
    selector: Option<WireSelector<'a>>,
    #[serde(borrow)]
    pod_replacement_policy: Text<'a>,
}

/// A label selector: `matchLabels` and `matchExpressions`, or (of a ReplicationController) the labels themselves.
#[derive(Default)]
pub(super) struct WireSelector<'a> {
    labels: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    expressions: Vec<WireRequirement<'a>>,
}

impl WireSelector<'_> {
    pub(super) fn selector(&self, pool: &mut SharedParts) -> Selector {
        let mut requirements = Vec::with_capacity(self.labels.len() + self.expressions.len());
        for (key, value) in &self.labels {
            let operator = SelectorOperator::In(vec![pool.name(value)]);
            requirements.push(Requirement { key: pool.name(key), operator });
        }
        requirements.extend(self.expressions.iter().map(|wire| wire.of_selector(pool)));
        Selector { requirements }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for WireSelector<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = WireSelector<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a label selector")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut selector = WireSelector::default();
                while let Some(key) = map.next_key::<Text<'de>>()? {
                    match &*key {
                        "matchLabels" => selector.labels.append(&mut map.next_value::<Pairs<'de>>()?.0),
                        "matchExpressions" => selector.expressions = map.next_value::<LenientList<_>>()?.0,
                        _ => selector.labels.push((key.0, map.next_value::<Text<'de>>()?.0)),
                    }
                }
                Ok(selector)
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

/// A requirement on a label, by a selector or by a node affinity: each has its own operators.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct WireRequirement<'a> {
    #[serde(borrow)]
    pub(super) key: Text<'a>,
    #[serde(borrow)]
    pub(super) operator: Text<'a>,
    #[serde(borrow)]
    pub(super) values: LenientList<Text<'a>>,
}

impl WireRequirement<'_> {
    fn of_selector(&self, pool: &mut SharedParts) -> Requirement {
        let mut values = || self.values.iter().map(|value| pool.name(value)).collect();
        let operator = match &*self.operator {
            "In" => SelectorOperator::In(values()),
            "NotIn" => SelectorOperator::NotIn(values()),
            "Exists" => SelectorOperator::Exists,
            "DoesNotExist" => SelectorOperator::DoesNotExist,
            _ => SelectorOperator::Invalid,
        };
        Requirement { key: pool.name(&self.key), operator }
    }
}
