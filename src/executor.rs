//! Consumes effects: records them (dry-run) or carries them out (enforce); outcomes come back as input.

pub mod requests;
pub mod guards;
pub mod write_context;

use std::{
    collections::{BTreeMap, VecDeque},
    future::Future,
};

use futures::{StreamExt, stream::FuturesUnordered};
use kube::Client;
use tokio::sync::mpsc;

use crate::{
    clock::Clock,
    engine::{Effect, EffectId, Outcome, Write},
    k8s,
};

/// What becomes of effects. Who sends them cannot tell the two apart but by their outcomes.
#[derive(Clone)]
pub enum EffectExecutor {
    /// Nothing goes up: every effect is taken down as [`Outcome::Recorded`].
    Recorder,
    /// Every effect is written with this client, dated by this clock.
    Enforcer(Client, Clock),
}

/// Both ends that the owner of an engine holds of its executor.
///
/// The owner has to receive outcomes while it waits for room among the effects (one `select!` over
/// [`mpsc::Sender::reserve`] and [`mpsc::Receiver::recv`]), or the two could wait for each other.
#[derive(Debug)]
pub struct EffectLink {
    /// When full, the owner keeps its effects and goes on: the executor is as busy as it may be. Once dropped, the
    /// executor finishes what it was given and closes `outcomes`.
    pub effects: mpsc::Sender<Effect>,
    /// One for each effect. When full, nothing new is begun until the owner has caught up.
    pub outcomes: mpsc::Receiver<(EffectId, Outcome)>,
}

/// Effects sent and not yet taken.
const EFFECTS: usize = 256;

/// Outcomes not yet received.
const OUTCOMES: usize = 256;

/// Effects taken and not yet finished.
const WAITING: usize = 1024;

/// Requests at once: as many as upstream has workers for them.
const AT_ONCE: usize = 8;

impl EffectExecutor {
    /// Starts a task that works off effects until `effects` is dropped.
    pub fn start(self) -> EffectLink {
        let (effects, taken) = mpsc::channel(EFFECTS);
        let (told, outcomes) = mpsc::channel(OUTCOMES);
        match self {
            Self::Recorder => tokio::spawn(work(taken, told, async |_: Effect| Outcome::Recorded)),
            Self::Enforcer(client, clock) => tokio::spawn(work(taken, told, move |effect: Effect| {
                let client = client.clone();
                async move { k8s::write::carry_out(&client, &effect.write, clock.now()).await }
            })),
        };
        EffectLink { effects, outcomes }
    }
}

/// Works off effects, several at once, those of one object in their order.
async fn work<F: Future<Output = Outcome>>(
    mut effects: mpsc::Receiver<Effect>,
    outcomes: mpsc::Sender<(EffectId, Outcome)>,
    carry_out: impl Fn(Effect) -> F,
) {
    let mut lanes = Lanes::default();
    let mut under_way = FuturesUnordered::new();
    let mut finished: VecDeque<(EffectId, Outcome)> = VecDeque::new();
    let mut open = true;
    loop {
        while finished.len() < OUTCOMES && under_way.len() < AT_ONCE {
            let Some((lane, effect)) = lanes.take() else { break };
            let (id, done) = (effect.id, carry_out(effect));
            under_way.push(async move { (lane, id, done.await) });
        }
        tokio::select! {
            effect = effects.recv(), if open && lanes.waiting < WAITING => match effect {
                Some(effect) => lanes.add(effect),
                None => open = false,
            },
            Some((lane, id, outcome)) = under_way.next() => {
                lanes.done(&lane);
                finished.push_back((id, outcome));
            }
            room = outcomes.reserve(), if !finished.is_empty() => {
                let Ok(room) = room else { return };
                if let Some(outcome) = finished.pop_front() {
                    room.send(outcome);
                }
            }
            else => return,
        }
    }
}

/// Effects by the object they write to: a lane for each, in which one effect is under way at a time.
#[derive(Default)]
struct Lanes {
    /// A lane is here while anything of it waits or is under way.
    lanes: BTreeMap<String, VecDeque<Effect>>,
    /// The lanes that may go on, the one that has waited longest first.
    ready: VecDeque<String>,
    waiting: usize,
}

impl Lanes {
    fn add(&mut self, effect: Effect) {
        let lane = lane(&effect.write);
        self.waiting += 1;
        let is_new = !self.lanes.contains_key(&lane);
        self.lanes.entry(lane.clone()).or_default().push_back(effect);
        if is_new {
            self.ready.push_back(lane);
        }
    }

    fn take(&mut self) -> Option<(String, Effect)> {
        let lane = self.ready.pop_front()?;
        let effect = self.lanes.get_mut(&lane)?.pop_front()?;
        self.waiting -= 1;
        Some((lane, effect))
    }

    /// What was taken of the lane is finished.
    fn done(&mut self, lane: &str) {
        match self.lanes.get(lane) {
            Some(waiting) if !waiting.is_empty() => self.ready.push_back(lane.into()),
            Some(_) => _ = self.lanes.remove(lane),
            None => {}
        }
    }
}

