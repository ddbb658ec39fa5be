//! Plans: what they predict, where pods are placed, and how they are applied.

mod approval;
mod headroom;
mod landing;
mod needs;
mod not_modelled;
mod operation;
mod placement_plain;
mod placement_sampling;
mod plan;
mod plan_fixture;
mod quotas;
mod reads;
mod unknown;
