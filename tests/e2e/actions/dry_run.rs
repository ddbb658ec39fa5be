//! In dry-run nothing is written: random commands, and random keys typed into the dashboard under a terminal, judged by
//! the API server's audit log and by the objects themselves.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use crossterm::event::KeyCode;
use k8s_openapi::api::core::v1::Pod;
use kordon::{
    app::{
        UserAction,
        commands::{COMMANDS, Chord},
    },
    time::Span,
};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use super::site::{PLANNER, Site, Size, inhabited, is_eviction, may_drain, nodes, number, pods, set_budget};
use crate::{
    common::terminal::Terminal,
    harness::{plane::Plane, say},
};

/// Nobody may be taken for dead while builds and other tests want the machine too.
const SIZE: Size = Size { grace: Span::from_secs(120), ..Size::SMALL };

/// How long it goes on, unless `KORDON_RUN` says.
const SHORT: Duration = Duration::from_secs(40);

/// How long one dashboard lives; then another is started.
const SITTING: Duration = Duration::from_secs(60);

pub async fn dry_runs_leave_no_trace(plane: &mut Plane) -> Result<()> {
    let _kubelets = inhabited(plane, &SIZE).await?;
    plane.grant(PLANNER, &may_drain()).await?;
    let site = Site::new(plane.kubeconfig(PLANNER)?);
    let seed = number("KORDON_SEED", 1);
    let lasts = match std::env::var("KORDON_RUN") {
        Ok(text) => humantime::parse_duration(&text).context("KORDON_RUN")?,
        Err(_) => SHORT,
    };
    let client = plane.client();
    let before = Picture::of(&client).await?;
    let over = AtomicBool::new(false);
    let typist = Typist::new(&site, seed);
    let (commands, typed) = std::thread::scope(|scope| {
        let typing = scope.spawn(|| typist.types_until(&over));
        let giving = tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(give_commands(&site, &client, seed, lasts))
        });
        over.store(true, Ordering::Relaxed);
        (giving, typing.join().expect("the typist does not panic"))
    });
    let (commands, typed) = (commands?, typed?);

    let lines = plane.audit_of(PLANNER)?;
    ensure!(lines.len() > 20, "the audit log has only {} requests of ours", lines.len());
    let wrote: Vec<String> = lines.iter().filter(|line| is_mutation(line)).map(ToString::to_string).collect();
    ensure!(wrote.is_empty(), "seed {seed}: {wrote:#?}");
    let dry = |line: &&Value| is_write(line) && !is_review(line);
    let dry_runs = lines.iter().filter(dry).count();
    ensure!(dry_runs > 0, "the server was asked about no write");
    let after = Picture::of(&client).await?;
    ensure!(before == after, "seed {seed}: was {before:#?}, is {after:#?}");
    say(&format!(
        "e2e_actions: {lasts:?}: {} commands, {} keys in {} dashboards; {} requests of ours, {dry_runs} of them dry runs, \
         none of which writes",
        commands.values().sum::<usize>(),
        typed.keys,
        typed.sittings,
        lines.len(),
    ));
    let counted: Vec<String> = commands.iter().map(|(code, count)| format!("{count} with {code}")).collect();
    say(&format!("e2e_actions: commands by exit code: {}", counted.join(", ")));
    Ok(())
}

/// Gives commands one after the other, under a budget that now has room and now has none; how many ended with which code.
async fn give_commands(
    site: &Site,
    client: &Client,
    seed: u64,
    lasts: Duration,
) -> Result<BTreeMap<i32, usize>> {
    let mut chance = fastrand::Rng::with_seed(seed);
    let mut codes = BTreeMap::new();
    let giving = async {
        loop {
            if chance.u8(..8) == 0 {
                let least = if chance.bool() { json!("100%") } else { json!(SIZE.web - 1) };
                set_budget(client, "web", least).await?;
            }
            let line = random_command(&mut chance);
            let line: Vec<&str> = line.iter().map(String::as_str).collect();
            let output = site.run(&line).await;
            ensure!([0, 5, 6, 7].contains(&output.code), "{line:?}: {} {}", output.code, output.err);
            *codes.entry(output.code).or_default() += 1;
        }
    };
    // What is cut off at the end is killed; that writes nothing either.
    match tokio::time::timeout(lasts, giving).await {
        Ok(ended) => ended,
        Err(_) => Ok(codes),
    }
}

