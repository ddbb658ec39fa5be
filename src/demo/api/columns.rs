//! What `kubectl get` shows of each kind.

use serde_json::Value;

use crate::time::Timestamp;

/// One column of a table.
#[derive(Debug)]
pub struct Column {
    pub name: &'static str,
    /// As OpenAPI has it: `string`, `integer`.
    pub kind: &'static str,
    /// Shown only with `-o wide`.
    pub wide: bool,
    /// What stands in it for an object at a moment.
    pub cell: fn(&Value, Timestamp) -> Value,
}

pub const PLAIN: &[Column] = &[];
pub const NODE: &[Column] = &[];
pub const POD: &[Column] = &[];
pub const NAMESPACE: &[Column] = &[];
pub const EVENT: &[Column] = &[];
pub const CONFIG_MAP: &[Column] = &[];
pub const SERVICE: &[Column] = &[];
pub const DEPLOYMENT: &[Column] = &[];
pub const REPLICA_SET: &[Column] = &[];
pub const STATEFUL_SET: &[Column] = &[];
pub const DAEMON_SET: &[Column] = &[];
pub const JOB: &[Column] = &[];
pub const LEASE: &[Column] = &[];
pub const BUDGET: &[Column] = &[];
pub const PRIORITY_CLASS: &[Column] = &[];
