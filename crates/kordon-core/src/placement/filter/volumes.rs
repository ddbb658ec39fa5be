//! Filters for PersistentVolumeClaims: whether the pod may use its claims, how many volumes a node can attach, and
//! which nodes can reach the volumes (VolumeRestrictions, NodeVolumeLimits, VolumeBinding, VolumeZone).

use std::{collections::BTreeSet, sync::Arc};

use super::{
    super::{
        columns::{ABSENT, LabelColumn},
        node_resources::NodeResources,
        reason::{FilterRefusal, NodeRefusal, Reason, Remedy},
        scheduling_request::{Caveat, SchedulingRequest},
        snapshot::{Resident, Snapshot},
        storage::{Handle, Storage, StorageRoom, claims_of, claims_volumes, own_claim},
    },
    node_affinity::TermMatch,
};
use crate::cluster::{
    Claim, Key, Labels, Name, StorageClass, Uid, Volume,
    scheduling::{NodeTerm, PodVolume},
};

/// Labels that name the zone or region of a volume: deprecated and current labels, each with its current name.
pub(in super::super) const TOPOLOGY_LABELS: [(&str, &str); 4] = [
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
    ("topology.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("topology.kubernetes.io/region", "topology.kubernetes.io/region"),
];

/// Requirements that the claims of a pod have on the node.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct PodVolumes {
    /// The reason why the claims exclude every node; `None` if they do not.
    obstacle: Option<Reason>,
    /// Node affinity of each bound volume.
    bound: Vec<Reach>,
    /// Zones and regions that the labels of bound volumes name.
    places: Vec<Place>,
    /// Claims that wait for their first consumer, smallest first.
    unbound: Vec<Unbound>,
    /// ReadWriteOncePod claims of the pod.
    exclusive: Vec<Key>,
    /// Number of times that pods on nodes use the `exclusive` claims.
    users: i64,
    /// Volumes of the pod that must be attached to its node, each with its driver.
    attached: BTreeSet<(Name, Handle)>,
    /// CSI drivers that the node must have, because the pod has volumes of them.
    drivers: BTreeSet<Name>,
    caveats: BTreeSet<Caveat>,
}

/// Nodes from which a volume can be reached: nodes that match at least one term. `None` means all nodes.
#[derive(Clone, Debug)]
struct Reach(Option<Vec<TermMatch>>);

/// A zone or region that a label of a volume names.
#[derive(Clone, Debug)]
struct Place {
    /// The two node labels that may name the zone or region: the key that the volume uses, then the current key.
    columns: [Arc<LabelColumn>; 2],
    values: Vec<Name>,
}

/// A claim that waits for its first consumer.
#[derive(Clone, Debug)]
struct Unbound {
    bytes: i64,
    /// The node that the scheduler already selected for the claim. The inner `None` means that this node no longer
    /// exists.
    selected: Option<Option<u32>>,
    /// Volumes that satisfy the claim, smallest first.
    candidates: Vec<(Name, Reach)>,
    /// Nodes for which a volume can be provisioned; `None` if the claim's class provisions no volumes.
    provisioned: Option<Reach>,
    /// Nodes that have room for a provisioned volume.
    room: StorageRoom,
}

impl PodVolumes {
    pub fn new(snapshot: &Snapshot, request: &SchedulingRequest) -> Self {
        let mut volumes = Self::default();
        if !claims_volumes(&request.spec) {
            return volumes;
        }
        if !snapshot.storage().is_known() {
            volumes.caveats.insert(Caveat::Volumes);
            return volumes;
        }
        let mut obstacles = Vec::new();
        for volume in &request.spec.volumes {
            let taken = match volume {
                PodVolume::Disk(_) => Ok(()),
                PodVolume::Claim(name) => volumes.add_claim(snapshot, request, name, Creation::BeforePod),
                PodVolume::OwnClaim { volume, class } if request.name.is_empty() => {
                    volumes.add_future_claim(snapshot, request, volume, class);
                    Ok(())
                }
                PodVolume::OwnClaim { volume, .. } => {
                    volumes.add_claim(snapshot, request, &own_claim(&request.name, volume), Creation::ForPod)
                }
            };
            obstacles.extend(taken.err());
        }
        // Rank of each obstacle. If there are several obstacles, the scheduler reports the one with the lowest rank.
        volumes.obstacle = obstacles.into_iter().min_by_key(|reason| match reason {
            Reason::ClaimMissing(_) => 0,
            Reason::ClaimUnbound => 2,
            Reason::VolumeMissing(_) => 3,
            _ => 1,
        });
        volumes.unbound.sort_by_key(|unbound| unbound.bytes);
        if snapshot.rules().drivers_must_be_on_node {
            let drivers = volumes.attached.iter().map(|(driver, _)| driver);
            let needed = drivers.filter(|driver| snapshot.storage().must_be_on_node(driver));
            volumes.drivers = needed.cloned().collect();
        }
        volumes.count_users(snapshot);
        volumes
    }

