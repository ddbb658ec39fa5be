//! A large, busy cluster on loopback, to try clients with: `cargo run --release --example large_cluster -- --help`.

#[path = "large_cluster/server.rs"]
mod server;

use clap::Parser;

/// The program's own allocator: creating 600,000 pods takes very many allocations.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    server::serve(server::Arguments::parse()).await
}
