//! Counts of pods that are stated about one model: by the header, the panes, the commands and the metrics. They are
//! compared with the numbers of the model's rows, so all of them are equal.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
};

use kordon::{
    cli::{evictions_answer, forecast_answer, status_answer},
    model::{ClusterVerdict, EvictionState, HORIZON, Model},
    run::{controller::metrics::MetricsView, session::PassDurations},
};
use kordon_core::{
    cluster::Key,
    forecast::Lane,
    plan::{OutcomeCounts, OutcomeKind, PodOutcome, environment::has_running_kubelet},
};
use kordon_time::{Span, Timestamp};
use serde_json::Value;

/// Texts by which a pane or the header says that no pod will leave.
pub const DENIALS: [&str; 4] =
    ["none expected", "nothing more is expected", "nothing expected", "no evictions"];

/// What the panes list at the moment of a frame.
pub struct PaneRows {
    pub evictions: Vec<Key>,
    pub pending: Vec<Key>,
    pub lanes: Vec<Lane>,
}

/// Compares stated counts with the rows of a model, and collects those that differ.
pub struct StatedCounts<'a> {
    model: &'a Model,
    now: Timestamp,
    rows: RowCounts,
    verdict: String,
    wrong: Vec<String>,
}

impl<'a> StatedCounts<'a> {
    pub fn new(model: &'a Model, now: Timestamp) -> Self {
        let verdict = ClusterVerdict::new(model, now).text();
        Self { model, now, rows: RowCounts::new(model), verdict, wrong: Vec::new() }
    }

    /// Returns what differs, one text for each count.
    pub fn into_wrong(self) -> Vec<String> {
        self.wrong
    }

    /// Compares the model's counts, the verdict, `kordon status`, `kordon evictions` and the metrics.
    pub fn compare_reports(&mut self) {
        self.compare_model();
        let verdict = self.verdict.clone();
        self.compare_whole_verdict("verdict", &verdict);
        self.compare_status();
        self.compare_metrics();
    }

    fn compare_model(&mut self) {
        let counts = self.model.views.counts;
        let text = format!("{counts:?}");
        self.equal("pods to be evicted", counts.leaving(), self.rows.leaving.len(), &text);
        self.equal("their outcomes", counts.outcomes.by_word(), self.rows.outcomes.by_word(), &text);
        self.equal("outcomes being worked out", counts.working_out, self.rows.working_out, &text);
        self.equal("terminating pods", counts.terminating, self.rows.terminating.len(), &text);
        self.equal("cancelled evictions", counts.cancelled, self.rows.cancelled, &text);
        self.equal("pods that nothing evicts", counts.never, self.rows.never, &text);
        self.equal("those of them that are stuck", counts.never_stuck, self.rows.never_stuck, &text);
        self.equal("evicted and replaced pods", counts.replaced(), self.rows.replaced, &text);
    }

