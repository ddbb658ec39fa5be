//! Commands that would do something now. Footer and help offer these; any other key gets a message.

use crossterm::event::KeyEvent;

use super::{
    App, HistoryState,
    commands::{COMMANDS, Command, KeyContext, TypedCommand, UserAction},
    detail::Detail,
    dialog::DialogPrompt,
    history_view::PAST,
    maintenance::MaintenanceOption,
    operations::OperationEntry,
    overlays::Overlay,
    pane::{KeyFocus, Pane},
    playback::PlaybackKind,
    preview::PlanKind,
    subject::subject_of_row,
};
use crate::model::suggestions::Means;

impl App {
    /// Whether a key runs the command now and the command would do something.
    pub fn offers(&self, command: &Command) -> bool {
        let covers = match self.screen.overlays.top() {
            Some(Overlay::Help(_)) => !matches!(
                command.action,
                UserAction::Back
                    | UserAction::Help
                    | UserAction::Filter
                    | UserAction::KeepFilter
                    | UserAction::Quit
            ),
            Some(Overlay::Maintenance(_)) => {
                !matches!(
                    (command.context, command.action),
                    (KeyContext::Maintenance(_), _)
                        | (_, UserAction::Back | UserAction::Help | UserAction::Quit | UserAction::Pause)
                ) && !self.is_of_stopped_maintenance(command.action)
            }
            Some(Overlay::Info(_) | Overlay::Timing(_)) => {
                !matches!(command.action, UserAction::Back | UserAction::Help | UserAction::Quit)
            }
            _ => false,
        };
        !covers && command.context.applies(self.screen.key_focus()) && self.would_act(command.action)
    }

    /// Whether the action would do something now, in a pane where it applies.
    pub fn would_act(&self, action: UserAction) -> bool {
        let screen = &self.screen;
        let plan = screen.overlays.plan();
        if self.why_not_in_playback(action).is_some() {
            return false;
        }
        let has_subject = || matches!(subject_of_row(self), Ok(Some(_)));
        match action {
            UserAction::Enter => self.would_enter(),
            UserAction::Detail => has_subject(),
            UserAction::Yaml if screen.focus == Pane::Plan => plan.is_some_and(|plan| plan.plan().is_some()),
            UserAction::Yaml => screen.focus == Pane::Detail || has_subject(),
            UserAction::Copy => self.to_copy().is_ok(),
            UserAction::Fold => screen.overlays.detail().is_some_and(Detail::can_fold),
            UserAction::FoldAll if screen.focus == Pane::Detail => {
                screen.overlays.detail().is_some_and(Detail::has_blocks)
            }
            UserAction::NextMatch | UserAction::PreviousMatch => {
                screen.overlays.detail().is_some_and(Detail::has_other_match)
            }
            UserAction::Mark => match screen.focus {
                Pane::Nodes => !screen.selected_nodes().is_empty(),
                _ => screen.pods.list.selected().is_some(),
            },
            UserAction::MarkAll | UserAction::MarkRange => match screen.focus {
                Pane::Nodes => screen.listed_count() > 0,
                _ => !screen.pods.list.is_empty(),
            },
            UserAction::Plan(kind) => self.has_targets(kind),
            UserAction::Toggle(option) if screen.shows_maintenance() => {
                MaintenanceOption::from_plan(option).is_some()
            }
            UserAction::Maintain(_) => screen.shows_maintenance(),
            UserAction::Toggle(option) => {
                plan.is_some_and(|plan| plan.request.kind.options().contains(&option))
            }
            UserAction::Apply if screen.shows_maintenance() => {
                screen.overlays.maintenance().is_some_and(|sheet| !sheet.request.nodes.is_empty())
            }
            UserAction::Apply => plan.is_some_and(|plan| plan.request.kind != PlanKind::Failure),
            UserAction::Cancel if screen.shows_maintenance() => {
                self.operations.running_maintenance().is_some()
            }
            UserAction::Pause if self.pauses_maintenance() || self.would_play() => true,
            UserAction::Pause | UserAction::Cancel => {
                screen.focus == Pane::Progress
                    && self.shown_operation().is_some_and(OperationEntry::is_running)
            }
            UserAction::Seek(_) | UserAction::Typed(TypedCommand::At) => {
                self.playback.is_some() || self.why_no_history().is_none()
            }
            UserAction::Faster | UserAction::Slower | UserAction::Typed(TypedCommand::Speed) => {
                self.playback.is_some()
            }
            UserAction::Typed(TypedCommand::Save) => matches!(self.history, HistoryState::Kept { .. }),
            UserAction::Progress => match self.operations.entries.len() {
                0 => false,
                1 => screen.focus != Pane::Progress,
                _ => true,
            },
            UserAction::Resume if self.is_of_stopped_maintenance(action) => true,
            UserAction::Resume | UserAction::Dismiss => !self.operations.interrupted.is_empty(),
            UserAction::Typed(TypedCommand::Sort) | UserAction::FlipSort => self.has_sortable_rows(),
            UserAction::Group => !screen.nodes.list.is_empty(),
            UserAction::Wide => self.has_wide_columns(),
            UserAction::Horizon => self.shown().predictions.forecast().is_some(),
            UserAction::ChooseNext | UserAction::ChoosePrevious => self.has_choices(),
            UserAction::Complete => self.has_completion(),
            UserAction::Resize(side, _) => screen.can_resize(side),
            UserAction::MovePane(to) => screen.next_pane_place(to).is_some(),
            UserAction::ResetLayout => self.has_own_layout(),
            UserAction::PreviousPlace => screen.places.has_more(true),
            UserAction::NextPlace => screen.places.has_more(false),
            UserAction::FoldAll => !screen.groups.grouping().is_none(),
            UserAction::PreviousStep => screen.overlays.tour().is_some_and(|step| step.previous().is_some()),
            UserAction::NextStep => screen.overlays.tour().is_some(),
            UserAction::Back => screen.can_go_back(),
            UserAction::Move(_)
            | UserAction::Focus(_)
            | UserAction::NextPane
            | UserAction::PreviousPane
            | UserAction::Zoom
            | UserAction::Filter
            | UserAction::Freeze
            | UserAction::Theme
            | UserAction::Help
            | UserAction::Info
            | UserAction::Timing
            | UserAction::Maintenance
            | UserAction::Events
            | UserAction::Redraw
            | UserAction::Suspend
            | UserAction::Quit
            | UserAction::Edit(_)
            | UserAction::KeepFilter
            | UserAction::KeepTheme
            | UserAction::KeepEdits
            | UserAction::Palette
            | UserAction::RunCommand
            | UserAction::Typed(_)
            | UserAction::Answer
            | UserAction::Undo => true,
        }
    }

