//! Identity of the cluster behind a connection, independent of context and server names.

use std::time::Duration;

use http::Request;
use serde_json::Value;
use tokio::time::timeout;

use super::{connect::Connection, error};

/// Identity of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterId {
    /// The uid of namespace kube-system. This namespace exists as long as the cluster does.
    Uid(String),
    /// The address of the server, if namespace kube-system does not exist or the user is not allowed to read it. `why`
    /// is the reason in the server's words.
    Server { address: String, why: String },
}

/// Default timeout for reading the identity of a cluster.
const RESPONSE: Duration = Duration::from_secs(10);

impl ClusterId {
    /// Reads the identity from the server.
    ///
    /// # Errors
    /// No response; the text gives the reason. The address does not replace the uid then, because the next request
    /// might return the uid, and the cluster would have two identities.
    pub async fn from_connection(connection: &Connection) -> Result<Self, String> {
        let request = Request::get("/api/v1/namespaces/kube-system").body(Vec::new());
        let request = request.expect("a constant path");
        let limit = connection.request_timeout.unwrap_or(RESPONSE);
        let answer = timeout(limit, connection.client.request::<Value>(request)).await;
        let by_address = |why: String| Self::Server { address: connection.server.clone(), why };
        match answer {
            Ok(Ok(namespace)) => Ok(match namespace["metadata"]["uid"].as_str() {
                Some(uid) if !uid.is_empty() => Self::Uid(uid.to_owned()),
                Some(_) | None => by_address("it has no uid".into()),
            }),
            Ok(Err(kube::Error::Api(status))) if [403, 404].contains(&status.code) => {
                Ok(by_address(error::plain(&status.message)))
            }
            Ok(Err(failed)) => Err(error::words(&failed)),
            Err(_) => Err(format!("no response within {} s", limit.as_secs())),
        }
    }

    /// Returns the identity as a file name.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Uid(uid) => uid,
            Self::Server { address, .. } => address,
        }
    }

    /// Returns the notice that the journal is identified by the server's address; `None` if it is identified by the
    /// cluster's uid.
    pub fn notice(&self) -> Option<String> {
        match self {
            Self::Uid(_) => None,
            Self::Server { address, why } => Some(format!(
                "the uid of namespace kube-system cannot be read ({why}): the journal is kept by the address {address}"
            )),
        }
    }
}
