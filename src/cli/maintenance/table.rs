//! The plan of a maintenance as text for people: its cost, a chart of the waves, and what each wave does.

use super::report::{CostReport, MaintenanceReport, MoveReport, WaveReport};
use crate::{
    cli::{
        page::{Emphasis, Page, none},
        plan,
        table::PageTable,
    },
    ui::widgets::{WaveLane, waves},
};
use kordon_core::{maintenance::data_loss, plan::words::counted};
use kordon_time::{Span, Timestamp};

/// Maximum number of workloads without a Ready pod that are listed for each wave.
const NAMED: usize = 4;

/// Writes the whole plan.
pub fn render(report: &MaintenanceReport, out: &mut Page) {
    render_waves(report, out);
    moves(report, out);
}

/// Writes the plan without the single moves of pods.
pub fn render_waves(report: &MaintenanceReport, out: &mut Page) {
    let (cost, count) = (text(&report.cost), counted(report.waves.len(), "wave", "waves"));
    out.line(Emphasis::Good, &format!("{cost}, in {count}"));
    if report.cost.nodes > 1 {
        out.line(Emphasis::Dim, &format!("one after the other by name: {}", text(&report.by_name)));
    }
    if let Some(text) = data_loss(report.cost.data_lost) {
        out.line(Emphasis::Warning, &text);
    }
    if let Some(text) = &report.control_plane {
        out.line(Emphasis::Warning, text);
    }
    if !report.left_out.is_empty() {
        let nodes = counted(report.left_out.len(), "node is", "nodes are");
        out.line(Emphasis::Warning, &format!("{nodes} in no wave, see below"));
    }
    if out.export().is_none() && !report.waves.is_empty() {
        out.line(Emphasis::Plain, "");
        let lanes: Vec<WaveLane> = report.waves.iter().map(lane).collect();
        out.drawing(&waves(&lanes, None, Timestamp::to_time));
    }
    let numbered: Vec<(usize, &WaveReport)> =
        report.waves.iter().enumerate().map(|(place, wave)| (place + 1, wave)).collect();
    PageTable::new(&numbered)
        .key("WAVE", |(number, _)| number.to_string())
        .right()
        .essential("STARTS", |(_, wave)| wave.starts.to_time())
        .essential("TAKES", |(_, wave)| seconds(wave.ends.since(wave.starts)))
        .right()
        .useful("DRAINED", |(_, wave)| format!("after {}", seconds(wave.drained.since(wave.starts))))
        .essential("MOVES", |(_, wave)| wave.moves.len().to_string())
        .right()
        .useful("LOST", |(_, wave)| wave.lost.len().to_string())
        .right()
        .useful("DATA LOST", |(_, wave)| wave.data_lost.to_string())
        .right()
        .useful("PENDING", |(_, wave)| wave.pending.len().to_string())
        .right()
        .detail("N-1 STRANDS", |(_, wave)| wave.stranded.map_or_else(none, |pods| pods.to_string()))
        .right()
        .useful("CORDONED AHEAD", |(_, wave)| if wave.cordons_ahead { "yes" } else { "no" })
        .essential("NODES", |(_, wave)| {
            wave.nodes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        })
        .flexible()
        .useful("DOWN MEANWHILE", |(_, wave)| down(wave))
        .flexible()
        .print(out);
    for (number, wave) in numbered.iter().filter(|(_, wave)| wave.may_time_out > 0) {
        let pods = counted(wave.may_time_out, "pod", "pods");
        let text =
            format!("wave {number}: {pods} may take longer than --drain-timeout: the maintenance then stops");
        out.line(Emphasis::Warning, &text);
    }
    let lost = |(number, wave): &(usize, &WaveReport)| {
        let number = *number;
        let pods = wave.lost.iter().cloned().zip(wave.lost_because.iter().cloned());
        pods.map(move |(pod, why)| (number, pod, why)).collect::<Vec<_>>()
    };
    PageTable::new(&numbered.iter().flat_map(lost).collect::<Vec<_>>())
        .key("LOST", |(_, pod, _)| pod.clone())
        .useful("WAVE", |(number, ..)| number.to_string())
        .right()
        .essential("WHY", |(_, _, why)| why.clone())
        .flexible()
        .print(out);
    PageTable::new(&report.left_out)
        .key("LEFT OUT", |left_out| left_out.node.to_string())
        .essential("WHY", |left_out| left_out.says.clone())
        .flexible()
        .print(out);
    plan::surges(out, &report.surges);
    if out.export().is_none() {
        out.line(Emphasis::Plain, "");
        report.assumptions.iter().for_each(|text| out.line(Emphasis::Dim, &format!("assumed: {text}")));
    }
}

/// Summary of the plan: `12 nodes in 38m, 96 pods move, 3 of them again`.
fn text(cost: &CostReport) -> String {
    let nodes = counted(cost.nodes, "node", "nodes");
    let moves = counted(cost.moves, "pod moves", "pods move");
    let again = match cost.moved_again {
        0 => String::new(),
        again => format!(", {again} of them again"),
    };
    format!("{nodes} in {}, {moves}{again}", seconds(cost.takes))
}

fn seconds(span: Span) -> String {
    Span::from_secs(span.as_secs()).to_string()
}

/// The workloads that have no Ready pod for some time, and how long that lasts.
fn down(wave: &WaveReport) -> String {
    let down: Vec<String> = wave.down.iter().filter_map(|down| down.says.clone()).collect();
    let named = down.iter().take(NAMED).cloned();
    let more = match down.len().saturating_sub(NAMED) {
        0 => None,
        more => Some(format!("{more} more")),
    };
    let all: Vec<String> = named.chain(more).collect();
    if all.is_empty() { none() } else { all.join(", ") }
}

/// Table of the pods that move. On a terminal, only `-o wide` prints it, because it has a row for each pod.
fn moves(report: &MaintenanceReport, out: &mut Page) {
    if report.waves.iter().all(|wave| wave.moves.is_empty()) {
        return;
    }
    if out.folds() {
        return out.line(Emphasis::Dim, "-o wide lists the pods that move");
    }
    let mut rows: Vec<(usize, &MoveReport)> = Vec::new();
    for (place, wave) in report.waves.iter().enumerate() {
        rows.extend(wave.moves.iter().map(|moved| (place + 1, moved)));
    }
    PageTable::new(&rows)
        .key("MOVED POD", |(_, moved)| moved.pod.clone())
        .useful("WAVE", |(number, _)| number.to_string())
        .right()
        .essential("FROM", |(_, moved)| moved.from.to_string())
        .essential("TO", |(_, moved)| moved.to.to_string())
        .useful("AGAIN", |(_, moved)| if moved.again { "yes" } else { "no" })
        .print(out);
}

fn lane(wave: &WaveReport) -> WaveLane {
    let WaveReport { starts, drained, ends, nodes, moves, .. } = wave;
    let text = WaveLane::text(nodes.len(), moves.len());
    WaveLane { starts: *starts, drained: *drained, ends: *ends, text }
}
