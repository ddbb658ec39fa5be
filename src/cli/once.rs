//! Reads a cluster once, for the commands that print an answer and end.

use std::{collections::BTreeSet, mem, path::Path, pin::pin, sync::Arc};

use clap::Args;
use futures::{StreamExt, stream};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    CliError,
    config::Config,
    connection::ConnectionArgs,
    dashboard::settings_of,
    output::OutputArgs,
    recorded::{self, RecordingArgs},
    settings::SettingsArgs,
    show::connection_info,
    source::SourceArgs,
    span,
};
use crate::{
    executor::effects::EffectExecutor,
    k8s::{
        autoscalers,
        connect::Connection,
        feed::{FeedEvent, FeedKind, FeedState},
        health_checks, kordon_lease,
        kubelet::{read_kubelet, read_node_metrics, read_shutdown_periods},
        node_claims, operator_settings,
        settings::controller_flags,
        volume_attachments,
    },
    model::{ControllerRole, Model, ModelOptions},
    run::{
        Session,
        kubelets::WantedKubelet,
        read::{read_needed, read_scopes},
        record::nodes_forbidden,
        watch_scopes,
        watched_model::WatchedModel,
    },
};
use kordon_clock::Clock;
use kordon_core::{
    cluster::{Change, Cluster, Known, KnownNodeClaims, Namespace, NodeName, Owner, Scope},
    engine::Settings,
    placement::SchedulerRules,
    plan::{Action, EvictionRules, needs},
    pressure::PressureCondition,
};
use kordon_time::{Span, Timestamp};

#[derive(Args, Debug)]
pub struct OnceArgs {
    #[command(flatten)]
    pub output: OutputArgs,
    /// How long to wait in all, from connecting until everything has been listed
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = span::span)]
    timeout: Span,
    #[command(flatten)]
    settings: SettingsArgs,
    #[command(flatten)]
    recorded: RecordingArgs,
    #[command(flatten)]
    pub source: SourceArgs,
}

/// Kinds of objects that must be listed before most commands print their answer.
const WANTED: [FeedKind; 3] = [FeedKind::Nodes, FeedKind::Leases, FeedKind::Pods];

/// Kinds of objects that the engine needs before it can start.
const ENGINE: [FeedKind; 3] = [FeedKind::Nodes, FeedKind::Leases, FeedKind::Leader];

/// Time limit for reading objects that an answer can do without, such as those with names similar to the name of a
/// missing object.
const NEAR_PATIENCE: Span = Span::from_secs(2);

/// Time limit for asking kubelets: for their configuration if their machines stop, for measurements if their nodes are
/// under pressure.
const KUBELETS_PATIENCE: Span = Span::from_secs(2);

/// Number of kubelets that are asked at the same time.
const KUBELETS_AT_ONCE: usize = 8;

/// Time limit for reading the usage of nodes.
const USAGE_PATIENCE: Span = Span::from_secs(2);

impl OnceArgs {
    /// Whether the answer comes from a recording.
    pub const fn is_recorded(&self) -> bool {
        self.recorded.recording.is_some()
    }

    /// Whether the answer comes from a cluster alone.
    pub const fn reads_cluster_alone(&self) -> bool {
        !self.is_recorded() && !self.source.has_files()
    }

    /// Fails if a command that writes was given files or a recording.
    ///
    /// # Errors
    /// `--from`, `--with` or `--recording` was given.
    pub fn refuse_writes(&self) -> Result<(), CliError> {
        if self.is_recorded() {
            let text = "a recording cannot be written to: leave out --recording, or leave out --enforce";
            return Err(CliError::Usage(text.into()));
        }
        self.source.refuse_writes()
    }

    pub fn patience(&self) -> Patience {
        Patience::start(self.timeout, "--timeout")
    }
}

/// Time limit of a command for everything together: credential plugin, first response, lists.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    timeout: Span,
    /// Name of the flag that sets the time limit, for error texts.
    flag: &'static str,
    ends: Timestamp,
    pub clock: Clock,
}

impl Patience {
    /// Starts the time limit.
    pub fn start(timeout: Span, flag: &'static str) -> Self {
        let clock = Clock::system();
        Self { timeout, flag, ends: clock.now() + timeout, clock }
    }

