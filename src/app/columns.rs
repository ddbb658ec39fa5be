//! The columns that lists can be sorted by.

use super::filter::Filter;
use crate::{model::Revision, time::Timestamp};

/// The column that a list is sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sort<C> {
    pub column: C,
    pub reversed: bool,
}

impl<C: Copy + PartialEq> Sort<C> {
    /// Goes on to the next column, in its natural direction.
    pub fn next(&mut self, all: &[C]) {
        let place = all.iter().position(|column| *column == self.column).map_or(0, |place| place + 1);
        *self = Self { column: all[place % all.len()], reversed: false };
    }

    pub fn flip(&mut self) {
        self.reversed = !self.reversed;
    }
}

/// Declares the columns of one table, with their titles, in the order in which sorting goes through them.
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
    /// Columns of the nodes. Trouble: what is due first, then what is not ready, then what is marked in any way.
    NodeColumn {
        Trouble = "trouble", Name = "node", Zone = "zone", Roles = "roles", Ready = "ready", Since = "since",
        Heartbeat = "heartbeat", Due = "next", Stage = "eviction", Pods = "pods", Cpu = "cpu", Memory = "memory",
        Taints = "taints", Conditions = "conditions", Address = "address", Version = "kubelet", Kind = "type",
        Age = "age",
    }
}

columns! {
    /// Columns of the zones.
    ZoneColumn { Zone = "zone", State = "state", Size = "size", NotReady = "not ready", Rate = "rate", Queue = "queue" }
}

columns! {
    /// Columns of the evictions.
    EvictionColumn { Due = "in", Pod = "pod", Node = "node", State = "state" }
}

columns! {
    /// Columns of the pods of a node.
    PodColumn {
        Name = "pod", Due = "eviction", Ready = "ready", Phase = "phase", Owner = "owner", Priority = "priority",
        Cpu = "cpu", Memory = "memory", Age = "age",
    }
}

/// What the order of a list was made by, and how far what it hangs on had come: while that stays the same, so does the
/// order, and nothing is sorted. A key that only moves never sorts; nor do signs of life, of which there are hundreds a
/// second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortBasis<C> {
    pub(super) sort: Sort<C>,
    pub(super) filter: Filter,
    pub(super) revision: Revision,
    /// When what is shown was taken; none where the order hangs on nothing that changes all the time.
    pub(super) taken: Option<Timestamp>,
}
