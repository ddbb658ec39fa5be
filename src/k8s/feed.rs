//! Messages from the watches to the loop: changes, and the health of the watches.

use minicbor::{Decode, Encode};

pub use kordon_core::cluster::FeedKind;
use kordon_core::cluster::{
    Change, Known, Scope,
    encoding::{self, EncodingContext},
};
use kordon_time::{Span, Timestamp};

/// A message of the watches.
#[derive(Clone, Debug)]
pub enum FeedEvent {
    /// Changes of one watch, in order. They are batched: a list of 150,000 pods is a few hundred messages.
    Changes(Vec<Change>),
    /// Health of a watch. It is sent when the state changes, and at least once a second while the watch lists.
    Health(FeedKind, FeedHealth),
    /// State of a watch that is limited to a [`Scope`]. It is sent when the state changes.
    ScopeState(Box<Scope>, FeedState),
    /// The API server's clock minus ours, from its Date header, accurate to half a second.
    ClockDifference(Span),
    /// An error for the journal. The text names the source and what happens next.
    Trouble(String),
}

/// The health of one watch.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct FeedHealth {
    #[n(0)]
    pub state: FeedState,
    /// Time at which data, including bookmarks, was last received.
    #[n(1)]
    pub last_heard: Option<Timestamp>,
    /// Number of times that all objects were listed again after the first list.
    #[n(2)]
    pub relists: u32,
    /// Requests made and bytes received since the watch started.
    #[n(3)]
    pub requests: u64,
    #[n(4)]
    pub bytes: u64,
}

/// State of a watch.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub enum FeedState {
    /// The kind is not watched. `--no-pods` excludes the pods and the kinds that only placement reads.
    #[n(0)]
    Off,
    #[n(1)]
    Connecting,
    /// The watch lists. The fields are the number of objects received so far, and the expected number if the server
    /// reported one.
    #[n(2)]
    Listing {
        #[n(0)]
        received: usize,
        #[n(1)]
        expected: Option<usize>,
    },
    #[n(3)]
    Live,
    /// The connection is broken, or was silent for too long. The watch is retried.
    #[n(4)]
    Broken {
        #[n(0)]
        since: Timestamp,
        #[cbor(n(1), with = "encoding::text")]
        error: String,
    },
    /// The kind is forbidden; `error` has the server's words. The watch is retried from time to time.
    #[n(5)]
    Forbidden {
        #[cbor(n(0), with = "encoding::text")]
        error: String,
    },
}

impl FeedState {
    /// The state of the watch in one word.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Connecting => "connecting",
            Self::Listing { .. } => "listing",
            Self::Live => "live",
            Self::Broken { .. } => "broken",
            Self::Forbidden { .. } => "forbidden",
        }
    }

    /// Whether the objects were read from files that do not have this kind.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Forbidden { error } if Known::from_refusal(error) == Known::Absent)
    }
}
