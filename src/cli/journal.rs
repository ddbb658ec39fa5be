//! `kordon journal`: operations of this machine, and events of a recording or a cluster.

use std::collections::BTreeMap;

use clap::Args;
use serde::Serialize;

use super::{
    connection::ConnectionArgs,
    exit::{self, CliError},
    once::{OnceArgs, OneShot},
    output::OutputArgs,
    page::{Emphasis, Page, none},
    table::PageTable,
};
use crate::{
    journal::{Journal, JournalLine, JournaledOperation, LineKind, operations},
    model::{JournalEntry, JournalSubject, SessionJournal},
    run::Ended,
};
use kordon_core::{
    cluster::{NodeName, OperationId},
    engine::Severity,
    operation::OperationNotice,
};
use kordon_time::{Span, Timestamp};

#[derive(Args, Debug)]
pub struct JournalArgs {
    #[command(flatten)]
    once: OnceArgs,
    /// Connect, and print what happens to nodes and pods from now on, one line each
    #[arg(long, short, conflicts_with = "recording")]
    watch: bool,
    /// Print what an operation of this machine reported, such as the output of the commands of a maintenance
    #[arg(long, value_name = "OPERATION", conflicts_with_all = ["recording", "watch"])]
    operation: Option<OperationId>,
}

/// Interval of checks for new journal entries.
const PERIOD: Span = Span::from_secs(1);

/// Lists operations. With `--recording`, lists the events up to a moment instead; with `--watch`, prints new events; with
/// `--operation`, lists what an operation reported. `--namespace` restricts each of them to its pods.
pub async fn run(args: JournalArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    let once = &args.once;
    if args.watch {
        return follow(once, connection).await;
    }
    let namespace = connection.namespace.clone();
    if once.is_recorded() {
        let shot = OneShot::ask(once, connection, false).await?;
        let entries = shot.model.journal.numbered();
        let shown = entries.filter(|(_, entry)| is_in(entry, namespace.as_deref()));
        let mut entries: Vec<EntryReport> =
            shown.map(|(number, entry)| EntryReport::new(number, entry)).collect();
        entries.sort_by_key(|entry| entry.last_at);
        let report = JournalReport { entries: Some(entries), ..JournalReport::default() };
        once.output.print(&report, entry_table)?;
        return shot.done();
    }
    if let Some(id) = &args.operation {
        return once.output.print(&JournalReport::for_operation(id, namespace.as_deref())?, entry_table);
    }
    once.output.print(&JournalReport::for_operations(&connection)?, operation_table)
}

/// Prints each new journal entry, and prints it again when objects or occurrences join it.
async fn follow(args: &OnceArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    args.output.refuse_export("--watch prints a line for each event")?;
    let namespace = connection.namespace.clone();
    let mut watched = OneShot::keep_watching(args, connection, false).await?;
    let session = &mut watched.session;
    let clock = session.clock;
    let mut printed = Printed::default();
    loop {
        session.model.run_forecast(clock.now());
        let news = printed.news(&session.model.journal).into_iter();
        for (number, entry) in news.filter(|(_, entry)| is_in(entry, namespace.as_deref())) {
            print(args.output, &EntryReport::new(number, entry))?;
        }
        let next = clock.now() + PERIOD;
        tokio::select! {
            Ended::Arrived | Ended::Abandoned = session.run_until(|_| false) => {
                return Err(CliError::WatchesEnded);
            }
            () = clock.sleep_until(next) => {}
        }
    }
}

/// Whether an entry is about a pod of the namespace. Without a namespace, every entry is shown.
fn is_in(entry: &JournalEntry, namespace: Option<&str>) -> bool {
    let Some(namespace) = namespace else { return true };
    entry.subjects.iter().any(|subject| match subject {
        JournalSubject::Pod(pod, _) => *pod.namespace == *namespace,
        JournalSubject::Node(_) | JournalSubject::Other(_) => false,
    })
}

/// The journal entries that were printed.
#[derive(Debug, Default)]
struct Printed {
    revision: u64,
    /// Number of objects and of occurrences that each entry had when it was printed.
    entries: BTreeMap<usize, (usize, usize)>,
}

