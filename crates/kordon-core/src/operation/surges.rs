//! Deployments that are scaled up before their pods are evicted, and back afterwards.
//!
//! A Deployment is read before each write, and each write fails if the Deployment has changed since. It is scaled up
//! when the drain of the first node with its pods starts, and back as soon as none of its pods is left to evict,
//! because each has been evicted or given up, or because the operation was cancelled or has failed.

use super::{
    Operation, RequestKind, RequestOutcome, Severity, Subject, SurgeProgressStage, backoff,
    report::SurgeProgress, request::DeploymentScale, tasks::TaskIndex,
};
use crate::{
    cluster::{ClaimedSurge, Cluster, Uid, Version, WorkloadKind},
    plan::{
        Plan, PlanStep, Surge, owner,
        undo::{ScaleUndo, WriteUndo},
        words,
    },
};
use kordon_time::{Span, Timestamp};

/// A Deployment that the operation scales up and back (a surge), with the progress of the surge.
#[derive(Clone, Debug)]
pub(super) struct SurgeTask {
    surge: Surge,
    stage: SurgeProgressStage,
    request: SurgeRequest,
    /// Whether a write that scales the Deployment up has been sent. It may have taken effect, even without a response.
    is_sent: bool,
    /// Dry run: the write that scales the Deployment up is recorded instead of being sent, so no new pod appears.
    is_recorded: bool,
    tries: u32,
}

/// The latest request of a surge: a read of the Deployment or a write to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SurgeRequest {
    None,
    /// The request has failed, and is sent again at this time.
    Again(Timestamp),
    Reading,
    Writing,
}

pub(super) type SurgeIndex = TaskIndex<SurgeTask>;

/// Maximum number of attempts to read and write a Deployment.
const TRIES: u32 = 10;

/// Delay after a conflict. The Deployment controller writes the status of a Deployment often while its pods change.
const CONFLICT: Span = Span::from_millis(100);

impl SurgeTask {
    const fn new(surge: Surge) -> Self {
        let (stage, request) = (SurgeProgressStage::Waiting, SurgeRequest::None);
        Self { surge, stage, request, is_sent: false, is_recorded: false, tries: 0 }
    }

    /// Resumes the surge of an interrupted operation. The server shows whether the interrupted run has scaled the
    /// Deployment.
    fn adopted(undo: &ScaleUndo) -> Self {
        let ScaleUndo { deployment, uid, before, .. } = undo.clone();
        let surge = Surge { deployment, uid, version: Version(0), replicas: before };
        Self { is_sent: true, ..Self::new(surge) }
    }

    /// Returns true if nothing is left to do for the surge.
    pub(super) const fn is_settled(&self) -> bool {
        match self.stage {
            SurgeProgressStage::Waiting | SurgeProgressStage::ScaledUp => false,
            SurgeProgressStage::ScaledBack
            | SurgeProgressStage::Recorded
            | SurgeProgressStage::NotScaled(_)
            | SurgeProgressStage::LeftAlone(_)
            | SurgeProgressStage::Stranded(_) => true,
        }
    }

    pub(super) const fn is_stranded(&self) -> bool {
        matches!(self.stage, SurgeProgressStage::Stranded(_))
    }

    /// When a failed request of the surge is sent again; `None` if none has failed.
    pub(super) fn wakes_at(&self) -> Option<Timestamp> {
        match self.request {
            SurgeRequest::Again(at) => Some(at),
            SurgeRequest::None | SurgeRequest::Reading | SurgeRequest::Writing => None,
        }
    }

    /// Withdraws the surge's request, which has not been sent.
    pub(super) fn withdraw(&mut self) {
        self.request = SurgeRequest::None;
    }

    const fn is_up(&self) -> bool {
        matches!(self.stage, SurgeProgressStage::ScaledUp)
    }

    fn subject(&self) -> String {
        format!("deployment/{}", self.surge.deployment)
    }

    fn undo(&self) -> ScaleUndo {
        let Surge { deployment, uid, replicas, .. } = self.surge.clone();
        ScaleUndo { deployment, uid, before: replicas, after: self.surge.raised() }
    }

    pub(super) fn progress(&self) -> SurgeProgress {
        SurgeProgress {
            deployment: self.surge.deployment.clone(),
            replicas: (self.surge.replicas, self.surge.raised()),
            stage: self.stage.clone(),
        }
    }
}

impl Operation {
    /// Adds the surges of a plan, and the Deployments that an interrupted run may have left scaled up.
    pub(super) fn add_surges(&mut self, plan: &Plan) {
        for surge in plan.surges.iter().filter_map(|plan| plan.surge()) {
            self.surges.push(SurgeTask::new(surge.clone()));
        }
        for left in self.options.prior.surges.clone() {
            self.adopt(&left);
        }
    }

