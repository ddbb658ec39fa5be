//! Explains which remediation of medik8s fences an unhealthy node, and what prevents that, from the NodeHealthChecks.

use super::{Explainer, Step, Tense, Topic};
use crate::cluster::{KnownHealthChecks, Name, Node, NodeHealthCheck, StartedRemediation};

/// Label that excludes a node from remediation, if its value is `true` (medik8s/common, `pkg/labels/labels.go`).
const EXCLUDE: &str = "remediation.medik8s.io/exclude-from-remediation";

/// Annotation of a node that its agent of Self Node Remediation may restart (medik8s/self-node-remediation 04f03f8,
/// `internal/utils/annotations.go`).
const REBOOT_CAPABLE: &str = "is-reboot-capable.self-node-remediation.medik8s.io";

impl Explainer<'_> {
    /// Adds which remediation fences the node and when, or why none does; or that this is not known.
    pub(super) fn explain_health_checks(&self, node: &Node, explanation: &mut Vec<Step>) {
        if !KnownHealthChecks::concern(node) {
            return;
        }
        match self.cluster.health_checks() {
            // The NodeHealthChecks have not been requested, or medik8s is not installed.
            KnownHealthChecks::NotRead | KnownHealthChecks::NotServed => {}
            KnownHealthChecks::Unreadable(why) => {
                let text = format!("whether medik8s fences it is not known: {why}");
                explanation.push(Step::new(Tense::Present, Topic::Drain, text));
            }
            KnownHealthChecks::Read(checks) => {
                let mut selecting =
                    checks.iter().filter(|check| check.selector.matches(&node.labels)).peekable();
                if selecting.peek().is_none() {
                    let text = "medik8s does not fence it: no NodeHealthCheck selects it".into();
                    explanation.push(Step::new(Tense::Never, Topic::Drain, text));
                }
                selecting.for_each(|check| self.explain_fencing(check, node, explanation));
            }
        }
    }

    fn explain_fencing(&self, check: &NodeHealthCheck, node: &Node, explanation: &mut Vec<Step>) {
        let name = &check.name;
        let mut say = |tense, at, text| {
            explanation.push(Step { at, ..Step::new(tense, Topic::Drain, text) });
        };
        let local = |time| self.cluster.local(time);
        for started in check.started_for(node) {
            let kind = &started.kind;
            match started.timed_out {
                Some(at) => say(
                    Tense::Past,
                    Some(local(at)),
                    format!("{kind} did not help in time (NodeHealthCheck {name})"),
                ),
                None => {
                    let text = format!("being fenced by {kind} (NodeHealthCheck {name})");
                    say(Tense::Present, started.at.map(local), text);
                    if let Some(why) = not_capable(node, kind) {
                        say(Tense::Never, None, why);
                    }
                    return;
                }
            }
        }
        let Some(next) = check.next_remediation(node) else {
            return say(Tense::Never, None, format!("NodeHealthCheck {name} has no remediation left to try"));
        };
        let Some((unhealthy, from)) = check.unhealthy_from(node) else {
            let text =
                format!("NodeHealthCheck {name} does not fence it: none of its unhealthyConditions holds");
            return say(Tense::Never, None, text);
        };
        if let Some(why) = self.hindrance(check, node) {
            return say(Tense::Never, None, format!("NodeHealthCheck {name} does not start {next}: {why}"));
        }
        let (kind, status) = (&unhealthy.kind, unhealthy.status.as_str());
        let text = format!(
            "fenced by {next} once {kind} is {status} for {} (NodeHealthCheck {name})",
            unhealthy.lasts
        );
        say(Tense::Future, Some(local(from)).filter(|from| *from > self.now), text);
        if let Some(why) = not_capable(node, next) {
            say(Tense::Never, None, why);
        }
    }

    /// Why a check starts no remediation of an unhealthy node; `None` if nothing that can be read prevents it. The order
    /// is that of upstream's `Reconcile`.
    fn hindrance(&self, check: &NodeHealthCheck, node: &Node) -> Option<String> {
        if let Some(why) = &check.disabled {
            return Some(format!("it is disabled: {why}"));
        }
        if !check.pause_requests.is_empty() {
            let requests: Vec<&str> = check.pause_requests.iter().map(Name::as_str).collect();
            return Some(format!("it is paused by {}", requests.join(", ")));
        }
        let (healthy, observed) = (check.healthy, check.observed);
        if let Some(needed) = check.needed_healthy().filter(|needed| healthy < *needed) {
            return Some(format!("{healthy} of {observed} nodes are healthy, and it needs {needed}"));
        }
        if check.is_storm {
            return Some("too many nodes were unhealthy a short time ago (StormActive)".into());
        }
        if node.label(EXCLUDE).is_some_and(|value| *value == *"true") {
            return Some(format!("the node has the label {EXCLUDE}"));
        }
        let is_fenced_control_plane = |started: &&StartedRemediation| {
            let other = self.cluster.node(&started.node).filter(|other| other.name != node.name);
            started.timed_out.is_none() && other.is_some_and(|other| other.is_control_plane())
        };
        let first = check.started.iter().find(is_fenced_control_plane).filter(|_| node.is_control_plane())?;
        Some(format!("it fences {} first, which runs the control plane, too", first.node))
    }
}

/// Why a remediation of this kind does not restart the node (`isNodeRebootCapable`); `None` if it does, or if the
/// annotations of the node are not known.
fn not_capable(node: &Node, kind: &Name) -> Option<String> {
    let annotations = node.annotations.as_ref().filter(|_| *kind == *"SelfNodeRemediation")?;
    let is_capable = annotations.get(REBOOT_CAPABLE).is_some_and(|value| *value == *"true");
    (!is_capable).then(|| format!("{kind} does not restart it: its annotation {REBOOT_CAPABLE} is not true"))
}
