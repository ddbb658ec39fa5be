//! The plan that is open: what is asked about, and what would come of it. Nothing is written by it.
//!
//! A plan over many nodes takes a while: it is worked out elsewhere ([`App::next_plan`], [`PreviewJob::work`],
//! [`App::planned`]), and until it has come, what was known before stays.

use std::collections::BTreeSet;

use tui_input::{Input, InputRequest};

use super::{
    App,
    completion::{Vocabulary, completed},
    filter::{Filter, Filterable},
    listing::Listing,
    pane::Pane,
    snapshot_cache::SnapshotLease,
};
use crate::{
    cluster::{Cluster, Key, NodeName, ZoneKey},
    engine::{Confidence, Engine, ServerVersion},
    forecast::{self, Assumptions, Forecast, Successor},
    placement::Snapshot,
    plan::{
        Action, DrainFlag, DrainOptions, NodeChange, PlacingEnvironment, Plan, PlanStep, PodPlan, Receiver,
        RemovalOptions, Retry, RunTrace, TaintEdits, Verdict, label_edits::LabelEdits,
    },
    time::{Span, Timestamp},
};

/// How far ahead the consequences of a failure are told.
pub const HORIZON: Span = Span::from_secs(1800);

/// Of the consequences of a failure, so many nodes are looked at for pods at most, each time that they are worked out:
/// a tenth of a second's work.
const MOST_LOOKS: usize = 1_000_000;

/// What can be asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanKind {
    Cordon,
    Uncordon,
    Drain,
    Taint,
    Label,
    Evict,
    Delete,
    /// That nodes, or whole zones, fall silent.
    Failure,
}

/// An option of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanOption {
    Force,
    IgnoreDaemonsets,
    DeleteEmptydirData,
    DisableEviction,
    /// Goes through a few grace periods.
    Grace,
    /// Goes through a few numbers of nodes at a time.
    Parallel,
    Overwrite,
    WholeZones,
}

/// What it is asked about.
#[derive(Clone, Debug, PartialEq)]
pub enum Targets {
    Nodes(Vec<NodeName>),
    Pods(Vec<Key>),
}

/// Everything that a plan is asked for by.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanRequest {
    pub verb: PlanKind,
    pub subjects: Targets,
    /// Of a drain.
    pub drain: DrainOptions,
    /// Of an eviction or a deletion.
    pub removal: RemovalOptions,
    /// Of taints and labels: as they were typed, and whether those that are there may be changed.
    pub words: String,
    pub overwrite: bool,
    /// Of a failure: whether all other nodes of their zones fail too.
    pub whole_zones: bool,
}

/// The plan that is open.
#[derive(Clone, Debug)]
pub struct Preview {
    pub wish: PlanRequest,
    /// The pane from which it was opened.
    pub from: Pane,
    /// What came of it, as far as it has been worked out.
    pub done: Option<PreviewResult>,
    /// Places in the rows of what came of it.
    pub list: Listing<usize>,
    /// The line in which taints or labels are typed; none where nothing is.
    pub line: Option<EditLine>,
    /// The filter by which the list was made; none after the rows have changed.
    arranged: Option<Filter>,
}

/// The line in which taints or labels are typed.
#[derive(Clone, Debug)]
pub struct EditLine {
    pub input: Input,
    /// Whether keys go into it.
    pub open: bool,
    /// What the last word may become.
    pub candidates: Vec<String>,
    /// The one that is taken next.
    pub chosen: usize,
    words: Vocabulary,
}

/// What was worked out, and of what.
#[derive(Clone, Debug)]
pub struct PreviewResult {
    pub wish: PlanRequest,
    pub what: PreviewOutcome,
    pub rows: Vec<PreviewRow>,
    basis: Basis,
    /// What the job was lent, on its way back.
    ground: Option<Snapshot>,
}

/// What came of it.
#[derive(Clone, Debug)]
pub enum PreviewOutcome {
    Plan(Box<Plan>),
    Failure(Box<FailureImpact>),
    /// Nothing, and why.
    Nothing(String),
}

