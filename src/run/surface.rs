//! The surface on which the dashboard is drawn.

use std::{future::Future, io};

use ratatui::{Terminal, backend::TestBackend};

use crate::{
    app::App,
    ui::{self, Drawn},
};
use kordon_time::Timestamp;

/// A terminal, or a screen in memory.
pub trait Surface {
    /// Draws the app as it is.
    ///
    /// # Errors
    /// Writing fails.
    fn draw_app(&mut self, app: &App, now: Timestamp) -> io::Result<Drawn>;

    /// Discards the known content of the terminal, so that the next draw writes every cell.
    ///
    /// # Errors
    /// Writing fails.
    fn repaint(&mut self) -> io::Result<()>;

    /// Gives the terminal back to the shell until the program is continued.
    ///
    /// # Errors
    /// Writing fails.
    fn suspend(&mut self) -> impl Future<Output = io::Result<()>>;
}

/// A screen in memory: for snapshots and tests.
impl Surface for Terminal<TestBackend> {
    fn draw_app(&mut self, app: &App, now: Timestamp) -> io::Result<Drawn> {
        let mut drawn = Drawn::default();
        let Ok(_) = self.draw(|frame| drawn = ui::draw(frame, app, now));
        Ok(drawn)
    }

    fn repaint(&mut self) -> io::Result<()> {
        Ok(())
    }

    async fn suspend(&mut self) -> io::Result<()> {
        Ok(())
    }
}