    fn compare_status(&mut self) {
        let (model, now) = (self.model, self.now);
        let status = status_answer(model, now);
        let (verdict, line) = (&status.json["verdict"], status.table.lines().next().unwrap_or_default());
        let whole = self.verdict.clone();
        self.equal("the verdict", verdict["text"].as_str(), Some(&*whole), "kordon status -o json");
        self.compare_whole_verdict("kordon status", line);
        let stated = |field: &str| verdict[field].as_u64().and_then(|pods| usize::try_from(pods).ok());
        self.equal("nowhereNow", stated("nowhereNow"), self.nowhere_now(), line);
        self.equal("nowherePredicted", stated("nowherePredicted"), self.nowhere_predicted(), line);
        let listed = EvictionRows::new(&status.json["evictions"]);
        self.equal(
            "pods to be evicted",
            listed.in_states(&["scheduled", "predicted"]),
            self.rows.leaving.clone(),
            "kordon status -o json",
        );
        self.equal(
            "their outcomes",
            listed.outcomes(&["scheduled", "predicted"]),
            self.rows.outcomes.by_word(),
            "kordon status -o json",
        );
        self.equal(
            "terminating pods",
            listed.in_states(&["terminating"]),
            self.rows.terminating.clone(),
            "kordon status -o json",
        );
        self.equal(
            "pods that nothing evicts",
            listed.in_states(&["never"]).len(),
            self.rows.never,
            "kordon status -o json",
        );
        let in_table = |states: &[&str]| {
            let state = |line: &str| line.split_whitespace().nth(2).map(str::to_owned);
            let states_of = status.table.lines().filter_map(state);
            states_of.filter(|state| states.contains(&&**state)).count()
        };
        for states in [&["scheduled", "predicted"][..], &["terminating"][..], &["never"][..]] {
            let what = format!("rows that are {states:?}");
            self.equal(&what, in_table(states), listed.in_states(states).len(), &status.table);
        }
        let list = evictions_answer(model, now).json;
        self.equal(
            "rows",
            EvictionRows::new(&list["evictions"]).0,
            listed.0.clone(),
            "kordon evictions -o json",
        );
        for (place, json) in [("kordon status -o json", &status.json), ("kordon evictions -o json", &list)] {
            self.equal("pods that kubelets evict", kubelet_pods(json), self.rows.by_kubelets, place);
        }
        self.compare_kubelet_rows(&list);
        let total = list["total"].as_u64().and_then(|pods| usize::try_from(pods).ok());
        self.equal("total", total.unwrap_or(0), listed.0.len(), "kordon evictions -o json");
    }

    /// Compares the rows of pods that kubelets evict with `kordon evictions`. Pods that leave for another reason anyway have
    /// a row about that.
    fn compare_kubelet_rows(&mut self, list: &Value) {
        let model = self.model;
        let kubelets = list["kubeletEvictions"].as_array().into_iter().flatten();
        let pods = kubelets.flat_map(|kubelet| kubelet["pods"].as_array().into_iter().flatten());
        let listed: BTreeMap<String, Option<&str>> =
            pods.map(|pod| (pod_of(pod), pod["outcome"].as_str())).collect();
        let rows = &model.views.leaving.evictions;
        let keys: BTreeSet<String> = rows.keys().map(ToString::to_string).collect();
        let without_row: Vec<&String> = listed.keys().filter(|pod| !keys.contains(*pod)).collect();
        self.equal("pods that kubelets evict without a row", without_row, vec![], "kordon evictions -o json");
        for (key, row) in rows.iter().filter(|(_, row)| matches!(row.state, EvictionState::ByKubelet { .. }))
        {
            let outcome = model.outcome(key, row).map(|outcome| outcome.kind().word());
            let expected = listed.get(&key.to_string()).copied().flatten();
            self.equal(&format!("outcome of {key}"), outcome, expected, "kordon evictions -o json");
        }
    }

    fn compare_metrics(&mut self) {
        let (model, now) = (self.model, self.now);
        let passes = PassDurations::default();
        let view = MetricsView { model, passes: &passes, lease: None, may_lead: None, now };
        let text = view.exposition();
        let allows = model.engine.as_ref().is_some_and(|engine| engine.confidence(now).allows_predictions());
        let is_predicted = allows && model.eviction_gaps().is_empty();
        for (within, seconds) in [("1m", 60), ("5m", 300), ("10m", 600)] {
            let ends = now + Span::from_secs(seconds);
            let times = model.views.leaving.evictions.values().filter_map(|row| row.state.leaves_at());
            let pods = is_predicted.then(|| times.filter(|at| *at <= ends).count());
            self.metric(&text, &format!("kordon_pods_predicted_evicted{{within=\"{within}\"}}"), pods);
        }
        for kind in OutcomeKind::ALL {
            let is_known = is_predicted && self.rows.working_out == 0;
            let pods = is_known.then(|| self.rows.outcomes.of(kind));
            self.metric(
                &text,
                &format!("kordon_pods_predicted_outcome{{outcome=\"{}\"}}", kind.word()),
                pods,
            );
        }
        let (by_kubelets, unmeasured) = (self.rows.by_kubelets, self.rows.unmeasured);
        let is_known = model.eviction_gaps().is_empty();
        let pods = Some(by_kubelets).filter(|pods| is_known && (*pods > 0 || unmeasured == 0));
        self.metric(&text, "kordon_pods_predicted_evicted_by_kubelets", pods);
        self.metric(&text, "kordon_nodes_pressure_unmeasured", is_known.then_some(unmeasured));
        for (when, pods) in [("now", self.nowhere_now()), ("predicted", self.nowhere_predicted())] {
            self.metric(&text, &format!("kordon_pods_nowhere_to_run{{when=\"{when}\"}}"), pods);
        }
    }

