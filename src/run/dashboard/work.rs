//! Starts the dashboard's background work and stores its results.

use super::*;
use kordon_core::operation::Guards;

/// Shortest interval between two forecasts, and between two updates of an open plan.
const FORECAST: Duration = display::SECOND;

/// Shortest interval between two slices of the headroom computation. Headroom is computed again after a change that it
/// depends on.
const HEADROOM: Duration = display::SECOND;

/// Shortest interval between two predictions of the outcomes of evicted pods, and between two computations of what
/// would help Pending pods. Both run only after a change that they depend on.
const OUTCOMES: Duration = display::SECOND;

/// Shortest interval between two audits.
const AUDIT: Duration = Duration::from_secs(5);

/// Background work on the model that is shown. At most one task of each kind runs at a time.
pub(super) struct Work {
    forecast: Background<Forecast>,
    outlook: BackgroundAbout<Horizon, Forecast>,
    plan: BackgroundAbout<PlanRequest, PreviewResult>,
    detail: BackgroundAbout<DetailSubject, DetailResult>,
    headroom: HeadroomSlices,
    leaving: Background<CountedLeaving>,
    outcomes: Background<EvictionOutcomes>,
    pending: Background<PendingPods>,
    budgets: Background<BudgetList>,
    audit: Background<KnownAudit>,
    timing: Background<TimingResult>,
    maintenance: BackgroundAbout<MaintenanceRequest, Result<MaintenanceResult, String>>,
}

/// An event of the background work.
pub(super) enum WorkEvent {
    Plan(Result<Box<PreviewResult>, Failed>),
    Detail(Result<DetailResult, Failed>),
    Forecast(Result<Forecast, Failed>),
    Outlook(Result<Forecast, Failed>),
    Headroom(Result<Option<Box<HeadroomSnapshot>>, Failed>),
    Leaving(Result<CountedLeaving, Failed>),
    Outcomes(Result<EvictionOutcomes, Failed>),
    Pending(Result<PendingPods, Failed>),
    Budgets(Result<BudgetList, Failed>),
    Audit(Result<KnownAudit, Failed>),
    Timing(Result<TimingResult, Failed>),
    Maintenance(Result<Result<MaintenanceResult, String>, Failed>),
    /// The next slice of the headroom computation is due.
    Slice,
}

impl Work {
    pub(super) fn new() -> Self {
        Self {
            forecast: Background::new(FORECAST),
            outlook: BackgroundAbout::new(FORECAST),
            plan: BackgroundAbout::new(FORECAST),
            detail: BackgroundAbout::new(FORECAST),
            headroom: HeadroomSlices::new(HEADROOM),
            leaving: Background::new(display::REFRESH),
            outcomes: Background::new(OUTCOMES),
            pending: Background::new(OUTCOMES),
            budgets: Background::new(OUTCOMES),
            audit: Background::new(AUDIT),
            timing: Background::new(OUTCOMES),
            maintenance: BackgroundAbout::new(AUDIT),
        }
    }

    /// Cancels the work on the moment that was shown before, because its results are no longer needed. The work in
    /// `forecast` continues, because it is always about the present.
    pub(super) fn restart(&mut self) {
        let Self {
            outlook,
            plan,
            detail,
            leaving,
            outcomes,
            pending,
            budgets,
            audit,
            timing,
            maintenance,
            ..
        } = self;
        self.headroom.restart(HEADROOM);
        *outlook = BackgroundAbout::new(FORECAST);
        *plan = BackgroundAbout::new(FORECAST);
        *detail = BackgroundAbout::new(FORECAST);
        *leaving = Background::new(display::REFRESH);
        *outcomes = Background::new(OUTCOMES);
        *pending = Background::new(OUTCOMES);
        *budgets = Background::new(OUTCOMES);
        *audit = Background::new(AUDIT);
        *timing = Background::new(OUTCOMES);
        *maintenance = BackgroundAbout::new(AUDIT);
    }

