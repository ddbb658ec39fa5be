//! Decides whether an operation may start, and what the operator has to agree to before the start.

mod decision;
mod need;
mod objection;
mod prior;
mod question;
mod refusal;
mod situation;

pub use decision::{Approved, Decision};
pub use need::{Checks, Need, StartRequest, Started};
pub use objection::Objection;
pub use prior::{PriorOperation, UndoProposal};
pub use question::{Answer, Prompt, Question};
pub use refusal::{ApprovalRefusal, NotStarted};
pub use situation::{Situation, Watches};

use std::collections::{BTreeSet, VecDeque};

use super::{
    Agreed, Confirmation, Drift, Guards, Operation, OperationNotice, OperationOptions, Overrides,
    confirmation,
};
use crate::{
    cluster::{Cluster, MaintenanceNotes, NodeName, OperationId, Scope},
    engine::{ServerVersion, Severity},
    placement::SnapshotLease,
    plan::{Action, EvictionRules, MetadataField, Plan, PlanJob, Prospect, Warning, needs, words},
};
use kordon_time::Timestamp;

/// The steps from a proposal (a plan, a resume, an undo) to a started operation or a refusal.
///
/// A state machine without IO, like [`Operation`]. The command line and the dashboard both drive it. They decide
/// nothing themselves, and all questions and refusals are worded here.
///
/// After the constructor and after each `handle_*`, call [`Approval::poll_need`] and [`Approval::poll_notice`] until
/// both return `None`. Each need is returned once and answered by one `handle_*`:
///
/// | need | answer |
/// | --- | --- |
/// | [`Need::Plan`] | [`Approval::handle_plan`] |
/// | [`Need::Checks`] | [`Approval::handle_checks`] |
/// | [`Need::Answer`] | [`Approval::handle_answer`] |
/// | [`Need::Start`] | [`Approval::handle_started`] |
///
/// An answer without a pending need is ignored. When no need is left, [`Approval::decision`] is the result.
///
/// The rules, in this order:
///
/// 1. The operator can be asked, or has agreed in advance.
/// 2. Writing is unlocked, and the watches on which the action depends are live. This is checked when the proposal is
///    made, after the operator has agreed, and before the start. An open question stays open if a watch breaks, because
///    most watches recover within seconds. If the watch is still broken when the operator answers, the operation is
///    refused.
/// 3. No filter refuses the plan, and the plan changes something.
/// 4. The operator has the permissions that the plan or undo needs.
/// 5. All objections are overridden, in advance or by typing words. Objections are: a pod that can never leave, a
///    broken guard rail, a node that somebody else is draining. An operator who agreed in advance cannot type, so an
///    objection is then a refusal.
/// 6. The operator agrees to the plan or undo. For more than one node, the operator has to type the name of the
///    context.
/// 7. The plan is made again from the newest state. If the new plan exceeds the agreement, rules 4 to 6 apply again.
///    The agreement ([`Agreed`]) covers the nodes, the writes to them, and the kinds of risk that the plan showed. The
///    operator is asked about each of these only once, so the loop ends.
/// 8. The journal has the start of the operation.
#[derive(Clone, Debug)]
pub struct Approval {
    subject: Subject,
    terms: Terms,
    /// The overrides of objections that are in force: those given in advance, and those of the operator's last answer.
    overrides: Overrides,
    guards: Guards,
    /// What the operator has agreed to so far.
    agreed: Agreed,
    /// The differences by which the newest plan exceeds the agreement.
    drifts: Vec<Drift>,
    stage: Stage,
    need: Option<Need>,
    notices: VecDeque<OperationNotice>,
}

/// The settings of an approval.
#[derive(Clone, Debug)]
pub struct Terms {
    /// Name of the kubeconfig context of the cluster that the operation writes to.
    pub context: String,
    /// Options of the operation. Its id and user are only known after the start.
    pub options: OperationOptions,
    /// Overrides that the operator gave in advance.
    pub overrides: Overrides,
    pub operator: Operator,
    pub version: ServerVersion,
}

/// How an operator agrees to an operation: by answering questions, in advance, or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Present,
    /// The operator has agreed in advance to any plan. Only the overrides that were given in advance count.
    AgreedInAdvance,
    Absent,
}

