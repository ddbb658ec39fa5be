//! Computes which nodes are in which wave, and when each wave runs.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    LeftOutReason, MaintenanceCost, MaintenanceOptions, MaintenancePlan, MaintenanceWave, PlanningProgress,
    WorstLoss, by_zone,
    state::WaveState,
    wave::{Trial, WavePlan},
};
use crate::{
    cluster::{Cluster, NodeName, ZoneKey},
    placement::Snapshot,
    plan::{EvictionRules, SurgePlan, headroom},
};
use kordon_time::{Span, Timestamp};

/// Computes the waves of a maintenance. For comparison, also computes how long it would take and how many pods would
/// move if the nodes were drained one by one.
pub(super) fn plan(
    cluster: &Cluster,
    options: &MaintenanceOptions,
    rules: EvictionRules,
    now: Timestamp,
    tell: &dyn Fn(PlanningProgress),
) -> MaintenancePlan {
    let mut schedule = Schedule::new(cluster, options, rules, now, tell);
    while schedule.next_wave() {}
    let refused_surges = schedule.refused_surges();
    let Schedule { before, waves, left_out, .. } = schedule;
    let done: Vec<NodeName> = waves.iter().flat_map(|wave| wave.nodes.clone()).collect();
    MaintenancePlan {
        made: now,
        before,
        control_planes: done.iter().filter(|name| is_control_plane(cluster, name)).cloned().collect(),
        by_name: by_name(cluster, done, options, rules, now),
        waves,
        left_out,
        refused_surges,
    }
}

/// A schedule that is being computed: its waves so far, and the nodes that are in no wave yet.
struct Schedule<'a> {
    options: &'a MaintenanceOptions,
    rules: EvictionRules,
    state: WaveState,
    now: Timestamp,
    /// Nodes that are in no wave yet, those with the fewest pods first. A pod that lands on another of these nodes has
    /// to move again.
    left: Vec<NodeName>,
    /// Worst loss of a node or zone before the start; `None` if it is unknown, or if the loss is allowed to become
    /// worse.
    before: Option<WorstLoss>,
    waves: Vec<MaintenanceWave>,
    left_out: Vec<(NodeName, LeftOutReason)>,
    /// Number of nodes at the start.
    nodes: usize,
    /// Takes the progress.
    tell: &'a dyn Fn(PlanningProgress),
}

fn is_control_plane(cluster: &Cluster, name: &NodeName) -> bool {
    cluster.node(name).is_some_and(|node| node.is_control_plane())
}

/// Number of pods that the worst loss of a node or zone strands; `None` if not everything is known. Calls `tell` with
/// the progress in percent.
fn worst_loss(cluster: &Cluster, rules: EvictionRules, tell: impl Fn(usize)) -> Option<WorstLoss> {
    let snapshot = Snapshot::new(cluster, rules.version);
    let continues = |percent| {
        tell(percent);
        true
    };
    headroom(cluster, &snapshot, continues).map(|headroom| WorstLoss::from(&headroom))
}

/// A possible wave, with the predicted cluster after it.
struct Found {
    wave: MaintenanceWave,
    after: WaveState,
}

impl<'a> Schedule<'a> {
    fn new(
        cluster: &Cluster,
        options: &'a MaintenanceOptions,
        rules: EvictionRules,
        now: Timestamp,
        tell: &'a dyn Fn(PlanningProgress),
    ) -> Self {
        let mut left: Vec<NodeName> =
            options.nodes.iter().filter(|name| cluster.node(name).is_some()).cloned().collect();
        left.sort_by_cached_key(|name| (cluster.pods_on(name).count(), name.clone()));
        left.dedup();
        let nodes = left.len();
        let at_start = |losses| tell(PlanningProgress { planned: 0, nodes, losses: Some(losses) });
        Self {
            before: options
                .keeps_headroom
                .then(|| options.before.or_else(|| worst_loss(cluster, rules, at_start)))
                .flatten(),
            state: WaveState::new(cluster, rules, now),
            options,
            rules,
            now,
            left,
            waves: Vec::new(),
            left_out: Vec::new(),
            nodes,
            tell,
        }
    }

    fn tell(&self, losses: Option<usize>) {
        (self.tell)(PlanningProgress { planned: self.nodes - self.left.len(), nodes: self.nodes, losses });
    }

    /// Adds the next wave. Returns false if no remaining node can be in a wave; these nodes are then left out.
    fn next_wave(&mut self) -> bool {
        if self.left.is_empty() {
            return false;
        }
        let (found, reasons) = self.find();
        let Some(Found { wave, after }) = found else {
            self.left_out.extend(reasons);
            self.left.clear();
            return false;
        };
        self.now = wave.ends;
        self.left.retain(|node| !wave.nodes.contains(node));
        self.state = after;
        self.waves.push(wave);
        true
    }

