//! The plan: what an action would do, or what a failure would lead to. Nothing is written by it.

mod landing;

use ratatui::{buffer::Buffer, layout::Rect};

use super::{explain, open, plain, say};
use crate::{
    app::{
        Mode, Pane,
        commands::{COMMANDS, UserAction},
        preview::{
            EditLine, FailureImpact, PlanKind, PlanOption, PlanRequest, Preview, PreviewOutcome,
            PreviewResult, PreviewRow, Targets, call, pod_of,
        },
    },
    forecast::ForecastKind,
    plan::{BudgetPlan, COUNTED, Landing, NodeChange, NodePlan, Plan, PodPlan, Prospect, Verdict, words},
    time::{Span, Timestamp},
    ui::{
        Scene, text,
        theme::Role,
        widgets::{
            self, Cell, TableWidget, Width,
            segments::{Runs, cut_line},
        },
    },
};

/// ```text
/// ─ 2 Plan  drain n-3 · refused: 2 pods are refused without --ignore-daemonsets ── dry-run: nothing is written ─
/// D ! ignore-daemonsets   E ○ delete-emptydir-data   F ● force   B ○ disable-eviction   P own grace   N 1 at a time
/// 12 pods · 9 leave now · 1 leave later · 2 refused
/// warnings
///   kubelet of n-3 is silent …
/// pods
///       –  shop/proxy-k9x     refused  of a DaemonSet (--ignore-daemonsets)
///     now  shop/web-7d4b9     leaves   shop/web allows 1
///     ~9s  shop/web-x2x       later    leaves after 1 recovery of shop/web, behind shop/web-7d4b9
/// ```
/// Draws the plan that is open; tells how many rows there is room for.
pub fn draw(scene: &Scene, area: Rect, buf: &mut Buffer) -> usize {
    let Some(preview) = &scene.screen.preview else { return 0 };
    let inner = open(scene, Pane::Plan, area, title(scene, preview), buf);
    let inner = draw_line(scene, preview, inner, buf);
    let inner = draw_switches(scene, preview, inner, buf);
    let inner = draw_totals(scene, preview, inner, buf);
    let selected = preview.row(preview.list.place());
    let whole = preview.done.as_ref().and_then(|done| whole(done, selected?));
    // What fits into its own line is not said twice.
    let is_cut = |text: &String| text::width(text) + 4 > usize::from(inner.width);
    let whole = whole.filter(|text| !matches!(selected, Some(PreviewRow::Warning(_))) || is_cut(text));
    let inner = explain(scene, Pane::Plan, whole, inner, buf);
    let page = usize::from(inner.height);
    let Some(done) = preview.done.as_ref().filter(|_| !preview.list.is_empty()) else {
        let (glyph, words, role) = nothing(preview);
        say(scene, glyph, &words, role, inner, buf);
        return page;
    };
    let table = TableWidget {
        columns: vec![
            plain("", Width::Fixed(9)),
            plain("", Width::Fit(14, 44)),
            plain("", Width::Fit(7, 9)),
            plain("", Width::Grow(20, 1)),
        ],
        rows: preview.list.len(),
        first: preview.list.first_shown(page),
        selected: Some(preview.list.place()),
        looks: scene.looks(Pane::Plan),
    };
    table.render_bare(inner, buf, |place| {
        preview.row(place).map(|row| cells(scene, done, row)).unwrap_or_default()
    });
    page
}

/// What is special about the view: that nothing is written, and whether it is still being worked out.
pub(super) fn note(scene: &Scene) -> Runs {
    let is_failure =
        scene.screen.preview.as_ref().is_some_and(|preview| preview.wish.verb == PlanKind::Failure);
    let (words, role) = match scene.app.mode {
        _ if scene.screen.preview.as_ref().is_some_and(Preview::is_behind) => {
            ("working it out", Role::FeedBusy)
        }
        Mode::DryRun => ("dry-run: nothing is written", Role::Dim),
        Mode::Enforce if is_failure => ("nobody carries a failure out", Role::Dim),
        Mode::Enforce => ("a preview; A carries it out", Role::Strong),
        Mode::ReadOnly => ("read-only: nothing is written", Role::Dim),
    };
    Runs::new(words, scene.style(role))
}