    /// Compares the value of a metric. `None` means that the metric is absent.
    fn metric(&mut self, text: &str, name: &str, pods: Option<usize>) {
        let stated = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let expected = pods.map(|pods| format!("{pods}.0"));
        self.equal(name, stated, expected.as_deref(), "/metrics");
    }

    /// Number of pods that have nowhere to run now; `None` if pods are not known.
    fn nowhere_now(&self) -> Option<usize> {
        self.model.eviction_gaps().is_empty().then(|| self.rows.pending + self.rows.hanging_nowhere)
    }

    /// Number of pods that will have nowhere to run; `None` if that is not predicted or not known yet.
    fn nowhere_predicted(&self) -> Option<usize> {
        let views = &self.model.views;
        let is_known =
            views.is_predicted() && self.rows.working_out == 0 && self.model.eviction_gaps().is_empty();
        let others = views.counts.preempted.nowhere() + views.counts.staying.nowhere();
        is_known.then(|| self.rows.outcomes.nowhere() + others)
    }

    /// Compares the totals, steps and outcomes of `kordon forecast` up to the end of the model's forecast.
    pub fn compare_forecast(&mut self) {
        let (model, now) = (self.model, self.now);
        let until = model.predictions.forecast().map_or(now + HORIZON, |forecast| forecast.until);
        let answer = forecast_answer(model, until.since(now), now).expect("the engine has started");
        let (json, text) = (&answer.json, &*answer.table);
        let steps = json["steps"].as_array().into_iter().flatten();
        let deletions: Vec<String> =
            steps.filter(|step| step["type"] == "delete" || step["type"] == "remove").map(pod_of).collect();
        self.equal("pods that kubelets evict", kubelet_pods(json), self.rows.by_kubelets, text);
        let totals = &json["totals"];
        self.equal("deleted", totals["deleted"].as_u64(), Some(deletions.len() as u64), text);
        let first_line = text.lines().next().unwrap_or_default();
        let in_words = count_before(first_line, [" pod deleted", " pods deleted"]);
        self.equal("pods deleted", in_words, Some(deletions.len()), text);
        let rows = model.views.leaving.evictions.iter();
        let leaving: BTreeMap<String, Option<&str>> = rows
            .filter(|(_, row)| row.state.leaves_at().is_some_and(|at| at <= until))
            .map(|(key, row)| (key.to_string(), model.outcome(key, row).map(|outcome| outcome.kind().word())))
            .collect();
        let deleted: BTreeSet<String> =
            deletions.into_iter().filter(|pod| !self.rows.terminating.contains(pod)).collect();
        self.equal("deleted pods", deleted, leaving.keys().cloned().collect(), text);
        let evicted = count_before(text, [" pod is evicted", " pods are evicted"]);
        self.equal("evicted pods", evicted.unwrap_or(0), leaving.len(), text);
        let replacements = json["replacements"].as_array().into_iter().flatten();
        for replacement in replacements {
            let pod = pod_of(replacement);
            if let Some(Some(outcome)) = leaving.get(&pod) {
                let what = format!("outcome of {pod}");
                self.equal(&what, replacement["outcome"].as_str(), Some(*outcome), text);
            }
        }
        let outcomes = totals["outcomes"].as_object().into_iter().flatten();
        let sum: u64 = outcomes.filter_map(|(_, pods)| pods.as_u64()).sum();
        self.equal("sum of the outcomes", sum, totals["pods"].as_u64().unwrap_or(0), text);
    }