/// What the failure of nodes leads to, beyond what comes anyway.
#[derive(Clone, Debug)]
pub struct FailureImpact {
    pub nodes: BTreeSet<NodeName>,
    pub zones: BTreeSet<ZoneKey>,
    pub forecast: Forecast,
    pub totals: forecast::ForecastTotals,
    /// Pods of theirs that run and stay.
    pub staying: Vec<(Key, NodeName)>,
    /// What comes after the pods that go, and what was weighed; none where there are too many to work it out again and
    /// again.
    pub succession: Option<(Vec<Successor>, RunTrace)>,
}

/// One line of it: a place in a list of the plan or of the failure's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreviewRow {
    Section(&'static str),
    Warning(usize),
    Node(usize),
    Pod(usize),
    /// Of the pod, or of what comes after it, at the first place, whose replacement stays Pending: what would help.
    Help(usize, usize),
    /// A pod that waits for a place, and finds one.
    Arrival(usize),
    /// A node that receives pods.
    Receiver(usize),
    Budget(usize),
    Moment(usize),
    Kubectl,
    Kordon,
    Call(usize),
    Assumption(usize),
    Coming(usize),
    Chance(usize),
    Stays(usize),
    /// What comes after a pod that a failure takes away.
    Successor(usize),
    /// That nobody has worked out what comes after so many.
    TooMany,
}

/// How far what a plan hangs on had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Basis {
    /// [`Model::plan_changes`](crate::model::Model::plan_changes)
    changes: u64,
    /// Of a failure, which hangs on every heartbeat: when the engine was last asked.
    taken: Option<Timestamp>,
}

/// A plan to be worked out, with copies of all that it takes.
#[derive(Debug)]
pub struct PreviewJob {
    wish: PlanRequest,
    cluster: Cluster,
    engine: Option<Engine>,
    ahead: Span,
    version: ServerVersion,
    basis: Basis,
    ground: SnapshotLease,
    now: Timestamp,
}

impl App {
    /// What the open plan is to be worked out from anew: it is not of the present wish, or the cluster has changed.
    pub fn next_plan(&mut self, now: Timestamp) -> Option<PreviewJob> {
        let (wish, basis) = self.plan_is_due()?;
        let wish = wish.clone();
        // What is kept follows the present, and is of no use to who looks at the past.
        let asks = wish.verb.asks_for_places() && self.frozen.is_none();
        let ground = if asks { self.snapshots.lend() } else { SnapshotLease::default() };
        let shown = self.shown();
        Some(PreviewJob {
            cluster: shown.cluster.clone(),
            engine: shown.engine.clone().filter(|_| wish.verb == PlanKind::Failure),
            ahead: shown.feeds.ahead(),
            version: self.model.settings.version,
            basis,
            ground,
            now: self.shown_at(now),
            wish,
        })
    }

    /// The wish that is behind, and what it is to be worked out over.
    fn plan_is_due(&self) -> Option<(&PlanRequest, Basis)> {
        let preview = self.screen.preview.as_ref()?;
        let shown = self.shown();
        let is_failure = preview.wish.verb == PlanKind::Failure;
        let basis = Basis { changes: shown.plan_changes(), taken: is_failure.then_some(shown.views.taken) };
        let known =
            preview.done.as_ref().is_some_and(|done| done.wish == preview.wish && done.basis == basis);
        (!known).then_some((&preview.wish, basis))
    }

    /// Whether somebody waits for the plan: it is not of the present wish.
    pub fn awaits_plan(&self) -> bool {
        self.screen.preview.as_ref().is_some_and(Preview::is_behind)
    }

    /// Takes in what came of a job, unless something else is wished for by now. Gives back what it replaces, which
    /// may be large.
    pub fn planned(&mut self, mut done: PreviewResult, now: Timestamp) -> Option<PreviewResult> {
        if let Some(snapshot) = done.ground.take() {
            done.ground = self.snapshots.put_back(snapshot);
        }
        let Some(preview) = self.screen.preview.as_mut().filter(|preview| preview.wish == done.wish) else {
            return Some(done);
        };
        let before = preview.done.replace(done);
        preview.arranged = None;
        self.arrange(now);
        before
    }
}