    fn add_claim(
        &mut self,
        snapshot: &Snapshot,
        request: &SchedulingRequest,
        name: &Name,
        creation: Creation,
    ) -> Result<(), Reason> {
        let storage = snapshot.storage();
        let key = Key { namespace: request.namespace.clone(), name: name.clone() };
        let Some(claim) = storage.claim(&key) else {
            return Err(match creation {
                Creation::BeforePod => Reason::ClaimMissing(name.clone()),
                Creation::ForPod => Reason::ClaimNotCreated(name.clone()),
            });
        };
        if claim.is_lost {
            return Err(Reason::ClaimLost { claim: name.clone(), volume: claim.volume.clone() });
        }
        if claim.is_terminating {
            return Err(Reason::ClaimTerminating(name.clone()));
        }
        if creation == Creation::ForPod && !is_of(claim, request) {
            return Err(Reason::ClaimNotOwned(name.clone()));
        }
        if claim.requested.modes.read_write_once_pod
            && creation == Creation::BeforePod
            && snapshot.rules().single_pod_claims
        {
            self.exclusive.push(key.clone());
        }
        self.attached.extend(storage.handle(&key));
        if claim.is_bound && !claim.volume.is_empty() {
            let Some(volume) = storage.volume(&claim.volume) else {
                return Err(Reason::VolumeMissing(claim.volume.clone()));
            };
            self.bound.push(Reach::new(snapshot, volume.node_affinity.as_deref()));
            if creation == Creation::BeforePod {
                self.places.extend(places(volume).map(|place| Place::new(snapshot, place)));
            }
            return Ok(());
        }
        let class =
            storage.class(&claim.class).filter(|class| class.waits_for_consumer && claim.volume.is_empty());
        if class.is_none() && storage.is_recreated(&key) {
            // A StatefulSet creates this deleted claim again, and the claim is bound before the pod is scheduled, so
            // its volume is not known yet.
            self.caveats.insert(Caveat::Volumes);
            return Ok(());
        }
        let class = class.ok_or(Reason::ClaimUnbound)?;
        let unbound = Unbound::new(snapshot, claim, class);
        if class.provisions() && matches!(unbound.room, StorageRoom::Unknown) {
            self.caveats.insert(Caveat::Capacity);
        }
        self.unbound.push(unbound);
        Ok(())
    }

    /// Adds a claim that a controller will create after the pod.
    fn add_future_claim(
        &mut self,
        snapshot: &Snapshot,
        request: &SchedulingRequest,
        volume: &Name,
        class: &Name,
    ) {
        let Some(class) =
            snapshot.storage().class(class).filter(|class| class.waits_for_consumer && class.provisions())
        else {
            // The new claim is bound before the pod is scheduled, so its volume is not known yet.
            self.caveats.insert(Caveat::Volumes);
            return;
        };
        let provisioned = Some(Reach::from_class(snapshot, class));
        // The size of the new volume is not known.
        let room = match snapshot.storage().room_for(class, i64::MAX) {
            StorageRoom::Everywhere => StorageRoom::Everywhere,
            StorageRoom::On(_) | StorageRoom::Unknown => StorageRoom::Unknown,
        };
        if matches!(room, StorageRoom::Unknown) {
            self.caveats.insert(Caveat::Capacity);
        }
        self.unbound.push(Unbound { bytes: 0, selected: None, candidates: Vec::new(), provisioned, room });
        let key = Key { namespace: request.namespace.clone(), name: own_claim(&request.name, volume) };
        self.attached.insert((class.provisioner.clone(), Handle::Claim(key)));
    }

