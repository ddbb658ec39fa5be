//! Background work of the dashboard: starts it and stores its results.

use super::*;

impl Loop {
    /// Starts the background work that the shown model needs.
    pub(super) fn start_jobs(&mut self) {
        self.start_outlook();
        self.start_plan();
        self.start_detail();
        self.start_headroom();
        self.start_placing_jobs();
        self.start_timing();
    }

    /// Starts the work that places pods. It uses the placement state of headroom, so it waits until the running slice
    /// has ended and the first state is made.
    pub(super) fn start_placing_jobs(&mut self) {
        if self.headroom.is_idle() {
            self.start_eviction_outcomes();
            self.start_pending_pods();
        }
    }

    /// Whether there are pods to place.
    fn awaits_placing(&mut self) -> bool {
        let (model, now) = self.worked_on();
        model.next_outcomes_job(now).is_some() || model.next_pending_job().is_some()
    }

    /// Starts a forecast on copies, if something has changed and a node is abnormal.
    pub(super) fn start_forecast(&mut self) {
        if self.forecast.is_running() && !self.app.model.is_abnormal() {
            self.forecast.supersede();
        }
        if self.app.is_replay() || !self.forecast_is_old || !self.forecast.is_due() {
            return;
        }
        let model = &mut self.app.model;
        if !model.is_abnormal() {
            return model.predictions.drop_forecasts().into_iter().flatten().for_each(drop_in_background);
        }
        let Some(engine) = model.engine.clone() else { return };
        let (cluster, now) = (model.cluster.clone(), self.now());
        self.forecast_is_old = false;
        self.forecast
            .start(move |cancelled| forecast(&engine, &cluster, now, HORIZON, cancelled.cancellation()));
    }

    /// Starts a forecast with the horizon of the chart: at once for a new horizon, at the pace of forecasts for a
    /// changed cluster.
    pub(super) fn start_outlook(&mut self) {
        let horizon = self.app.screen.forecast.horizon;
        self.outlook.keep_only(Some(&horizon));
        let (model, now) = self.app.worked_on(self.clock.now());
        if horizon == Horizon::TenMinutes || model.predictions.forecast().is_none() {
            if let Some(outlook) = model.predictions.drop_outlook() {
                drop_in_background(outlook);
            }
            return;
        }
        let known =
            model.predictions.outlook().filter(|known| known.until.since(known.made) == horizon.span());
        let made = model.predictions.forecast().map(|forecast| forecast.made);
        let is_behind = known.is_none_or(|known| Some(known.made) < made && self.outlook.is_due());
        let Some(engine) = model.engine.clone().filter(|_| is_behind && !self.outlook.is_running()) else {
            return;
        };
        let cluster = model.cluster.clone();
        self.outlook.start(horizon, move |cancelled| {
            forecast(&engine, &cluster, now, horizon.span(), cancelled.cancellation())
        });
    }

    /// Starts to compute the open plan if it is out of date: at once for a changed request, at the pace of forecasts
    /// for a changed cluster.
    pub(super) fn start_plan(&mut self) {
        let request = self.app.screen.overlays.plan().map(|preview| &preview.request);
        self.plan.keep_only(request);
        if self.plan.is_running() || !(self.app.awaits_plan() || self.plan.is_due()) {
            return;
        }
        if let Some(job) = self.app.next_plan(self.now()) {
            let request = job.request().clone();
            self.plan.start(request, move |cancelled| job.work_until(cancelled.cancellation()));
        }
    }

    pub(super) fn on_plan(&mut self, plan: Result<PreviewResult, Failed>) {
        match plan {
            Ok(plan) => {
                if let Some(before) = self.app.planned(plan, self.now()) {
                    drop_in_background(before);
                }
            }
            Err(Failed) => {
                self.app.plan_failed();
                self.report_fault("working out the plan failed");
            }
        }
        self.undrawn = true;
        self.start_plan();
    }

    /// Starts to compute the timing sheet if it is open and out of date.
    pub(super) fn start_timing(&mut self) {
        if self.timing.is_due()
            && let Some(job) = self.app.next_timing_job()
        {
            self.timing.start(move |_| job.work());
        }
    }

    pub(super) fn on_timing(&mut self, timing: Result<TimingResult, Failed>) {
        match timing {
            Ok(timing) => self.app.on_timing(timing),
            Err(Failed) => self.report_fault("working out the timing failed"),
        }
        self.undrawn = true;
    }

    /// Starts to compute which pods leave. On the loop's thread, so many pods would delay keys.
    pub(super) fn start_leaving(&mut self) {
        if !self.leaving.is_due() {
            return;
        }
        let (model, now) = self.worked_on();
        if let Some(job) = model.next_leaving_job(now) {
            self.leaving.start(move |_| job.work());
        }
    }

    pub(super) fn on_leaving(&mut self, leaving: Result<CountedLeaving, Failed>) {
        match leaving {
            Ok(leaving) => {
                let before = self.worked_on().0.set_leaving(leaving);
                if !self.app.is_frozen() || self.app.is_in_history() {
                    self.app.arrange(self.now());
                    self.undrawn = true;
                }
                // The list on screen shared their keys until now. Freeing tens of thousands of them takes some
                // milliseconds.
                if let Some(before) = before {
                    drop_in_background(before);
                }
            }
            Err(Failed) => self.report_fault("working out the evictions failed"),
        }
    }