    /// Waits for the next event. May be dropped and awaited again.
    pub(super) async fn next(&mut self) -> WorkEvent {
        let slice = self.headroom.next_slice();
        tokio::select! {
            biased;
            plan = self.plan.finished() => WorkEvent::Plan(plan.map(Box::new)),
            detail = self.detail.finished() => WorkEvent::Detail(detail),
            forecast = self.forecast.finished() => WorkEvent::Forecast(forecast),
            outlook = self.outlook.finished() => WorkEvent::Outlook(outlook),
            headroom = self.headroom.finished() => WorkEvent::Headroom(headroom),
            leaving = self.leaving.finished() => WorkEvent::Leaving(leaving),
            outcomes = self.outcomes.finished() => WorkEvent::Outcomes(outcomes),
            pending = self.pending.finished() => WorkEvent::Pending(pending),
            budgets = self.budgets.finished() => WorkEvent::Budgets(budgets),
            audit = self.audit.finished() => WorkEvent::Audit(audit),
            timing = self.timing.finished() => WorkEvent::Timing(timing),
            waves = self.maintenance.finished() => WorkEvent::Maintenance(waves),
            () = at(slice) => WorkEvent::Slice,
        }
    }

    /// Stores the result of an event, or starts the next slice of the headroom computation.
    pub(super) fn on_event(&mut self, event: WorkEvent, display: &mut Display) {
        match event {
            WorkEvent::Plan(plan) => self.on_plan(plan, display),
            WorkEvent::Detail(detail) => self.on_detail(detail, display),
            WorkEvent::Forecast(forecast) => on_forecast(forecast, display),
            WorkEvent::Outlook(outlook) => on_outlook(outlook, display),
            WorkEvent::Headroom(headroom) => self.on_headroom(headroom, display),
            WorkEvent::Leaving(leaving) => on_leaving(leaving, display),
            WorkEvent::Outcomes(outcomes) => on_outcomes(outcomes, display),
            WorkEvent::Pending(pending) => on_pending(pending, display),
            WorkEvent::Budgets(budgets) => on_budgets(budgets, display),
            WorkEvent::Audit(audit) => on_audit(audit, display),
            WorkEvent::Timing(timing) => on_timing(timing, display),
            WorkEvent::Maintenance(waves) => on_maintenance(waves, display),
            WorkEvent::Slice => self.start_headroom(display),
        }
    }

    /// Starts the background work that the shown model needs.
    pub(super) fn start(&mut self, display: &mut Display) {
        self.start_outlook(display);
        self.start_plan(display);
        self.start_detail(display);
        self.start_headroom(display);
        self.start_placing(display);
        self.start_budgets(display);
        self.start_audit(display);
        self.start_timing(display);
        self.start_maintenance(display);
    }

    /// Starts the work that may be needed after the user has pressed a key.
    pub(super) fn start_after_key(&mut self, display: &mut Display) {
        self.start_plan(display);
        self.start_detail(display);
        self.start_outlook(display);
        self.start_budgets(display);
        self.start_audit(display);
        self.start_timing(display);
        self.start_maintenance(display);
    }

    /// Starts the predictions that place pods. They use the state of the headroom computation, so they start only while
    /// no slice of it runs and that state is complete.
    fn start_placing(&mut self, display: &mut Display) {
        if self.headroom.is_idle() {
            self.start_outcomes(display);
            self.start_pending(display);
        }
    }

    /// Starts a forecast on copies of the engine and the cluster, if something has changed and a node is abnormal.
    pub(super) fn start_forecast(&mut self, display: &mut Display) {
        if self.forecast.is_running() && !display.app.model.is_abnormal() {
            self.forecast.supersede();
        }
        if display.app.is_replay() || !display.is_forecast_old() || !self.forecast.is_due() {
            return;
        }
        let model = &mut display.app.model;
        if !model.is_abnormal() {
            return model.predictions.drop_forecasts().into_iter().flatten().for_each(drop_in_background);
        }
        let Some(engine) = model.engine.clone() else { return };
        let (cluster, now) = (model.cluster.clone(), display.now());
        display.on_forecast_started();
        self.forecast
            .start(move |cancelled| forecast(&engine, &cluster, now, HORIZON, cancelled.cancellation()));
    }