impl Printed {
    /// Journal entries that are new or have grown since they were printed.
    fn news<'a>(&mut self, journal: &'a SessionJournal) -> Vec<(usize, &'a JournalEntry)> {
        if self.revision == journal.revision() {
            return Vec::new();
        }
        self.revision = journal.revision();
        let before = std::mem::take(&mut self.entries);
        let mut news = Vec::new();
        for (number, entry) in journal.numbered() {
            let size = (entry.subjects.len(), entry.times);
            if before.get(&number) != Some(&size) {
                news.push((number, entry));
            }
            self.entries.insert(number, size);
        }
        news
    }
}

fn print(output: OutputArgs, entry: &EntryReport) -> Result<(), CliError> {
    if output.is_for_people() {
        let mut page = output.page();
        page.line(entry.tone, &format!("{} {}", entry.last_at.to_time(), entry.words()));
        return exit::print(page.into_text().as_bytes());
    }
    let line = EntryLine { schema: "kordon.journalEntry/v1", entry };
    exit::print(output.one_line(&line).as_bytes())
}

/// Operations and events (`docs/reference/journal.md`). Every field is always present; what was not requested is null.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct JournalReport {
    /// `kordon.journal/v1`: fields are added, never removed or renamed.
    schema: &'static str,
    /// The folder of the journals; `null` with `--recording` and `--operation`.
    folder: Option<String>,
    /// The operations, the oldest first; `null` with `--recording` and `--operation`.
    operations: Option<Vec<OperationReport>>,
    /// The entries by `lastAt`, the oldest first; `null` without `--recording` and `--operation`.
    entries: Option<Vec<EntryReport>>,
}

impl Default for JournalReport {
    fn default() -> Self {
        Self { schema: "kordon.journal/v1", folder: None, operations: None, entries: None }
    }
}

/// A journal entry that is printed as a line of its own.
#[derive(Debug, Serialize)]
struct EntryLine<'a> {
    schema: &'static str,
    #[serde(flatten)]
    entry: &'a EntryReport,
}

/// An event, with the number of its occurrences.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct EntryReport {
    /// Number of the journal entry. Objects and occurrences that join the entry later do not change the number.
    number: usize,
    /// When the event first happened.
    at: Timestamp,
    /// When the event last happened.
    last_at: Timestamp,
    /// Severity of the event: `info`, `warning` or `error`.
    level: &'static str,
    /// What the event is about: objects in kubectl's notation (`node/a`, `pod/shop/web-1`), or a part of kordon.
    objects: Vec<String>,
    /// What happened, as text; not for parsing.
    text: String,
    /// The prediction of the event, as text; `null` if the controller did not cause the event or the forecast could not
    /// know it.
    prediction: Option<String>,
    /// The chain of causes; may be empty.
    why: String,
    /// How often the event happened to the same object.
    times: usize,
    #[serde(skip)]
    tone: Emphasis,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct OperationReport {
    /// The id of the operation; `kordon undo` and `kordon drain --resume` take it.
    operation: OperationId,
    /// The kubeconfig context, or the server's address if no context was used.
    context: String,
    /// The API server's address.
    server: String,
    /// The journal file that records the operation's writes.
    file: String,
    /// When the operation started.
    started: Timestamp,
    /// When the last line of the operation was written.
    last: Timestamp,
    /// Who started the operation.
    by: String,
    /// The reason given; may be empty.
    why: String,
    /// The action: `drain`, `cordon`, …
    action: String,
    /// The equivalent command.
    command: String,
    /// The nodes that the operation names.
    nodes: Vec<NodeName>,
    /// Number of pods that the operation names.
    pods: usize,
    /// Guard rails and checks that were overridden.
    overrides: Vec<String>,
    /// How the operation ended; `null` if it was interrupted or is in progress.
    end: Option<String>,
    /// Whether a process of this machine carries out the operation.
    in_progress: bool,
    /// Whether another operation has undone the changes of this one.
    undone: bool,
    /// Nodes that the operation may have cordoned.
    cordoned: Vec<NodeName>,
}

