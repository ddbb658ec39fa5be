//! The engine, plans and placement against recordings of the real components, as kordon reads their objects.

#[path = "../common/mod.rs"]
mod common;
mod drains;
mod explanation_needs;
mod lifecycle;
mod placement;
mod placement_volumes;
mod rankings;
#[path = "../../crates/kordon-core/tests/plans/reads.rs"]
mod reads;
mod vectors;