/// `drain n-3 · completes in ~35s (at the latest 1m4s)`
fn title(scene: &Scene, preview: &Preview) -> Runs {
    let wish = &preview.wish;
    let zones = match preview.done.as_ref().map(|done| &done.what) {
        Some(PreviewOutcome::Failure(failure)) if wish.whole_zones => names(&failure.zones, "zones"),
        _ => String::new(),
    };
    let of = match &wish.subjects {
        _ if !zones.is_empty() => format!("zone {zones}"),
        Targets::Nodes(nodes) => names(nodes, "nodes"),
        Targets::Pods(pods) => names(pods, "pods"),
    };
    let runs = Runs::new(wish.verb.word(), scene.style(Role::Accent))
        .and(" ", scene.style(Role::Dim))
        .and(&of, scene.style(Role::Strong));
    let Some(PreviewOutcome::Plan(plan)) = preview.done.as_ref().map(|done| &done.what) else { return runs };
    let (words, role) = prospect(plan);
    runs.and(" · ", scene.style(Role::Faint)).and(&words, scene.style(role))
}

/// The one name, or how many there are and the first of them.
fn names<T: std::fmt::Display>(
    all: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
    what: &str,
) -> String {
    const SHOWN: usize = 2;
    let all = all.into_iter();
    let count = all.len();
    let shown: Vec<String> = all.take(SHOWN).map(|name| name.to_string()).collect();
    match count {
        0 | 1 => shown.concat(),
        _ if count <= SHOWN => shown.join(", "),
        _ => format!("{} {what} ({}, …)", text::count(count), shown.join(", ")),
    }
}

/// Whether it comes to its end, in words.
pub fn prospect(plan: &Plan) -> (String, Role) {
    let prospect = plan.prospect();
    let role = match prospect {
        Prospect::Completes => Role::NodeReady,
        Prospect::Stalls => Role::CountdownSoon,
        Prospect::Blocked => Role::LevelError,
        Prospect::Refused => Role::NodeNotReady,
    };
    if plan.totals.changed == 0 && plan.steps.is_empty() && prospect == Prospect::Completes {
        return ("changes nothing".into(), Role::Dim);
    }
    let words = match prospect {
        Prospect::Completes => format!("{} {}", prospect.word(), plan.ends()),
        Prospect::Stalls => format!("{}: {}", prospect.word(), plan.in_short()),
        Prospect::Blocked => plan.in_short(),
        Prospect::Refused if plan.needs.is_empty() => plan.in_short(),
        Prospect::Refused => "refused without the options marked !".into(),
    };
    (words, role)
}

/// ```text
/// taints › dedicated=gpu:NoSch▏
///          dedicated=gpu:NoSchedule   …
/// ```
/// Draws the line in which taints or labels are typed, and under it what the last word may become, or what is wrong;
/// tells what is left.
fn draw_line(scene: &Scene, preview: &Preview, area: Rect, buf: &mut Buffer) -> Rect {
    let Some(line) = &preview.line else { return area };
    if area.height < 4 || area.width < 24 {
        return area;
    }
    let label = if preview.wish.verb == PlanKind::Taint { "taints › " } else { "labels › " };
    let indent = u16::try_from(text::width(label)).unwrap_or(0);
    buf.set_string(area.x, area.y, label, scene.style(Role::Key));
    let field = Rect { x: area.x + indent, width: area.width - indent, height: 1, ..area };
    let style = scene.style(if line.open { Role::Input } else { Role::Strong });
    widgets::field::field(&line.input, style, line.open, field, buf);
    let below = Rect { y: area.y + 1, ..field };
    let runs = if line.open { proposals(scene, line) } else { Runs::default() };
    let runs = match fault(preview) {
        Some(fault) if !preview.wish.words.is_empty() && !preview.is_behind() && runs.is_empty() => {
            Runs::new(fault, scene.style(Role::LevelError))
        }
        Some(_) | None => runs,
    };
    let shown = cut_line(runs.line(), usize::from(below.width));
    buf.set_line(below.x, below.y, &shown, below.width);
    Rect { y: area.y + 2, height: area.height - 2, ..area }
}

