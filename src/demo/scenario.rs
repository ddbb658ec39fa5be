//! The scenarios of the embedded cluster: one table.

use super::{
    incidents::{self, Script},
    seed::{MachineHistory, nodes::Machine},
};
use crate::time::Span;

/// A cluster and what happens to it.
#[derive(Debug)]
pub struct Scenario {
    /// As after `--scenario`.
    pub name: &'static str,
    /// What happens, in one line.
    pub doc: &'static str,
    /// How many nodes it has, unless told otherwise.
    pub nodes: usize,
    /// How many pods it begins with, unless told otherwise.
    pub pods: usize,
    /// Pod changes a second that go on all the time, unless told otherwise.
    pub pod_changes_per_second: f64,
    /// What happened before the beginning.
    pub(super) history: fn(&[Machine]) -> Vec<(usize, MachineHistory)>,
    /// What happens afterwards.
    pub(super) script: Script,
}

impl Scenario {
    /// The scenario of this name.
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
};

/// Every scenario; the first is what `kordon demo` shows.
pub static SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "default",
        doc: "a night halfway through: one node long lost, one falling silent, a rollout, memory pressure",
        pod_changes_per_second: 0.5,
        history: default_history,
        script: incidents::tour,
        ..QUIET
    },
    Scenario { name: "healthy", doc: "nothing goes wrong", ..QUIET },
    Scenario {
        name: "silent-node",
        doc: "one node falls silent and stays so",
        script: incidents::silent_node,
        ..QUIET
    },
    Scenario {
        name: "flapping",
        doc: "one node comes and goes, and another loses its container runtime",
        script: incidents::flapping,
        ..QUIET
    },
    Scenario {
        name: "zone-outage",
        doc: "every node of one zone falls silent, and comes back ten minutes later",
        script: incidents::zone_outage,
        ..QUIET
    },
    Scenario {
        name: "partial-disruption",
        doc: "most nodes of a zone of more than 50 fall silent one after the other: evictions slow down",
        nodes: 190,
        pods: 1500,
        script: incidents::partial_disruption,
        ..QUIET
    },
    Scenario {
        name: "full-outage",
        doc: "all nodes fall silent: evictions stop; then all come back",
        script: incidents::full_outage,
        ..QUIET
    },
    Scenario {
        name: "kernel-upgrade",
        doc: "a rolling upgrade: each worker is cordoned, drained, rebooted with a new kernel, uncordoned",
        script: incidents::kernel_upgrade,
        ..QUIET
    },
];

/// One node was given up four minutes ago, one has been silent for 25 seconds and nobody knows yet,
/// one has long been short of memory.
fn default_history(machines: &[Machine]) -> Vec<(usize, MachineHistory)> {
    let find = |pool: &str, zone: usize| machines.iter().position(|m| m.pool.name == pool && m.zone == zone);
    let mut histories = Vec::new();
    if let Some(lost) = find("general", 1) {
        histories.push((lost, MachineHistory::UnknownFor(Span::from_secs(245))));
    }
    if let Some(falling) = find("memory", 2) {
        histories.push((falling, MachineHistory::DisconnectedFor(Span::from_secs(25))));
    }
    if let Some(short) = find("spot", 0) {
        histories.push((short, MachineHistory::MemoryPressureFor(Span::from_secs(1140))));
    }
    histories
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_has_a_name_of_its_own_and_a_line_about_it() {
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
