//! Generates a random script of incidents on the nodes of a test cluster. The same seed gives the same script.
//!
//! Times are scaled down: a node is silent for half a minute, not for hours.

use std::collections::BTreeMap;

use fastrand::Rng;
use kordon_time::Span;

/// An action of the test on the cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IncidentAction {
    /// The kubelet stops renewing its Lease and posting its status.
    Silence,
    /// The kubelet comes back and posts its last status.
    ComeBack,
    /// The kubelet posts Ready with this status. A silent kubelet comes back.
    Post(&'static str),
    /// The kubelet stops and the Node object is deleted; its pods stay.
    Remove,
    /// The Node object is created again, ready.
    Rejoin,
    /// A pod is created on the node. The pod tolerates NoExecute taints for this many seconds; `None` means forever.
    AddPod {
        tolerates: Option<i64>,
    },
    /// The node's usual pods are created again if they are missing.
    Refill,
    /// A third party adds a NoExecute taint to the node, or removes it.
    Taint,
    Untaint,
    /// The controller manager is killed and another one is started, which waits until the Lease has expired.
    RestartController,
    /// Another controller manager is started as a standby, which waits for the Lease.
    StartStandby,
    /// The controller manager is killed, and the standby becomes the leader.
    FailOver,
    /// The controller manager is paused, and later resumed.
    PauseController,
    ResumeController,
    /// A controller manager becomes the leader. This follows from other actions, and is not part of a script.
    BecomeLeader,
}

/// Stands for the node's name in actions that affect all nodes or the controller manager.
pub const EVERYWHERE: &str = "*";

/// An action and its time since the start of the script.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScheduledAction {
    pub at: Span,
    pub node: String,
    pub action: IncidentAction,
}

/// A zone and its number of nodes. The name of each node is the zone's name followed by a number.
#[derive(Clone, Copy, Debug)]
pub struct Zone {
    pub name: &'static str,
    pub nodes: usize,
}

impl Zone {
    pub fn names(self) -> impl Iterator<Item = String> {
        (1..=self.nodes).map(move |number| format!("{}{number:02}", self.name))
    }
}

/// Returns the zone of a node that a [`Zone`] has named.
pub fn zone_of(node: &str) -> &str {
    node.trim_end_matches(|letter: char| letter.is_ascii_digit())
}

/// Generates a script in which every incident ends within `length`.
pub fn write(zones: &[Zone], seed: u64, length: Span) -> Vec<ScheduledAction> {
    let nodes = zones.iter().flat_map(|zone| zone.names());
    let mut generator = Generator {
        chance: Rng::with_seed(seed),
        zones: zones.to_vec(),
        free_from: nodes.map(|node| (node, secs(0.0))).collect(),
        script: Vec::new(),
    };
    let (mut now, mut deck) = (secs(2.0), Vec::new());
    loop {
        if deck.is_empty() {
            deck = DECK.to_vec();
            deck.reverse();
        }
        let Some(started) = deck.pop().and_then(|incident| generator.play(incident, now, length)) else {
            break;
        };
        now = started + generator.between(1.0, 4.0);
    }
    generator.disturb_controller(length);
    generator.script.sort();
    generator.script
}

/// Maximum duration of an incident.
const LONGEST: Span = Span::from_secs(60);
/// Pause after an incident. During the pause, no other incident affects the same nodes.
const REST: Span = Span::from_secs(6);

/// An incident on one node, or on several at once.
#[derive(Clone, Copy, Debug)]
enum Incident {
    /// One node is silent, for a time in [`STAYS`].
    Single,
    /// A kubelet posts that it is not ready.
    NotReady,
    /// Some nodes of a zone are silent, too few to disrupt it.
    Several,
    /// So many nodes of a zone are silent that the zone is partially disrupted.
    Most,
    /// All nodes of a zone are silent.
    Zone,
    /// All nodes of the cluster are silent.
    Everything,
    /// The kubelet of a silent node comes back, at first not ready.
    BackNotReady,
    /// A kubelet that has posted that it is not ready falls silent.
    NotReadyThenSilent,
    /// A node is silent, back for a moment, and silent again.
    Flapping,
    /// The Node object of a silent node is deleted, and created again.
    Removed,
    /// A third party adds a NoExecute taint.
    Tainted,
}

