//! From an open plan to one that is carried out: what is forbidden and missing, the confirmation, the plan once more
//! over the newest state, the beginning in the journal.

use super::{
    super::{
        dialog::{ApplyRequest, DialogStage, DialogSubject, DialogWait, Prompt},
        preview::PlanKind,
    },
    App, Job, PermissionCheck, PlanJob, StartedOperation,
};
use crate::{
    cluster::NodeName,
    k8s::feed::{FeedKind, FeedState},
    operation::{
        Breach, Confirmation, Guards, Operation, OperationEnd, OperationOptions, Overrides, confirmation,
        drift,
    },
    plan::{Action, Permission, Plan, Prospect},
    time::Timestamp,
};

impl App {
    /// Begins to carry the open plan out: says why not, or asks.
    pub(in crate::app) fn carry_out(&mut self, now: Timestamp) {
        match self.ready_plan() {
            Ok(plan) => {
                let apply = ApplyRequest {
                    action: plan.action.clone(),
                    orders: self.orders(now),
                    resumes: None,
                    plan: Some(plan),
                    drifts: Vec::new(),
                    guards: Guards::default(),
                    breaches: Vec::new(),
                    taken: Vec::new(),
                    waivers: Overrides::default(),
                };
                let number = self
                    .ask(DialogSubject::Apply(Box::new(apply)), DialogStage::Waits(DialogWait::Permissions));
                self.check(number);
            }
            Err(why) => self.screen.message = Some(why),
        }
    }

    /// The plan that is shown, where it is one that may be carried out now.
    fn ready_plan(&self) -> Result<Box<Plan>, String> {
        let preview = self.screen.overlays.plan().ok_or("there is no plan")?;
        if preview.request.kind == PlanKind::Failure {
            return Err("nobody carries a failure out: this only tells what would follow from one".into());
        }
        if preview.is_behind() {
            return Err("the plan is still being worked out".into());
        }
        if let Some(why) = preview.fault() {
            return Err(why.to_owned());
        }
        let plan = preview.plan().ok_or("there is no plan")?;
        if let Some(why) = self.why_not_now().or_else(|| self.unseen(&plan.action)) {
            return Err(why);
        }
        if plan.prospect() == Prospect::Refused {
            return Err(format!("it is refused: {}", plan.summary()));
        }
        if Confirmation::to(plan) == Confirmation::Needless {
            return Err("it changes nothing".into());
        }
        Ok(Box::new(plan.clone()))
    }

    /// What is not seen well enough to act on; none where all of it is.
    pub(super) fn unseen(&self, action: &Action) -> Option<String> {
        let state = |kind: FeedKind| self.model.feeds.state(kind);
        let live = |kind: &FeedKind| state(*kind) == Some(&FeedState::Live);
        let touches_pods =
            !matches!(action, Action::Cordon { .. } | Action::Uncordon { .. } | Action::Label { .. });
        let needed: &[FeedKind] =
            if touches_pods { &[FeedKind::Nodes, FeedKind::Pods] } else { &[FeedKind::Nodes] };
        if let Some(kind) = needed.iter().find(|kind| !live(kind)) {
            return Some(format!(
                "the {kind} are not seen as they are now: nothing is begun on old knowledge"
            ));
        }
        // The rest may be forbidden: then the plan says what it does not know.
        let comes = |kind: &FeedKind| {
            matches!(state(*kind), None | Some(FeedState::Connecting | FeedState::Listing { .. }))
        };
        let coming = FeedKind::ALL.into_iter().filter(|kind| *kind != FeedKind::Leader).find(comes);
        coming.filter(|_| touches_pods).map(|kind| format!("the {kind} have not been listed yet"))
    }

    fn orders(&self, now: Timestamp) -> OperationOptions {
        OperationOptions {
            why: self.acts.reason.clone(),
            until: self.acts.until.map(|span| now + span),
            total_timeout: self.acts.within,
            ..OperationOptions::default()
        }
    }

    /// Asks for what is forbidden and what is permitted.
    fn check(&mut self, number: u64) {
        let Some(plan) = self.question(number).and_then(|dialog| dialog.apply()?.plan.clone()) else {
            return;
        };
        self.wait(
            number,
            DialogWait::Permissions,
            Job::Check { number, wanted: confirmation::permissions(&plan) },
        );
    }

