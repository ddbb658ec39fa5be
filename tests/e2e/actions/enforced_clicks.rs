//! In enforce mode a click opens and selects, and never confirms. Random clicks, turns of the wheel and keys go to
//! dashboards that may write. No key confirms either: Enter and words are not typed. The API server's audit log and the
//! objects show whether anything was written all the same.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use kordon::app::{UserAction, commands::COMMANDS};

use super::{
    cluster::{ClusterSize, PLANNER, UserShell, env_number, may_drain, run_length, start_cluster},
    dry_run::{ClusterState, DASHBOARD_LIFETIME, SIZE, bytes, click, expect_no_writes, last, random_mouse},
};
use crate::{
    common::terminal::Terminal,
    harness::{plane::Plane, say},
};

/// Duration of the test if `KORDON_RUN` is not set.
const DEFAULT_DURATION: Duration = Duration::from_secs(40);

/// Keys that open the plan of the selected node or pod: cordon, drain, evict.
const PLANS: [&str; 3] = ["c", "r", "e"];

/// Title of the question whether a plan is applied.
const QUESTION: &str = "╭ Apply";

pub async fn clicks_in_enforce_confirm_nothing(plane: &mut Plane) -> Result<()> {
    let _kubelets = start_cluster(plane, &ClusterSize::PATIENT).await?;
    plane.grant(PLANNER, &may_drain()).await?;
    let shell = UserShell::new(plane.kubeconfig(PLANNER)?);
    let (seed, duration) = (env_number("KORDON_SEED", 1), run_length(DEFAULT_DURATION)?);
    let client = plane.client();
    let before = ClusterState::of(&client).await?;
    let clicked = tokio::task::block_in_place(|| Clicked::during(duration, &shell, seed))?;
    ensure!(clicked.questions > 0, "seed {seed}: no question was asked");
    expect_no_writes(&plane.audit_of(PLANNER)?, &before, &client, seed).await?;
    let Clicked { dashboards, keys, events, questions } = clicked;
    say(&format!(
        "e2e_actions: {duration:?} in enforce: {events} events of the mouse, {questions} of them over questions, and {keys} \
         keys in {dashboards} dashboards, none of which writes"
    ));
    Ok(())
}

/// What was sent to the dashboards.
#[derive(Default)]
struct Clicked {
    dashboards: usize,
    keys: usize,
    /// Events of the mouse.
    events: usize,
    /// Events of the mouse while a question was open.
    questions: usize,
}

#[expect(clippy::disallowed_methods, reason = "dashboards under a terminal live in real time")]
impl Clicked {
    /// Sends random events to dashboards in enforce mode, one after the other.
    fn during(duration: Duration, user: &UserShell, seed: u64) -> Result<Self> {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut clicked = Self::default();
        let begun = Instant::now();
        while begun.elapsed() < duration {
            let mut terminal = Terminal::sized(
                user.shell.under_terminal(&["--kubeconfig", &user.kubeconfig]),
                SIZE.0,
                SIZE.1,
            );
            terminal.wait("6 Ready");
            terminal.type_in(":enforce\r");
            terminal.wait("ENFORCE");
            opens_by_clicks(&mut terminal, "b1");
            clicked.dashboards += 1;
            let opened = Instant::now();
            while opened.elapsed() < DASHBOARD_LIFETIME && begun.elapsed() < duration {
                clicked.ask(&mut terminal, &mut rng);
                for _ in 0..30 {
                    clicked.act(&mut terminal, &mut rng);
                }
                let ended = terminal.child.try_wait()?;
                ensure!(ended.is_none(), "the dashboard ended with {ended:?}: {}", last(&terminal.raw()));
            }
            terminal.child.kill()?;
            terminal.end();
            ensure!(!terminal.raw().contains("panicked at"), "{}", last(&terminal.raw()));
        }
        Ok(clicked)
    }

    /// Opens the plan of a node or pod and the question whether it is applied, as far as the open views let it.
    fn ask(&mut self, terminal: &mut Terminal, rng: &mut fastrand::Rng) {
        let place = ["2", "3"][rng.usize(..2)];
        for keys in ["\x1b", "\x1b", "\x1b", place, "j", PLANS[rng.usize(..PLANS.len())]] {
            self.press(terminal, keys, 100);
        }
        // The plan and the permissions are worked out first.
        std::thread::sleep(Duration::from_millis(400));
        self.press(terminal, "A", 400);
    }

    /// Clicks, turns the wheel, or types a key. While a question is open, it is clicked only, most often on its choices.
    fn act(&mut self, terminal: &mut Terminal, rng: &mut fastrand::Rng) {
        let screen = terminal.text();
        let asks = screen.contains(QUESTION);
        if !asks && rng.bool() {
            return self.press(terminal, &random_key(rng), rng.u64(5..60));
        }
        let choices =
            screen.lines().zip(0..).find(|(line, _)| line.contains("Cancel ") && line.contains(']'));
        let input = match choices {
            Some((_, row)) if rng.u8(..4) > 0 => click(rng.u16(..SIZE.1), row),
            _ => random_mouse(rng),
        };
        terminal.type_in(&input);
        self.events += 1;
        self.questions += usize::from(asks);
        std::thread::sleep(Duration::from_millis(rng.u64(5..60)));
    }

    fn press(&mut self, terminal: &mut Terminal, keys: &str, wait: u64) {
        terminal.type_in(keys);
        self.keys += 1;
        std::thread::sleep(Duration::from_millis(wait));
    }
}

/// Checks that two clicks on a node select it and open its pods.
fn opens_by_clicks(terminal: &mut Terminal, node: &str) {
    terminal.type_in("2");
    terminal.wait("2 Nodes");
    let screen = terminal.text();
    let cell = screen.lines().zip(0..).find_map(|(line, row)| {
        let before = &line[..line.find(&format!(" {node} "))?];
        line.contains("Ready ").then(|| (before.chars().count(), row))
    });
    let (column, row) = cell.unwrap_or_else(|| panic!("no row of {node} on\n{screen}"));
    let column = u16::try_from(column).expect("a column") + 1;
    terminal.type_in(&click(column, row).repeat(2));
    terminal.wait(&format!("2 Pods  on {node} "));
    terminal.type_in("\x1b");
    terminal.wait("2 Nodes");
}

/// A key of the command table that neither confirms nor leaves the dashboard.
fn random_key(rng: &mut fastrand::Rng) -> String {
    loop {
        let command = &COMMANDS[rng.usize(..COMMANDS.len())];
        let leaves = matches!(command.action, UserAction::Quit | UserAction::Suspend);
        if leaves || command.keys.is_empty() {
            continue;
        }
        let key = bytes(command.keys[rng.usize(..command.keys.len())]);
        if !key.contains(['\r', '\n']) {
            return key;
        }
    }
}