    /// The error for data that did not arrive in time.
    pub fn late(self, missing: &str) -> CliError {
        CliError::TooSlow { waited: self.timeout, missing: missing.into(), flag: self.flag }
    }

    /// Waits for `work`; `None` if the time limit passes first.
    pub async fn wait<T>(self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            done = work => Some(done),
            () = self.clock.sleep_until(self.ends) => None,
        }
    }

    /// Shortens the time limit, so that it ends at most `span` from now.
    pub fn at_most(self, span: Span) -> Self {
        Self { ends: self.ends.min(self.clock.now() + span), ..self }
    }

    /// Connects to the cluster, or reads the objects from files, within the time limit.
    pub async fn connect(
        self,
        connection: ConnectionArgs,
        source: &SourceArgs,
    ) -> Result<Connection, CliError> {
        match self.wait(source.connect(connection)).await {
            Some(connection) => connection,
            None => Err(self.late("a connection, with credentials and the server's version")),
        }
    }

    /// Settings of the controller.
    pub async fn settings(
        self,
        connection: &Connection,
        config: &Config,
        given: &SettingsArgs,
    ) -> Result<Settings, CliError> {
        let found = self.wait(controller_flags(&connection.client)).await;
        let found = found.ok_or_else(|| self.late("the controller's settings"))?;
        let (settings, _) = settings_of(connection, config, found, given);
        Ok(settings)
    }
}

/// A cluster's state once everything is listed, or as much of it as arrived in time.
pub struct OneShot {
    pub model: Model,
    pub at: Timestamp,
    /// The requested namespace; without one, the namespace of the kubeconfig context.
    pub namespace: String,
    /// Error with which the command ends after it has printed its answer; none if all data arrived in time.
    late: Option<CliError>,
    pub connection: Connection,
    /// Events that the watches send later. The watches end when this struct is dropped.
    pub feeds: mpsc::Receiver<FeedEvent>,
    /// Objects to watch (single ones, or those of a namespace or node), when [no whole kinds](Self::following) are
    /// watched.
    scopes: watch::Sender<BTreeSet<Scope>>,
    pub clock: Clock,
    _ends_with_us: DropGuard,
}

/// Kinds to watch.
#[derive(Clone, Copy, Debug)]
pub struct Watched<'a> {
    pub kinds: &'static [FeedKind],
    /// Kinds that must be listed before the answer.
    pub wanted: &'a [FeedKind],
    pub no_pods: bool,
}

impl OneShot {
    /// Connects, and waits until the engine has started and nodes, Leases and pods are listed.
    pub async fn ask(args: &OnceArgs, connection: ConnectionArgs, no_pods: bool) -> Result<Self, CliError> {
        let kinds = Watched { kinds: &FeedKind::ALL, wanted: &WANTED, no_pods };
        Self::predicted(args, kinds, args.patience(), connection).await
    }

    /// Like `ask`, but waits until the given kinds are listed.
    pub async fn ask_for(
        args: &OnceArgs,
        wanted: &[FeedKind],
        connection: ConnectionArgs,
    ) -> Result<Self, CliError> {
        let kinds = Watched { kinds: &FeedKind::ALL, wanted, no_pods: false };
        Self::predicted(args, kinds, args.patience(), connection).await
    }

    /// Waits until the engine has started, and reads the further objects that `needs` returns for the state known so
    /// far and the requested namespace.
    pub async fn ask_about(
        args: &OnceArgs,
        connection: ConnectionArgs,
        needs: impl Fn(&Model, &str) -> BTreeSet<Scope>,
    ) -> Result<Self, CliError> {
        if let Some(file) = &args.recorded.recording {
            return Self::from_recording(file, args, connection);
        }
        let patience = args.patience();
        let kinds = Watched { kinds: &ENGINE, wanted: &ENGINE[..2], no_pods: false };
        let mut shot = Self::predicted(args, kinds, patience, connection).await?;
        shot.read(patience, needs).await?;
        Ok(shot)
    }

