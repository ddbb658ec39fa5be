//! The thread on which watches run. One of their own reads in turns: after what it had was read, it leaves the connections alone
//! for a while, and then reads at once what has come meanwhile. Hundreds of events a second wake us thirty times a second then,
//! as often as the screen is drawn. An event that comes alone does not wait.

use std::{cell::Cell, io, sync::mpsc, thread, time::Duration};

use tokio::{runtime, sync::oneshot, task::JoinHandle};

/// How long the connections are left alone.
pub const REST: Duration = Duration::from_millis(30);

/// On which thread watches run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchThread {
    /// With the runtime of who starts them, whose clock tests and the demo control. There each watch rests by itself.
    Callers,
    /// On one of their own.
    Own,
}

thread_local! {
    static HAS_READ: Cell<bool> = const { Cell::new(false) };
}

impl WatchThread {
    /// Runs the watches to their end.
    pub fn run(self, watches: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        match self {
            Self::Callers => tokio::spawn(watches),
            Self::Own => match WatchRuntime::start() {
                Ok(started) => started.run(watches),
                // The machine has no more threads.
                Err(_) => tokio::spawn(watches),
            },
        }
    }
}

/// A thread that waits for what it is to run.
struct WatchRuntime<W> {
    give: mpsc::Sender<W>,
    ended: oneshot::Receiver<()>,
}

impl<W: Future<Output = ()> + Send + 'static> WatchRuntime<W> {
    fn start() -> io::Result<Self> {
        let runtime = runtime::Builder::new_current_thread().enable_all().on_thread_park(rest).build()?;
        let (give, given) = mpsc::channel();
        let (end, ended) = oneshot::channel();
        let run = move || {
            if let Ok(watches) = given.recv() {
                runtime.block_on(watches);
                // Nobody may wait for it.
                let _ = end.send(());
            }
        };
        thread::Builder::new().name("watches".into()).spawn(run)?;
        Ok(Self { give, ended })
    }

    fn run(self, watches: W) -> JoinHandle<()> {
        let Self { give, ended } = self;
        // The thread waits for it.
        let _ = give.send(watches);
        tokio::spawn(async move {
            // A panic ends it as well.
            let _ = ended.await;
        })
    }
}

/// Events of a watch were read: the thread rests before it reads more.
pub fn has_read() {
    HAS_READ.set(true);
}

/// There is nothing to do.
#[expect(clippy::disallowed_methods, reason = "that this thread alone does nothing is what it is for")]
fn rest() {
    if HAS_READ.take() {
        thread::sleep(REST);
    }
}