impl App {
    /// Takes in that a job failed, which is a fault of ours: it is not tried again until something has changed.
    pub fn plan_failed(&mut self) {
        let basis = self.plan_is_due().map(|(_, basis)| basis);
        if let (Some(preview), Some(basis)) = (&mut self.screen.preview, basis) {
            let what = PreviewOutcome::Nothing("working it out failed: this is a fault of kordon".into());
            let wish = preview.wish.clone();
            preview.done = Some(PreviewResult { wish, what, rows: Vec::new(), basis, ground: None });
            preview.arranged = None;
        }
    }
}

impl Preview {
    pub fn new(wish: PlanRequest, from: Pane, cluster: &Cluster) -> Self {
        let words = match (&wish.subjects, wish.verb) {
            (Targets::Nodes(nodes), PlanKind::Taint) => Some(Vocabulary::of_taints(cluster, nodes)),
            (Targets::Nodes(nodes), PlanKind::Label) => Some(Vocabulary::of_labels(cluster, nodes)),
            _ => None,
        };
        let line = words.map(|words| EditLine {
            input: Input::default(),
            open: true,
            candidates: words.candidates(""),
            chosen: 0,
            words,
        });
        Self { wish, from, done: None, list: Listing::default(), line, arranged: None }
    }

    /// Whether what is shown was worked out for another wish than the present one.
    pub fn is_behind(&self) -> bool {
        self.done.as_ref().is_none_or(|done| done.wish != self.wish)
    }

    /// Whether keys are typed into its line.
    pub fn is_typing(&self) -> bool {
        self.line.as_ref().is_some_and(|line| line.open)
    }

    /// The row at a place of the list.
    pub fn row(&self, place: usize) -> Option<PreviewRow> {
        let done = self.done.as_ref()?;
        self.list.keys().get(place).and_then(|row| done.rows.get(*row)).copied()
    }

    /// The pod that the selected row is about.
    pub fn selected_pod(&self) -> Option<&Key> {
        match (self.row(self.list.place())?, &self.done.as_ref()?.what) {
            (PreviewRow::Pod(place) | PreviewRow::Help(place, _), PreviewOutcome::Plan(plan)) => {
                plan.pods.get(place).map(|pod| &pod.pod)
            }
            (PreviewRow::Arrival(place), PreviewOutcome::Plan(plan)) => {
                plan.arrivals.get(place).map(|pod| &pod.pod)
            }
            (PreviewRow::Moment(place), PreviewOutcome::Plan(plan)) => plan.timeline.get(place)?.what.pod(),
            (PreviewRow::Stays(place), PreviewOutcome::Failure(failure)) => {
                failure.staying.get(place).map(|(pod, _)| pod)
            }
            (PreviewRow::Successor(place) | PreviewRow::Help(place, _), PreviewOutcome::Failure(failure)) => {
                failure.successor(place).map(|successor| &successor.of)
            }
            _ => None,
        }
    }

    /// Turns an option, where the plan has it.
    pub fn turn(&mut self, switch: PlanOption) {
        if !self.wish.verb.switches().contains(&switch) {
            return;
        }
        let PlanRequest { drain, removal, overwrite, whole_zones, .. } = &mut self.wish;
        match switch {
            PlanOption::Force => drain.force = !drain.force,
            PlanOption::IgnoreDaemonsets => drain.ignore_daemonsets = !drain.ignore_daemonsets,
            PlanOption::DeleteEmptydirData => drain.delete_emptydir_data = !drain.delete_emptydir_data,
            PlanOption::DisableEviction => drain.disable_eviction = !drain.disable_eviction,
            PlanOption::Grace => {
                drain.grace = next_grace(drain.grace);
                removal.grace = next_grace(removal.grace);
            }
            PlanOption::Parallel => {
                drain.parallel = match drain.parallel {
                    0 | 1 => 2,
                    2 => 5,
                    3..10 => 10,
                    _ => 1,
                }
            }
            PlanOption::Overwrite => *overwrite = !*overwrite,
            PlanOption::WholeZones => *whole_zones = !*whole_zones,
        }
    }