/// The candidates, the one that is taken next in full light.
fn proposals(scene: &Scene, line: &EditLine) -> Runs {
    let mut runs = Runs::default();
    // The chosen one comes first, those before it last: it is always in sight.
    let count = line.candidates.len();
    for turn in 0..count {
        let Some(candidate) = line.candidates.get((line.chosen + turn) % count) else { continue };
        let style = scene.style(if turn == 0 { Role::Accent } else { Role::Dim });
        runs = runs.and(if turn == 0 { "" } else { "  " }, style).and(candidate, style);
    }
    runs
}

fn fault(preview: &Preview) -> Option<&str> {
    match &preview.done.as_ref()?.what {
        PreviewOutcome::Nothing(text) => Some(text),
        PreviewOutcome::Plan(_) | PreviewOutcome::Failure(_) => None,
    }
}

/// Draws the options with their keys, over as many lines as they take; tells what is left.
fn draw_switches(scene: &Scene, preview: &Preview, area: Rect, buf: &mut Buffer) -> Rect {
    let (mut x, mut y) = (area.x, area.y);
    let switches = preview.wish.verb.switches();
    if switches.is_empty() || area.height < 4 {
        return area;
    }
    for switch in switches {
        let line = self::switch(scene, preview, *switch).line();
        let width = u16::try_from(line.width()).unwrap_or(u16::MAX);
        if x > area.x && x.saturating_add(width) > area.right() {
            (x, y) = (area.x, y + 1);
        }
        if y + 2 >= area.bottom() {
            break;
        }
        buf.set_line(x, y, &line, area.right().saturating_sub(x));
        x = x.saturating_add(width + 3);
    }
    let used = y + 1 - area.y;
    Rect { y: area.y + used, height: area.height.saturating_sub(used), ..area }
}

/// `D ● ignore-daemonsets`, `!` where the plan does not begin without it.
fn switch(scene: &Scene, preview: &Preview, switch: PlanOption) -> Runs {
    let is_asked = |command: &&crate::app::Command| command.action == UserAction::Turn(switch);
    let key = COMMANDS.iter().find(is_asked).and_then(|command| command.keys.first());
    let key = key.map(ToString::to_string).unwrap_or_default();
    let needed = match preview.done.as_ref().map(|done| &done.what) {
        Some(PreviewOutcome::Plan(plan)) => switch.flag().is_some_and(|flag| plan.needs.contains(&flag)),
        _ => false,
    };
    let (state, words) = state(&preview.wish, switch);
    let (sign, role) = match state {
        _ if needed => ("!", Role::NodeNotReady),
        Some(true) => ("●", Role::Strong),
        Some(false) => ("○", Role::Dim),
        None => ("", Role::Base),
    };
    let style = scene.style(role);
    Runs::new(&key, scene.style(Role::Key))
        .and(" ", style)
        .and(sign, style)
        .and(if sign.is_empty() { "" } else { " " }, style)
        .and(&words, style)
}

