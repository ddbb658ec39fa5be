//! `spec.volumes` of pods.

use serde::de::IgnoredAny;

use super::{
    leaf::{LenientBool, Text, or_default},
    pool::SharedParts,
    protobuf::wire,
};
use kordon_core::cluster::{
    LocalStorage, LocalVolume, Name,
    scheduling::{Disk, DiskKind, PodVolume},
};

wire! {
    /// A volume with its source.
    pub struct WireVolume<'a> {
        name: Text<'a> = 1,
        empty_dir: Option<EmptyDir<'a>>,
        host_path: Option<IgnoredAny>,
        config_map: Option<IgnoredAny>,
        git_repo: Option<IgnoredAny>,
        image: Option<WireImage<'a>>,
        ephemeral: Option<WireEphemeral<'a>>,
        persistent_volume_claim: Option<WireClaim<'a>>,
        gce_persistent_disk: Option<GcePersistentDisk<'a>>,
        aws_elastic_block_store: Option<AwsElasticBlockStore<'a>>,
        iscsi: Option<Iscsi<'a>>,
        rbd: Option<Rbd<'a>>,
        ; 2 => { 1 => host_path, 2 => empty_dir, 3 => gce_persistent_disk, 4 => aws_elastic_block_store, 5 => git_repo, 8 => iscsi, 10 => persistent_volume_claim, 11 => rbd, 19 => config_map, 29 => ephemeral, 30 => image, }
    }
}

/// Returns the pod's local data, which is lost with the pod.
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
    /// Returns the volume's name if the volume has data on the node's disk that counts towards the pod's usage
    /// (`eviction.localVolumeNames`).
    pub fn local_data(&self, pool: &mut SharedParts) -> Option<Name> {
        let on_disk = self.empty_dir.as_ref().is_some_and(|source| *source.medium != *"Memory");
        let is_local =
            on_disk || self.host_path.is_some() || self.config_map.is_some() || self.git_repo.is_some();
        is_local.then(|| pool.name(&self.name))
    }

    /// Returns the image that is mounted as the volume.
    pub fn image(&self) -> Option<&str> {
        self.image.as_ref().map(|image| &*image.reference)
    }

    /// Returns the volume as the scheduler sees it; `None` if the scheduler ignores it.
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

wire! {
    struct WireImage<'a> {
        reference: Text<'a> = 1,
    }
}

wire! {
    struct EmptyDir<'a> {
        medium: Text<'a> = 1,
    }
}

wire! {
    struct WireEphemeral<'a> {
        #[serde(deserialize_with = "or_default")]
        volume_claim_template: WireTemplate<'a> = 1,
    }
}

wire! {
    struct WireTemplate<'a> {
        #[serde(deserialize_with = "or_default")]
        spec: WireTemplateSpec<'a> = 2,
    }
}

wire! {
    struct WireTemplateSpec<'a> {
        storage_class_name: Text<'a> = 5,
    }
}

wire! {
    struct WireClaim<'a> {
        claim_name: Text<'a> = 1,
    }
}

wire! {
    struct GcePersistentDisk<'a> {
        pd_name: Text<'a> = 1,
        read_only: LenientBool = 4,
    }
}

wire! {
    struct AwsElasticBlockStore<'a> {
        #[serde(rename = "volumeID")]
        volume_id: Text<'a> = 1,
        read_only: LenientBool = 4,
    }
}

wire! {
    struct Iscsi<'a> {
        iqn: Text<'a> = 2,
        read_only: LenientBool = 6,
    }
}

wire! {
    struct Rbd<'a> {
        pool: Text<'a> = 4,
        image: Text<'a> = 2,
        read_only: LenientBool = 8,
    }
}
