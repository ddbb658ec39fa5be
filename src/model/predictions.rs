//! Results of background work on the model: forecasts, and predictions about pods and about the cluster that follow
//! from them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    audit::KnownAudit,
    budget_list::BudgetList,
    eviction_outcomes::EvictionOutcomes,
    headroom::HeadroomSnapshot,
    horizon::Horizon,
    pending_pods::{PendingAdvice, PendingPods},
    revisions::ChangeCount,
};
use kordon_core::{
    cluster::{Applied, Cluster, Key, Name, NodeName},
    forecast::{
        Accuracy, AccuracyReport, EventKind, EventRanges, Forecast,
        accuracy::{Judgement, Predicted},
    },
    plan::PodOutcome,
};
use kordon_time::{Span, Timestamp};

/// Maximum age of a forecast that is carried over to the model of another moment.
const STILL_NEW: Span = Span::from_secs(1);

/// The latest result of each kind of background work on the model. A result is kept until a newer one arrives.
#[derive(Clone, Debug)]
pub struct Predictions {
    forecast: Option<Arc<Forecast>>,
    /// A forecast with a longer horizon, only for charts of more than ten minutes.
    outlook: Option<Arc<Forecast>>,
    /// When the events of the forecast may happen, if no pass of the controller was seen.
    event_ranges: Option<EventRanges>,
    /// Outcomes of the evicted pods.
    outcomes: Option<Arc<EvictionOutcomes>>,
    /// Advice for the pods that wait for a node.
    pending: Option<Arc<PendingPods>>,
    /// All budgets, while they are shown.
    budgets: Option<Arc<BudgetList>>,
    /// The audit of drains, while it is shown.
    audit: Option<Arc<KnownAudit>>,
    /// The headroom: which nodes and zones the cluster can lose.
    headroom: Option<HeadroomSnapshot>,
    /// Accuracy of the forecasts of this session.
    accuracy: Accuracy,
    /// Number of changes of all results of background work except the headroom.
    results: ChangeCount,
    /// Number of changes of the eviction outcomes.
    outcome_results: ChangeCount,
    /// Number of changes of the list of budgets.
    budget_results: ChangeCount,
    /// Number of changes of the audit.
    audit_results: ChangeCount,
}

impl Predictions {
    /// Returns predictions without any results. `period` is the time between two monitor passes of the controller.
    pub fn new(period: Span) -> Self {
        Self {
            forecast: None,
            outlook: None,
            event_ranges: None,
            outcomes: None,
            pending: None,
            budgets: None,
            audit: None,
            headroom: None,
            accuracy: Accuracy::new(period),
            results: ChangeCount::default(),
            outcome_results: ChangeCount::default(),
            budget_results: ChangeCount::default(),
            audit_results: ChangeCount::default(),
        }
    }

    pub const fn forecast(&self) -> Option<&Arc<Forecast>> {
        self.forecast.as_ref()
    }

    /// The forecast with a longer horizon than the usual one.
    pub const fn outlook(&self) -> Option<&Arc<Forecast>> {
        self.outlook.as_ref()
    }

    /// Returns the forecast for this horizon. While a longer forecast is missing, returns the usual one.
    pub fn forecast_until(&self, horizon: Horizon) -> Option<&Forecast> {
        let far = self.outlook.as_deref().filter(|_| horizon != Horizon::TenMinutes);
        far.or(self.forecast.as_deref())
    }

    /// When the events of the forecast may happen; `None` if the forecast knows when the controller makes its passes.
    pub const fn event_ranges(&self) -> Option<&EventRanges> {
        self.event_ranges.as_ref()
    }

    pub const fn outcomes(&self) -> Option<&Arc<EvictionOutcomes>> {
        self.outcomes.as_ref()
    }

    /// Outcomes of the pods that leave.
    pub fn outcomes_by_pod(&self) -> Option<&BTreeMap<Key, PodOutcome>> {
        self.outcomes.as_ref().map(|outcomes| outcomes.by_pod())
    }

    /// Whether a budget would refuse the eviction of a pod; `None` if unknown. Taint evictions go ahead even so,
    /// because they ignore budgets.
    pub fn would_be_refused(&self, pod: &Key) -> Option<bool> {
        self.outcomes.as_ref()?.would_be_refused(pod)
    }

    pub fn pending(&self) -> Option<&PendingPods> {
        self.pending.as_deref()
    }

    /// All budgets; `None` while they are being computed.
    pub fn budgets(&self) -> Option<&BudgetList> {
        self.budgets.as_deref()
    }

    /// Number of changes of the list of budgets.
    pub const fn budgets_revision(&self) -> u64 {
        self.budget_results.get()
    }

    /// Stores a new list of budgets and returns the previous one.
    pub fn set_budgets(&mut self, budgets: BudgetList) -> Option<Arc<BudgetList>> {
        self.results.count(true);
        self.budget_results.count(true);
        self.budgets.replace(Arc::new(budgets))
    }

    /// The audit of drains; `None` while it is being computed.
    pub fn audit(&self) -> Option<&KnownAudit> {
        self.audit.as_deref()
    }

    /// Number of changes of the audit.
    pub const fn audit_revision(&self) -> u64 {
        self.audit_results.get()
    }

    /// Stores a new audit and returns the previous one.
    pub fn set_audit(&mut self, audit: KnownAudit) -> Option<Arc<KnownAudit>> {
        self.results.count(true);
        self.audit_results.count(true);
        self.audit.replace(Arc::new(audit))
    }

    /// Returns the advice for a pod that waits for a node; `None` while the advice is being computed.
    pub fn pending_advice(&self, pod: &Key) -> Option<&PendingAdvice> {
        self.pending.as_ref()?.advice(pod)
    }