    fn count_users(&mut self, snapshot: &Snapshot) {
        if self.exclusive.is_empty() {
            return;
        }
        let used = snapshot.node_resources().iter().flat_map(|resources| resources.claims().iter());
        self.users = used.filter(|claim| self.exclusive.contains(claim)).map(|_| 1).sum();
    }

    /// Returns the caveats about the claims, that is, what no filter checks.
    pub fn caveats(&self) -> impl Iterator<Item = Caveat> + use<'_> {
        self.caveats.iter().copied()
    }

    /// Returns true if no claim restricts the placement of the pod.
    pub fn is_empty(&self) -> bool {
        self.users == 0
            && self.attached.is_empty()
            && self.bound.is_empty()
            && self.unbound.is_empty()
            && self.places.is_empty()
    }

    /// Returns whether a claim is missing, or cannot be used on any node.
    pub const fn excludes_all_nodes(&self) -> bool {
        self.obstacle.is_some()
    }

    /// Refuses all nodes if the claims exclude every node.
    pub fn admit<R: FilterRefusal>(&self) -> Result<(), R> {
        let Some(reason) = &self.obstacle else { return Ok(()) };
        Err(R::unresolvable_by(|| reason.clone()))
    }

    pub fn check<R: FilterRefusal>(
        &self,
        snapshot: &Snapshot,
        node: u32,
        resources: &NodeResources,
    ) -> Result<(), R> {
        if self.users > 0 {
            return Err(R::resolvable(&[Reason::ClaimInUse]));
        }
        let name = &snapshot.node(node).name;
        if let Some(driver) = self.drivers.iter().find(|driver| !snapshot.storage().has_driver(name, driver))
        {
            return Err(R::unresolvable_by(|| Reason::DriverMissing(driver.clone())));
        }
        if !self.attached.is_empty() {
            self.check_limits(snapshot, node, resources)?;
        }
        self.check_reach(snapshot, node)?;
        self.check_places(snapshot, node)
    }

    /// Checks that the node is in the zones and regions that the labels of the volumes name. A node without any zone or
    /// region label passes.
    fn check_places<R: FilterRefusal>(&self, snapshot: &Snapshot, node: u32) -> Result<(), R> {
        if self.places.is_empty() || !has_place(snapshot, node) {
            return Ok(());
        }
        let matches = self.places.iter().all(|place| place.holds(node));
        if matches { Ok(()) } else { Err(R::unresolvable(&[Reason::VolumeZone])) }
    }

    /// Checks that the node can attach all volumes of the pod. Volumes that are already attached to the node count only
    /// once.
    fn check_limits<R: FilterRefusal>(
        &self,
        snapshot: &Snapshot,
        node: u32,
        resources: &NodeResources,
    ) -> Result<(), R> {
        let storage = snapshot.storage();
        for (driver, limit) in storage.limits(&snapshot.node(node).name) {
            let new: Vec<_> = self.attached.iter().filter(|(of, _)| of == driver).collect();
            let limit = usize::try_from(*limit).unwrap_or(0);
            // Fast path: even if all claims on the node used this driver, the volume limit would not be exceeded.
            if new.is_empty() || resources.claims().len() + new.len() <= limit {
                continue;
            }
            let attached: BTreeSet<_> =
                resources.claims().iter().filter_map(|claim| storage.handle(claim)).collect();
            let of_driver = attached.iter().filter(|(of, _)| of == driver).count();
            let added = new.iter().filter(|handle| !attached.contains(*handle)).count();
            if added > 0 && of_driver + added > limit {
                return Err(R::resolvable(&[Reason::VolumeLimit]));
            }
        }
        Ok(())
    }

    /// Checks that the node can reach the bound volumes, and that a volume exists or can be provisioned for each
    /// unbound claim (upstream `FindPodVolumes`).
    fn check_reach<R: FilterRefusal>(&self, snapshot: &Snapshot, node: u32) -> Result<(), R> {
        let mut reasons = Vec::new();
        if !self.bound.iter().all(|reach| reach.holds(node)) {
            reasons.push(Reason::VolumeUnreachable);
        }
        let mut chosen: Vec<&Name> = Vec::new();
        let labels = &snapshot.node(node).labels;
        let failed = self.unbound.iter().find_map(|unbound| unbound.find(node, labels, &mut chosen).err());
        reasons.extend(failed);
        if reasons.is_empty() {
            Ok(())
        } else {
            Err(R::explained(|| NodeRefusal { reasons: reasons.into(), remedy: Remedy::None }))
        }
    }

    pub fn assume(&mut self, resident: &Resident, sign: i64) {
        if self.exclusive.is_empty() {
            return;
        }
        let uses = claims_of(&resident.pod).filter(|claim| self.exclusive.contains(claim));
        self.users += sign * uses.map(|_| 1).sum::<i64>();
    }

    /// Returns the keys of the node labels that placement needs for the volumes of a pod.
    pub fn keys(storage: &Storage, request: &SchedulingRequest) -> BTreeSet<Name> {
        let mut keys = BTreeSet::new();
        if !claims_volumes(&request.spec) || !storage.is_known() {
            return keys;
        }
        keys.extend(TOPOLOGY_LABELS.map(|(key, _)| Name::from(key)));
        let mut add = |terms: &[NodeTerm]| {
            let requirements = terms.iter().flat_map(|term| &term.expressions);
            keys.extend(requirements.map(|requirement| requirement.key.clone()));
        };
        for volume in &request.spec.volumes {
            let (claim, class) = match volume {
                PodVolume::Disk(_) => continue,
                PodVolume::OwnClaim { class, .. } if request.name.is_empty() => (None, class.clone()),
                PodVolume::OwnClaim { volume, .. } => {
                    (Some(own_claim(&request.name, volume)), Name::default())
                }
                PodVolume::Claim(name) => (Some(name.clone()), Name::default()),
            };
            let key = claim.map(|name| Key { namespace: request.namespace.clone(), name });
            let claim = key.and_then(|key| storage.claim(&key));
            if let Some(volume) = claim.and_then(|claim| storage.volume(&claim.volume)) {
                add(volume.node_affinity.as_deref().unwrap_or_default());
                continue;
            }
            let class = claim.map_or(&class, |claim| &claim.class);
            add(storage.class(class).map_or(&[], |class| &class.topologies));
            if claim.is_some() {
                storage
                    .volumes_of(class)
                    .for_each(|volume| add(volume.node_affinity.as_deref().unwrap_or_default()));
            }
        }
        keys
    }
}

