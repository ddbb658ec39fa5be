//! What the loop has to do after an action of the user.

use crate::model::Model;

/// What the loop has to do after an action of the user.
#[derive(Debug)]
pub enum Reaction {
    /// Draw.
    Draw,
    /// Draw, and drop what was frozen off the loop: that may be another 150,000 pods.
    Thaw(Box<Model>),
    /// Draw everything again, whatever the terminal seems to show.
    Repaint,
    Suspend,
    Quit,
}
