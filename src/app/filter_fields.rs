//! The fields by which the rows of each list can be filtered.

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet},
};

use super::{
    filter::{FieldKind, Filter, FilterField, Filterable, Measure},
    pane::Pane,
};
use crate::model::{
    BudgetRow, DepartureEntry, EvictionRow, EvictionState, Finding, JournalEntry, JournalSubject, Model,
    NodeState,
};
use kordon_core::{
    cluster::{
        Condition, ConditionStatus, Key, Labels, Name, Node, NodeDevices, NodeName, Pod, ReportedEvent,
        ZoneKey, device_tables::is_extended, nearest::nearest,
    },
    engine::{Certainty, ZoneView},
    forecast::Lane,
};
use kordon_time::{ClusterClock, ClusterTime, Timestamp};

const fn word(name: &'static str) -> FilterField {
    FilterField { name, kind: FieldKind::Word }
}

const fn number(name: &'static str) -> FilterField {
    FilterField { name, kind: FieldKind::Number }
}

const fn share(name: &'static str) -> FilterField {
    FilterField { name, kind: FieldKind::Share }
}

const fn amount(name: &'static str) -> FilterField {
    FilterField { name, kind: FieldKind::Amount }
}

const fn time(name: &'static str) -> FilterField {
    FilterField { name, kind: FieldKind::Time }
}

/// The sign before a label selector, among the fields of rows that have labels.
const SELECTOR: FilterField = FilterField { name: "-l", kind: FieldKind::Selector };

const NODE: &[FilterField] = &[
    word("node"),
    word("zone"),
    word("state"),
    word("role"),
    word("ready"),
    word("cordoned"),
    word("taint"),
    word("condition"),
    word("version"),
    word("kubelet"),
    word("kernel"),
    word("address"),
    word("reason"),
    word("message"),
    word("type"),
    word("extended"),
    word("devices"),
    word("due"),
    number("pods"),
    number("terminating"),
    share("cpu"),
    share("memory"),
    share("cpu-used"),
    share("mem-used"),
    time("age"),
    time("heartbeat"),
    time("renewals"),
    time("grace"),
    time("next"),
    time("probe"),
    SELECTOR,
];

const POD: &[FilterField] = &[
    word("pod"),
    word("ns"),
    word("ready"),
    word("gate"),
    word("phase"),
    word("owner"),
    word("due"),
    number("priority"),
    amount("cpu"),
    amount("memory"),
    time("age"),
    time("grace"),
    SELECTOR,
];

const EVICTION: &[FilterField] =
    &[word("pod"), word("ns"), word("node"), word("state"), word("outcome"), time("in")];

const DEPARTURE: &[FilterField] =
    &[word("pod"), word("ns"), word("node"), word("kind"), word("certainty"), word("state")];

const LANE: &[FilterField] = &[word("node"), word("zone"), word("what")];

const ZONE: &[FilterField] = &[word("zone"), word("state"), number("nodes"), number("notready")];

const BUDGET: &[FilterField] = &[
    word("budget"),
    word("ns"),
    word("room"),
    word("rule"),
    word("node"),
    word("drain"),
    number("pods"),
    number("healthy"),
    number("blocks"),
];

const FINDING: &[FilterField] = &[
    word("severity"),
    word("cause"),
    word("object"),
    word("ns"),
    word("node"),
    number("pods"),
    number("nodes"),
];

const EVENT: &[FilterField] = &[
    word("type"),
    word("reason"),
    word("kind"),
    word("object"),
    word("ns"),
    word("node"),
    word("source"),
    number("count"),
    time("age"),
    time("last"),
    time("first"),
];

const ENTRY: &[FilterField] = &[word("level"), word("node"), word("pod")];

/// The fields of the rows of a pane. Nodes and pods also have their labels as fields.
pub const fn fields(pane: Pane) -> &'static [FilterField] {
    match pane {
        Pane::Nodes => NODE,
        Pane::Pods | Pane::Pending => POD,
        Pane::Evictions => EVICTION,
        Pane::Departures => DEPARTURE,
        Pane::Forecast => LANE,
        Pane::Zones => ZONE,
        Pane::Journal => ENTRY,
        Pane::Budgets => BUDGET,
        Pane::Audit => FINDING,
        Pane::Events => EVENT,
        Pane::Detail | Pane::Plan | Pane::Progress => &[],
    }
}

