//! What befalls the nodes of a test cluster: a random script of incidents, the same for the same seed.
//!
//! Times are scaled down: a node is silent for half a minute, not for hours.

use std::collections::BTreeMap;

use fastrand::Rng;
use kordon::time::Span;

/// Something the test does to the cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Deed {
    /// The kubelet falls silent.
    Silence,
    /// The kubelet is back and posts what it last thought of itself.
    ComeBack,
    /// The kubelet posts Ready with this status; a silent one is back by that.
    Post(&'static str),
    /// The kubelet falls silent and the Node object is deleted; its pods stay.
    Remove,
    /// The Node object is created again, ready.
    Rejoin,
    /// A pod is bound to the node that bears NoExecute taints for so many seconds: none for ever.
    AddPod {
        bears: Option<i64>,
    },
    /// The pods that every node has are created again where they are gone.
    Refill,
    /// Somebody puts a NoExecute taint of their own on the node, or takes it off.
    Taint,
    Untaint,
}

/// A deed and its time since the beginning.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Due {
    pub at: Span,
    pub node: String,
    pub deed: Deed,
}

/// A zone of so many nodes, named by the zone and a number.
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

/// The zone of a node that a [`Zone`] named.
pub fn zone_of(node: &str) -> &str {
    node.trim_end_matches(|letter: char| letter.is_ascii_digit())
}

/// Writes a script in which no incident begins so late that it would not end within `length`.
pub fn write(zones: &[Zone], seed: u64, length: Span) -> Vec<Due> {
    let nodes = zones.iter().flat_map(|zone| zone.names());
    let mut writer = Writer {
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
        let Some(begun) = deck.pop().and_then(|incident| writer.play(incident, now, length)) else { break };
        now = begun + writer.between(1.0, 4.0);
    }
    writer.script.sort();
    writer.script
}

/// What no incident outlasts, once it has begun.
const LONGEST: Span = Span::from_secs(60);
/// After an incident its nodes are left alone for so long.
const REST: Span = Span::from_secs(6);

/// What befalls one or more nodes together.
#[derive(Clone, Copy, Debug)]
enum Incident {
    /// One node falls silent, for one of the [`STAYS`].
    Single,
    /// A kubelet posts that it is not ready.
    NotReady,
    /// Some nodes of a zone, too few to disrupt it.
    Several,
    /// So many of a zone's nodes that it is partially disrupted.
    Most,
    /// A whole zone.
    Zone,
    /// All nodes.
    Everything,
    /// A silent node's kubelet is back, and not ready at first.
    BackNotReady,
    /// A kubelet that said that it is not ready falls silent.
    NotReadyThenSilent,
    /// Silent, back for a moment, silent again.
    Flapping,
    /// The Node object of a silent node goes, and comes back.
    Removed,
    /// Somebody else's NoExecute taint.
    Tainted,
}

/// The order of incidents, again and again: those that need everybody first, for later they would have to wait.
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

/// How long a node stays silent, in seconds, where the grace period is 16: until before it is found Unknown, before
/// its taint where others wait, before its pods are due, or after some of them are.
const STAYS: [(f64, f64); 5] = [(4.0, 12.0), (19.0, 21.0), (22.0, 30.0), (32.0, 50.0), (32.0, 50.0)];

struct Writer {
    chance: Rng,
    zones: Vec<Zone>,
    /// From when a node takes part in no incident.
    free_from: BTreeMap<String, Span>,
    script: Vec<Due>,
}

impl Writer {
    /// Writes down an incident that begins at `now` or, where its nodes are busy, as soon as they are free. The
    /// answer is when it begins; none where it would not end in time.
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
            let ends = self.befall(incident, &node, begins, together);
            self.free_from.insert(node, ends + REST);
        }
        Some(begins)
    }

    /// So many nodes of a zone (all nodes, where that is more than it has) that are free, and from when they are.
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

    /// Writes down what befalls one node, and tells when it is over.
    fn befall(&mut self, incident: Incident, node: &str, begins: Span, together: Span) -> Span {
        let mut deeds: Vec<(Span, Deed)> = Vec::new();
        let ends = match incident {
            Incident::Single => {
                deeds.push((Span::ZERO, Deed::Silence));
                if self.chance.bool() {
                    let bears = self.tolerance();
                    deeds.push((self.between(3.0, 25.0), Deed::AddPod { bears }));
                }
                deeds.push((together, Deed::ComeBack));
                together
            }
            Incident::Several | Incident::Most | Incident::Zone | Incident::Everything => {
                deeds.push((self.between(0.0, 2.0), Deed::Silence));
                let ends = together + self.between(0.0, 8.0);
                deeds.push((ends, Deed::ComeBack));
                ends
            }
            Incident::NotReady => {
                deeds.push((Span::ZERO, Deed::Post("False")));
                let ends = self.between(4.0, 40.0);
                deeds.push((ends, Deed::Post("True")));
                ends
            }
            Incident::BackNotReady => {
                let back = self.between(21.0, 40.0);
                deeds.extend([(Span::ZERO, Deed::Silence), (back, Deed::Post("False"))]);
                let ends = back + self.between(3.0, 15.0);
                deeds.push((ends, Deed::Post("True")));
                ends
            }
            Incident::NotReadyThenSilent => {
                let silent = self.between(2.0, 10.0);
                deeds.extend([(Span::ZERO, Deed::Post("False")), (silent, Deed::Silence)]);
                let ends = silent + self.between(19.0, 35.0);
                deeds.push((ends, Deed::Post("True")));
                ends
            }
            Incident::Flapping => {
                let back = self.between(3.0, 24.0);
                let again = back + self.between(1.5, 4.0);
                let ends = again + self.between(20.0, 30.0);
                let silent = [(Span::ZERO, Deed::Silence), (again, Deed::Silence)];
                deeds.extend(silent.into_iter().chain([(back, Deed::ComeBack), (ends, Deed::ComeBack)]));
                ends
            }
            Incident::Removed => {
                let gone = self.between(2.0, 34.0);
                let ends = gone + self.between(2.0, 15.0);
                let silent = [(Span::ZERO, Deed::Silence), (gone, Deed::Remove)];
                deeds.extend(silent.into_iter().chain([(ends, Deed::Rejoin)]));
                ends
            }
            Incident::Tainted => {
                let ends = self.between(8.0, 40.0);
                deeds.extend([(Span::ZERO, Deed::Taint), (ends, Deed::Untaint)]);
                ends
            }
        };
        deeds.push((ends + secs(3.0), Deed::Refill));
        let due = |(after, deed)| Due { at: begins + after, node: node.to_owned(), deed };
        self.script.extend(deeds.into_iter().map(due));
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
