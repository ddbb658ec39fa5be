//! Metrics that `/metrics` exports, in the OpenMetrics text format (`docs/reference/metrics.md`).
//!
//! Metrics that kube-controller-manager also has use its names, labels and buckets. The others begin with `kordon_`.

use std::collections::{BTreeMap, BTreeSet};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text},
    metrics::MetricType,
    registry::Registry,
};

use super::kube_controller_manager::MayLead;
use crate::{
    k8s::{
        feed::FeedState,
        leadership::{ElectionOptions, LeaseState},
    },
    model::{ControllerRole, Model},
    run::session::PassDurations,
};
use kordon_core::{
    cluster::{Known, ZoneKey},
    engine::{Confidence, metrics::Histogram},
    plan::{Headroom, OutcomeKind},
};
use kordon_time::{Span, Timestamp};

/// A metric: its name without the suffix `_total`, and its description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    pub name: &'static str,
    pub kind: MetricKind,
    pub labels: &'static [&'static str],
    pub help: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// A number that never decreases while the controller runs. The names of its samples end in `_total`.
    Counter,
    Gauge,
    Histogram,
}

impl MetricKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

impl Metric {
    /// Returns the name that queries use for the metric. For a histogram, this name lacks the suffixes of its samples.
    pub fn sample_name(&self) -> String {
        match self.kind {
            MetricKind::Counter => format!("{}_total", self.name),
            MetricKind::Gauge | MetricKind::Histogram => self.name.into(),
        }
    }
}

const fn counter(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: MetricKind::Counter, labels, help }
}

const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: MetricKind::Gauge, labels, help }
}

const fn histogram(name: &'static str, help: &'static str) -> Metric {
    Metric { name, kind: MetricKind::Histogram, labels: &[], help }
}

/// Names of the labels of metrics about a zone.
const ZONE: &[&str] = &["region", "zone"];

const HEALTH: &str = "node_collector_zone_health";
const SIZE: &str = "node_collector_zone_size";
const UNHEALTHY: &str = "node_collector_unhealthy_nodes_in_zone";
const EVICTIONS: &str = "node_collector_evictions";
const PASSES: &str = "node_collector_update_all_nodes_health_duration_seconds";
const DELETIONS: &str = "taint_eviction_controller_pod_deletions";
const DELETION_DELAY: &str = "taint_eviction_controller_pod_deletion_duration_seconds";
const MASTER: &str = "leader_election_master_status";
const ENFORCING: &str = "kordon_enforcing";
const BLOCKED: &str = "kordon_blocked_by_manager";
const CONFIDENCE: &str = "kordon_confidence";
const SILENT: &str = "kordon_nodes_silent";
const QUEUED: &str = "kordon_nodes_waiting_for_taint";
const RATE: &str = "kordon_zone_eviction_rate";
const PREDICTED: &str = "kordon_pods_predicted_evicted";
const BY_KUBELETS: &str = "kordon_pods_predicted_evicted_by_kubelets";
const UNMEASURED: &str = "kordon_nodes_pressure_unmeasured";
const NEXT: &str = "kordon_next_eviction_seconds";
const OUTCOMES: &str = "kordon_pods_predicted_outcome";
const NOWHERE: &str = "kordon_pods_nowhere_to_run";
const SHORT: &str = "kordon_headroom_pending_pods";
const STRANDED: &str = "kordon_headroom_stranded_pods";
const CONTRADICTED: &str = "kordon_settings_contradicted";
const JUDGED: &str = "kordon_forecast_events";
const WATCH_UP: &str = "kordon_watch_live";
const WATCH_AGE: &str = "kordon_watch_last_event_age_seconds";
const RELISTS: &str = "kordon_watch_relists";
const REQUESTS: &str = "kordon_watch_requests";
const BYTES: &str = "kordon_watch_received_bytes";
const WRITES: &str = "kordon_effects";
const HELD: &str = "kordon_evictions_held";
const OVERRUNS: &str = "kordon_eviction_limit_reached";
const CLOCK: &str = "kordon_clock_difference_seconds";
const BUILD: &str = "kordon_build_info";