    /// Like `ask`, but keeps the watches running.
    pub async fn keep_watching(
        args: &OnceArgs,
        connection: ConnectionArgs,
        no_pods: bool,
    ) -> Result<WatchedSession, CliError> {
        let (kinds, patience) =
            (Watched { kinds: &FeedKind::ALL, wanted: &WANTED, no_pods }, args.patience());
        let (connection, options) = Self::as_shadow(args, patience, connection).await?;
        let mut watched = WatchedSession::start(&connection, options, kinds, patience).await?;
        watched.late.take().map_or(Ok(watched), Err)
    }

    async fn predicted(
        args: &OnceArgs,
        kinds: Watched<'_>,
        patience: Patience,
        connection: ConnectionArgs,
    ) -> Result<Self, CliError> {
        if let Some(file) = &args.recorded.recording {
            return Self::from_recording(file, args, connection);
        }
        let (connection, options) = Self::as_shadow(args, patience, connection).await?;
        let mut shot = Self::watch(connection, options, kinds, patience).await?;
        if shot.model.engine.is_none() {
            shot.in_time()?;
        }
        shot.read_what_bears(args).await;
        Ok(shot)
    }

    /// The state known at a moment of a recording.
    fn from_recording(
        file: &Path,
        args: &OnceArgs,
        mut connection: ConnectionArgs,
    ) -> Result<Self, CliError> {
        let namespace = connection.namespace.take();
        connection.refuse("--recording asks no cluster")?;
        let (model, at) = recorded::model(file, args.source.at.unwrap_or_default(), &args.settings)?;
        if model.engine.is_none() {
            return Err(CliError::NotYetRecorded { at });
        }
        let shot = Self::unread(recorded::connection(&model));
        let namespace = namespace.unwrap_or_else(|| shot.namespace.clone());
        Ok(Self { model, at, namespace, ..shot })
    }

    /// Watches all kinds over the same connection, and waits until the given kinds are listed. A recording has them
    /// already.
    pub async fn listed(self, args: &OnceArgs, wanted: &[FeedKind]) -> Result<Self, CliError> {
        if args.is_recorded() {
            return Ok(self);
        }
        let options = ModelOptions {
            connection: connection_info(&self.connection),
            settings: self.model.settings,
            role: ControllerRole::Shadow,
        };
        let kinds = Watched { kinds: &FeedKind::ALL, wanted, no_pods: false };
        let mut shot = Self::watch(self.connection, options, kinds, args.patience()).await?;
        if shot.model.engine.is_none() {
            shot.in_time()?;
        }
        shot.read_what_bears(args).await;
        Ok(shot)
    }

    /// Connects to predict what the cluster's controller does, without acting in its place.
    async fn as_shadow(
        args: &OnceArgs,
        patience: Patience,
        connection: ConnectionArgs,
    ) -> Result<(Connection, ModelOptions), CliError> {
        let config = connection.config.clone();
        let connection = patience.connect(connection, &args.source).await?;
        let settings = patience.settings(&connection, &config, &args.settings).await?;
        let options =
            ModelOptions { connection: connection_info(&connection), settings, role: ControllerRole::Shadow };
        Ok((connection, options))
    }

    /// Waits until the given kinds are listed. No engine runs.
    pub async fn list(
        connection: Connection,
        kinds: Watched<'_>,
        patience: Patience,
    ) -> Result<Self, CliError> {
        let options = observer_of(&connection);
        Self::watch(connection, options, kinds, patience).await
    }

    /// Starts without any objects or watches. Objects are added with [`read`](Self::read).
    pub fn unread(connection: Connection) -> Self {
        let clock = connection.clock;
        // The sender of watch events is dropped at once, because nothing is watched.
        let (_, feeds) = mpsc::channel(1);
        Self {
            model: Model::new(observer_of(&connection), clock.now()),
            at: clock.now(),
            namespace: connection.namespace.clone(),
            late: None,
            connection,
            feeds,
            scopes: watch::Sender::default(),
            clock,
            _ends_with_us: CancellationToken::new().drop_guard(),
        }
    }

    /// Starts without any objects. Those that are [followed](Self::follow) are watched from then on.
    pub fn following(connection: Connection) -> Self {
        let (clock, cancel) = (connection.clock, CancellationToken::new());
        let (scopes, feeds) = watch_scopes(&connection, clock, cancel.clone());
        let _ends_with_us = cancel.drop_guard();
        Self { scopes, feeds, _ends_with_us, ..Self::unread(connection) }
    }

