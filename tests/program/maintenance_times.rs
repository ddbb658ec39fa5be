//! Maintenances compared with their plans: how long they take, how many pods move, that no budget refuses an eviction,
//! and N-1 between the waves; also the cordons while a maintenance waits for a window. Runs a demo cluster with budgets
//! and changing pods on a virtual clock.
//!
//! `KORDON_MAINTENANCE=30/200` maintains 30 of 200 nodes. `KORDON_SEED` selects another cluster. With `--nocapture` the
//! figures are printed.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use futures::{StreamExt, stream::FuturesUnordered};
use kordon::{
    executor::write_context::WriteContext,
    journal::{Journal, OperationStart},
    k8s::{connect::Connection, feed::FeedEvent},
    model::Model,
    run::{
        maintenance::{MaintenanceRun, MaintenanceTerms, NewMaintenance, OnFailure},
        signals::OperatorRequests,
        watched_model::WatchedModel,
    },
};
use kordon_clock::Clock;
use kordon_core::{
    cluster::{Cluster, MaintenanceStage, NodeName},
    maintenance::{
        MaintenanceEnd, MaintenanceEndKind, MaintenanceNews, MaintenanceOptions, MaintenanceOutcome,
        MaintenancePlan, WaitFor, WorstLoss,
    },
    operation::Overrides,
    placement::Snapshot,
    plan::{DrainOptions, EvictionRules, Retry, headroom},
};
use kordon_demo::world::{NodeFault, World};
use kordon_time::{Span, Timestamp};
use tokio::sync::{mpsc, oneshot};

use crate::town::{self, Town, VERSION};

/// Time for which a machine is worked on before it restarts.
const BEFORE_RESTART: Span = Span::from_secs(270);

/// Time for which a machine is down. It is less than the grace period, so its node stays Ready.
const RESTART: Span = Span::from_secs(30);

/// Interval at which a maintenance looks at the cluster (`LOOK` in `src/run/maintenance/mod.rs`).
const LOOK: Span = Span::from_secs(1);

/// Most seconds of a wave that its plan leaves out. A kubelet reports its restart up to 2 s later (`reconnect` in
/// `crates/kordon-demo/src/kubelets/mod.rs`). Four looks follow: they find the report, then that the node is well, then
/// that it has settled, and the last one waits for its release. If a gate fails then, because a pod of a Job has just
/// been created, the gates are read again after five looks; a pod starts in less time.
const LEFT_OUT: i64 = 2 + 4 + 5;

#[tokio::test(start_paused = true)]
async fn a_maintenance_goes_as_its_plan_predicted_and_beats_the_order_by_name() {
    let (count, nodes) = town::size("KORDON_MAINTENANCE", (6, 40));
    let seed = town::seed();
    let mut town = Town::with_placement(nodes, seed).await;
    // Several waves, as a pool is maintained: each has at most a third of the nodes.
    let limits = MaintenanceOptions { max_per_zone: Some(count.div_ceil(9)), ..options() };
    let (options, plan) = town.choose(count, limits);
    let (cost, by_name) = (plan.cost(), plan.by_name);
    let before = plan.before.expect("everything is known");
    let cluster = &town.model.cluster;
    let pods = plan.waves.iter().flat_map(|wave| &wave.nodes).flat_map(|node| cluster.workload_pods(node));
    let longest_grace = pods.map(|pod| pod.grace).max().expect("there are pods");
    let (end, seen) = town.maintain(options, &plan).await;

    let planned = plan.ends().expect("waves").since(plan.made).as_secs_f64();
    let took = end.ended.since(end.began).as_secs_f64();
    println!(
        "{count} of {nodes} nodes in {} waves, seed {seed}: planned {planned:.0} s, took {took:.0} s; {} pods moved of {} \
         planned; one by one by name: {:.0} s and {} moves; N-1 before {before:?}, then {:?}",
        plan.waves.len(),
        end.outcome.moves,
        cost.moves,
        by_name.takes.as_secs_f64(),
        by_name.moves,
        seen.losses,
    );
    assert_eq!(end.kind, MaintenanceEndKind::Done, "{}", end.says);
    assert_eq!(end.outcome.done(), count);
    assert_eq!(town.refused_evictions(), Vec::<String>::new());
    check_times(&plan, &end, longest_grace);
    assert!(seen.losses.len() > 2, "there is only one wave: {:?}", seen.losses);
    let is_no_worse = |loss: &WorstLoss| loss.node <= before.node && loss.zone <= before.zone;
    assert!(seen.losses.iter().all(is_no_worse), "before {before:?}, then {:?}", seen.losses);
    assert!(end.outcome.moves <= cost.moves, "{} pods moved, {} planned", end.outcome.moves, cost.moves);
    assert!(
        by_name.takes > cost.takes && by_name.moves > cost.moves,
        "by name {by_name:?}, in waves {cost:?}"
    );
}