/// The order of incidents, which is repeated. The incident of all nodes comes first, because later it would have to
/// wait until all nodes are free.
const DECK: [Incident; 19] = [
    Incident::Everything,
    Incident::Zone,
    Incident::Most,
    Incident::Several,
    Incident::Single,
    Incident::NotReady,
    Incident::Tainted,
    Incident::Removed,
    Incident::BackNotReady,
    Incident::Single,
    Incident::Several,
    Incident::NotReadyThenSilent,
    Incident::Flapping,
    Incident::Single,
    Incident::Tainted,
    Incident::Most,
    Incident::Single,
    Incident::NotReady,
    Incident::Single,
];

/// Shortest and longest silence of a node in seconds, with a grace period of 16 s. There is a pair for each phase in
/// which the node comes back: before it is marked Unknown; before it is tainted, if other nodes wait; before its pods
/// are deleted; after some of its pods are deleted. The last phase has two pairs.
const STAYS: [(f64, f64); 5] = [(4.0, 12.0), (19.0, 21.0), (22.0, 30.0), (32.0, 50.0), (32.0, 50.0)];

/// An incident of the controller manager, while nodes fail and recover.
#[derive(Clone, Copy, Debug)]
enum Disturbance {
    Restart,
    FailOver,
    /// The controller manager is paused for this many seconds.
    Pause(f64),
}

/// Disturbances of the controller manager. A script of three minutes has time for all of them.
const DISTURBANCES: [Disturbance; 4] =
    [Disturbance::Restart, Disturbance::FailOver, Disturbance::Pause(20.0), Disturbance::Pause(60.0)];

struct Generator {
    chance: Rng,
    zones: Vec<Zone>,
    /// Time from which a node is free for the next incident.
    free_from: BTreeMap<String, Span>,
    script: Vec<ScheduledAction>,
}

impl Generator {
    /// Adds an incident that starts at `now`, or as soon as its nodes are free. Returns the start of the incident, or
    /// `None` if the incident would not end in time.
    fn play(&mut self, incident: Incident, now: Span, length: Span) -> Option<Span> {
        let zone = self.chance.choice(self.zones.clone()).expect("there are zones");
        let size = zone.nodes;
        let count = match incident {
            Incident::Single
            | Incident::NotReady
            | Incident::BackNotReady
            | Incident::NotReadyThenSilent
            | Incident::Flapping
            | Incident::Removed
            | Incident::Tainted => 1,
            Incident::Several => self.chance.usize(3..=6).min(size / 3),
            Incident::Most => self.chance.usize(size * 6 / 10 + 1..=size * 8 / 10),
            Incident::Zone => size,
            Incident::Everything => usize::MAX,
        };
        let (nodes, begins) = self.choose(zone, count, now);
        if begins + LONGEST > length {
            return None;
        }
        let together = match incident {
            Incident::Everything => self.between(20.0, 32.0),
            _ => self.stay(if count == 1 { 0 } else { 1 }),
        };
        for node in nodes {
            let ends = self.add_actions(incident, &node, begins, together);
            self.free_from.insert(node, ends + REST);
        }
        Some(begins)
    }

    /// Adds disturbances of the controller manager: all of them in random order, repeatedly.
    fn disturb_controller(&mut self, length: Span) {
        let (mut now, mut deck) = (secs(20.0), Vec::new());
        loop {
            if deck.is_empty() {
                deck = DISTURBANCES.to_vec();
                self.chance.shuffle(&mut deck);
            }
            let actions = match deck.pop().expect("it was filled") {
                Disturbance::Restart => vec![(0.0, IncidentAction::RestartController)],
                Disturbance::FailOver => {
                    vec![(0.0, IncidentAction::StartStandby), (4.0, IncidentAction::FailOver)]
                }
                Disturbance::Pause(lasts) => {
                    vec![(0.0, IncidentAction::PauseController), (lasts, IncidentAction::ResumeController)]
                }
            };
            let ends = now + secs(actions.last().map_or(0.0, |(after, _)| *after));
            if ends > length {
                return;
            }
            let scheduled = |(after, action)| ScheduledAction {
                at: now + secs(after),
                node: EVERYWHERE.to_owned(),
                action,
            };
            self.script.extend(actions.into_iter().map(scheduled));
            now = ends + self.between(12.0, 24.0);
        }
    }