    pub(super) fn on_checked(
        &mut self,
        number: u64,
        checked: Result<PermissionCheck, String>,
        now: Timestamp,
    ) {
        let PermissionCheck { guards, missing } = match checked {
            Ok(checked) => checked,
            Err(why) => return self.refuse(number, vec![why]),
        };
        if !missing.is_empty() {
            let missing = missing.iter().map(Permission::to_string);
            let lines = std::iter::once("these permissions are missing:".to_owned()).chain(missing);
            return self.refuse(number, lines.collect());
        }
        match self.question(number).map(|dialog| &dialog.about) {
            Some(DialogSubject::Apply(_)) => self.ask_about_plan(number, guards, now),
            Some(DialogSubject::Undo(_)) => self.ask_about_undo(number),
            Some(DialogSubject::Cancel(_) | DialogSubject::Quit) | None => {}
        }
    }

    /// Asks, with all that speaks against it; the graver it is, the more has to be typed.
    fn ask_about_plan(&mut self, number: u64, guards: Guards, now: Timestamp) {
        let context = self.word_of_context();
        let (screen, cluster) = (&mut self.screen, &self.model.cluster);
        let Some(dialog) = screen.overlays.question_mut().filter(|dialog| dialog.number == number) else {
            return;
        };
        let Some(apply) = dialog.apply() else { return };
        let Some(plan) = &apply.plan else { return };
        let at_work = |node: &NodeName| {
            let mark = cluster.node(node)?.drain_claim.as_ref()?;
            let ours = apply.resumes.as_ref().is_some_and(|past| past.id == mark.operation);
            (mark.is_fresh(now) && !ours).then(|| (node.clone(), mark.by.clone()))
        };
        apply.taken = plan.nodes.iter().filter_map(|node| at_work(&node.node)).collect();
        apply.breaches = guards.breaches(plan, cluster);
        apply.guards = guards;
        apply.waivers = Overrides {
            guards: names(&apply.breaches),
            take_over: !apply.taken.is_empty(),
            try_blocked: plan.prospect() == Prospect::Blocked,
        };
        let mut words = Vec::new();
        if !apply.waivers.guards.is_empty() {
            words.push("override".to_owned());
        }
        words.extend(apply.waivers.words());
        if Confirmation::to(plan) == Confirmation::Grave {
            words.insert(0, context);
        }
        let asked = if words.is_empty() {
            Prompt::Choice(choices(&apply.action, apply.resumes.is_some()))
        } else {
            Prompt::Words(words.join(" "))
        };
        dialog.go_on(DialogStage::Asks(asked));
    }

    /// What has to be typed for what is grave.
    pub(super) fn word_of_context(&self) -> String {
        let context = &self.model.connection.context;
        let can_be_typed = !context.trim().is_empty() && !context.chars().any(char::is_control);
        if can_be_typed { context.trim().to_owned() } else { "yes".into() }
    }

    /// It was agreed to: the plan is made again, for what was agreed to may be old.
    pub(super) fn agreed(&mut self, now: Timestamp) {
        let why_not = self.why_not_now();
        let Some(dialog) = self.screen.overlays.question_mut() else { return };
        let number = dialog.number;
        if let Some(why) = why_not {
            return self.refuse(number, vec![why]);
        }
        let Some(action) = dialog.apply().map(|apply| apply.action.clone()) else { return };
        self.plan(number, DialogWait::PlanAgain, action, now);
    }

    pub(super) fn plan(&mut self, number: u64, wait: DialogWait, action: Action, now: Timestamp) {
        let (cluster, version) = (self.model.cluster.clone(), self.model.settings.version);
        let job = Box::new(PlanJob { action, cluster, version, now });
        self.wait(number, wait, Job::Plan { number, job });
    }

    pub(super) fn on_planned(&mut self, number: u64, plan: Result<Box<Plan>, String>) {
        let newest = match plan {
            Ok(plan) => plan,
            Err(why) => return self.refuse(number, vec![why]),
        };
        if newest.prospect() == Prospect::Refused {
            return self.refuse(number, confirmation::stuck(&newest));
        }
        let why_not = self.why_not_now().or_else(|| self.unseen(&newest.action));
        let (screen, cluster) = (&mut self.screen, &self.model.cluster);
        let Some(dialog) = screen.overlays.question_mut().filter(|dialog| dialog.number == number) else {
            return;
        };
        let again = dialog.stage == DialogStage::Waits(DialogWait::PlanAgain);
        let Some(apply) = dialog.apply() else { return };
        let agreed = apply.plan.replace(newest.clone());
        apply.drifts = agreed.map(|agreed| drift::between(&agreed, &newest)).unwrap_or_default();
        let holds = apply.drifts.is_empty()
            && apply.waivers.allow(newest.prospect())
            && apply.waivers.standing(&apply.guards, &newest, cluster).is_empty();
        let is_idle = apply.resumes.is_none() && Confirmation::to(&newest) == Confirmation::Needless;
        match why_not {
            _ if is_idle => self.refuse(number, vec!["it changes nothing any more".into()]),
            Some(why) => self.refuse(number, vec![why]),
            None if again && holds => self.begin(number),
            None => self.check(number),
        }
    }

