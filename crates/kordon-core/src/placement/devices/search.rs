//! Looks for devices on one node that satisfy all claims of a pod (upstream `structured.Allocator`).

use std::{collections::BTreeMap, sync::Arc};

use super::{
    DeviceState,
    inventory::{Inventory, Matches},
    shares::{self, DeviceShare},
};
use crate::{
    cluster::{
        Key, Name, Node,
        device::{
            ConstraintRule, DeviceAlternative, DeviceAmount, DeviceAttribute, DeviceClaimSpec,
            DeviceConstraint,
        },
    },
    placement::rules::DeviceSharing,
};

/// A claim that needs devices.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub key: Key,
    pub spec: Arc<DeviceClaimSpec>,
    /// For each request of the claim and each alternative of the request: the devices that it selects.
    pub matches: Vec<Vec<Arc<Matches>>>,
    /// The extended resource that the claim requests; `None` for a claim in the pod's spec.
    pub resource: Option<Name>,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The devices of each claim, in the order of the claims.
    Devices(Vec<Vec<Choice>>),
    Nothing,
    /// It is not known whether the node has the devices, for this reason.
    Unknown(Name),
    /// A selector fails for a device, for this reason. The scheduler then does not place the pod at all.
    Fails(Name),
}

/// A device that a search chose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub device: u32,
    /// Whether other claims may use the device too.
    pub admin: bool,
    /// The share of a device that other claims can use too; `None` if the claim gets the whole device.
    pub share: Option<DeviceShare>,
    /// Whether the device takes from the counters of its pool. All shares of a device take from them once.
    takes_counters: bool,
    request: usize,
    alternative: usize,
}

/// Number of devices that a search tries before it gives up. The scheduler's own limit is a time of ten seconds.
const MOST_STEPS: usize = 50_000;

/// Maximum number of devices of one claim (upstream `AllocationResultsMaxSize`).
const MOST_DEVICES: usize = 32;

/// Looks for devices for these claims on a node.
pub(super) fn search(inventory: &Inventory, state: &DeviceState, node: &Node, claims: &[&Wanted]) -> Found {
    let usable = inventory.usable_by(node);
    let has_unusable_pool = inventory.has_unusable_pool(node);
    let chosen = vec![Vec::new(); claims.len()];
    let mut search = Search {
        inventory,
        state,
        claims,
        usable,
        has_unusable_pool,
        chosen,
        steps: 0,
        available: BTreeMap::new(),
        doubt: None,
    };
    match (search.request(0, 0), search.doubt) {
        (Ok(true), _) => Found::Devices(search.chosen),
        (Ok(false) | Err(Stop::Fails(_)), Some(doubt)) => Found::Unknown(doubt),
        (Ok(false), None) => Found::Nothing,
        (Err(Stop::GaveUp), _) => Found::Unknown("there are too many combinations of devices".into()),
        (Err(Stop::Fails(why)), None) => Found::Fails(why),
    }
}

/// Why a search stops before it has a result.
enum Stop {
    GaveUp,
    Fails(Name),
}

struct Search<'a> {
    inventory: &'a Inventory,
    state: &'a DeviceState,
    claims: &'a [&'a Wanted],
    usable: Vec<u32>,
    has_unusable_pool: bool,
    /// The devices chosen so far, by claim.
    chosen: Vec<Vec<Choice>>,
    steps: usize,
    /// What is left of each counter, by pool. Computed when a pool's counters are first needed.
    available: BTreeMap<u32, BTreeMap<(Name, Name), i64>>,
    /// Why a combination of devices was passed over that may satisfy the claims.
    doubt: Option<Name>,
}

