//! ResourceQuotas.

use serde::Deserialize;

use super::{
    Decoder, WatchEvent, Wire,
    leaf::{Amounts, LenientList, Quantity, Text, or_default},
    meta::Meta,
    pool::SharedParts,
    protobuf::message,
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

/// A ResourceQuota on the wire.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct WireQuota<'a> {
    #[serde(borrow, deserialize_with = "or_default")]
    metadata: Meta<'a>,
    #[serde(borrow, deserialize_with = "or_default")]
    spec: Spec<'a>,
    #[serde(borrow, deserialize_with = "or_default")]
    status: Status<'a>,
}

message! { impl<'a> WireQuota<'a> { 1 => metadata, 2 => spec, 3 => status } }

impl Wire for WireQuota<'_> {
    fn meta(&self) -> &Meta<'_> {
        &self.metadata
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec<'a> {
    #[serde(borrow)]
    scopes: LenientList<Text<'a>>,
    #[serde(borrow, deserialize_with = "or_default")]
    scope_selector: ScopeSelector<'a>,
}

message! { impl<'a> Spec<'a> { 2 => scopes, 3 => scope_selector } }

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ScopeSelector<'a> {
    #[serde(borrow)]
    match_expressions: LenientList<Expression<'a>>,
}

message! { impl<'a> ScopeSelector<'a> { 1 => match_expressions } }

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Expression<'a> {
    #[serde(borrow)]
    scope_name: Text<'a>,
    #[serde(borrow)]
    operator: Text<'a>,
    #[serde(borrow)]
    values: LenientList<Text<'a>>,
}

message! { impl<'a> Expression<'a> { 1 => scope_name, 2 => operator, 3 => values } }

/// The status, which admission compares: limits of the spec count once the quota controller has copied them here.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Status<'a> {
    #[serde(borrow, deserialize_with = "or_default")]
    hard: Amounts<'a>,
    #[serde(borrow, deserialize_with = "or_default")]
    used: Amounts<'a>,
}

message! { impl<'a> Status<'a> { 1 => hard, 2 => used } }
