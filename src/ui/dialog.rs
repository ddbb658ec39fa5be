//! The question that stands over everything: what it is about, what speaks against it, and what answers it.

use ratatui::{
    buffer::Buffer,
    layout::{Constraint, Rect},
    style::Style,
    text::Line,
    widgets::Block,
};

use super::{
    Scene, panes, text,
    theme::Role,
    widgets::{
        field::field,
        segments::{Runs, cut_line},
        sheet,
    },
};
use crate::{
    app::{
        dialog::{ApplyRequest, Dialog, DialogStage, DialogSubject, DialogWait, Prompt, UndoRequest},
        operations::{apply_title, past_title},
    },
    cluster::OperationId,
    operation::confirmation,
    plan::{Plan, PlanStep, Prospect, undo::NotUndone},
};

/// The widest that it gets.
const WIDEST: u16 = 96;

/// Of warnings, drifts and the like, so many are shown at most.
const SHOWN: usize = 6;

/// ```text
/// ╭ Carry out ───────────────────────────────────────────── demo ╮
/// │ drain general-1a-02   completes in ~35s                       │
/// │ 12 pods · 9 leave now · 3 stay                                │
/// │ ▲ …                                                           │
/// │                                                               │
/// │ Type demo to go on: de▏                                       │
/// ╰ Enter answers · Esc leaves it ────────────────────────────────╯
/// ```
/// Draws it over the middle of the screen; tells where the cursor belongs while something is typed.
pub fn draw(scene: &Scene, dialog: &Dialog, area: Rect, buf: &mut Buffer) -> Option<(u16, u16)> {
    let width = WIDEST.min(area.width.saturating_sub(4));
    let paper = Paper { scene, cells: usize::from(width.saturating_sub(4)) };
    let answer = paper.answer(dialog);
    let mut lines = paper.body(dialog);
    let most = usize::from(area.height.saturating_sub(4)).saturating_sub(answer.len() + 1);
    if lines.len() > most {
        lines.truncate(most.saturating_sub(1));
        lines.push(paper.line("  … and more: Esc leaves it, the plan tells all", Role::Dim));
    }
    lines.push(Line::default());
    let question = lines.len();
    lines.extend(answer);
    let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX).min(area.height);
    let area = area.centered(Constraint::Length(width), Constraint::Length(height));
    let frame = Block::bordered()
        .border_style(scene.style(scene.border(true)))
        .title(Runs::new(title(dialog), scene.style(Role::TitleFocus)).line())
        .title(
            Runs::new(&format!(" {} ", scene.app.model.connection.context), scene.style(Role::Strong))
                .line()
                .right_aligned(),
        )
        .title_bottom(Runs::new(hints(dialog), scene.style(Role::Dim)).line());
    let inner = sheet(frame, scene.style(Role::Base), area, buf);
    for (y, line) in (inner.y..inner.bottom()).zip(&lines) {
        buf.set_line(inner.x, y, line, inner.width);
    }
    let DialogStage::Asks(Prompt::Words(_)) = &dialog.stage else { return None };
    let y = inner.y + u16::try_from(question + 1).unwrap_or(0);
    let line = Rect { y, height: 1, ..inner };
    if !inner.contains(line.as_position()) {
        return None;
    }
    Some((field(&dialog.input, scene.style(Role::Input), true, line, buf), y))
}

const fn title(dialog: &Dialog) -> &'static str {
    match &dialog.about {
        DialogSubject::Apply(apply) if apply.resumes.is_some() => " Go on with a drain that was cut off ",
        DialogSubject::Apply(_) => " Carry out ",
        DialogSubject::Undo(_) => " Put back ",
        DialogSubject::Cancel(_) => " Cancel ",
        DialogSubject::Quit => " Leave ",
    }
}

const fn hints(dialog: &Dialog) -> &'static str {
    match &dialog.stage {
        DialogStage::Waits(DialogWait::Beginning) => " a moment ",
        DialogStage::Waits(_) | DialogStage::Refused(_) => " Esc leaves it ",
        DialogStage::Asks(Prompt::Choice(_)) => " Tab or ← → chooses · Enter answers · Esc leaves it ",
        DialogStage::Asks(Prompt::Words(_)) => " Enter answers · Esc leaves it ",
    }
}

/// What lines are written on.
struct Paper<'a> {
    scene: &'a Scene<'a>,
    cells: usize,
}

