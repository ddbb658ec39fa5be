//! The table of scenarios of the embedded cluster.

use super::{
    incidents::{self, Script},
    seed::{
        MachineHistory,
        catalogue::{CatalogueService, MODEL_TRAINING, RISK_MODEL, SESSION_CACHE, THUMBNAILS},
        nodes::Machine,
    },
};
use kordon_time::Span;

/// A cluster and the events in it.
#[derive(Debug)]
pub struct Scenario {
    /// The value of `--scenario`.
    pub name: &'static str,
    /// Description in one line.
    pub doc: &'static str,
    /// The default number of nodes.
    pub nodes: usize,
    /// The default number of pods at the start.
    pub pods: usize,
    /// The default rate of background pod changes per second.
    pub pod_changes_per_second: f64,
    /// A function that returns the histories of machines before the start.
    pub(super) history: fn(&[Machine]) -> Vec<(usize, MachineHistory)>,
    /// The script of events after the start.
    pub(super) script: Script,
    /// Services in addition to the services that every cluster has.
    pub(super) services: &'static [CatalogueService],
    /// Namespaces with a ResourceQuota that allows exactly the pods that the namespace has at the start.
    pub(super) quotas: &'static [&'static str],
    /// Times after the start at which the node lifecycle controller stops and at which its successor starts; None if
    /// the controller does not stop.
    pub controller_away: Option<(Span, Span)>,
}

impl Scenario {
    /// The scenario with this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        SCENARIOS.iter().find(|scenario| scenario.name == name)
    }
}

const QUIET: Scenario = Scenario {
    name: "",
    doc: "",
    nodes: 24,
    pods: 180,
    pod_changes_per_second: 0.0,
    history: |_| Vec::new(),
    script: incidents::empty,
    services: &[],
    quotas: &[],
    controller_away: None,
};

/// All scenarios; the first is the default.
pub static SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "default",
        doc: "one node lost, one about to become Unknown, rollouts, pressure on nodes",
        pod_changes_per_second: 0.5,
        history: default_history,
        script: incidents::tour,
        ..QUIET
    },
    Scenario { name: "healthy", doc: "nothing goes wrong", ..QUIET },
    Scenario {
        name: "silent-node",
        doc: "one node stops sending heartbeats for good",
        script: incidents::silent_node,
        ..QUIET
    },
    Scenario {
        name: "flapping",
        doc: "one node disconnects again and again, and another loses its container runtime",
        script: incidents::flapping,
        ..QUIET
    },
    Scenario {
        name: "zone-outage",
        doc: "all nodes of one zone disconnect for ten minutes",
        script: incidents::zone_outage,
        ..QUIET
    },
    Scenario {
        name: "partial-disruption",
        doc: "most nodes of a large zone disconnect one after the other: evictions slow down",
        nodes: 190,
        pods: 1500,
        script: incidents::partial_disruption,
        ..QUIET
    },
    Scenario {
        name: "full-outage",
        doc: "all nodes disconnect: evictions stop; then all reconnect",
        script: incidents::full_outage,
        ..QUIET
    },
    Scenario {
        name: "kernel-upgrade",
        doc: "a rolling upgrade: each worker is cordoned, drained, rebooted with a new kernel and uncordoned",
        script: incidents::kernel_upgrade,
        ..QUIET
    },
    Scenario {
        name: "stuck-statefulset",
        doc: "a lost node: its pods of StatefulSets stay Terminating, and get no successors",
        history: |machines| lost(machines, "memory", 0, 330),
        ..QUIET
    },
    Scenario {
        name: "blocked-drain",
        doc: "a drain that never ends: a PodDisruptionBudget allows no eviction of a single replica",
        script: incidents::blocked_drain,
        ..QUIET
    },
    Scenario {
        name: "restart",
        doc: "the controller restarts while nodes are silent: each gets a new grace period",
        history: |machines| disconnected(machines, "general", 1, 25),
        script: incidents::silent_node,
        controller_away: Some((Span::from_secs(15), Span::from_secs(35))),
        ..QUIET
    },
    Scenario {
        name: "quota",
        doc: "a drain where quotas are used up: replacements are refused until the old pods are gone",
        script: incidents::drain_under_quota,
        quotas: &["shop", "payments", "search"],
        ..QUIET
    },
    Scenario {
        name: "memory-pressure",
        doc: "a pod without limit uses up its node: the kubelet evicts pods in order; another pod is OOM-killed",
        pods: 205,
        script: incidents::memory_pressure,
        services: &[SESSION_CACHE, THUMBNAILS],
        ..QUIET
    },
    Scenario {
        name: "preemption",
        doc: "a workload of high priority is scaled up on full nodes: the scheduler preempts pods, which stay Pending",
        pods: 210,
        script: incidents::preemption,
        services: &[RISK_MODEL, MODEL_TRAINING],
        ..QUIET
    },
    Scenario {
        name: "departures",
        doc: "pods leave in every way: drain, pressure, taint, preemption, garbage collection, users, jobs, OOM kill",
        pods: 235,
        script: incidents::departures,
        services: &[SESSION_CACHE, RISK_MODEL, THUMBNAILS, MODEL_TRAINING],
        ..QUIET
    },
];

fn find(machines: &[Machine], pool: &str, zone: usize) -> Option<usize> {
    machines.iter().position(|machine| machine.pool.name == pool && machine.zone == zone)
}

/// Returns the history of a node of this pool and zone that became Unknown `seconds` ago.
fn lost(machines: &[Machine], pool: &str, zone: usize, seconds: i64) -> Vec<(usize, MachineHistory)> {
    let lost = find(machines, pool, zone).into_iter();
    lost.map(|machine| (machine, MachineHistory::UnknownFor(Span::from_secs(seconds)))).collect()
}

/// Returns the history of a node of this pool and zone whose last heartbeat was `seconds` ago.
fn disconnected(machines: &[Machine], pool: &str, zone: usize, seconds: i64) -> Vec<(usize, MachineHistory)> {
    let silent = find(machines, pool, zone).into_iter();
    silent.map(|machine| (machine, MachineHistory::DisconnectedFor(Span::from_secs(seconds)))).collect()
}

/// One node became Unknown four minutes ago, one node has been disconnected for 25 seconds, and one has memory
/// pressure.
fn default_history(machines: &[Machine]) -> Vec<(usize, MachineHistory)> {
    let mut histories = lost(machines, "general", 1, 245);
    histories.extend(disconnected(machines, "memory", 2, 25));
    if let Some(short) = find(machines, "spot", 0) {
        histories.push((short, MachineHistory::MemoryPressureFor(Span::from_secs(1140))));
    }
    histories
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_has_a_unique_name_and_a_line_of_help() {
        for scenario in SCENARIOS {
            assert!(
                std::ptr::eq(Scenario::named(scenario.name).expect("found"), scenario),
                "{}",
                scenario.name
            );
            assert!(!scenario.doc.is_empty() && scenario.doc.len() < 110);
        }
        assert!(Scenario::named("no-such").is_none());
    }
}
