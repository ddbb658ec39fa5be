//! A screen in memory that keeps its text and the times at which it was drawn.
#![allow(dead_code, reason = "each test program uses its part")]

use std::{
    io,
    sync::{Arc, Mutex},
};

use kordon::{
    app::App,
    run::Surface,
    ui::{Drawn, snapshot},
};
use kordon_time::Timestamp;
use ratatui::{Terminal, backend::TestBackend};
use tokio::time::Instant;

/// A screen; clones share their state.
#[derive(Clone, Default)]
pub struct RecordingScreen {
    pub draws: Arc<Mutex<Vec<Instant>>>,
    pub screen: Arc<Mutex<String>>,
}

impl Surface for RecordingScreen {
    fn draw_app(&mut self, app: &App, now: Timestamp) -> io::Result<Drawn> {
        let mut terminal = Terminal::new(TestBackend::new(200, 50)).expect("a buffer");
        let drawn = terminal.draw_app(app, now)?;
        self.draws.lock().expect("no panic").push(Instant::now());
        *self.screen.lock().expect("no panic") = snapshot::plain(terminal.backend().buffer());
        Ok(drawn)
    }

    fn repaint(&mut self) -> io::Result<()> {
        Ok(())
    }

    async fn suspend(&mut self) -> io::Result<()> {
        Ok(())
    }
}
