//! Nodes that a command is about: by name, label, pool or zone.

use std::collections::BTreeSet;

use clap::Args;

use super::exit::CliError;
use crate::model::zone_names::ZoneNames;
use kordon_core::{
    cluster::{Cluster, Node, NodeName, Selector, ZoneKey, nearest::nearest},
    plan::words::counted,
};

#[derive(Args, Debug)]
pub struct NodeChoice {
    /// Names of nodes
    #[arg(value_name = "NODE")]
    nodes: Vec<String>,
    /// Only nodes with these labels
    #[arg(long, short = 'l', value_name = "SELECTOR", value_parser = Selector::parse)]
    selector: Option<Selector>,
    /// Only nodes of this node pool, as named by the labels of cloud providers and autoscalers
    #[arg(long, value_name = "POOL")]
    pool: Option<String>,
    /// Only nodes of this zone
    #[arg(long, value_name = "ZONE")]
    zone: Option<String>,
}

impl NodeChoice {
    /// Whether no flag or name chooses nodes, so that the command is about all nodes.
    pub const fn is_all(&self) -> bool {
        self.nodes.is_empty() && self.selector.is_none() && self.pool.is_none() && self.zone.is_none()
    }

    /// The chosen nodes, by name.
    ///
    /// # Errors
    /// A named node, pool or zone does not exist, or no node is left.
    pub fn names(&self, cluster: &Cluster) -> Result<Vec<NodeName>, CliError> {
        let missing = |name: &&String| cluster.node(&NodeName::from(name.as_str())).is_none();
        if let Some(name) = self.nodes.iter().find(missing) {
            return Err(CliError::no_node(name, cluster));
        }
        if let Some(pool) = &self.pool {
            check_pool(pool, cluster)?;
        }
        let zones: BTreeSet<ZoneKey> = cluster.nodes().iter().map(|node| node.zone()).collect();
        let zone = self.zone.as_ref().map(|name| zone_named(name, &zones)).transpose()?;
        let is_chosen = |node: &Node| {
            (self.nodes.is_empty() || self.nodes.iter().any(|name| *name == *node.name))
                && self.selector.as_ref().is_none_or(|selector| selector.matches(&node.labels))
                && self.pool.as_ref().is_none_or(|pool| node.pool().is_some_and(|own| **own == **pool))
                && zone.as_ref().is_none_or(|zone| node.zone() == *zone)
        };
        let chosen: Vec<NodeName> =
            cluster.nodes().iter().filter(|node| is_chosen(node)).map(|node| node.name.clone()).collect();
        if chosen.is_empty() && !cluster.nodes().is_empty() {
            let nodes = counted(cluster.nodes().len(), "node", "nodes");
            return Err(CliError::Usage(format!("none of {nodes} is chosen by {}", self.given())));
        }
        Ok(chosen)
    }

    /// The names and flags that were given: `-l app=web and --zone a`.
    fn given(&self) -> String {
        let names = (!self.nodes.is_empty()).then(|| self.nodes.join(" "));
        let selector = self.selector.as_ref().map(|selector| format!("-l {selector}"));
        let pool = self.pool.as_ref().map(|pool| format!("--pool {pool}"));
        let zone = self.zone.as_ref().map(|zone| format!("--zone {zone}"));
        names.into_iter().chain(selector).chain(pool).chain(zone).collect::<Vec<_>>().join(" and ")
    }
}

/// Fails if no node is in the pool. A cluster without nodes is no error.
fn check_pool(pool: &str, cluster: &Cluster) -> Result<(), CliError> {
    let pools = cluster.nodes().iter().filter_map(|node| node.pool());
    let pools: BTreeSet<&str> = pools.map(|pool| &**pool).collect();
    if pools.contains(pool) || cluster.nodes().is_empty() {
        return Ok(());
    }
    let known = match pools.is_empty() {
        true => "no node is in a pool".to_owned(),
        false => format!("the pools are {}", pools.iter().copied().collect::<Vec<_>>().join(", ")),
    };
    let meant = nearest(pool, pools.iter().copied()).into_iter().map(str::to_owned).collect();
    Err(CliError::NotFound { what: format!("{known}: pool {pool}"), meant })
}

/// Finds a zone by its name with region, its name without region, or its short name in the dashboard.
pub fn zone_named(name: &str, zones: &BTreeSet<ZoneKey>) -> Result<ZoneKey, CliError> {
    let short = ZoneNames::for_zones(zones.iter());
    let names: [&dyn Fn(&ZoneKey) -> String; 4] = [
        &|zone| zone.to_string(),
        &|zone| format!("{}:{}", zone.region, zone.zone),
        &|zone| zone.zone.to_string(),
        &|zone| short.short(zone),
    ];
    for name_of in names {
        match zones.iter().filter(|zone| name_of(zone) == name).collect::<Vec<_>>()[..] {
            [] => {}
            [zone] => return Ok(zone.clone()),
            [..] => {
                let zones = zones.iter().filter(|zone| name_of(zone) == name).map(ZoneKey::to_string);
                let zones = zones.collect::<Vec<_>>().join(", ");
                return Err(CliError::Usage(format!(
                    "zone {name} may be any of {zones}: name its region too"
                )));
            }
        }
    }
    let known: Vec<String> = zones.iter().map(ZoneKey::to_string).collect();
    let shorts: Vec<String> = zones.iter().map(|zone| short.short(zone)).collect();
    let listed = shorts.iter().zip(&known).map(|(short, full)| match short == full {
        true => full.clone(),
        false => format!("{short} ({full})"),
    });
    let listed: Vec<String> = listed.collect();
    let in_full = known.iter().map(String::as_str);
    let without_region = zones.iter().map(|zone| &*zone.zone);
    let names = shorts.iter().map(String::as_str).chain(without_region).chain(in_full);
    Err(CliError::NotFound {
        what: format!("the zones are {}: zone {name}", listed.join(", ")),
        meant: nearest(name, names).into_iter().map(str::to_owned).collect(),
    })
}