    pub(super) fn start_eviction_outcomes(&mut self) {
        let is_running = self.eviction_outcomes.is_running();
        if is_running && self.worked_on().0.views.leaving.first.is_none() {
            self.eviction_outcomes.supersede();
        }
        if !self.eviction_outcomes.is_due() {
            return;
        }
        let (model, now) = self.worked_on();
        if let Some(job) = model.next_outcomes_job(now) {
            let earlier = self.headroom.state();
            self.eviction_outcomes.start(move |cancelled| job.work(earlier, cancelled.cancellation()));
        }
    }

    /// Starts to compute what can be done about the subject of the open detail: at once for a new state of the subject,
    /// at the pace of forecasts for a changed cluster.
    pub(super) fn start_detail(&mut self) {
        let now = self.now();
        let subject = self.app.screen.overlays.detail().map(|detail| &detail.subject);
        self.detail.keep_only(subject);
        if self.detail.is_running() || !(self.detail.is_due() || self.app.awaits_detail(now)) {
            return;
        }
        if let Some(job) = self.app.next_detail_job(now) {
            let subject = job.subject().clone();
            self.detail
                .start(subject, move |cancelled| job.work_until(cancelled.cancellation(), &own_guards()));
        }
    }

    pub(super) fn on_forecast(&mut self, forecast: Result<Forecast, Failed>) {
        match forecast {
            // The next refresh shows it. There is a tick every second while there is something to predict.
            Ok(forecast) => drop_in_background(self.app.model.set_forecast(forecast)),
            Err(Failed) => self.report_fault("the forecast failed, predicted times may be missing"),
        }
    }

    pub(super) fn on_outlook(&mut self, outlook: Result<Forecast, Failed>) {
        match outlook {
            Ok(outlook) => {
                if let Some(before) = self.worked_on().0.predictions.set_outlook(outlook) {
                    drop_in_background(before);
                }
                self.unrefreshed = true;
                self.show_result();
            }
            Err(Failed) => self.report_fault("the forecast failed, predicted times may be missing"),
        }
    }

    /// Stores the result of a slice of headroom. The next draw shows it.
    pub(super) fn on_headroom(&mut self, headroom: Result<Option<HeadroomSnapshot>, Failed>) {
        match headroom {
            Ok(headroom) => {
                self.start_placing_jobs();
                if self.worked_on().0.predictions.set_headroom(headroom) {
                    self.show_result();
                }
            }
            Err(Failed) => self.report_fault("working out headroom failed"),
        }
    }

    /// Stores what becomes of evicted pods. The next draw shows it.
    pub(super) fn on_eviction_outcomes(&mut self, outcomes: Result<EvictionOutcomes, Failed>) {
        match outcomes {
            Ok(outcomes) => {
                if let Some(before) = self.worked_on().0.set_outcomes(outcomes) {
                    drop_in_background(before);
                }
                self.show_result();
            }
            Err(Failed) => self.report_fault("working out what becomes of evicted pods failed"),
        }
    }

    /// Stores what would help Pending pods. The next draw shows it.
    pub(super) fn on_pending_pods(&mut self, pending: Result<PendingPods, Failed>) {
        match pending {
            Ok(pending) => {
                if let Some(before) = self.worked_on().0.predictions.set_pending(pending) {
                    drop_in_background(before);
                }
                self.show_result();
            }
            Err(Failed) => self.report_fault("working out what would help Pending pods failed"),
        }
    }

    pub(super) fn on_detail(&mut self, detail: Result<DetailResult, Failed>) {
        let now = self.now();
        match detail {
            Ok(detail) => self.app.on_detail_result(detail, now),
            Err(Failed) => {
                self.app.detail_failed(now);
                self.report_fault("working out what can be done failed");
            }
        }
        self.undrawn = true;
        self.start_detail();
    }

    pub(super) fn start_pending_pods(&mut self) {
        if !self.pending_pods.is_due() {
            return;
        }
        if let Some(job) = self.worked_on().0.next_pending_job() {
            let earlier = self.headroom.state();
            self.pending_pods.start(move |_| job.work(earlier));
        }
    }

    pub(super) fn start_headroom(&mut self) {
        if !self.headroom.is_due() {
            return;
        }
        let (model, now) = self.worked_on();
        let job = model.next_headroom_job(now);
        let is_awaited = job.is_some() && !self.headroom.has_state() && self.awaits_placing();
        self.headroom.start(job.map(|job| job.awaited(is_awaited)));
    }
}

/// Returns a forecast of what is known now, with its chart. If cancelled, the result is of no use.
fn forecast(
    engine: &Engine,
    cluster: &Cluster,
    now: Timestamp,
    horizon: Span,
    cancellation: &Cancellation,
) -> Forecast {
    let start = ForecastStart { engine, cluster, now };
    let forecast = Forecast::until_cancelled(start, &Assumptions::default(), horizon, cancellation);
    forecast.with_chart(engine, cluster)
}

/// Reads the guard rails of this user.
pub(super) fn own_guards() -> Guarding {
    guards::read(None).map_err(|error| error.to_string())
}
