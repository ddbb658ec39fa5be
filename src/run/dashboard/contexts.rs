//! Changes from one context to another without leaving the terminal.
//!
//! The shown dashboard continues while another context is being connected, so a cluster that does not answer keeps
//! nobody waiting. If operations of a dashboard still run when the user leaves it, the dashboard is kept. These
//! operations continue with their own client, and no key reaches them until their context is shown again. Any other
//! dashboard is dropped, and what was on its screen is shown again later.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures::future::{BoxFuture, join_all};

use super::{super::Surface, *};
use crate::{
    app::{Elsewhere, ScreenMemory},
    ui::Drawn,
};

/// Opens the dashboard of a context, by its name. The error says why it cannot be opened.
#[derive(Clone)]
pub struct ContextOpener(
    pub Arc<dyn Fn(String) -> BoxFuture<'static, Result<Dashboard, String>> + Send + Sync>,
);

impl fmt::Debug for ContextOpener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ContextOpener")
    }
}

/// The context that is being connected; none if no other context is wanted.
#[derive(Default)]
pub(super) struct ContextOpening(Option<(String, BoxFuture<'static, Result<Dashboard, String>>)>);

/// Why the loop of a dashboard has ended.
pub(super) enum End {
    /// The user quits, the keys have ended, or the loop has reached its end time.
    Quit,
    /// Another context is ready to be shown.
    Opened(Box<Dashboard>),
    /// The user returns to a context that was left while its operations were running.
    Back(String),
}

impl ContextOpening {
    pub(super) fn start(&mut self, name: String, open: &ContextOpener) {
        self.0 = Some((name.clone(), (open.0)(name)));
    }

    /// Waits until the dashboard of the wanted context is ready; forever if no other context is wanted.
    pub(super) async fn next(&mut self) -> (String, Result<Dashboard, String>) {
        let Some((name, opened)) = &mut self.0 else { return std::future::pending().await };
        let (name, opened) = (name.clone(), opened.await);
        self.0 = None;
        (name, opened)
    }
}

/// Shows the first dashboard, then each dashboard that the user switches to, until the user quits.
///
/// # Errors
/// As [`run_dashboard`].
pub(super) async fn run_contexts(
    first: Dashboard,
    surface: &mut impl Surface,
    mut keys: impl Stream<Item = io::Result<Event>> + Unpin,
) -> Result<(), RunError> {
    let mut shown = Loop::new(first);
    let mut left: Vec<Loop> = Vec::new();
    let mut screens: BTreeMap<String, ScreenMemory> = BTreeMap::new();
    let mut was_warned = false;
    loop {
        let end = tokio::select! {
            biased;
            end = shown.run(surface, &mut keys, std::future::pending()) => end?,
            () = run_hidden(&mut left) => continue,
        };
        let mut next = match end {
            End::Quit => {
                let running = left.iter().find(|left| left.is_busy());
                match running.filter(|_| !was_warned) {
                    None => return Ok(()),
                    Some(other) => shown.display.app.warn_of_operations(other.context()),
                }
                was_warned = true;
                shown.display.draw(surface)?;
                continue;
            }
            End::Opened(dashboard) => Loop::new(*dashboard),
            End::Back(name) => match left.iter().position(|left| left.context() == name) {
                Some(place) => left.remove(place),
                None => continue,
            },
        };
        next.operations.keep_guards(shown.operations.guards());
        let now = shown.display.now();
        screens.insert(shown.context().to_owned(), shown.display.app.leave(now));
        if let Some(screen) = screens.remove(next.context()).filter(|_| !next.is_busy()) {
            next.display.app.come_back_to(screen);
        }
        std::mem::swap(&mut shown, &mut next);
        left.retain(Loop::is_busy);
        left.extend(Some(next).filter(Loop::is_busy));
        shown.display.app.elsewhere = left.iter().map(Loop::elsewhere).collect();
        shown.display.app.screen.message = Some(format!("context {}", shown.context()));
        shown.display.app.rights.ask();
        surface.repaint().map_err(RunError::Draw)?;
        shown.display.draw(surface)?;
        was_warned = false;
    }
}

/// Runs the dashboards that the user has left, so that their operations continue. Never returns.
async fn run_hidden(left: &mut [Loop]) {
    let runs = left.iter_mut().map(|left| async {
        // No surface is drawn on and no key is read, so the loop cannot fail.
        let _ = left.run(&mut NoSurface, &mut stream::pending(), std::future::pending()).await;
    });
    join_all(runs).await;
    std::future::pending().await
}

impl Loop {
    fn context(&self) -> &str {
        &self.display.app.model.connection.context
    }

    /// Whether an operation runs in this context.
    fn is_busy(&self) -> bool {
        !self.display.app.operations.running_titles().is_empty()
    }

    fn elsewhere(&self) -> Elsewhere {
        Elsewhere { context: self.context().to_owned(), running: self.running.clone() }
    }

    /// Starts to open the context that the user wants. If that context was left with operations that still run, returns
    /// the reason to end this loop instead.
    pub(super) fn follow_context(&mut self) -> Option<End> {
        let name = self.display.app.wanted_context.take()?;
        if self.display.app.elsewhere.iter().any(|other| other.context == name && other.is_busy()) {
            return Some(End::Back(name));
        }
        match &self.opener {
            Some(open) => self.opening.start(name, open),
            None => self.display.say("there are no other contexts here".into()),
        }
        None
    }

    /// Ends this loop so that the opened dashboard is shown, or shows why the context cannot be opened.
    pub(super) fn on_context(&mut self, name: &str, opened: Result<Dashboard, String>) -> Option<End> {
        match opened {
            Ok(dashboard) => {
                let opener = self.opener.clone();
                Some(End::Opened(Box::new(Dashboard { opener, ..dashboard })))
            }
            Err(why) => {
                let why = format!("cannot go to {name}: {}", visible::text(&why));
                self.display.report_trouble("context", &why);
                self.display.say(why);
                None
            }
        }
    }

    /// Counts the operations that run, for the dashboard of another context.
    pub(super) fn count_running(&self) {
        self.running.store(self.display.app.operations.running_titles().len(), Ordering::Relaxed);
    }
}

/// Number of running operations, which is shared with the dashboards of other contexts.
pub(super) type RunningCount = Arc<AtomicUsize>;

/// A surface on which nothing is drawn.
struct NoSurface;

impl Surface for NoSurface {
    fn draw_app(&mut self, _: &App, _: Timestamp) -> io::Result<Drawn> {
        Ok(Drawn::default())
    }

    fn repaint(&mut self) -> io::Result<()> {
        Ok(())
    }

    async fn suspend(&mut self) -> io::Result<()> {
        Ok(())
    }
}
