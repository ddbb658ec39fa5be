//! `kordon status --watch`: prints the verdict whenever it changes.

use serde::Serialize;

use super::{
    super::{
        config::ConfigInForce,
        connection::ConnectionArgs,
        exit::{self, CliError},
        once::{OnceArgs, OneShot},
        output::OutputArgs,
        page::Emphasis,
    },
    predictions::PredictionsReport,
};
use crate::{
    k8s::kordon_lease,
    model::{ClusterVerdict, HeadroomProgress},
    run::{
        Ended,
        kubelets::{KubeletReader, UsageAnswer, WantedKubelet},
        notify::{Notifier, write_to_stderr},
        preferences_file::{PreferencesReader, next_read},
    },
};
use kordon_core::{cluster::Change, forecast::AccuracyReport};
use kordon_time::{Span, Timestamp};

/// A verdict, printed as one line of JSON (`docs/reference/verdict.md`). Every field is always present.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct VerdictChangeReport {
    /// `kordon.verdict/v1`: fields are added, never removed or renamed.
    schema: &'static str,
    /// When the verdict was reached.
    at: Timestamp,
    /// Level of the verdict, as `verdict.level` in [status.md](status.md).
    level: &'static str,
    /// Text of the verdict, as `verdict.text` in [status.md](status.md): for people, not for parsing.
    text: String,
    predictions: PredictionsReport,
}

/// Interval of checks for a new verdict.
const PERIOD: Span = Span::from_secs(1);

/// Time for computing N-1 (the loss of any one node or zone) before each check for a new verdict: a twentieth of
/// [`PERIOD`]. A `CoreShare` sets the pause after work that takes as long as it needs; here the interval is fixed.
const SLICE: Span = Span::from_millis(50);

/// Prints the verdict and its changes until interrupted.
pub async fn run(args: &OnceArgs, connection: ConnectionArgs, no_pods: bool) -> Result<(), CliError> {
    args.output.refuse_export("--watch prints a line whenever the verdict changes")?;
    let config = connection.config.clone();
    let mut watched = OneShot::keep_watching(args, connection, no_pods).await?;
    let session = &mut watched.session;
    let context = session.model.connection.context.clone();
    let mut notifier = Notifier::new(config.notify(&context));
    let mut reader = ConfigInForce::new(config).followed(&context).map(PreferencesReader::start);
    let clock = session.clock;
    let mut printed = None;
    let mut progress = HeadroomProgress::default();
    // The first verdict computes N-1 for as long as `kordon status` does, so both print the same verdict.
    let mut slice = super::N_1;
    let mut kubelets = KubeletReader::new(session.links.events.clone(), clock);
    loop {
        if session.model.needs_kordon_lease(clock.now())
            && let Some(server) = session.links.events.clone()
        {
            tokio::select! {
                Ended::Arrived | Ended::Abandoned = session.run_until(|_| false) => {
                    return Err(CliError::WatchesEnded);
                }
                lease = kordon_lease::read(&server.client) => {
                    if let Ok(lease) = lease {
                        session.model.apply(vec![Change::KordonLease(lease)], clock.now());
                    }
                }
            }
        }
        let now = clock.now();
        if let Some(job) = session.model.next_headroom_job(now) {
            let headroom = job.advance(&mut progress, || clock.now() < now + slice);
            session.model.predictions.set_headroom(headroom);
            slice = SLICE;
        }
        session.model.run_pending(progress.state());
        session.model.run_forecast(now);
        session.model.run_outcomes(progress.state(), now);
        kubelets.ask(WantedKubelet::of_nodes(session.model.queried_nodes(), &session.model.cluster));
        let verdict = ClusterVerdict::new(&session.model, now);
        let outline = (verdict.level, verdict.outline.clone());
        if printed.as_ref() != Some(&outline) {
            print(args.output, &verdict, &session.model.predictions.accuracy(), now)?;
            printed = Some(outline);
        }
        let sequences = notifier.look(&session.model, now);
        sequences.into_iter().for_each(|sequences| write_to_stderr(&sequences));
        let next = now + PERIOD;
        tokio::select! {
            Ended::Arrived | Ended::Abandoned = session.run_until(|_| false) => {
                return Err(CliError::WatchesEnded);
            }
            answer = kubelets.next() => if let UsageAnswer::Kubelet(node, report) = answer {
                session.model.on_kubelet_report(&node, *report, clock.now());
            },
            why = notifier.next_failure() => exit::note(&why),
            read = next_read(&mut reader) => match read {
                Ok(read) => notifier.change(read.notify),
                Err(why) => exit::note(&format!("{why}; notifications stay as they were")),
            },
            () = clock.sleep_until(next) => {}
        }
    }
}

fn print(
    output: OutputArgs,
    verdict: &ClusterVerdict,
    accuracy: &AccuracyReport,
    now: Timestamp,
) -> Result<(), CliError> {
    if output.is_for_people() {
        let mut page = output.page();
        let line = format!("{} {} {}", now.to_time(), verdict.level.glyph(), verdict.text());
        page.line(Emphasis::for_level(verdict.level), &line);
        return exit::print(page.into_text().as_bytes());
    }
    let report = VerdictChangeReport {
        schema: "kordon.verdict/v1",
        at: now,
        level: verdict.level.as_str(),
        text: verdict.text(),
        predictions: accuracy.into(),
    };
    exit::print(output.one_line(&report).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_documents_every_field() {
        crate::cli::documented::check::<VerdictChangeReport>("verdict");
    }
}
