//! Queue of pods to schedule. The pod with the highest priority is first, then the pod that has waited longest. A pod
//! that fits nowhere is retried with a backoff.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use kordon_core::cluster::Key;
use kordon_time::{Span, Timestamp};

/// Pods that wait to be scheduled (docs/upstream/placement-and-pressure.md#1.8).
#[derive(Debug, Default)]
pub struct SchedulingQueue {
    pods: BTreeMap<Key, Waiting>,
    /// Pods that the scheduler can try to place now.
    active: BTreeSet<Turn>,
    /// Pods that fit nowhere, by the time of their next attempt.
    parked: BTreeSet<(Timestamp, Key)>,
}

/// Sort key of a pod that can be tried now.
type Turn = (Reverse<i32>, Timestamp, Key);

#[derive(Debug)]
struct Waiting {
    priority: i32,
    /// Number of attempts that found no node for the pod.
    tries: u32,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The pod can be tried now. It has waited since this time.
    Active(Timestamp),
    /// The pod is being tried: it was returned by [`SchedulingQueue::pop`].
    Out,
    /// The pod fits nowhere for now.
    Parked {
        /// End of the backoff. The pod is not tried earlier, even if a change makes room.
        earliest: Timestamp,
        /// Time of the next attempt to place the pod.
        again: Timestamp,
    },
}

/// Backoff after the first attempt. It doubles with each attempt, up to `MAX_BACK_OFF`.
const BACK_OFF: Span = Span::from_secs(1);
const MAX_BACK_OFF: Span = Span::from_secs(10);
/// Time after which a pod is tried again even without a change that makes room.
const AT_LATEST: Span = Span::from_secs(300);

impl SchedulingQueue {
    /// Adds a pod, unless it is queued already.
    pub fn offer(&mut self, pod: &Key, priority: i32, now: Timestamp) {
        if self.pods.contains_key(pod) {
            return;
        }
        let waiting = Waiting { priority, tries: 0, state: State::Active(now) };
        self.active.insert(waiting.turn(pod, now));
        self.pods.insert(pod.clone(), waiting);
    }

    /// Removes a pod that does not wait any more.
    pub fn withdraw(&mut self, pod: &Key) {
        let Some(waiting) = self.pods.remove(pod) else { return };
        match waiting.state {
            State::Active(since) => _ = self.active.remove(&waiting.turn(pod, since)),
            State::Parked { again, .. } => _ = self.parked.remove(&(again, pod.clone())),
            State::Out => {}
        }
    }

    /// Returns the next pod to try. The caller must then withdraw or park the pod.
    pub fn pop(&mut self) -> Option<Key> {
        let (_, _, pod) = self.active.pop_first()?;
        if let Some(waiting) = self.pods.get_mut(&pod) {
            waiting.state = State::Out;
        }
        Some(pod)
    }

    /// Parks a pod that was tried and fits nowhere: schedules its next attempt.
    pub fn park(&mut self, pod: &Key, now: Timestamp) {
        let Some(waiting) = self.pods.get_mut(pod).filter(|waiting| waiting.state == State::Out) else {
            return;
        };
        let factor = 1_i64 << waiting.tries.min(10);
        let (earliest, again) = (now + (BACK_OFF * factor).min(MAX_BACK_OFF), now + AT_LATEST);
        waiting.tries += 1;
        waiting.state = State::Parked { earliest, again };
        self.parked.insert((again, pod.clone()));
    }

    /// For each parked pod that `which` selects, schedules the next attempt at the end of the pod's backoff. Called
    /// after a change that may make room.
    pub fn retry(&mut self, which: impl Fn(&Key) -> bool) {
        for (pod, waiting) in self.pods.iter_mut().filter(|(pod, _)| which(pod)) {
            if let State::Parked { earliest, again } = &mut waiting.state
                && earliest < again
            {
                self.parked.remove(&(*again, pod.clone()));
                *again = *earliest;
                self.parked.insert((*again, pod.clone()));
            }
        }
    }

    /// Activates the parked pods whose next attempt is due.
    pub fn wake(&mut self, now: Timestamp) {
        while let Some((again, pod)) = self.parked.first().filter(|(again, _)| *again <= now).cloned() {
            self.parked.remove(&(again, pod.clone()));
            if let Some(waiting) = self.pods.get_mut(&pod) {
                waiting.state = State::Active(now);
                self.active.insert(waiting.turn(&pod, now));
            }
        }
    }

    /// Time at which [`SchedulingQueue::wake`] must be called; none if no pod is parked.
    pub fn wakes_at(&self) -> Option<Timestamp> {
        self.parked.first().map(|(again, _)| *again)
    }
}

impl Waiting {
    fn turn(&self, pod: &Key, since: Timestamp) -> Turn {
        (Reverse(self.priority), since, pod.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_secs(second)
    }

    fn queue(pods: &[(&str, i32, i64)]) -> SchedulingQueue {
        let mut queue = SchedulingQueue::default();
        for (name, priority, second) in pods {
            queue.offer(&Key::new("d", name), *priority, at(*second));
        }
        queue
    }

    fn popped(queue: &mut SchedulingQueue) -> Vec<String> {
        std::iter::from_fn(|| queue.pop()).map(|pod| pod.name.to_string()).collect()
    }

    #[test]
    fn the_highest_priority_comes_first_then_the_longest_wait() {
        let mut queue = queue(&[("young", 0, 2), ("old", 0, 1), ("great", 5, 3), ("little", -5, 0)]);
        queue.offer(&Key::new("d", "old"), 0, at(9));
        assert_eq!(popped(&mut queue), ["great", "old", "young", "little"]);
    }

    #[test]
    fn a_pod_that_fits_nowhere_is_retried_after_a_change_but_not_before_its_backoff() {
        let mut queue = queue(&[("p", 0, 0)]);
        let pod = queue.pop().expect("active");
        queue.park(&pod, at(0));
        assert_eq!(queue.wakes_at(), Some(at(300)));
        queue.retry(|_| true);
        assert_eq!(queue.wakes_at(), Some(at(1)));
        queue.wake(at(0));
        assert_eq!(queue.pop(), None);
        queue.wake(at(1));
        assert_eq!(popped(&mut queue), ["p"]);
        for (second, next) in [(1, 3), (3, 7), (7, 15), (15, 25), (25, 35)] {
            queue.park(&pod, at(second));
            queue.retry(|_| true);
            assert_eq!(queue.wakes_at(), Some(at(next)));
            queue.wake(at(next));
            queue.pop();
        }
    }

    #[test]
    fn a_parked_pod_is_retried_after_a_while_without_a_change() {
        let mut queue = queue(&[("p", 0, 0)]);
        let pod = queue.pop().expect("active");
        queue.park(&pod, at(0));
        queue.retry(|_| false);
        queue.wake(at(299));
        assert_eq!(queue.pop(), None);
        queue.wake(at(300));
        assert_eq!(popped(&mut queue), ["p"]);
    }

    #[test]
    fn a_withdrawn_pod_is_not_tried_again() {
        let mut queue = queue(&[("active", 0, 0), ("parked", 1, 0), ("out", 2, 0)]);
        queue.pop();
        let parked = queue.pop().expect("active");
        queue.park(&parked, at(0));
        for name in ["active", "parked", "out"] {
            queue.withdraw(&Key::new("d", name));
        }
        queue.park(&Key::new("d", "out"), at(0));
        assert_eq!((queue.pop(), queue.wakes_at()), (None, None));
    }
}