    /// Returns the `count` nodes of a zone that are free first, and the time at which all of them are free. For
    /// `usize::MAX`, returns all nodes of the cluster instead.
    fn choose(&mut self, zone: Zone, count: usize, now: Span) -> (Vec<String>, Span) {
        let mut nodes: Vec<String> = match count {
            usize::MAX => self.free_from.keys().cloned().collect(),
            _ => zone.names().collect(),
        };
        self.chance.shuffle(&mut nodes);
        nodes.sort_by_key(|node| self.free_from[node].max(now));
        nodes.truncate(count);
        let free = nodes.iter().map(|node| self.free_from[node]).max().unwrap_or(now);
        (nodes, free.max(now))
    }

    /// Adds the actions of an incident on one node. Returns the end of the last action.
    fn add_actions(&mut self, incident: Incident, node: &str, begins: Span, together: Span) -> Span {
        let mut actions: Vec<(Span, IncidentAction)> = Vec::new();
        let ends = match incident {
            Incident::Single => {
                actions.push((Span::ZERO, IncidentAction::Silence));
                if self.chance.bool() {
                    let tolerates = self.tolerance();
                    actions.push((self.between(3.0, 25.0), IncidentAction::AddPod { tolerates }));
                }
                actions.push((together, IncidentAction::ComeBack));
                together
            }
            Incident::Several | Incident::Most | Incident::Zone | Incident::Everything => {
                actions.push((self.between(0.0, 2.0), IncidentAction::Silence));
                let ends = together + self.between(0.0, 8.0);
                actions.push((ends, IncidentAction::ComeBack));
                ends
            }
            Incident::NotReady => {
                actions.push((Span::ZERO, IncidentAction::Post("False")));
                let ends = self.between(4.0, 40.0);
                actions.push((ends, IncidentAction::Post("True")));
                ends
            }
            Incident::BackNotReady => {
                let back = self.between(21.0, 40.0);
                actions
                    .extend([(Span::ZERO, IncidentAction::Silence), (back, IncidentAction::Post("False"))]);
                let ends = back + self.between(3.0, 15.0);
                actions.push((ends, IncidentAction::Post("True")));
                ends
            }
            Incident::NotReadyThenSilent => {
                let silent = self.between(2.0, 10.0);
                actions
                    .extend([(Span::ZERO, IncidentAction::Post("False")), (silent, IncidentAction::Silence)]);
                let ends = silent + self.between(19.0, 35.0);
                actions.push((ends, IncidentAction::Post("True")));
                ends
            }
            Incident::Flapping => {
                let back = self.between(3.0, 24.0);
                let again = back + self.between(1.5, 4.0);
                let ends = again + self.between(20.0, 30.0);
                let silent = [(Span::ZERO, IncidentAction::Silence), (again, IncidentAction::Silence)];
                actions.extend(
                    silent
                        .into_iter()
                        .chain([(back, IncidentAction::ComeBack), (ends, IncidentAction::ComeBack)]),
                );
                ends
            }
            Incident::Removed => {
                let gone = self.between(2.0, 34.0);
                let ends = gone + self.between(2.0, 15.0);
                let silent = [(Span::ZERO, IncidentAction::Silence), (gone, IncidentAction::Remove)];
                actions.extend(silent.into_iter().chain([(ends, IncidentAction::Rejoin)]));
                ends
            }
            Incident::Tainted => {
                let ends = self.between(8.0, 40.0);
                actions.extend([(Span::ZERO, IncidentAction::Taint), (ends, IncidentAction::Untaint)]);
                ends
            }
        };
        actions.push((ends + secs(3.0), IncidentAction::Refill));
        let scheduled =
            |(after, action)| ScheduledAction { at: begins + after, node: node.to_owned(), action };
        self.script.extend(actions.into_iter().map(scheduled));
        begins + ends
    }

    fn stay(&mut self, least: usize) -> Span {
        let (from, to) = self.chance.choice(&STAYS[least..]).copied().expect("there are some");
        self.between(from, to)
    }

    fn tolerance(&mut self) -> Option<i64> {
        self.chance.choice([Some(3), Some(8), Some(15), Some(30), None]).expect("there are some")
    }

    fn between(&mut self, from: f64, to: f64) -> Span {
        secs(from + self.chance.f64() * (to - from))
    }
}

fn secs(secs: f64) -> Span {
    Span::from_secs_f64(secs)
}