/// Whether an option is on, where it is one or the other, and its words.
fn state(wish: &PlanRequest, switch: PlanOption) -> (Option<bool>, String) {
    let grace = if wish.verb == PlanKind::Drain { wish.drain.grace } else { wish.removal.grace };
    match switch {
        PlanOption::Force => (Some(wish.drain.force), "force".into()),
        PlanOption::IgnoreDaemonsets => (Some(wish.drain.ignore_daemonsets), "ignore-daemonsets".into()),
        PlanOption::DeleteEmptydirData => {
            (Some(wish.drain.delete_emptydir_data), "delete-emptydir-data".into())
        }
        PlanOption::DisableEviction => (Some(wish.drain.disable_eviction), "disable-eviction".into()),
        PlanOption::Grace => (None, grace.map_or("own grace".into(), |grace| format!("grace {grace}"))),
        PlanOption::Parallel => (None, format!("{} at a time", wish.drain.parallel.max(1))),
        PlanOption::Overwrite => (Some(wish.overwrite), "overwrite".into()),
        PlanOption::WholeZones => (Some(wish.whole_zones), "whole zones".into()),
    }
}

fn draw_totals(scene: &Scene, preview: &Preview, area: Rect, buf: &mut Buffer) -> Rect {
    let runs = match preview.done.as_ref().map(|done| &done.what) {
        Some(PreviewOutcome::Plan(plan)) => totals(scene, plan),
        Some(PreviewOutcome::Failure(failure)) => totals_of_failure(scene, failure),
        Some(PreviewOutcome::Nothing(_)) | None => return area,
    };
    if runs.is_empty() || area.height < 3 {
        return area;
    }
    let line = cut_line(runs.line(), usize::from(area.width));
    buf.set_line(area.x, area.y, &line, area.width);
    Rect { y: area.y + 1, height: area.height - 1, ..area }
}

/// `12 pods · 9 leave now · 1 leave later · 2 refused`
pub fn totals(scene: &Scene, plan: &Plan) -> Runs {
    let roles = [
        Role::NodeReady,
        Role::CountdownSoon,
        Role::EvictionTerminating,
        Role::Dim,
        Role::CountdownSoon,
        Role::LevelError,
        Role::NodeNotReady,
        Role::NodeCondition,
        Role::NodeCondition,
        Role::NodeCondition,
        Role::NodeCondition,
    ];
    let totals = &plan.totals;
    let mut runs = Runs::default();
    if totals.nodes > 1 {
        runs = Runs::new(&format!("{} nodes", text::count(totals.nodes)), scene.style(Role::Base));
        if totals.refused_nodes > 0 {
            let words = format!("{} refused", text::count(totals.refused_nodes));
            runs = then(scene, runs, &words, Role::NodeNotReady);
        }
    }
    if totals.pods > 0 {
        let words = format!("{} pod{}", text::count(totals.pods), if totals.pods == 1 { "" } else { "s" });
        runs = then(scene, runs, &words, Role::Base);
    }
    for ((count, what), role) in totals.counted().into_iter().zip(COUNTED).zip(roles) {
        if count > 0 {
            runs = then(scene, runs, &format!("{} {what}", text::count(count)), role);
        }
    }
    runs
}

fn totals_of_failure(scene: &Scene, failure: &FailureImpact) -> Runs {
    let ahead = failure.forecast.until.since(failure.forecast.made);
    let mut runs = Runs::new(&format!("within {ahead}"), scene.style(Role::Dim));
    for (count, what, role) in [
        (failure.nodes.len(), "silent", Role::NodeUnknown),
        (failure.totals.unknown, "Unknown", Role::NodeUnknown),
        (failure.totals.tainted, "tainted", Role::TaintNoExecute),
        (failure.totals.deleted, "evicted", Role::EvictionForeseen),
        (failure.staying.len(), "stay", Role::Dim),
    ] {
        if count > 0 {
            runs = then(scene, runs, &format!("{} {what}", text::count(count)), role);
        }
    }
    runs
}

fn then(scene: &Scene, runs: Runs, words: &str, role: Role) -> Runs {
    let runs = if runs.is_empty() { runs } else { runs.and(" · ", scene.style(Role::Faint)) };
    runs.and(words, scene.style(role))
}

