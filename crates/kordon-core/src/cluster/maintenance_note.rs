//! The annotation of a node that is in a maintenance. It names the maintenance and the stage of the node.
//!
//! A maintenance keeps its state in these annotations, so that it can be continued from another machine. The annotation
//! of a node is removed when the node is done.

use minicbor::{Decode, Encode};
use serde_json::{Value, json};

use super::{
    encoding::{self, EncodingContext},
    operation_id::OperationId,
};
use kordon_time::{Span, Timestamp};

/// The annotation of a node that is in a maintenance.
pub const MAINTENANCE: &str = "kordon.dev/maintenance";

/// Interval at which a running maintenance renews one of its annotations.
pub const RENEW_NOTE_EVERY: Span = Span::from_secs(60);

/// Time for which a maintenance counts as running without a renewal.
const LASTS: Span = Span::from_secs(180);

/// The maintenance of a node, and the stage of the node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct MaintenanceNote {
    #[cbor(n(0), with = "encoding::text")]
    pub by: String,
    #[n(1)]
    pub operation: OperationId,
    #[n(2)]
    pub stage: MaintenanceStage,
    /// Time of the last renewal; the Unix epoch if the maintenance was stopped.
    #[n(3)]
    pub renewed: Timestamp,
    /// The state of the machine before the work on it, such as its boot id. The work is done once this state has
    /// changed; empty if the end of the work does not depend on it.
    #[cbor(n(4), with = "encoding::text")]
    pub before: String,
    /// Since when the maintenance is paused, by its operator or because a gate does not hold; none if it was not paused
    /// at the time of the last renewal.
    #[n(5)]
    pub paused: Option<Timestamp>,
}

/// The stage of a node in its maintenance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub enum MaintenanceStage {
    /// The node's wave has not started.
    #[default]
    #[n(0)]
    Waiting,
    #[n(1)]
    Draining,
    /// The node is empty, and the work on the machine has begun.
    #[n(2)]
    Working,
    /// The command for the node has ended. The machine has not shown yet that the work is done.
    #[n(4)]
    Awaited,
    /// The work is done. The node is not healthy again yet.
    #[n(3)]
    Returning,
}

impl MaintenanceStage {
    const ALL: [Self; 5] = [Self::Waiting, Self::Draining, Self::Working, Self::Awaited, Self::Returning];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Draining => "draining",
            Self::Working => "working",
            Self::Awaited => "awaited",
            Self::Returning => "returning",
        }
    }
}

impl MaintenanceStage {
    /// Whether the node has been drained, and the work on its machine has begun.
    pub const fn is_drained(self) -> bool {
        match self {
            Self::Waiting | Self::Draining => false,
            Self::Working | Self::Awaited | Self::Returning => true,
        }
    }

    /// The stage in words that follow the name of the node.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Waiting => "waits for its wave",
            Self::Draining => "is being drained",
            Self::Working => "is empty, and worked on",
            Self::Awaited => "is empty, and waits for its machine",
            Self::Returning => "is worked on, and has to be well again",
        }
    }
}

impl MaintenanceNote {
    pub fn to_text(&self) -> String {
        let Self { by, operation, stage, renewed, before, paused } = self;
        json!({
            "by": by, "operation": operation, "stage": stage.as_str(), "renewed": renewed, "before": before,
            "paused": paused,
        })
        .to_string()
    }

    /// Parses the annotation of a node that is in a maintenance; none if kordon did not write the text.
    pub fn parse(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let stage = value["stage"].as_str()?;
        Some(Self {
            by: value["by"].as_str()?.into(),
            operation: value["operation"].as_str()?.parse().ok()?,
            stage: MaintenanceStage::ALL.into_iter().find(|known| known.as_str() == stage)?,
            renewed: value["renewed"].as_str().and_then(Timestamp::parse)?,
            before: value["before"].as_str().unwrap_or_default().into(),
            paused: value["paused"].as_str().and_then(Timestamp::parse),
        })
    }

    /// This annotation once its maintenance was stopped.
    pub fn stopped(self) -> Self {
        Self { renewed: Timestamp::EPOCH, ..self }
    }

    /// Whether this annotation was written or renewed so recently that its maintenance counts as running.
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        now < self.renewed + LASTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_read_back_and_foreign_texts_are_none() {
        let note = MaintenanceNote {
            by: "alice@desk".into(),
            operation: "maintenance-1".parse().expect("an id"),
            stage: MaintenanceStage::Working,
            renewed: Timestamp::from_secs(1_800_000_000),
            before: "b-1".into(),
            paused: Some(Timestamp::from_secs(1_799_999_900)),
        };
        assert_eq!(MaintenanceNote::parse(&note.to_text()), Some(note.clone()));
        let last = note.renewed + Span::from_secs(179);
        assert!(note.is_fresh(last) && !note.is_fresh(last + Span::from_secs(1)));
        let stopped = note.clone().stopped();
        assert_eq!(MaintenanceNote::parse(&stopped.to_text()), Some(stopped.clone()));
        assert!(!stopped.is_fresh(note.renewed) && stopped.stage == note.stage);
        assert_eq!((MaintenanceNote::parse("{}"), MaintenanceNote::parse("x")), (None, None));
        let unknown = note.to_text().replace("working", "dancing");
        assert_eq!(MaintenanceNote::parse(&unknown), None);
    }
}