    /// Types into its line.
    pub fn edit(&mut self, request: InputRequest) {
        let Some(line) = &mut self.line else { return };
        line.input.handle(request);
        self.read_line();
    }

    /// Takes the chosen candidate for the last word.
    pub fn complete(&mut self) {
        let Some(line) = &mut self.line else { return };
        let Some(word) = line.candidates.get(line.chosen) else { return };
        line.input = Input::new(completed(line.input.value(), word));
        self.read_line();
    }

    /// Goes on to the next candidate, round and round.
    pub fn next_candidate(&mut self) {
        let Some(line) = &mut self.line else { return };
        line.chosen = (line.chosen + 1) % line.candidates.len().max(1);
    }

    fn read_line(&mut self) {
        let Some(line) = &mut self.line else { return };
        self.wish.words = line.input.value().into();
        line.candidates = line.words.candidates(line.input.value());
        line.chosen = 0;
    }

    /// Keeps out what the filter keeps out, where the rows or the filter have changed.
    pub fn arrange(&mut self, filter: &Filter) {
        if self.arranged.as_ref() == Some(filter) {
            return;
        }
        let rows = self.done.as_ref().map_or(&[][..], |done| &done.rows);
        let passes = |row: PreviewRow| match &self.done {
            Some(done) => filter.is_empty() || filter.matches(&Told { what: &done.what, row }),
            None => false,
        };
        let mut kept = Vec::new();
        // The title waits for the first row under it that passes.
        let mut title = None;
        for (place, row) in rows.iter().enumerate() {
            match row {
                PreviewRow::Section(_) => title = Some(place),
                row if passes(*row) => kept.extend(title.take().into_iter().chain([place])),
                _ => {}
            }
        }
        self.list.replace(kept);
        // A title is nothing to stand on, and always has a row under it.
        if self.list.place() == 0 && !self.list.is_empty() {
            self.list.begin_below();
        }
        self.arranged = Some(filter.clone());
    }
}

fn next_grace(grace: Option<Span>) -> Option<Span> {
    match grace.map(Span::as_secs) {
        None => Some(Span::from_secs(30)),
        Some(30) => Some(Span::from_secs(5)),
        Some(5) => Some(Span::ZERO),
        Some(_) => None,
    }
}

impl PlanKind {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Cordon => "cordon",
            Self::Uncordon => "uncordon",
            Self::Drain => "drain",
            Self::Taint => "taint",
            Self::Label => "label",
            Self::Evict => "evict",
            Self::Delete => "delete",
            Self::Failure => "failure of",
        }
    }

    /// Whether where pods land is part of the answer.
    const fn asks_for_places(self) -> bool {
        match self {
            Self::Cordon | Self::Label => false,
            Self::Uncordon | Self::Taint | Self::Drain | Self::Evict | Self::Delete | Self::Failure => true,
        }
    }

    /// The options that it has.
    pub const fn switches(self) -> &'static [PlanOption] {
        match self {
            Self::Cordon | Self::Uncordon => &[],
            Self::Drain => &[
                PlanOption::IgnoreDaemonsets,
                PlanOption::DeleteEmptydirData,
                PlanOption::Force,
                PlanOption::DisableEviction,
                PlanOption::Grace,
                PlanOption::Parallel,
            ],
            Self::Taint | Self::Label => &[PlanOption::Overwrite],
            Self::Evict | Self::Delete => &[PlanOption::Grace],
            Self::Failure => &[PlanOption::WholeZones],
        }
    }
}

impl PlanOption {
    /// The flag that it stands for, where a plan may ask for it.
    pub const fn flag(self) -> Option<DrainFlag> {
        match self {
            Self::Force => Some(DrainFlag::Force),
            Self::IgnoreDaemonsets => Some(DrainFlag::IgnoreDaemonsets),
            Self::DeleteEmptydirData => Some(DrainFlag::DeleteEmptydirData),
            Self::DisableEviction | Self::Grace | Self::Parallel | Self::Overwrite | Self::WholeZones => None,
        }
    }
}