    /// The workloads on the nodes that are left out that `--surge` does not scale up.
    fn refused_surges(&self) -> Vec<SurgePlan> {
        if !self.options.drain.surge || self.left_out.is_empty() {
            return Vec::new();
        }
        let trial = Trial::new(&self.state, BTreeSet::new(), self.rules);
        let drain =
            |(node, _): &(NodeName, LeftOutReason)| trial.drain(vec![node.clone()], self.options, self.now);
        let surges = self.left_out.iter().filter_map(drain).flat_map(|drain| drain.plan.surges);
        surges.filter(|surge| surge.surge().is_none()).collect()
    }

    /// The nodes to cordon in advance: all remaining nodes. If each zone must keep a node that is Ready and
    /// schedulable, a zone that has only remaining nodes keeps one of them.
    fn ahead(&self) -> BTreeSet<NodeName> {
        let mut open: BTreeMap<ZoneKey, Vec<&NodeName>> = BTreeMap::new();
        for node in self.state.cluster.nodes().iter().filter(|node| node.is_ready() && !node.unschedulable) {
            open.entry(node.zone()).or_default().push(&node.name);
        }
        let left: BTreeSet<&NodeName> = self.left.iter().collect();
        let last = |nodes: &Vec<&NodeName>| {
            let all_left = nodes.iter().all(|node| left.contains(node));
            self.left.iter().rfind(|node| nodes.contains(node)).filter(|_| all_left)
        };
        let kept: BTreeSet<&NodeName> = match self.options.guards.keep_last_ready {
            true => open.values().filter_map(last).collect(),
            false => BTreeSet::new(),
        };
        self.left.iter().filter(|node| !kept.contains(node)).cloned().collect()
    }

    /// Finds the largest possible wave: first with the nodes of later waves cordoned, then without these cordons. If no
    /// wave is possible, returns why each node cannot be in a wave.
    fn find(&self) -> (Option<Found>, Vec<(NodeName, LeftOutReason)>) {
        let mut reasons = BTreeMap::new();
        for ahead in [self.ahead(), BTreeSet::new()] {
            let trial = Trial::new(&self.state, ahead, self.rules);
            let mut rejected = BTreeSet::new();
            let mut drains = self.largest(&trial, &rejected, &mut reasons);
            while let Some(wave) = drains {
                match self.accepted(&wave, &trial.ahead) {
                    Ok(found) => return (Some(found), Vec::new()),
                    Err(reason) => {
                        let first = wave.nodes[0].clone();
                        drains = self.smaller(&trial, wave).or_else(|| {
                            rejected.insert(first.clone());
                            self.largest(&trial, &rejected, &mut reasons)
                        });
                        reasons.insert(first, reason);
                    }
                }
            }
        }
        let reason = |node: &NodeName| {
            let unknown = || LeftOutReason::Drain("not everything is known that decides about it".into());
            (node.clone(), reasons.get(node).cloned().unwrap_or_else(unknown))
        };
        (None, self.left.iter().map(reason).collect())
    }

    /// Adds nodes to a wave one by one, as long as nothing forbids it. Skips nodes that were rejected as a wave of one
    /// node.
    fn largest(
        &self,
        trial: &Trial,
        rejected: &BTreeSet<NodeName>,
        reasons: &mut BTreeMap<NodeName, LeftOutReason>,
    ) -> Option<WavePlan> {
        let mut wave: Option<WavePlan> = None;
        for node in self.left.iter().filter(|node| !rejected.contains(*node)) {
            self.tell(None);
            if wave.as_ref().is_some_and(|wave| !self.may_join(&wave.nodes, node)) {
                continue;
            }
            let Some(alone) = trial.drain(vec![node.clone()], self.options, self.now) else { continue };
            if let Some(reason) = self.objection(trial, &alone) {
                reasons.insert(node.clone(), reason);
                continue;
            }
            let Some(before) = &wave else {
                wave = Some(alone);
                continue;
            };
            // Do not combine the nodes if it is not known where a pod runs afterwards: another node of the wave may be
            // the only one that takes the pod.
            if before.has_unknown() || alone.has_unknown() {
                continue;
            }
            let nodes = before.nodes.iter().chain([node]).cloned().collect();
            let Some(together) = trial.drain(nodes, self.options, self.now) else { continue };
            // No pod may wait for a budget, or wait longer, because of another node of the wave.
            if self.objection(trial, &together).is_none()
                && together.waiting() <= before.waiting() + alone.waiting()
                && together.last_wait() <= before.last_wait().max(alone.last_wait())
            {
                wave = Some(together);
            }
        }
        wave
    }

