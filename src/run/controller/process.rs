//! The process of `kordon controller`, which watches and decides. As a shadow it only records its decisions. With
//! enforcement it writes them while it holds its Lease.
//!
//! One task owns the model. Other tasks run the candidate for the Lease, the watch of kube-controller-manager, and the
//! endpoints. The tasks communicate through channels.

use std::{future::Future, time::Duration};

use futures::future::OptionFuture;
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
    time::{Instant, sleep_until, timeout},
};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

use super::{
    endpoints::{Endpoint, EndpointAnswer, EndpointRequest},
    kube_controller_manager::{ManagerWatch, MayLead},
    line::{ControllerLine, LineWriter},
    metrics::{MetricsView, watch_checks},
};
use crate::{
    executor::{
        effects::{EffectExecutor, EffectJournal, EffectTarget, EffectWriter},
        event_recorder::EventRecorder,
    },
    journal::{Journal, JournalLine, LineKind, OperationStart},
    k8s::{
        connect::Connection,
        leader_client::{RequestRate, while_leading},
        leadership::{ElectionOptions, LeaderElector, LeaseState},
    },
    model::{
        ConnectionInfo, ControllerRole, CountedLeaving, EvictionOutcomes, HORIZON, HeadroomSnapshot,
        ModelOptions,
    },
    run::{
        Ended, Session,
        background::{Background, Failed},
        headroom_slices::HeadroomSlices,
        kubelets::{KubeletReader, UsageAnswer, WantedKubelet},
        notify::{Notifier, write_to_stderr},
        preferences_file::{PreferencesReader, next_read},
    },
};
use kordon_clock::Clock;
use kordon_core::{
    cluster::{FeedKind, OperationId},
    engine::{Controllers, Settings, Severity},
    forecast::Forecast,
};
use kordon_time::Span;

/// The process of `kordon controller`.
pub struct ControllerProcess {
    pub connection: Connection,
    pub info: ConnectionInfo,
    /// Settings of the controller: kordon's own settings if it enforces, otherwise those of the cluster's controller.
    pub settings: Settings,
    pub clock: Clock,
    /// Options for writing to the cluster; none if the process writes nothing.
    pub enforcement: Option<Enforcement>,
    pub lines: LineWriter,
    /// Requests from the endpoints.
    pub asked: mpsc::Receiver<EndpointRequest>,
    /// Notifies the user of changes in the cluster.
    pub notifier: Notifier,
    /// Reads the configuration of the notifier again when its file changes; none if there is no file.
    pub reader: Option<PreferencesReader>,
}

/// Options of a controller that writes to the cluster.
#[derive(Clone, Debug)]
pub struct Enforcement {
    pub election: ElectionOptions,
    /// Holder identity in the Lease, unique to this process.
    pub identity: String,
    pub rate: RequestRate,
    pub journal: Journal,
    /// Limit of evictions per minute and zone.
    pub evictions_per_minute: Option<usize>,
    /// Controllers that kube-controller-manager runs, as the operator has stated them; `None` if the operator has not
    /// stated them.
    pub manager_controllers: Option<Controllers>,
}

/// Reason why the controller ended without a request to stop.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    #[error("the watches of the cluster have ended")]
    WatchesEnded,
    #[error("cannot write the journal, and without it nothing is written to the cluster: {0}")]
    Journal(String),
}

/// Interval at which views are refreshed, due background work is started, and messages are reported.
const TICK: Duration = Duration::from_secs(1);

/// Minimum interval between two forecasts, and between two slices of the headroom computation.
const FORECAST: Duration = Duration::from_secs(5);

/// Maximum time for writes in flight when the controller is asked to stop.
const LAST_WRITES: Duration = Duration::from_millis(500);

/// Maximum time for the release of the Lease when the controller is asked to stop.
const LAST_RELEASE: Duration = Duration::from_millis(400);

/// A leader counts as dead if it has not renewed its Lease this long after the Lease expired (client-go's health check:
/// 20 s).
const UNRENEWED: Span = Span::from_secs(20);

/// Kinds that a controller needs. Headroom (N-1) and other predictions need more kinds.
const OWN_KINDS: [FeedKind; 4] = [FeedKind::Nodes, FeedKind::Leases, FeedKind::Pods, FeedKind::Leader];

