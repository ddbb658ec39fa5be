//! Event loops: the loop of the dashboard, of sessions without a screen, and of an operation that the command line
//! started.
//!
//! Each loop is one task that owns its state: no lock guards a model. Long work runs on other threads ([`background`]).

pub mod approval_driver;
pub mod background;
pub mod controller;
pub mod dashboard;
mod dashboard_jobs;
mod dashboard_maintenance;
pub mod demo_scheduler;
pub mod events;
mod headroom_slices;
pub mod history;
pub mod kubelets;
pub mod maintenance;
pub mod moment_search;
pub mod notify;
pub mod operation_driver;
pub mod player;
pub mod preferences_file;
pub mod read;
mod read_once;
pub mod record;
pub mod replay;
mod replay_state;
pub mod review;
pub mod session;
pub mod signals;
pub mod surface;
pub mod tty;
pub mod tuning;
mod vitals;
mod wanted;
pub mod watched_model;

pub use dashboard::{
    ContextOpener, Dashboard, RunError, VirtualTyping, headless, replay_frame, run_dashboard, terminal,
};
pub use session::{Ended, Links, RunningWatches, Session, watch_scopes};
pub use surface::Surface;