impl JournalReport {
    /// Operations in the journals of this machine. No server is contacted.
    fn for_operations(connection: &ConnectionArgs) -> Result<Self, CliError> {
        let (folder, journals) = Journal::all()?;
        let mut rows = Vec::new();
        for journal in journals {
            let found = operations(&journal.lines()?);
            let is_meant = |past: &&JournaledOperation| {
                let mut pods = past.start.pods.iter().map(|(pod, _)| pod);
                connection.means(&past.start.context, &past.start.server)
                    && connection
                        .namespace
                        .as_ref()
                        .is_none_or(|namespace| pods.any(|pod| *pod.namespace == **namespace))
            };
            let meant = found.iter().filter(is_meant);
            rows.extend(meant.map(|past| OperationReport::new(past, &journal)));
        }
        rows.sort_by_key(|row| row.started);
        let folder = Some(folder.display().to_string());
        Ok(Self { folder, operations: Some(rows), ..Self::default() })
    }

    /// What an operation in the journals of this machine reported. No server is contacted.
    fn for_operation(id: &OperationId, namespace: Option<&str>) -> Result<Self, CliError> {
        let (_, journals) = Journal::all()?;
        let mut lines = Vec::new();
        for journal in journals {
            lines.extend(journal.lines()?.into_iter().filter(|line| line.operation == *id));
        }
        if lines.is_empty() {
            let text = format!("{id} is not in the journals of this machine: `kordon journal` lists what is");
            return Err(CliError::Usage(text));
        }
        let entry = |(number, JournalLine { at, kind, .. }): (usize, JournalLine)| match kind {
            LineKind::Notice { level, subject, text } => {
                let notice = OperationNotice { at, level, subject, text };
                let entry = JournalEntry::from_notice(&notice, id);
                is_in(&entry, namespace).then(|| EntryReport::new(number, &entry))
            }
            _ => None,
        };
        let entries = lines.into_iter().enumerate().filter_map(entry).collect();
        Ok(Self { entries: Some(entries), ..Self::default() })
    }
}

impl OperationReport {
    fn new(past: &JournaledOperation, journal: &Journal) -> Self {
        let start = &past.start;
        Self {
            operation: past.id.clone(),
            context: start.context.clone(),
            server: start.server.clone(),
            file: journal.path().display().to_string(),
            started: past.started,
            last: past.last,
            by: start.by.clone(),
            why: start.reason.clone(),
            action: start.action.clone(),
            command: start.command.clone(),
            nodes: start.nodes.iter().map(|(node, _)| node.clone()).collect(),
            pods: start.pods.len(),
            overrides: start.overrides.clone(),
            end: past.ended.clone(),
            in_progress: past.ended.is_none() && matches!(journal.lock(&past.id), Ok(None)),
            undone: past.undone,
            cordoned: past.cordoned().cloned().collect(),
        }
    }
}

impl EntryReport {
    fn new(number: usize, entry: &JournalEntry) -> Self {
        let object = |subject: &JournalSubject| match subject {
            JournalSubject::Node(node) => format!("node/{node}"),
            JournalSubject::Pod(pod, _) => format!("pod/{pod}"),
            JournalSubject::Other(part) => part.clone(),
        };
        let (level, tone) = match entry.level {
            Severity::Info => ("info", Emphasis::Plain),
            Severity::Warning => ("warning", Emphasis::Warning),
            Severity::Error => ("error", Emphasis::Critical),
        };
        Self {
            number,
            at: entry.at,
            last_at: entry.last,
            level,
            objects: entry.subjects.iter().map(object).collect(),
            text: entry.words(),
            prediction: entry.prediction(),
            why: entry.why.to_string(),
            times: entry.times,
            tone,
        }
    }

    /// Text of the entry: `evicted pod shop/web-1: from node a-03 · predicted 6s before  ×2`.
    fn words(&self) -> String {
        let prediction = self.prediction.as_ref().map(|words| format!(" · {words}")).unwrap_or_default();
        let times = if self.times > 1 { format!("  ×{}", self.times) } else { String::new() };
        format!("{}{prediction}{times}", self.text)
    }
}

