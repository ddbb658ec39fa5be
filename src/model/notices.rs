//! Notices about changes of a cluster: the rules by which a user selects changes, and the search for changes.

use std::{collections::BTreeMap, fmt};

use super::{ClusterVerdict, Model, Moment, MomentFinder, MomentKind, VerdictLevel};
use kordon_core::{
    cluster::{NodeName, OperationId},
    plan::BlockedDrain,
};
use kordon_time::Timestamp;

/// A kind of change that the user asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticeRule {
    /// The level of the verdict changed, and is or was at least this level. Written as `verdict>=warning`.
    Verdict(VerdictLevel),
    /// A node changed its state, joined or was deleted. Written as `node`.
    Node,
    /// A zone became disrupted, or is normal again. Written as `zone`.
    Zone,
    /// A drain by kordon removed all pods that it had to remove. Written as `drain-done`.
    DrainDone,
    /// PodDisruptionBudgets block a drain. Written as `drain-blocked`.
    DrainBlocked,
}

/// Levels of the verdict that a rule may name.
const LEVELS: [VerdictLevel; 4] =
    [VerdictLevel::Notice, VerdictLevel::Warning, VerdictLevel::Critical, VerdictLevel::Disconnected];

impl NoticeRule {
    /// Parses a rule.
    ///
    /// # Errors
    /// The text is no rule; the error lists the rules.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "node" => return Ok(Self::Node),
            "zone" => return Ok(Self::Zone),
            "drain-done" => return Ok(Self::DrainDone),
            "drain-blocked" => return Ok(Self::DrainBlocked),
            _ => {}
        }
        let level = text.strip_prefix("verdict").and_then(|rest| rest.trim_start().strip_prefix(">="));
        let level = level.and_then(|level| LEVELS.into_iter().find(|known| known.as_str() == level.trim()));
        level.map(Self::Verdict).ok_or_else(|| {
            "not verdict>=notice, warning, critical or disconnected, node, zone, drain-done or drain-blocked".into()
        })
    }
}

impl fmt::Display for NoticeRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Verdict(level) => write!(f, "verdict>={}", level.as_str()),
            Self::Node => f.write_str("node"),
            Self::Zone => f.write_str("zone"),
            Self::DrainDone => f.write_str("drain-done"),
            Self::DrainBlocked => f.write_str("drain-blocked"),
        }
    }
}

/// Kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    Verdict,
    Node,
    Zone,
    DrainDone,
    DrainBlocked,
    /// A test of the delivery of notices. Nothing has changed.
    Test,
}

impl ChangeKind {
    /// Stable word for the kind, used in commands and webhooks.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Verdict => "verdict",
            Self::Node => "node",
            Self::Zone => "zone",
            Self::DrainDone => "drain-done",
            Self::DrainBlocked => "drain-blocked",
            Self::Test => "test",
        }
    }
}

/// A notice about a change, in words. The words contain text from the cluster, which may be hostile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeNotice {
    pub kind: ChangeKind,
    /// The node, zone or description that the change is about; empty for the verdict.
    pub object: String,
    pub title: String,
    pub text: String,
}

impl ChangeNotice {
    /// Returns a test notice, which shows the user whether notices arrive.
    pub fn test() -> Self {
        Self {
            kind: ChangeKind::Test,
            object: String::new(),
            title: "test".into(),
            text: "notifications of kordon arrive".into(),
        }
    }

    /// Merges notices that came at the same time: the first one, followed by the titles of the others.
    pub fn merged(notices: Vec<Self>) -> Option<Self> {
        let mut notices = notices.into_iter();
        let mut first = notices.next()?;
        for other in notices {
            first.text = format!("{}; {}", first.text, other.title);
        }
        Some(first)
    }
}

/// Finds changes by comparing each state of a model with the state before.
#[derive(Clone, Debug)]
pub struct NoticeFinder {
    rules: Vec<NoticeRule>,
    moments: MomentFinder,
    /// State at the last comparison; `None` until the engine has started and all lists have arrived.
    known: Option<KnownState>,
}

/// The state that notices are about, as known at one moment.
#[derive(Clone, Debug)]
struct KnownState {
    level: VerdictLevel,
    /// Text of the verdict.
    text: String,
    /// The nodes that a drain has emptied, each with the id of the drain.
    drained: BTreeMap<NodeName, OperationId>,
    blocked: BTreeMap<NodeName, String>,
}

impl NoticeFinder {
    pub fn new(rules: Vec<NoticeRule>) -> Self {
        Self { rules, moments: MomentFinder::default(), known: None }
    }

    /// Replaces the rules. The state at the last comparison is kept, so no change is missed.
    pub fn set_rules(&mut self, rules: Vec<NoticeRule>) {
        self.rules = rules;
    }