/// What is said where there are no rows.
fn nothing(preview: &Preview) -> (&'static str, String, Role) {
    if preview.is_behind() {
        return ("◌", "working it out".into(), Role::FeedBusy);
    }
    match (preview.wish.verb, fault(preview)) {
        (PlanKind::Taint, Some(_)) if preview.wish.words.trim().is_empty() => (
            "○",
            "key=value:Effect or key:Effect puts a taint on, key:Effect- or key- takes it off; several words are one plan"
                .into(),
            Role::Dim,
        ),
        (PlanKind::Label, Some(_)) if preview.wish.words.trim().is_empty() => {
            ("○", "key=value sets a label, key- takes it off; several words are one plan".into(), Role::Dim)
        }
        (_, Some(fault)) => ("✗", fault.to_owned(), Role::LevelError),
        (_, None) => ("○", "nothing passes the filter (Esc clears it)".into(), Role::Dim),
    }
}

/// A row's cells; the last one takes the room of the columns that it leaves out.
fn cells(scene: &Scene, done: &PreviewResult, row: PreviewRow) -> Vec<Cell> {
    if let PreviewRow::Section(title) = row {
        return vec![Cell::new(title, scene.style(Role::Heading))];
    }
    match &done.what {
        PreviewOutcome::Plan(plan) => cells_of_plan(scene, plan, row),
        PreviewOutcome::Failure(failure) => cells_of_failure(scene, failure, row),
        PreviewOutcome::Nothing(_) => Vec::new(),
    }
}

fn cells_of_plan(scene: &Scene, plan: &Plan, row: PreviewRow) -> Vec<Cell> {
    let line = |text: &str, role| {
        vec![Cell::new("  ", scene.style(role)).and(&text::brief(text), scene.style(role))]
    };
    let command =
        |text: &str| vec![Cell::new("  ", scene.style(Role::Base)).and(text, scene.style(Role::Base))];
    match row {
        PreviewRow::Warning(place) => line(&format!("▲ {}", plan.warnings[place]), Role::LevelWarning),
        PreviewRow::Node(place) => node(scene, &plan.nodes[place], plan.made),
        PreviewRow::Pod(place) => pod(scene, &plan.pods[place], plan.made),
        PreviewRow::Help(pod, place) => {
            let pod = &plan.pods[pod];
            landing::help(scene, &pod.pod, &pod.help(), place)
        }
        PreviewRow::Arrival(place) => landing::arrival(scene, &plan.arrivals[place]),
        PreviewRow::Receiver(place) => landing::receiver(scene, &plan.receivers[place]),
        PreviewRow::Budget(place) => budget(scene, &plan.budgets[place]),
        PreviewRow::Moment(place) => landing::moment(scene, &plan.timeline[place], plan.made),
        PreviewRow::Kubectl => command(plan.command.as_deref().unwrap_or_default()),
        PreviewRow::Kordon => {
            let text = plan.action.kordon().unwrap_or_default();
            let cell = Cell::new("  ", scene.style(Role::Base)).and(&text, scene.style(Role::Base));
            vec![cell.and("  prints this plan; with --enforce it is carried out", scene.style(Role::Dim))]
        }
        PreviewRow::Call(place) => {
            let call = plan.steps[place].call();
            vec![
                Cell::new(&format!("  {}", call.method), scene.style(Role::Dim)),
                Cell::new(&call.path, scene.style(Role::Base))
                    .and(&format!(" {}", call.body), scene.style(Role::Dim)),
            ]
        }
        PreviewRow::Assumption(place) => line(plan.assumptions[place], Role::Dim),
        PreviewRow::Section(_)
        | PreviewRow::Coming(_)
        | PreviewRow::Chance(_)
        | PreviewRow::Stays(_)
        | PreviewRow::Successor(_)
        | PreviewRow::TooMany => Vec::new(),
    }
}

