//! The six kinds of objects that own pods. All of them are read in the same way.

use serde::Deserialize;

use super::{
    Decoder, WatchEvent, has_metadata,
    leaf::{Int, Ints, LenientBool, LenientList, Text, Time, or_default},
    meta::Meta,
    node::WireCondition,
    pod::{WirePod, template},
    pool::SharedParts,
    protobuf::{Message, NotAMessage, ReadField, WireValue, message, wire},
    selector::WireSelector,
};
use kordon_core::cluster::{
    Change, ExitCodes, JobLimits, Pod, PodFailureAction, PodFailureRule, RebootLock, StatefulRules, Uid,
    Workload, WorkloadKind, WorkloadStage, count_indexes,
};
use kordon_time::Span;

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

    fn workload(&mut self, mut wire: WireWorkload<'_>) -> Workload {
        let template = self.template(&mut wire.spec);
        let WireWorkload { kind: _, metadata, spec, status } = &wire;
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
            template,
            stateful: (self.kind == WorkloadKind::StatefulSet)
                .then(|| stateful(spec, status, &mut self.pool)),
            is_recreated: *spec.strategy.kind == *"Recreate",
            reboot_locks: self.reboot_locks(metadata),
            job: (self.kind == WorkloadKind::Job).then(|| Box::new(job(spec, status, &mut self.pool))),
        }
    }
}

/// The order and revisions of a StatefulSet.
fn stateful(spec: &Spec<'_>, status: &Status<'_>, pool: &mut SharedParts) -> StatefulRules {
    let WireUpdateStrategy { kind, rolling_update } = &spec.update_strategy;
    let has_one_revision = *status.current_revision == *status.update_revision;
    let start = spec.ordinals.start.narrow().unwrap_or_default();
    let kept = match rolling_update {
        _ if has_one_revision || **kind == *"OnDelete" => 0,
        Some(rolling_update) => rolling_update.partition.narrow().unwrap_or_default(),
        None => status.current_replicas.narrow().unwrap_or_default(),
    };
    StatefulRules {
        is_parallel: *spec.pod_management_policy == *"Parallel",
        keeps_revision_below: if kept > 0 { start.saturating_add(kept) } else { 0 },
        start: Some(start),
        min_ready: spec.min_ready_seconds.seconds().unwrap_or(Span::ZERO),
        update_revision: (!status.update_revision.is_empty()).then(|| pool.name(&status.update_revision)),
    }
}

/// The limits and counts of a Job.
fn job(spec: &Spec<'_>, status: &Status<'_>, pool: &mut SharedParts) -> JobLimits {
    const BUILT_IN: &str = "kubernetes.io/job-controller";
    let managed_by = Some(&*spec.managed_by).filter(|manager| !manager.is_empty() && *manager != BUILT_IN);
    // The API server's default of `backoffLimit`; unlimited if each index has a limit of its own.
    let default = if spec.backoff_limit_per_index.0.is_some() { i32::MAX } else { 6 };
    JobLimits {
        completions: spec.completions.narrow(),
        backoff_limit: spec.backoff_limit.narrow().unwrap_or(default),
        backoff_limit_per_index: spec.backoff_limit_per_index.narrow(),
        max_failed_indexes: spec.max_failed_indexes.narrow(),
        is_suspended: spec.suspend.0,
        managed_by: managed_by.map(|manager| pool.name(manager)),
        deadline: status
            .start_time
            .time()
            .and_then(|started| Some(started + spec.active_deadline_seconds.seconds()?)),
        rules: spec.pod_failure_policy.rules.iter().map(WireFailureRule::rule).collect(),
        succeeded: status.succeeded.narrow().unwrap_or_default(),
        failed: status.failed.narrow().unwrap_or_default(),
        uncounted_failed: status
            .uncounted_terminated_pods
            .failed
            .iter()
            .map(|uid| Uid::from(&**uid))
            .collect(),
        completed_indexes: count_indexes(&status.completed_indexes),
        failed_indexes: count_indexes(&status.failed_indexes),
        failure: status.condition(&["Failed", "FailureTarget"]).map(|condition| pool.name(&condition.reason)),
    }
}

impl WorkloadDecoder {
    /// Returns kured's locks; empty unless the workload is a DaemonSet.
    fn reboot_locks(&self, metadata: &Meta<'_>) -> Vec<RebootLock> {
        match self.kind {
            WorkloadKind::DaemonSet => metadata.annotations.reboot_locks.clone(),
            WorkloadKind::ReplicaSet
            | WorkloadKind::Deployment
            | WorkloadKind::StatefulSet
            | WorkloadKind::ReplicationController
            | WorkloadKind::Job => Vec::new(),
        }
    }