impl ControllerProcess {
    /// Runs until `stop` completes. Then waits a moment for writes in flight, and releases the Lease.
    ///
    /// # Errors
    /// See [`ControllerError`].
    pub async fn run(mut self, stop: impl Future<Output = ()>) -> Result<(), ControllerError> {
        tokio::pin!(stop);
        let mut candidate = self.enforcement.clone().map(|enforcement| Candidate::start(&self, enforcement));
        let mut term = self.shadow();
        loop {
            let leads = candidate.as_ref().is_some_and(|candidate| candidate.state.borrow().is_held());
            if leads != term.is_controller() {
                term = match candidate.as_ref().filter(|_| leads) {
                    Some(candidate) => self.lead(candidate).await?,
                    None => {
                        term.end().await;
                        self.shadow()
                    }
                };
            }
            let tick = term.next_tick;
            let changed = OptionFuture::from(candidate.as_mut().map(Candidate::changed));
            tokio::select! {
                biased;
                () = &mut stop => break,
                Some(line) = changed => self.lines.write(line.at(self.clock.now())),
                Some(request) = self.asked.recv() => self.answer(request, &term, candidate.as_ref()),
                result = term.beside.finished() => term.apply(result),
                answer = term.kubelets.next() => term.on_usage(answer),
                ended = term.session.run_until(|_| false) => {
                    let (Ended::Arrived | Ended::Abandoned) = ended;
                    return Err(ControllerError::WatchesEnded);
                }
                read = next_read(&mut self.reader) => match read {
                    Ok(read) => self.notifier.change(read.notify),
                    Err(why) => {
                        let text = format!("{why}; notifications stay as they were");
                        term.session.model.journal.trouble(self.clock.now(), "config", &text);
                    }
                },
                why = self.notifier.next_failure() => {
                    term.session.model.journal.trouble(self.clock.now(), "notify", &why);
                }
                () = sleep_until(tick) => {
                    term.tick(&self.lines, self.clock);
                    let sequences = self.notifier.look(&term.session.model, self.clock.now());
                    sequences.into_iter().for_each(|sequences| write_to_stderr(&sequences));
                }
            }
        }
        let writes = term.end().await;
        if let Some(candidate) = candidate {
            candidate.stop().await;
        }
        self.lines.write(ControllerLine::stopped(writes).at(self.clock.now()));
        Ok(())
    }

    fn options(&self, role: ControllerRole) -> ModelOptions {
        ModelOptions { connection: self.info.clone(), settings: self.settings.clone(), role }
    }

    /// Starts a term (period in one role) as a shadow: the engine decides, and nothing is written.
    fn shadow(&self) -> Term {
        let writer = EffectWriter::new(EffectTarget::Recorded, self.clock);
        // With enforcement, this shadow only waits for the Lease, and watches only the kinds that the controller needs.
        // Without enforcement, it watches all kinds.
        let kinds = if self.enforcement.is_some() { &OWN_KINDS[..] } else { &FeedKind::ALL[..] };
        Term::start(self, ControllerRole::Shadow, kinds, writer, None)
    }

    /// Starts a term (period in one role) as the controller.
    async fn lead(&self, candidate: &Candidate) -> Result<Term, ControllerError> {
        let failed = |error: String| ControllerError::Journal(error);
        let Enforcement { journal, rate, evictions_per_minute, identity, .. } = &candidate.enforcement;
        let writer = journal.open().map_err(|error| failed(error.to_string()))?;
        let operation = self.new_id();
        let start = OperationStart {
            by: identity.clone(),
            context: self.info.context.clone(),
            server: self.info.server.clone(),
            action: "controller".into(),
            ..OperationStart::default()
        };
        let kind = LineKind::Started(Box::new(start));
        let line = JournalLine { at: self.clock.now(), operation: operation.clone(), kind };
        writer.append(line).await.map_err(|error| failed(error.to_string()))?;
        let journal = EffectJournal { writer, operation };
        let client =
            while_leading(self.connection.writer.clone(), candidate.state.clone(), *rate, self.clock);
        let writer = EffectWriter {
            events: Some(EventRecorder::start(client.clone(), self.clock)),
            journal: Some(journal.clone()),
            ..EffectWriter::new(EffectTarget::Cluster(client), self.clock)
        };
        let mut term = Term::start(self, ControllerRole::Controller, &OWN_KINDS, writer, Some(journal));
        term.session.model.effects.limit_evictions(*evictions_per_minute);
        Ok(term)
    }

    fn new_id(&self) -> OperationId {
        let now = self.clock.now().utc().format("%Y%m%d-%H%M%S");
        let random: String = std::iter::repeat_with(fastrand::alphanumeric).take(5).collect();
        let id = format!("controller-{now}-{}", random.to_lowercase());
        id.parse().expect("a word, digits and letters")
    }