    /// Compares a frame: its header, the titles and rows of its panes, and the chart.
    pub fn compare_frame(&mut self, frame: &str, panes: &PaneRows) {
        let header = frame.lines().nth(1).unwrap_or_default();
        self.compare_verdict("header", header);
        self.compare_to_be_evicted(frame);
        self.compare_titles(frame);
        let evictions: BTreeSet<&Key> = panes.evictions.iter().collect();
        let all = self.model.views.leaving.evictions.keys().collect();
        self.equal("rows of Evictions", evictions, all, frame);
        self.equal("rows of Pending", panes.pending.len(), self.rows.pending, frame);
        let chart = frame.split_once("pods gone ").and_then(|(_, after)| leading_number(after));
        self.equal("pods gone", chart.unwrap_or(0), self.rows.leaving.len(), frame);
        if chart.is_some() {
            let pods = panes.lanes.iter().flat_map(|lane| &lane.pods).filter(|pods| pods.at > self.now);
            let pods = pods.flat_map(|pods| pods.pods.iter()).map(ToString::to_string);
            let pods: BTreeSet<String> = pods.filter(|pod| !self.rows.terminating.contains(pod)).collect();
            self.equal("pods of the lanes", pods, self.rows.leaving.clone(), frame);
        }
        for number in counts_of_kubelets(frame) {
            self.equal("pods that kubelets evict", number, self.rows.by_kubelets, frame);
        }
        // No part of the screen says that no pod leaves while another part counts pods that do.
        let leaving = self.rows.leaving.len().max(self.rows.by_kubelets).max(chart.unwrap_or(0));
        for denial in DENIALS.into_iter().filter(|denial| leaving > 0 && frame.contains(denial)) {
            self.wrong.push(format!(
                "{leaving} pods leave, and the frame says {denial:?}\n  verdict: {}\n  frame:\n{frame}",
                self.verdict
            ));
        }
    }

    fn compare_titles(&mut self, frame: &str) {
        let title = frame.lines().find_map(|line| Some(&line[line.find("3 Evictions")?..]));
        let Some(title) = title else {
            return self.wrong.push(format!("no title of Evictions in\n{frame}"));
        };
        let pending = title.split_once("6 Pending ").and_then(|(_, after)| leading_number(after));
        self.equal("title of Pending", pending.unwrap_or(0), self.rows.pending, frame);
        let mut segments = title.split('─').map(str::trim).filter(|segment| !segment.is_empty());
        let facts = segments.nth(1).unwrap_or_default();
        for part in facts.split(" · ") {
            let Some((number, words)) = part.split_once(' ') else { continue };
            let Some(number) = leading_number(number) else { continue };
            let expected = self.rows.of_title(words, self.model.views.counts.preempted.total());
            self.equal(&format!("title of Evictions, {words}"), Some(number), expected, frame);
        }
    }

    fn compare_to_be_evicted(&mut self, text: &str) {
        for number in counts_to_be_evicted(text) {
            self.equal("pods to be evicted", leading_number(number), Some(self.rows.leaving.len()), text);
        }
    }

    /// Compares a verdict that is not shortened: besides its counts, that it names the pods that kubelets evict.
    fn compare_whole_verdict(&mut self, place: &str, text: &str) {
        self.compare_verdict(place, text);
        let names_kubelets = counts_of_kubelets(text).next().is_some();
        let what = format!("{place} names pods that kubelets evict");
        self.equal(&what, names_kubelets, self.rows.by_kubelets > 0, text);
    }

