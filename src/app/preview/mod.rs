//! The open plan: its request, and its latest result. It writes nothing.
//!
//! Another thread computes the result: [`App::next_plan`](super::App::next_plan) returns the job, [`PreviewJob::work`]
//! runs it, and [`App::planned`](super::App::planned) shows its result. The previous result stays until the next one
//! arrives.

mod diff;
mod failure_rows;
mod job;
mod plan_rows;
mod request;
mod rows;

use std::mem::discriminant;

use tui_input::{Input, InputRequest};

use super::{
    completion::Vocabulary,
    filter::{Filter, Filterable},
    listing::{Listing, Movement},
    pane::Pane,
};
use kordon_core::{
    cluster::{Cluster, Key},
    plan::Plan,
};

pub use diff::{DiffView, ReadNodes};
pub use failure_rows::{FailureImpact, FailureRow, FailureView};
pub use job::{FailureJob, HORIZON, PreviewBasis, PreviewJob, PreviewOutcome, PreviewResult, PreviewWork};
pub use plan_rows::{PlanRow, PlanView, call};
pub use request::{PlanKind, PlanOption, PlanRequest, Targets};
pub use rows::Row;

/// The open plan.
#[derive(Clone, Debug)]
pub struct Preview {
    pub request: PlanRequest,
    /// Pane from which the plan was opened.
    pub from: Pane,
    /// Number of the plan's marked nodes or pods that the filter of that pane hides.
    pub hidden_marks: usize,
    /// Latest computed plan or impact; `None` until the first one arrives.
    pub result: Option<PreviewResult>,
    /// Indices of the listed rows of the result.
    pub list: Listing<usize>,
    /// Input line for taints, labels or annotations, or for an option; `None` for other kinds of plans while no option
    /// is typed.
    pub line: Option<EditLine>,
    /// The diff of the plan, shown in place of the rows of the result; `None` if the rows are shown.
    pub diff: Option<Box<DiffView>>,
    /// The row of the plan that was selected last.
    chosen: Option<ChosenRow>,
    /// Whether the user has moved among the rows of the plan.
    is_moved: bool,
    /// Whether the request for the plan has changed since the last result. If so, the list of the next result starts
    /// from the top, unless the user has moved.
    is_new_request: bool,
    /// Filter with which the present list was made; `None` after the rows have changed.
    arranged: Option<Filter>,
}

/// Input line for taints, labels or annotations, or for the value of an option.
#[derive(Clone, Debug)]
pub struct EditLine {
    /// The option whose value is typed; `None` for a line of taints, labels or annotations.
    pub option: Option<PlanOption>,
    pub input: Input,
    /// Whether keys are typed into the line.
    pub is_open: bool,
    /// Why the typed text is not valid; `None` until the user tries to keep it.
    pub fault: Option<String>,
    /// Proposals that complete the last typed word.
    pub candidates: Vec<String>,
    /// Index of the proposal that Tab takes.
    pub chosen: usize,
    vocabulary: Vocabulary,
}

/// The selected row, and the pod that it is about. The pod identifies the row if the row gets another index.
#[derive(Clone, Debug)]
enum ChosenRow {
    Plan(Row<PlanRow>, Option<Key>),
    Failure(Row<FailureRow>, Option<Key>),
}

impl ChosenRow {
    /// Whether both describe the same row. Rows about the same pod are the same even if their indices differ; other
    /// rows must be equal.
    fn is_same(&self, other: &Self) -> bool {
        fn same<R: PartialEq>(one: (&Row<R>, Option<&Key>), other: (&Row<R>, Option<&Key>)) -> bool {
            match (one, other) {
                ((Row::Item(one), Some(pod)), (Row::Item(other), other_pod)) => {
                    Some(pod) == other_pod && discriminant(one) == discriminant(other)
                }
                _ => one == other,
            }
        }
        match (self, other) {
            (Self::Plan(row, pod), Self::Plan(other, other_pod)) => {
                same((row, pod.as_ref()), (other, other_pod.as_ref()))
            }
            (Self::Failure(row, pod), Self::Failure(other, other_pod)) => {
                same((row, pod.as_ref()), (other, other_pod.as_ref()))
            }
            (Self::Plan(..), Self::Failure(..)) | (Self::Failure(..), Self::Plan(..)) => false,
        }
    }
}

