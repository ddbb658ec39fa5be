//! `kordon why`: explains what happens to a node or a pod, or why nothing does.

use std::{collections::BTreeSet, fmt::Write as _, sync::Arc};

use clap::{Args, Subcommand};
use serde::Serialize;

use super::{
    connection::ConnectionArgs,
    departures::DepartureReport,
    exit::CliError,
    once::{OnceArgs, OneShot},
    page::{Emphasis, Page},
    placement::{self, PlacementReport},
    pressure::{self, PressureReport},
    table::PageTable,
};
use crate::{
    executor::guards,
    k8s::watch::read_events,
    model::{
        Model, PendingAdvice,
        suggestions::{Guarding, Numbers, Suggestion, SuggestionJob},
    },
    ui::text,
};
use kordon_core::{
    cluster::{
        Cluster, ClusterEvent, EventSubject, FeedKind, Key, KnownHealthChecks, KnownNodeClaims, NodeName,
        Pod, Scope,
        event::fold,
        nearest::{nearest_pod, scopes_near_pod},
    },
    placement::{SchedulingRequest, Snapshot},
    plan::{
        Environment, EvictionRules, Landing, PlacementTrace, PlacingEnvironment, Verdict,
        eviction_note::awaited_claim, needs::of_switchovers, placing_environment, refusal,
    },
    pressure::PressureCondition,
    visible,
    why::{
        Step,
        departure::{DepartureCertainty, PodDeparture},
        needs,
    },
};
use kordon_time::Timestamp;

#[derive(Args, Debug)]
pub struct WhyArgs {
    #[command(subcommand)]
    subject: Subject,
    #[command(flatten)]
    once: OnceArgs,
}

#[derive(Debug, Subcommand)]
enum Subject {
    /// Explain a node: its heartbeats, its taints, and what the controller does next
    #[command(visible_alias = "no")]
    Node {
        /// Name of the node
        name: String,
        /// Also show what each action would do, by plans over the whole cluster
        #[arg(long)]
        placement: bool,
        /// Also show how near the node is to memory, disk and process id pressure, and which pods its kubelet would
        /// evict first
        #[arg(long)]
        pressure: bool,
    },
    /// Explain whether and when a pod is evicted, or who removed it
    #[command(visible_alias = "po")]
    Pod {
        /// Name of the pod, or NAMESPACE/NAME
        name: String,
        /// Also show what each action would do, and where the scheduler would place the pod now: the best nodes with
        /// their scores, or why none fits
        #[arg(long)]
        placement: bool,
    },
}

/// An explanation (`docs/reference/why.md`). Every field is always present; unknown values are null.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct WhyReport {
    /// `kordon.why/v1`: fields are added, never removed or renamed.
    schema: &'static str,
    taken_at: Timestamp,
    /// End of the forecast from which predicted steps are taken.
    forecast_until: Timestamp,
    /// Kind of the subject: `node` or `pod`.
    kind: &'static str,
    namespace: Option<String>,
    name: String,
    /// Who removed the pod, and why; null for a node, and for a pod that stays.
    departure: Option<DepartureReport>,
    /// Steps of the explanation, beginning with the first cause.
    steps: Vec<StepReport>,
    /// Possible actions.
    actions: Vec<ActionReport>,
    /// Events grouped by reason, newest first; null if unknown.
    events: Option<Vec<EventReport>>,
    /// Why the Events are unknown.
    events_error: Option<String>,
    /// Placement of the pod; null without `--placement`.
    placement: Option<WhyPlacementReport>,
    /// Pressure on the node; null without `--pressure`.
    pressure: Option<PressureReport>,
}

/// Where the scheduler would place the pod now.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct WhyPlacementReport {
    /// Where the pod would land: `node`, `pending` or `unknown`.
    landing: &'static str,
    landing_node: Option<NodeName>,
    landing_reason: Option<String>,
    trace: PlacementReport,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct StepReport {
    /// Topic of the step: `heartbeat`, `gracePeriod`, `ready`, `queue`, …
    topic: &'static str,
    /// Tense of the step: `past`, `present`, `future` or `never`.
    time: &'static str,
    at: Option<Timestamp>,
    in_seconds: Option<f64>,
    estimated: bool,
    text: String,
    #[serde(skip)]
    mark: &'static str,
}