    /// Whether the action resumes or releases a maintenance that was stopped.
    fn is_of_stopped_maintenance(&self, action: UserAction) -> bool {
        matches!(action, UserAction::Resume | UserAction::Undo) && self.may_have_stopped_maintenance()
    }

    /// Whether the focused pane has rows, and their order can be changed.
    fn has_sortable_rows(&self) -> bool {
        let screen = &self.screen;
        match screen.focus {
            Pane::Zones => !screen.zones.list.is_empty(),
            Pane::Nodes => !screen.nodes.list.is_empty(),
            Pane::Pods => !screen.pods.list.is_empty(),
            Pane::Evictions => !screen.evictions.list.is_empty(),
            Pane::Pending => !screen.pending.list.is_empty(),
            Pane::Departures => !screen.departures.list.is_empty(),
            Pane::Budgets => !screen.budgets.list.is_empty(),
            Pane::Audit => !screen.audit.list.is_empty(),
            Pane::Events => screen.overlays.event_list().is_some_and(|view| !view.list.is_empty()),
            _ => false,
        }
    }

    /// Whether the nodes pane is visible and has rows. Only this pane has additional columns.
    fn has_wide_columns(&self) -> bool {
        let screen = &self.screen;
        let is_covered = screen.overlays.view().is_some() || screen.pods_of.is_some();
        let is_hidden = screen.zoomed && screen.focus != Pane::Nodes;
        !is_covered && !is_hidden && !screen.nodes.list.is_empty()
    }

    /// Whether the topmost overlay has several proposals to choose from.
    fn has_choices(&self) -> bool {
        match self.screen.overlays.top() {
            Some(Overlay::Question(dialog)) => matches!(dialog.prompt(), Some(DialogPrompt::Choice(_))),
            Some(Overlay::Palette(palette)) => palette.found.len() > 1,
            Some(Overlay::Themes(chooser)) => chooser.found().len() > 1,
            _ => self.proposals() > 1,
        }
    }

