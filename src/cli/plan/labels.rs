//! `kordon label --list`: prints labels in kubectl's format.

use std::fmt::Write as _;

use super::{args::LabelArgs, targets::NodeTargets};
use crate::cli::{
    connection::ConnectionArgs,
    exit::{self, CliError},
    once::OneShot,
    page::shown,
};

/// Prints the labels of nodes, one per line. With several nodes, a line with the node's name precedes its labels.
pub async fn list(args: &LabelArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    let targets = args.listed()?;
    let patience = args.print().patience();
    let mut shot = OneShot::unread(patience.connect(connection, &args.print().source).await?);
    shot.read(patience, |_, _| targets.scopes()).await?;
    let cluster = &shot.model.cluster;
    let is_one = matches!(&targets, NodeTargets::Names(names) if names.len() == 1);
    let mut out = String::new();
    for name in targets.names(cluster) {
        let node = cluster.node(&name).ok_or_else(|| CliError::no_node(&name, cluster))?;
        if !is_one {
            let _ = writeln!(out, "Listing labels for Node./{}:", shown(&name));
        }
        let indent = if is_one { "" } else { " " };
        for (key, value) in node.labels.iter() {
            let _ = writeln!(out, "{indent}{}", shown(&format!("{key}={value}")));
        }
    }
    exit::print(out.as_bytes())
}