/// Events with the same reason, type and source.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct EventReport {
    reason: String,
    /// Type of the Events: `Normal` or `Warning`.
    #[serde(rename = "type")]
    kind: &'static str,
    count: u64,
    first_at: Option<Timestamp>,
    last_at: Option<Timestamp>,
    source: String,
    /// Message of the last Event.
    message: String,
}

/// A possible action.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ActionReport {
    /// Word of the action: `wait`, `cordon`, `drain`, `outOfService`, …
    action: &'static str,
    /// Who performs the action: `nobody`, `kordon`, `kubectl`, `machine` or `edit`.
    by: &'static str,
    at: Option<Timestamp>,
    in_seconds: Option<f64>,
    text: String,
    /// With `--placement`: the result of the action's plan.
    effect: Option<String>,
    /// Risks of the action, warnings of its plan, and refusals by guard rails.
    cautions: Vec<String>,
    command: Option<String>,
    #[serde(skip)]
    title: &'static str,
}

pub async fn run(args: WhyArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    args.once.output.refuse_csv("an explanation is a list of steps")?;
    let config = connection.config.clone();
    let mut shot = match &args.subject {
        Subject::Pod { placement: true, .. } | Subject::Node { placement: true, .. } => {
            OneShot::ask_for(&args.once, &FeedKind::PREDICTION, connection).await?
        }
        Subject::Pod { name, .. } => {
            let needs = |model: &Model, namespace: &str| {
                needs::of_pod(&pod_key(name, namespace), &model.cluster, &model.settings)
            };
            OneShot::ask_about(&args.once, connection, needs).await?
        }
        Subject::Node { name, .. } => {
            let needs = |model: &Model, _: &str| {
                needs::of_node(&name.as_str().into(), &model.cluster, &model.settings)
            };
            OneShot::ask_about(&args.once, connection, needs).await?
        }
    };
    if rests_on_placements(&mut shot, &args.subject) {
        // Explaining a waiting drain, a nominated pod or an evicted pod requires placements, so all kinds that decide
        // placements are listed.
        shot = shot.listed(&args.once, &FeedKind::PREDICTION).await?;
    }
    if let Subject::Node { name, pressure, .. } = &args.subject
        && let Some(node) = shot.model.cluster.node(&NodeName::from(name.as_str())).cloned()
    {
        if *pressure {
            pressure::ask_kubelet(&mut shot, &node, &args.once).await;
        }
        if KnownNodeClaims::concern(&node) {
            shot.read_node_claims(&args.once).await;
        }
        if KnownHealthChecks::concern(&node) {
            shot.read_health_checks(&args.once).await;
        }
        let instances = of_switchovers(&shot.model.cluster, std::slice::from_ref(&node.name));
        shot.read_near(instances).await;
    }
    if let Subject::Pod { name, .. } = &args.subject {
        let key = pod_key(name, &shot.namespace);
        let node = shot.model.cluster.pod(&key).and_then(|pod| pod.node.clone());
        let node = node.and_then(|node| shot.model.cluster.node(&node)).cloned();
        if let Some(node) = node.filter(|node| !PressureCondition::reported(node).is_empty()) {
            pressure::ask_kubelet(&mut shot, &node, &args.once).await;
        }
        let cluster = &shot.model.cluster;
        let pod = cluster.pod(&key);
        if pod.is_some_and(|pod| awaited_claim(cluster, pod).is_some()) {
            shot.read_volume_attachments(&args.once).await;
        } else if pod.is_none() {
            shot.read_near(scopes_near_pod(&key).into()).await;
        }
    }
    shot.model.run_pending(None);
    shot.run_forecast();
    if matches!(args.subject, Subject::Pod { .. }) {
        shot.model.run_outcomes(None, shot.at);
    }
    let events = events(&shot, &args.subject).await;
    let departure = departure(&shot, &args.subject, events.as_deref().unwrap_or_default()).await;
    let guards = guards::read(None).map(|guards| config.guarded(&shot.connection.context, guards));
    let guards = guards.map_err(|error| error.to_string());
    let events = events.map(|events| fold(&events));
    let report = report(&shot, &args.subject, events, departure, &guards)?;
    args.once.output.print(&report, render)?;
    shot.done()
}