/// Whether the rows of a pane have labels, which are fields too.
pub(super) fn has_labels(pane: Pane) -> bool {
    fields(pane).contains(&SELECTOR)
}

/// Whether a name is another name of one of the fields of a pane.
pub(super) fn is_other_name(pane: Pane, name: &str) -> bool {
    match pane {
        Pane::Nodes => ["name", "roles", "taints", "conditions"].contains(&name),
        Pane::Pods
        | Pane::Pending
        | Pane::Evictions
        | Pane::Departures
        | Pane::Budgets
        | Pane::Audit
        | Pane::Events => ["name", "namespace"].contains(&name),
        Pane::Zones | Pane::Forecast | Pane::Journal | Pane::Detail | Pane::Plan | Pane::Progress => false,
    }
}

/// What is wrong with a name in a filter while the rows are not known, and what was probably meant. Where rows have
/// labels, a name that is near no field is taken for a label.
pub(super) fn misspelt_name(filter: &Filter, pane: Pane) -> Option<String> {
    let has_labels = has_labels(pane);
    let names = || fields(pane).iter().filter(|field| **field != SELECTOR).map(|field| field.name);
    let may_be_label =
        |name: &str| has_labels && (name.contains(['/', '.']) || nearest(name, names()).is_none());
    let is_known = |name: &str| is_other_name(pane, name) || may_be_label(name);
    let wrong = filter.unknown_field(fields(pane), is_known, BTreeSet::new)?;
    let label = if has_labels { " A label is -l NAME=VALUE." } else { "" };
    Some(format!("{wrong}{label}"))
}

/// Values that a field can have, also while no row has them.
pub(super) fn possible_values(pane: Pane, field: &str) -> Vec<&'static str> {
    match (pane, field) {
        (Pane::Nodes, "state") => NodeState::ALL.map(NodeState::as_str).to_vec(),
        (Pane::Forecast, "what") => vec!["unknown", "taint", "noexecute", "evicted"],
        (Pane::Nodes | Pane::Pods | Pane::Pending, "ready" | "cordoned" | "due") => vec!["yes", "no"],
        _ => Vec::new(),
    }
}

/// The instance type, from the label that cloud providers set.
pub fn instance_type(node: &Node) -> Option<&Name> {
    node.label("node.kubernetes.io/instance-type").or_else(|| node.label("beta.kubernetes.io/instance-type"))
}

/// Name of a zone in filters; `none` for nodes without region and zone labels.
pub fn zone_word(zone: &ZoneKey) -> String {
    if zone.region.is_empty() && zone.zone.is_empty() { "none".into() } else { zone.to_string() }
}

/// Names of a zone that a filter can test: with its region, as the label has it, and the short name on screen.
fn zone_names(shown: &Model, zone: &ZoneKey) -> String {
    format!("{} {} {}", zone_word(zone), zone.zone, shown.watchlist.zone_names().short(zone))
}

/// Value of a label, whatever the case of its key: filters have names in lower case, but label keys may have capital
/// letters.
fn label_of<'a>(labels: &'a Labels, key: &str) -> Option<&'a Name> {
    let in_other_case = || labels.iter().find(|(label, _)| label.eq_ignore_ascii_case(key));
    labels.get(key).or_else(|| in_other_case().map(|(_, value)| value))
}

fn share_of(part: i64, all: i64) -> Option<Measure> {
    #[expect(clippy::cast_precision_loss, reason = "a share has few digits")]
    (all > 0).then(|| Measure::Share(part as f64 / all as f64))
}

fn count(number: usize) -> Measure {
    #[expect(clippy::cast_precision_loss, reason = "counts are small")]
    Measure::Number(number as f64)
}

