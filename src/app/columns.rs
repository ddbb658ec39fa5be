//! The columns that lists can be sorted by.

use super::filter::Filter;
use crate::model::Revision;
use kordon_time::Timestamp;

/// The direction in which a list is sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortDirection {
    /// The natural direction of the column.
    Natural,
    Reversed,
    /// The values fall from row to row.
    Falling,
}

/// The column that a list is sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sort<C> {
    pub column: C,
    pub reversed: bool,
}

impl<C: SortColumn> Sort<C> {
    pub fn new(column: C, direction: SortDirection) -> Self {
        let reversed = match direction {
            SortDirection::Natural => false,
            SortDirection::Reversed => true,
            SortDirection::Falling => !C::DESCENDING.contains(&column),
        };
        Self { column, reversed }
    }

    /// Sorts by the next column, in the natural direction of that column.
    pub fn next(&mut self) {
        let place = C::ALL.iter().position(|column| *column == self.column).map_or(0, |place| place + 1);
        *self = Self { column: C::ALL[place % C::ALL.len()], reversed: false };
    }

    pub fn flip(&mut self) {
        self.reversed = !self.reversed;
    }

    /// Whether the values of the column fall from row to row.
    pub fn is_descending(&self) -> bool {
        C::DESCENDING.contains(&self.column) != self.reversed
    }
}

/// A column that a list can be sorted by.
pub trait SortColumn: Copy + Default + PartialEq + 'static {
    /// All columns of the table, in the order in which the sort key cycles through them.
    const ALL: &'static [Self];

    /// Columns whose natural direction is descending: the largest number, share or amount, the longest time since, and
    /// the most urgent state come first.
    const DESCENDING: &'static [Self];

    fn title(self) -> &'static str;

    /// The capital letter that sorts by this column.
    fn letter(self) -> char;

    fn from_title(title: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|column| column.title() == title)
    }
}

/// Declares the columns of one table with their titles and letters, and those that are descending by nature.
macro_rules! columns {
    ($(#[$doc:meta])* $type:ident { $first:ident = $first_title:literal $first_letter:literal, $($variant:ident = $title:literal $letter:literal),+ $(,)? } $(descending: $($falling:ident),+)?) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $type { #[default] $first, $($variant),+ }

        impl SortColumn for $type {
            const ALL: &'static [Self] = &[Self::$first, $(Self::$variant),+];

            const DESCENDING: &'static [Self] = &[$($(Self::$falling),+)?];

            fn title(self) -> &'static str {
                match self {
                    Self::$first => $first_title,
                    $(Self::$variant => $title),+
                }
            }

            fn letter(self) -> char {
                match self {
                    Self::$first => $first_letter,
                    $(Self::$variant => $letter),+
                }
            }
        }
    };
}

columns! {
    /// Columns of the nodes. `State` sorts by urgency, then by the time of the node's next predicted event.
    NodeColumn {
        State = "state" 'S', Name = "node" 'N', Zone = "zone" 'Z', Roles = "roles" 'R', Heartbeat = "heartbeat" 'H',
        Due = "next" 'E', Pods = "pods" 'P', Cpu = "cpu req" 'C', Memory = "mem req" 'M', Taints = "taints" 'T',
        Conditions = "conditions" 'O', Address = "address" 'I', Version = "kubelet" 'K', Kernel = "kernel" 'L',
        Kind = "type" 'D', Age = "age" 'A',
    }
    descending: State, Heartbeat, Pods, Cpu, Memory, Taints, Conditions
}

columns! {
    /// Columns of the zones.
    ZoneColumn {
        Zone = "zone" 'N', State = "state" 'S', Size = "size" 'Z', NotReady = "not ready" 'O', Rate = "rate" 'R',
        Queue = "queue" 'Q',
    }
    descending: State, Size, NotReady, Queue
}

columns! {
    /// Columns of the evictions.
    EvictionColumn { Due = "in" 'I', Pod = "pod" 'N', Node = "node" 'O', Outcome = "outcome" 'S' }
    descending: Outcome
}

columns! {
    /// Columns of the Events. `Last` sorts by the time of the last occurrence, `Type` has Warnings first.
    EventColumn {
        Last = "last" 'A', Type = "type" 'T', Reason = "reason" 'R', Object = "object" 'N', Count = "count" 'C',
        Source = "source" 'S',
    }
    descending: Type, Count
}

columns! {
    /// Columns of the budgets. `Room` sorts by urgency.
    BudgetColumn {
        Room = "room" 'R', Name = "budget" 'N', Pods = "pods" 'P', Blocks = "blocks" 'O', Drains = "drains" 'D',
    }
    descending: Pods, Blocks, Drains
}

columns! {
    /// Columns of the pods that wait for a node. `For` has the longest waiting first.
    PendingColumn { For = "for" 'A', Pod = "pod" 'N', Why = "why" 'S' }
}

columns! {
    /// Columns of the pods that left. `Ago` has the latest first, `Kind` the most severe.
    DepartureColumn { Ago = "ago" 'A', Kind = "kind" 'K', Pod = "pod" 'N', Node = "node" 'O' }
}

columns! {
    /// Columns of the findings of the audit. `Cause` sorts by severity.
    AuditColumn { Cause = "cause" 'S', Object = "object" 'N', Pods = "pods" 'P', Nodes = "nodes" 'O' }
}

columns! {
    /// Columns of the pods of a node.
    PodColumn {
        Name = "pod" 'N', Due = "eviction" 'E', Ready = "ready" 'R', Phase = "phase" 'S', Owner = "owner" 'W',
        Priority = "priority" 'P', Cpu = "cpu" 'C', Memory = "memory" 'M', Age = "age" 'A',
    }
    descending: Priority, Cpu, Memory
}

/// Inputs of a list's order. The list is sorted again only when an input changes. Moving the selection changes no
/// input, and neither do heartbeats, of which hundreds arrive in a second from a large cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortBasis<C> {
    pub(super) sort: Sort<C>,
    pub(super) filter: Filter,
    pub(super) revision: Revision,
    /// Time at which the views were computed. Set only if the list is sorted by a column that changes constantly:
    /// heartbeat, pods, cpu or memory.
    pub(super) taken: Option<Timestamp>,
}