/// Whether the explanation depends on placements, and not everything that decides placements has been read.
fn rests_on_placements(shot: &mut OneShot, subject: &Subject) -> bool {
    match subject {
        Subject::Node { placement: true, .. } | Subject::Pod { placement: true, .. } => false,
        Subject::Node { name, .. } => waits_for_pending_pods(&shot.model, &name.as_str().into(), shot.at),
        Subject::Pod { name, .. } => {
            shot.run_forecast();
            let key = pod_key(name, &shot.namespace);
            let row = shot.model.views.leaving.evictions.get(&key);
            row.is_some_and(|row| row.state.leaves_at().is_some())
                || is_nominated(&shot.model.cluster, &key)
                || may_wait_for_uncordon(&shot.model, &key, shot.at)
        }
    }
}

/// Whether the node is cordoned, and one of its pods may not be evicted before a Pending pod runs.
fn waits_for_pending_pods(model: &Model, node: &NodeName, now: Timestamp) -> bool {
    let cluster = &model.cluster;
    let waits = |pod: &Arc<Pod>| waits_for_pending_pod(model, pod, now);
    cluster.node(node).is_some_and(|node| node.unschedulable) && cluster.workload_pods(node).any(waits)
}

/// Whether a node is cordoned, and the pod, or one that its eviction waits for, is Pending.
fn may_wait_for_uncordon(model: &Model, pod: &Key, now: Timestamp) -> bool {
    let cluster = &model.cluster;
    let is_pending = |pod: &Arc<Pod>| pod.is_unscheduled() || waits_for_pending_pod(model, pod, now);
    cluster.nodes().iter().any(|node| node.unschedulable) && cluster.pod(pod).is_some_and(is_pending)
}

/// Whether the pod may not be evicted before a Pending pod runs.
fn waits_for_pending_pod(model: &Model, pod: &Arc<Pod>, now: Timestamp) -> bool {
    let rules = EvictionRules::from(&model.settings);
    let refused = refusal(&model.cluster, pod, &rules, now);
    matches!(refused, Some(Verdict::Waits { pending, .. }) if !pending.is_empty())
}

/// Whether the pod has no node yet, but is nominated for one.
fn is_nominated(cluster: &Cluster, pod: &Key) -> bool {
    cluster.pod(pod).is_some_and(|pod| pod.node.is_none() && pod.nominated.is_some())
}

/// Reads the Events about the subject. If the subject is a pod that is gone, reads its Events that still exist.
async fn events(shot: &OneShot, subject: &Subject) -> Result<Vec<ClusterEvent>, String> {
    let cluster = &shot.model.cluster;
    let subject = match subject {
        Subject::Node { name, .. } => match cluster.node(&NodeName::from(name.as_str())) {
            Some(node) => EventSubject::node(node),
            None => return Ok(Vec::new()),
        },
        Subject::Pod { name, .. } => {
            let key = pod_key(name, &shot.namespace);
            cluster.pod(&key).map_or_else(|| EventSubject::gone_pod(&key), |pod| EventSubject::pod(pod))
        }
    };
    read_events(&shot.connection.client, &subject).await
}

/// Who removed a pod, and why. If the answer is uncertain, the Events of the pod's owner are also read.
async fn departure(shot: &OneShot, subject: &Subject, events: &[ClusterEvent]) -> Option<DepartureReport> {
    let Subject::Pod { name, .. } = subject else { return None };
    let (cluster, key) = (&shot.model.cluster, pod_key(name, &shot.namespace));
    let Some(pod) = cluster.pod(&key) else {
        let is_gone = cluster.gaps_in([Scope::Pod(key.clone())]).is_empty();
        let departure = PodDeparture::from_events(&key, events).filter(|_| is_gone)?;
        return Some(DepartureReport::new(departure, "gone", None, shot.at));
    };
    let mut entry = shot.model.departures.classify(pod, cluster, events)?;
    if entry.departure.certainty != DepartureCertainty::Certain
        && let Some(owner) = EventSubject::owner_of(pod)
        && let Ok(of_owner) = read_events(&shot.connection.client, &owner).await
    {
        entry = shot.model.departures.classify(pod, cluster, &[events, &of_owner].concat())?;
    }
    Some(DepartureReport::new(entry.departure, entry.stage.as_str(), entry.at, shot.at))
}