fn random_command(chance: &mut fastrand::Rng) -> Vec<String> {
    const NODES: [&str; 6] = ["a1", "a2", "b1", "b2", "c1", "c2"];
    let node = NODES[chance.usize(..NODES.len())];
    let line: &[&str] = match chance.usize(..12) {
        0 => &["drain", node, "--force", "--timeout=30s"],
        1 => &["drain", "a1", "b1", "c2", "--parallel=2"],
        2 => &["drain", node, "--disable-eviction", "--grace-period=0"],
        3 => &["cordon", node],
        4 => &["uncordon", node],
        5 => &["taint", "nodes", node, "k=v:NoExecute"],
        6 => &["label", "nodes", node, "team=blue"],
        7 => &["evict", "-l", "app=web", "-n", "default"],
        8 => &["delete", "-l", "app=db", "-n", "default", "--force"],
        9 => &["status"],
        10 => &["why", "node", node],
        _ => &["forecast"],
    };
    let plans = !matches!(line[0], "status" | "why" | "forecast");
    let mut line: Vec<String> = line.iter().map(|word| (*word).to_owned()).collect();
    if plans && chance.bool() {
        line.insert(0, "plan".into());
    }
    if plans && chance.bool() {
        line.push("--validate".into());
    }
    line
}

/// Types into dashboards.
struct Typist<'a> {
    site: &'a Site,
    seed: u64,
}

struct Typed {
    keys: usize,
    sittings: usize,
}

impl<'a> Typist<'a> {
    fn new(site: &'a Site, seed: u64) -> Self {
        Self { site, seed }
    }

    /// Types keys of the command table, and words where some are asked for, until it is over.
    fn types_until(&self, over: &AtomicBool) -> Result<Typed> {
        let mut chance = fastrand::Rng::with_seed(self.seed);
        let mut typed = Typed { keys: 0, sittings: 0 };
        while !over.load(Ordering::Relaxed) {
            let command = self.site.shell.under_terminal(&["--kubeconfig", &self.site.kubeconfig]);
            let mut terminal = Terminal::with(command);
            terminal.resize(48, 160);
            terminal.wait("6 ready");
            typed.sittings += 1;
            let sitting = tokio::time::Instant::now();
            while sitting.elapsed() < SITTING && !over.load(Ordering::Relaxed) {
                if let Some(status) = terminal.child.try_wait()? {
                    ensure!(
                        status.success(),
                        "the dashboard ended with {status:?}: {}",
                        last(&terminal.raw())
                    );
                    break;
                }
                terminal.type_in(&random_input(&mut chance));
                typed.keys += 1;
                #[expect(clippy::disallowed_methods, reason = "whoever types has a thread to himself")]
                std::thread::sleep(Duration::from_millis(chance.u64(5..120)));
            }
            // It may have ended by itself meanwhile.
            let _ = terminal.child.kill();
            terminal.end();
            ensure!(!terminal.raw().contains("panicked at"), "{}", last(&terminal.raw()));
        }
        Ok(typed)
    }
}

