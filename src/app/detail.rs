//! The detail of one node or pod: its explanation first, then its object.

use super::{
    filter::{Filter, Filterable},
    listing::Listing,
    pane::Pane,
};
use crate::{
    cluster::{Cluster, ConditionStatus, Key, Node, NodeName, Pod, TaintOwner, TolerationOperator},
    time::Timestamp,
    why::{Explainer, Step},
};

/// The subject of a detail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DetailSubject {
    Node(NodeName),
    Pod(Key),
}

/// The detail that is open.
#[derive(Clone, Debug)]
pub struct Detail {
    pub subject: DetailSubject,
    pub rows: Vec<DetailRow>,
    /// Places in `rows`.
    pub list: Listing<usize>,
    /// The pane from which it was opened.
    pub from: Pane,
}

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub enum DetailRow {
    /// The title of what follows.
    Section(&'static str),
    /// A step of the explanation.
    Link(Step),
    /// A property.
    Fact { name: String, at: Option<Timestamp>, text: String, tone: Tone },
}

/// How a property looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Plain,
    /// Needs attention.
    Marked,
}

impl Detail {
    pub fn new(subject: DetailSubject, from: Pane) -> Self {
        Self { subject, rows: Vec::new(), list: Listing::default(), from }
    }

    /// Makes the rows again. A subject that is gone keeps its last rows.
    pub fn fill(
        &mut self,
        cluster: &Cluster,
        teller: Option<Explainer<'_>>,
        filter: &Filter,
        now: Timestamp,
    ) {
        let rows = match &self.subject {
            DetailSubject::Node(name) => cluster.node(name).map(|node| of_node(node, cluster, teller, now)),
            DetailSubject::Pod(key) => cluster.pod(key).map(|pod| of_pod(pod, cluster, teller)),
        };
        self.rows = rows.unwrap_or_else(|| std::mem::take(&mut self.rows));
        let shown = |place: &usize| {
            matches!(self.rows[*place], DetailRow::Section(_)) || filter.matches(&self.rows[*place])
        };
        self.list.replace((0..self.rows.len()).filter(shown).collect());
    }

    /// Whether the cluster still has it.
    pub fn is_there(&self, cluster: &Cluster) -> bool {
        match &self.subject {
            DetailSubject::Node(name) => cluster.node(name).is_some(),
            DetailSubject::Pod(key) => cluster.pod(key).is_some(),
        }
    }
}

fn story(links: Option<Vec<Step>>) -> impl Iterator<Item = DetailRow> {
    std::iter::once(DetailRow::Section("why"))
        .chain(links.unwrap_or_default().into_iter().map(DetailRow::Link))
}

fn fact(name: &str, text: impl Into<String>) -> DetailRow {
    DetailRow::Fact { name: name.into(), at: None, text: text.into(), tone: Tone::Plain }
}

fn of_node(node: &Node, cluster: &Cluster, teller: Option<Explainer<'_>>, now: Timestamp) -> Vec<DetailRow> {
    let mut rows: Vec<DetailRow> = story(teller.map(|teller| teller.node(node))).collect();
    rows.push(DetailRow::Section("conditions"));
    rows.extend(node.conditions.iter().map(|condition| {
        let good = if condition.kind == *"Ready" { ConditionStatus::True } else { ConditionStatus::False };
        DetailRow::Fact {
            name: condition.kind.to_string(),
            at: condition.last_transition.map(|at| cluster.local(at)),
            text: [condition.status.as_str(), &condition.reason, &condition.message]
                .into_iter()
                .filter(|part| !part.is_empty())
                .collect::<Vec<_>>()
                .join(" · "),
            tone: if condition.status == good { Tone::Plain } else { Tone::Marked },
        }
    }));
    if !node.taints.is_empty() {
        rows.push(DetailRow::Section("taints"));
    }
    rows.extend(node.taints.iter().map(|taint| {
        let value = if taint.value.is_empty() { String::new() } else { format!("={}", taint.value) };
        DetailRow::Fact {
            name: taint.effect.as_str().into(),
            at: taint.time_added.map(|at| cluster.local(at)),
            text: match TaintOwner::of(taint) {
                Some(owner) => format!("{}{value} · {}: {}", taint.key, owner.name, owner.meaning),
                None => format!("{}{value}", taint.key),
            },
            tone: Tone::Plain,
        }
    }));
    rows.push(DetailRow::Section("node"));
    rows.extend(node.drain_claim.as_ref().map(|claim| DetailRow::Fact {
        name: "drain".into(),
        at: Some(claim.renewed),
        text: claim.text(now),
        tone: if claim.is_fresh(now) { Tone::Plain } else { Tone::Marked },
    }));
    rows.extend([
        fact("zone", node.zone().to_string()),
        cordoned(node, now),
        fact("address", node.address.to_string()),
        fact("kubelet", node.kubelet_version.to_string()),
        fact("kernel", node.kernel_version.to_string()),
        DetailRow::Fact {
            name: "created".into(),
            at: Some(cluster.local(node.created)),
            text: format!("uid {}", node.uid),
            tone: Tone::Plain,
        },
    ]);
    rows.push(DetailRow::Section("labels"));
    rows.extend(node.labels.iter().map(|(key, value)| fact("", format!("{key}={value}"))));
    rows
}

