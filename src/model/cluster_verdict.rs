//! The verdict on the cluster: one line about its worst problem. The worst problem comes first, then what happens next,
//! then the consequence. The dashboard's header, `kordon status` and the terminal's title use the same words.

mod clocks;
mod drains;
mod evictions;
mod headroom;
mod losses;
mod nodes;
mod nowhere;
mod zones;

use std::fmt;

use self::{
    clocks::{clocks, doubtful},
    drains::{blocked_drains, maintenances},
    evictions::{evicted, next, own_event},
    headroom::headroom,
    losses::DeletedNodes,
    nodes::{QuietNodes, nodes},
    nowhere::{are_all_stuck, nowhere, preempting, remedy_for_stuck, why_pending},
};
pub use self::{nodes::kubelet_evictions, zones::pause};
use super::{Model, NodeState, StateRole};
use crate::k8s::feed::FeedState;
use kordon_core::{
    cluster::{FeedKind, Gap, Known, NodeName},
    engine::{Confidence, TaintRulePreview, taint_rule_previews},
    plan::words::counted,
};
use kordon_time::{Span, Timestamp};

/// Severity of a verdict, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum VerdictLevel {
    /// Every node is Ready and sends heartbeats, or is under maintenance.
    Healthy,
    /// A problem exists, but needs no action yet.
    Notice,
    /// A problem needs attention, or a node is silent.
    Warning,
    /// Nodes are down, or most of a zone is silent.
    Critical,
    /// The current state of the cluster is unknown.
    Disconnected,
}

impl VerdictLevel {
    /// Stable word for the severity in machine-readable output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Critical => "critical",
            Self::Disconnected => "disconnected",
        }
    }

    pub const fn glyph(self) -> &'static str {
        match self {
            Self::Healthy => "✔",
            Self::Notice => "•",
            Self::Warning => "▲",
            Self::Critical => "✖",
            Self::Disconnected => "✗",
        }
    }

    /// Returns the level of a cluster from the visual role of its worst node.
    pub(super) const fn from_role(role: StateRole) -> Self {
        match role {
            StateRole::Critical => Self::Critical,
            StateRole::Warning => Self::Warning,
            StateRole::Notice => Self::Notice,
            StateRole::Maintenance | StateRole::Ready => Self::Healthy,
        }
    }
}

/// The verdict on a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterVerdict {
    pub level: VerdictLevel,
    /// Parts of the verdict, the worst problem first; never empty. If space is short, the last parts are left out.
    pub parts: Vec<String>,
    /// All parts of the verdict as one text, without countdowns and ages, which change merely because time passes.
    pub outline: String,
    /// How each part in `parts` gives way if space is short.
    forms: Vec<PartForm>,
}

/// How a part of the verdict gives way if space is short.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct PartForm {
    kind: PartKind,
    /// Shorter texts with the same meaning, the longest first.
    shorter: Vec<String>,
}

/// What a part of the verdict is about, as far as this decides whether the part gives way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum PartKind {
    /// The next event of the node in the worst finding.
    OwnEvent,
    /// What happens next, and when.
    Next,
    /// The consequence for pods: how many have nowhere to run.
    Consequence,
    /// N-1, which is the last part.
    Headroom,
    #[default]
    Other,
}

/// The forms of a verdict's parts, from the longest to the shortest. The consequence is worse than what happens next, so
/// what happens next is left out before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Shortening {
    Whole,
    /// Other parts have their shorter texts as well.
    ShortConsequence,
    ShortNext,
    /// Consequences without a shorter text are left out: they explain the one before them.
    NoDetails,
    ShortestNext,
    ShortestBoth,
    /// What happens next is left out, with all parts after it. The consequence has more room again.
    NoNext,
    NoOwnEvent,
    ShortestConsequence,
}

