//! Overlays over the panes, as a stack.
//!
//! The topmost overlay decides what the next key does ([`Screen::key_focus`](super::Screen::key_focus)) and is what Esc
//! closes (`Screen::back`). Overlays are drawn from the bottom to the top. Four kinds of overlays are views: details,
//! plans, progress and Events. Views take the place of the nodes, and get keys only while they have the focus.

use tui_input::{Input, InputRequest};

use super::{
    commands::COMMANDS,
    detail::{Detail, DetailView},
    dialog::Dialog,
    event_list::EventListView,
    help::HelpSheet,
    listing::Movement,
    maintenance::MaintenanceSheet,
    palette::Palette,
    pane::{InputTarget, Pane},
    preview::Preview,
    progress::Progress,
    theme_chooser::ThemeChooser,
    timing::TimingSheet,
    tour::TourStep,
};

/// An overlay.
#[derive(Clone, Debug)]
pub enum Overlay {
    /// A view of everything about one node or pod.
    Detail(Box<Detail>),
    /// A view of a plan.
    Plan(Box<Preview>),
    /// A view of an operation's progress.
    Progress(Progress),
    /// A view of the cluster's Events.
    Events(Box<EventListView>),
    /// The filter of the focused pane, while it is being typed.
    Filter(Input),
    /// The command palette.
    Palette(Palette),
    /// A question to the operator, drawn over all panes.
    Question(Box<Dialog>),
    /// The help: all commands with their keys. Opening another overlay closes the help.
    Help(HelpSheet),
    /// The information sheet, with the index of its first shown line.
    Info(usize),
    /// The timing sheet: how soon this cluster notices a dead node, compared with the common profiles.
    Timing(Box<TimingSheet>),
    /// The maintenance sheet: the waves of a maintenance, or its progress.
    Maintenance(Box<MaintenanceSheet>),
    /// A step of the tour.
    Tour(TourStep),
    /// The list of themes, while one is chosen.
    Themes(ThemeChooser),
}

/// The overlays that are open, the topmost last. Views are always below the others.
#[derive(Clone, Debug, Default)]
pub struct Overlays(Vec<Overlay>);

impl Overlay {
    /// Pane of a view; `None` for overlays that cover all panes.
    pub const fn pane(&self) -> Option<Pane> {
        match self {
            Self::Detail(_) => Some(Pane::Detail),
            Self::Plan(_) => Some(Pane::Plan),
            Self::Progress(_) => Some(Pane::Progress),
            Self::Events(_) => Some(Pane::Events),
            Self::Filter(_)
            | Self::Palette(_)
            | Self::Question(_)
            | Self::Help(_)
            | Self::Info(_)
            | Self::Timing(_)
            | Self::Maintenance(_)
            | Self::Tour(_)
            | Self::Themes(_) => None,
        }
    }

    /// Pane that gets the focus when the view is closed.
    pub const fn opened_from(&self) -> Option<Pane> {
        match self {
            Self::Detail(detail) => Some(detail.from),
            Self::Plan(preview) => Some(preview.from),
            Self::Progress(progress) => Some(progress.from),
            Self::Events(view) => Some(view.from),
            Self::Filter(_)
            | Self::Palette(_)
            | Self::Question(_)
            | Self::Help(_)
            | Self::Info(_)
            | Self::Timing(_)
            | Self::Maintenance(_)
            | Self::Tour(_)
            | Self::Themes(_) => None,
        }
    }

    /// The kind of text typed into the overlay; `None` if keys are commands.
    pub fn input(&self) -> Option<InputTarget> {
        match self {
            Self::Plan(preview) => preview.is_typing().then_some(InputTarget::Edits),
            Self::Filter(_) => Some(InputTarget::Filter),
            Self::Palette(_) => Some(InputTarget::Command),
            Self::Question(_) => Some(InputTarget::Answer),
            Self::Help(sheet) => sheet.is_typing.then_some(InputTarget::Filter),
            Self::Themes(_) => Some(InputTarget::Theme),
            Self::Maintenance(sheet) => sheet.line.is_some().then_some(InputTarget::Edits),
            Self::Detail(_)
            | Self::Progress(_)
            | Self::Events(_)
            | Self::Info(_)
            | Self::Timing(_)
            | Self::Tour(_) => None,
        }
    }