impl PlanRequest {
    pub fn new(verb: PlanKind, subjects: Targets) -> Self {
        Self {
            verb,
            subjects,
            // As it is carried out from here.
            drain: DrainOptions { retry: Retry::OnRecovery, ..DrainOptions::default() },
            removal: RemovalOptions { retry: Retry::OnRecovery, ..RemovalOptions::default() },
            words: String::new(),
            overwrite: false,
            whole_zones: false,
        }
    }

    /// The action that is asked for; none for a failure, which is nobody's action.
    fn action(&self) -> Result<Option<Action>, String> {
        let nodes = || match &self.subjects {
            Targets::Nodes(nodes) => nodes.clone(),
            Targets::Pods(_) => Vec::new(),
        };
        let pods = || match &self.subjects {
            Targets::Pods(pods) => pods.clone(),
            Targets::Nodes(_) => Vec::new(),
        };
        let words = self.words.split_whitespace();
        Ok(Some(match self.verb {
            PlanKind::Cordon => Action::Cordon { nodes: nodes() },
            PlanKind::Uncordon => Action::Uncordon { nodes: nodes() },
            PlanKind::Drain => Action::Drain { nodes: nodes(), options: self.drain.clone() },
            PlanKind::Taint => {
                let edits = TaintEdits::parse(words, self.overwrite).map_err(|error| error.to_string())?;
                Action::Taint { nodes: nodes(), edits }
            }
            PlanKind::Label => {
                let edits = LabelEdits::parse(words, self.overwrite).map_err(|error| error.to_string())?;
                Action::Label { nodes: nodes(), edits }
            }
            PlanKind::Evict => Action::Evict { pods: pods(), options: self.removal },
            PlanKind::Delete => Action::Delete { pods: pods(), options: self.removal },
            PlanKind::Failure => return Ok(None),
        }))
    }
}

impl PreviewJob {
    /// Works the plan out.
    pub fn work(mut self) -> PreviewResult {
        let asks = self.wish.verb.asks_for_places();
        let ground = std::mem::take(&mut self.ground);
        let ground = asks.then(|| ground.of(&self.cluster, self.version));
        let what = match self.wish.action() {
            Err(text) => PreviewOutcome::Nothing(text),
            Ok(Some(action)) => self.plan(action, ground.as_ref()),
            Ok(None) => self.failure(ground.as_ref()),
        };
        let rows = match &what {
            PreviewOutcome::Plan(plan) => rows_of_plan(plan),
            PreviewOutcome::Failure(failure) => rows_of_failure(failure),
            PreviewOutcome::Nothing(_) => Vec::new(),
        };
        PreviewResult { wish: self.wish, what, rows, basis: self.basis, ground }
    }

    fn plan(&self, action: Action, ground: Option<&Snapshot>) -> PreviewOutcome {
        let (cluster, now) = (&self.cluster, self.now);
        let plan = Plan::over(action, cluster, ground.cloned(), self.version, now);
        match plan {
            Ok(plan) => PreviewOutcome::Plan(Box::new(plan)),
            Err(error) => PreviewOutcome::Nothing(error.to_string()),
        }
    }

    fn failure(&self, ground: Option<&Snapshot>) -> PreviewOutcome {
        let (cluster, now) = (&self.cluster, self.now);
        let Some(engine) = &self.engine else {
            return PreviewOutcome::Nothing(
                "nothing can be foretold before nodes and leases have been listed".into(),
            );
        };
        match engine.confidence(now) {
            Confidence::Live | Confidence::Assumed => {}
            Confidence::Disconnected { .. } => {
                return PreviewOutcome::Nothing(
                    "nodes and leases are not seen: nothing can be foretold".into(),
                );
            }
            Confidence::NoController { .. } => {
                return PreviewOutcome::Nothing(
                    "no controller manager leads: nothing would happen until one does".into(),
                );
            }
        }
        let (nodes, zones) = self.failing();
        let under = |assumptions: &Assumptions| {
            Forecast::under(assumptions, engine, cluster, self.ahead, now, HORIZON)
        };
        let assumptions = Assumptions::failing(nodes.clone(), now);
        let mut forecast = under(&assumptions);
        let staying = forecast.staying(cluster, &nodes);
        forecast.leave_out(&under(&Assumptions::default()), &nodes);
        let mut totals = forecast::ForecastTotals::default();
        forecast.steps.iter().for_each(|step| totals.add(&step.what));
        let looks = totals.deleted.saturating_mul(cluster.nodes().len());
        let succession = ground.filter(|_| looks <= MOST_LOOKS).map(|snapshot| {
            forecast.successors(
                &assumptions,
                cluster,
                PlacingEnvironment::new(cluster, snapshot.clone(), now),
            )
        });
        PreviewOutcome::Failure(Box::new(FailureImpact {
            nodes,
            zones,
            forecast,
            totals,
            staying,
            succession,
        }))
    }

