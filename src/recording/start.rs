//! The start of a recording: settings and metadata, from which a model starts.

use minicbor::{Decode, Encode};

use super::{
    RecordingError, Redactor,
    block::{self, BlockKind},
};
use kordon_core::{
    cluster::encoding::{self, Dictionary, EncodingContext},
    engine::{Origin, ServerVersion, Settings},
};
use kordon_time::{Span, Timestamp};

/// Settings from which a model starts, and metadata of the recording.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct RecordingStart {
    /// Version of kordon that made the recording.
    #[cbor(n(0), with = "encoding::text")]
    pub kordon: String,
    /// Time at which the recording started, by the recorder's clock.
    #[n(1)]
    pub at: Timestamp,
    /// The kubeconfig context, or `demo`.
    #[cbor(n(2), with = "encoding::text")]
    pub context: String,
    /// The API server's address; empty if the recording is redacted.
    #[cbor(n(3), with = "encoding::text")]
    pub server: String,
    /// The user's name as the server reports it; empty if the server does not report it or the recording is redacted.
    #[cbor(n(4), with = "encoding::text")]
    pub identity: String,
    /// The server's release, for example `v1.36.3`; empty if the server does not report it.
    #[cbor(n(5), with = "encoding::text")]
    pub server_version: String,
    /// The Kubernetes release (major and minor version) whose rules the controller follows.
    #[n(6)]
    release: (u32, u32),
    /// The controller's settings, as flags.
    #[n(7)]
    flags: Vec<RecordedFlag>,
    /// Interval between keyframes.
    #[n(8)]
    pub keyframe_every: Span,
    /// Whether names in the recording are hashed.
    #[n(9)]
    pub redacted: bool,
}

/// One flag of the controller, with its value and the origin of the value.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
struct RecordedFlag {
    #[cbor(n(0), with = "encoding::text")]
    flag: String,
    /// Value in the form that [`Settings::set`] parses.
    #[cbor(n(1), with = "encoding::text")]
    value: String,
    #[n(2)]
    origin: Origin,
}

impl RecordingStart {
    /// Returns the start of a recording that begins at `at`, with these settings of the controller. The fields that
    /// identify the cluster (`context`, `server`, `identity`) are empty.
    pub fn new(settings: &Settings, keyframe_every: Span, at: Timestamp) -> Self {
        let flag =
            |(flag, value, origin): (&str, String, Origin)| RecordedFlag { flag: flag.into(), value, origin };
        Self {
            kordon: env!("CARGO_PKG_VERSION").into(),
            at,
            context: String::new(),
            server: String::new(),
            identity: String::new(),
            server_version: String::new(),
            release: (settings.version.major, settings.version.minor),
            flags: settings.flags().into_iter().map(flag).collect(),
            keyframe_every,
            redacted: false,
        }
    }

    /// Returns the first bytes of the recording: the header of the file, and the first block.
    ///
    /// # Errors
    /// The start cannot be encoded or compressed.
    pub fn head(&self) -> Result<Vec<u8>, RecordingError> {
        let mut raw = Vec::new();
        // The default dictionary of the encoder redacts no texts. Names that identify the cluster are removed by
        // `redacted` instead.
        encoding::encode_into(self, &mut raw, &mut Dictionary::default())
            .map_err(|error| RecordingError::Encoding(error.to_string()))?;
        let block = block::block(BlockKind::Start, &raw, (self.at, self.at))?;
        Ok([&block::file_header()[..], &block].concat())
    }

    /// Returns a copy without names: the context is hashed, and the server and the user are empty.
    #[must_use]
    pub fn redacted(self, redactor: &Redactor) -> Self {
        let context = redactor.hash(&self.context);
        Self { context, server: String::new(), identity: String::new(), redacted: true, ..self }
    }

    /// Returns the controller's settings, with the origin of each. A flag keeps its default if this version of kordon
    /// does not know it or refuses its value.
    pub fn settings(&self) -> Settings {
        let (major, minor) = self.release;
        let mut settings = Settings::defaults(ServerVersion::new(major, minor));
        for RecordedFlag { flag, value, origin } in &self.flags {
            // An error is ignored, because the recording may come from another version of kordon.
            let _ = settings.set(flag, value, *origin);
        }
        settings
    }
}