/// The object; its events have a lane of their own, for nothing should wait for them.
fn lane(write: &Write) -> String {
    match write {
        Write::RecordEvent(event) => format!("event/{}", event.object),
        Write::MarkUnknown { .. }
        | Write::SwapTaints { .. }
        | Write::SetLabels { .. }
        | Write::MarkPodNotReady { .. }
        | Write::MarkPodLost { .. }
        | Write::DeletePod { .. } => write.object(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tokio::sync::Semaphore;

    use super::*;
    use crate::{
        cluster::{Key, Uid, Version},
        engine::{Cause, EventObject, RecordedEvent},
        time::Timestamp,
    };

    #[tokio::test]
    async fn the_recorder_answers_every_effect_and_ends_with_its_owner() {
        let mut link = EffectExecutor::Recorder.start();
        for id in 0..3 {
            link.effects.send(effect(id, "web")).await.expect("it takes effects");
        }
        drop(link.effects);
        let mut told = Vec::new();
        while let Some(outcome) = link.outcomes.recv().await {
            told.push(outcome);
        }
        assert_eq!(told, [0, 1, 2].map(|id| (EffectId(id), Outcome::Recorded)));
    }

    #[tokio::test]
    async fn a_slow_write_holds_up_its_own_object_only() {
        let mut bench = Bench::new();
        bench.send(effect(1, "slow")).await;
        bench.send(effect(2, "slow")).await;
        bench.send(effect(3, "fast")).await;
        bench.finish("fast");
        assert_eq!(bench.outcomes.recv().await, Some((EffectId(3), Outcome::Done)));
        assert_eq!(bench.begun(), [1, 3], "the second write of the slow object has not begun");
        bench.finish("slow");
        bench.finish("slow");
        assert_eq!(bench.outcomes.recv().await.map(|(id, _)| id), Some(EffectId(1)));
        assert_eq!(bench.outcomes.recv().await.map(|(id, _)| id), Some(EffectId(2)));
    }

    #[tokio::test]
    async fn no_more_than_a_few_writes_are_under_way() {
        let mut bench = Bench::new();
        for id in 0..40 {
            bench.send(effect(id, &format!("pod-{id}"))).await;
        }
        bench.finish("pod-0");
        bench.outcomes.recv().await.expect("the first is finished");
        bench.finish("pod-1");
        bench.outcomes.recv().await.expect("the second is finished");
        assert!(bench.begun().len() <= AT_ONCE + 2, "{:?}", bench.begun());
    }

    #[test]
    fn events_do_not_hold_up_what_they_are_about() {
        let pod = Key::new("default", "web");
        let event = RecordedEvent {
            object: EventObject::Pod(pod),
            warning: false,
            reason: "TaintManagerEviction",
            message: String::new(),
            source: "test",
        };
        assert_ne!(lane(&Write::RecordEvent(event)), lane(&effect(1, "web").write));
    }

    fn effect(id: u64, pod: &str) -> Effect {
        Effect {
            id: EffectId(id),
            at: Timestamp::EPOCH,
            write: Write::MarkPodNotReady {
                pod: Key::new("default", pod),
                uid: Uid::default(),
                version: Version(1),
                node: "n1".into(),
            },
            why: Cause::NodeNotReady.into(),
        }
    }

    /// Works off effects, each of which ends when the test says so.
    struct Bench {
        effects: mpsc::Sender<Effect>,
        outcomes: mpsc::Receiver<(EffectId, Outcome)>,
        gates: Arc<Mutex<BTreeMap<String, Arc<Semaphore>>>>,
        begun: Arc<Mutex<Vec<u64>>>,
    }

    impl Bench {
        fn new() -> Self {
            let (effects, taken) = mpsc::channel(64);
            let (told, outcomes) = mpsc::channel(64);
            let bench = Self { effects, outcomes, gates: Arc::default(), begun: Arc::default() };
            let (gates, begun) = (bench.gates.clone(), bench.begun.clone());
            tokio::spawn(work(taken, told, move |effect: Effect| {
                begun.lock().unwrap().push(effect.id.0);
                let gate = gate(&gates, &effect.write.object());
                async move {
                    gate.acquire().await.expect("gates stay").forget();
                    Outcome::Done
                }
            }));
            bench
        }

        async fn send(&self, effect: Effect) {
            self.effects.send(effect).await.expect("it takes effects");
        }

        fn finish(&self, pod: &str) {
            gate(&self.gates, &format!("pod/default/{pod}")).add_permits(1);
        }

        fn begun(&self) -> Vec<u64> {
            self.begun.lock().unwrap().clone()
        }
    }

    fn gate(gates: &Mutex<BTreeMap<String, Arc<Semaphore>>>, object: &str) -> Arc<Semaphore> {
        let mut gates = gates.lock().unwrap();
        gates.entry(object.into()).or_insert_with(|| Arc::new(Semaphore::new(0))).clone()
    }
}