/// Time since the creation of an object.
fn age(shown: &Model, created: ClusterTime) -> Measure {
    Measure::Time(shown.views.taken.since(shown.cluster.local(created)))
}

/// The devices of each node; `None` if they are not known.
type DevicesByNode = Option<BTreeMap<NodeName, Vec<NodeDevices>>>;

pub(super) struct FilterableNode<'a> {
    pub shown: &'a Model,
    pub node: &'a Node,
    /// The devices of all nodes, found for the first node whose devices a filter asks for.
    pub devices: &'a OnceCell<DevicesByNode>,
}

impl FilterableNode<'_> {
    /// The node's Ready condition, if it is not True.
    fn not_ready(&self) -> Option<&Condition> {
        self.node.ready().filter(|ready| ready.status != ConditionStatus::True)
    }
}

impl Filterable for FilterableNode<'_> {
    fn field(&self, key: &str) -> Option<String> {
        let node = self.node;
        Some(match key {
            "node" | "name" => node.name.to_string(),
            "zone" => zone_names(self.shown, &node.zone()),
            "state" => self.shown.watchlist.state(&node.name)?.to_string(),
            "role" | "roles" => node.roles().collect::<Vec<_>>().join(" "),
            "ready" => match node.ready().map(|ready| ready.status) {
                Some(ConditionStatus::True) => "yes true".into(),
                Some(ConditionStatus::False | ConditionStatus::Invalid) => "no false".into(),
                Some(ConditionStatus::Unknown) | None => "no unknown".into(),
            },
            "cordoned" => if node.unschedulable { "yes" } else { "no" }.into(),
            "taint" | "taints" => {
                let taints = node.taints.iter().map(|taint| format!("{} {}", taint.key, taint));
                taints.collect::<Vec<_>>().join(" ")
            }
            "condition" | "conditions" => {
                node.problems().map(|condition| condition.kind.as_str()).collect::<Vec<_>>().join(" ")
            }
            "version" | "kubelet" => node.kubelet_version.to_string(),
            "kernel" => node.kernel_version.to_string(),
            "address" => node.address.to_string(),
            "reason" => self.not_ready()?.reason.to_string(),
            "message" => self.not_ready()?.message.to_string(),
            "type" => instance_type(node)?.to_string(),
            "extended" => {
                let names = node.extended.iter().map(|(name, _)| name.as_str());
                names.filter(|name| is_extended(name)).collect::<Vec<_>>().join(" ")
            }
            "devices" => {
                let devices = self.devices.get_or_init(|| self.shown.cluster.node_devices()).as_ref()?;
                let of_node = devices.get(&node.name).into_iter().flatten();
                of_node.map(|devices| devices.driver.as_str()).collect::<Vec<_>>().join(" ")
            }
            "due" => if self.shown.views.leaving.next.contains_key(&node.name) { "yes" } else { "no" }.into(),
            label => label_of(&node.labels, label)?.to_string(),
        })
    }

    fn measure(&self, key: &str) -> Option<Measure> {
        let (shown, now) = (self.shown, self.shown.views.taken);
        let load = shown.cluster.load(&self.node.name);
        let usage = || shown.measurements.usage(&self.node.name);
        let allocatable = &self.node.allocatable;
        match key {
            "pods" => Some(count(load.unfinished())),
            "terminating" => Some(count(load.terminating)),
            "cpu" => share_of(load.requested.cpu_milli, allocatable.cpu_milli),
            "memory" => share_of(load.requested.memory_bytes, allocatable.memory_bytes),
            "cpu-used" => share_of(usage()?.cpu_milli, allocatable.cpu_milli),
            "mem-used" => share_of(usage()?.memory_bytes, allocatable.memory_bytes),
            "age" => Some(age(shown, self.node.created)),
            "heartbeat" => Some(Measure::Time(now.since(shown.last_heartbeat(self.node)?))),
            // The longest of the intervals that the column shows.
            "renewals" => {
                let last = now.since(shown.silence(self.node)?.heartbeat);
                let intervals = shown.engine.as_ref()?.heartbeats().intervals(&self.node.name);
                Some(Measure::Time(intervals.fold(last, Ord::max)))
            }
            "grace" => Some(Measure::Time(shown.grace_ends(self.node)?.since(now))),
            "next" => Some(Measure::Time(shown.views.leaving.next.get(&self.node.name)?.at?.since(now))),
            "probe" => Some(Measure::Time(now.since(shown.health(self.node)?.probe))),
            _ => None,
        }
    }

    fn texts(&self, found: &mut dyn FnMut(&str)) {
        let node = self.node;
        found(&node.name);
        found(&node.zone().to_string());
        found(&node.address);
        node.taints.iter().for_each(|taint| found(&taint.key));
        if let Some(ready) = node.ready() {
            found(&ready.reason);
        }
    }

    fn labels(&self) -> Option<&Labels> {
        Some(&self.node.labels)
    }
}

