//! Objects that are not watched, but read by one request when somebody asks about them.

use super::names::Name;

/// All objects of a kind, as one request has read them.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum FetchedList<T> {
    #[default]
    NotRead,
    /// The server does not serve the kind in the version that kordon reads.
    NotServed,
    /// The objects cannot be read, for this reason.
    Unreadable(Name),
    Read(Vec<T>),
}
