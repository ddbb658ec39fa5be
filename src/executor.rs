//! Executes the decisions of an engine or an operation: writes them, or only records them in a dry-run. Their outcomes
//! are inputs of the engine or operation.
//!
//! Engines and operations share [`Executor`]. [`effects`] are the writes of the node lifecycle controller, [`requests`]
//! those of an operation, and a [`hook`] is a command of the operator.

pub mod effects;
pub mod event_recorder;
pub mod guards;
pub mod hook;
mod lanes;
pub mod plan_diff;
pub mod requests;
pub mod write_context;

use std::{collections::VecDeque, future::Future};

use futures::{StreamExt, stream::FuturesUnordered};
use tokio::sync::mpsc;

use lanes::Lanes;

/// A work item: one decision of an engine or operation, such as a write. Each item has exactly one outcome.
pub trait WorkItem: Sized + Send + 'static {
    type Id: Send;
    type Outcome: Send;
    /// Key that orders items: items with the same lane run one after the other, in the order in which they were sent.
    type Lane: Clone + Ord + Send;
    /// Context for writing an item to the cluster, such as a client.
    type Writer: Send + Sync + 'static;
    const LIMITS: Limits;

    fn id(&self) -> Self::Id;
    fn lane(&self) -> Self::Lane;
    /// The item's outcome in a dry-run.
    fn recorded(&self) -> Self::Outcome;
    fn write(self, writer: &Self::Writer) -> impl Future<Output = Self::Outcome> + Send;
}

/// Limits on the items and outcomes that an executor handles at the same time.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Capacity of the channel of items. While the channel is full, the engine or operation keeps its items.
    pub sent: usize,
    /// Maximum number of items that were received and are not finished. Further items stay in the channel.
    pub accepted: usize,
    /// Maximum number of items that are written to the cluster at the same time.
    pub in_flight: usize,
    /// Capacity of the channel of outcomes. While the channel is full, the executor starts no item.
    pub outcomes: usize,
}

/// Executes the items of an owner, which is an engine or an operation. Only the outcomes tell the owner whether the
/// items were written or recorded.
#[derive(Debug)]
pub enum Executor<I: WorkItem> {
    /// Writes nothing to the cluster: every item only gets the outcome of a dry-run.
    Recorder,
    Writer(I::Writer),
}

/// The ends of the channels to an executor, for its owner (an engine or operation).
///
/// The owner has to receive outcomes while it waits for room in the channel of items (one `select!` over
/// [`mpsc::Sender::reserve`] and [`mpsc::Receiver::recv`]). Otherwise owner and executor could wait for each other.
#[derive(Debug)]
pub struct Link<I: WorkItem> {
    /// Items to execute. When the channel is full, the owner keeps its items and continues. Once this end is dropped,
    /// the executor finishes the items that it was sent and closes `outcomes`.
    pub items: mpsc::Sender<I>,
    /// Outcomes, one for each item. When the channel is full, no item starts until the owner has received outcomes.
    /// Once this end is dropped, the executor finishes only the items in flight.
    pub outcomes: mpsc::Receiver<(I::Id, I::Outcome)>,
}

impl<I: WorkItem> Executor<I> {
    /// Starts a task that executes items until [`Link::items`] is dropped.
    pub fn start(self) -> Link<I> {
        let (items, received) = mpsc::channel(I::LIMITS.sent);
        let (sender, outcomes) = mpsc::channel(I::LIMITS.outcomes);
        tokio::spawn(async move { self.run(received, sender).await });
        Link { items, outcomes }
    }

    /// Executes several items at once, but items of the same lane one after the other.
    async fn run(&self, mut items: mpsc::Receiver<I>, outcomes: mpsc::Sender<(I::Id, I::Outcome)>) {
        let mut lanes: Lanes<I::Lane, I> = Lanes::default();
        let mut in_flight = FuturesUnordered::new();
        let mut finished: VecDeque<(I::Id, I::Outcome)> = VecDeque::new();
        let mut open = true;
        loop {
            while finished.is_empty() && in_flight.len() < I::LIMITS.in_flight {
                let Some((lane, item)) = lanes.next() else { break };
                in_flight.push(async move { (lane, item.id(), self.execute(item).await) });
            }
            let accepted = lanes.waiting() + in_flight.len();
            tokio::select! {
                item = items.recv(), if open && accepted < I::LIMITS.accepted => match item {
                    Some(item) => lanes.add(item.lane(), item),
                    None => open = false,
                },
                Some((lane, id, outcome)) = in_flight.next() => {
                    lanes.finished(&lane);
                    finished.push_back((id, outcome));
                }
                room = outcomes.reserve(), if !finished.is_empty() => match room {
                    Ok(room) => room.send(finished.pop_front().expect("it is not empty")),
                    Err(_) => {
                        // The owner of the executor no longer receives outcomes, so only the items in flight are
                        // finished.
                        items.close();
                        open = false;
                        lanes = Lanes::default();
                        finished.clear();
                    }
                },
                else => return,
            }
        }
    }