impl Paper<'_> {
    fn style(&self, role: Role) -> Style {
        self.scene.style(role)
    }

    fn line(&self, text: &str, role: Role) -> Line<'static> {
        self.cut(Runs::new(text, self.style(role)))
    }

    fn cut(&self, runs: Runs) -> Line<'static> {
        cut_line(runs.line(), self.cells)
    }

    /// A sentence behind a sign, over as many lines as it takes, three at most.
    fn sentence(&self, sign: &str, text: &str, role: Role, lines: &mut Vec<Line<'static>>) {
        let wrapped = text::wrap(&text::brief(&text::clean(text)), self.cells.saturating_sub(2), 3);
        for (place, part) in wrapped.iter().enumerate() {
            let lead = if place == 0 { format!("{sign:<2}") } else { "  ".into() };
            lines.push(self.line(&format!("{lead}{part}"), role));
        }
    }

    /// The first few of many, and how many more there are.
    fn list<T: std::fmt::Display>(&self, sign: &str, all: &[T], role: Role, lines: &mut Vec<Line<'static>>) {
        for one in all.iter().take(SHOWN) {
            self.sentence(sign, &one.to_string(), role, lines);
        }
        if all.len() > SHOWN {
            lines.push(self.line(&format!("  and {} more", text::count(all.len() - SHOWN)), Role::Dim));
        }
    }

    fn body(&self, dialog: &Dialog) -> Vec<Line<'static>> {
        match &dialog.about {
            DialogSubject::Apply(apply) => self.apply(apply),
            DialogSubject::Undo(put_back) => self.put_back(put_back),
            DialogSubject::Cancel(id) => self.cancel(id),
            DialogSubject::Quit => self.quit(),
        }
    }

    fn apply(&self, apply: &ApplyRequest) -> Vec<Line<'static>> {
        let Some(plan) = &apply.plan else {
            return apply.resumes.iter().map(|past| self.line(&past_title(past), Role::Strong)).collect();
        };
        let mut lines = Vec::new();
        if !apply.drifts.is_empty() {
            self.sentence("▲", "This has changed since you looked:", Role::LevelWarning, &mut lines);
            self.list(" ", &apply.drifts, Role::Base, &mut lines);
            lines.push(Line::default());
        }
        let (prospect, role) = panes::plan::prospect(plan);
        let head = Runs::new(&apply_title(plan), self.style(Role::Strong))
            .and("   ", self.style(Role::Base))
            .and(&prospect, self.style(role));
        lines.push(self.cut(head));
        let totals = panes::plan::totals(self.scene, plan);
        if !totals.is_empty() {
            lines.push(self.cut(totals));
        }
        lines.push(self.cut(self.terms(apply)));
        self.objections(apply, plan, &mut lines);
        lines
    }

    /// What is said with it, and under which conditions.
    fn terms(&self, apply: &ApplyRequest) -> Runs {
        let orders = &apply.orders;
        let (dim, base) = (self.style(Role::Dim), self.style(Role::Base));
        let mut runs = match orders.why.as_str() {
            "" => Runs::new("no reason given (:reason WORDS)", dim),
            why => Runs::new("why: ", dim).and(why, base),
        };
        if let Some(until) = orders.until {
            runs = runs.and(" · cordoned until ", dim).and(&text::clock(until), base);
        }
        if let Some(within) = orders.total_timeout {
            runs = runs.and(" · within ", dim).and(&within.to_string(), base);
        }
        runs
    }

    /// What speaks against it.
    fn objections(&self, apply: &ApplyRequest, plan: &Plan, lines: &mut Vec<Line<'static>>) {
        self.list("▲", &plan.warnings, Role::LevelWarning, lines);
        if plan.prospect() == Prospect::Blocked {
            // The first line says what the head says.
            for line in confirmation::stuck(plan).iter().skip(1) {
                self.sentence("✗", line, Role::LevelError, lines);
            }
        }
        let breaches: Vec<String> =
            apply.breaches.iter().map(|breach| format!("guard rail {}: {breach}", breach.guard())).collect();
        self.list("✗", &breaches, Role::LevelError, lines);
        let taken: Vec<String> =
            apply.taken.iter().map(|(node, by)| format!("{by} is at work on {node}")).collect();
        self.list("✗", &taken, Role::LevelError, lines);
    }

    fn put_back(&self, put_back: &UndoRequest) -> Vec<Line<'static>> {
        let Some(past) = &put_back.past else { return Vec::new() };
        let ended = past.ended.as_deref().unwrap_or("not over");
        let head = Runs::new(&past_title(past), self.style(Role::Strong)).and(
            &format!("   {} by {} · {ended}", past.started.to_time(), past.start.by),
            self.style(Role::Dim),
        );
        let mut lines = vec![self.cut(head), self.line(&past.id, Role::Dim)];
        let steps: Vec<String> = put_back.steps.iter().map(words).collect();
        if !steps.is_empty() {
            lines.push(self.line("would be put back:", Role::Heading));
            self.list("•", &steps, Role::Base, &mut lines);
        }
        let kept: Vec<String> = put_back.kept.iter().map(NotUndone::to_string).collect();
        if !kept.is_empty() {
            lines.push(self.line("stays as it is:", Role::Heading));
            self.list("○", &kept, Role::Dim, &mut lines);
        }
        if !past.start.pods.is_empty() {
            lines.push(self.line("pods do not come back by it", Role::Dim));
        }
        lines
    }

    fn cancel(&self, id: &OperationId) -> Vec<Line<'static>> {
        let title =
            self.scene.app.acts.undertaking(id).map_or(&**id, |undertaking| undertaking.title.as_str());
        let mut lines = vec![self.line(title, Role::Strong)];
        let text = "Nothing more is begun; pods that are on their way out go all the same, and nodes stay cordoned \
                    (U puts them back).";
        self.sentence(" ", text, Role::Base, &mut lines);
        lines
    }

    fn quit(&self) -> Vec<Line<'static>> {
        let running: Vec<&str> =
            self.scene.app.acts.running().map(|undertaking| undertaking.title.as_str()).collect();
        let mut lines = vec![self.line("This is being carried out:", Role::Base)];
        self.list("•", &running, Role::Strong, &mut lines);
        let text = "Left as it is, nothing more happens to it, and the next start offers to go on with it.";
        self.sentence(" ", text, Role::Base, &mut lines);
        lines
    }

    /// What is asked, or why nothing is.
    fn answer(&self, dialog: &Dialog) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        match &dialog.stage {
            DialogStage::Waits(wait) => {
                lines.push(self.line(&format!("◌ {}", waiting(*wait)), Role::FeedBusy))
            }
            DialogStage::Refused(why) => {
                for (place, line) in why.iter().enumerate() {
                    self.sentence(if place == 0 { "✗" } else { " " }, line, Role::LevelError, &mut lines);
                }
            }
            DialogStage::Asks(Prompt::Choice(choices)) => {
                let mut runs = Runs::default();
                for (place, choice) in choices.iter().enumerate() {
                    let (words, role) = if place == dialog.chosen {
                        (format!("[ {choice} ]"), Role::Input)
                    } else {
                        (format!("  {choice}  "), Role::Base)
                    };
                    runs = runs.and(&words, self.style(role)).and("  ", self.style(Role::Base));
                }
                lines.push(self.cut(runs));
            }
            DialogStage::Asks(Prompt::Words(words)) => {
                let runs = Runs::new("Type ", self.style(Role::Base))
                    .and(words, self.style(Role::Key))
                    .and(" to go on:", self.style(Role::Base));
                lines.push(self.cut(runs));
                // The line in which it is typed.
                lines.push(Line::default());
            }
        }
        if let Some(fault) = &dialog.fault {
            lines.push(self.line(fault, Role::LevelError));
        }
        lines
    }
}