    /// Whether this is a detail that shows the whole object as YAML.
    pub(super) fn is_yaml(&self) -> bool {
        matches!(self, Self::Detail(detail) if detail.view == DetailView::Yaml)
    }

    /// Whether Esc closes the overlay. A question whose approval can no longer be cancelled stays open.
    pub fn can_be_closed(&self) -> bool {
        match self {
            Self::Question(dialog) => dialog.can_be_left(),
            Self::Detail(_)
            | Self::Plan(_)
            | Self::Progress(_)
            | Self::Events(_)
            | Self::Filter(_)
            | Self::Palette(_)
            | Self::Help(_)
            | Self::Info(_)
            | Self::Timing(_)
            | Self::Maintenance(_)
            | Self::Tour(_)
            | Self::Themes(_) => true,
        }
    }

    /// Edits the text typed into the overlay.
    pub(super) fn edit(&mut self, request: InputRequest) {
        match self {
            Self::Plan(preview) => preview.edit(request),
            Self::Filter(input) => {
                input.handle(request);
            }
            Self::Palette(palette) => palette.edit(request),
            Self::Question(dialog) => dialog.edit(request),
            Self::Help(sheet) => sheet.edit(request),
            Self::Themes(chooser) => chooser.edit(request),
            Self::Maintenance(sheet) => sheet.edit(request),
            Self::Detail(_)
            | Self::Progress(_)
            | Self::Events(_)
            | Self::Info(_)
            | Self::Timing(_)
            | Self::Tour(_) => {}
        }
    }

    /// Completes the typed text with the chosen proposal.
    pub(super) fn complete(&mut self) {
        match self {
            Self::Plan(preview) => preview.complete(),
            Self::Palette(palette) => palette.complete(),
            // A filter is completed by the screen instead, because the fields depend on the pane.
            Self::Filter(_)
            | Self::Detail(_)
            | Self::Progress(_)
            | Self::Events(_)
            | Self::Question(_)
            | Self::Help(_)
            | Self::Info(_)
            | Self::Timing(_)
            | Self::Maintenance(_)
            | Self::Tour(_)
            | Self::Themes(_) => {}
        }
    }

    /// Moves the choice among proposals or answers by this many places.
    pub(super) fn choose(&mut self, by: isize) {
        match self {
            Self::Plan(preview) => preview.choose(by),
            Self::Palette(palette) => palette.choose(by),
            Self::Question(dialog) => dialog.choose(by),
            Self::Themes(chooser) => chooser.choose(by),
            Self::Detail(_)
            | Self::Progress(_)
            | Self::Events(_)
            | Self::Filter(_)
            | Self::Help(_)
            | Self::Info(_)
            | Self::Timing(_)
            | Self::Maintenance(_)
            | Self::Tour(_) => {}
        }
    }

    /// Selects the row with this index in the list of the view.
    pub(super) fn select_place(&mut self, place: usize) {
        match self {
            Self::Detail(detail) => detail.list.select_place(place),
            Self::Progress(progress) => progress.list.select_place(place),
            Self::Events(view) => view.list.select_place(place),
            Self::Plan(_)
            | Self::Filter(_)
            | Self::Palette(_)
            | Self::Question(_)
            | Self::Help(_)
            | Self::Info(_)
            | Self::Timing(_)
            | Self::Maintenance(_)
            | Self::Tour(_)
            | Self::Themes(_) => {}
        }
    }

    /// Moves among the rows of the overlay.
    pub(super) fn step(&mut self, step: Movement) {
        match self {
            Self::Detail(detail) => detail.list.step(step),
            Self::Plan(preview) => preview.step(step),
            Self::Progress(progress) => progress.list.step(step),
            Self::Events(view) => view.list.step(step),
            Self::Help(sheet) => sheet.scrolled = scroll(sheet.scrolled, step),
            Self::Info(scrolled) => *scrolled = scroll(*scrolled, step),
            Self::Timing(sheet) => sheet.scrolled = scroll(sheet.scrolled, step),
            Self::Maintenance(sheet) => sheet.scrolled = scroll(sheet.scrolled, step),
            Self::Filter(_) | Self::Palette(_) | Self::Question(_) | Self::Tour(_) | Self::Themes(_) => {}
        }
    }

