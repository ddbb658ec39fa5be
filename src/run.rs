//! The loop of the dashboard: one task, one owner of state, no locks.