/// What an approval waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    Plan,
    Checks,
    Answer,
    /// A second plan of the same action, because the operator has agreed to an earlier one.
    PlanAgain,
    /// The journal, which writes the start. The approval can no longer be cancelled.
    Start,
}

#[derive(Clone, Debug)]
enum Subject {
    Plan(Proposal),
    Undo(UndoProposal),
}

/// A plan that is proposed, or the action for which a plan is to be made.
#[derive(Clone, Debug)]
struct Proposal {
    action: Action,
    /// The newest plan; `None` until the first plan is made.
    plan: Option<Box<Plan>>,
    resumes: Option<PriorOperation>,
    /// Whether an earlier run of this operation has left its claim on a node. Such an operation starts even if its plan
    /// changes nothing, because its end removes the claim.
    has_claim: bool,
}

#[derive(Clone, Debug)]
enum Stage {
    Waiting(Wait),
    Asking(Question),
    Ended(Decision),
}

impl Approval {
    /// Proposes to apply an action. `plan` is the plan that the operator sees. If there is none, the approval asks for
    /// a plan.
    pub fn apply(action: Action, plan: Option<Box<Plan>>, terms: Terms, situation: &Situation<'_>) -> Self {
        let proposal = Proposal { action, plan, resumes: None, has_claim: false };
        Self::new(Subject::Plan(proposal), terms).opened(situation)
    }

    /// Proposes to resume an interrupted drain with its recorded options. Leaves out nodes that no longer exist.
    pub fn resume(
        prior: PriorOperation,
        mut terms: Terms,
        situation: &Situation<'_>,
        now: Timestamp,
    ) -> Self {
        terms.options.reason.clone_from(&prior.reason);
        terms.options.until = prior.until;
        let nodes = prior.nodes.iter().map(|(node, _)| node.clone()).collect();
        let options = prior.drain.clone().unwrap_or_default();
        let resumable = prior.is_unfinished();
        let id = prior.id.clone();
        let action = Action::Drain { nodes, options };
        let proposal = Proposal { action, plan: None, resumes: Some(prior), has_claim: false };
        let mut approval = Self::new(Subject::Plan(proposal), terms);
        if !resumable {
            approval.refuse(ApprovalRefusal::NotStarted(NotStarted::Over(id)));
            return approval;
        }
        if approval.can_open(situation) {
            approval.keep_existing_nodes(situation, now);
        }
        approval
    }

    /// Proposes to undo what an operation changed on nodes.
    pub fn undo(prior: PriorOperation, terms: Terms, situation: &Situation<'_>) -> Self {
        let proposal = UndoProposal::new(prior, situation.cluster);
        Self::new(Subject::Undo(proposal), terms).opened(situation)
    }

    fn new(subject: Subject, terms: Terms) -> Self {
        Self {
            subject,
            overrides: terms.overrides.clone(),
            terms,
            guards: Guards::default(),
            agreed: Agreed::default(),
            drifts: Vec::new(),
            stage: Stage::Waiting(Wait::Plan),
            need: None,
            notices: VecDeque::new(),
        }
    }

    fn opened(mut self, situation: &Situation<'_>) -> Self {
        if self.can_open(situation) {
            self.assess();
        }
        self
    }

    /// Applies rules 1 and 2 of the approval. If the proposal breaks one of them, refuses the proposal and returns
    /// false.
    fn can_open(&mut self, situation: &Situation<'_>) -> bool {
        let absent = (self.terms.operator == Operator::Absent).then_some(ApprovalRefusal::NobodyToAsk);
        match absent.or_else(|| self.obstacle(situation)) {
            Some(refusal) => self.refuse(refusal),
            None => return true,
        }
        false
    }

    /// Handles the answer to [`Need::Plan`]: the plan, or the reason why it cannot be made.
    pub fn handle_plan(
        &mut self,
        plan: Result<Box<Plan>, String>,
        situation: &Situation<'_>,
        now: Timestamp,
    ) {
        let Stage::Waiting(wait @ (Wait::Plan | Wait::PlanAgain)) = self.stage else { return };
        let mut newest = match plan {
            Ok(plan) => plan,
            Err(text) => return self.refuse(ApprovalRefusal::NoPlan(text)),
        };
        if let Some(refusal) = self.obstacle(situation) {
            return self.refuse(refusal);
        }
        let is_own_claim = |warning: &Warning| match warning {
            Warning::Claimed { operation, .. } => self.is_ours(operation),
            _ => false,
        };
        let has_claim = newest.warnings.iter().any(is_own_claim);
        newest.warnings.retain(|warning| warning.holder().is_none_or(|id| !self.is_ours(id)));
        let Subject::Plan(proposal) = &mut self.subject else { return };
        proposal.has_claim = has_claim;
        proposal.plan = Some(newest);
        if wait == Wait::PlanAgain {
            self.on_plan_again(situation, now);
        } else {
            self.assess();
        }
    }