/// Whether a node is cordoned, and what kordon noted about that.
fn cordoned(node: &Node, now: Timestamp) -> DetailRow {
    let Some(note) = node.cordon() else {
        return fact("cordoned", if node.unschedulable { "yes: no new pods" } else { "no" });
    };
    DetailRow::Fact {
        name: "cordoned".into(),
        at: Some(note.at),
        text: match &note.operation {
            Some(operation) => format!("{} (operation {operation})", note.text(now)),
            None => note.text(now),
        },
        tone: if note.is_expired(now) { Tone::Marked } else { Tone::Plain },
    }
}

fn of_pod(pod: &Pod, cluster: &Cluster, teller: Option<Explainer<'_>>) -> Vec<DetailRow> {
    let mut rows: Vec<DetailRow> = story(teller.map(|teller| teller.pod(pod))).collect();
    rows.push(DetailRow::Section("pod"));
    let owner = pod.owner.as_ref().map_or_else(
        || {
            if pod.mirror {
                "static pod of its node".to_owned()
            } else {
                "none: no controller recreates it".into()
            }
        },
        |owner| format!("{} {}", owner.kind.as_str(), owner.name),
    );
    rows.extend([
        fact("node", pod.node.as_ref().map_or("none yet", |node| node)),
        fact("owner", owner),
        fact(
            "phase",
            format!("{}, {}", pod.phase.as_str(), if pod.is_ready() { "ready" } else { "not ready" }),
        ),
        fact("grace", pod.grace.to_string()),
        fact("priority", pod.priority.to_string()),
        DetailRow::Fact {
            name: "created".into(),
            at: Some(cluster.local(pod.created)),
            text: format!("uid {}", pod.uid),
            tone: Tone::Plain,
        },
    ]);
    rows.push(DetailRow::Section("budgets"));
    let budgets: Vec<DetailRow> = cluster
        .budgets_of(pod)
        .map(|budget| {
            let status = &budget.status;
            DetailRow::Fact {
                name: budget.key.name.to_string(),
                at: None,
                text: format!(
                    "needs {} healthy, has {}: {} disruption{} allowed",
                    status.desired_healthy,
                    status.current_healthy,
                    status.disruptions_allowed,
                    if status.disruptions_allowed == 1 { "" } else { "s" },
                ),
                tone: if status.disruptions_allowed > 0 { Tone::Plain } else { Tone::Marked },
            }
        })
        .collect();
    if budgets.is_empty() {
        rows.push(fact("", "no PodDisruptionBudget"));
    }
    rows.extend(budgets);
    rows.push(DetailRow::Section("tolerations"));
    rows.extend(pod.tolerations.iter().map(|toleration| {
        let key = if toleration.key.is_empty() { "all taints" } else { &toleration.key };
        let value = match toleration.operator {
            TolerationOperator::Equal if !toleration.value.is_empty() => format!("={}", toleration.value),
            _ => String::new(),
        };
        let effect = toleration.effect.map_or(String::new(), |effect| format!(":{}", effect.as_str()));
        let span = match toleration.seconds {
            Some(seconds) => format!("for {seconds}s"),
            None => "forever".into(),
        };
        fact("", format!("{key}{value}{effect} {span}"))
    }));
    rows.push(DetailRow::Section("labels"));
    rows.extend(pod.labels.iter().map(|(key, value)| fact("", format!("{key}={value}"))));
    rows
}

impl Filterable for DetailRow {
    fn field(&self, key: &str) -> Option<String> {
        match (self, key) {
            (Self::Link(link), "topic") => Some(link.topic.as_str().into()),
            (Self::Link(link), "tense") => Some(link.tense.as_str().into()),
            _ => None,
        }
    }

    fn texts(&self, found: &mut dyn FnMut(&str)) {
        match self {
            Self::Section(title) => found(title),
            Self::Link(link) => found(&link.text),
            Self::Fact { name, text, .. } => {
                found(name);
                found(text);
            }
        }
    }
}