    /// Watches the objects that an action changes, and reads the other objects that its plan needs. Objects that were
    /// read earlier are read again.
    pub async fn follow(
        &mut self,
        action: &Action,
        rules: &EvictionRules,
        patience: Patience,
    ) -> Result<(), CliError> {
        let mut read = BTreeSet::new();
        loop {
            let needed = needs::needs(action, &self.model.cluster, rules, self.at);
            let followed = needs::followed(action, &needed);
            self.scopes.send_if_modified(|scopes| {
                let before = scopes.len();
                scopes.extend(followed.iter().cloned());
                scopes.len() > before
            });
            let missing: Vec<Scope> =
                needed.difference(&followed).filter(|scope| !read.contains(*scope)).cloned().collect();
            let is_complete = missing.is_empty();
            read.extend(missing.iter().cloned());
            let answered = async {
                let Self { model, connection, clock, .. } = &mut *self;
                read_scopes(connection, model, *clock, missing).await;
                self.until_answered(&followed).await;
            };
            if patience.wait(answered).await.is_none() {
                return Err(self.late_scopes(needed.union(&followed), patience));
            }
            self.at = self.clock.now();
            if is_complete && needs::needs(action, &self.model.cluster, rules, self.at) == needed {
                return self.may_read_nodes(&needed);
            }
        }
    }

    /// Applies watch events until the objects of these scopes (such as the pods of a node) are known or forbidden.
    async fn until_answered(&mut self, scopes: &BTreeSet<Scope>) {
        let is_answered = |cluster: &Cluster, scope: &Scope| match cluster.known_in(scope) {
            Known::Live | Known::Stale { .. } | Known::Forbidden { .. } | Known::Absent => true,
            Known::NotListed | Known::Off { .. } => false,
        };
        while !scopes.iter().all(|scope| is_answered(&self.model.cluster, scope)) {
            let Some(event) = self.feeds.recv().await else { return };
            self.model.on_watch_event(event, self.clock.now());
        }
        self.catch_up();
    }

