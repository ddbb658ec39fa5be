//! What kordon's work costs, in counts and ratios: requests, bytes kept, allocations, draws. No clock is read, so that a busy
//! machine measures the same. `benches/store` measures times.

mod loaded;
#[path = "../../examples/large_cluster/objects.rs"]
#[allow(dead_code, reason = "the example uses all of it")]
mod objects;
mod drawing;
mod memory;
#[path = "../program/recording_screen.rs"]
mod recording_screen;
mod requests;
mod work;