/// When, seen from the beginning of the plan: `now`, `~9s`, `never`.
fn when(scene: &Scene, at: Option<Timestamp>, made: Timestamp, else_: &str) -> Cell {
    let (words, role) = match at.map(|at| at.since(made)) {
        None => (else_.to_owned(), Role::Dim),
        Some(after) if after <= Span::ZERO => ("now".into(), Role::Base),
        Some(after) => (format!("~{}", Span::from_secs(after.as_secs())), Role::CountdownFar),
    };
    Cell::new(&format!("{words:>9}"), scene.style(role))
}

/// `in 5m54s`, or nothing where it never comes.
fn ahead(scene: &Scene, at: Option<Timestamp>, made: Timestamp) -> Cell {
    let words = at.map_or("–".into(), |at| format!("in {}", Span::from_secs(at.since(made).as_secs())));
    Cell::new(&format!("{words:>9}"), scene.style(Role::CountdownFar))
}

fn node(scene: &Scene, node: &NodePlan, made: Timestamp) -> Vec<Cell> {
    let (word, role) = match &node.change {
        NodeChange::Refused { .. } => ("refused", Role::NodeNotReady),
        NodeChange::None => ("stays", Role::Dim),
        NodeChange::Cordon | NodeChange::Uncordon | NodeChange::Taints { .. } | NodeChange::Labels { .. } => {
            ("changes", Role::Base)
        }
    };
    let told = node.change.told();
    let told = told.strip_prefix("refused: ").unwrap_or(&told);
    let name = Cell::new(&node.node, scene.style(Role::Strong));
    let Some(drain) = &node.drain else {
        let blank = Cell::default();
        return vec![
            blank,
            name,
            Cell::new(word, scene.style(role)),
            Cell::new(&text::brief(told), scene.style(Role::Base)),
        ];
    };
    let (word, role) = match (drain.refused, drain.ends.likely) {
        (true, _) => ("refused", Role::NodeNotReady),
        (false, Some(_)) => ("empties", Role::NodeReady),
        (false, None) => ("blocked", Role::LevelError),
    };
    let ends = drain
        .ends
        .likely
        .map_or("never".into(), |at| format!("~{}", Span::from_secs(at.since(made).as_secs())));
    let mut words = if drain.refused {
        drain.refusals.first().cloned().unwrap_or_default()
    } else {
        format!("empty: {ends}; {}", words::several(drain.remaining, "pod stays", "pods stay"))
    };
    if let Some(budget) = &drain.dominated_by {
        words += &format!("; held up by {budget}");
    }
    let starts = when(scene, Some(drain.starts), made, "");
    vec![starts, name, Cell::new(word, scene.style(role)), Cell::new(&words, scene.style(Role::Base))]
}

fn pod(scene: &Scene, pod: &PodPlan, made: Timestamp) -> Vec<Cell> {
    let stays =
        matches!(pod.verdict, Verdict::Skipped(_) | Verdict::Tolerates | Verdict::Spared | Verdict::Leaving);
    let refused = matches!(pod.verdict, Verdict::Refused { .. });
    let at = pod.leaves.likely.filter(|_| !stays && !refused);
    let (dim, role) = (scene.style(Role::Dim), verdict_role(&pod.verdict));
    let mut why =
        Cell::new(&text::brief(&pod.verdict.because()), if stays { dim } else { scene.style(Role::Base) });
    if let Some(Landing::Node { node, .. }) = &pod.landing {
        why = why.and(" → ", dim).and(node, dim);
    }
    for mind in pod.minds() {
        why = why.and(" · ", scene.style(Role::Faint)).and(&mind, scene.style(Role::NodeCondition));
    }
    vec![
        when(scene, at, made, if stays || refused { "–" } else { "never" }),
        pod_name(scene, &pod.pod),
        Cell::new(pod.verdict.told(), scene.style(role)),
        why,
    ]
}

fn pod_name(scene: &Scene, key: &crate::cluster::Key) -> Cell {
    Cell::new(&key.namespace, scene.style(Role::Dim))
        .and("/", scene.style(Role::Faint))
        .and(&key.name, scene.style(Role::Base))
}

