//! Background work on threads other than the loop's thread: forecasts, plans, headroom, and the requests of operations
//! to the journal and the API server.

use std::time::Duration;

use futures::future::select_all;
use tokio::{task::JoinHandle, time::Instant};

use kordon_core::plan::Cancellation;

/// Background work of one kind. One piece of work runs at a time, and at a limited pace.
///
/// If [`Background::is_due`] returns true and there is something to compute, the owner calls [`Background::start`]. The
/// owner awaits [`Background::finished`] together with its other events. [`Background::start_waiting`] starts work that
/// waits for something and computes nothing.
///
/// The next piece of work is due after a pause of length `pace`, or a longer pause if [`BESIDE`] requires it on a very
/// large cluster. Long work that can be interrupted is done in slices ([`Slice`]). Running work is cancelled when this
/// value is dropped, or when its result is no longer needed ([`Background::supersede`]).
pub struct Background<T> {
    task: Option<JoinHandle<T>>,
    pace: Duration,
    started: Instant,
    next: Instant,
    /// Cancels the work that was started most recently.
    cancellation: Cancellation,
}

/// Share of one core that repeated work may use.
#[derive(Clone, Copy, Debug)]
pub struct CoreShare(u32);

/// Share of one core that each kind of background work may use: less than 5 %.
pub const BESIDE: CoreShare = CoreShare::one_in(20);

impl CoreShare {
    pub const fn one_in(parts: u32) -> Self {
        Self(parts)
    }

    /// Returns the pause after a piece of work that took this long.
    pub fn pause_after(self, took: Duration) -> Duration {
        took * self.0
    }
}

/// Duration of a slice of long work. A step that is in progress at the end of the slice is completed.
const SLICE: Duration = Duration::from_millis(50);

/// Tells long work that it should stop, because its result is no longer needed.
#[derive(Clone, Debug)]
pub struct Cancelled(Cancellation);

/// Error of background work that panicked, which is a fault of kordon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed;

impl<T: Send + 'static> Background<T> {
    pub fn new(pace: Duration) -> Self {
        let now = Instant::now();
        let cancellation = Cancellation::default();
        Self { task: None, pace, started: now, next: now, cancellation }
    }

    pub fn is_running(&self) -> bool {
        self.task.is_some()
    }

    /// Whether nothing runs and the pace allows the next piece of work.
    pub fn is_due(&self) -> bool {
        !self.is_running() && Instant::now() >= self.next
    }

    /// Time at which the next piece of work becomes due; `None` while work is running.
    pub fn due(&self) -> Option<Instant> {
        (!self.is_running()).then_some(self.next)
    }

    /// Starts a piece of work on another thread. `work` may check from time to time whether it is cancelled.
    pub fn start(&mut self, work: impl FnOnce(&Cancelled) -> T + Send + 'static) {
        self.cancellation = Cancellation::default();
        let cancelled = Cancelled(self.cancellation.clone());
        self.started = Instant::now();
        self.task = Some(beside(move || work(&cancelled)));
    }

    /// Cancels the running piece of work and drops its result, because it is no longer needed. [`Background::start`]
    /// may be called at once, although the pace still delays [`Background::is_due`].
    pub fn supersede(&mut self) {
        self.cancellation.cancel();
        if self.task.take().is_some() {
            self.has_stopped();
        }
    }

    fn has_stopped(&mut self) {
        self.next = Instant::now() + self.pace.max(BESIDE.pause_after(self.started.elapsed()));
    }

    /// Starts work that waits for the disk or the API server.
    pub fn start_waiting(&mut self, work: impl Future<Output = T> + Send + 'static) {
        self.started = Instant::now();
        self.task = Some(tokio::spawn(work));
    }

    /// Waits for the result of the running work. Waits forever if nothing runs. May be dropped and awaited again.
    pub async fn finished(&mut self) -> Result<T, Failed> {
        let Some(task) = &mut self.task else { return std::future::pending().await };
        let result = task.await.map_err(|_| Failed);
        self.task = None;
        self.has_stopped();
        result
    }
}

