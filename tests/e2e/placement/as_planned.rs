//! Compares where plans place pods with where the real scheduler places them. The environment of the plans gets the
//! changes of a drain in the order in which the scheduler saw them. Before each decision of the scheduler, the
//! environment predicts where the pod lands.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kordon_core::{
    cluster::{Applied, Cluster, Key, Node, Pod, Uid},
    engine::ServerVersion,
    placement::{SchedulingOutcome, Snapshot},
    plan::{Environment, Landing, PlacingEnvironment, RunTrace},
};
use kordon_time::Timestamp;

use super::replay::ActualOutcome;

/// The changes that the scheduler saw and the decisions that it made during a drain.
#[derive(Clone, Debug)]
pub struct ObservedDrain {
    /// The cluster before the drain.
    cluster: Cluster,
    at: Timestamp,
    steps: Vec<DrainStep>,
}

#[derive(Clone, Debug)]
enum DrainStep {
    NodeChanged(Arc<Node>),
    DeletionStarted(Arc<Pod>),
    Gone(Arc<Pod>),
    /// The scheduler's decision on a pod: the chosen node, or none.
    Decided(Arc<Pod>, ActualOutcome),
}

/// A decision of the scheduler, and where the pod lands in a plan that includes the earlier decisions.
#[derive(Clone, Debug)]
pub struct PlannedLanding {
    pub pod: Key,
    pub real: ActualOutcome,
    pub planned: SchedulingOutcome,
}

impl ObservedDrain {
    pub fn of(cluster: Cluster, at: Timestamp) -> Self {
        Self { cluster, at, steps: Vec::new() }
    }

    pub fn on_applied(&mut self, applied: &Applied) {
        match applied {
            Applied::Node(delta) => {
                self.steps.extend(delta.new.clone().map(DrainStep::NodeChanged));
            }
            Applied::Pod(delta) => match (&delta.old, &delta.new) {
                (Some(old), None) => self.steps.push(DrainStep::Gone(old.clone())),
                (Some(old), Some(new)) if old.termination.is_none() && new.termination.is_some() => {
                    self.steps.push(DrainStep::DeletionStarted(old.clone()));
                }
                _ => {}
            },
            Applied::Lease(_) | Applied::Leader(..) | Applied::KordonLease | Applied::Other => {}
        }
    }

    pub fn on_decision(&mut self, pod: Arc<Pod>, real: ActualOutcome) {
        self.steps.push(DrainStep::Decided(pod, real));
    }

    /// Returns the landing that a plan's environment predicts for each decision.
    ///
    /// # Errors
    /// A decision concerns a pod that replaces no known pod. The error is the key of that pod.
    pub fn landings(&self, version: ServerVersion) -> Result<Vec<PlannedLanding>, Key> {
        let snapshot = Snapshot::new(&self.cluster, version);
        let mut environment = PlacingEnvironment::new(&self.cluster, snapshot, self.at);
        let mut departed: BTreeMap<Uid, Vec<Arc<Pod>>> = BTreeMap::new();
        let mut replaced: BTreeMap<Key, Arc<Pod>> = BTreeMap::new();
        let mut landings = Vec::new();
        for step in &self.steps {
            match step {
                DrainStep::NodeChanged(node) => environment.on_node_change(node.clone()),
                DrainStep::DeletionStarted(pod) => {
                    environment.on_deletion(pod);
                    if let Some(owner) = &pod.owner {
                        departed.entry(owner.uid.clone()).or_default().push(pod.clone());
                    }
                }
                DrainStep::Gone(pod) => environment.on_gone(pod),
                DrainStep::Decided(pod, real) => {
                    let old = match replaced.get(&pod.key) {
                        Some(old) => old.clone(),
                        None => self.replaced_by(pod, &mut departed).ok_or_else(|| pod.key.clone())?,
                    };
                    replaced.insert(pod.key.clone(), old.clone());
                    let planned = environment.decision(&old);
                    landings.push(PlannedLanding { pod: pod.key.clone(), real: real.clone(), planned });
                    if let ActualOutcome::Bound(node) = real {
                        let landing = Landing::Node { node: node.clone(), why: "as observed".into() };
                        let placements = BTreeMap::from_iter([(old.key.clone(), Arc::default())]);
                        let trace = RunTrace { placements, ..RunTrace::default() };
                        environment.fix_landings(BTreeMap::from_iter([(old.key.clone(), landing)]), &trace);
                        environment.land(&old, &BTreeSet::new());
                    }
                }
            }
        }
        Ok(landings)
    }

    /// Returns the pod that `pod` replaces: itself if it was waiting before the drain, otherwise a pod of the same
    /// controller that left.
    fn replaced_by(&self, pod: &Arc<Pod>, departed: &mut BTreeMap<Uid, Vec<Arc<Pod>>>) -> Option<Arc<Pod>> {
        if let Some(waiting) = self.cluster.pod(&pod.key).filter(|known| known.uid == pod.uid) {
            return Some(waiting.clone());
        }
        let of_owner = departed.get_mut(&pod.owner.as_ref()?.uid)?;
        let same_name = of_owner.iter().position(|old| old.key == pod.key).unwrap_or(0);
        (!of_owner.is_empty()).then(|| of_owner.remove(same_name))
    }
}

impl PlannedLanding {
    /// Whether the chosen node is one of the best in the plan, or neither the scheduler nor the plan found a node.
    pub fn is_as_planned(&self) -> bool {
        self.real.is_among(&self.planned)
    }

    /// Describes the decision and the plan.
    pub fn words(&self) -> String {
        let planned = match &self.planned {
            SchedulingOutcome::Placed(placement) => format!("one of {:?}", placement.best),
            other => format!("{other:?}"),
        };
        format!("{}: {:?}, planned {planned}", self.pod, self.real)
    }
}
