//! `kordon events`: the Events of the cluster, folded by object and reason, as the list of the dashboard.

use clap::Args;
use serde::Serialize;

use super::{ListArgs, check_filter_of, say_empty};
use crate::{
    app::{
        EventColumn, Filter, Pane, Sort,
        event_list::event_rows,
        filter_fields::{FilterableEvent, event_type},
    },
    cli::{
        connection::ConnectionArgs,
        exit::CliError,
        page::{Emphasis, Page, none},
        table::PageTable,
    },
    k8s::watch::{EventsUnread, read_cluster_events},
    ui::text,
};
use kordon_core::cluster::{EventsOfCluster, NOT_IN_FILES, ReportedEvent, event::fold_by_object};
use kordon_time::{ClusterClock, ClusterTime, Timestamp};

#[derive(Args, Debug)]
pub struct EventListArgs {
    /// List Events of all namespaces; the same as without --namespace
    #[arg(long, short = 'A')]
    all_namespaces: bool,
    #[command(flatten)]
    list: ListArgs,
}

/// Prints the Events.
pub async fn run(args: EventListArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    let ListArgs { once, sort, filter } = args.list;
    let (sort, filter) = (sort.column()?, filter.for_pane(Pane::Events)?);
    if once.is_recorded() {
        let why = "a recording has only what watches report, and no Events: leave out --recording";
        return Err(CliError::Usage(why.into()));
    }
    let namespace = connection.namespace.clone().filter(|_| !args.all_namespaces);
    let patience = once.patience();
    let connection = patience.connect(connection, &once.source).await?;
    let reading = read_cluster_events(&connection.client, namespace.as_deref());
    let events = match patience.wait(reading).await {
        Some(events) => events.map_err(|error| CliError::from_unread_events(error, namespace.as_deref()))?,
        None => return Err(patience.late("Events")),
    };
    once.output.print(&EventListReport::new(&events, filter, sort, connection.clock.now())?, table)
}

impl CliError {
    fn from_unread_events(error: EventsUnread, namespace: Option<&str>) -> Self {
        match error {
            EventsUnread::Forbidden(why) if why.contains(NOT_IN_FILES) => Self::EventsUnread { why },
            EventsUnread::Forbidden(why) => {
                let of =
                    namespace.map_or_else(|| "all namespaces".into(), |name| format!("namespace {name}"));
                Self::EventsForbidden { why, of }
            }
            EventsUnread::Failed(why) => Self::EventsUnread { why },
        }
    }
}

/// Events (`docs/reference/events.md`). Every field is always present; unknown values are null.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct EventListReport {
    /// `kordon.events/v1`: fields are added, never removed or renamed.
    schema: &'static str,
    /// When the report was made.
    taken_at: Timestamp,
    /// The Events that pass the filter, in the order of `--sort`. Events about the same object with the same reason,
    /// type and source are combined into one.
    events: Vec<ListedEventReport>,
    /// Number of combined Events, whether or not they pass the filter.
    total: usize,
    /// Number of older Events of the cluster that were left out, because there are more than 10,000.
    left_out: usize,
    #[serde(skip)]
    #[cfg_attr(test, schemars(skip))]
    filter: Filter,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct ListedEventReport {
    /// The type: `Normal` or `Warning`.
    #[serde(rename = "type")]
    event_type: &'static str,
    /// The reason, as in `FailedScheduling`.
    reason: String,
    /// The kind of the object that the Event is about.
    kind: String,
    /// The object's namespace; `null` for an object of the whole cluster.
    namespace: Option<String>,
    /// The object's name.
    name: String,
    /// The node that the Event is about, or whose kubelet reported it; `null` if the Event names none.
    node: Option<String>,
    /// How often the Event happened.
    count: u64,
    /// When the Event first happened, on the cluster's clock; `null` if the Event does not say so.
    first: Option<Timestamp>,
    /// When the Event last happened, on the cluster's clock; `null` if the Event does not say so.
    last: Option<Timestamp>,
    /// The component that reported the Event.
    source: String,
    /// The message of the last of these Events.
    message: String,
}

impl EventListReport {
    fn new(
        read: &EventsOfCluster,
        filter: Filter,
        sort: Sort<EventColumn>,
        now: Timestamp,
    ) -> Result<Self, CliError> {
        let (all, clock) =
            (fold_by_object(read.events.as_deref().unwrap_or_default()), ClusterClock::default());
        check_filter_of(&filter, Pane::Events, &|visit| {
            all.values().for_each(|event| visit(&FilterableEvent { event, clock, now }));
        })?;
        let keys = event_rows(&all, &filter, sort, clock, now);
        let rows = keys.iter().filter_map(|key| all.get(key));
        Ok(Self {
            schema: "kordon.events/v1",
            taken_at: now,
            events: rows.map(ListedEventReport::new).collect(),
            total: all.len(),
            left_out: read.left_out,
            filter,
        })
    }
}

impl ListedEventReport {
    fn new(ReportedEvent { about, node, event }: &ReportedEvent) -> Self {
        let some = |name: &str| Some(name.to_owned()).filter(|name| !name.is_empty());
        let time = |at: Option<ClusterTime>| at.map(|at| ClusterClock::default().local(at));
        Self {
            event_type: event_type(event.is_warning),
            reason: event.reason.to_string(),
            kind: about.kind.to_string(),
            namespace: some(&about.namespace),
            name: about.name.to_string(),
            node: some(node),
            count: event.count,
            first: time(event.first),
            last: time(event.last),
            source: event.source.to_string(),
            message: event.message.clone(),
        }
    }

    /// The object: `Pod shop/web-1`.
    fn object(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{} {namespace}/{}", self.kind, self.name),
            None => format!("{} {}", self.kind, self.name),
        }
    }
}

fn table(report: &EventListReport, out: &mut Page) {
    if report.left_out > 0 {
        let text = format!("{} older Events are left out", text::count(report.left_out));
        out.line(Emphasis::Notice, &text);
    }
    if report.events.is_empty() {
        say_empty(out, report.total, ("Event", "Events"), &report.filter);
    }
    let age = |at: Option<Timestamp>| at.map_or_else(none, |at| text::age(report.taken_at, at));
    PageTable::new(&report.events)
        .essential("LAST", move |event| age(event.last))
        .right()
        .essential("TYPE", |event| event.event_type)
        .toned(|event| if event.event_type == "Warning" { Emphasis::Warning } else { Emphasis::Plain })
        .essential("REASON", |event| event.reason.clone())
        .key("OBJECT", ListedEventReport::object)
        .useful("COUNT", |event| event.count.to_string())
        .right()
        .detail("FIRST", move |event| age(event.first))
        .right()
        .detail("NODE", |event| event.node.clone().unwrap_or_else(none))
        .essential("MESSAGE", |event| event.message.clone())
        .flexible()
        .detail("SOURCE", |event| event.source.clone())
        .print(out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::documented;

    #[test]
    fn the_page_documents_every_field() {
        documented::check::<EventListReport>("events");
    }
}
