//! A dry run writes nothing. Random commands are run, and random keys are typed into the dashboard on a terminal. The
//! API server's audit log and the objects show whether anything was written.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use anyhow::{Result, ensure};
use crossterm::event::KeyCode;
use k8s_openapi::api::core::v1::Pod;
use kordon::app::{UserAction, chord::Chord, commands::COMMANDS};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use super::cluster::{
    ClusterSize, PLANNER, UserShell, env_number, is_eviction, may_drain, nodes, pods, run_length, set_budget,
    start_cluster,
};
use crate::{
    common::terminal::Terminal,
    harness::{plane::Plane, say},
};

/// Duration of the test if `KORDON_RUN` is not set.
const DEFAULT_DURATION: Duration = Duration::from_secs(40);

/// Time after which a dashboard is replaced by a new one.
pub const DASHBOARD_LIFETIME: Duration = Duration::from_secs(60);

pub async fn dry_runs_write_nothing(plane: &mut Plane) -> Result<()> {
    let _kubelets = start_cluster(plane, &ClusterSize::PATIENT).await?;
    plane.grant(PLANNER, &may_drain()).await?;
    let shell = UserShell::new(plane.kubeconfig(PLANNER)?);
    let seed = env_number("KORDON_SEED", 1);
    let duration = run_length(DEFAULT_DURATION)?;
    let client = plane.client();
    let before = ClusterState::of(&client).await?;
    let done = AtomicBool::new(false);
    let typer = RandomTyper::new(&shell, seed);
    let (commands, typed) = std::thread::scope(|scope| {
        let typing = scope.spawn(|| typer.type_until(&done));
        let running = tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(run_commands(&shell, &client, seed, duration))
        });
        done.store(true, Ordering::Relaxed);
        (running, typing.join().expect("the typist does not panic"))
    });
    let (commands, typed) = (commands?, typed?);

    let lines = plane.audit_of(PLANNER)?;
    ensure!(lines.len() > 20, "the audit log has only {} of our requests", lines.len());
    expect_no_writes(&lines, &before, &client, seed).await?;
    let dry = |line: &&Value| is_write(line) && !is_review(line);
    let dry_runs = lines.iter().filter(dry).count();
    ensure!(dry_runs > 0, "no write was validated by the server");
    say(&format!(
        "e2e_actions: {duration:?}: {} commands, {} keys in {} dashboards; {} requests of ours, {dry_runs} of them dry runs, \
         none of which writes",
        commands.values().sum::<usize>(),
        typed.keys,
        typed.dashboards,
        lines.len(),
    ));
    let counted: Vec<String> = commands.iter().map(|(code, count)| format!("{count} with {code}")).collect();
    say(&format!("e2e_actions: commands by exit code: {}", counted.join(", ")));
    Ok(())
}

/// Runs random commands one after the other, while the budget alternates between allowing a disruption and allowing
/// none. Returns the number of commands by exit code.
async fn run_commands(
    shell: &UserShell,
    client: &Client,
    seed: u64,
    duration: Duration,
) -> Result<BTreeMap<i32, usize>> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut codes = BTreeMap::new();
    let running = async {
        loop {
            if rng.u8(..8) == 0 {
                let least = if rng.bool() { json!("100%") } else { json!(ClusterSize::PATIENT.web - 1) };
                set_budget(client, "web", least).await?;
            }
            let line = random_command(&mut rng);
            let line: Vec<&str> = line.iter().map(String::as_str).collect();
            let output = shell.run(&line).await;
            ensure!([0, 5, 6, 7].contains(&output.code), "{line:?}: {} {}", output.code, output.err);
            *codes.entry(output.code).or_default() += 1;
        }
    };
    // The command that is still running at the end is killed.
    match tokio::time::timeout(duration, running).await {
        Ok(ended) => ended,
        Err(_) => Ok(codes),
    }
}

fn random_command(rng: &mut fastrand::Rng) -> Vec<String> {
    const NODES: [&str; 6] = ["a1", "a2", "b1", "b2", "c1", "c2"];
    let node = NODES[rng.usize(..NODES.len())];
    let line: &[&str] = match rng.usize(..12) {
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
    if plans && rng.bool() {
        line.insert(0, "plan".into());
    }
    if plans && rng.bool() {
        line.push("--dry-run=server".into());
    }
    line
}

/// Rows and columns of the terminal.
pub const SIZE: (u16, u16) = (48, 160);

/// Types random keys into dashboards, and clicks.
struct RandomTyper<'a> {
    user: &'a UserShell,
    seed: u64,
}

struct Typed {
    keys: usize,
    dashboards: usize,
}

impl<'a> RandomTyper<'a> {
    fn new(shell: &'a UserShell, seed: u64) -> Self {
        Self { user: shell, seed }
    }