impl Shortening {
    const ALL: [Self; 9] = [
        Self::Whole,
        Self::ShortConsequence,
        Self::ShortNext,
        Self::NoDetails,
        Self::ShortestNext,
        Self::ShortestBoth,
        Self::NoNext,
        Self::NoOwnEvent,
        Self::ShortestConsequence,
    ];

    /// Number of times that a part of this kind is shortened.
    fn steps(self, kind: PartKind) -> usize {
        let (short, shortest) = match kind {
            PartKind::Consequence => (Self::ShortConsequence, Self::ShortestConsequence),
            PartKind::Next => (Self::ShortNext, Self::ShortestNext),
            PartKind::Other => return usize::from(self >= Self::ShortConsequence),
            PartKind::OwnEvent | PartKind::Headroom => return 0,
        };
        let is_last = kind == PartKind::Consequence && self == Self::ShortestConsequence;
        usize::from(self >= short)
            + usize::from(self >= shortest || self == Self::ShortestBoth)
            + usize::from(is_last)
    }
}

/// A part of the verdict in the form that is shown.
struct ShownPart<'a> {
    text: &'a str,
    form: &'a PartForm,
}

impl ClusterVerdict {
    /// Returns the verdict on a model that was refreshed at `now`.
    pub fn new(model: &Model, now: Timestamp) -> Self {
        let mut findings = connection(model, now);
        let deleted = DeletedNodes::new(model);
        findings.extend(deleted.as_ref().map(|deleted| deleted.finding(model, now)));
        let quiet = QuietNodes::find(model);
        findings.extend(nodes(model, quiet.as_ref(), now));
        findings.extend(blocked_drains(model, now));
        let (running_maintenances, held_up_maintenances) = maintenances(model, now);
        findings.extend(held_up_maintenances);
        findings.extend(flapping(model, now));
        findings.extend(idle_workloads(model));
        findings.extend(eviction_loops(model, now));
        findings.extend(left_out_of_service(model));
        findings.extend(clocks(model));
        findings.extend(doubtful(model, now));
        findings.extend(short_grace(model));
        findings.extend(taint_rules(model));
        findings.extend(loading(model));
        if findings.iter().all(|finding| finding.level < VerdictLevel::Notice) {
            findings.extend(all_well(model));
        }
        findings.extend(running_maintenances);
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.level));
        let subject = findings.first().and_then(|worst| worst.node.clone());
        let users = nowhere(model, subject.as_ref(), now);
        // Pods that have nowhere to run come first in the verdict, because users notice them; only a worse problem
        // comes before them.
        let is_worse =
            |worst: &Finding| model.views.nowhere_now() == 0 || worst.level > VerdictLevel::Warning;
        let rest = findings.split_off(usize::from(findings.first().is_some_and(is_worse)));
        findings.extend(
            subject.as_ref().filter(|_| !findings.is_empty()).and_then(|node| own_event(model, node, now)),
        );
        findings.extend(
            quiet.as_ref().filter(|_| !findings.is_empty()).and_then(|quiet| quiet.first_unknown(model, now)),
        );
        // The finding about deleted nodes, if there is one, already says when the pods of these nodes are removed.
        let next = match deleted.is_none_or(|deleted| deleted.leaving < model.views.counts.leaving()) {
            true => next(model, subject.as_ref(), users.as_ref(), quiet.as_ref(), now),
            false => Vec::new(),
        };
        findings.extend(users);
        findings.extend(why_pending(model));
        findings.extend(preempting(model));
        findings.extend(next);
        let remedy = remedy_for_stuck(model).filter(|_| !are_all_stuck(model));
        findings.extend(remedy.map(|remedy| Finding::new(VerdictLevel::Notice, remedy)));
        findings.extend(rest);
        findings.extend(evicted(model, now));
        findings.extend(unknown_heartbeats(model));
        findings.extend(gaps(model, now));
        let worst = |findings: &[Finding]| findings.iter().map(|finding| finding.level).max();
        findings.extend(headroom(model, worst(&findings), now));
        let level = worst(&findings).unwrap_or(VerdictLevel::Notice);
        let outlines: Vec<&str> = findings.iter().map(|finding| &*finding.phrase.outline).collect();
        let outline = outlines.join(SEPARATOR);
        let (parts, forms): (Vec<String>, Vec<PartForm>) =
            findings.into_iter().map(|finding| (finding.phrase.text, finding.form)).unzip();
        Self { level, parts, outline, forms }
    }

    /// Returns the parts for a line of limited width. `fits` returns whether some parts fit into the line. If the part
    /// about what happens next does not fit, the parts before it have their shorter forms, and then it has its own. If
    /// these are too long as well, what happens next is left out, and then the next event of the named node. If all parts
    /// do not fit, the other parts have their shorter forms, the last part first. If the first part alone does not fit, it
    /// has a shorter form. The last parts may still not fit.
    pub fn parts_for(&self, fits: impl Fn(&[&str]) -> bool) -> Vec<&str> {
        let mut shown = Vec::new();
        for shortening in Shortening::ALL {
            shown = self.shortened(shortening);
            let end = shown.iter().position(|part| part.form.kind == PartKind::Next);
            let end = end.or_else(|| {
                let first = shown.iter().position(|part| part.form.kind == PartKind::Consequence)?;
                let others = shown[first..].iter();
                Some(first + others.take_while(|part| part.form.kind == PartKind::Consequence).count() - 1)
            });
            let until_last: Vec<&str> =
                shown[..end.map_or(0, |end| end + 1)].iter().map(|part| part.text).collect();
            if until_last.is_empty() || fits(&until_last) {
                break;
            }
        }
        let forms: Vec<&PartForm> = shown.iter().map(|part| part.form).collect();
        let mut texts: Vec<&str> = shown.into_iter().map(|part| part.text).collect();
        for (place, form) in forms.iter().enumerate().rev() {
            let gives_way = matches!(form.kind, PartKind::Headroom | PartKind::Other);
            if let Some(short) =
                form.shorter.first().map(String::as_str).filter(|_| gives_way && !fits(&texts))
            {
                let whole = std::mem::replace(&mut texts[place], short);
                // The first part has its whole form if the last parts are left out in any case.
                if place == 0 && !fits(&texts) {
                    texts[place] = whole;
                }
            }
        }
        if let Some(form) = forms.first().filter(|_| !fits(&texts[..1])) {
            let mut shorter = form.shorter.iter().map(String::as_str);
            let shortest = form.shorter.last().map(String::as_str);
            texts[0] = shorter.find(|text| fits(&[*text])).or(shortest).unwrap_or(texts[0]);
        }
        texts
    }

    fn shortened(&self, shortening: Shortening) -> Vec<ShownPart<'_>> {
        let next = self.forms.iter().position(|form| form.kind == PartKind::Next);
        let next = next.unwrap_or(self.forms.len());
        let parts = self.parts.iter().zip(&self.forms).enumerate();
        parts
            .filter(|(place, (_, form))| {
                let is_detail = form.kind == PartKind::Consequence && form.shorter.is_empty();
                let is_own_event = form.kind == PartKind::OwnEvent;
                let is_left_out = match *place < next {
                    true => {
                        is_detail && shortening >= Shortening::NoDetails
                            || is_own_event && shortening >= Shortening::NoOwnEvent
                    }
                    false => shortening >= Shortening::NoNext,
                };
                !is_left_out || *place == 0
            })
            .map(|(_, (text, form))| {
                let short = form.shorter.iter().take(shortening.steps(form.kind)).next_back();
                ShownPart { text: short.unwrap_or(text), form }
            })
            .collect()
    }

    pub fn text(&self) -> String {
        self.parts.join(SEPARATOR)
    }
}