    /// Returns the most common cause among the pods that fit no node: `no node has 4 CPU free`. If every pod fits a
    /// node, returns the most common cause among the pods that wait for their nominated nodes. `None` if there are no
    /// such pods, or while the causes are being computed.
    pub fn most_common_pending_cause(&self) -> Option<&Name> {
        self.pending.as_ref()?.most_common_cause()
    }

    pub const fn headroom(&self) -> Option<&HeadroomSnapshot> {
        self.headroom.as_ref()
    }

    /// Accuracy of the forecasts of this session.
    pub fn accuracy(&self) -> AccuracyReport {
        self.accuracy.report()
    }

    /// Number of changes of all results of background work except the headroom.
    pub const fn revision(&self) -> u64 {
        self.results.get()
    }

    /// Number of changes of the eviction outcomes.
    pub const fn outcomes_revision(&self) -> u64 {
        self.outcome_results.get()
    }

    /// Stores a new forecast of the cluster and returns the previous one.
    pub(super) fn set_forecast(&mut self, forecast: Forecast, cluster: &Cluster) -> Option<Arc<Forecast>> {
        self.accuracy.on_forecast(&forecast, cluster);
        self.results.count(true);
        self.forecast.replace(Arc::new(forecast))
    }

    pub(super) fn set_event_ranges(&mut self, ranges: Option<EventRanges>) {
        self.event_ranges = ranges;
    }

    /// Stores a new forecast with a longer horizon and returns the previous one.
    pub fn set_outlook(&mut self, outlook: Forecast) -> Option<Arc<Forecast>> {
        self.results.count(true);
        self.outlook.replace(Arc::new(outlook))
    }

    /// Stores new outcomes of the evicted pods, and returns the previous ones.
    pub(super) fn set_outcomes(&mut self, outcomes: EvictionOutcomes) -> Option<Arc<EvictionOutcomes>> {
        self.results.count(true);
        self.outcome_results.count(true);
        self.outcomes.replace(Arc::new(outcomes))
    }

    /// Stores new advice for the pods that wait for a node, and returns the previous advice.
    pub fn set_pending(&mut self, pending: PendingPods) -> Option<Arc<PendingPods>> {
        self.results.count(true);
        self.pending.replace(Arc::new(pending))
    }

    /// Stores the headroom after a slice of its computation, if the slice has a result. Returns whether the headroom
    /// has changed.
    pub fn set_headroom(&mut self, headroom: Option<HeadroomSnapshot>) -> bool {
        let Some(headroom) = headroom else { return false };
        let before = self.headroom.replace(headroom);
        self.headroom.as_ref().map(|known| &known.headroom) != before.as_ref().map(|known| &known.headroom)
    }

    /// Removes the forecasts when there is nothing to predict, and returns them, so that the caller decides where to
    /// free these large values.
    pub fn drop_forecasts(&mut self) -> [Option<Arc<Forecast>>; 2] {
        let dropped = [self.forecast.take(), self.outlook.take()];
        self.results.count(dropped.iter().any(Option::is_some));
        dropped
    }

    /// Removes the forecasts if they were made while predictions were possible and are not any more, or the other way
    /// round.
    pub(super) fn forget_other_confidence(&mut self, is_predictable: bool) {
        let is_other = |forecast: &Arc<Forecast>| forecast.is_predictable != is_predictable;
        if self.forecast.iter().chain(&self.outlook).any(is_other) {
            drop(self.drop_forecasts());
        }
    }

    /// Removes the forecast with a longer horizon, which no chart shows any more, and returns it.
    pub fn drop_outlook(&mut self) -> Option<Arc<Forecast>> {
        self.outlook.take()
    }

    /// Removes the predictions that follow from a node's silence, for nodes that are no longer silent.
    pub(super) fn forget_heard(&mut self, silent: &BTreeSet<NodeName>) {
        for forecast in self.forecast.iter_mut().chain(&mut self.outlook) {
            forecast.forget_heard(silent);
        }
    }

    /// Compares an applied change with the forecasts, to measure their accuracy.
    pub(super) fn on_applied(
        &mut self,
        applied: &Applied,
        cluster: &Cluster,
        now: Timestamp,
    ) -> Vec<(EventKind, Judgement)> {
        let predicted = Predicted {
            forecast: self.forecast.as_deref(),
            outcomes: self.outcomes.as_ref().map(|outcomes| outcomes.by_pod()),
        };
        self.accuracy.on_change(applied, cluster, predicted, now)
    }

    /// Restarts the comparison of changes with forecasts, because the watches were down.
    pub(super) fn on_watch_health(&mut self) {
        self.accuracy.restart();
    }

    /// Adds an offset to the revisions of these results, so that they differ from the revisions at other moments of a
    /// playback.
    pub(super) const fn set_apart(&mut self, moment: u64) {
        self.results.set_apart(moment);
        self.outcome_results.set_apart(moment);
        self.budget_results.set_apart(moment);
        self.audit_results.set_apart(moment);
    }

    /// Takes over results from `before`, the model of a moment shortly before this one, until they are recomputed.
    pub(super) fn continue_from(&mut self, before: &Self, now: Timestamp) {
        let Self { forecast, outlook, outcomes, pending, budgets, audit, headroom, .. } = before;
        self.forecast = forecast.clone().filter(|forecast| now.since(forecast.made) <= STILL_NEW);
        self.outlook.clone_from(outlook);
        self.outcomes.clone_from(outcomes);
        self.pending.clone_from(pending);
        self.budgets.clone_from(budgets);
        self.audit.clone_from(audit);
        self.headroom.clone_from(headroom);
        (self.results, self.outcome_results) = (before.results, before.outcome_results);
        (self.budget_results, self.audit_results) = (before.budget_results, before.audit_results);
    }
}
