//! Plain objects and their indexes; `Cluster::apply` is the only way in; copies are cheap.