    /// Handles the answer to [`Need::Checks`]: missing permissions and guard rails, or the reason why they are unknown.
    pub fn handle_checks(
        &mut self,
        checks: Result<Checks, String>,
        situation: &Situation<'_>,
        now: Timestamp,
    ) {
        let Stage::Waiting(Wait::Checks) = self.stage else { return };
        let Checks { guards, missing } = match checks {
            Ok(checks) => checks,
            Err(text) => return self.refuse(ApprovalRefusal::NotChecked(text)),
        };
        if !missing.is_empty() {
            return self.refuse(ApprovalRefusal::Permissions(missing));
        }
        self.guards = guards;
        let objections = self.objections(&self.terms.overrides, situation, now);
        match self.terms.operator {
            Operator::Present => self.ask(objections),
            Operator::AgreedInAdvance | Operator::Absent if !objections.is_empty() => {
                self.refuse(ApprovalRefusal::Objections(objections));
            }
            Operator::AgreedInAdvance | Operator::Absent => self.on_agreed(situation, now),
        }
    }

    /// Handles the answer to [`Need::Answer`], which is the operator's answer to the open question.
    pub fn handle_answer(&mut self, answer: Answer, situation: &Situation<'_>, now: Timestamp) {
        let Stage::Asking(question) = &self.stage else { return };
        if answer == Answer::No {
            return self.end(Decision::Declined);
        }
        self.overrides = self.terms.overrides.with(&question.objections);
        self.on_agreed(situation, now);
    }

    /// Handles the answer to [`Need::Start`]: the started operation, or the reason why the journal did not start it.
    pub fn handle_started(
        &mut self,
        started: Result<Started, NotStarted>,
        situation: &Situation<'_>,
        now: Timestamp,
    ) {
        let Stage::Waiting(Wait::Start) = self.stage else { return };
        match started {
            Ok(started) => self.on_started(started, situation, now),
            Err(why) => self.refuse(ApprovalRefusal::NotStarted(why)),
        }
    }

    /// Refuses the proposal because writing was locked. Does nothing if the journal is already writing the start.
    pub fn handle_lock(&mut self, why: &str) {
        if self.can_be_cancelled() {
            self.refuse(ApprovalRefusal::Locked(format!("{why}: nothing was written")));
        }
    }

    /// Returns the next task for the caller that drives the approval; `None` if there is none.
    pub fn poll_need(&mut self) -> Option<Need> {
        self.need.take()
    }

    /// Returns the next notice for the operator. Notices are not part of a question.
    pub fn poll_notice(&mut self) -> Option<OperationNotice> {
        self.notices.pop_front()
    }

    /// Returns how the approval ended; `None` while it is open.
    pub fn decision(&self) -> Option<&Decision> {
        match &self.stage {
            Stage::Ended(decision) => Some(decision),
            Stage::Waiting(_) | Stage::Asking(_) => None,
        }
    }

    /// Consumes the approval and returns how it ended; `None` if it is still open.
    pub fn into_decision(self) -> Option<Decision> {
        match self.stage {
            Stage::Ended(decision) => Some(decision),
            Stage::Waiting(_) | Stage::Asking(_) => None,
        }
    }

    /// The open question; `None` if no question is open.
    pub fn question(&self) -> Option<&Question> {
        match &self.stage {
            Stage::Asking(question) => Some(question),
            Stage::Waiting(_) | Stage::Ended(_) => None,
        }
    }

    /// Returns what the approval waits for; `None` once the approval has ended.
    pub fn waits_for(&self) -> Option<Wait> {
        match self.stage {
            Stage::Waiting(wait) => Some(wait),
            Stage::Asking(_) => Some(Wait::Answer),
            Stage::Ended(_) => None,
        }
    }

