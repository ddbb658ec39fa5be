//! `spec.volumes` of pods.

use serde::{Deserialize, de::IgnoredAny};

use super::{
    leaf::{LenientBool, Text, or_default},
    pool::SharedParts,
    protobuf::message,
};
use kordon_core::cluster::{
    LocalStorage, LocalVolume, Name,
    scheduling::{Disk, DiskKind, PodVolume},
};

/// A volume with its source.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct WireVolume<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    empty_dir: Option<EmptyDir<'a>>,
    host_path: Option<IgnoredAny>,
    config_map: Option<IgnoredAny>,
    git_repo: Option<IgnoredAny>,
    #[serde(borrow)]
    image: Option<WireImage<'a>>,
    #[serde(borrow)]
    ephemeral: Option<WireEphemeral<'a>>,
    #[serde(borrow)]
    persistent_volume_claim: Option<WireClaim<'a>>,
    #[serde(borrow)]
    gce_persistent_disk: Option<GcePersistentDisk<'a>>,
    #[serde(borrow)]
    aws_elastic_block_store: Option<AwsElasticBlockStore<'a>>,
    #[serde(borrow)]
    iscsi: Option<Iscsi<'a>>,
    #[serde(borrow)]
    rbd: Option<Rbd<'a>>,
}

message! {
    impl<'a> WireVolume<'a> {
        1 => name;
        2 => {
            1 => host_path, 2 => empty_dir, 3 => gce_persistent_disk, 4 => aws_elastic_block_store, 5 => git_repo,
            8 => iscsi, 10 => persistent_volume_claim, 11 => rbd, 19 => config_map, 29 => ephemeral, 30 => image,
        }
    }
}

/// The local data of a pod, which is lost with the pod.
pub fn local_storage(volumes: &[WireVolume<'_>]) -> LocalStorage {
    let mut storage = LocalStorage::default();
    for volume in volumes {
        match &volume.empty_dir {
            Some(medium) if *medium.medium == *"Memory" => storage.add(LocalVolume::Memory),
            Some(_) => storage.add(LocalVolume::EmptyDir),
            None => {}
        }
        if volume.host_path.is_some() {
            storage.add(LocalVolume::HostPath);
        }
        if volume.ephemeral.is_some() {
            storage.add(LocalVolume::Ephemeral);
        }
    }
    storage
}

impl WireVolume<'_> {
    /// Returns the volume's name if it holds data on the node's disk that is charged to the pod
    /// (`eviction.localVolumeNames`).
    pub fn local_data(&self, pool: &mut SharedParts) -> Option<Name> {
        let on_disk = self.empty_dir.as_ref().is_some_and(|source| *source.medium != *"Memory");
        let is_local =
            on_disk || self.host_path.is_some() || self.config_map.is_some() || self.git_repo.is_some();
        is_local.then(|| pool.name(&self.name))
    }

    /// The image that is mounted as the volume.
    pub fn image(&self) -> Option<&str> {
        self.image.as_ref().map(|image| &*image.reference)
    }

    /// The volume as the scheduler sees it; `None` if the scheduler ignores it.
    pub fn volume(&self, pool: &mut SharedParts) -> Option<PodVolume> {
        if let Some(claim) = &self.persistent_volume_claim {
            return Some(PodVolume::Claim(pool.name(&claim.claim_name)));
        }
        if let Some(ephemeral) = &self.ephemeral {
            let class = &ephemeral.volume_claim_template.spec.storage_class_name;
            return Some(PodVolume::OwnClaim { volume: pool.name(&self.name), class: pool.name(class) });
        }
        let (kind, id, read_only) = if let Some(disk) = &self.gce_persistent_disk {
            (DiskKind::GcePersistentDisk, pool.name(&disk.pd_name), disk.read_only)
        } else if let Some(disk) = &self.aws_elastic_block_store {
            (DiskKind::AwsElasticBlockStore, pool.name(&disk.volume_id), disk.read_only)
        } else if let Some(disk) = &self.iscsi {
            (DiskKind::Iscsi, pool.name(&disk.iqn), disk.read_only)
        } else {
            let disk = self.rbd.as_ref()?;
            (DiskKind::Rbd, pool.name(&format!("{}/{}", disk.pool, disk.image)), disk.read_only)
        };
        Some(PodVolume::Disk(Disk { kind, id, read_only: read_only.0 }))
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireImage<'a> {
    #[serde(borrow)]
    reference: Text<'a>,
}

message! { impl<'a> WireImage<'a> { 1 => reference } }

#[derive(Default, Deserialize)]
#[serde(default)]
struct EmptyDir<'a> {
    #[serde(borrow)]
    medium: Text<'a>,
}

message! { impl<'a> EmptyDir<'a> { 1 => medium } }

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireEphemeral<'a> {
    #[serde(borrow, deserialize_with = "or_default")]
    volume_claim_template: WireTemplate<'a>,
}

message! { impl<'a> WireEphemeral<'a> { 1 => volume_claim_template } }

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireTemplate<'a> {
    #[serde(borrow, deserialize_with = "or_default")]
    spec: WireTemplateSpec<'a>,
}

message! { impl<'a> WireTemplate<'a> { 2 => spec } }

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireTemplateSpec<'a> {
    #[serde(borrow)]
    storage_class_name: Text<'a>,
}

message! { impl<'a> WireTemplateSpec<'a> { 5 => storage_class_name } }

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireClaim<'a> {
    #[serde(borrow)]
    claim_name: Text<'a>,
}

message! { impl<'a> WireClaim<'a> { 1 => claim_name } }

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct GcePersistentDisk<'a> {
    #[serde(borrow)]
    pd_name: Text<'a>,
    read_only: LenientBool,
}

message! { impl<'a> GcePersistentDisk<'a> { 1 => pd_name, 4 => read_only } }

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AwsElasticBlockStore<'a> {
    #[serde(rename = "volumeID", borrow)]
    volume_id: Text<'a>,
    read_only: LenientBool,
}

message! { impl<'a> AwsElasticBlockStore<'a> { 1 => volume_id, 4 => read_only } }

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Iscsi<'a> {
    #[serde(borrow)]
    iqn: Text<'a>,
    read_only: LenientBool,
}

message! { impl<'a> Iscsi<'a> { 2 => iqn, 6 => read_only } }

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Rbd<'a> {
    #[serde(borrow)]
    pool: Text<'a>,
    #[serde(borrow)]
    image: Text<'a>,
    read_only: LenientBool,
}

message! { impl<'a> Rbd<'a> { 2 => image, 4 => pool, 8 => read_only } }