    fn late_scopes<'a>(&self, scopes: impl Iterator<Item = &'a Scope>, patience: Patience) -> CliError {
        let unread = |scope: &&Scope| self.model.cluster.known_in(scope) == Known::NotListed;
        let unread: Vec<String> = scopes.filter(unread).map(ToString::to_string).collect();
        patience.late(&unread.join(", "))
    }

    /// Fails if nodes are needed but forbidden: without nodes there is no answer.
    fn may_read_nodes(&self, needed: &BTreeSet<Scope>) -> Result<(), CliError> {
        let of_nodes = needed.iter().filter(|scope| scope.kind() == FeedKind::Nodes);
        let forbidden = of_nodes.filter_map(|scope| match self.model.cluster.known_in(scope) {
            Known::Forbidden { error } => Some(error.to_string()),
            _ => None,
        });
        forbidden.into_iter().next().map_or(Ok(()), |error| Err(CliError::NodesForbidden(error)))
    }

    /// Records that these kinds are not listed as a whole, because `flag` tells kordon not to read them.
    pub fn leave_out(&mut self, flag: &'static str, kinds: impl IntoIterator<Item = FeedKind>) {
        let changes = kinds.into_iter().map(|kind| Change::Known(kind, Known::Off { flag })).collect();
        self.model.apply(changes, self.clock.now());
    }

    /// Reads the objects that `needs` returns for the state known so far and the requested namespace.
    pub async fn read(
        &mut self,
        patience: Patience,
        needs: impl Fn(&Model, &str) -> BTreeSet<Scope>,
    ) -> Result<(), CliError> {
        let Self { model, namespace, connection, clock, .. } = self;
        let all = |model: &Model| needs(model, namespace);
        let read = patience.wait(read_needed(connection, model, *clock, all)).await;
        self.catch_up();
        self.at = self.clock.now();
        let needed = needs(&self.model, &self.namespace);
        if read.is_none() {
            return Err(self.late_scopes(needed.iter(), patience));
        }
        self.may_read_nodes(&needed)
    }

    /// Reads which workloads autoscalers scale.
    pub async fn read_autoscalers(&mut self) {
        let known = autoscalers::read(&self.connection.client).await;
        let now = self.clock.now();
        self.model.apply(vec![Change::Autoscalers(Arc::new(known))], now);
    }

    /// Reads the settings of the operators of these owners, which decide what becomes of the owners' pods.
    pub async fn read_operator_settings(&mut self, owners: &[(Namespace, Owner)]) {
        if !owners.is_empty() {
            let settings = operator_settings::read(&self.connection.client, owners).await;
            let now = self.clock.now();
            self.model.apply(vec![Change::OperatorSettings(Arc::new(settings))], now);
        }
    }

    /// Reads what is not watched but may bear on any answer.
    async fn read_what_bears(&mut self, args: &OnceArgs) {
        if self.model.needs_kordon_lease(self.clock.now()) {
            self.read_kordon_lease().await;
        }
        self.read_shutdown_periods(args).await;
        self.read_pressure(args).await;
    }

    /// Reads the Lease of `kordon controller`, if that was not done before and the Lease of kube-controller-manager was
    /// read in time. The engine may start again with it, and makes its first pass.
    pub async fn read_kordon_lease(&mut self) {
        let is_known = self.model.cluster.kordon_lease().is_some();
        if is_known || self.model.feeds.state(FeedKind::Leader) != Some(&FeedState::Live) {
            return;
        }
        if let Ok(lease) = kordon_lease::read(&self.connection.client).await {
            self.catch_up();
            self.at = self.clock.now();
            self.model.apply(vec![Change::KordonLease(lease)], self.at);
            self.model.pass_time(self.at);
        }
    }

    /// Reads Karpenter's NodeClaims. Files and recordings have none.
    pub async fn read_node_claims(&mut self, args: &OnceArgs) {
        let known = match args.reads_cluster_alone() {
            true => node_claims::read(&self.connection.client).await,
            false => KnownNodeClaims::Unreadable("files and recordings have none".into()),
        };
        let now = self.clock.now();
        self.model.apply(vec![Change::NodeClaims(Arc::new(known))], now);
    }

    /// Reads the NodeHealthChecks of medik8s. Files and recordings have none, so that they stay unread.
    pub async fn read_health_checks(&mut self, args: &OnceArgs) {
        if args.reads_cluster_alone() {
            let known = health_checks::read(&self.connection.client).await;
            let now = self.clock.now();
            self.model.apply(vec![Change::HealthChecks(Arc::new(known))], now);
        }
    }

    /// Reads how the kubelets of nodes that are shutting down are configured for that, for up to `KUBELETS_PATIENCE`.
    /// Files have no configurations of kubelets.
    async fn read_shutdown_periods(&mut self, args: &OnceArgs) {
        if !args.reads_cluster_alone() {
            return;
        }
        let Self { model, connection, clock, .. } = self;
        let stopping = model.cluster.nodes().iter().filter(|node| node.is_shutting_down());
        let stopping: Vec<NodeName> = stopping.map(|node| node.name.clone()).collect();
        if stopping.is_empty() {
            return;
        }
        let client = &connection.client;
        let read = async |node: NodeName| {
            let periods = read_shutdown_periods(client, &node).await.map_err(|why| why.as_str().into());
            Change::ShutdownPeriods(node, periods)
        };
        let changes = ask_kubelets(stopping, read, *clock).await;
        model.apply(changes, clock.now());
    }

    /// Reads the measurements of kubelets whose nodes report pressure, for up to `KUBELETS_PATIENCE`, if pods are known:
    /// these kubelets may evict pods. Files and recordings have no measurements.
    async fn read_pressure(&mut self, args: &OnceArgs) {
        if !args.reads_cluster_alone() || !self.model.cluster.knows(&Scope::Pods) {
            return;
        }
        let Self { model, connection, clock, .. } = self;
        let nodes = model.cluster.nodes().iter();
        let pressed = nodes.filter(|node| !PressureCondition::reported(node).is_empty());
        let pressed: Vec<NodeName> = pressed.map(|node| node.name.clone()).collect();
        if pressed.is_empty() {
            return;
        }
        let wanted = WantedKubelet::of_nodes(pressed, &model.cluster);
        let (client, clock) = (&connection.client, *clock);
        let read = async |WantedKubelet { node, pods }: WantedKubelet| {
            (node.name.clone(), read_kubelet(client, &node, &pods, clock).await)
        };
        let reports = ask_kubelets(wanted, read, clock).await;
        self.catch_up();
        self.at = self.clock.now();
        self.model.pass_time(self.at);
        for (node, report) in reports {
            self.model.on_kubelet_report(&node, report, self.at);
        }
    }

    /// Reads the VolumeAttachments. Recordings have none, so that they stay unread.
    pub async fn read_volume_attachments(&mut self, args: &OnceArgs) {
        if !args.is_recorded() {
            let known = volume_attachments::read(&self.connection.client).await;
            let now = self.clock.now();
            self.model.apply(vec![Change::VolumeAttachments(Arc::new(known))], now);
        }
    }

    /// Reads the objects whose names may be similar to a missing one, for up to `NEAR_PATIENCE`. Without them, no
    /// similar name is proposed.
    pub async fn read_near(&mut self, scopes: BTreeSet<Scope>) {
        let Self { model, connection, clock, .. } = self;
        let unread: Vec<Scope> = scopes.into_iter().filter(|scope| !model.cluster.knows(scope)).collect();
        if !unread.is_empty() {
            tokio::select! {
                () = read_scopes(connection, model, *clock, unread) => {}
                () = clock.sleep(NEAR_PATIENCE) => {}
            }
        }
    }

    /// Reads which devices drivers publish and which of them are allocated, for up to `NEAR_PATIENCE`, if the server
    /// serves them. They are not watched unless a pod may need devices.
    pub async fn read_devices(&mut self) {
        if self.model.settings.version >= SchedulerRules::FIRST_WITH_DEVICES {
            let kinds = [FeedKind::ResourceSlices, FeedKind::ResourceClaims];
            self.read_near(kinds.map(Scope::Whole).into()).await;
        }
    }

    /// Reads the usage of all nodes from metrics.k8s.io. Without an answer within `USAGE_PATIENCE`, the usage stays
    /// unknown.
    pub async fn read_usage(&mut self) {
        let usage = tokio::select! {
            usage = read_node_metrics(&self.connection.client) => usage,
            () = self.clock.sleep(USAGE_PATIENCE) => return,
        };
        self.model.measurements.on_usage(usage, self.at);
    }

    /// Watches until the given kinds are listed. If the options ask for an engine, also waits until the engine has
    /// started.
    pub async fn watch(
        connection: Connection,
        options: ModelOptions,
        kinds: Watched<'_>,
        patience: Patience,
    ) -> Result<Self, CliError> {
        let WatchedSession { session, late, _ends_with_us } =
            WatchedSession::start(&connection, options, kinds, patience).await?;
        let Session { mut model, links, clock, .. } = session;
        let (at, namespace) = (clock.now(), connection.namespace.clone());
        // The engine's first pass is due as soon as the engine starts, and may or may not have been made before the
        // last list arrived. A pass here makes the result independent of that order.
        model.pass_time(at);
        let (feeds, scopes) = (links.feeds, links.wanted);
        Ok(Self { model, at, namespace, late, connection, feeds, scopes, clock, _ends_with_us })
    }

    /// Fails if some of the requested data did not arrive in time.
    pub fn in_time(&mut self) -> Result<(), CliError> {
        self.late.take().map_or(Ok(()), Err)
    }

    /// Computes the forecast of the next ten minutes, and updates the views.
    pub fn run_forecast(&mut self) {
        self.model.run_forecast(self.at);
    }

    /// Applies pending watch events.
    pub fn catch_up(&mut self) {
        while let Ok(event) = self.feeds.try_recv() {
            self.model.on_watch_event(event, self.clock.now());
        }
    }

    /// The model with its watches, for an operation.
    pub fn watched(&mut self) -> WatchedModel<'_> {
        WatchedModel::Own { model: &mut self.model, feeds: &mut self.feeds }
    }

    /// Ends the command after its answer. The state is not freed: on a large cluster that would only delay the end.
    pub fn done(self) -> Result<(), CliError> {
        mem::forget(self.model);
        self.late.map_or(Ok(()), Err)
    }
}