    /// Has it written down that it begins.
    fn begin(&mut self, number: u64) {
        let Some(apply) = self.question(number).and_then(|dialog| dialog.apply()) else { return };
        apply.orders.take_over = apply.waivers.take_over;
        let (orders, waivers, resumes) = (apply.orders.clone(), apply.waivers.clone(), apply.resumes.clone());
        let Some(plan) = apply.plan.clone() else { return };
        let chore = match resumes {
            Some(past) => Job::Resume { number, id: past.id },
            None => Job::Begin { number, word: plan.action.word(), plan, orders, waivers },
        };
        self.wait(number, DialogWait::Beginning, chore);
    }

    /// It stands in the journal: from here on it is carried out.
    pub(super) fn on_begun(&mut self, number: u64, begun: Result<StartedOperation, String>, now: Timestamp) {
        let begun = match begun {
            Ok(begun) => begun,
            Err(why) => return self.refuse(number, vec![why]),
        };
        let Some(dialog) = self.close_question(number) else {
            let text = "nobody waits for it any more".into();
            let chore = Job::End { id: begun.id, end: OperationEnd::Cancelled, text, undid: None };
            return self.acts.chores.push_back(chore);
        };
        match dialog.about {
            DialogSubject::Apply(apply) => self.on_plan_begun(*apply, begun, now),
            DialogSubject::Undo(_) => self.on_undo_begun(begun, now),
            DialogSubject::Cancel(_) | DialogSubject::Quit => {}
        }
    }

    fn on_plan_begun(&mut self, apply: ApplyRequest, begun: StartedOperation, now: Timestamp) {
        let Some(plan) = apply.plan else { return };
        let StartedOperation { id, by, past } = begun;
        let past = past.map(|past| past.prior_run()).unwrap_or_default();
        let orders = OperationOptions { id, by, past, ..apply.orders };
        let title = title(&plan);
        let conduct = Operation::begin(&plan, orders, &self.model.cluster, now);
        self.screen.marked_nodes.clear();
        self.screen.marked_pods.clear();
        self.take_up(title, conduct, Some(plan), None, now);
    }
}

/// The names of the guard rails, each once.
fn names(breaches: &[Breach]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for breach in breaches {
        if !names.iter().any(|name| name == breach.guard()) {
            names.push(breach.guard().into());
        }
    }
    names
}

const fn choices(action: &Action, resumes: bool) -> &'static [&'static str] {
    match action {
        Action::Drain { .. } if resumes => &["Cancel", "Go on with it"],
        Action::Cordon { .. } => &["Cancel", "Yes, cordon"],
        Action::Uncordon { .. } => &["Cancel", "Yes, uncordon"],
        Action::Taint { .. } => &["Cancel", "Yes, taint"],
        Action::Label { .. } => &["Cancel", "Yes, label"],
        Action::Drain { .. } => &["Cancel", "Yes, drain"],
        Action::Evict { .. } => &["Cancel", "Yes, evict"],
        Action::Delete { .. } => &["Cancel", "Yes, delete"],
    }
}

/// What a plan is of, as `drain general-1a-02`.
pub fn title(plan: &Plan) -> String {
    let names: Vec<String> = match &plan.action {
        Action::Evict { pods, .. } | Action::Delete { pods, .. } => {
            pods.iter().map(ToString::to_string).collect()
        }
        Action::Cordon { .. }
        | Action::Uncordon { .. }
        | Action::Taint { .. }
        | Action::Label { .. }
        | Action::Drain { .. } => plan.nodes.iter().map(|node| node.node.to_string()).collect(),
    };
    format!("{} {}", plan.action.word(), short(&names))
}

/// The first two names, and how many more there are.
pub(super) fn short(names: &[String]) -> String {
    match names {
        [] => "nothing".into(),
        [one] => one.clone(),
        [one, other] => format!("{one}, {other}"),
        [one, other, rest @ ..] => format!("{one}, {other} and {} more", rest.len()),
    }
}