    /// Whether the text in the topmost overlay can be completed.
    fn has_completion(&self) -> bool {
        match self.screen.overlays.top() {
            Some(Overlay::Palette(palette)) => !palette.found.is_empty(),
            Some(Overlay::Filter(_)) => self.can_complete_filter(),
            _ => self.proposals() > 0,
        }
    }

    /// Why an action does nothing during playback; `None` if it does something.
    pub fn why_not_in_playback(&self, action: UserAction) -> Option<&'static str> {
        match self.playback.as_ref()?.kind {
            PlaybackKind::Recording => Self::why_not_in_replay(action),
            PlaybackKind::History => Self::why_not_in_history(action),
        }
    }

    /// Why an action does nothing while the history is shown. Operations in progress continue, and can be watched,
    /// paused and cancelled.
    const fn why_not_in_history(action: UserAction) -> Option<&'static str> {
        match action {
            UserAction::Apply
            | UserAction::Undo
            | UserAction::Resume
            | UserAction::Dismiss
            | UserAction::Typed(TypedCommand::Enforce) => Some(PAST),
            UserAction::Yaml => Some("history: it has no whole objects, only what kordon watches"),
            UserAction::Events => Some("history: it has no Events, only what kordon watches"),
            _ => None,
        }
    }

    const fn why_not_in_replay(action: UserAction) -> Option<&'static str> {
        match action {
            UserAction::Apply | UserAction::Undo | UserAction::Resume | UserAction::Dismiss => {
                Some("replay: nothing can be written to a recording")
            }
            UserAction::Cancel | UserAction::Progress => {
                Some("replay: a recording has no operations of ours")
            }
            UserAction::Yaml => Some("replay: a recording has no whole objects, only what kordon watches"),
            UserAction::Events => Some("replay: a recording has no Events, only what kordon watches"),
            UserAction::Freeze => Some("replay: p pauses a recording"),
            _ => None,
        }
    }

    /// Number of proposals for what is typed into a plan.
    fn proposals(&self) -> usize {
        let line = self.screen.overlays.plan().and_then(|plan| plan.line.as_ref());
        line.map_or(0, |line| line.candidates.len())
    }

    fn would_enter(&self) -> bool {
        let screen = &self.screen;
        match screen.focus {
            Pane::Zones => screen.zones.list.selected().is_some(),
            Pane::Nodes => screen.nodes.list.selected().is_some(),
            Pane::Evictions => screen.evictions.list.selected().is_some(),
            Pane::Forecast => screen.forecast.selected().is_some(),
            Pane::Plan => screen.overlays.plan().is_some_and(|plan| plan.line.is_some()),
            Pane::Detail => {
                let means = screen.overlays.detail().and_then(Detail::selected_means);
                matches!(means, Some(Means::Plan(_) | Means::WhatIf(_)))
            }
            Pane::Pods
            | Pane::Progress
            | Pane::Events
            | Pane::Journal
            | Pane::Pending
            | Pane::Departures
            | Pane::Budgets
            | Pane::Audit => false,
        }
    }

    /// Says in the footer that a key does nothing here, and where it does something.
    pub fn on_unknown_key(&mut self, key: KeyEvent) {
        match self.screen.key_focus() {
            KeyFocus::Pane(_) | KeyFocus::Maintenance => {
                self.screen.message = Some(self.preferences.keymap.unknown(key));
            }
            KeyFocus::Tour => {
                self.screen.message = Some("Esc ends the tour, then every key does what it does".into());
            }
            KeyFocus::Input(_) => {}
        }
    }

    /// Says in the footer that a key did nothing, unless there is already a message. Two keys get no message: Esc,
    /// which is often pressed once too often, and the key for wide columns, which may have widened the nodes beside a
    /// focused view.
    pub(super) fn on_idle_action(&mut self, action: UserAction) {
        if self.screen.message.is_some() || matches!(action, UserAction::Back | UserAction::Wide) {
            return;
        }
        let focus = self.screen.key_focus();
        let is_it = |command: &&Command| command.action == action && command.context.applies(focus);
        let key =
            COMMANDS.iter().find(is_it).and_then(|command| self.preferences.keymap.keys(command).next());
        // While text is typed, `?` is a part of the text.
        let help = if matches!(focus, KeyFocus::Input(_)) { "" } else { ": ? shows what does" };
        self.screen.message = key.map(|key| format!("{key} does nothing here{help}"));
    }
}
