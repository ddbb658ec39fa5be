//! The engine on simulated clusters: what its controllers do, what it predicts, and how it explains both.

mod accuracy;
mod controllers;
mod explanation;
mod sim;
mod simulation;
mod timing;
