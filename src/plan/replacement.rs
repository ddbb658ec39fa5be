//! Where the replacements of pods land that leave at known times, whatever budgets say: taints, failing nodes.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    environment::{Bound, Environment},
    landing::Landing,
    owner::{self, Recreation},
    placement_trace::RunTrace,
};
use crate::{
    cluster::{Cluster, Key, Node, NodeName, Pod, Uid},
    time::Timestamp,
};

/// A pod that leaves.
#[derive(Clone, Debug)]
pub struct Departure {
    pub pod: Arc<Pod>,
    /// When its deletion begins.
    pub leaves: Timestamp,
    /// When its object is gone; none is never.
    pub gone: Option<Timestamp>,
}

/// What replaces a pod.
#[derive(Clone, Debug, PartialEq)]
pub struct Replacement {
    pub landing: Landing,
    pub created: Timestamp,
    /// None: never.
    pub ready: Option<Timestamp>,
}

/// What happens at a time; at the same time in this order, and pods of high priority first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Altered,
    Leaves,
    Gone,
    Replaced,
}

/// Lets the pods leave and be replaced in order of time, while nodes become what `alterations` say. `closed` nodes are
/// cordoned.
pub fn rehouse<S: Environment>(
    cluster: &Cluster,
    departures: &[Departure],
    alterations: &[(Timestamp, Arc<Node>)],
    closed: &BTreeSet<NodeName>,
    mut environment: S,
) -> (BTreeMap<Key, Replacement>, RunTrace) {
    let mut events: Vec<(Timestamp, Event, Reverse<i32>, usize)> = Vec::new();
    for (place, departure) in departures.iter().enumerate() {
        let priority = Reverse(departure.pod.priority);
        events.push((departure.leaves, Event::Leaves, priority, place));
        events.extend(departure.gone.map(|at| (at, Event::Gone, priority, place)));
        let replaced = match owner::recreation(cluster, &departure.pod) {
            Recreation::AtOnce(_) => Some(departure.leaves),
            Recreation::WhenGone(_) => departure.gone,
            Recreation::Here | Recreation::Never(_) => None,
        };
        events.extend(replaced.map(|at| (at, Event::Replaced, priority, place)));
    }
    for (place, (at, _)) in alterations.iter().enumerate() {
        events.push((*at, Event::Altered, Reverse(i32::MAX), place));
    }
    events.sort_unstable();
    let mut living: BTreeMap<Uid, i32> = BTreeMap::new();
    let mut replacements = BTreeMap::new();
    for (at, event, _, place) in events {
        if event == Event::Altered {
            environment.update_node(alterations[place].1.clone());
            continue;
        }
        let pod = &departures[place].pod;
        match event {
            Event::Altered => {}
            Event::Leaves => {
                environment.leaving(pod);
                if let Some(living) = living_pods(cluster, pod, &mut living)
                    && pod.termination.is_none()
                    && !pod.is_finished()
                {
                    *living -= 1;
                }
            }
            Event::Gone => environment.gone(pod),
            Event::Replaced => {
                let Some(living) = living_pods(cluster, pod, &mut living) else { continue };
                if !owner::creates_replacement(cluster, pod, *living) {
                    continue;
                }
                *living = living.saturating_add(1);
                let landing = environment.land(pod, closed);
                let ready = match &landing {
                    Landing::Nowhere { .. } => None,
                    Landing::Node { .. } | Landing::Somewhere => {
                        environment.ready(pod, &landing).at(Bound::Likely).map(|takes| at + takes)
                    }
                };
                replacements.insert(pod.key.clone(), Replacement { landing, created: at, ready });
            }
        }
    }
    (replacements, environment.trace())
}

/// How many pods of a pod's owner live.
fn living_pods<'l>(cluster: &Cluster, pod: &Pod, living: &'l mut BTreeMap<Uid, i32>) -> Option<&'l mut i32> {
    let owner = pod.owner.as_ref()?;
    let count = || {
        let lives = |pod: &&Arc<Pod>| pod.termination.is_none() && !pod.is_finished();
        i32::try_from(cluster.pods_owned_by(&owner.uid).filter(lives).count()).unwrap_or(i32::MAX)
    };
    Some(living.entry(owner.uid.clone()).or_insert_with(count))
}
