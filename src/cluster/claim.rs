//! The annotations that kordon writes on nodes: who cordoned or drains them, why and until when.

use serde_json::{Value, json};

use super::OperationId;
use crate::time::{Span, Timestamp};

/// The annotation of a node that kordon cordoned.
pub const CORDON: &str = "kordon.dev/cordon";

/// The annotation of a node that is being drained; renewed while the drain runs.
pub const DRAIN: &str = "kordon.dev/drain";

/// How often a running drain renews its claim.
pub const RENEW_EVERY: Span = Span::from_secs(20);

/// How long a claim is valid without renewal.
const LASTS: Span = Span::from_secs(90);

/// Who cordoned a node, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CordonNote {
    pub by: String,
    /// Empty if no reason was given.
    pub why: String,
    pub at: Timestamp,
    /// When the cordon is meant to end; only shown.
    pub until: Option<Timestamp>,
    /// None if it was not noted.
    pub operation: Option<OperationId>,
}

/// Who drains a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DrainClaim {
    pub by: String,
    pub operation: OperationId,
    pub renewed: Timestamp,
}

impl CordonNote {
    pub fn to_text(&self) -> String {
        let Self { by, why, at, until, operation } = self;
        json!({"by": by, "why": why, "at": at, "until": until, "operation": operation}).to_string()
    }

    /// Parses a note; none if the text is not one of kordon's.
    pub fn parse(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        Some(Self {
            by: value["by"].as_str()?.into(),
            why: value["why"].as_str().unwrap_or_default().into(),
            at: value["at"].as_str().and_then(Timestamp::parse)?,
            until: value["until"].as_str().and_then(Timestamp::parse),
            operation: value["operation"].as_str().and_then(|id| id.parse().ok()),
        })
    }
}

impl DrainClaim {
    pub fn to_text(&self) -> String {
        let Self { by, operation, renewed } = self;
        json!({"by": by, "operation": operation, "renewed": renewed}).to_string()
    }

    /// Parses a claim; none if the text is not one of kordon's.
    pub fn parse(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        Some(Self {
            by: value["by"].as_str()?.into(),
            operation: value["operation"].as_str()?.parse().ok()?,
            renewed: value["renewed"].as_str().and_then(Timestamp::parse)?,
        })
    }

    /// Whether the drain still runs, as far as the renewals show. A renewal in the future comes from a clock that is
    /// ahead.
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        now.since(self.renewed) < LASTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_and_notes_read_back_and_foreign_texts_are_none() {
        let at = Timestamp::from_secs(1_800_000_000);
        let claim =
            DrainClaim { by: "alice@desk".into(), operation: "p1".parse().expect("an id"), renewed: at };
        assert_eq!(DrainClaim::parse(&claim.to_text()), Some(claim.clone()));
        assert!(claim.is_fresh(at + Span::from_secs(89)) && !claim.is_fresh(at + Span::from_secs(90)));
        let note = CordonNote {
            by: "bob".into(),
            why: "a \"new\" kernel".into(),
            at,
            until: Some(at + Span::from_secs(60)),
            operation: Some("p2".parse().expect("an id")),
        };
        assert_eq!(CordonNote::parse(&note.to_text()), Some(note));
        assert_eq!((DrainClaim::parse("x"), CordonNote::parse("[]")), (None, None));
    }
}
