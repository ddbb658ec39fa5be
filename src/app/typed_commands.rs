//! Runs the commands that are typed after `:`.

use std::collections::BTreeSet;

use super::{
    App, Pane, TakenAlong,
    commands::TypedCommand,
    groups::Grouping,
    preferences::{SavedView, view_named},
    sorting::{column_and_direction, sort_text},
    typed_span::span,
};
use kordon_core::cluster::nearest::{did_you_mean, nearest};
use kordon_time::Timestamp;

impl App {
    /// Runs a typed command.
    ///
    /// # Errors
    /// The command cannot be run here, or its argument is wrong; the text says why.
    pub(super) fn run_typed(
        &mut self,
        typed: TypedCommand,
        argument: &str,
        now: Timestamp,
    ) -> Result<(), String> {
        match typed {
            TypedCommand::Enforce => self.enforce(argument, now)?,
            TypedCommand::DryRun => self.stop_enforcing(now)?,
            TypedCommand::Reason => {
                self.operations.reason = argument.into();
                self.screen.message = Some(if argument.is_empty() {
                    "reason removed".into()
                } else {
                    format!("reason of the next operations: {argument}")
                });
            }
            TypedCommand::Until => {
                self.operations.until = span(argument)?;
                self.screen.message = Some(self.operations.until.map_or_else(
                    || "the next cordons have no end date".into(),
                    |span| format!("the next cordons are meant to last {span}"),
                ));
            }
            TypedCommand::At => self.go_to_typed(argument)?,
            TypedCommand::Speed => self.set_speed(argument)?,
            TypedCommand::Save => self.save_history(argument)?,
            TypedCommand::Export if argument.is_empty() => {
                return Err("name a file that does not exist: export nodes.csv".into());
            }
            TypedCommand::Export => self.taken_along = Some(TakenAlong::File(argument.into())),
            TypedCommand::Tour => self.screen.start_tour(),
            TypedCommand::NotifyTest => self.test_notice = true,
            TypedCommand::Theme if argument.is_empty() => self.screen.choose_theme(),
            TypedCommand::Theme => self.screen.use_theme(argument)?,
            TypedCommand::Sort => {
                self.screen.sort_by(argument)?;
                self.arrange(now);
            }
            TypedCommand::Group => {
                self.screen.group_by(Grouping::parse(argument));
                self.arrange(now);
            }
            TypedCommand::Zone => {
                let filter = if argument.is_empty() { String::new() } else { format!("zone:{argument}") };
                self.filter_pane(Pane::Nodes, &filter, now);
            }
            TypedCommand::Context => self.go_to_context(argument)?,
            TypedCommand::View => self.show_view(argument, now)?,
            TypedCommand::SaveView => self.save_view(argument)?,
            TypedCommand::SaveLayout => {
                self.taken_along = Some(TakenAlong::Layout(self.screen.layout.clone()))
            }
            TypedCommand::Namespace => self.show_namespace(argument, now)?,
            TypedCommand::Nodes if argument.is_empty() => {
                self.screen.uncover_nodes();
                self.screen.focus_on(Pane::Nodes);
                self.arrange(now);
            }
            TypedCommand::Nodes => self.filter_pane(Pane::Nodes, argument, now),
            TypedCommand::Pods => self.show_pods_of(argument, now)?,
            TypedCommand::Within => {
                self.operations.within = span(argument)?;
                self.screen.message = Some(self.operations.within.map_or_else(
                    || "the next operations have no time limit".into(),
                    |span| format!("the next operations may take {span} each"),
                ));
            }
        }
        Ok(())
    }
}

/// Panes whose rows have a namespace.
const NAMESPACED: [Pane; 7] =
    [Pane::Pods, Pane::Events, Pane::Evictions, Pane::Pending, Pane::Departures, Pane::Budgets, Pane::Audit];

impl App {
    /// Filters the panes whose rows have a namespace; an empty name clears their filters.
    ///
    /// # Errors
    /// The cluster has no such namespace.
    fn show_namespace(&mut self, name: &str, now: Timestamp) -> Result<(), String> {
        self.check_namespace(name)?;
        self.filter_by_namespace(name);
        self.arrange(now);
        for pane in NAMESPACED {
            self.screen.choose_first(pane);
        }
        Ok(())
    }