impl Filterable for DepartureEntry {
    fn field(&self, key: &str) -> Option<String> {
        match key {
            "pod" | "name" => Some(self.pod.name.to_string()),
            "ns" | "namespace" => Some(self.pod.namespace.to_string()),
            "node" => self.node.as_ref().map(ToString::to_string),
            "kind" => Some(self.departure.kind.to_string()),
            "certainty" => Some(self.departure.certainty.as_str().into()),
            "state" => Some(self.stage.as_str().into()),
            _ => None,
        }
    }

    fn texts(&self, found: &mut dyn FnMut(&str)) {
        found(&self.pod.to_string());
        self.node.iter().for_each(|node| found(node));
        found(self.departure.kind.title());
        self.departure.evidence.iter().for_each(|evidence| found(&evidence.text));
    }
}

pub(super) struct FilterableLane<'a> {
    pub shown: &'a Model,
    pub lane: &'a Lane,
}

impl Filterable for FilterableLane<'_> {
    fn field(&self, key: &str) -> Option<String> {
        let Lane { nodes, zone, unknown, tainted, kubelet, pods, .. } = self.lane;
        match key {
            "node" => nodes.first().map(ToString::to_string),
            "zone" => Some(zone_names(self.shown, zone)),
            "what" => {
                let unknown = unknown.map(|_| "unknown");
                let tainted = tainted.map(|_| "taint noexecute");
                let evicted = (!pods.is_empty()).then_some("evicted");
                let kubelet = kubelet.map(|_| "kubelet");
                let what = unknown.into_iter().chain(tainted).chain(evicted).chain(kubelet);
                Some(what.collect::<Vec<_>>().join(" "))
            }
            _ => None,
        }
    }

    fn texts(&self, found: &mut dyn FnMut(&str)) {
        self.lane.nodes.iter().for_each(|node| found(node));
        found(&self.lane.zone.to_string());
    }
}

pub(super) struct FilterableZone<'a> {
    pub shown: &'a Model,
    pub zone: &'a ZoneView,
}

impl Filterable for FilterableZone<'_> {
    fn field(&self, key: &str) -> Option<String> {
        match key {
            "zone" => Some(zone_names(self.shown, &self.zone.key)),
            "state" => Some(self.zone.state.to_string()),
            _ => None,
        }
    }

    fn measure(&self, key: &str) -> Option<Measure> {
        match key {
            "nodes" => Some(count(self.zone.size)),
            "notready" => Some(count(self.zone.not_ready)),
            _ => None,
        }
    }

    fn texts(&self, found: &mut dyn FnMut(&str)) {
        found(&self.zone.key.to_string());
        found(self.zone.state.as_str());
    }
}

pub(super) struct FilterableEviction<'a> {
    pub shown: &'a Model,
    pub key: &'a Key,
    pub row: &'a EvictionRow,
}

