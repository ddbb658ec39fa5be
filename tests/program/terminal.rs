//! The dashboard on a real pseudo terminal: its output, and that it restores the terminal on every exit.
//!
//! The program on the terminal is this test binary itself, running [`the_program_under_the_terminal`].

use kordon::{
    executor::effects::EffectExecutor,
    run::{self, Dashboard, Links, notify::NotifyOptions, tty::Tty},
};
use kordon_clock::Clock;
use portable_pty::CommandBuilder;
use rustix::process::{Pid, Signal};

use crate::{common::terminal::Terminal, dashboard_fixture::DashboardFixture};

/// Environment variable that selects what the child does. Without it, the child is an ordinary test that does nothing.
const CHILD: &str = "KORDON_TERMINAL_CHILD";
const ENTER_SCREEN: &str = "\x1b[?1049h";
const LEAVE_SCREEN: &str = "\x1b[?1049l";

#[test]
fn the_program_under_the_terminal() {
    match std::env::var(CHILD).as_deref() {
        Ok("dashboard") => show_dashboard(),
        Ok("panic") => {
            let _tty = Tty::enter(true).expect("a terminal");
            panic!("a panic on purpose");
        }
        _ => {}
    }
}

#[test]
fn the_dashboard_answers_keys_and_restores_the_terminal() {
    let mut terminal = start("dashboard", &[]);
    terminal.wait("23 Ready");
    terminal.type_in("5");
    terminal.wait("evicted pod edge/gateway");
    terminal.type_in("?");
    terminal.wait("Esc closes");
    terminal.type_in("\x1b");
    terminal.wait_gone("Esc closes");
    terminal.type_in("q");
    assert!(terminal.end().success());
    let raw = terminal.raw();
    assert!(raw.contains(ENTER_SCREEN) && raw.contains("\x1b[?2026h") && raw.contains("\x1b[?2026l"));
    assert!(raw.contains("\x1b]0;prod-eu: ✖ 4 of 30 nodes Evicting"), "the title is the verdict");
    let left = raw.rfind(LEAVE_SCREEN).expect("the alternate screen is left");
    assert!(raw[left..].contains("\x1b[23;0t"), "the title is restored");
    assert!(raw[left..].contains("\x1b[?25h"), "the cursor is shown again");
    assert!(!raw[left..].contains(ENTER_SCREEN));
}

#[test]
fn the_demo_shows_its_nodes_explains_its_keys_and_quits() {
    let mut terminal = demo();
    terminal.wait("control-plane-1a-01");
    terminal.type_in("?");
    terminal.wait("Focus the next pane.");
    terminal.type_in("\x1b");
    terminal.wait_gone("Focus the next pane.");
    terminal.resize(24, 40);
    terminal.wait("too small: 40x24");
    terminal.type_in("q");
    assert!(terminal.end().success());
    let raw = terminal.raw();
    let left = raw.rfind(LEAVE_SCREEN).expect("the alternate screen is left");
    assert!(raw[left..].contains("\x1b[?25h"), "the cursor is shown again");
}

#[test]
fn ctrl_c_ends_the_demo() {
    let mut terminal = demo();
    terminal.wait("control-plane-1a-01");
    terminal.type_in("\x03");
    assert!(terminal.end().success());
    assert!(terminal.raw().contains(LEAVE_SCREEN));
}

#[test]
fn no_color_sends_no_colours_and_keeps_bold() {
    let mut terminal = start("dashboard", &[("NO_COLOR", "1")]);
    terminal.wait("23 Ready");
    terminal.type_in("q");
    assert!(terminal.end().success());
    let raw = terminal.raw();
    assert!(!raw.contains("\x1b[38;") && !raw.contains("\x1b[48;"), "colours were sent");
    assert!(raw.contains("\x1b[1m") && raw.contains("\x1b[7m"), "neither bold nor reverse");
}

#[test]
fn a_smaller_window_is_redrawn() {
    let mut terminal = start("dashboard", &[]);
    terminal.wait("23 Ready");
    terminal.resize(24, 40);
    terminal.wait("too small: 40x24");
    terminal.resize(30, 100);
    terminal.wait("23 Ready");
    terminal.type_in("q");
    assert!(terminal.end().success());
}

#[test]
fn the_mouse_is_taken_and_given_back_and_a_name_is_copied() {
    let mut terminal = start("dashboard", &[]);
    terminal.wait("23 Ready");
    terminal.type_in("2/pool-b-02\rY");
    terminal.wait("copied node pool-b-02");
    // One notch of the wheel over the nodes, as xterm, tmux and kitty report it.
    terminal.type_in("\x1b[<65;10;8M");
    terminal.type_in("q");
    assert!(terminal.end().success());
    let raw = terminal.raw();
    assert!(raw.contains("\x1b]52;c;cG9vbC1iLTAy\x07"), "OSC 52 with pool-b-02");
    let (taken, given) = (raw.find("\x1b[?1000h"), raw.rfind("\x1b[?1000l"));
    assert!(taken.is_some() && taken < given, "{taken:?} {given:?}");
}

