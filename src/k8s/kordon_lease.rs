//! The Lease of `kordon controller`, and the identities with which it holds Leases.

use std::time::Duration;

use kube::Client;

use super::{
    decode::lease::{LeaderDecoder, WireLease},
    watch::{self, WatchError},
};
use kordon_core::cluster::LeaderLease;

/// The Lease of `kordon controller --enforce`, unless its flags name another one.
pub const KORDON_LEASE: (&str, &str) = ("kube-system", "kordon-controller");

/// Start of the last part of an identity of `kordon controller`.
const KORDON: &str = "kordon-";

/// Time limit for reading the Lease, and maximum size of it in bytes.
const PATIENCE: Duration = Duration::from_secs(5);
const LONGEST: usize = 1 << 20;

/// Returns a new identity with which `kordon controller` on this host holds a Lease.
pub fn identity(host: &str) -> String {
    let random: String = std::iter::repeat_with(fastrand::alphanumeric).take(12).collect();
    format!("{host}_{KORDON}{}", random.to_lowercase())
}

/// Whether the holder of a Lease is `kordon controller`.
pub fn is_kordon(holder: &str) -> bool {
    holder.rsplit_once('_').is_some_and(|(_, id)| id.starts_with(KORDON))
}

/// Reads the Lease of `kordon controller`; none if it does not exist.
///
/// # Errors
/// The Lease could not be read. The text gives the reason.
pub async fn read(client: &Client) -> Result<Option<LeaderLease>, String> {
    let (namespace, name) = KORDON_LEASE;
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}");
    let lease = match watch::read(client, &path, PATIENCE, LONGEST).await {
        Ok(lease) => lease,
        Err(WatchError::NotServed(_)) => return Ok(None),
        Err(error) => return Err(error.words().unwrap_or_default()),
    };
    let wire: WireLease<'_> = serde_json::from_slice(&lease).map_err(|error| error.to_string())?;
    Ok(Some(LeaderDecoder::default().lease(&wire)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use kordon_clock::Clock;
    use kordon_demo::api::{Api, ApiOptions};

    #[test]
    fn the_identities_of_kordon_are_told_from_others() {
        assert!(is_kordon(&identity("node-1")));
        for other in ["node-1_1f6d8f8a-0c4e-4f0e-9a55-9a2a3f1f4d5c", "kordon-0_2c1e", "kordon-0", ""] {
            assert!(!is_kordon(other), "{other}");
        }
    }

    #[tokio::test]
    async fn the_lease_of_kordon_is_read_by_its_name() {
        let api = Api::new(Clock::system(), ApiOptions::default());
        assert_eq!(read(&api.client()).await, Ok(None));
        let holder = "node-1_kordon-abc";
        api.load(
            "leases",
            json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"namespace": KORDON_LEASE.0, "name": KORDON_LEASE.1},
                "spec": {
                    "holderIdentity": holder, "leaseDurationSeconds": 15,
                    "acquireTime": "2026-01-01T00:00:00.000000Z", "renewTime": "2026-01-01T01:00:00.000000Z",
                },
            }),
        );
        let lease = read(&api.client()).await.expect("it can be read").expect("a Lease");
        assert_eq!(lease.holder, holder);
        assert!(lease.acquired.is_some() && lease.acquired < lease.renewed);
    }
}
