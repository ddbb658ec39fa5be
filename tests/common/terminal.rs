//! Runs a program on a real pseudo terminal: types keys into it, and parses its output as a screen.

#![expect(clippy::disallowed_methods, reason = "a program under a terminal lives in real time")]
#![allow(dead_code, reason = "each test program uses its part")]

use std::{
    io::{Read, Write},
    num::NonZero,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

/// A pseudo terminal, and the program that runs on it.
pub struct Terminal {
    screen: Arc<Mutex<vt100::Parser>>,
    raw: Arc<Mutex<Vec<u8>>>,
    reader: Option<std::thread::JoinHandle<()>>,
    keys: Box<dyn Write + Send>,
    pub child: Box<dyn Child + Send + Sync>,
    pty: Box<dyn MasterPty + Send>,
}

impl Terminal {
    /// Starts a program on 30 rows of 100 columns.
    pub fn with(command: CommandBuilder) -> Self {
        Self::sized(command, 30, 100)
    }

    /// Starts a program on a terminal of this size.
    pub fn sized(mut command: CommandBuilder, rows: u16, cols: u16) -> Self {
        command.env("TERM", "xterm-256color");
        let size = PtySize { rows, cols, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("a pseudo terminal");
        let child = pair.slave.spawn_command(command).expect("the program starts");
        drop(pair.slave);
        let screen = Arc::new(Mutex::new(vt100::Parser::new(nonzero(rows), nonzero(cols), 0)));
        let raw = Arc::new(Mutex::new(Vec::new()));
        let mut output = pair.master.try_clone_reader().expect("its output");
        let reader = std::thread::spawn({
            let (screen, raw) = (screen.clone(), raw.clone());
            move || {
                let mut bytes = [0; 65_536];
                while let Ok(read @ 1..) = output.read(&mut bytes) {
                    screen.lock().expect("no panic").process(&bytes[..read]);
                    raw.lock().expect("no panic").extend_from_slice(&bytes[..read]);
                }
            }
        });
        let keys = pair.master.take_writer().expect("its input");
        Self { screen, raw, reader: Some(reader), keys, child, pty: pair.master }
    }

    pub fn type_in(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("the program reads");
    }

    pub fn resize(&mut self, rows: u16, cols: u16) {
        self.screen.lock().expect("no panic").screen_mut().set_size(nonzero(rows), nonzero(cols));
        self.pty.resize(PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }).expect("resizable");
    }

    pub fn text(&self) -> String {
        self.screen.lock().expect("no panic").screen().contents()
    }

    pub fn wait(&self, text: &str) {
        self.wait_until(&format!("no {text:?}"), |screen| screen.contains(text));
    }

    /// Waits until the program has sent these bytes.
    pub fn wait_for_raw(&self, bytes: &str) {
        let deadline = Instant::now() + Duration::from_secs(180);
        while !self.raw().contains(bytes) {
            assert!(Instant::now() < deadline, "{bytes:?} was not sent");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn wait_gone(&self, text: &str) {
        self.wait_until(&format!("still {text:?}"), |screen| !screen.contains(text));
    }

    /// Waits until the screen fulfils a condition. Panics after 180 s, because the program has failed then.
    pub fn wait_until(&self, what: &str, holds: impl Fn(&str) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(180);
        while !holds(&self.text()) {
            assert!(Instant::now() < deadline, "{what} on\n{}", self.text());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Types keys that open a question. While the program refuses the keys because a list or the plan is missing, types
    /// them again.
    pub fn type_once_ready(&mut self, keys: &str, words: &str) {
        const REFUSED: [&str; 2] = ["not listed yet", "the plan is not ready yet"];
        loop {
            self.type_in(keys);
            self.wait_until("no answer", |screen| {
                assent(screen, words).is_some() || REFUSED.iter().any(|text| screen.contains(text))
            });
            if assent(&self.text(), words).is_some() {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Answers every question with yes until a plan is applied. A question that asks for other words than `words` is
    /// not answered.
    pub fn agree(&mut self, words: &str) {
        loop {
            let over = |screen: &str| assent(screen, words).is_some() || screen.contains("2 Progress");
            self.wait_until("no question", over);
            let Some(keys) = assent(&self.text(), words) else { return };
            if keys == words {
                // Deletes the keys that `type_once_ready` typed again while the question opened.
                self.type_in("\x15");
            }
            self.type_in(keys);
            self.wait_until("no key is taken", |screen| assent(screen, words) != Some(keys));
        }
    }

    /// Waits until the program and its output have ended.
    pub fn end(&mut self) -> portable_pty::ExitStatus {
        let status = self.child.wait().expect("it ends");
        if let Some(reader) = self.reader.take() {
            reader.join().expect("the reader does not panic");
        }
        status
    }

    /// Drops the output kept for [`Self::raw`], because the output of a run of several hours is too large.
    pub fn forget_raw(&self) {
        self.raw.lock().expect("no panic").clear();
    }

    pub fn raw(&self) -> String {
        String::from_utf8_lossy(&self.raw.lock().expect("no panic")).into_owned()
    }
}

/// Returns the next keys that answer the open question with yes. If the question asks for `words`, these are the words,
/// followed by Enter. Otherwise, Tab moves from Cancel to the other choice, and Enter selects it.
pub fn assent<'a>(screen: &str, words: &'a str) -> Option<&'a str> {
    let mut lines = screen.lines();
    if lines.any(|line| line.contains(&format!("Type {words} to continue:"))) {
        let typed = lines.next().unwrap_or_default();
        return Some(if typed.contains(words) { "\r" } else { words });
    }
    let choices = screen.lines().find(|line| line.contains("Cancel") && line.contains(" ]"))?;
    Some(if choices.contains("[ Cancel ]") { "\t" } else { "\r" })
}

fn nonzero(cells: u16) -> NonZero<u16> {
    NonZero::new(cells).expect("more than none")
}
