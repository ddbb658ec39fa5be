//! Plans: their predictions, the placement of pods, and their application.

mod approval;
mod forced_removal;
mod headroom;
mod landing;
mod losses;
mod maintenance;
mod maintenance_writes;
mod needs;
mod not_modelled;
mod operation;
mod operators;
mod placement_plain;
mod placement_sampling;
mod plan;
mod plan_fixture;
mod quotas;
mod reads;
mod refusals;
mod shutdowns;
mod stateful_sets;
mod successors;
mod surges;
mod unknown;
