//! What is checked before anything is written: whether it can end, guard rails, permissions.

use std::{collections::BTreeSet, env, fs, io, path::PathBuf};

use kube::Client;
use serde::Deserialize;

use super::{HowArgs, may_begin, would_not};
use crate::{
    cli::Failure,
    cluster::{Cluster, Namespace, Selector},
    conduct::Guards,
    k8s::access,
    plan::{Action, Permission, Plan},
};

/// Refuses to begin what cannot end.
pub fn prospect(plan: &Plan, how: &HowArgs) -> Result<(), Failure> {
    if may_begin(plan.prospect(), how.try_blocked) { Ok(()) } else { Err(would_not(plan)) }
}

/// Refuses what a guard rail forbids that was not overridden.
pub fn guards(plan: &Plan, cluster: &Cluster, how: &HowArgs) -> Result<(), Failure> {
    let breaches = of(how)?.breaches(plan, cluster);
    let standing: Vec<String> = breaches
        .iter()
        .filter(|breach| !how.overrides.iter().any(|name| name == breach.guard()))
        .map(ToString::to_string)
        .collect();
    if standing.is_empty() { Ok(()) } else { Err(Failure::Guarded(standing.join("; "))) }
}

/// Asks whether everything that the plan takes may be done, and names what may not.
pub async fn permissions(client: &Client, plan: &Plan) -> Result<(), Failure> {
    let mut wanted = plan.permissions.clone();
    // Nodes are looked at before they are written to, and pods listed to see that none is left.
    wanted.extend(plan.nodes.iter().map(|node| Permission::on_node("get", &node.node)));
    if matches!(plan.action, Action::Drain { .. }) {
        wanted.push(Permission::on_pods("list", "", &Namespace::default()));
    }
    let missing = access::missing(client, &wanted).await.map_err(Failure::Unasked)?;
    if missing.is_empty() {
        return Ok(());
    }
    let words: Vec<String> = missing.iter().map(Permission::to_string).collect();
    Err(Failure::NotAllowed(words.join(", ")))
}

/// The guard rails of the file, with those of the command line over them.
fn of(how: &HowArgs) -> Result<Guards, Failure> {
    let mut guards = from_file(how.guards.clone())?;
    guards.max_nodes = how.max_nodes.or(guards.max_nodes);
    guards.max_zone_percent = how.max_zone_percent.or(guards.max_zone_percent);
    guards.protected_namespaces.extend(how.protect_namespace.iter().map(|name| name.as_str().into()));
    guards.protected_pods.extend(how.protect_pods.iter().cloned());
    Ok(guards)
}

/// The file with guard rails.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    max_nodes: Option<usize>,
    max_zone_percent: Option<u8>,
    keep_last_ready: Option<bool>,
    protected_namespaces: BTreeSet<String>,
    protected_pods: Vec<String>,
}

fn from_file(named: Option<PathBuf>) -> Result<Guards, Failure> {
    let is_named = named.is_some();
    let Some(path) = named.or_else(default_file) else { return Ok(Guards::default()) };
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound && !is_named => return Ok(Guards::default()),
        Err(error) => {
            return Err(Failure::Io { doing: format!("reading the guard rails {}", path.display()), error });
        }
    };
    let bad = |why: String| Failure::Usage(format!("the guard rails {}: {why}", path.display()));
    let file: File = toml::from_str(&text).map_err(|error| bad(error.to_string()))?;
    let selectors = file.protected_pods.iter().map(|text| Selector::parse(text));
    Ok(Guards {
        max_nodes: file.max_nodes,
        max_zone_percent: file.max_zone_percent,
        keep_last_ready: file.keep_last_ready.unwrap_or(true),
        protected_namespaces: file.protected_namespaces.iter().map(|name| name.as_str().into()).collect(),
        protected_pods: selectors.collect::<Result<_, _>>().map_err(|error| bad(error.to_string()))?,
    })
}

fn default_file() -> Option<PathBuf> {
    let set = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")))?;
    Some(folder.join("kordon/guards.toml"))
}