    /// Why the wave is not allowed; `None` if it is.
    fn objection(&self, trial: &Trial, wave: &WavePlan) -> Option<LeftOutReason> {
        let breach = || trial.breach(wave, &self.state, &self.options.guards).map(LeftOutReason::Guard);
        let no_time = || self.start_of(wave.takes(self.options)).err();
        let drains = wave.objection(&self.state.cluster, self.options.allows_pending);
        drains.or_else(breach).or_else(no_time)
    }

    /// Plans the same wave with half of its nodes; `None` if the wave has only one node.
    fn smaller(&self, trial: &Trial, mut wave: WavePlan) -> Option<WavePlan> {
        let half = wave.nodes.len() / 2;
        wave.nodes.truncate(half);
        if wave.nodes.is_empty() { None } else { trial.drain(wave.nodes, self.options, self.now) }
    }

    /// Whether a node may be down at the same time as these nodes, by the limits of the maintenance.
    fn may_join(&self, nodes: &[NodeName], node: &NodeName) -> bool {
        let cluster = &self.state.cluster;
        let zones = by_zone(cluster, nodes.iter().chain([node]));
        let has_control_plane = || nodes.iter().any(|name| is_control_plane(cluster, name));
        let are_two =
            !self.options.control_planes_together && is_control_plane(cluster, node) && has_control_plane();
        !are_two
            && self.options.parallel.is_none_or(|most| nodes.len() < most)
            && self.options.max_per_zone.is_none_or(|most| zones.values().all(|nodes| *nodes <= most))
    }

    /// Returns the wave with the predicted cluster after it, unless there is no time for it, or the loss of a node or
    /// zone would then be worse than before the maintenance.
    fn accepted(&self, drains: &WavePlan, ahead: &BTreeSet<NodeName>) -> Result<Found, LeftOutReason> {
        let starts = self.start_of(drains.takes(self.options))?;
        let mut wave = drains.wave(&self.state, self.options, ahead);
        let after = self.state.after(&drains.plan, self.rules, wave.ends);
        wave.delay(starts.since(wave.starts));
        if let Some(before) = self.before {
            let cluster = after.with_cordoned(&wave.ahead);
            let stranded = worst_loss(&cluster, self.rules, |losses| self.tell(Some(losses)));
            wave.stranded = stranded.map(WorstLoss::most);
            if let Some(after) = stranded.filter(|stranded| !stranded.is_no_worse_than(before)) {
                return Err(LeftOutReason::Headroom { after, before });
            }
        }
        Ok(Found { wave, after })
    }

    /// When a wave of this length can start.
    ///
    /// # Errors
    /// The wave fits into none of the time windows for waves, or would end too late.
    fn start_of(&self, takes: Span) -> Result<Timestamp, LeftOutReason> {
        let MaintenanceOptions { windows, longest, began, .. } = self.options;
        let open = windows.iter().map(|(start, end)| ((*start).max(self.now), *end));
        let mut starts = open.filter(|(start, end)| *start + takes <= *end).map(|(start, _)| start);
        let start = if windows.is_empty() { Some(self.now) } else { starts.next() };
        let start = start.ok_or(LeftOutReason::NoWindow { takes })?;
        let began = began.or_else(|| self.waves.first().map(|wave| wave.starts)).unwrap_or(start);
        if longest.is_some_and(|longest| start + takes > began + longest) {
            return Err(LeftOutReason::MaxDuration { takes });
        }
        Ok(start)
    }
}

impl MaintenanceWave {
    /// Postpones all times of the wave.
    fn delay(&mut self, by: Span) {
        for time in [&mut self.starts, &mut self.drained, &mut self.ends] {
            *time += by;
        }
        for down in &mut self.down {
            down.from += by;
            down.until = down.until.map(|until| until + by);
        }
        self.surges.iter_mut().for_each(|surge| surge.delay(by));
    }
}

/// The cost of maintaining these nodes one after the other, in order of name and at any time, without cordoning any
/// node in advance.
fn by_name(
    cluster: &Cluster,
    mut nodes: Vec<NodeName>,
    options: &MaintenanceOptions,
    rules: EvictionRules,
    now: Timestamp,
) -> MaintenanceCost {
    nodes.sort();
    let (mut state, mut now, mut waves) = (WaveState::new(cluster, rules, now), now, Vec::new());
    for node in nodes {
        let trial = Trial::new(&state, BTreeSet::new(), rules);
        let Some(drains) = trial.drain(vec![node], options, now) else { continue };
        let wave = drains.wave(&state, options, &BTreeSet::new());
        now = wave.ends;
        state = state.after(&drains.plan, rules, wave.ends);
        waves.push(wave);
    }
    MaintenanceCost::new(&waves)
}