    /// Compares the counts of a verdict, which may be shortened.
    fn compare_verdict(&mut self, place: &str, text: &str) {
        self.compare_to_be_evicted(text);
        for number in counts_of_kubelets(text) {
            self.equal("pods that kubelets evict", number, self.rows.by_kubelets, text);
        }
        for (count, number) in verdict_counts(text) {
            let rows = &self.rows;
            let expected = match count {
                VerdictCount::Nowhere => self.nowhere_now(),
                VerdictCount::WillHaveNowhere => self.nowhere_predicted(),
                VerdictCount::Pending => Some(rows.pending + rows.hanging_pending),
                VerdictCount::Stuck => Some(rows.stuck),
                VerdictCount::Replaced => Some(rows.replaced),
            };
            self.equal(&format!("{place}, {count:?}"), Some(number), expected, text);
        }
    }

    fn equal<T: PartialEq + Debug>(&mut self, what: &str, stated: T, expected: T, text: &str) {
        if stated != expected {
            self.wrong.push(format!(
                "{what}: stated {stated:?}, expected {expected:?}\n  verdict: {}\n  stated in:\n{text}",
                self.verdict
            ));
        }
    }
}

/// Numbers of a model's rows, and of its pods without a node.
#[derive(Default)]
struct RowCounts {
    leaving: BTreeSet<String>,
    /// Outcomes of the leaving pods.
    outcomes: OutcomeCounts,
    /// Number of leaving pods without an outcome.
    working_out: usize,
    terminating: BTreeSet<String>,
    cancelled: usize,
    never: usize,
    never_stuck: usize,
    pending: usize,
    /// Numbers of pods on nodes whose kubelet is down that are terminating or never evicted.
    stuck: usize,
    hanging_nowhere: usize,
    hanging_pending: usize,
    replaced: usize,
    by_kubelets: usize,
    /// Number of nodes under pressure whose kubelets were not measured.
    unmeasured: usize,
}

impl RowCounts {
    fn new(model: &Model) -> Self {
        let mut counts = Self {
            pending: model.cluster.unscheduled_count(),
            by_kubelets: model.evicting_kubelets().map(|(_, eviction)| eviction.pods).sum(),
            unmeasured: model.unmeasured_under_pressure().len(),
            ..Self::default()
        };
        for (key, row) in &model.views.leaving.evictions {
            let outcome = model.outcome(key, row);
            let outcome = outcome.as_deref();
            match row.state {
                EvictionState::Scheduled { .. } | EvictionState::Predicted { .. } => {
                    counts.leaving.insert(key.to_string());
                    match outcome {
                        Some(outcome) => counts.outcomes.count(outcome.kind()),
                        None => counts.working_out += 1,
                    }
                }
                EvictionState::Terminating { kubelet_silent, .. } => {
                    counts.terminating.insert(key.to_string());
                    outcome.filter(|_| kubelet_silent).into_iter().for_each(|outcome| counts.hangs(outcome));
                }
                EvictionState::ByKubelet { .. } => {}
                EvictionState::Cancelled { .. } => counts.cancelled += 1,
                EvictionState::Never => {
                    counts.never += 1;
                    let lives = model.cluster.pod(key).is_some_and(|pod| pod.lives());
                    let stuck = outcome.filter(|outcome| lives && outcome.kind() == OutcomeKind::Stuck);
                    counts.never_stuck += usize::from(stuck.is_some());
                    let is_down = !has_running_kubelet(&model.cluster, &row.node);
                    stuck.filter(|_| is_down).into_iter().for_each(|outcome| counts.hangs(outcome));
                }
            }
        }
        counts
    }

    fn hangs(&mut self, outcome: &PodOutcome) {
        let kind = outcome.kind();
        self.hanging_nowhere += usize::from(kind.has_nowhere_to_run());
        self.hanging_pending += usize::from(kind == OutcomeKind::Pending);
        self.stuck += usize::from(kind == OutcomeKind::Stuck);
        self.replaced += usize::from(matches!(outcome, PodOutcome::Replaced { is_pending: false, .. }));
    }