const SEPARATOR: &str = " · ";

/// A phrase of a finding, which may contain times, such as countdowns.
#[derive(Debug)]
struct Phrase {
    text: String,
    /// The text of the phrase without its times.
    outline: String,
}

impl<T: Into<String>> From<T> for Phrase {
    fn from(words: T) -> Self {
        let text = words.into();
        Self { outline: text.clone(), text }
    }
}

impl Phrase {
    fn time(mut self, time: impl fmt::Display) -> Self {
        self.text += &time.to_string();
        self
    }

    fn and(mut self, words: &str) -> Self {
        self.text += words;
        self.outline += words;
        self
    }

    fn and_phrase(mut self, other: Self) -> Self {
        self.text += &other.text;
        self.outline += &other.outline;
        self
    }
}

/// One statement of the verdict, with its level.
#[derive(Debug)]
struct Finding {
    level: VerdictLevel,
    phrase: Phrase,
    /// The node that the finding is about; `None` if it is not about a single node.
    node: Option<NodeName>,
    form: PartForm,
}

impl Finding {
    fn new(level: VerdictLevel, phrase: impl Into<Phrase>) -> Self {
        Self { level, phrase: phrase.into(), node: None, form: PartForm::default() }
    }

    /// Marks the finding as what happens next, or as the consequence, with shorter texts.
    fn shortens_to(self, kind: PartKind, shorter: Vec<String>) -> Self {
        Self { form: PartForm { kind, shorter }, ..self }
    }

