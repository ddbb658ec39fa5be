//! The engine on simulated clusters: the effects of its controllers, its forecasts, and its explanations.

mod accuracy;
mod controllers;
mod explanation;
mod sim;
mod simulation;
mod timing;
