//! The program: parse, choose cluster and mode, run, exit code.

fn main() {}