    /// Number of rows of a view.
    pub fn rows(&self) -> usize {
        match self {
            Self::Detail(detail) => detail.list.len(),
            Self::Plan(preview) => preview.list.len(),
            Self::Progress(progress) => progress.list.len(),
            Self::Events(view) => view.list.len(),
            Self::Filter(_)
            | Self::Palette(_)
            | Self::Question(_)
            | Self::Help(_)
            | Self::Info(_)
            | Self::Timing(_)
            | Self::Maintenance(_)
            | Self::Tour(_)
            | Self::Themes(_) => 0,
        }
    }

    /// Records the number of rows that a view had room for when drawn.
    pub(super) fn drawn(&mut self, rows: usize) {
        match self {
            Self::Detail(detail) => detail.list.set_drawn(rows),
            Self::Plan(preview) => preview.list.set_drawn(rows),
            Self::Progress(progress) => progress.list.set_drawn(rows),
            Self::Events(view) => view.list.set_drawn(rows),
            Self::Filter(_)
            | Self::Palette(_)
            | Self::Question(_)
            | Self::Help(_)
            | Self::Info(_)
            | Self::Timing(_)
            | Self::Maintenance(_)
            | Self::Tour(_)
            | Self::Themes(_) => {}
        }
    }
}

/// Returns the index of a sheet's first shown line after a move.
fn scroll(scrolled: usize, step: Movement) -> usize {
    const PAGE: usize = 10;
    // Upper limit of the index for every sheet: the number of commands and group titles in the help. Drawing stops at
    // the real last line of the sheet.
    let last = COMMANDS.len() + 6;
    let scrolled = match step {
        Movement::Up => scrolled.saturating_sub(1),
        Movement::Down => scrolled + 1,
        Movement::PageUp => scrolled.saturating_sub(PAGE),
        Movement::PageDown => scrolled + PAGE,
        Movement::HalfPageUp => scrolled.saturating_sub(PAGE / 2),
        Movement::HalfPageDown => scrolled + PAGE / 2,
        Movement::First => 0,
        Movement::Last => last,
        Movement::Row(row) => row,
    };
    scrolled.min(last)
}

/// Defines accessors for the topmost overlay of one kind.
macro_rules! of_kind {
    ($variant:ident: $kind:ty, $name:ident, $name_mut:ident) => {
        pub fn $name(&self) -> Option<&$kind> {
            self.0.iter().rev().find_map(|overlay| -> Option<&$kind> {
                if let Overlay::$variant(found) = overlay { Some(found) } else { None }
            })
        }

        pub fn $name_mut(&mut self) -> Option<&mut $kind> {
            self.0.iter_mut().rev().find_map(|overlay| -> Option<&mut $kind> {
                if let Overlay::$variant(found) = overlay { Some(found) } else { None }
            })
        }
    };
}

impl Overlays {
    of_kind!(Detail: Detail, detail, detail_mut);
    of_kind!(Plan: Preview, plan, plan_mut);
    of_kind!(Progress: Progress, progress, progress_mut);
    of_kind!(Events: EventListView, event_list, event_list_mut);
    of_kind!(Palette: Palette, palette, palette_mut);
    of_kind!(Question: Dialog, question, question_mut);
    of_kind!(Timing: TimingSheet, timing, timing_mut);
    of_kind!(Maintenance: MaintenanceSheet, maintenance, maintenance_mut);

    /// Overlays from the bottom to the top.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Overlay> {
        self.0.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Overlay> {
        self.0.iter_mut()
    }

    pub fn top(&self) -> Option<&Overlay> {
        self.0.last()
    }

    pub(super) fn top_mut(&mut self) -> Option<&mut Overlay> {
        self.0.last_mut()
    }

    /// The topmost view, which takes the place of the nodes.
    pub fn view(&self) -> Option<&Overlay> {
        self.iter().rfind(|overlay| overlay.pane().is_some())
    }