/// Checks the drains of a maintenance and all other times separately. How long a drain takes is random, because a
/// kubelet ends a pod at any time within its grace period. No budget refuses an eviction, so no drain takes longer than
/// that, and none is planned to.
fn check_times(plan: &MaintenancePlan, end: &MaintenanceEnd, longest_grace: Span) {
    let waves = end.outcome.waves();
    assert_eq!(waves.len(), plan.waves.len());
    let sum = |spans: &[Span]| spans.iter().fold(Span::ZERO, |sum, span| sum + *span);
    let drains: Vec<Span> =
        waves.iter().map(|wave| wave.drained.expect("it is done").since(wave.starts)).collect();
    let planned_drains: Vec<Span> = plan.waves.iter().map(|wave| wave.drained.since(wave.starts)).collect();
    let longest = drains.iter().chain(&planned_drains).max().expect("some waves");
    assert!(*longest <= longest_grace + LOOK, "planned {planned_drains:?}, took {drains:?}");
    let planned: Vec<Span> = plan.waves.iter().map(|wave| wave.ends.since(wave.drained)).collect();
    let (planned, took) = (sum(&planned), end.ended.since(end.began) - sum(&drains));
    let latest = planned + LOOK * LEFT_OUT * i64::try_from(waves.len()).expect("some waves");
    assert!(
        (planned..=latest).contains(&took),
        "planned {planned}, took {took}, without the drains {drains:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn nodes_that_wait_for_a_window_are_not_cordoned() {
    let mut town = Town::with_placement(24, 0).await;
    let limits = MaintenanceOptions { parallel: Some(1), ..options() };
    let (options, plan) = town.choose(2, limits);
    let first = &plan.waves[0];
    assert!(!first.ahead.is_empty(), "the node of the second wave is not cordoned ahead: {plan:#?}");
    // The first wave fits into the first window, and leaves no time for the second wave.
    let (closes, opens) = (first.ends + Span::from_secs(60), first.ends + Span::from_secs(15 * 60));
    let windows = vec![(plan.made, closes), (opens, opens + Span::from_secs(6 * 3600))];
    let options = MaintenanceOptions { windows, ..options };
    let (end, seen) = town.maintain(options, &plan).await;
    assert_eq!(end.kind, MaintenanceEndKind::Done, "{}", end.says);
    let cordons = |from: Timestamp, until: Timestamp| -> Vec<bool> {
        let within = seen.waiting.iter().filter(|(at, _)| (from..until).contains(at));
        within.flat_map(|(_, nodes)| nodes.values().copied()).collect()
    };
    let of_first = cordons(plan.made, first.ends);
    assert!(of_first.contains(&true), "during the first wave, the other node is cordoned: {seen:#?}");
    let meanwhile = cordons(closes + Span::from_secs(60), opens);
    assert!(meanwhile.len() > 5 && !meanwhile.contains(&true), "until the window opens: {seen:#?}");
}

fn options() -> MaintenanceOptions {
    MaintenanceOptions {
        drain: DrainOptions {
            force: true,
            ignore_daemonsets: true,
            delete_emptydir_data: true,
            timeout: Some(Span::from_secs(2 * 3600)),
            retry: Retry::OnRecovery,
            ..DrainOptions::default()
        },
        work: BEFORE_RESTART + RESTART,
        settle: Span::from_secs(60),
        keeps_headroom: true,
        ..MaintenanceOptions::default()
    }
}

/// Observations of a maintenance.
#[derive(Debug, Default)]
struct Seen {
    /// The worst losses at the start of each wave, and at the end.
    losses: Vec<WorstLoss>,
    /// Every minute: the nodes whose wave has not started, and whether they are cordoned.
    waiting: Vec<(Timestamp, BTreeMap<NodeName, bool>)>,
}

impl Town {
    /// Chooses worker nodes that are far apart, and that a maintenance with these limits can have in its waves. Returns
    /// the options of the maintenance, and its plan.
    fn choose(&self, count: usize, limits: MaintenanceOptions) -> (MaintenanceOptions, MaintenancePlan) {
        let mut workers = self.workers(count).into_iter();
        let mut nodes: Vec<NodeName> = Vec::new();
        loop {
            nodes.extend(workers.by_ref().take(count - nodes.len()));
            assert_eq!(nodes.len(), count, "too few nodes can be maintained");
            let options = MaintenanceOptions { nodes: nodes.clone(), ..limits.clone() };
            let rules = EvictionRules::from(&self.model.settings);
            let plan = MaintenancePlan::new(&self.model.cluster, &options, rules, self.clock.now());
            if plan.left_out.is_empty() {
                return (options, plan);
            }
            nodes.retain(|name| !plan.left_out.iter().any(|(node, _)| node == name));
        }
    }

    /// Carries out a maintenance, as `kordon maintenance --enforce` does. The machines of empty nodes are restarted.
    async fn maintain(
        &mut self,
        options: MaintenanceOptions,
        plan: &MaintenancePlan,
    ) -> (MaintenanceEnd, Seen) {
        let (model, feeds) = self.observe().await;
        let folder = tempfile::tempdir().expect("a folder");
        let connection = Connection::embedded(self.api.client_as("kordon"), "demo");
        let context = WriteContext::with(&connection, Journal::within(folder.path(), "demo"), self.clock);
        let lock = context.start_maintenance(None, OperationStart::default()).await.expect("started");
        let (told, news) = mpsc::unbounded_channel();
        // No operator pauses or stops the maintenance.
        let ((_operator, input), (_stop, stop)) = (mpsc::channel(1), oneshot::channel());
        let new = NewMaintenance {
            context,
            lock,
            terms: terms(),
            options: MaintenanceOptions { before: plan.before, ..options },
            outcome: MaintenanceOutcome::planned(plan),
            operator: OperatorRequests { input, stop },
            tell: Box::new(move |news| {
                let _ = told.send(news);
            }),
        };
        let watched = WatchedModel::Own { model: &mut self.model, feeds: &mut self.feeds };
        let run = MaintenanceRun::new(new, watched, self.clock);
        let follower = Follower { world: &self.world, clock: self.clock, model, seen: Seen::default() };
        let (end, seen) = tokio::join!(run.carry_out(None), follower.follow(feeds, news));
        (end.expect("the journal is written"), seen)
    }

    /// Returns the requests of evictions that a budget refused.
    fn refused_evictions(&self) -> Vec<String> {
        let log = self.api.log().into_iter();
        log.filter(|logged| logged.code == 429 && logged.uri.contains("/eviction"))
            .map(|logged| logged.uri)
            .collect()
    }
}

fn terms() -> MaintenanceTerms {
    MaintenanceTerms {
        exec: None,
        wait_for: Some(WaitFor::Boot),
        gate: None,
        without_gates: Vec::new(),
        gate_timeout: Span::from_secs(30 * 60),
        work_timeout: Span::from_secs(3600),
        on_failure: OnFailure::Pause,
        reason: String::new(),
        overrides: Overrides::default(),
    }
}

/// Restarts the machines of a maintenance, and observes the cluster meanwhile.
struct Follower<'a> {
    world: &'a World,
    clock: Clock,
    model: Model,
    seen: Seen,
}