    /// Types random words and random keys of the command table, and clicks, until `done` is set.
    fn type_until(&self, done: &AtomicBool) -> Result<Typed> {
        let mut rng = fastrand::Rng::with_seed(self.seed);
        let mut typed = Typed { keys: 0, dashboards: 0 };
        while !done.load(Ordering::Relaxed) {
            let command = self.user.shell.under_terminal(&["--kubeconfig", &self.user.kubeconfig]);
            let mut terminal = Terminal::with(command);
            terminal.resize(SIZE.0, SIZE.1);
            terminal.wait("6 Ready");
            typed.dashboards += 1;
            let opened = tokio::time::Instant::now();
            while opened.elapsed() < DASHBOARD_LIFETIME && !done.load(Ordering::Relaxed) {
                if let Some(status) = terminal.child.try_wait()? {
                    ensure!(
                        status.success(),
                        "the dashboard ended with {status:?}: {}",
                        last(&terminal.raw())
                    );
                    break;
                }
                terminal.type_in(&random_input(&mut rng));
                typed.keys += 1;
                #[expect(clippy::disallowed_methods, reason = "it has its own thread")]
                std::thread::sleep(Duration::from_millis(rng.u64(5..120)));
            }
            // The program may have ended by itself.
            let _ = terminal.child.kill();
            terminal.end();
            ensure!(!terminal.raw().contains("panicked at"), "{}", last(&terminal.raw()));
        }
        Ok(typed)
    }
}

/// Returns a key of the command table, a word for a filter, taint or label, or the bytes of a mouse event.
fn random_input(rng: &mut fastrand::Rng) -> String {
    const WORDS: [&str; 6] =
        ["k=v:NoExecute", "dedicated=x:NoSchedule", "team=blue", "team-", "zone:a", "web"];
    if rng.u8(..4) == 0 {
        return random_mouse(rng);
    }
    if rng.u8(..8) == 0 {
        return WORDS[rng.usize(..WORDS.len())].into();
    }
    let command = &COMMANDS[rng.usize(..COMMANDS.len())];
    // Quit and suspend are rare, so that a dashboard is not left every few seconds.
    let leaves = matches!(command.action, UserAction::Quit | UserAction::Suspend);
    if command.keys.is_empty() || leaves && rng.u8(..10) > 0 {
        return "\r".into();
    }
    bytes(command.keys[rng.usize(..command.keys.len())])
}

/// The bytes that a terminal sends for a click or a turn of the wheel somewhere on the screen.
pub fn random_mouse(rng: &mut fastrand::Rng) -> String {
    const WHEEL: [u8; 2] = [64, 65];
    let (x, y) = (rng.u16(..SIZE.1), rng.u16(..SIZE.0));
    match rng.u8(..4) {
        0 => format!("\x1b[<{};{};{}M", WHEEL[rng.usize(..2)], x + 1, y + 1),
        // A double click opens a row.
        1 => click(x, y).repeat(2),
        _ => click(x, y),
    }
}

/// The bytes that a terminal sends for a click of the left button on a cell (SGR, which counts from 1).
pub fn click(column: u16, row: u16) -> String {
    let (x, y) = (column + 1, row + 1);
    format!("\x1b[<0;{x};{y}M\x1b[<0;{x};{y}m")
}

/// The bytes that a terminal sends for a key.
pub fn bytes(chord: Chord) -> String {
    match chord.code {
        KeyCode::Left if chord.alt => "\x1b[1;3D".into(),
        KeyCode::Right if chord.alt => "\x1b[1;3C".into(),
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

/// Returns the end of a program's output.
pub fn last(raw: &str) -> String {
    let from = raw.char_indices().rev().nth(2000).map_or(0, |(at, _)| at);
    raw[from..].to_owned()
}

/// Everything that an operator's writes could change.
#[derive(Debug, PartialEq)]
pub struct ClusterState {
    nodes: BTreeMap<String, Value>,
    pods: BTreeMap<String, Value>,
}

impl ClusterState {
    pub async fn of(client: &Client) -> Result<Self> {
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

/// Checks that none of these requests changes anything, and that the objects are as before.
pub async fn expect_no_writes(
    lines: &[Value],
    before: &ClusterState,
    client: &Client,
    seed: u64,
) -> Result<()> {
    let wrote: Vec<String> = lines.iter().filter(|line| is_mutation(line)).map(ToString::to_string).collect();
    ensure!(wrote.is_empty(), "seed {seed}: {wrote:#?}");
    let after = ClusterState::of(client).await?;
    ensure!(*before == after, "seed {seed}: was {before:#?}, is {after:#?}");
    Ok(())
}

/// Whether a request changes something: it is not a read, an access review or a dry run. Deletions and evictions have
/// `dryRun` in their body, other requests in their query.
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