    /// The nodes that fail, and the zones that do as a whole.
    fn failing(&self) -> (BTreeSet<NodeName>, BTreeSet<ZoneKey>) {
        let Targets::Nodes(named) = &self.wish.subjects else { return Default::default() };
        let there = named.iter().filter_map(|name| self.cluster.node(name));
        if !self.wish.whole_zones {
            return (there.map(|node| node.name.clone()).collect(), BTreeSet::new());
        }
        let zones: BTreeSet<ZoneKey> = there.map(|node| node.zone()).collect();
        let fails = self.cluster.nodes().iter().filter(|node| zones.contains(&node.zone()));
        (fails.map(|node| node.name.clone()).collect(), zones)
    }
}

fn rows_of_plan(plan: &Plan) -> Vec<PreviewRow> {
    let mut rows = Vec::new();
    let mut section = |title, found| add_section(&mut rows, title, found);
    section("warnings", (0..plan.warnings.len()).map(PreviewRow::Warning).collect());
    // That the one node of a drain is cordoned goes without saying.
    let drains = matches!(plan.action, Action::Drain { .. });
    let told = !drains || plan.nodes.len() > 1;
    section("nodes", (0..plan.nodes.len()).filter(|_| told).map(PreviewRow::Node).collect());
    let mut pods: Vec<usize> = (0..plan.pods.len()).collect();
    pods.sort_by_key(|place| urgency(&plan.pods[*place]));
    section("pods", pods.iter().copied().map(PreviewRow::Pod).collect());
    let helps = |pod: &usize| {
        (0..plan.pods[*pod].help().len()).map(|help| PreviewRow::Help(*pod, help)).collect::<Vec<_>>()
    };
    section("what would help who stays Pending", pods.iter().flat_map(helps).collect());
    section("land here from Pending", (0..plan.arrivals.len()).map(PreviewRow::Arrival).collect());
    section("nodes that receive pods", (0..plan.receivers.len()).map(PreviewRow::Receiver).collect());
    section("budgets", (0..plan.budgets.len()).map(PreviewRow::Budget).collect());
    let kubectl = plan.command.as_ref().map(|_| PreviewRow::Kubectl);
    section("commands", kubectl.into_iter().chain([PreviewRow::Kordon]).collect());
    section("timeline", (0..plan.timeline.len()).map(PreviewRow::Moment).collect());
    section("API calls", (0..plan.steps.len()).map(PreviewRow::Call).collect());
    section("taken for granted", (0..plan.assumptions.len()).map(PreviewRow::Assumption).collect());
    rows
}

/// What asks for a decision first, then by time; what stays last.
fn urgency(pod: &PodPlan) -> (u8, Timestamp) {
    let class = match &pod.verdict {
        Verdict::Refused { .. } => 0,
        Verdict::Blocked { .. } | Verdict::TwoBudgets { .. } | Verdict::Unknown { .. } => 1,
        Verdict::Waits { .. } | Verdict::WaitsForController { .. } | Verdict::WaitsForNamespace => 2,
        Verdict::LeavesAfter { .. } => 3,
        Verdict::Leaves(_) | Verdict::Deleted { .. } => 4,
        Verdict::Leaving => 5,
        Verdict::Spared => 6,
        Verdict::Skipped(_) | Verdict::Tolerates => 7,
    };
    (class, pod.leaves.likely.unwrap_or(Timestamp::MAX))
}

