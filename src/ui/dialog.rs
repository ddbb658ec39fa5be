//! The confirmation dialog, drawn over the whole screen: its subject, objections, and the possible answers.

use ratatui::{
    buffer::Buffer,
    layout::{Constraint, Rect},
    style::Style,
    text::Line,
    widgets::Block,
};

use super::{
    Scene,
    maintenance::summary,
    mark::mark,
    panes, text,
    theme::Role,
    widgets::{
        field::field,
        segments::{Runs, cut_line},
        sheet,
    },
};
use crate::app::{
    dialog::{Dialog, DialogPrompt, DialogSubject},
    maintenance::{MaintenanceProposal, StoppedProposal, StoppedWay},
};
use kordon_core::{
    cluster::{MaintenanceNote, MaintenanceNotes, NodeName, OperationId},
    maintenance::data_loss,
    operation::{
        OperationOptions,
        approval::{Approval, Objection, UndoProposal, Wait},
    },
    plan::words::counted,
    visible,
};

/// Maximum width of the dialog in cells.
const WIDEST: u16 = 96;

/// Maximum number of items shown of each list, for example of warnings.
const SHOWN: usize = 6;

/// ```text
/// ╭ Apply ───────────────────────────────────────────────── demo ╮
/// │ drain general-1a-02   completes in ~35s                       │
/// │ 12 pods · 9 leave now · 3 stay                                │
/// │ ▲ …                                                           │
/// │                                                               │
/// │ Type demo to continue: de▏                                    │
/// ╰ Enter answers · Esc cancels ──────────────────────────────────╯
/// ```
/// Draws the dialog in the middle of the screen. If the context is marked, the frame has the colour and the word of the
/// mark. Returns the position of the cursor while text is typed.
pub fn draw(scene: &Scene, dialog: &Dialog, area: Rect, buf: &mut Buffer) -> Option<(u16, u16)> {
    let width = WIDEST.min(area.width.saturating_sub(4));
    let paper = Paper { scene, cells: usize::from(width.saturating_sub(4)) };
    let answer = paper.answer(dialog);
    let mut lines = paper.body(dialog);
    let most = usize::from(area.height.saturating_sub(4)).saturating_sub(answer.len() + 1);
    if lines.len() > most {
        lines.truncate(most.saturating_sub(1));
        lines.push(paper.line("  … and more: Esc cancels, the plan shows all", Role::Dim));
    }
    lines.push(Line::default());
    let question = lines.len();
    lines.extend(answer);
    let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX).min(area.height);
    let area = area.centered(Constraint::Length(width), Constraint::Length(height));
    let border = scene.style(scene.border(true));
    let (word, colour) = mark(scene).unwrap_or((String::new(), border));
    let frame = Block::bordered()
        .border_style(colour)
        .title(Runs::new(title(dialog), scene.style(Role::TitleFocus)).line())
        .title(
            Runs::new(&word, colour)
                .and(&format!(" {} ", scene.app.model.connection.context), scene.style(Role::Strong))
                .line()
                .right_aligned(),
        )
        .title_bottom(Runs::new(hints(dialog), scene.style(Role::Dim)).line());
    let inner = sheet(frame, scene.style(Role::Base), area, buf);
    for (y, line) in (inner.y..inner.bottom()).zip(&lines) {
        text::draw_line(line, (inner.x, y), inner.width, buf);
    }
    let Some(DialogPrompt::Words(_)) = dialog.prompt() else { return None };
    let y = inner.y + u16::try_from(question + 1).unwrap_or(0);
    let line = Rect { y, height: 1, ..inner };
    if !inner.contains(line.as_position()) {
        return None;
    }
    Some((field(&dialog.input, scene.style(Role::Input), true, line, buf), y))
}

fn title(dialog: &Dialog) -> &'static str {
    match &dialog.subject {
        DialogSubject::Approval(approval) if approval.resumes().is_some() => " Resume an interrupted drain ",
        DialogSubject::Approval(approval) if approval.undo_proposal().is_some() => " Undo ",
        DialogSubject::Approval(_) => " Apply ",
        DialogSubject::FindUndo => " Undo ",
        DialogSubject::Maintenance(_) => " Maintenance ",
        DialogSubject::Stopped(proposal) => match proposal.way {
            StoppedWay::Resume => " Resume a stopped maintenance ",
            StoppedWay::Release => " Release a stopped maintenance ",
        },
        DialogSubject::Cancel(_) | DialogSubject::CancelMaintenance(_) => " Cancel ",
        DialogSubject::Quit => " Quit ",
    }
}