    /// Reads the pod template. Returns `None` if the workload wants no pods, or if it is a Deployment, because its
    /// ReplicaSets create the pods.
    fn template(&mut self, spec: &mut Spec<'_>) -> Option<Box<Pod>> {
        let creates_pods = self.kind != WorkloadKind::Deployment && spec.replicas.0 != Some(0);
        let wire = spec.template.as_deref_mut().filter(|_| creates_pods)?;
        Some(Box::new(template(wire, &mut self.pool)))
    }
}

impl Decoder for WorkloadDecoder {
    type Wire<'a> = WireWorkload<'a>;

    fn blank<'a>(&self) -> WireWorkload<'a> {
        WireWorkload { kind: Some(self.kind), ..WireWorkload::default() }
    }

    fn change(&mut self, event: WatchEvent<WireWorkload<'_>>) -> Option<Change> {
        Some(Change::Workload(self.kind, event.map(|wire| self.workload(wire))))
    }

    fn tidy(&mut self) {
        self.pool.tidy();
    }
}

/// A workload on the wire. The kinds of workloads differ only in the fields of their specs.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct WireWorkload<'a> {
    /// Kind of the workload, which determines the field numbers of its spec in protobuf; `None` in JSON.
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
            3 => value.each_field(|number, value| status.field_of(*kind, number, value)),
            _ => Ok(()),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status<'a> {
    #[serde(borrow)]
    conditions: LenientList<WireCondition<'a>>,
    #[serde(borrow)]
    start_time: Time<'a>,
    succeeded: Int,
    failed: Int,
    #[serde(borrow, deserialize_with = "or_default")]
    uncounted_terminated_pods: WireUncounted<'a>,
    #[serde(borrow)]
    completed_indexes: Text<'a>,
    #[serde(borrow)]
    failed_indexes: Text<'a>,
    current_replicas: Int,
    #[serde(borrow)]
    current_revision: Text<'a>,
    #[serde(borrow)]
    update_revision: Text<'a>,
}

impl<'a> Status<'a> {
    /// Reads a field of the status in protobuf. The numbers of the fields depend on the kind of workload.
    fn field_of(
        &mut self,
        kind: Option<WorkloadKind>,
        number: u64,
        value: WireValue<'a>,
    ) -> Result<(), NotAMessage> {
        match (kind, number) {
            (Some(WorkloadKind::Job), 1) => self.conditions.read(value),
            (Some(WorkloadKind::Job), 2) => self.start_time.read(value),
            (Some(WorkloadKind::Job), 5) => self.succeeded.read(value),
            (Some(WorkloadKind::Job), 6) => self.failed.read(value),
            (Some(WorkloadKind::Job), 7) => self.completed_indexes.read(value),
            (Some(WorkloadKind::Job), 8) => self.uncounted_terminated_pods.read(value),
            (Some(WorkloadKind::Job), 10) => self.failed_indexes.read(value),
            (Some(WorkloadKind::StatefulSet), 4) => self.current_replicas.read(value),
            (Some(WorkloadKind::StatefulSet), 6) => self.current_revision.read(value),
            (Some(WorkloadKind::StatefulSet), 7) => self.update_revision.read(value),
            (_, _) => Ok(()),
        }
    }

    /// Whether a Job is complete or has failed, or will be as soon as its pods have ended.
    fn is_finished(&self) -> bool {
        self.condition(&["Complete", "SuccessCriteriaMet", "Failed", "FailureTarget"]).is_some()
    }

    /// Returns the first condition of one of these types whose status is True.
    fn condition(&self, types: &[&str]) -> Option<&WireCondition<'_>> {
        let is_meant = |condition: &&WireCondition<'_>| {
            types.contains(&&*condition.kind) && *condition.status == *"True"
        };
        self.conditions.iter().find(is_meant)
    }
}

has_metadata!(WireWorkload);

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec<'a> {
    replicas: Int,
    parallelism: Int,
    #[serde(borrow)]
    selector: Option<WireSelector<'a>>,
    #[serde(borrow)]
    pod_replacement_policy: Text<'a>,
    completions: Int,
    active_deadline_seconds: Int,
    backoff_limit: Int,
    suspend: LenientBool,
    #[serde(borrow, deserialize_with = "or_default")]
    pod_failure_policy: WireFailurePolicy<'a>,
    backoff_limit_per_index: Int,
    max_failed_indexes: Int,
    #[serde(borrow)]
    managed_by: Text<'a>,
    #[serde(borrow)]
    pod_management_policy: Text<'a>,
    min_ready_seconds: Int,
    #[serde(borrow, deserialize_with = "or_default")]
    update_strategy: WireUpdateStrategy<'a>,
    #[serde(borrow, deserialize_with = "or_default")]
    strategy: WireStrategy<'a>,
    #[serde(deserialize_with = "or_default")]
    ordinals: WireOrdinals,
    #[serde(borrow)]
    template: Option<Box<WirePod<'a>>>,
}

