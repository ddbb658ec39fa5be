//! Shares of devices that several claims may use at once (`allowMultipleAllocations`): how much of a device's capacity
//! a request takes, and how much the claims of the device have (upstream `CmpRequestOverCapacity`).

use crate::{
    cluster::{
        Name,
        device::{CapacityPolicy, Device, ValidAmounts},
        quantity,
    },
    placement::rules::DeviceSharing,
};

/// An amount of each capacity of a device, in thousandths of its unit.
pub(super) type DeviceShare = Box<[(Name, i64)]>;

/// The shares that claims have of one device.
#[derive(Clone, Debug, Default)]
pub(super) struct Shares(Vec<DeviceShare>);

impl Shares {
    pub fn add(&mut self, share: &DeviceShare) {
        self.0.push(share.clone());
    }

    /// Removes one share of this size.
    pub fn remove(&mut self, share: &DeviceShare) {
        if let Some(place) = self.0.iter().position(|other| other == share) {
            self.0.swap_remove(place);
        }
    }

    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &DeviceShare> + Clone {
        self.0.iter()
    }
}

/// Returns what a request takes of a device: the amounts that it asks for, rounded up to valid ones, and of each other
/// capacity the default of its policy, or all of it. `None` if the device does not have such a capacity, or an amount is
/// not valid.
pub(super) fn taken(device: &Device, asked: &[(Name, i64)], sharing: DeviceSharing) -> Option<DeviceShare> {
    let has = |name: &Name| device.capacity.iter().any(|(known, _)| known == name);
    if !asked.iter().all(|(name, _)| has(name)) {
        return None;
    }
    let amount = |(name, _): &(Name, Name)| {
        let policy = device.policies.iter().find(|(known, _)| known == name).map(|(_, policy)| policy);
        let asked = asked.iter().find(|(known, _)| known == name).map(|(_, amount)| *amount);
        let amount = match (asked, policy) {
            (Some(asked), Some(policy)) => rounded(asked, policy, sharing)?,
            (Some(asked), None) => asked,
            (None, policy) => policy.and_then(|policy| policy.default).unwrap_or_else(|| total(device, name)),
        };
        Some((name.clone(), amount))
    };
    device.capacity.iter().map(amount).collect()
}

/// Whether a device has enough capacity for a share in addition to those that it has given away.
pub(super) fn fits<'a>(
    device: &Device,
    share: &[(Name, i64)],
    given: impl Iterator<Item = &'a DeviceShare> + Clone,
) -> bool {
    share.iter().all(|(name, amount)| {
        let of_name = given.clone().flatten().filter(|(other, _)| other == name);
        let used = of_name.fold(*amount, |sum, (_, amount)| sum.saturating_add(*amount));
        used <= total(device, name)
    })
}

/// Returns the whole capacity of a device, in thousandths of its unit.
fn total(device: &Device, name: &Name) -> i64 {
    let text = device.capacity.iter().find(|(known, _)| known == name).map(|(_, text)| text);
    text.and_then(|text| quantity::parse_milli(text)).unwrap_or(0)
}

/// Rounds a requested amount up to the next valid one; `None` if none is as large (upstream `roundUpRange`,
/// `roundUpValidValues`, `violatesPolicy`).
fn rounded(asked: i64, policy: &CapacityPolicy, sharing: DeviceSharing) -> Option<i64> {
    match &policy.valid {
        ValidAmounts::All => Some(asked),
        ValidAmounts::Values(values) => values.iter().copied().find(|value| *value >= asked),
        ValidAmounts::Range { min, max, step } => {
            let amount = match step {
                _ if asked < *min => *min,
                None => asked,
                Some(step) => {
                    let unit = |amount: i64| match sharing {
                        DeviceSharing::Whole => next(amount, 0, 1000),
                        DeviceSharing::None | DeviceSharing::Milli => amount,
                    };
                    next(unit(asked), unit(*min), unit(*step))
                }
            };
            max.is_none_or(|max| amount <= max).then_some(amount)
        }
    }
}

