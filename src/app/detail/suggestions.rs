//! Suggestions for the subject of the detail, computed on another thread: [`App::next_detail_job`] returns the job,
//! [`DetailJob::work`] runs it, and [`App::on_detail_result`] shows its result.

use super::{Detail, DetailContext, DetailRow, DetailSubject};
use crate::{
    app::App,
    model::{
        Model,
        suggestions::{Guarding, Numbers, Suggestion, SuggestionJob},
    },
};
use kordon_core::plan::Cancellation;
use kordon_time::Timestamp;

/// A job that updates the suggestions of the open detail on another thread.
#[derive(Debug)]
pub struct DetailJob {
    basis: DetailBasis,
    job: SuggestionJob,
}

/// The suggestions that a job computed, with the inputs that it used.
#[derive(Clone, Debug)]
pub struct DetailResult {
    basis: DetailBasis,
    /// The suggestions, or why there are none.
    suggestions: Result<Vec<Suggestion>, String>,
}

/// Inputs from which suggestions are computed.
#[derive(Clone, Debug, PartialEq)]
struct DetailBasis {
    subject: DetailSubject,
    /// Value of [`Model::plan_changes`] when the suggestions were requested.
    changes: u64,
    /// Suggestions that are known at once, because they do not depend on computed plans.
    at_once: Vec<Suggestion>,
}

impl DetailJob {
    /// The object that the suggestions are for.
    pub const fn subject(&self) -> &DetailSubject {
        &self.basis.subject
    }

    pub fn work(self, guards: &Guarding) -> DetailResult {
        self.work_until(&Cancellation::default(), guards)
    }

    /// Computes the suggestions. If cancelled, stops early; the suggestions may then be incomplete and must be
    /// discarded.
    pub fn work_until(self, cancellation: &Cancellation, guards: &Guarding) -> DetailResult {
        let Self { basis, job } = self;
        let job = job.until_cancelled(cancellation);
        DetailResult { basis, suggestions: Ok(job.work(Numbers::OfPlans, guards)) }
    }
}

impl DetailResult {
    /// Whether this result is for the node or pod of `basis`, and the suggestions that need no plan are the same as in
    /// `basis`. The result may be of an earlier state of the cluster.
    fn is_of(&self, basis: &DetailBasis) -> bool {
        self.basis.subject == basis.subject && self.basis.at_once == basis.at_once
    }
}

impl App {
    /// Returns the job that updates the open detail; `None` if the detail is up to date.
    pub fn next_detail_job(&self, now: Timestamp) -> Option<DetailJob> {
        let detail = self.screen.overlays.detail()?;
        let (basis, job) = detail.job(self.shown(), self.shown_at(now))?;
        let is_known = detail.suggestions.as_ref().is_some_and(|known| known.basis == basis);
        (!is_known).then_some(DetailJob { basis, job })
    }

    /// Whether the user waits for suggestions, because the open detail has none that fit its node or pod. Suggestions
    /// for an earlier state of the cluster fit if those that need no plan are still the same; they are shown until new
    /// ones are computed.
    pub fn awaits_detail(&self, now: Timestamp) -> bool {
        self.screen.overlays.detail().is_some_and(|detail| {
            let job = detail.job(self.shown(), self.shown_at(now));
            job.is_some_and(|(basis, _)| !detail.is_known(&basis))
        })
    }

    /// Shows the suggestions that a job computed.
    pub fn on_detail_result(&mut self, result: DetailResult, now: Timestamp) {
        if let Some(detail) = self.screen.overlays.detail_mut() {
            detail.suggestions = Some(result);
            self.arrange(now);
        }
    }

    /// Shows that a job failed, which is a bug in kordon. The job is not retried until its inputs have changed.
    pub fn detail_failed(&mut self, now: Timestamp) {
        let Some(DetailJob { basis, .. }) = self.next_detail_job(now) else { return };
        let suggestions = Err("working this out failed: this is a bug in kordon".into());
        self.on_detail_result(DetailResult { basis, suggestions }, now);
    }
}

impl Detail {
    fn job(&self, model: &Model, now: Timestamp) -> Option<(DetailBasis, SuggestionJob)> {
        let job = match &self.subject {
            DetailSubject::Node(name) => model.node_suggestions(model.cluster.node(name)?, now)?,
            DetailSubject::Pod(key) => model.pod_suggestions(model.cluster.pod(key)?, now),
            DetailSubject::Budget(key) => model.budget_suggestions(model.cluster.budgets().get(key)?, now),
        };
        let (subject, changes) = (self.subject.clone(), model.plan_changes());
        Some((DetailBasis { subject, changes, at_once: job.at_once() }, job))
    }

    fn is_known(&self, basis: &DetailBasis) -> bool {
        self.suggestions.as_ref().is_some_and(|known| known.is_of(basis))
    }

    /// Rows of the suggestions. Numbers from plans are missing until the plans are computed.
    pub(super) fn suggestion_rows(&self, context: &DetailContext<'_>) -> Vec<DetailRow> {
        let Some((basis, _)) = self.job(context.model, context.now) else { return Vec::new() };
        let known = self.suggestions.as_ref().filter(|known| known.is_of(&basis));
        let (note, suggestions) = match known.map(|known| &known.suggestions) {
            Some(Ok(suggestions)) => (context.mode.to_owned(), suggestions.clone()),
            Some(Err(why)) => (why.clone(), basis.at_once),
            None => ("working out what each would do".into(), basis.at_once),
        };
        if suggestions.is_empty() {
            return Vec::new();
        }
        let mut rows = vec![DetailRow::Section { title: "what you can do", note }];
        for suggestion in suggestions {
            let cautions = suggestion.cautions().join(" · ");
            let command = suggestion.means.command();
            rows.push(DetailRow::Suggestion(Box::new(suggestion)));
            rows.extend(Some(cautions).filter(|text| !text.is_empty()).map(DetailRow::Caution));
            rows.extend(command.map(DetailRow::Command));
        }
        rows
    }
}
