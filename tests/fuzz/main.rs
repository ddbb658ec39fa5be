//! Replays the fuzzer's kept inputs, each through its target.

mod corpus;
#[path = "../program/dashboard_fixture.rs"]
mod dashboard_fixture;
mod targets;