/// A session that waits until everything is listed. The caller may go on using it afterwards.
pub struct WatchedSession {
    pub session: Session,
    /// Error about data that did not arrive in time; `None` if all data did.
    late: Option<CliError>,
    _ends_with_us: DropGuard,
}

impl WatchedSession {
    async fn start(
        connection: &Connection,
        options: ModelOptions,
        kinds: Watched<'_>,
        patience: Patience,
    ) -> Result<Self, CliError> {
        let Watched { kinds, wanted, no_pods } = kinds;
        let (cancel, clock) = (CancellationToken::new(), connection.clock);
        let _ends_with_us = cancel.clone().drop_guard();
        let executor = EffectExecutor::Recorder;
        let mut session = Session::watching(kinds, connection, options, no_pods, executor, clock, cancel);
        // The answer can do without the leader, so that a leader that does not arrive in time is no error.
        let knows_leader =
            |model: &Model| !kinds.contains(&FeedKind::Leader) || has_ended(model, FeedKind::Leader);
        let arrived = |model: &Model| {
            is_whole(model, wanted) && knows_leader(model) || nodes_forbidden(model).is_some()
        };
        let _ = patience.wait(session.run_until(arrived)).await;
        if let Some(error) = nodes_forbidden(&session.model) {
            return Err(CliError::NodesForbidden(error.to_owned()));
        }
        let is_late = !is_whole(&session.model, wanted);
        let late = is_late.then(|| patience.late(&missing(&session.model, wanted)));
        Ok(Self { session, late, _ends_with_us })
    }
}