/// All metrics, in the order in which `/metrics` has them.
pub const METRICS: &[Metric] = &[
    gauge(HEALTH, &["zone"], "Percentage of the zone's nodes that are Ready (as kube-controller-manager)"),
    gauge(SIZE, &["zone"], "Nodes of the zone (as kube-controller-manager)"),
    gauge(UNHEALTHY, &["zone"], "Nodes of the zone that are not Ready (as kube-controller-manager)"),
    counter(
        EVICTIONS,
        &["zone"],
        "Nodes tainted NoExecute since this controller started; in a shadow those that it decided (as kube-controller-manager)",
    ),
    histogram(
        PASSES,
        "How long passes over all nodes took (as kube-controller-manager; without the writes, which kordon does not wait for)",
    ),
    counter(
        DELETIONS,
        &[],
        "Pods deleted by taint eviction; in a shadow those that it decided (as kube-controller-manager)",
    ),
    histogram(
        DELETION_DELAY,
        "From when a deletion was due until it was done (as kube-controller-manager, in seconds)",
    ),
    gauge(
        MASTER,
        &["name"],
        "Whether this process holds the Lease of this name; only with --enforce (as client-go)",
    ),
    gauge(ENFORCING, &[], "Whether this process may write now: with --enforce, while it holds its Lease"),
    gauge(
        BLOCKED,
        &[],
        "Whether this process waits because kube-controller-manager may run the same controllers; only with --enforce",
    ),
    gauge(
        CONFIDENCE,
        &["state"],
        "1 for how far predictions can be trusted: live, assumed, disconnected or noController",
    ),
    gauge(
        SILENT,
        ZONE,
        "Nodes without a heartbeat for longer than usual, whether or not they are Unknown yet",
    ),
    gauge(QUEUED, ZONE, "Nodes that wait in the zone's queue for their NoExecute taint"),
    gauge(RATE, ZONE, "Nodes of the zone that may be tainted NoExecute per second, as its state is now"),
    gauge(
        PREDICTED,
        &["within"],
        "Pods whose eviction begins within 1m, 5m or 10m, if nothing changes; absent while predictions cannot be made",
    ),
    gauge(
        BY_KUBELETS,
        &[],
        "Pods that kubelets evict at most because their nodes are under pressure, now or if nothing changes; absent while none is known and a node under pressure is not measured",
    ),
    gauge(
        UNMEASURED,
        &[],
        "Nodes under pressure of which it is not known whether their kubelets evict pods, because their usage could not be read (with --enforce, kubelets are not asked)",
    ),
    gauge(NEXT, &[], "Seconds until the next eviction, if nothing changes; absent if none is predicted"),
    gauge(
        OUTCOMES,
        &["outcome"],
        "Pods to be evicted by what becomes of them (docs/outcomes.md); absent while that is not known (with --enforce, workloads are not watched)",
    ),
    gauge(
        NOWHERE,
        &["when"],
        "Pods that have nowhere to run (docs/outcomes.md) now, and how many more will (predicted); absent while that is not known (with --enforce, workloads are not watched)",
    ),
    gauge(
        SHORT,
        &["loss"],
        "Most pods that stay Pending if any single node, or zone, is lost; absent while that is not known",
    ),
    gauge(
        STRANDED,
        &["loss"],
        "Pods that have nowhere to run if the worst single node, or zone, is lost: stuck, Pending or lost; absent while that is not known",
    ),
    gauge(
        CONTRADICTED,
        &["flag"],
        "1 for each flag of kube-controller-manager with which what it does does not fit; only of a shadow",
    ),
    counter(
        JUDGED,
        &["result"],
        "Events of nodes and pods that were predicted, missed, could not be predicted, or not be compared",
    ),
    gauge(WATCH_UP, &["kind"], "Whether the watch of this kind is live"),
    gauge(WATCH_AGE, &["kind"], "Seconds since the watch of this kind last received anything"),
    counter(RELISTS, &["kind"], "Lists of this kind after the first"),
    counter(REQUESTS, &["kind"], "Requests for this kind"),
    counter(BYTES, &["kind"], "Bytes received for this kind"),
    counter(
        WRITES,
        &["effect", "outcome"],
        "Effects that were decided, by what became of them: recorded (not written), done, conflict, gone or failed",
    ),
    gauge(
        HELD,
        ZONE,
        "Evictions that wait for --max-evictions-per-minute, or for pods to be known as they are now",
    ),
    counter(
        OVERRUNS,
        &[],
        "How often a zone reached --max-evictions-per-minute while further evictions waited",
    ),
    gauge(CLOCK, &[], "The API server's clock minus that of this machine"),
    gauge(BUILD, &["version"], "1, with the version of kordon"),
];