impl Search<'_> {
    /// Chooses devices for this request of a claim and for all requests that follow.
    fn request(&mut self, claim: usize, request: usize) -> Result<bool, Stop> {
        let Some(wanted) = self.claims.get(claim).copied() else { return Ok(true) };
        let Some(asked) = wanted.spec.requests.get(request) else { return self.request(claim + 1, 0) };
        for (place, alternative) in asked.alternatives.iter().enumerate() {
            if self.alternative(claim, request, place, alternative)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn alternative(
        &mut self,
        claim: usize,
        request: usize,
        place: usize,
        alternative: &DeviceAlternative,
    ) -> Result<bool, Stop> {
        let matches = self.claims[claim].matches[request][place].clone();
        let fails = |device: &u32| matches.failing.contains(*device as usize);
        let is_tried = |device: &u32| matches.devices.contains(*device as usize) || fails(device);
        let mut selected: Vec<u32> = self.usable.iter().copied().filter(is_tried).collect();
        let one_fails = selected.iter().any(fails);
        let count = match alternative.amount {
            DeviceAmount::Exact(count) => count as usize,
            DeviceAmount::All if self.has_unusable_pool => return Ok(false),
            DeviceAmount::All if one_fails => return Err(Stop::Fails(matches.failure.clone())),
            DeviceAmount::All => {
                selected.retain(|device| self.counts_for_all(*device, alternative));
                if selected.is_empty() {
                    return Ok(false);
                }
                selected.len()
            }
            DeviceAmount::Unknown => return Ok(false),
        };
        let are_too_few = selected.len() < count && !one_fails;
        if self.chosen[claim].len() + count > MOST_DEVICES || are_too_few {
            return Ok(false);
        }
        self.choose(Step { claim, request, place, alternative, selected: &selected, from: 0, count })
    }

    /// Chooses `count` more of the selected devices, then satisfies the requests that follow.
    fn choose(&mut self, step: Step<'_>) -> Result<bool, Stop> {
        let Step { claim, request, place, alternative, selected, from, count } = step;
        if count == 0 {
            return self.request(claim, request + 1);
        }
        for (index, device) in selected.iter().enumerate().skip(from) {
            let matches = &self.claims[claim].matches[request][place];
            if matches.failing.contains(*device as usize) {
                if self.is_tried(*device, alternative) {
                    return Err(Stop::Fails(matches.failure.clone()));
                }
                continue;
            }
            if selected.len() - index < count {
                return Ok(false);
            }
            self.steps += 1;
            if self.steps > MOST_STEPS {
                return Err(Stop::GaveUp);
            }
            let choice = Choice {
                device: *device,
                admin: alternative.admin,
                share: None,
                takes_counters: !self.has_shares(*device),
                request,
                alternative: place,
            };
            if !self.is_allowed(claim, &choice, alternative) {
                continue;
            }
            let Some(share) = self.share(*device, alternative) else { continue };
            let share = self.inventory.device(*device).is_shareable.then_some(share);
            self.chosen[claim].push(Choice { share, ..choice });
            if self.choose(Step { from: index + 1, count: count - 1, ..step })? {
                return Ok(true);
            }
            self.chosen[claim].pop();
        }
        Ok(false)
    }

    /// Whether the selectors of a request are evaluated for a device. They are not for devices in use or in an unusable
    /// pool (upstream `allocateOne`).
    fn is_tried(&self, device: u32, alternative: &DeviceAlternative) -> bool {
        let is_in_use = || {
            self.state.in_use[device as usize] > 0
                || !self.inventory.device(device).is_shareable && self.is_chosen(device)
        };
        self.inventory.pool_of(device).1.is_usable() && (alternative.admin || !is_in_use())
    }

    fn is_allowed(&mut self, claim: usize, choice: &Choice, alternative: &DeviceAlternative) -> bool {
        let device = choice.device;
        let is_of_claim = || self.chosen[claim].iter().any(|other| other.device == device);
        (self.inventory.device(device).is_shareable || !is_of_claim())
            && self.is_tried(device, alternative)
            && self.inventory.is_tolerated(device, &alternative.tolerations)
            && self.meets_constraints(claim, choice)
            && (!choice.takes_counters || self.has_counters(device))
    }

    fn is_chosen(&self, device: u32) -> bool {
        self.chosen.iter().flatten().any(|other| other.device == device)
    }

    /// Whether claims have shares of a device (upstream `deviceCapacityInUse`).
    fn has_shares(&self, device: u32) -> bool {
        self.inventory.device(device).is_shareable
            && (self.state.shares.contains_key(&device) || self.is_chosen(device))
    }

    /// Returns what a request takes of a device's capacity, or nothing if it does not matter, because the request gets
    /// the whole device and asks for no amounts. `None` if the device does not have enough capacity.
    fn share(&self, device: u32, alternative: &DeviceAlternative) -> Option<DeviceShare> {
        let published = self.inventory.device(device);
        if !published.is_shareable && alternative.capacity.is_empty() {
            return Some(DeviceShare::default());
        }
        let share = shares::taken(published, &alternative.capacity, self.inventory.sharing)?;
        let chosen = self.chosen.iter().flatten().filter(|other| other.device == device);
        let given = self.given(device).chain(chosen.filter_map(|other| other.share.as_ref()));
        shares::fits(published, &share, given).then_some(share)
    }

    /// Returns the shares of a device that claims of the cluster have.
    fn given(&self, device: u32) -> impl Iterator<Item = &DeviceShare> + Clone {
        self.state.shares.get(&device).into_iter().flat_map(|shares| shares.iter())
    }

    /// Whether a request for all devices needs a device, by the device's capacity (upstream `validateDeviceRequest`).
    fn counts_for_all(&self, device: u32, alternative: &DeviceAlternative) -> bool {
        let published = self.inventory.device(device);
        let Some(share) = shares::taken(published, &alternative.capacity, self.inventory.sharing) else {
            return false;
        };
        match self.inventory.sharing {
            DeviceSharing::None => true,
            DeviceSharing::Whole => shares::fits(published, &share, self.given(device)),
            DeviceSharing::Milli => shares::fits(published, &share, std::iter::empty()),
        }
    }

    /// Whether a device, together with the devices chosen so far, satisfies the constraints of its claim (upstream
    /// `constraint.add`).
    fn meets_constraints(&mut self, claim: usize, choice: &Choice) -> bool {
        let (inventory, claims) = (self.inventory, self.claims);
        let spec = &claims[claim].spec;
        for constraint in spec.constraints.iter().filter(|constraint| concerns(constraint, spec, choice)) {
            let (name, wants_equal) = match &constraint.rule {
                ConstraintRule::Match(name) => (name, true),
                ConstraintRule::Distinct(name) => (name, false),
                ConstraintRule::Unknown => return false,
            };
            let Some(value) = inventory.attribute(choice.device, name) else { return false };
            let others = self.chosen[claim].iter().filter(|other| concerns(constraint, spec, other));
            let results = others.map(|other| are_equal(value, inventory.attribute(other.device, name)?));
            let results: Vec<Option<bool>> = results.collect();
            if results.contains(&Some(!wants_equal)) {
                return false;
            }
            if results.contains(&None) {
                let device = &inventory.device(choice.device).name;
                let why = format!("attribute {name} of device {device} is not modelled");
                self.doubt.get_or_insert_with(|| why.as_str().into());
                return false;
            }
        }
        true
    }

    /// Whether the counters of the pool have enough left for a device (upstream `checkAvailableCounters`).
    fn has_counters(&mut self, device: u32) -> bool {
        let consumed = &self.inventory.device(device).consumes;
        if consumed.is_empty() {
            return true;
        }
        let (number, pool) = self.inventory.pool_of(device);
        let (inventory, in_use, shares) = (self.inventory, &self.state.in_use, &self.state.shares);
        let available = self.available.entry(number).or_insert_with(|| {
            let mut left = pool.counters.clone();
            let is_used = |device: u32| in_use[device as usize] > 0 || shares.contains_key(&device);
            for used in pool.devices.iter().filter(|device| is_used(**device)) {
                consume(inventory, *used, &mut left);
            }
            left
        });
        let mut left = available.clone();
        let chosen = self.chosen.iter().flatten().filter(|choice| choice.takes_counters);
        let chosen = chosen.map(|choice| choice.device);
        for other in chosen.filter(|other| inventory.pool_of(*other).0 == number) {
            consume(inventory, other, &mut left);
        }
        consume(inventory, device, &mut left);
        left.values().all(|left| *left >= 0)
    }
}

/// Whether two values of an attribute are equal; `None` if kordon does not know one of them.
fn are_equal(one: &DeviceAttribute, other: &DeviceAttribute) -> Option<bool> {
    let are_known = [one, other].into_iter().all(|value| *value != DeviceAttribute::Unknown);
    are_known.then(|| one == other)
}

fn consume(inventory: &Inventory, device: u32, left: &mut BTreeMap<(Name, Name), i64>) {
    for consumed in &inventory.device(device).consumes {
        if let Some(left) = left.get_mut(&(consumed.set.clone(), consumed.counter.clone())) {
            *left = left.saturating_sub(consumed.milli);
        }
    }
}

/// The devices to choose for one alternative of a request.
#[derive(Clone, Copy)]
struct Step<'a> {
    claim: usize,
    request: usize,
    place: usize,
    alternative: &'a DeviceAlternative,
    selected: &'a [u32],
    /// Index of the next selected device to try. Earlier ones need not be tried again, because the order in which
    /// devices are chosen does not matter.
    from: usize,
    count: usize,
}

/// Whether a constraint applies to a device that was chosen for a request.
fn concerns(constraint: &DeviceConstraint, spec: &DeviceClaimSpec, choice: &Choice) -> bool {
    let request = &spec.requests[choice.request];
    let alternative = &request.alternatives[choice.alternative];
    constraint.requests.is_empty()
        || constraint.requests.iter().any(|name| {
            *name == request.name
                || name.split_once('/').is_some_and(|(parent, sub)| {
                    *request.name == *parent && !alternative.name.is_empty() && *alternative.name == *sub
                })
        })
}