    /// Filters the panes whose rows have a namespace, whether or not the cluster has it, and says so; an empty name
    /// clears their filters.
    pub fn filter_by_namespace(&mut self, name: &str) {
        let filter = if name.is_empty() { String::new() } else { format!("ns={name}") };
        for pane in NAMESPACED {
            self.screen.set_filter(pane, &filter);
        }
        self.screen.message = Some(match name {
            "" => "pods and budgets of all namespaces".into(),
            name => format!("only pods and budgets of {name}; :ns shows all again"),
        });
    }

    /// Names of the namespaces, and of those that only pods show.
    pub(super) fn namespaces(&self) -> BTreeSet<&str> {
        let cluster = &self.shown().cluster;
        let of_pods = cluster.pods().iter().map(|pod| &*pod.key.namespace);
        let known = cluster.namespaces().iter().map(|namespace| &*namespace.name);
        known.chain(of_pods).collect()
    }

    /// Checks that a namespace exists. A text with `*` or other conditions is not a name, and is not checked.
    ///
    /// # Errors
    /// The cluster has no such namespace.
    fn check_namespace(&self, name: &str) -> Result<(), String> {
        if name.is_empty() || name.contains(|letter: char| letter == '*' || letter.is_whitespace()) {
            return Ok(());
        }
        let known = self.namespaces();
        if known.is_empty() || known.contains(name.to_lowercase().as_str()) {
            return Ok(());
        }
        Err(format!("there is no namespace {name}{}", did_you_mean(nearest(name, known))))
    }
}

impl App {
    /// Asks the event loop to save the focused list as a view of this name.
    ///
    /// # Errors
    /// The name is invalid or taken, the focused pane is not a list, or the configuration cannot have its filter or groups.
    fn save_view(&mut self, name: &str) -> Result<(), String> {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
        if name.is_empty() || !name.chars().all(is_plain) {
            return Err("name the view in letters, digits, - and _: save-view full-nodes".into());
        }
        if self.preferences.views.contains_key(name) {
            return Err(format!(
                "there is a view {name} already: name another, or remove it from the configuration"
            ));
        }
        let screen = &self.screen;
        let pane = screen.focus;
        let name_of_pane = pane.title().to_lowercase();
        if view_named(&name_of_pane).is_none() {
            return Err("no list has the focus".into());
        }
        let sort = screen.sort(pane).filter(|sort| !sort.is_default());
        let sort = sort.map(sort_text);
        let grouping = screen.groups.grouping();
        let view = SavedView {
            pane: name_of_pane,
            filter: screen.filter(pane).text().to_owned(),
            sort: sort.unwrap_or_default(),
            group: if pane == Pane::Nodes && !grouping.is_none() {
                grouping.as_str().to_owned()
            } else {
                String::new()
            },
            wide: screen.wide,
            zoom: screen.zoomed,
            layout: self.has_own_layout().then(|| screen.layout.clone()),
        };
        if let Some((key, why)) = view.errors().into_iter().next() {
            return Err(format!("the {key} cannot be saved: {why}"));
        }
        self.taken_along = Some(TakenAlong::View(name.to_owned(), view));
        Ok(())
    }

    /// Shows a saved view: a pane with its filter and order.
    fn show_view(&mut self, name: &str, now: Timestamp) -> Result<(), String> {
        let Some(view) = self.preferences.views.get(name).cloned() else {
            let names: Vec<&str> = self.preferences.views.keys().map(String::as_str).collect();
            return Err(match (names.as_slice(), name) {
                ([], _) => "the configuration has no saved views: [views.NAME]".into(),
                (names, "") => format!("saved views: {}", names.join(", ")),
                (names, name) => {
                    let meant = did_you_mean(nearest(name, names.iter().copied()));
                    format!("there is no saved view {name}{meant}")
                }
            });
        };
        let pane = view_named(&view.pane).unwrap_or_default();
        self.filter_pane(pane, &view.filter, now);
        if pane == Pane::Nodes {
            self.screen.group_by(Grouping::parse(&view.group));
        }
        if let Some(sort) = self.screen.sort_mut(pane).filter(|_| !view.sort.is_empty()) {
            let (column, direction) = column_and_direction(&view.sort);
            sort.set(column, direction)?;
        }
        (self.screen.wide, self.screen.zoomed) = (view.wide, view.zoom);
        if let Some(layout) = view.layout {
            self.screen.layout = layout;
        }
        self.arrange(now);
        self.screen.message = Some(format!("view {name}"));
        Ok(())
    }
}
