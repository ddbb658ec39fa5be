//! What is checked before anything is written: whether it can end, guard rails, permissions.

use super::HowArgs;
use crate::{
    cli::CliError,
    cluster::Cluster,
    executor::{guards, write_context::WriteContext},
    operation::{Guards, confirmation},
    plan::{Permission, Plan, Prospect},
};

/// Refuses to begin what cannot end.
pub fn prospect(plan: &Plan, how: &HowArgs) -> Result<(), CliError> {
    let prospect = plan.prospect();
    if how.waivers().allow(prospect) {
        return Ok(());
    }
    let mut lines = confirmation::stuck(plan);
    if prospect == Prospect::Blocked {
        lines.push("--try-blocked begins all the same".into());
    }
    Err(CliError::WouldNot { prospect, text: lines.join("\n  ") })
}

/// Refuses what a guard rail forbids that was not overridden.
pub fn guards(plan: &Plan, cluster: &Cluster, how: &HowArgs) -> Result<(), CliError> {
    let standing = how.waivers().standing(&rails(how)?, plan, cluster);
    let words: Vec<String> =
        standing.iter().map(|breach| format!("{breach} (--override {})", breach.guard())).collect();
    if words.is_empty() { Ok(()) } else { Err(CliError::Guarded(words.join("; "))) }
}

/// Asks whether everything that the plan takes may be done, and names what may not.
pub async fn permissions(context: &WriteContext, plan: &Plan) -> Result<(), CliError> {
    let missing = context
        .missing_permissions(&confirmation::permissions(plan))
        .await
        .map_err(CliError::PermissionsUnknown)?;
    let words: Vec<String> = missing.iter().map(Permission::to_string).collect();
    if words.is_empty() { Ok(()) } else { Err(CliError::NotAllowed(words.join(", "))) }
}

/// The guard rails of the file, with those of the command line over them.
fn rails(how: &HowArgs) -> Result<Guards, CliError> {
    let mut guards = guards::read(how.guards.as_deref())?;
    guards.max_nodes = how.max_nodes.or(guards.max_nodes);
    guards.max_zone_percent = how.max_zone_percent.or(guards.max_zone_percent);
    guards.protected_namespaces.extend(how.protect_namespace.iter().map(|name| name.as_str().into()));
    guards.protected_pods.extend(how.protect_pods.iter().cloned());
    Ok(guards)
}
