//! Runs the engine forward on a virtual clock over a copy of the cluster.
