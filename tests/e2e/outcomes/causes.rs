//! Why outcomes differ from their predictions.

use std::{collections::BTreeMap, fmt};

use kordon_time::{Span, Timestamp};
use serde_json::Value;

use super::{
    Act, Done, Homes,
    workloads::{AGENT, NAMESPACE},
};

/// Pods that are evicted within this time of each other are replaced in random order.
const AT_ONCE: Span = Span::from_secs(5);
/// Time from the silence of a node until its pods are evicted: grace period, queue and toleration.
const NOTICED: Span = Span::from_secs(40);
/// Time from a taint until the pods with a limited toleration are evicted.
const TOLERATED: Span = Span::from_secs(15);
/// Maximum age of a prediction.
const PREDICTED_WITHIN: Span = Span::from_secs(3);

/// A reason why an outcome differs from its prediction. Every reason arises between the start of the pod's deletion and
/// the reading of its outcome.
enum Cause {
    /// An action on the old pod's node ended the wait for the old pod: the node came back, was deleted, or was tainted
    /// out-of-service.
    NodeOfOldPod,
    /// The predicted node became silent.
    PredictedNodeLost,
    /// The node of the replacement came back, or lost its taint.
    OtherNodeBack,
    /// The node of the replacement was silent but not tainted yet; predictions leave out such nodes (docs/outcomes.md).
    SilentNode,
    /// The node of the replacement was tainted, and its pods left after the time for which they tolerate the taint.
    OthersLeft,
    /// Another pod was placed on the predicted node or on the actual node at almost the same time. Which of the two
    /// pods is placed first is random.
    PlacedAtOnce,
    /// A node became schedulable or unschedulable, and the prediction did not include that change yet: outcomes are
    /// computed once a second, on another thread.
    OlderPrediction,
    /// Another pod took the room on the predicted node. All pods that need this room tolerate the node's taint only for
    /// some time, so they take turns.
    TakesTurns,
    /// Another pod of the same owner was replaced before this pod, although its replacement was not predicted so soon: the
    /// outcome of that pod is a difference, too. The scheduler spreads the pods of an owner over zones and nodes, so each
    /// one changes the scores of the next.
    OtherReplaced,
    /// Another replacement did not take its predicted room on the node of this one, or took room on the predicted node of
    /// this one: the outcome of that pod is a difference, too.
    RoomChanged,
    /// Another pod of the same Job failed before the replacement was created, which starts a longer back-off.
    JobFailedAgain,
}

/// Describes each difference, with its explanation.
pub fn explain(
    differences: &BTreeMap<(String, String), Value>,
    done: &[Done],
    homes: &Homes,
) -> Vec<(String, Option<String>)> {
    let run = Run { differences, done, homes };
    let explain = |difference| {
        let difference = Difference::new(difference, run)?;
        let cause = difference.causes().iter().find_map(|cause| difference.evidence(cause));
        let siblings = if cause.is_none() { siblings(difference.pod, homes) } else { String::new() };
        Some((format!("{difference}{siblings}"), cause))
    };
    differences.iter().filter_map(explain).collect()
}

/// What happened while nodes failed, and all differences.
#[derive(Clone, Copy)]
struct Run<'a> {
    differences: &'a BTreeMap<(String, String), Value>,
    done: &'a [Done],
    homes: &'a Homes,
}

/// An outcome that differs from its prediction.
struct Difference<'a> {
    /// The start of the pod's deletion, as it was reported.
    at: &'a str,
    pod: &'a str,
    began: Timestamp,
    /// Time at which the outcome was read.
    read: Timestamp,
    /// The node of the old pod.
    home: &'a str,
    predicted: &'a str,
    /// The predicted node.
    expected: &'a str,
    became: &'a str,
    /// The node of the replacement.
    node: &'a str,
    run: Run<'a>,
}

impl<'a> Difference<'a> {
    fn new(((at, pod), reported): (&'a (String, String), &'a Value), run: Run<'a>) -> Option<Self> {
        let text = |field: &str| reported[field].as_str().unwrap_or("-");
        let began = Timestamp::parse(at)?;
        let home = run.homes.get(pod).and_then(|homes| homes.iter().rev().find(|(seen, _)| *seen <= began));
        Some(Self {
            at,
            pod,
            began,
            read: Timestamp::parse(text("readAt"))?,
            home: home.map_or("-", |(_, node)| node),
            predicted: text("predicted"),
            expected: text("predictedNode"),
            became: text("became"),
            node: text("node"),
            run,
        })
    }