fn hints(dialog: &Dialog) -> &'static str {
    // For questions about running operations, "cancels" would read as if Esc cancelled the operation.
    let is_of_running = matches!(
        dialog.subject,
        DialogSubject::Cancel(_) | DialogSubject::CancelMaintenance(_) | DialogSubject::Quit
    );
    match dialog.prompt() {
        Some(DialogPrompt::Choice(_)) if is_of_running => " Tab or ← → choose · Enter answers · Esc closes ",
        Some(DialogPrompt::Choice(_)) => " Tab or ← → choose · Enter answers · Esc cancels ",
        Some(DialogPrompt::Words(_)) => " Enter answers · Esc cancels ",
        None if !dialog.can_be_left() => " starting ",
        None if dialog.has_ended() => " Esc closes ",
        None => " Esc cancels ",
    }
}

/// Builds lines of the dialog, `cells` wide.
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

    /// Adds a sentence after a sign such as `▲`, wrapped to at most three lines.
    fn sentence(&self, sign: &str, text: &str, role: Role, lines: &mut Vec<Line<'static>>) {
        let wrapped = text::wrap(&text::brief(&visible::text(text)), self.cells.saturating_sub(2), 3);
        for (place, part) in wrapped.iter().enumerate() {
            let lead = if place == 0 { format!("{sign:<2}") } else { "  ".into() };
            lines.push(self.line(&format!("{lead}{part}"), role));
        }
    }

    /// Adds the first items of a list, and the number of the others.
    fn list<T: std::fmt::Display>(&self, sign: &str, all: &[T], role: Role, lines: &mut Vec<Line<'static>>) {
        for one in all.iter().take(SHOWN) {
            self.sentence(sign, &one.to_string(), role, lines);
        }
        if all.len() > SHOWN {
            lines.push(self.line(&format!("  and {} more", text::count(all.len() - SHOWN)), Role::Dim));
        }
    }

    fn body(&self, dialog: &Dialog) -> Vec<Line<'static>> {
        match &dialog.subject {
            DialogSubject::FindUndo => Vec::new(),
            DialogSubject::Approval(approval) => match approval.undo_proposal() {
                Some(undo) => self.undo(approval, undo),
                None => self.plan(approval),
            },
            DialogSubject::Maintenance(proposal) => self.maintenance(proposal),
            DialogSubject::Stopped(proposal) => self.stopped(proposal),
            DialogSubject::Cancel(id) => self.cancel(id),
            DialogSubject::CancelMaintenance(id) => self.cancel_maintenance(id),
            DialogSubject::Quit => self.quit(),
        }
    }

    fn plan(&self, approval: &Approval) -> Vec<Line<'static>> {
        let Some(plan) = approval.plan() else { return vec![self.line(&approval.title(), Role::Strong)] };
        let mut lines = self.drifts(approval);
        let (prospect, role) = panes::plan::prospect(plan);
        let head = Runs::new(&approval.title(), self.style(Role::Strong))
            .and("   ", self.style(Role::Base))
            .and(&prospect, self.style(role));
        lines.push(self.cut(head));
        let totals = panes::plan::totals(self.scene, plan);
        if !totals.is_empty() {
            lines.push(self.cut(totals));
        }
        lines.push(self.cut(self.terms(approval.options())));
        self.list("▲", &plan.warnings, Role::LevelWarning, &mut lines);
        self.objections(approval, &mut lines);
        lines
    }

    /// Lines that list what has changed since the operator agreed.
    fn drifts(&self, approval: &Approval) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        if let Some(question) = approval.question().filter(|question| !question.drifts.is_empty()) {
            self.sentence("▲", "Changed since you agreed:", Role::LevelWarning, &mut lines);
            self.list(" ", &question.drifts, Role::Base, &mut lines);
            lines.push(Line::default());
        }
        lines
    }

    /// A line with the reason and the limits of the operation.
    fn terms(&self, options: &OperationOptions) -> Runs {
        let (dim, base) = (self.style(Role::Dim), self.style(Role::Base));
        let mut runs = match options.reason.as_str() {
            "" => Runs::new("no reason given (:reason WORDS)", dim),
            reason => Runs::new("reason: ", dim).and(reason, base),
        };
        if let Some(until) = options.until {
            runs = runs.and(" · cordoned until ", dim).and(&text::clock(until), base);
        }
        if let Some(within) = options.total_timeout {
            runs = runs.and(" · within ", dim).and(&within.to_string(), base);
        }
        runs
    }

    /// Adds the objections to the operation.
    fn objections(&self, approval: &Approval, lines: &mut Vec<Line<'static>>) {
        let Some(question) = approval.question() else { return };
        for line in question.objections.iter().flat_map(Objection::lines) {
            self.sentence("✗", &line, Role::LevelError, lines);
        }
    }

    fn undo(&self, approval: &Approval, undo: &UndoProposal) -> Vec<Line<'static>> {
        let prior = &undo.prior;
        let end = prior.end.as_deref().unwrap_or("not ended");
        let head = Runs::new(&prior.title, self.style(Role::Strong)).and(
            &format!("   {} by {} · {end}", prior.started_at.to_time(), prior.by),
            self.style(Role::Dim),
        );
        let mut lines = self.drifts(approval);
        lines.extend([self.cut(head), self.line(&prior.id, Role::Dim)]);
        let writes = undo.writes();
        if writes.is_empty() {
            lines.push(self.line("nothing to undo on its nodes", Role::Dim));
        } else {
            lines.push(self.line("would be undone:", Role::Heading));
            self.list("•", &writes, Role::Base, &mut lines);
        }
        if !undo.kept.is_empty() {
            lines.push(self.line("stays as it is:", Role::Heading));
            self.list("○", &undo.kept, Role::Dim, &mut lines);
        }
        if !prior.run.pods.is_empty() {
            lines.push(self.line("pods are not restored", Role::Dim));
        }
        self.objections(approval, &mut lines);
        lines
    }

    fn cancel(&self, id: &OperationId) -> Vec<Line<'static>> {
        let title = self.scene.app.operations.entry(id).map_or(&**id, |entry| entry.title.as_str());
        let mut lines = vec![self.line(title, Role::Strong)];
        let text = "Nothing more is started. Pods that are terminating still leave, and nodes stay cordoned (U undoes \
                    that).";
        self.sentence(" ", text, Role::Base, &mut lines);
        lines
    }

    /// Lines about a maintenance that is about to start: its waves, and the work on the machines.
    fn maintenance(&self, proposal: &MaintenanceProposal) -> Vec<Line<'static>> {
        let MaintenanceProposal { request, plan, prompt: _ } = proposal;
        let mut lines = vec![self.line(&summary(plan), Role::Strong)];
        for (number, wave) in plan.waves.iter().enumerate().take(SHOWN) {
            let names: Vec<&str> = wave.nodes.iter().map(|node| &**node).collect();
            lines.push(self.line(&format!("wave {:>3} {}", number + 1, names.join(", ")), Role::Base));
        }
        if plan.waves.len() > SHOWN {
            let more = counted(plan.waves.len() - SHOWN, "wave", "waves");
            lines.push(self.line(&format!("and {more} more"), Role::Dim));
        }
        let lost = plan.waves.iter().map(|wave| wave.losses.len()).sum::<usize>();
        if lost > 0 {
            let pods = counted(lost, "pod is", "pods are");
            self.sentence(
                "▲",
                &format!("{pods} lost: nothing recreates them"),
                Role::LevelWarning,
                &mut lines,
            );
        }
        if let Some(text) = data_loss(plan.cost().data_lost) {
            self.sentence("▲", &text, Role::LevelWarning, &mut lines);
        }
        if !plan.left_out.is_empty() {
            let nodes = counted(plan.left_out.len(), "node is", "nodes are");
            self.sentence("▲", &format!("{nodes} in no wave"), Role::LevelWarning, &mut lines);
        }
        if request.surge {
            let text = "scales Deployments whose budgets can never allow an eviction up by one, until their pods have left";
            self.sentence("•", text, Role::Base, &mut lines);
        }
        if !request.exec.is_empty() {
            let text = format!("runs here for each node: {}", request.exec);
            self.sentence("•", &text, Role::Base, &mut lines);
        }
        if !request.gate.is_empty() {
            let text = format!("runs here between waves, and has to succeed: {}", request.gate);
            self.sentence("•", &text, Role::Base, &mut lines);
        }
        if let Some(text) = plan.control_plane_warning() {
            self.sentence("▲", &text, Role::LevelWarning, &mut lines);
        }
        if let Some(wait_for) = &request.wait_for {
            self.sentence("•", &format!("waits for {wait_for}"), Role::Base, &mut lines);
        }
        let fate = if request.rolls_back { "are uncordoned" } else { "stay cordoned" };
        let text = format!(
            "Each wave is worked out again before it starts. If something fails, nodes that are not drained {fate}."
        );
        self.sentence(" ", &text, Role::Dim, &mut lines);
        lines
    }

    fn stopped(&self, proposal: &StoppedProposal) -> Vec<Line<'static>> {
        let MaintenanceNotes { operation, by, nodes, .. } = &proposal.notes;
        let mut lines = vec![self.line(&format!("{operation} by {by}"), Role::Strong)];
        let stage = |(node, note): (&NodeName, &MaintenanceNote)| format!("{node} {}", note.stage.text());
        self.list("•", &nodes.iter().map(stage).collect::<Vec<_>>(), Role::Base, &mut lines);
        let text = match proposal.way {
            StoppedWay::Resume => {
                "The rest is carried out as it was started: first the wave that was interrupted."
            }
            StoppedWay::Release => {
                "Nodes that it has cordoned are uncordoned, and it is over. Work on machines is not undone."
            }
        };
        self.sentence(" ", text, Role::Dim, &mut lines);
        lines
    }

    fn cancel_maintenance(&self, id: &OperationId) -> Vec<Line<'static>> {
        let mut lines = vec![self.line(id, Role::Strong)];
        let text = format!(
            "Nothing more is started. Commands that run go on to their end, and nodes stay cordoned until `kordon \
             maintenance --resume={id} --enforce` goes on or --release={id} ends it."
        );
        self.sentence(" ", &text, Role::Base, &mut lines);
        lines
    }

    fn quit(&self) -> Vec<Line<'static>> {
        let running = self.scene.app.operations.running_titles();
        let mut lines = vec![self.line("In progress:", Role::Base)];
        self.list("•", &running, Role::Strong, &mut lines);
        let text = if self.scene.app.model.connection.is_embedded() {
            "Quitting ends this demo cluster too: nothing can be resumed."
        } else {
            "After quitting nothing more happens to it. The next start offers to resume a drain, and `kordon \
             maintenance --resume --enforce` goes on with a maintenance."
        };
        self.sentence(" ", text, Role::Base, &mut lines);
        lines
    }

    /// Lines of the question. Without a question, lines that show the state of the approval, or that the journal is
    /// being read.
    fn answer(&self, dialog: &Dialog) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        match (dialog.prompt(), &dialog.subject) {
            (Some(DialogPrompt::Choice(choices)), _) => lines.push(self.choices(&choices, dialog.chosen)),
            (Some(DialogPrompt::Words(words)), _) => {
                let runs = Runs::new("Type ", self.style(Role::Base))
                    .and(words, self.style(Role::Key))
                    .and(" to continue:", self.style(Role::Base));
                lines.push(self.cut(runs));
                // Empty line over which the typed answer is drawn.
                lines.push(Line::default());
            }
            (None, DialogSubject::Approval(approval)) => self.state(approval, &mut lines),
            (None, _) => lines.push(self.line("◌ reading the journal", Role::FeedBusy)),
        }
        if dialog.mismatch {
            lines.push(self.line("does not match; Esc cancels", Role::LevelError));
        }
        lines
    }

    fn choices(&self, choices: &[&str], chosen: usize) -> Line<'static> {
        let mut runs = Runs::default();
        for (place, choice) in choices.iter().enumerate() {
            let (words, role) = if place == chosen {
                (format!("[ {choice} ]"), Role::Input)
            } else {
                (format!("  {choice}  "), Role::Base)
            };
            runs = runs.and(&words, self.style(role)).and("  ", self.style(Role::Base));
        }
        self.cut(runs)
    }

    /// Adds what the approval waits for, or how it ended.
    fn state(&self, approval: &Approval, lines: &mut Vec<Line<'static>>) {
        if let Some(wait) = approval.waits_for() {
            return lines.push(self.line(&format!("◌ {}", waiting(wait)), Role::FeedBusy));
        }
        for (place, line) in approval.decision().iter().flat_map(|decision| decision.lines()).enumerate() {
            self.sentence(if place == 0 { "✗" } else { " " }, &line, Role::LevelError, lines);
        }
    }
}

const fn waiting(wait: Wait) -> &'static str {
    match wait {
        Wait::Plan => "making the plan",
        Wait::Checks => "checking permissions",
        Wait::Answer => "waiting for an answer",
        Wait::PlanAgain => "making the plan again over the newest state",
        Wait::Start => "writing the journal",
    }
}