/// A key that means something, or words as they are typed into filters, taints and labels.
fn random_input(chance: &mut fastrand::Rng) -> String {
    const WORDS: [&str; 6] =
        ["k=v:NoExecute", "dedicated=x:NoSchedule", "team=blue", "team-", "zone:a", "web"];
    if chance.u8(..8) == 0 {
        return WORDS[chance.usize(..WORDS.len())].into();
    }
    let command = &COMMANDS[chance.usize(..COMMANDS.len())];
    // Leaving is tried too, but not every few seconds.
    let leaves = matches!(command.action, UserAction::Quit | UserAction::Suspend);
    if command.keys.is_empty() || leaves && chance.u8(..10) > 0 {
        return "\r".into();
    }
    bytes(command.keys[chance.usize(..command.keys.len())])
}

/// What a terminal sends for a key.
fn bytes(chord: Chord) -> String {
    match chord.code {
        KeyCode::Char(letter) if chord.ctrl => char::from(letter as u8 & 0x1f).to_string(),
        KeyCode::Char(letter) => letter.to_string(),
        KeyCode::Enter => "\r".into(),
        KeyCode::Esc => "\x1b".into(),
        KeyCode::Tab => "\t".into(),
        KeyCode::BackTab => "\x1b[Z".into(),
        KeyCode::Backspace => "\x7f".into(),
        KeyCode::Delete => "\x1b[3~".into(),
        KeyCode::Up => "\x1b[A".into(),
        KeyCode::Down => "\x1b[B".into(),
        KeyCode::Right => "\x1b[C".into(),
        KeyCode::Left => "\x1b[D".into(),
        KeyCode::Home => "\x1b[H".into(),
        KeyCode::End => "\x1b[F".into(),
        KeyCode::PageUp => "\x1b[5~".into(),
        KeyCode::PageDown => "\x1b[6~".into(),
        other => panic!("a key without a sequence: {other:?}"),
    }
}

/// The end of what a program wrote to its terminal.
fn last(raw: &str) -> String {
    let from = raw.char_indices().rev().nth(2000).map_or(0, |(at, _)| at);
    raw[from..].to_owned()
}

/// All that an operator's writes could change.
#[derive(Debug, PartialEq)]
struct Picture {
    nodes: BTreeMap<String, Value>,
    pods: BTreeMap<String, Value>,
}

impl Picture {
    async fn of(client: &Client) -> Result<Self> {
        let node = |node: &k8s_openapi::api::core::v1::Node| {
            let spec = node.spec.clone().unwrap_or_default();
            let (labels, annotations) = (node.labels(), node.annotations());
            json!({"unschedulable": spec.unschedulable, "taints": spec.taints, "labels": labels,
                "annotations": annotations, "uid": node.uid()})
        };
        let pod = |pod: &Pod| {
            let conditions =
                pod.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
            let disrupted = conditions.iter().any(|condition| condition.type_ == "DisruptionTarget");
            json!({"uid": pod.uid(), "deleted": pod.metadata.deletion_timestamp, "disrupted": disrupted})
        };
        Ok(Self {
            nodes: nodes(client).await?.iter().map(|one| (one.name_any(), node(one))).collect(),
            pods: pods(client).await?.iter().map(|one| (one.name_any(), pod(one))).collect(),
        })
    }
}

/// Whether a request was meant to change something: no read, no review of one's own rights, no dry run. Of deletions
/// and evictions the body tells, of others the query.
fn is_mutation(line: &Value) -> bool {
    if !is_write(line) || is_review(line) {
        return false;
    }
    let body = &line["requestObject"];
    let all = json!(["All"]);
    let by_query = line["requestURI"].as_str().is_some_and(|uri| uri.contains("dryRun=All"));
    let dry = match line["verb"].as_str() {
        Some("delete") if !body.is_null() => body["dryRun"] == all,
        Some("create") if is_eviction(line) => by_query || body["deleteOptions"]["dryRun"] == all,
        _ => by_query,
    };
    !dry
}

fn is_write(line: &Value) -> bool {
    !["get", "list", "watch"].contains(&line["verb"].as_str().unwrap_or_default())
}

fn is_review(line: &Value) -> bool {
    line["objectRef"]["resource"].as_str().unwrap_or_default().starts_with("selfsubject")
}