    /// Returns the number that the title of Evictions should have before these words; `None` for unknown words.
    fn of_title(&self, words: &str, preempted: usize) -> Option<usize> {
        let known = [
            ("to be evicted", self.leaving.len()),
            ("being worked out", self.working_out),
            ("at most by kubelets", self.by_kubelets),
            ("kubelet not measured", self.unmeasured),
            ("kubelets not measured", self.unmeasured),
            ("preempted for them", preempted),
            ("terminating", self.terminating.len()),
            ("cancelled", self.cancelled),
            ("stuck, not evicted", self.never_stuck),
            ("stay", self.never - self.never_stuck),
        ];
        let of_kind =
            |kind: OutcomeKind| <[&str; 2]>::from(kind.words()).map(|words| (words, self.outcomes.of(kind)));
        let mut all = known.into_iter().chain(OutcomeKind::ALL.into_iter().flat_map(of_kind));
        let is_meant = |known: &str| match words.strip_suffix('…') {
            Some(start) => known.starts_with(start),
            None => known == words,
        };
        all.find(|(known, _)| is_meant(known)).map(|(_, number)| number)
    }
}

/// State and outcome of each pod in a list of evictions in JSON.
struct EvictionRows(BTreeMap<String, (String, Option<String>)>);

impl EvictionRows {
    fn new(evictions: &Value) -> Self {
        let rows = evictions.as_array().into_iter().flatten();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let row = |row: &Value| (text(&row["state"]).unwrap_or_default(), text(&row["outcome"]));
        Self(rows.map(|eviction| (pod_of(eviction), row(eviction))).collect())
    }

    fn in_states(&self, states: &[&str]) -> BTreeSet<String> {
        let rows = self.0.iter().filter(|(_, (state, _))| states.contains(&&**state));
        rows.map(|(pod, _)| pod.clone()).collect()
    }

    /// Numbers of pods in these states by outcome.
    fn outcomes(&self, states: &[&str]) -> BTreeMap<&str, usize> {
        let mut outcomes = BTreeMap::new();
        for (state, outcome) in self.0.values() {
            if let Some(outcome) = outcome.as_deref().filter(|_| states.contains(&&**state)) {
                *outcomes.entry(outcome).or_default() += 1;
            }
        }
        outcomes
    }
}

fn pod_of(row: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{}/{}", text(&row["namespace"]), text(&row["pod"]))
}

/// Returns the number of pods that kubelets evict, as an answer in JSON lists them.
fn kubelet_pods(answer: &Value) -> usize {
    let kubelets = answer["kubeletEvictions"].as_array().into_iter().flatten();
    kubelets.filter_map(|kubelet| Some(kubelet["pods"].as_array()?.len())).sum()
}

/// A count of pods in a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VerdictCount {
    Nowhere,
    WillHaveNowhere,
    /// Pods without a node, and replacements without one.
    Pending,
    Stuck,
    /// Pods that are already evicted and replaced.
    Replaced,
}

/// Returns the counts of pods in a verdict, except those of pods to be evicted. A sum is returned once as it is stated,
/// and once as the sum of its parts.
fn verdict_counts(text: &str) -> Vec<(VerdictCount, usize)> {
    text.split(" · ").flat_map(part_counts).collect()
}

