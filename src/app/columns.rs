//! The columns that lists can be sorted by.

use super::filter::Filter;
use crate::model::Revision;
use kordon_time::Timestamp;

/// The column that a list is sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sort<C> {
    pub column: C,
    pub reversed: bool,
}

impl<C: Copy + PartialEq> Sort<C> {
    /// Sorts by the next column, in the natural direction of that column.
    pub fn next(&mut self, all: &[C]) {
        let place = all.iter().position(|column| *column == self.column).map_or(0, |place| place + 1);
        *self = Self { column: all[place % all.len()], reversed: false };
    }

    pub fn flip(&mut self) {
        self.reversed = !self.reversed;
    }
}

/// Declares the columns of one table with their titles, in the order in which the sort key cycles through them.
macro_rules! columns {
    ($(#[$doc:meta])* $type:ident { $first:ident = $first_title:literal, $($variant:ident = $title:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $type { #[default] $first, $($variant),+ }

        impl $type {
            pub const ALL: &[Self] = &[Self::$first, $(Self::$variant),+];

            pub const fn title(self) -> &'static str {
                match self {
                    Self::$first => $first_title,
                    $(Self::$variant => $title),+
                }
            }
        }
    };
}

columns! {
    /// Columns of the nodes. `State` sorts by urgency, then by the time of the node's next predicted event.
    NodeColumn {
        State = "state", Name = "node", Zone = "zone", Roles = "roles", Heartbeat = "heartbeat", Due = "next", Pods = "pods", Cpu = "cpu req", Memory = "mem req",
        Taints = "taints", Conditions = "conditions", Address = "address", Version = "kubelet", Kernel = "kernel", Kind = "type",
        Age = "age",
    }
}

columns! {
    /// Columns of the zones.
    ZoneColumn { Zone = "zone", State = "state", Size = "size", NotReady = "not ready", Rate = "rate", Queue = "queue" }
}

columns! {
    /// Columns of the evictions.
    EvictionColumn { Due = "in", Pod = "pod", Node = "node", Outcome = "outcome" }
}

columns! {
    /// Columns of the pods of a node.
    PodColumn {
        Name = "pod", Due = "eviction", Ready = "ready", Phase = "phase", Owner = "owner", Priority = "priority",
        Cpu = "cpu", Memory = "memory", Age = "age",
    }
}

/// Inputs of a list's order. The list is sorted again only when an input changes. A moved selection changes no input.
/// Heartbeats change none either, although hundreds arrive in a second from a large cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortBasis<C> {
    pub(super) sort: Sort<C>,
    pub(super) filter: Filter,
    pub(super) revision: Revision,
    /// Time at which the views were computed. Set only if the list is sorted by a column that changes constantly:
    /// heartbeat, pods, cpu or memory.
    pub(super) taken: Option<Timestamp>,
}
