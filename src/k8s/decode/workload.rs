//! The six kinds that own pods, read in the same way.

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};

use super::{
    Decoder, WatchEvent, Wire,
    leaf::{Int, LenientList, Pairs, PairsOrText, Text, or_default},
    meta::Meta,
    node::WireCondition,
    pool::SharedParts,
    protobuf::{Message, NotAMessage, ReadField, WireValue, message, wire},
};
use kordon_core::cluster::{
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
        let WireWorkload { kind: _, metadata, spec, status } = wire;
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

    fn blank<'a>(&self) -> WireWorkload<'a> {
        WireWorkload { kind: Some(self.kind), ..WireWorkload::default() }
    }

    fn change(&mut self, event: WatchEvent<WireWorkload<'_>>) -> Option<Change> {
        Some(Change::Workload(self.kind, event.map(|wire| self.workload(&wire))))
    }

    fn tidy(&mut self) {
        self.pool.tidy();
    }
}

/// A workload on the wire; the kinds differ in the fields of their specs.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct WireWorkload<'a> {
    /// Kind of an object in protobuf, which determines its field numbers.
    #[serde(skip)]
    kind: Option<WorkloadKind>,
    #[serde(borrow, deserialize_with = "or_default")]
    metadata: Meta<'a>,
    #[serde(borrow, deserialize_with = "or_default")]
    spec: Spec<'a>,
    #[serde(borrow, deserialize_with = "or_default")]
    status: Status<'a>,
}

impl<'a> Message<'a> for WireWorkload<'a> {
    fn field(&mut self, number: u64, value: WireValue<'a>) -> Result<(), NotAMessage> {
        let Self { kind, metadata, spec, status } = self;
        match number {
            1 => metadata.read(value),
            2 => value.each_field(|number, value| spec.field_of(*kind, number, value)),
            3 if *kind == Some(WorkloadKind::Job) => status.read(value),
            _ => Ok(()),
        }
    }
}

wire! {
    struct Status<'a> {
        conditions: LenientList<WireCondition<'a>> = 1,
    }
}

impl Status<'_> {
    /// Whether a Job is complete or has failed.
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

impl<'a> Spec<'a> {
    /// Reads a spec field in protobuf, whose number depends on the kind.
    fn field_of(
        &mut self,
        kind: Option<WorkloadKind>,
        number: u64,
        value: WireValue<'a>,
    ) -> Result<(), NotAMessage> {
        match (kind, number) {
            (None, _) => Ok(()),
            (Some(WorkloadKind::Job), 1) => self.parallelism.read(value),
            (Some(WorkloadKind::Job), 14) => self.pod_replacement_policy.read(value),
            (Some(WorkloadKind::Job), 4) | (Some(WorkloadKind::DaemonSet), 1) => self.selector.read(value),
            (Some(WorkloadKind::Job | WorkloadKind::DaemonSet), _) => Ok(()),
            (Some(_), 1) => self.replicas.read(value),
            (Some(WorkloadKind::ReplicationController), 2) => {
                self.selector.get_or_insert_default().labels.read(value)
            }
            (Some(_), 2) => self.selector.read(value),
            (Some(_), _) => Ok(()),
        }
    }
}

/// A label selector: `matchLabels` and `matchExpressions`, or the labels themselves in a ReplicationController.
#[derive(Default)]
pub(super) struct WireSelector<'a> {
    labels: Pairs<'a>,
    expressions: LenientList<WireRequirement<'a>>,
}

message! { impl<'a> WireSelector<'a> { 1 => labels, 2 => expressions } }

impl WireSelector<'_> {
    pub(super) fn selector(&self, pool: &mut SharedParts) -> Selector {
        let mut requirements = Vec::with_capacity(self.labels.0.len() + self.expressions.len());
        for (key, value) in &self.labels.0 {
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
                        "matchLabels" => match map.next_value()? {
                            PairsOrText::Absent => {}
                            PairsOrText::Pairs(mut labels) => selector.labels.0.append(&mut labels.0),
                            // In a ReplicationController, this is a label named `matchLabels`.
                            PairsOrText::Text(value) => selector.labels.0.push((key.0, value)),
                        },
                        "matchExpressions" => selector.expressions = map.next_value()?,
                        _ => selector.labels.0.push((key.0, map.next_value::<Text<'de>>()?.0)),
                    }
                }
                Ok(selector)
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

wire! {
    /// A requirement on a label, in a selector or a node affinity; they have different operators.
    pub(super) struct WireRequirement<'a> {
        pub(super) key: Text<'a> = 1,
        pub(super) operator: Text<'a> = 2,
        pub(super) values: LenientList<Text<'a>> = 3,
    }
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
