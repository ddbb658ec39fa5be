//! What a wave of a maintenance does: the workloads that are down meanwhile, and the pods that move.

use super::{Runs, Scene};
use crate::ui::theme::Role;
use kordon_core::{maintenance::MaintenanceWave, plan::words::counted};

/// Maximum number of workloads and of moves that are listed for a wave.
const LISTED: usize = 100;

/// ```text
/// in wave 1: 2 moves, then losing a node or zone strands 3 pods
///   down meanwhile: shop/db-0 32s
///   shop/web-1 n1 → n3
///   shop/web-2 n1 → n4, again
/// ```
/// Lines about a wave; `number` is its number, from 1.
pub fn lines(scene: &Scene, number: usize, wave: &MaintenanceWave, width: usize) -> Vec<Runs> {
    let strands =
        |pods: usize| format!(", then losing a node or zone strands {}", counted(pods, "pod", "pods"));
    let moves = counted(wave.moves.len(), "move", "moves");
    let head = format!("in wave {number}: {moves}{}", wave.stranded.map_or_else(String::new, strands));
    let mut lines = vec![Runs::new(&head, scene.style(Role::Base)).fitted(width)];
    let mut say = |text: String| {
        lines.push(Runs::new(&format!("  {text}"), scene.style(Role::Dim)).fitted(width));
    };
    for down in wave.down.iter().filter(|down| down.is_seen()).take(LISTED) {
        say(format!("down meanwhile: {down}"));
    }
    for moved in wave.moves.iter().take(LISTED) {
        let again = if moved.is_again { ", again" } else { "" };
        say(format!("{} {} \u{2192} {}{again}", moved.pod, moved.from, moved.to));
    }
    if wave.moves.len() > LISTED {
        say(format!("and {} more", counted(wave.moves.len() - LISTED, "move", "moves")));
    }
    lines
}