    /// Adds details, which are left out first if space is short.
    fn with_details(mut self, details: Phrase) -> Self {
        if !details.text.is_empty() {
            let text = self.phrase.text.clone();
            self.form.shorter.retain(|shorter| *shorter != text);
            self.form.shorter.insert(0, text);
            self.phrase = self.phrase.and_phrase(details);
        }
        self
    }
}

/// Returns the finding about the connection: the watches are down, the controller is missing, or nodes and Leases are
/// not listed yet.
fn connection(model: &Model, now: Timestamp) -> Vec<Finding> {
    let confidence = model.views.confidence;
    let finding = match confidence {
        Some(Confidence::Live | Confidence::Assumed) => None,
        Some(Confidence::Disconnected { since }) => {
            let phrase = Phrase::from("disconnected ").time(seconds(now.since(since))).and(": states frozen");
            Some(Finding::new(VerdictLevel::Disconnected, phrase))
        }
        Some(Confidence::NoController { since }) => {
            let phrase = Phrase::from("no active kube-controller-manager for ");
            let phrase = phrase.time(seconds(now.since(since))).and(": no evictions");
            Some(Finding::new(VerdictLevel::Critical, phrase))
        }
        None if model.cluster.nodes().is_synced() => {
            Some(Finding::new(VerdictLevel::Disconnected, "waiting for the Leases of nodes and controller"))
        }
        None => Some(Finding::new(VerdictLevel::Disconnected, "waiting for nodes")),
    };
    finding.into_iter().collect()
}

/// Finding about flapping nodes: `node n-3 flaps: Ready changed 4 times in 10m`, in short `n-3 flaps: 4 times in 10m`.
fn flapping(model: &Model, now: Timestamp) -> Option<Finding> {
    let flapping: Vec<(&NodeName, usize)> = model.watchlist.flapping(now).collect();
    let (text, shorter) = match flapping[..] {
        [] => return None,
        [(node, changes)] => (
            format!("node {node} flaps: Ready changed {changes} times in 10m"),
            vec![format!("{node} flaps: {changes} times in 10m")],
        ),
        ref several => (format!("{} nodes flap", several.len()), Vec::new()),
    };
    Some(Finding::new(VerdictLevel::Warning, text).shortens_to(PartKind::Other, shorter))
}

/// Finding about workloads without a running pod, although all nodes may be Ready: `web has no running pod`.
fn idle_workloads(model: &Model) -> Option<Finding> {
    let text = match &model.views.idle_workloads.keys[..] {
        [] => return None,
        [one] => format!("{} has no running pod", one.name),
        [first, others @ ..] => {
            let others = counted(others.len(), "other workload", "other workloads");
            format!("{} and {others} have no running pod", first.name)
        }
    };
    Some(Finding::new(VerdictLevel::Warning, text))
}

