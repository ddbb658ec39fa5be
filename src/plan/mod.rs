//! What an operator's action would do, worked out over a snapshot: cordon, drain, taint, evict.