/// State from which `/metrics` is written.
#[derive(Clone, Copy, Debug)]
pub struct MetricsView<'a> {
    pub model: &'a Model,
    pub passes: &'a PassDurations,
    /// Options and state of this process's own leader election; none without --enforce.
    pub lease: Option<(&'a ElectionOptions, &'a LeaseState)>,
    /// Whether this process may hold the Lease of its own leader election; none without --enforce.
    pub may_lead: Option<&'a MayLead>,
    pub now: Timestamp,
}

impl MetricsView<'_> {
    /// Returns the text of `/metrics`.
    pub fn exposition(&self) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self.samples()));
        let mut text = String::new();
        // Writing to a `String` cannot fail.
        let _ = text::encode(&mut text, &registry);
        text
    }

    fn samples(&self) -> Samples {
        let mut samples = Samples::default();
        self.controllers(&mut samples);
        self.predictions(&mut samples);
        self.watches(&mut samples);
        self.this_process(&mut samples);
        samples
    }

    /// Adds the samples about the controllers. Most of these metrics also exist in kube-controller-manager.
    fn controllers(&self, samples: &mut Samples) {
        let Self { model, passes, .. } = self;
        let Some(engine) = &model.engine else { return };
        let metrics = engine.metrics();
        for (zone, values) in &metrics.zones {
            let zone = || vec![("zone", zone.upstream())];
            samples.add(HEALTH, zone(), values.health());
            samples.add(SIZE, zone(), count(values.size));
            samples.add(UNHEALTHY, zone(), count(values.unhealthy));
            samples.count(EVICTIONS, zone(), values.evictions);
        }
        samples.count(DELETIONS, Vec::new(), metrics.pod_deletions);
        let delays = &metrics.pod_deletion_delay;
        samples.buckets(DELETION_DELAY, &Histogram::BOUNDS, &delays.counts, delays.count, delays.sum);
        samples.buckets(PASSES, &PassDurations::BOUNDS, &passes.counts, passes.count, passes.sum);
        for view in engine.zones(self.now) {
            samples.add(QUEUED, zone_labels(&view.key), count(view.queue.len()));
            samples.add(RATE, zone_labels(&view.key), rate(view.rate));
        }
        let mut silent: BTreeMap<ZoneKey, usize> =
            model.cluster.nodes().iter().map(|node| (node.zone(), 0)).collect();
        for node in engine.silent_nodes(&model.cluster, self.now) {
            if let Some(node) = model.cluster.node(&node) {
                *silent.entry(node.zone()).or_default() += 1;
            }
        }
        for (zone, nodes) in &silent {
            samples.add(SILENT, zone_labels(zone), count(*nodes));
        }
        for flag in engine.contradicted_flags() {
            samples.add(CONTRADICTED, vec![("flag", flag.into())], 1.0);
        }
    }

    fn predictions(&self, samples: &mut Samples) {
        let Self { model, now, .. } = self;
        let confidence = model.engine.as_ref().map(|engine| engine.confidence(*now));
        let state = match confidence {
            Some(Confidence::Live) => "live",
            Some(Confidence::Assumed) => "assumed",
            Some(Confidence::NoController { .. }) => "noController",
            Some(Confidence::Disconnected { .. }) | None => "disconnected",
        };
        for known in ["live", "assumed", "disconnected", "noController"] {
            samples.add(CONFIDENCE, vec![("state", known.into())], truth(known == state));
        }
        let total = model.predictions.accuracy().total();
        let results = [
            ("predicted", total.predicted()),
            ("missed", total.missed()),
            ("unforeseeable", total.unforeseeable),
            ("notCompared", total.not_compared),
        ];
        for (result, events) in results {
            samples.count(JUDGED, vec![("result", result.into())], events as u64);
        }
        if confidence.is_some_and(Confidence::allows_predictions) && model.eviction_gaps().is_empty() {
            let times: Vec<Timestamp> =
                model.views.leaving.evictions.values().filter_map(|row| row.state.leaves_at()).collect();
            for (within, span) in [("1m", 60), ("5m", 300), ("10m", 600)] {
                let ends = *now + Span::from_secs(span);
                let pods = times.iter().filter(|at| **at <= ends).count();
                samples.add(PREDICTED, vec![("within", within.into())], count(pods));
            }
            let counts = &model.views.counts;
            for kind in OutcomeKind::ALL.into_iter().filter(|_| counts.working_out == 0) {
                samples.add(OUTCOMES, vec![("outcome", kind.word().into())], count(counts.outcomes.of(kind)));
            }
            if let Some(next) = times.iter().min() {
                samples.add(NEXT, Vec::new(), next.since(*now).or_zero().as_secs_f64());
            }
        }
        if model.eviction_gaps().is_empty() {
            let (pods, unmeasured) = (model.evicted_by_kubelets(), model.unmeasured_under_pressure().len());
            if pods > 0 || unmeasured == 0 {
                samples.add(BY_KUBELETS, Vec::new(), count(pods));
            }
            samples.add(UNMEASURED, Vec::new(), count(unmeasured));
        }
        for (when, pods) in [("now", model.nowhere_now()), ("predicted", model.nowhere_predicted())] {
            if let Some(pods) = pods {
                samples.add(NOWHERE, vec![("when", when.into())], count(pods));
            }
        }
        if let Some((headroom, clause)) = model.known_headroom(*now).known() {
            let Headroom { nodes, zones } = headroom;
            let kinds = [
                ("node", clause.knows_nodes, nodes.most_pending, nodes.most_stranded()),
                ("zone", clause.knows_zones, zones.most_pending, zones.most_stranded()),
            ];
            for (loss, _, pending, stranded) in kinds.into_iter().filter(|(_, is_known, ..)| *is_known) {
                samples.add(SHORT, vec![("loss", loss.into())], count(pending));
                samples.add(STRANDED, vec![("loss", loss.into())], count(stranded));
            }
        }
    }

    fn watches(&self, samples: &mut Samples) {
        for (kind, health) in self.model.feeds.iter().filter(|(_, health)| health.state != FeedState::Off) {
            let labels = || vec![("kind", kind.to_string())];
            samples.add(WATCH_UP, labels(), truth(health.state == FeedState::Live));
            if let Some(heard) = health.last_heard {
                samples.add(WATCH_AGE, labels(), self.now.since(heard).or_zero().as_secs_f64());
            }
            samples.count(RELISTS, labels(), health.relists.into());
            samples.count(REQUESTS, labels(), health.requests);
            samples.count(BYTES, labels(), health.bytes);
        }
        if let Some(difference) = self.model.feeds.clock_difference {
            samples.add(CLOCK, Vec::new(), difference.as_secs_f64());
        }
    }

    fn this_process(&self, samples: &mut Samples) {
        let Self { model, lease, may_lead, .. } = self;
        let leads = lease.is_some_and(|(_, state)| state.is_held());
        samples.add(
            ENFORCING,
            Vec::new(),
            truth(leads && model.effects.role() == ControllerRole::Controller),
        );
        if let Some((options, _)) = lease {
            samples.add(MASTER, vec![("name", options.name.clone())], truth(leads));
        }
        if let Some(may_lead) = may_lead {
            samples.add(BLOCKED, Vec::new(), truth(!may_lead.is_allowed));
        }
        for ((effect, outcome), number) in model.effects.outcome_counts() {
            let labels = vec![("effect", (*effect).to_owned()), ("outcome", (*outcome).to_owned())];
            samples.count(WRITES, labels, *number);
        }
        let zones: BTreeSet<ZoneKey> = model.cluster.nodes().iter().map(|node| node.zone()).collect();
        let held = model.effects.held().waiting(&model.cluster);
        for zone in zones {
            samples.add(HELD, zone_labels(&zone), count(held.get(&zone).copied().unwrap_or(0)));
        }
        samples.count(OVERRUNS, Vec::new(), model.effects.held().overruns());
        samples.add(BUILD, vec![("version", env!("CARGO_PKG_VERSION").into())], 1.0);
    }
}

