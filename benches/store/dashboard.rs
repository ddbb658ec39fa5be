//! The dashboard: the program on a pseudo terminal. Its screen shows when it has done something.

use std::{
    io::{Read, Write},
    num::NonZero,
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread::sleep,
    time::{Duration, Instant},
};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use super::{
    actions::Action,
    cluster::{self, TestCluster},
    process::Process,
};

const ROWS: u16 = 48;
pub const COLUMNS: u16 = 160;
/// Width of the column of names. The columns to its right change without user input.
const NAME: u16 = 18;
/// Background of the selected row: `selected` of themes/dark.toml.
const SELECTED: vt100::Color = vt100::Color::Rgb(0x1f, 0x2c, 0x3d);
/// Start of each frame: the escape sequence that begins a synchronised update.
const FRAME: &[u8] = b"\x1b[?2026h";
/// Time within which the screen has to reach an expected state; otherwise the program has failed.
const PATIENCE: Duration = Duration::from_secs(300);

pub struct Dashboard {
    begun: Instant,
    seen: Arc<ScreenLog>,
    keys: Box<dyn Write + Send>,
    child: Box<dyn Child + Send + Sync>,
    _pty: Box<dyn MasterPty + Send>,
}

/// The screen of the terminal, and a condition variable that is notified of each change.
struct ScreenLog {
    screen: Mutex<Screen>,
    changed: Condvar,
}

pub struct Screen {
    terminal: vt100::Parser,
    /// Time at which the last chunk of output arrived, before it was parsed.
    came: Instant,
    frames: usize,
    /// End of the last chunk: the escape sequence of a frame may be split between two chunks.
    tail: Vec<u8>,
}

