//! When drains and cordons of nodes began.

use crate::cluster::{Cluster, ForeignDrain, Node};
use kordon_time::Timestamp;

/// Returns when the drain of a node began: the time that a component of another project noted on the node, or else the
/// time of the cordon. `None` if neither time is known.
pub fn drain_began(cluster: &Cluster, node: &Node) -> Option<Timestamp> {
    let foreign = ForeignDrain::find(cluster, node).and_then(|drain| drain.since);
    foreign.or_else(|| cordoned_at(cluster, node))
}

/// Returns when the node was cordoned, according to kordon's note or to the taint of the cordon. `None` if neither has
/// a time.
pub fn cordoned_at(cluster: &Cluster, node: &Node) -> Option<Timestamp> {
    let noted = node.cordon().map(|note| note.at);
    let tainted = || node.cordon_taint()?.time_added;
    noted.or_else(|| tainted().map(|at| cluster.local(at)))
}
