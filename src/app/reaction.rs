//! What the loop has to do after an action of the user.

use crate::model::Model;

/// What the loop has to do after an action of the user.
#[derive(Debug)]
pub enum Reaction {
    /// Draw the screen.
    Draw,
    /// Draw the screen, and drop the frozen model on another thread, because a model may hold 150,000 pods.
    Thaw(Box<Model>),
    /// Draw every cell, whatever the terminal shows now.
    Repaint,
    Suspend,
    Quit,
}
