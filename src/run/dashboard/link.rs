//! The dashboard's connection to the cluster: its watches, its executor, and the data that is read only while it is on
//! screen.

use super::*;

/// Channels to the cluster. For a recording there are no channels, and every wait for an event lasts forever.
pub(super) struct ClusterLink {
    /// Messages of the watches; none once the watches have ended.
    feeds: Option<mpsc::Receiver<FeedEvent>>,
    /// The queue to the executor. Like `outcomes`, it is none once the executor has ended.
    effects: Option<mpsc::Sender<Effect>>,
    outcomes: Option<mpsc::Receiver<(EffectId, Outcome)>>,
    /// Scopes (parts of a kind, such as the pods of one node) to read for what is open on the screen, such as a plan.
    wanted: watch::Sender<BTreeSet<Scope>>,
    events: ShownEvents,
    listed_events: ListedEvents,
    autoscalers: PlannedAutoscalers,
    node_claims: ShownNodeClaims,
    health_checks: ShownHealthChecks,
    volume_attachments: ShownVolumeAttachments,
    operator_settings: ShownOperatorSettings,
    kordon_lease: KordonLeaseReader,
    kubelets: KubeletReader,
}

/// An event on the dashboard's connection to the cluster.
pub(super) enum LinkEvent {
    /// Data about the object whose details are open on the screen.
    Subject(EventSubject, SubjectReport),
    /// The Events of the cluster, while their list is open.
    Events(EventsOfCluster),
    /// Data that was read with one request, for an open plan or detail.
    Read(Change),
    /// The outcome of an effect; none if the executor has ended.
    Outcome(Option<(EffectId, Outcome)>),
    /// The queue to the executor has room for an effect, or the executor has ended.
    Room(Result<(), ExecutorEnded>),
    /// Requests to kubelets are due.
    Kubelets,
    Usage(UsageAnswer),
    /// A message of the watches; none if the watches have ended.
    Feed(Option<FeedEvent>),
}

/// The executor has ended: effects are not executed any more.
pub(super) struct ExecutorEnded;

impl ClusterLink {
    pub(super) fn new(links: Option<Links>, clock: Clock) -> Self {
        let (feeds, effects, outcomes, wanted, server) = match links {
            Some(Links { feeds, effects, outcomes, wanted, events }) => {
                (Some(feeds), Some(effects), Some(outcomes), wanted, events)
            }
            None => (None, None, None, watch::Sender::default(), None),
        };
        Self {
            feeds,
            effects,
            outcomes,
            wanted,
            events: ShownEvents::new(server.clone()),
            listed_events: ListedEvents::new(server.clone()),
            autoscalers: PlannedAutoscalers::autoscalers(server.clone()),
            node_claims: ShownNodeClaims::node_claims(server.clone()),
            health_checks: ShownHealthChecks::health_checks(server.clone()),
            volume_attachments: ShownVolumeAttachments::volume_attachments(server.clone()),
            operator_settings: ShownOperatorSettings::operator_settings(server.clone()),
            kordon_lease: KordonLeaseReader::kordon_lease(server.clone()),
            kubelets: KubeletReader::new(server, clock),
        }
    }

    /// Follows what is on screen, so that the data for it is read from now on.
    pub(super) fn follow(&mut self, app: &App) {
        let wanted = app.wanted_scopes();
        self.wanted.send_if_modified(|current| {
            let has_changed = *current != wanted;
            *current = wanted;
            has_changed
        });
        self.events.follow(app.shown_object());
        self.listed_events.follow(app.lists_events());
        self.autoscalers.follow(app.plans_surges().then_some(()));
        self.node_claims.follow(app.shown_karpenter_node());
        self.health_checks.follow(app.shown_unhealthy_node());
        self.volume_attachments.follow(app.shown_starting_pod());
        self.operator_settings.follow(app.owners_with_settings());
        let shows_lease = app.shows_info() || app.shows_failure();
        self.kordon_lease.keep(&app.model, shows_lease, app.model.views.taken);
        let usage = app.shows_usage() && !app.is_frozen();
        self.kubelets.look_at(LookedAt { node: app.shown_node(), usage });
    }