    /// Forgets the state at the last comparison, so the next call finds no changes.
    pub fn forget(&mut self) {
        if self.known.take().is_some() {
            self.moments = MomentFinder::default();
        }
    }

    /// Returns the changes since the last call, as far as the rules select them. The first call returns none, because
    /// there is nothing to compare with. The model must be refreshed at `now`.
    pub fn look(&mut self, model: &Model, now: Timestamp) -> Vec<ChangeNotice> {
        // While lists arrive, the verdict changes although the cluster does not.
        let is_loading = || model.feeds.iter().any(|(kind, _)| !model.feeds.has_answered(kind));
        if model.views.confidence.is_none() || (self.known.is_none() && is_loading()) {
            return Vec::new();
        }
        self.moments.look(model, now);
        let moments = self.moments.take();
        let before = self.known.replace(KnownState::new(model, now));
        match (before, &self.known) {
            (Some(before), Some(after)) => changes(&self.rules, &before, after, &moments),
            _ => Vec::new(),
        }
    }
}

impl KnownState {
    fn new(model: &Model, now: Timestamp) -> Self {
        let verdict = ClusterVerdict::new(model, now);
        let nodes = model.cluster.nodes().iter();
        let drained =
            nodes.filter_map(|node| Some((node.name.clone(), node.drained.as_ref()?.operation.clone())));
        let blocked = model.views.blocked_drains.iter();
        let in_words = |drain: &BlockedDrain| format!("by {drain}; {}", drain.advice());
        Self {
            level: verdict.level,
            text: verdict.text(),
            drained: drained.collect(),
            blocked: blocked.map(|drain| (drain.node.clone(), in_words(drain))).collect(),
        }
    }
}

/// Finds the changes between two states, and returns those that the rules select. `moments` are the notable moments
/// between the two states.
fn changes(
    rules: &[NoticeRule],
    before: &KnownState,
    after: &KnownState,
    moments: &[Moment],
) -> Vec<ChangeNotice> {
    let mut found = Vec::new();
    for rule in rules {
        match rule {
            NoticeRule::Verdict(least) => found.extend(verdict_change(*least, before, after)),
            NoticeRule::Node => found.extend(node_changes(moments, after)),
            NoticeRule::Zone => found.extend(zone_changes(moments, after)),
            NoticeRule::DrainDone => found.extend(drains_done(before, after)),
            NoticeRule::DrainBlocked => found.extend(drains_blocked(before, after)),
        }
    }
    found
}

fn verdict_change(least: VerdictLevel, before: &KnownState, after: &KnownState) -> Option<ChangeNotice> {
    let is_asked_for = before.level.max(after.level) >= least;
    (before.level != after.level && is_asked_for).then(|| ChangeNotice {
        kind: ChangeKind::Verdict,
        object: String::new(),
        title: format!("verdict {}, was {}", after.level.as_str(), before.level.as_str()),
        text: after.text.clone(),
    })
}

fn node_changes<'a>(moments: &'a [Moment], after: &'a KnownState) -> impl Iterator<Item = ChangeNotice> + 'a {
    let is_node = |moment: &&Moment| {
        matches!(moment.kind, MomentKind::Node(_) | MomentKind::NodeJoined | MomentKind::NodeDeleted)
    };
    moments.iter().filter(is_node).map(|moment| of_moment(ChangeKind::Node, moment, after))
}

fn zone_changes<'a>(moments: &'a [Moment], after: &'a KnownState) -> impl Iterator<Item = ChangeNotice> + 'a {
    let is_zone = |moment: &&Moment| matches!(moment.kind, MomentKind::Zone(_));
    moments.iter().filter(is_zone).map(|moment| of_moment(ChangeKind::Zone, moment, after))
}

fn of_moment(kind: ChangeKind, moment: &Moment, after: &KnownState) -> ChangeNotice {
    let (object, title) = (moment.subject.clone(), moment.text());
    ChangeNotice { kind, object, title, text: after.text.clone() }
}

fn drains_done<'a>(before: &'a KnownState, after: &'a KnownState) -> impl Iterator<Item = ChangeNotice> + 'a {
    let new = after.drained.iter().filter(|(node, drain)| before.drained.get(*node) != Some(*drain));
    new.map(|(node, _)| ChangeNotice {
        kind: ChangeKind::DrainDone,
        object: node.to_string(),
        title: format!("drain of {node} done"),
        text: "all pods that it had to remove are gone".into(),
    })
}

