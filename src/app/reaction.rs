//! What the event loop has to do after an action of the user, or after an event of the watches.

use crate::model::Model;

/// What the event loop has to do after an action of the user.
#[derive(Debug)]
pub enum Reaction {
    /// Draw the screen.
    Draw,
    /// Draw the screen, and drop the frozen model on another thread, because a model may hold 150,000 pods.
    Thaw(Box<Model>),
    /// Draw every cell, even the cells that have not changed.
    Repaint,
    /// Put this text on the clipboard of the user's terminal.
    Copy(String),
    Suspend,
    Quit,
}

/// Effects of a watch event on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchReaction {
    /// Whether the event changed anything besides the time of the watch's last message. That time alone is shown with
    /// the next tick.
    pub has_news: bool,
    /// Whether the screen has changed, so that it is drawn before the next refresh.
    pub is_shown: bool,
    /// Whether the event completed a list of objects that the user waits for. Such a list is shown at once.
    pub ends_list: bool,
    /// Whether the event started the engine. Starting the engine also refreshes the views and lists.
    pub has_started: bool,
}