fn part_counts(part: &str) -> Vec<(VerdictCount, usize)> {
    let part = part.trim_start_matches(|letter: char| !letter.is_alphanumeric());
    let (of_node, part) = match part.split_once(": ") {
        Some((node, rest)) if leading_number(node).is_none() => (node, rest),
        _ => ("", part),
    };
    let Some(number) = leading_number(part).filter(|_| !of_node.starts_with("N-1")) else {
        return Vec::new();
    };
    if part.contains("already evicted and replaced") {
        return vec![(VerdictCount::Replaced, number)];
    }
    let (sums, list) = match part.split_once(" nowhere to run") {
        Some((_, list)) => (Some(number), list.split_once(": ").map_or("", |(_, list)| list)),
        None => (None, part.split(": ").next().unwrap_or_default()),
    };
    let list = &with_soon(list);
    let is_future = ["will have", "will be", "will fail"].iter().any(|words| part.contains(words));
    let are_all_future =
        is_future || list.ends_with(" soon") && !list.contains(" more ") && !is_sum_soon(list);
    let whole = if are_all_future { VerdictCount::WillHaveNowhere } else { VerdictCount::Nowhere };
    let mut counts: Vec<_> = sums.map(|pods| (whole, pods)).into_iter().collect();
    let mut sum = 0;
    for clause in without_parentheses(list).split(", ") {
        let Some((pods, words)) = leading_number(clause).zip(clause.split_once(' ').map(|(_, words)| words))
        else {
            continue;
        };
        let has = |outcomes: &[&str]| words.split(' ').any(|word| outcomes.contains(&word));
        if !are_all_future && (words.starts_with("more ") || words.trim_end() == "soon") {
            counts.push((VerdictCount::WillHaveNowhere, pods));
        } else if has(&["Pending", "stuck", "lost", "fail", "fails", "stranded"]) {
            sum += pods;
            let kind = [("Pending", VerdictCount::Pending), ("stuck", VerdictCount::Stuck)];
            let kind = kind.into_iter().find(|(word, _)| has(&[word]) && !are_all_future);
            counts.extend(kind.map(|(_, kind)| (kind, pods)));
        } else if sums.is_none() {
            return Vec::new();
        }
    }
    // What stuck pods wait for is stated beside the sum, of which they are a part.
    let is_remedy = part.contains(" until ");
    counts.extend((sum > 0 && !is_remedy).then_some((whole, sum)));
    counts
}

/// Replaces the times of future outcomes by `soon`: `2 stuck, 1 more lost in 6s`, `2 stuck, 3 more, first in 6s`.
fn with_soon(list: &str) -> String {
    let is_time = |text: &str| text.starts_with(|letter: char| letter.is_ascii_digit() || letter == '~');
    let mut clauses: Vec<String> = Vec::new();
    for clause in list.split(", ") {
        match (clauses.last_mut(), clause.rsplit_once(" in ")) {
            (Some(before), _) if clause.starts_with("first ") => before.push_str(" soon"),
            (_, Some((pods, time))) if is_time(time) => clauses.push(format!("{pods} soon")),
            _ => clauses.push(clause.to_owned()),
        }
    }
    clauses.join(", ")
}

/// Whether the last of several clauses is the sum of pods that will have nowhere to run: `6 pods Pending, 4 soon`.
fn is_sum_soon(list: &str) -> bool {
    list.rsplit_once(", ").is_some_and(|(_, last)| last.split(' ').count() == 2)
}

fn without_parentheses(text: &str) -> String {
    let parts = text.split('(').enumerate();
    parts
        .map(
            |(place, part)| if place == 0 { part } else { part.split_once(')').map_or("", |(_, rest)| rest) },
        )
        .collect()
}

/// Returns all counts of pods to be evicted in a text, except counts for single nodes: `44 to be evicted`, `44 pods to
/// be evicted`, `all nodes: 44, next in 12s`.
pub fn counts_to_be_evicted(text: &str) -> impl Iterator<Item = &str> {
    let before = text.match_indices(" to be evicted").map(|(place, _)| &text[..place]);
    // A count for a node ends with `of` and its name.
    let of_all = before.filter(|before| before.rsplit(' ').nth(1) != Some("of"));
    let without_unit = of_all.map(|before| before.trim_end_matches(" pods").trim_end_matches(" pod"));
    let all_nodes = text.split("all nodes: ").skip(1);
    let beside_one = all_nodes.filter_map(|after| {
        let (number, rest) = after.split_at(after.find([',', ' '])?);
        [", first", ", next", " within"].iter().any(|start| rest.starts_with(start)).then_some(number)
    });
    without_unit.filter_map(|before| before.rsplit([' ', '│']).next()).chain(beside_one)
}

