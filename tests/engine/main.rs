//! The engine, plans and placement, tested against recordings of the real components. Objects are decoded as in the
//! program.

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