fn report(
    shot: &OneShot,
    subject: &Subject,
    events: Result<Vec<ClusterEvent>, String>,
    departure: Option<DepartureReport>,
    guards: &Guarding,
) -> Result<WhyReport, CliError> {
    let Some(explainer) = shot.model.explainer(shot.at) else {
        return Err(CliError::NotFound { what: "the engine".into(), meant: Vec::new() });
    };
    let cluster = explainer.cluster;
    let (kind, namespace, name, steps, placement, pressure, actions) = match subject {
        Subject::Node { name, placement, pressure } => {
            let of_name = NodeName::from(name.as_str());
            match cluster.node(&of_name) {
                Some(node) => {
                    let job = shot.model.node_suggestions(node, shot.at);
                    let actions = job.map(|job| suggested(job, *placement, guards));
                    let pressure = pressure.then(|| pressure::report(shot, node));
                    let events = events.as_deref().unwrap_or_default();
                    let steps = shot.model.explain_node(node, events, shot.at);
                    ("node", None, name.clone(), steps, None, pressure, actions)
                }
                None => {
                    let steps = explainer.deleted_node(&of_name);
                    let steps = steps.ok_or_else(|| CliError::no_node(name, cluster))?;
                    ("node", None, name.clone(), steps, None, None, None)
                }
            }
        }
        Subject::Pod { name, placement } => {
            let key = pod_key(name, &shot.namespace);
            let (namespace, name) = (Some(key.namespace.to_string()), key.name.to_string());
            match cluster.pod(&key) {
                Some(pod) => {
                    let actions = suggested(shot.model.pod_suggestions(pod, shot.at), *placement, guards);
                    let placement = placement.then(|| placed(shot, pod));
                    let events = events.as_deref().unwrap_or_default();
                    let steps = shot.model.explain_pod(pod, events, shot.at);
                    ("pod", namespace, name, steps, placement, None, Some(actions))
                }
                None if departure.is_some() => ("pod", namespace, name, Vec::new(), None, None, None),
                None => return Err(not_there(cluster, key)),
            }
        }
    };
    Ok(WhyReport {
        schema: "kordon.why/v1",
        taken_at: shot.at,
        forecast_until: explainer.forecast.map_or(shot.at, |forecast| forecast.until),
        kind,
        namespace,
        name,
        departure,
        steps: steps.into_iter().map(|step| StepReport::new(step, shot.at)).collect(),
        events_error: events.as_ref().err().cloned(),
        events: events
            .ok()
            .map(|events| events.into_iter().map(|event| EventReport::new(event, cluster)).collect()),
        actions: actions.into_iter().flatten().map(|action| ActionReport::new(action, shot.at)).collect(),
        placement,
        pressure,
    })
}

/// Possible actions, with the numbers of their plans if requested.
fn suggested(job: SuggestionJob, with_plans: bool, guards: &Guarding) -> Vec<Suggestion> {
    let numbers = if with_plans { Numbers::OfPlans } else { Numbers::None };
    job.work(numbers, guards)
}

/// The pod named by `NAME` or `NAMESPACE/NAME`.
fn pod_key(name: &str, namespace: &str) -> Key {
    match name.split_once('/') {
        Some((namespace, name)) => Key::new(namespace, name),
        None => Key::new(namespace, name),
    }
}

/// The error for a pod that does not exist or is unknown.
fn not_there(cluster: &Cluster, pod: Key) -> CliError {
    let gaps = cluster.gaps_in([Scope::Pod(pod.clone())]);
    if gaps.is_empty() {
        let meant = nearest_pod(&pod, cluster).iter().map(ToString::to_string).collect();
        CliError::NotFound { what: format!("pod {pod}"), meant }
    } else {
        CliError::Unknown { what: format!("pod {pod} is unknown"), gaps }
    }
}