impl Preview {
    pub fn new(request: PlanRequest, from: Pane, cluster: &Cluster) -> Self {
        let vocabulary = match (&request.targets, request.kind) {
            (Targets::Nodes(nodes), PlanKind::Taint) => Some(Vocabulary::for_taints(cluster, nodes)),
            (Targets::Nodes(nodes), PlanKind::Metadata(field)) => {
                Some(Vocabulary::for_metadata(field, cluster, nodes))
            }
            _ => None,
        };
        let line = vocabulary.map(|vocabulary| EditLine::new(None, vocabulary, &request.edits));
        Self {
            request,
            from,
            hidden_marks: 0,
            result: None,
            list: Listing::default(),
            line,
            diff: None,
            chosen: None,
            is_moved: false,
            is_new_request: false,
            arranged: None,
        }
    }

    /// Whether the result of the open plan is missing or belongs to an earlier request.
    pub fn is_behind(&self) -> bool {
        self.result.as_ref().is_none_or(|result| result.request != self.request)
    }

    /// Whether keys are typed into the input line.
    pub fn is_typing(&self) -> bool {
        self.line.as_ref().is_some_and(|line| line.is_open)
    }

    pub fn outcome(&self) -> Option<&PreviewOutcome> {
        self.result.as_ref().map(|result| &result.outcome)
    }

    /// The plan; `None` until it is computed, for a failure, and after an error.
    pub fn plan(&self) -> Option<&Plan> {
        match self.outcome()? {
            PreviewOutcome::Plan(view) => Some(&view.plan),
            PreviewOutcome::Failure(_) | PreviewOutcome::Fault(_) => None,
        }
    }

    /// Why there is no plan.
    pub fn fault(&self) -> Option<&str> {
        match self.outcome()? {
            PreviewOutcome::Fault(text) => Some(text),
            PreviewOutcome::Plan(_) | PreviewOutcome::Failure(_) => None,
        }
    }

    /// The index of the selected row.
    pub fn selected_row(&self) -> Option<usize> {
        self.list.selected().copied()
    }

    /// The pod of the selected row.
    pub fn selected_pod(&self) -> Option<Key> {
        match self.row(self.selected_row()?)? {
            ChosenRow::Plan(_, pod) | ChosenRow::Failure(_, pod) => pod,
        }
    }

    fn row(&self, place: usize) -> Option<ChosenRow> {
        match self.outcome().filter(|_| self.diff.is_none())? {
            PreviewOutcome::Plan(view) => {
                let row = *view.rows.get(place)?;
                let pod = if let Row::Item(item) = row { view.pod_of(item).cloned() } else { None };
                Some(ChosenRow::Plan(row, pod))
            }
            PreviewOutcome::Failure(view) => {
                let row = *view.rows.get(place)?;
                let pod = if let Row::Item(item) = row { view.pod_of(item).cloned() } else { None };
                Some(ChosenRow::Failure(row, pod))
            }
            PreviewOutcome::Fault(_) => None,
        }
    }

    /// Changes an option, if this kind of plan has it.
    pub fn toggle(&mut self, option: PlanOption) {
        self.request.toggle(option);
        self.is_new_request = true;
    }

    /// Opens the line in which the value of an option is typed, if this kind of plan has the option.
    pub(super) fn type_option(&mut self, option: PlanOption, cluster: &Cluster) {
        if !self.request.kind.options().contains(&option) {
            return;
        }
        let vocabulary = match (&self.request.targets, option) {
            (Targets::Nodes(nodes), PlanOption::PodSelector) => Vocabulary::for_pods(cluster, nodes),
            _ => Vocabulary::default(),
        };
        let line = EditLine::new(Some(option), vocabulary, &self.request.typed(option));
        self.line = Some(EditLine { is_open: true, ..line });
    }

    /// Sets an option to a typed value.
    ///
    /// # Errors
    /// The plan does not have the option, or the text is not a value of it.
    pub(super) fn set_option(&mut self, option: PlanOption, text: &str) -> Result<(), String> {
        self.request.set_typed(option, text)?;
        self.is_new_request = true;
        Ok(())
    }

    /// Closes the input line of an option without a change. Returns whether such a line was open.
    pub(super) fn leave_option(&mut self) -> bool {
        let is_typed = self.line.as_ref().is_some_and(|line| line.option.is_some());
        if is_typed {
            self.line = None;
        }
        is_typed
    }

    /// Moves the selection among the rows of the plan.
    pub(super) fn step(&mut self, step: Movement) {
        self.is_moved = true;
        self.list.step(step);
    }

    /// Selects the second row if no row is selected, because the first row is a title.
    pub(super) fn choose_first(&mut self) {
        if self.list.is_row_gone() && !self.list.is_empty() {
            self.list.select_second();
        }
    }