    /// The step of the tour, if the tour gets the keys.
    pub fn tour(&self) -> Option<TourStep> {
        match self.top()? {
            Overlay::Tour(step) => Some(*step),
            _ => None,
        }
    }

    /// The detail, if it is the shown view.
    pub fn shown_detail(&self) -> Option<&Detail> {
        match self.view()? {
            Overlay::Detail(detail) => Some(detail),
            _ => None,
        }
    }

    pub(super) fn view_mut(&mut self) -> Option<&mut Overlay> {
        self.iter_mut().rfind(|overlay| overlay.pane().is_some())
    }

    /// The help, if it is open.
    pub(super) fn help_mut(&mut self) -> Option<&mut HelpSheet> {
        match self.top_mut()? {
            Overlay::Help(sheet) => Some(sheet),
            _ => None,
        }
    }

    /// Opens an overlay and closes those that it replaces. At most one question is open, and at most one plan or
    /// progress. A detail opened from a plan, progress or Events covers that view; any other detail replaces all views.
    pub(super) fn open(&mut self, overlay: Overlay) {
        // The maintenance sheet stays open below questions, inputs and help that belong to it.
        let keeps_sheet = matches!(overlay, Overlay::Question(_) | Overlay::Palette(_) | Overlay::Help(_));
        let gives_way = |other: &Overlay| match other {
            Overlay::Help(_) | Overlay::Info(_) | Overlay::Timing(_) | Overlay::Tour(_) => true,
            Overlay::Maintenance(_) => !keeps_sheet,
            Overlay::Detail(_)
            | Overlay::Plan(_)
            | Overlay::Progress(_)
            | Overlay::Events(_)
            | Overlay::Filter(_)
            | Overlay::Palette(_)
            | Overlay::Question(_)
            | Overlay::Themes(_) => false,
        };
        self.0.retain(|other| !gives_way(other));
        match &overlay {
            Overlay::Detail(detail) if matches!(detail.from, Pane::Plan | Pane::Progress | Pane::Events) => {}
            Overlay::Detail(_) | Overlay::Progress(_) | Overlay::Events(_) => self.close_views(),
            Overlay::Plan(_) => self.close_plan(),
            Overlay::Question(_) => drop(self.close_question()),
            Overlay::Filter(_)
            | Overlay::Palette(_)
            | Overlay::Help(_)
            | Overlay::Info(_)
            | Overlay::Timing(_)
            | Overlay::Maintenance(_)
            | Overlay::Tour(_)
            | Overlay::Themes(_) => {}
        }
        let place = if overlay.pane().is_some() { self.views() } else { self.0.len() };
        self.0.insert(place, overlay);
    }

    pub(super) fn close_top(&mut self) -> Option<Overlay> {
        self.0.pop()
    }

    /// Closes the views that cover the Events. Returns whether Events are open.
    pub(super) fn uncover_events(&mut self) -> bool {
        let is_open = self.event_list().is_some();
        if is_open {
            self.0.retain(|overlay| overlay.pane().is_none() || matches!(overlay, Overlay::Events(_)));
        }
        is_open
    }

    /// Closes every view, so that the nodes or one node's pods are shown again.
    pub(super) fn close_views(&mut self) {
        self.0.retain(|overlay| overlay.pane().is_none());
    }

    pub(super) fn close_question(&mut self) -> Option<Dialog> {
        let place = self.iter().position(|overlay| matches!(overlay, Overlay::Question(_)))?;
        match self.0.remove(place) {
            Overlay::Question(dialog) => Some(*dialog),
            _ => None,
        }
    }

    /// Closes the plan or progress, together with the details that were opened from it.
    fn close_plan(&mut self) {
        let is_plan = |overlay: &Overlay| matches!(overlay, Overlay::Plan(_) | Overlay::Progress(_));
        let (first, views) = (self.iter().position(is_plan), self.views());
        if let Some(first) = first {
            self.0.drain(first..views);
        }
    }

    /// Number of views. They are at the bottom of the stack.
    fn views(&self) -> usize {
        self.iter().take_while(|overlay| overlay.pane().is_some()).count()
    }
}