    /// Starts a forecast with the horizon of the chart. After a change of the horizon it starts at once, after a change
    /// of the cluster at most once per `FORECAST`.
    fn start_outlook(&mut self, display: &mut Display) {
        let horizon = display.app.screen.forecast.horizon;
        self.outlook.keep_only(Some(&horizon));
        let (model, now) = display.worked_on();
        if horizon == Horizon::TenMinutes || model.predictions.forecast().is_none() {
            if let Some(outlook) = model.predictions.drop_outlook() {
                drop_in_background(outlook);
            }
            return;
        }
        let known = model.predictions.outlook();
        let known = known.filter(|known| known.until.since(known.made) == horizon.span());
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

    /// Starts to compute the open plan if it is out of date. After a change of the request the computation starts at
    /// once, after a change of the cluster at most once per `FORECAST`.
    fn start_plan(&mut self, display: &mut Display) {
        let request = display.app.screen.overlays.plan().map(|preview| &preview.request);
        self.plan.keep_only(request);
        if self.plan.is_running() || !(display.app.awaits_plan() || self.plan.is_due()) {
            return;
        }
        let now = display.now();
        if let Some(job) = display.app.next_plan(now) {
            let request = job.request().clone();
            self.plan.start(request, move |cancelled| job.work_until(cancelled.cancellation()));
        }
    }

    fn on_plan(&mut self, plan: Result<Box<PreviewResult>, Failed>, display: &mut Display) {
        match plan {
            Ok(plan) => {
                let now = display.now();
                if let Some(before) = display.app.planned(*plan, now) {
                    drop_in_background(before);
                }
            }
            Err(Failed) => {
                display.app.plan_failed();
                display.report_fault("working out the plan failed");
            }
        }
        display.draw_soon();
        self.start_plan(display);
    }

    /// Starts to compute the timing sheet if it is open and out of date.
    fn start_timing(&mut self, display: &Display) {
        if self.timing.is_due()
            && let Some(job) = display.app.next_timing_job()
        {
            self.timing.start(move |_| job.work());
        }
    }

    /// Starts to work out the waves of the open maintenance sheet if they are missing. The pace, which follows from how
    /// long the last waves took, delays neither other waves nor a sheet that is opened again.
    fn start_maintenance(&mut self, display: &Display) {
        if display.app.screen.overlays.maintenance().is_none() {
            return self.maintenance.forget();
        }
        if !self.maintenance.is_running()
            && let Some(job) = display.app.next_maintenance_job(display.clock.now())
            && self.maintenance.is_due_about(job.request())
        {
            let (request, own) = (job.request().clone(), display.app.preferences.guards.clone());
            self.maintenance.start(request, move |_| own_guards(own.as_ref()).map(|guards| job.work(guards)));
        }
    }

    /// Starts to compute in the background which pods leave. On the loop's thread, the computation would delay keys.
    pub(super) fn start_leaving(&mut self, display: &mut Display) {
        if !self.leaving.is_due() {
            return;
        }
        let (model, now) = display.worked_on();
        if let Some(job) = model.next_leaving_job(now) {
            self.leaving.start(move |_| job.work());
        }
    }

    fn start_outcomes(&mut self, display: &mut Display) {
        let (model, now) = display.worked_on();
        let is_any_leaving =
            || model.views.leaving.first.is_some() || model.evicting_kubelets().next().is_some();
        if self.outcomes.is_running() && !is_any_leaving() {
            self.outcomes.supersede();
        }
        if !self.outcomes.is_due() {
            return;
        }
        if let Some(job) = model.next_outcomes_job(now) {
            let earlier = self.headroom.state();
            self.outcomes.start(move |cancelled| job.work(earlier, cancelled.cancellation()));
        }
    }

    fn start_pending(&mut self, display: &mut Display) {
        if !self.pending.is_due() {
            return;
        }
        if let Some(job) = display.worked_on().0.next_pending_job() {
            let earlier = self.headroom.state();
            self.pending.start(move |_| job.work(earlier));
        }
    }

    /// Starts to compute the budgets if they are shown and out of date.
    fn start_budgets(&mut self, display: &mut Display) {
        if !display.app.screen.shows_budgets() || !self.budgets.is_due() {
            return;
        }
        let (model, now) = display.worked_on();
        if let Some(job) = model.next_budgets_job(now) {
            self.budgets.start(move |_| job.work());
        }
    }

    /// Starts to plan the drain of each node if the audit is shown and out of date.
    fn start_audit(&mut self, display: &mut Display) {
        if !display.app.screen.shows_audit() || !self.audit.is_due() {
            return;
        }
        let (model, now) = display.worked_on();
        if let Some(job) = model.next_audit_job(now) {
            self.audit.start(move |cancelled| job.work_until(cancelled.cancellation()));
        }
    }

    /// Starts to compute what the user can do about the object of the open detail. After a change of this object the
    /// computation starts at once, after any other change of the cluster at most once per `FORECAST`.
    fn start_detail(&mut self, display: &Display) {
        let now = display.now();
        let subject = display.app.screen.overlays.detail().map(|detail| &detail.subject);
        self.detail.keep_only(subject);
        if self.detail.is_running() || !(self.detail.is_due() || display.app.awaits_detail(now)) {
            return;
        }
        if let Some(job) = display.app.next_detail_job(now) {
            let subject = job.subject().clone();
            let own = display.app.preferences.guards.clone();
            self.detail.start(subject, move |cancelled| {
                job.work_until(cancelled.cancellation(), &own_guards(own.as_ref()))
            });
        }
    }

    fn on_detail(&mut self, detail: Result<DetailResult, Failed>, display: &mut Display) {
        let now = display.now();
        match detail {
            Ok(detail) => display.app.on_detail_result(detail, now),
            Err(Failed) => {
                display.app.detail_failed(now);
                display.report_fault("working out what can be done failed");
            }
        }
        display.draw_soon();
        self.start_detail(display);
    }

    fn start_headroom(&mut self, display: &mut Display) {
        if !self.headroom.is_due() {
            return;
        }
        let (model, now) = display.worked_on();
        let job = model.next_headroom_job(now);
        let is_awaited = job.is_some() && !self.headroom.has_state() && awaits_placing(model, now);
        self.headroom.start(job.map(|job| job.awaited(is_awaited)));
    }

    /// Stores the result of a slice of the headroom computation. The next draw shows it.
    fn on_headroom(
        &mut self,
        headroom: Result<Option<Box<HeadroomSnapshot>>, Failed>,
        display: &mut Display,
    ) {
        match headroom {
            Ok(headroom) => {
                self.start_placing(display);
                if display.worked_on().0.predictions.set_headroom(headroom.map(|snapshot| *snapshot)) {
                    display.show_result();
                }
            }
            Err(Failed) => display.report_fault("working out headroom failed"),
        }
    }
}

/// Whether new predictions that place pods are needed: outcomes of evicted pods, or advice for Pending pods.
fn awaits_placing(model: &Model, now: Timestamp) -> bool {
    model.next_outcomes_job(now).is_some() || model.next_pending_job().is_some()
}

fn on_forecast(forecast: Result<Forecast, Failed>, display: &mut Display) {
    match forecast {
        // No draw is scheduled. While there is something to predict, a tick refreshes the views every second, and the
        // next refresh shows the forecast.
        Ok(forecast) => drop_in_background(display.app.model.set_forecast(forecast)),
        Err(Failed) => display.report_fault("the forecast failed, predicted times may be missing"),
    }
}

fn on_outlook(outlook: Result<Forecast, Failed>, display: &mut Display) {
    match outlook {
        Ok(outlook) => {
            if let Some(before) = display.worked_on().0.predictions.set_outlook(outlook) {
                drop_in_background(before);
            }
            display.refresh_soon();
            display.show_result();
        }
        Err(Failed) => display.report_fault("the forecast failed, predicted times may be missing"),
    }
}

fn on_leaving(leaving: Result<CountedLeaving, Failed>, display: &mut Display) {
    match leaving {
        Ok(leaving) => {
            let before = display.worked_on().0.set_leaving(leaving);
            if !display.app.is_frozen() || display.app.is_in_history() {
                let now = display.now();
                display.app.arrange(now);
                display.draw_soon();
            }
            // The list on screen no longer shares the keys of the previous evictions, so dropping these evictions also
            // frees tens of thousands of keys. That takes some milliseconds, so they are dropped in the background.
            if let Some(before) = before {
                drop_in_background(before);
            }
        }
        Err(Failed) => display.report_fault("working out the evictions failed"),
    }
}

/// Stores the predicted outcomes of evicted pods. The next draw shows them.
fn on_outcomes(outcomes: Result<EvictionOutcomes, Failed>, display: &mut Display) {
    match outcomes {
        Ok(outcomes) => {
            if let Some(before) = display.worked_on().0.set_outcomes(outcomes) {
                drop_in_background(before);
            }
            display.show_result();
        }
        Err(Failed) => display.report_fault("working out what becomes of evicted pods failed"),
    }
}

/// Stores the advice on what would help Pending pods. The next draw shows it.
fn on_pending(pending: Result<PendingPods, Failed>, display: &mut Display) {
    match pending {
        Ok(pending) => {
            if let Some(before) = display.worked_on().0.predictions.set_pending(pending) {
                drop_in_background(before);
            }
            display.show_result();
        }
        Err(Failed) => display.report_fault("working out what would help Pending pods failed"),
    }
}

/// Stores the budgets, and shows them.
fn on_budgets(budgets: Result<BudgetList, Failed>, display: &mut Display) {
    match budgets {
        Ok(budgets) => {
            if let Some(before) = display.worked_on().0.predictions.set_budgets(budgets) {
                drop_in_background(before);
            }
            let now = display.now();
            display.app.arrange(now);
            display.draw_soon();
        }
        Err(Failed) => display.report_fault("working out the budgets failed"),
    }
}

/// Stores the audit, and shows it.
fn on_audit(audit: Result<KnownAudit, Failed>, display: &mut Display) {
    match audit {
        Ok(audit) => {
            if let Some(before) = display.worked_on().0.predictions.set_audit(audit) {
                drop_in_background(before);
            }
            let now = display.now();
            display.app.arrange(now);
            display.draw_soon();
        }
        Err(Failed) => display.report_fault("planning the drains of the audit failed"),
    }
}

fn on_maintenance(waves: Result<Result<MaintenanceResult, String>, Failed>, display: &mut Display) {
    match waves {
        Ok(Ok(waves)) => display.app.on_maintenance(waves),
        Ok(Err(why)) => display.report_trouble("guard rails", &why),
        Err(Failed) => display.report_fault("working out the waves failed"),
    }
    display.draw_soon();
}

fn on_timing(timing: Result<TimingResult, Failed>, display: &mut Display) {
    match timing {
        Ok(timing) => display.app.on_timing(timing),
        Err(Failed) => display.report_fault("working out the timing failed"),
    }
    display.draw_soon();
}

/// Returns a forecast that starts from the known state, with its chart. If it is cancelled, its result must not be
/// used.
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

/// Reads the guard rails of this user, and adds those of the context.
pub(super) fn own_guards(of_context: Option<&Guards>) -> Guarding {
    let guards = guards::read(None).map_err(|error| error.to_string())?;
    Ok(of_context.into_iter().fold(guards, Guards::and))
}
