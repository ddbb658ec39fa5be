//! Contexts of the kubeconfig: going to another one, and coming back to what was on the screen.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::{App, Filter, NodeColumn, Pane, PaneLayout, Sort, groups::Grouping, options::ThemeChoice};
use kordon_core::cluster::{
    NodeName,
    nearest::{did_you_mean, nearest},
};
use kordon_time::Timestamp;

/// A context that is not shown, with the number of operations that run in it.
#[derive(Clone, Debug)]
pub struct Elsewhere {
    pub context: String,
    /// Number of operations that run in the context.
    pub running: Arc<AtomicUsize>,
}

impl Elsewhere {
    pub fn is_busy(&self) -> bool {
        self.running.load(Ordering::Relaxed) > 0
    }
}

/// State of the screen of a context, saved when the user leaves the context.
#[derive(Clone, Debug)]
pub struct ScreenMemory {
    focus: Pane,
    pods_of: Option<NodeName>,
    filters: BTreeMap<Pane, Filter>,
    sort: Sort<NodeColumn>,
    grouping: Grouping,
    wide: bool,
    zoomed: bool,
    layout: PaneLayout,
    recent: Vec<Pane>,
    theme: ThemeChoice,
}

impl App {
    /// Requests a switch to the named context. An empty name returns the names of all contexts as an error.
    ///
    /// # Errors
    /// There is no such context, or this dashboard has no other contexts.
    pub(super) fn go_to_context(&mut self, name: &str) -> Result<(), String> {
        let present = &self.model.connection.context;
        let names = || self.contexts.iter().map(String::as_str);
        if self.contexts.is_empty() {
            return Err("there are no other contexts here".into());
        }
        if name.is_empty() {
            return Err(format!("contexts: {}", self.contexts.join(", ")));
        }
        if name == present {
            return Err(format!("{name} is shown already"));
        }
        if !names().any(|known| known == name) {
            let meant = did_you_mean(nearest(name, names()));
            return Err(format!("the kubeconfig has no context {name}{meant}"));
        }
        self.wanted_context = Some(name.to_owned());
        self.screen.message = Some(format!("connecting to {name}; {present} is shown until it answers"));
        Ok(())
    }

    /// Leaves this context. Ends enforce mode, so that no key can start an operation here after coming back. Returns
    /// the state of the screen.
    pub fn leave(&mut self, now: Timestamp) -> ScreenMemory {
        self.end_enforcing_here(now);
        let screen = &self.screen;
        let focus = match screen.focus {
            Pane::Detail | Pane::Plan | Pane::Progress => screen.node_pane(),
            pane => pane,
        };
        ScreenMemory {
            focus,
            pods_of: screen.pods_of.clone(),
            filters: screen.filters.clone(),
            sort: screen.nodes.sort,
            grouping: screen.groups.grouping().clone(),
            wide: screen.wide,
            zoomed: screen.zoomed,
            layout: screen.layout.clone(),
            recent: screen.recent.clone(),
            theme: screen.theme().clone(),
        }
    }

    /// Restores the saved state of this context's screen.
    pub fn come_back_to(&mut self, memory: ScreenMemory) {
        let ScreenMemory { focus, pods_of, filters, sort, grouping, wide, zoomed, layout, recent, theme } =
            memory;
        let screen = &mut self.screen;
        (screen.focus, screen.pods_of, screen.filters) = (focus, pods_of, filters);
        (screen.nodes.sort, screen.wide, screen.zoomed, screen.recent) = (sort, wide, zoomed, recent);
        screen.layout = layout;
        screen.group_by(grouping);
        // The saved theme was in use on this terminal when the user left the context, so it exists.
        let _ = screen.use_theme(theme.name());
    }

    /// Warns that operations run in another context, and that quitting would stop them.
    pub fn warn_of_operations(&mut self, context: &str) {
        self.screen.message = Some(format!(
            "operations run in {context} (:ctx {context}); quitting again stops them, and they can be resumed"
        ));
    }
}