fn drains_blocked<'a>(
    before: &'a KnownState,
    after: &'a KnownState,
) -> impl Iterator<Item = ChangeNotice> + 'a {
    let new = after.blocked.iter().filter(|(node, _)| !before.blocked.contains_key(*node));
    new.map(|(node, text)| ChangeNotice {
        kind: ChangeKind::DrainBlocked,
        object: node.to_string(),
        title: format!("drain of {node} blocked"),
        text: text.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::NodeState;

    fn state(level: VerdictLevel) -> KnownState {
        KnownState { level, text: "the verdict".into(), drained: BTreeMap::new(), blocked: BTreeMap::new() }
    }

    fn titles(rule: &str, before: &KnownState, after: &KnownState, moments: &[Moment]) -> Vec<String> {
        let rule = NoticeRule::parse(rule).expect("a rule");
        changes(&[rule], before, after, moments).into_iter().map(|notice| notice.title).collect()
    }

    #[test]
    fn rules_are_printed_as_they_are_written_and_others_are_refused() {
        let all = ["verdict>=notice", "verdict>=disconnected", "node", "zone", "drain-done", "drain-blocked"];
        for text in all {
            assert_eq!(NoticeRule::parse(text).expect(text).to_string(), text);
        }
        assert_eq!(
            NoticeRule::parse("verdict >= critical").expect("spaces").to_string(),
            "verdict>=critical"
        );
        for wrong in ["", "verdict", "verdict>warning", "verdict>=healthy", "verdict>=warn", "nodes", "drain"]
        {
            let error = NoticeRule::parse(wrong).expect_err(wrong);
            assert!(error.contains("drain-blocked"), "{error}");
        }
    }

    #[test]
    fn a_verdict_is_told_when_it_crosses_or_changes_above_the_level_and_when_it_ends() {
        use VerdictLevel::{Critical, Healthy, Notice, Warning};
        let told = |before, after| titles("verdict>=warning", &state(before), &state(after), &[]);
        assert_eq!(told(Healthy, Warning), ["verdict warning, was healthy"]);
        assert_eq!(told(Warning, Critical), ["verdict critical, was warning"]);
        assert_eq!(told(Critical, Healthy), ["verdict healthy, was critical"]);
        for (before, after) in [(Healthy, Notice), (Notice, Healthy), (Warning, Warning)] {
            assert_eq!(told(before, after), Vec::<String>::new());
        }
    }

    #[test]
    fn a_drain_is_done_once_and_blocked_once() {
        let empty = state(VerdictLevel::Healthy);
        let mut done = empty.clone();
        done.drained.insert("n1".into(), "a".parse().expect("an id"));
        assert_eq!(titles("drain-done", &empty, &done, &[]), ["drain of n1 done"]);
        assert_eq!(titles("drain-done", &done, &done, &[]), Vec::<String>::new());
        let mut again = done.clone();
        again.drained.insert("n1".into(), "b".parse().expect("an id"));
        assert_eq!(titles("drain-done", &done, &again, &[]), ["drain of n1 done"], "another drain");
        let mut blocked = empty.clone();
        blocked.blocked.insert("n2".into(), "by shop/web".into());
        assert_eq!(titles("drain-blocked", &empty, &blocked, &[]), ["drain of n2 blocked"]);
        assert_eq!(titles("drain-blocked", &blocked, &blocked, &[]), Vec::<String>::new());
        assert_eq!(titles("drain-done", &empty, &blocked, &[]), Vec::<String>::new());
    }

    #[test]
    fn each_rule_takes_its_own_moments() {
        let state = state(VerdictLevel::Critical);
        let moment = |kind| Moment::new(Timestamp::EPOCH, kind, VerdictLevel::Critical, "a");
        let moments = [
            moment(MomentKind::Node(NodeState::Silent)),
            moment(MomentKind::NodeDeleted),
            moment(MomentKind::Zone(kordon_core::engine::ZoneState::FullDisruption)),
            moment(MomentKind::Eviction),
        ];
        assert_eq!(titles("node", &state, &state, &moments), ["node a Silent", "node a deleted"]);
        assert_eq!(titles("zone", &state, &state, &moments), ["zone a down"]);
        assert_eq!(titles("verdict>=notice", &state, &state, &moments), Vec::<String>::new());
    }

    #[test]
    fn notices_of_one_moment_are_one_with_all_titles() {
        let notice = |title: &str| ChangeNotice { title: title.into(), ..ChangeNotice::test() };
        assert_eq!(ChangeNotice::merged(Vec::new()), None);
        let merged = ChangeNotice::merged(vec![notice("a"), notice("b"), notice("c")]).expect("one");
        assert_eq!(
            (merged.title.as_str(), merged.text.as_str()),
            ("a", "notifications of kordon arrive; b; c")
        );
    }
}