    /// Returns the causes that lead to exactly this difference.
    fn causes(&self) -> &'static [Cause] {
        match (self.predicted, self.became) {
            ("stuck" | "replacedWhenGone", "moves" | "notStarted" | "pending") => &[Cause::NodeOfOldPod],
            ("moves", "moves") => &[
                Cause::PredictedNodeLost,
                Cause::OtherNodeBack,
                Cause::PlacedAtOnce,
                Cause::OlderPrediction,
                Cause::TakesTurns,
                Cause::OtherReplaced,
                Cause::RoomChanged,
            ],
            ("moves", "notStarted") => {
                &[Cause::PredictedNodeLost, Cause::OtherNodeBack, Cause::SilentNode, Cause::PlacedAtOnce]
            }
            ("moves", "pending") => {
                &[Cause::PredictedNodeLost, Cause::PlacedAtOnce, Cause::OlderPrediction, Cause::TakesTurns]
            }
            ("sameNode", "moves") => &[Cause::OtherNodeBack, Cause::TakesTurns, Cause::OlderPrediction],
            ("sameNode", "pending") => &[Cause::TakesTurns],
            ("pending", "moves") => &[Cause::OtherNodeBack, Cause::OthersLeft],
            ("pending", "notStarted") => &[Cause::OtherNodeBack, Cause::SilentNode, Cause::OthersLeft],
            ("moves", "stuck" | "notReplaced") => &[Cause::JobFailedAgain],
            _ => &[],
        }
    }

    /// Returns what shows that this cause applies; `None` if it does not.
    fn evidence(&self, cause: &Cause) -> Option<String> {
        let Self { home, expected, node, .. } = *self;
        match cause {
            Cause::NodeOfOldPod => {
                self.act(home, &[Act::Back, Act::InService, Act::Deleted, Act::OutOfService])
            }
            Cause::PredictedNodeLost => self.act(expected, &[Act::Lost]),
            Cause::OtherNodeBack => {
                self.act(node, &[Act::Back, Act::InService, Act::JoinedAgain, Act::Untainted])
            }
            Cause::SilentNode => {
                let last = self.last_act_before(node);
                last.filter(|done| done.act == Act::Lost).map(|_| format!("{node} was silent"))
            }
            Cause::OthersLeft => self.others_left(),
            Cause::PlacedAtOnce => self.placed_at_once(),
            Cause::OtherReplaced => self.other_replaced(),
            Cause::RoomChanged => self.room_changed(),
            Cause::JobFailedAgain => self.job_failed_again(),
            Cause::TakesTurns => self.takes_turns(),
            Cause::OlderPrediction => self.older_prediction(),
        }
    }

    /// Finds one of these acts on a node, between the start of the pod's deletion and the reading of its outcome.
    fn act(&self, node: &str, acts: &[Act]) -> Option<String> {
        let is_meant = |done: &&Done| {
            done.node == node && acts.contains(&done.act) && done.at > self.began && done.at <= self.read
        };
        self.run.done.iter().find(is_meant).map(|done| format!("{node} {}", done.act.word()))
    }

    /// Returns the last act on a node before the pod's deletion began.
    fn last_act_before(&self, node: &str) -> Option<&'a Done> {
        self.run.done.iter().rev().find(|done| done.node == node && done.at <= self.began)
    }

    /// Whether another pod may take the room of this one. The pods of the DaemonSet are left out: they are small, and
    /// go to one node each.
    fn takes_room(&self, other: &str) -> bool {
        other != self.pod && !other.starts_with(&format!("{NAMESPACE}/{AGENT}-"))
    }

    fn others_left(&self) -> Option<String> {
        let Self { node, began, read, .. } = *self;
        // The taint that the node had last, and that was not removed before the pod's deletion began.
        let acts = self.run.done.iter().filter(|done| done.node == node && done.at <= read);
        let tainted = acts.clone().rev().find(|done| done.act == Act::Tainted)?;
        let mut later = acts.filter(|done| done.at > tainted.at && done.at <= began);
        later.next().is_none().then(|| format!("{node} was tainted"))
    }

    fn placed_at_once(&self) -> Option<String> {
        let Self { expected, node, began, .. } = *self;
        let at_once = |(seen, other): &(Timestamp, String)| {
            (other == expected || other == node) && *seen > began && seen.since(began) < AT_ONCE
        };
        let mut homes = self.run.homes.iter();
        let other = homes.find(|(other, homes)| self.takes_room(other) && homes.iter().any(at_once));
        other.map(|(other, _)| format!("{other} was placed at the same time"))
    }

    fn other_replaced(&self) -> Option<String> {
        let Self { pod, began, run: Run { differences, homes, .. }, .. } = *self;
        let after = |(seen, _): &&(Timestamp, String)| *seen > began;
        let own = homes.get(pod).and_then(|homes| homes.iter().find(after)).map(|(seen, _)| *seen)?;
        let is_replaced = |((at, other), difference): &(&(String, String), &Value)| {
            let read = difference["readAt"].as_str().and_then(Timestamp::parse);
            let Some((at, read)) = Timestamp::parse(at).zip(read) else { return false };
            let mut homes = homes.get(other).into_iter().flatten();
            homes.any(|(seen, _)| *seen > began.max(at) && *seen <= own.min(read))
        };
        let mut others = differences.iter().filter(|((_, other), difference)| {
            other != pod && owner(other) == owner(pod) && difference["predicted"] != "moves"
        });
        let other = others.find(is_replaced);
        other.map(|((_, other), _)| format!("{other} was replaced first"))
    }

    fn room_changed(&self) -> Option<String> {
        let Self { pod, began, read, expected, node, run, .. } = *self;
        let other = run.differences.iter().find(|((at, other), difference)| {
            let is_between = |at: Timestamp| began.since(at) < AT_ONCE && at <= read;
            let moves = difference["predicted"] == "moves" && difference["became"] == "moves";
            let is_of_room = difference["predictedNode"] == node || difference["node"] == expected;
            other != pod && Timestamp::parse(at).is_some_and(is_between) && moves && is_of_room
        });
        other.map(|((_, other), _)| format!("the replacement of {other} went elsewhere"))
    }

    fn job_failed_again(&self) -> Option<String> {
        let Self { pod, home, began, read, run: Run { done, homes, .. }, .. } = *self;
        let failed = |(other, homes): &(&String, &Vec<(Timestamp, String)>)| {
            let is_on = |done: &Done| {
                let last = homes.iter().rev().find(|(seen, _)| *seen <= done.at);
                last.is_some_and(|(_, node)| *node == done.node)
            };
            // The prediction includes the pods of nodes that were lost together with this pod's node.
            let is_between = |done: &&Done| {
                let takes = match done.act {
                    Act::Lost => NOTICED,
                    Act::Tainted => TOLERATED,
                    _ => return false,
                };
                done.node != home && done.at + takes > began && done.at < read
            };
            other.contains("/report-") && *other != pod && done.iter().filter(is_between).any(is_on)
        };
        let other = homes.iter().find(failed).filter(|_| pod.contains("/report-"));
        other.map(|(other, _)| format!("{other} failed before its replacement was created"))
    }

    fn takes_turns(&self) -> Option<String> {
        let Self { began, read, .. } = *self;
        let place = if self.predicted == "sameNode" { self.home } else { self.expected };
        let last = self.last_act_before(place);
        let last = last.filter(|done| matches!(done.act, Act::Tainted | Act::Untainted));
        let is_here = |(seen, other): &(Timestamp, String)| other == place && *seen > began && *seen < read;
        let mut homes = self.run.homes.iter();
        let taker = homes.find(|(other, homes)| self.takes_room(other) && homes.iter().any(is_here));
        last.and(taker).map(|(other, _)| format!("{other} took its turn on {place}"))
    }

    fn older_prediction(&self) -> Option<String> {
        let began = self.began;
        let just_before = |done: &&Done| {
            done.act != Act::Lost && done.at <= began && began.since(done.at) < PREDICTED_WITHIN
        };
        let done = self.run.done.iter().find(just_before);
        done.map(|done| format!("predicted before {} {}", done.node, done.act.word()))
    }
}

impl fmt::Display for Difference<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, pod, home, predicted, expected, became, node, .. } = self;
        write!(f, "{at} {pod} on {home}: predicted {predicted} {expected}, became {became} {node}")
    }
}

/// Lists the pods of the same owner with their nodes, to help investigate a difference without a cause.
fn siblings(pod: &str, homes: &Homes) -> String {
    let of_owner = homes.iter().filter(|(other, _)| owner(other) == owner(pod));
    let line = |(name, homes): (&String, &Vec<(Timestamp, String)>)| {
        let homes: Vec<String> = homes.iter().map(|(seen, node)| format!("{node} {seen}")).collect();
        format!("\n        {name}: {}", homes.join(", "))
    };
    of_owner.map(line).collect()
}

/// Returns the namespace and name of the owner of a pod: the name of the pod without its last part.
fn owner(pod: &str) -> &str {
    pod.rsplit_once('-').map_or(pod, |(owner, _)| owner)
}