/// Background work about one subject, such as a plan request. When the subject changes, the running work is no longer
/// needed.
pub struct BackgroundAbout<S, T> {
    work: Background<T>,
    /// What the most recently started work is about.
    subject: Option<S>,
}

impl<S: PartialEq, T: Send + 'static> BackgroundAbout<S, T> {
    pub fn new(pace: Duration) -> Self {
        Self { work: Background::new(pace), subject: None }
    }

    /// Cancels the running piece of work unless it is about this subject.
    pub fn keep_only(&mut self, subject: Option<&S>) {
        if self.work.is_running() && self.subject.as_ref() != subject {
            self.work.supersede();
        }
    }

    pub fn is_running(&self) -> bool {
        self.work.is_running()
    }

    /// Whether nothing runs and the pace allows the next piece of work.
    pub fn is_due(&self) -> bool {
        self.work.is_due()
    }

    /// Whether nothing runs, and the pace allows the next piece of work about this subject. The pace does not delay work
    /// about another subject than the last.
    pub fn is_due_about(&self, subject: &S) -> bool {
        !self.is_running() && (self.subject.as_ref() != Some(subject) || self.is_due())
    }

    /// Lets the next piece of work start without a pause, whatever it is about.
    pub fn forget(&mut self) {
        self.subject = None;
    }

    /// Starts a piece of work, as [`Background::start`] does.
    pub fn start(&mut self, subject: S, work: impl FnOnce(&Cancelled) -> T + Send + 'static) {
        self.subject = Some(subject);
        self.work.start(work);
    }

    /// Waits for the result of the running work. Waits forever if nothing runs. May be dropped and awaited again.
    ///
    /// # Errors
    /// The work panicked.
    pub async fn finished(&mut self) -> Result<T, Failed> {
        self.work.finished().await
    }
}

impl<T> Drop for Background<T> {
    fn drop(&mut self) {
        self.cancellation.cancel();
    }
}

/// Waits until one of several [`Background`]s has finished, and removes it from the list. Waits forever if the list is
/// empty. May be dropped and awaited again.
pub async fn first_finished<T: Send + 'static>(pieces: &mut Vec<Background<T>>) -> Result<T, Failed> {
    if pieces.is_empty() {
        return std::future::pending().await;
    }
    let finished = pieces.iter_mut().map(|piece| Box::pin(piece.finished()));
    let (result, place, _) = select_all(finished).await;
    pieces.swap_remove(place);
    result
}

impl Cancelled {
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Returns the cancellation for work that is not done in slices.
    pub const fn cancellation(&self) -> &Cancellation {
        &self.0
    }

    /// Starts a slice of the work, which ends early if the work is cancelled.
    pub fn slice(&self) -> Slice {
        Slice { cancelled: self.clone(), started: Instant::now() }
    }
}

/// A slice of a long piece of work.
#[derive(Clone, Debug)]
pub struct Slice {
    cancelled: Cancelled,
    started: Instant,
}

impl Slice {
    /// Whether the work should be interrupted.
    pub fn is_over(&self) -> bool {
        self.cancelled.is_cancelled() || self.started.elapsed() >= SLICE
    }
}

/// Runs work on another thread, with a lower priority than the loop.
fn beside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    run_beside(Box::new(work))
}

/// Runs boxed work on another thread. Because of the box, tokio's code is compiled once for each type of result, not
/// for each closure.
fn run_beside<T: Send + 'static>(work: Box<dyn FnOnce() -> T + Send>) -> JoinHandle<T> {
    tokio::task::spawn_blocking(|| {
        give_way();
        work()
    })
}

/// Lowers the priority of this thread. If there are too few cores, the threads of the loop and of its keys then get a
/// core first. Does nothing except on Linux, where each thread has its own priority.
pub fn give_way() {
    #[cfg(target_os = "linux")]
    {
        const NICE: i32 = 10;
        // If the system refuses, this thread keeps the same priority as the others.
        let _ = rustix::process::setpriority_process(None, NICE);
    }
}