fn rows_of_failure(failure: &FailureImpact) -> Vec<PreviewRow> {
    let mut rows = Vec::new();
    let mut section = |title, found| add_section(&mut rows, title, found);
    section("what comes", (0..failure.forecast.steps.len()).map(PreviewRow::Coming).collect());
    section("by chance", (0..failure.forecast.uncertain_taints.len()).map(PreviewRow::Chance).collect());
    section("stay", (0..failure.staying.len()).map(PreviewRow::Stays).collect());
    match &failure.succession {
        Some((successors, account)) => {
            section("what comes after them", (0..successors.len()).map(PreviewRow::Successor).collect());
            let helps = successors.iter().enumerate().flat_map(|(place, successor)| {
                (0..successor.help(account).len()).map(move |help| PreviewRow::Help(place, help))
            });
            section("what would help who stays Pending", helps.collect());
            section(
                "nodes that receive pods",
                (0..account.receivers.len()).map(PreviewRow::Receiver).collect(),
            );
        }
        None => section("what comes after them", vec![PreviewRow::TooMany]),
    }
    section("commands", vec![PreviewRow::Kordon]);
    rows
}

/// A title and what is under it, where there is anything.
fn add_section(rows: &mut Vec<PreviewRow>, title: &'static str, found: Vec<PreviewRow>) {
    if !found.is_empty() {
        rows.push(PreviewRow::Section(title));
        rows.extend(found);
    }
}

/// A row with what it is a place in.
struct Told<'a> {
    what: &'a PreviewOutcome,
    row: PreviewRow,
}

impl Told<'_> {
    fn pod(&self) -> Option<&PodPlan> {
        match (self.row, self.what) {
            (PreviewRow::Pod(place) | PreviewRow::Help(place, _), PreviewOutcome::Plan(plan)) => {
                plan.pods.get(place)
            }
            _ => None,
        }
    }
}

impl Filterable for Told<'_> {
    fn field(&self, key: &str) -> Option<String> {
        let pod = self.pod()?;
        match key {
            "pod" | "name" => Some(pod.pod.name.to_string()),
            "ns" | "namespace" => Some(pod.pod.namespace.to_string()),
            "node" => pod.node.as_ref().map(ToString::to_string),
            "verdict" => Some(pod.verdict.told().into()),
            "budget" => pod.verdict.budget().map(ToString::to_string),
            _ => None,
        }
    }

    fn texts(&self, found: &mut dyn FnMut(&str)) {
        match self.what {
            PreviewOutcome::Plan(plan) => texts_of_plan(plan, self.row, found),
            PreviewOutcome::Failure(failure) => texts_of_failure(failure, self.row, found),
            PreviewOutcome::Nothing(_) => {}
        }
    }
}

fn texts_of_plan(plan: &Plan, row: PreviewRow, found: &mut dyn FnMut(&str)) {
    match row {
        PreviewRow::Warning(place) => found(&plan.warnings[place].to_string()),
        PreviewRow::Node(place) => {
            found(&plan.nodes[place].node);
            if let NodeChange::Refused { text } = &plan.nodes[place].change {
                found(text);
            }
        }
        PreviewRow::Pod(place) => {
            let pod = &plan.pods[place];
            found(&pod.pod.to_string());
            pod.node.iter().for_each(|node| found(node));
            found(pod.verdict.told());
            found(&pod.verdict.because());
            pod.minds().iter().for_each(|mind| found(mind));
        }
        PreviewRow::Help(pod, help) => {
            found(&plan.pods[pod].pod.to_string());
            plan.pods[pod].help().get(help).into_iter().for_each(|help| found(help));
        }
        PreviewRow::Arrival(place) => {
            found(&plan.arrivals[place].pod.to_string());
            found(&plan.arrivals[place].node);
        }
        PreviewRow::Receiver(place) => found(&plan.receivers[place].node),
        PreviewRow::Moment(place) => {
            let (subject, word, rest) = plan.timeline[place].what.told();
            [&*subject, word, &*rest].into_iter().for_each(found);
        }
        PreviewRow::Budget(place) => found(&plan.budgets[place].budget.to_string()),
        PreviewRow::Kubectl => plan.command.iter().for_each(|command| found(command)),
        PreviewRow::Kordon => plan.action.kordon().iter().for_each(|command| found(command)),
        PreviewRow::Call(place) => found(&call(&plan.steps[place])),
        PreviewRow::Assumption(place) => found(plan.assumptions[place]),
        PreviewRow::Section(_)
        | PreviewRow::Coming(_)
        | PreviewRow::Chance(_)
        | PreviewRow::Stays(_)
        | PreviewRow::Successor(_)
        | PreviewRow::TooMany => {}
    }
}