impl Dashboard {
    /// Starts the program with additional arguments.
    pub fn start(cluster: &TestCluster, arguments: &[&str]) -> Self {
        let size = PtySize { rows: ROWS, cols: COLUMNS, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("a pseudo terminal");
        let mut command = CommandBuilder::new(cluster::binary());
        command.args(["--theme", "dark", "--tour=false"]);
        command.args(arguments);
        command.env("HOME", cluster.folder.path());
        command.env("KUBECONFIG", &cluster.kubeconfig);
        command.env("TERM", "xterm-256color");
        command.env("COLORTERM", "truecolor");
        command.env_remove("NO_COLOR");
        // In GNU Screen the program would not take the mouse.
        command.env_remove("STY");
        let begun = Instant::now();
        let child = pair.slave.spawn_command(command).expect("the program starts");
        drop(pair.slave);
        let seen = Arc::new(ScreenLog::new());
        let mut output = pair.master.try_clone_reader().expect("its output");
        std::thread::spawn({
            let seen = seen.clone();
            move || {
                let mut bytes = [0; 65_536];
                while let Ok(read @ 1..) = output.read(&mut bytes) {
                    seen.take(&bytes[..read]);
                }
            }
        });
        let keys = pair.master.take_writer().expect("its input");
        Self { begun, seen, keys, child, _pty: pair.master }
    }

    pub fn process(&self) -> Process {
        Process(self.child.process_id().expect("it lives"))
    }

    pub fn screen(&self) -> String {
        self.seen.lock().text()
    }

    /// Waits for the row of a node that shows the age of its heartbeat. Returns the time since the start of the
    /// process.
    pub fn wait_for_first_rows(&self) -> Duration {
        self.wait("a node with its heartbeat", Screen::has_node_with_heartbeat) - self.begun
    }

    /// Waits until the information sheet, which must be open, shows that these kinds are completely listed. Returns the
    /// time since the start of the process.
    pub fn wait_for_lists(&self, kinds: &[&str]) -> Duration {
        let signs: Vec<String> = kinds.iter().map(|kind| format!("● {kind} ")).collect();
        let holds = |screen: &Screen| {
            let text = screen.text();
            signs.iter().all(|sign| text.contains(sign))
        };
        self.wait(&kinds.join(" and "), holds) - self.begun
    }

    /// Waits until the title of the Nodes pane shows this number of nodes.
    pub fn wait_for_count(&self, nodes: usize) {
        let title = format!("2 Nodes  {} ·", thousands(nodes));
        self.wait("the count of all nodes", |screen| screen.text().contains(&title));
    }

    /// Waits until the title of the Nodes pane shows that all `nodes` nodes are Ready.
    pub fn wait_until_ready(&self, nodes: usize) {
        let title = format!("2 Nodes  {nodes} · {nodes} Ready", nodes = thousands(nodes));
        self.wait("all nodes Ready", |screen| screen.text().contains(&title));
    }

    /// Whether the verdict shows the cluster's headroom.
    pub fn knows_headroom(&self) -> bool {
        let text = self.screen();
        let verdict = text.lines().find(|line| line.contains("N-1"));
        verdict.is_some_and(|verdict| !verdict.contains("working out"))
    }

    /// Opens the information sheet.
    pub fn open_information(&mut self) {
        self.type_in("i");
    }

    pub fn close_overlay(&mut self) {
        self.press("\x1b");
    }

    /// Acts, for the time with this number. Returns the time until the screen shows the effect, and the part of this time
    /// in which the loop's thread waited for a core.
    pub fn act(&mut self, action: Action, number: usize) -> (Duration, Duration) {
        self.press_each(action.before(number));
        // The pause varies, so that actions are not in step with the frames that incoming data causes.
        sleep(Duration::from_millis(40 + 7 * (number as u64 % 13)));
        let screen = self.seen.lock();
        let (before, input) = (action.trace(&screen), action.input(number, &screen));
        drop(screen);
        let waited = self.process().waited();
        let typed = Instant::now();
        self.type_in(&input);
        let came = self.wait(action.name(), |screen| {
            let now = action.trace(screen);
            now.is_some() && now != before
        });
        (came - typed, self.process().waited() - waited)
    }

    /// Freezes the screen, or unfreezes it.
    pub fn freeze(&mut self) {
        self.press("f");
    }

    /// Types keys and waits half a second for their effect.
    pub fn press(&mut self, keys: &str) {
        self.type_in(keys);
        sleep(Duration::from_millis(500));
    }

    /// Types keys one after the other, and waits half a second for the effect of each.
    pub fn press_each(&mut self, keys: &[&str]) {
        keys.iter().for_each(|keys| self.press(keys));
    }

    pub fn frames_during(&self, time: Duration) -> (usize, Duration) {
        let (begun, before) = (Instant::now(), self.seen.lock().frames);
        sleep(time);
        (self.seen.lock().frames - before, begun.elapsed())
    }

    fn type_in(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("the program reads");
    }

    /// Waits until a condition holds. Returns the time at which the output that fulfilled it arrived.
    fn wait(&self, what: &str, holds: impl Fn(&Screen) -> bool) -> Instant {
        let deadline = Instant::now() + PATIENCE;
        let mut screen = self.seen.lock();
        while !holds(&screen) {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{what} never came:\n{}", screen.text());
            screen = self.seen.changed.wait_timeout(screen, left).expect("no panic").0;
        }
        screen.came
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl ScreenLog {
    fn new() -> Self {
        let cells = |count| NonZero::new(count).expect("more than none");
        let terminal = vt100::Parser::new(cells(ROWS), cells(COLUMNS), 0);
        let screen = Screen { terminal, came: Instant::now(), frames: 0, tail: Vec::new() };
        Self { screen: Mutex::new(screen), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Screen> {
        self.screen.lock().expect("no panic")
    }

    fn take(&self, bytes: &[u8]) {
        let came = Instant::now();
        let mut screen = self.lock();
        screen.came = came;
        screen.terminal.process(bytes);
        screen.tail.extend_from_slice(bytes);
        screen.frames += screen.tail.windows(FRAME.len()).filter(|window| *window == FRAME).count();
        let kept = screen.tail.len().min(FRAME.len() - 1);
        let reported = screen.tail.len() - kept;
        screen.tail.drain(..reported);
        drop(screen);
        self.changed.notify_all();
    }
}

impl Screen {
    fn text(&self) -> String {
        self.terminal.screen().contents()
    }

    /// Whether a row of the Nodes pane has a value in the heartbeat column.
    fn has_node_with_heartbeat(&self) -> bool {
        let text = self.text();
        let mut lines = text.lines().skip_while(|line| !line.contains("2 Nodes"));
        let Some(heading) = lines.find(|line| line.contains("heartbeat")) else { return false };
        let column = |line: &str, text: &str| Some(line[..line.find(text)?].chars().count());
        let Some(start) = column(heading, "heartbeat") else { return false };
        lines.take_while(|line| line.starts_with('│')).any(|line| {
            let cell: String = line.chars().skip(start).take("heartbeat".len()).collect();
            line.contains("node-") && cell.ends_with(|last: char| last == 's' || last.is_ascii_digit())
        })
    }

    /// The selected row of the focused pane with the start of its text. The text is needed because a pane may scroll by
    /// one row while the selection moves by one.
    pub fn selected(&self) -> Option<String> {
        let is_selected = |row: &u16| {
            let cell = self.terminal.screen().cell(*row, COLUMNS / 4);
            cell.is_some_and(|cell| cell.bgcolor() == SELECTED)
        };
        let row = (0..ROWS).find(is_selected)?;
        Some(format!("{row} {}", self.name_in(row)))
    }

    /// The row of the title of the Nodes pane. The headings of its columns are in the next one.
    pub fn nodes(&self) -> Option<u16> {
        (0..ROWS).find(|row| self.row(*row).contains("2 Nodes"))
    }

    pub fn row(&self, row: u16) -> String {
        self.terminal.screen().contents_between(row, 0, row, COLUMNS)
    }

    pub fn last_row(&self) -> String {
        self.row(ROWS - 1)
    }

    /// The start of a row, with the name in it.
    pub fn name_in(&self, row: u16) -> String {
        self.terminal.screen().contents_between(row, 0, row, NAME)
    }
}

/// Formats a number as the dashboard does.
fn thousands(number: usize) -> String {
    match number {
        0..1_000 => number.to_string(),
        _ => format!("{},{:03}", number / 1_000, number % 1_000),
    }
}