    /// Scales back the Deployments that the undone operation may have left scaled up.
    pub(super) fn add_scaled(&mut self, scales: &[ScaleUndo]) {
        scales.iter().for_each(|left| self.adopt(left));
    }

    fn adopt(&mut self, left: &ScaleUndo) {
        if !self.surges.iter().any(|task| task.surge.uid == left.uid) {
            self.surges.push(SurgeTask::adopted(left));
        }
    }

    /// Takes over the Deployments that another drain has scaled up, because its claim has expired or is taken over. If
    /// this drain may not scale Deployments up, only warns the operator about them.
    pub(super) fn take_over_surges(&mut self, surges: Vec<ClaimedSurge>, now: Timestamp) {
        for ClaimedSurge { deployment, uid, replicas } in surges {
            if self.drain.surge {
                let after = replicas.saturating_add(1);
                self.adopt(&ScaleUndo { deployment, uid, before: replicas, after });
            } else {
                let before = words::replicas(replicas);
                let text = format!(
                    "that drain may have scaled it up from {before}: --surge sees to it, or scale it back"
                );
                self.notify(now, Severity::Warning, format!("deployment/{deployment}"), text);
            }
        }
    }

    /// The Deployments whose surges have not ended, as this operation writes them into its claims on nodes.
    pub(super) fn claimed_surges(&self) -> Vec<ClaimedSurge> {
        let open = self.surges.iter().filter(|task| !task.is_settled());
        let claimed = |task: &SurgeTask| {
            let Surge { deployment, uid, replicas, .. } = task.surge.clone();
            ClaimedSurge { deployment, uid, replicas }
        };
        open.map(claimed).collect()
    }

    /// Assigns each pod its surge. Pods without a surge are evicted at once.
    pub(super) fn assign_surges(&mut self, cluster: &Cluster) {
        if self.surges.iter().next().is_none() {
            return;
        }
        for pod in self.pods.indices() {
            let Some(known) = cluster.pod(&self.pods[pod].key) else { continue };
            let deployment = owner::workload(cluster, known).map(|workload| workload.uid.clone());
            let is_of = |task: &SurgeTask| Some(&task.surge.uid) == deployment.as_ref();
            self.pods[pod].surge = self.surges.position(is_of);
        }
    }

    /// Whether the eviction of a pod with this surge waits until its Deployment is scaled up.
    pub(super) fn holds_for_surge(&self, surge: Option<SurgeIndex>) -> bool {
        let surge = surge.map(|surge| &self.surges[surge]);
        surge.is_some_and(|task| task.stage == SurgeProgressStage::Waiting)
    }

    /// Sends the requests of surges that are due.
    pub(super) fn advance_surges(&mut self, now: Timestamp) {
        if self.paused.is_some() {
            return;
        }
        for place in self.surges.indices() {
            let task = &mut self.surges[place];
            if matches!(task.request, SurgeRequest::Again(at) if at <= now) {
                task.request = SurgeRequest::None;
            }
            if task.request == SurgeRequest::None && !task.is_settled() && self.is_next_of_surge(place) {
                self.read_scale(place, now);
            }
        }
    }

    /// Whether a surge has to scale its Deployment now: up if a node with its pods is drained, back if none of its pods
    /// is left to evict.
    fn is_next_of_surge(&self, place: SurgeIndex) -> bool {
        let task = &self.surges[place];
        if self.is_over(place) {
            // Scale the Deployment back if it is or may be scaled up. Otherwise nothing is left to do.
            return task.is_up() || task.is_sent;
        }
        !task.is_up() && self.has_running_pods(place)
    }

    /// Returns true once no pod of the surge's Deployment is left to evict.
    fn is_over(&self, place: SurgeIndex) -> bool {
        self.pods.iter().filter(|pod| pod.surge == Some(place)).all(|pod| pod.is_past_eviction())
    }

    fn has_running_pods(&self, place: SurgeIndex) -> bool {
        let mut pods = self.pods.iter().filter(|pod| pod.surge == Some(place));
        pods.any(|pod| !pod.is_past_eviction() && self.groups[pod.group].is_running())
    }

    fn read_scale(&mut self, place: SurgeIndex, now: Timestamp) {
        let task = &mut self.surges[place];
        task.request = SurgeRequest::Reading;
        task.tries += 1;
        let read = RequestKind::ReadScale { deployment: task.surge.deployment.clone() };
        let why = self.because("before scaling");
        self.send(Subject::Surge(place), read, why, None, now);
    }