    /// Whether the caller may drop the approval. Once the journal is writing the start, the caller must drive the
    /// approval to its end.
    pub fn can_be_cancelled(&self) -> bool {
        !matches!(self.stage, Stage::Waiting(Wait::Start) | Stage::Ended(_))
    }

    /// The newest plan; `None` for an undo, and until the first plan is made.
    pub fn plan(&self) -> Option<&Plan> {
        match &self.subject {
            Subject::Plan(proposal) => proposal.plan.as_deref(),
            Subject::Undo(_) => None,
        }
    }

    /// The operation that is resumed; `None` unless this is a resume.
    pub fn resumes(&self) -> Option<&PriorOperation> {
        match &self.subject {
            Subject::Plan(proposal) => proposal.resumes.as_ref(),
            Subject::Undo(_) => None,
        }
    }

    /// The proposed undo; `None` unless an undo is proposed.
    pub fn undo_proposal(&self) -> Option<&UndoProposal> {
        match &self.subject {
            Subject::Plan(_) => None,
            Subject::Undo(proposal) => Some(proposal),
        }
    }

    /// Options of the operation.
    pub fn options(&self) -> &OperationOptions {
        &self.terms.options
    }

    /// Title of the operation, for example `drain n1` or `undo of drain n1`.
    pub fn title(&self) -> String {
        match &self.subject {
            Subject::Plan(Proposal { plan: Some(plan), .. }) => plan_title(plan),
            Subject::Plan(Proposal { resumes: Some(prior), .. }) => prior.title.clone(),
            Subject::Plan(Proposal { action, .. }) => action.word().to_owned(),
            Subject::Undo(proposal) => format!("undo of {}", proposal.prior.title),
        }
    }

    /// Removes nodes that no longer exist from the action of a resumed drain. Notices tell the operator which ones.
    fn keep_existing_nodes(&mut self, situation: &Situation<'_>, now: Timestamp) {
        let Subject::Plan(Proposal { action: Action::Drain { nodes, .. }, resumes: Some(prior), .. }) =
            &mut self.subject
        else {
            return;
        };
        let mut gone = Vec::new();
        nodes.clear();
        for (name, uid) in &prior.nodes {
            match situation.cluster.node(name) {
                Some(node) if node.uid == *uid => nodes.push(name.clone()),
                Some(_) => gone.push((name, "another node has this name now: it is left alone")),
                None => gone.push((name, "the node no longer exists")),
            }
        }
        let notice = |(name, text): (&NodeName, &str)| OperationNotice {
            at: now,
            level: Severity::Warning,
            subject: format!("node/{name}"),
            text: text.into(),
        };
        self.notices.extend(gone.into_iter().map(notice));
        if nodes.is_empty() {
            return self.refuse(ApprovalRefusal::NoNodesLeft);
        }
        self.assess();
    }

    /// Applies rule 3 of the approval. Then asks for the permission checks, or for a plan if there is none yet.
    fn assess(&mut self) {
        let permissions = match &self.subject {
            Subject::Undo(proposal) => match proposal.needless() {
                Some(why) => return self.end(Decision::NothingToDo(why.into())),
                None => proposal.permissions(),
            },
            Subject::Plan(Proposal { plan: None, action, .. }) => {
                let action = action.clone();
                return self.wait(Wait::Plan, Need::Plan(action));
            }
            Subject::Plan(Proposal { plan: Some(plan), resumes, .. }) => {
                if plan.prospect() == Prospect::Refused {
                    let refusal = ApprovalRefusal::PlanRefused {
                        summary: plan.summary(),
                        pods: confirmation::kept(plan),
                    };
                    return self.refuse(refusal);
                }
                if self.is_new() && Confirmation::to(plan) == Confirmation::Needless {
                    let options = &self.terms.options;
                    let has_note = !options.reason.is_empty() || options.until.is_some();
                    let why = if plan.action.has_no_targets() {
                        words::NO_RESOURCES
                    } else if has_note && matches!(plan.action, Action::Cordon { .. }) {
                        "already cordoned; its reason and end are not changed: uncordon it first to set new ones"
                    } else {
                        "it changes nothing"
                    };
                    return self.end(Decision::NothingToDo(why.into()));
                }
                let mut permissions = confirmation::permissions(plan);
                permissions.extend(resumes.iter().flat_map(|prior| prior.scale_permissions()));
                permissions
            }
        };
        self.wait(Wait::Checks, Need::Checks(permissions));
    }

