//! Plans: what they predict, where pods are placed, and how they are applied.

#[path = "../common/mod.rs"]
mod common;
mod approval;
mod headroom;
mod landing;
mod needs;
mod not_modelled;
mod operation;
mod placement;
mod placement_plain;
mod placement_sampling;
mod placement_volumes;
mod plan;
mod plan_fixture;
mod quotas;
mod unknown;
