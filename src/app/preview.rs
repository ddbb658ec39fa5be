//! The plan that is open: what is asked about, and what would come of it. Nothing is written by it.
//!
//! A plan over many nodes takes a while: it is worked out elsewhere ([`App::next_plan`], [`Job::work`],
//! [`App::planned`]), and until it has come, what was known before stays.

use std::collections::BTreeSet;

use tui_input::{Input, InputRequest};

use super::{
    App,
    completion::{Vocabulary, completed},
    filter::{Filter, Filterable},
    ground::Lent,
    listing::Listing,
    screen::Pane,
};
use crate::{
    cluster::{Cluster, Key, NodeName, ZoneKey},
    engine::{Engine, Footing, ServerVersion},
    forecast::{self, Assumptions, Forecast, Successor},
    placement::Snapshot,
    plan::{
        Account, Action, DrainOptions, Flag, NodeChange, Placing, Plan, PodPlan, Receiver, RemovalOptions,
        Retry, Step, TaintEdits, Verdict, label::LabelEdits,
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
pub enum Verb {
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
pub enum Switch {
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
pub enum Subjects {
    Nodes(Vec<NodeName>),
    Pods(Vec<Key>),
}

/// Everything that a plan is asked for by.
#[derive(Clone, Debug, PartialEq)]
pub struct Wish {
    pub verb: Verb,
    pub subjects: Subjects,
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
    pub wish: Wish,
    /// The pane from which it was opened.
    pub from: Pane,
    /// What came of it, as far as it has been worked out.
    pub done: Option<Done>,
    /// Places in the rows of what came of it.
    pub list: Listing<usize>,
    /// The line in which taints or labels are typed; none where nothing is.
    pub line: Option<Line>,
    /// The filter by which the list was made; none after the rows have changed.
    arranged: Option<Filter>,
}

/// The line in which taints or labels are typed.
#[derive(Clone, Debug)]
pub struct Line {
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
pub struct Done {
    pub wish: Wish,
    pub what: Worked,
    pub rows: Vec<Row>,
    basis: Basis,
    /// What the job was lent, on its way back.
    ground: Option<Snapshot>,
}

/// What came of it.
#[derive(Clone, Debug)]
pub enum Worked {
    Plan(Box<Plan>),
    Failure(Box<Failure>),
    /// Nothing, and why.
    Nothing(String),
}

/// What the failure of nodes leads to, beyond what comes anyway.
#[derive(Clone, Debug)]
pub struct Failure {
    pub nodes: BTreeSet<NodeName>,
    pub zones: BTreeSet<ZoneKey>,
    pub forecast: Forecast,
    pub totals: forecast::Totals,
    /// Pods of theirs that run and stay.
    pub staying: Vec<(Key, NodeName)>,
    /// What comes after the pods that go, and what was weighed; none where there are too many to work it out again and
    /// again.
    pub succession: Option<(Vec<Successor>, Account)>,
}

/// One line of it: a place in a list of the plan or of the failure's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
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
    /// [`super::Knowledge::planned_over`]
    changes: u64,
    /// Of a failure, which hangs on every heartbeat: when the engine was last asked.
    taken: Option<Timestamp>,
}

/// A plan to be worked out, with copies of all that it takes.
#[derive(Debug)]
pub struct Job {
    wish: Wish,
    cluster: Cluster,
    engine: Option<Engine>,
    ahead: Span,
    version: ServerVersion,
    basis: Basis,
    ground: Lent,
    now: Timestamp,
}

impl App {
    /// What the open plan is to be worked out from anew: it is not of the present wish, or the cluster has changed.
    pub fn next_plan(&mut self, now: Timestamp) -> Option<Job> {
        let (wish, basis) = self.plan_is_due()?;
        let wish = wish.clone();
        // What is kept follows the present, and is of no use to who looks at the past.
        let asks = wish.verb.asks_for_places() && self.frozen.is_none();
        let ground = if asks { self.ground.lend() } else { Lent::default() };
        let shown = self.shown();
        Some(Job {
            cluster: shown.cluster.clone(),
            engine: shown.engine.clone().filter(|_| wish.verb == Verb::Failure),
            ahead: shown.feeds.ahead(),
            version: self.settings.version,
            basis,
            ground,
            now: self.shown_at(now),
            wish,
        })
    }

    /// The wish that is behind, and what it is to be worked out over.
    fn plan_is_due(&self) -> Option<(&Wish, Basis)> {
        let preview = self.screen.preview.as_ref()?;
        let shown = self.shown();
        let is_failure = preview.wish.verb == Verb::Failure;
        let basis = Basis { changes: shown.planned_over, taken: is_failure.then_some(shown.views.taken) };
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
    pub fn planned(&mut self, mut done: Done, now: Timestamp) -> Option<Done> {
        if let Some(snapshot) = done.ground.take() {
            done.ground = self.ground.put_back(snapshot);
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
            let what = Worked::Nothing("working it out failed: this is a fault of kordon".into());
            let wish = preview.wish.clone();
            preview.done = Some(Done { wish, what, rows: Vec::new(), basis, ground: None });
            preview.arranged = None;
        }
    }
}

impl Preview {
    pub fn new(wish: Wish, from: Pane, cluster: &Cluster) -> Self {
        let words = match (&wish.subjects, wish.verb) {
            (Subjects::Nodes(nodes), Verb::Taint) => Some(Vocabulary::of_taints(cluster, nodes)),
            (Subjects::Nodes(nodes), Verb::Label) => Some(Vocabulary::of_labels(cluster, nodes)),
            _ => None,
        };
        let line = words.map(|words| Line {
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
    pub fn row(&self, place: usize) -> Option<Row> {
        let done = self.done.as_ref()?;
        self.list.keys().get(place).and_then(|row| done.rows.get(*row)).copied()
    }

    /// The pod that the selected row is about.
    pub fn selected_pod(&self) -> Option<&Key> {
        match (self.row(self.list.place())?, &self.done.as_ref()?.what) {
            (Row::Pod(place) | Row::Help(place, _), Worked::Plan(plan)) => {
                plan.pods.get(place).map(|pod| &pod.pod)
            }
            (Row::Arrival(place), Worked::Plan(plan)) => plan.arrivals.get(place).map(|pod| &pod.pod),
            (Row::Moment(place), Worked::Plan(plan)) => plan.timeline.get(place)?.what.pod(),
            (Row::Stays(place), Worked::Failure(failure)) => failure.staying.get(place).map(|(pod, _)| pod),
            (Row::Successor(place) | Row::Help(place, _), Worked::Failure(failure)) => {
                failure.successor(place).map(|successor| &successor.of)
            }
            _ => None,
        }
    }

    /// Turns an option, where the plan has it.
    pub fn turn(&mut self, switch: Switch) {
        if !self.wish.verb.switches().contains(&switch) {
            return;
        }
        let Wish { drain, removal, overwrite, whole_zones, .. } = &mut self.wish;
        match switch {
            Switch::Force => drain.force = !drain.force,
            Switch::IgnoreDaemonsets => drain.ignore_daemonsets = !drain.ignore_daemonsets,
            Switch::DeleteEmptydirData => drain.delete_emptydir_data = !drain.delete_emptydir_data,
            Switch::DisableEviction => drain.disable_eviction = !drain.disable_eviction,
            Switch::Grace => {
                drain.grace = next_grace(drain.grace);
                removal.grace = next_grace(removal.grace);
            }
            Switch::Parallel => {
                drain.parallel = match drain.parallel {
                    0 | 1 => 2,
                    2 => 5,
                    3..10 => 10,
                    _ => 1,
                }
            }
            Switch::Overwrite => *overwrite = !*overwrite,
            Switch::WholeZones => *whole_zones = !*whole_zones,
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
        let passes = |row: Row| match &self.done {
            Some(done) => filter.is_empty() || filter.matches(&Told { what: &done.what, row }),
            None => false,
        };
        let mut kept = Vec::new();
        // The title waits for the first row under it that passes.
        let mut title = None;
        for (place, row) in rows.iter().enumerate() {
            match row {
                Row::Section(_) => title = Some(place),
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

impl Verb {
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
    pub const fn switches(self) -> &'static [Switch] {
        match self {
            Self::Cordon | Self::Uncordon => &[],
            Self::Drain => &[
                Switch::IgnoreDaemonsets,
                Switch::DeleteEmptydirData,
                Switch::Force,
                Switch::DisableEviction,
                Switch::Grace,
                Switch::Parallel,
            ],
            Self::Taint | Self::Label => &[Switch::Overwrite],
            Self::Evict | Self::Delete => &[Switch::Grace],
            Self::Failure => &[Switch::WholeZones],
        }
    }
}

impl Switch {
    /// The flag that it stands for, where a plan may ask for it.
    pub const fn flag(self) -> Option<Flag> {
        match self {
            Self::Force => Some(Flag::Force),
            Self::IgnoreDaemonsets => Some(Flag::IgnoreDaemonsets),
            Self::DeleteEmptydirData => Some(Flag::DeleteEmptydirData),
            Self::DisableEviction | Self::Grace | Self::Parallel | Self::Overwrite | Self::WholeZones => None,
        }
    }
}

impl Wish {
    pub fn new(verb: Verb, subjects: Subjects) -> Self {
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
            Subjects::Nodes(nodes) => nodes.clone(),
            Subjects::Pods(_) => Vec::new(),
        };
        let pods = || match &self.subjects {
            Subjects::Pods(pods) => pods.clone(),
            Subjects::Nodes(_) => Vec::new(),
        };
        let words = self.words.split_whitespace();
        Ok(Some(match self.verb {
            Verb::Cordon => Action::Cordon { nodes: nodes() },
            Verb::Uncordon => Action::Uncordon { nodes: nodes() },
            Verb::Drain => Action::Drain { nodes: nodes(), options: self.drain.clone() },
            Verb::Taint => {
                let edits = TaintEdits::parse(words, self.overwrite).map_err(|error| error.to_string())?;
                Action::Taint { nodes: nodes(), edits }
            }
            Verb::Label => {
                let edits = LabelEdits::parse(words, self.overwrite).map_err(|error| error.to_string())?;
                Action::Label { nodes: nodes(), edits }
            }
            Verb::Evict => Action::Evict { pods: pods(), options: self.removal },
            Verb::Delete => Action::Delete { pods: pods(), options: self.removal },
            Verb::Failure => return Ok(None),
        }))
    }
}

impl Job {
    /// Works the plan out.
    pub fn work(mut self) -> Done {
        let asks = self.wish.verb.asks_for_places();
        let ground = std::mem::take(&mut self.ground);
        let ground = asks.then(|| ground.of(&self.cluster, self.version));
        let what = match self.wish.action() {
            Err(text) => Worked::Nothing(text),
            Ok(Some(action)) => self.plan(action, ground.as_ref()),
            Ok(None) => self.failure(ground.as_ref()),
        };
        let rows = match &what {
            Worked::Plan(plan) => rows_of_plan(plan),
            Worked::Failure(failure) => rows_of_failure(failure),
            Worked::Nothing(_) => Vec::new(),
        };
        Done { wish: self.wish, what, rows, basis: self.basis, ground }
    }

    fn plan(&self, action: Action, ground: Option<&Snapshot>) -> Worked {
        let (cluster, now) = (&self.cluster, self.now);
        let plan = Plan::over(action, cluster, ground.cloned(), self.version, now);
        match plan {
            Ok(plan) => Worked::Plan(Box::new(plan)),
            Err(error) => Worked::Nothing(error.to_string()),
        }
    }

    fn failure(&self, ground: Option<&Snapshot>) -> Worked {
        let (cluster, now) = (&self.cluster, self.now);
        let Some(engine) = &self.engine else {
            return Worked::Nothing(
                "nothing can be foretold before nodes and leases have been listed".into(),
            );
        };
        match engine.footing(now) {
            Footing::Firm => {}
            Footing::Blind { .. } => {
                return Worked::Nothing("nodes and leases are not seen: nothing can be foretold".into());
            }
            Footing::NoController { .. } => {
                return Worked::Nothing(
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
        let mut totals = forecast::Totals::default();
        forecast.steps.iter().for_each(|step| totals.add(&step.what));
        let looks = totals.deleted.saturating_mul(cluster.nodes().len());
        let succession = ground.filter(|_| looks <= MOST_LOOKS).map(|snapshot| {
            forecast.succession(&assumptions, cluster, Placing::new(cluster, snapshot.clone(), now))
        });
        Worked::Failure(Box::new(Failure { nodes, zones, forecast, totals, staying, succession }))
    }

    /// The nodes that fail, and the zones that do as a whole.
    fn failing(&self) -> (BTreeSet<NodeName>, BTreeSet<ZoneKey>) {
        let Subjects::Nodes(named) = &self.wish.subjects else { return Default::default() };
        let there = named.iter().filter_map(|name| self.cluster.node(name));
        if !self.wish.whole_zones {
            return (there.map(|node| node.name.clone()).collect(), BTreeSet::new());
        }
        let zones: BTreeSet<ZoneKey> = there.map(|node| node.zone()).collect();
        let fails = self.cluster.nodes().iter().filter(|node| zones.contains(&node.zone()));
        (fails.map(|node| node.name.clone()).collect(), zones)
    }
}

fn rows_of_plan(plan: &Plan) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut section = |title, found| add_section(&mut rows, title, found);
    section("warnings", (0..plan.warnings.len()).map(Row::Warning).collect());
    // That the one node of a drain is cordoned goes without saying.
    let drains = matches!(plan.action, Action::Drain { .. });
    let told = !drains || plan.nodes.len() > 1;
    section("nodes", (0..plan.nodes.len()).filter(|_| told).map(Row::Node).collect());
    let mut pods: Vec<usize> = (0..plan.pods.len()).collect();
    pods.sort_by_key(|place| urgency(&plan.pods[*place]));
    section("pods", pods.iter().copied().map(Row::Pod).collect());
    let helps =
        |pod: &usize| (0..plan.pods[*pod].help().len()).map(|help| Row::Help(*pod, help)).collect::<Vec<_>>();
    section("what would help who stays Pending", pods.iter().flat_map(helps).collect());
    section("land here from Pending", (0..plan.arrivals.len()).map(Row::Arrival).collect());
    section("nodes that receive pods", (0..plan.receivers.len()).map(Row::Receiver).collect());
    section("budgets", (0..plan.budgets.len()).map(Row::Budget).collect());
    let kubectl = plan.command.as_ref().map(|_| Row::Kubectl);
    section("commands", kubectl.into_iter().chain([Row::Kordon]).collect());
    section("timeline", (0..plan.timeline.len()).map(Row::Moment).collect());
    section("API calls", (0..plan.steps.len()).map(Row::Call).collect());
    section("taken for granted", (0..plan.assumptions.len()).map(Row::Assumption).collect());
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

fn rows_of_failure(failure: &Failure) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut section = |title, found| add_section(&mut rows, title, found);
    section("what comes", (0..failure.forecast.steps.len()).map(Row::Coming).collect());
    section("by chance", (0..failure.forecast.chances.len()).map(Row::Chance).collect());
    section("stay", (0..failure.staying.len()).map(Row::Stays).collect());
    match &failure.succession {
        Some((successors, account)) => {
            section("what comes after them", (0..successors.len()).map(Row::Successor).collect());
            let helps = successors.iter().enumerate().flat_map(|(place, successor)| {
                (0..successor.help(account).len()).map(move |help| Row::Help(place, help))
            });
            section("what would help who stays Pending", helps.collect());
            section("nodes that receive pods", (0..account.receivers.len()).map(Row::Receiver).collect());
        }
        None => section("what comes after them", vec![Row::TooMany]),
    }
    section("commands", vec![Row::Kordon]);
    rows
}

/// A title and what is under it, where there is anything.
fn add_section(rows: &mut Vec<Row>, title: &'static str, found: Vec<Row>) {
    if !found.is_empty() {
        rows.push(Row::Section(title));
        rows.extend(found);
    }
}

/// A row with what it is a place in.
struct Told<'a> {
    what: &'a Worked,
    row: Row,
}

impl Told<'_> {
    fn pod(&self) -> Option<&PodPlan> {
        match (self.row, self.what) {
            (Row::Pod(place) | Row::Help(place, _), Worked::Plan(plan)) => plan.pods.get(place),
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
            Worked::Plan(plan) => texts_of_plan(plan, self.row, found),
            Worked::Failure(failure) => texts_of_failure(failure, self.row, found),
            Worked::Nothing(_) => {}
        }
    }
}

fn texts_of_plan(plan: &Plan, row: Row, found: &mut dyn FnMut(&str)) {
    match row {
        Row::Warning(place) => found(&plan.warnings[place].to_string()),
        Row::Node(place) => {
            found(&plan.nodes[place].node);
            if let NodeChange::Refused { text } = &plan.nodes[place].change {
                found(text);
            }
        }
        Row::Pod(place) => {
            let pod = &plan.pods[place];
            found(&pod.pod.to_string());
            pod.node.iter().for_each(|node| found(node));
            found(pod.verdict.told());
            found(&pod.verdict.because());
            pod.minds().iter().for_each(|mind| found(mind));
        }
        Row::Help(pod, help) => {
            found(&plan.pods[pod].pod.to_string());
            plan.pods[pod].help().get(help).into_iter().for_each(|help| found(help));
        }
        Row::Arrival(place) => {
            found(&plan.arrivals[place].pod.to_string());
            found(&plan.arrivals[place].node);
        }
        Row::Receiver(place) => found(&plan.receivers[place].node),
        Row::Moment(place) => {
            let (subject, word, rest) = plan.timeline[place].what.told();
            [&*subject, word, &*rest].into_iter().for_each(found);
        }
        Row::Budget(place) => found(&plan.budgets[place].budget.to_string()),
        Row::Kubectl => plan.command.iter().for_each(|command| found(command)),
        Row::Kordon => plan.action.kordon().iter().for_each(|command| found(command)),
        Row::Call(place) => found(&call(&plan.steps[place])),
        Row::Assumption(place) => found(plan.assumptions[place]),
        Row::Section(_)
        | Row::Coming(_)
        | Row::Chance(_)
        | Row::Stays(_)
        | Row::Successor(_)
        | Row::TooMany => {}
    }
}

fn texts_of_failure(failure: &Failure, row: Row, found: &mut dyn FnMut(&str)) {
    match row {
        Row::Coming(place) => {
            let step = &failure.forecast.steps[place];
            found(step.what.node());
            if let Some(pod) = pod_of(&step.what) {
                found(&pod.to_string());
            }
            found(&step.why.to_string());
        }
        Row::Stays(place) => {
            let (pod, node) = &failure.staying[place];
            found(&pod.to_string());
            found(node);
        }
        Row::Kordon => found(&failure.kordon()),
        Row::Successor(place) => {
            if let Some(successor) = failure.successor(place) {
                found(&successor.of.to_string());
                found(&successor.from);
                successor.fate.node().into_iter().for_each(|node| found(node));
                successor.fate.why().into_iter().for_each(&mut *found);
            }
        }
        Row::Help(place, help) => {
            failure.successor(place).into_iter().for_each(|successor| found(&successor.of.to_string()));
            failure.help(place).get(help).into_iter().for_each(|help| found(help));
        }
        Row::Receiver(place) => {
            failure.receivers().get(place).into_iter().for_each(|receiver| found(&receiver.node));
        }
        Row::Section(_)
        | Row::TooMany
        | Row::Warning(_)
        | Row::Node(_)
        | Row::Pod(_)
        | Row::Arrival(_)
        | Row::Budget(_)
        | Row::Moment(_)
        | Row::Kubectl
        | Row::Call(_)
        | Row::Assumption(_)
        | Row::Chance(_) => {}
    }
}

/// The pod that something happens to.
pub const fn pod_of(what: &forecast::What) -> Option<&Key> {
    match what {
        forecast::What::Deleted { pod, .. } | forecast::What::Removed { pod, .. } => Some(pod),
        forecast::What::Unknown { .. } | forecast::What::NoExecute { .. } => None,
    }
}

/// An API call in one line.
pub fn call(step: &Step) -> String {
    let call = step.call();
    format!("{} {} {}", call.method, call.path, call.body)
}

impl Failure {
    /// What comes after a pod that goes.
    pub fn successor(&self, place: usize) -> Option<&Successor> {
        self.succession.as_ref()?.0.get(place)
    }

    /// What would help it, where it stays Pending.
    pub fn help(&self, place: usize) -> Vec<String> {
        let help =
            |(successors, account): &(Vec<Successor>, Account)| Some(successors.get(place)?.help(account));
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