    fn ask(&mut self, objections: Vec<Objection>) {
        let prompt = self.prompt(&objections);
        let question = Question { drifts: std::mem::take(&mut self.drifts), objections, prompt };
        self.need = Some(Need::Answer(question.clone()));
        self.stage = Stage::Asking(question);
    }

    /// Returns the input with which the operator confirms: typed words for a grave plan and for objections, otherwise a
    /// yes.
    fn prompt(&self, objections: &[Objection]) -> Prompt {
        let mut words = Vec::new();
        if self.confirmation() == Confirmation::Grave {
            words.push(question::word_for(&self.terms.context).to_owned());
        }
        words.extend(objection::words(objections));
        if words.is_empty() { Prompt::Yes(self.yes()) } else { Prompt::Words(words.join(" ")) }
    }

    fn confirmation(&self) -> Confirmation {
        match &self.subject {
            Subject::Plan(Proposal { plan: Some(plan), resumes, .. }) => {
                let asked = resumes.as_ref().map(PriorOperation::confirmation);
                Confirmation::to(plan).max(asked.unwrap_or(Confirmation::Needless))
            }
            Subject::Plan(Proposal { plan: None, .. }) => Confirmation::Plain,
            Subject::Undo(proposal) => proposal.confirmation(),
        }
    }

