//! What a wave of a maintenance does: the workloads that are down meanwhile, and the pods that move.

use super::{Runs, Scene};
use crate::ui::theme::Role;
use kordon_core::{
    maintenance::{MaintenancePlan, MaintenanceWave, PodMove, WorkloadDown},
    plan::words::counted,
};

/// Maximum number of workloads and of moves that are listed for a wave.
const LISTED: usize = 100;

/// A line about a wave. Its text is made when it is drawn, because a plan may have thousands of lines.
pub enum WaveLine<'a> {
    /// The number of the wave, from 1, and the wave.
    Head(usize, &'a MaintenanceWave),
    Down(&'a WorkloadDown),
    Move(&'a PodMove),
    /// The number of further moves.
    More(usize),
}

/// ```text
/// in wave 1: 2 moves, then losing a node or zone strands 3 pods
///   down meanwhile: shop/db-0 32s
///   shop/web-1 n1 → n3
///   shop/web-2 n1 → n4, again
/// ```
/// Lines about all waves of a plan.
pub fn lines(plan: &MaintenancePlan) -> impl Iterator<Item = WaveLine<'_>> {
    plan.waves.iter().enumerate().flat_map(|(place, wave)| {
        let down = wave.down.iter().filter(|down| down.is_seen()).take(LISTED).map(WaveLine::Down);
        let moves = wave.moves.iter().take(LISTED).map(WaveLine::Move);
        let more = (wave.moves.len() > LISTED).then(|| WaveLine::More(wave.moves.len() - LISTED));
        std::iter::once(WaveLine::Head(place + 1, wave)).chain(down).chain(moves).chain(more)
    })
}

impl WaveLine<'_> {
    pub fn runs(&self, scene: &Scene, width: usize) -> Runs {
        let (text, role) = match self {
            Self::Head(number, wave) => (head(*number, wave), Role::Base),
            Self::Down(down) => (format!("  down meanwhile: {down}"), Role::Dim),
            Self::Move(PodMove { pod, from, to, is_again }) => {
                let again = if *is_again { ", again" } else { "" };
                (format!("  {pod} {from} \u{2192} {to}{again}"), Role::Dim)
            }
            Self::More(more) => (format!("  and {} more", counted(*more, "move", "moves")), Role::Dim),
        };
        Runs::new(&text, scene.style(role)).fitted(width)
    }
}

fn head(number: usize, wave: &MaintenanceWave) -> String {
    let strands =
        |pods: usize| format!(", then losing a node or zone strands {}", counted(pods, "pod", "pods"));
    let moves = counted(wave.moves.len(), "move", "moves");
    format!("in wave {number}: {moves}{}", wave.stranded.map_or_else(String::new, strands))
}
