//! `kordon label --list` and `kordon annotate --list`: print labels or annotations in kubectl's format.

use std::fmt::Write as _;

use super::{args::MetadataArgs, targets::NodeTargets};
use crate::cli::{
    connection::ConnectionArgs,
    exit::{self, CliError},
    once::OneShot,
    page::shown,
};
use kordon_core::{
    cluster::Gaps,
    plan::{MetadataField, words},
};

/// Prints the labels or annotations of nodes, one per line. With several nodes, a line with the node's name precedes
/// its entries.
pub async fn list(
    field: MetadataField,
    args: &MetadataArgs,
    connection: ConnectionArgs,
) -> Result<(), CliError> {
    let targets = args.listed(field)?;
    let patience = args.print().patience();
    let mut shot = OneShot::unread(patience.connect(connection, &args.print().source).await?);
    shot.read(patience, |_, _| targets.scopes()).await?;
    let cluster = &shot.model.cluster;
    let is_one = matches!(&targets, NodeTargets::Names(names) if names.len() == 1);
    let mut out = String::new();
    let names = targets.names(cluster);
    if names.is_empty() {
        exit::note(words::NO_RESOURCES);
    }
    for name in names {
        let node = cluster.node(&name).ok_or_else(|| CliError::no_node(&name, cluster))?;
        if !is_one {
            let _ = writeln!(out, "Listing {field} for Node./{}:", shown(&name));
        }
        let indent = if is_one { "" } else { " " };
        let Some(entries) = field.of_node(node) else {
            let what = format!("the {field} of node {name} are unknown");
            return Err(CliError::Unknown { what, gaps: Gaps::default() });
        };
        for (key, value) in entries.iter() {
            let _ = writeln!(out, "{indent}{}", shown(&format!("{key}={value}")));
        }
    }
    exit::print(out.as_bytes())
}
