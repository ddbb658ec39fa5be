//! `kordon audit`: which nodes can be drained now, what holds up the others, and what would be lost.

mod baseline;
mod junit;
mod report;
mod table;

use std::{collections::BTreeSet, path::PathBuf};

use clap::{Args, ValueEnum};

use super::{
    connection::ConnectionArgs,
    exit::{CliError, note},
    node_choice::NodeChoice,
    once::{OnceArgs, OneShot},
    progress::ProgressLine,
};
use crate::{
    k8s::{admission, feed::FeedKind},
    model::{AuditWork, DrainAudit, FindingSeverity},
};
use baseline::Baseline;
use kordon_core::{
    cluster::NodeName,
    placement::Snapshot,
    plan::{Cancellation, can_place, needs, words::counted},
};
use report::{AuditReport, LeftOut};

#[derive(Args, Debug)]
pub struct AuditArgs {
    #[command(flatten)]
    nodes: NodeChoice,
    /// Leave out the findings of this file, an earlier report of `kordon audit -o json`
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Also write the findings to this file as JUnit XML, which CI systems read
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Lowest severity at which the command fails; the exit code is 16 for an error, 15 for a warning, 14 for a note
    #[arg(long, value_name = "SEVERITY", value_enum, default_value_t = FailOn::Error)]
    fail_on: FailOn,
    #[command(flatten)]
    once: OnceArgs,
}

/// Lowest severity at which the command fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FailOn {
    Error,
    Warning,
    Note,
    Never,
}

impl FailOn {
    fn fails(self, severity: FindingSeverity) -> bool {
        match self {
            Self::Error => severity <= FindingSeverity::Error,
            Self::Warning => severity <= FindingSeverity::Warning,
            Self::Note => severity <= FindingSeverity::Note,
            Self::Never => false,
        }
    }
}

/// Prints the audit.
pub async fn run(args: AuditArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    let namespace = connection.namespace.clone();
    let baseline = args.baseline.as_deref().map(Baseline::read).transpose()?;
    let mut shot = OneShot::ask_for(&args.once, &FeedKind::PREDICTION, connection).await?;
    shot.read_autoscalers().await;
    let wanted: BTreeSet<NodeName> = args.nodes.names(&shot.model.cluster)?.into_iter().collect();
    let pods = wanted.iter().flat_map(|node| shot.model.cluster.pods_on(node));
    let owners = needs::owners_with_settings_of(pods);
    shot.read_operator_settings(&owners).await;
    let cluster = &shot.model.cluster;
    let snapshot = can_place(cluster).then(|| Snapshot::new(cluster, shot.connection.version));
    let work = shot.model.audit(|node| wanted.contains(node), snapshot, shot.at);
    let mut audit = with_progress(work);
    match admission::eviction_webhooks(&shot.connection.client).await {
        Ok(webhooks) => audit.add_webhooks(&webhooks),
        Err(why) => note(&format!("whether webhooks are asked about evictions is not known: {why}")),
    }
    let hidden = namespace.as_deref().map(|name| hide_other_namespaces(&mut audit, name));
    let known = baseline.map_or(0, |baseline| baseline.remove_known(&mut audit));
    let gaps = shot.model.cluster.gaps(FeedKind::REMOVAL.into_iter().chain(FeedKind::REPLACEMENTS));
    let report = AuditReport::new(&audit, &gaps, LeftOut { known, hidden }, shot.at);
    if let Some(file) = &args.junit {
        junit::write(&audit, file)?;
    }
    args.once.output.print(&report, table::render)?;
    shot.done()?;
    args.verdict(&audit)?;
    match audit.total().unknown {
        0 => Ok(()),
        nodes if args.fail_on == FailOn::Never => {
            tracing::warn!(nodes, "not every node has an answer");
            Ok(())
        }
        nodes => {
            let what = format!("{} no answer", counted(nodes, "node has", "nodes have"));
            Err(CliError::Unknown { what, gaps: gaps.unknown() })
        }
    }
}

impl AuditArgs {
    /// Fails if a finding is at least as severe as `--fail-on` says.
    fn verdict(&self, audit: &DrainAudit) -> Result<(), CliError> {
        match audit.worst().filter(|worst| self.fail_on.fails(*worst)) {
            Some(worst) => Err(CliError::Findings { worst }),
            None => Ok(()),
        }
    }
}

/// Leaves out the findings about objects of other namespaces, and returns their number. Objects without a namespace stay.
fn hide_other_namespaces(audit: &mut DrainAudit, namespace: &str) -> usize {
    let before = audit.findings.len();
    audit.retain(|finding| ["", namespace].contains(&&*finding.subject.namespace));
    before - audit.findings.len()
}

/// Runs the audit. On a terminal, shows its progress.
fn with_progress(mut work: AuditWork) -> DrainAudit {
    let line = ProgressLine::new();
    while work.step(&Cancellation::default()) {
        let (done, all) = work.progress();
        line.show(|| format!("{done} of {all} nodes audited"));
    }
    work.finish()
}
