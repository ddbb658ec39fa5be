//! Where a pod would go: the scheduler's filters, scores and preemption over a snapshot.
