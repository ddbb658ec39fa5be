//! The thread on which watches run. One of their own reads in turns: after what it had was read, it leaves the connections alone
//! for a while, and then reads at once what has come meanwhile. Hundreds of events a second wake us thirty times a second then,
//! as often as the screen is drawn, and a list, however fast it comes, no more than a thousand times. An event that comes alone does
//! not wait.

use std::{cell::Cell, io, panic, sync::Arc, thread, time::Duration};

use tokio::{
    runtime::{Builder, Handle},
    sync::oneshot,
    task::JoinHandle,
};

/// How long the connections are left alone.
pub const REST: Duration = Duration::from_millis(30);

/// The same while a list is read: long enough that dozens of objects come meanwhile, or the server wakes us for each.
pub const REST_IN_LIST: Duration = Duration::from_millis(1);

/// On which thread watches run.
#[derive(Clone, Debug)]
pub enum WatchThread {
    /// With the runtime of who starts them, whose clock tests and the demo control. There each watch rests by itself.
    Callers,
    /// On one of their own, for all watches of a client: a connection that one of them has opened, others use after it.
    Own(Arc<WatchRuntime>),
}

thread_local! {
    static REST_DUE: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

impl WatchThread {
    /// One of their own, which starts now. If the machine has no more threads, that of who starts them.
    pub fn own() -> Self {
        WatchRuntime::start().map_or(Self::Callers, |started| Self::Own(Arc::new(started)))
    }

    /// Makes a request on the thread on which the watches run, so that they can use its connection: one belongs to the
    /// thread that has opened it.
    pub async fn ask<T: Send + 'static>(&self, request: impl Future<Output = T> + Send + 'static) -> T {
        match self {
            Self::Own(thread) => {
                let asked = thread.handle.spawn(request).await;
                asked.unwrap_or_else(|error| panic::resume_unwind(error.into_panic()))
            }
            Self::Callers => request.await,
        }
    }

    /// Called on this thread when objects were read: one of its own rests for this long before it reads more.
    pub fn has_read(&self, rest: Duration) {
        if let Self::Own(_) = self {
            REST_DUE.set(rest);
        }
    }

    /// Runs the watches to their end.
    pub fn run(&self, watches: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        match self {
            Self::Own(thread) => thread.handle.spawn(watches),
            Self::Callers => tokio::spawn(watches),
        }
    }
}

/// A thread that runs what it is given until this is dropped.
#[derive(Debug)]
pub struct WatchRuntime {
    handle: Handle,
    #[expect(dead_code, reason = "the thread ends when it is dropped")]
    in_use: oneshot::Sender<()>,
}

impl WatchRuntime {
    fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().on_thread_park(rest).build()?;
        let (handle, (in_use, dropped)) = (runtime.handle().clone(), oneshot::channel::<()>());
        let run = move || {
            // Nothing is sent.
            let _ = runtime.block_on(dropped);
        };
        thread::Builder::new().name("watches".into()).spawn(run)?;
        Ok(Self { handle, in_use })
    }
}

/// There is nothing to do.
#[expect(clippy::disallowed_methods, reason = "that this thread alone does nothing is what it is for")]
fn rest() {
    let due = REST_DUE.take();
    if !due.is_zero() {
        thread::sleep(due);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection ends with the thread that has opened it: watches that begin when others end would lose theirs.
    #[tokio::test]
    async fn all_watches_of_a_client_run_on_one_thread_that_outlives_each_of_them() {
        let watches = WatchThread::own();
        let first = watches.ask(async { thread::current().id() }).await;
        assert_ne!(first, thread::current().id());
        for _ in 0..2 {
            let (sender, id) = oneshot::channel();
            let watch = watches.run(async { sender.send(thread::current().id()).expect("somebody waits") });
            assert_eq!(id.await, Ok(first));
            watch.await.expect("it ends");
        }
    }
}