impl Filterable for FilterableEviction<'_> {
    fn field(&self, key: &str) -> Option<String> {
        match key {
            "pod" | "name" => Some(self.key.name.to_string()),
            "ns" | "namespace" => Some(self.key.namespace.to_string()),
            "node" => Some(self.row.node.to_string()),
            "state" => Some(
                match self.row.state {
                    EvictionState::Scheduled { certainty: Certainty::Observed, .. } => "scheduled",
                    EvictionState::Scheduled { .. } => "scheduled estimated",
                    EvictionState::Predicted { .. } => "predicted",
                    EvictionState::ByKubelet { .. } => "kubelet",
                    EvictionState::Never => "never",
                    EvictionState::Terminating { .. } => "terminating",
                    EvictionState::Cancelled { .. } => "cancelled",
                }
                .into(),
            ),
            "outcome" => Some(self.shown.outcome(self.key, self.row)?.to_string()),
            _ => None,
        }
    }

    fn measure(&self, key: &str) -> Option<Measure> {
        let at = (key == "in").then_some(&self.row.state).and_then(|state| match state {
            EvictionState::ByKubelet { at, .. } => *at,
            state => state.leaves_at(),
        })?;
        Some(Measure::Time(at.since(self.shown.views.taken)))
    }

    fn texts(&self, found: &mut dyn FnMut(&str)) {
        found(&self.key.to_string());
        found(&self.row.node);
        found(&self.row.why.to_string());
    }
}

impl Filterable for BudgetRow {
    fn field(&self, key: &str) -> Option<String> {
        let names = |nodes: &mut dyn Iterator<Item = &NodeName>| {
            nodes.map(|node| node.to_string()).collect::<Vec<_>>().join(" ")
        };
        Some(match key {
            "budget" | "name" => self.key.name.to_string(),
            "ns" | "namespace" => self.key.namespace.to_string(),
            "room" => self.room.as_str().into(),
            "rule" => self.rule.clone(),
            "node" => names(&mut self.nodes.iter()),
            "drain" => names(&mut self.drains.iter().map(|drain| &drain.node)),
            _ => return None,
        })
    }

    fn measure(&self, key: &str) -> Option<Measure> {
        match key {
            "pods" => Some(count(self.pods.len())),
            "healthy" => Some(Measure::Number(f64::from(self.numbers.healthy))),
            "blocks" => Some(count(self.blocks.len())),
            _ => None,
        }
    }

    fn texts(&self, found: &mut dyn FnMut(&str)) {
        found(&self.key.to_string());
        found(&self.room.to_string());
        self.drains.iter().for_each(|drain| found(&drain.node));
    }
}

impl Filterable for Finding {
    fn field(&self, key: &str) -> Option<String> {
        Some(match key {
            "severity" => self.severity().as_str().into(),
            "cause" => self.kind.as_str().into(),
            "object" | "name" => self.subject.name.to_string(),
            "ns" | "namespace" => self.subject.namespace.to_string(),
            "node" => self.nodes.iter().map(|node| node.to_string()).collect::<Vec<_>>().join(" "),
            _ => return None,
        })
    }

    fn measure(&self, key: &str) -> Option<Measure> {
        match key {
            "pods" => Some(count(self.pods.len())),
            "nodes" => Some(count(self.nodes.len())),
            _ => None,
        }
    }

    fn texts(&self, found: &mut dyn FnMut(&str)) {
        found(self.kind.title());
        found(&self.subject.to_string());
        found(&self.text);
        self.nodes.iter().for_each(|node| found(node));
    }
}

/// An Event as a row of a list. `clock` is the clock of its times.
pub struct FilterableEvent<'a> {
    pub event: &'a ReportedEvent,
    pub clock: ClusterClock,
    pub now: Timestamp,
}

impl Filterable for FilterableEvent<'_> {
    fn field(&self, key: &str) -> Option<String> {
        let ReportedEvent { about, node, event } = self.event;
        Some(match key {
            "type" => event_type(event.is_warning).into(),
            "reason" => event.reason.to_string(),
            "kind" => about.kind.to_string(),
            "object" | "name" => about.name.to_string(),
            "ns" | "namespace" => about.namespace.to_string(),
            "node" => node.to_string(),
            "source" => event.source.to_string(),
            _ => return None,
        })
    }

    fn measure(&self, key: &str) -> Option<Measure> {
        let event = &self.event.event;
        let since = |at: Option<ClusterTime>| Some(Measure::Time(self.now.since(self.clock.local(at?))));
        match key {
            "count" => Some(count(usize::try_from(event.count).unwrap_or(usize::MAX))),
            "age" | "last" => since(event.last),
            "first" => since(event.first),
            _ => None,
        }
    }

    fn texts(&self, found: &mut dyn FnMut(&str)) {
        let ReportedEvent { about, event, .. } = self.event;
        found(&event.reason);
        found(&about.to_string());
        found(&event.message);
        found(&event.source);
    }
}