/// Whether a claim is created before the pod or for the pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Creation {
    /// The claim exists independently of the pod.
    BeforePod,
    /// A controller creates the claim for this pod alone.
    ForPod,
}

/// Returns whether the claim was created for this pod.
fn is_of(claim: &Claim, request: &SchedulingRequest) -> bool {
    claim.owner.as_ref().is_some_and(|owner| owner.kind.is("Pod", "") && owner.name == request.name)
}

/// Returns the zones and regions that the labels of a volume name, each as (label key, current key, values).
fn places(volume: &Volume) -> impl Iterator<Item = (&'static str, &'static str, Vec<Name>)> {
    TOPOLOGY_LABELS.into_iter().filter_map(|(key, new)| {
        let values: Vec<Name> =
            volume.labels.get(key)?.split("__").map(|value| Name::from(value.trim())).collect();
        // The scheduler ignores a label with an empty value.
        let is_valid = values.iter().all(|value| !value.is_empty());
        is_valid.then_some((key, new, values))
    })
}

/// Returns whether the node has any zone or region label.
fn has_place(snapshot: &Snapshot, node: u32) -> bool {
    TOPOLOGY_LABELS.iter().any(|(key, _)| snapshot.column(&Name::from(*key)).of_node[node as usize] != ABSENT)
}