/// Finding about pods that are evicted from a node and come back to it, again and again: `pods of web are evicted from
/// n-3 (DiskPressure) and come back: 30 in the last minute, about 1800 an hour`.
fn eviction_loops(model: &Model, now: Timestamp) -> Option<Finding> {
    let loops = model.eviction_loops(now);
    let phrase = match &loops[..] {
        [] => return None,
        [one] => Phrase::from(one.subject() + ": ").time(one.rate()),
        [first, others @ ..] => {
            let others = counted(others.len(), "other workload", "other workloads");
            Phrase::from(first.subject() + ": ").time(first.rate()).and(&format!(", and those of {others}"))
        }
    };
    Some(Finding::new(VerdictLevel::Warning, phrase))
}

/// Finding about Ready nodes that an operator has to put back into service: `node n-3 is Ready, but still tainted
/// out-of-service: remove that taint`.
fn left_out_of_service(model: &Model) -> Option<Finding> {
    let nodes = model.watchlist.out_of_service();
    let which = match nodes.len() {
        0 => return None,
        1 => format!("node {} is Ready, but", nodes.first()?),
        several => format!("{several} nodes are Ready, but"),
    };
    let text = format!("{which} still tainted out-of-service: remove that taint");
    Some(Finding::new(VerdictLevel::Notice, text))
}

/// Finding about a grace period that is not longer than the interval between heartbeats: `--node-monitor-grace-period
/// 10s is not longer than the renewal interval of kubelets (up to 10.4s): healthy nodes may become Unknown and flap`.
fn short_grace(model: &Model) -> Option<Finding> {
    let short = model.views.short_grace?;
    Some(Finding::new(VerdictLevel::Warning, short.to_string()))
}

/// Returns the finding about kinds that the verdict needs but that are not listed yet: `loading: pods 120,000 of
/// 150,000, services`, `loading: pods, jobs, services and 4 more`.
fn loading(model: &Model) -> Option<Finding> {
    model.views.confidence?;
    let missing = model.loading();
    let kind = |gap: &Gap| match model.feeds.state(gap.kind) {
        Some(FeedState::Listing { received, expected: Some(expected) }) if *received > 0 => {
            format!("{} {received} of {expected}", gap.kind)
        }
        _ => gap.kind.to_string(),
    };
    let others = match missing.0.len() {
        ..=NAMED => String::new(),
        kinds => format!(" and {} more", kinds - NAMED),
    };
    let phrase = |kind: &dyn Fn(&Gap) -> String| {
        let kinds: Vec<String> = missing.0.iter().take(NAMED).map(kind).collect();
        format!("loading: {}{others}", kinds.join(", "))
    };
    (!missing.is_empty()).then(|| {
        let phrase = Phrase { text: phrase(&kind), outline: phrase(&|gap| gap.kind.to_string()) };
        Finding::new(VerdictLevel::Notice, phrase)
    })
}

/// Maximum number of loading kinds that the verdict names.
const NAMED: usize = 3;

/// Returns the counts of all nodes, for a cluster without other findings: `all 30 nodes Ready`, `28 of 30 nodes Ready,
/// 2 Cordoned by alice`.
fn all_well(model: &Model) -> Option<Finding> {
    let counts = model.watchlist.counts();
    let nodes = model.cluster.nodes().len();
    let ready = counts.get(&NodeState::Ready).copied().unwrap_or(0);
    if nodes == 0 {
        return Some(Finding::new(VerdictLevel::Notice, "no nodes"));
    }
    let mut text = if ready == nodes {
        format!("all {} Ready", counted(nodes, "node", "nodes"))
    } else {
        format!("{ready} of {} Ready", counted(nodes, "node", "nodes"))
    };
    for (state, count) in counts.iter().filter(|(state, _)| **state != NodeState::Ready) {
        text.push_str(&format!(", {count} {state}{}", by_whom(model, *state)));
    }
    Some(Finding::new(VerdictLevel::Healthy, text))
}