    /// Waits for the next event. `has_effects` is whether an effect waits for room in the queue to the executor. May be
    /// dropped and awaited again.
    pub(super) async fn next(&mut self, has_effects: bool) -> LinkEvent {
        tokio::select! {
            biased;
            (subject, report) = self.events.next() => LinkEvent::Subject(subject, report),
            events = self.listed_events.next() => LinkEvent::Events(events),
            known = self.autoscalers.next() => LinkEvent::Read(Change::Autoscalers(Arc::new(known))),
            known = self.node_claims.next() => LinkEvent::Read(Change::NodeClaims(Arc::new(known))),
            known = self.health_checks.next() => LinkEvent::Read(Change::HealthChecks(Arc::new(known))),
            known = self.volume_attachments.next() => {
                LinkEvent::Read(Change::VolumeAttachments(Arc::new(known)))
            }
            known = self.operator_settings.next() => {
                LinkEvent::Read(Change::OperatorSettings(Arc::new(known)))
            }
            // A Lease that cannot be read stays as it was until it expires.
            Ok(lease) = self.kordon_lease.next() => LinkEvent::Read(Change::KordonLease(lease)),
            outcome = receive(&mut self.outcomes) => LinkEvent::Outcome(outcome),
            room = room_for_effect(self.effects.as_ref(), has_effects) => LinkEvent::Room(room),
            () = sleep_until(self.kubelets.due) => LinkEvent::Kubelets,
            answer = self.kubelets.next() => LinkEvent::Usage(answer),
            message = receive(&mut self.feeds) => LinkEvent::Feed(message),
        }
    }

    /// Returns the next message of the watches, if one waits.
    pub(super) fn waiting_message(&mut self) -> Option<FeedEvent> {
        self.feeds.as_mut()?.try_recv().ok()
    }

    /// Sends as many effects as there is room for in the queue to the executor.
    pub(super) fn send_effects(&self, effects: &mut Effects) {
        while effects.has_next()
            && let Some(Ok(permit)) = self.effects.as_ref().map(mpsc::Sender::try_reserve)
            && let Some(effect) = effects.take_next()
        {
            permit.send(effect);
        }
    }

    /// Closes the channel of the watches, which have ended.
    pub(super) fn on_watches_ended(&mut self) {
        self.feeds = None;
    }

    /// Closes the channels of the executor, which has ended. Returns whether they were open until now.
    pub(super) fn on_executor_ended(&mut self) -> bool {
        self.effects = None;
        self.outcomes.take().is_some()
    }

    /// Sends requests to the kubelets of the node that is shown, and of nodes that report pressure or are shutting down.
    pub(super) fn ask_kubelets(&mut self, app: &App) {
        let model = &app.model;
        let queried = if app.is_frozen() { BTreeSet::new() } else { model.queried_nodes() };
        let wanted = app.shown_node().into_iter().chain(queried);
        self.kubelets.ask(WantedKubelet::of_nodes(wanted, &model.cluster));
    }
}

/// Waits for the next message; none when the channel closes. Waits forever if there is no channel.
async fn receive<T>(channel: &mut Option<mpsc::Receiver<T>>) -> Option<T> {
    match channel {
        Some(channel) => channel.recv().await,
        None => std::future::pending().await,
    }
}

/// Waits for room in the channel, forever if there is no channel or nothing to send.
async fn room_for_effect(
    channel: Option<&mpsc::Sender<Effect>>,
    has_effects: bool,
) -> Result<(), ExecutorEnded> {
    match channel {
        Some(channel) if has_effects => channel.reserve().await.map(drop).map_err(|_| ExecutorEnded),
        Some(_) | None => std::future::pending().await,
    }
}