/// The type of an Event.
pub const fn event_type(is_warning: bool) -> &'static str {
    if is_warning { "Warning" } else { "Normal" }
}

/// A pod as a row of a list.
pub struct FilterablePod<'a> {
    pub shown: &'a Model,
    pub pod: &'a Pod,
}

impl Filterable for FilterablePod<'_> {
    fn field(&self, key: &str) -> Option<String> {
        let pod = self.pod;
        Some(match key {
            "pod" | "name" => pod.key.name.to_string(),
            "ns" | "namespace" => pod.key.namespace.to_string(),
            "ready" => if pod.is_ready() { "yes" } else { "no" }.into(),
            "gate" => pod.unmet_gates().iter().map(Name::as_str).collect::<Vec<_>>().join(" "),
            "phase" => pod.phase.as_str().into(),
            "owner" => pod.owner.as_ref()?.name.to_string(),
            "due" => {
                if self.shown.views.leaving.evictions.contains_key(&pod.key) { "yes" } else { "no" }.into()
            }
            label => label_of(&pod.labels, label)?.to_string(),
        })
    }

    fn measure(&self, key: &str) -> Option<Measure> {
        let pod = self.pod;
        match key {
            "priority" => Some(Measure::Number(f64::from(pod.priority))),
            "cpu" => Some(Measure::Amount(pod.requests().cpu_milli)),
            "memory" => Some(Measure::Amount(pod.requests().memory_bytes.saturating_mul(1000))),
            "age" => Some(age(self.shown, pod.created)),
            "grace" => Some(Measure::Time(pod.grace)),
            _ => None,
        }
    }

    fn texts(&self, found: &mut dyn FnMut(&str)) {
        found(&self.pod.key.to_string());
        if let Some(owner) = &self.pod.owner {
            found(&owner.name);
        }
    }

    fn labels(&self) -> Option<&Labels> {
        Some(&self.pod.labels)
    }
}

impl Filterable for JournalEntry {
    fn field(&self, key: &str) -> Option<String> {
        let named = |of: fn(&JournalSubject) -> Option<String>| {
            let names: Vec<String> = self.subjects.iter().filter_map(of).collect();
            (!names.is_empty()).then(|| names.join(" "))
        };
        match key {
            "level" => Some(format!("{:?}", self.level)),
            "node" => named(|subject| subject.node().map(ToString::to_string)),
            "pod" => named(|subject| match subject {
                JournalSubject::Pod(pod, _) => Some(pod.to_string()),
                JournalSubject::Node(_) | JournalSubject::Other(_) => None,
            }),
            _ => None,
        }
    }

    fn texts(&self, found: &mut dyn FnMut(&str)) {
        let line = [Some(self.words()), self.prediction()];
        found(&line.into_iter().flatten().collect::<Vec<_>>().join(" · "));
        self.subjects.iter().for_each(|subject| found(&subject.to_string()));
        found(&self.why.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::chosen_columns::names;

    #[test]
    fn every_column_of_the_nodes_is_a_field() {
        for column in names(Pane::Nodes) {
            let field = match *column {
                "cpu req" => "cpu",
                "mem req" => "memory",
                "cpu used" => "cpu-used",
                "mem used" => "mem-used",
                name => name,
            };
            let one = field.strip_suffix('s').unwrap_or(field);
            let is_field = |known: &FilterField| [field, one].contains(&known.name);
            assert!(fields(Pane::Nodes).iter().any(is_field), "{column}");
        }
    }
}
