//! The engine on simulated clusters: the effects of its controllers, its predictions, and its explanations of both.

mod accuracy;
mod controllers;
mod explanation;
mod sim;
mod simulation;
mod timing;
