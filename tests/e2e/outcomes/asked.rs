//! Asks kordon what an action would do to the cluster as it is, carries out the action for real, and compares what
//! happens with the answer. Before the next question the action is undone, and all pods are Ready again.

use std::{collections::BTreeMap, fs};

use anyhow::{Context, Result};
use fastrand::Rng;
use kordon_clock::Clock;
use kordon_time::{Span, Timestamp};
use serde_json::Value;

use super::workloads::{NAMESPACE, create_job, device_taint_rule, nodes_with_devices, wait_until_ready};
use crate::{
    common::program::{Shell, path},
    harness::{kubelets::Kubelets, plane::Plane, say},
    kinds::{
        comparison::{self, Happened},
        history::{History, Seen},
    },
};

/// Longest time for which the consequences of one question are observed. A Job replaces its pods after ten minutes at
/// most.
const OBSERVED: Span = Span::from_secs(780);
/// Pods that are created within this time of each other are placed in random order.
const AT_ONCE: Span = Span::from_secs(2);
/// A NoExecute taint that no pod tolerates.
const TAINT: &str = "example.com/now:NoExecute";

/// The action that a question is about. It is carried out after the question.
#[derive(Clone, Debug)]
enum Question {
    Drain(Vec<String>),
    Failure(String),
    Taint(String),
    DeviceTaint(String),
    Deletion(String),
}

/// Asks random questions for this time. Returns each difference between an answer and what happened.
pub async fn ask(
    plane: &Plane,
    kubelets: &Kubelets,
    flags: &[String],
    time: Span,
    random: &mut Rng,
) -> Result<Vec<String>> {
    let clock = Clock::system();
    let ends = clock.now() + time;
    let history = History::start(plane.client());
    let asker = Asker { plane, kubelets, flags, history, clock };
    let (mut questions, mut outcomes, mut differences) = (0, BTreeMap::new(), Vec::new());
    while asker.clock.now() < ends {
        let question = Question::any(kubelets, random);
        let words = format!("{question:?}");
        let (answer, found) = asker.try_one(&question).await.context(words.clone())?;
        questions += 1;
        for pod in comparison::pods(&answer) {
            let outcome = pod["outcome"].as_str().unwrap_or("-");
            let field = if outcome == "unknown" { "outcomeText" } else { "outcome" };
            *outcomes.entry(pod[field].as_str().unwrap_or("-").to_owned()).or_insert(0) += 1;
        }
        say(&format!("    {} {words}: {} differences", asker.clock.now(), found.len()));
        differences.extend(found.into_iter().map(|text| format!("{words}: {text}")));
    }
    say(&format!(
        "e2e_outcomes: {questions} questions, {} differ; outcomes: {outcomes:?}",
        differences.len()
    ));
    Ok(differences)
}

impl Question {
    fn any(kubelets: &Kubelets, random: &mut Rng) -> Self {
        let mut names: Vec<String> = kubelets.names().map(str::to_owned).collect();
        random.shuffle(&mut names);
        let node = names[0].clone();
        match random.u8(0..5) {
            0 => Self::Drain(names.into_iter().take(random.usize(1..=3)).collect()),
            1 => Self::Failure(node),
            2 => Self::Taint(node),
            3 => Self::DeviceTaint(random.choice(nodes_with_devices().collect::<Vec<_>>()).unwrap_or(node)),
            _ => Self::Deletion(node),
        }
    }
}

struct Asker<'a> {
    plane: &'a Plane,
    kubelets: &'a Kubelets,
    /// Flags of kordon: the settings of the controllers, and the connection to the cluster.
    flags: &'a [String],
    history: History,
    clock: Clock,
}

