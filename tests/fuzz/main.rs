//! What the fuzzer has found and tried, again: every kept input through its target.

mod corpus;
#[path = "../program/dashboard_fixture.rs"]
mod dashboard_fixture;
mod targets;