/// Returns the health checks on which readiness depends, each with its name. A failed check has a reason.
pub fn watch_checks(model: &Model) -> Vec<(String, Result<(), String>)> {
    use kordon_core::cluster::FeedKind;
    let check = |kind: FeedKind| {
        let state = match model.cluster.known(kind) {
            Known::Live => Ok(()),
            _ => Err(model.feeds.state(kind).map_or("connecting", FeedState::as_str).to_owned()),
        };
        (format!("watch-{kind}"), state)
    };
    [FeedKind::Nodes, FeedKind::Leases, FeedKind::Pods].map(check).into()
}

type Labels = Vec<(&'static str, String)>;

#[derive(Debug)]
enum Value {
    Count(u64),
    Number(f64),
    Buckets { sum: f64, count: u64, buckets: Vec<(f64, u64)> },
}

impl Value {
    fn encode(&self, encoder: &mut MetricEncoder<'_>) -> Result<(), std::fmt::Error> {
        match self {
            Self::Count(number) => encoder.encode_counter::<NoLabelSet, _, u64>(number, None),
            Self::Number(number) => encoder.encode_gauge(number),
            Self::Buckets { sum, count, buckets } => {
                encoder.encode_histogram::<NoLabelSet>(*sum, *count, buckets, None)
            }
        }
    }
}

/// The samples of one scrape, grouped by metric.
#[derive(Debug, Default)]
struct Samples(BTreeMap<&'static str, Vec<(Labels, Value)>>);

impl Samples {
    fn add(&mut self, name: &'static str, labels: Labels, number: f64) {
        self.0.entry(name).or_default().push((labels, Value::Number(number)));
    }

    fn count(&mut self, name: &'static str, labels: Labels, number: u64) {
        self.0.entry(name).or_default().push((labels, Value::Count(number)));
    }

    /// Adds a histogram. Each of the `counts` is the number in one bucket, not the cumulative number.
    fn buckets(&mut self, name: &'static str, bounds: &[f64], counts: &[u64], count: u64, sum: f64) {
        let beyond = count - counts.iter().sum::<u64>().min(count);
        let bounded = bounds.iter().copied().zip(counts.iter().copied());
        let buckets = bounded.chain([(f64::INFINITY, beyond)]).collect();
        self.0.entry(name).or_default().push((Vec::new(), Value::Buckets { sum, count, buckets }));
    }
}

impl Collector for Samples {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        for metric in METRICS {
            let Some(samples) = self.0.get(metric.name) else { continue };
            let kind = match metric.kind {
                MetricKind::Counter => MetricType::Counter,
                MetricKind::Gauge => MetricType::Gauge,
                MetricKind::Histogram => MetricType::Histogram,
            };
            let mut encoder = encoder.encode_descriptor(metric.name, metric.help, None, kind)?;
            for (labels, value) in samples {
                if labels.is_empty() {
                    value.encode(&mut encoder)?;
                } else {
                    value.encode(&mut encoder.encode_family(labels)?)?;
                }
            }
        }
        Ok(())
    }
}

fn zone_labels(zone: &ZoneKey) -> Labels {
    vec![("region", zone.region.to_string()), ("zone", zone.zone.to_string())]
}

#[expect(clippy::cast_precision_loss, reason = "clusters have far fewer than 2^52 objects")]
fn count(number: usize) -> f64 {
    number as f64
}

/// Converts a rate to its shortest decimal: 0.1 instead of the exact value of the nearest `f32`.
fn rate(rate: f32) -> f64 {
    rate.to_string().parse().unwrap_or_else(|_| f64::from(rate))
}

const fn truth(is_so: bool) -> f64 {
    if is_so { 1.0 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the table of metrics in `docs/reference/metrics.md`.
    fn table() -> String {
        let row = |metric: &Metric| {
            let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
            let (name, kind) = (metric.sample_name(), metric.kind.as_str());
            format!("| `{name}` | {kind} | {} | {} |\n", labels.join(", "), metric.help)
        };
        let rows: String = METRICS.iter().map(row).collect();
        format!("| Metric | Kind | Labels | Meaning |\n| --- | --- | --- | --- |\n{rows}")
    }

    #[test]
    fn the_page_on_metrics_has_every_metric() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/metrics.md");
        let page = std::fs::read_to_string(&path).expect("a page");
        let starts = page.find("| Metric |").expect("a table");
        let ends = page[starts..].find("\n\n").map_or(page.len(), |end| starts + end + 1);
        if std::env::var("UPDATE").is_ok() {
            let page = format!("{}{}{}", &page[..starts], table(), &page[ends..]);
            std::fs::write(&path, page).expect("written");
        } else {
            assert_eq!(&page[starts..ends], table(), "UPDATE=1 writes it again");
        }
    }

    #[test]
    fn every_metric_in_an_alert_exists_and_every_alert_is_whole() {
        let page = include_str!("../../../docs/alerts.md");
        let rules = page.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("rules");
        let rules: serde_json::Value = serde_saphyr::from_str(rules).expect("YAML");
        let rules: Vec<&serde_json::Value> = rules["groups"]
            .as_array()
            .expect("groups")
            .iter()
            .flat_map(|group| group["rules"].as_array().expect("rules"))
            .collect();
        assert!(rules.len() > 5);
        let suffixes = ["", "_bucket", "_sum", "_count"];
        let known: BTreeSet<String> = METRICS
            .iter()
            .flat_map(|metric| {
                let ends = if metric.kind == MetricKind::Histogram { &suffixes[1..] } else { &suffixes[..1] };
                ends.iter().map(|end| format!("{}{end}", metric.sample_name()))
            })
            .collect();
        for rule in rules {
            let text = |field: &serde_json::Value| field.as_str().unwrap_or_default().to_owned();
            let expression = text(&rule["expr"]);
            let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
            let words = expression.split(|letter| !is_part(letter));
            let named: Vec<&str> = words
                .filter(|word| {
                    ["kordon_", "node_collector_", "taint_eviction_", "leader_election_"]
                        .iter()
                        .any(|start| word.starts_with(start))
                })
                .collect();
            assert!(!named.is_empty(), "{rule}");
            for name in named {
                assert!(known.contains(name), "{name} is no metric: {expression}");
            }
            for field in
                [&rule["alert"], &rule["for"], &rule["labels"]["severity"], &rule["annotations"]["summary"]]
            {
                assert!(!text(field).is_empty(), "{rule}");
            }
        }
    }
}
