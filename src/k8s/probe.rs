//! Probes the way to a server step by step: the address of its name, and a TCP connection.

use std::{io, net::SocketAddr, time::Duration};

use tokio::{
    net::{TcpStream, lookup_host},
    time::timeout,
};

use super::error::words;

/// Resolves the name of a host.
///
/// # Errors
/// The name has no address, or there was no answer within `limit`. The text gives the reason.
pub async fn resolve(host: &str, port: u16, limit: Duration) -> Result<Vec<SocketAddr>, String> {
    let found = timeout(limit, lookup_host((host, port))).await.map_err(|_| late(limit))?;
    let addresses: Vec<SocketAddr> = found.map_err(reason)?.collect();
    if addresses.is_empty() { Err("its name has no address".into()) } else { Ok(addresses) }
}

/// Opens a TCP connection to the first of these addresses that accepts one, closes it, and returns the address.
///
/// # Errors
/// No address accepted a connection within `limit`. The text gives the reason of the last attempt.
pub async fn open(addresses: &[SocketAddr], limit: Duration) -> Result<SocketAddr, String> {
    let stream = timeout(limit, TcpStream::connect(addresses)).await.map_err(|_| late(limit))?;
    stream.and_then(|stream| stream.peer_addr()).map_err(reason)
}

fn late(limit: Duration) -> String {
    format!("no response within {} s", limit.as_secs_f64())
}

fn reason(error: io::Error) -> String {
    words(&kube::Error::Service(Box::new(error)))
}