/// Where the scheduler would place this pod if it were not bound yet.
fn placed(shot: &OneShot, pod: &Pod) -> WhyPlacementReport {
    let cluster = &shot.model.cluster;
    let mut snapshot = Snapshot::new(cluster, shot.model.settings.version);
    if let Some(node) = &pod.node {
        snapshot.remove(&pod.key, node);
    }
    let (request, landing, trace) = match shot.model.predictions.pending_advice(&pod.key) {
        Some(waits @ PendingAdvice::Waits { .. }) => {
            let why = waits.first().unwrap_or_default().into();
            (SchedulingRequest::from_pod(pod, cluster), Landing::Pending { why }, None)
        }
        _ => {
            let mut placing = PlacingEnvironment::new(cluster, snapshot.clone(), shot.at);
            let landing = placing.land(pod, &BTreeSet::new());
            let trace = placing.trace().placements.remove(&pod.key).map(Arc::unwrap_or_clone);
            (placing_environment::replacement(pod, cluster), landing, trace)
        }
    };
    let reasons = snapshot.refusals(&request);
    // The reasons of all nodes that do not fit are included, even if other nodes fit.
    let trace = PlacementTrace { reasons, ..trace.unwrap_or_default() };
    let (landing, landing_node, landing_reason) = placement::landing(&landing);
    WhyPlacementReport { landing, landing_node, landing_reason, trace: PlacementReport::new(&trace) }
}

impl StepReport {
    fn new(step: Step, now: Timestamp) -> Self {
        Self {
            topic: step.topic.as_str(),
            time: step.tense.as_str(),
            at: step.at,
            in_seconds: step.at.map(|at| at.since(now).as_secs_f64()),
            estimated: step.estimated,
            text: step.text,
            mark: step.tense.glyph(),
        }
    }
}

impl EventReport {
    fn new(event: ClusterEvent, cluster: &Cluster) -> Self {
        Self {
            reason: event.reason.to_string(),
            kind: if event.is_warning { "Warning" } else { "Normal" },
            count: event.count,
            first_at: event.first.map(|at| cluster.local(at)),
            last_at: event.last.map(|at| cluster.local(at)),
            source: event.source.to_string(),
            message: event.message,
        }
    }
}

impl ActionReport {
    fn new(suggestion: Suggestion, now: Timestamp) -> Self {
        Self {
            action: suggestion.kind.word(),
            by: suggestion.means.word(),
            at: suggestion.at,
            in_seconds: suggestion.at.map(|at| at.since(now).as_secs_f64()),
            cautions: suggestion.cautions().into_iter().map(str::to_owned).collect(),
            command: suggestion.means.command(),
            title: suggestion.kind.title(),
            text: suggestion.text,
            effect: suggestion.effect.map(|effect| effect.text).filter(|text| !text.is_empty()),
        }
    }
}

/// Renders the explanation. Each step has a line with its time, the distance from now, and its text.
fn render(report: &WhyReport, out: &mut Page) {
    let name =
        report.namespace.iter().chain([&report.name]).map(|part| visible::text(part)).collect::<Vec<_>>();
    let _ = writeln!(out, "{} {}", report.kind, name.join("/"));
    departure_table(report, out);
    for step in &report.steps {
        let at = step.at.map_or(String::new(), |at| at.utc().format("%H:%M:%S").to_string());
        let about = if step.estimated { "~" } else { "" };
        let distance = step.at.map_or(String::new(), |at| {
            if at > report.taken_at {
                format!("in {about}{}", text::left(at, report.taken_at))
            } else {
                format!("{about}{} ago", text::age(report.taken_at, at))
            }
        });
        let mark = step.mark;
        let _ = writeln!(out, "{mark} {at:8}  {distance:14}  {}", visible::text(&step.text));
    }
    action_table(report, out);
    event_table(report, out);
    if let Some(placement) = &report.placement {
        placement_table(out, placement);
    }
    if let Some(pressure) = &report.pressure {
        let _ = writeln!(out);
        pressure::render(pressure, out);
    }
}

/// Prints who removed the pod, with the evidence for and against.
fn departure_table(report: &WhyReport, out: &mut Page) {
    let Some(departure) = &report.departure else { return };
    let DepartureReport { title, certainty, stage, .. } = departure;
    let at = departure.at.map_or(String::new(), |at| format!(", {} ago", text::age(report.taken_at, at)));
    let _ = writeln!(out, "departure: {title}, {certainty}{at}, {stage}");
    for evidence in &departure.evidence {
        let role = if evidence.agrees { "because" } else { "against" };
        let _ = writeln!(out, "  {role}  {}", visible::text(&evidence.text));
    }
    let _ = writeln!(out);
}