/// Drops a large value on another thread, so that keys are not delayed.
pub fn drop_in_background<T: Send + 'static>(value: T) {
    drop(beside(move || drop(value)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_piece_of_work_waits_for_the_pace_and_for_the_one_before() {
        let mut background = Background::new(Duration::from_secs(30));
        assert!(background.is_due());
        background.start(|_| 7);
        assert!(background.is_running() && !background.is_due(), "one at a time");
        assert_eq!(background.finished().await, Ok(7));
        assert!(!background.is_running() && !background.is_due(), "the pace");
        tokio::time::advance(Duration::from_secs(31)).await;
        assert!(background.is_due());
    }

    #[tokio::test(start_paused = true)]
    async fn the_pace_does_not_delay_work_about_another_subject() {
        let mut background = BackgroundAbout::new(Duration::from_secs(30));
        background.start("web", |_| 7);
        assert!(!background.is_due_about(&"db"), "one at a time");
        assert_eq!(background.finished().await, Ok(7));
        assert!(!background.is_due_about(&"web") && background.is_due_about(&"db"));
        background.forget();
        assert!(background.is_due_about(&"web"));
    }

    #[tokio::test(start_paused = true)]
    async fn slices_end_in_time_and_leave_most_of_a_core() {
        let mut background = Background::new(Duration::ZERO);
        background.start(Cancelled::slice);
        let slice = background.finished().await.expect("it does not panic");
        assert!(!slice.is_over());
        tokio::time::advance(SLICE).await;
        assert!(slice.is_over());

        background.start_waiting(async move {
            tokio::time::sleep(SLICE).await;
            slice
        });
        background.finished().await.expect("it does not panic");
        let pause = BESIDE.pause_after(SLICE);
        assert!(SLICE.as_secs_f64() / (SLICE + pause).as_secs_f64() < 0.05, "5 % of a core");
        tokio::time::advance(pause - SLICE).await;
        assert!(!background.is_due());
        tokio::time::advance(SLICE).await;
        assert!(background.is_due());
    }

    #[tokio::test]
    async fn work_that_panics_is_reported_and_the_next_piece_may_run() {
        let mut background: Background<()> = Background::new(Duration::ZERO);
        background.start(|_| panic!("a fault"));
        assert_eq!(background.finished().await, Err(Failed));
        background.start(|_| ());
        assert_eq!(background.finished().await, Ok(()));
    }

    #[tokio::test]
    async fn the_first_of_several_to_finish_is_removed_and_the_others_run_on() {
        let (release, released) = tokio::sync::oneshot::channel::<u8>();
        let mut pieces = [Background::new(Duration::ZERO), Background::new(Duration::ZERO)];
        pieces[0].start_waiting(async { released.await.expect("it is released") });
        pieces[1].start_waiting(async { 2 });
        let mut pieces = Vec::from(pieces);
        assert_eq!(first_finished(&mut pieces).await, Ok(2));
        release.send(1).expect("it waits");
        assert_eq!(first_finished(&mut pieces).await, Ok(1));
        assert!(pieces.is_empty());
    }

    #[tokio::test]
    async fn superseded_work_is_cancelled_its_result_is_dropped_and_the_next_piece_starts_at_once() {
        let mut background = Background::new(Duration::from_secs(30));
        let (seen, was_cancelled) = tokio::sync::oneshot::channel();
        background.start(move |cancelled| {
            while !cancelled.is_cancelled() {
                std::thread::yield_now();
            }
            seen.send(()).expect("the test waits");
            1
        });
        background.supersede();
        assert!(!background.is_running() && !background.is_due(), "the pace holds");
        background.start(|cancelled| if cancelled.is_cancelled() { 3 } else { 2 });
        was_cancelled.await.expect("the work noticed");
        assert_eq!(background.finished().await, Ok(2));
    }

    #[tokio::test]
    async fn what_runs_is_cancelled_with_its_owner() {
        let mut background = Background::new(Duration::ZERO);
        let (seen, was_cancelled) = tokio::sync::oneshot::channel();
        background.start(move |cancelled| {
            while !cancelled.is_cancelled() {
                std::thread::yield_now();
            }
            seen.send(()).expect("the test waits");
        });
        drop(background);
        was_cancelled.await.expect("the work noticed");
    }
}