    fn answer(&self, request: EndpointRequest, term: &Term, candidate: Option<&Candidate>) {
        let EndpointRequest { endpoint, answer } = request;
        let state = candidate.map(|candidate| candidate.state.borrow().clone());
        let may_lead = candidate.map(|candidate| candidate.may_lead.borrow().clone());
        let reported = match endpoint {
            Endpoint::Metrics => {
                let view = MetricsView {
                    model: &term.session.model,
                    passes: &term.session.passes,
                    lease: candidate.map(|candidate| &candidate.enforcement.election).zip(state.as_ref()),
                    may_lead: may_lead.as_ref(),
                    now: self.clock.now(),
                };
                EndpointAnswer { is_ok: true, text: view.exposition() }
            }
            Endpoint::Live => {
                checks(&[("leader-election".into(), self.renews(candidate, state.as_ref()))], &[])
            }
            Endpoint::Ready => {
                let role = match (&state, &may_lead) {
                    (None, _) => "shadow: writes nothing".to_owned(),
                    (Some(state), _) if state.is_held() => "leader: writes".into(),
                    (_, Some(may)) if !may.is_allowed => format!("waits: {}", may.text),
                    (Some(state), _) => format!("standby: {:?} holds the Lease", state.holder),
                };
                checks(&watch_checks(&term.session.model), &[role])
            }
        };
        // Sending the answer fails if the client of the endpoint has disconnected, which is not an error.
        let _ = answer.send(reported);
    }

    /// Health check of leader election, like client-go's. The check fails if this process has not renewed its Lease for
    /// too long but still counts itself as leader.
    fn renews(&self, candidate: Option<&Candidate>, state: Option<&LeaseState>) -> Result<(), String> {
        let (Some(candidate), Some(state)) = (candidate, state) else { return Ok(()) };
        let Some(renewed) = state.renewed.filter(|_| state.is_held()) else { return Ok(()) };
        let since = self.clock.now().since(renewed);
        let is_dead = since > candidate.enforcement.election.lease_duration + UNRENEWED;
        if is_dead { Err(format!("the Lease was not renewed for {since}")) } else { Ok(()) }
    }
}

/// Formats health checks as Kubernetes components do.
fn checks(checks: &[(String, Result<(), String>)], notes: &[String]) -> EndpointAnswer {
    let mut text = String::new();
    for (name, state) in checks {
        text += &match state {
            Ok(()) => format!("[+]{name} ok\n"),
            Err(why) => format!("[-]{name} failed: {why}\n"),
        };
    }
    for note in notes {
        text += &format!("{note}\n");
    }
    let is_ok = checks.iter().all(|(_, state)| state.is_ok());
    EndpointAnswer { is_ok, text: text + if is_ok { "check passed\n" } else { "check failed\n" } }
}

/// This process as a candidate for the Lease. The candidate runs in separate tasks.
struct Candidate {
    enforcement: Enforcement,
    state: watch::Receiver<LeaseState>,
    may_lead: watch::Receiver<MayLead>,
    /// Last reported leadership: whether this process leads, and the holder of the Lease.
    reported: (bool, String),
    stop: CancellationToken,
    elector: JoinHandle<()>,
    _ends_with_us: DropGuard,
}

impl Candidate {
    fn start(process: &ControllerProcess, enforcement: Enforcement) -> Self {
        let (client, clock) = (process.connection.writer.clone(), process.clock);
        let Enforcement { election, identity, manager_controllers, .. } = enforcement.clone();
        let stop = CancellationToken::new();
        let (allowed, may) = watch::channel(election.is_of_manager());
        let (may_sender, may_lead) = watch::channel(MayLead::default());
        if election.is_of_manager() {
            let text = "--take-over: replaces kube-controller-manager".into();
            may_sender.send_replace(MayLead { is_allowed: true, text });
            // With --take-over, the permission to lead never changes. This task only keeps the channels open.
            tokio::spawn(stop.clone().run_until_cancelled_owned(async move {
                let _kept = (may_sender, allowed);
                std::future::pending::<()>().await;
            }));
        } else {
            let manager = ManagerWatch {
                client: client.clone(),
                clock,
                every: election.retry_period,
                ours: process.settings.clone().as_controller().controllers.value,
                stated: manager_controllers,
            };
            tokio::spawn(stop.clone().run_until_cancelled_owned(manager.run(may_sender, allowed)));
        }
        let elector = LeaderElector::new(client, election, identity, clock);
        let state = elector.state();
        let elector = tokio::spawn(elector.run(may, stop.clone()));
        let _ends_with_us = stop.clone().drop_guard();
        let reported = (false, String::new());
        Self { enforcement, state, may_lead, reported, stop, elector, _ends_with_us }
    }