const fn waiting(wait: DialogWait) -> &'static str {
    match wait {
        DialogWait::Journal => "reading the journal",
        DialogWait::Plan => "working the plan out",
        DialogWait::Permissions => "asking what is permitted",
        DialogWait::PlanAgain => "working the plan out once more, over the newest state",
        DialogWait::Beginning => "writing the journal",
    }
}

/// A write in a few words.
fn words(step: &PlanStep) -> String {
    match step {
        PlanStep::Cordon { node, on: true, .. } => format!("{node} is cordoned"),
        PlanStep::Cordon { node, on: false, .. } => format!("{node} is uncordoned"),
        PlanStep::SetTaints { node, taints, .. } => {
            let taints: Vec<String> = taints.iter().map(ToString::to_string).collect();
            let taints = if taints.is_empty() { "none".into() } else { taints.join(", ") };
            format!("the taints of {node} become: {taints}")
        }
        PlanStep::SetLabels { node, labels, .. } => {
            let word = |(key, value): &(crate::cluster::Name, Option<crate::cluster::Name>)| match value {
                Some(value) => format!("{key}={value}"),
                None => format!("{key}-"),
            };
            let labels: Vec<String> = labels.iter().map(word).collect();
            format!("labels of {node}: {}", labels.join(", "))
        }
        PlanStep::Evict { pod, .. } | PlanStep::Delete { pod, .. } => pod.to_string(),
    }
}
