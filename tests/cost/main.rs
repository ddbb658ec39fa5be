//! Cost of kordon's work in counts and ratios: requests, bytes kept, allocations, draws. No clock is read, so a busy
//! machine gives the same results. `benches/store` measures times.

mod drawing;
mod loaded;
mod memory;
#[path = "../../examples/large_cluster/objects.rs"]
#[allow(dead_code, reason = "the example uses all of it")]
mod objects;
#[path = "../program/recording_screen.rs"]
mod recording_screen;
mod requests;
mod work;