    async fn execute(&self, item: I) -> I::Outcome {
        match self {
            Self::Recorder => item.recorded(),
            Self::Writer(writer) => item.write(writer).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeMap,
        sync::{Arc, Mutex},
    };

    use tokio::sync::Semaphore;

    use super::*;

    #[tokio::test]
    async fn the_recorder_answers_every_item_and_ends_with_its_owner() {
        let mut link = Executor::<Job>::Recorder.start();
        for id in 0..3 {
            link.items.send(Job { id, object: "web".into() }).await.expect("it receives items");
        }
        drop(link.items);
        let mut outcomes = Vec::new();
        while let Some(outcome) = link.outcomes.recv().await {
            outcomes.push(outcome);
        }
        assert_eq!(outcomes, [0, 1, 2].map(|id| (id, "recorded")));
    }

    #[tokio::test]
    async fn a_slow_write_delays_only_its_own_lane() {
        let mut bench = Bench::new();
        bench.send(1, "slow").await;
        bench.send(2, "slow").await;
        bench.send(3, "fast").await;
        bench.finish("fast");
        assert_eq!(bench.link.outcomes.recv().await, Some((3, "written")));
        assert_eq!(bench.started(), [1, 3], "the second write of the slow object has not started");
        bench.finish("slow");
        bench.finish("slow");
        assert_eq!(bench.link.outcomes.recv().await.map(|(id, _)| id), Some(1));
        assert_eq!(bench.link.outcomes.recv().await.map(|(id, _)| id), Some(2));
    }

    #[tokio::test]
    async fn the_number_of_writes_in_flight_is_limited() {
        let mut bench = Bench::new();
        for id in 0..40 {
            bench.send(id, &format!("pod-{id}")).await;
        }
        bench.finish("pod-0");
        bench.link.outcomes.recv().await.expect("the first is finished");
        bench.finish("pod-1");
        bench.link.outcomes.recv().await.expect("the second is finished");
        assert!(bench.started().len() <= Job::LIMITS.in_flight + 2, "{:?}", bench.started());
    }

    #[tokio::test]
    async fn nothing_starts_while_nobody_receives_outcomes() {
        let mut bench = Bench::new();
        for id in 0..40 {
            let object = format!("pod-{id}");
            bench.send(id, &object).await;
            bench.finish(&object);
        }
        // Once the channel of outcomes is full, every item that can start has started.
        while bench.link.outcomes.len() < Job::LIMITS.outcomes {
            tokio::task::yield_now().await;
        }
        assert!(
            bench.started().len() <= Job::LIMITS.outcomes + Job::LIMITS.in_flight,
            "{:?}",
            bench.started()
        );
        for _ in 0..40 {
            bench.link.outcomes.recv().await.expect("all are finished");
        }
        assert_eq!(bench.started().len(), 40);
    }

    #[tokio::test]
    async fn without_an_owner_only_what_is_in_flight_is_finished() {
        let mut bench = Bench::new();
        for id in 0..20 {
            bench.send(id, "same").await;
        }
        while bench.started().is_empty() {
            tokio::task::yield_now().await;
        }
        let (_, outcomes) = mpsc::channel(1);
        drop(std::mem::replace(&mut bench.link.outcomes, outcomes));
        bench.finish("same");
        bench.link.items.closed().await;
        assert_eq!(bench.started(), [0]);
    }

    struct Job {
        id: u64,
        object: String,
    }

    impl WorkItem for Job {
        type Id = u64;
        type Outcome = &'static str;
        type Lane = String;
        type Writer = Gates;
        const LIMITS: Limits = Limits { sent: 64, accepted: 64, in_flight: 8, outcomes: 16 };

        fn id(&self) -> u64 {
            self.id
        }

        fn lane(&self) -> String {
            self.object.clone()
        }

        fn recorded(&self) -> &'static str {
            "recorded"
        }

        async fn write(self, gates: &Gates) -> &'static str {
            gates.started.lock().unwrap().push(self.id);
            gates.of(&self.object).acquire().await.expect("gates stay").forget();
            "written"
        }
    }

    /// Writer whose writes end only when the test lets them.
    #[derive(Clone, Default)]
    struct Gates {
        gates: Arc<Mutex<BTreeMap<String, Arc<Semaphore>>>>,
        started: Arc<Mutex<Vec<u64>>>,
    }

    impl Gates {
        fn of(&self, object: &str) -> Arc<Semaphore> {
            let mut gates = self.gates.lock().unwrap();
            gates.entry(object.into()).or_insert_with(|| Arc::new(Semaphore::new(0))).clone()
        }
    }

    struct Bench {
        link: Link<Job>,
        gates: Gates,
    }

    impl Bench {
        fn new() -> Self {
            let gates = Gates::default();
            Self { link: Executor::Writer(gates.clone()).start(), gates }
        }

        async fn send(&self, id: u64, object: &str) {
            self.link.items.send(Job { id, object: object.into() }).await.expect("it receives items");
        }

        fn finish(&self, object: &str) {
            self.gates.of(object).add_permits(1);
        }

        fn started(&self) -> Vec<u64> {
            self.gates.started.lock().unwrap().clone()
        }
    }
}
