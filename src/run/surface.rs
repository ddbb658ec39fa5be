//! The surface on which the dashboard is drawn.

use std::{future::Future, io};

use ratatui::{Terminal, backend::TestBackend};

use crate::{
    app::App,
    ui::{self, Drawn},
};
use kordon_time::Timestamp;

/// A surface: a terminal, or a screen in memory.
pub trait Surface {
    /// Draws the current state of the app.
    ///
    /// # Errors
    /// Writing fails.
    fn draw_app(&mut self, app: &App, now: Timestamp) -> io::Result<Drawn>;

    /// Forgets the content of the terminal, so that the next draw writes every cell.
    ///
    /// # Errors
    /// Writing fails.
    fn repaint(&mut self) -> io::Result<()>;

    /// Puts a text on the clipboard of the user's terminal, which may not allow that. A screen in memory has no
    /// clipboard.
    ///
    /// # Errors
    /// Writing fails.
    fn copy(&mut self, _text: &str) -> io::Result<()> {
        Ok(())
    }

    /// Sends escape sequences of a notice to the user's terminal, between two frames. A screen in memory has no user.
    ///
    /// # Errors
    /// Writing fails.
    fn notify(&mut self, _sequences: &str) -> io::Result<()> {
        Ok(())
    }

    /// Returns the terminal to the shell until the program is continued.
    ///
    /// # Errors
    /// Writing fails.
    fn suspend(&mut self) -> impl Future<Output = io::Result<()>>;
}

/// A screen in memory, for snapshots and tests.
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