/// Returns the smallest amount of at least this size that is some steps above `start`. Steps are above zero.
const fn next(amount: i64, start: i64, step: i64) -> i64 {
    match amount.saturating_sub(start) % step {
        0 => amount,
        over => amount.saturating_add(step - over),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: i64 = (1 << 30) * 1000;

    fn device(policy: Option<CapacityPolicy>) -> Device {
        Device {
            capacity: [("memory".into(), "40Gi".into())].into(),
            policies: policy.map(|policy| ("memory".into(), policy)).into_iter().collect(),
            ..Device::default()
        }
    }

    fn amount_of(asked: Option<i64>, policy: Option<CapacityPolicy>, sharing: DeviceSharing) -> Option<i64> {
        let asked: DeviceShare = asked.map(|asked| ("memory".into(), asked)).into_iter().collect();
        taken(&device(policy), &asked, sharing).map(|share| share[0].1)
    }

    /// The cases of upstream's `consumable_capacity_test.go` (1.37), with our own amounts.
    #[test]
    fn requests_take_what_the_policy_of_the_capacity_says() {
        let policy = |valid: ValidAmounts| Some(CapacityPolicy { default: Some(2 * GIB), valid });
        let values = || policy(ValidAmounts::Values([2 * GIB, 4 * GIB].into()));
        let range =
            |max: Option<i64>, step: Option<i64>| policy(ValidAmounts::Range { min: 2 * GIB, max, step });
        for (asked, of, expected, why) in [
            (None, None, Some(40 * GIB), "without a policy, a request that names no amount takes all"),
            (Some(3 * GIB), None, Some(3 * GIB), "without a policy, every amount is valid"),
            (None, values(), Some(2 * GIB), "the default"),
            (Some(3 * GIB), values(), Some(4 * GIB), "the next value"),
            (Some(5 * GIB), values(), None, "above all values"),
            (Some(1), range(None, None), Some(2 * GIB), "the minimum"),
            (Some(5 * GIB), range(None, None), Some(5 * GIB), "without a step"),
            (Some(5 * GIB), range(None, Some(2 * GIB)), Some(6 * GIB), "steps count from the minimum"),
            (Some(6 * GIB), range(None, Some(2 * GIB)), Some(6 * GIB), "a step"),
            (Some(5 * GIB), range(Some(4 * GIB), Some(2 * GIB)), None, "above the maximum"),
        ] {
            assert_eq!(amount_of(asked, of, DeviceSharing::Milli), expected, "{why}");
        }
        let other: DeviceShare = [("cores".into(), 1000)].into();
        assert_eq!(taken(&device(None), &other, DeviceSharing::Milli), None, "the device has no cores");
    }

    /// `roundUpRange` computes with whole units in 1.36, and with thousandths in 1.37 (`DRAFractionalCapacityRange`).
    #[test]
    fn fractional_steps_count_from_1_37_on() {
        let valid = ValidAmounts::Range { min: 500, max: None, step: Some(500) };
        let policy = CapacityPolicy { default: Some(500), valid };
        for (sharing, expected) in [(DeviceSharing::Whole, 2000), (DeviceSharing::Milli, 1500)] {
            assert_eq!(amount_of(Some(1200), Some(policy.clone()), sharing), Some(expected));
        }
    }

    #[test]
    fn shares_fit_until_the_capacity_is_used_up() {
        let share = |amount: i64| DeviceShare::from([("memory".into(), amount)]);
        let mut given = Shares::default();
        given.add(&share(30 * GIB));
        assert!(fits(&device(None), &share(10 * GIB), given.iter()));
        assert!(!fits(&device(None), &share(10 * GIB + 1), given.iter()));
        given.remove(&share(30 * GIB));
        assert!(given.is_empty());
        assert!(fits(&device(None), &share(40 * GIB), given.iter()));
    }
}