    const fn yes(&self) -> &'static str {
        match &self.subject {
            Subject::Undo(_) => "Yes, undo",
            Subject::Plan(Proposal { resumes: Some(_), .. }) => "Yes, resume",
            Subject::Plan(Proposal { action, .. }) => match action {
                Action::Cordon { .. } => "Yes, cordon",
                Action::Uncordon { .. } => "Yes, uncordon",
                Action::Taint { .. } => "Yes, taint",
                Action::Metadata { edits, .. } => match edits.field {
                    MetadataField::Labels => "Yes, label",
                    MetadataField::Annotations => "Yes, annotate",
                },
                Action::Drain { .. } => "Yes, drain",
                Action::Evict { .. } => "Yes, evict",
                Action::Delete { .. } | Action::DeleteNode { .. } => "Yes, delete",
            },
        }
    }

    /// Rule 7 of the approval: computes the plan, or the undo, once more, because the cluster may have changed since
    /// the operator saw it.
    fn on_agreed(&mut self, situation: &Situation<'_>, now: Timestamp) {
        if let Some(refusal) = self.obstacle(situation) {
            return self.refuse(refusal);
        }
        match &mut self.subject {
            Subject::Plan(proposal) => {
                proposal.plan.iter().for_each(|plan| self.agreed.add(plan));
                let action = proposal.action.clone();
                self.wait(Wait::PlanAgain, Need::Plan(action));
            }
            Subject::Undo(proposal) => {
                self.drifts = proposal.renew(situation.cluster);
                self.start_or_ask_again(situation, now);
            }
        }
    }

    fn on_plan_again(&mut self, situation: &Situation<'_>, now: Timestamp) {
        let Some(newest) = self.plan() else { return };
        let (drifts, is_graver) = (self.agreed.drifts(newest), self.agreed.is_graver(newest));
        let is_idle = self.is_new() && Confirmation::to(newest) == Confirmation::Needless;
        if is_idle || newest.prospect() == Prospect::Refused {
            return self.assess();
        }
        self.drifts = drifts;
        if is_graver && self.terms.operator == Operator::Present {
            return self.assess();
        }
        self.start_or_ask_again(situation, now);
    }

    /// Starts the operation if the newest plan does not exceed the agreement. Otherwise asks the operator again. If the
    /// operator agreed in advance, reports the differences as notices and does not ask.
    fn start_or_ask_again(&mut self, situation: &Situation<'_>, now: Timestamp) {
        let objections = self.objections(&self.overrides, situation, now);
        match self.terms.operator {
            Operator::Present if self.drifts.is_empty() && objections.is_empty() => self.start(),
            Operator::Present => self.assess(),
            Operator::AgreedInAdvance | Operator::Absent => {
                self.report_drifts(now);
                if objections.is_empty() {
                    self.start()
                } else {
                    self.refuse(ApprovalRefusal::Objections(objections))
                }
            }
        }
    }

    fn report_drifts(&mut self, now: Timestamp) {
        let texts = Drift::lines(&std::mem::take(&mut self.drifts));
        self.notices.extend(texts.into_iter().map(|text| OperationNotice {
            at: now,
            level: Severity::Warning,
            subject: String::new(),
            text: format!("since the plan was made: {text}"),
        }));
    }

    fn start(&mut self) {
        let request = match &self.subject {
            Subject::Undo(proposal) => StartRequest::Undo(proposal.prior.id.clone()),
            Subject::Plan(Proposal { resumes: Some(prior), .. }) => StartRequest::Resume(prior.id.clone()),
            Subject::Plan(Proposal { plan: Some(plan), .. }) => StartRequest::Apply {
                plan: plan.clone(),
                options: self.started_options(),
                overrides: self.overrides.clone(),
            },
            Subject::Plan(Proposal { plan: None, .. }) => return,
        };
        self.wait(Wait::Start, Need::Start(Box::new(request)));
    }

    fn started_options(&self) -> OperationOptions {
        OperationOptions { take_over: self.overrides.take_over, ..self.terms.options.clone() }
    }

    fn on_started(&mut self, started: Started, situation: &Situation<'_>, now: Timestamp) {
        let Started { id, by, prior } = started;
        let options = OperationOptions { id, by, ..self.started_options() };
        let (title, cluster) = (self.title(), situation.cluster);
        let approved = match &self.subject {
            Subject::Plan(Proposal { plan: Some(plan), .. }) => {
                let run = prior.map(|prior| prior.run).unwrap_or_default();
                let operation =
                    Operation::start(plan, OperationOptions { prior: run, ..options }, cluster, now);
                Approved { title, operation, plan: Some(plan.clone()), undoes: None }
            }
            Subject::Plan(Proposal { plan: None, .. }) => return,
            Subject::Undo(proposal) => {
                let prior = prior.unwrap_or_else(|| proposal.prior.clone());
                let options = OperationOptions { undoes: Some(prior.id.clone()), ..options };
                let rules = EvictionRules::for_version(self.terms.version);
                let operation = Operation::undo(&prior.undo, options, rules, cluster, now);
                Approved { title, operation, plan: None, undoes: Some(prior) }
            }
        };
        self.end(Decision::Approved(Box::new(approved)));
    }

    /// Rule 2 of the approval: returns the reason why nothing may be written now, if there is one.
    fn obstacle(&self, situation: &Situation<'_>) -> Option<ApprovalRefusal> {
        situation.obstacle(self.removable(situation.cluster))
    }

    /// Which pods the operation may remove, as sets of objects to read ([`Scope`]). These pods must be known before the
    /// operation starts.
    pub fn removable(&self, cluster: &Cluster) -> BTreeSet<Scope> {
        match &self.subject {
            Subject::Plan(proposal) => needs::removable(&proposal.action, cluster),
            Subject::Undo(_) => BTreeSet::new(),
        }
    }

    /// Rule 5 of the approval: returns the objections that `overrides` does not override.
    fn objections(&self, overrides: &Overrides, situation: &Situation<'_>, now: Timestamp) -> Vec<Objection> {
        let cluster = situation.cluster;
        let mut objections = match self.plan() {
            Some(plan) => {
                let cordoned = self.resumes().map(PriorOperation::cordoned).unwrap_or_default();
                Objection::to_plan(plan, self.guards.breaches_of(plan, cluster, &cordoned))
            }
            None => Vec::new(),
        };
        objections.extend(self.nodes().into_iter().filter_map(|node| {
            let claim = cluster.node(node)?.drain_claim.as_ref()?;
            let counts = claim.is_fresh(now) && !self.is_ours(&claim.operation);
            counts.then(|| Objection::Claimed { node: node.clone(), by: claim.by.clone() })
        }));
        if self.disturbs_maintenance() {
            objections.extend(self.maintained_by_others(cluster, now));
        }
        objections.retain(|objection| !objection.is_overridden(overrides));
        objections
    }

    /// Whether the id is that of this operation, or of the operation which this one resumes or undoes. The drain of a
    /// wave already has its id here: the id of its maintenance.
    fn is_ours(&self, id: &OperationId) -> bool {
        let prior = match &self.subject {
            Subject::Plan(proposal) => proposal.resumes.as_ref(),
            Subject::Undo(proposal) => Some(&proposal.prior),
        };
        *id == self.terms.options.id || prior.is_some_and(|prior| prior.id == *id)
    }

    /// Whether no earlier run of this operation is known: the operation is not resumed, and has no claim on a node.
    fn is_new(&self) -> bool {
        match &self.subject {
            Subject::Plan(proposal) => proposal.resumes.is_none() && !proposal.has_claim,
            Subject::Undo(_) => false,
        }
    }

    fn disturbs_maintenance(&self) -> bool {
        match &self.subject {
            Subject::Plan(proposal) => proposal.action.disturbs_maintenance(),
            Subject::Undo(_) => true,
        }
    }

    /// Returns an objection for each node that another, running maintenance has.
    fn maintained_by_others(&self, cluster: &Cluster, now: Timestamp) -> Vec<Objection> {
        let mut others = MaintenanceNotes::all(cluster);
        others.retain(|notes| !self.is_ours(&notes.operation) && notes.is_running(now));
        let objection = |node: &NodeName| {
            let MaintenanceNotes { by, operation, .. } =
                others.iter().find(|notes| notes.nodes.contains_key(node))?;
            Some(Objection::Maintained { node: node.clone(), by: by.clone(), operation: operation.clone() })
        };
        self.nodes().into_iter().filter_map(objection).collect()
    }

    /// The nodes of the operation, including nodes that it does not write to.
    pub fn targets(&self) -> Vec<&NodeName> {
        match &self.subject {
            Subject::Plan(_) => self.nodes(),
            Subject::Undo(proposal) => proposal.prior.nodes.iter().map(|(node, _)| node).collect(),
        }
    }

    /// The nodes to which the operation writes.
    fn nodes(&self) -> Vec<&NodeName> {
        match &self.subject {
            Subject::Plan(proposal) => {
                proposal.plan.iter().flat_map(|plan| &plan.nodes).map(|node| &node.node).collect()
            }
            Subject::Undo(proposal) => proposal.nodes().into_iter().collect(),
        }
    }

    fn wait(&mut self, wait: Wait, need: Need) {
        self.stage = Stage::Waiting(wait);
        self.need = Some(need);
    }

    fn refuse(&mut self, refusal: ApprovalRefusal) {
        self.end(Decision::Refused(refusal));
    }

    fn end(&mut self, decision: Decision) {
        self.stage = Stage::Ended(decision);
        self.need = None;
    }
}

