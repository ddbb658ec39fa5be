//! What kordon leaves on a node while and after it works on it: annotations that say who, why and until when.

use serde_json::{Value, json};

use super::OperationId;
use crate::time::{Span, Timestamp};

/// The annotation of a node that kordon cordoned.
pub const CORDON: &str = "kordon.dev/cordon";

/// The annotation of a node that is being drained; it is renewed for as long as that goes on.
pub const DRAIN: &str = "kordon.dev/drain";

/// How often the mark of a running drain is renewed.
pub const RENEW_EVERY: Span = Span::from_secs(20);

/// How long a mark counts that is not renewed.
const LASTS: Span = Span::from_secs(90);

/// Who cordoned a node, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CordonNote {
    pub by: String,
    /// Empty where nobody said.
    pub why: String,
    pub at: Timestamp,
    /// When it may end; shown, not acted upon.
    pub until: Option<Timestamp>,
    pub operation: OperationId,
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

    /// Reads a note; none where somebody else's text stands there.
    pub fn parse(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        Some(Self {
            by: value["by"].as_str()?.into(),
            why: value["why"].as_str().unwrap_or_default().into(),
            at: value["at"].as_str().and_then(Timestamp::parse)?,
            until: value["until"].as_str().and_then(Timestamp::parse),
            operation: value["operation"].as_str().unwrap_or_default().into(),
        })
    }
}

impl DrainClaim {
    pub fn to_text(&self) -> String {
        let Self { by, operation, renewed } = self;
        json!({"by": by, "operation": operation, "renewed": renewed}).to_string()
    }

    /// Reads a mark; none where somebody else's text stands there.
    pub fn parse(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        Some(Self {
            by: value["by"].as_str()?.into(),
            operation: value["operation"].as_str()?.into(),
            renewed: value["renewed"].as_str().and_then(Timestamp::parse)?,
        })
    }

    /// Whether whoever set it seems to be at work still. One from the future is by a clock ahead of ours.
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        now.since(self.renewed) < LASTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_and_notes_read_back_and_foreign_texts_are_none() {
        let at = Timestamp::from_secs(1_800_000_000);
        let mark = DrainClaim { by: "alice@desk".into(), operation: "p1".into(), renewed: at };
        assert_eq!(DrainClaim::parse(&mark.to_text()), Some(mark.clone()));
        assert!(mark.is_fresh(at + Span::from_secs(89)) && !mark.is_fresh(at + Span::from_secs(90)));
        let note = CordonNote {
            by: "bob".into(),
            why: "a \"new\" kernel".into(),
            at,
            until: Some(at + Span::from_secs(60)),
            operation: "p2".into(),
        };
        assert_eq!(CordonNote::parse(&note.to_text()), Some(note));
        assert_eq!((DrainClaim::parse("x"), CordonNote::parse("[]")), (None, None));
    }
}