#[test]
fn rows_and_cells_are_copied_and_what_is_shown_is_written_to_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name).display().to_string();
    let mut terminal = start("dashboard", &[]);
    terminal.wait("23 Ready");
    terminal.type_in("2/pool-b-02\r:copy zone\r");
    terminal.wait("copied zone");
    terminal.type_in(":copy row\r");
    terminal.wait("copied the row");
    terminal.type_in(":copy colour\r");
    terminal.wait("there is no column colour here");
    terminal.type_in("\x1b\x1b");
    for name in ["nodes.csv", "nodes.md", "nodes.json", "screen.svg"] {
        terminal.type_in(&format!(":export {}\r", file(name)));
        terminal.wait(name);
        terminal.wait_gone("Commands");
    }
    terminal.type_in(&format!(":export {}\r", file("nodes.csv")));
    terminal.wait("exists: name another file");
    terminal.type_in(&format!("4:export {}\r", file("chart.csv")));
    terminal.wait("there are no rows here: .svg, .txt and .ansi write the screen");
    assert!(!std::path::Path::new(&file("chart.csv")).exists());
    terminal.type_in("q");
    assert!(terminal.end().success());
    let raw = terminal.raw();
    assert!(raw.contains("\x1b]52;c;ZXUtMS9i\x07"), "OSC 52 with the zone eu-1/b");
    let read = |name: &str| std::fs::read_to_string(file(name)).expect("a file");
    let csv = read("nodes.csv");
    assert!(csv.starts_with("\"node\",\"state\","), "{csv}");
    assert_eq!(csv.lines().count(), 31, "all nodes, not only those that fit");
    assert!(read("nodes.md").starts_with("| node | state |"));
    let json: serde_json::Value = serde_json::from_str(&read("nodes.json")).expect("JSON");
    assert_eq!(json.as_array().map(Vec::len), Some(30));
    assert!(read("screen.svg").contains("pool-b-02"));
}

#[test]
fn on_sigterm_the_terminal_is_restored() {
    let mut terminal = start("dashboard", &[]);
    terminal.wait("23 Ready");
    let id = terminal.child.process_id().expect("it runs");
    let id = Pid::from_raw(i32::try_from(id).expect("a process id")).expect("not zero");
    rustix::process::kill_process(id, Signal::TERM).expect("it is ours");
    assert!(terminal.end().success());
    assert!(terminal.raw().contains(LEAVE_SCREEN));
}

#[test]
fn a_panic_is_reported_on_the_normal_screen() {
    let mut terminal = start("panic", &[]);
    assert!(!terminal.end().success());
    let raw = terminal.raw();
    let left = raw.find(LEAVE_SCREEN).expect("the alternate screen is left");
    let report = raw.find("a panic on purpose").expect("it is reported");
    assert!(left < report, "the report is on the screen that is gone");
}

#[test]
fn suspending_gives_the_terminal_to_the_shell_and_resuming_redraws() {
    let mut terminal = shell();
    // The command has the prompt in two parts, so that the shell's echo of the command is not mistaken for the prompt.
    terminal.type_in("PS1='ready'\"> \"\n");
    terminal.wait("ready> ");
    let program = std::env::current_exe().expect("this program");
    let arguments = "--exact terminal::the_program_under_the_terminal --nocapture";
    terminal.type_in(&format!("clear; {CHILD}=dashboard {} {arguments}\n", program.display()));
    terminal.wait("23 Ready");
    terminal.type_in("\x1a");
    terminal.wait("Stopped");
    terminal.wait("ready> ");
    terminal.type_in("fg\n");
    terminal.wait("23 Ready");
    terminal.type_in("q");
    terminal.wait("ready> ");
    terminal.type_in("stty -a | grep -o ' icanon'; exit\n");
    terminal.wait(" icanon");
    terminal.end();
}

fn show_dashboard() {
    let runtime = tokio::runtime::Runtime::new().expect("threads");
    runtime.block_on(async {
        let mut fixture = DashboardFixture::incident();
        if std::env::var_os("NO_COLOR").is_some() {
            while *fixture.app.screen.theme() != kordon::app::ThemeName::Mono {
                fixture.app.screen.next_theme();
            }
        }
        let clock = Clock::new(fixture.now, 1.0);
        // The watches send nothing more, but their channel stays open.
        let (_open, feeds) = tokio::sync::mpsc::channel(1);
        let link = EffectExecutor::Recorder.start();
        let links = Links {
            feeds,
            effects: link.items,
            outcomes: link.outcomes,
            wanted: Default::default(),
            events: None,
        };
        let dashboard = Dashboard {
            notify: NotifyOptions::default(),
            app: fixture.app,
            links: Some(links),
            clock,
            context: None,
            player: None,
            history: None,
            preferences: None,
            opener: None,
        };
        run::terminal(dashboard, true).await.expect("it runs");
    });
}

/// Starts this test binary in the role of the program.
fn start(what: &str, environment: &[(&str, &str)]) -> Terminal {
    let mut command = CommandBuilder::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "terminal::the_program_under_the_terminal", "--nocapture"]);
    command.env(CHILD, what);
    command.env_remove("NO_COLOR");
    for (name, value) in environment {
        command.env(name, value);
    }
    Terminal::with(command)
}

/// Starts the real program with its embedded cluster.
fn demo() -> Terminal {
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_kordon"));
    command.arg("demo");
    command.env("KORDON_TOUR", "false");
    command.env_remove("NO_COLOR");
    Terminal::with(command)
}

fn shell() -> Terminal {
    let mut command = CommandBuilder::new("bash");
    command.args(["--norc", "--noprofile", "-i"]);
    command.env_remove("NO_COLOR");
    Terminal::with(command)
}