/// Asks kubelets, some of them at the same time, for up to `KUBELETS_PATIENCE`. Returns the answers that arrive in time.
async fn ask_kubelets<T, A, F: Future<Output = A>>(
    wanted: Vec<T>,
    ask: impl Fn(T) -> F,
    clock: Clock,
) -> Vec<A> {
    let mut answers = pin!(stream::iter(wanted).map(ask).buffer_unordered(KUBELETS_AT_ONCE));
    let mut arrived = Vec::new();
    let all = async {
        while let Some(answer) = answers.next().await {
            arrived.push(answer);
        }
    };
    tokio::select! {
        () = all => {}
        () = clock.sleep(KUBELETS_PATIENCE) => {}
    }
    arrived
}

fn observer_of(connection: &Connection) -> ModelOptions {
    let names = connection_info(connection);
    ModelOptions { connection: names, ..ModelOptions::observer(connection.version) }
}

/// Whether the engine has started or is not used, and every wanted kind is listed, forbidden or not requested,
/// including the kinds that are read on demand.
fn is_whole(model: &Model, wanted: &[FeedKind]) -> bool {
    let has_begun = model.engine.is_some() || model.effects.role() == ControllerRole::Observer;
    has_begun
        && wanted.iter().all(|kind| has_ended(model, *kind))
        && awaited_on_demand(model, wanted).next().is_none()
}

/// Returns the kinds that are read on demand, are needed and not listed yet, if the answer depends on pods.
fn awaited_on_demand(model: &Model, wanted: &[FeedKind]) -> impl Iterator<Item = FeedKind> {
    let is_about_pods = wanted.contains(&FeedKind::Pods);
    let needed = model.scopes_on_demand().filter(move |_| is_about_pods).map(|scope| scope.kind());
    needed.filter(|kind| !has_ended(model, *kind))
}

fn has_ended(model: &Model, kind: FeedKind) -> bool {
    match model.feeds.state(kind) {
        Some(FeedState::Live | FeedState::Off | FeedState::Forbidden { .. }) => true,
        Some(FeedState::Connecting | FeedState::Listing { .. } | FeedState::Broken { .. }) | None => false,
    }
}

fn missing(model: &Model, wanted: &[FeedKind]) -> String {
    let missing = wanted.iter().copied().filter(|kind| !has_ended(model, *kind));
    let missing: Vec<String> =
        missing.chain(awaited_on_demand(model, wanted)).map(|kind| kind.to_string()).collect();
    if missing.is_empty() { "the controller's lease".into() } else { missing.join(", ") }
}
