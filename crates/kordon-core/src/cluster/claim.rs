//! The annotations that kordon writes on nodes: who cordoned or drains them, why and until when.

use minicbor::{Decode, Encode};
use serde_json::{Value, json};

use super::{
    OperationId,
    encoding::{self, EncodingContext},
    names::Key,
    uid::Uid,
};
use kordon_time::{Span, Timestamp};

/// The annotation of a node that kordon cordoned.
pub const CORDON: &str = "kordon.dev/cordon";

/// The annotation of a node that is being drained. It is renewed while the drain runs.
pub const DRAIN: &str = "kordon.dev/drain";

/// The annotation of a node that a drain emptied. It stays until the node is uncordoned or drained again.
pub const DRAINED: &str = "kordon.dev/drained";

/// Interval at which a running drain renews its annotation on the node.
pub const RENEW_EVERY: Span = Span::from_secs(20);

/// Time for which a drain counts as running after it last renewed its annotation on the node.
const LASTS: Span = Span::from_secs(90);

/// Who cordoned a node, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct CordonNote {
    #[cbor(n(0), with = "encoding::text")]
    pub by: String,
    /// The reason for the cordon; empty if none was given.
    #[cbor(n(1), with = "encoding::text")]
    pub reason: String,
    #[n(2)]
    pub at: Timestamp,
    /// When the cordon is meant to end. The time is only shown, and has no effect.
    #[n(3)]
    pub until: Option<Timestamp>,
    /// The operation that cordoned the node; none if the annotation does not name one.
    #[n(4)]
    pub operation: Option<OperationId>,
}

/// Who drains a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct DrainClaim {
    #[cbor(n(0), with = "encoding::text")]
    pub by: String,
    #[n(1)]
    pub operation: OperationId,
    #[n(2)]
    pub renewed: Timestamp,
    /// Number of pods that the drain removes from the node, including pods that are already gone; `None` if it was not
    /// recorded.
    #[n(3)]
    pub pods: Option<usize>,
    /// Number of the node's workload pods ([`super::Cluster::workload_pods`]) that the drain leaves on the node; none
    /// if it was not recorded.
    #[n(4)]
    pub stay: Option<usize>,
    /// Deployments that the drain scales up while their pods leave. Whoever takes over the drain can scale them back.
    #[n(5)]
    #[cbor(default)]
    pub surges: Vec<ClaimedSurge>,
}

/// A Deployment that a drain scales up by one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct ClaimedSurge {
    #[n(0)]
    pub deployment: Key,
    #[n(1)]
    pub uid: Uid,
    /// `spec.replicas` before the drain scaled the Deployment up.
    #[n(2)]
    pub replicas: i32,
}

/// The annotation of a node that a drain emptied: all pods that the drain had to remove are gone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct DrainedNote {
    #[cbor(n(0), with = "encoding::text")]
    pub by: String,
    #[n(1)]
    pub operation: OperationId,
    #[n(2)]
    pub at: Timestamp,
}

impl CordonNote {
    pub fn to_text(&self) -> String {
        let Self { by, reason, at, until, operation } = self;
        json!({"by": by, "why": reason, "at": at, "until": until, "operation": operation}).to_string()
    }

    /// Who cordoned the node and why, such as `alice: new kernel`.
    pub fn who(&self) -> String {
        if self.reason.is_empty() { self.by.clone() } else { format!("{}: {}", self.by, self.reason) }
    }

    /// Whether the time at which the cordon was meant to end has passed.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.until.is_some_and(|until| until <= now)
    }

    /// The remaining time of the cordon, rounded up to a second like other countdowns, such as `1h59m left` or `expired
    /// 5m00s ago`; none if no time was given.
    pub fn time_left(&self, now: Timestamp) -> Option<String> {
        let until = self.until?;
        Some(if self.is_expired(now) {
            format!("expired {} ago", now.since(until))
        } else {
            format!("{} left", until.since(now).rounded_up())
        })
    }

    /// The whole text about the cordon, such as `by alice: new kernel, until 2026-11-22T14:00:00Z (1h59m left)`.
    pub fn text(&self, now: Timestamp) -> String {
        let until = self.until.zip(self.time_left(now));
        let until = until.map(|(until, left)| format!(", until {} ({left})", until.to_time()));
        format!("by {}{}", self.who(), until.unwrap_or_default())
    }

    /// Parses the annotation of a cordoned node; none if kordon did not write the text.
    pub fn parse(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        Some(Self {
            by: value["by"].as_str()?.into(),
            reason: value["why"].as_str().unwrap_or_default().into(),
            at: value["at"].as_str().and_then(Timestamp::parse)?,
            until: value["until"].as_str().and_then(Timestamp::parse),
            operation: value["operation"].as_str().and_then(|id| id.parse().ok()),
        })
    }
}

impl DrainClaim {
    pub fn to_text(&self) -> String {
        let Self { by, operation, renewed, pods, stay, surges } = self;
        let mut value =
            json!({"by": by, "operation": operation, "renewed": renewed, "pods": pods, "stay": stay});
        if !surges.is_empty() {
            value["surges"] = surges.iter().map(ClaimedSurge::to_value).collect();
        }
        value.to_string()
    }

