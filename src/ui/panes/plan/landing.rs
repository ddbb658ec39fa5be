//! Rows about where pods land: what would help those that land nowhere, who lands from Pending, and what the nodes that
//! receive pods have to bear.
//!
//! ```text
//! ── what would help ─────────────────────────────────────────────────────────────
//!            shop/web-7d4b9   help       but for cordons, n-2 and 3 more would take it
//!            shop/web-5c2aa   lands      → n-3 (best of 12 by 7)
//!            n-4              +2         pods 3 -> 5 of 110 (4 %) · cpu 1.2 -> 1.7 of 4 (42 %)
//!      ~31s  shop/web-7d4b9   replaced   n-4 (best of 12 by 7)
//! ```

use super::{ahead, pod_name, when};
use crate::{
    cluster::Key,
    forecast::{Successor, SuccessorState},
    plan::{Arrival, Landing, PlanMoment, Receiver},
    time::Timestamp,
    ui::{Scene, text, theme::Role, widgets::Cell},
};

/// `           shop/web-7d4b9   help   but for cordons, n-2 and 3 more would take it`
pub fn help(scene: &Scene, pod: &Key, help: &[String], place: usize) -> Vec<Cell> {
    let words = help.get(place).cloned().unwrap_or_default();
    // The name stands once.
    let name = if place == 0 { pod_name(scene, pod) } else { Cell::default() };
    vec![
        Cell::default(),
        name,
        Cell::new("help", scene.style(Role::CountdownSoon)),
        Cell::new(&text::brief(&words), scene.style(Role::Base)),
    ]
}

/// `           shop/web-7d4b9   lands   → n-3 (best of 12 by 7)`
pub fn arrival(scene: &Scene, arrival: &Arrival) -> Vec<Cell> {
    let dim = scene.style(Role::Dim);
    vec![
        Cell::default(),
        pod_name(scene, &arrival.pod),
        Cell::new("lands", scene.style(Role::NodeReady)),
        Cell::new("→ ", dim)
            .and(&arrival.node, scene.style(Role::Base))
            .and(&format!(" ({})", arrival.why), dim),
    ]
}

/// `in 5m54s  shop/web-7d4b9   lands   → n-3 (best of 12 by 7)`
pub fn successor(scene: &Scene, successor: &Successor, made: Timestamp) -> Vec<Cell> {
    let dim = scene.style(Role::Dim);
    let why = successor.state.why().unwrap_or_default();
    let (at, word, role) = match &successor.state {
        SuccessorState::Replaced { at, landing: Landing::Nowhere { .. }, .. } => {
            (Some(*at), "Pending", Role::NodeCondition)
        }
        SuccessorState::Replaced { at, .. } => (Some(*at), "lands", Role::NodeReady),
        SuccessorState::Waits => (None, "waits", Role::CountdownSoon),
        SuccessorState::Lost => (None, "lost", Role::LevelError),
    };
    let told = match (&successor.state, successor.state.node()) {
        (_, Some(node)) => Cell::new("→ ", dim)
            .and(node, scene.style(Role::Base))
            .and(&format!(" ({})", text::brief(why)), dim),
        (SuccessorState::Replaced { landing: Landing::Somewhere, .. }, None) => Cell::new("somewhere", dim),
        (_, None) => Cell::new(&text::brief(why), scene.style(Role::Base)),
    };
    vec![ahead(scene, at, made), pod_name(scene, &successor.of), Cell::new(word, scene.style(role)), told]
}

/// `           n-4   +2   pods 3 -> 5 of 110 (4 %) · cpu 1.2 -> 1.7 of 4 (42 %) · memory …`
pub fn receiver(scene: &Scene, receiver: &Receiver) -> Vec<Cell> {
    let more = receiver.after.pods.requested - receiver.before.pods.requested;
    let mut shares = Cell::default();
    for (place, (resource, share)) in receiver.shares().into_iter().enumerate() {
        let gap = if place > 0 { " · " } else { "" };
        shares = shares
            .and(gap, scene.style(Role::Faint))
            .and(resource, scene.style(Role::Dim))
            .and(&format!(" {share}"), scene.style(Role::Base));
    }
    vec![
        Cell::default(),
        Cell::new(&receiver.node, scene.style(Role::Strong)),
        Cell::new(&format!("{more:+}"), scene.style(Role::Base)),
        shares,
    ]
}

/// `     ~31s  shop/web-7d4b9   replaced   n-4 (best of 12 by 7)`
pub fn moment(scene: &Scene, moment: &PlanMoment, made: Timestamp) -> Vec<Cell> {
    let (subject, word, rest) = moment.what.told();
    let subject = match moment.what.pod() {
        Some(pod) => pod_name(scene, pod),
        None => Cell::new(&subject, scene.style(Role::Strong)),
    };
    vec![
        when(scene, Some(moment.at), made, ""),
        subject,
        Cell::new(word, scene.style(Role::Base)),
        Cell::new(&text::brief(&rest), scene.style(Role::Dim)),
    ]
}
