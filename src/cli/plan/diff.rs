//! `--diff`: what a plan changes in each object, and which pods it removes.

use crate::{
    cli::{
        exit::{self, CliError},
        once::OneShot,
        page::shown,
    },
    executor::{plan_diff::plan_diff, write_context::whoami},
    k8s::requests::read_whole_nodes,
};
use kordon_core::{
    operation::OperationOptions,
    plan::{Plan, words},
};

/// Reads the nodes of a plan and prints the diff.
pub async fn print(plan: &Plan, shot: &OneShot) -> Result<(), CliError> {
    if plan.action.has_no_targets() {
        exit::note(words::NO_RESOURCES);
    }
    let names = plan.nodes.iter().map(|node| node.node.clone());
    let nodes = read_whole_nodes(&shot.connection.writer, names).await;
    let options =
        OperationOptions { by: whoami(&shot.connection.identity.user), ..OperationOptions::default() };
    let lines = plan_diff(plan, options, &shot.model.cluster, &nodes, shot.at);
    let text: String = lines.iter().map(|line| format!("{}\n", shown(&line.text))).collect();
    exit::print(text.as_bytes())
}