wire! {
    struct WireUncounted<'a> {
        failed: LenientList<Text<'a>> = 2,
    }
}

wire! {
    struct WireUpdateStrategy<'a> {
        #[serde(rename = "type")]
        kind: Text<'a> = 1,
        rolling_update: Option<WireRollingUpdate> = 2,
    }
}

wire! {
    /// The strategy of a Deployment.
    struct WireStrategy<'a> {
        #[serde(rename = "type")]
        kind: Text<'a> = 1,
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireRollingUpdate {
    partition: Int,
}

message! {
    impl<'a> WireRollingUpdate {
        1 => partition,
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireOrdinals {
    start: Int,
}

message! {
    impl<'a> WireOrdinals {
        1 => start,
    }
}

wire! {
    struct WireFailurePolicy<'a> {
        rules: LenientList<WireFailureRule<'a>> = 1,
    }
}

wire! {
    struct WireFailureRule<'a> {
        action: Text<'a> = 1,
        on_exit_codes: Option<WireExitCodes<'a>> = 2,
        on_pod_conditions: LenientList<WirePodCondition<'a>> = 3,
    }
}

wire! {
    struct WireExitCodes<'a> {
        container_name: Text<'a> = 1,
        operator: Text<'a> = 2,
        values: Ints = 3,
    }
}

wire! {
    struct WirePodCondition<'a> {
        r#type: Text<'a> = 1,
        status: Text<'a> = 2,
    }
}

impl WireFailureRule<'_> {
    fn rule(&self) -> PodFailureRule {
        let is_disruption = |condition: &WirePodCondition<'_>| {
            *condition.r#type == *"DisruptionTarget" && matches!(&*condition.status, "True" | "")
        };
        PodFailureRule {
            action: match &*self.action {
                "Ignore" => PodFailureAction::Ignore,
                "FailIndex" => PodFailureAction::FailIndex,
                "FailJob" => PodFailureAction::FailJob,
                _ => PodFailureAction::Count,
            },
            on_disruption: self.on_pod_conditions.iter().any(is_disruption),
            on_exit_codes: self.on_exit_codes.as_ref().map(|codes| ExitCodes {
                is_in: *codes.operator == *"In",
                values: codes.values.0.iter().filter_map(|value| Int(Some(*value)).narrow()).collect(),
                container: (!codes.container_name.is_empty()).then(|| (&*codes.container_name).into()),
            }),
        }
    }
}

impl<'a> Spec<'a> {
    /// Reads a field of the spec in protobuf. The numbers of the fields depend on the kind of workload.
    fn field_of(
        &mut self,
        kind: Option<WorkloadKind>,
        number: u64,
        value: WireValue<'a>,
    ) -> Result<(), NotAMessage> {
        match (kind, number) {
            (None, _) => Ok(()),
            (Some(WorkloadKind::Job), 1) => self.parallelism.read(value),
            (Some(WorkloadKind::Job), 2) => self.completions.read(value),
            (Some(WorkloadKind::Job), 3) => self.active_deadline_seconds.read(value),
            (Some(WorkloadKind::Job), 6) | (Some(WorkloadKind::DaemonSet), 2) => {
                self.template.get_or_insert_default().read(value)
            }
            (Some(WorkloadKind::Job), 7) => self.backoff_limit.read(value),
            (Some(WorkloadKind::Job), 10) => self.suspend.read(value),
            (Some(WorkloadKind::Job), 11) => self.pod_failure_policy.read(value),
            (Some(WorkloadKind::Job), 12) => self.backoff_limit_per_index.read(value),
            (Some(WorkloadKind::Job), 13) => self.max_failed_indexes.read(value),
            (Some(WorkloadKind::Job), 14) => self.pod_replacement_policy.read(value),
            (Some(WorkloadKind::Job), 15) => self.managed_by.read(value),
            (Some(WorkloadKind::Job), 4) | (Some(WorkloadKind::DaemonSet), 1) => self.selector.read(value),
            (Some(WorkloadKind::Job | WorkloadKind::DaemonSet), _) => Ok(()),
            (Some(WorkloadKind::StatefulSet), 6) => self.pod_management_policy.read(value),
            (Some(WorkloadKind::StatefulSet), 7) => self.update_strategy.read(value),
            (Some(WorkloadKind::StatefulSet), 9) => self.min_ready_seconds.read(value),
            (Some(WorkloadKind::StatefulSet), 11) => self.ordinals.read(value),
            (Some(WorkloadKind::Deployment), 4) => self.strategy.read(value),
            (Some(_), 1) => self.replicas.read(value),
            (Some(WorkloadKind::ReplicationController), 2) => {
                self.selector.get_or_insert_default().labels.read(value)
            }
            (Some(_), 2) => self.selector.read(value),
            (Some(_), 3) => self.template.get_or_insert_default().read(value),
            (Some(_), _) => Ok(()),
        }
    }
}
