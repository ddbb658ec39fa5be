//! What the watches send to the loop: changes, and the health of the watches.

use minicbor::{Decode, Encode};

pub use kordon_core::cluster::FeedKind;
use kordon_core::cluster::{
    Change, Scope,
    encoding::{self, EncodingContext},
};
use kordon_time::{Span, Timestamp};

/// A message of the watches.
#[derive(Clone, Debug)]
pub enum FeedEvent {
    /// Changes of one watch in their order. They are batched: a list of 150,000 pods is some hundreds of messages.
    Changes(Vec<Change>),
    /// The health of a watch, sent when its state changes and at least once a second while it lists.
    Health(FeedKind, FeedHealth),
    /// What the watch of a scope is doing, sent when that changes.
    ScopeState(Box<Scope>, FeedState),
    /// The API server's clock minus ours, from its Date header, to half a second.
    ClockDifference(Span),
    /// An error for the journal, with its source and what happens next.
    Trouble(String),
}

/// The health of one watch.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct FeedHealth {
    #[n(0)]
    pub state: FeedState,
    /// When data was last received, including bookmarks.
    #[n(1)]
    pub last_heard: Option<Timestamp>,
    /// Lists after the first.
    #[n(2)]
    pub relists: u32,
    /// Requests made and bytes received since the start.
    #[n(3)]
    pub requests: u64,
    #[n(4)]
    pub bytes: u64,
}

/// What a watch is doing.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub enum FeedState {
    /// Not watched (`--no-pods`, which also leaves out the kinds that only placement reads).
    #[n(0)]
    Off,
    #[n(1)]
    Connecting,
    /// Objects of the list so far, and how many the server expects, if it said so.
    #[n(2)]
    Listing {
        #[n(0)]
        received: usize,
        #[n(1)]
        expected: Option<usize>,
    },
    #[n(3)]
    Live,
    /// Broken, or silent for too long. It is tried again.
    #[n(4)]
    Broken {
        #[n(0)]
        since: Timestamp,
        #[cbor(n(1), with = "encoding::text")]
        error: String,
    },
    /// The server forbids it, in its own words. It is tried again from time to time.
    #[n(5)]
    Forbidden {
        #[cbor(n(0), with = "encoding::text")]
        error: String,
    },
}

impl FeedState {
    /// The state in one word.
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
}