    /// Handles the outcome of a read of the Deployment or of a write to it.
    pub(super) fn on_surge(
        &mut self,
        cluster: &Cluster,
        place: SurgeIndex,
        outcome: RequestOutcome,
        now: Timestamp,
    ) {
        let is_read = self.surges[place].request == SurgeRequest::Reading;
        self.surges[place].request = SurgeRequest::None;
        match outcome {
            RequestOutcome::Scale(seen) => self.on_scale_read(place, &seen, now),
            RequestOutcome::Recorded if is_read => {
                let seen = recorded(cluster, &self.surges[place]);
                self.on_scale_read(place, &seen, now);
            }
            RequestOutcome::Recorded | RequestOutcome::Done => self.on_scaled(place, &outcome, now),
            RequestOutcome::Gone => self.settle_surge(place, "it is gone".into(), now),
            RequestOutcome::OtherObject => {
                self.settle_surge(place, "another Deployment has its name now".into(), now);
            }
            RequestOutcome::Forbidden(text) | RequestOutcome::Refused(text) => {
                self.give_up_surge(place, text, now);
            }
            RequestOutcome::Conflict => self.try_surge_again(place, CONFLICT, "has changed since", now),
            RequestOutcome::Overloaded { retry_after } => {
                let wait = retry_after.unwrap_or_default();
                self.try_surge_again(place, wait, "the server is overloaded", now);
            }
            RequestOutcome::Failed(text) | RequestOutcome::Unreachable(text) => {
                self.try_surge_again(place, Span::ZERO, &text, now);
            }
            RequestOutcome::NoResponse => self.try_surge_again(place, Span::ZERO, "no response", now),
            RequestOutcome::Node(_)
            | RequestOutcome::Pods(_)
            | RequestOutcome::BudgetExhausted(_)
            | RequestOutcome::BudgetStale { .. }
            | RequestOutcome::NamespaceTerminating => {
                self.give_up_surge(place, "unexpected response".into(), now);
            }
        }
        self.release_waiting(now);
    }

    /// Decides from the scale of a Deployment what to write.
    fn on_scale_read(&mut self, place: SurgeIndex, seen: &DeploymentScale, now: Timestamp) {
        let (is_over, task) = (self.is_over(place), &mut self.surges[place]);
        let (before, raised) = (task.surge.replicas, task.surge.raised());
        if seen.uid != task.surge.uid {
            return self.settle_surge(place, "another Deployment has its name now".into(), now);
        }
        match (is_over, seen.replicas) {
            // The Deployment is already scaled up: by a write whose response was lost, or by an interrupted run.
            (false, replicas) if replicas == raised && task.is_sent => {
                task.stage = SurgeProgressStage::ScaledUp;
                task.tries = 0;
                let text = format!("scaled up to {raised} replicas before its pods leave");
                self.notify(now, Severity::Info, self.surges[place].subject(), text);
            }
            (false, replicas) if replicas == before => match &seen.autoscaler {
                Some(name) => {
                    let why = format!("autoscaler {name} would scale it back");
                    self.settle_surge(place, why, now);
                }
                None => self.scale(place, seen.version, raised, now),
            },
            (true, replicas) if replicas == raised => {
                task.stage = SurgeProgressStage::ScaledUp;
                self.scale(place, seen.version, before, now);
            }
            (true, replicas) if replicas == before => {
                task.stage = match task.is_up() {
                    true => SurgeProgressStage::ScaledBack,
                    false => SurgeProgressStage::NotScaled("nothing was written".into()),
                };
            }
            (_, replicas) => {
                let why = format!("somebody has scaled it to {}", words::replicas(replicas));
                self.settle_surge(place, why, now);
            }
        }
    }

    fn scale(&mut self, place: SurgeIndex, version: Version, replicas: i32, now: Timestamp) {
        let task = &mut self.surges[place];
        task.request = SurgeRequest::Writing;
        let is_up = replicas == task.surge.raised();
        task.is_sent |= is_up;
        let Surge { deployment, uid, .. } = task.surge.clone();
        let step = PlanStep::Scale { deployment, uid, version: Some(version), replicas };
        let undo = is_up.then(|| WriteUndo::Scale(task.undo()));
        let why = match is_up {
            true => "its budget can never allow an eviction",
            false => "its pods have left, or are given up",
        };
        let why = self.because(why);
        self.send(Subject::Surge(place), RequestKind::Write(step), why, undo, now);
    }

    fn on_scaled(&mut self, place: SurgeIndex, outcome: &RequestOutcome, now: Timestamp) {
        let is_recorded = *outcome == RequestOutcome::Recorded;
        let task = &mut self.surges[place];
        let (before, raised) = (task.surge.replicas, task.surge.raised());
        task.tries = 0;
        task.is_recorded = is_recorded;
        let text = match task.stage {
            SurgeProgressStage::Waiting => {
                task.stage = SurgeProgressStage::ScaledUp;
                format!(
                    "scaled up from {before} to {raised} replicas: its pods leave once the new one is Ready"
                )
            }
            _ if is_recorded => {
                task.stage = SurgeProgressStage::Recorded;
                format!("scaled back to {}", words::replicas(before))
            }
            _ => {
                task.stage = SurgeProgressStage::ScaledBack;
                format!("scaled back to {}", words::replicas(before))
            }
        };
        let subject = task.subject();
        self.notify(now, Severity::Info, subject, text);
    }

