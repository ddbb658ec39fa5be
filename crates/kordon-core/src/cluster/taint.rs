//! Taints and tolerations.

use std::fmt;

use minicbor::{Decode, Encode};

use super::{encoding::EncodingContext, names::Name};
use kordon_time::ClusterTime;

/// The key of the taint with which an operator declares that a machine is off.
pub const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
/// The key of the taint of cordoned nodes.
pub const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// One entry of a node's `spec.taints`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct Taint {
    #[n(0)]
    pub key: Name,
    #[n(1)]
    pub value: Name,
    #[n(2)]
    pub effect: TaintEffect,
    /// `timeAdded`: when the taint was added. The controller writes this time for NoExecute taints; `kubectl taint`
    /// does not.
    #[n(3)]
    pub time_added: Option<ClusterTime>,
}

impl Taint {
    /// Whether the taint has this key and effect, which identify it when it is added or removed (`Taint.MatchTaint`).
    pub fn is(&self, key: &str, effect: TaintEffect) -> bool {
        self.effect == effect && self.key == *key
    }
}

impl fmt::Display for Taint {
    /// Formats the taint as kubectl does: `key=value:effect`, or `key:effect` without a value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.value.is_empty() {
            write!(f, "{}:{}", self.key, self.effect)
        } else {
            write!(f, "{}={}:{}", self.key, self.value, self.effect)
        }
    }
}

/// The effect of a taint on pods that do not tolerate it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(index_only)]
pub enum TaintEffect {
    #[default]
    #[n(0)]
    NoSchedule,
    #[n(1)]
    PreferNoSchedule,
    #[n(2)]
    NoExecute,
    /// An unknown effect. Only a toleration of all effects matches it.
    #[n(3)]
    Invalid,
}

impl TaintEffect {
    pub fn parse(text: &str) -> Self {
        match text {
            "NoSchedule" => Self::NoSchedule,
            "PreferNoSchedule" => Self::PreferNoSchedule,
            "NoExecute" => Self::NoExecute,
            _ => Self::Invalid,
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
            Self::Invalid => "invalid",
        }
    }
}

impl fmt::Display for TaintEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One entry of a pod's `spec.tolerations`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct Toleration {
    /// The key of the tolerated taints; empty for every key.
    #[n(0)]
    pub key: Name,
    #[n(1)]
    pub operator: TolerationOperator,
    #[n(2)]
    pub value: Name,
    /// The effect of the tolerated taints; `None` for every effect.
    #[n(3)]
    pub effect: Option<TaintEffect>,
    /// Seconds for which NoExecute is tolerated. `None` means without limit; zero or less means not at all.
    #[n(4)]
    pub seconds: Option<i64>,
}

/// How a toleration compares values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Encode, Decode)]
#[cbor(index_only)]
pub enum TolerationOperator {
    #[default]
    #[n(0)]
    Equal,
    #[n(1)]
    Exists,
    /// Matches if the taint's value is lower than the toleration's (Kubernetes 1.35 and later, behind a feature gate).
    #[n(2)]
    Lt,
    /// Matches if the taint's value is greater than the toleration's (Kubernetes 1.35 and later, behind a feature
    /// gate).
    #[n(3)]
    Gt,
    /// An unknown operator; matches no taint.
    #[n(4)]
    Invalid,
}

impl TolerationOperator {
    pub fn parse(text: &str) -> Self {
        match text {
            "" | "Equal" => Self::Equal,
            "Exists" => Self::Exists,
            "Lt" => Self::Lt,
            "Gt" => Self::Gt,
            _ => Self::Invalid,
        }
    }
}

impl Toleration {
    /// Whether the toleration tolerates the taint (`Toleration.ToleratesTaint`, docs/upstream/node-lifecycle.md#7.6).
    pub fn tolerates(&self, taint: &Taint) -> bool {
        self.effect.is_none_or(|effect| effect == taint.effect)
            && (self.key.is_empty() || self.key == taint.key)
            && match self.operator {
                TolerationOperator::Equal => self.value == taint.value,
                TolerationOperator::Exists => true,
                TolerationOperator::Lt => compare(taint, self, |taint, own| taint < own),
                TolerationOperator::Gt => compare(taint, self, |taint, own| taint > own),
                TolerationOperator::Invalid => false,
            }
    }
}

fn compare(taint: &Taint, toleration: &Toleration, holds: impl Fn(i64, i64) -> bool) -> bool {
    taint.value.parse().is_ok_and(|taint| toleration.value.parse().is_ok_and(|own| holds(taint, own)))
}

/// Returns whether one of the tolerations tolerates a NoSchedule taint with this key.
pub fn tolerates_no_schedule(tolerations: &[Toleration], key: &str) -> bool {
    let taint = Taint { key: key.into(), effect: TaintEffect::NoSchedule, ..Taint::default() };
    tolerations.iter().any(|toleration| toleration.tolerates(&taint))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tolerates(key: &str, operator: TolerationOperator, value: &str, effect: Option<TaintEffect>) -> bool {
        let taint =
            Taint { key: "k".into(), value: "5".into(), effect: TaintEffect::NoExecute, time_added: None };
        Toleration { key: key.into(), operator, value: value.into(), effect, seconds: None }.tolerates(&taint)
    }

    #[test]
    fn tolerations_match_as_upstream_does() {
        use TolerationOperator::{Equal, Exists, Gt, Invalid, Lt};
        assert!(tolerates("k", Exists, "", None));
        assert!(tolerates("k", Exists, "", Some(TaintEffect::NoExecute)));
        assert!(!tolerates("k", Exists, "", Some(TaintEffect::NoSchedule)));
        assert!(tolerates("", Exists, "", None));
        assert!(tolerates("", Equal, "5", None), "an empty key with Equal matches on the value alone");
        assert!(!tolerates("", Equal, "", None));
        assert!(!tolerates("other", Equal, "5", None));
        assert!(
            tolerates("k", Lt, "6", None) && !tolerates("k", Lt, "5", None) && !tolerates("k", Lt, "x", None)
        );
        assert!(tolerates("k", Gt, "4", None) && !tolerates("k", Gt, "5", None));
        assert!(!tolerates("k", Invalid, "5", None));
    }
}
