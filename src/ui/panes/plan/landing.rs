//! Rows about placements: how to place pods that stay Pending, which Pending pods are placed because of the plan, and
//! the load of the nodes that receive pods.
//!
//! ```text
//! how to place Pending pods
//!            shop/web-7d4b9   help       fits n-2 and 3 more without the cordon
//! Pending pods that land here
//!            shop/web-5c2aa   lands      → n-3 (tie: 12 of 12 nodes)
//! nodes that receive pods
//!            n-4              +2         ███▒▒───────  pods 3 -> 5 of 110 (4 %) · cpu 1.2 -> 1.7 of 4 (42 %)
//! timeline
//!      ~31s  shop/web-7d4b9   replaced   n-4 (tie: 12 of 12 nodes)
//! ```

use super::{in_time, pod_name, since_made};
use crate::ui::{
    Scene,
    panes::{event_row::EventRow, evictions},
    text,
    theme::Role,
    widgets::Cell,
};
use kordon_core::{
    cluster::Key,
    forecast::Successor,
    plan::{Arrival, OutcomeKind, PlanMoment, PodOutcome, Receiver},
};
use kordon_time::Timestamp;

/// Row with a proposal for placing a Pending pod:
/// `     shop/web-7d4b9   help   fits n-2 and 3 more without the cordon`.
pub fn help(scene: &Scene, pod: &Key, help: &[String], place: usize) -> EventRow {
    let words = help.get(place).cloned().unwrap_or_default();
    // Only the first proposal for a pod shows the pod's name.
    let subject = if place == 0 { pod_name(scene, pod) } else { Cell::default() };
    EventRow {
        subject,
        state: Cell::new("help", scene.style(Role::CountdownSoon)),
        text: Cell::new(&text::brief(&words), scene.style(Role::Base)),
        ..EventRow::default()
    }
}

/// A Pending pod that is placed: `     shop/web-7d4b9   lands   → n-3 (tie: 12 of 12 nodes)`.
pub fn arrival(scene: &Scene, arrival: &Arrival) -> EventRow {
    let dim = scene.style(Role::Dim);
    EventRow {
        subject: pod_name(scene, &arrival.pod),
        state: Cell::new("lands", scene.style(Role::NodeReady)),
        text: Cell::new("→ ", dim)
            .and(&arrival.node, scene.style(Role::Base))
            .and(&format!(" ({})", arrival.why), dim),
        ..EventRow::default()
    }
}

/// The successor of an evicted pod: `in 5m54s  shop/web-7d4b9   lands   → n-3 (tie: 12 of 12 nodes)`.
pub fn successor(scene: &Scene, successor: &Successor, made: Timestamp) -> EventRow {
    let dim = scene.style(Role::Dim);
    let why = successor.why();
    let kind = successor.outcome.kind();
    let (word, role) = match successor.outcome {
        PodOutcome::Moves { .. } if successor.created.is_some() => ("lands", Role::NodeReady),
        PodOutcome::Moves { .. } => ("waits", Role::CountdownSoon),
        _ => (kind.words().0, evictions::role(kind)),
    };
    let text = match successor.node() {
        Some(node) => Cell::new("→ ", dim)
            .and(node, scene.style(Role::Base))
            .and(&format!(" ({})", text::brief(&why)), dim),
        None if kind == OutcomeKind::Unknown => {
            Cell::new(if why.is_empty() { "not predicted" } else { &why }, dim)
        }
        None => Cell::new(&text::brief(&why), scene.style(Role::Base)),
    };
    EventRow {
        when: in_time(scene, successor.created, made),
        subject: pod_name(scene, &successor.of),
        state: Cell::new(word, scene.style(role)),
        text,
    }
}

/// A node that receives pods:
/// `     n-4   +2   ███▒▒───────  pods 3 -> 5 of 110 (4 %) · cpu 1.2 -> 1.7 of 4 (42 %) · memory …`.
pub fn receiver(scene: &Scene, receiver: &Receiver) -> EventRow {
    let more = receiver.after.pods.requested - receiver.before.pods.requested;
    let mut shares = receiver_bar(scene, receiver);
    for (place, (resource, share)) in receiver.shares().into_iter().enumerate() {
        let gap = if place > 0 { " · " } else { "  " };
        shares = shares
            .and(gap, scene.style(Role::Faint))
            .and(resource, scene.style(Role::Dim))
            .and(&format!(" {share}"), scene.style(Role::Base));
        if resource == "pods" && receiver.others > 0 {
            let others = format!(", {} of them without the plan", receiver.others);
            shares = shares.and(&others, scene.style(Role::NodeNotice));
        }
    }
    EventRow {
        subject: Cell::new(&receiver.node, scene.style(Role::Strong)),
        state: Cell::new(&format!("{more:+}"), scene.style(Role::Base)),
        text: shares,
        ..EventRow::default()
    }
}

/// Width in cells of the bar of a node that receives pods.
const BAR: usize = 12;

/// Bar of the resource that is used most after the plan: requests before the plan, then requests that the plan adds:
/// `███▒▒───────`.
fn receiver_bar(scene: &Scene, receiver: &Receiver) -> Cell {
    let (before, after) = receiver.fullest();
    let cells = |share: f64| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a short bar")]
        let cells = (share.clamp(0.0, 1.0) * BAR as f64).round() as usize;
        cells
    };
    let (old, all) = (cells(before), cells(after));
    let old = old.min(all);
    let role = if after >= 0.9 { Role::GaugeHigh } else { Role::GaugeFill };
    Cell::new(&"█".repeat(old), scene.style(Role::Dim))
        .and(&"▒".repeat(all - old), scene.style(role))
        .and(&"─".repeat(BAR - all), scene.style(Role::GaugeRest))
}

/// Row of a step in the plan's timeline: `  ~31s  shop/web-7d4b9   replaced   n-4 (tie: 12 of 12 nodes)`.
pub fn moment(scene: &Scene, moment: &PlanMoment, made: Timestamp) -> EventRow {
    let (subject, word, rest) = moment.event.columns();
    let subject = match moment.event.pod() {
        Some(pod) => pod_name(scene, pod),
        None => Cell::new(&subject, scene.style(Role::Strong)),
    };
    EventRow {
        when: since_made(scene, Some(moment.at), made, ""),
        subject,
        state: Cell::new(word, scene.style(Role::Base)),
        text: Cell::new(&text::brief(&rest), scene.style(Role::Dim)),
    }
}
