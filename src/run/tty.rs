//! The terminal: enters raw mode, draws without flicker, and always restores the terminal at the end.

use std::{
    io::{self, BufWriter, IsTerminal, Stdout, Write},
    panic,
    sync::Once,
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use crossterm::{
    cursor,
    event::{DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture},
    execute, queue,
    style::Print,
    terminal::{
        self, BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
        SetTitle,
    },
};
use ratatui::{Terminal, backend::CrosstermBackend, layout::Rect};
use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};

use super::Surface;
use crate::{
    app::App,
    ui::{self, Drawn},
};
use kordon_time::Timestamp;

/// Size in bytes of the output buffer. It holds a frame of a large terminal in truecolour. Without it, stdout would be
/// written every KiB.
const BUFFER: usize = 1 << 17;

/// Escape sequences that push the title on the terminal's stack of titles, and pop it (XTWINOPS). Terminals without
/// such a stack ignore both.
const SAVE_TITLE: &str = "\x1b[22;0t";
const RESTORE_TITLE: &str = "\x1b[23;0t";

/// Maximum time to wait for SIGCONT after SIGTSTP. Without a shell that could continue the program, the system does not
/// stop it, and the program continues after this time.
const NOT_STOPPED: Duration = Duration::from_millis(200);

/// The terminal in raw mode on its alternate screen; dropping it restores the terminal.
#[derive(Debug)]
pub struct Tty {
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
    /// The terminal's title as it was last set.
    title: String,
    /// Whether the terminal reports the mouse.
    mouse: bool,
}

impl Tty {
    /// Takes over the terminal, and the mouse if `mouse` is true. A panic restores the terminal before the panic is
    /// reported.
    ///
    /// # Errors
    /// There is no terminal, or it cannot be written to.
    pub fn enter(mouse: bool) -> io::Result<Self> {
        // If only the output were redirected, raw mode would affect the user's terminal although the screen is written
        // elsewhere.
        if !io::stdout().is_terminal() {
            return Err(io::Error::other("standard output is not a terminal"));
        }
        // With NO_COLOR, crossterm replaces each colour by a reset, which also resets bold and reverse. Forcing colours
        // is safe, because the themes for NO_COLOR have no colours.
        crossterm::style::force_color_output(true);
        restore_on_panic();
        take(mouse)?;
        let writer = BufWriter::with_capacity(BUFFER, io::stdout());
        match Terminal::new(CrosstermBackend::new(writer)) {
            Ok(terminal) => Ok(Self { terminal, title: String::new(), mouse }),
            Err(error) => {
                restore();
                Err(error)
            }
        }
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        restore();
    }
}

impl Surface for Tty {
    fn draw_app(&mut self, app: &App, now: Timestamp) -> io::Result<Drawn> {
        let mut drawn = Drawn::default();
        queue!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        self.terminal.draw(|frame| drawn = ui::draw(frame, app, now))?;
        if drawn.title != self.title {
            queue!(self.terminal.backend_mut(), SetTitle(&drawn.title))?;
            self.title.clone_from(&drawn.title);
        }
        execute!(self.terminal.backend_mut(), EndSynchronizedUpdate)?;
        Ok(drawn)
    }

    /// `Terminal::clear` is not used: it queries the position of the cursor, and may wait two seconds for the answer.
    fn repaint(&mut self) -> io::Result<()> {
        let size = self.terminal.size()?;
        self.terminal.resize(Rect::new(0, 0, size.width, size.height))
    }

    /// Writes OSC 52, which also works over SSH, and in tmux with `set-clipboard on`.
    fn copy(&mut self, text: &str) -> io::Result<()> {
        execute!(io::stdout(), Print(format_args!("\x1b]52;c;{}\x07", STANDARD.encode(text))))
    }

    fn notify(&mut self, sequences: &str) -> io::Result<()> {
        execute!(io::stdout(), Print(sequences))
    }

    async fn suspend(&mut self) -> io::Result<()> {
        let mut continued = signal(SignalKind::from_raw(Signal::CONT.as_raw()))?;
        restore();
        // SIGTSTP is sent to the whole process group, as a terminal does for Ctrl-Z. In a process with several threads,
        // the stop may happen a moment after this call. The terminal must not be taken over before the stop.
        let stopped = rustix::process::kill_current_process_group(Signal::TSTP);
        let _ = tokio::time::timeout(NOT_STOPPED, continued.recv()).await;
        take(self.mouse)?;
        stopped?;
        self.repaint()
    }
}

fn take(mouse: bool) -> io::Result<()> {
    terminal::enable_raw_mode()?;
    // Without bracketed paste, each character of a pasted text would be a key.
    execute!(io::stdout(), Print(SAVE_TITLE), EnterAlternateScreen, EnableBracketedPaste)?;
    if mouse { execute!(io::stdout(), EnableMouseCapture) } else { Ok(()) }
}

/// Restores the terminal as far as possible. Errors are ignored.
fn restore() {
    let mut out = io::stdout();
    let _ = execute!(
        out,
        EndSynchronizedUpdate,
        DisableMouseCapture,
        DisableBracketedPaste,
        LeaveAlternateScreen,
        cursor::Show,
        Print(RESTORE_TITLE)
    );
    let _ = out.flush();
    let _ = terminal::disable_raw_mode();
}

/// Installs a panic hook that restores the terminal first, so that the report of the panic is on the normal screen.
fn restore_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            restore();
            report(panic);
        }));
    });
}