/// Whether an action may remove pods.
const fn touches_pods(action: &Action) -> bool {
    match action {
        Action::Cordon { .. } | Action::Uncordon { .. } | Action::Metadata { .. } => false,
        Action::Taint { .. }
        | Action::Drain { .. }
        | Action::Evict { .. }
        | Action::Delete { .. }
        | Action::DeleteNode { .. } => true,
    }
}

/// Job that makes the plan for [`Need::Plan`] on another thread. If the action may remove pods, the plan also predicts
/// where their replacements land.
pub fn plan_job(action: Action, cluster: Cluster, rules: EvictionRules, now: Timestamp) -> PlanJob {
    let snapshot = touches_pods(&action).then(SnapshotLease::default);
    PlanJob { action, cluster, rules, snapshot, now }
}

/// Title of a plan, for example `drain general-1a-02`.
pub fn plan_title(plan: &Plan) -> String {
    let names: Vec<String> = match &plan.action {
        Action::Evict { pods, .. } | Action::Delete { pods, .. } => {
            pods.iter().map(ToString::to_string).collect()
        }
        Action::Cordon { .. }
        | Action::Uncordon { .. }
        | Action::Taint { .. }
        | Action::Metadata { .. }
        | Action::DeleteNode { .. }
        | Action::Drain { .. } => plan.nodes.iter().map(|node| node.node.to_string()).collect(),
    };
    title(plan.action.word(), &names)
}

/// Title of an action with its first two targets, for example `drain a, b and 3 more`.
pub fn title(word: &str, names: &[String]) -> String {
    let names = match names {
        [] => "nothing".into(),
        [one] => one.clone(),
        [one, other] => format!("{one}, {other}"),
        [one, other, rest @ ..] => format!("{one}, {other} and {} more", rest.len()),
    };
    format!("{word} {names}")
}
