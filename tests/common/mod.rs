//! Code that several test programs share.
#![allow(dead_code, reason = "each test program uses its part")]

pub mod encodings;
pub mod harmless;
pub mod lifecycle;
pub mod live_session;
pub mod placements;
pub mod program;
pub mod recordings;
pub mod stage;
pub mod terminal;