impl Asker<'_> {
    /// Asks a question, carries out the action, and undoes it. Returns the answer, and each difference.
    async fn try_one(&self, question: &Question) -> Result<(Value, Vec<String>)> {
        self.prepare().await?;
        let answer = self.answer(question).await?;
        let since = self.clock.now();
        let is_complete = self.carry_out(question).await?;
        self.history.until_quiet(NAMESPACE, since + comparison::lasts(&answer), since + OBSERVED).await;
        let found = self.differences(question, &answer, since, is_complete);
        if !found.is_empty() {
            let file = self.plane.folder().join(format!("{}.answer", since.to_time()));
            fs::write(file, format!("{answer:#}\n{:#?}\n", self.history.of(NAMESPACE)))?;
        }
        self.undo(question).await?;
        Ok((answer, found))
    }

    /// Waits until all pods run. Recreates the Job, because after many failures its back-off is ten minutes.
    async fn prepare(&self) -> Result<()> {
        self.plane.kubectl(&["delete", "job", "report", "--cascade=foreground"]).await?;
        create_job(&self.plane.client()).await?;
        wait_until_ready(&self.plane.client()).await?;
        // Within a second, the controllers have seen that the pods and nodes are Ready.
        tokio::time::sleep(Span::from_secs(3).to_std()).await;
        Ok(())
    }

    async fn answer(&self, question: &Question) -> Result<Value> {
        let shell = Shell::new();
        let mut words: Vec<String> = match question {
            Question::Drain(nodes) => {
                let mut words = vec!["plan".into(), "drain".into()];
                words.extend(nodes.iter().cloned());
                words.extend(["--ignore-daemonsets".into(), "--placement=wait".into()]);
                words
            }
            Question::Failure(node) => vec!["plan".into(), "node-failure".into(), node.clone()],
            Question::Taint(node) => {
                let words = ["plan", "taint", "nodes", node, TAINT, "--placement=wait"];
                words.map(str::to_owned).to_vec()
            }
            Question::DeviceTaint(node) => {
                let rule = shell.file("rule.json", &device_taint_rule(node).to_string());
                vec!["forecast".into(), "--with".into(), rule]
            }
            Question::Deletion(node) => {
                ["plan", "delete", "node", node, "--placement=wait"].map(str::to_owned).to_vec()
            }
        };
        words.extend(["-o".into(), "json".into()]);
        words.extend(self.flags.iter().cloned());
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = shell.run(&words).await;
        serde_json::from_str(&output.out)
            .with_context(|| format!("exit code {}\n{}{}", output.code, output.out, output.err))
    }

    /// Carries out for real what the question asks about. Returns whether everything succeeded; only a drain may fail.
    async fn carry_out(&self, question: &Question) -> Result<bool> {
        let kubectl = async |words: &[&str]| self.plane.kubectl(words).await;
        match question {
            Question::Drain(nodes) => {
                let mut words = vec!["drain", "--ignore-daemonsets", "--timeout=60s"];
                words.extend(nodes.iter().map(String::as_str));
                return Ok(kubectl(&words).await.is_ok());
            }
            Question::Failure(node) => drop(self.kubelets.silence(node).await?),
            Question::Taint(node) => drop(kubectl(&["taint", "nodes", node, TAINT]).await?),
            Question::DeviceTaint(node) => {
                let file = self.plane.folder().join("rule.json");
                fs::write(&file, device_taint_rule(node).to_string())?;
                kubectl(&["apply", "-f", path(&file)]).await?;
            }
            Question::Deletion(node) => self.kubelets.remove(node).await?,
        }
        Ok(true)
    }

    async fn undo(&self, question: &Question) -> Result<()> {
        let kubectl = async |words: &[&str]| self.plane.kubectl(words).await.map(drop);
        match question {
            Question::Drain(nodes) => {
                let words: Vec<&str> =
                    ["uncordon"].into_iter().chain(nodes.iter().map(String::as_str)).collect();
                kubectl(&words).await
            }
            Question::Failure(node) => self.kubelets.come_back(node).await,
            Question::Taint(node) => kubectl(&["taint", "nodes", node, &format!("{TAINT}-")]).await,
            Question::DeviceTaint(node) => kubectl(&["delete", "devicetaintrule", node]).await,
            Question::Deletion(node) => self.kubelets.rejoin(node).await,
        }
    }

    fn differences(
        &self,
        question: &Question,
        answer: &Value,
        since: Timestamp,
        is_complete: bool,
    ) -> Vec<String> {
        let pods = self.history.of(NAMESPACE);
        let mut found = Vec::new();
        if let Question::Drain(nodes) = question {
            let is_left = |node: &String| pods.values().any(|seen| seen.is_drained_from(node));
            let is_empty = is_complete && !nodes.iter().any(is_left);
            if (answer["outcome"] == "completes") != is_empty {
                found.push(format!("the plan {}; the nodes were drained: {is_empty}", answer["outcome"]));
            }
        }
        // No Job fails in this test, because its limit of failures is never reached.
        let (failed_jobs, failed_indexes) = (BTreeMap::new(), BTreeMap::new());
        let happened = Happened {
            since,
            names_nodes: true,
            pods: &pods,
            failed_jobs: &failed_jobs,
            failed_indexes: &failed_indexes,
        };
        let differ = comparison::differences(answer, NAMESPACE, &happened);
        let of_nodes =
            comparison::differences(answer, NAMESPACE, &Happened { names_nodes: false, ..happened });
        // If the answer is right apart from the names of nodes, every difference is in the name of a node.
        let (at_once, others): (Vec<String>, Vec<String>) =
            differ.into_iter().partition(|text| of_nodes.is_empty() && is_placed_at_once(text, since, &pods));
        at_once.iter().for_each(|text| say(&format!("    {text}: another was placed at the same time")));
        found.extend(others);
        found
    }
}

/// Whether a pod of another owner was placed on a node that a difference names, at the same time as a pod of this
/// owner. Which of the two is placed first is random.
fn is_placed_at_once(difference: &str, since: Timestamp, pods: &BTreeMap<String, Seen>) -> bool {
    let new = || pods.values().filter(|pod| pod.first_seen >= since);
    let is_of_owner = |pod: &&Seen| {
        pod.owner.as_ref().is_some_and(|(kind, name)| difference.starts_with(&format!("{kind} {name}:")))
    };
    let is_named =
        |pod: &Seen| pod.node.as_ref().is_some_and(|node| difference.contains(&format!("Some(\"{node}\")")));
    new().filter(is_of_owner).any(|own| {
        new().any(|other| {
            let apart = own.first_seen.since(other.first_seen);
            other.owner != own.owner && apart.max(-apart) < AT_ONCE && is_named(other)
        })
    })
}