/// Returns the numbers of pods that kubelets evict: `kubelet of n-3 evicts up to 3 pods`.
fn counts_of_kubelets(text: &str) -> impl Iterator<Item = usize> {
    ["evicts up to ", "evict up to "]
        .into_iter()
        .flat_map(move |words| text.split(words).skip(1))
        .filter_map(leading_number)
}

/// Returns the first number that is right before one of these phrases.
fn count_before(text: &str, phrases: [&str; 2]) -> Option<usize> {
    let mut places = phrases.into_iter().flat_map(|phrase| text.match_indices(phrase));
    places.find_map(|(place, _)| leading_number(text[..place].rsplit([' ', '\n']).next()?))
}

/// Returns the number at the start of a text, which may have separators: `1,234`.
fn leading_number(text: &str) -> Option<usize> {
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != ',').unwrap_or(text.len());
    text[..end].replace(',', "").parse().ok()
}

#[test]
fn counts_are_read_out_of_verdicts() {
    use VerdictCount::{Nowhere, Pending, Replaced, Stuck, WillHaveNowhere};
    let zone = "✖ zone b down (8 of 8) · 5 pods stuck on dead nodes, 5 more, first in 3m16s · 37 pods to be evicted, next in 6s";
    assert_eq!(verdict_counts(zone), [(Stuck, 5), (WillHaveNowhere, 5), (Nowhere, 5)]);
    assert_eq!(counts_to_be_evicted(zone).collect::<Vec<_>>(), ["37"]);
    let departures = "2 of 23 nodes Evicting · 9 pods have nowhere to run: 6 Pending 43s, 2 stuck, 1 lost, 3 more (1 lost, 2 stuck), first in 11s";
    let expected = [(Nowhere, 9), (Pending, 6), (Stuck, 2), (WillHaveNowhere, 3), (Nowhere, 9)];
    assert_eq!(verdict_counts(departures), expected);
    for (text, pods) in [
        ("all nodes: 2 pods stuck soon", 2),
        ("general-1a-01 Silent: 1 pod will be lost in 56s", 1),
        ("n1: 1 pod lost in ~56s", 1),
        ("7 pods stuck soon", 7),
        ("1 pod Pending, 1 stuck soon", 2),
        ("3 pods stranded soon", 3),
    ] {
        assert_eq!(verdict_counts(text), [(WillHaveNowhere, pods)], "{text}");
    }
    let future = "2 pods will have nowhere to run within 10m, first in 6s: 1 Pending, 1 stuck";
    assert_eq!(verdict_counts(future), [(WillHaveNowhere, 2); 2]);
    for short in ["6 pods Pending, 5 stuck, 4 soon", "6 pods Pending, 5 stuck, 4 more lost in 5s to 8s"] {
        assert_eq!(verdict_counts(short), [(Pending, 6), (Stuck, 5), (WillHaveNowhere, 4), (Nowhere, 11)]);
    }
    let pending = "▲ 10 pods Pending 2m00s: web 8, api 2 · no node has 1.5 CPU free";
    assert_eq!(verdict_counts(pending), [(Pending, 10), (Nowhere, 10)]);
    let stuck = "4 pods stuck on a dead node until it is back or deleted · 3 others already evicted and replaced · N-1: losing a strands 5 pods";
    assert_eq!(verdict_counts(stuck), [(Stuck, 4), (Replaced, 3)]);
    let pressure = "kubelet of general-1a-01 evicts up to 3 pods (MemoryPressure), first in 30s";
    assert_eq!((verdict_counts(pressure), counts_of_kubelets(pressure).collect()), (vec![], vec![3]));
    let forecast = "within 10m: 0 Unknown, 1 tainted NoExecute, 1,204 pods deleted; confidence: live\n9 pods are evicted: 9 move";
    assert_eq!(count_before(forecast, [" pod deleted", " pods deleted"]), Some(1204));
    assert_eq!(count_before(forecast, [" pod is evicted", " pods are evicted"]), Some(9));
}
