//! What is checked before anything is written: whether it can end, guard rails, permissions.

use super::HowArgs;
use crate::{
    cli::Failure,
    cluster::Cluster,
    conduct::{Guards, caution},
    executor::{guards, site::Site},
    plan::{Permission, Plan, Prospect},
};

/// Refuses to begin what cannot end.
pub fn prospect(plan: &Plan, how: &HowArgs) -> Result<(), Failure> {
    let prospect = plan.prospect();
    if how.waivers().allow(prospect) {
        return Ok(());
    }
    let mut lines = caution::stuck(plan);
    if prospect == Prospect::Blocked {
        lines.push("--try-blocked begins all the same".into());
    }
    Err(Failure::WouldNot { prospect, text: lines.join("\n  ") })
}

/// Refuses what a guard rail forbids that was not overridden.
pub fn guards(plan: &Plan, cluster: &Cluster, how: &HowArgs) -> Result<(), Failure> {
    let standing = how.waivers().standing(&rails(how)?, plan, cluster);
    let words: Vec<String> =
        standing.iter().map(|breach| format!("{breach} (--override {})", breach.guard())).collect();
    if words.is_empty() { Ok(()) } else { Err(Failure::Guarded(words.join("; "))) }
}

/// Asks whether everything that the plan takes may be done, and names what may not.
pub async fn permissions(site: &Site, plan: &Plan) -> Result<(), Failure> {
    let missing = site.missing(&caution::permissions(plan)).await.map_err(Failure::Unasked)?;
    let words: Vec<String> = missing.iter().map(Permission::to_string).collect();
    if words.is_empty() { Ok(()) } else { Err(Failure::NotAllowed(words.join(", "))) }
}

/// The guard rails of the file, with those of the command line over them.
fn rails(how: &HowArgs) -> Result<Guards, Failure> {
    let mut guards = guards::read(how.guards.as_deref())?;
    guards.max_nodes = how.max_nodes.or(guards.max_nodes);
    guards.max_zone_percent = how.max_zone_percent.or(guards.max_zone_percent);
    guards.protected_namespaces.extend(how.protect_namespace.iter().map(|name| name.as_str().into()));
    guards.protected_pods.extend(how.protect_pods.iter().cloned());
    Ok(guards)
}