fn texts_of_failure(failure: &FailureImpact, row: PreviewRow, found: &mut dyn FnMut(&str)) {
    match row {
        PreviewRow::Coming(place) => {
            let step = &failure.forecast.steps[place];
            found(step.what.node());
            if let Some(pod) = pod_of(&step.what) {
                found(&pod.to_string());
            }
            found(&step.why.to_string());
        }
        PreviewRow::Stays(place) => {
            let (pod, node) = &failure.staying[place];
            found(&pod.to_string());
            found(node);
        }
        PreviewRow::Kordon => found(&failure.kordon()),
        PreviewRow::Successor(place) => {
            if let Some(successor) = failure.successor(place) {
                found(&successor.of.to_string());
                found(&successor.from);
                successor.state.node().into_iter().for_each(|node| found(node));
                successor.state.why().into_iter().for_each(&mut *found);
            }
        }
        PreviewRow::Help(place, help) => {
            failure.successor(place).into_iter().for_each(|successor| found(&successor.of.to_string()));
            failure.help(place).get(help).into_iter().for_each(|help| found(help));
        }
        PreviewRow::Receiver(place) => {
            failure.receivers().get(place).into_iter().for_each(|receiver| found(&receiver.node));
        }
        PreviewRow::Section(_)
        | PreviewRow::TooMany
        | PreviewRow::Warning(_)
        | PreviewRow::Node(_)
        | PreviewRow::Pod(_)
        | PreviewRow::Arrival(_)
        | PreviewRow::Budget(_)
        | PreviewRow::Moment(_)
        | PreviewRow::Kubectl
        | PreviewRow::Call(_)
        | PreviewRow::Assumption(_)
        | PreviewRow::Chance(_) => {}
    }
}

/// The pod that something happens to.
pub const fn pod_of(what: &forecast::ForecastKind) -> Option<&Key> {
    match what {
        forecast::ForecastKind::Deleted { pod, .. } | forecast::ForecastKind::Removed { pod, .. } => {
            Some(pod)
        }
        forecast::ForecastKind::Unknown { .. } | forecast::ForecastKind::NoExecute { .. } => None,
    }
}

/// An API call in one line.
pub fn call(step: &PlanStep) -> String {
    let call = step.call();
    format!("{} {} {}", call.method, call.path, call.body)
}

impl FailureImpact {
    /// What comes after a pod that goes.
    pub fn successor(&self, place: usize) -> Option<&Successor> {
        self.succession.as_ref()?.0.get(place)
    }

    /// What would help it, where it stays Pending.
    pub fn help(&self, place: usize) -> Vec<String> {
        let help =
            |(successors, account): &(Vec<Successor>, RunTrace)| Some(successors.get(place)?.help(account));
        self.succession.as_ref().and_then(help).unwrap_or_default()
    }

    /// The nodes that receive pods.
    pub fn receivers(&self) -> &[Receiver] {
        self.succession.as_ref().map_or(&[], |(_, account)| &account.receivers)
    }

    /// The command that has kordon print the same.
    pub fn kordon(&self) -> String {
        // Nodes without a zone are one to the controller, but it has no name.
        if self.zones.is_empty() || self.zones.contains(&ZoneKey::default()) {
            let nodes: Vec<&str> = self.nodes.iter().map(|node| &**node).collect();
            return format!("kordon plan node-failure {}", nodes.join(" "));
        }
        let zones: Vec<String> = self.zones.iter().map(ToString::to_string).collect();
        format!("kordon plan zone-failure {}", zones.join(" "))
    }
}