const fn verdict_role(verdict: &Verdict) -> Role {
    match verdict {
        Verdict::Skipped(_) | Verdict::Tolerates | Verdict::Spared => Role::Dim,
        Verdict::Refused { .. } => Role::NodeNotReady,
        Verdict::Leaving => Role::EvictionTerminating,
        Verdict::Leaves(_) => Role::NodeReady,
        Verdict::LeavesAfter { .. }
        | Verdict::Waits { .. }
        | Verdict::WaitsForController { .. }
        | Verdict::WaitsForNamespace => Role::CountdownSoon,
        Verdict::Blocked { .. } | Verdict::TwoBudgets { .. } => Role::LevelError,
        Verdict::Unknown { .. } => Role::NodeUnknown,
        Verdict::Deleted { .. } => Role::TaintNoExecute,
    }
}

fn budget(scene: &Scene, budget: &BudgetPlan) -> Vec<Cell> {
    let (before, after) = (budget.before.numbers, budget.after.numbers);
    let role = if before.allowed > 0 { Role::NodeReady } else { Role::LevelError };
    let words = format!(
        "{before}; its pods here: {}; in the end: has {}, allows {}",
        budget.pods, after.healthy, after.allowed
    );
    vec![
        Cell::default(),
        pod_name(scene, &budget.budget),
        Cell::new(&format!("allows {}", before.allowed), scene.style(role)),
        Cell::new(&words, scene.style(Role::Base)),
    ]
}

fn cells_of_failure(scene: &Scene, failure: &FailureImpact, row: PreviewRow) -> Vec<Cell> {
    let dim = scene.style(Role::Dim);
    match row {
        PreviewRow::Coming(place) => {
            let step = &failure.forecast.steps[place];
            let (word, role) = match &step.what {
                ForecastKind::Unknown { .. } => ("Unknown", Role::NodeUnknown),
                ForecastKind::NoExecute { .. } => ("tainted", Role::TaintNoExecute),
                ForecastKind::Deleted { .. } => ("evicted", Role::EvictionForeseen),
                ForecastKind::Removed { .. } => ("removed", Role::EvictionTerminating),
            };
            let subject = pod_of(&step.what).map_or_else(
                || Cell::new(step.what.node(), scene.style(Role::Strong)),
                |pod| pod_name(scene, pod),
            );
            vec![
                ahead(scene, Some(step.at), failure.forecast.made),
                subject,
                Cell::new(word, scene.style(role)),
                Cell::new(&text::brief(&step.why.to_string()), dim),
            ]
        }
        PreviewRow::Chance(place) => {
            let chance = &failure.forecast.uncertain_taints[place];
            let after = chance.at.since(failure.forecast.made).as_secs();
            let words = format!(
                "up to {} of {} nodes that wait in zone {} may be tainted in {}",
                chance.at_most,
                chance.among.len(),
                chance.zone,
                Span::from_secs(after)
            );
            vec![Cell::new("  ", dim).and(&words, scene.style(Role::CountdownSoon))]
        }
        PreviewRow::Stays(place) => {
            let (pod, node) = &failure.staying[place];
            let words = format!("on {node}: not evicted within the time that is looked at");
            vec![
                Cell::new(&format!("{:>9}", "–"), dim),
                pod_name(scene, pod),
                Cell::new("stays", dim),
                Cell::new(&words, dim),
            ]
        }
        PreviewRow::Successor(place) => failure
            .successor(place)
            .map(|successor| landing::successor(scene, successor, failure.forecast.made))
            .unwrap_or_default(),
        PreviewRow::Help(place, help) => failure
            .successor(place)
            .map(|successor| landing::help(scene, &successor.of, &failure.help(place), help))
            .unwrap_or_default(),
        PreviewRow::Receiver(place) => {
            failure.receivers().get(place).map(|node| landing::receiver(scene, node)).unwrap_or_default()
        }
        PreviewRow::TooMany => {
            let words = "so many that it is worked out only if it is asked for, by the command below";
            vec![Cell::new("  ", dim).and(words, dim)]
        }
        PreviewRow::Kordon => {
            vec![Cell::new("  ", dim).and(&failure.kordon(), scene.style(Role::Base))]
        }
        PreviewRow::Section(_)
        | PreviewRow::Warning(_)
        | PreviewRow::Node(_)
        | PreviewRow::Pod(_)
        | PreviewRow::Arrival(_)
        | PreviewRow::Budget(_)
        | PreviewRow::Moment(_)
        | PreviewRow::Kubectl
        | PreviewRow::Call(_)
        | PreviewRow::Assumption(_) => Vec::new(),
    }
}