    /// Replaces the result of the open plan and returns the previous result.
    pub(super) fn set_result(&mut self, result: PreviewResult) -> Option<PreviewResult> {
        if std::mem::take(&mut self.is_new_request) && !self.is_moved {
            self.chosen = None;
            self.list.restart();
        } else {
            self.remember_chosen();
        }
        self.arranged = None;
        self.result.replace(result)
    }

    /// Stores the selected row, which may have another index among the next rows.
    fn remember_chosen(&mut self) {
        if let Some(row) = self.selected_row().and_then(|place| self.row(place)) {
            self.chosen = Some(row);
        }
    }

    /// Edits the input line.
    pub(super) fn edit(&mut self, request: InputRequest) {
        self.with_line(|line| {
            line.input.handle(request);
        });
    }

    /// Replaces the last word with the chosen proposal.
    pub(super) fn complete(&mut self) {
        self.with_line(EditLine::complete);
    }

    /// Moves the choice among proposals by this many places.
    pub(super) fn choose(&mut self, by: isize) {
        if let Some(line) = &mut self.line {
            let count = line.candidates.len().max(1);
            line.chosen = line.chosen.wrapping_add_signed(by).wrapping_add(count) % count;
        }
    }

    /// Closes the input line and keeps its text. If the text is not valid, the line stays open and shows the reason.
    pub(super) fn keep_edits(&mut self) {
        let option = self.line.as_ref().and_then(|line| Some((line.option?, line.input.value().to_owned())));
        let fault = match option {
            Some((option, text)) => self.set_option(option, &text).err(),
            None => self.request.action().err(),
        };
        if fault.is_none() && self.leave_option() {
            return;
        }
        if let Some(line) = &mut self.line {
            line.is_open = fault.is_some();
            line.fault = fault;
        }
    }

    fn with_line(&mut self, change: impl FnOnce(&mut EditLine)) {
        let Some(line) = &mut self.line else { return };
        change(line);
        line.fault = None;
        line.propose();
        if line.option.is_none() {
            self.request.edits = line.input.value().into();
            self.is_new_request = true;
        }
    }

    /// Lists the rows that pass the filter, if the rows or the filter have changed.
    pub(super) fn arrange(&mut self, filter: &Filter) {
        if self.arranged.as_ref() == Some(filter) {
            return;
        }
        if self.arranged.is_some() {
            self.remember_chosen();
        }
        let everything = filter.is_empty();
        let rows = match (&self.diff, self.outcome()) {
            (Some(diff), _) => {
                let lines = diff.lines.iter().enumerate();
                lines
                    .filter(|(_, line)| everything || filter.matches(*line))
                    .map(|(place, _)| place)
                    .collect()
            }
            (None, Some(PreviewOutcome::Plan(view))) => {
                rows::passing(&view.rows, |row| everything || filter.matches(&view.filterable(*row)))
            }
            (None, Some(PreviewOutcome::Failure(view))) => {
                rows::passing(&view.rows, |row| everything || filter.matches(&view.filterable(*row)))
            }
            (None, Some(PreviewOutcome::Fault(_)) | None) => Vec::new(),
        };
        let chosen = self.chosen.as_ref();
        let is_chosen =
            |place: &usize| self.row(*place).zip(chosen).is_some_and(|(row, chosen)| chosen.is_same(&row));
        let place = rows.iter().copied().find(is_chosen);
        self.list.replace_where(rows, |row| Some(*row) == place);
        // The first row is a title, which is not worth selecting. Another row always follows the title.
        if place.is_none() && self.list.cursor() == Some(0) && !self.list.is_empty() {
            self.list.select_second();
        }
        self.arranged = Some(filter.clone());
    }
}

impl EditLine {
    /// Creates the input line. A line with text is closed at first, so that the user reads the text before typing.
    fn new(option: Option<PlanOption>, vocabulary: Vocabulary, text: &str) -> Self {
        let candidates = vocabulary.candidates(text);
        let input = Input::new(text.into());
        Self { option, input, is_open: text.is_empty(), fault: None, candidates, chosen: 0, vocabulary }
    }

    fn complete(&mut self) {
        if let Some(word) = self.candidates.get(self.chosen) {
            self.input = Input::new(self.vocabulary.completed(self.input.value(), word));
        }
    }

    fn propose(&mut self) {
        (self.candidates, self.chosen) = (self.vocabulary.candidates(self.input.value()), 0);
    }
}