    /// Waits for the next change of leadership that must be reported, and returns the output line that reports it. May
    /// be dropped and awaited again.
    async fn changed(&mut self) -> ControllerLine {
        let ElectionOptions { namespace, name, .. } = &self.enforcement.election;
        loop {
            tokio::select! {
                changed = self.may_lead.changed() => {
                    if changed.is_err() {
                        std::future::pending::<()>().await;
                    }
                    let may = self.may_lead.borrow_and_update().clone();
                    return ControllerLine::may_lead(may);
                }
                changed = self.state.changed() => {
                    if changed.is_err() {
                        std::future::pending::<()>().await;
                    }
                    let state = self.state.borrow_and_update();
                    let now = (state.is_held(), state.holder.clone());
                    let before = std::mem::replace(&mut self.reported, now.clone());
                    let lease = format!("{namespace}/{name}");
                    match (before, now) {
                        ((false, _), (true, holder)) => return ControllerLine::leading(&lease, &holder),
                        ((true, _), (false, holder)) => {
                            return ControllerLine::lost(&lease, state.error.as_deref().unwrap_or(&holder));
                        }
                        ((false, before), (false, holder)) if before != holder => {
                            return ControllerLine::standby(&lease, &holder);
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    /// Releases the Lease.
    async fn stop(self) {
        self.stop.cancel();
        // The release of the Lease may take only a limited time. If the API server does not respond, the Lease expires
        // instead.
        let _ = timeout(LAST_RELEASE, self.elector).await;
    }
}

/// A period in which the process has one role: shadow or controller.
struct Term {
    session: Session,
    clock: Clock,
    /// Token that is cancelled when no more writes may start.
    stopping: CancellationToken,
    /// Tracks whether the executor still has writes in flight.
    running: TaskTracker,
    journal: Option<EffectJournal>,
    next_tick: Instant,
    beside: BesideWork,
    kubelets: KubeletReader,
    /// Number of the first message in the journal that was not reported yet.
    untold: usize,
    _watches: DropGuard,
}

impl Term {
    fn start(
        process: &ControllerProcess,
        role: ControllerRole,
        kinds: &'static [FeedKind],
        writer: EffectWriter,
        journal: Option<EffectJournal>,
    ) -> Self {
        let (connection, clock) = (&process.connection, process.clock);
        let (running, watches, stopping) =
            (TaskTracker::new(), CancellationToken::new(), CancellationToken::new());
        let writer = EffectWriter {
            reported: Some(process.lines.effects()),
            running: Some(running.token()),
            stopping: stopping.clone(),
            ..writer
        };
        running.close();
        let executor = EffectExecutor::Writer(writer);
        let options = process.options(role);
        let session = Session::watching(kinds, connection, options, false, executor, clock, watches.clone());
        // With enforcement, only what the controller needs is read.
        let server = session.links.events.clone().filter(|_| process.enforcement.is_none());
        Self {
            kubelets: KubeletReader::new(server, clock),
            session,
            clock,
            stopping,
            running,
            journal,
            next_tick: Instant::now(),
            beside: BesideWork::new(),
            untold: 0,
            _watches: watches.drop_guard(),
        }
    }

    fn is_controller(&self) -> bool {
        self.session.model.effects.role() == ControllerRole::Controller
    }

    /// Stores an answer of a kubelet.
    fn on_usage(&mut self, answer: UsageAnswer) {
        if let UsageAnswer::Kubelet(node, report) = answer {
            self.session.model.on_kubelet_report(&node, *report, self.clock.now());
        }
    }

    /// Refreshes views, starts requests to kubelets and background work that is due, and reports new messages.
    fn tick(&mut self, lines: &LineWriter, clock: Clock) {
        self.next_tick = Instant::now() + TICK;
        let now = clock.now();
        let (model, beside) = (&mut self.session.model, &mut self.beside);
        self.kubelets.ask(WantedKubelet::of_nodes(model.queried_nodes(), &model.cluster));
        if model.leaves_many() {
            model.refresh_nodes(now);
            if beside.leaving.is_due()
                && let Some(job) = model.next_leaving_job(now)
            {
                beside.leaving.start(move |_| job.work());
            }
        } else {
            model.refresh(now);
        }
        if beside.forecast.is_due() {
            if model.is_abnormal() {
                if let Some(engine) = model.engine.clone() {
                    let cluster = model.cluster.clone();
                    beside.forecast.start(move |_| Forecast::run(&engine, &cluster, now, HORIZON));
                }
            } else {
                drop(model.predictions.drop_forecasts());
            }
        }
        if model.effects.role() == ControllerRole::Shadow && beside.headroom.is_due() {
            beside.headroom.start(model.next_headroom_job(now));
        }
        if beside.outcomes.is_due()
            && let Some(job) = model.next_outcomes_job(now)
        {
            let earlier = beside.headroom.state();
            beside.outcomes.start(move |cancelled| job.work(earlier, cancelled.cancellation()));
        }
        self.tell(lines);
    }

    /// Reports new warnings and errors. Outcomes of effects are reported elsewhere, when they arrive.
    fn tell(&mut self, lines: &LineWriter) {
        let mut untold = self.untold;
        for (number, entry) in
            self.session.model.journal.numbered().filter(|(number, _)| *number >= self.untold)
        {
            untold = number + 1;
            if entry.level > Severity::Info && entry.verb.is_empty() {
                lines.write(ControllerLine::notice(entry).at(entry.at));
            }
        }
        self.untold = untold;
    }

    /// Stores a result of background work.
    fn apply(&mut self, result: Result<BesideResult, Failed>) {
        let model = &mut self.session.model;
        match result {
            Ok(BesideResult::Forecast(forecast)) => drop(model.set_forecast(forecast)),
            Ok(BesideResult::Leaving(leaving)) => drop(model.set_leaving(*leaving)),
            Ok(BesideResult::Outcomes(outcomes)) => drop(model.set_outcomes(outcomes)),
            Ok(BesideResult::Headroom(headroom)) => {
                model.predictions.set_headroom(headroom.map(|snapshot| *snapshot));
            }
            Err(Failed) => {
                let text = "a forecast failed: predictions may be missing";
                model.journal.trouble(self.clock.now(), "", text);
            }
        }
    }

    /// Stops sending writes, and waits a moment for the writes in flight. Returns a text about how these writes ended.
    async fn end(self) -> String {
        self.stopping.cancel();
        let Self { session, running, journal, clock, .. } = self;
        let Session { links, model, .. } = session;
        let waiting = model.effects.unfinished();
        let crate::run::Links { effects, mut outcomes, .. } = links;
        drop(effects);
        let finished = timeout(LAST_WRITES, async {
            // The outcomes are received, because the executor would otherwise wait for room in the channel.
            while outcomes.recv().await.is_some() {}
            running.wait().await;
        });
        let text = match finished.await {
            Ok(()) => format!("all writes finished; {waiting} effects had no outcome yet"),
            Err(_) => "some writes were abandoned: they may have been executed".to_owned(),
        };
        if let Some(EffectJournal { writer, operation }) = journal {
            let kind = LineKind::Ended { end: "handedOver".into(), text: text.clone() };
            let line = JournalLine { at: clock.now(), operation, kind };
            if let Err(error) = writer.append(line).await {
                tracing::error!(%error, "cannot write the journal");
            }
        }
        text
    }
}

/// Background work of a term (a period as shadow or as controller).
struct BesideWork {
    forecast: Background<Forecast>,
    leaving: Background<CountedLeaving>,
    outcomes: Background<EvictionOutcomes>,
    headroom: HeadroomSlices,
}

enum BesideResult {
    Forecast(Forecast),
    Leaving(Box<CountedLeaving>),
    Outcomes(EvictionOutcomes),
    Headroom(Option<Box<HeadroomSnapshot>>),
}

impl BesideWork {
    fn new() -> Self {
        Self {
            forecast: Background::new(FORECAST),
            leaving: Background::new(TICK),
            outcomes: Background::new(FORECAST),
            headroom: HeadroomSlices::new(FORECAST),
        }
    }

    /// Waits for the next result of background work. May be dropped and awaited again.
    async fn finished(&mut self) -> Result<BesideResult, Failed> {
        tokio::select! {
            forecast = self.forecast.finished() => forecast.map(BesideResult::Forecast),
            leaving = self.leaving.finished() => leaving.map(|leaving| BesideResult::Leaving(Box::new(leaving))),
            outcomes = self.outcomes.finished() => outcomes.map(BesideResult::Outcomes),
            headroom = self.headroom.finished() => headroom.map(BesideResult::Headroom),
        }
    }
}