    /// Makes the pods of scaled-up Deployments wait for their budgets before the first attempt to evict them.
    fn release_waiting(&mut self, now: Timestamp) {
        for pod in self.pods.indices() {
            let Some(surge) = self.pods[pod].surge.map(|surge| &self.surges[surge]) else { continue };
            let is_running = self.groups[self.pods[pod].group].is_running();
            if surge.is_up() && !surge.is_recorded && is_running && self.pods[pod].tries == 0 {
                let why = format!("waits for the new pod of Deployment {}", surge.surge.deployment);
                self.wait_for_surge(pod, &why, now);
            }
        }
    }

    /// Ends a surge because its Deployment is not as expected. Leaves the Deployment as it is.
    fn settle_surge(&mut self, place: SurgeIndex, why: String, now: Timestamp) {
        let task = &mut self.surges[place];
        let is_up = task.is_up();
        task.stage =
            if is_up { SurgeProgressStage::LeftAlone(why) } else { SurgeProgressStage::NotScaled(why) };
        let (subject, text) = (task.subject(), task.stage.to_string());
        let level = if is_up { Severity::Warning } else { Severity::Error };
        self.notify(now, level, subject, text);
    }

    /// Ends a surge whose Deployment cannot be written.
    fn give_up_surge(&mut self, place: SurgeIndex, why: String, now: Timestamp) {
        let task = &mut self.surges[place];
        if !task.is_up() && !task.is_sent {
            return self.settle_surge(place, why, now);
        }
        task.stage = SurgeProgressStage::Stranded(why);
        let (subject, text) = (task.subject(), task.stage.to_string());
        self.notify(now, Severity::Error, subject, text);
    }

    fn try_surge_again(&mut self, place: SurgeIndex, at_least: Span, why: &str, now: Timestamp) {
        let task = &mut self.surges[place];
        if task.tries >= TRIES {
            return self.give_up_surge(place, format!("{why}, after {TRIES} tries"), now);
        }
        let wait = match at_least {
            CONFLICT => CONFLICT * i64::from(task.tries),
            at_least => backoff(task.tries.saturating_sub(1)).max(at_least),
        };
        task.request = SurgeRequest::Again(now + wait);
        if at_least != CONFLICT {
            let (subject, text) = (task.subject(), format!("{why}; next try in {wait}"));
            self.notify(now, Severity::Warning, subject, text);
        }
    }

    /// Ends the surges that have not scaled anything, because the operation ends.
    pub(super) fn stop_surges(&mut self) {
        for task in self.surges.iter_mut() {
            if task.stage == SurgeProgressStage::Waiting && !task.is_sent {
                task.stage = SurgeProgressStage::NotScaled("the operation has ended".into());
            }
        }
    }

    /// Names the Deployments that are still scaled up at the end.
    pub(super) fn strand_surges(&mut self, now: Timestamp) {
        for place in self.surges.indices() {
            if !self.surges[place].is_settled() {
                self.give_up_surge(place, "the server did not answer in time".into(), now);
            }
        }
    }

    /// The surges that have not scaled their Deployments up yet, according to the cluster.
    pub(super) fn surges_left(&self, cluster: &Cluster) -> Vec<Surge> {
        let is_ahead = |task: &&SurgeTask| {
            let key = (WorkloadKind::Deployment, task.surge.deployment.clone());
            let known = cluster.workloads(WorkloadKind::Deployment).get(&key);
            !task.is_settled() && known.is_some_and(|known| known.replicas == Some(task.surge.replicas))
        };
        self.surges.iter().filter(is_ahead).map(|task| task.surge.clone()).collect()
    }
}

/// The scale of a Deployment in a dry run, which reads nothing from the server: the scale in the watched cluster,
/// changed by the writes so far.
fn recorded(cluster: &Cluster, task: &SurgeTask) -> DeploymentScale {
    let Surge { deployment, uid, version, replicas } = task.surge.clone();
    let replicas = if task.is_up() { task.surge.raised() } else { replicas };
    let known = owner::named(cluster, WorkloadKind::Deployment, &deployment.namespace, &deployment.name);
    let seen: Option<(Uid, Version)> = known.map(|known| (known.uid.clone(), known.version));
    let (uid, version) = seen.unwrap_or((uid, version));
    DeploymentScale { uid, version, replicas, autoscaler: None }
}