impl Follower<'_> {
    /// Follows a maintenance to its end.
    async fn follow(
        mut self,
        mut feeds: mpsc::Receiver<FeedEvent>,
        mut news: mpsc::UnboundedReceiver<MaintenanceNews>,
    ) -> Seen {
        let (world, clock) = (self.world, self.clock);
        let (mut empty, mut restarts) = (BTreeSet::new(), FuturesUnordered::new());
        let mut minute = tokio::time::interval(Duration::from_secs(60));
        loop {
            tokio::select! {
                biased;
                Some(event) = feeds.recv() => drop(self.model.on_watch_event(event, clock.now())),
                told = news.recv() => match told {
                    Some(MaintenanceNews::Progress(outcome)) => {
                        self.observe_waves(&outcome);
                        for (node, record) in outcome.nodes {
                            if record.drained.is_some() && empty.insert(node.clone()) {
                                restarts.push(restart(world, clock, node));
                            }
                        }
                    }
                    Some(MaintenanceNews::Notice(_)) => {}
                    None => break,
                },
                _ = minute.tick() => self.observe_waiting(),
                Some(()) = restarts.next() => {}
            }
        }
        self.seen.losses.push(worst_loss(&self.model.cluster));
        self.seen
    }

    /// Measures N-1 at the start of a wave, when the nodes of the wave before are back.
    fn observe_waves(&mut self, outcome: &MaintenanceOutcome) {
        if outcome.waves().len() > self.seen.losses.len() {
            self.seen.losses.push(worst_loss(&self.model.cluster));
        }
    }

    fn observe_waiting(&mut self) {
        let waiting = self.model.cluster.nodes().iter().filter_map(|node| {
            let note = node.maintenance.as_ref()?;
            (note.stage == MaintenanceStage::Waiting).then(|| (node.name.clone(), node.unschedulable))
        });
        self.seen.waiting.push((self.clock.now(), waiting.collect()));
    }
}

/// Works on an empty machine, and restarts it.
async fn restart(world: &World, clock: Clock, node: NodeName) {
    clock.sleep(BEFORE_RESTART).await;
    world.inject(&node, NodeFault::Reboot { down: RESTART, kernel: "7.0.1".into() }).await;
}

fn worst_loss(cluster: &Cluster) -> WorstLoss {
    let snapshot = Snapshot::new(cluster, VERSION);
    let headroom = headroom(cluster, &snapshot, |_| true);
    WorstLoss::from(&headroom.expect("all losses are computed"))
}