    /// A text such as `drain by bob (operation drain-1)`, with the age of the annotation if it is no longer renewed.
    pub fn text(&self, now: Timestamp) -> String {
        let Self { by, operation, renewed, .. } = self;
        let age = if self.is_fresh(now) {
            String::new()
        } else {
            format!(", not renewed for {}", now.since(*renewed))
        };
        format!("drain by {by} (operation {operation}){age}")
    }

    /// Parses the annotation of a node that is being drained; none if kordon did not write the text.
    pub fn parse(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let count = |field: &str| value[field].as_u64().and_then(|pods| usize::try_from(pods).ok());
        Some(Self {
            by: value["by"].as_str()?.into(),
            operation: value["operation"].as_str()?.parse().ok()?,
            renewed: value["renewed"].as_str().and_then(Timestamp::parse)?,
            pods: count("pods"),
            stay: count("stay"),
            surges: value["surges"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(ClaimedSurge::parse)
                .collect(),
        })
    }

    /// Whether the drain still runs, as far as the renewals show. A renewal in the future comes from a clock that is
    /// ahead, and counts.
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        now < self.fresh_until()
    }

    /// Time from which the drain no longer counts as running, unless it renews its annotation on the node.
    pub fn fresh_until(&self) -> Timestamp {
        self.renewed + LASTS
    }
}

impl ClaimedSurge {
    fn to_value(&self) -> Value {
        json!({"deployment": self.deployment, "uid": self.uid, "replicas": self.replicas})
    }

    fn parse(value: &Value) -> Option<Self> {
        let (namespace, name) = value["deployment"].as_str()?.split_once('/')?;
        Some(Self {
            deployment: Key::new(namespace, name),
            uid: value["uid"].as_str()?.into(),
            replicas: value["replicas"].as_i64().and_then(|count| i32::try_from(count).ok())?,
        })
    }
}

impl DrainedNote {
    pub fn to_text(&self) -> String {
        let Self { by, operation, at } = self;
        json!({"by": by, "operation": operation, "at": at}).to_string()
    }

    /// Parses the annotation of a node that a drain emptied; none if kordon did not write the text.
    pub fn parse(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        Some(Self {
            by: value["by"].as_str()?.into(),
            operation: value["operation"].as_str()?.parse().ok()?,
            at: value["at"].as_str().and_then(Timestamp::parse)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_and_notes_read_back_and_foreign_texts_are_none() {
        let at = Timestamp::from_secs(1_800_000_000);
        let operation = "p1".parse().expect("an id");
        let claim = DrainClaim {
            by: "alice@desk".into(),
            operation,
            renewed: at,
            pods: Some(8),
            stay: Some(1),
            surges: Vec::new(),
        };
        assert_eq!(DrainClaim::parse(&claim.to_text()), Some(claim.clone()));
        let surge = ClaimedSurge { deployment: Key::new("shop", "cart"), uid: "u".into(), replicas: 1 };
        let surging = DrainClaim { surges: vec![surge], ..claim.clone() };
        assert_eq!(DrainClaim::parse(&surging.to_text()), Some(surging));
        assert!(claim.is_fresh(at + Span::from_secs(89)) && !claim.is_fresh(at + Span::from_secs(90)));
        let note = CordonNote {
            by: "bob".into(),
            reason: "a \"new\" kernel".into(),
            at,
            until: Some(at + Span::from_secs(60)),
            operation: Some("p2".parse().expect("an id")),
        };
        assert_eq!(CordonNote::parse(&note.to_text()), Some(note));
        let drained = DrainedNote { by: claim.by, operation: claim.operation, at };
        assert_eq!(DrainedNote::parse(&drained.to_text()), Some(drained));
        assert_eq!((DrainClaim::parse("x"), CordonNote::parse("[]")), (None, None));
        assert_eq!(DrainedNote::parse("{}"), None);
    }

    #[test]
    fn a_note_says_who_why_and_how_much_of_its_time_is_left() {
        let at = Timestamp::from_secs(1_800_000_000);
        let until = Some(at + Span::from_secs(7200));
        let note = CordonNote {
            by: "bob".into(),
            reason: "new kernel".into(),
            at,
            until,
            operation: "p2".parse().ok(),
        };
        assert_eq!(note.text(at), "by bob: new kernel, until 2027-01-15T10:00:00Z (2h00m left)");
        assert_eq!(
            note.time_left(at + Span::from_millis(1)).as_deref(),
            Some("2h00m left"),
            "as a countdown"
        );
        let later = at + Span::from_secs(7500);
        assert!(!note.is_expired(at) && note.is_expired(later));
        assert_eq!(note.text(later), "by bob: new kernel, until 2027-01-15T10:00:00Z (expired 5m00s ago)");
        let bare = CordonNote { reason: String::new(), until: None, ..note };
        assert_eq!((bare.text(later), bare.time_left(later)), ("by bob".into(), None));
        let operation = "p2".parse().expect("an id");
        let claim = DrainClaim { by: "bob".into(), operation, renewed: at, ..DrainClaim::default() };
        assert_eq!(claim.text(at), "drain by bob (operation p2)");
        assert_eq!(claim.text(later), "drain by bob (operation p2), not renewed for 2h05m");
    }
}