/// Returns who drained or cordoned the nodes in this state, if it is the same for all of them: ` by alice`; otherwise
/// the empty string.
fn by_whom(model: &Model, state: NodeState) -> String {
    let nodes = model.watchlist.notable().filter(|(_, other)| *other == state);
    let mut by = nodes.map(|(name, _)| {
        let node = model.cluster.node(name)?;
        let foreign = || model.node_status(node)?.by;
        node.cordon().map(|note| note.by.as_str()).or_else(foreign)
    });
    match by.next().flatten() {
        Some(one) if !one.is_empty() && by.all(|other| other == Some(one)) => format!(" by {one}"),
        _ => String::new(),
    }
}

/// Returns a finding for each DeviceTaintRule with the effect `None` that would delete pods if its effect were
/// NoExecute.
fn taint_rules(model: &Model) -> Vec<Finding> {
    let previews = taint_rule_previews(&model.cluster, model.settings.version);
    let words = |preview: &TaintRulePreview| {
        let pods = counted(preview.pods.len(), "pod", "pods");
        format!("DeviceTaintRule {} is a preview: with NoExecute it would delete {pods}", preview.rule)
    };
    let previews = previews.iter().filter(|preview| !preview.pods.is_empty());
    previews.map(|preview| Finding::new(VerdictLevel::Notice, words(preview))).collect()
}

/// Returns the finding that the heartbeats are unknown, because the files have no Leases.
fn unknown_heartbeats(model: &Model) -> Option<Finding> {
    let cluster = &model.cluster;
    let is_unknown = cluster.known(FeedKind::Leases) == Known::Absent && !cluster.nodes().is_empty();
    is_unknown.then(|| Finding::new(VerdictLevel::Notice, "heartbeats unknown: the files have no Leases"))
}

/// Returns the finding that the pods are not known. Either the list of pods is stale, or the files have no pods, or a
/// flag says not to read pods, or kordon has no permission to list them.
fn gaps(model: &Model, now: Timestamp) -> Option<Finding> {
    if matches!(model.views.confidence, None | Some(Confidence::Disconnected { .. })) {
        // Another finding already reports that the connection is broken or that lists are missing.
        return None;
    }
    let gap = model.cluster.gap(FeedKind::Pods)?;
    let text = match gap.known {
        Known::Stale { since } => {
            let phrase = Phrase::from("pods stale for ").time(seconds(now.since(since)));
            return Some(Finding::new(VerdictLevel::Warning, phrase));
        }
        Known::Forbidden { .. } => "evictions unknown: no permission to list pods",
        Known::Absent => "evictions unknown: the files have no pods",
        Known::Off { flag } => {
            // The user chose with a flag that pods are not read, so this finding does not raise the level of the
            // verdict.
            return Some(Finding::new(VerdictLevel::Healthy, format!("pods are not read ({flag})")));
        }
        // Pods that are not listed yet are reported by `loading`.
        Known::Live | Known::NotListed => return None,
    };
    Some(Finding::new(VerdictLevel::Notice, text))
}

/// Returns the age in seconds or, from one minute on, in whole minutes: `12s`, `2m`.
fn coarse(age: Span) -> String {
    match age.as_secs() {
        secs @ ..60 => format!("{secs}s"),
        secs => format!("{}m", secs / 60),
    }
}

/// Returns the time until `at`, rounded up to seconds: `in 1m12s`. If `at` has passed, returns `now`.
fn time_until(at: Timestamp, now: Timestamp) -> String {
    let left = at.since(now);
    if left <= Span::ZERO {
        return "now".into();
    }
    format!("in {}", left.rounded_up())
}

/// Rounds a time span down to whole seconds; a negative span becomes zero.
fn seconds(span: Span) -> Span {
    Span::from_secs(span.or_zero().as_secs())
}
