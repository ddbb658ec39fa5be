//! ResourceQuotas.

use super::{
    Decoder, WatchEvent, has_metadata,
    leaf::{Amounts, LenientList, Quantity, Text, or_default},
    meta::Meta,
    pool::SharedParts,
    protobuf::wire,
};
use kordon_core::cluster::{Change, Quota, QuotaCount, QuotaLimit, QuotaScope};

/// Reads quotas.
#[derive(Debug, Default)]
pub struct QuotaDecoder(SharedParts);

impl Decoder for QuotaDecoder {
    type Wire<'a> = WireQuota<'a>;

    fn change(&mut self, event: WatchEvent<WireQuota<'_>>) -> Option<Change> {
        Some(Change::Quota(event.map(|wire| quota(&wire, &mut self.0))))
    }

    fn tidy(&mut self) {
        self.0.tidy();
    }
}

fn quota(wire: &WireQuota<'_>, pool: &mut SharedParts) -> Quota {
    let WireQuota { metadata, spec, status } = wire;
    let named = spec.scopes.iter().map(|name| QuotaScope::parse(name, "", Box::default()));
    let mut scopes: Vec<QuotaScope> = named.collect();
    for expression in spec.scope_selector.match_expressions.iter() {
        let values = expression.values.iter().map(|value| pool.name(value)).collect();
        scopes.push(QuotaScope::parse(&expression.scope_name, &expression.operator, values));
    }
    let mut limits = Vec::new();
    for (resource, hard) in &status.hard.0 {
        let (Some(counts), Some(used)) = (QuotaCount::for_resource(resource), status.used.amount(resource))
        else {
            continue;
        };
        let amount =
            |amount: &Quantity<'_>| if counts.is_in_thousandths() { amount.milli() } else { amount.units() };
        let (hard, used) = (amount(hard), amount(used));
        limits.push(QuotaLimit { resource: pool.name(resource), counts, hard, used });
    }
    limits.sort_by(|one, other| one.resource.cmp(&other.resource));
    Quota {
        key: metadata.key(pool),
        version: metadata.version(),
        scopes: scopes.into(),
        limits: limits.into(),
    }
}

wire! {
    /// A ResourceQuota on the wire.
    pub struct WireQuota<'a> {
        #[serde(deserialize_with = "or_default")]
        metadata: Meta<'a> = 1,
        #[serde(deserialize_with = "or_default")]
        spec: Spec<'a> = 2,
        #[serde(deserialize_with = "or_default")]
        status: Status<'a> = 3,
    }
}

has_metadata!(WireQuota);

wire! {
    struct Spec<'a> {
        scopes: LenientList<Text<'a>> = 2,
        #[serde(deserialize_with = "or_default")]
        scope_selector: ScopeSelector<'a> = 3,
    }
}

wire! {
    struct ScopeSelector<'a> {
        match_expressions: LenientList<Expression<'a>> = 1,
    }
}

wire! {
    struct Expression<'a> {
        scope_name: Text<'a> = 1,
        operator: Text<'a> = 2,
        values: LenientList<Text<'a>> = 3,
    }
}

wire! {
    /// The status, which admission uses. A limit of the spec is in effect only after the quota controller has copied it
    /// into the status.
    struct Status<'a> {
        #[serde(deserialize_with = "or_default")]
        hard: Amounts<'a> = 1,
        #[serde(deserialize_with = "or_default")]
        used: Amounts<'a> = 2,
    }
}