fn entry_table(report: &JournalReport, out: &mut Page) {
    let entries = report.entries.as_deref().unwrap_or_default();
    if entries.is_empty() {
        out.line(Emphasis::Plain, "no entries yet");
    }
    if out.export().is_some() {
        return PageTable::new(entries)
            .key("TIME", |entry| entry.last_at.to_time())
            .essential("LEVEL", |entry| entry.level)
            .essential("ENTRY", |entry| entry.text.clone())
            .detail("OBJECTS", |entry| entry.objects.join(", "))
            .detail("PREDICTION", |entry| entry.prediction.clone().unwrap_or_else(none))
            .detail("TIMES", |entry| entry.times.to_string())
            .detail("WHY", |entry| entry.why.clone())
            .print(out);
    }
    for entry in entries {
        out.line(entry.tone, &format!("{} {}", entry.last_at.to_time(), entry.words()));
    }
}

fn operation_table(report: &JournalReport, out: &mut Page) {
    let (folder, operations) = (report.folder.as_deref().unwrap_or_default(), &report.operations);
    let operations = operations.as_deref().unwrap_or_default();
    if operations.is_empty() {
        out.line(Emphasis::Plain, &format!("no operations in {folder}"));
    } else {
        out.line(Emphasis::Plain, folder);
    }
    PageTable::new(operations)
        .key("OPERATION", |past| past.operation.to_string())
        .useful("CLUSTER", |past| past.context.clone())
        .flexible()
        .essential("STARTED", |past| past.started.to_time())
        .detail("BY", |past| past.by.clone())
        .flexible()
        .useful("NODES", nodes)
        .flexible()
        .detail("PODS", |past| past.pods.to_string())
        .right()
        .essential("ENDED", ended)
        .print(out);
}

fn nodes(past: &OperationReport) -> String {
    let nodes: Vec<&str> = past.nodes.iter().map(|node| &**node).collect();
    if nodes.is_empty() { none() } else { nodes.join(",") }
}

fn ended(past: &OperationReport) -> String {
    let open = if past.in_progress { "in progress" } else { "interrupted" };
    let end = past.end.as_deref().unwrap_or(open);
    if past.undone { format!("{end}, undone") } else { end.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::documented;
    use kordon_core::{cluster::Key, engine::Why};

    fn became_unknown(node: &str) -> JournalEntry {
        let entry =
            JournalEntry::new(Timestamp::EPOCH, Severity::Warning, "", "became Unknown", Why::default());
        entry.about(JournalSubject::Node(node.into()))
    }

    #[test]
    fn the_page_documents_every_field() {
        documented::check::<JournalReport>("journal");
    }

    #[test]
    fn a_namespace_shows_the_entries_about_its_pods() {
        let node = became_unknown("a");
        let pod = became_unknown("a").about(JournalSubject::Pod(Key::new("shop", "web-1"), None));
        assert!(is_in(&pod, Some("shop")) && !is_in(&pod, Some("other")));
        assert!(!is_in(&node, Some("shop")) && is_in(&node, None) && is_in(&pod, None));
    }

    #[test]
    fn an_entry_is_printed_when_it_is_made_and_again_when_more_has_joined_it() {
        let mut journal = SessionJournal::default();
        let mut printed = Printed::default();
        let mut news = |journal: &SessionJournal| -> Vec<(usize, usize)> {
            printed.news(journal).into_iter().map(|(number, entry)| (number, entry.subjects.len())).collect()
        };
        assert_eq!(news(&journal), []);
        journal.add(became_unknown("a"));
        assert_eq!(news(&journal), [(0, 1)]);
        assert_eq!(news(&journal), []);
        journal.add(became_unknown("b"));
        let evicted = JournalEntry::new(Timestamp::EPOCH, Severity::Info, "", "", Why::default());
        journal.add(evicted.with_verb("evicted").about(JournalSubject::Pod(Key::new("shop", "web-1"), None)));
        assert_eq!(news(&journal), [(0, 2), (1, 1)]);
    }
}