impl Place {
    fn new(snapshot: &Snapshot, (key, new, values): (&str, &str, Vec<Name>)) -> Self {
        Self { columns: [key, new].map(|key| snapshot.column(&key.into()).clone()), values }
    }

    /// Returns whether the node is in this zone or region. Reads the node label with the volume's key or, if the node
    /// lacks it, the label with the current key.
    fn holds(&self, node: u32) -> bool {
        let number =
            |column: &Arc<LabelColumn>| Some(column.of_node[node as usize]).filter(|value| *value != ABSENT);
        let value = self.columns.iter().find_map(|column| Some(&column.values[number(column)? as usize]));
        value.is_some_and(|value| self.values.contains(value))
    }
}

impl Reach {
    fn new(snapshot: &Snapshot, terms: Option<&[NodeTerm]>) -> Self {
        Self(terms.map(|terms| terms.iter().map(|term| TermMatch::new(snapshot, term)).collect()))
    }

    fn from_class(snapshot: &Snapshot, class: &StorageClass) -> Self {
        Self::new(snapshot, Some(&*class.topologies).filter(|topologies| !topologies.is_empty()))
    }

    fn holds(&self, node: u32) -> bool {
        self.0.as_ref().is_none_or(|terms| terms.iter().any(|term| term.matches(node)))
    }
}

impl Unbound {
    fn new(snapshot: &Snapshot, claim: &Claim, class: &StorageClass) -> Self {
        let storage = snapshot.storage();
        let is_reserved = |volume: &&Arc<Volume>| {
            let is_it = |(key, uid): &(Key, Uid)| *key == claim.key && (*uid == claim.uid || uid.is_empty());
            volume.claim.as_ref().is_some_and(is_it)
        };
        let large_enough = |volume: &&Arc<Volume>| {
            !volume.is_terminating
                && volume.properties.bytes >= claim.requested.bytes
                && volume.properties.is_block == claim.requested.is_block
        };
        let matches = |volume: &&Arc<Volume>| {
            volume.is_available
                && volume.claim.is_none()
                && volume.properties.modes.cover(claim.requested.modes)
                && claim.selector.as_ref().is_none_or(|selector| selector.matches(&volume.labels))
        };
        let all = || storage.volumes_of(&claim.class).filter(large_enough);
        let mut found: Vec<&Arc<Volume>> = match all().find(is_reserved) {
            Some(reserved) => vec![reserved],
            None => all().filter(matches).collect(),
        };
        found.sort_by_key(|volume| volume.properties.bytes);
        let reach = |volume: &&Arc<Volume>| {
            (volume.name.clone(), Reach::new(snapshot, volume.node_affinity.as_deref()))
        };
        Self {
            bytes: claim.requested.bytes,
            selected: claim.selected_node.as_ref().map(|name| snapshot.number(name)),
            candidates: found.iter().map(reach).collect(),
            provisioned: class.provisions().then(|| Reach::from_class(snapshot, class)),
            room: storage.room_for(class, claim.requested.bytes),
        }
    }

    /// Finds a volume for the claim on this node: an existing volume that no other claim of the pod has chosen, or a
    /// newly provisioned one.
    ///
    /// # Errors
    /// Why there is none.
    fn find<'v>(&'v self, node: u32, labels: &Labels, chosen: &mut Vec<&'v Name>) -> Result<(), Reason> {
        match self.selected {
            Some(selected) if selected != Some(node) => return Err(Reason::NoVolume),
            Some(_) => {}
            None => {
                let mut candidates = self.candidates.iter();
                let found = candidates.find(|(name, reach)| !chosen.contains(&name) && reach.holds(node));
                if let Some((name, _)) = found {
                    chosen.push(name);
                    return Ok(());
                }
            }
        }
        if !self.provisioned.as_ref().is_some_and(|reach| reach.holds(node)) {
            return Err(Reason::NoVolume);
        }
        match &self.room {
            StorageRoom::On(nodes) if !nodes.match_any(labels) => Err(Reason::NoStorageSpace),
            StorageRoom::On(_) | StorageRoom::Everywhere | StorageRoom::Unknown => Ok(()),
        }
    }
}