/// The selected row in full, and of a pod what else is known.
fn whole(done: &PreviewResult, row: PreviewRow) -> Option<String> {
    match (&done.what, row) {
        (PreviewOutcome::Plan(plan), PreviewRow::Pod(place)) => {
            Some(whole_pod(plan.pods.get(place)?, plan.made))
        }
        (PreviewOutcome::Plan(plan), PreviewRow::Help(pod, place)) => {
            plan.pods.get(pod)?.help().get(place).cloned()
        }
        (PreviewOutcome::Plan(plan), PreviewRow::Moment(place)) => {
            let (subject, word, rest) = plan.timeline.get(place)?.what.told();
            Some(format!("{subject} {word} {rest}"))
        }
        (PreviewOutcome::Plan(plan), PreviewRow::Warning(place)) => {
            plan.warnings.get(place).map(ToString::to_string)
        }
        (PreviewOutcome::Plan(plan), PreviewRow::Node(place)) => {
            let node = plan.nodes.get(place)?;
            let refusals = node.drain.as_ref().map_or(String::new(), |drain| drain.refusals.join("; "));
            Some(format!("{} {} {refusals}", node.node, node.change.told()))
        }
        (PreviewOutcome::Plan(plan), PreviewRow::Call(place)) => plan.steps.get(place).map(call),
        (PreviewOutcome::Plan(plan), PreviewRow::Kubectl) => plan.command.clone(),
        (PreviewOutcome::Plan(plan), PreviewRow::Kordon) => plan.action.kordon(),
        (PreviewOutcome::Failure(failure), PreviewRow::Coming(place)) => {
            failure.forecast.steps.get(place).map(|step| step.why.to_string())
        }
        (PreviewOutcome::Failure(failure), PreviewRow::Successor(place)) => {
            let successor = failure.successor(place)?;
            let why = successor.state.why().unwrap_or_default();
            Some(match successor.state.node() {
                Some(node) => format!("{} lands on {node} ({why})", successor.of),
                None => format!("{}: {why}", successor.of),
            })
        }
        (PreviewOutcome::Failure(failure), PreviewRow::Help(place, help)) => {
            failure.help(place).get(help).cloned()
        }
        (PreviewOutcome::Failure(failure), PreviewRow::Kordon) => Some(failure.kordon()),
        _ => None,
    }
}

fn whole_pod(pod: &PodPlan, made: Timestamp) -> String {
    let mut parts = vec![pod.verdict.to_string()];
    let after = |at: Timestamp| Span::from_secs(at.since(made).as_secs());
    if let Some(gone) = pod.gone.likely.filter(|_| pod.leaves.likely.is_some()) {
        let latest = pod.gone.latest.map_or(String::new(), |at| format!(" (at the latest {})", after(at)));
        parts.push(format!("gone ~{}{latest}", after(gone)));
    }
    if let Some(Landing::Node { node, why }) = &pod.landing {
        parts.push(format!("its replacement goes to {node} ({why})"));
    }
    if let Some(ready) = pod.ready_again {
        parts.push(format!("Ready again ~{}", after(ready)));
    }
    parts.extend(pod.minds());
    if let Some(node) = &pod.node {
        parts.push(format!("on {node}"));
    }
    parts.join(" · ")
}