/// Prints the possible actions with effect, risk and command.
fn action_table(report: &WhyReport, out: &mut Page) {
    if report.actions.is_empty() {
        return;
    }
    let _ = writeln!(out, "\nwhat you can do");
    for action in &report.actions {
        let left = action.at.map(|at| format!(" (in {})", text::left(at, report.taken_at)));
        let outcome = action.effect.as_ref().unwrap_or(&action.text);
        let (title, outcome) = (action.title, visible::text(outcome));
        let _ = writeln!(out, "  {title:20}  {outcome}{}", left.unwrap_or_default());
        for caution in &action.cautions {
            let _ = writeln!(out, "  {:20}  ! {}", "", visible::text(caution));
        }
        if let Some(command) = &action.command {
            let _ = writeln!(out, "  {:20}  $ {}", "", visible::text(command));
        }
    }
}

/// Prints the Events, newest first.
fn event_table(report: &WhyReport, out: &mut Page) {
    if let Some(error) = &report.events_error {
        out.line(Emphasis::Plain, "");
        out.gap(&format!("events unknown: {error}"));
    }
    let last = |event: &EventReport| event.last_at.map_or(String::new(), |at| text::age(report.taken_at, at));
    PageTable::new(report.events.as_deref().unwrap_or_default())
        .useful("LAST", |event| last(event))
        .detail("TYPE", |event| event.kind)
        .key("EVENT", |event| event.reason.clone())
        .detail("COUNT", |event| event.count.to_string())
        .right()
        .detail("FROM", |event| event.source.clone())
        .essential("MESSAGE", |event| event.message.clone())
        .flexible()
        .print(out);
}

/// Prints the best nodes with their scores, why others do not fit, and how to place the pod.
fn placement_table(out: &mut Page, placement: &WhyPlacementReport) {
    let WhyPlacementReport { landing_node, landing_reason, trace, .. } = placement;
    let landing = match (landing_node, placement.landing) {
        (Some(node), _) => format!("would land on {node}"),
        (None, "pending") => "would stay Pending".into(),
        (None, "rejected") => "would never run".into(),
        (None, _) => "not predicted".into(),
    };
    let reason = landing_reason.as_ref().or(trace.obstacle.as_ref());
    let reason = reason.map_or(String::new(), |reason| format!(" ({reason})"));
    let _ = writeln!(out, "\nif placed now: {}{}", visible::text(&landing), visible::text(&reason));
    PageTable::new(&trace.ranking)
        .key("BEST NODES", |scored| scored.node.to_string())
        .essential("SCORE", |scored| scored.score.to_string())
        .right()
        .useful("LEAST ALLOCATED", |scored| scored.plugins.least_allocated.to_string())
        .right()
        .useful("BALANCED", |scored| scored.plugins.balanced_allocation.to_string())
        .right()
        .detail("TAINTS", |scored| scored.plugins.taint_toleration.to_string())
        .right()
        .detail("NODE AFFINITY", |scored| scored.plugins.node_affinity.to_string())
        .right()
        .useful("SPREAD", |scored| scored.plugins.pod_topology_spread.to_string())
        .right()
        .detail("POD AFFINITY", |scored| scored.plugins.inter_pod_affinity.to_string())
        .right()
        .detail("IMAGES", |scored| scored.plugins.image_locality.to_string())
        .right()
        .print(out);
    PageTable::new(&trace.reasons)
        .essential("NODES", |refusal| refusal.nodes.to_string())
        .right()
        .key("DO NOT FIT BECAUSE", |refusal| refusal.reason.clone())
        .print(out);
    PageTable::new(&trace.preempts).key("PREEMPTS", |victim| victim.text.clone()).print(out);
    PageTable::new(&trace.help).key("TO PLACE IT", |help| help.to_string()).print(out);
    PageTable::new(&trace.caveats).key("CAVEATS", |word| placement::caveat(word)).print(out);
    let _ = writeln!(out, "\nassumptions: {}", placing_environment::TEMPLATES_ASSUMED);
}
